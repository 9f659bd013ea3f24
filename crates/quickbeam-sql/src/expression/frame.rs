//! What an expression is evaluated on: the rows that a statement stands on, and its parameters.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use quickbeam::ScanBatch;

use crate::catalog::Table;
use crate::error::Result;
use crate::table::StoredRow;
use crate::types::{Value, ValueRef};

/// Which row a slot stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Current {
    /// None: every column is NULL, as beside an outer join.
    #[default]
    Nothing,
    /// That record of the batch.
    Record(usize),
    /// Those bytes.
    Bytes(usize, usize),
    /// The values.
    Values,
}

/// A place for one row at a time: encoded as it is stored, or as values that were computed.
#[derive(Debug, Default)]
pub struct Slot {
    /// The table that encoded rows are of.
    pub table: Option<Arc<Table>>,
    /// Rows as a scan delivered them.
    pub batch: ScanBatch,
    /// Encoded rows in memory.
    pub bytes: Vec<u8>,
    /// A computed row.
    pub values: Vec<Value>,
    /// Which of them counts now.
    pub current: Current,
}

impl Slot {
    /// A place for rows of that table, or for computed rows.
    pub fn new(table: Option<Arc<Table>>) -> Slot {
        Slot { table, ..Slot::default() }
    }

    /// The encoded row stood on; empty when there is none.
    #[inline]
    pub fn row(&self) -> &[u8] {
        match self.current {
            Current::Record(record) => self.batch.value(record),
            Current::Bytes(start, end) => self.bytes.get(start..end).unwrap_or_default(),
            Current::Nothing | Current::Values => &[],
        }
    }

    /// The number in a column of integers of the row stood on, if it can be told at a glance.
    #[inline]
    pub fn number(&self, column: usize) -> Option<i64> {
        self.table.as_ref()?.number_in(self.row(), column)
    }

    /// A column of the row stood on.
    #[inline]
    pub fn column(&self, column: usize) -> Result<ValueRef<'_>> {
        let row = match self.current {
            Current::Record(record) => self.batch.value(record),
            Current::Bytes(start, end) => self.bytes.get(start..end).unwrap_or_default(),
            Current::Nothing => return Ok(ValueRef::Null),
            Current::Values => {
                return Ok(self.values.get(column).map_or(ValueRef::Null, Value::as_ref));
            }
        };
        match &self.table {
            Some(table) => StoredRow::new(table, row)?.get(column),
            None => Ok(ValueRef::Null),
        }
    }
}

/// The time of a transaction: it is asked for once, when somebody wants to know it.
#[derive(Clone, Debug, Default)]
pub struct Clock(Cell<Option<i64>>);

impl Clock {
    /// Another transaction begins.
    #[inline]
    pub fn reset(&self) {
        self.0.set(None);
    }

    fn now(&self) -> i64 {
        let time = self.0.get().unwrap_or_else(now);
        self.0.set(Some(time));
        time
    }
}

/// Microseconds since 1970 UTC.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_micros()).ok()).unwrap_or(0)
}

/// The values that sequences gave a session.
#[derive(Debug, Default)]
pub struct Given {
    values: RefCell<HashMap<u32, i64>>,
    newest: Cell<Option<u32>>,
}

impl Given {
    /// The sequence gave that value.
    pub fn note(&self, sequence: u32, value: i64) {
        self.values.borrow_mut().insert(sequence, value);
        self.newest.set(Some(sequence));
    }

    /// What the sequence gave last; without a number, what any of them did.
    pub fn value(&self, sequence: Option<u32>) -> Option<i64> {
        let sequence = sequence.or(self.newest.get())?;
        self.values.borrow().get(&sequence).copied()
    }
}

/// Where the values of sequences come from.
pub trait Sequences {
    /// The next value of the sequence with that number.
    fn next_value(&self, sequence: u32) -> Result<i64>;

    /// The value that it gave the session last; without a number, the one that the session got last.
    fn current_value(&self, sequence: Option<u32>) -> Result<i64>;

    /// Its value becomes that one; false: it is the one given out next.
    fn set_value(&self, sequence: u32, value: i64, is_called: bool) -> Result<()>;
}

/// Everything that an expression may read.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The rows.
    pub slots: &'a [Slot],
    /// The parameters' values.
    pub parameters: &'a [Value],
    /// The transaction's time, where there is a transaction.
    pub clock: Option<&'a Clock>,
    /// Sequences, where they may be counted on.
    pub sequences: Option<&'a dyn Sequences>,
}

impl<'a> Frame<'a> {
    /// A frame without rows.
    pub fn of_parameters(parameters: &'a [Value]) -> Frame<'a> {
        Frame { slots: &[], parameters, clock: None, sequences: None }
    }

    /// Now, as the transaction sees it: microseconds since 1970 UTC.
    pub fn now(&self) -> i64 {
        self.clock.map_or_else(now, Clock::now)
    }
}
