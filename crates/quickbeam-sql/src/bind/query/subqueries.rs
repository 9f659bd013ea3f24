//! Subqueries in expressions.

use std::sync::Arc;

use sqlparser::ast::{self, BinaryOperator, Expr as Ast};

use crate::bind::expression::operators::comparison;
use crate::bind::expression::pattern_quantifiers::{QuantifiedPattern, pattern_symbol};
use crate::bind::{Binder, Body, Query, Scope, Source, Subquery, SubqueryKind, Typed, Values};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Comparison, Expr};
use crate::parse::quantified;
use crate::types::{CollateStep, DataType, Value};

/// How many rows of a subquery must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum Quantifier {
    /// One of them.
    Any,
    /// All of them.
    All,
}

impl Binder<'_> {
    pub(in crate::bind) fn subquery(
        &mut self,
        query: &ast::Query,
        scope: &Scope,
        kind: impl FnOnce(&mut Self, &mut Query) -> Result<SubqueryKind>,
    ) -> Result<(usize, Arc<Query>)> {
        let before = self.recursive_references();
        let position = self.position(query) as usize;
        let mut query = self.nested(|binder| binder.query(query, Some(Arc::new(scope.clone()))))?;
        let references = before..self.recursive_references();
        self.check_no_recursion(references, "a subquery", position)?;
        let kind = kind(self, &mut query)?;
        let query = Arc::new(query);
        let slot = self.add_slot("subquery".into(), Source::Computed);
        let subquery = Subquery::new(slot, query.clone(), kind);
        match self.levels.last_mut() {
            Some(level) => level.subqueries.push(subquery),
            None => return Err(SqlError::unsupported("a subquery here")),
        }
        Ok((slot, query))
    }

    pub(in crate::bind) fn exists(
        &mut self,
        query: &ast::Query,
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = self.position(query);
        let (slot, _) = self.subquery(query, scope, |_, query| {
            keep_existence(query);
            Ok(SubqueryKind::Exists)
        })?;
        let is = Expr::column(slot, 0);
        Ok(Typed::condition(if negated { Expr::Not(Box::new(is)) } else { is }, position))
    }

    pub(in crate::bind) fn scalar_subquery(
        &mut self,
        query: &ast::Query,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = self.position(query);
        let (slot, query) = self.subquery(query, scope, |_, _| Ok(SubqueryKind::Scalar))?;
        let message = "subquery must return only one column";
        let data_type = one_column(&query, message, position)?;
        self.set_collations(slot, &query.columns);
        Ok(Typed::new(Expr::column(slot, 0), data_type, position))
    }

    pub(in crate::bind) fn in_subquery(
        &mut self,
        value: &Ast,
        query: &ast::Query,
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let is = self.any_of(value, Comparison::Equal, query, Quantifier::Any, scope)?;
        let position = is.position;
        Ok(Typed::condition(if negated { Expr::Not(Box::new(is.expr)) } else { is.expr }, position))
    }

    pub(in crate::bind) fn quantified(
        &mut self,
        value: &Ast,
        op: &BinaryOperator,
        right: &Ast,
        quantifier: Quantifier,
        scope: &Scope,
    ) -> Result<Typed> {
        let any = quantifier == Quantifier::Any;
        if let Some((symbol, operand)) = quantified(right) {
            let test = super::syntax::quantified_test(value, symbol, operand, quantifier)?;
            return self.expression(&test, scope);
        }
        match (comparison(op), right) {
            (Some(comparison), Ast::Subquery(query)) => {
                self.any_of(value, comparison, query, quantifier, scope)
            }
            (Some(comparison), _) => self.any_element(value, comparison, right, any, scope),
            (None, _) => match pattern_symbol(op) {
                Some(symbol) => {
                    let quantifier = if any { "any" } else { "all" };
                    let test =
                        QuantifiedPattern { text: value, symbol, patterns: right, quantifier };
                    self.quantified_pattern(&test, scope)
                }
                None => Err(SqlError::unsupported(format!("ANY or ALL with the operator {op}"))),
            },
        }
    }

    fn any_of(
        &mut self,
        value: &Ast,
        comparison: Comparison,
        query: &ast::Query,
        quantifier: Quantifier,
        scope: &Scope,
    ) -> Result<Typed> {
        let any = quantifier == Quantifier::Any;
        let position = self.position(value);
        let value = self.expression(value, scope)?;
        let (slot, _) = self.subquery(query, scope, |binder, query| {
            let data_type = one_column(query, "subquery has too many columns", position)?;
            let element = ColumnRef { slot: binder.slots.len(), column: 0 };
            if let [output] = &query.columns[..] {
                let collation = output.collation;
                binder.set_collation(element, collation);
            }
            let column = Typed::new(Expr::Column(element), data_type, position);
            let symbol = comparison.symbol();
            let [value, made] = binder.comparable(value, column, symbol, position)?;
            deliver(query, &made, element);
            Ok(match any {
                true => SubqueryKind::Any(value, comparison),
                false => SubqueryKind::All(value, comparison),
            })
        })?;
        Ok(Typed::condition(Expr::column(slot, 0), position))
    }
}

/// Drops the select list, DISTINCT, ORDER BY and GROUP BY without aggregates of a query in EXISTS,
/// and the values of its only row. They do not decide whether it has rows, and PostgreSQL never
/// evaluates them there.
fn keep_existence(query: &mut Query) {
    if !query.keeps_first_row() || query.with_ties {
        return;
    }
    let select = match &mut query.body {
        Body::Select(select) => select,
        Body::Values(Values { rows, .. }) => {
            if let [row] = &mut rows[..] {
                row.fill(Expr::Constant(Value::Null));
                query.order.clear();
            }
            return;
        }
        _ => return,
    };
    let has_aggregates = select.group.as_ref().is_some_and(|group| {
        let is_of_keys = !group.keys.is_empty() && group.sets.is_empty();
        !is_of_keys || !group.aggregates.is_empty() || !group.having.is_empty()
    });
    if !has_aggregates && select.windows.is_none() && select.for_update.is_none() {
        select.group = None;
        select.outputs.fill(Expr::Constant(Value::Null));
        select.distinct = false;
        select.distinct_on.clear();
        query.order.clear();
    }
}

/// Makes the query return the expression `made` instead of its only column. `made` reads that
/// column at `element`.
fn deliver(query: &mut Query, made: &Expr, element: ColumnRef) {
    if made.as_column().is_some() {
        return;
    }
    let data_type = match made {
        Expr::Cast(_, to, _) => *to,
        Expr::Collate(_, CollateStep::Key(own)) => DataType::Encoded(own.key_type()),
        _ => DataType::Text,
    };
    query.convert_outputs(&[data_type], &mut |output, _, _| {
        let mut filled = made.clone();
        fill(&mut filled, element, output);
        *output = filled;
    });
}

fn fill(expr: &mut Expr, element: ColumnRef, with: &Expr) {
    if expr.as_column() == Some(element) {
        *expr = with.clone();
    } else {
        expr.each_child_mut(&mut |child| fill(child, element, with));
    }
}

/// The type of a subquery's only column.
fn one_column(query: &Query, message: &str, position: u32) -> Result<DataType> {
    match &query.columns[..] {
        [column] => Ok(column.data_type),
        _ => Err(SqlError::new(SqlState::SyntaxError, message).at(position as usize)),
    }
}
