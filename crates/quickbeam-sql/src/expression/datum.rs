//! Values of expressions, and their order.

use std::cmp::Ordering;

use crate::error::{Result, SqlError};
use crate::types::{Value, ValueRef};

/// The value of an expression, borrowed from a row, a parameter or a constant where possible
/// (EXPR-3).
#[derive(Clone, Debug)]
pub enum Datum<'a> {
    /// Borrowed.
    Ref(ValueRef<'a>),
    /// Computed by the evaluation.
    Own(Value),
}

impl<'a> Datum<'a> {
    /// NULL.
    pub const NULL: Datum<'static> = Datum::Ref(ValueRef::Null);

    /// Returns the value, borrowed.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Datum::Ref(value) => *value,
            Datum::Own(value) => value.as_ref(),
        }
    }

    /// Returns the value, owned.
    #[inline]
    pub fn into_value(self) -> Value {
        match self {
            Datum::Ref(value) => value.to_value(),
            Datum::Own(value) => value,
        }
    }

    /// Returns whether the value is NULL.
    pub fn is_null(&self) -> bool {
        self.as_ref().is_null()
    }

    pub(super) fn boolean(truth: Option<bool>) -> Datum<'a> {
        Datum::Ref(truth.map_or(ValueRef::Null, ValueRef::Boolean))
    }
}

/// Compares two values; returns `None` if either is NULL.
#[inline]
pub(super) fn compare(left: ValueRef<'_>, right: ValueRef<'_>) -> Result<Option<Ordering>> {
    match left.compare(right) {
        None if !left.is_null() && !right.is_null() => Err(cannot_compare(left, right)),
        order => Ok(order),
    }
}

#[cold]
fn cannot_compare(left: ValueRef<'_>, right: ValueRef<'_>) -> SqlError {
    SqlError::internal(format!("{:?} is compared with {:?}", left.data_type(), right.data_type()))
}
