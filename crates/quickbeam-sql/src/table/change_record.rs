//! The record of the changes that a statement makes at its end.
//!
//! Above: [`TableWriter`](super::TableWriter), which records changes and makes them.

use std::collections::HashSet;
use std::sync::Arc;

use super::trigger_queue::RowEvent;
use crate::catalog::{FiredTriggers, ObjectId, Table};
use crate::handle::table_handle::TableHandle;

/// A unique key of a row: the table, the number of the index or `None` for the primary key, and the
/// encoded key.
pub(super) type UniqueKey = (ObjectId, Option<usize>, Vec<u8>);

/// The changes of a statement, in the order in which they were found.
#[derive(Default)]
pub(super) struct ChangeRecord {
    pub changes: Vec<(usize, RecordedChange)>,
    /// The part whose changes are recorded now.
    pub part: usize,
    /// The stored rows that are changed, by table and key.
    pub rows: HashSet<(ObjectId, Vec<u8>)>,
    /// Those of them that are deleted.
    pub deleted: HashSet<(ObjectId, Vec<u8>)>,
    /// The unique keys of the rows that are inserted.
    pub inserted: HashSet<UniqueKey>,
}

/// A change of a row.
pub(super) enum RecordedChange {
    /// The row is inserted.
    Insert(Arc<TableHandle>, Vec<u8>),
    /// The row with the key becomes another one.
    Update {
        handle: Arc<TableHandle>,
        key: Vec<u8>,
        old: Vec<u8>,
        new: Vec<u8>,
        changed: Vec<usize>,
    },
    /// The row with the key is deleted.
    Delete { handle: Arc<TableHandle>, key: Vec<u8>, old: Vec<u8> },
    /// AFTER triggers of the row that was changed last.
    Row(RowEvent),
    /// AFTER triggers of the part.
    Statement(Arc<FiredTriggers>, Arc<Table>),
}

impl ChangeRecord {
    /// Adds a change of the part.
    pub fn push(&mut self, change: RecordedChange) {
        self.changes.push((self.part, change));
    }
}
