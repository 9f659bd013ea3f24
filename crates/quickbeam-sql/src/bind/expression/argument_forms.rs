//! Arguments of functions with names, and VARIADIC arrays.
//!
//! Functions have places, not names, for their arguments. So named arguments of the functions that
//! PostgreSQL's manual calls with names are put in order, and a call with VARIADIC is one of the
//! function that takes the array.

use sqlparser::ast::{BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, Value as Literal};

use crate::bind::types::undefined::no_such_call;
use crate::error::{Result, SqlError, SqlState};

/// The name that the array of VARIADIC has as an argument.
const VARIADIC: &str = "variadic";

/// A function whose arguments have names and the default 0.
struct NamedArguments {
    function: &'static str,
    names: &'static [&'static str],
}

static NAMED: &[NamedArguments] = &[NamedArguments {
    function: "make_interval",
    names: &["years", "months", "weeks", "days", "hours", "mins", "secs"],
}];

/// The functions that take any number of arguments.
const VARIADIC_FUNCTIONS: [&str; 13] = [
    "concat",
    "concat_ws",
    "format",
    "num_nulls",
    "num_nonnulls",
    "json_build_array",
    "jsonb_build_array",
    "json_build_object",
    "jsonb_build_object",
    "json_extract_path",
    "jsonb_extract_path",
    "json_extract_path_text",
    "jsonb_extract_path_text",
];

/// Returns the name and the value of a named argument.
fn named(argument: &FunctionArg) -> Option<(String, &Ast)> {
    let (name, value) = match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            return Some((name.value.to_lowercase(), value));
        }
        FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(value), .. } => (name, value),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        })) => (&**left, &**right),
        _ => return None,
    };
    match name {
        Ast::Identifier(name) => Some((name.value.to_lowercase(), value)),
        _ => None,
    }
}

fn unnamed(value: Ast) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
}

/// The arguments of a call in order.
pub(in crate::bind) struct Positional {
    /// Whether the last one is the array of VARIADIC.
    pub is_spread: bool,
    pub arguments: Vec<FunctionArg>,
}

/// Returns the arguments of a call in order, or `None` if they are so already.
pub(in crate::bind) fn positional(
    function: &str,
    list: &[FunctionArg],
    is_variadic_routine: bool,
) -> Result<Option<Positional>> {
    let Some(first) = list.iter().position(|argument| named(argument).is_some()) else {
        return Ok(None);
    };
    let (before, with_names) = list.split_at(first);
    let mut arguments = before.to_vec();
    if let [only] = with_names
        && let Some((name, value)) = named(only)
        && name == VARIADIC
    {
        if !VARIADIC_FUNCTIONS.contains(&function) && !is_variadic_routine {
            return Err(SqlError::unsupported(format!("VARIADIC {value} of {function}")));
        }
        arguments.push(unnamed(value.clone()));
        return Ok(Some(Positional { is_spread: true, arguments }));
    }
    let Some(known) = NAMED.iter().find(|known| known.function == function) else {
        let shown: Vec<String> = list.iter().map(ToString::to_string).collect();
        return Err(no_such_call(&format!("{function}({})", shown.join(", "))));
    };
    let missing = |name: &str| {
        let message = format!("function {function} has no such argument \"{name}\"");
        SqlError::new(SqlState::UndefinedFunction, message)
    };
    for argument in with_names {
        let Some((name, value)) = named(argument) else {
            let message = "positional argument cannot follow named argument";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        };
        let at = known.names.iter().position(|own| *own == name).ok_or_else(|| missing(&name))?;
        if at < before.len() {
            return Err(missing(&name));
        }
        while arguments.len() <= at {
            arguments.push(unnamed(Ast::Value(Literal::Number("0".to_owned(), false).into())));
        }
        if let Some(place) = arguments.get_mut(at) {
            *place = unnamed(value.clone());
        }
    }
    Ok(Some(Positional { is_spread: false, arguments }))
}
