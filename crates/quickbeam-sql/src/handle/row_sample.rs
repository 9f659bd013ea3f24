//! Samples of a table's rows, from which the planner judges conditions and distinct values.
//!
//! Above: the planner's statistics. Below: the engine's estimates and scans. A sample is taken when
//! a join of the table is first planned, and again when the number of its rows has changed by half.
//!
//! - SAMPLE-1: a sample is read in a snapshot of its own. It neither locks rows nor takes part in
//!   the conflicts of the transaction that plans (by type)

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{Database, Snapshot};

use crate::schema::Table;
use crate::schema::encoding::row_format::StoredRow;
use crate::types::Value;

/// Places in the order of the keys, and rows read at each.
const PLACES: usize = 512;
const ROWS_AT_PLACE: usize = 2;
/// Factor by which the number of rows grows or shrinks before a sample is taken again.
const CHANGED: f64 = 1.5;

/// Some rows of a table.
#[derive(Debug, Default)]
pub struct RowSample {
    /// About how many rows the table had.
    table_rows: f64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Distinct values by column.
    distinct: Mutex<HashMap<usize, Option<f64>>>,
}

/// The newest sample of a table.
#[derive(Debug, Default)]
pub struct NewestSample(Mutex<Option<Arc<RowSample>>>);

impl RowSample {
    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// Returns the number of rows in the sample.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the encoded rows.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }

    /// Estimates the number of distinct values of a column, by the estimator of P. J. Haas and L.
    /// Stokes, "Estimating the Number of Classes in a Finite Population" (1998), formula Duj1.
    pub fn distinct(&self, table: &Table, column: usize) -> Option<f64> {
        let known = self.distinct.lock().get(&column).copied();
        known.unwrap_or_else(|| {
            let found = self.count_distinct(table, column);
            self.distinct.lock().insert(column, found);
            found
        })
    }

    fn count_distinct(&self, table: &Table, column: usize) -> Option<f64> {
        let mut seen: HashMap<Value, usize> = HashMap::new();
        for row in self.rows() {
            let value = StoredRow::new(table, row).ok()?.get(column).ok()?.to_value();
            if !value.is_null() {
                *seen.entry(value).or_default() += 1;
            }
        }
        let rows = self.len() as f64;
        let (distinct, once) =
            (seen.len() as f64, seen.values().filter(|count| **count == 1).count() as f64);
        let all = self.table_rows.max(rows);
        let estimate = rows * distinct / (rows - once + once * rows / all).max(1.0);
        (distinct > 0.0).then(|| estimate.clamp(distinct, all))
    }
}

impl NewestSample {
    /// Returns a sample of a table with about that number of rows. Returns `None` if there are
    /// none, or they cannot be read now.
    pub fn get(
        &self,
        tree: &Database,
        rows: f64,
        snapshot: impl FnOnce() -> Option<Snapshot>,
    ) -> Option<Arc<RowSample>> {
        let known = self.0.lock().clone();
        if let Some(known) = known
            && rows < known.table_rows * CHANGED
            && known.table_rows < rows * CHANGED
        {
            return Some(known);
        }
        let sample = Arc::new(RowSample::take(tree, rows, &snapshot()?)?);
        *self.0.lock() = Some(sample.clone());
        Some(sample)
    }
}

impl RowSample {
    fn take(tree: &Database, rows: f64, snapshot: &Snapshot) -> Option<RowSample> {
        let mut sample = RowSample { table_rows: rows.max(1.0), ..RowSample::default() };
        let mut batch = ScanBatch::default();
        let is_small = rows <= (PLACES * ROWS_AT_PLACE) as f64;
        let ways = match is_small {
            true => 1,
            false => PLACES,
        };
        let most = if is_small { PLACES * ROWS_AT_PLACE * 2 } else { ROWS_AT_PLACE };
        for number in 0..ways {
            let key = match is_small {
                true => None,
                false => {
                    let way = (number as f64 + 0.5) / ways as f64;
                    Some(tree.sample_key(snapshot, way).ok()??)
                }
            };
            let low = key.as_deref().map_or(Bound::Unbounded, Bound::Included);
            let mut scan = Scan::new(low, Bound::Unbounded).without_keys().record_limit(most);
            let mut taken = 0;
            while taken < most && tree.scan(snapshot, &mut scan, &mut batch).ok()? {
                for record in (0..batch.len()).take(most - taken) {
                    sample.push(batch.value(record));
                    taken += 1;
                }
            }
        }
        (sample.len() > 0).then_some(sample)
    }
}
