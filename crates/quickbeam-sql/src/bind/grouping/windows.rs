//! Window functions: calls, windows and frames.

use smol_str::SmolStr;
use sqlparser::ast::{
    self, Expr as Ast, FunctionArg, Ident, NamedWindowDefinition, NamedWindowExpr, WindowSpec,
    WindowType,
};

use super::aggregates::AggregateCall;
use super::levels::grouping_error;
use crate::bind::collations::may_have_collation;
use crate::bind::query::row_calls::{RowFunctions, RowsRefused};
use crate::bind::types::undefined::{no_function, refuse_unequal, refuse_unordered};
use crate::bind::{
    AggregateKind, Binder, Derivation, OrderKey, Scope, Source, Typed, Window, WindowCall,
    WindowFrame, WindowFunction, WindowKind, Windows, fold,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::DataType;

/// Returns the window function of that name that is not an aggregate.
fn kind_of(name: &str) -> Option<WindowKind> {
    Some(match name {
        "row_number" => WindowKind::RowNumber,
        "rank" => WindowKind::Rank,
        "dense_rank" => WindowKind::DenseRank,
        "percent_rank" => WindowKind::PercentRank,
        "cume_dist" => WindowKind::CumeDist,
        "ntile" => WindowKind::Ntile,
        "lag" => WindowKind::Lag,
        "lead" => WindowKind::Lead,
        "first_value" => WindowKind::FirstValue,
        "last_value" => WindowKind::LastValue,
        "nth_value" => WindowKind::NthValue,
        _ => return None,
    })
}

#[cold]
pub(in crate::bind) fn windowing_error(message: impl Into<String>, position: u32) -> SqlError {
    SqlError::new(SqlState::WindowingError, message.into()).at(position as usize)
}

impl Binder<'_> {
    /// Returns the error for a call of a window function without OVER.
    pub(in crate::bind) fn missing_over(&self, name: &str, position: u32) -> Option<SqlError> {
        kind_of(name)?;
        let message = format!("window function {name} requires an OVER clause");
        Some(SqlError::new(SqlState::WrongObjectType, message).at(position as usize))
    }

    /// Records the WINDOW clause of the current level.
    pub(in crate::bind) fn name_windows(&mut self, list: &[NamedWindowDefinition]) -> Result<()> {
        for NamedWindowDefinition(name, definition) in list {
            let position = self.place_of(name) as u32;
            let folded = fold(name);
            let spec = match definition {
                NamedWindowExpr::NamedWindow(other) => WindowSpec {
                    window_name: Some(other.clone()),
                    partition_by: Vec::new(),
                    order_by: Vec::new(),
                    window_frame: None,
                },
                NamedWindowExpr::WindowSpec(spec) => spec.clone(),
            };
            let known = self.levels.last().map_or(&[][..], |level| &level.named_windows);
            if known.iter().any(|(known, _)| *known == folded) {
                let message = format!("window \"{folded}\" is already defined");
                return Err(windowing_error(message, position));
            }
            let spec = self.with_base(&spec)?;
            if let Some(level) = self.levels.last_mut() {
                level.named_windows.push((folded, spec));
            }
        }
        Ok(())
    }

    /// Binds each named window, so that errors in unused windows are found too.
    pub(in crate::bind) fn check_named_windows(&mut self, scope: &Scope) -> Result<()> {
        let named = self.levels.last().map_or_else(Vec::new, |level| level.named_windows.clone());
        for (_, spec) in named {
            let before = self.levels.last().map_or(0, |level| level.subqueries.len());
            self.window(&spec, scope)?;
            if let Some(level) = self.levels.last_mut() {
                level.subqueries.truncate(before);
            }
        }
        Ok(())
    }

    fn named_window(&self, name: &Ident) -> Result<WindowSpec> {
        let folded = fold(name);
        let known = self.levels.last().map_or(&[][..], |level| &level.named_windows);
        let found = known.iter().find(|(known, _)| *known == folded);
        found.map(|(_, spec)| spec.clone()).ok_or_else(|| {
            let message = format!("window \"{folded}\" does not exist");
            SqlError::new(SqlState::UndefinedObject, message).at(self.place_of(name))
        })
    }

    /// Returns a window definition with the clauses of the window that it is based on.
    fn with_base(&self, spec: &WindowSpec) -> Result<WindowSpec> {
        let Some(name) = &spec.window_name else { return Ok(spec.clone()) };
        let base = self.named_window(name)?;
        let (folded, position): (SmolStr, _) = (fold(name), self.place_of(name) as u32);
        let refuse = |what: &str| Err(windowing_error(what.replace('?', &folded), position));
        if !spec.partition_by.is_empty() {
            return refuse("cannot override PARTITION BY clause of window \"?\"");
        }
        if !spec.order_by.is_empty() && !base.order_by.is_empty() {
            return refuse("cannot override ORDER BY clause of window \"?\"");
        }
        if base.window_frame.is_some() {
            return refuse("cannot copy window \"?\" because it has a frame clause");
        }
        Ok(WindowSpec {
            window_name: None,
            partition_by: base.partition_by,
            order_by: if spec.order_by.is_empty() { base.order_by } else { spec.order_by.clone() },
            window_frame: spec.window_frame.clone(),
        })
    }

    /// Binds a call with OVER.
    pub(in crate::bind) fn window_call(
        &mut self,
        name: &str,
        (list, distinct): (&[FunctionArg], bool),
        filter: Option<&Ast>,
        over: &WindowType,
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        match self.levels.last() {
            Some(level) if level.in_aggregate => {
                let message = "aggregate function calls cannot contain window function calls";
                return Err(grouping_error(message, position));
            }
            Some(level) if level.in_window => {
                return Err(windowing_error("window function calls cannot be nested", position));
            }
            Some(level) if level.allows_windows => {}
            _ => return Err(windowing_error(self.not_allowed("window functions"), position)),
        }
        let refuse = |what: &str| Err(SqlError::unsupported(what).at(position as usize));
        let (kind, aggregate) = (kind_of(name), AggregateKind::named(name));
        if kind.is_none() && aggregate.is_none() {
            let message = format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            );
            return Err(SqlError::new(SqlState::WrongObjectType, message).at(position as usize));
        }
        if distinct {
            return refuse("DISTINCT for window functions");
        }
        if kind.is_some() && filter.is_some() {
            return refuse("FILTER for non-aggregate window functions");
        }
        let spec = match over {
            WindowType::NamedWindow(name) => self.named_window(name)?,
            WindowType::WindowSpec(spec) => self.with_base(spec)?,
        };
        self.set_in_window(true);
        let refused = RowFunctions::Refused(RowsRefused::Window);
        let bound = self.with_row_functions(refused, |binder| {
            binder.window_parts(name, list, filter, &spec, position, scope)
        });
        self.set_in_window(false);
        let (window, function, data_type) = bound?;
        let collation = match &function.call {
            WindowCall::Aggregate(aggregate) => self.aggregate_collation(aggregate)?,
            WindowCall::Position(_, arguments) if may_have_collation(data_type) => {
                let value = |expr: &Expr| Typed { expr: expr.clone(), data_type: None, position };
                let values: Vec<Typed> = arguments.iter().map(value).collect();
                self.common_collation(&values)?
            }
            WindowCall::Position(..) => Derivation::Default,
        };
        let column = self.add_window_function(window, function);
        Ok(self.computed(column, data_type, collation, position))
    }

    fn set_in_window(&mut self, is: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.in_window = is;
        }
    }

    /// Binds the function, its arguments and its window.
    fn window_parts(
        &mut self,
        name: &str,
        list: &[FunctionArg],
        filter: Option<&Ast>,
        spec: &WindowSpec,
        position: u32,
        scope: &Scope,
    ) -> Result<(Window, WindowFunction, DataType)> {
        let (call, data_type) = match (kind_of(name), AggregateKind::named(name)) {
            (Some(kind), _) => self.position_call(kind, name, list, position, scope)?,
            (None, Some(kind)) => {
                if kind.is_ordered_set() {
                    let message =
                        format!("{name} is an ordered-set aggregate: WITHIN GROUP is required");
                    let error = SqlError::new(SqlState::UndefinedFunction, message);
                    return Err(error.at(position as usize));
                }
                let (distinct, order) = (false, &[][..]);
                let call =
                    AggregateCall { kind, arguments: list, distinct, order, filter, position };
                let aggregate = self.aggregate_parts(&call, scope)?;
                let data_type = aggregate.data_type;
                (WindowCall::Aggregate(aggregate), data_type)
            }
            (None, None) => return Err(SqlError::internal("a window call of no function")),
        };
        let (window, frame) = self.window(spec, scope)?;
        Ok((window, WindowFunction { call, frame }, data_type))
    }

    /// Binds the arguments of a window function that is not an aggregate.
    fn position_call(
        &mut self,
        kind: WindowKind,
        name: &str,
        list: &[FunctionArg],
        position: u32,
        scope: &Scope,
    ) -> Result<(WindowCall, DataType)> {
        let mut arguments = Vec::with_capacity(list.len());
        for argument in list {
            let bound = self.argument(argument, scope)?;
            arguments.push(bound.ok_or_else(|| {
                SqlError::unsupported("this form of an argument").at(position as usize)
            })?);
        }
        let counts = match kind {
            WindowKind::Ntile | WindowKind::FirstValue | WindowKind::LastValue => 1..=1,
            WindowKind::NthValue => 2..=2,
            WindowKind::Lag | WindowKind::Lead => 1..=3,
            _ => 0..=0,
        };
        // The position of the argument that is an integer, if the function has one.
        let integer = match kind {
            WindowKind::Ntile => Some(0),
            WindowKind::Lag | WindowKind::Lead | WindowKind::NthValue => Some(1),
            _ => None,
        };
        let types: Vec<_> = arguments.iter().map(|one| one.data_type).collect();
        let missing = || no_function(name, types.iter().copied(), position);
        let number = integer.and_then(|at| (at < arguments.len()).then(|| arguments.remove(at)));
        if !counts.contains(&(arguments.len() + usize::from(number.is_some()))) {
            let is_ordered_set =
                AggregateKind::named(name).is_some_and(AggregateKind::is_ordered_set);
            if is_ordered_set && !arguments.is_empty() {
                let message = format!("OVER is not supported for ordered-set aggregate {name}");
                return Err(SqlError::new(SqlState::WrongObjectType, message).at(position as usize));
            }
            return Err(missing());
        }
        let is_small = |one: &Typed| {
            one.data_type.is_none_or(|known| known.is_integer() && known != DataType::BigInt)
        };
        if !number.as_ref().is_none_or(is_small) {
            return Err(missing());
        }
        let (mut exprs, data_type) = match kind {
            WindowKind::Ntile => (Vec::new(), DataType::Integer),
            WindowKind::PercentRank | WindowKind::CumeDist => (Vec::new(), DataType::Double),
            WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank => {
                (Vec::new(), DataType::BigInt)
            }
            _ => {
                let known = arguments.iter().filter_map(|one| one.data_type);
                let known: Vec<DataType> = known.collect();
                let fits = known.windows(2).all(|pair| match pair {
                    [a, b] => crate::bind::types::common(*a, *b).is_some(),
                    _ => true,
                });
                if !fits {
                    return Err(missing());
                }
                let (exprs, data_type) = self.unify(arguments, name)?;
                (exprs, data_type.unconstrained())
            }
        };
        if let (Some(at), Some(number)) = (integer, number) {
            let number = self.coerce(number, DataType::Integer)?;
            exprs.insert(at.min(exprs.len()), number);
        }
        Ok((WindowCall::Position(kind, exprs), data_type))
    }

    /// Binds a window definition.
    fn window(&mut self, spec: &WindowSpec, scope: &Scope) -> Result<(Window, WindowFrame)> {
        let mut partition = Vec::with_capacity(spec.partition_by.len());
        for key in &spec.partition_by {
            let value = self.expression(key, scope)?;
            refuse_unequal(value.data_type, value.position as usize)?;
            let value = self.settle(value)?;
            partition.push(self.grouped(value)?);
        }
        let (order, types) = self.window_order(&spec.order_by, scope)?;
        let frame = self.frame(spec, &types, scope)?;
        Ok((Window { partition, order, functions: Vec::new() }, frame))
    }

    /// Binds ORDER BY of a window. A name or number here never means an output.
    fn window_order(
        &mut self,
        items: &[ast::OrderByExpr],
        scope: &Scope,
    ) -> Result<(Vec<OrderKey>, Vec<Option<DataType>>)> {
        let (mut keys, mut types) = (Vec::with_capacity(items.len()), Vec::new());
        for item in items {
            let descending = self.is_descending(item)?;
            let value = self.expression(&item.expr, scope)?;
            let value = self.settle(value)?;
            let nulls_first = item.options.nulls_first.unwrap_or(descending);
            refuse_unordered(value.data_type, value.position as usize)?;
            types.push(value.data_type);
            let place = value.position;
            let expr = self.ordered(value, place)?;
            keys.push(OrderKey { expr, output: None, descending, nulls_first });
        }
        Ok((keys, types))
    }

    /// Adds a function to its window at the current level. Returns the column of its value.
    fn add_window_function(&mut self, window: Window, function: WindowFunction) -> Expr {
        let known = self.levels.last().and_then(|level| level.windows.as_ref());
        let slot = match known {
            Some(windows) => windows.slot,
            None => self.add_slot("window".into(), Source::Computed),
        };
        let Some(level) = self.levels.last_mut() else { return Expr::column(slot, 0) };
        let windows = level.windows.get_or_insert_with(|| Windows { slot, windows: Vec::new() });
        let count: usize = windows.windows.iter().map(|window| window.functions.len()).sum();
        let same =
            |known: &Window| known.partition == window.partition && known.order == window.order;
        let at = windows.windows.iter().position(same).unwrap_or_else(|| {
            windows.windows.push(window.clone());
            windows.windows.len() - 1
        });
        let functions = &mut windows.windows[at].functions;
        let is_volatile = function.exprs().any(Expr::is_volatile);
        let known = functions.iter().find(|(_, known)| *known == function && !is_volatile);
        let column = known.map(|(column, _)| *column).unwrap_or_else(|| {
            functions.push((count, function));
            count
        });
        Expr::column(slot, column)
    }
}
