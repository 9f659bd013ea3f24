//! Cursors of a body: OPEN, FETCH, MOVE, CLOSE and loops over them. They are those of the session,
//! by the names that variables hold.

use super::call::{Flow, Invocation};
use super::control::{After, after};
use super::variables::Cell;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::ShownCursor;
use crate::parse::Direction;
use crate::parse::plpgsql::{
    AssignmentTarget, BlockStatement, BodyQuery, CursorMove, CursorSource, FragmentId,
};
use crate::session::named::{CursorRows, no_cursor};
use crate::session::utility::backward::runs_backward;
use crate::types::{DataType, Value, current_moment};

use smol_str::SmolStr;

impl Invocation<'_> {
    /// Returns the name of the cursor that a variable holds.
    fn cursor_name(&self, variable: usize) -> Result<SmolStr> {
        match &self.cells[variable] {
            Cell::Scalar(Value::Text(name)) => Ok(SmolStr::new(&**name)),
            _ => {
                let name = &self.compiled.body.variables[variable].name;
                let message = format!("cursor variable \"{name}\" is null");
                Err(SqlError::new(SqlState::NullValueNotAllowed, message))
            }
        }
    }

    /// OPEN: computes the rows of the cursor.
    pub(super) fn open(&mut self, variable: usize, source: &CursorSource) -> Result<()> {
        let session = self.session;
        if let Cell::Scalar(Value::Null) = self.cells[variable] {
            let name = session.routines.portal_name();
            self.set(variable, Value::text(name))?;
        }
        let name = self.cursor_name(variable)?;
        if session.cursors.borrow().contains_key(&name) {
            let message = format!("cursor \"{name}\" already in use");
            return Err(SqlError::new(SqlState::DuplicateCursor, message));
        }
        let (query, scroll) = match source {
            CursorSource::Query(query, scroll) => (query.clone(), *scroll),
            CursorSource::Bound(arguments) => {
                let (query, scroll) = self.give_arguments(variable, arguments)?;
                (BodyQuery::Static(query), scroll)
            }
        };
        self.opens = true;
        let ran = self.run_shown(&query);
        self.opens = false;
        let (ran, statement) = ran?;
        if !ran.reads {
            let message = "cannot open a statement that returns no rows as cursor";
            return Err(SqlError::new(SqlState::InvalidCursorDefinition, message));
        }
        let is_new = session.in_transaction();
        let (columns, rows, keys) = (ran.columns, ran.rows, ran.keys);
        let locks = keys.as_ref().is_some_and(|keys| keys.locks());
        if locks && scroll == Some(true) {
            let message = "DECLARE SCROLL CURSOR ... FOR UPDATE/SHARE is not supported";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message)
                .with_detail("Scrollable cursors must be READ ONLY."));
        }
        let scrolls = scroll.unwrap_or_else(|| !locks && runs_backward(&statement));
        let holds = false;
        let created = current_moment();
        let shown = ShownCursor { statement, created, ..ShownCursor::default() };
        let cursor =
            CursorRows { shown, columns, rows, at: 0, holds, is_new, scrolls, keys, opened: 0 };
        session.add_cursor(name, cursor);
        Ok(())
    }

    /// Gives the arguments of a declared cursor their values. Returns its query, and whether it
    /// scrolls, if that was said.
    fn give_arguments(
        &mut self,
        variable: usize,
        arguments: &[(usize, FragmentId)],
    ) -> Result<(FragmentId, Option<bool>)> {
        let compiled = self.compiled.clone();
        let missing = || SqlError::internal("a cursor that is not declared");
        let declared = compiled.body.variables[variable].cursor.as_ref().ok_or_else(missing)?;
        let values: Result<Vec<(usize, Value)>> =
            arguments.iter().map(|(argument, it)| Ok((*argument, self.value(*it)?))).collect();
        for (argument, value) in values? {
            self.set(argument, value)?;
        }
        Ok((declared.query, declared.scroll))
    }

    /// Returns a direction with the values of its expressions.
    fn direction(&self, direction: CursorMove) -> Result<Direction> {
        let number = |fragment: FragmentId| {
            let value = self.value(fragment)?;
            let clock = &self.session.clock;
            let value = super::variables::assigned(value, DataType::Integer, clock)?;
            value.as_ref().as_i64().ok_or_else(|| {
                let message = "relative or absolute cursor position is null";
                SqlError::new(SqlState::NullValueNotAllowed, message)
            })
        };
        Ok(match direction {
            CursorMove::By(count) => Direction::By(count),
            CursorMove::Count(count, true) => Direction::By(number(count)?),
            CursorMove::Count(count, false) => Direction::By(-number(count)?),
            CursorMove::All(is_forward) => Direction::All(is_forward),
            CursorMove::Absolute(row) => Direction::Absolute(row),
            CursorMove::AbsoluteOf(row) => Direction::Absolute(number(row)?),
            CursorMove::RelativeOf(row) => Direction::Relative(number(row)?),
        })
    }

    /// FETCH into variables, or MOVE.
    pub(super) fn fetch(
        &mut self,
        variable: usize,
        direction: CursorMove,
        into: Option<&[AssignmentTarget]>,
    ) -> Result<()> {
        let name = self.cursor_name(variable)?;
        let direction = self.direction(direction)?;
        let (columns, rows) = {
            let mut cursors = self.session.cursors.borrow_mut();
            let cursor = cursors.get_mut(&name).ok_or_else(|| no_cursor(&name))?;
            cursor.check_direction(direction, into.is_some())?;
            let rows = cursor.fetch(direction);
            (cursor.columns.clone(), rows)
        };
        self.row_count = rows.len() as u64;
        self.set_found(!rows.is_empty());
        match into {
            Some(targets) => self.assign_row(targets, &columns, rows.into_iter().next()),
            None => Ok(()),
        }
    }

    /// CLOSE.
    pub(super) fn close(&mut self, variable: usize) -> Result<()> {
        let name = self.cursor_name(variable)?;
        let removed = self.session.cursors.borrow_mut().remove(&name);
        removed.map(|_| ()).ok_or_else(|| no_cursor(&name))
    }

    /// FOR over the rows of a declared cursor.
    pub(super) fn cursor_loop(
        &mut self,
        (record, variable): (usize, usize),
        arguments: &[(usize, FragmentId)],
        label: Option<&SmolStr>,
        body: &[BlockStatement],
    ) -> Result<Flow> {
        self.open(variable, &CursorSource::Bound(arguments.to_vec()))?;
        let target = [AssignmentTarget { variable: record, field: None }];
        let (mut found, mut end) = (false, Flow::Next);
        loop {
            self.session.limits.check()?;
            self.fetch(variable, CursorMove::By(1), Some(&target))?;
            if self.row_count == 0 {
                break;
            }
            found = true;
            if let After::End(flow) = after(self.statements(body)?, label) {
                end = flow;
                break;
            }
        }
        self.close(variable)?;
        self.set_found(found);
        Ok(end)
    }
}
