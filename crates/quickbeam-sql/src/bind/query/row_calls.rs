//! Functions that return rows in a select list, as in `SELECT unnest(tags) FROM posts`.
//!
//! A row of FROM is repeated for each row of the functions. So the calls of a select list become
//! one item of FROM, which reads the other items and is joined to them. Several calls run side by
//! side: NULLs fill the ones that return fewer rows.

use smol_str::SmolStr;
use sqlparser::ast::{FunctionArg, FunctionArgExpr};

use crate::bind::collations::may_have_collation;
use crate::bind::from::json_records::DefinedColumns;
use crate::bind::routines::row_result;
use crate::bind::{
    Binder, Body, Derivation, From, FunctionCall, JoinKind, OutputColumn, Query, Scope, Select,
    Source, Subquery, SubqueryKind, TableFunction, TableFunctionKind, Typed,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr, JsonRecords, row_function};
use crate::types::encoded::row_types::RowType;
use crate::types::{DataType, EncodedType};

/// Whether functions that return rows are allowed where the binder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum RowFunctions {
    Allowed,
    /// The place that does not allow them, for the error.
    Refused(RowsRefused),
}

/// A place where functions that return rows are not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::bind) enum RowsRefused {
    #[default]
    Here,
    Aggregate,
    Window,
    Case,
    Coalesce,
    Where,
    Having,
    Values,
    From,
}

impl RowsRefused {
    fn error(self) -> SqlError {
        let in_clause = |clause: &str| {
            let message = format!("set-returning functions are not allowed in {clause}");
            SqlError::new(SqlState::FeatureNotSupported, message)
        };
        let hint = "You might be able to move the set-returning function into a LATERAL FROM item.";
        let expected =
            |message: &str| SqlError::new(SqlState::FeatureNotSupported, message).with_hint(hint);
        match self {
            RowsRefused::Here => {
                let message = "set-returning functions are not allowed here";
                let error = SqlError::new(SqlState::FeatureNotSupported, message);
                error.with_hint("Call the function in FROM.")
            }
            RowsRefused::Window => {
                expected("window function calls cannot contain set-returning function calls")
            }
            RowsRefused::Aggregate => {
                expected("aggregate function calls cannot contain set-returning function calls")
            }
            RowsRefused::Case => expected("set-returning functions are not allowed in CASE"),
            RowsRefused::Coalesce => {
                expected("set-returning functions are not allowed in COALESCE")
            }
            RowsRefused::Where => in_clause("WHERE"),
            RowsRefused::Having => in_clause("HAVING"),
            RowsRefused::Values => in_clause("VALUES"),
            RowsRefused::From => {
                let message = "set-returning functions must appear at top level of FROM";
                SqlError::new(SqlState::FeatureNotSupported, message)
            }
        }
    }
}

impl Default for RowFunctions {
    fn default() -> RowFunctions {
        RowFunctions::Refused(RowsRefused::Here)
    }
}

/// The calls of a select list.
#[derive(Debug, Default)]
pub(in crate::bind) struct RowCalls {
    /// The calls that run side by side. The arguments of a call read rows of the steps before it.
    pub steps: Vec<RowStep>,
    /// The position of the first call.
    pub position: u32,
    /// The subqueries in their arguments: items of FROM of one row each, before the calls.
    answers: Vec<(usize, Query)>,
}

/// Calls that run side by side.
#[derive(Debug)]
pub(in crate::bind) struct RowStep {
    pub calls: Vec<FunctionCall>,
    columns: Vec<OutputColumn>,
    /// The slot of their rows.
    slot: usize,
    /// The types of the arguments of each call, as far as they are known.
    pub types: Vec<Vec<Option<DataType>>>,
}

impl RowCalls {
    /// Returns the arguments of all calls.
    pub(in crate::bind) fn arguments_mut(&mut self) -> impl Iterator<Item = (&mut Expr, u32)> {
        let position = self.position;
        let calls = self.steps.iter_mut().flat_map(|it| &mut it.calls);
        calls.flat_map(|it| &mut it.arguments).map(move |it| (it, position))
    }

    /// Returns the slots of the rows of calls.
    pub(in crate::bind) fn slots(&self) -> Vec<usize> {
        self.steps.iter().map(|it| it.slot).collect()
    }

    /// Returns the number of the step of a call: the one after those whose rows it reads.
    fn step_of(&self, call: &FunctionCall) -> usize {
        let mut step = 0;
        for argument in &call.arguments {
            argument.each_column(&mut |at| {
                let read = self.steps.iter().position(|it| it.slot == at.slot);
                step = step.max(read.map_or(0, |read| read + 1));
            });
        }
        step
    }

