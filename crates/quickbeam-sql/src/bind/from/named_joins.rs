//! Conditions of joins, and joins with names: `(a JOIN b ON …) AS j` hides `a` and `b`, and
//! `a JOIN b USING (k) AS j` names the merged columns again.

use std::borrow::Cow;

use smol_str::SmolStr;
use sqlparser::ast::{JoinConstraint, TableAlias, TableWithJoins};

use super::full_join_using::Pair;
use crate::bind::types::common;
use crate::bind::{
    Binder, From, JoinKind, RowOf, Scope, ScopeColumn, ScopeRelation, Source, Typed, fold,
    object_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Comparison, Expr};
use crate::parse::join_alias;
use crate::types::{CastContext, DataType, cast_context};

/// USING without its alias, and the alias.
pub(super) struct Using<'c> {
    pub constraint: Cow<'c, JoinConstraint>,
    pub alias: Option<&'c str>,
}

/// Returns the error for a column of USING that a side does not have, or has twice.
#[cold]
fn not_joined(error: SqlError, name: &str, table: &str) -> SqlError {
    let message = match error.state() {
        SqlState::UndefinedColumn => {
            format!("column \"{name}\" specified in USING clause does not exist in {table} table")
        }
        SqlState::AmbiguousColumn => {
            format!("common column name \"{name}\" appears more than once in {table} table")
        }
        _ => return error,
    };
    SqlError::new(error.state(), message)
}

/// Returns the names that both sides of a join have. The relations of the right side are those from
/// `first_right` on.
pub(super) fn natural_names(inside: &Scope, first_right: usize) -> Vec<SmolStr> {
    let (left, right) = inside.relations.split_at(first_right);
    let named = |name: &SmolStr| {
        right.iter().flat_map(|relation| &relation.columns).any(|it| it.name == *name)
    };
    // A name that an earlier join merged from two columns counts once.
    let left = inside.star.iter().filter_map(|at| {
        left.iter().flat_map(|relation| &relation.columns).find(|it| it.at == *at)
    });
    left.map(|column| column.name.clone()).filter(named).collect()
}

