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

/// A function whose arguments have names, and the defaults of its last arguments.
struct NamedArguments {
    function: &'static str,
    names: &'static [&'static str],
    defaults: &'static [&'static str],
}

const fn with_names(
    function: &'static str,
    names: &'static [&'static str],
    defaults: &'static [&'static str],
) -> NamedArguments {
    NamedArguments { function, names, defaults }
}

/// Declares a function of a jsonpath.
const fn of_path(function: &'static str) -> NamedArguments {
    with_names(function, &["target", "path", "vars", "silent"], &["{}", "false"])
}

static NAMED: &[NamedArguments] = &[
    with_names(
        "make_interval",
        &["years", "months", "weeks", "days", "hours", "mins", "secs"],
        &["0"; 7],
    ),
    with_names("make_date", &["year", "month", "day"], &[]),
    with_names("make_time", &["hour", "min", "sec"], &[]),
    with_names("make_timestamp", &["year", "month", "mday", "hour", "min", "sec"], &[]),
    with_names(
        "make_timestamptz",
        &["year", "month", "mday", "hour", "min", "sec", "timezone"],
        &[""],
    ),
    with_names("parse_ident", &["str", "strict"], &["true"]),
    with_names("jsonb_set", &["jsonb_in", "path", "replacement", "create_if_missing"], &["true"]),
    with_names(
        "jsonb_set_lax",
        &["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"],
        &["true", "use_json_null"],
    ),
    with_names("jsonb_insert", &["jsonb_in", "path", "replacement", "insert_after"], &["false"]),
    of_path("jsonb_path_exists"),
    of_path("jsonb_path_match"),
    of_path("jsonb_path_query"),
    of_path("jsonb_path_query_array"),
    of_path("jsonb_path_query_first"),
    of_path("jsonb_path_exists_tz"),
    of_path("jsonb_path_match_tz"),
    of_path("jsonb_path_query_tz"),
    of_path("jsonb_path_query_array_tz"),
    of_path("jsonb_path_query_first_tz"),
    with_names("pg_terminate_backend", &["pid", "timeout"], &["0"]),
    with_names("json_array_elements", &["from_json"], &[]),
    with_names("json_array_elements_text", &["from_json"], &[]),
    with_names("jsonb_array_elements", &["from_json"], &[]),
    with_names("jsonb_array_elements_text", &["from_json"], &[]),
    with_names("json_each", &["from_json"], &[]),
    with_names("json_each_text", &["from_json"], &[]),
    with_names("jsonb_each", &["from_json"], &[]),
    with_names("jsonb_each_text", &["from_json"], &[]),
];

impl NamedArguments {
    /// Returns the default of an argument; `None` if the argument has to be given.
    fn default(&self, at: usize) -> Option<FunctionArg> {
        let required = self.names.len() - self.defaults.len();
        let text = self.defaults.get(at.checked_sub(required)?)?;
        let literal = match *text {
            "true" => Literal::Boolean(true),
            "false" => Literal::Boolean(false),
            "0" => Literal::Number("0".to_owned(), false),
            text => Literal::SingleQuotedString(text.to_owned()),
        };
        Some(unnamed(Ast::Value(literal.into())))
    }
}

/// The functions that take any number of arguments.
const VARIADIC_FUNCTIONS: [&str; 19] = [
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
    "int4multirange",
    "int8multirange",
    "nummultirange",
    "datemultirange",
    "tsmultirange",
    "tstzmultirange",
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
    let absent = || {
        let shown: Vec<String> = list.iter().map(ToString::to_string).collect();
        no_such_call(&format!("{function}({})", shown.join(", ")))
    };
    let known = NAMED.iter().find(|known| known.function == function).ok_or_else(absent)?;
    let mut given: Vec<Option<FunctionArg>> = arguments.into_iter().map(Some).collect();
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
        if given.len() <= at {
            given.resize(at + 1, None);
        }
        if let Some(place) = given.get_mut(at) {
            *place = Some(unnamed(value.clone()));
        }
    }
    let filled = given.into_iter().enumerate();
    let arguments: Option<Vec<FunctionArg>> =
        filled.map(|(at, argument)| argument.or_else(|| known.default(at))).collect();
    let arguments = arguments.ok_or_else(absent)?;
    Ok(Some(Positional { is_spread: false, arguments }))
}
