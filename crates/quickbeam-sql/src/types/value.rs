//! Values: owned ([`Value`], 32 bytes) and borrowed ([`ValueRef`]).
//!
//! - VALUE-1: there are two equalities. SQL's, where NULL equals nothing, is [`ValueRef::compare`].
//!   Keys, groups and sorting use `Eq`, `Ord` and `Hash`: NULL equals NULL and sorts last, NaN
//!   equals NaN and is the greatest number, -0 equals 0, and decimals that differ only in scale are
//!   equal.
//! - VALUE-2: all numeric types compare with each other; every other type compares only with
//!   itself.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quickbeam::invariant;
use smol_str::SmolStr;

use super::json::{compare_jsonb, jsonb_key};
use super::{
    Array, ArrayRef, DataType, Decimal, EncodedKind, EncodedType, Interval, LongNumeric,
    LongNumericRef, Numeric, RowRef, encoded,
};

/// A SQL value. Texts of up to 23 bytes and values of fixed length are inline; cloning never copies
/// a long text.
///
/// ```
/// use quickbeam_sql::Value;
///
/// assert_eq!(Value::from(7), Value::Integer(7));
/// assert_eq!(Value::from("apple"), Value::text("apple"));
/// assert_eq!(Value::from(None::<i64>), Value::Null);
/// ```
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// REAL.
    Real(f32),
    /// DOUBLE PRECISION.
    Double(f64),
    /// NUMERIC of up to 38 digits.
    Numeric(Numeric),
    /// NUMERIC of more digits.
    LongNumeric(LongNumeric),
    /// TEXT, VARCHAR and CHAR (filled up with blanks).
    Text(SmolStr),
    /// BYTEA.
    Bytea(Arc<[u8]>),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIME: microseconds since midnight.
    Time(i64),
    /// TIMESTAMP: microseconds since 1970-01-01 00:00:00.
    Timestamp(i64),
    /// TIMESTAMP WITH TIME ZONE: microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz(i64),
    /// UUID.
    Uuid([u8; 16]),
    /// INTERVAL.
    Interval(Interval),
    /// JSON: its text.
    Json(SmolStr),
    /// JSONB: its canonical text.
    Jsonb(SmolStr),
    /// An array.
    Array(Array),
    /// The number of an object.
    Oid(u32),
    /// A value of a type whose values are bytes.
    Encoded(EncodedType, Arc<[u8]>),
}

