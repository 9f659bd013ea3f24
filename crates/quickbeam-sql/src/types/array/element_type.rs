//! The type of the elements of an array: a number of four bytes.

use serde::{Deserialize, Serialize};

use crate::types::{
    DataType, EncodedKind, EncodedType, NumericLimits, PreciseType, SystemType, TimeKind,
};

/// The type of the elements of an array: any type but an array. Four bytes, so that it does not
/// enlarge [`DataType`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "DataType", try_from = "DataType")]
pub struct ElementType(u32);

const CODE_SHIFT: u32 = 24;

/// The code of the first type of the system catalogs; the others follow in their order.
const FIRST_SYSTEM_CODE: u32 = 20;

/// The types of the system catalogs that have codes from [`FIRST_SYSTEM_CODE`] on. Stored arrays
/// have the codes that follow, so later types have theirs from [`FIRST_LATER_CODE`] on.
const EARLY_SYSTEM_TYPES: u32 = 12;

/// The code of the first type whose values are bytes; the others follow in their order.
const FIRST_ENCODED_CODE: u32 = FIRST_SYSTEM_CODE + EARLY_SYSTEM_TYPES;

/// The code of the first of the later types of the system catalogs.
const FIRST_LATER_CODE: u32 = 240;

impl ElementType {
    /// TEXT
    pub const TEXT: ElementType = ElementType(8 << CODE_SHIFT);
    /// INTEGER
    pub const INTEGER: ElementType = ElementType(3 << CODE_SHIFT);
    /// `name`
    pub const NAME: ElementType =
        ElementType((FIRST_SYSTEM_CODE + SystemType::Name as u32) << CODE_SHIFT);
    /// `oid`
    pub const OID: ElementType = ElementType(FIRST_SYSTEM_CODE << CODE_SHIFT);

    /// Returns the element type, or `None` for an array.
    #[must_use]
    pub const fn new(data_type: DataType) -> Option<ElementType> {
        let (code, modifier): (u32, u32) = match data_type {
            DataType::Boolean => (1, 0),
            DataType::SmallInt => (2, 0),
            DataType::Integer => (3, 0),
            DataType::BigInt => (4, 0),
            DataType::Real => (5, 0),
            DataType::Double => (6, 0),
            DataType::Numeric(None) => (7, 0),
            DataType::Numeric(Some((precision, scale))) => {
                (7, (precision as u32) << 8 | scale as u32)
            }
            DataType::WideNumeric(limits) => (7, limits.number()),
            DataType::Text => (8, 0),
            DataType::Varchar(None) => (9, 0),
            DataType::Varchar(Some(length)) => (9, length),
            DataType::Char(length) => (10, length),
            DataType::Bytea => (11, 0),
            DataType::Date => (12, 0),
            DataType::Time => (13, 0),
            DataType::Timestamp => (14, 0),
            DataType::TimestampTz => (15, 0),
            DataType::Uuid => (16, 0),
            DataType::Interval => (17, 0),
            DataType::Json => (18, 0),
            DataType::Jsonb => (19, 0),
            DataType::System(SystemType::Int2Vector | SystemType::OidVector)
            | DataType::Array(_) => return None,
            DataType::System(known) if (known as u32) < EARLY_SYSTEM_TYPES => {
                (FIRST_SYSTEM_CODE + known as u32, 0)
            }
            DataType::System(known) => (FIRST_LATER_CODE + known as u32 - EARLY_SYSTEM_TYPES, 0),
            DataType::Precise(precise) => match ElementType::new(precise.plain()) {
                Some(plain) => (plain.0 >> CODE_SHIFT, precise.number()),
                None => return None,
            },
            DataType::Encoded(encoded) => {
                (FIRST_ENCODED_CODE + encoded.kind() as u32, encoded.length())
            }
        };
        Some(ElementType(code << CODE_SHIFT | modifier & ((1 << CODE_SHIFT) - 1)))
    }

