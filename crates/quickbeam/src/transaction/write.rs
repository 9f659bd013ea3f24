//! Changing one record.

use std::sync::Arc;

use super::{State, Transaction};
use crate::access::btree::Tree;
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
use crate::page::{OVERFLOW, Page, RecordRef, TOMBSTONE};

/// What to do with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOp<'a> {
    /// Insert or replace.
    Put(&'a [u8]),
    /// Insert, unless there is a record.
    PutIfAbsent(&'a [u8]),
    /// Remove, if there is a record.
    Delete,
    /// Nothing, if there is a record, but that it is now this transaction's to change.
    Claim,
}

impl<'a> WriteOp<'a> {
    fn value(self) -> Option<&'a [u8]> {
        match self {
            WriteOp::Put(value) | WriteOp::PutIfAbsent(value) => Some(value),
            WriteOp::Delete | WriteOp::Claim => None,
        }
    }
}

/// Whether a record may be changed now.
pub(super) enum WriteCheck {
    Go,
    WaitFor(Arc<TransactionRecord>),
    Again,
    Conflict,
}

/// What becomes of a record of a latched leaf.
#[derive(Clone, Copy)]
pub(super) struct LeafWrite<'a> {
    /// Where it is, or would be.
    pub found: std::result::Result<usize, usize>,
    /// The value that it has, as it stands in the leaf, if that has been read.
    pub old: Option<&'a [u8]>,
    /// The value that it gets, as it is to stand there, and its flags; `None`: a tombstone.
    pub new: Option<(&'a [u8], u8)>,
}

impl Transaction {
    /// Makes the change; false when `PutIfAbsent` found a record or `Delete` found none.
    pub(super) fn change(&self, tree: Tree, key: &[u8], change: WriteOp<'_>) -> Result<bool> {
        self.check_change(key, change.value())?;
        self.as_writer(|state, writer| self.change_as(state, writer, tree, key, change))
    }

    /// Refuses to change anything in a transaction that only reads.
    #[inline]
    pub(super) fn check_writes(&self) -> Result<()> {
        match self.read_only {
            false => Ok(()),
            true if self.inner().is_read_only => Err(Error::ReadOnlyEnvironment),
            true => Err(Error::ReadOnly),
        }
    }

    /// Refuses a change that the transaction, the limits or a failed environment do not allow.
    #[inline]
    pub(super) fn check_change(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.check_writes()?;
        let inner = self.inner();
        check_limits(inner.pool.page_size, key, value)?;
        inner.check_failed()
    }

    /// Does `work` with the transaction's state and its writer, which it has from now on.
    #[inline]
    pub(super) fn as_writer<T>(
        &self,
        work: impl FnOnce(&mut State, &Arc<TransactionRecord>) -> Result<T>,
    ) -> Result<T> {
        let state = &mut *self.state.borrow_mut();
        Self::check_consistent(state)?;
        // Taken out for the time of the call, which is cheaper than another reference to it.
        let writer = match state.writer.take() {
            Some(writer) => writer,
            None => self.begin_writer(state)?,
        };
        let done = work(state, &writer);
        state.writer = Some(writer);
        if let Err(error) = &done {
            self.note_failure(error);
        }
        done
    }

    /// Registers the transaction as a writer, before its first change.
    #[inline]
    fn begin_writer(&self, state: &State) -> Result<Arc<TransactionRecord>> {
        let inner = self.inner();
        if inner.old_snapshots.limits_undo || inner.old_snapshots.may_expire {
            self.prepare_first_change(state).inspect_err(|error| self.note_failure(error))?;
        }
        Ok(inner.registry.begin_writer())
    }

    fn change_as(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        change: WriteOp<'_>,
    ) -> Result<bool> {
        let inner = self.inner();
        // First what can be refused: afterwards the change would be made (TXN-5).
        self.spill(state, writer)?;
        let value = change.value();
        let changed = match value {
            Some(long) if !fits_inline(inner.pool.page_size, key, long) => {
                let mut begun = None;
                let announce = |page| {
                    if begun.is_none() {
                        begun = Some(page);
                        writer.new_chains.lock().push(page);
                    }
                };
                let written = write_chain(&inner.pool, self.slot, tree.id, long, announce);
                if let (Err(_), Some(part)) = (&written, begun) {
                    writer.deferred.push(DeferredTask::FreeChain(part));
                }
                let first = written?;
                let pointer = encode_pointer(first, long.len());
                let applied = self.apply(state, writer, tree, key, change, &pointer, OVERFLOW);
                if !matches!(applied, Ok(true)) {
                    // No record points to the chain: it goes when the transaction commits, or
                    // aborts.
                    writer.deferred.push(DeferredTask::FreeChain(first));
                }
                applied?
            }
            value => self.apply(state, writer, tree, key, change, value.unwrap_or_default(), 0)?,
        };
        if changed {
            self.log_change(state, tree, key, change);
        }
        Ok(changed)
    }

    /// Notes the change for the log, if there is one.
    #[inline]
    pub(super) fn log_change(
        &self,
        state: &mut State,
        tree: Tree,
        key: &[u8],
        change: WriteOp<'_>,
    ) {
        if self.inner().log.is_none() {
            return;
        }
        match (change, change.value()) {
            (WriteOp::Claim, _) => {}
            (_, Some(value)) => state.redo.put(tree.id, key, value),
            (_, None) => state.redo.delete(tree.id, key),
        }
    }

