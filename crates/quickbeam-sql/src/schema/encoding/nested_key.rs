//! Keys of values that have parts: arrays, rows and JSONB.
//!
//! | part | bytes |
//! |---|---|
//! | array | its elements; 0; the number of dimensions; each length, u32; each lower bound, i32 |
//! | row | its fields; 0 |
//! | element, field | 1, then the form of its type; NULL is 2 |
//! | JSONB | its rank; then its content |
//! | content of a number or string | as NUMERIC; as TEXT |
//! | content of true or false | one byte |
//! | content of an array | the number of elements, u32; the elements |
//! | content of an object | the number of members, u32; each key as TEXT and each value |
//!
//! Numbers are big-endian, with the sign bit turned over if they have one. The ranks of JSONB are:
//! 1 the empty array that is no part of another value, 2 null, 3 string, 4 number, 5 boolean,
//! 6 array, 7 object. A key has these bytes as BYTEA, so they order as the values do (KEY-1).

use super::key_encoding::{KeyPart, encode_bytes};
use crate::error::{Result, SqlError};
use crate::types::json::{Json, JsonKind};
use crate::types::{ArrayRef, DataType, EncodedKind, RowRef, ValueRef};

/// Ends the elements of an array, and the fields of a row.
const END: u8 = 0;
const PRESENT: u8 = 1;
const NULL: u8 = 2;

/// Whether keys of the type have the form that is described here.
pub(super) fn is_nested(data_type: DataType) -> bool {
    matches!(data_type, DataType::Array(_) | DataType::Jsonb) || data_type.record().is_some()
}

/// Appends the key of an array, a row or a JSONB value.
pub(super) fn encode_nested(out: &mut Vec<u8>, value: ValueRef<'_>) -> Result<()> {
    match value {
        ValueRef::Array(array) => encode_array(out, array),
        ValueRef::Jsonb("[]") => {
            out.push(1);
            Ok(())
        }
        ValueRef::Jsonb(text) => encode_json(out, &Json::read(text)?),
        ValueRef::Encoded(encoded, bytes) if encoded.kind() == EncodedKind::Record => {
            let row = RowRef::read(bytes).ok_or_else(|| SqlError::corrupted("a row in a key"))?;
            (0..row.len()).try_for_each(|field| encode_part(out, row.get(field)))?;
            out.push(END);
            Ok(())
        }
        _ => Err(SqlError::internal("a value without order in a key")),
    }
}

fn encode_part(out: &mut Vec<u8>, value: ValueRef<'_>) -> Result<()> {
    out.push(if value.is_null() { NULL } else { PRESENT });
    match value.data_type() {
        None => Ok(()),
        Some(known) if is_nested(known) => encode_nested(out, value),
        Some(known) => KeyPart::of_type(known).encode(out, value),
    }
}

fn encode_array(out: &mut Vec<u8>, array: ArrayRef<'_>) -> Result<()> {
    array.iter().try_for_each(|element| encode_part(out, element))?;
    out.push(END);
    let dimensions = array.dimensions();
    out.push(dimensions.len() as u8);
    for dimension in &dimensions {
        out.extend_from_slice(&dimension.length.to_be_bytes());
    }
    for dimension in &dimensions {
        out.extend_from_slice(&(dimension.lower ^ i32::MIN).to_be_bytes());
    }
    Ok(())
}

fn encode_json(out: &mut Vec<u8>, json: &Json<'_>) -> Result<()> {
    match &json.kind {
        JsonKind::Null => out.push(2),
        JsonKind::String(text) => {
            out.push(3);
            encode_bytes(out, text.as_bytes());
        }
        JsonKind::Number => {
            out.push(4);
            let number = json.number()?;
            let number = number.ok_or_else(|| SqlError::internal("a number of JSON"))?;
            number.write_key(out);
        }
        JsonKind::Boolean(value) => out.extend_from_slice(&[5, u8::from(*value)]),
        JsonKind::Array(list) => {
            out.push(6);
            out.extend_from_slice(&(list.len() as u32).to_be_bytes());
            list.iter().try_for_each(|element| encode_json(out, element))?;
        }
        JsonKind::Object(list) => {
            out.push(7);
            out.extend_from_slice(&(list.len() as u32).to_be_bytes());
            for (key, value) in list {
                encode_bytes(out, key.as_bytes());
                encode_json(out, value)?;
            }
        }
    }
    Ok(())
}

/// Whether these bytes are the key of an equal value.
pub(super) fn is_key_of(bytes: &[u8], value: ValueRef<'_>) -> bool {
    let mut again = Vec::new();
    encode_nested(&mut again, value).is_ok_and(|()| again == bytes)
}
