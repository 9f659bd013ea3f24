//! Types of `time` as DATE, TIME, TIMESTAMP and TIMESTAMP WITH TIME ZONE.

use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};

use super::ColumnValue;
use crate::types::{DAY, Value, ValueRef};

/// The Julian day number of 1970-01-01.
const EPOCH: i32 = 2_440_588;

fn micros(value: Time) -> i64 {
    let (hour, minute, second, micro) = value.as_hms_micro();
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    seconds * 1_000_000 + i64::from(micro)
}

fn time(micros: i64) -> Option<Time> {
    if !(0..DAY).contains(&micros) {
        return None;
    }
    let (seconds, micro) = (micros / 1_000_000, micros % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Time::from_hms_micro(hour as u8, minute as u8, second as u8, micro as u32).ok()
}

impl From<Date> for Value {
    fn from(value: Date) -> Value {
        Value::Date(value.to_julian_day() - EPOCH)
    }
}

impl<'r> ColumnValue<'r> for Date {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Date(days) = value else { return None };
        Date::from_julian_day(days.checked_add(EPOCH)?).ok()
    }
}

impl From<Time> for Value {
    fn from(value: Time) -> Value {
        Value::Time(micros(value))
    }
}

impl<'r> ColumnValue<'r> for Time {
    /// Does not read 24:00:00, which `time` has not.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Time(micros) = value else { return None };
        time(micros)
    }
}

impl From<PrimitiveDateTime> for Value {
    fn from(value: PrimitiveDateTime) -> Value {
        let days = i64::from(value.date().to_julian_day() - EPOCH);
        Value::Timestamp(days * DAY + micros(value.time()))
    }
}

impl<'r> ColumnValue<'r> for PrimitiveDateTime {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Timestamp(moment) = value else { return None };
        let day = i32::try_from(moment.div_euclid(DAY)).ok()?;
        let date = Date::from_julian_day(day.checked_add(EPOCH)?).ok()?;
        Some(PrimitiveDateTime::new(date, time(moment.rem_euclid(DAY))?))
    }
}

impl From<OffsetDateTime> for Value {
    fn from(value: OffsetDateTime) -> Value {
        // The years of `time` end within the range of an i64 in microseconds.
        Value::TimestampTz(value.unix_timestamp_nanos().div_euclid(1000) as i64)
    }
}

impl<'r> ColumnValue<'r> for OffsetDateTime {
    /// The moment in UTC: TIMESTAMP WITH TIME ZONE keeps no offset.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::TimestampTz(micros) = value else { return None };
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()
    }
}
