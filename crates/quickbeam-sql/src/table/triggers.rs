//! The triggers that a statement fires.
//!
//! BEFORE triggers run where the executor changes a row. AFTER triggers wait in a queue until the
//! statement has changed all its rows. Foreign keys whose child or parent has triggers follow from
//! that queue, too: so rows change, and triggers fire, in PostgreSQL's order.
//!
//! - TRIGGER-1: nothing waits in the queue when a statement has ended.

use std::sync::Arc;

use super::change_record::RecordedChange;
use super::table_writer::TableWriter;
use super::transaction_state::deferred_checks::DeferredTrigger;
use super::trigger_queue::{QueuedEvent, RowDecision, RowEvent, TriggerCall, TriggerCaller};
use crate::catalog::{ConstraintTiming, FiredTriggers, Table, Trigger, TriggerEvent, TriggerState};
use crate::error::{Result, SqlError, SqlState};
use crate::handle::table_handle::TableHandle;
use crate::schema::encoding::row_format::StoredRow;
use crate::types::Value;

#[cold]
fn already_changed(is_update: bool) -> SqlError {
    let what = if is_update { "updated" } else { "deleted" };
    let message = format!(
        "tuple to be {what} was already modified by an operation triggered by the current command"
    );
    SqlError::new(SqlState::TriggeredDataChangeViolation, message).with_hint(
        "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.",
    )
}

fn values_in(table: &Table, row: Option<&[u8]>) -> Result<Option<Vec<Value>>> {
    row.map(|row| StoredRow::new(table, row)?.to_values()).transpose()
}

impl<'a> TableWriter<'a> {
    /// Runs the functions of triggers by this.
    pub fn set_triggers(&mut self, caller: &'a dyn TriggerCaller) {
        self.triggers.caller = Some(caller);
        self.is_replica = caller.is_replica();
    }

    /// Fires the BEFORE … FOR EACH STATEMENT triggers, once for all changes of a statement.
    #[inline]
    pub fn begin_triggers(
        &mut self,
        triggers: Option<&Arc<FiredTriggers>>,
        table: &Arc<Table>,
    ) -> Result<()> {
        triggers.map_or(Ok(()), |triggers| self.fire_before_statement(triggers, table))
    }

    #[inline(never)]
    fn fire_before_statement(
        &mut self,
        triggers: &FiredTriggers,
        table: &Arc<Table>,
    ) -> Result<()> {
        if !self.triggers.begin(table.id, triggers.event) {
            return Ok(());
        }
        self.fire_each(&triggers.before_statement, table, triggers.event)
    }

    /// Queues the AFTER … FOR EACH STATEMENT triggers. They fire after all rows queued before.
    #[inline]
    pub fn end_triggers(&mut self, triggers: Option<&Arc<FiredTriggers>>, table: &Arc<Table>) {
        if let Some(triggers) = triggers {
            self.queue_after_statement(triggers, table);
        }
    }

    #[inline(never)]
    fn queue_after_statement(&mut self, triggers: &Arc<FiredTriggers>, table: &Arc<Table>) {
        if let Some(record) = &mut self.record {
            return record.push(RecordedChange::Statement(triggers.clone(), table.clone()));
        }
        self.triggers.push_statement(triggers.clone(), table.clone());
    }

    fn fire_each(
        &self,
        triggers: &[Arc<Trigger>],
        table: &Arc<Table>,
        event: TriggerEvent,
    ) -> Result<()> {
        for trigger in triggers {
            let (transaction, old, new) = (self.transaction, None, None);
            let rows = trigger.has_transitions().then(|| self.triggers.transitions(table, event));
            let transitions = rows.as_ref();
            let set = &[];
            let call =
                TriggerCall { transaction, trigger, table, event, old, new, set, transitions };
            let caller = self.triggers.caller()?;
            if caller.condition_holds(&call)? {
                caller.call_trigger(&call)?;
            }
        }
        Ok(())
    }

