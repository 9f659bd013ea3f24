//! Pushdown: conditions on the rows of a query in FROM move into that query.
//!
//! A condition moves below a set operation into all sides. It moves below an aggregation if it
//! reads grouping columns only, else to HAVING. It moves below window functions if it reads columns
//! by which every window is partitioned. It stays above LIMIT, as fewer rows would reach that.
//!
//! - PUSH-1: a condition moves only where it keeps or drops all rows of a group, of a partition or
//!   of a DISTINCT ON together.

use std::sync::Arc;

use quickbeam::invariant;

use super::equalities::infer_equalities;
use crate::bind::{Body, Derived, From, Group, JoinKind, Query, Select};
use crate::expression::{Expr, Slots};

/// Moves conditions of a SELECT into the queries in its FROM.
pub(super) fn push_down(select: &mut Select) {
    // A locked row is checked again by the conditions of the SELECT.
    if select.for_update.is_some() {
        return;
    }
    let Some(from) = &mut select.from else { return };
    if !has_query(from) {
        return;
    }
    let mut known = select.filter.clone();
    note_inner_conditions(from, &mut known);
    let told = known.len();
    infer_equalities(&mut known);
    push_into(from, &mut select.filter);
    // The planner infers the others again. They follow from conditions that stay.
    push_into(from, &mut known.split_off(told));
}

fn has_query(from: &From) -> bool {
    match from {
        From::Table(_) => false,
        From::Query(_) => true,
        From::Join { left, right, .. } => has_query(left) || has_query(right),
    }
}

/// Appends the conditions of inner joins.
fn note_inner_conditions(from: &From, conditions: &mut Vec<Expr>) {
    if let From::Join { kind: JoinKind::Inner, left, right, on } = from {
        conditions.extend(on.iter().cloned());
        note_inner_conditions(left, conditions);
        note_inner_conditions(right, conditions);
    }
}

/// Removes the conditions that move into the queries in `from`.
fn push_into(from: &mut From, conditions: &mut Vec<Expr>) {
    match from {
        From::Table(_) => {}
        From::Query(derived) => conditions.retain(|condition| !accept(derived, condition)),
        From::Join { kind, left, right, on } => match kind {
            JoinKind::Inner => {
                for side in [left, right] {
                    push_into(side, conditions);
                    push_into(side, on);
                }
            }
            JoinKind::Left => {
                push_into(left, conditions);
                push_into(right, on);
            }
            JoinKind::Full => {}
        },
    }
}

/// Moves a condition into a query, if it may. Returns whether it did.
fn accept(derived: &mut Derived, condition: &Expr) -> bool {
    let (read, own) = (condition.slots(), Slots::one(derived.slot));
    let may = read.meets(&own)
        && read.is_within(&own)
        && !condition.is_volatile()
        && takes(&derived.query, derived.slot, condition);
    if may {
        add(Arc::make_mut(&mut derived.query), derived.slot, condition);
    }
    may
}

/// Whether a condition on the rows in `slot` may be checked inside the query that they come from.
fn takes(query: &Query, slot: usize, condition: &Expr) -> bool {
    if query.limit.is_some() || query.offset.is_some() {
        return false;
    }
    match &query.body {
        Body::Select(select) => {
            let mut may = select.for_update.is_none();
            condition.each_column(&mut |column| {
                let output = (column.slot == slot).then(|| select.outputs.get(column.column));
                may &= output.flatten().is_some_and(|output| is_of_whole_rows(select, output));
            });
            may
        }
        Body::Combine(combine) => combine.sides.iter().all(|side| takes(side, slot, condition)),
        Body::Values(_) | Body::Recursive(_) | Body::Stored(_) | Body::Function(_) => false,
    }
}

/// Whether a condition on an output keeps or drops partitions and DISTINCT ON groups as a whole
/// (PUSH-1).
fn is_of_whole_rows(select: &Select, output: &Expr) -> bool {
    let windows = select.windows.iter().flat_map(|windows| &windows.windows);
    let mut partitions = windows.map(|window| &window.partition);
    !output.is_volatile()
        && partitions.all(|partition| partition.contains(output))
        && (select.distinct_on.is_empty() || select.distinct_on.contains(output))
}

/// Adds a condition on the rows in `slot` to the query that they come from.
fn add(query: &mut Query, slot: usize, condition: &Expr) {
    match &mut query.body {
        Body::Select(select) => {
            let mut condition = condition.clone();
            condition.replace_columns(slot, &select.outputs);
            let results = select.windows.as_ref().map(|windows| windows.slot);
            let is_of_rows = || results.is_none_or(|slot| !condition.slots().contains(slot));
            invariant!(PUSH_1, is_of_rows(), "{condition:?} would drop a part of a partition");
            match &mut select.group {
                None => select.filter.push(condition),
                Some(group) if is_of_keys(group, &condition) => {
                    condition.replace_columns(group.slot, &group.keys);
                    select.filter.push(condition);
                }
                Some(group) => group.having.push(condition),
            }
        }
        Body::Combine(combine) => {
            combine.sides.iter_mut().for_each(|side| add(side, slot, condition));
        }
        Body::Values(_) | Body::Recursive(_) | Body::Stored(_) | Body::Function(_) => {}
    }
}

/// Whether a condition on groups reads grouping columns alone, so that it can be checked for the
/// rows before grouping. Without keys there is a group even if there are no rows.
fn is_of_keys(group: &Group, condition: &Expr) -> bool {
    let mut all = group.sets.is_empty() && !group.keys.is_empty();
    condition.each_column(&mut |column| {
        let key = group.keys.get(column.column).filter(|_| column.slot == group.slot);
        all &= key.is_some_and(|key| !key.is_volatile());
    });
    all
}
