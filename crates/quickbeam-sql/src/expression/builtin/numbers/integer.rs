//! Functions of integers.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, NUMERIC, integer, mismatch, out_of_range, strict};
use crate::types::{DataType, Decimal, Value, ValueRef};
use DataType::{BigInt, Integer, SmallInt};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("abs", &[SmallInt], SmallInt, absolute),
    strict("abs", &[Integer], Integer, absolute),
    strict("abs", &[BigInt], BigInt, absolute),
    strict("@", &[SmallInt], SmallInt, absolute),
    strict("@", &[Integer], Integer, absolute),
    strict("@", &[BigInt], BigInt, absolute),
    strict("mod", &[SmallInt, SmallInt], SmallInt, remainder),
    strict("mod", &[Integer, Integer], Integer, remainder),
    strict("mod", &[BigInt, BigInt], BigInt, remainder),
    strict("gcd", &[Integer, Integer], Integer, gcd),
    strict("gcd", &[BigInt, BigInt], BigInt, gcd),
    strict("lcm", &[Integer, Integer], Integer, lcm),
    strict("lcm", &[BigInt, BigInt], BigInt, lcm),
    strict("factorial", &[BigInt], NUMERIC, factorial),
];

/// Returns the number in the type of the first argument, or an error if it does not fit.
pub(in crate::expression::builtin) fn like(first: ValueRef<'_>, number: i128) -> Result<Value> {
    let fitted = match first {
        ValueRef::SmallInt(_) => i16::try_from(number).map(Value::SmallInt),
        ValueRef::Integer(_) => i32::try_from(number).map(Value::Integer),
        ValueRef::BigInt(_) => i64::try_from(number).map(Value::BigInt),
        _ => return Err(mismatch()),
    };
    fitted.map_err(|_| match first {
        ValueRef::SmallInt(_) => out_of_range("smallint"),
        ValueRef::Integer(_) => out_of_range("integer"),
        _ => out_of_range("bigint"),
    })
}

fn pair(arguments: &[ValueRef<'_>]) -> Result<(ValueRef<'static>, i128, i128)> {
    let (a, b) = (integer(arguments, 0)?, integer(arguments, 1)?);
    let first = match arguments.first() {
        Some(ValueRef::SmallInt(_)) => ValueRef::SmallInt(0),
        Some(ValueRef::Integer(_)) => ValueRef::Integer(0),
        _ => ValueRef::BigInt(0),
    };
    Ok((first, a.into(), b.into()))
}

fn absolute(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let first = *arguments.first().ok_or_else(mismatch)?;
    like(first, i128::from(integer(arguments, 0)?).abs())
}

fn remainder(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (first, a, b) = pair(arguments)?;
    if b == 0 {
        return Err(SqlError::new(SqlState::DivisionByZero, "division by zero"));
    }
    like(first, a % b)
}

/// Returns the greatest common divisor of two absolute values.
pub(in crate::expression::builtin) fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn gcd(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (first, a, b) = pair(arguments)?;
    like(first, common_divisor(a.unsigned_abs(), b.unsigned_abs()) as i128)
}

fn lcm(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (first, a, b) = pair(arguments)?;
    if a == 0 || b == 0 {
        return like(first, 0);
    }
    let divisor = common_divisor(a.unsigned_abs(), b.unsigned_abs()) as i128;
    like(first, (a / divisor * b).abs())
}

/// The greatest number whose factorial NUMERIC holds.
const MAX_FACTORIAL: i64 = 32_177;

fn factorial(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = integer(arguments, 0)?;
    if number < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(SqlError::new(SqlState::NumericValueOutOfRange, message));
    }
    if number > MAX_FACTORIAL {
        let message = "value overflows numeric format";
        return Err(SqlError::new(SqlState::NumericValueOutOfRange, message));
    }
    let mut product = Decimal::from(1);
    for factor in 2..=number {
        product = product.checked_mul(&Decimal::from(factor))?;
    }
    Ok(product.into())
}
