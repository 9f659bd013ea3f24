//! Rows and keys as bytes, and access to tables.
//!
//! Above: the executor. Below: the catalog's definitions, types, the engine.

mod audit;
mod bulk_append;
mod encoding;
mod foreign_keys;
mod index_build;
mod sampling;
mod table_handle;
mod table_writer;

pub use self::encoding::int_column::{NumberAt, NumberCell};
pub use self::encoding::key_encoding::{KeyBound, KeyPart, KeyRange, KeySpec, prefix_end};
pub use self::encoding::row_copy::{Origin, Splice};
pub use self::encoding::row_format::StoredRow;
pub(crate) use self::encoding::row_format::{Layout, Layouts};
pub(crate) use audit::Audit;
pub(crate) use index_build::Filling;
pub use table_handle::{IndexHandle, TableHandle};
pub(crate) use table_handle::{RowIds, index_tree, rows_tree};
pub use table_writer::{Expressions, KeyConflict, TableWriter};
