//! What all objects have: their numbers, and comments; and when constraints are checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The number of an object: of a table, index, view or sequence, for example. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId(pub u32);

/// The comments on an object that is no table: that on the object by 0, those on the columns of a
/// view by their numbers from 1 on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Comments(pub BTreeMap<u16, Arc<str>>);

/// When a constraint is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ConstraintTiming {
    /// NOT DEFERRABLE: by each statement.
    #[default]
    NotDeferrable,
    /// DEFERRABLE INITIALLY IMMEDIATE: by each statement, unless SET CONSTRAINTS says otherwise.
    Immediate,
    /// DEFERRABLE INITIALLY DEFERRED: by the commit, unless SET CONSTRAINTS says otherwise.
    Deferred,
}

impl ConstraintTiming {
    /// Returns whether it is DEFERRABLE.
    #[must_use]
    pub fn is_deferrable(self) -> bool {
        self != ConstraintTiming::NotDeferrable
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == ConstraintTiming::default()
    }

    /// Returns the clauses of a definition, with a blank before them.
    pub(crate) fn clauses(self) -> &'static str {
        match self {
            ConstraintTiming::NotDeferrable => "",
            ConstraintTiming::Immediate => " DEFERRABLE",
            ConstraintTiming::Deferred => " DEFERRABLE INITIALLY DEFERRED",
        }
    }
}
