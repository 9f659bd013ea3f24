//! Bitwise operators of integers, and hexadecimal output.

use crate::error::Result;
use crate::expression::builtin::{Builtin, integer, mismatch, strict};
use crate::types::{DataType, Value, ValueRef};
use DataType::{BigInt, Integer, SmallInt, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("&", &[SmallInt, SmallInt], SmallInt, |v| pair(v, |a, b| a & b)),
    strict("&", &[Integer, Integer], Integer, |v| pair(v, |a, b| a & b)),
    strict("&", &[BigInt, BigInt], BigInt, |v| pair(v, |a, b| a & b)),
    strict("|", &[SmallInt, SmallInt], SmallInt, |v| pair(v, |a, b| a | b)),
    strict("|", &[Integer, Integer], Integer, |v| pair(v, |a, b| a | b)),
    strict("|", &[BigInt, BigInt], BigInt, |v| pair(v, |a, b| a | b)),
    strict("#", &[SmallInt, SmallInt], SmallInt, |v| pair(v, |a, b| a ^ b)),
    strict("#", &[Integer, Integer], Integer, |v| pair(v, |a, b| a ^ b)),
    strict("#", &[BigInt, BigInt], BigInt, |v| pair(v, |a, b| a ^ b)),
    strict("~", &[SmallInt], SmallInt, complement),
    strict("~", &[Integer], Integer, complement),
    strict("~", &[BigInt], BigInt, complement),
    strict("<<", &[SmallInt, Integer], SmallInt, shift_left),
    strict("<<", &[Integer, Integer], Integer, shift_left),
    strict("<<", &[BigInt, Integer], BigInt, shift_left),
    strict(">>", &[SmallInt, Integer], SmallInt, shift_right),
    strict(">>", &[Integer, Integer], Integer, shift_right),
    strict(">>", &[BigInt, Integer], BigInt, shift_right),
    strict("to_hex", &[Integer], Text, hexadecimal),
    strict("to_hex", &[BigInt], Text, hexadecimal),
];

/// Returns the low bits of the number in the type of the first argument.
fn wrap(arguments: &[ValueRef<'_>], number: i64) -> Result<Value> {
    Ok(match arguments.first() {
        Some(ValueRef::SmallInt(_)) => Value::SmallInt(number as i16),
        Some(ValueRef::Integer(_)) => Value::Integer(number as i32),
        Some(ValueRef::BigInt(_)) => Value::BigInt(number),
        _ => return Err(mismatch()),
    })
}

fn pair(arguments: &[ValueRef<'_>], operator: fn(i64, i64) -> i64) -> Result<Value> {
    wrap(arguments, operator(integer(arguments, 0)?, integer(arguments, 1)?))
}

fn complement(arguments: &[ValueRef<'_>]) -> Result<Value> {
    wrap(arguments, !integer(arguments, 0)?)
}

/// Returns the number of bits to shift by. As in PostgreSQL on common processors, a SMALLINT shifts
/// as an INTEGER, and only the low bits of the count matter.
fn distance(arguments: &[ValueRef<'_>]) -> Result<u32> {
    let width = if matches!(arguments.first(), Some(ValueRef::BigInt(_))) { 64 } else { 32 };
    Ok((integer(arguments, 1)? as u32) % width)
}

fn shift_left(arguments: &[ValueRef<'_>]) -> Result<Value> {
    wrap(arguments, integer(arguments, 0)? << distance(arguments)?)
}

fn shift_right(arguments: &[ValueRef<'_>]) -> Result<Value> {
    wrap(arguments, integer(arguments, 0)? >> distance(arguments)?)
}

fn hexadecimal(arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(Value::text(match arguments.first() {
        Some(ValueRef::Integer(number)) => format!("{number:x}"),
        Some(ValueRef::BigInt(number)) => format!("{number:x}"),
        _ => return Err(mismatch()),
    }))
}
