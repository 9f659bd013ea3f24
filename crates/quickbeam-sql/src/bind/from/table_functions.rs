//! Functions in FROM.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr, ObjectName, TableAlias};

use super::from_clause::lateral_scope;
use super::json_records::DefinedColumns;
use super::values::{call_of, composite_of, is_unnest};
use crate::bind::query::implied_names::implied_name;
use crate::bind::types::undefined::no_function;
use crate::bind::{
    Binder, From, FunctionCall, OutputColumn, RowOf, Scope, Source, TableFunction,
    TableFunctionKind, Typed, fold, function_name, types,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{EXPANSION, Expr, JsonRecords, RowFunction, UNNEST_WORDS};
use crate::parse::{is_rows_from, listed_columns, row_call, value_in_from};
use crate::types::{CastContext, DataType, EncodedKind, cast_context};

/// A call in FROM as it is written.
struct WrittenCall<'a> {
    name: SmolStr,
    position: u32,
    form: CallForm<'a>,
    /// The column definition list after the call in ROWS FROM.
    columns: Option<DefinedColumns>,
}

/// What a call in FROM is bound as.
enum CallForm<'a> {
    /// A function that may return rows, of these arguments.
    Rows(Vec<&'a Ast>),
    /// An expression: its value is the only row.
    Value(Box<Ast>),
}

