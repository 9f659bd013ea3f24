//! Dumps and loads SQL tables as statements.
//!
//! The trees that store tables are not copied: their names and numbers belong to one environment. A
//! dump holds the statements that create the same objects, in executable order, with the rows after
//! COPY. `docs/dump.md` describes the format.

mod dump;
mod load;
pub mod losses;
pub mod rebuilt;

pub use dump::{Script, Section, write};
pub use load::{Loaded, load};

/// The item, or line of a script, that ends the rows of COPY.
const END_OF_ROWS: &[u8] = b"\\.";
