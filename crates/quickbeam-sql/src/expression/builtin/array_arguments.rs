//! VARIADIC with an array that a statement computes: `concat(VARIADIC names)`.
//!
//! A function that takes any number of arguments has a second entry, whose last argument is the
//! array of them.

use super::{Builtin, Implementation, OfSession, mismatch, overloads};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::types::DataType::{self, Integer, Json, Jsonb, Text};
use crate::types::{Value, ValueRef};

/// What the names of these entries begin with. No statement can write them without quotes.
pub const PREFIX: &str = "variadic ";

const fn entry(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    run: OfSession,
) -> Builtin {
    let implementation = Implementation::StableNullTolerant(run);
    Builtin { is_variadic: true, ..Builtin::new(name, arguments, result, implementation) }
}

pub(super) static TABLE: &[Builtin] = &[
    entry("variadic concat", &[], Text, |f, v| spread(f, "concat", v)),
    entry("variadic concat_ws", &[Text], Text, |f, v| spread(f, "concat_ws", v)),
    entry("variadic format", &[Text], Text, |f, v| match v {
        [pattern, ValueRef::Null] => call(f, "format", &[*pattern]),
        v => spread(f, "format", v),
    }),
    entry("variadic num_nulls", &[], Integer, |f, v| spread(f, "num_nulls", v)),
    entry("variadic num_nonnulls", &[], Integer, |f, v| spread(f, "num_nonnulls", v)),
    entry("variadic json_build_array", &[], Json, |f, v| spread(f, "json_build_array", v)),
    entry("variadic jsonb_build_array", &[], Jsonb, |f, v| spread(f, "jsonb_build_array", v)),
    entry("variadic json_build_object", &[], Json, |f, v| spread(f, "json_build_object", v)),
    entry("variadic jsonb_build_object", &[], Jsonb, |f, v| spread(f, "jsonb_build_object", v)),
    entry("variadic json_extract_path", &[Json], Json, |f, v| spread(f, "json_extract_path", v)),
    entry("variadic jsonb_extract_path", &[Jsonb], Jsonb, |f, v| {
        spread(f, "jsonb_extract_path", v)
    }),
    entry("variadic json_extract_path_text", &[Json], Text, |f, v| {
        spread(f, "json_extract_path_text", v)
    }),
    entry("variadic jsonb_extract_path_text", &[Jsonb], Text, |f, v| {
        spread(f, "jsonb_extract_path_text", v)
    }),
];

/// Calls a function with the elements of the last argument in its place; NULL without an array.
fn spread(frame: &Frame<'_>, name: &str, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some((last, before)) = arguments.split_last() else { return Err(mismatch()) };
    let elements = match last {
        ValueRef::Null => return Ok(Value::Null),
        ValueRef::Array(elements) => elements,
        _ => {
            let message = "VARIADIC argument must be an array";
            return Err(SqlError::new(SqlState::DatatypeMismatch, message));
        }
    };
    let elements = (0..elements.len()).map(|at| elements.get(at));
    let all: Vec<ValueRef<'_>> = before.iter().copied().chain(elements).collect();
    call(frame, name, &all)
}

fn call(frame: &Frame<'_>, name: &str, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let entry = overloads(name).iter().find(|entry| entry.is_variadic).ok_or_else(mismatch)?;
    let is_null = || arguments.iter().any(|value| value.is_null());
    match entry.implementation {
        Implementation::Strict(_) | Implementation::Stable(_) if is_null() => Ok(Value::Null),
        Implementation::Strict(run) | Implementation::NullTolerant(run) => run(arguments),
        Implementation::Stable(run) | Implementation::StableNullTolerant(run) => {
            run(frame, arguments)
        }
        _ => Err(mismatch()),
    }
}
