//! The page header: the first eight words of every page. `docs/format.md` has the layout.

use std::cmp::Ordering;

use super::words::Page;
use super::{PageId, Scratch};

/// Bytes before the slot array.
pub const HEADER_BYTES: usize = 64;

const W_CHECKSUM: usize = 0;
const W_PAGE: usize = 1;
const W_SEQUENCE: usize = 2;
const W_TREE: usize = 3;
const W_SPACE: usize = 4;
const W_FENCES: usize = 5;
const W_LINK: usize = 6;

/// Offset of the sequence number in an image.
pub const SEQUENCE_OFFSET: usize = W_SEQUENCE * 8;

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Unused.
    Empty = 0,
    /// Records of a tree.
    Leaf = 1,
    /// Separators and children of a tree.
    Inner = 2,
    /// A part of a long value.
    Overflow = 3,
    /// A chunk of the page map.
    PageMap = 4,
    /// A part of a checkpoint's directory of the page map.
    Directory = 5,
}

impl PageKind {
    /// Decodes a page kind.
    pub fn from_number(number: u8) -> Option<PageKind> {
        Some(match number {
            0 => PageKind::Empty,
            1 => PageKind::Leaf,
            2 => PageKind::Inner,
            3 => PageKind::Overflow,
            4 => PageKind::PageMap,
            5 => PageKind::Directory,
            _ => return None,
        })
    }
}

/// Flag: leaf records carry a version word.
const FLAG_VERSIONED: u8 = 1;
/// Flag: the page stores its fence keys (always set in leaves).
const FLAG_FENCED: u8 = 2;
/// Flag: the page has no upper fence and covers the end of the tree.
const FLAG_OPEN_END: u8 = 4;
/// Flag: the leaf may contain tombstones.
const FLAG_TOMBSTONES: u8 = 8;
/// Flag: the keys of a leaf begin with hash values.
const FLAG_HASHED: u8 = 16;

/// Maximum of the tombstone count.
const MOST_NOTED: usize = 255;

#[inline]
fn field(word: u64, shift: u32, bits: u32) -> usize {
    (word >> shift) as usize & ((1 << bits) - 1)
}

impl<'a> Page<'a> {
    #[inline]
    fn set_field(self, index: usize, shift: u32, bits: u32, value: usize) {
        let mask = ((1u64 << bits) - 1) << shift;
        self.set_word(index, (self.word(index) & !mask) | (((value as u64) << shift) & mask));
    }

    /// Initializes an empty page.
    pub fn initialize(self, page: PageId, kind: PageKind, tree: u32, level: u8) {
        for i in 0..HEADER_BYTES / 8 {
            self.set_word(i, 0);
        }
        self.set_word(W_PAGE, page);
        self.set_field(W_CHECKSUM, 32, 8, kind as usize);
        self.set_field(W_CHECKSUM, 40, 8, level as usize);
        self.set_word(W_TREE, u64::from(tree));
        self.set_heap_start(self.size());
    }

    /// Returns the page's kind.
    #[inline]
    pub fn kind(self) -> Option<PageKind> {
        PageKind::from_number(field(self.word(W_CHECKSUM), 32, 8) as u8)
    }

    /// Returns true for a leaf.
    #[inline]
    pub fn is_leaf(self) -> bool {
        field(self.word(W_CHECKSUM), 32, 8) == PageKind::Leaf as usize
    }

    /// Returns the distance from the leaves.
    #[inline]
    pub fn level(self) -> u8 {
        field(self.word(W_CHECKSUM), 40, 8) as u8
    }

    #[inline]
    fn flag(self, bit: u8) -> bool {
        field(self.word(W_CHECKSUM), 48, 8) & usize::from(bit) != 0
    }

    fn raise_flag(self, bit: u8) {
        let flags = field(self.word(W_CHECKSUM), 48, 8) | usize::from(bit);
        self.set_field(W_CHECKSUM, 48, 8, flags);
    }

    fn set_flag(self, bit: u8, on: bool) {
        let flags = field(self.word(W_CHECKSUM), 48, 8);
        let flags = if on { flags | usize::from(bit) } else { flags & !usize::from(bit) };
        self.set_field(W_CHECKSUM, 48, 8, flags);
    }

    /// Returns whether leaf records carry a version word.
    #[inline]
    pub fn is_versioned(self) -> bool {
        self.flag(FLAG_VERSIONED)
    }

