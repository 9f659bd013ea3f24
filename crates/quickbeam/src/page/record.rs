//! Records of a page: reading, inserting, replacing and removing them.
//!
//! A leaf record is eight-byte aligned: `[version word, if versioned] [value length: 2] [value
//! room: 2] [rest of the key after the head] [value]`. The room is the space that the value may
//! grow to in place. A value that shrinks keeps its room until no transaction can roll back to the
//! longer value.
//!
//! An inner record: `[child: 8] [rest of the key after the head]`. The slot holds offset, flags,
//! key length and key head.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::search::{Slot, head_of};
use super::words::{Page, Scratch};
use super::{HEADER_BYTES, PageId, TOMBSTONE};

/// Returns the maximum key length in bytes: a quarter of the page, limited by the slot's 14 bits.
pub fn key_limit(page_size: usize) -> usize {
    (page_size / 4).min((1 << 14) - 1)
}

/// Returns whether a record is stored within a leaf: if key and value have at most a quarter of the
/// page, or if two such records fill a leaf whose fences are as long as their keys.
///
/// Splits rely on both limits. A leaf whose only record is too long for its free space is split at
/// the record's key, which becomes a fence. Then the record, its key and another fence of a quarter
/// of the page fit.
pub fn fits_in_leaf(page_size: usize, key_length: usize, value_length: usize) -> bool {
    let half = (page_size - HEADER_BYTES) / 2;
    let record = (RECORD_OVERHEAD + key_length + value_length).next_multiple_of(8);
    key_length + value_length <= page_size / 4 || record + key_length.next_multiple_of(8) <= half
}

/// The bytes of a versioned leaf record without key and value, slot included; the slot holds the
/// first four bytes of the key.
const RECORD_OVERHEAD: usize = 8 + 8 + 4 - 4;

/// Returns the half word that a record's lengths are stored as.
#[inline]
fn lengths_word(length: usize, room: usize) -> u64 {
    u64::from(length as u16) | u64::from(room as u16) << 16
}

/// A decoded leaf record. Offsets are relative to the page.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef {
    /// The version word; zero if there is none or the version is visible to all.
    pub version: u64,
    /// [`OVERFLOW`](super::OVERFLOW) and [`TOMBSTONE`].
    pub flags: u8,
    /// Offset of the value.
    pub value_offset: usize,
    /// The value's length in the page.
    pub value_length: usize,
}

impl RecordRef {
    /// Returns whether the record is deleted.
    #[inline]
    pub fn is_tombstone(self) -> bool {
        self.flags & TOMBSTONE != 0
    }
}

/// The layout that all records of a leaf share.
#[derive(Clone, Copy, Debug)]
pub struct RecordLayout {
    /// Bytes of the version word.
    head: usize,
}

impl RecordLayout {
    /// Returns the offset of the value in the record of `slot`.
    #[inline]
    pub fn value_start(self, slot: Slot) -> usize {
        self.head + 4 + slot.rest_length()
    }

    /// Returns the version word, the value's length and the words from the record's start on.
    #[inline(always)]
    pub fn record<'a>(self, page: Page<'a>, slot: Slot) -> (u64, usize, &'a [AtomicU64]) {
        let record = page.words_from(slot.offset());
        let word = |at: usize| record.get(at).map_or(0, |word| word.load(Relaxed));
        match self.head {
            0 => (0, word(0) as usize & 0xffff, record),
            _ => (word(0), word(1) as usize & 0xffff, record),
        }
    }
}

