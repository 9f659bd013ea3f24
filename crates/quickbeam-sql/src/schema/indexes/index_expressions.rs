//! What an index has besides columns: expressions, and the predicate of a partial index.
//!
//! The texts are kept as CHECK keeps its own. In the key columns of an index, an expression has a
//! position after those of all columns ([`EXPRESSIONS`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::types::DataType;

/// The position, among the key columns of an index, of its first expression. Tables have fewer
/// columns.
pub const EXPRESSIONS: usize = 1 << 16;

/// An expression that an index is sorted by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexExpression {
    /// The name of the index's column.
    pub name: SmolStr,
    /// The text.
    pub text: Arc<str>,
    /// The type of its values.
    pub data_type: DataType,
    /// Numbers ([`Column::id`](super::Column::id)) of the columns that it reads.
    pub columns: Vec<u16>,
}

/// The condition that the rows of a partial index satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPredicate {
    /// The text.
    pub text: Arc<str>,
    /// Numbers ([`Column::id`](super::Column::id)) of the columns that it reads.
    pub columns: Vec<u16>,
}
