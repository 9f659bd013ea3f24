//! Cursors: records one after the other, forwards and backwards.
//!
//! A cursor holds no latch and no position in a page. It keeps the current key and, as a shortcut,
//! its leaf and slot. If the leaf has not changed since, the next record is in the next slot;
//! otherwise the cursor searches for the key again.
//!
//! A read-only transaction sees no change, so its cursors read ahead: `read_ahead.rs`.

use std::cmp::Ordering;
use std::ops::Bound;

use super::Database;
use super::read_ahead::ReadAhead;
use crate::access::btree::{LeafSlot, SiblingHint, Tree};
use crate::access::limits::check_ordered;
use crate::access::{Direction, SearchStart};
use crate::buffer::Tries;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::page::{OVERFLOW, Page};
use crate::transaction::DatabaseUse;
use crate::transaction::read::Visibility;
use crate::transaction::write::WriteOp;
use crate::transaction::{State, Transaction};

/// A position among the records of a database, forwards and backwards.
///
/// A new cursor has no current record: [`next`](Self::next) then goes to the first record,
/// [`prev`](Self::prev) to the last.
///
/// ```
/// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    /// The cursor has a current record.
    is_placed: bool,
    /// Key and value of the current record.
    key: Vec<u8>,
    value: Vec<u8>,
    /// Where the current record was found.
    place: Option<LeafSlot>,
    /// The likely position of that leaf.
    sibling_hint: SiblingHint,
    search: Search,
    /// Where the current record is while the cursor steps through records read ahead.
    ahead: ReadAhead,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(transaction: &'t Transaction, database: Database, tree: Tree) -> Cursor<'t> {
        Cursor { database: Some(database), ..Cursor::over(transaction, tree) }
    }

    pub(in crate::transaction) fn over(transaction: &'t Transaction, tree: Tree) -> Cursor<'t> {
        Cursor {
            transaction,
            database: None,
            tree,
            is_placed: false,
            key: Vec::new(),
            value: Vec::new(),
            place: None,
            sibling_hint: SiblingHint::default(),
            search: Search::default(),
            ahead: ReadAhead::default(),
        }
    }

    /// Moves to the first record. Returns false if there is none.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
        self.ahead.stop();
        self.search.bound.clear();
        self.forward(SearchStart::At)
    }

    /// Moves to the last record. Returns false if there is none.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
        self.ahead.stop();
        self.backward(None)
    }

    /// Moves to the first record whose key is not less than `key`. Returns false if there is none.
    /// An error on a hash database, which has no key order.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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

    /// As [`seek`](Self::seek), by the key as leaves store it.
    pub(crate) fn seek_stored(&mut self, key: &[u8]) -> Result<bool> {
        self.ahead.stop();
        key.clone_into(&mut self.search.bound);
        self.forward(SearchStart::At)
    }

    /// Returns the key of the current record as leaves store it.
    pub(crate) fn stored_key(&self) -> &[u8] {
        &self.key
    }

    /// Moves to the last record whose key is not greater than `key`. Returns false if there is
    /// none. An error on a hash database.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # let mut cursor = fruit.cursor(&transaction)?;
    /// assert!(cursor.seek_at_or_before(b"bb")?);
    /// assert_eq!(cursor.key(), b"b");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn seek_at_or_before(&mut self, key: &[u8]) -> Result<bool> {
        check_ordered(self.tree)?;
        self.ahead.stop();
        key.clone_into(&mut self.search.bound);
        self.backward(Some(SearchStart::At))
    }

    /// Moves to the next record. Returns false, without moving, at the end. Without a current
    /// record, moves to the first one.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        if !self.is_placed {
            return self.first();
        }
        if self.reads_ahead() {
            return self.step_ahead(Direction::Forward);
        }
        self.search.bound.clone_from(&self.key);
        self.forward(SearchStart::Beyond)
    }

    /// Moves to the previous record. Returns false, without moving, at the start. Without a current
    /// record, moves to the last one.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        if !self.is_placed {
            return self.last();
        }
        if self.reads_ahead() {
            return self.step_ahead(Direction::Backward);
        }
        self.search.bound.clone_from(&self.key);
        self.backward(Some(SearchStart::Beyond))
    }

    /// Returns the key of the current record, or an empty slice if there is none.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.ahead.current() {
            Some((key, _)) => key,
            None => self.key.get(self.tree.key_start()..).unwrap_or_default(),
        }
    }

    /// Returns the value of the current record, or an empty slice if there is none.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.ahead.current().map_or(&self.value, |(_, value)| value)
    }

    /// Replaces the value of the current record.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
        let (database, key) = self.current()?;
        database.write(self.transaction, key, WriteOp::Put(value))?;
        self.value.clear();
        self.value.extend_from_slice(value);
        Ok(())
    }

    /// Removes the current record. The cursor keeps its place between the neighbours. Returns false
    /// if the record was gone already.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
        let (database, key) = self.current()?;
        database.write(self.transaction, key, WriteOp::Delete)
    }

    fn current(&self) -> Result<(&Database, &[u8])> {
        match &self.database {
            Some(database) if self.is_placed => Ok((database, self.key())),
            _ => Err(Error::misuse("the cursor has no current record; seek one first")),
        }
    }

    /// Begins a call: under read committed, resolves the database's name again.
    fn begin_call(&mut self) -> Result<()> {
        let Some(database) = &self.database else {
            self.transaction.begin_call();
            return Ok(());
        };
        if self.transaction.is_read_committed() {
            let tree = database.tree(self.transaction, DatabaseUse::Read)?;
            if tree.method != self.tree.method {
                // The cursor's database was dropped: it has no position any more.
                return Err(Error::NoSuchDatabase { name: database.name().into() });
            }
            if tree != self.tree {
                self.tree = tree;
                self.place = None;
            }
        }
        Ok(())
    }

    /// Returns whether the cursor may read ahead: the transaction's view cannot change, and its
    /// reads are not tracked.
    #[inline]
    fn reads_ahead(&self) -> bool {
        let is_fixed = self.transaction.is_read_only() || planted(Canary::ReadAheadOfChanges);
        is_fixed && self.tree.method.is_ordered()
    }

    /// Moves to the neighbouring record, reading ahead if necessary. Returns false,
    /// without moving, if there is none.
    #[inline]
    fn step_ahead(&mut self, direction: Direction) -> Result<bool> {
        if self.ahead.step(direction) {
            return Ok(true);
        }
        self.read_ahead(direction)
    }

    #[cold]
    fn read_ahead(&mut self, direction: Direction) -> Result<bool> {
        if let Some((key, value)) = self.ahead.current() {
            key.clone_into(&mut self.key);
            value.clone_into(&mut self.value);
            self.place = None;
        }
        let place = self.place.map(|slot| (slot, self.sibling_hint));
        self.ahead.read(self.transaction, self.tree, (&self.key, place), direction)
    }

    /// Moves to the first visible record at or after the search bound.
    fn forward(&mut self, start: SearchStart) -> Result<bool> {
        let begun = self.begin_call();
        let moved = begun.and_then(|()| self.search_forward(start));
        self.transaction.unless_expired(moved)
    }

    fn search_forward(&mut self, mut start: SearchStart) -> Result<bool> {
        let (transaction, tree) = (self.transaction, self.tree);
        let state = &mut *transaction.state.borrow_mut();
        let pool = &transaction.engine().pool;
        let search = &mut self.search;
        let is_step = start == SearchStart::Beyond;
        let mut place = self.place.filter(|_| is_step);
        // Only the next leaf is looked for beside this one.
        let mut hint = SiblingHint::default();
        let mut tries = Tries::default();
        loop {
            let (guard, first) = match place.take().and_then(|place| place.unchanged(pool, tree)) {
                Some((guard, slot)) => {
                    hint = self.sibling_hint;
                    (guard, slot + 1)
                }
                None => {
                    let (guard, _) = tree.leaf_after(pool, &search.bound, &mut hint)?;
                    let first = first_after(guard.page, &search.bound, start);
                    (guard, first)
                }
            };
            let Some(attempt) = tries.begin(guard) else { continue };
            let positions = first..guard.page.count();
            let mut seen = search.look(transaction, state, guard.page, positions)?;
            search.fence.clear();
            let has_fence = matches!(seen, LeafSearch::Nothing)
                && guard.page.append_upper_fence(&mut search.fence);
            if matches!(seen, LeafSearch::Again) || !attempt.validate() {
                continue;
            }
            seen = search.complete(transaction, state, seen)?;
            if matches!(seen, LeafSearch::Again) {
                continue;
            }
            if transaction.tracks_reads() {
                let high = search.end_forward(&seen, has_fence);
                state.reads.range(tree, &search.bound, high, guard.id, guard.content_version());
            }
            if start == SearchStart::Beyond && !matches!(seen, LeafSearch::Nothing) {
                tree.check_progress(guard.id, &search.key, Ordering::Greater, &search.bound)?;
            }
            match seen {
                LeafSearch::At(position, flags) => {
                    let slot = LeafSlot::of(&guard, position);
                    return self.place_at(slot, hint, flags).map(|()| true);
                }
                LeafSearch::Nothing if !has_fence => return Ok(self.end_without(is_step)),
                LeafSearch::Nothing => {
                    tree.check_forward(guard.id, &search.bound, &search.fence)?;
                    std::mem::swap(&mut search.bound, &mut search.fence);
                    start = SearchStart::At;
                }
                LeafSearch::Passed(position) => {
                    search.bound.clone_from(&search.key);
                    start = SearchStart::Beyond;
                    place = Some(LeafSlot::of(&guard, position));
                    self.sibling_hint = hint;
                }
                LeafSearch::Hidden(..) | LeafSearch::Again => continue,
            }
            tries = Tries::default();
        }
    }

    /// Moves to the last visible record at or before the search bound; without `start`, to the last
    /// one of the tree.
    fn backward(&mut self, start: Option<SearchStart>) -> Result<bool> {
        let begun = self.begin_call();
        let moved = begun.and_then(|()| self.search_backward(start));
        self.transaction.unless_expired(moved)
    }

    fn search_backward(&mut self, mut start: Option<SearchStart>) -> Result<bool> {
        let (transaction, tree) = (self.transaction, self.tree);
        let state = &mut *transaction.state.borrow_mut();
        let pool = &transaction.engine().pool;
        let search = &mut self.search;
        let is_step = start == Some(SearchStart::Beyond);
        let mut place = self.place.filter(|_| is_step);
        let mut hint = SiblingHint::default();
        let mut tries = Tries::default();
        loop {
            let bound = start.map(|start| (&search.bound[..], start));
            // Before a leaf's first record the search goes to another leaf in any case.
            let previous = place.take().filter(|place| place.slot > 0);
            let (guard, end) = match (previous.and_then(|place| place.unchanged(pool, tree)), bound)
            {
                (Some((guard, slot)), _) => {
                    hint = self.sibling_hint;
                    (guard, slot)
                }
                (None, Some((key, start @ SearchStart::At))) => {
                    let guard = tree.leaf(pool, key)?;
                    (guard, end_before(guard.page, key, start))
                }
                (None, _) => {
                    let guard = tree.leaf_before(pool, bound.map(|(key, _)| key), &mut hint)?;
                    let end = |(key, start)| end_before(guard.page, key, start);
                    let end = bound.map_or(usize::MAX, end);
                    (guard, end)
                }
            };
            let Some(attempt) = tries.begin(guard) else { continue };
            let positions = (0..end.min(guard.page.count())).rev();
            let mut seen = search.look(transaction, state, guard.page, positions)?;
            search.fence.clear();
            if matches!(seen, LeafSearch::Nothing) {
                guard.page.append_lower_fence(&mut search.fence);
            }
            if matches!(seen, LeafSearch::Again) || !attempt.validate() {
                continue;
            }
            seen = search.complete(transaction, state, seen)?;
            if matches!(seen, LeafSearch::Again) {
                continue;
            }
            if transaction.tracks_reads() {
                let (low, high) = search.range_backward(&seen, start);
                state.reads.range(tree, low, high, guard.id, guard.content_version());
            }
            let is_beyond = start == Some(SearchStart::Beyond);
            if is_beyond && !matches!(seen, LeafSearch::Nothing) {
                tree.check_progress(guard.id, &search.key, Ordering::Less, &search.bound)?;
            }
            match seen {
                LeafSearch::At(position, flags) => {
                    let slot = LeafSlot::of(&guard, position);
                    return self.place_at(slot, hint, flags).map(|()| true);
                }
                LeafSearch::Nothing if search.fence.is_empty() => {
                    return Ok(self.end_without(is_step));
                }
                LeafSearch::Nothing => {
                    let from = start.map(|start| (&search.bound[..], start == SearchStart::At));
                    tree.check_backward(guard.id, from, &search.fence)?;
                    std::mem::swap(&mut search.bound, &mut search.fence);
                }
                LeafSearch::Passed(position) => {
                    search.bound.clone_from(&search.key);
                    place = Some(LeafSlot::of(&guard, position));
                    self.sibling_hint = hint;
                }
                LeafSearch::Hidden(..) | LeafSearch::Again => continue,
            }
            start = Some(SearchStart::Beyond);
            tries = Tries::default();
        }
    }

    /// Makes the record with these flags, which the search found, the current one.
    #[inline]
    fn place_at(&mut self, slot: LeafSlot, hint: SiblingHint, flags: u8) -> Result<()> {
        if flags & OVERFLOW != 0 {
            self.transaction.read_overflow_value(&mut self.search.value)?;
        }
        std::mem::swap(&mut self.key, &mut self.search.key);
        std::mem::swap(&mut self.value, &mut self.search.value);
        (self.place, self.sibling_hint) = (Some(slot), hint);
        self.is_placed = true;
        Ok(())
    }

    /// Ends a search that found no record: a step leaves the current record. Returns false.
    fn end_without(&mut self, is_step: bool) -> bool {
        if !is_step {
            self.unset();
        }
        false
    }

    /// Leaves the cursor without a current record.
    fn unset(&mut self) {
        self.is_placed = false;
        self.key.clear();
        self.value.clear();
        self.place = None;
    }
}

