//! Text encodings of BYTEA values: `encode` and `decode`.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, bytes, check_size, invalid, strict, text};
use crate::types::{DataType, Value, ValueRef};
use DataType::{Bytea, Integer, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("encode", &[Bytea, Text], Text, encode),
    strict("decode", &[Text, Text], Bytea, decode),
    strict("to_ascii", &[Text], Text, to_ascii),
    strict("to_ascii", &[Text, Integer], Text, to_ascii),
    strict("to_ascii", &[Text, Text], Text, to_ascii),
];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Characters of a line of base64 output.
const LINE: usize = 76;

/// Refuses a text: PostgreSQL converts encodings of one byte only.
fn to_ascii(_: &[ValueRef<'_>]) -> Result<Value> {
    let message = "encoding conversion from UTF8 to ASCII not supported";
    Err(SqlError::new(SqlState::FeatureNotSupported, message))
}

#[cold]
fn unknown(name: &str) -> SqlError {
    invalid(format!("unrecognized encoding: \"{name}\""))
}

fn encode(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (bytes, name) = (bytes(arguments, 0)?, text(arguments, 1)?);
    check_size(bytes.len().saturating_mul(4))?;
    Ok(Value::text(match &name.to_ascii_lowercase()[..] {
        "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        "escape" => escaped(bytes),
        "base64" => base64(bytes),
        _ => return Err(unknown(name)),
    }))
}

fn decode(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (text, name) = (text(arguments, 0)?, text(arguments, 1)?);
    Ok(Value::bytea(match &name.to_ascii_lowercase()[..] {
        "hex" => from_hexadecimal(text)?,
        "escape" => from_escaped(text)?,
        "base64" => from_base64(text)?,
        _ => return Err(unknown(name)),
    }))
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
            b'\\' => out.push_str("\\\\"),
            other => out.push(char::from(*other)),
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut column = 0;
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - group.len()));
        for digit in 0..4 {
            if digit <= group.len() {
                let index = (word >> (18 - 6 * digit)) as usize & 63;
                out.push(char::from(ALPHABET[index]));
            } else {
                out.push('=');
            }
        }
        column += 4;
        if column == LINE {
            out.push('\n');
            column = 0;
        }
    }
    // As in PostgreSQL, a line break separates lines and does not end the last one.
    if out.ends_with('\n') {
        out.pop();
    }
    out
}

fn from_hexadecimal(text: &str) -> Result<Vec<u8>> {
    let mut digits = Vec::new();
    for character in text.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r')) {
        let digit = character.to_digit(16).filter(|_| character.is_ascii());
        digits.push(
            digit.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{character}\"")))?
                as u8,
        );
    }
    if digits.len() % 2 != 0 {
        return Err(invalid("invalid hexadecimal data: odd number of digits"));
    }
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn from_escaped(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let byte;
        (byte, rest) = match (first, after) {
            (b'\\', [b'\\', more @ ..]) => (b'\\', more),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', more @ ..]) => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), more)
            }
            (b'\\', _) => {
                let message = "invalid input syntax for type bytea";
                return Err(SqlError::new(SqlState::InvalidTextRepresentation, message));
            }
            (byte, more) => (*byte, more),
        };
        out.push(byte);
    }
    Ok(out)
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut digits, mut padding) = (0_u32, 0, 0);
    let mut characters = text.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r'));
    for character in characters.by_ref() {
        let value = match character {
            '=' if padding > 0 || digits == 2 || digits == 3 => {
                padding += 1;
                0
            }
            '=' => return Err(invalid("unexpected \"=\" while decoding base64 sequence")),
            other => {
                let index = ALPHABET.iter().position(|digit| char::from(*digit) == other);
                let index = index.filter(|_| padding == 0).ok_or_else(|| {
                    let symbol = format!("invalid symbol \"{other}\" found while decoding ");
                    invalid(symbol + "base64 sequence")
                })?;
                index as u32
            }
        };
        word = word << 6 | value;
        digits += 1;
        if digits == 4 {
            let bytes = [(word >> 16) as u8, (word >> 8) as u8, word as u8];
            out.extend_from_slice(&bytes[..3 - padding.min(2)]);
            (word, digits) = (0, 0);
        }
    }
    if digits != 0 {
        return Err(invalid("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}
