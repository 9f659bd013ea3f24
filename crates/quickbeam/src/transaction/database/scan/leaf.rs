//! The steps of a scan: one leaf at a time, forwards and backwards.
//!
//! Above: `Database::scan` and cursors that read ahead. Below: leaves,
//! versions and the filter. The invariants SCAN-1 to SCAN-4 are those of the scan.

use std::cmp::Ordering;
use std::ops::Bound;

use super::batch::ScanBatch;
use super::leaf_versions::ReadLeaf;
use super::{Scan, memory_of};
use crate::access::Direction;
use crate::access::btree::{LeafSlot, SiblingHint, Tree};
use crate::access::overflow::{POINTER_BYTES, check_pointer, prefetch_chains, read_chain_start};
use crate::buffer::{Pool, ReadGuard, Tries};
use crate::error::Result;
use crate::invariant::CHECKS_INVARIANTS;
use crate::mvcc::{TransactionId, writer_of};
use crate::page::{HASH_BYTES, OVERFLOW, Page, TOMBSTONE};
use crate::transaction::database::leaf_filter::Candidate;
use crate::transaction::read::Visibility;
use crate::transaction::{State, Transaction};

/// Leaves read without finding a record before the caller is asked to call again.
const MAX_EMPTY_LEAVES: usize = 256;

/// Bytes of long values after which a batch ends.
const MAX_OVERFLOW_BYTES: usize = 64 << 10;

/// Moves an end of the remaining range to the boundary, which gets the replaced bound's buffer.
#[inline]
fn move_to_boundary(
    end: &mut Bound<Vec<u8>>,
    boundary: &mut Vec<u8>,
    bound: fn(Vec<u8>) -> Bound<Vec<u8>>,
) {
    let memory = memory_of(end);
    *end = bound(std::mem::replace(boundary, memory));
}

/// The result of scanning one leaf.
struct LeafScan {
    /// The scan ends within this leaf.
    is_finished: bool,
    /// The position of the last record, if the batch is full.
    stopped_at: Option<usize>,
    /// Records whose values are still missing: the snapshot sees the version below the committed
    /// change with this version word, or none.
    hidden: Vec<(usize, u64)>,
    /// No filtered record is in the ranges. For SCAN-3, evaluated in builds with checks.
    is_filtered_rightly: bool,
}

/// Where the range of an ascending scan begins in a leaf.
#[derive(Clone, Copy)]
enum RangeStart {
    /// Where the leaf does, unless the low bound is excluded.
    Leaf,
    /// Where a search for the low bound ended.
    Found(std::result::Result<usize, usize>),
    /// Not searched for yet.
    Unknown,
}

impl RangeStart {
    /// Returns the position of the first record in the range.
    #[inline]
    fn position(self, page: Page<'_>, low: &Bound<Vec<u8>>) -> usize {
        let search = |key| match self {
            RangeStart::Found(found) => found,
            RangeStart::Leaf | RangeStart::Unknown => page.search(key),
        };
        match low {
            Bound::Unbounded => 0,
            Bound::Included(_) if matches!(self, RangeStart::Leaf) => 0,
            Bound::Included(key) => search(key).unwrap_or_else(|at| at),
            Bound::Excluded(key) => search(key).map_or_else(|at| at, |at| at + 1),
        }
    }
}

/// Returns the key of a bound; an empty one of no bound.
#[inline]
fn key_of(bound: &Bound<Vec<u8>>) -> &[u8] {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
}

/// Finds the leaf in which an ascending scan goes on.
#[inline]
fn first_leaf<'p>(
    pool: &'p Pool,
    tree: Tree,
    scan: &mut Scan,
    state: &mut State,
) -> Result<(ReadGuard<'p>, RangeStart)> {
    let low = key_of(&scan.low);
    if scan.is_hash_prefix {
        let (guard, found) = tree.locate(pool, low, state.leaf_hints.of(tree))?;
        return Ok((guard, RangeStart::Found(found)));
    }
    if let Some((guard, slot)) = resume(pool, tree, &mut scan.resume, &mut scan.sibling_hint) {
        return Ok((guard, RangeStart::Found(Ok(slot))));
    }
    let (guard, starts) = tree.leaf_after(pool, low, &mut scan.sibling_hint)?;
    Ok((guard, if starts { RangeStart::Leaf } else { RangeStart::Unknown }))
}

