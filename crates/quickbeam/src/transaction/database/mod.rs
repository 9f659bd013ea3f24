//! A named database, used within a transaction.

mod clear_range;
mod cursor;
mod hash_prefix;
mod leaf_filter;
mod lookups;
mod range;
mod read_ahead;
mod scan;
mod shape;
mod snapshot;
mod value_reader;
mod write_lock;

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::write::WriteOp;
use super::{DatabaseUse, Transaction, Updated};
use crate::access::btree::{LeafHint, Tree};
use crate::access::hash::{BucketDirectory, HASH_BYTES, with_stored};
use crate::access::limits::check_ordered;
use crate::error::{Error, Result, TooLong};
use crate::options::AccessMethod;
use crate::page::{PageId, key_limit};

pub use cursor::Cursor;
pub use leaf_filter::{IntField, IntRange};
pub use range::{Range, Record};
pub use scan::{LeafVersions, Scan, ScanBatch};
pub use shape::TreeShape;
pub use snapshot::{ReadTransaction, Snapshot};
pub use value_reader::ValueReader;

/// A handle to a named database. It is cheap to clone and usable in any transaction of its
/// environment, on any thread.
///
/// ```
/// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
/// let fruit = environment.create_database("fruit")?;
/// let transaction = environment.begin()?;
/// fruit.put(&transaction, b"apple", b"red")?;
/// assert_eq!(fruit.get(&transaction, b"apple")?.as_deref(), Some(&b"red"[..]));
/// transaction.commit()?;
/// # Ok::<(), quickbeam::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Database {
    name: Arc<str>,
    environment: u64,
    tree: Tree,
    /// The bucket directory of a hash database.
    directory: Option<Arc<BucketDirectory>>,
    /// The catalog version at which `name` is known to be `tree`.
    known_at: Arc<AtomicU64>,
}

impl Database {
    pub(super) fn new(
        name: &str,
        environment: u64,
        tree: Tree,
        directory: Option<Arc<BucketDirectory>>,
        known_at: u64,
    ) -> Database {
        let known_at = Arc::new(AtomicU64::new(known_at));
        Database { name: name.into(), environment, tree, directory, known_at }
    }

    /// Returns the database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how the database finds its records.
    #[must_use]
    pub fn access_method(&self) -> AccessMethod {
        self.tree.method
    }

    /// Returns the tree that the name means in this transaction, and records its use. Inlined, so
    /// that the tree stays in registers: a result in memory would be written in other pieces than
    /// it is read.
    #[inline(always)]
    pub(super) fn tree(&self, transaction: &Transaction, usage: DatabaseUse) -> Result<Tree> {
        if transaction.environment_id() != self.environment {
            return Err(self.foreign());
        }
        transaction.begin_call();
        let known_at = self.known_at.load(Ordering::Relaxed);
        if transaction.uses(&self.name, self.tree, known_at, usage) {
            return Ok(self.tree);
        }
        self.look_up_tree(transaction, usage, known_at)
    }

    #[cold]
    fn foreign(&self) -> Error {
        Error::misuse(format!(
            "database {:?} belongs to another environment than the transaction",
            self.name
        ))
    }

    #[cold]
    fn look_up_tree(
        &self,
        transaction: &Transaction,
        usage: DatabaseUse,
        known_at: u64,
    ) -> Result<Tree> {
        let (tree, version) = transaction.resolve_database(&self.name)?;
        if transaction.notes_use(usage) {
            transaction.note_used(&self.name, tree);
        }
        if let Some(version) = version.filter(|_| tree == self.tree) {
            // `u64::MAX` says that it was known in the transaction that made the handle only.
            let known = if known_at == u64::MAX { version } else { known_at.max(version) };
            self.known_at.store(known, Ordering::Relaxed);
        }
        Ok(tree)
    }

    #[inline]
    pub(super) fn write(
        &self,
        transaction: &Transaction,
        key: &[u8],
        op: WriteOp<'_>,
    ) -> Result<bool> {
        let tree = self.tree(transaction, DatabaseUse::Write)?;
        self.write_key(transaction, tree, key, op)
    }

