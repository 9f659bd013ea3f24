//! Indexes on expressions, and partial indexes, as the choice of an access path sees them.
//!
//! The expressions of all indexes of a table have positions of their own, after those of its
//! columns, so that a condition on an expression is found as one on a column is.

use super::collated_keys::collated_position;
use crate::catalog::{EXPRESSIONS, Index, KeyColumn, Table};
use crate::expression::{Expr, TextPosition};
use crate::plan::Statistics;
use crate::types::{DataType, Value};

/// Expressions that one index has at most.
pub(super) const MOST: usize = 32;

/// A computed index, over rows in a slot of the query.
pub(super) struct ComputedIndex {
    /// Its number among the table's indexes.
    pub number: usize,
    expressions: Vec<Expr>,
    /// The conjuncts of its predicate.
    pub predicate: Vec<Expr>,
    /// The fraction of the table's rows that have entries.
    pub part: Option<f64>,
    /// The types of the expressions.
    types: Vec<DataType>,
}

impl ComputedIndex {
    /// Returns the position of an expression that the index is sorted by.
    pub fn position_of(&self, side: &Expr) -> Option<usize> {
        let found = self.expressions.iter().position(|expression| expression == side)?;
        Some(EXPRESSIONS + self.number * MOST + found)
    }

    /// Returns an expression of the type of the one that `side` is.
    pub fn typed(&self, side: &Expr) -> Option<Expr> {
        let found = self.expressions.iter().position(|expression| expression == side)?;
        let (null, data_type) = (Expr::Constant(Value::Null), *self.types.get(found)?);
        Some(null.cast(Some(data_type), data_type, TextPosition::default()))
    }

    /// Returns whether the values of an expression are arrays.
    pub fn is_array(&self, side: &Expr) -> bool {
        let found = self.expressions.iter().position(|expression| expression == side);
        let data_type = found.and_then(|found| self.types.get(found));
        matches!(data_type, Some(DataType::Array(_)))
    }

    /// Returns whether the expression is the one at that position.
    pub fn is_at(&self, side: &Expr, position: usize) -> bool {
        let first = EXPRESSIONS + self.number * MOST;
        let expression = position.checked_sub(first).and_then(|at| self.expressions.get(at));
        expression.is_some_and(|expression| expression == side)
    }
}

/// Returns the positions of an index's keys, those of expressions and those that a collation orders
/// among all indexes of the table.
pub(super) fn key_positions(number: usize, index: &Index) -> Vec<usize> {
    let position = |(place, column): (usize, &KeyColumn)| match column.position < EXPRESSIONS {
        _ if column.collation.is_some() => collated_position(number, place),
        true => column.position,
        false => column.position + number * MOST,
    };
    index.columns.iter().enumerate().map(position).collect()
}

/// Returns the computed indexes of a table whose rows are in that slot.
pub(super) fn computed_indexes(
    table: &Table,
    slot: usize,
    statistics: &dyn Statistics,
) -> Vec<ComputedIndex> {
    let in_slot = |exprs: &[Expr]| {
        let mut exprs = exprs.to_vec();
        exprs.iter_mut().for_each(|expr| move_to(expr, slot));
        exprs
    };
    let indexes = table.indexes.iter().enumerate().filter(|(_, index)| index.is_computed());
    let computed = indexes.filter_map(|(number, index)| {
        let bound = statistics.bound_index(table, number)?;
        Some(ComputedIndex {
            number,
            expressions: in_slot(&bound.expressions),
            predicate: in_slot(&bound.predicate),
            part: index.predicate.as_ref().and_then(|_| statistics.part_of_index(table, number)),
            types: index.expressions.iter().map(|expression| expression.data_type).collect(),
        })
    });
    computed.collect()
}

fn move_to(expr: &mut Expr, slot: usize) {
    if let Expr::Column(column) = expr {
        column.slot = slot;
    }
    expr.each_child_mut(&mut |child| move_to(child, slot));
}
