//! The statements and expressions of a body: compiled with the variables that they name, and run.

use std::cell::RefCell;
use std::sync::Arc;

use quickbeam::query_layer::TransactionExt;
use quickbeam::{Transaction, invariant};
use smol_str::SmolStr;

use super::CompiledRoutine;
use super::call::Invocation;
use super::variables::{
    Cell, HeldRow, RecordShape, TypedValue, field_of, not_assigned, row_of, row_type_of,
};
use crate::bind::{Derivation, GivenValue, OutputColumn, VariableLookup};
use crate::catalog::{Table, TransitionSide, Trigger, Volatility};
use crate::compile::session_command::Control;
use crate::compile::{CompileContext, Prepared};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{KeptKeys, Returned};
use crate::parse::plpgsql::{BlockBody, Fragment, VariableConflict, VariableKind, with_fields};
use crate::session::executor::TransactionUse;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::utility::CommandCall;
use crate::types::{DataType, Value};

/// A variable, or a field of a record by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    variable: usize,
    field: Option<usize>,
}

/// A statement of a body that was prepared.
pub(in crate::session) struct PreparedFragment {
    statement: PreparedStatement,
    /// The variables that its parameters stand for.
    used: Vec<Used>,
    /// The columns of the records among them.
    shapes: Vec<(usize, RecordShape)>,
}

impl PreparedFragment {
    fn new(text: &str, is_of_cursor: bool) -> PreparedFragment {
        let keeps_numbers = !is_of_cursor;
        let statement = PreparedStatement::new(text);
        let statement = PreparedStatement { is_of_cursor, keeps_numbers, ..statement };
        PreparedFragment { statement, used: Vec::new(), shapes: Vec::new() }
    }
}

/// What the execution of a statement returned.
pub(super) struct Ran {
    pub count: u64,
    pub rows: Returned,
    pub columns: Arc<[OutputColumn]>,
    /// Whether it is a query.
    pub reads: bool,
    /// Whether it changes rows, and returns them.
    pub changes: bool,
    /// The keys of the rows, if it is the query of a cursor.
    pub keys: Option<Box<KeptKeys>>,
}

/// The variables that a statement can name.
struct FragmentScope<'f> {
    compiled: &'f CompiledRoutine,
    namespace: usize,
    cells: &'f [Cell],
    fired: Option<&'f (Arc<Trigger>, Arc<Table>)>,
    used: RefCell<Vec<Used>>,
}

impl VariableLookup for FragmentScope<'_> {
    fn transition_table(&self, name: &str) -> Option<(TransitionSide, Arc<Table>)> {
        let (trigger, table) = self.fired?;
        let sides =
            [(TransitionSide::Old, &trigger.old_table), (TransitionSide::New, &trigger.new_table)];
        let found = sides.into_iter().find(|(_, known)| known.as_deref() == Some(name));
        found.map(|(side, _)| (side, table.clone()))
    }

    fn variable(&self, names: &[SmolStr], is_column: bool) -> Result<Option<GivenValue>> {
        let body = &self.compiled.body;
        let Some((variable, rest)) = BlockBody::lookup(&body.namespaces, self.namespace, names)
        else {
            return Ok(None);
        };
        let (Some(declared), Some(cell)) = (body.variables.get(variable), self.cells.get(variable))
        else {
            return Ok(None);
        };
        let (field, data_type, collation) = match (&declared.kind, cell, rest) {
            (VariableKind::Scalar(data_type) | VariableKind::Domain(data_type, _), _, []) => {
                (None, *data_type, Derivation::Default)
            }
            (VariableKind::Collated(data_type, own), _, []) => (None, *data_type, *own),
            (VariableKind::Record(_), Cell::Record(shape, ..), [name]) if !is_column => {
                let field = field_of(&declared.name, cell, name)?;
                (Some(field), shape[field].1, shape.collation(field))
            }
            (VariableKind::Record(_), Cell::Record(shape, _, HeldRow::Null | HeldRow::Row), [])
                if !is_column =>
            {
                let row_type = DataType::Encoded(row_type_of(shape));
                (None, row_type, shape.common_collation())
            }
            // One that is not assigned is NULL.
            (VariableKind::Record(_), _, []) if !is_column => {
                (None, DataType::RECORD, Derivation::Default)
            }
            _ => return Ok(None),
        };
        if is_column {
            // In SQL a column hides an argument of its name.
            if self.compiled.is_sql() || body.conflict == VariableConflict::Column {
                return Ok(None);
            }
        }
        if is_column && body.conflict == VariableConflict::Error {
            let name = names.join(".");
            let message = format!("column reference \"{name}\" is ambiguous");
            return Err(SqlError::new(SqlState::AmbiguousColumn, message)
                .with_detail("It could refer to either a PL/pgSQL variable or a table column."));
        }
        let used = Used { variable, field };
        let mut all = self.used.borrow_mut();
        let at = all.iter().position(|known| *known == used).unwrap_or_else(|| {
            all.push(used);
            all.len() - 1
        });
        Ok(Some(GivenValue { number: at, data_type, collation }))
    }
}

