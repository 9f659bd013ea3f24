//! Recovery: applies the log after the last checkpoint, up to its last commit.
//!
//! Above: opening an environment. Below: log reader, access methods. There is no undo phase: a
//! checkpoint contains no uncommitted change, and log records take effect only with their commit
//! record.
//!
//! - RECOV-1: commits are applied in log order, which is commit order. Commits before the
//!   checkpoint's log position are skipped.
//! - RECOV-2: replay overwrites no block that the last root refers to, so recovery after a crash
//!   during recovery starts over.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use crate::access::btree::{LeafHint, NewRecord, Tree, Versioning};
use crate::access::limits::{check_limits, fits_inline};
use crate::access::overflow::{
    chain_pages, decode_pointer, encode_pointer, free_chain, free_pages, write_chain,
};
use crate::buffer::Pool;
use crate::catalog::{CATALOG_TREE, decode_catalog_record};
use crate::checkpoint::{INCARNATION_LIMIT, Identity, Root};
use crate::error::{Damage, DamagedPlace, Error, Result};
use crate::failpoints::{Canary, planted};
use crate::files::LOG_DIRECTORY;
use crate::options::AccessMethod;
use crate::page::{OVERFLOW, PageId};
use crate::vfs::Vfs;
use crate::wal::{
    LogReader, Lsn, Operation, ReadRecord, RecordKind, decode_operations, decode_parts,
};

/// The result of replaying the log.
pub struct Replayed {
    /// The end of the log.
    pub end: u64,
    /// The highest incarnation in the log.
    pub incarnation: u32,
    /// The timestamp of the last commit.
    pub timestamp: u64,
}

/// The trees of an environment while it is being opened.
pub struct TreeMap<'p> {
    pool: &'p Pool,
    trees: BTreeMap<u32, Tree>,
    /// Access methods of trees named by catalog records in the log.
    methods: HashMap<u32, AccessMethod>,
    next: u32,
}

