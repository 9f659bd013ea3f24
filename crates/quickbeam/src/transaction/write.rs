//! Writes of one record, floor by floor.
//!
//! Above: [`Database::put`](super::Database::put) and its relatives; the catalog. Below: trees,
//! latches, undo entries.
//!
//! - `write`: checks the limits and gives the transaction its record.
//! - `write_value`: writes a long value to an overflow chain first; appends redo afterwards.
//! - `write_record`: finds the record, resolves write-write conflicts (first updater wins), splits
//!   full leaves.
//! - `write_latched`: pushes the undo entry and changes the latched leaf.

use std::sync::Arc;

use super::{State, Transaction};
use crate::access::btree::{NewRecord, Tree};
use crate::access::limits::{check_limits, fits_inline};
use crate::access::overflow::{decode_pointer, encode_pointer, write_chain};
use crate::buffer::{ChangeGuard, WriteGuard};
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::mvcc::{
    Before, DeferredTask, Found, TransactionRecord, TransactionState, WaitOptions, entry_of,
    writer_of,
};
use crate::options::Isolation;
use crate::page::{OVERFLOW, Page, PageId, RecordRef, TOMBSTONE};

/// A write of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOp<'a> {
    /// Insert or replace.
    Put(&'a [u8]),
    /// Insert, unless there is a record.
    PutIfAbsent(&'a [u8]),
    /// Remove, if there is a record.
    Delete,
    /// Lock the record, if there is one, against writes of other transactions.
    Lock,
}

impl<'a> WriteOp<'a> {
    fn value(self) -> Option<&'a [u8]> {
        match self {
            WriteOp::Put(value) | WriteOp::PutIfAbsent(value) => Some(value),
            WriteOp::Delete | WriteOp::Lock => None,
        }
    }
}

/// The result of a write-conflict check.
pub(super) enum WriteCheck {
    /// The write may proceed.
    Go,
    /// An unfinished transaction changed the record.
    WaitFor(Arc<TransactionRecord>),
    /// The other transaction has finished since: read the record again.
    Again,
    /// A transaction past the snapshot committed a change of the record.
    Conflict,
}

/// A write to a record of a latched leaf.
#[derive(Clone, Copy)]
pub(super) struct LeafWrite<'a> {
    /// The position of the record, or the position for inserting it.
    pub found: std::result::Result<usize, usize>,
    /// The stored value before the write, if it has been read.
    pub old: Option<&'a [u8]>,
    /// The stored value after the write and its flags, or `None` for a tombstone.
    pub new: Option<(&'a [u8], u8)>,
}

impl Transaction {
    /// Writes a record. Returns false, changing nothing, if `PutIfAbsent` found a record, or
    /// `Delete` or `Lock` found none.
    pub(super) fn write(&self, tree: Tree, key: &[u8], op: WriteOp<'_>) -> Result<bool> {
        self.check_write(key, op.value())?;
        self.with_writer(|state, writer| {
            let checks = cfg!(any(debug_assertions, feature = "invariants"));
            let before = if checks { writer.entries() } else { 0 };
            let written = self.write_value(state, writer, tree, key, op);
            invariant!(
                TXN_5,
                written.is_ok() || writer.entries() == before,
                "a failed write of transaction {} left undo entries",
                writer.id()
            );
            written
        })
    }

    /// Fails in a read-only transaction.
    #[inline]
    pub(super) fn check_writable(&self) -> Result<()> {
        match self.refuses_changes.get() {
            false => Ok(()),
            true if self.engine().is_read_only => Err(Error::ReadOnlyEnvironment),
            true => Err(Error::ReadOnly),
        }
    }

    /// Fails if the transaction, the limits or a failed environment do not allow the write.
    #[inline]
    pub(super) fn check_write(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.check_writable()?;
        let engine = self.engine();
        check_limits(engine.pool.page_size, key, value)?;
        engine.check_failed()
    }

    /// Calls `work` with the transaction's state and its transaction record, which is registered
    /// before the first write.
    #[inline]
    pub(super) fn with_writer<T>(
        &self,
        work: impl FnOnce(&mut State, &Arc<TransactionRecord>) -> Result<T>,
    ) -> Result<T> {
        let state = &mut *self.state.borrow_mut();
        Self::check_consistent(state)?;
        // Moved out during the call, which is cheaper than counting another reference.
        let writer = match state.writer.take() {
            Some(writer) => writer,
            None => self.begin_writer(state)?,
        };
        let done = work(state, &writer);
        state.writer = Some(writer);
        // A copy of the whole result would wait for the stores of its parts.
        match done {
            Ok(done) => Ok(done),
            Err(error) => {
                self.note_failure(&error);
                Err(error)
            }
        }
    }

