//! Functions of texts and of BYTEA values.

use super::functions::{Function, mismatch, out_of_range};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Value, ValueRef};

/// Maximum bytes of a text that a function returns.
const TEXT_LIMIT: usize = 256 << 20;

/// Evaluates a function of a text and up to two more values.
pub fn of_text(function: Function, text: &str, others: [ValueRef<'_>; 2]) -> Result<Value> {
    let [second, third] = others;
    let as_text = |value: ValueRef<'_>| match value {
        ValueRef::Text(text) => Ok(text.to_owned()),
        ValueRef::Null => Ok(" ".to_owned()),
        _ => Err(mismatch()),
    };
    let number = second.as_i64();
    Ok(match function {
        Function::Length => return integer(text.chars().count()),
        Function::OctetLength => return integer(text.len()),
        Function::Lower => Value::text(text.to_lowercase()),
        Function::Upper => Value::text(text.to_uppercase()),
        Function::Substring => {
            return substring(text, number.ok_or_else(mismatch)?, third.as_i64());
        }
        Function::Position => {
            let part = as_text(second)?;
            return integer(text.find(&part).map_or(0, |at| text[..at].chars().count() + 1));
        }
        Function::Trim | Function::TrimStart | Function::TrimEnd => {
            let set: Vec<char> = as_text(second)?.chars().collect();
            Value::text(match function {
                Function::Trim => text.trim_matches(&set[..]),
                Function::TrimStart => text.trim_start_matches(&set[..]),
                _ => text.trim_end_matches(&set[..]),
            })
        }
        Function::Replace => {
            let (from, to) = (as_text(second)?, as_text(third)?);
            let times = if from.is_empty() { 0 } else { text.matches(&from).count() };
            check_size(text.len().saturating_add(times.saturating_mul(to.len())))?;
            Value::text(if times == 0 { text.to_owned() } else { text.replace(&from, &to) })
        }
        Function::Left | Function::Right => {
            let (count, wanted) = (text.chars().count() as i64, number.ok_or_else(mismatch)?);
            let taken =
                if wanted < 0 { count.saturating_add(wanted).max(0) } else { wanted.min(count) };
            let skipped = if function == Function::Left { 0 } else { count - taken };
            Value::text(
                text.chars().skip(skipped as usize).take(taken as usize).collect::<String>(),
            )
        }
        Function::Repeat => {
            let times = usize::try_from(number.ok_or_else(mismatch)?.max(0)).unwrap_or(usize::MAX);
            check_size(text.len().saturating_mul(times))?;
            Value::text(if text.is_empty() { String::new() } else { text.repeat(times) })
        }
        Function::Reverse => Value::text(text.chars().rev().collect::<String>()),
        Function::Concat => {
            let part = as_text(second)?;
            check_size(text.len().saturating_add(part.len()))?;
            Value::text([text, &part].concat())
        }
        _ => return Err(mismatch()),
    })
}

fn integer(count: usize) -> Result<Value> {
    i32::try_from(count).map(Value::Integer).map_err(|_| out_of_range("integer"))
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes > TEXT_LIMIT {
        let message = format!("a text of {bytes} bytes is longer than the limit of {TEXT_LIMIT}");
        return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
    }
    Ok(())
}

/// Returns at most `count` characters from position `start`, counted from 1. Positions before the
/// text count.
fn substring(text: &str, start: i64, count: Option<i64>) -> Result<Value> {
    let (skipped, taken) = part(start, count)?;
    Ok(Value::text(text.chars().skip(skipped).take(taken).collect::<String>()))
}

/// Returns how many characters precede the part that begins at `start`, and its maximum length.
fn part(start: i64, count: Option<i64>) -> Result<(usize, usize)> {
    let end = match count {
        None => i64::MAX,
        Some(count) if count < 0 => {
            let message = "negative substring length not allowed";
            return Err(SqlError::new(SqlState::SubstringError, message));
        }
        Some(count) => start.saturating_add(count),
    };
    let first = start.max(1);
    let taken = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
    Ok((usize::try_from(first - 1).unwrap_or(usize::MAX), taken))
}

/// Evaluates a function of a BYTEA value and up to two more values.
pub fn of_bytes(function: Function, bytes: &[u8], others: [ValueRef<'_>; 2]) -> Result<Value> {
    let [second, third] = others;
    Ok(match (function, second) {
        (Function::Length | Function::OctetLength, _) => return integer(bytes.len()),
        (Function::Concat, ValueRef::Bytea(more)) => {
            check_size(bytes.len().saturating_add(more.len()))?;
            Value::bytea([bytes, more].concat())
        }
        (Function::Position, ValueRef::Bytea([])) => return integer(1),
        (Function::Position, ValueRef::Bytea(wanted)) => {
            let found = bytes.windows(wanted.len()).position(|part| part == wanted);
            return integer(found.map_or(0, |at| at + 1));
        }
        (Function::Substring, start) => {
            let (skipped, taken) = part(start.as_i64().ok_or_else(mismatch)?, third.as_i64())?;
            let rest = bytes.get(skipped..).unwrap_or_default();
            Value::bytea(rest.get(..taken).unwrap_or(rest))
        }
        _ => return Err(mismatch()),
    })
}
