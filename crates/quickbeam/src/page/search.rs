//! Finding a key in a page: binary search over the key heads in the slots.

use std::cmp::Ordering;

use super::words::{Page, big_endian};
use super::{HEADER_BYTES, PageId};

/// A slot, unpacked from its word: `[offset:16 | flags:2, length:14 | head:32]` from the low bits up.
#[derive(Clone, Copy)]
pub struct Slot(pub u64);

impl Slot {
    /// Packs a slot. `offset` is in bytes, `length` that of the key after the prefix, of which `head` is the start.
    #[inline]
    pub fn new(offset: usize, flags: u8, length: usize, head: u32) -> Slot {
        Slot(
            (offset as u64)
                | u64::from(flags) << 16
                | (length as u64 & 0x3fff) << 18
                | u64::from(head) << 32,
        )
    }

    /// Where the record is, in bytes from the page's start.
    #[inline]
    pub fn offset(self) -> usize {
        self.0 as usize & 0xffff
    }

    /// [`OVERFLOW`](super::OVERFLOW) and [`TOMBSTONE`](super::TOMBSTONE).
    #[inline]
    pub fn flags(self) -> u8 {
        (self.0 >> 16) as u8 & 3
    }

    /// Length of the key after the page's prefix.
    #[inline]
    pub fn suffix_length(self) -> usize {
        (self.0 >> 18) as usize & 0x3fff
    }

    /// The first four bytes of the key after the page's prefix.
    #[inline]
    pub fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Length of what is left of the key in the record, after prefix and head.
    #[inline]
    pub fn rest_length(self) -> usize {
        self.suffix_length().saturating_sub(4)
    }
}

/// The head of a key suffix.
#[inline]
pub fn head_of(suffix: &[u8]) -> u32 {
    (big_endian(suffix) >> 32) as u32
}

impl Page<'_> {
    /// The slot at `position`.
    #[inline]
    pub fn slot(self, position: usize) -> Slot {
        Slot(self.word(HEADER_BYTES / 8 + position))
    }

    #[inline]
    pub(super) fn set_slot(self, position: usize, slot: Slot) {
        self.set_word(HEADER_BYTES / 8 + position, slot.0);
    }

    /// Offset, within the page, of the key's bytes that come after the head.
    #[inline]
    pub(super) fn rest_offset(self, slot: Slot) -> usize {
        if self.is_leaf() { slot.offset() + self.word_bytes() + 4 } else { slot.offset() + 8 }
    }

    /// Orders the key at `position` against a suffix with that head.
    #[inline]
    fn compare_suffix(self, position: usize, head: u32, suffix: &[u8]) -> Ordering {
        let slot = self.slot(position);
        match slot.head().cmp(&head) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
        let length = slot.suffix_length();
        if length <= 4 || suffix.len() <= 4 {
            // Equal heads and one of them is the whole key: what is longer is greater.
            return length.cmp(&suffix.len());
        }
        self.compare(self.rest_offset(slot), length - 4, &suffix[4..])
    }

    /// The part of `key` after the page's prefix. The key lies within the fences, so it has that prefix (BTREE-1).
    #[inline]
    fn suffix_of(self, key: &[u8]) -> &[u8] {
        key.get(self.prefix_length()..).unwrap_or_default()
    }

    /// Where `key` is, or where it would be.
    #[inline]
    pub fn search(self, key: &[u8]) -> Result<usize, usize> {
        let suffix = self.suffix_of(key);
        let head = head_of(suffix);
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.compare_suffix(middle, head, suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// As [`search`](Self::search), looking first at `hint`, where the key is when keys come one after the other.
    #[inline]
    pub fn search_near(self, key: &[u8], hint: usize) -> Result<usize, usize> {
        let suffix = self.suffix_of(key);
        let head = head_of(suffix);
        let count = self.count();
        if hint < count {
            match self.compare_suffix(hint, head, suffix) {
                Ordering::Equal => return Ok(hint),
                Ordering::Less => return self.search(key),
                Ordering::Greater => {}
            }
        }
        if hint > count {
            return self.search(key);
        }
        if hint == 0 || self.compare_suffix(hint - 1, head, suffix) == Ordering::Less {
            return Err(hint);
        }
        self.search(key)
    }

    /// Whether every key is greater than the one before, and all lie within the fences. Copies two keys at most.
    pub(super) fn is_ordered(self) -> bool {
        let count = self.count();
        let follows = |position: usize| {
            let (before, after) = (self.slot(position - 1), self.slot(position));
            let (short, long) = (before.suffix_length(), after.suffix_length());
            match before.head().cmp(&after.head()) {
                Ordering::Less => true,
                Ordering::Greater => false,
                // Equal heads and one of them is the whole key: what is longer is greater.
                Ordering::Equal if short <= 4 || long <= 4 => short < long,
                Ordering::Equal => {
                    let (one, other) = (self.rest_offset(before), self.rest_offset(after));
                    self.compare_parts(one, short - 4, other, long - 4) == Ordering::Less
                }
            }
        };
        // The head of a key shorter than a head is filled with zeros: it sorts as the key does.
        let filled = |position: usize| {
            let slot = self.slot(position);
            let length = slot.suffix_length() as u32;
            length >= 4 || slot.head() & u32::MAX.checked_shr(length * 8).unwrap_or(0) == 0
        };
        let covers = |position: usize| {
            let mut key = Vec::new();
            self.append_key(position, &mut key);
            self.covers(&key)
        };
        count == 0
            || ((1..count).all(follows)
                && (0..count).all(filled)
                && (!self.is_fenced() || (covers(0) && covers(count - 1))))
    }

    /// Whether `key` lies within the page's fences.
    #[inline]
    pub fn covers(self, key: &[u8]) -> bool {
        let (offset, length) = self.lower_fence();
        if self.compare(offset, length, key) == Ordering::Greater {
            return false;
        }
        let (offset, length) = self.upper_fence();
        self.is_open_end() || self.compare(offset, length, key) == Ordering::Greater
    }

    /// Whether `key` begins with the page's prefix.
    #[inline]
    pub fn has_prefix_of(self, key: &[u8]) -> bool {
        let prefix = self.prefix_length();
        match key.get(..prefix) {
            Some(start) => self.holds(self.lower_fence().0, start),
            None => false,
        }
    }

    /// The child of an inner page to go to for `key`.
    #[inline]
    pub fn child_for(self, key: &[u8]) -> PageId {
        let position = match self.search(key) {
            Ok(position) => position + 1,
            Err(position) => position,
        };
        self.child_at(position)
    }

    /// The child of an inner page that holds the greatest key less than `key`; the last child for no key.
    pub fn child_before(self, key: Option<&[u8]>) -> PageId {
        let position = match key {
            None => self.count(),
            Some(key) => self.search(key).unwrap_or_else(|position| position),
        };
        self.child_at(position)
    }

    /// The child number `index` of an inner page: 0 is left of the first separator.
    #[inline]
    pub fn child_at(self, index: usize) -> PageId {
        if index == 0 { self.link() } else { self.word(self.slot(index - 1).offset() >> 3) }
    }
}
