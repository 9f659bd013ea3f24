//! Scans that take columns from the column cache, and fill it.
//!
//! Above: the source of a vectorized step. Below: the scan, and the parts of its table in the
//! cache. At each place in the order of the keys the scan either takes a part, decodes one, or
//! reads leaves as it does without a cache and notes them ([`CacheStep`]).

use std::sync::Arc;

use arrow_array::{BooleanArray, Int64Array};
use quickbeam::query_layer::{IntRange, LeafVersions};

use super::super::row::{Context, TableScan};
use super::column::Vector;
use super::source::{ColumnBatch, ScannedColumn};
use crate::error::{Result, SqlError};
use crate::handle::column_cache::{TableColumns, TablePart};

/// Rows of a part, about.
const ROWS: usize = 4096;
/// The most leaves of a part.
const MOST_LEAVES: usize = 256;

/// What a scan does where it stands.
#[derive(Debug)]
pub enum CacheStep {
    /// It takes these columns, of all rows of the leaves that it has passed over.
    Taken(ColumnBatch, Arc<TablePart>),
    /// It decodes all rows of these leaves.
    Decoded(Arc<TablePart>),
    /// It reads leaves.
    Read,
}

/// The part of the column cache that a scan uses.
#[derive(Debug)]
pub struct CachedColumns {
    columns: Arc<TableColumns>,
    /// The leaves that were read since the last part.
    noted: LeafVersions,
    is_noting: bool,
    /// Leaves still to be read of a part that is not decoded yet.
    passing: usize,
}

impl CachedColumns {
    pub fn new(columns: Arc<TableColumns>) -> CachedColumns {
        CachedColumns { columns, noted: LeafVersions::default(), is_noting: false, passing: 0 }
    }

    /// The same columns, for the scan of a worker.
    pub fn fork(&self) -> CachedColumns {
        CachedColumns::new(self.columns.clone())
    }

    /// Returns a key near this one at which no part is cut.
    pub fn cut(&self, key: Vec<u8>) -> Vec<u8> {
        self.columns.cut(&key).unwrap_or(key)
    }

    /// Decides what the scan does next.
    pub fn place(
        &mut self,
        scan: &mut TableScan,
        wanted: &[ScannedColumn],
        context: &Context<'_>,
    ) -> Result<CacheStep> {
        let Some(part) = scan.position().and_then(|low| self.columns.part(low)) else {
            return Ok(CacheStep::Read);
        };
        self.end_noting(context);
        if let Some(batch) = batch_of(&part, wanted)? {
            if scan.skip(&part, context)? {
                return Ok(CacheStep::Taken(batch, part));
            }
        } else if scan.is_unchanged(&part, context)? {
            if part.is_due() {
                return Ok(CacheStep::Decoded(part));
            }
            self.passing = part.leaves.len();
            return Ok(CacheStep::Read);
        }
        self.columns.forget(part.leaves.low());
        Ok(CacheStep::Read)
    }

    /// Returns whether the scan is to stop before the next leaf, because a part begins there.
    pub fn stops(&self, scan: &TableScan) -> bool {
        self.passing == 0 && scan.position().is_some_and(|low| self.columns.has_part(low))
    }

    /// Begins to note leaves, if the scan stands between leaves and is not noting.
    pub fn begin_noting(&mut self, scan: &TableScan) {
        if !self.is_noting && self.passing == 0 && !self.stops(scan) {
            self.is_noting = scan.begin_leaves(&mut self.noted);
        }
    }

    /// Notes the leaf that was just read.
    pub fn note(&mut self, scan: &TableScan, context: &Context<'_>) {
        self.passing = self.passing.saturating_sub(1);
        if !self.is_noting {
            return;
        }
        // A worker's scan may begin or end within a leaf.
        let is_whole = scan.note_leaf(&mut self.noted, context);
        if !is_whole || self.noted.records() >= ROWS || self.noted.len() >= MOST_LEAVES {
            self.end_noting(context);
        }
    }

    /// Puts the noted leaves into the cache.
    pub fn end_noting(&mut self, context: &Context<'_>) {
        self.passing = 0;
        if std::mem::take(&mut self.is_noting) && !self.noted.is_empty() {
            let part = TablePart::noted(std::mem::take(&mut self.noted));
            context.catalog.column_cache.keep(&self.columns, part);
        }
    }

    /// Puts decoded columns into the cache. If the rows are not the same for all transactions, the
    /// leaves are decoded again some scans later.
    pub fn keep(
        &self,
        known: &TablePart,
        (leaves, is_settled): (LeafVersions, bool),
        (batch, wanted): (&ColumnBatch, &[ScannedColumn]),
        context: &Context<'_>,
    ) {
        if leaves.is_empty() {
            return self.columns.forget(known.leaves.low());
        }
        let part = if is_settled {
            let positions = wanted.iter().map(ScannedColumn::position);
            let arrays = batch.vectors.iter().map(Vector::to_array);
            TablePart::decoded(leaves, batch.rows, positions.zip(arrays).collect(), known)
        } else {
            known.postponed(leaves)
        };
        context.catalog.column_cache.keep(&self.columns, part);
    }
}

/// Returns the wanted columns of a part, if it has all of them.
fn batch_of(part: &TablePart, wanted: &[ScannedColumn]) -> Result<Option<ColumnBatch>> {
    let Some(rows) = part.rows else { return Ok(None) };
    let mut vectors = Vec::with_capacity(wanted.len());
    for column in wanted {
        let Some(array) = part.column(column.position()) else { return Ok(None) };
        vectors.push(Vector::of(&**array)?);
    }
    Ok(Some(ColumnBatch { rows, vectors }))
}

/// Returns which rows have integers in the ranges that a join asks for; `None` if all have, or it
/// is not known.
pub fn in_key_ranges(
    batch: &ColumnBatch,
    wanted: &[ScannedColumn],
    ranges: &[(usize, IntRange)],
) -> Result<Option<BooleanArray>> {
    let mut found: Option<BooleanArray> = None;
    for (position, range) in ranges {
        let nth = wanted.iter().position(|column| column.position() == *position);
        let Some(Vector::Numbers(array)) = nth.and_then(|nth| batch.vectors.get(nth)) else {
            continue;
        };
        // NULL stands as 0, as it does in rows. A join that asks for keys drops it in any case.
        let numbers = Int64Array::new(array.values().clone(), None);
        let holds = BooleanArray::from_unary(&numbers, |number| range.holds(number));
        found = Some(match found {
            None => holds,
            Some(other) => arrow_arith::boolean::and(&other, &holds)
                .map_err(|_| SqlError::internal("conditions of batches of other lengths"))?,
        });
    }
    Ok(found)
}
