//! INTERVAL: months, days and microseconds, with text input. Output is in `output`.
//!
//! - INTERVAL-1: intervals compare by their length with months of 30 days and days of 24 hours;
//!   equal intervals have equal hashes and equal key encodings.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::datetime::{DAY, SECOND};
use super::precise::IntervalFields;
use super::text_settings::IntervalStyle;
use crate::error::{Result, SqlError, SqlState};

/// Days of a month in comparisons.
const MONTH_DAYS: i32 = 30;

/// Microseconds of an hour.
pub const HOUR: i64 = 3600 * SECOND;
/// Microseconds of a minute.
pub const MINUTE: i64 = 60 * SECOND;

/// A span of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Months, 12 of which are a year.
    pub months: i32,
    /// Days, whose length depends on the calendar.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// Reports an interval outside the range of its fields.
#[cold]
pub fn interval_out_of_range() -> SqlError {
    SqlError::new(SqlState::DatetimeFieldOverflow, "interval out of range")
}

impl Interval {
    /// Returns the length in microseconds, by which intervals compare (INTERVAL-1).
    #[must_use]
    pub fn length(self) -> i128 {
        let days = i128::from(self.months) * i128::from(MONTH_DAYS) + i128::from(self.days);
        days * i128::from(DAY) + i128::from(self.micros)
    }

    /// Returns the interval of that length with the largest possible months, then days.
    #[must_use]
    pub fn of_length(length: i128) -> Interval {
        let (day, month) = (i128::from(DAY), i128::from(MONTH_DAYS) * i128::from(DAY));
        let narrow = |count: i128| count.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        let months = narrow(length / month);
        let rest = length - i128::from(months) * month;
        let days = narrow(rest / day);
        // What exceeds the range of months and days is less than the range of microseconds.
        Interval { months, days, micros: (rest - i128::from(days) * day) as i64 }
    }

    /// Returns the sum.
    pub fn checked_add(self, other: Interval) -> Result<Interval> {
        let sum = || {
            Some(Interval {
                months: self.months.checked_add(other.months)?,
                days: self.days.checked_add(other.days)?,
                micros: self.micros.checked_add(other.micros)?,
            })
        };
        sum().ok_or_else(interval_out_of_range)
    }

