//! Arithmetic of NUMERIC columns: integers without their point, whose scale the types tell.
//!
//! Above: vectorized expressions. Below: Arrow's kernels. The largest numbers of a batch decide the
//! width that a result needs. Most batches need 64 bits, whatever the declared precision is.
//!
//! - DECIMAL-1: a result is exact. One of more than 38 digits, of which row execution would give up
//!   digits after the point, is an error here. The step is then executed by rows.

use arrow_arith::arity::{binary, try_binary};
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, Datum, Decimal128Array, Int64Array};
use arrow_schema::ArrowError;
use quickbeam::invariant;

use super::super::column::Vector;
use super::super::evaluate::{VectorValues, failed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Arithmetic;
use crate::types::{DataType, MAX_PRECISION, decimal_power};

/// Bits of the absolute value of any result in 64 and in 128 bits.
const NARROW_BITS: u32 = 62;
const WIDE_BITS: u32 = 126;

/// An operand: a number for each row, or one for all.
enum Operand {
    Narrow(Int64Array),
    Wide(Decimal128Array),
    One(i128),
}

/// Returns the type of a result, or `None` if its scale is too large.
pub fn result_type(operator: Arithmetic, left: DataType, right: DataType) -> Option<DataType> {
    let (DataType::Numeric(Some((p, s))), DataType::Numeric(Some((q, t)))) = (left, right) else {
        return None;
    };
    let (precision, scale) = match operator {
        Arithmetic::Multiply => (p + q, s + t),
        Arithmetic::Add | Arithmetic::Subtract => (p.max(q) + 1, s.max(t)),
        Arithmetic::Divide | Arithmetic::Remainder => return None,
    };
    (scale <= MAX_PRECISION)
        .then_some(DataType::Numeric(Some((precision.min(MAX_PRECISION), scale))))
}

#[cold]
fn beyond() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value overflows numeric format")
}

/// Whether a number has at most 38 digits.
fn is_numeric(number: i128) -> bool {
    number.unsigned_abs() < decimal_power(MAX_PRECISION).unsigned_abs()
}

fn bits(number: i128) -> u32 {
    i128::BITS - number.unsigned_abs().leading_zeros()
}

impl Operand {
    fn new(values: VectorValues) -> Result<Operand> {
        let is_one = matches!(values, VectorValues::Given(_));
        let operand = match Vector::of(values.get().0)? {
            Vector::Numbers(numbers) if is_one => Operand::One(numbers.value(0).into()),
            Vector::Wide(numbers) if is_one => Operand::One(numbers.value(0)),
            Vector::Numbers(numbers) => Operand::Narrow(numbers),
            Vector::Wide(numbers) => Operand::Wide(numbers),
            _ => return Err(SqlError::internal("an operand is no number")),
        };
        Ok(operand)
    }

    /// Bits that the largest absolute value takes.
    fn bits(&self) -> u32 {
        match self {
            Operand::Narrow(numbers) => {
                // The magnitude of a negative number is that of its complement, or one more.
                let all = numbers.values().iter().fold(0, |all, n| all | (n ^ (n >> 63)));
                bits(i128::from(all) + 1)
            }
            Operand::Wide(numbers) => {
                let all = numbers.values().iter().fold(0, |all, n| all | (n ^ (n >> 127)));
                bits(all).saturating_add(1)
            }
            Operand::One(number) => bits(*number),
        }
    }

    /// Returns the number for a row.
    fn value(&self, row: usize) -> i128 {
        match self {
            Operand::Narrow(numbers) => numbers.value(row).into(),
            Operand::Wide(numbers) => numbers.value(row),
            Operand::One(number) => *number,
        }
    }

    fn into_wide(self, rows: usize) -> Decimal128Array {
        match self {
            Operand::Narrow(numbers) => widened(&numbers),
            Operand::Wide(numbers) => numbers,
            Operand::One(number) => Decimal128Array::from_value(number, rows),
        }
    }
}

