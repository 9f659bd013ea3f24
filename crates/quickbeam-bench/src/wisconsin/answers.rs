//! Answers as they must be, computed from the relations, and answers as they are read back: both
//! as a number of rows and a checksum that does not depend on their order.

use std::collections::BTreeMap;

use super::relations::{NUMBERS, TEXTS, Tuple, column};
use crate::sql::SqlRow;
use crate::workload::random::mix;

/// An answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WisconsinAnswer {
    /// Its rows.
    pub rows: u64,
    checksum: u64,
}

/// The columns of an answer: numbers, then texts, and both repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Numbers.
    pub numbers: usize,
    /// Texts.
    pub texts: usize,
    /// Relations side by side.
    pub times: usize,
}

impl Shape {
    /// Tuples of one, two or three relations.
    pub const fn tuples(times: usize) -> Shape {
        Shape { numbers: NUMBERS, texts: TEXTS, times }
    }
}

/// The checksum of a row while it is read.
struct HashedRow(u64);

impl HashedRow {
    fn number(&mut self, number: i64) {
        self.0 = mix(self.0 ^ number as u64);
    }

    /// Blanks at the end do not count: CHAR may be filled up with them.
    fn text(&mut self, text: &[u8]) {
        let text = text.trim_ascii_end();
        let (words, rest) = text.as_chunks::<8>();
        for word in words {
            self.0 = (self.0 ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 29;
        }
        let rest = rest.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        self.number(rest as i64 ^ (text.len() as i64) << 56);
    }
}

impl WisconsinAnswer {
    /// Takes in a row that an engine has given.
    pub fn read(&mut self, shape: Shape, found: &dyn SqlRow) {
        let mut row = HashedRow(0);
        let mut at = 0;
        for _ in 0..shape.times {
            for _ in 0..shape.numbers {
                // NULL, which no answer has, is a number that none has.
                row.number(found.integer(at).unwrap_or(i64::MIN));
                at += 1;
            }
            for _ in 0..shape.texts {
                row.text(found.text(at).unwrap_or(b"NULL"));
                at += 1;
            }
        }
        self.take(row);
    }

    fn take(&mut self, row: HashedRow) {
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(row.0);
    }

    /// Rows of whole tuples side by side.
    pub fn of_tuples<'t>(rows: impl IntoIterator<Item = Vec<&'t Tuple>>) -> WisconsinAnswer {
        let mut answer = WisconsinAnswer::default();
        for tuples in rows {
            let mut row = HashedRow(0);
            for tuple in tuples {
                tuple.numbers.iter().for_each(|&number| row.number(number.into()));
                tuple.texts.iter().for_each(|text| row.text(text.as_bytes()));
            }
            answer.take(row);
        }
        answer
    }

    /// Distinct rows of some columns, each given by its position among the sixteen.
    pub fn distinct(relation: &[Tuple], columns: &[usize]) -> WisconsinAnswer {
        let mut seen = BTreeMap::new();
        for tuple in relation {
            let numbers: Vec<i32> =
                columns.iter().filter(|&&c| c < NUMBERS).map(|&c| tuple.numbers[c]).collect();
            let texts: Vec<&str> = columns
                .iter()
                .filter(|&&c| c >= NUMBERS)
                .map(|&c| tuple.texts[c - NUMBERS].as_str())
                .collect();
            seen.insert((numbers, texts), ());
        }
        let mut answer = WisconsinAnswer::default();
        for (numbers, texts) in seen.into_keys() {
            let mut row = HashedRow(0);
            numbers.into_iter().for_each(|number| row.number(number.into()));
            texts.into_iter().for_each(|text| row.text(text.as_bytes()));
            answer.take(row);
        }
        answer
    }

    /// One number for each row.
    pub fn of_numbers(numbers: impl IntoIterator<Item = i64>) -> WisconsinAnswer {
        let mut answer = WisconsinAnswer::default();
        for number in numbers {
            let mut row = HashedRow(0);
            row.number(number);
            answer.take(row);
        }
        answer
    }
}

/// unique3 of each of the hundred groups, put together.
pub fn grouped(relation: &[Tuple], put: impl Fn(i64, i64) -> i64) -> WisconsinAnswer {
    let mut groups: BTreeMap<i32, i64> = BTreeMap::new();
    for tuple in relation {
        let value = i64::from(tuple.numbers[column::UNIQUE3]);
        let group = groups.entry(tuple.numbers[column::ONE_PERCENT]);
        group.and_modify(|sum| *sum = put(*sum, value)).or_insert(value);
    }
    WisconsinAnswer::of_numbers(groups.into_values())
}

#[cfg(test)]
mod tests {
    use super::super::relations::relation;
    use super::*;

    #[test]
    fn order_does_not_count_and_every_column_does() {
        let tuples = relation(20);
        let answer = |rows: &[&Tuple]| WisconsinAnswer::of_tuples(rows.iter().map(|&t| vec![t]));
        assert_eq!(answer(&[&tuples[0], &tuples[1]]), answer(&[&tuples[1], &tuples[0]]));
        for column in 0..NUMBERS {
            let mut other = tuples[0].clone();
            other.numbers[column] += 1;
            assert_ne!(answer(&[&tuples[0]]), answer(&[&other]), "number {column}");
        }
        for column in 0..TEXTS {
            let mut other = tuples[0].clone();
            other.texts[column].replace_range(51..52, "y");
            assert_ne!(answer(&[&tuples[0]]), answer(&[&other]), "text {column}");
            other.texts[column] = format!("{}  ", tuples[0].texts[column]);
            assert_eq!(answer(&[&tuples[0]]), answer(&[&other]), "blanks of text {column}");
        }
    }

    #[test]
    fn groups_are_put_together() {
        let tuples = relation(300);
        assert_eq!(grouped(&tuples, i64::min), WisconsinAnswer::of_numbers(0..100));
        assert_eq!(
            grouped(&tuples, |a, b| a + b),
            WisconsinAnswer::of_numbers((0..100).map(|g| 3 * g + 300))
        );
    }
}
