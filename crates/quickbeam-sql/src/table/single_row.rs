//! Changes of one row of a table that has nothing but rows: no index, no foreign key, no trigger.
//!
//! Above: the executor, for statements that change one row and check nothing of it. Below: the
//! table's tree. Such a change is one change of one record, so nothing has to be undone when it
//! fails.

use quickbeam::{Transaction, Updated};

use super::table_writer::{check_changed, check_not_null, duplicate};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::handle::table_handle::TableHandle;
use crate::schema::encoding::row_format::StoredRow;

impl TableHandle {
    /// Puts an encoded row, with the key of a new one, into the table's tree. `key` becomes that
    /// key. Returns false, changing nothing, if the primary key is there already.
    pub(super) fn put_new(
        &self,
        catalog: &Catalog,
        transaction: &Transaction,
        row: StoredRow<'_>,
        key: &mut Vec<u8>,
    ) -> Result<bool> {
        let stored = self.stored(row.bytes())?;
        let has_row_ids = self.key().parts.is_empty();
        loop {
            key.clear();
            if has_row_ids {
                let id = catalog.row_ids().next(catalog.environment(), transaction, self)?;
                key.extend_from_slice(&id.to_be_bytes());
            } else {
                self.key().encode_with(key, |position| row.get(position))?;
            }
            let is_put = self.database().put_if_absent(transaction, key, &stored)?;
            if is_put || !has_row_ids {
                return Ok(is_put);
            }
            // Another catalog of the environment has given out that row id.
            catalog.row_ids().catch_up(transaction, self)?;
        }
    }

    /// Inserts an encoded row of a table that [has nothing but rows](Self::has_rows_only): one
    /// change of one record, which is made or fails, and so needs no table writer. `key` is
    /// scratch space. An error (`23505`) when the key is there already.
    pub fn insert_alone(
        &self,
        catalog: &Catalog,
        transaction: &Transaction,
        bytes: &[u8],
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let row = StoredRow::new(self.table(), bytes)?;
        check_not_null(self.table(), row)?;
        match self.put_new(catalog, transaction, row, key)? {
            true => Ok(()),
            false => Err(duplicate(self, None, bytes)),
        }
    }

    /// Whether a row comes and goes as one record: there are no indexes and no triggers, and it
    /// takes part in no foreign key. So there is nothing half done of a change of one row.
    pub fn has_rows_only(&self) -> bool {
        let table = self.table();
        table.indexes.is_empty()
            && table.foreign_keys.is_empty()
            && table.referenced_by.is_empty()
            && table.triggers.is_empty()
    }

    /// Gives the row of that key other values in columns of which none
    /// [`touches more`](Self::touches_more) than the row itself: one change of one record, which is
    /// made or fails, and so needs no table writer.
    #[inline]
    pub fn update_alone(
        &self,
        transaction: &Transaction,
        key: &[u8],
        new: &[u8],
        changed: &[usize],
    ) -> Result<()> {
        self.check_changed(new, changed)?;
        Ok(self.database().put(transaction, key, &self.stored(new)?)?)
    }

    /// Whether a NULL stands where none may, in the columns that changed.
    pub fn check_changed(&self, row: &[u8], changed: &[usize]) -> Result<()> {
        check_changed(self.table(), StoredRow::new(self.table(), row)?, changed)
    }

    /// Like [`update_alone`](Self::update_alone), but computes the new row from the stored one. The
    /// caller has done the checks of [`check_changed`](Self::check_changed). Returns the number of
    /// rows changed, or `None` if the row cannot be updated this way.
    #[inline]
    pub fn modify_alone(
        &self,
        transaction: &Transaction,
        key: &[u8],
        mut make: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<Option<u64>> {
        if self.table().is_database() {
            return Ok(None);
        }
        let mut failure = None;
        let done = self.database().update(transaction, key, |old, new| {
            failure = make(old, new).err();
            failure.is_none()
        })?;
        match (done, failure) {
            (_, Some(error)) => Err(error),
            (Updated::Changed, None) => Ok(Some(1)),
            (Updated::Absent, None) => Ok(Some(0)),
            (Updated::Unchanged | Updated::NotInPlace, None) => Ok(None),
        }
    }
}
