//! Scalar functions.

use super::evaluate::{Datum, compare};
use super::texts::{of_bytes, of_text};
use super::{Expr, Frame};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, Numeric, Value, ValueRef};

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `abs`
    Abs,
    /// `ceil`
    Ceil,
    /// `floor`
    Floor,
    /// `round`
    Round,
    /// `trunc`
    Trunc,
    /// `sign`
    Sign,
    /// `sqrt`
    Sqrt,
    /// `power`
    Power,
    /// `random`
    Random,
    /// `length`, in characters
    Length,
    /// `octet_length`
    OctetLength,
    /// `lower`
    Lower,
    /// `upper`
    Upper,
    /// `substring`
    Substring,
    /// `position`, from 1; 0 if absent
    Position,
    /// `btrim`
    Trim,
    /// `ltrim`
    TrimStart,
    /// `rtrim`
    TrimEnd,
    /// `replace`
    Replace,
    /// `left`
    Left,
    /// `right`
    Right,
    /// `repeat`
    Repeat,
    /// `reverse`
    Reverse,
    /// `||`
    Concat,
    /// `concat`, which skips NULLs
    ConcatAll,
    /// `coalesce`
    Coalesce,
    /// `nullif`
    NullIf,
    /// `greatest`
    Greatest,
    /// `least`
    Least,
    /// Rounding to a number of fractional digits of the second
    RoundSecond,
    /// `now`
    Now,
    /// `current_date`, in UTC
    CurrentDate,
}

impl Function {
    /// Returns whether each call may return another value.
    pub fn is_volatile(self) -> bool {
        self == Function::Random
    }

    /// Returns whether the result is NULL if an argument is.
    pub fn is_strict(self) -> bool {
        !matches!(
            self,
            Function::Coalesce
                | Function::NullIf
                | Function::Greatest
                | Function::Least
                | Function::ConcatAll
        )
    }

    /// Returns whether the result depends on the transaction.
    pub fn is_of_session(self) -> bool {
        matches!(self, Function::Now | Function::CurrentDate)
    }
}

#[cold]
pub(super) fn mismatch() -> SqlError {
    SqlError::internal("an argument has another type than its function expects")
}

pub(super) fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, format!("{what} out of range"))
}

