//! CREATE, ALTER and DROP SCHEMA.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_name};
use crate::catalog::{Catalog, CatalogSnapshot, DropBehavior};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::{no_schema, schema_exists};
use crate::schema::{ObjectId, Schema, Sequence, Table, View};

impl Catalog {
    /// CREATE SCHEMA.
    pub fn create_schema(&self, transaction: &Transaction, name: &SmolStr) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        change.check_schema_free(name)?;
        change.put_schema(Schema { id: change.new_id()?, name: name.clone() })
    }

    /// Makes the schema of a session's temporary objects.
    pub(crate) fn create_temporary_schema(
        &self,
        transaction: &Transaction,
        name: &SmolStr,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        change.put_schema(Schema { id: change.new_id()?, name: name.clone() })
    }

    /// Drops a schema of temporary objects with all that is in it.
    pub(crate) fn drop_temporary(&self, transaction: &Transaction, schema: &SmolStr) -> Result<()> {
        let before = self.snapshot(transaction)?;
        if !before.has_schema(schema) {
            return Ok(());
        }
        // A view may go with another one.
        let view = |snapshot: &CatalogSnapshot| {
            snapshot.views.values().find(|it| it.schema == *schema).map(|it| it.lookup_name())
        };
        while let Some(name) = view(&*self.snapshot(transaction)?) {
            self.drop_views(transaction, &[name], DropBehavior::Cascade)?;
        }
        let tables = before.tables().filter(|it| it.schema == *schema).map(|it| it.lookup_name());
        let tables: Vec<SmolStr> = tables.collect();
        if !tables.is_empty() {
            self.drop_tables(transaction, &tables, DropBehavior::Cascade)?;
        }
        let after = self.snapshot(transaction)?;
        let sequences = after.sequences.values().filter(|it| it.schema == *schema);
        let sequences: Vec<SmolStr> = sequences.map(|it| it.lookup_name()).collect();
        if !sequences.is_empty() {
            self.drop_sequences(transaction, &sequences, DropBehavior::Cascade)?;
        }
        self.drop_schemas(transaction, std::slice::from_ref(schema))
    }

    /// ALTER SCHEMA … RENAME TO.
    pub fn rename_schema(&self, transaction: &Transaction, from: &str, to: &SmolStr) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let schema = change.before.schemas.get(from).ok_or_else(|| no_schema(from))?.clone();
        change.check_schema_free(to)?;
        let before = &change.before;
        // Views, defaults and checks name the schema in their text.
        let mut ids: Vec<ObjectId> = Vec::new();
        ids.extend(before.tables.values().filter(|it| it.schema == from).map(|it| it.id));
        ids.extend(before.views.values().filter(|it| it.schema == from).map(|it| it.id));
        for id in ids {
            change.refuse_views(id, &format!("schema {from}"), "renaming")?;
        }
        let names_it = |text: &Arc<str>| text.contains(from);
        for table in before.tables.values() {
            let defaults = table.columns.iter().filter_map(|column| column.default.as_ref());
            if defaults.chain(table.checks.iter().map(|it| &it.expression)).any(names_it) {
                let what = format!("renaming schema {from} while table {} names it", table.name);
                return Err(SqlError::unsupported(what));
            }
        }
        for table in before.tables.values().filter(|table| table.schema == from) {
            change.put_table(&Table { schema: to.clone(), ..(**table).clone() })?;
        }
        for view in before.views.values().filter(|view| view.schema == from) {
            change.put_view(View { schema: to.clone(), ..(**view).clone() })?;
        }
        for sequence in before.sequences.values().filter(|sequence| sequence.schema == from) {
            change.put_sequence(Sequence { schema: to.clone(), ..(**sequence).clone() })?;
        }
        change.put_schema(Schema { name: to.clone(), ..schema })
    }

    /// Removes schemas, which are empty.
    pub fn drop_schemas(&self, transaction: &Transaction, names: &[SmolStr]) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        for name in names {
            let schema = change.before.schemas.get(name).ok_or_else(|| no_schema(name))?;
            change.remove(schema.id)?;
        }
        Ok(())
    }
}

impl CatalogChange<'_> {
    fn check_schema_free(&self, name: &str) -> Result<()> {
        check_name(name)?;
        if name.starts_with("pg_") {
            let message = format!("unacceptable schema name \"{name}\"");
            return Err(SqlError::new(SqlState::ReservedName, message)
                .with_detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        if self.before.has_schema(name) { Err(schema_exists(name)) } else { Ok(()) }
    }
}
