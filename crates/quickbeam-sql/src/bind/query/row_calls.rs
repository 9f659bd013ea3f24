//! Functions that return rows in a select list, as in `SELECT unnest(tags) FROM posts`.
//!
//! A row of FROM is repeated for each row of the functions. So the calls of a select list become
//! one item of FROM, which reads the other items and is joined to them. Several calls run side by
//! side: NULLs fill the ones that return fewer rows.

use smol_str::SmolStr;
use sqlparser::ast::{FunctionArg, FunctionArgExpr};

use crate::bind::from::json_records::DefinedColumns;
use crate::bind::routines::row_result;
use crate::bind::{
    Binder, Body, From, FunctionCall, JoinKind, OutputColumn, Query, Scope, Select, Source,
    TableFunction, TableFunctionKind, Typed,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, JsonRecords, row_function};
use crate::types::encoded::row_types::RowType;
use crate::types::{DataType, EncodedType};

/// Whether functions that return rows are allowed where the binder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum RowFunctions {
    Allowed,
    /// The place that does not allow them, for the error.
    Refused(&'static str),
}

impl Default for RowFunctions {
    fn default() -> RowFunctions {
        RowFunctions::Refused("here")
    }
}

/// The calls of a select list.
#[derive(Debug, Default)]
pub(in crate::bind) struct RowCalls {
    calls: Vec<FunctionCall>,
    columns: Vec<OutputColumn>,
    /// The slot of their rows, once there is a call.
    slot: Option<usize>,
    /// The position of the first call.
    position: u32,
    /// The types of the arguments of each call, as far as they are known.
    types: Vec<Vec<Option<DataType>>>,
}

impl RowCalls {
    /// Returns the arguments of all calls.
    pub(in crate::bind) fn arguments_mut(&mut self) -> impl Iterator<Item = (&mut Expr, u32)> {
        let position = self.position;
        self.calls.iter_mut().flat_map(|it| &mut it.arguments).map(move |it| (it, position))
    }
}

/// Returns the type of an argument that was written as one of these values.
fn type_of_argument(argument: &Expr, written: &[(Expr, Option<DataType>)]) -> Option<DataType> {
    match argument {
        Expr::Constant(value) => value.data_type(),
        Expr::Cast(_, to, _) => Some(*to),
        other => written.iter().find(|(expr, _)| expr == other)?.1,
    }
}