    /// Returns the slots of the subqueries in the arguments.
    pub(in crate::bind) fn answer_slots(&self) -> impl Iterator<Item = usize> {
        self.answers.iter().map(|(slot, _)| *slot)
    }

    /// Returns the queries of the subqueries in the arguments.
    pub(in crate::bind) fn answers_mut(&mut self) -> impl Iterator<Item = &mut Query> {
        self.answers.iter_mut().map(|(_, query)| query)
    }
}

impl RowStep {
    /// Returns the first column of an equal call, unless one of its arguments is volatile.
    fn known(&self, call: &FunctionCall) -> Option<usize> {
        if call.arguments.iter().any(Expr::is_volatile) {
            return None;
        }
        let is_same = |it: &FunctionCall| it.kind == call.kind && it.arguments == call.arguments;
        let at = self.calls.iter().position(is_same)?;
        Some(self.calls.iter().take(at).map(|it| it.width).sum())
    }
}

/// Returns the columns of the answer of a subquery.
fn answer_columns(subquery: &Subquery) -> Vec<OutputColumn> {
    let one = |data_type| vec![OutputColumn::new("answer", data_type)];
    match &subquery.kind {
        SubqueryKind::Row => subquery.query.columns.clone(),
        SubqueryKind::Scalar => subquery.query.columns.iter().take(1).cloned().collect(),
        SubqueryKind::Array(element) => one(DataType::Array(*element)),
        SubqueryKind::Exists | SubqueryKind::Any(..) | SubqueryKind::All(..) => {
            one(DataType::Boolean)
        }
    }
}

