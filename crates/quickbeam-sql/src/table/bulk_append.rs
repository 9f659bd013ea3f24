//! Bulk insert of rows that are each one record: no index beside the primary key, no foreign key.
//!
//! Rows without a primary key come after the last one. Of the others, those with ascending keys
//! are appended run by run, which costs a search for each leaf instead of one for each row.

use std::sync::Arc;

use super::table_writer::{TableWriter, check_not_null, duplicate};
use crate::error::{Result, SqlError};
use crate::handle::table_handle::TableHandle;
use crate::schema::encoding::row_format::StoredRow;

/// Bytes of a batch that is full.
const FULL: usize = 256 << 10;

/// Encoded rows that are inserted together.
#[derive(Debug, Default)]
pub struct RowBatch {
    /// The rows in order. The last one may not have ended.
    pub bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The row of a batch that was not inserted.
#[derive(Debug)]
pub struct RowFailure {
    /// Its place in the batch.
    pub row: usize,
    /// Why it was not inserted.
    pub error: SqlError,
}

impl RowBatch {
    /// Ends the row that was appended to `bytes`. Returns its length.
    pub fn end_row(&mut self) -> usize {
        let start = self.ends.last().copied().unwrap_or_default();
        self.ends.push(self.bytes.len());
        self.bytes.len() - start
    }

    /// Whether the rows should be inserted before others are added.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Removes the rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let row = |(start, end): (usize, &usize)| self.bytes.get(start..*end).unwrap_or_default();
        starts.zip(&self.ends).map(row)
    }
}

impl TableHandle {
    /// Whether [`TableWriter::insert_many`] may be used.
    #[must_use]
    pub fn takes_many(&self) -> bool {
        let table = self.table();
        self.indexes().is_empty() && table.foreign_keys.is_empty() && !table.is_database()
    }
}

impl TableWriter<'_> {
    /// Inserts the rows of a batch.
    pub fn insert_many(
        &mut self,
        handle: &Arc<TableHandle>,
        batch: &RowBatch,
    ) -> std::result::Result<(), RowFailure> {
        if self.record.is_some() {
            return self.insert_in_turn(handle, batch.rows(), 0);
        }
        let (table, has_key) = (handle.table(), !handle.key().parts.is_empty());
        if !has_key && let [_] = batch.ends[..] {
            return self
                .append_row(handle, &batch.bytes)
                .map_err(|error| RowFailure { row: 0, error });
        }
        let rows: Vec<&[u8]> = batch.rows().collect();
        if rows.is_empty() {
            return Ok(());
        }
        if table.columns.iter().any(|column| column.not_null) {
            for (number, row) in rows.iter().enumerate() {
                StoredRow::new(table, row)
                    .and_then(|row| check_not_null(table, row))
                    .map_err(|error| RowFailure { row: number, error })?;
            }
        }
        if has_key { self.append_keyed(handle, &rows) } else { self.append_last(handle, &rows) }
    }

    /// Inserts rows one by one. The first has that place in its batch.
    fn insert_in_turn<'r>(
        &mut self,
        handle: &Arc<TableHandle>,
        rows: impl Iterator<Item = &'r [u8]>,
        first: usize,
    ) -> std::result::Result<(), RowFailure> {
        for (number, row) in rows.enumerate() {
            let inserted = self.insert(handle, row);
            inserted.map_err(|error| RowFailure { row: first + number, error })?;
        }
        Ok(())
    }

    /// Appends a row without a key: it needs no lists.
    fn append_row(&mut self, handle: &Arc<TableHandle>, row: &[u8]) -> Result<()> {
        let table = handle.table();
        check_not_null(table, StoredRow::new(table, row)?)?;
        let (ids, environment) = (self.catalog.row_ids(), self.catalog.environment());
        let key = ids.next_of(environment, self.transaction, handle, 1)?.to_be_bytes();
        if handle.database().append(self.transaction, &[(&key, row)])? == 0 {
            self.insert(handle, row)?;
        }
        Ok(())
    }

    /// Appends rows without a key.
    fn append_last(
        &mut self,
        handle: &Arc<TableHandle>,
        rows: &[&[u8]],
    ) -> std::result::Result<(), RowFailure> {
        let at_first = |error| RowFailure { row: 0, error };
        let (ids, environment) = (self.catalog.row_ids(), self.catalog.environment());
        let first = ids
            .next_of(environment, self.transaction, handle, rows.len() as u64)
            .map_err(at_first)?;
        let keys: Vec<[u8; 8]> =
            (first..).take(rows.len()).map(|id: u64| id.to_be_bytes()).collect();
        let records: Vec<(&[u8], &[u8])> =
            keys.iter().zip(rows).map(|(key, row)| (&key[..], *row)).collect();
        let done = handle.database().append(self.transaction, &records);
        let done = done.map_err(|error| at_first(error.into()))?;
        // Another catalog of the environment has given out one of these row ids: one by one others
        // are found.
        self.insert_in_turn(handle, rows.iter().skip(done).copied(), done)
    }

    /// Inserts rows by their keys. Runs of ascending keys are appended.
    fn append_keyed(
        &mut self,
        handle: &Arc<TableHandle>,
        rows: &[&[u8]],
    ) -> std::result::Result<(), RowFailure> {
        let (mut keys, mut ends) = (Vec::new(), Vec::with_capacity(rows.len()));
        for (number, bytes) in rows.iter().enumerate() {
            StoredRow::new(handle.table(), bytes)
                .and_then(|row| handle.key().encode_with(&mut keys, |position| row.get(position)))
                .map_err(|error| RowFailure { row: number, error })?;
            ends.push(keys.len());
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let key = |(start, end): (usize, &usize)| keys.get(start..*end).unwrap_or_default();
        let records: Vec<(&[u8], &[u8])> =
            starts.zip(&ends).map(key).zip(rows.iter().copied()).collect();
        let mut rest = &records[..];
        while !rest.is_empty() {
            let first = records.len() - rest.len();
            let ascends = |pair: &&[(&[u8], &[u8])]| matches!(pair, [(a, _), (b, _)] if a < b);
            let length = 1 + rest.windows(2).take_while(ascends).count();
            let (run, after) = rest.split_at(length);
            let done = handle
                .database()
                .append(self.transaction, run)
                .map_err(|error| RowFailure { row: first, error: error.into() })?;
            if let Some((_, row)) = run.get(done) {
                let error = duplicate(handle, None, row);
                return Err(RowFailure { row: first + done, error });
            }
            rest = after;
        }
        Ok(())
    }
}
