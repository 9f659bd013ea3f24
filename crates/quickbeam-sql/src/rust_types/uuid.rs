//! `uuid::Uuid` as UUID.

use uuid::Uuid;

use super::ColumnValue;
use crate::types::{Value, ValueRef};

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Value {
        Value::Uuid(value.into_bytes())
    }
}

impl<'r> ColumnValue<'r> for Uuid {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Uuid(bytes) => Some(Uuid::from_bytes(bytes)),
            _ => None,
        }
    }
}
