//! CREATE INDEX, DROP INDEX and REINDEX.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_key_type};
use crate::catalog::Catalog;
use crate::error::{Result, SqlError, SqlState};
use crate::handle::index_tree;
use crate::schema::NewIndex;
use crate::schema::{
    ConstraintTiming, EXPRESSIONS, Index, IndexExpression, IndexPredicate, KeyColumn, Method,
    ObjectId, Table,
};
use crate::types::collation::LIBRARY_VERSION;

/// Most columns of an index.
const COLUMN_LIMIT: usize = 32;

impl Catalog {
    /// CREATE INDEX: fills it from the rows that are there. Its name.
    pub fn create_index(&self, transaction: &Transaction, new: &NewIndex) -> Result<SmolStr> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(&new.table)?;
        if new.columns.is_empty() || new.columns.len() > COLUMN_LIMIT {
            let message = format!("an index has 1 to {COLUMN_LIMIT} columns");
            return Err(SqlError::new(SqlState::TooManyColumns, message));
        }
        if new.method == Method::Hash && !new.include.is_empty() {
            let message = "access method \"hash\" does not support included columns";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        let mut columns = Vec::with_capacity(new.columns.len());
        let mut expressions = Vec::with_capacity(new.expressions.len());
        for (at, (name, descending, nulls_first)) in new.columns.iter().enumerate() {
            let (position, collation) = match new.expressions.iter().find(|(place, _)| *place == at)
            {
                None => {
                    let position = table.known_column(name)?;
                    table.check_key_type(position)?;
                    let named = new.collations.iter().find(|(place, _)| *place == at);
                    let own = || table.columns[position].key_collation();
                    (position, named.map_or_else(own, |(_, collation)| *collation))
                }
                Some((_, expression)) => {
                    check_key_type(name, expression.data_type)?;
                    expressions.push(IndexExpression {
                        name: name.clone(),
                        text: expression.text.clone(),
                        data_type: expression.data_type,
                        columns: table.numbers_of(&expression.columns)?,
                    });
                    (EXPRESSIONS + expressions.len() - 1, expression.collation)
                }
            };
            let is_plain = !descending && nulls_first.is_none();
            if new.method == Method::Hash && !is_plain {
                let message = "access method \"hash\" does not support ASC/DESC options";
                return Err(SqlError::new(SqlState::FeatureNotSupported, message));
            }
            let nulls_first = nulls_first.unwrap_or(*descending);
            // An inverted index has the keys of values, not texts in an order.
            let collation = collation.filter(|_| !matches!(new.method, Method::Inverted(_)));
            columns.push(KeyColumn { position, descending: *descending, nulls_first, collation });
        }
        let predicate = new.predicate.as_ref().map(|predicate| -> Result<_> {
            let columns = table.numbers_of(&predicate.columns)?;
            Ok(IndexPredicate { text: predicate.text.clone(), columns })
        });
        let mut parts = vec![table.name.as_str()];
        parts.extend(new.columns.iter().map(|column| column.0.as_str()));
        parts.extend(new.include.iter().map(SmolStr::as_str));
        let name = change.name_or_made(&table.schema, new.name.as_ref(), &parts, "idx", &[])?;
        let index = Arc::new(Index {
            id: change.new_id()?,
            name: name.clone(),
            collation_version: version_of(&columns),
            columns,
            unique: new.unique,
            method: new.method,
            is_constraint: false,
            include: table.known_columns(&new.include)?,
            nulls_not_distinct: new.nulls_not_distinct,
            expressions,
            predicate: predicate.transpose()?,
            timing: ConstraintTiming::NotDeferrable,
            is_primary: false,
        });
        change.fill_index(&*change.handle(table.id)?, &index)?;
        table.indexes.push(index);
        change.regenerate(&mut table)?;
        change.put_table(&table)?;
        Ok(name)
    }

    /// REINDEX: builds the indexes of a table again from its rows, or only the one of that number.
    /// An error (`23505`) if two rows have the same key of a unique index.
    pub fn rebuild_indexes(
        &self,
        transaction: &Transaction,
        table: ObjectId,
        only: Option<ObjectId>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.latest(table)?;
        let handle = change.handle(table.id)?;
        let is_meant = |index: &Index| only.is_none_or(|only| only == index.id);
        let mut is_renewed = false;
        for index in table.indexes.iter_mut().filter(|index| is_meant(index)) {
            is_renewed |= index.is_stale();
            renew(index);
            change.refill_index(&handle, index)?;
        }
        if is_renewed {
            change.regenerate(&mut table)?;
            change.put_table(&table)?;
        }
        Ok(())
    }

    /// DROP INDEX. `cascade`: foreign keys that need it go, too.
    pub fn drop_index(&self, transaction: &Transaction, name: &str, cascade: bool) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let (table, index) = change.before.index_named(name)?;
        let name = &index.name;
        if index.is_constraint {
            return Err(SqlError::new(
                SqlState::DependentObjectsStillExist,
                format!(
                    "cannot drop index {name} because constraint {name} on table {} requires it",
                    table.name
                ),
            )
            .with_hint(format!(
                "You can drop constraint {name} on table {} instead.",
                table.name
            )));
        }
        let mut table = (*table).clone();
        table.indexes.retain(|other| other.id != index.id);
        if index.unique && !index.is_computed() {
            let ids: Vec<u16> =
                index.columns.iter().map(|column| table.columns[column.position].id).collect();
            change.drop_references(&mut table, &format!("index {name}"), cascade, |key| {
                key.parent_columns.len() == ids.len()
                    && key.parent_columns.iter().all(|id| ids.contains(id))
            })?;
        }
        transaction.drop_database(&index_tree(index.id))?;
        change.regenerate(&mut table)?;
        change.put_table(&table)
    }
}

/// Returns the version of the library whose sort keys an index has, if it has any.
pub(super) fn version_of(columns: &[KeyColumn]) -> Option<SmolStr> {
    let has_keys = columns.iter().any(|column| column.collation.is_some());
    has_keys.then(|| SmolStr::new_static(LIBRARY_VERSION))
}

/// Gives an index that is filled again the version of the library that its sort keys are made by.
pub(super) fn renew(index: &mut Arc<Index>) {
    let version = version_of(&index.columns);
    if index.collation_version != version {
        Arc::make_mut(index).collation_version = version;
    }
}

impl Table {
    /// Returns the numbers of columns that have to be there.
    fn numbers_of(&self, names: &[SmolStr]) -> Result<Vec<u16>> {
        let number = |name: &SmolStr| Ok(self.columns[self.known_column(name)?].id);
        names.iter().map(number).collect()
    }
}
