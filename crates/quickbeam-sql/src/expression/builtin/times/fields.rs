//! Fields of dates and times: `extract`, `date_part`, `date_trunc`, and AT TIME ZONE.

use super::interval_ops::{
    like, local, make_timestamp, micros_of, moment, span, timestamp_out_of_range, unknown_unit,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::encoded::zoned_times::zoned_time;
use crate::expression::builtin::{Builtin, Implementation, NUMERIC, invalid, stable, strict, text};
use crate::types::encoded::ZonedTime;
use crate::types::{
    DAY, DataType, EncodedKind, HOUR, Interval, MINUTE, Numeric, SECOND, SessionZone,
    TIMESTAMP_INFINITY, Value, ValueRef, date_of, days_of, is_timestamp,
};
use DataType::{Date, Double, Integer, Interval as Span, Text, Time, Timestamp, TimestampTz};

const TIMETZ: DataType = EncodedKind::TimeTz.data_type();

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("extract", &[Text, Date], NUMERIC, extract),
    strict("extract", &[Text, Time], NUMERIC, extract),
    strict("extract", &[Text, TIMETZ], NUMERIC, extract),
    strict("extract", &[Text, Timestamp], NUMERIC, extract),
    stable("extract", &[Text, TimestampTz], NUMERIC, extract_zoned),
    strict("extract", &[Text, Span], NUMERIC, extract),
    strict("date_part", &[Text, Date], Double, |v| {
        let midnight = ValueRef::Timestamp(micros_of(v, 1)?);
        part(&[v.first().copied().unwrap_or_default(), midnight])
    }),
    strict("date_part", &[Text, Time], Double, part),
    strict("date_part", &[Text, TIMETZ], Double, part),
    strict("date_part", &[Text, Timestamp], Double, part),
    stable("date_part", &[Text, TimestampTz], Double, |frame, v| {
        extract_zoned(frame, v).map(as_double)
    }),
    strict("date_part", &[Text, Span], Double, part),
    strict("date_trunc", &[Text, Timestamp], Timestamp, truncate),
    stable("date_trunc", &[Text, TimestampTz], TimestampTz, |frame, v| {
        truncate_in(frame.settings().zone, v)
    }),
    strict("date_trunc", &[Text, TimestampTz, Text], TimestampTz, |v| {
        truncate_in(zone(text(v, 2)?)?, v)
    }),
    strict("date_trunc", &[Text, Span], Span, truncate_interval),
    strict(
        "make_timestamptz",
        &[Integer, Integer, Integer, Integer, Integer, Double, Text],
        TimestampTz,
        |v| {
            let zone = SessionZone::of_function(text(v, 6)?)?;
            Ok(Value::TimestampTz(moment(make_timestamp(v)?, zone)?))
        },
    ),
    strict("timezone", &[Text, Timestamp], TimestampTz, |v| {
        Ok(Value::TimestampTz(moment(micros_of(v, 1)?, zone(text(v, 0)?)?)?))
    }),
    strict("timezone", &[Text, TimestampTz], Timestamp, |v| {
        Ok(Value::Timestamp(local(micros_of(v, 1)?, zone(text(v, 0)?)?)?))
    }),
    strict("timezone", &[Span, Timestamp], TimestampTz, |v| {
        Ok(Value::TimestampTz(moment(micros_of(v, 1)?, zone_of(span(v, 0)?)?)?))
    }),
    strict("timezone", &[Span, TimestampTz], Timestamp, |v| {
        Ok(Value::Timestamp(local(micros_of(v, 1)?, zone_of(span(v, 0)?)?)?))
    }),
    Builtin::new(
        "timezone",
        &[Text, TIMETZ],
        TIMETZ,
        Implementation::Stable(|frame, v| {
            let east = zone(text(v, 0)?)?.offset_at(frame.now());
            Ok(zoned_time(v, 1)?.moved_to(east).value())
        }),
    ),
    strict("timezone", &[Span, TIMETZ], TIMETZ, |v| {
        let east = i32::try_from(span(v, 0)?.micros / SECOND).unwrap_or_default();
        Ok(zoned_time(v, 1)?.moved_to(east).value())
    }),
    stable("timestamptz", &[Date, Time], TimestampTz, moment_of_date),
    stable("timestamptz", &[Date, TIMETZ], TimestampTz, moment_of_date),
    Builtin::new(
        "clock_timestamp",
        &[],
        TimestampTz,
        Implementation::Volatile(|frame, _| Ok(Value::TimestampTz(frame.clock_time()))),
    ),
    Builtin::new(
        "statement_timestamp",
        &[],
        TimestampTz,
        Implementation::Stable(|frame, _| Ok(Value::TimestampTz(frame.now()))),
    ),
    stable("age", &[Timestamp], Span, age),
    stable("age", &[TimestampTz], Span, age),
];

