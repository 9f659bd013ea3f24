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
struct Keys {
    full: Option<Vec<u8>>,
    joined: Vec<u8>,
}

impl Keys {
    /// Decodes the next key. `alike` is the prefix length, or `None` if the key is stored in full.
    fn take(&mut self, bytes: &mut &[u8], alike: Option<usize>, length: usize) -> Option<&[u8]> {
        let rest = take(bytes, length)?;
        let Some(alike) = alike else {
            let full = self.full.get_or_insert_default();
            full.clear();
            full.extend_from_slice(rest);
            return Some(full);
        };
        self.joined.clear();
        self.joined.extend_from_slice(self.full.as_ref()?.get(..alike)?);
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

fn take_step<'k, 'a: 'k>(bytes: &mut &'a [u8], keys: &'k mut Keys) -> Option<ReplayStep<'k>> {
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

/// Takes a step and its position. Fails with `None` if the bytes are not those of a transaction.
type VisitStep<'v, E> = dyn FnMut(u64, ReplayStep<'_>) -> Result<(), Option<E>> + 'v;

/// Calls `visit` with each whole step in `bytes`, which begin at position `start`. Returns the
/// length of these steps.
fn visit_steps<E>(
    bytes: &[u8],
    start: u64,
    keys: &mut Keys,
    visit: &mut VisitStep<'_, E>,
) -> Result<usize, Option<E>> {
    let mut rest = bytes;
    loop {
        let taken = bytes.len() - rest.len();
        let Some(step) = take_step(&mut rest, keys) else { return Ok(taken) };
        visit(start + taken as u64, step)?;
    }
}

/// Calls `apply` with each operation that was not rolled back. `visit_all` calls its argument with
/// each step, twice in all: a rollback comes after the operations that it cancels.
fn decode_steps<E>(
    mut visit_all: impl FnMut(&mut VisitStep<'_, E>) -> Result<(), Option<E>>,
    mut apply: impl FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    visit_all(&mut |end, step| {
        if let ReplayStep::RolledBack(start) = step {
            if start > end {
                return Err(None);
            }
            while ranges.pop_if(|range| range.start >= start).is_some() {}
            ranges.push(start..end);
        }
        Ok(())
    })?;
    let mut ranges = ranges.iter().peekable();
    visit_all(&mut |at, step| {
        while ranges.next_if(|range| range.end <= at).is_some() {}
        let counts = ranges.peek().is_none_or(|range| at < range.start);
        match step {
            ReplayStep::Operation(operation) if counts => apply(operation).map_err(Some),
            ReplayStep::Operation(_) | ReplayStep::RolledBack(_) => Ok(()),
        }
    })
}

/// Calls `apply` with each operation in `bytes` that was not rolled back. Returns `Err(None)`,
/// without any call, if the bytes cannot be decoded.
pub fn decode_operations<E>(
    bytes: &[u8],
    apply: impl FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let visit_all = |visit: &mut VisitStep<'_, E>| {
        let taken = visit_steps(bytes, 0, &mut Keys::default(), visit)?;
        if taken == bytes.len() { Ok(()) } else { Err(None) }
    };
    decode_steps(visit_all, apply)
}

/// Like [`decode_operations`], for bytes in `count` parts that end anywhere, each of which `read`
/// returns twice. Holds one part in memory, and more only if an operation extends over several.
pub fn decode_parts<E>(
    count: usize,
    mut read: impl FnMut(usize) -> Result<Vec<u8>, E>,
    apply: impl FnMut(Operation<'_>) -> Result<(), E>,
) -> Result<(), Option<E>> {
    let visit_all = |visit: &mut VisitStep<'_, E>| {
        let (mut keys, mut window, mut start) = (Keys::default(), Vec::new(), 0);
        for number in 0..count {
            window.extend_from_slice(&read(number).map_err(Some)?);
            let taken = visit_steps(&window, start, &mut keys, visit)?;
            window.drain(..taken);
            start += taken as u64;
        }
        if window.is_empty() { Ok(()) } else { Err(None) }
    };
    decode_steps(visit_all, apply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_parts(bytes: &[u8], size: usize) -> (Result<(), Option<()>>, Vec<String>) {
        let parts: Vec<&[u8]> = bytes.chunks(size).collect();
        let mut found = Vec::new();
        let done = decode_parts(
            parts.len(),
            |number| Ok(parts[number].to_vec()),
            |operation| {
                found.push(format!("{operation:?}"));
                Ok(())
            },
        );
        (done, found)
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_operations(bytes in prop::collection::vec(0u8..9, 0..200)) {
            let whole = in_parts(&bytes, 200);
            let done = decode_operations(&bytes, |_| Ok::<_, ()>(()));
            prop_assert_eq!(&whole.0, &done);
            for size in [1, 7, 50] {
                prop_assert_eq!(&in_parts(&bytes, size), &whole);
            }
        }
    }
}
