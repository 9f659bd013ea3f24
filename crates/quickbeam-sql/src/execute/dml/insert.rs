//! INSERT.

use std::collections::HashSet;
use std::sync::Arc;

use super::assignments::Assignments;
use crate::bind::{OnConflict, Returning, ViewCheck};
use crate::catalog::Table;
use crate::catalog::{FiredTriggers, TriggerEvent};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::row::lock::claim;
use crate::execute::row::{Context, Operator, OperatorBuilder};
use crate::expression::{ColumnRef, Current, Datum, Expr};
use crate::plan::{InsertPlan, PlanNode, QueryPlan};
use crate::schema::append_row_id;
use crate::table::{
    self, Origin, RowBatch, RowDecision, RowFailure, Splice, StoredRow, TableHandle, TableWriter,
    check_violation, shown_row,
};
use crate::types::{Value, ValueRef};

/// Rows of RETURNING.
pub type Returned = Vec<Vec<Value>>;

/// The operator of INSERT.
#[derive(Debug)]
pub struct InsertExec {
    handle: Arc<TableHandle>,
    /// One row is inserted, and nothing is checked, computed or returned.
    is_plain: bool,
    new_slot: usize,
    old_slot: usize,
    rows: Vec<Vec<Expr>>,
    /// The row, encoded, if it is the only one, and nothing but constants.
    constant: Option<Vec<u8>>,
    source: Option<Box<InsertSource>>,
    checks: Vec<(usize, Expr)>,
    generated: Vec<(usize, Expr)>,
    conflict: Option<OnConflict>,
    /// The assignments of DO UPDATE.
    assignments: Option<Assignments>,
    /// The answers of its subqueries.
    answers: Option<Box<Operator>>,
    /// WITH CHECK OPTION of views.
    view_checks: Vec<ViewCheck>,
    returning: Option<Returning>,
    /// Whether RETURNING reads the row id (ROW-3), and the slot of its `xmax`.
    returns_row_id: bool,
    xmax_slot: Option<usize>,
    triggers: Option<Arc<FiredTriggers>>,
    /// The triggers of DO UPDATE.
    update_triggers: Option<Arc<FiredTriggers>>,
    /// The key of a plain insertion.
    key: Vec<u8>,
    /// The new row in DO UPDATE.
    changed: Vec<u8>,
    /// Rows to be inserted together.
    batch: RowBatch,
    /// The keys of the rows that the execution inserted or changed, where DO UPDATE may meet one
    /// again.
    affected: HashSet<Vec<u8>>,
}

/// Rows of a query.
#[derive(Debug)]
struct InsertSource {
    root: Operator,
    /// A value for each column of the table, over the current row of the query.
    values: Vec<Expr>,
    /// The slot whose rows are the new rows, byte for byte.
    same: Option<usize>,
    /// The new rows are columns of other rows.
    splice: Option<Splice>,
    /// Whether the query reads the target table. Then it runs to its end before the first insert.
    reads_target: bool,
}

impl InsertExec {
    /// Returns the table that is changed.
    pub fn table(&self) -> &Arc<Table> {
        self.handle.table()
    }