    /// Registers the transaction as a writer, before its first change.
    #[inline]
    fn begin_writer(&self, state: &State) -> Result<Arc<TransactionRecord>> {
        let engine = self.engine();
        if engine.old_snapshots.limits_undo || engine.old_snapshots.may_expire {
            self.prepare_first_write(state).inspect_err(|error| self.note_failure(error))?;
        }
        Ok(engine.transactions.begin_writer(self.slot))
    }

    /// Writes a value in the leaf, or in an overflow chain if it is too long for the leaf.
    fn write_value(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        op: WriteOp<'_>,
    ) -> Result<bool> {
        let engine = self.engine();
        // Everything that can fail comes before the write (TXN-5).
        self.spill_redo(state, writer)?;
        let value = op.value();
        let changed = match value {
            Some(long) if !fits_inline(engine.pool.page_size, key, long.len()) => {
                let mut begun = None;
                let announce = |page| {
                    if begun.is_none() {
                        begun = Some(page);
                        writer.new_chains.lock().push(page);
                    }
                };
                let written = write_chain(&engine.pool, self.slot, tree.id, long, announce);
                if let (Err(_), Some(part)) = (&written, begun) {
                    writer.deferred.push(DeferredTask::FreeChain(part));
                }
                let length = long.len() as u64;
                self.write_long_record(state, writer, tree, key, op, (written?, length))?
            }
            value => {
                self.write_record(state, writer, tree, key, op, value.unwrap_or_default(), 0)?
            }
        };
        if changed {
            self.append_redo(state, tree, key, op);
        }
        Ok(changed)
    }

    /// Writes a record with a pointer to a chain, given by its first page and length, that this
    /// transaction has written. A chain that no record comes to point to is freed when the
    /// transaction ends.
    pub(super) fn write_long_record(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        op: WriteOp<'_>,
        (first, length): (PageId, u64),
    ) -> Result<bool> {
        invariant!(
            CHAIN_1,
            self.engine().pool.is_allocated(first),
            "a record would point to page {first} before its chain is there"
        );
        let pointer = encode_pointer(first, length);
        let applied = self.write_record(state, writer, tree, key, op, &pointer, OVERFLOW);
        if !matches!(applied, Ok(true)) {
            writer.deferred.push(DeferredTask::FreeChain(first));
        }
        applied
    }

    /// Appends the write to the redo buffer, if the environment has a log.
    #[inline]
    pub(super) fn append_redo(&self, state: &mut State, tree: Tree, key: &[u8], op: WriteOp<'_>) {
        if self.engine().log.is_none() {
            return;
        }
        match (op, op.value()) {
            (WriteOp::Lock, _) => {}
            (_, Some(value)) => state.redo.put(tree.id, key, value),
            (_, None) => state.redo.delete(tree.id, key),
        }
    }

    /// Finds the record, checks for conflicts, and writes it in its latched leaf. Waits for a
    /// conflicting transaction and splits a full leaf, then starts again.
    #[allow(clippy::too_many_arguments)]
    fn write_record(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        op: WriteOp<'_>,
        stored: &[u8],
        flags: u8,
    ) -> Result<bool> {
        let engine = self.engine();
        let pool = &engine.pool;
        if !state.leaf_hints.of(tree).is_in(tree) && state.append_hint.is_in(tree) {
            *state.leaf_hints.of(tree) = state.append_hint;
        }
        loop {
            let change_guard = pool.enter(self.slot);
            let (guard, found) = tree.locate(pool, key, state.leaf_hints.of(tree))?;
            let (leaf, leaf_version) = (guard.id, guard.content_version());
            let Some(latched) = guard.upgrade() else { continue };
            let record = found.ok().map(|position| latched.page().record(position));
            let check =
                self.check_write_of(state, writer, tree, record.map_or(0, |record| record.version));
            if !matches!(check, WriteCheck::Go) {
                drop((latched, change_guard));
                self.wait_or_fail(writer, check)?;
                continue;
            }
            let exists = record.is_some_and(|record| !record.is_tombstone());
            let wanted = match op {
                WriteOp::Put(_) => true,
                WriteOp::PutIfAbsent(_) => !exists,
                WriteOp::Delete | WriteOp::Lock => exists,
            };
            if !wanted {
                if self.tracks_reads() {
                    state.reads.point(tree, key, leaf, leaf_version);
                }
                return Ok(false);
            }
            let mut locked_value = Vec::new();
            let new = match (op, record) {
                (WriteOp::Delete, _) => None,
                (WriteOp::Lock, Some(record)) => {
                    latched.page().append_to(
                        record.value_offset,
                        record.value_length,
                        &mut locked_value,
                    );
                    Some((&locked_value[..], record.flags))
                }
                _ => Some((stored, flags)),
            };
            let is_append = found.is_err_and(|at| at == latched.page().count());
            let write = LeafWrite { found, old: None, new };
            if self.write_latched(state, writer, tree, key, &latched, &change_guard, write)? {
                let changed = latched.release_changed();
                if is_append {
                    state.append_hint = *state.leaf_hints.of(tree);
                }
                if self.tracks_reads() {
                    state.reads.changed(leaf, leaf_version, changed);
                }
                return Ok(true);
            }
            drop(latched);
            let leaf_hint = state.leaf_hints.of(tree);
            match found {
                Ok(_) => tree.split(pool, &change_guard, key, leaf_hint)?,
                Err(_) => {
                    let record = NewRecord { key, value_length: stored.len() };
                    tree.make_space(pool, &change_guard, record, leaf_hint)?;
                }
            }
        }
    }

