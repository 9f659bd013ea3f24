//! Keys as bytes whose order is the order of the values (`memcomparable`).
//!
//! Columns stand one after the other, each in a form of which none is the beginning of another:
//!
//! | part | bytes |
//! |---|---|
//! | a column that may be NULL | one byte first: 1 a value follows; NULL is 2, or 0 where NULLs come first |
//! | BOOLEAN | one byte |
//! | integers, dates, times | big-endian, the sign bit turned over |
//! | REAL, DOUBLE PRECISION | as their bits, turned over so that they sort; -0 as 0, one NaN, above all |
//! | NUMERIC | sign; power of ten; digits in pairs, each plus one; a zero. Negative numbers turned over |
//! | types whose values are bytes | their ordering key, as BYTEA |
//! | texts under a collation of ICU, in an index | their sort key, as BYTEA |
//! | TEXT, BYTEA | the bytes, 0 as 0 255; then 0 0. Of CHAR without the blanks at the end |
//! | UUID | its bytes |
//! | arrays, rows, JSONB | the bytes that `nested_key.rs` describes, as BYTEA |
//! | INTERVAL | its length in microseconds, 16 bytes big-endian, the sign bit turned over |
//!
//! A descending column is turned over as a whole, but for the byte that says NULL. Before the
//! columns of a hash index that is not unique stands how many bytes they have, u16 big-endian: they
//! are a group of the engine's ([`AccessMethod::HashPrefix`]).
//!
//! - KEY-1: a key is less than another exactly if its values come before in the columns' order;
//!   equal exactly if they are equal.
//! - KEY-2: keys that begin with the same values begin with the same bytes, and no others do. So
//!   all of them lie from those bytes up to, and without, [`prefix_end`] of them.

use std::cmp::Ordering;

use quickbeam::{AccessMethod, CHECKS_INVARIANTS, invariant};

use super::nested_key::{encode_nested, is_key_of, is_nested};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::{Index, Table};
use crate::types::encoded::{of_ordering_key, ordering_key};
use crate::types::{
    Collation, DataType, Decimal, EncodedKind, Interval, Value, ValueRef, without_blanks,
};

const NULL_FIRST: u8 = 0;
const PRESENT: u8 = 1;
const NULL_LAST: u8 = 2;

/// Bytes that say how long a group is.
const GROUP_BYTES: usize = 2;

/// How one column of a key is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Its position in the table.
    pub position: usize,
    /// Its type.
    pub data_type: DataType,
    /// Larger values come first.
    pub descending: bool,
    /// NULLs come first.
    pub nulls_first: bool,
    /// There may be NULLs: a byte says so.
    pub nullable: bool,
    /// The bytes as they are: the key of a key/value database.
    pub raw: bool,
    /// The collation whose sort keys stand for texts.
    pub collation: Option<Collation>,
}

/// How the keys of a table or index are encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySpec {
    /// The columns, in order. None: the key is a hidden row id.
    pub parts: Vec<KeyPart>,
    /// The columns are a group of a hash database: before them stands how many bytes they have.
    pub grouped: bool,
}

/// A range of keys: from `low` up to, and without, `high`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// Where it begins.
    pub low: Vec<u8>,
    /// Where it ends; `None`: with the last key.
    pub high: Option<Vec<u8>>,
}

/// A bound on one column.
#[derive(Clone, Copy, Debug)]
pub struct KeyBound<'v> {
    /// The value: of the column's type, not NULL.
    pub value: ValueRef<'v>,
    /// Whether it belongs to the range.
    pub inclusive: bool,
}

impl KeyPart {
    /// Returns the form of a value of that type alone.
    #[must_use]
    pub fn of_type(data_type: DataType) -> KeyPart {
        KeyPart {
            position: 0,
            data_type,
            descending: false,
            nulls_first: false,
            nullable: false,
            raw: false,
            collation: None,
        }
    }
}

