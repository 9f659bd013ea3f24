//! Deferred foreign keys: DEFERRABLE, INITIALLY DEFERRED, SET CONSTRAINTS.
//!
//! - DEFER-1: a reference that a statement leaves without its row is kept until the transaction
//!   ends, and checked before the commit, or when SET CONSTRAINTS makes its constraint immediate. A
//!   check looks at the rows as they are then, so a rollback to a savepoint need not forget any.
//! - DEFER-2: the reads of a check must still hold at commit, under every isolation level, as those
//!   of an immediate one, STMT-2.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;

use smol_str::SmolStr;

use crate::catalog::{ForeignKey, ObjectId, Table};
use crate::error::Result;
use crate::schema::ConstraintTiming;
use crate::types::Value;

/// A constraint: its table, and its name.
pub type ConstraintKey = (ObjectId, SmolStr);

/// What SET CONSTRAINTS has said in a transaction.
#[derive(Clone, Debug, Default)]
pub struct ConstraintModes {
    /// ALL, if it was said: true: DEFERRED.
    all: Option<bool>,
    /// Of single constraints, after ALL.
    named: HashMap<ConstraintKey, bool>,
}

/// A reference whose row is missing.
pub(super) struct DeferredCheck {
    /// The table that it refers to.
    pub parent: ObjectId,
    /// In the order of the foreign key's columns.
    pub key: Vec<Value>,
    /// The row was missing when who refers to it came; otherwise it went.
    pub came_first: bool,
}

/// The deferred checks of a transaction.
#[derive(Default)]
pub struct DeferredChecks {
    modes: RefCell<ConstraintModes>,
    /// By the constraint, and the key as messages show it.
    checks: RefCell<HashMap<(ConstraintKey, String), DeferredCheck>>,
}

impl DeferredChecks {
    /// Returns whether the constraint is checked at the end of the transaction.
    pub(super) fn defers(&self, table: &Table, key: &ForeignKey) -> bool {
        let is_initially = match key.timing {
            ConstraintTiming::NotDeferrable => return false,
            ConstraintTiming::Immediate => false,
            ConstraintTiming::Deferred => true,
        };
        let modes = self.modes.borrow();
        if modes.all.is_none() && modes.named.is_empty() {
            return is_initially;
        }
        let named = modes.named.get(&(table.id, key.name.clone()));
        named.copied().or(modes.all).unwrap_or(is_initially)
    }

    /// SET CONSTRAINTS of these constraints; `None`: ALL.
    pub fn set_constraints(&self, constraints: Option<&[ConstraintKey]>, is_deferred: bool) {
        let mut modes = self.modes.borrow_mut();
        match constraints {
            None => *modes = ConstraintModes { all: Some(is_deferred), named: HashMap::new() },
            Some(list) => modes.named.extend(list.iter().map(|it| (it.clone(), is_deferred))),
        }
    }

    /// Returns what SET CONSTRAINTS has said.
    pub fn modes(&self) -> Ref<'_, ConstraintModes> {
        self.modes.borrow()
    }

    /// Restores what SET CONSTRAINTS had said.
    pub fn set_modes(&self, modes: ConstraintModes) {
        self.modes.replace(modes);
    }

    /// Returns whether there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.checks.borrow().is_empty()
    }

    /// Returns whether a check reads the table.
    pub fn reads(&self, table: ObjectId) -> bool {
        let checks = self.checks.borrow();
        checks.iter().any(|(((child, _), _), check)| *child == table || check.parent == table)
    }

    /// Adds a check of a key, unless there is one.
    pub(super) fn defer(&self, constraint: ConstraintKey, shown: String, check: DeferredCheck) {
        self.checks.borrow_mut().entry((constraint, shown)).or_insert(check);
    }

    /// Calls `each` with every check.
    pub(super) fn each(
        &self,
        mut each: impl FnMut(&ConstraintKey, &str, &DeferredCheck) -> Result<()>,
    ) -> Result<()> {
        let checks = self.checks.borrow();
        checks.iter().try_for_each(|((key, shown), check)| each(key, shown, check))
    }
}
