//! UNION, INTERSECT, EXCEPT: the types of both sides' columns become one.

use std::sync::Arc;

use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

use super::operators::trimmed;
use super::{Binder, Body, Combine, CombineKind, OutputColumn, Query, Scope, Source, types};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, Value};

impl Binder<'_> {
    pub(super) fn combination(
        &mut self,
        left: &SetExpr,
        op: SetOperator,
        quantifier: SetQuantifier,
        right_side: &SetExpr,
        order: &[ast::OrderByExpr],
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        let kind = match op {
            SetOperator::Union => CombineKind::Union,
            SetOperator::Intersect => CombineKind::Intersect,
            SetOperator::Except | SetOperator::Minus => CombineKind::Except,
        };
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return Err(SqlError::unsupported("set operations by name")),
        };
        let [left, right] = [left, right_side].map(|side| {
            self.unknown.clear();
            self.defers = true;
            let bound = self.nested(|binder| match side {
                SetExpr::Query(query) => binder.query(query, outer.clone()),
                side => binder.query_body(&bare(side.clone()), outer.clone()),
            });
            self.defers = false;
            bound.map(|query| (query, std::mem::take(&mut self.unknown)))
        });
        let ((left, left_unknown), (right, right_unknown)) = (left?, right?);
        if left.columns.len() != right.columns.len() {
            let message = "each side of a set operation must have the same number of columns";
            let position = self.place_of_output(right_side, 0);
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        let mut columns = Vec::with_capacity(left.columns.len());
        let is_unknown = |list: &[bool], column: usize| list.get(column) == Some(&true);
        for (number, (a, b)) in left.columns.iter().zip(&right.columns).enumerate() {
            // NULL and literals in quotes take the type of the other side.
            let sides = [&left_unknown, &right_unknown].map(|list| is_unknown(list, number));
            let common = match sides {
                [true, false] => Some(types::beside_literal(b.data_type)),
                [false, true] => Some(types::beside_literal(a.data_type)),
                _ => types::common(a.data_type, b.data_type),
            };
            self.unknown.push(sides == [true, true]);
            let data_type = common.ok_or_else(|| {
                let message = format!(
                    "types {} and {} of a set operation cannot be matched",
                    a.data_type, b.data_type
                );
                let position = self.place_of_output(right_side, number);
                SqlError::new(SqlState::DatatypeMismatch, message).at(position)
            })?;
            columns.push(OutputColumn { name: a.name.clone(), data_type });
        }
        let sides = [left, right].map(|mut side| {
            convert(&mut side, &columns, &mut self.parameters);
            side
        });
        let slot = self.add_slot("combined".into(), Source::Computed);
        let order = self.order_of_outputs(order, &columns, slot)?;
        let combine = Combine { kind, all, sides, slot };
        Ok(Query {
            body: Body::Combine(Box::new(combine)),
            columns,
            order,
            limit: None,
            offset: None,
        })
    }
}

impl Binder<'_> {
    /// Where an output of a query stands, if it is written out; else where the query's outputs begin.
    pub(super) fn place_of_output(&self, query: &SetExpr, number: usize) -> usize {
        let place = match query {
            SetExpr::Select(select) => {
                let item = select.projection.get(number).or(select.projection.first());
                item.map(|item| self.position(item))
            }
            SetExpr::Values(values) => {
                let row = values.rows.first().map(|row| &row.content);
                let value = row.and_then(|row| row.get(number).or(row.first()));
                value.map(|value| self.position(value))
            }
            SetExpr::Query(query) => return self.place_of_output(&query.body, number),
            SetExpr::SetOperation { left, .. } => return self.place_of_output(left, number),
            other => Some(self.position(other)),
        };
        place.unwrap_or(0) as usize
    }
}

/// Makes the query deliver its outputs as those types. A parameter that has none yet takes it.
fn convert(query: &mut Query, columns: &[OutputColumn], parameters: &mut [Option<DataType>]) {
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
    let mut cast = |expr: &mut Expr, from: DataType, to: DataType| {
        let from = match expr {
            Expr::Parameter(number) => parameters
                .get_mut(*number)
                .map_or(from, |known| *known.get_or_insert(to.unconstrained())),
            _ => from,
        };
        let is_char = |data_type| matches!(data_type, DataType::Char(_));
        if !from.is_same_kind(to) || is_char(to) && from != to {
            let inner = std::mem::replace(expr, Expr::Constant(Value::Null));
            let inner = trimmed(inner, Some(from), to);
            *expr = Expr::Cast(Box::new(inner), to, crate::expression::Place(0));
        }
    };
    query.convert_outputs(&types, &mut cast);
}

/// A side of a set operation as a query of its own.
fn bare(body: SetExpr) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
