//! The undo entries of a committed transaction, in the compact form that is kept for old snapshots.
//!
//! Above: the transaction table, which keeps one for each transaction id. Below: nothing. While a
//! transaction runs, its entries can be undone and have keys; afterwards only readers' version
//! chains refer to them. So a committed entry holds the older value, flags and version word of a
//! record, without key and tree. All entries of a transaction id are in one allocation. Most
//! transactions are small, and an old snapshot may keep millions of them.
//!
//! - PAST-1: entries keep their numbers. A removed entry is never found again.

use std::io;

use super::super::Timestamp;
use crate::error::{Error, Result};

/// The version of a record before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// False if there was no record.
    pub present: bool,
    /// The record's flags.
    pub flags: u8,
    /// The record's version word.
    pub version: u64,
}

/// Offset of a removed entry.
const TAKEN_OUT: u32 = u32::MAX;
/// Bytes before the offsets: form, timestamp, number of entries, entries left, bytes removed.
const HEAD: usize = 1 + 8 + 3 * 4;
const ONE: u8 = 1;
const MANY: u8 = 2;

/// Estimates the bytes that an allocator uses for `bytes`, like common allocators.
pub fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}

/// The undo entries of one transaction id of a committed transaction.
pub struct CommittedUndo(Box<[u8]>);

/// A decoded entry.
pub struct CommittedEntry<'a> {
    pub before: Before,
    pub value: &'a [u8],
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_entry(bytes: &mut Vec<u8>, entry: &CommittedEntry<'_>) {
    let Before { present, flags, version } = entry.before;
    put_number(bytes, if present { u64::from(flags) + 1 } else { 0 });
    put_number(bytes, version);
    put_number(bytes, entry.value.len() as u64);
    bytes.extend_from_slice(entry.value);
}

/// An entry without its value.
struct EntryHead {
    before: Before,
    /// Bytes of the value.
    length: usize,
}

fn take_head(bytes: &mut &[u8]) -> Option<EntryHead> {
    let kind = take_number(bytes)?;
    let version = take_number(bytes)?;
    let length = take_number(bytes)? as usize;
    let before = Before { present: kind > 0, flags: kind.saturating_sub(1) as u8, version };
    Some(EntryHead { before, length })
}

fn take_entry<'a>(mut bytes: &'a [u8]) -> Option<(CommittedEntry<'a>, usize)> {
    let whole = bytes.len();
    let EntryHead { before, length } = take_head(&mut bytes)?;
    let value = bytes.get(..length)?;
    Some((CommittedEntry { before, value }, whole - bytes.len() + length))
}

