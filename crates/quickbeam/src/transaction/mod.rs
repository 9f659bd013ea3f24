//! Transactions: reads, writes and commits.
//!
//! Above: the public API. Below: access methods, versions, log.
//!
//! - TXN-1: a transaction reads one snapshot and its own changes. Under read committed each call
//!   reads a new snapshot.
//! - TXN-2: only one unfinished transaction at a time has changed a record: the version word in the
//!   leaf is the lock.
//! - TXN-3: first updater wins: under snapshot and serializable, a write to a record whose newest
//!   version is past the snapshot fails with a write conflict.
//! - TXN-4: serializable: inside the commit's critical section, no record or range of the read set
//!   has a version past the snapshot. So the transaction is equivalent to one that ran at its
//!   commit timestamp ([`validate`]).
//! - TXN-5: a failing call changes nothing; the transaction can continue.
//!
//! Sources: Larson et al., "High-Performance Concurrency Control Mechanisms for Main-Memory
//! Databases" (2011) for optimistic validation over versions; Tu et al., "Speedy Transactions in
//! Multicore In-Memory Databases" (Silo, 2013).

mod append;
mod catalog;
mod commit;
mod database;
mod read;
mod read_set;
mod rollback;
mod state;
mod update;
mod validate;
mod write;
mod write_from;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::{Engine, ShardedEngineRef};
use crate::error::{Error, Result};
use crate::mvcc::{DeferredTask, Outcome, Timestamp, TransactionRecord};
use crate::options::{Durability, Isolation, TransactionOptions};
use crate::sync::shard;

pub use database::{
    Cursor, Database, IntField, IntRange, LeafVersions, Range, ReadTransaction, Record, Scan,
    ScanBatch, Snapshot, TreeShape, ValueReader,
};
use state::{PooledState, State};
pub use update::Updated;

/// Whether reads below serializable are validated at commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadTracking {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// Whether a transaction may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAccess {
    /// It may.
    Allowed,
    /// Its changes fail with [`Error::ReadOnly`].
    Refused,
}

/// A point that a transaction can roll back to. Savepoints nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// Unique in the process.
    id: u64,
    /// Undo entries at that point.
    entries: usize,
    /// Bytes of redo at that point, including those already in the log.
    redo: u64,
    /// Deferred tasks, new chains and new trees at that point.
    deferred: usize,
    chains: usize,
    created: usize,
}

/// How a call uses a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatabaseUse {
    Read,
    Write,
}

/// Whether a transaction's snapshot can expire (SNAP-3).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry {
    /// No: the environment's options set no limit.
    Never,
    /// Yes, at any time.
    Possible,
    /// No: the transaction may have changes, or its options keep the snapshot.
    Pinned,
}

/// A transaction: reads, changes, and their commit. Dropping it without
/// [`commit`](Transaction::commit) aborts it. It may move between threads, but only one thread uses
/// it at a time.
///
/// ```
/// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
/// # let fruit = environment.create_database("fruit")?;
/// let transaction = environment.begin()?;
/// fruit.put(&transaction, b"apple", b"red")?;
/// drop(transaction); // rolled back
/// assert!(!fruit.exists(&environment.begin_read()?, b"apple")?);
/// # Ok::<(), quickbeam::Error>(())
/// ```
pub struct Transaction {
    engine_ref: ShardedEngineRef,
    /// The snapshot slot; also the lane in the checkpoint gate.
    slot: usize,
    read_only: bool,
    /// Changes are refused, as they are for good in a read-only transaction.
    refuses_changes: Cell<bool>,
    isolation: Isolation,
    durability: Cell<Durability>,
    lock_timeout: Cell<Duration>,
    /// Reads are added to the read set, even below serializable.
    tracking: Cell<bool>,
    /// Whether the snapshot can expire.
    expiry: Cell<Expiry>,
    /// A call failed with a retryable error.
    met_conflict: Cell<bool>,
    state: PooledState,
}

/// Checks that the environment can do what a transaction asks for.
fn check_durability(engine: &Engine, durability: Durability) -> Result<()> {
    if (durability == Durability::InMemory) == engine.log.is_none() {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "durability {durability} in an environment of durability {}: one without a log stays without, one \
         with a log logs every transaction",
        engine.options.durability
    )))
}

