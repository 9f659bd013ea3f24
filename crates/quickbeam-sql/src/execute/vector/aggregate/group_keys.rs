//! The keys of groups, and the tables that find a group by its key.
//!
//! Above: vectorized aggregation. Below: hash tables.
//!
//! A key of up to four columns whose values are short is packed into a word of 128 bits: the
//! columns share its bytes equally. Whether a key is packed depends on its values alone. So equal
//! keys are all packed or all not, and each group is in one of two tables.

use arrow_array::{Array, BooleanArray, Float64Array, Int64Array, StringArray};

use crate::execute::hash::key_table::{AbsentKey, KeyTable};
use crate::execute::hash::packed_table::{PackedKey, PackedTable};
use crate::execute::vector::column::Vector;

/// Bytes of a packed key.
const PACKED_BYTES: usize = 16;
/// Bytes of a half of it.
const HALF_BYTES: usize = 8;
/// The most columns of a packed key.
const MOST_PACKED: usize = 4;

/// The keys of the rows of a batch, packed where that is possible.
#[derive(Debug, Default)]
pub struct PackedKeys {
    words: Vec<PackedKey>,
    is_packed: Vec<bool>,
    /// Whether all keys are packed.
    are_packed: bool,
}

impl PackedKeys {
    /// Returns the packed key of a row, if it has one.
    #[inline]
    pub fn get(&self, row: usize) -> Option<PackedKey> {
        if *self.is_packed.get(row)? { self.words.get(row).copied() } else { None }
    }

    /// Returns the keys of the rows from `row` on, if all keys of the batch are packed.
    pub fn rest(&self, row: usize) -> &[PackedKey] {
        if self.are_packed { self.words.get(row..).unwrap_or_default() } else { &[] }
    }

    /// Packs the keys of `rows` rows.
    pub fn pack<'v>(&mut self, columns: impl ExactSizeIterator<Item = &'v Vector>, rows: usize) {
        self.words.clear();
        self.is_packed.clear();
        self.are_packed = false;
        if columns.len() > MOST_PACKED {
            return;
        }
        self.words.resize(rows, [0; 2]);
        self.is_packed.resize(rows, true);
        let width = PACKED_BYTES / columns.len().next_power_of_two();
        for (nth, column) in columns.enumerate() {
            let (half, first) = (nth * width / HALF_BYTES, nth * width % HALF_BYTES);
            let field = PackedField { half, shift: (first * 8) as u32, width };
            match column {
                Vector::Numbers(numbers) => self.pack_numbers(field, numbers),
                Vector::Doubles(doubles) => self.pack_doubles(field, doubles),
                Vector::Truths(truths) => self.pack_truths(field, truths),
                Vector::Texts(texts) => self.pack_texts(field, texts),
                Vector::Wide(_) => self.is_packed.fill(false),
            }
        }
        self.are_packed = self.is_packed.iter().all(|is_packed| *is_packed);
    }

    fn pack_numbers(&mut self, field: PackedField, numbers: &Int64Array) {
        let is_narrow = field.width < 8;
        let rows = self.words.iter_mut().zip(&mut self.is_packed).zip(numbers.values());
        for ((word, is_packed), number) in rows {
            word[field.half] |= field.place(*number as u64);
            *is_packed &= !is_narrow || i32::try_from(*number).is_ok();
        }
        self.exclude_nulls(numbers);
    }

    fn pack_doubles(&mut self, field: PackedField, doubles: &Float64Array) {
        if field.width < 8 {
            return self.is_packed.fill(false);
        }
        for (word, double) in self.words.iter_mut().zip(doubles.values()) {
            // One zero, and one that is no number.
            let double = match *double {
                0.0 => 0.0,
                double if double.is_nan() => f64::NAN,
                double => double,
            };
            word[field.half] |= field.place(double.to_bits());
        }
        self.exclude_nulls(doubles);
    }

    fn pack_truths(&mut self, field: PackedField, truths: &BooleanArray) {
        for (word, truth) in self.words.iter_mut().zip(truths.values().iter()) {
            word[field.half] |= field.place(truth.into());
        }
        self.exclude_nulls(truths);
    }

    fn pack_texts(&mut self, field: PackedField, texts: &StringArray) {
        let (offsets, bytes) = (texts.value_offsets(), texts.value_data());
        let ends = offsets.iter().zip(offsets.iter().skip(1));
        for ((word, is_packed), (start, end)) in
            self.words.iter_mut().zip(&mut self.is_packed).zip(ends)
        {
            let (start, length) = (*start as usize, (end - start) as usize);
            // The last byte of the field is the length.
            let fits = length < field.width;
            *is_packed &= fits;
            if !fits {
                continue;
            }
            if field.width <= HALF_BYTES {
                word[field.half] |= field.place_text(bytes, start, length);
            } else {
                let low = bits_of(bytes, start, length.min(HALF_BYTES));
                let high = bits_of(bytes, start + HALF_BYTES, length.saturating_sub(HALF_BYTES));
                *word = [low, high | (length as u64) << (HALF_BYTES * 8 - 8)];
            }
        }
        self.exclude_nulls(texts);
    }

    /// Leaves the keys with a NULL of a column unpacked.
    fn exclude_nulls(&mut self, column: &dyn Array) {
        if let Some(nulls) = column.nulls() {
            let rows = self.is_packed.iter_mut().zip(nulls.iter());
            rows.for_each(|(is_packed, is_valid)| *is_packed &= is_valid);
        }
    }
}

