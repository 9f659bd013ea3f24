//! INTERVAL: months, days and microseconds. Input is in `input`, output in `output`.
//!
//! - INTERVAL-1: intervals compare by their length with months of 30 days and days of 24 hours;
//!   equal intervals have equal hashes and equal key encodings.

pub(super) mod input;
mod iso8601;
mod units;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::datetime::{DAY, SECOND};
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
        let (months, days) = (f64::from(self.months) * factor, f64::from(self.days) * factor);
        Interval::of_fractions(months, days, self.micros as f64 * factor)
    }

    /// Returns the interval divided by a number that is not 0. As PostgreSQL, which divides each
    /// field, not multiplying by a rounded reciprocal.
    pub fn divide(self, divisor: f64) -> Result<Interval> {
        let (months, days) = (f64::from(self.months) / divisor, f64::from(self.days) / divisor);
        Interval::of_fractions(months, days, self.micros as f64 / divisor)
    }

    /// Returns the interval of these fields. Fractions of months become days, and fractions of
    /// days become microseconds.
    fn of_fractions(months: f64, days: f64, micros: f64) -> Result<Interval> {
        let round = |number: f64| (number * 1e6).round_ties_even() / 1e6;
        let whole = |number: f64| -> Result<i32> {
            let is_in_range = number.is_finite() && number.abs() <= f64::from(i32::MAX);
            if is_in_range { Ok(number as i32) } else { Err(interval_out_of_range()) }
        };
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
        let micros = (micros + seconds * 1e6).round_ties_even();
        if micros.is_nan() || micros.abs() >= 9.2e18 {
            return Err(interval_out_of_range());
        }
        result.micros = micros as i64;
        Ok(result)
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
        // The sum of the days may exceed their range where the months take most of them.
        let days = i64::from(self.days) + self.micros / DAY;
        let months = i64::from(self.months) + days / i64::from(MONTH_DAYS);
        let narrow = |months: i64| i32::try_from(months).map_err(|_| interval_out_of_range());
        let mut result = Interval {
            months: narrow(months)?,
            days: (days % i64::from(MONTH_DAYS)) as i32,
            micros: self.micros % DAY,
        };
        let rest = result.days.signum() * 2 + result.micros.signum() as i32;
        if result.months > 0 && rest < 0 {
            result.days += MONTH_DAYS;
            result.months -= 1;
        } else if result.months < 0 && rest > 0 {
            result.days -= MONTH_DAYS;
            result.months += 1;
        }
        if result.days > 0 && result.micros < 0 {
            result.micros += DAY;
            result.days -= 1;
        } else if result.days < 0 && result.micros > 0 {
            result.micros -= DAY;
            result.days += 1;
        }
        Ok(result)
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
