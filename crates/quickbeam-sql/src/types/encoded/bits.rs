//! Bit strings: BIT and BIT VARYING.
//!
//! Each eight bits are two bytes: the bits, filled up with zeros, and how many there are. The count
//! is 9 if more follow, so that a string sorts before those that begin with it.

use super::{EncodedKind, EncodedType};
use crate::error::{Result, SqlError, SqlState};
use crate::types::Value;

/// The base of the digits of a bit string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DigitBase {
    /// `X`
    Hexadecimal,
    /// `B`
    Binary,
}

/// The count of a group that others follow.
const MORE: u8 = 9;

/// Maximum number of bits of a value.
const LIMIT: usize = 1 << 29;

/// A string of bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitString {
    /// The bits.
    pub bits: Vec<bool>,
}

#[cold]
fn no_digit(digit: char, base: DigitBase) -> SqlError {
    let is_hexadecimal = base == DigitBase::Hexadecimal;
    let base = if is_hexadecimal { "hexadecimal" } else { "binary" };
    let message = format!("\"{digit}\" is not a valid {base} digit");
    SqlError::new(SqlState::InvalidTextRepresentation, message)
}

impl BitString {
    /// Reads digits; those after an `x` are hexadecimal.
    pub fn parse(text: &str) -> Result<BitString> {
        if let Some(digits) = text.strip_prefix(['x', 'X']) {
            let mut bits = Vec::with_capacity(digits.len() * 4);
            for digit in digits.chars() {
                let value =
                    digit.to_digit(16).ok_or_else(|| no_digit(digit, DigitBase::Hexadecimal))?;
                bits.extend((0..4).rev().map(|at| value >> at & 1 == 1));
            }
            return Ok(BitString { bits });
        }
        let digits = text.strip_prefix(['b', 'B']).unwrap_or(text);
        let bit = |digit| match digit {
            '0' => Ok(false),
            '1' => Ok(true),
            other => Err(no_digit(other, DigitBase::Binary)),
        };
        Ok(BitString { bits: digits.chars().map(bit).collect::<Result<_>>()? })
    }

    /// Returns the value with these bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<BitString> {
        let mut bits = Vec::with_capacity(bytes.len() * 4);
        for (at, group) in bytes.chunks(2).enumerate() {
            let [byte, count] = *group else { return None };
            let is_last = (at + 1) * 2 == bytes.len();
            let count = match (count, is_last) {
                (1..=8, true) => count,
                (MORE, false) => 8,
                _ => return None,
            };
            bits.extend((0..count).map(|at| byte >> (7 - at) & 1 == 1));
        }
        Some(BitString { bits })
    }

    /// Returns the lowest bits of a number; the sign bit fills those above.
    #[must_use]
    pub fn of_number(number: i64, length: usize) -> BitString {
        let bit = |at: usize| number >> at.min(63) & 1 == 1;
        BitString { bits: (0..length).rev().map(bit).collect() }
    }

    /// Returns the bits of whole bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8], length: usize) -> BitString {
        let all = bytes.iter().flat_map(|byte| (0..8).map(move |at| byte >> (7 - at) & 1 == 1));
        BitString { bits: all.take(length).collect() }
    }

    /// Returns the bits as bytes, filled up with zeros.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let byte = |group: &[bool]| {
            group.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at))
        };
        self.bits.chunks(8).map(byte).collect()
    }

    /// Returns the number that the bits are, if they fit.
    #[must_use]
    pub fn to_number(&self, width: usize) -> Option<i64> {
        let fits = self.bits.len() <= width;
        let number = self.bits.iter().fold(0_i64, |number, bit| number << 1 | i64::from(*bit));
        fits.then_some(if width == 32 { i64::from(number as i32) } else { number })
    }

    /// Returns the bits as a value.
    #[must_use]
    pub fn value(&self, kind: EncodedKind) -> Value {
        let mut bytes = Vec::with_capacity(self.bits.len() / 4 + 2);
        let groups = self.bits.chunks(8);
        for ((byte, group), at) in self.to_bytes().into_iter().zip(groups).zip(1..) {
            let is_last = at * 8 >= self.bits.len();
            bytes.extend_from_slice(&[byte, if is_last { group.len() as u8 } else { MORE }]);
        }
        Value::encoded(kind, &bytes)
    }

    /// Returns the bits with the length of a type. An explicit cast cuts and fills up; an
    /// assignment does not.
    pub fn fit(mut self, to: EncodedType, is_explicit: bool) -> Result<BitString> {
        let (length, wanted) = (self.bits.len(), to.length() as usize);
        let is_fixed = to.kind() == EncodedKind::Bit;
        if wanted == 0 || length == wanted || !is_fixed && length < wanted {
            return Ok(self);
        }
        if !is_explicit {
            return Err(if is_fixed {
                let message = format!("bit string length {length} does not match type {to}");
                SqlError::new(SqlState::StringDataLengthMismatch, message)
            } else {
                let message = format!("bit string too long for type {to}");
                SqlError::new(SqlState::StringDataRightTruncation, message)
            });
        }
        self.bits.resize(wanted, false);
        Ok(self)
    }

    /// Returns both strings after one another.
    pub fn followed_by(mut self, other: &BitString) -> Result<BitString> {
        if self.bits.len() + other.bits.len() > LIMIT {
            let message = format!("a bit string has more than {LIMIT} bits");
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
        }
        self.bits.extend_from_slice(&other.bits);
        Ok(self)
    }

    pub(super) fn format(&self, out: &mut String) {
        out.extend(self.bits.iter().map(|bit| if *bit { '1' } else { '0' }));
    }
}
