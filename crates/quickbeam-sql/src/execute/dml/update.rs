//! UPDATE and DELETE.
//!
//! - CHANGE-1: all rows to be changed are found before the first is changed, unless there is at
//!   most one, so that no change is found again (the Halloween problem).
//! - CHANGE-2: under read committed, a row is locked and read again before it is changed. If
//!   another transaction has changed it, the conditions and new values are those of the newest
//!   version.
//! - CHANGE-3: RETURNING reads a changed row with the FROM rows that it was found with, although
//!   other rows are current by then.

use std::collections::BTreeSet;
use std::sync::Arc;

use quickbeam::{CHECKS_INVARIANTS, Isolation, invariant};

use super::assignments::Assignments;
use super::insert::{Returned, check, check_views, generate, give_back, row_in};
use crate::bind::{Returning, ViewCheck};
use crate::catalog::Table;
use crate::catalog::{FiredTriggers, TriggerEvent};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::hash::key_table::KeyTable;
use crate::execute::row::lock::claim;
use crate::execute::row::{Context, Operator, OperatorBuilder};
use crate::expression::{ColumnRef, Current, Expr};
use crate::plan::{ChangePlan, PlanNode};
use crate::schema::{ROW_ID_BYTES, append_row_id};
use crate::table::{RowDecision, TableHandle, TableWriter};
use crate::types::Value;

/// The operator of UPDATE and DELETE.
#[derive(Debug)]
pub struct UpdateExec {
    handle: Arc<TableHandle>,
    slot: usize,
    root: Operator,
    recheck: Option<Expr>,
    assignments: Option<Assignments>,
    changed: Vec<usize>,
    checks: Vec<(usize, Expr)>,
    generated: Vec<(usize, Expr)>,
    single: bool,
    /// See [`is_plain`](UpdateExec::is_plain).
    is_plain: bool,
    /// Only the table itself is read.
    alone: bool,
    /// WITH CHECK OPTION of views.
    view_checks: Vec<ViewCheck>,
    returning: Option<Returning>,
    triggers: Option<Arc<FiredTriggers>>,
    /// Columns of other rows that RETURNING reads.
    others: Vec<ColumnRef>,
    /// The bytes at the end of a row that is read or returned that are its row id (ROW-3).
    row_id_bytes: usize,
    key: Vec<u8>,
    new: Vec<u8>,
    found: Found,
}

/// Rows to be changed: key, old row and new row of each, concatenated.
#[derive(Debug, Default)]
struct Found {
    bytes: Vec<u8>,
    ends: Vec<[usize; 3]>,
    keys: KeyTable,
    /// For each row, the columns of other rows that RETURNING reads.
    others: Vec<Value>,
}

/// A row that was found, when it is claimed to be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClaimedRow {
    /// It is gone, or no longer matches.
    Gone,
    /// It is as it was found.
    Same,
    /// It was changed meanwhile, and matches.
    Newer,
}

/// Whether only the table itself is read: by one access, or by one for each of some values.
fn is_alone(root: &PlanNode) -> bool {
    match root {
        PlanNode::Table(_) => true,
        PlanNode::NestedLoop { outer, inner, .. } => {
            matches!(
                (&**outer, &**inner),
                (PlanNode::Values { once: true, .. }, PlanNode::Table(_))
            )
        }
        _ => false,
    }
}

/// Returns the columns of rows other than the changed one that RETURNING reads.
fn others_of(returning: Option<&Returning>, own: usize) -> Vec<ColumnRef> {
    let mut others = Vec::new();
    for output in returning.iter().flat_map(|returning| &returning.outputs) {
        output.each_column(&mut |column| {
            if column.slot != own && !others.contains(&column) {
                others.push(column);
            }
        });
    }
    others
}

impl UpdateExec {
    /// Returns the table that is changed.
    pub fn table(&self) -> &Arc<Table> {
        self.handle.table()
    }

