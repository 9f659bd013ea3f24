//! A cursor over a database of a data store.

use std::cmp::Ordering;

use super::DataStore;
use crate::access::btree::Tree;
use crate::access::overflow::read_chain;
use crate::buffer::{Pool, ReadGuard};
use crate::error::{Error, Result};
use crate::page::{OVERFLOW, PageId};
use crate::transaction::check_ordered;

/// A position among the records of a [`StoreDatabase`](super::StoreDatabase).
///
/// ```
/// # let mut store = quickbeam::DataStore::memory(Default::default())?;
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
    /// Key and value of the current record.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The current record's leaf, the leaf's version and the slot.
    place: Option<(PageId, u64, usize)>,
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
            key: Vec::new(),
            value: Vec::new(),
            place: None,
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
        let found = self.backward(false, false)?;
        Ok(self.placed(found))
    }

    /// Moves to the first record whose key is not less than `key`. Returns false if there is none.
    /// An error on a hash database, which has no key order.
    ///
    /// ```
    /// # let mut store = quickbeam::DataStore::memory(Default::default())?;
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
        &self.key
    }

    /// Moves to the last record whose key is not greater than `key`. Returns false if there is
    /// none. An error on a hash database.
    pub fn seek_le(&mut self, key: &[u8]) -> Result<bool> {
        check_ordered(self.tree)?;
        key.clone_into(&mut self.bound);
        let found = self.backward(true, true)?;
        Ok(self.placed(found))
    }

    /// Moves to the next record. Returns false, without moving, at the end. Without a current
    /// record, moves to the first one.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if !self.is_placed {
            return self.first();
        }
        self.bound.clone_from(&self.key);
        self.forward(true)
    }

    /// Moves to the previous record. Returns false, without moving, at the start. Without a current
    /// record, moves to the last one.
    pub fn prev(&mut self) -> Result<bool> {
        if !self.is_placed {
            return self.last();
        }
        self.bound.clone_from(&self.key);
        self.backward(true, false)
    }

    /// Returns the key of the current record, or an empty slice if there is none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        let key = self.key.get(self.tree.key_start()..).unwrap_or_default();
        if self.is_placed { key } else { &[] }
    }

    /// Returns the value of the current record, or an empty slice if there is none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        if self.is_placed { &self.value } else { &[] }
    }

    /// Replaces the value of the current record.
    pub fn put(&mut self, value: &[u8]) -> Result<()> {
        self.check_placed()?;
        self.store.write(self.tree, &self.key, value)?;
        self.value.clear();
        self.value.extend_from_slice(value);
        Ok(())
    }

    /// Removes the current record. The cursor keeps its place between the neighbours. Returns false
    /// if the record was gone already.
    pub fn delete(&mut self) -> Result<bool> {
        self.check_placed()?;
        let database = self.store.handle(self.tree);
        self.store.delete(database, self.key.get(self.tree.key_start()..).unwrap_or_default())
    }

    fn check_placed(&self) -> Result<()> {
        if self.is_placed {
            return Ok(());
        }
        Err(Error::misuse("the cursor has no current record; seek one first"))
    }

    /// Moves to the first record after the search bound, or at it unless `beyond`.
    fn forward(&mut self, mut beyond: bool) -> Result<bool> {
        let pool = &self.store.pool;
        let mut place = self.place.filter(|_| beyond);
        loop {
            let (guard, position) = match unchanged_leaf(pool, place.take()) {
                Some((guard, slot)) => (guard, slot + 1),
                None => {
                    let guard = self.tree.leaf(pool, &self.bound)?;
                    let position = match guard.page.search(&self.bound) {
                        Ok(at) if beyond => at + 1,
                        Ok(at) | Err(at) => at,
                    };
                    (guard, position)
                }
            };
            if position < guard.page.count() {
                take(pool, &guard, position, &mut self.key, &mut self.value)?;
                if beyond {
                    self.tree.advanced(guard.id, &self.key, Ordering::Greater, &self.bound)?;
                }
                self.place = Some((guard.id, guard.version(), position));
                self.is_placed = true;
                return Ok(true);
            }
            self.fence.clear();
            if !guard.page.append_upper_fence(&mut self.fence) {
                return Ok(false);
            }
            self.tree.check_onward(guard.id, &self.bound, &self.fence)?;
            std::mem::swap(&mut self.bound, &mut self.fence);
            beyond = false;
        }
    }

    /// Moves to the last record before the search bound, or at it if `at`; `is_bounded` is false
    /// for the end of the tree.
    fn backward(&mut self, mut is_bounded: bool, mut at: bool) -> Result<bool> {
        let pool = &self.store.pool;
        let is_step = is_bounded && !at;
        // Before a leaf's first record the search goes to another leaf in any case.
        let mut place = self.place.filter(|(_, _, slot)| is_step && *slot > 0);
        loop {
            let bound = is_bounded.then_some(&self.bound[..]);
            let (guard, end) = match (unchanged_leaf(pool, place.take()), bound) {
                (Some((guard, slot)), _) => (guard, slot),
                (None, bound) => {
                    let guard = match bound {
                        Some(key) if at => self.tree.leaf(pool, key)?,
                        _ => self.tree.leaf_before(pool, bound)?,
                    };
                    let end = match bound.filter(|key| guard.page.covers(key)) {
                        None => guard.page.count(),
                        Some(key) => match guard.page.search(key) {
                            Ok(position) if at => position + 1,
                            Ok(position) | Err(position) => position,
                        },
                    };
                    (guard, end)
                }
            };
            if let Some(position) = end.checked_sub(1) {
                take(pool, &guard, position, &mut self.key, &mut self.value)?;
                if is_bounded && !at {
                    self.tree.advanced(guard.id, &self.key, Ordering::Less, &self.bound)?;
                }
                self.place = Some((guard.id, guard.version(), position));
                self.is_placed = true;
                return Ok(true);
            }
            self.fence.clear();
            guard.page.append_lower_fence(&mut self.fence);
            if self.fence.is_empty() {
                return Ok(false);
            }
            let from = is_bounded.then_some((&self.bound[..], at));
            self.tree.check_backward(guard.id, from, &self.fence)?;
            std::mem::swap(&mut self.bound, &mut self.fence);
            (is_bounded, at) = (true, false);
        }
    }

    /// Takes note of a search from a key or an end: without a record there is no current one.
    fn placed(&mut self, is_placed: bool) -> bool {
        self.is_placed = is_placed;
        is_placed
    }
}

/// The leaf that a cursor was in and its slot there, if the leaf has not changed since.
fn unchanged_leaf(
    pool: &Pool,
    place: Option<(PageId, u64, usize)>,
) -> Option<(ReadGuard<'_>, usize)> {
    let (leaf, version, slot) = place?;
    let guard = pool.read(leaf).ok().filter(|guard| guard.version() == version)?;
    Some((guard, slot))
}

fn take(
    pool: &Pool,
    guard: &ReadGuard<'_>,
    position: usize,
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<()> {
    let record = guard.page.record(position);
    key.clear();
    value.clear();
    guard.page.append_key(position, key);
    guard.page.append_to(record.value_offset, record.value_length, value);
    if record.flags & OVERFLOW != 0 {
        let pointer = std::mem::take(value);
        read_chain(pool, &pointer, value)?;
    }
    Ok(())
}
