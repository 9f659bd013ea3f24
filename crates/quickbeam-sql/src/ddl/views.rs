//! CREATE, ALTER and DROP VIEW.

use std::collections::BTreeMap;
use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_columns};
use crate::catalog::Catalog;
use crate::catalog::DropBehavior;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::{is_not, no_view};
use crate::schema::names::{shown_name, split_lookup_name};
use crate::schema::{Materialized, NewMaterialized, NewView, ObjectId, Relation, View, ViewChange};

impl Catalog {
    /// CREATE VIEW of a view that reads these tables and views.
    pub fn create_view(
        &self,
        transaction: &Transaction,
        new: &NewView,
        depends_on: Vec<ObjectId>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let NewView { name, columns, query, options, replace } = new.clone();
        let names: Vec<&str> = columns.iter().map(SmolStr::as_str).collect();
        check_columns(&names)?;
        let (id, defaults) = match change.before.relation(&name) {
            Some(Relation::View(old)) if replace => {
                if !columns.starts_with(&old.columns) {
                    let message = "cannot drop or rename columns of a view";
                    return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
                }
                (old.id, old.defaults.clone())
            }
            _ => {
                change.check_free(&name)?;
                change.check_no_type(&name)?;
                (change.new_id()?, BTreeMap::new())
            }
        };
        if depends_on.contains(&id) {
            let message = format!("view \"{}\" would read itself", shown_name(&name));
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
        let (schema, name) = split_lookup_name(&name);
        let name = name.into();
        change.put_view(View { id, schema, name, columns, query, depends_on, options, defaults })
    }

    /// Makes a table that was just created a materialized view of a query that reads these tables
    /// and views.
    pub fn make_materialized(
        &self,
        transaction: &Transaction,
        id: ObjectId,
        new: &NewMaterialized,
        depends_on: Vec<ObjectId>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.latest(id)?;
        let NewMaterialized { query, is_populated } = new.clone();
        table.materialized = Some(Arc::new(Materialized { query, depends_on, is_populated }));
        change.put_table(&table)
    }

    /// Empties a materialized view, to be populated again or not.
    pub fn empty_materialized(
        &self,
        transaction: &Transaction,
        name: &str,
        is_populated: bool,
    ) -> Result<()> {
        let (cascade, restart_identity) = (false, false);
        self.truncate(transaction, &[name.into()], cascade, restart_identity)?;
        let change = CatalogChange::begin(self, transaction)?;
        let mut table = change.table(name)?;
        let Some(materialized) = &mut table.materialized else {
            return Err(is_not(name, "a materialized view"));
        };
        if materialized.is_populated == is_populated {
            return Ok(());
        }
        Arc::make_mut(materialized).is_populated = is_populated;
        change.put_table(&table)
    }

    /// ALTER VIEW.
    pub fn alter_view(
        &self,
        transaction: &Transaction,
        name: &str,
        changes: &[ViewChange],
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let Some(Relation::View(view)) = change.before.relation(name) else {
            return Err(no_view(name));
        };
        let mut view = (*view).clone();
        for one in changes {
            match one {
                ViewChange::Options(options) => view.options = options.clone(),
                ViewChange::Default(position, text) => {
                    view.defaults.remove(position);
                    view.defaults.extend(text.clone().map(|text| (*position, text)));
                }
            }
        }
        change.put_view(view)
    }

    /// DROP VIEW of all of these. `cascade`: views that read them go, too.
    pub fn drop_views(
        &self,
        transaction: &Transaction,
        names: &[SmolStr],
        behavior: DropBehavior,
    ) -> Result<()> {
        let cascade = behavior == DropBehavior::Cascade;
        let change = CatalogChange::begin(self, transaction)?;
        let mut views = Vec::with_capacity(names.len());
        for name in names {
            match change.before.relation(name) {
                Some(Relation::View(view)) => views.push(view),
                None => return Err(no_view(name)),
                Some(_) => return Err(is_not(name, "a view")),
            }
        }
        let together: Vec<ObjectId> = views.iter().map(|view| view.id).collect();
        for view in &views {
            let what = format!("view {}", view.name);
            change.drop_dependents(view.id, &together, &what, cascade)?;
            change.remove(view.id)?;
        }
        Ok(())
    }
}