impl<'p> TreeMap<'p> {
    /// Starts with the trees of a checkpoint.
    pub fn new(pool: &'p Pool, trees: &[Tree]) -> Result<TreeMap<'p>> {
        for tree in trees {
            if !pool.is_allocated(tree.root) {
                return Err(Error::page(
                    tree.root,
                    format!("the root of tree {} is missing", tree.id),
                ));
            }
        }
        let next = trees.iter().map(|tree| tree.id.saturating_add(1)).max();
        let next = next.unwrap_or(CATALOG_TREE + 1);
        let next = next.max(CATALOG_TREE + 1);
        let trees = trees.iter().map(|tree| (tree.id, *tree)).collect();
        Ok(TreeMap { pool, trees, methods: HashMap::new(), next })
    }

    /// Returns the tree with that number, creating an empty one if there is none.
    pub fn get_or_create(&mut self, id: u32, method: AccessMethod) -> Result<Tree> {
        if let Some(tree) = self.trees.get(&id) {
            if tree.method != method {
                let detail =
                    format!("tree {id} is a {} tree, named as a {method} tree", tree.method);
                return Err(Error::page(tree.root, detail));
            }
            return Ok(*tree);
        }
        if id >= TREE_LIMIT {
            return Err(Error::page(0, format!("{id} is not the number of a tree")));
        }
        let change_guard = self.pool.enter(0);
        let tree = Tree::create(self.pool, &change_guard, id, method, Versioning::Versioned)?;
        self.next = self.next.max(id + 1);
        self.trees.insert(id, tree);
        Ok(tree)
    }

    /// Returns the tree of a log operation. Its catalog record precedes it in the log, unless the
    /// checkpoint contains the tree.
    fn of_operation(&mut self, id: u32) -> Result<Tree> {
        match self.trees.get(&id) {
            Some(tree) => Ok(*tree),
            None => self.get_or_create(id, self.methods.get(&id).copied().unwrap_or_default()),
        }
    }

    /// Returns the trees, and the number for the next one.
    pub fn into_parts(self) -> (BTreeMap<u32, Tree>, u32) {
        (self.trees, self.next)
    }
}

/// Larger tree numbers and timestamps never occur in practice. They are reported as damage, so
/// computations cannot overflow.
const TREE_LIMIT: u32 = u32::MAX - (1 << 20);
const COMMIT_LIMIT: u64 = 1 << 60;

/// Applies the log from the checkpoint on.
pub fn replay(
    vfs: &Arc<dyn Vfs>,
    pool: &Pool,
    trees: &mut TreeMap<'_>,
    identity: &Identity,
    root: &Root,
    path: &Path,
) -> Result<Replayed> {
    let directory = path.join(LOG_DIRECTORY);
    let size = identity.log_segment_size;
    let (environment, start) = (identity.environment, root.log_start);
    let mut reader =
        LogReader::new(vfs.clone(), directory, environment, size, start, root.incarnation);
    if root.segment_exists {
        reader.expect_first();
    }
    // The positions of the fragments of unfinished transactions, whose operations stay in the log.
    let mut fragments: HashMap<u64, Vec<Lsn>> = HashMap::new();
    let mut incarnation = root.incarnation;
    let mut timestamp = root.timestamp;
    let mut leaf_hints: HashMap<u32, LeafHint> = HashMap::new();
    let mut applied = root.log_position;
    while let Some(record) = reader.next()? {
        let ReadRecord { lsn, kind, transaction, payload, .. } = record;
        if record.incarnation != incarnation {
            // Transaction numbers restart with each incarnation. Fragments of an earlier
            // incarnation have no commit.
            incarnation = record.incarnation;
            if !planted(Canary::PiecesMixed) {
                fragments.clear();
            }
        }
        if kind == RecordKind::Fragment {
            fragments.entry(transaction).or_default().push(lsn);
            continue;
        }
        let earlier = fragments.remove(&transaction).unwrap_or_default();
        if lsn < root.log_position {
            continue;
        }
        if record.timestamp >= COMMIT_LIMIT || record.incarnation > INCARNATION_LIMIT {
            return Err(damaged(lsn));
        }
        let apply_to_trees =
            |operation: Operation<'_>| apply(pool, trees, &mut leaf_hints, operation);
        let decoded = if earlier.is_empty() {
            decode_operations(&payload, apply_to_trees)
        } else {
            let read = |number: usize| match earlier.get(number) {
                Some(&fragment) => reader.payload_again(fragment),
                None => Ok(payload.clone()),
            };
            decode_parts(earlier.len() + 1, read, apply_to_trees)
        };
        decoded.map_err(|error| error.unwrap_or_else(|| damaged(lsn)))?;
        timestamp = record.timestamp;
        invariant!(RECOV_1, lsn >= applied, "the commit at {lsn} follows the one at {applied}");
        applied = lsn + 1;
    }
    Ok(Replayed { end: reader.position(), incarnation: reader.incarnation(), timestamp })
}

fn damaged(lsn: u64) -> Error {
    Damage::from("a whole record does not hold what a commit does")
        .at(LOG_DIRECTORY, DamagedPlace::LogPosition(lsn))
}

fn apply(
    pool: &Pool,
    trees: &mut TreeMap<'_>,
    leaf_hints: &mut HashMap<u32, LeafHint>,
    operation: Operation<'_>,
) -> Result<()> {
    let (Operation::Put { key, .. } | Operation::Delete { key, .. }) = operation;
    check_limits(pool.page_size, key, None)?;
    match operation {
        Operation::Put { tree, key, value } => {
            if tree == CATALOG_TREE {
                trees.methods.extend(decode_catalog_record(value));
            }
            let leaf_hint = leaf_hints.entry(tree).or_default();
            put(pool, trees.of_operation(tree)?, key, value, leaf_hint)
        }
        Operation::Delete { tree, key } => {
            let leaf_hint = leaf_hints.entry(tree).or_default();
            delete(pool, trees.of_operation(tree)?, key, leaf_hint).map(|_| ())
        }
    }
}

/// Inserts or replaces a record outside of any transaction. Changes nothing on an error.
pub fn put(
    pool: &Pool,
    tree: Tree,
    key: &[u8],
    value: &[u8],
    leaf_hint: &mut LeafHint,
) -> Result<()> {
    if fits_inline(pool.page_size, key, value.len()) {
        return store(pool, tree, key, (value, 0), leaf_hint);
    }
    let mut pages = Vec::new();
    let written = write_chain(pool, 0, tree.id, value, |page| pages.push(page));
    let stored = written.and_then(|first| {
        store(pool, tree, key, (&encode_pointer(first, value.len() as u64), OVERFLOW), leaf_hint)
    });
    if stored.is_err() {
        free_pages(pool, &pool.enter(0), &pages)?;
    }
    stored
}

/// Stores a value, or a pointer to an overflow chain, with its flags in the record.
fn store(
    pool: &Pool,
    tree: Tree,
    key: &[u8],
    (stored, flags): (&[u8], u8),
    leaf_hint: &mut LeafHint,
) -> Result<()> {
    let mut replaced = None;
    loop {
        let change_guard = pool.enter(0);
        let (guard, found) = tree.locate(pool, key, leaf_hint)?;
        let chain = found.ok().and_then(|position| chain_at(guard.page, position));
        if let Some(chain) = chain.filter(|_| replaced.is_none()) {
            // The old chain's pages are collected before any change, because that can fail and
            // needs frames.
            replaced = Some(chain_pages(pool, chain)?);
            continue;
        }
        let Some(latched) = guard.upgrade() else { continue };
        let page = latched.write(&change_guard)?;
        let done = match found {
            Ok(position) => page.replace_record(position, 0, flags, stored),
            Err(position) => page.insert_record(position, key, 0, flags, stored),
        };
        drop(latched);
        if done {
            return free_pages(pool, &change_guard, &replaced.unwrap_or_default());
        }
        let record = NewRecord { key, value_length: stored.len() };
        tree.make_space(pool, &change_guard, record, leaf_hint)?;
    }
}

/// Removes a record outside of any transaction. Returns false if there is none. Changes nothing on
/// an error.
pub fn delete(pool: &Pool, tree: Tree, key: &[u8], leaf_hint: &mut LeafHint) -> Result<bool> {
    let mut removed = None;
    loop {
        let change_guard = pool.enter(0);
        let (guard, found) = tree.locate(pool, key, leaf_hint)?;
        let Ok(position) = found else {
            if guard.validate() {
                return Ok(false);
            }
            continue;
        };
        if let Some(chain) = chain_at(guard.page, position).filter(|_| removed.is_none()) {
            removed = Some(chain_pages(pool, chain)?);
            continue;
        }
        let Some(latched) = guard.upgrade() else { continue };
        let page = latched.write(&change_guard)?;
        page.remove(position);
        leaf_hint.hint = position;
        let sparse = crate::access::btree::is_sparse(page);
        drop(latched);
        free_pages(pool, &change_guard, &removed.unwrap_or_default())?;
        if sparse {
            // The record is removed. An error that prevents the merge will appear again at the next
            // access.
            let _joined = tree.merge(pool, &change_guard, key);
        }
        return Ok(true);
    }
}

fn chain_at(page: crate::page::Page<'_>, position: usize) -> Option<PageId> {
    let record = page.record(position);
    if record.flags & OVERFLOW == 0 {
        return None;
    }
    let mut pointer = Vec::new();
    page.append_to(record.value_offset, record.value_length, &mut pointer);
    decode_pointer(&pointer).map(|(first, _)| first)
}

/// Creates the missing trees that the catalog names, and frees the trees that it does not name. The
/// latter are dropped trees that were not freed yet, and trees of uncommitted transactions.
pub fn free_nameless(pool: &Pool, trees: &mut TreeMap<'_>) -> Result<()> {
    let Some(catalog) = trees.trees.get(&CATALOG_TREE).copied() else { return Ok(()) };
    let mut named = BTreeMap::from([(CATALOG_TREE, AccessMethod::BTree)]);
    let mut low = Vec::new();
    loop {
        let guard = catalog.leaf(pool, &low)?;
        for position in 0..guard.page.count() {
            let record = guard.page.record(position);
            if record.is_tombstone() {
                continue;
            }
            let mut value = Vec::new();
            guard.page.append_to(record.value_offset, record.value_length, &mut value);
            named.extend(decode_catalog_record(&value));
        }
        match guard.page.upper_fence_bytes() {
            Some(fence) => low = catalog.advance_to_fence(guard.id, &low, fence)?,
            None => break,
        }
    }
    // An empty database that was created after the checkpoint appears in the log only as a catalog
    // record.
    for (&id, &method) in &named {
        trees.get_or_create(id, method)?;
    }
    let nameless: Vec<Tree> =
        trees.trees.values().filter(|tree| !named.contains_key(&tree.id)).copied().collect();
    for tree in nameless {
        free_tree(pool, tree)?;
        trees.trees.remove(&tree.id);
    }
    Ok(())
}

/// Frees every page of a tree and the chains of its records, outside of any transaction.
fn free_tree(pool: &Pool, tree: Tree) -> Result<()> {
    let mut gone = false;
    while !gone {
        let mut chains = Vec::new();
        gone = tree.free_last(pool, 0, |unlinked, _| chains.extend_from_slice(unlinked))?;
        chains.into_iter().try_for_each(|chain| free_chain(pool, &pool.enter(0), chain))?;
    }
    Ok(())
}
