//! Values as key bytes, which are equal exactly if the values are, and hash tables of such keys.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use crate::types::encoded::ordering_key;
use crate::types::json::jsonb_key;
use crate::types::{EncodedKind, RowRef, Value, ValueRef};

/// The first byte of a NUMERIC that has more than 38 digits without trailing zeros.
const LONG_NUMERIC: u8 = 200;

/// The first byte of an integer of more than 32 bits.
const LONG_INTEGER: u8 = 201;

/// Appends the key bytes of a value. Equal integers of all widths, and equal decimals of all
/// scales, have the same bytes.
#[inline]
pub fn append(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let integer = |number: i64, out: &mut Vec<u8>| match i32::try_from(number) {
        Ok(short) => {
            out.push(2);
            out.extend_from_slice(&short.to_le_bytes());
        }
        Err(_) => {
            out.push(LONG_INTEGER);
            out.extend_from_slice(&number.to_le_bytes());
        }
    };
    let double = |number: f64, out: &mut Vec<u8>| {
        // One zero, one that is no number.
        let number = if number == 0.0 {
            0.0
        } else if number.is_nan() {
            f64::NAN
        } else {
            number
        };
        out.push(3);
        out.extend_from_slice(&number.to_bits().to_le_bytes());
    };
    match value {
        ValueRef::Null => out.push(0),
        ValueRef::Boolean(v) => out.extend_from_slice(&[1, u8::from(v)]),
        ValueRef::Integer(v) => integer(v.into(), out),
        ValueRef::BigInt(v) => integer(v, out),
        ValueRef::SmallInt(v) => integer(v.into(), out),
        ValueRef::Oid(v) => integer(v.into(), out),
        ValueRef::Real(v) => double(v.into(), out),
        ValueRef::Double(v) => double(v, out),
        ValueRef::Numeric(v) => {
            let v = v.stripped();
            out.push(4);
            out.extend_from_slice(&v.mantissa().to_le_bytes());
            out.push(v.scale());
        }
        ValueRef::LongNumeric(v) => match Value::from(v.decimal().stripped()).as_ref() {
            ValueRef::LongNumeric(v) => {
                out.push(LONG_NUMERIC);
                out.extend_from_slice(&(v.bytes().len() as u64).to_le_bytes());
                out.extend_from_slice(v.bytes());
            }
            short => append(short, out),
        },
        ValueRef::Text(v) => {
            out.push(5);
            out.extend_from_slice(&(v.len() as u64).to_le_bytes());
            out.extend_from_slice(v.as_bytes());
        }
        ValueRef::Bytea(v) => {
            out.push(6);
            out.extend_from_slice(&(v.len() as u64).to_le_bytes());
            out.extend_from_slice(v);
        }
        ValueRef::Date(v) => {
            out.push(7);
            out.extend_from_slice(&v.to_le_bytes());
        }
        ValueRef::Time(v) | ValueRef::Timestamp(v) | ValueRef::TimestampTz(v) => {
            out.push(8);
            out.extend_from_slice(&v.to_le_bytes());
        }
        ValueRef::Interval(v) => {
            out.push(10);
            out.extend_from_slice(&v.length().to_le_bytes());
        }
        ValueRef::Json(v) => {
            out.push(12);
            out.extend_from_slice(&(v.len() as u64).to_le_bytes());
            out.extend_from_slice(v.as_bytes());
        }
        ValueRef::Jsonb(v) => {
            let v = jsonb_key(v);
            out.push(13);
            out.extend_from_slice(&(v.len() as u64).to_le_bytes());
            out.extend_from_slice(v.as_bytes());
        }
        ValueRef::Array(v) => {
            out.push(11);
            let dimensions = v.dimensions();
            out.push(dimensions.len() as u8);
            for one in dimensions {
                out.extend_from_slice(&one.length.to_le_bytes());
                out.extend_from_slice(&one.lower.to_le_bytes());
            }
            v.iter().for_each(|element| append(element, out));
        }
        ValueRef::Encoded(encoded, v) if encoded.kind() == EncodedKind::Record => {
            let row = RowRef::read(v);
            out.push(14 + EncodedKind::Record as u8);
            out.extend_from_slice(&row.map_or(0, RowRef::len).to_le_bytes());
            let fields = row.iter().flat_map(|row| row.fields());
            fields.for_each(|field| append(field.value, out));
        }
        ValueRef::Encoded(encoded, v) => {
            let key = ordering_key(encoded.kind(), v);
            out.push(14 + encoded.kind().family() as u8);
            out.extend_from_slice(&(key.len() as u64).to_le_bytes());
            out.extend_from_slice(&key);
        }
        ValueRef::Uuid(v) => {
            out.push(9);
            out.extend_from_slice(&v);
        }
    }
}

