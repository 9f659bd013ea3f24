//! REINDEX: builds indexes again from the rows of their tables.
//!
//! Above: the commands of a session. Below: the catalog. The engine keeps indexes right by itself.
//! They are built again after a salvage, which copies rows and entries separately: a row may be
//! lost while its entries are not.

use smol_str::SmolStr;

use super::not_in_transaction;
use super::relations::key_of_name;
use crate::bind::Binder;
use crate::catalog::rights::not_owner;
use crate::catalog::{ObjectId, Relation};
use crate::compile::CompileContext;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Name, ReindexTarget};
use crate::schema::errors::{is_not, no_relation};
use crate::session::Session;

/// A table, and the index that is built again; `None`: all of its indexes.
type Rebuilt = (ObjectId, Option<ObjectId>);

impl Session {
    /// Builds indexes again. Those of a schema or a database are committed table by table.
    pub(super) fn reindex(&self, target: &ReindexTarget) -> Result<()> {
        let in_all = |what: &str| match self.in_transaction() {
            true => Err(not_in_transaction(what)),
            false => Ok(()),
        };
        match target {
            ReindexTarget::Index(name) => {
                let index = self.read_catalog(|look| index_of(name, look))?;
                index.map_or(Ok(()), |index| self.rebuild(index))
            }
            ReindexTarget::Table(name) => {
                let table = self.read_catalog(|look| table_of(name, look))?;
                self.rebuild((table, None))
            }
            ReindexTarget::Schema(schema) => {
                in_all("REINDEX SCHEMA")?;
                self.rebuild_all(Some(schema))
            }
            ReindexTarget::Database => {
                in_all("REINDEX DATABASE")?;
                self.rebuild_all(None)
            }
            ReindexTarget::System => in_all("REINDEX SYSTEM"),
        }
    }

    /// Builds the indexes of all tables again that the role owns, or of those of a schema.
    fn rebuild_all(&self, schema: Option<&SmolStr>) -> Result<()> {
        let tables: Vec<ObjectId> = self.read_catalog(|look| {
            if let Some(schema) = schema.filter(|schema| !look.snapshot.has_schema(schema)) {
                let message = format!("schema \"{schema}\" does not exist");
                return Err(SqlError::new(SqlState::InvalidSchemaName, message));
            }
            let is_meant = |schema_of: &SmolStr| schema.is_none_or(|schema| schema == schema_of);
            let tables = look.snapshot.tables().filter(|table| {
                let is_owned = look.role.is_none_or(|role| look.snapshot.owns(role, table.id));
                !table.indexes.is_empty() && is_meant(&table.schema) && is_owned
            });
            Ok(tables.map(|table| table.id).collect())
        })?;
        tables.into_iter().try_for_each(|table| self.rebuild((table, None)))
    }

    /// Builds indexes again, in the open transaction or in one of its own.
    fn rebuild(&self, (table, index): Rebuilt) -> Result<()> {
        let catalog = &self.database.catalog;
        if !self.in_transaction() {
            let environment = &self.database.environment;
            return environment
                .transact_with(|transaction| catalog.rebuild_indexes(transaction, table, index));
        }
        self.make_begun()?;
        self.check_no_rows_read()?;
        let (transaction, alone) = (self.begun()?, false);
        self.whole(&transaction, alone, || catalog.rebuild_indexes(&transaction, table, index))
    }
}

fn relation_of(name: &Name, look: &CompileContext<'_>) -> Result<Option<Relation>> {
    let lookup = Binder::new(look, "").lookup(name.0.as_deref(), &name.1)?;
    match look.snapshot.relation(&lookup) {
        None if key_of_name(name, look).is_none() => Err(no_relation(&lookup)),
        found => Ok(found),
    }
}

fn table_of(name: &Name, look: &CompileContext<'_>) -> Result<ObjectId> {
    let Some(Relation::Table(table)) = relation_of(name, look)? else {
        return Err(is_not(&name.1, "a table or materialized view"));
    };
    match look.role.filter(|role| !look.snapshot.owns(*role, table.id)) {
        Some(_) => Err(not_owner("table", &name.1)),
        None => Ok(table.id),
    }
}

/// Returns an index by its name; `None` for a primary key, in whose tree the rows are.
fn index_of(name: &Name, look: &CompileContext<'_>) -> Result<Option<Rebuilt>> {
    let (table, index) = match relation_of(name, look)? {
        Some(Relation::Index(table, index)) => (table.id, Some(index.id)),
        Some(_) => return Err(is_not(&name.1, "an index")),
        None => match key_of_name(name, look) {
            Some(table) => (table.id, None),
            None => return Ok(None),
        },
    };
    match look.role.filter(|role| !look.snapshot.owns(*role, table)) {
        Some(_) => Err(not_owner("index", &name.1)),
        None => Ok(index.map(|index| (table, Some(index)))),
    }
}
