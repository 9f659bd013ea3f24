//! What a transaction did, as bytes: the payload of log records.
//!
//! `[kind: 1] [tree] [key length] [value length, puts only] [key] [value]`, numbers in LEB128.

/// One operation, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Insert or replace.
    Put { tree: u32, key: &'a [u8], value: &'a [u8] },
    /// Remove.
    Delete { tree: u32, key: &'a [u8] },
}

const PUT: u8 = 1;
const DELETE: u8 = 2;

#[inline]
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0u64;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(number).ok();
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Appends a put.
#[inline]
pub fn encode_put(out: &mut Vec<u8>, tree: u32, key: &[u8], value: &[u8]) {
    out.reserve(key.len() + value.len() + 16);
    out.push(PUT);
    push_number(out, u64::from(tree));
    push_number(out, key.len() as u64);
    push_number(out, value.len() as u64);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Appends a delete.
#[inline]
pub fn encode_delete(out: &mut Vec<u8>, tree: u32, key: &[u8]) {
    out.push(DELETE);
    push_number(out, u64::from(tree));
    push_number(out, key.len() as u64);
    out.extend_from_slice(key);
}

fn take_operation<'a>(bytes: &mut &'a [u8]) -> Option<Operation<'a>> {
    let kind = take(bytes, 1)?[0];
    let tree = u32::try_from(take_number(bytes)?).ok()?;
    let key_length = take_number(bytes)?;
    match kind {
        PUT => {
            let value_length = take_number(bytes)?;
            let key = take(bytes, key_length)?;
            Some(Operation::Put { tree, key, value: take(bytes, value_length)? })
        }
        DELETE => Some(Operation::Delete { tree, key: take(bytes, key_length)? }),
        _ => None,
    }
}

/// Calls `apply` with each operation; `Err(None)` when the bytes are no operations.
pub fn decode_operations<E>(
    mut bytes: &[u8],
    mut apply: impl FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), Option<E>> {
    while !bytes.is_empty() {
        let operation = take_operation(&mut bytes).ok_or(None)?;
        apply(operation).map_err(Some)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            operations in prop::collection::vec(
                (any::<u32>(), prop::collection::vec(any::<u8>(), 0..300), prop::option::of(prop::collection::vec(any::<u8>(), 0..300))), 0..20),
        ) {
            let mut bytes = Vec::new();
            for (tree, key, value) in &operations {
                match value {
                    Some(value) => encode_put(&mut bytes, *tree, key, value),
                    None => encode_delete(&mut bytes, *tree, key),
                }
            }
            let mut back = Vec::new();
            decode_operations(&bytes, |operation| {
                back.push(match operation {
                    Operation::Put { tree, key, value } => (tree, key.to_vec(), Some(value.to_vec())),
                    Operation::Delete { tree, key } => (tree, key.to_vec(), None),
                });
                Ok::<_, ()>(())
            }).unwrap();
            prop_assert_eq!(back, operations);
        }

        #[test]
        fn garbage_is_an_error_or_operations(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_operations(&bytes, |_| Ok::<_, ()>(()));
        }
    }
}