impl KeySpec {
    /// The keys of a table's rows.
    #[must_use]
    pub fn of_rows(table: &Table) -> KeySpec {
        let Some(key) = &table.primary_key else { return KeySpec::default() };
        let part = |&position: &usize| {
            Some(KeyPart {
                position,
                data_type: table.columns.get(position)?.data_type,
                descending: false,
                nulls_first: false,
                nullable: false,
                raw: table.is_database(),
                collation: None,
            })
        };
        KeySpec { parts: key.columns.iter().filter_map(part).collect(), grouped: false }
    }

    /// Returns the key encoding of an index's entries, without the part that follows the index's
    /// columns. The entries of an inverted index do not have the values of columns.
    #[must_use]
    pub fn of_index(table: &Table, index: &Index) -> KeySpec {
        if index.inverted().is_some() {
            return KeySpec::default();
        }
        let part = |column: &crate::schema::KeyColumn| {
            Some(KeyPart {
                position: column.position,
                data_type: index.key_type(table, column.position)?,
                descending: column.descending,
                nulls_first: column.nulls_first,
                nullable: true,
                raw: false,
                collation: column.collation,
            })
        };
        let grouped = index.access_method() == AccessMethod::HashPrefix;
        KeySpec { parts: index.columns.iter().filter_map(part).collect(), grouped }
    }

    /// Leaves room for how long a group is; where the key begins.
    #[inline]
    pub(crate) fn begin(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        if self.grouped {
            out.extend_from_slice(&[0; GROUP_BYTES]);
        }
        start
    }

    /// Says how long the group is whose key began there.
    #[inline]
    pub(crate) fn end(&self, out: &mut [u8], start: usize) -> Result<()> {
        if self.grouped {
            let length = u16::try_from(out.len() - start - GROUP_BYTES);
            let length = length.map_err(|_| key_too_long())?;
            out[start..start + GROUP_BYTES].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// Appends the key, or as many of its first columns as there are `values`. Each is of its
    /// column's type, or NULL.
    #[inline]
    pub fn encode<'v>(
        &self,
        out: &mut Vec<u8>,
        values: impl IntoIterator<Item = ValueRef<'v>>,
    ) -> Result<()> {
        let start = self.begin(out);
        for (part, value) in self.parts.iter().zip(values) {
            part.encode(out, value)?;
        }
        self.end(out, start)
    }

    /// Appends the whole key of a row whose columns' values `value` gives by position.
    #[inline]
    pub fn encode_with<'v>(
        &self,
        out: &mut Vec<u8>,
        mut value: impl FnMut(usize) -> Result<ValueRef<'v>>,
    ) -> Result<()> {
        let start = self.begin(out);
        self.parts.iter().try_for_each(|part| part.encode(out, value(part.position)?))?;
        self.end(out, start)
    }

    /// The beginning of a key that says its first columns, of a group all of them; none if one of
    /// them is NULL.
    pub fn beginning<'k>(&self, key: &'k [u8], columns: usize) -> Result<Option<&'k [u8]>> {
        let start = if self.grouped { GROUP_BYTES } else { 0 };
        let mut rest = key.get(start..).ok_or_else(damaged)?;
        for part in self.parts.iter().take(columns) {
            if part.decode(&mut rest)?.is_null() {
                return Ok(None);
            }
        }
        Ok(Some(&key[..key.len() - rest.len()]))
    }

    /// From where up to where keys lie whose first column is not NULL; none if it never is, or if
    /// that tells nothing about where they lie.
    pub fn without_null(&self) -> Option<[&'static [u8]; 2]> {
        let is_nullable = self.parts.first().is_some_and(|part| part.nullable);
        (is_nullable && !self.grouped).then_some([&[PRESENT], &[NULL_LAST]])
    }

    /// Makes `range` that of the keys whose first columns equal `equal` and whose next column lies
    /// between the bounds. Of NULLs in the next column: without any bound they are in the range,
    /// with one they are not. Of a group all columns are in `equal`, and its key is `low`.
    pub fn range(
        &self,
        range: &mut KeyRange,
        equal: &[ValueRef<'_>],
        lower: Option<KeyBound<'_>>,
        upper: Option<KeyBound<'_>>,
    ) -> Result<()> {
        range.low.clear();
        self.encode(&mut range.low, equal.iter().copied())?;
        if self.grouped {
            return Ok(());
        }
        let high = range.high.get_or_insert_default();
        high.clear();
        high.extend_from_slice(&range.low);
        let raw = self.parts.first().is_some_and(|part| part.raw);
        // What comes after all keys that begin so; of a raw key: after that key alone.
        let after = |key: &mut Vec<u8>| {
            if raw {
                key.push(0);
            }
            raw || prefix_end(key)
        };
        let mut is_open = false;
        match self.parts.get(equal.len()).filter(|_| lower.is_some() || upper.is_some()) {
            None => is_open = equal.is_empty() || !after(high),
            Some(part) => {
                let (first, last) = if part.descending { (upper, lower) } else { (lower, upper) };
                match first {
                    Some(bound) => {
                        part.encode(&mut range.low, bound.value)?;
                        if !bound.inclusive && !after(&mut range.low) {
                            return Err(SqlError::internal("a key without an end"));
                        }
                    }
                    None if part.nullable => range.low.push(PRESENT),
                    None => {}
                }
                match last {
                    Some(bound) => {
                        part.encode(high, bound.value)?;
                        is_open = bound.inclusive && !after(high);
                    }
                    None if part.nullable => high.push(NULL_LAST),
                    None => is_open = equal.is_empty() || !after(high),
                }
            }
        }
        if is_open {
            range.high = None;
        }
        Ok(())
    }
}

