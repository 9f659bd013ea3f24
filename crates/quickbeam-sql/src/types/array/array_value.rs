//! Arrays: an owned [`Array`] and a borrowed [`ArrayRef`] over the same bytes.
//!
//! ```text
//! ┌─────────┬────────────┬───────────────────────────────┬──────────────────┬─────────┐
//! │ type u8 │ dimensions │ length u32, lower i32 of each │ ends u32 of each │ content │
//! └─────────┴────────────┴───────────────────────────────┴──────────────────┴─────────┘
//! ```
//!
//! All numbers are little-endian. An end counts from the start of the content; its highest bit
//! marks NULL. Rows store these bytes, so reading an array from a row copies nothing.
//!
//! - ARRAY-1: every [`ArrayRef`] is checked when it is made, so its elements can be read without
//!   errors.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quickbeam::invariant;
use serde::{Deserialize, Serialize};

use crate::error::{Result, SqlError, SqlState};
use crate::types::{
    DataType, EncodedKind, EncodedType, Interval, Numeric, PreciseType, SystemType, TimeKind,
    Value, ValueRef,
};

/// Maximum number of dimensions.
pub const MAX_DIMENSIONS: usize = 6;

/// Maximum bytes of an array.
const SIZE_LIMIT: usize = 256 << 20;

/// Marks a NULL element.
const NULL: u32 = 1 << 31;

/// The type of the elements of an array: any type but an array. Four bytes, so that it does not
/// enlarge [`DataType`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "DataType", try_from = "DataType")]
pub struct ElementType(u32);

const CODE_SHIFT: u32 = 24;

/// The code of the first type of the system catalogs; the others follow in their order.
const FIRST_SYSTEM_CODE: u32 = 20;

/// The code of the first type whose values are bytes; the others follow in their order.
const FIRST_ENCODED_CODE: u32 = FIRST_SYSTEM_CODE + SystemType::ALL.len() as u32;

impl ElementType {
    /// TEXT
    pub const TEXT: ElementType = ElementType(8 << CODE_SHIFT);
    /// INTEGER
    pub const INTEGER: ElementType = ElementType(3 << CODE_SHIFT);
    /// `name`
    pub const NAME: ElementType =
        ElementType((FIRST_SYSTEM_CODE + SystemType::Name as u32) << CODE_SHIFT);
    /// `oid`
    pub const OID: ElementType = ElementType(FIRST_SYSTEM_CODE << CODE_SHIFT);

    /// Returns the element type, or `None` for an array.
    #[must_use]
    pub const fn new(data_type: DataType) -> Option<ElementType> {
        let (code, modifier): (u32, u32) = match data_type {
            DataType::Boolean => (1, 0),
            DataType::SmallInt => (2, 0),
            DataType::Integer => (3, 0),
            DataType::BigInt => (4, 0),
            DataType::Real => (5, 0),
            DataType::Double => (6, 0),
            DataType::Numeric(None) => (7, 0),
            DataType::Numeric(Some((precision, scale))) => {
                (7, (precision as u32) << 8 | scale as u32)
            }
            DataType::Text => (8, 0),
            DataType::Varchar(None) => (9, 0),
            DataType::Varchar(Some(length)) => (9, length),
            DataType::Char(length) => (10, length),
            DataType::Bytea => (11, 0),
            DataType::Date => (12, 0),
            DataType::Time => (13, 0),
            DataType::Timestamp => (14, 0),
            DataType::TimestampTz => (15, 0),
            DataType::Uuid => (16, 0),
            DataType::Interval => (17, 0),
            DataType::Json => (18, 0),
            DataType::Jsonb => (19, 0),
            DataType::System(SystemType::Int2Vector | SystemType::OidVector)
            | DataType::Array(_) => return None,
            DataType::System(known) => (FIRST_SYSTEM_CODE + known as u32, 0),
            DataType::Precise(precise) => match ElementType::new(precise.plain()) {
                Some(plain) => (plain.0 >> CODE_SHIFT, precise.number()),
                None => return None,
            },
            DataType::Encoded(encoded) => {
                (FIRST_ENCODED_CODE + encoded.kind() as u32, encoded.length())
            }
        };
        Some(ElementType(code << CODE_SHIFT | modifier & ((1 << CODE_SHIFT) - 1)))
    }

