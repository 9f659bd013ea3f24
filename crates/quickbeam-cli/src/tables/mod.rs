//! Tables as statements: what `dump` writes of SQL's tables, and `load` makes them of again.
//!
//! The trees that tables are stored in are not moved: their names and numbers belong to one environment. In their place go the statements that
//! make the same objects elsewhere, with the rows behind COPY, in the order in which they can be executed. `docs/dump.md` has the format.

mod dump;
mod load;

pub use dump::{Script, Section, write};
pub use load::{Loaded, load};

/// The item, and the line of a script, that ends the rows of COPY.
const END_OF_ROWS: &[u8] = b"\\.";
