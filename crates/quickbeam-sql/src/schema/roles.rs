//! Roles, and the rights that they have on objects.
//!
//! - ROLE-1: the bootstrap role has the number 0 and no record. It is a superuser and owns every
//!   object without a record of its rights.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::ObjectId;

/// The bootstrap role (ROLE-1).
pub const BOOTSTRAP: ObjectId = ObjectId(0);
/// The name of the bootstrap role.
pub const BOOTSTRAP_NAME: &str = "quickbeam";
/// The number under which the rights on the schema `public` are kept.
pub const PUBLIC_SCHEMA_ID: ObjectId = ObjectId(u32::MAX);
/// The number under which the rights on the database are kept.
pub const DATABASE_ID: ObjectId = ObjectId(u32::MAX - 1);

/// The predefined role that is a member of those that show what the server does.
pub const MONITOR: ObjectId = ObjectId(u32::MAX - 3);
/// The predefined role that sees the statements of all users.
pub const READ_ALL_STATS: ObjectId = ObjectId(u32::MAX - 4);
/// The predefined role that reads all tables, views and sequences.
pub const READ_ALL_DATA: ObjectId = ObjectId(u32::MAX - 5);
/// The predefined role that changes all tables, views and sequences.
pub const WRITE_ALL_DATA: ObjectId = ObjectId(u32::MAX - 6);
/// The predefined role that cancels and ends other sessions.
pub const SIGNAL_BACKEND: ObjectId = ObjectId(u32::MAX - 7);
/// The predefined role that executes CHECKPOINT.
pub const CHECKPOINT: ObjectId = ObjectId(u32::MAX - 8);
/// A predefined role of PostgreSQL that has nothing to show here.
pub const READ_ALL_SETTINGS: ObjectId = ObjectId(u32::MAX - 9);
/// A predefined role of PostgreSQL that has nothing to show here.
pub const SCAN_TABLES: ObjectId = ObjectId(u32::MAX - 10);

/// The predefined roles, with their names and PostgreSQL's OIDs. They have no records.
pub const PREDEFINED_ROLES: [(ObjectId, &str, i64); 8] = [
    (MONITOR, "pg_monitor", 3373),
    (READ_ALL_SETTINGS, "pg_read_all_settings", 3374),
    (READ_ALL_STATS, "pg_read_all_stats", 3375),
    (SCAN_TABLES, "pg_stat_scan_tables", 3377),
    (SIGNAL_BACKEND, "pg_signal_backend", 4200),
    (CHECKPOINT, "pg_checkpoint", 4544),
    (READ_ALL_DATA, "pg_read_all_data", 6181),
    (WRITE_ALL_DATA, "pg_write_all_data", 6182),
];

/// The predefined roles that `pg_monitor` is a member of.
pub const OF_MONITOR: [ObjectId; 3] = [READ_ALL_SETTINGS, READ_ALL_STATS, SCAN_TABLES];

fn yes() -> bool {
    true
}

fn no_limit() -> i32 {
    -1
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Its number.
    pub id: ObjectId,
    /// Its name.
    pub name: SmolStr,
    /// SUPERUSER.
    #[serde(default)]
    pub superuser: bool,
    /// INHERIT: it has the rights of the roles that it is a member of.
    #[serde(default = "yes")]
    pub inherit: bool,
    /// CREATEROLE.
    #[serde(default)]
    pub create_role: bool,
    /// CREATEDB.
    #[serde(default)]
    pub create_database: bool,
    /// LOGIN.
    #[serde(default)]
    pub login: bool,
    /// REPLICATION.
    #[serde(default)]
    pub replication: bool,
    /// BYPASSRLS.
    #[serde(default)]
    pub bypass_rls: bool,
    /// CONNECTION LIMIT; -1: none.
    #[serde(default = "no_limit")]
    pub connection_limit: i32,
    /// The SCRAM verifier of its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Arc<str>>,
    /// VALID UNTIL: microseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
    /// The roles that it is a member of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub member_of: Vec<Membership>,
}

impl Role {
    /// A role without rights.
    #[must_use]
    pub fn new(id: ObjectId, name: SmolStr) -> Role {
        Role {
            id,
            name,
            superuser: false,
            inherit: true,
            create_role: false,
            create_database: false,
            login: false,
            replication: false,
            bypass_rls: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
            member_of: Vec::new(),
        }
    }
}

/// The membership of one role in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Membership {
    /// The role whose rights the member has.
    pub role: ObjectId,
    /// Who granted it.
    pub grantor: ObjectId,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Privileges(pub u16);

/// Each privilege: its bit, its letter, and its name.
const ALL: [(Privileges, char, &str); 12] = [
    (Privileges::INSERT, 'a', "INSERT"),
    (Privileges::SELECT, 'r', "SELECT"),
    (Privileges::UPDATE, 'w', "UPDATE"),
    (Privileges::DELETE, 'd', "DELETE"),
    (Privileges::TRUNCATE, 'D', "TRUNCATE"),
    (Privileges::REFERENCES, 'x', "REFERENCES"),
    (Privileges::TRIGGER, 't', "TRIGGER"),
    (Privileges::EXECUTE, 'X', "EXECUTE"),
    (Privileges::USAGE, 'U', "USAGE"),
    (Privileges::CREATE, 'C', "CREATE"),
    (Privileges::TEMPORARY, 'T', "TEMPORARY"),
    (Privileges::CONNECT, 'c', "CONNECT"),
];

