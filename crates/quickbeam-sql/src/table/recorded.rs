//! Changes that a statement finds first and makes at its end: those of a statement whose WITH
//! changes rows.
//!
//! Above: the executor. Below: [`TableWriter`], which makes the changes.
//!
//! - RECORD-1: a writer that records changes nothing, so all parts of a statement read the same
//!   rows.
//! - RECORD-2: a statement changes a stored row once. A part that finds a row that another part
//!   changes leaves it.

use std::sync::Arc;

use quickbeam::invariant;

use super::change_record::{RecordedChange, UniqueKey};
use super::table_writer::{KeyConflict, TableWriter, check_not_null};
use crate::error::Result;
use crate::handle::EntryForm;
use crate::handle::table_handle::TableHandle;
use crate::schema::encoding::row_format::StoredRow;

impl TableWriter<'_> {
    /// Begins to record the changes of a part of the statement instead of making them.
    pub fn record_part(&mut self, part: usize) {
        self.record.get_or_insert_default().part = part;
    }

    /// Makes the recorded changes, part by part in this order.
    pub fn make_recorded(&mut self, order: &[usize]) -> Result<()> {
        let Some(record) = self.record.take() else { return Ok(()) };
        let changes_row = |change: &RecordedChange| {
            matches!(change, RecordedChange::Update { .. } | RecordedChange::Delete { .. })
        };
        let changed = record.changes.iter().filter(|(_, change)| changes_row(change)).count();
        let rows = record.rows.len();
        invariant!(RECORD_2, changed == rows, "{changed} changes of {rows} rows");
        // A row may refer to one that a later part inserts.
        self.parents_may_follow = true;
        let mut ends = Vec::new();
        for part in order {
            let mut is_made = false;
            for (_, change) in record.changes.iter().filter(|(of, _)| of == part) {
                match change {
                    RecordedChange::Statement(triggers, table) => ends.push((triggers, table)),
                    change => is_made = self.make(change, is_made)?,
                }
            }
        }
        for (triggers, table) in ends {
            self.end_triggers(Some(triggers), table);
        }
        Ok(())
    }

    /// Makes a recorded change and returns whether it did. `was_made`: the one before it was made.
    fn make(&mut self, change: &RecordedChange, was_made: bool) -> Result<bool> {
        match change {
            RecordedChange::Insert(handle, row) => self.insert(handle, row).map(|()| true),
            RecordedChange::Update { handle, key, old, new, changed } => Ok(self
                .is_stored(handle, key, old)?
                && self.update(handle, key, old, new, changed)?),
            RecordedChange::Delete { handle, key, old } => {
                Ok(self.is_stored(handle, key, old)? && self.delete(handle, key, old)?)
            }
            RecordedChange::Row(event) => {
                if was_made {
                    self.triggers.push_row(event.clone());
                }
                Ok(was_made)
            }
            RecordedChange::Statement(..) => Ok(was_made),
        }
    }

    /// Whether a row is still what it was when its change was recorded. A foreign key's action may
    /// have changed it since.
    pub(super) fn is_stored(&self, handle: &TableHandle, key: &[u8], row: &[u8]) -> Result<bool> {
        let mut found = Vec::new();
        Ok(handle.database().get_into(self.transaction, key, &mut found)?
            && found[..] == *handle.stored(row)?)
    }

    /// Records an INSERT.
    pub(super) fn record_insert(&mut self, handle: &Arc<TableHandle>, bytes: &[u8]) -> Result<()> {
        let row = StoredRow::new(handle.table(), bytes)?;
        check_not_null(handle.table(), row)?;
        let keys = unique_keys(handle, row)?;
        if let Some(record) = &mut self.record {
            record.inserted.extend(keys);
            record.push(RecordedChange::Insert(handle.clone(), bytes.to_vec()));
        }
        Ok(())
    }

    /// Records an INSERT, unless a stored row or one that is inserted has one of its keys.
    pub(super) fn record_unless_conflict(
        &mut self,
        handle: &Arc<TableHandle>,
        bytes: &[u8],
    ) -> Result<Option<KeyConflict>> {
        let row = StoredRow::new(handle.table(), bytes)?;
        check_not_null(handle.table(), row)?;
        for key in unique_keys(handle, row)? {
            let index = key.1;
            if self.record.as_ref().is_some_and(|record| record.inserted.contains(&key)) {
                return Ok(Some(KeyConflict { index, row_key: Vec::new() }));
            }
            let Some(found) = self.conflict_in(handle, index, bytes)? else { continue };
            let row = (handle.table().id, found.row_key.clone());
            if !self.record.as_ref().is_some_and(|record| record.deleted.contains(&row)) {
                return Ok(Some(found));
            }
        }
        self.record_insert(handle, bytes)?;
        Ok(None)
    }

    /// Records an UPDATE. Returns false if the statement changes the row already.
    pub(super) fn record_update(
        &mut self,
        handle: &Arc<TableHandle>,
        (key, old): (&[u8], &[u8]),
        new: &[u8],
        changed: &[usize],
    ) -> bool {
        let Some(record) = &mut self.record else { return false };
        if !record.rows.insert((handle.table().id, key.to_vec())) {
            return false;
        }
        record.push(RecordedChange::Update {
            handle: handle.clone(),
            key: key.to_vec(),
            old: old.to_vec(),
            new: new.to_vec(),
            changed: changed.to_vec(),
        });
        true
    }

    /// Whether the statement changes that stored row, by a recorded change. A row that it inserts
    /// has no key yet.
    pub fn changes(&self, handle: &TableHandle, key: &[u8]) -> bool {
        self.record.as_ref().is_some_and(|record| {
            key.is_empty() || record.rows.contains(&(handle.table().id, key.to_vec()))
        })
    }

    /// Records a DELETE. Returns false if the statement changes the row already.
    pub(super) fn record_delete(
        &mut self,
        handle: &Arc<TableHandle>,
        key: &[u8],
        old: &[u8],
    ) -> bool {
        let Some(record) = &mut self.record else { return false };
        let row = (handle.table().id, key.to_vec());
        if !record.rows.insert(row.clone()) {
            return false;
        }
        record.deleted.insert(row);
        let (handle, key, old) = (handle.clone(), key.to_vec(), old.to_vec());
        record.push(RecordedChange::Delete { handle, key, old });
        true
    }
}

/// Returns the unique keys of a row.
fn unique_keys(handle: &TableHandle, row: StoredRow<'_>) -> Result<Vec<UniqueKey>> {
    let id = handle.table().id;
    let mut keys = Vec::new();
    if !handle.key().parts.is_empty() {
        let mut key = Vec::new();
        handle.key().encode_with(&mut key, |position| row.get(position))?;
        keys.push((id, None, key));
    }
    for (number, index) in handle.indexes().iter().enumerate() {
        let mut key = Vec::new();
        if index.encode_entry(row, &[], &mut key)? == EntryForm::Unique {
            keys.push((id, Some(number), key));
        }
    }
    Ok(keys)
}
