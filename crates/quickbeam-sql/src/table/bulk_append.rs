//! Bulk insert of rows that are each one record after the last key: no primary key, no index, no
//! foreign key.

use std::sync::Arc;

use super::table_writer::{TableWriter, check_not_null};
use crate::error::Result;
use crate::handle::table_handle::TableHandle;
use crate::schema::encoding::row_format::StoredRow;

impl TableHandle {
    /// Whether [`TableWriter::insert_many`] may be used.
    #[must_use]
    pub fn takes_many(&self) -> bool {
        let table = self.table();
        self.key().parts.is_empty()
            && self.indexes().is_empty()
            && table.foreign_keys.is_empty()
            && !table.is_database()
    }
}

impl TableWriter<'_> {
    /// Inserts encoded rows, stored consecutively in `bytes`; `ends` has the end of each.
    pub fn insert_many(
        &mut self,
        handle: &Arc<TableHandle>,
        bytes: &[u8],
        ends: &[usize],
    ) -> Result<()> {
        if self.record.is_some() {
            let mut start = 0;
            for &end in ends {
                self.insert(handle, bytes.get(start..end).unwrap_or_default())?;
                start = end;
            }
            return Ok(());
        }
        let table = handle.table();
        if let [_] = ends {
            // One row needs no lists.
            check_not_null(table, StoredRow::new(table, bytes)?)?;
            let (ids, environment) = (self.catalog.row_ids(), self.catalog.environment());
            let key = ids.next_of(environment, self.transaction, handle, 1)?.to_be_bytes();
            if handle.database().append(self.transaction, &[(&key, bytes)])? == 0 {
                self.insert(handle, bytes)?;
            }
            return Ok(());
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let rows: Vec<&[u8]> = starts
            .zip(ends)
            .map(|(start, end)| bytes.get(start..*end).unwrap_or_default())
            .collect();
        if table.columns.iter().any(|column| column.not_null) {
            for row in &rows {
                check_not_null(table, StoredRow::new(table, row)?)?;
            }
        }
        let (ids, environment) = (self.catalog.row_ids(), self.catalog.environment());
        let first = ids.next_of(environment, self.transaction, handle, rows.len() as u64)?;
        let keys: Vec<[u8; 8]> =
            (first..).take(rows.len()).map(|id: u64| id.to_be_bytes()).collect();
        let records: Vec<(&[u8], &[u8])> =
            keys.iter().zip(&rows).map(|(key, row)| (&key[..], *row)).collect();
        let done = handle.database().append(self.transaction, &records)?;
        // Another catalog of the environment has given out one of these row ids: one by one others
        // are found.
        for row in &rows[done..] {
            self.insert(handle, row)?;
        }
        Ok(())
    }
}