    /// Returns the type of an element.
    #[must_use]
    pub const fn data_type(self) -> DataType {
        let modifier = self.0 & ((1 << CODE_SHIFT) - 1);
        match self.0 >> CODE_SHIFT {
            1 => DataType::Boolean,
            2 => DataType::SmallInt,
            3 => DataType::Integer,
            4 => DataType::BigInt,
            5 => DataType::Real,
            6 => DataType::Double,
            7 if modifier == 0 => DataType::Numeric(None),
            7 => match NumericLimits::of_number(modifier) {
                Some(limits) => DataType::WideNumeric(limits),
                None => DataType::Numeric(Some(((modifier >> 8) as u8, modifier as u8))),
            },
            9 if modifier == 0 => DataType::Varchar(None),
            9 => DataType::Varchar(Some(modifier)),
            10 => DataType::Char(modifier),
            11 => DataType::Bytea,
            12 => DataType::Date,
            13 if modifier == 0 => DataType::Time,
            14 if modifier == 0 => DataType::Timestamp,
            15 if modifier == 0 => DataType::TimestampTz,
            16 => DataType::Uuid,
            17 if modifier == 0 => DataType::Interval,
            code @ (13 | 14 | 15 | 17) => {
                let kind = match code {
                    13 => TimeKind::Time,
                    14 => TimeKind::Timestamp,
                    15 => TimeKind::TimestampTz,
                    _ => TimeKind::Interval,
                };
                DataType::Precise(PreciseType::of_number(kind, modifier))
            }
            18 => DataType::Json,
            19 => DataType::Jsonb,
            code if code >= FIRST_ENCODED_CODE
                && code < FIRST_ENCODED_CODE + EncodedKind::ALL.len() as u32 =>
            {
                let kind = EncodedKind::ALL[(code - FIRST_ENCODED_CODE) as usize];
                DataType::Encoded(EncodedType::new(kind, modifier))
            }
            code if code >= FIRST_SYSTEM_CODE && code < FIRST_ENCODED_CODE => {
                DataType::System(SystemType::ALL[(code - FIRST_SYSTEM_CODE) as usize])
            }
            code if code >= FIRST_LATER_CODE
                && code - FIRST_LATER_CODE + EARLY_SYSTEM_TYPES < SystemType::ALL.len() as u32 =>
            {
                let place = code - FIRST_LATER_CODE + EARLY_SYSTEM_TYPES;
                DataType::System(SystemType::ALL[place as usize])
            }
            _ => DataType::Text,
        }
    }

    /// Returns the element type of values: without length, precision and scale; texts are TEXT.
    #[must_use]
    pub(crate) fn stored(self) -> ElementType {
        match self.data_type() {
            known if known.is_text() => ElementType::TEXT,
            known if known.is_object_number() => ElementType::OID,
            _ => ElementType(self.0 >> CODE_SHIFT << CODE_SHIFT),
        }
    }

    /// Returns the type without length, precision and scale.
    #[must_use]
    pub fn unconstrained(self) -> ElementType {
        ElementType::new(self.data_type().unconstrained()).unwrap_or(self)
    }

    pub(in crate::types) fn of_code(code: u8) -> Option<ElementType> {
        let last = FIRST_ENCODED_CODE + EncodedKind::ALL.len() as u32 - 1;
        (1..=last).contains(&u32::from(code)).then_some(ElementType(u32::from(code) << CODE_SHIFT))
    }

    pub(in crate::types) fn code(self) -> u8 {
        (self.0 >> CODE_SHIFT) as u8
    }
}

impl SystemType {
    /// Returns the type of the arrays that a vector's values are.
    #[must_use]
    pub fn vector_array(self) -> Option<DataType> {
        Some(DataType::Array(ElementType::new(self.vector_element()?)?))
    }
}

impl From<ElementType> for DataType {
    fn from(element: ElementType) -> DataType {
        element.data_type()
    }
}

impl TryFrom<DataType> for ElementType {
    type Error = &'static str;

    fn try_from(data_type: DataType) -> std::result::Result<ElementType, &'static str> {
        ElementType::new(data_type).ok_or("an array of arrays has no element type")
    }
}

impl std::fmt::Debug for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.data_type().fmt(f)
    }
}
