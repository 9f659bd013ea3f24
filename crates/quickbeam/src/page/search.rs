//! Key search in a page: binary search over the key heads in the slots.

use std::cmp::Ordering;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::header::common_prefix;
use super::words::{Page, big_endian};
use super::{HEADER_BYTES, PageId};

/// Slots that [`Page::search_spread`] examines before it searches the whole page.
const SPREAD_STEPS: usize = 16;

/// Records that [`Page::fetch_alike`] loads.
const FETCHED_ALIKE: usize = 8;

/// A slot, encoded in a word: `[offset:16 | flags:2, length:14 | head:32]` from the low bits up.
#[derive(Clone, Copy)]
pub struct Slot(pub u64);

impl Slot {
    /// Encodes a slot. `offset` is in bytes; `length` is the length of the key after the prefix,
    /// and `head` its first bytes.
    #[inline]
    pub fn new(offset: usize, flags: u8, length: usize, head: u32) -> Slot {
        Slot(
            (offset as u64)
                | u64::from(flags) << 16
                | (length as u64 & 0x3fff) << 18
                | u64::from(head) << 32,
        )
    }

    /// Returns the record's offset in bytes from the page's start.
    #[inline]
    pub fn offset(self) -> usize {
        self.0 as usize & 0xffff
    }

    /// Returns [`OVERFLOW`](super::OVERFLOW) and [`TOMBSTONE`](super::TOMBSTONE).
    #[inline]
    pub fn flags(self) -> u8 {
        (self.0 >> 16) as u8 & 3
    }

    /// Returns the length of the key after the page's prefix.
    #[inline]
    pub fn suffix_length(self) -> usize {
        (self.0 >> 18) as usize & 0x3fff
    }

    /// Returns the first four bytes of the key after the page's prefix.
    #[inline]
    pub fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the length of the key's rest in the record, after prefix and head.
    #[inline]
    pub fn rest_length(self) -> usize {
        self.suffix_length().saturating_sub(4)
    }
}

/// Returns the first position from `first` on whose slot is not less. The direction of each step is
/// unpredictable, so a step is a comparison and an addition without a branch.
#[inline(always)]
fn first_not_less(slots: &[AtomicU64], first: usize, is_less: impl Fn(Slot) -> bool) -> usize {
    let is_less = |at: usize| {
        let slot = slots.get(at).map_or(u64::MAX, |slot| slot.load(Relaxed));
        usize::from(is_less(Slot(slot)))
    };
    let (mut low, mut left) = (first, slots.len().saturating_sub(first));
    while left > 1 {
        let half = left / 2;
        low += half & 0usize.wrapping_sub(is_less(low + half - 1));
        left -= half;
    }
    low + is_less(low)
}

/// Returns the head of a key suffix.
#[inline]
pub fn head_of(suffix: &[u8]) -> u32 {
    (big_endian(suffix) >> 32) as u32
}

impl<'a> Page<'a> {
    /// Returns the slot at `position`.
    #[inline]
    pub fn slot(self, position: usize) -> Slot {
        Slot(self.word(HEADER_BYTES / 8 + position))
    }

