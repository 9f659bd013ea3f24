//! NUMERIC of more digits than [`Numeric`](super::Numeric) holds, as bytes.
//!
//! ```text
//! ┌──────────────────────────────────────┬─────────────────────────────────┐
//! │ scale u16; its first bit is the sign │ integer without point and sign  │
//! └──────────────────────────────────────┴─────────────────────────────────┘
//! ```
//!
//! All numbers are little-endian. Rows, arrays and temporary files keep these bytes.
//!
//! - LONG-1: a number that `Numeric` holds never has this form: the integer is 10³⁸ or more, or the
//!   scale is beyond 38. Its last byte is not 0. So a value has one form only.

use std::sync::Arc;

use quickbeam::invariant;

use super::{MAX_PRECISION, decimal_power};

/// Maximum number of digits after the point.
pub(super) const MAX_SCALE: u32 = 16_383;

/// Bytes before the integer.
const HEAD: usize = 2;

/// The bit of a negative number.
const NEGATIVE: u16 = 1 << 15;

/// Bytes of the largest integer: 131,072 digits before the point and 16,383 after it.
const MAX_BYTES: usize = 61_240;

/// A NUMERIC of more than 38 digits.
#[derive(Clone)]
pub struct LongNumeric(Arc<[u8]>);

/// A borrowed [`LongNumeric`].
#[derive(Clone, Copy)]
pub struct LongNumericRef<'a>(&'a [u8]);

impl LongNumeric {
    /// Returns the number of an integer's bytes without zeros at their end.
    pub(super) fn new(is_negative: bool, scale: u32, integer: &[u8]) -> LongNumeric {
        let sign = if is_negative { NEGATIVE } else { 0 };
        let mut bytes = Vec::with_capacity(HEAD + integer.len());
        bytes.extend_from_slice(&(scale as u16 | sign).to_le_bytes());
        bytes.extend_from_slice(integer);
        let is_long = LongNumericRef::read(&bytes).is_some();
        invariant!(LONG_1, is_long, "{integer:?} with the scale {scale}");
        LongNumeric(bytes.into())
    }

    /// Returns the number, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> LongNumericRef<'_> {
        LongNumericRef(&self.0)
    }
}

impl<'a> LongNumericRef<'a> {
    /// Returns the number with these bytes, or `None` if no number has them (LONG-1).
    #[must_use]
    pub(crate) fn read(bytes: &'a [u8]) -> Option<LongNumericRef<'a>> {
        let (head, integer) = bytes.split_first_chunk::<HEAD>()?;
        let scale = u16::from_le_bytes(*head) & !NEGATIVE;
        let is_cut = match integer.last() {
            Some(last) => *last != 0,
            // Zero has no sign.
            None => head[1] & (NEGATIVE >> 8) as u8 == 0,
        };
        if u32::from(scale) > MAX_SCALE || !is_cut || integer.len() > MAX_BYTES {
            return None;
        }
        if scale <= u16::from(MAX_PRECISION) && integer.len() <= size_of::<u128>() {
            let mut low = [0; 16];
            low[..integer.len()].copy_from_slice(integer);
            if u128::from_le_bytes(low) < decimal_power(MAX_PRECISION).unsigned_abs() {
                return None;
            }
        }
        Some(LongNumericRef(bytes))
    }

    /// Returns the bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the number, owned.
    #[must_use]
    pub fn to_long(self) -> LongNumeric {
        LongNumeric(self.0.into())
    }

    /// Returns whether the number is negative, its scale and its integer.
    pub(super) fn parts(self) -> (bool, u32, &'a [u8]) {
        let (head, integer) = self.0.split_first_chunk::<HEAD>().unwrap_or((&[0; HEAD], &[]));
        let head = u16::from_le_bytes(*head);
        (head & NEGATIVE != 0, u32::from(head & !NEGATIVE), integer)
    }
}