    /// Returns the type of an element.
    #[must_use]
    pub const fn data_type(self) -> DataType {
        let modifier = self.0 & ((1 << CODE_SHIFT) - 1);
        match self.0 >> CODE_SHIFT {
            1 => DataType::Boolean,
            2 => DataType::SmallInt,
            3 => DataType::Integer,
            4 => DataType::BigInt,
            5 => DataType::Real,
            6 => DataType::Double,
            7 if modifier == 0 => DataType::Numeric(None),
            7 => DataType::Numeric(Some(((modifier >> 8) as u8, modifier as u8))),
            9 if modifier == 0 => DataType::Varchar(None),
            9 => DataType::Varchar(Some(modifier)),
            10 => DataType::Char(modifier),
            11 => DataType::Bytea,
            12 => DataType::Date,
            13 if modifier == 0 => DataType::Time,
            14 if modifier == 0 => DataType::Timestamp,
            15 if modifier == 0 => DataType::TimestampTz,
            16 => DataType::Uuid,
            17 if modifier == 0 => DataType::Interval,
            code @ (13 | 14 | 15 | 17) => {
                let kind = match code {
                    13 => TimeKind::Time,
                    14 => TimeKind::Timestamp,
                    15 => TimeKind::TimestampTz,
                    _ => TimeKind::Interval,
                };
                DataType::Precise(PreciseType::of_number(kind, modifier))
            }
            18 => DataType::Json,
            19 => DataType::Jsonb,
            code if code >= FIRST_ENCODED_CODE
                && code < FIRST_ENCODED_CODE + EncodedKind::ALL.len() as u32 =>
            {
                let kind = EncodedKind::ALL[(code - FIRST_ENCODED_CODE) as usize];
                DataType::Encoded(EncodedType::new(kind, modifier))
            }
            code if code >= FIRST_SYSTEM_CODE && code < FIRST_ENCODED_CODE => {
                DataType::System(SystemType::ALL[(code - FIRST_SYSTEM_CODE) as usize])
            }
            _ => DataType::Text,
        }
    }

    /// Returns the element type of values: without length, precision and scale; texts are TEXT.
    #[must_use]
    pub(crate) fn stored(self) -> ElementType {
        match self.data_type() {
            known if known.is_text() => ElementType::TEXT,
            known if known.is_object_number() => ElementType::OID,
            _ => ElementType(self.0 >> CODE_SHIFT << CODE_SHIFT),
        }
    }

    /// Returns the type without length, precision and scale.
    #[must_use]
    pub fn unconstrained(self) -> ElementType {
        ElementType::new(self.data_type().unconstrained()).unwrap_or(self)
    }

    fn of_code(code: u8) -> Option<ElementType> {
        let last = FIRST_ENCODED_CODE + EncodedKind::ALL.len() as u32 - 1;
        (1..=last).contains(&u32::from(code)).then_some(ElementType(u32::from(code) << CODE_SHIFT))
    }

    fn code(self) -> u8 {
        (self.0 >> CODE_SHIFT) as u8
    }
}

impl SystemType {
    /// Returns the type of the arrays that a vector's values are.
    #[must_use]
    pub fn vector_array(self) -> Option<DataType> {
        Some(DataType::Array(ElementType::new(self.vector_element()?)?))
    }
}

impl From<ElementType> for DataType {
    fn from(element: ElementType) -> DataType {
        element.data_type()
    }
}

impl TryFrom<DataType> for ElementType {
    type Error = &'static str;

    fn try_from(data_type: DataType) -> std::result::Result<ElementType, &'static str> {
        ElementType::new(data_type).ok_or("an array of arrays has no element type")
    }
}

impl std::fmt::Debug for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.data_type().fmt(f)
    }
}

/// One dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// The number of elements.
    pub length: u32,
    /// The subscript of the first element.
    pub lower: i32,
}

impl Dimension {
    /// Returns a dimension whose subscripts start at 1.
    #[must_use]
    pub fn of(length: usize) -> Dimension {
        Dimension { length: length as u32, lower: 1 }
    }

    /// Returns the subscript of the last element.
    #[must_use]
    pub fn upper(self) -> i64 {
        i64::from(self.lower) + i64::from(self.length) - 1
    }
}

/// An array, owned. Cloning copies no elements.
#[derive(Clone, Debug)]
pub struct Array(Arc<[u8]>);