/// Returns the moment of a date and a time of day, which may have a zone.
fn moment_of_date(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let midnight = micros_of(arguments, 0)?;
    if matches!(midnight, TIMESTAMP_INFINITY | i64::MIN) {
        return Ok(Value::TimestampTz(midnight));
    }
    let (time, east) = match arguments.get(1) {
        Some(ValueRef::Encoded(..)) => {
            let time = zoned_time(arguments, 1)?;
            (time.micros, Some(i64::from(time.east)))
        }
        _ => (micros_of(arguments, 1)?, None),
    };
    let local = midnight.checked_add(time).ok_or_else(timestamp_out_of_range)?;
    let moment = match east {
        Some(east) => local.checked_sub(east * SECOND).filter(|moment| is_timestamp(*moment)),
        None => return Ok(Value::TimestampTz(moment(local, frame.settings().zone)?)),
    };
    moment.map(Value::TimestampTz).ok_or_else(timestamp_out_of_range)
}

/// Returns the time since a moment until today's midnight.
fn age(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let zone = frame.settings().zone;
    let now = local(frame.now(), zone)?;
    let midnight = now - now.rem_euclid(DAY);
    let since = match arguments.first() {
        Some(ValueRef::TimestampTz(moment)) => local(*moment, zone)?,
        _ => micros_of(arguments, 0)?,
    };
    let pair = [ValueRef::Timestamp(midnight), ValueRef::Timestamp(since)];
    super::interval_ops::age(&pair)
}

/// The date and time fields of a value.
struct Fields {
    year: i64,
    month: u32,
    day: u32,
    days: i64,
    micros: i64,
}

fn fields(micros: i64) -> Fields {
    let days = micros.div_euclid(DAY);
    let (year, month, day) = date_of(days);
    Fields { year, month, day, days, micros: micros.rem_euclid(DAY) }
}

