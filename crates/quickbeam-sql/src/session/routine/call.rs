//! One call of a routine: its variables, its blocks and what it returns.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::CompiledRoutine;
use super::variables::{Cell, RecordShape, row_of, row_with_nulls};
use crate::catalog::{RoutineResult, Table, Trigger};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{Returned, values_memory};
use crate::parse::plpgsql::RecordFields;
use crate::parse::plpgsql::{Block, ExceptionCondition, ExceptionHandler};
use crate::session::Session;
use crate::types::{DataType, Value};

/// The transaction in which a body runs.
#[derive(Clone, Copy)]
pub(super) enum CallTransaction<'t> {
    /// That of the statement which calls it.
    Lent(&'t Transaction),
    /// The one of the session, which a procedure may end.
    Session,
}

impl CallTransaction<'_> {
    /// Does something in the transaction.
    pub fn with<T>(
        &self,
        session: &Session,
        work: impl FnOnce(&Transaction) -> Result<T>,
    ) -> Result<T> {
        match self {
            CallTransaction::Lent(transaction) => work(transaction),
            CallTransaction::Session => {
                session.make_begun()?;
                let transaction = session.begun()?;
                work(&transaction)
            }
        }
    }
}

/// Whether a body may end the transaction of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionEnd {
    Allowed,
    Refused,
}

/// How a statement ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next statement follows.
    Next,
    /// EXIT of the loop or block of that label, or of the innermost loop.
    Exit(Option<SmolStr>),
    /// CONTINUE.
    Continue(Option<SmolStr>),
    /// RETURN.
    Return,
}

/// A call of a routine.
pub(super) struct Invocation<'s> {
    pub session: &'s Session,
    pub compiled: Arc<CompiledRoutine>,
    pub place: CallTransaction<'s>,
    /// Whether COMMIT and ROLLBACK are allowed.
    pub end: TransactionEnd,
    pub cells: Vec<Cell>,
    /// The rows so far.
    pub rows: Returned,
    bytes: usize,
    pub row_count: u64,
    /// The errors whose handlers run, the innermost last.
    pub errors: Vec<SqlError>,
    /// The row that RETURN gave.
    pub result: Option<Vec<Value>>,
    /// The trigger with transition tables that the call is of, and its table.
    pub fired: Option<(Arc<Trigger>, Arc<Table>)>,
    /// Whether OPEN runs the query of a cursor.
    pub opens: bool,
    /// Blocks with handlers around the statement that runs.
    pub guarded: usize,
    /// Whether NEW and OLD of a trigger have no row.
    pub absent: [bool; 2],
    /// Whether the error that ends the call has its place.
    pub is_located: bool,
}

