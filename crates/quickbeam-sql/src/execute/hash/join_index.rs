//! Chained rows of a hash join, for row and vectorized execution. Each key leads to its first row,
//! each row to the next one of its key.
//!
//! Above: the joins, which store the rows. Below: key tables. Rows are numbered in insertion order,
//! and the rows of one key keep that order.

use std::sync::Arc;

use super::super::vector::IntTable;
use super::key_table::KeyTable;

/// No row.
pub const NONE: u32 = u32::MAX;

/// Approximate memory of a row here, besides its key.
pub const ROW_BYTES: usize = 48;

/// The first and the last row of each key.
type Ends = Vec<(u32, u32)>;

/// Keys, and the rows of each key.
#[derive(Clone, Debug, Default)]
pub struct JoinIndex {
    /// Keys that are one integer, of any width.
    numbers: IntTable,
    number_ends: Ends,
    /// All others.
    table: KeyTable,
    table_ends: Ends,
    /// For each row the next one of the same key.
    next: Vec<u32>,
    repeated: bool,
}

impl JoinIndex {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.number_ends.clear();
        self.table.clear();
        self.table_ends.clear();
        self.next.clear();
        self.repeated = false;
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.next.len()
    }

    /// Whether several rows have the same key.
    pub fn is_repeated(&self) -> bool {
        self.repeated
    }

    /// Adds a row that no key leads to.
    pub fn add_without_key(&mut self) {
        self.next.push(NONE);
    }

    /// Adds a row whose key is that number.
    #[inline]
    pub fn add_number(&mut self, number: i64) {
        let (place, new) = self.numbers.place(number);
        let row = push_row(&mut self.next);
        self.repeated |= !new;
        link(&mut self.number_ends, &mut self.next, place as usize, new, row);
    }

    /// Adds a row whose key is those bytes.
    pub fn add_bytes(&mut self, key: &[u8]) {
        let (place, new) = self.table.insert(key);
        let row = push_row(&mut self.next);
        self.repeated |= !new;
        link(&mut self.table_ends, &mut self.next, place, new, row);
    }

    /// The first row whose key is that number.
    #[inline]
    pub fn first_of_number(&self, number: i64) -> u32 {
        let place = self.numbers.find(number);
        let ends = place.and_then(|place| self.number_ends.get(place as usize));
        ends.map_or(NONE, |(first, _)| *first)
    }

    /// Returns the first row of a key.
    #[inline]
    pub fn first_of_bytes(&self, key: &[u8]) -> u32 {
        let ends = self.table.find(key).and_then(|place| self.table_ends.get(place));
        ends.map_or(NONE, |(first, _)| *first)
    }

    /// Returns the row that follows a row of the same key, or `NONE`. Returns `None` if there is no
    /// such row.
    #[inline]
    pub fn next(&self, row: u32) -> Option<u32> {
        self.next.get(row as usize).copied()
    }
}

#[inline]
fn push_row(next: &mut Vec<u32>) -> u32 {
    next.push(NONE);
    next.len() as u32 - 1
}

/// Appends a row to the chain of its key.
#[inline]
fn link(ends: &mut Ends, next: &mut [u32], place: usize, new: bool, row: u32) {
    if new {
        ends.push((row, row));
    } else if let Some((_, last)) = ends.get_mut(place) {
        let before = std::mem::replace(last, row);
        if let Some(next) = next.get_mut(before as usize) {
            *next = row;
        }
    }
}

/// Bits that a set of keys may have for each key in it.
const BITS_A_KEY: usize = 256;

/// Returns the minimum and maximum of the numbers, and a bit set of those between them if it is
/// small.
pub fn members_of(numbers: &[i64]) -> (i64, i64, Option<Arc<[u64]>>) {
    let (Some(&low), Some(&high)) = (numbers.iter().min(), numbers.iter().max()) else {
        return (1, 0, None);
    };
    let span = high.checked_sub(low).and_then(|span| usize::try_from(span).ok());
    let Some(span) = span.filter(|span| *span < numbers.len().saturating_mul(BITS_A_KEY)) else {
        return (low, high, None);
    };
    let mut bits = vec![0u64; span / 64 + 1];
    for number in numbers {
        let nth = (number - low) as usize;
        bits[nth / 64] |= 1 << (nth % 64);
    }
    (low, high, Some(bits.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_key_come_in_the_order_in_which_they_were_added() {
        let mut chains = JoinIndex::default();
        for _ in 0..2 {
            for row in 0..3_000i64 {
                match row % 3 {
                    0 => chains.add_number(row % 7 * 1_000_000),
                    1 => chains.add_bytes(&(row % 11).to_le_bytes()),
                    _ => chains.add_without_key(),
                }
            }
            let rows_from = |first: u32| {
                let rows = std::iter::successors(Some(first), |row| chains.next(*row));
                rows.take_while(|row| *row != NONE).collect::<Vec<u32>>()
            };
            for key in 0..11 {
                let expected = |kind: u32, of: i64| {
                    let is_of = move |row: &u32| row % 3 == kind && i64::from(*row) % of == key;
                    (0..3_000u32).filter(is_of).collect::<Vec<u32>>()
                };
                if key < 7 {
                    let found = rows_from(chains.first_of_number(key * 1_000_000));
                    assert_eq!(found, expected(0, 7), "{key}");
                }
                let found = rows_from(chains.first_of_bytes(&key.to_le_bytes()));
                assert_eq!(found, expected(1, 11), "{key}");
            }
            assert_eq!((chains.rows(), chains.is_repeated()), (3_000, true));
            assert_eq!((chains.first_of_number(7), chains.first_of_bytes(b"")), (NONE, NONE));
            chains.clear();
            assert_eq!((chains.rows(), chains.is_repeated()), (0, false));
        }
    }

    #[test]
    fn numbers_are_told_by_bits_where_these_are_few() {
        assert_eq!(members_of(&[]), (1, 0, None));
        assert_eq!(members_of(&[i64::MIN, i64::MAX]), (i64::MIN, i64::MAX, None));
        assert_eq!(members_of(&[5, -1, 70]), (-1, 70, Some([65, 1 << 7].into())));
    }
}
