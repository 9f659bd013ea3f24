//! Updates a record in one descent: the new value is computed from the current one.
//!
//! Above: [`Database::update`](super::Database::update). Below: what every change uses
//! (`write.rs`). As `get` and `put`, but the record is looked up once, and there is nothing that
//! the commit has to look up again: who may change the record now saw its newest version.
//!
//! - UPDATE-1: while the caller makes the value nothing is held. The change is made only if the
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

/// What came of modifying a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// It has the new value.
    Changed,
    /// The caller left it as it is.
    Unchanged,
    /// There is no record.
    Absent,
    /// The value is too long to be kept in the leaf, or would be, or the leaf changed again and
    /// again: nothing was changed, `get_for_update` and `put` do it.
    NotInPlace,
}

/// Number of times a value is computed again because the leaf has changed meanwhile.
const ATTEMPTS: usize = 4;

/// A record that may be changed now.
struct LockedRecord<'p> {
    guard: ReadGuard<'p>,
    position: usize,
    flags: u8,
}

impl Transaction {
    /// See [`Database::update`](super::Database::update). `make` is given the value and empty
    /// memory for the new one.
    pub(super) fn update(
        &self,
        tree: Tree,
        key: &[u8],
        make: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<Updated> {
        self.check_change(key, None)?;
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
                .as_writer(|state, writer| self.find_for_change(state, writer, tree, key, old))?;
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
            if !fits_inline(self.inner().pool.page_size, key, new) {
                return Ok(Updated::NotInPlace);
            }
            if self.as_writer(|state, writer| {
                self.store_found(state, writer, tree, key, &found, old, new)
            })? {
                return Ok(Updated::Changed);
            }
        }
        Ok(Updated::NotInPlace)
    }

    /// Finds the record and reads its value, once it may be changed; `None` if there is none.
    fn find_for_change(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<LockedRecord<'_>>> {
        loop {
            let (guard, found) = tree.locate(&self.inner().pool, key, state.leaf_hints.of(tree))?;
            let record = found.ok().map(|position| (position, guard.page.record(position)));
            if let Some((_, record)) = record {
                guard.page.assign_to(record.value_offset, record.value_length, value);
            }
            if !guard.validate() {
                continue;
            }
            let verdict =
                self.check_conflict(state, writer, record.map_or(0, |(_, record)| record.version));
            if !self.wait_or_fail(writer, verdict)? {
                continue;
            }
            // Who changed it may have undone that before the verdict, which then is of what is
            // there no more.
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

    /// Gives the record the new value in place of the old one; false when the leaf has changed
    /// since it was found, or has no room, which is made.
    #[allow(clippy::too_many_arguments)]
    fn store_found(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        found: &LockedRecord<'_>,
        old: &[u8],
        new: &[u8],
    ) -> Result<bool> {
        // First what can be refused: afterwards the change would be made (TXN-5).
        self.spill(state, writer)?;
        let inner = self.inner();
        let pass = inner.pool.enter(self.slot);
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
        let step = LeafWrite { found: Ok(found.position), old: Some(old), new: Some((new, 0)) };
        if !self.store(state, writer, tree, key, &latched, &pass, step)? {
            drop(latched);
            *state.leaf_hints.of(tree) = LeafHint::at(tree, leaf);
            tree.split(&inner.pool, &pass, key, state.leaf_hints.of(tree))?;
            return Ok(false);
        }
        let changed = latched.release_changed();
        if self.tracks_reads() {
            state.reads.changed(leaf, version, changed);
        }
        self.log_change(state, tree, key, WriteOp::Put(new));
        Ok(true)
    }
}
