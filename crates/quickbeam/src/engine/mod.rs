//! The engine: the components of an open environment, assembled.
//!
//! Above: transactions, the environment's handles and the data store. Below: every component. Opens
//! and recovers the files, runs the background threads, checkpoints and closes.
//!
//! - ENV-1: one open environment per directory, guarded by the lock file.

mod background;
mod backup;
mod compaction;
mod deferred_work;
mod lifetime;
pub mod lock_file;
mod old_snapshots;
mod open;
mod statistics;
mod verify;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::sync::locks::{Mutex, RwLock};

use crate::access::btree::{Tree, Versioning};
use crate::access::hash::BucketDirectory;
use crate::buffer::Pool;
use crate::checkpoint::{CheckpointKind, Checkpointer, EpochStart};
use crate::error::{Error, Result};
use crate::latency::Latencies;
use crate::mvcc::{DeferredTask, ReplacedChains, Timestamp, TransactionTable};
use crate::options::{AccessMethod, Options};
use crate::temporary::TemporaryFiles;
use crate::vfs::{Event, File, Vfs};
use crate::wal::Log;

pub use backup::BackupReport;
pub use compaction::{CompactionReport, MOVING_ROUNDS, move_pages};
pub use lifetime::{EngineLifetime, EngineRef, ShardedEngineRef};
use old_snapshots::OldSnapshots;
pub use open::{Access, Opened, open, open_data_file};
pub use statistics::{Statistics, pool_statistics, sample_trees};
pub use verify::VerifyReport;
pub use verify::verify_pages;

/// Counters of transactions. [`Snapshots`](crate::mvcc::Snapshots) counts the commits.
///
/// Each failure is counted where the transaction meets it, not on the path of a call that succeeds.
#[derive(Default)]
pub struct TransactionCounters {
    pub aborts: AtomicU64,
    pub write_conflicts: AtomicU64,
    pub serialization_failures: AtomicU64,
    pub deadlocks: AtomicU64,
    pub lock_timeouts: AtomicU64,
    /// Transactions that [`Environment::transact`](crate::Environment::transact) began again.
    pub retries: AtomicU64,
    /// How long commits waited for the log.
    pub commit_wait: Latencies,
}

