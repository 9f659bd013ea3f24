//! Locks of a whole database against the writes of other transactions.
//!
//! Above: `DatabaseExt::lock_writes()`. Below: the locks of the transaction table, change guards
//! and waits.

use std::sync::Arc;

use super::Database;
use crate::access::btree::Tree;
use crate::error::Result;
use crate::mvcc::{TransactionRecord, WriteLock};
use crate::transaction::write::WriteCheck;
use crate::transaction::{DatabaseUse, Transaction};

impl Database {
    /// See `query_layer::DatabaseExt::lock_writes`.
    pub(crate) fn lock_writes(&self, transaction: &Transaction, mode: WriteLock) -> Result<()> {
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        transaction.check_writable()?;
        transaction.engine().check_failed()?;
        transaction.with_writer(|_, writer| {
            let locked = transaction.lock_tree(tree, writer, mode);
            if locked.is_err() {
                transaction.engine().transactions.database_locks.withdraw(tree.id, writer, mode);
            }
            locked
        })
    }
}

impl Transaction {
    fn lock_tree(
        &self,
        tree: Tree,
        writer: &Arc<TransactionRecord>,
        mode: WriteLock,
    ) -> Result<()> {
        let engine = self.engine();
        let locks = &engine.transactions.database_locks;
        while let Some(other) = locks.request(tree.id, writer, mode) {
            self.wait_or_fail(writer, WriteCheck::WaitFor(other))?;
        }
        // Writes that were checked before the request are done, and their undo entries show, when
        // the latch has been closed.
        engine.pool.close_for(|| ());
        loop {
            let changing = self.transaction_changing(tree, writer);
            match changing.or_else(|| locks.grant(tree.id, writer, mode)) {
                Some(other) => self.wait_or_fail(writer, WriteCheck::WaitFor(other))?,
                None => break,
            };
        }
        invariant!(
            DBLOCK_2,
            self.transaction_changing(tree, writer).is_none(),
            "transaction {} has locked tree {}, and another one changes it",
            writer.id(),
            tree.id
        );
        Ok(())
    }

    /// Returns another unfinished transaction that has changed the tree.
    fn transaction_changing(
        &self,
        tree: Tree,
        writer: &TransactionRecord,
    ) -> Option<Arc<TransactionRecord>> {
        let active = self.engine().transactions.active();
        let mut others: Vec<_> = active.into_values().map(|(other, _)| other).collect();
        // In one order, so that a simulation repeats.
        others.sort_unstable_by_key(|other| other.id());
        others.into_iter().find(|other| other.id() != writer.id() && other.has_changed(tree.id))
    }
}