    /// Returns the negated interval.
    pub fn checked_neg(self) -> Result<Interval> {
        let negated = || {
            Some(Interval {
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        negated().ok_or_else(interval_out_of_range)
    }

    /// Returns the interval multiplied by a factor. Fractions of months become days, and fractions
    /// of days become microseconds.
    pub fn checked_mul(self, factor: f64) -> Result<Interval> {
        let round = |number: f64| (number * 1e6).round_ties_even() / 1e6;
        let whole = |number: f64| -> Result<i32> {
            let is_in_range = number.is_finite() && number.abs() <= f64::from(i32::MAX);
            if is_in_range { Ok(number as i32) } else { Err(interval_out_of_range()) }
        };
        let (months, days) = (f64::from(self.months) * factor, f64::from(self.days) * factor);
        let mut result = Interval { months: whole(months)?, days: whole(days)?, micros: 0 };
        let month_days = round((months - f64::from(result.months)) * f64::from(MONTH_DAYS));
        let day_seconds = 86_400.0;
        let rest = days - f64::from(result.days) + month_days - month_days.trunc();
        let mut seconds = round(rest * day_seconds);
        if seconds.abs() >= day_seconds {
            result.days += whole(seconds / day_seconds)?;
            seconds -= (seconds / day_seconds).trunc() * day_seconds;
        }
        result.days =
            result.days.checked_add(whole(month_days)?).ok_or_else(interval_out_of_range)?;
        let micros = (self.micros as f64 * factor + seconds * 1e6).round_ties_even();
        if micros.is_nan() || micros.abs() >= 9.2e18 {
            return Err(interval_out_of_range());
        }
        result.micros = micros as i64;
        Ok(result)
    }

    /// Returns the interval divided by a number that is not 0. As PostgreSQL, which divides each
    /// field, not multiplying by a rounded reciprocal.
    #[must_use]
    pub fn divide(self, divisor: f64) -> Interval {
        let mut result = Interval::default();
        let (months, days) = (f64::from(self.months) / divisor, f64::from(self.days) / divisor);
        (result.months, result.days) = (months as i32, days as i32);
        let round = |number: f64| (number * 1e6).round_ties_even() / 1e6;
        let month_days = round((months - f64::from(result.months)) * f64::from(MONTH_DAYS));
        let rest = days - f64::from(result.days) + month_days - month_days.trunc();
        let mut seconds = round(rest * 86_400.0);
        if seconds.abs() >= 86_400.0 {
            result.days = result.days.saturating_add((seconds / 86_400.0) as i32);
            seconds -= (seconds / 86_400.0).trunc() * 86_400.0;
        }
        result.days = result.days.saturating_add(month_days as i32);
        result.micros = (self.micros as f64 / divisor + seconds * 1e6).round_ties_even() as i64;
        result
    }

    /// Moves whole days of the time part to the days.
    pub fn justify_hours(self) -> Result<Interval> {
        let days = i32::try_from(self.micros / DAY).ok().and_then(|it| self.days.checked_add(it));
        let mut result = Interval {
            days: days.ok_or_else(interval_out_of_range)?,
            micros: self.micros % DAY,
            ..self
        };
        if result.days > 0 && result.micros < 0 {
            result.micros += DAY;
            result.days -= 1;
        } else if result.days < 0 && result.micros > 0 {
            result.micros -= DAY;
            result.days += 1;
        }
        Ok(result)
    }

    /// Moves groups of 30 days to the months.
    pub fn justify_days(self) -> Result<Interval> {
        let months = self.months.checked_add(self.days / MONTH_DAYS);
        let mut result = Interval {
            months: months.ok_or_else(interval_out_of_range)?,
            days: self.days % MONTH_DAYS,
            ..self
        };
        if result.months > 0 && result.days < 0 {
            result.days += MONTH_DAYS;
            result.months -= 1;
        } else if result.months < 0 && result.days > 0 {
            result.days -= MONTH_DAYS;
            result.months += 1;
        }
        Ok(result)
    }

    /// Justifies hours and days, with one sign for all fields.
    pub fn justify(self) -> Result<Interval> {
        let mut result = self.justify_hours()?.justify_days()?;
        let is_positive = |it: &Interval| it.months > 0 || it.months == 0 && it.days > 0;
        if is_positive(&result) && result.micros < 0 {
            result.micros += DAY;
            result.days -= 1;
        } else if (result.months < 0 || result.months == 0 && result.days < 0) && result.micros > 0
        {
            result.micros -= DAY;
            result.days += 1;
        }
        result.justify_days()
    }
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.length() == other.length()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Interval) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Interval) -> Ordering {
        self.length().cmp(&other.length())
    }
}

impl Hash for Interval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.length().hash(state);
    }
}

/// A unit of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalUnit {
    /// A fixed number of months.
    Months(i32),
    /// A fixed number of days.
    Days(i32),
    /// A fixed number of microseconds.
    Micros(i64),
}

impl IntervalUnit {
    /// Returns the unit of that name, in any of PostgreSQL's spellings.
    #[must_use]
    pub fn named(name: &str) -> Option<IntervalUnit> {
        use IntervalUnit::{Days, Micros, Months};
        Some(match &name.to_ascii_lowercase()[..] {
            "us" | "usec" | "usecs" | "useconds" | "usecond" | "microsecond" | "microseconds"
            | "microsecon" => Micros(1),
            "ms" | "msec" | "msecs" | "mseconds" | "msecond" | "millisecond" | "milliseconds"
            | "millisecon" => Micros(1000),
            "s" | "sec" | "secs" | "second" | "seconds" => Micros(SECOND),
            "m" | "min" | "mins" | "minute" | "minutes" => Micros(MINUTE),
            "h" | "hr" | "hrs" | "hour" | "hours" => Micros(HOUR),
            "d" | "day" | "days" => Days(1),
            "w" | "week" | "weeks" => Days(7),
            "mon" | "mons" | "month" | "months" => Months(1),
            "y" | "yr" | "yrs" | "year" | "years" => Months(12),
            "decade" | "decades" | "dec" | "decs" => Months(120),
            "c" | "cent" | "century" | "centuries" => Months(1200),
            "mil" | "mils" | "millennium" | "millennia" => Months(12_000),
            _ => return None,
        })
    }
}

