//! Scans: the records of a range, a leaf at a time.
//!
//! Above: readers of many records that avoid a call, a latch word and a key copy for each. Below:
//! the same leaves and versions as a [`Cursor`](super::Cursor). A [`Scan`] borrows nothing: between
//! two calls it is a range of keys still to be read, so it may live as long as its transaction.
//!
//! - SCAN-1: a batch holds what the transaction sees of one leaf, in the scan's direction; it
//!   counts only once the leaf was validated, as every optimistic read does (PAGE-2). (by test
//!   `scan_equals_a_map`)
//! - SCAN-2: the remaining range begins exactly where the batch ended, even if the leaves in
//!   between change. (by test `scan_equals_a_map`)
//! - SCAN-3: a record is filtered by its value only if the value that the transaction sees is
//!   outside an [`IntRange`]. A record that cannot be decided cheaply is delivered: the caller that
//!   sets ranges checks again. (by test `filtered_scan_never_drops_a_matching_record`)
//! - SCAN-4: a batch of numbers has one row for each record that the transaction sees of one leaf,
//!   except filtered ones. If a record of the leaf cannot be decided cheaply, the leaf's records
//!   are delivered instead.

use std::cmp::Ordering;
use std::ops::Bound;

use super::leaf_filter::{IntField, IntRange, LeafFilter, Left};
use super::{Database, ReadTransaction};
use crate::access::btree::{Neighbour, Tree};
use crate::access::hash::group_bounds;
use crate::access::limits::check_ordered;
use crate::access::overflow::{
    POINTER_BYTES, check_pointer, decode_pointer, prefetch_chains, read_chain_start,
};
use crate::buffer::Tries;
use crate::error::{Error, Result};
use crate::mvcc::{TransactionId, writer_of};
use crate::page::{HASH_BYTES, OVERFLOW, Page, RecordBatch, TOMBSTONE};
use crate::transaction::read::Sight;
use crate::transaction::{State, Transaction};

/// Leaves read without finding a record before the caller is asked to call again.
const LEAVES_IN_VAIN: usize = 256;

/// Bytes of long values after which a batch ends.
const LONG_BYTES: usize = 64 << 10;

/// The rest of a key range, and how it is read. [`Database::scan`] reads it one leaf at a time.
///
/// A scan does not borrow the transaction and can be paused, restarted and reused.
///
/// ```
/// # let environment = quickbeam::Environment::memory(Default::default())?;
/// # let fruit = environment.create_database("fruit")?;
/// # let transaction = environment.begin()?;
/// # for key in [b"a", b"b", b"c"] {
/// #     fruit.put(&transaction, key, b"")?;
/// # }
/// use quickbeam::{ScanBatch, Scan};
/// use std::ops::Bound;
///
/// let mut scan = Scan::new(Bound::Included(b"b"), Bound::Unbounded);
/// let mut batch = ScanBatch::default();
/// let mut keys = Vec::new();
/// while fruit.scan(&transaction, &mut scan, &mut batch)? {
///     keys.extend((0..batch.len()).map(|record| batch.key(record).to_vec()));
/// }
/// assert_eq!(keys, [b"b", b"c"]);
/// # Ok::<(), quickbeam::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    backward: bool,
    keys: bool,
    value_limit: usize,
    record_limit: usize,
    /// It goes through a hash database: its bounds are stored keys.
    hashed: bool,
    /// It is for one group of records.
    group: bool,
    /// What values begin with whose numbers are looked at, and the numbers.
    form: u16,
    windows: Vec<IntRange>,
    numbers: Option<Vec<IntField>>,
    /// Where the leaf after the last one probably is.
    neighbour: Neighbour,
    /// The key at which a batch ends; memory between two batches.
    edge: Vec<u8>,
    finished: bool,
}

impl Scan {
    /// Scans all records from `low` to `high` in ascending order.
    #[must_use]
    pub fn new(low: Bound<&[u8]>, high: Bound<&[u8]>) -> Scan {
        Scan {
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
            backward: false,
            keys: true,
            value_limit: usize::MAX,
            record_limit: usize::MAX,
            hashed: false,
            group: false,
            form: 0,
            windows: Vec::new(),
            numbers: None,
            neighbour: Neighbour::default(),
            edge: Vec::new(),
            finished: false,
        }
    }

