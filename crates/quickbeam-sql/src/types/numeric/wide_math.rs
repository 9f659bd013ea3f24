//! Roots, logarithms and powers of numbers of any length.
//!
//! Above: [`Decimal`], which comes here if [`math`](super::math) cannot be exact to the last digit.
//! Transcendental functions compute in binary fixed point, with [`GUARD`] bits beyond the digits of
//! the result.
//!
//! A result has at most 1,000 digits after the point, and one of `exp` some 2,600 before it, which
//! bounds the bits of fixed point.

use num_bigint::{BigInt, BigUint, Sign};

use super::wide::{
    MAX_SELECTED_SCALE, MAX_WHOLE_DIGITS, WideNumber, digit_count, divide_rounded, power_of_ten,
};
use super::{Decimal, Numeric, SIGNIFICANT, overflow};
use crate::error::{Result, SqlError, SqlState};

/// Bits beyond those that the digits of a result need.
const GUARD: u64 = 128;

/// The natural logarithm from which `exp` overflows.
const MAX_LOGARITHM: f64 = 6000.0;

/// Bits of a decimal digit, rounded up.
fn bits_of(digits: i64) -> u64 {
    (digits.max(0) as f64 * std::f64::consts::LOG2_10) as u64 + 1
}

/// A fixed-point number: an integer divided by a power of two.
fn atanh_inverse(number: u32, bits: u64) -> BigInt {
    let square = BigInt::from(u64::from(number) * u64::from(number));
    let mut power = (BigInt::from(1) << bits) / number;
    let (mut sum, mut divisor) = (power.clone(), 1_u32);
    while power != BigInt::ZERO {
        power /= &square;
        divisor += 2;
        sum += &power / divisor;
    }
    sum
}

/// Returns the natural logarithm of 2 in fixed point.
fn ln_2(bits: u64) -> BigInt {
    let bits = bits + 16;
    let sum = atanh_inverse(26, bits) * 18 - atanh_inverse(4801, bits) * 2
        + atanh_inverse(8749, bits) * 8;
    sum >> 16_u32
}

/// Converts fixed point to a double-precision number.
fn fixed_to_f64(fixed: &BigInt, bits: u64) -> f64 {
    let drop = fixed.magnitude().bits().saturating_sub(60);
    let kept = i64::try_from(fixed >> drop).unwrap_or(i64::MAX);
    let exponent = drop as i64 - bits as i64;
    kept as f64 * (exponent.clamp(-1100, 1100) as f64).exp2()
}

/// Rounds fixed point times 2^`exponent` to `scale` digits after the point.
fn to_decimal(fixed: &BigInt, exponent: i64, scale: i64) -> Result<Decimal> {
    let raised = fixed * BigInt::from(power_of_ten(scale as u32));
    let rounded = match u64::try_from(exponent) {
        Ok(more) => raised << more,
        Err(_) => {
            let half = BigInt::from(1) << (exponent.unsigned_abs() - 1);
            // A shift rounds down.
            let sign = BigInt::from(if raised.sign() == Sign::Minus { -1 } else { 1 });
            ((raised * &sign + half) >> exponent.unsigned_abs()) * sign
        }
    };
    WideNumber::new(rounded, scale as u32).into_decimal()
}

impl WideNumber {
    /// Returns the number in fixed point.
    fn to_fixed(&self, bits: u64) -> BigInt {
        (&self.mantissa << bits) / BigInt::from(power_of_ten(self.scale))
    }