    /// Sets the flag of [`is_versioned`](Self::is_versioned).
    pub fn set_versioned(self, on: bool) {
        self.set_flag(FLAG_VERSIONED, on);
    }

    /// Returns whether the page stores its fence keys.
    #[inline]
    pub fn is_fenced(self) -> bool {
        self.flag(FLAG_FENCED)
    }

    /// Returns whether the leaf may contain tombstones.
    pub fn has_tombstones(self) -> bool {
        self.flag(FLAG_TOMBSTONES)
    }

    /// Increments the tombstone count.
    #[inline]
    pub fn note_tombstone(self) {
        self.note_tombstones(1);
    }

    /// Adds `count` to the tombstone count.
    #[inline]
    pub fn note_tombstones(self, count: usize) {
        if count > 0 {
            let noted = field(self.word(W_CHECKSUM), 56, 8);
            self.set_field(W_CHECKSUM, 56, 8, (noted + count).min(MOST_NOTED));
            self.raise_flag(FLAG_TOMBSTONES);
        }
    }

    /// Sets the tombstone count.
    pub fn set_tombstones(self, count: usize) {
        self.set_field(W_CHECKSUM, 56, 8, count.min(MOST_NOTED));
        self.set_flag(FLAG_TOMBSTONES, count > 0);
    }

    /// Returns whether purging is worthwhile: a quarter of the records may be tombstones.
    #[inline]
    pub fn is_purge_worthwhile(self) -> bool {
        let noted = field(self.word(W_CHECKSUM), 56, 8);
        noted == MOST_NOTED || noted * 4 >= self.count()
    }

    /// Returns whether the leaf's keys begin with hash values.
    #[inline]
    pub fn is_hashed(self) -> bool {
        self.flag(FLAG_HASHED)
    }

    /// Sets the flag of [`is_hashed`](Self::is_hashed).
    pub fn set_hashed(self, on: bool) {
        self.set_flag(FLAG_HASHED, on);
    }

    /// Returns whether the page covers the end of the tree.
    #[inline]
    pub fn is_open_end(self) -> bool {
        self.flag(FLAG_OPEN_END)
    }

    /// Returns the page number stored in the page.
    pub fn page_id(self) -> PageId {
        self.word(W_PAGE)
    }

    /// Sets [`page_id`](Self::page_id), after the content was copied from another page.
    pub fn set_page_id(self, page: PageId) {
        self.set_word(W_PAGE, page);
    }

    /// Returns the image's sequence number among all images written since the environment was
    /// opened. It helps to interpret a page dump.
    pub fn sequence(self) -> u64 {
        self.word(W_SEQUENCE)
    }

    /// Returns the number of the page's tree.
    pub fn tree(self) -> u32 {
        field(self.word(W_TREE), 0, 32) as u32
    }

    /// Returns the number of slots.
    #[inline]
    pub fn count(self) -> usize {
        field(self.word(W_TREE), 32, 16)
    }

    /// Sets [`count`](Self::count).
    #[inline]
    pub fn set_count(self, count: usize) {
        self.set_field(W_TREE, 32, 16, count);
    }

    /// Returns the offset of the lowest record; the records end at the fences.
    #[inline]
    pub fn heap_start(self) -> usize {
        field(self.word(W_TREE), 48, 16) * 8
    }

    /// Sets [`heap_start`](Self::heap_start).
    #[inline]
    pub fn set_heap_start(self, offset: usize) {
        self.set_field(W_TREE, 48, 16, offset / 8);
    }

    /// Returns the bytes of all records that slots refer to.
    #[inline]
    pub fn live_bytes(self) -> usize {
        field(self.word(W_SPACE), 0, 32)
    }

    /// Sets [`live_bytes`](Self::live_bytes).
    #[inline]
    pub fn set_live_bytes(self, bytes: usize) {
        self.set_field(W_SPACE, 0, 32, bytes);
    }

    /// Returns the length of the prefix that all keys share. It is stored once, at the start of the
    /// lower fence.
    #[inline]
    pub fn prefix_length(self) -> usize {
        field(self.word(W_SPACE), 32, 16)
    }

    /// Returns the number of bytes after the prefix that all separators of an inner page share;
    /// zero if unknown.
    #[inline]
    pub(super) fn shared_length(self) -> usize {
        field(self.word(W_SPACE), 48, 16)
    }

