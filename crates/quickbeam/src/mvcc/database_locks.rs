//! Locks of whole databases against the writes of other transactions.
//!
//! Above: writes, which check for a lock once they hold a change guard, and
//! `DatabaseExt::lock_writes()`. Below: transaction records. While no database is locked, a write
//! loads one flag.
//!
//! - DBLOCK-1: if a transaction has an exclusive lock of a tree, no other unfinished one has a lock
//!   of the tree.
//! - DBLOCK-2: if a transaction has a lock of a tree, no other unfinished one has changes in it.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::locks::Mutex;
use std::sync::Arc;

use super::{TransactionRecord, TransactionState};

/// What a lock of a database excludes, besides the writes of other transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteLock {
    /// Exclusive locks.
    Shared,
    /// All other locks.
    Exclusive,
}

struct DatabaseLock {
    tree: u32,
    holder: Arc<TransactionRecord>,
    mode: WriteLock,
    /// False while the transaction waits for those that have changed the database already.
    is_granted: bool,
}

impl DatabaseLock {
    fn is(&self, tree: u32, holder: &TransactionRecord, mode: WriteLock) -> bool {
        self.tree == tree && self.holder.id() == holder.id() && self.mode == mode
    }

    /// Returns whether it is another transaction's lock of the tree, and keeps `mode` from being
    /// granted.
    fn excludes(&self, tree: u32, transaction: &TransactionRecord, mode: WriteLock) -> bool {
        self.tree == tree
            && self.holder.id() != transaction.id()
            && self.holder.state() == TransactionState::Active
            && (mode == WriteLock::Exclusive || self.mode == WriteLock::Exclusive)
    }
}

/// The locks of all databases.
#[derive(Default)]
pub struct DatabaseLocks {
    /// Some database may be locked.
    any: AtomicBool,
    locks: Mutex<Vec<DatabaseLock>>,
}

impl DatabaseLocks {
    /// Requests a lock of a tree, which excludes writes from now on. If another transaction has a
    /// lock or has requested one, returns it, to be waited for first.
    pub fn request(
        &self,
        tree: u32,
        holder: &Arc<TransactionRecord>,
        mode: WriteLock,
    ) -> Option<Arc<TransactionRecord>> {
        // Who requested a lock meanwhile waits for this transaction's end.
        let has_changed = holder.has_changed(tree);
        let mut locks = self.locks.lock();
        let excludes = |lock: &&DatabaseLock| {
            lock.excludes(tree, holder, mode) && (lock.is_granted || !has_changed)
        };
        if let Some(lock) = locks.iter().find(excludes) {
            return Some(lock.holder.clone());
        }
        if !locks.iter().any(|lock| lock.is(tree, holder, mode)) {
            let holder = holder.clone();
            locks.push(DatabaseLock { tree, holder, mode, is_granted: false });
        }
        self.any.store(true, Ordering::SeqCst);
        None
    }

    /// Grants a lock that was requested. Returns the transaction to wait for first if another one
    /// was granted a lock meanwhile.
    pub fn grant(
        &self,
        tree: u32,
        holder: &TransactionRecord,
        mode: WriteLock,
    ) -> Option<Arc<TransactionRecord>> {
        let mut locks = self.locks.lock();
        let excludes = |lock: &&DatabaseLock| lock.is_granted && lock.excludes(tree, holder, mode);
        if let Some(lock) = locks.iter().find(excludes) {
            return Some(lock.holder.clone());
        }
        let requested = locks.iter_mut().filter(|lock| lock.is(tree, holder, mode));
        requested.for_each(|lock| lock.is_granted = true);
        let mut granted = locks.iter().filter(|lock| lock.tree == tree && lock.is_granted);
        invariant!(
            DBLOCK_1,
            mode == WriteLock::Shared
                || granted.all(|lock| !lock.excludes(tree, holder, WriteLock::Exclusive)),
            "tree {tree} is locked exclusively by one transaction and locked by another"
        );
        None
    }

    /// Returns the transaction whose lock keeps `writer` from writing to the tree. A transaction
    /// that wrote to it before the lock goes on: the one that locks waits for its end.
    #[inline]
    pub fn holder(&self, tree: u32, writer: &TransactionRecord) -> Option<Arc<TransactionRecord>> {
        match self.any.load(Ordering::Relaxed) {
            true => self.find_holder(tree, writer),
            false => None,
        }
    }

    #[cold]
    fn find_holder(&self, tree: u32, writer: &TransactionRecord) -> Option<Arc<TransactionRecord>> {
        let locks = self.locks.lock();
        // Either mode excludes writes, as it does an exclusive lock.
        let excludes = |lock: &&DatabaseLock| lock.excludes(tree, writer, WriteLock::Exclusive);
        let holder = locks.iter().find(excludes)?.holder.clone();
        drop(locks);
        (!writer.has_changed(tree)).then_some(holder)
    }

    /// Takes back a request that was not granted. A transaction that waits for it looks again when
    /// this one ends.
    pub fn withdraw(&self, tree: u32, holder: &TransactionRecord, mode: WriteLock) {
        self.remove(|lock| lock.is(tree, holder, mode) && !lock.is_granted);
    }

    /// Releases the locks of a transaction that has ended.
    #[inline]
    pub fn release(&self, holder: &TransactionRecord) {
        if self.any.load(Ordering::Relaxed) {
            self.remove(|lock| lock.holder.id() == holder.id());
        }
    }

    #[cold]
    fn remove(&self, is_over: impl Fn(&DatabaseLock) -> bool) {
        let mut locks = self.locks.lock();
        locks.retain(|lock| !is_over(lock));
        self.any.store(!locks.is_empty(), Ordering::SeqCst);
    }
}
