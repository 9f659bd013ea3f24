//! A cursor over a database of a data store. It has the store to itself, so it reads ahead: what it
//! has read stays as it is.

use std::cmp::Ordering;

use super::DataStore;
use crate::access::btree::{LeafSlot, SiblingHint, Tree};
use crate::access::limits::check_ordered;
use crate::access::overflow::{check_pointer, decode_pointer, prefetch_chains, read_chain_start};
use crate::access::{Direction, SearchStart};
use crate::buffer::{Pool, ReadGuard};
use crate::error::{Error, Result};
use crate::page::{OVERFLOW, RecordBatch};

/// Records read at once after a search. A cursor that moves further gets whole leaves.
const FIRST_RECORDS: usize = 8;

/// Bytes of long values that end the records read at once.
const MAX_OVERFLOW_BYTES: usize = 64 << 10;

/// A position among the records of a [`StoreDatabase`](super::StoreDatabase).
///
/// ```
/// # let mut store = quickbeam::DataStore::open_in_memory(Default::default())?;
/// # let fruit = store.create_database("fruit")?;
/// # store.put(fruit, b"apple", b"red")?;
/// let mut cursor = store.cursor(fruit)?;
/// let mut found = cursor.last()?;
/// while found {
///     println!("{:?} {:?}", cursor.key(), cursor.value());
///     found = cursor.prev()?;
/// }
/// # Ok::<(), quickbeam::Error>(())
/// ```
pub struct StoreCursor<'s> {
    store: &'s mut DataStore,
    tree: Tree,
    /// The cursor has a current record.
    is_placed: bool,
    /// Records of a leaf from the current one on, in the direction in which the cursor moves.
    batch: RecordBatch,
    at: usize,
    direction: Direction,
    /// The slot of the last of these records.
    place: Option<LeafSlot>,
    /// The likely position of their leaf.
    sibling_hint: SiblingHint,
    /// The key that a search starts at, and the fence of a leaf without a record. The cursor keeps
    /// their memory, so that moving allocates nothing.
    bound: Vec<u8>,
    fence: Vec<u8>,
}

impl<'s> StoreCursor<'s> {
    pub(super) fn new(store: &'s mut DataStore, tree: Tree) -> StoreCursor<'s> {
        StoreCursor {
            store,
            tree,
            is_placed: false,
            batch: RecordBatch::default(),
            at: 0,
            direction: Direction::Forward,
            place: None,
            sibling_hint: SiblingHint::default(),
            bound: Vec::new(),
            fence: Vec::new(),
        }
    }

    /// Moves to the first record. Returns false if there is none.
    pub fn first(&mut self) -> Result<bool> {
        self.bound.clear();
        let found = self.forward(false)?;
        Ok(self.placed(found))
    }

    /// Moves to the last record. Returns false if there is none.
    pub fn last(&mut self) -> Result<bool> {
        let found = self.backward(None)?;
        Ok(self.placed(found))
    }

    /// Moves to the first record whose key is not less than `key`. Returns false if there is none.
    /// An error on a hash database, which has no key order.
    ///
    /// ```
    /// # let mut store = quickbeam::DataStore::open_in_memory(Default::default())?;
    /// # let fruit = store.create_database("fruit")?;
    /// # store.put(fruit, b"apple", b"red")?;
    /// # store.put(fruit, b"pear", b"green")?;
    /// # let mut cursor = store.cursor(fruit)?;
    /// assert!(cursor.seek(b"b")?);
    /// assert_eq!(cursor.key(), b"pear");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        check_ordered(self.tree)?;
        self.seek_stored(key)
    }

    /// As [`seek`](Self::seek), by the key as leaves store it.
    pub(crate) fn seek_stored(&mut self, key: &[u8]) -> Result<bool> {
        key.clone_into(&mut self.bound);
        let found = self.forward(false)?;
        Ok(self.placed(found))
    }

    /// Returns the key of the current record as leaves store it.
    pub(crate) fn stored_key(&self) -> &[u8] {
        self.batch.key(self.at)
    }

