//! Text input and output of arrays, in PostgreSQL's form `{1,NULL,"a b"}`.

use std::fmt::Write;

use super::array_faults::fault;
use super::array_value::{ArrayBuilder, Dimension, MAX_DIMENSIONS};
use super::element_type::ElementType;
use crate::error::{Result, SqlError, SqlState};
use crate::types::text::{format_value, parse_value};
use crate::types::{Array, ArrayRef, DataType, TextSettings, Value, ValueRef};

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Returns whether an element is written in quotes.
fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.bytes().any(|b| matches!(b, b'"' | b'\\' | b'{' | b'}' | b',') || is_space(b))
}

fn format_element(out: &mut String, value: ValueRef<'_>, settings: &TextSettings) {
    if value.is_null() {
        return out.push_str("NULL");
    }
    let is_free = matches!(
        value,
        ValueRef::Text(_)
            | ValueRef::Bytea(_)
            | ValueRef::Json(_)
            | ValueRef::Jsonb(_)
            | ValueRef::Encoded(..)
    );
    if !is_free {
        let start = out.len();
        format_value(out, value, settings);
        if out.get(start..).is_some_and(needs_quotes) {
            out.insert(start, '"');
            out.push('"');
        }
        return;
    }
    let mut text = String::new();
    format_value(&mut text, value, settings);
    if !needs_quotes(&text) {
        return out.push_str(&text);
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// Appends an array as text.
pub fn format_array(out: &mut String, array: ArrayRef<'_>, settings: &TextSettings) {
    let dimensions = array.dimensions();
    if dimensions.is_empty() {
        return out.push_str("{}");
    }
    if dimensions.iter().any(|one| one.lower != 1) {
        for one in &dimensions {
            // Writing to a String does not fail.
            let _ = write!(out, "[{}:{}]", one.lower, one.upper());
        }
        out.push('=');
    }
    for (number, element) in array.iter().enumerate() {
        // A brace opens with the first element of each inner array, and closes with the last.
        let mut size = 1;
        let mut opened = 0;
        for one in dimensions.iter().rev() {
            size *= one.length as usize;
            opened += usize::from(number % size == 0);
        }
        if number > 0 {
            out.push(',');
        }
        out.extend(std::iter::repeat_n('{', opened));
        format_element(out, element, settings);
        let mut size = 1;
        for one in dimensions.iter().rev() {
            size *= one.length as usize;
            if (number + 1) % size == 0 {
                out.push('}');
            }
        }
    }
}

/// Reads an array literal.
struct ArrayReader<'t> {
    text: &'t str,
    at: usize,
    element: ElementType,
    settings: &'t TextSettings,
    builder: ArrayBuilder,
    /// The length of each dimension, known once its first array is complete.
    lengths: Vec<Option<usize>>,
}

impl<'t> ArrayReader<'t> {
    #[cold]
    fn malformed(&self) -> SqlError {
        malformed(self.text)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn bound(&mut self) -> Result<i64> {
        let start = self.at;
        if matches!(self.peek(), Some(b'-' | b'+')) {
            self.at += 1;
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        let value: i64 = digits.parse().map_err(|_| self.malformed())?;
        match i32::try_from(value) {
            Ok(value) => Ok(value.into()),
            Err(_) => {
                let message = "array bound is out of integer range";
                Err(SqlError::new(SqlState::NumericValueOutOfRange, message))
            }
        }
    }

    /// Reads the bounds before `=`, if there are any.
    fn bounds(&mut self) -> Result<Option<Vec<Dimension>>> {
        let mut dimensions = Vec::new();
        self.skip_space();
        while self.take(b'[') {
            let first = self.bound()?;
            let (lower, upper) = if self.take(b':') { (first, self.bound()?) } else { (1, first) };
            if !self.take(b']') {
                return Err(self.malformed());
            }
            if dimensions.len() == MAX_DIMENSIONS {
                return Err(too_many(dimensions.len() + 1));
            }
            if upper < lower {
                let message = "upper bound cannot be less than lower bound";
                return Err(SqlError::new(SqlState::ArraySubscriptError, message));
            }
            let length = u32::try_from(upper - lower + 1).map_err(|_| self.malformed())?;
            dimensions.push(Dimension { length, lower: lower as i32 });
            self.skip_space();
        }
        if dimensions.is_empty() {
            return Ok(None);
        }
        if !self.take(b'=') {
            return Err(self.malformed());
        }
        self.skip_space();
        Ok(Some(dimensions))
    }

    /// Reads one level of braces.
    fn level(&mut self, depth: usize) -> Result<()> {
        if depth >= MAX_DIMENSIONS {
            return Err(too_many(depth + 1));
        }
        if !self.take(b'{') {
            return Err(self.malformed());
        }
        if self.lengths.len() == depth {
            self.lengths.push(None);
        }
        let mut count = 0;
        self.skip_space();
        let is_empty = self.take(b'}');
        if is_empty && depth > 0 {
            return Err(self.malformed());
        }
        if !is_empty {
            loop {
                self.skip_space();
                let is_nested = self.peek() == Some(b'{');
                // All elements are arrays or none is.
                let is_inner = self.lengths.len() > depth + 1;
                let is_first = count == 0 && self.lengths.iter().all(Option::is_none);
                if is_nested != is_inner && !(is_first && is_nested) {
                    return Err(self.malformed());
                }
                if is_nested {
                    self.level(depth + 1)?;
                } else {
                    self.value()?;
                }
                count += 1;
                self.skip_space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.malformed());
                }
            }
        }
        match self.lengths.get_mut(depth) {
            Some(Some(known)) if *known != count => return Err(self.malformed()),
            Some(length) => *length = Some(count),
            None => {}
        }
        Ok(())
    }

    fn value(&mut self) -> Result<()> {
        let mut text = String::new();
        let mut is_plain = true;
        if self.take(b'"') {
            is_plain = false;
            loop {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let mut characters = rest.chars();
                let next = match characters.next() {
                    Some('"') => {
                        self.at += 1;
                        break;
                    }
                    Some('\\') => {
                        self.at += 1;
                        characters.next()
                    }
                    other => other,
                };
                let next = next.ok_or_else(|| self.malformed())?;
                self.at += next.len_utf8();
                text.push(next);
            }
            self.skip_space();
            if !matches!(self.peek(), Some(b',' | b'}')) {
                return Err(self.malformed());
            }
        } else {
            // Blanks at the end do not count unless they are escaped.
            let mut kept = 0;
            loop {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let mut characters = rest.chars();
                let next = match characters.next() {
                    None | Some('"' | '{') => return Err(self.malformed()),
                    Some(',' | '}') => break,
                    Some('\\') => {
                        self.at += 1;
                        is_plain = false;
                        let next = characters.next().ok_or_else(|| self.malformed())?;
                        kept = text.len() + next.len_utf8();
                        next
                    }
                    Some(next) => next,
                };
                self.at += next.len_utf8();
                text.push(next);
                if !u8::try_from(next).is_ok_and(is_space) {
                    kept = text.len();
                }
            }
            text.truncate(kept);
            if text.is_empty() {
                return Err(self.malformed());
            }
        }
        if is_plain && text.eq_ignore_ascii_case("null") {
            return self.builder.push(ValueRef::Null);
        }
        let value = parse_value(&text, self.element.data_type(), self.settings)?;
        self.builder.push(value.as_ref())
    }
}

/// Reports more dimensions than an array may have.
#[cold]
pub fn too_many(count: usize) -> SqlError {
    let message = format!(
        "number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
    );
    SqlError::new(SqlState::ProgramLimitExceeded, message)
}

/// Reads an array of that element type. Length, precision and scale are applied by a later cast.
pub(in crate::types) fn parse_array(
    text: &str,
    element: ElementType,
    settings: &TextSettings,
) -> Result<Value> {
    read_array(text, element, settings).map_err(|error| explained(error, text))
}

/// Says what is wrong with the form of a literal, which PostgreSQL checks before the elements.
#[cold]
fn explained(error: SqlError, text: &str) -> SqlError {
    let is_malformed = error.message().starts_with(MALFORMED);
    if !is_malformed && error.state() != SqlState::InvalidTextRepresentation {
        return error;
    }
    match fault(text) {
        Some(detail) => malformed(text).with_detail(detail),
        None => error,
    }
}

/// The beginning of the message about a literal's form.
const MALFORMED: &str = "malformed array literal: ";

#[cold]
fn malformed(text: &str) -> SqlError {
    SqlError::new(SqlState::InvalidTextRepresentation, format!("{MALFORMED}\"{text}\""))
}

fn read_array(text: &str, element: ElementType, settings: &TextSettings) -> Result<Value> {
    let builder = ArrayBuilder::new(element);
    let mut reader = ArrayReader { text, at: 0, element, settings, builder, lengths: Vec::new() };
    let bounds = reader.bounds()?;
    reader.level(0)?;
    reader.skip_space();
    if reader.at != text.len() {
        return Err(reader.malformed());
    }
    let read: Vec<usize> = reader.lengths.iter().map(|length| length.unwrap_or(0)).collect();
    let dimensions = match bounds {
        None => read.iter().map(|length| Dimension::of(*length)).collect(),
        Some(bounds) => {
            let fits = bounds.iter().map(|one| one.length as usize).eq(read.iter().copied());
            if !fits {
                return Err(reader.malformed());
            }
            bounds
        }
    };
    Ok(Value::Array(reader.builder.finish(&dimensions)?))
}

impl Array {
    /// Reads an array of elements of that type from text.
    pub fn parse(text: &str, element: ElementType) -> Result<Array> {
        match parse_value(text, DataType::Array(element), &TextSettings::DEFAULT)? {
            Value::Array(array) => Ok(array),
            _ => Err(SqlError::internal("an array literal is no array")),
        }
    }
}
