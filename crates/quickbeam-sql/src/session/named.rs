//! Prepared statements with names, and cursors: PREPARE, EXECUTE, DECLARE, FETCH.
//!
//! The rows of a cursor are computed by DECLARE and kept in memory, within the statement's budget.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use smol_str::SmolStr;

use crate::bind::OutputColumn;
use crate::error::{SqlError, SqlState};
use crate::parse::Direction;
use crate::session::Session;
use crate::session::prepared_statement::PreparedStatement;
use crate::types::{DataType, Value};

/// The prepared statements of a session, by name.
pub(crate) type NamedStatements = RefCell<HashMap<SmolStr, Named>>;

/// A prepared statement with a name.
pub(crate) struct Named {
    pub text: Arc<str>,
    /// The types that PREPARE gives its parameters.
    pub types: Arc<[Option<DataType>]>,
    /// The compiled statement, unless it is in use.
    pub statement: Option<Box<PreparedStatement>>,
}

/// A cursor.
pub(crate) struct CursorRows {
    pub columns: Arc<[OutputColumn]>,
    pub rows: Vec<Vec<Value>>,
    /// The current row, counted from 1: 0 before the first row.
    pub at: usize,
    /// Whether it outlives the transaction.
    pub holds: bool,
    /// Whether its transaction is still open.
    pub is_new: bool,
}

/// The cursors of a session, by name.
pub(crate) type Cursors = RefCell<BTreeMap<SmolStr, CursorRows>>;

#[cold]
pub(crate) fn no_statement(name: &str) -> SqlError {
    let message = format!("prepared statement \"{name}\" does not exist");
    SqlError::new(SqlState::InvalidSqlStatementName, message)
}

#[cold]
pub(crate) fn duplicate_statement(name: &str) -> SqlError {
    let message = format!("prepared statement \"{name}\" already exists");
    SqlError::new(SqlState::DuplicatePreparedStatement, message)
}

#[cold]
pub(crate) fn no_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::InvalidCursorName, format!("cursor \"{name}\" does not exist"))
}

impl CursorRows {
    /// Moves the cursor and returns the rows that it passes, in that order.
    pub fn fetch(&mut self, direction: Direction) -> Vec<Vec<Value>> {
        let end = self.rows.len() + 1;
        let clamped = |at: i128| at.clamp(0, end as i128) as usize;
        let at = self.at as i128;
        let target = match direction {
            Direction::All(true) => return self.pass(end),
            Direction::All(false) => return self.pass(0),
            Direction::By(0) | Direction::Relative(0) => return self.current(),
            Direction::By(count) => return self.pass(clamped(at + i128::from(count))),
            Direction::Absolute(row @ ..0) => end as i128 + i128::from(row),
            Direction::Absolute(row) => i128::from(row),
            Direction::Relative(count) => at + i128::from(count),
        };
        self.at = clamped(target);
        self.current()
    }

    fn current(&self) -> Vec<Vec<Value>> {
        let row = self.at.checked_sub(1).and_then(|at| self.rows.get(at));
        row.cloned().into_iter().collect()
    }

    /// Moves to a row and returns the rows up to it, without the one left.
    fn pass(&mut self, target: usize) -> Vec<Vec<Value>> {
        let (from, to) = (self.at, target);
        self.at = target;
        let rows = |range: std::ops::Range<usize>| {
            self.rows.get(range).map_or_else(Vec::new, <[Vec<Value>]>::to_vec)
        };
        if to > from {
            return rows(from..to.min(self.rows.len()));
        }
        let mut passed = rows(to.saturating_sub(1)..from.saturating_sub(1));
        passed.reverse();
        passed
    }
}

impl Session {
    /// Closes the cursors that end with a transaction.
    pub fn end_cursors(&self, is_committed: bool) {
        self.cursors.borrow_mut().retain(|_, cursor| {
            let stays = cursor.holds && (is_committed || !cursor.is_new);
            cursor.is_new = false;
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_moves_as_in_postgresql() {
        let rows = (1..=4).map(|number| vec![Value::Integer(number)]).collect();
        let columns = Arc::new([]);
        let mut cursor = CursorRows { columns, rows, at: 0, holds: false, is_new: true };
        for (direction, expected) in [
            (Direction::By(1), &[1][..]),
            (Direction::By(2), &[2, 3]),
            (Direction::By(0), &[3]),
            (Direction::By(-1), &[2]),
            (Direction::All(true), &[3, 4]),
            (Direction::By(1), &[]),
            (Direction::By(-2), &[4, 3]),
            (Direction::All(false), &[2, 1]),
            (Direction::By(-1), &[]),
            (Direction::Absolute(-1), &[4]),
            (Direction::Absolute(2), &[2]),
            (Direction::Relative(1), &[3]),
            (Direction::Absolute(9), &[]),
            (Direction::Absolute(0), &[]),
        ] {
            let found: Vec<i64> = cursor
                .fetch(direction)
                .iter()
                .filter_map(|row| row.first()?.as_ref().as_i64())
                .collect();
            assert_eq!(found, expected, "{direction:?}");
        }
    }
}
