//! Transactions: what one sees, changes and commits.
//!
//! Above: the public API. Below: access methods, versions, log.
//!
//! - TXN-1: a transaction reads one snapshot (read committed: a new one for each call) and its own changes.
//! - TXN-2: a record is changed only by one unfinished transaction at a time: the version word in the leaf is the lock.
//! - TXN-3: first updater wins: under snapshot and serializable, a record whose newest version is past the snapshot
//!   cannot be changed (write conflict).
//! - TXN-4: serializable: at commit, inside the commit's critical section, nothing that was read has a version
//!   past the snapshot; so the transaction is as if it had run at its commit timestamp ([`validate`]).
//! - TXN-5: a failing call leaves nothing of itself; the transaction can go on.
//!
//! Sources: Larson et al., "High-Performance Concurrency Control Mechanisms for Main-Memory Databases" (2011) for
//! optimistic validation over versions; Tu et al., "Speedy Transactions in Multicore In-Memory Databases" (Silo, 2013).

mod append;
mod catalog;
mod commit;
mod cursor;
mod database;
mod hash_prefix;
mod leaf_filter;
mod range;
mod read;
mod read_set;
mod rollback;
mod scan;
mod state;
mod update;
mod validate;
mod write;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::environment::ShardedEngineRef;
use crate::error::{Error, Result};
use crate::mvcc::{DeferredTask, TransactionRecord};
use crate::options::{Durability, Isolation, TransactionOptions};
use crate::sync::shard;

pub use catalog::{check_name, decode_catalog_record, encode_catalog_record};
pub use cursor::{Cursor, check_ordered};
pub use database::Database;
pub use leaf_filter::{IntField, IntRange};
pub use range::{Range, Record};
pub use scan::{Scan, ScanBatch};
use state::{Held, State};
pub use update::Updated;
pub use write::{check_limits, fits_inline, purge_leaf};

/// A point that a transaction can roll back to, in the order of nesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// Differs between any two savepoints of the process.
    id: u64,
    /// Undo entries at that point.
    entries: usize,
    /// Bytes of redo at that point, with those that had left for the log.
    redo: u64,
    /// Deferred work, new chains and new trees at that point.
    deferred: usize,
    chains: usize,
    created: usize,
}

/// A transaction: reads, changes, and their commit. Dropping it without
/// [`commit`](Transaction::commit) aborts it. It may move between threads, but only one thread uses
/// it at a time.
///
/// ```
/// # let environment = quickbeam::Environment::memory(Default::default())?;
/// # let fruit = environment.create_database("fruit")?;
/// let transaction = environment.begin()?;
/// fruit.put(&transaction, b"apple", b"red")?;
/// drop(transaction); // rolled back
/// assert!(!fruit.exists(&environment.begin_read()?, b"apple")?);
/// # Ok::<(), quickbeam::Error>(())
/// ```
pub struct Transaction {
    hold: ShardedEngineRef,
    /// The snapshot slot; also spreads threads over the gate's lanes.
    slot: usize,
    read_only: bool,
    isolation: Isolation,
    durability: Durability,
    lock_timeout: Cell<Duration>,
    /// Reads are remembered although the isolation does not ask for it.
    tracking: Cell<bool>,
    /// A call failed with a retryable error.
    met_conflict: Cell<bool>,
    state: Held,
}

impl Transaction {
    pub(crate) fn begin(
        hold: ShardedEngineRef,
        options: &TransactionOptions,
    ) -> Result<Transaction> {
        let inner = &*hold.inner;
        inner.check_open()?;
        let durability = options.durability.unwrap_or(inner.options.durability);
        if (durability == Durability::InMemory) != inner.log.is_none() {
            return Err(Error::misuse(format!(
                "durability {durability} in an environment of durability {}: one without a log stays without, one \
                 with a log logs every transaction",
                inner.options.durability
            )));
        }
        let now = inner.recent_time();
        let registry = &inner.registry;
        let (slot, snapshot) = registry.snapshots.acquire(&registry.newest_commit, now)?;
        // Who closes says so first and then looks for open transactions: one of the two sees the other.
        if let Err(closed) = inner.check_open() {
            registry.snapshots.release(slot);
            return Err(closed);
        }
        let catalog_version = inner.catalog_version_for(snapshot);
        Ok(Transaction {
            slot,
            read_only: options.read_only || inner.is_read_only,
            isolation: options.isolation.unwrap_or(inner.options.isolation),
            durability,
            lock_timeout: Cell::new(options.lock_timeout.unwrap_or(inner.options.lock_timeout)),
            tracking: Cell::new(false),
            met_conflict: Cell::new(false),
            state: Held::begin(snapshot, catalog_version, inner.id),
            hold,
        })
    }

