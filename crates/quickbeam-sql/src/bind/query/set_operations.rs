//! UNION, INTERSECT, EXCEPT: the types of both sides' columns become one.

use std::sync::Arc;

use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

use super::row_locks::refused_lock;
use super::syntax::query_of;
use crate::bind::collations::keys::collations_of_keys;
use crate::bind::expression::operators::trimmed;
use crate::bind::types::undefined::{no_common_type, refuse_unequal};
use crate::bind::{Binder, Body, Combine, CombineKind, OutputColumn, Query, Scope, Source, types};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, Value};

/// A set operation of the syntax tree.
struct Written<'q> {
    kind: CombineKind,
    all: bool,
    left: &'q SetExpr,
    right: &'q SetExpr,
}

impl Written<'_> {
    /// Returns the words that messages have for it.
    fn name(&self) -> &'static str {
        match self.kind {
            CombineKind::Union => "UNION",
            CombineKind::Intersect => "INTERSECT",
            CombineKind::Except => "EXCEPT",
        }
    }

    /// Returns whether it compares no rows.
    fn is_by_append(&self) -> bool {
        self.kind == CombineKind::Union && self.all
    }

    fn of(body: &SetExpr) -> Result<Option<Written<'_>>> {
        let SetExpr::SetOperation { left, op, set_quantifier, right } = body else {
            return Ok(None);
        };
        let kind = match op {
            SetOperator::Union => CombineKind::Union,
            SetOperator::Intersect => CombineKind::Intersect,
            SetOperator::Except | SetOperator::Minus => CombineKind::Except,
        };
        let all = match set_quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return Err(SqlError::unsupported("set operations by name")),
        };
        Ok(Some(Written { kind, all, left, right }))
    }
}

/// Returns the sides of a set operation. A chain of equal UNIONs is one operation with many sides.
fn sides_of<'q>(whole: &Written<'q>) -> Result<Vec<&'q SetExpr>> {
    let (mut sides, mut left) = (vec![whole.right], whole.left);
    if whole.kind == CombineKind::Union {
        while let Some(inner) = Written::of(left)?
            && (inner.kind, inner.all) == (whole.kind, whole.all)
        {
            sides.push(inner.right);
            left = inner.left;
        }
    }
    sides.push(left);
    sides.reverse();
    Ok(sides)
}

/// The result columns of a set operation, and for each whether the only side so far has NULL or a
/// quoted literal there.
struct Common {
    columns: Vec<OutputColumn>,
    unknown: Vec<bool>,
}