/// Returns the first position of a leaf that a search forward from `key` looks at.
#[inline]
fn first_after(page: Page<'_>, key: &[u8], start: SearchStart) -> usize {
    match page.search(key) {
        Ok(at) if start == SearchStart::Beyond => at + 1,
        Ok(at) | Err(at) => at,
    }
}

/// The first position of a leaf that a search backward from `key` does not look at.
fn end_before(page: Page<'_>, key: &[u8], start: SearchStart) -> usize {
    // The leaf before a key may lie wholly before it: the search begins at its last record.
    if !page.covers(key) {
        return usize::MAX;
    }
    match page.search(key) {
        Ok(at) if start == SearchStart::At => at + 1,
        Ok(at) | Err(at) => at,
    }
}

/// The memory of a search. A cursor keeps it, so that moving allocates nothing.
#[derive(Default)]
struct Search {
    /// The key that the search starts at.
    bound: Vec<u8>,
    /// Key and value of the record found.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The fence of a leaf without a visible record.
    fence: Vec<u8>,
}

impl Search {
    /// Copies out key and value of the first visible record among `positions`.
    fn look(
        &mut self,
        transaction: &Transaction,
        state: &mut State,
        page: Page<'_>,
        positions: impl Iterator<Item = usize>,
    ) -> Result<LeafSearch> {
        for position in positions {
            self.value.clear();
            let found = match transaction.append_visible(state, page, position, &mut self.value)? {
                Visibility::Again => return Ok(LeafSearch::Again),
                Visibility::Nothing => continue,
                Visibility::Hidden(version) => LeafSearch::Hidden(position, version),
                Visibility::Record(flags) => LeafSearch::At(position, flags),
            };
            self.key.clear();
            page.append_key(position, &mut self.key);
            return Ok(found);
        }
        Ok(LeafSearch::Nothing)
    }

