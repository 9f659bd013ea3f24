//! The records of one leaf that a scan delivered.
//!
//! Above: readers of scans. Below: copies of records.

use super::leaf_versions::ReadLeaf;
use crate::access::overflow::decode_pointer;
use crate::page::RecordBatch;
use crate::transaction::database::leaf_filter::LeafFilter;

/// The records that one step of a scan delivered. Reuse it to reuse its buffers.
#[derive(Clone, Debug, Default)]
pub struct ScanBatch {
    pub(super) records: RecordBatch,
    /// Key and value of a recently changed record, before they are appended to the others.
    pub(super) spare_key: Vec<u8>,
    pub(super) spare: Vec<u8>,
    /// Records whose value is in an overflow chain.
    pub(super) long: Vec<usize>,
    /// Some record may be outside a range of the scan.
    pub(super) inexact: bool,
    /// The filter of the scan, whose buffers are reused.
    pub(super) filter: LeafFilter,
    /// Number of rows of projected integers.
    pub(super) rows: usize,
    pub(super) columns: Vec<Vec<i64>>,
    /// The leaf, if the batch is of all its records.
    pub(super) leaf: Option<ReadLeaf>,
    /// Some record was not visible to all.
    pub(super) unsettled: bool,
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

    /// Returns the number of rows of projected integers. If there are any, there is no record.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns a projected field of every row.
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

    /// Returns whether every record is known to be inside every range of the scan.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.inexact
    }

    /// Returns whether every record of the leaf that was looked at is visible to all: every
    /// transaction sees it (SKIP-2).
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.unsettled
    }

    /// Removes every record.
    pub fn clear(&mut self) {
        self.records.clear();
        self.long.clear();
        self.inexact = false;
        self.unsettled = false;
        self.leaf = None;
        self.rows = 0;
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

impl ScanBatch {
    /// Marks the last record as long. Returns the bytes of its value that will be read.
    pub(super) fn add_long(&mut self) -> usize {
        let record = self.records.len().saturating_sub(1);
        self.long.push(record);
        decode_pointer(self.records.value(record)).map_or(0, |(_, length)| length)
    }
}
