//! CREATE, ALTER and DROP SCHEMA.

use smol_str::SmolStr;
use sqlparser::ast::{self, AlterSchemaOperation, ObjectName, SchemaName};

use super::CatalogChange;
use crate::bind::ddl::table_outline::OnMissing;
use crate::bind::{Binder, cross_database, fold};
use crate::catalog::{PUBLIC, is_system_schema};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::{no_schema, schema_exists};

/// Returns the name of a schema.
fn schema_name(name: &ObjectName) -> Result<SmolStr> {
    match &name.0[..] {
        [part] => part.as_ident().map(fold).ok_or_else(|| cross_database(name)),
        _ => Err(cross_database(name)),
    }
}

impl Binder<'_> {
    /// CREATE SCHEMA.
    pub fn create_schema(&self, name: &SchemaName, if_not_exists: bool) -> Result<CatalogChange> {
        let (name, owner) = match name {
            SchemaName::Simple(name) => (schema_name(name)?, None),
            SchemaName::NamedAuthorization(name, owner) => (schema_name(name)?, Some(fold(owner))),
            SchemaName::UnnamedAuthorization(owner) => (fold(owner), Some(fold(owner))),
        };
        if !if_not_exists && self.names.has_schema(&name) {
            return Err(schema_exists(&name));
        }
        Ok(CatalogChange::CreateSchema(name, if_not_exists, owner))
    }

    /// ALTER SCHEMA; `None` if it changes nothing.
    pub fn alter_schema(&self, alter: &ast::AlterSchema) -> Result<Option<CatalogChange>> {
        let from = self.known_schema(&alter.name, OnMissing::Fail)?;
        match &alter.operations[..] {
            [AlterSchemaOperation::OwnerTo { .. }] => Ok(None),
            [AlterSchemaOperation::Rename { name }] => {
                Ok(Some(CatalogChange::RenameSchema(from, schema_name(name)?)))
            }
            _ => Err(SqlError::unsupported("this form of ALTER SCHEMA")),
        }
    }

    /// Returns the name of a schema that exists, or under IF EXISTS may not, and may be changed.
    pub(super) fn known_schema(&self, name: &ObjectName, missing: OnMissing) -> Result<SmolStr> {
        let if_exists = missing == OnMissing::Skip;
        let folded = schema_name(name)?;
        let position = self.position(name) as usize;
        if is_system_schema(&folded) {
            let message = format!("cannot change schema {folded}: the database system requires it");
            let error = SqlError::new(SqlState::DependentObjectsStillExist, message);
            return Err(error.at(position));
        }
        if folded == PUBLIC {
            let error = SqlError::unsupported("dropping or renaming the schema public");
            return Err(error.at(position));
        }
        if !if_exists && !self.names.has_schema(&folded) {
            return Err(no_schema(&folded).at(position));
        }
        Ok(folded)
    }
}
