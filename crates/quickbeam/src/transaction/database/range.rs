//! Iterators over the records of a range, from either end.
//!
//! Above: the user. Below: [`Scan`], which reads a leaf at a time. Each end has its own scan, which
//! starts when the caller takes the first record from that end.
//!
//! - RANGE-1: no record is delivered from both ends: an end stops at the other end's last key.

use std::ops::{Bound, RangeBounds};

use super::scan::{Scan, ScanBatch};
use super::{Database, ReadTransaction};
use crate::access::Direction;
use crate::error::{Error, Result};
use crate::transaction::Transaction;

/// A record's key and value.
pub type Record = (Vec<u8>, Vec<u8>);

/// An iterator over records in key order, from [`Database::range`], [`Database::prefix`] or
/// [`Database::iter`]. It ends after an error.
pub struct Range<'t> {
    database: Database,
    transaction: &'t Transaction,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    front: Option<RangeEnd>,
    back: Option<RangeEnd>,
    finished: bool,
}

/// One end of a range: its scan and the current batch.
struct RangeEnd {
    scan: Scan,
    batch: ScanBatch,
    /// Number of records of the batch delivered so far.
    delivered: usize,
}

impl RangeEnd {
    fn new(scan: Scan) -> RangeEnd {
        RangeEnd { scan, batch: ScanBatch::default(), delivered: 0 }
    }

    /// Returns the last key delivered.
    fn last_key(&self) -> Option<&[u8]> {
        self.delivered.checked_sub(1).map(|last| self.batch.key(last))
    }

    /// Moves to the next record and returns its place in the batch; `None` at the end.
    #[inline]
    fn advance(&mut self, database: &Database, transaction: &Transaction) -> Result<Option<usize>> {
        if self.delivered == self.batch.len() {
            if !database.scan(transaction, &mut self.scan, &mut self.batch)? {
                return Ok(None);
            }
            self.delivered = 0;
        }
        self.delivered += 1;
        Ok(Some(self.delivered - 1))
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn to_owned<K: AsRef<[u8]>>(bound: Bound<&K>) -> Bound<Vec<u8>> {
    bound.map(|key| key.as_ref().to_vec())
}

/// Returns the least key greater than every key with the prefix.
fn after_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    match prefix.iter().rposition(|&byte| byte != u8::MAX) {
        Some(last) => {
            let mut after = prefix[..=last].to_vec();
            after[last] += 1;
            Bound::Excluded(after)
        }
        None => Bound::Unbounded,
    }
}

impl Database {
    /// Returns the records whose keys lie in `bounds`, in ascending order; `rev()` reverses the
    /// order. In a hash database, which has no order, the first record is an [`Error::Misuse`].
    ///
    /// ```
    /// # fn main() -> quickbeam::Result<()> {
    /// # let environment = quickbeam::Environment::open_in_memory(quickbeam::Options::default())?;
    /// let fruit = environment.create_database("fruit")?;
    /// let transaction = environment.begin()?;
    /// for (name, colour) in [("apple", "red"), ("banana", "yellow"), ("cherry", "red")] {
    ///     fruit.put(&transaction, name.as_bytes(), colour.as_bytes())?;
    /// }
    /// let mut names = Vec::new();
    /// for record in fruit.range(&transaction, "b"..).rev() {
    ///     let (name, _colour) = record?;
    ///     names.push(String::from_utf8_lossy(&name).into_owned());
    /// }
    /// assert_eq!(names, ["cherry", "banana"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range<'t, K: AsRef<[u8]>>(
        &self,
        transaction: &'t impl ReadTransaction,
        bounds: impl RangeBounds<K>,
    ) -> Range<'t> {
        let transaction = transaction.as_transaction();
        self.between(transaction, to_owned(bounds.start_bound()), to_owned(bounds.end_bound()))
    }

    /// Returns the records whose keys begin with `prefix`, in ascending order.
    pub fn prefix<'t>(
        &self,
        transaction: &'t impl ReadTransaction,
        prefix: impl AsRef<[u8]>,
    ) -> Range<'t> {
        let (transaction, prefix) = (transaction.as_transaction(), prefix.as_ref());
        self.between(transaction, Bound::Included(prefix.to_vec()), after_prefix(prefix))
    }

    /// Returns all records in ascending order. A hash database has an arbitrary order and no
    /// `rev()`.
    pub fn iter<'t>(&self, transaction: &'t impl ReadTransaction) -> Range<'t> {
        self.between(transaction.as_transaction(), Bound::Unbounded, Bound::Unbounded)
    }

    fn between<'t>(
        &self,
        transaction: &'t Transaction,
        low: Bound<Vec<u8>>,
        high: Bound<Vec<u8>>,
    ) -> Range<'t> {
        Range {
            database: self.clone(),
            transaction,
            low,
            high,
            front: None,
            back: None,
            finished: false,
        }
    }
}

