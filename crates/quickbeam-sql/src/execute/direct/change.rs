//! UPDATE and DELETE.
//!
//! - CHANGE-1: all rows to be changed are found before the first is changed, unless there is at most one, so that no change
//!   is found again (the Halloween problem).
//! - CHANGE-2: under read committed a row is locked and looked at once more before it is changed: if another transaction has
//!   changed it meanwhile, the conditions and the new values are those of the newest row.

use std::sync::Arc;

use quickbeam::Isolation;

use super::hash::KeyTable;
use super::insert::{Returned, check, give_back, row_in};
use super::lock::claim;
use super::{Builder, Context, Operator};
use crate::bind::Returning;
use crate::catalog::Table;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Arithmetic, Current, Datum, Expr, NumberKind};
use crate::plan::{ChangePlan, Node};
use crate::storage::{Statement, TableHandle};
use crate::types::{Value, ValueRef};

/// An UPDATE or DELETE at work.
#[derive(Debug)]
pub struct Change {
    handle: Arc<TableHandle>,
    slot: usize,
    root: Operator,
    recheck: Option<Expr>,
    assignments: Option<Vec<(usize, Expr)>>,
    changed: Vec<usize>,
    checks: Vec<(usize, Expr)>,
    single: bool,
    /// See [`is_plain`](Change::is_plain).
    is_plain: bool,
    /// Only the table itself is read.
    alone: bool,
    returning: Option<Returning>,
    key: Vec<u8>,
    new: Vec<u8>,
    found: Found,
}

/// Rows to be changed: key, old row and new row of each, one behind the other.
#[derive(Debug, Default)]
struct Found {
    bytes: Vec<u8>,
    ends: Vec<[usize; 3]>,
    keys: KeyTable,
}

impl Change {
    pub fn new(plan: &ChangePlan, builder: &Builder<'_>) -> Result<Change> {
        let assignments = plan.assignments.clone();
        let changed: Vec<usize> = assignments.iter().flatten().map(|(column, _)| *column).collect();
        let handle = builder.handles.of(&plan.table)?;
        let is_plain = plan.single
            && assignments.is_some()
            && plan.checks.is_empty()
            && plan.returning.is_none()
            && !handle.touches_more(&changed);
        Ok(Change {
            handle,
            is_plain,
            slot: plan.slot,
            root: builder.operator(&plan.root)?,
            recheck: plan.recheck.clone(),
            assignments,
            changed,
            checks: plan.checks.clone(),
            single: plan.single,
            alone: matches!(plan.root, Node::Table(_)),
            returning: plan.returning.clone(),
            key: Vec::new(),
            new: Vec::new(),
            found: Found::default(),
        })
    }

    /// Whether no more than one row is changed.
    pub fn single(&self) -> Option<&TableHandle> {
        self.single.then_some(&self.handle)
    }