/// Returns numbers with 128 bits each.
pub fn widened(numbers: &Int64Array) -> Decimal128Array {
    numbers.unary::<_, Decimal128Type>(i128::from)
}

/// Computes numbers of one operator, row by row.
pub fn calculate(
    operator: Arithmetic,
    left: VectorValues,
    right: VectorValues,
    rows: usize,
) -> Result<VectorValues> {
    let (left, right) = (Operand::new(left)?, Operand::new(right)?);
    let needed = match operator {
        Arithmetic::Multiply => left.bits() + right.bits(),
        _ => left.bits().max(right.bits()) + 1,
    };
    if needed <= NARROW_BITS {
        let result = match (&left, &right) {
            (Operand::Narrow(a), Operand::Narrow(b)) => Some(narrow(operator, a, b)?),
            (Operand::Narrow(a), Operand::One(b)) => {
                let b = *b as i64;
                Some(match operator {
                    Arithmetic::Add => a.unary(|a| a.wrapping_add(b)),
                    Arithmetic::Subtract => a.unary(|a| a.wrapping_sub(b)),
                    _ => a.unary(|a| a.wrapping_mul(b)),
                })
            }
            (Operand::One(a), Operand::Narrow(b)) => {
                let a = *a as i64;
                Some(match operator {
                    Arithmetic::Add => b.unary(|b| a.wrapping_add(b)),
                    Arithmetic::Subtract => b.unary(|b| a.wrapping_sub(b)),
                    _ => b.unary(|b| a.wrapping_mul(b)),
                })
            }
            _ => None,
        };
        if let Some(result) = result {
            invariant!(
                DECIMAL_1,
                (0..result.len()).filter(|row| result.is_valid(*row)).all(|row| {
                    let exact = exact(operator, left.value(row), right.value(row));
                    exact == Some(result.value(row).into())
                }),
                "{operator:?} in 64 bits"
            );
            return Ok(VectorValues::Column(Vector::Numbers(result)));
        }
    }
    let (left, right) = (left.into_wide(rows), right.into_wide(rows));
    let result = if needed <= WIDE_BITS {
        wide(operator, &left, &right)?
    } else {
        wide_checked(operator, &left, &right)?
    };
    invariant!(
        DECIMAL_1,
        (0..result.len()).filter(|row| result.is_valid(*row)).all(|row| {
            exact(operator, left.value(row), right.value(row)) == Some(result.value(row))
        }),
        "{operator:?} in 128 bits"
    );
    Ok(VectorValues::Column(Vector::Wide(result)))
}

/// Returns the result for one row, if 128 bits hold it.
fn exact(operator: Arithmetic, a: i128, b: i128) -> Option<i128> {
    match operator {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        _ => a.checked_mul(b),
    }
}

fn narrow(operator: Arithmetic, a: &Int64Array, b: &Int64Array) -> Result<Int64Array> {
    let result = match operator {
        Arithmetic::Add => binary::<_, _, _, Int64Type>(a, b, i64::wrapping_add),
        Arithmetic::Subtract => binary::<_, _, _, Int64Type>(a, b, i64::wrapping_sub),
        _ => binary::<_, _, _, Int64Type>(a, b, i64::wrapping_mul),
    };
    result.map_err(|error| failed(&error))
}

fn wide(operator: Arithmetic, a: &Decimal128Array, b: &Decimal128Array) -> Result<Decimal128Array> {
    let result = match operator {
        Arithmetic::Add => binary::<_, _, _, Decimal128Type>(a, b, i128::wrapping_add),
        Arithmetic::Subtract => binary::<_, _, _, Decimal128Type>(a, b, i128::wrapping_sub),
        _ => binary::<_, _, _, Decimal128Type>(a, b, i128::wrapping_mul),
    };
    result.map_err(|error| failed(&error))
}

