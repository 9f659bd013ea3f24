//! A NUMERIC for computing: [`Numeric`] where it holds the number, [`WideNumber`] where not.
//!
//! Above: operators, functions, aggregates and casts. Every function tries the short form first. An
//! overflow of the short form leads to the long one, so short numbers pay nothing for it.
//!
//! `WideNumber::into_decimal` makes all long results, so a number that `Numeric` holds is short.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;

use super::long::{LongNumeric, LongNumericRef, MAX_SCALE};
use super::wide::{MAX_WHOLE_DIGITS, WideNumber};
use super::{MAX_PRECISION, Numeric, overflow};
use crate::error::{Result, SqlError, SqlState};

/// A NUMERIC of any length.
#[derive(Clone, Debug)]
pub(crate) enum Decimal {
    Short(Numeric),
    /// Of more than 38 digits.
    Long(Box<WideNumber>),
}

impl From<Numeric> for Decimal {
    fn from(number: Numeric) -> Decimal {
        Decimal::Short(number)
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Decimal {
        Decimal::Short(Numeric::from(number))
    }
}

impl LongNumericRef<'_> {
    /// Returns the number for computing.
    pub(crate) fn decimal(self) -> Decimal {
        Decimal::Long(Box::new(WideNumber::of_long(self)))
    }
}

impl Decimal {
    /// Returns the number as bytes, or `None` if it is short.
    pub(crate) fn to_long(&self) -> Option<LongNumeric> {
        match self {
            Decimal::Short(_) => None,
            Decimal::Long(number) => Some(number.to_long()),
        }
    }

    /// Returns the number, or `None` if it is long.
    pub(crate) fn short(&self) -> Option<Numeric> {
        match self {
            Decimal::Short(number) => Some(*number),
            Decimal::Long(_) => None,
        }
    }

    /// Returns the integer divided by 10^`scale`.
    pub(crate) fn of_integer(integer: i128, scale: u32) -> Result<Decimal> {
        WideNumber::new(integer.into(), scale).into_decimal()
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.short().is_none_or(Numeric::is_finite)
    }

