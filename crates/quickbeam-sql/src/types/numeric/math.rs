//! Roots, logarithms and powers of NUMERIC, with the result scales that PostgreSQL selects.
//!
//! Transcendental functions compute in fixed point with [`DIGITS`] decimal digits, so a result is
//! exact to about 34 digits; PostgreSQL displays 16 significant digits unless an operand has more.
//! A result of more than [`EXACT`] digits is an error here. `wide_math` computes it.

use std::cmp::Ordering;

use ethnum::I256;

use super::{MAX_PRECISION, Numeric, overflow};
use crate::error::Result;

/// Digits after the point of a fixed-point number.
const DIGITS: u32 = 37;

/// Digits of a number.
const MAX_DIGITS: i32 = MAX_PRECISION as i32;

/// The natural logarithm of 2 in fixed point.
const LN_2: i128 = 6_931_471_805_599_453_094_172_321_214_581_765_681;

/// Minimum significant digits of a result.
const SIGNIFICANT: i32 = super::SIGNIFICANT as i32;

/// Digits of a result that are certainly exact.
const EXACT: i32 = 26;

/// Maximum power of two by which a result may be scaled.
const MAX_BINARY_EXPONENT: i128 = 130;

fn power_of_ten(exponent: u32) -> I256 {
    I256::new(10).pow(exponent)
}

fn one() -> I256 {
    power_of_ten(DIGITS)
}

/// Multiplies two fixed-point numbers.
fn multiply(a: I256, b: I256) -> I256 {
    a * b / one()
}

/// Divides and rounds half away from zero.
fn divide_rounded(a: I256, b: I256) -> I256 {
    let (quotient, rest) = (a / b, (a % b).abs());
    if rest >= b.abs() - rest { quotient + a.signum() * b.signum() } else { quotient }
}

/// Returns the integer square root, rounded down.
fn integer_root(number: I256) -> I256 {
    if number <= I256::ZERO {
        return I256::ZERO;
    }
    let bits = 256 - number.leading_zeros();
    let mut root = I256::ONE << bits.div_ceil(2);
    loop {
        let next = (root + number / root) >> 1;
        if next >= root {
            return root;
        }
        root = next;
    }
}

/// Returns a result scale, or an error if a number of about 10^`exponent` has more than `digits`
/// digits with it.
fn within(digits: i32, scale: i32, exponent: i32) -> Result<i32> {
    let scale = scale.max(0);
    if scale + exponent.max(0) < digits { Ok(scale) } else { Err(overflow()) }
}

impl Numeric {
    /// Returns the square root of a number that is not negative.
    pub fn square_root(self) -> Result<Numeric> {
        let (weight, _) = self.leading_group();
        let group = if self.is_zero() { 0 } else { weight };
        let half = (group + 1) * 4 / 2 - 1;
        let scale = (SIGNIFICANT - half).max(self.scale().into());
        self.square_root_with(within(MAX_DIGITS, scale, self.exponent() / 2 + 1)?)
    }

    /// Returns the square root with `scale` digits after the point.
    pub fn square_root_with(self, scale: i32) -> Result<Numeric> {
        let shift = 2 * scale - i32::from(self.scale());
        let number = I256::new(self.mantissa());
        let wide = if shift >= 0 {
            number * power_of_ten(shift.unsigned_abs())
        } else {
            number / power_of_ten(shift.unsigned_abs())
        };
        let root = integer_root(wide);
        let rounded = if wide - root * root > root { root + 1 } else { root };
        Numeric::new(rounded.as_i128(), scale as u8)
    }

    /// Returns a positive number's natural logarithm in fixed point.
    fn fixed_logarithm(self) -> I256 {
        let mantissa = I256::new(self.mantissa());
        let unit = power_of_ten(u32::from(self.scale()));
        // The number is 2^exponent times a factor near 1.
        let bits = |number: I256| 256 - number.leading_zeros() as i32;
        let mut exponent = bits(mantissa) - bits(unit);
        let scaled = |exponent: i32| {
            if exponent >= 0 {
                mantissa * one() / (unit << exponent as u32)
            } else {
                (mantissa << exponent.unsigned_abs()) * one() / unit
            }
        };
        let mut factor = scaled(exponent);
        if factor * 10 > one() * 14 {
            exponent += 1;
            factor = scaled(exponent);
        } else if factor * 10 < one() * 7 {
            exponent -= 1;
            factor = scaled(exponent);
        }
        let z = (factor - one()) * one() / (factor + one());
        let square = multiply(z, z);
        let (mut term, mut sum, mut divisor) = (z, z, 1);
        while term != I256::ZERO {
            term = multiply(term, square);
            divisor += 2;
            sum += term / divisor;
        }
        sum * 2 + I256::new(LN_2) * I256::from(exponent)
    }