    pub fn new(plan: &InsertPlan, builder: &OperatorBuilder<'_>) -> Result<InsertExec> {
        let handle = builder.handles.of(&plan.table)?;
        let source = match &plan.query {
            None => None,
            Some((query, slot, values)) => {
                Some(Box::new(InsertSource::new(plan, query, *slot, values, builder)?))
            }
        };
        let assign = |list: &Vec<_>| Assignments::new(list.clone(), handle.table(), plan.old_slot);
        let conflict = plan.conflict.as_ref();
        let assignments = conflict.and_then(|conflict| conflict.assignments.as_ref()).map(assign);
        let triggers = FiredTriggers::of(handle.table(), TriggerEvent::Insert, None);
        let update_triggers = assignments.as_ref().and_then(|assignments: &Assignments| {
            let columns = assignments.columns();
            FiredTriggers::of(handle.table(), TriggerEvent::Update, Some(&columns))
        });
        let id = ColumnRef { slot: plan.new_slot, column: plan.table.columns.len() };
        let mut returns_row_id = false;
        for output in plan.returning.iter().flat_map(|returning| &returning.outputs) {
            output.each_column(&mut |column| returns_row_id |= column == id);
        }
        let is_plain = source.is_none()
            && plan.rows.len() == 1
            && plan.checks.is_empty()
            && plan.generated.is_empty()
            && plan.conflict.is_none()
            && plan.view_checks.is_empty()
            && plan.returning.is_none()
            && handle.has_rows_only();
        Ok(InsertExec {
            handle,
            is_plain,
            triggers,
            update_triggers,
            assignments,
            new_slot: plan.new_slot,
            old_slot: plan.old_slot,
            rows: plan.rows.clone(),
            constant: None,
            source,
            checks: plan.checks.clone(),
            generated: plan.generated.clone(),
            answers: match &plan.conflict_answers {
                Some(node) => Some(Box::new(builder.operator(node)?)),
                None => None,
            },
            conflict: plan.conflict.clone(),
            view_checks: plan.view_checks.clone(),
            returning: plan.returning.clone(),
            returns_row_id,
            xmax_slot: plan.xmax_slot,
            key: Vec::new(),
            changed: Vec::new(),
            batch: RowBatch::default(),
            affected: HashSet::new(),
        })
    }

    /// Returns the table if no more than one row is inserted, and nothing is checked of it then.
    pub fn single(&self) -> Option<&TableHandle> {
        let is_one = self.source.is_none() && self.rows.len() == 1;
        (is_one && self.view_checks.is_empty()).then_some(&self.handle)
    }

    /// Whether the statement adds one row and does nothing else: see
    /// [`run_plain`](Self::run_plain).
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Inserts the one row. A single change needs no statement rollback.
    pub fn run_plain(&mut self, context: &mut Context<'_>) -> Result<u64> {
        self.encode_row(0, context)?;
        let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
        let (catalog, transaction) = (context.catalog, context.transaction);
        self.handle.insert_alone(catalog, transaction, row, &mut self.key)?;
        Ok(1)
    }

