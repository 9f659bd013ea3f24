//! JSONB functions and operators that change a value, and JSON functions that return rows.

use std::borrow::Cow;

use super::json_functions::{delivered, is_binary, read, texts};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::json::json_functions::JsonPart;
use crate::expression::builtin::row_functions::FunctionRow;
use crate::expression::builtin::{Builtin, Implementation, integer, invalid, strict, text};
use crate::types::json::{Json, JsonKind, write_string};
use crate::types::{DataType, ElementType, Value, ValueRef};
use DataType::{Boolean, Integer, Json as J, Jsonb as B, Text};

const TEXTS: DataType = DataType::Array(ElementType::TEXT);

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("||", &[B, B], B, concatenate),
    strict("-", &[B, Text], B, remove_key),
    strict("-", &[B, Integer], B, remove_element),
    strict("-", &[B, TEXTS], B, remove_keys),
    strict("#-", &[B, TEXTS], B, remove_path),
    strict("jsonb_set", &[B, TEXTS, B], B, |v| change(v, JsonChange::Set)),
    strict("jsonb_set", &[B, TEXTS, B, Boolean], B, |v| change(v, JsonChange::Set)),
    Builtin::new("jsonb_set_lax", &[B, TEXTS, B], B, Implementation::NullTolerant(set_lax)),
    Builtin::new(
        "jsonb_set_lax",
        &[B, TEXTS, B, Boolean],
        B,
        Implementation::NullTolerant(set_lax),
    ),
    Builtin::new(
        "jsonb_set_lax",
        &[B, TEXTS, B, Boolean, Text],
        B,
        Implementation::NullTolerant(set_lax),
    ),
    strict("jsonb_insert", &[B, TEXTS, B], B, |v| change(v, JsonChange::Insert)),
    strict("jsonb_insert", &[B, TEXTS, B, Boolean], B, |v| change(v, JsonChange::Insert)),
    strict("jsonb_strip_nulls", &[B], B, strip_nulls),
    Builtin::new("json_strip_nulls", &[J], J, Implementation::Strict(strip_nulls)),
];

pub(super) fn printed(value: Json<'_>) -> Result<Value> {
    let mut out = String::new();
    value.write(&mut out)?;
    Ok(Value::jsonb(out))
}

fn concatenate(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (left, right) = (read(arguments, 0)?, read(arguments, 1)?);
    let kind = match (left.kind, right.kind) {
        (JsonKind::Object(mut list), JsonKind::Object(more)) => {
            list.extend(more);
            JsonKind::Object(list)
        }
        (left_kind, right_kind) => {
            let list = |kind, text| match kind {
                JsonKind::Array(list) => list,
                kind => vec![Json { text, kind }],
            };
            let mut all = list(left_kind, left.text);
            all.extend(list(right_kind, right.text));
            JsonKind::Array(all)
        }
    };
    printed(Json::made(kind))
}

fn without(whole: Json<'_>, is_removed: impl Fn(&str) -> bool) -> Result<Value> {
    let kind = match whole.kind {
        JsonKind::Object(mut list) => {
            list.retain(|(key, _)| !is_removed(key));
            JsonKind::Object(list)
        }
        JsonKind::Array(mut list) => {
            list.retain(|value| !matches!(&value.kind, JsonKind::String(text) if is_removed(text)));
            JsonKind::Array(list)
        }
        _ => return Err(invalid("cannot delete from scalar")),
    };
    printed(Json::made(kind))
}

