//! INSERT, UPDATE and DELETE.

use std::sync::Arc;

use super::instead_of;
use super::rewrite::date_comparisons::compare_dates_of_change;
use super::rewrite::simplify::{simplify_change, simplify_insert, simplify_merge};
use super::{
    AccessPath, Action, ChangePlan, ChangingWithPlan, InsertPlan, MergeActionPlan, MergeClausePlan,
    MergePlan, PlanNode, Statistics, WithPartPlan,
};
use crate::bind::{
    BoundStatement, Change, ChangingWith, Insert, InsertSource, MergeAction, MergeStatement, Names,
    QueryPart, SlotShape, Subquery, check_of, column_domain_check, generated_columns,
};
use crate::catalog::Table;
use crate::error::Result;
use crate::expression::{Expr, Slots};
use crate::plan::cost::{MemberUse, RowGoal};
use crate::plan::query::select::{PlannedRows, Planner, is_single, plan_query, request_row_keys};
use crate::types::{DataType, Value};

/// Returns the CHECKs of a table, over a row in that slot: all, or those that a change of these
/// columns may break.
fn checks(
    names: &dyn Names,
    table: &Table,
    slot: usize,
    changed: Option<&[usize]>,
) -> Result<Vec<(usize, Expr)>> {
    let mut found = Vec::new();
    // The number is that of no CHECK: the condition of a domain is never false.
    for position in 0..table.columns.len() {
        let is_changed = changed.is_none_or(|changed| changed.contains(&position));
        if is_changed && let Some(check) = column_domain_check(names, table, position, slot)? {
            found.push((usize::MAX, check));
        }
    }
    for (number, check) in table.checks.iter().enumerate() {
        let condition = check_of(names, table, &check.expression, slot)?;
        let mut touched = changed.is_none();
        condition.each_column(&mut |column| {
            touched |= changed.is_some_and(|changed| changed.contains(&column.column));
        });
        if touched {
            found.push((number, condition));
        }
    }
    Ok(found)
}

/// Plans a statement. Returns the plan, and the slots of the statement with those that the planner
/// added.
pub fn plan_statement(
    statement: BoundStatement,
    slots: &[SlotShape],
    parameters: &[DataType],
    names: &dyn Names,
    statistics: &dyn Statistics,
) -> Result<(Action, Vec<SlotShape>)> {
    let (mut action, slots) = plan_part(statement, slots, parameters, names, statistics)?;
    if let Action::Insert(insert) = &action
        && conflict_reads_changes(insert)
    {
        // All rows are found before the first one is stored.
        let plan = ChangingWithPlan { parts: Vec::new(), main: action };
        action = Action::ChangingWith(Box::new(plan));
    }
    Ok((action, slots))
}

/// Whether a subquery of ON CONFLICT would come to see rows that the statement has stored.
fn conflict_reads_changes(insert: &InsertPlan) -> bool {
    let mut reads_target = false;
    if let Some(answers) = &insert.conflict_answers {
        answers.each_access(&mut |access| reads_target |= access.table.id == insert.table.id);
    }
    reads_target && (insert.rows.len() != 1 || insert.query.is_some())
}

/// Plans a statement, or a part of a statement whose WITH changes rows.
fn plan_part(
    statement: BoundStatement,
    slots: &[SlotShape],
    parameters: &[DataType],
    names: &dyn Names,
    statistics: &dyn Statistics,
) -> Result<(Action, Vec<SlotShape>)> {
    match statement {
        BoundStatement::Query(query) => {
            let (plan, slots) = plan_query(query, slots, parameters, statistics)?;
            Ok((Action::Query(plan), slots))
        }
        BoundStatement::Insert(insert) if insert.table.is_view() => {
            let planned = instead_of::plan_insert(insert, slots, parameters, statistics)?;
            Ok((Action::Instead(Box::new(planned.0)), planned.1))
        }
        BoundStatement::Change(change) if change.table.is_view() => {
            let planned = instead_of::plan_change(change, slots, parameters, statistics)?;
            Ok((Action::Instead(Box::new(planned.0)), planned.1))
        }
        BoundStatement::Insert(insert) => {
            let (plan, slots) = plan_insert(insert, slots, parameters, names, statistics)?;
            Ok((Action::Insert(plan), slots))
        }
        BoundStatement::Change(change) => {
            let (plan, slots) = plan_change(change, slots, parameters, names, statistics)?;
            Ok((Action::Change(plan), slots))
        }
        BoundStatement::Merge(merge) => {
            let (plan, slots) = plan_merge(merge, slots, parameters, names, statistics)?;
            Ok((Action::Merge(Box::new(plan)), slots))
        }
        BoundStatement::ChangingWith(ChangingWith { parts, main }) => {
            let mut slots = slots.to_vec();
            let mut planned = Vec::with_capacity(parts.len());
            for part in parts {
                let action;
                (action, slots) = plan_part(part.statement, &slots, parameters, names, statistics)?;
                planned.push(WithPartPlan { slot: part.slot, action, is_read: part.is_read });
            }
            let (main, slots) = plan_part(*main, &slots, parameters, names, statistics)?;
            let plan = ChangingWithPlan { parts: planned, main };
            Ok((Action::ChangingWith(Box::new(plan)), slots))
        }
    }
}

