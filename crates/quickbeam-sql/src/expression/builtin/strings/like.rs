//! LIKE of BYTEA values, and patterns with an escape character that a statement computes.

use std::str::Chars;

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, bytes, strict, text};
use crate::expression::pattern::{LetterCase, Pattern};
use crate::types::{DataType, Value, ValueRef};
use DataType::{Boolean, Bytea, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("like_escape", &[Text, Text], Text, |v| {
        Ok(Value::text(with_backslashes(text(v, 0)?, text(v, 1)?)?))
    }),
    strict("like_escape", &[Bytea, Bytea], Bytea, |v| {
        let (pattern, escape) =
            (one_character_each(bytes(v, 0)?), one_character_each(bytes(v, 1)?));
        let escaped = with_backslashes(&pattern, &escape)?;
        // Each character came from a byte.
        Ok(Value::bytea(escaped.chars().map(|it| u32::from(it) as u8).collect::<Vec<u8>>()))
    }),
    strict("like of bytes", &[Bytea, Bytea], Boolean, |v| like(v).map(Value::Boolean)),
    strict("not like of bytes", &[Bytea, Bytea], Boolean, |v| Ok(Value::Boolean(!like(v)?))),
];

fn one_character_each(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn like(arguments: &[ValueRef<'_>]) -> Result<bool> {
    let pattern = one_character_each(bytes(arguments, 1)?);
    let pattern = Pattern::new(&pattern, Some('\\'), LetterCase::Kept);
    pattern.try_matches(&one_character_each(bytes(arguments, 0)?))
}

/// Returns a pattern whose escape character is a backslash instead of another one, or of none.
fn with_backslashes(pattern: &str, escape: &str) -> Result<String> {
    let mut characters: Chars<'_> = escape.chars();
    let escape = characters.next();
    if characters.next().is_some() {
        let error = SqlError::new(SqlState::InvalidEscapeSequence, "invalid escape string");
        return Err(error.with_hint("Escape string must be empty or one character."));
    }
    if escape == Some('\\') {
        return Ok(pattern.to_owned());
    }
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut is_escaped = false;
    for character in pattern.chars() {
        if Some(character) == escape && !is_escaped {
            out.push('\\');
            is_escaped = true;
            continue;
        }
        if character == '\\' && !is_escaped {
            out.push('\\');
        }
        out.push(character);
        is_escaped = false;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_backslashes() {
        assert_eq!(with_backslashes("a#%b\\c", "#").unwrap(), "a\\%b\\\\c");
        assert_eq!(with_backslashes("a##b", "#").unwrap(), "a\\#b");
        assert_eq!(with_backslashes("a\\%", "\\").unwrap(), "a\\%");
        assert_eq!(with_backslashes("a\\%", "").unwrap(), "a\\\\%");
        assert!(with_backslashes("a", "ab").is_err());
    }
}
