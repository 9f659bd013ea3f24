//! What the query of a view computes of a row of the table that it selects from.
//!
//! A view can be changed as PostgreSQL has it: it selects from one table or such a view, without
//! grouping, DISTINCT, set operations, WITH, LIMIT or functions that return rows.

use sqlparser::ast::{self, SetExpr, TableFactor};

use crate::bind::{Body, From, Query, Subquery};
use crate::expression::Expr;

/// What a query computes of a row of a table.
pub(super) struct RowOfView {
    /// The slot of the row.
    pub slot: usize,
    /// The columns of the view.
    pub outputs: Vec<Expr>,
    /// The conditions of each view, in the order of `layers`.
    pub conditions: Vec<Vec<Expr>>,
    /// The subqueries of the columns and conditions.
    pub subqueries: Vec<Subquery>,
    /// For each view and each of its columns the position of the column that it is.
    pub places: Vec<Vec<Option<usize>>>,
}

/// Returns the relation that a view selects from, or why the view is no view of one relation.
pub(super) fn selected_relation(
    query: &ast::Query,
) -> std::result::Result<&ast::ObjectName, &'static str> {
    let SetExpr::Select(select) = &*query.body else {
        return Err(match &*query.body {
            SetExpr::SetOperation { .. } => "Views containing UNION, INTERSECT, or EXCEPT",
            _ => "Views that do not select from a single table or view",
        });
    };
    let has_groups = !matches!(&select.group_by,
        ast::GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
    if select.distinct.is_some() {
        return Err("Views containing DISTINCT");
    }
    if has_groups {
        return Err("Views containing GROUP BY");
    }
    if select.having.is_some() {
        return Err("Views containing HAVING");
    }
    if query.with.is_some() {
        return Err("Views containing WITH");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err("Views containing LIMIT or OFFSET");
    }
    match &select.from[..] {
        [ast::TableWithJoins { relation: TableFactor::Table { name, args: None, .. }, joins }]
            if joins.is_empty() =>
        {
            Ok(name)
        }
        _ => Err("Views that do not select from a single table or view"),
    }
}

/// Returns what the query of a view computes of a row of its table, or why it cannot be changed.
/// `depth` counts the views around it, as the number with the reason does.
pub(super) fn row_of(
    query: &Query,
    depth: usize,
) -> std::result::Result<RowOfView, (usize, &'static str)> {
    const OTHER: &str = "Views that do not select from a single table or view";
    let Body::Select(select) = &query.body else { return Err((depth, OTHER)) };
    if select.group.is_some() {
        return Err((depth, "Views that return aggregate functions"));
    }
    if select.windows.is_some() {
        return Err((depth, "Views that return window functions"));
    }
    let place_in = |slot: usize| {
        let place = move |output: &Expr| {
            output.as_column().filter(|column| column.slot == slot).map(|column| column.column)
        };
        select.outputs.iter().map(place).collect::<Vec<_>>()
    };
    match &select.from {
        Some(From::Table(slot)) => Ok(RowOfView {
            slot: *slot,
            outputs: select.outputs.clone(),
            conditions: vec![select.filter.clone()],
            subqueries: select.subqueries.clone(),
            places: vec![place_in(*slot)],
        }),
        Some(From::Query(derived)) => {
            let below = row_of(&derived.query, depth + 1)?;
            let (mut outputs, mut filter) = (select.outputs.clone(), select.filter.clone());
            let exprs = outputs.iter_mut().chain(&mut filter);
            exprs.for_each(|expr| expr.replace_columns(derived.slot, &below.outputs));
            let mut subqueries = below.subqueries;
            for subquery in &select.subqueries {
                let mut subquery = subquery.clone();
                subquery.replace_outer_columns(derived.slot, &below.outputs);
                subqueries.push(subquery);
            }
            let conditions = std::iter::once(filter).chain(below.conditions).collect();
            let places = std::iter::once(place_in(derived.slot)).chain(below.places).collect();
            Ok(RowOfView { slot: below.slot, outputs, conditions, subqueries, places })
        }
        Some(From::Join { .. }) => Err((depth, "Views that return set-returning functions")),
        None => Err((depth, OTHER)),
    }
}