impl Transaction {
    pub(crate) fn begin(
        engine_ref: ShardedEngineRef,
        options: &TransactionOptions,
    ) -> Result<Transaction> {
        let engine = &*engine_ref.engine;
        engine.check_open()?;
        let durability = options.durability.unwrap_or(engine.options.durability);
        check_durability(engine, durability)?;
        let now = engine.snapshot_time();
        let transactions = &engine.transactions;
        let (slot, mut snapshot) =
            transactions.snapshots.acquire(&transactions.newest_commit, now)?;
        let expiry = match engine.old_snapshots.may_expire {
            false => Expiry::Never,
            true if options.never_expires => {
                snapshot = transactions.snapshots.refresh_pinned(slot, &transactions.newest_commit);
                Expiry::Pinned
            }
            true => Expiry::Possible,
        };
        // The closing thread sets `closed` before it counts open transactions: one of the two
        // threads sees the other.
        if let Err(closed) = engine.check_open() {
            transactions.snapshots.release(slot);
            return Err(closed);
        }
        let catalog_version = engine.catalog_version_for(snapshot);
        Ok(Transaction {
            slot,
            read_only: options.read_only || engine.is_read_only,
            refuses_changes: Cell::new(options.read_only || engine.is_read_only),
            isolation: options.isolation.unwrap_or(engine.options.isolation),
            durability: Cell::new(durability),
            lock_timeout: Cell::new(options.lock_timeout.unwrap_or(engine.options.lock_timeout)),
            tracking: Cell::new(false),
            expiry: Cell::new(expiry),
            met_conflict: Cell::new(false),
            state: PooledState::begin(snapshot, catalog_version, engine.id),
            engine_ref,
        })
    }

    /// Begins a read-only transaction with the same snapshot. See
    /// `query_layer::TransactionExt::share_snapshot`.
    pub(crate) fn share_snapshot(&self) -> Result<Option<Transaction>> {
        let engine = self.engine();
        engine.check_open()?;
        let state = self.state.borrow();
        let moves = self.is_read_committed() && state.statement_depth == 0;
        let is_own = state.writer.is_some() || state.tracked_since.is_some();
        if moves || is_own || self.tracks_reads() {
            return Ok(None);
        }
        // This transaction is open, so the environment is not closed meanwhile.
        let Some(slot) = engine.transactions.copy_snapshot(self.slot) else { return Ok(None) };
        Ok(Some(Transaction {
            engine_ref: self.engine_ref.clone(),
            slot,
            read_only: true,
            refuses_changes: Cell::new(true),
            isolation: self.isolation,
            durability: Cell::new(self.durability.get()),
            lock_timeout: Cell::new(self.lock_timeout.get()),
            tracking: Cell::new(false),
            expiry: Cell::new(self.expiry.get()),
            met_conflict: Cell::new(false),
            state: PooledState::begin(state.snapshot, state.catalog_version, engine.id),
        }))
    }

    /// Marks a point to roll back to.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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

    /// See `query_layer::TransactionExt::change_count`.
    pub(crate) fn change_count(&self) -> usize {
        let state = self.state.borrow();
        state.writer.as_deref().map_or(0, TransactionRecord::entries)
    }

