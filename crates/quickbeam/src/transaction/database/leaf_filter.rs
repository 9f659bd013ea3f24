//! Evaluates a scan's pushed-down predicates on the raw words of a leaf's records.
//!
//! Above: [`Scan`](super::Scan). Below: pages. Most keys of a leaf have one length, so an integer
//! has the same word and shift in each record. The filter computes both once; a record then costs a
//! few loads and no unpredictable branch.
//!
//! Another thread may change the page during the filter. The result is then garbage, which the
//! scan's validation discards (PAGE-1).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::mvcc::{TransactionId, writer_of};
use crate::page::{Page, TOMBSTONE};

/// A predicate on an integer at a fixed place of the value: signed, little-endian, of one, two,
/// four or eight bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntRange {
    /// Where in the value it begins.
    pub at: usize,
    /// How many bytes it has.
    pub width: usize,
    /// Least matching integer.
    pub low: i64,
    /// Greatest matching integer.
    pub high: i64,
    /// A bitmap of the matching integers, if not all in the range match: bit `n` is `low + n`.
    pub members: Option<Arc<[u64]>>,
}

impl IntRange {
    /// Returns whether an integer matches.
    #[inline]
    #[must_use]
    pub fn holds(&self, number: i64) -> bool {
        if number < self.low || number > self.high {
            return false;
        }
        let Some(members) = &self.members else { return true };
        let nth = number.wrapping_sub(self.low) as u64;
        let word = usize::try_from(nth / 64).ok().and_then(|word| members.get(word));
        word.is_some_and(|word| word >> (nth % 64) & 1 != 0)
    }

    fn field(&self) -> IntField {
        IntField { at: self.at, width: self.width }
    }
}

/// An integer at a fixed place of a value: signed, little-endian, of one, two, four or eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntField {
    /// Where in the value it begins.
    pub at: usize,
    /// How many bytes it has.
    pub width: usize,
}

impl IntField {
    /// Returns the integer in these bytes of a value.
    fn decode(self, value: &[u8]) -> i64 {
        let bytes = value.get(self.at..self.end()).unwrap_or_default();
        let sign = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
        bytes.iter().rev().fold(sign, |number, byte| number << 8 | i64::from(*byte))
    }

    /// Returns the offset after the last byte.
    #[inline]
    fn end(self) -> usize {
        self.at.saturating_add(self.width)
    }
}

/// The place of an integer in a record, in words.
#[derive(Clone, Copy, Debug)]
struct WordField {
    word: usize,
    shift: u32,
    /// Bits of the shifted word that are not part of the integer.
    unused: u32,
    /// The integer ends in the next word.
    crosses: bool,
}

impl WordField {
    /// Returns the place of `number` in records whose values begin at byte `value`.
    fn new(number: IntField, value: usize) -> WordField {
        let (at, width) = (value.saturating_add(number.at), number.width.clamp(1, 8));
        WordField {
            word: at / 8,
            shift: (at % 8 * 8) as u32,
            unused: 64 - 8 * width as u32,
            crosses: at % 8 + width > 8,
        }
    }

    #[inline(always)]
    fn read(self, record: &[AtomicU64]) -> i64 {
        let word = |at: usize| record.get(at).map_or(0, |word| word.load(Relaxed));
        let mut bits = word(self.word) >> self.shift;
        if self.crosses {
            bits |= word(self.word + 1) << (64 - self.shift);
        }
        (bits << self.unused) as i64 >> self.unused
    }
}

/// A record that passed the filter.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its position in the leaf.
    pub position: u32,
    /// The filter evaluated every predicate; otherwise the scan must.
    pub exact: bool,
}

/// The records of a leaf that passed the filter. Scans reuse its memory for the next leaf.
#[derive(Clone, Debug, Default)]
pub struct LeafFilter {
    /// The records that passed, in the scan's direction.
    pub candidates: Vec<Candidate>,
    /// Places of the predicates' integers, for the key length of the previous record.
    ranges: Vec<WordField>,
    /// Word offsets of the records whose integers are still to be read; their keys have one length.
    records: Vec<u32>,
}

/// A record is prefetched while the record this number of positions before it is read.
const RECORDS_AHEAD: usize = 6;

