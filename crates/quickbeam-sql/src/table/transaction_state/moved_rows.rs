//! Rows that have got other keys, or are gone, since a cursor returned them.
//!
//! While a transaction has cursors whose rows WHERE CURRENT OF can change, writers note each change
//! of a row's key and each removal of a row. A rollback forgets what was noted since.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::catalog::ObjectId;

/// A row that was moved: its table, its key, and the number of the change.
type MoveKey = (ObjectId, Vec<u8>, u64);

/// The rows that were moved or removed in a transaction that has cursors.
#[derive(Default)]
pub struct MovedRows {
    /// The new keys; `None`: the row was removed.
    moves: RefCell<BTreeMap<MoveKey, Option<Vec<u8>>>>,
    /// The number of the next change.
    next: Cell<u64>,
}

impl MovedRows {
    /// Notes that the row of a key has another one now; `None`: that it is gone.
    pub(in crate::table) fn note(&self, table: ObjectId, key: &[u8], new_key: Option<&[u8]>) {
        let number = self.next.get();
        self.next.set(number + 1);
        let moved = (table, key.to_vec(), number);
        self.moves.borrow_mut().insert(moved, new_key.map(<[u8]>::to_vec));
    }

    /// Returns the key that a row has now, of its key at a moment; `None`: the row is gone.
    pub fn follow(&self, table: ObjectId, key: &[u8], since: u64) -> Option<Vec<u8>> {
        let moves = self.moves.borrow();
        let (mut key, mut since) = (key.to_vec(), since);
        loop {
            let first = (table, key, since);
            let next = moves.range(&first..).next();
            let next = next.filter(|((of, old, _), _)| *of == table && *old == first.1);
            let Some(((_, _, number), new_key)) = next else { return Some(first.1) };
            (key, since) = (new_key.clone()?, number + 1);
        }
    }

    /// Returns the moment at which a cursor is opened, which no other one has.
    pub fn open(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Returns the moment to roll back to.
    pub fn mark(&self) -> u64 {
        self.next.get()
    }

    /// Forgets what was noted since.
    pub fn rollback_to(&self, mark: u64) {
        if self.next.get() > mark {
            self.moves.borrow_mut().retain(|(_, _, number), _| *number < mark);
            self.next.set(mark);
        }
    }

    /// Forgets everything, as there are no cursors.
    pub fn clear(&self) {
        self.moves.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_followed_from_a_moment_on() {
        let (table, moved) = (ObjectId(7), MovedRows::default());
        moved.note(table, b"a", Some(b"b"));
        let opened = moved.mark();
        moved.note(table, b"b", Some(b"c"));
        moved.note(table, b"a", Some(b"b"));
        assert_eq!(moved.follow(table, b"a", 0), Some(b"c".to_vec()));
        assert_eq!(moved.follow(table, b"b", opened), Some(b"c".to_vec()));
        assert_eq!(moved.follow(table, b"a", opened), Some(b"b".to_vec()));
        let before = moved.mark();
        moved.note(table, b"c", None);
        assert_eq!(moved.follow(table, b"a", 0), None);
        moved.rollback_to(before);
        assert_eq!(moved.follow(table, b"a", 0), Some(b"c".to_vec()));
    }
}
