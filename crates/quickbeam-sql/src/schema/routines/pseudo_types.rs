//! Types of arguments and results that each call decides.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::types::DataType;

/// A polymorphic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PseudoType {
    /// `anyelement`
    Element,
    /// `anyarray`
    Array,
    /// `anynonarray`
    NonArray,
    /// `anyenum`
    Enum,
    /// `anyrange`
    Range,
    /// `anycompatible`
    Compatible,
    /// `anycompatiblearray`
    CompatibleArray,
    /// `anycompatiblenonarray`
    CompatibleNonArray,
}

impl PseudoType {
    const ALL: [(PseudoType, &str, i64); 8] = [
        (PseudoType::Element, "anyelement", 2283),
        (PseudoType::Array, "anyarray", 2277),
        (PseudoType::NonArray, "anynonarray", 2776),
        (PseudoType::Enum, "anyenum", 3500),
        (PseudoType::Range, "anyrange", 3831),
        (PseudoType::Compatible, "anycompatible", 5077),
        (PseudoType::CompatibleArray, "anycompatiblearray", 5078),
        (PseudoType::CompatibleNonArray, "anycompatiblenonarray", 5079),
    ];

    /// Returns the type of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<PseudoType> {
        Self::ALL.iter().find(|known| known.1 == name).map(|known| known.0)
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|known| known.0 == self).map_or("", |known| known.1)
    }

    /// Returns its OID in PostgreSQL.
    #[must_use]
    pub fn oid(self) -> i64 {
        Self::ALL.iter().find(|known| known.0 == self).map_or(0, |known| known.2)
    }

    /// Whether values of several types have a common one, where the other types are all the same.
    #[must_use]
    pub fn is_compatible(self) -> bool {
        use PseudoType::{Compatible, CompatibleArray, CompatibleNonArray};
        matches!(self, Compatible | CompatibleArray | CompatibleNonArray)
    }

    /// Whether it is a type of arrays.
    #[must_use]
    pub fn is_array(self) -> bool {
        matches!(self, PseudoType::Array | PseudoType::CompatibleArray)
    }

    /// Returns the type of the elements of a type of arrays, and any other type as it is.
    #[must_use]
    pub fn element(self) -> PseudoType {
        match self {
            PseudoType::Array => PseudoType::Element,
            PseudoType::CompatibleArray => PseudoType::Compatible,
            other => other,
        }
    }
}

/// The types of a call that its arguments or its place decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConcreteTypes {
    /// Those of all arguments, also those of the result.
    pub arguments: Vec<DataType>,
    /// That of the result, if it is a value.
    pub result: Option<DataType>,
    /// The columns of a function that returns `record`.
    pub columns: Vec<(SmolStr, DataType)>,
}