/// A borrowed [`Array`].
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a>(&'a [u8]);

#[cold]
fn too_large() -> SqlError {
    let message = format!("array size exceeds the maximum allowed ({SIZE_LIMIT} bytes)");
    SqlError::new(SqlState::ProgramLimitExceeded, message)
}

impl Array {
    /// Returns an array of one dimension, or an empty one. Each value is NULL or has the element
    /// type.
    pub fn new<'v>(
        element: ElementType,
        values: impl IntoIterator<Item = ValueRef<'v>>,
    ) -> Result<Array> {
        let mut builder = ArrayBuilder::new(element);
        for value in values {
            builder.push(value)?;
        }
        let length = builder.len();
        builder.finish(&[Dimension::of(length)])
    }

    /// Returns the array without elements.
    #[must_use]
    pub fn empty(element: ElementType) -> Array {
        Array([element.stored().code(), 0].into())
    }

    /// Returns the array, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> ArrayRef<'_> {
        ArrayRef(&self.0)
    }
}

/// Collects the elements of an array.
pub struct ArrayBuilder {
    element: ElementType,
    ends: Vec<u32>,
    content: Vec<u8>,
}

impl ArrayBuilder {
    /// Starts an array of that type.
    #[must_use]
    pub fn new(element: ElementType) -> ArrayBuilder {
        ArrayBuilder { element: element.stored(), ends: Vec::new(), content: Vec::new() }
    }

    /// Returns the number of elements so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no element so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds an element. A value of another type is an internal error.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        let out = &mut self.content;
        let mark = if value.is_null() { NULL } else { 0 };
        let is_of_type =
            value.data_type().is_none_or(|own| ElementType::new(own) == Some(self.element));
        if !is_of_type {
            return Err(SqlError::internal("an array element of another type"));
        }
        match value {
            ValueRef::Null | ValueRef::Array(_) => {}
            ValueRef::Boolean(v) => out.push(v.into()),
            ValueRef::SmallInt(v) => out.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Integer(v) | ValueRef::Date(v) => out.extend_from_slice(&v.to_le_bytes()),
            ValueRef::BigInt(v)
            | ValueRef::Time(v)
            | ValueRef::Timestamp(v)
            | ValueRef::TimestampTz(v) => out.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Real(v) => out.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Double(v) => out.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Numeric(v) => {
                out.extend_from_slice(&v.mantissa().to_le_bytes());
                out.push(v.scale());
            }
            ValueRef::Text(v) | ValueRef::Json(v) | ValueRef::Jsonb(v) => {
                out.extend_from_slice(v.as_bytes());
            }
            ValueRef::Bytea(v) | ValueRef::Encoded(_, v) => out.extend_from_slice(v),
            ValueRef::Uuid(v) => out.extend_from_slice(&v),
            ValueRef::Oid(v) => out.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Interval(v) => {
                out.extend_from_slice(&v.months.to_le_bytes());
                out.extend_from_slice(&v.days.to_le_bytes());
                out.extend_from_slice(&v.micros.to_le_bytes());
            }
        }
        if self.content.len() + self.ends.len() * 4 > SIZE_LIMIT {
            return Err(too_large());
        }
        self.ends.push(self.content.len() as u32 | mark);
        Ok(())
    }

    /// Returns the array. The product of the dimensions is the number of elements.
    pub fn finish(self, dimensions: &[Dimension]) -> Result<Array> {
        let count: u64 = dimensions.iter().map(|one| u64::from(one.length)).product();
        if self.ends.is_empty() {
            return Ok(Array::empty(self.element));
        }
        if count != self.ends.len() as u64 || dimensions.len() > MAX_DIMENSIONS {
            return Err(SqlError::internal("the dimensions of an array do not fit its elements"));
        }
        if dimensions.iter().any(|one| one.upper() >= i64::from(i32::MAX)) {
            let message = "array lower bound is too large";
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
        }
        let size = 2 + dimensions.len() * 8 + self.ends.len() * 4 + self.content.len();
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&[self.element.code(), dimensions.len() as u8]);
        for one in dimensions {
            bytes.extend_from_slice(&one.length.to_le_bytes());
            bytes.extend_from_slice(&one.lower.to_le_bytes());
        }
        self.ends.iter().for_each(|end| bytes.extend_from_slice(&end.to_le_bytes()));
        bytes.extend_from_slice(&self.content);
        Ok(Array(bytes.into()))
    }
}

