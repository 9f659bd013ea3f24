//! Values of Rust as parameters.

use crate::types::Value;

macro_rules! from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$variant(value.into())
            }
        })*
    };
}

from!(bool => Boolean, i16 => SmallInt, i32 => Integer, i64 => BigInt, u32 => BigInt, f32 => Real, f64 => Double);

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
