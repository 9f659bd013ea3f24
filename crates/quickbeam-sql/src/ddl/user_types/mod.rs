//! CREATE, ALTER and DROP of types.

mod collations;
mod composites;
mod enums;

pub(crate) use collations::collation_exists;
pub(crate) use composites::attribute_exists;
pub(crate) use enums::relabelled_default;

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_name};
use super::depended;
use crate::catalog::{Catalog, DropBehavior};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::relation_exists;
use crate::schema::names::{shown_name, split_lookup_name};
use crate::schema::{Domain, ObjectId};

/// The error for a type whose name is taken.
#[cold]
pub(crate) fn type_exists(name: &str) -> SqlError {
    let message = format!("type \"{}\" already exists", split_lookup_name(name).1);
    SqlError::new(SqlState::DuplicateObject, message)
}

/// The error for a type that does not exist.
#[cold]
pub(crate) fn no_type(name: &str) -> SqlError {
    let message = format!("type \"{}\" does not exist", shown_name(name));
    SqlError::new(SqlState::UndefinedObject, message)
}

impl CatalogChange<'_> {
    /// Refuses a lookup name of a type that is no name, whose schema does not exist, or that a type
    /// or a relation has.
    fn check_type_free(&self, name: &str) -> Result<()> {
        self.check_place(name)?;
        let relation = self.before.names.get(name);
        // Tables and views have a type of their rows.
        let has_type = relation.is_some_and(|id| {
            self.before.tables.contains_key(id) || self.before.views.contains_key(id)
        });
        match has_type || self.before.type_names.contains_key(name) {
            true => Err(type_exists(name)),
            false => Ok(()),
        }
    }

    /// Refuses a lookup name of a relation that a type has.
    pub fn check_no_type(&self, name: &str) -> Result<()> {
        let Some(id) = self.before.type_names.get(name) else { return Ok(()) };
        if self.before.composites.contains_key(id) {
            return Err(relation_exists(name));
        }
        let hint = "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.";
        Err(type_exists(name).with_hint(hint))
    }

    /// Writers that do not know the constraints of a domain cannot commit (CATALOG-3).
    fn regenerate_columns_of(&self, domain: ObjectId) -> Result<()> {
        let mut ids: Vec<ObjectId> =
            self.before.columns_of_domain(domain).map(|(table, _)| table.id).collect();
        ids.dedup();
        ids.into_iter().try_for_each(|id| self.regenerate_other(id))
    }
}

impl Catalog {
    /// CREATE DOMAIN.
    pub fn create_domain(&self, transaction: &Transaction, mut domain: Domain) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        change.check_type_free(&domain.lookup_name())?;
        domain.id = change.new_id()?;
        change.put_domain(domain)
    }

    /// ALTER DOMAIN: gives a domain its new definition.
    pub fn alter_domain(&self, transaction: &Transaction, domain: Domain) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let known = change.before.domain(domain.id);
        let old = known.map(|it| it.lookup_name()).unwrap_or_default();
        let new = domain.lookup_name();
        if old != new {
            change.check_type_free(&new)?;
        }
        change.regenerate_columns_of(domain.id)?;
        change.put_domain(domain)
    }

    /// DROP DOMAIN. With CASCADE, columns of the domains and domains over them go, too.
    pub fn drop_domains(
        &self,
        transaction: &Transaction,
        domains: &[Arc<Domain>],
        behavior: DropBehavior,
    ) -> Result<()> {
        let mut ids: Vec<ObjectId> = domains.iter().map(|domain| domain.id).collect();
        let snapshot = self.snapshot(transaction)?;
        for domain in domains {
            let what = format!("type {}", domain.name);
            let over = snapshot.domains().filter(|it| it.parent == Some(domain.id));
            for other in over {
                if ids.contains(&other.id) {
                    continue;
                }
                if behavior == DropBehavior::Restrict {
                    return Err(depended(&what, &format!("type {}", other.name)));
                }
                self.drop_domains(transaction, std::slice::from_ref(other), behavior)?;
            }
            let snapshot = self.snapshot(transaction)?;
            let columns = snapshot.columns_of_domain(domain.id);
            for (table, column) in columns {
                let by = format!("column {} of table {}", column.name, table.name);
                if behavior == DropBehavior::Restrict {
                    return Err(depended(&what, &by));
                }
                let (table, column) = (table.lookup_name(), &column.name);
                self.drop_column(transaction, &table, column, (behavior, &[]))?;
            }
            let snapshot = self.snapshot(transaction)?;
            let routines = snapshot.routines().filter(|it| it.has_domain(domain.id));
            let routines: Vec<_> = routines.cloned().collect();
            if let (DropBehavior::Restrict, Some(first)) = (behavior, routines.first()) {
                let by = format!("function {}", first.signature());
                return Err(depended(&what, &by));
            }
            if !routines.is_empty() {
                self.drop_routines(transaction, &routines, behavior)?;
            }
        }
        ids.dedup();
        let change = CatalogChange::begin(self, transaction)?;
        ids.into_iter().try_for_each(|id| change.remove(id))
    }
}

/// Returns the name of a constraint of a domain: the one given, or one made up.
pub(crate) fn domain_constraint_name(domain: &Domain, given: Option<&SmolStr>) -> Result<SmolStr> {
    let Some(name) = given else {
        let is_taken = |name: &SmolStr| domain.check(name).is_some();
        return Ok(super::change::make_name(&[&domain.name], "check", is_taken));
    };
    check_name(name)?;
    if domain.check(name).is_some() {
        let message =
            format!("constraint \"{name}\" for domain \"{}\" already exists", domain.name);
        return Err(SqlError::new(SqlState::DuplicateObject, message));
    }
    Ok(name.clone())
}
