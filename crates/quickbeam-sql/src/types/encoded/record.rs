//! Rows as values: each field has its type, its name and its content.
//!
//! ```text
//! ┌───────────┬──────────────────┬──────────────┬───────┬──────────────────┬─────────┐
//! │ count u16 │ names' bytes u32 │ type u8 each │ names │ ends u32 of each │ content │
//! └───────────┴──────────────────┴──────────────┴───────┴──────────────────┴─────────┘
//! ```
//!
//! All numbers are little-endian. A name has its length before it, a u16. An end counts from the
//! start of the content; its highest bit marks NULL. Everything before the ends is the same for all
//! rows of a type, so a [`RowShape`] has it ready. Names do not count in comparisons.

use std::cmp::Ordering;
use std::fmt::Write;

use super::range::{ReadValue, WriteValue, push_quoted};
use super::row_types::RowField;
use super::{EncodedKind, EncodedType};
use crate::error::{Result, SqlError, SqlState};
use crate::types::array::array_value::{ARRAY, HEAD, NULL, VECTOR, append_content};
use crate::types::{DataType, RowRef, TextSettings, Value, ValueRef};

/// Maximum bytes of a row.
const SIZE_LIMIT: usize = 256 << 20;
/// Maximum number of fields.
pub const MAX_FIELDS: usize = 1664;

fn code_of(data_type: DataType) -> u8 {
    match data_type {
        DataType::System(known) if known.vector_element().is_some() => VECTOR,
        other => other.element_code().unwrap_or(ARRAY),
    }
}

/// The part of rows that their type determines.
#[derive(Clone, Debug, PartialEq)]
pub struct RowShape {
    /// The type of the rows.
    pub data_type: EncodedType,
    /// Whether a row of NULLs alone is NULL: the row of a relation that an outer join may miss.
    pub is_nullable: bool,
    count: usize,
    prefix: Box<[u8]>,
}

impl RowShape {
    /// Returns the shape of rows with these fields.
    #[must_use]
    pub fn new(data_type: EncodedType, fields: &[RowField]) -> RowShape {
        let names: usize = fields.iter().map(|(name, _)| name.len() + 2).sum();
        let mut prefix = Vec::with_capacity(HEAD + fields.len() + names);
        prefix.extend_from_slice(&(fields.len() as u16).to_le_bytes());
        prefix.extend_from_slice(&(names as u32).to_le_bytes());
        prefix.extend(fields.iter().map(|(_, data_type)| code_of(*data_type)));
        for (name, _) in fields {
            prefix.extend_from_slice(&(name.len() as u16).to_le_bytes());
            prefix.extend_from_slice(name.as_bytes());
        }
        let count = fields.len();
        RowShape { data_type, is_nullable: false, count, prefix: prefix.into() }
    }

    /// Returns the number of fields.
    #[must_use]
    pub fn width(&self) -> usize {
        self.count
    }

    /// Starts a row.
    #[must_use]
    pub fn begin(&self) -> RowBuilder<'_> {
        let mut bytes = Vec::with_capacity(self.prefix.len() + self.count * 12);
        bytes.extend_from_slice(&self.prefix);
        bytes.resize(self.prefix.len() + self.count * 4, 0);
        RowBuilder { shape: self, bytes, count: 0, has_value: false }
    }
}

/// Collects the fields of a row.
pub struct RowBuilder<'s> {
    shape: &'s RowShape,
    bytes: Vec<u8>,
    count: usize,
    has_value: bool,
}

impl RowBuilder<'_> {
    /// Adds a field. A value of another type is an internal error.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        let RowShape { prefix, count, .. } = self.shape;
        let wanted = prefix.get(HEAD + self.count).filter(|_| self.count < *count);
        let is_of_type = match (value, wanted) {
            (_, None) => false,
            (ValueRef::Null, _) | (ValueRef::Array(_), Some(&(ARRAY | VECTOR))) => true,
            (value, Some(code)) => {
                value.data_type().and_then(DataType::element_code).as_ref() == Some(code)
            }
        };
        if !is_of_type {
            return Err(SqlError::internal("a field of a row has another type"));
        }
        match value {
            ValueRef::Array(array) => self.bytes.extend_from_slice(array.bytes()),
            other => append_content(&mut self.bytes, other),
        }
        if self.bytes.len() > SIZE_LIMIT {
            let message = format!("row size exceeds the maximum allowed ({SIZE_LIMIT} bytes)");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
        }
        let content = prefix.len() + count * 4;
        let end = (self.bytes.len() - content) as u32;
        let end = if value.is_null() { end | NULL } else { end };
        let at = prefix.len() + self.count * 4;
        self.bytes[at..at + 4].copy_from_slice(&end.to_le_bytes());
        self.count += 1;
        self.has_value |= !value.is_null();
        Ok(())
    }

    /// Returns the row. It has as many fields as its shape.
    pub fn finish(self) -> Result<Value> {
        if self.count != self.shape.count {
            return Err(SqlError::internal("a row has too few fields"));
        }
        if self.shape.is_nullable && !self.has_value {
            return Ok(Value::Null);
        }
        Ok(Value::encoded(EncodedKind::Record, &self.bytes))
    }
}