    /// Fires the BEFORE … FOR EACH ROW triggers of a change. `old`: the key and the row that is
    /// changed; `new`: the row that is inserted, or that the old one becomes.
    #[inline]
    pub fn before_row(
        &mut self,
        triggers: Option<&Arc<FiredTriggers>>,
        handle: &TableHandle,
        old: Option<(&[u8], &[u8])>,
        new: Option<&[u8]>,
    ) -> Result<RowDecision> {
        match triggers.filter(|it| !it.before_row.is_empty()) {
            None => Ok(RowDecision::Same),
            Some(triggers) => self.fire_before_row(triggers, handle, old, new),
        }
    }

    #[inline(never)]
    fn fire_before_row(
        &mut self,
        triggers: &FiredTriggers,
        handle: &TableHandle,
        old: Option<(&[u8], &[u8])>,
        new: Option<&[u8]>,
    ) -> Result<RowDecision> {
        let (table, event) = (handle.table(), triggers.event);
        let old_values = values_in(table, old.map(|(_, row)| row))?;
        let mut new_values = values_in(table, new)?;
        // They are computed after the triggers, also where an UPDATE still has the old ones.
        for (column, value) in table.columns.iter().zip(new_values.iter_mut().flatten()) {
            if column.generated.is_some() {
                *value = Value::Null;
            }
        }
        let mut is_changed = false;
        for trigger in &triggers.before_row {
            let call = TriggerCall {
                transaction: self.transaction,
                trigger,
                table,
                event,
                old: old_values.as_deref(),
                new: new_values.as_deref(),
                set: &triggers.set,
                transitions: None,
            };
            let caller = self.triggers.caller()?;
            if !caller.condition_holds(&call)? {
                continue;
            }
            let Some(row) = caller.call_trigger(&call)? else {
                return Ok(RowDecision::Skipped);
            };
            if new.is_some() {
                is_changed |= new_values.as_ref() != Some(&row);
                new_values = Some(row);
            }
        }
        if let Some((key, row)) = old
            && !self.is_stored(handle, key, row)?
        {
            return Err(already_changed(new.is_some()));
        }
        let Some(values) = new_values.filter(|_| is_changed) else { return Ok(RowDecision::Same) };
        let mut row = Vec::new();
        table.encode_values(&mut row, &values)?;
        Ok(RowDecision::Changed(row))
    }

    /// Calls the INSTEAD OF triggers of a change of a row of a view. Returns the new row, or of a
    /// delete the old one; `None` if a trigger has not changed the row.
    pub fn instead_of_row(
        &mut self,
        triggers: Option<&Arc<FiredTriggers>>,
        table: &Arc<Table>,
        old: Option<Vec<Value>>,
        mut new: Option<Vec<Value>>,
    ) -> Result<Option<Vec<Value>>> {
        for trigger in triggers.iter().flat_map(|triggers| &triggers.instead_of) {
            let call = TriggerCall {
                transaction: self.transaction,
                trigger,
                table,
                event: triggers.map_or(TriggerEvent::Insert, |it| it.event),
                old: old.as_deref(),
                new: new.as_deref(),
                set: &[],
                transitions: None,
            };
            let caller = self.triggers.caller()?;
            if !caller.condition_holds(&call)? {
                continue;
            }
            let Some(row) = caller.call_trigger(&call)? else { return Ok(None) };
            if new.is_some() {
                new = Some(row);
            }
        }
        Ok(new.or(old))
    }

