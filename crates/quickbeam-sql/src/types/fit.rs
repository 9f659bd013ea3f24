//! Values within the limits of a type: the length of a text, precision and scale of a number.
//!
//! Above: casts, and COPY, which reads values for columns. Below: the texts of values.

use std::borrow::Cow;

use super::cast::{CastContext, convert};
use super::text::{checked_text, parse_value, without_blanks};
use super::{DataType, TextSettings, Value};
use crate::error::{Result, SqlError, SqlState};

/// Casts a text to a type of texts.
pub(super) fn text_to_text(
    value: Value,
    from: DataType,
    to: DataType,
    context: CastContext,
) -> Result<Value> {
    let Value::Text(text) = &value else { return Ok(value) };
    // Trailing blanks of a CHAR are not significant: a cast to another type removes them.
    let trimmed = match (from, to) {
        (DataType::Char(_), DataType::Char(_)) | (DataType::Text | DataType::Varchar(_), _) => text,
        (DataType::Char(_), _) => without_blanks(text),
        _ => text,
    };
    if let DataType::System(known) = to {
        return Ok(Value::text(known.text(checked_text(trimmed)?)?));
    }
    match fit_text(trimmed, to, context)? {
        Cow::Borrowed(fitted) if fitted.len() == text.len() => Ok(value),
        fitted => Ok(Value::text(fitted)),
    }
}

/// Returns the text as a value of the type, cut or padded with blanks. Unless the cast is
/// explicit, only blanks may be cut off.
fn fit_text(text: &str, to: DataType, context: CastContext) -> Result<Cow<'_, str>> {
    let limit = match to {
        DataType::BPCHAR => usize::MAX,
        DataType::Char(length) | DataType::Varchar(Some(length)) => length as usize,
        _ => usize::MAX,
    };
    // Most texts are within the limit in bytes already.
    let end = if text.len() <= limit { None } else { text.char_indices().nth(limit) };
    let fitted = match end {
        None => text,
        Some((end, _)) => {
            let (kept, rest) = text.split_at(end);
            if context != CastContext::Explicit && rest.bytes().any(|byte| byte != b' ') {
                return Err(SqlError::new(
                    SqlState::StringDataRightTruncation,
                    format!("value too long for type {to}"),
                ));
            }
            kept
        }
    };
    checked_text(fitted)?;
    let DataType::Char(length) = to else { return Ok(Cow::Borrowed(fitted)) };
    let missing = (length as usize).saturating_sub(fitted.chars().count());
    if missing == 0 {
        return Ok(Cow::Borrowed(fitted));
    }
    Ok(Cow::Owned([fitted, &" ".repeat(missing)].concat()))
}

/// Reads the text of a value that is assigned to a column of that type.
pub fn parse_assigned(text: &str, to: DataType, settings: &TextSettings) -> Result<Value> {
    match to {
        DataType::Char(_) | DataType::Varchar(Some(_)) => {
            Ok(Value::text(fit_text(text, to, CastContext::Assignment)?))
        }
        _ => fit_assigned(parse_value(text, to, settings)?, to, settings),
    }
}

/// Returns a value of the type without limits, assigned to a column of the type with them.
pub fn fit_assigned(value: Value, to: DataType, settings: &TextSettings) -> Result<Value> {
    let is_limited = matches!(
        to,
        DataType::Char(_)
            | DataType::Varchar(Some(_))
            | DataType::Numeric(Some(_))
            | DataType::WideNumeric(_)
            | DataType::Precise(_)
    );
    if !is_limited {
        return Ok(value);
    }
    let from = to.unconstrained();
    let from = if matches!(from, DataType::Char(_)) { DataType::Text } else { from };
    convert(value, from, to, CastContext::Assignment, settings)
}