/// A borrowed [`Value`].
#[derive(Clone, Copy, Debug, Default)]
pub enum ValueRef<'a> {
    /// No value.
    #[default]
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// REAL.
    Real(f32),
    /// DOUBLE PRECISION.
    Double(f64),
    /// NUMERIC of up to 38 digits.
    Numeric(Numeric),
    /// NUMERIC of more digits.
    LongNumeric(LongNumericRef<'a>),
    /// TEXT, VARCHAR and CHAR (filled up with blanks).
    Text(&'a str),
    /// BYTEA.
    Bytea(&'a [u8]),
    /// DATE: days since 1970-01-01.
    Date(i32),
    /// TIME: microseconds since midnight.
    Time(i64),
    /// TIMESTAMP: microseconds since 1970-01-01 00:00:00.
    Timestamp(i64),
    /// TIMESTAMP WITH TIME ZONE: microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz(i64),
    /// UUID.
    Uuid([u8; 16]),
    /// INTERVAL.
    Interval(Interval),
    /// JSON: its text.
    Json(&'a str),
    /// JSONB: its canonical text.
    Jsonb(&'a str),
    /// An array.
    Array(ArrayRef<'a>),
    /// The number of an object.
    Oid(u32),
    /// A value of a type whose values are bytes.
    Encoded(EncodedType, &'a [u8]),
}

impl Value {
    /// Returns the bytes of memory that the value occupies, including its heap content.
    pub fn memory(&self) -> usize {
        let beside = match self {
            Value::Text(text) | Value::Json(text) | Value::Jsonb(text)
                if text.is_heap_allocated() =>
            {
                text.len() + 16
            }
            Value::Bytea(bytes) | Value::Encoded(_, bytes) => bytes.len() + 16,
            Value::LongNumeric(number) => number.as_ref().bytes().len() + 16,
            Value::Array(array) => array.as_ref().bytes().len() + 16,
            _ => 0,
        };
        size_of::<Value>() + beside
    }

    /// Returns a text value.
    pub fn text(text: impl AsRef<str>) -> Value {
        Value::Text(SmolStr::new(text))
    }

    /// Returns a BYTEA value.
    pub fn bytea(bytes: impl AsRef<[u8]>) -> Value {
        Value::Bytea(bytes.as_ref().into())
    }

    /// Returns a value of a type whose values are bytes.
    pub(crate) fn encoded(kind: EncodedKind, bytes: &[u8]) -> Value {
        Value::Encoded(EncodedType::new(kind, 0), bytes.into())
    }

    /// Returns a JSON value of a valid text.
    pub(crate) fn json(text: impl AsRef<str>) -> Value {
        Value::Json(SmolStr::new(text))
    }

    /// Returns a JSONB value of a canonical text.
    pub(crate) fn jsonb(text: impl AsRef<str>) -> Value {
        Value::Jsonb(SmolStr::new(text))
    }

    /// Whether it is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns the value, borrowed.
    #[inline(always)]
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Boolean(v) => ValueRef::Boolean(*v),
            Value::SmallInt(v) => ValueRef::SmallInt(*v),
            Value::Integer(v) => ValueRef::Integer(*v),
            Value::BigInt(v) => ValueRef::BigInt(*v),
            Value::Real(v) => ValueRef::Real(*v),
            Value::Double(v) => ValueRef::Double(*v),
            Value::Numeric(v) => ValueRef::Numeric(*v),
            Value::LongNumeric(v) => ValueRef::LongNumeric(v.as_ref()),
            Value::Text(v) => ValueRef::Text(v),
            Value::Bytea(v) => ValueRef::Bytea(v),
            Value::Date(v) => ValueRef::Date(*v),
            Value::Time(v) => ValueRef::Time(*v),
            Value::Timestamp(v) => ValueRef::Timestamp(*v),
            Value::TimestampTz(v) => ValueRef::TimestampTz(*v),
            Value::Uuid(v) => ValueRef::Uuid(*v),
            Value::Interval(v) => ValueRef::Interval(*v),
            Value::Json(v) => ValueRef::Json(v),
            Value::Jsonb(v) => ValueRef::Jsonb(v),
            Value::Array(v) => ValueRef::Array(v.as_ref()),
            Value::Oid(v) => ValueRef::Oid(*v),
            Value::Encoded(encoded, v) => ValueRef::Encoded(*encoded, v),
        }
    }

    /// Returns the type without length or precision; `None` for NULL.
    #[must_use]
    pub fn data_type(&self) -> Option<DataType> {
        self.as_ref().data_type()
    }

    /// Returns whether a column of that type stores this value unchanged, as far as a cheap test
    /// shows. NULL qualifies for every type.
    #[inline]
    #[must_use]
    pub fn is_of(&self, data_type: DataType) -> bool {
        match (self, data_type) {
            (Value::Null, _)
            | (Value::Boolean(_), DataType::Boolean)
            | (Value::SmallInt(_), DataType::SmallInt)
            | (Value::Integer(_), DataType::Integer)
            | (Value::BigInt(_), DataType::BigInt)
            | (Value::Real(_), DataType::Real)
            | (Value::Double(_), DataType::Double)
            | (Value::Text(_), DataType::Text | DataType::Varchar(None)) => true,
            (Value::Text(text), DataType::Char(length)) => {
                length == 0 || text.len() == length as usize && text.is_ascii()
            }
            // A text has at most as many characters as bytes.
            (Value::Text(text), DataType::Varchar(Some(length))) => text.len() <= length as usize,
            (
                Value::Boolean(_)
                | Value::SmallInt(_)
                | Value::Integer(_)
                | Value::BigInt(_)
                | Value::Real(_)
                | Value::Double(_)
                | Value::Text(_),
                _,
            ) => false,
            _ => self.data_type() == Some(data_type),
        }
    }

    /// Compares in SQL's sense; returns `None` if either value is NULL.
    #[must_use]
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        self.as_ref().compare(other.as_ref())
    }
}

impl<'a> ValueRef<'a> {
    /// Returns the row, if the value is one.
    #[must_use]
    pub fn row(self) -> Option<RowRef<'a>> {
        match self {
            ValueRef::Encoded(encoded, bytes) if encoded.kind() == EncodedKind::Record => {
                RowRef::read(bytes)
            }
            _ => None,
        }
    }

    /// Whether it is NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The same value, owned.
    #[inline]
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Boolean(v) => Value::Boolean(v),
            ValueRef::SmallInt(v) => Value::SmallInt(v),
            ValueRef::Integer(v) => Value::Integer(v),
            ValueRef::BigInt(v) => Value::BigInt(v),
            ValueRef::Real(v) => Value::Real(v),
            ValueRef::Double(v) => Value::Double(v),
            ValueRef::Numeric(v) => Value::Numeric(v),
            ValueRef::LongNumeric(v) => Value::LongNumeric(v.to_long()),
            ValueRef::Text(v) => Value::Text(SmolStr::new(v)),
            ValueRef::Bytea(v) => Value::Bytea(v.into()),
            ValueRef::Date(v) => Value::Date(v),
            ValueRef::Time(v) => Value::Time(v),
            ValueRef::Timestamp(v) => Value::Timestamp(v),
            ValueRef::TimestampTz(v) => Value::TimestampTz(v),
            ValueRef::Uuid(v) => Value::Uuid(v),
            ValueRef::Interval(v) => Value::Interval(v),
            ValueRef::Json(v) => Value::Json(SmolStr::new(v)),
            ValueRef::Jsonb(v) => Value::Jsonb(SmolStr::new(v)),
            ValueRef::Array(v) => Value::Array(v.to_array()),
            ValueRef::Oid(v) => Value::Oid(v),
            ValueRef::Encoded(encoded, v) => Value::Encoded(encoded, v.into()),
        }
    }

    /// The type, without length or precision; none for NULL.
    #[must_use]
    pub fn data_type(self) -> Option<DataType> {
        Some(match self {
            ValueRef::Null => return None,
            ValueRef::Boolean(_) => DataType::Boolean,
            ValueRef::SmallInt(_) => DataType::SmallInt,
            ValueRef::Integer(_) => DataType::Integer,
            ValueRef::BigInt(_) => DataType::BigInt,
            ValueRef::Real(_) => DataType::Real,
            ValueRef::Double(_) => DataType::Double,
            ValueRef::Numeric(_) | ValueRef::LongNumeric(_) => DataType::Numeric(None),
            ValueRef::Text(_) => DataType::Text,
            ValueRef::Bytea(_) => DataType::Bytea,
            ValueRef::Date(_) => DataType::Date,
            ValueRef::Time(_) => DataType::Time,
            ValueRef::Timestamp(_) => DataType::Timestamp,
            ValueRef::TimestampTz(_) => DataType::TimestampTz,
            ValueRef::Uuid(_) => DataType::Uuid,
            ValueRef::Interval(_) => DataType::Interval,
            ValueRef::Json(_) => DataType::Json,
            ValueRef::Jsonb(_) => DataType::Jsonb,
            ValueRef::Array(v) => DataType::Array(v.element_type()),
            ValueRef::Oid(_) => DataType::OID,
            ValueRef::Encoded(encoded, _) => encoded.kind().data_type(),
        })
    }

    /// Returns the value of an integer of any width.
    #[inline]
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            ValueRef::SmallInt(v) => Some(v.into()),
            ValueRef::Integer(v) => Some(v.into()),
            ValueRef::BigInt(v) => Some(v),
            ValueRef::Oid(v) => Some(v.into()),
            _ => None,
        }
    }

    /// Returns a numeric value in double precision.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        match self {
            ValueRef::Real(v) => Some(v.into()),
            ValueRef::Double(v) => Some(v),
            ValueRef::Numeric(v) => Some(v.to_f64()),
            ValueRef::LongNumeric(v) => Some(v.to_f64()),
            other => other.as_i64().map(|v| v as f64),
        }
    }

    /// Returns the value of an exact numeric type, of any length.
    #[must_use]
    pub(crate) fn as_decimal(self) -> Option<Decimal> {
        match self {
            ValueRef::LongNumeric(v) => Some(v.decimal()),
            other => other.as_numeric().map(Decimal::Short),
        }
    }

    /// Returns the value of an exact numeric type; `None` for one of more than 38 digits.
    #[must_use]
    pub fn as_numeric(self) -> Option<Numeric> {
        match self {
            ValueRef::Numeric(v) => Some(v),
            other => other.as_i64().map(Numeric::from),
        }
    }

    /// Compares in SQL's sense. Returns `None` if either value is NULL or if their types do not
    /// compare (VALUE-2).
    #[inline]
    #[must_use]
    pub fn compare(self, other: ValueRef<'_>) -> Option<Ordering> {
        let order = self.compare_same(other);
        invariant!(
            VALUE_2,
            order.is_some() == (self.rank() == other.rank() && !self.is_null() && !other.is_null()),
            "{self:?} and {other:?}"
        );
        order
    }

    #[inline]
    fn compare_same(self, other: ValueRef<'_>) -> Option<Ordering> {
        use ValueRef as V;
        Some(match (self, other) {
            (V::Integer(a), V::Integer(b)) => a.cmp(&b),
            (V::BigInt(a), V::BigInt(b)) => a.cmp(&b),
            (V::Text(a), V::Text(b)) => a.cmp(b),
            (V::Boolean(a), V::Boolean(b)) => a.cmp(&b),
            (V::Bytea(a), V::Bytea(b)) => a.cmp(b),
            (V::Date(a), V::Date(b)) => a.cmp(&b),
            (V::Time(a), V::Time(b))
            | (V::Timestamp(a), V::Timestamp(b))
            | (V::TimestampTz(a), V::TimestampTz(b)) => a.cmp(&b),
            (V::Uuid(a), V::Uuid(b)) => a.cmp(&b),
            (V::Interval(a), V::Interval(b)) => a.cmp(&b),
            (V::Real(a), V::Real(b)) => compare_floats(a.into(), b.into()),
            (V::Double(a), V::Double(b)) => compare_floats(a, b),
            (V::Array(a), V::Array(b)) => a.compare(b),
            (V::Jsonb(a), V::Jsonb(b)) => compare_jsonb(a, b),
            (V::Json(a), V::Json(b)) => a.cmp(b),
            (V::Encoded(a, left), V::Encoded(b, right)) => {
                if a.kind() == EncodedKind::Record && b.kind() == EncodedKind::Record {
                    return Some(compare_rows(left, right));
                }
                return encoded::compare((a, left), (b, right));
            }
            (a, b) => return compare_numbers(a, b),
        })
    }

    /// Returns the order of sorting and of keys: NULL last, and values of incomparable types by
    /// type (VALUE-1).
    #[must_use]
    pub fn order(self, other: ValueRef<'_>) -> Ordering {
        let order = self.total_order(other);
        invariant!(
            VALUE_1,
            order == other.total_order(self).reverse(),
            "{self:?} and {other:?} are {order:?}"
        );
        order
    }

    #[inline]
    fn total_order(self, other: ValueRef<'_>) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.compare(other).unwrap_or_else(|| self.rank().cmp(&other.rank())),
        }
    }

    fn rank(self) -> u8 {
        match self {
            ValueRef::Null => 10,
            ValueRef::Boolean(_) => 0,
            ValueRef::SmallInt(_)
            | ValueRef::Integer(_)
            | ValueRef::BigInt(_)
            | ValueRef::Real(_)
            | ValueRef::Double(_)
            | ValueRef::Numeric(_)
            | ValueRef::LongNumeric(_)
            | ValueRef::Oid(_) => 1,
            ValueRef::Text(_) => 2,
            ValueRef::Bytea(_) => 3,
            ValueRef::Date(_) => 4,
            ValueRef::Time(_) => 5,
            ValueRef::Timestamp(_) => 6,
            ValueRef::TimestampTz(_) => 7,
            ValueRef::Uuid(_) => 8,
            ValueRef::Interval(_) => 9,
            ValueRef::Array(_) => 11,
            ValueRef::Json(_) => 12,
            ValueRef::Jsonb(_) => 13,
            ValueRef::Encoded(encoded, _) => 14 + encoded.kind().family() as u8,
        }
    }
}

