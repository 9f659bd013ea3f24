//! Functions and operators of network addresses.

use super::encoded;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, integer, invalid, mismatch, strict};
use crate::types::encoded::{Address, same_family};
use crate::types::{DataType, EncodedKind, Value, ValueRef};
use DataType::{BigInt, Boolean, Integer, Text};

/// Whether a network contains itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Containment {
    /// It does.
    OrEqual,
    /// It does not.
    Strict,
}

const INET: DataType = EncodedKind::Inet.data_type();
const CIDR: DataType = EncodedKind::Cidr.data_type();
const MACADDR: DataType = EncodedKind::Macaddr.data_type();
const MACADDR8: DataType = EncodedKind::Macaddr8.data_type();

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("host", &[INET], Text, |v| {
        let it = address(v, 0)?;
        let mut out = String::new();
        let is_with_bits = false;
        Address { bits: it.width(), ..it }.format(&mut out, is_with_bits);
        Ok(Value::text(out))
    }),
    strict("abbrev", &[INET], Text, |v| {
        Ok(Value::text(address(v, 0)?.abbreviated(EncodedKind::Inet)))
    }),
    strict("abbrev", &[CIDR], Text, |v| {
        Ok(Value::text(address(v, 0)?.abbreviated(EncodedKind::Cidr)))
    }),
    strict("family", &[INET], Integer, |v| {
        Ok(Value::Integer(if address(v, 0)?.ip.is_ipv4() { 4 } else { 6 }))
    }),
    strict("masklen", &[INET], Integer, |v| Ok(Value::Integer(address(v, 0)?.bits.into()))),
    strict("netmask", &[INET], INET, |v| Ok(inet(address(v, 0)?.mask(false)))),
    strict("hostmask", &[INET], INET, |v| Ok(inet(address(v, 0)?.mask(true)))),
    strict("broadcast", &[INET], INET, |v| Ok(inet(address(v, 0)?.broadcast()))),
    strict("network", &[INET], CIDR, |v| Ok(address(v, 0)?.network().value(EncodedKind::Cidr))),
    strict("set_masklen", &[INET, Integer], INET, |v| Ok(inet(with_bits(v)?))),
    strict("set_masklen", &[CIDR, Integer], CIDR, |v| {
        Ok(with_bits(v)?.network().value(EncodedKind::Cidr))
    }),
    strict("inet_same_family", &[INET, INET], Boolean, |v| {
        Ok(Value::Boolean(same_family(address(v, 0)?, address(v, 1)?)))
    }),
    strict("inet_merge", &[INET, INET], CIDR, merged),
    strict("<<", &[INET, INET], Boolean, |v| contains(v, 1, 0, Containment::Strict)),
    strict("<<=", &[INET, INET], Boolean, |v| contains(v, 1, 0, Containment::OrEqual)),
    strict(">>", &[INET, INET], Boolean, |v| contains(v, 0, 1, Containment::Strict)),
    strict(">>=", &[INET, INET], Boolean, |v| contains(v, 0, 1, Containment::OrEqual)),
    strict("&&", &[INET, INET], Boolean, |v| {
        let (a, b) = (address(v, 0)?, address(v, 1)?);
        Ok(Value::Boolean(a.contains(b) || b.contains(a)))
    }),
    strict("~", &[INET], INET, |v| {
        let it = address(v, 0)?;
        Ok(inet(it.with_number(!it.number())))
    }),
    strict("&", &[INET, INET], INET, |v| combined(v, |a, b| a & b)),
    strict("|", &[INET, INET], INET, |v| combined(v, |a, b| a | b)),
    strict("+", &[INET, BigInt], INET, |v| moved(v, 0, integer(v, 1)?.into())),
    strict("+", &[BigInt, INET], INET, |v| moved(v, 1, integer(v, 0)?.into())),
    strict("-", &[INET, BigInt], INET, |v| moved(v, 0, -i128::from(integer(v, 1)?))),
    strict("-", &[INET, INET], BigInt, distance),
    strict("trunc", &[MACADDR], MACADDR, |v| hardware(v, |at, byte, _| keep(at < 3, byte))),
    strict("trunc", &[MACADDR8], MACADDR8, |v| hardware(v, |at, byte, _| keep(at < 3, byte))),
    strict("macaddr8_set7bit", &[MACADDR8], MACADDR8, |v| {
        hardware(v, |at, byte, _| if at == 0 { byte | 2 } else { byte })
    }),
    strict("~", &[MACADDR], MACADDR, |v| hardware(v, |_, byte, _| !byte)),
    strict("~", &[MACADDR8], MACADDR8, |v| hardware(v, |_, byte, _| !byte)),
    strict("&", &[MACADDR, MACADDR], MACADDR, |v| hardware(v, |_, a, b| a & b)),
    strict("&", &[MACADDR8, MACADDR8], MACADDR8, |v| hardware(v, |_, a, b| a & b)),
    strict("|", &[MACADDR, MACADDR], MACADDR, |v| hardware(v, |_, a, b| a | b)),
    strict("|", &[MACADDR8, MACADDR8], MACADDR8, |v| hardware(v, |_, a, b| a | b)),
];

