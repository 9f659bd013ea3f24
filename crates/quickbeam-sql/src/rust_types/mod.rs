//! Rust types as parameters of statements and as columns of rows.
//!
//! Above: statements and rows. Below: values. The types of other crates are features of their
//! crate's name: `chrono`, `jiff`, `time` and `uuid`.
//!
//! - RUST-TYPES-1: a parameter that does not fit its type in SQL is an error of the statement; the
//!   conversion itself neither fails nor changes the value. Times are cut to microseconds (by type)
//! - RUST-TYPES-2: a column is read as a type only if the type holds every part of the value.

#[cfg(feature = "chrono")]
mod chrono;
mod columns;
#[cfg(feature = "jiff")]
mod jiff;
mod parameters;
pub(crate) mod row;
#[cfg(feature = "time")]
mod time;
#[cfg(feature = "uuid")]
mod uuid;

pub use columns::ColumnValue;
pub use row::{ColumnIndex, OwnedRow, Row};

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::ColumnValue;
    use crate::types::{Interval, Numeric, Value};
    use crate::{Connection, SqlDatabase, SqlState};

    fn connect() -> Connection {
        SqlDatabase::open_in_memory(quickbeam::Options::default()).unwrap().connect()
    }

    /// Sends a parameter as a type of SQL and reads it back.
    fn round_trip<T>(sql_type: &str, sent: T)
    where
        T: Into<Value> + Clone + PartialEq + std::fmt::Debug + for<'r> ColumnValue<'r>,
    {
        let query = format!("SELECT $1::{sql_type} AS it");
        let parameters = [sent.clone().into()];
        let read: T = connect().query_row(&query, &parameters, |row| row.get("it")).unwrap();
        assert_eq!(read, sent, "{sql_type}");
    }

    fn fault(sql_type: &str, sent: impl Into<Value>) -> SqlState {
        let query = format!("SELECT $1::{sql_type}");
        let found = connect().query_row(&query, &[sent.into()], |row| row.get::<Value>(0));
        found.unwrap_err().state()
    }

    #[test]
    fn types_of_the_standard_library_are_read_back_as_sent() {
        round_trip("smallint", i8::MIN);
        round_trip("smallint", u8::MAX);
        round_trip("integer", u16::MAX);
        round_trip("bigint", u32::MAX);
        round_trip("bigint", isize::MIN);
        round_trip("bigint", i64::MAX as usize);
        round_trip("bigint", i64::MAX as u64);
        round_trip("numeric", u64::MAX);
        round_trip("bytea", *b"four");
        round_trip("numeric", Numeric::parse("12.50").unwrap());
        round_trip("interval", Interval { months: 1, days: 2, micros: 3 });
        round_trip("timestamptz", UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001));
        round_trip("timestamptz", UNIX_EPOCH - Duration::from_micros(1));
        assert_eq!(Value::from(std::borrow::Cow::Borrowed("c")), Value::text("c"));
        assert_eq!(Value::from('c'), Value::text("c"));
        assert_eq!(Value::from(&"s".to_owned()), Value::text("s"));
        assert_eq!(Value::from(b"ab"), Value::bytea(b"ab".as_slice()));
    }

    #[test]
    fn parameters_out_of_range_are_errors_of_the_statement() {
        assert_eq!(fault("bigint", u64::MAX), SqlState::NumericValueOutOfRange);
        let late = UNIX_EPOCH + Duration::from_secs(1 << 62);
        assert_eq!(fault("timestamptz", late), SqlState::DatetimeFieldOverflow);
    }

    #[test]
    fn columns_that_a_type_cannot_hold_are_not_read() {
        let connection = connect();
        let read = |query: &str| connection.query_row(query, &[], |row| row.get::<u64>(0));
        assert_eq!(read("SELECT 18446744073709551615").unwrap(), u64::MAX);
        assert!(read("SELECT 18446744073709551616").is_err());
        assert!(read("SELECT 1.5").is_err());
        assert!(read("SELECT -1").is_err());
        let read = |query: &str| connection.query_row(query, &[], |row| row.get::<SystemTime>(0));
        assert!(read("SELECT timestamp '2024-01-01'").is_err());
    }

    #[test]
    fn types_of_chrono_are_read_back_as_sent() {
        use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, Utc};
        for text in ["1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31", "-4000-05-06"] {
            let date: NaiveDate = text.parse().unwrap();
            round_trip("date", date);
            round_trip("timestamp", date.and_hms_micro_opt(23, 59, 59, 999_999).unwrap());
        }
        round_trip("time", "12:34:56.000789".parse::<NaiveTime>().unwrap());
        round_trip("timestamptz", DateTime::<Utc>::from_timestamp_micros(-1).unwrap());
        round_trip("timestamptz", DateTime::<Utc>::from_timestamp_micros(1 << 50).unwrap());
        let here = DateTime::<Utc>::from_timestamp_micros(7).unwrap().with_timezone(&Local);
        round_trip("timestamptz", here);
        // Parts of a microsecond are cut off towards the past.
        let text = |value: Value| {
            connect().query_row("SELECT $1::text", &[value], |row| row.get::<String>(0)).unwrap()
        };
        let fine: NaiveDateTime = "1969-12-31T23:59:59.999999999".parse().unwrap();
        assert_eq!(text(fine.into()), "1969-12-31 23:59:59.999999");
        assert_eq!(fault("date", NaiveDate::MIN), SqlState::DatetimeFieldOverflow);
    }

    #[test]
    fn types_of_jiff_are_read_back_as_sent() {
        use jiff::civil::{Date, DateTime, Time};
        use jiff::{Timestamp, Zoned};
        for text in ["1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31", "0001-01-01"] {
            let date: Date = text.parse().unwrap();
            round_trip("date", date);
            round_trip("timestamp", date.at(23, 59, 59, 999_999_000));
        }
        round_trip("time", "12:34:56.000789".parse::<Time>().unwrap());
        round_trip("timestamptz", Timestamp::from_microsecond(-1).unwrap());
        round_trip("timestamptz", Timestamp::from_microsecond(1 << 50).unwrap());
        let zoned: Zoned = "2024-06-01T12:00:00[Europe/Berlin]".parse().unwrap();
        assert_eq!(Value::from(&zoned), Value::from(zoned.timestamp()));
        let fine: DateTime = "1969-12-31T23:59:59.999999999".parse().unwrap();
        assert_eq!(Value::from(fine), Value::Timestamp(-1));
    }

    #[test]
    fn types_of_time_are_read_back_as_sent() {
        use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};
        for day in [2_440_587, 2_440_588, 2_460_370, 0, 5_373_484] {
            let date = Date::from_julian_day(day).unwrap();
            round_trip("date", date);
            let last = Time::from_hms_micro(23, 59, 59, 999_999).unwrap();
            round_trip("timestamp", PrimitiveDateTime::new(date, last));
        }
        round_trip("time", Time::from_hms_micro(12, 34, 56, 789).unwrap());
        for nanos in [-1000, 0, 1_700_000_000_000_001_000] {
            let moment = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap();
            round_trip("timestamptz", moment);
        }
    }

    #[test]
    fn a_uuid_is_read_back_as_sent() {
        round_trip("uuid", uuid::Uuid::from_u128(0x0123_4567_89ab_cdef));
    }
}