impl CommittedUndo {
    /// Encodes the entries of a transaction that committed at `timestamp`; `None` stands for a
    /// removed entry.
    pub fn new<'a>(
        timestamp: Timestamp,
        entries: impl ExactSizeIterator<Item = Option<CommittedEntry<'a>>>,
    ) -> CommittedUndo {
        let mut encoder = CommittedUndoEncoder::new(timestamp, entries.len());
        entries.for_each(|entry| encoder.push(entry));
        encoder.finish()
    }

    /// Returns the encoded entries, which [`read_spilled`] reads.
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }

    fn is_one(&self) -> bool {
        self.0.first() == Some(&ONE)
    }

    /// Returns the commit timestamp.
    #[inline]
    pub fn timestamp(&self) -> Timestamp {
        let mut bytes = self.0.get(1..).unwrap_or_default();
        if self.is_one() {
            return take_number(&mut bytes).unwrap_or(0);
        }
        bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns the number of entries, including removed ones.
    pub fn count(&self) -> usize {
        if self.is_one() { 1 } else { word(&self.0, 9) as usize }
    }

    fn at(&self, number: usize) -> Option<usize> {
        if !self.is_one() {
            let at = (number < self.count()).then(|| word(&self.0, HEAD + 4 * number))?;
            return (at != TAKEN_OUT).then_some(at as usize);
        }
        let mut bytes = self.0.get(1..)?;
        take_number(&mut bytes)?;
        (number == 0).then_some(self.0.len() - bytes.len())
    }

    /// Returns entry `number`, or `None` if it was removed.
    pub fn entry(&self, number: usize) -> Option<CommittedEntry<'_>> {
        take_entry(self.0.get(self.at(number)?..)?).map(|(entry, _)| entry)
    }

    /// Returns the numbers of entries that refer to an older version, with its version word.
    pub fn words(&self) -> Vec<(usize, u64)> {
        let word = |number| Some((number, self.entry(number)?.before.version));
        (0..self.count()).filter_map(word).filter(|(_, word)| *word != 0).collect()
    }

    /// Replaces entries by `others`, which are ordered by number.
    pub fn replace(&mut self, others: &[(usize, Before, Vec<u8>)]) {
        invariant!(
            PAST_1,
            others.iter().all(|(number, ..)| self.entry(*number).is_some()),
            "a removed entry comes back"
        );
        let mut others = others.iter().peekable();
        let entries: Vec<Option<CommittedEntry<'_>>> = (0..self.count())
            .map(|number| match others.next_if(|(other, ..)| *other == number) {
                Some((_, before, value)) => Some(CommittedEntry { before: *before, value }),
                None => self.entry(number),
            })
            .collect();
        *self = CommittedUndo::new(self.timestamp(), entries.into_iter());
    }

    /// Removes an entry. Returns false if none is left. The memory shrinks when half of it is
    /// unused.
    pub fn take_out(&mut self, number: usize) -> bool {
        let Some(at) = self.at(number) else { return true };
        if self.is_one() {
            return false;
        }
        let length = self.0.get(at..).and_then(take_entry).map_or(0, |(_, length)| length);
        set_word(&mut self.0, HEAD + 4 * number, TAKEN_OUT);
        let left = word(&self.0, 13).saturating_sub(1);
        let unused = word(&self.0, 17) + length as u32;
        set_word(&mut self.0, 13, left);
        set_word(&mut self.0, 17, unused);
        if unused as usize > self.0.len() / 2 && left > 0 {
            self.replace(&[]);
        }
        left > 0
    }

    /// Returns the bytes of memory in use.
    pub fn allocated(&self) -> usize {
        allocated(self.0.len())
    }
}

/// Encodes the undo entries of one transaction id.
pub struct CommittedUndoEncoder {
    bytes: Vec<u8>,
    is_one: bool,
    /// Entries so far, including removed ones.
    number: usize,
    /// Entries so far, without removed ones.
    left: u32,
}

impl CommittedUndoEncoder {
    /// Begins the encoding of `count` entries of a transaction that committed at `timestamp`.
    pub fn new(timestamp: Timestamp, count: usize) -> CommittedUndoEncoder {
        let mut bytes = Vec::new();
        if count == 1 {
            bytes.push(ONE);
            put_number(&mut bytes, timestamp);
        } else {
            bytes.push(MANY);
            bytes.extend_from_slice(&timestamp.to_le_bytes());
            bytes.extend_from_slice(&(count as u32).to_le_bytes());
            bytes.resize(HEAD + 4 * count, 0);
        }
        CommittedUndoEncoder { bytes, is_one: count == 1, number: 0, left: 0 }
    }

    /// Adds the next entry; `None` stands for a removed one.
    pub fn push(&mut self, entry: Option<CommittedEntry<'_>>) {
        let at = self.bytes.len() as u32;
        if let Some(entry) = &entry {
            put_entry(&mut self.bytes, entry);
            self.left += 1;
        }
        if !self.is_one {
            let at = if entry.is_some() { at } else { TAKEN_OUT };
            set_word(&mut self.bytes, HEAD + 4 * self.number, at);
        }
        self.number += 1;
    }