/// The part of a packed key that a column takes.
#[derive(Clone, Copy, Debug)]
struct PackedField {
    /// The half of the key, and the bits before it there. A field of 16 bytes takes both halves.
    half: usize,
    shift: u32,
    /// Its bytes.
    width: usize,
}

impl PackedField {
    #[inline]
    fn place(self, bits: u64) -> u64 {
        let bits = if self.width < HALF_BYTES { bits & u64::from(u32::MAX) } else { bits };
        bits << self.shift
    }

    /// Packs a text that is shorter than the field, which is within a half.
    #[inline]
    fn place_text(self, bytes: &[u8], start: usize, length: usize) -> u64 {
        (bits_of(bytes, start, length) | (length as u64) << (self.width * 8 - 8)) << self.shift
    }
}

/// Returns `length` bytes from `start` on, at most 8, as a little-endian number.
#[inline]
fn bits_of(bytes: &[u8], start: usize, length: usize) -> u64 {
    let rest = bytes.get(start..).unwrap_or_default();
    match rest.first_chunk::<HALF_BYTES>() {
        Some(chunk) if length < HALF_BYTES => {
            u64::from_le_bytes(*chunk) & ((1 << (length * 8)) - 1)
        }
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => {
            let text = rest.get(..length).unwrap_or_default();
            text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        }
    }
}

/// Groups by their keys.
#[derive(Debug, Default)]
pub struct GroupTable {
    packed: PackedTable,
    /// The keys that are not packed, and the group of each.
    long: KeyTable,
    long_groups: Vec<u32>,
}

impl GroupTable {
    pub fn clear(&mut self) {
        self.packed.clear();
        self.long.clear();
        self.long_groups.clear();
    }

    /// Returns the group of a key, or what [`insert`](Self::insert) takes.
    #[inline]
    pub fn locate(&self, key: GroupKey<'_>) -> std::result::Result<u32, AbsentGroup> {
        match key {
            GroupKey::Packed(key) => self.packed.find(key).ok_or(AbsentGroup::Packed(key)),
            GroupKey::Long(key) => match self.long.locate(key) {
                Ok(place) => Ok(self.long_groups[place]),
                Err(absent) => Err(AbsentGroup::Long(absent)),
            },
        }
    }

    /// Appends the groups of packed keys to `places`, up to the first key that is new.
    pub fn find_run(&self, keys: &[PackedKey], places: &mut Vec<u32>) {
        self.packed.find_run(keys, places);
    }

    /// Inserts a key that [`locate`](Self::locate) has not found. `bytes`: the key if it is long.
    pub fn insert(&mut self, absent: AbsentGroup, bytes: &[u8], group: u32) {
        match absent {
            AbsentGroup::Packed(key) => self.packed.insert(key, group),
            AbsentGroup::Long(absent) => {
                self.long.insert_absent(bytes, absent);
                self.long_groups.push(group);
            }
        }
    }

    /// Returns the groups in order, each with its key.
    pub fn keys_in_order(&self) -> impl Iterator<Item = (u32, GroupKey<'_>)> {
        let packed = self.packed.in_order().into_iter();
        let mut packed = packed.map(|(group, key)| (group, GroupKey::Packed(key))).peekable();
        let long = self.long_groups.iter().enumerate();
        let mut long = long
            .filter_map(|(number, group)| Some((*group, GroupKey::Long(self.long.key(number)?))))
            .peekable();
        std::iter::from_fn(move || match (packed.peek(), long.peek()) {
            (Some((one, _)), Some((other, _))) if other < one => long.next(),
            (Some(_), _) => packed.next(),
            (None, _) => long.next(),
        })
    }

