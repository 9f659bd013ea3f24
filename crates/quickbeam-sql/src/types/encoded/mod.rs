//! Types whose values are bytes in the order of the values: TIMETZ, network addresses, bit strings,
//! ranges, multiranges, labels, rows, places of rows, numbers of transactions, and the words of
//! documents and queries for full-text search.
//!
//! A value is `Value::Encoded`: its type and its bytes. Rows, temporary files and arrays keep the
//! bytes, so a type of this kind needs only its text form, its order and its casts. Each file here
//! describes the bytes of its types.
//!
//! - ENC-1: values of one family compare as their `ordering_key`s. Without decimals, queries
//!   and sort keys these are the values' own bytes.
//! - ENC-2: bytes that no value has never panic: they are shown as an empty text.

pub mod bits;
mod conversions;
pub(crate) mod enums;
pub mod multirange;
mod network;
mod ordering;
mod range;
pub(crate) mod record;
pub(crate) mod row_types;
pub mod text_search;
pub(crate) mod tuple_id;
mod zoned_time;

use serde::{Deserialize, Serialize};

pub(crate) use conversions::{convert, format, parse};
pub use enums::label as enum_label;
pub use network::{Address, same_family};
pub(crate) use ordering::{compare, of_ordering_key, ordering_key};
pub use range::{BoundPair, RangeBound, RangeValue};
pub use record::{MAX_FIELDS, RowBuilder, RowShape};
pub use zoned_time::{ZonedTime, in_zone};

use super::DataType;

/// A type whose values are bytes, without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum EncodedKind {
    /// TIME WITH TIME ZONE
    TimeTz,
    /// INET: the address of a host, and optionally its network.
    Inet,
    /// CIDR: the address of a network.
    Cidr,
    /// MACADDR: a hardware address of six bytes.
    Macaddr,
    /// MACADDR8: a hardware address of eight bytes.
    Macaddr8,
    /// BIT: bits, of a fixed number in columns.
    Bit,
    /// BIT VARYING
    Varbit,
    /// `int4range`
    Int4Range,
    /// `int8range`
    Int8Range,
    /// `numrange`
    NumRange,
    /// `daterange`
    DateRange,
    /// `tsrange`
    TsRange,
    /// `tstzrange`
    TsTzRange,
    /// `int4multirange`
    Int4Multirange,
    /// `int8multirange`
    Int8Multirange,
    /// `nummultirange`
    NumMultirange,
    /// `datemultirange`
    DateMultirange,
    /// `tsmultirange`
    TsMultirange,
    /// `tstzmultirange`
    TsTzMultirange,
    /// An enumerated type.
    Enum,
    /// A row.
    Record,
    /// `tid`: the place of a row.
    Tid,
    /// `xid8`: the number of a transaction.
    Xid8,
    /// `cid`: the number of a command in a transaction.
    Cid,
    /// `tsvector`: the words of a document.
    TsVector,
    /// `tsquery`: words and operators to search for.
    TsQuery,
    /// A text with its sort key: a value inside of statements only.
    Collated,
    /// `pg_lsn`: a position in a log.
    PgLsn,
}

use EncodedKind as K;