impl<'s> Invocation<'s> {
    pub fn new(
        session: &'s Session,
        compiled: Arc<CompiledRoutine>,
        place: CallTransaction<'s>,
        end: TransactionEnd,
    ) -> Invocation<'s> {
        let cells = compiled.body.variables.iter().map(|it| Cell::new(&it.kind));
        let mut cells: Vec<Cell> = cells.collect();
        if let Some(found) = cells.get_mut(compiled.body.found) {
            *found = Cell::Scalar(Value::Boolean(false));
        }
        Invocation {
            session,
            compiled,
            place,
            end,
            cells,
            rows: Vec::new(),
            bytes: 0,
            row_count: 0,
            errors: Vec::new(),
            result: None,
            fired: None,
            opens: false,
            guarded: 0,
            absent: [false; 2],
            is_located: false,
        }
    }

    /// Gives the arguments their values.
    pub fn take_arguments(&mut self, arguments: Vec<Value>) -> Result<()> {
        let compiled = self.compiled.clone();
        let all = compiled.routine.arguments.iter().zip(&compiled.arguments);
        let inputs = all.filter(|(argument, _)| argument.mode.is_input());
        for ((_, variable), value) in inputs.zip(arguments) {
            match compiled.domains.contains_key(variable) && !compiled.routine.is_procedure() {
                // The statement that calls the function has checked the value.
                true => self.set_checked(*variable, value)?,
                false => self.set(*variable, value)?,
            }
        }
        Ok(())
    }

    /// Adds a row to the result.
    pub fn add_row(&mut self, row: Vec<Value>) -> Result<()> {
        let row = self.result_row(row)?;
        self.keep_row(row)
    }

    fn keep_row(&mut self, row: Vec<Value>) -> Result<()> {
        self.bytes += values_memory(&row);
        self.session.limits.check_memory(self.bytes)?;
        self.rows.push(row);
        Ok(())
    }

    /// Returns a row with the types of the result, which their domains accept.
    fn result_row(&self, row: Vec<Value>) -> Result<Vec<Value>> {
        let mut row = self.typed_row(row)?;
        for (at, domain) in &self.compiled.result_domains {
            if let Some(value) = row.get_mut(*at) {
                *value = self.accepted(domain, std::mem::take(value))?;
            }
        }
        Ok(row)
    }

    /// Returns a row with the types of the result.
    fn typed_row(&self, row: Vec<Value>) -> Result<Vec<Value>> {
        let columns = &self.compiled.columns;
        let row = self.fields_of_whole(row);
        if row.len() != columns.len() {
            let message = match self.compiled.routine.result {
                RoutineResult::Record => "wrong record type supplied in RETURN NEXT",
                _ => "returned record type does not match expected record type",
            };
            return Err(SqlError::new(SqlState::DatatypeMismatch, message).with_detail(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                row.len(),
                columns.len()
            )));
        }
        let fields = row.into_iter().zip(columns);
        fields.map(|(value, it)| self.converted(value.into(), it.data_type)).collect()
    }

    /// Returns the fields of a row that was given as one value.
    fn fields_of_whole(&self, row: Vec<Value>) -> Vec<Value> {
        let columns = &self.compiled.columns;
        let is_of_rows = self.compiled.routine.result.is_row();
        let is_field = matches!(&columns[..], [only] if only.data_type.record().is_some());
        let [value] = &row[..] else { return row };
        match value.as_ref().row() {
            Some(whole) if is_of_rows && !is_field => {
                whole.fields().map(|field| field.value.to_value()).collect()
            }
            None if is_of_rows && value.is_null() => vec![Value::Null; columns.len()],
            _ => row,
        }
    }

    /// Whether the call returns one row, as the value of an expression or in FROM.
    fn is_row(&self) -> bool {
        let routine = &self.compiled.routine;
        let is_row = routine.result == RoutineResult::Record || routine.result.is_row();
        is_row && !routine.returns_set
    }

    /// Whether the call returns a row with the columns that the body gives it.
    pub fn returns_whole_record(&self) -> bool {
        let columns = &self.compiled.columns;
        self.compiled.routine.result == RoutineResult::Record
            && matches!(&columns[..], [only] if only.data_type == DataType::RECORD)
    }

    /// Returns the row of a call that [returns one](Self::returns_whole_record) as a value.
    pub fn whole_record(&self, shape: &RecordShape, row: Vec<Value>) -> Result<Vec<Value>> {
        match &row[..] {
            [only] if only.as_ref().row().is_some() => Ok(row),
            _ => Ok(vec![row_with_nulls(shape, &row)?]),
        }
    }

    /// Returns the values of the OUT arguments.
    pub fn output_row(&self) -> Vec<Value> {
        let value = |variable: usize| match &self.cells[variable] {
            Cell::Scalar(value) => value.clone(),
            Cell::Record(shape, values, held) => {
                row_of(shape, values, *held).unwrap_or(Value::Null)
            }
        };
        self.compiled.outputs().map(value).collect()
    }

    /// Runs a body in SQL: the last statement gives the result.
    pub fn run_sql(mut self) -> Result<Returned> {
        let mut last = None;
        for fragment in 0..self.compiled.fragments.len() {
            last = Some(self.run(fragment).map_err(|error| {
                let name = &self.compiled.routine.name;
                let context = format!("SQL function \"{name}\" statement {}", fragment + 1);
                error.in_context(context)
            })?);
        }
        match self.compiled.routine.result {
            RoutineResult::Void => return Ok(vec![vec![Value::Null]]),
            RoutineResult::Procedure if self.compiled.columns.is_empty() => return Ok(Vec::new()),
            _ => {}
        }
        let (mut rows, columns) =
            last.map_or_else(Default::default, |ran| (ran.rows, ran.columns.to_vec()));
        if !self.compiled.routine.returns_set {
            rows.truncate(1);
            if rows.is_empty() {
                // No domain is asked about the NULL of a missing row.
                let count = match self.is_row() {
                    true => 0,
                    false => self.compiled.columns.len(),
                };
                self.keep_row(vec![Value::Null; count])?;
            }
        }
        let shape: Option<RecordShape> = self.returns_whole_record().then(|| {
            let all = columns.iter();
            let all = all.map(|it| (it.name.clone(), it.data_type, it.collation));
            Arc::new(RecordFields::new(all))
        });
        for row in rows {
            let row = match &shape {
                Some(shape) => self.whole_record(shape, row)?,
                None => row,
            };
            self.add_row(row)?;
        }
        Ok(self.rows)
    }

    /// Runs the block of a body in PL/pgSQL, and returns its rows.
    pub fn run_block(mut self) -> Result<Returned> {
        self.execute_body()?;
        let compiled = self.compiled.clone();
        if compiled.routine.returns_set {
            return Ok(self.rows);
        }
        match (&compiled.routine.result, self.result.take()) {
            (RoutineResult::Void, _) => Ok(vec![vec![Value::text("")]]),
            (RoutineResult::Procedure, _) if compiled.columns.is_empty() => Ok(Vec::new()),
            // NULL in the place of a row.
            (_, Some(row)) if self.is_row() && matches!(&row[..], [] | [Value::Null]) => {
                Ok(vec![Vec::new()])
            }
            (_, Some(row)) => match self.result_row(row) {
                Ok(row) => Ok(vec![row]),
                Err(error) => {
                    let place = " while casting return value to function's return type";
                    Err(self.located(error, place))
                }
            },
            _ if compiled.outputs().next().is_some() => {
                let row = self.output_row();
                Ok(vec![self.typed_row(row)?])
            }
            _ => {
                let error = self.no_return();
                Err(self.located(error, ""))
            }
        }
    }

    /// Runs the outermost block.
    pub fn execute_body(&mut self) -> Result<()> {
        let compiled = self.compiled.clone();
        match self.block(&compiled.body.block)? {
            Flow::Next if !self.needs_return() => Ok(()),
            Flow::Next => {
                let error = self.no_return();
                Err(self.located(error, ""))
            }
            Flow::Return => Ok(()),
            Flow::Exit(_) => {
                let message = "EXIT cannot be used outside a loop, unless it has a label";
                Err(SqlError::new(SqlState::SyntaxError, message))
            }
            Flow::Continue(_) => {
                let message = "CONTINUE cannot be used outside a loop";
                Err(SqlError::new(SqlState::SyntaxError, message))
            }
        }
    }

    /// Whether the body must end with RETURN.
    fn needs_return(&self) -> bool {
        let routine = &self.compiled.routine;
        let is_free = matches!(routine.result, RoutineResult::Void | RoutineResult::Procedure);
        !is_free && !routine.returns_set && self.compiled.outputs().next().is_none()
    }

    #[cold]
    fn no_return(&self) -> SqlError {
        let message = match self.compiled.routine.result {
            RoutineResult::Trigger => "control reached end of trigger procedure without RETURN",
            _ => "control reached end of function without RETURN",
        };
        SqlError::new(SqlState::FunctionExecutedNoReturnStatement, message)
    }

    /// Gives the variables of a block their first values.
    fn declare(&mut self, block: &Block) -> Result<()> {
        let compiled = self.compiled.clone();
        for variable in &block.variables {
            if let Err(error) = self.declare_variable(&compiled, *variable) {
                let line = compiled.body.variables[*variable].line;
                let place =
                    format!(" line {line} during statement block local variable initialization");
                return Err(self.located(error, &place));
            }
        }
        Ok(())
    }

    fn declare_variable(&mut self, compiled: &CompiledRoutine, variable: usize) -> Result<()> {
        let declared = &compiled.body.variables[variable];
        self.cells[variable] = Cell::new(&declared.kind);
        if declared.cursor.is_some() {
            self.cells[variable] = Cell::Scalar(Value::text(&declared.name));
        }
        if declared.initial.is_none() && compiled.domains.contains_key(&variable) {
            self.set(variable, Value::Null)?;
        }
        let Some(initial) = declared.initial else { return Ok(()) };
        let target = crate::parse::plpgsql::AssignmentTarget { variable, field: None };
        if !self.copy_record(&target, initial)? {
            let value = self.typed_value(initial)?;
            self.set(variable, value)?;
        }
        Ok(())
    }

    /// Runs a block.
    pub fn block(&mut self, block: &Block) -> Result<Flow> {
        self.declare(block)?;
        let flow = match block.handlers.is_empty() {
            true => self.statements(&block.body)?,
            false => self.guarded_block(block)?,
        };
        Ok(match flow {
            Flow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => Flow::Next,
            flow => flow,
        })
    }

    /// Runs a block with handlers: an error undoes what the block has changed.
    fn guarded_block(&mut self, block: &Block) -> Result<Flow> {
        let session = self.session;
        let savepoint = self.place.with(session, |it| Ok(it.savepoint()?))?;
        let kept = session.kept_mark();
        let (events, rows, errors) = (session.events.pending(), self.rows.len(), self.errors.len());
        self.guarded += 1;
        let done = self.statements(&block.body);
        self.guarded -= 1;
        let error = match done {
            Ok(flow) => {
                self.place.with(session, |it| {
                    it.release_savepoint(savepoint);
                    Ok(())
                })?;
                return Ok(flow);
            }
            Err(error) => error,
        };
        let Some(handler) = block.handlers.iter().find(|it| handles(it, &error)) else {
            return Err(error);
        };
        self.is_located = false;
        self.place.with(session, |it| {
            it.rollback_to(savepoint)?;
            it.release_savepoint(savepoint);
            Ok(())
        })?;
        session.events.truncate(events);
        session.restore_kept(kept);
        self.rows.truncate(rows);
        self.errors.truncate(errors);
        self.cells[block.error] = Cell::Scalar(Value::text(error.code()));
        self.cells[block.error + 1] = Cell::Scalar(Value::text(error.message()));
        self.errors.push(error);
        let flow = self.statements(&handler.body);
        if flow.is_ok() {
            self.errors.truncate(errors);
        }
        flow
    }
}

/// Whether a handler is for an error.
fn handles(handler: &ExceptionHandler, error: &SqlError) -> bool {
    let code = error.code();
    let holds = |condition: &ExceptionCondition| match condition {
        ExceptionCondition::Others => {
            !matches!(error.state(), SqlState::QueryCanceled | SqlState::AssertFailure)
        }
        ExceptionCondition::Code(wanted) => {
            code == wanted || wanted.ends_with("000") && code.get(..2) == wanted.get(..2)
        }
    };
    handler.conditions.iter().any(holds)
}