/// Appends the row as text, in PostgreSQL's form `(1,"a b",)`.
pub(super) fn format(
    row: RowRef<'_>,
    out: &mut String,
    settings: &TextSettings,
    write: WriteValue,
) {
    out.push('(');
    let mut text = String::new();
    for (number, field) in row.fields().enumerate() {
        out.push_str(if number > 0 { "," } else { "" });
        if field.value.is_null() {
            continue;
        }
        text.clear();
        match field.value {
            ValueRef::Array(array) if field.is_vector() => {
                for (at, element) in array.iter().enumerate() {
                    text.push_str(if at > 0 { " " } else { "" });
                    write(&mut text, element, settings);
                }
            }
            other => write(&mut text, other, settings),
        }
        push_quoted(out, &text, is_special);
    }
    out.push(')');
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Whether a field with this character is in quotes.
fn is_special(character: char) -> bool {
    matches!(character, '"' | '\\' | '(' | ')' | ',') || is_space(character)
}

#[cold]
fn malformed(text: &str, detail: &str) -> SqlError {
    let message = format!("malformed record literal: \"{text}\"");
    SqlError::new(SqlState::InvalidTextRepresentation, message).with_detail(detail)
}

/// Returns the texts of the fields; `None` for NULL.
fn split(text: &str) -> Result<Vec<Option<String>>> {
    let trimmed = text.trim_start_matches(is_space);
    let inner = trimmed.strip_prefix('(');
    let mut rest = inner.ok_or_else(|| malformed(text, "Missing left parenthesis."))?.chars();
    let mut fields = Vec::new();
    loop {
        let mut field: Option<String> = None;
        let mut in_quotes = false;
        let end = loop {
            let Some(character) = rest.next() else {
                return Err(malformed(text, "Unexpected end of input."));
            };
            match character {
                ',' | ')' if !in_quotes => break character,
                '\\' => match rest.next() {
                    Some(next) => field.get_or_insert_default().push(next),
                    None => return Err(malformed(text, "Unexpected end of input.")),
                },
                '"' if in_quotes && rest.as_str().starts_with('"') => {
                    rest.next();
                    field.get_or_insert_default().push('"');
                }
                '"' => {
                    in_quotes = !in_quotes;
                    field.get_or_insert_default();
                }
                _ => field.get_or_insert_default().push(character),
            }
        };
        fields.push(field);
        if end == ')' {
            break;
        }
    }
    if !rest.as_str().trim_matches(is_space).is_empty() {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    Ok(fields)
}

/// Reads a row of that type.
pub(super) fn parse(
    encoded: EncodedType,
    text: &str,
    settings: &TextSettings,
    read: ReadValue,
) -> Result<Value> {
    let Some(row_type) = encoded.row_type() else {
        let message = "input of anonymous composite types is not implemented";
        return Err(SqlError::new(SqlState::FeatureNotSupported, message));
    };
    let mut texts = split(text)?;
    if row_type.fields.is_empty() && matches!(&texts[..], [None]) {
        texts.clear();
    }
    match texts.len().cmp(&row_type.fields.len()) {
        Ordering::Less => return Err(malformed(text, "Too few columns.")),
        Ordering::Greater => return Err(malformed(text, "Too many columns.")),
        Ordering::Equal => {}
    }
    let shape = RowShape::new(encoded, &row_type.fields);
    let mut row = shape.begin();
    for (text, (_, data_type)) in texts.iter().zip(&row_type.fields) {
        match text {
            None => row.push(ValueRef::Null)?,
            Some(text) => row.push(read(text, *data_type, settings)?.as_ref())?,
        }
    }
    row.finish()
}

/// Returns the row with the fields of another type.
pub(in crate::types) fn convert(
    bytes: &[u8],
    to: EncodedType,
    convert: impl Fn(ValueRef<'_>, DataType) -> Result<Value>,
) -> Result<Value> {
    let row = RowRef::read(bytes).ok_or_else(|| SqlError::internal("damaged bytes of a row"))?;
    let Some(row_type) = to.row_type() else { return Ok(Value::encoded(to.kind, bytes)) };
    if row.len() != row_type.fields.len() {
        let mut message = String::from("cannot cast type record to ");
        // Writing to a string does not fail.
        let _ = write!(message, "{to}");
        let many = if row.len() > row_type.fields.len() { "many" } else { "few" };
        let error = SqlError::new(SqlState::CannotCoerce, message);
        return Err(error.with_detail(format!("Input has too {many} columns.")));
    }
    let shape = RowShape::new(to, &row_type.fields);
    let mut out = shape.begin();
    for (field, (_, data_type)) in row.fields().zip(&row_type.fields) {
        out.push(convert(field.value, *data_type)?.as_ref())?;
    }
    out.finish()
}