    /// Marks a point to roll back to.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// let savepoint = transaction.savepoint()?;
    /// fruit.put(&transaction, b"pear", b"green")?;
    /// transaction.rollback_to(savepoint)?;
    /// assert!(!fruit.exists(&transaction, b"pear")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn savepoint(&self) -> Result<Savepoint> {
        let state = &mut *self.state.borrow_mut();
        let count = |of: fn(&TransactionRecord) -> usize| state.writer.as_deref().map_or(0, of);
        let entries = count(TransactionRecord::entries);
        let deferred = count(|writer| writer.deferred.count());
        let chains = count(|writer| writer.new_chains.lock().len());
        state.newest_savepoint = entries;
        let id = shard::unique_id();
        state.savepoints.push(id);
        Ok(Savepoint {
            deferred,
            chains,
            created: state.created.len(),
            id,
            entries,
            redo: state.redo.position(),
        })
    }

    /// Undoes every change made since the savepoint. The savepoint stays valid; savepoints made
    /// after it do not.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// let savepoint = transaction.savepoint()?;
    /// fruit.delete(&transaction, b"apple")?;
    /// transaction.rollback_to(savepoint)?;
    /// assert!(fruit.exists(&transaction, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn rollback_to(&self, savepoint: Savepoint) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let Some(at) = state.savepoints.iter().rposition(|&id| id == savepoint.id) else {
            return Err(Error::misuse(
                "the savepoint is of another transaction, or was undone by rolling back to an earlier one",
            ));
        };
        state.savepoints.truncate(at + 1);
        let Some(writer) = state.writer.clone() else { return Ok(()) };
        if self.tracks_reads() {
            // That a record was there, or was not, is what the undone call told its caller.
            for number in savepoint.entries..writer.entries() {
                let Some((entry, key, _)) = writer.entry(number) else { break };
                if let Some(tree) = self.inner().tree(entry.tree) {
                    state.reads.undone(tree, &key);
                }
            }
        }
        state.inconsistent = true;
        self.undo_to(state, &writer, savepoint.entries)?;
        state.inconsistent = false;
        if self.inner().log.is_some() {
            state.redo.roll_back_to(savepoint.redo);
        }
        // What was deferred is not to happen; what was made is to go, when the transaction commits or when it aborts.
        let mut deferred = writer.deferred.lock();
        deferred.truncate(savepoint.deferred);
        let chains = writer.new_chains.lock();
        deferred.extend(
            chains.iter().skip(savepoint.chains).map(|&page| DeferredTask::FreeChain(page)),
        );
        let trees = state.created.iter().skip(savepoint.created);
        deferred.extend(trees.map(|tree| DeferredTask::FreeTree(tree.id)));
        state.newest_savepoint = savepoint.entries;
        state.resolved.clear();
        Ok(())
    }

    /// Forgets a savepoint and those made after it. Changes made since are kept.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// let savepoint = transaction.savepoint()?;
    /// fruit.put(&transaction, b"pear", b"green")?;
    /// transaction.release(savepoint);
    /// assert!(transaction.rollback_to(savepoint).is_err());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn release(&self, savepoint: Savepoint) {
        let state = &mut *self.state.borrow_mut();
        if let Some(at) = state.savepoints.iter().rposition(|&id| id == savepoint.id) {
            state.savepoints.truncate(at);
        }
    }

    /// Returns the isolation level of this transaction.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// An error when the transaction is between two states.
    fn check_consistent(state: &State) -> Result<()> {
        if state.inconsistent {
            return Err(Error::misuse(
                "rolling back to a savepoint failed half-way; roll back again, or abort the transaction",
            ));
        }
        Ok(())
    }

    /// Undoes everything and ends the transaction.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// fruit.put(&transaction, b"apple", b"red")?;
    /// transaction.abort()?;
    /// assert!(!fruit.exists(&environment.begin_read()?, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn abort(self) -> Result<()> {
        self.end_aborted().inspect_err(|error| self.inner().fail(error))
    }

    fn inner(&self) -> &crate::environment::Engine {
        &self.hold.inner
    }

    /// The identity of the environment that the transaction belongs to.
    pub(crate) fn environment_id(&self) -> u64 {
        self.hold.inner.id
    }

    /// Records an error of a call, for statistics and for
    /// [`Environment::transact_with`](crate::Environment::transact_with).
    #[cold]
    fn note_failure(&self, error: &Error) {
        if error.is_retryable() {
            self.met_conflict.set(true);
            self.inner().counters.count_failure(error);
        }
    }

    /// Whether a call failed with a [retryable](Error::is_retryable) error.
    pub(crate) fn has_met_conflict(&self) -> bool {
        self.met_conflict.get()
    }

    /// Whether changes are refused.
    #[inline]
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn is_read_committed(&self) -> bool {
        self.isolation == Isolation::ReadCommitted && !self.read_only
    }

    /// From here to [`end_statement`](Self::end_statement) all calls together are one: under read committed they read one
    /// snapshot, that of now. Under the other isolations nothing changes.
    #[inline]
    pub fn begin_statement(&self) {
        if self.is_read_committed() {
            self.state.borrow_mut().in_statement = false;
            self.begin_call();
            self.state.borrow_mut().in_statement = true;
        }
    }

    /// Each call is for itself again, and nothing [interrupts](Self::interrupt_on) it.
    #[inline]
    pub fn end_statement(&self) {
        self.state.interrupt_on_nothing();
        if self.is_read_committed() {
            self.state.borrow_mut().in_statement = false;
        }
    }

    /// Moves a read committed transaction's snapshot up, at the start of each call (TXN-1), before names are resolved.
    #[inline]
    pub(crate) fn begin_call(&self) {
        if self.is_read_committed() {
            let state = &mut *self.state.borrow_mut();
            if state.in_statement {
                return;
            }
            let registry = &self.inner().registry;
            state.snapshot = match state.tracked_since {
                None => registry.snapshots.refresh(self.slot, &registry.newest_commit),
                // What is to be validated has to stay distinguishable from what came after it: the slot stays behind.
                Some(_) => registry.newest_commit.load(Ordering::SeqCst),
            };
            let version = self.inner().catalog_version_for(state.snapshot);
            if version.is_none() || version != state.catalog_version {
                state.catalog_version = version;
                state.names_moved |= !state.used.databases().is_empty();
                state.resolved.clear();
            }
        }
    }

    /// Whether reads have to be remembered for validation.
    #[inline]
    fn tracks_reads(&self) -> bool {
        !self.read_only && (self.isolation == Isolation::Serializable || self.tracking.get())
    }

    /// From now on (`true`) what is read has to be so still when the transaction commits, or the commit fails, although its
    /// isolation does not ask for that; or no longer (`false`), for what is read from then on. Says what was so before.
    /// For the few reads on which a rule about the data rests, for example that a record referred to exists.
    pub fn track_reads(&self, track: bool) -> bool {
        let before = self.tracking.replace(track);
        if track && !before && self.isolation != Isolation::Serializable {
            self.begin_call();
            let state = &mut *self.state.borrow_mut();
            if state.tracked_since.is_none() {
                // Later calls read newer snapshots, and the slot keeps this one (`begin_call`).
                self.inner().registry.snapshots.keep_newer(self.slot);
                state.tracked_since = Some(state.snapshot);
            }
        }
        before
    }

    /// Sets how long later calls wait for records locked by others. Returns the previous timeout.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// use std::time::Duration;
    ///
    /// transaction.set_lock_timeout(Duration::from_millis(50));
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn set_lock_timeout(&self, timeout: Duration) -> Duration {
        self.lock_timeout.replace(timeout)
    }

    /// From now on, until [`end_statement`](Self::end_statement), calls that wait for others that keep a record end with
    /// [`Error::Interrupted`] soon after the flag is raised, by whatever thread. The call changed nothing; the transaction can go on.
    #[inline]
    pub fn interrupt_on(&self, flag: &Arc<AtomicBool>) {
        self.state.interrupt_on(flag);
    }

    fn end_aborted(&self) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        if state.finished {
            return Ok(());
        }
        state.finished = true;
        let inner = self.inner();
        let undone = match state.writer.take() {
            Some(writer) => {
                inner.counters.aborts.fetch_add(1, Ordering::Relaxed);
                let undone = self.undo_to(state, &writer, 0);
                inner.registry.snapshots.release(self.slot);
                if undone.is_ok() {
                    inner.registry.finish(writer, false);
                }
                undone
            }
            None => {
                inner.registry.snapshots.release(self.slot);
                Ok(())
            }
        };
        for tree in state.created.drain(..) {
            inner.forget_tree(tree);
        }
        undone
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Err(error) = self.end_aborted() {
            // Records that could not be put back must not be built upon: the environment stops accepting writes.
            self.inner().fail(&error);
        }
    }
}
