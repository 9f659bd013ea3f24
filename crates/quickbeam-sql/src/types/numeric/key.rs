//! NUMERIC in keys: bytes that sort as the numbers.
//!
//! Infinity is 3, NaN is 4, and -Infinity is 0 0, which is below all negative numbers. Others have
//! a sign (0, 1 or 2), the power of ten, the digits in pairs, each plus one, and a zero. All after
//! the sign of a negative number is turned over. No number's bytes are the beginning of another's.

use quickbeam::invariant;

use super::Numeric;

/// What is added to a power of ten.
const EXPONENT_BIAS: i32 = 128;

/// The sign of a negative number.
const NEGATIVE: u8 = 0;

/// The byte after that sign of -Infinity. The power of ten of no number has it.
const NEGATIVE_INFINITY: u8 = 0;

const INFINITY: u8 = 3;
const NAN: u8 = 4;

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

    /// Reads a number byte by byte; `None` if the bytes are those of no number.
    pub(crate) fn read_key(mut next: impl FnMut() -> Option<u8>) -> Option<Numeric> {
        let (sign, turn) = match next()? {
            NEGATIVE => (-1, u8::MAX),
            1 => return Some(Numeric::ZERO),
            2 => (1, 0),
            INFINITY => return Some(Numeric::INFINITY),
            NAN => return Some(Numeric::NAN),
            _ => return None,
        };
        let exponent = match next()? {
            NEGATIVE_INFINITY if sign < 0 => return Some(Numeric::NEGATIVE_INFINITY),
            exponent => exponent ^ turn,
        };
        let (mut mantissa, mut digits) = (0_i128, 0);
        loop {
            match next()? ^ turn {
                0 => break,
                pair @ 1..=100 if digits < 38 => {
                    mantissa = mantissa * 100 + i128::from(pair - 1);
                    digits += 2;
                }
                _ => return None,
            }
        }
        // The value is mantissa / 10^(digits - 1 - exponent).
        let mut scale = digits - 1 - (i32::from(exponent) - EXPONENT_BIAS);
        while scale > 0 && mantissa % 10 == 0 && mantissa != 0 {
            mantissa /= 10;
            scale -= 1;
        }
        while scale < 0 {
            mantissa = mantissa.checked_mul(10)?;
            scale += 1;
        }
        Numeric::new(mantissa * sign, u8::try_from(scale).ok()?).ok()
    }

    /// Returns the number with more digits after the point, as far as they fit.
    pub(crate) fn with_scale(self, scale: u8) -> Numeric {
        if scale <= self.scale() {
            return self;
        }
        self.round(scale.into()).unwrap_or(self)
    }
}
