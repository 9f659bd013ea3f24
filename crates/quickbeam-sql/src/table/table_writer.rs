//! Changing rows, with everything that goes with them: NOT NULL, keys, indexes, foreign keys.
//!
//! Above: the executor, which evaluates DEFAULT and CHECK of the rows it makes and says what
//! becomes of a row. Below: the trees.
//!
//! - STMT-1: a statement that fails leaves no changes, once [`TableWriter::rollback`] was called.
//! - STMT-2: the reads that a constraint relies on (a referenced row exists, no row refers) must
//!   still hold at commit, under every isolation level, by
//!   [`track_reads`](quickbeam::query_layer::TransactionExt::track_reads).

use std::cell::Cell;
use std::sync::Arc;

use quickbeam::query_layer::TransactionExt;
use quickbeam::{CHECKS_INVARIANTS, Savepoint, Transaction, invariant};

use super::change_record::ChangeRecord;
use super::foreign_keys::ConstraintWork;
use super::transaction_state::MovedRows;
use super::transaction_state::deferred_checks::{DeferredChecks, DeferredMark};
use super::trigger_queue::TriggerQueue;
use super::violations::null_violation;
use crate::catalog::{Catalog, CatalogSnapshot, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::handle::table_handle::{IndexHandle, TableHandle};
use crate::handle::{EntryForm, describe};
use crate::schema::encoding::row_format::StoredRow;
use crate::types::{Value, ValueRef};

/// What only the upper half can evaluate, for rows that change because other rows did.
pub trait Expressions {
    /// Whether the row keeps to the table's CHECK constraint of that place; NULL counts as keeping
    /// to it.
    fn check(&self, table: &Table, check: usize, row: StoredRow<'_>) -> Result<Option<bool>>;

    /// Checks a row's values in these columns against the domains of the columns.
    fn check_domains(&self, table: &Table, changed: &[usize], row: StoredRow<'_>) -> Result<()>;

    /// The values of the generated columns that a change of these columns changes.
    fn generated(
        &self,
        table: &Table,
        changed: &[usize],
        row: StoredRow<'_>,
    ) -> Result<Vec<(usize, Value)>>;

    /// The value of the column's DEFAULT, of the column's type; NULL if it has none.
    fn default(&self, table: &Table, column: usize) -> Result<Value>;
}

/// A key that is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyConflict {
    /// Which of the table's indexes; `None`: the primary key.
    pub index: Option<usize>,
    /// The key of the row that has it.
    pub row_key: Vec<u8>,
}

/// The changes that one statement makes.
pub struct TableWriter<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) transaction: &'a Transaction,
    pub(super) snapshot: &'a Arc<CatalogSnapshot>,
    pub(super) expressions: &'a dyn Expressions,
    savepoint: Option<Savepoint>,
    /// The changes of the transaction before the statement, where invariants are checked.
    changes_before: Option<usize>,
    pub(super) deferred: Option<&'a DeferredChecks>,
    /// What was deferred before the statement.
    deferred_before: DeferredMark,
    /// Where moved and removed rows are noted, while there are cursors.
    moved: Option<&'a MovedRows>,
    /// What was noted there before the statement.
    moved_before: u64,
    key: Vec<u8>,
    entry: Vec<u8>,
    old_entry: Vec<u8>,
    value: Vec<u8>,
    /// What constraints leave to be done; `None` until one does.
    pub(super) constraint_work: Option<Box<ConstraintWork>>,
    /// The changes that are made later, if they are recorded.
    pub(super) record: Option<Box<ChangeRecord>>,
    /// Whether a row may come before the row of another table that it refers to.
    pub(super) parents_may_follow: bool,
    /// Whether foreign keys are not checked and nothing follows them.
    pub(super) is_replica: bool,
    pub(super) triggers: TriggerQueue<'a>,
    /// Counts changed rows, where invariants are checked.
    made: usize,
    /// Counts reads that are validated at commit, where invariants are checked.
    pub(super) tracked: Cell<usize>,
}

