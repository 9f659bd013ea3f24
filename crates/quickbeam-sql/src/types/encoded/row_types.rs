//! Row types: the names and types of the fields of rows as values.
//!
//! [`DataType`] is copied freely, so it has a number in the place of the fields
//! (`docs/adr/0010-rows-as-values.md`). The number 0 stands for rows of any fields.
//!
//! - ROWTYPE-1: a number means the same fields as long as the process runs (by type)

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use smol_str::SmolStr;

use super::{EncodedKind, EncodedType};
use crate::types::{DataType, ElementType};

/// Number of types without a name that the process keeps. Rows of other types have the number 0:
/// their fields cannot be selected through a query in FROM.
const ANONYMOUS_LIMIT: usize = 1 << 16;

/// The name and type of a field.
pub type RowField = (SmolStr, DataType);

/// The name of the type of a relation's rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowTypeName {
    /// The number of the object in its catalog.
    pub id: u32,
    /// The name in `pg_type`.
    pub name: SmolStr,
    /// The name as statements write it.
    pub shown: String,
    /// The number in `pg_type`, and that of the arrays of the type.
    pub oids: (u32, u32),
}

/// The type of rows.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowType {
    /// Its name, unless it is the type of a row constructor or of a query's rows.
    pub name: Option<RowTypeName>,
    /// Its fields.
    pub fields: Vec<RowField>,
}

/// The types by their numbers, which start at 1.
#[derive(Default)]
struct KnownRowTypes {
    all: Vec<&'static RowType>,
    numbers: HashMap<&'static RowType, u32>,
    anonymous: usize,
}

static KNOWN: LazyLock<RwLock<KnownRowTypes>> = LazyLock::new(RwLock::default);

impl RowType {
    /// Returns the number of the type; that of rows of any fields if no numbers are left.
    pub fn intern(self) -> EncodedType {
        let of = |number: u32| EncodedType::new(EncodedKind::Record, number);
        let read = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = read.numbers.get(&self) {
            return of(*number);
        }
        drop(read);
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(&self) {
            return of(*number);
        }
        let is_anonymous = self.name.is_none();
        let number = u32::try_from(known.all.len() + 1).unwrap_or(u32::MAX);
        if is_anonymous && known.anonymous >= ANONYMOUS_LIMIT || number > EncodedType::MAX_LENGTH {
            return of(0);
        }
        let kept: &'static RowType = Box::leak(Box::new(self));
        known.anonymous += usize::from(is_anonymous);
        known.all.push(kept);
        known.numbers.insert(kept, number);
        of(number)
    }
}

impl EncodedType {
    /// Returns the type of rows of that number; in a record of the catalog, of that object.
    #[must_use]
    pub(crate) const fn of_rows(number: u32) -> EncodedType {
        EncodedType::new(EncodedKind::Record, number)
    }

    /// Returns the definition of a type of rows, unless it stands for rows of any fields.
    pub(crate) fn row_type(self) -> Option<&'static RowType> {
        if self.kind != EncodedKind::Record {
            return None;
        }
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        known.all.get((self.length() as usize).checked_sub(1)?).copied()
    }

    /// Returns the name of a type of rows.
    pub(crate) fn row_type_name(self) -> Option<&'static RowTypeName> {
        self.row_type()?.name.as_ref()
    }
}

impl DataType {
    /// Rows of any fields.
    pub(crate) const RECORD: DataType = EncodedKind::Record.data_type();

    /// Returns the type of rows, if this is one.
    #[must_use]
    pub(crate) fn record(self) -> Option<EncodedType> {
        match self {
            DataType::Encoded(encoded) => Some(encoded).filter(|it| it.kind == EncodedKind::Record),
            _ => None,
        }
    }

    /// Returns the type of the elements of an array; any other type as it is.
    pub(crate) fn element_or_self(self) -> DataType {
        self.element().map_or(self, ElementType::data_type)
    }

    /// Returns whether values of the type compare; rows do if their fields do.
    pub(crate) fn has_order(self) -> bool {
        match self {
            DataType::Json => false,
            DataType::Array(element) => element.data_type().has_order(),
            other => other
                .record()
                .and_then(EncodedType::row_type)
                .is_none_or(|row| row.fields.iter().all(|(_, data_type)| data_type.has_order())),
        }
    }

    /// Returns the code of the type in the bytes of values; `None` for arrays.
    pub(super) fn element_code(self) -> Option<u8> {
        ElementType::new(self).map(|element| element.stored().code())
    }
}