    pub fn new(plan: &ChangePlan, builder: &OperatorBuilder<'_>) -> Result<UpdateExec> {
        let handle = builder.handles.of(&plan.table)?;
        let assign = |list: &Vec<_>| Assignments::new(list.clone(), handle.table(), plan.slot);
        let mut assignments = plan.assignments.as_ref().map(assign);
        let row_id_bytes = if plan.root.has_row_ids(plan.slot) { ROW_ID_BYTES } else { 0 };
        if let Some(assignments) = &mut assignments {
            assignments.set_row_id_bytes(row_id_bytes);
        }
        let mut changed = assignments.as_ref().map_or_else(Vec::new, Assignments::columns);
        let triggers = match &assignments {
            None => FiredTriggers::of(handle.table(), TriggerEvent::Delete, None),
            Some(_) => FiredTriggers::of(handle.table(), TriggerEvent::Update, Some(&changed)),
        };
        changed.extend(plan.generated.iter().map(|(column, _)| *column));
        if triggers.as_ref().is_some_and(|it| !it.before_row.is_empty()) {
            changed = (0..handle.table().columns.len()).collect();
        }
        let is_plain = plan.single
            && assignments.is_some()
            && plan.checks.is_empty()
            && plan.generated.is_empty()
            && plan.returning.is_none()
            && plan.view_checks.is_empty()
            && triggers.is_none()
            && row_id_bytes == 0
            && !handle.touches_more(&changed);
        Ok(UpdateExec {
            handle,
            is_plain,
            slot: plan.slot,
            root: builder.operator(&plan.root)?,
            recheck: plan.recheck.clone(),
            assignments,
            changed,
            checks: plan.checks.clone(),
            generated: plan.generated.clone(),
            single: plan.single,
            alone: is_alone(&plan.root),
            view_checks: plan.view_checks.clone(),
            returning: plan.returning.clone(),
            triggers,
            others: others_of(plan.returning.as_ref(), plan.slot),
            row_id_bytes,
            key: Vec::new(),
            new: Vec::new(),
            found: Found::default(),
        })
    }

    /// Returns the table if no more than one row is changed, and nothing is checked of it then.
    pub fn single(&self) -> Option<&TableHandle> {
        (self.single && self.view_checks.is_empty()).then_some(&self.handle)
    }

