//! Prepared statements with names, and cursors: PREPARE, EXECUTE, DECLARE, FETCH.
//!
//! The rows of a cursor are computed by DECLARE and kept in memory, within the statement's budget.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use smol_str::SmolStr;

use crate::bind::OutputColumn;
use crate::catalog::Table;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{KeptKeys, KeptRow};
use crate::expression::{ShownCursor, ShownStatement};
use crate::parse::Direction;
use crate::session::Session;
use crate::session::prepared_statement::PreparedStatement;
use crate::table::MovedRows;
use crate::types::{DataType, Value};

/// The prepared statements of a session, by name.
pub(crate) type NamedStatements = RefCell<HashMap<SmolStr, Named>>;

/// A prepared statement with a name.
pub(crate) struct Named {
    pub text: Arc<str>,
    /// What `pg_prepared_statements` shows of it.
    pub shown: ShownStatement,
    /// The types that PREPARE gives its parameters.
    pub types: Arc<[Option<DataType>]>,
    /// The compiled statement, unless it is in use.
    pub statement: Option<Box<PreparedStatement>>,
}

/// A cursor.
pub(crate) struct CursorRows {
    /// What `pg_cursors` shows of it.
    pub shown: ShownCursor,
    pub columns: Arc<[OutputColumn]>,
    pub rows: Vec<Vec<Value>>,
    /// The current row, counted from 1: 0 before the first row.
    pub at: usize,
    /// Whether it outlives the transaction.
    pub holds: bool,
    /// Whether its transaction is still open.
    pub is_new: bool,
    /// Whether it moves backward.
    pub scrolls: bool,
    /// The keys of its rows.
    pub keys: Option<Box<KeptKeys>>,
    /// The moment among the moves of rows at which it was opened.
    pub opened: u64,
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
    /// Returns the key that the current row of a table had when the cursor was opened.
    pub fn current_row(&self, name: &str, table: &Table) -> Result<&[u8]> {
        let error = |message| Err(SqlError::new(SqlState::InvalidCursorState, message));
        if self.holds && !self.is_new {
            return error(format!("cursor \"{name}\" is held from a previous transaction"));
        }
        let is_positioned = (1..=self.rows.len()).contains(&self.at);
        let row = self.keys.as_ref().map(|keys| keys.row(table.id, self.at.saturating_sub(1)));
        let table = &table.name;
        match row {
            Some(KeptRow::NotLocked) => error(format!(
                "cursor \"{name}\" does not have a FOR UPDATE/SHARE reference to table \"{table}\""
            )),
            Some(KeptRow::LockedTwice) => error(format!(
                "cursor \"{name}\" has multiple FOR UPDATE/SHARE references to table \"{table}\""
            )),
            Some(KeptRow::Key(key)) if is_positioned => Ok(key),
            Some(KeptRow::Absent | KeptRow::Key(_)) => {
                error(format!("cursor \"{name}\" is not positioned on a row"))
            }
            Some(KeptRow::NotSimple) | None => error(format!(
                "cursor \"{name}\" is not a simply updatable scan of table \"{table}\""
            )),
        }
    }

    /// Refuses to move a cursor backward that does not scroll. `returns_rows`: FETCH, not MOVE.
    pub fn check_direction(&self, direction: Direction, returns_rows: bool) -> Result<()> {
        let is_on_row = (1..=self.rows.len()).contains(&self.at);
        let is_backward = match direction {
            Direction::All(true) | Direction::By(1..) | Direction::Relative(1..) => false,
            Direction::By(0) | Direction::Relative(0) => is_on_row && returns_rows,
            Direction::By(_) | Direction::Relative(_) | Direction::Absolute(..0) => true,
            Direction::All(false) => returns_rows || self.at > 0,
            Direction::Absolute(row) => self.at > 0 && row <= i64::try_from(self.at).unwrap_or(0),
        };
        if self.scrolls || !is_backward {
            return Ok(());
        }
        let message = "cursor can only scan forward";
        Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
            .with_hint("Declare it with SCROLL option to enable backward scan."))
    }

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
    /// Adds a cursor that was opened just now.
    pub fn add_cursor(&self, name: SmolStr, cursor: CursorRows) {
        let mut cursors = self.cursors.borrow_mut();
        if cursors.is_empty() {
            self.moved.clear();
        }
        cursors.insert(name, CursorRows { opened: self.moved.open(), ..cursor });
    }

    /// Returns where writers note moved rows, if a cursor may have to follow them.
    pub fn noted_moves(&self) -> Option<&MovedRows> {
        let cursors = self.cursors.borrow();
        let follows = |it: &CursorRows| it.keys.is_some() && (it.is_new || !it.holds);
        cursors.values().any(follows).then_some(&self.moved)
    }

    /// Returns the prepared statements with their names, in their order.
    pub fn shown_statements(&self) -> Vec<(SmolStr, ShownStatement)> {
        let named = self.named.borrow();
        let mut all: Vec<_> =
            named.iter().map(|(name, it)| (name.clone(), it.shown.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Returns the cursors with their names, in their order.
    pub fn shown_cursors(&self) -> Vec<(SmolStr, ShownCursor)> {
        let shown = |(name, cursor): (&SmolStr, &CursorRows)| {
            let CursorRows { shown, holds, scrolls, .. } = cursor;
            (name.clone(), ShownCursor { holds: *holds, scrolls: *scrolls, ..shown.clone() })
        };
        self.cursors.borrow().iter().map(shown).collect()
    }

    /// Forgets the moves of rows since a moment that was rolled back to, and closes the cursors
    /// that were opened since.
    pub fn rollback_moves(&self, mark: u64) {
        self.moved.rollback_to(mark);
        self.cursors.borrow_mut().retain(|_, cursor| cursor.opened < mark);
    }

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
        let (holds, is_new, scrolls, keys) = (false, true, true, None);
        let shown = ShownCursor::default();
        let mut cursor =
            CursorRows { shown, columns, rows, at: 0, holds, is_new, scrolls, keys, opened: 0 };
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
