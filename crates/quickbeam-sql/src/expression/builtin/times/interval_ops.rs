//! Arithmetic with dates, times, timestamps and intervals.

use std::cmp::Ordering;

use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::{
    Builtin, Implementation, double, invalid, mismatch, stable, strict,
};
use crate::types::{
    DATE_INFINITY, DAY, DataType, HOUR, Interval, MINUTE, SECOND, SessionZone, TIMESTAMP_INFINITY,
    Value, ValueRef, date_of, days_in_month, days_of, is_date, is_timestamp,
};
use DataType::{Boolean, Date, Double, Integer, Interval as Span, Time, Timestamp, TimestampTz};

/// The direction in which an interval moves a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeStep {
    /// `time - interval`
    Back,
    /// `time + interval`
    Forward,
}

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("+", &[Span, Span], Span, |v| {
        Ok(Value::Interval(span(v, 0)?.checked_add(span(v, 1)?)?))
    }),
    strict("-", &[Span, Span], Span, |v| {
        Ok(Value::Interval(span(v, 0)?.checked_add(span(v, 1)?.checked_neg()?)?))
    }),
    strict("-", &[Span], Span, |v| Ok(Value::Interval(span(v, 0)?.checked_neg()?))),
    strict("*", &[Span, Double], Span, |v| {
        Ok(Value::Interval(span(v, 0)?.checked_mul(double(v, 1)?)?))
    }),
    strict("*", &[Double, Span], Span, |v| {
        Ok(Value::Interval(span(v, 1)?.checked_mul(double(v, 0)?)?))
    }),
    strict("/", &[Span, Double], Span, divide),
    strict("+", &[Timestamp, Span], Timestamp, |v| move_by(v, 0, 1, TimeStep::Forward)),
    strict("+", &[Span, Timestamp], Timestamp, |v| move_by(v, 1, 0, TimeStep::Forward)),
    strict("-", &[Timestamp, Span], Timestamp, |v| move_by(v, 0, 1, TimeStep::Back)),
    stable("+", &[TimestampTz, Span], TimestampTz, |f, v| move_in(f, v, 0, 1, TimeStep::Forward)),
    stable("+", &[Span, TimestampTz], TimestampTz, |f, v| move_in(f, v, 1, 0, TimeStep::Forward)),
    stable("-", &[TimestampTz, Span], TimestampTz, |f, v| move_in(f, v, 0, 1, TimeStep::Back)),
    strict("+", &[Date, Span], Timestamp, |v| move_by(v, 0, 1, TimeStep::Forward)),
    strict("+", &[Span, Date], Timestamp, |v| move_by(v, 1, 0, TimeStep::Forward)),
    strict("-", &[Date, Span], Timestamp, |v| move_by(v, 0, 1, TimeStep::Back)),
    strict("+", &[Time, Span], Time, |v| turn(v, 0, 1, TimeStep::Forward)),
    strict("+", &[Span, Time], Time, |v| turn(v, 1, 0, TimeStep::Forward)),
    strict("-", &[Time, Span], Time, |v| turn(v, 0, 1, TimeStep::Back)),
    strict("-", &[Time, Time], Span, |v| {
        let micros = micros_of(v, 0)? - micros_of(v, 1)?;
        Ok(Value::Interval(Interval { micros, ..Interval::default() }))
    }),
    strict("-", &[Timestamp, Timestamp], Span, between),
    strict("-", &[TimestampTz, TimestampTz], Span, between),
    strict("age", &[Timestamp, Timestamp], Span, age),
    stable("age", &[TimestampTz, TimestampTz], Span, |frame, v| {
        let zone = frame.settings().zone;
        let of_zone = |at: usize| micros_of(v, at).and_then(|moment| local(moment, zone));
        age(&[ValueRef::Timestamp(of_zone(0)?), ValueRef::Timestamp(of_zone(1)?)])
    }),
    strict("justify_days", &[Span], Span, |v| Ok(Value::Interval(span(v, 0)?.justify_days()?))),
    strict("justify_hours", &[Span], Span, |v| Ok(Value::Interval(span(v, 0)?.justify_hours()?))),
    strict("justify_interval", &[Span], Span, |v| Ok(Value::Interval(span(v, 0)?.justify()?))),
    strict("isfinite", &[Date], Boolean, is_finite),
    strict("isfinite", &[Timestamp], Boolean, is_finite),
    strict("isfinite", &[TimestampTz], Boolean, is_finite),
    strict("isfinite", &[Span], Boolean, |_| Ok(Value::Boolean(true))),
    strict("make_date", &[Integer, Integer, Integer], Date, make_date),
    strict("make_time", &[Integer, Integer, Double], Time, |v| Ok(Value::Time(clock(v, 0)?))),
    strict(
        "make_timestamp",
        &[Integer, Integer, Integer, Integer, Integer, Double],
        Timestamp,
        |v| Ok(Value::Timestamp(make_timestamp(v)?)),
    ),
    stable(
        "make_timestamptz",
        &[Integer, Integer, Integer, Integer, Integer, Double],
        TimestampTz,
        |frame, v| Ok(Value::TimestampTz(moment(make_timestamp(v)?, frame.settings().zone)?)),
    ),
    strict("make_interval", &[], Span, make_interval),
    strict("make_interval", &[Integer], Span, make_interval),
    strict("make_interval", &[Integer, Integer], Span, make_interval),
    strict("make_interval", &[Integer, Integer, Integer], Span, make_interval),
    strict("make_interval", &[Integer, Integer, Integer, Integer], Span, make_interval),
    strict("make_interval", &[Integer, Integer, Integer, Integer, Integer], Span, make_interval),
    strict(
        "make_interval",
        &[Integer, Integer, Integer, Integer, Integer, Integer],
        Span,
        make_interval,
    ),
    strict(
        "make_interval",
        &[Integer, Integer, Integer, Integer, Integer, Integer, Double],
        Span,
        make_interval,
    ),
    strict("to_timestamp", &[Double], TimestampTz, from_epoch),
    strict("date_bin", &[Span, Timestamp, Timestamp], Timestamp, bin),
    strict("date_bin", &[Span, TimestampTz, TimestampTz], TimestampTz, bin),
    overlap(&[Timestamp, Timestamp, Timestamp, Timestamp]),
    overlap(&[TimestampTz, TimestampTz, TimestampTz, TimestampTz]),
    overlap(&[Time, Time, Time, Time]),
];

