//! Functions of integers, exact numbers and floating-point numbers.

pub(super) mod bits;
pub(super) mod double;
pub(super) mod hashes;
pub(super) mod integer;
pub(super) mod numeric;
pub(super) mod trigonometry;

use crate::error::{SqlError, SqlState};

/// Reports the logarithm of zero or of a negative number.
#[cold]
fn undefined_logarithm(is_zero: bool) -> SqlError {
    let what = if is_zero { "zero" } else { "a negative number" };
    let message = format!("cannot take logarithm of {what}");
    SqlError::new(SqlState::InvalidArgumentForLogarithm, message)
}

/// Reports arguments that `width_bucket` does not take.
#[cold]
fn no_width_bucket(message: &str) -> SqlError {
    SqlError::new(SqlState::InvalidArgumentForWidthBucket, message)
}
