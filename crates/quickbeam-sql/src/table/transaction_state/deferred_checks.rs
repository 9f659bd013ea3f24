//! Deferred constraints: DEFERRABLE, INITIALLY DEFERRED, SET CONSTRAINTS.
//!
//! - DEFER-1: what a statement leaves unsatisfied of a deferred constraint is kept until the
//!   transaction ends, and checked before the commit, or when SET CONSTRAINTS makes its constraint
//!   immediate. A check looks at the rows as they are then. A rollback to a savepoint forgets the
//!   checks that were added since, and brings back those that were done since.
//! - DEFER-2: the reads of a check must still hold at commit, under every isolation level, as those
//!   of an immediate one, STMT-2.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use crate::catalog::{ConstraintTiming, ObjectId, Table, Trigger, TriggerEvent};
use crate::error::{Result, SqlError};
use crate::handle::{IndexHandle, TableHandle};
use crate::table::trigger_queue::TriggerCall;
use crate::types::Value;

/// A constraint: its table, and its name.
pub type ConstraintKey = (ObjectId, SmolStr);

/// What SET CONSTRAINTS has said in a transaction.
#[derive(Clone, Debug, Default)]
pub struct ConstraintModes {
    /// ALL, if it was said: true: DEFERRED.
    all: Option<bool>,
    /// Of single constraints, after ALL.
    named: BTreeMap<ConstraintKey, bool>,
}

/// What is checked of a deferred constraint.
#[derive(Clone)]
pub(in crate::table) enum DeferredCheck {
    /// A reference whose row is missing.
    Reference {
        /// The table that it refers to.
        parent: ObjectId,
        /// In the order of the foreign key's columns.
        key: Vec<Value>,
        /// The key as messages show it.
        shown: String,
        /// The row was missing when who refers to it came; otherwise it went.
        came_first: bool,
    },
    /// A key that two rows had: the encoded values.
    Key(Vec<u8>),
    /// A constraint trigger that fires, and its number among the checks.
    Trigger(Arc<DeferredTrigger>, usize),
}

/// A constraint trigger that waits for the end of the transaction.
pub struct DeferredTrigger {
    /// The trigger.
    pub trigger: Arc<Trigger>,
    /// Its table.
    pub table: Arc<Table>,
    /// The event.
    pub event: TriggerEvent,
    /// The row before the change.
    pub old: Option<Vec<Value>>,
    /// The row after the change.
    pub new: Option<Vec<Value>>,
}

impl DeferredTrigger {
    /// Returns the call of its function.
    pub fn call<'t>(&'t self, transaction: &'t Transaction) -> TriggerCall<'t> {
        TriggerCall {
            transaction,
            trigger: &self.trigger,
            table: &self.table,
            event: self.event,
            old: self.old.as_deref(),
            new: self.new.as_deref(),
            set: &[],
            transitions: None,
        }
    }
}

impl DeferredCheck {
    /// Returns what tells the check from others of the constraint.
    fn identity(&self) -> Vec<u8> {
        match self {
            DeferredCheck::Reference { key, .. } => format!("{key:?}").into_bytes(),
            DeferredCheck::Key(values) => values.clone(),
            DeferredCheck::Trigger(_, number) => number.to_be_bytes().to_vec(),
        }
    }
}

/// A key that two rows had.
pub(in crate::table) struct PendingKey {
    pub handle: Arc<TableHandle>,
    /// The place of its index.
    pub number: usize,
    /// The encoded values.
    pub values: Vec<u8>,
}

impl PendingKey {
    /// Returns its index.
    pub fn index(&self) -> Result<&IndexHandle> {
        let index = self.handle.indexes().get(self.number);
        index.ok_or_else(|| SqlError::internal("an index that the table does not have"))
    }
}

/// A check that was deferred.
struct DeferredEntry {
    constraint: ConstraintKey,
    check: DeferredCheck,
    /// The number of checks done before it, if it is done.
    done: Option<u64>,
}

/// A moment of a transaction, for a rollback to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeferredMark {
    entries: usize,
    done: u64,
}

#[derive(Default)]
struct DeferredQueue {
    /// In the order in which they were deferred.
    entries: Vec<DeferredEntry>,
    /// The places of those that are not done.
    open: BTreeMap<(ConstraintKey, Vec<u8>), usize>,
    /// Counts those that are done, also those that a rollback brought back.
    done: u64,
}

/// The deferred checks of a transaction.
#[derive(Default)]
pub struct DeferredChecks {
    modes: RefCell<ConstraintModes>,
    queue: RefCell<DeferredQueue>,
}

impl DeferredChecks {
    /// Returns whether a constraint of that name and timing is checked at the end of the
    /// transaction.
    pub(in crate::table) fn defers(
        &self,
        table: &Table,
        name: &SmolStr,
        timing: ConstraintTiming,
    ) -> bool {
        let is_initially = match timing {
            ConstraintTiming::NotDeferrable => return false,
            ConstraintTiming::Immediate => false,
            ConstraintTiming::Deferred => true,
        };
        let modes = self.modes.borrow();
        if modes.all.is_none() && modes.named.is_empty() {
            return is_initially;
        }
        let named = modes.named.get(&(table.id, name.clone()));
        named.copied().or(modes.all).unwrap_or(is_initially)
    }

