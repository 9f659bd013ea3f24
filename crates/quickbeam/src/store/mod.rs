//! The Data Store: the same trees with no transactions, no log and no versions, for one owner.
//!
//! Above: the user. Below: access methods, pool, checkpoint. `&mut self` proves exclusive access,
//! so latches are plain stores. [`DataStore::sync`] makes an atomic checkpoint: after a crash the
//! last synced state is recovered as a whole.

mod cursor;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::btree::{LeafHint, Packing, Tree, Versioning};
use crate::access::hash::{BucketDirectory, with_stored};
use crate::access::limits::check_limits;
use crate::access::overflow::{
    ChainReader, copy_part, free_chain, free_pages, pointer_of, read_chain,
};
use crate::buffer::{ChangeGuard, Pool};
use crate::catalog::{CATALOG_TREE, check_name, decode_catalog_record, encode_catalog_record};
use crate::checkpoint::{CheckpointKind, Checkpointer, EpochStart, MetaPages, StoreKind};
use crate::engine::{
    Access, CompactionReport, MOVING_ROUNDS, Opened, Statistics, VerifyReport, move_pages,
    open_data_file, pool_statistics, sample_trees, verify_pages,
};
use crate::error::{Error, Result, TooLong};
use crate::mvcc::{TransactionTable, UndoSpill};
use crate::options::{AccessMethod, Options};
use crate::page::{OVERFLOW, PageId, key_limit};
use crate::recovery;
use crate::vfs::{File, MemoryVfs, OsVfs, Vfs};

pub use cursor::StoreCursor;

/// A database of a [`DataStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreDatabase {
    store: u64,
    tree: Tree,
}

impl StoreDatabase {
    /// How its records are found.
    #[must_use]
    pub fn access_method(self) -> AccessMethod {
        self.tree.method
    }
}

/// A Data Store: named databases for one owner, as fast as the trees are.
///
/// ```
/// # fn main() -> quickbeam::Result<()> {
/// let mut store = quickbeam::DataStore::open_in_memory(quickbeam::Options::default())?;
/// let fruit = store.create_database("fruit")?;
/// store.put(fruit, b"apple", b"red")?;
/// assert_eq!(store.get(fruit, b"apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok(())
/// # }
/// ```
pub struct DataStore {
    id: u64,
    pool: Pool,
    checkpointer: Checkpointer,
    catalog: Tree,
    trees: Vec<Tree>,
    /// Trees of dropped databases that could not be freed yet: each `sync` and each opening tries
    /// again.
    nameless: Vec<Tree>,
    /// Overflow chains of freed pages that could not be freed yet; each is the number of its first
    /// page.
    dead_chains: Vec<PageId>,
    /// Number of the next new tree: a number is not given again, so that old handles stay invalid.
    next_tree: u32,
    leaf_hint: LeafHint,
    /// Of the hash trees that have been used.
    directories: Vec<(u32, Arc<BucketDirectory>)>,
    cache_size: usize,
    path: Option<PathBuf>,
    incarnation: u32,
    failure: Option<String>,
    /// Changes are refused.
    is_read_only: bool,
    changed: bool,
    _lock: Option<Arc<dyn File>>,
}

