//! Rust types that columns are read as.

use quickbeam::invariant;
use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::types::{Interval, Numeric, Value, ValueRef};

/// A Rust type that a column can be read as.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::open_in_memory(Default::default())?;
/// # let mut connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
/// use quickbeam_sql::{ColumnValue, ValueRef};
///
/// struct Id(i64);
///
/// impl<'r> ColumnValue<'r> for Id {
///     fn from_value(value: ValueRef<'r>) -> Option<Self> {
///         value.as_i64().map(Id)
///     }
/// }
///
/// let newest: Id = connection.query_row("SELECT max(id) FROM fruit", &[], |row| row.get(0))?;
/// assert_eq!(newest.0, 2);
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub trait ColumnValue<'r>: Sized {
    /// Converts the value, or returns `None` if it has another type or does not fit.
    fn from_value(value: ValueRef<'r>) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl<'r> ColumnValue<'r> for $type {
            fn from_value(value: ValueRef<'r>) -> Option<Self> {
                value.as_i64().and_then(|value| value.try_into().ok())
            }
        })*
    };
}

integers!(i8, i16, i32, i64, isize, u8, u16, u32, usize);

impl<'r> ColumnValue<'r> for u64 {
    /// Reads integers, and NUMERIC without a fraction: where a `u64` beyond BIGINT is kept.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Numeric(value) => whole(value)?.try_into().ok(),
            other => other.as_i64()?.try_into().ok(),
        }
    }
}

impl<'r> ColumnValue<'r> for i128 {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Numeric(value) => whole(value),
            other => other.as_i64().map(i128::from),
        }
    }
}

/// Returns a number as an integer, or `None` if it has a fraction.
fn whole(value: Numeric) -> Option<i128> {
    let stripped = value.stripped();
    let whole = (stripped.scale() == 0).then(|| stripped.mantissa());
    let is_equal = |whole: i128| Numeric::new(whole, 0).is_ok_and(|whole| whole == value);
    invariant!(RUST_TYPES_2, whole.is_none_or(is_equal), "{value} is read as {whole:?}");
    whole
}

impl<'r> ColumnValue<'r> for f64 {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        value.as_f64()
    }
}

impl<'r> ColumnValue<'r> for f32 {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Real(value) => Some(value),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for Numeric {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Numeric(value) => Some(value),
            other => other.as_i64().map(Numeric::from),
        }
    }
}

impl<'r> ColumnValue<'r> for SystemTime {
    /// Reads TIMESTAMP WITH TIME ZONE.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        let ValueRef::TimestampTz(moment) = value else { return None };
        let distance = Duration::from_micros(moment.unsigned_abs());
        if moment < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
    }
}

impl<'r> ColumnValue<'r> for Interval {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Interval(value) => Some(value),
            _ => None,
        }
    }
}

impl<'r, const N: usize> ColumnValue<'r> for [u8; N] {
    /// Reads BYTEA of that length, and UUID as 16 bytes.
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Bytea(bytes) => bytes.try_into().ok(),
            ValueRef::Uuid(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for ValueRef<'r> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        Some(value)
    }
}

impl<'r> ColumnValue<'r> for bool {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Boolean(value) => Some(value),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for &'r str {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for String {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        <&str>::from_value(value).map(str::to_owned)
    }
}

impl<'r> ColumnValue<'r> for Cow<'r, str> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        <&str>::from_value(value).map(Cow::Borrowed)
    }
}

impl<'r> ColumnValue<'r> for &'r [u8] {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Bytea(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for Vec<u8> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        <&[u8]>::from_value(value).map(<[u8]>::to_vec)
    }
}

impl<'r> ColumnValue<'r> for Value {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        Some(value.to_value())
    }
}

impl<'r, T: ColumnValue<'r>> ColumnValue<'r> for Option<T> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_value(value).map(Some) }
    }
}
