//! The dates and times of jsonpath: the method `datetime`.

use std::cmp::Ordering;

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::times::template_input::{
    TemplateKind, TemplateUse, kind_of_template, read_moment,
};
use crate::types::{
    CastContext, DAY, DataType, SECOND, TextSettings, Value, ValueRef, convert, format_value,
    parse_value,
};

/// A date or a time that a path has read.
#[derive(Clone, Copy, Debug)]
pub(super) enum PathTime {
    /// Days since 1970.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since midnight, and seconds east of UTC.
    ZonedTime(i64, i32),
    /// Microseconds since 1970.
    Moment(i64),
    /// Microseconds since 1970 in UTC, and seconds east of UTC.
    ZonedMoment(i64, i32),
}

#[cold]
fn not_recognized(text: &str) -> SqlError {
    let message = format!("datetime format is not recognized: \"{text}\"");
    SqlError::new(SqlState::InvalidArgumentForSqlJsonDatetime, message)
        .with_hint("Use a datetime template argument to specify the input data format.")
}

#[cold]
fn without_zones(from: &str, to: &str) -> SqlError {
    let message = format!("cannot convert value from {from} to {to} without time zone usage");
    SqlError::new(SqlState::FeatureNotSupported, message)
        .with_hint("Use *_tz() function for time zone support.")
}

/// Takes a number of up to `most` digits from the start of a text.
fn number(text: &str, most: usize) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (1..=most).contains(&end).then(|| text.split_at(end))
}

/// Takes three numbers with a separator between them.
fn three(text: &str, first: usize, separator: char) -> Option<(String, &str)> {
    let (a, rest) = number(text, first)?;
    let (b, rest) = number(rest.strip_prefix(separator)?, 2)?;
    let (c, rest) = number(rest.strip_prefix(separator)?, 2)?;
    Some((format!("{a:0>first$}{separator}{b:0>2}{separator}{c:0>2}"), rest))
}

