//! Joins and scans below a vectorized aggregation.
//!
//! A vectorized scan reads a row in a fraction of the time that a lookup by key takes, and a hash
//! join of such scans passes columns on. A nested loop reads its rows one by one, and so do all
//! steps above it. So an aggregation over nested loops is also planned with hash joins alone.
//!
//! A scan of columns in the column cache costs still less. So an aggregation over a range of an
//! index is also planned with a scan of the table, if the column cache has the index's column.

use super::select::{PlannedRows, Planner};
use crate::bind::{From, Select};
use crate::error::Result;
use crate::expression::Slots;
use crate::plan::cost::{CACHED_COST, MIN_VECTORIZED_COST, RowGoal, VECTORIZED_COST};
use crate::plan::vectorize::is_wholly_vectorized;
use crate::plan::{AccessPath, PlanNode, TurnedOff};

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
        let (Some(group), Some(from)) = (&select.group, &select.from) else { return Ok(known) };
        let Some(can_vectorize) = self.statistics.can_vectorize() else { return Ok(known) };
        if known.cost < MIN_VECTORIZED_COST
            || !select.subqueries.is_empty()
            || select.for_update.is_some()
            || !outside.is_empty()
        {
            return Ok(known);
        }
        let off = self.off.get();
        let (tried, factor) = match (from, &known.node) {
            (From::Join { .. }, node) if has_nested_loop(node) => {
                (TurnedOff { nested_loop: true, ..off }, VECTORIZED_COST)
            }
            (From::Table(_), node) if self.reads_cached_column(node) => {
                (TurnedOff { index_scan: true, ..off }, CACHED_COST)
            }
            _ => return Ok(known),
        };
        self.off.set(tried);
        let vectorized = self.joins(from, select.filter.clone(), outside, &[], RowGoal::All);
        self.off.set(off);
        let vectorized = vectorized?.into_planned();
        if vectorized.cost * factor >= known.cost {
            return Ok(known);
        }
        let step = PlanNode::Group {
            input: Box::new(vectorized.node),
            slot: group.slot,
            keys: group.keys.clone(),
            sets: group.sets.clone(),
            aggregates: group.aggregates.clone(),
        };
        let is_vectorized =
            is_wholly_vectorized(&step, &self.all_slots(), self.parameters, can_vectorize);
        match step {
            PlanNode::Group { input, .. } if is_vectorized => {
                Ok(PlannedRows { node: *input, rows: known.rows, ..vectorized })
            }
            _ => Ok(known),
        }
    }

    /// Returns whether the rows are those of a range of an index whose column the column cache has.
    fn reads_cached_column(&self, node: &PlanNode) -> bool {
        let PlanNode::Table(access) = node else { return false };
        let AccessPath::Index(number, range) = &access.path else { return false };
        let index = access.table.indexes.get(*number);
        let column = index.and_then(|index| index.columns.get(range.equal.len()));
        column.is_some_and(|column| {
            self.statistics.cached_part(&access.table, column.position) >= CACHED_PART
        })
    }
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
