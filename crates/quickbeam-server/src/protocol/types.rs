//! Values as the protocol's text and binary formats, and the numbers of types.

use bytes::{BufMut, BytesMut};
use quickbeam_sql::types::{
    ArrayBuilder, Dimension, MAX_DIMENSIONS, TextSettings, format_value, parse_value,
};
use quickbeam_sql::{
    ArrayRef, BinaryCodec, DataType, ElementType, EncodedKind, Interval, SqlError, SqlState,
    SystemType, Value, ValueRef,
};

use super::encoded::{put_encoded, read_encoded};
use super::failure::Failure;

/// The format of a value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireFormat {
    /// That of the type.
    Binary,
    /// Its text.
    Text,
}

impl From<bool> for WireFormat {
    fn from(is_binary: bool) -> WireFormat {
        if is_binary { WireFormat::Binary } else { WireFormat::Text }
    }
}

/// Days from 1970-01-01 to 2000-01-01, which binary dates count from.
const EPOCH_DAYS: i32 = 10_957;

/// Microseconds from 1970-01-01 to 2000-01-01.
const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// The first byte of a binary JSONB value.
const JSONB_VERSION: u8 = 1;

/// The decimal digits of a group of a binary NUMERIC.
const GROUP: usize = 4;

/// What a row description says of a type.
pub struct WireType {
    /// PostgreSQL's number of the type.
    pub oid: u32,
    /// Bytes of a value; -1 if they vary.
    pub size: i16,
    /// Length, or precision and scale; -1 for none.
    pub modifier: i32,
}

/// Returns PostgreSQL's description of a type.
pub fn wire_type(data_type: DataType) -> WireType {
    let (oid, size, modifier) = match data_type {
        DataType::Boolean => (16, 1, -1),
        DataType::Bytea => (17, -1, -1),
        DataType::BigInt => (20, 8, -1),
        DataType::SmallInt => (21, 2, -1),
        DataType::Integer => (23, 4, -1),
        DataType::Text => (25, -1, -1),
        DataType::Real => (700, 4, -1),
        DataType::Double => (701, 8, -1),
        DataType::BPCHAR => (1042, -1, -1),
        DataType::Char(length) => (1042, -1, length as i32 + 4),
        DataType::Varchar(length) => (1043, -1, length.map_or(-1, |length| length as i32 + 4)),
        DataType::Date => (1082, 4, -1),
        DataType::Time => (1083, 8, -1),
        DataType::Timestamp => (1114, 8, -1),
        DataType::TimestampTz => (1184, 8, -1),
        DataType::Interval => (1186, 16, -1),
        DataType::Numeric(None) => (1700, -1, -1),
        DataType::Numeric(Some((precision, scale))) => {
            (1700, -1, (i32::from(precision) << 16 | i32::from(scale)) + 4)
        }
        DataType::WideNumeric(limits) => (1700, -1, limits.modifier()),
        DataType::Uuid => (2950, 16, -1),
        DataType::Json => (114, -1, -1),
        DataType::Jsonb => (3802, -1, -1),
        DataType::Array(element) => (array_oid(element), -1, -1),
        DataType::System(known) => {
            let size = match known {
                SystemType::Name => 64,
                SystemType::SingleChar => 1,
                known if known.is_number() => 4,
                _ => -1,
            };
            (known.oids().0, size, -1)
        }
        DataType::Encoded(encoded) => {
            let kind = encoded.kind();
            let modifier = if encoded.length() == 0 { -1 } else { encoded.length() as i32 };
            let is_time = kind == EncodedKind::TimeTz;
            let modifier = if is_time { encoded.length() as i32 - 1 } else { modifier };
            let modifier = if kind.has_definition() { -1 } else { modifier };
            (encoded.oids().0, kind.wire_size(), modifier)
        }
        DataType::Precise(precise) => {
            let plain = wire_type(precise.plain());
            (plain.oid, plain.size, precise.modifier())
        }
    };
    WireType { oid, size, modifier }
}