    /// Returns the power of ten of the natural logarithm, as PostgreSQL estimates it.
    fn logarithm_weight(self) -> i32 {
        let difference = self.checked_sub(Numeric::from(1)).unwrap_or(Numeric::ZERO);
        let tenth = Numeric::new(1, 1).unwrap_or(Numeric::ZERO);
        if difference.absolute().cmp(&tenth) != Ordering::Greater {
            return if difference.is_zero() { 0 } else { difference.exponent() };
        }
        self.to_f64().ln().abs().log10() as i32
    }

    fn from_fixed(fixed: I256, scale: i32) -> Result<Numeric> {
        let drop = DIGITS as i32 - scale;
        let wide = if drop >= 0 {
            divide_rounded(fixed, power_of_ten(drop.unsigned_abs()))
        } else {
            fixed * power_of_ten(drop.unsigned_abs())
        };
        Numeric::new(i128::try_from(wide).map_err(|_| overflow())?, scale as u8)
    }

    /// Returns the natural logarithm of a positive number.
    pub fn natural_logarithm(self) -> Result<Numeric> {
        let weight = self.logarithm_weight();
        let scale = within(EXACT, (SIGNIFICANT - weight).max(self.scale().into()), 2)?;
        Numeric::from_fixed(self.fixed_logarithm(), scale)
    }

    /// Returns the logarithm of a positive number to a positive base other than 1.
    pub fn logarithm(self, base: Numeric) -> Result<Numeric> {
        let weight = self.logarithm_weight() - base.logarithm_weight();
        let scales = i32::from(self.scale()).max(base.scale().into());
        let scale = within(EXACT, (SIGNIFICANT - weight).max(scales), weight + 1)?;
        // The logarithms of both have as many exact digits.
        within(EXACT + 4, scale, -base.logarithm_weight() - self.logarithm_weight().min(0))?;
        let (number, divisor) = (self.fixed_logarithm(), base.fixed_logarithm());
        if divisor == I256::ZERO {
            return Err(crate::error::SqlError::new(
                crate::error::SqlState::DivisionByZero,
                "division by zero",
            ));
        }
        // The quotient takes as many digits as fit.
        let wide = divide_rounded(number * power_of_ten(DIGITS), divisor);
        Numeric::from_fixed(wide, scale)
    }

    /// Returns the exponential function.
    pub fn exponential(self) -> Result<Numeric> {
        let weight = (self.to_f64() * std::f64::consts::LOG10_E).clamp(-1e6, 1e6) as i32;
        let scale = within(EXACT, (SIGNIFICANT - weight).max(self.scale().into()), weight)?;
        let fixed = if u32::from(self.scale()) <= DIGITS {
            I256::new(self.mantissa()) * power_of_ten(DIGITS - u32::from(self.scale()))
        } else {
            I256::new(self.mantissa()) / I256::new(10)
        };
        exponential_of(fixed, scale)
    }

    /// Returns `self` raised to `exponent`; the caller has checked that the power is defined.
    pub fn power(self, exponent: Numeric) -> Result<Numeric> {
        let stripped = exponent.stripped();
        if stripped.scale() == 0
            && let Ok(whole) = i32::try_from(stripped.mantissa())
        {
            return self.integer_power(whole);
        }
        // The logarithm is that of a positive number.
        if self.signum() < 0 {
            return Err(overflow());
        }
        let scales = i32::from(self.scale()).max(exponent.scale().into());
        if self.is_zero() {
            return Numeric::new(0, SIGNIFICANT as u8);
        }
        let weight = self.power_weight(exponent);
        let exact = EXACT - exponent.exponent().max(0);
        let scale = within(exact, (SIGNIFICANT - weight).max(scales), weight)?;
        let unit = power_of_ten(u32::from(exponent.scale()));
        let (logarithm, times) = (self.fixed_logarithm(), I256::new(exponent.mantissa()));
        // The whole and the fractional part of the exponent, so that no product overflows.
        let product =
            logarithm * (times / unit) + multiply(logarithm, (times % unit) * one() / unit);
        exponential_of(product, scale)
    }