    /// Returns the group of a key, which is `next` if the key is new; true: it is new.
    pub fn place(&mut self, key: GroupKey<'_>, next: u32) -> (u32, bool) {
        let bytes = match key {
            GroupKey::Packed(_) => &[][..],
            GroupKey::Long(bytes) => bytes,
        };
        match self.locate(key) {
            Ok(group) => (group, false),
            Err(absent) => {
                self.insert(absent, bytes, next);
                (next, true)
            }
        }
    }
}

/// A key that no group has.
#[derive(Clone, Copy, Debug)]
pub enum AbsentGroup {
    Packed(PackedKey),
    Long(AbsentKey),
}

/// The key of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKey<'t> {
    Packed(PackedKey),
    Long(&'t [u8]),
}

impl<'t> GroupKey<'t> {
    /// Returns the packed key, or `bytes` if there is none.
    #[inline]
    pub fn of(packed: Option<PackedKey>, bytes: &'t [u8]) -> GroupKey<'t> {
        packed.map_or(GroupKey::Long(bytes), GroupKey::Packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::execute::row::append;
    use crate::types::{DataType, ValueRef};

    fn text() -> impl Strategy<Value = Option<String>> {
        prop::option::of(prop_oneof!["[ab\u{0}]{0,4}", "[a-c]{3,18}"])
    }

    fn number() -> impl Strategy<Value = Option<i64>> {
        prop::option::of(prop_oneof![-3..3_i64, any::<i64>(), Just(1 << 31), Just(-1 << 31)])
    }

    fn double() -> impl Strategy<Value = Option<f64>> {
        prop::option::of(prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(-f64::NAN),
            any::<f64>()
        ])
    }

    /// A column of some type, of `rows` rows.
    fn column(rows: usize) -> impl Strategy<Value = (Vector, DataType)> {
        let of = move |count| prop::collection::vec(text(), count);
        prop_oneof![
            of(rows).prop_map(|texts| (Vector::Texts(texts.into_iter().collect()), DataType::Text)),
            prop::collection::vec(number(), rows).prop_map(|numbers| (
                Vector::Numbers(numbers.into_iter().collect()),
                DataType::BigInt
            )),
            prop::collection::vec(double(), rows).prop_map(|doubles| (
                Vector::Doubles(doubles.into_iter().collect()),
                DataType::Double
            )),
            prop::collection::vec(prop::option::of(any::<bool>()), rows).prop_map(|truths| (
                Vector::Truths(truths.into_iter().collect()),
                DataType::Boolean
            )),
        ]
    }

    proptest! {
        #[test]
        fn keys_are_equal_exactly_if_their_values_are(
            columns in prop::collection::vec(column(40), 1..6),
        ) {
            let mut keys = PackedKeys::default();
            keys.pack(columns.iter().map(|(vector, _)| vector), 40);
            let bytes = |row: usize| {
                let mut key = Vec::new();
                columns.iter().for_each(|(vector, data_type)| append(vector.value(row, *data_type), &mut key));
                key
            };
            let has_null = |row| columns.iter().any(|(v, t)| matches!(v.value(row, *t), ValueRef::Null));
            for row in 0..40 {
                for other in 0..row {
                    let is_equal = bytes(row) == bytes(other);
                    prop_assert_eq!(keys.get(row).is_some() && keys.get(row) == keys.get(other),
                        is_equal && keys.get(row).is_some(), "rows {} and {}", row, other);
                }
                prop_assert!(keys.get(row).is_none() || !has_null(row) && columns.len() <= MOST_PACKED);
            }
        }

        #[test]
        fn groups_are_found_and_listed_in_order(
            keys in prop::collection::vec((any::<bool>(), 0..50_u8), 0..200),
        ) {
            let mut table = GroupTable::default();
            let mut model: Vec<(bool, u8)> = Vec::new();
            for (is_packed, key) in keys {
                let long = [key];
                let as_key = match is_packed {
                    true => GroupKey::Packed([key.into(), 0]),
                    false => GroupKey::Long(&long),
                };
                let known = model.iter().position(|known| *known == (is_packed, key));
                let next = model.len() as u32;
                let found = table.place(as_key, next);
                prop_assert_eq!(found, (known.map_or(next, |at| at as u32), known.is_none()));
                if known.is_none() {
                    model.push((is_packed, key));
                }
            }
            let listed: Vec<(u32, bool, u8)> = table.keys_in_order().map(|(group, key)| match key {
                GroupKey::Packed(key) => (group, true, key[0] as u8),
                GroupKey::Long(key) => (group, false, key[0]),
            }).collect();
            let expected: Vec<(u32, bool, u8)> =
                model.iter().enumerate().map(|(group, key)| (group as u32, key.0, key.1)).collect();
            prop_assert_eq!(listed, expected);
        }
    }
}
