//! Types of times with a precision, and of intervals with fields: TIMESTAMP(3), INTERVAL DAY TO
//! SECOND.
//!
//! Values are those of the plain type, so rows and keys do not differ. A cast to such a type rounds
//! the value to its digits, and drops what is smaller than its last field.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::DataType;
use super::datetime::SECOND;
use super::interval::{HOUR, IntervalUnit, MINUTE};

/// A type that can have a precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TimeKind {
    /// TIME
    Time,
    /// TIMESTAMP
    Timestamp,
    /// TIMESTAMP WITH TIME ZONE
    TimestampTz,
    /// INTERVAL
    Interval,
}

/// The fields that an interval is restricted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum IntervalFields {
    /// All fields.
    All,
    /// YEAR
    Year,
    /// MONTH
    Month,
    /// DAY
    Day,
    /// HOUR
    Hour,
    /// MINUTE
    Minute,
    /// SECOND
    Second,
    /// YEAR TO MONTH
    YearToMonth,
    /// DAY TO HOUR
    DayToHour,
    /// DAY TO MINUTE
    DayToMinute,
    /// DAY TO SECOND
    DayToSecond,
    /// HOUR TO MINUTE
    HourToMinute,
    /// HOUR TO SECOND
    HourToSecond,
    /// MINUTE TO SECOND
    MinuteToSecond,
}

use IntervalFields as F;

impl IntervalFields {
    pub(crate) const ALL: [IntervalFields; 14] = [
        F::All,
        F::Year,
        F::Month,
        F::Day,
        F::Hour,
        F::Minute,
        F::Second,
        F::YearToMonth,
        F::DayToHour,
        F::DayToMinute,
        F::DayToSecond,
        F::HourToMinute,
        F::HourToSecond,
        F::MinuteToSecond,
    ];

    /// Returns the fields from the first to the last of these names, or `None` if there are no
    /// such fields.
    #[must_use]
    pub fn between(first: &str, last: Option<&str>) -> Option<IntervalFields> {
        let name = match last {
            Some(last) => format!("{first} to {last}"),
            None => first.to_owned(),
        };
        let name = name.to_ascii_lowercase();
        F::ALL.into_iter().filter(|fields| *fields != F::All).find(|fields| fields.name() == name)
    }

    /// Returns the words of the type's name.
    const fn name(self) -> &'static str {
        match self {
            F::All => "",
            F::Year => "year",
            F::Month => "month",
            F::Day => "day",
            F::Hour => "hour",
            F::Minute => "minute",
            F::Second => "second",
            F::YearToMonth => "year to month",
            F::DayToHour => "day to hour",
            F::DayToMinute => "day to minute",
            F::DayToSecond => "day to second",
            F::HourToMinute => "hour to minute",
            F::HourToSecond => "hour to second",
            F::MinuteToSecond => "minute to second",
        }
    }

    /// Returns the unit of the last field, which a number without a unit counts.
    #[must_use]
    pub const fn last_unit(self) -> IntervalUnit {
        match self {
            F::Year => IntervalUnit::Months(12),
            F::Month | F::YearToMonth => IntervalUnit::Months(1),
            F::Day => IntervalUnit::Days(1),
            F::Hour | F::DayToHour => IntervalUnit::Micros(HOUR),
            F::Minute | F::DayToMinute | F::HourToMinute => IntervalUnit::Micros(MINUTE),
            F::All | F::Second | F::DayToSecond | F::HourToSecond | F::MinuteToSecond => {
                IntervalUnit::Micros(SECOND)
            }
        }
    }

    /// Returns whether a precision can follow: the last field is SECOND.
    #[must_use]
    pub const fn has_seconds(self) -> bool {
        matches!(self.last_unit(), IntervalUnit::Micros(SECOND))
    }

    /// Returns PostgreSQL's bits of the fields in a type modifier.
    const fn mask(self) -> i32 {
        const YEAR: i32 = 1 << 2;
        const MONTH: i32 = 1 << 1;
        const DAY: i32 = 1 << 3;
        const HOURS: i32 = 1 << 10;
        const MINUTES: i32 = 1 << 11;
        const SECONDS: i32 = 1 << 12;
        match self {
            F::All => 0x7fff,
            F::Year => YEAR,
            F::Month => MONTH,
            F::Day => DAY,
            F::Hour => HOURS,
            F::Minute => MINUTES,
            F::Second => SECONDS,
            F::YearToMonth => YEAR | MONTH,
            F::DayToHour => DAY | HOURS,
            F::DayToMinute => DAY | HOURS | MINUTES,
            F::DayToSecond => DAY | HOURS | MINUTES | SECONDS,
            F::HourToMinute => HOURS | MINUTES,
            F::HourToSecond => HOURS | MINUTES | SECONDS,
            F::MinuteToSecond => MINUTES | SECONDS,
        }
    }
}

