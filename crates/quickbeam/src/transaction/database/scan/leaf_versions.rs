//! Leaves that a scan has read, by page and content version, and scans that pass over them.
//!
//! Above: query layers that keep what they made of a range's records, such as decoded columns.
//! Below: content versions of pages. A page's content version counts its changes, survives eviction
//! and is not reused when the page is freed (`buffer/page_entry.rs`). The number of a tree is not
//! reused either: what was kept of an emptied or dropped database is not taken for its successor.
//!
//! If every record of a leaf was visible to all ([`ScanBatch::is_settled`]), every transaction sees
//! the same records until the content version changes.
//!
//! - SKIP-1: the leaves of a [`LeafVersions`] follow each other: each one covers the keys from the
//!   end of the one before to its own end. They still do while no content version has changed,
//!   because fences are content.

use std::ops::Bound;

use super::{Scan, ScanBatch};
use crate::access::Direction;
use crate::access::btree::{SiblingHint, Tree};
use crate::error::Result;
use crate::page::PageId;
use crate::transaction::database::Database;
use crate::transaction::{DatabaseUse, ReadTransaction};

/// A leaf that a scan has read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadLeaf {
    pub tree: Tree,
    pub id: PageId,
    pub version: u64,
    pub records: usize,
}

/// Consecutive leaves that a scan has read whole, with their content versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafVersions {
    /// The tree of the leaves; `None` as long as there are no leaves.
    tree: Option<Tree>,
    low: Vec<u8>,
    /// Page, content version, and where the end of the leaf's range is in `ends`.
    leaves: Vec<(PageId, u64, usize)>,
    /// The ends of the leaves' ranges, one after another.
    ends: Vec<u8>,
    records: usize,
    /// The last leaf is the last one of the tree.
    is_last: bool,
}

impl LeafVersions {
    /// Begins with the leaf that the scan reads next. Returns false if the scan descends or stands
    /// within a leaf.
    pub fn begin(&mut self, scan: &Scan) -> bool {
        self.leaves.clear();
        self.ends.clear();
        self.low.clear();
        self.tree = None;
        (self.records, self.is_last) = (0, false);
        match scan.position() {
            Some(low) => {
                self.low.extend_from_slice(low);
                true
            }
            None => false,
        }
    }

    /// Adds the leaf that the scan has just read into the batch. Returns false, and adds nothing,
    /// if that was not one whole leaf, or the scan may have ended within it.
    pub fn add(&mut self, scan: &Scan, batch: &ScanBatch) -> bool {
        let Some(leaf) = batch.leaf else { return false };
        if self.tree.is_some_and(|tree| tree != leaf.tree) {
            return false;
        }
        match scan.position() {
            _ if scan.is_finished && scan.high != Bound::Unbounded => return false,
            _ if scan.is_finished => self.is_last = true,
            Some(end) => self.ends.extend_from_slice(end),
            None => return false,
        }
        self.tree = Some(leaf.tree);
        self.leaves.push((leaf.id, leaf.version, self.ends.len()));
        self.records += leaf.records;
        true
    }

    /// Returns the key at which the range begins; empty at the tree's first leaf.
    #[must_use]
    pub fn low(&self) -> &[u8] {
        &self.low
    }

    /// Returns the key at which the range ends; `None` at the end of the tree, or without leaves.
    #[must_use]
    pub fn end(&self) -> Option<&[u8]> {
        let &(.., end) = self.leaves.last().filter(|_| !self.is_last)?;
        let start = self.leaves.iter().rev().nth(1).map_or(0, |&(.., end)| end);
        self.ends.get(start..end)
    }

    /// Returns whether the range of the leaves covers a key.
    #[must_use]
    pub fn covers(&self, key: &[u8]) -> bool {
        !self.is_empty() && key >= self.low() && self.end().is_none_or(|end| key < end)
    }

    /// Returns whether the range of a scan does not end before that of the leaves.
    fn are_within(&self, high: &Bound<Vec<u8>>) -> bool {
        match high {
            Bound::Unbounded => true,
            Bound::Excluded(high) => self.end().is_some_and(|end| end <= &high[..]),
            Bound::Included(_) => false,
        }
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Returns whether there are no leaves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Returns the number of records in the leaves, deleted ones included.
    #[must_use]
    pub fn records(&self) -> usize {
        self.records
    }

    /// Returns the memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.low.capacity() + self.ends.capacity() + size_of_val(&self.leaves[..])
    }

