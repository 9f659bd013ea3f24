//! Scans: the records of a range, a leaf at a time.
//!
//! Above: readers of many records that avoid a call, a latch word and a key copy for each. Below:
//! the same leaves and versions as a [`Cursor`](super::Cursor). A [`Scan`] borrows nothing: between
//! two calls it is a range of keys still to be read, so it may live as long as its transaction.
//!
//! - SCAN-1: a batch holds what the transaction sees of one leaf, in the scan's direction; it
//!   counts only once the leaf was validated, as every optimistic read does (PAGE-2).
//! - SCAN-2: the remaining range begins exactly where the batch ended, even if the leaves in
//!   between change.
//! - SCAN-3: a record is filtered by its value only if the value that the transaction sees is
//!   outside an [`IntRange`]. A record that cannot be decided cheaply is delivered: the caller that
//!   sets ranges checks again.
//! - SCAN-4: a batch of projected integers has one row for each record that the transaction sees of
//!   one leaf, except filtered ones. If a record of the leaf cannot be decided cheaply, the leaf's
//!   records are delivered instead.
//!
//! `leaf_versions.rs` has the invariants of scans that pass over leaves, SKIP-1 and SKIP-2.

mod batch;
mod leaf;
mod leaf_versions;

use std::ops::Bound;

use super::leaf_filter::{IntField, IntRange};
use super::{Database, ReadTransaction};
use crate::access::Direction;
use crate::access::btree::{LeafSlot, SiblingHint};
use crate::access::hash::hash_prefix_bounds;
use crate::access::limits::check_ordered;
use crate::error::{Error, Result};
use crate::transaction::DatabaseUse;
use crate::transaction::Transaction;

pub use batch::ScanBatch;
pub use leaf_versions::LeafVersions;

/// The rest of a key range, and how it is read. [`DatabaseExt::scan`] reads it one
/// leaf at a time.
///
/// [`DatabaseExt::scan`]: crate::query_layer::DatabaseExt::scan
///
/// A scan does not borrow the transaction and can be paused, restarted and reused.
///
/// ```
/// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
/// # let fruit = environment.create_database("fruit")?;
/// # let transaction = environment.begin()?;
/// # for key in [b"a", b"b", b"c"] {
/// #     fruit.put(&transaction, key, b"")?;
/// # }
/// use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
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
    direction: Direction,
    keys: bool,
    value_limit: usize,
    record_limit: usize,
    /// Each step delivers one leaf, even if nothing of it.
    is_by_leaf: bool,
    /// The scan is of a hash database: its bounds are stored keys.
    is_hashed: bool,
    /// The scan is of one bucket prefix.
    is_hash_prefix: bool,
    /// The first two bytes of values with integer fields; the filter and the projected fields.
    tag: u16,
    ranges: Vec<IntRange>,
    /// The ranges while the scan reads all records.
    paused_ranges: Vec<IntRange>,
    fields: Option<Vec<IntField>>,
    /// The likely position of the last leaf read.
    sibling_hint: SiblingHint,
    /// The last record delivered, if the scan goes on in its leaf.
    resume: Option<LeafSlot>,
    /// The key at which a batch ends; a spare buffer between two batches.
    boundary: Vec<u8>,
    is_finished: bool,
}

impl Scan {
    /// Scans all records from `low` to `high` in ascending order.
    #[must_use]
    pub fn new(low: Bound<&[u8]>, high: Bound<&[u8]>) -> Scan {
        Scan {
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
            direction: Direction::Forward,
            keys: true,
            value_limit: usize::MAX,
            record_limit: usize::MAX,
            is_by_leaf: false,
            is_hashed: false,
            is_hash_prefix: false,
            tag: 0,
            ranges: Vec::new(),
            paused_ranges: Vec::new(),
            fields: None,
            sibling_hint: SiblingHint::default(),
            resume: None,
            boundary: Vec::new(),
            is_finished: false,
        }
    }