    /// Returns a positive number's natural logarithm in fixed point.
    fn fixed_logarithm(&self, bits: u64) -> BigInt {
        let work = bits + GUARD;
        let unit = power_of_ten(self.scale);
        let mut exponent = self.mantissa.magnitude().bits() as i64 - unit.bits() as i64;
        let factor = |exponent: i64| {
            let shift = work as i64 - exponent;
            let unit = BigInt::from(unit.clone());
            match u64::try_from(shift) {
                Ok(shift) => (&self.mantissa << shift) / unit,
                Err(_) => &self.mantissa / (unit << shift.unsigned_abs()),
            }
        };
        let one = BigInt::from(1) << work;
        let mut near = factor(exponent);
        if &near * 10 > &one * 14 {
            exponent += 1;
            near = factor(exponent);
        } else if &near * 10 < &one * 7 {
            exponent -= 1;
            near = factor(exponent);
        }
        // The series of 2 artanh((x - 1) / (x + 1)).
        let z = ((&near - &one) << work) / (&near + &one);
        let square = (&z * &z) >> work;
        let (mut power, mut sum, mut divisor) = (z.clone(), z, 1_u32);
        while power.magnitude().bits() > 1 {
            power = (power * &square) >> work;
            divisor += 2;
            sum += &power / divisor;
        }
        let sum = sum * 2 + ln_2(work) * exponent;
        sum >> GUARD
    }

    /// Returns the power of ten of the natural logarithm, as PostgreSQL estimates it.
    fn logarithm_weight(&self) -> i64 {
        let one = WideNumber::of_short(Numeric::from(1));
        let difference = self.plus(&one.negated());
        let tenth = WideNumber::new(1.into(), 1);
        let distance = if difference.signum() < 0 { difference.negated() } else { difference };
        if distance.compare(&tenth).is_le() {
            return distance.exponent();
        }
        // The first 16 digits, and a power of ten for the rest.
        let digits = digit_count(self.mantissa.magnitude());
        let dropped = digits.saturating_sub(16);
        let first = &self.mantissa / BigInt::from(power_of_ten(dropped));
        let first = i64::try_from(first).unwrap_or(1) as f64;
        let power = f64::from(dropped) - f64::from(self.scale);
        (first.ln() + power * std::f64::consts::LN_10).abs().log10() as i64
    }

    /// Returns the square root of a number that is not negative.
    pub(super) fn square_root(&self) -> Result<Decimal> {
        let group = if self.is_zero() { 0 } else { self.exponent().div_euclid(4) };
        let half = (group + 1) * 4 / 2 - 1;
        let scale = (SIGNIFICANT - half).max(self.scale.into()).clamp(0, MAX_SELECTED_SCALE);
        self.square_root_with(scale)
    }

    /// Returns the square root with `scale` digits after the point.
    pub(super) fn square_root_with(&self, scale: i64) -> Result<Decimal> {
        let shift = 2 * scale - i64::from(self.scale);
        let power = power_of_ten(shift.unsigned_abs() as u32);
        let magnitude = self.mantissa.magnitude();
        let (number, divisor) = match shift >= 0 {
            true => (magnitude * power, BigUint::from(1_u8)),
            false => (magnitude.clone(), power),
        };
        let root = (&number / &divisor).sqrt();
        // The half above is (root + 1/2)^2 = root^2 + root + 1/4.
        let half = (((&root * &root + &root) << 2_u32) + 1_u32) * divisor;
        let rounded = if (number << 2_u32) >= half { root + 1_u32 } else { root };
        WideNumber::new(rounded.into(), scale as u32).into_decimal()
    }

    /// Returns the natural logarithm of a positive number.
    pub(super) fn natural_logarithm(&self) -> Result<Decimal> {
        let scale = SIGNIFICANT - self.logarithm_weight();
        let scale = scale.max(self.scale.into()).clamp(0, MAX_SELECTED_SCALE);
        let bits = bits_of(scale) + GUARD;
        to_decimal(&self.fixed_logarithm(bits), -(bits as i64), scale)
    }

    /// Returns the logarithm of a positive number to a positive base other than 1.
    pub(super) fn logarithm(&self, base: &WideNumber) -> Result<Decimal> {
        let (own, of_base) = (self.logarithm_weight(), base.logarithm_weight());
        let weight = own - of_base;
        let scale = (SIGNIFICANT - weight).max(self.scale.into()).max(base.scale.into());
        let scale = scale.clamp(0, MAX_SELECTED_SCALE);
        let digits = (scale + weight - of_base).max(scale + weight - own).max(0) + 16;
        let bits = bits_of(digits) + GUARD;
        let (number, divisor) = (self.fixed_logarithm(bits), base.fixed_logarithm(bits));
        if divisor == BigInt::ZERO {
            return Err(SqlError::new(SqlState::DivisionByZero, "division by zero"));
        }
        let raised = number * BigInt::from(power_of_ten(scale as u32));
        let quotient = divide_rounded(&raised, divisor.magnitude());
        let is_negative = divisor.sign() == Sign::Minus;
        let quotient = if is_negative { -quotient } else { quotient };
        WideNumber::new(quotient, scale as u32).into_decimal()
    }

