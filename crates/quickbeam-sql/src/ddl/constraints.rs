//! Constraints: their definition, and ALTER TABLE … ADD and DROP CONSTRAINT.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::CatalogChange;
use super::indexes::{renew, version_of};
use crate::catalog::Catalog;
use crate::error::{Result, SqlError, SqlState};
use crate::handle::{TableHandle, index_tree, rows_tree};
use crate::schema::encoding::StoredRow;
use crate::schema::errors::{many_primary_keys, no_column, no_constraint};
use crate::schema::{
    Check, Column, ForeignKey, ForeignKeyAction, Index, KeyColumn, PrimaryKey, Table,
};
use crate::schema::{NewCheck, NewForeignKey, NewKey, is_temporary_schema};
use crate::table::can_refer;
use crate::table::{Expressions, TableWriter};
use crate::types::Value;

/// Stands in where no row is changed, so that no expression is evaluated.
struct NoExpressions;

impl Expressions for NoExpressions {
    fn check_domains(&self, _: &Table, _: &[usize], _: StoredRow<'_>) -> Result<()> {
        Ok(())
    }

    fn check(&self, _: &Table, _: usize, _: StoredRow<'_>) -> Result<Option<bool>> {
        Err(SqlError::internal("a CHECK where no row changes"))
    }

    fn generated(&self, _: &Table, _: &[usize], _: StoredRow<'_>) -> Result<Vec<(usize, Value)>> {
        Err(SqlError::internal("a generated column where no row changes"))
    }

    fn default(&self, _: &Table, _: usize) -> Result<Value> {
        Err(SqlError::internal("a DEFAULT where no row changes"))
    }
}

impl Catalog {
    /// ALTER TABLE … ADD PRIMARY KEY: every row is written again, by its new key.
    pub fn add_primary_key(
        &self,
        transaction: &Transaction,
        table: &str,
        key: &NewKey,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        let mut with_key = table.clone();
        change.define_primary_key(&mut with_key, key, &mut Vec::new())?;
        change.refuse_nulls(&table, &table.known_columns(&key.columns)?)?;
        table.columns = with_key.columns;
        match with_key.primary_key {
            Some(primary_key) => change.rebuild(&mut table, Some(primary_key))?,
            None => {
                let index = with_key.indexes.pop();
                let index = index.ok_or_else(|| SqlError::internal("a key without an index"))?;
                change.fill_index(&*change.handle(table.id)?, &index)?;
                table.indexes.push(index);
                change.regenerate(&mut table)?;
            }
        }
        change.put_table(&table)
    }

