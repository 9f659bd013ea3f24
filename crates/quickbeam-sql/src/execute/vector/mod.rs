//! Vectorized execution: many rows at once, column by column, as Arrow arrays.
//!
//! Above: row operators. Below: leaf scans, Arrow's kernels. A step that reads all its input before
//! its first row (aggregation, sort) takes columns if the planner chooses so, and returns rows. A
//! join right below it, or below such a join, is vectorized too and passes columns on. So is a
//! filter on joined rows. A scan that takes columns for its filter alone returns the rows that
//! satisfy it. The module [`evaluate`] has the compiled expressions, with BATCH-1 and
//! BATCH-2.

mod aggregate;
mod cached_columns;
mod collect;
mod column;
mod connectives;
mod evaluate;
mod filter;
mod filtered_scan;
mod join;
mod operations;
mod parallel;
mod selection;
mod sort;
mod source;

use super::row::{Context, Operator, OperatorBuilder, TableScan};
use crate::bind::Aggregate;
use crate::error::{Result, SqlError, SqlState};
pub(super) use crate::execute::hash::int_table::IntTable;
use crate::expression::{ColumnRef, Expr, NumberKind};
use crate::plan::{Batch, PlanNode, SharedPart, TableAccess, each_expression};
use crate::types::DataType;
use aggregate::AggregateFormulas;
use evaluate::{InputColumns, VectorExpr};
use filtered_scan::FilteredScan;
pub use selection::{Failures, LeafSelection};
use source::VectorSource;

/// A vectorized step.
#[derive(Debug)]
pub struct BatchProgram {
    work: VectorWork,
    /// The step by rows, if it computes NUMERIC. A result may have too many digits (DECIMAL-1).
    rows: Option<Box<Operator>>,
    /// Whether this run is executed by rows.
    by_rows: bool,
    /// Whether this run has returned a row.
    has_returned: bool,
}

#[derive(Debug)]
enum VectorWork {
    Group(Box<aggregate::VectorAggregate>),
    Sort(Box<sort::VectorSort>),
    Scan(Box<FilteredScan>),
}

/// Whether a step can be vectorized. `columns` are the input columns that its expressions read.
pub fn can_batch(
    step: &PlanNode,
    columns: &[(ColumnRef, DataType)],
    parameters: &[DataType],
) -> bool {
    let known = known_columns(columns, parameters);
    let all_have = |exprs: &mut dyn Iterator<Item = &Expr>| {
        let mut formulas = exprs.map(|expr| known.formula(expr));
        formulas.all(|formula| formula.is_some())
    };
    columns.iter().all(|(_, data_type)| column::kind_of(*data_type).is_some())
        && match step {
            PlanNode::Group { keys, aggregates, .. } => {
                let has_formulas =
                    |aggregate: &Aggregate| AggregateFormulas::new(aggregate, &known).is_some();
                aggregates.iter().all(has_formulas) && all_have(&mut keys.iter())
            }
            PlanNode::Sort { outputs, keys, .. } => {
                let is_exact = |expr: &Expr| {
                    let formula = known.formula(expr);
                    formula.is_some_and(|formula| {
                        column::kind_of(formula.data_type) != Some(column::VectorType::Doubles)
                    })
                };
                all_have(&mut outputs.iter()) && keys.iter().all(|key| is_exact(&key.expr))
            }
            PlanNode::Filter { condition, .. } => can_check(Some(condition), &known),
            PlanNode::HashJoin(join) => join::can_join(join, columns, parameters),
            PlanNode::Table(access) => filtered_scan::can_filter(access, &known),
            _ => false,
        }
}

/// Returns the table scan that several threads can share to execute a part of a step, which can be
/// vectorized.
pub fn shared_scan<'s>(
    part: SharedPart<'s>,
    columns: &[(ColumnRef, DataType)],
    parameters: &[DataType],
) -> Option<&'s TableAccess> {
    let of_slots = |slots: &[usize]| -> Vec<(ColumnRef, DataType)> {
        columns.iter().filter(|(at, _)| slots.contains(&at.slot)).copied().collect()
    };
    let (input, aggregates) = match part {
        SharedPart::Step(PlanNode::Group { input, aggregates, .. }) => (input, aggregates),
        SharedPart::Step(PlanNode::HashJoin(join)) if join.kind.returns_inner() => {
            return source::shared_scan(&join.outer, &of_slots(&join.outer_slots), parameters);
        }
        SharedPart::Build(PlanNode::HashJoin(join)) => {
            return source::shared_scan(&join.inner, &of_slots(&join.inner_slots), parameters);
        }
        _ => return None,
    };
    let known = known_columns(columns, parameters);
    let can_merge = |aggregate: &Aggregate| {
        let argument = aggregate.argument.as_ref().map(|argument| known.formula(argument));
        let argument = argument.flatten();
        aggregate::can_merge(aggregate, argument.as_ref())
    };
    let can_share = aggregates.iter().all(can_merge);
    can_share.then(|| source::shared_scan(input, columns, parameters)).flatten()
}

fn known_columns<'k>(
    columns: &'k [(ColumnRef, DataType)],
    parameters: &'k [DataType],
) -> InputColumns<'k> {
    // A slot without columns here has outer rows, which no vectorized expression reads.
    let slots = columns.iter().map(|(at, _)| at.slot).collect();
    InputColumns { columns, slots, parameters }
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
fn can_check(condition: Option<&Expr>, known: &InputColumns<'_>) -> bool {
    let conjuncts = conjuncts_of(condition);
    let mut formulas =
        conjuncts.iter().enumerate().map(|(nth, part)| known.formula_of_part(nth, part));
    formulas.all(|formula| formula.is_some())
}