    /// Queues the AFTER … FOR EACH ROW triggers of a change that was made or recorded.
    pub fn after_row(
        &mut self,
        triggers: Option<&Arc<FiredTriggers>>,
        handle: &TableHandle,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<()> {
        let Some(triggers) = triggers.filter(|it| !it.after_row.is_empty() || it.keeps_rows) else {
            return Ok(());
        };
        let (table, event) = (handle.table().clone(), triggers.event);
        let mut chosen = triggers.after_row.clone();
        let is_plain = |trigger: &Arc<Trigger>| {
            trigger.condition.is_none() && trigger.state == TriggerState::Enabled
        };
        if self.is_replica || !chosen.iter().all(is_plain) {
            let (old, new) = (values_in(&table, old)?, values_in(&table, new)?);
            let mut kept = Vec::with_capacity(chosen.len());
            for trigger in &*chosen {
                let call = TriggerCall {
                    transaction: self.transaction,
                    trigger,
                    table: &table,
                    event,
                    old: old.as_deref(),
                    new: new.as_deref(),
                    set: &[],
                    transitions: None,
                };
                if self.triggers.caller()?.condition_holds(&call)? {
                    kept.push(trigger.clone());
                }
            }
            chosen = kept.into();
        }
        let keeps_rows = triggers.keeps_rows;
        if chosen.is_empty() && !keeps_rows {
            return Ok(());
        }
        let (old, new) = (old.map(<[u8]>::to_vec), new.map(<[u8]>::to_vec));
        let event = RowEvent { triggers: chosen, table, event, old, new, keeps_rows };
        match &mut self.record {
            Some(record) => record.push(RecordedChange::Row(event)),
            None => self.triggers.push_row(event),
        }
        Ok(())
    }

    /// Whether AFTER triggers or changes of other rows wait.
    pub(super) fn has_queued(&self) -> bool {
        !self.triggers.is_empty()
    }

    /// Works the queue off: rows follow foreign keys, and AFTER triggers fire.
    pub(super) fn fire_queued(&mut self) -> Result<()> {
        self.fire_events()?;
        while let Some(fired) = self.triggers.pop_last() {
            self.triggers.caller()?.call_trigger(&fired.call(self.transaction))?;
        }
        Ok(())
    }

    fn fire_events(&mut self) -> Result<()> {
        while let Some(event) = self.triggers.pop() {
            match event {
                QueuedEvent::Cascade(number) => {
                    let ordered = &mut self.constraint_work().ordered;
                    if let Some(task) = ordered.get_mut(number).and_then(Option::take) {
                        self.cascade(task)?;
                        self.work_off()?;
                    }
                }
                QueuedEvent::Row(event) => self.fire_row(event)?,
                QueuedEvent::Statement(triggers, table) => {
                    self.triggers.end(table.id, triggers.event);
                    self.fire_each(&triggers.after_statement, &table, triggers.event)?;
                    self.triggers.end_transitions(table.id, triggers.event);
                }
            }
        }
        Ok(())
    }

    /// Calls the AFTER triggers of a row. Those that are deferred constraints wait for the end of
    /// the transaction.
    fn fire_row(&mut self, event: RowEvent) -> Result<()> {
        let RowEvent { triggers, table, event, old, new, .. } = event;
        let (old_values, new_values) =
            (values_in(&table, old.as_deref())?, values_in(&table, new.as_deref())?);
        for trigger in &*triggers {
            let timing = trigger.constraint.unwrap_or_default();
            let is_last = match self.deferred {
                Some(deferred) => deferred.defers(&table, &trigger.name, timing),
                None => timing == ConstraintTiming::Deferred,
            };
            if is_last {
                let (trigger, table) = (trigger.clone(), table.clone());
                let (old, new) = (old_values.clone(), new_values.clone());
                let fired = DeferredTrigger { trigger, table, event, old, new };
                match self.deferred {
                    Some(deferred) => deferred.defer_trigger(fired),
                    None => self.triggers.push_last(fired),
                }
                continue;
            }
            let rows = trigger.has_transitions().then(|| self.triggers.transitions(&table, event));
            let call = TriggerCall {
                transaction: self.transaction,
                trigger,
                table: &table,
                event,
                old: old_values.as_deref(),
                new: new_values.as_deref(),
                set: &[],
                transitions: rows.as_ref(),
            };
            self.triggers.caller()?.call_trigger(&call)?;
        }
        Ok(())
    }
}