    /// Undoes every change made since the savepoint. The savepoint stays valid; savepoints made
    /// after it do not.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
            // The undone call returned whether the record existed, which is a read.
            for number in savepoint.entries..writer.entries() {
                let Some(replaced) = writer.entry(number)? else { break };
                if let Some(tree) = self.engine().tree(replaced.tree) {
                    state.reads.undone(tree, &replaced.key);
                }
            }
        }
        state.inconsistent = true;
        self.undo_to(state, &writer, savepoint.entries)?;
        state.inconsistent = false;
        if self.engine().log.is_some() {
            state.redo.roll_back_to(savepoint.redo);
        }
        // Drop the tasks deferred since; free the chains and trees created since when the
        // transaction ends.
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// let savepoint = transaction.savepoint()?;
    /// fruit.put(&transaction, b"pear", b"green")?;
    /// transaction.release_savepoint(savepoint);
    /// assert!(transaction.rollback_to(savepoint).is_err());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn release_savepoint(&self, savepoint: Savepoint) {
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

    /// Returns an error if a rollback to a savepoint, or a long value on its way to the log, failed
    /// half-way.
    fn check_consistent(state: &State) -> Result<()> {
        if state.redo.is_torn() {
            return Err(Error::misuse(
                "the log took only a part of a long value; abort the transaction",
            ));
        }
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// fruit.put(&transaction, b"apple", b"red")?;
    /// transaction.abort()?;
    /// assert!(!fruit.exists(&environment.begin_read()?, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn abort(self) -> Result<()> {
        self.end_aborted().inspect_err(|error| self.engine().fail(error))
    }

    /// Returns whether the transaction's slot keeps the versions that its snapshot sees (TXN-1). An
    /// expired snapshot keeps none, and its call fails.
    fn is_snapshot_kept(&self, state: &State) -> bool {
        let kept = self.engine().transactions.snapshots.kept_from(self.slot);
        match state.tracked_since {
            None => kept.is_none_or(|kept| kept == state.snapshot),
            Some(_) => kept.is_none_or(|kept| kept <= state.snapshot),
        }
    }

    fn engine(&self) -> &Engine {
        &self.engine_ref.engine
    }

    /// Returns the id of the transaction's environment.
    pub(crate) fn environment_id(&self) -> u64 {
        self.engine_ref.engine.id
    }

    /// Records an error of a call, for statistics and for
    /// [`Environment::transact_with`](crate::Environment::transact_with).
    #[cold]
    fn note_failure(&self, error: &Error) {
        if error.is_retryable() {
            self.met_conflict.set(true);
            self.engine().counters.count_failure(error);
        }
    }

    /// Returns whether a call failed with a [retryable](Error::is_retryable) error.
    pub(crate) fn has_met_conflict(&self) -> bool {
        self.met_conflict.get()
    }

    /// Returns whether the transaction refuses changes.
    #[inline]
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.refuses_changes.get()
    }

    /// See `query_layer::TransactionExt::set_change_access`.
    pub(crate) fn set_change_access(&self, access: ChangeAccess) -> ChangeAccess {
        let refuses = self.read_only || access == ChangeAccess::Refused;
        match self.refuses_changes.replace(refuses) {
            true => ChangeAccess::Refused,
            false => ChangeAccess::Allowed,
        }
    }

    pub(crate) fn is_read_committed(&self) -> bool {
        self.isolation == Isolation::ReadCommitted && !self.read_only
    }

    /// See `query_layer::TransactionExt::begin_statement`.
    #[inline]
    pub(crate) fn begin_statement(&self) {
        if self.is_read_committed() {
            self.begin_call();
            self.state.borrow_mut().statement_depth += 1;
        }
    }

    /// See `query_layer::TransactionExt::end_statement`.
    #[inline]
    pub(crate) fn end_statement(&self) {
        self.state.clear_interrupt();
        if self.is_read_committed() {
            let state = &mut *self.state.borrow_mut();
            state.statement_depth = state.statement_depth.saturating_sub(1);
        }
    }

    /// Takes a new snapshot under read committed, at the start of each call (TXN-1), before names
    /// are resolved.
    #[inline]
    pub(crate) fn begin_call(&self) {
        if self.is_read_committed() {
            self.move_snapshot_to_call();
        }
    }

    /// See `query_layer::TransactionExt::renew_snapshot`.
    pub(crate) fn renew_snapshot(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.reads.is_empty() && state.tracked_since.is_none() {
            self.move_snapshot(state);
        }
    }

    #[inline(never)]
    fn move_snapshot_to_call(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.statement_depth > 0 {
            return;
        }
        self.move_snapshot(state);
    }

    /// Moves the snapshot to the newest commit.
    fn move_snapshot(&self, state: &mut State) {
        let transactions = &self.engine().transactions;
        state.snapshot = match state.tracked_since {
            None => self.refresh_snapshot(),
            // The slot keeps the first snapshot, so that versions needed by validation stay.
            Some(_) => transactions.newest_commit.load(Ordering::SeqCst),
        };
        let version = self.engine().catalog_version_for(state.snapshot);
        if version.is_none() || version != state.catalog_version {
            state.catalog_version = version;
            state.names_moved |= !state.used.databases().is_empty();
            state.resolved.clear();
        }
    }

    /// Moves the snapshot that the slot keeps to the newest commit.
    #[inline]
    fn refresh_snapshot(&self) -> Timestamp {
        let engine = self.engine();
        let (snapshots, newest) =
            (&engine.transactions.snapshots, &engine.transactions.newest_commit);
        match self.expiry.get() {
            Expiry::Never => snapshots.refresh(self.slot, newest),
            Expiry::Pinned => snapshots.refresh_pinned(self.slot, newest),
            Expiry::Possible => {
                snapshots.set_time(self.slot, engine.snapshot_time());
                snapshots.refresh(self.slot, newest)
            }
        }
    }

    /// Ends a call that reads: returns its result, or an error if the snapshot has expired,
    /// whatever the call read from it (SNAP-3).
    #[inline]
    fn unless_expired<T>(&self, result: Result<T>) -> Result<T> {
        if self.expiry.get() == Expiry::Possible
            && self.engine().transactions.snapshots.is_expired(self.slot)
        {
            self.note_failure(&Error::SnapshotTooOld);
            return Err(Error::SnapshotTooOld);
        }
        // A copy of the whole result would wait for the stores of its parts.
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(error),
        }
    }

    /// Waits for the undo limit and pins the snapshot, as the environment's options require, before
    /// the first change (LIMIT-2, SNAP-3).
    #[cold]
    fn prepare_first_write(&self, state: &State) -> Result<()> {
        invariant!(
            LIMIT_2,
            state.redo.position() == 0,
            "a transaction with changes waits for the undo limit"
        );
        let engine = self.engine();
        if engine.old_snapshots.limits_undo {
            let interrupt = self.state.interrupt();
            let timeout = self.lock_timeout.get();
            engine.wait_for_undo(state.snapshot, timeout, interrupt.as_deref())?;
        }
        if self.expiry.get() == Expiry::Possible {
            if !engine.transactions.snapshots.pin(self.slot) {
                return Err(Error::SnapshotTooOld);
            }
            self.expiry.set(Expiry::Pinned);
        }
        Ok(())
    }

    /// Returns whether reads are added to the read set for validation.
    #[inline]
    fn tracks_reads(&self) -> bool {
        !self.read_only && (self.isolation == Isolation::Serializable || self.tracking.get())
    }

    /// See `query_layer::TransactionExt::track_reads`.
    pub(crate) fn track_reads(&self, tracking: ReadTracking) -> ReadTracking {
        let is_on = tracking == ReadTracking::On;
        let was_on = self.tracking.replace(is_on);
        if is_on && !was_on && self.isolation != Isolation::Serializable {
            self.begin_call();
            let state = &mut *self.state.borrow_mut();
            if state.tracked_since.is_none() {
                // Later calls read newer snapshots, and the slot keeps this one (`begin_call`).
                self.engine().transactions.snapshots.keep_newer(self.slot);
                state.tracked_since = Some(state.snapshot);
            }
        }
        if was_on { ReadTracking::On } else { ReadTracking::Off }
    }

    /// Sets how long later calls wait for records locked by others. Returns the previous timeout.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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

    /// Sets what [`commit`](Self::commit) waits for. Returns the previous durability. An error if
    /// the environment has a log and the durability does without, or the other way round.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// use quickbeam::Durability;
    ///
    /// let transaction = environment.begin()?;
    /// assert_eq!(transaction.set_durability(Durability::InMemory)?, Durability::InMemory);
    /// assert!(transaction.set_durability(Durability::Sync).is_err());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn set_durability(&self, durability: Durability) -> Result<Durability> {
        check_durability(self.engine(), durability)?;
        Ok(self.durability.replace(durability))
    }

    /// See `query_layer::TransactionExt::interrupt_on`.
    #[inline]
    pub(crate) fn interrupt_on(&self, flag: &Arc<AtomicBool>) {
        self.state.interrupt_on(flag);
    }

    fn end_aborted(&self) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        if state.finished {
            return Ok(());
        }
        state.finished = true;
        let engine = self.engine();
        let undone = match state.writer.take() {
            Some(writer) => {
                engine.counters.aborts.fetch_add(1, Ordering::Relaxed);
                let undone = self.undo_to(state, &writer, 0);
                engine.transactions.snapshots.release(self.slot);
                if undone.is_ok() {
                    engine.transactions.finish(writer, Outcome::Aborted);
                }
                undone
            }
            None => {
                engine.transactions.snapshots.release(self.slot);
                Ok(())
            }
        };
        for tree in state.created.drain(..) {
            engine.forget_tree(tree);
        }
        undone
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Err(error) = self.end_aborted() {
            // Records that could not be restored must not be read by later writes: refuse writes.
            self.engine().fail(&error);
        }
    }
}
