//! Simplification before planning: constant conditions, unread subqueries and columns, and filters
//! that are never true.
//!
//! As in PostgreSQL, an expression that is left out is not evaluated, so it does not fail.

use std::collections::HashSet;
use std::sync::Arc;

use crate::bind::{
    Aggregate, AggregateKind, Body, Change, Derived, From, Group, Insert, InsertSource, PartMut,
    Query, Returning, Select, Subquery, Window,
};
use crate::expression::{ColumnRef, Expr, Slots};
use crate::types::{DataType, Value};

type ColumnSet = HashSet<ColumnRef>;

/// Simplifies a query and its nested queries.
pub(super) fn simplify_query(query: &mut Query) {
    query.each_part_mut(&mut |part| {
        if let PartMut::Expr(expr) = part {
            expr.simplify();
        }
    });
    if let Body::Select(select) = &mut query.body {
        let order = query.order.iter().map(|key| &key.expr);
        let order: Vec<Expr> = order.chain(&query.limit).chain(&query.offset).cloned().collect();
        simplify_select(select, &order);
    }
    let mut read = ColumnSet::new();
    query.each_expression(&mut |expr| note(expr, &mut read));
    query.each_part_mut(&mut |part| match part {
        PartMut::Expr(_) => {}
        PartMut::Side(side) => simplify_query(side),
        PartMut::Subquery(subquery) => simplify_subquery(subquery),
        PartMut::Derived(derived) => simplify_derived(derived, &read),
    });
}

/// Simplifies an INSERT.
pub(super) fn simplify_insert(insert: &mut Insert) {
    match &mut insert.source {
        InsertSource::Rows(rows) => rows.iter_mut().flatten().for_each(Expr::simplify),
        InsertSource::Query { query, values, .. } => {
            simplify_query(Arc::make_mut(query));
            values.iter_mut().for_each(Expr::simplify);
        }
    }
    if let Some(conflict) = &mut insert.conflict {
        let assignments = conflict.assignments.iter_mut().flatten();
        assignments.for_each(|(_, value)| value.simplify());
        conflict.filter.iter_mut().for_each(Expr::simplify_condition);
    }
    simplify_returning(&mut insert.returning);
}

/// Simplifies an UPDATE or DELETE.
pub(super) fn simplify_change(change: &mut Change) {
    simplify_conditions(&mut change.filter);
    let assignments = change.assignments.iter_mut().flatten();
    assignments.for_each(|(_, value)| value.simplify());
    simplify_returning(&mut change.returning);
    change.from.each_part_mut(&mut |part| {
        if let PartMut::Expr(condition) = part {
            condition.simplify_condition();
        }
    });
    let mut read = Slots::default();
    change.from.each_part(&mut |part| part.note_slots(&mut read));
    let values = change.assignments.iter().flatten().map(|(_, value)| value);
    values.chain(&change.filter).for_each(|expr| read.extend(&expr.slots()));
    keep_read(&mut change.subqueries, &mut read);
    change.subqueries.iter_mut().for_each(simplify_subquery);
    change.from.each_part_mut(&mut |part| {
        if let PartMut::Derived(derived) = part {
            simplify_query(Arc::make_mut(&mut derived.query));
        }
    });
}

fn simplify_returning(returning: &mut Option<Returning>) {
    returning.iter_mut().flat_map(|one| &mut one.outputs).for_each(Expr::simplify);
}

fn simplify_subquery(subquery: &mut Subquery) {
    simplify_query(Arc::make_mut(&mut subquery.query));
    subquery.find_reads();
}

/// Simplifies a query in FROM, of which only the columns in `read` are read.
fn simplify_derived(derived: &mut Derived, read: &ColumnSet) {
    let slot = derived.slot;
    let query = Arc::make_mut(&mut derived.query);
    if let Body::Select(select) = &mut query.body
        && !select.distinct
    {
        for (column, output) in select.outputs.iter_mut().enumerate() {
            let is_key = query.order.iter().any(|key| key.output == Some(column));
            if !is_key && !read.contains(&ColumnRef { slot, column }) && !output.is_volatile() {
                *output = Expr::Constant(Value::Null);
            }
        }
    }
    simplify_query(query);
    derived.reads = derived.query.reads();
}

