//! The owners of objects.

use std::collections::BTreeSet;

use smol_str::SmolStr;

use super::AccessChange;
use super::grants::Revoke;
use super::insufficient;
use crate::bind::{CatalogChange, ObjectKind};
use crate::catalog::rights::{denied, not_owner};
use crate::catalog::{
    AclItem, AclKind, BOOTSTRAP, CatalogSnapshot, DATABASE_ID, DropBehavior, ObjectAccess,
    ObjectId, PUBLIC_SCHEMA_ID, Privileges, Relation, is_system_schema, shown_name,
    split_lookup_name,
};
use crate::compile::CompileContext;
use crate::ddl::CatalogEdit;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{OwnedObject, RoleName};
use crate::schema::errors::{is_not, no_schema};
use crate::session::events::NoticeLevel;

/// An object with an owner.
struct Owned {
    id: ObjectId,
    kind: AclKind,
    /// Its kind and name, as messages have them.
    word: &'static str,
    name: String,
    /// The schema of what is granted in schemas.
    schema: Option<SmolStr>,
}

/// Returns everything that has an owner.
fn all(snapshot: &CatalogSnapshot) -> Vec<Owned> {
    let relations = snapshot.relations().into_iter();
    let relations = relations.filter(|(_, it)| !matches!(it, Relation::Index(..)));
    let mut all: Vec<Owned> = relations
        .map(|(name, relation)| {
            let (id, kind) = relation.protected();
            let schema = Some(schema_of(&name));
            Owned { id, kind, word: relation.word(), name: shown_name(&name), schema }
        })
        .collect();
    all.extend(snapshot.schemas().map(|schema| Owned {
        id: schema.id,
        kind: AclKind::Schema,
        word: "schema",
        name: schema.name.to_string(),
        schema: None,
    }));
    all.extend(snapshot.routines().map(|routine| Owned {
        id: routine.id,
        kind: AclKind::Function,
        word: routine.word(),
        name: routine.signature(),
        schema: Some(routine.schema.clone()),
    }));
    all.extend(snapshot.enums().map(|known| Owned {
        id: known.id,
        kind: AclKind::Type,
        word: "type",
        name: known.name.to_string(),
        schema: None,
    }));
    all.extend(snapshot.composites().map(|known| Owned {
        id: known.id,
        kind: AclKind::Type,
        word: "type",
        name: known.name.to_string(),
        schema: None,
    }));
    all.extend(snapshot.domains().map(|domain| Owned {
        id: domain.id,
        kind: AclKind::Type,
        word: "type",
        name: domain.name.to_string(),
        schema: None,
    }));
    all.extend(snapshot.collations().map(|made| Owned {
        id: made.id,
        kind: AclKind::Type,
        word: "collation",
        name: made.name.to_string(),
        schema: None,
    }));
    for (id, kind, word, name) in [
        (PUBLIC_SCHEMA_ID, AclKind::Schema, "schema", "public"),
        (DATABASE_ID, AclKind::Database, "database", "quickbeam"),
    ] {
        all.push(Owned { id, kind, word, name: name.to_owned(), schema: None });
    }
    all
}

/// Gives the objects that a statement has made to the role that made them, with the rights that
/// ALTER DEFAULT PRIVILEGES has named.
pub(crate) fn own_new(look: &CompileContext<'_>) -> Result<()> {
    let is_bootstrap = look.user == BOOTSTRAP;
    if is_bootstrap && !look.snapshot.default_rights.contains_key(&look.user) {
        return Ok(());
    }
    let before: BTreeSet<ObjectId> = all(look.snapshot).into_iter().map(|it| it.id).collect();
    let after = look.catalog.snapshot(look.transaction)?;
    let made = all(&after).into_iter();
    let made = made.filter(|it| !before.contains(&it.id) && after.access(it.id).is_none());
    let made: Vec<(ObjectId, Option<Vec<AclItem>>)> = made
        .map(|it| (it.id, after.first_rights(look.user, it.kind, it.schema.as_deref())))
        .filter(|(_, acl)| !is_bootstrap || acl.is_some())
        .collect();
    if made.is_empty() {
        return Ok(());
    }
    let edit = CatalogEdit::begin(look.catalog, look.transaction)?;
    for (id, acl) in made {
        let access = ObjectAccess { owner: look.user.0, acl, ..ObjectAccess::default() };
        edit.put_access(id, Some(access))?;
    }
    Ok(())
}

