//! Scalar functions that the program registers, beside those of the catalog.
//!
//! - FUNCTION-1: the value of a registered function has the declared type, or the call fails.

use std::collections::HashMap;

use parking_lot::RwLock;

use super::{Builtin, Implementation, overloads};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, Value, ValueRef, checked_text};

/// The body of a function.
type FunctionBody = dyn Fn(&[ValueRef<'_>]) -> Result<Value> + Send + Sync;

/// A scalar function in Rust, for
/// [`SqlDatabase::register_function`](crate::SqlDatabase::register_function).
///
/// By default the function is deterministic and is not called with NULL: the result is
/// NULL if an argument is.
pub struct ScalarFunction {
    name: String,
    arguments: Vec<DataType>,
    result: DataType,
    takes_nulls: bool,
    is_volatile: bool,
    body: Box<FunctionBody>,
}

impl std::fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl ScalarFunction {
    /// A function of that name. The body gets values of exactly the types of the arguments, and
    /// returns one of the type of the result, or NULL. A name with capital letters is called in
    /// quotation marks.
    pub fn new(
        name: impl Into<String>,
        arguments: &[DataType],
        result: DataType,
        body: impl Fn(&[ValueRef<'_>]) -> Result<Value> + Send + Sync + 'static,
    ) -> ScalarFunction {
        let (name, arguments) = (name.into(), arguments.to_vec());
        let body = Box::new(body);
        ScalarFunction { name, arguments, result, takes_nulls: false, is_volatile: false, body }
    }

    /// The function is called with NULL, too.
    #[must_use]
    pub fn takes_nulls(mut self) -> ScalarFunction {
        self.takes_nulls = true;
        self
    }

    /// The function may return another value for the same arguments. It is called for each row, and
    /// generated columns cannot use it.
    #[must_use]
    pub fn volatile(mut self) -> ScalarFunction {
        self.is_volatile = true;
        self
    }

    /// Returns whether it is called with NULL.
    pub(in crate::expression) fn is_called_with_nulls(&self) -> bool {
        self.takes_nulls
    }

    /// Returns whether calls with the same arguments may return different values.
    pub(in crate::expression) fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls the body.
    pub(in crate::expression) fn call(&self, arguments: &[ValueRef<'_>]) -> Result<Value> {
        let value = (self.body)(arguments)?;
        match &value {
            Value::Null => {}
            Value::Text(text) if value.is_of(self.result) => drop(checked_text(text)?),
            value if value.is_of(self.result) => {}
            _ => {
                let message = format!(
                    "the function {} returned a value that is not of its type {}",
                    self.name, self.result
                );
                return Err(SqlError::new(SqlState::DatatypeMismatch, message));
            }
        }
        Ok(value)
    }
}

/// The registered functions of a database.
#[derive(Debug, Default)]
pub struct FunctionRegistry(RwLock<HashMap<String, Vec<&'static Builtin>>>);

impl FunctionRegistry {
    /// Adds a function. It stays until the process ends, since plans refer to it.
    pub fn add(&self, function: ScalarFunction) -> Result<()> {
        let mut known = self.0.write();
        let registered = known.entry(function.name.clone()).or_default();
        let same = |other: &&&Builtin| {
            other.arguments.len() == function.arguments.len()
                && other.arguments.iter().zip(&function.arguments).all(|(a, b)| a.is_same_kind(*b))
        };
        if registered.iter().chain(overloads(&function.name)).any(|other| same(&other)) {
            let message = format!("function \"{}\" already exists", function.name);
            return Err(SqlError::new(SqlState::DuplicateFunction, message)
                .with_detail("There is one with the same types of arguments."));
        }
        let function: &'static ScalarFunction = Box::leak(Box::new(function));
        let arguments = &function.arguments[..];
        let implementation = Implementation::Registered(function);
        let builtin = Builtin::new(&function.name, arguments, function.result, implementation);
        registered.push(Box::leak(Box::new(builtin)));
        Ok(())
    }

    /// Returns the overloads of a name.
    pub fn named(&self, name: &str) -> Vec<&'static Builtin> {
        self.0.read().get(name).cloned().unwrap_or_default()
    }
}