impl Binder<'_> {
    /// Binds a set operation.
    pub(in crate::bind) fn combination(
        &mut self,
        body: &SetExpr,
        order: &[ast::OrderByExpr],
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        let Some(written) = Written::of(body)? else {
            return Err(SqlError::internal("a set operation that is none"));
        };
        let mut sides = Vec::new();
        let mut common: Option<Common> = None;
        for side in sides_of(&written)? {
            let before = self.recursive_references();
            let (query, unknown) = self.side(side, body, outer.clone())?;
            let part = match written.kind {
                CombineKind::Except if written.all || common.is_some() => Some("EXCEPT"),
                CombineKind::Intersect if written.all => Some("INTERSECT"),
                _ => None,
            };
            if let Some(part) = part {
                let references = before..self.recursive_references();
                self.check_no_recursion(references, part, self.place_of_output(side, 0))?;
            }
            match &mut common {
                None => common = Some(Common { columns: query.columns.clone(), unknown }),
                Some(common) => self.meet(common, &query, &unknown, &written, side)?,
            }
            sides.push(query);
        }
        let Common { columns, unknown } =
            common.ok_or_else(|| SqlError::internal("a set operation of nothing"))?;
        self.unknown = unknown;
        sides.iter_mut().for_each(|side| convert(side, &columns, &mut self.parameters));
        let slot = self.add_slot("combined".into(), Source::Computed);
        let combine = Combine { kind: written.kind, all: written.all, sides, slot };
        let collations = match written.is_by_append() {
            true => None,
            false => collations_of_keys(&columns)?,
        };
        if let Some(collations) = collations {
            return self.combined_by_keys(combine, columns, &collations, order);
        }
        let order = self.order_of_outputs(order, &columns, slot)?;
        Ok(Query {
            with: Vec::new(),
            body: Body::Combine(Box::new(combine)),
            columns,
            order,
            limit: None,
            offset: None,
            with_ties: false,
        })
    }

    /// Binds a side, and says which of its columns are NULL or literals in quotes.
    fn side(
        &mut self,
        side: &SetExpr,
        whole: &SetExpr,
        outer: Option<Arc<Scope>>,
    ) -> Result<(Query, Vec<bool>)> {
        if let SetExpr::Query(query) = side
            && let Some(lock) = query.locks.first()
        {
            return Err(refused_lock(lock, whole));
        }
        self.unknown.clear();
        self.defers = true;
        let bound = self.nested(|binder| match side {
            SetExpr::Query(query) => binder.query(query, outer),
            side => binder.query_body(&query_of(side.clone()), outer),
        });
        self.defers = false;
        Ok((bound?, std::mem::take(&mut self.unknown)))
    }

    /// Binds a term of a recursive query.
    pub(in crate::bind) fn term(
        &mut self,
        side: &SetExpr,
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        self.unknown.clear();
        match side {
            SetExpr::Query(query) => self.query(query, outer),
            side => self.query_body(&query_of(side.clone()), outer),
        }
    }

    /// Makes the recursive term return the types of the non-recursive one.
    pub(in crate::bind) fn convert_term(&mut self, query: &mut Query, columns: &[OutputColumn]) {
        convert(query, columns, &mut self.parameters);
    }

    /// Unifies the column types of one more side with those so far.
    fn meet(
        &self,
        common: &mut Common,
        query: &Query,
        unknown: &[bool],
        whole: &Written<'_>,
        side: &SetExpr,
    ) -> Result<()> {
        if common.columns.len() != query.columns.len() {
            let name = whole.name();
            let message = format!("each {name} query must have the same number of columns");
            let position = self.place_of_output(side, 0);
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        common.unknown.resize(common.columns.len(), false);
        let known = common.columns.iter_mut().zip(&mut common.unknown);
        for (number, ((a, before), b)) in known.zip(&query.columns).enumerate() {
            let place = self.place_of_output(side, number);
            a.collation =
                self.met_collation(a.collation, b.collation, whole.is_by_append(), place)?;
            // NULL and literals in quotes take the type of the other side.
            let is_unknown = unknown.get(number) == Some(&true);
            let both = match (*before, is_unknown) {
                (true, false) => Some(types::beside_literal(b.data_type)),
                (false, true) => Some(types::beside_literal(a.data_type)),
                (true, true) => Some(DataType::Text),
                _ => types::common(a.data_type, b.data_type),
            };
            if let (Some(left), Some(right)) = (a.data_type.record(), b.data_type.record())
                && both.is_some()
                && !whole.is_by_append()
            {
                self.check_comparable_rows(left, right, "<", 0).map_err(SqlError::without_place)?;
            }
            if !whole.is_by_append() {
                let is_row = a.data_type.record().is_some();
                let compared = both.filter(|_| !is_row);
                refuse_unequal(compared, self.place_of_output(whole.left, number))?;
            }
            // Two of them are texts for the sides that follow.
            *before = false;
            a.data_type = both.ok_or_else(|| {
                let [a, b] = [a.data_type, b.data_type].map(DataType::unconstrained);
                no_common_type(whole.name(), a, b).at(self.place_of_output(side, number))
            })?;
        }
        Ok(())
    }
}

impl Binder<'_> {
    /// Returns the position of an output of a query, or of the first output if that one is not
    /// written out.
    pub(in crate::bind) fn place_of_output(&self, query: &SetExpr, number: usize) -> usize {
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
            *expr = inner.cast(Some(from), to, crate::expression::TextPosition(0));
        }
    };
    query.convert_outputs(&types, &mut cast);
}