    /// Ends the encoding.
    pub fn finish(mut self) -> CommittedUndo {
        if !self.is_one {
            set_word(&mut self.bytes, 13, self.left);
        }
        CommittedUndo(self.bytes.into_boxed_slice())
    }
}

/// Bytes that one read of a file asks for: the head of an id's entries, or of one entry.
const PROBE_BYTES: usize = 512;

/// Reads entry `number` of encoded entries in a file, and appends its value to `value`. `read`
/// takes an offset and the maximum number of bytes to read there. Returns `None` if the entry was
/// removed before.
pub fn read_spilled(
    read: impl Fn(usize, usize) -> Result<Vec<u8>>,
    number: usize,
    value: &mut Vec<u8>,
) -> Result<Option<Before>> {
    let head = read(0, PROBE_BYTES)?;
    let at = if head.first() == Some(&ONE) {
        let mut rest = head.get(1..).unwrap_or_default();
        take_number(&mut rest).ok_or_else(damaged)?;
        head.len() - rest.len()
    } else {
        let place = HEAD + 4 * number;
        match head.get(place..place + 4) {
            Some(offset) => word(offset, 0) as usize,
            None => word(&read(place, 4)?, 0) as usize,
        }
    };
    if at == TAKEN_OUT as usize {
        return Ok(None);
    }
    // Small entries of small transactions are in the bytes read before.
    if let Some((entry, _)) = head.get(at..).and_then(take_entry) {
        value.extend_from_slice(entry.value);
        return Ok(Some(entry.before));
    }
    let bytes = read(at, PROBE_BYTES)?;
    let mut rest = &bytes[..];
    let EntryHead { before, length } = take_head(&mut rest).ok_or_else(damaged)?;
    let start = value.len();
    match rest.get(..length) {
        Some(older) => value.extend_from_slice(older),
        None => value.extend_from_slice(&read(at + bytes.len() - rest.len(), length)?),
    }
    if value.len() - start < length {
        return Err(damaged());
    }
    Ok(Some(before))
}

/// The error of undo entries in a file that cannot be decoded.
#[cold]
pub fn damaged() -> Error {
    Error::io("reading undo entries from a temporary file", io::ErrorKind::InvalidData.into())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

fn set_word(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(word) = bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
        *word = value.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(version: u64) -> Before {
        Before { present: version % 2 == 1, flags: 3 * (version % 2) as u8, version }
    }

    #[test]
    fn undo_entries_keep_their_numbers_when_others_are_removed() {
        for count in [1, 2, 300] {
            let values: Vec<Vec<u8>> = (0..count).map(|n| vec![n as u8; n % 70]).collect();
            let entries = values.iter().enumerate().map(|(number, value)| {
                Some(CommittedEntry { before: before(number as u64 * 1_000_000), value })
            });
            let mut past = CommittedUndo::new(1 << 40, entries);
            let full = past.allocated();
            past.replace(&[(count - 1, before(7), b"another".to_vec())]);
            assert_eq!((past.timestamp(), past.count()), (1 << 40, count));
            for (number, value) in values.iter().enumerate().take(count - 1) {
                let entry = past.entry(number).unwrap();
                assert_eq!(entry.value, value);
                assert_eq!(entry.before, before(number as u64 * 1_000_000));
                assert!(past.take_out(number));
                assert!(past.entry(number).is_none());
            }
            let last = past.entry(count - 1).unwrap();
            assert_eq!((last.before, last.value), (before(7), &b"another"[..]));
            assert!(count < 300 || past.allocated() < full / 4);
            assert!(!past.take_out(count - 1));
        }
    }

    #[test]
    fn small_undo_entry_takes_little_memory() {
        let entry = CommittedEntry { before: before(1 << 40), value: &[1; 8] };
        assert!(CommittedUndo::new(1 << 30, [Some(entry)].into_iter()).allocated() <= 32 + 16);
    }
}
