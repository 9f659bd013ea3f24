//! Arrays and rows as bytes: an owned [`Array`], a borrowed [`ArrayRef`] over the same bytes, and a
//! borrowed row, [`RowRef`].
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

use super::element_type::ElementType;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{
    DataType, EncodedType, Interval, LONG_SCALE, LongNumericRef, Numeric, Value, ValueRef,
};
use crate::utf8::text_from_utf8;

/// Maximum number of dimensions.
pub const MAX_DIMENSIONS: usize = 6;

/// Maximum bytes of an array.
const SIZE_LIMIT: usize = 256 << 20;

/// Marks a NULL element or field.
pub(in crate::types) const NULL: u32 = 1 << 31;

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
        append_content(out, value);
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

    /// Returns the array of what a function makes of each element.
    pub(crate) fn map(
        self,
        to: ElementType,
        mut function: impl FnMut(ValueRef<'a>) -> Result<Value>,
    ) -> Result<Array> {
        let mut builder = ArrayBuilder::new(to);
        self.iter().try_for_each(|element| builder.push(function(element)?.as_ref()))?;
        builder.finish(&self.dimensions())
    }

    /// Returns the elements in storage order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = ValueRef<'a>> + use<'a> {
        let count = self.len();
        let content = self.ends_at() + count * 4;
        (0..count).map(move |number| self.at(number, content))
    }

    fn element(self, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
        read_content(self.element_type(), bytes)
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

/// The code of a field of a row that is an array.
pub(in crate::types) const ARRAY: u8 = 0;
/// The code of a field that is an `int2vector` or `oidvector`.
pub(in crate::types) const VECTOR: u8 = u8::MAX;
/// Bytes of a row before the types of its fields.
pub(in crate::types) const HEAD: usize = 6;

/// A borrowed row.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    codes: &'a [u8],
    names: &'a [u8],
    ends: &'a [u8],
    content: &'a [u8],
}

/// A field of a row.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: ValueRef<'a>,
    code: u8,
}

impl FieldRef<'_> {
    /// Returns whether the field is an `int2vector` or `oidvector`.
    pub(in crate::types) fn is_vector(&self) -> bool {
        self.code == VECTOR
    }

    /// Returns the type of the field, without length, precision and scale.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        let of_code = ElementType::of_code(self.code).unwrap_or(ElementType::TEXT);
        match (self.value, self.code) {
            (ValueRef::Array(array), _) => DataType::Array(array.element_type()),
            (_, ARRAY | VECTOR) => DataType::Array(ElementType::TEXT),
            _ => of_code.data_type(),
        }
    }
}

impl<'a> RowRef<'a> {
    /// Returns the row with these bytes; `None` if they are no row.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<RowRef<'a>> {
        let count = usize::from(u16::from_le_bytes(load(bytes, 0)?));
        let names = u32::from_le_bytes(load(bytes, 2)?) as usize;
        let (codes, rest) = bytes.get(HEAD..)?.split_at_checked(count)?;
        let (names, rest) = rest.split_at_checked(names)?;
        let (ends, content) = rest.split_at_checked(count * 4)?;
        Some(RowRef { codes, names, ends, content })
    }

    /// Returns the number of fields.
    #[must_use]
    pub fn len(self) -> usize {
        self.codes.len()
    }

    /// Returns whether the row has no fields.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.codes.is_empty()
    }

    fn end(self, number: usize) -> Option<u32> {
        load(self.ends, number * 4).map(u32::from_le_bytes)
    }

    /// Returns the value of the field of that number, counted from 0; NULL if there is none.
    #[must_use]
    pub fn get(self, number: usize) -> ValueRef<'a> {
        self.value(number).unwrap_or_default()
    }

    fn value(self, number: usize) -> Option<ValueRef<'a>> {
        let end = self.end(number)?;
        if end & NULL != 0 {
            return None;
        }
        let start = match number.checked_sub(1) {
            Some(before) => self.end(before)? & !NULL,
            None => 0,
        };
        let bytes = self.content.get(start as usize..end as usize)?;
        match *self.codes.get(number)? {
            ARRAY | VECTOR => ArrayRef::read(bytes).map(ValueRef::Array),
            code => read_content(ElementType::of_code(code)?, bytes),
        }
    }

    /// Returns the fields in order.
    pub fn fields(self) -> impl Iterator<Item = FieldRef<'a>> {
        let mut names = self.names;
        self.codes.iter().enumerate().map(move |(number, code)| {
            let length = usize::from(load(names, 0).map_or(0, u16::from_le_bytes));
            let name = names.get(2..2 + length).unwrap_or_default();
            names = names.get(2 + length..).unwrap_or_default();
            let name = std::str::from_utf8(name).unwrap_or_default();
            FieldRef { name, value: self.get(number), code: *code }
        })
    }

    /// Compares field by field, then by the number of fields. NULLs are equal, and greater than
    /// other values.
    #[must_use]
    pub fn compare(self, other: RowRef<'_>) -> Ordering {
        let most = self.len().min(other.len());
        let fields = (0..most).map(|number| self.get(number).order(other.get(number)));
        let unequal = fields.into_iter().find(|order| order.is_ne());
        unequal.unwrap_or_else(|| self.len().cmp(&other.len()))
    }
}

impl Hash for RowRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        (0..self.len()).for_each(|number| self.get(number).hash(state));
    }
}

/// Returns bytes at a place.
fn load<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Appends the content of a value: nothing for NULL and for arrays, which have a form of their own.
pub(in crate::types) fn append_content(out: &mut Vec<u8>, value: ValueRef<'_>) {
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
        ValueRef::LongNumeric(v) => {
            out.extend_from_slice(v.bytes());
            out.push(LONG_SCALE);
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
}

/// Returns the value of that type with these bytes, or `None` if they are none.
fn read_content(element: ElementType, bytes: &[u8]) -> Option<ValueRef<'_>> {
    let four = || bytes.try_into().ok().map(i32::from_le_bytes);
    let eight = || bytes.try_into().ok().map(i64::from_le_bytes);
    Some(match element.data_type() {
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
        DataType::Numeric(_) | DataType::WideNumeric(_) => {
            if let [number @ .., LONG_SCALE] = bytes {
                return LongNumericRef::read(number).map(ValueRef::LongNumeric);
            }
            let mantissa = i128::from_le_bytes(load(bytes, 0)?);
            let [scale] = load(bytes, 16)?;
            ValueRef::Numeric(Numeric::restore(mantissa, scale).ok()?)
        }
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
            ValueRef::Text(text_from_utf8(bytes)?)
        }
        DataType::Json => ValueRef::Json(text_from_utf8(bytes)?),
        DataType::Jsonb => ValueRef::Jsonb(text_from_utf8(bytes)?),
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
        DataType::System(known) if known.is_text() => ValueRef::Text(text_from_utf8(bytes)?),
        DataType::Encoded(encoded) => ValueRef::Encoded(EncodedType::new(encoded.kind(), 0), bytes),
        DataType::System(_) | DataType::Array(_) | DataType::Precise(_) => return None,
    })
}