/// Returns the type that a client declares for a parameter by its number; `None` for none, and for
/// types of PostgreSQL that are not there: then the statement decides.
pub fn declared_type(oid: u32) -> Option<DataType> {
    Some(match oid {
        16 => DataType::Boolean,
        17 => DataType::Bytea,
        20 => DataType::BigInt,
        21 => DataType::SmallInt,
        23 => DataType::Integer,
        25 => DataType::Text,
        114 => DataType::Json,
        700 => DataType::Real,
        701 => DataType::Double,
        1043 => DataType::Varchar(None),
        1082 => DataType::Date,
        1083 => DataType::Time,
        1114 => DataType::Timestamp,
        1184 => DataType::TimestampTz,
        1186 => DataType::Interval,
        1700 => DataType::Numeric(None),
        2950 => DataType::Uuid,
        3802 => DataType::Jsonb,
        oid => {
            if let Some(kind) = built_in_kinds().find(|kind| kind.oids().0 == oid) {
                return Some(kind.data_type());
            }
            let system = SystemType::ALL.into_iter().find(|known| known.oids().0 == oid);
            return match system {
                // The statement looks names of objects up, so it takes texts.
                Some(known) if known.is_reference() => Some(DataType::Text),
                Some(known) => Some(DataType::System(known)),
                None => declared_array(oid),
            };
        }
    })
}

/// Returns the kinds of types whose numbers do not depend on a catalog.
fn built_in_kinds() -> impl Iterator<Item = EncodedKind> {
    EncodedKind::ALL.into_iter().filter(|kind| !kind.has_definition())
}

fn declared_array(oid: u32) -> Option<DataType> {
    let element = match oid {
        1000 => DataType::Boolean,
        1001 => DataType::Bytea,
        1005 => DataType::SmallInt,
        1007 => DataType::Integer,
        1009 => DataType::Text,
        1015 => DataType::Varchar(None),
        1016 => DataType::BigInt,
        1021 => DataType::Real,
        1022 => DataType::Double,
        1115 => DataType::Timestamp,
        1182 => DataType::Date,
        1183 => DataType::Time,
        1185 => DataType::TimestampTz,
        1187 => DataType::Interval,
        1231 => DataType::Numeric(None),
        2951 => DataType::Uuid,
        199 => DataType::Json,
        3807 => DataType::Jsonb,
        oid => match built_in_kinds().find(|kind| kind.oids().1 == oid) {
            Some(kind) => kind.data_type(),
            None => {
                let system = SystemType::ALL.into_iter().find(|known| known.oids().1 == oid);
                DataType::System(system?)
            }
        },
    };
    ElementType::new(element).map(DataType::Array)
}

/// Returns PostgreSQL's number of an array type.
fn array_oid(element: ElementType) -> u32 {
    match element.data_type() {
        DataType::Boolean => 1000,
        DataType::Bytea => 1001,
        DataType::SmallInt => 1005,
        DataType::Integer => 1007,
        DataType::Text | DataType::Array(_) => 1009,
        DataType::Char(_) => 1014,
        DataType::Varchar(_) => 1015,
        DataType::BigInt => 1016,
        DataType::Real => 1021,
        DataType::Double => 1022,
        DataType::Timestamp => 1115,
        DataType::Date => 1182,
        DataType::Time => 1183,
        DataType::TimestampTz => 1185,
        DataType::Interval => 1187,
        DataType::Numeric(_) | DataType::WideNumeric(_) => 1231,
        DataType::Uuid => 2951,
        DataType::Json => 199,
        DataType::Jsonb => 3807,
        DataType::System(known) => known.oids().1,
        DataType::Encoded(encoded) => encoded.oids().1,
        DataType::Precise(precise) => ElementType::new(precise.plain()).map_or(0, array_oid),
    }
}