/// Compares rows by their fields; bytes that are none by themselves.
fn compare_rows(a: &[u8], b: &[u8]) -> Ordering {
    match (RowRef::read(a), RowRef::read(b)) {
        (Some(a), Some(b)) => a.compare(b),
        _ => a.cmp(b),
    }
}

fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Compares numbers of different types: exact ones exactly, others in double precision.
fn compare_numbers(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return Some(a.cmp(&b));
    }
    if let (Some(a), Some(b)) = (a.as_numeric(), b.as_numeric()) {
        return Some(a.cmp(&b));
    }
    if let (Some(a), Some(b)) = (a.as_decimal(), b.as_decimal()) {
        return Some(a.cmp(&b));
    }
    Some(compare_floats(a.as_f64()?, b.as_f64()?))
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &ValueRef<'_>) -> bool {
        self.order(*other) == Ordering::Equal
    }
}

impl Eq for ValueRef<'_> {}

impl PartialOrd for ValueRef<'_> {
    fn partial_cmp(&self, other: &ValueRef<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ValueRef<'_> {
    fn cmp(&self, other: &ValueRef<'_>) -> Ordering {
        self.order(*other)
    }
}

impl Hash for ValueRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match *self {
            ValueRef::Null => {}
            ValueRef::Boolean(v) => v.hash(state),
            // Equal numbers of different types have equal hashes: they are hashed in double
            // precision.
            ValueRef::SmallInt(_)
            | ValueRef::Integer(_)
            | ValueRef::BigInt(_)
            | ValueRef::Real(_)
            | ValueRef::Double(_)
            | ValueRef::Numeric(_)
            | ValueRef::LongNumeric(_)
            | ValueRef::Oid(_) => {
                let number = self.as_f64().unwrap_or_default();
                let plain = if number == 0.0 { 0.0 } else { number };
                if plain.is_nan() { f64::NAN } else { plain }.to_bits().hash(state);
            }
            ValueRef::Text(v) => v.hash(state),
            ValueRef::Bytea(v) => v.hash(state),
            ValueRef::Date(v) => v.hash(state),
            ValueRef::Time(v) | ValueRef::Timestamp(v) | ValueRef::TimestampTz(v) => v.hash(state),
            ValueRef::Uuid(v) => v.hash(state),
            ValueRef::Interval(v) => v.hash(state),
            ValueRef::Array(v) => v.hash(state),
            ValueRef::Json(v) => v.hash(state),
            ValueRef::Jsonb(v) => jsonb_key(v).hash(state),
            ValueRef::Encoded(encoded, v) => match RowRef::read(v) {
                Some(row) if encoded.kind() == EncodedKind::Record => row.hash(state),
                _ => encoded::ordering_key(encoded.kind(), v).hash(state),
            },
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        self.as_ref().order(other.as_ref())
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

impl From<Decimal> for Value {
    fn from(number: Decimal) -> Value {
        match number {
            Decimal::Short(short) => Value::Numeric(short),
            long => long.to_long().map_or(Value::Null, Value::LongNumeric),
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> ValueRef<'a> {
        value.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_small() {
        assert_eq!((size_of::<Value>(), size_of::<ValueRef<'_>>()), (32, 32));
    }
}