pub(in crate::expression::builtin) fn span(
    arguments: &[ValueRef<'_>],
    at: usize,
) -> Result<Interval> {
    match arguments.get(at) {
        Some(ValueRef::Interval(value)) => Ok(*value),
        _ => Err(mismatch()),
    }
}

#[cold]
pub(in crate::expression::builtin) fn timestamp_out_of_range() -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, "timestamp out of range")
}

/// Returns microseconds of a time or timestamp; of a date, those of its midnight.
pub(in crate::expression::builtin) fn micros_of(
    arguments: &[ValueRef<'_>],
    at: usize,
) -> Result<i64> {
    match arguments.get(at) {
        Some(ValueRef::Time(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value)) => {
            Ok(*value)
        }
        Some(ValueRef::Date(DATE_INFINITY)) => Ok(TIMESTAMP_INFINITY),
        Some(ValueRef::Date(i32::MIN)) => Ok(i64::MIN),
        Some(ValueRef::Date(days)) => {
            i64::from(*days).checked_mul(DAY).ok_or_else(timestamp_out_of_range)
        }
        _ => Err(mismatch()),
    }
}

/// Returns the timestamp in the type of the argument: a date becomes a timestamp.
pub(in crate::expression::builtin) fn like(argument: Option<&ValueRef<'_>>, micros: i64) -> Value {
    match argument {
        Some(ValueRef::TimestampTz(_)) => Value::TimestampTz(micros),
        _ => Value::Timestamp(micros),
    }
}

fn infinite(micros: i64) -> bool {
    matches!(micros, TIMESTAMP_INFINITY | i64::MIN)
}

/// Adds an interval: first the months, in whose last day a later day ends, then days and time.
pub fn moved(micros: i64, interval: Interval) -> Result<i64> {
    if infinite(micros) {
        return Ok(micros);
    }
    let (mut day, time) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    if interval.months != 0 {
        let (year, month, of_month) = date_of(day);
        let months = year * 12 + i64::from(month) - 1 + i64::from(interval.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) as u32 + 1);
        day = days_of(year, month, of_month.min(days_in_month(year, month)));
    }
    let moved = (day + i64::from(interval.days))
        .checked_mul(DAY)
        .and_then(|it| it.checked_add(time))
        .and_then(|it| it.checked_add(interval.micros));
    moved.filter(|moved| is_timestamp(*moved)).ok_or_else(timestamp_out_of_range)
}

