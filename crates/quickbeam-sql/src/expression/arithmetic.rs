//! Arithmetic operators. Overflow and division by zero are errors; decimals are exact.

use super::dates;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, Value, ValueRef};

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Arithmetic {
    /// Returns the operator's symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Remainder => "%",
        }
    }
}

/// The operand types of an arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// SMALLINT.
    Small,
    /// INTEGER.
    Integer,
    /// BIGINT.
    Big,
    /// NUMERIC.
    Numeric,
    /// REAL.
    Real,
    /// DOUBLE PRECISION.
    Double,
    /// DATE and an integer.
    Days,
    /// DATE and DATE.
    DaysBetween,
    /// DATE and TIME.
    DayTime,
}

impl NumberKind {
    /// Returns the kind of a numeric type.
    pub fn of(data_type: DataType) -> Option<NumberKind> {
        Some(match data_type {
            DataType::SmallInt => NumberKind::Small,
            DataType::Integer => NumberKind::Integer,
            DataType::BigInt => NumberKind::Big,
            DataType::Numeric(_) | DataType::WideNumeric(_) => NumberKind::Numeric,
            DataType::Real => NumberKind::Real,
            DataType::Double => NumberKind::Double,
            _ => return None,
        })
    }

    /// Returns the type of the result.
    pub fn data_type(self) -> DataType {
        match self {
            NumberKind::Small => DataType::SmallInt,
            NumberKind::Integer | NumberKind::DaysBetween => DataType::Integer,
            NumberKind::Big => DataType::BigInt,
            NumberKind::Numeric => DataType::Numeric(None),
            NumberKind::Real => DataType::Real,
            NumberKind::Double => DataType::Double,
            NumberKind::Days => DataType::Date,
            NumberKind::DayTime => DataType::Timestamp,
        }
    }
}

#[cold]
fn out_of_range(kind: NumberKind) -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, format!("{} out of range", kind.data_type()))
}

#[cold]
fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DivisionByZero, "division by zero")
}

#[cold]
pub(super) fn mismatch() -> SqlError {
    SqlError::internal("an operand has another type than its operator expects")
}

/// Applies an operator; the result is NULL if an operand is NULL. Operands and results of NUMERIC
/// have at most 38 digits. [`calculate_long`] is for what fails for this reason.
#[inline]
pub fn calculate(
    operator: Arithmetic,
    kind: NumberKind,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
) -> Result<ValueRef<'static>> {
    if left.is_null() || right.is_null() {
        return Ok(ValueRef::Null);
    }
    match kind {
        NumberKind::Small | NumberKind::Integer | NumberKind::Big => {
            let (Some(a), Some(b)) = (left.as_i64(), right.as_i64()) else {
                return Err(mismatch());
            };
            let result = integers(operator, kind, a, b)?;
            Ok(match kind {
                NumberKind::Small => {
                    ValueRef::SmallInt(i16::try_from(result).map_err(|_| out_of_range(kind))?)
                }
                NumberKind::Integer => {
                    ValueRef::Integer(i32::try_from(result).map_err(|_| out_of_range(kind))?)
                }
                _ => ValueRef::BigInt(result),
            })
        }
        NumberKind::Real | NumberKind::Double => {
            let (Some(a), Some(b)) = (left.as_f64(), right.as_f64()) else {
                return Err(mismatch());
            };
            floats(operator, kind, a, b)
        }
        NumberKind::Numeric => {
            let (Some(a), Some(b)) = (left.as_numeric(), right.as_numeric()) else {
                return Err(mismatch());
            };
            Ok(ValueRef::Numeric(match operator {
                Arithmetic::Add => a.checked_add(b)?,
                Arithmetic::Subtract => a.checked_sub(b)?,
                Arithmetic::Multiply => a.checked_mul(b)?,
                Arithmetic::Divide => a.checked_div(b)?,
                Arithmetic::Remainder => a.checked_rem(b)?,
            }))
        }
        NumberKind::Days => dates::add_days(operator, left, right),
        NumberKind::DaysBetween => dates::days_between(left, right),
        NumberKind::DayTime => dates::add_time(operator, left, right),
    }
}

/// Applies an operator of NUMERIC to numbers of any length, after [`calculate`] returned an error.
#[cold]
pub fn calculate_long(
    operator: Arithmetic,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
) -> Result<Value> {
    let (Some(a), Some(b)) = (left.as_decimal(), right.as_decimal()) else {
        return Err(mismatch());
    };
    Ok(Value::from(match operator {
        Arithmetic::Add => a.checked_add(&b)?,
        Arithmetic::Subtract => a.checked_sub(&b)?,
        Arithmetic::Multiply => a.checked_mul(&b)?,
        Arithmetic::Divide => a.checked_div(&b)?,
        Arithmetic::Remainder => a.checked_rem(&b)?,
    }))
}

