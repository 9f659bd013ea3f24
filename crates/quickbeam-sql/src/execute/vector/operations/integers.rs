//! Arithmetic of integer columns.

use arrow_arith::arity::try_binary;
use arrow_array::Int64Array;
use arrow_schema::ArrowError;

use super::super::column::Vector;
use super::super::evaluate::{VectorValues, failed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Arithmetic, NumberKind};

/// Computes integers of one operator, row by row. One beyond the range of its type is an error.
pub fn calculate(
    operator: Arithmetic,
    kind: NumberKind,
    left: &Int64Array,
    right: &Int64Array,
) -> Result<VectorValues> {
    let range = match kind {
        NumberKind::Small => i64::from(i16::MIN)..=i64::from(i16::MAX),
        NumberKind::Integer => i64::from(i32::MIN)..=i64::from(i32::MAX),
        _ => i64::MIN..=i64::MAX,
    };
    let overflow = || ArrowError::ArithmeticOverflow(String::new());
    let result: std::result::Result<Int64Array, ArrowError> = try_binary(left, right, |a, b| {
        let result = match operator {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            _ => a.checked_mul(b),
        };
        result.filter(|number| range.contains(number)).ok_or_else(overflow)
    });
    match result {
        Ok(numbers) => Ok(VectorValues::Column(Vector::Numbers(numbers))),
        Err(ArrowError::ArithmeticOverflow(_)) => Err(SqlError::new(
            SqlState::NumericValueOutOfRange,
            format!("{} out of range", kind.data_type()),
        )),
        Err(error) => Err(failed(&error)),
    }
}