/// A type of times with a precision, fields, or both. Three bytes, so that it does not enlarge
/// [`DataType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PreciseType {
    kind: TimeKind,
    fields: IntervalFields,
    /// One more than the digits; 0 for all.
    digits: u8,
}

impl PreciseType {
    /// Maximum number of digits after the point.
    pub const MAX_DIGITS: u8 = 6;

    /// Returns the type with these fractional digits of a second.
    #[must_use]
    pub const fn new(kind: TimeKind, digits: u8) -> PreciseType {
        PreciseType { kind, fields: F::All, digits: digits + 1 }
    }

    /// Returns the type of intervals with these fields and digits, without either INTERVAL.
    #[must_use]
    pub const fn interval(fields: IntervalFields, digits: Option<u8>) -> DataType {
        let digits = match digits {
            Some(digits) => digits + 1,
            None => 0,
        };
        match (fields, digits) {
            (F::All, 0) => DataType::Interval,
            _ => DataType::Precise(PreciseType { kind: TimeKind::Interval, fields, digits }),
        }
    }

    /// Returns the type without precision and fields.
    #[must_use]
    pub const fn plain(self) -> DataType {
        match self.kind {
            TimeKind::Time => DataType::Time,
            TimeKind::Timestamp => DataType::Timestamp,
            TimeKind::TimestampTz => DataType::TimestampTz,
            TimeKind::Interval => DataType::Interval,
        }
    }

    /// Returns the fractional digits of a second; `None` for all.
    #[must_use]
    pub const fn digits(self) -> Option<u8> {
        self.digits.checked_sub(1)
    }

    /// Returns the fields of an interval.
    #[must_use]
    pub const fn fields(self) -> IntervalFields {
        self.fields
    }

    /// Returns fields and precision as the information schema shows them; `None` for all fields.
    #[must_use]
    pub fn interval_words(self) -> Option<String> {
        let words = self.to_string().to_ascii_uppercase();
        (self.fields != F::All).then(|| words.trim_start_matches("INTERVAL ").to_owned())
    }

    /// Returns precision and fields as a number, which is 0 for neither.
    pub(crate) const fn number(self) -> u32 {
        (self.fields as u32) << 8 | self.digits as u32
    }

    /// Returns the type with the precision and fields of that number.
    pub(crate) const fn of_number(kind: TimeKind, number: u32) -> PreciseType {
        let at = (number >> 8) as usize;
        let fields = if at < F::ALL.len() { F::ALL[at] } else { F::All };
        PreciseType { kind, fields, digits: number as u8 }
    }

    /// Returns PostgreSQL's type modifier.
    #[must_use]
    pub fn modifier(self) -> i32 {
        let digits = self.digits().map(i32::from);
        match self.kind {
            TimeKind::Interval => self.fields.mask() << 16 | digits.unwrap_or(0xffff),
            _ => digits.unwrap_or(-1),
        }
    }

    /// Returns the type with PostgreSQL's type modifier.
    #[must_use]
    pub fn of_modifier(kind: TimeKind, modifier: i32) -> PreciseType {
        let all = PreciseType { kind, fields: F::All, digits: 0 };
        let digits = |number: i32| u8::try_from(number + 1).unwrap_or(0);
        match kind {
            _ if modifier < 0 => all,
            TimeKind::Interval => {
                let mask = modifier >> 16;
                let fields = F::ALL.into_iter().find(|fields| fields.mask() == mask);
                let digits = digits(modifier & 0xffff);
                PreciseType { kind, fields: fields.unwrap_or(F::All), digits }
            }
            _ => PreciseType { digits: digits(modifier), ..all },
        }
    }
}

impl fmt::Display for PreciseType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, zone) = match self.kind {
            TimeKind::Time => ("time", " without time zone"),
            TimeKind::Timestamp => ("timestamp", " without time zone"),
            TimeKind::TimestampTz => ("timestamp", " with time zone"),
            TimeKind::Interval => ("interval", ""),
        };
        f.write_str(name)?;
        if self.fields != F::All {
            write!(f, " {}", self.fields.name())?;
        }
        if let Some(digits) = self.digits() {
            write!(f, "({digits})")?;
        }
        f.write_str(zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifier_names_the_type_again() {
        for fields in F::ALL {
            for digits in [None, Some(0), Some(6)] {
                let DataType::Precise(precise) = PreciseType::interval(fields, digits) else {
                    continue;
                };
                let again = PreciseType::of_modifier(TimeKind::Interval, precise.modifier());
                assert_eq!(again, precise);
                assert_eq!(PreciseType::of_number(precise.kind, precise.number()), precise);
            }
        }
        let precise = PreciseType::new(TimeKind::TimestampTz, 3);
        assert_eq!(precise.modifier(), 3);
        assert_eq!(PreciseType::of_modifier(TimeKind::TimestampTz, 3), precise);
        assert_eq!(precise.to_string(), "timestamp(3) with time zone");
    }
}
