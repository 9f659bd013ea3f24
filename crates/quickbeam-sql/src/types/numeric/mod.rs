//! NUMERIC: exact decimal numbers.
//!
//! A [`Numeric`] is a 128-bit integer and a scale, the count of digits after the decimal point. It
//! has up to 38 digits, and a result with more digits is an error. `special` has NaN and the
//! infinities. `decimal` continues with numbers of any length where `Numeric` has such an error,
//! and `long` has these numbers as values. `docs/adr/0003-exact-numbers.md` explains the two forms.
//!
//! - NUM-1: the absolute value of the integer is below 10^38, and the scale is at most 38, unless
//!   the number has no digits.
//! - NUM-2: numbers that differ only in scale are equal, have equal hashes and equal key encodings.

mod decimal;
mod key;
mod limits;
mod long;
mod math;
mod special;
mod wide;
mod wide_math;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use ethnum::I256;
use quickbeam::invariant;

pub(crate) use self::decimal::{Decimal, LONG_SCALE};
pub use self::limits::NumericLimits;
pub use self::long::{LongNumeric, LongNumericRef};
use crate::error::{Result, SqlError, SqlState};

/// Maximum number of digits of a [`Numeric`].
pub const MAX_PRECISION: u8 = 38;

/// Digits that fit into 64 bits.
pub const SHORT_PRECISION: u8 = 18;

const POWERS: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Minimum significant digits of a quotient.
const QUOTIENT_DIGITS: i32 = 16;

/// Minimum significant digits of the result of a function.
const SIGNIFICANT: i64 = 16;

/// An exact decimal number of up to 38 digits. Two halves instead of an `i128` keep the alignment
/// at eight bytes.
#[derive(Clone, Copy, Debug)]
pub struct Numeric {
    high: i64,
    low: u64,
    scale: u8,
}

#[cold]
pub(super) fn overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value overflows numeric format")
}

/// Returns 10^`exponent`, or the largest integer beyond 38.
pub fn decimal_power(exponent: u8) -> i128 {
    POWERS.get(usize::from(exponent)).copied().unwrap_or(i128::MAX)
}

/// Divides by 10^`digits` and rounds half away from zero.
fn divide_by_power(value: I256, digits: u32) -> I256 {
    if digits > 76 {
        return I256::ZERO;
    }
    let divisor = I256::new(10).pow(digits);
    let (quotient, rest) = (value / divisor, value % divisor);
    if rest.abs() >= divisor - rest.abs() { quotient + value.signum() } else { quotient }
}

impl Numeric {
    /// Zero.
    pub const ZERO: Numeric = Numeric { high: 0, low: 0, scale: 0 };

    fn raw(mantissa: i128, scale: u8) -> Numeric {
        invariant!(
            NUM_1,
            scale <= MAX_PRECISION
                && mantissa.unsigned_abs() < decimal_power(MAX_PRECISION) as u128,
            "{mantissa} with scale {scale}"
        );
        Numeric { high: (mantissa >> 64) as i64, low: mantissa as u64, scale }
    }

    /// Returns `mantissa` / 10^`scale`, or an error if it has more than 38 digits.
    pub fn new(mantissa: i128, scale: u8) -> Result<Numeric> {
        if scale > MAX_PRECISION || mantissa.unsigned_abs() >= decimal_power(MAX_PRECISION) as u128
        {
            return Err(overflow());
        }
        Ok(Numeric::raw(mantissa, scale))
    }

    /// Returns the number without its decimal point, as an integer.
    #[must_use]
    pub fn mantissa(self) -> i128 {
        (i128::from(self.high) << 64) | i128::from(self.low)
    }