/// Whether a NUMERIC is computed that a column may have no place for.
fn may_exceed_decimals(expr: &Expr) -> bool {
    let mut found = match expr {
        Expr::Arithmetic(_, NumberKind::Numeric, ..) => true,
        Expr::Call(function, ..) => function.0.name == "extract",
        _ => false,
    };
    expr.each_child(&mut |child| found |= may_exceed_decimals(child));
    found
}

/// Reports a step that [`can_batch`] should have refused.
#[cold]
fn no_formula() -> SqlError {
    SqlError::internal("an expression without a formula")
}

impl BatchProgram {
    /// Makes the operator.
    pub fn new(batch: &Batch, builder: &OperatorBuilder<'_>) -> Result<BatchProgram> {
        let (step, columns, workers) = (&batch.step, &batch.columns, batch.workers);
        let known = known_columns(columns, builder.parameters());
        let formula = |expr: &Expr| known.formula(expr).ok_or_else(no_formula);
        let source = |input: &PlanNode| VectorSource::of(input, columns, builder);
        let mut computes_numeric = false;
        let work = match step {
            PlanNode::Group { input, slot, keys, aggregates, .. } => {
                let keys: Result<Vec<VectorExpr>> = keys.iter().map(formula).collect();
                let mut parts = Vec::with_capacity(aggregates.len());
                for aggregate in aggregates {
                    let formulas = AggregateFormulas::new(aggregate, &known);
                    parts.push(formulas.ok_or_else(no_formula)?);
                }
                computes_numeric |= parts.iter().any(AggregateFormulas::may_be_long);
                VectorWork::Group(Box::new(aggregate::VectorAggregate::new(
                    source(input)?,
                    *slot,
                    keys?,
                    parts,
                    columns.iter().map(|(_, data_type)| *data_type).collect(),
                    workers,
                )))
            }
            PlanNode::Sort { input, slot, outputs, keys, most } => {
                let outputs: Result<Vec<VectorExpr>> = outputs.iter().map(formula).collect();
                let mut sorted = Vec::with_capacity(keys.len());
                for key in keys {
                    sorted.push(sort::VectorSortKey {
                        formula: formula(&key.expr)?,
                        descending: key.descending,
                        nulls_first: key.nulls_first,
                    });
                }
                VectorWork::Sort(Box::new(sort::VectorSort::new(
                    source(input)?,
                    *slot,
                    outputs?,
                    sorted,
                    most.clone(),
                )))
            }
            PlanNode::Table(access) => {
                VectorWork::Scan(Box::new(FilteredScan::new(source(step)?, access, columns)?))
            }
            _ => return Err(SqlError::internal("a step that cannot go by columns")),
        };
        each_expression(step, &mut |expr| computes_numeric |= may_exceed_decimals(expr));
        let rows = computes_numeric.then(|| builder.operator(step)).transpose()?;
        let (rows, by_rows, has_returned) = (rows.map(Box::new), false, false);
        Ok(BatchProgram { work, rows, by_rows, has_returned })
    }

    /// Moves to the next row of the step.
    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if let (Some(rows), true) = (&mut self.rows, self.by_rows) {
            return rows.next(context);
        }
        let found = match &mut self.work {
            VectorWork::Group(group) => group.next(context),
            VectorWork::Sort(sort) => sort.next(context),
            VectorWork::Scan(scan) => scan.next(context),
        };
        match (&found, &mut self.rows) {
            (Err(error), Some(rows))
                if error.state() == SqlState::NumericValueOutOfRange && !self.has_returned =>
            {
                self.by_rows = true;
                match &mut self.work {
                    VectorWork::Group(group) => group.abandon(context),
                    VectorWork::Sort(sort) => sort.abandon(context),
                    VectorWork::Scan(_) => {}
                }
                rows.rewind();
                rows.next(context)
            }
            _ => {
                self.has_returned = true;
                found
            }
        }
    }

    /// Starts a new run.
    pub fn rewind(&mut self) {
        (self.by_rows, self.has_returned) = (false, false);
        match &mut self.work {
            VectorWork::Group(group) => group.rewind(),
            VectorWork::Sort(sort) => sort.rewind(),
            VectorWork::Scan(scan) => scan.rewind(),
        }
    }

    /// See [`Operator::scan_for_keys`].
    pub fn scan_for_keys(&mut self, column: ColumnRef) -> Option<&mut TableScan> {
        match &mut self.work {
            VectorWork::Scan(scan) => scan.source.scan_for_keys(column),
            VectorWork::Group(_) | VectorWork::Sort(_) => None,
        }
    }

    /// Whether the plan has workers. Then a count of them comes before those of the steps below.
    fn has_workers(&self) -> bool {
        matches!(&self.work, VectorWork::Group(group) if group.has_workers())
    }

    /// Collects the row counts of the steps below, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        if let (Some(rows), true) = (&self.rows, self.by_rows) {
            if self.has_workers() {
                counts.push(0);
            }
            let mut all = Vec::new();
            rows.counts(&mut all);
            // The count of the step itself is kept outside.
            return counts.extend(all.into_iter().skip(1));
        }
        match &self.work {
            VectorWork::Group(group) => {
                if group.has_workers() {
                    counts.push(group.launched);
                }
                group.source.counts(counts);
            }
            VectorWork::Sort(sort) => sort.source.counts(counts),
            // The scan is the step itself.
            VectorWork::Scan(_) => {}
        }
    }
}