/// Returns the position of the first record after the range of an ascending scan, or `usize::MAX`
/// if the range does not end in the leaf.
#[inline]
fn end_in_leaf(page: Page<'_>, high: &Bound<Vec<u8>>) -> usize {
    match high {
        Bound::Included(key) if page.covers(key) => {
            page.search(key).map_or_else(|at| at, |at| at + 1)
        }
        Bound::Excluded(key) if page.covers(key) => page.search(key).unwrap_or_else(|at| at),
        Bound::Included(key) | Bound::Excluded(key) if is_below(page, key) => 0,
        _ => usize::MAX,
    }
}

/// Finds the leaf in which a descending scan goes on, with the slot after its next record if the
/// scan stopped in that leaf.
#[inline]
fn last_leaf<'p>(
    pool: &'p Pool,
    tree: Tree,
    scan: &mut Scan,
) -> Result<(ReadGuard<'p>, Option<usize>)> {
    let hint = &mut scan.sibling_hint;
    if let Some((guard, slot)) = resume(pool, tree, &mut scan.resume, hint) {
        return Ok((guard, Some(slot)));
    }
    let guard = match &scan.high {
        Bound::Included(key) => tree.leaf(pool, key)?,
        Bound::Excluded(key) => tree.leaf_before(pool, Some(key), hint)?,
        Bound::Unbounded => tree.leaf_before(pool, None, hint)?,
    };
    Ok((guard, None))
}

/// Returns the position after the first record that a descending scan reads in a leaf.
#[inline]
fn end_of_descent(page: Page<'_>, high: &Bound<Vec<u8>>) -> usize {
    match high {
        Bound::Included(key) | Bound::Excluded(key) if !page.covers(key) => page.count(),
        Bound::Included(key) => page.search(key).map_or_else(|at| at, |at| at + 1),
        Bound::Excluded(key) => page.search(key).unwrap_or_else(|at| at),
        Bound::Unbounded => page.count(),
    }
}

/// Returns the position of the last record that a descending scan reads in a leaf with that lower
/// fence, and true if the range ends there.
#[inline]
fn begin_of_descent(
    page: Page<'_>,
    low: &Bound<Vec<u8>>,
    fence: &[u8],
    end: usize,
) -> (usize, bool) {
    match low {
        Bound::Included(key) | Bound::Excluded(key) if key[..] < *fence => (0, fence.is_empty()),
        // The range is empty: it begins beyond the leaf in which it ends.
        Bound::Included(key) | Bound::Excluded(key) if !page.covers(key) => (end, true),
        Bound::Included(key) => (page.search(key).unwrap_or_else(|at| at), true),
        Bound::Excluded(key) => (page.search(key).map_or_else(|at| at, |at| at + 1), true),
        Bound::Unbounded => (0, fence.is_empty()),
    }
}

impl Transaction {
    /// Reads leaves until a batch has a record. Returns false at the end of the scan. Calls
    /// `read_one` after each leaf.
    pub(in crate::transaction) fn scan_next(
        &self,
        tree: Tree,
        scan: &mut Scan,
        batch: &mut ScanBatch,
        read_one: &mut dyn FnMut(),
    ) -> Result<bool> {
        let mut leaves = 0;
        loop {
            batch.clear();
            if scan.is_finished {
                return Ok(false);
            }
            leaves += 1;
            if leaves > MAX_EMPTY_LEAVES && !scan.ranges.is_empty() {
                return Ok(true);
            }
            let scanned = match scan.direction {
                Direction::Backward => self.scan_leaf_backward(tree, scan, batch),
                Direction::Forward => self.scan_leaf_forward(tree, scan, batch),
            };
            self.unless_expired(scanned)?;
            read_one();
            invariant!(SCAN_1, scan.is_in_order(batch), "the keys of a batch are not in order");
            invariant!(SCAN_2, scan.is_past(batch), "the rest of a scan contains the last key");
            if !batch.is_empty() || scan.is_by_leaf {
                return Ok(true);
            }
        }
    }

