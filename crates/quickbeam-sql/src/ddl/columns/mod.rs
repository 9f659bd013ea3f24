//! ALTER TABLE: columns.
//!
//! Adding and dropping a column rewrites no row: the table gets another layout, and rows of the old
//! ones stay as they are (ROW-1). Only where each row needs a value of its own, or the key changes,
//! rows are written again.

mod types;

use std::collections::BTreeMap;
use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use crate::catalog::Catalog;
use crate::catalog::DropBehavior;
use crate::ddl::StoredTexts;
use crate::ddl::change::{CatalogChange, check_columns, check_name};
use crate::error::{Result, SqlError, SqlState};
use crate::handle::index_tree;
use crate::schema::encoding::{Layout, StoredRow};
use crate::schema::errors::{column_exists, system_column_exists};
use crate::schema::{Added, NewColumn, ObjectId, SYSTEM_COLUMNS};
use crate::schema::{Column, EXPRESSIONS, ForeignKey, Table, Trigger};
use crate::types::{DataType, TextSettings, Value};

/// Computes a column's value for a stored row.
type RowValue<'f> = dyn FnMut(StoredRow<'_>) -> Result<Value> + 'f;

/// Layouts that a table may have had.
const LAYOUT_LIMIT: u16 = u16::MAX;

impl Table {
    /// The layout that goes with the columns as they are now; rows of the one before may be there.
    pub(super) fn renew_layout(&mut self) -> Result<()> {
        let number = self.layouts.current.number;
        if number == LAYOUT_LIMIT {
            let message =
                format!("columns of table \"{}\" were added and dropped too often", self.name);
            return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
        }
        let all = self.columns.iter().map(|column| (column.id, column.data_type)).collect();
        let mut older = vec![self.layouts.current.clone()];
        older.append(&mut self.layouts.older);
        self.layouts.older =
            older.iter().map(|layout| Arc::new(layout.seen_by(&self.columns))).collect();
        self.layouts.current = Arc::new(Layout::new(number + 1, all, &self.columns));
        Ok(())
    }
}

/// Refuses rows of a table as values of its own columns.
pub(super) fn refuse_own_rows(table: &Table, data_type: DataType) -> Result<()> {
    if !data_type.is_of_rows(table.id.0) {
        return Ok(());
    }
    let message = format!("composite type {} cannot be made a member of itself", table.name);
    Err(SqlError::new(SqlState::InvalidTableDefinition, message))
}