/// Appends a value with its length; NULL has the length -1. The settings are those of texts.
pub fn put_value(
    out: &mut BytesMut,
    value: ValueRef<'_>,
    format: WireFormat,
    settings: &TextSettings,
) {
    let is_binary = format == WireFormat::Binary;
    if value.is_null() {
        out.put_i32(-1);
        return;
    }
    let at = out.len();
    out.put_i32(0);
    if is_binary {
        put_binary(out, value);
    } else {
        put_text(out, value, settings);
    }
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn put_text(out: &mut BytesMut, value: ValueRef<'_>, settings: &TextSettings) {
    match value {
        ValueRef::Text(text) => out.put_slice(text.as_bytes()),
        other => {
            let mut text = String::new();
            format_value(&mut text, other, settings);
            out.put_slice(text.as_bytes());
        }
    }
}

pub(super) fn put_binary(out: &mut BytesMut, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => {}
        ValueRef::Boolean(value) => out.put_u8(value.into()),
        ValueRef::SmallInt(value) => out.put_i16(value),
        ValueRef::Integer(value) => out.put_i32(value),
        ValueRef::BigInt(value) => out.put_i64(value),
        ValueRef::Real(value) => out.put_f32(value),
        ValueRef::Double(value) => out.put_f64(value),
        ValueRef::Text(text) => out.put_slice(text.as_bytes()),
        ValueRef::Bytea(bytes) => out.put_slice(bytes),
        // The greatest and the least number are the infinities here and there.
        ValueRef::Date(days @ (i32::MAX | i32::MIN)) => out.put_i32(days),
        ValueRef::Date(days) => out.put_i32(days.saturating_sub(EPOCH_DAYS)),
        ValueRef::Time(microseconds) => out.put_i64(microseconds),
        ValueRef::Timestamp(moment) | ValueRef::TimestampTz(moment) => match moment {
            i64::MAX | i64::MIN => out.put_i64(moment),
            _ => out.put_i64(moment.saturating_sub(EPOCH_MICROSECONDS)),
        },
        ValueRef::Interval(interval) => {
            out.put_i64(interval.micros);
            out.put_i32(interval.days);
            out.put_i32(interval.months);
        }
        ValueRef::Uuid(bytes) => out.put_slice(&bytes),
        ValueRef::Array(array) => put_array(out, array),
        ValueRef::Oid(value) => out.put_u32(value),
        ValueRef::Encoded(encoded, bytes) => put_encoded(out, encoded.kind(), bytes),
        ValueRef::Json(text) => out.put_slice(text.as_bytes()),
        ValueRef::Jsonb(text) => {
            out.put_u8(JSONB_VERSION);
            out.put_slice(text.as_bytes());
        }
        ValueRef::Numeric(_) | ValueRef::LongNumeric(_) => {
            let mut text = String::new();
            format_value(&mut text, value, &TextSettings::DEFAULT);
            put_numeric(out, &text);
        }
    }
}

/// Appends an array: its dimensions, and its elements with their lengths.
fn put_array(out: &mut BytesMut, array: ArrayRef<'_>) {
    let dimensions = array.dimensions();
    out.put_i32(dimensions.len() as i32);
    out.put_i32(array.iter().any(|element| element.is_null()).into());
    out.put_u32(wire_type(array.element_type().data_type()).oid);
    for one in dimensions {
        out.put_u32(one.length);
        out.put_i32(one.lower);
    }
    array
        .iter()
        .for_each(|element| put_value(out, element, WireFormat::Binary, &TextSettings::DEFAULT));
}

/// How COPY writes and reads values in the binary format.
pub const BINARY_CODEC: BinaryCodec = BinaryCodec {
    put: |out, value| {
        let mut bytes = BytesMut::new();
        put_binary(&mut bytes, value);
        out.extend_from_slice(&bytes);
    },
    read: |bytes, data_type| match binary_parameter(bytes, data_type) {
        Ok(value) => Ok(value),
        Err(Failure::Sql(error)) => Err(error),
        Err(Failure::Protocol(_, message)) => {
            Err(SqlError::new(SqlState::InvalidBinaryRepresentation, message))
        }
    },
};

