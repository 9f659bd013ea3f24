//! The reads of a transaction, as serializable validation needs them.
//!
//! Above: every call that reads ([`super::read`], [`super::scan`], [`super::cursor`]) adds to the
//! set; [`super::validate`] compares it with the leaves at commit. Below: leaves and their content
//! versions.
//!
//! - READS-1: a [`LeafRead`] is one leaf at one content version, with the keys and ranges read in
//!   it. That leaf covered all of them. As long as the leaf has that content version, none of its
//!   keys and ranges has to be read again.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use crate::access::btree::Tree;
use crate::buffer::Pool;
use crate::mvcc::{Timestamp, TransactionRecord, TransactionState};
use crate::page::{PageId, compare_keys};

/// Number of recent leaf reads in which a change looks for its leaf; transactions change what they
/// have just read. With more reads, the change is recorded separately.
const RECENT_LEAVES: usize = 16;

/// A content version that no page ever has: the keys and ranges have to be read again in any case.
const STALE: u64 = u64::MAX;

/// A leaf that was read, and the points and ranges read in it.
pub struct LeafRead {
    pub leaf: PageId,
    pub version: u64,
    /// Points from the first of these numbers up to, not including, the second.
    pub points: (u32, u32),
    /// Ranges likewise.
    pub ranges: (u32, u32),
}

/// Bytes of the set's keys.
#[derive(Clone, Copy, Default)]
pub struct Span {
    start: usize,
    length: u32,
}

/// A key that was looked up.
#[derive(Clone, Copy)]
pub struct Point {
    pub tree: Tree,
    pub key: Span,
}

/// All keys from `low` on up to `high`.
#[derive(Clone, Copy)]
pub struct ReadRange {
    pub tree: Tree,
    pub low: Span,
    pub high: Bound<Span>,
}

/// The range of the last look while reads extend it: a cursor does with each step.
#[derive(Default)]
struct OpenRange {
    /// `None`: there is no such range.
    tree: Option<Tree>,
    low: Vec<u8>,
    high: Vec<u8>,
    /// Whether the range ends before `high`, with it, or with the tree.
    end: End,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum End {
    Before,
    With,
    #[default]
    Never,
}

/// A leaf that only this transaction changed between these two versions.
struct OwnChange {
    leaf: PageId,
    before: u64,
    after: u64,
    /// Looks that there were then.
    leaves: usize,
}

/// What a transaction read.
#[derive(Default)]
pub struct ReadSet {
    leaves: Vec<LeafRead>,
    points: Vec<Point>,
    ranges: Vec<ReadRange>,
    keys: Vec<u8>,
    open: OpenRange,
    /// Changes by the transaction itself, of leaves that may have been read.
    own: Vec<OwnChange>,
    /// Transactions that had changed something in that leaf, below which nothing newer was found:
    /// none of them may commit first.
    unfinished: Vec<(Arc<TransactionRecord>, PageId)>,
    /// A record was read that has a newer version, or one whose writer had not finished: the look
    /// that is noted next does not tell enough.
    pub contested: bool,
    /// The newest commit when the reads were last validated.
    pub validated_at: Option<Timestamp>,
}

impl ReadSet {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Number of looks.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.leaves.clear();
        self.points.clear();
        self.ranges.clear();
        self.keys.clear();
        self.open.tree = None;
        self.own.clear();
        self.unfinished.clear();
        self.contested = false;
        self.validated_at = None;
    }

    /// Bytes of memory kept.
    pub fn capacity(&self) -> usize {
        self.leaves.capacity() * size_of::<LeafRead>()
            + self.points.capacity() * size_of::<Point>()
            + self.ranges.capacity() * size_of::<ReadRange>()
            + self.keys.capacity()
            + self.open.low.capacity()
            + self.open.high.capacity()
            + self.own.capacity() * size_of::<OwnChange>()
            + self.unfinished.capacity() * size_of::<(Arc<TransactionRecord>, PageId)>()
    }

    /// Notes that `key` was looked up in that leaf.
    #[inline]
    pub fn point(&mut self, tree: Tree, key: &[u8], leaf: PageId, version: u64) {
        self.leaf_read(leaf, version);
        let key = self.keep(key);
        self.add_point(Point { tree, key });
    }

    /// Records that a change, since rolled back, had revealed whether a record of `key` exists.
    pub fn undone(&mut self, tree: Tree, key: &[u8]) {
        self.leaf_read(0, STALE);
        let key = self.keep(key);
        self.add_point(Point { tree, key });
    }

