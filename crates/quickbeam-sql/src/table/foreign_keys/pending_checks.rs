//! Checks of foreign keys and deferrable keys that wait for the end of a statement or transaction.

use quickbeam::invariant;

use super::{Pending, PendingCheck, Referring, converted, parent_positions};
use crate::error::Result;
use crate::table::table_writer::TableWriter;
use crate::table::transaction_state::deferred_checks::{
    ConstraintKey, DeferredCheck, DeferredChecks, PendingKey,
};
use crate::types::{Value, ValueRef};

impl TableWriter<'_> {
    /// Checks what was deferred: of these constraints, or of all (DEFER-1).
    pub fn check_deferred(
        &mut self,
        deferred: &DeferredChecks,
        constraints: Option<&[ConstraintKey]>,
    ) -> Result<()> {
        let mut pending = Vec::new();
        deferred.each(constraints, |constraint, check| {
            // A table or a constraint that was dropped has nothing to check.
            let Some(table) = self.snapshot.table(constraint.0) else { return Ok(()) };
            let handle = self.snapshot.handle(self.transaction, constraint.0)?;
            pending.extend(match check {
                // Those were fired before.
                DeferredCheck::Trigger(..) => None,
                DeferredCheck::Key(values) => {
                    let mut indexes = table.indexes.iter();
                    let index = indexes.position(|index| index.name == constraint.1);
                    let values = values.clone();
                    index.map(|number| PendingCheck::Key(PendingKey { handle, number, values }))
                }
                DeferredCheck::Reference { parent, key, shown, came_first } => {
                    let mut keys = table.foreign_keys.iter();
                    let Some(foreign_key) = keys.position(|key| key.name == constraint.1) else {
                        return Ok(());
                    };
                    let parent = self.snapshot.handle(self.transaction, *parent)?;
                    let (key, shown) = (key.clone(), shown.clone());
                    let reference = Referring { child: handle, foreign_key, parent, key, shown };
                    let came_first = *came_first;
                    Some(PendingCheck::Reference(Pending { reference, came_first }))
                }
            });
            Ok(())
        })?;
        let (count, before) = (pending.len(), self.tracked.get());
        self.constraint_work().pending.append(&mut pending);
        self.check_pending()?;
        let tracked = self.tracked.get() - before;
        invariant!(DEFER_2, tracked >= count, "{tracked} validated reads for {count} checks");
        Ok(())
    }

    /// Checks what is pending at the statement's end: fails if a referenced key still does not
    /// exist and a row still refers to it, or if two rows still have the same key.
    #[inline]
    pub(in crate::table) fn check_pending(&mut self) -> Result<()> {
        if self.constraint_work.is_none() { Ok(()) } else { self.check_each_pending() }
    }

    /// Checks the references of new rows to other tables.
    #[inline]
    pub(in crate::table) fn check_missing(&mut self) -> Result<()> {
        if self.constraint_work.is_none() { Ok(()) } else { self.check_each_missing() }
    }

    #[inline(never)]
    fn check_each_missing(&mut self) -> Result<()> {
        let missing = std::mem::take(&mut self.constraint_work().missing);
        missing.iter().try_for_each(|pending| self.check_reference(pending))
    }

    #[inline(never)]
    fn check_each_pending(&mut self) -> Result<()> {
        self.check_each_missing()?;
        for pending in std::mem::take(&mut self.constraint_work().pending) {
            match pending {
                PendingCheck::Reference(pending) => self.check_reference(&pending)?,
                PendingCheck::Key(pending) => self.check_key(&pending)?,
            }
        }
        Ok(())
    }

    fn check_reference(&self, pending: &Pending) -> Result<()> {
        let reference = &pending.reference;
        let parent = &reference.parent;
        let positions = parent_positions(parent.table(), reference.definition()?)?;
        let key: Vec<ValueRef<'_>> = reference.key.iter().map(Value::as_ref).collect();
        let own = (&**reference.child.table(), &reference.definition()?.columns[..]);
        let is_back = match converted(&key, own, (parent.table(), &positions)) {
            None => false,
            Some(key) => self.has_row(parent, &positions, &key)?,
        };
        if !is_back && !self.referring_rows(reference, 1)?.is_empty() {
            return Err(match pending.came_first {
                true => reference.missing(),
                false => reference.violated(),
            });
        }
        Ok(())
    }
}
