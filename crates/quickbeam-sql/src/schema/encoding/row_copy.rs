//! Builds encoded rows by copying encoded columns, without decoding values.
//!
//! Above: statements that keep or insert rows of a query's columns. Below: the form of rows.
//! Columns of fixed length that stand side by side in both rows are one copy, and so is the content
//! of columns of variable length.
//!
//! - SPLICE-1: the output is byte for byte that of encoding the values.
//! - SPLICE-2: rows of an older layout, missing rows, and rows with a number of more than 38 digits
//!   among the columns are not copied; the caller decodes values for them.

use quickbeam::invariant;

use super::row_format::{ColumnEncoding, ColumnLayout, HEADER, damaged, encode, place_all};
use crate::error::Result;
use crate::schema::Table;
use crate::types::{DataType, EncodedKind, ValueRef};

/// Whether equal values of a column of that type are the same bytes. Numbers may differ in their
/// scale or the sign of zero, intervals in their units, and so may all that contain such.
fn has_one_encoding(data_type: DataType) -> bool {
    match data_type {
        DataType::Real
        | DataType::Double
        | DataType::Numeric(_)
        | DataType::WideNumeric(_)
        | DataType::Interval
        | DataType::Precise(_)
        | DataType::Json
        | DataType::Jsonb
        | DataType::Array(_) => false,
        DataType::Encoded(encoded) => encoded.kind() == EncodedKind::Enum,
        _ => true,
    }
}

/// How to make rows out of others.
#[derive(Clone, Debug)]
pub struct Splice {
    /// The first bytes of every row.
    number: u16,
    places: Vec<ColumnLayout>,
    fixed_end: usize,
    sources: Vec<CopiedRow>,
    /// Columns of variable length, in the order of the new row.
    variable: Vec<Variable>,
}

/// A row that columns are taken of.
#[derive(Clone, Debug)]
struct CopiedRow {
    slot: usize,
    form: [u8; HEADER],
    fixed_end: usize,
    null_bytes: usize,
    fixed: Vec<Run>,
    /// NULL bits: where, and where to.
    nulls: Vec<[(usize, u8); 2]>,
    /// Columns that may refer to a number of more than 38 digits.
    numbers: Vec<ColumnLayout>,
}

/// Bytes that are copied at once.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: usize,
    to: usize,
    length: usize,
}

/// Columns of variable length that stand side by side.
#[derive(Clone, Copy, Debug)]
struct Variable {
    source: usize,
    /// Where the start of the first is written; none: it is the first of its row.
    start_at: Option<usize>,
    /// Where the end of the first is written, and where to write it.
    end_at: usize,
    to: usize,
    count: usize,
}

/// A column that a new row gets: the slot of its row, the table, its position.
pub type Origin<'t> = (usize, &'t Table, usize);

