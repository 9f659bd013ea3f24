//! Environments: a directory (or memory) with databases, a log and background threads.
//!
//! Above: the user. Below: transactions, and the engine that the handles share.

mod retry;

use std::path::Path;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::checkpoint::CheckpointKind;
use crate::engine::{
    Access, BackupReport, CompactionReport, Engine, EngineLifetime, EngineRef, ShardedEngineRef,
    Statistics, VerifyReport, open,
};
use crate::error::{Error, Result};
use crate::options::{AccessMethod, Durability, Options, TransactionOptions};
use crate::sync::shard;
use crate::temporary::TemporaryFile;
use crate::transaction::{Database, Snapshot, Transaction};
use crate::vfs::{MemoryVfs, OsVfs, Vfs};

/// Number of reference counters over which threads spread the transactions that they begin.
const HOLDS: usize = 64;

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
    /// let environment = quickbeam::Environment::open_in_memory(quickbeam::Options::default())?;
    /// let fruit = environment.create_database("fruit")?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn open_in_memory(options: Options) -> Result<Environment> {
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
        let engine = Arc::new(open(vfs, path, options, access)?);
        let shared = Arc::new(EngineLifetime::start(engine.clone())?);
        let hold = || EngineRef { engine: engine.clone(), shared: shared.clone() };
        let holds = (0..HOLDS).map(|_| Arc::new(CachePadded::new(hold()))).collect();
        Ok(Environment { holds })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.holds[0].engine
    }

    /// Begins a transaction with the environment's isolation and durability.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
        self.engine().is_read_only
    }

    /// Returns the durability of transactions that do not set their own.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.engine().options.durability
    }

    /// Begins a transaction with its own settings.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// use quickbeam::AccessMethod;
    ///
    /// let sessions = environment.create_database_with("sessions", AccessMethod::Hash)?;
    /// assert_eq!(sessions.access_method(), AccessMethod::Hash);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn create_database_with(&self, name: &str, method: AccessMethod) -> Result<Database> {
        self.transact(|transaction| transaction.create_database_with(name, method))?;
        self.open_database(name)
    }

    /// Opens a database. Fails with [`Error::NoSuchDatabase`] if there is none with that name.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// environment.clear_database("fruit")?;
    /// assert!(!fruit.exists(&environment.begin_read()?, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn clear_database(&self, name: &str) -> Result<()> {
        self.transact(|transaction| transaction.clear_database(name))
    }

    /// Writes a checkpoint and releases the log and data-file space that it makes free.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// environment.checkpoint()?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn checkpoint(&self) -> Result<()> {
        let engine = self.engine();
        engine.check_open()?;
        engine.check_failed()?;
        if engine.is_read_only {
            return Err(Error::ReadOnlyEnvironment);
        }
        // Run deferred work first, so that the checkpoint does not keep pages that no snapshot
        // needs.
        engine.transactions.look_after();
        engine.run_deferred(usize::MAX)?;
        engine.checkpoint(CheckpointKind::Online)?;
        // Blocks that only the previous checkpoint used are free now; truncate those at the file's
        // end.
        engine.pool.shrink_file()
    }

    /// Copies the environment into a new or empty directory while transactions go on. The backup is
    /// an environment of its own: [`open`](Self::open) recovers it as after a crash. It has every
    /// commit that was acknowledged before this call, and of later ones those up to some moment
    /// during the copy.
    ///
    /// The directory holds a whole backup when this returns. After a crash it holds a whole one or
    /// none; a later backup into it replaces an unfinished one. No checkpoint completes during the
    /// copy, so the log grows meanwhile. An environment in memory is copied without a log.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use quickbeam::{Environment, Options};
    ///
    /// let environment = Environment::open(folder.path().join("data"), Options::new())?;
    /// let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// environment.backup_to(folder.path().join("backup"))?;
    ///
    /// let backup = Environment::open_read_only(folder.path().join("backup"), Options::new())?;
    /// assert!(backup.open_database("fruit")?.exists(&backup.begin_read()?, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn backup_to(&self, directory: impl AsRef<Path>) -> Result<BackupReport> {
        self.engine().backup_to(directory.as_ref())
    }

    /// Gives free space back to the file system while transactions go on. Sparse leaves are merged
    /// and filled, pages move from the end of the data file to free blocks, and the file is cut. No
    /// record changes. A crash leaves the state of the last commit, with or without the compaction.
    ///
    /// What old snapshots need stays. The work reads and writes the pages concerned and makes
    /// several checkpoints. During it the file may grow by an eighth.
    /// [`Options::compaction_rate`] compacts in the background instead.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// for number in 0..10_000_u32 {
    ///     environment.transact(|t| fruit.put(t, &number.to_be_bytes(), &[0; 200]))?;
    /// }
    /// environment.transact(|t| fruit.clear_range(t, &1_000_u32.to_be_bytes()[..]..))?;
    /// let report = environment.compact()?;
    /// assert!(report.bytes_after < report.bytes_before);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn compact(&self) -> Result<CompactionReport> {
        self.engine().compact()
    }

    /// Returns counters and sizes since opening.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// assert!(environment.statistics().commits >= 1);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.engine().statistics()
    }

    /// See `query_layer::EnvironmentExt::has_temporary_files`.
    #[must_use]
    pub(crate) fn has_temporary_files(&self) -> bool {
        self.engine().temporary_files.is_some()
    }

    /// See `query_layer::EnvironmentExt::create_temporary_file`.
    pub(crate) fn create_temporary_file(&self) -> Result<Option<TemporaryFile>> {
        self.engine().temporary_files.as_ref().map(|files| files.create()).transpose()
    }

    /// Checks every page: order, structure, reachability and space. Changes wait while it runs.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// let report = environment.verify()?;
    /// assert!(report.complaints.is_empty());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        self.engine().verify()
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