    /// Whether it puts one row in place of another and does nothing else: see [`run_plain`](Self::run_plain).
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The rows that were found, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.root.counts(counts);
    }

    /// Changes the one row, if there is one; how many. Nothing can be left half done, so there is no statement to take it back.
    pub fn run_plain(&mut self, context: &mut Context<'_>) -> Result<u64> {
        if let Some(count) = self.modify_one(context)? {
            return Ok(count);
        }
        if !self.find_one(context)? {
            return Ok(0);
        }
        if Self::is_read_committed(context) && !self.look_again(context)? {
            return Ok(0);
        }
        let assignments = self.assignments.as_deref().unwrap_or_default();
        new_row(&self.handle, assignments, self.slot, context, &mut self.new)?;
        self.handle.update_alone(context.transaction, &self.key, &self.new, &self.changed)?;
        Ok(1)
    }

    /// Changes the row of a key that the statement gives, in one visit; `None` where there is more to it.
    fn modify_one(&mut self, context: &mut Context<'_>) -> Result<Option<u64>> {
        let Operator::Scan(scan) = &mut self.root else { return Ok(None) };
        let Some(key) = scan.only_key(context)? else { return Ok(None) };
        let (handle, slot) = (&self.handle, self.slot);
        let assignments = self.assignments.as_deref().unwrap_or_default();
        let transaction = context.transaction;
        handle.modify_alone(transaction, key, &self.changed, |old, new| {
            let place = context.slot(slot)?;
            place.bytes.clear();
            place.bytes.extend_from_slice(old);
            place.current = Current::Bytes(0, old.len());
            new_row(handle, assignments, slot, context, new)
        })
    }

    /// Stands on the only row and takes its key; false when there is none.
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

    /// Changes all rows; how many.
    pub fn run(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut Statement<'_>,
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

    /// Locks the row with the key and stands on what it is now; false when it is gone or no longer meant (CHANGE-2).
    fn look_again(&self, context: &mut Context<'_>) -> Result<bool> {
        let mut row = Vec::new();
        if !claim(&self.handle, context.transaction, &self.key, &mut row)? {
            return Ok(false);
        }
        let slot = context.slot(self.slot)?;
        if slot.row() == row {
            return Ok(true);
        }
        if !self.alone {
            let message = "a row to be changed was changed by another transaction; begin again";
            return Err(SqlError::new(SqlState::SerializationFailure, message));
        }
        slot.current = Current::Bytes(0, row.len());
        slot.bytes = row;
        context.holds(self.recheck.as_ref())
    }

    /// Changes the row stood on, whose key is known.
    fn change_one(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut Statement<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        if Self::is_read_committed(context) && !self.look_again(context)? {
            return Ok(false);
        }
        let Some(assignments) = &self.assignments else {
            return self.delete(context, statement, returned);
        };
        new_row(&self.handle, assignments, self.slot, context, &mut self.new)?;
        self.update(context, statement, returned)?;
        Ok(true)
    }

    fn delete(
        &self,
        context: &Context<'_>,
        statement: &mut Statement<'_>,
        returned: &mut Returned,
    ) -> Result<bool> {
        let old = row_in(&self.handle, context, self.slot)?.bytes();
        if !statement.delete(&self.handle, &self.key, old)? {
            return Ok(false);
        }
        if let Some(returning) = &self.returning {
            give_back(returning, context, returned)?;
        }
        Ok(true)
    }

    /// Puts the new row in the place of the one stood on.
    fn update(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut Statement<'_>,
        returned: &mut Returned,
    ) -> Result<()> {
        if self.checks.is_empty() && self.returning.is_none() {
            let old = row_in(&self.handle, context, self.slot)?.bytes();
            return statement.update(&self.handle, &self.key, old, &self.new, &self.changed);
        }
        // CHECK and RETURNING are about the new row, so that is what stands in the slot.
        let slot = context.slot(self.slot)?;
        let old = slot.row().to_vec();
        let (bytes, current) = (std::mem::take(&mut slot.bytes), slot.current);
        slot.bytes.extend_from_slice(&self.new);
        slot.current = Current::Bytes(0, self.new.len());
        check(&self.handle, &self.checks, context)?;
        statement.update(&self.handle, &self.key, &old, &self.new, &self.changed)?;
        if let Some(returning) = &self.returning {
            give_back(returning, context, returned)?;
        }
        let slot = context.slot(self.slot)?;
        (slot.bytes, slot.current) = (bytes, current);
        Ok(())
    }

    /// Finds the rows, each once, and computes the new ones (CHANGE-1).
    fn find_all(&mut self, context: &mut Context<'_>) -> Result<()> {
        let Found { bytes, ends, keys } = &mut self.found;
        bytes.clear();
        ends.clear();
        keys.clear();
        while self.root.next(context)? {
            let key = self.root.row_key(self.slot, context).unwrap_or_default();
            // A row that several rows of FROM fit is changed once.
            if !self.alone && !keys.insert(key).1 {
                continue;
            }
            bytes.extend_from_slice(key);
            let key_end = bytes.len();
            bytes
                .extend_from_slice(context.slots.get(self.slot).map_or(&[][..], |slot| slot.row()));
            let old_end = bytes.len();
            if let Some(assignments) = &self.assignments {
                new_row(&self.handle, assignments, self.slot, context, &mut self.new)?;
                bytes.extend_from_slice(&self.new);
            }
            context.keep(bytes.len() - ends.last().map_or(0, |[_, _, end]| *end) + 24)?;
            ends.push([key_end, old_end, bytes.len()]);
        }
        Ok(())
    }

    fn change_all(
        &mut self,
        found: &Found,
        context: &mut Context<'_>,
        statement: &mut Statement<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        let mut count = 0;
        let mut start = 0;
        for &[key_end, old_end, new_end] in &found.ends {
            let part = |from: usize, to: usize| found.bytes.get(from..to).unwrap_or_default();
            self.key.clear();
            self.key.extend_from_slice(part(start, key_end));
            let slot = context.slot(self.slot)?;
            slot.bytes.clear();
            slot.bytes.extend_from_slice(part(key_end, old_end));
            slot.current = Current::Bytes(0, slot.bytes.len());
            start = new_end;
            if Self::is_read_committed(context) {
                count += u64::from(self.change_one(context, statement, returned)?);
                continue;
            }
            if self.assignments.is_none() {
                count += u64::from(self.delete(context, statement, returned)?);
                continue;
            }
            self.new.clear();
            self.new.extend_from_slice(part(old_end, new_end));
            self.update(context, statement, returned)?;
            count += 1;
            context.check_cancelled()?;
        }
        Ok(count)
    }
}

