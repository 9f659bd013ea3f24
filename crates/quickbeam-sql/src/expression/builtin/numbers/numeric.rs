//! Functions of NUMERIC values.

use std::cmp::Ordering;

use super::{no_width_bucket, undefined_logarithm};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, NUMERIC, decimal, integer, out_of_range, strict};
use crate::types::{DataType, Decimal, Numeric, Value, ValueRef};
use DataType::Integer;

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("abs", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.absolute().into())),
    strict("@", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.absolute().into())),
    strict("ceil", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.ceil()?.into())),
    strict("ceiling", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.ceil()?.into())),
    strict("floor", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.floor()?.into())),
    strict("round", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.round(0)?.into())),
    strict("round", &[NUMERIC, Integer], NUMERIC, |v| {
        Ok(decimal(v, 0)?.round(integer(v, 1)?)?.into())
    }),
    strict("trunc", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.truncate(0)?.into())),
    strict("trunc", &[NUMERIC, Integer], NUMERIC, |v| {
        Ok(decimal(v, 0)?.truncate(integer(v, 1)?)?.into())
    }),
    strict("sign", &[NUMERIC], NUMERIC, |v| {
        let number = decimal(v, 0)?;
        Ok(match number.is_nan() {
            true => number.into(),
            false => Value::Numeric(Numeric::from(number.signum())),
        })
    }),
    strict("mod", &[NUMERIC, NUMERIC], NUMERIC, |v| {
        Ok(decimal(v, 0)?.checked_rem(&decimal(v, 1)?)?.into())
    }),
    strict("div", &[NUMERIC, NUMERIC], NUMERIC, |v| {
        Ok(decimal(v, 0)?.whole_quotient(&decimal(v, 1)?)?.into())
    }),
    strict("gcd", &[NUMERIC, NUMERIC], NUMERIC, gcd),
    strict("lcm", &[NUMERIC, NUMERIC], NUMERIC, lcm),
    strict("sqrt", &[NUMERIC], NUMERIC, square_root),
    strict("exp", &[NUMERIC], NUMERIC, exponential),
    strict("ln", &[NUMERIC], NUMERIC, natural_logarithm),
    strict("log", &[NUMERIC], NUMERIC, common_logarithm),
    strict("log10", &[NUMERIC], NUMERIC, common_logarithm),
    strict("log", &[NUMERIC, NUMERIC], NUMERIC, |v| logarithm(&decimal(v, 1)?, &decimal(v, 0)?)),
    strict("power", &[NUMERIC, NUMERIC], NUMERIC, power),
    strict("pow", &[NUMERIC, NUMERIC], NUMERIC, power),
    strict("^", &[NUMERIC, NUMERIC], NUMERIC, power),
    strict("scale", &[NUMERIC], Integer, |v| Ok(scale_of(&decimal(v, 0)?))),
    strict("min_scale", &[NUMERIC], Integer, |v| Ok(scale_of(&decimal(v, 0)?.stripped()))),
    strict("trim_scale", &[NUMERIC], NUMERIC, |v| Ok(decimal(v, 0)?.stripped().into())),
    strict("width_bucket", &[NUMERIC, NUMERIC, NUMERIC, Integer], Integer, width_bucket),
];

/// Returns the number of digits after the point, or NULL if the number has no digits.
fn scale_of(number: &Decimal) -> Value {
    match number.is_finite() {
        true => Value::Integer(number.scale() as i32),
        false => Value::Null,
    }
}

/// Returns an error if a number is not positive, unless it is NaN.
fn check_positive(number: &Decimal) -> Result<()> {
    match number.is_nan() || number.signum() > 0 {
        true => Ok(()),
        false => Err(undefined_logarithm(number.is_zero())),
    }
}

fn exponential(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = decimal(arguments, 0)?;
    Ok(match (number.is_finite(), number.signum() < 0) {
        (true, _) => number.exponential()?.into(),
        (false, true) => Value::Numeric(Numeric::ZERO),
        (false, false) => number.into(),
    })
}

fn natural_logarithm(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = decimal(arguments, 0)?;
    check_positive(&number)?;
    let is_finite = number.is_finite();
    Ok(if is_finite { number.natural_logarithm()?.into() } else { number.into() })
}

