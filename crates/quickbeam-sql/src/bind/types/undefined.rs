//! Errors for functions and operators that do not exist, or exist more than once.
//!
//! Above: what binds calls and operators. One constructor each keeps PostgreSQL's hints.

use crate::bind::expression::overloads::is_same_category;
use crate::catalog::BuiltinTrigger;
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

const NO_FUNCTION: &str = "No function matches the given name and argument types. \
                           You might need to add explicit type casts.";
const NO_OPERATOR: &str = "No operator matches the given name and argument types. \
                           You might need to add explicit type casts.";
const NO_PREFIX_OPERATOR: &str = "No operator matches the given name and argument type. \
                                  You might need to add an explicit type cast.";
const MANY_FUNCTIONS: &str = "Could not choose a best candidate function. \
                              You might need to add explicit type casts.";
const MANY_OPERATORS: &str = "Could not choose a best candidate operator. \
                              You might need to add explicit type casts.";

/// Returns the name of the type of an argument, as in messages about calls.
pub(in crate::bind) fn type_name(data_type: Option<DataType>) -> String {
    data_type.map_or_else(|| "unknown".to_owned(), |known| known.unconstrained().to_string())
}

fn call_of(name: &str, types: impl IntoIterator<Item = Option<DataType>>) -> String {
    let types: Vec<String> = types.into_iter().map(type_name).collect();
    format!("{name}({})", types.join(", "))
}

/// Returns the error for a call whose name and types fit no function.
#[cold]
pub(in crate::bind) fn no_function(
    name: &str,
    types: impl IntoIterator<Item = Option<DataType>>,
    position: u32,
) -> SqlError {
    let call = call_of(name, types);
    let is_trigger = BuiltinTrigger::named(name).is_some() && call.ends_with("()");
    let error = match name {
        _ if is_trigger => {
            return not_fired(name);
        }
        _ => no_such_call(&call),
    };
    error.at(position as usize)
}

/// Returns the error for a call of a trigger function.
#[cold]
fn not_fired(name: &str) -> SqlError {
    match BuiltinTrigger::named(name) {
        Some(BuiltinTrigger::SuppressUpdates) => {
            let message = format!("{name}: must be called as trigger");
            SqlError::new(SqlState::TriggerProtocolViolated, message)
        }
        _ => SqlError::internal("tsvector_update_trigger: not fired by trigger manager"),
    }
}

/// Returns the error for a call, as it is written, that fits no function.
#[cold]
pub(in crate::bind) fn no_such_call(call: &str) -> SqlError {
    let message = format!("function {call} does not exist");
    SqlError::new(SqlState::UndefinedFunction, message).with_hint(NO_FUNCTION)
}

/// Returns the error for a call that fits several functions.
#[cold]
pub(in crate::bind) fn many_functions(
    name: &str,
    types: impl IntoIterator<Item = Option<DataType>>,
    position: u32,
) -> SqlError {
    let message = format!("function {} is not unique", call_of(name, types));
    SqlError::new(SqlState::AmbiguousFunction, message)
        .with_hint(MANY_FUNCTIONS)
        .at(position as usize)
}

fn operation(symbol: &str, types: &[Option<DataType>]) -> String {
    let names: Vec<String> = types.iter().copied().map(type_name).collect();
    match &names[..] {
        [only] => format!("{symbol} {only}"),
        all => all.join(&format!(" {symbol} ")),
    }
}

/// Returns the error for an operator that does not exist for the types of its operands.
#[cold]
pub(in crate::bind) fn no_operator(
    symbol: &str,
    types: &[Option<DataType>],
    position: u32,
) -> SqlError {
    let message = format!("operator does not exist: {}", operation(symbol, types));
    let hint = if types.len() == 1 { NO_PREFIX_OPERATOR } else { NO_OPERATOR };
    SqlError::new(SqlState::UndefinedFunction, message).with_hint(hint).at(position as usize)
}

/// Returns the error for values of which the first `known` is the type, and the next one is of
/// another.
#[cold]
pub(in crate::bind) fn no_common_type(what: &str, known: DataType, other: DataType) -> SqlError {
    if !is_same_category(known, other) {
        let message = format!("{what} types {known} and {other} cannot be matched");
        return SqlError::new(SqlState::DatatypeMismatch, message);
    }
    let what = if what == "CASE" { "CASE/WHEN" } else { what };
    let message = format!("{what} could not convert type {other} to {known}");
    SqlError::new(SqlState::CannotCoerce, message)
}

/// Returns the error for an operator that exists for several types of its untyped operands.
#[cold]
pub(in crate::bind) fn many_operators(
    symbol: &str,
    types: &[Option<DataType>],
    position: u32,
) -> SqlError {
    let message = format!("operator is not unique: {}", operation(symbol, types));
    SqlError::new(SqlState::AmbiguousFunction, message)
        .with_hint(MANY_OPERATORS)
        .at(position as usize)
}

/// Refuses a key whose values have no order.
pub(in crate::bind) fn refuse_unordered(
    data_type: Option<DataType>,
    position: usize,
) -> Result<()> {
    let Some(data_type) = data_type.filter(|it| !it.has_order()) else { return Ok(()) };
    let message = format!("could not identify an ordering operator for type {data_type}");
    Err(SqlError::new(SqlState::UndefinedFunction, message)
        .with_hint("Use an explicit ordering operator or modify the query.")
        .at(position))
}

/// Refuses a key whose values cannot be compared.
pub(in crate::bind) fn refuse_unequal(data_type: Option<DataType>, position: usize) -> Result<()> {
    let Some(data_type) = data_type.filter(|it| !it.has_order()) else { return Ok(()) };
    let message = format!("could not identify an equality operator for type {data_type}");
    Err(SqlError::new(SqlState::UndefinedFunction, message).at(position))
}
