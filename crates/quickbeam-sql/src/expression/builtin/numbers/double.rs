//! Functions of floating-point numbers, and random numbers.

use super::{no_width_bucket, undefined_logarithm};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{
    Builtin, double, integer, invalid, mismatch, out_of_range, strict, volatile,
};
use crate::expression::frame::random_uuid;
use crate::types::{DataType, Value, ValueRef};
use DataType::{Double, Integer, Real};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("abs", &[Real], Real, absolute_real),
    strict("abs", &[Double], Double, |v| map(v, f64::abs)),
    strict("@", &[Real], Real, absolute_real),
    strict("@", &[Double], Double, |v| map(v, f64::abs)),
    strict("ceil", &[Double], Double, |v| map(v, f64::ceil)),
    strict("ceiling", &[Double], Double, |v| map(v, f64::ceil)),
    strict("floor", &[Double], Double, |v| map(v, f64::floor)),
    strict("round", &[Double], Double, |v| map(v, f64::round_ties_even)),
    strict("trunc", &[Double], Double, |v| map(v, f64::trunc)),
    strict("sign", &[Double], Double, |v| map(v, sign)),
    strict("sqrt", &[Double], Double, square_root),
    strict("|/", &[Double], Double, square_root),
    strict("cbrt", &[Double], Double, |v| map(v, f64::cbrt)),
    strict("||/", &[Double], Double, |v| map(v, f64::cbrt)),
    strict("power", &[Double, Double], Double, raise),
    strict("pow", &[Double, Double], Double, raise),
    strict("^", &[Double, Double], Double, raise),
    strict("exp", &[Double], Double, exponential),
    strict("ln", &[Double], Double, |v| logarithm(v, f64::ln)),
    strict("log", &[Double], Double, |v| logarithm(v, f64::log10)),
    strict("log10", &[Double], Double, |v| logarithm(v, f64::log10)),
    strict("pi", &[], Double, |_| Ok(Value::Double(std::f64::consts::PI))),
    strict("degrees", &[Double], Double, degrees),
    strict("radians", &[Double], Double, |v| map(v, |x| x * (std::f64::consts::PI / 180.0))),
    strict("width_bucket", &[Double, Double, Double, Integer], Integer, width_bucket),
    volatile("random", &[], Double, |frame, _| Ok(Value::Double(frame.random()))),
    volatile("gen_random_uuid", &[], DataType::Uuid, |_, _| Ok(Value::Uuid(random_uuid()))),
    volatile("setseed", &[Double], DataType::Text, |frame, v| {
        let seed = double(v, 0)?;
        if !(-1.0..=1.0).contains(&seed) {
            return Err(invalid(format!(
                "setseed parameter {seed} is out of allowed range [-1,1]"
            )));
        }
        frame.set_random_seed(seed);
        Ok(Value::text(""))
    }),
];

fn map(arguments: &[ValueRef<'_>], function: fn(f64) -> f64) -> Result<Value> {
    Ok(Value::Double(function(double(arguments, 0)?)))
}

fn absolute_real(arguments: &[ValueRef<'_>]) -> Result<Value> {
    match arguments.first() {
        Some(ValueRef::Real(number)) => Ok(Value::Real(number.abs())),
        _ => Err(mismatch()),
    }
}

fn sign(number: f64) -> f64 {
    if number == 0.0 || number.is_nan() { 0.0 } else { number.signum() }
}

#[cold]
pub(in crate::expression::builtin) fn overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: overflow")
}

#[cold]
fn underflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: underflow")
}

#[cold]
fn undefined_power(message: &str) -> SqlError {
    SqlError::new(SqlState::InvalidArgumentForPower, message)
}

fn square_root(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = double(arguments, 0)?;
    if number < 0.0 {
        return Err(undefined_power("cannot take square root of a negative number"));
    }
    Ok(Value::Double(number.sqrt()))
}

fn raise(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (base, exponent) = (double(arguments, 0)?, double(arguments, 1)?);
    if base == 0.0 && exponent < 0.0 {
        return Err(undefined_power("zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(undefined_power(
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    let result = base.powf(exponent);
    if base.is_finite() && exponent.is_finite() {
        if result.is_infinite() {
            return Err(overflow());
        }
        if result == 0.0 && base != 0.0 {
            return Err(underflow());
        }
    }
    Ok(Value::Double(result))
}

fn exponential(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = double(arguments, 0)?;
    let result = number.exp();
    match number.is_finite() {
        true if result.is_infinite() => Err(overflow()),
        true if result == 0.0 => Err(underflow()),
        _ => Ok(Value::Double(result)),
    }
}

fn logarithm(arguments: &[ValueRef<'_>], function: fn(f64) -> f64) -> Result<Value> {
    let number = double(arguments, 0)?;
    if number <= 0.0 {
        return Err(undefined_logarithm(number == 0.0));
    }
    Ok(Value::Double(function(number)))
}

fn degrees(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = double(arguments, 0)?;
    let result = number / (std::f64::consts::PI / 180.0);
    if result.is_infinite() && number.is_finite() {
        return Err(overflow());
    }
    Ok(Value::Double(result))
}

fn width_bucket(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let operand = double(arguments, 0)?;
    let (low, high) = (double(arguments, 1)?, double(arguments, 2)?);
    let count = integer(arguments, 3)?;
    if count <= 0 {
        return Err(no_width_bucket("count must be greater than zero"));
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        let message = "operand, lower bound, and upper bound cannot be NaN";
        return Err(no_width_bucket(message));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(no_width_bucket("lower and upper bounds must be finite"));
    }
    let bucket = if low < high {
        let share = (operand / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        place(operand < low, operand >= high, share, count)
    } else if low > high {
        let share = (low / 2.0 - operand / 2.0) / (low / 2.0 - high / 2.0);
        place(operand > low, operand <= high, share, count)
    } else {
        return Err(no_width_bucket("lower bound cannot equal upper bound"));
    };
    i32::try_from(bucket).map(Value::Integer).map_err(|_| out_of_range("integer"))
}

/// Returns the number of a bucket from the operand's share of the range.
fn place(is_before: bool, is_after: bool, share: f64, count: i64) -> i64 {
    if is_before {
        0
    } else if is_after {
        count + 1
    } else {
        // Rounding may lift the share to 1.
        ((share * count as f64) as i64).min(count - 1) + 1
    }
}