/// The two bytes at the start of every value.
const TAG: IntField = IntField { at: 0, width: 2 };

impl LeafFilter {
    /// Filters the records at `positions` whose values begin with the two bytes of `form`. Appends
    /// the integers of the records that pass to `columns`. Returns false if the scan must examine
    /// one of them itself (SCAN-4).
    pub fn run(
        &mut self,
        page: Page<'_>,
        positions: impl Iterator<Item = usize> + Clone,
        horizon: TransactionId,
        (tag, ranges, fields): (u16, &[IntRange], &[IntField]),
        columns: &mut [Vec<i64>],
    ) -> bool {
        self.candidates.clear();
        self.records.clear();
        let wanted = ranges.iter().map(IntRange::field).chain(fields.iter().copied());
        let end = wanted.map(IntField::end).max().unwrap_or(0).max(2);
        let tag = i64::from(tag.cast_signed());
        let layout = page.record_layout();
        let (mut rest, mut value, mut tag_place) = (usize::MAX, 0, WordField::new(TAG, 0));
        let mut all_exact = true;
        let mut ahead = positions.clone();
        // Records of one leaf mostly have their first integer at the same distance.
        let first_field = ranges.first().map_or(0, |range| range.at);
        let distance = positions.clone().next().map_or(0, |position| {
            layout.value_start(page.slot(position)).saturating_add(first_field)
        });
        let prefetch = |position: usize| page.prefetch_record(position, distance);
        ahead.by_ref().take(RECORDS_AHEAD).for_each(prefetch);
        for position in positions {
            ahead.by_ref().take(1).for_each(prefetch);
            let slot = page.slot(position);
            if slot.rest_length() != rest {
                self.read_fields(page, fields, value, columns);
                rest = slot.rest_length();
                value = layout.value_start(slot);
                tag_place = WordField::new(TAG, value);
                self.ranges.clear();
                self.ranges.extend(ranges.iter().map(|range| WordField::new(range.field(), value)));
            }
            let (version, length, record) = layout.record(page, slot);
            let is_visible_to_all = writer_of(version) < horizon;
            if !is_visible_to_all
                || slot.flags() != 0
                || length < end
                || tag_place.read(record) != tag
            {
                if !is_visible_to_all || slot.flags() & TOMBSTONE == 0 {
                    all_exact = false;
                    self.candidates.push(Candidate { position: position as u32, exact: false });
                }
                continue;
            }
            let mut fields_in_words = ranges.iter().zip(&self.ranges);
            if fields_in_words.all(|(range, place)| range.holds(place.read(record))) {
                self.candidates.push(Candidate { position: position as u32, exact: true });
                if !fields.is_empty() {
                    self.records.push((slot.offset() / 8) as u32);
                }
            }
        }
        self.read_fields(page, fields, value, columns);
        all_exact
    }

    /// Returns whether each record that the filter left out is a tombstone, or has an integer
    /// outside its range by the bytes of its value (SCAN-3).
    pub fn is_right(
        &self,
        page: Page<'_>,
        mut positions: impl Iterator<Item = usize>,
        tag: u16,
        ranges: &[IntRange],
    ) -> bool {
        let mut passed = self.candidates.iter().map(|candidate| candidate.position as usize);
        let mut next = passed.next();
        let mut value = Vec::new();
        let mut is_right = |position: usize| {
            if next == Some(position) {
                next = passed.next();
                return true;
            }
            let record = page.record(position);
            page.assign_to(record.value_offset, record.value_length, &mut value);
            record.flags & TOMBSTONE != 0
                || (value.starts_with(&tag.to_le_bytes())
                    && ranges.iter().any(|range| !range.holds(range.field().decode(&value))))
        };
        positions.all(&mut is_right)
    }

    /// Appends the integers of the noted records to the columns. `value` is the byte in each record
    /// where its value begins.
    fn read_fields(
        &mut self,
        page: Page<'_>,
        fields: &[IntField],
        value: usize,
        columns: &mut [Vec<i64>],
    ) {
        for (number, column) in fields.iter().zip(columns) {
            let place = WordField::new(*number, value);
            let read = |&at: &u32| place.read(page.words_from(at as usize * 8));
            column.extend(self.records.iter().map(read));
        }
        self.records.clear();
    }
}
