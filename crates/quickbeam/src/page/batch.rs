//! Records copied out of a leaf, in one buffer.
//!
//! Above: scans and cursors. Below: pages.
//!
//! A record is copied as a whole, word by word from its aligned start, or the leaf's records are
//! copied together as they lie there. What stands before the rest of a key is no longer needed in
//! the copy: the key's prefix and head are written over it, so that the key is contiguous without
//! being copied again.
//!
//! - BATCH-COPY-1: the leaf may change while it is copied. A batch counts only once the leaf was
//!   validated (PAGE-2); until then no content makes it panic or reach outside its buffer.

use std::cell::Cell;

use super::record::RecordLayout;
use super::search::Slot;
use super::words::Page;

/// The most memory of a dropped batch that its thread keeps for the next one.
const SPARE_BYTES: usize = 1 << 20;

thread_local! {
    static SPARE: Cell<(Vec<u8>, Vec<RecordSpan>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Bytes of a value's length and room, which stand before the rest of a key.
const LENGTHS: usize = 4;
/// Bytes of the key's prefix that are written as one word.
const SHORT_PREFIX: usize = 8;

/// Where a record lies in a batch.
#[derive(Clone, Copy, Debug, Default)]
struct RecordSpan {
    key: usize,
    key_end: usize,
    value: usize,
    value_end: usize,
}

/// Records in one buffer. Reuse it: it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct RecordBatch {
    /// The records, up to `used`; the rest is memory that need not be filled before it is
    /// overwritten.
    bytes: Vec<u8>,
    used: usize,
    places: Vec<RecordSpan>,
    /// The prefix of the leaf's keys, if it is longer than [`SHORT_PREFIX`].
    prefix: Vec<u8>,
}

/// How the records of one leaf are copied.
pub struct LeafCopy<'p> {
    page: Page<'p>,
    layout: RecordLayout,
    /// Bytes of a record before its lengths, and of its copy, which has room for a key's prefix.
    head: usize,
    front: usize,
    prefix_length: usize,
    /// A short prefix, at the end of a word.
    prefix: [u8; SHORT_PREFIX],
    with_keys: bool,
    /// Bytes of each key that are not part of the user's key.
    skipped: usize,
    /// Offset in the page from which all records were copied together, and where they begin in the
    /// buffer.
    together: Option<(usize, usize)>,
}

impl LeafCopy<'_> {
    /// Returns the version word and the value's length of the record at `slot`.
    #[inline(always)]
    pub fn record(&self, slot: Slot) -> (u64, usize) {
        let (version, length, _) = self.layout.record(self.page, slot);
        (version, length)
    }
}

impl RecordBatch {
    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are no records.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the key of a record; empty if keys were left out.
    #[inline]
    pub fn key(&self, record: usize) -> &[u8] {
        let place = self.places.get(record).copied().unwrap_or_default();
        self.bytes.get(place.key..place.key_end).unwrap_or_default()
    }

    /// Returns the value of a record.
    #[inline]
    pub fn value(&self, record: usize) -> &[u8] {
        let place = self.places.get(record).copied().unwrap_or_default();
        self.bytes.get(place.value..place.value_end).unwrap_or_default()
    }

    /// Removes all records.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
        self.places.clear();
    }

    /// Removes a record.
    pub fn remove(&mut self, record: usize) {
        self.places.remove(record);
    }

    /// Extends the buffer by `bytes` bytes and returns them, with unspecified content.
    #[inline]
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.used;
        self.used += bytes;
        if self.bytes.len() < self.used {
            self.grow();
        }
        &mut self.bytes[start..self.used]
    }

    /// Gets memory for the bytes that are used: first that of the thread's last batch, so that a
    /// short scan need not allocate.
    #[cold]
    fn grow(&mut self) {
        if self.bytes.is_empty() {
            let (bytes, mut places) = SPARE.try_with(Cell::take).unwrap_or_default();
            places.clear();
            places.extend_from_slice(&self.places);
            (self.bytes, self.places) = (bytes, places);
        }
        if self.bytes.len() < self.used {
            self.bytes.resize(self.used.max(self.bytes.len() * 2), 0);
        }
    }

    /// Gives a record a value of `length` bytes with unspecified content and returns the value.
    pub fn replace_value(&mut self, record: usize, length: usize) -> &mut [u8] {
        let start = self.used;
        if let Some(place) = self.places.get_mut(record) {
            (place.value, place.value_end) = (start, start + length);
        }
        self.room(length)
    }

    /// Adds a record.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let key_at = self.used;
        self.room(key.len()).copy_from_slice(key);
        let value_at = self.used;
        self.room(value.len()).copy_from_slice(value);
        self.places.push(RecordSpan {
            key: key_at,
            key_end: value_at,
            value: value_at,
            value_end: self.used,
        });
    }

    /// Prepares to copy records of a leaf, with keys less their first bytes if `keys` says how
    /// many. Copies all records at once if the caller will take most of them.
    #[inline]
    pub fn begin<'p>(&mut self, page: Page<'p>, keys: Option<usize>, most: bool) -> LeafCopy<'p> {
        let head = page.word_bytes();
        let with_keys = keys.is_some();
        let prefix_length = if with_keys { page.prefix_length().min(page.size()) } else { 0 };
        let mut prefix = [0; SHORT_PREFIX];
        self.prefix.clear();
        if prefix_length > SHORT_PREFIX {
            page.append_to(page.lower_fence().0, prefix_length, &mut self.prefix);
        } else if prefix_length > 0 {
            let bytes = page.load8(page.lower_fence().0).to_le_bytes();
            prefix[SHORT_PREFIX - prefix_length..].copy_from_slice(&bytes[..prefix_length]);
        }
        // A short prefix is written as a whole word.
        let wanted = match prefix_length {
            _ if !with_keys => 0,
            ..=SHORT_PREFIX => SHORT_PREFIX,
            long => long.next_multiple_of(8),
        };
        let together = (most && wanted <= head).then(|| {
            let (from, to) = page.heap();
            let at = self.used;
            page.copy_to(from, self.room(to - from));
            (from, at)
        });
        LeafCopy {
            page,
            layout: page.record_layout(),
            head,
            front: wanted.max(head),
            prefix_length,
            prefix,
            with_keys,
            skipped: keys.unwrap_or(0),
            together,
        }
    }

    /// Takes the record at `slot`, with `length` bytes of its value.
    #[inline]
    pub fn take(&mut self, leaf: &LeafCopy<'_>, slot: Slot, length: usize) {
        let rest = slot.rest_length();
        let start = match leaf.together {
            Some((from, at)) => slot.offset().saturating_sub(from) + at,
            None => {
                let bytes = (leaf.head + LENGTHS + rest + length).min(leaf.page.size());
                let start = self.used;
                let gap = leaf.front - leaf.head;
                let room = self.room(gap + bytes.next_multiple_of(8));
                leaf.page.copy_to(slot.offset() & !7, &mut room[gap..]);
                start
            }
        };
        let lengths = start + leaf.front;
        let value = lengths + LENGTHS + rest;
        let mut place = RecordSpan { value, value_end: value + length, ..RecordSpan::default() };
        if place.value_end > self.used {
            // The leaf changed meanwhile, and this copy of it will be discarded.
            self.places.push(RecordSpan::default());
            return;
        }
        if leaf.with_keys {
            if leaf.prefix_length <= SHORT_PREFIX {
                self.bytes[lengths - SHORT_PREFIX..lengths].copy_from_slice(&leaf.prefix);
            } else {
                let key = lengths - leaf.prefix_length;
                self.bytes[key..lengths].copy_from_slice(&self.prefix);
            }
            self.bytes[lengths..lengths + LENGTHS].copy_from_slice(&slot.head().to_be_bytes());
            place.key_end = lengths + slot.suffix_length();
            place.key = (lengths - leaf.prefix_length + leaf.skipped).min(place.key_end);
        }
        invariant!(
            BATCH_COPY_1,
            place.key_end.max(place.value_end) <= self.used && self.used <= self.bytes.len(),
            "{place:?} lies outside {} bytes",
            self.used
        );
        self.places.push(place);
    }
}