/// Adds `number` units, whose fractions spill into the smaller fields.
fn add_units(interval: &mut Interval, number: f64, unit: IntervalUnit) -> Option<()> {
    let whole = number.trunc();
    let fraction = number - whole;
    let scaled = |count: i32| {
        let product = whole * f64::from(count);
        (product.abs() <= f64::from(i32::MAX)).then_some(product as i32)
    };
    let micros = |number: f64| {
        let rounded = number.round_ties_even();
        (rounded.abs() < 9.2e18).then_some(rounded as i64)
    };
    match unit {
        IntervalUnit::Months(1) => {
            interval.months = interval.months.checked_add(scaled(1)?)?;
            let days = fraction * f64::from(MONTH_DAYS);
            interval.days = interval.days.checked_add(days as i32)?;
            interval.micros = interval.micros.checked_add(micros(days.fract() * DAY as f64)?)?;
        }
        IntervalUnit::Months(count) => {
            let rest = (fraction * f64::from(count)).round_ties_even() as i32;
            let months = scaled(count)?.checked_add(rest)?;
            interval.months = interval.months.checked_add(months)?;
        }
        IntervalUnit::Days(count) => {
            let days = fraction * f64::from(count);
            let sum = scaled(count)?.checked_add(days as i32)?;
            interval.days = interval.days.checked_add(sum)?;
            interval.micros = interval.micros.checked_add(micros(days.fract() * DAY as f64)?)?;
        }
        IntervalUnit::Micros(count) => {
            let sum =
                micros(whole * count as f64)?.checked_add(micros(fraction * count as f64)?)?;
            interval.micros = interval.micros.checked_add(sum)?;
        }
    }
    Some(())
}

/// Reads the time `h:mm[:ss[.f]]`; returns microseconds.
fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next().map_or(Some(0.0), |text| text.parse().ok())?;
    if parts.next().is_some() || minutes > 59 || !(0.0..60.0).contains(&seconds) {
        return None;
    }
    let micros = (seconds * 1e6).round_ties_even() as i64;
    hours.checked_mul(HOUR)?.checked_add(minutes * MINUTE + micros)
}

/// Reads the ISO 8601 form with designators, without its `P`.
fn designated(text: &str) -> Option<Interval> {
    let (mut interval, mut in_time, mut number) = (Interval::default(), false, String::new());
    for character in text.chars() {
        match character {
            '0'..='9' | '.' | '-' | '+' => number.push(character),
            'T' | 't' if number.is_empty() && !in_time => in_time = true,
            letter => {
                let unit = match (letter.to_ascii_uppercase(), in_time) {
                    ('Y', false) => IntervalUnit::Months(12),
                    ('M', false) => IntervalUnit::Months(1),
                    ('W', false) => IntervalUnit::Days(7),
                    ('D', false) => IntervalUnit::Days(1),
                    ('H', true) => IntervalUnit::Micros(HOUR),
                    ('M', true) => IntervalUnit::Micros(MINUTE),
                    ('S', true) => IntervalUnit::Micros(SECOND),
                    _ => return None,
                };
                add_units(&mut interval, number.parse().ok()?, unit)?;
                number.clear();
            }
        }
    }
    number.is_empty().then_some(interval)
}