/// Returns a random seed, so that no input can be chosen to collide under the hash.
pub fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(0x51_7c_c1_b7u64))
}

/// Mixes two numbers so that every bit of the result depends on all of theirs.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hashes bytes. Each product takes two words, and two products are in flight. One factor of each
/// is mixed with the seed, so no input can force a zero product.
#[inline]
fn hash_of(seed: u64, bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let words = |block: &[u8; 16]| {
        let number = u128::from_le_bytes(*block);
        (number as u64, (number >> 64) as u64)
    };
    let (mut one, mut other) = (seed ^ bytes.len() as u64, seed.rotate_left(32) ^ ODD);
    let (pairs, mut rest) = bytes.as_chunks::<32>();
    for pair in pairs {
        let [first, second] = pair.as_chunks::<16>().0 else { continue };
        let ((a, b), (c, d)) = (words(first), words(second));
        one = mix(a ^ seed, b ^ one);
        other = mix(c ^ seed, d ^ other);
    }
    if let Some((block, left)) = rest.split_first_chunk::<16>() {
        let (a, b) = words(block);
        one = mix(a ^ seed, b ^ one);
        rest = left;
    }
    let (a, b) = if rest.is_empty() { (0, 0) } else { last_words(bytes) };
    mix(mix(a ^ seed, b ^ one) ^ other, ODD ^ seed)
}

/// Returns the last 16 bytes, or all bytes, as two words. Bytes may be in both. A copy into a block
/// would be narrow stores, for whose end a load of a word has to wait.
#[inline]
fn last_words(bytes: &[u8]) -> (u64, u64) {
    if let Some(block) = bytes.last_chunk::<16>() {
        let number = u128::from_le_bytes(*block);
        return (number as u64, (number >> 64) as u64);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
    }
    let byte = |at: usize| u64::from(bytes.get(at).copied().unwrap_or(0));
    (byte(0) | byte(1) << 8 | byte(2) << 16, 0)
}

