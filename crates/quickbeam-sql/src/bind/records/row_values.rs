//! Row values: comparisons of rows, and subqueries that return rows.
//!
//! A comparison of rows becomes comparisons of their values, with the NULLs of PostgreSQL: pairs
//! are compared from the left, and the first pair that is not equal decides.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as Ast, FunctionArguments};

use crate::bind::expression::Negation;
use crate::bind::expression::operators::comparison;
use crate::bind::query::subqueries::Quantifier;
use crate::bind::{
    Binder, Body, From, OutputColumn, Query, Scope, ScopeRelation, Select, SlotShape, Source,
    Subquery, SubqueryKind, Typed,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Comparison, Expr};
use crate::types::{DataType, Value};

/// Returns the values of a row constructor.
pub(in crate::bind) fn row_of(ast: &Ast) -> Option<Vec<&Ast>> {
    match ast {
        Ast::Nested(inner) => row_of(inner),
        Ast::Tuple(list) => Some(list.iter().collect()),
        Ast::Function(call)
            if call.over.is_none() && call.name.to_string().eq_ignore_ascii_case("row") =>
        {
            let FunctionArguments::List(list) = &call.args else { return None };
            let values = list.args.iter().filter_map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            });
            let values: Vec<&Ast> = values.collect();
            (values.len() == list.args.len()).then_some(values)
        }
        _ => None,
    }
}

#[cold]
fn unequal(position: u32) -> SqlError {
    let message = "unequal number of entries in row expressions";
    SqlError::new(SqlState::SyntaxError, message).at(position as usize)
}

