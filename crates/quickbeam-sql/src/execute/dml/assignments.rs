//! The new row that an UPDATE makes of the old one.
//!
//! Above: UPDATE and INSERT … ON CONFLICT DO UPDATE. Below: expressions, the form of rows.

use super::insert::row_in;
use crate::catalog::Table;
use crate::error::Result;
use crate::execute::row::Context;
use crate::expression::{Arithmetic, Datum, Expr, NumberKind};
use crate::table::{NumberCell, StoredRow, TableHandle};
use crate::types::{DataType, Value, ValueRef};

/// Columns and their new values.
#[derive(Clone, Debug)]
pub struct Assignments {
    list: Vec<(usize, Expr)>,
    /// The assignments, if all are of the form [`Sum`].
    sums: Option<Vec<Sum>>,
    /// The bytes at the end of old rows that are their row ids (ROW-3).
    row_id_bytes: usize,
}

/// An assignment `column = column ± given` to an integer column, done in the row's bytes. Most
/// updates compute this.
#[derive(Clone, Debug)]
struct Sum {
    to: NumberCell,
    from: NumberCell,
    is_difference: bool,
    other: Expr,
}

impl Sum {
    fn of(column: usize, value: &Expr, table: &Table, slot: usize) -> Option<Sum> {
        let Expr::Arithmetic(operator, kind, pair, _) = value else { return None };
        let [Expr::Column(at), other] = &**pair else { return None };
        let data_type = match kind {
            NumberKind::Integer => DataType::Integer,
            NumberKind::Big => DataType::BigInt,
            _ => return None,
        };
        let is_difference = match operator {
            Arithmetic::Add => false,
            Arithmetic::Subtract => true,
            _ => return None,
        };
        let cell = |column: usize| {
            let known = table.columns.get(column)?;
            if known.data_type == data_type { table.number_cell(column) } else { None }
        };
        let is_given = matches!(other, Expr::Parameter(_) | Expr::Constant(_));
        let (to, from) = (cell(column)?, cell(at.column)?);
        (is_given && at.slot == slot).then(|| Sum { to, from, is_difference, other: other.clone() })
    }
}

impl Assignments {
    /// Makes the assignments to the columns at these positions. `slot` has the old row.
    pub fn new(list: Vec<(usize, Expr)>, table: &Table, slot: usize) -> Assignments {
        let sum = |(column, value): &(usize, Expr)| Sum::of(*column, value, table, slot);
        let sums = list.iter().map(sum).collect();
        Assignments { list, sums, row_id_bytes: 0 }
    }

    /// Sets how many bytes at the end of an old row are its row id.
    pub fn set_row_id_bytes(&mut self, bytes: usize) {
        self.row_id_bytes = bytes;
    }

    /// The columns.
    pub fn columns(&self) -> Vec<usize> {
        self.list.iter().map(|(column, _)| *column).collect()
    }

    /// Writes the assigned row to `new` if each assignment adds to or subtracts from an integer
    /// column. Returns false otherwise, or for a NULL, an overflow or a row of an older format.
    #[inline]
    pub fn count_up(&self, old: &[u8], parameters: &[Value], new: &mut Vec<u8>) -> bool {
        let Some(sums) = &self.sums else { return false };
        old.clone_into(new);
        sums.iter().all(|Sum { to, from, is_difference, other }| {
            let other = other.given(parameters).and_then(|other| other.as_ref().as_i64());
            let (Some(number), Some(other)) = (from.get(old), other) else { return false };
            let sum =
                if *is_difference { number.checked_sub(other) } else { number.checked_add(other) };
            sum.is_some_and(|sum| to.set(new, sum))
        })
    }

    /// Writes the row in the slot with the assigned columns to `new`: copied and patched if
    /// possible, otherwise encoded from values.
    pub fn new_row(
        &self,
        handle: &TableHandle,
        slot: usize,
        context: &Context<'_>,
        new: &mut Vec<u8>,
    ) -> Result<()> {
        let table = handle.table();
        let old = row_in(handle, context, slot)?.bytes();
        let old = &old[..old.len().saturating_sub(self.row_id_bytes)];
        let old = StoredRow::new(table, old)?;
        if self.count_up(old.bytes(), context.parameters, new) {
            return Ok(());
        }
        let frame = context.frame();
        old.bytes().clone_into(new);
        for (number, (column, value)) in self.list.iter().enumerate() {
            let value = value.evaluate(&frame)?;
            if table.set_in_place(new, *column, value.as_ref())? {
                continue;
            }
            // Columns before this one have their values already, and none is evaluated again: a
            // function may change something. The row is encoded from them and from the others.
            let mut values: Vec<(usize, Datum<'_>)> = Vec::with_capacity(self.list.len() - number);
            values.push((*column, value));
            for (column, value) in self.list.iter().skip(number + 1) {
                values.push((*column, value.evaluate(&frame)?));
            }
            let kept;
            let before = if number == 0 {
                old
            } else {
                kept = new.clone();
                StoredRow::new(table, &kept)?
            };
            new.clear();
            let mut olds: Vec<ValueRef<'_>> = Vec::with_capacity(table.columns.len());
            for position in 0..table.columns.len() {
                olds.push(before.get(position)?);
            }
            return table.encode_row(new, |position| {
                let assigned = values.iter().find(|(column, _)| *column == position);
                assigned.map_or_else(
                    || olds.get(position).copied().unwrap_or_default(),
                    |(_, value)| value.as_ref(),
                )
            });
        }
        Ok(())
    }
}