    /// Collects the row counts of the query, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        if let Some(source) = &self.source {
            source.root.counts(counts);
        }
    }

    /// Inserts all rows, and fires the triggers of the statement. Returns their number.
    pub fn run(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        self.begin_triggers(statement)?;
        let count = self.insert_rows(context, statement, returned)?;
        self.end_triggers(statement);
        Ok(count)
    }

    /// Fires the BEFORE triggers of the statement.
    pub fn begin_triggers(&self, statement: &mut TableWriter<'_>) -> Result<()> {
        for triggers in [&self.triggers, &self.update_triggers] {
            statement.begin_triggers(triggers.as_ref(), self.handle.table())?;
        }
        Ok(())
    }

    /// Queues the AFTER triggers of the statement.
    pub fn end_triggers(&self, statement: &mut TableWriter<'_>) {
        for triggers in [&self.update_triggers, &self.triggers] {
            statement.end_triggers(triggers.as_ref(), self.handle.table());
        }
    }

    /// Inserts all rows. Returns their number.
    pub fn insert_rows(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        let mut count = 0;
        self.affected.clear();
        for number in 0..self.rows.len() {
            self.encode_row(number, context)?;
            count += u64::from(self.insert(context, statement, returned)?);
        }
        let Some(mut source) = self.source.take() else { return Ok(count) };
        let inserted = self.insert_all(&mut source, context, statement, returned);
        self.source = Some(source);
        Ok(count + inserted?)
    }

    /// Encodes a row of VALUES into the new row's slot: one of constants once for all executions.
    fn encode_row(&mut self, number: usize, context: &mut Context<'_>) -> Result<()> {
        let mut row = std::mem::take(&mut context.slot(self.new_slot)?.bytes);
        row.clear();
        if let Some(constant) = &self.constant {
            row.extend_from_slice(constant);
            return set_current_row(context, self.new_slot, row);
        }
        let values = self.rows.get(number).map_or(&[][..], |values| values);
        append(&self.handle, values, context, &mut row)?;
        if self.rows.len() == 1 && values.iter().all(|value| value.as_constant().is_some()) {
            self.constant = Some(row.clone());
        }
        set_current_row(context, self.new_slot, row)
    }

    fn insert_all(
        &mut self,
        source: &mut InsertSource,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        source.root.rewind();
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        let is_plain = self.checks.is_empty() && self.generated.is_empty();
        let inserted = if is_plain && self.takes_many() {
            self.insert_many(source, context, statement, &mut batch)
        } else {
            self.insert_each(source, context, statement, returned, &mut batch)
        };
        self.batch = batch;
        inserted
    }

    /// Whether rows are inserted as they are, so that they may wait for each other.
    fn takes_many(&self) -> bool {
        self.conflict.is_none()
            && self.returning.is_none()
            && self.view_checks.is_empty()
            && self.triggers.is_none()
            && self.handle.takes_many()
    }

    /// Whether rows may wait in a queue: none of their expressions can see that earlier ones are
    /// not in the table yet.
    pub fn queues_rows(&self) -> bool {
        let conditions =
            self.checks.iter().chain(&self.generated).map(|(_, expression)| expression);
        let mut expressions = conditions.chain(self.rows.iter().flatten());
        self.source.is_none() && self.takes_many() && !expressions.any(Expr::calls_program)
    }

    /// Adds the row of VALUES to a batch, for [`insert_batch`](Self::insert_batch).
    pub fn queue_row(&mut self, context: &mut Context<'_>, batch: &mut RowBatch) -> Result<()> {
        self.encode_row(0, context)?;
        generate(&self.handle, &self.generated, self.new_slot, context)?;
        check(&self.handle, &self.checks, self.new_slot, context)?;
        let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
        batch.bytes.extend_from_slice(row);
        batch.end_row();
        Ok(())
    }

    /// Inserts the rows of a batch.
    pub fn insert_batch(
        &self,
        batch: &RowBatch,
        statement: &mut TableWriter<'_>,
    ) -> std::result::Result<(), RowFailure> {
        statement.insert_many(&self.handle, batch)
    }

    fn insert_many(
        &self,
        source: &mut InsertSource,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        batch: &mut RowBatch,
    ) -> Result<u64> {
        let mut count = 0;
        while source.root.next(context)? {
            source.encode(&self.handle, context, &mut batch.bytes)?;
            let length = batch.end_row();
            count += 1;
            if source.reads_target {
                context.keep(length + 8)?;
            } else if batch.is_full() {
                statement.insert_many(&self.handle, batch).map_err(|failed| failed.error)?;
                batch.clear();
            }
        }
        statement.insert_many(&self.handle, batch).map_err(|failed| failed.error)?;
        Ok(count)
    }

    fn insert_each(
        &mut self,
        source: &mut InsertSource,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
        batch: &mut RowBatch,
    ) -> Result<u64> {
        let mut count = 0;
        while source.root.next(context)? {
            if source.reads_target {
                source.encode(&self.handle, context, &mut batch.bytes)?;
                context.keep(batch.end_row() + 8)?;
                continue;
            }
            let mut row = std::mem::take(&mut context.slot(self.new_slot)?.bytes);
            row.clear();
            source.encode(&self.handle, context, &mut row)?;
            set_current_row(context, self.new_slot, row)?;
            count += u64::from(self.insert(context, statement, returned)?);
        }
        for bytes in batch.rows() {
            let mut row = std::mem::take(&mut context.slot(self.new_slot)?.bytes);
            row.clear();
            row.extend_from_slice(bytes);
            set_current_row(context, self.new_slot, row)?;
            count += u64::from(self.insert(context, statement, returned)?);
        }
        Ok(count)
    }

    /// Inserts the row in the new row's slot, or runs the ON CONFLICT action. Returns whether a row
    /// was inserted or changed.
    fn insert(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        if self.triggers.is_some() && !self.fire_before(context, statement)? {
            return Ok(false);
        }
        generate(&self.handle, &self.generated, self.new_slot, context)?;
        check(&self.handle, &self.checks, self.new_slot, context)?;
        let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
        let Some(conflict) = &self.conflict else {
            statement.insert(&self.handle, row)?;
            return self.inserted(context, statement, returned);
        };
        let Some(found) = statement.insert_unless_conflict(&self.handle, row)? else {
            if self.may_meet_again() {
                self.affected.insert(statement.last_key().to_vec());
            }
            return self.inserted(context, statement, returned);
        };
        if let Some(target) = &conflict.target
            && !target.contains(&found.index)
        {
            // Another unique key than the conflict target conflicts. If the target conflicts too,
            // the target decides.
            for index in target {
                if let Some(found) = statement.conflict_in(&self.handle, *index, row)? {
                    return self.update(&found, context, statement, returned);
                }
            }
            // Inserting again returns the error that names the key.
            statement.insert(&self.handle, row)?;
            return self.inserted(context, statement, returned);
        }
        self.update(&found, context, statement, returned)
    }

    /// Fires the BEFORE triggers of the row in the new row's slot. Returns false if the row is not
    /// inserted.
    fn fire_before(
        &self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
    ) -> Result<bool> {
        let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
        match statement.before_row(self.triggers.as_ref(), &self.handle, None, Some(row))? {
            RowDecision::Skipped => return Ok(false),
            RowDecision::Changed(row) => set_current_row(context, self.new_slot, row)?,
            RowDecision::Same => {}
        }
        Ok(true)
    }

    /// Does what follows the insertion of the row in the new row's slot.
    fn inserted(
        &self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        if self.triggers.is_some() {
            let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
            context.keep(row.len())?;
            statement.after_row(self.triggers.as_ref(), &self.handle, None, Some(row))?;
        }
        check_views(&self.handle, &self.view_checks, self.new_slot, context)?;
        self.give_back(context, (statement.last_key(), IsPresent::No), returned)?;
        Ok(true)
    }

    /// Runs DO UPDATE, or nothing for DO NOTHING.
    fn update(
        &mut self,
        found: &table::KeyConflict,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        let may_meet_again = self.may_meet_again();
        let Some(assignments) = &self.assignments else { return Ok(false) };
        if may_meet_again && !self.affected.insert(found.row_key.clone())
            || statement.changes(&self.handle, &found.row_key)
        {
            return Err(affected_twice("ON CONFLICT DO UPDATE")
                .with_hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values."));
        }
        let mut old = std::mem::take(&mut context.slot(self.old_slot)?.bytes);
        let there = claim(&self.handle, context.transaction, &found.row_key, &mut old)?;
        let slot = context.slot(self.old_slot)?;
        slot.current = Current::Bytes(0, old.len());
        slot.bytes = old;
        if !there {
            // The conflicting row is gone, but this transaction's snapshot may not show that.
            let message = "a conflicting row was removed by another transaction; begin again";
            return Err(SqlError::new(SqlState::SerializationFailure, message));
        }
        if let Some(answers) = &mut self.answers {
            answers.rewind();
            answers.next(context)?;
        }
        if !context.holds(self.conflict.as_ref().and_then(|conflict| conflict.filter.as_ref()))? {
            return Ok(false);
        }
        assignments.new_row(&self.handle, self.old_slot, context, &mut self.changed)?;
        let mut changed = assignments.columns();
        if self.update_triggers.is_some() {
            let old = context.slots.get(self.old_slot).map_or(&[][..], |slot| slot.row());
            let (old, new) = (Some((&found.row_key[..], old)), Some(&self.changed[..]));
            let triggers = self.update_triggers.as_ref();
            match statement.before_row(triggers, &self.handle, old, new)? {
                RowDecision::Skipped => return Ok(false),
                RowDecision::Changed(row) => {
                    self.changed = row;
                    changed = (0..self.handle.table().columns.len()).collect();
                }
                RowDecision::Same => {}
            }
        }
        let slot = context.slot(self.new_slot)?;
        slot.bytes.clear();
        slot.bytes.extend_from_slice(&self.changed);
        slot.current = Current::Bytes(0, slot.bytes.len());
        if !self.generated.is_empty() {
            generate(&self.handle, &self.generated, self.new_slot, context)?;
            changed.extend(self.generated.iter().map(|(column, _)| *column));
            self.changed.clear();
            let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
            self.changed.extend_from_slice(row);
        }
        check(&self.handle, &self.checks, self.new_slot, context)?;
        let old = context.slots.get(self.old_slot).map_or(&[][..], |slot| slot.row());
        statement.update(&self.handle, &found.row_key, old, &self.changed, &changed)?;
        let (triggers, new) = (self.update_triggers.as_ref(), Some(&self.changed[..]));
        statement.after_row(triggers, &self.handle, Some(old), new)?;
        check_views(&self.handle, &self.view_checks, self.new_slot, context)?;
        self.give_back(context, (&found.row_key, IsPresent::Yes), returned)?;
        Ok(true)
    }

    /// Whether DO UPDATE may meet a row that the same execution inserted or changed.
    fn may_meet_again(&self) -> bool {
        self.assignments.is_some() && (self.source.is_some() || self.rows.len() != 1)
    }

    /// Computes a row of RETURNING for the row in the new row's slot, with its key.
    fn give_back(
        &self,
        context: &mut Context<'_>,
        (key, is_present): (&[u8], IsPresent),
        returned: &mut Returned,
    ) -> Result<()> {
        let Some(returning) = &self.returning else { return Ok(()) };
        if self.returns_row_id {
            let slot = context.slot(self.new_slot)?;
            append_row_id(key, &mut slot.bytes)?;
            slot.current = Current::Bytes(0, slot.bytes.len());
        }
        if let Some(xmax_slot) = self.xmax_slot {
            let xmax = match is_present {
                IsPresent::No => 0,
                IsPresent::Yes => context.frame().transaction_number()? as u32,
            };
            let slot = context.slot(xmax_slot)?;
            slot.values.clear();
            slot.values.push(Value::Oid(xmax));
            slot.current = Current::Values;
        }
        give_back(returning, context, returned)
    }
}

