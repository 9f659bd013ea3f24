//! The syntax of regular expressions: characters, tokens and the syntax tree.

pub(super) mod bracket;
pub(super) mod character_set;
pub(super) mod classes;
pub(super) mod lexer;
pub(super) mod options;
pub(super) mod parser;
pub(super) mod pieces;

use crate::error::{SqlError, SqlState};

/// Maximum ranges of characters of all sets of an expression.
const RANGES_LIMIT: usize = 4 << 20;

#[cold]
pub(super) fn invalid(what: &str) -> SqlError {
    let message = format!("invalid regular expression: {what}");
    SqlError::new(SqlState::InvalidRegularExpression, message)
}

/// Returns the error of an expression that would take too much memory or time.
#[cold]
pub(super) fn too_complex() -> SqlError {
    invalid("regular expression is too complex")
}