    /// ALTER TABLE … ADD UNIQUE.
    pub fn add_unique(&self, transaction: &Transaction, table: &str, key: &NewKey) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        let index = Arc::new(change.define_unique(&table, key, &mut Vec::new())?);
        change.fill_index(&*change.handle(table.id)?, &index)?;
        table.indexes.push(index);
        change.regenerate(&mut table)?;
        change.put_table(&table)
    }

    /// ALTER TABLE … ADD CHECK. `holds` says whether a row keeps to it; NULL counts as keeping to
    /// it.
    pub fn add_check(
        &self,
        transaction: &Transaction,
        table: &str,
        new: &NewCheck,
        holds: &mut dyn FnMut(StoredRow<'_>) -> Result<Option<bool>>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        let columns = table.known_columns(&new.columns)?;
        let shown = if new.columns.len() == 1 { &new.columns[..] } else { &[] };
        let name = table.constraint_name(new.name.as_ref(), shown, "check")?;
        if !new.not_valid {
            change.check_rows(&table, &name, holds)?;
        }
        let columns = columns.iter().map(|&position| table.columns[position].id).collect();
        let NewCheck { expression, not_valid, no_inherit, .. } = new.clone();
        table.checks.push(Check { name, expression, columns, not_valid, no_inherit });
        change.regenerate(&mut table)?;
        change.put_table(&table)
    }

    /// Checks the rows of a table against a CHECK constraint whose meaning has changed.
    pub fn check_again(
        &self,
        transaction: &Transaction,
        table: &str,
        name: &str,
        holds: &mut dyn FnMut(StoredRow<'_>) -> Result<Option<bool>>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        change.check_rows(&change.table(table)?, name, holds)
    }

    /// ALTER TABLE … ADD FOREIGN KEY.
    pub fn add_foreign_key(
        &self,
        transaction: &Transaction,
        table: &str,
        new: &NewForeignKey,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        let foreign_key = change.define_foreign_key(&table, new)?;
        let parent = foreign_key.parent;
        table.foreign_keys.push(foreign_key);
        change.regenerate(&mut table)?;
        change.put_table(&table)?;
        if parent != table.id {
            change.regenerate_other(parent)?;
        }
        if new.not_valid {
            return Ok(());
        }
        change.check_references(&table, table.foreign_keys.len() - 1)
    }

    /// ALTER TABLE … DROP CONSTRAINT. `cascade`: foreign keys that point to the key go, too.
    pub fn drop_constraint(
        &self,
        transaction: &Transaction,
        table: &str,
        name: &str,
        cascade: bool,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        let what = format!("constraint {name} on table {}", table.name);
        let ids = |positions: &[usize], table: &Table| -> Vec<u16> {
            positions.iter().map(|&position| table.columns[position].id).collect()
        };
        let same = |a: &[u16], b: &[u16]| a.len() == b.len() && a.iter().all(|id| b.contains(id));
        if let Some(key) = table.primary_key.clone().filter(|key| key.name == name) {
            let columns = ids(&key.columns, &table);
            change.drop_references(&mut table, &what, cascade, |key| {
                same(&key.parent_columns, &columns)
            })?;
            change.rebuild(&mut table, None)?;
        } else if let Some(at) =
            table.indexes.iter().position(|i| i.is_constraint && i.name == name)
        {
            let index = table.indexes.remove(at);
            let columns: Vec<usize> = index.columns.iter().map(|column| column.position).collect();
            let columns = ids(&columns, &table);
            change.drop_references(&mut table, &what, cascade, |key| {
                same(&key.parent_columns, &columns)
            })?;
            transaction.drop_database(&index_tree(index.id))?;
            change.regenerate(&mut table)?;
        } else if let Some(at) = table.checks.iter().position(|check| check.name == name) {
            table.checks.remove(at);
            change.regenerate(&mut table)?;
        } else if let Some(at) = table.foreign_keys.iter().position(|key| key.name == name) {
            let key = table.foreign_keys.remove(at);
            change.regenerate(&mut table)?;
            if key.parent != table.id {
                change.regenerate_other(key.parent)?;
            }
        } else {
            return Err(no_constraint(&table.name, name));
        }
        table.constraint_comments.remove(name);
        change.put_table(&table)
    }
}

/// The error of a foreign key to a key that is DEFERRABLE.
fn deferrable_parent(kind: &str, parent: &Table) -> SqlError {
    let message =
        format!("cannot use a deferrable {kind} for referenced table \"{}\"", parent.name);
    SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
}

impl CatalogChange<'_> {
    /// Checks the rows of a table against a CHECK constraint.
    pub(crate) fn check_rows(
        &self,
        table: &Table,
        name: &str,
        holds: &mut dyn FnMut(StoredRow<'_>) -> Result<Option<bool>>,
    ) -> Result<()> {
        self.for_each_row(&*self.handle(table.id)?, |_, row| match holds(row)? {
            Some(false) => {
                let message = format!(
                    "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                    table.name
                );
                let error = SqlError::new(SqlState::CheckViolation, message);
                Err(error.of_table(&table.schema, &table.name).of_constraint(name))
            }
            _ => Ok(()),
        })
    }

    /// Checks the rows of a table against a foreign key of the catalog as it was changed.
    pub(crate) fn check_references(&self, table: &Table, foreign_key: usize) -> Result<()> {
        let (catalog, transaction) = (self.catalog, self.transaction);
        let snapshot = catalog.snapshot(transaction)?;
        let handle = snapshot.handle(transaction, table.id)?;
        let mut statement = TableWriter::new(catalog, transaction, &snapshot, &NoExpressions);
        statement.set_savepoint()?;
        self.for_each_row(&handle, |_, row| statement.check_parent(&handle, foreign_key, row))?;
        // Rows that refer to their own table are checked last.
        statement.finish()
    }

    /// Makes columns the primary key of a definition: the key of its rows, or the last of its
    /// indexes if it is DEFERRABLE or has texts under a collation of ICU. The rows are not
    /// looked at.
    pub(crate) fn define_primary_key(
        &self,
        table: &mut Table,
        key: &NewKey,
        taken: &mut Vec<SmolStr>,
    ) -> Result<()> {
        if table.primary_columns().is_some() {
            return Err(many_primary_keys(&table.name));
        }
        let columns = table.known_columns(&key.columns)?;
        columns.iter().try_for_each(|position| table.check_key_type(*position))?;
        let name = {
            let parts = [table.name.as_str()];
            self.name_or_made(&table.schema, key.name.as_ref(), &parts, "pkey", taken)?
        };
        taken.push(name.clone());
        for &position in &columns {
            table.columns[position].not_null = true;
        }
        let has_sort_keys = |at: &usize| table.columns[*at].key_collation().is_some();
        if key.timing.is_deferrable() || columns.iter().any(has_sort_keys) {
            let index = Index { is_primary: true, ..self.key_index(table, key, name)? };
            table.indexes.push(Arc::new(index));
            return Ok(());
        }
        table.primary_key = Some(PrimaryKey { name, columns, method: key.method });
        Ok(())
    }

    pub(crate) fn define_unique(
        &self,
        table: &Table,
        key: &NewKey,
        taken: &mut Vec<SmolStr>,
    ) -> Result<Index> {
        let columns = table.known_columns(&key.columns)?;
        columns.iter().try_for_each(|position| table.check_key_type(*position))?;
        let mut parts = vec![table.name.as_str()];
        parts.extend(key.columns.iter().map(SmolStr::as_str));
        parts.extend(key.include.iter().map(SmolStr::as_str));
        let name = self.name_or_made(&table.schema, key.name.as_ref(), &parts, "key", taken)?;
        taken.push(name.clone());
        self.key_index(table, key, name)
    }

    /// Returns the index of a key.
    fn key_index(&self, table: &Table, key: &NewKey, name: SmolStr) -> Result<Index> {
        let columns = table.known_columns(&key.columns)?;
        let column = |position: usize| KeyColumn {
            position,
            descending: false,
            nulls_first: false,
            collation: table.columns.get(position).and_then(Column::key_collation),
        };
        let columns: Vec<KeyColumn> = columns.into_iter().map(column).collect();
        Ok(Index {
            id: self.new_id()?,
            name,
            collation_version: version_of(&columns),
            columns,
            unique: !key.timing.is_deferrable(),
            method: key.method,
            is_constraint: true,
            include: table.known_columns(&key.include)?,
            nulls_not_distinct: key.nulls_not_distinct,
            expressions: Vec::new(),
            predicate: None,
            timing: key.timing,
            is_primary: false,
        })
    }

    /// A foreign key as a statement describes it. The rows are not looked at.
    pub(crate) fn define_foreign_key(
        &self,
        table: &Table,
        new: &NewForeignKey,
    ) -> Result<ForeignKey> {
        let columns = table.known_columns(&new.columns)?;
        let other;
        let parent = if new.parent == table.lookup_name() {
            table
        } else {
            other = self.table_named(&new.parent)?;
            &*other
        };
        let is_temporary = is_temporary_schema(&table.schema);
        if is_temporary != is_temporary_schema(&parent.schema) {
            let kind = if is_temporary { "temporary" } else { "permanent" };
            let message = format!("constraints on {kind} tables may reference only {kind} tables");
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
        let parent_columns = referenced_columns(parent, &new.parent_columns)?;
        if columns.len() != parent_columns.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new(SqlState::InvalidForeignKey, message));
        }
        check_referenced_key(parent, &parent_columns)?;
        check_compatible(table, (&columns, new), parent, &parent_columns)?;
        check_generated(table, &columns, new)?;
        Ok(ForeignKey {
            name: table.constraint_name(new.name.as_ref(), &new.columns, "fkey")?,
            parent: parent.id,
            parent_columns: parent_columns.iter().map(|&p| parent.columns[p].id).collect(),
            columns,
            on_delete: new.on_delete,
            on_update: new.on_update,
            not_valid: new.not_valid,
            timing: new.timing,
            is_full: new.is_full,
            delete_columns: self.delete_columns(table, new)?,
        })
    }

    /// Returns the numbers of the columns after ON DELETE SET NULL or SET DEFAULT.
    fn delete_columns(&self, table: &Table, new: &NewForeignKey) -> Result<Vec<u16>> {
        let mut numbers = Vec::with_capacity(new.delete_columns.len());
        for name in &new.delete_columns {
            let message = match table.column(name) {
                None => return Err(no_column(&table.name, name).without_place()),
                Some(_) if new.columns.contains(name) => None,
                Some(_) => Some(format!(
                    "column \"{name}\" referenced in ON DELETE SET action must be part of foreign key"
                )),
            };
            if let Some(message) = message {
                return Err(SqlError::new(SqlState::InvalidColumnReference, message));
            }
            numbers.push(table.columns[table.known_column(name)?].id);
        }
        Ok(numbers)
    }

    /// Writes every row of a table again, by another key (`None`: a hidden row id), and all its
    /// indexes. The table's tree is another one afterwards.
    pub(crate) fn rebuild(&self, table: &mut Table, key: Option<PrimaryKey>) -> Result<()> {
        let transaction = self.transaction;
        let old = TableHandle::open_rows(transaction, &Arc::new(table.clone()))?;
        let old_tree = rows_tree(table);
        table.primary_key = key;
        table.generation += 1;
        let rows = transaction.create_database_with(&rows_tree(table), table.access_method())?;
        let new = TableHandle::of_database(Arc::new(table.clone()), rows);
        let (mut new_key, mut next_row) = (Vec::new(), 0_u64);
        self.for_each_row(&old, |_, row| {
            new_key.clear();
            if new.key().parts.is_empty() {
                next_row =
                    self.catalog.row_ids().next(self.catalog.environment(), transaction, &new)?;
                new_key.extend_from_slice(&next_row.to_be_bytes());
            } else {
                new.key().encode_with(&mut new_key, |position| row.get(position))?;
            }
            if new.database().put_if_absent(transaction, &new_key, row.bytes())? {
                return Ok(());
            }
            let name = new.table().primary_key.as_ref().map_or("", |key| key.name.as_str());
            let message = format!("could not create unique index \"{name}\"");
            Err(SqlError::new(SqlState::UniqueViolation, message).of_constraint(name))
        })?;
        transaction.drop_database(&old_tree)?;
        for index in &mut table.indexes {
            renew(index);
            transaction.drop_database(&index_tree(index.id))?;
            self.fill_index(&new, index)?;
        }
        self.is_regenerated(table.id);
        Ok(())
    }
}