impl Binder<'_> {
    /// Binds an operation on rows. Returns `None` if the expression is another one.
    pub(in crate::bind) fn row_operation(
        &mut self,
        ast: &Ast,
        scope: &Scope,
    ) -> Option<Result<Typed>> {
        match ast {
            Ast::BinaryOp { left, op, right } => {
                let comparison = comparison(op)?;
                let row = row_of(left)?;
                if let Ast::Subquery(query) = &**right {
                    return Some(self.row_and_subquery(comparison, &row, query, scope));
                }
                let other = row_of(right)?;
                Some(self.compare_written(comparison, &row, &other, scope))
            }
            Ast::IsDistinctFrom(left, right) | Ast::IsNotDistinctFrom(left, right) => {
                let (left, right) = (row_of(left)?, row_of(right)?);
                let negated = matches!(ast, Ast::IsNotDistinctFrom(..));
                Some(self.distinct_rows(&left, &right, negated, scope))
            }
            Ast::IsNull(inner) | Ast::IsNotNull(inner) => {
                let row = row_of(inner)?;
                Some(self.is_null_row(&row, matches!(ast, Ast::IsNotNull(_)), scope))
            }
            Ast::InList { expr, list, negated } => {
                let row = row_of(expr)?;
                Some(self.row_in_list(&row, list, *negated, scope))
            }
            Ast::InSubquery { expr, subquery, negated } => {
                let row = row_of(expr)?;
                Some(self.row_in_subquery(&row, subquery, Negation::from(*negated), scope))
            }
            Ast::AnyOp { left, compare_op, right, .. } => {
                let (row, Ast::Subquery(query)) = (row_of(left)?, &**right) else { return None };
                let test = (comparison(compare_op)?, Quantifier::Any);
                Some(self.row_and_rows(test, &row, query, scope))
            }
            Ast::AllOp { left, compare_op, right } => {
                let (row, Ast::Subquery(query)) = (row_of(left)?, &**right) else { return None };
                let test = (comparison(compare_op)?, Quantifier::All);
                Some(self.row_and_rows(test, &row, query, scope))
            }
            _ => None,
        }
    }

    fn bind_row(&mut self, row: &[&Ast], scope: &Scope) -> Result<Vec<Typed>> {
        row.iter().map(|value| self.expression(value, scope)).collect()
    }

    fn compare_written(
        &mut self,
        comparison: Comparison,
        left: &[&Ast],
        right: &[&Ast],
        scope: &Scope,
    ) -> Result<Typed> {
        let position = left.first().map_or(0, |first| self.position(*first));
        let (left, right) = (self.bind_row(left, scope)?, self.bind_row(right, scope)?);
        self.compare_rows(comparison, left, right, position)
    }

    /// Compares two rows.
    fn compare_rows(
        &mut self,
        comparison: Comparison,
        left: Vec<Typed>,
        right: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        if left.len() != right.len() {
            return Err(unequal(position));
        }
        if left.is_empty() {
            let message = "cannot compare rows of zero length";
            return Err(SqlError::unsupported(message).at(position as usize));
        }
        let pairs: Vec<(Typed, Typed)> = left.into_iter().zip(right).collect();
        let mut each = |comparison: Comparison, (a, b): &(Typed, Typed)| -> Result<Expr> {
            Ok(self.compare(comparison, a.clone(), b.clone(), a.position)?.expr)
        };
        let strict = match comparison {
            Comparison::Equal => {
                let all: Result<Vec<Expr>> =
                    pairs.iter().map(|pair| each(comparison, pair)).collect();
                return Ok(Typed::condition(Expr::And(all?), position));
            }
            Comparison::NotEqual => {
                let all: Result<Vec<Expr>> =
                    pairs.iter().map(|pair| each(comparison, pair)).collect();
                return Ok(Typed::condition(Expr::Or(all?), position));
            }
            Comparison::Less | Comparison::LessOrEqual => Comparison::Less,
            Comparison::Greater | Comparison::GreaterOrEqual => Comparison::Greater,
        };
        let or_equal = match strict {
            Comparison::Less => Comparison::LessOrEqual,
            _ => Comparison::GreaterOrEqual,
        };
        let Some((last, others)) = pairs.split_last() else { return Err(unequal(position)) };
        let mut whole = each(comparison, last)?;
        for pair in others.iter().rev() {
            let equal = Expr::And(vec![each(Comparison::Equal, pair)?, whole]);
            let either = Expr::Or(vec![each(strict, pair)?, equal]);
            // The first part follows from the second. It gives an index its bound.
            whole = Expr::And(vec![each(or_equal, pair)?, either]);
        }
        Ok(Typed::condition(whole, position))
    }

    fn distinct_rows(
        &mut self,
        left: &[&Ast],
        right: &[&Ast],
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = left.first().map_or(0, |first| self.position(*first));
        let (left, right) = (self.bind_row(left, scope)?, self.bind_row(right, scope)?);
        if left.len() != right.len() {
            return Err(unequal(position));
        }
        let mut all = Vec::with_capacity(left.len());
        for (a, b) in left.into_iter().zip(right) {
            let pair = self.comparable(a, b, "IS DISTINCT FROM", position)?;
            all.push(Expr::Distinct(Box::new(pair), negated));
        }
        let whole = if negated { Expr::And(all) } else { Expr::Or(all) };
        Ok(Typed::condition(whole, position))
    }

    fn is_null_row(&mut self, row: &[&Ast], negated: bool, scope: &Scope) -> Result<Typed> {
        let position = row.first().map_or(0, |first| self.position(*first));
        let mut all = Vec::with_capacity(row.len());
        for value in self.bind_row(row, scope)? {
            let value = self.settle(value)?;
            all.push(Expr::IsNull(Box::new(value.expr), negated));
        }
        Ok(Typed::condition(Expr::And(all), position))
    }

    fn row_in_list(
        &mut self,
        row: &[&Ast],
        list: &[Ast],
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = row.first().map_or(0, |first| self.position(*first));
        let row = self.bind_row(row, scope)?;
        let mut any = Vec::with_capacity(list.len());
        for member in list {
            let Some(other) = row_of(member) else { return Err(unequal(self.position(member))) };
            let other = self.bind_row(&other, scope)?;
            any.push(self.compare_rows(Comparison::Equal, row.clone(), other, position)?.expr);
        }
        let is = Expr::Or(any);
        let is = if negated { Expr::Not(Box::new(is)) } else { is };
        Ok(Typed::condition(is, position))
    }

    fn check_width(&self, query: &Query, width: usize, position: u32) -> Result<()> {
        let what = match query.columns.len().cmp(&width) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => "subquery has too few columns",
            std::cmp::Ordering::Greater => "subquery has too many columns",
        };
        Err(SqlError::new(SqlState::SyntaxError, what).at(position as usize))
    }

    /// Binds `row IN (SELECT …)`, or NOT IN.
    fn row_in_subquery(
        &mut self,
        row: &[&Ast],
        query: &ast::Query,
        negation: Negation,
        scope: &Scope,
    ) -> Result<Typed> {
        let test = match negation {
            Negation::Plain => (Comparison::Equal, Quantifier::Any),
            Negation::Not => (Comparison::NotEqual, Quantifier::All),
        };
        self.row_and_rows(test, row, query, scope)
    }

    /// Binds a comparison of a row with the rows of a subquery: `row < ALL (SELECT …)` becomes
    /// `TRUE = ALL (SELECT row < (…) FROM (…))`.
    fn row_and_rows(
        &mut self,
        (comparison, quantifier): (Comparison, Quantifier),
        row: &[&Ast],
        query: &ast::Query,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = row.first().map_or(0, |first| self.position(*first));
        let row = self.bind_row(row, scope)?;
        let inner = self.nested(|binder| binder.query(query, Some(Arc::new(scope.clone()))))?;
        self.check_width(&inner, row.len(), position)?;
        let slot = self.add_slot("subquery".into(), Source::Query(inner.columns.clone().into()));
        let members = columns_of(slot, &inner.columns, position);
        // NOT IN is a negated IN, which a hash table answers.
        let negated = (comparison, quantifier) == (Comparison::NotEqual, Quantifier::All);
        let (comparison, quantifier) = match negated {
            true => (Comparison::Equal, Quantifier::Any),
            false => (comparison, quantifier),
        };
        // Comparisons without NULLs are never unknown, so that NOT IN is NOT EXISTS.
        let is_certain = negated
            && self.never_null(&inner).all(|it| it)
            && row.iter().all(|value| has_value(value, scope, &self.slots));
        let equal = self.compare_rows(comparison, row, members, position)?.expr;
        let mut select =
            Select::plain(Some(From::query(slot, Arc::new(inner))), vec![equal], Vec::new());
        if is_certain {
            select.filter = select.outputs.drain(..).collect();
            select.outputs.push(Expr::Constant(Value::Null));
        }
        let compared = Query::plain(
            Body::Select(Box::new(select)),
            vec![OutputColumn::new("equal", DataType::Boolean)],
        );
        let value = Expr::Constant(Value::Boolean(true));
        let kind = match quantifier {
            _ if is_certain => SubqueryKind::Exists,
            Quantifier::Any => SubqueryKind::Any(value, Comparison::Equal),
            Quantifier::All => SubqueryKind::All(value, Comparison::Equal),
        };
        let slot = self.add_subquery(compared, kind)?;
        let is = Expr::column(slot, 0);
        let is = if negated { Expr::Not(Box::new(is)) } else { is };
        Ok(Typed::condition(is, position))
    }

    fn row_and_subquery(
        &mut self,
        comparison: Comparison,
        row: &[&Ast],
        query: &ast::Query,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = row.first().map_or(0, |first| self.position(*first));
        let row = self.bind_row(row, scope)?;
        let members = self.row_subquery(query, row.len(), position, scope)?;
        self.compare_rows(comparison, row, members, position)
    }

    /// Binds a subquery that returns one row of `width` columns.
    pub(in crate::bind) fn row_subquery(
        &mut self,
        query: &ast::Query,
        width: usize,
        position: u32,
        scope: &Scope,
    ) -> Result<Vec<Typed>> {
        let inner = self.nested(|binder| binder.query(query, Some(Arc::new(scope.clone()))))?;
        self.check_width(&inner, width, position)?;
        let columns = inner.columns.clone();
        let slot = self.add_subquery(inner, SubqueryKind::Row)?;
        self.set_collations(slot, &columns);
        Ok(columns_of(slot, &columns, position))
    }

    fn add_subquery(&mut self, query: Query, kind: SubqueryKind) -> Result<usize> {
        let slot = self.add_slot("subquery".into(), Source::Computed);
        let subquery = Subquery::new(slot, Arc::new(query), kind);
        match self.levels.last_mut() {
            Some(level) => level.subqueries.push(subquery),
            None => return Err(SqlError::unsupported("a subquery here")),
        }
        Ok(slot)
    }
}

/// Returns whether a value is a column that is NOT NULL, of a table that no outer join may miss.
fn has_value(value: &Typed, scope: &Scope, slots: &[SlotShape]) -> bool {
    let Some(at) = value.expr.as_column() else { return false };
    let is_kept = |relation: &&ScopeRelation| {
        !relation.is_nullable && relation.origin.as_ref().is_some_and(|it| it.slot == at.slot)
    };
    let mut relations = scope.relations.iter();
    match slots.get(at.slot).map(|shape| &shape.source) {
        Some(Source::Table(table)) => {
            table.columns.get(at.column).is_some_and(|column| column.not_null)
                && relations.any(|relation| is_kept(&relation))
        }
        _ => false,
    }
}

/// The columns of a slot.
fn columns_of(slot: usize, columns: &[OutputColumn], position: u32) -> Vec<Typed> {
    let columns = columns.iter().enumerate();
    columns
        .map(|(number, column)| Typed::new(Expr::column(slot, number), column.data_type, position))
        .collect()
}