/// Returns the partition of a key, of `count`. Levels partition by independent hashes, which are
/// independent of the places in a [`KeyTable`] too.
pub fn partition_of(key: &[u8], level: u32, count: usize) -> usize {
    let seed = mix(seed() ^ u64::from(level), 0xd6e8_feb8_6659_fd93);
    (hash_of(seed, key) >> 32) as usize % count
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct HashEntry {
    hash: u64,
    next: u32,
    start: usize,
    end: usize,
}

/// The hash of a key that a [`KeyTable`] does not have.
#[derive(Clone, Copy, Debug)]
pub struct AbsentKey {
    hash: u64,
}

/// A hash table of keys, numbered in insertion order.
#[derive(Clone, Debug)]
pub struct KeyTable {
    heads: Vec<u32>,
    entries: Vec<HashEntry>,
    bytes: Vec<u8>,
    seed: u64,
}

impl Default for KeyTable {
    fn default() -> KeyTable {
        KeyTable { heads: Vec::new(), entries: Vec::new(), bytes: Vec::new(), seed: seed() }
    }
}

impl KeyTable {
    /// Forgets all keys, in time by their number: an execution of few rows may follow one of many.
    pub fn clear(&mut self) {
        if self.entries.len() < self.heads.len() / 8 {
            let mask = self.heads.len() - 1;
            for entry in &self.entries {
                self.heads[entry.hash as usize & mask] = NONE;
            }
        } else if !self.heads.is_empty() {
            // `fill` of nothing is a masked store to an address that is none, which takes a
            // processor a hundred cycles.
            self.heads.fill(NONE);
        }
        self.entries.clear();
        self.bytes.clear();
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the key with that number.
    pub fn key(&self, number: usize) -> Option<&[u8]> {
        let entry = self.entries.get(number)?;
        self.bytes.get(entry.start..entry.end)
    }

    /// Returns the number of a key.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.locate(key).ok()
    }

    /// Returns the number of a key, or what [`insert_absent`](Self::insert_absent) takes, so that
    /// the key is hashed once.
    #[inline]
    pub fn locate(&self, key: &[u8]) -> Result<usize, AbsentKey> {
        let hash = hash_of(self.seed, key);
        // An empty table has no head at all.
        let bucket = hash as usize & self.heads.len().wrapping_sub(1);
        let mut at = self.heads.get(bucket).copied().unwrap_or(NONE);
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.hash == hash && self.bytes.get(entry.start..entry.end) == Some(key) {
                return Ok(at as usize);
            }
            at = entry.next;
        }
        Err(AbsentKey { hash })
    }

    /// Returns the number of a key, which is inserted if it is new; true: it was new.
    #[inline]
    pub fn insert(&mut self, key: &[u8]) -> (usize, bool) {
        match self.locate(key) {
            Ok(number) => (number, false),
            Err(absent) => (self.insert_absent(key, absent), true),
        }
    }

    /// Inserts a key that [`locate`](Self::locate) has not found, and returns its number.
    #[inline]
    pub fn insert_absent(&mut self, key: &[u8], absent: AbsentKey) -> usize {
        if self.entries.len() >= self.heads.len() {
            self.grow();
        }
        let hash = absent.hash;
        let bucket = hash as usize & (self.heads.len() - 1);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let number = self.entries.len();
        self.entries.push(HashEntry {
            hash,
            next: self.heads[bucket],
            start,
            end: self.bytes.len(),
        });
        self.heads[bucket] = number as u32;
        number
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.heads.len() * 2).max(64);
        self.heads.clear();
        self.heads.resize(size, NONE);
        for (number, entry) in self.entries.iter_mut().enumerate() {
            let bucket = entry.hash as usize & (size - 1);
            entry.next = self.heads[bucket];
            self.heads[bucket] = number as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Numeric;
    use std::collections::HashMap;

    #[test]
    fn keys_are_found_again() {
        let mut table = KeyTable::default();
        let mut model = HashMap::new();
        for n in 0..5_000u64 {
            let key = (n * n % 3_001).to_string();
            let expected = model.len();
            let number = *model.entry(key.clone()).or_insert(expected);
            assert_eq!(table.insert(key.as_bytes()), (number, number == expected));
        }
        assert!(model.iter().all(|(key, number)| table.find(key.as_bytes()) == Some(*number)));
        assert!(model.iter().all(|(key, number)| table.key(*number) == Some(key.as_bytes())));
        assert_eq!((table.entries.len(), table.find(b"x")), (model.len(), None));
        table.clear();
        assert_eq!((table.entries.len(), table.find(b"1")), (0, None));
        // Few keys in a large table.
        for _ in 0..3 {
            for (number, key) in [b"1", b"4", b"9"].into_iter().enumerate() {
                assert_eq!(table.insert(key), (number, true));
            }
            table.clear();
            assert!(table.heads.iter().all(|head| *head == NONE));
        }
    }

    #[test]
    fn each_byte_counts_in_a_hash() {
        const SEED: u64 = 0x0123_4567_89ab_cdef;
        for length in 1..70 {
            let mut bytes: Vec<u8> = (0..length).map(|n| (n * 37) as u8).collect();
            let hash = hash_of(SEED, &bytes);
            assert_ne!(hash, hash_of(SEED + 1, &bytes), "length {length}");
            assert_ne!(hash, hash_of(SEED, &bytes[1..]), "length {length}");
            for at in 0..bytes.len() {
                bytes[at] ^= 1;
                assert_ne!(hash, hash_of(SEED, &bytes), "byte {at} of {length}");
                bytes[at] ^= 1;
            }
        }
    }

    #[test]
    fn equal_values_are_equal_bytes() {
        let bytes = |value| {
            let mut out = Vec::new();
            append(value, &mut out);
            out
        };
        let numeric = |text| ValueRef::Numeric(Numeric::parse(text).unwrap());
        assert_eq!(bytes(ValueRef::Integer(7)), bytes(ValueRef::BigInt(7)));
        assert_eq!(bytes(ValueRef::SmallInt(-7)), bytes(ValueRef::BigInt(-7)));
        assert_ne!(bytes(ValueRef::Integer(7)), bytes(ValueRef::BigInt(7 + (1 << 32))));
        assert_eq!(bytes(numeric("1.50")), bytes(numeric("1.5")));
        assert_eq!(bytes(ValueRef::Double(-0.0)), bytes(ValueRef::Double(0.0)));
        assert_ne!(bytes(ValueRef::Text("1")), bytes(ValueRef::Bytea(b"1")));
        let pair = |a, b| [bytes(ValueRef::Text(a)), bytes(ValueRef::Text(b))].concat();
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
    }
}
