//! Opening and creating environments and data stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::{Engine, lock_file};
use crate::access::btree::Tree;
use crate::access::overflow::free_chain;
use crate::buffer::{Pool, Sharing};
use crate::catalog::CATALOG_TREE;
use crate::checkpoint::{
    CheckpointKind, Checkpointer, EpochStart, FoundMetaPage, Identity, MetaPages, PageMap, Root,
    StoreKind, load_directory,
};
use crate::error::{Damage, DamagedPlace, Error, NoEnvironment, Result};
use crate::files::{DATA_FILE, LOCK_FILE, LOG_DIRECTORY, SOCKET_FILE};
use crate::mvcc::{TransactionTable, UndoSpill};
use crate::options::{AccessMethod, Durability, Options};
use crate::recovery;
use crate::temporary::{TemporaryFiles, remove_left};
use crate::vfs::overlay::OverlayFile;
use crate::vfs::{File, OpenMode, Vfs};
use crate::wal::{Log, LogSettings, path_of};

/// An open data file: its pool and its last checkpoint.
pub struct Opened {
    pub pool: Pool,
    pub identity: Identity,
    pub root: Root,
    /// A newer root, written by the next incarnation, may have been lost.
    pub is_doubtful: bool,
    pub directory: PageMap,
    pub lock: Option<Arc<dyn File>>,
    /// The file was created by this opening.
    pub created: bool,
}

/// How a directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading and writing: one opener at a time.
    Write,
    /// For reading only: writes, creates and removes no files. Recovery changes pages in memory.
    Read,
}

/// Returns whether the log shows what a newer root had that was lost. A log is read from the root's
/// log start if that segment was there before the root. The first root precedes every segment, so
/// its segment has to be there now: then the log is there from its beginning.
fn shows_newer_root(vfs: &dyn Vfs, directory: &Path, found: &FoundMetaPage) -> bool {
    let FoundMetaPage { identity, root, .. } = found;
    let first =
        || path_of(&directory.join(LOG_DIRECTORY), root.log_start / identity.log_segment_size);
    root.segment_exists || root.sequence == 1 && vfs.exists(&first())
}

/// Opens the data file in `path`, or creates it. Checks options and directory first.
pub fn open_data_file(
    vfs: &Arc<dyn Vfs>,
    path: Option<&Path>,
    options: &Options,
    (kind, access): (StoreKind, Access),
    transactions: Arc<TransactionTable>,
) -> Result<Opened> {
    options.check()?;
    let directory = path.unwrap_or(Path::new(""));
    let data_path = directory.join(DATA_FILE);
    let exists = vfs.exists(&data_path);
    if !exists {
        check_place(&**vfs, path, options.create && access == Access::Write)?;
    }
    let lock = match path {
        Some(path) => lock_file::take(&**vfs, path, access)?,
        None => None,
    };
    invariant!(
        ENV_1,
        path.is_none() || access == Access::Read || lock.is_some(),
        "an environment is open for writing without its lock"
    );
    // Check again: another opener may have created and closed it before the lock was taken.
    let exists = vfs.exists(&data_path);
    let on = |error| Error::on_file("opening", &data_path, error);
    let file: Arc<dyn File> = match access {
        Access::Read => {
            let below = vfs.open(&data_path, OpenMode::Read).map_err(on)?;
            Arc::new(OverlayFile::new(below, options.cache_size as u64).map_err(on)?)
        }
        Access::Write if exists => vfs.open(&data_path, OpenMode::Write).map_err(on)?,
        Access::Write => create_data_file(&**vfs, directory, options, kind)?,
    };
    let found = MetaPages.read(&*file, &data_path)?;
    check_found(&**vfs, directory, &found, kind)?;
    let FoundMetaPage { identity, root, is_doubtful, .. } = found;
    if let Some(path) = path.filter(|_| exists && access == Access::Write) {
        // The process that created the files may have crashed before their names were durable.
        vfs.sync_directory(path)
            .map_err(|error| Error::on_file("flushing the folder", path, error))?;
        let confirmed = MetaPages.confirm(&*file, &identity, &root);
        confirmed.map_err(|error| Error::on_file("flushing", &data_path, error))?;
        remove_left(&**vfs, path)?;
    }
    let page_size = identity.page_size as usize;
    let checked = Options { page_size, ..options.clone() };
    checked.check()?;
    let sharing = match kind {
        StoreKind::Transactional => Sharing::Shared,
        StoreKind::Plain => Sharing::Exclusive,
    };
    let pool = Pool::new(vfs.clone(), file, transactions, page_size, options.cache_size, sharing)?;
    let directory = load_page_map(&pool, &root)?;
    let created = !exists;
    Ok(Opened { pool, identity, root, is_doubtful, directory, lock, created })
}

