//! Functions that return rows beside GROUP BY, aggregates or window functions.
//!
//! They return their rows for each group, so the grouped query becomes an item of FROM. What the
//! expressions above read of it are its outputs: whole expressions, or else columns of its groups
//! and windows.

use std::cell::RefCell;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::bind::query::row_calls::RowCalls;
use crate::bind::{
    Binder, Body, From, Group, OutputColumn, PartMut, Query, Select, Source, Subquery,
    SubqueryKind, WindowCall, WindowKind, Windows,
};
use crate::error::{Result, SqlError};
use crate::expression::{ColumnRef, Expr, Slots};
use crate::types::DataType;

impl Binder<'_> {
    /// Makes the calls of a select list return their rows for each row of a query with GROUP BY,
    /// aggregates or window functions: the query becomes an item of FROM of another one.
    pub(in crate::bind) fn rows_of_groups(
        &mut self,
        mut query: Query,
        mut row_calls: RowCalls,
        first_slot: usize,
    ) -> Result<Query> {
        let position = row_calls.position as usize;
        let refuse = || {
            let what = "this use of a set-returning function with GROUP BY, aggregates or window \
                        functions";
            SqlError::unsupported(what).at(position)
        };
        let Body::Select(select) = &mut query.body else { return Err(refuse()) };
        let reads = |expr: &Expr, wanted: &dyn Fn(usize) -> bool| {
            let mut reads = false;
            expr.each_column(&mut |at| reads |= wanted(at.slot));
            reads
        };
        let answers: Vec<usize> = row_calls.answer_slots().collect();
        let slots = row_calls.slots();
        let is_of_calls = |at: usize| slots.contains(&at);
        let is_own = |at: usize| at >= first_slot && !is_of_calls(at) && !answers.contains(&at);
        let of_groups = self.add_slot("groups".into(), Source::Computed);
        let leaves = Leaves { group: select.group.as_ref(), windows: select.windows.as_ref() };
        let inner: RefCell<Vec<(Expr, OutputColumn)>> = RefCell::default();
        let taken = |expr: &Expr, name: &SmolStr, data_type: DataType| {
            let mut inner = inner.borrow_mut();
            let known = inner.iter().position(|(known, _)| known == expr);
            let at = known.unwrap_or_else(|| {
                inner.push((expr.clone(), OutputColumn::new(name.clone(), data_type)));
                inner.len() - 1
            });
            Expr::column(of_groups, at)
        };
        let leaf = |column: ColumnRef| {
            let data_type = leaves.type_of(column, &select.subqueries, self)?;
            Some(taken(&Expr::Column(column), &VALUE, data_type))
        };
        let mut outputs = Vec::with_capacity(select.outputs.len());
        for (output, column) in select.outputs.iter().zip(&query.columns) {
            let is_of_call = reads(output, &is_of_calls);
            match (is_of_call, reads(output, &is_own)) {
                (true, true) => {
                    let mut output = output.clone();
                    replace_own(&mut output, &is_own, &leaf).ok_or_else(refuse)?;
                    outputs.push(output);
                }
                (true, false) => outputs.push(output.clone()),
                (false, _) => outputs.push(taken(output, &column.name, column.data_type)),
            }
        }
        let types = row_calls.steps.iter().flat_map(|it| &it.types);
        let types = types.flatten().copied().collect::<Vec<_>>();
        for ((argument, _), data_type) in row_calls.arguments_mut().zip(types) {
            match data_type {
                _ if !reads(argument, &is_own) => {}
                Some(data_type) if !reads(argument, &is_of_calls) => {
                    *argument = taken(argument, &VALUE, data_type)
                }
                _ => replace_own(argument, &is_own, &leaf).ok_or_else(refuse)?,
            }
        }
        let above = slots_above(select);
        for query in row_calls.answers_mut() {
            replace_in(query, &|at| above.contains(at), &leaf).ok_or_else(refuse)?;
        }
        for key in &mut query.order {
            let known = select.outputs.iter().position(|output| *output == key.expr);
            match key.output.or(known).and_then(|at| outputs.get(at)) {
                Some(output) => key.expr = output.clone(),
                None => replace_own(&mut key.expr, &is_own, &leaf).ok_or_else(refuse)?,
            }
        }
        for key in &mut select.distinct_on {
            let known = select.outputs.iter().position(|output| output == key);
            *key = known.and_then(|at| outputs.get(at)).cloned().ok_or_else(refuse)?;
        }
        let (inner_outputs, inner_columns): (Vec<Expr>, Vec<OutputColumn>) =
            inner.into_inner().into_iter().unzip();
        if let Some(shape) = self.slots.get_mut(of_groups) {
            shape.source = Source::Query(inner_columns.clone().into());
        }
        let above = Select {
            from: None,
            filter: Vec::new(),
            subqueries: Vec::new(),
            group: None,
            windows: None,
            outputs,
            distinct: std::mem::take(&mut select.distinct),
            distinct_on: std::mem::take(&mut select.distinct_on),
            for_update: None,
        };
        select.outputs = inner_outputs;
        let grouped = Query::plain(
            std::mem::replace(&mut query.body, Body::Select(Box::new(above))),
            inner_columns,
        );
        let from = From::query(of_groups, grouped.into());
        let from = self.with_rows_of(Some(from), row_calls);
        if let Body::Select(select) = &mut query.body {
            select.from = from;
        }
        Ok(query)
    }
}