    #[inline]
    pub(super) fn write_key(
        &self,
        transaction: &Transaction,
        tree: Tree,
        key: &[u8],
        op: WriteOp<'_>,
    ) -> Result<bool> {
        if tree.method.is_ordered() {
            return transaction.write(tree, key, op);
        }
        self.check_hash_key(transaction, key)?;
        self.with_leaf_hint(transaction, tree, key, |stored| transaction.write(tree, stored, op))
    }

    fn check_hash_key(&self, transaction: &Transaction, key: &[u8]) -> Result<()> {
        let limit = key_limit(transaction.engine().pool.page_size) - HASH_BYTES;
        if key.len() > limit {
            return Err(Error::KeyTooLong(Box::new(TooLong { length: key.len(), limit })));
        }
        Ok(())
    }

    /// Calls `work` with the stored key of a hash tree's record, after setting the leaf hint from
    /// the directory. Corrects the directory if the hint was wrong (HASH-2).
    #[inline]
    fn with_leaf_hint<T>(
        &self,
        transaction: &Transaction,
        tree: Tree,
        key: &[u8],
        work: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        with_stored(tree.method, key, |stored, hash| {
            let guess = self.hint_bucket_leaf(transaction, tree, hash);
            let done = work(stored);
            self.record_bucket_leaf(transaction, tree, hash, guess);
            done
        })
    }

    /// Returns the directory of that tree, or `None` if the name has another tree since the handle
    /// was made.
    #[inline]
    fn directory_of(&self, tree: Tree) -> Option<&BucketDirectory> {
        self.directory.as_deref().filter(|_| tree == self.tree)
    }

    /// Sets the transaction's leaf hint to the leaf that the directory has for a hash value.
    /// Returns that leaf.
    #[inline]
    pub(super) fn hint_bucket_leaf(
        &self,
        transaction: &Transaction,
        tree: Tree,
        hash: u32,
    ) -> PageId {
        let guess = self.directory_of(tree).map_or(0, |directory| directory.leaf_for(hash));
        *transaction.state.borrow_mut().leaf_hints.of(tree) = LeafHint::at(tree, guess);
        guess
    }

    /// Records in the directory the leaf that the search found, if the hint of
    /// [`hint_bucket_leaf`](Self::hint_bucket_leaf) was wrong (HASH-2).
    #[inline]
    pub(super) fn record_bucket_leaf(
        &self,
        transaction: &Transaction,
        tree: Tree,
        hash: u32,
        guess: PageId,
    ) {
        let leaf = transaction.state.borrow_mut().leaf_hints.of(tree).leaf();
        if leaf != guess
            && let Some(directory) = self.directory_of(tree)
        {
            directory.record(hash, leaf, transaction.engine().pool.page_count());
        }
    }

    #[inline]
    fn read(
        &self,
        transaction: &Transaction,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        match tree.method {
            AccessMethod::BTree => transaction.read(tree, key, value),
            AccessMethod::Hash | AccessMethod::HashPrefix => {
                self.with_leaf_hint(transaction, tree, key, |stored| {
                    transaction.read(tree, stored, value)
                })
            }
        }
    }

