//! Open tables: their trees and key encodings, samples of their keys and rows, and the filling of
//! new indexes.

pub(crate) mod column_cache;
pub(crate) mod deferrable_key;
mod index_build;
pub(crate) mod index_evaluator;
mod inverted_entries;
pub(crate) mod row_sample;
pub(crate) mod sampling;
pub(crate) mod table_handle;

pub(crate) use index_build::Filling;
pub(crate) use index_evaluator::{EntryForm, NoEvaluator};
pub use index_evaluator::{IndexCompiler, IndexEvaluator, KeyType};
pub use table_handle::{IndexHandle, TableHandle};
pub(crate) use table_handle::{RowIds, describe, describe_key, index_tree, rows_tree};
