//! GRANT and REVOKE of privileges.

use std::sync::Arc;

use smol_str::SmolStr;

use super::AccessChange;
use crate::bind::{Binder, Names};
use crate::catalog::rights::MembershipUse;
use crate::catalog::rights::denied;
use crate::catalog::{
    AclItem, AclKind, DATABASE_ID, ObjectAccess, ObjectId, Privileges, Relation, Routine,
    shown_name, split_lookup_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{GrantObjects, Name, PrivilegeChange};
use crate::schema::errors::{no_column, no_relation, no_schema};
use crate::session::events::NoticeLevel;

/// An object of GRANT or REVOKE.
struct GrantTarget {
    id: ObjectId,
    kind: AclKind,
    name: String,
    /// The names and numbers of its columns.
    columns: Vec<(SmolStr, u16)>,
}

impl GrantTarget {
    fn new(id: ObjectId, kind: AclKind, name: impl Into<String>) -> GrantTarget {
        GrantTarget { id, kind, name: name.into(), columns: Vec::new() }
    }

    fn column(&self, name: &str) -> Result<u16> {
        let found = self.columns.iter().find(|(known, _)| known == name);
        found.map(|it| it.1).ok_or_else(|| no_column(&self.name, name))
    }
}

/// Privileges of a whole object, or of a column.
type PrivilegePart = (Option<u16>, Privileges);

fn of_relation(relation: &Relation) -> GrantTarget {
    let (id, kind) = relation.protected();
    match relation {
        Relation::Table(table) | Relation::Index(table, _) => {
            let columns = table.columns.iter().map(|it| (it.name.clone(), it.id)).collect();
            GrantTarget { columns, ..GrantTarget::new(id, kind, &*table.name) }
        }
        Relation::View(view) => {
            let columns = view.columns.iter().cloned().zip(1..).collect();
            GrantTarget { columns, ..GrantTarget::new(id, kind, &*view.name) }
        }
        Relation::Sequence(sequence) => GrantTarget::new(id, kind, &*sequence.name),
    }
}

impl AccessChange<'_> {
    /// GRANT or REVOKE.
    pub fn privileges(&self, change: &PrivilegeChange) -> Result<()> {
        let grantees = change.grantees.iter().map(|it| self.grantee(it));
        let grantees: Vec<Option<ObjectId>> = grantees.collect::<Result<_>>()?;
        if change.grants && change.option && grantees.contains(&None) {
            let message = "grant options can only be granted to roles";
            return Err(SqlError::new(SqlState::InvalidGrantOperation, message));
        }
        if let GrantObjects::Types(_) | GrantObjects::Languages(_) = change.objects {
            return self.check_without_rights(change);
        }
        for target in self.targets(&change.objects)? {
            let parts = parts_of(change, &target)?;
            self.change_object(change, &target, &parts, &grantees)?;
        }
        Ok(())
    }

    /// GRANT and REVOKE on types and languages, which have no rights: every role may use them.
    fn check_without_rights(&self, change: &PrivilegeChange) -> Result<()> {
        let mut names = Vec::new();
        let what = match &change.objects {
            GrantObjects::Types(types) => {
                for name in types {
                    self.session.check_type(name, self.look)?;
                    names.push(&name.1);
                }
                "type"
            }
            GrantObjects::Languages(languages) => {
                languages.iter().try_for_each(|name| check_language(name))?;
                names.extend(languages);
                "language"
            }
            _ => return Ok(()),
        };
        for (word, columns) in &change.privileges {
            named_privilege(word, AclKind::Type, what)?;
            if !columns.is_empty() {
                let message = "column privileges are only valid for relations";
                return Err(SqlError::new(SqlState::InvalidGrantOperation, message));
            }
        }
        for name in names.into_iter().filter(|_| !change.grants) {
            self.session.notice(NoticeLevel::Warning, SqlState::PrivilegeNotRevoked, || {
                format!("no privileges could be revoked for \"{name}\"")
            });
        }
        Ok(())
    }

    fn targets(&self, objects: &GrantObjects) -> Result<Vec<GrantTarget>> {
        match objects {
            GrantObjects::Tables(names) => {
                names.iter().map(|name| self.relation_target(name, None)).collect()
            }
            GrantObjects::Sequences(names) => names
                .iter()
                .map(|name| self.relation_target(name, Some(AclKind::Sequence)))
                .collect(),
            GrantObjects::Schemas(names) => names
                .iter()
                .map(|name| {
                    self.check_schema(name)?;
                    Ok(GrantTarget::new(self.before().schema_id(name), AclKind::Schema, &**name))
                })
                .collect(),
            GrantObjects::Databases(names) => names
                .iter()
                .map(|name| match &name[..] {
                    "quickbeam" => {
                        Ok(GrantTarget::new(DATABASE_ID, AclKind::Database, "quickbeam"))
                    }
                    name => Err(SqlError::new(
                        SqlState::InvalidCatalogName,
                        format!("database \"{name}\" does not exist"),
                    )),
                })
                .collect(),
            // They have no rights.
            GrantObjects::Types(_) | GrantObjects::Languages(_) => Ok(Vec::new()),
            GrantObjects::AllTables(schemas) => self.all(schemas, AclKind::Table),
            GrantObjects::AllSequences(schemas) => self.all(schemas, AclKind::Sequence),
            GrantObjects::Functions(kind, names) => names
                .iter()
                .map(|(name, types)| {
                    let routine = self.granted_routine(kind, name, types.as_deref())?;
                    Ok(GrantTarget::new(routine.id, AclKind::Function, &*routine.name))
                })
                .collect(),
            GrantObjects::AllRoutines(kind, schemas) => {
                schemas.iter().try_for_each(|name| self.check_schema(name))?;
                let is_meant = |routine: &Routine| match *kind {
                    "FUNCTIONS" => !routine.is_procedure(),
                    "PROCEDURES" => routine.is_procedure(),
                    _ => true,
                };
                let inside = self.before().routines().filter(|it| schemas.contains(&it.schema));
                let inside = inside.filter(|it| is_meant(it));
                Ok(inside.map(|it| GrantTarget::new(it.id, AclKind::Function, &*it.name)).collect())
            }
        }
    }

    /// Returns the routine that GRANT or REVOKE names. An aggregate is a function there.
    fn granted_routine(
        &self,
        kind: &str,
        name: &Name,
        types: Option<&[String]>,
    ) -> Result<Arc<Routine>> {
        let known = |kind: &str| self.session.known_routine(kind, name, types, self.look);
        known(kind).or_else(|error| match kind {
            "FUNCTION" => known("AGGREGATE").map_err(|_| error),
            _ => Err(error),
        })
    }

    fn check_schema(&self, name: &str) -> Result<()> {
        if self.before().has_schema(name) { Ok(()) } else { Err(no_schema(name)) }
    }

    fn relation_target(&self, name: &Name, wanted: Option<AclKind>) -> Result<GrantTarget> {
        let relation = self.relation(name)?;
        let target = of_relation(&relation);
        if let Relation::Index(_, index) = &relation {
            let message = format!("\"{}\" is an index", index.name);
            return Err(SqlError::new(SqlState::WrongObjectType, message));
        }
        if wanted.is_some_and(|wanted| wanted != target.kind) {
            let message = format!("\"{}\" is not a sequence", target.name);
            return Err(SqlError::new(SqlState::WrongObjectType, message));
        }
        Ok(target)
    }

    /// Returns the table, view, sequence or index that a statement names.
    pub fn relation(&self, (schema, name): &Name) -> Result<Relation> {
        let lookup = Binder::new(self.look, "").lookup(schema.as_deref(), name)?;
        match self.look.relation(&lookup)? {
            Some(Relation::Table(table)) if table.is_database() => {
                let what = format!("rights on \"{name}\": it is a key/value database, which");
                Err(SqlError::unsupported(what))
            }
            Some(relation) => Ok(relation),
            None => Err(no_relation(&lookup)),
        }
    }

    fn all(&self, schemas: &[SmolStr], kind: AclKind) -> Result<Vec<GrantTarget>> {
        schemas.iter().try_for_each(|name| self.check_schema(name))?;
        let relations = self.before().relations().into_iter();
        let inside = relations.filter(|(name, relation)| {
            let is_index = matches!(relation, Relation::Index(..));
            schemas.contains(&split_lookup_name(name).0)
                && !is_index
                && relation.protected().1 == kind
        });
        Ok(inside.map(|(_, relation)| of_relation(&relation)).collect())
    }

    /// Changes the rights on one object.
    fn change_object(
        &self,
        change: &PrivilegeChange,
        target: &GrantTarget,
        parts: &[PrivilegePart],
        grantees: &[Option<ObjectId>],
    ) -> Result<()> {
        let mut access = self.edit.latest_access(target.id)?;
        for (column, wanted) in parts {
            let (grantor, allowed) = self.grantor(&access, target, *column, *wanted)?;
            if allowed.is_empty() {
                continue;
            }
            let owner = access.owner();
            let kind = target.kind;
            let items = match column {
                None => {
                    let items = access.items(target.id, kind);
                    access.acl.insert(items)
                }
                Some(column) => access.columns.entry(*column).or_default(),
            };
            for grantee in grantees {
                if change.grants {
                    let grantable = if change.option { allowed } else { Privileges::NONE };
                    add(items, *grantee, grantor, allowed, grantable);
                } else {
                    let revoke = Revoke { owner, option: change.option, cascade: change.cascade };
                    revoke.from(items, *grantee, grantor, allowed)?;
                }
            }
            // Rights on the columns go with those on the table.
            if !change.grants && column.is_none() {
                for items in access.columns.values_mut() {
                    for grantee in grantees {
                        let revoke =
                            Revoke { owner, option: change.option, cascade: change.cascade };
                        revoke.from(items, *grantee, grantor, allowed)?;
                    }
                }
            }
        }
        access.columns.retain(|_, items| !items.is_empty());
        self.edit.put_access(target.id, Some(access))
    }

    /// Returns who grants or revokes, and which of the privileges it may.
    fn grantor(
        &self,
        access: &ObjectAccess,
        target: &GrantTarget,
        column: Option<u16>,
        wanted: Privileges,
    ) -> Result<(ObjectId, Privileges)> {
        let before = self.before();
        if before.owns(self.user, target.id) {
            return Ok((access.owner(), wanted));
        }
        let mut best = (self.user, Privileges::NONE);
        for role in before.roles_of(self.user, MembershipUse::Inherited) {
            let on_columns = column.and_then(|column| access.columns.get(&column));
            let items = access.items(target.id, target.kind);
            let items = items.iter().chain(on_columns.into_iter().flatten());
            let own = items.filter(|item| item.grantee == Some(role));
            let options = own.fold(Privileges::NONE, |sum, item| sum.and(item.grantable));
            let options = options.within(wanted);
            if options.0.count_ones() > best.1.0.count_ones() {
                best = (role, options);
            }
        }
        let name = shown_name(&target.name);
        if best.1.is_empty() {
            let has_some = !before.rights(self.user, target.id, target.kind).is_empty()
                || column
                    .is_some_and(|it| !before.column_rights(self.user, target.id, it).is_empty());
            if !has_some {
                return Err(denied(target.kind.word(), &name));
            }
            self.session.notice(NoticeLevel::Warning, SqlState::Warning, || {
                format!("no privileges were granted for \"{name}\"")
            });
        } else if best.1 != wanted {
            self.session.notice(NoticeLevel::Warning, SqlState::Warning, || {
                format!("not all privileges were granted for \"{name}\"")
            });
        }
        Ok(best)
    }
}

