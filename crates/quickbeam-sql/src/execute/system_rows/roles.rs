//! Catalogs of roles and memberships, and the rights that other catalogs show.

use super::{SystemRow, SystemSource};
use crate::catalog::describe::{Described, quoted_if_needed};
use crate::catalog::rights::{MONITOR, MembershipUse, OF_MONITOR, PREDEFINED_ROLES};
use crate::catalog::system::{PUBLIC_SCHEMA, object_oid, role_oid};
use crate::catalog::{
    ALL_ROLES, AclItem, AclKind, BOOTSTRAP, BOOTSTRAP_NAME, CatalogSnapshot, Membership, ObjectId,
    PUBLIC_SCHEMA_ID, Privileges, Role, SettingList, SettingPlace, is_temporary_schema,
};
use crate::types::{Array, ElementType, Value, ValueRef};

/// Returns the rights in the form of a text array.
fn acl_text(snapshot: &CatalogSnapshot, items: &[AclItem]) -> String {
    let name = |role: ObjectId| quoted_if_needed(&snapshot.role_name(role));
    let quoted = |item: &AclItem| {
        format!("\"{}\"", item.text(&name).replace('\\', "\\\\").replace('"', "\\\""))
    };
    format!("{{{}}}", items.iter().map(quoted).collect::<Vec<_>>().join(","))
}

/// Returns settings as an array of texts.
fn settings_array(list: &SettingList) -> Value {
    let texts: Vec<String> = list.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let values = texts.iter().map(|text| ValueRef::Text(text));
    Array::new(ElementType::TEXT, values).map_or(Value::Null, Value::Array)
}

/// The bootstrap role, as if it were stored.
fn bootstrap() -> Role {
    Role {
        superuser: true,
        create_role: true,
        create_database: true,
        login: true,
        replication: true,
        bypass_rls: true,
        ..Role::new(BOOTSTRAP, BOOTSTRAP_NAME.into())
    }
}

/// The predefined roles, as if they were stored.
fn predefined() -> impl Iterator<Item = Role> {
    PREDEFINED_ROLES.iter().map(|&(id, name, _)| {
        let groups = if id == MONITOR { &OF_MONITOR[..] } else { &[] };
        let member = |role: &ObjectId| Membership { role: *role, grantor: BOOTSTRAP, admin: false };
        let member_of = groups.iter().map(member).collect();
        Role { member_of, ..Role::new(id, name.into()) }
    })
}

