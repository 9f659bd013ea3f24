//! The payload of log records: the operations of a transaction.
//!
//! Above: commit, recovery and salvage. Below: nothing.
//!
//! An operation is `[kind: 1] [tree] [key length] [value length, puts only] [key] [value]`, numbers
//! in LEB128. A key may share a prefix with the newest key that was written in full. Such an
//! operation stores the prefix length and the rest of the key: `[kind] [tree] [prefix length] [rest
//! length] [value length, puts only] [rest] [value]`. Most transactions change neighboring keys.

use std::ops::Range;

/// One decoded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Inserts or replaces a record.
    Put { tree: u32, key: &'a [u8], value: &'a [u8] },
    /// Removes a record.
    Delete { tree: u32, key: &'a [u8] },
}

pub(super) const PUT: u8 = 1;
pub(super) const DELETE: u8 = 2;
/// Like [`PUT`] and [`DELETE`], with only the rest of the key.
pub(super) const PUT_REST: u8 = 3;
pub(super) const DELETE_REST: u8 = 4;
/// Cancels the operations from a position on, which were rolled back.
pub(super) const ROLLED_BACK: u8 = 5;

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

/// The decoder's keys: the newest full key, and a buffer for a key that is joined from it.
#[derive(Default)]
struct Keys<'a> {
    full: Option<&'a [u8]>,
    joined: Vec<u8>,
}

impl<'a> Keys<'a> {
    /// Decodes the next key. `alike` is the prefix length, or `None` if the key is stored in full.
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

/// One decoded step of a transaction's bytes.
enum ReplayStep<'a> {
    Operation(Operation<'a>),
    /// Cancels the operations from that position on.
    RolledBack(u64),
}

fn take_step<'k, 'a: 'k>(bytes: &mut &'a [u8], keys: &'k mut Keys<'a>) -> Option<ReplayStep<'k>> {
    let kind = take(bytes, 1)?[0];
    if kind == ROLLED_BACK {
        return Some(ReplayStep::RolledBack(u64::from_le_bytes(*take(bytes, 8)?.first_chunk()?)));
    }
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
            Some(ReplayStep::Operation(Operation::Put {
                tree,
                key,
                value: take(bytes, value_length)?,
            }))
        }
        DELETE | DELETE_REST => {
            let key = keys.take(bytes, alike, key_length)?;
            Some(ReplayStep::Operation(Operation::Delete { tree, key }))
        }
        _ => None,
    }
}

/// Returns the ranges of a transaction's bytes that were rolled back, in order. Returns `None` if
/// the bytes cannot be decoded.
fn rolled_back(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let (mut rest, mut keys) = (bytes, Keys::default());
    let mut ranges: Vec<Range<usize>> = Vec::new();
    while !rest.is_empty() {
        let end = bytes.len() - rest.len();
        if let ReplayStep::RolledBack(position) = take_step(&mut rest, &mut keys)? {
            let start = usize::try_from(position).ok().filter(|&start| start <= end)?;
            while ranges.pop_if(|range| range.start >= start).is_some() {}
            ranges.push(start..end);
        }
    }
    Some(ranges)
}

/// Calls `apply` with each operation that was not rolled back. Returns `Err(None)`, without any
/// call, if the bytes cannot be decoded.
pub fn decode_operations<E>(
    bytes: &[u8],
    mut apply: impl FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let ranges = rolled_back(bytes).ok_or(None)?;
    let mut ranges = ranges.iter().peekable();
    let (mut rest, mut keys) = (bytes, Keys::default());
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        while ranges.next_if(|range| range.end <= at).is_some() {}
        let counts = ranges.peek().is_none_or(|range| at < range.start);
        match take_step(&mut rest, &mut keys).ok_or(None)? {
            ReplayStep::Operation(operation) if counts => apply(operation).map_err(Some)?,
            ReplayStep::Operation(_) | ReplayStep::RolledBack(_) => {}
        }
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