fn load<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl<'a> ArrayRef<'a> {
    /// Returns the array with these bytes, or `None` if they are not an array (ARRAY-1).
    #[must_use]
    pub(crate) fn read(bytes: &'a [u8]) -> Option<ArrayRef<'a>> {
        let [code, dimensions] = load(bytes, 0)?;
        let element = ElementType::of_code(code)?;
        if element.stored() != element || usize::from(dimensions) > MAX_DIMENSIONS {
            return None;
        }
        let mut count = u64::from(dimensions > 0);
        for number in 0..usize::from(dimensions) {
            let length = u32::from_le_bytes(load(bytes, 2 + number * 8)?);
            load::<4>(bytes, 6 + number * 8)?;
            count = count.checked_mul(u64::from(length)).filter(|count| *count < 1 << 31)?;
        }
        let array = ArrayRef(bytes);
        if dimensions > 0 && count == 0 {
            return None;
        }
        let content = array.ends_at() + count as usize * 4;
        let mut start = 0;
        for number in 0..count as usize {
            let end = u32::from_le_bytes(load(bytes, array.ends_at() + number * 4)?);
            let (end, is_null) = ((end & !NULL) as usize, end & NULL != 0);
            let element_bytes = bytes.get(content + start..content + end)?;
            if !is_null {
                array.element(element_bytes)?;
            }
            start = end;
        }
        Some(array)
    }

    /// Returns the array's bytes.
    #[must_use]
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns a copy.
    #[must_use]
    pub fn to_array(self) -> Array {
        Array(self.0.into())
    }

    /// Returns the type of the elements, without length, precision and scale.
    #[must_use]
    pub fn element_type(self) -> ElementType {
        let code = self.0.first().copied().and_then(ElementType::of_code);
        code.unwrap_or(ElementType::TEXT)
    }

    fn dimension_count(self) -> usize {
        self.0.get(1).map_or(0, |count| usize::from(*count))
    }

    /// Returns the dimensions; none if the array is empty.
    pub fn dimensions(self) -> Vec<Dimension> {
        (0..self.dimension_count()).filter_map(|number| self.dimension(number)).collect()
    }

    /// Returns the dimension of that number, counted from 0.
    #[must_use]
    pub fn dimension(self, number: usize) -> Option<Dimension> {
        if number >= self.dimension_count() {
            return None;
        }
        let length = u32::from_le_bytes(load(self.0, 2 + number * 8)?);
        Some(Dimension { length, lower: i32::from_le_bytes(load(self.0, 6 + number * 8)?) })
    }

    fn ends_at(self) -> usize {
        2 + self.dimension_count() * 8
    }

    /// Returns the number of elements in all dimensions.
    #[must_use]
    pub fn len(self) -> usize {
        match self.dimension_count() {
            0 => 0,
            count => {
                let length = |number| self.dimension(number).map_or(0, |one| one.length as usize);
                (0..count).map(length).product()
            }
        }
    }

    /// Returns whether the array has no elements.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.dimension_count() == 0
    }

    fn end(self, number: usize) -> u32 {
        load(self.0, self.ends_at() + number * 4).map_or(0, u32::from_le_bytes)
    }

    /// Returns the element of that number in storage order, counted from 0; NULL if there is none.
    #[must_use]
    pub fn get(self, number: usize) -> ValueRef<'a> {
        let count = self.len();
        if number >= count {
            return ValueRef::Null;
        }
        self.at(number, self.ends_at() + count * 4)
    }

    fn at(self, number: usize, content: usize) -> ValueRef<'a> {
        let end = self.end(number);
        if end & NULL != 0 {
            return ValueRef::Null;
        }
        let start = if number == 0 { 0 } else { (self.end(number - 1) & !NULL) as usize };
        let bytes = self.0.get(content + start..content + end as usize);
        let value = bytes.and_then(|bytes| self.element(bytes));
        invariant!(ARRAY_1, value.is_some(), "element {number} cannot be read");
        value.unwrap_or_default()
    }

    /// Returns the elements in storage order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = ValueRef<'a>> + use<'a> {
        let count = self.len();
        let content = self.ends_at() + count * 4;
        (0..count).map(move |number| self.at(number, content))
    }

    fn element(self, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
        let four = || bytes.try_into().ok().map(i32::from_le_bytes);
        let eight = || bytes.try_into().ok().map(i64::from_le_bytes);
        Some(match self.element_type().data_type() {
            DataType::Boolean => ValueRef::Boolean(load::<1>(bytes, 0)? != [0]),
            DataType::SmallInt => ValueRef::SmallInt(i16::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Integer => ValueRef::Integer(four()?),
            DataType::Date => ValueRef::Date(four()?),
            DataType::BigInt => ValueRef::BigInt(eight()?),
            DataType::Time => ValueRef::Time(eight()?),
            DataType::Timestamp => ValueRef::Timestamp(eight()?),
            DataType::TimestampTz => ValueRef::TimestampTz(eight()?),
            DataType::Real => ValueRef::Real(f32::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Double => ValueRef::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            DataType::Numeric(_) => {
                let mantissa = i128::from_le_bytes(load(bytes, 0)?);
                let [scale] = load(bytes, 16)?;
                ValueRef::Numeric(Numeric::restore(mantissa, scale).ok()?)
            }
            DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
                ValueRef::Text(std::str::from_utf8(bytes).ok()?)
            }
            DataType::Json => ValueRef::Json(std::str::from_utf8(bytes).ok()?),
            DataType::Jsonb => ValueRef::Jsonb(std::str::from_utf8(bytes).ok()?),
            DataType::Bytea => ValueRef::Bytea(bytes),
            DataType::Uuid => ValueRef::Uuid(bytes.try_into().ok()?),
            DataType::Interval => ValueRef::Interval(Interval {
                months: i32::from_le_bytes(load(bytes, 0)?),
                days: i32::from_le_bytes(load(bytes, 4)?),
                micros: i64::from_le_bytes(load(bytes, 8)?),
            }),
            DataType::System(known) if known.is_number() => {
                ValueRef::Oid(u32::from_le_bytes(bytes.try_into().ok()?))
            }
            DataType::System(known) if known.is_text() => {
                ValueRef::Text(std::str::from_utf8(bytes).ok()?)
            }
            DataType::Encoded(encoded) => {
                ValueRef::Encoded(EncodedType::new(encoded.kind(), 0), bytes)
            }
            DataType::System(_) | DataType::Array(_) | DataType::Precise(_) => return None,
        })
    }

    /// Compares element by element, then by length, dimensions and bounds. NULLs are equal, and
    /// greater than other elements.
    #[must_use]
    pub fn compare(self, other: ArrayRef<'_>) -> Ordering {
        let pairs = self.iter().zip(other.iter());
        let elements = pairs.map(|(a, b)| a.order(b)).find(|order| order.is_ne());
        let shape = |array: ArrayRef<'_>| {
            let dimensions = array.dimensions();
            let lengths: Vec<u32> = dimensions.iter().map(|one| one.length).collect();
            let lowers: Vec<i32> = dimensions.iter().map(|one| one.lower).collect();
            (array.len(), dimensions.len(), lengths, lowers)
        };
        elements.unwrap_or_else(|| shape(self).cmp(&shape(other)))
    }
}

impl Hash for ArrayRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dimensions().hash(state);
        self.iter().for_each(|element| element.hash(state));
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Value {
        Value::Array(array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_bytes_are_no_array() {
        let element = ElementType::new(DataType::Text).unwrap();
        let values = ["a", "", "long text"].map(ValueRef::Text);
        let array = Array::new(element, values.into_iter().chain([ValueRef::Null])).unwrap();
        let bytes = array.as_ref().bytes();
        assert!(ArrayRef::read(bytes).is_some());
        for cut in 0..bytes.len() {
            assert!(ArrayRef::read(&bytes[..cut]).is_none_or(|array| array.is_empty()), "{cut}");
        }
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= flip;
                if let Some(array) = ArrayRef::read(&damaged) {
                    array.iter().for_each(|element| assert!(element.to_value().memory() > 0));
                }
            }
        }
    }

    #[test]
    fn element_types_keep_length_and_precision() {
        let types = [
            DataType::Varchar(Some(10_485_760)),
            DataType::Char(7),
            DataType::Numeric(Some((38, 0))),
        ];
        for data_type in types {
            assert_eq!(ElementType::new(data_type).unwrap().data_type(), data_type);
        }
        assert_eq!(size_of::<DataType>(), 8);
    }
}
