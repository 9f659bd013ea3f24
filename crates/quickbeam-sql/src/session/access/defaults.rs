//! ALTER DEFAULT PRIVILEGES: the rights with which new objects of a role begin.

use smol_str::SmolStr;

use super::AccessChange;
use super::grants::{Revoke, add, named_privilege};
use super::insufficient;
use crate::catalog::system::role_oid;
use crate::catalog::{
    AclItem, AclKind, CatalogSnapshot, DefaultAcl, DefaultRights, ObjectAccess, ObjectId,
    Privileges,
};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{DefaultKind, DefaultsChange};
use crate::schema::errors::no_schema;

fn acl_kind(kind: DefaultKind) -> (AclKind, &'static str) {
    match kind {
        DefaultKind::Tables => (AclKind::Table, "relation"),
        DefaultKind::Sequences => (AclKind::Sequence, "sequence"),
        DefaultKind::Functions => (AclKind::Function, "function"),
        DefaultKind::Schemas => (AclKind::Schema, "schema"),
    }
}

/// Returns the rights on a new object without ALTER DEFAULT PRIVILEGES.
fn built_in(owner: ObjectId, kind: AclKind) -> Vec<AclItem> {
    let access = ObjectAccess { owner: owner.0, ..ObjectAccess::default() };
    sorted(access.items(ObjectId(0), kind))
}

/// Orders rights as PostgreSQL does: PUBLIC first, then by the numbers of the roles.
fn sorted(mut items: Vec<AclItem>) -> Vec<AclItem> {
    items.sort_by_key(|item| (item.grantee.map_or(0, role_oid), role_oid(item.grantor)));
    items
}

impl CatalogSnapshot {
    /// Returns the rights with which a new object of a role begins. Returns `None` for the built-in
    /// ones.
    pub(in crate::session) fn first_rights(
        &self,
        owner: ObjectId,
        kind: AclKind,
        schema: Option<&str>,
    ) -> Option<Vec<AclItem>> {
        let entries = &self.default_rights.get(&owner)?.entries;
        let schema = schema.map(|name| self.schema_id(name));
        let of = |schema| entries.iter().find(|it| it.kind == kind && it.schema == schema);
        let (everywhere, inside) = (of(None), schema.and_then(|schema| of(Some(schema))));
        if everywhere.is_none() && inside.is_none() {
            return None;
        }
        let first = built_in(owner, kind);
        let mut items = everywhere.map_or_else(|| first.clone(), |it| it.items.clone());
        for item in inside.iter().flat_map(|it| &it.items) {
            let AclItem { grantee, grantor, privileges, grantable } = *item;
            add(&mut items, grantee, grantor, privileges, grantable);
        }
        Some(sorted(items)).filter(|items| *items != first)
    }

    /// Returns what default rights depend on a role, as the detail of an error lists it.
    pub(super) fn default_rights_with(&self, role: ObjectId) -> Vec<String> {
        let mut found = Vec::new();
        for (owner, rights) in &self.default_rights {
            for entry in &rights.entries {
                let object = self.default_rights_text(*owner, entry);
                if *owner == role {
                    found.push(format!("owner of {object}"));
                } else if entry.items.iter().any(|it| it.grantee == Some(role)) {
                    found.push(format!("privileges for {object}"));
                }
            }
        }
        found
    }

    fn default_rights_text(&self, owner: ObjectId, entry: &DefaultAcl) -> String {
        let objects = match entry.kind {
            AclKind::Sequence => "sequences",
            AclKind::Function => "functions",
            AclKind::Schema => "schemas",
            _ => "relations",
        };
        let role = self.role_name(owner);
        let text = format!("default privileges on new {objects} belonging to role {role}");
        match entry.schema {
            None => text,
            Some(schema) => format!("{text} in schema {}", self.schema_name(schema)),
        }
    }

    fn schema_name(&self, id: ObjectId) -> SmolStr {
        let found = self.schemas.values().find(|schema| schema.id == id);
        found.map_or(crate::catalog::PUBLIC, |schema| schema.name.clone())
    }
}