/// Returns an error if the newest root may be lost, or if the file is one of another kind.
fn check_found(
    vfs: &dyn Vfs,
    directory: &Path,
    found: &FoundMetaPage,
    kind: StoreKind,
) -> Result<()> {
    let data_path = directory.join(DATA_FILE);
    if found.is_other_damaged && !shows_newer_root(vfs, directory, found) {
        // Without a log that shows what the newer root had, the loss is undetectable.
        let detail = format!(
            "one is damaged, and there is no log that would show what was newer than root {}",
            found.root.sequence
        );
        let file = data_path.display().to_string();
        return Err(Damage::from(detail).at(file, DamagedPlace::MetaPages));
    }
    if found.identity.kind != kind {
        let (found, wanted) = match kind {
            StoreKind::Plain => ("an Environment", "a DataStore"),
            StoreKind::Transactional => ("a DataStore", "an Environment"),
        };
        return Err(Error::misuse(format!(
            "{} was made by {found} and cannot be opened as {wanted}",
            data_path.display()
        )));
    }
    Ok(())
}

/// Reads the page map of a root. The pool takes its pages, and the blocks that it names are in use.
fn load_page_map(pool: &Pool, root: &Root) -> Result<PageMap> {
    let map = load_directory(pool, root.directory)?;
    check_blocks(pool, &map)?;
    for &location in map.chunks.iter().chain(&map.pages) {
        if location.0 != 0 && !pool.blocks.mark(location.block()) {
            return Err(Error::page(0, format!("block {} is claimed twice", location.block())));
        }
    }
    for (page, &location) in map.mapping.iter().enumerate() {
        if location.0 != 0 {
            pool.adopt(page as u64, location)?;
        }
    }
    pool.collect_free_pages();
    Ok(map)
}

/// Returns an error if the page map names a block past any possible end of the file. The allocator
/// would need memory for every block up to it.
fn check_blocks(pool: &Pool, loaded: &PageMap) -> Result<()> {
    let limit = pool.block_limit();
    for location in loaded.chunks.iter().chain(&loaded.pages).chain(&loaded.mapping) {
        if location.block() >= limit {
            let detail = format!("block {} lies far past the end of the file", location.block());
            return Err(Error::page(0, detail));
        }
    }
    Ok(())
}

/// Returns whether no block that the page map names was released (RECOV-2).
fn has_blocks_of(pool: &Pool, map: &PageMap) -> bool {
    let locations = map.chunks.iter().chain(&map.pages).chain(&map.mapping);
    locations
        .filter(|location| location.0 != 0)
        .all(|location| pool.blocks.is_used(location.block()))
}

fn check_place(vfs: &dyn Vfs, path: Option<&Path>, create: bool) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let not = |detail: &str| {
        Error::NotAnEnvironment(Box::new(NoEnvironment {
            path: path.into(),
            detail: detail.into(),
        }))
    };
    if !create {
        return Err(not("it has no data file, and the create option is off"));
    }
    if vfs.exists(path) {
        let names = vfs.list_directory(path).map_err(|e| Error::on_file("listing", path, e))?;
        let ours = |name: &PathBuf| {
            let name = name.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            [LOCK_FILE, LOG_DIRECTORY, SOCKET_FILE].contains(&name) || name.ends_with(".new")
        };
        if !names.iter().all(ours) {
            return Err(not(
                "it has no data file, and other files are in it; name an empty or new directory",
            ));
        }
        if names.iter().any(|name| name.ends_with(LOG_DIRECTORY)) {
            let log = vfs.list_directory(&path.join(LOG_DIRECTORY)).unwrap_or_default();
            if !log.is_empty() {
                return Err(not("it has a log but no data file; restore the data file"));
            }
        }
    } else {
        vfs.create_directory(path).map_err(|error| Error::on_file("creating", path, error))?;
    }
    // Sync the parent of an existing directory too: its name may not be durable yet.
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => vfs
            .sync_directory(parent)
            .map_err(|error| Error::on_file("flushing the folder", parent, error)),
        None => Ok(()),
    }
}