impl TransactionCounters {
    /// Counts a retryable error that a transaction met; ignores other errors.
    #[cold]
    pub fn count_failure(&self, error: &Error) {
        let counter = match error {
            Error::WriteConflict => &self.write_conflicts,
            Error::SerializationFailure => &self.serialization_failures,
            Error::Deadlock => &self.deadlocks,
            Error::LockTimeout { .. } => &self.lock_timeouts,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The components of an open environment.
pub struct Engine {
    /// Differs between any two open environments of a process.
    pub id: u64,
    pub path: Option<PathBuf>,
    pub options: Options,
    pub vfs: Arc<dyn Vfs>,
    pub transactions: Arc<TransactionTable>,
    pub pool: Pool,
    pub log: Option<Log>,
    /// Serializes commits if there is no log.
    pub commit_lock: Mutex<()>,
    pub checkpointer: Checkpointer,
    pub catalog: Tree,
    /// The environment is open for reading only: it refuses changes and writes no files.
    pub is_read_only: bool,
    /// Timestamp of the newest commit that changed the catalog.
    pub catalog_version: AtomicU64,
    pub counters: TransactionCounters,
    pub old_snapshots: OldSnapshots,
    incarnation: u32,
    /// Creates temporary files; `None` in memory, or if the environment is open for reading only.
    pub temporary_files: Option<Arc<TemporaryFiles>>,
    /// Sorted by number, so that checkpoints list them in the same order in every simulation run.
    trees: RwLock<BTreeMap<u32, Tree>>,
    /// Trees that are being freed; a purge skips them, and holds the lock for reading.
    freeing_trees: RwLock<HashSet<u32>>,
    next_tree: AtomicU32,
    /// Directories of the hash trees opened so far.
    directories: Mutex<BTreeMap<u32, Arc<BucketDirectory>>>,
    /// Time of the VFS in milliseconds, as of the last round of the eviction thread.
    recent_ms: AtomicU64,
    failure: Mutex<Option<String>>,
    failed: AtomicBool,
    closed: AtomicBool,
    /// Held by the thread that closes the environment, until closing succeeds or fails.
    ending: Mutex<()>,
    stop: AtomicBool,
    /// Held by the thread that compacts the environment.
    compacting: Mutex<()>,
    /// Wakes the checkpoint thread.
    checkpoint_wanted: Arc<dyn Event>,
    /// Wakes the compaction thread when the environment closes.
    compaction_wanted: Arc<dyn Event>,
    /// The lock file, which keeps the directory locked until the environment is closed.
    lock: Mutex<Option<Arc<dyn File>>>,
}

impl Engine {
    /// Returns the number of this opening of the environment.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Returns an error if the environment is closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) { self.check_closed() } else { Ok(()) }
    }

    #[cold]
    fn check_closed(&self) -> Result<()> {
        // Wait for a running close: it leaves the environment open if it fails. Look before another
        // close may begin.
        let _ending = self.ending.lock();
        if !self.closed.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.check_failed()?;
        Err(Error::misuse("the environment is closed; open it again"))
    }

    /// Returns an error if the environment has failed and must refuse writes.
    #[inline]
    pub fn check_failed(&self) -> Result<()> {
        if let Some(log) = &self.log {
            log.check()?;
        }
        if self.failed.load(Ordering::Acquire) {
            let reason = self.failure.lock().clone().unwrap_or_default();
            return Err(Error::Failed { reason: reason.into() });
        }
        Ok(())
    }

    /// Makes the environment refuse writes; keeps the first reason.
    pub fn fail(&self, reason: &Error) {
        self.failure.lock().get_or_insert_with(|| reason.to_string());
        self.failed.store(true, Ordering::Release);
    }

    /// Returns the tree with number `id`, or `None` if it was freed.
    pub fn tree(&self, id: u32) -> Option<Tree> {
        self.trees.read().get(&id).copied()
    }

    /// Returns the time to within 100 ms, without a call of the clock. Used for transaction ages.
    #[inline]
    pub fn recent_time(&self) -> Duration {
        Duration::from_millis(self.recent_ms.load(Ordering::Relaxed))
    }

    /// Updates [`recent_time`](Self::recent_time) from the clock.
    fn note_time(&self) {
        self.recent_ms.store(self.vfs.now().as_millis() as u64, Ordering::Relaxed);
    }

    /// Creates a tree that no name refers to yet.
    pub fn make_tree(&self, stripe: usize, method: AccessMethod) -> Result<Tree> {
        let id = self.next_tree.fetch_add(1, Ordering::Relaxed);
        let change_guard = self.pool.enter(stripe);
        let tree = Tree::create(&self.pool, &change_guard, id, method, Versioning::Versioned)?;
        self.trees.write().insert(id, tree);
        Ok(tree)
    }

    /// Returns the directory of a hash tree, which all its handles share, or `None` for a B+tree.
    pub fn directory(&self, tree: Tree) -> Option<Arc<BucketDirectory>> {
        if tree.method.is_ordered() {
            return None;
        }
        let mut directories = self.directories.lock();
        Some(directories.entry(tree.id).or_insert_with(|| Arc::new(BucketDirectory::new())).clone())
    }

    /// Queues a tree that no name refers to for freeing.
    pub fn forget_tree(&self, tree: Tree) {
        self.transactions.put_back(DeferredTask::FreeTree(tree.id));
    }

    /// Returns the catalog's version if the snapshot includes it. Names resolved at one version are
    /// valid for every transaction of that version.
    #[inline]
    pub fn catalog_version_for(&self, snapshot: Timestamp) -> Option<u64> {
        let version = self.catalog_version.load(Ordering::SeqCst);
        (version <= snapshot).then_some(version)
    }

    /// Writes a checkpoint now. After a final one the next opening does not read the log.
    pub fn checkpoint(&self, kind: CheckpointKind) -> Result<()> {
        let fix = || {
            let buffer = self.log.as_ref().map(Log::lock);
            let alone = self.log.is_none().then(|| self.commit_lock.lock());
            let active = self.transactions.active();
            // Without a log the position stays: a log opened later continues after the old records.
            let last = self.checkpointer.counters.log_position.load(Ordering::Relaxed);
            let log_position = buffer.as_ref().map_or(last, |buffer| buffer.end);
            let fragments = active.values().map(|(writer, _)| writer.first_fragment()).min();
            let state = EpochStart {
                timestamp: self.transactions.newest_commit.load(Ordering::SeqCst),
                log_position,
                log_start: fragments.unwrap_or(log_position).min(log_position),
                trees: self.trees.read().values().copied().collect(),
                dead_chains: self.transactions.dead_chains(ReplacedChains::Excluded),
                active,
            };
            drop((buffer, alone));
            state
        };
        let log = self.log.as_ref();
        self.checkpointer.run(&self.pool, log, self.incarnation, kind, fix).inspect_err(|error| {
            if !matches!(error, Error::DiskFull { .. }) {
                self.fail(error);
            }
        })
    }

    fn wake_all(&self) {
        self.checkpoint_wanted.notify();
        self.compaction_wanted.notify();
        self.pool.frames_wanted.notify();
        if let Some(log) = &self.log {
            log.background.notify();
        }
    }
}
