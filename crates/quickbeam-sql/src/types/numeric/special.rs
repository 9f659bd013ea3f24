//! The numbers NaN, Infinity and -Infinity, which have no digits.
//!
//! The scale of such a number is [`SPECIAL`], and its integer names it. So rows keep it in the
//! bytes of any other number. The functions here compute what has such an operand; all others
//! return early if an operand is not finite.

use std::cmp::Ordering;

use super::{MAX_PRECISION, Numeric};
use crate::error::{Result, SqlError, SqlState};

/// The scale of a number without digits.
const SPECIAL: u8 = u8::MAX;

impl Numeric {
    /// Not a number: equal to itself, and greater than all others.
    pub const NAN: Numeric = Numeric { high: 0, low: 2, scale: SPECIAL };
    /// Greater than all numbers with digits.
    pub const INFINITY: Numeric = Numeric { high: 0, low: 1, scale: SPECIAL };
    /// Less than all other numbers.
    pub const NEGATIVE_INFINITY: Numeric = Numeric { high: -1, low: u64::MAX, scale: SPECIAL };

    /// Returns whether the number has digits.
    #[inline]
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.scale <= MAX_PRECISION
    }

    /// Returns whether this is NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        !self.is_finite() && self.low == Numeric::NAN.low
    }

    /// Returns the number of a stored integer and scale.
    pub fn restore(mantissa: i128, scale: u8) -> Result<Numeric> {
        match (mantissa, scale) {
            (2, SPECIAL) => Ok(Numeric::NAN),
            (1, SPECIAL) => Ok(Numeric::INFINITY),
            (-1, SPECIAL) => Ok(Numeric::NEGATIVE_INFINITY),
            _ => Numeric::new(mantissa, scale),
        }
    }

    /// Returns the number without digits that a word names.
    #[must_use]
    pub fn named(word: &str) -> Option<Numeric> {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if is("nan") {
            Some(Numeric::NAN)
        } else if is("inf") || is("infinity") || is("+inf") || is("+infinity") {
            Some(Numeric::INFINITY)
        } else if is("-inf") || is("-infinity") {
            Some(Numeric::NEGATIVE_INFINITY)
        } else {
            None
        }
    }

    /// Returns the name of a number without digits; any text for others.
    pub(super) fn name(self) -> &'static str {
        match (self.is_nan(), self.high < 0) {
            (true, _) => "NaN",
            (_, true) => "-Infinity",
            _ => "Infinity",
        }
    }

    /// Returns the infinity of that sign, or NaN for zero.
    fn infinite(sign: i32) -> Numeric {
        match sign.cmp(&0) {
            Ordering::Less => Numeric::NEGATIVE_INFINITY,
            Ordering::Equal => Numeric::NAN,
            Ordering::Greater => Numeric::INFINITY,
        }
    }

    /// Returns the place of a number without digits among all: below, among or above the others.
    fn place(self) -> i32 {
        match (self.is_finite(), self.is_nan()) {
            (true, _) => 0,
            (_, true) => 2,
            _ => self.signum(),
        }
    }

    /// Compares if an operand is not finite.
    pub(super) fn compare_special(self, other: Numeric) -> Ordering {
        self.place().cmp(&other.place())
    }

    /// Adds if an operand is not finite.
    #[cold]
    pub(super) fn add_special(self, other: Numeric) -> Numeric {
        match (self.place(), other.place()) {
            (2, _) | (_, 2) => Numeric::NAN,
            (0, sign) | (sign, 0) => Numeric::infinite(sign),
            (a, b) => Numeric::infinite(if a == b { a } else { 0 }),
        }
    }

    /// Multiplies if an operand is not finite.
    #[cold]
    pub(super) fn multiply_special(self, other: Numeric) -> Numeric {
        if self.is_nan() || other.is_nan() {
            return Numeric::NAN;
        }
        Numeric::infinite(self.signum() * other.signum())
    }

    /// Divides if an operand is not finite.
    #[cold]
    pub(super) fn divide_special(self, other: Numeric) -> Result<Numeric> {
        match (self.place(), other.place()) {
            (2, _) | (_, 2) => Ok(Numeric::NAN),
            (0, _) => Ok(Numeric::ZERO),
            (_, 0) if other.is_zero() => Err(by_zero()),
            (sign, 0) => Ok(Numeric::infinite(sign * other.signum())),
            _ => Ok(Numeric::NAN),
        }
    }

    /// Returns the remainder if an operand is not finite.
    #[cold]
    pub(super) fn remainder_special(self, other: Numeric) -> Result<Numeric> {
        match (self.place(), other.place()) {
            (2, _) | (_, 2) => Ok(Numeric::NAN),
            (0, _) => Ok(self),
            (_, 0) if other.is_zero() => Err(by_zero()),
            _ => Ok(Numeric::NAN),
        }
    }

    /// Returns the negated number without digits.
    #[cold]
    pub(super) fn negate_special(self) -> Numeric {
        if self.is_nan() { self } else { Numeric::infinite(-self.signum()) }
    }

    /// Returns the double-precision number.
    #[cold]
    pub(super) fn special_to_f64(self) -> f64 {
        match self.place() {
            2 => f64::NAN,
            sign => f64::INFINITY * f64::from(sign),
        }
    }

    /// Returns the number without digits that a floating-point number is.
    #[cold]
    pub(super) fn of_special(value: f64) -> Numeric {
        if value.is_nan() { Numeric::NAN } else { Numeric::infinite(value.signum() as i32) }
    }

    /// Returns the error of a number without digits where a type has digits only. NaN is an error
    /// too, unlike in PostgreSQL, so that columns of a precision stay integers in vectors.
    #[cold]
    pub(super) fn no_precision(self, precision: u8, scale: u8) -> SqlError {
        if self.is_nan() {
            return SqlError::unsupported(format_args!("NaN in NUMERIC({precision}, {scale})"));
        }
        SqlError::new(SqlState::NumericValueOutOfRange, "numeric field overflow").with_detail(
            format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            ),
        )
    }
}

#[cold]
fn by_zero() -> SqlError {
    SqlError::new(SqlState::DivisionByZero, "division by zero")
}
