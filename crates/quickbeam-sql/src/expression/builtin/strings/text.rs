//! Functions of texts. Positions and lengths count characters.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::{
    Builtin, append, check_size, count, integer, invalid, mismatch, strict, text, variadic,
};
use crate::types::{DataType, Value, ValueRef};
use DataType::{Boolean, Char, Integer, Text};

/// An end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// Its first characters.
    Start,
    /// Its last characters.
    End,
}

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("length", &[Text], Integer, length),
    strict("char_length", &[Text], Integer, length),
    strict("character_length", &[Text], Integer, length),
    strict("octet_length", &[Text], Integer, |v| count(text(v, 0)?.len())),
    // The only length that counts the trailing blanks of a CHAR.
    strict("octet_length", &[Char(1)], Integer, |v| count(text(v, 0)?.len())),
    strict("bit_length", &[Text], Integer, |v| count(text(v, 0)?.len() * 8)),
    strict("lower", &[Text], Text, |v| Ok(mapped(text(v, 0)?, lower))),
    strict("upper", &[Text], Text, |v| Ok(mapped(text(v, 0)?, upper))),
    strict("initcap", &[Text], Text, capitals),
    strict("substr", &[Text, Integer], Text, substring),
    strict("substr", &[Text, Integer, Integer], Text, substring),
    strict("substring", &[Text, Integer], Text, substring),
    strict("substring", &[Text, Integer, Integer], Text, substring),
    strict("position", &[Text, Text], Integer, position),
    strict("strpos", &[Text, Text], Integer, position),
    strict("btrim", &[Text], Text, |v| trim(v, &[TextEnd::Start, TextEnd::End])),
    strict("btrim", &[Text, Text], Text, |v| trim(v, &[TextEnd::Start, TextEnd::End])),
    strict("ltrim", &[Text], Text, |v| trim(v, &[TextEnd::Start])),
    strict("ltrim", &[Text, Text], Text, |v| trim(v, &[TextEnd::Start])),
    strict("rtrim", &[Text], Text, |v| trim(v, &[TextEnd::End])),
    strict("rtrim", &[Text, Text], Text, |v| trim(v, &[TextEnd::End])),
    strict("left", &[Text, Integer], Text, |v| side(v, TextEnd::Start)),
    strict("right", &[Text, Integer], Text, |v| side(v, TextEnd::End)),
    strict("lpad", &[Text, Integer], Text, |v| pad(v, TextEnd::Start)),
    strict("lpad", &[Text, Integer, Text], Text, |v| pad(v, TextEnd::Start)),
    strict("rpad", &[Text, Integer], Text, |v| pad(v, TextEnd::End)),
    strict("rpad", &[Text, Integer, Text], Text, |v| pad(v, TextEnd::End)),
    strict("repeat", &[Text, Integer], Text, repeat),
    strict("replace", &[Text, Text, Text], Text, replace),
    strict("reverse", &[Text], Text, |v| {
        Ok(Value::text(text(v, 0)?.chars().rev().collect::<String>()))
    }),
    strict("split_part", &[Text, Text, Integer], Text, split_part),
    strict("translate", &[Text, Text, Text], Text, translate),
    strict("overlay", &[Text, Text, Integer], Text, overlay),
    strict("overlay", &[Text, Text, Integer, Integer], Text, overlay),
    strict("ascii", &[Text], Integer, |v| {
        Ok(Value::Integer(text(v, 0)?.chars().next().map_or(0, |first| u32::from(first) as i32)))
    }),
    strict("chr", &[Integer], Text, character),
    strict("starts_with", &[Text, Text], Boolean, starts_with),
    strict("^@", &[Text, Text], Boolean, starts_with),
    strict("||", &[Text, Text], Text, concatenate),
    variadic("concat", &[], |frame, v| {
        let (mut out, settings) = (String::new(), frame.settings());
        v.iter().try_for_each(|value| append(&mut out, *value, &settings))?;
        Ok(Value::text(out))
    }),
    variadic("concat_ws", &[Text], concatenate_with_separator),
];

