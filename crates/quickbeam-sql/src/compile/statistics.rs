//! How much there is: what the planner asks, and whether a plan still fits.
//!
//! - STATISTICS-1: statistics make a plan better or worse; they never change the answer.
//! - STATISTICS-2: a statement whose plan depends on row counts is planned again when a table has
//!   several times the rows that it was planned for, or only a fraction of them.

use quickbeam::{CHECKS_INVARIANTS, invariant};
use std::sync::Arc;

use quickbeam::query_layer::DatabaseExt;

use super::CompileContext;
use crate::bind::BoundIndex;
use crate::catalog::Table;
use crate::execute::{TableHandles, constant_range};
use crate::expression::{Current, Expr, Frame, Slot};
use crate::handle::TableHandle;
use crate::handle::row_sample::RowSample;
use crate::plan::{
    Action, CanVectorize, ExecutionMode, KeyRangeExpr, MIN_TABLE_ROWS, Statistics, TurnedOff,
    WorkerPlan,
};
use crate::table::KeyRange;
use crate::types::{TextSettings, ValueRef};

/// Factor by which a table grows or shrinks before a plan is made again.
const OUTGROWN: f64 = 4.0;
/// Interval, in executions, at which table sizes are checked. The first executions check at each
/// power of two instead.
const EXECUTIONS: u32 = 64;

impl Statistics for CompileContext<'_> {
    fn rows(&self, table: &Table) -> f64 {
        // What cannot be found out now makes a worse plan, not a wrong one.
        let rows = estimated_rows(&self.handles(), table).unwrap_or(MIN_TABLE_ROWS);
        invariant!(STATISTICS_1, rows.is_finite() && rows >= 0.0, "{rows} rows of {}", table.name);
        rows
    }

    fn part(&self, table: &Table, index: Option<usize>, range: &KeyRangeExpr) -> Option<f64> {
        let handle = self.handles().of(table).ok()?;
        let (tree, key) = handle.tree_of(index)?;
        let bounds = constant_range(key, range)?;
        if key.grouped {
            return tree.estimate_hash_prefix(self.transaction, &bounds.low).ok();
        }
        let at = |key: &[u8]| tree.estimate_before(self.transaction, key).ok();
        let end = bounds.high.as_deref().map_or(Some(1.0), at)?;
        let part = (end - at(&bounds.low)?).clamp(0.0, 1.0);
        invariant!(STATISTICS_1, !part.is_nan(), "a part of {}", table.name);
        Some(part)
    }

    fn part_of_each(&self, table: &Table, index: Option<usize>, columns: usize) -> Option<f64> {
        self.handles().of(table).ok()?.part_of_each(self.transaction, index, columns)
    }

    fn sampled_part(&self, table: &Table, slot: usize, conditions: &[&Expr]) -> Option<f64> {
        let handle = self.handles().of(table).ok()?;
        let sample = self.sample_of(&handle)?;
        let mut slots: Vec<Slot> = (0..=slot).map(|_| Slot::default()).collect();
        let mut found = 0_usize;
        for row in sample.rows() {
            if let Some(slot) = slots.get_mut(slot) {
                slot.table = Some(handle.table().clone());
                slot.bytes.clear();
                slot.bytes.extend_from_slice(row);
                slot.current = Current::Bytes(0, row.len());
            }
            let frame = Frame { slots: &slots, parameters: &[], clock: None, host: None };
            let holds = |condition: &&Expr| {
                let value = condition.evaluate(&frame);
                value.is_ok_and(|value| matches!(value.as_ref(), ValueRef::Boolean(true)))
            };
            found += usize::from(conditions.iter().all(holds));
        }
        // Of a condition that holds nowhere in the sample, half a row would have been found.
        Some((found as f64).max(0.5) / sample.len() as f64)
    }

    fn distinct(&self, table: &Table, column: usize) -> Option<f64> {
        let handle = self.handles().of(table).ok()?;
        self.sample_of(&handle)?.distinct(handle.table(), column)
    }

    fn part_of_index(&self, table: &Table, index: usize) -> Option<f64> {
        let handle = self.handles().of(table).ok()?;
        let rows = handle.estimated_rows(self.transaction).ok()?;
        let entries = handle.tree_of(Some(index))?.0.estimate(self.transaction).ok()?;
        Some((entries / rows.max(1.0)).clamp(0.0, 1.0))
    }

    fn entries(&self, table: &Table, index: usize, range: &KeyRange) -> Option<f64> {
        let handle = self.handles().of(table).ok()?;
        handle.indexes().get(index)?.estimated_entries(self.transaction, range).ok()
    }

    fn bound_index(&self, table: &Table, index: usize) -> Option<Arc<BoundIndex>> {
        let bound = BoundIndex::of(self, table, table.indexes.get(index)?, 0).ok()?;
        // Its entries have the values of the default settings.
        let is_usable = !bound.reads_settings() || self.clock.settings() == TextSettings::DEFAULT;
        is_usable.then(|| Arc::new(bound))
    }

    fn cached_part(&self, table: &Table, column: usize) -> f64 {
        let cached = self.catalog.column_cache.cached_rows(table.id, column);
        cached as f64 / self.rows(table).max(1.0)
    }

    fn decoded_part(&self, table: &Table) -> f64 {
        let decoded = self.catalog.column_cache.decoded_rows(table.id);
        decoded as f64 / self.rows(table).max(1.0)
    }

    fn can_vectorize(&self) -> Option<CanVectorize<'_>> {
        (self.way != ExecutionMode::Row).then_some(&crate::execute::can_batch)
    }

    fn turned_off(&self) -> TurnedOff {
        self.turned_off
    }
}

