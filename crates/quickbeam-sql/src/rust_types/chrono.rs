//! Types of `chrono` as DATE, TIME, TIMESTAMP and TIMESTAMP WITH TIME ZONE.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike, Utc};

use super::ColumnValue;
use crate::types::{Value, ValueRef};

/// The day that DATE counts from.
const EPOCH: NaiveDate = NaiveDate::from_ymd_opt(1970, 1, 1).expect("a date of the calendar");

impl From<NaiveDate> for Value {
    fn from(value: NaiveDate) -> Value {
        // chrono's dates span fewer days than an i32 counts.
        Value::Date(value.signed_duration_since(EPOCH).num_days() as i32)
    }
}

impl<'r> ColumnValue<'r> for NaiveDate {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Date(days) = value else { return None };
        EPOCH.checked_add_signed(chrono::Duration::days(days.into()))
    }
}

impl From<NaiveTime> for Value {
    fn from(value: NaiveTime) -> Value {
        // A leap second counts on, to 24:00:00 and less than a second at most.
        let seconds = i64::from(value.num_seconds_from_midnight());
        Value::Time(seconds * 1_000_000 + i64::from(value.nanosecond() / 1000))
    }
}

impl<'r> ColumnValue<'r> for NaiveTime {
    /// Does not read 24:00:00, which chrono has not.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Time(micros) = value else { return None };
        let seconds = u32::try_from(micros / 1_000_000).ok()?;
        NaiveTime::from_num_seconds_from_midnight_opt(seconds, (micros % 1_000_000) as u32 * 1000)
    }
}

impl From<NaiveDateTime> for Value {
    fn from(value: NaiveDateTime) -> Value {
        Value::Timestamp(value.and_utc().timestamp_micros())
    }
}

impl<'r> ColumnValue<'r> for NaiveDateTime {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::Timestamp(micros) = value else { return None };
        DateTime::from_timestamp_micros(micros).map(|it| it.naive_utc())
    }
}

impl<Zone: TimeZone> From<DateTime<Zone>> for Value {
    fn from(value: DateTime<Zone>) -> Value {
        Value::TimestampTz(value.timestamp_micros())
    }
}

impl<'r> ColumnValue<'r> for DateTime<Utc> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::TimestampTz(micros) = value else { return None };
        DateTime::from_timestamp_micros(micros)
    }
}

impl<'r> ColumnValue<'r> for DateTime<Local> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        DateTime::<Utc>::from_value(value).map(Into::into)
    }
}