/// Makes a beginning of keys the least key greater than all that begin so; false, and nothing left,
/// when there is none.
pub fn prefix_end(prefix: &mut Vec<u8>) -> bool {
    let before = if CHECKS_INVARIANTS { prefix.clone() } else { Vec::new() };
    while let Some(last) = prefix.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            let is_end = || *prefix > before && !prefix.starts_with(&before);
            invariant!(KEY_2, is_end(), "{before:?} has the end {prefix:?}");
            return true;
        }
        prefix.pop();
    }
    false
}

impl KeyPart {
    /// Appends an integer of exactly the column's type, the most frequent key. Returns false,
    /// appending nothing, for any other value.
    #[inline]
    pub fn encode_integer(&self, out: &mut Vec<u8>, value: &Value) -> bool {
        if self.nullable {
            return false;
        }
        let start = out.len();
        match (value, self.data_type) {
            (Value::Integer(v), DataType::Integer) => {
                out.extend_from_slice(&(v ^ i32::MIN).to_be_bytes());
            }
            (Value::BigInt(v), DataType::BigInt) => {
                out.extend_from_slice(&(v ^ i64::MIN).to_be_bytes());
            }
            _ => return false,
        }
        debug_assert!(self.encodes_as(value, &out[start..]), "another key for {value:?}");
        true
    }

    /// Returns whether the column's bytes are these.
    fn encodes_as(&self, value: &Value, bytes: &[u8]) -> bool {
        let mut encoded = Vec::new();
        self.encode(&mut encoded, value.as_ref()).is_ok() && encoded == bytes
    }

