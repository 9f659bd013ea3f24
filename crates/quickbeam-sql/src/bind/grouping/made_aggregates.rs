//! Calls of aggregates that statements have made.
//!
//! `array_agg` collects the arguments, as rows if there are several, and [`Fold`] calls the
//! function of the state for each. So FILTER, DISTINCT, ORDER BY and windows are those of
//! `array_agg`.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{
    self, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByExpr, WindowType,
};

use super::aggregates::AggregateCall;
use crate::bind::polymorphic::{VariadicForm, concrete_types};
use crate::bind::scope::relation_with;
use crate::bind::{AggregateKind, Binder, Derivation, Names, Scope, Typed};
use crate::catalog::describe::quoted_if_needed;
use crate::catalog::{AggregateDefinition, FunctionName, Routine, RoutineResult};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Fold, FoldedRows, Implementation};
use crate::types::{DataType, TextSettings, Value, parse_value};

/// A call of an aggregate, without its name.
pub(in crate::bind) struct MadeCall<'a> {
    pub arguments: &'a [FunctionArg],
    pub distinct: bool,
    pub order: &'a [OrderByExpr],
    pub filter: Option<&'a Ast>,
    pub over: Option<&'a WindowType>,
    pub position: u32,
}

impl<'a> MadeCall<'a> {
    /// Returns a call with its arguments in order, whether it has DISTINCT, and its ORDER BY.
    pub fn new(
        call: &'a ast::Function,
        (arguments, distinct, order): (&'a [FunctionArg], bool, &'a [OrderByExpr]),
        position: u32,
    ) -> MadeCall<'a> {
        let (filter, over) = (call.filter.as_deref(), call.over.as_ref());
        MadeCall { arguments, distinct, order, filter, over, position }
    }
}

/// A call of a function of an aggregate, over its state and its arguments, which are columns.
pub struct StateCall {
    /// The call.
    pub expr: Expr,
    /// The type of its value.
    pub data_type: DataType,
    /// The function that it calls.
    pub function: FunctionName,
    /// Whether the function is strict.
    pub is_strict: bool,
}

/// Returns whether the function of a call returns NULL if an argument is NULL.
fn is_strict(call: &Expr) -> bool {
    match call {
        Expr::Call(function, ..) => function.is_strict(),
        Expr::Cast(inner, ..) | Expr::Assign(inner, ..) | Expr::Collate(inner, _) => {
            is_strict(inner)
        }
        Expr::Array(..) | Expr::Row(..) | Expr::Case(..) | Expr::IsNull(..) => false,
        Expr::Distinct(..) | Expr::And(_) | Expr::Or(_) => false,
        _ => true,
    }
}

/// Returns the function that a call calls.
fn called_function(call: &Expr, written: &FunctionName, names: &dyn Names) -> FunctionName {
    let routine = match call {
        Expr::Call(function, ..) => match function.0.implementation {
            Implementation::Routine(call) => {
                names.snapshot().and_then(|snapshot| snapshot.routine(call.id))
            }
            _ => None,
        },
        _ => None,
    };
    match routine {
        Some(routine) => (routine.schema.clone(), routine.name.clone()),
        None => (SmolStr::new_static("pg_catalog"), written.1.clone()),
    }
}

/// Binds a call of a function for values of these types: column `n` of slot 0 is argument `n`. A
/// name without a schema has an empty one.
pub fn state_call(
    names: &dyn Names,
    function: &FunctionName,
    types: &[DataType],
) -> Result<StateCall> {
    let own = quoted_if_needed(&function.1);
    let shown = match function.0.as_str() {
        "" | "pg_catalog" => own,
        schema => format!("{}.{own}", quoted_if_needed(schema)),
    };
    let column = |number: usize| SmolStr::from(format!("a{number}"));
    let list: Vec<String> = (0..types.len()).map(|number| column(number).to_string()).collect();
    let parsed = crate::parse::expression(&format!("{shown}({})", list.join(", ")))?;
    let columns = types.iter().enumerate();
    let columns = columns.map(|(number, it)| (column(number), *it, Derivation::Default));
    let scope = Scope::of(vec![relation_with(SmolStr::default(), 0, columns)]);
    let mut binder = Binder::new(names, "");
    // The owner of the aggregate has the right to call it.
    binder.role = None;
    let call = binder.expression(&parsed, &scope).map_err(SqlError::without_place)?;
    let data_type = call.data_type.unwrap_or(DataType::Text);
    let function = called_function(&call.expr, function, names);
    Ok(StateCall { is_strict: is_strict(&call.expr), expr: call.expr, data_type, function })
}

/// Replaces the columns of a call by the state and the arguments.
fn fill(call: &mut Expr, arguments: &[Expr]) {
    match call.as_column() {
        Some(column) => {
            *call = match column.column.checked_sub(1) {
                None => Expr::Parameter(0),
                Some(number) => {
                    arguments.get(number).cloned().unwrap_or(Expr::Constant(Value::Null))
                }
            };
        }
        None => call.each_child_mut(&mut |child| fill(child, arguments)),
    }
}