/// Refuses a language that there is not, or that is not trusted.
fn check_language(name: &str) -> Result<()> {
    let (state, what) = match name {
        "sql" | "plpgsql" => return Ok(()),
        "c" | "internal" => (SqlState::WrongObjectType, "is not trusted"),
        _ => (SqlState::UndefinedObject, "does not exist"),
    };
    Err(SqlError::new(state, format!("language \"{name}\" {what}")))
}

/// Returns what a statement changes of an object.
fn parts_of(change: &PrivilegeChange, target: &GrantTarget) -> Result<Vec<PrivilegePart>> {
    const OF_COLUMNS: Privileges = Privileges::SELECT
        .and(Privileges::INSERT)
        .and(Privileges::UPDATE)
        .and(Privileges::REFERENCES);
    let invalid = |what: String| SqlError::new(SqlState::InvalidGrantOperation, what);
    let mut parts: Vec<PrivilegePart> = Vec::new();
    let mut add = |column: Option<u16>, privilege: Privileges| match parts
        .iter_mut()
        .find(|it| it.0 == column)
    {
        Some(part) => part.1 = part.1.and(privilege),
        None => parts.push((column, privilege)),
    };
    if change.privileges.is_empty() {
        for column in &change.all_columns {
            add(Some(target.column(column)?), OF_COLUMNS);
        }
        if change.all_columns.is_empty() {
            add(None, target.kind.all());
        }
    }
    for (word, columns) in &change.privileges {
        let privilege = named_privilege(word, target.kind, target.kind.word())?;
        if columns.is_empty() {
            add(None, privilege);
            continue;
        }
        if !OF_COLUMNS.has(privilege) || target.kind != AclKind::Table {
            return Err(invalid(format!("invalid privilege type {word} for column")));
        }
        for column in columns {
            add(Some(target.column(column)?), privilege);
        }
    }
    Ok(parts)
}

