//! `format`, and the quoting of literals and identifiers.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::{
    Builtin, Implementation, append, check_size, invalid, mismatch, stable, strict, text, variadic,
};
use crate::keywords::{KeywordCategory, keyword_category};
use crate::types::{DataType, TextSettings, Value, ValueRef, parse_value};
use DataType::Text;

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    stable("format", &[Text], Text, format),
    variadic("format", &[Text], format),
    strict("quote_ident", &[Text], Text, |v| Ok(Value::text(identifier(text(v, 0)?)))),
    strict("quote_literal", &[Text], Text, |v| Ok(Value::text(literal(text(v, 0)?)))),
    Builtin {
        implementation: Implementation::NullTolerant(nullable),
        ..strict("quote_nullable", &[Text], Text, nullable)
    },
];

/// Returns whether a word is a name of anything without quotes.
fn is_bare_name(word: &str) -> bool {
    matches!(keyword_category(word), None | Some(KeywordCategory::Unreserved))
}

/// Returns an identifier, quoted if a statement has to quote it.
fn identifier(name: &str) -> String {
    let is_plain = name.bytes().enumerate().all(|(at, byte)| {
        byte == b'_' || byte.is_ascii_lowercase() || at > 0 && byte.is_ascii_digit()
    });
    if is_plain && !name.is_empty() && is_bare_name(name) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns a text as a literal; with backslashes as one in the escape syntax.
fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

fn nullable(arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(Value::text(match arguments.first() {
        Some(ValueRef::Null) => "NULL".to_owned(),
        Some(ValueRef::Text(text)) => literal(text),
        _ => return Err(mismatch()),
    }))
}

/// One `%` specification: its argument's position, its width, and how it is written.
struct Specification {
    position: Option<usize>,
    is_left: bool,
    width: Width,
    kind: char,
}

enum Width {
    None,
    Fixed(i64),
    Argument(Option<usize>),
}

#[cold]
fn unterminated() -> SqlError {
    invalid("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
}

/// Reads digits from the start of the text.
fn digits(rest: &mut &str) -> Result<Option<i64>> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at(length);
    *rest = after;
    if digits.is_empty() {
        return Ok(None);
    }
    let number = digits
        .parse::<i32>()
        .map_err(|_| SqlError::new(SqlState::NumericValueOutOfRange, "number is out of range"))?;
    Ok(Some(number.into()))
}

/// Reads a position such as `2$`, checking that it is not zero.
fn position(number: i64) -> Result<usize> {
    match usize::try_from(number) {
        Ok(0) | Err(_) => {
            Err(invalid("format specifies argument 0, but arguments are numbered from 1"))
        }
        Ok(position) => Ok(position),
    }
}

fn specification(rest: &mut &str) -> Result<Specification> {
    let mut found = Specification { position: None, is_left: false, width: Width::None, kind: ' ' };
    let mut number = digits(rest)?;
    if let (Some(position_number), Some(after)) = (number, rest.strip_prefix('$')) {
        found.position = Some(position(position_number)?);
        *rest = after;
        number = None;
    }
    if number.is_none() {
        while let Some(after) = rest.strip_prefix('-') {
            found.is_left = true;
            *rest = after;
        }
        if let Some(after) = rest.strip_prefix('*') {
            *rest = after;
            let argument = digits(rest)?;
            if let Some(argument) = argument {
                *rest = rest
                    .strip_prefix('$')
                    .ok_or_else(|| invalid("width argument position must be ended by \"$\""))?;
                found.width = Width::Argument(Some(position(argument)?));
            } else {
                found.width = Width::Argument(None);
            }
        } else {
            number = digits(rest)?;
        }
    }
    if let Some(number) = number {
        found.width = Width::Fixed(number);
    }
    let kind = rest.chars().next().ok_or_else(unterminated)?;
    *rest = &rest[kind.len_utf8()..];
    found.kind = kind;
    Ok(found)
}

fn written(kind: char, value: ValueRef<'_>, settings: &TextSettings) -> Result<String> {
    let mut plain = String::new();
    append(&mut plain, value, settings)?;
    Ok(match kind {
        's' => plain,
        'I' if value.is_null() => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
        }
        'I' => identifier(&plain),
        'L' if value.is_null() => "NULL".to_owned(),
        'L' => literal(&plain),
        other => {
            return Err(invalid(format!("unrecognized format() type specifier \"{other}\""))
                .with_hint("For a single \"%\" use \"%%\"."));
        }
    })
}

fn format(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let settings = frame.settings();
    let Some(ValueRef::Text(template)) = arguments.first() else { return Ok(Value::Null) };
    let argument = |at: usize| {
        arguments.get(at).copied().ok_or_else(|| invalid("too few arguments for format()"))
    };
    let (mut rest, mut out, mut next) = (*template, String::new(), 1);
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(unterminated());
        }
        let found = specification(&mut rest)?;
        let width = match found.width {
            Width::None => 0,
            Width::Fixed(width) => width,
            Width::Argument(position) => {
                let at = position.unwrap_or(next);
                next = at + 1;
                match argument(at)? {
                    ValueRef::Null => 0,
                    ValueRef::Text(width) => {
                        match parse_value(width, DataType::Integer, &settings)? {
                            Value::Integer(width) => width.into(),
                            _ => return Err(mismatch()),
                        }
                    }
                    value => value.as_i64().ok_or_else(mismatch)?,
                }
            }
        };
        let at = found.position.unwrap_or(next);
        next = at + 1;
        let text = written(found.kind, argument(at)?, &settings)?;
        let wanted = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        let missing = wanted.saturating_sub(text.chars().count());
        check_size(out.len().saturating_add(text.len()).saturating_add(missing))?;
        let is_left = found.is_left || width < 0;
        let padding = " ".repeat(missing);
        if !is_left {
            out.push_str(&padding);
        }
        out.push_str(&text);
        if is_left {
            out.push_str(&padding);
        }
    }
    out.push_str(rest);
    Ok(Value::text(out))
}
