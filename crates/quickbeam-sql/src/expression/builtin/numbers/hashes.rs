//! The hash functions that PostgreSQL has for its types, `hashtext`, `hashint8` and their kin, and
//! the choice of rows by TABLESAMPLE.
//!
//! Programs call them to turn a name into the number of an advisory lock, and to share rows out, so
//! the numbers are PostgreSQL's. The function is Bob Jenkins's `lookup3` (2006, public domain) with
//! PostgreSQL's initial value.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, double, integer, strict, text, volatile};
use crate::types::{DataType, SystemType, Value, ValueRef};
use DataType::{BigInt, Boolean, Double, Integer, Real, SmallInt, Text, Uuid};

const NAME: DataType = DataType::System(SystemType::Name);
const OID: DataType = DataType::OID;

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    volatile("table sample", &[Double], Boolean, |frame, v| {
        is_sampled(double(v, 0)?, frame.random())
    }),
    strict("table sample", &[Double, Double, Text], Boolean, |v| {
        is_sampled(double(v, 0)?, chance(text(v, 2)?, double(v, 1)?))
    }),
    strict("hashtext", &[Text], Integer, |v| of_bytes(text(v, 0)?.as_bytes())),
    strict("hashname", &[NAME], Integer, |v| of_bytes(text(v, 0)?.as_bytes())),
    strict("hashint2", &[SmallInt], Integer, |v| of_word(integer(v, 0)? as u32)),
    strict("hashint4", &[Integer], Integer, |v| of_word(integer(v, 0)? as u32)),
    strict("hashint8", &[BigInt], Integer, |v| of_word(folded(integer(v, 0)?))),
    strict("hashoid", &[OID], Integer, |v| of_word(oid(v))),
    strict("hashfloat4", &[Real], Integer, |v| of_float(v.first().and_then(|it| it.as_f64()))),
    strict("hashfloat8", &[Double], Integer, |v| of_float(v.first().and_then(|it| it.as_f64()))),
    strict("uuid_hash", &[Uuid], Integer, |v| match v {
        [ValueRef::Uuid(bytes), ..] => of_bytes(bytes),
        _ => Ok(Value::Null),
    }),
    strict("hashtextextended", &[Text, BigInt], BigInt, |v| {
        seeded_bytes(text(v, 0)?.as_bytes(), integer(v, 1)?)
    }),
    strict("hashint4extended", &[Integer, BigInt], BigInt, |v| {
        seeded_word(integer(v, 0)? as u32, integer(v, 1)?)
    }),
    strict("hashint8extended", &[BigInt, BigInt], BigInt, |v| {
        seeded_word(folded(integer(v, 0)?), integer(v, 1)?)
    }),
];

/// Returns whether a sample of that percentage has a row of that chance.
fn is_sampled(percentage: f64, chance: f64) -> Result<Value> {
    if !(0.0..=100.0).contains(&percentage) {
        let message = "sample percentage must be between 0 and 100";
        return Err(SqlError::new(SqlState::InvalidTablesampleArgument, message));
    }
    Ok(Value::Boolean(chance * 100.0 < percentage))
}

/// Returns a number from 0 to 1 that depends on a row and a seed.
fn chance(row: &str, seed: f64) -> f64 {
    let (low, _) = Lookup3::of_bytes(row.as_bytes(), seed.to_bits() | 1);
    f64::from(low) / (f64::from(u32::MAX) + 1.0)
}

fn oid(arguments: &[ValueRef<'_>]) -> u32 {
    match arguments {
        [ValueRef::Oid(number), ..] => *number,
        _ => 0,
    }
}

fn of_bytes(bytes: &[u8]) -> Result<Value> {
    Ok(Value::Integer(Lookup3::of_bytes(bytes, 0).0 as i32))
}

fn of_word(word: u32) -> Result<Value> {
    Ok(Value::Integer(Lookup3::of_word(word, 0).0 as i32))
}

/// Both zeros have one hash value, and all NaNs have one.
fn of_float(value: Option<f64>) -> Result<Value> {
    let value = value.unwrap_or_default();
    if value == 0.0 {
        return Ok(Value::Integer(0));
    }
    let value = if value.is_nan() { f64::NAN } else { value };
    of_bytes(&value.to_le_bytes())
}

fn seeded_bytes(bytes: &[u8], seed: i64) -> Result<Value> {
    let (low, high) = Lookup3::of_bytes(bytes, seed as u64);
    Ok(Value::BigInt(((u64::from(high) << 32) | u64::from(low)) as i64))
}

fn seeded_word(word: u32, seed: i64) -> Result<Value> {
    let (low, high) = Lookup3::of_word(word, seed as u64);
    Ok(Value::BigInt(((u64::from(high) << 32) | u64::from(low)) as i64))
}

/// Folds a number of 64 bits so that one that fits into 32 has the hash value of that.
fn folded(number: i64) -> u32 {
    let high = (number >> 32) as u32;
    number as u32 ^ if number >= 0 { high } else { !high }
}

/// The state of the function.
struct Lookup3 {
    a: u32,
    b: u32,
    c: u32,
}

impl Lookup3 {
    fn new(length: usize, seed: u64) -> Lookup3 {
        let start = 0x9e37_79b9_u32.wrapping_add(length as u32).wrapping_add(3_923_095);
        let mut state = Lookup3 { a: start, b: start, c: start };
        if seed != 0 {
            state.a = state.a.wrapping_add((seed >> 32) as u32);
            state.b = state.b.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn of_word(word: u32, seed: u64) -> (u32, u32) {
        let mut state = Lookup3::new(4, seed);
        state.a = state.a.wrapping_add(word);
        state.finish()
    }

    fn of_bytes(bytes: &[u8], seed: u64) -> (u32, u32) {
        let mut state = Lookup3::new(bytes.len(), seed);
        let mut blocks = bytes.chunks_exact(12);
        let word = |block: &[u8], at: usize| {
            let byte = |nth: usize| u32::from(block.get(at + nth).copied().unwrap_or_default());
            byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
        };
        for block in &mut blocks {
            state.a = state.a.wrapping_add(word(block, 0));
            state.b = state.b.wrapping_add(word(block, 4));
            state.c = state.c.wrapping_add(word(block, 8));
            state.mix();
        }
        let rest = blocks.remainder();
        state.a = state.a.wrapping_add(word(rest, 0));
        state.b = state.b.wrapping_add(word(rest, 4));
        // The lowest byte of this word is for the length.
        state.c = state.c.wrapping_add(word(rest, 8) << 8);
        state.finish()
    }

    fn mix(&mut self) {
        let Lookup3 { mut a, mut b, mut c } = *self;
        for (of_c, of_a, of_b) in [(4, 6, 8), (16, 19, 4)] {
            a = a.wrapping_sub(c) ^ c.rotate_left(of_c);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(of_a);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(of_b);
            b = b.wrapping_add(a);
        }
        *self = Lookup3 { a, b, c };
    }

    fn finish(self) -> (u32, u32) {
        let Lookup3 { mut a, mut b, mut c } = self;
        c = (c ^ b).wrapping_sub(b.rotate_left(14));
        a = (a ^ c).wrapping_sub(c.rotate_left(11));
        b = (b ^ a).wrapping_sub(a.rotate_left(25));
        c = (c ^ b).wrapping_sub(b.rotate_left(16));
        a = (a ^ c).wrapping_sub(c.rotate_left(4));
        b = (b ^ a).wrapping_sub(a.rotate_left(14));
        c = (c ^ b).wrapping_sub(b.rotate_left(24));
        (c, b)
    }
}
