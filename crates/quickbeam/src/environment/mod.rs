//! Environments: a directory (or memory) with databases, a log and background threads.
//!
//! Above: the user. Below: every other module; the environment assembles them.
//!
//! - ENV-1: one open environment per directory, guarded by the lock file.
//! - ENV-2: the environment closes when its last handle and its last transaction are dropped;
//!   closing writes a checkpoint.

mod background;
mod free_trees;
mod old_snapshots;
mod open;
mod retry;
mod statistics;
mod temporary;
mod verify;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::sync::locks::{Mutex, RwLock};

use crate::access::btree::Tree;
use crate::access::hash::BucketDirectory;
use crate::buffer::Pool;
use crate::checkpoint::{Checkpointer, FlipState};
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::latency::Latencies;
use crate::mvcc::{DeferredTask, Timestamp, TransactionTable};
use crate::options::{AccessMethod, Durability, Options, TransactionOptions};
use crate::sync::shard;
use crate::transaction::{Database, Snapshot, Transaction};
use crate::vfs::{Event, File, MemoryVfs, OsVfs, Task, Vfs};
use crate::wal::Log;

use old_snapshots::OldSnapshots;
pub(crate) use open::{Access, Opened, open_data_file};
pub use open::{DATA_FILE, LOCK_FILE, LOG_DIRECTORY};
pub use statistics::{Statistics, pool_statistics, sample_trees};
pub use temporary::TemporaryFile;
pub use verify::VerifyReport;
pub(crate) use verify::verify_pages;

/// Number of the catalog's tree, which maps names to trees.
pub const CATALOG_TREE: u32 = 1;

/// Number of reference counters over which threads spread the transactions that they begin.
const HOLDS: usize = 64;

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
    /// Transactions that [`Environment::transact`] began again.
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
    pub registry: Arc<TransactionTable>,
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
    /// Temporary files created since opening; gives each its name.
    temporary_files: AtomicU64,
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
    /// Wakes the checkpoint thread.
    checkpoint_wanted: Arc<dyn Event>,
    /// The lock file, which keeps the directory locked until the environment is closed.
    lock: Mutex<Option<Arc<dyn File>>>,
}

/// Shared by handles and transactions; closes the environment when the last of them is dropped.
pub struct EngineLifetime {
    inner: Arc<Engine>,
    tasks: Mutex<Vec<Box<dyn Task>>>,
}

/// A transaction's reference to the environment, which keeps it open. There are several, so that
/// each thread counts its references on another cache line.
pub struct EngineRef {
    pub inner: Arc<Engine>,
    /// Closes the environment when the last reference is dropped (ENV-2).
    shared: Arc<EngineLifetime>,
}

/// An [`EngineRef`] alone on a cache line with its reference count.
pub type ShardedEngineRef = Arc<CachePadded<EngineRef>>;

/// A Transactional Data Store: named databases with ACID transactions. A clone is another handle to
/// the same environment.
///
/// ```
/// # fn main() -> quickbeam::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// let environment = quickbeam::Environment::open(directory.path(), quickbeam::Options::default())?;
/// let fruit = environment.create_database("fruit")?;
/// let transaction = environment.begin()?;
/// fruit.put(&transaction, b"apple", b"red")?;
/// assert_eq!(fruit.get(&transaction, b"apple")?.as_deref(), Some(&b"red"[..]));
/// transaction.commit()?;
/// environment.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Environment {
    holds: Arc<[ShardedEngineRef]>,
}