    /// Scans in descending order.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
    /// # use std::ops::Bound;
    /// # let mut batch = ScanBatch::default();
    /// let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).backward();
    /// assert!(fruit.scan(&transaction, &mut scan, &mut batch)?);
    /// assert_eq!(batch.key(0), b"c");
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[must_use]
    pub fn backward(mut self) -> Scan {
        self.direction = Direction::Backward;
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
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
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

    /// Delivers a batch for each leaf, which is empty if nothing of the leaf is delivered. So the
    /// caller learns of each leaf ([`LeafVersions::add`]).
    #[must_use]
    pub fn leaf_by_leaf(mut self) -> Scan {
        self.stop_at_each_leaf();
        self
    }

    /// As [`leaf_by_leaf`](Self::leaf_by_leaf), from the next batch on.
    pub fn stop_at_each_leaf(&mut self) {
        self.is_by_leaf = true;
    }

    /// Restarts just after `key`, or just before it; `resume` and `hint` say where that was, if it
    /// is known. Buffers are kept.
    pub(in crate::transaction) fn restart_beside(
        &mut self,
        key: &[u8],
        direction: Direction,
        (resume, hint): (Option<LeafSlot>, SiblingHint),
    ) {
        let beside = Bound::Excluded(key);
        match direction {
            Direction::Forward => self.restart(beside, Bound::Unbounded),
            Direction::Backward => self.restart(Bound::Unbounded, beside),
        }
        self.direction = direction;
        (self.resume, self.sibling_hint) = (resume, hint);
    }

    /// As [`record_limit`](Self::record_limit), from the next batch on.
    pub fn set_record_limit(&mut self, records: usize) {
        self.record_limit = records.max(1);
    }

    /// Filters out records whose value begins with the two bytes of `tag`, little-endian, and has
    /// an integer outside its range. Replaces the ranges set before. Some such records may still be
    /// delivered: recently changed ones and long ones.
    pub fn filter_ints(&mut self, tag: u16, ranges: impl IntoIterator<Item = IntRange>) {
        self.tag = tag;
        self.paused_ranges.clear();
        self.ranges.clear();
        self.ranges.extend(ranges);
    }

    /// Projects integers: delivers columns of these fields instead of records where it can, if
    /// values begin with the two bytes of `tag`, little-endian.
    pub fn project_ints(&mut self, tag: u16, fields: impl IntoIterator<Item = IntField>) {
        self.tag = tag;
        self.fields = Some(fields.into_iter().collect());
    }

    /// Delivers records again from the next leaf on, and no projected integers.
    pub fn project_records(&mut self) {
        self.fields = None;
    }

    /// Restarts with another range. Buffers and settings are kept.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// # use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
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
        assign(&mut self.low, low, &mut self.boundary);
        assign(&mut self.high, high, &mut self.boundary);
        self.is_hashed = false;
        self.sibling_hint = SiblingHint::default();
        self.resume = None;
        self.is_hash_prefix = false;
        self.is_finished = false;
    }

    /// Restarts with the records of one bucket prefix of an
    /// [`AccessMethod::HashPrefix`](crate::AccessMethod::HashPrefix) database. `prefix` is a key
    /// that ends with its prefix.
    pub fn restart_hash_prefix(&mut self, prefix: &[u8]) {
        self.restart(Bound::Included(prefix), Bound::Excluded(&[]));
        self.is_hash_prefix = true;
    }

    /// Returns whether the batch's keys are in the scan's direction, as far as the batch has keys
    /// without hash values (SCAN-1).
    fn is_in_order(&self, batch: &ScanBatch) -> bool {
        let order = match self.direction {
            Direction::Forward => std::cmp::Ordering::Less,
            Direction::Backward => std::cmp::Ordering::Greater,
        };
        !self.keys
            || self.is_hashed
            || (1..batch.len()).all(|next| batch.key(next - 1).cmp(batch.key(next)) == order)
    }

    /// Returns whether the rest of the range begins after the batch's last key (SCAN-2).
    fn is_past(&self, batch: &ScanBatch) -> bool {
        let Some(last) = batch.len().checked_sub(1).map(|last| batch.key(last)) else {
            return true;
        };
        let is_past = match (self.direction, &self.low, &self.high) {
            (Direction::Forward, Bound::Included(low), _) => last < &low[..],
            (Direction::Forward, Bound::Excluded(low), _) => last <= &low[..],
            (Direction::Backward, _, Bound::Excluded(high)) => last >= &high[..],
            _ => false,
        };
        !self.keys || self.is_hashed || self.is_finished || is_past
    }

    /// Replaces the bucket prefix by the bounds of its stored keys. Returns its hash value.
    pub(in crate::transaction) fn set_bucket_bounds(&mut self) -> u32 {
        let (Bound::Included(low), Bound::Excluded(high)) = (&mut self.low, &mut self.high) else {
            return 0;
        };
        let (hash, is_bounded) = hash_prefix_bounds(low, high);
        if !is_bounded {
            self.high = Bound::Unbounded;
        }
        self.is_hashed = true;
        hash
    }
}

/// Sets `to` to the bound `from`, reusing its buffer. An unused buffer is kept in `spare`.
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

/// Takes the buffer out of a bound, leaving it unbounded.
fn memory_of(bound: &mut Bound<Vec<u8>>) -> Vec<u8> {
    match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(bytes) | Bound::Excluded(bytes) => bytes,
        Bound::Unbounded => Vec::new(),
    }
}

impl Database {
    /// See `query_layer::DatabaseExt::scan`.
    #[inline]
    pub(crate) fn scan(
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
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        let mut hinted = None;
        if scan.is_hash_prefix && !scan.is_hashed {
            hinted = Some(self.seek_bucket(transaction, tree, scan)?);
        } else if scan.is_hashed == tree.method.is_ordered() {
            if scan.is_hashed
                || !matches!((&scan.low, &scan.high), (Bound::Unbounded, Bound::Unbounded))
            {
                check_ordered(tree)?;
                return Err(Error::misuse("the scan was begun in a hash database; restart it"));
            }
            scan.is_hashed = true;
        }
        let mut record_leaf = || {
            if let Some((hash, leaf)) = hinted.take() {
                self.record_bucket_leaf(transaction, tree, hash, leaf);
            }
        };
        transaction.scan_next(tree, scan, batch, &mut record_leaf)
    }
}
