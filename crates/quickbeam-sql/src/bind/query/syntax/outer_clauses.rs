//! Clauses around a query in parentheses, and subqueries in LIMIT and OFFSET.

use std::borrow::Cow;

use sqlparser::ast::{self, Expr as Ast, LimitClause, SetExpr};

use super::{Sight, column_of, derived_table, named_item, query_of, quoted, select_of};
use crate::bind::Binder;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::limit_with_ties;

/// The item of FROM that holds the computed LIMIT and OFFSET, and the one with the rows.
const LIMITS: &str = "*limits*";
const ROWS: &str = "*rows of limits*";

/// Returns whether an expression may have a subquery; one with the word SELECT in a text may, too.
pub fn may_have_subquery(expr: &Ast) -> bool {
    let is_plain = matches!(expr, Ast::Value(_) | Ast::Identifier(_) | Ast::CompoundIdentifier(_));
    !is_plain && expr.to_string().contains("SELECT")
}

impl Binder<'_> {
    /// Returns a query with the clauses after its parentheses as its own. A query may have each
    /// clause once.
    pub(in crate::bind::query) fn with_clauses_inside<'q>(
        &self,
        query: &'q ast::Query,
    ) -> Result<Cow<'q, ast::Query>> {
        let SetExpr::Query(inner) = &*query.body else { return Ok(Cow::Borrowed(query)) };
        let inner = self.with_clauses_inside(inner)?;
        let has_limits = query.limit_clause.is_some() || query.fetch.is_some();
        let has_clauses = query.with.is_some() || query.order_by.is_some() || has_limits;
        if !has_clauses && query.locks.is_empty() {
            return Ok(inner);
        }
        let repeated = |clause: &str, position: u32| {
            let message = format!("multiple {clause} clauses not allowed");
            Err(SqlError::new(SqlState::SyntaxError, message).at(position as usize))
        };
        let mut merged = inner.into_owned();
        if let Some(with) = &query.with {
            if merged.with.is_some() {
                return repeated("WITH", self.position(with));
            }
            merged.with = Some(with.clone());
        }
        if let Some(order) = &query.order_by {
            if merged.order_by.is_some() {
                return repeated("ORDER BY", self.position(order));
            }
            merged.order_by = Some(order.clone());
        }
        let (limit, offset) = limits_of(query)?;
        let (own_limit, own_offset) = limits_of(&merged)?;
        let has_limit = own_limit.is_some() || merged.fetch.is_some();
        if let Some(limit) = limit.filter(|_| has_limit) {
            return repeated("LIMIT", self.position(limit));
        }
        if query.fetch.is_some() && has_limit {
            return repeated("LIMIT", 0);
        }
        if let (Some(offset), Some(_)) = (offset, own_offset) {
            return repeated("OFFSET", self.position(offset));
        }
        let limit = limit.or(own_limit).cloned();
        let offset = query.limit_clause.iter().chain(&merged.limit_clause).find_map(offset_of);
        let offset = offset.cloned();
        if limit.is_some() || offset.is_some() {
            let limit_by = Vec::new();
            merged.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by });
        }
        merged.fetch = query.fetch.clone().or(merged.fetch);
        merged.locks.extend(query.locks.iter().cloned());
        Ok(Cow::Owned(merged))
    }

    /// Returns a query whose LIMIT and OFFSET are columns of an item of FROM, if one of them has a
    /// subquery: `SELECT rows.* FROM (SELECT limit, offset) AS limits, LATERAL (query) AS rows`.
    pub(in crate::bind::query) fn with_computed_limits(
        query: &ast::Query,
    ) -> Result<Option<ast::Query>> {
        let (limit, offset) = limits_of(query)?;
        let has_ties = limit.is_some_and(|limit| limit_with_ties(limit).is_some());
        if has_ties
            || ![limit, offset].into_iter().flatten().any(may_have_subquery)
            || !query.locks.is_empty()
        {
            return Ok(None);
        }
        let as_column = |expr: Option<&Ast>, name: &str, items: &mut Vec<_>| {
            let expr = expr?;
            let cast = Ast::Cast {
                kind: ast::CastKind::DoubleColon,
                expr: Box::new(Ast::Nested(Box::new(expr.clone()))),
                data_type: ast::DataType::BigInt(None),
                format: None,
            };
            items.push(named_item(cast, name));
            Some(column_of(LIMITS, name))
        };
        let mut items = Vec::new();
        let limit = as_column(limit, "limit", &mut items);
        let offset = as_column(offset, "offset", &mut items);
        let offset = offset.map(|value| ast::Offset { value, rows: ast::OffsetRows::None });
        let limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
        let rows = ast::Query { limit_clause, with: None, ..query.clone() };
        let limits =
            derived_table(query_of(select_of(items, Vec::new())?), LIMITS, &[], Sight::Closed);
        let rows = derived_table(rows, ROWS, &[], Sight::Lateral);
        let all = ast::SelectItem::QualifiedWildcard(
            ast::SelectItemQualifiedWildcardKind::ObjectName(vec![quoted(ROWS)].into()),
            ast::WildcardAdditionalOptions::default(),
        );
        Ok(Some(query_of(select_of(vec![all], vec![limits, rows])?)))
    }
}

/// Returns the offset of a LIMIT clause.
fn offset_of(clause: &LimitClause) -> Option<&ast::Offset> {
    match clause {
        LimitClause::LimitOffset { offset, .. } => offset.as_ref(),
        LimitClause::OffsetCommaLimit { .. } => None,
    }
}

/// Returns the LIMIT and OFFSET of a query. The MySQL form `LIMIT offset, count` is a syntax error.
pub(in crate::bind::query) fn limits_of(
    query: &ast::Query,
) -> Result<(Option<&Ast>, Option<&Ast>)> {
    match &query.limit_clause {
        None => Ok((None, None)),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            Ok((limit.as_ref(), offset.as_ref().map(|offset| &offset.value)))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => Ok((Some(limit), Some(offset))),
        Some(_) => Err(SqlError::unsupported("LIMIT BY")),
    }
}