impl Environment {
    /// Opens the environment in a directory, and recovers it if it was not closed. Creates one if
    /// there is none and [`Options::create`] is set.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use quickbeam::{Environment, Options};
    ///
    /// let options = Options::new().cache_size(256 << 20);
    /// let environment = Environment::open(directory.path(), options)?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Environment> {
        Environment::open_in(Arc::new(OsVfs::new()), Some(path.as_ref()), options)
    }

    /// Creates an environment without a directory. Its durability is
    /// [`InMemory`](crate::Durability::InMemory).
    ///
    /// ```
    /// let environment = quickbeam::Environment::memory(quickbeam::Options::default())?;
    /// let fruit = environment.create_database("fruit")?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn memory(options: Options) -> Result<Environment> {
        Environment::open_in(Arc::new(MemoryVfs::new()), None, options)
    }

    /// Opens an environment whose files, clock and threads are those of `vfs`. Without a `path` it
    /// has no directory.
    pub fn open_in(
        vfs: Arc<dyn Vfs>,
        path: Option<&Path>,
        options: Options,
    ) -> Result<Environment> {
        Environment::open_for(Access::Write, vfs, path, options)
    }

    /// Opens the environment in a directory for reading only. Works on read-only media, without
    /// write permission and on a full device; fails if the directory is open for writing.
    ///
    /// Writes, creates and removes no files. An environment that was not closed is recovered in
    /// memory; fails with [`Error::Limit`] if the changed pages exceed [`Options::cache_size`]
    /// bytes. Changes fail with [`Error::ReadOnlyEnvironment`].
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Environment> {
        Environment::open_read_only_in(Arc::new(OsVfs::new()), path.as_ref(), options)
    }

    /// As [`open_read_only`](Self::open_read_only), with the files, clock and threads of `vfs`.
    pub fn open_read_only_in(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        options: Options,
    ) -> Result<Environment> {
        Environment::open_for(Access::Read, vfs, Some(path), options)
    }

    fn open_for(
        access: Access,
        vfs: Arc<dyn Vfs>,
        path: Option<&Path>,
        options: Options,
    ) -> Result<Environment> {
        let inner = Arc::new(open::open(vfs, path, options, access)?);
        let tasks = background::start(&inner)?;
        let shared = Arc::new(EngineLifetime { inner: inner.clone(), tasks: Mutex::new(tasks) });
        let hold = || EngineRef { inner: inner.clone(), shared: shared.clone() };
        let holds = (0..HOLDS).map(|_| Arc::new(CachePadded::new(hold()))).collect();
        Ok(Environment { holds })
    }

    pub(crate) fn inner(&self) -> &Engine {
        &self.holds[0].inner
    }

    /// Begins a transaction with the environment's isolation and durability.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// let transaction = environment.begin()?;
    /// fruit.put(&transaction, b"apple", b"red")?;
    /// transaction.commit()?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Returns whether the environment is open for reading only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.inner().is_read_only
    }

    /// Returns the durability of transactions that do not set their own.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.inner().options.durability
    }

    /// Begins a transaction with its own settings.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// use quickbeam::{Isolation, TransactionOptions};
    ///
    /// let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
    /// let transaction = environment.begin_with(options)?;
    /// assert_eq!(transaction.isolation(), Isolation::ReadCommitted);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        let hold = &self.holds[shard::thread_shard() % HOLDS];
        Transaction::begin(hold.clone(), &options)
    }

    /// Returns a read-only snapshot of the committed state. It never waits for a transaction and is
    /// aborted only if the options limit old snapshots.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// let snapshot = environment.begin_read()?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// assert_eq!(fruit.get(&snapshot, b"apple")?, None);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn begin_read(&self) -> Result<Snapshot> {
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        Ok(Snapshot::new(self.begin_with(options)?))
    }

    /// Creates a B+tree database in a transaction of its own. Fails if the name exists.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// let fruit = environment.create_database("fruit")?;
    /// assert!(environment.create_database("fruit").is_err());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn create_database(&self, name: &str) -> Result<Database> {
        self.transact(|transaction| transaction.create_database(name))?;
        self.open_database(name)
    }

    /// Creates a database with an access method in a transaction of its own.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// use quickbeam::AccessMethod;
    ///
    /// let sessions = environment.create_database_as("sessions", AccessMethod::Hash)?;
    /// assert_eq!(sessions.access_method(), AccessMethod::Hash);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn create_database_as(&self, name: &str, method: AccessMethod) -> Result<Database> {
        self.transact(|transaction| transaction.create_database_as(name, method))?;
        self.open_database(name)
    }

    /// Opens a database. Fails with [`Error::NoSuchDatabase`] if there is none with that name.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// environment.create_database("fruit")?;
    /// let fruit = environment.open_database("fruit")?;
    /// assert_eq!(fruit.name(), "fruit");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn open_database(&self, name: &str) -> Result<Database> {
        self.begin_read()?.open_database(name)
    }

    /// Opens a database, or creates a B+tree database with that name.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// let first = environment.open_or_create_database("fruit")?;
    /// let second = environment.open_or_create_database("fruit")?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn open_or_create_database(&self, name: &str) -> Result<Database> {
        match self.open_database(name) {
            Err(Error::NoSuchDatabase { .. }) => {}
            result => return result,
        }
        match self.create_database(name) {
            Err(Error::DatabaseExists { .. }) => self.open_database(name),
            result => result,
        }
    }

    /// Returns the names of all databases in order.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// environment.create_database("nuts")?;
    /// environment.create_database("fruit")?;
    /// assert_eq!(environment.databases()?, ["fruit", "nuts"]);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn databases(&self) -> Result<Vec<String>> {
        self.begin_read()?.databases()
    }

    /// Removes a database and its records in a transaction of its own.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.drop_database("fruit")?;
    /// assert!(environment.databases()?.is_empty());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn drop_database(&self, name: &str) -> Result<()> {
        self.transact(|transaction| transaction.drop_database(name))
    }

    /// Renames a database in a transaction of its own.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.rename_database("fruit", "vegetables")?;
    /// assert_eq!(environment.databases()?, ["vegetables"]);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn rename_database(&self, from: &str, to: &str) -> Result<()> {
        self.transact(|transaction| transaction.rename_database(from, to))
    }

    /// Removes all records of a database in a transaction of its own.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// environment.empty_database("fruit")?;
    /// assert!(!fruit.exists(&environment.begin_read()?, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn empty_database(&self, name: &str) -> Result<()> {
        self.transact(|transaction| transaction.empty_database(name))
    }

    /// Writes a checkpoint and releases the log and data-file space that it makes free.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// environment.checkpoint()?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn checkpoint(&self) -> Result<()> {
        let inner = self.inner();
        inner.check_open()?;
        inner.check_failed()?;
        if inner.is_read_only {
            return Err(Error::ReadOnlyEnvironment);
        }
        // Run deferred work first, so that the checkpoint does not keep pages that no snapshot
        // needs.
        inner.registry.look_after();
        inner.run_deferred(usize::MAX)?;
        inner.checkpoint(false, false)?;
        // Blocks that only the previous checkpoint used are free now; truncate those at the file's
        // end.
        inner.pool.shrink_file()
    }

    /// Returns counters and sizes since opening.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// assert!(environment.statistics().commits >= 1);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner().statistics()
    }

    /// Checks every page: order, structure, reachability and space. Changes wait while it runs.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// let report = environment.verify()?;
    /// assert!(report.complaints.is_empty());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        self.inner().verify()
    }

    /// Closes the environment with a checkpoint, for all its handles. It stays open, for the other
    /// handles, while transactions are open and when the device has no room for the checkpoint. Any
    /// other error closes it for good and says that the newest commits may be missing: opening it
    /// again recovers what was logged.
    ///
    /// A handle that closes an environment which is closed already gets the error of the first
    /// closing, if it had one. Dropping the last handle closes the environment too, but only prints
    /// an error.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// let transaction = environment.begin()?;
    /// assert!(environment.clone().close().is_err());
    /// transaction.commit()?;
    /// environment.close()?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn close(self) -> Result<()> {
        self.holds[0].shared.end(true)
    }
}

