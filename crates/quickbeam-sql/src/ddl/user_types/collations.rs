//! CREATE, ALTER and DROP of collations.

use std::sync::Arc;

use quickbeam::Transaction;

use crate::catalog::{Catalog, DropBehavior};
use crate::ddl::change::CatalogChange;
use crate::ddl::depended;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::names::{lookup_name, split_lookup_name};
use crate::schema::{MadeCollation, ObjectId};

/// The error for a collation whose name is taken.
#[cold]
pub(crate) fn collation_exists(name: &str) -> SqlError {
    let message = format!("collation \"{}\" already exists", split_lookup_name(name).1);
    SqlError::new(SqlState::DuplicateObject, message)
}

impl CatalogChange<'_> {
    fn check_collation_free(&self, name: &str) -> Result<()> {
        self.check_place(name)?;
        match self.before.collation_named(name) {
            Some(_) => Err(collation_exists(name)),
            None => Ok(()),
        }
    }
}

impl Catalog {
    /// CREATE COLLATION.
    pub fn create_collation(
        &self,
        transaction: &Transaction,
        mut made: MadeCollation,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        change.check_collation_free(&made.lookup_name())?;
        made.id = change.new_id()?;
        change.put_collation(made)
    }

    /// ALTER COLLATION: gives a collation its new definition.
    pub fn alter_collation(&self, transaction: &Transaction, made: MadeCollation) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let old = change.before.collations.get(&made.id).map(|it| it.lookup_name());
        if old.unwrap_or_default() != made.lookup_name() {
            change.check_collation_free(&made.lookup_name())?;
        }
        change.put_collation(made)
    }

    /// DROP COLLATION. With CASCADE, the columns of the collations go, too.
    pub fn drop_collations(
        &self,
        transaction: &Transaction,
        collations: &[Arc<MadeCollation>],
        behavior: DropBehavior,
    ) -> Result<()> {
        let ids: Vec<ObjectId> = collations.iter().map(|it| it.id).collect();
        for made in collations {
            let snapshot = self.snapshot(transaction)?;
            for (table, column) in snapshot.columns_of_collation(made.id) {
                if behavior == DropBehavior::Restrict {
                    let by = format!("column {} of table {}", column.name, table.name);
                    return Err(depended(&format!("collation {}", made.name), &by));
                }
                let table = table.lookup_name();
                self.drop_column(transaction, &table, &column.name, (behavior, &[]))?;
            }
            let snapshot = self.snapshot(transaction)?;
            for (table, index) in snapshot.indexes_of_collation(made.id) {
                if behavior == DropBehavior::Restrict {
                    let by = format!("index {}", index.name);
                    return Err(depended(&format!("collation {}", made.name), &by));
                }
                let (name, cascade) = (lookup_name(&table.schema, &index.name), true);
                self.drop_index(transaction, &name, cascade)?;
            }
        }
        let change = CatalogChange::begin(self, transaction)?;
        ids.into_iter().try_for_each(|id| change.remove(id))
    }
}