/// Factor by which a table grows before one worker more helps.
const GROWTH_PER_WORKER: f64 = 3.0;

/// The workers that a session allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parallelism {
    /// `max_parallel_workers_per_gather`: the most workers of one step.
    pub workers: usize,
    /// `min_parallel_table_scan_size`: the least bytes of a table that they share.
    pub least_bytes: u64,
}

impl CompileContext<'_> {
    /// Plans the workers for a scan of a table.
    pub fn workers_for(&self, table: &Table) -> Option<WorkerPlan> {
        let Parallelism { workers, least_bytes } = self.parallelism;
        if least_bytes == 0 {
            return Some(WorkerPlan { workers, least_rows: 0.0 });
        }
        let handle = self.handles().of(table).ok()?;
        let rows = handle.estimated_rows(self.transaction).ok()?;
        let bytes = handle.estimated_size(self.transaction, None).ok()?.max(1) as f64;
        let least = least_bytes as f64;
        let worthwhile = 1 + (bytes / least).max(1.0).log(GROWTH_PER_WORKER) as usize;
        let least_rows = least * rows / bytes;
        (bytes >= least).then_some(WorkerPlan { workers: workers.min(worthwhile), least_rows })
    }

    fn sample_of(&self, handle: &TableHandle) -> Option<Arc<RowSample>> {
        if handle.table().is_database() {
            return None;
        }
        let rows = handle.estimated_rows(self.transaction).ok()?;
        let snapshot = || self.catalog.environment.begin_read().ok();
        handle.newest_sample.get(handle.database(), rows, snapshot)
    }
}

fn estimated_rows(handles: &TableHandles<'_>, table: &Table) -> Option<f64> {
    handles.of(table).ok()?.estimated_rows(handles.transaction).ok()
}

/// How many rows the tables of a plan had when it was made.
pub(crate) struct PlanBasis {
    tables: Vec<(Arc<Table>, f64)>,
    executions: u32,
    /// Executions since the tables were looked at, where invariants are checked.
    unchecked: u32,
}

impl PlanBasis {
    /// Counts an execution; whether tables are looked at before it.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.executions = self.executions.wrapping_add(1);
        let is_due =
            self.executions.is_power_of_two() || self.executions.is_multiple_of(EXECUTIONS);
        if CHECKS_INVARIANTS {
            self.unchecked = if is_due { 0 } else { self.unchecked + 1 };
        }
        invariant!(STATISTICS_2, self.unchecked < EXECUTIONS, "{} executions", self.unchecked);
        is_due
    }
}

