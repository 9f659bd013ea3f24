//! The values of a foreign key, as ones of the types of the columns that it refers to, and back.

use crate::catalog::Table;
use crate::error::Result;
use crate::types::{CastContext, DataType, TextSettings, Value, ValueRef, convert};

/// Columns of a table, by their positions.
pub(super) type TypedColumns<'t> = (&'t Table, &'t [usize]);

/// Returns whether values of a column can refer to those of another. As in PostgreSQL, they become
/// values of the other type by themselves.
pub(crate) fn can_refer(from: DataType, to: DataType) -> bool {
    let is_number = |of: DataType| {
        of.is_integer() || matches!(of, DataType::Numeric(_) | DataType::Real | DataType::Double)
    };
    let is_text =
        |of: DataType| matches!(of, DataType::Text | DataType::Varchar(_) | DataType::Char(_));
    if from.is_same_kind(to) || (is_text(from) && is_text(to)) {
        return true;
    }
    match (from, to) {
        (DataType::Date, DataType::Timestamp) | (DataType::Timestamp, DataType::Date) => true,
        (DataType::Double | DataType::Real, DataType::Double | DataType::Real) => true,
        (DataType::Double | DataType::Real, _) => false,
        (DataType::Numeric(_), to) => matches!(to, DataType::Real | DataType::Double),
        (from, to) => is_number(from) && is_number(to),
    }
}

/// Returns the new value of a referring column.
pub(super) fn new_value(value: Value, from: DataType, to: DataType) -> Result<Value> {
    if from.is_same_kind(to) {
        return Ok(value);
    }
    cast(value, from, to, CastContext::Assignment)
}

fn cast(value: Value, from: DataType, to: DataType, context: CastContext) -> Result<Value> {
    // A value of CHAR has its blanks, and does not know that they do not count.
    let value = match (&value, from) {
        (Value::Text(text), DataType::Char(_)) => Value::text(text.trim_end_matches(' ')),
        _ => value,
    };
    let from = if matches!(from, DataType::Char(_)) { DataType::Text } else { from };
    convert(value, from, to, context, &TextSettings::DEFAULT)
}

/// Returns the value as one of another type; `None` if no value of that type equals it.
fn converted_one(value: ValueRef<'_>, from: DataType, to: DataType) -> Option<Value> {
    let is_padded = matches!((from, to), (DataType::Char(a), DataType::Char(b)) if a != b);
    if from.is_same_kind(to) && !is_padded {
        return Some(value.to_value());
    }
    if from.is_integer() && to.is_integer() {
        let context = CastContext::Assignment;
        return convert(value.to_value(), from, to, context, &TextSettings::DEFAULT).ok();
    }
    let made = cast(value.to_value(), from, to, CastContext::Assignment).ok()?;
    let back = cast(made.clone(), to, from, CastContext::Assignment).ok()?;
    let is_equal = match (value, &back, from) {
        (ValueRef::Text(one), Value::Text(other), DataType::Char(_)) => {
            one.trim_end_matches(' ') == other.trim_end_matches(' ')
        }
        _ => value.compare(back.as_ref()) == Some(std::cmp::Ordering::Equal),
    };
    is_equal.then_some(made)
}

/// The values of some columns as ones of other columns; `None` when they are no such values.
pub(super) fn converted(
    values: &[ValueRef<'_>],
    (from_table, from): TypedColumns<'_>,
    (to_table, to): TypedColumns<'_>,
) -> Option<Vec<Value>> {
    let places = from.iter().zip(to);
    let one = |(value, (from, to)): (&ValueRef<'_>, (&usize, &usize))| {
        let from = from_table.columns.get(*from)?.data_type;
        converted_one(*value, from, to_table.columns.get(*to)?.data_type)
    };
    values.iter().zip(places).map(one).collect()
}