/// Replaces columns of slots by those that they became.
fn replace_all(expr: &mut Expr, became: &[(ColumnRef, Expr)]) {
    match expr.as_column() {
        Some(column) => {
            if let Some((_, new)) = became.iter().find(|(old, _)| *old == column) {
                *expr = new.clone();
            }
        }
        None => expr.each_child_mut(&mut |child| replace_all(child, became)),
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

/// Returns all pairs of the rows of two items of FROM.
fn crossed(left: From, right: From) -> From {
    let (left, right) = (Box::new(left), Box::new(right));
    From::Join { kind: JoinKind::Inner, left, right, on: Vec::new() }
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
            return Err(place.error().at(position as usize));
        }
        let subqueries = level.map_or(0, |level| level.subqueries.len());
        let mut arguments = Vec::with_capacity(list.len());
        for argument in list {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                return Err(SqlError::unsupported("this form of an argument"));
            };
            arguments.push(self.expression(expr, scope)?.without_vector());
        }
        let arguments = self.with_answers_in_from(arguments, subqueries);
        let written: Vec<(Expr, Option<DataType>)> =
            arguments.iter().map(|it| (it.expr.clone(), it.data_type)).collect();
        let (call, columns) = match JsonRecords::named(name) {
            Some(function) => self.json_records(function, arguments, None, position)?,
            None => {
                let mut defined = self.whole_record_of(name, &arguments, position)?;
                self.row_call(name, arguments, position, &mut defined)?
            }
        };
        let row_type = self.row_type_of_call(&call, &columns)?;
        let step = self.levels.last().map_or(0, |level| level.row_calls.step_of(&call));
        let steps = self.levels.last().map(|level| &level.row_calls.steps);
        let known = steps.and_then(|steps| steps.get(step)).map(|it| it.slot);
        let slot = known.unwrap_or_else(|| self.add_slot(name.into(), Source::Computed));
        let Some(level) = self.levels.last_mut() else {
            return Err(SqlError::internal("a select list without a query"));
        };
        let all = &mut level.row_calls;
        if all.steps.is_empty() {
            all.position = position;
        }
        if known.is_none() {
            let (calls, columns, types) = (Vec::new(), Vec::new(), Vec::new());
            all.steps.push(RowStep { calls, columns, slot, types });
        }
        let Some(calls) = all.steps.get_mut(step) else {
            return Err(SqlError::internal("a step of calls is missing"));
        };
        let known = calls.known(&call);
        let first = known.unwrap_or(calls.columns.len());
        if known.is_none() {
            let types = call.arguments.iter().map(|it| type_of_argument(it, &written));
            calls.types.push(types.collect());
            calls.calls.push(call);
        }
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
        let collations: Vec<Derivation> = columns.iter().map(|it| it.collation).collect();
        if known.is_none() {
            calls.columns.extend(columns);
        }
        for (place, collation) in collations.into_iter().enumerate() {
            self.set_collation(ColumnRef { slot, column: first + place }, collation);
        }
        Ok(made)
    }

    /// Makes the subqueries in the arguments of a call, those of the level from `first` on, an item
    /// of FROM that the call reads. Returns the arguments, which read its row.
    fn with_answers_in_from(&mut self, mut arguments: Vec<Typed>, first: usize) -> Vec<Typed> {
        let Some(level) = self.levels.last_mut() else { return arguments };
        let subqueries = level.subqueries.split_off(first.min(level.subqueries.len()));
        if subqueries.is_empty() {
            return arguments;
        }
        let (mut columns, mut became, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        let slot = self.add_slot("answers".into(), Source::Computed);
        for subquery in &subqueries {
            for (column, output) in answer_columns(subquery).into_iter().enumerate() {
                let answer = ColumnRef { slot: subquery.slot, column };
                outputs.push(Expr::Column(answer));
                became.push((answer, Expr::column(slot, columns.len())));
                columns.push(output);
            }
        }
        for argument in &mut arguments {
            replace_all(&mut argument.expr, &became);
        }
        if let Some(shape) = self.slots.get_mut(slot) {
            shape.source = Source::Query(columns.clone().into());
        }
        let select = Select::plain(None, outputs, subqueries);
        let query = Query::plain(Body::Select(Box::new(select)), columns);
        if let Some(level) = self.levels.last_mut() {
            level.row_calls.answers.push((slot, query));
        }
        arguments
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
        if row_calls.steps.is_empty() {
            return Ok((from, None));
        }
        // Calls in keys of GROUP BY return their rows before these are grouped, and so do those in
        // their arguments.
        let keys = keys.unwrap_or_default();
        let is_read = |expr: &Expr, wanted: ColumnRef| {
            let mut found = false;
            expr.each_column(&mut |at| found |= at == wanted);
            found
        };
        let is_in_key = |wanted: ColumnRef| keys.iter().any(|key| is_read(key, wanted));
        let is_in_call = |wanted: ColumnRef| {
            let calls = row_calls.steps.iter().flat_map(|it| &it.calls);
            calls.flat_map(|it| &it.arguments).any(|argument| is_read(argument, wanted))
        };
        let columns = row_calls.steps.iter().flat_map(|step| {
            (0..step.columns.len()).map(|column| ColumnRef { slot: step.slot, column })
        });
        let columns: Vec<ColumnRef> = columns.collect();
        if is_later && !columns.iter().any(|at| is_in_key(*at)) {
            return Ok((from, Some(row_calls)));
        }
        let position = row_calls.position;
        if is_later && !columns.iter().all(|at| is_in_key(*at) || is_in_call(*at)) {
            let what = "set-returning functions of which some are keys of GROUP BY";
            return Err(SqlError::unsupported(what).at(position as usize));
        }
        Ok((self.with_rows_of(from, row_calls), None))
    }

    /// Joins the rows of calls to FROM.
    pub(in crate::bind) fn with_rows_of(
        &mut self,
        from: Option<From>,
        row_calls: RowCalls,
    ) -> Option<From> {
        let RowCalls { steps, answers, .. } = row_calls;
        let answers = answers.into_iter().map(|(slot, query)| From::query(slot, query.into()));
        let mut items: Vec<From> = from.into_iter().chain(answers).collect();
        for RowStep { calls, columns, slot, .. } in steps {
            if let Some(shape) = self.slots.get_mut(slot) {
                shape.source = Source::Query(columns.clone().into());
            }
            let inner = self.add_slot("functions".into(), Source::Computed);
            let query = Query::plain(
                Body::Function(TableFunction { calls, ordinality: false, slot: inner }),
                columns,
            );
            items.push(From::query(slot, query.into()));
        }
        items.into_iter().reduce(crossed)
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
            if name != "generate_series" {
                let value = self.function(name, arguments, position)?;
                return self.row_of_value(name, value, defined.as_ref(), position);
            }
        }
        let collation = self.common_collation(&arguments)?;
        self.check_collation(name, &arguments)?;
        let (kind, arguments, mut columns) = match row_function(name, arguments.len()) {
            Some(function) => self.row_function(function, arguments, position)?,
            None => {
                let (kind, list, data_type): (_, _, DataType) =
                    self.series(name, arguments, position)?;
                (kind, list, vec![OutputColumn::new(name, data_type)])
            }
        };
        for column in columns.iter_mut().filter(|it| may_have_collation(it.data_type)) {
            column.collation = collation.as_column();
        }
        Ok((FunctionCall { kind, arguments, width: columns.len() }, columns))
    }
}
