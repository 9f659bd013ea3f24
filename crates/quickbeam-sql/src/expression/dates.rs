//! Arithmetic with dates, times and timestamps. Infinity stays infinite; a result outside the
//! type's range is an error.

use super::arithmetic::{Arithmetic, mismatch};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{
    DATE_INFINITY, DAY, SECOND, TIMESTAMP_INFINITY, Value, ValueRef, is_date, is_timestamp,
};

/// 2000-01-01 in microseconds since 1970-01-01: PostgreSQL counts, and rounds, from there.
const MILLENNIUM: i64 = 10_957 * DAY;

#[cold]
fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, format!("{what} out of range"))
}

/// Adds a number of days to a date, or subtracts it.
pub fn add_days(
    operator: Arithmetic,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
) -> Result<ValueRef<'static>> {
    let (ValueRef::Date(day), Some(count)) = (left, right.as_i64()) else {
        return Err(mismatch());
    };
    if matches!(day, DATE_INFINITY | i32::MIN) {
        return Ok(ValueRef::Date(day));
    }
    let count = if operator == Arithmetic::Subtract { count.checked_neg() } else { Some(count) };
    let moved = count.and_then(|count| i64::from(day).checked_add(count));
    let moved = moved.filter(|day| is_date(*day)).and_then(|day| i32::try_from(day).ok());
    Ok(ValueRef::Date(moved.ok_or_else(|| out_of_range("date"))?))
}

/// Returns the number of days between two dates.
pub fn days_between(left: ValueRef<'_>, right: ValueRef<'_>) -> Result<ValueRef<'static>> {
    let (ValueRef::Date(a), ValueRef::Date(b)) = (left, right) else { return Err(mismatch()) };
    if [a, b].iter().any(|day| matches!(*day, DATE_INFINITY | i32::MIN)) {
        let message = "cannot subtract infinite dates";
        return Err(SqlError::new(SqlState::DatetimeFieldOverflow, message));
    }
    Ok(ValueRef::Integer(a.checked_sub(b).ok_or_else(|| out_of_range("date"))?))
}

/// Adds a time of day to a date, or subtracts it.
pub fn add_time(
    operator: Arithmetic,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
) -> Result<ValueRef<'static>> {
    let (ValueRef::Date(day), ValueRef::Time(time)) = (left, right) else {
        return Err(mismatch());
    };
    let time = if operator == Arithmetic::Subtract { -time } else { time };
    let moment = match day {
        DATE_INFINITY => TIMESTAMP_INFINITY,
        i32::MIN => i64::MIN,
        day => {
            let midnight = i64::from(day).checked_mul(DAY);
            let moment = midnight.and_then(|midnight| midnight.checked_add(time));
            moment
                .filter(|moment| is_timestamp(*moment))
                .ok_or_else(|| out_of_range("timestamp"))?
        }
    };
    Ok(ValueRef::Timestamp(moment))
}

/// Rounds a time or timestamp to `digits` fractional digits of the second.
pub fn round_second(value: ValueRef<'_>, digits: i64) -> Result<Value> {
    let kept = u32::try_from(digits).map_or(0, |digits| digits.min(6));
    let unit = SECOND / 10_i64.pow(kept);
    let round = |micros: i64, start: i64| match micros {
        TIMESTAMP_INFINITY | i64::MIN => micros,
        _ => {
            let from_start = micros - start;
            let up = from_start.abs() + unit / 2;
            start + from_start.signum() * (up - up % unit)
        }
    };
    let moment = |micros: i64| {
        let rounded = round(micros, MILLENNIUM);
        let is_in_range = rounded == micros || is_timestamp(rounded);
        is_in_range.then_some(rounded).ok_or_else(|| out_of_range("timestamp"))
    };
    Ok(match value {
        ValueRef::Time(micros) => Value::Time(round(micros, 0)),
        ValueRef::Timestamp(micros) => Value::Timestamp(moment(micros)?),
        ValueRef::TimestampTz(micros) => Value::TimestampTz(moment(micros)?),
        _ => return Err(mismatch()),
    })
}
