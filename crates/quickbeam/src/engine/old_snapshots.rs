//! Limits on old snapshots: their age, and the undo entries that they hold in memory.
//!
//! Above: the background thread, and transactions before their first change. Below: snapshot slots
//! and the transaction table. Old versions stay in memory while a snapshot sees them. Two options
//! bound that: [`Options::reader_max_age`] expires snapshots by age, and [`Options::undo_limit`]
//! either expires the oldest ones or delays writers, as [`Options::undo_policy`] says.
//!
//! - LIMIT-1: only the snapshot of a transaction without changes expires (SNAP-3). Its calls fail
//!   with [`Error::SnapshotTooOld`] from then on.
//! - LIMIT-2: a transaction waits for the undo limit only before its first change, so that it holds
//!   no record that another one waits for. It does not wait if its own snapshot is the oldest.
//!
//! [`Options::reader_max_age`]: crate::Options::reader_max_age
//! [`Options::undo_limit`]: crate::Options::undo_limit
//! [`Options::undo_policy`]: crate::Options::undo_policy
//! [`Error::SnapshotTooOld`]: crate::Error::SnapshotTooOld

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::Engine;
use crate::error::{Error, Result};
use crate::options::{Options, UndoPolicy};
use crate::vfs::{Event, Vfs};

/// First changes of transactions between two checks of the undo limit. The simulation has few.
const FIRST_CHANGES_PER_CHECK: u64 = if cfg!(feature = "simulation") { 2 } else { 512 };

/// How often a delayed writer checks for an interruption.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(10);

/// The state of the limits on old snapshots.
pub struct OldSnapshots {
    /// Snapshots of transactions without changes may expire.
    pub may_expire: bool,
    /// Transactions call [`Engine::wait_for_undo`] before their first change.
    pub limits_undo: bool,
    /// Writers are delayed.
    is_over: AtomicBool,
    /// Wakes delayed writers.
    relief: Arc<dyn Event>,
    /// First changes of transactions so far.
    first_changes: AtomicU64,
    /// Snapshots expired.
    pub expired: AtomicU64,
    /// Transactions delayed.
    pub delayed: AtomicU64,
}

impl OldSnapshots {
    pub fn new(options: &Options, vfs: &dyn Vfs) -> OldSnapshots {
        let limits_undo = options.undo_limit.is_some();
        let expires_for_undo = limits_undo && options.undo_policy == UndoPolicy::ExpireReaders;
        OldSnapshots {
            may_expire: options.reader_max_age.is_some() || expires_for_undo,
            limits_undo,
            is_over: AtomicBool::new(false),
            relief: vfs.event(),
            first_changes: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
        }
    }
}

impl Engine {
    /// Returns the time at which a transaction takes its snapshot: exact if snapshots expire by
    /// age.
    #[inline]
    pub fn snapshot_time(&self) -> Duration {
        match self.options.reader_max_age {
            Some(_) => self.vfs.now(),
            None => self.recent_time(),
        }
    }

    /// Expires snapshots and delays writers as the options say. Called by the background thread.
    pub fn limit_old_snapshots(&self) {
        if let Some(age) = self.options.reader_max_age
            && let Some(oldest) = self.vfs.now().checked_sub(age)
        {
            let expired = self.transactions.snapshots.expire_before(oldest.as_millis() as u64);
            if expired > 0 {
                self.old_snapshots.expired.fetch_add(expired as u64, Ordering::Relaxed);
                self.transactions.look_after();
            }
        }
        if let Some(limit) = self.options.undo_limit {
            self.limit_undo(limit);
        }
    }

    fn limit_undo(&self, limit: u64) {
        let is_over = || self.transactions.committed_undo_bytes() > limit;
        match self.options.undo_policy {
            UndoPolicy::ExpireReaders => {
                let transactions = &self.transactions;
                while is_over() && transactions.snapshots.expire_oldest(&transactions.newest_commit)
                {
                    self.old_snapshots.expired.fetch_add(1, Ordering::Relaxed);
                    transactions.look_after();
                }
            }
            UndoPolicy::DelayWriters => {
                let is_over = is_over();
                let was_over = self.old_snapshots.is_over.swap(is_over, Ordering::Relaxed);
                if was_over && !is_over {
                    self.old_snapshots.relief.notify();
                }
            }
        }
    }

    /// Waits until undo is below its limit (LIMIT-2). `snapshot` is the caller's own.
    pub fn wait_for_undo(
        &self,
        snapshot: u64,
        timeout: Duration,
        interrupt: Option<&AtomicBool>,
    ) -> Result<()> {
        let limits = &self.old_snapshots;
        let changes = limits.first_changes.fetch_add(1, Ordering::Relaxed);
        if changes.is_multiple_of(FIRST_CHANGES_PER_CHECK) {
            self.pool.frames_wanted.notify();
        }
        if !limits.is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        limits.delayed.fetch_add(1, Ordering::Relaxed);
        let started = self.vfs.now();
        loop {
            let seen = limits.relief.generation();
            let oldest = self.transactions.snapshots.oldest();
            if !limits.is_over.load(Ordering::Relaxed)
                || oldest.is_none_or(|oldest| oldest >= snapshot)
            {
                return Ok(());
            }
            self.check_failed()?;
            if interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Err(Error::Interrupted);
            }
            let waited = self.vfs.now().saturating_sub(started);
            let left = timeout.saturating_sub(waited);
            if left.is_zero() {
                return Err(Error::UndoLimit { waited_ms: waited.as_millis() as u64 });
            }
            limits.relief.wait(seen, Some(left.min(INTERRUPT_INTERVAL)));
        }
    }
}