/// Simplifies a list of conjuncts. A conjunct that is always false replaces the list.
fn simplify_conditions(conditions: &mut Vec<Expr>) {
    let mut parts = Vec::with_capacity(conditions.len());
    for mut condition in conditions.drain(..) {
        condition.simplify_condition();
        condition.into_conjuncts(&mut parts);
    }
    parts.retain(|part| part.as_constant() != Some(&Value::Boolean(true)));
    *conditions = match parts.iter().position(is_false) {
        Some(never) => vec![parts.swap_remove(never)],
        None => parts,
    };
}

fn is_false(expr: &Expr) -> bool {
    expr.as_constant() == Some(&Value::Boolean(false))
}

fn simplify_select(select: &mut Select, order: &[Expr]) {
    simplify_conditions(&mut select.filter);
    if let Some(from) = &mut select.from {
        simplify_from(from);
    }
    if let Some(group) = &mut select.group {
        let windows = select.windows.iter().flat_map(|windows| &windows.windows);
        let above: Vec<Expr> = windows
            .flat_map(Window::exprs)
            .chain(order)
            .chain(&select.distinct_on)
            .cloned()
            .collect();
        simplify_group(group, &select.outputs, &above);
        if group.keys.is_empty() && group.aggregates.is_empty() {
            // There is exactly one group, even for an empty input.
            select.from = None;
            select.filter.clear();
        }
    }
    if select.filter.iter().any(is_false) && select.for_update.is_none() {
        select.from = None;
    }
    let mut read = Slots::default();
    if let Some(from) = &select.from {
        from.each_part(&mut |part| part.note_slots(&mut read));
    }
    let mut own = select.filter.iter().chain(&select.outputs).chain(order).collect::<Vec<_>>();
    own.extend(&select.distinct_on);
    if let Some(group) = &select.group {
        own.extend(group.keys.iter().chain(&group.having));
        own.extend(group.aggregates.iter().flat_map(parts_of));
        group.subqueries.iter().for_each(|subquery| read.extend(&subquery.reads));
    }
    let windows = select.windows.iter().flat_map(|windows| &windows.windows);
    own.extend(windows.flat_map(Window::exprs));
    own.into_iter().for_each(|expr| read.extend(&expr.slots()));
    keep_read(&mut select.subqueries, &mut read);
}

fn simplify_from(from: &mut From) {
    if let From::Join { left, right, on, .. } = from {
        simplify_from(left);
        simplify_from(right);
        simplify_conditions(on);
    }
}

/// Leaves out the subqueries and aggregates of groups that nothing reads.
fn simplify_group(group: &mut Group, outputs: &[Expr], order: &[Expr]) {
    simplify_conditions(&mut group.having);
    let above = || outputs.iter().chain(order);
    let mut read = Slots::default();
    above().chain(&group.having).for_each(|expr| read.extend(&expr.slots()));
    keep_read(&mut group.subqueries, &mut read);
    let mut columns = ColumnSet::new();
    above().chain(&group.having).for_each(|expr| note(expr, &mut columns));
    for subquery in &group.subqueries {
        subquery.kind.value().into_iter().for_each(|value| note(value, &mut columns));
        subquery.query.each_expression(&mut |expr| note(expr, &mut columns));
    }
    let (slot, keys) = (group.slot, group.keys.len());
    for (number, aggregate) in group.aggregates.iter_mut().enumerate() {
        if !columns.contains(&ColumnRef { slot, column: keys + number }) {
            // It keeps its column, and cannot fail.
            *aggregate = Aggregate {
                kind: AggregateKind::Count,
                argument: None,
                distinct: false,
                filter: None,
                data_type: DataType::BigInt,
            };
        }
        aggregate.filter.iter_mut().for_each(Expr::simplify_condition);
    }
}

fn parts_of(aggregate: &Aggregate) -> impl Iterator<Item = &Expr> {
    aggregate.argument.iter().chain(&aggregate.filter)
}

/// Keeps the subqueries whose answers are read, by `read` or by one another.
fn keep_read(subqueries: &mut Vec<Subquery>, read: &mut Slots) {
    for number in (0..subqueries.len()).rev() {
        match subqueries.get(number) {
            Some(subquery) if read.contains(subquery.slot) => read.extend(&subquery.reads),
            _ => drop(subqueries.remove(number)),
        }
    }
}

fn note(expr: &Expr, columns: &mut ColumnSet) {
    expr.each_column(&mut |column| {
        columns.insert(column);
    });
}
