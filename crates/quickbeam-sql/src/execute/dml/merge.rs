//! MERGE.
//!
//! - MERGE-1: all rows are found, and their clauses chosen, before the first is changed.

use std::sync::Arc;

use quickbeam::{Isolation, invariant};

use super::assignments::Assignments;
use super::insert::{affected_twice, append, check, generate, set_current_row};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::hash::key_table::KeyTable;
use crate::execute::row::lock::claim;
use crate::execute::row::{Context, Operator, OperatorBuilder};
use crate::expression::{Current, Expr};
use crate::plan::{MergeActionPlan, MergePlan};
use crate::table::{TableHandle, TableWriter};

type NumberedExprs = Vec<(usize, Expr)>;

/// The operator of MERGE.
#[derive(Debug)]
pub struct MergeExec {
    handle: Arc<TableHandle>,
    slot: usize,
    new_slot: usize,
    root: Operator,
    clauses: Vec<MergeClauseExec>,
    /// CHECKs and generated columns of inserted rows.
    checks: NumberedExprs,
    generated: NumberedExprs,
    found: Vec<MergeChange>,
    keys: KeyTable,
}

#[derive(Debug)]
struct MergeClauseExec {
    is_matched: bool,
    condition: Option<Expr>,
    action: MergeActionExec,
}

#[derive(Debug)]
enum MergeActionExec {
    Nothing,
    Delete,
    Update(MergeUpdate),
    Insert(Vec<Expr>),
}

#[derive(Debug)]
struct MergeUpdate {
    assignments: Assignments,
    changed: Vec<usize>,
    checks: NumberedExprs,
    generated: NumberedExprs,
}

/// A change that a row of the source asks for: the number of the clause and the rows.
#[derive(Debug)]
struct MergeChange {
    clause: usize,
    key: Vec<u8>,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl MergeExec {
    pub fn new(plan: &MergePlan, builder: &OperatorBuilder<'_>) -> Result<MergeExec> {
        let handle = builder.handles.of(&plan.table)?;
        let clause = |clause: &crate::plan::MergeClausePlan| MergeClauseExec {
            is_matched: clause.is_matched,
            condition: clause.condition.clone(),
            action: match &clause.action {
                MergeActionPlan::Nothing => MergeActionExec::Nothing,
                MergeActionPlan::Delete => MergeActionExec::Delete,
                MergeActionPlan::Insert(values) => MergeActionExec::Insert(values.clone()),
                MergeActionPlan::Update { assignments, checks, generated } => {
                    let assignments =
                        Assignments::new(assignments.clone(), handle.table(), plan.slot);
                    let mut changed = assignments.columns();
                    changed.extend(generated.iter().map(|(column, _)| *column));
                    let (checks, generated) = (checks.clone(), generated.clone());
                    MergeActionExec::Update(MergeUpdate { assignments, changed, checks, generated })
                }
            },
        };
        Ok(MergeExec {
            clauses: plan.clauses.iter().map(clause).collect(),
            handle,
            slot: plan.slot,
            new_slot: plan.new_slot,
            root: builder.operator(&plan.root)?,
            checks: plan.checks.clone(),
            generated: plan.generated.clone(),
            found: Vec::new(),
            keys: KeyTable::default(),
        })
    }

    /// Collects the row counts of the search, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.root.counts(counts);
    }

    /// Executes it. Returns the number of rows changed.
    pub fn run(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
    ) -> Result<u64> {
        let before = statement.changes_made();
        self.root.rewind();
        self.found.clear();
        self.keys.clear();
        while self.root.next(context)? {
            self.find(context)?;
        }
        let made = statement.changes_made() - before;
        invariant!(MERGE_1, made == 0, "{made} changes before all rows are found");
        let found = std::mem::take(&mut self.found);
        for change in &found {
            context.check_cancelled()?;
            self.make(change, context, statement)?;
        }
        let count = found.len() as u64;
        self.found = found;
        Ok(count)
    }

    /// Chooses the clause of the current row, and computes what it changes.
    fn find(&mut self, context: &mut Context<'_>) -> Result<()> {
        let is_there = context.slots.get(self.slot).map(|slot| slot.current);
        let is_matched = is_there != Some(Current::Nothing);
        let mut chosen = None;
        for (number, clause) in self.clauses.iter().enumerate() {
            if clause.is_matched == is_matched && context.holds(clause.condition.as_ref())? {
                chosen = Some((number, clause));
                break;
            }
        }
        let Some((clause, MergeClauseExec { action, .. })) = chosen else { return Ok(()) };
        let (mut key, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
        match action {
            MergeActionExec::Nothing => return Ok(()),
            MergeActionExec::Insert(values) => append(&self.handle, values, context, &mut new)?,
            MergeActionExec::Delete | MergeActionExec::Update(_) => {
                key.extend_from_slice(self.root.row_key(self.slot, context).unwrap_or_default());
                if !self.keys.insert(&key).1 {
                    return Err(affected_twice("MERGE").with_hint(
                        "Ensure that not more than one source row matches any one target row.",
                    ));
                }
                let row = context.slots.get(self.slot).map_or(&[][..], |slot| slot.row());
                old.extend_from_slice(row);
                if let MergeActionExec::Update(update) = action {
                    update.assignments.new_row(&self.handle, self.slot, context, &mut new)?;
                }
            }
        }
        context.keep(key.len() + old.len() + new.len() + 96)?;
        self.found.push(MergeChange { clause, key, old, new });
        Ok(())
    }

    fn make(
        &self,
        change: &MergeChange,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
    ) -> Result<()> {
        let MergeChange { clause, key, old, new } = change;
        match self.clauses.get(*clause).map(|clause| &clause.action) {
            Some(MergeActionExec::Insert(_)) => {
                set_current_row(context, self.new_slot, new.clone())?;
                generate(&self.handle, &self.generated, self.new_slot, context)?;
                check(&self.handle, &self.checks, context)?;
                let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
                statement.insert(&self.handle, row)
            }
            Some(MergeActionExec::Update(update)) => {
                self.check_newest(change, context)?;
                set_current_row(context, self.slot, new.clone())?;
                generate(&self.handle, &update.generated, self.slot, context)?;
                check(&self.handle, &update.checks, context)?;
                let row = context.slots.get(self.slot).map_or(&[][..], |slot| slot.row());
                statement.update(&self.handle, key, old, row, &update.changed).map(|_| ())
            }
            Some(MergeActionExec::Delete) => {
                self.check_newest(change, context)?;
                statement.delete(&self.handle, key, old).map(|_| ())
            }
            Some(MergeActionExec::Nothing) | None => Ok(()),
        }
    }

    /// Under read committed, locks a row and makes sure that it is the one that was found.
    fn check_newest(&self, change: &MergeChange, context: &Context<'_>) -> Result<()> {
        if context.transaction.isolation() != Isolation::ReadCommitted {
            return Ok(());
        }
        let mut row = Vec::new();
        if !claim(&self.handle, context.transaction, &change.key, &mut row)? || row != change.old {
            let message = "a row to be changed was changed by another transaction; begin again";
            return Err(SqlError::new(SqlState::SerializationFailure, message));
        }
        Ok(())
    }
}
