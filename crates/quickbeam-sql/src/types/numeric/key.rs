//! NUMERIC in keys: bytes that sort as the numbers.
//!
//! Infinity is 3, NaN is 4, and -Infinity is 0 0, which is below all negative numbers. Others have
//! a sign (0, 1 or 2), the power of ten, the digits in pairs, each plus one, and a zero. All after
//! the sign of a negative number is turned over. No number's bytes are the beginning of another's.
//!
//! A power of ten from -126 to 125 is one byte. Others are four bytes after a byte that is below or
//! above those.

use num_bigint::{BigInt, BigUint, Sign};
use quickbeam::invariant;

use super::long::MAX_SCALE;
use super::wide::{MAX_WHOLE_DIGITS, WideNumber};
use super::{Decimal, Numeric};

/// What is added to a power of ten.
const EXPONENT_BIAS: i32 = 128;

/// What stands before a power of ten of four bytes.
const LEAST_EXPONENT: u8 = 1;
const MOST_EXPONENT: u8 = 254;

/// The sign of a negative number.
const NEGATIVE: u8 = 0;

/// The byte after that sign of -Infinity. The power of ten of no number has it.
const NEGATIVE_INFINITY: u8 = 0;

const INFINITY: u8 = 3;
const NAN: u8 = 4;

/// Pairs of digits that 128 bits hold.
const SHORT_PAIRS: usize = 19;

impl Numeric {
    /// Appends the number.
    pub(crate) fn write_key(self, out: &mut Vec<u8>) {
        let start = out.len();
        self.append_key(out);
        invariant!(NUM_2, self.has_key(&out[start..]), "{self} has the key {:?}", &out[start..]);
    }

    /// Returns whether bytes are the key of the number at its smallest scale, too.
    fn has_key(self, key: &[u8]) -> bool {
        let mut stripped = Vec::new();
        self.stripped().append_key(&mut stripped);
        stripped == key
    }

