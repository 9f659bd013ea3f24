//! The units of an interval, and the sum of its fields.

use super::{HOUR, Interval, IntervalUnit, MINUTE, MONTH_DAYS, interval_out_of_range};
use crate::error::Result;
use crate::types::datetime::{DAY, SECOND};
use crate::types::precise::IntervalFields;

/// Bytes of a word that tell units apart.
const WORD_LENGTH: usize = 10;

/// Why a text is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntervalFault {
    Format,
    Overflow,
}

pub(super) type Read<T> = std::result::Result<T, IntervalFault>;

/// A unit, by its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FieldUnit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

/// The units of a time.
pub(super) const OF_TIME: u16 = (1 << FieldUnit::Day as u8) - 1;

impl FieldUnit {
    pub(super) fn named(word: &str) -> Option<FieldUnit> {
        Some(match word.get(..WORD_LENGTH).unwrap_or(word) {
            "us" | "usec" | "usecs" | "useconds" | "usecond" | "microsecon" => {
                FieldUnit::Microsecond
            }
            "ms" | "msec" | "msecs" | "mseconds" | "msecond" | "millisecon" => {
                FieldUnit::Millisecond
            }
            "s" | "sec" | "secs" | "second" | "seconds" => FieldUnit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => FieldUnit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => FieldUnit::Hour,
            "d" | "day" | "days" => FieldUnit::Day,
            "w" | "week" | "weeks" => FieldUnit::Week,
            "mon" | "mons" | "month" | "months" => FieldUnit::Month,
            "y" | "yr" | "yrs" | "year" | "years" => FieldUnit::Year,
            "decade" | "decades" | "dec" | "decs" => FieldUnit::Decade,
            "c" | "cent" | "century" | "centuries" => FieldUnit::Century,
            "mil" | "mils" | "millennium" | "millennia" => FieldUnit::Millennium,
            _ => return None,
        })
    }

    /// Returns the unit of a last number that has none.
    pub(super) fn last_of(fields: IntervalFields) -> FieldUnit {
        match fields.last_unit() {
            IntervalUnit::Months(12) => FieldUnit::Year,
            IntervalUnit::Months(_) => FieldUnit::Month,
            IntervalUnit::Days(_) => FieldUnit::Day,
            IntervalUnit::Micros(HOUR) => FieldUnit::Hour,
            IntervalUnit::Micros(MINUTE) => FieldUnit::Minute,
            IntervalUnit::Micros(_) => FieldUnit::Second,
        }
    }
}

/// The sum of the fields.
#[derive(Default)]
pub(super) struct FieldSum {
    years: i32,
    months: i32,
    days: i32,
    pub(super) micros: i64,
}

/// Adds to a number, or fails with an overflow.
pub(super) fn add<T>(sum: Option<T>, to: &mut T) -> Read<()> {
    *to = sum.ok_or(IntervalFault::Overflow)?;
    Ok(())
}

impl FieldSum {
    /// Adds a fraction of `scale` microseconds, rounded.
    pub(super) fn add_fraction(&mut self, fraction: f64, scale: i64) -> Read<()> {
        let exact = fraction * scale as f64;
        let (whole, rest) = (exact as i64, exact - exact.trunc());
        let rounded = whole + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        add(self.micros.checked_add(rounded), &mut self.micros)
    }

    pub(super) fn add_micros(&mut self, whole: i64, fraction: f64, scale: i64) -> Read<()> {
        let product = whole.checked_mul(scale).ok_or(IntervalFault::Overflow)?;
        add(self.micros.checked_add(product), &mut self.micros)?;
        self.add_fraction(fraction, scale)
    }

    pub(super) fn add_days(&mut self, whole: i64, scale: i32) -> Read<()> {
        let product = i32::try_from(whole).ok().and_then(|whole| whole.checked_mul(scale));
        add(product.and_then(|product| self.days.checked_add(product)), &mut self.days)
    }

    /// Adds a fraction of `scale` days: whole days, and the rest as a time.
    pub(super) fn add_days_fraction(&mut self, fraction: f64, scale: i32) -> Read<()> {
        let exact = fraction * f64::from(scale);
        add(self.days.checked_add(exact as i32), &mut self.days)?;
        self.add_fraction(exact - exact.trunc(), DAY)
    }

    pub(super) fn add_months(&mut self, whole: i64) -> Read<()> {
        let whole = i32::try_from(whole).ok();
        add(whole.and_then(|whole| self.months.checked_add(whole)), &mut self.months)
    }

    pub(super) fn add_years(&mut self, whole: i64, fraction: f64, scale: i32) -> Read<()> {
        let product = i32::try_from(whole).ok().and_then(|whole| whole.checked_mul(scale));
        add(product.and_then(|product| self.years.checked_add(product)), &mut self.years)?;
        let months = (fraction * f64::from(scale) * 12.0).round_ties_even() as i32;
        add(self.months.checked_add(months), &mut self.months)
    }

    pub(super) fn add_units(&mut self, whole: i64, fraction: f64, unit: FieldUnit) -> Read<()> {
        match unit {
            FieldUnit::Microsecond => self.add_micros(whole, fraction, 1),
            FieldUnit::Millisecond => self.add_micros(whole, fraction, 1000),
            FieldUnit::Second => self.add_micros(whole, fraction, SECOND),
            FieldUnit::Minute => self.add_micros(whole, fraction, MINUTE),
            FieldUnit::Hour => self.add_micros(whole, fraction, HOUR),
            FieldUnit::Day => {
                self.add_days(whole, 1)?;
                self.add_fraction(fraction, DAY)
            }
            FieldUnit::Week => {
                self.add_days(whole, 7)?;
                self.add_days_fraction(fraction, 7)
            }
            FieldUnit::Month => {
                self.add_months(whole)?;
                self.add_days_fraction(fraction, MONTH_DAYS)
            }
            FieldUnit::Year => self.add_years(whole, fraction, 1),
            FieldUnit::Decade => self.add_years(whole, fraction, 10),
            FieldUnit::Century => self.add_years(whole, fraction, 100),
            FieldUnit::Millennium => self.add_years(whole, fraction, 1000),
        }
    }

    pub(super) fn interval(self) -> Result<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        let months = i32::try_from(months).map_err(|_| interval_out_of_range())?;
        Ok(Interval { months, days: self.days, micros: self.micros })
    }

    pub(super) fn negated(self) -> Read<FieldSum> {
        let negated = || {
            Some(FieldSum {
                years: self.years.checked_neg()?,
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        negated().ok_or(IntervalFault::Overflow)
    }
}
