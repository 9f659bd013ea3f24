//! Rows and keys as bytes, and access to tables.
//!
//! Above: the executor. Below: catalog, types, the engine.

mod layout;

pub(crate) use layout::Layouts;
pub use layout::Row;
