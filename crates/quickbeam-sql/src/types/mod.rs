//! Data types and values.
//!
//! The catalog, storage and evaluation use this module; it uses errors only. A [`Value`] owns its
//! content, a [`ValueRef`] borrows it, for example from a row's bytes. All comparisons are defined
//! on [`ValueRef`].

mod adjust;
mod array;
mod cast;
mod clock_words;
pub mod collation;
mod datetime;
mod datetime_words;
pub mod encoded;
mod fit;
mod interval;
pub mod json;
mod numeric;
mod output;
mod precise;
mod system;
mod text;
mod text_settings;
mod value;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::array::array_text::{format_array, too_many as too_many_dimensions};
pub use self::array::array_value::{
    Array, ArrayBuilder, ArrayRef, Dimension, FieldRef, MAX_DIMENSIONS, RowRef,
};
pub use self::array::assigned::{SliceBounds, with_element, with_slice};
pub use self::array::element_type::ElementType;
pub use cast::{CastContext, assign, cast, cast_context, cast_reads_settings, compare_as, convert};
pub use clock_words::has_clock_words;
pub(crate) use clock_words::without_clock_words;
pub use collation::{CollateStep, Collation, CollationDefinition, LetterForm};
pub use datetime::{
    DATE_INFINITY, DAY, SECOND, TIMESTAMP_INFINITY, current_moment, date_of, days_in_month,
    days_of, is_date, is_timestamp,
};
pub use encoded::{EncodedKind, EncodedType};
pub use fit::{fit_assigned, parse_assigned};
pub use interval::input::parse_interval;
pub use interval::{HOUR, Interval, IntervalUnit, MINUTE, interval_out_of_range};
pub(crate) use numeric::{Decimal, LONG_SCALE};
pub use numeric::{
    LongNumeric, LongNumericRef, MAX_PRECISION, Numeric, NumericLimits, SHORT_PRECISION,
    decimal_power,
};
pub use output::{OffsetMinutes, write_offset, write_xsd};
pub use precise::{IntervalFields, PreciseType, TimeKind};
pub use system::SystemType;
pub use text::{checked_text, format_value, format_vector, parse_value, without_blanks};
pub use text_settings::{
    ByteaOutput, DateOrder, DateStyle, IntervalStyle, SessionZone, TextSettings, zones_at,
};
pub use value::{Value, ValueRef};

/// A type of columns, parameters and expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DataType {
    /// True or false.
    Boolean,
    /// Two-byte signed integer.
    SmallInt,
    /// Four-byte signed integer.
    Integer,
    /// Eight-byte signed integer.
    BigInt,
    /// Single precision floating point.
    Real,
    /// Double precision floating point.
    Double,
    /// Exact decimal with a precision of at most 38 and a scale from 0 to the precision; `None`:
    /// unconstrained.
    Numeric(Option<(u8, u8)>),
    /// Text of any length.
    Text,
    /// Text of at most this many characters; `None`: any length.
    Varchar(Option<u32>),
    /// Text of exactly this many characters, padded with blanks that are not significant.
    Char(u32),
    /// Bytes of any length.
    Bytea,
    /// A calendar date.
    Date,
    /// A time of day with microseconds.
    Time,
    /// Date and time of day without a time zone.
    Timestamp,
    /// A point in time, shown in the session's time zone.
    TimestampTz,
    /// A universally unique identifier.
    Uuid,
    /// A span of months, days and microseconds.
    Interval,
    /// JSON, kept as it is written.
    Json,
    /// JSON in a canonical form.
    Jsonb,
    /// An array of any number of dimensions.
    Array(ElementType),
    /// A type of the system catalogs.
    System(SystemType),
    /// A type whose values are bytes in the order of the values.
    Encoded(EncodedType),
    /// A type of times with a precision, or of intervals with fields.
    Precise(PreciseType),
    /// Exact decimal with any other precision and scale.
    WideNumeric(NumericLimits),
}

