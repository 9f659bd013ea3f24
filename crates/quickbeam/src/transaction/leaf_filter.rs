//! What a scan wants of a leaf, told from the records' words.
//!
//! Above: [`Scan`](super::Scan). Below: pages. The records of a leaf mostly have keys of one length, so that a number lies in the same word of
//! each, at the same shift: that is worked out once, and looking at a record is a few loads and no jump that cannot be foretold.
//! The page may change while it is looked at: what comes out then is nonsense, which the scan's validation throws away (PAGE-1).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::mvcc::{TransactionId, writer_of};
use crate::page::{Page, TOMBSTONE};

/// A number within a value, and what it has to be for the record to be wanted: signed, little-endian, of one, two, four or
/// eight bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntRange {
    /// Where in the value it begins.
    pub at: usize,
    /// How many bytes it has.
    pub width: usize,
    /// The least that is wanted.
    pub low: i64,
    /// The greatest that is wanted.
    pub high: i64,
    /// Which between them are wanted, if not all: bit `n` stands for `low + n`; what has no bit is not wanted.
    pub members: Option<Arc<[u64]>>,
}

impl IntRange {
    #[inline]
    fn holds(&self, number: i64) -> bool {
        if number < self.low || number > self.high {
            return false;
        }
        let Some(members) = &self.members else { return true };
        let nth = number.wrapping_sub(self.low) as u64;
        let word = usize::try_from(nth / 64).ok().and_then(|word| members.get(word));
        word.is_some_and(|word| word >> (nth % 64) & 1 != 0)
    }

    fn number(&self) -> IntField {
        IntField { at: self.at, width: self.width }
    }
}

/// A whole number within a value: signed, little-endian, of one, two, four or eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntField {
    /// Where in the value it begins.
    pub at: usize,
    /// How many bytes it has.
    pub width: usize,
}

impl IntField {
    /// Where it ends.
    #[inline]
    fn end(self) -> usize {
        self.at.saturating_add(self.width)
    }
}

/// Where a number lies in a record, by words.
#[derive(Clone, Copy, Debug)]
struct WordField {
    word: usize,
    shift: u32,
    /// Bits of the shifted word that are not the number's.
    unused: u32,
    /// It ends in the next word.
    crosses: bool,
}

impl WordField {
    /// The place of a number in records whose values begin at that byte.
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

/// A record that is not left out.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Its position in the leaf.
    pub position: u32,
    /// Whether it is known to be inside every window.
    pub told: bool,
}

/// What is left of a leaf. Keep it: its memory is used again.
#[derive(Clone, Debug, Default)]
pub struct LeafFilter {
    /// The records that are not left out, in the scan's direction.
    pub left: Vec<Left>,
    /// The windows' numbers, in records whose keys are as long as the one before.
    windows: Vec<WordField>,
    /// Where the records lie whose numbers are still to be read: the last ones of those left, whose keys are of one length.
    records: Vec<u32>,
}

/// The start of every value.
const FORM: IntField = IntField { at: 0, width: 2 };

impl LeafFilter {
    /// Looks at the records at those positions, whose values begin with the two bytes of `form`. Puts the numbers of those that are left into
    /// the columns; false when one of them is not easily told (SCAN-4).
    pub fn run(
        &mut self,
        page: Page<'_>,
        positions: impl Iterator<Item = usize>,
        horizon: TransactionId,
        (form, windows, numbers): (u16, &[IntRange], &[IntField]),
        columns: &mut [Vec<i64>],
    ) -> bool {
        self.left.clear();
        self.records.clear();
        let wanted = windows.iter().map(IntRange::number).chain(numbers.iter().copied());
        let end = wanted.map(IntField::end).max().unwrap_or(0).max(2);
        let form = i64::from(form.cast_signed());
        let layout = page.record_layout();
        let (mut rest, mut value, mut form_place) = (usize::MAX, 0, WordField::new(FORM, 0));
        let mut all_told = true;
        for position in positions {
            let slot = page.slot(position);
            if slot.rest_length() != rest {
                self.read_numbers(page, numbers, value, columns);
                rest = slot.rest_length();
                value = layout.value_start(slot);
                form_place = WordField::new(FORM, value);
                self.windows.clear();
                self.windows
                    .extend(windows.iter().map(|window| WordField::new(window.number(), value)));
            }
            let (version, length, record) = layout.record(page, slot);
            let is_visible_to_all = writer_of(version) < horizon;
            if !is_visible_to_all
                || slot.flags() != 0
                || length < end
                || form_place.read(record) != form
            {
                if !is_visible_to_all || slot.flags() & TOMBSTONE == 0 {
                    all_told = false;
                    self.left.push(Left { position: position as u32, told: false });
                }
                continue;
            }
            let mut places = windows.iter().zip(&self.windows);
            if places.all(|(window, place)| window.holds(place.read(record))) {
                self.left.push(Left { position: position as u32, told: true });
                if !numbers.is_empty() {
                    self.records.push((slot.offset() / 8) as u32);
                }
            }
        }
        self.read_numbers(page, numbers, value, columns);
        all_told
    }

    /// Reads the numbers of the records noted, whose values begin at that byte of each, one column after the other.
    fn read_numbers(
        &mut self,
        page: Page<'_>,
        numbers: &[IntField],
        value: usize,
        columns: &mut [Vec<i64>],
    ) {
        for (number, column) in numbers.iter().zip(columns) {
            let place = WordField::new(*number, value);
            let read = |&at: &u32| place.read(page.words_from(at as usize * 8));
            column.extend(self.records.iter().map(read));
        }
        self.records.clear();
    }
}