fn address(arguments: &[ValueRef<'_>], at: usize) -> Result<Address> {
    Address::read(encoded(arguments, at)?.1).ok_or_else(mismatch)
}

fn inet(address: Address) -> Value {
    address.value(EncodedKind::Inet)
}

fn with_bits(arguments: &[ValueRef<'_>]) -> Result<Address> {
    let it = address(arguments, 0)?;
    let bits = match integer(arguments, 1)? {
        -1 => Some(it.width()),
        bits => u8::try_from(bits).ok().filter(|bits| *bits <= it.width()),
    };
    let bits = bits.ok_or_else(|| {
        let given = integer(arguments, 1).unwrap_or_default();
        invalid(format!("invalid mask length: {given}"))
    })?;
    Ok(Address { bits, ..it })
}

fn contains(
    arguments: &[ValueRef<'_>],
    outer: usize,
    inner: usize,
    kind: Containment,
) -> Result<Value> {
    let or_equals = kind == Containment::OrEqual;
    let (outer, inner) = (address(arguments, outer)?, address(arguments, inner)?);
    let is_within = outer.contains(inner) && (or_equals || outer.bits < inner.bits);
    Ok(Value::Boolean(is_within))
}

/// Returns the smallest network that has both addresses.
fn merged(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (address(arguments, 0)?, address(arguments, 1)?);
    if !same_family(a, b) {
        return Err(invalid("cannot merge addresses from different families"));
    }
    let differing = a.number() ^ b.number();
    let unused = 128 - a.width();
    let shared = (differing.leading_zeros() as u8).saturating_sub(unused);
    let bits = a.bits.min(b.bits).min(shared.min(a.width()));
    Ok(Address { bits, ..a }.network().value(EncodedKind::Cidr))
}

fn combined(arguments: &[ValueRef<'_>], of: fn(u128, u128) -> u128) -> Result<Value> {
    let (a, b) = (address(arguments, 0)?, address(arguments, 1)?);
    if !same_family(a, b) {
        let operation = if of(1, 2) == 0 { "AND" } else { "OR" };
        return Err(invalid(format!("cannot {operation} inet values of different sizes")));
    }
    let bits = a.bits.max(b.bits);
    Ok(inet(Address { bits, ..a.with_number(of(a.number(), b.number())) }))
}

#[cold]
fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "result is out of range")
}

fn moved(arguments: &[ValueRef<'_>], at: usize, by: i128) -> Result<Value> {
    let it = address(arguments, at)?;
    let number = if by < 0 {
        it.number().checked_sub(by.unsigned_abs())
    } else {
        it.number().checked_add(by.unsigned_abs())
    };
    let fits = |number: &u128| !it.ip.is_ipv4() || *number <= u128::from(u32::MAX);
    Ok(inet(it.with_number(number.filter(fits).ok_or_else(out_of_range)?)))
}

fn distance(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (address(arguments, 0)?, address(arguments, 1)?);
    if !same_family(a, b) {
        return Err(invalid("cannot subtract inet values of different sizes"));
    }
    let (larger, smaller) = (a.number().max(b.number()), a.number().min(b.number()));
    let distance = i64::try_from(larger - smaller).map_err(|_| out_of_range())?;
    Ok(Value::BigInt(if a.number() < b.number() { -distance } else { distance }))
}

fn keep(is_kept: bool, byte: u8) -> u8 {
    if is_kept { byte } else { 0 }
}

/// Computes a hardware address byte by byte, from the place and the bytes of the arguments.
fn hardware(arguments: &[ValueRef<'_>], of: fn(usize, u8, u8) -> u8) -> Result<Value> {
    let (kind, bytes) = encoded(arguments, 0)?;
    let other = if arguments.len() > 1 { encoded(arguments, 1)?.1 } else { bytes };
    let pairs = bytes.iter().zip(other).enumerate();
    let computed: Vec<u8> = pairs.map(|(at, (a, b))| of(at, *a, *b)).collect();
    Ok(Value::encoded(kind, &computed))
}
