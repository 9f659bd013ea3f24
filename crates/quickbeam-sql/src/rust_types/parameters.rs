//! Rust types as parameters of statements.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::types::{Interval, Numeric, Value};

macro_rules! from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$variant(value.into())
            }
        })*
    };
}

from!(
    bool => Boolean, i8 => SmallInt, u8 => SmallInt, i16 => SmallInt, u16 => Integer,
    i32 => Integer, u32 => BigInt, i64 => BigInt, f32 => Real, f64 => Double,
    Numeric => Numeric, Interval => Interval
);

impl From<isize> for Value {
    fn from(value: isize) -> Value {
        Value::BigInt(value as i64)
    }
}

impl From<u64> for Value {
    /// Makes a BIGINT, or a NUMERIC of what is beyond it.
    fn from(value: u64) -> Value {
        match i64::try_from(value) {
            Ok(value) => Value::BigInt(value),
            Err(_) => Value::Numeric(Numeric::from(value)),
        }
    }
}

impl From<usize> for Value {
    /// Makes a BIGINT, or a NUMERIC of what is beyond it.
    fn from(value: usize) -> Value {
        Value::from(value as u64)
    }
}

impl From<SystemTime> for Value {
    /// Makes a TIMESTAMP WITH TIME ZONE; what is beyond its range is an error of the statement.
    fn from(value: SystemTime) -> Value {
        let micros = match value.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).ok(),
            // Rounds down, as the part after 1970 does.
            Err(before) => {
                let nanos = before.duration().as_nanos();
                i64::try_from(nanos.div_ceil(1000)).ok().map(|micros| -micros)
            }
        };
        // Out of range, and unlike the two ends it is no infinity.
        Value::TimestampTz(micros.unwrap_or(i64::MAX - 1))
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Value {
        Value::text(value.as_str())
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(value: Cow<'_, str>) -> Value {
        Value::text(value)
    }
}

impl From<char> for Value {
    fn from(value: char) -> Value {
        Value::text(value.encode_utf8(&mut [0; 4]) as &str)
    }
}

impl From<Arc<[u8]>> for Value {
    fn from(value: Arc<[u8]>) -> Value {
        Value::Bytea(value)
    }
}

impl<const N: usize> From<[u8; N]> for Value {
    fn from(value: [u8; N]) -> Value {
        Value::bytea(value.as_slice())
    }
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(value: &[u8; N]) -> Value {
        Value::bytea(value.as_slice())
    }
}

impl From<&Vec<u8>> for Value {
    fn from(value: &Vec<u8>) -> Value {
        Value::bytea(value.as_slice())
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::text(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::text(value)
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::bytea(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Value {
        Value::bytea(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// Makes a slice of [`Value`](crate::Value)s, the parameters of a statement.
///
/// | Rust | SQL |
/// |---|---|
/// | `bool` | BOOLEAN |
/// | `i8`, `u8`, `i16`; `u16`, `i32`; `u32`, `i64`, `isize` | SMALLINT; INTEGER; BIGINT |
/// | `u64`, `usize` | BIGINT, or NUMERIC beyond its range |
/// | `f32`; `f64`; [`Numeric`](crate::Numeric) | REAL; DOUBLE PRECISION; NUMERIC |
/// | `&str`, `String`, `&String`, `Cow<str>`, `char` | TEXT |
/// | `&[u8]`, `Vec<u8>`, `[u8; N]`, `Arc<[u8]>` | BYTEA |
/// | `SystemTime`; [`Interval`](crate::Interval) | TIMESTAMP WITH TIME ZONE; INTERVAL |
/// | `Option<T>` | NULL, or as `T` |
/// | `chrono`: `NaiveDate`, `NaiveTime`, `NaiveDateTime`, `DateTime` | DATE, TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE |
/// | `jiff`: `Date`, `Time`, `DateTime`, `Timestamp` and `Zoned` | the same |
/// | `time`: `Date`, `Time`, `PrimitiveDateTime`, `OffsetDateTime` | the same |
/// | `uuid`: `Uuid` | UUID |
///
/// The types of `chrono`, `jiff`, `time` and `uuid` need the feature of that name. Columns are read
/// as the same types.
///
/// ```
/// use quickbeam_sql::{Value, params};
///
/// let parameters = params![1, "two", None::<i32>];
/// assert_eq!(parameters, [Value::Integer(1), Value::text("two"), Value::Null]);
/// ```
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::Value::from($value)),*] as &[$crate::Value]
    };
}