    /// Returns the words of the slots, limited to the page (PAGE-1).
    #[inline]
    fn slots(self) -> &'a [AtomicU64] {
        let words = self.words_from(HEADER_BYTES);
        words.get(..self.count()).unwrap_or(words)
    }

    #[inline]
    pub(super) fn set_slot(self, position: usize, slot: Slot) {
        self.set_word(HEADER_BYTES / 8 + position, slot.0);
    }

    /// Returns the offset of the key's bytes after the head.
    #[inline]
    pub(super) fn rest_offset(self, slot: Slot) -> usize {
        if self.is_leaf() { slot.offset() + self.word_bytes() + 4 } else { slot.offset() + 8 }
    }

    /// Compares the key at `position` with a suffix that has that head.
    #[inline]
    fn compare_suffix(self, position: usize, head: u32, suffix: &[u8]) -> Ordering {
        let slot = self.slot(position);
        match slot.head().cmp(&head) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
        let length = slot.suffix_length();
        if length <= 4 || suffix.len() <= 4 {
            // Equal heads, and one of them is the whole key: the longer key is greater.
            return length.cmp(&suffix.len());
        }
        self.compare(self.rest_offset(slot), length - 4, &suffix[4..])
    }

    /// Returns the part of `key` after the page's prefix. The key lies within the fences, so it has
    /// that prefix (BTREE-1).
    #[inline]
    fn suffix_of(self, key: &[u8]) -> &[u8] {
        key.get(self.prefix_length()..).unwrap_or_default()
    }

    /// Binary search from `first` on. Returns the position that `order` calls equal, or the
    /// position for an insertion.
    #[inline(always)]
    fn bisect(self, first: usize, order: impl Fn(usize) -> Ordering) -> Result<usize, usize> {
        let (mut low, mut high) = (first, self.count());
        while low < high {
            let middle = usize::midpoint(low, high);
            match order(middle) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Compares the first `shared` bytes, which all separators share, with those of a suffix; the
    /// suffix is less if it ends within them.
    fn compare_shared(self, shared: usize, suffix: &[u8]) -> Ordering {
        let first = self.slot(0);
        match first.head().cmp(&head_of(suffix)) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
        let end = shared.min(suffix.len());
        self.compare(self.rest_offset(first), shared - 4, suffix.get(4..end).unwrap_or_default())
    }

    /// [`search`](Self::search) among separators that share their first `shared` bytes, more than a
    /// head. These bytes are compared once, not once for each separator. A root needs this, because
    /// it has no fences and so no prefix.
    fn search_behind(self, shared: usize, suffix: &[u8]) -> Result<usize, usize> {
        match self.compare_shared(shared, suffix) {
            Ordering::Greater => return Err(0),
            Ordering::Less => return Err(self.count()),
            Ordering::Equal => {}
        }
        let tail = suffix.get(shared..).unwrap_or_default();
        let number = big_endian(tail);
        let order = |slot: Slot| {
            let length = slot.suffix_length().saturating_sub(shared);
            let offset = slot.offset() + 8 + shared - 4;
            match self.number_at(offset, length).cmp(&number) {
                Ordering::Equal if length <= 8 || tail.len() <= 8 => length.cmp(&tail.len()),
                Ordering::Equal => self.compare(offset, length, tail),
                unequal => unequal,
            }
        };
        self.bisect(0, |position| order(self.slot(position)))
    }

    /// Returns the first eight of the `length` bytes at `offset` as a big-endian number, padded
    /// with zeros.
    #[inline]
    fn number_at(self, offset: usize, length: usize) -> u64 {
        // Masks out the bytes after the last one.
        let beyond = u64::MAX.checked_shr(length as u32 * 8).unwrap_or(0);
        self.load8(offset).swap_bytes() & !beyond
    }

    /// Returns the length of the common prefix of `suffix` and the key suffix at `position`.
    fn alike(self, position: usize, suffix: &[u8]) -> usize {
        let slot = self.slot(position);
        let mut ours = slot.head().to_be_bytes()[..slot.suffix_length().min(4)].to_vec();
        self.append_to(self.rest_offset(slot), slot.rest_length(), &mut ours);
        common_prefix(&ours, suffix)
    }

    /// Returns the shared length of the separators, as far as it is stored, and `key`.
    pub(super) fn shared_with(self, key: &[u8]) -> usize {
        let suffix = self.suffix_of(key);
        match (self.count(), self.shared_length()) {
            (0, _) => suffix.len(),
            (_, 0) => 0,
            (_, shared) => shared.min(self.alike(0, suffix)),
        }
    }

    /// Computes the shared length of all separators. They are ordered, so the first and the last
    /// determine it.
    fn in_common(self) -> usize {
        let Some(last) = self.count().checked_sub(1) else { return 0 };
        let mut key = Vec::new();
        self.append_key(last, &mut key);
        self.alike(0, self.suffix_of(&key))
    }

    /// Stores the shared length of the separators, which are complete.
    pub(super) fn share_among(self) {
        self.set_shared_length(self.in_common());
    }

    /// Returns whether the stored shared length is valid for the separators.
    fn is_shared(self) -> bool {
        match self.shared_length() {
            0 => true,
            shared => !self.is_leaf() && shared <= self.in_common(),
        }
    }

    /// Returns the first position whose head is not less than `head`.
    #[inline]
    fn first_head(self, head: u32) -> usize {
        first_not_less(self.slots(), 0, |slot| slot.head() < head)
    }

    /// Loads the records that [`search`](Self::search) compares with `key` into the processor's
    /// cache: those with the key's head. Keys of several columns often differ only after it.
    pub fn fetch_alike(self, key: &[u8]) {
        if self.shared_length() > 4 {
            return;
        }
        let head = head_of(self.suffix_of(key));
        let first = self.first_head(head);
        let slots = (first..self.count()).map(|position| self.slot(position));
        let alike = slots.take_while(|slot| slot.head() == head).take(FETCHED_ALIKE);
        let words = alike.map(|slot| self.word(self.rest_offset(slot) >> 3));
        std::hint::black_box(words.fold(0, |all, word| all | word));
    }

    /// Returns the first position from `first` on whose head and following eight bytes are not
    /// less.
    #[inline]
    fn first_tail(self, first: usize, head: u32, number: u64) -> usize {
        first_not_less(self.slots(), first, |slot| {
            let behind = || self.number_at(self.rest_offset(slot), slot.rest_length());
            slot.head() < head || (slot.head() == head && behind() < number)
        })
    }

    /// Returns the position of `key`, or the position for inserting it as an error.
    #[inline]
    pub fn search(self, key: &[u8]) -> Result<usize, usize> {
        let suffix = self.suffix_of(key);
        let shared = self.shared_length();
        if shared > 4 {
            return self.search_behind(shared, suffix);
        }
        let head = head_of(suffix);
        let count = self.count();
        // Keys that arrive in order belong after the last one.
        if self.is_open_end()
            && self.is_leaf()
            && count > 0
            && self.compare_suffix(count - 1, head, suffix) == Ordering::Less
        {
            return Err(count);
        }
        // The head usually decides: the first slot whose head is not less is the key, or the key is
        // absent. Otherwise the next eight bytes decide, and only then the rest of the key.
        let mut first = self.first_head(head);
        let mut is_by_tail = false;
        while first < count {
            match self.compare_suffix(first, head, suffix) {
                Ordering::Equal => return Ok(first),
                Ordering::Greater => return Err(first),
                Ordering::Less if is_by_tail => {
                    let order = |position| self.compare_suffix(position, head, suffix);
                    return self.bisect(first + 1, order);
                }
                Ordering::Less => {
                    let number = big_endian(suffix.get(4..).unwrap_or_default());
                    first = self.first_tail(first + 1, head, number);
                    is_by_tail = true;
                }
            }
        }
        Err(count)
    }

    /// Like [`search`](Self::search), but first examines `hint`, where the key is in a sequential
    /// scan, and the position before it, where a repeated key is.
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
        let Some(before) = hint.checked_sub(1) else { return Err(hint) };
        match self.compare_suffix(before, head, suffix) {
            Ordering::Less => Err(hint),
            Ordering::Equal => Ok(before),
            Ordering::Greater => self.search(key),
        }
    }

    /// Like [`search`](Self::search), for evenly distributed keys such as hash values: first
    /// examines the interpolated position, then its neighbors.
    #[inline]
    pub fn search_spread(self, key: &[u8]) -> Result<usize, usize> {
        let suffix = self.suffix_of(key);
        let head = head_of(suffix);
        let Some(last) = self.count().checked_sub(1) else { return Err(0) };
        let lowest = self.slot(0).head();
        let spread = self.slot(last).head().saturating_sub(lowest).max(1);
        let way = head.saturating_sub(lowest) as f32 / spread as f32;
        let mut at = ((way * last as f32) as usize).min(last);
        let start = self.compare_suffix(at, head, suffix);
        let mut order = start;
        for _ in 0..SPREAD_STEPS {
            if order == Ordering::Equal {
                return Ok(at);
            }
            if order != start {
                // The position where the key would be was passed.
                return Err(if order == Ordering::Less { at + 1 } else { at });
            }
            match order {
                Ordering::Less if at >= last => return Err(last + 1),
                Ordering::Less => at += 1,
                _ if at == 0 => return Err(0),
                _ => at -= 1,
            }
            order = self.compare_suffix(at, head, suffix);
        }
        self.search(key)
    }

    /// Returns whether the keys are in order and within the fences. Copies at most two keys.
    pub(super) fn is_ordered(self) -> bool {
        let count = self.count();
        let follows = |position: usize| {
            let (before, after) = (self.slot(position - 1), self.slot(position));
            let (short, long) = (before.suffix_length(), after.suffix_length());
            match before.head().cmp(&after.head()) {
                Ordering::Less => true,
                Ordering::Greater => false,
                // Equal heads, and one of them is the whole key: the longer key is greater.
                Ordering::Equal if short <= 4 || long <= 4 => short < long,
                Ordering::Equal => {
                    let (one, other) = (self.rest_offset(before), self.rest_offset(after));
                    self.compare_parts(one, short - 4, other, long - 4) == Ordering::Less
                }
            }
        };
        // The head of a key shorter than four bytes is padded with zeros, so it sorts like the key.
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
                && self.is_shared()
                && (!self.is_fenced() || (covers(0) && covers(count - 1))))
    }

    /// Returns whether `key` lies within the page's fences.
    #[inline]
    pub fn covers(self, key: &[u8]) -> bool {
        let (offset, length) = self.lower_fence();
        if self.compare(offset, length, key) == Ordering::Greater {
            return false;
        }
        let (offset, length) = self.upper_fence();
        self.is_open_end() || self.compare(offset, length, key) == Ordering::Greater
    }

    /// Returns whether `key` is the page's lower fence.
    #[inline]
    pub fn starts_with_key(self, key: &[u8]) -> bool {
        let (offset, length) = self.lower_fence();
        self.compare(offset, length, key) == Ordering::Equal
    }

    /// Returns whether the page ends just below `key`: whether its upper fence is the key.
    #[inline]
    pub fn ends_with_key(self, key: &[u8]) -> bool {
        let (offset, length) = self.upper_fence();
        !self.is_open_end() && self.compare(offset, length, key) == Ordering::Equal
    }

    /// Returns whether `key` begins with the page's prefix.
    #[inline]
    pub fn has_prefix_of(self, key: &[u8]) -> bool {
        let prefix = self.prefix_length();
        match key.get(..prefix) {
            Some(start) => self.holds(self.lower_fence().0, start),
            None => false,
        }
    }

    /// Returns the child of an inner page that covers `key`.
    #[inline]
    pub fn child_for(self, key: &[u8]) -> PageId {
        let position = match self.search(key) {
            Ok(position) => position + 1,
            Err(position) => position,
        };
        self.child_at(position)
    }

    /// Returns the child of an inner page that holds the greatest key less than `key`, or the last
    /// child if `key` is `None`.
    pub fn child_before(self, key: Option<&[u8]>) -> PageId {
        let position = match key {
            None => self.count(),
            Some(key) => self.search(key).unwrap_or_else(|position| position),
        };
        self.child_at(position)
    }

    /// Returns child number `index` of an inner page; index 0 is left of the first separator.
    #[inline]
    pub fn child_at(self, index: usize) -> PageId {
        if index == 0 { self.link() } else { self.word(self.slot(index - 1).offset() >> 3) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::Scratch;
    use super::super::{Page, PageKind};
    use proptest::prelude::*;

    /// Creates an inner page without a prefix, like a root, with these separators.
    fn root<'a>(scratch: &'a Scratch, keys: &[Vec<u8>]) -> Page<'a> {
        let page = scratch.page();
        page.initialize(1, PageKind::Inner, 1, 1);
        page.set_inner_fences(Some(b""), Some(None));
        for key in keys {
            let at = page.search(key).unwrap_err();
            assert!(page.insert_separator(at, key, 2));
        }
        page
    }

    #[test]
    fn common_prefix_of_separators_is_stored() {
        let scratch = Scratch::new(8192);
        let keys: Vec<Vec<u8>> = [300u64, 5, 70_000, 9]
            .map(|number| [vec![0; 56], number.to_be_bytes().to_vec()].concat())
            .to_vec();
        let page = root(&scratch, &keys[..1]);
        assert_eq!(page.shared_length(), 64);
        let page = root(&scratch, &keys);
        assert_eq!(page.shared_length(), 61);
        assert!(page.is_ordered());
        let other = Scratch::new(8192);
        let half = root(&other, &[]);
        assert!(half.append_range(page, 0..3));
        assert_eq!(half.shared_length(), 62);
        page.set_shared_length(62);
        assert!(!page.is_ordered());
    }

    proptest! {
        #[test]
        fn key_search_finds_its_sort_position(
            common in prop::collection::vec(0u8..2, 0..12),
            tails in prop::collection::btree_set(prop::collection::vec(0u8..3, 0..6), 0..20),
            probes in prop::collection::vec(prop::collection::vec(0u8..3, 0..18), 0..20),
            cut in 0usize..20,
        ) {
            let keys: Vec<Vec<u8>> = tails.iter().map(|tail| [&common[..], tail].concat()).collect();
            let scratch = Scratch::new(8192);
            let mut shuffled = keys.clone();
            shuffled.rotate_left(cut.min(keys.len()));
            let page = root(&scratch, &shuffled);
            prop_assert!(page.is_ordered());
            let probes = probes.iter().flat_map(|tail| [tail.clone(), [&common[..], tail].concat()]);
            for probe in keys.iter().cloned().chain(probes) {
                prop_assert_eq!(page.search(&probe), keys.binary_search(&probe), "{:?}", probe);
            }
        }

        /// Searches in a leaf, open-ended or not, with any hint.
        #[test]
        fn key_search_is_independent_of_the_hint(
            common in prop::collection::vec(0u8..2, 0..16),
            tails in prop::collection::btree_set(prop::collection::vec(0u8..3, 0..9), 0..40),
            probes in prop::collection::vec(prop::collection::vec(0u8..3, 0..9), 0..20),
            is_open in any::<bool>(),
            hint in 0usize..45,
        ) {
            // Keys may share their heads or more, so the bytes after the head decide.
            let keys: Vec<Vec<u8>> = tails.iter().map(|tail| [&common[..], tail].concat()).collect();
            let scratch = Scratch::new(8192);
            let page = scratch.page();
            page.initialize(1, PageKind::Leaf, 1, 0);
            page.set_versioned(true);
            page.set_fences(b"", if is_open { None } else { Some(&[9]) });
            for (at, key) in keys.iter().enumerate() {
                prop_assert_eq!(page.search(key), Err(at));
                prop_assert!(page.insert_record(at, key, 0, 0, b"value"));
            }
            let probes = probes.iter().flat_map(|tail| [tail.clone(), [&common[..], tail].concat()]);
            for probe in keys.iter().cloned().chain(probes) {
                let expected = keys.binary_search(&probe);
                prop_assert_eq!(page.search(&probe), expected, "{:?}", probe);
                prop_assert_eq!(page.search_near(&probe, hint), expected, "{:?} near {}", &probe, hint);
            }
        }
    }
}