    /// Adds a point to the last look.
    #[inline]
    fn add_point(&mut self, point: Point) {
        self.points.push(point);
        if let Some(last) = self.leaves.last_mut() {
            last.points.1 += 1;
        }
    }

    #[inline]
    fn keep(&mut self, key: &[u8]) -> Span {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        Span { start, length: key.len() as u32 }
    }

    /// The bytes of a key.
    pub fn key(&self, span: Span) -> &[u8] {
        self.keys.get(span.start..span.start + span.length as usize).unwrap_or_default()
    }

    /// A point by its number.
    pub fn point_at(&self, number: u32) -> Option<Point> {
        self.points.get(number as usize).copied()
    }

    /// A range by its number.
    pub fn range_at(&self, number: u32) -> Option<ReadRange> {
        self.ranges.get(number as usize).copied()
    }

    /// Makes the last look one at that leaf with that version.
    #[inline]
    fn leaf_read(&mut self, leaf: PageId, version: u64) {
        let version = if std::mem::take(&mut self.contested) { STALE } else { version };
        if !self.leaves.last().is_some_and(|last| last.leaf == leaf && last.version == version) {
            self.begin_look(leaf, version);
        }
    }

    #[inline]
    fn begin_look(&mut self, leaf: PageId, version: u64) {
        self.close_range();
        let (points, ranges) = (self.points.len() as u32, self.ranges.len() as u32);
        let leaf_read =
            LeafRead { leaf, version, points: (points, points), ranges: (ranges, ranges) };
        self.leaves.push(leaf_read);
    }

    /// Notes that all keys from `low` to `high` were read, in that leaf, which covers them.
    pub fn range(
        &mut self,
        tree: Tree,
        low: &[u8],
        high: Bound<&[u8]>,
        leaf: PageId,
        version: u64,
    ) {
        self.leaf_read(leaf, version);
        if self.open.tree == Some(tree) && self.open.extend(low, high) {
            return;
        }
        let is_empty = match high {
            Bound::Included(key) => key < low,
            Bound::Excluded(key) => key <= low,
            Bound::Unbounded => false,
        };
        if is_empty {
            return;
        }
        self.close_range();
        self.open.tree = Some(tree);
        low.clone_into(&mut self.open.low);
        self.open.set_high(high);
    }

    /// Adds the open range, if there is one, to the last look.
    #[inline]
    fn close_range(&mut self) {
        let Some(tree) = self.open.tree.take() else { return };
        let (low, high) = (std::mem::take(&mut self.open.low), std::mem::take(&mut self.open.high));
        let bound = match self.open.end {
            End::Before => Bound::Excluded(&high[..]),
            End::With => Bound::Included(&high[..]),
            End::Never => Bound::Unbounded,
        };
        self.add_range(tree, &low, bound);
        (self.open.low, self.open.high) = (low, high);
    }

    /// Adds a range to the last look.
    fn add_range(&mut self, tree: Tree, low: &[u8], high: Bound<&[u8]>) {
        let low = self.keep(low);
        let high = high.map(|key| self.keep(key));
        self.ranges.push(ReadRange { tree, low, high });
        if let Some(last) = self.leaves.last_mut() {
            last.ranges.1 += 1;
        }
    }

    /// Notes that the transaction itself changed that leaf, which no one else had changed since it
    /// had the version `before`: if it was read then, it still is as it was read, but for that
    /// change.
    #[inline]
    pub fn changed(&mut self, leaf: PageId, before: u64, after: u64) {
        for seen in self.leaves.iter_mut().rev().take(RECENT_LEAVES) {
            if seen.leaf == leaf && seen.version == before {
                seen.version = after;
            }
        }
        let leaves = self.leaves.len();
        if leaves <= RECENT_LEAVES {
            return;
        }
        match self.own.last_mut() {
            // No version between the two was noted.
            Some(last) if last.leaf == leaf && last.after == before && last.leaves == leaves => {
                last.after = after;
            }
            _ => self.own.push(OwnChange { leaf, before, after, leaves }),
        }
    }

    /// Before the first validation: takes the transaction's own changes into the versions of leaves
    /// read before them.
    pub fn finish(&mut self, pool: &Pool) {
        self.close_range();
        if self.own.is_empty() {
            return;
        }
        // In the order in which they were made, for each leaf.
        self.own.sort_by_key(|own| own.leaf);
        for leaf_read in &mut self.leaves {
            if pool.has_content(leaf_read.leaf, leaf_read.version) {
                continue;
            }
            let first = self.own.partition_point(|own| own.leaf < leaf_read.leaf);
            for change in self.own.iter().skip(first).take_while(|own| own.leaf == leaf_read.leaf) {
                if change.before == leaf_read.version {
                    leaf_read.version = change.after;
                }
            }
        }
        self.own.clear();
    }

