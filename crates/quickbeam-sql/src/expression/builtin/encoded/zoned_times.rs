//! Operators of TIME WITH TIME ZONE. Its fields are with those of the other times.

use super::encoded;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, mismatch, strict};
use crate::types::encoded::ZonedTime;
use crate::types::{DAY, DataType, EncodedKind, SECOND, Value, ValueRef, is_timestamp};
use DataType::{Date, Interval as Span, TimestampTz};

const TIMETZ: DataType = EncodedKind::TimeTz.data_type();

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("+", &[TIMETZ, Span], TIMETZ, |v| moved(v, 0, 1, 1)),
    strict("+", &[Span, TIMETZ], TIMETZ, |v| moved(v, 1, 0, 1)),
    strict("-", &[TIMETZ, Span], TIMETZ, |v| moved(v, 0, 1, -1)),
    strict("+", &[Date, TIMETZ], TimestampTz, |v| moment(v, 0, 1)),
    strict("+", &[TIMETZ, Date], TimestampTz, |v| moment(v, 1, 0)),
];

/// Returns the argument, a time with its zone.
pub(in crate::expression::builtin) fn zoned_time(
    arguments: &[ValueRef<'_>],
    at: usize,
) -> Result<ZonedTime> {
    ZonedTime::read(encoded(arguments, at)?.1).ok_or_else(mismatch)
}

fn moved(arguments: &[ValueRef<'_>], time: usize, span: usize, sign: i64) -> Result<Value> {
    let time = zoned_time(arguments, time)?;
    let Some(ValueRef::Interval(span)) = arguments.get(span) else { return Err(mismatch()) };
    let micros = time.micros + sign * span.micros.rem_euclid(DAY);
    Ok(ZonedTime { micros: micros.rem_euclid(DAY), ..time }.value())
}

fn moment(arguments: &[ValueRef<'_>], date: usize, time: usize) -> Result<Value> {
    let time = zoned_time(arguments, time)?;
    let Some(ValueRef::Date(days)) = arguments.get(date) else { return Err(mismatch()) };
    let out_of_range = || SqlError::new(SqlState::DatetimeFieldOverflow, "timestamp out of range");
    Ok(Value::TimestampTz(match *days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        days => {
            let local = i64::from(days).checked_mul(DAY).ok_or_else(out_of_range)? + time.micros;
            let moment = local - i64::from(time.east) * SECOND;
            if !is_timestamp(moment) {
                return Err(out_of_range());
            }
            moment
        }
    }))
}
