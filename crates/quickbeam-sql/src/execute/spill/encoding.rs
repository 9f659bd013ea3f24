//! Values as bytes of a temporary file. Each begins with the number of its type.

use crate::error::{Result, SqlError};
use crate::types::{
    ArrayRef, EncodedKind, EncodedType, Interval, LongNumericRef, Numeric, ValueRef,
};
use crate::utf8::text_from_utf8;

#[cold]
pub fn damaged() -> SqlError {
    SqlError::corrupted("a temporary file cannot be read: its content changed")
}

/// Appends a value.
pub fn write_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let fixed = |out: &mut Vec<u8>, kind: u8, bytes: &[u8]| {
        out.push(kind);
        out.extend_from_slice(bytes);
    };
    let sized = |out: &mut Vec<u8>, kind: u8, bytes: &[u8]| {
        out.push(kind);
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => out.push(0),
        ValueRef::Boolean(v) => fixed(out, 1, &[u8::from(v)]),
        ValueRef::SmallInt(v) => fixed(out, 2, &v.to_le_bytes()),
        ValueRef::Integer(v) => fixed(out, 3, &v.to_le_bytes()),
        ValueRef::BigInt(v) => fixed(out, 4, &v.to_le_bytes()),
        ValueRef::Real(v) => fixed(out, 5, &v.to_bits().to_le_bytes()),
        ValueRef::Double(v) => fixed(out, 6, &v.to_bits().to_le_bytes()),
        ValueRef::Numeric(v) => {
            fixed(out, 7, &v.mantissa().to_le_bytes());
            out.push(v.scale());
        }
        ValueRef::Text(v) => sized(out, 8, v.as_bytes()),
        ValueRef::Bytea(v) => sized(out, 9, v),
        ValueRef::Date(v) => fixed(out, 10, &v.to_le_bytes()),
        ValueRef::Time(v) => fixed(out, 11, &v.to_le_bytes()),
        ValueRef::Timestamp(v) => fixed(out, 12, &v.to_le_bytes()),
        ValueRef::TimestampTz(v) => fixed(out, 13, &v.to_le_bytes()),
        ValueRef::Uuid(v) => fixed(out, 14, &v),
        ValueRef::Interval(v) => {
            fixed(out, 15, &v.months.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        ValueRef::Json(v) => sized(out, 16, v.as_bytes()),
        ValueRef::Jsonb(v) => sized(out, 17, v.as_bytes()),
        ValueRef::Array(v) => sized(out, 18, v.bytes()),
        ValueRef::Oid(v) => fixed(out, 19, &v.to_le_bytes()),
        ValueRef::LongNumeric(v) => sized(out, 21, v.bytes()),
        ValueRef::Encoded(encoded, v) => {
            out.push(20);
            sized(out, encoded.kind() as u8, v);
        }
    }
}

/// Takes bytes from the front.
pub fn take<'b, const N: usize>(bytes: &mut &'b [u8]) -> Result<&'b [u8; N]> {
    let (found, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(found)
}

fn take_sized<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8]> {
    let length = usize::try_from(u64::from_le_bytes(*take(bytes)?)).map_err(|_| damaged())?;
    let (found, rest) = bytes.split_at_checked(length).ok_or_else(damaged)?;
    *bytes = rest;
    Ok(found)
}

fn take_text<'b>(bytes: &mut &'b [u8]) -> Result<&'b str> {
    text_from_utf8(take_sized(bytes)?).ok_or_else(damaged)
}