    /// Returns the value of `key`, or `None` if there is no record.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// assert_eq!(fruit.get(&transaction, b"apple")?.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(fruit.get(&transaction, b"pear")?, None);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn get(&self, transaction: &impl ReadTransaction, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(transaction, key, &mut value)?.then_some(value))
    }

    /// Reads the value of `key` into `value`, replacing its content. Returns false, with `value`
    /// empty, if there is no record. Reusing `value` saves allocations.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// let mut value = Vec::new();
    /// assert!(fruit.get_into(&transaction, b"apple", &mut value)?);
    /// assert_eq!(value, b"red");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[inline]
    pub fn get_into(
        &self,
        transaction: &impl ReadTransaction,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let transaction = transaction.as_transaction();
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        self.read(transaction, tree, key, value)
    }

    /// Reads a record and locks it against changes by others until this transaction ends.
    ///
    /// Under read committed the value is the newest committed one, after waiting for a transaction
    /// that is changing it. Under the other isolation levels a record changed since the snapshot is
    /// a write conflict.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// let mut value = Vec::new();
    /// if fruit.get_for_update(&transaction, b"apple", &mut value)? {
    ///     value.extend_from_slice(b" and green");
    ///     fruit.put(&transaction, b"apple", &value)?;
    /// }
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn get_for_update(
        &self,
        transaction: &Transaction,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        value.clear();
        let tree = self.tree(transaction, DatabaseUse::Write)?;
        let locked = self.write_key(transaction, tree, key, WriteOp::Lock)?;
        Ok(locked && self.read(transaction, tree, key, value)?)
    }

    /// Returns whether there is a record with that key.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// assert!(fruit.exists(&transaction, b"apple")?);
    /// assert!(!fruit.exists(&transaction, b"pear")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn exists(&self, transaction: &impl ReadTransaction, key: &[u8]) -> Result<bool> {
        self.get_into(transaction, key, &mut Vec::new())
    }

    /// Inserts a record, or replaces its value.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// fruit.put(&transaction, b"apple", b"red")?;
    /// fruit.put(&transaction, b"apple", b"green")?;
    /// assert_eq!(fruit.get(&transaction, b"apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[inline]
    pub fn put(&self, transaction: &Transaction, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(transaction, key, WriteOp::Put(value)).map(|_| ())
    }

    /// Inserts a record, or replaces its value, with the next `length` bytes of `source`. A long
    /// value is copied page by page, to the cache and to the log: it needs no memory of its size,
    /// except while it is recovered from the log after a crash.
    ///
    /// Fails and changes nothing if the source fails or ends early: [`Error::Io`]. Part of the
    /// source has been read then. If the log fails within the value, the transaction can only be
    /// aborted.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let files = environment.create_database("files")?;
    /// # use std::io::repeat;
    /// environment
    ///     .transact(|transaction| files.put_from(transaction, b"disk", 1 << 20, repeat(7)))?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn put_from(
        &self,
        transaction: &Transaction,
        key: &[u8],
        length: u64,
        mut source: impl std::io::Read,
    ) -> Result<()> {
        let tree = self.tree(transaction, DatabaseUse::Write)?;
        let page_size = transaction.engine().pool.page_size;
        if length < page_size as u64 {
            let mut value = vec![0; length as usize];
            let read = source.read_exact(&mut value);
            read.map_err(|error| Error::io("reading the source of a value", error))?;
            return self.write_key(transaction, tree, key, WriteOp::Put(&value)).map(|_| ());
        }
        if tree.method.is_ordered() {
            return transaction.write_from(tree, key, length, &mut source);
        }
        self.check_hash_key(transaction, key)?;
        self.with_leaf_hint(transaction, tree, key, |stored| {
            transaction.write_from(tree, stored, length, &mut source)
        })
    }

    /// Computes a record's new value from its old one in one visit. Does the same as
    /// [`get_for_update`](Self::get_for_update) and [`put`](Self::put), and is faster.
    ///
    /// `make` receives the old value and an empty buffer for the new one, and returns false to
    /// leave the record unchanged. It runs again if the leaf changes concurrently, so it should
    /// only compute. A value too long for a leaf gives [`Updated::NotInPlace`] and changes
    /// nothing.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// use quickbeam::Updated;
    ///
    /// let modified = fruit.update(&transaction, b"apple", |old, new| {
    ///     new.extend_from_slice(old);
    ///     new.extend_from_slice(b"dish");
    ///     true
    /// })?;
    /// assert_eq!(modified, Updated::Changed);
    /// assert_eq!(fruit.get(&transaction, b"apple")?.as_deref(), Some(&b"reddish"[..]));
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[inline]
    pub fn update(
        &self,
        transaction: &Transaction,
        key: &[u8],
        mut make: impl FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<Updated> {
        let tree = self.tree(transaction, DatabaseUse::Write)?;
        if tree.method.is_ordered() {
            return transaction.update(tree, key, &mut make);
        }
        self.check_hash_key(transaction, key)?;
        self.with_leaf_hint(transaction, tree, key, |stored| {
            transaction.update(tree, stored, &mut make)
        })
    }

    /// Inserts a record. Returns false, changing nothing, if the key exists.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// assert!(!fruit.put_if_absent(&transaction, b"apple", b"green")?);
    /// assert!(fruit.put_if_absent(&transaction, b"pear", b"green")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn put_if_absent(
        &self,
        transaction: &Transaction,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        self.write(transaction, key, WriteOp::PutIfAbsent(value))
    }

    /// Removes a record. Returns false if there is none.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// assert!(fruit.delete(&transaction, b"apple")?);
    /// assert!(!fruit.delete(&transaction, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[inline]
    pub fn delete(&self, transaction: &Transaction, key: &[u8]) -> Result<bool> {
        self.write(transaction, key, WriteOp::Delete)
    }

    /// Returns the number of records that the transaction sees, exactly. Reads every leaf without
    /// copying keys and values. A serializable transaction fails at commit if another transaction
    /// has added or removed a record since.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
    /// let snapshot = environment.begin_read()?;
    /// environment.transact(|transaction| fruit.put(transaction, b"plum", b"blue"))?;
    /// assert_eq!(fruit.count(&snapshot)?, 1);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn count(&self, transaction: &impl ReadTransaction) -> Result<u64> {
        let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).without_keys().value_limit(0);
        let mut batch = ScanBatch::default();
        let mut count = 0;
        while self.scan(transaction, &mut scan, &mut batch)? {
            count += batch.len() as u64;
        }
        Ok(count)
    }

    /// See `query_layer::DatabaseExt::estimate_before`.
    pub(crate) fn estimate_before(
        &self,
        transaction: &impl ReadTransaction,
        key: &[u8],
    ) -> Result<f64> {
        let transaction = transaction.as_transaction();
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        check_ordered(tree)?;
        transaction.unless_expired(tree.fraction_before(&transaction.engine().pool, key))
    }

    /// See `query_layer::DatabaseExt::sample_key`.
    pub(crate) fn sample_key(
        &self,
        transaction: &impl ReadTransaction,
        fraction: f64,
    ) -> Result<Option<Vec<u8>>> {
        let transaction = transaction.as_transaction();
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        let key = tree.key_at_fraction(&transaction.engine().pool, fraction.clamp(0.0, 1.0));
        let key = transaction.unless_expired(key)?;
        Ok(key.map(|mut stored| stored.split_off(tree.key_start().min(stored.len()))))
    }

    /// Opens a cursor with no current record. A transaction may have several.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// let mut cursor = fruit.cursor(&transaction)?;
    /// assert!(cursor.seek(b"a")?);
    /// assert_eq!((cursor.key(), cursor.value()), (&b"apple"[..], &b"red"[..]));
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn cursor<'t>(&self, transaction: &'t impl ReadTransaction) -> Result<Cursor<'t>> {
        let transaction = transaction.as_transaction();
        Ok(Cursor::new(transaction, self.clone(), self.tree(transaction, DatabaseUse::Read)?))
    }

    /// Inserts records in ascending order of their keys, filling pages completely. Returns how
    /// many.
    ///
    /// A key that is not greater than the one before is an error; the records before it stay
    /// inserted. A hash database accepts any order.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// let records = (0..1000_u32).map(|n| (n.to_be_bytes(), b"value"));
    /// assert_eq!(fruit.bulk_load(&transaction, records)?, 1000);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        transaction: &Transaction,
        sorted: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        let ordered = self.access_method().is_ordered();
        let mut before: Option<Vec<u8>> = None;
        let mut count = 0;
        for (key, value) in sorted {
            let key = key.as_ref();
            if ordered && before.as_ref().is_some_and(|before| before.as_slice() >= key) {
                return Err(Error::misuse(format!(
                    "bulk load: record {count} is not greater than the one before; sort the input by key"
                )));
            }
            self.put(transaction, key, value.as_ref())?;
            let before = before.get_or_insert_default();
            before.clear();
            before.extend_from_slice(key);
            count += 1;
        }
        Ok(count)
    }
}
