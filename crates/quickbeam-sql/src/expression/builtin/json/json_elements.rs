//! Assignment to a member of a JSONB value, which makes what is missing on the way to it.

use std::borrow::Cow;

use super::json_changes::{not_an_integer, printed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::invalid;
use crate::expression::{Datum, Expr, Frame};
use crate::types::json::{Json, JsonKind};
use crate::types::{Value, ValueRef};

/// Maximum number of elements of an array that an assignment extends.
const MOST: usize = 4_194_303;

/// A subscript of a JSONB value.
#[derive(Clone, Debug)]
pub struct JsonStep {
    /// Its text.
    pub text: String,
    /// Whether it is a number in the statement.
    pub is_number: bool,
}

const NULL: Json<'static> = Json { text: "null", kind: JsonKind::Null };

/// Returns an array of as many NULLs as the subscript says.
fn nulls<'t>(count: usize) -> Result<Vec<Json<'t>>> {
    if count >= MOST {
        let message =
            format!("number of jsonb array elements exceeds the maximum allowed ({MOST})");
        return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
    }
    Ok(vec![NULL; count])
}

/// Returns a value within the objects and arrays that the steps name.
fn nested<'t>(steps: &'t [JsonStep], value: &Json<'t>) -> Result<Json<'t>> {
    let mut value = value.clone();
    for step in steps.iter().rev() {
        let kind = match step.text.trim_start().parse::<i32>() {
            Ok(number) => {
                let mut list = nulls(usize::try_from(number).unwrap_or(0))?;
                list.push(value);
                JsonKind::Array(list)
            }
            Err(_) => JsonKind::Object(vec![(Cow::Borrowed(&step.text[..]), value)]),
        };
        value = Json::made(kind);
    }
    Ok(value)
}

fn set<'t>(
    whole: &mut Json<'t>,
    steps: &'t [JsonStep],
    number: usize,
    value: &Json<'t>,
) -> Result<()> {
    let Some(step) = steps.get(number) else {
        *whole = value.clone();
        return Ok(());
    };
    let rest = steps.get(number + 1..).unwrap_or_default();
    match &mut whole.kind {
        JsonKind::Object(list) => match list.iter_mut().find(|(key, _)| *key == step.text) {
            Some((_, member)) => set(member, steps, number + 1, value)?,
            None => list.push((Cow::Borrowed(&step.text[..]), nested(rest, value)?)),
        },
        JsonKind::Array(list) => {
            let text = &step.text;
            let given: i32 =
                text.trim_start().parse().map_err(|_| not_an_integer(number + 1, text))?;
            let place = if given < 0 { i64::from(given) + list.len() as i64 } else { given.into() };
            let place = usize::try_from(place).map_err(|_| {
                let at = number + 1;
                invalid(format!("path element at position {at} is out of range: {given}"))
            })?;
            match list.get_mut(place) {
                Some(member) => set(member, steps, number + 1, value)?,
                None => {
                    list.extend(nulls(place - list.len())?);
                    list.push(nested(rest, value)?);
                }
            }
        }
        _ => {
            let detail = "The path assumes key is a composite object, but it is a scalar value.";
            return Err(invalid("cannot replace existing key").with_detail(detail));
        }
    }
    Ok(())
}

/// Returns the JSONB value with another value of the member that the steps name. A value that is
/// NULL becomes an object, or an array if the first step is a number.
fn with_json_member(whole: Option<&str>, steps: &[JsonStep], value: Option<&str>) -> Result<Value> {
    let mut whole = match whole {
        Some(whole) => Json::read(whole)?,
        None if steps.first().is_some_and(|first| first.is_number) => {
            Json::made(JsonKind::Array(Vec::new()))
        }
        None => Json::made(JsonKind::Object(Vec::new())),
    };
    let value = value.map_or(Ok(NULL), Json::read)?;
    set(&mut whole, steps, 0, &value)?;
    printed(whole)
}

#[cold]
fn null_subscript() -> SqlError {
    let message = "jsonb subscript in assignment must not be null";
    SqlError::new(SqlState::NullValueNotAllowed, message)
}

/// Evaluates a JSONB value with another member. The arguments are a constant truth value, true if
/// the first step is a number, the JSONB value, the new value, and the steps as texts.
pub fn assign_member<'a>(arguments: &'a [Expr], frame: &Frame<'a>) -> Result<Datum<'a>> {
    let [is_number, whole, value, texts @ ..] = arguments else {
        return Err(SqlError::internal("an assignment to a member of no value"));
    };
    let is_number = is_number.truth(frame)? == Some(true);
    let (whole, value) = (whole.evaluate(frame)?, value.evaluate(frame)?);
    let mut steps = Vec::with_capacity(texts.len());
    for text in texts {
        match text.evaluate(frame)?.as_ref() {
            ValueRef::Text(text) => steps.push(JsonStep { text: text.to_owned(), is_number }),
            _ => return Err(null_subscript()),
        }
    }
    assigned_json(whole.as_ref(), &steps, value.as_ref()).map(Datum::Own)
}

/// Returns a JSONB value with another value of the member that the steps name.
pub fn assigned_json(
    whole: ValueRef<'_>,
    steps: &[JsonStep],
    value: ValueRef<'_>,
) -> Result<Value> {
    let text = |value| match value {
        ValueRef::Jsonb(text) => Some(text),
        _ => None,
    };
    with_json_member(text(whole), steps, text(value))
}
