//! What a query layer needs beyond what an application does: batches of records, estimates for
//! plans, statements within transactions, and temporary files.
//!
//! Above: layers such as `quickbeam-sql`, which import the traits here. Below: transactions and
//! environments. A program that stores and reads its own records needs nothing of this module.
//!
//! ```
//! use std::ops::Bound::Unbounded;
//!
//! use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
//!
//! # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
//! # let fruit = environment.create_database("fruit")?;
//! # let transaction = environment.begin()?;
//! # fruit.put(&transaction, b"apple", b"red")?;
//! let mut scan = Scan::new(Unbounded, Unbounded);
//! let mut batch = ScanBatch::default();
//! while fruit.scan(&transaction, &mut scan, &mut batch)? {
//!     for record in 0..batch.len() {
//!         println!("{:?} {:?}", batch.key(record), batch.value(record));
//!     }
//! }
//! # Ok::<(), quickbeam::Error>(())
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::environment::Environment;
use crate::error::Result;
pub use crate::mvcc::{OpenTransaction, WriteLock};
pub use crate::temporary::TemporaryFile;
pub use crate::transaction::{
    ChangeAccess, IntField, IntRange, LeafVersions, ReadTracking, Scan, ScanBatch, TreeShape,
};
use crate::transaction::{Database, ReadTransaction, Snapshot, Transaction};

mod sealed {
    pub trait Handle {}

    impl Handle for crate::transaction::Database {}
    impl Handle for crate::transaction::Transaction {}
    impl Handle for crate::environment::Environment {}
}

/// Scans and estimates of a [`Database`].
pub trait DatabaseExt: sealed::Handle {
    /// Replaces the batch by the next records of the scan's range. Returns false at the end.
    ///
    /// A batch is empty only in a scan with a filter, so that the caller of a selective scan gets
    /// control in between. A hash database can only be scanned without bounds, or by bucket prefix.
    fn scan(
        &self,
        transaction: &impl ReadTransaction,
        scan: &mut Scan,
        batch: &mut ScanBatch,
    ) -> Result<bool>;

    /// Locks the database until the transaction ends: other transactions that write to it wait.
    /// Waits for those that have changed it. Does not hold up reads.
    ///
    /// A transaction that has changed the database before goes on writing; this one waits for its
    /// end. What was committed while this one waited is not in its snapshot, see
    /// [`TransactionExt::renew_snapshot`].
    ///
    /// # Errors
    ///
    /// [`Error::Deadlock`](crate::Error::Deadlock) and
    /// [`Error::LockTimeout`](crate::Error::LockTimeout), as of writes.
    ///
    /// ```
    /// use quickbeam::query_layer::{DatabaseExt, WriteLock};
    ///
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// let transaction = environment.begin()?;
    /// fruit.lock_writes(&transaction, WriteLock::Exclusive)?;
    /// let other = environment.begin()?;
    /// other.set_lock_timeout(std::time::Duration::ZERO);
    /// assert!(fruit.put(&other, b"apple", b"red").is_err());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    fn lock_writes(&self, transaction: &Transaction, mode: WriteLock) -> Result<()>;

    /// Returns whether the content of the leaves has not changed since they were added.
    fn are_unchanged(
        &self,
        transaction: &impl ReadTransaction,
        leaves: &LeafVersions,
    ) -> Result<bool>;

