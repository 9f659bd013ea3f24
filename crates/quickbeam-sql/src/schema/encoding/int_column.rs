//! Whole numbers, read and written where they stand in a row's bytes, without a look at the row's
//! other columns.
//!
//! Above: scans that filter or sum integers, and updates that increment them. Below: the row
//! format. Everything here applies to rows in the table's current layout; the caller decodes rows
//! of an older layout as values.

use super::row_format::{ColumnEncoding, ColumnLayout, load};
use crate::error::Result;
use crate::schema::Table;
use crate::types::{DataType, SHORT_PRECISION};

/// Where a number stands in rows of the form in which a table's rows are written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberAt {
    /// The form.
    pub form: u16,
    /// Bytes from the row's start.
    pub at: usize,
    /// Bytes of the number.
    pub width: usize,
}

impl NumberAt {
    /// The number in a row of that form, in which it is not NULL.
    #[inline]
    pub fn read(self, row: &[u8]) -> Result<i64> {
        let at = self.at as u32;
        Ok(match self.width {
            2 => i16::from_le_bytes(load(row, at)?).into(),
            4 => i32::from_le_bytes(load(row, at)?).into(),
            _ => i64::from_le_bytes(load(row, at)?),
        })
    }

    /// Puts a number in its place; false, and nothing changed, if it is out of range.
    #[inline]
    fn write(self, row: &mut [u8], number: i64) -> bool {
        let fits = match self.width {
            2 => i16::try_from(number).is_ok(),
            4 => i32::try_from(number).is_ok(),
            _ => true,
        };
        let place = row.get_mut(self.at..self.at + self.width).filter(|_| fits);
        // The lower bytes of a number that fits are the number.
        place.is_some_and(|place| {
            place.copy_from_slice(&number.to_le_bytes()[..self.width]);
            true
        })
    }
}

/// A number of a row, or a NULL in its place.
#[derive(Clone, Copy, Debug)]
pub struct NumberCell {
    number: NumberAt,
    null_at: usize,
    null_mask: u8,
}

impl NumberCell {
    /// The number, if the row is of the form and it is not NULL.
    #[inline]
    pub fn get(self, row: &[u8]) -> Option<i64> {
        let is_current = row.first_chunk() == Some(&self.number.form.to_le_bytes());
        let is_null = row.get(self.null_at)? & self.null_mask != 0;
        if is_null || !is_current { None } else { self.number.read(row).ok() }
    }

    /// Puts a number in its place in a row of the form; false, and nothing changed, if it is out of
    /// range.
    #[inline]
    pub fn set(self, row: &mut [u8], number: i64) -> bool {
        if self.null_at >= row.len() || !self.number.write(row, number) {
            return false;
        }
        row[self.null_at] &= !self.null_mask;
        true
    }
}

impl Table {
    #[inline]
    fn number_place(&self, position: usize) -> Option<(&ColumnLayout, NumberAt)> {
        let layout = &*self.layouts.current;
        let place = layout.places.get(position)?.as_ref()?;
        let width = match place.kind {
            ColumnEncoding::SmallInt => 2,
            ColumnEncoding::Integer | ColumnEncoding::Date => 4,
            ColumnEncoding::BigInt => 8,
            _ => return None,
        };
        Some((place, NumberAt { form: layout.number, at: place.at as usize, width }))
    }

    /// Where a column of integers, dates or NUMERIC of at most 18 digits stands; none if it is of
    /// another type. Of a NUMERIC it is the number without its point: all values of a column have
    /// the column's scale, and the lower half of the 128 bits is the number.
    #[must_use]
    pub fn number_at(&self, position: usize) -> Option<NumberAt> {
        if self.is_database() {
            return None;
        }
        let column = self.columns.get(position)?;
        if let DataType::Numeric(Some((precision, _))) = column.data_type {
            let layout = &*self.layouts.current;
            let (place, written) = (layout.places.get(position)?.as_ref()?, column.id);
            let written = layout.columns.iter().find(|(id, _)| *id == written)?.1;
            let is_short = precision <= SHORT_PRECISION && written == column.data_type;
            return is_short.then_some(NumberAt {
                form: layout.number,
                at: place.at as usize,
                width: 8,
            });
        }
        Some(self.number_place(position)?.1)
    }

    /// A column of integers; none if it is of another type.
    #[inline]
    #[must_use]
    pub fn number_cell(&self, position: usize) -> Option<NumberCell> {
        let (place, number) = self.number_place(position)?;
        let (null_at, null_mask) = (usize::from(place.null_at), place.null_mask);
        (place.kind != ColumnEncoding::Date).then_some(NumberCell { number, null_at, null_mask })
    }

    /// The number in a column of integers, if the row is of the form in which rows are written now
    /// and it is not NULL.
    #[inline]
    pub fn number_in(&self, row: &[u8], position: usize) -> Option<i64> {
        self.number_cell(position)?.get(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_put_where_it_stands_if_it_fits() {
        for (width, largest) in [(2, i64::from(i16::MAX)), (4, i64::from(i32::MAX)), (8, i64::MAX)]
        {
            let number = NumberAt { form: 1, at: 3, width };
            let cell = NumberCell { number, null_at: 2, null_mask: 4 };
            let mut row = vec![1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 9];
            assert_eq!(cell.get(&row), None, "it is NULL");
            for value in [largest, -largest - 1, -1, 0, 77] {
                assert!(cell.set(&mut row, value));
                assert_eq!((cell.get(&row), row[2], row[11]), (Some(value), 3, 9));
            }
            let before = row.clone();
            assert_eq!(cell.set(&mut row, largest.wrapping_add(1)), width == 8);
            assert_eq!(row == before, width != 8);
            assert!(!cell.set(&mut row[..3 + width - 1], 5), "the row is too short");
            row[0] = 2;
            assert_eq!(cell.get(&row), None, "it is of another form");
        }
    }
}