/// The name of an output that no name stands for.
const VALUE: SmolStr = SmolStr::new_static("value");

/// The groups and windows of a query.
struct Leaves<'q> {
    group: Option<&'q Group>,
    windows: Option<&'q Windows>,
}

impl Leaves<'_> {
    /// Returns the type of a column that expressions above the groups read, if it is known.
    fn type_of(
        &self,
        column: ColumnRef,
        subqueries: &[Subquery],
        binder: &Binder<'_>,
    ) -> Option<DataType> {
        if let Some(windows) = self.windows.filter(|windows| windows.slot == column.slot) {
            let mut functions = windows.windows.iter().flat_map(|window| &window.functions);
            let (_, function) = functions.find(|(number, _)| *number == column.column)?;
            return match &function.call {
                WindowCall::Aggregate(aggregate) => Some(aggregate.data_type),
                WindowCall::Position(
                    WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank,
                    _,
                ) => Some(DataType::BigInt),
                WindowCall::Position(..) => None,
            };
        }
        if let Some(group) = self.group.filter(|group| group.slot == column.slot) {
            return match group.keys.get(column.column) {
                Some(Expr::Cast(_, data_type, _)) => Some(*data_type),
                Some(key) => type_in_from(key.as_column()?, binder),
                None => {
                    let number = column.column - group.keys.len();
                    let aggregate = group.aggregates.get(number);
                    Some(aggregate.map_or(DataType::Integer, |aggregate| aggregate.data_type))
                }
            };
        }
        let of_groups = self.group.map_or(&[][..], |group| &group.subqueries);
        let subquery = subqueries.iter().chain(of_groups).find(|it| it.slot == column.slot);
        match subquery.map(|subquery| (&subquery.kind, subquery)) {
            None => type_in_from(column, binder),
            Some((SubqueryKind::Array(element), _)) => Some(DataType::Array(*element)),
            Some((SubqueryKind::Scalar | SubqueryKind::Row, subquery)) => {
                subquery.query.columns.get(column.column).map(|output| output.data_type)
            }
            Some(_) => Some(DataType::Boolean),
        }
    }
}

/// Returns the type of a column of FROM.
fn type_in_from(column: ColumnRef, binder: &Binder<'_>) -> Option<DataType> {
    match &binder.slots.get(column.slot)?.source {
        Source::Table(table) => table.columns.get(column.column).map(|known| known.data_type),
        Source::Query(columns) => columns.get(column.column).map(|known| known.data_type),
        Source::Computed => None,
    }
}

/// Returns the slots that expressions above the groups read.
fn slots_above(select: &Select) -> Slots {
    let of_groups = select.group.as_ref().map_or(&[][..], |group| &group.subqueries);
    let subqueries = select.subqueries.iter().chain(of_groups);
    let mut above: Slots = subqueries.map(|subquery| subquery.slot).collect();
    match &select.group {
        Some(group) => above.insert(group.slot),
        None => above.extend(&select.from.as_ref().map(From::slots).unwrap_or_default()),
    }
    if let Some(windows) = &select.windows {
        above.insert(windows.slot);
    }
    above
}

/// Replaces columns as [`replace_own`] does, in a query and in those within.
fn replace_in(
    query: &mut Query,
    is_own: &dyn Fn(usize) -> bool,
    new: &dyn Fn(ColumnRef) -> Option<Expr>,
) -> Option<()> {
    let mut done = Some(());
    query.each_part_mut(&mut |part| {
        if done.is_none() {
            return;
        }
        done = match part {
            PartMut::Expr(expr) => replace_own(expr, is_own, new),
            PartMut::Side(side) => replace_in(side, is_own, new),
            PartMut::Subquery(subquery) => {
                let done = replace_in(Arc::make_mut(&mut subquery.query), is_own, new);
                subquery.find_reads();
                done
            }
            PartMut::Derived(derived) => {
                let done = replace_in(Arc::make_mut(&mut derived.query), is_own, new);
                derived.reads = derived.query.reads();
                done
            }
        };
    });
    done
}

/// Replaces the columns of the slots for which `is_own` holds. Returns `None` if one cannot be.
fn replace_own(
    expr: &mut Expr,
    is_own: &dyn Fn(usize) -> bool,
    new: &dyn Fn(ColumnRef) -> Option<Expr>,
) -> Option<()> {
    if let Some(column) = expr.as_column() {
        if is_own(column.slot) {
            *expr = new(column)?;
        }
        return Some(());
    }
    let mut done = Some(());
    expr.each_child_mut(&mut |child| {
        if done.is_some() {
            done = replace_own(child, is_own, new);
        }
    });
    done
}
