//! What a change of the catalog needs of a role that is no superuser.

use smol_str::SmolStr;

use super::owners::schema_of;
use crate::bind::{CatalogChange, ObjectKind, TableChange};
use crate::catalog::rights::{denied, not_owner};
use crate::catalog::{
    AclKind, CatalogSnapshot, ObjectId, Privileges, Relation, is_temporary_schema,
    split_lookup_name,
};
use crate::error::Result;

/// A role and what it may.
struct Needs<'s> {
    snapshot: &'s CatalogSnapshot,
    role: ObjectId,
}

/// Checks that a role may make a change of the catalog.
pub(crate) fn check_change(
    change: &CatalogChange,
    snapshot: &CatalogSnapshot,
    role: ObjectId,
) -> Result<()> {
    let needs = Needs { snapshot, role };
    match change {
        CatalogChange::CreateTable(table, _) => {
            needs.create_in(&table.name)?;
            let parents = table.foreign_keys.iter().map(|key| &key.parent);
            parents.filter(|it| **it != table.name).try_for_each(|it| needs.references(it))
        }
        CatalogChange::Refresh(name, _) => needs.own(name),
        CatalogChange::CreateIndex(index, _) => needs.own(&index.table),
        CatalogChange::CreateView(view) => {
            if view.replace && snapshot.relation(&view.name).is_some() {
                needs.own(&view.name)?;
            }
            needs.create_in(&view.name)
        }
        CatalogChange::AlterView(name, ..) => {
            if snapshot.relation(name).is_none() {
                return Ok(());
            }
            needs.own(name)
        }
        CatalogChange::CreateSequence(name, ..) => needs.create_in(name),
        CatalogChange::AlterSequence(name, _) => needs.own(name),
        CatalogChange::Drop(kind, names, ..) => names.iter().try_for_each(|name| {
            let owns_schema = snapshot.owns(role, snapshot.schema_id(&schema_of(name)));
            if owns_schema && *kind != ObjectKind::Index { Ok(()) } else { needs.own(name) }
        }),
        CatalogChange::Truncate(names, cascade, _) => {
            names.iter().try_for_each(|name| match cascade {
                true => needs.truncate_cascade(name, &mut Vec::new()),
                false => needs.has(name, Privileges::TRUNCATE),
            })
        }
        CatalogChange::Alter(name, changes, _) => {
            if snapshot.relation(name).is_none() {
                return Ok(());
            }
            needs.own(name)?;
            for change in changes {
                if let TableChange::AddForeignKey(key) = change {
                    needs.references(&key.parent)?;
                }
            }
            Ok(())
        }
        CatalogChange::CreateSchema(..) => needs.create_schema(),
        CatalogChange::RenameSchema(name, _) => {
            needs.own_schema(name)?;
            needs.create_schema()
        }
        CatalogChange::DropSchemas(names, ..) => {
            names.iter().try_for_each(|name| needs.own_schema(name))
        }
        // These check what they change themselves.
        CatalogChange::Access(_)
        | CatalogChange::Routine(_)
        | CatalogChange::Type(_)
        | CatalogChange::Collation(_)
        | CatalogChange::Relation(_)
        | CatalogChange::Schema(_)
        | CatalogChange::Comment(_) => Ok(()),
    }
}

/// Checks that a role may make objects in a schema.
pub(crate) fn check_create_in(
    snapshot: &CatalogSnapshot,
    role: ObjectId,
    schema: &str,
) -> Result<()> {
    match snapshot.may_in_schema(role, schema, Privileges::CREATE) {
        true => Ok(()),
        false => Err(denied("schema", schema)),
    }
}

impl Needs<'_> {
    fn create_in(&self, name: &str) -> Result<()> {
        let schema = schema_of(name);
        // The binder has checked the right to temporary objects.
        if is_temporary_schema(&schema) {
            return Ok(());
        }
        match self.snapshot.may_in_schema(self.role, &schema, Privileges::CREATE) {
            true => Ok(()),
            false => Err(denied("schema", &schema)),
        }
    }

    fn create_schema(&self) -> Result<()> {
        match self.snapshot.may_in_database(self.role, Privileges::CREATE) {
            true => Ok(()),
            false => Err(denied("database", "quickbeam")),
        }
    }

    fn own_schema(&self, name: &SmolStr) -> Result<()> {
        let is_there = self.snapshot.has_schema(name);
        match !is_there || self.snapshot.owns(self.role, self.snapshot.schema_id(name)) {
            true => Ok(()),
            false => Err(not_owner("schema", name)),
        }
    }

    fn own(&self, name: &str) -> Result<()> {
        let Some(relation) = self.snapshot.relation(name) else { return Ok(()) };
        match self.snapshot.owns(self.role, relation.protected().0) {
            true => Ok(()),
            false => Err(not_owner(relation.word(), split_lookup_name(name).1)),
        }
    }

    fn has(&self, name: &str, wanted: Privileges) -> Result<()> {
        let Some(relation) = self.snapshot.relation(name) else { return Ok(()) };
        match self.snapshot.rights(self.role, relation.protected().0, AclKind::Table).has(wanted) {
            true => Ok(()),
            false => Err(denied("table", split_lookup_name(name).1)),
        }
    }

    fn references(&self, name: &str) -> Result<()> {
        let Some(Relation::Table(table)) = self.snapshot.relation(name) else { return Ok(()) };
        match self.snapshot.has_any(self.role, table.id, AclKind::Table, Privileges::REFERENCES) {
            true => Ok(()),
            false => Err(denied("table", &table.name)),
        }
    }

    /// TRUNCATE … CASCADE: also the tables that refer to the table.
    fn truncate_cascade(&self, name: &str, seen: &mut Vec<ObjectId>) -> Result<()> {
        self.has(name, Privileges::TRUNCATE)?;
        let Some(Relation::Table(table)) = self.snapshot.relation(name) else { return Ok(()) };
        if seen.contains(&table.id) {
            return Ok(());
        }
        seen.push(table.id);
        let children = table.referenced_by.iter().filter_map(|it| self.snapshot.table(it.child));
        children.into_iter().try_for_each(|it| self.truncate_cascade(&it.lookup_name(), seen))
    }
}
