//! Cursors: records one after the other, forwards and backwards.
//!
//! A cursor holds no latch and no place in a page: it remembers the key it stands on, and, as a shortcut, where that
//! was. If the leaf has not changed since, the next record is the next slot; otherwise the key is searched again.

use std::cmp::Ordering;
use std::ops::Bound;

use super::read::Sight;
use super::write::WriteOp;
use super::{Database, State, Transaction};
use crate::access::btree::Tree;
use crate::buffer::Tries;
use crate::error::{Error, Result};
use crate::options::AccessMethod;
use crate::page::{OVERFLOW, Page, PageId};

/// A position among the records of a database, forwards and backwards.
///
/// A new cursor has no current record: [`next`](Self::next) then goes to the first record,
/// [`prev`](Self::prev) to the last.
///
/// ```
/// # let environment = quickbeam::Environment::memory(Default::default())?;
/// # let fruit = environment.create_database("fruit")?;
/// # let transaction = environment.begin()?;
/// # for key in [b"a", b"b", b"c"] {
/// #     fruit.put(&transaction, key, b"")?;
/// # }
/// let mut cursor = fruit.cursor(&transaction)?;
/// let mut found = cursor.seek(b"b")?;
/// let mut keys = Vec::new();
/// while found {
///     keys.push(cursor.key().to_vec());
///     found = cursor.next()?;
/// }
/// assert_eq!(keys, [b"b", b"c"]);
/// # Ok::<(), quickbeam::Error>(())
/// ```
pub struct Cursor<'t> {
    transaction: &'t Transaction,
    database: Option<Database>,
    tree: Tree,
    standing: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Leaf, its version, and the slot that the cursor stands on.
    place: Option<(PageId, u64, usize)>,
}