    /// Estimates the power of ten of a positive number raised to an exponent. PostgreSQL chooses
    /// the scale of the result by a logarithm of eight digits, which decides for powers of ten.
    fn power_weight(self, exponent: Numeric) -> i32 {
        let logarithm = self.to_f64().ln();
        let digits = (8.0 - logarithm.abs().log10().trunc()).clamp(0.0, 30.0) as usize;
        let product = Numeric::parse(&format!("{logarithm:.digits$}"))
            .and_then(|short| short.checked_mul(exponent).ok()?.round(digits as i32).ok());
        let product = product.map_or(logarithm * exponent.to_f64(), Numeric::to_f64);
        (product * std::f64::consts::LOG10_E).clamp(-1e6, 1e6) as i32
    }

    fn integer_power(self, exponent: i32) -> Result<Numeric> {
        let estimate = f64::from(exponent) * self.absolute().to_f64().log10();
        let weight = if self.is_zero() { 0 } else { estimate.clamp(-1e6, 1e6) as i32 };
        let wanted = SIGNIFICANT.max(self.scale().into());
        let scale = within(MAX_DIGITS, wanted, weight)?;
        if self.is_zero() {
            let number = i128::from(exponent == 0);
            return Numeric::new(number, 0)?.round(scale);
        }
        let mut exact = Some(Numeric::from(1));
        for _ in 0..exponent.unsigned_abs().min(200) {
            let product = exact.filter(|it| it.digit_count() + self.digit_count() <= 38);
            exact = product.filter(|it| it.scale() + self.scale() <= MAX_PRECISION);
            exact = exact.and_then(|it| it.checked_mul(self).ok());
        }
        if let Some(exact) = exact.filter(|_| exponent.unsigned_abs() <= 200) {
            if exponent >= 0 {
                return exact.round(scale);
            }
            let wide = power_of_ten(scale.unsigned_abs() + u32::from(exact.scale()));
            let quotient = divide_rounded(wide, I256::new(exact.mantissa()));
            return Numeric::new(quotient.as_i128(), scale as u8);
        }
        within(EXACT - Numeric::from(exponent).exponent(), scale, weight)?;
        let fixed = self.absolute().fixed_logarithm() * I256::from(exponent);
        let magnitude = exponential_of(fixed, scale)?;
        let is_negative = self.signum() < 0 && exponent % 2 != 0;
        Ok(if is_negative { magnitude.negate() } else { magnitude })
    }

    fn digit_count(self) -> u32 {
        self.mantissa().unsigned_abs().checked_ilog10().map_or(1, |log| log + 1)
    }
}

/// Returns e to the power of a fixed-point number.
fn exponential_of(number: I256, scale: i32) -> Result<Numeric> {
    let ln_2 = I256::new(LN_2);
    let exponent = divide_rounded(number, ln_2);
    let rest = number - exponent * ln_2;
    let (mut term, mut sum, mut divisor) = (one(), one(), 0);
    while term != I256::ZERO {
        divisor += 1;
        term = multiply(term, rest) / divisor;
        sum += term;
    }
    let exponent = exponent.as_i128();
    if exponent > MAX_BINARY_EXPONENT {
        return Err(overflow());
    }
    if exponent < -MAX_BINARY_EXPONENT {
        return Numeric::new(0, scale as u8);
    }
    let doublings = exponent.unsigned_abs() as u32;
    let wide = if exponent >= 0 {
        let shifted = sum << doublings;
        let drop = DIGITS as i32 - scale;
        if drop >= 0 {
            divide_rounded(shifted, power_of_ten(drop.unsigned_abs()))
        } else {
            shifted * power_of_ten(drop.unsigned_abs())
        }
    } else {
        let raised = sum * power_of_ten(scale.unsigned_abs().min(38));
        divide_rounded(divide_rounded(raised, I256::ONE << doublings), one())
    };
    Numeric::new(i128::try_from(wide).map_err(|_| overflow())?, scale as u8)
}
