//! The redo buffer: encodes the operations of a transaction while it runs.
//!
//! Above: transactions. Below: the comparison of key prefixes. [`operations`](super::operations)
//! defines the format and decodes it.
//!
//! - REDO-1: removing bytes at either end also forgets the full key that they contain. A key is
//!   shortened only against a full key that a reader of the remaining bytes, appended to the
//!   removed front, has seen.

use super::operations::{DELETE, DELETE_REST, PUT, PUT_REST, ROLLED_BACK};
use crate::page::common_prefix;

/// Minimum length of a shared prefix that is worth encoding, in bytes.
const WORTH_SHORTENING: usize = 8;

/// The operations of a transaction that are not yet in the log.
#[derive(Default)]
pub struct Redo {
    bytes: Vec<u8>,
    /// Bytes of the transaction that are already in the log.
    front: u64,
    /// Start and end in `bytes` of the newest key that is stored in full.
    full: Option<(usize, usize)>,
    /// The log has a part of an operation whose rest does not follow.
    is_torn: bool,
}

impl Redo {
    /// Returns the encoded operations.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of encoded bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the buffer's capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the position of the next operation, in bytes from the transaction's first.
    #[inline]
    pub fn position(&self) -> u64 {
        self.front + self.bytes.len() as u64
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.front = 0;
        self.full = None;
        self.is_torn = false;
    }

    /// Returns whether the operations cannot be decoded, so that the transaction must not commit.
    #[inline]
    pub fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Removes the put that began at `position`, of whose value not every part was appended.
    pub fn abandon_put(&mut self, position: u64) {
        self.is_torn |= position < self.front;
        self.roll_back_to(position);
    }

    /// Removes all operations from `position` on. If the log already has some of them, an entry
    /// that cancels them is appended instead, since the log may end within an operation.
    pub fn roll_back_to(&mut self, position: u64) {
        match position.checked_sub(self.front) {
            Some(length) => {
                let length = length as usize;
                self.bytes.truncate(length);
                self.full = self.full.filter(|&(_, end)| end <= length);
            }
            None => {
                self.bytes.push(ROLLED_BACK);
                self.bytes.extend_from_slice(&position.to_le_bytes());
            }
        }
    }

    /// Removes the first `length` bytes, which are in the log now.
    pub fn remove_front(&mut self, length: usize) {
        self.bytes.drain(..length);
        self.front += length as u64;
        self.full = self
            .full
            .and_then(|(start, end)| Some((start.checked_sub(length)?, end.checked_sub(length)?)));
    }

