//! Functions of NUMERIC values.

use super::integer::common_divisor;
use super::{no_width_bucket, undefined_logarithm};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{
    Builtin, NUMERIC, any_numeric, integer, numeric, out_of_range, strict,
};
use crate::types::{DataType, Numeric, Value, ValueRef};
use DataType::Integer;

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("abs", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(any_numeric(v, 0)?.absolute()))),
    strict("@", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(any_numeric(v, 0)?.absolute()))),
    strict("ceil", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(any_numeric(v, 0)?.ceil()?))),
    strict("ceiling", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(any_numeric(v, 0)?.ceil()?))),
    strict("floor", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(any_numeric(v, 0)?.floor()?))),
    strict("round", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(any_numeric(v, 0)?.round(0)?))),
    strict("round", &[NUMERIC, Integer], NUMERIC, |v| {
        Ok(Value::Numeric(any_numeric(v, 0)?.round(digits(v)?)?))
    }),
    strict("trunc", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(any_numeric(v, 0)?.truncate(0)))),
    strict("trunc", &[NUMERIC, Integer], NUMERIC, truncate),
    strict("sign", &[NUMERIC], NUMERIC, |v| {
        let number = any_numeric(v, 0)?;
        Ok(Value::Numeric(match number.is_nan() {
            true => number,
            false => Numeric::from(i64::from(number.signum())),
        }))
    }),
    strict("mod", &[NUMERIC, NUMERIC], NUMERIC, |v| {
        Ok(Value::Numeric(any_numeric(v, 0)?.checked_rem(any_numeric(v, 1)?)?))
    }),
    strict("div", &[NUMERIC, NUMERIC], NUMERIC, divide),
    strict("gcd", &[NUMERIC, NUMERIC], NUMERIC, gcd),
    strict("lcm", &[NUMERIC, NUMERIC], NUMERIC, lcm),
    strict("sqrt", &[NUMERIC], NUMERIC, square_root),
    strict("exp", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(numeric(v, 0)?.exponential()?))),
    strict("ln", &[NUMERIC], NUMERIC, |v| {
        Ok(Value::Numeric(positive(numeric(v, 0)?)?.natural_logarithm()?))
    }),
    strict("log", &[NUMERIC], NUMERIC, common_logarithm),
    strict("log10", &[NUMERIC], NUMERIC, common_logarithm),
    strict("log", &[NUMERIC, NUMERIC], NUMERIC, |v| {
        let (base, number) = (positive(numeric(v, 0)?)?, positive(numeric(v, 1)?)?);
        Ok(Value::Numeric(number.logarithm(base)?))
    }),
    strict("power", &[NUMERIC, NUMERIC], NUMERIC, power),
    strict("pow", &[NUMERIC, NUMERIC], NUMERIC, power),
    strict("^", &[NUMERIC, NUMERIC], NUMERIC, power),
    strict("scale", &[NUMERIC], Integer, |v| Ok(Value::Integer(i32::from(numeric(v, 0)?.scale())))),
    strict("min_scale", &[NUMERIC], Integer, |v| {
        Ok(Value::Integer(i32::from(numeric(v, 0)?.stripped().scale())))
    }),
    strict("trim_scale", &[NUMERIC], NUMERIC, |v| Ok(Value::Numeric(numeric(v, 0)?.stripped()))),
    strict("width_bucket", &[NUMERIC, NUMERIC, NUMERIC, Integer], Integer, width_bucket),
];

fn digits(arguments: &[ValueRef<'_>]) -> Result<i32> {
    Ok(integer(arguments, 1)?.clamp(-100, 100) as i32)
}

fn truncate(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (number, digits) = (any_numeric(arguments, 0)?, digits(arguments)?);
    let cut = number.truncate(digits);
    // PostgreSQL pads to the scale that is asked for.
    Ok(Value::Numeric(if digits > i32::from(cut.scale()) { cut.round(digits)? } else { cut }))
}

fn positive(number: Numeric) -> Result<Numeric> {
    if number.signum() > 0 { Ok(number) } else { Err(undefined_logarithm(number.is_zero())) }
}

fn common_logarithm(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = positive(numeric(arguments, 0)?)?;
    Ok(Value::Numeric(number.logarithm(Numeric::from(10))?))
}

fn divide(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (numeric(arguments, 0)?, numeric(arguments, 1)?);
    let rest = a.checked_rem(b)?;
    let quotient = a.checked_sub(rest)?.checked_div(b)?;
    Ok(Value::Numeric(quotient.round(0)?))
}

/// Returns the integers of both numbers in the larger of their scales.
fn aligned(arguments: &[ValueRef<'_>]) -> Result<(u128, u128, u8)> {
    let (a, b) = (numeric(arguments, 0)?, numeric(arguments, 1)?);
    let scale = a.scale().max(b.scale());
    let raise = |number: Numeric| -> Result<u128> {
        Ok(number.round(scale.into())?.mantissa().unsigned_abs())
    };
    Ok((raise(a)?, raise(b)?, scale))
}

fn gcd(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b, scale) = aligned(arguments)?;
    Ok(Value::Numeric(Numeric::new(common_divisor(a, b) as i128, scale)?))
}

fn lcm(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b, scale) = aligned(arguments)?;
    if a == 0 || b == 0 {
        return Ok(Value::Numeric(Numeric::new(0, scale)?));
    }
    let product = (a / common_divisor(a, b)).checked_mul(b).and_then(|it| i128::try_from(it).ok());
    Ok(Value::Numeric(Numeric::new(product.ok_or_else(|| out_of_range("numeric"))?, scale)?))
}

fn square_root(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = numeric(arguments, 0)?;
    if number.signum() < 0 {
        let message = "cannot take square root of a negative number";
        return Err(SqlError::new(SqlState::InvalidArgumentForPower, message));
    }
    Ok(Value::Numeric(number.square_root()?))
}

fn power(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (base, exponent) = (numeric(arguments, 0)?, numeric(arguments, 1)?);
    let undefined = |message| Err(SqlError::new(SqlState::InvalidArgumentForPower, message));
    if base.is_zero() && exponent.signum() < 0 {
        return undefined("zero raised to a negative power is undefined");
    }
    if base.signum() < 0 && exponent.stripped().scale() != 0 {
        return undefined(
            "a negative number raised to a non-integer power yields a complex result",
        );
    }
    Ok(Value::Numeric(base.power(exponent)?))
}

fn width_bucket(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let operand = numeric(arguments, 0)?;
    let (low, high) = (numeric(arguments, 1)?, numeric(arguments, 2)?);
    let count = integer(arguments, 3)?;
    if count <= 0 {
        return Err(no_width_bucket("count must be greater than zero"));
    }
    let (is_before, is_after) = match low.cmp(&high) {
        std::cmp::Ordering::Equal => {
            return Err(no_width_bucket("lower bound cannot equal upper bound"));
        }
        std::cmp::Ordering::Less => (operand < low, operand >= high),
        std::cmp::Ordering::Greater => (operand > low, operand <= high),
    };
    let bucket = if is_before {
        0
    } else if is_after {
        count + 1
    } else {
        let offset = operand.checked_sub(low)?.checked_mul(Numeric::from(count))?;
        let share = offset.checked_div(high.checked_sub(low)?)?;
        share.floor()?.to_i64().unwrap_or(0) + 1
    };
    i32::try_from(bucket).map(Value::Integer).map_err(|_| out_of_range("integer"))
}
