//! Functions of BYTEA values, and digests.

use super::text::TextEnd;
use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::text::{negative_length, part};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{
    Builtin, bytes, check_size, count, integer, out_of_range, strict, text,
};
use crate::types::{DataType, Value, ValueRef};
use DataType::{BigInt, Bytea, Integer, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("length", &[Bytea], Integer, |v| count(bytes(v, 0)?.len())),
    strict("octet_length", &[Bytea], Integer, |v| count(bytes(v, 0)?.len())),
    strict("bit_length", &[Bytea], Integer, |v| count(bytes(v, 0)?.len() * 8)),
    strict("position", &[Bytea, Bytea], Integer, position),
    strict("substr", &[Bytea, Integer], Bytea, substring),
    strict("substr", &[Bytea, Integer, Integer], Bytea, substring),
    strict("substring", &[Bytea, Integer], Bytea, substring),
    strict("substring", &[Bytea, Integer, Integer], Bytea, substring),
    strict("overlay", &[Bytea, Bytea, Integer], Bytea, overlay),
    strict("overlay", &[Bytea, Bytea, Integer, Integer], Bytea, overlay),
    strict("btrim", &[Bytea, Bytea], Bytea, |v| trim(v, &[TextEnd::Start, TextEnd::End])),
    strict("ltrim", &[Bytea, Bytea], Bytea, |v| trim(v, &[TextEnd::Start])),
    strict("rtrim", &[Bytea, Bytea], Bytea, |v| trim(v, &[TextEnd::End])),
    strict("get_byte", &[Bytea, Integer], Integer, get_byte),
    strict("set_byte", &[Bytea, Integer, Integer], Bytea, set_byte),
    strict("bit_count", &[Bytea], BigInt, |v| {
        let ones = bytes(v, 0)?.iter().map(|byte| i64::from(byte.count_ones())).sum();
        Ok(Value::BigInt(ones))
    }),
    strict("||", &[Bytea, Bytea], Bytea, concatenate),
    strict("md5", &[Text], Text, |v| Ok(hexadecimal(&Md5::digest(text(v, 0)?)))),
    strict("md5", &[Bytea], Text, |v| Ok(hexadecimal(&Md5::digest(bytes(v, 0)?)))),
    strict("sha224", &[Bytea], Bytea, |v| Ok(Value::bytea(Sha224::digest(bytes(v, 0)?)))),
    strict("sha256", &[Bytea], Bytea, |v| Ok(Value::bytea(Sha256::digest(bytes(v, 0)?)))),
    strict("sha384", &[Bytea], Bytea, |v| Ok(Value::bytea(Sha384::digest(bytes(v, 0)?)))),
    strict("sha512", &[Bytea], Bytea, |v| Ok(Value::bytea(Sha512::digest(bytes(v, 0)?)))),
];

fn hexadecimal(bytes: &[u8]) -> Value {
    Value::text(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn position(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (whole, wanted) = (bytes(arguments, 0)?, bytes(arguments, 1)?);
    if wanted.is_empty() {
        return count(1);
    }
    let found = whole.windows(wanted.len()).position(|part| part == wanted);
    count(found.map_or(0, |at| at + 1))
}

fn cut(bytes: &[u8], start: i64, count: Option<i64>) -> Result<&[u8]> {
    let (skipped, taken) = part(start, count)?;
    let rest = bytes.get(skipped..).unwrap_or_default();
    Ok(rest.get(..taken).unwrap_or(rest))
}

fn substring(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let count = arguments.get(2).map(|_| integer(arguments, 2)).transpose()?;
    Ok(Value::bytea(cut(bytes(arguments, 0)?, integer(arguments, 1)?, count)?))
}

fn overlay(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (whole, placed) = (bytes(arguments, 0)?, bytes(arguments, 1)?);
    let start = integer(arguments, 2)?;
    let count = match arguments.get(3) {
        Some(_) => integer(arguments, 3)?,
        None => placed.len() as i64,
    };
    if start <= 0 {
        return Err(negative_length());
    }
    let before = cut(whole, 1, Some(start - 1))?;
    let after = cut(whole, start.saturating_add(count), None)?;
    check_size(before.len() + placed.len() + after.len())?;
    Ok(Value::bytea([before, placed, after].concat()))
}

fn trim(arguments: &[ValueRef<'_>], ends: &[TextEnd]) -> Result<Value> {
    let at_start = ends.contains(&TextEnd::Start);
    let at_end = ends.contains(&TextEnd::End);
    let (mut rest, set) = (bytes(arguments, 0)?, bytes(arguments, 1)?);
    while at_start && rest.first().is_some_and(|byte| set.contains(byte)) {
        rest = &rest[1..];
    }
    while at_end && rest.last().is_some_and(|byte| set.contains(byte)) {
        rest = &rest[..rest.len() - 1];
    }
    Ok(Value::bytea(rest))
}

/// Returns the index of a byte, or an error if the value is shorter.
pub(super) fn index(bytes: &[u8], at: i64) -> Result<usize> {
    let index = usize::try_from(at).ok().filter(|index| *index < bytes.len());
    index.ok_or_else(|| {
        let last = bytes.len() as i64 - 1;
        let message = format!("index {at} out of valid range, 0..{last}");
        SqlError::new(SqlState::ArraySubscriptError, message)
    })
}

fn get_byte(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let bytes = bytes(arguments, 0)?;
    let at = index(bytes, integer(arguments, 1)?)?;
    Ok(Value::Integer(i32::from(bytes[at])))
}

fn set_byte(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut changed = bytes(arguments, 0)?.to_vec();
    let at = index(&changed, integer(arguments, 1)?)?;
    changed[at] = integer(arguments, 2)? as u8;
    Ok(Value::bytea(changed))
}

fn concatenate(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (left, right) = (bytes(arguments, 0)?, bytes(arguments, 1)?);
    let size = left.len().checked_add(right.len()).ok_or_else(|| out_of_range("length"))?;
    check_size(size)?;
    Ok(Value::bytea([left, right].concat()))
}
