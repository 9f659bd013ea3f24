//! Changes of views with INSTEAD OF triggers: the rows that the triggers are called with.

use std::sync::Arc;

use super::{InsteadPlan, Statistics};
use crate::bind::{
    Body, Change, From, Insert, InsertSource, OutputColumn, Query, Select, SlotShape, Values,
};
use crate::catalog::{Table, TriggerEvent};
use crate::error::Result;
use crate::expression::Expr;
use crate::plan::query::select::plan_query;
use crate::types::DataType;

/// Returns a query that selects these values.
fn query_of(from: Option<From>, outputs: Vec<Expr>, columns: Vec<OutputColumn>) -> Query {
    let select = Select::plain(from, outputs, Vec::new());
    Query::plain(Body::Select(Box::new(select)), columns)
}

fn columns_of(table: &Table) -> impl Iterator<Item = OutputColumn> + '_ {
    let column =
        |column: &crate::catalog::Column| OutputColumn::new(column.name.clone(), column.data_type);
    table.columns.iter().map(column)
}

/// The plan of an INSERT into a view.
pub(super) fn plan_insert(
    insert: Insert,
    slots: &[SlotShape],
    parameters: &[DataType],
    statistics: &dyn Statistics,
) -> Result<(InsteadPlan, Vec<SlotShape>)> {
    let columns: Vec<OutputColumn> = columns_of(&insert.table).collect();
    let query = match insert.source {
        InsertSource::Rows(rows) => {
            let body = Body::Values(Values { rows, slot: insert.old_slot });
            Query { body, ..query_of(None, Vec::new(), columns) }
        }
        InsertSource::Query { query, slot, values } => {
            query_of(Some(From::query(slot, query)), values, columns)
        }
    };
    let (query, slots) = plan_query(query, slots, parameters, statistics)?;
    let (table, slot, returning) = (insert.table, insert.new_slot, insert.returning);
    Ok((InsteadPlan { table, event: TriggerEvent::Insert, slot, query, returning }, slots))
}

/// The plan of an UPDATE or DELETE of a view.
pub(super) fn plan_change(
    change: Change,
    slots: &[SlotShape],
    parameters: &[DataType],
    statistics: &dyn Statistics,
) -> Result<(InsteadPlan, Vec<SlotShape>)> {
    let (table, slot): (Arc<Table>, usize) = (change.table, change.slot);
    let width = table.columns.len();
    let mut outputs: Vec<Expr> = (0..width).map(|at| Expr::column(slot, at)).collect();
    let mut columns: Vec<OutputColumn> = columns_of(&table).collect();
    let mut event = TriggerEvent::Delete;
    if let Some(assignments) = change.assignments {
        event = TriggerEvent::Update;
        let mut new = outputs.clone();
        for (column, value) in assignments {
            new[column] = value;
        }
        outputs.extend(new);
        columns.extend(columns_of(&table));
    }
    let mut query = query_of(Some(change.from), outputs, columns);
    query.with = change.with;
    if let Body::Select(select) = &mut query.body {
        (select.filter, select.subqueries) = (change.filter, change.subqueries);
    }
    let (query, slots) = plan_query(query, slots, parameters, statistics)?;
    Ok((InsteadPlan { table, event, slot, query, returning: change.returning }, slots))
}