#[inline]
fn integers(operator: Arithmetic, kind: NumberKind, a: i64, b: i64) -> Result<i64> {
    let result = match operator {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide if b == 0 => return Err(division_by_zero()),
        Arithmetic::Divide => a.checked_div(b),
        Arithmetic::Remainder if b == 0 => return Err(division_by_zero()),
        // The remainder of the least number by -1 is 0, although the quotient overflows.
        Arithmetic::Remainder => Some(a.checked_rem(b).unwrap_or(0)),
    };
    result.ok_or_else(|| out_of_range(kind))
}

fn floats(operator: Arithmetic, kind: NumberKind, a: f64, b: f64) -> Result<ValueRef<'static>> {
    let result = match operator {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide if b == 0.0 && !a.is_nan() => return Err(division_by_zero()),
        Arithmetic::Divide => a / b,
        Arithmetic::Remainder if b == 0.0 => return Err(division_by_zero()),
        Arithmetic::Remainder => a % b,
    };
    let finite_before = a.is_finite() && b.is_finite();
    // A product or quotient of nonzero operands that becomes zero has underflowed.
    let is_small = match operator {
        Arithmetic::Multiply => a != 0.0 && b != 0.0,
        Arithmetic::Divide => a != 0.0 && !b.is_infinite(),
        _ => false,
    };
    let is_lost =
        |is_infinite: bool, is_zero: bool| is_infinite && finite_before || is_zero && is_small;
    if kind == NumberKind::Real {
        let result = result as f32;
        if is_lost(result.is_infinite(), result == 0.0) {
            return Err(out_of_range(kind));
        }
        return Ok(ValueRef::Real(result));
    }
    if is_lost(result.is_infinite(), result == 0.0) {
        return Err(out_of_range(kind));
    }
    Ok(ValueRef::Double(result))
}

/// Negates a number.
#[inline]
pub fn negate(value: ValueRef<'_>) -> Result<ValueRef<'static>> {
    Ok(match value {
        ValueRef::Null => ValueRef::Null,
        ValueRef::SmallInt(v) => {
            ValueRef::SmallInt(v.checked_neg().ok_or_else(|| out_of_range(NumberKind::Small))?)
        }
        ValueRef::Integer(v) => {
            ValueRef::Integer(v.checked_neg().ok_or_else(|| out_of_range(NumberKind::Integer))?)
        }
        ValueRef::BigInt(v) => {
            ValueRef::BigInt(v.checked_neg().ok_or_else(|| out_of_range(NumberKind::Big))?)
        }
        ValueRef::Real(v) => ValueRef::Real(-v),
        ValueRef::Double(v) => ValueRef::Double(-v),
        ValueRef::Numeric(v) => ValueRef::Numeric(v.negate()),
        _ => return Err(mismatch()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<ValueRef<'_>>) -> &'static str {
        result.unwrap_err().code()
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        use Arithmetic::*;
        use ValueRef as V;
        let most = V::Integer(i32::MAX);
        assert_eq!(code(calculate(Add, NumberKind::Integer, most, V::Integer(1))), "22003");
        assert_eq!(
            calculate(Add, NumberKind::Big, most, V::Integer(1)).unwrap(),
            V::BigInt(1 << 31)
        );
        let least = V::BigInt(i64::MIN);
        assert_eq!(code(calculate(Divide, NumberKind::Big, least, V::BigInt(-1))), "22003");
        assert_eq!(
            calculate(Remainder, NumberKind::Big, least, V::BigInt(-1)).unwrap(),
            V::BigInt(0)
        );
        assert_eq!(code(calculate(Divide, NumberKind::Integer, most, V::Integer(0))), "22012");
        assert_eq!(
            code(calculate(Divide, NumberKind::Double, V::Double(1.0), V::Double(0.0))),
            "22012"
        );
        let quotient = calculate(Divide, NumberKind::Double, V::Double(f64::NAN), V::Double(0.0));
        assert!(matches!(quotient, Ok(V::Double(nan)) if nan.is_nan()));
        assert_eq!(
            code(calculate(Multiply, NumberKind::Double, V::Double(1e300), V::Double(1e300))),
            "22003"
        );
        assert_eq!(code(negate(V::SmallInt(i16::MIN))), "22003");
        assert_eq!(
            calculate(Divide, NumberKind::Integer, V::Integer(-7), V::Integer(2)).unwrap(),
            V::Integer(-3)
        );
        assert!(calculate(Add, NumberKind::Integer, V::Null, most).unwrap().is_null());
        assert_eq!(code(calculate(Add, NumberKind::Integer, V::Text("1"), most)), "XX000");
    }
}
