//! DECLARE, and FETCH and MOVE of the cursors of a session.

use std::ops::Range;
use std::sync::Arc;

use smol_str::SmolStr;

use super::CommandCall;
use crate::bind::OutputColumn;
use crate::compile::Program;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{Returned, values_memory};
use crate::expression::ShownCursor;
use crate::parse::{CursorOptions, Direction};
use crate::session::Session;
use crate::session::named::{CursorRows, no_cursor};
use crate::session::prepared_statement::PreparedStatement;
use crate::session::statement_cache::Lease;
use crate::session::utility::backward::runs_backward;
use crate::types::current_moment;

/// Checks the options of a cursor whose query locks rows.
fn check_locking(options: CursorOptions) -> Result<()> {
    let unsupported = SqlState::FeatureNotSupported;
    let (state, message, detail) = if options.holds {
        let message = "DECLARE CURSOR WITH HOLD ... FOR UPDATE is not supported";
        (unsupported, message, "Holdable cursors must be READ ONLY.")
    } else if options.scroll == Some(true) {
        let message = "DECLARE SCROLL CURSOR ... FOR UPDATE is not supported";
        (unsupported, message, "Scrollable cursors must be READ ONLY.")
    } else if options.insensitive {
        let message = "DECLARE INSENSITIVE CURSOR ... FOR UPDATE is not valid";
        let detail = "Insensitive cursors must be READ ONLY.";
        (SqlState::InvalidCursorDefinition, message, detail)
    } else {
        return Ok(());
    };
    Err(SqlError::new(state, message).with_detail(detail))
}

impl Session {
    /// DECLARE: computes the rows of the cursor.
    pub(super) fn declare(
        &self,
        name: &SmolStr,
        options: CursorOptions,
        query: &Range<usize>,
        call: &CommandCall<'_>,
    ) -> Result<()> {
        if !options.holds && !self.in_transaction() {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
        }
        if self.cursors.borrow().contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DuplicateCursor, message));
        }
        let text = call.text.get(query.clone()).unwrap_or_default();
        let statement = PreparedStatement::new(text);
        let mut statement = statement.with_types(call.types.clone()).of_cursor();
        let shifted = |error: SqlError| error.shifted(query.start);
        self.prepare(&mut statement).map_err(shifted)?;
        let work = statement.prepared.as_ref().map(|prepared| &prepared.work);
        if let Some(Program::ChangingWith(_)) = work {
            let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        let mut rows =
            self.query(Lease::Owned(Box::new(statement)), call.parameters).map_err(shifted)?;
        let columns: Arc<[OutputColumn]> = rows.columns().into();
        if columns.is_empty() {
            return Err(SqlError::new(
                SqlState::SyntaxError,
                "syntax error: DECLARE needs a query",
            ));
        }
        let locks = rows.locks_rows();
        if locks {
            check_locking(options)?;
        }
        let (mut kept, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next().map_err(shifted)? {
            let values = row.to_values()?;
            bytes += values_memory(&values);
            self.limits.check_memory(bytes)?;
            kept.push(values);
        }
        let keys = rows.take_keys();
        drop(rows);
        let is_new = self.in_transaction();
        let scrolls = options.scroll.unwrap_or_else(|| !locks && runs_backward(text));
        let holds = options.holds;
        let shown = ShownCursor {
            statement: call.text.clone(),
            is_binary: options.is_binary,
            created: current_moment(),
            ..ShownCursor::default()
        };
        let cursor = CursorRows {
            shown,
            columns,
            rows: kept,
            at: 0,
            holds,
            is_new,
            scrolls,
            keys,
            opened: 0,
        };
        self.add_cursor(name.clone(), cursor);
        Ok(())
    }

    /// FETCH, or MOVE if no rows are returned.
    pub(super) fn fetch(
        &self,
        name: &SmolStr,
        direction: Direction,
        returns_rows: bool,
    ) -> Result<(Arc<[OutputColumn]>, Returned)> {
        let mut cursors = self.cursors.borrow_mut();
        let cursor = cursors.get_mut(name).ok_or_else(|| no_cursor(name))?;
        cursor.check_direction(direction, returns_rows)?;
        let rows = cursor.fetch(direction);
        Ok((cursor.columns.clone(), rows))
    }
}