impl EngineLifetime {
    /// Stops the background threads and writes the last checkpoint, once. With `may_go_on` the
    /// environment stays open if the device is full.
    fn end(&self, may_go_on: bool) -> Result<()> {
        let inner = &self.inner;
        // A thread that begins a transaction or closes at the same time waits for the outcome.
        let _ending = inner.ending.lock();
        if inner.closed.load(Ordering::SeqCst) {
            return inner.check_failed();
        }
        inner.closed.store(true, Ordering::SeqCst);
        let (open, _) = inner.registry.snapshots.census();
        if open > 0 {
            inner.closed.store(false, Ordering::SeqCst);
            return Err(Error::misuse(format!(
                "{open} transactions are open; commit or abort them before closing"
            )));
        }
        let ended = self.wind_up();
        if let Err(error) = &ended {
            if may_go_on && matches!(error, Error::DiskFull { .. }) && self.go_on() {
                inner.closed.store(false, Ordering::SeqCst);
                return ended;
            }
            inner.fail(error);
        }
        // Unlock the directory, even if other handles exist.
        drop(inner.lock.lock().take());
        ended
    }

    fn wind_up(&self) -> Result<()> {
        let inner = &self.inner;
        inner.stop.store(true, Ordering::SeqCst);
        inner.wake_all();
        for task in self.tasks.lock().drain(..) {
            task.join();
        }
        if inner.is_read_only {
            return Ok(());
        }
        if planted(Canary::CloseSilent) && inner.check_failed().is_err() {
            return Ok(());
        }
        // Report a failure of a background thread: no other call does.
        inner.check_failed()?;
        if inner.path.is_none() {
            // An environment in memory writes no checkpoint.
            return Ok(());
        }
        inner.registry.look_after();
        inner.run_deferred(usize::MAX)?;
        inner.checkpoint(true, false)
    }

