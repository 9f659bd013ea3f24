//! What roles may do, as a snapshot knows it.

use std::collections::BTreeSet;
use std::sync::Arc;

use smol_str::SmolStr;

use super::CatalogSnapshot;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::roles::{
    AclItem, AclKind, BOOTSTRAP, BOOTSTRAP_NAME, DATABASE_ID, ObjectAccess, PUBLIC_SCHEMA_ID,
    Privileges, Role,
};
pub use crate::schema::roles::{
    CHECKPOINT, MONITOR, OF_MONITOR, PREDEFINED_ROLES, READ_ALL_DATA, READ_ALL_STATS,
    SIGNAL_BACKEND, WRITE_ALL_DATA,
};
use crate::schema::{ObjectId, PUBLIC, Relation, is_system_schema};

/// Whether a role is one of those that are there without a record, besides the bootstrap role.
#[must_use]
pub fn is_predefined(role: ObjectId) -> bool {
    PREDEFINED_ROLES.iter().any(|it| it.0 == role)
}

/// Which memberships of a role count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipUse {
    /// Those whose rights it has without SET ROLE.
    Inherited,
    /// All of them.
    Any,
}

/// The error for an action on an object without the right to it.
#[cold]
pub fn denied(kind: &str, name: &str) -> SqlError {
    let message = format!("permission denied for {kind} {name}");
    SqlError::new(SqlState::InsufficientPrivilege, message)
}

/// The error for a change of an object by another role than its owner.
#[cold]
pub fn not_owner(kind: &str, name: &str) -> SqlError {
    let message = format!("must be owner of {kind} {name}");
    SqlError::new(SqlState::InsufficientPrivilege, message)
}

/// The error for a role that does not exist.
#[cold]
pub fn no_role(name: &str) -> SqlError {
    SqlError::new(SqlState::UndefinedObject, format!("role \"{name}\" does not exist"))
}

impl CatalogSnapshot {
    /// Returns the role of that number; `None` for the bootstrap role.
    #[must_use]
    pub fn role(&self, id: ObjectId) -> Option<&Arc<Role>> {
        self.roles.get(&id)
    }

