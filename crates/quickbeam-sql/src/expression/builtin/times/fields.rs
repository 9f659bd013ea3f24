//! Fields of dates and times: `extract`, `date_part`, `date_trunc`, and AT TIME ZONE.

use jiff::Timestamp as Instant;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::interval_ops::{
    like, make_timestamp, micros_of, moved, span, timestamp_out_of_range, unknown_unit,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::encoded::zoned_times::zoned_time;
use crate::expression::builtin::{Builtin, Implementation, NUMERIC, invalid, strict, text};
use crate::types::encoded::ZonedTime;
use crate::types::{
    DAY, DataType, EncodedKind, HOUR, Interval, MINUTE, Numeric, SECOND, TIMESTAMP_INFINITY, Value,
    ValueRef, date_of, days_of, is_timestamp,
};
use DataType::{Date, Double, Integer, Interval as Span, Text, Time, Timestamp, TimestampTz};

const TIMETZ: DataType = EncodedKind::TimeTz.data_type();

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("extract", &[Text, Date], NUMERIC, extract),
    strict("extract", &[Text, Time], NUMERIC, extract),
    strict("extract", &[Text, TIMETZ], NUMERIC, extract),
    strict("extract", &[Text, Timestamp], NUMERIC, extract),
    strict("extract", &[Text, TimestampTz], NUMERIC, extract),
    strict("extract", &[Text, Span], NUMERIC, extract),
    strict("date_part", &[Text, Date], Double, |v| {
        let midnight = ValueRef::Timestamp(micros_of(v, 1)?);
        part(&[v.first().copied().unwrap_or_default(), midnight])
    }),
    strict("date_part", &[Text, Time], Double, part),
    strict("date_part", &[Text, TIMETZ], Double, part),
    strict("date_part", &[Text, Timestamp], Double, part),
    strict("date_part", &[Text, TimestampTz], Double, part),
    strict("date_part", &[Text, Span], Double, part),
    strict("date_trunc", &[Text, Timestamp], Timestamp, truncate),
    strict("date_trunc", &[Text, TimestampTz], TimestampTz, truncate),
    strict("date_trunc", &[Text, TimestampTz, Text], TimestampTz, truncate_in_zone),
    strict("date_trunc", &[Text, Span], Span, truncate_interval),
    strict(
        "make_timestamptz",
        &[Integer, Integer, Integer, Integer, Integer, Double, Text],
        TimestampTz,
        |v| Ok(Value::TimestampTz(to_instant(make_timestamp(v)?, &zone(text(v, 6)?)?)?)),
    ),
    strict("timezone", &[Text, Timestamp], TimestampTz, |v| {
        Ok(Value::TimestampTz(to_instant(micros_of(v, 1)?, &zone(text(v, 0)?)?)?))
    }),
    strict("timezone", &[Text, TimestampTz], Timestamp, |v| {
        Ok(Value::Timestamp(to_local(micros_of(v, 1)?, &zone(text(v, 0)?)?)?))
    }),
    strict("timezone", &[Span, Timestamp], TimestampTz, |v| {
        Ok(Value::TimestampTz(to_instant(micros_of(v, 1)?, &zone_of(span(v, 0)?)?)?))
    }),
    strict("timezone", &[Span, TimestampTz], Timestamp, |v| {
        Ok(Value::Timestamp(to_local(micros_of(v, 1)?, &zone_of(span(v, 0)?)?)?))
    }),
    Builtin::new(
        "timezone",
        &[Text, TIMETZ],
        TIMETZ,
        Implementation::Stable(|frame, v| {
            let local = to_local(frame.now(), &zone(text(v, 0)?)?)?;
            let east = (local - frame.now()) / SECOND;
            Ok(zoned_time(v, 1)?.moved_to(east as i32).value())
        }),
    ),
    strict("timezone", &[Span, TIMETZ], TIMETZ, |v| {
        let east = i32::try_from(span(v, 0)?.micros / SECOND).unwrap_or_default();
        Ok(zoned_time(v, 1)?.moved_to(east).value())
    }),
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
    Builtin::new("age", &[Timestamp], Span, Implementation::Stable(|frame, v| age(frame.now(), v))),
    Builtin::new(
        "age",
        &[TimestampTz],
        Span,
        Implementation::Stable(|frame, v| age(frame.now(), v)),
    ),
];