/// Reads the value at the front, and moves past it.
pub fn read_value<'b>(bytes: &mut &'b [u8]) -> Result<ValueRef<'b>> {
    let [kind] = *take(bytes)?;
    Ok(match kind {
        0 => ValueRef::Null,
        1 => ValueRef::Boolean(take::<1>(bytes)? != &[0]),
        2 => ValueRef::SmallInt(i16::from_le_bytes(*take(bytes)?)),
        3 => ValueRef::Integer(i32::from_le_bytes(*take(bytes)?)),
        4 => ValueRef::BigInt(i64::from_le_bytes(*take(bytes)?)),
        5 => ValueRef::Real(f32::from_bits(u32::from_le_bytes(*take(bytes)?))),
        6 => ValueRef::Double(f64::from_bits(u64::from_le_bytes(*take(bytes)?))),
        7 => {
            let mantissa = i128::from_le_bytes(*take(bytes)?);
            let [scale] = *take(bytes)?;
            ValueRef::Numeric(Numeric::restore(mantissa, scale).map_err(|_| damaged())?)
        }
        8 => ValueRef::Text(take_text(bytes)?),
        9 => ValueRef::Bytea(take_sized(bytes)?),
        10 => ValueRef::Date(i32::from_le_bytes(*take(bytes)?)),
        11 => ValueRef::Time(i64::from_le_bytes(*take(bytes)?)),
        12 => ValueRef::Timestamp(i64::from_le_bytes(*take(bytes)?)),
        13 => ValueRef::TimestampTz(i64::from_le_bytes(*take(bytes)?)),
        14 => ValueRef::Uuid(*take(bytes)?),
        15 => ValueRef::Interval(Interval {
            months: i32::from_le_bytes(*take(bytes)?),
            days: i32::from_le_bytes(*take(bytes)?),
            micros: i64::from_le_bytes(*take(bytes)?),
        }),
        16 => ValueRef::Json(take_text(bytes)?),
        17 => ValueRef::Jsonb(take_text(bytes)?),
        18 => ValueRef::Array(ArrayRef::read(take_sized(bytes)?).ok_or_else(damaged)?),
        19 => ValueRef::Oid(u32::from_le_bytes(*take(bytes)?)),
        20 => {
            let [kind] = *take(bytes)?;
            let kind = EncodedKind::ALL.get(usize::from(kind)).ok_or_else(damaged)?;
            ValueRef::Encoded(EncodedType::new(*kind, 0), take_sized(bytes)?)
        }
        21 => {
            let number = LongNumericRef::read(take_sized(bytes)?);
            ValueRef::LongNumeric(number.ok_or_else(damaged)?)
        }
        _ => return Err(damaged()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Array, ElementType, Value};

    #[test]
    fn values_are_read_as_they_were_written() -> Result<()> {
        let interval = Interval { months: -1, days: 2, micros: -3 };
        let array = Array::empty(ElementType::TEXT);
        let values = [
            Value::Null,
            Value::Boolean(true),
            Value::SmallInt(-2),
            Value::Integer(i32::MIN),
            Value::BigInt(i64::MAX),
            Value::Real(-0.5),
            Value::Double(f64::NAN),
            Value::Numeric(Numeric::new(-12_345, 3)?),
            Value::Numeric(Numeric::NEGATIVE_INFINITY),
            Value::text("Größe"),
            Value::bytea([0, 255]),
            Value::Date(-7),
            Value::Time(8),
            Value::Timestamp(-9),
            Value::TimestampTz(10),
            Value::Uuid([11; 16]),
            Value::Oid(u32::MAX),
            Value::Interval(interval),
            Value::json("[1]"),
            Value::Jsonb("{}".into()),
            Value::Array(array),
            Value::encoded(EncodedKind::Macaddr, &[1, 2, 3, 4, 5, 6]),
        ];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| write_value(value.as_ref(), &mut bytes));
        let mut rest = &bytes[..];
        for value in &values {
            let read = read_value(&mut rest)?.to_value();
            assert_eq!(format!("{read:?}"), format!("{value:?}"));
        }
        assert!(rest.is_empty() && read_value(&mut rest).is_err());
        // Of no prefix more is read than it has.
        for end in 0..bytes.len() {
            let mut rest = &bytes[..end];
            let read = values.iter().take_while(|_| read_value(&mut rest).is_ok()).count();
            assert!(read < values.len(), "{end}");
        }
        Ok(())
    }
}
