//! Serializable validation: is every read unchanged at commit?
//!
//! The reads are remembered by leaf ([`ReadSet`]). A leaf whose content version is still the one
//! seen has not changed, and nothing in it is looked at. The keys and ranges read in other leaves
//! are looked up again, in rounds: each round looks only at leaves that changed since the one
//! before. A transaction without conflicts commits:
//!
//! - VALIDATE-1: rounds are made outside the commit's critical section while they leave less and
//!   less to do. The last one is made inside it, where no other transaction can commit, so it is
//!   final. It is empty or short unless writers change leaves faster than these can be looked at.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::read_set::{LeafRead, Point, ReadRange, ReadSet};
use super::{State, Transaction};
use crate::access::btree::LeafHint;
use crate::buffer::Tries;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::mvcc::{Found, TransactionRecord, TransactionState, entry_of, writer_of};
use crate::page::Page;

/// Leaves that are looked at again inside the critical section without another round outside it.
const MAX_FINAL_LEAVES: usize = 16;

impl Transaction {
    /// One round of validation: looks again at what changed since it was read, or since the last
    /// round. An error when something read has changed since the snapshot (TXN-4).
    pub(super) fn validate(&self, state: &mut State) -> Result<()> {
        if state.reads.is_empty() || planted(Canary::NotValidated) {
            return Ok(());
        }
        let engine = self.engine();
        let newest = engine.transactions.newest_commit.load(Ordering::SeqCst);
        state.reads.validated_at = Some(newest);
        state.reads.finish(&engine.pool);
        let stale = state.reads.take_stale(&engine.pool);
        if stale.is_empty() {
            return Ok(());
        }
        let mut reads = std::mem::take(&mut state.reads);
        let valid = self.revalidate(state, &mut reads, &stale);
        state.reads = reads;
        valid
    }

    /// Inside the commit's critical section: how much of what was read has to be looked at again
    /// because it changed since the last round.
    pub(super) fn count_stale(&self, state: &State) -> usize {
        if self.is_validated_at_newest_commit(state) || planted(Canary::NotValidatedAtCommit) {
            return 0;
        }
        state.reads.count_stale(&self.engine().pool)
    }

    /// Whether no transaction has committed since the last round, or nothing was read. While no
    /// transaction commits, everything read stays as it is.
    pub(super) fn is_validated_at_newest_commit(&self, state: &State) -> bool {
        let newest = self.engine().transactions.newest_commit.load(Ordering::SeqCst);
        state.reads.validated_at.is_none_or(|at| at == newest)
    }

    /// Whether the last round may run inside the critical section: if `stale` is small, or not much
    /// smaller than the number of leaves of the previous round.
    pub(super) fn is_last_round(stale: usize, before: usize) -> bool {
        stale <= MAX_FINAL_LEAVES || stale > before / 2
    }

    fn revalidate(&self, state: &State, reads: &mut ReadSet, stale: &[LeafRead]) -> Result<()> {
        let mut leaf_hint = LeafHint::default();
        for leaf_read in stale {
            for number in leaf_read.points.0..leaf_read.points.1 {
                if let Some(point) = reads.point_at(number) {
                    self.validate_point(state, reads, number, point, &mut leaf_hint)?;
                }
            }
            for number in leaf_read.ranges.0..leaf_read.ranges.1 {
                if let Some(range) = reads.range_at(number) {
                    self.validate_range(state, reads, range)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the newest version of the record at `position` was to be seen, or is our own. Adds
    /// the unfinished writers of newer versions.
    fn validate_record(
        &self,
        state: &State,
        page: Page<'_>,
        position: usize,
        unfinished: &mut Vec<Arc<TransactionRecord>>,
    ) -> Result<()> {
        let transactions = &self.engine().transactions;
        // Read committed moves its snapshot: what was read is as old as the first read remembered,
        // at most.
        let since = state.tracked_since.unwrap_or(state.snapshot);
        let mut version = page.record(position).version;
        while !transactions.is_visible_to_all(version) {
            let (writer, base) = match transactions.lookup(writer_of(version)) {
                None => break,
                Some(Found::CommittedUndo(timestamp)) if timestamp > since => {
                    return Err(Error::SerializationFailure);
                }
                Some(Found::CommittedUndo(_)) => break,
                Some(Found::Running(writer, base)) => (writer, base),
            };
            if state.own() == Some(writer.id()) {
                break;
            }
            match writer.state() {
                TransactionState::Committed(timestamp) if timestamp > since => {
                    return Err(Error::SerializationFailure);
                }
                TransactionState::Committed(_) => break,
                TransactionState::Active | TransactionState::Aborted => {}
            }
            // What an unfinished transaction replaced may itself be newer than what was read.
            let replaced = writer.replaced(base + entry_of(version))?;
            unfinished.push(writer);
            let Some(replaced) = replaced.filter(|replaced| replaced.present) else { break };
            version = replaced.version;
        }
        Ok(())
    }

    fn validate_point(
        &self,
        state: &State,
        reads: &mut ReadSet,
        number: u32,
        point: Point,
        leaf_hint: &mut LeafHint,
    ) -> Result<()> {
        let mut tries = Tries::default();
        let mut unfinished = Vec::new();
        loop {
            let key = reads.key(point.key);
            let (guard, found) = point.tree.locate(&self.engine().pool, key, leaf_hint)?;
            let Some(attempt) = tries.begin(guard) else { continue };
            unfinished.clear();
            let checked = match found {
                Ok(position) => self.validate_record(state, guard.page, position, &mut unfinished),
                Err(_) => Ok(()),
            };
            if !attempt.validate() {
                continue;
            }
            checked?;
            reads.update_point(number, guard.id, guard.content_version());
            reads.add_unfinished(guard.id, &mut unfinished);
            return Ok(());
        }
    }

    fn validate_range(&self, state: &State, reads: &mut ReadSet, range: ReadRange) -> Result<()> {
        let high = range.high.map(|key| reads.key(key).to_vec());
        let high = high.as_ref().map(Vec::as_slice);
        let mut low = reads.key(range.low).to_vec();
        let mut tries = Tries::default();
        let mut unfinished = Vec::new();
        loop {
            let guard = range.tree.leaf(&self.engine().pool, &low)?;
            let Some(attempt) = tries.begin(guard) else { continue };
            let page = guard.page;
            let start = page.search(&low).unwrap_or_else(|at| at);
            let end = match high {
                Bound::Included(key) if page.covers(key) => {
                    page.search(key).map_or_else(|at| at, |at| at + 1)
                }
                Bound::Excluded(key) if page.covers(key) => {
                    page.search(key).unwrap_or_else(|at| at)
                }
                _ => page.count(),
            };
            let fence = page.upper_fence_bytes();
            unfinished.clear();
            let checked = (start..end)
                .try_for_each(|at| self.validate_record(state, page, at, &mut unfinished));
            if !attempt.validate() {
                continue;
            }
            checked?;
            let fence = fence.filter(|fence| match high {
                Bound::Included(key) => key >= &fence[..],
                Bound::Excluded(key) => key > &fence[..],
                Bound::Unbounded => true,
            });
            let part = fence.as_ref().map_or(high, |fence| Bound::Excluded(&fence[..]));
            reads.update_range(range.tree, &low, part, guard.id, guard.content_version());
            reads.add_unfinished(guard.id, &mut unfinished);
            let Some(fence) = fence else { return Ok(()) };
            low = range.tree.advance_to_fence(guard.id, &low, fence)?;
            tries = Tries::default();
        }
    }
}