/// Appends a decimal number as groups of four digits, with the weight of the first group.
fn put_numeric(out: &mut BytesMut, text: &str) {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (0x4000, digits),
        None => (0, text),
    };
    let special: Option<u8> = match (digits, sign) {
        ("NaN", _) => Some(0xC0),
        ("Infinity", 0) => Some(0xD0),
        ("Infinity", _) => Some(0xF0),
        _ => None,
    };
    if let Some(sign) = special {
        return out.put_slice(&[0, 0, 0, 0, sign, 0, 0, 0]);
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let padding = (GROUP - whole.len() % GROUP) % GROUP;
    let mut decimals = "0".repeat(padding) + whole + fraction;
    decimals.push_str(&"0".repeat((GROUP - decimals.len() % GROUP) % GROUP));
    let groups = decimals.as_bytes().chunks(GROUP);
    let value = |group: &[u8]| group.iter().fold(0u16, |n, d| n * 10 + u16::from(d - b'0'));
    let groups: Vec<u16> = groups.map(value).collect();
    let mut weight = ((whole.len() + padding) / GROUP) as i32 - 1;
    let leading = groups.iter().take_while(|group| **group == 0).count();
    let used = groups.len() - groups.iter().rev().take_while(|group| **group == 0).count();
    let kept = groups.get(leading..used).unwrap_or_default();
    weight = if kept.is_empty() { 0 } else { weight - leading as i32 };
    out.put_u16(kept.len() as u16);
    out.put_i16(weight as i16);
    out.put_u16(if kept.is_empty() { 0 } else { sign });
    out.put_u16(fraction.len() as u16);
    kept.iter().for_each(|group| out.put_u16(*group));
}

fn invalid_binary(data_type: DataType) -> Failure {
    Failure::new("22P03", format!("incorrect binary data format for type {data_type}"))
}

/// Reads a parameter of that type.
pub fn parameter(
    bytes: Option<&[u8]>,
    data_type: DataType,
    format: WireFormat,
    settings: &TextSettings,
) -> Result<Value, Failure> {
    let is_binary = format == WireFormat::Binary;
    let Some(bytes) = bytes else { return Ok(Value::Null) };
    if is_binary {
        return binary_parameter(bytes, data_type);
    }
    let text = utf8(bytes)?;
    Ok(parse_value(text, data_type, settings)?)
}

fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    let message = "invalid byte sequence for encoding \"UTF8\"";
    std::str::from_utf8(bytes).map_err(|_| Failure::new("22021", message))
}