impl EncodedKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [EncodedKind; 28] = [
        K::TimeTz,
        K::Inet,
        K::Cidr,
        K::Macaddr,
        K::Macaddr8,
        K::Bit,
        K::Varbit,
        K::Int4Range,
        K::Int8Range,
        K::NumRange,
        K::DateRange,
        K::TsRange,
        K::TsTzRange,
        K::Int4Multirange,
        K::Int8Multirange,
        K::NumMultirange,
        K::DateMultirange,
        K::TsMultirange,
        K::TsTzMultirange,
        K::Enum,
        K::Record,
        K::Tid,
        K::Xid8,
        K::Cid,
        K::TsVector,
        K::TsQuery,
        K::Collated,
        K::PgLsn,
    ];

    /// Returns the type without a length.
    #[must_use]
    pub const fn data_type(self) -> DataType {
        DataType::Encoded(EncodedType::new(self, 0))
    }

    /// Returns the name in `pg_type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            K::TimeTz => "timetz",
            K::Inet => "inet",
            K::Cidr => "cidr",
            K::Macaddr => "macaddr",
            K::Macaddr8 => "macaddr8",
            K::Bit => "bit",
            K::Varbit => "varbit",
            K::Int4Range => "int4range",
            K::Int8Range => "int8range",
            K::NumRange => "numrange",
            K::DateRange => "daterange",
            K::TsRange => "tsrange",
            K::TsTzRange => "tstzrange",
            K::Int4Multirange => "int4multirange",
            K::Int8Multirange => "int8multirange",
            K::NumMultirange => "nummultirange",
            K::DateMultirange => "datemultirange",
            K::TsMultirange => "tsmultirange",
            K::TsTzMultirange => "tstzmultirange",
            K::Enum => "anyenum",
            K::Record => "record",
            K::Tid => "tid",
            K::Xid8 => "xid8",
            K::Cid => "cid",
            K::TsVector => "tsvector",
            K::TsQuery => "tsquery",
            K::Collated => "text",
            K::PgLsn => "pg_lsn",
        }
    }

    /// Returns the number in `pg_type`, and that of the arrays of the type.
    #[must_use]
    pub const fn oids(self) -> (u32, u32) {
        match self {
            K::TimeTz => (1266, 1270),
            K::Inet => (869, 1041),
            K::Cidr => (650, 651),
            K::Macaddr => (829, 1040),
            K::Macaddr8 => (774, 775),
            K::Bit => (1560, 1561),
            K::Varbit => (1562, 1563),
            K::Int4Range => (3904, 3905),
            K::Int8Range => (3926, 3927),
            K::NumRange => (3906, 3907),
            K::DateRange => (3912, 3913),
            K::TsRange => (3908, 3909),
            K::TsTzRange => (3910, 3911),
            K::Int4Multirange => (4451, 6150),
            K::Int8Multirange => (4536, 6157),
            K::NumMultirange => (4532, 6151),
            K::DateMultirange => (4535, 6155),
            K::TsMultirange => (4533, 6152),
            K::TsTzMultirange => (4534, 6153),
            K::Enum => (3500, 0),
            K::Record => (2249, 2287),
            K::Tid => (27, 1010),
            K::Xid8 => (5069, 271),
            K::Cid => (29, 1012),
            K::TsVector => (3614, 3643),
            K::TsQuery => (3615, 3645),
            K::Collated => (25, 1009),
            K::PgLsn => (3220, 3221),
        }
    }

    /// Returns the bytes of a value in PostgreSQL's rows; -1 if they vary.
    #[must_use]
    pub const fn wire_size(self) -> i16 {
        match self {
            K::TimeTz => 12,
            K::Macaddr | K::Tid => 6,
            K::Macaddr8 | K::Xid8 | K::PgLsn => 8,
            K::Enum | K::Cid => 4,
            _ => -1,
        }
    }

    /// Returns the kind of that name in `pg_type`.
    #[must_use]
    pub fn named(name: &str) -> Option<EncodedKind> {
        let mut all = EncodedKind::ALL.into_iter();
        all.find(|known| known.name() == name && !known.has_definition())
    }

    /// Returns the kind whose values compare with those of this kind.
    #[must_use]
    pub const fn family(self) -> EncodedKind {
        match self {
            K::Cidr => K::Inet,
            K::Bit => K::Varbit,
            other => other,
        }
    }

    /// Returns the type of a range's or multirange's bounds.
    #[must_use]
    pub const fn subtype(self) -> Option<DataType> {
        Some(match self {
            K::Int4Range | K::Int4Multirange => DataType::Integer,
            K::Int8Range | K::Int8Multirange => DataType::BigInt,
            K::NumRange | K::NumMultirange => DataType::Numeric(None),
            K::DateRange | K::DateMultirange => DataType::Date,
            K::TsRange | K::TsMultirange => DataType::Timestamp,
            K::TsTzRange | K::TsTzMultirange => DataType::TimestampTz,
            _ => return None,
        })
    }

    /// Returns whether this is a multirange.
    #[must_use]
    pub const fn is_multirange(self) -> bool {
        self.range() as u8 != self as u8
    }

    /// Returns whether this is a range.
    #[must_use]
    pub const fn is_range(self) -> bool {
        self.subtype().is_some() && !self.is_multirange()
    }

    /// Returns the kind of a multirange's ranges; any other kind as it is.
    #[must_use]
    pub const fn range(self) -> EncodedKind {
        match self {
            K::Int4Multirange => K::Int4Range,
            K::Int8Multirange => K::Int8Range,
            K::NumMultirange => K::NumRange,
            K::DateMultirange => K::DateRange,
            K::TsMultirange => K::TsRange,
            K::TsTzMultirange => K::TsTzRange,
            other => other,
        }
    }

    /// Returns the kind of the multiranges of a range; any other kind as it is.
    #[must_use]
    pub const fn multirange(self) -> EncodedKind {
        match self {
            K::Int4Range => K::Int4Multirange,
            K::Int8Range => K::Int8Multirange,
            K::NumRange => K::NumMultirange,
            K::DateRange => K::DateMultirange,
            K::TsRange => K::TsMultirange,
            K::TsTzRange => K::TsTzMultirange,
            other => other,
        }
    }

    /// Returns whether its types have definitions, with numbers in the place of lengths.
    #[must_use]
    pub const fn has_definition(self) -> bool {
        matches!(self, K::Enum | K::Record | K::Collated)
    }

    const fn has_decimals(self) -> bool {
        matches!(self, K::NumRange | K::NumMultirange)
    }
}