    /// Appends one column.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>, value: ValueRef<'_>) -> Result<()> {
        if self.nullable {
            if value.is_null() {
                out.push(if self.nulls_first { NULL_FIRST } else { NULL_LAST });
                return Ok(());
            }
            out.push(PRESENT);
        }
        let start = out.len();
        match value {
            ValueRef::Integer(v) | ValueRef::Date(v) => {
                out.extend_from_slice(&(v ^ i32::MIN).to_be_bytes());
            }
            ValueRef::BigInt(v)
            | ValueRef::Time(v)
            | ValueRef::Timestamp(v)
            | ValueRef::TimestampTz(v) => {
                out.extend_from_slice(&(v ^ i64::MIN).to_be_bytes());
            }
            ValueRef::SmallInt(v) => out.extend_from_slice(&(v ^ i16::MIN).to_be_bytes()),
            ValueRef::Text(v) => {
                let is_padded = matches!(self.data_type, DataType::Char(_));
                let text = if is_padded { without_blanks(v) } else { v };
                match self.collation {
                    None => encode_bytes(out, text.as_bytes()),
                    Some(own) => {
                        let mut key = Vec::with_capacity(text.len() * 3 + 8);
                        own.append_sort_key(text, &mut key)?;
                        encode_bytes(out, &key);
                    }
                }
            }
            ValueRef::Boolean(v) => out.push(v.into()),
            ValueRef::Real(v) => out.extend_from_slice(&sortable_f32(v).to_be_bytes()),
            ValueRef::Double(v) => out.extend_from_slice(&sortable_f64(v).to_be_bytes()),
            ValueRef::Numeric(v) => v.write_key(out),
            ValueRef::LongNumeric(v) => v.decimal().write_key(out),
            ValueRef::Bytea(v) if self.raw => out.extend_from_slice(v),
            ValueRef::Bytea(v) => encode_bytes(out, v),
            ValueRef::Encoded(encoded, v) if encoded.kind() != EncodedKind::Record => {
                encode_bytes(out, &ordering_key(encoded.kind(), v));
            }
            ValueRef::Uuid(v) => out.extend_from_slice(&v),
            ValueRef::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
            // Equal intervals have equal lengths; a key does not keep months and days apart.
            ValueRef::Interval(v) => {
                invariant!(INTERVAL_1, Interval::of_length(v.length()) == v, "{v:?}");
                out.extend_from_slice(&(v.length() ^ i128::MIN).to_be_bytes());
            }
            ValueRef::Array(_) | ValueRef::Jsonb(_) | ValueRef::Encoded(..) => {
                let mut nested = Vec::new();
                encode_nested(&mut nested, value)?;
                encode_bytes(out, &nested);
            }
            ValueRef::Json(_) => return Err(SqlError::internal("a JSON value in a key")),
            ValueRef::Null => {
                return Err(SqlError::internal("a NULL in a key that has none"));
            }
        }
        if self.descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        invariant!(KEY_1, self.reads_back(&out[start..], value), "{value:?}");
        Ok(())
    }

    /// Returns whether these bytes are a value equal to `value`, and nothing more.
    fn reads_back(&self, mut bytes: &[u8], value: ValueRef<'_>) -> bool {
        let part = KeyPart { nullable: false, ..*self };
        let read = part.decode(&mut bytes);
        let is_equal = |read: Value| match (read.as_ref(), value) {
            (ValueRef::Encoded(..), ValueRef::Text(text)) if part.collation.is_some() => {
                let is_padded = matches!(part.data_type, DataType::Char(_));
                let text = if is_padded { without_blanks(text) } else { text };
                let key = part.collation.and_then(|own| own.key(text).ok());
                key.is_some_and(|key| key.compare(&read) == Some(Ordering::Equal))
            }
            (ValueRef::Text(read), ValueRef::Text(value))
                if matches!(part.data_type, DataType::Char(_)) =>
            {
                read == without_blanks(value)
            }
            (ValueRef::Bytea(read), value) if is_nested(part.data_type) => is_key_of(read, value),
            (read, value) => read == value,
        };
        bytes.is_empty() && read.is_ok_and(is_equal)
    }

    /// Reads the column's value from the start of `bytes` and leaves the bytes that follow it. Of
    /// a value with parts it reads the nested key, of a text under a collation the sort key.
    pub fn decode(&self, bytes: &mut &[u8]) -> Result<Value> {
        let turn = if self.descending { u8::MAX } else { 0 };
        if self.raw {
            return Ok(Value::bytea(std::mem::take(bytes)));
        }
        let mut source = KeyBytes { bytes, turn };
        if self.nullable {
            match source.take::<1>()?.map(|byte| byte ^ turn) {
                [PRESENT] => {}
                [NULL_FIRST | NULL_LAST] => return Ok(Value::Null),
                _ => return Err(damaged()),
            }
        }
        if let Some(own) = self.collation {
            return own.of_sort_key(source.content()?);
        }
        Ok(match self.data_type {
            known if is_nested(known) => Value::bytea(source.content()?),
            DataType::Boolean => Value::Boolean(source.take::<1>()? == [1]),
            DataType::SmallInt => Value::SmallInt(i16::from_be_bytes(source.take()?) ^ i16::MIN),
            DataType::Integer => Value::Integer(i32::from_be_bytes(source.take()?) ^ i32::MIN),
            DataType::Date => Value::Date(i32::from_be_bytes(source.take()?) ^ i32::MIN),
            DataType::BigInt => Value::BigInt(source.integer()?),
            DataType::Time => Value::Time(source.integer()?),
            DataType::Timestamp => Value::Timestamp(source.integer()?),
            DataType::TimestampTz => Value::TimestampTz(source.integer()?),
            DataType::Real => {
                let bits = u32::from_be_bytes(source.take()?);
                let turned = if bits >> 31 == 1 { bits ^ (1 << 31) } else { !bits };
                Value::Real(f32::from_bits(turned))
            }
            DataType::Double => {
                let bits = u64::from_be_bytes(source.take()?);
                let turned = if bits >> 63 == 1 { bits ^ (1 << 63) } else { !bits };
                Value::Double(f64::from_bits(turned))
            }
            DataType::Numeric(_) | DataType::WideNumeric(_) => {
                let next = || source.take::<1>().ok().map(|[byte]| byte);
                Decimal::read_key(next).ok_or_else(damaged)?.into()
            }
            DataType::Encoded(encoded) => {
                let bytes = of_ordering_key(encoded.kind(), &source.content()?);
                Value::encoded(encoded.kind(), &bytes.ok_or_else(damaged)?)
            }
            known if known.is_text() => {
                let text = String::from_utf8(source.content()?).map_err(|_| damaged())?;
                Value::text(text)
            }
            DataType::Bytea => Value::bytea(source.content()?),
            DataType::Interval => source.interval()?,
            DataType::Precise(precise) => match precise.plain() {
                DataType::Time => Value::Time(source.integer()?),
                DataType::Timestamp => Value::Timestamp(source.integer()?),
                DataType::TimestampTz => Value::TimestampTz(source.integer()?),
                _ => source.interval()?,
            },
            DataType::Uuid => Value::Uuid(source.take()?),
            DataType::System(known) if known.is_number() => {
                Value::Oid(u32::from_be_bytes(source.take()?))
            }
            // Texts are above.
            DataType::Text
            | DataType::Varchar(_)
            | DataType::Char(_)
            | DataType::System(_)
            | DataType::Array(_)
            | DataType::Json
            | DataType::Jsonb => return Err(damaged()),
        })
    }
}