    fn append_key(self, out: &mut Vec<u8>) {
        if !self.is_finite() {
            return out.extend_from_slice(match (self.is_nan(), self.signum()) {
                (true, _) => &[NAN],
                (_, 1) => &[INFINITY],
                _ => &[NEGATIVE, NEGATIVE_INFINITY],
            });
        }
        let (sign, exponent, mut digits) = self.digits();
        out.push((sign + 1) as u8);
        if sign == 0 {
            return;
        }
        let start = out.len();
        out.push((exponent + EXPONENT_BIAS) as u8);
        // The first pair holds the first two digits, for any power of ten.
        let mut pairs = [0_u8; 20];
        let mut count = 0;
        let length = digits.checked_ilog10().unwrap_or(0) + 1;
        if length % 2 == 1 {
            digits *= 10;
        }
        while digits != 0 {
            pairs[count] = (digits % 100) as u8;
            digits /= 100;
            count += 1;
        }
        out.extend(pairs[..count].iter().rev().map(|pair| pair + 1));
        out.push(0);
        if sign < 0 {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

impl WideNumber {
    fn append_key(&self, out: &mut Vec<u8>) {
        let sign = self.signum();
        out.push((sign + 1) as u8);
        if sign == 0 {
            return;
        }
        let start = out.len();
        let exponent = self.exponent() as i32;
        match u8::try_from(exponent + EXPONENT_BIAS) {
            Ok(byte) if byte > LEAST_EXPONENT && byte < MOST_EXPONENT => out.push(byte),
            _ => {
                out.push(if exponent < 0 { LEAST_EXPONENT } else { MOST_EXPONENT });
                out.extend_from_slice(&(exponent ^ i32::MIN).to_be_bytes());
            }
        }
        let mut digits = self.mantissa.magnitude().to_radix_be(10);
        let used = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
        digits.truncate(used.next_multiple_of(2).min(digits.len()));
        out.extend(digits.chunks(2).map(|pair| {
            let second = pair.get(1).copied().unwrap_or(0);
            pair[0] * 10 + second + 1
        }));
        out.push(0);
        if sign < 0 {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

impl Decimal {
    /// Appends the number.
    pub(crate) fn write_key(&self, out: &mut Vec<u8>) {
        match self {
            Decimal::Short(number) => number.write_key(out),
            Decimal::Long(number) => number.append_key(out),
        }
    }

    /// Reads a number byte by byte; `None` if the bytes are those of no number.
    pub(crate) fn read_key(mut next: impl FnMut() -> Option<u8>) -> Option<Decimal> {
        let (sign, turn) = match next()? {
            NEGATIVE => (-1, u8::MAX),
            1 => return Some(Decimal::Short(Numeric::ZERO)),
            2 => (1, 0),
            INFINITY => return Some(Decimal::Short(Numeric::INFINITY)),
            NAN => return Some(Decimal::Short(Numeric::NAN)),
            _ => return None,
        };
        let exponent = match next()? {
            NEGATIVE_INFINITY if sign < 0 => {
                return Some(Decimal::Short(Numeric::NEGATIVE_INFINITY));
            }
            exponent => exponent ^ turn,
        };
        let exponent = match exponent {
            LEAST_EXPONENT | MOST_EXPONENT => {
                let mut bytes = [0; 4];
                for byte in &mut bytes {
                    *byte = next()? ^ turn;
                }
                i32::from_be_bytes(bytes) ^ i32::MIN
            }
            byte => i32::from(byte) - EXPONENT_BIAS,
        };
        let (mut mantissa, mut count, mut more) = (0_i128, 0, Vec::new());
        loop {
            match next()? ^ turn {
                0 => break,
                pair @ 1..=100 if count < SHORT_PAIRS => {
                    mantissa = mantissa * 100 + i128::from(pair - 1);
                    count += 1;
                }
                pair @ 1..=100 => more.push(pair - 1),
                _ => return None,
            }
        }
        // The value is mantissa / 10^(digits - 1 - exponent).
        let digits = 2 * (count + more.len()) as i64;
        let scale = digits - 1 - i64::from(exponent);
        if more.is_empty()
            && let Some(short) = short_of_key(mantissa * sign, scale)
        {
            return Some(Decimal::Short(short));
        }
        if scale - 1 > MAX_SCALE.into() || i64::from(exponent) >= MAX_WHOLE_DIGITS {
            return None;
        }
        let tail = BigUint::from_radix_be(&more, 100).unwrap_or(BigUint::ZERO);
        let head =
            BigInt::from(mantissa) * BigInt::from(BigUint::from(100_u8).pow(more.len() as u32));
        let integer = head + BigInt::from_biguint(Sign::Plus, tail);
        let integer = integer * BigInt::from(sign);
        let number = match u32::try_from(scale) {
            Ok(scale) => WideNumber::new(integer, scale).stripped(),
            Err(_) => WideNumber::new(integer, 0).padded(scale.unsigned_abs() as u32),
        };
        number.into_decimal().ok()
    }
}

/// Returns `mantissa` / 10^`scale` without trailing zeros after the point, if it is short.
fn short_of_key(mut mantissa: i128, mut scale: i64) -> Option<Numeric> {
    if mantissa == 0 {
        return None;
    }
    while scale > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        scale -= 1;
    }
    while scale < 0 {
        mantissa = mantissa.checked_mul(10)?;
        scale += 1;
    }
    Numeric::new(mantissa, u8::try_from(scale).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickbeam_testing::Random;

    fn key(number: &Decimal) -> Vec<u8> {
        let mut out = Vec::new();
        number.write_key(&mut out);
        out
    }

    #[test]
    fn keys_of_both_forms_sort_as_the_numbers() {
        let mut random = Random::new(3);
        let mut numbers: Vec<Decimal> = (0..300)
            .map(|_| {
                let count = random.pick(&[1, 2, 38, 39, 40, 77]);
                let digits: String = (0..count).map(|_| random.pick(&['0', '9', '1'])).collect();
                let exponent = random.pick(&[
                    0, -1, -38, -39, -126, -127, -128, -200, 5, 87, 125, 126, 127, 128, 300,
                ]);
                let sign = random.pick(&["", "-"]);
                Decimal::parse(&format!("{sign}{digits}e{exponent}")).unwrap().unwrap()
            })
            .collect();
        // Comparisons of the longest numbers are slow: few of them are enough.
        let ends = ["9e131071", "-9e131071", "1e-16383", "-1e-16383", "1.5e4000", "-1.5e-4000"];
        numbers.extend(ends.map(|text| Decimal::parse(text).unwrap().unwrap()));
        numbers
            .extend([Numeric::NAN, Numeric::INFINITY, Numeric::NEGATIVE_INFINITY].map(Into::into));
        let keys: Vec<Vec<u8>> = numbers.iter().map(key).collect();
        for (a, of_a) in numbers.iter().zip(&keys) {
            let mut rest = of_a.iter().copied();
            let read = Decimal::read_key(|| rest.next()).unwrap();
            assert_eq!((&read, rest.len()), (a, 0));
            for (b, of_b) in numbers.iter().zip(&keys) {
                assert_eq!(of_a.cmp(of_b), a.cmp(b), "{a} and {b}");
                assert!(of_a == of_b || !of_b.starts_with(of_a), "{a} begins {b}");
            }
        }
    }

    #[test]
    fn bytes_of_no_number_are_refused() {
        let mut random = Random::new(4);
        for _ in 0..200_000 {
            let length = random.below(12);
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    random.pick(&[0, 1, 2, 3, 127, 128, 254, 255, random.clone().next() as u8])
                })
                .collect();
            let mut rest = bytes.iter().copied();
            if let Some(number) = Decimal::read_key(|| rest.next()) {
                let mut again = Vec::new();
                number.write_key(&mut again);
                assert!(!again.is_empty());
            }
        }
        let long = [vec![2, 128], vec![100; 400], vec![0]].concat();
        let mut rest = long.iter().copied();
        assert!(Decimal::read_key(|| rest.next()).is_some());
    }
}
