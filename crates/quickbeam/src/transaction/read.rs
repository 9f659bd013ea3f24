//! Point reads: find the record and the version of it that the snapshot sees.
//!
//! - READ-1: a read finishes under any load of writers. Between finding a leaf and validating it,
//!   it only looks at the leaf's records and at changes of unfinished writers; versions before
//!   committed changes are looked up afterwards. After a few failed tries it takes the latch
//!   ([`Tries`]). (by test `scan_of_a_busy_leaf_ends`)

use super::{State, Transaction};
use crate::access::btree::{LeafHint, Tree};
use crate::access::overflow::{pointer_of, read_chain};
use crate::buffer::Tries;
use crate::error::Result;
use crate::mvcc::{Resolved, Timestamp};
use crate::page::{OVERFLOW, Page, TOMBSTONE};

/// What a transaction sees at a position of a leaf. Counts only once the leaf was validated.
pub(super) enum Sight {
    /// A record with these flags; its value was appended to the output.
    Record(u8),
    /// No record.
    Nothing,
    /// What [`Transaction::see_hidden`] finds, once the leaf was validated, before the change with
    /// this version word.
    Hidden(u64),
    /// The leaf changed: look again.
    Again,
}

impl Transaction {
    /// Looks a record up. Its value replaces what is in `value`; false when there is none to be
    /// seen.
    pub(super) fn read(&self, tree: Tree, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let state = &mut *self.state.borrow_mut();
        let found = self.read_in(state, tree, key, value);
        self.unless_expired(found)
    }

    /// About how many records a tree has.
    pub(super) fn estimate(&self, tree: Tree, way: f64) -> Result<f64> {
        self.unless_expired(tree.estimate(&self.inner().pool, way))
    }

    pub(super) fn read_in(
        &self,
        state: &mut State,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut tries = Tries::default();
        loop {
            let (guard, found) = tree.locate(&self.inner().pool, key, state.leaf_hints.of(tree))?;
            let Some(attempt) = tries.begin(guard) else { continue };
            let mut sight = match found {
                Err(_) => Sight::Nothing,
                Ok(position) => self.see_only(state, guard.page, position, value),
            };
            if matches!(sight, Sight::Again) || !attempt.validate() {
                continue;
            }
            if let Sight::Hidden(version) = sight {
                sight = self.see_hidden(state, version, value);
                if matches!(sight, Sight::Again) {
                    continue;
                }
            }
            if self.tracks_reads() {
                state.reads.point(tree, key, guard.id, guard.content_version());
            }
            let Sight::Record(flags) = sight else {
                value.clear();
                return Ok(false);
            };
            if flags & OVERFLOW != 0 {
                self.fetch_long(value)?;
            }
            return Ok(true);
        }
    }

    /// Returns the newest committed value of a record, independent of the snapshot and of this
    /// transaction's own changes.
    pub(super) fn read_newest_committed(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut leaf_hint = LeafHint::default();
        let mut value = Vec::new();
        let mut tries = Tries::default();
        loop {
            let (guard, found) = tree.locate(&self.inner().pool, key, &mut leaf_hint)?;
            let Some(attempt) = tries.begin(guard) else { continue };
            value.clear();
            let mut flags = TOMBSTONE;
            let mut again = false;
            if let Ok(position) = found {
                let record = guard.page.record(position);
                match self.inner().registry.resolve(
                    record.version,
                    Timestamp::MAX,
                    None,
                    &mut value,
                ) {
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

    /// As [`see`](Self::see), in place of what is in `value`.
    #[inline]
    fn see_only(
        &self,
        state: &mut State,
        page: Page<'_>,
        position: usize,
        value: &mut Vec<u8>,
    ) -> Sight {
        let record = page.record(position);
        if !self.inner().registry.is_visible_to_all(record.version) && !state.is_own(record.version)
        {
            value.clear();
            return self.see(state, page, position, value);
        }
        page.assign_to(record.value_offset, record.value_length, value);
        if record.is_tombstone() { Sight::Nothing } else { Sight::Record(record.flags) }
    }

    /// The version of the record at `position` that this transaction sees (TXN-1).
    #[inline]
    pub(super) fn see(
        &self,
        state: &mut State,
        page: Page<'_>,
        position: usize,
        value: &mut Vec<u8>,
    ) -> Sight {
        self.see_start(state, page, position, usize::MAX, value)
    }

    /// As [`see`](Self::see), but of a value no more than `limit` bytes are needed.
    #[inline]
    pub(super) fn see_start(
        &self,
        state: &mut State,
        page: Page<'_>,
        position: usize,
        limit: usize,
        value: &mut Vec<u8>,
    ) -> Sight {
        let registry = &self.inner().registry;
        let record = page.record(position);
        let resolved = if registry.is_visible_to_all(record.version) || state.is_own(record.version)
        {
            Resolved::InPage
        } else {
            let own = state.own();
            state.reads.contested = true;
            registry.resolve(record.version, state.snapshot, own, value)
        };
        let flags = match resolved {
            Resolved::InPage => {
                // A pointer to pages of its own is needed whole.
                let long = record.flags & OVERFLOW != 0;
                let wanted = if long { usize::MAX } else { limit };
                page.append_to(record.value_offset, record.value_length.min(wanted), value);
                record.flags
            }
            Resolved::Older { flags } => flags,
            Resolved::Absent => return Sight::Nothing,
            Resolved::Hidden { version } => return Sight::Hidden(version),
            Resolved::Again => return Sight::Again,
        };
        if flags & TOMBSTONE == 0 { Sight::Record(flags) } else { Sight::Nothing }
    }

    /// The version that this transaction sees before the committed change with that version word,
    /// found in a leaf that has been validated since. Its value is appended to `value`.
    /// [`Sight::Again`] if a newer change took over what was before this one.
    #[cold]
    pub(super) fn see_hidden(&self, state: &State, version: u64, value: &mut Vec<u8>) -> Sight {
        match self.inner().registry.resolve_hidden(version, state.snapshot, value) {
            Some(Resolved::Older { flags }) if flags & TOMBSTONE == 0 => Sight::Record(flags),
            Some(_) => Sight::Nothing,
            None => Sight::Again,
        }
    }

    /// Replaces a pointer to overflow pages by what they hold.
    #[cold]
    pub(super) fn fetch_long(&self, value: &mut Vec<u8>) -> Result<()> {
        let pointer = pointer_of(value);
        read_chain(&self.inner().pool, &pointer, value)
    }
}