fn named(items: &[AclItem], role: ObjectId) -> bool {
    items.iter().any(|item| item.grantee == Some(role) || item.grantor == role)
}

impl AccessChange<'_> {
    /// Returns what depends on a role, as the detail of an error lists it.
    pub fn dependents(&self, role: ObjectId) -> Vec<String> {
        let before = self.before();
        let mut found = before.default_rights_with(role);
        for object in all(before) {
            let Some(access) = before.access(object.id) else { continue };
            let Owned { word, name, .. } = &object;
            if access.owner() == role {
                found.push(format!("owner of {word} {name}"));
            } else if access.acl.as_ref().is_some_and(|items| named(items, role))
                || access.columns.values().any(|items| named(items, role))
            {
                found.push(format!("privileges for {word} {name}"));
            }
        }
        found
    }

    /// Checks that the user may make another role the owner.
    fn check_new_owner(&self, role: ObjectId) -> Result<()> {
        if self.before().is_member(self.user, role) {
            return Ok(());
        }
        let name = self.before().role_name(role);
        Err(insufficient(format!("must be member of role \"{name}\"")))
    }

    /// ALTER … OWNER TO.
    pub fn owner_to(&self, object: &OwnedObject, role: &RoleName) -> Result<()> {
        if let OwnedObject::Relation(_, name, true) = object
            && self.relation(name).is_err_and(|it| it.state() == SqlState::UndefinedTable)
        {
            let name = &name.1;
            let message = || format!("relation \"{name}\" does not exist, skipping");
            self.session.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, message);
            return Ok(());
        }
        let role = self.role(role)?;
        let before = self.before();
        match object {
            OwnedObject::Function(name, types) => {
                let routine = self.routine(name, types.as_deref())?;
                if !before.owns(self.user, routine.id) {
                    return Err(not_owner(routine.word(), &routine.name));
                }
                self.check_new_owner(role)?;
                self.set_owner(routine.id, AclKind::Function, role)
            }
            OwnedObject::Database(name) => {
                if name != "quickbeam" {
                    let message = format!("database \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::InvalidCatalogName, message));
                }
                if !before.owns(self.user, DATABASE_ID) {
                    return Err(not_owner("database", name));
                }
                self.check_new_owner(role)?;
                self.set_owner(DATABASE_ID, AclKind::Database, role)
            }
            OwnedObject::Schema(name) => {
                if !before.has_schema(name) || is_system_schema(name) {
                    return Err(no_schema(name));
                }
                let id = before.schema_id(name);
                if !before.owns(self.user, id) {
                    return Err(not_owner("schema", name));
                }
                self.check_new_owner(role)?;
                if !before.may_in_database(self.user, Privileges::CREATE) {
                    return Err(denied("database", "quickbeam"));
                }
                self.set_owner(id, AclKind::Schema, role)
            }
            OwnedObject::Relation(kind, name, _) => {
                self.relation_owner(kind, &name.1, &self.relation(name)?, role)
            }
        }
    }

    fn relation_owner(
        &self,
        kind: &str,
        name: &str,
        relation: &Relation,
        role: ObjectId,
    ) -> Result<()> {
        let before = self.before();
        // ALTER TABLE takes views and sequences, too.
        if relation.word() != kind && (kind != "table" || relation.word() == "index") {
            let article = if kind == "table" { "a table" } else { kind };
            let article = match kind {
                "view" => "a view",
                "materialized view" => "a materialized view",
                "sequence" => "a sequence",
                _ => article,
            };
            return Err(is_not(name, article));
        }
        let (id, acl) = relation.protected();
        if !before.owns(self.user, id) {
            return Err(not_owner(relation.word(), name));
        }
        self.check_new_owner(role)?;
        let schema = match relation {
            Relation::Table(table) | Relation::Index(table, _) => &table.schema,
            Relation::View(view) => &view.schema,
            Relation::Sequence(sequence) => &sequence.schema,
        };
        if !before.is_superuser(self.user)
            && !before.may_in_schema(role, schema, Privileges::CREATE)
        {
            return Err(denied("schema", schema));
        }
        self.set_owner(id, acl, role)?;
        // The sequences of its columns go with it.
        if let Relation::Table(table) = relation {
            for identity in table.columns.iter().filter_map(|column| column.identity) {
                self.set_owner(identity.sequence, AclKind::Sequence, role)?;
            }
        }
        Ok(())
    }

    fn set_owner(&self, id: ObjectId, kind: AclKind, role: ObjectId) -> Result<()> {
        let mut access = self.edit.latest_access(id)?;
        let old = access.owner();
        let give = |items: &mut Vec<AclItem>| {
            for item in items.iter_mut() {
                if item.grantee == Some(old) {
                    item.grantee = Some(role);
                }
                if item.grantor == old {
                    item.grantor = role;
                }
            }
            // The new owner may have had rights of its own.
            let mut merged: Vec<AclItem> = Vec::new();
            for item in items.drain(..) {
                let same =
                    |it: &&mut AclItem| it.grantee == item.grantee && it.grantor == item.grantor;
                match merged.iter_mut().find(same) {
                    Some(known) => {
                        known.privileges = known.privileges.and(item.privileges);
                        known.grantable = known.grantable.and(item.grantable);
                    }
                    None => merged.push(item),
                }
            }
            *items = merged;
        };
        if let Some(items) = &mut access.acl {
            give(items);
        }
        access.columns.values_mut().for_each(give);
        // A schema of before there were rights has none of its own kind.
        if kind == AclKind::Schema && id == PUBLIC_SCHEMA_ID && access.acl.is_none() {
            access.acl = Some(ObjectAccess { owner: role.0, ..access.clone() }.items(id, kind));
        }
        access.owner = role.0;
        self.edit.put_access(id, Some(access))
    }

    /// REASSIGN OWNED.
    pub fn reassign(&self, from: &[RoleName], to: &RoleName) -> Result<()> {
        let to = self.role(to)?;
        let from = from.iter().map(|role| self.role(role)).collect::<Result<Vec<_>>>()?;
        for role in from.iter().chain([&to]) {
            if !self.before().is_member(self.user, *role) {
                return Err(insufficient("permission denied to reassign objects"));
            }
        }
        if from.contains(&BOOTSTRAP) {
            let message = "cannot reassign ownership of objects owned by role quickbeam because they are required by the database system";
            return Err(SqlError::new(SqlState::DependentObjectsStillExist, message));
        }
        for object in all(self.before()) {
            if from.contains(&self.before().owner(object.id)) {
                self.set_owner(object.id, object.kind, to)?;
            }
        }
        Ok(())
    }

    /// DROP OWNED: drops what the roles own and revokes what they may.
    pub fn drop_owned(&self, roles: &[RoleName], cascade: bool) -> Result<()> {
        let roles = roles.iter().map(|role| self.role(role)).collect::<Result<Vec<_>>>()?;
        for role in &roles {
            if !self.before().is_member(self.user, *role) {
                return Err(insufficient("permission denied to drop objects"));
            }
            if *role == BOOTSTRAP {
                let message = "cannot drop objects owned by role quickbeam because they are required by the database system";
                return Err(SqlError::new(SqlState::DependentObjectsStillExist, message));
            }
        }
        for object in all(self.before()) {
            let Some(access) = self.before().access(object.id) else { continue };
            if roles.contains(&access.owner()) {
                continue;
            }
            let mut access = (**access).clone();
            let owner = access.owner();
            let revoke = Revoke { owner, option: false, cascade: true };
            let lists = access.acl.iter_mut().chain(access.columns.values_mut());
            for items in lists {
                for item in items.clone() {
                    if item.grantee.is_some_and(|grantee| roles.contains(&grantee)) {
                        revoke.from(items, item.grantee, item.grantor, item.privileges)?;
                    }
                }
            }
            access.columns.retain(|_, items| !items.is_empty());
            self.edit.put_access(object.id, Some(access))?;
        }
        self.drop_default_rights(&roles)?;
        self.drop_objects(&roles, cascade)
    }

    fn drop_objects(&self, roles: &[ObjectId], cascade: bool) -> Result<()> {
        let is_owned =
            |snapshot: &CatalogSnapshot, id: ObjectId| roles.contains(&snapshot.owner(id));
        for kind in [ObjectKind::View, ObjectKind::Table, ObjectKind::Sequence] {
            let snapshot = self.look.catalog.snapshot(self.look.transaction)?;
            let relations = snapshot.relations().into_iter();
            let names: Vec<SmolStr> = relations
                .filter(|(_, relation)| {
                    let fits = match relation {
                        Relation::View(_) => kind == ObjectKind::View,
                        Relation::Table(_) => kind == ObjectKind::Table,
                        Relation::Sequence(_) => kind == ObjectKind::Sequence,
                        Relation::Index(..) => false,
                    };
                    fits && is_owned(&snapshot, relation.protected().0)
                })
                .map(|(name, _)| name)
                .collect();
            let look = &CompileContext { snapshot: &snapshot, path: None, ..*self.look };
            let change = CatalogChange::Drop(kind, names, true, cascade);
            super::super::definition::apply(&change, look)?;
        }
        let snapshot = self.look.catalog.snapshot(self.look.transaction)?;
        let look = &CompileContext { snapshot: &snapshot, path: None, ..*self.look };
        let routines: Vec<_> =
            snapshot.routines().filter(|it| is_owned(&snapshot, it.id)).cloned().collect();
        if !routines.is_empty() {
            let behavior = DropBehavior::from(cascade);
            self.session.drop_with_callers(&routines, behavior, look)?;
        }
        let snapshot = self.look.catalog.snapshot(self.look.transaction)?;
        let look = &CompileContext { snapshot: &snapshot, path: None, ..*self.look };
        let domains: Vec<_> =
            snapshot.domains().filter(|it| is_owned(&snapshot, it.id)).cloned().collect();
        if !domains.is_empty() {
            let behavior = DropBehavior::from(cascade);
            look.catalog.drop_domains(look.transaction, &domains, behavior)?;
        }
        let enums: Vec<_> =
            snapshot.enums().filter(|it| is_owned(&snapshot, it.id)).cloned().collect();
        if !enums.is_empty() {
            let behavior = DropBehavior::from(cascade);
            look.catalog.drop_enums(look.transaction, &enums, behavior)?;
        }
        let composites: Vec<_> =
            snapshot.composites().filter(|it| is_owned(&snapshot, it.id)).cloned().collect();
        if !composites.is_empty() {
            let behavior = DropBehavior::from(cascade);
            look.catalog.drop_composites(look.transaction, &composites, behavior)?;
        }
        let collations: Vec<_> =
            snapshot.collations().filter(|it| is_owned(&snapshot, it.id)).cloned().collect();
        if !collations.is_empty() {
            let behavior = DropBehavior::from(cascade);
            look.catalog.drop_collations(look.transaction, &collations, behavior)?;
        }
        let schemas = snapshot.schemas().filter(|it| is_owned(&snapshot, it.id));
        let names: Vec<SmolStr> = schemas.map(|it| it.name.clone()).collect();
        super::super::definition::apply(&CatalogChange::DropSchemas(names, true, cascade), look)
    }
}

/// Returns the schema of a lookup name.
pub(super) fn schema_of(name: &str) -> SmolStr {
    split_lookup_name(name).0
}