/// The plan of an INSERT.
pub fn plan_insert(
    mut insert: Insert,
    slots: &[SlotShape],
    parameters: &[DataType],
    names: &dyn Names,
    statistics: &dyn Statistics,
) -> Result<(InsertPlan, Vec<SlotShape>)> {
    let planner = Planner::new(slots, parameters, statistics);
    if let InsertSource::Query { query, .. } = &mut insert.source {
        planner.pull_up(Arc::make_mut(query));
    }
    simplify_insert(&mut insert);
    let checks = checks(names, &insert.table, insert.new_slot, None)?;
    let generated = generated_columns(names, &insert.table, insert.new_slot, None)?;
    let (rows, query) = match insert.source {
        InsertSource::Rows(rows) => (rows, None),
        InsertSource::Query { query, slot, values } => {
            let plan = planner.query(&query, &Slots::default())?;
            // The query's outputs are read where the query computes them.
            (Vec::new(), Some((plan, slot, values)))
        }
    };
    let conflict_answers = match &insert.conflict {
        Some(conflict) if !conflict.subqueries.is_empty() => {
            let outside: Slots = [insert.new_slot, insert.old_slot].into_iter().collect();
            let assigned = conflict.assignments.iter().flatten().map(|(_, value)| value);
            let subqueries: Vec<&Subquery> = conflict.subqueries.iter().collect();
            planner.needs.note(&subqueries, assigned.chain(&conflict.filter));
            let PlannedRows { node, .. } = planner.rows_of(
                None,
                &[],
                &conflict.subqueries,
                &outside,
                &[],
                RowGoal::All,
                MemberUse::Checked,
            )?;
            Some(Box::new(node))
        }
        _ => None,
    };
    let plan = InsertPlan {
        conflict_answers,
        table: insert.table,
        new_slot: insert.new_slot,
        old_slot: insert.old_slot,
        rows,
        query,
        checks,
        generated,
        conflict: insert.conflict,
        view_checks: insert.view_checks,
        returning: insert.returning,
        xmax_slot: insert.xmax_slot,
    };
    Ok((plan, planner.all_slots()))
}

/// The plan of an UPDATE or DELETE.
fn plan_change(
    mut change: Change,
    slots: &[SlotShape],
    parameters: &[DataType],
    names: &dyn Names,
    statistics: &dyn Statistics,
) -> Result<(ChangePlan, Vec<SlotShape>)> {
    simplify_change(&mut change);
    compare_dates_of_change(&mut change, slots);
    let planner = Planner::new(slots, parameters, statistics);
    let tables = planner.stored_tables(&change.with, &Slots::default())?;
    note_needs_of_change(&planner, &change);
    let PlannedRows { node: mut root, .. } = planner.rows_of(
        Some(&change.from),
        &change.filter,
        &change.subqueries,
        &Slots::default(),
        &[],
        RowGoal::All,
        MemberUse::Tested,
    )?;
    if let (Some(cursor), PlanNode::Table(access)) = (change.cursor, &mut root) {
        access.path = AccessPath::Cursor(cursor);
    }
    request_row_keys(&mut root, &[change.slot]);
    let single = is_single(&root) && tables.is_empty();
    if !tables.is_empty() {
        root = PlanNode::With { tables, input: Box::new(root) };
    }
    // A row that is read with answers of subqueries is not checked once more.
    let answers = Subquery::answers(&change.subqueries);
    let mut recheck = change.filter;
    recheck.retain(|condition| !condition.slots().meets(&answers));
    let (table, slot) = (&change.table, change.slot);
    let (checks, generated) = match &change.assignments {
        None => (Vec::new(), Vec::new()),
        Some(assignments) => checks_of_update(names, table, slot, assignments)?,
    };
    let plan = ChangePlan {
        table: change.table,
        slot: change.slot,
        root,
        recheck: Expr::all(recheck),
        assignments: change.assignments,
        checks,
        generated,
        single,
        view_checks: change.view_checks,
        returning: change.returning,
    };
    Ok((plan, planner.all_slots()))
}

