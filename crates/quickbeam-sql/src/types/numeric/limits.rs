//! Precision and scale of a NUMERIC whose values [`Numeric`](super::Numeric) may not hold.
//!
//! Columns of a precision of at most 38 and a scale from 0 to the precision have values of one
//! form and one scale, so vectors hold them as integers. All other limits are here. Their columns
//! are like those without limits, also in files.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::MAX_PRECISION;
use crate::types::DataType;

/// Precision and scale of NUMERIC(p, s): a precision of more than 38 digits, or a scale that is
/// negative or greater than the precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NumericLimits {
    precision: u16,
    scale: i16,
}

/// Bits of a scale in a modifier.
const SCALE_BITS: u32 = 11;

/// Distance of scales in [`NumericLimits::number`] from those of the type.
const SCALE_OFFSET: i16 = 1 << (SCALE_BITS - 1);

impl NumericLimits {
    /// Maximum precision, and maximum absolute value of a scale.
    pub const MAX: i64 = 1000;

    /// The bit of [`number`](Self::number) that no [short](DataType::Numeric) precision has.
    const IS_WIDE: u32 = 1 << 23;

    /// Returns the type NUMERIC(`precision`, `scale`).
    #[must_use]
    pub fn data_type(precision: u16, scale: i16) -> DataType {
        match (u8::try_from(precision), u8::try_from(scale)) {
            (Ok(precision @ ..=MAX_PRECISION), Ok(scale)) if scale <= precision => {
                DataType::Numeric(Some((precision, scale)))
            }
            _ => DataType::WideNumeric(NumericLimits { precision, scale }),
        }
    }

    /// Returns the maximum number of digits.
    #[must_use]
    pub const fn precision(self) -> u16 {
        self.precision
    }

    /// Returns the number of digits after the point.
    #[must_use]
    pub const fn scale(self) -> i16 {
        self.scale
    }

    /// Returns PostgreSQL's type modifier.
    #[must_use]
    pub fn modifier(self) -> i32 {
        let scale = i32::from(self.scale) & ((1 << SCALE_BITS) - 1);
        (i32::from(self.precision) << 16 | scale) + 4
    }

    /// Returns the name of the type with PostgreSQL's type modifier.
    #[must_use]
    pub fn type_name(modifier: i32) -> String {
        let limits = modifier - 4;
        let scale = (limits & ((1 << SCALE_BITS) - 1)) ^ i32::from(SCALE_OFFSET);
        format!("numeric({},{})", limits >> 16, scale - i32::from(SCALE_OFFSET))
    }

    /// Returns the limits as a number of 24 bits.
    pub(in crate::types) const fn number(self) -> u32 {
        let scale = (self.scale + SCALE_OFFSET) as u32;
        NumericLimits::IS_WIDE | (self.precision as u32) << SCALE_BITS | scale
    }

    /// Returns the limits with that number, or `None` if it is another number.
    pub(in crate::types) const fn of_number(number: u32) -> Option<NumericLimits> {
        if number & NumericLimits::IS_WIDE == 0 {
            return None;
        }
        let precision = (number & !NumericLimits::IS_WIDE) >> SCALE_BITS;
        let scale = (number & ((1 << SCALE_BITS) - 1)) as i16 - SCALE_OFFSET;
        Some(NumericLimits { precision: precision as u16, scale })
    }
}

impl fmt::Display for NumericLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "numeric({},{})", self.precision, self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_modifier_name_the_limits() {
        for (precision, scale) in [(1000, 1000), (1000, -1000), (39, 0), (1, -1), (2, 3)] {
            let DataType::WideNumeric(limits) = NumericLimits::data_type(precision, scale) else {
                panic!("{precision} {scale}");
            };
            assert_eq!(NumericLimits::of_number(limits.number()), Some(limits));
            assert_eq!(NumericLimits::type_name(limits.modifier()), limits.to_string());
            assert!(limits.number() < 1 << 24);
        }
        assert_eq!(NumericLimits::data_type(38, 38), DataType::Numeric(Some((38, 38))));
        assert_eq!(NumericLimits::of_number(38 << 8 | 38), None);
    }
}