impl DataStore {
    /// Opens the data store in a directory. Creates one if there is none and [`Options::create`] is
    /// set.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use quickbeam::{DataStore, Options};
    ///
    /// let mut store = DataStore::open(directory.path(), Options::default())?;
    /// let fruit = store.open_or_create_database("fruit")?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<DataStore> {
        DataStore::open_in(Arc::new(OsVfs::new()), Some(path.as_ref()), options)
    }

    /// Creates a data store without a directory.
    pub fn open_in_memory(options: Options) -> Result<DataStore> {
        DataStore::open_in(Arc::new(MemoryVfs::new()), None, options)
    }

    /// Opens a data store whose files are those of `vfs`; `None` for one without a directory.
    pub fn open_in(vfs: Arc<dyn Vfs>, path: Option<&Path>, options: Options) -> Result<DataStore> {
        DataStore::open_for(Access::Write, vfs, path, options)
    }

    /// Opens the data store in a directory for reading; it must not be open for writing. Writes,
    /// creates and removes nothing in the directory. Changes fail with
    /// [`Error::ReadOnlyEnvironment`].
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<DataStore> {
        DataStore::open_read_only_in(Arc::new(OsVfs::new()), path.as_ref(), options)
    }

    /// As [`open_read_only`](Self::open_read_only), where the files are those of `vfs`.
    pub fn open_read_only_in(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        options: Options,
    ) -> Result<DataStore> {
        DataStore::open_for(Access::Read, vfs, Some(path), options)
    }

    fn open_for(
        access: Access,
        vfs: Arc<dyn Vfs>,
        path: Option<&Path>,
        options: Options,
    ) -> Result<DataStore> {
        let transactions = Arc::new(TransactionTable::new(&*vfs, UndoSpill::never()));
        let opened =
            open_data_file(&vfs, path, &options, (StoreKind::Plain, access), transactions)?;
        let Opened { pool, identity, root, directory, lock, created, .. } = opened;
        let incarnation = root.incarnation + 1;
        let mut trees = directory.trees.clone();
        let catalog = match trees.iter().find(|tree| tree.id == CATALOG_TREE) {
            Some(catalog) => *catalog,
            None => {
                let (change_guard, method) = (ChangeGuard::unshared(), AccessMethod::BTree);
                let catalog = Tree::create(
                    &pool,
                    &change_guard,
                    CATALOG_TREE,
                    method,
                    Versioning::Unversioned,
                )?;
                trees.push(catalog);
                catalog
            }
        };
        let next_tree = trees.iter().map(|tree| tree.id + 1).max().unwrap_or(0);
        let mut store = DataStore {
            id: vfs.random(),
            dead_chains: directory.dead_chains.clone(),
            checkpointer: Checkpointer::new(identity, MetaPages, root, directory),
            pool,
            catalog,
            trees,
            nameless: Vec::new(),
            next_tree: next_tree.max(CATALOG_TREE + 1),
            leaf_hint: LeafHint::default(),
            directories: Vec::new(),
            cache_size: options.cache_size,
            path: path.map(Path::to_owned),
            incarnation,
            failure: None,
            is_read_only: false,
            changed: created,
            _lock: lock,
        };
        store.find_nameless()?;
        store.sync()?;
        store.is_read_only = access == Access::Read;
        Ok(store)
    }

    /// Finds the trees that no name leads to: of databases that were dropped and not freed before
    /// the last sync.
    fn find_nameless(&mut self) -> Result<()> {
        let mut named = vec![self.catalog];
        for name in self.databases()? {
            named.extend(self.look_up(&name)?);
        }
        let is_named = |tree: &Tree| named.contains(tree);
        (self.trees, self.nameless) =
            std::mem::take(&mut self.trees).into_iter().partition(is_named);
        Ok(())
    }

    /// Frees the trees that have no name any more. What cannot be freed now stays until the next
    /// time: a sync names the rest of the trees and of their chains.
    fn free_nameless(&mut self) {
        let (pool, dead) = (&self.pool, &mut self.dead_chains);
        let is_left = |tree: &Tree| {
            loop {
                match tree.free_last(pool, 0, |chains, _| dead.extend_from_slice(chains)) {
                    Ok(true) => return false,
                    Ok(false) => {}
                    Err(_) => return true,
                }
            }
        };
        self.nameless.retain(is_left);
        self.dead_chains
            .retain(|&chain| free_chain(pool, &ChangeGuard::unshared(), chain).is_err());
    }

    fn new_tree(&mut self, method: AccessMethod) -> Result<Tree> {
        let change_guard = ChangeGuard::unshared();
        let tree = Tree::create(
            &self.pool,
            &change_guard,
            self.next_tree,
            method,
            Versioning::Unversioned,
        )?;
        self.next_tree += 1;
        self.trees.push(tree);
        Ok(tree)
    }

    fn handle(&self, tree: Tree) -> StoreDatabase {
        StoreDatabase { store: self.id, tree }
    }

    fn look_up(&mut self, name: &str) -> Result<Option<Tree>> {
        let mut record = Vec::new();
        if !self.read(self.catalog, name.as_bytes(), &mut record)? {
            return Ok(None);
        }
        let named = decode_catalog_record(&record);
        let tree = self.trees.iter().find(|tree| Some((tree.id, tree.method)) == named).copied();
        tree.map(Some).ok_or_else(|| {
            Error::page(self.catalog.root, format!("the record of database {name:?} names no tree"))
        })
    }

    /// Creates a B+tree database.
    pub fn create_database(&mut self, name: &str) -> Result<StoreDatabase> {
        self.create_database_with(name, AccessMethod::BTree)
    }

    /// Creates a database with an access method.
    pub fn create_database_with(
        &mut self,
        name: &str,
        method: AccessMethod,
    ) -> Result<StoreDatabase> {
        if self.look_up(name)?.is_some() {
            return Err(Error::DatabaseExists { name: name.into() });
        }
        check_name(name)?;
        self.check_failed()?;
        let tree = self.new_tree(method)?;
        let record = encode_catalog_record(tree.id, method);
        let named = self.write(self.catalog, name.as_bytes(), &record);
        if named.is_err() {
            self.trees.retain(|other| *other != tree);
            free_pages(&self.pool, &ChangeGuard::unshared(), &[tree.root])?;
        }
        named.map(|()| self.handle(tree))
    }

    /// Opens a database.
    pub fn open_database(&mut self, name: &str) -> Result<StoreDatabase> {
        let tree = self.look_up(name)?;
        let tree = tree.ok_or_else(|| Error::NoSuchDatabase { name: name.into() })?;
        Ok(self.handle(tree))
    }

    /// Opens a database, or creates a B+tree database with that name.
    pub fn open_or_create_database(&mut self, name: &str) -> Result<StoreDatabase> {
        match self.look_up(name)? {
            Some(tree) => Ok(self.handle(tree)),
            None => self.create_database(name),
        }
    }

    /// Removes a database and everything in it. Its handles become invalid.
    pub fn drop_database(&mut self, name: &str) -> Result<()> {
        let database = self.open_database(name)?;
        self.check_failed()?;
        recovery::delete(&self.pool, self.catalog, name.as_bytes(), &mut self.leaf_hint)?;
        self.trees.retain(|tree| *tree != database.tree);
        self.changed = true;
        self.leaf_hint = LeafHint::default();
        self.directories.retain(|(tree, _)| *tree != database.tree.id);
        self.nameless.push(database.tree);
        self.free_nameless();
        Ok(())
    }

    /// Returns the names of all databases in order.
    pub fn databases(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let catalog = self.handle(self.catalog);
        let mut cursor = self.cursor(catalog)?;
        let mut more = cursor.first()?;
        while more {
            names.push(String::from_utf8_lossy(cursor.key()).into_owned());
            more = cursor.next()?;
        }
        Ok(names)
    }

    /// The tree of a handle, if it is one of this store's.
    #[inline]
    fn tree(&self, database: StoreDatabase) -> Result<Tree> {
        if database.store != self.id || !self.trees.contains(&database.tree) {
            return Err(Error::misuse(
                "the database handle is of another data store, or its database was dropped",
            ));
        }
        Ok(database.tree)
    }

    fn read(&mut self, tree: Tree, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(flags) = self.read_stored(tree, key, value)? else { return Ok(false) };
        if flags & OVERFLOW != 0 {
            let pointer = pointer_of(value);
            read_chain(&self.pool, &pointer, value)?;
        }
        Ok(true)
    }

    /// Reads a value as it is stored, with a pointer in place of a long one. Returns its flags.
    #[inline(always)]
    fn read_stored(&mut self, tree: Tree, key: &[u8], value: &mut Vec<u8>) -> Result<Option<u8>> {
        let (guard, found) = tree.locate(&self.pool, key, &mut self.leaf_hint)?;
        let Ok(position) = found else {
            value.clear();
            return Ok(None);
        };
        let record = guard.page.record(position);
        guard.page.assign_to(record.value_offset, record.value_length, value);
        Ok(Some(record.flags))
    }

    fn read_part(
        &mut self,
        tree: Tree,
        key: &[u8],
        offset: u64,
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        let mut value = Vec::new();
        let Some(flags) = self.read_stored(tree, key, &mut value)? else { return Ok(None) };
        if flags & OVERFLOW == 0 {
            return Ok(Some(copy_part(&value, offset, out)));
        }
        ChainReader::new(&self.pool, &value)?.read_at(&self.pool, offset, out).map(Some)
    }

    fn write(&mut self, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        check_limits(self.pool.page_size, key, Some(value))?;
        self.check_failed()?;
        self.changed = true;
        recovery::put(&self.pool, tree, key, value, &mut self.leaf_hint)
    }

    fn check_failed(&self) -> Result<()> {
        match &self.failure {
            Some(reason) => Err(Error::Failed { reason: reason.as_str().into() }),
            None if self.is_read_only => Err(Error::ReadOnlyEnvironment),
            None => Ok(()),
        }
    }

    /// Returns the value of `key`, or `None` if there is no record.
    ///
    /// ```
    /// # let mut store = quickbeam::DataStore::open_in_memory(Default::default())?;
    /// # let fruit = store.create_database("fruit")?;
    /// # store.put(fruit, b"apple", b"red")?;
    /// assert_eq!(store.get(fruit, b"apple")?.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(store.get(fruit, b"pear")?, None);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn get(&mut self, database: StoreDatabase, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(database, key, &mut value)?.then_some(value))
    }

    /// Reads the value of `key` into `value`, replacing its content. Returns false, with `value`
    /// empty, if there is no record.
    #[inline]
    pub fn get_into(
        &mut self,
        database: StoreDatabase,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let tree = self.tree(database)?;
        self.by_key(tree, key, |store, key| store.read(tree, key, value))
    }

    /// Reads a part of the value of `key`: the bytes from `offset` on, into `out`. Returns how many
    /// there were, fewer than `out` holds only at the value's end, or `None` if there is no record.
    /// The pages of a long value up to the part are visited.
    pub fn get_part(
        &mut self,
        database: StoreDatabase,
        key: &[u8],
        offset: u64,
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        let tree = self.tree(database)?;
        self.by_key(tree, key, |store, key| store.read_part(tree, key, offset, out))
    }

    /// Returns whether there is a record with that key.
    pub fn exists(&mut self, database: StoreDatabase, key: &[u8]) -> Result<bool> {
        self.get_into(database, key, &mut Vec::new())
    }

    /// Inserts a record, or replaces its value.
    ///
    /// ```
    /// # let mut store = quickbeam::DataStore::open_in_memory(Default::default())?;
    /// # let fruit = store.create_database("fruit")?;
    /// store.put(fruit, b"apple", b"red")?;
    /// store.put(fruit, b"apple", b"green")?;
    /// assert_eq!(store.get(fruit, b"apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[inline]
    pub fn put(&mut self, database: StoreDatabase, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(database)?;
        let limit = key_limit(self.pool.page_size) - tree.key_start();
        if key.len() > limit {
            return Err(Error::KeyTooLong(Box::new(TooLong { length: key.len(), limit })));
        }
        self.by_key(tree, key, |store, key| store.write(tree, key, value))
    }

    /// Inserts a record. Returns false, changing nothing, if the key exists.
    pub fn put_if_absent(
        &mut self,
        database: StoreDatabase,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        if self.exists(database, key)? {
            return Ok(false);
        }
        self.put(database, key, value).map(|()| true)
    }

    /// Removes a record. Returns false if there is none.
    ///
    /// ```
    /// # let mut store = quickbeam::DataStore::open_in_memory(Default::default())?;
    /// # let fruit = store.create_database("fruit")?;
    /// # store.put(fruit, b"apple", b"red")?;
    /// assert!(store.delete(fruit, b"apple")?);
    /// assert!(!store.exists(fruit, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[inline]
    pub fn delete(&mut self, database: StoreDatabase, key: &[u8]) -> Result<bool> {
        let tree = self.tree(database)?;
        self.check_failed()?;
        self.changed = true;
        self.by_key(tree, key, |store, key| {
            recovery::delete(&store.pool, tree, key, &mut store.leaf_hint)
        })
    }

    /// Runs `work` with the key as it is stored. In a hash tree `work` starts in the leaf that the
    /// bucket directory names; if `work` ends in another leaf, the directory learns that one.
    #[inline]
    fn by_key<T>(
        &mut self,
        tree: Tree,
        key: &[u8],
        work: impl FnOnce(&mut DataStore, &[u8]) -> Result<T>,
    ) -> Result<T> {
        if tree.method.is_ordered() {
            return work(self, key);
        }
        let directory = match self.directories.iter().find(|(id, _)| *id == tree.id) {
            Some((_, directory)) => directory.clone(),
            None => {
                let directory = Arc::new(BucketDirectory::new());
                self.directories.push((tree.id, directory.clone()));
                directory
            }
        };
        with_stored(tree.method, key, |stored, hash| {
            let guess = directory.leaf_for(hash);
            self.leaf_hint = LeafHint::at(tree, guess);
            let done = work(self, stored);
            if self.leaf_hint.leaf() != guess {
                directory.record(hash, self.leaf_hint.leaf(), self.pool.page_count());
            }
            done
        })
    }

    /// Opens a cursor with no current record.
    ///
    /// ```
    /// # let mut store = quickbeam::DataStore::open_in_memory(Default::default())?;
    /// # let fruit = store.create_database("fruit")?;
    /// # store.put(fruit, b"apple", b"red")?;
    /// let mut cursor = store.cursor(fruit)?;
    /// assert!(cursor.next()?);
    /// assert_eq!(cursor.key(), b"apple");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn cursor(&mut self, database: StoreDatabase) -> Result<StoreCursor<'_>> {
        let tree = self.tree(database)?;
        Ok(StoreCursor::new(self, tree))
    }

    /// Makes every change so far durable, atomically. A crash restores the state of the last
    /// completed sync.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use quickbeam::{DataStore, Options};
    ///
    /// let mut store = DataStore::open(directory.path(), Options::default())?;
    /// let fruit = store.create_database("fruit")?;
    /// store.put(fruit, b"apple", b"red")?;
    /// store.sync()?;
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn sync(&mut self) -> Result<()> {
        self.check_failed()?;
        if self.path.is_none() {
            return Ok(());
        }
        self.free_nameless();
        let trees = self.trees.iter().chain(&self.nameless).copied().collect();
        let fix = || EpochStart {
            timestamp: 0,
            log_position: 0,
            log_start: 0,
            trees,
            dead_chains: self.dead_chains.clone(),
            active: Default::default(),
        };
        let made =
            self.checkpointer.run(&self.pool, None, self.incarnation, CheckpointKind::Final, fix);
        if let Err(error) = &made
            && !matches!(error, Error::DiskFull { .. })
        {
            self.failure = Some(error.to_string());
        }
        self.changed &= made.is_err();
        made
    }

    /// Gives free space back to the file system: merges and fills sparse leaves, moves pages from
    /// the end of the file to free blocks, and cuts the file. It makes every change so far durable,
    /// as [`sync`](Self::sync) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let mut store = quickbeam::DataStore::open(directory.path(), Default::default())?;
    /// # let fruit = store.create_database("fruit")?;
    /// # store.put(fruit, b"apple", b"red")?;
    /// let report = store.compact()?;
    /// assert!(report.bytes_after <= report.bytes_before);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn compact(&mut self) -> Result<CompactionReport> {
        self.sync()?;
        let mut report =
            CompactionReport { bytes_before: self.pool.file_bytes(), ..Default::default() };
        for tree in self.trees.clone() {
            let mut next = Some(Vec::new());
            while let Some(key) = next {
                self.changed = true;
                let packed = tree.pack_leaf(&self.pool, 0, &key, Packing::Fill)?;
                report.merged_pages += packed.merged as u64;
                next = packed.next;
            }
        }
        self.sync()?;
        for _ in 0..MOVING_ROUNDS {
            let from = self.pool.blocks.in_use();
            if self.path.is_none() || self.pool.blocks.at_used_end(|end| end <= from) {
                break;
            }
            self.changed = true;
            report.moved_pages += move_pages(&self.pool, 0, from, || Ok(()))?;
            self.checkpointer.move_page_map_from(from);
            self.sync()?;
        }
        self.pool.cut_file()?;
        report.bytes_after = self.pool.file_bytes();
        Ok(report)
    }

    /// Returns counters and sizes since opening.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut numbers = pool_statistics(&self.pool, self.cache_size);
        sample_trees(&self.pool, &self.trees, &mut numbers);
        numbers
    }

    /// Checks every page: order, structure, reachability and space.
    ///
    /// ```
    /// # let mut store = quickbeam::DataStore::open_in_memory(Default::default())?;
    /// # let fruit = store.create_database("fruit")?;
    /// # store.put(fruit, b"apple", b"red")?;
    /// assert!(store.verify()?.complaints.is_empty());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn verify(&mut self) -> Result<VerifyReport> {
        let (pool, trees, nameless) = (&self.pool, &self.trees, &self.nameless);
        let dead = &self.dead_chains;
        Ok(self
            .checkpointer
            .inspect(|locations| verify_pages(pool, locations, trees, nameless, dead)))
    }

    /// Closes the data store with a sync. Dropping it does the same, but only prints an error.
    ///
    /// An error says that what was changed since the last successful sync is lost.
    pub fn close(mut self) -> Result<()> {
        let finished = self.finish();
        // It was reported: dropping the store has nothing to add.
        self.changed = false;
        finished
    }

    fn finish(&mut self) -> Result<()> {
        if self.changed { self.sync() } else { Ok(()) }
    }
}

impl Drop for DataStore {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            eprintln!("quickbeam: closing the data store: {error}; the last synced state is kept");
        }
    }
}
