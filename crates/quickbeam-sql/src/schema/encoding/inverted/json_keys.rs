//! The keys of JSONB values.

use super::{KeyHash, bytes_key};
use crate::error::Result;
use crate::types::json::{Json, JsonKind};

/// What a key of `jsonb_ops` stands for: the first byte of its text.
const NAME: u8 = b'k';
const NULL: u8 = b'z';
const BOOLEAN: u8 = b'b';
const NUMBER: u8 = b'n';
const STRING: u8 = b's';

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonPlace {
    /// In an array, or alone, which PostgreSQL keeps as an array of one element.
    InArray,
    /// In an object.
    InObject,
}

/// Returns the key of the name of a member.
pub(super) fn name_key(name: &str) -> Vec<u8> {
    bytes_key(&[&[NAME], name.as_bytes()].concat())
}

/// Returns the keys of `jsonb_ops`: of the names of members, and of values.
pub(super) fn parts(text: &str) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    add_parts(&Json::read(text)?, JsonPlace::InArray, &mut keys)?;
    Ok(keys)
}

fn add_parts(value: &Json<'_>, place: JsonPlace, keys: &mut Vec<Vec<u8>>) -> Result<()> {
    match &value.kind {
        JsonKind::Array(list) => {
            return list.iter().try_for_each(|it| add_parts(it, JsonPlace::InArray, keys));
        }
        JsonKind::Object(members) => {
            return members.iter().try_for_each(|(name, member)| {
                keys.push(name_key(name));
                add_parts(member, JsonPlace::InObject, keys)
            });
        }
        JsonKind::String(text) if place == JsonPlace::InArray => keys.push(name_key(text)),
        _ => keys.push(bytes_key(&scalar_bytes(value)?)),
    }
    Ok(())
}

/// Returns the kind and the bytes of a value that is no array or object. Equal numbers have equal
/// bytes.
fn scalar_bytes(value: &Json<'_>) -> Result<Vec<u8>> {
    Ok(match &value.kind {
        JsonKind::Null => vec![NULL],
        JsonKind::Boolean(truth) => vec![BOOLEAN, u8::from(*truth)],
        JsonKind::String(text) => [&[STRING], text.as_bytes()].concat(),
        JsonKind::Number => {
            let mut bytes = vec![NUMBER];
            if let Some(number) = value.number()? {
                number.write_key(&mut bytes);
            }
            bytes
        }
        JsonKind::Array(_) | JsonKind::Object(_) => Vec::new(),
    })
}

/// Returns the keys of `jsonb_path_ops`: of each value with the names of members on the way to it.
pub(super) fn paths(text: &str) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    add_paths(&Json::read(text)?, KeyHash::default(), &mut keys)?;
    Ok(keys)
}

fn add_paths(value: &Json<'_>, path: KeyHash, keys: &mut Vec<Vec<u8>>) -> Result<()> {
    match &value.kind {
        JsonKind::Array(list) => list.iter().try_for_each(|it| add_paths(it, path, keys)),
        JsonKind::Object(members) => members.iter().try_for_each(|(name, member)| {
            let length = (name.len() as u64).to_be_bytes();
            let path = path.with(&[NAME]).with(&length).with(name.as_bytes());
            add_paths(member, path, keys)
        }),
        _ => {
            keys.push(path.with(&scalar_bytes(value)?).0.to_be_bytes().to_vec());
            Ok(())
        }
    }
}