    /// Checks whether this transaction may write the record with that version word of that tree
    /// now. The caller holds a change guard, so that no other transaction can take a lock of the
    /// tree between the check and the write (DBLOCK-2).
    #[inline]
    pub(super) fn check_write_of(
        &self,
        state: &State,
        writer: &TransactionRecord,
        tree: Tree,
        version: u64,
    ) -> WriteCheck {
        match self.engine().transactions.database_locks.holder(tree.id, writer) {
            Some(holder) => WriteCheck::WaitFor(holder),
            None => self.check_conflict(state, writer, version),
        }
    }

    /// Checks whether this transaction may write the record with that version word now (TXN-2,
    /// TXN-3).
    #[inline]
    pub(super) fn check_conflict(
        &self,
        state: &State,
        writer: &TransactionRecord,
        version: u64,
    ) -> WriteCheck {
        if version == 0 || writer_of(version) == writer.id() {
            return WriteCheck::Go;
        }
        let state_of_other = match self.engine().transactions.writer_of_version(version) {
            None => return WriteCheck::Go,
            Some(Found::Running(other, _)) if other.id() == writer.id() => return WriteCheck::Go,
            Some(Found::Running(other, _)) => match other.state() {
                TransactionState::Active if planted(Canary::LockNotHonoured) => {
                    return WriteCheck::Go;
                }
                TransactionState::Active => return WriteCheck::WaitFor(other),
                state => state,
            },
            Some(Found::CommittedUndo(timestamp)) => TransactionState::Committed(timestamp),
        };
        match state_of_other {
            TransactionState::Committed(timestamp)
                if timestamp <= state.snapshot || self.isolation == Isolation::ReadCommitted =>
            {
                WriteCheck::Go
            }
            TransactionState::Committed(_) => WriteCheck::Conflict,
            TransactionState::Active | TransactionState::Aborted => WriteCheck::Again,
        }
    }

    /// Returns whether no transaction that the snapshot does not include has committed the version.
    fn is_in_snapshot(&self, state: &State, version: u64) -> bool {
        let committed = match self.engine().transactions.writer_of_version(version) {
            Some(Found::CommittedUndo(timestamp)) => Some(timestamp),
            Some(Found::Running(other, _)) => match other.state() {
                TransactionState::Committed(timestamp) => Some(timestamp),
                TransactionState::Active | TransactionState::Aborted => None,
            },
            None => None,
        };
        committed.is_none_or(|timestamp| timestamp <= state.snapshot)
    }

    /// Resolves a conflict check without holding any latch. Returns true if the write may proceed,
    /// or false if the record must be read again, after waiting for the conflicting transaction.
    #[inline]
    pub(super) fn wait_or_fail(
        &self,
        writer: &TransactionRecord,
        check: WriteCheck,
    ) -> Result<bool> {
        match check {
            WriteCheck::Go => Ok(true),
            WriteCheck::Again => Ok(false),
            WriteCheck::Conflict => Err(Error::WriteConflict),
            WriteCheck::WaitFor(other) => {
                let interrupt = self.state.interrupt();
                let options = WaitOptions {
                    timeout: self.lock_timeout.get(),
                    interrupt: interrupt.as_deref(),
                };
                let vfs = &*self.engine().vfs;
                self.engine().transactions.wait_for(vfs, Some(writer.id()), &other, options)?;
                Ok(false)
            }
        }
    }