    /// Returns the exponential function.
    pub(super) fn exponential(&self) -> Result<Decimal> {
        let value = self.to_f64();
        let weight = (value * std::f64::consts::LOG10_E).clamp(-2000.0, 2000.0) as i64;
        let scale = (SIGNIFICANT - weight).max(self.scale.into()).clamp(0, MAX_SELECTED_SCALE);
        if value.abs() >= MAX_LOGARITHM {
            return extreme(value > 0.0, scale);
        }
        let bits = exponential_bits(value, scale);
        exponential_of(&self.to_fixed(bits), bits, scale)
    }

    /// Returns `self` raised to a power that is no integer of 32 bits. The caller has checked that
    /// it is defined.
    pub(super) fn power(&self, exponent: &WideNumber) -> Result<Decimal> {
        if self.is_zero() {
            return WideNumber::new(BigInt::ZERO, SIGNIFICANT as u32).into_decimal();
        }
        let is_odd = {
            let whole = exponent.stripped();
            whole.scale == 0 && whole.mantissa.bit(0)
        };
        let base = if self.signum() < 0 { self.negated() } else { self.clone() };
        let least_scale = SIGNIFICANT.max(self.scale.into()).max(exponent.scale.into());
        if base.compare(&WideNumber::of_short(Numeric::from(1))).is_eq() {
            let scale = least_scale.clamp(0, MAX_SELECTED_SCALE);
            let one = WideNumber::new(1.into(), 0).rounded(scale).into_decimal()?;
            return Ok(if is_odd && self.signum() < 0 { one.negate() } else { one });
        }
        let close = -base.logarithm_weight();
        let raised = |bits: u64| {
            let unit = BigInt::from(power_of_ten(exponent.scale));
            base.fixed_logarithm(bits) * &exponent.mantissa / unit
        };
        let bits = bits_of(close) + GUARD;
        let value = fixed_to_f64(&raised(bits), bits);
        if value.abs() > MAX_LOGARITHM * 1.004 {
            return extreme(value > 0.0, MAX_SELECTED_SCALE);
        }
        let weight = (value * std::f64::consts::LOG10_E) as i64;
        let scale = (SIGNIFICANT - weight).max(self.scale.into()).max(exponent.scale.into());
        let scale = scale.clamp(0, MAX_SELECTED_SCALE);
        if value >= MAX_LOGARITHM {
            return Err(overflow());
        }
        let bits = exponential_bits(value, scale) + bits_of(exponent.exponent() + 1);
        let result = exponential_of(&raised(bits), bits, scale)?;
        Ok(if is_odd && self.signum() < 0 { result.negate() } else { result })
    }

    /// Returns `self` raised to an integer.
    pub(super) fn integer_power(&self, exponent: i32) -> Result<Decimal> {
        let scale = SIGNIFICANT.max(self.scale.into()).min(MAX_SELECTED_SCALE);
        if self.is_zero() || exponent == 0 {
            let number = BigInt::from(i32::from(exponent == 0));
            return WideNumber::new(number, 0).rounded(scale).into_decimal();
        }
        // Estimates the power of ten of the result.
        let first = self.exponent();
        let leading = self.mantissa.magnitude()
            / power_of_ten(digit_count(self.mantissa.magnitude()).saturating_sub(17));
        let leading = u64::try_from(&leading).unwrap_or(1) as f64;
        let logarithm = first as f64 + leading.log10().fract();
        let weight = f64::from(exponent) * logarithm;
        if weight > MAX_WHOLE_DIGITS as f64 {
            return Err(overflow());
        }
        if weight < -(scale as f64) - 2.0 {
            return WideNumber::new(BigInt::ZERO, scale as u32).into_decimal();
        }
        let steps = digit_count(&BigUint::from(exponent.unsigned_abs()));
        let digits = (weight as i64 + scale).max(0) as u32 + steps + 20;
        let power = Floating::new(self).raised(exponent.unsigned_abs(), digits);
        if exponent > 0 {
            return power.to_decimal(scale);
        }
        // The quotient of 1 by mantissa times 10^exponent.
        let shift = scale - power.exponent;
        if shift < 0 {
            return WideNumber::new(BigInt::ZERO, scale as u32).into_decimal();
        }
        let one = BigInt::from(power_of_ten(shift as u32));
        let quotient = divide_rounded(&one, power.mantissa.magnitude());
        let is_negative = power.mantissa.sign() == Sign::Minus;
        let quotient = if is_negative { -quotient } else { quotient };
        WideNumber::new(quotient, scale as u32).into_decimal()
    }
}

