//! Raw access to a page's words and bytes.

use std::cmp::Ordering;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::HEADER_BYTES;
use crate::vfs::mapping::prefetch;
use crate::vfs::word_copy::{copy_words, load_bytes, store_chunks};

/// Words in a cache line.
const LINE_WORDS: usize = 8;
/// Words that are moved together.
const GROUP: usize = 4;
/// Cache lines of the header and the slots of a leaf with about sixty records.
const FETCHED_LINES: usize = 9;
/// Cache lines of a record with a row of some ten columns.
const RECORD_LINES: usize = 3;

/// A page in memory. Copying this copies the reference.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Page<'a> {
    /// Creates a page over these words.
    #[inline]
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Page { words }
    }

    /// Returns the page size in bytes.
    #[inline]
    pub fn size(self) -> usize {
        self.words.len() * 8
    }

    /// Returns the word at index `i`, or zero past the end (PAGE-1).
    #[inline]
    pub fn word(self, i: usize) -> u64 {
        match self.words.get(i) {
            Some(word) => word.load(Relaxed),
            None => 0,
        }
    }

    /// Sets the word at index `i`; does nothing past the end (PAGE-1).
    #[inline]
    pub fn set_word(self, i: usize, value: u64) {
        if let Some(word) = self.words.get(i) {
            word.store(value, Relaxed);
        }
    }

    /// Loads the header and the first slots, which a search needs in an order that depends on the
    /// data. So the processor fetches their cache lines at the same time instead of one after
    /// another.
    #[inline]
    pub fn fetch_slots(self) {
        let lines = self.words.iter().step_by(LINE_WORDS).take(FETCHED_LINES);
        std::hint::black_box(lines.fold(0, |all, word| all | word.load(Relaxed)));
    }

    /// Loads a record of a few cache lines, as [`fetch_slots`](Self::fetch_slots) does the slots.
    #[inline]
    pub fn fetch_record(self, position: usize) {
        let words = self.words_from(self.slot(position).offset());
        let lines = words.iter().step_by(LINE_WORDS).take(RECORD_LINES);
        std::hint::black_box(lines.fold(0, |all, word| all | word.load(Relaxed)));
    }

    /// Asks the processor to fetch the fences, the header, and the first `slots` slots and those
    /// that [`fetch_slots`](Self::fetch_slots) loads, without waiting.
    #[inline]
    pub fn prefetch_slots(self, slots: usize) {
        let lines = (HEADER_BYTES + slots * 8).div_ceil(LINE_WORDS * 8).max(FETCHED_LINES);
        self.words.iter().step_by(LINE_WORDS).take(lines).for_each(prefetch);
        self.words.last().into_iter().for_each(prefetch);
    }

    /// Asks the processor to fetch the cache line with the byte at this distance from a record's
    /// start, without waiting.
    #[inline(always)]
    pub fn prefetch_record(self, position: usize, distance: usize) {
        let offset = self.slot(position).offset().wrapping_add(distance);
        if let Some(word) = self.words.get(offset >> 3) {
            prefetch(word);
        }
    }

    /// Returns eight bytes from any offset, little-endian.
    #[inline]
    pub fn load8(self, offset: usize) -> u64 {
        let index = offset >> 3;
        let shift = (offset & 7) * 8;
        let low = self.word(index) >> shift;
        if shift == 0 { low } else { low | (self.word(index + 1) << (64 - shift)) }
    }

    /// Returns four bytes from an offset that is a multiple of four, little-endian.
    #[inline]
    pub fn load4(self, offset: usize) -> usize {
        (self.word(offset >> 3) >> ((offset & 4) * 8)) as u32 as usize
    }

    /// Returns two bytes from any offset, little-endian.
    #[inline]
    pub fn load2(self, offset: usize) -> usize {
        let shift = (offset & 7) * 8;
        if shift <= 48 {
            (self.word(offset >> 3) >> shift) as usize & 0xffff
        } else {
            self.load8(offset) as usize & 0xffff
        }
    }

    /// Returns the words from the one that contains `offset` on; none past the end (PAGE-1).
    #[inline]
    pub fn words_from(self, offset: usize) -> &'a [AtomicU64] {
        self.words.get(offset >> 3..).unwrap_or_default()
    }

    /// Appends `length` bytes from `offset` to `out`.
    #[inline]
    pub fn append_to(self, offset: usize, length: usize, out: &mut Vec<u8>) {
        if length == 0 {
            return;
        }
        let start = out.len();
        out.resize(start + length.min(self.size()), 0);
        self.copy_to(offset, &mut out[start..]);
    }

    /// Replaces the content of `out` with `length` bytes from `offset`.
    #[inline]
    pub fn assign_to(self, offset: usize, length: usize, out: &mut Vec<u8>) {
        // A sequence of values of equal length, the common case, needs no zero fill.
        out.resize(length.min(self.size()), 0);
        self.copy_to(offset, out);
    }

    /// Copies the bytes from `offset` on; bytes past the page's end are zeros (PAGE-1).
    #[inline]
    pub fn copy_to(self, offset: usize, out: &mut [u8]) {
        let (words, skip) = (self.words_from(offset), offset & 7);
        if !load_bytes(words, skip, out) {
            let there = (words.len() * 8).saturating_sub(skip);
            let (inside, past) = out.split_at_mut(there);
            load_bytes(words, skip, inside);
            past.fill(0);
        }
    }

    /// Writes `bytes` at `offset`.
    #[inline]
    pub fn store_bytes(self, offset: usize, bytes: &[u8]) {
        let mut at = offset;
        let mut left = bytes;
        if at & 7 != 0 {
            let take = (8 - (at & 7)).min(left.len());
            self.store_part(at, &left[..take]);
            at += take;
            left = &left[take..];
        }
        let (chunks, rest) = left.as_chunks::<8>();
        store_chunks(self.words_from(at), chunks);
        if !rest.is_empty() {
            self.store_part(at + chunks.len() * 8, rest);
        }
    }

    /// Writes up to eight bytes that lie within one word.
    #[inline]
    fn store_part(self, offset: usize, bytes: &[u8]) {
        let shift = (offset & 7) * 8;
        let value = big_endian(bytes).swap_bytes();
        let mask = if bytes.len() >= 8 { u64::MAX } else { (1u64 << (bytes.len() * 8)) - 1 };
        let old = self.word(offset >> 3);
        self.set_word(offset >> 3, (old & !(mask << shift)) | (value << shift));
    }

    /// Copies `length` bytes from offset `from` of another page to `offset`.
    pub fn store_from(self, offset: usize, other: Page<'_>, from: usize, length: usize) {
        let first = (offset.next_multiple_of(8) - offset).min(length);
        self.store_part(offset, &other.load8(from).to_le_bytes()[..first]);
        let words = (length - first) / 8;
        let (targets, start) = (self.words_from(offset + first), from + first);
        let targets = &targets[..words.min(targets.len())];
        copy_words(targets, other.words_from(start), start & 7);
        let done = first + words * 8;
        if done < length {
            let last = other.load8(from + done).to_le_bytes();
            self.store_part(offset + done, &last[..length - done]);
        }
    }

    /// Compares the `length` bytes at `offset` with `key`, as byte strings.
    #[inline]
    pub fn compare(self, offset: usize, length: usize, key: &[u8]) -> Ordering {
        let common = length.min(key.len());
        let (chunks, rest) = key[..common].as_chunks::<8>();
        let words = self.words_from(offset);
        let shift = (offset & 7) * 8;
        if shift == 0 {
            for (chunk, word) in chunks.iter().zip(words) {
                let (ours, theirs) = (word.load(Relaxed), u64::from_le_bytes(*chunk));
                if ours != theirs {
                    return ours.swap_bytes().cmp(&theirs.swap_bytes());
                }
            }
        } else if let Some((first, others)) = words.split_first() {
            let mut low = first.load(Relaxed);
            for (chunk, word) in chunks.iter().zip(others) {
                let high = word.load(Relaxed);
                let (ours, theirs) =
                    (low >> shift | high << (64 - shift), u64::from_le_bytes(*chunk));
                if ours != theirs {
                    return ours.swap_bytes().cmp(&theirs.swap_bytes());
                }
                low = high;
            }
        }
        if !rest.is_empty() {
            let drop = 64 - rest.len() * 8;
            let ours = self.load8(offset + common - rest.len()).swap_bytes() >> drop;
            let theirs = big_endian(rest) >> drop;
            if ours != theirs {
                return ours.cmp(&theirs);
            }
        }
        length.cmp(&key.len())
    }

    /// Returns whether the bytes at `offset`, a multiple of eight, equal `bytes`.
    #[inline]
    pub fn holds(self, offset: usize, bytes: &[u8]) -> bool {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let words = self.words_from(offset);
        let mut differing = 0;
        for (chunk, word) in chunks.iter().zip(words) {
            differing |= word.load(Relaxed) ^ u64::from_le_bytes(*chunk);
        }
        if !rest.is_empty() {
            let last = self.word((offset >> 3) + chunks.len()).swap_bytes();
            differing |= (last ^ big_endian(rest)) >> (64 - rest.len() * 8);
        }
        differing == 0
    }

    /// Compares two byte strings of the page.
    pub fn compare_parts(
        self,
        one: usize,
        one_length: usize,
        other: usize,
        other_length: usize,
    ) -> Ordering {
        let common = one_length.min(other_length);
        let mut at = 0;
        while at < common {
            let drop = 64 - (common - at).min(8) * 8;
            let ours = self.load8(one + at).swap_bytes() >> drop;
            let theirs = self.load8(other + at).swap_bytes() >> drop;
            if ours != theirs {
                return ours.cmp(&theirs);
            }
            at += 8;
        }
        one_length.cmp(&other_length)
    }

    /// Copies every word of `source`, a page of the same size.
    pub fn copy_from(self, source: Page<'_>) {
        copy_words(self.words, source.words, 0);
    }

    /// Like [`copy_from`](Self::copy_from), without the free space between slots and records of a
    /// tree page.
    pub fn copy_content_from(self, source: Page<'_>) {
        let slots_end = HEADER_BYTES / 8 + source.count();
        let heap = source.heap_start().min(source.size()) / 8;
        if slots_end >= heap {
            return self.copy_from(source);
        }
        self.copy_words(0, source, 0, slots_end);
        self.copy_words(heap, source, heap, source.words.len() - heap);
    }

    /// Copies `count` words of `source` from index `from` to index `to`.
    #[inline]
    pub fn copy_words(self, to: usize, source: Page<'_>, from: usize, count: usize) {
        let targets = self.words.get(to..to + count).unwrap_or_default();
        copy_words(targets, source.words.get(from..).unwrap_or_default(), 0);
    }

    /// Moves words `from..from + count` to `to..`; the ranges may overlap.
    #[inline]
    pub fn move_words(self, from: usize, to: usize, count: usize) {
        let (low, distance) = (from.min(to), from.abs_diff(to));
        let Some(region) = self.words.get(low..low + distance + count) else { return };
        // The order reads each word before it is overwritten. Groups of words make the speed of the
        // loops independent of where the linker places them.
        let (lower, upper) = (&region[..count], &region[distance..]);
        if to > from {
            let ((first, sources), (start, targets)) = (lower.as_rchunks(), upper.as_rchunks());
            targets.iter().rev().zip(sources.iter().rev()).for_each(copy_group);
            start.iter().rev().zip(first.iter().rev()).for_each(copy_word);
        } else {
            let ((targets, end), (sources, last)) = (lower.as_chunks(), upper.as_chunks());
            targets.iter().zip(sources).for_each(copy_group);
            end.iter().zip(last).for_each(copy_word);
        }
    }
}

