//! Joins with names: `(a JOIN b ON …) AS j` hides `a` and `b`, and `a JOIN b USING (k) AS j` names
//! the merged columns again.

use std::borrow::Cow;

use smol_str::SmolStr;
use sqlparser::ast::{JoinConstraint, TableAlias, TableWithJoins};

use crate::bind::{Binder, From, RowOf, Scope, ScopeColumn, ScopeRelation, fold, object_name};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::join_alias;

/// USING without its alias, and the alias.
pub(super) struct Using<'c> {
    pub constraint: Cow<'c, JoinConstraint>,
    pub alias: Option<&'c str>,
}

impl Binder<'_> {
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
        scope.add(ScopeRelation { name, columns, row, is_second_name: true, is_nullable: false })
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