/// Whether the row of an INSERT was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsPresent {
    No,
    Yes,
}

/// The error of a row that a statement changes twice.
#[cold]
pub(crate) fn affected_twice(what: &str) -> SqlError {
    let message = format!("{what} command cannot affect row a second time");
    SqlError::new(SqlState::CardinalityViolation, message)
}

/// Computes a row of RETURNING.
pub(crate) fn give_back(
    returning: &Returning,
    context: &Context<'_>,
    returned: &mut Returned,
) -> Result<()> {
    let row: Result<Vec<Value>> =
        returning.outputs.iter().map(|output| context.value(output)).collect();
    let row = row?;
    context.keep_values(&row)?;
    returned.push(row);
    Ok(())
}

/// Checks the CHECK constraints on the current row of a slot. NULL passes.
pub(crate) fn check(
    handle: &TableHandle,
    checks: &[(usize, Expr)],
    slot: usize,
    context: &Context<'_>,
) -> Result<()> {
    for (number, condition) in checks {
        if condition.truth(&context.frame())? == Some(false) {
            return Err(check_violation(handle.table(), *number, row_in(handle, context, slot)?));
        }
    }
    Ok(())
}

/// Checks WITH CHECK OPTION of views on the current row of a slot. NULL does not pass.
pub(crate) fn check_views(
    handle: &TableHandle,
    checks: &[ViewCheck],
    slot: usize,
    context: &Context<'_>,
) -> Result<()> {
    for check in checks {
        if check.condition.truth(&context.frame())? != Some(true) {
            return Err(hidden(handle, check, slot, context));
        }
    }
    Ok(())
}

