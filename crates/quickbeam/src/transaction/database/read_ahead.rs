//! Records that a cursor has read ahead.
//!
//! Above: cursors of read-only transactions. Below: [`Scan`], which reads a leaf at a time.
//!
//! - AHEAD-1: records are read ahead only for a transaction that cannot change anything and whose
//!   snapshot stays, so what was read is what it would see at any later time.

use std::ops::Bound;

use super::scan::{Scan, ScanBatch};
use crate::access::Direction;
use crate::access::btree::{LeafSlot, SiblingHint, Tree};
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::transaction::Transaction;

/// Records of the first batch after a search. A cursor that moves further gets whole leaves.
const FIRST_RECORDS: usize = 8;

/// The records around a cursor's current one, in the direction in which it moves.
#[derive(Default)]
pub struct ReadAhead {
    scan: Option<Box<Scan>>,
    batch: ScanBatch,
    /// The current record, while the cursor is among these records.
    at: Option<usize>,
    direction: Direction,
}

impl ReadAhead {
    /// Leaves the records: the cursor is elsewhere.
    #[inline]
    pub fn stop(&mut self) {
        self.at = None;
    }

    /// Returns key and value of the current record, if it is among these records.
    #[inline]
    pub fn current(&self) -> Option<(&[u8], &[u8])> {
        self.at.map(|at| (self.batch.key(at), self.batch.value(at)))
    }

    /// Moves to the next record in that direction, if it has been read.
    #[inline]
    pub fn step(&mut self, direction: Direction) -> bool {
        let next = self.at.map_or(usize::MAX, |at| at + 1);
        let has_it = direction == self.direction && next < self.batch.len();
        if has_it {
            self.at = Some(next);
        }
        has_it
    }

    /// Reads the records after `key`, the current one, or before it. `place` is that record's, if
    /// it is not among the records read ahead. Returns false, leaving the records, if there are
    /// none.
    pub fn read(
        &mut self,
        transaction: &Transaction,
        tree: Tree,
        (key, place): (&[u8], Option<(LeafSlot, SiblingHint)>),
        direction: Direction,
    ) -> Result<bool> {
        invariant!(
            AHEAD_1,
            transaction.is_read_only() || planted(Canary::ReadAheadOfChanges),
            "a cursor of a transaction with changes reads ahead"
        );
        let scan = self
            .scan
            .get_or_insert_with(|| Box::new(Scan::new(Bound::Unbounded, Bound::Unbounded)));
        if self.at.is_some() && self.direction == direction {
            scan.set_record_limit(usize::MAX);
        } else {
            let (slot, hint) = place.unzip();
            scan.restart_beside(key, direction, (slot, hint.unwrap_or_default()));
            scan.set_record_limit(FIRST_RECORDS);
        }
        self.direction = direction;
        self.at = None;
        let found = transaction.scan_next(tree, scan, &mut self.batch, &mut || ())?;
        self.at = found.then_some(0);
        Ok(found)
    }
}
