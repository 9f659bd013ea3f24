//! The statements of a block.

use std::sync::Arc;

use super::call::{CallTransaction, Flow, Invocation, TransactionEnd};
use super::fragments::Ran;
use super::variables::{Cell, HeldRow, TypedValue};
use crate::bind::Binder;
use crate::catalog::{BOOTSTRAP, RoutineResult};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::plpgsql::{
    AssignmentTarget, BlockAction, BlockStatement, BodyQuery, CallArgument, DiagnosticsItem,
    IntoTargets, LoopKind,
};
use crate::types::{DataType, Value, format_value};

/// How the context of an error names a statement.
fn shown(action: &BlockAction) -> &'static str {
    match action {
        BlockAction::Nothing => "NULL",
        BlockAction::Block(_) => "statement block",
        BlockAction::Assign(..) | BlockAction::AssignPart(..) => "assignment",
        BlockAction::If(_, _, true) => "CASE",
        BlockAction::If(..) => "IF",
        BlockAction::Loop(_, kind, _) => match kind {
            LoopKind::Forever => "LOOP",
            LoopKind::While(_) => "WHILE",
            LoopKind::Integers(..) => "FOR with integer loop variable",
            LoopKind::Rows(_, BodyQuery::Static(_)) => "FOR over SELECT rows",
            LoopKind::Rows(_, BodyQuery::Dynamic(..)) => "FOR over EXECUTE statement",
            LoopKind::Cursor(..) => "FOR over cursor",
            LoopKind::Elements(..) => "FOREACH over array",
        },
        BlockAction::Leave(_, _, false) => "EXIT",
        BlockAction::Leave(_, _, true) => "CONTINUE",
        BlockAction::Return | BlockAction::ReturnValue(_) | BlockAction::ReturnRecord(_, false) => {
            "RETURN"
        }
        BlockAction::ReturnNext(_) | BlockAction::ReturnRecord(_, true) => "RETURN NEXT",
        BlockAction::ReturnQuery(_) => "RETURN QUERY",
        BlockAction::Raise(_) => "RAISE",
        BlockAction::Assert(..) => "ASSERT",
        BlockAction::Run(_, _, true) => "PERFORM",
        BlockAction::Run(BodyQuery::Dynamic(..), ..) => "EXECUTE",
        BlockAction::Run(..) => "SQL statement",
        BlockAction::Call(..) => "CALL",
        BlockAction::Open(..) => "OPEN",
        BlockAction::Fetch(_, _, Some(_)) => "FETCH",
        BlockAction::Fetch(..) => "MOVE",
        BlockAction::Close(_) => "CLOSE",
        BlockAction::Diagnostics(_, true) => "GET STACKED DIAGNOSTICS",
        BlockAction::Diagnostics(_, false) => "GET DIAGNOSTICS",
        BlockAction::EndTransaction { commits: true, .. } => "COMMIT",
        BlockAction::EndTransaction { .. } => "ROLLBACK",
    }
}

/// Returns the error of a statement with its text, unless the statement could not be read.
#[cold]
fn in_statement(error: SqlError, text: &str) -> SqlError {
    let is_unread = error.code().starts_with("42")
        && error.state() != SqlState::InsufficientPrivilege
        && error.context().is_none();
    match is_unread {
        true => error,
        false => error.in_context(format!("SQL statement \"{}\"", text.trim())),
    }
}

#[cold]
fn ends_transaction() -> SqlError {
    let message = "invalid transaction termination";
    SqlError::new(SqlState::InvalidTransactionTermination, message)
}

#[cold]
fn not_composite() -> SqlError {
    let message = "cannot return non-composite value from function returning composite type";
    SqlError::new(SqlState::DatatypeMismatch, message)
}

