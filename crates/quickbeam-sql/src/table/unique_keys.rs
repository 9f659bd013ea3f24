//! Keys that are DEFERRABLE: rows may have the same one until the end of the statement, or of the
//! transaction.
//!
//! Two transactions that add the same key write two entries, and none waits for the other. The read
//! that found no other row with the key is validated at commit (STMT-2), so one of them fails.

use std::sync::Arc;

use super::foreign_keys::PendingCheck;
use super::table_writer::{TableWriter, duplicate};
use super::transaction_state::deferred_checks::{DeferredCheck, PendingKey};
use crate::error::Result;
use crate::handle::{EntryForm, TableHandle};
use crate::schema::encoding::StoredRow;

impl TableWriter<'_> {
    /// Looks whether rows have the keys of a row that was added or changed, where these are
    /// DEFERRABLE. What is found is checked later.
    pub(super) fn check_deferrable(
        &mut self,
        handle: &Arc<TableHandle>,
        old: Option<StoredRow<'_>>,
        new: StoredRow<'_>,
    ) -> Result<()> {
        for (number, index) in handle.indexes().iter().enumerate() {
            if !index.index.timing.is_deferrable() {
                continue;
            }
            let (mut values, mut before) = (Vec::new(), Vec::new());
            if index.encode_entry(new, &[], &mut values)? != EntryForm::Checked {
                continue;
            }
            if let Some(old) = old
                && index.encode_entry(old, &[], &mut before)? == EntryForm::Checked
                && before == values
            {
                continue;
            }
            // Another row may go before the check: that it is there now need not hold at commit.
            let has_two = || index.has_two(self.transaction, &values);
            if !has_two()? && !self.tracked(has_two)? {
                continue;
            }
            let (table, name) = (handle.table(), &index.index.name);
            match self.deferred.filter(|it| it.defers(table, name, index.index.timing)) {
                Some(deferred) => {
                    deferred.defer((table.id, name.clone()), DeferredCheck::Key(values));
                }
                None => {
                    let pending = PendingKey { handle: handle.clone(), number, values };
                    self.constraint_work().pending.push(PendingCheck::Key(pending));
                }
            }
        }
        Ok(())
    }

    /// Fails if two rows have the key.
    pub(super) fn check_key(&self, pending: &PendingKey) -> Result<()> {
        let index = pending.index()?;
        if !self.tracked(|| index.has_two(self.transaction, &pending.values))? {
            return Ok(());
        }
        let mut cursor = index.entries.cursor(self.transaction)?;
        let mut row = Vec::new();
        if cursor.seek(&pending.values)? {
            let row_key = index.row_key(cursor.key(), cursor.value())?;
            pending.handle.get(self.transaction, row_key, &mut row)?;
        }
        Err(duplicate(&pending.handle, Some(pending.number), &row))
    }
}
