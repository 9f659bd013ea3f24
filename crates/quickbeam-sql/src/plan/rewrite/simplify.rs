//! Simplification before planning: constant conditions, unread subqueries and columns, and filters
//! that are never true.
//!
//! As in PostgreSQL, an expression that is left out is not evaluated, so it does not fail.

use std::collections::HashSet;
use std::sync::Arc;

use super::push_down::push_down;
use crate::bind::{
    Aggregate, AggregateKind, Body, Change, CombineKind, Derived, From, Group, Insert,
    InsertSource, MergeAction, MergeStatement, PartMut, Query, Returning, Select, Subquery,
    SubqueryKind, Window,
};
use crate::expression::{ColumnRef, Comparison, Expr, Slots};
use crate::types::{DataType, TextSettings, Value};

type ColumnSet = HashSet<ColumnRef>;

/// Simplifies a query and its nested queries.
pub fn simplify_query(query: &mut Query) {
    query.each_part_mut(&mut |part| {
        if let PartMut::Expr(expr) = part {
            expr.simplify();
        }
    });
    if let Body::Select(select) = &mut query.body {
        let order = query.order.iter().map(|key| &key.expr);
        let order: Vec<Expr> = order.chain(&query.limit).chain(&query.offset).cloned().collect();
        simplify_select(select, &order);
        push_down(select);
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
pub fn simplify_insert(insert: &mut Insert) {
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
pub fn simplify_change(change: &mut Change) {
    change.with.iter_mut().for_each(|common| simplify_query(&mut common.query));
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
    values.for_each(|expr| read.extend(&expr.slots()));
    exists_for_rows(&change.filter, &mut change.subqueries, &read);
    change.filter.iter().for_each(|expr| read.extend(&expr.slots()));
    keep_read(&mut change.subqueries, &mut read);
    change.subqueries.iter_mut().for_each(simplify_subquery);
    change.from.each_part_mut(&mut |part| {
        if let PartMut::Derived(derived) = part {
            simplify_query(Arc::make_mut(&mut derived.query));
        }
    });
}

/// Simplifies a MERGE.
pub fn simplify_merge(merge: &mut MergeStatement) {
    merge.with.iter_mut().for_each(|common| simplify_query(&mut common.query));
    simplify_conditions(&mut merge.filter);
    for clause in &mut merge.clauses {
        clause.condition.iter_mut().for_each(Expr::simplify_condition);
        match &mut clause.action {
            MergeAction::Nothing | MergeAction::Delete => {}
            MergeAction::Update(assignments) => {
                assignments.iter_mut().for_each(|(_, value)| value.simplify());
            }
            MergeAction::Insert(values) => values.iter_mut().for_each(Expr::simplify),
        }
    }
    merge.subqueries.iter_mut().for_each(simplify_subquery);
    merge.from.each_part_mut(&mut |part| match part {
        PartMut::Derived(derived) => simplify_query(Arc::make_mut(&mut derived.query)),
        PartMut::Expr(condition) => condition.simplify_condition(),
        PartMut::Side(_) | PartMut::Subquery(_) => {}
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
    forget_unread(query, &|column| read.contains(&ColumnRef { slot, column }));
    simplify_query(query);
    derived.reads = derived.query.reads();
}

/// Replaces the outputs of a query that are not read by NULL, so that neither they nor the columns
/// that they read are computed. The rows of a set operation differ by all columns unless it is
/// UNION ALL.
fn forget_unread(query: &mut Query, is_read: &dyn Fn(usize) -> bool) {
    let order = &query.order;
    match &mut query.body {
        Body::Select(select) if !select.distinct => {
            for (column, output) in select.outputs.iter_mut().enumerate() {
                let is_key = order.iter().any(|key| key.output == Some(column));
                if !is_key && !is_read(column) && !output.is_volatile() {
                    *output = Expr::Constant(Value::Null);
                }
            }
        }
        Body::Combine(combine) if combine.all && combine.kind == CombineKind::Union => {
            let slot = combine.slot;
            let mut keys = ColumnSet::new();
            order.iter().for_each(|key| note(&key.expr, &mut keys));
            let is_read =
                |column: usize| is_read(column) || keys.contains(&ColumnRef { slot, column });
            combine.sides.iter_mut().for_each(|side| forget_unread(side, &is_read));
        }
        _ => {}
    }
}

/// Simplifies a list of conjuncts. A conjunct that is always false replaces the list.
fn simplify_conditions(conditions: &mut Vec<Expr>) {
    let mut parts = Vec::with_capacity(conditions.len());
    for mut condition in conditions.drain(..) {
        condition.simplify_condition();
        factor_out(&mut condition);
        condition.into_conjuncts(&mut parts);
    }
    parts.retain(|part| part.as_constant() != Some(&Value::Boolean(true)));
    *conditions = match parts.iter().position(is_false) {
        Some(never) => vec![parts.swap_remove(never)],
        None => parts,
    };
}

/// Takes the conditions that all branches of an OR have in common out of it, so that they can be
/// join keys and bounds: `(a AND b) OR (a AND c)` becomes `a AND (b OR c)`.
fn factor_out(condition: &mut Expr) {
    let list = match condition {
        Expr::And(list) => return list.iter_mut().for_each(factor_out),
        Expr::Or(list) => list,
        _ => return,
    };
    let conjuncts = |branch: &Expr| -> Vec<Expr> {
        let mut parts = Vec::new();
        branch.clone().into_conjuncts(&mut parts);
        parts
    };
    let mut branches: Vec<Vec<Expr>> = list.iter().map(conjuncts).collect();
    let Some((first, others)) = branches.split_first() else { return };
    let is_common =
        |part: &&Expr| !part.is_volatile() && others.iter().all(|branch| branch.contains(part));
    let mut common: Vec<Expr> = first.iter().filter(is_common).cloned().collect();
    common.dedup();
    if common.is_empty() {
        return;
    }
    let left = branches.iter_mut().map(|branch| {
        branch.retain(|part| !common.contains(part));
        Expr::all(std::mem::take(branch))
    });
    // A branch with nothing else is true where the common conditions are.
    let left: Option<Vec<Expr>> = left.collect();
    common.extend(left.map(Expr::Or));
    *condition = Expr::And(common);
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
    let mut own = select.outputs.iter().chain(order).collect::<Vec<_>>();
    own.extend(&select.distinct_on);
    if let Some(group) = &select.group {
        own.extend(group.keys.iter().chain(&group.having));
        own.extend(group.aggregates.iter().flat_map(parts_of));
        group.subqueries.iter().for_each(|subquery| read.extend(&subquery.reads));
    }
    let windows = select.windows.iter().flat_map(|windows| &windows.windows);
    own.extend(windows.flat_map(Window::exprs));
    own.into_iter().for_each(|expr| read.extend(&expr.slots()));
    exists_for_rows(&select.filter, &mut select.subqueries, &read);
    select.filter.iter().for_each(|expr| read.extend(&expr.slots()));
    keep_read(&mut select.subqueries, &mut read);
}

/// Turns `TRUE = ANY (SELECT condition …)` into EXISTS with the condition in WHERE. A row IN a
/// subquery has that form. The answer must be read by `filter` alone, where unknown is as good as
/// false, and not by what reads the slots `elsewhere`. EXISTS can be hashed by the condition's
/// equalities.
fn exists_for_rows(filter: &[Expr], subqueries: &mut [Subquery], elsewhere: &Slots) {
    for number in 0..subqueries.len() {
        let Some(subquery) = subqueries.get(number) else { continue };
        let SubqueryKind::Any(Expr::Constant(Value::Boolean(true)), Comparison::Equal) =
            &subquery.kind
        else {
            continue;
        };
        let slot = subquery.slot;
        let is_read = elsewhere.contains(slot)
            || subqueries.iter().any(|other| other.reads.contains(slot))
            || !filter.iter().all(|part| reads_as_condition(part, slot));
        if is_read {
            continue;
        }
        let Some(subquery) = subqueries.get_mut(number) else { continue };
        let query = Arc::make_mut(&mut subquery.query);
        if let Body::Select(inner) = &mut query.body
            && inner.group.is_none()
            && inner.windows.is_none()
            && query.limit.is_none()
            && query.offset.is_none()
            && let [condition] = &inner.outputs[..]
        {
            condition.clone().into_conjuncts(&mut inner.filter);
            subquery.kind = SubqueryKind::Exists;
            subquery.find_reads();
        }
    }
}

/// Whether a condition reads the answer in a slot only as an operand of AND and OR, where unknown
/// makes it as little true as false does.
fn reads_as_condition(condition: &Expr, slot: usize) -> bool {
    match condition {
        Expr::And(list) | Expr::Or(list) => list.iter().all(|it| reads_as_condition(it, slot)),
        Expr::Column(at) if at.slot == slot => true,
        other => !other.slots().contains(slot),
    }
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
                second: None,
                order: Vec::new(),
                distinct: false,
                filter: None,
                data_type: DataType::BigInt,
                settings: TextSettings::DEFAULT,
            };
        }
        aggregate.filter.iter_mut().for_each(Expr::simplify_condition);
    }
}

fn parts_of(aggregate: &Aggregate) -> impl Iterator<Item = &Expr> {
    aggregate.expressions()
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
