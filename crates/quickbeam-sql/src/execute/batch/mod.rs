//! The batch way: many rows at once, column by column, as Arrow arrays.
//!
//! Above: the operators that go row by row. Below: scans by leaf, Arrow's kernels. A step that takes all its rows before it delivers
//! the first one (groups, order) takes them as columns, if the planner says so; what it delivers are rows
//! again. A join right below it, or below such a join, is made by columns too, and hands its rows on as columns;
//! so is a condition on joined rows. The formulas that stand for expressions are in [`evaluate`], with what holds of them (BATCH-1, BATCH-2).

mod evaluate;
mod filter;
mod group;
mod join;
mod numbers;
mod pairs;
mod side;
mod sort;
mod source;
mod vector;

use super::direct::{Builder, Context};
use crate::error::{Result, SqlError};
use crate::expression::{ColumnRef, Expr};
use crate::plan::Node;
use crate::types::DataType;
use evaluate::{Formula, Known};
pub(super) use numbers::NumberTable;
use source::Source;

/// A step that goes by columns.
#[derive(Debug)]
pub struct BatchProgram {
    work: Work,
}

#[derive(Debug)]
enum Work {
    Group(group::Group),
    Sort(sort::Sort),
}

/// Whether a step can go by columns: these, of its input, are what its expressions read.
pub fn can_batch(step: &Node, columns: &[(ColumnRef, DataType)], parameters: &[DataType]) -> bool {
    let known = known_columns(columns, parameters);
    let all_have = |exprs: &mut dyn Iterator<Item = &Expr>| {
        let mut formulas = exprs.map(|expr| known.formula(expr));
        formulas.all(|formula| formula.is_some())
    };
    columns.iter().all(|(_, data_type)| vector::kind_of(*data_type).is_some())
        && match step {
            Node::Group { keys, aggregates, .. } => {
                let parts = aggregates.iter().flat_map(|a| a.argument.iter().chain(&a.filter));
                all_have(&mut keys.iter().chain(parts))
            }
            Node::Sort { outputs, keys, .. } => {
                let is_exact = |expr: &Expr| {
                    let formula = known.formula(expr);
                    formula.is_some_and(|formula| {
                        vector::kind_of(formula.data_type) != Some(vector::Kind::Doubles)
                    })
                };
                all_have(&mut outputs.iter()) && keys.iter().all(|key| is_exact(&key.expr))
            }
            Node::Filter { condition, .. } => can_check(Some(condition), &known),
            Node::HashJoin(join) => join::can_join(join, columns, parameters),
            _ => false,
        }
}

fn known_columns<'k>(
    columns: &'k [(ColumnRef, DataType)],
    parameters: &'k [DataType],
) -> Known<'k> {
    // Slots that nothing is read of by columns are rows of an outer query, which no formula reads.
    let slots = columns.iter().map(|(at, _)| at.slot).collect();
    Known { columns, slots, parameters }
}

/// The parts of a condition.
fn conjuncts_of(condition: Option<&Expr>) -> Vec<Expr> {
    let mut conjuncts = Vec::new();
    if let Some(condition) = condition {
        condition.clone().into_conjuncts(&mut conjuncts);
    }
    conjuncts
}

/// Whether a condition on joined rows can be checked by columns.
fn can_check(condition: Option<&Expr>, known: &Known<'_>) -> bool {
    let conjuncts = conjuncts_of(condition);
    let mut formulas =
        conjuncts.iter().enumerate().map(|(nth, part)| known.formula_of_part(nth, part));
    formulas.all(|formula| formula.is_some())
}

/// What [`can_batch`] has made sure of is not so.
#[cold]
fn no_formula() -> SqlError {
    SqlError::internal("an expression without a formula")
}

impl BatchProgram {
    /// The step at work; `columns` are those of its input that it reads.
    pub fn new(
        step: &Node,
        columns: &[(ColumnRef, DataType)],
        builder: &Builder<'_>,
    ) -> Result<BatchProgram> {
        let known = known_columns(columns, builder.parameters());
        let formula = |expr: &Expr| known.formula(expr).ok_or_else(no_formula);
        let optional = |expr: &Option<Expr>| expr.as_ref().map(formula).transpose();
        let source = |input: &Node| Source::of(input, columns, builder);
        let work = match step {
            Node::Group { input, slot, keys, aggregates } => {
                let keys: Result<Vec<Formula>> = keys.iter().map(formula).collect();
                let mut parts = Vec::with_capacity(aggregates.len());
                for aggregate in aggregates {
                    let (argument, filter) =
                        (optional(&aggregate.argument)?, optional(&aggregate.filter)?);
                    parts.push((aggregate.clone(), argument, filter));
                }
                Work::Group(group::Group::new(source(input)?, *slot, keys?, parts))
            }
            Node::Sort { input, slot, outputs, keys, most } => {
                let outputs: Result<Vec<Formula>> = outputs.iter().map(formula).collect();
                let mut sorted = Vec::with_capacity(keys.len());
                for key in keys {
                    sorted.push(sort::Key {
                        formula: formula(&key.expr)?,
                        descending: key.descending,
                        nulls_first: key.nulls_first,
                    });
                }
                Work::Sort(sort::Sort::new(source(input)?, *slot, outputs?, sorted, most.clone()))
            }
            _ => return Err(SqlError::internal("a step that cannot go by columns")),
        };
        Ok(BatchProgram { work })
    }

    /// Goes to the next row that the step delivers.
    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        match &mut self.work {
            Work::Group(group) => group.next(context),
            Work::Sort(sort) => sort.next(context),
        }
    }

    /// Begins anew.
    pub fn rewind(&mut self) {
        match &mut self.work {
            Work::Group(group) => group.rewind(),
            Work::Sort(sort) => sort.rewind(),
        }
    }

    /// Rows that the steps below delivered, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        match &self.work {
            Work::Group(group) => group.source.counts(counts),
            Work::Sort(sort) => sort.source.counts(counts),
        }
    }
}
