//! Point reads: find the record and the version of it that the snapshot sees.
//!
//! - READ-1: a read finishes under any load of writers. Between finding a leaf and validating it,
//!   it only looks at the leaf's records and at changes of unfinished writers; versions before
//!   committed changes are looked up afterwards. After a few failed tries it takes the latch
//!   ([`Tries`]), and a try with the latch succeeds.

use super::{State, Transaction};
use crate::access::btree::{LeafHint, Tree};
use crate::access::overflow::{ChainReader, pointer_of, read_chain};
use crate::buffer::Tries;
use crate::error::Result;
use crate::invariant::CHECKS_INVARIANTS;
use crate::mvcc::{Resolved, Timestamp};
use crate::page::{OVERFLOW, Page, TOMBSTONE};

/// The version of a record that a transaction sees. Valid only once the leaf was validated.
pub(super) enum Visibility {
    /// A record with these flags. Its value was appended to the output.
    Record(u8),
    /// No record.
    Nothing,
    /// What [`Transaction::append_version_before`] finds, once the leaf was validated, before the
    /// change with this version word.
    Hidden(u64),
    /// The leaf changed: look again.
    Again,
}

impl Transaction {
    /// Reads the visible version of a record into `value`, replacing its content. Returns false if
    /// there is none.
    pub(super) fn read(&self, tree: Tree, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let state = &mut *self.state.borrow_mut();
        let found = self.read_with_state(state, tree, key, value);
        self.unless_expired(found)
    }