fn common_logarithm(arguments: &[ValueRef<'_>]) -> Result<Value> {
    logarithm(&decimal(arguments, 0)?, &Decimal::from(10))
}

fn logarithm(number: &Decimal, base: &Decimal) -> Result<Value> {
    if number.is_nan() || base.is_nan() {
        return Ok(Value::Numeric(Numeric::NAN));
    }
    // A negative operand is reported before a zero.
    let order = if number.signum() < 0 { [number, base] } else { [base, number] };
    order.into_iter().try_for_each(check_positive)?;
    Ok(match (number.is_finite(), base.is_finite()) {
        (true, true) => number.logarithm(base)?.into(),
        (true, false) => Value::Numeric(Numeric::ZERO),
        (false, true) => Value::Numeric(Numeric::INFINITY),
        (false, false) => Value::Numeric(Numeric::NAN),
    })
}

fn gcd(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (decimal(arguments, 0)?, decimal(arguments, 1)?);
    if !a.is_finite() || !b.is_finite() {
        return Ok(Value::Numeric(Numeric::NAN));
    }
    Ok(a.common_divisor(&b)?.into())
}

fn lcm(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (decimal(arguments, 0)?, decimal(arguments, 1)?);
    if !a.is_finite() || !b.is_finite() {
        return Ok(Value::Numeric(Numeric::NAN));
    }
    let scale = a.scale().max(b.scale());
    if a.is_zero() || b.is_zero() {
        return Ok(Decimal::from(0).with_scale(scale)?.into());
    }
    let share = a.whole_quotient(&a.common_divisor(&b)?)?;
    Ok(share.checked_mul(&b)?.absolute().with_scale(scale)?.into())
}

fn square_root(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = decimal(arguments, 0)?;
    if number.signum() < 0 {
        let message = "cannot take square root of a negative number";
        return Err(SqlError::new(SqlState::InvalidArgumentForPower, message));
    }
    let is_finite = number.is_finite();
    Ok(if is_finite { number.square_root()?.into() } else { number.into() })
}

fn power(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (base, exponent) = (decimal(arguments, 0)?, decimal(arguments, 1)?);
    let one = Decimal::from(1);
    if base.is_nan() || exponent.is_nan() {
        let is_one = exponent.is_zero() || base == one;
        return Ok(if is_one { one.into() } else { Value::Numeric(Numeric::NAN) });
    }
    let undefined = |message| Err(SqlError::new(SqlState::InvalidArgumentForPower, message));
    if base.is_zero() && exponent.signum() < 0 {
        return undefined("zero raised to a negative power is undefined");
    }
    if base.signum() < 0 && exponent.is_finite() && exponent.stripped().scale() != 0 {
        return undefined(
            "a negative number raised to a non-integer power yields a complex result",
        );
    }
    if base.is_finite() && exponent.is_finite() {
        return Ok(base.power(&exponent)?.into());
    }
    infinite_power(&base, &exponent)
}

/// Returns a power of which an operand is infinite.
fn infinite_power(base: &Decimal, exponent: &Decimal) -> Result<Value> {
    let one = Decimal::from(1);
    let (zero, infinity) = (Value::Numeric(Numeric::ZERO), Value::Numeric(Numeric::INFINITY));
    if *base == one || exponent.is_zero() {
        return Ok(one.into());
    }
    if exponent.is_finite() {
        let is_odd = !exponent.checked_rem(&Decimal::from(2))?.is_zero();
        return Ok(match (exponent.signum() > 0, base.signum() < 0 && is_odd) {
            (false, _) => zero,
            (true, true) => Value::Numeric(Numeric::NEGATIVE_INFINITY),
            (true, false) => infinity,
        });
    }
    let magnitude = base.absolute();
    Ok(match (magnitude.cmp(&one), exponent.signum() > 0) {
        (Ordering::Equal, _) => one.into(),
        (Ordering::Greater, true) | (Ordering::Less, false) => infinity,
        _ => zero,
    })
}

fn width_bucket(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let operand = decimal(arguments, 0)?;
    let (low, high) = (decimal(arguments, 1)?, decimal(arguments, 2)?);
    let count = integer(arguments, 3)?;
    if count <= 0 {
        return Err(no_width_bucket("count must be greater than zero"));
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return Err(no_width_bucket("operand, lower bound, and upper bound cannot be NaN"));
    }
    if !low.is_finite() || !high.is_finite() {
        return Err(no_width_bucket("lower and upper bounds must be finite"));
    }
    let (is_before, is_after) = match low.cmp(&high) {
        Ordering::Equal => {
            return Err(no_width_bucket("lower bound cannot equal upper bound"));
        }
        Ordering::Less => (operand < low, operand >= high),
        Ordering::Greater => (operand > low, operand <= high),
    };
    let bucket = if is_before {
        0
    } else if is_after {
        count + 1
    } else {
        let offset = operand.checked_sub(&low)?.checked_mul(&Decimal::from(count))?;
        let share = offset.whole_quotient(&high.checked_sub(&low)?)?;
        share.to_i64().unwrap_or(0) + 1
    };
    i32::try_from(bucket).map(Value::Integer).map_err(|_| out_of_range("integer"))
}