/// Notes when the answers of the subqueries of an UPDATE or DELETE are needed.
fn note_needs_of_change(planner: &Planner<'_>, change: &Change) {
    if change.subqueries.is_empty() {
        return;
    }
    let subqueries: Vec<&Subquery> = change.subqueries.iter().collect();
    let assigned = change.assignments.iter().flatten().map(|(_, value)| value);
    let mut expressions: Vec<&Expr> = change.filter.iter().chain(assigned).collect();
    change.from.each_part(&mut |part| {
        if let QueryPart::Expr(condition) = part {
            expressions.push(condition);
        }
    });
    // Those that are read after the change need the answer for every row.
    let mut later = Slots::default();
    let returned = change.returning.iter().flat_map(|returning| &returning.outputs);
    let checked = change.view_checks.iter().map(|check| &check.condition);
    returned.chain(checked).for_each(|expr| later.extend(&expr.slots()));
    let later: Vec<Expr> = later.iter().map(|slot| Expr::column(slot, 0)).collect();
    planner.needs.note(&subqueries, expressions.into_iter().chain(&later));
}

/// Notes when the answers of the subqueries of a MERGE are needed: those of a clause if those
/// before it do not apply and its own condition is true.
fn note_needs_of_merge(planner: &Planner<'_>, merge: &MergeStatement) {
    if merge.subqueries.is_empty() {
        return;
    }
    let subqueries: Vec<&Subquery> = merge.subqueries.iter().collect();
    let mut expressions: Vec<Expr> = merge.filter.clone();
    merge.from.each_part(&mut |part| {
        if let QueryPart::Expr(condition) = part {
            expressions.push(condition.clone());
        }
    });
    let always = Expr::Constant(Value::Boolean(true));
    for is_matched in [true, false] {
        let clauses = merge.clauses.iter().filter(|clause| clause.is_matched == is_matched);
        let branches = clauses.map(|clause| {
            let values: Vec<Expr> = match &clause.action {
                MergeAction::Nothing | MergeAction::Delete => Vec::new(),
                MergeAction::Insert(values) => values.clone(),
                MergeAction::Update(assignments) => {
                    assignments.iter().map(|(_, value)| value.clone()).collect()
                }
            };
            let condition = clause.condition.clone().unwrap_or_else(|| always.clone());
            // The list is no condition and never evaluated.
            (condition, Expr::InList(Box::new(always.clone()), values, false))
        });
        expressions.push(Expr::Case(branches.collect(), Box::new(always.clone())));
    }
    planner.needs.note(&subqueries, expressions.iter());
}

/// CHECKs and generated columns, with their numbers.
type RowExprs = (Vec<(usize, Expr)>, Vec<(usize, Expr)>);

/// Returns the CHECKs that assignments may break, and the generated columns that they change.
fn checks_of_update(
    names: &dyn Names,
    table: &Table,
    slot: usize,
    assignments: &[(usize, Expr)],
) -> Result<RowExprs> {
    if table.changes_before_update() {
        let generated = generated_columns(names, table, slot, None)?;
        return Ok((checks(names, table, slot, None)?, generated));
    }
    let mut changed: Vec<usize> = assignments.iter().map(|(column, _)| *column).collect();
    let generated = generated_columns(names, table, slot, Some(&changed))?;
    changed.extend(generated.iter().map(|(column, _)| *column));
    Ok((checks(names, table, slot, Some(&changed))?, generated))
}

/// The plan of MERGE.
fn plan_merge(
    mut merge: MergeStatement,
    slots: &[SlotShape],
    parameters: &[DataType],
    names: &dyn Names,
    statistics: &dyn Statistics,
) -> Result<(MergePlan, Vec<SlotShape>)> {
    simplify_merge(&mut merge);
    let planner = Planner::new(slots, parameters, statistics);
    let outside = Slots::default();
    let tables = planner.stored_tables(&merge.with, &outside)?;
    note_needs_of_merge(&planner, &merge);
    let (from, filter) = (Some(&merge.from), &merge.filter[..]);
    let subqueries = &merge.subqueries;
    let PlannedRows { node: mut root, .. } = planner.rows_of(
        from,
        filter,
        subqueries,
        &outside,
        &[],
        RowGoal::All,
        MemberUse::Checked,
    )?;
    request_row_keys(&mut root, &[merge.slot]);
    if !tables.is_empty() {
        root = PlanNode::With { tables, input: Box::new(root) };
    }
    let table = &merge.table;
    let mut clauses = Vec::with_capacity(merge.clauses.len());
    for clause in merge.clauses {
        let action = match clause.action {
            MergeAction::Nothing => MergeActionPlan::Nothing,
            MergeAction::Delete => MergeActionPlan::Delete,
            MergeAction::Insert(values) => MergeActionPlan::Insert(values),
            MergeAction::Update(assignments) => {
                let (checks, generated) = checks_of_update(names, table, merge.slot, &assignments)?;
                MergeActionPlan::Update { assignments, checks, generated }
            }
        };
        let (is_matched, condition) = (clause.is_matched, clause.condition);
        clauses.push(MergeClausePlan { is_matched, condition, action });
    }
    let plan = MergePlan {
        checks: checks(names, table, merge.new_slot, None)?,
        generated: generated_columns(names, table, merge.new_slot, None)?,
        table: merge.table,
        slot: merge.slot,
        new_slot: merge.new_slot,
        root,
        clauses,
    };
    Ok((plan, planner.all_slots()))
}
