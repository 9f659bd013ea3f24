//! The place of a row (`tid`), the numbers of a transaction (`xid8`) and a command (`cid`), and the
//! position in a log (`pg_lsn`).
//!
//! A row has no place that stays the same but its key. So the bytes of a `tid` are 0 and a number
//! of six bytes, the block and the offset of PostgreSQL, or 1 and the key of the row. A `xid8` and
//! a `pg_lsn` are numbers of eight bytes, a `cid` is one of four. All numbers are big-endian.

use super::EncodedKind;
use crate::error::{Result, SqlError, SqlState};
use crate::types::Value;

const NUMBER: u8 = 0;
const KEY: u8 = 1;

/// Bits of the offset.
const OFFSET_BITS: u32 = 16;
/// Numbers from here on are no place.
const LIMIT: u64 = 1 << 48;

#[cold]
fn invalid(text: &str) -> SqlError {
    let message = format!("invalid input syntax for type tid: \"{text}\"");
    SqlError::new(SqlState::InvalidTextRepresentation, message)
}

/// Returns the place of a row whose key is a whole number; `None` if the number is too large.
pub(crate) fn of_number(number: i64) -> Option<Value> {
    let number = u64::try_from(number).ok().filter(|number| *number < LIMIT)?;
    let mut bytes = number.to_be_bytes();
    bytes[1] = NUMBER;
    Some(Value::encoded(EncodedKind::Tid, &bytes[1..]))
}

/// Returns the place of a row with any key.
pub(crate) fn of_key(key: &[u8]) -> Value {
    let bytes: Vec<u8> = [KEY].iter().chain(key).copied().collect();
    Value::encoded(EncodedKind::Tid, &bytes)
}

/// Reads `(block,offset)`, or the form that [`format()`] gives to a key.
pub(super) fn parse(text: &str) -> Result<Value> {
    read(text).ok_or_else(|| invalid(text))
}

fn read(text: &str) -> Option<Value> {
    let (block, offset) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    let offset: u16 = offset.trim_start().parse().ok()?;
    if let Some(digits) = block.trim_start().strip_prefix("\\x") {
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let key: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        return (offset == 0).then_some(of_key(&key?));
    }
    let block: i64 = block.trim_start().parse().ok()?;
    // A negative block is read as the number of 32 bits.
    let block = match u32::try_from(block) {
        Ok(block) => block,
        Err(_) => i32::try_from(block).ok()?.cast_unsigned(),
    };
    of_number(i64::from(block) << OFFSET_BITS | i64::from(offset))
}

/// Appends `(block,offset)`, or `(\x…,0)` with the key of a row in hexadecimal digits.
pub(super) fn format(out: &mut String, bytes: &[u8]) -> Option<()> {
    use std::fmt::Write;
    match bytes {
        [NUMBER, block @ .., high, low] if block.len() == 4 => {
            let block = u32::from_be_bytes(block.try_into().ok()?);
            let offset = u16::from_be_bytes([*high, *low]);
            write!(out, "({block},{offset})").ok()
        }
        [KEY, key @ ..] => {
            out.push_str("(\\x");
            key.iter().try_for_each(|byte| write!(out, "{byte:02x}")).ok()?;
            out.push_str(",0)");
            Some(())
        }
        _ => None,
    }
}

/// Returns the value of a transaction's number.
pub(crate) fn of_transaction(number: u64) -> Value {
    Value::encoded(EncodedKind::Xid8, &number.to_be_bytes())
}

/// Returns the number of a transaction or command.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    let is_number = matches!(bytes.len(), 4 | 8);
    is_number.then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Returns the number that a text begins with, or 0, as C's `strtoull` reads it: hexadecimal after
/// `0x`, octal after `0`, and a negative one from the end of the range.
fn leading_number(text: &str) -> u64 {
    let text = text.trim_start();
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, text) = match text.strip_prefix(['0']) {
        Some(rest) => match rest.strip_prefix(['x', 'X']) {
            Some(rest) => (16, rest),
            None => (8, text),
        },
        None => (10, text),
    };
    let end = text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    match (end, u64::from_str_radix(&text[..end], radix)) {
        (0, _) => 0,
        (_, Ok(number)) if is_negative => number.wrapping_neg(),
        (_, Ok(number)) => number,
        (_, Err(_)) => u64::MAX,
    }
}

/// Reads the number of a transaction.
pub(super) fn parse_transaction(text: &str) -> Value {
    of_transaction(leading_number(text))
}

/// Reads the number of a command.
pub(super) fn parse_command(text: &str) -> Value {
    Value::encoded(EncodedKind::Cid, &(leading_number(text) as u32).to_be_bytes())
}

/// Returns the value of a position in a log.
pub(crate) fn of_log_position(number: u64) -> Value {
    Value::encoded(EncodedKind::PgLsn, &number.to_be_bytes())
}

/// Reads two hexadecimal numbers of four bytes with a slash between them.
pub(super) fn parse_log_position(text: &str) -> Result<Value> {
    let half = |digits: &str| {
        let is_number = (1..=8).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok().filter(|_| is_number)
    };
    let read = || {
        let (high, low) = text.split_once('/')?;
        Some(half(high)? << 32 | half(low)?)
    };
    read().map(of_log_position).ok_or_else(|| {
        let message = format!("invalid input syntax for type pg_lsn: \"{text}\"");
        SqlError::new(SqlState::InvalidTextRepresentation, message)
    })
}

/// Appends a position in a log.
pub(super) fn format_log_position(out: &mut String, bytes: &[u8]) -> Option<()> {
    use std::fmt::Write;
    let number = number(bytes)?;
    write!(out, "{:X}/{:X}", number >> 32, number & u64::from(u32::MAX)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shown_as_they_are_read() {
        for text in ["(0,1)", "(4294967295,65535)", "(\\x,0)", "(\\x00ff10,0)"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("( -1, 2)").unwrap().to_string(), "(4294967295,2)");
        for text in
            ["", "(0)", "(0 ,1)", "(0,1", "(0,65536)", "(4294967296,0)", "(\\x0,0)", "(\\x00,1)"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(of_number(65_537).unwrap().to_string(), "(1,1)");
        assert!(of_number(-1).is_none() && of_number(1 << 48).is_none());
    }
}