    /// Moves to the last record whose key is not greater than `key`. Returns false if there is
    /// none. An error on a hash database.
    pub fn seek_at_or_before(&mut self, key: &[u8]) -> Result<bool> {
        check_ordered(self.tree)?;
        key.clone_into(&mut self.bound);
        let found = self.backward(Some(SearchStart::At))?;
        Ok(self.placed(found))
    }

    /// Moves to the next record. Returns false, without moving, at the end. Without a current
    /// record, moves to the first one.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        if !self.is_placed {
            return self.first();
        }
        if self.step(Direction::Forward) {
            return Ok(true);
        }
        self.forward(true)
    }

    /// Moves to the previous record. Returns false, without moving, at the start. Without a current
    /// record, moves to the last one.
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        if !self.is_placed {
            return self.last();
        }
        if self.step(Direction::Backward) {
            return Ok(true);
        }
        self.backward(Some(SearchStart::Beyond))
    }

    /// Returns the key of the current record, or an empty slice if there is none.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        let key = self.stored_key().get(self.tree.key_start()..).unwrap_or_default();
        if self.is_placed { key } else { &[] }
    }

    /// Returns the value of the current record, or an empty slice if there is none.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &[u8] {
        if self.is_placed { self.batch.value(self.at) } else { &[] }
    }

    /// Replaces the value of the current record.
    pub fn put(&mut self, value: &[u8]) -> Result<()> {
        self.check_placed()?;
        self.store.write(self.tree, self.batch.key(self.at), value)?;
        // Nothing else changes while the cursor exists: the other records stay as they were read.
        self.batch.replace_value(self.at, value.len()).copy_from_slice(value);
        Ok(())
    }

    /// Removes the current record. The cursor keeps its place between the neighbours. Returns false
    /// if the record was gone already.
    pub fn delete(&mut self) -> Result<bool> {
        self.check_placed()?;
        let database = self.store.handle(self.tree);
        let key = self.batch.key(self.at).get(self.tree.key_start()..).unwrap_or_default();
        self.store.delete(database, key)
    }

    fn check_placed(&self) -> Result<()> {
        if self.is_placed {
            return Ok(());
        }
        Err(Error::misuse("the cursor has no current record; seek one first"))
    }

    /// Moves to the next record in that direction, if it has been read. If not, the search from
    /// the current record is prepared.
    #[inline]
    fn step(&mut self, direction: Direction) -> bool {
        if direction == self.direction && self.at + 1 < self.batch.len() {
            self.at += 1;
            return true;
        }
        self.batch.key(self.at).clone_into(&mut self.bound);
        if direction != self.direction {
            self.place = None;
        }
        false
    }

    /// Moves to the first record after the search bound, or at it unless `beyond`.
    fn forward(&mut self, mut beyond: bool) -> Result<bool> {
        let pool = &self.store.pool;
        let limit = if beyond { usize::MAX } else { FIRST_RECORDS };
        let mut place = self.place.filter(|_| beyond);
        if place.is_none() {
            self.sibling_hint = SiblingHint::default();
        }
        loop {
            let (guard, position) =
                match place.take().and_then(|place| place.unchanged(pool, self.tree)) {
                    Some((guard, slot)) => (guard, slot + 1),
                    None => {
                        let (guard, _) =
                            self.tree.leaf_after(pool, &self.bound, &mut self.sibling_hint)?;
                        let position = match guard.page.search(&self.bound) {
                            Ok(at) if beyond => at + 1,
                            Ok(at) | Err(at) => at,
                        };
                        (guard, position)
                    }
                };
            if position < guard.page.count() {
                let positions = (position..guard.page.count()).take(limit);
                if limit == usize::MAX {
                    self.tree.prefetch_sibling(
                        pool,
                        &self.sibling_hint,
                        Direction::Forward,
                        guard.page.count(),
                    );
                }
                let last = take(pool, &guard, positions, &mut self.batch)?;
                (self.at, self.direction) = (0, Direction::Forward);
                if beyond {
                    let first = self.batch.key(0);
                    self.tree.check_progress(guard.id, first, Ordering::Greater, &self.bound)?;
                }
                self.place = Some(LeafSlot::of(&guard, last));
                self.is_placed = true;
                return Ok(true);
            }
            self.fence.clear();
            if !guard.page.append_upper_fence(&mut self.fence) {
                return Ok(false);
            }
            self.tree.check_forward(guard.id, &self.bound, &self.fence)?;
            std::mem::swap(&mut self.bound, &mut self.fence);
            beyond = false;
        }
    }

    /// Moves to the last record at or before the search bound; without `start`, to the last one of
    /// the tree.
    fn backward(&mut self, mut start: Option<SearchStart>) -> Result<bool> {
        let pool = &self.store.pool;
        let is_step = start == Some(SearchStart::Beyond);
        let limit = if is_step { usize::MAX } else { FIRST_RECORDS };
        // Before a leaf's first record the search goes to another leaf in any case.
        let mut place = self.place.filter(|place| is_step && place.slot > 0);
        if self.place.is_none() || !is_step {
            self.sibling_hint = SiblingHint::default();
        }
        loop {
            let bound = start.map(|start| (&self.bound[..], start == SearchStart::At));
            let (guard, end) =
                match (place.take().and_then(|place| place.unchanged(pool, self.tree)), bound) {
                    (Some((guard, slot)), _) => (guard, slot),
                    (None, bound) => {
                        let guard = match bound {
                            Some((key, true)) => self.tree.leaf(pool, key)?,
                            _ => {
                                let key = bound.map(|(key, _)| key);
                                self.tree.leaf_before(pool, key, &mut self.sibling_hint)?
                            }
                        };
                        let end = match bound.filter(|(key, _)| guard.page.covers(key)) {
                            None => guard.page.count(),
                            Some((key, at)) => match guard.page.search(key) {
                                Ok(position) if at => position + 1,
                                Ok(position) | Err(position) => position,
                            },
                        };
                        (guard, end)
                    }
                };
            if end > 0 {
                if limit == usize::MAX {
                    self.tree.prefetch_sibling(
                        pool,
                        &self.sibling_hint,
                        Direction::Backward,
                        guard.page.count(),
                    );
                }
                let last = take(pool, &guard, (0..end).rev().take(limit), &mut self.batch)?;
                (self.at, self.direction) = (0, Direction::Backward);
                if start == Some(SearchStart::Beyond) {
                    let first = self.batch.key(0);
                    self.tree.check_progress(guard.id, first, Ordering::Less, &self.bound)?;
                }
                self.place = Some(LeafSlot::of(&guard, last));
                self.is_placed = true;
                return Ok(true);
            }
            self.fence.clear();
            guard.page.append_lower_fence(&mut self.fence);
            if self.fence.is_empty() {
                return Ok(false);
            }
            let from = start.map(|start| (&self.bound[..], start == SearchStart::At));
            self.tree.check_backward(guard.id, from, &self.fence)?;
            std::mem::swap(&mut self.bound, &mut self.fence);
            start = Some(SearchStart::Beyond);
        }
    }

    /// Takes note of a search from a key or an end: without a record there is no current one.
    fn placed(&mut self, is_placed: bool) -> bool {
        self.is_placed = is_placed;
        is_placed
    }
}

