//! Loops.

use smol_str::SmolStr;

use super::call::{Flow, Invocation};
use super::variables::Cell;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::plpgsql::{AssignmentTarget, BlockStatement, BodyQuery, LoopKind};
use crate::types::{ArrayBuilder, ArrayRef, DataType, Value, ValueRef};

/// What a loop does after its statements.
pub(super) enum After {
    Again,
    End(Flow),
}

pub(super) fn after(flow: Flow, label: Option<&SmolStr>) -> After {
    let is_own = |named: &Option<SmolStr>| named.is_none() || named.as_ref() == label;
    match flow {
        Flow::Next => After::Again,
        Flow::Continue(named) if is_own(&named) => After::Again,
        Flow::Exit(named) if is_own(&named) => After::End(Flow::Next),
        other => After::End(other),
    }
}

/// Returns the elements of an array, or its slices of a number of dimensions.
fn slices(array: ArrayRef<'_>, dimensions: usize) -> Result<Vec<Value>> {
    let all = array.dimensions();
    if dimensions > all.len() {
        let (limit, state) = (all.len(), SqlState::ArraySubscriptError);
        let message =
            format!("slice dimension ({dimensions}) is out of the valid range 0..{limit}");
        return Err(SqlError::new(state, message));
    }
    let elements: Vec<ValueRef<'_>> = array.iter().collect();
    let inner = &all[all.len() - dimensions..];
    let size = inner.iter().map(|one| one.length as usize).product::<usize>();
    if dimensions == 0 {
        return Ok(elements.into_iter().map(ValueRef::to_value).collect());
    }
    let mut slices = Vec::with_capacity(elements.len() / size.max(1));
    for part in elements.chunks(size.max(1)) {
        let mut builder = ArrayBuilder::new(array.element_type());
        part.iter().try_for_each(|element| builder.push(*element))?;
        slices.push(Value::Array(builder.finish(inner)?));
    }
    Ok(slices)
}

#[cold]
fn null_bound(what: &str) -> SqlError {
    let message = format!("{what} of FOR loop cannot be null");
    SqlError::new(SqlState::NullValueNotAllowed, message)
}

impl Invocation<'_> {
    pub(super) fn run_loop(
        &mut self,
        label: Option<&SmolStr>,
        kind: &LoopKind,
        body: &[BlockStatement],
    ) -> Result<Flow> {
        match kind {
            LoopKind::Forever => loop {
                self.session.limits.check()?;
                if let After::End(flow) = after(self.statements(body)?, label) {
                    return Ok(flow);
                }
            },
            LoopKind::While(condition) => {
                while self.holds(*condition)? {
                    if let After::End(flow) = after(self.statements(body)?, label) {
                        return Ok(flow);
                    }
                }
                Ok(Flow::Next)
            }
            LoopKind::Integers(variable, first, last, step, reverse) => {
                let first = self.bound(*first, "lower bound")?;
                let last = self.bound(*last, "upper bound")?;
                let step = step.map_or(Ok(1), |step| self.bound(step, "BY value"))?;
                if step <= 0 {
                    let message = "BY value of FOR loop must be greater than zero";
                    return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                }
                let step = if *reverse { -step } else { step };
                self.integer_loop(*variable, (first, last, step), label, body)
            }
            LoopKind::Rows(targets, query) => self.row_loop(targets, query, label, body),
            LoopKind::Cursor(record, variable, arguments) => {
                self.cursor_loop((*record, *variable), arguments, label, body)
            }
            LoopKind::Elements(target, slice, array) => {
                let array = match self.value(*array)? {
                    Value::Array(array) => array,
                    Value::Null => {
                        let message = "FOREACH expression must not be null";
                        return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
                    }
                    _ => {
                        let message = "FOREACH expression must yield an array";
                        return Err(SqlError::new(SqlState::DatatypeMismatch, message));
                    }
                };
                let elements = slices(array.as_ref(), *slice)?;
                let (mut found, mut end) = (false, Flow::Next);
                for element in elements {
                    found = true;
                    self.assign(target, element)?;
                    if let After::End(flow) = after(self.statements(body)?, label) {
                        end = flow;
                        break;
                    }
                }
                self.set_found(found);
                Ok(end)
            }
        }
    }

    /// FOR over integers from `first` to `last`, forward or, with a negative step, backward.
    fn integer_loop(
        &mut self,
        variable: usize,
        (first, last, step): (i32, i32, i32),
        label: Option<&SmolStr>,
        body: &[BlockStatement],
    ) -> Result<Flow> {
        let (mut at, mut found, mut end) = (first, false, Flow::Next);
        while if step < 0 { at >= last } else { at <= last } {
            found = true;
            self.session.limits.check()?;
            self.cells[variable] = Cell::Scalar(Value::Integer(at));
            if let After::End(flow) = after(self.statements(body)?, label) {
                end = flow;
                break;
            }
            match at.checked_add(step) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.set_found(found);
        Ok(end)
    }

    /// FOR over the rows of a query.
    fn row_loop(
        &mut self,
        targets: &[AssignmentTarget],
        query: &BodyQuery,
        label: Option<&SmolStr>,
        body: &[BlockStatement],
    ) -> Result<Flow> {
        let ran = self.run_query(query)?;
        if !ran.reads {
            let message = "cannot open a statement that returns no rows as cursor";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        let (mut found, mut end) = (false, Flow::Next);
        for row in ran.rows {
            found = true;
            self.assign_row(targets, &ran.columns, Some(row))?;
            if let After::End(flow) = after(self.statements(body)?, label) {
                end = flow;
                break;
            }
        }
        if !found {
            self.assign_row(targets, &ran.columns, None)?;
        }
        self.set_found(found);
        Ok(end)
    }

    fn bound(&self, fragment: usize, what: &str) -> Result<i32> {
        match super::variables::assigned(
            self.value(fragment)?,
            DataType::Integer,
            &self.session.clock,
        )? {
            Value::Integer(value) => Ok(value),
            _ => Err(null_bound(what)),
        }
    }
}
