//! JSON: the parser, and the canonical text of JSONB.
//!
//! A JSON value keeps the text that was written. A JSONB value is stored as its canonical text:
//! keys without duplicates, ordered by length and then by bytes, numbers as NUMERIC prints them.
//! So a part of a value is a part of its text, and only changes print anything.

pub(crate) mod path_syntax;
mod path_text;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

use super::Decimal;
use crate::error::{Result, SqlError, SqlState};

/// Maximum nesting of arrays and objects.
const MAX_DEPTH: usize = 400;

/// A part of a JSON text.
#[derive(Clone, Debug)]
pub struct Json<'t> {
    /// Its text.
    pub text: &'t str,
    /// What it is.
    pub kind: JsonKind<'t>,
}

/// The value of a JSON text.
#[derive(Clone, Debug)]
pub enum JsonKind<'t> {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number, spelled as in the text.
    Number,
    /// A string, without escapes.
    String(Cow<'t, str>),
    /// An array.
    Array(Vec<Json<'t>>),
    /// The members of an object, in the order of the text.
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

impl JsonKind<'_> {
    /// Returns the name of the kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            JsonKind::Null => "null",
            JsonKind::Boolean(_) => "boolean",
            JsonKind::Number => "numeric",
            JsonKind::String(_) => "string",
            JsonKind::Array(_) => "array",
            JsonKind::Object(_) => "object",
        }
    }
}

#[cold]
fn invalid(text: &str) -> SqlError {
    let shown: String = text.chars().take(100).collect();
    let message = format!("invalid input syntax for type json: \"{shown}\"");
    SqlError::new(SqlState::InvalidTextRepresentation, message)
}

struct JsonReader<'t> {
    text: &'t str,
    at: usize,
    /// Whether `\u0000` is allowed, which is checked but not converted.
    keeps_zero: bool,
}

impl<'t> JsonReader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek() != Some(byte) {
            return Err(invalid(self.text));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, kind: JsonKind<'t>) -> Result<JsonKind<'t>> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || *byte == b'_' || *byte > 127);
        if !rest.starts_with(word) || !rest.as_bytes().get(word.len()).is_none_or(is_end) {
            return Err(invalid(self.text));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn digits(&mut self) -> Result<usize> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(invalid(self.text)) } else { Ok(self.at - start) }
    }

    fn number(&mut self) -> Result<JsonKind<'t>> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let is_zero = self.peek() == Some(b'0');
        if self.digits()? > 1 && is_zero {
            return Err(invalid(self.text));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(invalid(self.text));
        }
        Ok(JsonKind::Number)
    }

    fn unit(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).ok_or_else(|| invalid(self.text))?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(invalid(self.text));
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| invalid(self.text))
    }

    /// Reads the digits after `\u`, of a pair of surrogates too.
    fn escaped(&mut self) -> Result<char> {
        let first = self.unit()?;
        let code = match first {
            0xD800..0xDC00 => {
                self.expect(b'\\')?;
                self.expect(b'u')?;
                match self.unit()? {
                    second @ 0xDC00..0xE000 => {
                        0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                    }
                    _ => return Err(invalid(self.text)),
                }
            }
            0 if !self.keeps_zero => {
                let message =
                    "unsupported Unicode escape sequence: \\u0000 cannot be converted to text";
                return Err(SqlError::new(SqlState::UntranslatableCharacter, message));
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| invalid(self.text))
    }

    fn string(&mut self) -> Result<Cow<'t, str>> {
        self.expect(b'"')?;
        let start = self.at;
        let mut made: Option<String> = None;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..=31);
            let Some(plain) = rest.bytes().position(special) else {
                return Err(invalid(self.text));
            };
            let byte = rest.as_bytes().get(plain).copied();
            if let Some(made) = &mut made {
                made.push_str(&rest[..plain]);
            }
            self.at += plain;
            match byte {
                Some(b'"') => {
                    let whole = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(made.map_or(Cow::Borrowed(whole), Cow::Owned));
                }
                Some(b'\\') => {
                    let before = &self.text[start..self.at];
                    let escape = self.text.as_bytes().get(self.at + 1).copied();
                    self.at += 2;
                    let character = match escape {
                        Some(plain @ (b'"' | b'\\' | b'/')) => plain.into(),
                        Some(b'b') => '\u{8}',
                        Some(b'f') => '\u{c}',
                        Some(b'n') => '\n',
                        Some(b'r') => '\r',
                        Some(b't') => '\t',
                        Some(b'u') => self.escaped()?,
                        _ => return Err(invalid(self.text)),
                    };
                    made.get_or_insert_with(|| before.to_owned()).push(character);
                }
                _ => return Err(invalid(self.text)),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'t>> {
        if depth > MAX_DEPTH {
            let message = format!("JSON is nested deeper than {MAX_DEPTH} levels");
            return Err(SqlError::new(SqlState::StatementTooComplex, message));
        }
        self.skip_space();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => JsonKind::String(self.string()?),
            Some(b't') => self.word("true", JsonKind::Boolean(true))?,
            Some(b'f') => self.word("false", JsonKind::Boolean(false))?,
            Some(b'n') => self.word("null", JsonKind::Null)?,
            _ => self.number()?,
        };
        let text = &self.text[start..self.at];
        self.skip_space();
        Ok(Json { text, kind })
    }

    fn array(&mut self, depth: usize) -> Result<JsonKind<'t>> {
        self.at += 1;
        let mut list = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(JsonKind::Array(list));
        }
        loop {
            list.push(self.value(depth + 1)?);
            if self.peek() != Some(b',') {
                self.expect(b']')?;
                return Ok(JsonKind::Array(list));
            }
            self.at += 1;
        }
    }

    fn object(&mut self, depth: usize) -> Result<JsonKind<'t>> {
        self.at += 1;
        let mut list = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(JsonKind::Object(list));
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            list.push((key, self.value(depth + 1)?));
            if self.peek() != Some(b',') {
                self.expect(b'}')?;
                return Ok(JsonKind::Object(list));
            }
            self.at += 1;
        }
    }
}