    /// Sets [`shared_length`](Self::shared_length).
    pub(super) fn set_shared_length(self, bytes: usize) {
        self.set_field(W_SPACE, 48, 16, bytes);
    }

    /// Returns offset and length of the lower fence: no key in the page is less.
    #[inline]
    pub fn lower_fence(self) -> (usize, usize) {
        let word = self.word(W_FENCES);
        (field(word, 0, 16) * 8, field(word, 16, 16))
    }

    /// Returns offset and length of the upper fence: every key in the page is less. Unused in an
    /// open-ended page.
    #[inline]
    pub fn upper_fence(self) -> (usize, usize) {
        let word = self.word(W_FENCES);
        (field(word, 32, 16) * 8, field(word, 48, 16))
    }

    /// Returns the offset where the fences begin and the records end.
    pub fn fence_start(self) -> usize {
        if self.is_fenced() { self.lower_fence().0 } else { self.size() }
    }

    /// Stores the fences at the page's end and sets the prefix. The page must be empty.
    pub fn set_fences(self, lower: &[u8], upper: Option<&[u8]>) {
        let upper_bytes = upper.unwrap_or_default();
        let upper_at = self.size() - upper_bytes.len().next_multiple_of(8);
        let lower_at = upper_at - lower.len().next_multiple_of(8);
        self.store_bytes(upper_at, upper_bytes);
        self.store_bytes(lower_at, lower);
        let fences = (lower_at as u64 / 8)
            | (lower.len() as u64) << 16
            | (upper_at as u64 / 8) << 32
            | (upper_bytes.len() as u64) << 48;
        self.set_word(W_FENCES, fences);
        self.raise_flag(FLAG_FENCED);
        self.set_flag(FLAG_OPEN_END, upper.is_none());
        let prefix = upper.map_or(0, |upper| common_prefix(lower, upper));
        self.set_field(W_SPACE, 32, 16, prefix);
        self.set_heap_start(lower_at);
    }

    /// Returns the leftmost child of an inner page, or the next page of an overflow chain.
    #[inline]
    pub fn link(self) -> PageId {
        self.word(W_LINK)
    }

    /// Sets [`link`](Self::link).
    pub fn set_link(self, page: PageId) {
        self.set_word(W_LINK, page);
    }

    /// Returns the bytes of payload in an overflow page.
    pub fn payload_length(self) -> usize {
        self.live_bytes()
    }

    /// Returns the lower fence.
    pub fn lower_fence_bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_lower_fence(&mut out);
        out
    }

    /// Appends the lower fence to `out`.
    pub fn append_lower_fence(self, out: &mut Vec<u8>) {
        let (offset, length) = self.lower_fence();
        self.append_to(offset, length, out);
    }

    /// Returns the upper fence, or `None` at the tree's end.
    pub fn upper_fence_bytes(self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.append_upper_fence(&mut out).then_some(out)
    }

    /// Appends the upper fence to `out`. Returns false if there is none.
    pub fn append_upper_fence(self, out: &mut Vec<u8>) -> bool {
        if self.is_open_end() {
            return false;
        }
        let (offset, length) = self.upper_fence();
        self.append_to(offset, length, out);
        true
    }
}

/// Returns the length of the common prefix of two keys. Compares eight bytes at a time.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let ((ours, _), (theirs, _)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut at = 0;
    for (ours, theirs) in ours.iter().zip(theirs) {
        let differing = u64::from_le_bytes(*ours) ^ u64::from_le_bytes(*theirs);
        if differing != 0 {
            return at + differing.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = a.iter().zip(b).skip(at);
    at + rest.take_while(|(x, y)| x == y).count()
}

/// Compares two keys, eight bytes at a time. This is fast for short keys that were just written.
#[inline]
pub fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    let alike = common_prefix(a, b);
    a.get(alike).cmp(&b.get(alike))
}

thread_local! {
    static SPARE: std::cell::RefCell<Vec<Scratch>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl Scratch {
    /// Runs `work` with a scratch page of that size, which the thread keeps for reuse.
    pub fn with<T>(size: usize, work: impl FnOnce(Page<'_>) -> T) -> T {
        let spare = SPARE.with_borrow_mut(|spare| {
            let at = spare.iter().position(|scratch| scratch.page().size() == size)?;
            Some(spare.swap_remove(at))
        });
        let scratch = spare.unwrap_or_else(|| Scratch::new(size));
        let result = work(scratch.page());
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < 8 {
                spare.push(scratch);
            }
        });
        result
    }
}
