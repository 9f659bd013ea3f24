//! The target of ON CONFLICT: which unique keys it means.
//!
//! As in PostgreSQL, a list of columns and expressions means the unique keys of exactly these. A
//! partial index is meant if the WHERE of the target implies its predicate.

use std::sync::Arc;

use sqlparser::ast;

use super::target::{ChangeTarget, ViewColumns, expand};
use crate::bind::ddl::key_column;
use crate::bind::{Binder, BoundIndex, Scope, ScopeRelation, fold};
use crate::catalog::{EXPRESSIONS, Index, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, implies};
use crate::schema::errors::no_column;

/// What a conflict target lists.
#[derive(Default)]
struct Target {
    columns: Vec<usize>,
    expressions: Vec<Expr>,
    condition: Vec<Expr>,
}

fn sorted(mut columns: Vec<usize>) -> Vec<usize> {
    columns.sort_unstable();
    columns.dedup();
    columns
}

impl Target {
    fn add_column(&mut self, changed: &ChangeTarget, name: &ast::Ident) -> Result<()> {
        let folded = fold(name);
        let own = changed.own_position(&folded);
        let own = own.ok_or_else(|| no_column(changed.name(), &folded))?;
        self.columns.push(changed.place(own)?);
        Ok(())
    }

    /// Returns whether an index is unique over exactly what is listed.
    fn means(&self, index: &Index, bound: impl FnOnce() -> Result<BoundIndex>) -> Result<bool> {
        let positions = index.columns.iter().map(|column| column.position);
        let columns = sorted(positions.filter(|position| *position < EXPRESSIONS).collect());
        if !index.is_unique() || columns != self.columns {
            return Ok(false);
        }
        if !index.is_computed() {
            return Ok(self.expressions.is_empty());
        }
        let bound = bound()?;
        let are_listed = bound.expressions.iter().all(|it| self.expressions.contains(it));
        let are_indexed = self.expressions.iter().all(|it| bound.expressions.contains(it));
        Ok(are_listed && are_indexed && implies(&self.condition, &bound.predicate))
    }
}

/// Refuses keys that are DEFERRABLE, of these indexes: they cannot tell what is in conflict.
pub(super) fn check_arbiters<'i>(
    table: &Table,
    mut indexes: impl Iterator<Item = &'i Arc<Index>>,
) -> Result<()> {
    let Some(index) = indexes.find(|index| index.timing.is_deferrable()) else { return Ok(()) };
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
    let error = SqlError::new(SqlState::ObjectNotInPrerequisiteState, message);
    Err(error.of_table(&table.schema, &table.name).of_constraint(index.name.as_str()))
}

/// Returns the unique key that a constraint is.
pub(super) fn key_of_constraint(table: &Table, name: &str) -> Result<Option<usize>> {
    if table.primary_key.as_ref().is_some_and(|key| key.name == name) {
        return Ok(None);
    }
    let is_named = |index: &Index| index.is_unique() && !index.is_computed() && index.name == name;
    match table.indexes.iter().position(|index| is_named(index)) {
        Some(number) => Ok(Some(number)),
        None if table.has_constraint(name) => {
            let message = "constraint in ON CONFLICT clause has no associated index";
            Err(SqlError::new(SqlState::WrongObjectType, message))
        }
        None => {
            let table = &table.name;
            let message = format!("constraint \"{name}\" for table \"{table}\" does not exist");
            Err(SqlError::new(SqlState::UndefinedObject, message))
        }
    }
}

impl Binder<'_> {
    /// Returns the unique keys that a conflict target means: `None` is the primary key.
    pub(super) fn inferred_keys(
        &mut self,
        changed: &ChangeTarget,
        names: &[ast::Ident],
        (row, slot): (ScopeRelation, usize),
        views: &[ViewColumns],
    ) -> Result<Vec<Option<usize>>> {
        let table = &*changed.table;
        let target = match crate::parse::conflict_target(names)? {
            Some(written) => self.computed_target(changed, &written, row, views)?,
            None => {
                let mut target = Target::default();
                names.iter().try_for_each(|name| target.add_column(changed, name))?;
                target.columns = sorted(target.columns);
                target
            }
        };
        let mut keys = Vec::new();
        if let Some(key) = &table.primary_key
            && target.expressions.is_empty()
            && sorted(key.columns.clone()) == target.columns
        {
            keys.push(None);
        }
        for (number, index) in table.indexes.iter().enumerate() {
            if target.means(index, || BoundIndex::of(self.names, table, index, slot))? {
                keys.push(Some(number));
            }
        }
        if keys.is_empty() {
            let message =
                "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(SqlState::InvalidColumnReference, message));
        }
        Ok(keys)
    }

    fn computed_target(
        &mut self,
        changed: &ChangeTarget,
        written: &ast::CreateIndex,
        row: ScopeRelation,
        views: &[ViewColumns],
    ) -> Result<Target> {
        let mut target = Target::default();
        let scope = Scope::of(vec![row]);
        for column in &written.columns {
            match key_column(&column.column.expr) {
                Some(name) => target.add_column(changed, name)?,
                None => {
                    let (bound, _) =
                        self.level(|binder| binder.expression(&column.column.expr, &scope))?;
                    let mut expr = bound.expr;
                    expand(&mut expr, views);
                    expr.simplify();
                    target.expressions.push(expr);
                }
            }
        }
        if let Some(predicate) = &written.predicate {
            let (mut condition, _) =
                self.level(|binder| binder.condition(predicate, "WHERE", &scope))?;
            expand(&mut condition, views);
            condition.simplify_condition();
            condition.into_conjuncts(&mut target.condition);
        }
        target.columns = sorted(target.columns);
        Ok(target)
    }
}