/// Returns the privilege of that name on objects of a kind, which messages call `what`.
pub(super) fn named_privilege(word: &str, kind: AclKind, what: &str) -> Result<Privileges> {
    let privilege = Privileges::named(word).ok_or_else(|| {
        let message = format!("unrecognized privilege type \"{}\"", word.to_lowercase());
        SqlError::new(SqlState::SyntaxError, message)
    })?;
    if kind.all().has(privilege) {
        return Ok(privilege);
    }
    let message = format!("invalid privilege type {word} for {what}");
    Err(SqlError::new(SqlState::InvalidGrantOperation, message))
}

/// Gives privileges to a role.
pub(super) fn add(
    items: &mut Vec<AclItem>,
    grantee: Option<ObjectId>,
    grantor: ObjectId,
    privileges: Privileges,
    grantable: Privileges,
) {
    let is_same = |item: &&mut AclItem| item.grantee == grantee && item.grantor == grantor;
    match items.iter_mut().find(is_same) {
        Some(item) => {
            item.privileges = item.privileges.and(privileges);
            item.grantable = item.grantable.and(grantable);
        }
        None => items.push(AclItem { grantee, grantor, privileges, grantable }),
    }
}

/// A REVOKE.
#[derive(Clone, Copy)]
pub(super) struct Revoke {
    pub owner: ObjectId,
    /// Only the grant option goes.
    pub option: bool,
    pub cascade: bool,
}

