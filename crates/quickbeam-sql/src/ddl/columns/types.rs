//! ALTER TABLE … ALTER COLUMN … TYPE, and identity columns of existing tables.
//!
//! A column of another type keeps its number. Every row is written again, so no row of an older
//! layout remains.

use std::sync::Arc;

use quickbeam::Transaction;

use crate::catalog::Catalog;
use crate::ddl::change::{CatalogChange, check_key_type};
use crate::ddl::indexes::renew;
use crate::error::{Result, SqlError, SqlState};
use crate::handle::{TableHandle, index_tree, rows_tree};
use crate::schema::encoding::StoredRow;
use crate::schema::errors::inverted_class;
use crate::schema::{
    Column, DeclaredType, EXPRESSIONS, Identity, Index, KeyColumn, Method, NewColumn, NewIdentity,
    OperatorClasses, SequenceChanges, Table,
};
use crate::table::can_refer;
use crate::table::check_not_null;
use crate::types::{Collation, DataType, Value};

/// Computes a new row of a stored one.
pub type RowChange<'c> = dyn FnMut(StoredRow<'_>) -> Result<Vec<Value>> + 'c;

impl Catalog {
    /// ALTER TABLE … ALTER COLUMN … TYPE. `each` computes the rows with values of the new type.
    pub fn set_type(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        declared: DeclaredType,
        each: &mut RowChange<'_>,
    ) -> Result<()> {
        let (change, old, position) = CatalogChange::of_column(self, transaction, table, column)?;
        let what = format!("column {column} of table {}", old.name);
        change.refuse_views(old.id, &what, "altering the type of")?;
        super::refuse_own_rows(&old, declared.data_type)?;
        let id = old.columns[position].id;
        let mut others = old.columns.iter().filter_map(|other| other.generated.as_ref());
        if others.any(|reads| reads.contains(&id)) {
            let message = "cannot alter type of a column used by a generated column";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        if let Some(trigger) = old.triggers.iter().find(|it| it.depends_on(id)) {
            let message = "cannot alter type of a column used in a trigger definition";
            let shown = change.shown_trigger(trigger);
            let detail = format!("{shown} depends on column \"{column}\"");
            return Err(SqlError::new(SqlState::FeatureNotSupported, message).with_detail(detail));
        }
        let mut table = old.clone();
        let altered = &mut table.columns[position];
        (altered.data_type, altered.domain) = (declared.data_type, declared.domain);
        let collation = altered.collation.take();
        altered.missing = Value::Null;
        change.retype_identity(&table, position)?;
        let keys = table.primary_key.iter().flat_map(|key| key.columns.iter().copied());
        let indexed = table.indexes.iter().flat_map(|i| i.columns.iter().map(|c| c.position));
        if keys.chain(indexed).any(|used| used == position) {
            table.check_key_type(position)?;
        }
        reclass_indexes(&mut table, position)?;
        recollate_indexes(&mut table, position, collation);
        change.check_foreign_key_types(&table, position)?;
        change.retype_indexes(&mut table, id)?;
        change.rewrite(&old, &mut table, each)?;
        change.put_table(&table)
    }

    /// ALTER TABLE … ALTER COLUMN … ADD GENERATED … AS IDENTITY.
    pub fn add_identity(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        new: &NewIdentity,
    ) -> Result<()> {
        let (change, mut table, position) =
            CatalogChange::of_column(self, transaction, table, column)?;
        let known = &table.columns[position];
        let state = |what: &str| {
            let message = format!("column \"{column}\" of relation \"{}\" {what}", table.name);
            Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message))
        };
        check_identity_type(known.data_type)?;
        if !known.not_null {
            return state("must be declared NOT NULL before identity can be added");
        }
        if known.identity.is_some() {
            return state("is already an identity column");
        }
        if known.default.is_some() {
            return state("already has a default value");
        }
        let mut options = new.options.clone();
        options.data_type = Some(known.data_type);
        let owner = Some((table.id, known.id));
        let parts = [table.name.as_str(), column];
        let name = change.identity_name(&table.schema, &options, &parts, &[])?;
        let sequence = change.define_sequence(&name, &options, owner)?;
        table.columns[position].identity = Some(Identity { always: new.always, sequence });
        change.put_table(&table)
    }

    /// ALTER TABLE … ALTER COLUMN … DROP IDENTITY. The sequence goes, too.
    pub fn drop_identity(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        if_exists: bool,
    ) -> Result<()> {
        let (change, mut table, position) =
            CatalogChange::of_column(self, transaction, table, column)?;
        match table.columns[position].identity.take() {
            Some(identity) => change.remove(identity.sequence)?,
            None if if_exists => return Ok(()),
            None => return Err(no_identity(&table, column)),
        }
        change.put_table(&table)
    }

    /// ALTER TABLE … ALTER COLUMN … DROP EXPRESSION. The values stay.
    pub fn drop_expression(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        if_exists: bool,
    ) -> Result<()> {
        let (change, mut table, position) =
            CatalogChange::of_column(self, transaction, table, column)?;
        if table.columns[position].generated.take().is_none() {
            if if_exists {
                return Ok(());
            }
            let message = format!(
                "column \"{column}\" of relation \"{}\" is not a stored generated column",
                table.name
            );
            return Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message));
        }
        table.columns[position].default = None;
        change.regenerate(&mut table)?;
        change.put_table(&table)
    }

    /// ALTER TABLE … ALTER COLUMN … SET GENERATED, and changes of the column's sequence.
    pub fn set_identity(
        &self,
        transaction: &Transaction,
        table: &str,
        column: &str,
        always: Option<bool>,
        changes: &SequenceChanges,
    ) -> Result<()> {
        let (change, mut table, position) =
            CatalogChange::of_column(self, transaction, table, column)?;
        let Some(identity) = &mut table.columns[position].identity else {
            return Err(no_identity(&table, column));
        };
        let sequence = identity.sequence;
        if let Some(always) = always {
            identity.always = always;
            change.put_table(&table)?;
        }
        match change.before.sequence(sequence) {
            Some(sequence) if *changes != SequenceChanges::default() => {
                self.alter_sequence(transaction, &sequence.lookup_name(), changes)
            }
            _ => Ok(()),
        }
    }
}