/// Makes `new` the row in the slot with the assigned columns changed: where it stands if it can be, otherwise encoded anew.
pub(super) fn new_row(
    handle: &TableHandle,
    assignments: &[(usize, Expr)],
    slot: usize,
    context: &Context<'_>,
    new: &mut Vec<u8>,
) -> Result<()> {
    let table = handle.table();
    let frame = context.frame();
    let old = row_in(handle, context, slot)?;
    new.clear();
    new.extend_from_slice(old.bytes());
    for (column, value) in assignments {
        if let Some(sum) = quick_sum(value, table, old.bytes(), slot, frame.parameters)
            && table.set_in_place(new, *column, sum)?
        {
            continue;
        }
        let value = value.evaluate(&frame)?;
        if table.set_in_place(new, *column, value.as_ref())? {
            continue;
        }
        // Columns before this one have their values already: evaluate all and encode the row.
        let mut values: Vec<(usize, Datum<'_>)> = Vec::with_capacity(assignments.len());
        for (column, value) in assignments {
            values.push((*column, value.evaluate(&frame)?));
        }
        let mut olds: Vec<ValueRef<'_>> = Vec::with_capacity(table.columns.len());
        for position in 0..table.columns.len() {
            olds.push(old.get(position)?);
        }
        new.clear();
        return table.encode_row(new, |position| {
            let assigned = values.iter().find(|(column, _)| *column == position);
            assigned.map_or_else(
                || olds.get(position).copied().unwrap_or_default(),
                |(_, value)| value.as_ref(),
            )
        });
    }
    Ok(())
}

/// The sum or difference of an integer of the row and a parameter or constant, if it is as simple as that and nothing is wrong with it: what
/// updates mostly compute, without the way over values of any type.
#[inline]
fn quick_sum(
    value: &Expr,
    table: &Table,
    row: &[u8],
    slot: usize,
    parameters: &[Value],
) -> Option<ValueRef<'static>> {
    let Expr::Arithmetic(operator, kind, pair, _) = value else { return None };
    let [Expr::Column(at), other] = &**pair else { return None };
    if at.slot != slot {
        return None;
    }
    let number = table.number_in(row, at.column)?;
    let other = match other {
        Expr::Parameter(number) => parameters.get(*number)?,
        Expr::Constant(constant) => constant,
        _ => return None,
    };
    let other = other.as_ref().as_i64()?;
    let sum = match operator {
        Arithmetic::Add => number.checked_add(other)?,
        Arithmetic::Subtract => number.checked_sub(other)?,
        _ => return None,
    };
    match kind {
        NumberKind::Big => Some(ValueRef::BigInt(sum)),
        NumberKind::Integer => i32::try_from(sum).ok().map(ValueRef::Integer),
        _ => None,
    }
}