fn is_any_moment(moment: &i64) -> bool {
    infinite(*moment) || is_timestamp(*moment)
}

/// Returns the local time of a moment.
pub(in crate::expression::builtin) fn local(moment: i64, zone: SessionZone) -> Result<i64> {
    zone.to_local(moment).filter(is_any_moment).ok_or_else(timestamp_out_of_range)
}

/// Returns the moment of a local time.
pub(in crate::expression::builtin) fn moment(local: i64, zone: SessionZone) -> Result<i64> {
    zone.to_moment(local).filter(is_any_moment).ok_or_else(timestamp_out_of_range)
}

/// Adds an interval to a moment: months and days in a zone, where a day may have 23 or 25 hours.
pub fn moved_in_zone(moment: i64, interval: Interval, zone: SessionZone) -> Result<i64> {
    if zone == SessionZone::Utc || interval.months == 0 && interval.days == 0 {
        return moved(moment, interval);
    }
    let whole = Interval { micros: 0, ..interval };
    let by_calendar = self::moment(moved(local(moment, zone)?, whole)?, zone)?;
    moved(by_calendar, Interval { micros: interval.micros, ..Interval::default() })
}

fn move_in(
    frame: &Frame<'_>,
    arguments: &[ValueRef<'_>],
    moment: usize,
    interval: usize,
    step: TimeStep,
) -> Result<Value> {
    let by = step_of(arguments, interval, step)?;
    let zone = frame.settings().zone;
    Ok(Value::TimestampTz(moved_in_zone(micros_of(arguments, moment)?, by, zone)?))
}

/// Returns the interval by which a time moves.
fn step_of(arguments: &[ValueRef<'_>], interval: usize, step: TimeStep) -> Result<Interval> {
    let by = span(arguments, interval)?;
    if step == TimeStep::Back { by.checked_neg() } else { Ok(by) }
}

fn move_by(
    arguments: &[ValueRef<'_>],
    moment: usize,
    interval: usize,
    step: TimeStep,
) -> Result<Value> {
    let by = step_of(arguments, interval, step)?;
    Ok(like(arguments.get(moment), moved(micros_of(arguments, moment)?, by)?))
}

/// Adds the time part of an interval to a time of day, which wraps around at midnight.
fn turn(arguments: &[ValueRef<'_>], time: usize, interval: usize, step: TimeStep) -> Result<Value> {
    let is_back = step == TimeStep::Back;
    let by = span(arguments, interval)?.micros % DAY;
    let by = if is_back { -by } else { by };
    Ok(Value::Time((micros_of(arguments, time)? + by).rem_euclid(DAY)))
}

fn divide(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let divisor = double(arguments, 1)?;
    if divisor == 0.0 {
        return Err(SqlError::new(SqlState::DivisionByZero, "division by zero"));
    }
    if divisor.is_nan() {
        return Err(crate::types::interval_out_of_range());
    }
    Ok(Value::Interval(span(arguments, 0)?.divide(divisor)?))
}

fn between(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (micros_of(arguments, 0)?, micros_of(arguments, 1)?);
    if infinite(a) || infinite(b) {
        let message = "cannot subtract infinite timestamps";
        return Err(SqlError::new(SqlState::DatetimeFieldOverflow, message));
    }
    let micros = a.checked_sub(b).ok_or_else(timestamp_out_of_range)?;
    Ok(Value::Interval(Interval { micros, ..Interval::default() }.justify_hours()?))
}

/// Returns the difference in years, months and days of the calendar.
pub(in crate::expression::builtin) fn age(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (micros_of(arguments, 0)?, micros_of(arguments, 1)?);
    if infinite(a) || infinite(b) {
        return Err(timestamp_out_of_range());
    }
    let is_negative = a < b;
    let (late, early) = if is_negative { (b, a) } else { (a, b) };
    let fields = |micros: i64| (date_of(micros.div_euclid(DAY)), micros.rem_euclid(DAY));
    let ((year, month, day), time) = fields(late);
    let ((from_year, from_month, from_day), from_time) = fields(early);
    let mut months = (year - from_year) * 12 + i64::from(month) - i64::from(from_month);
    let mut days = i64::from(day) - i64::from(from_day);
    let mut micros = time - from_time;
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    while days < 0 {
        // A borrowed month is that of the earlier time.
        days += i64::from(days_in_month(from_year, from_month));
        months -= 1;
    }
    let interval = Interval { months: months as i32, days: days as i32, micros };
    Ok(Value::Interval(if is_negative { interval.checked_neg()? } else { interval }))
}

fn is_finite(arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(Value::Boolean(!infinite(micros_of(arguments, 0)?)))
}

fn field(arguments: &[ValueRef<'_>], at: usize) -> Result<i64> {
    crate::expression::builtin::integer(arguments, at)
}

fn date(arguments: &[ValueRef<'_>]) -> Result<i64> {
    let (year, month, day) = (field(arguments, 0)?, field(arguments, 1)?, field(arguments, 2)?);
    let out_of_range = || {
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        SqlError::new(SqlState::DatetimeFieldOverflow, message)
    };
    // A negative year is one before Christ.
    let shifted = if year < 0 { year + 1 } else { year };
    let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month));
    let (Some(month), Ok(day), true) = (month, u32::try_from(day), year != 0) else {
        return Err(out_of_range());
    };
    if !(-4712..=5_874_897).contains(&shifted)
        || !(1..=days_in_month(shifted, month)).contains(&day)
    {
        return Err(out_of_range());
    }
    Ok(days_of(shifted, month, day))
}

fn make_date(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let days = date(arguments)?;
    let narrow = i32::try_from(days).ok().filter(|_| is_date(days));
    narrow
        .map(Value::Date)
        .ok_or_else(|| SqlError::new(SqlState::DatetimeFieldOverflow, "date out of range"))
}

fn clock(arguments: &[ValueRef<'_>], at: usize) -> Result<i64> {
    let (hours, minutes) = (field(arguments, at)?, field(arguments, at + 1)?);
    let seconds = double(arguments, at + 2)?;
    let micros = (seconds * 1e6).round_ties_even() as i64;
    // Of fields out of range the sum is not used.
    let total = (hours * HOUR + minutes * MINUTE).saturating_add(micros);
    let is_valid = (0..=24).contains(&hours)
        && (0..=59).contains(&minutes)
        && (0.0..=60.0).contains(&seconds)
        && total <= DAY;
    if !is_valid {
        let message = format!("time field value out of range: {hours}:{minutes:02}:{seconds:02}");
        return Err(SqlError::new(SqlState::DatetimeFieldOverflow, message));
    }
    Ok(total)
}

pub(super) fn make_timestamp(arguments: &[ValueRef<'_>]) -> Result<i64> {
    let days = date(arguments)?;
    let moment = days.checked_mul(DAY).and_then(|it| it.checked_add(clock(arguments, 3).ok()?));
    clock(arguments, 3)?;
    moment.filter(|moment| is_timestamp(*moment)).ok_or_else(timestamp_out_of_range)
}

fn make_interval(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let given = |at: usize| if at < arguments.len() { field(arguments, at) } else { Ok(0) };
    let seconds = if arguments.len() > 6 { double(arguments, 6)? } else { 0.0 };
    let out_of_range = crate::types::interval_out_of_range;
    let narrow = |number: i64| i32::try_from(number).map_err(|_| out_of_range());
    if !seconds.is_finite() {
        return Err(out_of_range());
    }
    let time = given(4)? * HOUR + given(5)? * MINUTE;
    Ok(Value::Interval(Interval {
        months: narrow(given(0)? * 12 + given(1)?)?,
        days: narrow(given(2)? * 7 + given(3)?)?,
        micros: time
            .checked_add((seconds * 1e6).round_ties_even() as i64)
            .ok_or_else(out_of_range)?,
    }))
}

fn from_epoch(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let seconds = double(arguments, 0)?;
    if seconds.is_infinite() {
        let end = if seconds > 0.0 { TIMESTAMP_INFINITY } else { i64::MIN };
        return Ok(Value::TimestampTz(end));
    }
    let micros = (seconds * SECOND as f64).round_ties_even();
    let moment = (micros.abs() < 9.2e18).then_some(micros as i64).filter(|it| is_timestamp(*it));
    moment.map(Value::TimestampTz).ok_or_else(|| {
        let message = format!("timestamp out of range: \"{seconds}\"");
        SqlError::new(SqlState::DatetimeFieldOverflow, message)
    })
}

fn bin(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let stride = span(arguments, 0)?;
    let (moment, origin) = (micros_of(arguments, 1)?, micros_of(arguments, 2)?);
    if infinite(moment) {
        return Ok(like(arguments.get(1), moment));
    }
    if infinite(origin) {
        return Err(SqlError::new(SqlState::DatetimeFieldOverflow, "origin out of range"));
    }
    if stride.months != 0 {
        let what = "timestamps cannot be binned into intervals containing months or years";
        return Err(SqlError::new(SqlState::FeatureNotSupported, what));
    }
    let width =
        i64::from(stride.days).checked_mul(DAY).and_then(|it| it.checked_add(stride.micros));
    let width = width.ok_or_else(crate::types::interval_out_of_range)?;
    if width <= 0 {
        let message = "stride must be greater than zero";
        return Err(SqlError::new(SqlState::DatetimeFieldOverflow, message));
    }
    let offset = moment.checked_sub(origin).ok_or_else(crate::types::interval_out_of_range)?;
    let start = offset.div_euclid(width).checked_mul(width);
    let start = start.and_then(|it| origin.checked_add(it)).filter(|it| is_timestamp(*it));
    Ok(like(arguments.get(1), start.ok_or_else(timestamp_out_of_range)?))
}

/// Declares `overlaps` of times of a type.
const fn overlap(arguments: &'static [DataType]) -> Builtin {
    Builtin::new("overlaps", arguments, Boolean, Implementation::NullTolerant(overlaps))
}

/// Returns whether two periods have a point in time in common. The ends of a period may be given in
/// either order, one of them may be unknown, and its last point does not belong to it.
fn overlaps(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let end = |at: usize| match arguments.get(at) {
        None | Some(ValueRef::Null) => Ok(None),
        Some(_) => micros_of(arguments, at).map(Some),
    };
    let period = |first: usize| -> Result<Option<(i64, Option<i64>)>> {
        Ok(match (end(first)?, end(first + 1)?) {
            (None, None) => None,
            (Some(only), None) | (None, Some(only)) => Some((only, None)),
            (Some(a), Some(b)) => Some((a.min(b), Some(a.max(b)))),
        })
    };
    let (Some((a, a_end)), Some((b, b_end))) = (period(0)?, period(2)?) else {
        return Ok(Value::Null);
    };
    // Whether the later period begins before the earlier one ends.
    let is_before = |start: i64, own_end: Option<i64>, end: Option<i64>| match end {
        None => Value::Null,
        Some(end) if start < end => Value::Boolean(true),
        Some(_) if own_end.is_none() => Value::Null,
        Some(_) => Value::Boolean(false),
    };
    Ok(match a.cmp(&b) {
        Ordering::Greater => is_before(a, a_end, b_end),
        Ordering::Less => is_before(b, b_end, a_end),
        Ordering::Equal if a_end.is_none() || b_end.is_none() => Value::Null,
        Ordering::Equal => Value::Boolean(true),
    })
}

/// Reports a unit that a type does not have.
#[cold]
pub(in crate::expression::builtin) fn unknown_unit(unit: &str, data_type: DataType) -> SqlError {
    invalid(format!("unit \"{unit}\" not recognized for type {data_type}"))
}