impl Table {
    /// Gives a column the numbers of the columns that its expression reads.
    pub(in crate::ddl) fn set_generated(&mut self, position: usize, new: &NewColumn) -> Result<()> {
        let Some(generated) = &new.generated else { return Ok(()) };
        let reads = self.known_columns(&generated.columns)?;
        let reads = reads.into_iter().map(|position| self.columns[position].id).collect();
        self.columns[position].generated = Some(reads);
        Ok(())
    }
}

#[cold]
pub(crate) fn no_identity(table: &Table, column: &str) -> SqlError {
    let message =
        format!("column \"{column}\" of relation \"{}\" is not an identity column", table.name);
    SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
}

fn check_identity_type(data_type: DataType) -> Result<()> {
    if data_type.is_integer() {
        return Ok(());
    }
    let message = "identity column type must be smallint, integer, or bigint";
    Err(SqlError::new(SqlState::InvalidParameterValue, message))
}

/// Gives the indexes of a column its collation in the place of the one before.
fn recollate_indexes(table: &mut Table, position: usize, before: Option<Collation>) {
    let own = table.columns.get(position).and_then(Column::key_collation);
    for index in &mut table.indexes {
        let is_of_column = |key: &KeyColumn| {
            key.position == position && key.collation.is_some() && key.collation == before
        };
        if index.columns.iter().any(is_of_column) {
            let columns = Arc::make_mut(index).columns.iter_mut();
            columns.filter(|key| is_of_column(key)).for_each(|key| key.collation = own);
        }
    }
}

/// Gives the inverted indexes of a column the operator class of its type.
fn reclass_indexes(table: &mut Table, position: usize) -> Result<()> {
    let now = table.clone();
    table.indexes.iter_mut().try_for_each(|index| reclass_index(index, &now, position))
}

/// Gives keys of an inverted index the operator class of the type that the column at a position
/// has, unless they have a class that is not the default.
fn reclass_index(index: &mut Arc<Index>, table: &Table, position: usize) -> Result<()> {
    let Some(classes) = index.inverted() else { return Ok(()) };
    let Some(data_type) = index.key_type(table, position) else { return Ok(()) };
    let keys = index.columns.iter().zip(classes.iter());
    let reclassed = keys.map(|(key, class)| match key.position == position {
        true => inverted_class(Some(class).filter(|class| !class.is_default()), data_type),
        false => Ok(class),
    });
    let classes = OperatorClasses::of(reclassed.collect::<Result<Vec<_>>>()?);
    Arc::make_mut(index).method = Method::Inverted(classes);
    Ok(())
}