impl SystemSource<'_> {
    pub(super) fn role_rows(&mut self) {
        let snapshot = self.snapshot;
        let stored = snapshot.roles().map(|role| (**role).clone());
        let built_in = std::iter::once(bootstrap()).chain(predefined());
        let roles: Vec<Role> = built_in.chain(stored).collect();
        match self.table.name {
            "pg_auth_members" => {
                for role in &roles {
                    for membership in &role.member_of {
                        self.add(|row| {
                            row.set("roleid", role_oid(membership.role));
                            row.set("member", role_oid(role.id));
                            row.set("grantor", role_oid(membership.grantor));
                            row.set("admin_option", membership.admin);
                        });
                    }
                }
            }
            "pg_db_role_setting" => self.role_settings(),
            "pg_default_acl" => self.default_rights(),
            "pg_group" => {
                for group in roles.iter().filter(|role| !role.login) {
                    let is_member =
                        |role: &&Role| role.member_of.iter().any(|it| it.role == group.id);
                    let members = roles.iter().filter(is_member);
                    let members: Vec<String> =
                        members.map(|role| role_oid(role.id).to_string()).collect();
                    self.add(|row| {
                        row.text("groname", &group.name).set("grosysid", role_oid(group.id));
                        row.text("grolist", format!("{{{}}}", members.join(",")));
                    });
                }
            }
            name => {
                let of_users = matches!(name, "pg_user" | "pg_shadow");
                for role in roles.iter().filter(|role| role.login || !of_users) {
                    let settings = snapshot.settings.get(&role.id);
                    let settings = settings.map(|it| it.of(SettingPlace::Everywhere));
                    self.add(|row| {
                        role_row(row, role);
                        if let Some(list) = settings.filter(|list| !list.is_empty()) {
                            let text = settings_array(list);
                            row.set("rolconfig", text.clone()).set("useconfig", text);
                        }
                    });
                }
            }
        }
    }

    /// Returns the roles whose rights the session has: for a superuser all.
    pub(super) fn enabled_roles(&self) -> Vec<ObjectId> {
        let (snapshot, role) = (self.snapshot, self.session.role());
        if !snapshot.is_superuser(role) {
            return snapshot.roles_of(role, MembershipUse::Inherited).into_iter().collect();
        }
        let built_in = PREDEFINED_ROLES.iter().map(|(id, ..)| *id).chain([BOOTSTRAP]);
        built_in.chain(snapshot.roles().map(|it| it.id)).collect()
    }

    fn role_settings(&mut self) {
        for (&role, settings) in &self.snapshot.settings {
            let role = if role == ALL_ROLES { 0 } else { role_oid(role) };
            for (place, database) in [(SettingPlace::Everywhere, 0), (SettingPlace::Database, 5)] {
                let list = settings.of(place);
                if !list.is_empty() {
                    self.add(|row| {
                        row.set("setdatabase", database).set("setrole", role);
                        row.set("setconfig", settings_array(list));
                    });
                }
            }
        }
    }

    fn default_rights(&mut self) {
        let snapshot = self.snapshot;
        for (&owner, rights) in &snapshot.default_rights {
            for entry in &rights.entries {
                let kind = match entry.kind {
                    AclKind::Sequence => "S",
                    AclKind::Function => "f",
                    AclKind::Schema => "n",
                    _ => "r",
                };
                let schema = match entry.schema {
                    None => 0,
                    Some(PUBLIC_SCHEMA_ID) => PUBLIC_SCHEMA,
                    Some(id) => object_oid(id),
                };
                self.add(|row| {
                    row.set("oid", object_oid(entry.id)).set("defaclrole", role_oid(owner));
                    row.set("defaclnamespace", schema).text("defaclobjtype", kind);
                    row.text("defaclacl", acl_text(snapshot, &entry.items));
                });
            }
        }
    }

    /// Returns the owner of an object, as the columns of OIDs have it.
    pub(super) fn owner_oid(&self, id: ObjectId) -> i64 {
        role_oid(self.snapshot.owner(id))
    }

    /// Returns the name of the owner of an object.
    pub(super) fn owner_name(&self, id: ObjectId) -> String {
        self.snapshot.role_name(self.snapshot.owner(id)).to_string()
    }

    /// Returns the rights on an object as its catalog shows them; `None` as long as none was
    /// granted or revoked.
    pub(super) fn acl(&self, id: ObjectId) -> Option<String> {
        let items = self.snapshot.access(id)?.acl.as_ref()?;
        Some(acl_text(self.snapshot, items))
    }

    /// As [`acl`](Self::acl), of a column.
    pub(super) fn column_acl(&self, id: ObjectId, column: u16) -> Option<String> {
        let items = self.snapshot.access(id)?.columns.get(&column)?;
        Some(acl_text(self.snapshot, items))
    }

    /// Whether `information_schema` shows a relation, or the column of that number: to roles that
    /// own it or have a right on it.
    pub(super) fn is_shown(&self, relation: Described<'_>, column: Option<u16>) -> bool {
        let (snapshot, role) = (self.snapshot, self.session.role());
        // Those of other sessions are not shown.
        if is_temporary_schema(relation.schema())
            && self.session.temporary_schema().as_ref() != Some(relation.schema())
        {
            return false;
        }
        let (id, kind) = match relation {
            Described::Table(table) | Described::Index(table, _) | Described::PrimaryKey(table) => {
                (table.id, AclKind::Table)
            }
            Described::View(view) => (view.id, AclKind::Table),
            Described::Sequence(sequence) => (sequence.id, AclKind::Sequence),
        };
        if snapshot.owns(role, id) || !snapshot.rights(role, id, kind).is_empty() {
            return true;
        }
        match column {
            Some(column) => !snapshot.column_rights(role, id, column).is_empty(),
            None => {
                kind.all().names().any(|(privilege, _)| snapshot.has_any(role, id, kind, privilege))
            }
        }
    }

    /// The privileges on tables, views and their columns in `information_schema`.
    pub(super) fn privilege_rows(&mut self) {
        let snapshot = self.snapshot;
        let of_columns = matches!(self.table.name, "column_privileges" | "role_column_grants");
        for relation in snapshot.described() {
            let (id, columns): (ObjectId, Vec<(String, u16)>) = match relation {
                Described::Table(table) if table.materialized.is_some() => continue,
                Described::Table(table) => {
                    let columns = table.columns.iter().map(|it| (it.name.to_string(), it.id));
                    (table.id, columns.collect())
                }
                Described::View(view) => {
                    (view.id, view.columns.iter().map(|it| it.to_string()).zip(1..).collect())
                }
                _ => continue,
            };
            let access = snapshot.access(id).map(|it| (**it).clone()).unwrap_or_default();
            let whole = access.items(id, AclKind::Table);
            if !of_columns {
                for item in &whole {
                    self.privilege(relation, None, item, AclKind::Table.all());
                }
                continue;
            }
            let possible = Privileges::SELECT
                .and(Privileges::INSERT)
                .and(Privileges::UPDATE)
                .and(Privileges::REFERENCES);
            for (name, number) in &columns {
                for item in whole.iter().chain(access.columns.get(number).into_iter().flatten()) {
                    self.privilege(relation, Some(name), item, possible);
                }
            }
        }
    }

    fn privilege(
        &mut self,
        relation: Described<'_>,
        column: Option<&str>,
        item: &AclItem,
        possible: Privileges,
    ) {
        let snapshot = self.snapshot;
        let roles = snapshot.roles_of(self.session.role(), MembershipUse::Inherited);
        let is_superuser = snapshot.is_superuser(self.session.role());
        let concerns = |role: &ObjectId| is_superuser || roles.contains(role);
        if !concerns(&item.grantor) && item.grantee.is_some_and(|it| !concerns(&it)) {
            return;
        }
        for (privilege, name) in item.privileges.within(possible).names() {
            self.add(|row| {
                let grantee = item.grantee.map(|it| snapshot.role_name(it));
                row.text("grantor", snapshot.role_name(item.grantor));
                row.text("grantee", grantee.as_deref().unwrap_or("PUBLIC"));
                row.text("table_catalog", super::NAME).text("table_schema", relation.schema());
                row.text("table_name", relation.name()).text("privilege_type", name);
                if let Some(column) = column {
                    row.text("column_name", column);
                }
                let is_own = item.grantee == Some(item.grantor);
                let grantable = is_own || item.grantable.has(privilege);
                row.text("is_grantable", if grantable { "YES" } else { "NO" });
                let hierarchy = privilege == Privileges::SELECT;
                row.text("with_hierarchy", if hierarchy { "YES" } else { "NO" });
            });
        }
    }
}

fn role_row(row: &mut SystemRow<'_>, role: &Role) {
    let is_secret = matches!(row.table.name, "pg_roles" | "pg_user");
    row.set("oid", role_oid(role.id)).text("rolname", &role.name);
    row.set("rolsuper", role.superuser).set("rolinherit", role.inherit);
    row.set("rolcreaterole", role.create_role).set("rolcreatedb", role.create_database);
    row.set("rolcanlogin", role.login).set("rolreplication", role.replication);
    row.set("rolbypassrls", role.bypass_rls).set("rolconnlimit", role.connection_limit);
    row.text("usename", &role.name).set("usesysid", role_oid(role.id));
    row.set("usesuper", role.superuser).set("usecreatedb", role.create_database);
    row.set("userepl", role.replication).set("usebypassrls", role.bypass_rls);
    let until = role.valid_until.map_or(Value::Null, Value::TimestampTz);
    row.set("rolvaliduntil", until.clone()).set("valuntil", until);
    match &role.password {
        _ if is_secret => {
            row.text("rolpassword", "********").text("passwd", "********");
        }
        Some(verifier) => {
            row.text("rolpassword", verifier).text("passwd", verifier);
        }
        None => {}
    }
}