/// Returns the day number of the Monday of the first ISO week of a year.
fn first_week(year: i64) -> i64 {
    let fourth = days_of(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}

/// Returns the ISO year and week of a day number.
pub(in crate::expression::builtin) fn iso_week(days: i64) -> (i64, i64) {
    let (year, ..) = date_of(days);
    let in_year = [year + 1, year, year - 1];
    let year = in_year.into_iter().find(|year| first_week(*year) <= days).unwrap_or(year);
    (year, (days - first_week(year)) / 7 + 1)
}

fn scaled(micros: i64, scale: u8) -> Result<Numeric> {
    Numeric::new(i128::from(micros), scale)
}

/// Returns the number of a group of years, which has no zero.
fn group_of(year: i64, length: i64) -> i64 {
    if year > 0 { (year + length - 1) / length } else { -((length - year) / length) }
}

/// Returns the fields of the time of day that a unit names.
fn time_field(unit: &str, micros: i64) -> Option<Result<Numeric>> {
    Some(match unit {
        "microsecond" | "microseconds" => Ok(Numeric::from(micros % MINUTE)),
        "millisecond" | "milliseconds" => scaled(micros % MINUTE, 3),
        "second" | "seconds" => scaled(micros % MINUTE, 6),
        "minute" | "minutes" => Ok(Numeric::from(micros % HOUR / MINUTE)),
        "hour" | "hours" => Ok(Numeric::from(micros / HOUR)),
        _ => return None,
    })
}

fn date_field(unit: &str, of: &Fields) -> Option<i64> {
    let Fields { year, month, days, .. } = *of;
    Some(match unit {
        "day" | "days" => of.day.into(),
        "month" | "months" => month.into(),
        "quarter" => i64::from((month - 1) / 3 + 1),
        "week" | "weeks" => iso_week(days).1,
        // There is no year 0: the year before 1 is -1.
        "year" | "years" => year - i64::from(year <= 0),
        "decade" | "decades" => year.div_euclid(10),
        "century" | "centuries" => group_of(year, 100),
        "millennium" | "millennia" => group_of(year, 1000),
        "isoyear" => {
            let year = iso_week(days).0;
            year - i64::from(year <= 0)
        }
        "dow" => (days + 4).rem_euclid(7),
        "isodow" => (days + 3).rem_euclid(7) + 1,
        "doy" => days - days_of(year, 1, 1) + 1,
        _ => return None,
    })
}

fn interval_field(unit: &str, of: Interval) -> Option<Result<Numeric>> {
    if let Some(found) = time_field(unit, of.micros) {
        return Some(found);
    }
    let months = i64::from(of.months);
    Some(Ok(Numeric::from(match unit {
        "day" | "days" => i64::from(of.days),
        "month" | "months" => months % 12,
        "quarter" => months % 12 / 3 + 1,
        "year" | "years" => months / 12,
        "decade" | "decades" => months / 120,
        "century" | "centuries" => months / 1200,
        "millennium" | "millennia" => months / 12_000,
        "epoch" => {
            // A year has 365.25 days and a month 30.
            let days = i128::from(months / 12) * 1461 * 6 * 3600
                + i128::from(months % 12) * 30 * 86_400
                + i128::from(of.days) * 86_400;
            return Some(Numeric::new(days * 1_000_000 + i128::from(of.micros), 6));
        }
        _ => return None,
    })))
}

const KNOWN: &[&str] = &[
    "timezone",
    "timezone_h",
    "timezone_hour",
    "timezone_m",
    "timezone_minute",
    "julian",
    "epoch",
    "day",
    "days",
    "month",
    "months",
    "quarter",
    "week",
    "weeks",
    "year",
    "years",
    "decade",
    "decades",
    "century",
    "centuries",
    "millennium",
    "millennia",
    "isoyear",
    "dow",
    "isodow",
    "doy",
    "hour",
    "hours",
    "minute",
    "minutes",
    "second",
    "seconds",
    "millisecond",
    "milliseconds",
    "microsecond",
    "microseconds",
];

/// Returns the name of a unit that has several.
fn canonical(unit: &str) -> &str {
    // PostgreSQL reads ten characters of a unit.
    match unit.get(..10).unwrap_or(unit) {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => "microsecond",
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => "millisecond",
        "s" | "sec" | "secs" => "second",
        "m" | "min" | "mins" => "minute",
        "h" | "hr" | "hrs" => "hour",
        "d" => "day",
        "w" => "week",
        "mon" | "mons" => "month",
        "qtr" => "quarter",
        "y" | "yr" | "yrs" => "year",
        "dec" | "decs" => "decade",
        "c" | "cent" => "century",
        "mil" | "mils" => "millennium",
        "j" | "jd" => "julian",
        _ => unit,
    }
}

/// Returns a field of a moment, in the session's time zone.
fn extract_zoned(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let given = text(arguments, 0)?.to_ascii_lowercase();
    let moment = micros_of(arguments, 1)?;
    if matches!(moment, TIMESTAMP_INFINITY | i64::MIN) {
        return extract_field(arguments, TimestampTz);
    }
    let zone = frame.settings().zone;
    let east = i64::from(zone.offset_at(moment));
    let field = match canonical(&given) {
        "timezone" => Numeric::from(east),
        "timezone_hour" | "timezone_h" => Numeric::from(east / 3600),
        "timezone_minute" | "timezone_m" => Numeric::from(east / 60 % 60),
        "epoch" => scaled(moment, 6)?,
        _ => {
            let of_local = [ValueRef::Text(&given), ValueRef::Timestamp(local(moment, zone)?)];
            return extract_field(&of_local, TimestampTz);
        }
    };
    Ok(Value::Numeric(field))
}

fn extract(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let value = arguments.get(1).copied().unwrap_or_default();
    extract_field(arguments, value.data_type().unwrap_or(Text))
}

/// Returns a field of a value; `data_type` is the type that errors name.
fn extract_field(arguments: &[ValueRef<'_>], data_type: DataType) -> Result<Value> {
    let given = text(arguments, 0)?.to_ascii_lowercase();
    let unit = canonical(&given);
    let value = arguments.get(1).copied().unwrap_or_default();
    let missing = || match KNOWN.contains(&unit) {
        true => SqlError::new(
            SqlState::FeatureNotSupported,
            format!("unit \"{given}\" not supported for type {data_type}"),
        ),
        false => unknown_unit(&given, data_type),
    };
    let found = match value {
        ValueRef::Interval(interval) => interval_field(unit, interval),
        ValueRef::Encoded(..) => zoned_field(unit, zoned_time(arguments, 1)?),
        ValueRef::Time(micros) if unit == "epoch" => Some(scaled(micros, 6)),
        ValueRef::Time(micros) => time_field(unit, micros),
        _ => {
            let micros = micros_of(arguments, 1)?;
            if matches!(micros, TIMESTAMP_INFINITY | i64::MIN) {
                return field_of_infinity(unit, micros > 0, data_type).ok_or_else(missing);
            }
            let of = fields(micros);
            let is_date = data_type == Date;
            let in_time = (!is_date).then(|| time_field(unit, of.micros)).flatten();
            match (unit, in_time, date_field(unit, &of)) {
                (_, Some(found), _) => Some(found),
                (_, _, Some(found)) => Some(Ok(Numeric::from(found))),
                ("epoch", ..) if is_date => Some(Ok(Numeric::from(of.days * 86_400))),
                ("epoch", ..) => Some(scaled(micros, 6)),
                ("julian", ..) if is_date => Some(Ok(Numeric::from(of.days + 2_440_588))),
                ("julian", ..) => {
                    let share = scaled(of.micros, 6)?.checked_div(scaled(DAY, 6)?)?;
                    Some(share.checked_add(Numeric::from(of.days + 2_440_588)))
                }
                _ => None,
            }
        }
    };
    Ok(Value::Numeric(found.ok_or_else(missing)??))
}

/// Returns a field of an infinite time: infinite if it grows with time, otherwise NULL. Returns
/// `None` if the type has no such field.
fn field_of_infinity(unit: &str, is_late: bool, data_type: DataType) -> Option<Value> {
    match unit.strip_suffix('s').unwrap_or(unit) {
        "year" | "decade" | "century" | "millennium" | "isoyear" | "julian" | "epoch" => {
            Some(Value::Numeric(if is_late {
                Numeric::INFINITY
            } else {
                Numeric::NEGATIVE_INFINITY
            }))
        }
        "day" | "month" | "quarter" | "week" | "dow" | "isodow" | "doy" => Some(Value::Null),
        "hour" | "minute" | "second" | "millisecond" | "microsecond" if data_type != Date => {
            Some(Value::Null)
        }
        "timezone" | "timezone_hour" | "timezone_minute" if data_type != Date => Some(Value::Null),
        _ => None,
    }
}

fn zoned_field(unit: &str, time: ZonedTime) -> Option<Result<Numeric>> {
    let east = i64::from(time.east);
    match unit {
        "timezone" => Some(Ok(Numeric::from(east))),
        "timezone_hour" | "timezone_h" => Some(Ok(Numeric::from(east / 3600))),
        "timezone_minute" | "timezone_m" => Some(Ok(Numeric::from(east / 60 % 60))),
        "epoch" => Some(scaled(time.micros - east * SECOND, 6)),
        unit => time_field(unit, time.micros),
    }
}

fn part(arguments: &[ValueRef<'_>]) -> Result<Value> {
    extract(arguments).map(as_double)
}

fn as_double(number: Value) -> Value {
    match number {
        Value::Numeric(number) => Value::Double(number.to_f64()),
        other => other,
    }
}

/// Returns the start of the unit that contains a timestamp.
fn start_of(unit: &str, micros: i64, data_type: DataType) -> Result<i64> {
    let of = fields(micros);
    let in_day = |length: i64| of.days * DAY + of.micros / length * length;
    let day = match canonical(unit) {
        "microsecond" | "microseconds" => return Ok(micros),
        "millisecond" | "milliseconds" => return Ok(in_day(1000)),
        "second" | "seconds" => return Ok(in_day(SECOND)),
        "minute" | "minutes" => return Ok(in_day(MINUTE)),
        "hour" | "hours" => return Ok(in_day(HOUR)),
        "day" | "days" => of.days,
        "week" | "weeks" => of.days - (of.days + 3).rem_euclid(7),
        "month" | "months" => days_of(of.year, of.month, 1),
        "quarter" => days_of(of.year, (of.month - 1) / 3 * 3 + 1, 1),
        "year" | "years" => days_of(of.year, 1, 1),
        "decade" | "decades" => days_of(of.year.div_euclid(10) * 10, 1, 1),
        "century" | "centuries" => days_of((of.year - 1).div_euclid(100) * 100 + 1, 1, 1),
        "millennium" | "millennia" => days_of((of.year - 1).div_euclid(1000) * 1000 + 1, 1, 1),
        _ => return Err(unknown_unit(unit, data_type)),
    };
    let start = day.checked_mul(DAY).filter(|start| is_timestamp(*start));
    start.ok_or_else(timestamp_out_of_range)
}

fn truncate(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let unit = text(arguments, 0)?.to_ascii_lowercase();
    let (value, micros) = (arguments.get(1), micros_of(arguments, 1)?);
    if matches!(micros, TIMESTAMP_INFINITY | i64::MIN) {
        return Ok(like(value, micros));
    }
    let data_type = value.and_then(|value| value.data_type()).unwrap_or(Timestamp);
    Ok(like(value, start_of(&unit, micros, data_type)?))
}

fn truncate_in(zone: SessionZone, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let unit = text(arguments, 0)?.to_ascii_lowercase();
    let micros = micros_of(arguments, 1)?;
    if matches!(micros, TIMESTAMP_INFINITY | i64::MIN) {
        return Ok(Value::TimestampTz(micros));
    }
    let start = start_of(&unit, local(micros, zone)?, TimestampTz)?;
    // Within an hour that is repeated the offset of the moment stays.
    let is_of_day = !matches!(
        canonical(&unit),
        "hour"
            | "hours"
            | "minute"
            | "minutes"
            | "second"
            | "seconds"
            | "millisecond"
            | "milliseconds"
            | "microsecond"
            | "microseconds"
    );
    if is_of_day {
        return Ok(Value::TimestampTz(moment(start, zone)?));
    }
    let east = i64::from(zone.offset_at(micros));
    Ok(Value::TimestampTz(start.checked_sub(east * SECOND).ok_or_else(timestamp_out_of_range)?))
}

fn truncate_interval(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let unit = text(arguments, 0)?.to_ascii_lowercase();
    let it = span(arguments, 1)?;
    let months = |length: i32| Interval { months: it.months / length * length, days: 0, micros: 0 };
    let micros = |length: i64| Interval { micros: it.micros / length * length, ..it };
    Ok(Value::Interval(match canonical(&unit) {
        "millennium" | "millennia" => months(12_000),
        "century" | "centuries" => months(1200),
        "decade" | "decades" => months(120),
        "year" | "years" => months(12),
        "quarter" => months(3),
        "month" | "months" => months(1),
        "day" | "days" => Interval { micros: 0, ..it },
        "hour" | "hours" => micros(HOUR),
        "minute" | "minutes" => micros(MINUTE),
        "second" | "seconds" => micros(SECOND),
        "millisecond" | "milliseconds" => micros(1000),
        "microsecond" | "microseconds" => it,
        "week" | "weeks" => {
            return Err(SqlError::new(
                SqlState::FeatureNotSupported,
                "unit \"week\" not supported for type interval",
            )
            .with_detail("Months usually have fractional weeks."));
        }
        _ => return Err(unknown_unit(&unit, Span)),
    }))
}

/// Returns the zone of that name, abbreviation or offset. As in POSIX, a numeric zone is positive
/// to the west.
fn zone(name: &str) -> Result<SessionZone> {
    SessionZone::of_text(name)
        .ok_or_else(|| invalid(format!("time zone \"{name}\" not recognized")))
}

/// Returns the zone at an interval from UTC, positive to the east.
fn zone_of(offset: Interval) -> Result<SessionZone> {
    if offset.months != 0 || offset.days != 0 {
        let what = "interval time zone must not include months or days";
        return Err(invalid(what));
    }
    let east = i32::try_from(offset.micros / SECOND).map_err(|_| {
        SqlError::new(SqlState::InvalidTimeZoneDisplacement, "time zone displacement out of range")
    });
    east.map(|east| SessionZone::of_offset(east).0)
}