fn age(now: i64, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let midnight = now - now.rem_euclid(DAY);
    let moment = micros_of(arguments, 0)?;
    let pair = [ValueRef::Timestamp(midnight), ValueRef::Timestamp(moment)];
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

fn extract(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let unit = text(arguments, 0)?.to_ascii_lowercase();
    let value = arguments.get(1).copied().unwrap_or_default();
    let data_type = value.data_type().unwrap_or(Text);
    let missing = || match KNOWN.contains(&&unit[..]) {
        true => SqlError::new(
            SqlState::FeatureNotSupported,
            format!("unit \"{unit}\" not supported for type {data_type}"),
        ),
        false => unknown_unit(&unit, data_type),
    };
    let found = match value {
        ValueRef::Interval(interval) => interval_field(&unit, interval),
        ValueRef::Encoded(..) => zoned_field(&unit, zoned_time(arguments, 1)?),
        ValueRef::Time(micros) if unit == "epoch" => Some(scaled(micros, 6)),
        ValueRef::Time(micros) => time_field(&unit, micros),
        _ => {
            let micros = micros_of(arguments, 1)?;
            if matches!(micros, TIMESTAMP_INFINITY | i64::MIN) {
                return Err(SqlError::unsupported("a field of an infinite date"));
            }
            let of = fields(micros);
            let is_date = data_type == Date;
            let in_time = (!is_date).then(|| time_field(&unit, of.micros)).flatten();
            match (&unit[..], in_time, date_field(&unit, &of)) {
                (_, Some(found), _) => Some(found),
                (_, _, Some(found)) => Some(Ok(Numeric::from(found))),
                ("epoch", ..) if is_date => Some(Ok(Numeric::from(of.days * 86_400))),
                ("epoch", ..) => Some(scaled(micros, 6)),
                ("julian", ..) if is_date => Some(Ok(Numeric::from(of.days + 2_440_588))),
                ("julian", ..) => {
                    let share = scaled(of.micros, 6)?.checked_div(scaled(DAY, 6)?)?;
                    Some(share.checked_add(Numeric::from(of.days + 2_440_588)))
                }
                ("timezone" | "timezone_hour" | "timezone_minute", ..)
                    if data_type == TimestampTz =>
                {
                    Some(Ok(Numeric::from(0)))
                }
                _ => None,
            }
        }
    };
    Ok(Value::Numeric(found.ok_or_else(missing)??))
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
    match extract(arguments)? {
        Value::Numeric(number) => Ok(Value::Double(number.to_f64())),
        other => Ok(other),
    }
}

/// Returns the start of the unit that contains a timestamp.
fn start_of(unit: &str, micros: i64, data_type: DataType) -> Result<i64> {
    let of = fields(micros);
    let in_day = |length: i64| of.days * DAY + of.micros / length * length;
    let day = match unit {
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

fn truncate_in_zone(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (unit, zone) = (text(arguments, 0)?.to_ascii_lowercase(), zone(text(arguments, 2)?)?);
    let micros = micros_of(arguments, 1)?;
    if matches!(micros, TIMESTAMP_INFINITY | i64::MIN) {
        return Ok(Value::TimestampTz(micros));
    }
    let local = start_of(&unit, to_local(micros, &zone)?, TimestampTz)?;
    Ok(Value::TimestampTz(to_instant(local, &zone)?))
}

fn truncate_interval(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let unit = text(arguments, 0)?.to_ascii_lowercase();
    let it = span(arguments, 1)?;
    let months = |length: i32| Interval { months: it.months / length * length, days: 0, micros: 0 };
    let micros = |length: i64| Interval { micros: it.micros / length * length, ..it };
    Ok(Value::Interval(match &unit[..] {
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

/// Abbreviations with a fixed offset from UTC, in minutes.
const ABBREVIATIONS: &[(&str, i32)] = &[
    ("akdt", -480),
    ("akst", -540),
    ("bst", 60),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("cst", -360),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("est", -300),
    ("gmt", 0),
    ("hst", -600),
    ("jst", 540),
    ("kst", 540),
    ("mdt", -360),
    ("msk", 180),
    ("mst", -420),
    ("nzdt", 780),
    ("nzst", 720),
    ("pdt", -420),
    ("pst", -480),
    ("ut", 0),
    ("utc", 0),
    ("wet", 0),
    ("z", 0),
    ("zulu", 0),
];

fn fixed(seconds: i64) -> Option<TimeZone> {
    Some(Offset::from_seconds(i32::try_from(seconds).ok()?).ok()?.to_time_zone())
}

/// Returns the zone of that name, abbreviation or offset. As in POSIX, a numeric zone is positive
/// to the west.
fn zone(name: &str) -> Result<TimeZone> {
    let unknown = || invalid(format!("time zone \"{name}\" not recognized"));
    let word = name.trim().to_ascii_lowercase();
    if let Some((_, minutes)) = ABBREVIATIONS.iter().find(|(known, _)| *known == word) {
        return fixed(i64::from(*minutes) * 60).ok_or_else(unknown);
    }
    let digits = word.strip_prefix("utc").or(word.strip_prefix("gmt")).unwrap_or(&word);
    if let Some(sign) = digits.chars().next().filter(|c| matches!(c, '+' | '-')) {
        let mut parts = digits[1..].splitn(2, ':');
        let hours: Option<i64> = parts.next().and_then(|text| text.parse().ok());
        let minutes: Option<i64> = parts.next().map_or(Some(0), |text| text.parse().ok());
        if let (Some(hours @ 0..=15), Some(minutes @ 0..=59)) = (hours, minutes) {
            let west = (hours * 60 + minutes) * 60;
            return fixed(if sign == '-' { west } else { -west }).ok_or_else(unknown);
        }
    }
    jiff::tz::TimeZoneDatabase::bundled().get(name.trim()).map_err(|_| unknown())
}

/// Returns the zone at an interval from UTC, positive to the east.
fn zone_of(offset: Interval) -> Result<TimeZone> {
    if offset.months != 0 || offset.days != 0 {
        let what = "interval time zone must not include months or days";
        return Err(invalid(what));
    }
    fixed(offset.micros / SECOND).ok_or_else(|| {
        SqlError::new(SqlState::InvalidTimeZoneDisplacement, "time zone displacement out of range")
    })
}

/// Shifts a timestamp by an offset from UTC.
fn shifted(micros: i64, seconds: i32) -> Result<i64> {
    let by = Interval { micros: i64::from(seconds) * SECOND, ..Interval::default() };
    moved(micros, by)
}

/// Returns the local time of a point in time.
fn to_local(micros: i64, zone: &TimeZone) -> Result<i64> {
    // Beyond the years that the database covers, the offset is that of the nearest one.
    let instant = Instant::from_microsecond(micros).unwrap_or(if micros < 0 {
        Instant::MIN
    } else {
        Instant::MAX
    });
    shifted(micros, zone.to_offset(instant).seconds())
}

/// Returns the point in time of a local time. A time that a transition skips is read with the
/// offset before it, a repeated one with the offset after it.
fn to_instant(micros: i64, zone: &TimeZone) -> Result<i64> {
    if matches!(micros, TIMESTAMP_INFINITY | i64::MIN) {
        return Ok(micros);
    }
    let as_utc = Instant::from_microsecond(micros).unwrap_or(if micros < 0 {
        Instant::MIN
    } else {
        Instant::MAX
    });
    let civil = Offset::UTC.to_datetime(as_utc);
    let offset = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    shifted(micros, -offset.seconds())
}