    /// How many looks have to be read again: their leaf has changed, or a transaction that had not
    /// finished has committed.
    pub fn count_stale(&self, pool: &Pool) -> usize {
        let stale = |leaf_read: &&LeafRead| !pool.has_content(leaf_read.leaf, leaf_read.version);
        let committed = |(writer, _): &&(Arc<TransactionRecord>, PageId)| {
            matches!(writer.state(), TransactionState::Committed(_))
        };
        self.leaves.iter().filter(stale).count() + self.unfinished.iter().filter(committed).count()
    }

    /// Takes the looks out that have to be read again.
    pub fn take_stale(&mut self, pool: &Pool) -> Vec<LeafRead> {
        let mut committed = Vec::new();
        self.unfinished.retain(|(writer, leaf)| match writer.state() {
            TransactionState::Active => true,
            TransactionState::Aborted => false,
            TransactionState::Committed(_) => {
                committed.push(*leaf);
                false
            }
        });
        let is_stale = |leaf_read: &mut LeafRead| {
            !pool.has_content(leaf_read.leaf, leaf_read.version)
                || committed.contains(&leaf_read.leaf)
        };
        self.leaves.extract_if(.., is_stale).collect()
    }

    /// Notes that a point was read again in that leaf.
    pub fn update_point(&mut self, number: u32, leaf: PageId, version: u64) {
        match self.leaves.last_mut() {
            Some(last)
                if (last.leaf, last.version) == (leaf, version)
                    && last.points.1 == number
                    && last.ranges.0 == last.ranges.1 =>
            {
                last.points.1 += 1;
            }
            _ => {
                let points = (number, number + 1);
                self.leaves.push(LeafRead { leaf, version, points, ranges: (0, 0) });
            }
        }
    }

    /// Notes that a range, or a part of one, was read again in that leaf.
    pub fn update_range(
        &mut self,
        tree: Tree,
        low: &[u8],
        high: Bound<&[u8]>,
        leaf: PageId,
        version: u64,
    ) {
        self.begin_look(leaf, version);
        self.add_range(tree, low, high);
    }

    /// Notes transactions that had changed something in that leaf and had not finished.
    pub fn add_unfinished(&mut self, leaf: PageId, writers: &mut Vec<Arc<TransactionRecord>>) {
        for writer in writers.drain(..) {
            let is_known = |(known, at): &(Arc<TransactionRecord>, PageId)| {
                Arc::ptr_eq(known, &writer) && *at == leaf
            };
            if !self.unfinished.last().is_some_and(is_known) {
                self.unfinished.push((writer, leaf));
            }
        }
    }
}

impl OpenRange {
    /// Takes another range in, if the two meet or overlap.
    fn extend(&mut self, low: &[u8], high: Bound<&[u8]>) -> bool {
        // A cursor goes on where it stands.
        if self.end == End::With && low == &self.high[..] {
            if self.is_exceeded_by(high) {
                self.set_high(high);
            }
            return true;
        }
        let starts = compare_keys(low, &self.low);
        let meets_end = self.end == End::Never || compare_keys(low, &self.high).is_le();
        if starts.is_ge() && meets_end {
            if self.is_exceeded_by(high) {
                self.set_high(high);
            }
            return true;
        }
        let meets_low = match high {
            Bound::Included(key) | Bound::Excluded(key) => compare_keys(key, &self.low).is_ge(),
            Bound::Unbounded => true,
        };
        if starts.is_le() && meets_low {
            if self.is_exceeded_by(high) {
                self.set_high(high);
            }
            low.clone_into(&mut self.low);
            return true;
        }
        false
    }

    /// Whether a range with that end goes further.
    fn is_exceeded_by(&self, high: Bound<&[u8]>) -> bool {
        let (key, is_included) = match high {
            _ if self.end == End::Never => return false,
            Bound::Unbounded => return true,
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        match compare_keys(key, &self.high) {
            Ordering::Greater => true,
            Ordering::Equal => is_included && self.end == End::Before,
            Ordering::Less => false,
        }
    }

    fn set_high(&mut self, high: Bound<&[u8]>) {
        self.end = match high {
            Bound::Included(_) => End::With,
            Bound::Excluded(_) => End::Before,
            Bound::Unbounded => End::Never,
        };
        if let Bound::Included(key) | Bound::Excluded(key) = high {
            key.clone_into(&mut self.high);
        }
    }
}
