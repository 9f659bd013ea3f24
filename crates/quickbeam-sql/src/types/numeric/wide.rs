//! Decimal numbers of any length: an integer of the crate `num-bigint`, and a scale.
//!
//! Above: [`Decimal`], which computes here what [`Numeric`] cannot hold. Scales of results are
//! those that PostgreSQL selects. All functions are for numbers with digits.
//!
//! The limits of NUMERIC bound the work of a function: an operand has at most [`MAX_WHOLE_DIGITS`]
//! digits before the point and [`MAX_SCALE`] after it. A result that certainly has more is refused
//! before it is computed.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};

use super::long::{LongNumeric, LongNumericRef, MAX_SCALE};
use super::{Decimal, MAX_PRECISION, Numeric, POWERS, QUOTIENT_DIGITS, overflow};
use crate::error::{Result, SqlError, SqlState};

/// Maximum number of digits before the point.
pub(crate) const MAX_WHOLE_DIGITS: i64 = 131_072;

/// Maximum number of digits after the point that a function selects.
pub(super) const MAX_SELECTED_SCALE: i64 = 1_000;

/// Bits of an integer that surely has no more than [`MAX_WHOLE_DIGITS`] digits.
const SAFE_BITS: u64 = 435_000;

/// A number with digits, of any length.
#[derive(Clone, Debug)]
pub(crate) struct WideNumber {
    pub(super) mantissa: BigInt,
    pub(super) scale: u32,
}

/// Returns 10^`exponent`.
pub(super) fn power_of_ten(exponent: u32) -> BigUint {
    match POWERS.get(exponent as usize) {
        Some(power) => BigUint::from(power.unsigned_abs()),
        None => BigUint::from(10_u32).pow(exponent),
    }
}

/// Returns the number of decimal digits; 0 for zero.
pub(super) fn digit_count(number: &BigUint) -> u32 {
    let bits = number.bits();
    if bits == 0 {
        return 0;
    }
    // The logarithms of the least and the greatest number with these bits.
    let least = ((bits - 1) as f64 * std::f64::consts::LOG10_2) as u32;
    let most = (bits as f64 * std::f64::consts::LOG10_2) as u32;
    if least == most || *number >= power_of_ten(most) { most + 1 } else { most }
}

/// Divides and rounds half away from zero.
pub(super) fn divide_rounded(number: &BigInt, divisor: &BigUint) -> BigInt {
    let magnitude = number.magnitude();
    let quotient = magnitude / divisor;
    let rest = magnitude - &quotient * divisor;
    let rounded = if (rest << 1_u32) >= *divisor { quotient + 1_u32 } else { quotient };
    BigInt::from_biguint(number.sign(), rounded)
}

#[cold]
fn by_zero() -> SqlError {
    SqlError::new(SqlState::DivisionByZero, "division by zero")
}

impl WideNumber {
    pub(super) fn new(mantissa: BigInt, scale: u32) -> WideNumber {
        WideNumber { mantissa, scale }
    }

    /// Returns a number with digits that is not long.
    pub(super) fn of_short(number: Numeric) -> WideNumber {
        WideNumber::new(number.mantissa().into(), number.scale().into())
    }

    pub(super) fn of_long(number: LongNumericRef<'_>) -> WideNumber {
        let (is_negative, scale, integer) = number.parts();
        let sign = if is_negative { Sign::Minus } else { Sign::Plus };
        WideNumber::new(BigInt::from_bytes_le(sign, integer), scale)
    }

    pub(super) fn to_long(&self) -> LongNumeric {
        let mut integer = self.mantissa.magnitude().to_bytes_le();
        if self.is_zero() {
            integer.clear();
        }
        LongNumeric::new(self.signum() < 0, self.scale, &integer)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.mantissa.sign() == Sign::NoSign
    }

    pub(super) fn signum(&self) -> i32 {
        match self.mantissa.sign() {
            Sign::Minus => -1,
            Sign::NoSign => 0,
            Sign::Plus => 1,
        }
    }

