//! PREPARE, and what EXECUTE gives the parameters.

use std::ops::Range;
use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast;

use crate::bind::Binder;
use crate::catalog::{DeclaredType, DomainUse};
use crate::compile::{CompileContext, Prepared, Program};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::ShownStatement;
use crate::parse::StatementOfExecute;
use crate::session::Session;
use crate::session::executor::ResultRows;
use crate::session::named::{Named, duplicate_statement, no_statement};
use crate::session::prepared_statement::{PreparedStatement, known_types};
use crate::session::statement_cache::{CachedStatement, Lease};
use crate::types::{DataType, ElementType, Value, current_moment};

/// Returns the types of parameters.
fn parameter_types(
    look: &CompileContext<'_>,
    types: &[ast::DataType],
) -> Result<Vec<DeclaredType>> {
    let binder = Binder::new(look, "");
    types.iter().map(|written| binder.declared_type(written)).collect()
}

impl Session {
    pub(super) fn prepare_named(
        &self,
        name: &SmolStr,
        types: Option<&Range<usize>>,
        statement: &Range<usize>,
        text: &str,
    ) -> Result<()> {
        if self.named.borrow().contains_key(name) {
            return Err(duplicate_statement(name));
        }
        let declared = match types.and_then(|range| text.get(range.clone())) {
            None => Vec::new(),
            Some(types) => {
                let types = crate::parse::data_types(types)?;
                self.read_catalog(|look| parameter_types(look, &types))?
            }
        };
        let types: Arc<[Option<DataType>]> = declared.iter().map(|it| Some(it.data_type)).collect();
        let domains = declared.iter().enumerate().filter_map(|(at, it)| Some((at, it.domain?)));
        let inner = text.get(statement.clone()).unwrap_or_default();
        let mut prepared = Box::new(PreparedStatement::new(inner).with_types(types.clone()));
        self.prepare(&mut prepared).map_err(|error| error.shifted(statement.start))?;
        if matches!(prepared.control, Some(Some(_))) {
            return Err(SqlError::new(SqlState::SyntaxError, "syntax error: a command in PREPARE"));
        }
        prepared.keep_columns();
        let shown = ShownStatement {
            statement: text.into(),
            prepared: current_moment(),
            parameters: prepared.parameters().into(),
            domains: domains.collect(),
            from_sql: true,
        };
        let text = prepared.text.clone();
        let named = Named { text, shown, types, statement: Some(prepared) };
        self.named.borrow_mut().insert(name.clone(), named);
        Ok(())
    }

    /// CREATE TABLE … AS EXECUTE: makes a table of the rows of the prepared query with its
    /// arguments, and returns their number.
    pub(super) fn create_of_execute(&self, table: &StatementOfExecute, text: &str) -> Result<u64> {
        let (mut made, values) = self.statement_of_execute(table, text)?;
        let mut cached = self.named_statement(&table.name)?;
        let is_query = |prepared: &Prepared| matches!(prepared.work, Program::Query(_));
        if !cached.statement()?.prepared.as_ref().is_some_and(is_query) {
            let message = "prepared statement is not a SELECT";
            return Err(SqlError::new(SqlState::WrongObjectType, message));
        }
        drop(cached);
        let done = self.execute(&mut made, &values, ResultRows::Refused);
        done.map_err(SqlError::without_place)
    }

    /// Returns the statement that has a prepared one in the place of EXECUTE, and its parameters.
    pub(super) fn statement_of_execute(
        &self,
        written: &StatementOfExecute,
        text: &str,
    ) -> Result<(PreparedStatement, Vec<Value>)> {
        let StatementOfExecute { head, name, arguments, tail } = written;
        let mut values = self.argument_values(arguments.as_ref(), text)?;
        let mut cached = self.named_statement(name)?;
        let statement = cached.statement()?;
        self.check_arguments(name, statement, &mut values)?;
        let part = |place: &Range<usize>| text.get(place.clone()).unwrap_or_default();
        let made = format!("{}{}{}", part(head), statement.text.trim_end(), {
            let tail = part(tail).trim();
            if tail.is_empty() { String::new() } else { format!(" {tail}") }
        });
        let types = known_types(statement.parameters());
        Ok((PreparedStatement::new(&made).with_types(types), values))
    }

