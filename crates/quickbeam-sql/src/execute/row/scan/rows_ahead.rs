//! Rows that an index scan reads ahead.
//!
//! Above: the index scan. Below: the table's rows. Entries that follow each other in an index lead
//! to rows all over the table. So the scan notes the keys of many entries, reads the rows in the
//! order of their keys, and returns them in the order of the entries. Neighbours of the table's
//! tree then share descents and leaves. A scan begins with a few rows, one by one, because most
//! lookups find no more. The rows of a small table lie in the processor's cache, where one by one
//! is faster.
//!
//! - AHEAD-1: rows are returned in the order of the entries, and each entry once.

use quickbeam::query_layer::DatabaseExt;
use quickbeam::{CHECKS_INVARIANTS, invariant};

use crate::error::Result;
use crate::execute::row::Context;
use crate::table::TableHandle;

/// Rows that are read one by one at first.
const FIRST: usize = 2;
/// The least bytes of a table whose rows are read ahead. Builds with checks read those of small
/// tables ahead, too, so that tests do.
const MIN_BYTES: f64 = if CHECKS_INVARIANTS { 16_384.0 } else { 8_388_608.0 };
/// Scans after which the table's rows are estimated again.
const MOST_SCANS: u32 = 1024;
/// The most rows that are read together.
const MOST: usize = 1024;
/// Keys that are looked up at a time.
const TOGETHER: usize = 64;
/// Bytes of rows after which the others of the same entries are read one by one.
const MOST_BYTES: usize = 256 << 10;

/// What is known of the row of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowAhead {
    /// Nothing: it was not read ahead.
    Unread,
    /// No visible row has the key.
    Missing,
    /// Where the row begins and ends.
    Read(usize, usize),
}

/// Keys of rows in the order of their entries, and the rows that were read ahead.
#[derive(Debug)]
pub struct RowsAhead {
    keys: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    found: Vec<RowAhead>,
    rows: Vec<u8>,
    /// The first bytes of each key, and the number of its entry.
    order: Vec<(u64, u32)>,
    row: Vec<u8>,
    next: usize,
    /// How many entries are wanted next.
    wanted: usize,
    /// Whether the table is too large for the processor's cache, and for how many more scans that
    /// counts.
    is_large: bool,
    scans_left: u32,
}

impl Default for RowsAhead {
    fn default() -> RowsAhead {
        RowsAhead {
            keys: Vec::new(),
            ends: Vec::new(),
            found: Vec::new(),
            rows: Vec::new(),
            order: Vec::new(),
            row: Vec::new(),
            next: 0,
            wanted: FIRST,
            is_large: false,
            scans_left: 0,
        }
    }
}

/// Returns the first eight bytes of a key, whose order is that of the keys as far as they go.
fn start_of(key: &[u8]) -> u64 {
    let mut start = [0; 8];
    start.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(start)
}

impl RowsAhead {
    /// Forgets all entries: a new scan begins.
    pub fn restart(&mut self) {
        self.clear();
        self.wanted = FIRST;
        self.scans_left = self.scans_left.saturating_sub(1);
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.found.clear();
        self.rows.clear();
        self.next = 0;
    }

    /// Begins to note entries. No more than `most` of them will be asked for.
    pub fn begin(&mut self, most: usize) {
        let rest = self.ends.len() - self.next;
        invariant!(AHEAD_1, rest == 0, "{rest} entries are dropped");
        self.clear();
        self.wanted = self.wanted.min(most.max(1));
    }

    /// Returns whether further entries should be noted.
    pub fn has_room(&self) -> bool {
        self.ends.len() < self.wanted
    }

    /// Notes the key of the next entry's row.
    pub fn push(&mut self, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
    }

    fn key(&self, number: usize) -> &[u8] {
        let end = self.ends.get(number).copied().unwrap_or(0);
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        self.keys.get(start.copied().unwrap_or(0)..end).unwrap_or_default()
    }

    /// Reads the rows of the noted entries, if the table is large. Rows have about `row_bytes`
    /// bytes. Returns false if there are no entries.
    pub fn read(
        &mut self,
        handle: &TableHandle,
        row_bytes: usize,
        context: &Context<'_>,
    ) -> Result<bool> {
        let count = self.ends.len();
        self.found.resize(count, RowAhead::Unread);
        let is_first = self.wanted <= FIRST;
        self.wanted = (self.wanted * 8).clamp(FIRST * 8, MOST);
        if is_first || count <= FIRST || handle.table().is_database() {
            return Ok(count > 0);
        }
        if self.scans_left == 0 {
            let rows = handle.estimated_rows(context.transaction)?;
            self.is_large = rows * row_bytes as f64 >= MIN_BYTES;
            self.scans_left = MOST_SCANS;
        }
        if !self.is_large {
            return Ok(true);
        }
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((0..count).map(|number| (start_of(self.key(number)), number as u32)));
        order.sort_unstable();
        let mut row = std::mem::take(&mut self.row);
        let (mut found, mut rows) =
            (std::mem::take(&mut self.found), std::mem::take(&mut self.rows));
        for group in order.chunks(TOGETHER) {
            if rows.len() >= MOST_BYTES {
                break;
            }
            let keys: Vec<&[u8]> =
                group.iter().map(|(_, number)| self.key(*number as usize)).collect();
            let read = handle.database().get_each(
                context.transaction,
                &keys,
                &mut row,
                &mut |nth, value| {
                    let number = group.get(nth).map_or(0, |(_, number)| *number as usize);
                    let start = rows.len();
                    rows.extend_from_slice(value.unwrap_or_default());
                    if let Some(place) = found.get_mut(number) {
                        *place = match value {
                            None => RowAhead::Missing,
                            Some(_) => RowAhead::Read(start, rows.len()),
                        };
                    }
                },
            );
            read.map_err(|error| handle.failed(error))?;
        }
        (self.found, self.rows) = (found, rows);
        (self.order, self.row) = (order, row);
        Ok(true)
    }

    /// Takes the next entry: returns what is known of its row, and sets `key` to the row's key.
    /// Returns `None` after the last entry.
    pub fn next(&mut self, key: &mut Vec<u8>) -> Option<RowAhead> {
        let found = *self.found.get(self.next)?;
        key.clear();
        key.extend_from_slice(self.key(self.next));
        self.next += 1;
        Some(found)
    }

    /// Returns the bytes of a row.
    pub fn row(&self, start: usize, end: usize) -> &[u8] {
        self.rows.get(start..end).unwrap_or_default()
    }
}
