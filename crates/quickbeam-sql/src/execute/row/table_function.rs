//! Functions that return rows.

use super::super::system::system_rows;
use super::{Context, MemoryCharge};
use crate::bind::{TableFunction, TableFunctionKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Current, Expr, RowFunction};
use crate::types::{DataType, Numeric, Value, ValueRef};

/// The rows of a function, computed one at a time.
#[derive(Debug)]
pub struct FunctionScan {
    kind: TableFunctionKind,
    arguments: Vec<Expr>,
    ordinality: bool,
    slot: usize,
    state: State,
    row: i64,
    fresh: bool,
    charge: MemoryCharge,
}

/// The rest of a series: its next value, last value and step.
#[derive(Debug)]
enum State {
    Ended,
    Integers(i64, i64, i64),
    Numerics(Numeric, Numeric, Numeric),
    /// Rows that are computed already.
    Rows(std::vec::IntoIter<Vec<Value>>),
}

impl FunctionScan {
    pub fn new(function: &TableFunction) -> FunctionScan {
        FunctionScan {
            kind: function.kind,
            arguments: function.arguments.clone(),
            ordinality: function.ordinality,
            slot: function.slot,
            state: State::Ended,
            row: 0,
            fresh: true,
            charge: MemoryCharge::default(),
        }
    }

    pub fn rewind(&mut self) {
        self.fresh = true;
    }

    /// Evaluates the arguments. A NULL among them makes the series empty.
    fn start(&mut self, context: &Context<'_>) -> Result<State> {
        self.charge.clear(context);
        let values: Result<Vec<Value>> =
            self.arguments.iter().map(|argument| context.value(argument)).collect();
        let values = values?;
        if let TableFunctionKind::Rows(function) = self.kind {
            return self.rows(function, &values, context);
        }
        if values.iter().any(Value::is_null) {
            return Ok(State::Ended);
        }
        if let TableFunctionKind::Catalog(table) = self.kind {
            let rows = system_rows(table, context.snapshot, context.session)?;
            return Ok(State::Rows(rows.into_iter()));
        }
        let is_zero =
            || SqlError::new(SqlState::InvalidParameterValue, "step size cannot equal zero");
        if let TableFunctionKind::GenerateSeries(DataType::Numeric(_)) = self.kind {
            let number = |at: usize| values.get(at).and_then(|value| value.as_ref().as_numeric());
            let step = number(2).unwrap_or(Numeric::from(1));
            let (Some(first), Some(last)) = (number(0), number(1)) else {
                return Ok(State::Ended);
            };
            if step == Numeric::from(0) {
                return Err(is_zero());
            }
            return Ok(State::Numerics(first, last, step));
        }
        let number = |at: usize| values.get(at).and_then(|value| value.as_ref().as_i64());
        match (number(0), number(1), number(2).unwrap_or(1)) {
            (_, _, 0) => Err(is_zero()),
            (Some(first), Some(last), step) => Ok(State::Integers(first, last, step)),
            _ => Ok(State::Ended),
        }
    }

    /// Computes all rows of a function.
    fn rows(
        &mut self,
        function: &RowFunction,
        values: &[Value],
        context: &Context<'_>,
    ) -> Result<State> {
        if function.is_strict && values.iter().any(Value::is_null) {
            return Ok(State::Ended);
        }
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let rows = (function.run)(&values)?;
        for row in &rows {
            self.charge.keep_values(row, context)?;
        }
        Ok(State::Rows(rows.into_iter()))
    }

    fn next_value(&mut self) -> Option<Value> {
        match &mut self.state {
            State::Ended | State::Rows(_) => None,
            State::Integers(next, last, step) => {
                let value = *next;
                if if *step > 0 { value > *last } else { value < *last } {
                    return None;
                }
                match value.checked_add(*step) {
                    Some(after) => *next = after,
                    None => self.state = State::Ended,
                }
                Some(match self.kind {
                    TableFunctionKind::GenerateSeries(DataType::Integer) => {
                        Value::Integer(value as i32)
                    }
                    _ => Value::BigInt(value),
                })
            }
            State::Numerics(next, last, step) => {
                let value = *next;
                if if *step > Numeric::from(0) { value > *last } else { value < *last } {
                    return None;
                }
                match value.checked_add(*step) {
                    Ok(after) => *next = after,
                    Err(_) => self.state = State::Ended,
                }
                Some(Value::Numeric(value))
            }
        }
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh) {
            self.state = self.start(context)?;
            self.row = 0;
        }
        context.check_cancelled()?;
        if let State::Rows(rows) = &mut self.state {
            let Some(row) = rows.next() else { return Ok(false) };
            let slot = context.slot(self.slot)?;
            slot.values.clear();
            slot.values.extend(row);
        } else {
            let Some(value) = self.next_value() else { return Ok(false) };
            let slot = context.slot(self.slot)?;
            slot.values.clear();
            slot.values.push(value);
        }
        self.row += 1;
        let slot = context.slot(self.slot)?;
        if self.ordinality {
            slot.values.push(Value::BigInt(self.row));
        }
        slot.current = Current::Values;
        Ok(true)
    }
}