impl Splice {
    /// Rows as the table has them now; none if a value is not one of the same type that stands in a
    /// row.
    pub fn for_table(table: &Table, origins: &[Origin<'_>]) -> Option<Splice> {
        let layout = &*table.layouts.current;
        if table.is_database() || origins.len() != layout.columns.len() {
            return None;
        }
        let places: Option<Vec<ColumnLayout>> = layout.places.iter().copied().collect();
        Splice::new(layout.number, &places?, layout.fixed_end, origins)
    }

    /// Rows of these columns, which are the same bytes if and only if the values are the same; none
    /// if that cannot be.
    pub fn for_comparison(origins: &[Origin<'_>]) -> Option<Splice> {
        let type_of = |(_, table, column): &Origin<'_>| {
            let data_type = table.columns.get(*column)?.data_type;
            has_one_encoding(data_type).then_some(data_type)
        };
        let types: Option<Vec<DataType>> = origins.iter().map(type_of).collect();
        let (places, fixed_end) = place_all(&types?);
        Splice::new(0, &places, fixed_end, origins)
    }

    fn new(
        number: u16,
        places: &[ColumnLayout],
        fixed_end: u32,
        origins: &[Origin<'_>],
    ) -> Option<Splice> {
        let mut splice = Splice {
            number,
            places: places.to_vec(),
            fixed_end: fixed_end as usize,
            sources: Vec::new(),
            variable: Vec::new(),
        };
        for (to, (slot, table, column)) in places.iter().zip(origins) {
            let layout = &*table.layouts.current;
            let from = layout.places.get(*column)?.as_ref()?;
            if from.kind != to.kind || table.is_database() {
                return None;
            }
            let source = splice.source(*slot, table);
            let width = table.columns.get(*column)?.data_type.fixed_width();
            splice.column(source, from, to, width)?;
        }
        (!splice.sources.is_empty()).then_some(splice)
    }

    /// The number of the row in that slot among the sources.
    fn source(&mut self, slot: usize, table: &Table) -> usize {
        if let Some(known) = self.sources.iter().position(|source| source.slot == slot) {
            return known;
        }
        let layout = &*table.layouts.current;
        self.sources.push(CopiedRow {
            slot,
            form: layout.number.to_le_bytes(),
            fixed_end: layout.fixed_end as usize,
            null_bytes: layout.columns.len().div_ceil(8),
            fixed: Vec::new(),
            nulls: Vec::new(),
            numbers: Vec::new(),
        });
        self.sources.len() - 1
    }

    fn column(
        &mut self,
        number: usize,
        from: &ColumnLayout,
        to: &ColumnLayout,
        width: Option<usize>,
    ) -> Option<()> {
        let source = self.sources.get_mut(number)?;
        let bit = |place: &ColumnLayout| (usize::from(place.null_at), place.null_mask);
        source.nulls.push([bit(from), bit(to)]);
        if from.kind == ColumnEncoding::Numeric {
            source.numbers.push(*from);
        }
        let (from_at, to_at) = (from.at as usize, to.at as usize);
        match (width, source.fixed.last_mut(), self.variable.last_mut()) {
            (Some(width), Some(run), _)
                if run.from + run.length == from_at && run.to + run.length == to_at =>
            {
                run.length += width;
            }
            (Some(length), ..) => source.fixed.push(Run { from: from_at, to: to_at, length }),
            (None, _, Some(last))
                if last.source == number
                    && last.end_at + 4 * last.count == from_at
                    && last.to + 4 * last.count == to_at =>
            {
                last.count += 1;
            }
            (None, ..) => self.variable.push(Variable {
                source: number,
                start_at: if from.is_first_variable { None } else { from_at.checked_sub(4) },
                end_at: from_at,
                to: to_at,
                count: 1,
            }),
        }
        Some(())
    }

    /// Appends the row of these values, which are those that [`append`](Self::append) could not
    /// take from rows.
    pub fn append_values<'v>(
        &self,
        value: impl FnMut(usize) -> ValueRef<'v>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        encode(self.number, self.places.iter(), self.fixed_end as u32, out, value)
    }

    /// Appends a row that consists of columns of the rows in the slots. Returns false, appending
    /// nothing, if it cannot be copied (SPLICE-2).
    pub fn append<'r>(&self, row: impl Fn(usize) -> &'r [u8], out: &mut Vec<u8>) -> Result<bool> {
        for source in &self.sources {
            let bytes = row(source.slot);
            if bytes.first_chunk() != Some(&source.form) || bytes.len() < source.fixed_end {
                return Ok(false);
            }
            if source.numbers.iter().any(|place| place.has_long_number(bytes)) {
                return Ok(false);
            }
        }
        let is_of_form = |source: &CopiedRow| row(source.slot).starts_with(&source.form);
        invariant!(SPLICE_2, self.sources.iter().all(is_of_form), "a row of another layout");
        let start = out.len();
        out.resize(start + self.fixed_end, 0);
        let new = &mut out[start..];
        new[..HEADER].copy_from_slice(&self.number.to_le_bytes());
        for source in &self.sources {
            let bytes = row(source.slot);
            for run in &source.fixed {
                let from = &bytes[run.from..run.from + run.length];
                new[run.to..run.to + run.length].copy_from_slice(from);
            }
            if bytes[HEADER..HEADER + source.null_bytes].iter().any(|&bits| bits != 0) {
                for [(from, from_mask), (to, to_mask)] in &source.nulls {
                    if bytes[*from] & from_mask != 0 {
                        new[*to] |= to_mask;
                    }
                }
            }
        }
        for part in &self.variable {
            let Some(source) = self.sources.get(part.source) else { continue };
            part.append(row(source.slot), source.fixed_end, start, out)?;
        }
        invariant!(SPLICE_1, self.is_encoded(&out[start..]), "{} bytes", out.len() - start);
        Ok(true)
    }

    /// Returns whether a row is laid out as [`append_values`](Self::append_values) writes rows: the
    /// content of each column begins where the one before ends, and the last one ends the row.
    fn is_encoded(&self, row: &[u8]) -> bool {
        let ends = self.places.iter().filter(|place| !place.is_fixed);
        let mut at = self.fixed_end;
        let are_adjacent = ends.map(|place| number(row, place.at as usize)).all(|end| {
            let is_after = end.as_ref().is_ok_and(|end| *end >= at);
            at = end.unwrap_or(at);
            is_after
        });
        are_adjacent && at == row.len() && row.starts_with(&self.number.to_le_bytes())
    }
}

fn number(bytes: &[u8], at: usize) -> Result<usize> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.map(|found| u32::from_le_bytes(*found) as usize).ok_or_else(|| damaged("it is too short"))
}

impl Variable {
    /// Appends the columns' content, and writes where each ends in the row that begins at `row`.
    fn append(&self, bytes: &[u8], fixed_end: usize, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = match self.start_at {
            None => fixed_end,
            Some(at) => number(bytes, at)?,
        };
        let end = number(bytes, self.end_at + 4 * (self.count - 1))?;
        let content = bytes.get(start..end).ok_or_else(|| damaged("a column lies outside it"))?;
        let base = out.len() - row;
        out.extend_from_slice(content);
        for nth in 0..self.count {
            let length = number(bytes, self.end_at + 4 * nth)?.checked_sub(start);
            let length = length.ok_or_else(|| damaged("a column lies outside it"))?;
            let end = u32::try_from(base + length).map_err(|_| super::row_format::too_long())?;
            let at = row + self.to + 4 * nth;
            out[at..at + 4].copy_from_slice(&end.to_le_bytes());
        }
        Ok(())
    }
}