/// Returns the columns that a foreign key refers to: by default those of the primary key.
fn referenced_columns(parent: &Table, names: &[SmolStr]) -> Result<Vec<usize>> {
    match (names, &parent.primary_key) {
        ([], Some(key)) => Ok(key.columns.clone()),
        ([], None) => {
            if let Some(index) = parent.primary_index() {
                if index.timing.is_deferrable() {
                    return Err(deferrable_parent("primary key", parent));
                }
                return Ok(index.columns.iter().map(|column| column.position).collect());
            }
            let message =
                format!("there is no primary key for referenced table \"{}\"", parent.name);
            Err(SqlError::new(SqlState::UndefinedObject, message))
        }
        (names, _) => parent.known_columns(names),
    }
}

/// Returns an error if the columns are not those of a key of the table that is checked at once.
fn check_referenced_key(parent: &Table, columns: &[usize]) -> Result<()> {
    let is_same = |mut a: Vec<usize>| {
        let mut b = columns.to_vec();
        a.sort_unstable();
        b.sort_unstable();
        a == b
    };
    let positions = |i: &Index| i.columns.iter().map(|c| c.position).collect::<Vec<_>>();
    let mut unique = parent.indexes.iter().filter(|index| {
        index.unique && !index.is_partial() && index.has_equality_of_columns(parent)
    });
    if parent.primary_key.as_ref().is_some_and(|key| is_same(key.columns.clone()))
        || unique.any(|index| is_same(positions(index)))
    {
        return Ok(());
    }
    let mut deferrable = parent.indexes.iter().filter(|index| index.timing.is_deferrable());
    if deferrable.any(|index| is_same(positions(index))) {
        return Err(deferrable_parent("unique constraint", parent));
    }
    let message = format!(
        "there is no unique constraint matching given keys for referenced table \"{}\"",
        parent.name
    );
    Err(SqlError::new(SqlState::InvalidForeignKey, message))
}