/// Creates a data file with an empty checkpoint, and renames it when it is complete.
fn create_data_file(
    vfs: &dyn Vfs,
    directory: &Path,
    options: &Options,
    kind: StoreKind,
) -> Result<Arc<dyn File>> {
    let path = directory.join(DATA_FILE);
    let new = directory.join("data.new");
    let on = |error| Error::on_file("creating", &path, error);
    if vfs.exists(&new) {
        // Left by an earlier attempt; its content is unknown after a failed flush.
        vfs.remove(&new).map_err(on)?;
    }
    let file = vfs.open(&new, OpenMode::Create).map_err(on)?;
    // Allocate space for the meta pages, so that writing one never finds the device full.
    file.allocate(crate::blocks::RESERVED_BYTES).map_err(on)?;
    let identity = Identity {
        environment: vfs.random(),
        page_size: options.page_size as u32,
        kind,
        log_segment_size: options.log_segment_size,
    };
    let log_position = options.log_segment_size + crate::wal::SEGMENT_HEADER;
    let root =
        Root { sequence: 1, log_position, log_start: log_position, clean: true, ..Root::default() };
    MetaPages.write(&*file, &identity, &root).map_err(on)?;
    file.sync_all().map_err(on)?;
    vfs.rename(&new, &path).map_err(on)?;
    vfs.sync_directory(directory).map_err(on)?;
    vfs.open(&path, OpenMode::Write).map_err(on)
}

/// The state of an environment after recovery.
struct Recovered {
    /// All trees by number, and the number of the next one.
    trees: BTreeMap<u32, Tree>,
    next_tree: u32,
    catalog: Tree,
    /// The incarnation of the log that this opening writes.
    incarnation: u32,
    /// The end of the log that was read.
    end: u64,
}

/// Brings the pages of an opened data file to the end of the log.
fn recover(
    vfs: &Arc<dyn Vfs>,
    path: Option<&Path>,
    opened: &Opened,
    transactions: &TransactionTable,
) -> Result<Recovered> {
    let Opened { pool, identity, root, is_doubtful, directory, .. } = opened;
    let mut trees = recovery::TreeMap::new(pool, &directory.trees)?;
    transactions.newest_commit.store(root.timestamp, Ordering::SeqCst);
    for &chain in &directory.dead_chains {
        free_chain(pool, &pool.enter(0), chain)?;
    }
    let mut incarnation = root.incarnation;
    let mut end = root.log_position;
    if let Some(path) = path
        && !root.clean
    {
        let replayed = recovery::replay(vfs, pool, &mut trees, identity, root, path)?;
        incarnation = incarnation.max(replayed.incarnation);
        end = end.max(replayed.end);
        transactions.newest_commit.fetch_max(replayed.timestamp, Ordering::SeqCst);
    }
    // A lost root may have had the next incarnation; its log records must not continue this log.
    incarnation += 1 + u32::from(*is_doubtful);
    recovery::free_nameless(pool, &mut trees)?;
    invariant!(
        RECOV_2,
        has_blocks_of(pool, directory),
        "a block of checkpoint {} is free after recovery",
        root.sequence
    );
    let catalog = trees.get_or_create(CATALOG_TREE, AccessMethod::BTree)?;
    let (trees, next_tree) = trees.into_parts();
    Ok(Recovered { trees, next_tree, catalog, incarnation, end })
}