impl CatalogChange<'_> {
    /// Gives the sequence of an identity column the column's type.
    fn retype_identity(&self, table: &Table, position: usize) -> Result<()> {
        let column = &table.columns[position];
        let Some(identity) = column.identity else { return Ok(()) };
        check_identity_type(column.data_type)?;
        let Some(sequence) = self.before.sequence(identity.sequence) else { return Ok(()) };
        let mut sequence = (**sequence).clone();
        sequence.set_type(column.data_type)?;
        self.put_sequence(sequence)
    }

    /// Checks that the columns of foreign keys on both sides still have comparable types.
    fn check_foreign_key_types(&self, table: &Table, position: usize) -> Result<()> {
        let id = table.columns[position].id;
        let check = |child: &Table, parent: &Table| -> Result<()> {
            for key in child.foreign_keys.iter().filter(|key| key.parent == parent.id) {
                for (&from, &to) in key.columns.iter().zip(&key.parent_columns) {
                    let touched = (child.id == table.id && from == position)
                        || (parent.id == table.id && to == id);
                    let Some(to) = parent.position_of(to).filter(|_| touched) else { continue };
                    let (a, b) = (&child.columns[from], &parent.columns[to]);
                    if !can_refer(a.data_type, b.data_type) {
                        let message = format!(
                            "foreign key constraint \"{}\" cannot be implemented",
                            key.name
                        );
                        return Err(SqlError::new(SqlState::DatatypeMismatch, message).with_detail(
                            format!(
                                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                                a.name, b.name, a.data_type, b.data_type
                            ),
                        ));
                    }
                }
            }
            Ok(())
        };
        for key in &table.foreign_keys {
            match key.parent == table.id {
                true => check(table, table)?,
                false => check(table, &self.latest(key.parent)?)?,
            }
        }
        for reference in &table.referenced_by {
            if reference.child != table.id {
                check(&self.latest(reference.child)?, table)?;
            }
        }
        Ok(())
    }

    /// Gives the expressions of indexes that read a column the types that they have now.
    fn retype_indexes(&self, table: &mut Table, column: u16) -> Result<()> {
        let now = Arc::new(table.clone());
        for index in table.indexes.iter_mut().filter(|index| index.computes_from(column)) {
            let types = self.before.index_compiler()?.types(&now, index)?;
            let changed = Arc::make_mut(index);
            for key in &mut changed.columns {
                let number = key.position.checked_sub(EXPRESSIONS);
                if let Some((_, collation)) = number.and_then(|number| types.get(number)) {
                    key.collation = key.collation.and(*collation);
                }
            }
            for (expression, (data_type, _)) in changed.expressions.iter_mut().zip(types) {
                check_key_type(&expression.name, data_type)?;
                expression.data_type = data_type;
            }
            for at in EXPRESSIONS..EXPRESSIONS + index.expressions.len() {
                reclass_index(index, &now, at)?;
            }
        }
        Ok(())
    }

    /// Writes every row of a table again, as the new definition has it, and all its indexes. The
    /// table's tree is another one afterwards.
    pub(crate) fn rewrite(
        &self,
        old: &Table,
        table: &mut Table,
        each: &mut RowChange<'_>,
    ) -> Result<()> {
        let transaction = self.transaction;
        let before = TableHandle::open_rows(transaction, &Arc::new(old.clone()))?;
        table.renew_layout()?;
        table.layouts.older.clear();
        table.generation += 1;
        let rows = transaction.create_database_with(&rows_tree(table), table.access_method())?;
        let after = TableHandle::of_database(Arc::new(table.clone()), rows);
        let (mut new_key, mut bytes) = (Vec::new(), Vec::new());
        self.for_each_row(&before, |key, row| {
            let values = each(row)?;
            bytes.clear();
            table.encode_values(&mut bytes, &values)?;
            let row = StoredRow::new(table, &bytes)?;
            check_not_null(table, row)?;
            new_key.clear();
            match after.key().parts.is_empty() {
                true => new_key.extend_from_slice(key),
                false => after.key().encode_with(&mut new_key, |position| row.get(position))?,
            }
            if after.database().put_if_absent(transaction, &new_key, &bytes)? {
                return Ok(());
            }
            let name = table.primary_key.as_ref().map_or("", |key| key.name.as_str());
            let message = format!("could not create unique index \"{name}\"");
            Err(SqlError::new(SqlState::UniqueViolation, message).of_constraint(name))
        })?;
        transaction.drop_database(&rows_tree(old))?;
        for index in &mut table.indexes {
            renew(index);
            transaction.drop_database(&index_tree(index.id))?;
            self.fill_index(&after, index)?;
        }
        self.is_regenerated(table.id);
        Ok(())
    }
}
