//! ALTER TABLE … RENAME CONSTRAINT, VALIDATE CONSTRAINT, and ADD CONSTRAINT … USING INDEX.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_name};
use crate::catalog::Catalog;
use crate::error::{Result, SqlError, SqlState};
use crate::handle::index_tree;
use crate::schema::encoding::StoredRow;
use crate::schema::errors::{constraint_exists, many_primary_keys, no_constraint, no_index};
use crate::schema::names::lookup_name;
use crate::schema::{ConstraintTiming, IndexConstraint, Method, NewKey, Table};

/// Evaluates a CHECK on a row; NULL satisfies it.
pub type RowCondition<'c> = dyn FnMut(StoredRow<'_>) -> Result<Option<bool>> + 'c;

impl Catalog {
    /// ALTER TABLE … RENAME CONSTRAINT. The index of a key has the constraint's name.
    pub fn rename_constraint(
        &self,
        transaction: &Transaction,
        table: &str,
        from: &str,
        to: &str,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        check_name(to)?;
        let is_key = table.primary_key.as_ref().is_some_and(|key| key.name == from)
            || table.indexes.iter().any(|index| index.is_constraint && index.name == from);
        if is_key {
            change.check_free(&lookup_name(&table.schema, to))?;
        }
        if table.has_constraint(to) {
            return Err(constraint_exists(&table.name, to));
        }
        table.set_constraint_name(from, to)?;
        if let Some(comment) = table.constraint_comments.remove(from) {
            table.constraint_comments.insert(to.into(), comment);
        }
        change.put_table(&table)
    }

    /// ALTER TABLE … ALTER CONSTRAINT, of a foreign key.
    pub fn alter_constraint(
        &self,
        transaction: &Transaction,
        table: &str,
        name: &str,
        timing: ConstraintTiming,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        let Some(key) = table.foreign_keys.iter_mut().find(|key| key.name == name) else {
            if !table.has_constraint(name) {
                return Err(no_constraint(&table.name, name));
            }
            let table = &table.name;
            let message = format!(
                "constraint \"{name}\" of relation \"{table}\" is not a foreign key constraint"
            );
            return Err(SqlError::new(SqlState::WrongObjectType, message));
        };
        key.timing = timing;
        change.regenerate(&mut table)?;
        change.put_table(&table)
    }