    /// Whether the statement replaces one row and does nothing else: see
    /// [`run_plain`](Self::run_plain).
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Collects the row counts of the search, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.root.counts(counts);
    }

    /// Changes the one row, if it exists. Returns the number of changed rows. A single change needs
    /// no statement rollback.
    pub fn run_plain(&mut self, context: &mut Context<'_>) -> Result<u64> {
        if let Some(count) = self.modify_one(context)? {
            return Ok(count);
        }
        if !self.find_one(context)? {
            return Ok(0);
        }
        if self.look_again(context)? == ClaimedRow::Gone {
            return Ok(0);
        }
        self.check_newest(context)?;
        let Some(assignments) = &self.assignments else { return Ok(0) };
        assignments.new_row(&self.handle, self.slot, context, &mut self.new)?;
        self.handle.update_alone(context.transaction, &self.key, &self.new, &self.changed)?;
        Ok(1)
    }

    /// Updates the row of a given key in one tree access. Returns `None` if the statement needs
    /// more than that.
    fn modify_one(&mut self, context: &mut Context<'_>) -> Result<Option<u64>> {
        let Operator::Scan(scan) = &mut self.root else { return Ok(None) };
        let Some(key) = scan.only_key(context)? else { return Ok(None) };
        let (handle, slot, changed) = (&self.handle, self.slot, &self.changed[..]);
        let Some(assignments) = &self.assignments else { return Ok(None) };
        let transaction = context.transaction;
        handle.modify_alone(transaction, key, |old, new| {
            if assignments.count_up(old, context.parameters, new) {
                return Ok(());
            }
            let place = context.slot(slot)?;
            old.clone_into(&mut place.bytes);
            place.current = Current::Bytes(0, old.len());
            assignments.new_row(handle, slot, context, new)?;
            handle.check_changed(new, changed)
        })
    }

    /// Makes the only row current and takes its key. Returns false if there is none.
    #[inline]
    fn find_one(&mut self, context: &mut Context<'_>) -> Result<bool> {
        self.root.rewind();
        if !self.root.next(context)? {
            return Ok(false);
        }
        self.key.clear();
        self.key.extend_from_slice(self.root.row_key(self.slot, context).unwrap_or_default());
        Ok(true)
    }

    /// Changes all rows. Returns their number.
    pub fn run(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        if self.triggers.is_none() {
            return self.change_rows(context, statement, returned);
        }
        let (triggers, table) = (self.triggers.clone(), self.handle.table().clone());
        statement.begin_triggers(triggers.as_ref(), &table)?;
        let count = self.change_rows(context, statement, returned)?;
        statement.end_triggers(triggers.as_ref(), &table);
        Ok(count)
    }

    fn change_rows(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        if self.single {
            if !self.find_one(context)? {
                return Ok(0);
            }
            return Ok(u64::from(self.change_one(context, statement, returned)?));
        }
        self.root.rewind();
        self.find_all(context)?;
        let found = std::mem::take(&mut self.found);
        let changed = self.change_all(&found, context, statement, returned);
        self.found = found;
        changed
    }

    fn is_read_committed(context: &Context<'_>) -> bool {
        context.transaction.isolation() == Isolation::ReadCommitted
    }

    /// Under read committed, locks the row with the key and makes its newest version current
    /// (CHANGE-2).
    fn look_again(&self, context: &mut Context<'_>) -> Result<ClaimedRow> {
        if !Self::is_read_committed(context) {
            return Ok(ClaimedRow::Same);
        }
        let mut row = Vec::new();
        if !claim(&self.handle, context.transaction, &self.key, &mut row)? {
            return Ok(ClaimedRow::Gone);
        }
        if self.row_id_bytes > 0 {
            append_row_id(&self.key, &mut row)?;
        }
        let slot = context.slot(self.slot)?;
        if slot.row() == row {
            return Ok(ClaimedRow::Same);
        }
        if !self.alone {
            let message = "a row to be changed was changed by another transaction; begin again";
            return Err(SqlError::new(SqlState::SerializationFailure, message));
        }
        slot.current = Current::Bytes(0, row.len());
        slot.bytes = row;
        let matches = context.holds(self.recheck.as_ref())?;
        Ok(if matches { ClaimedRow::Newer } else { ClaimedRow::Gone })
    }

    /// Checks that the row about to be changed was read again under read committed.
    #[inline]
    fn check_newest(&self, context: &mut Context<'_>) -> Result<()> {
        invariant!(
            CHANGE_2,
            !Self::is_read_committed(context) || self.is_newest(context)?,
            "a row of {}",
            self.handle.table().name
        );
        Ok(())
    }

    /// Changes the current row, whose key is known.
    fn change_one(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        if self.look_again(context)? == ClaimedRow::Gone {
            return Ok(false);
        }
        self.check_newest(context)?;
        let Some(assignments) = &self.assignments else {
            return self.delete(context, statement, returned);
        };
        assignments.new_row(&self.handle, self.slot, context, &mut self.new)?;
        self.update(context, statement, returned)
    }

    fn delete(
        &self,
        context: &Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        let old = self.without_row_id(row_in(&self.handle, context, self.slot)?.bytes());
        let triggers = self.triggers.as_ref();
        let before = statement.before_row(triggers, &self.handle, Some((&self.key, old)), None)?;
        if before == RowDecision::Skipped || !statement.delete(&self.handle, &self.key, old)? {
            return Ok(false);
        }
        if triggers.is_some() {
            context.keep(old.len())?;
            statement.after_row(triggers, &self.handle, Some(old), None)?;
        }
        if let Some(returning) = &self.returning {
            give_back(returning, context, returned)?;
        }
        Ok(true)
    }

    /// Replaces the current row by the new row. Returns false if another part of the statement
    /// changes it.
    fn update(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        let is_simple = self.checks.is_empty()
            && self.generated.is_empty()
            && self.view_checks.is_empty()
            && self.returning.is_none();
        if is_simple && self.triggers.is_none() {
            let old = self.without_row_id(row_in(&self.handle, context, self.slot)?.bytes());
            return statement.update(&self.handle, &self.key, old, &self.new, &self.changed);
        }
        // CHECK and RETURNING read the new row, so it becomes the current row of the slot.
        let slot = context.slot(self.slot)?;
        let old = self.without_row_id(slot.row()).to_vec();
        if self.triggers.is_some() {
            let (triggers, key) = (self.triggers.as_ref(), &self.key[..]);
            let new = Some(&self.new[..]);
            match statement.before_row(triggers, &self.handle, Some((key, &old)), new)? {
                RowDecision::Skipped => return Ok(false),
                RowDecision::Changed(row) => self.new = row,
                RowDecision::Same => {}
            }
        }
        let slot = context.slot(self.slot)?;
        let (bytes, current) = (std::mem::take(&mut slot.bytes), slot.current);
        slot.bytes.extend_from_slice(&self.new);
        slot.current = Current::Bytes(0, self.new.len());
        if !self.generated.is_empty() {
            generate(&self.handle, &self.generated, self.slot, context)?;
            self.new.clear();
            let row = context.slots.get(self.slot).map_or(&[][..], |slot| slot.row());
            self.new.extend_from_slice(row);
        }
        check(&self.handle, &self.checks, self.slot, context)?;
        let is_changed =
            statement.update(&self.handle, &self.key, &old, &self.new, &self.changed)?;
        if let Some(triggers) = self.triggers.as_ref().filter(|_| is_changed) {
            context.keep(old.len() + self.new.len())?;
            statement.after_row(Some(triggers), &self.handle, Some(&old), Some(&self.new))?;
        }
        if is_changed {
            check_views(&self.handle, &self.view_checks, self.slot, context)?;
        }
        if let Some(returning) = self.returning.as_ref().filter(|_| is_changed) {
            if self.row_id_bytes > 0 {
                let slot = context.slot(self.slot)?;
                append_row_id(&self.key, &mut slot.bytes)?;
                slot.current = Current::Bytes(0, slot.bytes.len());
            }
            give_back(returning, context, returned)?;
        }
        let slot = context.slot(self.slot)?;
        (slot.bytes, slot.current) = (bytes, current);
        Ok(is_changed)
    }

    /// Finds the rows, each once, and computes the new ones (CHANGE-1).
    fn find_all(&mut self, context: &mut Context<'_>) -> Result<()> {
        let Found { bytes, ends, keys, others } = &mut self.found;
        bytes.clear();
        ends.clear();
        keys.clear();
        others.clear();
        while self.root.next(context)? {
            let key = self.root.row_key(self.slot, context).unwrap_or_default();
            // A row that matches several rows of FROM is changed once.
            if !self.alone && !keys.insert(key).1 {
                continue;
            }
            bytes.extend_from_slice(key);
            let key_end = bytes.len();
            bytes
                .extend_from_slice(context.slots.get(self.slot).map_or(&[][..], |slot| slot.row()));
            let old_end = bytes.len();
            if let Some(assignments) = &self.assignments {
                assignments.new_row(&self.handle, self.slot, context, &mut self.new)?;
                bytes.extend_from_slice(&self.new);
            }
            for column in &self.others {
                let value = context.slot(column.slot)?.column(column.column)?.to_value();
                context.keep(value.memory())?;
                others.push(value);
            }
            context.keep(bytes.len() - ends.last().map_or(0, |[_, _, end]| *end) + 24)?;
            ends.push([key_end, old_end, bytes.len()]);
        }
        Ok(())
    }

    /// Checks that each row was found once, with what RETURNING reads of other rows.
    fn check_found(&self, found: &Found) {
        let starts = std::iter::once(0).chain(found.ends.iter().map(|[_, _, end]| *end));
        let keys = starts.zip(&found.ends).map(|(start, [end, ..])| found.bytes.get(start..*end));
        let distinct: BTreeSet<_> = keys.collect();
        let (rows, others) = (found.ends.len(), found.others.len());
        invariant!(CHANGE_1, distinct.len() == rows, "{rows} rows have {} keys", distinct.len());
        invariant!(CHANGE_3, others == rows * self.others.len(), "{others} values, {rows} rows");
    }

    fn without_row_id<'r>(&self, row: &'r [u8]) -> &'r [u8] {
        row.get(..row.len().saturating_sub(self.row_id_bytes)).unwrap_or_default()
    }

    /// Returns whether the current row is the newest version of the row with the key.
    fn is_newest(&self, context: &mut Context<'_>) -> Result<bool> {
        let mut newest = Vec::new();
        let is_there = claim(&self.handle, context.transaction, &self.key, &mut newest)?;
        Ok(is_there && self.without_row_id(context.slot(self.slot)?.row()) == newest)
    }

    fn change_all(
        &mut self,
        found: &Found,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        if CHECKS_INVARIANTS {
            self.check_found(found);
        }
        let mut count = 0;
        let mut start = 0;
        for (number, &[key_end, old_end, new_end]) in found.ends.iter().enumerate() {
            let part = |from: usize, to: usize| found.bytes.get(from..to).unwrap_or_default();
            self.key.clear();
            self.key.extend_from_slice(part(start, key_end));
            let slot = context.slot(self.slot)?;
            slot.bytes.clear();
            slot.bytes.extend_from_slice(part(key_end, old_end));
            slot.current = Current::Bytes(0, slot.bytes.len());
            start = new_end;
            self.set_other_rows(found, number, context)?;
            context.check_cancelled()?;
            let claimed = self.look_again(context)?;
            if claimed == ClaimedRow::Gone {
                continue;
            }
            self.check_newest(context)?;
            let Some(assignments) = &self.assignments else {
                count += u64::from(self.delete(context, statement, returned)?);
                continue;
            };
            // The new row of an unchanged one is kept: functions in SET may change something.
            if claimed == ClaimedRow::Newer {
                assignments.new_row(&self.handle, self.slot, context, &mut self.new)?;
            } else {
                self.new.clear();
                self.new.extend_from_slice(part(old_end, new_end));
            }
            count += u64::from(self.update(context, statement, returned)?);
        }
        Ok(count)
    }

    /// Makes the FROM rows of the changed row with that number current, for RETURNING (CHANGE-3).
    fn set_other_rows(
        &self,
        found: &Found,
        number: usize,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let values = found.others.iter().skip(number * self.others.len());
        for (column, value) in self.others.iter().zip(values) {
            let slot = context.slot(column.slot)?;
            slot.current = Current::Values;
            if slot.values.len() <= column.column {
                slot.values.resize(column.column + 1, Value::Null);
            }
            if let Some(place) = slot.values.get_mut(column.column) {
                place.clone_from(value);
            }
        }
        Ok(())
    }
}