    pub(crate) fn is_nan(&self) -> bool {
        self.short().is_some_and(Numeric::is_nan)
    }

    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Decimal::Short(number) => number.is_zero(),
            Decimal::Long(number) => number.is_zero(),
        }
    }

    pub(crate) fn signum(&self) -> i32 {
        match self {
            Decimal::Short(number) => number.signum(),
            Decimal::Long(number) => number.signum(),
        }
    }

    /// Returns the number of digits after the point; 255 of a number without digits.
    pub(crate) fn scale(&self) -> u32 {
        match self {
            Decimal::Short(number) => number.scale().into(),
            Decimal::Long(number) => number.scale,
        }
    }

    /// Returns a number with digits in the long form.
    pub(super) fn wide(&self) -> WideNumber {
        match self {
            Decimal::Short(number) => WideNumber::of_short(*number),
            Decimal::Long(number) => (**number).clone(),
        }
    }

    /// Returns a short number of the same sign.
    fn proxy(&self) -> Numeric {
        match self {
            Decimal::Short(number) => *number,
            Decimal::Long(number) => Numeric::from(number.signum()),
        }
    }

    /// Returns both numbers, or short ones of their signs, if one has no digits.
    fn specials(&self, other: &Decimal) -> Option<(Numeric, Numeric)> {
        let is_special = !self.is_finite() || !other.is_finite();
        is_special.then(|| (self.proxy(), other.proxy()))
    }

    /// Applies a function of short numbers, or one of long numbers where that fails.
    fn combine(
        &self,
        other: &Decimal,
        short: fn(Numeric, Numeric) -> Result<Numeric>,
        wide: fn(&WideNumber, &WideNumber) -> Result<WideNumber>,
    ) -> Result<Decimal> {
        if let (Decimal::Short(a), Decimal::Short(b)) = (self, other)
            && let Ok(result) = short(*a, *b)
        {
            return Ok(Decimal::Short(result));
        }
        match self.specials(other) {
            Some((a, b)) => short(a, b).map(Decimal::Short),
            None => wide(&self.wide(), &other.wide())?.into_decimal(),
        }
    }

    pub(crate) fn checked_add(&self, other: &Decimal) -> Result<Decimal> {
        self.combine(other, Numeric::checked_add, |a, b| Ok(a.plus(b)))
    }

    pub(crate) fn checked_sub(&self, other: &Decimal) -> Result<Decimal> {
        self.combine(other, Numeric::checked_sub, |a, b| Ok(a.plus(&b.negated())))
    }

    pub(crate) fn checked_mul(&self, other: &Decimal) -> Result<Decimal> {
        self.combine(other, Numeric::checked_mul, WideNumber::times)
    }

    /// Returns the quotient at the scale that PostgreSQL selects.
    pub(crate) fn checked_div(&self, other: &Decimal) -> Result<Decimal> {
        self.combine(other, Numeric::checked_div, WideNumber::over)
    }

    /// Returns the remainder of truncated division; it has the sign of `self`.
    pub(crate) fn checked_rem(&self, other: &Decimal) -> Result<Decimal> {
        // A finite number is its own remainder by an infinite one.
        if matches!(self, Decimal::Long(_)) && !other.is_finite() && !other.is_nan() {
            return Ok(self.clone());
        }
        self.combine(other, Numeric::checked_rem, WideNumber::remainder)
    }

    /// Returns the quotient without its fraction.
    pub(crate) fn whole_quotient(&self, other: &Decimal) -> Result<Decimal> {
        match self.specials(other) {
            Some((a, b)) => a.checked_div(b).map(Decimal::Short),
            None => self.wide().whole_quotient(&other.wide())?.into_decimal(),
        }
    }

    pub(crate) fn negate(&self) -> Decimal {
        match self {
            Decimal::Short(number) => Decimal::Short(number.negate()),
            Decimal::Long(number) => Decimal::Long(Box::new(number.negated())),
        }
    }

    pub(crate) fn absolute(&self) -> Decimal {
        match self {
            Decimal::Short(number) => Decimal::Short(number.absolute()),
            Decimal::Long(number) if number.signum() < 0 => self.negate(),
            Decimal::Long(_) => self.clone(),
        }
    }

    /// Rounds half away from zero, or pads, to `scale` digits after the point. A negative scale
    /// rounds before the point.
    pub(crate) fn round(&self, scale: i64) -> Result<Decimal> {
        let scale = scale.clamp(-MAX_WHOLE_DIGITS - 1, MAX_SCALE.into());
        if let Decimal::Short(number) = self
            && let Ok(rounded) = number.round(scale as i32)
        {
            return Ok(Decimal::Short(rounded));
        }
        self.wide().rounded(scale).into_decimal()
    }

    /// As [`round`](Self::round), towards zero.
    pub(crate) fn truncate(&self, scale: i64) -> Result<Decimal> {
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let scale = scale.clamp(-MAX_WHOLE_DIGITS - 1, MAX_SCALE.into());
        self.wide().truncated(scale).into_decimal()
    }

    /// Returns the largest integer that is not greater.
    pub(crate) fn floor(&self) -> Result<Decimal> {
        if let Decimal::Short(number) = self {
            return number.floor().map(Decimal::Short);
        }
        let whole = self.truncate(0)?;
        match self.signum() < 0 && whole.compare(self).is_ne() {
            true => whole.checked_sub(&Decimal::from(1)),
            false => Ok(whole),
        }
    }

    /// Returns the smallest integer that is not less.
    pub(crate) fn ceil(&self) -> Result<Decimal> {
        Ok(self.negate().floor()?.negate())
    }

    /// Rounds to the scale of NUMERIC(`precision`, `scale`). Returns an error if the integer part
    /// has more digits than the precision leaves.
    pub(crate) fn fit(&self, precision: u16, scale: i16) -> Result<Decimal> {
        let fault = |what: String| {
            SqlError::new(SqlState::NumericValueOutOfRange, "numeric field overflow")
                .with_detail(format!("A field with precision {precision}, scale {scale} {what}"))
        };
        match self.short().filter(|number| !number.is_finite()) {
            Some(number) if number.is_nan() => return Ok(self.clone()),
            Some(_) => return Err(fault("cannot hold an infinite value.".into())),
            None => {}
        }
        let whole_digits = i64::from(precision) - i64::from(scale);
        let rounded = self.round(scale.into())?;
        let is_fit = rounded.is_zero() || rounded.wide().exponent() < whole_digits;
        if is_fit {
            return Ok(rounded);
        }
        let most = match whole_digits {
            0 => "1".to_owned(),
            digits => format!("10^{digits}"),
        };
        Err(fault(format!("must round to an absolute value less than {most}.")))
    }

    /// Returns the nearest integer, half away from zero, or `None` if it is out of range.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        match self {
            Decimal::Short(number) => number.to_i64(),
            Decimal::Long(number) => i64::try_from(number.rounded(0).mantissa).ok(),
        }
    }

    /// Converts the 15-digit decimal form of a double-precision number, as PostgreSQL does.
    pub(crate) fn from_f64(value: f64) -> Result<Decimal> {
        match Numeric::from_f64(value) {
            Ok(number) => Ok(Decimal::Short(number)),
            Err(_) => {
                let number = Decimal::parse(&format!("{value:.14e}")).ok_or_else(overflow)??;
                Ok(number.stripped())
            }
        }
    }

    /// As [`from_f64`](Self::from_f64), with the 6 digits of a real.
    pub(crate) fn from_f32(value: f32) -> Result<Decimal> {
        match Numeric::from_f32(value) {
            Ok(number) => Ok(Decimal::Short(number)),
            Err(_) => {
                let number = Decimal::parse(&format!("{value:.5e}")).ok_or_else(overflow)??;
                Ok(number.stripped())
            }
        }
    }

    /// Returns the number without trailing zeros after the point.
    #[must_use]
    pub(crate) fn stripped(&self) -> Decimal {
        match self {
            Decimal::Short(number) => Decimal::Short(number.stripped()),
            // The number has no more digits than before, so that is no error.
            Decimal::Long(number) => {
                number.stripped().into_decimal().unwrap_or_else(|_| self.clone())
            }
        }
    }

    /// Returns the number with more digits after the point.
    pub(crate) fn with_scale(&self, scale: u32) -> Result<Decimal> {
        if !self.is_finite() || scale <= self.scale() {
            return Ok(self.clone());
        }
        self.round(scale.into())
    }

    /// Returns the greatest common divisor, which is not negative.
    pub(crate) fn common_divisor(&self, other: &Decimal) -> Result<Decimal> {
        let (mut a, mut b, scale) = self.wide().aligned(&other.wide());
        while b != BigInt::ZERO {
            (a, b) = (b.clone(), a % b);
        }
        WideNumber::new(BigInt::from(a.magnitude().clone()), scale).into_decimal()
    }

    /// Returns the square root of a number that is not negative.
    pub(crate) fn square_root(&self) -> Result<Decimal> {
        self.compute(Numeric::square_root, WideNumber::square_root)
    }

    /// Returns the square root with as many digits after the point as the number has.
    pub(crate) fn square_root_of_scale(&self) -> Result<Decimal> {
        let scale = self.scale();
        if let Decimal::Short(number) = self
            && let Ok(root) = number.square_root_with(scale as i32)
        {
            return Ok(Decimal::Short(root));
        }
        self.wide().square_root_with(scale.into())
    }

    /// Returns the exponential function.
    pub(crate) fn exponential(&self) -> Result<Decimal> {
        self.compute(Numeric::exponential, WideNumber::exponential)
    }

    /// Returns the natural logarithm of a positive number.
    pub(crate) fn natural_logarithm(&self) -> Result<Decimal> {
        self.compute(Numeric::natural_logarithm, WideNumber::natural_logarithm)
    }

    fn compute(
        &self,
        short: fn(Numeric) -> Result<Numeric>,
        wide: fn(&WideNumber) -> Result<Decimal>,
    ) -> Result<Decimal> {
        if let Decimal::Short(number) = self
            && let Ok(result) = short(*number)
        {
            return Ok(Decimal::Short(result));
        }
        wide(&self.wide())
    }

    /// Returns the logarithm of a positive number to a positive base.
    pub(crate) fn logarithm(&self, base: &Decimal) -> Result<Decimal> {
        if let (Decimal::Short(number), Decimal::Short(base)) = (self, base)
            && let Ok(result) = number.logarithm(*base)
        {
            return Ok(Decimal::Short(result));
        }
        self.wide().logarithm(&base.wide())
    }

    /// Returns `self` raised to `exponent`; the caller has checked that the power is defined.
    pub(crate) fn power(&self, exponent: &Decimal) -> Result<Decimal> {
        if let (Decimal::Short(base), Decimal::Short(exponent)) = (self, exponent)
            && let Ok(result) = base.power(*exponent)
        {
            return Ok(Decimal::Short(result));
        }
        let stripped = exponent.stripped();
        let whole = stripped.to_i64().filter(|_| stripped.scale() == 0);
        match whole.and_then(|whole| i32::try_from(whole).ok()) {
            Some(whole) => self.wide().integer_power(whole),
            None => self.wide().power(&exponent.wide()),
        }
    }

    /// Reads digits with an optional sign, point and exponent, without blanks. Returns `None` if
    /// the text is not a number, and an error if the number is beyond the limits.
    pub(crate) fn parse(text: &str) -> Option<Result<Decimal>> {
        match Numeric::parse(text) {
            Some(number) => Some(Ok(Decimal::Short(number))),
            None => Some(WideNumber::parse(text)?.and_then(WideNumber::into_decimal)),
        }
    }

    pub(crate) fn compare(&self, other: &Decimal) -> Ordering {
        if let (Decimal::Short(a), Decimal::Short(b)) = (self, other) {
            return a.cmp(b);
        }
        match self.specials(other) {
            Some((a, b)) => a.cmp(&b),
            None => self.wide().compare(&other.wide()),
        }
    }

    /// Appends the number and its scale, the number as in a key.
    pub(crate) fn write_scaled_key(&self, out: &mut Vec<u8>) {
        self.write_key(out);
        match self {
            Decimal::Short(number) => out.push(number.scale()),
            Decimal::Long(number) => {
                out.push(LONG_SCALE);
                out.extend_from_slice(&(number.scale as u16).to_be_bytes());
            }
        }
    }

    /// Takes the scale that follows a number.
    pub(crate) fn take_scale(bytes: &mut &[u8]) -> Option<u32> {
        match *bytes.split_off_first()? {
            LONG_SCALE => {
                let (scale, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(u16::from_be_bytes(*scale).into())
            }
            scale => Some(scale.into()),
        }
    }
}

/// What stands before a scale of two bytes. It is no scale itself.
pub(crate) const LONG_SCALE: u8 = 254;

const _: () = assert!(LONG_SCALE > MAX_PRECISION);

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.compare(other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        self.compare(other)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decimal::Short(number) => number.fmt(f),
            Decimal::Long(number) => number.fmt(f),
        }
    }
}