    /// Returns the number in its only form: short if it fits. A scale beyond the limit is rounded,
    /// and too many digits before the point are an error.
    pub(crate) fn into_decimal(self) -> Result<Decimal> {
        if self.scale > MAX_SCALE {
            return self.rounded(MAX_SCALE.into()).into_decimal();
        }
        if self.scale <= u32::from(MAX_PRECISION)
            && let Ok(mantissa) = i128::try_from(&self.mantissa)
            && let Ok(short) = Numeric::new(mantissa, self.scale as u8)
        {
            return Ok(Decimal::Short(short));
        }
        if self.mantissa.bits() > SAFE_BITS && self.exponent() >= MAX_WHOLE_DIGITS {
            return Err(overflow());
        }
        Ok(Decimal::Long(Box::new(self)))
    }

    /// Returns the power of ten of the first digit; 0 for zero.
    pub(super) fn exponent(&self) -> i64 {
        match digit_count(self.mantissa.magnitude()) {
            0 => 0,
            digits => i64::from(digits) - 1 - i64::from(self.scale),
        }
    }

    /// Returns the position of the first group of four digits, counted from the point, and its
    /// value.
    fn leading_group(&self) -> (i64, BigUint) {
        let weight = self.exponent().div_euclid(4);
        let shift = weight * 4 + i64::from(self.scale);
        let power = power_of_ten(shift.unsigned_abs() as u32);
        let magnitude = self.mantissa.magnitude();
        (weight, if shift >= 0 { magnitude / power } else { magnitude * power })
    }

    /// Returns both integers at the larger scale, and that scale.
    pub(super) fn aligned(&self, other: &WideNumber) -> (BigInt, BigInt, u32) {
        let scale = self.scale.max(other.scale);
        let widened = |number: &WideNumber| match scale - number.scale {
            0 => number.mantissa.clone(),
            more => &number.mantissa * BigInt::from(power_of_ten(more)),
        };
        (widened(self), widened(other), scale)
    }

    pub(super) fn plus(&self, other: &WideNumber) -> WideNumber {
        let (a, b, scale) = self.aligned(other);
        WideNumber::new(a + b, scale)
    }

    pub(super) fn negated(&self) -> WideNumber {
        WideNumber::new(-&self.mantissa, self.scale)
    }

    pub(super) fn times(&self, other: &WideNumber) -> Result<WideNumber> {
        // The product has the sum of the exponents, or one more.
        if !self.is_zero()
            && !other.is_zero()
            && self.exponent() + other.exponent() >= MAX_WHOLE_DIGITS
        {
            return Err(overflow());
        }
        Ok(WideNumber::new(&self.mantissa * &other.mantissa, self.scale + other.scale))
    }

    /// Returns the quotient with at least 16 significant digits.
    pub(super) fn over(&self, other: &WideNumber) -> Result<WideNumber> {
        if other.is_zero() {
            return Err(by_zero());
        }
        let (weight, first) = self.leading_group();
        let (other_weight, other_first) = other.leading_group();
        let weight = weight - other_weight - i64::from(first <= other_first);
        let wanted = i64::from(QUOTIENT_DIGITS) - weight * 4;
        let scale = wanted.max(self.scale.into()).max(other.scale.into());
        Ok(self.quotient(other, scale.clamp(0, MAX_SELECTED_SCALE) as u32))
    }

    /// Returns the quotient, rounded to `scale` digits after the point.
    pub(super) fn quotient(&self, other: &WideNumber, scale: u32) -> WideNumber {
        let shift = i64::from(scale) + i64::from(other.scale) - i64::from(self.scale);
        let power = power_of_ten(shift.unsigned_abs() as u32);
        let divisor = other.mantissa.magnitude();
        let quotient = if shift >= 0 {
            divide_rounded(&(&self.mantissa * BigInt::from(power)), divisor)
        } else {
            divide_rounded(&self.mantissa, &(divisor * power))
        };
        let is_negative = other.mantissa.sign() == Sign::Minus;
        WideNumber::new(if is_negative { -quotient } else { quotient }, scale)
    }

    /// Returns the quotient without its fraction.
    pub(super) fn whole_quotient(&self, other: &WideNumber) -> Result<WideNumber> {
        if other.is_zero() {
            return Err(by_zero());
        }
        let (a, b, _) = self.aligned(other);
        Ok(WideNumber::new(a / b, 0))
    }

    pub(super) fn remainder(&self, other: &WideNumber) -> Result<WideNumber> {
        if other.is_zero() {
            return Err(by_zero());
        }
        let (a, b, scale) = self.aligned(other);
        Ok(WideNumber::new(a % b, scale))
    }

