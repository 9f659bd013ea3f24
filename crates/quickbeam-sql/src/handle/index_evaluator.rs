//! Evaluation of what an index computes: its expressions and its predicate.
//!
//! Expressions are bound by a layer above, which gives the catalog an [`IndexCompiler`] when a
//! database is opened. An open index keeps what the compiler returned, so each is bound once for a
//! version of the catalog.

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::{Result, SqlError};
use crate::schema::encoding::row_format::StoredRow;
use crate::schema::{Index, Table};
use crate::types::{Collation, DataType, Value};

/// Evaluates the expressions and the predicate of one index.
pub trait IndexEvaluator: Debug + Send + Sync {
    /// Returns the values of the expressions for a row, or `None` if the predicate is not true.
    fn evaluate(&self, row: StoredRow<'_>) -> Result<Option<Vec<Value>>>;
}

/// The type of an expression of an index, and the collation of ICU of its texts.
pub type KeyType = (DataType, Option<Collation>);

/// Binds the expressions and the predicate of indexes.
pub trait IndexCompiler: Debug + Send + Sync {
    /// Binds those of an index of that table.
    fn compile(&self, table: &Arc<Table>, index: &Index) -> Result<Arc<dyn IndexEvaluator>>;

    /// Returns the types of the expressions, in order.
    fn types(&self, table: &Arc<Table>, index: &Index) -> Result<Vec<KeyType>>;
}

/// The form of a row's entry in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// There is no entry: the index is partial.
    Absent,
    /// The key has the values alone.
    Unique,
    /// The row's key follows the values.
    WithRowKey,
    /// The row's key follows the values, which no other row may have once they are checked.
    Checked,
    /// There is an entry for each key of the value: the index is inverted.
    Inverted,
}

/// Stands for the evaluator of an index in a catalog without a compiler. Rows can be read, not
/// changed.
#[derive(Debug)]
pub(crate) struct NoEvaluator;

impl IndexEvaluator for NoEvaluator {
    fn evaluate(&self, _: StoredRow<'_>) -> Result<Option<Vec<Value>>> {
        let missing = "expressions of indexes need a catalog that a SQL database has opened";
        Err(SqlError::internal(missing))
    }
}