#[cold]
fn hidden(handle: &TableHandle, check: &ViewCheck, slot: usize, context: &Context<'_>) -> SqlError {
    let message = format!("new row violates check option for view \"{}\"", check.view);
    let error = SqlError::new(SqlState::WithCheckOptionViolation, message);
    let Ok(row) = row_in(handle, context, slot) else { return error };
    if !check.may_see_row {
        return error;
    }
    error.with_detail(shown_row(handle.table(), row))
}

/// Computes generated columns of the row in a slot.
pub(crate) fn generate(
    handle: &TableHandle,
    generated: &[(usize, Expr)],
    slot: usize,
    context: &mut Context<'_>,
) -> Result<()> {
    if generated.is_empty() {
        return Ok(());
    }
    let mut values = row_in(handle, context, slot)?.to_values()?;
    for (column, value) in generated {
        let value = value.evaluate(&context.frame().without_session())?.into_value();
        if let Some(place) = values.get_mut(*column) {
            *place = value;
        }
    }
    let mut row = Vec::new();
    handle.table().encode_values(&mut row, &values)?;
    set_current_row(context, slot, row)
}

/// Makes an encoded row the current row of a slot.
pub(crate) fn set_current_row(context: &mut Context<'_>, slot: usize, row: Vec<u8>) -> Result<()> {
    let slot = context.slot(slot)?;
    slot.current = Current::Bytes(0, row.len());
    slot.bytes = row;
    Ok(())
}