/// Reads the seconds east of UTC.
fn zone(text: &str) -> Option<i32> {
    let text = text.trim_start();
    let is_west = text.starts_with('-');
    let (hours, rest) = number(text.strip_prefix(['+', '-'])?, 2)?;
    let (minutes, rest) = match rest.strip_prefix(':') {
        Some(rest) => number(rest, 2)?,
        None => ("0", rest),
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = (hours * 60 + minutes) * 60;
    (rest.is_empty() && hours < 16 && minutes < 60)
        .then(|| if is_west { -seconds } else { seconds })
}

/// Reads a time, and what follows it.
fn time(text: &str) -> Option<(i64, &str)> {
    let (whole, rest) = three(text, 2, ':')?;
    let (part, rest) = match rest.strip_prefix('.') {
        Some(rest) => number(rest, 6)?,
        None => ("0", rest),
    };
    let text = format!("{whole}.{part}");
    match parse_value(&text, DataType::Time, &TextSettings::DEFAULT).ok()? {
        Value::Time(micros) if micros < DAY => Some((micros, rest)),
        _ => None,
    }
}

impl PathTime {
    /// Reads a text in one of the forms of ISO 8601 that PostgreSQL takes without a template.
    fn plain(text: &str) -> Option<PathTime> {
        let text = text.trim();
        let Some((date, rest)) = three(text, 4, '-') else {
            let (micros, rest) = time(text)?;
            return match rest {
                "" => Some(PathTime::Time(micros)),
                rest => Some(PathTime::ZonedTime(micros, zone(rest)?)),
            };
        };
        let parsed = parse_value(&date, DataType::Date, &TextSettings::DEFAULT).ok()?;
        let Value::Date(days) = parsed else { return None };
        if rest.is_empty() {
            return Some(PathTime::Date(days));
        }
        let rest = match rest.strip_prefix('T') {
            Some(rest) => rest,
            None => rest.strip_prefix(char::is_whitespace)?.trim_start(),
        };
        let (micros, rest) = time(rest)?;
        let moment = i64::from(days).checked_mul(DAY)?.checked_add(micros)?;
        match rest {
            "" => Some(PathTime::Moment(moment)),
            rest => {
                let east = zone(rest)?;
                Some(PathTime::ZonedMoment(moment - i64::from(east) * SECOND, east))
            }
        }
    }

    /// Reads a text, by a template if there is one.
    pub fn read(text: &str, template: Option<&str>) -> Result<PathTime> {
        let Some(template) = template else {
            return PathTime::plain(text).ok_or_else(|| not_recognized(text));
        };
        let invalid = |message: &str| Err(SqlError::new(SqlState::InvalidDatetimeFormat, message));
        let TemplateKind { has_date, has_time, has_zone } = kind_of_template(template);
        if !has_date && !has_time {
            return invalid("datetime format is not dated and not timed");
        }
        if has_zone && !has_time {
            return invalid("datetime format is zoned but not timed");
        }
        let (moment, east) = read_moment(text, template, TemplateUse::Exact)?;
        let east = match east {
            None if has_zone => return invalid("input string is too short for datetime format"),
            east => i32::try_from(east.unwrap_or(0)).unwrap_or(0),
        };
        let (days, micros) = (moment.div_euclid(DAY), moment.rem_euclid(DAY));
        Ok(match (has_date, has_time, has_zone) {
            (true, false, _) => PathTime::Date(i32::try_from(days).unwrap_or(i32::MAX)),
            (true, true, false) => PathTime::Moment(moment),
            (true, true, true) => PathTime::ZonedMoment(moment - i64::from(east) * SECOND, east),
            (false, _, false) => PathTime::Time(micros),
            (false, _, true) => PathTime::ZonedTime(micros, east),
        })
    }

    /// Returns the name of the type, as the method `type` shows it.
    pub fn name(self) -> &'static str {
        match self {
            PathTime::Date(_) => "date",
            PathTime::Time(_) => "time without time zone",
            PathTime::ZonedTime(..) => "time with time zone",
            PathTime::Moment(_) => "timestamp without time zone",
            PathTime::ZonedMoment(..) => "timestamp with time zone",
        }
    }

    /// Returns the text of ISO 8601.
    pub fn text(self) -> String {
        let (value, east) = match self {
            PathTime::Date(days) => (ValueRef::Date(days), None),
            PathTime::Time(micros) => (ValueRef::Time(micros), None),
            PathTime::ZonedTime(micros, east) => (ValueRef::Time(micros), Some(east)),
            PathTime::Moment(moment) => (ValueRef::Timestamp(moment), None),
            PathTime::ZonedMoment(moment, east) => {
                (ValueRef::Timestamp(moment + i64::from(east) * SECOND), Some(east))
            }
        };
        let mut text = String::new();
        format_value(&mut text, value, &TextSettings::DEFAULT);
        let mut text = text.replace(' ', "T");
        if let Some(east) = east {
            let (sign, seconds) = (if east < 0 { '-' } else { '+' }, east.abs());
            text.push_str(&format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60));
        }
        text
    }

    /// Returns the microseconds since 1970 of a local date or time.
    fn local(self) -> Option<i64> {
        match self {
            PathTime::Date(days) => i64::from(days).checked_mul(DAY),
            PathTime::Moment(moment) => Some(moment),
            _ => None,
        }
    }

    /// Compares two values; `None` for those that have no order. `zone`: the settings with the zone
    /// of values without one, if the function takes it.
    pub fn compare(self, other: PathTime, zone: Option<&TextSettings>) -> Result<Option<Ordering>> {
        use PathTime as P;
        let in_utc = |local: i64, of: PathTime| -> Result<i64> {
            let from = if matches!(of, P::Date(_)) { "date" } else { "timestamp" };
            let settings = zone.ok_or_else(|| without_zones(from, "timestamptz"))?;
            let (from, to) = (DataType::Timestamp, DataType::TimestampTz);
            let value = Value::Timestamp(local);
            match convert(value, from, to, CastContext::Explicit, settings)? {
                Value::TimestampTz(moment) => Ok(moment),
                _ => Err(SqlError::internal("a moment that is none")),
            }
        };
        let zoned = |micros: i64| -> Result<(i64, i32)> {
            let settings = zone.ok_or_else(|| without_zones("time", "timetz"))?;
            let now = crate::types::current_moment();
            let value = Value::TimestampTz(now);
            let (from, to) = (DataType::TimestampTz, DataType::Timestamp);
            let local = match convert(value, from, to, CastContext::Explicit, settings)? {
                Value::Timestamp(local) => local,
                _ => now,
            };
            let east = (local - now) / SECOND;
            Ok((micros, i32::try_from(east).unwrap_or(0)))
        };
        let of_zones = |a: (i64, i32), b: (i64, i32)| {
            let utc = |(micros, east): (i64, i32)| micros - i64::from(east) * SECOND;
            (utc(a), -a.1).cmp(&(utc(b), -b.1))
        };
        if let (Some(a), Some(b)) = (self.local(), other.local()) {
            return Ok(Some(a.cmp(&b)));
        }
        Ok(Some(match (self, other) {
            (P::ZonedMoment(a, _), P::ZonedMoment(b, _)) => a.cmp(&b),
            (P::ZonedMoment(a, _), P::Date(_) | P::Moment(_)) => {
                a.cmp(&in_utc(other.local().unwrap_or_default(), other)?)
            }
            (P::Date(_) | P::Moment(_), P::ZonedMoment(b, _)) => {
                in_utc(self.local().unwrap_or_default(), self)?.cmp(&b)
            }
            (P::Time(a), P::Time(b)) => a.cmp(&b),
            (P::ZonedTime(a, one), P::ZonedTime(b, two)) => of_zones((a, one), (b, two)),
            (P::Time(a), P::ZonedTime(b, east)) => of_zones(zoned(a)?, (b, east)),
            (P::ZonedTime(a, east), P::Time(b)) => of_zones((a, east), zoned(b)?),
            _ => return Ok(None),
        }))
    }
}
