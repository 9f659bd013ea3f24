//! The catalog of scalar functions and operators: one entry for each overload.
//!
//! The binder selects an overload with PostgreSQL's rules and casts the arguments to exactly the
//! types of the entry, so an implementation receives values of those types. An operator is an entry
//! under its symbol, for example `&` or `|/`.

mod array_arguments;
mod arrays;
mod catalog;
mod encoded;
mod json;
mod numbers;
mod privileges;
mod records;
mod references;
mod registered;
mod row_functions;
mod sequences;
mod session;
mod strings;
mod text_search;
mod times;
mod transactions;

pub use self::json::json_functions::{json_of_any, write_key, write_value};
pub use self::json::{JsonRecords, JsonStep, POPULATE, assign_member, assigned_json};
pub use self::strings::text::cut as cut_text;
pub use array_arguments::PREFIX as VARIADIC_PREFIX;
pub use arrays::{Polymorphic, Shape, polymorphic};
pub use records::record_function;
pub use registered::{FunctionRegistry, ScalarFunction};
pub use row_functions::{EXPANSION, RowFunction, RowWork, row_function};
pub use session::SERVER_VERSION;
pub(crate) use text_search::triggers::call_builtin;
pub use text_search::vectors::UNNEST_WORDS;
pub use times::interval_ops::moved_in_zone as add_interval;
pub use transactions::ROW_CTID;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Frame;
pub use super::frame::RoutineCall;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, Decimal, TextSettings, Value, ValueRef};

/// The implementation of a function of values.
pub type OfValues = fn(&[ValueRef<'_>]) -> Result<Value>;

/// The implementation of a function that also reads the session.
pub type OfSession = fn(&Frame<'_>, &[ValueRef<'_>]) -> Result<Value>;

/// A function whose arguments are not simply evaluated, or that has no overloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `coalesce`
    Coalesce,
    /// `nullif`
    NullIf,
    /// `greatest`
    Greatest,
    /// `least`
    Least,
    /// Rounding to a number of fractional digits of the second
    RoundSecond,
    /// `now`
    Now,
    /// `current_date`, in the session's time zone
    CurrentDate,
    /// A subscript or slice of an array
    Subscripts,
    /// An array with another element or slice
    AssignSubscripts,
    /// A JSONB value with another member
    AssignMember,
}