pub(super) fn binary_parameter(bytes: &[u8], data_type: DataType) -> Result<Value, Failure> {
    let invalid = || invalid_binary(data_type);
    fn fixed<const N: usize>(bytes: &[u8], data_type: DataType) -> Result<[u8; N], Failure> {
        bytes.try_into().map_err(|_| invalid_binary(data_type))
    }
    let integer = || match bytes.len() {
        2 => fixed(bytes, data_type).map(|bytes| i64::from(i16::from_be_bytes(bytes))),
        4 => fixed(bytes, data_type).map(|bytes| i64::from(i32::from_be_bytes(bytes))),
        _ => fixed(bytes, data_type).map(i64::from_be_bytes),
    };
    let moment = || match i64::from_be_bytes(fixed(bytes, data_type)?) {
        infinity @ (i64::MAX | i64::MIN) => Ok(infinity),
        moment => moment.checked_add(EPOCH_MICROSECONDS).ok_or_else(invalid),
    };
    Ok(match data_type {
        DataType::Boolean => Value::Boolean(fixed::<1>(bytes, data_type)? != [0]),
        DataType::SmallInt => Value::SmallInt(integer()?.try_into().map_err(|_| invalid())?),
        DataType::Integer => Value::Integer(integer()?.try_into().map_err(|_| invalid())?),
        DataType::BigInt => Value::BigInt(integer()?),
        DataType::Real => Value::Real(f32::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Double if bytes.len() == 4 => {
            Value::Double(f32::from_be_bytes(fixed(bytes, data_type)?).into())
        }
        DataType::Double => Value::Double(f64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
            parse_value(utf8(bytes)?, data_type, &TextSettings::DEFAULT)?
        }
        DataType::Bytea => Value::bytea(bytes),
        DataType::Date => Value::Date(match i32::from_be_bytes(fixed(bytes, data_type)?) {
            infinity @ (i32::MAX | i32::MIN) => infinity,
            days => days.checked_add(EPOCH_DAYS).ok_or_else(invalid)?,
        }),
        DataType::Precise(precise) => return binary_parameter(bytes, precise.plain()),
        DataType::Time => Value::Time(i64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Timestamp => Value::Timestamp(moment()?),
        DataType::TimestampTz => Value::TimestampTz(moment()?),
        DataType::Interval => {
            let [a, b, c, d, e, f, g, h, days @ .., m0, m1, m2, m3] =
                fixed::<16>(bytes, data_type)?;
            Value::Interval(Interval {
                micros: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
                days: i32::from_be_bytes(days),
                months: i32::from_be_bytes([m0, m1, m2, m3]),
            })
        }
        DataType::Uuid => Value::Uuid(fixed(bytes, data_type)?),
        DataType::System(known) if known.is_number() => {
            Value::Oid(u32::from_be_bytes(fixed(bytes, data_type)?))
        }
        DataType::System(known) if known.is_text() => {
            parse_value(utf8(bytes)?, data_type, &TextSettings::DEFAULT)?
        }
        DataType::System(known) => match known.vector_array() {
            Some(DataType::Array(element)) => binary_array(bytes, element)?,
            _ => return Err(invalid()),
        },
        DataType::Array(element) => binary_array(bytes, element)?,
        DataType::Encoded(encoded) if encoded.kind() == EncodedKind::Enum => {
            parse_value(utf8(bytes)?, data_type, &TextSettings::DEFAULT)?
        }
        DataType::Encoded(encoded) => read_encoded(bytes, encoded.kind())?.ok_or_else(invalid)?,
        DataType::Json => parse_value(utf8(bytes)?, data_type, &TextSettings::DEFAULT)?,
        DataType::Jsonb => match bytes {
            [JSONB_VERSION, text @ ..] => {
                parse_value(utf8(text)?, data_type, &TextSettings::DEFAULT)?
            }
            _ => return Err(invalid()),
        },
        DataType::Numeric(_) | DataType::WideNumeric(_) => {
            let text = numeric_text(bytes).ok_or_else(invalid)?;
            parse_value(&text, data_type, &TextSettings::DEFAULT)?
        }
    })
}

/// Reads a binary array of elements of that type.
fn binary_array(bytes: &[u8], element: ElementType) -> Result<Value, Failure> {
    let data_type = DataType::Array(element);
    let mut rest = bytes;
    let mut number = || {
        let (first, after) = rest.split_first_chunk().ok_or_else(|| invalid_binary(data_type))?;
        rest = after;
        Ok::<i32, Failure>(i32::from_be_bytes(*first))
    };
    let (count, _, oid) = (number()?, number()?, number()?);
    if oid as u32 != wire_type(element.data_type()).oid {
        return Err(Failure::new("42804", "wrong element type"));
    }
    let mut dimensions = Vec::new();
    for _ in 0..count {
        let (length, lower) = (number()?, number()?);
        if dimensions.len() == MAX_DIMENSIONS {
            return Err(invalid_binary(data_type));
        }
        let length = u32::try_from(length).map_err(|_| invalid_binary(data_type))?;
        dimensions.push(Dimension { length, lower });
    }
    let mut builder = ArrayBuilder::new(element);
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk().ok_or_else(|| invalid_binary(data_type))?;
        let length = i32::from_be_bytes(*length);
        let value = match usize::try_from(length) {
            Ok(length) => {
                let (value, after) =
                    after.split_at_checked(length).ok_or_else(|| invalid_binary(data_type))?;
                rest = after;
                Some(value)
            }
            Err(_) => {
                rest = after;
                None
            }
        };
        let value = match value {
            Some(value) => binary_parameter(value, element.data_type())?,
            None => Value::Null,
        };
        builder.push(value.as_ref())?;
    }
    let expected = dimensions.iter().map(|one| u64::from(one.length)).product::<u64>();
    if !dimensions.is_empty() && expected != builder.len() as u64
        || dimensions.is_empty() && !builder.is_empty()
    {
        return Err(invalid_binary(data_type));
    }
    Ok(Value::Array(builder.finish(&dimensions)?))
}

/// The decimal text of a binary NUMERIC; `None` if the bytes are none.
fn numeric_text(bytes: &[u8]) -> Option<String> {
    let words: Vec<u16> =
        bytes.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]])).collect();
    let [count, weight, sign, scale, groups @ ..] = &words[..] else { return None };
    if groups.len() != usize::from(*count) || !bytes.len().is_multiple_of(2) || *scale > 16_383 {
        return None;
    }
    match sign {
        0xC000 => return Some("NaN".into()),
        0xD000 => return Some("Infinity".into()),
        0xF000 => return Some("-Infinity".into()),
        0 | 0x4000 => {}
        _ => return None,
    }
    let weight = i32::from(*weight as i16);
    let group = |number: i32| {
        let at = usize::try_from(weight - number).ok()?;
        groups.get(at).copied()
    };
    if groups.iter().any(|group| *group > 9_999) {
        return None;
    }
    let mut text = if *sign == 0x4000 { "-".to_owned() } else { String::new() };
    text.push('0');
    for number in (0..=weight.max(0)).rev() {
        text.push_str(&format!("{:04}", group(number).unwrap_or(0)));
    }
    if *scale > 0 {
        let groups = (1..=i32::from(*scale).div_euclid(GROUP as i32) + 1)
            .map(|number| format!("{:04}", group(-number).unwrap_or(0)));
        let digits: String = groups.collect();
        text.push('.');
        text.push_str(&digits[..usize::from(*scale)]);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_survives_the_binary_format() {
        let long = ["9".repeat(60), format!("-{}.{}", "7".repeat(131_072), "0".repeat(16_383))];
        let texts = ["0", "1", "-1", "10000", "12345.678", "0.00012", "-99999999.9999", "1.10"];
        let texts = texts.into_iter().chain(long.iter().map(String::as_str));
        for text in texts {
            let mut out = BytesMut::new();
            put_numeric(&mut out, text);
            let read = numeric_text(&out).unwrap();
            let value = |text: &str| {
                parse_value(text, DataType::Numeric(None), &TextSettings::DEFAULT).unwrap()
            };
            assert_eq!(value(&read), value(text), "{text} came back as {read}");
        }
    }

    #[test]
    fn types_of_the_catalogs_survive_the_binary_format() {
        let vector = DataType::System(SystemType::Int2Vector);
        for (text, data_type, length) in [
            ("4294967295", DataType::OID, 4),
            ("a name", DataType::System(SystemType::Name), 6),
            ("1 2 3", vector, 12 + 8 + 3 * 6),
        ] {
            let value = parse_value(text, data_type, &TextSettings::DEFAULT).unwrap();
            let mut out = BytesMut::new();
            put_binary(&mut out, value.as_ref());
            assert_eq!(out.len(), length, "{text}");
            assert_eq!(binary_parameter(&out, data_type).unwrap(), value);
        }
        assert_eq!(declared_type(1028), ElementType::new(DataType::OID).map(DataType::Array));
        // 0 is no type, and 3500 that of all enumerated types.
        assert_eq!((declared_type(0), declared_type(3500)), (None, None));
    }

    #[test]
    fn malformed_binary_values_are_errors() {
        for data_type in
            [DataType::Integer, DataType::Uuid, DataType::Numeric(None), DataType::Date]
        {
            for bytes in [&[][..], &[1], &[0, 1, 0, 0, 0x80, 0, 0, 0], &[9; 13]] {
                assert!(binary_parameter(bytes, data_type).is_err() || bytes.len() == 8);
            }
        }
    }
}