    /// Moves the scan beyond the leaves, as if it had read them, if it stands at their beginning
    /// and they are unchanged. Returns whether it did. A caller that kept the records of leaves
    /// whose batches were all [settled](ScanBatch::is_settled) uses those.
    ///
    /// ```
    /// use std::ops::Bound::Unbounded;
    ///
    /// use quickbeam::query_layer::{DatabaseExt, LeafVersions, Scan, ScanBatch};
    ///
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// let mut scan = Scan::new(Unbounded, Unbounded).leaf_by_leaf();
    /// let (mut batch, mut leaves) = (ScanBatch::default(), LeafVersions::default());
    /// leaves.begin(&scan);
    /// while fruit.scan(&transaction, &mut scan, &mut batch)? {
    ///     leaves.add(&scan, &batch);
    /// }
    /// scan.restart(Unbounded, Unbounded);
    /// assert!(fruit.skip_unchanged(&transaction, &mut scan, &leaves)?);
    /// assert!(!fruit.scan(&transaction, &mut scan, &mut batch)?);
    /// scan.restart(Unbounded, Unbounded);
    /// fruit.put(&transaction, b"fig", b"blue")?;
    /// assert!(!fruit.skip_unchanged(&transaction, &mut scan, &leaves)?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    fn skip_unchanged(
        &self,
        transaction: &impl ReadTransaction,
        scan: &mut Scan,
        leaves: &LeafVersions,
    ) -> Result<bool>;

    /// Reads several records, and calls `visit` with the number of each key and its value, or
    /// `None` if there is no record. It is faster than [`Database::get_into`] for each key, most of
    /// all if the keys are in order. `value` is memory for a value.
    ///
    /// ```
    /// use quickbeam::query_layer::DatabaseExt;
    ///
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// let mut found = Vec::new();
    /// fruit.get_each(&transaction, &[b"apple", b"fig"], &mut Vec::new(), &mut |_, value| {
    ///     found.push(value.map(<[u8]>::to_vec));
    /// })?;
    /// assert_eq!(found, [Some(b"red".to_vec()), None]);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    fn get_each(
        &self,
        transaction: &impl ReadTransaction,
        keys: &[&[u8]],
        value: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()>;

    /// Estimates the number of records from a few leaves, for planning.
    /// [`Database::count`] counts them.
    ///
    /// ```
    /// use quickbeam::query_layer::DatabaseExt;
    ///
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// assert!(fruit.estimate(&transaction)? < 100.0);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    fn estimate(&self, transaction: &impl ReadTransaction) -> Result<f64>;

    /// Estimates the size and the fill of the tree from a few leaves.
    ///
    /// ```
    /// use quickbeam::query_layer::DatabaseExt;
    ///
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// let shape = fruit.shape(&transaction)?;
    /// assert_eq!(shape.levels, 1);
    /// assert!(shape.fill < 0.1);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    fn shape(&self, transaction: &impl ReadTransaction) -> Result<TreeShape>;

    /// Estimates the share of records with keys less than `key`, from 0 to 1, by reading one leaf.
    /// Fails with [`Error::Misuse`](crate::Error::Misuse) for a hash database.
    fn estimate_before(&self, transaction: &impl ReadTransaction, key: &[u8]) -> Result<f64>;

    /// Estimates the share of records with a bucket prefix in an
    /// [`AccessMethod::HashPrefix`](crate::AccessMethod::HashPrefix) database, from 0 to 1.
    fn estimate_hash_prefix(
        &self,
        transaction: &impl ReadTransaction,
        prefix: &[u8],
    ) -> Result<f64>;

    /// Returns the key at the fraction `fraction` (0 to 1) between the first and the last key, in
    /// the order of hash values for a hash database. The transaction need not see the key's record.
    /// Returns `None` if there are no keys.
    fn sample_key(
        &self,
        transaction: &impl ReadTransaction,
        fraction: f64,
    ) -> Result<Option<Vec<u8>>>;

    /// Returns the hash value that orders the key's record, or 0 in a B+tree. Records inserted in
    /// the order of hash value and key fill one leaf after another.
    #[must_use]
    fn hash_of(&self, key: &[u8]) -> u32;
}

impl DatabaseExt for Database {
    #[inline]
    fn scan(
        &self,
        transaction: &impl ReadTransaction,
        scan: &mut Scan,
        batch: &mut ScanBatch,
    ) -> Result<bool> {
        Database::scan(self, transaction, scan, batch)
    }

    fn lock_writes(&self, transaction: &Transaction, mode: WriteLock) -> Result<()> {
        Database::lock_writes(self, transaction, mode)
    }

    fn are_unchanged(
        &self,
        transaction: &impl ReadTransaction,
        leaves: &LeafVersions,
    ) -> Result<bool> {
        Database::are_unchanged(self, transaction, leaves)
    }