/// Returns the result of an exponential function that overflows, or that is zero to all digits.
fn extreme(is_large: bool, scale: i64) -> Result<Decimal> {
    match is_large {
        true => Err(overflow()),
        false => WideNumber::new(BigInt::ZERO, scale as u32).into_decimal(),
    }
}

/// Returns the bits of fixed point for e^`value` with `scale` digits after the point.
fn exponential_bits(value: f64, scale: i64) -> u64 {
    bits_of(scale + (value * std::f64::consts::LOG10_E) as i64) + GUARD
}

/// Returns e to the power of a fixed-point number.
fn exponential_of(number: &BigInt, bits: u64, scale: i64) -> Result<Decimal> {
    /// How often the series' argument is halved.
    const HALVINGS: u64 = 16;
    let work = bits + GUARD;
    let number = number << GUARD;
    let ln_2 = ln_2(work);
    let exponent = divide_rounded(&number, ln_2.magnitude());
    let rest = (number - &exponent * ln_2) >> HALVINGS;
    let one = BigInt::from(1) << work;
    let (mut term, mut sum, mut divisor) = (one.clone(), one, 0_u32);
    while term.magnitude().bits() > 1 {
        divisor += 1;
        term = ((term * &rest) >> work) / divisor;
        sum += &term;
    }
    for _ in 0..HALVINGS {
        sum = (&sum * &sum) >> work;
    }
    let exponent = i64::try_from(exponent).map_err(|_| overflow())?;
    to_decimal(&sum, exponent - work as i64, scale)
}

/// An integer times a power of ten.
struct Floating {
    mantissa: BigInt,
    exponent: i64,
}

impl Floating {
    fn new(number: &WideNumber) -> Floating {
        let stripped = number.stripped();
        Floating { mantissa: stripped.mantissa, exponent: -i64::from(stripped.scale) }
    }

    /// Gives up digits beyond that count.
    fn cut(self, digits: u32) -> Floating {
        let count = digit_count(self.mantissa.magnitude());
        match count.checked_sub(digits) {
            None | Some(0) => self,
            Some(dropped) => Floating {
                mantissa: divide_rounded(&self.mantissa, &power_of_ten(dropped)),
                exponent: self.exponent + i64::from(dropped),
            },
        }
    }

    fn times(&self, other: &Floating, digits: u32) -> Floating {
        let mantissa = &self.mantissa * &other.mantissa;
        Floating { mantissa, exponent: self.exponent + other.exponent }.cut(digits)
    }

    fn raised(self, exponent: u32, digits: u32) -> Floating {
        let mut result = Floating { mantissa: 1.into(), exponent: 0 };
        for bit in (0..u32::BITS - exponent.leading_zeros()).rev() {
            result = result.times(&result, digits);
            if exponent >> bit & 1 == 1 {
                result = result.times(&self, digits);
            }
        }
        result
    }

    fn to_decimal(&self, scale: i64) -> Result<Decimal> {
        let number = match u32::try_from(-self.exponent) {
            Ok(own) => WideNumber::new(self.mantissa.clone(), own),
            Err(_) => {
                let zeros = self.exponent.min(MAX_WHOLE_DIGITS) as u32;
                WideNumber::new(self.mantissa.clone(), 0).padded(zeros)
            }
        };
        number.rounded(scale).into_decimal()
    }
}
