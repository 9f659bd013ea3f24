//! Calls of functions, a row at a time, with columns as arguments and as the result.
//!
//! Above: vectorized expressions. Below: the functions of SQL. A call costs what it costs in row
//! execution; its gain is that the expressions around it stay vectorized.

use arrow_array::{Datum, Int64Array};

use super::super::column::{ColumnBuilder, Vector, VectorType, kind_of};
use super::super::evaluate::VectorValues;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Function};
use crate::types::{DataType, ValueRef, date_of};

/// The type of the fields of a date: whole numbers, as NUMERIC without digits after the point.
const FIELD: DataType = DataType::Numeric(Some((18, 0)));

/// The functions whose texts are not longer than their first argument.
const SHORTENING: [&str; 7] = ["substring", "substr", "left", "right", "btrim", "ltrim", "rtrim"];

/// A function whose calls are vectorized.
#[derive(Clone, Copy, Debug)]
pub struct VectorCall {
    function: Function,
    /// The type of its results.
    pub data_type: DataType,
    /// Whether a call may fail.
    pub may_fail: bool,
    /// Whether it takes the year of a date.
    is_year: bool,
}

impl VectorCall {
    /// Returns how a function is called, or `None` if its calls stay in rows.
    pub fn new(function: Function, arguments: &[Expr]) -> Option<VectorCall> {
        let builtin = function.0;
        function.of_values()?;
        if builtin.is_variadic || builtin.arguments.len() != arguments.len() {
            return None;
        }
        let text = |nth: usize| match arguments.get(nth)?.as_constant()?.as_ref() {
            ValueRef::Text(text) => Some(text.to_ascii_lowercase()),
            _ => None,
        };
        if builtin.name == "extract" && builtin.arguments.get(1) == Some(&DataType::Date) {
            let is_year = text(0)? == "year";
            return Some(VectorCall { function, data_type: FIELD, may_fail: true, is_year });
        }
        let is_kept = match builtin.result {
            // A batch has room for texts that are not longer than their arguments.
            DataType::Text => SHORTENING.contains(&builtin.name),
            DataType::Integer | DataType::BigInt | DataType::Boolean => true,
            _ => false,
        };
        let are_columns = builtin.arguments.iter().all(|known| kind_of(*known).is_some());
        let is_positive = |argument: &Expr| {
            let number = argument.as_constant().and_then(|value| value.as_ref().as_i64());
            number.is_some_and(|number| number >= 0)
        };
        // A part of a text fails only for a negative length.
        let is_safe = matches!(builtin.name, "substring" | "substr")
            && builtin.arguments.get(1) == Some(&DataType::Integer)
            && arguments.iter().skip(1).all(is_positive);
        let may_fail = !is_safe;
        let call = VectorCall { function, data_type: builtin.result, may_fail, is_year: false };
        (is_kept && are_columns).then_some(call)
    }

    /// Calls it for each of `rows` rows.
    pub fn call(self, arguments: &[(VectorValues, DataType)], rows: usize) -> Result<VectorValues> {
        if let (true, Some((VectorValues::Column(Vector::Numbers(days)), _))) =
            (self.is_year, arguments.get(1))
            && let Some(years) = years_of(days)
        {
            return Ok(VectorValues::Column(Vector::Numbers(years)));
        }
        let Some(evaluate) = self.function.of_values() else {
            return Err(SqlError::internal("a function that is called by rows only"));
        };
        let kind = kind_of(self.data_type).unwrap_or(VectorType::Texts);
        let mut builder = ColumnBuilder::new(kind);
        let columns = arguments.iter().map(|(values, data_type)| {
            let (array, is_one) = values.get();
            Vector::of(array).map(|vector| (vector, *data_type, is_one))
        });
        let columns = columns.collect::<Result<Vec<(Vector, DataType, bool)>>>()?;
        let mut values = Vec::with_capacity(columns.len());
        for row in 0..rows {
            values.clear();
            values.extend(columns.iter().map(|(vector, data_type, is_one)| {
                vector.value(if *is_one { 0 } else { row }, *data_type)
            }));
            match values.iter().any(|value| value.is_null()) {
                true => builder.push(ValueRef::Null)?,
                false => {
                    let value = evaluate(&values)?;
                    check_finite(value.as_ref())?;
                    builder.push(value.as_ref())?;
                }
            }
        }
        Ok(VectorValues::Column(builder.finish()))
    }
}

/// Refuses a field of an infinite date, for which a column of NUMERIC has no place. The step is
/// then executed by rows, as for a product that is too long (DECIMAL-1).
fn check_finite(value: ValueRef<'_>) -> Result<()> {
    match value {
        ValueRef::Numeric(number) if !number.is_finite() => {
            let message = "a field of an infinite date";
            Err(SqlError::new(SqlState::NumericValueOutOfRange, message))
        }
        _ => Ok(()),
    }
}

/// Returns the years of days, or `None` if one of them is infinite.
fn years_of(days: &Int64Array) -> Option<Int64Array> {
    let infinite = [i64::from(i32::MIN), i64::from(i32::MAX)];
    if days.values().iter().any(|day| infinite.contains(day)) {
        return None;
    }
    // There is no year 0: the year before 1 is -1.
    let year_of = |day: i64| {
        let (year, ..) = date_of(day);
        year - i64::from(year <= 0)
    };
    Some(days.unary(year_of))
}
