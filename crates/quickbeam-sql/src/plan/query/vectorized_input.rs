//! Joins and scans below a vectorized aggregation.
//!
//! A vectorized scan reads a row in a fraction of the time that a lookup by key takes, and a hash
//! join of such scans passes columns on. A nested loop reads its rows one by one, and so do all
//! steps above it. So an aggregation over nested loops is also planned with hash joins alone.
//!
//! A scan of columns in the column cache costs still less, which makes joins of such scans cheaper
//! than more lookups. For the same reason an aggregation over a range of an index is also planned
//! with a scan of the table, if the column cache has the index's column.
//!
//! EXISTS and NOT EXISTS become semi-joins and anti-joins in such a plan (`semi_join.rs`).

use super::join::{JoinSide, hash_cost};
use super::select::{PlannedRows, Planner};
use super::semi_join::{ExistenceTest, existence_kind};
use crate::bind::{From, Select, Subquery};
use crate::error::Result;
use crate::expression::{ColumnRef, Expr, Slots};
use crate::plan::column_pruning::each_expression;
use crate::plan::cost::{
    CACHED_COST, FETCH_COST, MIN_VECTORIZED_COST, QUIET_COST, RowGoal, SUBQUERY_SELECTIVITY,
    VECTORIZED_COST,
};
use crate::plan::vectorize::is_wholly_vectorized;
use crate::plan::{AccessPath, PlanNode, TableAccess, TurnedOff};

/// The part of a table that the column cache must have for its scan to count as cached.
const CACHED_PART: f64 = 0.9;

/// The rows of a vectorized step's scans whose cost differs from that of others.
#[derive(Clone, Copy, Debug, Default)]
struct ScannedRows {
    /// Those whose columns are all in the cache.
    cached: f64,
    /// Those of tables of which the cache has other columns: they have been scanned before and do
    /// not change, so that the next scans find the columns.
    quiet: f64,
    /// Those found through an index, one by one.
    fetched: f64,
}

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
        if select.for_update.is_some() || !outside.is_empty() {
            return Ok(known);
        }
        let Some((filter, tests)) = self.existence_tests(select, from) else { return Ok(known) };
        let asked = self.cost_of_asking(&tests, from, &filter)?;
        if known.cost + asked < MIN_VECTORIZED_COST {
            return Ok(known);
        }
        let rows = known.rows;
        let mut best = PlannedRows { cost: known.cost + asked, ..known };
        for tried in self.vectorized_tries(&best.node, from, &tests) {
            let off = self.off.replace(tried);
            let planned = self.joins(from, filter.clone(), outside, &[], RowGoal::All);
            let planned = planned.and_then(|planned| self.with_tests(planned, &tests));
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

    /// Returns the conditions that read no answers of subqueries, and the subqueries as existence
    /// tests. Returns `None` if one of them is used otherwise, or cannot be a semi-join.
    fn existence_tests<'s>(
        &self,
        select: &'s Select,
        from: &From,
    ) -> Option<(Vec<Expr>, Vec<ExistenceTest<'s>>)> {
        let subqueries = &select.subqueries;
        if subqueries.is_empty() {
            return Some((select.filter.clone(), Vec::new()));
        }
        let answers = Subquery::answers(subqueries);
        let (after, before): (Vec<Expr>, Vec<Expr>) =
            select.filter.iter().cloned().partition(|conjunct| conjunct.slots().meets(&answers));
        let is_read_elsewhere =
            after.len() != subqueries.len() || from.condition_slots().meets(&answers);
        if is_read_elsewhere || self.off.get().hash_join {
            return None;
        }
        let test = |subquery: &'s Subquery| {
            let kind = existence_kind(subquery, &after)?;
            self.existence_test(subquery, kind, &from.slots(), &Slots::default())
        };
        let tests = subqueries.iter().map(test).collect::<Option<Vec<ExistenceTest<'s>>>>()?;
        Some((before, tests))
    }

    /// Returns the cost of existence tests of the rows of FROM in execution by rows.
    fn cost_of_asking(
        &self,
        tests: &[ExistenceTest<'_>],
        from: &From,
        filter: &[Expr],
    ) -> Result<f64> {
        if tests.is_empty() {
            return Ok(0.0);
        }
        let none = Slots::default();
        let mut rows = self.joins(from, filter.to_vec(), &none, &[], RowGoal::All)?.rows;
        let mut cost = 0.0;
        for test in tests {
            let found = self.rows_of_test(test, &none)?;
            let around = from.slots();
            let (looped, once) = self.costs_of_test(test, &found, rows, &around, &none)?;
            cost += once.min(looped);
            rows *= SUBQUERY_SELECTIVITY;
        }
        Ok(cost)
    }

    /// Plans existence tests of rows as joins.
    fn with_tests(&self, mut rows: JoinSide, tests: &[ExistenceTest<'_>]) -> Result<JoinSide> {
        for test in tests {
            let found = self.rows_of_test(test, &Slots::default())?;
            rows.cost += found.cost + hash_cost(&rows, &found);
            rows.rows = (rows.rows * SUBQUERY_SELECTIVITY).max(1.0);
            rows.node = test.joined(rows.node, rows.slots.clone(), found);
            rows.ordered = false;
        }
        Ok(rows)
    }

    /// Returns the steps to do without, so that the others may be vectorized.
    fn vectorized_tries(
        &self,
        known: &PlanNode,
        from: &From,
        tests: &[ExistenceTest<'_>],
    ) -> Vec<TurnedOff> {
        let off = self.off.get();
        let is_looped =
            !tests.is_empty() || matches!(from, From::Join { .. }) && has_nested_loop(known);
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
        let is_joined = matches!(step, PlanNode::Group { input, .. }
            if matches!(**input, PlanNode::HashJoin(_)));
        if matches!(from, From::Table(_)) && !is_joined {
            // The scan decodes the other columns once.
            return cost * CACHED_COST;
        }
        let scanned = self.scanned_rows(step);
        let cached = scanned.cached.min(cost);
        let quiet = scanned.quiet.min(cost - cached);
        let fetched = (scanned.fetched * FETCH_COST).min(cost - cached - quiet);
        let decoded = cost - cached - quiet - fetched;
        fetched + decoded * VECTORIZED_COST + cached * CACHED_COST + quiet * QUIET_COST
    }

    /// Estimates the rows of scans of whole tables that use the column cache, and of indexes.
    fn scanned_rows(&self, step: &PlanNode) -> ScannedRows {
        let mut columns: Vec<ColumnRef> = Vec::new();
        each_expression(step, &mut |expr| expr.each_column(&mut |column| columns.push(column)));
        let mut scanned = ScannedRows::default();
        step.each_access(&mut |access| {
            if let AccessPath::Index(..) = access.path {
                scanned.fetched += access.rows;
            }
            if !matches!(access.path, AccessPath::All) {
                return;
            }
            let mut own = columns.iter().filter(|column| column.slot == access.slot);
            let is_cached = own.all(|column| {
                self.statistics.cached_part(&access.table, column.column) >= CACHED_PART
            });
            let rows = self.statistics.rows(&access.table);
            if is_cached {
                scanned.cached += rows;
            } else if self.statistics.decoded_part(&access.table) >= CACHED_PART {
                scanned.quiet += rows;
            }
        });
        scanned
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