    /// Rounds half away from zero, or pads, to `scale` digits after the point. A negative scale
    /// rounds before the point.
    pub(super) fn rounded(&self, scale: i64) -> WideNumber {
        self.cut(scale, divide_rounded)
    }

    /// As [`rounded`](Self::rounded), towards zero.
    pub(super) fn truncated(&self, scale: i64) -> WideNumber {
        self.cut(scale, |number, power| number / BigInt::from(power.clone()))
    }

    fn cut(&self, scale: i64, divide: impl Fn(&BigInt, &BigUint) -> BigInt) -> WideNumber {
        let more = scale - i64::from(self.scale);
        let kept = scale.max(0) as u32;
        if more >= 0 {
            let power = BigInt::from(power_of_ten(more as u32));
            return WideNumber::new(&self.mantissa * power, kept);
        }
        let digits = i64::from(digit_count(self.mantissa.magnitude()));
        if more < -digits {
            return WideNumber::new(BigInt::ZERO, kept);
        }
        let cut = divide(&self.mantissa, &power_of_ten(more.unsigned_abs() as u32));
        let zeros = power_of_ten(scale.min(0).unsigned_abs() as u32);
        WideNumber::new(cut * BigInt::from(zeros), kept)
    }

    /// Returns the number without trailing zeros after the point.
    pub(super) fn stripped(&self) -> WideNumber {
        let mut number = self.clone();
        if number.is_zero() {
            number.scale = 0;
        }
        // A multiple of 10^n is one of 2^n.
        let twos = number.mantissa.trailing_zeros().unwrap_or(0);
        let mut most = twos.min(number.scale.into()) as u32;
        for step in [4096, 512, 64, 8, 1] {
            while most >= step {
                let power = BigInt::from(power_of_ten(step));
                let quotient = &number.mantissa / &power;
                if &quotient * &power != number.mantissa {
                    break;
                }
                (number.mantissa, number.scale) = (quotient, number.scale - step);
                most -= step;
            }
        }
        number
    }

    /// Returns the number times 10^`zeros`.
    pub(super) fn padded(&self, zeros: u32) -> WideNumber {
        WideNumber::new(&self.mantissa * BigInt::from(power_of_ten(zeros)), self.scale)
    }

    pub(super) fn compare(&self, other: &WideNumber) -> Ordering {
        let by_sign = self.signum().cmp(&other.signum());
        if by_sign.is_ne() || self.is_zero() {
            return by_sign;
        }
        // Numbers of different sizes are not aligned, which may take many digits.
        let by_size = self.exponent().cmp(&other.exponent());
        if by_size.is_ne() {
            return if self.signum() < 0 { by_size.reverse() } else { by_size };
        }
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }

    /// Returns the nearest double-precision number.
    pub(super) fn to_f64(&self) -> f64 {
        // Beyond 800 digits it only matters whether there is another one that is not 0.
        let digits = digit_count(self.mantissa.magnitude());
        let dropped = digits.saturating_sub(800);
        let power = BigInt::from(power_of_ten(dropped));
        let kept = &self.mantissa / &power;
        let is_more = &kept * power != self.mantissa;
        let exponent = i64::from(dropped) - i64::from(self.scale) - 1;
        let text = format!("{kept}{}e{exponent}", u8::from(is_more));
        text.parse().unwrap_or(f64::NAN)
    }