/// Evaluates a function call.
pub fn call<'a>(function: Function, arguments: &'a [Expr], frame: &Frame<'a>) -> Result<Datum<'a>> {
    match function {
        Function::Coalesce => {
            for argument in arguments {
                let value = argument.evaluate(frame)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            return Ok(Datum::NULL);
        }
        Function::Greatest | Function::Least => return extreme(function, arguments, frame),
        Function::ConcatAll => {
            let mut text = String::new();
            for argument in arguments {
                append(&mut text, argument.evaluate(frame)?.as_ref())?;
            }
            return Ok(Datum::Own(Value::text(text)));
        }
        Function::Now => return Ok(Datum::Own(Value::TimestampTz(frame.now()))),
        Function::CurrentDate => {
            let day = frame.now().div_euclid(86_400_000_000);
            let day = i32::try_from(day).map_err(|_| out_of_range("date"))?;
            return Ok(Datum::Own(Value::Date(day)));
        }
        Function::Random => return Ok(Datum::Own(Value::Double(random()))),
        _ => {}
    }
    let mut values: [Datum<'a>; 3] = [Datum::NULL, Datum::NULL, Datum::NULL];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = argument.evaluate(frame)?;
        if value.is_null() && function.is_strict() {
            return Ok(Datum::NULL);
        }
    }
    if function == Function::NullIf {
        let equal = compare(values[0].as_ref(), values[1].as_ref())?.is_some_and(|o| o.is_eq());
        let [first, ..] = values;
        return Ok(if equal { Datum::NULL } else { first });
    }
    let [first, second, third] = &values;
    let arguments = [first.as_ref(), second.as_ref(), third.as_ref()];
    let result = match first.as_ref() {
        ValueRef::Text(text) => of_text(function, text, [second.as_ref(), third.as_ref()])?,
        ValueRef::Bytea(bytes) => of_bytes(function, bytes, [second.as_ref(), third.as_ref()])?,
        _ => of_number(function, arguments)?,
    };
    Ok(Datum::Own(result))
}

fn extreme<'a>(function: Function, arguments: &'a [Expr], frame: &Frame<'a>) -> Result<Datum<'a>> {
    let mut best = Datum::NULL;
    for argument in arguments {
        let value = argument.evaluate(frame)?;
        let order = compare(value.as_ref(), best.as_ref())?;
        let better = match order {
            Some(order) if function == Function::Greatest => order.is_gt(),
            Some(order) => order.is_lt(),
            None => best.is_null(),
        };
        if better {
            best = value;
        }
    }
    Ok(best)
}

/// Appends a value as `concat` writes it.
fn append(text: &mut String, value: ValueRef<'_>) -> Result<()> {
    match value {
        ValueRef::Null => {}
        ValueRef::Text(part) => text.push_str(part),
        // Only a cast writes the whole word.
        ValueRef::Boolean(is) => text.push(if is { 't' } else { 'f' }),
        other => match super::evaluate::cast(Datum::Ref(other), DataType::Text, true)?.as_ref() {
            ValueRef::Text(part) => text.push_str(part),
            _ => return Err(mismatch()),
        },
    }
    Ok(())
}

fn random() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let bits = RandomState::new().hash_one(0);
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn of_number(function: Function, arguments: [ValueRef<'_>; 3]) -> Result<Value> {
    let [value, second, _] = arguments;
    Ok(match (function, value) {
        (Function::RoundSecond, moment) => {
            super::dates::round_second(moment, second.as_i64().unwrap_or_default())?
        }
        (Function::Abs, ValueRef::SmallInt(v)) => {
            Value::SmallInt(v.checked_abs().ok_or_else(|| out_of_range("smallint"))?)
        }
        (Function::Abs, ValueRef::Integer(v)) => {
            Value::Integer(v.checked_abs().ok_or_else(|| out_of_range("integer"))?)
        }
        (Function::Abs, ValueRef::BigInt(v)) => {
            Value::BigInt(v.checked_abs().ok_or_else(|| out_of_range("bigint"))?)
        }
        (_, ValueRef::Numeric(v)) => return of_decimal(function, v, second),
        (Function::Abs, ValueRef::Real(v)) => Value::Real(v.abs()),
        (_, ValueRef::Double(v)) => Value::Double(of_double(function, v, second)?),
        _ => return Err(mismatch()),
    })
}

fn of_decimal(function: Function, value: Numeric, second: ValueRef<'_>) -> Result<Value> {
    let digits = second.as_i64().unwrap_or(0).clamp(-100, 100) as i32;
    Ok(Value::Numeric(match function {
        Function::Abs => value.absolute(),
        Function::Ceil => value.ceil()?,
        Function::Floor => value.floor()?,
        Function::Round => value.round(digits)?,
        Function::Trunc => value.truncate(digits),
        Function::Sign => Numeric::from(i64::from(value.signum())),
        _ => return Err(mismatch()),
    }))
}

fn of_double(function: Function, value: f64, second: ValueRef<'_>) -> Result<f64> {
    let result = match function {
        Function::Abs => value.abs(),
        Function::Ceil => value.ceil(),
        Function::Floor => value.floor(),
        Function::Round => value.round_ties_even(),
        Function::Trunc => value.trunc(),
        Function::Sign if value == 0.0 => 0.0,
        Function::Sign => value.signum(),
        Function::Sqrt if value < 0.0 => {
            let message = "cannot take square root of a negative number";
            return Err(SqlError::new(SqlState::InvalidArgumentForPower, message));
        }
        Function::Sqrt => value.sqrt(),
        Function::Power => return power(value, second.as_f64().ok_or_else(mismatch)?),
        _ => return Err(mismatch()),
    };
    Ok(result)
}

fn power(base: f64, exponent: f64) -> Result<f64> {
    let undefined = |message| Err(SqlError::new(SqlState::InvalidArgumentForPower, message));
    if base == 0.0 && exponent < 0.0 {
        return undefined("zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return undefined(
            "a negative number raised to a non-integer power yields a complex result",
        );
    }
    let result = base.powf(exponent);
    let lost = result.is_infinite() || result == 0.0 && base != 0.0;
    if lost && base.is_finite() && exponent.is_finite() {
        return Err(out_of_range("double precision"));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(function: Function, arguments: &[Value]) -> Result<Value> {
        let arguments: Vec<Expr> = arguments.iter().cloned().map(Expr::Constant).collect();
        call(function, &arguments, &Frame::of_parameters(&[])).map(Datum::into_value)
    }

    #[test]
    fn functions_of_texts() {
        let t = Value::text;
        let i = Value::Integer;
        for (function, arguments, expected) in [
            (Function::Substring, vec![t("größe"), i(2), i(3)], t("röß")),
            (Function::Substring, vec![t("abc"), i(-1), i(3)], t("a")),
            (Function::Substring, vec![t("abc"), i(9)], t("")),
            (Function::Position, vec![t("größe"), t("ß")], i(4)),
            (Function::Trim, vec![t("  a ")], t("a")),
            (Function::TrimEnd, vec![t("abcxy"), t("yx")], t("abc")),
            (Function::Left, vec![t("abc"), i(-1)], t("ab")),
            (Function::Right, vec![t("abc"), i(2)], t("bc")),
            (Function::Replace, vec![t("aaa"), t("a"), t("bc")], t("bcbcbc")),
            (Function::Length, vec![t("größe")], i(5)),
            (Function::OctetLength, vec![t("größe")], i(7)),
            (Function::NullIf, vec![i(1), i(1)], Value::Null),
            (Function::Coalesce, vec![Value::Null, i(2)], i(2)),
            (Function::Greatest, vec![Value::Null, i(2), i(3)], i(3)),
            (Function::Lower, vec![Value::Null], Value::Null),
        ] {
            assert_eq!(value_of(function, &arguments).unwrap(), expected, "{function:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        for (function, arguments, code) in [
            (
                Function::Substring,
                vec![Value::text("a"), Value::Integer(1), Value::Integer(-1)],
                "22011",
            ),
            (Function::Abs, vec![Value::Integer(i32::MIN)], "22003"),
            (Function::Sqrt, vec![Value::Double(-1.0)], "2201F"),
            (Function::Repeat, vec![Value::text("ab"), Value::Integer(i32::MAX)], "54000"),
            (Function::Power, vec![Value::Double(1e300), Value::Double(2.0)], "22003"),
            (Function::Power, vec![Value::Double(1e-300), Value::Double(2.0)], "22003"),
            (Function::Power, vec![Value::Double(-8.0), Value::Double(0.5)], "2201F"),
            (Function::Power, vec![Value::Double(0.0), Value::Double(-1.0)], "2201F"),
        ] {
            assert_eq!(value_of(function, &arguments).unwrap_err().code(), code, "{function:?}");
        }
    }
}
