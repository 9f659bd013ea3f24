//! Types that statements make: domains.
//!
//! - TYPE-1: a domain stores values of its base type. A column of a domain has the base type, and
//!   names the domain beside it, so rows and keys do not depend on domains (by type)

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::ObjectId;
use super::names::{is_public, lookup_name, public};
use crate::types::DataType;

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

/// A type as a column or a cast names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredType {
    /// The type of the values.
    pub data_type: DataType,
    /// The domain that is named (TYPE-1).
    pub domain: Option<ObjectId>,
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
