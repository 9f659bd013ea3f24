//! Rows as bytes.
//!
//! ```text
//! ┌────────────┬──────────────┬─────────────────────────┬──────────────────────────────┬───────────────┐
//! │ layout u16 │ NULL bits    │ columns of fixed length │ ends of the others, u32 each │ their content │
//! └────────────┴──────────────┴─────────────────────────┴──────────────────────────────┴───────────────┘
//! ```
//!
//! All numbers are little-endian. A column of fixed length stands at the same place in every row of
//! a layout, so reading it is a load and writing it is a store. An end counts from the start of the
//! row; where a column begins is where the one before it ends. A NULL takes its place too, filled
//! with zeros, or with nothing. A NUMERIC of more than 38 digits has its place too: a scale that no
//! number has, and where its bytes are and how many, u32 each. The bytes follow all other content.
//!
//! - ROW-1: a table's layouts are numbered; a row names the one it was written in, so that adding
//!   and dropping columns rewrites nothing. A column that a row's layout lacks has the value
//!   [`Column::missing`](crate::schema::Column::missing).
//! - ROW-2: no content of a row makes reading it panic: what does not fit is an error of the class
//!   `DataCorrupted` (by type)
//! - ROW-3: a scan that delivers row ids appends them to the rows of its slot, where they are the
//!   column after the last one. The row id is the whole key of the row.

use std::sync::Arc;

use quickbeam::invariant;

use crate::error::{Result, SqlError};
use crate::schema::{Column, Table};
use crate::types::{
    ArrayRef, DataType, EncodedType, Interval, LONG_SCALE, LongNumericRef, Numeric, Value, ValueRef,
};
use crate::utf8::text_from_utf8;

/// Bytes of the layout's number.
pub(crate) const HEADER: usize = 2;

/// What a row in memory ends with that has its row id after its content.
const ROW_ID_MARK: [u8; 4] = *b"ctid";
/// Bytes of a row id and its mark.
pub(crate) const ROW_ID_BYTES: usize = 12;

/// Appends the row id, which is the key of the row, to a row in memory (ROW-3).
pub(crate) fn append_row_id(key: &[u8], row: &mut Vec<u8>) -> Result<()> {
    invariant!(ROW_3, key.len() == 8, "a key of {} bytes as a row id", key.len());
    let id: &[u8; 8] = key.first_chunk().ok_or_else(|| damaged("it has no row id"))?;
    row.extend_from_slice(id);
    row.extend_from_slice(&ROW_ID_MARK);
    Ok(())
}

/// How a column's bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnEncoding {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Double,
    Numeric,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
    Interval,
    Text,
    Bytea,
    Array,
    Json,
    Jsonb,
    Oid,
    Encoded(EncodedType),
}

impl ColumnEncoding {
    fn of(data_type: DataType) -> ColumnEncoding {
        match data_type {
            DataType::Boolean => ColumnEncoding::Boolean,
            DataType::SmallInt => ColumnEncoding::SmallInt,
            DataType::Integer => ColumnEncoding::Integer,
            DataType::BigInt => ColumnEncoding::BigInt,
            DataType::Real => ColumnEncoding::Real,
            DataType::Double => ColumnEncoding::Double,
            DataType::Numeric(_) | DataType::WideNumeric(_) => ColumnEncoding::Numeric,
            DataType::Text | DataType::Varchar(_) | DataType::Char(_) => ColumnEncoding::Text,
            DataType::Bytea => ColumnEncoding::Bytea,
            DataType::Date => ColumnEncoding::Date,
            DataType::Time => ColumnEncoding::Time,
            DataType::Timestamp => ColumnEncoding::Timestamp,
            DataType::TimestampTz => ColumnEncoding::TimestampTz,
            DataType::Uuid => ColumnEncoding::Uuid,
            DataType::Interval => ColumnEncoding::Interval,
            DataType::Array(_) => ColumnEncoding::Array,
            DataType::Json => ColumnEncoding::Json,
            DataType::Jsonb => ColumnEncoding::Jsonb,
            DataType::System(known) if known.is_text() => ColumnEncoding::Text,
            DataType::System(known) if known.vector_element().is_some() => ColumnEncoding::Array,
            DataType::System(_) => ColumnEncoding::Oid,
            DataType::Precise(precise) => ColumnEncoding::of(precise.plain()),
            DataType::Encoded(encoded) => {
                ColumnEncoding::Encoded(EncodedType::new(encoded.kind(), 0))
            }
        }
    }
}