    /// Pushes the undo entry and writes the record into the latched leaf. Returns false, changing
    /// nothing but purged tombstones, if the leaf has no space.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn write_latched(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        latched: &WriteGuard<'_>,
        change_guard: &ChangeGuard,
        LeafWrite { mut found, old, new }: LeafWrite<'_>,
    ) -> Result<bool> {
        let transactions = &self.engine().transactions;
        let page = latched.write(change_guard)?;
        let room = |page: Page<'_>, found| match (found, new) {
            (Ok(position), Some((value, _))) => page.can_replace(position, value.len()),
            (Err(_), Some((value, _))) => {
                page.free_bytes() >= page.leaf_need(key.len(), value.len())
            }
            (_, None) => true,
        };
        if !room(page, found) {
            page.purge(|version| transactions.is_visible_to_all(version));
            found = page.search(key);
            if !room(page, found) {
                return Ok(false);
            }
        }
        let record = found.ok().map(|position| page.record(position));
        let word = record.map_or(0, |record| record.version);
        invariant!(
            TXN_2,
            matches!(self.check_conflict(state, writer, word), WriteCheck::Go),
            "transaction {} changes a record that another one has changed",
            writer.id()
        );
        invariant!(
            TXN_3,
            self.isolation == Isolation::ReadCommitted || self.is_in_snapshot(state, word),
            "transaction {} changes a version past its snapshot",
            writer.id()
        );
        let version = self.push_undo(state, writer, tree, key, page, record, old, new);
        match (found, new) {
            (Ok(position), Some((value, flags))) => {
                page.replace_record(position, version, flags, value);
            }
            (Ok(position), None) => {
                page.set_version(position, version);
                page.set_record_flags(position, TOMBSTONE);
                if page.is_purge_worthwhile() {
                    self.defer_purge(state, writer, tree, key, latched.id);
                }
            }
            (Err(position), Some((value, flags))) => {
                page.insert_record(position, key, version, flags, value);
            }
            (Err(_), None) => {}
        }
        Ok(true)
    }

    /// Pushes the undo entry of a write. Returns the version word of the new version.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn push_undo(
        &self,
        state: &State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        page: Page<'_>,
        record: Option<RecordRef>,
        old: Option<&[u8]>,
        new: Option<(&[u8], u8)>,
    ) -> u64 {
        let transactions = &self.engine().transactions;
        let before = match record {
            None => Before { present: false, flags: 0, version: 0 },
            Some(record) => {
                // Written already since the newest savepoint: the older undo entry is enough.
                if writer_of(record.version) == writer.id()
                    && entry_of(record.version) >= state.newest_savepoint
                {
                    self.defer_chain(writer, page, record, new);
                    return record.version;
                }
                let plain = transactions.is_visible_to_all(record.version);
                let version = if plain { 0 } else { record.version };
                self.defer_chain(writer, page, record, new);
                Before { present: true, flags: record.flags, version }
            }
        };
        loop {
            let pushed = writer.push(tree.id, key, before, |bytes| match (old, record) {
                (Some(old), _) => bytes.extend_from_slice(old),
                (None, Some(record)) => {
                    page.append_to(record.value_offset, record.value_length, bytes);
                }
                (None, None) => {}
            });
            match pushed {
                Some(version) => return version,
                None => transactions.make_room_for_undo(writer),
            }
        }
    }

    /// Frees the chain of a replaced record once no transaction can see it, unless the new record
    /// points to it too.
    fn defer_chain(
        &self,
        writer: &TransactionRecord,
        page: Page<'_>,
        record: RecordRef,
        new: Option<(&[u8], u8)>,
    ) {
        if record.flags & OVERFLOW == 0 || record.is_tombstone() {
            return;
        }
        let mut pointer = Vec::new();
        page.append_to(record.value_offset, record.value_length, &mut pointer);
        if new.is_some_and(|(bytes, flags)| flags & OVERFLOW != 0 && bytes == &pointer[..]) {
            return;
        }
        if let Some((first, _)) = decode_pointer(&pointer) {
            writer.deferred.push(DeferredTask::FreeChain(first));
        }
    }

    /// Removes the dead record from its leaf once no transaction can see the record's value. One
    /// visit serves a whole leaf.
    pub(super) fn defer_purge(
        &self,
        state: &mut State,
        writer: &TransactionRecord,
        tree: Tree,
        key: &[u8],
        leaf: u64,
    ) {
        if state.last_purge != (tree.id, leaf) {
            state.last_purge = (tree.id, leaf);
            writer.deferred.push(DeferredTask::Purge { tree: tree.id, key: key.to_vec() });
        }
    }
}
