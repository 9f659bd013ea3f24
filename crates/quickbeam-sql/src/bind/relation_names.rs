//! The names of tables, views, sequences and indexes, along the search path.

use smol_str::SmolStr;
use sqlparser::ast::{ObjectName, ObjectNamePart};

use super::{Binder, cross_database, fold};
use crate::catalog::{
    PUBLIC, Privileges, TEMPORARY_SCHEMA, is_system_schema, is_temporary_schema, lookup_name,
};
use crate::ddl::check_name;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::no_schema;

/// Returns the schema of a name, if it is qualified, and its last part.
pub fn qualified_parts(name: &ObjectName) -> Result<(Option<SmolStr>, SmolStr)> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => Ok(fold(ident)),
        ObjectNamePart::Function(_) => Err(SqlError::unsupported("a function as a name")),
    };
    match &name.0[..] {
        [own] => Ok((None, part(own)?)),
        [schema, own] => Ok((Some(part(schema)?), part(own)?)),
        [database, schema, own] if part(database)? == "quickbeam" => {
            Ok((Some(part(schema)?), part(own)?))
        }
        _ => Err(cross_database(name)),
    }
}

impl Binder<'_> {
    /// Returns the lookup name of a relation. If nothing has the name, no relation has the lookup
    /// name.
    pub(super) fn relation_name(&self, name: &ObjectName) -> Result<SmolStr> {
        let (schema, own) = qualified_parts(name)?;
        self.lookup(schema.as_deref(), &own)
    }

    /// Returns the lookup name of a relation in a schema, or in the first schema of the path that
    /// has it.
    pub fn lookup(&self, schema: Option<&str>, name: &str) -> Result<SmolStr> {
        if let Some(schema) = schema {
            let own = self.temporary_schema(schema)?;
            let schema = own.as_deref().unwrap_or(schema);
            self.check_schema(schema, Privileges::USAGE)?;
            return Ok(lookup_name(schema, name));
        }
        let Some(path) = &self.path else {
            let is_used = self.role.is_none() || self.uses_schema(&PUBLIC);
            return Ok(if is_used { SmolStr::new(name) } else { lookup_name("", name) });
        };
        for schema in path.iter().filter(|it| self.role.is_none() || self.uses_schema(it)) {
            let lookup = lookup_name(schema, name);
            if self.names.relation(&lookup)?.is_some() {
                return Ok(lookup);
            }
        }
        // There is no schema without a name.
        Ok(lookup_name("", name))
    }

    /// Returns the schema of the session's temporary objects, if a schema is that.
    fn temporary_schema(&self, schema: &str) -> Result<Option<SmolStr>> {
        if schema == TEMPORARY_SCHEMA {
            return Ok(self.names.temporary_schema());
        }
        match self.names.temporary_schema() {
            Some(own) if is_temporary_schema(schema) && own != schema => {
                let message = "cannot access temporary tables of other sessions";
                Err(SqlError::new(SqlState::FeatureNotSupported, message))
            }
            _ => Ok(None),
        }
    }

    /// Returns the lookup name of a temporary relation to be created.
    pub(super) fn temporary_name(&self, name: &ObjectName) -> Result<SmolStr> {
        let (schema, own) = qualified_parts(name)?;
        check_name(&own)?;
        let temporary = self.names.temporary_schema();
        let temporary =
            temporary.ok_or_else(|| SqlError::unsupported("a temporary object here"))?;
        if schema.is_some_and(|schema| schema != TEMPORARY_SCHEMA && schema != temporary) {
            let message = "cannot create temporary relation in non-temporary schema";
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
        self.check_temporary()?;
        Ok(lookup_name(&temporary, &own))
    }

    /// Returns the schema in which a statement creates objects that it does not qualify.
    pub(super) fn creation_schema(&self) -> Result<SmolStr> {
        let Some(path) = &self.path else { return Ok(PUBLIC) };
        let is_usable = |name: &&SmolStr| {
            !is_system_schema(name) && !is_temporary_schema(name) && self.names.has_schema(name)
        };
        path.iter().find(is_usable).cloned().ok_or_else(|| {
            let message = "no schema has been selected to create in";
            SqlError::new(SqlState::InvalidSchemaName, message)
        })
    }

    /// Returns the lookup name of a relation to be created.
    pub(super) fn new_relation_name(&self, name: &ObjectName) -> Result<SmolStr> {
        let (schema, own) = qualified_parts(name)?;
        check_name(&own)?;
        let schema = match schema {
            None => self.creation_schema()?,
            Some(schema) if self.temporary_schema(&schema)?.is_some() => {
                return self.temporary_name(name);
            }
            Some(schema) if is_system_schema(&schema) => {
                let message = format!("permission denied to create \"{schema}.{own}\"");
                return Err(SqlError::new(SqlState::InsufficientPrivilege, message)
                    .with_detail("System catalog modifications are currently disallowed."));
            }
            Some(schema) if !self.names.has_schema(&schema) => return Err(no_schema(&schema)),
            Some(schema) => schema,
        };
        self.check_schema(&schema, Privileges::CREATE)?;
        Ok(lookup_name(&schema, &own))
    }
}