    /// Finds the version of a hidden record that the transaction sees. The page was validated
    /// before.
    fn complete(
        &mut self,
        transaction: &Transaction,
        state: &State,
        seen: LeafSearch,
    ) -> Result<LeafSearch> {
        let LeafSearch::Hidden(position, version) = seen else { return Ok(seen) };
        self.value.clear();
        let before = transaction.append_version_before(state, version, &mut self.value)?;
        Ok(match before {
            Visibility::Record(flags) => LeafSearch::At(position, flags),
            Visibility::Nothing => LeafSearch::Passed(position),
            Visibility::Hidden(_) | Visibility::Again => LeafSearch::Again,
        })
    }

    /// Returns the end of the keys that a search forward read in a leaf, for validation.
    #[inline]
    fn end_forward(&self, seen: &LeafSearch, has_fence: bool) -> Bound<&[u8]> {
        match seen {
            LeafSearch::Nothing if has_fence => Bound::Excluded(&self.fence[..]),
            LeafSearch::Nothing => Bound::Unbounded,
            _ => Bound::Included(&self.key[..]),
        }
    }

    /// Returns the keys that a search backward read in a leaf, for validation.
    #[inline]
    fn range_backward(
        &self,
        seen: &LeafSearch,
        start: Option<SearchStart>,
    ) -> (&[u8], Bound<&[u8]>) {
        let is_empty = matches!(seen, LeafSearch::Nothing);
        let low = if is_empty { &self.fence } else { &self.key };
        let high = match start {
            None => Bound::Unbounded,
            Some(SearchStart::At) => Bound::Included(&self.bound[..]),
            Some(SearchStart::Beyond) => Bound::Excluded(&self.bound[..]),
        };
        (low, high)
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