impl Drop for RecordBatch {
    fn drop(&mut self) {
        if !self.bytes.is_empty() && self.bytes.len() <= SPARE_BYTES {
            let memory = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.places));
            // At the end of the thread there is nowhere to keep it, and it is freed.
            SPARE.try_with(|spare| spare.set(memory)).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PageKind;
    use super::super::words::Scratch;
    use super::*;
    use proptest::prelude::*;

    fn leaf(scratch: &Scratch, versioned: bool, prefix: &[u8], suffixes: &[Vec<u8>]) {
        let page = scratch.page();
        page.initialize(7, PageKind::Leaf, 1, 0);
        page.set_versioned(versioned);
        let upper = [prefix, &[0xff; 9]].concat();
        page.set_fences(prefix, Some(&upper));
        for suffix in suffixes {
            let key = [prefix, suffix].concat();
            let Err(at) = page.search(&key) else { continue };
            assert!(page.insert_record(
                at,
                &key,
                0,
                0,
                &vec![suffix.len() as u8; suffix.len() * 2]
            ));
        }
    }

    proptest! {
        /// However records are copied, keys and values are those of the page.
        #[test]
        fn copies_have_the_pages_keys_and_values(
            suffixes in prop::collection::vec(prop::collection::vec(0u8..255, 0..12), 1..20),
            prefix in prop::collection::vec(0u8..255, 0..30),
            versioned: bool, most: bool, with_keys: bool, skipped in 0usize..3,
        ) {
            let scratch = Scratch::new(4096);
            leaf(&scratch, versioned, &prefix, &suffixes);
            let page = scratch.page();
            let mut batch = RecordBatch::default();
            batch.add(b"before", b"first");
            let copy = batch.begin(page, with_keys.then_some(skipped), most);
            for position in 0..page.count() {
                let slot = page.slot(position);
                let (_, length) = copy.record(slot);
                batch.take(&copy, slot, length);
            }
            batch.add(b"after", b"");
            prop_assert_eq!((batch.key(0), batch.value(0)), (&b"before"[..], &b"first"[..]));
            prop_assert_eq!(batch.len(), page.count() + 2);
            for position in 0..page.count() {
                let mut key = Vec::new();
                page.append_key(position, &mut key);
                let expected = if with_keys { key.get(skipped..).unwrap_or_default() } else { &[] };
                prop_assert_eq!(batch.key(position + 1), expected);
                let mut value = Vec::new();
                let record = page.record(position);
                page.append_to(record.value_offset, record.value_length, &mut value);
                prop_assert_eq!(batch.value(position + 1), &value[..]);
            }
        }

        /// No content of a page makes a copy panic (BATCH-COPY-1).
        #[test]
        fn any_content_can_be_copied(
            words in prop::collection::vec(any::<u64>(), 512), most: bool, keys: bool,
        ) {
            let scratch = Scratch::new(4096);
            let page = scratch.page();
            for (at, word) in words.iter().enumerate() {
                page.set_word(at, *word);
            }
            let mut batch = RecordBatch::default();
            let copy = batch.begin(page, keys.then_some(4), most);
            for position in 0..page.count().min(600) {
                let slot = page.slot(position);
                let (_, length) = copy.record(slot);
                batch.take(&copy, slot, length);
                let _ = (batch.key(position), batch.value(position));
            }
        }
    }
}