    /// SET CONSTRAINTS of these constraints; `None`: ALL.
    pub fn set_constraints(&self, constraints: Option<&[ConstraintKey]>, is_deferred: bool) {
        let mut modes = self.modes.borrow_mut();
        match constraints {
            None => *modes = ConstraintModes { all: Some(is_deferred), named: BTreeMap::new() },
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
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.borrow().open.is_empty()
    }

    /// Forgets all checks.
    #[inline]
    pub fn clear(&self) {
        let mut queue = self.queue.borrow_mut();
        if !queue.entries.is_empty() {
            *queue = DeferredQueue::default();
        }
    }

    /// Returns whether a check reads the table.
    pub fn reads(&self, table: ObjectId) -> bool {
        let queue = self.queue.borrow();
        let mut open = queue.entries.iter().filter(|entry| entry.done.is_none());
        open.any(|entry| {
            let refers =
                matches!(entry.check, DeferredCheck::Reference { parent, .. } if parent == table);
            entry.constraint.0 == table || refers
        })
    }

    /// Adds a check, unless there is the same one.
    pub(in crate::table) fn defer(&self, constraint: ConstraintKey, check: DeferredCheck) {
        let DeferredQueue { entries, open, .. } = &mut *self.queue.borrow_mut();
        open.entry((constraint.clone(), check.identity())).or_insert_with(|| {
            entries.push(DeferredEntry { constraint, check, done: None });
            entries.len() - 1
        });
    }

    /// Adds a constraint trigger that fires.
    pub(in crate::table) fn defer_trigger(&self, fired: DeferredTrigger) {
        let number = self.queue.borrow().entries.len();
        let constraint = (fired.table.id, fired.trigger.name.clone());
        self.defer(constraint, DeferredCheck::Trigger(Arc::new(fired), number));
    }

    /// Takes the next constraint trigger that fires: of these constraints, or of all.
    pub fn next_trigger(
        &self,
        constraints: Option<&[ConstraintKey]>,
    ) -> Option<Arc<DeferredTrigger>> {
        let DeferredQueue { entries, open, done } = &mut *self.queue.borrow_mut();
        if open.is_empty() {
            return None;
        }
        let mut waiting = entries.iter_mut().filter(|entry| entry.is_open_of(constraints));
        waiting.find_map(|entry| {
            let DeferredCheck::Trigger(fired, _) = &entry.check else { return None };
            let fired = fired.clone();
            open.remove(&(entry.constraint.clone(), entry.check.identity()));
            entry.done = Some(*done);
            *done += 1;
            Some(fired)
        })
    }

    /// Calls `each` with the checks of these constraints, or of all, in order.
    pub(in crate::table) fn each(
        &self,
        constraints: Option<&[ConstraintKey]>,
        mut each: impl FnMut(&ConstraintKey, &DeferredCheck) -> Result<()>,
    ) -> Result<()> {
        let queue = self.queue.borrow();
        let mut open = queue.entries.iter().filter(|entry| entry.is_open_of(constraints));
        open.try_for_each(|entry| each(&entry.constraint, &entry.check))
    }

    /// Notes that the checks of these constraints, or all, are done.
    pub fn done(&self, constraints: Option<&[ConstraintKey]>) {
        let DeferredQueue { entries, open, done } = &mut *self.queue.borrow_mut();
        for entry in entries.iter_mut().filter(|entry| entry.is_open_of(constraints)) {
            open.remove(&(entry.constraint.clone(), entry.check.identity()));
            entry.done = Some(*done);
            *done += 1;
        }
    }

    /// Returns the moment to roll back to.
    pub fn mark(&self) -> DeferredMark {
        let queue = self.queue.borrow();
        DeferredMark { entries: queue.entries.len(), done: queue.done }
    }

    /// Forgets the checks that were added since, and brings back those that were done.
    pub fn rollback_to(&self, mark: DeferredMark) {
        let DeferredQueue { entries, open, .. } = &mut *self.queue.borrow_mut();
        entries.truncate(mark.entries);
        open.retain(|_, place| *place < mark.entries);
        for (place, entry) in entries.iter_mut().enumerate() {
            if entry.done.is_some_and(|done| done >= mark.done) {
                entry.done = None;
                open.insert((entry.constraint.clone(), entry.check.identity()), place);
            }
        }
    }
}

impl DeferredEntry {
    /// Returns whether it is to be checked, and of one of these constraints, if there are any.
    fn is_open_of(&self, constraints: Option<&[ConstraintKey]>) -> bool {
        self.done.is_none() && constraints.is_none_or(|list| list.contains(&self.constraint))
    }
}
