//! Statements that are checked and change nothing: hints of storage, and extensions.

use crate::bind::{Binder, Names};
use crate::catalog::rights::not_owner;
use crate::catalog::{CatalogSnapshot, Method, ObjectId, Relation, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{ExtensionStatement, StorageHint};
use crate::schema::errors::{is_not, no_column, no_relation};
use crate::session::Session;
use crate::session::events::NoticeLevel;

/// The one extension, which every database has.
pub(super) const PLPGSQL: &str = "plpgsql";

#[cold]
pub(super) fn no_extension(name: &str) -> SqlError {
    let message = format!("extension \"{name}\" does not exist");
    SqlError::new(SqlState::UndefinedObject, message)
}

impl Session {
    /// Executes a statement about extensions.
    pub(super) fn execute_extension(&self, statement: &ExtensionStatement) -> Result<()> {
        match statement {
            ExtensionStatement::Create(name, if_not_exists) if name == PLPGSQL => {
                let message = format!("extension \"{name}\" already exists");
                if !*if_not_exists {
                    return Err(SqlError::new(SqlState::DuplicateObject, message));
                }
                let message = || format!("{message}, skipping");
                self.notice(NoticeLevel::Notice, SqlState::DuplicateObject, message);
                Ok(())
            }
            ExtensionStatement::Create(name, _) => {
                let message = format!("extension \"{name}\" is not available");
                Err(SqlError::new(SqlState::FeatureNotSupported, message))
            }
            ExtensionStatement::Alter(name) if name == PLPGSQL => {
                Err(SqlError::unsupported("ALTER EXTENSION"))
            }
            ExtensionStatement::Alter(name) => Err(no_extension(name)),
            ExtensionStatement::Drop(names, if_exists) => {
                for name in names {
                    if name == PLPGSQL {
                        return Err(SqlError::unsupported("DROP EXTENSION plpgsql"));
                    }
                    if !*if_exists {
                        return Err(no_extension(name));
                    }
                    self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                        format!("extension \"{name}\" does not exist, skipping")
                    });
                }
                Ok(())
            }
        }
    }

    /// Checks the names in a hint of storage.
    pub(super) fn check_storage_hint(&self, hint: &StorageHint) -> Result<()> {
        self.read_catalog(|look| {
            let (schema, name) = &hint.name;
            let lookup = Binder::new(look, "").lookup(schema.as_deref(), name)?;
            let Some(relation) = look.relation(&lookup)? else {
                if !hint.if_exists {
                    return Err(no_relation(&lookup));
                }
                self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                    format!("relation \"{name}\" does not exist, skipping")
                });
                return Ok(());
            };
            if let Some(role) = look.role {
                check_owner(&relation, name, look.snapshot, role)?;
            }
            check_names(hint, &relation)
        })
    }
}

fn check_owner(
    relation: &Relation,
    name: &str,
    snapshot: &CatalogSnapshot,
    role: ObjectId,
) -> Result<()> {
    let is_database = matches!(relation, Relation::Table(table) if table.is_database());
    match snapshot.owns(role, relation.protected().0) && !is_database {
        true => Ok(()),
        false => Err(not_owner(relation.word(), name)),
    }
}

/// Checks that a table may be clustered on an index of that name.
fn check_clustered(table: &Table, name: &str) -> Result<()> {
    let key = table.primary_key.as_ref().filter(|key| key.name == name);
    let index = table.indexes.iter().find(|index| index.name == name);
    let method = key.map(|key| key.method).or(index.map(|index| index.method));
    let Some(method) = method else {
        let message = format!("index \"{name}\" for table \"{}\" does not exist", table.name);
        return Err(SqlError::new(SqlState::UndefinedObject, message));
    };
    let refused = if method != Method::Range {
        format!("index \"{name}\" because access method does not support clustering")
    } else if index.is_some_and(|index| index.is_partial()) {
        format!("partial index \"{name}\"")
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::FeatureNotSupported, format!("cannot cluster on {refused}")))
}

fn check_names(hint: &StorageHint, relation: &Relation) -> Result<()> {
    match relation {
        Relation::Table(table) if hint.kind == "TABLE" => {
            let missing = hint.columns.iter().find(|name| table.column(name).is_none());
            if let Some(column) = missing {
                return Err(no_column(&table.name, column));
            }
            hint.indexes.iter().try_for_each(|name| check_clustered(table, name))
        }
        Relation::Index(..) => Ok(()),
        _ if hint.kind == "INDEX" => Err(is_not(&hint.name.1, "an index")),
        _ => Err(is_not(&hint.name.1, "a table")),
    }
}
