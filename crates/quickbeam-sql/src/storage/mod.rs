//! Rows and keys as bytes, and access to tables.
//!
//! Above: the executor. Below: catalog, types, the engine.

mod key;
mod layout;

pub use key::{KeyBound, KeyPart, KeyRange, KeySpec, prefix_end};
pub use layout::Row;
pub(crate) use layout::{Layout, Layouts};
