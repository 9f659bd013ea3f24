//! The operator classes of inverted indexes (`USING gin`): which keys an index has of a value, and
//! which operators it answers.

use serde::{Deserialize, Serialize};

use crate::types::{DataType, EncodedKind};

/// The operator class of an inverted index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OperatorClass {
    /// `tsvector_ops`: the words of a `tsvector`.
    TextVector,
    /// `array_ops`: the elements of an array.
    Array,
    /// `jsonb_ops`: the keys and the values of a JSONB value.
    Jsonb,
    /// `jsonb_path_ops`: the values of a JSONB value together with the keys that lead to them.
    JsonbPath,
}

/// An operator that an inverted index answers, between the indexed value and another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvertedOperator {
    /// `@@`: a document matches a query.
    Matches,
    /// `@>`: it contains the other value.
    Contains,
    /// `&&`: both have an element in common.
    Overlaps,
    /// `=`: both have the same elements in the same places.
    Equals,
    /// `?`: it has a key.
    HasKey,
    /// `?|`: it has one of some keys.
    HasAnyKey,
    /// `?&`: it has all of some keys.
    HasAllKeys,
}

impl OperatorClass {
    const ALL: [OperatorClass; 4] = [
        OperatorClass::TextVector,
        OperatorClass::Array,
        OperatorClass::Jsonb,
        OperatorClass::JsonbPath,
    ];

    /// Returns PostgreSQL's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OperatorClass::TextVector => "tsvector_ops",
            OperatorClass::Array => "array_ops",
            OperatorClass::Jsonb => "jsonb_ops",
            OperatorClass::JsonbPath => "jsonb_path_ops",
        }
    }

    /// Returns PostgreSQL's number of it in `pg_opclass`.
    #[must_use]
    pub fn oid(self) -> i64 {
        match self {
            OperatorClass::Array => 10064,
            OperatorClass::TextVector => 10073,
            OperatorClass::Jsonb => 10090,
            OperatorClass::JsonbPath => 10091,
        }
    }

    /// Returns the class of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<OperatorClass> {
        OperatorClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Returns the class that indexes values of a type unless another one is named.
    #[must_use]
    pub fn of_type(data_type: DataType) -> Option<OperatorClass> {
        OperatorClass::ALL.into_iter().find(|class| class.accepts(data_type))
    }

    /// Returns whether it is the class that its type has by default.
    #[must_use]
    pub fn is_default(self) -> bool {
        self != OperatorClass::JsonbPath
    }

    /// Returns whether it indexes values of a type.
    #[must_use]
    pub fn accepts(self, data_type: DataType) -> bool {
        match self {
            OperatorClass::TextVector => data_type.encoded() == Some(EncodedKind::TsVector),
            OperatorClass::Array => matches!(data_type, DataType::Array(_)),
            OperatorClass::Jsonb | OperatorClass::JsonbPath => data_type == DataType::Jsonb,
        }
    }

    /// Returns the operator with that symbol, if the class answers it, and whether its operands may
    /// change places.
    #[must_use]
    pub fn operator(self, symbol: &str) -> Option<(InvertedOperator, bool)> {
        use InvertedOperator::{
            Contains, Equals, HasAllKeys, HasAnyKey, HasKey, Matches, Overlaps,
        };
        Some(match (self, symbol) {
            (OperatorClass::TextVector, "@@") => (Matches, true),
            (OperatorClass::Array, "&&") => (Overlaps, true),
            (OperatorClass::Array, "=") => (Equals, true),
            (OperatorClass::Array | OperatorClass::Jsonb | OperatorClass::JsonbPath, "@>") => {
                (Contains, false)
            }
            (OperatorClass::Jsonb, "?") => (HasKey, false),
            (OperatorClass::Jsonb, "?|") => (HasAnyKey, false),
            (OperatorClass::Jsonb, "?&") => (HasAllKeys, false),
            _ => return None,
        })
    }
}