impl Catalog {
    /// ALTER TABLE … ADD COLUMN. Of an identity column `added` is not looked at: every row gets a
    /// value of its sequence.
    pub fn add_column(
        &self,
        transaction: &Transaction,
        table: &str,
        new: &NewColumn,
        added: Added<'_>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        if table.column(&new.name).is_some() {
            return Err(column_exists(&table.name, &new.name));
        }
        refuse_own_rows(&table, new.data_type)?;
        let mut names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        names.push(&new.name);
        check_columns(&names)?;
        let id = table.next_column;
        table.next_column = id.checked_add(1).ok_or_else(|| {
            SqlError::new(SqlState::TooManyColumns, "no numbers are left for columns")
        })?;
        let mut column = change.new_column(
            (table.id, &table.schema.clone(), &table.name.clone()),
            id,
            new,
            &mut Vec::new(),
        )?;
        let sequence = match column.identity {
            Some(identity) => Some(change.made_sequence(identity.sequence)?),
            None => None,
        };
        let from_sequence = || match &sequence {
            Some(sequence) => {
                let value = self.next_value(transaction, sequence)?;
                {
                    let settings = &TextSettings::DEFAULT;
                    crate::types::assign(Value::BigInt(value).as_ref(), new.data_type, settings)
                }
            }
            None => Ok(Value::Null),
        };
        let mut given;
        let mut of_sequence = |_: StoredRow<'_>| from_sequence();
        let each: Option<&mut RowValue<'_>> = match (&sequence, added) {
            (Some(_), _) => Some(&mut of_sequence),
            (None, Added::Generated(each)) => Some(each),
            (None, Added::Each(each)) => {
                given = move |_: StoredRow<'_>| each();
                Some(&mut given)
            }
            (None, Added::Same(value)) => {
                column.missing = value;
                None
            }
        };
        let is_missing = each.is_none() && column.missing.is_null();
        if column.not_null && is_missing {
            change.refuse_rows(&table, &column.name)?;
        }
        change.set_serial_default(&mut column, new)?;
        table.columns.push(column);
        table.set_generated(table.columns.len() - 1, new)?;
        table.renew_layout()?;
        change.regenerate(&mut table)?;
        change.put_table(&table)?;
        match each {
            Some(each) => change.write_each(&table, each),
            None => Ok(()),
        }
    }

    /// ALTER TABLE … DROP COLUMN. Indexes and constraints of the table that have the column go with
    /// it. `cascade`: foreign keys of other tables that point to it, and views that read the table
    /// but for the `spared` ones, go too.
    pub fn drop_column(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        (behavior, spared): (DropBehavior, &[ObjectId]),
    ) -> Result<()> {
        let cascade = behavior == DropBehavior::Cascade;
        let (change, mut table, position) =
            CatalogChange::of_column(self, transaction, table, column)?;
        let id = table.columns[position].id;
        let what = format!("column {column} of table {}", table.name);
        let reads_it =
            |other: &&Column| other.generated.as_ref().is_some_and(|reads| reads.contains(&id));
        if let Some(reader) = table.columns.iter().find(reads_it).map(|it| it.name.clone()) {
            if !cascade {
                let by = format!("column {reader} of table {}", table.name);
                return Err(crate::ddl::tables::depended(&what, &by));
            }
            // What reads the other column is not known here, so all views go.
            let all = (DropBehavior::Cascade, &[][..]);
            self.drop_column(transaction, &table.lookup_name(), &reader, all)?;
            return self.drop_column(transaction, &table.lookup_name(), column, all);
        }
        change.drop_dependents(table.id, spared, &what, cascade)?;
        change.drop_triggers_of_column(&table, (id, &what), cascade)?;
        // A foreign key of the column itself goes with it, also where it points to its own table.
        let own = table.id;
        table.foreign_keys.retain(|key| key.parent != own || !key.columns.contains(&position));
        change
            .drop_references(&mut table, &what, cascade, |key| key.parent_columns.contains(&id))?;
        let key_goes = table.primary_key.as_ref().is_some_and(|k| k.columns.contains(&position));
        if key_goes {
            change.rebuild(&mut table, None)?;
        }
        for index in std::mem::take(&mut table.indexes) {
            let has_column = index.columns.iter().any(|column| column.position == position);
            if has_column || index.include.contains(&position) || index.computes_from(id) {
                change.transaction.drop_database(&index_tree(index.id))?;
            } else {
                table.indexes.push(index);
            }
        }
        table.checks.retain(|check| !check.columns.contains(&id));
        let (gone, kept): (Vec<ForeignKey>, Vec<ForeignKey>) =
            table.foreign_keys.drain(..).partition(|key| key.columns.contains(&position));
        table.foreign_keys = kept;
        for key in gone.iter().filter(|key| key.parent != table.id) {
            change.regenerate_other(key.parent)?;
        }
        for sequence in change.before.sequences.values() {
            if sequence.owned_by == Some((table.id, id)) {
                change.remove(sequence.id)?;
            }
        }
        table.columns.remove(position);
        table.shift_positions(position);
        table.renew_layout()?;
        change.regenerate(&mut table)?;
        change.put_table(&table)
    }

    /// ALTER TABLE … RENAME COLUMN. `rewrite` gives the text of a CHECK with the new name in the
    /// place of the old one.
    pub(crate) fn rename_column(
        &self,
        transaction: &Transaction,
        table: &str,
        (from, to): (&str, &str),
        rewrite: &dyn Fn(&str) -> Result<String>,
        texts: &StoredTexts<'_>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(table)?;
        let position = table.known_column(from)?;
        if table.column(to).is_some() {
            return Err(column_exists(&table.name, to));
        }
        check_name(to)?;
        if SYSTEM_COLUMNS.contains(&to) {
            return Err(system_column_exists(to));
        }
        let id = table.columns[position].id;
        table.columns[position].name = to.into();
        for check in table.checks.iter_mut().filter(|check| check.columns.contains(&id)) {
            check.expression = rewrite(&check.expression)?.into();
        }
        for index in table.indexes.iter_mut().filter(|index| index.computes_from(id)) {
            let index = Arc::make_mut(index);
            let expressions = index.expressions.iter_mut().map(|it| &mut it.text);
            for text in expressions.chain(index.predicate.iter_mut().map(|it| &mut it.text)) {
                *text = rewrite(text)?.into();
            }
        }
        for trigger in table.triggers.iter().filter(|it| it.reads.contains(&id)) {
            let rewritten = trigger.condition.as_deref().map(rewrite).transpose()?;
            let condition = rewritten.map(Into::into);
            change.put_trigger(Trigger { condition, ..(**trigger).clone() })?;
        }
        for column in &mut table.columns {
            if let (Some(reads), Some(text)) = (&column.generated, &mut column.default)
                && reads.contains(&id)
            {
                *text = rewrite(text)?.into();
            }
        }
        change.rewrite_texts([(table.id, table)].into(), BTreeMap::new(), texts)
    }

    /// ALTER TABLE … ALTER COLUMN … SET or DROP DEFAULT.
    pub fn set_default(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        default: Option<Arc<str>>,
    ) -> Result<()> {
        let (change, mut table, position) =
            CatalogChange::of_column(self, transaction, table, column)?;
        if table.columns[position].identity.is_some() {
            let message =
                format!("column \"{column}\" of relation \"{}\" is an identity column", table.name);
            let error = SqlError::new(SqlState::SyntaxError, message);
            return Err(match default {
                None => {
                    error.with_hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
                }
                Some(_) => error,
            });
        }
        if table.columns[position].generated.is_some() {
            let message =
                format!("column \"{column}\" of relation \"{}\" is a generated column", table.name);
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        table.columns[position].default = default;
        change.put_table(&table)
    }

    /// ALTER TABLE … ALTER COLUMN … SET or DROP NOT NULL.
    pub fn set_not_null(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        not_null: bool,
    ) -> Result<()> {
        let (change, mut table, position) =
            CatalogChange::of_column(self, transaction, table, column)?;
        let in_key = table.primary_columns().is_some_and(|it| it.contains(&position));
        if !not_null && in_key {
            let message = format!("column \"{column}\" is in a primary key");
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
        if !not_null && table.columns[position].identity.is_some() {
            let message =
                format!("column \"{column}\" of relation \"{}\" is an identity column", table.name);
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        if not_null {
            change.refuse_nulls(&table, &[position])?;
        }
        table.columns[position].not_null = not_null;
        change.regenerate(&mut table)?;
        change.put_table(&table)
    }
}

impl Table {
    /// Positions after the column that was at `gone`, which is referred to nowhere any more.
    fn shift_positions(&mut self, gone: usize) {
        let shift = |position: &mut usize| *position -= usize::from(*position > gone);
        if let Some(key) = &mut self.primary_key {
            key.columns.iter_mut().for_each(shift);
        }
        for index in &mut self.indexes {
            let index = Arc::make_mut(index);
            let columns = index.columns.iter_mut().map(|column| &mut column.position);
            columns.filter(|position| **position < EXPRESSIONS).for_each(shift);
            index.include.iter_mut().for_each(shift);
        }
        for key in &mut self.foreign_keys {
            key.columns.iter_mut().for_each(shift);
        }
    }
}

#[cold]
fn has_nulls(table: &Table, column: &str) -> SqlError {
    let message =
        format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    SqlError::new(SqlState::NotNullViolation, message)
}

impl CatalogChange<'_> {
    /// An error if the table has any row.
    fn refuse_rows(&self, table: &Table, column: &SmolStr) -> Result<()> {
        self.for_each_row(&*self.handle(table.id)?, |_, _| Err(has_nulls(table, column)))
    }

    /// An error if a row of the table has NULL in one of these columns.
    pub(crate) fn refuse_nulls(&self, table: &Table, positions: &[usize]) -> Result<()> {
        let checked: Vec<usize> = positions
            .iter()
            .copied()
            .filter(|&position| table.columns.get(position).is_some_and(|c: &Column| !c.not_null))
            .collect();
        if checked.is_empty() {
            return Ok(());
        }
        self.for_each_row(&*self.handle(table.id)?, |_, row| {
            match checked.iter().find(|&&position| row.is_null(position)) {
                None => Ok(()),
                Some(&position) => Err(has_nulls(table, &table.columns[position].name)),
            }
        })
    }

    /// Writes every row again, with a value of its own in the last column.
    fn write_each(&self, table: &Table, each: &mut RowValue<'_>) -> Result<()> {
        // The tree has its new name already.
        let shared = Arc::new(table.clone());
        let handle = crate::handle::TableHandle::open_rows(self.transaction, &shared)?;
        let last = table.columns.len() - 1;
        let mut bytes = Vec::new();
        self.for_each_row(&handle, |key, row| {
            let mut values = row.to_values()?;
            values[last] = each(row)?;
            if table.columns[last].not_null && values[last].is_null() {
                return Err(has_nulls(table, &table.columns[last].name));
            }
            bytes.clear();
            table.encode_values(&mut bytes, &values)?;
            Ok(handle.database().put(self.transaction, key, &bytes)?)
        })
    }

    /// Foreign keys, of any table, that point to this one and are such: they go, or are an error.
    pub(crate) fn drop_references(
        &self,
        table: &mut Table,
        what: &str,
        cascade: bool,
        is_such: impl Fn(&ForeignKey) -> bool,
    ) -> Result<()> {
        let id = table.id;
        let points = |key: &ForeignKey| key.parent == id && is_such(key);
        for reference in &table.referenced_by {
            let mut child =
                if reference.child == id { table.clone() } else { self.latest(reference.child)? };
            if !child.foreign_keys.iter().any(points) {
                continue;
            }
            if !cascade {
                return Err(crate::ddl::tables::depended(what, &format!("table {}", child.name)));
            }
            child.foreign_keys.retain(|key| !points(key));
            if reference.child == id {
                table.foreign_keys = child.foreign_keys;
                return self.drop_references(table, what, cascade, is_such);
            }
            self.regenerate(&mut child)?;
            self.put_table(&child)?;
        }
        Ok(())
    }
}
