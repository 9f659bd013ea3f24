//! Conversions between encodings, bits of BYTEA values, Unicode escapes and names, and the count of
//! NULLs.
//!
//! Of PostgreSQL's encodings there are UTF8, LATIN1 and SQL_ASCII; another known name is refused.

use super::bytes::index;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{
    Builtin, Implementation, bytes, count, integer, invalid, mismatch, strict, text,
};
use crate::types::{Array, DataType, ElementType, Value, ValueRef, checked_text};
use DataType::{BigInt, Boolean, Bytea, Integer, Text};

/// What may follow names that are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameSpelling {
    /// Nothing.
    Strict,
    /// Anything.
    Lenient,
}

impl From<bool> for NameSpelling {
    fn from(is_strict: bool) -> NameSpelling {
        if is_strict { NameSpelling::Strict } else { NameSpelling::Lenient }
    }
}

const TEXTS: DataType = DataType::Array(ElementType::TEXT);

/// Declares a function of one or more arguments of any type, which may be NULL.
const fn of_any(name: &'static str, run: fn(&[ValueRef<'_>]) -> Result<Value>) -> Builtin {
    let implementation = Implementation::NullTolerant(run);
    Builtin { is_variadic: true, ..Builtin::new(name, &[], Integer, implementation) }
}

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("convert_from", &[Bytea, Text], Text, |v| {
        let encoding = Encoding::named(text(v, 1)?, "source")?;
        Ok(Value::text(encoding.decode(bytes(v, 0)?)?))
    }),
    strict("convert_to", &[Text, Text], Bytea, |v| {
        let encoding = Encoding::named(text(v, 1)?, "destination")?;
        Ok(Value::bytea(encoding.encode(text(v, 0)?)?))
    }),
    strict("convert", &[Bytea, Text, Text], Bytea, |v| {
        let from = Encoding::named(text(v, 1)?, "source")?;
        let to = Encoding::named(text(v, 2)?, "destination")?;
        Ok(Value::bytea(to.encode(&from.decode(bytes(v, 0)?)?)?))
    }),
    strict("length", &[Bytea, Text], Integer, |v| {
        let encoding = Encoding::named(text(v, 1)?, "source")?;
        count(encoding.decode(bytes(v, 0)?)?.chars().count())
    }),
    strict("get_bit", &[Bytea, BigInt], Integer, |v| {
        let bytes = bytes(v, 0)?;
        let (byte, bit) = bit_of(bytes, integer(v, 1)?)?;
        Ok(Value::Integer(i32::from(bytes[byte] >> bit & 1)))
    }),
    strict("set_bit", &[Bytea, BigInt, Integer], Bytea, |v| {
        let mut changed = bytes(v, 0)?.to_vec();
        let (byte, bit) = bit_of(&changed, integer(v, 1)?)?;
        match integer(v, 2)? {
            0 => changed[byte] &= !(1 << bit),
            1 => changed[byte] |= 1 << bit,
            _ => return Err(invalid("new bit must be 0 or 1")),
        }
        Ok(Value::bytea(changed))
    }),
    strict("unistr", &[Text], Text, |v| unescape(text(v, 0)?)),
    strict("parse_ident", &[Text], TEXTS, |v| parse_names(text(v, 0)?, NameSpelling::Strict)),
    strict("parse_ident", &[Text, Boolean], TEXTS, |v| match v.get(1) {
        Some(ValueRef::Boolean(is_strict)) => {
            parse_names(text(v, 0)?, NameSpelling::from(*is_strict))
        }
        _ => Err(mismatch()),
    }),
    of_any("num_nulls", |v| count(v.iter().filter(|value| value.is_null()).count())),
    of_any("pg_column_size", |v| match v {
        [value] => Ok(column_size(*value).map_or(Value::Null, Value::Integer)),
        _ => Err(mismatch()),
    }),
    of_any("num_nonnulls", |v| count(v.iter().filter(|value| !value.is_null()).count())),
];

/// Returns the bytes that PostgreSQL needs for a value in a row, if it does not compress it; for
/// the types that it keeps in another form, those of the value here.
fn column_size(value: ValueRef<'_>) -> Option<i32> {
    let after_head = |bytes: usize| if bytes < 127 { bytes + 1 } else { bytes + 4 };
    let size = match value {
        ValueRef::Null => return None,
        ValueRef::Boolean(_) => 1,
        ValueRef::SmallInt(_) => 2,
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Date(_) | ValueRef::Oid(_) => 4,
        ValueRef::BigInt(_)
        | ValueRef::Double(_)
        | ValueRef::Time(_)
        | ValueRef::Timestamp(_)
        | ValueRef::TimestampTz(_) => 8,
        ValueRef::Uuid(_) | ValueRef::Interval(_) => 16,
        ValueRef::Text(text) | ValueRef::Json(text) | ValueRef::Jsonb(text) => {
            after_head(text.len())
        }
        ValueRef::Bytea(bytes) | ValueRef::Encoded(_, bytes) => after_head(bytes.len()),
        ValueRef::Array(array) => after_head(array.bytes().len()),
        ValueRef::LongNumeric(number) => after_head(number.bytes().len()),
        ValueRef::Numeric(number) => after_head(2 + 2 * number.to_string().len().div_ceil(4)),
    };
    i32::try_from(size).ok()
}

/// An encoding of texts.
#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Latin1,
    Ascii,
}