    /// Scans in descending order.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # use quickbeam::{ScanBatch, Scan};
    /// # use std::ops::Bound;
    /// # let mut batch = ScanBatch::default();
    /// let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).backward();
    /// assert!(fruit.scan(&transaction, &mut scan, &mut batch)?);
    /// assert_eq!(batch.key(0), b"c");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[must_use]
    pub fn backward(mut self) -> Scan {
        self.backward = true;
        self
    }

    /// Leaves out the keys of the records.
    #[must_use]
    pub fn without_keys(mut self) -> Scan {
        self.keys = false;
        self
    }

    /// Copies only the first `bytes` of each value. A value may come whole.
    #[must_use]
    pub fn value_limit(mut self, bytes: usize) -> Scan {
        self.value_limit = bytes;
        self
    }

    /// Delivers at most `records` records in a batch.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # use quickbeam::{ScanBatch, Scan};
    /// # use std::ops::Bound;
    /// # let mut batch = ScanBatch::default();
    /// let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).record_limit(2);
    /// assert!(fruit.scan(&transaction, &mut scan, &mut batch)?);
    /// assert_eq!(batch.len(), 2);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[must_use]
    pub fn record_limit(mut self, records: usize) -> Scan {
        self.set_record_limit(records);
        self
    }

    /// Restarts just after `key`, or before it if `backward`. Buffers are kept.
    pub(super) fn restart_beside(&mut self, key: &[u8], backward: bool) {
        let beside = Bound::Excluded(key);
        match backward {
            false => self.restart(beside, Bound::Unbounded),
            true => self.restart(Bound::Unbounded, beside),
        }
        self.backward = backward;
    }

    /// As [`record_limit`](Self::record_limit), from the next batch on.
    pub fn set_record_limit(&mut self, records: usize) {
        self.record_limit = records.max(1);
    }

    /// Filters out records whose value begins with the two bytes of `form`, little-endian, and has
    /// a number outside its range. Replaces the ranges set before. Some such records may still be
    /// delivered: recently changed ones and long ones.
    pub fn only(&mut self, form: u16, windows: impl IntoIterator<Item = IntRange>) {
        self.form = form;
        self.windows.clear();
        self.windows.extend(windows);
    }

    /// Delivers, where it can, these numbers of the values in place of the records, if values begin
    /// with the two bytes of `form`, little-endian.
    pub fn numbers(&mut self, form: u16, numbers: impl IntoIterator<Item = IntField>) {
        self.form = form;
        self.numbers = Some(numbers.into_iter().collect());
    }

    /// Restarts with another range. Buffers and settings are kept.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # use quickbeam::{ScanBatch, Scan};
    /// # use std::ops::Bound;
    /// # let mut batch = ScanBatch::default();
    /// let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
    /// while fruit.scan(&transaction, &mut scan, &mut batch)? {}
    /// scan.restart(Bound::Included(b"c"), Bound::Unbounded);
    /// assert!(fruit.scan(&transaction, &mut scan, &mut batch)?);
    /// assert_eq!(batch.key(0), b"c");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn restart(&mut self, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        assign(&mut self.low, low, &mut self.edge);
        assign(&mut self.high, high, &mut self.edge);
        self.hashed = false;
        self.neighbour = Neighbour::default();
        self.group = false;
        self.finished = false;
    }

    /// Restarts with a group of an [`AccessMethod::HashPrefix`](crate::AccessMethod::HashPrefix)
    /// database. `group` is a key that ends with its group.
    pub fn restart_group(&mut self, group: &[u8]) {
        self.restart(Bound::Included(group), Bound::Excluded(&[]));
        self.group = true;
    }

    /// Puts the bounds of stored keys in place of the group; its hash value.
    pub(super) fn bound_by_group(&mut self) -> u32 {
        let (Bound::Included(low), Bound::Excluded(high)) = (&mut self.low, &mut self.high) else {
            return 0;
        };
        let (hash, is_bounded) = group_bounds(low, high);
        if !is_bounded {
            self.high = Bound::Unbounded;
        }
        self.hashed = true;
        hash
    }
}

/// Makes `to` the bound `from`, in the memory it has; where it needs none, `spare` has it.
#[inline]
fn assign(to: &mut Bound<Vec<u8>>, from: Bound<&[u8]>, spare: &mut Vec<u8>) {
    let mut bytes = memory_of(to);
    *to = match from {
        Bound::Unbounded => {
            if spare.capacity() < bytes.capacity() {
                *spare = bytes;
            }
            Bound::Unbounded
        }
        _ => from.map(|from| {
            from.clone_into(&mut bytes);
            bytes
        }),
    };
}