impl DataType {
    /// Returns PostgreSQL's catalog name of the type; of an array, that of its elements.
    #[must_use]
    pub fn catalog_name(self) -> &'static str {
        match self {
            DataType::Boolean => "bool",
            DataType::SmallInt => "int2",
            DataType::Integer => "int4",
            DataType::BigInt => "int8",
            DataType::Real => "float4",
            DataType::Double => "float8",
            DataType::Numeric(_) | DataType::WideNumeric(_) => "numeric",
            DataType::Text => "text",
            DataType::Varchar(_) => "varchar",
            DataType::Char(_) => "bpchar",
            DataType::Bytea => "bytea",
            DataType::Date => "date",
            DataType::Time => "time",
            DataType::Timestamp => "timestamp",
            DataType::TimestampTz => "timestamptz",
            DataType::Uuid => "uuid",
            DataType::Interval => "interval",
            DataType::Json => "json",
            DataType::Jsonb => "jsonb",
            DataType::Array(element) => element.data_type().catalog_name(),
            DataType::System(known) => known.name(),
            DataType::Encoded(encoded) => encoded.name(),
            DataType::Precise(precise) => precise.plain().catalog_name(),
        }
    }

    /// Returns whether this is one of the three integer types.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self, DataType::SmallInt | DataType::Integer | DataType::BigInt)
    }

    /// Returns whether this is a numeric type.
    #[must_use]
    pub fn is_numeric(self) -> bool {
        self.is_integer()
            || matches!(self, DataType::Real | DataType::Double | DataType::Numeric(_))
            || matches!(self, DataType::WideNumeric(_))
    }

    /// Returns whether this is TEXT, VARCHAR, CHAR, `name` or `"char"`.
    #[must_use]
    pub fn is_text(self) -> bool {
        match self {
            DataType::Text | DataType::Varchar(_) | DataType::Char(_) => true,
            DataType::System(known) => known.is_text(),
            _ => false,
        }
    }

    /// `bpchar`: a CHAR without a length, which keeps the blanks at its end.
    pub const BPCHAR: DataType = DataType::Char(0);

    /// `oid`
    pub const OID: DataType = DataType::System(SystemType::Oid);

    /// Returns whether this is `oid` or a type whose values are numbers of objects.
    #[must_use]
    pub fn is_object_number(self) -> bool {
        matches!(self, DataType::System(known) if known.is_number())
    }

    /// Returns the `reg…` type.
    #[must_use]
    pub fn reference(self) -> Option<SystemType> {
        match self {
            DataType::System(known) if known.is_reference() => Some(known),
            _ => None,
        }
    }

    /// Returns the kind of a type whose values are bytes.
    #[must_use]
    pub fn encoded(self) -> Option<EncodedKind> {
        match self {
            DataType::Encoded(encoded) => Some(encoded.kind()),
            _ => None,
        }
    }

    /// Returns the element type of an array.
    #[must_use]
    pub fn element(self) -> Option<ElementType> {
        match self {
            DataType::Array(element) => Some(element),
            _ => None,
        }
    }

    /// Returns the enumerated type of a value or of the elements of an array.
    #[must_use]
    pub fn enumerated(self) -> Option<EncodedType> {
        match self {
            DataType::Encoded(encoded) => Some(encoded).filter(|it| it.kind() == EncodedKind::Enum),
            DataType::Array(element) => element.data_type().enumerated(),
            _ => None,
        }
    }

    /// Returns the type with another type that has a definition in the place of the one that it
    /// has.
    #[must_use]
    pub(crate) fn with_definition(self, encoded: EncodedType) -> DataType {
        match self {
            DataType::Array(_) => {
                ElementType::new(DataType::Encoded(encoded)).map_or(self, DataType::Array)
            }
            _ => DataType::Encoded(encoded),
        }
    }

    /// Returns the bytes of a value in a row, or `None` if the length varies.
    #[must_use]
    pub fn fixed_width(self) -> Option<usize> {
        Some(match self {
            DataType::Boolean => 1,
            DataType::SmallInt => 2,
            DataType::Integer | DataType::Real | DataType::Date => 4,
            DataType::BigInt
            | DataType::Double
            | DataType::Time
            | DataType::Timestamp
            | DataType::TimestampTz => 8,
            DataType::Uuid | DataType::Interval => 16,
            DataType::System(known) if known.is_number() => 4,
            DataType::Numeric(_) | DataType::WideNumeric(_) => 17,
            DataType::Precise(precise) => return precise.plain().fixed_width(),
            DataType::Text
            | DataType::Varchar(_)
            | DataType::Char(_)
            | DataType::Bytea
            | DataType::Json
            | DataType::Jsonb
            | DataType::System(_)
            | DataType::Encoded(_)
            | DataType::Array(_) => return None,
        })
    }

    /// Returns the type without length, precision and scale.
    #[must_use]
    pub fn unconstrained(self) -> DataType {
        match self {
            DataType::Numeric(_) | DataType::WideNumeric(_) => DataType::Numeric(None),
            DataType::Varchar(_) => DataType::Varchar(None),
            DataType::Array(element) => DataType::Array(element.unconstrained()),
            DataType::Encoded(encoded) => DataType::Encoded(encoded.unconstrained()),
            DataType::Precise(precise) => precise.plain(),
            other => other,
        }
    }

    /// Returns the type without the precision or fields of times and intervals.
    #[must_use]
    pub fn without_time_precision(self) -> DataType {
        match self {
            DataType::Precise(precise) => precise.plain(),
            DataType::Encoded(encoded) if encoded.kind() == EncodedKind::TimeTz => {
                encoded.kind().data_type()
            }
            other => other,
        }
    }

    /// Returns whether values of both types are stored and compared in the same way.
    #[must_use]
    pub fn is_same_kind(self, other: DataType) -> bool {
        // Values of arrays do not know which enumerated or row type their elements have.
        if let (DataType::Array(a), DataType::Array(b)) = (self, other)
            && let (a @ DataType::Encoded(one), b @ DataType::Encoded(two)) =
                (a.data_type(), b.data_type())
            && one.kind().has_definition()
            && one.kind() == two.kind()
        {
            return cast_context(a, b) == Some(CastContext::Implicit);
        }
        let plain = |data_type: DataType| match data_type {
            DataType::Varchar(_) => DataType::Text,
            DataType::Char(_) => DataType::Char(1),
            DataType::Array(element) => DataType::Array(element.stored()),
            DataType::System(known) if known.is_text() => DataType::Text,
            other => other.unconstrained(),
        };
        plain(self) == plain(other)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Boolean => f.write_str("boolean"),
            DataType::SmallInt => f.write_str("smallint"),
            DataType::Integer => f.write_str("integer"),
            DataType::BigInt => f.write_str("bigint"),
            DataType::Real => f.write_str("real"),
            DataType::Double => f.write_str("double precision"),
            DataType::Numeric(None) => f.write_str("numeric"),
            DataType::Numeric(Some((precision, scale))) => {
                write!(f, "numeric({precision},{scale})")
            }
            DataType::Text => f.write_str("text"),
            DataType::Varchar(None) => f.write_str("character varying"),
            DataType::Varchar(Some(length)) => write!(f, "character varying({length})"),
            DataType::Char(0) => f.write_str("bpchar"),
            DataType::Char(length) => write!(f, "character({length})"),
            DataType::Bytea => f.write_str("bytea"),
            DataType::Date => f.write_str("date"),
            DataType::Time => f.write_str("time without time zone"),
            DataType::Timestamp => f.write_str("timestamp without time zone"),
            DataType::TimestampTz => f.write_str("timestamp with time zone"),
            DataType::Uuid => f.write_str("uuid"),
            DataType::Interval => f.write_str("interval"),
            DataType::Json => f.write_str("json"),
            DataType::Jsonb => f.write_str("jsonb"),
            DataType::Array(element) => write!(f, "{}[]", element.data_type()),
            DataType::System(SystemType::SingleChar) => f.write_str("\"char\""),
            DataType::System(known) => f.write_str(known.name()),
            DataType::Encoded(encoded) => encoded.fmt(f),
            DataType::Precise(precise) => precise.fmt(f),
            DataType::WideNumeric(limits) => limits.fmt(f),
        }
    }
}
