//! Joins below a vectorized aggregation.
//!
//! A vectorized scan reads a row in a fraction of the time that a lookup by key takes, and a hash
//! join of such scans passes columns on. A nested loop reads its rows one by one, and so do all
//! steps above it. So an aggregation over nested loops is also planned with hash joins alone.

use super::select::{PlannedRows, Planner};
use crate::bind::{From, Select};
use crate::error::Result;
use crate::expression::Slots;
use crate::plan::cost::{MIN_VECTORIZED_COST, RowGoal, VECTORIZED_COST};
use crate::plan::vectorize::is_wholly_vectorized;
use crate::plan::{PlanNode, TurnedOff};

impl Planner<'_> {
    /// Plans the joins of an aggregation with hash joins alone. Returns that plan if all of it can
    /// be vectorized and it then costs less than `known`, the cheapest plan by rows.
    pub(super) fn with_vectorized_joins(
        &self,
        known: PlannedRows,
        select: &Select,
        outside: &Slots,
    ) -> Result<PlannedRows> {
        let (Some(group), Some(from @ From::Join { .. })) = (&select.group, &select.from) else {
            return Ok(known);
        };
        let Some(can_vectorize) = self.statistics.can_vectorize() else { return Ok(known) };
        if known.cost < MIN_VECTORIZED_COST
            || !has_nested_loop(&known.node)
            || !select.subqueries.is_empty()
            || select.for_update.is_some()
            || !outside.is_empty()
        {
            return Ok(known);
        }
        let off = self.off.get();
        self.off.set(TurnedOff { nested_loop: true, ..off });
        let hashed = self.joins(from, select.filter.clone(), outside, &[], RowGoal::All);
        self.off.set(off);
        let hashed = hashed?.into_planned();
        if hashed.cost * VECTORIZED_COST >= known.cost {
            return Ok(known);
        }
        let step = PlanNode::Group {
            input: Box::new(hashed.node),
            slot: group.slot,
            keys: group.keys.clone(),
            sets: group.sets.clone(),
            aggregates: group.aggregates.clone(),
        };
        let is_vectorized =
            is_wholly_vectorized(&step, &self.all_slots(), self.parameters, can_vectorize);
        match step {
            PlanNode::Group { input, .. } if is_vectorized => {
                Ok(PlannedRows { node: *input, rows: known.rows, ..hashed })
            }
            _ => Ok(known),
        }
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