    /// Evaluates the arguments of EXECUTE.
    pub(super) fn argument_values(
        &self,
        arguments: Option<&Range<usize>>,
        text: &str,
    ) -> Result<Vec<Value>> {
        let Some(arguments) = arguments.and_then(|range| text.get(range.clone())) else {
            return Ok(Vec::new());
        };
        let statement = Box::new(PreparedStatement::new(&format!("SELECT {arguments}")));
        let rows = self.query(Lease::Owned(statement), &[])?.collect()?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// Refuses another number of arguments than the statement has parameters, and values that the
    /// domains of parameters do not accept.
    pub(super) fn check_arguments(
        &self,
        name: &str,
        statement: &mut PreparedStatement,
        values: &mut [Value],
    ) -> Result<()> {
        let given = values.len();
        if statement.prepared.is_none() {
            self.prepare(statement)?;
        }
        let wanted = statement.parameters().len();
        if wanted == given {
            self.read_object_names(statement.parameters(), values)?;
            return self.check_parameter_domains(name, values);
        }
        let message = format!("wrong number of parameters for prepared statement \"{name}\"");
        Err(SqlError::new(SqlState::SyntaxError, message)
            .with_detail(format!("Expected {wanted} parameters but got {given}.")))
    }

    /// Reads the texts that are given to parameters of types such as `regclass` as names.
    fn read_object_names(&self, types: &[DataType], values: &mut [Value]) -> Result<()> {
        for (value, wanted) in values.iter_mut().zip(types) {
            if wanted.reference().is_none() || !matches!(value, Value::Text(_)) {
                continue;
            }
            let text: Arc<[Option<DataType>]> = Arc::from([Some(DataType::Text)]);
            let cast = format!("SELECT CAST(CAST($1 AS text) AS {wanted})::oid");
            let row = self.row_of_casts(&cast, text, std::slice::from_ref(value))?;
            *value = row.into_iter().next().unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the row of a query of casts, whose errors have no place in the session's statement.
    fn row_of_casts(
        &self,
        query: &str,
        types: Arc<[Option<DataType>]>,
        values: &[Value],
    ) -> Result<Vec<Value>> {
        let statement = Box::new(PreparedStatement::new(query).with_types(types));
        let rows = self.query(Lease::Owned(statement), values)?.collect();
        Ok(rows.map_err(SqlError::without_place)?.into_iter().next().unwrap_or_default())
    }

    /// Casts the values of parameters to their domains.
    pub(super) fn check_parameter_domains(&self, name: &str, values: &mut [Value]) -> Result<()> {
        let domains = self.named.borrow().get(name).map(|named| named.shown.domains.clone());
        let domains = domains.filter(|it| !it.is_empty());
        let Some(domains) = domains else { return Ok(()) };
        let (types, text) = self.read_catalog(|look| {
            let cast = |((_, used), number): (&(usize, DomainUse), usize)| {
                format!("CAST(${number} AS {})", look.snapshot.domain_type(*used))
            };
            let casts: Vec<String> = domains.iter().zip(1..).map(cast).collect();
            let base = |(_, used): &(usize, DomainUse)| {
                let base = look.snapshot.domain(used.id())?.data_type;
                match used {
                    DomainUse::Value(_) => Some(base),
                    DomainUse::Elements(_) => ElementType::new(base).map(DataType::Array),
                }
            };
            let types: Arc<[Option<DataType>]> = domains.iter().map(base).collect();
            Ok((types, format!("SELECT {}", casts.join(", "))))
        })?;
        let given: Vec<Value> =
            domains.iter().filter_map(|(at, _)| values.get(*at).cloned()).collect();
        let row = self.row_of_casts(&text, types, &given)?;
        for ((at, _), value) in domains.iter().zip(row) {
            values[*at] = value;
        }
        Ok(())
    }

    pub(super) fn named_statement(&self, name: &SmolStr) -> Result<CachedStatement<'_>> {
        let mut named = self.named.borrow_mut();
        let found = named.get_mut(name).ok_or_else(|| no_statement(name))?;
        let fresh = || {
            let statement = PreparedStatement::new("").with_types(found.types.clone());
            Box::new(PreparedStatement { text: found.text.clone(), ..statement })
        };
        let statement = found.statement.take().unwrap_or_else(fresh);
        Ok(CachedStatement::of_named(&self.named, name.clone(), statement))
    }
}