/// How a function is evaluated.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// The result is NULL if an argument is; the function is not called then.
    Strict(OfValues),
    /// The function receives NULL arguments.
    NullTolerant(OfValues),
    /// Strict; the result depends on the transaction, but not on the row.
    Stable(OfSession),
    /// As `Stable`, but the function receives NULL arguments.
    StableNullTolerant(OfSession),
    /// Strict; each call may return another value.
    Volatile(OfSession),
    /// A function of the program.
    Registered(&'static ScalarFunction),
    /// A function of the catalog.
    Routine(&'static RoutineCall),
    /// A form with an evaluation of its own.
    Special(Special),
}

/// One overload of a function or operator.
pub struct Builtin {
    /// The function's name, or the operator's symbol.
    pub name: &'static str,
    /// The types of the arguments.
    pub arguments: &'static [DataType],
    /// Whether one or more arguments of any type follow.
    pub is_variadic: bool,
    /// The type of the result.
    pub result: DataType,
    /// How it is evaluated.
    pub implementation: Implementation,
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Builtin) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Builtin {}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Builtin {
    const fn new(
        name: &'static str,
        arguments: &'static [DataType],
        result: DataType,
        implementation: Implementation,
    ) -> Builtin {
        Builtin { name, arguments, is_variadic: false, result, implementation }
    }

    /// Makes the entry of a function of the catalog.
    pub fn of_routine(
        name: &'static str,
        arguments: &'static [DataType],
        result: DataType,
        implementation: Implementation,
    ) -> Builtin {
        Builtin::new(name, arguments, result, implementation)
    }

    /// Declares a special form, which the binder handles by name.
    pub(super) const fn special(name: &'static str, special: Special) -> Builtin {
        Builtin::new(name, &[], DataType::Text, Implementation::Special(special))
    }

    /// Returns whether the function accepts `count` arguments.
    pub fn takes(&self, count: usize) -> bool {
        let declared = self.arguments.len();
        if self.is_variadic { count > declared } else { count == declared }
    }
}

/// Declares a strict function.
const fn strict(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    run: OfValues,
) -> Builtin {
    Builtin::new(name, arguments, result, Implementation::Strict(run))
}

/// Declares a strict function whose result depends on the session, but not on the row.
const fn stable(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    run: OfSession,
) -> Builtin {
    Builtin::new(name, arguments, result, Implementation::Stable(run))
}

/// Declares a function that receives NULL arguments, with more arguments of any type. Their texts
/// depend on the settings of the session.
const fn variadic(name: &'static str, arguments: &'static [DataType], run: OfSession) -> Builtin {
    let implementation = Implementation::StableNullTolerant(run);
    Builtin { is_variadic: true, ..Builtin::new(name, arguments, DataType::Text, implementation) }
}

/// Declares a function whose calls may return different values.
const fn volatile(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    run: OfSession,
) -> Builtin {
    Builtin::new(name, arguments, result, Implementation::Volatile(run))
}

const NUMERIC: DataType = DataType::Numeric(None);

/// All tables, each in the module that implements its functions.
static TABLES: &[&[Builtin]] = &[
    array_arguments::TABLE,
    arrays::TABLE,
    numbers::bits::TABLE,
    strings::bytes::TABLE,
    privileges::PRIVILEGES,
    privileges::COLUMNS,
    catalog::TABLE,
    references::REFERENCES,
    references::VECTORS,
    strings::conversions::TABLE,
    strings::element_patterns::TABLE,
    numbers::double::TABLE,
    strings::encoding::TABLE,
    encoded::bit_strings::TABLE,
    numbers::hashes::TABLE,
    encoded::network::TABLE,
    encoded::zoned_times::TABLE,
    encoded::ranges::INT4,
    encoded::ranges::INT8,
    encoded::ranges::NUM,
    encoded::ranges::DATE,
    encoded::ranges::TS,
    encoded::ranges::TSTZ,
    encoded::log_positions::TABLE,
    encoded::multiranges::INT4,
    encoded::multiranges::INT8,
    encoded::multiranges::NUM,
    encoded::multiranges::DATE,
    encoded::multiranges::TS,
    encoded::multiranges::TSTZ,
    times::fields::TABLE,
    strings::format::TABLE,
    strings::like::TABLE,
    strings::normalization::TABLE,
    numbers::integer::TABLE,
    times::interval_ops::TABLE,
    json::json_changes::TABLE,
    json::json_functions::TABLE,
    json::path::TABLE,
    times::interval_templates::TABLE,
    times::number_input::TABLE,
    times::number_templates::TABLE,
    numbers::numeric::TABLE,
    strings::regular::TABLE,
    strings::regular_arrays::TABLE,
    sequences::TABLE,
    session::TABLE,
    times::template_input::TABLE,
    times::templates::TABLE,
    strings::text::TABLE,
    text_search::dictionaries::TABLE,
    text_search::headlines::TABLE,
    text_search::parsing::TABLE,
    text_search::queries::TABLE,
    text_search::ranking::TABLE,
    text_search::vectors::TABLE,
    transactions::TABLE,
    numbers::trigonometry::TABLE,
];

/// Returns the overloads of a function or operator; empty if there is none of that name.
pub fn overloads(name: &str) -> &'static [&'static Builtin] {
    static INDEX: LazyLock<HashMap<&'static str, Vec<&'static Builtin>>> = LazyLock::new(|| {
        let mut index: HashMap<&'static str, Vec<&'static Builtin>> = HashMap::new();
        for builtin in TABLES.iter().copied().flatten() {
            index.entry(builtin.name).or_default().push(builtin);
        }
        index
    });
    INDEX.get(name).map_or(&[], |found| &found[..])
}

#[cold]
fn mismatch() -> SqlError {
    SqlError::internal("an argument has another type than its function expects")
}

#[cold]
fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, format!("{what} out of range"))
}

#[cold]
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message.into())
}

fn integer(arguments: &[ValueRef<'_>], at: usize) -> Result<i64> {
    arguments.get(at).and_then(|value| value.as_i64()).ok_or_else(mismatch)
}

fn double(arguments: &[ValueRef<'_>], at: usize) -> Result<f64> {
    match arguments.get(at) {
        Some(ValueRef::Double(value)) => Ok(*value),
        _ => Err(mismatch()),
    }
}

/// Returns a NUMERIC, which may be NaN or infinite.
fn decimal(arguments: &[ValueRef<'_>], at: usize) -> Result<Decimal> {
    arguments.get(at).and_then(|value| value.as_decimal()).ok_or_else(mismatch)
}

fn text<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<&'v str> {
    match arguments.get(at) {
        Some(ValueRef::Text(value)) => Ok(value),
        _ => Err(mismatch()),
    }
}

fn bytes<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<&'v [u8]> {
    match arguments.get(at) {
        Some(ValueRef::Bytea(value)) => Ok(value),
        _ => Err(mismatch()),
    }
}

/// Maximum bytes of a text or BYTEA value that a function returns.
const SIZE_LIMIT: usize = 256 << 20;

fn check_size(bytes: usize) -> Result<()> {
    if bytes > SIZE_LIMIT {
        let message = format!("a text of {bytes} bytes is longer than the limit of {SIZE_LIMIT}");
        return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
    }
    Ok(())
}

fn count(number: usize) -> Result<Value> {
    i32::try_from(number).map(Value::Integer).map_err(|_| out_of_range("integer"))
}

/// Appends a value as `concat` and `format` write it: nothing for NULL, one letter for BOOLEAN.
fn append(out: &mut String, value: ValueRef<'_>, settings: &TextSettings) -> Result<()> {
    crate::types::format_value(out, value, settings);
    check_size(out.len())
}
