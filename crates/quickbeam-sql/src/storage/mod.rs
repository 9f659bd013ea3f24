//! Rows and keys as bytes, and access to tables.
//!
//! Above: the executor. Below: the catalog's definitions, types, the engine.

mod append;
mod audit;
mod fill;
mod foreign;
mod key;
mod layout;
mod number;
mod samples;
mod splice;
mod statement;
mod table;

pub(crate) use audit::Audit;
pub(crate) use fill::Filling;
pub use key::{KeyBound, KeyPart, KeyRange, KeySpec, prefix_end};
pub use layout::Row;
pub(crate) use layout::{Layout, Layouts};
pub use number::{NumberAt, NumberCell};
pub use splice::{Origin, Splice};
pub use statement::{Conflict, Expressions, Statement};
pub use table::{IndexHandle, TableHandle};
pub(crate) use table::{RowIds, index_tree, rows_tree};