impl Page<'_> {
    /// Returns the bytes of the version word in each leaf record: eight or zero.
    #[inline]
    pub(super) fn word_bytes(self) -> usize {
        if self.is_versioned() { 8 } else { 0 }
    }

    /// Returns the leaf record at `position`.
    #[inline]
    pub fn record(self, position: usize) -> RecordRef {
        let slot = self.slot(position);
        let head = self.word_bytes();
        let at = slot.offset();
        RecordRef {
            version: if head == 0 { 0 } else { self.word(at >> 3) },
            flags: slot.flags(),
            value_offset: at + RecordLayout { head }.value_start(slot),
            value_length: self.load2(at + head),
        }
    }

    /// Returns the layout of this leaf's records, to be computed once for a scan.
    #[inline]
    pub fn record_layout(self) -> RecordLayout {
        RecordLayout { head: self.word_bytes() }
    }

    /// Sets the version word of the leaf record at `position`.
    #[inline]
    pub fn set_version(self, position: usize, version: u64) {
        if self.is_versioned() {
            self.set_word(self.slot(position).offset() >> 3, version);
        }
    }

    /// Sets the flags of the record at `position`; its value stays.
    #[inline]
    pub fn set_record_flags(self, position: usize, flags: u8) {
        let slot = self.slot(position);
        self.set_slot(position, Slot((slot.0 & !(3 << 16)) | u64::from(flags) << 16));
        if flags & TOMBSTONE != 0 {
            self.note_tombstone();
        }
    }

    /// Appends the key at `position` to `out`, prefix included.
    pub fn append_key(self, position: usize, out: &mut Vec<u8>) {
        let slot = self.slot(position);
        self.append_to(self.lower_fence().0, self.prefix_length(), out);
        let length = slot.suffix_length();
        let head = slot.head().to_be_bytes();
        out.extend_from_slice(&head[..length.min(4)]);
        self.append_to(self.rest_offset(slot), slot.rest_length(), out);
    }

    /// Returns the size in bytes of the record at `position`.
    #[inline]
    pub fn record_bytes(self, position: usize) -> usize {
        let slot = self.slot(position);
        if self.is_leaf() {
            let head = self.word_bytes() + 4;
            let room = self.load2(slot.offset() + head - 2);
            (head + slot.rest_length() + room).next_multiple_of(8)
        } else {
            (8 + slot.rest_length()).next_multiple_of(8)
        }
    }

    /// Returns the bytes that a leaf record needs, its slot included.
    #[inline]
    pub fn leaf_need(self, key_length: usize, value_length: usize) -> usize {
        let rest = key_length.saturating_sub(self.prefix_length() + 4);
        8 + (self.word_bytes() + 4 + rest + value_length).next_multiple_of(8)
    }

    /// Returns the bytes that a separator needs, its slot included.
    pub fn inner_need(self, key_length: usize) -> usize {
        let rest = key_length.saturating_sub(self.prefix_length() + 4);
        8 + (8 + rest).next_multiple_of(8)
    }

    /// Returns the free bytes between the slots and the records.
    #[inline]
    fn gap(self) -> usize {
        self.heap_start().saturating_sub(HEADER_BYTES + self.count() * 8)
    }

    /// Returns all free bytes, including the space of removed records.
    #[inline]
    pub fn free_bytes(self) -> usize {
        self.fence_start()
            .saturating_sub(HEADER_BYTES + self.count() * 8)
            .saturating_sub(self.live_bytes())
    }

    /// Allocates `bytes` (a multiple of eight) for a record, keeping space for `slots` more slots.
    /// Returns the offset, or `None` if there is not enough space.
    #[inline]
    fn allocate(self, bytes: usize, slots: usize) -> Option<usize> {
        if self.free_bytes() < bytes + slots * 8 {
            return None;
        }
        if self.gap() < bytes + slots * 8 {
            self.compact();
        }
        let at = self.heap_start().checked_sub(bytes)?;
        self.set_heap_start(at);
        self.set_live_bytes(self.live_bytes() + bytes);
        Some(at)
    }

    /// Returns the start and the end of the records, which lie there in any order.
    #[inline]
    pub fn heap(self) -> (usize, usize) {
        let end = self.fence_start().min(self.size());
        (self.heap_start().min(end) & !7, end)
    }

    /// Moves all records together at the page's end.
    fn compact(self) {
        Scratch::with(self.size(), |old| {
            old.copy_from(self);
            let mut at = self.fence_start();
            for position in 0..self.count() {
                let slot = old.slot(position);
                let bytes = old.record_bytes(position);
                let Some(to) = at.checked_sub(bytes) else { break };
                at = to;
                self.copy_words(at / 8, old, slot.offset() / 8, bytes / 8);
                self.set_slot(position, Slot((slot.0 & !0xffff) | at as u64));
            }
            self.set_heap_start(at);
        });
    }

    #[inline]
    fn open_slot(self, position: usize, slot: Slot) {
        let count = self.count();
        let first = HEADER_BYTES / 8 + position;
        self.move_words(first, first + 1, count - position);
        self.set_slot(position, slot);
        self.set_count(count + 1);
    }

    /// Inserts a leaf record. Returns false, changing nothing, if there is no space.
    #[inline]
    pub fn insert_record(
        self,
        position: usize,
        key: &[u8],
        version: u64,
        flags: u8,
        value: &[u8],
    ) -> bool {
        let suffix = key.get(self.prefix_length()..).unwrap_or_default();
        let Some((at, value_at)) = self.open_record(suffix, version, value.len(), value.len())
        else {
            return false;
        };
        self.store_bytes(value_at, value);
        self.enter_record(position, Slot::new(at, flags, suffix.len(), head_of(suffix)));
        true
    }

    /// Allocates a leaf record with `rest` bytes of key and writes its header. Returns its offset,
    /// or `None` if there is no space.
    #[inline(always)]
    fn begin_record(self, rest: usize, version: u64, length: usize, room: usize) -> Option<usize> {
        let head = self.word_bytes();
        let at = self.allocate((head + 4 + rest + room).next_multiple_of(8), 1)?;
        if head != 0 {
            self.set_word(at >> 3, version);
        }
        self.begin_lengths(at + head, length, room);
        Some(at)
    }

    /// Allocates a leaf record and writes everything except its value, which has `length` bytes and
    /// the given `room`. Returns the offsets of the record and of its value, or `None` if there is
    /// no space.
    #[inline(always)]
    fn open_record(
        self,
        suffix: &[u8],
        version: u64,
        length: usize,
        room: usize,
    ) -> Option<(usize, usize)> {
        let rest = suffix.get(4..).unwrap_or_default();
        let at = self.begin_record(rest.len(), version, length, room)?;
        let rest_at = at + self.word_bytes() + 4;
        self.store_bytes(rest_at, rest);
        Some((at, rest_at + rest.len()))
    }

    /// Adds the slot of a leaf record.
    #[inline(always)]
    fn enter_record(self, position: usize, slot: Slot) {
        self.open_slot(position, slot);
        if slot.flags() & TOMBSTONE != 0 {
            self.note_tombstone();
        }
    }

    /// Returns whether a leaf record's value is longer than its room.
    pub(super) fn value_overruns(self, position: usize) -> bool {
        self.is_leaf() && self.record(position).value_length > self.value_room(position)
    }

    /// Returns the space that the value at `position` may grow to in place.
    pub(super) fn value_room(self, position: usize) -> usize {
        self.load2(self.slot(position).offset() + self.word_bytes() + 2)
    }

    /// Appends the leaf record at `position` of a page with another prefix; its value keeps its
    /// room. Returns false if there is no space.
    pub(super) fn append_record_of(self, source: Page<'_>, position: usize, key: &[u8]) -> bool {
        let record = source.record(position);
        let length = record.value_length;
        let room = source.value_room(position).max(length);
        let suffix = key.get(self.prefix_length()..).unwrap_or_default();
        let Some((at, value_at)) = self.open_record(suffix, record.version, length, room) else {
            return false;
        };
        self.store_from(value_at, source, record.value_offset, length);
        if room > length {
            self.store_bytes(value_at + length, &vec![0; room - length]);
        }
        let slot = Slot::new(at, record.flags, suffix.len(), head_of(suffix));
        self.enter_record(self.count(), slot);
        true
    }

    /// Appends leaf records `range` of a page whose prefix is `more` bytes shorter, and writes the
    /// header once, at the end. Returns false if there is no space.
    pub(super) fn append_records(self, source: Page<'_>, range: Range<usize>, more: usize) -> bool {
        let head = source.word_bytes();
        let (first, end) = (self.count(), self.heap_start());
        let count = first + range.len();
        let lowest = HEADER_BYTES + count * 8;
        let (mut at, mut tombstones) = (end, 0);
        for (position, to) in range.zip(first..) {
            let slot = source.slot(position);
            let lengths = source.load4(slot.offset() + head);
            let (length, mut room) = (lengths & 0xffff, lengths >> 16);
            let suffix = slot.suffix_length().saturating_sub(more);
            let rest = suffix.saturating_sub(4);
            if more > 0 {
                room = room.max(length);
            }
            let bytes = (head + 4 + rest + room).next_multiple_of(8);
            if at < lowest + bytes {
                return false;
            }
            at -= bytes;
            if more == 0 {
                self.copy_words(at / 8, source, slot.offset() / 8, bytes / 8);
                self.set_slot(to, Slot((slot.0 & !0xffff) | at as u64));
            } else {
                if head != 0 {
                    self.set_word(at >> 3, source.word(slot.offset() >> 3));
                }
                self.begin_lengths(at + head, length, room);
                let from = slot.offset() + head + 4 + slot.rest_length() - rest;
                self.store_from(at + head + 4, source, from, rest + room);
                let key_head = source.later_head(slot, more, suffix);
                self.set_slot(to, Slot::new(at, slot.flags(), suffix, key_head));
            }
            tombstones += usize::from(slot.flags() & TOMBSTONE != 0);
        }
        self.set_count(count);
        self.set_heap_start(at);
        self.set_live_bytes(self.live_bytes() + end - at);
        self.note_tombstones(tombstones);
        true
    }

    /// Returns the head of the key of a leaf record without the first `more` bytes of its suffix:
    /// of the `length` bytes that are left.
    #[inline]
    fn later_head(self, slot: Slot, more: usize, length: usize) -> u32 {
        // The new head takes the bytes after the old head from the record.
        let rest = self.load8(self.rest_offset(slot) + more.saturating_sub(4)).swap_bytes();
        let head = match more {
            ..4 => (u64::from(slot.head()) << 32 | rest >> 32) << (more * 8) >> 32,
            _ => rest >> 32,
        };
        let beyond = u32::MAX.checked_shr(length as u32 * 8).unwrap_or(0);
        head as u32 & !beyond
    }

    /// Writes the lengths of a new record at `at`, a multiple of eight. The other half of the word
    /// becomes zero, which spares a read of memory that is rarely in the processor's cache.
    #[inline]
    fn begin_lengths(self, at: usize, length: usize, room: usize) {
        self.set_word(at >> 3, lengths_word(length, room));
    }

    /// Replaces the lengths of a record at `at`, a multiple of eight.
    #[inline]
    fn set_lengths(self, at: usize, length: usize, room: usize) {
        let others = self.word(at >> 3) >> 32 << 32;
        self.set_word(at >> 3, others | lengths_word(length, room));
    }

    /// Replaces value, version and flags of the leaf record at `position`. Returns false if there
    /// is no space. A value that shrinks in a transaction keeps its room until
    /// [`purge`](Self::purge), so that rolling back always succeeds.
    #[inline]
    pub fn replace_record(self, position: usize, version: u64, flags: u8, value: &[u8]) -> bool {
        let slot = self.slot(position);
        let head = self.word_bytes();
        let rest = slot.rest_length();
        let mut at = slot.offset();
        let before = (at, self.load2(at + head), self.load2(at + head + 2));
        let (_, _, mut room) = before;
        if value.len() > room {
            let old_bytes = self.record_bytes(position);
            let bytes = (head + 4 + rest + value.len()).next_multiple_of(8);
            if self.free_bytes() + old_bytes < bytes {
                return false;
            }
            let mut key_rest = Vec::with_capacity(rest);
            self.append_to(at + head + 4, rest, &mut key_rest);
            self.set_live_bytes(self.live_bytes().saturating_sub(old_bytes));
            let Some(new) = self.allocate_replacement(position, bytes) else { return false };
            at = new;
            room = value.len();
            self.store_bytes(at + head + 4, &key_rest);
        } else if version == 0 && value.len() < room {
            self.shrink_room(position, value.len());
            room = value.len();
        }
        if head != 0 {
            self.set_word(at >> 3, version);
        }
        if (at, value.len(), room) != before {
            self.set_lengths(at + head, value.len(), room);
        }
        self.store_bytes(at + head + 4 + rest, value);
        self.set_slot(position, Slot((slot.0 & !0x3_ffff) | at as u64 | u64::from(flags) << 16));
        if flags & TOMBSTONE != 0 {
            self.note_tombstone();
        }
        true
    }

    /// Returns whether [`replace_record`](Self::replace_record) has space for a value of that
    /// length.
    #[inline]
    pub fn can_replace(self, position: usize, length: usize) -> bool {
        if length <= self.value_room(position) {
            return true;
        }
        let rest = self.slot(position).rest_length();
        let bytes = (self.word_bytes() + 4 + rest + length).next_multiple_of(8);
        self.free_bytes() + self.record_bytes(position) >= bytes
    }

    /// Reduces the record's room to `room` bytes.
    fn shrink_room(self, position: usize, room: usize) {
        let at = self.slot(position).offset() + self.word_bytes();
        if self.load2(at + 2) == room {
            return;
        }
        let before = self.record_bytes(position);
        self.set_lengths(at, self.load2(at), room);
        let after = self.record_bytes(position);
        self.set_live_bytes((self.live_bytes() + after).saturating_sub(before));
    }

    /// Allocates a record that replaces the one at `position`, whose bytes no longer count as live.
    fn allocate_replacement(self, position: usize, bytes: usize) -> Option<usize> {
        if self.gap() < bytes {
            // Compaction copies all records that slots refer to, so the old slot is removed
            // meanwhile.
            let slot = self.slot(position);
            let count = self.count();
            let first = HEADER_BYTES / 8 + position;
            self.move_words(first + 1, first, count - position - 1);
            self.set_count(count - 1);
            self.compact();
            self.open_slot(position, slot);
        }
        self.allocate(bytes, 0)
    }

    /// Inserts a separator with the child to its right. Returns false if there is no space.
    pub fn insert_separator(self, position: usize, key: &[u8], child: PageId) -> bool {
        let shared = self.shared_with(key);
        let is_there = self.place_separator(position, key, child);
        if is_there {
            self.set_shared_length(shared);
        }
        is_there
    }

    /// Like [`insert_separator`](Self::insert_separator), without updating the shared length.
    pub(super) fn place_separator(self, position: usize, key: &[u8], child: PageId) -> bool {
        let suffix = key.get(self.prefix_length()..).unwrap_or_default();
        let rest = suffix.get(4..).unwrap_or_default();
        let Some(at) = self.allocate((8 + rest.len()).next_multiple_of(8), 1) else {
            return false;
        };
        self.set_word(at >> 3, child);
        self.store_bytes(at + 8, rest);
        self.open_slot(position, Slot::new(at, 0, suffix.len(), head_of(suffix)));
        true
    }

    /// Removes the record or separator at `position`.
    #[inline]
    pub fn remove(self, position: usize) {
        let count = self.count();
        self.set_live_bytes(self.live_bytes().saturating_sub(self.record_bytes(position)));
        let first = HEADER_BYTES / 8 + position;
        self.move_words(first + 1, first, count - position - 1);
        self.set_count(count - 1);
        if count == 1 {
            self.set_heap_start(self.fence_start());
            self.set_live_bytes(0);
        }
    }

    /// Removes tombstones whose version is visible to all, in one pass over the slots.
    pub fn remove_dead(self, is_visible_to_all: impl Fn(u64) -> bool) {
        let count = self.count();
        let mut kept = 0;
        let mut tombstones = 0;
        let mut live = self.live_bytes();
        for position in 0..count {
            let slot = self.slot(position);
            if slot.flags() & TOMBSTONE != 0 {
                if is_visible_to_all(self.record(position).version) {
                    live = live.saturating_sub(self.record_bytes(position));
                    continue;
                }
                tombstones += 1;
            }
            if kept != position {
                self.set_slot(kept, slot);
            }
            kept += 1;
        }
        self.set_count(kept);
        self.set_live_bytes(live);
        if kept == 0 {
            self.set_heap_start(self.fence_start());
            self.set_live_bytes(0);
        }
        self.set_tombstones(tombstones);
    }

    /// Clears version words that are visible to all, removes their tombstones, and releases the
    /// space kept for rolling back.
    pub fn purge(self, is_visible_to_all: impl Fn(u64) -> bool) {
        let mut tombstones = 0;
        for position in (0..self.count()).rev() {
            let record = self.record(position);
            if record.version != 0 && !is_visible_to_all(record.version) {
                tombstones += usize::from(record.is_tombstone());
            } else if record.is_tombstone() {
                self.remove(position);
            } else if record.version != 0 {
                self.set_version(position, 0);
                self.shrink_room(position, record.value_length);
            }
        }
        self.set_tombstones(tombstones);
    }
}
