//! The keys of inverted indexes: those that a value has, and those that a condition asks for.
//!
//! Above: open tables, which keep the entries, and the planner. An inverted index has one entry for
//! each distinct key of the indexed value: the key, followed by the key of the row. The bytes of a
//! key end themselves, so those of a row begin where they end:
//!
//! | operator class | key | bytes |
//! |---|---|---|
//! | `tsvector_ops` | a word | the word, as BYTEA |
//! | `array_ops` | an element that is not NULL | as in a range index, without the byte for NULL |
//! | `jsonb_ops` | a key of an object, or a string in an array | `k` and the text, as BYTEA |
//! | `jsonb_ops` | another value that is no array or object | its kind and the value, as BYTEA |
//! | `jsonb_path_ops` | such a value with the keys on the way to it | a hash value, u64 big-endian |
//!
//! A key of more than 128 bytes is stored as its first 128 bytes and a hash value of all.
//!
//! If a condition holds for a value, the keys of the value satisfy the condition on keys that
//! [`condition_on_keys`] returns. The converse need not be true, so rows are checked.

mod condition;
mod json_keys;

pub use condition::KeyCondition;
pub(crate) use condition::condition_on_keys;

use super::key_encoding::{KeyPart, encode_bytes};
use crate::error::{Result, SqlError};
use crate::schema::OperatorClass;
use crate::types::encoded::text_search::TextVectorRef;
use crate::types::{ArrayRef, DataType, EncodedKind, ValueRef};

/// The bytes of a key that are stored of a longer one, before its hash value.
const LONGEST: usize = 128;

/// Returns the keys of a value in the order of their bytes, each once. NULL has none.
pub(crate) fn keys_of(class: OperatorClass, value: ValueRef<'_>) -> Result<Vec<Vec<u8>>> {
    let mut keys = match (class, value) {
        (_, ValueRef::Null) => Vec::new(),
        (OperatorClass::TextVector, ValueRef::Encoded(encoded, bytes))
            if encoded.kind() == EncodedKind::TsVector =>
        {
            let vector = TextVectorRef::read(bytes).ok_or_else(|| unreadable("tsvector"))?;
            vector.lexemes.iter().map(|lexeme| word_key(lexeme.word)).collect()
        }
        (OperatorClass::Array, ValueRef::Array(array)) => element_keys(array)?,
        (OperatorClass::Jsonb, ValueRef::Jsonb(text)) => json_keys::parts(text)?,
        (OperatorClass::JsonbPath, ValueRef::Jsonb(text)) => json_keys::paths(text)?,
        _ => return Err(SqlError::internal("a value that its operator class does not index")),
    };
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

#[cold]
fn unreadable(what: &str) -> SqlError {
    SqlError::corrupted(format!("a {what} cannot be read"))
}

/// Returns the key of a word.
fn word_key(word: &str) -> Vec<u8> {
    bytes_key(word.as_bytes())
}

/// Returns how the keys of words begin that begin so.
fn prefix_key(word: &str) -> Vec<u8> {
    let mut key = Vec::new();
    let bytes = word.as_bytes();
    encode_bytes(&mut key, bytes.get(..LONGEST).unwrap_or(bytes));
    // Without the end of the word.
    key.truncate(key.len().saturating_sub(2));
    key
}

/// Returns the keys of the elements of an array that are not NULL.
fn element_keys(array: ArrayRef<'_>) -> Result<Vec<Vec<u8>>> {
    let part = KeyPart::of_type(array.element_type().data_type());
    let elements = array.iter().filter(|element| !element.is_null());
    elements.map(|element| element_key(part, element)).collect()
}

fn element_key(part: KeyPart, element: ValueRef<'_>) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    // Equal numbers of these types have equal keys, whatever their bits.
    part.encode(&mut key, element)?;
    Ok(match key.len() > LONGEST {
        true => bytes_key(&key),
        false => key,
    })
}

/// Returns the key of some bytes: all of them, or of many the first ones and a hash value.
fn bytes_key(bytes: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(bytes.len().min(LONGEST) + 10);
    match bytes.get(..LONGEST) {
        Some(first) if bytes.len() > LONGEST => {
            let hash = KeyHash::default().with(bytes).0.to_be_bytes();
            encode_bytes(&mut key, &[first, &hash].concat());
        }
        _ => encode_bytes(&mut key, bytes),
    }
    key
}

/// A hash value that is stored: FNV-1a with 64 bits.
#[derive(Clone, Copy, Debug)]
struct KeyHash(u64);

impl Default for KeyHash {
    fn default() -> KeyHash {
        KeyHash(0xcbf2_9ce4_8422_2325)
    }
}

impl KeyHash {
    /// Adds bytes.
    fn with(self, bytes: &[u8]) -> KeyHash {
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        KeyHash(bytes.iter().fold(self.0, add))
    }
}

/// Returns whether the elements of arrays of a type can be keys.
pub(crate) fn has_element_keys(data_type: DataType) -> bool {
    data_type.element().is_some_and(|element| element.data_type().has_order())
}

#[cfg(test)]
mod tests;