    /// Reads digits with an optional sign, point and exponent. Returns `None` if the text is not a
    /// number, and an error if the number is beyond the limits.
    pub(super) fn parse(text: &str) -> Option<Result<WideNumber>> {
        let (sign, digits) = match text.as_bytes() {
            [b'-', rest @ ..] => (Sign::Minus, rest),
            [b'+', rest @ ..] => (Sign::Plus, rest),
            all => (Sign::Plus, all),
        };
        let end = digits.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(digits.len());
        let (number, exponent) = (digits.get(..end)?, digits.get(end..)?);
        let exponent = match exponent {
            [] => 0,
            [_, rest @ ..] => written_exponent(rest)?,
        };
        let (mut kept, mut behind, mut point) = (Vec::with_capacity(number.len()), 0_i64, false);
        for &byte in number {
            match byte {
                b'.' if !point => point = true,
                b'0'..=b'9' => {
                    kept.push(byte - b'0');
                    behind += i64::from(point);
                }
                _ => return None,
            }
        }
        if kept.is_empty() {
            return None;
        }
        let first = kept.iter().position(|digit| *digit != 0).unwrap_or(kept.len());
        let kept = kept.get(first..).unwrap_or_default();
        let scale = behind.saturating_sub(exponent);
        let is_long = kept.len() as i64 - scale > MAX_WHOLE_DIGITS && !kept.is_empty();
        if scale > MAX_SCALE.into() || is_long || exponent > i64::from(i32::MAX / 2) {
            return Some(Err(overflow()));
        }
        let mantissa = BigInt::from_radix_be(sign, kept, 10).unwrap_or(BigInt::ZERO);
        let zeros = match kept.is_empty() {
            true => 0,
            false => scale.min(0).unsigned_abs() as u32,
        };
        let mantissa = mantissa * BigInt::from(power_of_ten(zeros));
        Some(Ok(WideNumber::new(mantissa, scale.max(0) as u32)))
    }
}

/// Reads the exponent of a number; one that is too large for any number is cut.
fn written_exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_i64, |number, digit| {
        (number * 10 + i64::from(digit - b'0')).min(i64::from(i32::MAX))
    });
    Some(if is_negative { -number } else { number })
}

impl LongNumericRef<'_> {
    /// Returns the nearest double-precision number; one that is too large is infinite.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        WideNumber::of_long(self).to_f64()
    }
}

impl fmt::Display for LongNumericRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WideNumber::of_long(*self).fmt(f)
    }
}

impl fmt::Debug for LongNumericRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WideNumber::of_long(*self).fmt(f)
    }
}

impl fmt::Display for LongNumeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl fmt::Debug for LongNumeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}

