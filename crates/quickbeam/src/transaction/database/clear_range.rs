//! Deletes all records of a key range, a leaf at a time.
//!
//! Above: [`Database::clear_range`]. Below: the conflicts, undo entries and redo operations of
//! deleting a single record. A leaf is found, latched and prepared for a checkpoint once for all of
//! its records.
//!
//! - CLEAR-1: a call that fails deletes nothing.
//! - CLEAR-2: the log has the key of each deleted record, not the range. Another transaction may
//!   insert into the range and commit first; replay keeps its record, as the call did.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::Database;
use crate::access::btree::Tree;
use crate::access::limits::check_ordered;
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::mvcc::TransactionRecord;
use crate::page::{Page, TOMBSTONE};
use crate::transaction::DatabaseUse;
use crate::transaction::write::{WriteCheck, WriteOp};
use crate::transaction::{State, Transaction};

impl Database {
    /// Deletes all records whose keys lie in `bounds` and returns their number. This is faster than
    /// deleting them one by one. A call that fails deletes nothing.
    ///
    /// In a hash database, which has no order, the bounds must include every key.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// # for key in [b"a", b"b", b"c"] {
    /// #     fruit.put(&transaction, key, b"")?;
    /// # }
    /// assert_eq!(fruit.clear_range(&transaction, "b"..)?, 2);
    /// assert!(fruit.exists(&transaction, b"a")?);
    /// assert!(!fruit.exists(&transaction, b"c")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn clear_range<K: AsRef<[u8]>>(
        &self,
        transaction: &Transaction,
        bounds: impl RangeBounds<K>,
    ) -> Result<u64> {
        let tree = self.tree(transaction, DatabaseUse::Write)?;
        let bounds = (bounds.start_bound().map(K::as_ref), bounds.end_bound().map(K::as_ref));
        if !matches!(bounds, (Bound::Unbounded, Bound::Unbounded)) {
            check_ordered(tree)?;
        }
        transaction.clear_range(tree, bounds)
    }
}

/// The bounds of a range of keys.
type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Where clearing goes on: at a key, or beyond it.
struct Start {
    key: Vec<u8>,
    beyond: bool,
}

impl Transaction {
    fn clear_range(&self, tree: Tree, (low, high): Bounds<'_>) -> Result<u64> {
        self.check_writable()?;
        self.engine().check_failed()?;
        let start = match low {
            Bound::Included(key) => Start { key: key.to_vec(), beyond: false },
            Bound::Excluded(key) => Start { key: key.to_vec(), beyond: true },
            Bound::Unbounded => Start { key: Vec::new(), beyond: false },
        };
        if let Bound::Included(end) | Bound::Excluded(end) = high
            && *end < start.key[..]
        {
            return Ok(0);
        }
        let savepoint = self.savepoint()?;
        let cleared =
            self.with_writer(|state, writer| self.clear_leaves(state, writer, tree, start, high));
        if cleared.is_err() {
            self.rollback_to(savepoint)?;
            invariant!(
                CLEAR_1,
                self.state
                    .borrow()
                    .writer
                    .as_ref()
                    .is_none_or(|writer| { writer.entries() == savepoint.entries }),
                "a failed deletion of a range left undo entries"
            );
        }
        self.release_savepoint(savepoint);
        cleared
    }

    fn clear_leaves(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        mut start: Start,
        high: Bound<&[u8]>,
    ) -> Result<u64> {
        let pool = &self.engine().pool;
        let mut cleared = 0;
        let (mut key, mut fence) = (Vec::new(), Vec::new());
        loop {
            self.spill_redo(state, writer)?;
            let change_guard = pool.enter(self.slot);
            let guard = tree.leaf(pool, &start.key)?;
            let (leaf, version) = (guard.id, guard.content_version());
            let Some(latched) = guard.upgrade() else { continue };
            let page = latched.page();
            let first = match page.search(&start.key) {
                Ok(at) if start.beyond => at + 1,
                Ok(at) | Err(at) => at,
            };
            let (end, is_last) = end_of(page, high);
            let (check, live) = self.check_leaf(state, writer, tree, page, first..end);
            if !matches!(check, WriteCheck::Go) {
                drop((latched, change_guard));
                self.wait_or_fail(writer, check)?;
                continue;
            }
            fence.clear();
            let goes_on = page.append_upper_fence(&mut fence) && !is_last;
            if self.tracks_reads() {
                let read = if goes_on { Bound::Excluded(&fence[..]) } else { high };
                state.reads.range(tree, &start.key, read, leaf, version);
            }
            if live > 0 {
                let page = latched.write(&change_guard)?;
                let logged = state.redo.position();
                self.delete_records(state, writer, tree, page, first..end, &mut key);
                invariant!(
                    CLEAR_2,
                    self.engine().log.is_none()
                        || state.redo.position() - logged >= live
                        || planted(Canary::ClearNotLogged),
                    "{live} records of leaf {leaf} are deleted, and the redo grows from {logged} to {}",
                    state.redo.position()
                );
                if page.is_purge_worthwhile() {
                    self.defer_purge(state, writer, tree, &key, leaf);
                }
                cleared += live;
                let changed = latched.release_changed();
                if self.tracks_reads() {
                    state.reads.changed(leaf, version, changed);
                }
            }
            if !goes_on {
                return Ok(cleared);
            }
            tree.check_forward(leaf, &start.key, &fence)?;
            std::mem::swap(&mut start.key, &mut fence);
            start.beyond = false;
        }
    }

    /// Makes tombstones of the records of a latched leaf at these positions. `key` becomes the key
    /// of the last one.
    fn delete_records(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        page: Page<'_>,
        positions: std::ops::Range<usize>,
        key: &mut Vec<u8>,
    ) {
        for position in positions.clone() {
            let record = page.record(position);
            if record.is_tombstone() {
                continue;
            }
            key.clear();
            page.append_key(position, key);
            let record = Some(record);
            let word = self.push_undo(state, writer, tree, key, page, record, None, None);
            page.set_version(position, word);
            page.set_record_flags(position, TOMBSTONE);
            if position + 1 < positions.end || !planted(Canary::ClearNotLogged) {
                self.append_redo(state, tree, key, WriteOp::Delete);
            }
        }
    }

    /// Returns whether all of these records of a latched leaf may be changed now, and how many are
    /// not deleted.
    fn check_leaf(
        &self,
        state: &State,
        writer: &TransactionRecord,
        tree: Tree,
        page: Page<'_>,
        positions: std::ops::Range<usize>,
    ) -> (WriteCheck, u64) {
        let mut live = 0;
        for position in positions {
            let record = page.record(position);
            let check = self.check_write_of(state, writer, tree, record.version);
            if !matches!(check, WriteCheck::Go) {
                return (check, 0);
            }
            live += u64::from(!record.is_tombstone());
        }
        (WriteCheck::Go, live)
    }
}

/// Returns the position after the last record of a leaf before `high`, and whether no later leaf
/// has any.
fn end_of(page: Page<'_>, high: Bound<&[u8]>) -> (usize, bool) {
    match high {
        Bound::Included(key) if page.covers(key) => {
            (page.search(key).map_or_else(|at| at, |at| at + 1), true)
        }
        Bound::Excluded(key) if page.covers(key) => {
            (page.search(key).unwrap_or_else(|at| at), true)
        }
        _ => (page.count(), page.is_open_end()),
    }
}
