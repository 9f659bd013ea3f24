//! INSERT, UPDATE and DELETE.

use super::date_comparisons::compare_dates_of_change;
use super::simplify::{simplify_change, simplify_insert};
use super::{ChangePlan, InsertPlan, PlanNode, Statistics};
use crate::bind::{Change, Insert, InsertSource, Names, SlotShape, check_of, generated_columns};
use crate::catalog::Table;
use crate::error::Result;
use crate::expression::{Expr, Slots};
use crate::plan::query::select::{Planner, is_single, request_row_keys};
use crate::types::DataType;

/// Returns the CHECKs of a table, over a row in that slot: all, or those that a change of these
/// columns may break.
fn checks(
    names: &dyn Names,
    table: &Table,
    slot: usize,
    changed: Option<&[usize]>,
) -> Result<Vec<(usize, Expr)>> {
    let mut found = Vec::new();
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

/// The plan of an INSERT.
pub fn plan_insert(
    mut insert: Insert,
    slots: &[SlotShape],
    parameters: &[DataType],
    names: &dyn Names,
    statistics: &dyn Statistics,
) -> Result<(InsertPlan, Vec<SlotShape>)> {
    let planner = Planner::new(slots, parameters, statistics);
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
    let plan = InsertPlan {
        table: insert.table,
        new_slot: insert.new_slot,
        old_slot: insert.old_slot,
        rows,
        query,
        checks,
        generated,
        conflict: insert.conflict,
        returning: insert.returning,
    };
    Ok((plan, planner.all_slots()))
}

/// The plan of an UPDATE or DELETE.
pub fn plan_change(
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
    let (mut root, ..) = planner.rows_of(
        Some(&change.from),
        &change.filter,
        &change.subqueries,
        &Slots::default(),
        &[],
        false,
    )?;
    request_row_keys(&mut root, &[change.slot]);
    let single = is_single(&root) && tables.is_empty();
    if !tables.is_empty() {
        root = PlanNode::With { tables, input: Box::new(root) };
    }
    let (table, slot) = (&change.table, change.slot);
    let (checks, generated) = match &change.assignments {
        None => (Vec::new(), Vec::new()),
        Some(assignments) => {
            let mut changed: Vec<usize> = assignments.iter().map(|(column, _)| *column).collect();
            let generated = generated_columns(names, table, slot, Some(&changed))?;
            changed.extend(generated.iter().map(|(column, _)| *column));
            (checks(names, table, slot, Some(&changed))?, generated)
        }
    };
    let plan = ChangePlan {
        table: change.table,
        slot: change.slot,
        root,
        recheck: Expr::all(change.filter),
        assignments: change.assignments,
        checks,
        generated,
        single,
        returning: change.returning,
    };
    Ok((plan, planner.all_slots()))
}
