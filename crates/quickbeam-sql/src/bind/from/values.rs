//! Values in FROM: calls of functions that return one value, and the special syntax of calls. Each
//! is one row, of one column or of the fields of the value.

use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};
use sqlparser::ast::{self, FunctionArg, FunctionArguments, ObjectName};

use super::json_records::DefinedColumns;
use crate::bind::expression::argument_forms::positional;
use crate::bind::query::row_calls::{RowFunctions, RowsRefused};
use crate::bind::{
    Binder, Body, From, FunctionCall, OutputColumn, Query, Select, Source, Subquery, TableFunction,
    TableFunctionKind, Typed,
};
use crate::catalog::RoutineResult;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, JsonRecords, VARIADIC_PREFIX};
use crate::types::{DataType, EncodedType};

/// Returns a call in FROM as an expression.
pub(super) fn call_of(name: &ObjectName, args: &[FunctionArg]) -> ast::Expr {
    let list = ast::FunctionArgumentList {
        duplicate_treatment: None,
        args: args.to_vec(),
        clauses: Vec::new(),
    };
    ast::Expr::Function(ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

impl Binder<'_> {
    /// Returns whether a call in FROM can only mean a function that returns one value, or none.
    pub(super) fn returns_value(&self, name: &str, count: usize) -> bool {
        name != "generate_series"
            && !Self::is_row_function(name, count)
            && JsonRecords::named(name).is_none()
            && self.routines_named(name).is_empty()
    }

    /// Returns the arguments of a call in order, if some have names or the last one is VARIADIC.
    /// Returns the name for the call, too.
    pub(super) fn spread(
        &self,
        name: SmolStr,
        args: &[FunctionArg],
    ) -> Result<(Option<Vec<FunctionArg>>, SmolStr)> {
        let routines = self.routines_named(&name);
        let is_variadic = routines.iter().any(|it| it.is_variadic());
        if !is_variadic && !routines.is_empty() {
            return Ok((None, name));
        }
        let plain = positional(&name, args, is_variadic)?;
        let Some(plain) = plain else { return Ok((None, name)) };
        let spread =
            if plain.is_spread { format_smolstr!("{VARIADIC_PREFIX}{name}") } else { name };
        Ok((Some(plain.arguments), spread))
    }

    /// Returns the error for a column definition list after a call.
    #[cold]
    pub(super) fn no_definition_list(&self, call: Option<&FunctionCall>) -> SqlError {
        let routine = call.and_then(|call| match call.kind {
            TableFunctionKind::Routine(routine, _) => self.names.snapshot()?.routine(routine.id),
            _ => None,
        });
        let message = match routine.map(|it| &it.result) {
            Some(RoutineResult::Row(_)) => {
                "a column definition list is redundant for a function returning a named composite \
                 type"
            }
            Some(RoutineResult::Columns) => {
                "a column definition list is redundant for a function with OUT parameters"
            }
            _ => "a column definition list is only allowed for functions returning \"record\"",
        };
        SqlError::new(SqlState::SyntaxError, message)
    }

    /// Notes that the level is that of a function in FROM, for errors.
    pub(super) fn in_function_of_from(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.clause = "functions in FROM";
            level.row_functions = RowFunctions::Refused(RowsRefused::From);
        }
    }

    /// Returns the call whose only row has a value, and the column of that value.
    pub(in crate::bind) fn row_of_value(
        &mut self,
        name: &str,
        value: Typed,
        defined: Option<&DefinedColumns>,
        position: u32,
    ) -> Result<(FunctionCall, Vec<OutputColumn>)> {
        let collation = self.collation_of(&value)?.as_column();
        let (expr, data_type) = match value.data_type {
            Some(known) => (value.expr, known),
            None => (self.coerce(value, DataType::Text)?, DataType::Text),
        };
        if data_type.record().is_some() && data_type.row_fields().is_empty()
            || data_type.record().is_some_and(|it| it.row_type_name().is_none())
        {
            let message = "a column definition list is required for functions returning \"record\"";
            let error = match defined {
                None => SqlError::new(SqlState::SyntaxError, message),
                Some(_) => SqlError::unsupported("a column definition list for this function"),
            };
            return Err(error.at(position as usize));
        }
        let columns = vec![OutputColumn { name: name.into(), data_type, collation }];
        let kind = TableFunctionKind::Value;
        Ok((FunctionCall { kind, arguments: vec![expr], width: 1 }, columns))
    }

    /// Returns the query for the rows of calls in FROM. `subqueries` are those of the only call.
    pub(super) fn query_of_calls(
        &mut self,
        function: TableFunction,
        columns: Vec<OutputColumn>,
        subqueries: Vec<Subquery>,
    ) -> Result<Query> {
        let is_value = |call: &FunctionCall| call.kind == TableFunctionKind::Value;
        let is_row = columns.iter().any(|it| it.data_type.record().is_some())
            && function.calls.iter().any(is_value);
        let are_elements = function.calls.iter().all(is_unnest);
        let body = match &function.calls[..] {
            [only] if is_value(only) && !function.ordinality => {
                let is_constant = only.arguments.iter().all(|it| it.as_constant().is_some());
                match is_constant || !subqueries.is_empty() {
                    true => Body::Select(Box::new(Select::plain(
                        None,
                        only.arguments.clone(),
                        subqueries,
                    ))),
                    false => Body::Function(function),
                }
            }
            _ if is_row => {
                let what = "a value of several columns beside another function or WITH ORDINALITY";
                return Err(SqlError::unsupported(what));
            }
            _ => Body::Function(function),
        };
        let has_rows =
            is_row || are_elements && columns.iter().any(|it| composite_of(it).is_some());
        let query = Query::plain(body, columns);
        Ok(if has_rows { self.fields_of_rows(query) } else { query })
    }

    /// Returns the query for the fields of the rows in a query, and for its other columns.
    fn fields_of_rows(&mut self, rows: Query) -> Query {
        let Some(name) = rows.columns.first().map(|column| column.name.clone()) else {
            return rows;
        };
        let slot = self.add_slot(name, Source::Query(rows.columns.clone().into()));
        let (mut columns, mut outputs) = (Vec::new(), Vec::new());
        for (at, column) in rows.columns.iter().enumerate() {
            let value = Typed::new(Expr::column(slot, at), column.data_type, 0);
            let Some(fields) = self.fields_of(&value) else {
                columns.push(column.clone());
                outputs.push(value.expr);
                continue;
            };
            for (name, field) in fields {
                let data_type = field.data_type.unwrap_or(DataType::Text);
                columns.push(OutputColumn { name, data_type, collation: column.collation });
                outputs.push(field.expr);
            }
        }
        let from = From::query(slot, Arc::new(rows));
        let select = Select::plain(Some(from), outputs, Vec::new());
        Query::plain(Body::Select(Box::new(select)), columns)
    }
}

/// Returns whether a call returns the elements of arrays.
pub(super) fn is_unnest(call: &FunctionCall) -> bool {
    matches!(call.kind, TableFunctionKind::Rows(function) if function.name == "unnest")
}

/// Returns the type of the values of a column, if they are rows of a type with a name.
pub(super) fn composite_of(column: &OutputColumn) -> Option<EncodedType> {
    let record = column.data_type.record()?;
    record.row_type().filter(|known| known.name.is_some()).map(|_| record)
}