impl Invocation<'_> {
    /// Runs statements until one of them leaves.
    pub(super) fn statements(&mut self, statements: &[BlockStatement]) -> Result<Flow> {
        for statement in statements {
            let flow = match self.statement(&statement.action) {
                Ok(flow) => flow,
                Err(error) => {
                    let (line, what) = (statement.line, shown(&statement.action));
                    return Err(self.located(error, &format!(" line {line} at {what}")));
                }
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Returns an error with the place in the routine, unless a statement inside has named it.
    pub(super) fn located(&mut self, error: SqlError, place: &str) -> SqlError {
        if std::mem::replace(&mut self.is_located, true) {
            return error;
        }
        let name = self.shown_name();
        error.in_context(format!("PL/pgSQL function {name}{place}"))
    }

    /// The name of the routine, as the context of errors has it.
    fn shown_name(&self) -> String {
        let routine = &self.compiled.routine;
        // The block of DO has no arguments.
        if routine.id == BOOTSTRAP { routine.name.to_string() } else { routine.signature() }
    }

    pub(super) fn set_found(&mut self, found: bool) {
        let variable = self.compiled.body.found;
        if let Some(cell) = self.cells.get_mut(variable) {
            *cell = Cell::Scalar(Value::Boolean(found));
        }
    }

    /// Runs a query with values that its text or USING names.
    pub(super) fn run_query(&mut self, query: &BodyQuery) -> Result<Ran> {
        Ok(self.run_shown(query)?.0)
    }

    /// As [`run_query`](Self::run_query), with the text of the query.
    pub(super) fn run_shown(&mut self, query: &BodyQuery) -> Result<(Ran, Arc<str>)> {
        match query {
            BodyQuery::Static(fragment) => {
                let text = self.compiled.body.fragments[*fragment].text.clone();
                Ok((self.run(*fragment).map_err(|error| in_statement(error, &text))?, text))
            }
            BodyQuery::Dynamic(text, using) => {
                let text = self.text_of(*text)?.ok_or_else(|| {
                    let message = "query string argument of EXECUTE is null";
                    SqlError::new(SqlState::NullValueNotAllowed, message)
                })?;
                let values: Result<Vec<TypedValue>> =
                    using.iter().map(|value| self.typed_value(*value)).collect();
                let ran = self.run_text(&text, &values?);
                Ok((ran.map_err(|error| in_statement(error, &text))?, text.into()))
            }
        }
    }

    /// Evaluates an expression as a text; `None` for NULL.
    pub(super) fn text_of(&self, fragment: usize) -> Result<Option<String>> {
        let typed = self.typed_value(fragment)?;
        let value = match typed.reference {
            Some(_) => self.converted(typed, DataType::Text)?,
            None => typed.value,
        };
        if value.is_null() {
            return Ok(None);
        }
        let mut text = String::new();
        format_value(&mut text, value.as_ref(), &self.session.clock.settings());
        Ok(Some(text))
    }

    /// Evaluates what RETURN gives: the name of an object for a result that is a text.
    fn result_value(&self, fragment: usize) -> Result<Value> {
        let typed = self.typed_value(fragment)?;
        match &self.compiled.columns[..] {
            [only] if typed.reference.is_some() => self.converted(typed, only.data_type),
            _ => Ok(typed.value),
        }
    }

    fn statement(&mut self, action: &BlockAction) -> Result<Flow> {
        match action {
            BlockAction::Nothing => {}
            BlockAction::Block(block) => return self.block(block),
            BlockAction::Assign(target, value) => {
                if !self.copy_record(target, *value)? {
                    let value = self.typed_value(*value)?;
                    self.assign(target, value)?;
                }
            }
            BlockAction::AssignPart(variable, steps, value) => {
                self.assign_part(*variable, steps, *value)?;
            }
            BlockAction::If(branches, otherwise, must_match) => {
                for (condition, body) in branches {
                    if self.holds(*condition)? {
                        return self.statements(body);
                    }
                }
                if *must_match {
                    return Err(SqlError::new(SqlState::CaseNotFound, "case not found")
                        .with_hint("CASE statement is missing ELSE part."));
                }
                return self.statements(otherwise);
            }
            BlockAction::Loop(label, kind, body) => {
                return self.run_loop(label.as_ref(), kind, body);
            }
            BlockAction::Leave(label, condition, continues) => {
                if condition.map_or(Ok(true), |condition| self.holds(condition))? {
                    let label = label.clone();
                    return Ok(if *continues { Flow::Continue(label) } else { Flow::Exit(label) });
                }
            }
            BlockAction::Return => {
                return Ok(Flow::Return);
            }
            BlockAction::ReturnValue(value) => {
                self.check_scalar()?;
                let value = self.result_value(*value)?;
                self.result = match self.compiled.routine.result {
                    RoutineResult::Trigger if value.is_null() => Some(Vec::new()),
                    RoutineResult::Trigger => {
                        let row = value.as_ref().row().ok_or_else(not_composite)?;
                        Some(row.fields().map(|field| field.value.to_value()).collect())
                    }
                    _ => Some(vec![value]),
                };
                return Ok(Flow::Return);
            }
            BlockAction::ReturnRecord(record, is_next) => {
                let Cell::Record(shape, values, held) = &self.cells[*record] else {
                    return Err(SqlError::internal("a record that is none"));
                };
                if *held == HeldRow::Unassigned {
                    let name = &self.compiled.body.variables[*record].name;
                    return Err(super::variables::not_assigned(name));
                }
                let mut values = values.clone();
                // A record of a trigger that has no row is NULL.
                if self.absent.get(*record) == Some(&true) && values.iter().all(Value::is_null) {
                    values.clear();
                }
                let is_null = *held == HeldRow::Null;
                if self.returns_whole_record() && !values.is_empty() {
                    values = self.whole_record(&shape.clone(), values)?;
                }
                if *is_next {
                    self.add_row(values)?;
                } else {
                    let is_trigger = self.compiled.routine.result == RoutineResult::Trigger;
                    self.result = Some(if is_null && !is_trigger { Vec::new() } else { values });
                    return Ok(Flow::Return);
                }
            }
            BlockAction::ReturnNext(value) => {
                if !self.compiled.routine.returns_set {
                    let message = "cannot use RETURN NEXT in a non-SETOF function";
                    return Err(SqlError::new(SqlState::DatatypeMismatch, message));
                }
                let row = match value {
                    Some(value) => vec![self.result_value(*value)?],
                    None => self.output_row(),
                };
                self.add_row(row)?;
            }
            BlockAction::ReturnQuery(query) => self.return_query(query)?,
            BlockAction::Raise(raise) => self.raise(raise)?,
            BlockAction::Assert(condition, message) => {
                if !self.holds(*condition)? {
                    let text = message.map(|it| self.text_of(it)).transpose()?.flatten();
                    let text = text.unwrap_or_else(|| "assertion failed".to_owned());
                    return Err(SqlError::new(SqlState::AssertFailure, text));
                }
            }
            BlockAction::Run(query, into, drops) => {
                self.run_statement(query, into.as_ref(), *drops)?
            }
            BlockAction::Call(names, values, arguments) => {
                self.call_procedure(names, *values, arguments)?;
            }
            BlockAction::Open(variable, source) => self.open(*variable, source)?,
            BlockAction::Fetch(variable, direction, into) => {
                self.fetch(*variable, *direction, into.as_deref())?;
            }
            BlockAction::Close(variable) => self.close(*variable)?,
            BlockAction::Diagnostics(items, stacked) => self.diagnostics(items, *stacked)?,
            BlockAction::EndTransaction { commits, chains } => {
                self.end_transaction(*commits, *chains)?;
            }
        }
        Ok(Flow::Next)
    }

    /// Checks that RETURN may have a value.
    fn check_scalar(&self) -> Result<()> {
        let routine = &self.compiled.routine;
        let message = match &routine.result {
            RoutineResult::Procedure => "RETURN cannot have a parameter in a procedure",
            RoutineResult::Void => "RETURN cannot have a parameter in function returning void",
            _ if routine.returns_set => {
                return Err(SqlError::new(
                    SqlState::DatatypeMismatch,
                    "RETURN cannot have a parameter in function returning set",
                )
                .with_hint("Use RETURN NEXT or RETURN QUERY."));
            }
            _ if self.compiled.outputs().next().is_some() => {
                "RETURN cannot have a parameter in function with OUT parameters"
            }
            _ => return Ok(()),
        };
        Err(SqlError::new(SqlState::DatatypeMismatch, message))
    }

    fn run_statement(
        &mut self,
        query: &BodyQuery,
        into: Option<&IntoTargets>,
        drops: bool,
    ) -> Result<()> {
        let ran = self.run_query(query)?;
        self.row_count = ran.count;
        let is_dynamic = matches!(query, BodyQuery::Dynamic(..));
        let Some(into) = into else {
            if ran.reads && !drops && !is_dynamic {
                let message = "query has no destination for result data";
                return Err(SqlError::new(SqlState::SyntaxError, message).with_hint(
                    "If you want to discard the results of a SELECT, use PERFORM instead.",
                ));
            }
            if !is_dynamic {
                self.set_found(ran.count > 0);
            }
            return Ok(());
        };
        if !ran.reads {
            let message = "INTO used with a command that cannot return data";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        if into.strict && ran.rows.is_empty() {
            let message = "query returned no rows";
            return Err(SqlError::new(SqlState::NoDataFound, message));
        }
        // A change returns one row, also without STRICT.
        if (into.strict || ran.changes && !is_dynamic) && ran.rows.len() > 1 {
            let message = "query returned more than one row";
            return Err(SqlError::new(SqlState::TooManyRows, message)
                .with_hint("Make sure the query returns a single row, or use LIMIT 1."));
        }
        let row = ran.rows.into_iter().next();
        if !is_dynamic {
            self.set_found(row.is_some());
        }
        self.row_count = u64::from(row.is_some());
        self.assign_row(&into.targets, &ran.columns, row)
    }

    fn return_query(&mut self, query: &BodyQuery) -> Result<()> {
        if !self.compiled.routine.returns_set {
            let message = "cannot use RETURN QUERY in a non-SETOF function";
            return Err(SqlError::new(SqlState::DatatypeMismatch, message));
        }
        let ran = self.run_query(query)?;
        let columns = &self.compiled.columns;
        let mismatch = |detail: String| {
            let message = "structure of query does not match function result type";
            Err(SqlError::new(SqlState::DatatypeMismatch, message).with_detail(detail))
        };
        let is_whole = self.compiled.routine.result.is_row()
            && matches!(&ran.columns[..], [only] if only.data_type.record().is_some());
        if !is_whole && ran.columns.len() != columns.len() {
            return mismatch(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                ran.columns.len(),
                columns.len()
            ));
        }
        let mut pairs = ran.columns.iter().zip(columns).enumerate();
        if let Some((at, (found, wanted))) = pairs.find(|(_, (found, wanted))| {
            !is_whole && !found.data_type.is_same_kind(wanted.data_type)
        }) {
            return mismatch(format!(
                "Returned type {} does not match expected type {} in column {}.",
                found.data_type,
                wanted.data_type,
                at + 1
            ));
        }
        self.row_count = ran.rows.len() as u64;
        self.set_found(!ran.rows.is_empty());
        ran.rows.into_iter().try_for_each(|row| self.add_row(row))
    }

    /// CALL in a body.
    fn call_procedure(
        &mut self,
        names: &[smol_str::SmolStr],
        values: Option<usize>,
        arguments: &[CallArgument],
    ) -> Result<()> {
        let session = self.session;
        let (columns, values) = match values {
            None => (Vec::new(), Vec::new()),
            Some(values) => {
                let ran = self.run(values)?;
                (ran.columns.to_vec(), ran.rows.into_iter().next().unwrap_or_default())
            }
        };
        let types: Vec<Option<DataType>> = columns.iter().map(super::command::known).collect();
        let (schema, name) = match names {
            [name] => (None, name),
            [schema, name] => (Some(&**schema), name),
            _ => return Err(SqlError::unsupported("a procedure of another database")),
        };
        let (procedure, order) = self.place.with(session, |transaction| {
            let snapshot = session.database.catalog.snapshot(transaction)?;
            let look = session.look(transaction, &snapshot);
            let mut binder = Binder::new(&look, "");
            let all = binder.procedures(schema, name);
            let order = super::command::argument_order(name, &all, arguments, &types)?;
            let types: Vec<_> = order.iter().map(|it| it.data_type).collect();
            let found = binder.procedure(schema, name, &types)?;
            Ok((session.compiled(transaction, found.id)?, order))
        })?;
        let given: Vec<_> = order.iter().map(|it| values.get(it.given?).cloned()).collect();
        let mut places: Vec<AssignmentTarget> = Vec::new();
        for (number, argument) in procedure.routine.identity().enumerate() {
            if argument.mode == crate::catalog::ArgumentMode::In {
                continue;
            }
            let written = order.get(number).and_then(|it| arguments.get(it.given?));
            let Some(target) = written.and_then(|it| it.target.clone()) else {
                return Err(super::command::not_writable(argument.name.as_deref(), number));
            };
            places.push(target);
        }
        let inputs = procedure.input_values(session, self.place, given)?;
        let may_end = self.end == TransactionEnd::Allowed && self.guarded == 0;
        let end = if may_end { TransactionEnd::Allowed } else { TransactionEnd::Refused };
        let rows = session.invoke(&procedure, self.place, inputs, end)?;
        let outputs = rows.into_iter().next().unwrap_or_default();
        for (target, value) in places.iter().zip(outputs) {
            self.assign(target, value)?;
        }
        Ok(())
    }

    fn diagnostics(
        &mut self,
        items: &[(AssignmentTarget, DiagnosticsItem)],
        stacked: bool,
    ) -> Result<()> {
        if stacked && self.errors.is_empty() {
            let message = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler";
            return Err(SqlError::new(
                SqlState::StackedDiagnosticsAccessedWithoutActiveHandler,
                message,
            ));
        }
        for (target, item) in items {
            let error = self.errors.last();
            let text = |text: Option<&str>| Value::text(text.unwrap_or_default());
            let value = match item {
                DiagnosticsItem::RowCount => {
                    Value::BigInt(i64::try_from(self.row_count).unwrap_or(i64::MAX))
                }
                DiagnosticsItem::Context => {
                    let name = self.shown_name();
                    Value::text(format!("PL/pgSQL function {name}"))
                }
                DiagnosticsItem::SqlState => text(error.map(SqlError::code)),
                DiagnosticsItem::Message => text(error.map(SqlError::message)),
                DiagnosticsItem::Detail => text(error.and_then(SqlError::detail)),
                DiagnosticsItem::Hint => text(error.and_then(SqlError::hint)),
                DiagnosticsItem::Constraint => text(error.and_then(SqlError::constraint)),
                DiagnosticsItem::ExceptionContext => text(error.and_then(SqlError::context)),
                DiagnosticsItem::Column => text(error.and_then(SqlError::column)),
                DiagnosticsItem::Table => text(error.and_then(SqlError::table)),
                DiagnosticsItem::Schema => text(error.and_then(SqlError::schema)),
                DiagnosticsItem::DataType => text(error.and_then(SqlError::data_type_name)),
            };
            self.assign(target, value)?;
        }
        Ok(())
    }

    /// COMMIT and ROLLBACK: another transaction begins with the next statement.
    fn end_transaction(&mut self, commits: bool, chains: bool) -> Result<()> {
        let is_session = matches!(self.place, CallTransaction::Session);
        if self.end == TransactionEnd::Refused || !is_session {
            return Err(ends_transaction());
        }
        if self.guarded > 0 {
            let what = if commits { "commit" } else { "roll back" };
            let message = format!("cannot {what} while a subtransaction is active");
            return Err(SqlError::new(SqlState::InvalidTransactionTermination, message));
        }
        self.session.end_in_procedure(commits, chains)
    }
}