/// As [`wide`], for numbers some of which may be beyond 38 digits (DECIMAL-1).
fn wide_checked(
    operator: Arithmetic,
    a: &Decimal128Array,
    b: &Decimal128Array,
) -> Result<Decimal128Array> {
    let result: std::result::Result<Decimal128Array, ArrowError> = try_binary(a, b, |a, b| {
        let result = exact(operator, a, b).filter(|number| is_numeric(*number));
        result.ok_or_else(|| ArrowError::ArithmeticOverflow(String::new()))
    });
    result.map_err(|error| match error {
        ArrowError::ArithmeticOverflow(_) => beyond(),
        error => failed(&error),
    })
}

/// Returns both with 128 bits if one of them has, so that kernels take them together.
pub fn of_one_width(
    left: VectorValues,
    right: VectorValues,
) -> Result<(VectorValues, VectorValues)> {
    let is_wide = |values: &VectorValues| values.get().0.as_any().is::<Decimal128Array>();
    Ok(match (is_wide(&left), is_wide(&right)) {
        (true, false) => (left, right.widened()?),
        (false, true) => (left.widened()?, right),
        _ => (left, right),
    })
}

/// Adds numbers to the sums of their groups.
pub fn sum_wide(
    numbers: &Decimal128Array,
    places: &[u32],
    sums: &mut [i128],
    counts: &mut [i64],
) -> Result<()> {
    for (row, place) in places.iter().enumerate() {
        if numbers.is_null(row) {
            continue;
        }
        let place = *place as usize;
        if let (Some(sum), Some(count)) = (sums.get_mut(place), counts.get_mut(place)) {
            let more = sum.checked_add(numbers.value(row)).filter(|sum| is_numeric(*sum));
            *sum = more.ok_or_else(beyond)?;
            *count += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(numbers: &[Option<i64>]) -> VectorValues {
        VectorValues::Column(Vector::Numbers(numbers.iter().copied().collect()))
    }

    fn values(result: Result<VectorValues>) -> Vec<Option<i128>> {
        match result.unwrap() {
            VectorValues::Column(Vector::Numbers(numbers)) => {
                numbers.iter().map(|number| number.map(i128::from)).collect()
            }
            VectorValues::Column(Vector::Wide(numbers)) => numbers.iter().collect(),
            _ => panic!("no numbers"),
        }
    }

    #[test]
    fn results_are_exact_at_every_width() {
        let numbers = [0, 1, -1, 7, 1 << 30, -(1 << 31), (1 << 59) - 1, i64::MAX, i64::MIN];
        for a in numbers {
            for b in numbers {
                for (operator, expected) in [
                    (Arithmetic::Add, i128::from(a) + i128::from(b)),
                    (Arithmetic::Subtract, i128::from(a) - i128::from(b)),
                    (Arithmetic::Multiply, i128::from(a) * i128::from(b)),
                ] {
                    let both = (column(&[Some(a), None]), column(&[Some(b), Some(b)]));
                    let found = values(calculate(operator, both.0, both.1, 2));
                    assert_eq!(found, [Some(expected), None], "{a} {operator:?} {b}");
                }
            }
        }
    }

    #[test]
    fn a_result_beyond_38_digits_is_an_error() {
        let most = decimal_power(MAX_PRECISION) - 1;
        let wide = |number: i128| {
            VectorValues::Column(Vector::Wide(Decimal128Array::from_value(number, 1)))
        };
        let error = |result: Result<VectorValues>| result.err().map(|error| error.state());
        let out_of_range = Some(SqlState::NumericValueOutOfRange);
        assert_eq!(error(calculate(Arithmetic::Add, wide(most), wide(1), 1)), out_of_range);
        assert_eq!(error(calculate(Arithmetic::Multiply, wide(most), wide(2), 1)), out_of_range);
        let less = calculate(Arithmetic::Subtract, wide(most), wide(1), 1);
        assert_eq!(values(less), [Some(most - 1)]);
    }
}
