//! Functions of rows, which the binder calls for syntax: the fields of a row, and `IS NULL` of one.

use super::json::json_functions::row_to_json;
use super::{Builtin, Implementation, integer, mismatch, strict};
use crate::error::Result;
use crate::types::{DataType, RowRef, Value, ValueRef};

/// What the fields of a row are tested for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nullness {
    Null,
    NotNull,
}

/// The functions of a row of any type. The names of those that no statement calls have a blank.
static OF_RECORD: &[Builtin] = &[
    strict("field of", &[], DataType::RECORD, |v| {
        let number = usize::try_from(integer(v, 1)?).map_err(|_| mismatch())?;
        Ok(row(v)?.get(number).to_value())
    }),
    null_test("is null", |v| fields_are(v, Nullness::Null)),
    null_test("is not null", |v| fields_are(v, Nullness::NotNull)),
    Builtin::new("row_to_json", &[], DataType::Json, Implementation::Stable(row_to_json)),
];

const fn null_test(name: &'static str, run: super::OfValues) -> Builtin {
    Builtin::new(name, &[], DataType::Boolean, Implementation::NullTolerant(run))
}

/// Returns the function of a row that has that name.
pub fn record_function(name: &str) -> Option<&'static Builtin> {
    OF_RECORD.iter().find(|known| known.name == name)
}

/// Returns the first argument.
pub(super) fn row<'v>(arguments: &[ValueRef<'v>]) -> Result<RowRef<'v>> {
    arguments.first().and_then(|value| value.row()).ok_or_else(mismatch)
}

/// Returns whether all fields of a row are NULL, or none is.
fn fields_are(arguments: &[ValueRef<'_>], wanted: Nullness) -> Result<Value> {
    let wants_null = wanted == Nullness::Null;
    Ok(Value::Boolean(match arguments.first() {
        Some(ValueRef::Null) => wants_null,
        _ => row(arguments)?.fields().all(|field| field.value.is_null() == wants_null),
    }))
}