impl Binder<'_> {
    /// Binds a call of an aggregate that a statement has made. `routines`: those of its name.
    pub(in crate::bind) fn made_aggregate(
        &mut self,
        name: &str,
        routines: &[Arc<Routine>],
        call: &MadeCall<'_>,
        scope: &Scope,
    ) -> Result<Typed> {
        let is_plain = |routine: &Arc<Routine>| {
            let mut inputs = routine.inputs();
            matches!((inputs.next(), inputs.next()), (Some(only), None)
                if only.pseudo.is_none() && !matches!(only.data_type, DataType::Array(_)))
        };
        let (rows, argument) = match call.arguments {
            [] | [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => {
                (FoldedRows::Empty, unnamed(crate::parse::expression("true")?))
            }
            [only] if routines.iter().all(is_plain) => (FoldedRows::Values, only.clone()),
            list => (FoldedRows::Rows, unnamed(row_of(list)?)),
        };
        let (arguments, kind) = ([argument], AggregateKind::Elements);
        let (distinct, filter, position) = (call.distinct, call.filter, call.position);
        let collected = match call.over {
            Some(over) => {
                let arguments = (&arguments[..], distinct);
                self.window_call(kind.name(), arguments, filter, over, position, scope)?
            }
            None => {
                let (arguments, order) = (&arguments[..], call.order);
                let call = AggregateCall { kind, arguments, distinct, order, filter, position };
                self.aggregate(&call, scope)?
            }
        };
        let element = collected.data_type.and_then(DataType::element);
        let element = element.map_or(DataType::Text, |element| element.data_type());
        let types: Vec<DataType> = match rows {
            FoldedRows::Empty => Vec::new(),
            FoldedRows::Values => vec![element],
            FoldedRows::Rows => element.row_fields().iter().map(|(_, field)| *field).collect(),
        };
        let fold = self.fold(name, rows, &types, position)?;
        let data_type = fold.data_type;
        let expr = Expr::Fold(Box::new(collected.expr), Arc::new(fold));
        Ok(Typed::new(expr, data_type, position))
    }

    /// Chooses the aggregate of a name for arguments of these types.
    fn fold(
        &mut self,
        name: &str,
        rows: FoldedRows,
        types: &[DataType],
        position: u32,
    ) -> Result<Fold> {
        let given = types.iter().enumerate().map(|(number, data_type)| {
            Typed::new(Expr::Parameter(number + 1), *data_type, position)
        });
        let (builtin, mut arguments) = self.chosen(name, given.collect(), position)?;
        let wrong_kind = || {
            let message = format!("{name} is not an aggregate function");
            SqlError::new(SqlState::WrongObjectType, message).at(position as usize)
        };
        let Implementation::Routine(call) = builtin.implementation else {
            return Err(wrong_kind());
        };
        let routine = self.routine_of(call, position)?;
        let definition = routine.aggregate.as_deref().ok_or_else(wrong_kind)?;
        self.with_defaults(builtin, &routine, &mut arguments, position)?;
        let state = self.state_type(call.id, definition, types)?;
        let inputs: Vec<DataType> =
            routine.inputs().map(|it| it.data_type.unconstrained()).collect();
        let all: Vec<DataType> = [state].into_iter().chain(inputs.iter().copied()).collect();
        let mut step = state_call(self.names, &definition.step, &all)?;
        fill(&mut step.expr, &arguments);
        let first = match arguments.first() {
            Some(first) => {
                let first = Typed::new(first.clone(), inputs[0], position);
                self.coerce(first, state).ok()
            }
            None => None,
        };
        let initial = match &definition.initial {
            Some(text) => parse_value(text, state, &TextSettings::DEFAULT)?,
            None => Value::Null,
        };
        let (mut finish, mut data_type) = (None, state);
        if let Some(function) = &definition.finish {
            let extra = if definition.extra { &all[..] } else { &all[..1] };
            let mut call = state_call(self.names, function, extra)?;
            fill(&mut call.expr, &[]);
            (finish, data_type) = (Some(call.expr), call.data_type);
        }
        let step_value = Typed::new(step.expr, step.data_type, position);
        Ok(Fold {
            name: name.to_owned(),
            rows,
            width: types.len(),
            initial,
            step: self.coerce(step_value, state)?,
            first,
            is_strict: step.is_strict,
            finish,
            data_type,
        })
    }

    /// Returns the type of the state of an aggregate for arguments of these types.
    fn state_type(
        &self,
        id: crate::catalog::ObjectId,
        definition: &AggregateDefinition,
        types: &[DataType],
    ) -> Result<DataType> {
        let Some(pseudo) = definition.pseudo else { return Ok(definition.state) };
        let routine = self.names.snapshot().and_then(|snapshot| snapshot.routine(id));
        let given: Vec<Option<DataType>> = types.iter().copied().map(Some).collect();
        let decided = routine.and_then(|routine| {
            let of_state = Routine { result: RoutineResult::Pseudo(pseudo), ..(**routine).clone() };
            concrete_types(&of_state, &given, VariadicForm::Elements)?.result
        });
        decided.ok_or_else(|| {
            let message = "could not determine the type of the state of an aggregate";
            SqlError::new(SqlState::DatatypeMismatch, message)
        })
    }
}

fn unnamed(expr: Ast) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

/// Returns a row of arguments.
fn row_of(list: &[FunctionArg]) -> Result<Ast> {
    let mut row = crate::parse::expression("ROW(0)")?;
    if let Ast::Function(call) = &mut row
        && let FunctionArguments::List(arguments) = &mut call.args
    {
        arguments.args = list.to_vec();
    }
    Ok(row)
}
