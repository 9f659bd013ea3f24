//! A cursor over a database of a data store.

use std::cmp::Ordering;

use super::DataStore;
use crate::access::btree::Tree;
use crate::access::overflow::read_chain;
use crate::buffer::ReadGuard;
use crate::error::{Error, Result};
use crate::page::OVERFLOW;
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
    standing: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'s> StoreCursor<'s> {
    pub(super) fn new(store: &'s mut DataStore, tree: Tree) -> StoreCursor<'s> {
        StoreCursor { store, tree, standing: false, key: Vec::new(), value: Vec::new() }
    }

    /// Moves to the first record. Returns false if there is none.
    pub fn first(&mut self) -> Result<bool> {
        self.forward(&[], false)
    }

    /// Moves to the last record. Returns false if there is none.
    pub fn last(&mut self) -> Result<bool> {
        self.backward(None, false)
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

    /// As [`seek`](Self::seek), by the key as it is stored: for whoever looks at what leaves hold.
    pub(crate) fn seek_stored(&mut self, key: &[u8]) -> Result<bool> {
        self.forward(key, false)
    }

    /// The key of the record stood on, as it is stored.
    pub(crate) fn stored_key(&self) -> &[u8] {
        &self.key
    }

    /// Moves to the last record whose key is not greater than `key`. Returns false if there is
    /// none. An error on a hash database.
    pub fn seek_le(&mut self, key: &[u8]) -> Result<bool> {
        check_ordered(self.tree)?;
        self.backward(Some(key), true)
    }

    /// Moves to the next record. Returns false, without moving, at the end. Without a current
    /// record, moves to the first one.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if !self.standing {
            return self.first();
        }
        let key = self.key.clone();
        let moved = self.forward(&key, true)?;
        self.standing = true;
        Ok(moved)
    }

    /// Moves to the previous record. Returns false, without moving, at the start. Without a current
    /// record, moves to the last one.
    pub fn prev(&mut self) -> Result<bool> {
        if !self.standing {
            return self.last();
        }
        let key = self.key.clone();
        let moved = self.backward(Some(&key), false)?;
        self.standing = true;
        Ok(moved)
    }

    /// Returns the key of the current record, or an empty slice if there is none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        let key = self.key.get(self.tree.key_start()..).unwrap_or_default();
        if self.standing { key } else { &[] }
    }

    /// Returns the value of the current record, or an empty slice if there is none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        if self.standing { &self.value } else { &[] }
    }

    /// Replaces the value of the current record.
    pub fn put(&mut self, value: &[u8]) -> Result<()> {
        self.check_standing()?;
        self.store.write(self.tree, &self.key, value)?;
        self.value.clear();
        self.value.extend_from_slice(value);
        Ok(())
    }

    /// Removes the current record. The cursor keeps its place between the neighbours. Returns false
    /// if the record was gone already.
    pub fn delete(&mut self) -> Result<bool> {
        self.check_standing()?;
        let database = self.store.handle(self.tree);
        self.store.delete(database, self.key.get(self.tree.key_start()..).unwrap_or_default())
    }

    fn check_standing(&self) -> Result<()> {
        if self.standing {
            return Ok(());
        }
        Err(Error::misuse("the cursor stands on no record; seek one first"))
    }

    fn forward(&mut self, from: &[u8], beyond: bool) -> Result<bool> {
        let mut low = from.to_vec();
        let mut beyond = beyond;
        loop {
            let guard = self.tree.leaf(&self.store.pool, &low)?;
            let position = match guard.page.search(&low) {
                Ok(at) if beyond => at + 1,
                Ok(at) | Err(at) => at,
            };
            if position < guard.page.count() {
                take(&self.store.pool, &guard, position, &mut self.key, &mut self.value)?;
                if beyond {
                    self.tree.advanced(guard.id, &self.key, Ordering::Greater, &low)?;
                }
                self.standing = true;
                return Ok(true);
            }
            let Some(fence) = guard.page.upper_fence_bytes() else {
                self.standing = false;
                return Ok(false);
            };
            low = self.tree.onward(guard.id, &low, fence)?;
            beyond = false;
        }
    }

    fn backward(&mut self, from: Option<&[u8]>, at: bool) -> Result<bool> {
        let mut high = from.map(<[u8]>::to_vec);
        let mut at = at;
        loop {
            let pool = &self.store.pool;
            let guard = match (&high, at) {
                (Some(key), true) => self.tree.leaf(pool, key)?,
                (key, _) => self.tree.leaf_before(pool, key.as_deref())?,
            };
            let page = guard.page;
            let end = match &high {
                None => page.count(),
                Some(key) if !page.covers(key) => page.count(),
                Some(key) => match page.search(key) {
                    Ok(position) if at => position + 1,
                    Ok(position) | Err(position) => position,
                },
            };
            if let Some(position) = end.checked_sub(1) {
                take(pool, &guard, position, &mut self.key, &mut self.value)?;
                if let (Some(high), false) = (&high, at) {
                    self.tree.advanced(guard.id, &self.key, Ordering::Less, high)?;
                }
                self.standing = true;
                return Ok(true);
            }
            let fence = page.lower_fence_bytes();
            if fence.is_empty() {
                self.standing = false;
                return Ok(false);
            }
            let from = high.as_deref().map(|key| (key, at));
            high = Some(self.tree.backward(guard.id, from, fence)?);
            at = false;
        }
    }
}

fn take(
    pool: &crate::buffer::Pool,
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