fn length(arguments: &[ValueRef<'_>]) -> Result<Value> {
    count(text(arguments, 0)?.chars().count())
}

/// Returns the lower-case form of a character, if that is one character.
fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    lower.next().filter(|_| lower.next().is_none()).unwrap_or(character)
}

/// Returns the upper-case form of a character, if that is one character.
fn upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    upper.next().filter(|_| upper.next().is_none()).unwrap_or(character)
}

fn mapped(text: &str, map: fn(char) -> char) -> Value {
    Value::text(text.chars().map(map).collect::<String>())
}

fn capitals(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut is_first = true;
    let out: String = text(arguments, 0)?
        .chars()
        .map(|character| {
            let mapped = if is_first { upper(character) } else { lower(character) };
            is_first = !character.is_alphanumeric();
            mapped
        })
        .collect();
    Ok(Value::text(out))
}

/// Returns how many characters precede the part that begins at `start`, counted from 1, and the
/// part's maximum length. Positions before the text count.
pub(in crate::expression::builtin) fn part(
    start: i64,
    count: Option<i64>,
) -> Result<(usize, usize)> {
    let end = match count {
        None => i64::MAX,
        Some(count) if count < 0 => return Err(negative_length()),
        Some(count) => start.saturating_add(count),
    };
    let first = start.max(1);
    let taken = usize::try_from(end.saturating_sub(first)).unwrap_or(0);
    Ok((usize::try_from(first - 1).unwrap_or(usize::MAX), taken))
}

#[cold]
pub(in crate::expression::builtin) fn negative_length() -> SqlError {
    SqlError::new(SqlState::SubstringError, "negative substring length not allowed")
}

/// Returns the part of a text that begins at character `start`, counted from 1, of at most `count`
/// characters.
pub fn cut(text: &str, start: i64, count: Option<i64>) -> Result<&str> {
    let (skipped, taken) = part(start, count)?;
    let rest = text.get(offset_of(text, skipped)..).unwrap_or_default();
    Ok(rest.get(..offset_of(rest, taken)).unwrap_or_default())
}

/// Returns the byte at which the character with a number begins; the end of a shorter text.
fn offset_of(text: &str, number: usize) -> usize {
    // The bytes of ASCII are its characters.
    match text.as_bytes().get(..number) {
        Some(bytes) if bytes.is_ascii() => number,
        _ => text.char_indices().nth(number).map_or(text.len(), |(at, _)| at),
    }
}

fn substring(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let count = arguments.get(2).map(|_| integer(arguments, 2)).transpose()?;
    Ok(Value::text(cut(text(arguments, 0)?, integer(arguments, 1)?, count)?))
}

fn position(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (whole, wanted) = (text(arguments, 0)?, text(arguments, 1)?);
    count(whole.find(wanted).map_or(0, |at| whole[..at].chars().count() + 1))
}

