//! Updates a record in one descent: the new value is computed from the current one.
//!
//! Above: [`Database::update`](super::Database::update). Below: what every change uses
//! (`write.rs`). Unlike `get` and `put`, finds the record once, and adds nothing to the read set: a
//! transaction that may write the record has seen its newest version.
//!
//! - UPDATE-1: no latch is held while the caller computes the value. The write happens only if the
//!   leaf has not changed since the old value was read.

use std::sync::Arc;

use super::write::{LeafWrite, WriteOp};
use super::{State, Transaction};
use crate::access::btree::{LeafHint, Tree};
use crate::access::limits::fits_inline;
use crate::buffer::ReadGuard;
use crate::error::Result;
use crate::mvcc::TransactionRecord;
use crate::page::OVERFLOW;

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// The record has the new value.
    Changed,
    /// The caller left the record unchanged.
    Unchanged,
    /// There is no record.
    Absent,
    /// The old or the new value is too long for the leaf, or the leaf kept changing. Nothing was
    /// changed; `get_for_update` and `put` work in this case.
    NotInPlace,
}

/// Number of times a value is computed again because the leaf has changed meanwhile.
const ATTEMPTS: usize = 4;

/// A record that this transaction may write now.
struct LockedRecord<'p> {
    guard: ReadGuard<'p>,
    position: usize,
    flags: u8,
}

impl Transaction {
    /// Implements [`Database::update`](super::Database::update). `make` receives the value and an
    /// empty buffer for the new one.
    pub(super) fn update(
        &self,
        tree: Tree,
        key: &[u8],
        make: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<Updated> {
        self.check_write(key, None)?;
        let (mut old, mut new) = std::mem::take(&mut self.state.borrow_mut().values);
        let done = self.update_with(tree, key, make, &mut old, &mut new);
        self.state.borrow_mut().values = (old, new);
        done
    }

    fn update_with(
        &self,
        tree: Tree,
        key: &[u8],
        make: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
        old: &mut Vec<u8>,
        new: &mut Vec<u8>,
    ) -> Result<Updated> {
        for _ in 0..ATTEMPTS {
            let found = self
                .with_writer(|state, writer| self.find_for_update(state, writer, tree, key, old))?;
            let Some(found) = found else { return Ok(Updated::Absent) };
            if found.flags & OVERFLOW != 0 {
                return Ok(Updated::NotInPlace);
            }
            new.clear();
            if !make(old, new) {
                let state = &mut *self.state.borrow_mut();
                if self.tracks_reads() {
                    state.reads.point(tree, key, found.guard.id, found.guard.content_version());
                }
                return Ok(Updated::Unchanged);
            }
            if !fits_inline(self.engine().pool.page_size, key, new.len()) {
                return Ok(Updated::NotInPlace);
            }
            if self.with_writer(|state, writer| {
                self.write_found(state, writer, tree, key, &found, old, new)
            })? {
                return Ok(Updated::Changed);
            }
        }
        Ok(Updated::NotInPlace)
    }

    /// Finds the record and reads its value once it may be written. Returns `None` if there is
    /// none.
    fn find_for_update(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<LockedRecord<'_>>> {
        loop {
            let (guard, found) =
                tree.locate(&self.engine().pool, key, state.leaf_hints.of(tree))?;
            let record = found.ok().map(|position| (position, guard.page.record(position)));
            if let Some((_, record)) = record {
                guard.page.assign_to(record.value_offset, record.value_length, value);
            }
            if !guard.validate() {
                continue;
            }
            let version = record.map_or(0, |(_, record)| record.version);
            let check = self.check_write_of(state, writer, tree, version);
            if !self.wait_or_fail(writer, check)? {
                continue;
            }
            // The conflicting transaction may have rolled back in between: validate before trusting
            // the check.
            if !guard.validate() {
                continue;
            }
            if let Some((position, record)) = record.filter(|(_, record)| !record.is_tombstone()) {
                return Ok(Some(LockedRecord { guard, position, flags: record.flags }));
            }
            if self.tracks_reads() {
                state.reads.point(tree, key, guard.id, guard.content_version());
            }
            return Ok(None);
        }
    }

    /// Writes the new value of a record that was found. Returns false if the leaf has changed
    /// since, or had no space and was split.
    #[allow(clippy::too_many_arguments)]
    fn write_found(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        found: &LockedRecord<'_>,
        old: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        // Everything that can fail comes before the write (TXN-5).
        self.spill_redo(state, writer)?;
        let engine = self.engine();
        let change_guard = engine.pool.enter(self.slot);
        // Locked since the record was found: find it again, and wait.
        if engine.transactions.database_locks.holder(tree.id, writer).is_some() {
            return Ok(false);
        }
        let version = found.guard.content_version();
        let Some(latched) = found.guard.upgrade() else { return Ok(false) };
        let leaf = latched.id;
        invariant!(
            UPDATE_1,
            {
                let record = latched.page().record(found.position);
                let mut value = Vec::new();
                latched.page().append_to(record.value_offset, record.value_length, &mut value);
                value == old
            },
            "a record in leaf {leaf} changed while its new value was made"
        );
        let write = LeafWrite { found: Ok(found.position), old: Some(old), new: Some((new, 0)) };
        if !self.write_latched(state, writer, tree, key, &latched, &change_guard, write)? {
            drop(latched);
            *state.leaf_hints.of(tree) = LeafHint::at(tree, leaf);
            tree.split(&engine.pool, &change_guard, key, state.leaf_hints.of(tree))?;
            return Ok(false);
        }
        let changed = latched.release_changed();
        if self.tracks_reads() {
            state.reads.changed(leaf, version, changed);
        }
        self.append_redo(state, tree, key, WriteOp::Put(new));
        Ok(true)
    }
}