    /// Appends a put.
    #[inline]
    pub fn put(&mut self, tree: u32, key: &[u8], value: &[u8]) {
        self.bytes.reserve(key.len() + value.len() + 24);
        self.begin_put(tree, key, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// Appends a put without its value, whose `length` bytes [`put_part`](Self::put_part) appends.
    #[inline]
    pub fn begin_put(&mut self, tree: u32, key: &[u8], length: u64) {
        let alike = self.alike(key);
        self.bytes.push(if alike == 0 { PUT } else { PUT_REST });
        self.push_lengths(tree, alike, key.len());
        push_number(&mut self.bytes, length);
        self.push_key(alike, key);
    }

    /// Appends the next bytes of the value of the put that was begun.
    pub fn put_part(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
    }

    /// Appends a delete.
    #[inline]
    pub fn delete(&mut self, tree: u32, key: &[u8]) {
        let alike = self.alike(key);
        self.bytes.push(if alike == 0 { DELETE } else { DELETE_REST });
        self.push_lengths(tree, alike, key.len());
        self.push_key(alike, key);
    }

    /// Returns the length of the prefix shared with the newest full key, or zero if encoding it is
    /// not worthwhile.
    #[inline]
    fn alike(&self, key: &[u8]) -> usize {
        invariant!(
            REDO_1,
            self.full.is_none_or(|(start, end)| start <= end && end <= self.bytes.len()),
            "the full key at {:?} was removed",
            self.full
        );
        let full = self.full.and_then(|(start, end)| self.bytes.get(start..end));
        let alike = full.map_or(0, |full| common_prefix(full, key));
        if alike >= WORTH_SHORTENING { alike } else { 0 }
    }

    #[inline]
    fn push_lengths(&mut self, tree: u32, alike: usize, key_length: usize) {
        push_number(&mut self.bytes, u64::from(tree));
        if alike > 0 {
            push_number(&mut self.bytes, alike as u64);
        }
        push_number(&mut self.bytes, (key_length - alike) as u64);
    }

    #[inline]
    fn push_key(&mut self, alike: usize, key: &[u8]) {
        if alike == 0 {
            self.full = Some((self.bytes.len(), self.bytes.len() + key.len()));
        }
        self.bytes.extend_from_slice(key.get(alike..).unwrap_or_default());
    }
}

#[inline]
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::super::operations::{Operation, decode_operations, decode_parts};
    use super::*;
    use proptest::prelude::*;

    type Done = (u32, Vec<u8>, Option<Vec<u8>>);

    fn as_done(operation: Operation<'_>) -> Done {
        match operation {
            Operation::Put { tree, key, value } => (tree, key.to_vec(), Some(value.to_vec())),
            Operation::Delete { tree, key } => (tree, key.to_vec(), None),
        }
    }

    /// Decodes the operations as a whole, and in parts of several sizes.
    fn decoded(bytes: &[u8]) -> Vec<Done> {
        let mut whole = Vec::new();
        let done = decode_operations(bytes, |operation| {
            whole.push(as_done(operation));
            Ok::<_, ()>(())
        });
        assert_eq!(done, Ok(()));
        for size in [1, 19, 400] {
            let parts: Vec<&[u8]> = bytes.chunks(size).collect();
            let mut found = Vec::new();
            let read = |number: usize| Ok::<_, ()>(parts[number].to_vec());
            let done = decode_parts(parts.len(), read, |operation| {
                found.push(as_done(operation));
                Ok(())
            });
            assert_eq!((done, &found), (Ok(()), &whole), "parts of {size} bytes");
        }
        whole
    }

    fn operation() -> impl Strategy<Value = Done> {
        let key = (0usize..40, prop::collection::vec(any::<u8>(), 0..30))
            .prop_map(|(zeros, tail)| [vec![0; zeros], tail].concat());
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..300));
        (any::<u32>(), key, value)
    }

    #[test]
    fn neighboring_keys_share_their_prefix() {
        let mut redo = Redo::default();
        for number in 0..10u64 {
            redo.delete(1, &[[7; 56].as_slice(), &number.to_be_bytes()].concat());
        }
        assert!(redo.len() < 64 + 4 + 9 * 6, "{}", redo.len());
    }

    #[test]
    fn abandoned_put_tears_only_what_the_log_has() {
        for (in_log, torn) in [(0, false), (5, false), (60, true)] {
            let mut redo = Redo::default();
            redo.put(1, b"key", b"value");
            let start = redo.position();
            redo.begin_put(1, b"long", 1000);
            redo.put_part(&[7; 100]);
            redo.remove_front(in_log);
            redo.abandon_put(start);
            assert_eq!(redo.is_torn(), torn, "{in_log} bytes are in the log");
            assert_eq!(redo.position() == start, !torn);
            redo.clear();
            assert!(!redo.is_torn());
        }
    }

    proptest! {
        /// Bytes are removed at random at the front (written to the log) and at the end (rolled
        /// back).
        #[test]
        fn operations_round_trip(
            steps in prop::collection::vec((operation(), 0u8..12, any::<prop::sample::Index>()), 0..40),
        ) {
            let mut redo = Redo::default();
            let (mut front, mut done, mut starts) = (Vec::new(), Vec::new(), Vec::new());
            for ((tree, key, value), act, at) in steps {
                match act {
                    0 if !starts.is_empty() => {
                        let at = at.index(starts.len());
                        let (start, count): (u64, usize) = starts[at];
                        redo.roll_back_to(start);
                        starts.truncate(at);
                        done.truncate(count);
                    }
                    1 => {
                        let length = at.index(redo.len() + 1);
                        front.extend_from_slice(&redo.bytes()[..length]);
                        redo.remove_front(length);
                    }
                    _ => {
                        prop_assert_eq!(redo.position(), (front.len() + redo.len()) as u64);
                        starts.push((redo.position(), done.len()));
                        match &value {
                            Some(value) => redo.put(tree, &key, value),
                            None => redo.delete(tree, &key),
                        }
                        done.push((tree, key, value));
                    }
                }
            }
            front.extend_from_slice(redo.bytes());
            prop_assert_eq!(decoded(&front), done);
        }
    }
}
