//! Types of `jiff` as DATE, TIME, TIMESTAMP and TIMESTAMP WITH TIME ZONE.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::ColumnValue;
use crate::types::{DAY, Value, ValueRef, date_of, days_of};

fn days(value: Date) -> i64 {
    days_of(value.year().into(), value.month() as u32, value.day() as u32)
}

fn micros(value: Time) -> i64 {
    value.duration_since(Time::midnight()).as_micros() as i64
}

fn date(days: i64) -> Option<Date> {
    let (year, month, day) = date_of(days);
    Date::new(year.try_into().ok()?, month as i8, day as i8).ok()
}

fn time(micros: i64) -> Option<Time> {
    let time = (0..DAY).contains(&micros).then(|| SignedDuration::from_micros(micros))?;
    Time::midnight().checked_add(time).ok()
}

impl From<Date> for Value {
    fn from(value: Date) -> Value {
        // jiff's years end at 9999.
        Value::Date(days(value) as i32)
    }
}

impl<'r> ColumnValue<'r> for Date {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Date(days) = value else { return None };
        date(days.into())
    }
}

impl From<Time> for Value {
    fn from(value: Time) -> Value {
        Value::Time(micros(value))
    }
}

impl<'r> ColumnValue<'r> for Time {
    /// Does not read 24:00:00, which jiff has not.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Time(micros) = value else { return None };
        time(micros)
    }
}

impl From<DateTime> for Value {
    fn from(value: DateTime) -> Value {
        Value::Timestamp(days(value.date()) * DAY + micros(value.time()))
    }
}

impl<'r> ColumnValue<'r> for DateTime {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Timestamp(moment) = value else { return None };
        let date = date(moment.div_euclid(DAY))?;
        Some(date.to_datetime(time(moment.rem_euclid(DAY))?))
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Value {
        let micros = value.as_nanosecond().div_euclid(1000);
        // jiff's years end at 9999.
        Value::TimestampTz(micros as i64)
    }
}

impl<'r> ColumnValue<'r> for Timestamp {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::TimestampTz(micros) = value else { return None };
        Timestamp::from_microsecond(micros).ok()
    }
}

impl From<&Zoned> for Value {
    fn from(value: &Zoned) -> Value {
        value.timestamp().into()
    }
}

impl<'r> ColumnValue<'r> for Zoned {
    /// The moment in UTC: TIMESTAMP WITH TIME ZONE keeps no zone.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        Timestamp::from_value(value).map(|it| it.to_zoned(TimeZone::UTC))
    }
}
