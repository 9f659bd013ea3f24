//! MERGE.
//!
//! - MERGE-1: all rows are found, and their clauses chosen, before the first is changed.

use std::sync::Arc;

use quickbeam::{Isolation, invariant};

use super::assignments::Assignments;
use super::insert::{affected_twice, append, check, generate, set_current_row};
use crate::catalog::Table;
use crate::catalog::{FiredTriggers, TriggerEvent};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::hash::key_table::KeyTable;
use crate::execute::row::lock::claim;
use crate::execute::row::{Context, Operator, OperatorBuilder};
use crate::expression::{Current, Expr};
use crate::plan::{MergeActionPlan, MergePlan};
use crate::table::{RowDecision, TableHandle, TableWriter};

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
    insert_triggers: Option<Arc<FiredTriggers>>,
    delete_triggers: Option<Arc<FiredTriggers>>,
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
    triggers: Option<Arc<FiredTriggers>>,
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
    /// Returns the table that is changed.
    pub fn table(&self) -> &Arc<Table> {
        self.handle.table()
    }

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
                    let table = handle.table();
                    let triggers = FiredTriggers::of(table, TriggerEvent::Update, Some(&changed));
                    changed.extend(generated.iter().map(|(column, _)| *column));
                    if triggers.as_ref().is_some_and(|it| !it.before_row.is_empty()) {
                        changed = (0..table.columns.len()).collect();
                    }
                    let (checks, generated) = (checks.clone(), generated.clone());
                    MergeActionExec::Update(MergeUpdate {
                        assignments,
                        changed,
                        checks,
                        generated,
                        triggers,
                    })
                }
            },
        };
        let clauses: Vec<MergeClauseExec> = plan.clauses.iter().map(clause).collect();
        let triggers_of = |event, is_of: &dyn Fn(&MergeActionExec) -> bool| {
            let has = clauses.iter().any(|clause| is_of(&clause.action));
            has.then(|| FiredTriggers::of(handle.table(), event, None)).flatten()
        };
        let is_insert = |action: &MergeActionExec| matches!(action, MergeActionExec::Insert(_));
        let is_delete = |action: &MergeActionExec| matches!(action, MergeActionExec::Delete);
        Ok(MergeExec {
            insert_triggers: triggers_of(TriggerEvent::Insert, &is_insert),
            delete_triggers: triggers_of(TriggerEvent::Delete, &is_delete),
            clauses,
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
        for triggers in self.statement_triggers() {
            statement.begin_triggers(Some(&triggers), self.handle.table())?;
        }
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
        let mut count = 0;
        for change in &found {
            context.check_cancelled()?;
            count += u64::from(self.make(change, context, statement)?);
        }
        self.found = found;
        for triggers in self.statement_triggers().into_iter().rev() {
            statement.end_triggers(Some(&triggers), self.handle.table());
        }
        Ok(count)
    }

    /// Returns the triggers of the changes that the clauses make, in the order in which BEFORE
    /// triggers fire.
    fn statement_triggers(&self) -> Vec<Arc<FiredTriggers>> {
        let updates = self.clauses.iter().find_map(|clause| match &clause.action {
            MergeActionExec::Update(update) => update.triggers.clone(),
            _ => None,
        });
        let (inserts, deletes) = (self.insert_triggers.clone(), self.delete_triggers.clone());
        [inserts, updates, deletes].into_iter().flatten().collect()
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

    /// Makes a change and returns whether a trigger has not prevented it.
    fn make(
        &self,
        change: &MergeChange,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
    ) -> Result<bool> {
        let MergeChange { clause, key, old, new } = change;
        match self.clauses.get(*clause).map(|clause| &clause.action) {
            Some(MergeActionExec::Insert(_)) => {
                let triggers = self.insert_triggers.as_ref();
                let row = match statement.before_row(triggers, &self.handle, None, Some(new))? {
                    RowDecision::Skipped => return Ok(false),
                    RowDecision::Changed(row) => row,
                    RowDecision::Same => new.clone(),
                };
                set_current_row(context, self.new_slot, row)?;
                generate(&self.handle, &self.generated, self.new_slot, context)?;
                check(&self.handle, &self.checks, self.new_slot, context)?;
                let row = context.slots.get(self.new_slot).map_or(&[][..], |slot| slot.row());
                statement.insert(&self.handle, row)?;
                statement.after_row(triggers, &self.handle, None, Some(row))?;
            }
            Some(MergeActionExec::Update(update)) => {
                self.check_newest(change, context)?;
                let (triggers, found) = (update.triggers.as_ref(), Some((&key[..], &old[..])));
                let row = match statement.before_row(triggers, &self.handle, found, Some(new))? {
                    RowDecision::Skipped => return Ok(false),
                    RowDecision::Changed(row) => row,
                    RowDecision::Same => new.clone(),
                };
                set_current_row(context, self.slot, row)?;
                generate(&self.handle, &update.generated, self.slot, context)?;
                check(&self.handle, &update.checks, self.slot, context)?;
                let row = context.slots.get(self.slot).map_or(&[][..], |slot| slot.row());
                if statement.update(&self.handle, key, old, row, &update.changed)? {
                    statement.after_row(triggers, &self.handle, Some(old), Some(row))?;
                }
            }
            Some(MergeActionExec::Delete) => {
                self.check_newest(change, context)?;
                let (triggers, found) = (self.delete_triggers.as_ref(), Some((&key[..], &old[..])));
                let decision = statement.before_row(triggers, &self.handle, found, None)?;
                if decision == RowDecision::Skipped {
                    return Ok(false);
                }
                if statement.delete(&self.handle, key, old)? {
                    statement.after_row(triggers, &self.handle, Some(old), None)?;
                }
            }
            Some(MergeActionExec::Nothing) | None => {}
        }
        Ok(true)
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
