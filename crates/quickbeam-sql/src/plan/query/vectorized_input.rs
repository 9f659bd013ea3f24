//! Joins and scans below a vectorized aggregation.
//!
//! A vectorized scan reads a row in a fraction of the time that a lookup by key takes, and a hash
//! join of such scans passes columns on. A nested loop reads its rows one by one, and so do all
//! steps above it. So an aggregation over nested loops is also planned with hash joins alone.
//!
//! A scan of columns in the column cache costs still less, which makes joins of such scans cheaper
//! than more lookups. For the same reason an aggregation over a range of an index is also planned
//! with a scan of the table, if the column cache has the index's column.

use super::select::{PlannedRows, Planner};
use crate::bind::{From, Select};
use crate::error::Result;
use crate::expression::{ColumnRef, Slots};
use crate::plan::column_pruning::each_expression;
use crate::plan::cost::{CACHED_COST, MIN_VECTORIZED_COST, RowGoal, VECTORIZED_COST};
use crate::plan::vectorize::is_wholly_vectorized;
use crate::plan::{AccessPath, PlanNode, TableAccess, TurnedOff};

/// The part of a table that the column cache must have for its scan to count as cached.
const CACHED_PART: f64 = 0.9;

impl Planner<'_> {
    /// Plans the rows of an aggregation with steps that can be vectorized. Returns that plan if all
    /// of it can be and it then costs less than `known`, the cheapest plan by rows.
    pub(super) fn with_vectorized_input(
        &self,
        known: PlannedRows,
        select: &Select,
        outside: &Slots,
    ) -> Result<PlannedRows> {
        let (Some(_), Some(from)) = (&select.group, &select.from) else { return Ok(known) };
        let Some(can_vectorize) = self.statistics.can_vectorize() else { return Ok(known) };
        if known.cost < MIN_VECTORIZED_COST
            || !select.subqueries.is_empty()
            || select.for_update.is_some()
            || !outside.is_empty()
        {
            return Ok(known);
        }
        let rows = known.rows;
        let mut best = known;
        for tried in self.vectorized_tries(&best.node, from) {
            let off = self.off.replace(tried);
            let planned = self.joins(from, select.filter.clone(), outside, &[], RowGoal::All);
            self.off.set(off);
            let planned = planned?.into_planned();
            let Some(step) = with_group(planned.node, select) else { continue };
            let cost = self.vectorized_cost(&step, planned.cost, from);
            if cost < best.cost
                && is_wholly_vectorized(&step, &self.all_slots(), self.parameters, can_vectorize)
                && let PlanNode::Group { input, .. } = step
            {
                best = PlannedRows { node: *input, rows, cost, ordered: planned.ordered };
            }
        }
        Ok(best)
    }

    /// Returns the steps to do without, so that the others may be vectorized.
    fn vectorized_tries(&self, known: &PlanNode, from: &From) -> Vec<TurnedOff> {
        let off = self.off.get();
        let is_looped = matches!(from, From::Join { .. }) && has_nested_loop(known);
        let without_loops = TurnedOff { nested_loop: off.nested_loop || is_looped, ..off };
        let mut is_cached = false;
        known.each_access(&mut |access| is_cached |= self.reads_cached_column(access));
        let mut tries = Vec::new();
        if is_looped {
            tries.push(without_loops);
        }
        if is_cached {
            tries.push(TurnedOff { index_scan: true, ..without_loops });
        }
        tries
    }

    /// Returns the cost of a vectorized step, of which `cost` is the cost by rows.
    fn vectorized_cost(&self, step: &PlanNode, cost: f64, from: &From) -> f64 {
        if matches!(from, From::Table(_)) {
            // The scan decodes the other columns once.
            return cost * CACHED_COST;
        }
        let cached = self.cached_rows(step).min(cost);
        (cost - cached) * VECTORIZED_COST + cached * CACHED_COST
    }

    /// Estimates the rows of the scans of whole tables whose columns are all in the column cache.
    fn cached_rows(&self, step: &PlanNode) -> f64 {
        let mut columns: Vec<ColumnRef> = Vec::new();
        each_expression(step, &mut |expr| expr.each_column(&mut |column| columns.push(column)));
        let mut rows = 0.0;
        step.each_access(&mut |access| {
            let mut own = columns.iter().filter(|column| column.slot == access.slot);
            let is_cached = own.all(|column| {
                self.statistics.cached_part(&access.table, column.column) >= CACHED_PART
            });
            if is_cached && matches!(access.path, AccessPath::All) {
                rows += self.statistics.rows(&access.table);
            }
        });
        rows
    }

    /// Returns whether the rows are those of a range of an index whose column the column cache has.
    fn reads_cached_column(&self, access: &TableAccess) -> bool {
        let AccessPath::Index(number, range) = &access.path else { return false };
        let index = access.table.indexes.get(*number);
        let column = index.and_then(|index| index.columns.get(range.equal.len()));
        column.is_some_and(|column| {
            self.statistics.cached_part(&access.table, column.position) >= CACHED_PART
        })
    }
}

/// Returns the step that groups these rows, if the query has groups.
fn with_group(rows: PlanNode, select: &Select) -> Option<PlanNode> {
    let group = select.group.as_ref()?;
    Some(PlanNode::Group {
        input: Box::new(rows),
        slot: group.slot,
        keys: group.keys.clone(),
        sets: group.sets.clone(),
        aggregates: group.aggregates.clone(),
    })
}

/// Returns whether rows are joined by a nested loop.
fn has_nested_loop(node: &PlanNode) -> bool {
    match node {
        PlanNode::NestedLoop { .. } => true,
        PlanNode::Filter { input, .. } => has_nested_loop(input),
        PlanNode::HashJoin(join) => has_nested_loop(&join.outer) || has_nested_loop(&join.inner),
        _ => false,
    }
}