/// Where a column is in the rows of a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnLayout {
    pub kind: ColumnEncoding,
    /// The bit that says NULL.
    pub null_at: u16,
    pub null_mask: u8,
    pub is_fixed: bool,
    pub is_first_variable: bool,
    /// Fixed: where the value is. Otherwise: where its end is written.
    pub at: u32,
}

impl ColumnLayout {
    /// Returns whether the place of a NUMERIC refers to a number of more than 38 digits.
    pub fn has_long_number(&self, row: &[u8]) -> bool {
        row.get(self.at as usize + 16) == Some(&LONG_SCALE)
    }
}

/// One form of a table's rows.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub number: u16,
    /// Number and type of each column, in the order of the table when the layout was made.
    pub columns: Vec<(u16, DataType)>,
    /// By the column's position in the table as it is now; `None`: the layout lacks it.
    pub(crate) places: Vec<Option<ColumnLayout>>,
    /// Where the content of columns of variable length begins; the shortest length of a row.
    pub(crate) fixed_end: u32,
}

/// Where columns of these types are in a row, and where the content of those of variable length
/// begins.
pub(crate) fn place_all(columns: &[DataType]) -> (Vec<ColumnLayout>, u32) {
    let mut fixed = HEADER + columns.len().div_ceil(8);
    let mut placed: Vec<ColumnLayout> = Vec::with_capacity(columns.len());
    for (index, &data_type) in columns.iter().enumerate() {
        let width = data_type.fixed_width();
        placed.push(ColumnLayout {
            kind: ColumnEncoding::of(data_type),
            null_at: (HEADER + index / 8) as u16,
            null_mask: 1 << (index % 8),
            is_fixed: width.is_some(),
            is_first_variable: false,
            at: fixed as u32,
        });
        fixed += width.unwrap_or(0);
    }
    let mut first = true;
    for place in placed.iter_mut().filter(|place| !place.is_fixed) {
        place.is_first_variable = std::mem::take(&mut first);
        place.at = fixed as u32;
        fixed += 4;
    }
    (placed, fixed as u32)
}

/// The forms in which a table's rows may be.
#[derive(Clone, Debug)]
pub(crate) struct Layouts {
    pub current: Arc<Layout>,
    pub older: Vec<Arc<Layout>>,
}

impl Layout {
    /// The layout of these columns, to be read as the table's columns with these numbers.
    pub fn new(number: u16, columns: Vec<(u16, DataType)>, table: &[Column]) -> Layout {
        let types: Vec<DataType> = columns.iter().map(|column| column.1).collect();
        let (placed, fixed_end) = place_all(&types);
        let place_of = |id| columns.iter().position(|column| column.0 == id);
        let places = table.iter().map(|column| Some(placed[place_of(column.id)?])).collect();
        Layout { number, columns, places, fixed_end }
    }

    /// The same, for the table with other columns.
    pub fn seen_by(&self, table: &[Column]) -> Layout {
        Layout::new(self.number, self.columns.clone(), table)
    }
}

impl Layouts {
    /// Rows of one form only, with all the table's columns.
    pub fn first(columns: &[Column]) -> Layouts {
        let all = columns.iter().map(|column| (column.id, column.data_type)).collect();
        Layouts { current: Arc::new(Layout::new(1, all, columns)), older: Vec::new() }
    }

    fn of_row(&self, bytes: &[u8]) -> Result<&Layout> {
        let number = bytes.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes));
        let layout = if number == self.current.number {
            &self.current
        } else {
            let older = self.older.iter().find(|layout| layout.number == number);
            older.ok_or_else(|| damaged("it is of a layout that the table never had"))?
        };
        if bytes.len() < layout.fixed_end as usize {
            return Err(damaged("it is too short"));
        }
        Ok(layout)
    }
}

