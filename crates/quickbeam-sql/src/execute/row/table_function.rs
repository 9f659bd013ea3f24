//! Functions that return rows.

use super::super::system_rows::system_rows;
use super::{Context, MemoryCharge};
use crate::bind::{FunctionCall, TableFunction, TableFunctionKind};
use crate::catalog::system::SystemTable;
use crate::catalog::{AclKind, Privileges, Relation, lookup_name};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Current, Expr, Host, RowFunction, RowWork, add_interval};
use crate::types::{DataType, Decimal, Interval, SessionZone, Value, ValueRef};

/// The rows of functions, computed one at a time.
#[derive(Debug)]
pub struct FunctionScan {
    calls: Vec<CallScan>,
    ordinality: bool,
    slot: usize,
    row: i64,
    fresh: bool,
    charge: MemoryCharge,
}

/// The rows of one call.
#[derive(Debug)]
struct CallScan {
    kind: TableFunctionKind,
    arguments: Vec<Expr>,
    width: usize,
    state: State,
}

/// The rest of a series: its next value, last value and step.
#[derive(Debug)]
enum State {
    Ended,
    Integers(i64, i64, i64),
    Numerics(Box<[Decimal; 3]>),
    /// … and the zone whose days it counts.
    Moments(i64, i64, Interval, SessionZone),
    /// Rows that are computed already.
    Rows(std::vec::IntoIter<Vec<Value>>),
}

impl FunctionScan {
    pub fn new(function: &TableFunction) -> FunctionScan {
        let call = |call: &FunctionCall| CallScan {
            kind: call.kind,
            arguments: call.arguments.clone(),
            width: call.width,
            state: State::Ended,
        };
        FunctionScan {
            calls: function.calls.iter().map(call).collect(),
            ordinality: function.ordinality,
            slot: function.slot,
            row: 0,
            fresh: true,
            charge: MemoryCharge::default(),
        }
    }

    pub fn rewind(&mut self) {
        self.fresh = true;
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh) {
            self.charge.clear(context);
            for call in &mut self.calls {
                call.state = call.start(&mut self.charge, context)?;
            }
            self.row = 0;
        }
        context.check_cancelled()?;
        let mut values = std::mem::take(&mut context.slot(self.slot)?.values);
        values.clear();
        let mut has_row = false;
        for call in &mut self.calls {
            let end = values.len() + call.width;
            has_row |= call.append_row(&mut values)?;
            values.resize(end, Value::Null);
        }
        self.row += 1;
        if self.ordinality {
            values.push(Value::BigInt(self.row));
        }
        let slot = context.slot(self.slot)?;
        slot.values = values;
        slot.current = Current::Values;
        Ok(has_row)
    }
}

impl CallScan {
    /// Evaluates the arguments. A NULL among them makes the series empty.
    fn start(&self, charge: &mut MemoryCharge, context: &Context<'_>) -> Result<State> {
        let values: Result<Vec<Value>> =
            self.arguments.iter().map(|argument| context.value(argument)).collect();
        let values = values?;
        if self.kind == TableFunctionKind::Value {
            return kept(vec![values], charge, context);
        }
        if let TableFunctionKind::Rows(function) = self.kind {
            return rows_of(function, &values, charge, context);
        }
        if let TableFunctionKind::JsonRecords(function) = self.kind {
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            return kept(function.rows(&context.frame(), &values)?, charge, context);
        }
        if let TableFunctionKind::Routine(call, _) = self.kind {
            // A strict function that returns one row returns NULLs, of rows none.
            if call.is_strict && values.iter().any(Value::is_null) {
                let one = vec![vec![Value::Null; self.width]];
                let rows = if call.returns_set { Vec::new() } else { one };
                return Ok(State::Rows(rows.into_iter()));
            }
            let mut rows = context.session.call_routine(context.transaction, call, values)?;
            if let [row] = &mut rows[..]
                && row.is_empty()
            {
                row.resize(self.width, Value::Null);
            }
            return kept(rows, charge, context);
        }
        if values.iter().any(Value::is_null) {
            return Ok(State::Ended);
        }
        if let TableFunctionKind::Catalog(table) = self.kind {
            let mut rows = system_rows(table, context.snapshot, context.session, context)?;
            if table.name == "pg_sequences" {
                add_last_values(table, &mut rows, context)?;
            }
            return Ok(State::Rows(rows.into_iter()));
        }
        if let TableFunctionKind::Transition(side) = self.kind {
            return kept(context.session.transition_rows(side)?, charge, context);
        }
        if let TableFunctionKind::Sequence(id) = self.kind {
            let state = context.sequence_state(id.0)?;
            let numbers = [state.last, state.left].map(Value::BigInt);
            let row = numbers.into_iter().chain([Value::Boolean(state.is_called)]).collect();
            return Ok(State::Rows(vec![row].into_iter()));
        }
        let is_zero =
            || SqlError::new(SqlState::InvalidParameterValue, "step size cannot equal zero");
        if let TableFunctionKind::GenerateSeries(DataType::Numeric(_)) = self.kind {
            let number = |at: usize| values.get(at).and_then(|value| value.as_ref().as_decimal());
            let step = number(2).unwrap_or(Decimal::from(1));
            let (Some(first), Some(last)) = (number(0), number(1)) else {
                return Ok(State::Ended);
            };
            for (number, name) in
                [(&first, "start value"), (&last, "stop value"), (&step, "step size")]
            {
                check_finite(number, name)?;
            }
            if step.is_zero() {
                return Err(is_zero());
            }
            return Ok(State::Numerics(Box::new([first, last, step])));
        }
        // The days of a series of timestamps without zone have 24 hours.
        let zone = match self.kind {
            TableFunctionKind::GenerateSeries(DataType::TimestampTz) => {
                context.frame().settings().zone
            }
            _ => SessionZone::Utc,
        };
        if let [Value::Timestamp(first), Value::Timestamp(last), Value::Interval(step)]
        | [Value::TimestampTz(first), Value::TimestampTz(last), Value::Interval(step)] =
            &values[..]
        {
            if *step == Interval::default() {
                return Err(is_zero());
            }
            return Ok(State::Moments(*first, *last, *step, zone));
        }
        let number = |at: usize| values.get(at).and_then(|value| value.as_ref().as_i64());
        match (number(0), number(1), number(2).unwrap_or(1)) {
            (_, _, 0) => Err(is_zero()),
            (Some(first), Some(last), step) => Ok(State::Integers(first, last, step)),
            _ => Ok(State::Ended),
        }
    }