    /// Returns the number of digits after the decimal point.
    #[must_use]
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// Returns whether the number is zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.high == 0 && self.low == 0
    }

    /// Returns the sign: -1, 0 or 1.
    #[must_use]
    pub fn signum(self) -> i32 {
        self.mantissa().signum() as i32
    }

    /// Returns `mantissa` / 10^`scale`, or an error if it has more than 38 digits.
    fn from_wide(mantissa: I256, scale: u32) -> Result<Numeric> {
        let limit = I256::new(decimal_power(MAX_PRECISION));
        if scale > u32::from(MAX_PRECISION) || mantissa.abs() >= limit {
            return Err(overflow());
        }
        Ok(Numeric::raw(mantissa.as_i128(), scale as u8))
    }

    /// Returns both mantissas at the larger scale, and that scale, if they fit 128 bits.
    #[inline]
    fn aligned_narrow(self, other: Numeric) -> Option<(i128, i128, u8)> {
        let scale = self.scale.max(other.scale);
        let widen = |n: Numeric| match scale - n.scale {
            0 => Some(n.mantissa()),
            more => n.mantissa().checked_mul(decimal_power(more)),
        };
        Some((widen(self)?, widen(other)?, scale))
    }

    fn aligned(self, other: Numeric) -> (I256, I256, u8) {
        let scale = self.scale.max(other.scale);
        let widen =
            |n: Numeric| I256::new(n.mantissa()) * I256::new(decimal_power(scale - n.scale));
        (widen(self), widen(other), scale)
    }

    /// Returns the largest integer that is not greater than the number times 10^`scale`, or `None`
    /// beyond 64 bits.
    #[must_use]
    pub fn scaled_floor(self, scale: u8) -> Option<i64> {
        if !self.is_finite() {
            return None;
        }
        let mantissa = self.mantissa();
        let floor = match scale.checked_sub(self.scale) {
            Some(more) => mantissa.checked_mul(decimal_power(more))?,
            None => mantissa.div_euclid(decimal_power(self.scale - scale)),
        };
        i64::try_from(floor).ok()
    }

    /// Returns the sum; its scale is the larger of the two.
    pub fn checked_add(self, other: Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(self.add_special(other));
        }
        let (a, b, scale) = self.aligned(other);
        Numeric::from_wide(a + b, u32::from(scale))
    }

    /// Returns the difference; its scale is the larger of the two.
    pub fn checked_sub(self, other: Numeric) -> Result<Numeric> {
        self.checked_add(other.negate())
    }

    /// Returns the product; its scale is the sum of the two.
    pub fn checked_mul(self, other: Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(self.multiply_special(other));
        }
        let product = I256::new(self.mantissa()) * I256::new(other.mantissa());
        Numeric::from_wide(product, u32::from(self.scale) + u32::from(other.scale))
    }

    /// Returns the quotient with at least 16 significant digits. Its scale is the one PostgreSQL
    /// selects. A quotient that may have more than 38 digits at that scale is an error.
    pub fn checked_div(self, other: Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return self.divide_special(other);
        }
        if other.is_zero() {
            return Err(SqlError::new(SqlState::DivisionByZero, "division by zero"));
        }
        let (weight, first) = self.leading_group();
        let (other_weight, other_first) = other.leading_group();
        let weight = weight - other_weight - i32::from(first <= other_first);
        let wanted = (QUOTIENT_DIGITS - weight * 4)
            .max(i32::from(self.scale))
            .max(i32::from(other.scale))
            .max(0);
        // The quotient has at most one digit more.
        let digits = if self.is_zero() { 0 } else { self.exponent() - other.exponent() + 1 };
        let scale = wanted;
        if scale + digits.max(0) > i32::from(MAX_PRECISION) {
            return Err(overflow());
        }
        let shift = scale + i32::from(other.scale) - i32::from(self.scale);
        let (mut a, mut b) = (I256::new(self.mantissa()), I256::new(other.mantissa()));
        let factor = I256::new(10).pow(shift.unsigned_abs());
        if shift >= 0 {
            a = a.checked_mul(factor).ok_or_else(overflow)?;
        } else {
            b = b.checked_mul(factor).ok_or_else(overflow)?;
        }
        let (quotient, rest) = (a / b, a % b);
        let rounded = if rest.abs() >= b.abs() - rest.abs() {
            quotient + a.signum() * b.signum()
        } else {
            quotient
        };
        Numeric::from_wide(rounded, scale as u32)
    }

    /// Returns the remainder of truncated division; it has the sign of `self`.
    pub fn checked_rem(self, other: Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return self.remainder_special(other);
        }
        if other.is_zero() {
            return Err(SqlError::new(SqlState::DivisionByZero, "division by zero"));
        }
        let (a, b, scale) = self.aligned(other);
        Numeric::from_wide(a % b, u32::from(scale))
    }

    /// Returns the negated number.
    #[must_use]
    pub fn negate(self) -> Numeric {
        if !self.is_finite() {
            return self.negate_special();
        }
        Numeric::raw(-self.mantissa(), self.scale)
    }

    /// Returns the absolute value.
    #[must_use]
    pub fn absolute(self) -> Numeric {
        if !self.is_finite() {
            return if self.signum() < 0 { Numeric::INFINITY } else { self };
        }
        Numeric::raw(self.mantissa().abs(), self.scale)
    }

    /// Rounds half away from zero, or pads, to `scale` digits after the point. A negative scale
    /// rounds before the point.
    pub fn round(self, scale: i32) -> Result<Numeric> {
        if !self.is_finite() {
            return Ok(self);
        }
        if scale > i32::from(MAX_PRECISION) {
            return Err(overflow());
        }
        if scale >= i32::from(self.scale) {
            let wide =
                I256::new(self.mantissa()) * I256::new(decimal_power(scale as u8 - self.scale));
            if wide.abs() >= I256::new(decimal_power(MAX_PRECISION)) {
                return Err(overflow());
            }
            return Numeric::new(wide.as_i128(), scale as u8);
        }
        let dropped = (i32::from(self.scale) - scale) as u32;
        let rounded = divide_by_power(I256::new(self.mantissa()), dropped);
        if scale >= 0 {
            return Numeric::new(rounded.as_i128(), scale as u8);
        }
        if rounded == I256::ZERO {
            return Ok(Numeric::ZERO);
        }
        let wide =
            rounded.checked_mul(I256::new(decimal_power(scale.unsigned_abs().min(38) as u8)));
        Numeric::from_wide(wide.ok_or_else(overflow)?, 0)
    }

    /// Truncates to `scale` digits after the point. A negative scale zeroes digits before the
    /// point.
    #[must_use]
    pub fn truncate(self, scale: i32) -> Numeric {
        if !self.is_finite() || scale >= i32::from(self.scale) {
            return self;
        }
        let dropped = i32::from(self.scale) - scale;
        let Ok(dropped @ 0..=MAX_PRECISION) = u8::try_from(dropped) else { return Numeric::ZERO };
        let kept = self.mantissa() / decimal_power(dropped);
        match u8::try_from(scale) {
            Ok(scale) => Numeric::raw(kept, scale),
            // The result has no more digits than the number had.
            Err(_) => Numeric::raw(kept * decimal_power(dropped - self.scale), 0),
        }
    }

    /// Returns the largest integer that is not greater.
    pub fn floor(self) -> Result<Numeric> {
        if !self.is_finite() {
            return Ok(self);
        }
        let unit = decimal_power(self.scale);
        Numeric::new(self.mantissa().div_euclid(unit), 0)
    }

    /// Returns the smallest integer that is not less.
    pub fn ceil(self) -> Result<Numeric> {
        self.negate().floor().map(Numeric::negate)
    }

    /// Rounds to the scale of NUMERIC(`precision`, `scale`). Returns an error if the integer part
    /// has more digits than the precision leaves.
    pub fn fit(self, precision: u8, scale: u8) -> Result<Numeric> {
        if !self.is_finite() {
            return Err(self.no_precision(precision, scale));
        }
        let fitted = self.round(i32::from(scale)).ok();
        fitted.filter(|n| n.mantissa().abs() < decimal_power(precision)).ok_or_else(|| {
            let most = match precision.saturating_sub(scale) {
                0 => "1".to_owned(),
                digits => format!("10^{digits}"),
            };
            SqlError::new(SqlState::NumericValueOutOfRange, "numeric field overflow").with_detail(
                format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute value less than {most}."
                ),
            )
        })
    }

    /// Returns the nearest integer, half away from zero, or `None` if it is out of range.
    #[must_use]
    pub fn to_i64(self) -> Option<i64> {
        let whole = self.round(0).ok().filter(|n| n.is_finite())?;
        i64::try_from(whole.mantissa()).ok()
    }

    /// Returns the nearest double-precision number.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        if !self.is_finite() {
            return self.special_to_f64();
        }
        // Conversion through text rounds once. Numbers of up to 15 digits are exact without it.
        let mantissa = self.mantissa();
        if mantissa.abs() < (1 << 53) && self.scale <= 22 {
            return mantissa as f64 / decimal_power(self.scale) as f64;
        }
        format!("{mantissa}e-{}", self.scale).parse().unwrap_or(f64::NAN)
    }

    /// Returns the nearest single-precision number.
    #[must_use]
    pub fn to_f32(self) -> f32 {
        if !self.is_finite() {
            return self.special_to_f64() as f32;
        }
        format!("{}e-{}", self.mantissa(), self.scale).parse().unwrap_or(f32::NAN)
    }

    /// Converts the 15-digit decimal form of a double-precision number, as PostgreSQL does.
    pub fn from_f64(value: f64) -> Result<Numeric> {
        Numeric::from_digits(value, 14)
    }

    /// As [`from_f64`](Self::from_f64), with the 6 digits of a real.
    pub fn from_f32(value: f32) -> Result<Numeric> {
        Numeric::from_digits(f64::from(value), 5)
    }

    fn from_digits(value: f64, behind: usize) -> Result<Numeric> {
        if !value.is_finite() {
            return Ok(Numeric::of_special(value));
        }
        let number = Numeric::parse(&format!("{value:.behind$e}")).ok_or_else(overflow)?;
        let stripped = number.stripped();
        if stripped.scale == 0 { Ok(number.truncate(0)) } else { Ok(stripped) }
    }

    /// Returns the number without trailing zeros after the point.
    #[must_use]
    pub fn stripped(self) -> Numeric {
        if !self.is_finite() {
            return self;
        }
        let (mut mantissa, mut scale) = (self.mantissa(), self.scale);
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Numeric::raw(mantissa, scale)
    }

    /// Reads digits with an optional point and exponent, without blanks. Returns `None` if the text
    /// is not a number or has too many digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Numeric> {
        let (negative, digits) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            all => (false, all),
        };
        let end = digits.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(digits.len());
        let (number, exponent) = (digits.get(..end)?, digits.get(end..)?);
        let exponent: i64 = match exponent {
            [] => 0,
            [_, rest @ ..] => std::str::from_utf8(rest).ok()?.parse().ok()?,
        };
        let (mut mantissa, mut behind, mut count, mut point) = (0_i128, 0_i64, 0, false);
        for &byte in number {
            match byte {
                b'.' if !point => point = true,
                b'0'..=b'9' if mantissa < decimal_power(MAX_PRECISION - 1) => {
                    count += 1;
                    mantissa = mantissa * 10 + i128::from(byte - b'0');
                    behind += i64::from(point);
                }
                _ => return None,
            }
        }
        if count == 0 {
            return None;
        }
        let scale = behind.checked_sub(exponent)?;
        let signed = if negative { -mantissa } else { mantissa };
        Numeric::scaled(signed, scale)
    }

    /// Returns `mantissa` / 10^`scale` for any scale.
    fn scaled(mantissa: i128, scale: i64) -> Option<Numeric> {
        if mantissa == 0 {
            return Numeric::new(0, u8::try_from(scale.max(0)).ok()?).ok();
        }
        if scale < 0 {
            let factor = *POWERS.get(usize::try_from(-scale).ok()?)?;
            return Numeric::new(mantissa.checked_mul(factor)?, 0).ok();
        }
        Numeric::new(mantissa, u8::try_from(scale).ok()?).ok()
    }

    /// Returns the power of ten of the first digit; 0 for zero.
    pub(super) fn exponent(self) -> i32 {
        let magnitude = self.mantissa().unsigned_abs();
        magnitude.checked_ilog10().map_or(0, |log| log as i32 - i32::from(self.scale))
    }

    /// Returns the position of the first group of four digits, counted from the point, and its
    /// value.
    pub(super) fn leading_group(self) -> (i32, i128) {
        let weight = self.exponent().div_euclid(4);
        let shift = weight * 4 + i32::from(self.scale);
        let magnitude = self.mantissa().abs();
        let first = if shift >= 0 {
            magnitude / decimal_power(shift.min(38) as u8)
        } else {
            magnitude * decimal_power(shift.unsigned_abs() as u8)
        };
        (weight, first)
    }

    /// Returns the sign, the power of ten of the first digit, and the digits without trailing
    /// zeros, for key encoding.
    pub(crate) fn digits(self) -> (i32, i32, u128) {
        let exponent = self.exponent();
        let mut magnitude = self.mantissa().unsigned_abs();
        while magnitude != 0 && magnitude.is_multiple_of(10) {
            magnitude /= 10;
        }
        (self.signum(), exponent, magnitude)
    }
}

macro_rules! from_integers {
    ($($type:ty),*) => {
        $(impl From<$type> for Numeric {
            fn from(value: $type) -> Numeric {
                Numeric::raw(i128::from(value), 0)
            }
        })*
    };
}

from_integers!(i32, i64, u32, u64);

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if !self.is_finite() || !other.is_finite() {
            return self.compare_special(*other);
        }
        if let Some((a, b, _)) = self.aligned_narrow(*other) {
            return a.cmp(&b);
        }
        let (a, b, _) = self.aligned(*other);
        a.cmp(&b)
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let plain = self.stripped();
        plain.mantissa().hash(state);
        plain.scale.hash(state);
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_finite() {
            return f.write_str(self.name());
        }
        let mantissa = self.mantissa();
        let sign = if mantissa < 0 { "-" } else { "" };
        let (unit, width) = (decimal_power(self.scale).unsigned_abs(), usize::from(self.scale));
        let magnitude = mantissa.unsigned_abs();
        if width == 0 {
            return write!(f, "{sign}{magnitude}");
        }
        write!(f, "{sign}{}.{:0width$}", magnitude / unit, magnitude % unit)
    }
}