/// Returns an error if a column cannot be compared with the one that it refers to.
fn check_compatible(
    table: &Table,
    (columns, new): (&[usize], &NewForeignKey),
    parent: &Table,
    parent_columns: &[usize],
) -> Result<()> {
    for (&child, &parent_column) in columns.iter().zip(parent_columns) {
        let (a, b) = (&table.columns[child], &parent.columns[parent_column]);
        if !can_refer(a.data_type, b.data_type) {
            let name = table.constraint_name(new.name.as_ref(), &new.columns, "fkey")?;
            let message = format!("foreign key constraint \"{name}\" cannot be implemented");
            let detail = format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                a.name, b.name, a.data_type, b.data_type
            );
            return Err(SqlError::new(SqlState::DatatypeMismatch, message).with_detail(detail));
        }
    }
    Ok(())
}

/// Returns an error if an action would change a generated column.
fn check_generated(table: &Table, columns: &[usize], new: &NewForeignKey) -> Result<()> {
    use ForeignKeyAction::{Cascade, SetDefault, SetNull};
    if !columns.iter().any(|&position| table.columns[position].generated.is_some()) {
        return Ok(());
    }
    let on = if matches!(new.on_update, Cascade | SetNull | SetDefault) {
        "UPDATE"
    } else if matches!(new.on_delete, SetNull | SetDefault) {
        "DELETE"
    } else {
        return Ok(());
    };
    let message =
        format!("invalid ON {on} action for foreign key constraint containing generated column");
    Err(SqlError::new(SqlState::SyntaxError, message))
}