#[cold]
pub(crate) fn damaged(what: &str) -> SqlError {
    SqlError::corrupted(format!("a row cannot be read: {what}"))
}

/// A row's bytes, read column by column.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    bytes: &'a [u8],
    layout: &'a Layout,
    columns: &'a [Column],
}

#[inline]
pub(crate) fn load<const N: usize>(bytes: &[u8], at: u32) -> Result<[u8; N]> {
    let found = bytes.get(at as usize..).and_then(<[u8]>::first_chunk);
    found.copied().ok_or_else(|| damaged("it is too short"))
}

impl<'a> StoredRow<'a> {
    /// The row of the table with these bytes.
    #[inline]
    pub fn new(table: &'a Table, bytes: &'a [u8]) -> Result<StoredRow<'a>> {
        let layout = table.layouts.of_row(bytes)?;
        Ok(StoredRow { bytes, layout, columns: &table.columns })
    }

    /// The row's bytes.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// How many columns the table has.
    #[must_use]
    pub fn width(self) -> usize {
        self.columns.len()
    }

    /// The value of the column at that position.
    #[inline]
    pub fn get(self, position: usize) -> Result<ValueRef<'a>> {
        let Some(Some(place)) = self.layout.places.get(position) else {
            return self.missing(position);
        };
        let bytes = self.bytes;
        if bytes.get(usize::from(place.null_at)).is_none_or(|bits| bits & place.null_mask != 0) {
            return Ok(ValueRef::Null);
        }
        match place.kind {
            ColumnEncoding::Integer => {
                Ok(ValueRef::Integer(i32::from_le_bytes(load(bytes, place.at)?)))
            }
            ColumnEncoding::Text => Ok(ValueRef::Text(self.text(place)?)),
            _ => self.decode(place),
        }
    }

    /// Decodes the value of a column of any type that is not NULL. Not inlined, so that
    /// [`get`](Self::get), which decodes the two most frequent types itself, is small.
    #[inline(never)]
    fn decode(self, place: &ColumnLayout) -> Result<ValueRef<'a>> {
        let (bytes, at) = (self.bytes, place.at);
        Ok(match place.kind {
            ColumnEncoding::Integer => ValueRef::Integer(i32::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::BigInt => ValueRef::BigInt(i64::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::SmallInt => ValueRef::SmallInt(i16::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::Boolean => ValueRef::Boolean(load::<1>(bytes, at)? != [0]),
            ColumnEncoding::Real => ValueRef::Real(f32::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::Double => ValueRef::Double(f64::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::Date => ValueRef::Date(i32::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::Time => ValueRef::Time(i64::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::Timestamp => ValueRef::Timestamp(i64::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::TimestampTz => {
                ValueRef::TimestampTz(i64::from_le_bytes(load(bytes, at)?))
            }
            ColumnEncoding::Uuid => ValueRef::Uuid(load(bytes, at)?),
            ColumnEncoding::Oid => ValueRef::Oid(u32::from_le_bytes(load(bytes, at)?)),
            ColumnEncoding::Interval => ValueRef::Interval(Interval {
                months: i32::from_le_bytes(load(bytes, at)?),
                days: i32::from_le_bytes(load(bytes, at + 4)?),
                micros: i64::from_le_bytes(load(bytes, at + 8)?),
            }),
            ColumnEncoding::Numeric => {
                let mantissa = i128::from_le_bytes(load(bytes, at)?);
                let [scale] = load(bytes, at + 16)?;
                match Numeric::restore(mantissa, scale) {
                    Ok(number) => ValueRef::Numeric(number),
                    Err(_) => ValueRef::LongNumeric(self.long_number(mantissa, scale)?),
                }
            }
            ColumnEncoding::Text => ValueRef::Text(self.text(place)?),
            ColumnEncoding::Json => ValueRef::Json(self.text(place)?),
            ColumnEncoding::Jsonb => ValueRef::Jsonb(self.text(place)?),
            ColumnEncoding::Bytea => ValueRef::Bytea(self.content(place)?),
            ColumnEncoding::Encoded(encoded) => ValueRef::Encoded(encoded, self.content(place)?),
            ColumnEncoding::Array => {
                let array = ArrayRef::read(self.content(place)?);
                ValueRef::Array(array.ok_or_else(|| damaged("an array cannot be read"))?)
            }
        })
    }

    /// Returns the number of more than 38 digits that a column refers to.
    #[cold]
    fn long_number(self, at: i128, scale: u8) -> Result<LongNumericRef<'a>> {
        let (start, length) = (at as u32 as usize, (at >> 32) as u32 as usize);
        let end = start.checked_add(length).filter(|_| scale == LONG_SCALE);
        let bytes = end.and_then(|end| self.bytes.get(start..end));
        let number = bytes.and_then(LongNumericRef::read);
        number.ok_or_else(|| damaged("a NUMERIC is out of range"))
    }

    /// Whether the column at that position is NULL.
    #[inline]
    #[must_use]
    pub fn is_null(self, position: usize) -> bool {
        match self.layout.places.get(position) {
            Some(Some(place)) => {
                let bits = self.bytes.get(usize::from(place.null_at));
                bits.is_none_or(|bits| bits & place.null_mask != 0)
            }
            _ => self.columns.get(position).is_none_or(|column| column.missing.is_null()),
        }
    }

    #[inline]
    fn text(self, place: &ColumnLayout) -> Result<&'a str> {
        let text = text_from_utf8(self.content(place)?);
        text.ok_or_else(|| damaged("a text is not UTF-8"))
    }

    fn content(self, place: &ColumnLayout) -> Result<&'a [u8]> {
        let end = u32::from_le_bytes(load(self.bytes, place.at)?) as usize;
        let start = if place.is_first_variable {
            self.layout.fixed_end as usize
        } else {
            u32::from_le_bytes(load(self.bytes, place.at - 4)?) as usize
        };
        self.bytes.get(start..end).ok_or_else(|| damaged("a column lies outside it"))
    }

    #[cold]
    fn missing(self, position: usize) -> Result<ValueRef<'a>> {
        if position == self.columns.len()
            && let Some((rest, mark)) = self.bytes.split_last_chunk()
            && let (Some((_, id)), &ROW_ID_MARK) = (rest.split_last_chunk(), mark)
        {
            return Ok(ValueRef::BigInt(i64::from_be_bytes(*id)));
        }
        let column = self.columns.get(position);
        column.map(|column| column.missing.as_ref()).ok_or_else(|| {
            SqlError::internal(format!("a row has no column at position {position}"))
        })
    }

    /// All values, owned.
    pub fn to_values(self) -> Result<Vec<Value>> {
        (0..self.width()).map(|position| Ok(self.get(position)?.to_value())).collect()
    }
}

#[cold]
fn mismatch(position: usize, value: ValueRef<'_>) -> SqlError {
    SqlError::internal(format!(
        "a value of type {:?} for the column at {position}",
        value.data_type()
    ))
}

/// Writes a value of fixed length to its place; false when it is of another type.
fn store(row: &mut [u8], place: &ColumnLayout, value: ValueRef<'_>) -> bool {
    let mut put = |bytes: &[u8]| {
        let at = place.at as usize;
        if let Some(to) = row.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    match (place.kind, value) {
        (ColumnEncoding::Integer, ValueRef::Integer(v))
        | (ColumnEncoding::Date, ValueRef::Date(v)) => {
            put(&v.to_le_bytes());
        }
        (ColumnEncoding::BigInt, ValueRef::BigInt(v))
        | (ColumnEncoding::Time, ValueRef::Time(v))
        | (ColumnEncoding::Timestamp, ValueRef::Timestamp(v))
        | (ColumnEncoding::TimestampTz, ValueRef::TimestampTz(v)) => put(&v.to_le_bytes()),
        (ColumnEncoding::SmallInt, ValueRef::SmallInt(v)) => put(&v.to_le_bytes()),
        (ColumnEncoding::Boolean, ValueRef::Boolean(v)) => put(&[u8::from(v)]),
        (ColumnEncoding::Real, ValueRef::Real(v)) => put(&v.to_le_bytes()),
        (ColumnEncoding::Double, ValueRef::Double(v)) => put(&v.to_le_bytes()),
        (ColumnEncoding::Uuid, ValueRef::Uuid(v)) => put(&v),
        (ColumnEncoding::Oid, ValueRef::Oid(v)) => put(&v.to_le_bytes()),
        (ColumnEncoding::Interval, ValueRef::Interval(v)) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v.months.to_le_bytes());
            bytes[4..8].copy_from_slice(&v.days.to_le_bytes());
            bytes[8..].copy_from_slice(&v.micros.to_le_bytes());
            put(&bytes);
        }
        (ColumnEncoding::Numeric, ValueRef::Numeric(v)) => {
            let mut bytes = [0; 17];
            bytes[..16].copy_from_slice(&v.mantissa().to_le_bytes());
            bytes[16] = v.scale();
            put(&bytes);
        }
        _ => return false,
    }
    true
}

/// Appends numbers of more than 38 digits to the row that begins at `start`, and writes to their
/// places where they are.
#[cold]
fn append_long(
    out: &mut Vec<u8>,
    start: usize,
    numbers: &[(&ColumnLayout, LongNumericRef<'_>)],
) -> Result<()> {
    for (place, number) in numbers {
        let (at, bytes) = (start + place.at as usize, number.bytes());
        let from = u32::try_from(out.len() - start).map_err(|_| too_long())?;
        out[at..at + 4].copy_from_slice(&from.to_le_bytes());
        out[at + 4..at + 8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        out[at + 16] = LONG_SCALE;
        out.extend_from_slice(bytes);
        u32::try_from(out.len() - start).map_err(|_| too_long())?;
    }
    Ok(())
}

/// Appends a row of that form to `out`. `value` gives the value for each place: of exactly its
/// type, or NULL.
#[inline]
pub(crate) fn encode<'p, 'v>(
    number: u16,
    places: impl Iterator<Item = &'p ColumnLayout>,
    fixed_end: u32,
    out: &mut Vec<u8>,
    mut value: impl FnMut(usize) -> ValueRef<'v>,
) -> Result<()> {
    let start = out.len();
    out.resize(start + fixed_end as usize, 0);
    if let Some(form) = out[start..].first_chunk_mut() {
        *form = number.to_le_bytes();
    }
    let mut long = Vec::new();
    for (position, place) in places.enumerate() {
        let value = value(position);
        if value.is_null() {
            out[start + usize::from(place.null_at)] |= place.null_mask;
        } else if place.is_fixed && !store(&mut out[start..], place, value) {
            match (place.kind, value) {
                (ColumnEncoding::Numeric, ValueRef::LongNumeric(v)) => long.push((place, v)),
                _ => return Err(mismatch(position, value)),
            }
        }
        if !place.is_fixed {
            match (place.kind, value) {
                (_, ValueRef::Null) => {}
                (ColumnEncoding::Text, ValueRef::Text(text))
                | (ColumnEncoding::Json, ValueRef::Json(text))
                | (ColumnEncoding::Jsonb, ValueRef::Jsonb(text)) => {
                    out.extend_from_slice(text.as_bytes())
                }
                (ColumnEncoding::Bytea, ValueRef::Bytea(bytes)) => out.extend_from_slice(bytes),
                (ColumnEncoding::Encoded(known), ValueRef::Encoded(encoded, bytes))
                    if known == encoded =>
                {
                    out.extend_from_slice(bytes);
                }
                (ColumnEncoding::Array, ValueRef::Array(array)) => {
                    out.extend_from_slice(array.bytes());
                }
                _ => return Err(mismatch(position, value)),
            }
            let end = u32::try_from(out.len() - start).map_err(|_| too_long())?;
            let at = start + place.at as usize;
            out[at..at + 4].copy_from_slice(&end.to_le_bytes());
        }
    }
    if long.is_empty() { Ok(()) } else { append_long(out, start, &long) }
}

impl Table {
    /// Appends a row to `out`. `value` gives the value for each position: of exactly the column's
    /// type, or NULL.
    pub fn encode_row<'v>(
        &self,
        out: &mut Vec<u8>,
        value: impl FnMut(usize) -> ValueRef<'v>,
    ) -> Result<()> {
        let layout = &*self.layouts.current;
        if layout.places.iter().any(Option::is_none) {
            return Err(SqlError::internal("a column is not in the table's layout"));
        }
        encode(layout.number, layout.places.iter().flatten(), layout.fixed_end, out, value)
    }

    /// Whether rows of both tables, as they are written now, are the same bytes for the same
    /// values.
    #[must_use]
    pub fn has_rows_like(&self, other: &Table) -> bool {
        let (ours, theirs) = (&self.layouts.current, &other.layouts.current);
        let types = |layout: &Layout| layout.columns.iter().map(|c| c.1).collect::<Vec<_>>();
        let straight = |table: &Table, layout: &Layout| {
            table.columns.iter().map(|c| c.id).eq(layout.columns.iter().map(|c| c.0))
        };
        ours.number == theirs.number
            && types(ours) == types(theirs)
            && straight(self, ours)
            && straight(other, theirs)
            && !self.is_database()
            && !other.is_database()
    }

    /// Whether a row is of the form in which rows are written now.
    #[inline]
    #[must_use]
    pub fn is_current(&self, row: &[u8]) -> bool {
        row.first_chunk() == Some(&self.layouts.current.number.to_le_bytes())
    }

    /// What rows of the form in which they are written now begin with.
    #[must_use]
    pub fn form(&self) -> u16 {
        self.layouts.current.number
    }

    /// How many bytes at the start of a row suffice to read these columns; none if the whole row is
    /// needed.
    #[must_use]
    pub fn prefix_for(&self, columns: &[usize]) -> Option<usize> {
        let fixed = |column: &usize| {
            let known = self.columns.get(*column);
            known.is_some_and(|column| column.data_type.fixed_width().is_some())
        };
        // A number of more than 38 digits is at the end of the row.
        let long = |column: &usize| {
            let known = self.columns.get(*column);
            known.is_some_and(|column| {
                matches!(column.data_type, DataType::Numeric(None) | DataType::WideNumeric(_))
            })
        };
        if self.is_database() || !columns.iter().all(fixed) || columns.iter().any(long) {
            return None;
        }
        let layouts = self.layouts.older.iter().chain([&self.layouts.current]);
        layouts.map(|layout| layout.fixed_end as usize).max()
    }

    /// Appends a row with these values, one for each column.
    pub fn encode_values(&self, out: &mut Vec<u8>, values: &[Value]) -> Result<()> {
        if values.len() != self.columns.len() {
            return Err(SqlError::internal("a row with the wrong number of values"));
        }
        self.encode_row(out, |position| values[position].as_ref())
    }

    /// Changes one column of an encoded row where it stands. False, and nothing changed, when that
    /// cannot be done: the row is of an older layout, or the column's length varies, or a NUMERIC
    /// has more than 38 digits. Then the row has to be encoded again.
    #[inline]
    pub fn set_in_place(
        &self,
        row: &mut [u8],
        position: usize,
        value: ValueRef<'_>,
    ) -> Result<bool> {
        let layout = &*self.layouts.current;
        let is_current = row.first_chunk() == Some(&layout.number.to_le_bytes())
            && row.len() >= layout.fixed_end as usize;
        let Some(Some(place)) = layout.places.get(position).filter(|_| is_current) else {
            return Ok(false);
        };
        if !place.is_fixed {
            return Ok(false);
        }
        let null_at = usize::from(place.null_at);
        if place.kind == ColumnEncoding::Numeric
            && (matches!(value, ValueRef::LongNumeric(_)) || place.has_long_number(row))
        {
            return Ok(false);
        }
        if value.is_null() {
            row[null_at] |= place.null_mask;
            let at = place.at as usize;
            let width = layout.columns.get(position).and_then(|column| column.1.fixed_width());
            row[at..at + width.unwrap_or(0)].fill(0);
            return Ok(true);
        }
        if !store(row, place, value) {
            return Err(mismatch(position, value));
        }
        row[null_at] &= !place.null_mask;
        Ok(true)
    }
}

#[cold]
pub(crate) fn too_long() -> SqlError {
    SqlError::new(crate::error::SqlState::ProgramLimitExceeded, "a row is longer than 4 GiB")
}