    fn skip_unchanged(
        &self,
        transaction: &impl ReadTransaction,
        scan: &mut Scan,
        leaves: &LeafVersions,
    ) -> Result<bool> {
        Database::skip_unchanged(self, transaction, scan, leaves)
    }

    fn get_each(
        &self,
        transaction: &impl ReadTransaction,
        keys: &[&[u8]],
        value: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        Database::get_each(self, transaction, keys, value, visit)
    }

    fn estimate(&self, transaction: &impl ReadTransaction) -> Result<f64> {
        Database::estimate(self, transaction)
    }

    fn shape(&self, transaction: &impl ReadTransaction) -> Result<TreeShape> {
        Database::shape(self, transaction)
    }

    fn estimate_before(&self, transaction: &impl ReadTransaction, key: &[u8]) -> Result<f64> {
        Database::estimate_before(self, transaction, key)
    }

    fn estimate_hash_prefix(
        &self,
        transaction: &impl ReadTransaction,
        prefix: &[u8],
    ) -> Result<f64> {
        Database::estimate_hash_prefix(self, transaction, prefix)
    }

    fn sample_key(
        &self,
        transaction: &impl ReadTransaction,
        fraction: f64,
    ) -> Result<Option<Vec<u8>>> {
        Database::sample_key(self, transaction, fraction)
    }

    fn hash_of(&self, key: &[u8]) -> u32 {
        Database::hash_of(self, key)
    }
}

/// Statements, catalogs and constraints in a [`Transaction`].
pub trait TransactionExt: sealed::Handle {
    /// Begins a statement. Under read committed, all calls until
    /// [`end_statement`](Self::end_statement) read one snapshot, taken now. A statement within a
    /// statement reads the snapshot of the outer one. Has no effect under other isolation levels.
    fn begin_statement(&self);

    /// Ends a statement, and the effect of [`interrupt_on`](Self::interrupt_on).
    fn end_statement(&self);

    /// Moves the snapshot of a transaction that has neither read nor written to the newest commit,
    /// for one that began with waiting for a lock. Does nothing if reads are tracked and there are
    /// some.
    fn renew_snapshot(&self);

    /// Makes waits for locked records fail with
    /// [`Error::Interrupted`](crate::Error::Interrupted) soon after any thread sets `flag`, until
    /// [`end_statement`](Self::end_statement). The failing call changed nothing, and the
    /// transaction can continue.
    fn interrupt_on(&self, flag: &Arc<AtomicBool>);

    /// Starts or stops validating reads at commit, below serializable. The commit fails if another
    /// transaction has changed a record that was read while tracking was on. Returns the previous
    /// setting. Meant for reads that a constraint depends on, such as the target of a foreign key.
    fn track_reads(&self, tracking: ReadTracking) -> ReadTracking;

    /// Refuses or allows changes from now on. Those that were made stay. Returns what held before.
    /// A transaction that was begun as read-only refuses them always.
    fn set_change_access(&self, access: ChangeAccess) -> ChangeAccess;

    /// Returns a number that changes with every committed change of the names of databases, and
    /// with every commit after [`touch_catalog`](Self::touch_catalog): what was read under the same
    /// number still holds. It is that of the transaction's snapshot; for a transaction of read
    /// committed, that of a call made now. Returns `None` if the transaction has made such a change
    /// itself, or if one was being committed as its snapshot was taken.
    fn catalog_version(&self) -> Option<u64>;

    /// Marks this transaction as one that changes database names, see
    /// [`catalog_version`](Self::catalog_version), for a layer that keeps its own definitions next
    /// to the names. The mark takes effect only if the transaction also changes a record.
    fn touch_catalog(&self);