/// Where a search begins: at a key or beyond it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    At,
    Beyond,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(transaction: &'t Transaction, database: Database, tree: Tree) -> Cursor<'t> {
        Cursor { database: Some(database), ..Cursor::over(transaction, tree) }
    }

    pub(super) fn over(transaction: &'t Transaction, tree: Tree) -> Cursor<'t> {
        Cursor {
            transaction,
            database: None,
            tree,
            standing: false,
            key: Vec::new(),
            value: Vec::new(),
            place: None,
        }
    }

    /// Moves to the first record. Returns false if there is none.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// assert!(cursor.first()?);
    /// assert_eq!(cursor.key(), b"a");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn first(&mut self) -> Result<bool> {
        self.forward(Vec::new(), From::At)
    }

    /// Moves to the last record. Returns false if there is none.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// assert!(cursor.last()?);
    /// assert_eq!(cursor.key(), b"c");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn last(&mut self) -> Result<bool> {
        self.backward(None, From::Beyond)
    }

    /// Moves to the first record whose key is not less than `key`. Returns false if there is none.
    /// An error on a hash database, which has no key order.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// assert!(cursor.seek(b"aa")?);
    /// assert_eq!(cursor.key(), b"b");
    /// assert!(!cursor.seek(b"d")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        check_ordered(self.tree)?;
        self.seek_stored(key)
    }

    /// As [`seek`](Self::seek), by the key as it is stored: for whoever looks at what leaves hold.
    pub(crate) fn seek_stored(&mut self, key: &[u8]) -> Result<bool> {
        self.place = None;
        self.forward(key.to_vec(), From::At)
    }

    /// The key of the record stood on, as it is stored.
    pub(crate) fn stored_key(&self) -> &[u8] {
        &self.key
    }

    /// Moves to the last record whose key is not greater than `key`. Returns false if there is
    /// none. An error on a hash database.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// assert!(cursor.seek_le(b"bb")?);
    /// assert_eq!(cursor.key(), b"b");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn seek_le(&mut self, key: &[u8]) -> Result<bool> {
        check_ordered(self.tree)?;
        self.backward(Some(key.to_vec()), From::At)
    }

    /// Moves to the next record. Returns false, without moving, at the end. Without a current
    /// record, moves to the first one.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// let mut count = 0;
    /// while cursor.next()? {
    ///     count += 1;
    /// }
    /// assert_eq!(count, 3);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if !self.standing {
            return self.first();
        }
        let key = std::mem::take(&mut self.key);
        self.forward(key, From::Beyond)
    }

    /// Moves to the previous record. Returns false, without moving, at the start. Without a current
    /// record, moves to the last one.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// assert!(cursor.prev()?);
    /// assert_eq!(cursor.key(), b"c");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn prev(&mut self) -> Result<bool> {
        if !self.standing {
            return self.last();
        }
        self.backward(Some(self.key.clone()), From::Beyond)
    }

    /// Returns the key of the current record, or an empty slice if there is none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.key.get(self.tree.key_start()..).unwrap_or_default()
    }

    /// Returns the value of the current record, or an empty slice if there is none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Replaces the value of the current record.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// cursor.first()?;
    /// cursor.put(b"new")?;
    /// assert_eq!(fruit.get(&transaction, b"a")?.as_deref(), Some(&b"new"[..]));
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn put(&mut self, value: &[u8]) -> Result<()> {
        let (database, key) = self.stands()?;
        database.change_at(self.transaction, key, WriteOp::Put(value))?;
        self.value.clear();
        self.value.extend_from_slice(value);
        Ok(())
    }

    /// Removes the current record. The cursor keeps its place between the neighbours. Returns false
    /// if the record was gone already.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// cursor.seek(b"b")?;
    /// assert!(cursor.delete()?);
    /// assert!(cursor.next()?);
    /// assert_eq!(cursor.key(), b"c");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn delete(&mut self) -> Result<bool> {
        let (database, key) = self.stands()?;
        database.change_at(self.transaction, key, WriteOp::Delete)
    }

    fn stands(&self) -> Result<(&Database, &[u8])> {
        match &self.database {
            Some(database) if self.standing => Ok((database, self.key())),
            _ => Err(Error::misuse("the cursor stands on no record; seek one first")),
        }
    }

    /// At the start of a call: under read committed the database's name may mean another tree by now.
    fn begin_call(&mut self) -> Result<()> {
        let Some(database) = &self.database else {
            self.transaction.begin_call();
            return Ok(());
        };
        if self.transaction.is_read_committed() {
            let tree = database.tree(self.transaction, false)?;
            if tree.method != self.tree.method {
                // What it stood in was dropped: there is no going on from there.
                return Err(Error::NoSuchDatabase { name: database.name().to_owned() });
            }
            if tree != self.tree {
                self.tree = tree;
                self.place = None;
            }
        }
        Ok(())
    }

    fn forward(&mut self, from: Vec<u8>, start: From) -> Result<bool> {
        self.begin_call()?;
        let transaction = self.transaction;
        let state = &mut *transaction.state.borrow_mut();
        let pool = &transaction.inner().pool;
        let mut low = from;
        let mut start = start;
        let mut value = std::mem::take(&mut self.value);
        let mut old_value = if start == From::Beyond { Some(value.clone()) } else { None };
        let origin = (low.clone(), self.place);
        let mut tries = Tries::default();
        loop {
            let shortcut = match self.place.take() {
                Some((leaf, version, slot)) if start == From::Beyond => pool
                    .read(leaf)
                    .ok()
                    .filter(|guard| guard.version() == version)
                    .map(|guard| (guard, slot + 1)),
                _ => None,
            };
            let (guard, first) = match shortcut {
                Some(found) => found,
                None => {
                    let guard = self.tree.leaf(pool, &low)?;
                    let first = match guard.page.search(&low) {
                        Ok(at) if start == From::Beyond => at + 1,
                        Ok(at) | Err(at) => at,
                    };
                    (guard, first)
                }
            };
            let Some(attempt) = tries.begin(guard) else { continue };
            let seen = self.look(state, guard.page, first..guard.page.count(), &mut value);
            let fence = guard.page.upper_fence_bytes();
            if matches!(seen, LeafSearch::Again) || !attempt.validate() {
                continue;
            }
            let seen = self.complete(state, seen, &mut value);
            if matches!(seen, LeafSearch::Again) {
                continue;
            }
            let found = if let LeafSearch::At(position, flags) = seen {
                Some((position, flags))
            } else {
                None
            };
            if transaction.tracks_reads() {
                let high = match (&seen, &fence) {
                    (LeafSearch::Nothing, Some(fence)) => Bound::Excluded(&fence[..]),
                    (LeafSearch::Nothing, None) => Bound::Unbounded,
                    _ => Bound::Included(&self.key[..]),
                };
                state.reads.range(self.tree, &low, high, guard.id, guard.content_version());
            }
            if let LeafSearch::Passed(position) = seen {
                if start == From::Beyond {
                    self.tree.advanced(guard.id, &self.key, Ordering::Greater, &low)?;
                }
                low.clone_from(&self.key);
                start = From::Beyond;
                self.place = Some((guard.id, guard.version(), position));
                tries = Tries::default();
                continue;
            }
            match (found, fence) {
                (Some((position, flags)), _) => {
                    if start == From::Beyond {
                        self.tree.advanced(guard.id, &self.key, Ordering::Greater, &low)?;
                    }
                    if flags & OVERFLOW != 0 {
                        transaction.fetch_long(&mut value)?;
                    }
                    self.value = value;
                    self.place = Some((guard.id, guard.version(), position));
                    self.standing = true;
                    return Ok(true);
                }
                (None, Some(fence)) => {
                    low = self.tree.onward(guard.id, &low, fence)?;
                    start = From::At;
                    tries = Tries::default();
                }
                (None, None) => {
                    self.stay(origin, old_value.take());
                    return Ok(false);
                }
            }
        }
    }

    fn backward(&mut self, from: Option<Vec<u8>>, start: From) -> Result<bool> {
        self.begin_call()?;
        let transaction = self.transaction;
        let state = &mut *transaction.state.borrow_mut();
        let pool = &transaction.inner().pool;
        let mut high = from;
        let mut start = start;
        let mut value = std::mem::take(&mut self.value);
        let mut old_value = self.standing.then(|| value.clone());
        let origin = (std::mem::take(&mut self.key), self.place);
        let mut tries = Tries::default();
        loop {
            let guard = match (&high, start) {
                (Some(key), From::At) => self.tree.leaf(pool, key)?,
                (key, _) => self.tree.leaf_before(pool, key.as_deref())?,
            };
            let Some(attempt) = tries.begin(guard) else { continue };
            let page = guard.page;
            let end = match &high {
                None => page.count(),
                // The leaf before a key may lie wholly before it: then its last record is next.
                Some(key) if !page.covers(key) => page.count(),
                Some(key) => match page.search(key) {
                    Ok(at) if start == From::At => at + 1,
                    Ok(at) | Err(at) => at,
                },
            };
            let seen = self.look(state, page, (0..end.min(page.count())).rev(), &mut value);
            let fence = page.lower_fence_bytes();
            if matches!(seen, LeafSearch::Again) || !attempt.validate() {
                continue;
            }
            let seen = self.complete(state, seen, &mut value);
            if matches!(seen, LeafSearch::Again) {
                continue;
            }
            let found = if let LeafSearch::At(position, flags) = seen {
                Some((position, flags))
            } else {
                None
            };
            if transaction.tracks_reads() {
                let low = if matches!(seen, LeafSearch::Nothing) { &fence } else { &self.key };
                let high = match (&high, start) {
                    (Some(key), From::At) => Bound::Included(&key[..]),
                    (Some(key), From::Beyond) => Bound::Excluded(&key[..]),
                    (None, _) => Bound::Unbounded,
                };
                state.reads.range(self.tree, low, high, guard.id, guard.content_version());
            }
            if matches!(seen, LeafSearch::Passed(_)) {
                if let (Some(high), From::Beyond) = (&high, start) {
                    self.tree.advanced(guard.id, &self.key, Ordering::Less, high)?;
                }
                high = Some(self.key.clone());
                start = From::Beyond;
                tries = Tries::default();
                continue;
            }
            if let Some((position, flags)) = found {
                if let (Some(high), From::Beyond) = (&high, start) {
                    self.tree.advanced(guard.id, &self.key, Ordering::Less, high)?;
                }
                if flags & OVERFLOW != 0 {
                    transaction.fetch_long(&mut value)?;
                }
                self.value = value;
                self.place = Some((guard.id, guard.version(), position));
                self.standing = true;
                return Ok(true);
            }
            if fence.is_empty() {
                self.stay(origin, old_value.take());
                return Ok(false);
            }
            let from = high.as_deref().map(|key| (key, start == From::At));
            high = Some(self.tree.backward(guard.id, from, fence)?);
            start = From::Beyond;
            tries = Tries::default();
        }
    }

    /// There was nothing in that direction: the cursor stands where it stood.
    fn stay(&mut self, origin: (Vec<u8>, Option<(PageId, u64, usize)>), value: Option<Vec<u8>>) {
        self.standing = self.standing && value.is_some();
        self.key = if self.standing { origin.0 } else { Vec::new() };
        self.place = if self.standing { origin.1 } else { None };
        self.value = value.unwrap_or_default();
    }

    /// The first of those positions with a record to be seen: its key and value are copied out.
    fn look(
        &mut self,
        state: &mut State,
        page: Page<'_>,
        positions: impl Iterator<Item = usize>,
        value: &mut Vec<u8>,
    ) -> LeafSearch {
        for position in positions {
            value.clear();
            match self.transaction.see(state, page, position, value) {
                Sight::Again => return LeafSearch::Again,
                Sight::Nothing => {}
                Sight::Hidden(version) => {
                    self.key.clear();
                    page.append_key(position, &mut self.key);
                    return LeafSearch::Hidden(position, version);
                }
                Sight::Record(flags) => {
                    self.key.clear();
                    page.append_key(position, &mut self.key);
                    return LeafSearch::At(position, flags);
                }
            }
        }
        LeafSearch::Nothing
    }

    /// Finds the version of a record that the page does not have, after the page was validated.
    fn complete(&self, state: &State, seen: LeafSearch, value: &mut Vec<u8>) -> LeafSearch {
        let LeafSearch::Hidden(position, version) = seen else { return seen };
        value.clear();
        match self.transaction.see_hidden(state, version, value) {
            Sight::Record(flags) => LeafSearch::At(position, flags),
            Sight::Nothing => LeafSearch::Passed(position),
            Sight::Hidden(_) | Sight::Again => LeafSearch::Again,
        }
    }
}

/// Refuses what needs an order of keys where there is none.
pub fn check_ordered(tree: Tree) -> Result<()> {
    match tree.method {
        AccessMethod::BTree => Ok(()),
        AccessMethod::Hash | AccessMethod::HashPrefix => Err(Error::misuse(
            "a hash database has no order of keys: look a key up with get, or go through all records with first and next",
        )),
    }
}

/// What a cursor found at the positions of a leaf that it looked at.
enum LeafSearch {
    /// A record at this position, with these flags. The cursor has its key.
    At(usize, u8),
    /// A record at this position whose visible version, if there is one, is before the committed
    /// change with this version word. The cursor has its key.
    Hidden(usize, u64),
    /// A record at this position that the transaction does not see; those after it were not looked
    /// at. The cursor has its key.
    Passed(usize),
    /// No record that the transaction sees.
    Nothing,
    /// The leaf has to be looked at again.
    Again,
}