    /// Reads the next leaf of an ascending scan.
    fn scan_leaf_forward(&self, tree: Tree, scan: &mut Scan, batch: &mut ScanBatch) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        invariant!(
            TXN_1,
            self.is_snapshot_kept(state),
            "no slot keeps snapshot {}",
            state.snapshot
        );
        let pool = &self.engine().pool;
        let mut tries = Tries::default();
        loop {
            let (guard, start) = first_leaf(pool, tree, scan, state)?;
            let Some(attempt) = tries.begin(guard) else { continue };
            let page = guard.page;
            let end = end_in_leaf(page, &scan.high);
            let positions = start.position(page, &scan.low)..end.min(page.count());
            if end == usize::MAX && positions.len() < scan.record_limit {
                tree.prefetch_sibling(pool, &scan.sibling_hint, Direction::Forward, page.count());
            }
            let is_bounded = end != usize::MAX || page.is_open_end();
            let records = page.count();
            let is_whole = positions.len() == records;
            let Some(mut step) = self.collect(state, page, positions, is_bounded, scan, batch)?
            else {
                continue;
            };
            scan.boundary.clear();
            let goes_on = match step.stopped_at {
                Some(position) => {
                    page.append_key(position, &mut scan.boundary);
                    true
                }
                None => page.append_upper_fence(&mut scan.boundary),
            };
            if !attempt.validate() || !self.complete_hidden(state, scan, batch, &mut step)? {
                continue;
            }
            let is_read = is_whole && step.stopped_at.is_none();
            let version = guard.content_version();
            batch.leaf = is_read.then_some(ReadLeaf { tree, id: guard.id, version, records });
            self.leave_forward(state, tree, &guard, scan, &step, goes_on)?;
            return self.read_overflow_values(batch);
        }
    }

    /// Records what an ascending scan read of a leaf, and moves the scan's low bound beyond it.
    #[inline]
    fn leave_forward(
        &self,
        state: &mut State,
        tree: Tree,
        guard: &ReadGuard<'_>,
        scan: &mut Scan,
        step: &LeafScan,
        goes_on: bool,
    ) -> Result<()> {
        let is_stopped = step.stopped_at.is_some();
        scan.resume = step.stopped_at.map(|slot| LeafSlot::of(guard, slot));
        let low = key_of(&scan.low);
        if self.tracks_reads() {
            let high = if is_stopped {
                Bound::Included(&scan.boundary[..])
            } else if goes_on && !step.is_finished {
                Bound::Excluded(&scan.boundary[..])
            } else {
                as_slice(&scan.high)
            };
            state.reads.range(tree, low, high, guard.id, guard.content_version());
        }
        scan.is_finished = step.is_finished && !is_stopped;
        if is_stopped {
            if matches!(scan.low, Bound::Excluded(_)) {
                tree.check_progress(guard.id, &scan.boundary, Ordering::Greater, low)?;
            }
            move_to_boundary(&mut scan.low, &mut scan.boundary, Bound::Excluded);
        } else if goes_on {
            tree.check_forward(guard.id, low, &scan.boundary)?;
            move_to_boundary(&mut scan.low, &mut scan.boundary, Bound::Included);
        }
        Ok(())
    }

    /// Reads the next leaf of a descending scan.
    fn scan_leaf_backward(&self, tree: Tree, scan: &mut Scan, batch: &mut ScanBatch) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        invariant!(
            TXN_1,
            self.is_snapshot_kept(state),
            "no slot keeps snapshot {}",
            state.snapshot
        );
        let pool = &self.engine().pool;
        let mut tries = Tries::default();
        // Before a leaf's first record the scan goes to another leaf in any case.
        scan.resume = scan.resume.filter(|last| last.slot > 0);
        loop {
            let (guard, slot) = last_leaf(pool, tree, scan)?;
            let Some(attempt) = tries.begin(guard) else { continue };
            let page = guard.page;
            let end = slot.unwrap_or_else(|| end_of_descent(page, &scan.high));
            scan.boundary.clear();
            page.append_lower_fence(&mut scan.boundary);
            let (first, is_bounded) = begin_of_descent(page, &scan.low, &scan.boundary, end);
            let positions = (first..end.min(page.count())).rev();
            if first == 0 && positions.len() < scan.record_limit {
                tree.prefetch_sibling(pool, &scan.sibling_hint, Direction::Backward, page.count());
            }
            let Some(mut step) = self.collect(state, page, positions, is_bounded, scan, batch)?
            else {
                continue;
            };
            if let Some(position) = step.stopped_at {
                scan.boundary.clear();
                page.append_key(position, &mut scan.boundary);
            }
            if !attempt.validate() || !self.complete_hidden(state, scan, batch, &mut step)? {
                continue;
            }
            self.leave_backward(state, tree, &guard, scan, &step)?;
            return self.read_overflow_values(batch);
        }
    }

    /// Records what a descending scan read of a leaf, and moves the scan's high bound below it.
    #[inline]
    fn leave_backward(
        &self,
        state: &mut State,
        tree: Tree,
        guard: &ReadGuard<'_>,
        scan: &mut Scan,
        step: &LeafScan,
    ) -> Result<()> {
        let is_stopped = step.stopped_at.is_some();
        scan.resume = step.stopped_at.map(|slot| LeafSlot::of(guard, slot));
        if self.tracks_reads() {
            let low: &[u8] = match &scan.low {
                Bound::Included(key) | Bound::Excluded(key) if step.is_finished && !is_stopped => {
                    key
                }
                _ => &scan.boundary,
            };
            let high = as_slice(&scan.high);
            state.reads.range(tree, low, high, guard.id, guard.content_version());
        }
        scan.is_finished = step.is_finished && !is_stopped;
        if is_stopped {
            if let Bound::Excluded(high) = &scan.high {
                tree.check_progress(guard.id, &scan.boundary, Ordering::Less, high)?;
            }
        } else if !scan.is_finished {
            let from = match &scan.high {
                Bound::Included(key) => Some((&key[..], true)),
                Bound::Excluded(key) => Some((&key[..], false)),
                Bound::Unbounded => None,
            };
            tree.check_backward(guard.id, from, &scan.boundary)?;
        }
        if !scan.is_finished {
            move_to_boundary(&mut scan.high, &mut scan.boundary, Bound::Excluded);
        }
        Ok(())
    }

    /// Puts the visible records at those positions into the batch, after the filter. Returns `None`
    /// if the leaf must be read again.
    fn collect(
        &self,
        state: &mut State,
        page: Page<'_>,
        positions: impl ExactSizeIterator<Item = usize> + Clone,
        is_bounded: bool,
        scan: &Scan,
        batch: &mut ScanBatch,
    ) -> Result<Option<LeafScan>> {
        batch.clear();
        // Loaded once: a version that is visible to all stays so.
        let horizon = self.engine().transactions.horizon();
        let mut step = LeafScan {
            is_finished: is_bounded,
            stopped_at: None,
            hidden: Vec::new(),
            is_filtered_rightly: true,
        };
        if scan.fields.is_none() && scan.ranges.is_empty() {
            let all =
                positions.map(|position| Candidate { position: position as u32, exact: true });
            return self.copy(state, page, all, horizon, scan, (step, batch));
        }
        let mut filter = std::mem::take(&mut batch.filter);
        let fields = scan.fields.as_deref().unwrap_or_default();
        batch.columns.resize_with(fields.len(), Vec::new);
        let wanted = (scan.tag, &scan.ranges[..], fields);
        let examined = CHECKS_INVARIANTS.then(|| positions.clone());
        let all_exact = filter.run(page, positions, horizon, wanted, &mut batch.columns);
        if let Some(examined) = examined {
            step.is_filtered_rightly = filter.is_right(page, examined, scan.tag, &scan.ranges);
        }
        let is_projected = all_exact && scan.fields.is_some() && scan.record_limit == usize::MAX;
        // Most leaves of a selective scan have no record to copy.
        let step = if is_projected || filter.candidates.is_empty() {
            batch.rows = filter.candidates.len();
            invariant!(
                SCAN_4,
                batch.columns.iter().all(|column| column.len() == batch.rows),
                "{} rows of numbers, columns of another length",
                batch.rows
            );
            Ok(Some(step))
        } else {
            batch.columns.iter_mut().for_each(Vec::clear);
            self.copy(state, page, filter.candidates.iter().copied(), horizon, scan, (step, batch))
        };
        batch.filter = filter;
        step
    }

    /// Copies the visible versions of those records into the batch. Returns `None` if the leaf must
    /// be read again.
    fn copy(
        &self,
        state: &mut State,
        page: Page<'_>,
        records: impl ExactSizeIterator<Item = Candidate>,
        horizon: TransactionId,
        scan: &Scan,
        (mut step, batch): (LeafScan, &mut ScanBatch),
    ) -> Result<Option<LeafScan>> {
        // If most records are wanted, the record area of the page is copied at once.
        let wanted = records.len().min(scan.record_limit);
        let most = scan.ranges.is_empty()
            && scan.value_limit >= page.size()
            && wanted >= page.count().div_ceil(3);
        let skipped = if scan.is_hashed { HASH_BYTES } else { 0 };
        let leaf = batch.records.begin(page, scan.keys.then_some(skipped), most);
        let mut long_bytes = 0;
        for Candidate { position, exact } in records {
            let position = position as usize;
            let slot = page.slot(position);
            let (version, length) = leaf.record(slot);
            let flags = slot.flags();
            if flags & TOMBSTONE == 0 && writer_of(version) < horizon {
                batch.inexact |= !exact || flags != 0;
                // The pointer to an overflow chain is needed whole.
                let long = flags & OVERFLOW != 0;
                let limit = if long { POINTER_BYTES } else { scan.value_limit };
                batch.records.take(&leaf, slot, length.min(limit));
                if long {
                    long_bytes += batch.add_long();
                }
            } else {
                (batch.inexact, batch.unsettled) = (true, true);
                batch.spare.clear();
                let visibility = self.append_visible_prefix(
                    state,
                    page,
                    position,
                    scan.value_limit,
                    &mut batch.spare,
                )?;
                let record = batch.records.len();
                match visibility {
                    Visibility::Again => return Ok(None),
                    Visibility::Nothing => continue,
                    Visibility::Hidden(version) => step.hidden.push((record, version)),
                    Visibility::Record(_) => {}
                }
                batch.spare_key.clear();
                if scan.keys {
                    page.append_key(position, &mut batch.spare_key);
                }
                let key = batch.spare_key.get(skipped..).unwrap_or_default();
                batch.records.add(key, &batch.spare);
                if matches!(visibility, Visibility::Record(flags) if flags & OVERFLOW != 0) {
                    long_bytes += batch.add_long();
                }
            }
            if batch.records.len() >= scan.record_limit || long_bytes >= MAX_OVERFLOW_BYTES {
                step.stopped_at = Some(position);
                break;
            }
        }
        Ok(Some(step))
    }

    /// Completes a batch, after its leaf was validated, with the versions below committed changes
    /// that the snapshot does not include. Returns false if the leaf must be read again.
    fn complete_hidden(
        &self,
        state: &State,
        scan: &Scan,
        batch: &mut ScanBatch,
        step: &mut LeafScan,
    ) -> Result<bool> {
        invariant!(SCAN_3, step.is_filtered_rightly, "a filtered record is in the ranges");
        // Backwards, because removing a record moves the records after it.
        for &(record, version) in step.hidden.iter().rev() {
            let mut value = std::mem::take(&mut batch.spare);
            value.clear();
            match self.append_version_before(state, version, &mut value)? {
                Visibility::Record(flags) => {
                    if flags & OVERFLOW != 0 {
                        batch.long.push(record);
                    } else {
                        value.truncate(scan.value_limit);
                    }
                    batch.records.replace_value(record, value.len()).copy_from_slice(&value);
                }
                Visibility::Nothing => {
                    batch.records.remove(record);
                    batch
                        .long
                        .iter_mut()
                        .filter(|long| **long > record)
                        .for_each(|long| *long -= 1);
                }
                Visibility::Hidden(_) | Visibility::Again => return Ok(false),
            }
            batch.spare = value;
        }
        Ok(true)
    }

    /// Replaces pointers to overflow chains by the values.
    fn read_overflow_values(&self, batch: &mut ScanBatch) -> Result<()> {
        let pool = &self.engine().pool;
        prefetch_chains(pool, &batch.records, &batch.long);
        for &record in &batch.long {
            let (first, length) = check_pointer(pool, batch.records.value(record))?;
            let value = batch.records.replace_value(record, length);
            read_chain_start(pool, first, length, value)?;
        }
        Ok(())
    }
}

/// Returns the leaf in which the scan goes on and the slot of the last record delivered, if the
/// leaf has not changed since. Otherwise the scan must search from the root.
#[inline]
fn resume<'p>(
    pool: &'p Pool,
    tree: Tree,
    last: &mut Option<LeafSlot>,
    hint: &mut SiblingHint,
) -> Option<(ReadGuard<'p>, usize)> {
    let found = last.take()?.unchanged(pool, tree);
    if found.is_none() {
        *hint = SiblingHint::default();
    }
    found
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Whether every key of the leaf is greater than `key`.
fn is_below(page: Page<'_>, key: &[u8]) -> bool {
    key < &page.lower_fence_bytes()[..]
}