    fn next_value(&mut self) -> Result<Option<Value>> {
        Ok(match &mut self.state {
            State::Ended | State::Rows(_) => None,
            State::Moments(next, last, step, zone) => {
                let moment = *next;
                let is_past =
                    if *step > Interval::default() { moment > *last } else { moment < *last };
                if is_past {
                    return Ok(None);
                }
                *next = add_interval(moment, *step, *zone)?;
                Some(match self.kind {
                    TableFunctionKind::GenerateSeries(DataType::Timestamp) => {
                        Value::Timestamp(moment)
                    }
                    _ => Value::TimestampTz(moment),
                })
            }
            State::Integers(next, last, step) => {
                let value = *next;
                if if *step > 0 { value > *last } else { value < *last } {
                    return Ok(None);
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
            State::Numerics(series) => {
                let [next, last, step] = &mut **series;
                if if step.signum() > 0 { next > last } else { next < last } {
                    return Ok(None);
                }
                let after = next.checked_add(step);
                let value = std::mem::replace(next, Decimal::from(0));
                match after {
                    Ok(after) => *next = after,
                    Err(_) => self.state = State::Ended,
                }
                Some(value.into())
            }
        })
    }

    /// Appends the next row. Returns false at the end.
    fn append_row(&mut self, values: &mut Vec<Value>) -> Result<bool> {
        if let State::Rows(rows) = &mut self.state {
            let row = rows.next();
            let is_row = row.is_some();
            values.extend(row.into_iter().flatten());
            return Ok(is_row);
        }
        let value = self.next_value()?;
        let is_row = value.is_some();
        values.extend(value);
        Ok(is_row)
    }
}

/// Sets the last values of the sequences that the role may read in rows of `pg_sequences`.
fn add_last_values(
    table: &SystemTable,
    rows: &mut [Vec<Value>],
    context: &Context<'_>,
) -> Result<()> {
    let place = |wanted: &str| table.columns.iter().position(|(name, ..)| name == wanted);
    let columns = ["schemaname", "sequencename", "last_value"].map(place);
    let [Some(schema), Some(name), Some(last)] = columns else { return Ok(()) };
    for row in rows {
        let (Some(Value::Text(in_schema)), Some(Value::Text(own))) =
            (row.get(schema), row.get(name))
        else {
            continue;
        };
        let lookup = lookup_name(in_schema.as_str(), own.as_str());
        let Some(Relation::Sequence(sequence)) = context.snapshot.relation(&lookup) else {
            continue;
        };
        let role = context.session.role();
        let rights = context.snapshot.rights(role, sequence.id, AclKind::Sequence);
        if rights.within(Privileges::SELECT.and(Privileges::USAGE)).is_empty() {
            continue;
        }
        let state = context.sequence_state(sequence.id.0)?;
        if let Some(value) = row.get_mut(last).filter(|_| state.is_called) {
            *value = Value::BigInt(state.last);
        }
    }
    Ok(())
}

/// Computes all rows of a function.
fn rows_of(
    function: &RowFunction,
    values: &[Value],
    charge: &mut MemoryCharge,
    context: &Context<'_>,
) -> Result<State> {
    if function.is_strict && values.iter().any(Value::is_null) {
        return Ok(State::Ended);
    }
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let rows = match function.run {
        RowWork::OfValues(run) => run(&values)?,
        RowWork::InFrame(run) => run(&context.frame(), &values)?,
    };
    kept(rows, charge, context)
}

/// Counts the memory of rows that are computed already.
fn kept(rows: Vec<Vec<Value>>, charge: &mut MemoryCharge, context: &Context<'_>) -> Result<State> {
    for row in &rows {
        charge.keep_values(row, context)?;
    }
    Ok(State::Rows(rows.into_iter()))
}

/// Returns the error of a series of NUMERIC with NaN or an infinity.
fn check_finite(number: &Decimal, name: &str) -> Result<()> {
    if number.is_finite() {
        return Ok(());
    }
    let what = if number.is_nan() { "NaN" } else { "infinity" };
    let message = format!("{name} cannot be {what}");
    Err(SqlError::new(SqlState::InvalidParameterValue, message))
}
