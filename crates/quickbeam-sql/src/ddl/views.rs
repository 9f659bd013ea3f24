//! CREATE and DROP VIEW.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_columns};
use crate::catalog::Catalog;
use crate::catalog::DropBehavior;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::{is_not, no_view};
use crate::schema::names::{shown_name, split_lookup_name};
use crate::schema::{ObjectId, Relation, View};

impl Catalog {
    /// CREATE VIEW. `replace`: the view of that name, if there is one, gets the new query; its
    /// columns must be the first of the new ones.
    pub fn create_view(
        &self,
        transaction: &Transaction,
        name: &str,
        columns: Vec<SmolStr>,
        query: Arc<str>,
        depends_on: Vec<ObjectId>,
        replace: bool,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let names: Vec<&str> = columns.iter().map(SmolStr::as_str).collect();
        check_columns(&names)?;
        let id = match change.before.relation(name) {
            Some(Relation::View(old)) if replace => {
                if !columns.starts_with(&old.columns) {
                    let message = "cannot drop or rename columns of a view";
                    return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
                }
                old.id
            }
            _ => {
                change.check_free(name)?;
                change.check_no_type(name)?;
                change.new_id()?
            }
        };
        if depends_on.contains(&id) {
            let message = format!("view \"{}\" would read itself", shown_name(name));
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
        let (schema, name) = split_lookup_name(name);
        change.put_view(View { id, schema, name: name.into(), columns, query, depends_on })
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
