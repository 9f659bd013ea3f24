//! Matched pairs of rows, and the columns gathered from them.
//!
//! Above: vectorized joins. Below: Arrow's kernels. At most [`Sides::ROOM`] rows are gathered at a
//! time, so that a batch stays small even if a row matches often.

use std::sync::Arc;

use arrow_array::{Array, UInt32Array};

use super::super::column::{Vector, VectorType, kind_of};
use super::super::evaluate::failed;
use super::super::source::ColumnBatch;
use crate::error::{Result, SqlError};
use crate::execute::row::NONE;
use crate::expression::ColumnRef;
use crate::plan::HashJoin;
use crate::types::DataType;

/// Rows of both sides, one by one; [`NONE`] inside: no row, all its columns are NULL.
#[derive(Debug, Default)]
pub struct JoinMatches {
    outer: Vec<u32>,
    inner: Vec<u32>,
    /// Whether the pairs have every outer row exactly once, in order.
    pub are_all_outer: bool,
}

impl JoinMatches {
    #[inline]
    pub fn push(&mut self, outer: u32, inner: u32) {
        self.outer.push(outer);
        self.inner.push(inner);
    }

    pub fn len(&self) -> usize {
        self.outer.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.outer.iter().copied().zip(self.inner.iter().copied())
    }

    /// Keeps the pairs whose inner row satisfies a condition.
    pub fn retain_inner(&mut self, is_kept: impl Fn(u32) -> bool) {
        let kept: Vec<(u32, u32)> = self.iter().filter(|(_, inner)| is_kept(*inner)).collect();
        (self.outer, self.inner) = kept.into_iter().unzip();
    }

    /// Keeps the pairs with these numbers.
    pub fn only(&self, numbers: &[i64]) -> JoinMatches {
        let of = |rows: &[u32]| -> Vec<u32> {
            numbers.iter().filter_map(|number| rows.get(*number as usize).copied()).collect()
        };
        JoinMatches { outer: of(&self.outer), inner: of(&self.inner), are_all_outer: false }
    }

    /// Returns the numbers of the inner rows, NULL for none.
    fn inner_rows(&self) -> UInt32Array {
        if self.inner.contains(&NONE) {
            let row = |row: &u32| (*row != NONE).then_some(*row);
            return self.inner.iter().map(row).collect();
        }
        UInt32Array::from(self.inner.clone())
    }
}

/// The place of a joined column.
#[derive(Clone, Copy, Debug)]
pub enum JoinedColumn {
    Outer(usize),
    Inner(usize),
}

/// The places of the columns that a join reads and returns.
#[derive(Debug)]
pub struct Places {
    /// The columns of each side's rows.
    pub outer: Vec<(ColumnRef, DataType)>,
    pub inner: Vec<(ColumnRef, DataType)>,
    /// The stored columns of the inner rows, by number, and their kinds.
    pub kept: Vec<(usize, VectorType)>,
}

impl Places {
    pub fn new(join: &HashJoin, columns: &[(ColumnRef, DataType)]) -> Places {
        let of = |slots: &[usize]| {
            columns.iter().filter(|(at, _)| slots.contains(&at.slot)).copied().collect()
        };
        Places { outer: of(&join.outer_slots), inner: of(&join.inner_slots), kept: Vec::new() }
    }

    /// Returns the places of columns. Inner columns are stored from now on.
    pub fn of(&mut self, columns: &[(ColumnRef, DataType)]) -> Result<Vec<JoinedColumn>> {
        columns.iter().map(|column| self.place(column)).collect()
    }

    fn place(&mut self, column: &(ColumnRef, DataType)) -> Result<JoinedColumn> {
        if let Some(nth) = self.outer.iter().position(|known| known == column) {
            return Ok(JoinedColumn::Outer(nth));
        }
        let nth = self.inner.iter().position(|known| known == column).ok_or_else(no_column)?;
        if let Some(place) = self.kept.iter().position(|(known, _)| *known == nth) {
            return Ok(JoinedColumn::Inner(place));
        }
        self.kept.push((nth, kind_of(column.1).ok_or_else(no_column)?));
        Ok(JoinedColumn::Inner(self.kept.len() - 1))
    }
}

#[cold]
fn no_column() -> SqlError {
    SqlError::internal("no such column")
}

/// The columns of both sides.
#[derive(Debug, Default)]
pub struct Sides {
    outer: ColumnBatch,
    inner: Vec<Vector>,
    /// The text bytes of each row; empty if there are no texts.
    outer_weights: Vec<usize>,
    inner_weights: Arc<Vec<usize>>,
}

/// The size of a pair without its texts.
const PAIR: usize = 128;

/// Bytes of texts in each row; empty if no column is one of texts.
fn weights(columns: &[Vector]) -> Vec<usize> {
    let mut weights = Vec::new();
    for column in columns {
        if let Vector::Texts(texts) = column {
            weights.resize(texts.len(), 0);
            for (weight, ends) in weights.iter_mut().zip(texts.value_offsets().windows(2)) {
                *weight += (ends[1] - ends[0]) as usize;
            }
        }
    }
    weights
}

fn take(column: Option<&Vector>, rows: &UInt32Array) -> Result<Vector> {
    let column = column.ok_or_else(no_column)?;
    let taken = arrow_select::take::take(column.array(), rows, None);
    Vector::of(&*taken.map_err(|error| failed(&error))?)
}

impl Sides {
    /// Size limit of a gathered batch. A text of one inner row may be copied for many outer rows.
    pub const ROOM: usize = 1 << 20;

    pub fn set_inner(&mut self, columns: Vec<Vector>) {
        self.inner_weights = Arc::new(weights(&columns));
        self.inner = columns;
    }

    /// Returns the same inner columns without outer ones.
    pub fn fork(&self) -> Sides {
        let (inner, inner_weights) = (self.inner.clone(), self.inner_weights.clone());
        Sides { inner, inner_weights, ..Sides::default() }
    }

    pub fn outer(&self) -> &ColumnBatch {
        &self.outer
    }

    pub fn set_outer(&mut self, columns: ColumnBatch) {
        self.outer_weights = weights(&columns.vectors);
        self.outer = columns;
    }

    /// Whether there are no texts.
    pub fn are_light(&self) -> bool {
        self.outer_weights.is_empty() && self.inner_weights.is_empty()
    }

    /// Returns the size of a pair.
    #[inline]
    pub fn weight(&self, outer: usize, inner: u32) -> usize {
        let of = |weights: &[usize], row: usize| weights.get(row).copied().unwrap_or(0);
        PAIR + of(&self.outer_weights, outer) + of(&self.inner_weights, inner as usize)
    }

    /// Columns of pairs of rows.
    pub fn gather(&self, pairs: &JoinMatches, places: &[JoinedColumn]) -> Result<ColumnBatch> {
        let outer_rows = UInt32Array::from(pairs.outer.clone());
        let inner_rows = pairs.inner_rows();
        let column = |place: &JoinedColumn| match place {
            JoinedColumn::Outer(nth) if pairs.are_all_outer => {
                let column = self.outer.vectors.get(*nth).cloned();
                column.ok_or_else(no_column)
            }
            JoinedColumn::Outer(nth) => take(self.outer.vectors.get(*nth), &outer_rows),
            JoinedColumn::Inner(nth) => take(self.inner.get(*nth), &inner_rows),
        };
        let vectors = places.iter().map(column).collect::<Result<Vec<Vector>>>()?;
        Ok(ColumnBatch { rows: pairs.len(), vectors })
    }
}