    /// Returns another view of the transaction's snapshot, which another thread may read while this
    /// one reads the transaction. Under read committed it is the snapshot of the statement.
    ///
    /// Returns `None` if the transaction has changes of its own or tracks its reads, if its
    /// snapshot has expired, or if too many transactions are open.
    ///
    /// ```
    /// use quickbeam::query_layer::TransactionExt;
    ///
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// let transaction = environment.begin()?;
    /// environment.transact(|later| fruit.put(later, b"apple", b"red"))?;
    /// if let Some(shared) = transaction.share_snapshot()? {
    ///     let reader = std::thread::spawn(move || fruit.get(&shared, b"apple"));
    ///     assert!(matches!(reader.join(), Ok(Ok(None))));
    /// }
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    fn share_snapshot(&self) -> Result<Option<Snapshot>>;

    /// Returns the number of changes that a rollback would undo. After a
    /// [`rollback_to`](Transaction::rollback_to) it is what it was at the savepoint.
    #[must_use]
    fn change_count(&self) -> usize;
}

impl TransactionExt for Transaction {
    #[inline]
    fn begin_statement(&self) {
        Transaction::begin_statement(self);
    }

    #[inline]
    fn end_statement(&self) {
        Transaction::end_statement(self);
    }

    fn renew_snapshot(&self) {
        Transaction::renew_snapshot(self);
    }

    #[inline]
    fn interrupt_on(&self, flag: &Arc<AtomicBool>) {
        Transaction::interrupt_on(self, flag);
    }

    #[inline]
    fn track_reads(&self, tracking: ReadTracking) -> ReadTracking {
        Transaction::track_reads(self, tracking)
    }

    fn set_change_access(&self, access: ChangeAccess) -> ChangeAccess {
        Transaction::set_change_access(self, access)
    }

    #[inline]
    fn catalog_version(&self) -> Option<u64> {
        Transaction::catalog_version(self)
    }

    fn touch_catalog(&self) {
        Transaction::touch_catalog(self);
    }

    fn share_snapshot(&self) -> Result<Option<Snapshot>> {
        Ok(Transaction::share_snapshot(self)?.map(Snapshot::new))
    }

    fn change_count(&self) -> usize {
        Transaction::change_count(self)
    }
}

/// Names what the transactions are for that the calling thread begins from now on: a number that
/// [`EnvironmentExt::open_transactions`] shows, such as that of a session.
pub fn set_thread_owner(owner: u64) {
    crate::sync::shard::set_owner(owner);
}

/// Temporary files, open transactions and the opening of an [`Environment`].
pub trait EnvironmentExt: sealed::Handle {
    /// Returns whether the environment can have temporary files: it has a directory, and is open
    /// for writing.
    #[must_use]
    fn has_temporary_files(&self) -> bool;

    /// Creates a temporary file in the environment's directory. Returns `None` if the environment
    /// is in memory or open for reading only.
    fn create_temporary_file(&self) -> Result<Option<TemporaryFile>>;

    /// Returns the number of this opening of the environment: each later one has a greater number.
    #[must_use]
    fn incarnation(&self) -> u32;

    /// Returns the position after the last record of the log; 0 without a log.
    #[must_use]
    fn log_position(&self) -> u64;

    /// Returns the open transactions, each with what it holds and waits for. They go on meanwhile,
    /// so a row may be out of date.
    ///
    /// ```
    /// use quickbeam::query_layer::{EnvironmentExt, set_thread_owner};
    ///
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// set_thread_owner(7);
    /// let transaction = environment.begin()?;
    /// fruit.put(&transaction, b"apple", b"red")?;
    /// let open = environment.open_transactions();
    /// assert_eq!((open.len(), open[0].owner, open[0].changes), (1, 7, 1));
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[must_use]
    fn open_transactions(&self) -> Vec<OpenTransaction>;
}

impl EnvironmentExt for Environment {
    fn has_temporary_files(&self) -> bool {
        Environment::has_temporary_files(self)
    }

    fn create_temporary_file(&self) -> Result<Option<TemporaryFile>> {
        Environment::create_temporary_file(self)
    }

    fn incarnation(&self) -> u32 {
        self.engine().incarnation()
    }

    fn log_position(&self) -> u64 {
        self.engine().log.as_ref().map_or(0, |log| log.lock().end)
    }

    fn open_transactions(&self) -> Vec<OpenTransaction> {
        let engine = self.engine();
        engine.transactions.open_transactions(engine.vfs.now())
    }
}