impl Range<'_> {
    /// Moves one end on. Returns the next record's place in its batch, or `None` if the other end
    /// delivered it (RANGE-1).
    fn take(&mut self, direction: Direction) -> Result<Option<usize>> {
        if direction == Direction::Backward && !self.database.access_method().is_ordered() {
            return Err(Error::misuse("a hash database has no order to read it backwards in"));
        }
        let (low, high) = (as_slice(&self.low), as_slice(&self.high));
        let (end, other) = match direction {
            Direction::Forward => {
                (self.front.get_or_insert_with(|| RangeEnd::new(Scan::new(low, high))), &self.back)
            }
            Direction::Backward => {
                let scan = || RangeEnd::new(Scan::new(low, high).backward());
                (self.back.get_or_insert_with(scan), &self.front)
            }
        };
        let Some(at) = end.advance(&self.database, self.transaction)? else { return Ok(None) };
        let key = end.batch.key(at);
        let is_met =
            |last: &[u8]| if direction == Direction::Backward { key <= last } else { key >= last };
        if other.as_ref().and_then(RangeEnd::last_key).is_some_and(is_met) {
            return Ok(None);
        }
        invariant!(
            RANGE_1,
            match (&self.front, &self.back) {
                (Some(front), Some(back)) if front.delivered > 0 && back.delivered > 0 => {
                    front.last_key() < back.last_key()
                }
                _ => true,
            },
            "both ends of a range deliver the key {:?}",
            self.front.as_ref().and_then(RangeEnd::last_key)
        );
        Ok(Some(at))
    }

    /// Moves one end on within its batch. Returns `None` if the batch is exhausted, or the other
    /// end has delivered records.
    #[inline]
    fn take_from_batch(&mut self, direction: Direction) -> Option<usize> {
        let end = match (direction, &mut self.front, &mut self.back) {
            _ if self.finished => return None,
            (Direction::Forward, Some(front), None) => front,
            (Direction::Backward, None, Some(back)) => back,
            _ => return None,
        };
        let at = end.delivered;
        (at < end.batch.len()).then(|| {
            end.delivered += 1;
            at
        })
    }

    /// Moves one end on to its next record; `None` at the end, and ever after.
    #[inline]
    fn step(&mut self, direction: Direction) -> Result<Option<(&[u8], &[u8])>> {
        let taken = match self.take_from_batch(direction) {
            Some(at) => Some(at),
            None if self.finished => None,
            None => {
                let taken = self.take(direction);
                self.finished = !matches!(taken, Ok(Some(_)));
                taken?
            }
        };
        let end = if direction == Direction::Backward { &self.back } else { &self.front };
        Ok(taken.zip(end.as_ref()).map(|(at, end)| (end.batch.key(at), end.batch.value(at))))
    }

    fn step_owned(&mut self, direction: Direction) -> Option<Result<Record>> {
        let owned = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        self.step(direction).map(|record| record.map(owned)).transpose()
    }

    /// Returns the next record, as [`next`](Iterator::next) does, without copying it.
    ///
    /// ```
    /// # fn main() -> quickbeam::Result<()> {
    /// # let environment = quickbeam::Environment::open_in_memory(quickbeam::Options::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # fruit.put(&transaction, b"apple", b"red")?;
    /// # fruit.put(&transaction, b"banana", b"yellow")?;
    /// let mut records = fruit.iter(&transaction);
    /// let mut letters = 0;
    /// while let Some((name, colour)) = records.next_borrowed()? {
    ///     letters += name.len() + colour.len();
    /// }
    /// assert_eq!(letters, 20);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn next_borrowed(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.step(Direction::Forward)
    }

    /// Returns the last record not yet returned, as [`next_back`](DoubleEndedIterator::next_back)
    /// does, without copying it.
    #[inline]
    pub fn next_back_borrowed(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.step(Direction::Backward)
    }
}

impl Iterator for Range<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        self.step_owned(Direction::Forward)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Result<Record>> {
        self.step_owned(Direction::Backward)
    }
}

impl std::iter::FusedIterator for Range<'_> {}
