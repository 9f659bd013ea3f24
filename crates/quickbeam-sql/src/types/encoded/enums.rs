//! Enumerated types. A value is the order of its label, eight bytes with the highest first, and the
//! label. So values compare as their bytes do, and are shown without a catalog.
//!
//! [`DataType`](crate::types::DataType) is copied freely, so it has a number in the place of the
//! definition (`docs/adr/0009-enumerated-types.md`).
//!
//! - ENUM-1: a number means the same definition as long as the process runs (by type)

use std::sync::{LazyLock, PoisonError, RwLock};

use smol_str::SmolStr;

use super::{EncodedKind, EncodedType};
use crate::error::{Result, SqlError, SqlState};
use crate::utf8::text_from_utf8;

/// The first OID of objects that statements make.
pub(crate) const FIRST_OBJECT_OID: u32 = 16_384;
/// The distance between the OIDs of a type and of its arrays.
const OF_ARRAYS: u32 = 4 << 28;
/// Bytes of the order of a label.
const ORDER_SIZE: usize = 8;

/// The definition of an enumerated type at one version of the catalog.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EnumDefinition {
    /// The number of the object in its catalog.
    pub id: u32,
    /// The name.
    pub name: SmolStr,
    /// The name as statements write it.
    pub shown: String,
    /// The labels with their orders, in order.
    pub labels: Vec<(u64, SmolStr)>,
}

/// The definitions by their numbers, which start at 1.
static DEFINITIONS: LazyLock<RwLock<Vec<&'static EnumDefinition>>> = LazyLock::new(RwLock::default);

impl EnumDefinition {
    /// Returns the type of a definition; `None` if no numbers are left.
    pub fn intern(self) -> Option<EncodedType> {
        let mut known = DEFINITIONS.write().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|it| **it == self).unwrap_or_else(|| {
            known.push(Box::leak(Box::new(self)));
            known.len() - 1
        });
        let number = u32::try_from(at + 1).ok()?;
        let is_small = number <= EncodedType::MAX_LENGTH;
        is_small.then_some(EncodedType::new(EncodedKind::Enum, number))
    }

    /// Returns the bytes of the value with that label.
    fn bytes_of(&self, label: &str) -> Option<Vec<u8>> {
        let (order, label) = self.labels.iter().find(|(_, known)| known == label)?;
        Some([&order.to_be_bytes()[..], label.as_bytes()].concat())
    }

    /// Returns the bytes of all values, in order.
    pub fn values(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.labels.iter().filter_map(|(_, label)| self.bytes_of(label))
    }
}

impl EncodedType {
    /// Returns the definition of an enumerated type.
    pub(crate) fn definition(self) -> Option<&'static EnumDefinition> {
        if self.kind != EncodedKind::Enum {
            return None;
        }
        let known = DEFINITIONS.read().unwrap_or_else(PoisonError::into_inner);
        known.get((self.length() as usize).checked_sub(1)?).copied()
    }

    /// Returns the type without its length.
    #[must_use]
    pub const fn unconstrained(self) -> EncodedType {
        match self.kind {
            EncodedKind::Enum | EncodedKind::Record | EncodedKind::Collated => self,
            kind => EncodedType::new(kind, 0),
        }
    }

    /// Returns the name in `pg_type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.row_type_name() {
            Some(known) => &known.name,
            None => self.definition().map_or(self.kind.name(), |known| &known.name),
        }
    }

    /// Returns the number in `pg_type`, and that of the arrays of the type.
    #[must_use]
    pub fn oids(self) -> (u32, u32) {
        if let Some(known) = self.row_type_name() {
            return known.oids;
        }
        self.definition().map_or(self.kind.oids(), |known| {
            let oid = FIRST_OBJECT_OID + known.id;
            (oid, OF_ARRAYS + oid)
        })
    }
}

/// Returns the label in a value's bytes.
#[must_use]
pub fn label(bytes: &[u8]) -> Option<&str> {
    text_from_utf8(bytes.get(ORDER_SIZE..)?)
}

/// Reads a label. Returns the bytes of its value.
pub(super) fn parse(encoded: EncodedType, text: &str) -> Result<Vec<u8>> {
    let found = encoded.definition().and_then(|known| known.bytes_of(text));
    found.ok_or_else(|| {
        let shown = encoded.definition().map_or("anyenum", |known| &known.shown);
        let message = format!("invalid input value for enum {shown}: \"{text}\"");
        SqlError::new(SqlState::InvalidTextRepresentation, message)
    })
}