impl Invocation<'_> {
    /// Whether the records have the columns that a statement was compiled for.
    fn fits(&self, fragment: &PreparedFragment) -> bool {
        fragment.shapes.iter().all(|(variable, shape)| {
            matches!(&self.cells[*variable], Cell::Record(now, ..)
                if Arc::ptr_eq(now, shape) || now == shape)
        })
    }

    /// Returns a statement of the body, with records written as their fields.
    fn new_fragment(&self, fragment: &Fragment) -> Result<PreparedFragment> {
        let body = &self.compiled.body;
        let fields = |names: &[SmolStr]| -> Option<Vec<SmolStr>> {
            let (variable, []) = BlockBody::lookup(&body.namespaces, fragment.namespace, names)?
            else {
                return None;
            };
            match self.cells.get(variable)? {
                Cell::Record(shape, _, HeldRow::Null | HeldRow::Row) => {
                    Some(shape.iter().map(|(name, _)| name.clone()).collect())
                }
                _ => None,
            }
        };
        let has_records = self.cells.iter().any(|cell| matches!(cell, Cell::Record(..)));
        let written = if has_records { with_fields(&fragment.text, &fields)? } else { None };
        Ok(PreparedFragment::new(written.as_deref().unwrap_or(&fragment.text), self.opens))
    }

    /// Returns which of the first variables a statement that can be compiled names, by the fields
    /// of records.
    pub fn fields_used(&self, fragment: usize) -> Result<Vec<(usize, usize)>> {
        let text = &self.compiled.body.fragments[fragment];
        let mut prepared = self.new_fragment(text)?;
        self.place.with(self.session, |transaction| {
            self.compile(&mut prepared, text.namespace, transaction).map(|_| ())
        })?;
        let used = prepared.used.iter();
        Ok(used.filter_map(|used| Some((used.variable, used.field?))).collect())
    }

    /// Prepares a statement for what the transaction sees (ROUTINE-1).
    fn compile<'f>(
        &self,
        fragment: &'f mut PreparedFragment,
        namespace: usize,
        transaction: &Transaction,
    ) -> Result<&'f mut Prepared> {
        let session = self.session;
        let version = session.database.catalog.version(transaction)?;
        let has_shapes = self.fits(fragment);
        let statement = &mut fragment.statement;
        let is_kept = statement.version == version
            && statement.plan_key == session.plan_key.get()
            && has_shapes
            && session.is_current(statement.prepared.as_mut(), transaction);
        if !is_kept {
            statement.prepared = None;
            let snapshot = session.database.catalog.snapshot(transaction)?;
            let arguments = self.compiled.arguments.iter();
            let given = arguments.map(|variable| Used { variable: *variable, field: None });
            let scope = FragmentScope {
                compiled: &self.compiled,
                namespace,
                cells: &self.cells,
                fired: self.fired.as_ref(),
                used: RefCell::new(given.collect()),
            };
            let look = CompileContext {
                types: &self.compiled.types,
                variables: Some(&scope),
                keeps_keys: statement.is_of_cursor,
                keeps_numbers: statement.keeps_numbers,
                ..session.look(transaction, &snapshot)
            };
            let parsed = statement.parsed.take();
            statement.prepared = Some(look.prepare(&statement.text, parsed)?);
            statement.version = snapshot.version();
            statement.plan_key = session.plan_key.get();
            fragment.used = scope.used.into_inner();
            let record = |used: &Used| match &self.cells[used.variable] {
                Cell::Record(shape, ..) => Some((used.variable, shape.clone())),
                Cell::Scalar(_) => None,
            };
            fragment.shapes = fragment.used.iter().filter_map(record).collect();
        }
        let is_for_version = fragment.statement.version == version;
        let text = &fragment.statement.text;
        invariant!(ROUTINE_1, is_for_version && self.fits(fragment), "{text}");
        fragment.statement.prepared.as_mut().ok_or_else(|| SqlError::internal("not prepared"))
    }

    /// Returns the values of the variables that a statement names.
    fn parameters(&self, used: &[Used]) -> Result<Vec<Value>> {
        let value = |used: &Used| match (&self.cells[used.variable], used.field) {
            (Cell::Scalar(value), _) => Ok(value.clone()),
            (Cell::Record(_, values, HeldRow::Null | HeldRow::Row), Some(field)) => {
                Ok(values[field].clone())
            }
            (Cell::Record(shape, values, held @ HeldRow::Row), None) => {
                row_of(shape, values, *held)
            }
            (Cell::Record(..), None) => Ok(Value::Null),
            (Cell::Record(..), _) => {
                Err(not_assigned(&self.compiled.body.variables[used.variable].name))
            }
        };
        used.iter().map(value).collect()
    }

    /// Runs a compiled statement with the first of these values as its parameters.
    fn run_in_call(
        &self,
        prepared: &mut Prepared,
        transaction: &Transaction,
        values: &[Value],
    ) -> Result<Ran> {
        self.check_volatility(prepared)?;
        let given = values.get(..prepared.parameters.len()).unwrap_or(values);
        let shared = TransactionUse::Shared;
        let done = self.session.run_prepared(prepared, transaction, given, shared)?;
        Ok(Ran {
            count: done.count,
            rows: done.returned,
            columns: prepared.columns.clone(),
            reads: !prepared.columns.is_empty(),
            changes: prepared.work.changes().is_some(),
            keys: prepared.take_keys(),
        })
    }

    /// Refuses what a function that is not volatile may not do.
    fn check_volatility(&self, prepared: &Prepared) -> Result<()> {
        match prepared.work.changes() {
            Some(what) if self.compiled.routine.volatility != Volatility::Volatile => {
                let message = format!("{what} is not allowed in a non-volatile function");
                Err(SqlError::new(SqlState::FeatureNotSupported, message))
            }
            _ => Ok(()),
        }
    }

    /// Runs a statement that was taken from its place.
    fn run_prepared(&self, fragment: &mut PreparedFragment, namespace: usize) -> Result<Ran> {
        let session = self.session;
        if let Some(control) = session.control_of(&mut fragment.statement)? {
            let control = control.clone();
            return self.run_control(&control, &fragment.statement);
        }
        self.place.with(session, |transaction| {
            transaction.begin_statement();
            let mut run = || {
                self.compile(fragment, namespace, transaction)?;
                let parameters = self.parameters(&fragment.used)?;
                let Some(prepared) = fragment.statement.prepared.as_mut() else {
                    return Err(SqlError::internal("not prepared"));
                };
                self.run_in_call(prepared, transaction, &parameters)
            };
            let ran = run();
            transaction.end_statement();
            ran
        })
    }

    /// Runs a statement of the session, such as SET or NOTIFY.
    fn run_control(&self, control: &Control, statement: &PreparedStatement) -> Result<Ran> {
        let none = |count| Ran {
            count,
            rows: Vec::new(),
            columns: Arc::new([]),
            reads: false,
            changes: false,
            keys: None,
        };
        match control {
            Control::Command(command) => {
                let rows = self.session.query_command(command, &CommandCall::of(statement, &[]))?;
                let columns: Arc<[OutputColumn]> = rows.columns().into();
                let rows = rows.collect()?;
                let reads = !columns.is_empty();
                let (count, changes) = (rows.len() as u64, false);
                Ok(Ran { count, rows, columns, reads, changes, keys: None })
            }
            Control::Assign(..) | Control::Set(..) | Control::Transaction(_) => {
                self.session.control(control).map(|()| none(0))
            }
            _ => {
                let message = "unsupported transaction command in PL/pgSQL";
                Err(SqlError::new(SqlState::FeatureNotSupported, message))
            }
        }
    }

    /// Runs a statement of the body.
    pub fn run(&self, fragment: usize) -> Result<Ran> {
        let compiled = &self.compiled;
        let (Some(place), Some(text)) =
            (compiled.fragments.get(fragment), compiled.body.fragments.get(fragment))
        else {
            return Err(SqlError::internal("a statement that is not in the body"));
        };
        self.session.limits.check()?;
        let kept = place.lock().take().filter(|it| self.fits(it));
        let mut prepared = match kept {
            Some(kept) => kept,
            None => Box::new(self.new_fragment(text)?),
        };
        let ran = self.run_prepared(&mut prepared, text.namespace);
        *place.lock() = Some(prepared);
        ran.map_err(SqlError::without_place)
    }

    /// Checks that a statement of the body can be compiled.
    pub fn check(&self, fragment: usize) -> Result<Arc<[OutputColumn]>> {
        let text = &self.compiled.body.fragments[fragment];
        let mut prepared = self.new_fragment(text)?;
        if self.session.control_of(&mut prepared.statement)?.is_some() {
            return Ok(Arc::new([]));
        }
        self.place.with(self.session, |transaction| {
            let prepared = self.compile(&mut prepared, text.namespace, transaction)?;
            Ok(prepared.columns.clone())
        })
    }

    /// Runs the text of EXECUTE with the values of USING.
    pub fn run_text(&self, text: &str, given: &[TypedValue]) -> Result<Ran> {
        let mut statement = PreparedStatement::new(text);
        let types: Vec<Option<DataType>> = given.iter().map(TypedValue::data_type).collect();
        let values: Vec<Value> = given.iter().map(|it| it.value.clone()).collect();
        let values = &values[..];
        statement = statement.with_types(types.into());
        statement.is_of_cursor = self.opens;
        statement.keeps_numbers = !self.opens;
        let session = self.session;
        if let Some(control) = session.control_of(&mut statement)? {
            let control = control.clone();
            return self.run_control(&control, &statement);
        }
        let ran = self.place.with(session, |transaction| {
            transaction.begin_statement();
            let mut run = || {
                let prepared = session.ensure_compiled(&mut statement, transaction)?;
                self.run_in_call(prepared, transaction, values)
            };
            let ran = run();
            transaction.end_statement();
            ran
        });
        ran.map_err(SqlError::without_place)
    }

    /// Evaluates an expression.
    pub fn value(&self, fragment: usize) -> Result<Value> {
        self.typed_value(fragment).map(|it| it.value)
    }

    /// Returns the error of an expression with its text where PostgreSQL names it: if it fails when
    /// it is planned, as one of constants does, or if it is a query.
    #[cold]
    fn in_expression(&self, error: SqlError, fragment: usize) -> SqlError {
        let text = &self.compiled.body.fragments[fragment].text;
        let own = text.strip_prefix("SELECT ").unwrap_or(text);
        let is_query = own.to_ascii_lowercase().contains("select");
        let reads_nothing = || {
            let kept = self.compiled.fragments.get(fragment).map(|place| place.lock());
            let kept = kept.as_ref().and_then(|it| it.as_ref());
            kept.is_some_and(|it| it.statement.parameters().is_empty())
        };
        let is_shown = match error.context() {
            _ if is_query => true,
            Some(_) => false,
            None => !error.code().starts_with("42") && reads_nothing(),
        };
        match is_shown {
            true => error.in_context(format!("SQL expression \"{}\"", own.trim())),
            false => error,
        }
    }

    /// Evaluates an expression, and tells which `reg…` type it has.
    pub fn typed_value(&self, fragment: usize) -> Result<TypedValue> {
        let ran = self.run(fragment).map_err(|error| self.in_expression(error, fragment));
        let Ran { mut rows, columns, .. } = ran?;
        let text = || self.compiled.body.fragments[fragment].text.clone();
        if columns.len() != 1 {
            let message = format!("query \"{}\" returned {} columns", text(), columns.len());
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        if rows.len() > 1 {
            let message = format!("query \"{}\" returned more than one row", text());
            return Err(SqlError::new(SqlState::CardinalityViolation, message));
        }
        if let [column] = &columns[..]
            && column.data_type.record().is_some()
            && column.collation != Derivation::Default
        {
            // The value does not know the collations of its fields.
            let what = "a row of texts under a collation as a value in PL/pgSQL";
            return Err(SqlError::unsupported(what)
                .with_hint("Assign the row by SELECT ... INTO, whose columns are known."));
        }
        let value = rows.pop().and_then(|mut row| row.pop()).unwrap_or(Value::Null);
        Ok(TypedValue::new(value, columns.first().map(|it| it.data_type)))
    }

    /// Evaluates a condition; NULL is not true.
    pub fn holds(&self, fragment: usize) -> Result<bool> {
        match super::variables::assigned(
            self.value(fragment)?,
            DataType::Boolean,
            &self.session.clock,
        )? {
            Value::Boolean(value) => Ok(value),
            _ => Ok(false),
        }
    }
}