    /// Returns the stored roles.
    pub fn roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.roles.values()
    }

    /// Returns the number of the role of that name.
    #[must_use]
    pub fn role_named(&self, name: &str) -> Option<ObjectId> {
        if name == BOOTSTRAP_NAME {
            return Some(BOOTSTRAP);
        }
        if let Some(predefined) = PREDEFINED_ROLES.iter().find(|it| it.1 == name) {
            return Some(predefined.0);
        }
        self.roles.values().find(|role| role.name == name).map(|role| role.id)
    }

    /// Returns the number of the role with that OID.
    #[must_use]
    pub fn role_of_oid(&self, oid: i64) -> Option<ObjectId> {
        let stored = self.roles.values().map(|role| role.id);
        let predefined = PREDEFINED_ROLES.iter().map(|it| it.0);
        let mut all = std::iter::once(BOOTSTRAP).chain(predefined).chain(stored);
        all.find(|id| super::system::role_oid(*id) == oid)
    }

    /// Returns the number of a role that has to be there.
    pub fn known_role(&self, name: &str) -> Result<ObjectId> {
        self.role_named(name).ok_or_else(|| no_role(name))
    }

    /// Returns the name of a role; that of a role which is gone is a number.
    #[must_use]
    pub fn role_name(&self, id: ObjectId) -> SmolStr {
        match self.roles.get(&id) {
            Some(role) => role.name.clone(),
            None if id == BOOTSTRAP => SmolStr::new_static(BOOTSTRAP_NAME),
            None if is_predefined(id) => {
                let known = PREDEFINED_ROLES.iter().find(|it| it.0 == id);
                SmolStr::new_static(known.map_or("", |it| it.1))
            }
            None => smol_str::format_smolstr!("{}", super::system::role_oid(id)),
        }
    }

    /// Whether a role is a superuser.
    #[must_use]
    pub fn is_superuser(&self, role: ObjectId) -> bool {
        role == BOOTSTRAP || self.roles.get(&role).is_some_and(|role| role.superuser)
    }

    /// Returns a role and the roles that it is a member of, directly or not. `inherited`: only
    /// those whose rights it has without SET ROLE.
    #[must_use]
    pub fn roles_of(&self, role: ObjectId, memberships: MembershipUse) -> BTreeSet<ObjectId> {
        let inherited = memberships == MembershipUse::Inherited;
        let (mut found, mut open) = (BTreeSet::from([role]), vec![role]);
        while let Some(next) = open.pop() {
            if next == MONITOR {
                found.extend(OF_MONITOR);
            }
            let Some(known) = self.roles.get(&next).filter(|it| it.inherit || !inherited) else {
                continue;
            };
            for membership in &known.member_of {
                if found.insert(membership.role) {
                    open.push(membership.role);
                }
            }
        }
        found
    }

    /// Whether a role may take on another by SET ROLE.
    #[must_use]
    pub fn is_member(&self, role: ObjectId, of: ObjectId) -> bool {
        self.is_superuser(role) || self.roles_of(role, MembershipUse::Any).contains(&of)
    }

    /// Returns the owner and the rights of an object.
    #[must_use]
    pub fn access(&self, id: ObjectId) -> Option<&Arc<ObjectAccess>> {
        self.access.get(&id)
    }

    /// Returns the owner of an object.
    #[must_use]
    pub fn owner(&self, id: ObjectId) -> ObjectId {
        self.access.get(&id).map_or(BOOTSTRAP, |access| access.owner())
    }

    /// Whether a role has the rights of an object's owner.
    #[must_use]
    pub fn owns(&self, role: ObjectId, id: ObjectId) -> bool {
        self.is_superuser(role)
            || self.roles_of(role, MembershipUse::Inherited).contains(&self.owner(id))
    }

    /// Returns which of the privileges a role has on an object as a whole.
    #[must_use]
    pub fn rights(&self, role: ObjectId, id: ObjectId, kind: AclKind) -> Privileges {
        if self.is_superuser(role) {
            return kind.all();
        }
        let granted = match self.access.get(&id) {
            None => kind.of_public(id),
            Some(access) => self.sum(role, &access.items(id, kind)).0,
        };
        granted.and(self.of_predefined(role, kind))
    }

    /// Returns the privileges on all objects of a kind that a role has by predefined roles.
    fn of_predefined(&self, role: ObjectId, kind: AclKind) -> Privileges {
        let (read, write) = match kind {
            AclKind::Table => (
                Privileges::SELECT,
                Privileges::INSERT.and(Privileges::UPDATE).and(Privileges::DELETE),
            ),
            AclKind::Sequence => (Privileges::SELECT, Privileges::UPDATE),
            AclKind::Schema => (Privileges::USAGE, Privileges::USAGE),
            AclKind::Database | AclKind::Function | AclKind::Type => return Privileges::NONE,
        };
        let roles = self.roles_of(role, MembershipUse::Inherited);
        let of = |role: ObjectId, privileges: Privileges| {
            if roles.contains(&role) { privileges } else { Privileges::NONE }
        };
        of(READ_ALL_DATA, read).and(of(WRITE_ALL_DATA, write))
    }

    /// Returns the privileges that items give a role, and those that it may grant on.
    fn sum(&self, role: ObjectId, items: &[AclItem]) -> (Privileges, Privileges) {
        let roles = self.roles_of(role, MembershipUse::Inherited);
        let (mut has, mut grants) = (Privileges::NONE, Privileges::NONE);
        for item in items {
            if item.grantee.is_none_or(|grantee| roles.contains(&grantee)) {
                has = has.and(item.privileges);
                grants = grants.and(item.grantable);
            }
        }
        (has, grants)
    }

    /// Returns the privileges that a role has on a column by rights on that column.
    #[must_use]
    pub fn column_rights(&self, role: ObjectId, id: ObjectId, column: u16) -> Privileges {
        let items = self.access.get(&id).and_then(|access| access.columns.get(&column));
        items.map_or(Privileges::NONE, |items| self.sum(role, items).0)
    }

    /// Whether a role has a privilege on an object, or on a column of it.
    #[must_use]
    pub fn has_any(&self, role: ObjectId, id: ObjectId, kind: AclKind, wanted: Privileges) -> bool {
        if self.rights(role, id, kind).has(wanted) {
            return true;
        }
        let Some(access) = self.access.get(&id) else { return false };
        access.columns.values().any(|items| self.sum(role, items).0.has(wanted))
    }

    /// Returns the privileges that a role may grant on an object or its column.
    #[must_use]
    pub fn grantable(
        &self,
        role: ObjectId,
        id: ObjectId,
        kind: AclKind,
        column: Option<u16>,
    ) -> Privileges {
        if self.owns(role, id) {
            return kind.all();
        }
        let Some(access) = self.access.get(&id) else { return Privileges::NONE };
        let whole = self.sum(role, &access.items(id, kind)).1;
        let items = column.and_then(|column| access.columns.get(&column));
        items.map_or(whole, |items| whole.and(self.sum(role, items).1))
    }

    /// Returns the number under which the rights on a schema are kept.
    #[must_use]
    pub fn schema_id(&self, name: &str) -> ObjectId {
        if name == PUBLIC {
            return PUBLIC_SCHEMA_ID;
        }
        self.schemas.get(name).map_or(BOOTSTRAP, |schema| schema.id)
    }

    /// Whether a role has a privilege on a schema.
    #[must_use]
    pub fn may_in_schema(&self, role: ObjectId, name: &str, wanted: Privileges) -> bool {
        if is_system_schema(name) {
            return wanted == Privileges::USAGE || self.is_superuser(role);
        }
        self.rights(role, self.schema_id(name), AclKind::Schema).has(wanted)
    }

    /// Whether a role has a privilege on the database.
    #[must_use]
    pub fn may_in_database(&self, role: ObjectId, wanted: Privileges) -> bool {
        self.rights(role, DATABASE_ID, AclKind::Database).has(wanted)
    }
}

impl Relation {
    /// Returns the number under which the rights on it are kept, and its kind. An index has those
    /// of its table.
    #[must_use]
    pub fn protected(&self) -> (ObjectId, AclKind) {
        match self {
            Relation::Table(table) | Relation::Index(table, _) => (table.id, AclKind::Table),
            Relation::View(view) => (view.id, AclKind::Table),
            Relation::Sequence(sequence) => (sequence.id, AclKind::Sequence),
        }
    }

    /// Returns its kind as messages name it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Relation::Table(table) => table.word(),
            Relation::View(_) => "view",
            Relation::Sequence(_) => "sequence",
            Relation::Index(..) => "index",
        }
    }
}