/// What is left to read begins, or ends, at the edge; the edge gets the bound's memory.
#[inline]
fn move_to_edge(
    end: &mut Bound<Vec<u8>>,
    edge: &mut Vec<u8>,
    bound: fn(Vec<u8>) -> Bound<Vec<u8>>,
) {
    let memory = memory_of(end);
    *end = bound(std::mem::replace(edge, memory));
}

/// Takes the memory out of a bound, which is none then.
fn memory_of(bound: &mut Bound<Vec<u8>>) -> Vec<u8> {
    match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(bytes) | Bound::Excluded(bytes) => bytes,
        Bound::Unbounded => Vec::new(),
    }
}

/// The records that one step of a scan delivered. Reuse it: it keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct ScanBatch {
    records: RecordBatch,
    /// Key and value of a recently changed record, before they are appended to the others.
    spare_key: Vec<u8>,
    spare: Vec<u8>,
    /// Records whose value lies on pages of its own.
    long: Vec<usize>,
    /// A record may be outside a window.
    untold: bool,
    /// What windows and numbers leave of a leaf.
    sift: LeafFilter,
    /// Rows of numbers.
    rows: usize,
    columns: Vec<Vec<i64>>,
}

impl ScanBatch {
    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.rows == 0
    }

    /// How many rows of numbers there are; then there is no record.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A number of every row, in the order of the rows.
    #[must_use]
    pub fn column(&self, number: usize) -> &[i64] {
        self.columns.get(number).map_or(&[], Vec::as_slice)
    }

    /// Returns the key of a record, or an empty slice if the scan leaves out keys.
    #[must_use]
    #[inline]
    pub fn key(&self, record: usize) -> &[u8] {
        self.records.key(record)
    }

    /// Returns the value of a record.
    #[must_use]
    #[inline]
    pub fn value(&self, record: usize) -> &[u8] {
        self.records.value(record)
    }

    /// Whether every record is known to be inside every window of the scan.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        !self.untold
    }

    /// Removes every record.
    pub fn clear(&mut self) {
        self.records.clear();
        self.long.clear();
        self.untold = false;
        self.rows = 0;
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

impl ScanBatch {
    /// Notes that the last record is long; the bytes of its value that will be fetched.
    fn add_long(&mut self) -> usize {
        let record = self.records.len().saturating_sub(1);
        self.long.push(record);
        decode_pointer(self.records.value(record)).map_or(0, |(_, length)| length)
    }
}

/// What a step found in one leaf.
struct ScanStep {
    /// The scan ends within this leaf.
    finished: bool,
    /// The batch has as many records as it may have, and this one was the last.
    stopped_at: Option<usize>,
    /// Records without their values yet: the snapshot sees a version before the committed change
    /// with this version word, or none.
    hidden: Vec<(usize, u64)>,
}

impl Database {
    /// Reads on: replaces the batch by the next records of the scan's range. Returns false at the
    /// end.
    ///
    /// A batch is empty only in a scan with windows, so that the caller of a selective scan gets
    /// control in between. A hash database can only be scanned without bounds, or by groups.
    #[inline]
    pub fn scan(
        &self,
        transaction: &impl ReadTransaction,
        scan: &mut Scan,
        batch: &mut ScanBatch,
    ) -> Result<bool> {
        self.scan_in(transaction.as_transaction(), scan, batch)
    }

    fn scan_in(
        &self,
        transaction: &Transaction,
        scan: &mut Scan,
        batch: &mut ScanBatch,
    ) -> Result<bool> {
        let tree = self.tree(transaction, false)?;
        let mut aimed = None;
        if scan.group && !scan.hashed {
            aimed = Some(self.enter_group(transaction, tree, scan)?);
        } else if scan.hashed == tree.method.is_ordered() {
            if scan.hashed
                || !matches!((&scan.low, &scan.high), (Bound::Unbounded, Bound::Unbounded))
            {
                check_ordered(tree)?;
                return Err(Error::misuse("the scan was begun in a hash database; restart it"));
            }
            scan.hashed = true;
        }
        let mut learn = || {
            if let Some((hash, leaf)) = aimed.take() {
                self.learn(transaction, tree, hash, leaf);
            }
        };
        transaction.scan_next(tree, scan, batch, &mut learn)
    }
}

impl Transaction {
    /// Reads leaves until there is a record; false at the end of the scan. Calls `read_one` after
    /// each leaf.
    pub(super) fn scan_next(
        &self,
        tree: Tree,
        scan: &mut Scan,
        batch: &mut ScanBatch,
        read_one: &mut dyn FnMut(),
    ) -> Result<bool> {
        let mut leaves = 0;
        loop {
            batch.clear();
            if scan.finished {
                return Ok(false);
            }
            leaves += 1;
            if leaves > LEAVES_IN_VAIN && !scan.windows.is_empty() {
                return Ok(true);
            }
            let scanned = match scan.backward {
                true => self.scan_back(tree, scan, batch),
                false => self.scan_on(tree, scan, batch),
            };
            self.unless_expired(scanned)?;
            read_one();
            if !batch.is_empty() {
                return Ok(true);
            }
        }
    }

    /// The next leaf of an ascending scan.
    fn scan_on(&self, tree: Tree, scan: &mut Scan, batch: &mut ScanBatch) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let pool = &self.inner().pool;
        let mut tries = Tries::default();
        loop {
            let low: &[u8] = match &scan.low {
                Bound::Included(key) | Bound::Excluded(key) => key,
                Bound::Unbounded => &[],
            };
            let (guard, starts, found) = if scan.group {
                let (guard, found) = tree.locate(pool, low, state.leaf_hints.of(tree))?;
                (guard, false, Some(found))
            } else {
                let (guard, starts) = tree.leaf_after(pool, low, &mut scan.neighbour)?;
                (guard, starts, None)
            };
            let Some(attempt) = tries.begin(guard) else { continue };
            let page = guard.page;
            let search = || found.unwrap_or_else(|| page.search(low));
            let first = match &scan.low {
                Bound::Unbounded => 0,
                // It begins where the leaf does.
                Bound::Included(_) if starts => 0,
                Bound::Included(_) => search().unwrap_or_else(|at| at),
                Bound::Excluded(_) => search().map_or_else(|at| at, |at| at + 1),
            };
            let end = match &scan.high {
                Bound::Included(key) if page.covers(key) => {
                    page.search(key).map_or_else(|at| at, |at| at + 1)
                }
                Bound::Excluded(key) if page.covers(key) => {
                    page.search(key).unwrap_or_else(|at| at)
                }
                Bound::Included(key) | Bound::Excluded(key) if is_below(page, key) => 0,
                _ => usize::MAX,
            };
            let positions = first..end.min(page.count());
            if end == usize::MAX && positions.len() < scan.record_limit {
                tree.prefetch_neighbour(pool, &scan.neighbour);
            }
            let bounded = end != usize::MAX || page.is_open_end();
            let Some(mut step) = self.collect(state, page, positions, bounded, scan, batch) else {
                continue;
            };
            scan.edge.clear();
            let goes_on = match step.stopped_at {
                Some(position) => {
                    page.append_key(position, &mut scan.edge);
                    true
                }
                None => page.append_upper_fence(&mut scan.edge),
            };
            if !attempt.validate() || !self.complete_hidden(state, scan, batch, &mut step) {
                continue;
            }
            let is_stopped = step.stopped_at.is_some();
            if self.tracks_reads() {
                let high = if is_stopped {
                    Bound::Included(&scan.edge[..])
                } else if goes_on && !step.finished {
                    Bound::Excluded(&scan.edge[..])
                } else {
                    as_slice(&scan.high)
                };
                state.reads.range(tree, low, high, guard.id, guard.content_version());
            }
            scan.finished = step.finished && !is_stopped;
            if is_stopped {
                if matches!(scan.low, Bound::Excluded(_)) {
                    tree.advanced(guard.id, &scan.edge, Ordering::Greater, low)?;
                }
                move_to_edge(&mut scan.low, &mut scan.edge, Bound::Excluded);
                scan.neighbour = Neighbour::default();
            } else if goes_on {
                tree.check_onward(guard.id, low, &scan.edge)?;
                move_to_edge(&mut scan.low, &mut scan.edge, Bound::Included);
            }
            return self.fetch_all_long(batch);
        }
    }

    /// The next leaf of a descending scan.
    fn scan_back(&self, tree: Tree, scan: &mut Scan, batch: &mut ScanBatch) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        let pool = &self.inner().pool;
        let mut tries = Tries::default();
        loop {
            let guard = match &scan.high {
                Bound::Included(key) => tree.leaf(pool, key)?,
                Bound::Excluded(key) => tree.leaf_before(pool, Some(key))?,
                Bound::Unbounded => tree.leaf_before(pool, None)?,
            };
            let Some(attempt) = tries.begin(guard) else { continue };
            let page = guard.page;
            let end = match &scan.high {
                Bound::Included(key) | Bound::Excluded(key) if !page.covers(key) => page.count(),
                Bound::Included(key) => page.search(key).map_or_else(|at| at, |at| at + 1),
                Bound::Excluded(key) => page.search(key).unwrap_or_else(|at| at),
                Bound::Unbounded => page.count(),
            };
            scan.edge.clear();
            page.append_lower_fence(&mut scan.edge);
            let fence = &scan.edge[..];
            let (first, bounded) = match &scan.low {
                Bound::Included(key) | Bound::Excluded(key) if key[..] < *fence => {
                    (0, fence.is_empty())
                }
                // The range is empty: it begins beyond the leaf in which it ends.
                Bound::Included(key) | Bound::Excluded(key) if !page.covers(key) => (end, true),
                Bound::Included(key) => (page.search(key).unwrap_or_else(|at| at), true),
                Bound::Excluded(key) => (page.search(key).map_or_else(|at| at, |at| at + 1), true),
                Bound::Unbounded => (0, fence.is_empty()),
            };
            let positions = (first..end.min(page.count())).rev();
            let Some(mut step) = self.collect(state, page, positions, bounded, scan, batch) else {
                continue;
            };
            if let Some(position) = step.stopped_at {
                scan.edge.clear();
                page.append_key(position, &mut scan.edge);
            }
            if !attempt.validate() || !self.complete_hidden(state, scan, batch, &mut step) {
                continue;
            }
            let is_stopped = step.stopped_at.is_some();
            if self.tracks_reads() {
                let low: &[u8] = match &scan.low {
                    Bound::Included(key) | Bound::Excluded(key) if step.finished && !is_stopped => {
                        key
                    }
                    _ => &scan.edge,
                };
                let high = as_slice(&scan.high);
                state.reads.range(tree, low, high, guard.id, guard.content_version());
            }
            scan.finished = step.finished && !is_stopped;
            if is_stopped {
                if let Bound::Excluded(high) = &scan.high {
                    tree.advanced(guard.id, &scan.edge, Ordering::Less, high)?;
                }
            } else if !scan.finished {
                let from = match &scan.high {
                    Bound::Included(key) => Some((&key[..], true)),
                    Bound::Excluded(key) => Some((&key[..], false)),
                    Bound::Unbounded => None,
                };
                tree.check_backward(guard.id, from, &scan.edge)?;
            }
            if !scan.finished {
                move_to_edge(&mut scan.high, &mut scan.edge, Bound::Excluded);
            }
            return self.fetch_all_long(batch);
        }
    }

    /// Takes what is to be seen at those positions into the batch; `None` when the leaf has to be
    /// looked at again.
    fn collect(
        &self,
        state: &mut State,
        page: Page<'_>,
        positions: impl ExactSizeIterator<Item = usize>,
        bounded: bool,
        scan: &Scan,
        batch: &mut ScanBatch,
    ) -> Option<ScanStep> {
        batch.clear();
        // Looked up once for all: what is plain stays so.
        let horizon = self.inner().registry.horizon();
        let step = ScanStep { finished: bounded, stopped_at: None, hidden: Vec::new() };
        if scan.numbers.is_none() && scan.windows.is_empty() {
            let all = positions.map(|position| Left { position: position as u32, told: true });
            return self.copy(state, page, all, horizon, scan, (step, batch));
        }
        let mut sift = std::mem::take(&mut batch.sift);
        let numbers = scan.numbers.as_deref().unwrap_or_default();
        batch.columns.resize_with(numbers.len(), Vec::new);
        let wanted = (scan.form, &scan.windows[..], numbers);
        let all_told = sift.run(page, positions, horizon, wanted, &mut batch.columns);
        let step = if all_told && scan.numbers.is_some() && scan.record_limit == usize::MAX {
            batch.rows = sift.left.len();
            invariant!(
                SCAN_4,
                batch.columns.iter().all(|column| column.len() == batch.rows),
                "{} rows of numbers, columns of another length",
                batch.rows
            );
            Some(step)
        } else {
            batch.columns.iter_mut().for_each(Vec::clear);
            self.copy(state, page, sift.left.iter().copied(), horizon, scan, (step, batch))
        };
        batch.sift = sift;
        step
    }

    /// Copies what is to be seen of those records into the batch; `None` when the leaf has to be
    /// looked at again.
    fn copy(
        &self,
        state: &mut State,
        page: Page<'_>,
        records: impl ExactSizeIterator<Item = Left>,
        horizon: TransactionId,
        scan: &Scan,
        (mut step, batch): (ScanStep, &mut ScanBatch),
    ) -> Option<ScanStep> {
        // When most records are wanted, they are copied together, as they lie in the page.
        let wanted = records.len().min(scan.record_limit);
        let most = scan.windows.is_empty()
            && scan.value_limit >= page.size()
            && wanted >= page.count().div_ceil(3);
        let skipped = if scan.hashed { HASH_BYTES } else { 0 };
        let leaf = batch.records.begin(page, scan.keys.then_some(skipped), most);
        let mut long_bytes = 0;
        for Left { position, told } in records {
            let position = position as usize;
            let slot = page.slot(position);
            let (version, length) = leaf.record(slot);
            let flags = slot.flags();
            if flags & TOMBSTONE == 0 && writer_of(version) < horizon {
                batch.untold |= !told || flags != 0;
                // A pointer to pages of its own is needed whole.
                let long = flags & OVERFLOW != 0;
                let limit = if long { POINTER_BYTES } else { scan.value_limit };
                batch.records.take(&leaf, slot, length.min(limit));
                if long {
                    long_bytes += batch.add_long();
                }
            } else {
                batch.untold = true;
                batch.spare.clear();
                let sight =
                    self.see_start(state, page, position, scan.value_limit, &mut batch.spare);
                let record = batch.records.len();
                match sight {
                    Sight::Again => return None,
                    Sight::Nothing => continue,
                    Sight::Hidden(version) => step.hidden.push((record, version)),
                    Sight::Record(_) => {}
                }
                batch.spare_key.clear();
                if scan.keys {
                    page.append_key(position, &mut batch.spare_key);
                }
                let key = batch.spare_key.get(skipped..).unwrap_or_default();
                batch.records.add(key, &batch.spare);
                if matches!(sight, Sight::Record(flags) if flags & OVERFLOW != 0) {
                    long_bytes += batch.add_long();
                }
            }
            if batch.records.len() >= scan.record_limit || long_bytes >= LONG_BYTES {
                step.stopped_at = Some(position);
                break;
            }
        }
        Some(step)
    }

    /// Completes a batch after its leaf was validated with versions before committed changes that
    /// the snapshot does not include. Returns false if the leaf has to be looked at again.
    fn complete_hidden(
        &self,
        state: &State,
        scan: &Scan,
        batch: &mut ScanBatch,
        step: &mut ScanStep,
    ) -> bool {
        // From the last one on: removing a record moves those after it.
        for &(record, version) in step.hidden.iter().rev() {
            let mut value = std::mem::take(&mut batch.spare);
            value.clear();
            match self.see_hidden(state, version, &mut value) {
                Sight::Record(flags) => {
                    if flags & OVERFLOW != 0 {
                        batch.long.push(record);
                    } else {
                        value.truncate(scan.value_limit);
                    }
                    batch.records.replace_value(record, value.len()).copy_from_slice(&value);
                }
                Sight::Nothing => {
                    batch.records.remove(record);
                    batch
                        .long
                        .iter_mut()
                        .filter(|long| **long > record)
                        .for_each(|long| *long -= 1);
                }
                Sight::Hidden(_) | Sight::Again => return false,
            }
            batch.spare = value;
        }
        true
    }

    /// Replaces pointers to pages of long values by the values.
    fn fetch_all_long(&self, batch: &mut ScanBatch) -> Result<()> {
        let pool = &self.inner().pool;
        prefetch_chains(pool, &batch.records, &batch.long);
        for &record in &batch.long {
            let (first, length) = check_pointer(pool, batch.records.value(record))?;
            let value = batch.records.replace_value(record, length);
            read_chain_start(pool, first, length, value)?;
        }
        Ok(())
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Whether every key of the leaf is greater than `key`.
fn is_below(page: Page<'_>, key: &[u8]) -> bool {
    key < &page.lower_fence_bytes()[..]
}
