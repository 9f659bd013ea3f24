//! Types that statements make: domains, enumerated types and composite types; and collations.
//!
//! - TYPE-1: a domain stores values of its base type. A column of a domain has the base type, and
//!   names the domain beside it, so rows and keys do not depend on domains (by type)

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::ObjectId;
use super::names::{is_public, lookup_name, public};
use crate::types::{Collation, CollationDefinition, DataType};

/// A domain: a type with constraints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// The type of its values (TYPE-1).
    pub data_type: DataType,
    /// The domain that it is over, if it is not over a base type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ObjectId>,
    /// The text of its own DEFAULT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Arc<str>>,
    /// Whether it refuses NULL itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_null: bool,
    /// Its own CHECK constraints, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<DomainCheck>,
}

/// A CHECK constraint of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainCheck {
    /// Its name.
    pub name: SmolStr,
    /// The text of its expression over VALUE.
    pub expression: Arc<str>,
    /// NOT VALID: existing rows were not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_valid: bool,
}

/// An enumerated type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnumType {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// Its labels, in order.
    pub labels: Vec<EnumLabel>,
}

/// A label of an enumerated type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnumLabel {
    /// Its text.
    pub label: SmolStr,
    /// The number by which values are ordered.
    pub order: u64,
}

impl EnumLabel {
    /// The distance between the orders of two labels, so that others fit between them.
    pub const DISTANCE: u64 = 1 << 40;

    /// Its number in `pg_enum.enumsortorder`.
    #[must_use]
    pub fn sort_order(&self) -> f32 {
        (self.order as f64 / EnumLabel::DISTANCE as f64) as f32
    }
}

impl EnumType {
    /// The name under which the catalog finds it.
    #[must_use]
    pub fn lookup_name(&self) -> SmolStr {
        lookup_name(&self.schema, &self.name)
    }

    /// The position of a label.
    #[must_use]
    pub fn position(&self, label: &str) -> Option<usize> {
        self.labels.iter().position(|known| known.label == label)
    }

    /// Adds a label at a position; returns false if there is no room for its order.
    pub fn insert(&mut self, at: usize, label: SmolStr) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.labels.get(at)).map_or(0, |it| it.order);
        let order = match self.labels.get(at) {
            Some(after) => before + (after.order - before) / 2,
            None => before.saturating_add(EnumLabel::DISTANCE),
        };
        let has_room = order > before;
        if has_room {
            self.labels.insert(at, EnumLabel { label, order });
        }
        has_room
    }
}

/// A composite type: a type of rows that no table has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompositeType {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// Its attributes, in order.
    pub attributes: Vec<Attribute>,
}

/// An attribute of a composite type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// Its name.
    pub name: SmolStr,
    /// Its type.
    pub data_type: DataType,
}

impl CompositeType {
    /// The name under which the catalog finds it.
    #[must_use]
    pub fn lookup_name(&self) -> SmolStr {
        lookup_name(&self.schema, &self.name)
    }

    /// The position of an attribute.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|known| known.name == name)
    }
}

/// How a type has a domain (TYPE-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DomainUse {
    /// The values are of the domain.
    Value(ObjectId),
    /// The values are arrays whose elements are of the domain.
    Elements(ObjectId),
}

impl DomainUse {
    /// The domain.
    #[must_use]
    pub fn id(self) -> ObjectId {
        let (DomainUse::Value(id) | DomainUse::Elements(id)) = self;
        id
    }

    /// The domain of the values; `None` for arrays.
    #[must_use]
    pub fn of_value(self) -> Option<ObjectId> {
        match self {
            DomainUse::Value(id) => Some(id),
            DomainUse::Elements(_) => None,
        }
    }
}

/// A domain in the definition of a routine, with its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamedDomain {
    /// The domain.
    pub used: DomainUse,
    /// The name of the type, as messages show it.
    #[serde(skip)]
    pub shown: SmolStr,
}

/// A type as a column or a cast names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredType {
    /// The type of the values.
    pub data_type: DataType,
    /// The domain that is named (TYPE-1).
    pub domain: Option<DomainUse>,
}

impl From<DataType> for DeclaredType {
    fn from(data_type: DataType) -> DeclaredType {
        DeclaredType { data_type, domain: None }
    }
}

impl Domain {
    /// The name under which the catalog finds it.
    #[must_use]
    pub fn lookup_name(&self) -> SmolStr {
        lookup_name(&self.schema, &self.name)
    }

    /// The constraint of that name.
    #[must_use]
    pub fn check(&self, name: &str) -> Option<&DomainCheck> {
        self.checks.iter().find(|check| check.name == name)
    }
}

/// A collation that a statement made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeCollation {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// The locale of ICU; `None` for the order of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<SmolStr>,
    /// Whether texts may be equal whose bytes are not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nondeterministic: bool,
    /// The version of the library that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<SmolStr>,
}

impl MadeCollation {
    /// The name under which the catalog finds it.
    #[must_use]
    pub fn lookup_name(&self) -> SmolStr {
        lookup_name(&self.schema, &self.name)
    }

    /// Returns the collation; `None` if no numbers are left.
    #[must_use]
    pub fn collation(&self) -> Option<Collation> {
        let definition = CollationDefinition {
            object: Some(self.id.0),
            schema: self.schema.clone(),
            name: self.name.clone(),
            locale: self.locale.clone(),
            is_deterministic: !self.nondeterministic,
        };
        definition.intern()
    }
}

/// The collation of a column in a record of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredCollation {
    /// A predefined one, by its name.
    Predefined(SmolStr),
    /// One that a statement made, by its number.
    Made(ObjectId),
}

impl From<Collation> for StoredCollation {
    fn from(collation: Collation) -> StoredCollation {
        let definition = collation.definition();
        match definition.object {
            Some(id) => StoredCollation::Made(ObjectId(id)),
            None => StoredCollation::Predefined(definition.name.clone()),
        }
    }
}