/// A type whose values are bytes. Four bytes, so that it does not enlarge [`DataType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "StoredType", from = "StoredType")]
pub struct EncodedType {
    kind: EncodedKind,
    length: [u8; 3],
}

/// A type in a record of the catalog. A type with a definition has the number of its object there.
#[derive(Serialize, Deserialize)]
struct StoredType {
    kind: EncodedKind,
    length: [u8; 3],
}

impl From<EncodedType> for StoredType {
    fn from(encoded: EncodedType) -> StoredType {
        let of_label = encoded.definition().map(|known| known.id);
        let object = of_label.or_else(|| encoded.row_type_name().map(|known| known.id));
        let stored = object.map_or(encoded, |object| EncodedType::new(encoded.kind, object));
        StoredType { kind: stored.kind, length: stored.length }
    }
}

impl From<StoredType> for EncodedType {
    fn from(stored: StoredType) -> EncodedType {
        EncodedType { kind: stored.kind, length: stored.length }
    }
}

impl EncodedType {
    /// Maximum number of bits of a BIT or BIT VARYING with a length.
    pub const MAX_LENGTH: u32 = (1 << 24) - 1;

    /// Returns a type with a number of bits; 0 for any number.
    #[must_use]
    pub const fn new(kind: EncodedKind, length: u32) -> EncodedType {
        let [_, a, b, c] = length.to_be_bytes();
        EncodedType { kind, length: [a, b, c] }
    }

    /// Returns the type without its length.
    #[must_use]
    pub const fn kind(self) -> EncodedKind {
        self.kind
    }

    /// Returns the number of bits, or one more than the fractional digits of a TIMETZ; 0 for any
    /// number.
    #[must_use]
    pub const fn length(self) -> u32 {
        let [a, b, c] = self.length;
        u32::from_be_bytes([0, a, b, c])
    }
}

impl From<EncodedKind> for EncodedType {
    fn from(kind: EncodedKind) -> EncodedType {
        EncodedType::new(kind, 0)
    }
}

impl std::fmt::Display for EncodedType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.kind, self.length()) {
            (K::TimeTz, 0) => f.write_str("time with time zone"),
            // The length is one more than the digits.
            (K::TimeTz, length) => write!(f, "time({}) with time zone", length - 1),
            // BIT without a length is BIT(1) in a statement, unlike this type.
            (K::Bit, 0) => f.write_str("\"bit\""),
            (K::Bit, length) => write!(f, "bit({length})"),
            (K::Varbit, 0) => f.write_str("bit varying"),
            (K::Varbit, length) => write!(f, "bit varying({length})"),
            (K::Enum, _) => f.write_str(self.definition().map_or("anyenum", |known| &known.shown)),
            (K::Record, _) => {
                f.write_str(self.row_type_name().map_or("record", |known| &known.shown))
            }
            (kind, _) => f.write_str(kind.name()),
        }
    }
}
