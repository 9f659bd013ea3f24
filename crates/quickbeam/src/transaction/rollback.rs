//! Rollback: restores records from undo entries.

use std::sync::Arc;

use super::{State, Transaction};
use crate::access::btree::Tree;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::mvcc::{ReplacedRecord, TransactionRecord};

impl Transaction {
    /// Undoes the entries from `mark` on, newest first. On an error, the entries undone so far are
    /// removed, and the caller can undo the rest later.
    pub(super) fn undo_to(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        mark: usize,
    ) -> Result<()> {
        let mark = if planted(Canary::UndoLost) && mark == 0 { 1 } else { mark };
        while mark < writer.entries() {
            let first = writer.take_back()?.max(mark);
            for number in (first..writer.entries()).rev() {
                let Some(replaced) = writer.entry(number)? else { break };
                let Some(tree) = self.engine().tree(replaced.tree) else { continue };
                if let Err(error) = self.restore_record(state, tree, &replaced) {
                    writer.truncate(number + 1);
                    return Err(error);
                }
            }
            writer.truncate(first);
        }
        state.last_purge = (0, 0);
        Ok(())
    }

    fn restore_record(
        &self,
        state: &mut State,
        tree: Tree,
        replaced: &ReplacedRecord,
    ) -> Result<()> {
        let ReplacedRecord { before, key, value, .. } = replaced;
        let pool = &self.engine().pool;
        loop {
            let change_guard = pool.enter(self.slot);
            let (guard, found) = tree.locate(pool, key, state.leaf_hints.of(tree))?;
            let Some(latched) = guard.upgrade() else { continue };
            let page = latched.write(&change_guard)?;
            let Ok(position) = found else {
                return Err(Error::page(latched.id, "a record to be put back is not there"));
            };
            if !before.present {
                page.remove(position);
                return Ok(());
            }
            return if page.replace_record(position, before.version, before.flags, value) {
                Ok(())
            } else {
                Err(Error::page(latched.id, "no room for what a record was before"))
            };
        }
    }
}