fn sortable_f32(value: f32) -> u32 {
    let plain = if value.is_nan() { f32::NAN.abs() } else { value + 0.0 };
    let bits = plain.to_bits();
    if bits >> 31 == 1 { !bits } else { bits ^ (1 << 31) }
}

fn sortable_f64(value: f64) -> u64 {
    let plain = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
    let bits = plain.to_bits();
    if bits >> 63 == 1 { !bits } else { bits ^ (1 << 63) }
}

#[inline]
pub(super) fn encode_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.contains(&0) {
        for &byte in bytes {
            out.push(byte);
            if byte == 0 {
                out.push(u8::MAX);
            }
        }
    } else {
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(&[0, 0]);
}

#[cold]
fn damaged() -> SqlError {
    SqlError::corrupted("a key cannot be read: it is not what its columns' types say")
}

/// Bytes being read, turned over if need be.
struct KeyBytes<'a, 'b> {
    bytes: &'a mut &'b [u8],
    turn: u8,
}

impl KeyBytes<'_, '_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk::<N>().ok_or_else(damaged)?;
        *self.bytes = rest;
        Ok(first.map(|byte| byte ^ self.turn))
    }

    fn integer(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.take()?) ^ i64::MIN)
    }

    fn interval(&mut self) -> Result<Value> {
        let length = i128::from_be_bytes(self.take()?) ^ i128::MIN;
        Ok(Value::Interval(Interval::of_length(length)))
    }

    fn content(&mut self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.take()? {
                [0] => match self.take()? {
                    [0] => return Ok(out),
                    [u8::MAX] => out.push(0),
                    [_] => return Err(damaged()),
                },
                [byte] => out.push(byte),
            }
        }
    }
}

/// The length of a key's part is kept in two bytes.
#[cold]
pub(crate) fn key_too_long() -> SqlError {
    SqlError::new(SqlState::ProgramLimitExceeded, "an index key is longer than 64 KiB")
}