/// Appends an encoded row of values.
pub(crate) fn append(
    handle: &TableHandle,
    values: &[Expr],
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let frame = context.frame();
    let (start, mut all_stand) = (out.len(), true);
    // Values that are in a slot already need no list.
    handle.table().encode_row(out, |position| {
        match values.get(position).and_then(|value| value.borrow(&frame)) {
            Some(Ok(value)) => value,
            _ => {
                all_stand = false;
                ValueRef::Null
            }
        }
    })?;
    if all_stand {
        return Ok(());
    }
    out.truncate(start);
    let mut datums: Vec<Datum<'_>> = Vec::with_capacity(values.len());
    for value in values {
        datums.push(value.evaluate(&frame)?);
    }
    handle
        .table()
        .encode_row(out, |position| datums.get(position).map_or(ValueRef::Null, Datum::as_ref))
}

impl InsertSource {
    fn new(
        plan: &InsertPlan,
        query: &QueryPlan,
        slot: usize,
        values: &[Expr],
        builder: &OperatorBuilder<'_>,
    ) -> Result<InsertSource> {
        let mut values = values.to_vec();
        // The values read the query's outputs where the query computes them.
        values.iter_mut().for_each(|value| replace(value, slot, &query.outputs));
        let same = match values.first().and_then(Expr::as_column) {
            Some(first) if first.column == 0 => Some(first.slot),
            _ => None,
        };
        let same = same.filter(|slot| !query.root.has_row_ids(*slot));
        let same = same.filter(|slot| {
            let in_order = values
                .iter()
                .enumerate()
                .all(|(column, value)| *value == Expr::column(*slot, column));
            in_order
                && query.root.table_in(*slot).is_some_and(|table| plan.table.has_rows_like(table))
        });
        let origin = |value: &Expr| -> Option<Origin<'_>> {
            let column = value.as_column()?;
            Some((column.slot, query.root.table_in(column.slot)?, column.column))
        };
        let origins: Option<Vec<Origin<'_>>> = values.iter().map(origin).collect();
        let splice = origins.and_then(|origins| Splice::for_table(&plan.table, &origins));
        let reads_target = reads(&query.root, plan);
        let root = builder.operator(&query.root)?;
        Ok(InsertSource { root, values, same, splice, reads_target })
    }

    /// Appends the new row, encoded.
    fn encode(&self, handle: &TableHandle, context: &Context<'_>, out: &mut Vec<u8>) -> Result<()> {
        let row = |slot: usize| context.slots.get(slot).map_or(&[][..], |slot| slot.row());
        if let Some(same) = self.same
            && handle.table().is_current(row(same))
        {
            out.extend_from_slice(row(same));
            return Ok(());
        }
        if let Some(splice) = &self.splice
            && splice.append(row, out)?
        {
            return Ok(());
        }
        append(handle, &self.values, context, out)
    }
}

/// Puts the query's own expressions in place of the columns of its answer.
fn replace(expr: &mut Expr, slot: usize, outputs: &[Expr]) {
    if let Some(column) = expr.as_column().filter(|column| column.slot == slot) {
        if let Some(output) = outputs.get(column.column) {
            *expr = output.clone();
        }
        return;
    }
    expr.each_child_mut(&mut |child| replace(child, slot, outputs));
}

/// Whether the query may come to see what is inserted.
fn reads(node: &PlanNode, plan: &InsertPlan) -> bool {
    // Cascades do not insert into other tables.
    let mut reads = false;
    node.each_access(&mut |access| {
        reads |= access.table.id == plan.table.id && access.table.name == plan.table.name;
    });
    reads
}

/// Returns the current row of a slot, to be read column by column.
pub(crate) fn row_in<'c>(
    handle: &'c TableHandle,
    context: &'c Context<'_>,
    slot: usize,
) -> Result<StoredRow<'c>> {
    let row = context.slots.get(slot).map_or(&[][..], |slot| slot.row());
    StoredRow::new(handle.table(), row)
}