impl Revoke {
    /// Takes privileges from a role, and what the role has granted with them.
    pub fn from(
        self,
        items: &mut Vec<AclItem>,
        grantee: Option<ObjectId>,
        grantor: ObjectId,
        privileges: Privileges,
    ) -> Result<()> {
        let is_same = |item: &&mut AclItem| item.grantee == grantee && item.grantor == grantor;
        let Some(item) = items.iter_mut().find(is_same) else { return Ok(()) };
        let lost = item.grantable.within(privileges);
        item.grantable = item.grantable.without(privileges);
        if !self.option {
            item.privileges = item.privileges.without(privileges);
        }
        items.retain(|item| !item.privileges.is_empty());
        let Some(role) = grantee.filter(|role| *role != self.owner && !lost.is_empty()) else {
            return Ok(());
        };
        // Another grantor may have left the role its grant option.
        let still = items.iter().filter(|item| item.grantee == Some(role));
        let still = still.fold(Privileges::NONE, |sum, item| sum.and(item.grantable));
        let lost = lost.without(still);
        let dependent: Vec<AclItem> = items
            .iter()
            .filter(|item| item.grantor == role && !item.privileges.within(lost).is_empty())
            .copied()
            .collect();
        if !dependent.is_empty() && !self.cascade {
            return Err(SqlError::new(
                SqlState::DependentObjectsStillExist,
                "dependent privileges exist",
            )
            .with_hint("Use CASCADE to revoke them too."));
        }
        for item in dependent {
            let whole = Revoke { option: false, ..self };
            whole.from(items, item.grantee, role, lost)?;
        }
        Ok(())
    }
}
