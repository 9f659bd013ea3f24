//! Queries: WITH, LIMIT and OFFSET around SELECT, VALUES and set operations.

pub(super) mod common_tables;
pub(super) mod expand;
pub(super) mod implied_names;
pub(super) mod order_and_group_keys;
pub(super) mod relation_places;
pub(super) mod row_calls;
pub(super) mod row_functions_in_list;
mod row_locks;
pub(super) mod select;
pub(super) mod set_operations;
pub(super) mod subqueries;
pub(super) mod syntax;

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{self, Expr as Ast, OrderByKind, SetExpr};
use syntax::outer_clauses::limits_of;

use super::{
    Binder, Body, Combine, CombineKind, From, OutputColumn, Query, Scope, Select, Source, Subquery,
    Typed, Values, fold,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::parse::limit_with_ties;
use crate::types::{DataType, Value};

#[cold]
fn ties_without_order() -> SqlError {
    let message = "WITH TIES cannot be specified without ORDER BY clause";
    SqlError::new(SqlState::SyntaxError, message)
}

impl Binder<'_> {
    /// A query that is a statement.
    pub fn query_statement(&mut self, query: &ast::Query) -> Result<Query> {
        self.query(query, None)
    }

    /// Binds a query. `outer` is the scope of the enclosing query.
    pub(super) fn query(&mut self, query: &ast::Query, outer: Option<Arc<Scope>>) -> Result<Query> {
        let query = &*self.with_clauses_inside(query)?;
        let has_limit = limits_of(query)?.0.is_some();
        let is_plain = query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        if query.fetch.is_some() && has_limit || !is_plain {
            return Err(SqlError::unsupported("this form of a query"));
        }
        let known = self.ctes.len();
        let defers = std::mem::take(&mut self.defers);
        let with = match &query.with {
            Some(with) => self.common_tables(with, outer.clone())?,
            None => Vec::new(),
        };
        self.defers = defers;
        let bound = match Self::with_computed_limits(query)? {
            Some(joined) => self.query_body(&joined, outer),
            None => self.query_body(query, outer),
        };
        self.ctes.truncate(known);
        let mut bound = bound?;
        if !with.is_empty() {
            let inner = std::mem::replace(&mut bound.with, with);
            bound.with.extend(inner);
        }
        Ok(bound)
    }

    pub(super) fn query_body(
        &mut self,
        query: &ast::Query,
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        let around = Scope { outer: outer.clone(), ..Scope::default() };
        let order: &[ast::OrderByExpr] = match &query.order_by {
            None => &[],
            Some(order) => match &order.kind {
                OrderByKind::Expressions(list) => list,
                OrderByKind::All(_) => return Err(SqlError::unsupported("ORDER BY ALL")),
            },
        };
        if let (Some(lock), false) =
            (query.locks.first(), matches!(*query.body, SetExpr::Select(_)))
        {
            return Err(row_locks::refused_lock(lock, &query.body));
        }
        let mut bound = match &*query.body {
            SetExpr::Select(select) => self.select(select, order, &query.locks, outer)?,
            SetExpr::Query(inner) => self.nested(|binder| binder.query(inner, outer))?,
            SetExpr::Values(values) => {
                check_values(values)?;
                self.defers = false;
                let bound = self.values(&values.rows, order, outer)?;
                self.unknown.clear();
                bound
            }
            body @ SetExpr::SetOperation { .. } => self.combination(body, order, outer)?,
            other => return Err(SqlError::unsupported(format!("{other} as a query"))),
        };
        let (mut limit, offset) = limits_of(query)?;
        if let Some(number) = limit.and_then(limit_with_ties) {
            if order.is_empty() {
                return Err(ties_without_order());
            }
            (limit, bound.with_ties) = (Some(number), true);
        }
        let limit = match (&query.fetch, limit) {
            (Some(fetch), _) if fetch.percent => {
                return Err(SqlError::unsupported("FETCH with PERCENT"));
            }
            (Some(fetch), _) if fetch.with_ties && order.is_empty() => {
                return Err(ties_without_order());
            }
            (Some(fetch), _) => {
                bound.with_ties = fetch.with_ties;
                fetch.quantity.as_ref()
            }
            (None, limit) => limit,
        };
        if let Some(limit) = limit {
            let limit = self.count_of_rows(limit, &bound, &around)?;
            bound.limit = Some(self.coerce(limit, DataType::BigInt)?);
        } else if query.fetch.is_some() {
            bound.limit = Some(Expr::Constant(Value::BigInt(1)));
        }
        if let Some(offset) = offset {
            let offset = self.count_of_rows(offset, &bound, &around)?;
            bound.offset = Some(self.coerce(offset, DataType::BigInt)?);
        }
        Ok(bound)
    }

    /// Binds the row count of LIMIT or OFFSET. It may read outer rows, which `around` names, but no
    /// columns of the query itself.
    fn count_of_rows(&mut self, ast: &Ast, query: &Query, around: &Scope) -> Result<Typed> {
        if let (Ast::Identifier(name), Body::Select(select)) = (ast, &query.body)
            && self.has_column(select.from.as_ref(), &fold(name))
        {
            let message = "argument of LIMIT must not contain variables";
            let error = SqlError::new(SqlState::InvalidColumnReference, message);
            return Err(error.at(self.position(ast) as usize));
        }
        self.expression(ast, around)
    }

    fn has_column(&self, from: Option<&From>, name: &str) -> bool {
        let slots = from.map(From::slots).unwrap_or_default();
        let shapes = slots.iter().filter_map(|slot| self.slots.get(slot));
        shapes.into_iter().any(|shape| match &shape.source {
            Source::Table(table) => table.column(name).is_some(),
            Source::Query(columns) => columns.iter().any(|column| column.name == name),
            Source::Computed => false,
        })
    }

    fn values(
        &mut self,
        rows: &[ast::Parens<Vec<Ast>>],
        order: &[ast::OrderByExpr],
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        let scope = Scope { outer: outer.clone(), ..Scope::default() };
        let width = rows.first().map_or(0, |row| row.content.len());
        let mut columns: Vec<Vec<Typed>> = (0..width).map(|_| Vec::new()).collect();
        let mut asked: Vec<Vec<Subquery>> = Vec::new();
        for row in rows {
            if row.content.len() != width {
                let message = "VALUES lists must all be the same length";
                let position = row.content.first().map_or(0, |value| self.position(value));
                let error = SqlError::new(SqlState::SyntaxError, message);
                return Err(error.at(position as usize));
            }
            let (values, level) = self.level(|binder| {
                let values =
                    row.content.iter().map(|value| binder.output_expression(value, &scope));
                values.collect::<Result<Vec<Typed>>>()
            })?;
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            asked.push(level.subqueries);
        }
        let mut table: Vec<Vec<Expr>> = rows.iter().map(|_| Vec::with_capacity(width)).collect();
        let mut outputs = Vec::with_capacity(width);
        for (number, column) in columns.into_iter().enumerate() {
            let collation = self.common_collation(&column)?.as_column();
            let (exprs, data_type) = self.unify(column, "VALUES")?;
            for (row, expr) in table.iter_mut().zip(exprs) {
                row.push(expr);
            }
            outputs.push(OutputColumn {
                name: SmolStr::new(format!("column{}", number + 1)),
                data_type,
                collation,
            });
        }
        let slot = self.add_slot("values".into(), Source::Computed);
        let order = self.order_of_values(order, &outputs, slot, outer)?;
        let body = match asked.iter().all(Vec::is_empty) {
            true => Body::Values(Values { rows: table, slot }),
            false => rows_with_subqueries(table, asked, &outputs, slot),
        };
        Ok(Query {
            with: Vec::new(),
            body,
            columns: outputs,
            order,
            limit: None,
            offset: None,
            with_ties: false,
        })
    }
}

/// Makes rows whose values ask subqueries: a UNION ALL of SELECTs without FROM.
pub(super) fn rows_with_subqueries(
    rows: Vec<Vec<Expr>>,
    asked: Vec<Vec<Subquery>>,
    columns: &[OutputColumn],
    slot: usize,
) -> Body {
    let side = |(outputs, subqueries): (Vec<Expr>, Vec<Subquery>)| {
        Query::plain(
            Body::Select(Box::new(Select::plain(None, outputs, subqueries))),
            columns.to_vec(),
        )
    };
    let sides = rows.into_iter().zip(asked).map(side).collect();
    Body::Combine(Box::new(Combine { kind: CombineKind::Union, all: true, sides, slot }))
}

/// Checks that rows are written as in PostgreSQL: after VALUES, without ROW.
pub(in crate::bind) fn check_values(values: &ast::Values) -> Result<()> {
    match values.explicit_row || values.value_keyword {
        true => Err(SqlError::unsupported("this form of VALUES")),
        false => Ok(()),
    }
}