/// What becomes of the escape `\u0000`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ZeroCharacter {
    /// It is kept, as in the text of JSON.
    Kept,
    /// It is refused, as in a JSONB value or a text.
    Refused,
}

fn read(text: &str, zero: ZeroCharacter) -> Result<Json<'_>> {
    let keeps_zero = zero == ZeroCharacter::Kept;
    let mut reader = JsonReader { text, at: 0, keeps_zero };
    let value = reader.value(0)?;
    if reader.at != text.len() {
        return Err(invalid(text));
    }
    Ok(value)
}

/// Returns the text of a JSON value if it is valid.
pub(super) fn parse_json(text: &str) -> Result<&str> {
    read(text, ZeroCharacter::Kept).map(|_| text)
}

/// Returns the canonical text of a JSONB value.
pub(super) fn parse_jsonb(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    read(text, ZeroCharacter::Refused)?.write(&mut out)?;
    Ok(out)
}

/// Appends a JSON string.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 32 => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// Returns the order of keys in a JSONB object.
fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl<'t> Json<'t> {
    /// Reads the text of a JSON or JSONB value.
    pub fn read(text: &'t str) -> Result<Json<'t>> {
        read(text, ZeroCharacter::Refused)
    }

    /// Returns a value that is not part of a text.
    #[must_use]
    pub fn made(kind: JsonKind<'t>) -> Json<'t> {
        Json { text: "", kind }
    }

    /// Returns the number, if the value is one.
    pub(crate) fn number(&self) -> Result<Option<Decimal>> {
        if !matches!(self.kind, JsonKind::Number) {
            return Ok(None);
        }
        Decimal::parse(self.text).transpose()
    }

    /// Orders the keys of all objects as JSONB does, and keeps the last of equal ones.
    fn normalize(&mut self) {
        match &mut self.kind {
            JsonKind::Array(list) => list.iter_mut().for_each(Json::normalize),
            JsonKind::Object(list) => {
                list.iter_mut().for_each(|(_, value)| value.normalize());
                list.reverse();
                list.sort_by(|a, b| key_order(&a.0, &b.0));
                list.dedup_by(|next, kept| next.0 == kept.0);
            }
            _ => {}
        }
    }

    /// Appends the canonical text.
    pub fn write(mut self, out: &mut String) -> Result<()> {
        self.normalize();
        self.print(out)
    }

    fn print(&self, out: &mut String) -> Result<()> {
        match &self.kind {
            JsonKind::Null => out.push_str("null"),
            JsonKind::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            JsonKind::Number => {
                if let Some(number) = self.number()? {
                    let _ = write!(out, "{number}");
                }
            }
            JsonKind::String(text) => write_string(out, text),
            JsonKind::Array(list) => {
                out.push('[');
                for (number, value) in list.iter().enumerate() {
                    out.push_str(if number > 0 { ", " } else { "" });
                    value.print(out)?;
                }
                out.push(']');
            }
            JsonKind::Object(list) => {
                out.push('{');
                for (number, (key, value)) in list.iter().enumerate() {
                    out.push_str(if number > 0 { ", " } else { "" });
                    write_string(out, key);
                    out.push_str(": ");
                    value.print(out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }

    /// Returns the member of an object of that name; of several, the last.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Json<'t>> {
        match &self.kind {
            JsonKind::Object(list) => {
                list.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Returns the element of an array at that place, from its end if it is negative.
    #[must_use]
    pub fn element(&self, place: i64) -> Option<&Json<'t>> {
        let JsonKind::Array(list) = &self.kind else { return None };
        let place = if place < 0 { place.checked_add(list.len() as i64)? } else { place };
        list.get(usize::try_from(place).ok()?)
    }

    fn rank(&self) -> u8 {
        match self.kind {
            JsonKind::Null => 0,
            JsonKind::String(_) => 1,
            JsonKind::Number => 2,
            JsonKind::Boolean(_) => 3,
            JsonKind::Array(_) => 4,
            JsonKind::Object(_) => 5,
        }
    }

    /// Compares values of canonical texts in the order of JSONB.
    #[must_use]
    pub fn compare(&self, other: &Json<'_>) -> Ordering {
        match (&self.kind, &other.kind) {
            (JsonKind::Boolean(a), JsonKind::Boolean(b)) => a.cmp(b),
            (JsonKind::Number, JsonKind::Number) => match (self.number(), other.number()) {
                (Ok(Some(a)), Ok(Some(b))) => a.cmp(&b),
                _ => self.text.cmp(other.text),
            },
            (JsonKind::String(a), JsonKind::String(b)) => a.cmp(b),
            (JsonKind::Array(a), JsonKind::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
                let orders = a.iter().zip(b).map(|(a, b)| a.compare(b));
                orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            }),
            (JsonKind::Object(a), JsonKind::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                let pairs = a.iter().zip(b);
                let orders = pairs.map(|((k, a), (l, b))| k.cmp(l).then_with(|| a.compare(b)));
                orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            }),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Compares the canonical texts of JSONB values. An empty array is the least value.
#[must_use]
pub fn compare_jsonb(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    match (a, b) {
        ("[]", _) => return Ordering::Less,
        (_, "[]") => return Ordering::Greater,
        _ => {}
    }
    match (Json::read(a), Json::read(b)) {
        (Ok(left), Ok(right)) => left.compare(&right),
        _ => a.cmp(b),
    }
}

/// Returns a text that is equal for equal JSONB values: the canonical text, with numbers without
/// trailing zeros.
#[must_use]
pub fn jsonb_key(text: &str) -> Cow<'_, str> {
    let has_fraction = text.bytes().any(|byte| byte == b'.');
    if !has_fraction {
        return Cow::Borrowed(text);
    }
    match Json::read(text) {
        Ok(value) => {
            let mut out = String::with_capacity(text.len());
            strip(&value, &mut out);
            Cow::Owned(out)
        }
        Err(_) => Cow::Borrowed(text),
    }
}

fn strip(value: &Json<'_>, out: &mut String) {
    match &value.kind {
        JsonKind::Number => match value.number() {
            Ok(Some(number)) => {
                let _ = write!(out, "{}", number.stripped());
            }
            _ => out.push_str(value.text),
        },
        JsonKind::Array(list) => {
            out.push('[');
            for (nth, value) in list.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { ", " });
                strip(value, out);
            }
            out.push(']');
        }
        JsonKind::Object(list) => {
            out.push('{');
            for (nth, (key, value)) in list.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { ", " });
                write_string(out, key);
                out.push_str(": ");
                strip(value, out);
            }
            out.push('}');
        }
        _ => out.push_str(value.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_and_damaged_texts_are_errors() {
        let deep = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
        assert_eq!(parse_jsonb(&deep).unwrap(), deep);
        let deeper = "[".repeat(100_000);
        assert_eq!(parse_jsonb(&deeper).unwrap_err().code(), "54001");
        let text = "{\"a\": [1.5e3, \"é\\u00e9\\ud83d\\ude00\\n\", null, true]}";
        for (at, _) in text.char_indices() {
            assert!(parse_json(&text[..at]).is_err(), "{at}");
        }
        for at in text.char_indices().map(|(at, _)| at) {
            let damaged = format!("{}\u{1}{}", &text[..at], &text[at..]);
            assert!(parse_json(&damaged).is_err(), "{damaged}");
        }
    }
}