impl CompileContext<'_> {
    /// What a plan is made for; none if it reads nothing but single rows by their keys.
    pub fn planned_for(&self, action: &Action) -> Option<PlanBasis> {
        let mut tables: Vec<(Arc<Table>, f64)> = Vec::new();
        let mut is_open = false;
        action.each_access(&mut |access| {
            is_open |= !access.is_single();
            // Key/value databases have no number of their own.
            if !tables.iter().any(|(table, _)| table.name == access.table.name) {
                tables.push((access.table.clone(), self.rows(&access.table)));
            }
        });
        is_open.then_some(PlanBasis { tables, executions: 0, unchecked: 0 })
    }

    /// Whether there is so much more, or less, that another plan may be better (STATISTICS-2).
    #[cold]
    pub fn plan_is_stale(&self, planned: &PlanBasis) -> bool {
        planned.tables.iter().any(|(table, then)| {
            let now = estimated_rows(&self.handles(), table).unwrap_or(*then).max(MIN_TABLE_ROWS);
            let then = then.max(MIN_TABLE_ROWS);
            now > then * OUTGROWN || then > now * OUTGROWN
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use quickbeam::Options;

    use crate::api::SqlDatabase;
    use crate::session::prepared_statement::PreparedStatement;

    /// About how many rows of the first table a statement was planned for; none if that does not
    /// matter.
    fn planned_rows(statement: &PreparedStatement) -> Option<f64> {
        let planned = statement.prepared.as_ref().unwrap().planned_for.as_ref()?;
        planned.tables.first().map(|(_, rows)| *rows)
    }

    #[test]
    fn a_copy_is_planned_for_the_tables_of_its_query() {
        let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
        let connection = &database.connect();
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)", &[]).unwrap();
        let copy = "COPY (SELECT count(*) FROM t WHERE b = 3) TO STDOUT WITH (FORMAT csv)";
        let copy = connection.prepare(copy).unwrap().into_prepared();
        assert!(planned_rows(&copy).is_some());
    }

    /// Key/value databases are distinct, though none has a number.
    #[test]
    fn a_statement_is_planned_for_each_of_its_tables() {
        let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
        for name in ["kv_a", "kv_b"] {
            database.environment().create_database(name).unwrap();
        }
        let connection = &database.connect();
        let mut both = connection
            .prepare("SELECT count(*) FROM kv_a a, kv_a c, kv_b b")
            .unwrap()
            .into_prepared();
        both.query(connection, &[]).unwrap().collect().unwrap();
        let planned = both.prepared.as_ref().unwrap().planned_for.as_ref().unwrap();
        assert_eq!(planned.tables.len(), 2);
    }

    #[test]
    fn statement_is_planned_again_when_its_tables_grow_or_shrink() {
        let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
        let connection = &database.connect();
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)", &[]).unwrap();
        let mut all =
            connection.prepare("SELECT count(*) FROM t WHERE b = 3").unwrap().into_prepared();
        let mut one = connection.prepare("SELECT b FROM t WHERE a = 3").unwrap().into_prepared();
        let mut run = |connection: &crate::Connection, times: usize| {
            for _ in 0..times {
                for statement in [&mut all, &mut one] {
                    statement.query(connection, &[]).unwrap().collect().unwrap();
                }
            }
            assert_eq!(planned_rows(&one), None);
            planned_rows(&all).unwrap()
        };
        assert!(run(connection, 1) < 10.0);
        let rows: Vec<String> = (0..20_000).map(|n| format!("({n}, {n})")).collect();
        connection.execute(&format!("INSERT INTO t VALUES {}", rows.join(", ")), &[]).unwrap();
        // It is looked at the second time.
        let grown = run(connection, 1);
        assert!((10_000.0..40_000.0).contains(&grown), "{grown}");
        connection.execute("DELETE FROM t WHERE a > 2000", &[]).unwrap();
        // And when 64 more were.
        let shrunk = run(connection, 70);
        assert!(shrunk < 5_000.0, "{shrunk}");
        assert!((shrunk - run(connection, 70)).abs() < 1e-9);
    }
}
