//! Names of collations, COLLATE and COLLATION FOR.

use smol_str::SmolStr;
use sqlparser::ast::{Expr as Ast, ObjectName, ObjectNamePart};

use super::{Derivation, indeterminate, not_under};
use crate::bind::{Binder, OutputColumn, Scope, Typed, fold};
use crate::catalog::describe::shown_collation;
use crate::catalog::{Privileges, lookup_name};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::schema::errors::no_schema;
use crate::types::collation::Predefined;
use crate::types::{CollateStep, Collation, DataType, Value};

/// The error for a collation that does not exist.
#[cold]
pub(crate) fn no_collation(shown: &str) -> SqlError {
    let message = format!("collation \"{shown}\" for encoding \"UTF8\" does not exist");
    SqlError::new(SqlState::UndefinedObject, message)
}

/// The error for COLLATE of values that are no texts.
#[cold]
pub(in crate::bind) fn not_collatable(data_type: DataType) -> SqlError {
    let message = format!("collations are not supported by type {data_type}");
    SqlError::new(SqlState::DatatypeMismatch, message)
}

/// What a query makes columns of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DerivedKind {
    /// A view.
    View,
    /// A table or a materialized view.
    Table,
}

/// Refuses columns of a table or view that have no collation, because of two that conflict.
pub(crate) fn check_derived(columns: &[OutputColumn], kind: DerivedKind) -> Result<()> {
    for column in columns.iter().filter(|it| is_collatable(it.data_type)) {
        if column.collation.for_table().is_ok() {
            continue;
        }
        let (name, data_type) = (&column.name, column.data_type);
        let error = indeterminate(&format!("view column \"{name}\""));
        if kind == DerivedKind::View {
            return Err(error);
        }
        let message = format!(
            "no collation was derived for column \"{name}\" with collatable type {data_type}"
        );
        let hint = "Use the COLLATE clause to set the collation explicitly.";
        return Err(SqlError::new(SqlState::IndeterminateCollation, message).with_hint(hint));
    }
    Ok(())
}

/// Returns whether values of a type have a collation.
pub(in crate::bind) fn is_collatable(data_type: DataType) -> bool {
    match data_type {
        DataType::Array(element) => is_collatable(element.data_type()),
        other => other.is_text(),
    }
}

impl Binder<'_> {
    /// Returns the collation of a name.
    pub(crate) fn collation_named(&self, name: &ObjectName) -> Result<Collation> {
        let mut parts: Vec<SmolStr> = Vec::new();
        for part in &name.0 {
            if let ObjectNamePart::Identifier(part) = part {
                parts.push(fold(part));
            }
        }
        let found = match &parts[..] {
            [name] => self.collation_in(None, name)?,
            [schema, name] => self.collation_in(Some(schema), name)?,
            _ => None,
        };
        found.ok_or_else(|| no_collation(&parts.join(".")))
    }

    /// Returns the collation of a name along the search path, or in the schema that it has.
    pub(crate) fn collation_in(
        &self,
        schema: Option<&str>,
        name: &str,
    ) -> Result<Option<Collation>> {
        let predefined = || Predefined::named(name).map(|it| it.collation);
        let snapshot = self.names.snapshot();
        let named = |schema: &str| snapshot?.collation_named(&lookup_name(schema, name));
        match schema {
            Some("pg_catalog") => return Ok(predefined()),
            Some(schema) if !self.names.has_schema(schema) => return Err(no_schema(schema)),
            Some(schema) => {
                self.check_schema(schema, Privileges::USAGE)?;
                return Ok(named(schema));
            }
            None => {}
        }
        if let Some(found) = predefined() {
            return Ok(Some(found));
        }
        let Some(path) = &self.path else { return Ok(named("public")) };
        let mut usable = path.iter().filter(|it| self.role.is_none() || self.uses_schema(it));
        Ok(usable.find_map(|schema| named(schema)))
    }

    /// Returns the place of the word COLLATE before the name of a collation.
    pub(in crate::bind) fn place_of_collate(&self, name: &ObjectName) -> u32 {
        let place = self.position(name);
        let before = self.text.as_str().get(..place as usize).unwrap_or_default();
        let found = before.to_ascii_lowercase().rfind("collate");
        found.and_then(|at| u32::try_from(at).ok()).unwrap_or(place)
    }

    /// Returns the collation of a column that a statement defines.
    pub(in crate::bind) fn collation_of_new(
        &self,
        name: &ObjectName,
        data_type: DataType,
    ) -> Result<Collation> {
        let place = self.place_of_collate(name) as usize;
        if !is_collatable(data_type) {
            return Err(not_collatable(data_type).at(place));
        }
        let collation = self.collation_named(name).map_err(|error| error.at(place))?;
        if !collation.is_by_bytes() {
            self.check_use(data_type, collation).map_err(|error| error.at(place))?;
        }
        Ok(collation)
    }

    /// Refuses a collation of ICU for columns whose values it would not compare.
    fn check_use(&self, data_type: DataType, collation: Collation) -> Result<()> {
        match data_type {
            DataType::Char(_) => Err(not_under("the type character", collation)),
            DataType::Array(_) => Err(not_under("an array", collation)),
            _ => Ok(()),
        }
    }

    /// Binds COLLATE.
    pub(in crate::bind) fn collate(
        &mut self,
        inner: &Ast,
        name: &ObjectName,
        scope: &Scope,
    ) -> Result<Typed> {
        let value = self.expression(inner, scope)?;
        let value = self.settle(value)?;
        let place = self.place_of_collate(name);
        if let Some(given) = value.data_type.filter(|given| !is_collatable(*given)) {
            return Err(not_collatable(given).at(place as usize));
        }
        let collation = self.collation_named(name).map_err(|error| error.at(place as usize))?;
        if !collation.is_by_bytes() && value.data_type.is_none_or(DataType::is_text) {
            let given = value.data_type.unwrap_or(DataType::Text);
            self.check_use(given, collation).map_err(|error| error.at(place as usize))?;
        }
        self.has_collations = true;
        self.collate_places.push((collation, place));
        let expr = Expr::Collate(Box::new(value.expr), CollateStep::Named(collation));
        Ok(Typed { expr, ..value })
    }

    /// Binds `COLLATION FOR (value)`.
    pub(in crate::bind) fn collation_for(&self, value: &Typed, position: u32) -> Result<Typed> {
        let name = match value.data_type {
            Some(given) if !is_collatable(given) => return Err(not_collatable(given)),
            None => Value::Null,
            Some(_) => match self.collation_of(value)? {
                Derivation::Default => Value::text("\"default\""),
                Derivation::Implicit(own) | Derivation::Explicit(own) => {
                    Value::text(shown_collation(own))
                }
                Derivation::Conflict(..) => Value::Null,
            },
        };
        Ok(Typed::new(Expr::Constant(name), DataType::Text, position))
    }
}