    /// ALTER TABLE … VALIDATE CONSTRAINT. `holds` evaluates the CHECK of that name, if it is one.
    pub fn validate_constraint(
        &self,
        transaction: &Transaction,
        table: &str,
        name: &str,
        holds: Option<&mut RowCondition<'_>>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        if let Some(at) = table.checks.iter().position(|check| check.name == name) {
            if let (true, Some(holds)) = (table.checks[at].not_valid, holds) {
                change.check_rows(&table, name, holds)?;
            }
            table.checks[at].not_valid = false;
            return change.put_table(&table);
        }
        if let Some(at) = table.foreign_keys.iter().position(|key| key.name == name) {
            if !std::mem::take(&mut table.foreign_keys[at].not_valid) {
                return Ok(());
            }
            change.put_table(&table)?;
            return change.check_references(&table, at);
        }
        if !table.has_constraint(name) {
            return Err(no_constraint(&table.name, name));
        }
        let message = format!(
            "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
            table.name
        );
        Err(SqlError::new(SqlState::WrongObjectType, message))
    }

    /// ALTER TABLE … ADD UNIQUE or ADD PRIMARY KEY, USING INDEX. The index gets the constraint's
    /// name. A primary key that is not DEFERRABLE replaces the index: the table is stored by it.
    pub fn use_index(
        &self,
        transaction: &Transaction,
        table_name: &str,
        constraint: &IndexConstraint,
    ) -> Result<()> {
        let IndexConstraint { index, name, is_primary, timing } = constraint;
        let (index, name) = (index.as_str(), name.as_ref());
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table_name)?;
        let lookup = lookup_name(&table.schema, index);
        let Some(at) = table.indexes.iter().position(|known| known.name == index) else {
            if change.before.index_named(&lookup).is_err() {
                return Err(no_index(&lookup));
            }
            let message = format!("index \"{index}\" does not belong to table \"{}\"", table.name);
            return Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message));
        };
        let found = table.indexes[at].clone();
        if found.is_constraint {
            let message = format!("index \"{index}\" is already associated with a constraint");
            return Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message));
        }
        let is_plain = found.columns.iter().all(|column| !column.descending && !column.nulls_first);
        let refusal = if !found.unique {
            Some(format!("\"{index}\" is not a unique index"))
        } else if !found.expressions.is_empty() {
            Some(format!("index \"{index}\" contains expressions"))
        } else if found.is_partial() {
            Some(format!("\"{index}\" is a partial index"))
        } else if !is_plain {
            Some(format!(
                "index \"{index}\" column number 1 does not have default sorting behavior"
            ))
        } else {
            None
        };
        if let Some(message) = refusal {
            let detail = "Cannot create a primary key or unique constraint using such an index.";
            return Err(SqlError::new(SqlState::WrongObjectType, message).with_detail(detail));
        }
        if let Some(name) = name.filter(|name| *name != index) {
            change.check_free(&lookup_name(&table.schema, name))?;
        }
        let name = name.cloned().unwrap_or_else(|| index.into());
        if timing.is_deferrable() {
            return change.use_deferrably(table, at, (name, constraint));
        }
        if !is_primary {
            let index = Arc::make_mut(&mut table.indexes[at]);
            (index.is_constraint, index.name) = (true, name);
            return change.put_table(&table);
        }
        let columns =
            found.columns.iter().map(|column| table.columns[column.position].name.clone());
        let key = NewKey {
            name: Some(name),
            columns: columns.collect(),
            method: Method::Range,
            ..NewKey::default()
        };
        table.indexes.remove(at);
        transaction.drop_database(&index_tree(found.id))?;
        change.regenerate(&mut table)?;
        change.put_table(&table)?;
        self.add_primary_key(transaction, table_name, &key)
    }
}

impl CatalogChange<'_> {
    /// Makes an index that of a key that is DEFERRABLE: its entries have another form.
    fn use_deferrably(
        &self,
        mut table: Table,
        at: usize,
        (name, constraint): (SmolStr, &IndexConstraint),
    ) -> Result<()> {
        let positions: Vec<usize> =
            table.indexes[at].columns.iter().map(|column| column.position).collect();
        if constraint.is_primary {
            if table.primary_columns().is_some() {
                return Err(many_primary_keys(&table.name));
            }
            self.refuse_nulls(&table, &positions)?;
            positions.iter().for_each(|&position| table.columns[position].not_null = true);
        }
        if table.indexes[at].method == Method::Hash {
            return Err(SqlError::unsupported("a key USING HASH that is DEFERRABLE"));
        }
        let index = Arc::make_mut(&mut table.indexes[at]);
        (index.is_constraint, index.name, index.unique) = (true, name, false);
        (index.timing, index.is_primary) = (constraint.timing, constraint.is_primary);
        let index = table.indexes[at].clone();
        let handle = self.handle(table.id)?;
        self.transaction.drop_database(&index_tree(index.id))?;
        self.fill_index(&handle, &index)?;
        self.regenerate(&mut table)?;
        self.put_table(&table)
    }
}

impl Table {
    /// Gives the constraint of a name another one.
    fn set_constraint_name(&mut self, from: &str, to: &str) -> Result<()> {
        if let Some(key) = self.primary_key.as_mut().filter(|key| key.name == from) {
            key.name = to.into();
        } else if let Some(index) =
            self.indexes.iter_mut().find(|index| index.is_constraint && index.name == from)
        {
            Arc::make_mut(index).name = to.into();
        } else if let Some(check) = self.checks.iter_mut().find(|check| check.name == from) {
            check.name = to.into();
        } else if let Some(key) = self.foreign_keys.iter_mut().find(|key| key.name == from) {
            key.name = to.into();
        } else {
            return Err(no_constraint(&self.name, from));
        }
        Ok(())
    }
}
