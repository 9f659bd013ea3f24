//! What a transaction did, as bytes: the payload of log records.
//!
//! `[kind: 1] [tree] [key length] [value length, puts only] [key] [value]`, numbers in LEB128. A key that begins as the
//! newest one that was written in full says with how many bytes, and has only the rest: `[kind] [tree] [alike] [rest length]
//! [value length, puts only] [rest] [value]`. Transactions change keys that lie side by side more often than not.

/// One operation, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Insert or replace.
    Put { tree: u32, key: &'a [u8], value: &'a [u8] },
    /// Remove.
    Delete { tree: u32, key: &'a [u8] },
}

pub(super) const PUT: u8 = 1;
pub(super) const DELETE: u8 = 2;
/// As [`PUT`] and [`DELETE`], with the key's rest only.
pub(super) const PUT_REST: u8 = 3;
pub(super) const DELETE_REST: u8 = 4;

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

/// The keys that operations are read with: the newest that was written in full, and one put together from it.
#[derive(Default)]
struct Keys<'a> {
    full: Option<&'a [u8]>,
    joined: Vec<u8>,
}

impl<'a> Keys<'a> {
    /// The next key: `alike` says how it begins, `None` if it is here in full.
    fn take(&mut self, bytes: &mut &'a [u8], alike: Option<usize>, length: usize) -> Option<&[u8]> {
        let rest = take(bytes, length)?;
        let Some(alike) = alike else {
            self.full = Some(rest);
            return Some(rest);
        };
        self.joined.clear();
        self.joined.extend_from_slice(self.full?.get(..alike)?);
        self.joined.extend_from_slice(rest);
        Some(&self.joined)
    }
}

fn take_operation<'k, 'a: 'k>(
    bytes: &mut &'a [u8],
    keys: &'k mut Keys<'a>,
) -> Option<Operation<'k>> {
    let kind = take(bytes, 1)?[0];
    let tree = u32::try_from(take_number(bytes)?).ok()?;
    let alike = match kind {
        PUT_REST | DELETE_REST => Some(take_number(bytes)?),
        _ => None,
    };
    let key_length = take_number(bytes)?;
    match kind {
        PUT | PUT_REST => {
            let value_length = take_number(bytes)?;
            let key = keys.take(bytes, alike, key_length)?;
            Some(Operation::Put { tree, key, value: take(bytes, value_length)? })
        }
        DELETE | DELETE_REST => {
            Some(Operation::Delete { tree, key: keys.take(bytes, alike, key_length)? })
        }
        _ => None,
    }
}

/// Calls `apply` with each operation; `Err(None)` when the bytes are no operations.
pub fn decode_operations<E>(
    mut bytes: &[u8],
    mut apply: impl FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut keys = Keys::default();
    while !bytes.is_empty() {
        let operation = take_operation(&mut bytes, &mut keys).ok_or(None)?;
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
        fn garbage_is_an_error_or_operations(bytes in prop::collection::vec(0u8..9, 0..200)) {
            let _ = decode_operations(&bytes, |_| Ok::<_, ()>(()));
        }
    }
}