    /// Finds the record, makes sure that it may be changed, and changes it.
    #[allow(clippy::too_many_arguments)]
    fn apply(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        change: WriteOp<'_>,
        stored: &[u8],
        flags: u8,
    ) -> Result<bool> {
        let inner = self.inner();
        let pool = &inner.pool;
        if !state.leaf_hints.of(tree).is_in(tree) && state.behind.is_in(tree) {
            *state.leaf_hints.of(tree) = state.behind;
        }
        loop {
            let pass = pool.enter(self.slot);
            let (guard, found) = tree.locate(pool, key, state.leaf_hints.of(tree))?;
            let (leaf, leaf_version) = (guard.id, guard.content_version());
            let Some(latched) = guard.upgrade() else { continue };
            let record = found.ok().map(|position| latched.page().record(position));
            let verdict =
                self.check_conflict(state, writer, record.map_or(0, |record| record.version));
            if !matches!(verdict, WriteCheck::Go) {
                drop((latched, pass));
                self.wait_or_fail(writer, verdict)?;
                continue;
            }
            let exists = record.is_some_and(|record| !record.is_tombstone());
            let wanted = match change {
                WriteOp::Put(_) => true,
                WriteOp::PutIfAbsent(_) => !exists,
                WriteOp::Delete | WriteOp::Claim => exists,
            };
            if !wanted {
                if self.tracks_reads() {
                    state.reads.point(tree, key, leaf, leaf_version);
                }
                return Ok(false);
            }
            let mut kept = Vec::new();
            let new = match (change, record) {
                (WriteOp::Delete, _) => None,
                (WriteOp::Claim, Some(record)) => {
                    latched.page().append_to(record.value_offset, record.value_length, &mut kept);
                    Some((&kept[..], record.flags))
                }
                _ => Some((stored, flags)),
            };
            let is_behind = found.is_err_and(|at| at == latched.page().count());
            let step = LeafWrite { found, old: None, new };
            if self.store(state, writer, tree, key, &latched, &pass, step)? {
                let changed = latched.release_changed();
                if is_behind {
                    state.behind = *state.leaf_hints.of(tree);
                }
                if self.tracks_reads() {
                    state.reads.changed(leaf, leaf_version, changed);
                }
                return Ok(true);
            }
            drop(latched);
            tree.split(pool, &pass, key, state.leaf_hints.of(tree))?;
        }
    }

    /// Whether the record with that version word may be changed by this transaction now (TXN-2,
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
        let state_of_other = match self.inner().registry.writer_of_version(version) {
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
        let committed = match self.inner().registry.writer_of_version(version) {
            Some(Found::CommittedUndo(timestamp)) => Some(timestamp),
            Some(Found::Running(other, _)) => match other.state() {
                TransactionState::Committed(timestamp) => Some(timestamp),
                TransactionState::Active | TransactionState::Aborted => None,
            },
            None => None,
        };
        committed.is_none_or(|timestamp| timestamp <= state.snapshot)
    }

    /// Does what the verdict asks for, nothing being held: true if the record may be changed as it
    /// was found, false if it is to be looked at again, after waiting for who is about to change
    /// it.
    #[inline]
    pub(super) fn wait_or_fail(
        &self,
        writer: &TransactionRecord,
        verdict: WriteCheck,
    ) -> Result<bool> {
        match verdict {
            WriteCheck::Go => Ok(true),
            WriteCheck::Again => Ok(false),
            WriteCheck::Conflict => Err(Error::WriteConflict),
            WriteCheck::WaitFor(other) => {
                let interrupt = self.state.interrupt();
                let patience = WaitOptions {
                    timeout: self.lock_timeout.get(),
                    interrupt: interrupt.as_deref(),
                };
                let vfs = &*self.inner().vfs;
                self.inner().registry.wait_for(vfs, Some(writer.id()), &other, patience)?;
                Ok(false)
            }
        }
    }

    /// Puts the new record into the latched leaf; false when it has no room.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn store(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        tree: Tree,
        key: &[u8],
        latched: &WriteGuard<'_>,
        pass: &ChangeGuard,
        LeafWrite { mut found, old, new }: LeafWrite<'_>,
    ) -> Result<bool> {
        let registry = &self.inner().registry;
        let page = latched.write(pass)?;
        let room = |page: Page<'_>, found| match (found, new) {
            (Ok(position), Some((value, _))) => page.can_replace(position, value.len()),
            (Err(_), Some((value, _))) => {
                page.free_bytes() >= page.leaf_need(key.len(), value.len())
            }
            (_, None) => true,
        };
        if !room(page, found) {
            page.purge(|version| registry.is_visible_to_all(version));
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

    /// Keeps what the record was; the version word for what it becomes.
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
        let registry = &self.inner().registry;
        let before = match record {
            None => Before { present: false, flags: 0, version: 0 },
            Some(record) => {
                // Changed already since the newest savepoint: what it was before that is what
                // counts.
                if writer_of(record.version) == writer.id()
                    && entry_of(record.version) >= state.newest_savepoint
                {
                    self.defer_chain(writer, page, record, new);
                    return record.version;
                }
                let plain = registry.is_visible_to_all(record.version);
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
                None => registry.extend_writer(writer),
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
