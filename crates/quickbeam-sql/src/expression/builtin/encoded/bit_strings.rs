//! Functions and operators of bit strings.

use super::encoded;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, count, integer, invalid, mismatch, strict};
use crate::types::encoded::bits::BitString;
use crate::types::{DataType, EncodedKind, Value, ValueRef};
use DataType::{BigInt, Integer};

const BIT: DataType = EncodedKind::Bit.data_type();
const VARBIT: DataType = EncodedKind::Varbit.data_type();

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("&", &[BIT, BIT], BIT, |v| combined(v, "AND", |a, b| a & b)),
    strict("|", &[BIT, BIT], BIT, |v| combined(v, "OR", |a, b| a | b)),
    strict("#", &[BIT, BIT], BIT, |v| combined(v, "XOR", |a, b| a ^ b)),
    strict("~", &[BIT], BIT, |v| {
        Ok(bit(BitString { bits: bits(v, 0)?.bits.iter().map(|bit| !bit).collect() }))
    }),
    strict("<<", &[BIT, Integer], BIT, |v| shifted(v, integer(v, 1)?)),
    strict(">>", &[BIT, Integer], BIT, |v| shifted(v, -integer(v, 1)?)),
    strict("||", &[VARBIT, VARBIT], VARBIT, |v| {
        Ok(bits(v, 0)?.followed_by(&bits(v, 1)?)?.value(EncodedKind::Varbit))
    }),
    strict("length", &[BIT], Integer, |v| count(bits(v, 0)?.bits.len())),
    strict("bit_length", &[BIT], Integer, |v| count(bits(v, 0)?.bits.len())),
    strict("octet_length", &[BIT], Integer, |v| count(bits(v, 0)?.bits.len().div_ceil(8))),
    strict("bit_count", &[BIT], BigInt, |v| {
        let ones = bits(v, 0)?.bits.iter().filter(|bit| **bit).count();
        Ok(Value::BigInt(ones as i64))
    }),
    strict("get_bit", &[BIT, Integer], Integer, |v| {
        let it = bits(v, 0)?;
        let at = index(&it, integer(v, 1)?)?;
        Ok(Value::Integer(it.bits[at].into()))
    }),
    strict("set_bit", &[BIT, Integer, Integer], BIT, set_bit),
    strict("position", &[BIT, BIT], Integer, position),
    strict("substring", &[BIT, Integer], BIT, substring),
    strict("substring", &[BIT, Integer, Integer], BIT, substring),
    strict("overlay", &[BIT, BIT, Integer], BIT, overlay),
    strict("overlay", &[BIT, BIT, Integer, Integer], BIT, overlay),
];

fn bits(arguments: &[ValueRef<'_>], at: usize) -> Result<BitString> {
    BitString::read(encoded(arguments, at)?.1).ok_or_else(mismatch)
}

fn bit(bits: BitString) -> Value {
    bits.value(EncodedKind::Bit)
}

fn combined(
    arguments: &[ValueRef<'_>],
    operation: &str,
    of: fn(bool, bool) -> bool,
) -> Result<Value> {
    let (a, b) = (bits(arguments, 0)?, bits(arguments, 1)?);
    if a.bits.len() != b.bits.len() {
        let message = format!("cannot {operation} bit strings of different sizes");
        return Err(SqlError::new(SqlState::StringDataLengthMismatch, message));
    }
    let pairs = a.bits.iter().zip(&b.bits);
    Ok(bit(BitString { bits: pairs.map(|(a, b)| of(*a, *b)).collect() }))
}

/// Moves the bits to the left, or to the right by a negative number. The length stays.
fn shifted(arguments: &[ValueRef<'_>], left: i64) -> Result<Value> {
    let it = bits(arguments, 0)?;
    let from = |at: usize| usize::try_from(at as i64 + left).ok();
    let moved = |at| from(at).and_then(|at| it.bits.get(at)).copied().unwrap_or(false);
    Ok(bit(BitString { bits: (0..it.bits.len()).map(moved).collect() }))
}

fn index(it: &BitString, at: i64) -> Result<usize> {
    let index = usize::try_from(at).ok().filter(|index| *index < it.bits.len());
    index.ok_or_else(|| {
        let last = it.bits.len() as i64 - 1;
        let message = format!("bit index {at} out of valid range (0..{last})");
        SqlError::new(SqlState::ArraySubscriptError, message)
    })
}

fn set_bit(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut it = bits(arguments, 0)?;
    let at = index(&it, integer(arguments, 1)?)?;
    it.bits[at] = match integer(arguments, 2)? {
        0 => false,
        1 => true,
        _ => return Err(invalid("new bit must be 0 or 1")),
    };
    Ok(bit(it))
}

fn position(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (whole, wanted) = (bits(arguments, 0)?, bits(arguments, 1)?);
    if wanted.bits.is_empty() {
        return count(usize::from(!whole.bits.is_empty()));
    }
    let found = whole.bits.windows(wanted.bits.len()).position(|part| part == wanted.bits);
    count(found.map_or(0, |at| at + 1))
}

#[cold]
fn negative_length() -> SqlError {
    SqlError::new(SqlState::SubstringError, "negative substring length not allowed")
}

/// Returns `count` bits from a place that counts from one, as far as there are any.
fn part(it: &BitString, start: i64, count: Option<i64>) -> Result<BitString> {
    let length = it.bits.len() as i64;
    let end = match count {
        Some(count) if count < 0 => return Err(negative_length()),
        Some(count) => start.saturating_add(count).min(length + 1),
        None => length + 1,
    };
    let start = start.max(1);
    if end <= start {
        return Ok(BitString::default());
    }
    let cut = it.bits.get(start as usize - 1..end as usize - 1).unwrap_or_default();
    Ok(BitString { bits: cut.to_vec() })
}

fn substring(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let count = arguments.get(2).map(|_| integer(arguments, 2)).transpose()?;
    Ok(bit(part(&bits(arguments, 0)?, integer(arguments, 1)?, count)?))
}

fn overlay(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (whole, placed) = (bits(arguments, 0)?, bits(arguments, 1)?);
    let start = integer(arguments, 2)?;
    let count = match arguments.get(3) {
        Some(_) => integer(arguments, 3)?,
        None => placed.bits.len() as i64,
    };
    if start <= 0 {
        return Err(negative_length());
    }
    let before = part(&whole, 1, Some(start - 1))?;
    let after = part(&whole, start.saturating_add(count), None)?;
    Ok(bit(before.followed_by(&placed)?.followed_by(&after)?))
}