/// Sets the value at a path; the last argument says what a NULL value does.
fn set_lax(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let is_null = |at: usize| arguments.get(at).is_some_and(|value| value.is_null());
    if is_null(0) || is_null(1) || is_null(3) {
        return Ok(Value::Null);
    }
    let treatment = match arguments.get(4) {
        None => "use_json_null",
        Some(_) if is_null(4) => {
            let message = "null_value_treatment must be \"delete_key\", \"return_target\", \
                           \"use_json_null\", or \"raise_exception\"";
            return Err(invalid(message));
        }
        Some(_) => text(arguments, 4)?,
    };
    if !is_null(2) {
        return change(&arguments[..arguments.len().min(4)], JsonChange::Set);
    }
    match treatment {
        "use_json_null" => {
            let mut with_null = arguments[..arguments.len().min(4)].to_vec();
            if let Some(value) = with_null.get_mut(2) {
                *value = ValueRef::Jsonb("null");
            }
            change(&with_null, JsonChange::Set)
        }
        "delete_key" => remove_path(&arguments[..2]),
        "return_target" => Ok(arguments.first().map_or(Value::Null, |whole| whole.to_value())),
        "raise_exception" => {
            let message = "JSON value must not be null";
            let error = SqlError::new(SqlState::NullValueNotAllowed, message);
            Err(error.with_detail(
                "Exception was raised because null_value_treatment is \"raise_exception\".",
            ))
        }
        _ => Err(invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

fn remove_key(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let key = text(arguments, 1)?;
    without(read(arguments, 0)?, |other| other == key)
}

fn remove_keys(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let keys = texts(arguments, 1)?;
    without(read(arguments, 0)?, |other| {
        keys.iter().any(|key| matches!(key, ValueRef::Text(key) if key == other))
    })
}

/// Returns the place of an element, from the end if the number is negative.
fn place_of(number: i64, length: usize) -> Option<usize> {
    let place = if number < 0 { number + length as i64 } else { number };
    usize::try_from(place).ok().filter(|place| *place < length)
}

fn remove_element(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let whole = read(arguments, 0)?;
    match whole.kind {
        JsonKind::Array(mut list) => {
            if let Some(place) = place_of(integer(arguments, 1)?, list.len()) {
                list.remove(place);
            }
            printed(Json::made(JsonKind::Array(list)))
        }
        JsonKind::Object(_) => Err(invalid("cannot delete from object using integer index")),
        _ => Err(invalid("cannot delete from scalar")),
    }
}

/// What is done at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonChange {
    Set,
    Insert,
    Remove,
}

/// A change at the end of a path.
struct PathChange<'v, 'p> {
    change: JsonChange,
    path: &'p [&'v str],
    value: Option<&'p Json<'v>>,
    /// Set: whether a missing member is created. Insert: whether it is after the element.
    flag: bool,
}

#[cold]
pub(super) fn not_an_integer(number: usize, step: &str) -> SqlError {
    let message = format!("path element at position {number} is not an integer: \"{step}\"");
    SqlError::new(SqlState::InvalidTextRepresentation, message)
}

impl<'v> PathChange<'v, '_> {
    fn apply(&self, whole: &mut Json<'v>, depth: usize) -> Result<()> {
        let Some(step) = self.path.get(depth) else { return Ok(()) };
        let is_last = depth + 1 == self.path.len();
        match &mut whole.kind {
            JsonKind::Object(list) => {
                let known = list.iter().position(|(key, _)| key == step);
                match (known, is_last) {
                    (Some(at), false) => {
                        if let Some((_, value)) = list.get_mut(at) {
                            self.apply(value, depth + 1)?;
                        }
                    }
                    (None, false) => {}
                    (Some(at), true) => match (self.change, self.value) {
                        (JsonChange::Set, Some(new)) => list[at].1 = new.clone(),
                        (JsonChange::Insert, _) => {
                            let message = "cannot replace existing key";
                            return Err(invalid(message).with_hint(
                                "Try using the function jsonb_set to replace key value.",
                            ));
                        }
                        _ => {
                            list.remove(at);
                        }
                    },
                    (None, true) => {
                        let creates = match self.change {
                            JsonChange::Set => self.flag,
                            JsonChange::Insert => true,
                            JsonChange::Remove => false,
                        };
                        if let (true, Some(new)) = (creates, self.value) {
                            list.push((Cow::Borrowed(step), new.clone()));
                        }
                    }
                }
            }
            JsonKind::Array(list) => {
                let number: i32 =
                    step.trim().parse().map_err(|_| not_an_integer(depth + 1, step))?;
                let place = place_of(number.into(), list.len());
                match (place, is_last) {
                    (Some(at), false) => {
                        if let Some(value) = list.get_mut(at) {
                            self.apply(value, depth + 1)?;
                        }
                    }
                    (None, false) => {}
                    (place, true) => self.change_element(list, number, place),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn change_element(&self, list: &mut Vec<Json<'v>>, number: i32, place: Option<usize>) {
        match (self.change, self.value, place) {
            (JsonChange::Remove, _, Some(at)) => {
                list.remove(at);
            }
            (JsonChange::Set, Some(new), Some(at)) => list[at] = new.clone(),
            (JsonChange::Insert, Some(new), Some(at)) => {
                list.insert(at + usize::from(self.flag), new.clone());
            }
            (JsonChange::Set, Some(_), None) if !self.flag => {}
            (JsonChange::Set | JsonChange::Insert, Some(new), None) => {
                let at = if number < 0 { 0 } else { list.len() };
                list.insert(at, new.clone());
            }
            _ => {}
        }
    }
}

fn steps<'v>(arguments: &[ValueRef<'v>]) -> Result<Vec<&'v str>> {
    let mut steps = Vec::new();
    for (number, step) in texts(arguments, 1)?.iter().enumerate() {
        match step {
            ValueRef::Text(step) => steps.push(step),
            _ => {
                let message = format!("path element at position {} is null", number + 1);
                return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
            }
        }
    }
    Ok(steps)
}

fn change(arguments: &[ValueRef<'_>], change: JsonChange) -> Result<Value> {
    let mut whole = read(arguments, 0)?;
    if !matches!(whole.kind, JsonKind::Array(_) | JsonKind::Object(_)) {
        return Err(invalid("cannot set path in scalar"));
    }
    let flag = match arguments.get(3) {
        Some(ValueRef::Boolean(flag)) => *flag,
        _ => change == JsonChange::Set,
    };
    if change == JsonChange::Set && !flag && is_empty(&whole) {
        return printed(whole);
    }
    let (path, new) = (steps(arguments)?, read(arguments, 2)?);
    PathChange { change, path: &path, value: Some(&new), flag }.apply(&mut whole, 0)?;
    printed(whole)
}

/// Returns whether there is nothing in an array or object, so that no path is read.
fn is_empty(whole: &Json<'_>) -> bool {
    match &whole.kind {
        JsonKind::Array(list) => list.is_empty(),
        JsonKind::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn remove_path(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut whole = read(arguments, 0)?;
    if !matches!(whole.kind, JsonKind::Array(_) | JsonKind::Object(_)) {
        return Err(invalid("cannot delete path in scalar"));
    }
    if is_empty(&whole) {
        return printed(whole);
    }
    let path = steps(arguments)?;
    PathChange { change: JsonChange::Remove, path: &path, value: None, flag: false }
        .apply(&mut whole, 0)?;
    printed(whole)
}

fn strip(value: &mut Json<'_>) {
    match &mut value.kind {
        JsonKind::Array(list) => list.iter_mut().for_each(strip),
        JsonKind::Object(list) => {
            list.retain(|(_, value)| !matches!(value.kind, JsonKind::Null));
            list.iter_mut().for_each(|(_, value)| strip(value));
        }
        _ => {}
    }
}

/// Appends a value without blanks, its numbers as they are written.
fn print_dense(out: &mut String, value: &Json<'_>) {
    match &value.kind {
        JsonKind::Array(list) => {
            out.push('[');
            for (number, value) in list.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                print_dense(out, value);
            }
            out.push(']');
        }
        JsonKind::Object(list) => {
            out.push('{');
            for (number, (key, value)) in list.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                write_string(out, key);
                out.push(':');
                print_dense(out, value);
            }
            out.push('}');
        }
        JsonKind::String(text) => write_string(out, text),
        _ => out.push_str(value.text),
    }
}

fn strip_nulls(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut value = read(arguments, 0)?;
    strip(&mut value);
    if matches!(arguments.first(), Some(ValueRef::Jsonb(_))) {
        return printed(value);
    }
    let mut out = String::new();
    print_dense(&mut out, &value);
    Ok(Value::json(out))
}

fn members<'v>(arguments: &[ValueRef<'v>], what: &str) -> Result<Vec<(Cow<'v, str>, Json<'v>)>> {
    match read(arguments, 0)?.kind {
        JsonKind::Object(list) => Ok(list),
        JsonKind::Array(_) => Err(invalid(format!("cannot {what} an array"))),
        _ => Err(invalid(format!("cannot {what} a scalar"))),
    }
}