impl Binder<'_> {
    /// Binds a function in FROM. Its arguments may read the items to its left.
    pub(in crate::bind) fn table_function(
        &mut self,
        name: &ObjectName,
        args: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        if is_rows_from(name) {
            return self.rows_from(args, ordinality, alias, scope);
        }
        if let Some(value) = value_in_from(name, args) {
            let (name, position) = (implied_name(value), self.position(value));
            let form = CallForm::Value(Box::new(value.clone()));
            let call = WrittenCall { name, position, form, columns: None };
            return self.rows_of_calls(vec![call], ordinality, alias, scope);
        }
        let position = self.position(name);
        let folded = function_name(name).map_err(|error| error.at(position as usize))?;
        if self.returns_value(&folded, args.len()) {
            let form = CallForm::Value(Box::new(call_of(name, args)));
            let call = WrittenCall { name: folded, position, form, columns: None };
            return self.rows_of_calls(vec![call], ordinality, alias, scope);
        }
        let ordered = self.in_order(&folded, args, position)?;
        let args = ordered.as_deref().unwrap_or(args);
        let (spread, folded) = self.spread(folded, args)?;
        let args = spread.as_deref().unwrap_or(args);
        let mut arguments = Vec::with_capacity(args.len());
        for argument in args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                return Err(SqlError::unsupported("this form of an argument"));
            };
            arguments.push(expr);
        }
        self.rows_of(folded, position, &arguments, ordinality, alias, scope)
    }

    /// Binds ROWS FROM: calls whose rows stand side by side.
    fn rows_from(
        &mut self,
        args: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let mut calls: Vec<WrittenCall<'_>> = Vec::with_capacity(args.len());
        for argument in args {
            if let Some(list) = listed_columns(argument) {
                if let Some(call) = calls.last_mut() {
                    call.columns = self.defined_columns(Some(&list?))?;
                }
                continue;
            }
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(written)) = argument else {
                return Err(SqlError::unsupported("this form of ROWS FROM"));
            };
            let position = self.position(written);
            let (name, form) = match row_call(argument) {
                Some((name, arguments)) => {
                    let folded =
                        function_name(name).map_err(|error| error.at(position as usize))?;
                    let is_value = self.returns_value(&folded, arguments.len());
                    (folded, if is_value { None } else { Some(CallForm::Rows(arguments)) })
                }
                None => (implied_name(written), None),
            };
            let form = form.unwrap_or_else(|| CallForm::Value(Box::new(written.clone())));
            calls.push(WrittenCall { name, position, form, columns: None });
        }
        self.rows_of_calls(calls, ordinality, alias, scope)
    }

    /// Binds a function that returns rows.
    pub(in crate::bind) fn rows_of(
        &mut self,
        folded: SmolStr,
        position: u32,
        args: &[&Ast],
        ordinality: bool,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let form = CallForm::Rows(args.to_vec());
        let call = WrittenCall { name: folded, position, form, columns: None };
        self.rows_of_calls(vec![call], ordinality, alias, scope)
    }

    /// Binds calls of functions that return rows.
    fn rows_of_calls(
        &mut self,
        calls: Vec<WrittenCall<'_>>,
        ordinality: bool,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let around = Scope { outer: lateral_scope(scope), ..Scope::default() };
        let folded = calls.first().map(|call| call.name.clone()).unwrap_or_default();
        let mut defined = self.defined_columns(alias)?;
        let count = calls.len();
        let (mut bound, mut columns) = (Vec::with_capacity(count), Vec::new());
        let mut subqueries = Vec::new();
        for WrittenCall { name, position, form, columns: mut listed } in calls {
            let of_call = if listed.is_some() { &mut listed } else { &mut defined };
            let ((call, own), level) = self.level(|binder| {
                binder.in_function_of_from();
                match form {
                    CallForm::Rows(arguments) => {
                        binder.rows_call(&name, &arguments, position, of_call, &around)
                    }
                    CallForm::Value(value) => {
                        let value = binder.expression(&value, &around)?.without_vector();
                        binder.row_of_value(&name, value, of_call.as_ref(), position)
                    }
                }
            })?;
            if listed.is_some() {
                return Err(self.no_definition_list(Some(&call)).at(position as usize));
            }
            let is_only_value = call.kind == TableFunctionKind::Value && count == 1 && !ordinality;
            if !level.subqueries.is_empty() && !is_only_value {
                return Err(SqlError::unsupported("a subquery as argument of a function in FROM"));
            }
            subqueries = level.subqueries;
            bound.push(call);
            columns.extend(own);
        }
        if defined.is_some() {
            let place = alias.and_then(|alias| alias.columns.first());
            let place = place.map_or(0, |it| self.place_of(&it.name));
            return Err(self.no_definition_list(bound.first()).at(place));
        }
        let slot = self.add_slot(folded.clone(), Source::Computed);
        let function = TableFunction { calls: bound, ordinality, slot };
        // The alias of a function names its only column too, unless the column has its own name.
        if let ([only], Some(alias)) = (&mut columns[..], alias)
            && only.name == folded
        {
            only.name = fold(&alias.name);
        }
        if ordinality {
            columns.push(OutputColumn::new("ordinality", DataType::BigInt));
        }
        let row_type = match (&function.calls[..], &columns[..]) {
            ([only], [column]) if is_unnest(only) => composite_of(column),
            _ => None,
        };
        let query = self.query_of_calls(function, columns, subqueries)?;
        let is_value = !ordinality && count == 1 && query.columns.len() == 1;
        let from = self.derived(Arc::new(query), alias, Some(folded), scope)?;
        if let Some(relation) = scope.relations.last_mut() {
            match row_type {
                Some(row_type) => relation.row = RowOf::Composite(row_type),
                None if is_value => relation.row = RowOf::Value,
                None => {}
            }
        }
        Ok(from)
    }

    /// Binds a call of a function that may return rows.
    fn rows_call(
        &mut self,
        name: &SmolStr,
        written: &[&Ast],
        position: u32,
        defined: &mut Option<DefinedColumns>,
        scope: &Scope,
    ) -> Result<(FunctionCall, Vec<OutputColumn>)> {
        let mut arguments = Vec::with_capacity(written.len());
        for argument in written {
            arguments.push(self.expression(argument, scope)?.without_vector());
        }
        match JsonRecords::named(name) {
            Some(function) => self.json_records(function, arguments, defined.take(), position),
            None => self.row_call(name, arguments, position, defined),
        }
    }

    /// Binds the arguments of a function that returns all its rows at once.
    pub(in crate::bind) fn row_function(
        &mut self,
        function: &'static RowFunction,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<(TableFunctionKind, Vec<Expr>, Vec<OutputColumn>)> {
        let function = match &arguments[..] {
            [only] if function.name == UNNEST_WORDS.name => match only.data_type {
                Some(known) if known.encoded() == Some(EncodedKind::TsVector) => &UNNEST_WORDS,
                _ => function,
            },
            _ => function,
        };
        let name = function.name;
        let wrong = |state: SqlState, message: String| {
            Err(SqlError::new(state, message).at(position as usize))
        };
        let types: Vec<_> = arguments.iter().map(|one| one.data_type).collect();
        let missing = || no_function(name, types.iter().copied(), position);
        let mut columns: Vec<OutputColumn> = Vec::new();
        let column = |name: &str, data_type| OutputColumn::new(name, data_type);
        let mut exprs = Vec::with_capacity(arguments.len());
        let mut element = None;
        let is_unnest = function.columns.is_empty();
        let is_expansion = name == EXPANSION.name;
        if arguments.is_empty() && (is_unnest || !function.arguments.is_empty()) {
            return Err(missing());
        }
        for (at, argument) in arguments.into_iter().enumerate() {
            let declared = function.arguments.get(at).copied().flatten();
            match (declared, argument.data_type) {
                (Some(to), from) => {
                    let fits = from
                        .is_none_or(|from| cast_context(from, to) == Some(CastContext::Implicit));
                    if !fits {
                        return Err(missing());
                    }
                    exprs.push(self.coerce(argument, to)?);
                }
                (None, Some(DataType::Array(own))) => {
                    element = Some(own.data_type());
                    if is_unnest {
                        columns.push(column(name, own.data_type()));
                    }
                    exprs.push(argument.expr);
                }
                (None, Some(DataType::Encoded(own))) if is_unnest && own.kind().is_multirange() => {
                    columns.push(column(name, own.kind().range().data_type()));
                    exprs.push(argument.expr);
                }
                (None, None) if is_unnest => {
                    let message = format!("function {name}(unknown) is not unique");
                    return wrong(SqlState::AmbiguousFunction, message);
                }
                (None, None) => {
                    let message =
                        "could not determine polymorphic type because input has type unknown";
                    return wrong(SqlState::DatatypeMismatch, message.into());
                }
                (None, Some(_)) => return Err(missing()),
            }
        }
        for (name, data_type) in function.columns {
            // The elements of an array have the type of that array's elements.
            let own = if is_expansion && *name == "x" { element } else { None };
            columns.push(column(name, own.unwrap_or(*data_type)));
        }
        Ok((TableFunctionKind::Rows(function), exprs, columns))
    }

    /// Binds the arguments of `generate_series`.
    pub(in crate::bind) fn series(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<(TableFunctionKind, Vec<Expr>, DataType)> {
        if let Some(moment) = series_of_moments(name, &arguments) {
            let mut exprs = Vec::with_capacity(arguments.len());
            for (argument, to) in arguments.into_iter().zip([moment, moment, DataType::Interval]) {
                exprs.push(self.coerce(argument, to)?);
            }
            return Ok((TableFunctionKind::GenerateSeries(moment), exprs, moment));
        }
        let known: Vec<DataType> = arguments.iter().filter_map(|one| one.data_type).collect();
        let missing = || no_function(name, arguments.iter().map(|one| one.data_type), position);
        let is_series = name == "generate_series" && (2..=3).contains(&arguments.len());
        if is_series && known.is_empty() {
            let message = "function generate_series is not unique for arguments without types";
            let error = SqlError::new(SqlState::AmbiguousFunction, message);
            return Err(error.at(position as usize));
        }
        let common = known.iter().copied().map(Some);
        let common = common.reduce(|a, b| types::common_number(a?, b?)).flatten();
        let data_type = match common.map(DataType::unconstrained) {
            Some(DataType::SmallInt | DataType::Integer) => DataType::Integer,
            Some(known @ (DataType::BigInt | DataType::Numeric(_))) => known,
            _ => return Err(missing()),
        };
        if !is_series {
            return Err(missing());
        }
        let mut exprs = Vec::with_capacity(arguments.len());
        for argument in arguments {
            exprs.push(self.coerce(argument, data_type)?);
        }
        Ok((TableFunctionKind::GenerateSeries(data_type), exprs, data_type))
    }
}

/// Returns the type of a series of dates or timestamps with an interval as its step. Dates alone
/// become timestamps with a time zone, the preferred type among those that they convert to.
fn series_of_moments(name: &str, arguments: &[Typed]) -> Option<DataType> {
    let [first, last, step] = arguments else { return None };
    let plain = |argument: &Typed| argument.data_type.map(DataType::unconstrained);
    let bounds = [plain(first), plain(last)];
    let known: Vec<DataType> = bounds.into_iter().flatten().collect();
    let is_moment = |data_type: &DataType| {
        matches!(data_type, DataType::Date | DataType::Timestamp | DataType::TimestampTz)
    };
    let has_step = match plain(step) {
        None => !known.is_empty(),
        Some(data_type) => data_type == DataType::Interval,
    };
    if name != "generate_series" || !has_step || !known.iter().all(is_moment) {
        return None;
    }
    let is_local = known.contains(&DataType::Timestamp) && !known.contains(&DataType::TimestampTz);
    Some(if is_local { DataType::Timestamp } else { DataType::TimestampTz })
}