impl Privileges {
    /// No privilege.
    pub const NONE: Privileges = Privileges(0);
    /// INSERT.
    pub const INSERT: Privileges = Privileges(1);
    /// SELECT.
    pub const SELECT: Privileges = Privileges(2);
    /// UPDATE.
    pub const UPDATE: Privileges = Privileges(4);
    /// DELETE.
    pub const DELETE: Privileges = Privileges(8);
    /// TRUNCATE.
    pub const TRUNCATE: Privileges = Privileges(16);
    /// REFERENCES.
    pub const REFERENCES: Privileges = Privileges(32);
    /// TRIGGER.
    pub const TRIGGER: Privileges = Privileges(64);
    /// EXECUTE.
    pub const EXECUTE: Privileges = Privileges(128);
    /// USAGE.
    pub const USAGE: Privileges = Privileges(256);
    /// CREATE.
    pub const CREATE: Privileges = Privileges(512);
    /// TEMPORARY.
    pub const TEMPORARY: Privileges = Privileges(1024);
    /// CONNECT.
    pub const CONNECT: Privileges = Privileges(2048);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// Those of both sets.
    #[must_use]
    pub const fn within(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// These without the others.
    #[must_use]
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has all of the others.
    #[must_use]
    pub const fn has(self, others: Privileges) -> bool {
        self.0 & others.0 == others.0
    }

    /// Returns the privilege of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Privileges> {
        let name = if name.eq_ignore_ascii_case("TEMP") { "TEMPORARY" } else { name };
        ALL.iter().find(|(_, _, known)| known.eq_ignore_ascii_case(name)).map(|it| it.0)
    }

    /// Returns the name of each privilege of the set.
    pub fn names(self) -> impl Iterator<Item = (Privileges, &'static str)> {
        ALL.iter().filter(move |it| self.has(it.0)).map(|it| (it.0, it.2))
    }

    /// Writes the letters, each with a star if it may be granted on.
    fn write(self, grantable: Privileges, into: &mut String) {
        for (bit, letter, _) in ALL.iter().filter(|it| self.has(it.0)) {
            into.push(*letter);
            if grantable.has(*bit) {
                into.push('*');
            }
        }
    }
}

/// The kinds of objects that have rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AclKind {
    /// A table or view.
    Table,
    /// A sequence.
    Sequence,
    /// A schema.
    Schema,
    /// The database.
    Database,
    /// A function or procedure.
    Function,
    /// A type.
    Type,
}

impl AclKind {
    /// Returns all privileges that there are on such an object.
    #[must_use]
    pub const fn all(self) -> Privileges {
        match self {
            AclKind::Table => Privileges(127),
            AclKind::Sequence => Privileges::USAGE.and(Privileges::SELECT).and(Privileges::UPDATE),
            AclKind::Schema => Privileges::USAGE.and(Privileges::CREATE),
            AclKind::Database => {
                Privileges::CREATE.and(Privileges::TEMPORARY).and(Privileges::CONNECT)
            }
            AclKind::Function => Privileges::EXECUTE,
            AclKind::Type => Privileges::USAGE,
        }
    }

    /// Returns the privileges that PUBLIC has on an object of which nothing was granted or revoked.
    #[must_use]
    pub fn of_public(self, id: ObjectId) -> Privileges {
        match self {
            AclKind::Schema if id == PUBLIC_SCHEMA_ID => Privileges::USAGE,
            AclKind::Database => Privileges::TEMPORARY.and(Privileges::CONNECT),
            AclKind::Function => Privileges::EXECUTE,
            AclKind::Type => Privileges::USAGE,
            _ => Privileges::NONE,
        }
    }

    /// Returns the kind as messages name it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            AclKind::Table => "table",
            AclKind::Sequence => "sequence",
            AclKind::Schema => "schema",
            AclKind::Database => "database",
            AclKind::Function => "function",
            AclKind::Type => "type",
        }
    }
}

/// Privileges of one role, granted by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AclItem {
    /// Who has them; `None`: PUBLIC.
    pub grantee: Option<ObjectId>,
    /// Who granted them.
    pub grantor: ObjectId,
    /// The privileges.
    pub privileges: Privileges,
    /// Those that may be granted on.
    pub grantable: Privileges,
}

impl AclItem {
    /// Returns the item as `pg_class.relacl` shows it.
    #[must_use]
    pub fn text(&self, name: &dyn Fn(ObjectId) -> String) -> String {
        let mut text = self.grantee.map(name).unwrap_or_default();
        text.push('=');
        self.privileges.write(self.grantable, &mut text);
        text.push('/');
        text.push_str(&name(self.grantor));
        text
    }
}

/// The owner of an object, and who has which rights on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectAccess {
    /// The owner.
    #[serde(default)]
    pub owner: u32,
    /// The rights; `None` as long as none was granted or revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<Vec<AclItem>>,
    /// The rights on columns, by the number of the column.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<u16, Vec<AclItem>>,
}

impl ObjectAccess {
    /// Returns the owner.
    #[must_use]
    pub fn owner(&self) -> ObjectId {
        ObjectId(self.owner)
    }

    /// Returns the rights, also those that no statement has changed yet.
    #[must_use]
    pub fn items(&self, id: ObjectId, kind: AclKind) -> Vec<AclItem> {
        if let Some(acl) = &self.acl {
            return acl.clone();
        }
        let owner = self.owner();
        let item = |grantee, privileges| AclItem {
            grantee,
            grantor: owner,
            privileges,
            grantable: Privileges::NONE,
        };
        let mut items = Vec::new();
        let public = kind.of_public(id);
        if !public.is_empty() {
            items.push(item(None, public));
        }
        items.push(item(Some(owner), kind.all()));
        items
    }
}