fn trim(arguments: &[ValueRef<'_>], ends: &[TextEnd]) -> Result<Value> {
    let at_start = ends.contains(&TextEnd::Start);
    let at_end = ends.contains(&TextEnd::End);
    let mut rest = text(arguments, 0)?;
    let set = if arguments.len() > 1 { text(arguments, 1)? } else { " " };
    if at_start {
        rest = rest.trim_start_matches(|character| set.contains(character));
    }
    if at_end {
        rest = rest.trim_end_matches(|character| set.contains(character));
    }
    Ok(Value::text(rest))
}

/// Returns the first or last characters; a negative count leaves out characters at the other end.
fn side(arguments: &[ValueRef<'_>], end: TextEnd) -> Result<Value> {
    let is_left = end == TextEnd::Start;
    let (text, wanted) = (text(arguments, 0)?, integer(arguments, 1)?);
    let count = text.chars().count() as i64;
    let taken = if wanted < 0 { count.saturating_add(wanted).max(0) } else { wanted.min(count) };
    let skipped = if is_left { 0 } else { count - taken };
    Ok(Value::text(text.chars().skip(skipped as usize).take(taken as usize).collect::<String>()))
}

fn pad(arguments: &[ValueRef<'_>], end: TextEnd) -> Result<Value> {
    let at_start = end == TextEnd::Start;
    let (text, fill) =
        (text(arguments, 0)?, if arguments.len() > 2 { text(arguments, 2)? } else { " " });
    let wanted = usize::try_from(integer(arguments, 1)?).unwrap_or(0);
    let present = text.chars().count();
    if present >= wanted || fill.is_empty() {
        return Ok(Value::text(text.chars().take(wanted).collect::<String>()));
    }
    let longest = fill.chars().map(char::len_utf8).max().unwrap_or(1);
    check_size(text.len().saturating_add((wanted - present).saturating_mul(longest)))?;
    let padding: String = fill.chars().cycle().take(wanted - present).collect();
    Ok(Value::text(if at_start { padding + text } else { [text, &padding].concat() }))
}

fn repeat(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let text = text(arguments, 0)?;
    let times = usize::try_from(integer(arguments, 1)?.max(0)).unwrap_or(usize::MAX);
    check_size(text.len().saturating_mul(times))?;
    Ok(Value::text(if text.is_empty() { String::new() } else { text.repeat(times) }))
}

fn replace(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (text, from, to) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    let times = if from.is_empty() { 0 } else { text.matches(from).count() };
    check_size(text.len().saturating_add(times.saturating_mul(to.len())))?;
    Ok(if times == 0 { Value::text(text) } else { Value::text(text.replace(from, to)) })
}

fn split_part(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (text, separator, field) =
        (text(arguments, 0)?, text(arguments, 1)?, integer(arguments, 2)?);
    if field == 0 {
        return Err(invalid("field position must not be zero"));
    }
    let nth = usize::try_from(field.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let found = if separator.is_empty() {
        (nth == 0).then_some(text)
    } else if field > 0 {
        text.split(separator).nth(nth)
    } else {
        // Counted from the end, but with the separators that are found from the start.
        let fields: Vec<&str> = text.split(separator).collect();
        fields.into_iter().rev().nth(nth)
    };
    Ok(Value::text(found.unwrap_or("")))
}

fn translate(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (text, from, to) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    let to: Vec<char> = to.chars().collect();
    let out: String = text
        .chars()
        .filter_map(|character| match from.chars().position(|other| other == character) {
            Some(at) => to.get(at).copied(),
            None => Some(character),
        })
        .collect();
    Ok(Value::text(out))
}

fn overlay(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (whole, placed, start) = (text(arguments, 0)?, text(arguments, 1)?, integer(arguments, 2)?);
    let count = match arguments.get(3) {
        Some(_) => integer(arguments, 3)?,
        None => placed.chars().count() as i64,
    };
    if start <= 0 {
        return Err(negative_length());
    }
    let before = cut(whole, 1, Some(start - 1))?;
    let after = cut(whole, start.saturating_add(count), None)?;
    check_size(before.len() + placed.len() + after.len())?;
    Ok(Value::text([before, placed, after].concat()))
}

fn character(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = integer(arguments, 0)?;
    let refuse = |message: String| Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
    if number < 0 {
        return Err(invalid("character number must be positive"));
    }
    if number == 0 {
        return refuse("null character not permitted".into());
    }
    match u32::try_from(number).ok().and_then(char::from_u32) {
        Some(character) => Ok(Value::text(character.encode_utf8(&mut [0; 4]))),
        None if number <= 0x10_ffff => {
            refuse(format!("requested character not valid for encoding: {number}"))
        }
        None => refuse(format!("requested character too large for encoding: {number}")),
    }
}

fn starts_with(arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(Value::Boolean(text(arguments, 0)?.starts_with(text(arguments, 1)?)))
}

fn concatenate(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (left, right) = (text(arguments, 0)?, text(arguments, 1)?);
    check_size(left.len().saturating_add(right.len()))?;
    Ok(Value::text([left, right].concat()))
}

fn concatenate_with_separator(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let settings = frame.settings();
    let (separator, values) = arguments.split_first().ok_or_else(mismatch)?;
    let ValueRef::Text(separator) = separator else { return Ok(Value::Null) };
    let (mut out, mut is_first) = (String::new(), true);
    for value in values.iter().filter(|value| !value.is_null()) {
        if !std::mem::take(&mut is_first) {
            out.push_str(separator);
        }
        append(&mut out, *value, &settings)?;
    }
    Ok(Value::text(out))
}