/// Returns a row for each member of an object: its key and its value.
pub(in crate::expression::builtin) fn each(
    arguments: &[ValueRef<'_>],
    form: JsonPart,
) -> Result<Vec<FunctionRow>> {
    let as_text = form == JsonPart::Text;
    let list = members(arguments, "deconstruct")?;
    let binary = is_binary(arguments);
    let row = |(key, value): (Cow<'_, str>, Json<'_>)| {
        vec![Value::text(key), delivered(&value, as_text, binary)]
    };
    Ok(list.into_iter().map(row).collect())
}

/// Returns a row for each key of an object.
pub(in crate::expression::builtin) fn keys(arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
    let list = members(arguments, "call json_object_keys on")?;
    Ok(list.into_iter().map(|(key, _)| vec![Value::text(key)]).collect())
}

/// Returns a row for each element of an array.
pub(in crate::expression::builtin) fn elements(
    arguments: &[ValueRef<'_>],
    form: JsonPart,
) -> Result<Vec<FunctionRow>> {
    let as_text = form == JsonPart::Text;
    let binary = is_binary(arguments);
    match read(arguments, 0)?.kind {
        JsonKind::Array(list) => {
            Ok(list.iter().map(|value| vec![delivered(value, as_text, binary)]).collect())
        }
        JsonKind::Object(_) => Err(invalid("cannot extract elements from an object")),
        _ => Err(invalid("cannot extract elements from a scalar")),
    }
}
