//! One side of a hash join by columns: its rows, and the keys that they are joined by.
//!
//! Above: the join. Below: the source of the rows, formulas.

use arrow_arith::boolean::{and, is_not_null};
use arrow_array::BooleanArray;

use super::super::column::Vector;
use super::super::evaluate::{VectorExpr, failed};
use super::super::source::{ColumnBatch, VectorSource};
use super::super::{known_columns, no_formula};
use crate::error::Result;
use crate::execute::row::{OperatorBuilder, append};
use crate::expression::{ColumnRef, Expr};
use crate::plan::PlanNode;
use crate::types::DataType;

/// Key columns, with their SQL types.
pub type KeyColumns = Vec<(Vector, DataType)>;

/// One side of a join: its rows and its keys.
#[derive(Debug)]
pub struct JoinInput {
    pub source: VectorSource,
    pub keys: Vec<VectorExpr>,
}

impl JoinInput {
    pub fn new(
        node: &PlanNode,
        keys: &[Expr],
        columns: &[(ColumnRef, DataType)],
        builder: &OperatorBuilder<'_>,
    ) -> Result<JoinInput> {
        let known = known_columns(columns, builder.parameters());
        let keys = keys.iter().map(|key| known.formula(key).ok_or_else(no_formula));
        let keys = keys.collect::<Result<Vec<VectorExpr>>>()?;
        Ok(JoinInput { source: VectorSource::of(node, columns, builder)?, keys })
    }

    /// The keys of rows.
    pub fn keys_of(&self, columns: &ColumnBatch) -> Result<KeyColumns> {
        let key = |key: &VectorExpr| {
            key.column(&columns.vectors, columns.rows).map(|column| (column, key.data_type))
        };
        self.keys.iter().map(key).collect()
    }
}

/// Makes the key of a row; false if a part of it is NULL, which equals nothing.
pub fn make_key(keys: &KeyColumns, row: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    keys.iter().all(|(vector, data_type)| {
        let value = vector.value(row, *data_type);
        append(value, out);
        !value.is_null()
    })
}

/// Returns the rows without NULL keys; `None` means all rows.
pub fn rows_with_keys(keys: &KeyColumns) -> Result<Option<BooleanArray>> {
    let mut all: Option<BooleanArray> = None;
    for (vector, _) in keys.iter().filter(|(vector, _)| vector.array().null_count() > 0) {
        let valid = is_not_null(vector.array()).map_err(|error| failed(&error))?;
        all = Some(match all {
            None => valid,
            Some(before) => and(&before, &valid).map_err(|error| failed(&error))?,
        });
    }
    Ok(all)
}