/// Whether a NULL stands where none may.
pub(crate) fn check_not_null(table: &Table, row: StoredRow<'_>) -> Result<()> {
    for (position, column) in table.columns.iter().enumerate() {
        if column.not_null && row.is_null(position) {
            return Err(null_violation(table, position, row));
        }
    }
    Ok(())
}

/// Whether a NULL stands where none may, in the columns that changed.
pub(super) fn check_changed(table: &Table, row: StoredRow<'_>, changed: &[usize]) -> Result<()> {
    for &position in changed {
        if table.columns.get(position).is_some_and(|column| column.not_null)
            && row.is_null(position)
        {
            return Err(null_violation(table, position, row));
        }
    }
    Ok(())
}

impl<'a> TableWriter<'a> {
    /// Begins a statement's changes.
    pub fn new(
        catalog: &'a Catalog,
        transaction: &'a Transaction,
        snapshot: &'a Arc<CatalogSnapshot>,
        expressions: &'a dyn Expressions,
    ) -> TableWriter<'a> {
        TableWriter {
            catalog,
            transaction,
            snapshot,
            expressions,
            savepoint: None,
            changes_before: CHECKS_INVARIANTS.then(|| transaction.change_count()),
            deferred: None,
            deferred_before: DeferredMark::default(),
            moved: None,
            moved_before: 0,
            key: Vec::new(),
            entry: Vec::new(),
            old_entry: Vec::new(),
            value: Vec::new(),
            constraint_work: None,
            record: None,
            parents_may_follow: false,
            is_replica: false,
            triggers: TriggerQueue::default(),
            made: 0,
            tracked: Cell::new(0),
        }
    }

    /// Sets a savepoint before the first change, so that the transaction can go on without a
    /// statement that fails half-way.
    pub fn set_savepoint(&mut self) -> Result<()> {
        self.savepoint = Some(self.transaction.savepoint()?);
        Ok(())
    }

    /// Defers the checks of deferred constraints to these.
    pub fn set_deferred(&mut self, deferred: Option<&'a DeferredChecks>) {
        self.deferred = deferred;
        self.deferred_before = deferred.map(DeferredChecks::mark).unwrap_or_default();
    }

    /// Notes moved and removed rows there, for cursors.
    pub fn set_moved(&mut self, moved: Option<&'a MovedRows>) {
        self.moved = moved;
        self.moved_before = moved.map_or(0, MovedRows::mark);
    }

    /// Ends it: fires AFTER triggers, and makes sure of what has to hold at its end. On an error,
    /// roll back.
    pub fn finish(&mut self) -> Result<()> {
        self.check_missing()?;
        if self.has_queued() {
            self.fire_queued()?;
        }
        self.check_pending()?;
        invariant!(TRIGGER_1, !self.has_queued(), "an event that waits");
        Ok(())
    }

    /// Undoes everything it did, if it has a [savepoint](Self::set_savepoint).
    pub fn rollback(&mut self) -> Result<()> {
        self.constraint_work = None;
        self.triggers.clear();
        self.record = None;
        if let Some(deferred) = self.deferred {
            deferred.rollback_to(self.deferred_before);
        }
        if let Some(moved) = self.moved {
            moved.rollback_to(self.moved_before);
        }
        match self.savepoint {
            Some(savepoint) => {
                self.transaction.rollback_to(savepoint)?;
                let count = self.transaction.change_count();
                let before = self.changes_before;
                invariant!(STMT_1, before == Some(count), "{count} changes, {before:?} before");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Inserts an encoded row. An error (`23505`) when a key of it is there already.
    pub fn insert(&mut self, handle: &Arc<TableHandle>, row: &[u8]) -> Result<()> {
        if self.record.is_some() {
            return self.record_insert(handle, row);
        }
        match self.insert_unless_conflict(handle, row)? {
            None => Ok(()),
            Some(conflict) => Err(duplicate(handle, conflict.index, row)),
        }
    }

    /// Inserts an encoded row, or says which key of it is there already; then nothing of the row is
    /// inserted.
    pub fn insert_unless_conflict(
        &mut self,
        handle: &Arc<TableHandle>,
        bytes: &[u8],
    ) -> Result<Option<KeyConflict>> {
        if self.record.is_some() {
            return self.record_unless_conflict(handle, bytes);
        }
        let table = handle.table();
        let row = StoredRow::new(table, bytes)?;
        check_not_null(table, row)?;
        let mut key = std::mem::take(&mut self.key);
        let placed = self.place(handle, row, &mut key);
        self.key = key;
        let conflict = placed?;
        if conflict.is_none() && handle.has_deferrable_keys() {
            self.check_deferrable(handle, None, row)?;
        }
        if conflict.is_none() && !table.foreign_keys.is_empty() {
            for foreign_key in 0..table.foreign_keys.len() {
                self.check_parent(handle, foreign_key, row)?;
            }
        }
        Ok(conflict)
    }

    /// The row that has the same key as an encoded row: of the index in that place among the
    /// table's, or the primary key.
    pub fn conflict_in(
        &mut self,
        handle: &Arc<TableHandle>,
        index: Option<usize>,
        bytes: &[u8],
    ) -> Result<Option<KeyConflict>> {
        let row = StoredRow::new(handle.table(), bytes)?;
        self.entry.clear();
        let (entries, of_index) = match index.and_then(|number| handle.indexes().get(number)) {
            Some(index) => match index.encode_entry(row, &[], &mut self.entry)? {
                EntryForm::Unique => (&index.entries, Some(index)),
                _ => return Ok(None),
            },
            None => {
                handle.key().encode_with(&mut self.entry, |position| row.get(position))?;
                (handle.database(), None)
            }
        };
        let mut found = Vec::new();
        if !entries.get_into(self.transaction, &self.entry, &mut found)?
            && !entries.get_for_update(self.transaction, &self.entry, &mut found)?
        {
            return Ok(None);
        }
        let row_key = match of_index {
            Some(index) => index.row_key(&self.entry, &found)?.to_vec(),
            None => self.entry.clone(),
        };
        Ok(Some(KeyConflict { index, row_key }))
    }

    /// The key of the row inserted last.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        &self.key
    }

    /// Counts a change of a row, which a writer that records does not make.
    #[inline]
    fn note_change(&mut self) {
        invariant!(RECORD_1, self.record.is_none(), "a row is changed while changes are recorded");
        if CHECKS_INVARIANTS {
            self.made += 1;
        }
    }

    /// Returns the number of rows changed so far, where invariants are checked.
    pub fn changes_made(&self) -> usize {
        self.made
    }

    /// Puts the row and its entries in place, or nothing when there is a conflict. `key` becomes
    /// the row's key.
    fn place(
        &mut self,
        handle: &TableHandle,
        row: StoredRow<'_>,
        key: &mut Vec<u8>,
    ) -> Result<Option<KeyConflict>> {
        self.note_change();
        let rows = handle.database();
        if !handle.put_new(self.catalog, self.transaction, row, key)? {
            return Ok(Some(KeyConflict { index: None, row_key: key.to_vec() }));
        }
        for (number, index) in handle.indexes().iter().enumerate() {
            if let Some(row_key) = self.add_entry(index, row, key)? {
                rows.delete(self.transaction, key)?;
                for earlier in &handle.indexes()[..number] {
                    self.remove_entry(earlier, row, key)?;
                }
                return Ok(Some(KeyConflict { index: Some(number), row_key }));
            }
        }
        Ok(None)
    }

    /// Adds a row's entries to an index; or the key of the row that has the same unique key.
    fn add_entry(
        &mut self,
        index: &IndexHandle,
        row: StoredRow<'_>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        if let Some(class) = index.index.inverted() {
            let entries = index.inverted_entries(class, row, key)?;
            index.add_inverted(self.transaction, &entries)?;
            return Ok(None);
        }
        self.entry.clear();
        let form = index.encode_entry(row, key, &mut self.entry)?;
        if form == EntryForm::Absent {
            return Ok(None);
        }
        index.encode_place(&self.entry, key, form, &mut self.value)?;
        if form != EntryForm::Unique {
            index.entries.put(self.transaction, &self.entry, &self.value)?;
            return Ok(None);
        }
        let mut other = Vec::new();
        loop {
            if index.entries.put_if_absent(self.transaction, &self.entry, &self.value)? {
                return Ok(None);
            }
            // Under read committed it may be newer than what the statement sees, and it may go
            // before it is looked at.
            if index.entries.get_into(self.transaction, &self.entry, &mut other)?
                || index.entries.get_for_update(self.transaction, &self.entry, &mut other)?
            {
                return index.row_key(&self.entry, &other).map(|key| Some(key.to_vec()));
            }
        }
    }

    fn remove_entry(&mut self, index: &IndexHandle, row: StoredRow<'_>, key: &[u8]) -> Result<()> {
        if let Some(class) = index.index.inverted() {
            let entries = index.inverted_entries(class, row, key)?;
            return index.remove_inverted(self.transaction, &entries);
        }
        self.entry.clear();
        if index.encode_entry(row, key, &mut self.entry)? != EntryForm::Absent {
            let was_there = index.entries.delete(self.transaction, &self.entry)?;
            invariant!(TABLE_1, was_there, "no entry of a row in index {}", index.index.name);
        }
        Ok(())
    }

    /// Gives the row of that key other values. `old` and `new` are encoded rows, `changed` names
    /// the columns that may differ. An error (`23505`) when a key of the new row belongs to another
    /// row. Returns false, and changes nothing, if another part of the statement changes the row.
    pub fn update(
        &mut self,
        handle: &Arc<TableHandle>,
        key: &[u8],
        old: &[u8],
        new: &[u8],
        changed: &[usize],
    ) -> Result<bool> {
        if self.record.is_some() {
            check_changed(handle.table(), StoredRow::new(handle.table(), new)?, changed)?;
            return Ok(self.record_update(handle, (key, old), new, changed));
        }
        self.update_one(handle, key, old, new, changed)?;
        self.work_off()?;
        Ok(true)
    }

    pub(super) fn update_one(
        &mut self,
        handle: &Arc<TableHandle>,
        key: &[u8],
        old: &[u8],
        new: &[u8],
        changed: &[usize],
    ) -> Result<()> {
        self.note_change();
        if !handle.touches_more(changed) {
            return handle.update_alone(self.transaction, key, new, changed);
        }
        let table = handle.table();
        let new_row = StoredRow::new(table, new)?;
        check_changed(table, new_row, changed)?;
        let old_row = StoredRow::new(table, old)?;
        let mut new_key = std::mem::take(&mut self.key);
        new_key.clear();
        if handle.key().parts.is_empty() {
            new_key.extend_from_slice(key);
        } else {
            handle.key().encode_with(&mut new_key, |position| new_row.get(position))?;
        }
        let replaced = self.replace(handle, (key, old_row), (&new_key, new_row));
        self.key = new_key;
        if let Some(index) = replaced? {
            return Err(duplicate(handle, index, new));
        }
        if handle.has_deferrable_keys() {
            self.check_deferrable(handle, Some(old_row), new_row)?;
        }
        for number in 0..table.foreign_keys.len() {
            let columns = &table.foreign_keys[number].columns;
            if differ(columns, old_row, new_row)? {
                self.check_parent(handle, number, new_row)?;
            }
        }
        self.parent_changed(handle, old_row, Some(new_row))
    }

    /// Puts the new row in the old one's place; which key (`None`: the primary key) is in the way,
    /// if one is.
    fn replace(
        &mut self,
        handle: &TableHandle,
        (key, old): (&[u8], StoredRow<'_>),
        (new_key, new): (&[u8], StoredRow<'_>),
    ) -> Result<Option<Option<usize>>> {
        let (rows, stored) = (handle.database(), handle.stored(new.bytes())?);
        let moves = key != new_key;
        if moves {
            if !rows.put_if_absent(self.transaction, new_key, &stored)? {
                return Ok(Some(None));
            }
            rows.delete(self.transaction, key)?;
            if let Some(moved) = self.moved {
                moved.note(handle.table().id, key, Some(new_key));
            }
        } else {
            rows.put(self.transaction, key, &stored)?;
        }
        for (number, index) in handle.indexes().iter().enumerate() {
            if let Some(class) = index.index.inverted() {
                let before = index.inverted_entries(class, old, key)?;
                let after = index.inverted_entries(class, new, new_key)?;
                index.replace_inverted(self.transaction, &before, &after)?;
                continue;
            }
            let mut before = std::mem::take(&mut self.old_entry);
            before.clear();
            let form = index.encode_entry(old, key, &mut before)?;
            self.entry.clear();
            let new_form = index.encode_entry(new, new_key, &mut self.entry)?;
            let same = before == self.entry && form == new_form && !moves;
            if !same && form != EntryForm::Absent {
                index.entries.delete(self.transaction, &before)?;
            }
            self.old_entry = before;
            if !same && self.add_entry(index, new, new_key)?.is_some() {
                return Ok(Some(Some(number)));
            }
        }
        Ok(None)
    }

    /// Removes a row, of which `old` are the bytes. False when it is not there any more.
    pub fn delete(&mut self, handle: &Arc<TableHandle>, key: &[u8], old: &[u8]) -> Result<bool> {
        if self.record.is_some() {
            return Ok(self.record_delete(handle, key, old));
        }
        let deleted = self.delete_one(handle, key, old)?;
        self.work_off()?;
        Ok(deleted)
    }

    pub(super) fn delete_one(
        &mut self,
        handle: &Arc<TableHandle>,
        key: &[u8],
        old: &[u8],
    ) -> Result<bool> {
        self.note_change();
        if !handle.database().delete(self.transaction, key)? {
            return Ok(false);
        }
        if let Some(moved) = self.moved {
            moved.note(handle.table().id, key, None);
        }
        if handle.indexes().is_empty() && handle.table().referenced_by.is_empty() {
            return Ok(true);
        }
        let row = StoredRow::new(handle.table(), old)?;
        for index in handle.indexes() {
            self.remove_entry(index, row, key)?;
        }
        self.parent_changed(handle, row, None)?;
        Ok(true)
    }
}

/// Whether two rows differ in one of these columns.
pub(super) fn differ(positions: &[usize], a: StoredRow<'_>, b: StoredRow<'_>) -> Result<bool> {
    for &position in positions {
        if a.get(position)? != b.get(position)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The error of a key that is there already.
#[cold]
pub(super) fn duplicate(handle: &TableHandle, index: Option<usize>, row: &[u8]) -> SqlError {
    let table = handle.table();
    let index = index.and_then(|number| handle.indexes().get(number));
    let (name, positions) = match index {
        Some(index) => (index.index.name.as_str(), &[][..]),
        None => match &table.primary_key {
            Some(key) => (key.name.as_str(), &key.columns[..]),
            None => return SqlError::internal("a hidden row id was given out twice"),
        },
    };
    let error = SqlError::new(
        SqlState::UniqueViolation,
        format!("duplicate key value violates unique constraint \"{name}\""),
    );
    let error = error.of_table(&table.schema, &table.name).of_constraint(name);
    match StoredRow::new(table, row) {
        Ok(row) => {
            let key = match index {
                Some(index) => index.describe(handle, row),
                None => describe(table, positions, row),
            };
            error.with_detail(format!("Key {key} already exists."))
        }
        Err(_) => error,
    }
}

/// The value of a column for messages and keys.
pub(super) fn values_of<'r>(row: StoredRow<'r>, positions: &[usize]) -> Result<Vec<ValueRef<'r>>> {
    positions.iter().map(|&position| row.get(position)).collect()
}