impl Encoding {
    fn named(name: &str, role: &str) -> Result<Encoding> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        Ok(match &plain.to_ascii_lowercase()[..] {
            "utf8" | "unicode" => Encoding::Utf8,
            "latin1" | "iso88591" => Encoding::Latin1,
            "sqlascii" => Encoding::Ascii,
            "latin2" | "latin3" | "latin4" | "latin5" | "latin6" | "latin7" | "latin8"
            | "latin9" | "latin10" | "win1252" | "win1250" | "win1251" | "koi8r" | "eucjp"
            | "sjis" | "big5" | "gbk" | "euckr" | "euccn" => {
                return Err(SqlError::unsupported(format!("the encoding {name}")));
            }
            _ => return Err(invalid(format!("invalid {role} encoding name \"{name}\""))),
        })
    }

    fn decode(self, bytes: &[u8]) -> Result<String> {
        let text = match self {
            Encoding::Latin1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
            Encoding::Utf8 | Encoding::Ascii => std::str::from_utf8(bytes)
                .map_err(|error| {
                    let at = error.valid_up_to();
                    let byte = bytes.get(at).copied().unwrap_or_default();
                    let message =
                        format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}");
                    SqlError::new(SqlState::CharacterNotInRepertoire, message)
                })?
                .to_owned(),
        };
        checked_text(&text)?;
        Ok(text)
    }

    fn encode(self, text: &str) -> Result<Vec<u8>> {
        match self {
            Encoding::Utf8 | Encoding::Ascii => Ok(text.as_bytes().to_vec()),
            Encoding::Latin1 => text
                .chars()
                .map(|character| {
                    u8::try_from(u32::from(character)).map_err(|_| {
                        let message = format!(
                            "character \"{character}\" has no equivalent in encoding \"LATIN1\""
                        );
                        SqlError::new(SqlState::UntranslatableCharacter, message)
                    })
                })
                .collect(),
        }
    }
}

/// Returns the byte of a bit and its place there, the lowest bit of the first byte being bit 0.
fn bit_of(bytes: &[u8], at: i64) -> Result<(usize, i64)> {
    let byte = index(bytes, at.div_euclid(8)).map_err(|_| {
        let last = bytes.len() as i64 * 8 - 1;
        let message = format!("index {at} out of valid range, 0..{last}");
        SqlError::new(SqlState::ArraySubscriptError, message)
    })?;
    Ok((byte, at.rem_euclid(8)))
}

/// Replaces Unicode escapes.
fn unescape(text: &str) -> Result<Value> {
    let fault = || SqlError::new(SqlState::SyntaxError, "invalid Unicode escape");
    let (mut out, mut rest) = (String::new(), text);
    let mut high: Option<u32> = None;
    while let Some(first) = rest.chars().next() {
        if first != '\\' {
            if high.is_some() {
                return Err(SqlError::new(SqlState::SyntaxError, "invalid Unicode surrogate pair"));
            }
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        rest = &rest[1..];
        if let Some(after) = rest.strip_prefix('\\') {
            out.push('\\');
            rest = after;
            continue;
        }
        let (skipped, width) = match rest.chars().next() {
            Some('+') => (1, 6),
            Some('u') => (1, 4),
            Some('U') => (1, 8),
            _ => (0, 4),
        };
        let digits = rest.get(skipped..skipped + width).ok_or_else(fault)?;
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal);
        let code = code.ok_or_else(fault)?;
        rest = &rest[skipped + width..];
        match (high.take(), code) {
            (None, 0xD800..=0xDBFF) => high = Some(code),
            (Some(high), 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00);
                out.extend(char::from_u32(code));
            }
            (None, code) => out.push(
                char::from_u32(code)
                    .filter(|c| *c != '\0')
                    .ok_or_else(|| invalid(format!("invalid Unicode code point: {code:04X}")))?,
            ),
            (Some(_), _) => {
                return Err(SqlError::new(SqlState::SyntaxError, "invalid Unicode surrogate pair"));
            }
        }
    }
    match high {
        None => Ok(Value::text(out)),
        Some(_) => Err(SqlError::new(SqlState::SyntaxError, "invalid Unicode surrogate pair")),
    }
}

/// Splits a qualified name. If it is not strict, what follows the name is ignored.
fn parse_names(text: &str, spelling: NameSpelling) -> Result<Value> {
    let is_strict = spelling == NameSpelling::Strict;
    let fault = || invalid(format!("string is not a valid identifier: \"{text}\""));
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_part = |c: char| is_start(c) || c.is_ascii_digit() || c == '$';
    let (mut names, mut rest) = (Vec::new(), text.trim_start());
    loop {
        if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            loop {
                let (before, after) = quoted.split_once('"').ok_or_else(fault)?;
                name.push_str(before);
                match after.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        quoted = more;
                    }
                    None => {
                        rest = after;
                        break;
                    }
                }
            }
            if name.is_empty() {
                return Err(fault());
            }
            names.push(name);
        } else if rest.starts_with(is_start) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            names.push(rest[..end].to_ascii_lowercase());
            rest = &rest[end..];
        } else {
            return Err(fault());
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() || !is_strict => break,
            None => return Err(fault()),
        }
    }
    let values: Vec<ValueRef<'_>> = names.iter().map(|name| ValueRef::Text(name)).collect();
    Ok(Value::Array(Array::new(ElementType::TEXT, values)?))
}