/// Opens an environment and recovers it.
pub fn open(
    vfs: Arc<dyn Vfs>,
    path: Option<&Path>,
    options: Options,
    access: Access,
) -> Result<Engine> {
    let mut options = options;
    if path.is_none() || access == Access::Read {
        options.durability = Durability::InMemory;
    }
    let temporary_files = path
        .filter(|_| access == Access::Write)
        .map(|directory| Arc::new(TemporaryFiles::new(vfs.clone(), directory)));
    let spill = UndoSpill::new(temporary_files.clone(), options.undo_memory);
    let transactions = Arc::new(TransactionTable::new(&*vfs, spill));
    let kind = StoreKind::Transactional;
    let opened = open_data_file(&vfs, path, &options, (kind, access), transactions.clone())?;
    let recovered = recover(&vfs, path, &opened, &transactions)?;
    let Recovered { trees, next_tree, catalog, incarnation, end } = recovered;
    let Opened { pool, identity, root, directory, lock, created, .. } = opened;
    let log = match path.filter(|_| options.durability != Durability::InMemory) {
        Some(path) => Some(open_log(&vfs, path, &options, &identity, incarnation, end)?),
        None => None,
    };
    let checkpointer = Checkpointer::new(identity.clone(), MetaPages, root, directory);
    let engine = Engine {
        id: vfs.random() ^ identity.environment,
        path: path.map(Path::to_owned),
        transactions,
        pool,
        log,
        commit_lock: crate::sync::locks::Mutex::default(),
        checkpointer,
        catalog,
        is_read_only: access == Access::Read,
        catalog_version: AtomicU64::new(0),
        counters: super::TransactionCounters::default(),
        old_snapshots: super::OldSnapshots::new(&options, &*vfs),
        incarnation,
        temporary_files,
        trees: crate::sync::locks::RwLock::new(trees),
        freeing_trees: crate::sync::locks::RwLock::default(),
        next_tree: AtomicU32::new(next_tree),
        directories: crate::sync::locks::Mutex::default(),
        recent_ms: AtomicU64::new(vfs.now().as_millis() as u64),
        failure: crate::sync::locks::Mutex::default(),
        failed: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        ending: crate::sync::locks::Mutex::default(),
        stop: AtomicBool::new(false),
        compacting: crate::sync::locks::Mutex::default(),
        checkpoint_wanted: vfs.event(),
        compaction_wanted: vfs.event(),
        lock: crate::sync::locks::Mutex::new(lock),
        options,
        vfs,
    };
    if path.is_some() || created {
        // Makes the new incarnation durable before its first log record, and saves another replay.
        engine.log_free_checkpoint(end)?;
        engine.pool.set_reserve_aside()?;
    }
    Ok(engine)
}

impl Engine {
    /// Writes the checkpoint that ends opening. Its log position is the end of the log.
    fn log_free_checkpoint(&self, end: u64) -> Result<()> {
        let fix = || EpochStart {
            timestamp: self.transactions.newest_commit.load(Ordering::SeqCst),
            log_position: self.log.as_ref().map_or(end, |log| log.lock().end),
            log_start: self.log.as_ref().map_or(end, |log| log.lock().end),
            trees: self.trees.read().values().copied().collect(),
            dead_chains: Vec::new(),
            active: Default::default(),
        };
        self.checkpointer.run(
            &self.pool,
            self.log.as_ref(),
            self.incarnation,
            CheckpointKind::Online,
            fix,
        )
    }
}

fn open_log(
    vfs: &Arc<dyn Vfs>,
    path: &Path,
    options: &Options,
    identity: &Identity,
    incarnation: u32,
    end: u64,
) -> Result<Log> {
    let directory = path.join(LOG_DIRECTORY);
    if !vfs.exists(&directory) {
        let on = |error| Error::on_file("creating", &directory, error);
        vfs.create_directory(&directory).map_err(on)?;
        vfs.sync_directory(path).map_err(on)?;
    }
    let settings = LogSettings {
        directory,
        segment_size: identity.log_segment_size,
        environment: identity.environment,
        incarnation,
        buffer: options.log_buffer,
        write_through: options.durability == Durability::Sync,
    };
    Log::open(vfs.clone(), settings, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::vfs::MemoryVfs;

    /// A meta page with a valid checksum and a wrong segment size: opening allocates no segment of
    /// that size, in memory or on disk.
    #[test]
    fn wrong_log_segment_size_is_refused() {
        for clean in [false, true] {
            let vfs = Arc::new(MemoryVfs::new());
            let path = Path::new("environment");
            let options =
                || Options { page_size: 4096, log_segment_size: 256 << 10, ..Options::default() };
            let open = || Environment::open_in(vfs.clone(), Some(path), options());
            let environment = open().unwrap();
            environment.create_database("data").unwrap();
            if clean {
                environment.close().unwrap();
            } else {
                drop(environment);
            }
            let data = path.join(DATA_FILE);
            let file = vfs.open(&data, OpenMode::Write).unwrap();
            let FoundMetaPage { identity, root, .. } = MetaPages.read(&*file, &data).unwrap();
            let wrong = Identity { log_segment_size: 640 << 20, ..identity };
            for sequence in [root.sequence, root.sequence + 1] {
                let root = Root { sequence, clean, ..root.clone() };
                MetaPages.write(&*file, &wrong, &root).unwrap();
            }
            let refused = open();
            assert!(matches!(refused, Err(Error::Corruption { .. })), "clean: {clean}");
            for path in vfs.list_directory(&path.join(LOG_DIRECTORY)).unwrap() {
                let length = vfs.open(&path, OpenMode::Read).unwrap().length().unwrap();
                assert!(length <= 256 << 10, "{length} bytes");
            }
        }
    }
}