fn copy_word((target, source): (&AtomicU64, &AtomicU64)) {
    target.store(source.load(Relaxed), Relaxed);
}

/// Reads all words of a group before it writes one.
fn copy_group((targets, sources): (&[AtomicU64; GROUP], &[AtomicU64; GROUP])) {
    let words = sources.each_ref().map(|source| source.load(Relaxed));
    for (target, word) in targets.iter().zip(words) {
        target.store(word, Relaxed);
    }
}

/// Returns the first eight bytes of `bytes` as a big-endian number, padded with zeros.
#[inline]
pub fn big_endian(bytes: &[u8]) -> u64 {
    if let Some(chunk) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*chunk);
    }
    // For short inputs, combines the first and the last bytes, which may overlap, without a call to
    // copy.
    let short = (8 - bytes.len()) * 8;
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        return u64::from(first) << 32 | u64::from(last) << short;
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>()) {
        let (first, last) = (u16::from_be_bytes(*first), u16::from_be_bytes(*last));
        return u64::from(first) << 48 | u64::from(last) << short;
    }
    bytes.first().map_or(0, |&byte| u64::from(byte) << 56)
}

/// Memory for a private page: work space for splits, images and tests.
pub struct Scratch(Box<[AtomicU64]>);

impl Scratch {
    /// Allocates `size` bytes of zeros.
    pub fn new(size: usize) -> Self {
        Scratch((0..size / 8).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns the page.
    pub fn page(&self) -> Page<'_> {
        Page::new(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_move_over_any_distance() {
        let scratch = Scratch::new(512);
        let page = scratch.page();
        for (from, to) in [(3, 4), (4, 3), (3, 9), (9, 3), (0, 20), (20, 0)] {
            for count in 0..30 {
                (0..64).for_each(|at| page.set_word(at, at as u64));
                page.move_words(from, to, count);
                for at in 0..64 {
                    let moved = (to..to + count).contains(&at);
                    let expected = if moved { at - to + from } else { at };
                    assert_eq!(page.word(at), expected as u64, "{count} words from {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn short_keys_are_zero_padded_numbers() {
        for length in 0..=9u8 {
            let bytes: Vec<u8> = (1..=length).collect();
            let mut padded = bytes.clone();
            padded.resize(9, 0);
            let expected = u64::from_be_bytes(*padded.first_chunk().unwrap());
            assert_eq!(big_endian(&bytes), expected, "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn bytes_behave_as_a_byte_array(
            writes in prop::collection::vec((0usize..200, prop::collection::vec(any::<u8>(), 0..40)), 1..20),
            probe in prop::collection::vec(0u8..3, 0..20), at in 0usize..200, length in 0usize..30,
        ) {
            let scratch = Scratch::new(256);
            let page = scratch.page();
            let mut model = vec![0u8; 256];
            for (offset, bytes) in &writes {
                page.store_bytes(*offset, bytes);
                model[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            let mut out = vec![7];
            page.append_to(at, length, &mut out);
            prop_assert_eq!(&out[1..], &model[at..at + length]);
            page.assign_to(at, length, &mut out);
            prop_assert_eq!(&out[..], &model[at..at + length]);
            page.assign_to(256 - length / 2 - 1, length, &mut out);
            let mut beyond = model[256 - length / 2 - 1..].to_vec();
            beyond.resize(length.max(1), 0);
            prop_assert_eq!(&out[..], &beyond[..length]);
            let other = (at * 7 + length) % 200;
            prop_assert_eq!(
                page.compare_parts(at, length, other, probe.len()),
                model[at..at + length].cmp(&model[other..other + probe.len()])
            );
            prop_assert_eq!(page.compare(at, length, &probe), model[at..at + length].cmp(&probe[..]));
            let (aligned, bytes) = (at / 8 * 8, &model[at / 8 * 8..at / 8 * 8 + length]);
            prop_assert!(page.holds(aligned, bytes));
            if length > 0 {
                let mut other = bytes.to_vec();
                other[at % length] ^= 1;
                prop_assert!(!page.holds(aligned, &other));
            }
            prop_assert_eq!(page.load2(at), usize::from(u16::from_le_bytes([model[at], model[at + 1]])));
        }
    }
}