/// Reads the alternative ISO 8601 form `0001-02-03T04:05:06`, without its `P`.
fn written_as_moment(text: &str) -> Option<Interval> {
    let (date, time) = text.split_once(['T', 't']).map_or((text, None), |(d, t)| (d, Some(t)));
    let fields: Option<Vec<u16>> = date.split('-').map(|field| field.parse().ok()).collect();
    let (years, months, days) = match fields?[..] {
        [years, months] => (years, months, 0),
        [years, months, days] => (years, months, days),
        _ => return None,
    };
    let micros = time.map_or(Some(0), clock)?;
    let months = i32::from(years) * 12 + i32::from(months);
    Some(Interval { months, days: days.into(), micros })
}

/// Returns the text after a sign that is that of all fields, as in the SQL standard: the first
/// field has it, and no other one has a sign.
fn after_common_sign(text: &str) -> Option<&str> {
    let rest = text.trim().strip_prefix('-')?;
    let is_signed = |word: &str| word.starts_with(['-', '+']);
    (!rest.split_ascii_whitespace().any(is_signed)).then_some(rest)
}

/// Reads an interval; a number without a unit counts the last of the fields. In the style of the
/// SQL standard a sign before the first field is that of all.
pub fn parse_interval(
    text: &str,
    fields: IntervalFields,
    style: IntervalStyle,
) -> Result<Interval> {
    if style == IntervalStyle::SqlStandard
        && let Some(rest) = after_common_sign(text)
        && let Ok(positive) = parse_interval(rest, fields, IntervalStyle::Postgres)
    {
        return positive.checked_neg();
    }
    let default = fields.last_unit();
    let clock = |text: &str| match fields {
        // Of two numbers these are minutes and seconds.
        IntervalFields::MinuteToSecond if text.matches(':').count() == 1 => {
            clock(&format!("0:{text}"))
        }
        _ => clock(text),
    };
    let read = || {
        let trimmed = text.trim();
        if let Some(rest) = trimmed.strip_prefix('P') {
            return designated(rest).or_else(|| written_as_moment(rest));
        }
        let mut interval = Interval::default();
        let mut rest = trimmed.strip_prefix('@').unwrap_or(trimmed).trim_start();
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            if rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("ago")) {
                let is_last = rest.len() == 3;
                return interval.checked_neg().ok().filter(|_| is_last);
            }
            let (sign, unsigned) = match rest.strip_prefix('-') {
                Some(unsigned) => (-1, unsigned),
                None => (1, rest.strip_prefix('+').unwrap_or(rest)),
            };
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':' | '-');
            let length = unsigned.find(|c| !is_part(c)).unwrap_or(unsigned.len());
            let (number, after) = unsigned.split_at(length);
            let after = after.trim_start();
            if number.contains(':') {
                let micros = clock(number)?.checked_mul(sign)?;
                interval.micros = interval.micros.checked_add(micros)?;
                rest = after;
                continue;
            }
            if let Some((years, months)) = number.split_once('-') {
                let (years, months): (i32, i32) = (years.parse().ok()?, months.parse().ok()?);
                let total = years.checked_mul(12)?.checked_add(months)?;
                interval.months = interval.months.checked_add(total * sign as i32)?;
                rest = after;
                continue;
            }
            let number: f64 = number.parse::<f64>().ok()? * sign as f64;
            let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
            let (name, later) = after.split_at(end);
            let is_clock = || {
                let next = after.trim_start_matches(['-', '+']);
                let digits = next.bytes().take_while(u8::is_ascii_digit).count();
                digits > 0 && next[digits..].starts_with(':')
            };
            let unit = match name {
                "" if is_clock() => IntervalUnit::Days(1),
                // Of two numbers whose last counts hours, the first counts days.
                "" if default == IntervalUnit::Micros(HOUR)
                    && after.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') =>
                {
                    IntervalUnit::Days(1)
                }
                "" => default,
                name => IntervalUnit::named(name)?,
            };
            add_units(&mut interval, number, unit)?;
            rest = later.trim_start();
        }
        Some(interval)
    };
    read().ok_or_else(|| {
        let message = format!("invalid input syntax for type interval: \"{text}\"");
        SqlError::new(SqlState::InvalidDatetimeFormat, message)
    })
}