impl fmt::Display for WideNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.signum() < 0 { "-" } else { "" };
        let digits = self.mantissa.magnitude().to_str_radix(10);
        let width = self.scale as usize;
        match digits.len().checked_sub(width) {
            Some(whole) if whole > 0 => {
                let (whole, fraction) = digits.split_at(whole);
                let point = if width > 0 { "." } else { "" };
                write!(f, "{sign}{whole}{point}{fraction}")
            }
            _ => write!(f, "{sign}0.{digits:0>width$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickbeam_testing::Random;

    /// A number of up to some 200 digits, many of them 0 or 9.
    fn number(random: &mut Random) -> Decimal {
        let count = random.pick(&[1, 4, 18, 37, 38, 39, 60, 150]);
        let digits: String = (0..count).map(|_| random.pick(&['0', '0', '9', '1', '5'])).collect();
        let scale = random.pick(&[0, 1, 19, 38, 39, 70]);
        let sign = if random.chance(50) { "-" } else { "" };
        Decimal::parse(&format!("{sign}{digits}e-{scale}")).unwrap().unwrap()
    }

    fn is_in_its_form(number: &Decimal) -> bool {
        match number {
            Decimal::Short(_) => true,
            Decimal::Long(number) => {
                number.scale > 38 || digit_count(number.mantissa.magnitude()) > 38
            }
        }
    }

    #[test]
    fn numbers_compute_as_integers_do() {
        let mut random = Random::new(1);
        for _ in 0..4_000 {
            let (a, b) = (number(&mut random), number(&mut random));
            // Both as integers at the scale of 100 digits.
            let [p, q] = [&a, &b].map(|number| number.wide().rounded(100).mantissa);
            let at =
                |integer: BigInt, scale| WideNumber::new(integer, scale).into_decimal().unwrap();
            let sum = a.checked_add(&b).unwrap();
            assert_eq!(sum, at(&p + &q, 100), "{a} + {b}");
            assert_eq!(sum.scale(), a.scale().max(b.scale()));
            assert_eq!(a.checked_sub(&b).unwrap(), at(&p - &q, 100), "{a} - {b}");
            let product = a.checked_mul(&b).unwrap();
            assert_eq!(product, at(&p * &q, 200), "{a} * {b}");
            assert_eq!(product.scale(), a.scale() + b.scale());
            assert_eq!(a.cmp(&b), p.cmp(&q), "{a} and {b}");
            let mut results = vec![sum, product, a.negate(), a.stripped(), a.absolute()];
            if !b.is_zero() {
                assert_eq!(a.checked_rem(&b).unwrap(), at(&p % &q, 100), "{a} % {b}");
                assert_eq!(a.whole_quotient(&b).unwrap(), at(&p / &q, 0), "{a} div {b}");
                let quotient = a.checked_div(&b).unwrap();
                let rest = quotient.checked_mul(&b).unwrap().checked_sub(&a).unwrap().absolute();
                let half = b.absolute().checked_mul(&at(5.into(), quotient.scale() + 1)).unwrap();
                assert!(rest <= half, "{a} / {b} is no {quotient}");
                results.push(quotient);
            }
            let floor = a.floor().unwrap();
            let is_next = floor.checked_add(&Decimal::from(1)).unwrap() > a;
            assert!(floor <= a && is_next, "the floor {floor} of {a}");
            let root = a.absolute().square_root().unwrap();
            let step = at(5.into(), root.scale() + 1);
            let [below, above] =
                [root.checked_sub(&step), root.checked_add(&step)].map(Result::unwrap);
            let is_below = below.signum() < 0 || below.checked_mul(&below).unwrap() <= a.absolute();
            assert!(is_below && above.checked_mul(&above).unwrap() >= a.absolute(), "{a}");
            results.extend([floor, root, a.clone()]);
            for result in &results {
                assert!(is_in_its_form(result), "{result} is in the other form");
                let again = Decimal::parse(&result.to_string()).unwrap().unwrap();
                assert_eq!((&again, again.scale()), (result, result.scale()));
            }
        }
    }

    #[test]
    fn limits_are_those_of_postgresql() {
        let read = |text: &str| Decimal::parse(text).map(|number| number.map_err(|e| e.code()));
        let is_number = |text: &str| matches!(read(text), Some(Ok(_)));
        assert!(is_number("1e131071") && is_number("1e-16383") && is_number("0e-16383"));
        for text in ["1e131072", "1e-16384", "1e99999999999999999999", "-1e-2147483648"] {
            assert_eq!(read(text).map(|number| number.is_err()), Some(true), "{text}");
        }
        for text in ["", "1e", "e5", ".", "1.2.3", "1e5x", "--1", "0x1", "1_0"] {
            assert!(read(text).is_none(), "{text}");
        }
        let most = read("9e131071").unwrap().unwrap();
        assert!(most.checked_add(&most).is_err() && most.checked_mul(&Decimal::from(2)).is_err());
        assert!(most.checked_mul(&most).is_err());
        assert_eq!(most.checked_sub(&most).unwrap(), Decimal::from(0));
        let least = read("1e-16383").unwrap().unwrap();
        let rounded = least.checked_mul(&least).unwrap();
        assert!(rounded.is_zero() && rounded.scale() == MAX_SCALE);
    }

    #[test]
    fn doubles_are_the_nearest() {
        let double = |text: &str| WideNumber::parse(text).unwrap().unwrap().to_f64();
        let zeros = "0".repeat(1_000);
        assert_eq!(double(&format!("9007199254740993.{zeros}")), 9_007_199_254_740_992.0);
        assert_eq!(double(&format!("9007199254740993.{zeros}1")), 9_007_199_254_740_994.0);
        assert_eq!(double("-1e400"), f64::NEG_INFINITY);
        assert_eq!(double("1e-400"), 0.0);
    }

    #[test]
    fn bytes_are_read_back_or_refused() {
        for text in ["1e38", "-1e131071", "1e-39", "-0.5e-100", "0e-50", "9e-16383"] {
            let number = WideNumber::parse(text).unwrap().unwrap();
            let long = number.to_long();
            let read = WideNumber::of_long(LongNumericRef::read(long.as_ref().bytes()).unwrap());
            assert_eq!((read.mantissa, read.scale), (number.mantissa, number.scale));
        }
        let mut random = Random::new(2);
        for _ in 0..20_000 {
            let length = random.below(24);
            let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            if let Some(number) = LongNumericRef::read(&bytes) {
                let long = WideNumber::of_long(number).to_long();
                assert_eq!(long.as_ref().bytes(), bytes);
                assert!(!number.to_string().is_empty() && !number.to_f64().is_nan());
            }
        }
    }
}