impl AccessChange<'_> {
    /// ALTER DEFAULT PRIVILEGES.
    pub fn change_defaults(&self, change: &DefaultsChange) -> Result<()> {
        let invalid = |message: String| SqlError::new(SqlState::InvalidGrantOperation, message);
        let (kind, word) = acl_kind(change.kind);
        let grantees = change.grantees.iter().map(|it| self.grantee(it));
        let grantees: Vec<Option<ObjectId>> = grantees.collect::<Result<_>>()?;
        let privileges = privileges_of(change, kind, word)?;
        let roles = change.roles.iter().map(|role| self.role(role));
        let mut roles: Vec<ObjectId> = roles.collect::<Result<_>>()?;
        if roles.is_empty() {
            roles.push(self.user);
        }
        for role in roles {
            if !self.before().is_member(self.user, role) {
                let name = self.before().role_name(role);
                return Err(insufficient(format!("must be member of role \"{name}\"")));
            }
            let mut places = vec![None];
            if !change.schemas.is_empty() {
                let schemas = change.schemas.iter().map(|name| self.place(name));
                places = schemas.collect::<Result<_>>()?;
                if kind == AclKind::Schema {
                    let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
                    return Err(invalid(message.to_owned()));
                }
            }
            if change.grants && change.option && grantees.contains(&None) {
                return Err(invalid("grant options can only be granted to roles".to_owned()));
            }
            let mut rights = self.edit.latest_default_rights(role)?;
            for place in places {
                self.change_default(&mut rights, (role, kind, place), |items| {
                    for grantee in &grantees {
                        if change.grants {
                            let grantable =
                                if change.option { privileges } else { Privileges::NONE };
                            add(items, *grantee, role, privileges, grantable);
                        } else {
                            let (option, cascade) = (change.option, change.cascade);
                            let revoke = Revoke { owner: role, option, cascade };
                            revoke.from(items, *grantee, role, privileges)?;
                        }
                    }
                    Ok(())
                })?;
            }
            self.edit.put_default_rights(role, rights)?;
        }
        Ok(())
    }

    /// Returns the number of a schema that has to be there.
    fn place(&self, name: &str) -> Result<Option<ObjectId>> {
        let before = self.before();
        if before.has_schema(name) {
            Ok(Some(before.schema_id(name)))
        } else {
            Err(no_schema(name))
        }
    }

    /// Changes the rights of one kind of objects. What is as without the statement is not kept.
    fn change_default(
        &self,
        rights: &mut DefaultRights,
        (role, kind, schema): (ObjectId, AclKind, Option<ObjectId>),
        edit: impl FnOnce(&mut Vec<AclItem>) -> Result<()>,
    ) -> Result<()> {
        let first = if schema.is_none() { built_in(role, kind) } else { Vec::new() };
        let at = rights.entries.iter().position(|it| it.kind == kind && it.schema == schema);
        let known = at.and_then(|at| rights.entries.get(at));
        let mut items = known.map_or_else(|| first.clone(), |entry| entry.items.clone());
        edit(&mut items)?;
        let items = sorted(items);
        if items == first {
            rights.entries.retain(|it| it.kind != kind || it.schema != schema);
            return Ok(());
        }
        match at.and_then(|at| rights.entries.get_mut(at)) {
            Some(entry) => entry.items = items,
            None => {
                let id = self.edit.new_id()?;
                rights.entries.push(DefaultAcl { id, kind, schema, items });
            }
        }
        Ok(())
    }

    /// DROP OWNED: forgets the default rights of roles, and those that they have.
    pub fn drop_default_rights(&self, roles: &[ObjectId]) -> Result<()> {
        for (owner, rights) in &self.before().default_rights {
            let mut rights = rights.clone();
            if roles.contains(owner) {
                rights.entries.clear();
            }
            for entry in &mut rights.entries {
                entry.items.retain(|it| it.grantee.is_none_or(|role| !roles.contains(&role)));
            }
            let is_first = |it: &DefaultAcl| match it.schema {
                None => it.items == built_in(*owner, it.kind),
                Some(_) => it.items.is_empty(),
            };
            rights.entries.retain(|it| !is_first(it));
            self.edit.put_default_rights(*owner, rights)?;
        }
        Ok(())
    }
}

/// Returns the privileges of a statement.
fn privileges_of(change: &DefaultsChange, kind: AclKind, word: &str) -> Result<Privileges> {
    if change.privileges.is_empty() {
        return Ok(kind.all());
    }
    let mut all = Privileges::NONE;
    for (name, columns) in &change.privileges {
        if !columns.is_empty() {
            let message = "default privileges cannot be set for columns";
            return Err(SqlError::new(SqlState::InvalidGrantOperation, message));
        }
        all = all.and(named_privilege(name, kind, word)?);
    }
    Ok(all)
}
