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

/// The operator classes of an inverted index, in the order of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "ClassRecord", into = "ClassRecord")]
pub struct OperatorClasses {
    count: u8,
    /// Two bits for each key: the number of the class in [`OperatorClass::ALL`].
    numbers: u64,
}

/// [`OperatorClasses`] as records of the catalog have them: a class alone is no list.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ClassRecord {
    One(OperatorClass),
    List(Vec<OperatorClass>),
}

impl From<ClassRecord> for OperatorClasses {
    fn from(record: ClassRecord) -> OperatorClasses {
        match record {
            ClassRecord::One(class) => OperatorClasses::of([class]),
            ClassRecord::List(list) => OperatorClasses::of(list),
        }
    }
}

impl From<OperatorClasses> for ClassRecord {
    fn from(classes: OperatorClasses) -> ClassRecord {
        match classes.get(0) {
            Some(only) if classes.count == 1 => ClassRecord::One(only),
            _ => ClassRecord::List(classes.iter().collect()),
        }
    }
}

impl OperatorClasses {
    /// Maximum number of keys of an index.
    pub const MAX: usize = 32;

    /// Returns the classes of that order. Those after the first 32 are left out.
    pub fn of(list: impl IntoIterator<Item = OperatorClass>) -> OperatorClasses {
        let mut classes = OperatorClasses { count: 0, numbers: 0 };
        for class in list.into_iter().take(OperatorClasses::MAX) {
            classes.numbers |= class.number() << (2 * u32::from(classes.count));
            classes.count += 1;
        }
        classes
    }

    /// Returns the class of a key.
    #[must_use]
    pub fn get(self, key: usize) -> Option<OperatorClass> {
        let number = (self.numbers >> (2 * key as u32 % u64::BITS)) & 3;
        (key < usize::from(self.count)).then(|| OperatorClass::ALL[number as usize])
    }

    /// Returns the classes in their order.
    pub fn iter(self) -> impl Iterator<Item = OperatorClass> {
        (0..usize::from(self.count)).filter_map(move |key| self.get(key))
    }

    /// Returns the byte that the entries of a key begin with, if the index has several keys.
    #[must_use]
    pub fn prefix(self, key: usize) -> Option<u8> {
        (self.count > 1).then_some(key as u8)
    }
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

    fn number(self) -> u64 {
        OperatorClass::ALL.iter().position(|class| *class == self).map_or(0, |at| at as u64)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_one_class_alone_and_several_as_a_list() {
        use OperatorClass::{Array, Jsonb, JsonbPath, TextVector};
        for (list, record) in [
            (&[JsonbPath][..], r#""JsonbPath""#),
            (
                &[Array, TextVector, JsonbPath, Jsonb],
                r#"["Array","TextVector","JsonbPath","Jsonb"]"#,
            ),
        ] {
            let classes = OperatorClasses::of(list.iter().copied());
            assert_eq!(serde_json::to_string(&classes).unwrap(), record);
            assert_eq!(serde_json::from_str::<OperatorClasses>(record).unwrap(), classes);
            assert_eq!(classes.iter().collect::<Vec<_>>(), list);
            assert_eq!(classes.get(list.len()), None);
            assert_eq!(classes.prefix(0).is_some(), list.len() > 1);
        }
    }
}