/// Replaces the batch by the records at those positions; the last position taken. Long values end a
/// batch.
fn take(
    pool: &Pool,
    guard: &ReadGuard<'_>,
    positions: impl ExactSizeIterator<Item = usize>,
    batch: &mut RecordBatch,
) -> Result<usize> {
    batch.clear();
    let most = positions.len() >= guard.page.count().div_ceil(3);
    let leaf = batch.begin(guard.page, Some(0), most);
    let (mut last, mut long_bytes) = (0, 0);
    let mut long = Vec::new();
    for position in positions {
        last = position;
        let slot = guard.page.slot(position);
        let (_, length) = leaf.record(slot);
        batch.take(&leaf, slot, length);
        if slot.flags() & OVERFLOW != 0 {
            let record = batch.len() - 1;
            long.push(record);
            long_bytes += decode_pointer(batch.value(record)).map_or(0, |(_, length)| length);
            if long_bytes >= MAX_OVERFLOW_BYTES {
                break;
            }
        }
    }
    // Only now: reading other pages may evict the leaf.
    prefetch_chains(pool, batch, &long);
    for record in long {
        let (first, length) = check_pointer(pool, batch.value(record))?;
        read_chain_start(pool, first, length, batch.replace_value(record, length))?;
    }
    Ok(last)
}
