//! Collations of expressions: which one an expression has, and where it comes from.
//!
//! The binder alone knows collations. It puts sort keys in the place of texts where their order or
//! equality is not that of their bytes ([`keys`]). Everything after the binder compares values.
//!
//! - BIND-COLL-1: where texts under a collation of ICU are ordered, or under a nondeterministic one
//!   are compared at all, the values are sort keys.

pub(super) mod functions;
pub(super) mod keys;
pub(super) mod names;

use super::{Binder, OutputColumn, ScopeColumn, Source, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr};
pub use crate::types::collation::Derivation;
use crate::types::{CollateStep, Collation, DataType};

use Derivation::{Default as NoCollation, Explicit, Implicit};

/// The slot that parameters have among the collations.
const PARAMETERS: usize = usize::MAX;

/// Returns whether values of a type have a collation, or consist of values that may have one.
pub(super) fn may_have_collation(data_type: DataType) -> bool {
    data_type.is_text() || data_type.element().is_some() || data_type.record().is_some()
}

/// The error for an operation whose operands have different collations.
#[cold]
pub(super) fn indeterminate(what: &str) -> SqlError {
    let message = format!("could not determine which collation to use for {what}");
    SqlError::new(SqlState::IndeterminateCollation, message)
        .with_hint("Use the COLLATE clause to set the collation explicitly.")
}

/// The error for two columns with different collations where the order matters.
#[cold]
pub(super) fn implicit_mismatch((one, other): (Collation, Collation)) -> SqlError {
    let (one, other) = (one.name(), other.name());
    let message =
        format!("collation mismatch between implicit collations \"{one}\" and \"{other}\"");
    SqlError::new(SqlState::CollationMismatch, message).with_hint(
        "You can choose the collation by applying the COLLATE clause to one or both expressions.",
    )
}

/// The error for a use of texts that is not there for the collation.
#[cold]
pub(super) fn not_under(what: &str, collation: Collation) -> SqlError {
    SqlError::unsupported(format!("{what} under the collation \"{}\"", collation.name()))
}

impl Binder<'_> {
    /// Notes the collation of a column that a name means.
    pub(super) fn note_collation(&mut self, column: &ScopeColumn) {
        self.set_collation(column.at, column.collation);
    }

    /// Sets the collation of a computed column.
    pub(super) fn set_collation(&mut self, at: ColumnRef, derivation: Derivation) {
        if derivation != NoCollation {
            self.has_collations = true;
            self.collations.insert(at, derivation.as_column());
        }
    }

    /// Sets the collation of a parameter that stands for a variable.
    pub(super) fn set_parameter_collation(&mut self, number: usize, derivation: Derivation) {
        self.set_collation(ColumnRef { slot: PARAMETERS, column: number }, derivation);
    }

    /// Sets the collations of the columns of a slot.
    pub(super) fn set_collations(&mut self, slot: usize, columns: &[OutputColumn]) {
        for (column, output) in columns.iter().enumerate() {
            self.set_collation(ColumnRef { slot, column }, output.collation);
        }
    }

    /// Notes whether the columns of a new slot have collations.
    pub(super) fn note_collations_of(&mut self, source: &Source) {
        self.has_collations |= match source {
            Source::Table(table) => table.columns.iter().any(|it| it.collation.is_some()),
            Source::Query(columns) => columns.iter().any(|it| it.collation != NoCollation),
            Source::Computed => false,
        };
    }

    fn collation_of_column(&self, at: ColumnRef) -> Derivation {
        if let Some(known) = self.collations.get(&at) {
            return *known;
        }
        let found = self.slots.get(at.slot).and_then(|shape| match &shape.source {
            Source::Table(table) => {
                Some(Derivation::of_column(table.columns.get(at.column)?.collation))
            }
            Source::Query(columns) => Some(columns.get(at.column)?.collation),
            Source::Computed => None,
        });
        found.unwrap_or_default()
    }

    /// Returns the collation of a value.
    pub(super) fn collation_of(&self, value: &Typed) -> Result<Derivation> {
        match value.data_type {
            Some(known) if !may_have_collation(known) => Ok(NoCollation),
            _ => self.derivation(&value.expr),
        }
    }

    /// Returns the common collation of values.
    pub(super) fn common_collation<'t>(
        &self,
        values: impl IntoIterator<Item = &'t Typed>,
    ) -> Result<Derivation> {
        let mut common = NoCollation;
        if self.has_collations {
            for value in values {
                common = self.joined_with(common, self.collation_of(value)?)?;
            }
        }
        Ok(common)
    }

    fn joined_with(&self, left: Derivation, right: Derivation) -> Result<Derivation> {
        left.join(right).map_err(|(one, other)| {
            let message = format!(
                "collation mismatch between explicit collations \"{}\" and \"{}\"",
                one.name(),
                other.name()
            );
            let error = SqlError::new(SqlState::CollationMismatch, message);
            let place = self.collate_places.iter().rev().find(|(known, _)| *known == other);
            match place {
                Some((_, position)) => error.at(*position as usize),
                None => error,
            }
        })
    }

    /// Returns the collation of an expression whose type may have one.
    pub(super) fn derivation(&self, expr: &Expr) -> Result<Derivation> {
        if !self.has_collations {
            return Ok(NoCollation);
        }
        let all = |list: &mut dyn Iterator<Item = &Expr>| {
            let mut common = NoCollation;
            for one in list {
                common = self.joined_with(common, self.derivation(one)?)?;
            }
            Ok(common)
        };
        match expr {
            Expr::Column(at) => Ok(self.collation_of_column(*at)),
            Expr::Parameter(number) => {
                let at = ColumnRef { slot: PARAMETERS, column: *number };
                Ok(self.collations.get(&at).copied().unwrap_or_default())
            }
            Expr::Collate(_, CollateStep::Named(own)) => Ok(Explicit(*own)),
            Expr::Collate(_, CollateStep::Key(own)) => Ok(Implicit(*own)),
            Expr::Collate(inner, CollateStep::Text | CollateStep::Letters(..))
            | Expr::Domain(inner, _)
            | Expr::Trimmed(inner) => self.derivation(inner),
            Expr::Fold(inner, fold) if may_have_collation(fold.data_type) => self.derivation(inner),
            // `name` has the order of bytes.
            Expr::Cast(_, DataType::System(_), _) | Expr::Assign(_, DataType::System(_), _) => {
                Ok(NoCollation)
            }
            Expr::Cast(inner, to, _) | Expr::Assign(inner, to, _) if may_have_collation(*to) => {
                self.derivation(inner)
            }
            Expr::Case(branches, otherwise) => {
                let results = branches.iter().map(|(_, result)| result);
                all(&mut results.chain([&**otherwise]))
            }
            Expr::Array(_, list, _) | Expr::Row(_, list) => all(&mut list.iter()),
            Expr::Call(function, list, _) => {
                if !may_have_collation(function.0.result) {
                    return Ok(NoCollation);
                }
                all(&mut list.iter())
            }
            _ => Ok(NoCollation),
        }
    }
}
