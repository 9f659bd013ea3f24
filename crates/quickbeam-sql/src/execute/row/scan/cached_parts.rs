//! Scans that pass over leaves whose columns are in the column cache.
//!
//! Above: vectorized sources. Below: the scan of the table's tree, and the column cache.

use std::ops::Bound;
use std::sync::Arc;

use quickbeam::query_layer::{DatabaseExt, IntRange, LeafVersions, Scan};

use super::super::Context;
use super::{ScanMethod, ScanState, TableScan};
use crate::error::Result;
use crate::handle::column_cache::{TableColumns, TablePart};

impl TableScan {
    /// Returns what the column cache has of the table, if the scan reads all rows in the order of
    /// their keys. The scan then stops at each leaf.
    pub fn cached_columns(
        &mut self,
        columns: impl Iterator<Item = usize>,
        context: &Context<'_>,
    ) -> Option<Arc<TableColumns>> {
        let reads_all = matches!(self.method, ScanMethod::Rows(None))
            && !self.is_database
            && !self.is_limited()
            && self.scan.position().is_some()
            && self.handle.database().access_method().is_ordered();
        if !reads_all {
            return None;
        }
        let columns = context.catalog.column_cache.table(self.handle.table(), columns)?;
        self.scan.stop_at_each_leaf();
        Some(columns)
    }

    /// Returns the key at which the scan goes on, and whether it does.
    pub fn position(&self) -> Option<&[u8]> {
        if self.state == ScanState::Done { None } else { self.scan.position() }
    }

    /// Moves beyond the leaves of a part, if they are unchanged. Returns whether they are.
    pub fn skip(&mut self, part: &TablePart, context: &Context<'_>) -> Result<bool> {
        let database = self.handle.database();
        Ok(database.skip_unchanged(context.transaction, &mut self.scan, &part.leaves)?)
    }

    /// Returns whether the leaves of a part are unchanged.
    pub fn is_unchanged(&self, part: &TablePart, context: &Context<'_>) -> Result<bool> {
        Ok(self.handle.database().are_unchanged(context.transaction, &part.leaves)?)
    }

    /// Begins to note leaves at the next one. Returns whether that is possible.
    pub fn begin_leaves(&self, leaves: &mut LeafVersions) -> bool {
        self.state != ScanState::Done && leaves.begin(&self.scan)
    }

    /// Notes the leaf that was just read. Returns false if it was not read whole.
    pub fn note_leaf(&self, leaves: &mut LeafVersions, context: &Context<'_>) -> bool {
        let slot = context.slots.get(self.slot);
        slot.is_some_and(|slot| leaves.add(&self.scan, &slot.batch))
    }

    /// Reads all rows, also those that the filter rejects, as long as `is_on`.
    pub fn read_all(&mut self, is_on: bool) {
        self.scan.read_all(is_on);
    }

    /// Goes back to the beginning of a part, to read all its rows. Returns where the scan stood.
    pub fn go_back(&mut self, part: &TablePart) -> Scan {
        let rest = self.scan.clone();
        self.scan.restart(Bound::Included(part.leaves.low()), Bound::Unbounded);
        self.scan.read_all(true);
        rest
    }

    /// Goes on where the scan stood.
    pub fn go_on(&mut self, rest: Scan) {
        self.scan = rest;
    }

    /// Goes on row by row after the last leaf that was read or passed over.
    pub fn go_on_by_rows(&mut self, context: &Context<'_>) {
        self.scan.project_records();
        self.next = context.slots.get(self.slot).map_or(0, |slot| slot.batch.len());
        self.is_selected = false;
    }

    /// Returns the columns and ranges that a join above asks for.
    pub fn key_ranges(&self) -> &[(usize, IntRange)] {
        &self.key_ranges
    }
}