    /// Restarts the background threads after closing failed on a full device. Returns false if the
    /// meta page marked clean is durable already: the next opening would not read the log.
    fn go_on(&self) -> bool {
        let inner = &self.inner;
        if inner.checkpointer.is_clean() {
            return false;
        }
        inner.stop.store(false, Ordering::SeqCst);
        match background::start(inner) {
            Ok(tasks) => *self.tasks.lock() = tasks,
            Err(_) => {
                // The threads that did start stop by themselves.
                inner.stop.store(true, Ordering::SeqCst);
                inner.wake_all();
                return false;
            }
        }
        true
    }
}

impl Drop for EngineLifetime {
    fn drop(&mut self) {
        if self.inner.closed.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.end(false) {
            let outlook = match self.inner.log {
                Some(_) => "it recovers when it is opened again",
                None => "without a log, the next opening finds its last checkpoint",
            };
            eprintln!("quickbeam: closing the environment: {error}; {outlook}");
        }
    }
}

impl Engine {
    /// Returns an error if the environment is closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) { self.check_closed() } else { Ok(()) }
    }

    #[cold]
    fn check_closed(&self) -> Result<()> {
        // Wait for a running close: it leaves the environment open if it fails.
        drop(self.ending.lock());
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
            return Err(Error::Failed { reason });
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
    pub fn make_tree(&self, lane: usize, method: AccessMethod) -> Result<Tree> {
        let id = self.next_tree.fetch_add(1, Ordering::Relaxed);
        let pass = self.pool.enter(lane);
        let tree = Tree::create(&self.pool, &pass, id, method, true)?;
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
        self.registry.put_back(DeferredTask::FreeTree(tree.id));
    }

    /// Returns the catalog's version if the snapshot includes it. Names resolved at one version are
    /// valid for every transaction of that version.
    #[inline]
    pub fn catalog_version_for(&self, snapshot: Timestamp) -> Option<u64> {
        let version = self.catalog_version.load(Ordering::SeqCst);
        (version <= snapshot).then_some(version)
    }

    /// Writes a checkpoint now. With `clean` the next opening does not read the log.
    pub fn checkpoint(&self, clean: bool, busy: bool) -> Result<()> {
        let fix = || {
            let buffer = self.log.as_ref().map(Log::lock);
            let alone = self.log.is_none().then(|| self.commit_lock.lock());
            let flip = self.registry.active();
            // Without a log the position stays: a log opened later continues after the old records.
            let last = self.checkpointer.counters.log_position.load(Ordering::Relaxed);
            let log_position = buffer.as_ref().map_or(last, |buffer| buffer.end);
            let pieces = flip.values().map(|(writer, _)| writer.first_piece()).min();
            let state = FlipState {
                timestamp: self.registry.newest_commit.load(Ordering::SeqCst),
                log_position,
                log_start: pieces.unwrap_or(log_position).min(log_position),
                trees: self.trees.read().values().copied().collect(),
                dead_chains: self.registry.dead_chains(false),
                flip,
            };
            drop((buffer, alone));
            state
        };
        let log = self.log.as_ref();
        self.checkpointer.run(&self.pool, log, self.incarnation, clean, busy, fix).inspect_err(
            |error| {
                if !matches!(error, Error::DiskFull { .. }) {
                    self.fail(error);
                }
            },
        )
    }

    fn wake_all(&self) {
        self.checkpoint_wanted.notify();
        self.pool.frames_wanted.notify();
        if let Some(log) = &self.log {
            log.background.notify();
        }
    }
}