    /// Reads the visible version of a record as it is stored, with a pointer in place of a long
    /// value. Returns its flags, or `None` if there is no record.
    pub(super) fn read_stored(
        &self,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<u8>> {
        let state = &mut *self.state.borrow_mut();
        let found = self.read_stored_with_state(state, tree, key, value);
        self.unless_expired(found)
    }

    /// Reads a part of the chain of a record that is visible.
    pub(super) fn read_chain_part(
        &self,
        chain: &mut ChainReader,
        offset: u64,
        out: &mut [u8],
    ) -> Result<usize> {
        let read = chain.read_at(&self.engine().pool, offset, out);
        self.unless_expired(read)
    }

    pub(super) fn read_with_state(
        &self,
        state: &mut State,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let Some(flags) = self.read_stored_with_state(state, tree, key, value)? else {
            return Ok(false);
        };
        if flags & OVERFLOW != 0 {
            self.read_overflow_value(value)?;
        }
        Ok(true)
    }

    #[inline(always)]
    fn read_stored_with_state(
        &self,
        state: &mut State,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<u8>> {
        invariant!(
            TXN_1,
            self.is_snapshot_kept(state),
            "no slot keeps snapshot {}",
            state.snapshot
        );
        let mut tries = Tries::default();
        loop {
            let (guard, found) =
                tree.locate(&self.engine().pool, key, state.leaf_hints.of(tree))?;
            let Some(attempt) = tries.begin(guard) else { continue };
            let mut visibility = match found {
                Err(_) => Visibility::Nothing,
                Ok(position) => self.read_visible(state, guard.page, position, value)?,
            };
            let is_covered = !CHECKS_INVARIANTS || guard.page.covers(key);
            if matches!(visibility, Visibility::Again) || !attempt.validate() {
                continue;
            }
            if let Visibility::Hidden(version) = visibility {
                visibility = self.append_version_before(state, version, value)?;
                if matches!(visibility, Visibility::Again) {
                    continue;
                }
            }
            if self.tracks_reads() {
                invariant!(
                    READS_1,
                    is_covered,
                    "leaf {} does not cover a key read in it",
                    guard.id
                );
                state.reads.point(tree, key, guard.id, guard.content_version());
            }
            let Visibility::Record(flags) = visibility else {
                value.clear();
                return Ok(None);
            };
            return Ok(Some(flags));
        }
    }

    /// Returns the newest committed value of a record, independent of the snapshot and of this
    /// transaction's own changes.
    pub(super) fn read_newest_committed(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut leaf_hint = LeafHint::default();
        let mut value = Vec::new();
        let mut tries = Tries::default();
        loop {
            let (guard, found) = tree.locate(&self.engine().pool, key, &mut leaf_hint)?;
            let Some(attempt) = tries.begin(guard) else { continue };
            value.clear();
            let mut flags = TOMBSTONE;
            let mut again = false;
            if let Ok(position) = found {
                let record = guard.page.record(position);
                match self.engine().transactions.resolve(
                    record.version,
                    Timestamp::MAX,
                    None,
                    &mut value,
                )? {
                    Resolved::InPage => {
                        guard.page.append_to(record.value_offset, record.value_length, &mut value);
                        flags = record.flags;
                    }
                    Resolved::Older { flags: older } => flags = older,
                    Resolved::Absent => {}
                    Resolved::Hidden { .. } | Resolved::Again => again = true,
                }
            }
            if !again && attempt.validate() {
                return Ok((flags & TOMBSTONE == 0).then_some(value));
            }
        }
    }

    /// Like [`append_visible`](Self::append_visible), but replaces the content of `value`.
    #[inline]
    fn read_visible(
        &self,
        state: &mut State,
        page: Page<'_>,
        position: usize,
        value: &mut Vec<u8>,
    ) -> Result<Visibility> {
        let record = page.record(position);
        if !self.engine().transactions.is_visible_to_all(record.version)
            && !state.is_own(record.version)
        {
            value.clear();
            return self.append_visible(state, page, position, value);
        }
        page.assign_to(record.value_offset, record.value_length, value);
        Ok(if record.is_tombstone() {
            Visibility::Nothing
        } else {
            Visibility::Record(record.flags)
        })
    }

    /// Appends the value of the version at `position` that this transaction sees (TXN-1).
    #[inline]
    pub(super) fn append_visible(
        &self,
        state: &mut State,
        page: Page<'_>,
        position: usize,
        value: &mut Vec<u8>,
    ) -> Result<Visibility> {
        self.append_visible_prefix(state, page, position, usize::MAX, value)
    }

    /// Like [`append_visible`](Self::append_visible), but may stop after `limit` bytes of the
    /// value.
    #[inline]
    pub(super) fn append_visible_prefix(
        &self,
        state: &mut State,
        page: Page<'_>,
        position: usize,
        limit: usize,
        value: &mut Vec<u8>,
    ) -> Result<Visibility> {
        let transactions = &self.engine().transactions;
        let record = page.record(position);
        let resolved =
            if transactions.is_visible_to_all(record.version) || state.is_own(record.version) {
                Resolved::InPage
            } else {
                let own = state.own();
                state.reads.contested = true;
                transactions.resolve(record.version, state.snapshot, own, value)?
            };
        let flags = match resolved {
            Resolved::InPage => {
                // The pointer to an overflow chain is needed whole.
                let long = record.flags & OVERFLOW != 0;
                let wanted = if long { usize::MAX } else { limit };
                page.append_to(record.value_offset, record.value_length.min(wanted), value);
                record.flags
            }
            Resolved::Older { flags } => flags,
            Resolved::Absent => return Ok(Visibility::Nothing),
            Resolved::Hidden { version } => return Ok(Visibility::Hidden(version)),
            Resolved::Again => return Ok(Visibility::Again),
        };
        Ok(if flags & TOMBSTONE == 0 { Visibility::Record(flags) } else { Visibility::Nothing })
    }

    /// Appends the value of the version that this transaction sees below a committed change. The
    /// version word of that change was read from a leaf that has been validated since. Returns
    /// [`Visibility::Again`] if a newer change took over what was before this one.
    #[cold]
    pub(super) fn append_version_before(
        &self,
        state: &State,
        version: u64,
        value: &mut Vec<u8>,
    ) -> Result<Visibility> {
        let hidden = self.engine().transactions.resolve_hidden(version, state.snapshot, value)?;
        Ok(match hidden {
            Some(Resolved::Older { flags }) if flags & TOMBSTONE == 0 => Visibility::Record(flags),
            Some(_) => Visibility::Nothing,
            None => Visibility::Again,
        })
    }

    /// Replaces the pointer to an overflow chain by the chain's value.
    #[cold]
    pub(super) fn read_overflow_value(&self, value: &mut Vec<u8>) -> Result<()> {
        let pointer = pointer_of(value);
        read_chain(&self.engine().pool, &pointer, value)
    }
}