impl Binder<'_> {
    /// Binds the condition of a join. Returns also the USING columns of a full join, whose names
    /// mean neither side's column.
    pub(super) fn constraint(
        &mut self,
        constraint: &JoinConstraint,
        kind: JoinKind,
        flipped: bool,
        first_right: usize,
        inside: &mut Scope,
    ) -> Result<(Vec<Expr>, Vec<Pair>)> {
        let names: Vec<SmolStr> = match constraint {
            JoinConstraint::None => return Ok(Default::default()),
            JoinConstraint::On(condition) => {
                return Ok((self.conjuncts(condition, "JOIN/ON", inside)?, Vec::new()));
            }
            JoinConstraint::Using(names) => names.iter().map(object_name).collect::<Result<_>>()?,
            JoinConstraint::Natural => natural_names(inside, first_right),
        };
        let (mut on, mut pairs) = (Vec::new(), Vec::new());
        let mut joined = Vec::new();
        for name in names {
            let side = |relations: &[ScopeRelation], table: &str| {
                let hidden = inside.hidden.clone();
                let here = Scope { hidden, ..Scope::of(relations.to_vec()) };
                here.resolve(None, &name).cloned().map_err(|error| not_joined(error, &name, table))
            };
            let left = side(&inside.relations[..first_right], "left")?;
            let right = side(&inside.relations[first_right..], "right")?;
            self.check_read([left.at, right.at].into_iter())?;
            let [a, b] =
                [&left, &right].map(|column| Typed::new(column.value(), column.data_type, 0));
            let Some(data_type) = common(left.data_type, right.data_type) else {
                let types = [left.data_type, right.data_type].map(DataType::unconstrained);
                let message =
                    format!("JOIN/USING types {} and {} cannot be matched", types[0], types[1]);
                return Err(SqlError::new(SqlState::DatatypeMismatch, message));
            };
            on.push(self.compare(Comparison::Equal, a, b, 0)?.expr);
            if kind == JoinKind::Full {
                pairs.push((name, left, right));
                continue;
            }
            // The name means the side that always has a row, or that has the type of both.
            let is_right = match kind {
                JoinKind::Inner => left.data_type != data_type && right.data_type == data_type,
                _ => flipped,
            };
            let (first, second) = if is_right { (right, left) } else { (left, right) };
            inside.hidden.push((second.at, second.data_type));
            inside.star.retain(|at| *at != first.at && *at != second.at);
            joined.push(first.at);
            if first.data_type != data_type {
                inside.hidden.push((first.at, first.data_type));
                let stored = first.stored.or(Some(first.data_type));
                let columns = vec![ScopeColumn { data_type, stored, ..first }];
                inside.relations.push(ScopeRelation { columns, ..ScopeRelation::default() });
            }
        }
        inside.star.splice(0..0, joined);
        Ok((on, pairs))
    }

    /// Returns the column in a cast of integers to a wider type of exact numbers. Numbers compare
    /// without the cast, and an index of the column is used.
    pub(in crate::bind) fn without_widening(&self, value: Typed) -> Typed {
        let Expr::Cast(inner, to, _) = &value.expr else { return value };
        let Expr::Column(at) = **inner else { return value };
        let stored = match self.slots.get(at.slot).map(|shape| &shape.source) {
            Some(Source::Table(table)) => table.columns.get(at.column).map(|it| it.data_type),
            Some(Source::Query(columns)) => columns.get(at.column).map(|it| it.data_type),
            _ => None,
        };
        let is_wider = |from: DataType| {
            from.is_integer()
                && (to.is_integer() || *to == DataType::Numeric(None))
                && cast_context(from, *to) == Some(CastContext::Implicit)
        };
        match stored.is_some_and(is_wider) {
            true => Typed { expr: Expr::Column(at), ..value },
            false => value,
        }
    }

    /// Splits the condition of a join at the alias of USING.
    pub(super) fn using_of(constraint: &JoinConstraint) -> Using<'_> {
        if let JoinConstraint::Using(names) = constraint
            && let Some((last, others)) = names.split_last()
            && let [part] = &last.0[..]
            && let Some(alias) = part.as_ident().and_then(|name| join_alias(&name.value))
        {
            let constraint = Cow::Owned(JoinConstraint::Using(others.to_vec()));
            return Using { constraint, alias: Some(alias) };
        }
        Using { constraint: Cow::Borrowed(constraint), alias: None }
    }

    /// Gives the columns that USING merged a second name.
    pub(super) fn name_merged(
        &mut self,
        alias: &str,
        using: &JoinConstraint,
        scope: &mut Scope,
    ) -> Result<()> {
        let JoinConstraint::Using(names) = using else { return Ok(()) };
        let mut columns: Vec<ScopeColumn> = Vec::with_capacity(names.len());
        for name in names {
            columns.push(scope.resolve(None, &object_name(name)?)?.clone());
        }
        let row = RowOf::Join;
        let name = SmolStr::new(alias);
        let is_second_name = true;
        scope.add(ScopeRelation { name, columns, row, is_second_name, ..ScopeRelation::default() })
    }

    /// Binds a join with a name. The names of the joined items are not visible outside.
    pub(super) fn named_join(
        &mut self,
        join: &TableWithJoins,
        alias: &TableAlias,
        scope: &mut Scope,
    ) -> Result<From> {
        let mut inside =
            Scope { outer: scope.outer.clone(), before: scope.before.clone(), ..Scope::default() };
        let from = self.nested(|binder| binder.joined(join, &mut inside))?;
        let mut columns: Vec<ScopeColumn> = inside.all_columns().into_iter().cloned().collect();
        if alias.columns.len() > columns.len() {
            let message = format!(
                "join expression \"{}\" has {} columns available but {} columns specified",
                fold(&alias.name),
                columns.len(),
                alias.columns.len()
            );
            return Err(SqlError::new(SqlState::InvalidColumnReference, message));
        }
        for (column, given) in columns.iter_mut().zip(&alias.columns) {
            column.name = fold(&given.name);
        }
        let (name, row) = (fold(&alias.name), RowOf::Join);
        scope.add(ScopeRelation { name, columns, row, ..ScopeRelation::default() })?;
        Ok(from)
    }
}
