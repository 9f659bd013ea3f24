//! Rows and keys as bytes, and access to tables.
//!
//! Above: the executor. Below: the catalog's definitions, types, the engine.

mod audit;
mod bulk_append;
mod foreign_keys;
mod index_build;
mod int_column;
mod key_encoding;
mod row_copy;
mod row_format;
mod sampling;
mod table_handle;
mod table_writer;

pub(crate) use audit::Audit;
pub(crate) use index_build::Filling;
pub use int_column::{NumberAt, NumberCell};
pub use key_encoding::{KeyBound, KeyPart, KeyRange, KeySpec, prefix_end};
pub use row_copy::{Origin, Splice};
pub use row_format::StoredRow;
pub(crate) use row_format::{Layout, Layouts};
pub use table_handle::{IndexHandle, TableHandle};
pub(crate) use table_handle::{RowIds, index_tree, rows_tree};
pub use table_writer::{Expressions, KeyConflict, TableWriter};