impl Binder<'_> {
    /// Returns whether a call is one of a function that returns rows.
    pub(in crate::bind) fn is_row_function(name: &str, count: usize) -> bool {
        let is_series = name == "generate_series" && (2..=3).contains(&count);
        is_series || row_function(name, count).is_some()
    }

    /// Runs `work` where functions that return rows are refused, or allowed.
    pub(in crate::bind) fn with_row_functions<T>(
        &mut self,
        allowed: RowFunctions,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let Some(level) = self.levels.last_mut() else { return work(self) };
        let before = std::mem::replace(&mut level.row_functions, allowed);
        let result = work(self);
        if let Some(level) = self.levels.last_mut() {
            level.row_functions = before;
        }
        result
    }

    /// Binds a call of a function that returns rows in an expression.
    pub(in crate::bind) fn listed_row_function(
        &mut self,
        name: &str,
        list: &[FunctionArg],
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        let level = self.levels.last();
        if let RowFunctions::Refused(place) =
            level.map_or_else(Default::default, |it| it.row_functions)
        {
            let message = format!("set-returning functions are not allowed {place}");
            let error = SqlError::new(SqlState::FeatureNotSupported, message);
            return Err(error.at(position as usize).with_hint("Call the function in FROM."));
        }
        let subqueries = level.map_or(0, |level| level.subqueries.len());
        let nested = RowFunctions::Refused("in the arguments of one another");
        let arguments = self.with_row_functions(nested, |binder| {
            let mut arguments = Vec::with_capacity(list.len());
            for argument in list {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                    return Err(SqlError::unsupported("this form of an argument"));
                };
                arguments.push(binder.expression(expr, scope)?.without_vector());
            }
            Ok(arguments)
        })?;
        if self.levels.last().is_some_and(|level| level.subqueries.len() > subqueries) {
            let what = "a subquery as argument of a set-returning function";
            return Err(SqlError::unsupported(what).at(position as usize));
        }
        let written: Vec<(Expr, Option<DataType>)> =
            arguments.iter().map(|it| (it.expr.clone(), it.data_type)).collect();
        let (call, columns) = match JsonRecords::named(name) {
            Some(function) => self.json_records(function, arguments, None, position)?,
            None => self.row_call(name, arguments, position, &mut None)?,
        };
        let row_type = self.row_type_of_call(&call, &columns)?;
        let known = self.levels.last().and_then(|level| level.row_calls.slot);
        let slot = known.unwrap_or_else(|| self.add_slot(name.into(), Source::Computed));
        let Some(level) = self.levels.last_mut() else {
            return Err(SqlError::internal("a select list without a query"));
        };
        let calls = &mut level.row_calls;
        if calls.slot.is_none() {
            (calls.slot, calls.position) = (Some(slot), position);
        }
        let types = call.arguments.iter().map(|it| type_of_argument(it, &written));
        calls.types.push(types.collect());
        calls.calls.push(call);
        let first = calls.columns.len();
        let value = |place: usize| Expr::column(slot, first + place);
        let made = match (row_type, &columns[..]) {
            (None, [column]) => Typed::new(value(0), column.data_type, position),
            (row_type, columns) => {
                let fields = columns.iter().map(|it| (it.name.clone(), it.data_type));
                let fields: Vec<(SmolStr, DataType)> = fields.collect();
                let row_type = row_type
                    .unwrap_or_else(|| RowType { name: None, fields: fields.clone() }.intern());
                let values = (0..columns.len()).map(value).collect();
                Typed::row(row_type, &fields, values, position)
            }
        };
        calls.columns.extend(columns);
        Ok(made)
    }

    /// Returns the type of the rows of a call, if it returns rows and not values.
    fn row_type_of_call(
        &self,
        call: &FunctionCall,
        columns: &[OutputColumn],
    ) -> Result<Option<EncodedType>> {
        let snapshot = self.names.snapshot();
        match (call.kind, snapshot) {
            (TableFunctionKind::Routine(routine, _), Some(snapshot)) => {
                let routine = snapshot.routine(routine.id);
                Ok(routine.map(|it| row_result(it, snapshot)).transpose()?.flatten())
            }
            (TableFunctionKind::JsonRecords(_), _) => {
                let number = call.arguments.last().and_then(Expr::as_constant);
                let number = number.and_then(|it| it.as_ref().as_i64()).unwrap_or_default();
                Ok(Some(EncodedType::of_rows(number as u32)).filter(|_| !columns.is_empty()))
            }
            _ => Ok(None),
        }
    }

    /// Joins the calls of the select list to FROM. `keys` are those of GROUP BY. Returns the calls
    /// if their rows come after grouping, see [`rows_of_groups`](Self::rows_of_groups).
    pub(in crate::bind) fn join_row_calls(
        &mut self,
        from: Option<From>,
        keys: Option<&[Expr]>,
    ) -> Result<(Option<From>, Option<RowCalls>)> {
        let Some(level) = self.levels.last_mut() else { return Ok((from, None)) };
        let is_later = level.group_slot.is_some() || level.windows.is_some();
        let row_calls = std::mem::take(&mut level.row_calls);
        let RowCalls { columns, slot, position, .. } = &row_calls;
        let (position, Some(slot)) = (*position, *slot) else { return Ok((from, None)) };
        // Calls in keys of GROUP BY return their rows before these are grouped.
        let is_key = |column: usize| {
            let reads_call = |key: &Expr| {
                let mut found = false;
                key.each_column(&mut |at| found |= at.slot == slot && at.column == column);
                found
            };
            keys.unwrap_or_default().iter().any(reads_call)
        };
        let in_keys = (0..columns.len()).filter(|column| is_key(*column)).count();
        if is_later && in_keys == 0 {
            return Ok((from, Some(row_calls)));
        }
        if is_later && in_keys < columns.len() {
            let what = "set-returning functions of which some are keys of GROUP BY";
            return Err(SqlError::unsupported(what).at(position as usize));
        }
        Ok((Some(self.with_rows_of(from, row_calls, slot)), None))
    }

    /// Joins the rows of calls to FROM.
    fn with_rows_of(&mut self, from: Option<From>, row_calls: RowCalls, slot: usize) -> From {
        let RowCalls { calls, columns, .. } = row_calls;
        if let Some(shape) = self.slots.get_mut(slot) {
            shape.source = Source::Query(columns.clone().into());
        }
        let inner = self.add_slot("functions".into(), Source::Computed);
        let query = Query {
            with: Vec::new(),
            body: Body::Function(TableFunction { calls, ordinality: false, slot: inner }),
            columns,
            order: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
        };
        let rows = From::query(slot, query.into());
        match from {
            None => rows,
            Some(left) => From::Join {
                kind: JoinKind::Inner,
                left: Box::new(left),
                right: Box::new(rows),
                on: Vec::new(),
            },
        }
    }

    /// Makes the calls of a select list return their rows for each row of a query with GROUP BY,
    /// aggregates or window functions: the query becomes an item of FROM of another one.
    pub(in crate::bind) fn rows_of_groups(
        &mut self,
        mut query: Query,
        mut row_calls: RowCalls,
        first_slot: usize,
    ) -> Result<Query> {
        let position = row_calls.position as usize;
        let refuse = || {
            let what = "this use of a set-returning function with GROUP BY, aggregates or window \
                        functions";
            SqlError::unsupported(what).at(position)
        };
        let (Body::Select(select), Some(slot)) = (&mut query.body, row_calls.slot) else {
            return Err(refuse());
        };
        let reads = |expr: &Expr, wanted: &dyn Fn(usize) -> bool| {
            let mut reads = false;
            expr.each_column(&mut |at| reads |= wanted(at.slot));
            reads
        };
        let is_own = |at: usize| at >= first_slot && at != slot;
        let of_groups = self.add_slot("groups".into(), Source::Computed);
        let mut inner: Vec<(Expr, OutputColumn)> = Vec::new();
        let mut taken = |expr: &Expr, name: &SmolStr, data_type: DataType| {
            let known = inner.iter().position(|(known, _)| known == expr);
            let at = known.unwrap_or_else(|| {
                inner.push((expr.clone(), OutputColumn { name: name.clone(), data_type }));
                inner.len() - 1
            });
            Expr::column(of_groups, at)
        };
        let mut outputs = Vec::with_capacity(select.outputs.len());
        for (output, column) in select.outputs.iter().zip(&query.columns) {
            let is_of_call = reads(output, &|at| at == slot);
            match (is_of_call, reads(output, &is_own)) {
                (true, true) => return Err(refuse()),
                (true, false) => outputs.push(output.clone()),
                (false, _) => outputs.push(taken(output, &column.name, column.data_type)),
            }
        }
        let types = row_calls.types.iter().flatten().copied().collect::<Vec<_>>();
        let arguments = row_calls.calls.iter_mut().flat_map(|call| &mut call.arguments);
        for (argument, data_type) in arguments.zip(types) {
            if reads(argument, &is_own) {
                let data_type = data_type.ok_or_else(refuse)?;
                *argument = taken(argument, &SmolStr::new_static("argument"), data_type);
            }
        }
        for key in &mut query.order {
            let known = select.outputs.iter().position(|output| *output == key.expr);
            match key.output.or(known).and_then(|at| outputs.get(at)) {
                Some(output) => key.expr = output.clone(),
                None if reads(&key.expr, &is_own) => return Err(refuse()),
                None => {}
            }
        }
        for key in &mut select.distinct_on {
            let known = select.outputs.iter().position(|output| output == key);
            *key = known.and_then(|at| outputs.get(at)).cloned().ok_or_else(refuse)?;
        }
        let (inner_outputs, inner_columns): (Vec<Expr>, Vec<OutputColumn>) =
            inner.into_iter().unzip();
        if let Some(shape) = self.slots.get_mut(of_groups) {
            shape.source = Source::Query(inner_columns.clone().into());
        }
        let above = Select {
            from: None,
            filter: Vec::new(),
            subqueries: Vec::new(),
            group: None,
            windows: None,
            outputs,
            distinct: std::mem::take(&mut select.distinct),
            distinct_on: std::mem::take(&mut select.distinct_on),
            for_update: None,
        };
        select.outputs = inner_outputs;
        let grouped = Query {
            with: Vec::new(),
            body: std::mem::replace(&mut query.body, Body::Select(Box::new(above))),
            columns: inner_columns,
            order: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
        };
        let from = From::query(of_groups, grouped.into());
        let from = self.with_rows_of(Some(from), row_calls, slot);
        if let Body::Select(select) = &mut query.body {
            select.from = Some(from);
        }
        Ok(query)
    }

    /// Binds a call of a function that returns rows, by its bound arguments.
    pub(in crate::bind) fn row_call(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: u32,
        defined: &mut Option<DefinedColumns>,
    ) -> Result<(FunctionCall, Vec<OutputColumn>)> {
        if !Self::is_row_function(name, arguments.len()) {
            let types: Vec<Typed> = arguments.clone();
            if let Some(found) = self.routine_rows(name, types, position, defined)? {
                return Ok(found);
            }
            self.refuse_procedure(name, position)?;
        }
        let (kind, arguments, columns) = match row_function(name, arguments.len()) {
            Some(function) => self.row_function(function, arguments, position)?,
            None => {
                let (kind, list, data_type): (_, _, DataType) =
                    self.series(name, arguments, position)?;
                (kind, list, vec![OutputColumn { name: name.into(), data_type }])
            }
        };
        Ok((FunctionCall { kind, arguments, width: columns.len() }, columns))
    }
}