    /// Returns whether each leaf ends after the one before, and only the last one has no end.
    fn are_adjacent(&self) -> bool {
        let mut low = self.low();
        let last = self.leaves.len().saturating_sub(1);
        self.ranges().enumerate().all(|(nth, (_, _, end))| {
            let is_after = end.map_or(nth == last, |end| end > low);
            low = end.unwrap_or_default();
            is_after
        })
    }

    /// The leaves with the ends of their ranges, the last one of a tree without an end.
    fn ranges(&self) -> impl Iterator<Item = (PageId, u64, Option<&[u8]>)> {
        let mut start = 0;
        let last = self.leaves.len().saturating_sub(1);
        self.leaves.iter().enumerate().map(move |(nth, &(page, version, end))| {
            let key = self.ends.get(start..end).unwrap_or_default();
            start = end;
            (page, version, (nth < last || !self.is_last).then_some(key))
        })
    }
}

impl Scan {
    /// Returns the key at which an ascending scan goes on, empty at the beginning of the tree.
    /// Returns `None` if it stands within a leaf or at its end, or descends.
    #[must_use]
    pub fn position(&self) -> Option<&[u8]> {
        if self.is_finished {
            return None;
        }
        match (&self.low, &self.high, self.direction) {
            (Bound::Unbounded, _, Direction::Forward) => Some(&[]),
            (Bound::Included(low), Bound::Excluded(high), _) if low >= high => None,
            (Bound::Included(key), _, Direction::Forward) => Some(key),
            _ => None,
        }
    }

    /// Filters out nothing as long as `is_on`; the ranges of
    /// [`filter_ints`](Self::filter_ints) are kept.
    pub fn read_all(&mut self, is_on: bool) {
        if is_on == self.paused_ranges.is_empty() {
            std::mem::swap(&mut self.ranges, &mut self.paused_ranges);
        }
    }
}

impl Database {
    /// See `query_layer::DatabaseExt::are_unchanged`.
    pub(crate) fn are_unchanged(
        &self,
        transaction: &impl ReadTransaction,
        leaves: &LeafVersions,
    ) -> Result<bool> {
        let tree = self.tree(transaction.as_transaction(), DatabaseUse::Read)?;
        let pool = &transaction.as_transaction().engine().pool;
        let is_unchanged = |page, version| pool.has_content(page, version);
        Ok(leaves.tree == Some(tree)
            && leaves.leaves.iter().all(|(page, version, _)| is_unchanged(*page, *version)))
    }

    /// See `query_layer::DatabaseExt::skip_unchanged`.
    pub(crate) fn skip_unchanged(
        &self,
        transaction: &impl ReadTransaction,
        scan: &mut Scan,
        leaves: &LeafVersions,
    ) -> Result<bool> {
        let tree = self.tree(transaction.as_transaction(), DatabaseUse::Read)?;
        let is_next = !scan.is_finished
            && leaves.are_within(&scan.high)
            && leaves.tree == Some(tree)
            && scan.position() == Some(leaves.low());
        if !is_next || !self.are_unchanged(transaction, leaves)? {
            return Ok(false);
        }
        invariant!(SKIP_1, leaves.are_adjacent(), "leaves from {:?} leave keys out", leaves.low());
        let transaction = transaction.as_transaction();
        if transaction.tracks_reads() {
            let state = &mut *transaction.state.borrow_mut();
            let mut low = leaves.low();
            for (page, version, end) in leaves.ranges() {
                let high = end.map_or(Bound::Unbounded, Bound::Excluded);
                state.reads.range(tree, low, high, page, version);
                low = end.unwrap_or_default();
            }
        }
        scan.sibling_hint = SiblingHint::default();
        scan.resume = None;
        match leaves.ranges().last() {
            Some((_, _, Some(end))) => {
                scan.is_finished = matches!(&scan.high, Bound::Excluded(high) if high == end);
                super::assign(&mut scan.low, Bound::Included(end), &mut scan.boundary)
            }
            _ => scan.is_finished = true,
        }
        Ok(true)
    }
}
