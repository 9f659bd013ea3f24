//! Where the collation of an expression comes from.

use super::Collation;

/// Where the collation of an expression comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Derivation {
    /// It has none, or the default one.
    #[default]
    Default,
    /// A column.
    Implicit(Collation),
    /// COLLATE.
    Explicit(Collation),
    /// Two columns with different ones.
    Conflict(Collation, Collation),
}

use Derivation::{Conflict, Default as NoCollation, Explicit, Implicit};

impl Derivation {
    /// Returns the derivation of a column of that collation.
    #[must_use]
    pub fn of_column(collation: Option<Collation>) -> Derivation {
        match collation {
            Some(own) if !own.is_default() => Implicit(own),
            _ => NoCollation,
        }
    }

    /// Returns the derivation of a column with the values of an expression.
    #[must_use]
    pub fn as_column(self) -> Derivation {
        match self {
            Explicit(own) => Derivation::of_column(Some(own)),
            other => other,
        }
    }

    /// Returns the collation of a column made of a column of a query.
    ///
    /// # Errors
    /// The two that conflict.
    pub fn for_table(self) -> Result<Option<Collation>, (Collation, Collation)> {
        match self {
            NoCollation => Ok(None),
            Implicit(own) | Explicit(own) => Ok(Some(own)),
            Conflict(one, other) => Err((one, other)),
        }
    }

    /// Returns the collation, if texts under it are not simply compared by their bytes.
    #[must_use]
    pub fn of_keys(self) -> Option<Collation> {
        match self {
            Implicit(own) | Explicit(own) => Some(own).filter(|it| !it.is_by_bytes()),
            _ => None,
        }
    }

    /// Joins the collations of two operands.
    ///
    /// # Errors
    /// The two of COLLATE that differ.
    pub fn join(self, other: Derivation) -> Result<Derivation, (Collation, Collation)> {
        Ok(match (self, other) {
            (Explicit(a), Explicit(b)) if a != b => return Err((a, b)),
            (Explicit(_), _) => self,
            (_, Explicit(_)) => other,
            (Conflict(..), _) | (_, NoCollation) => self,
            (_, Conflict(..)) | (NoCollation, _) => other,
            (Implicit(a), Implicit(b)) if a != b => Conflict(a, b),
            (Implicit(_), Implicit(_)) => self,
        })
    }
}
