//! Roles, owners and rights as statements: what an SQL script of a dump has of them.
//!
//! The bootstrap role is CURRENT_USER in a script: the role that executes it. A role that is
//! already there stays as it is.

use std::fmt::Write;

use super::CatalogSnapshot;
use super::text::{literal, quoted, quoted_relation};
use crate::schema::names::is_temporary_schema;
use crate::schema::{
    AclItem, AclKind, BOOTSTRAP, DATABASE_ID, DefaultAcl, ObjectAccess, ObjectId, PUBLIC_SCHEMA_ID,
    Privileges, Relation, Role, RoleSettings, SettingPlace,
};
use crate::types::{TextSettings, Value, format_value};

/// An object as a statement names it.
struct NamedObject {
    id: ObjectId,
    kind: AclKind,
    /// As GRANT has it.
    granted: String,
    /// As ALTER has it; `None` if its owner goes with that of another object.
    altered: Option<String>,
    columns: Vec<(u16, String)>,
}

/// A statement about the database, whatever its name is.
fn of_database(statement: &str) -> String {
    let format = literal(&statement.replace('%', "%%").replace("{database}", "%I"));
    format!("DO $dump$ BEGIN EXECUTE format({format}, current_database()); END $dump$")
}

fn create_role(role: &Role) -> String {
    let mut text = format!("CREATE ROLE {} WITH", quoted(&role.name));
    for (is_on, on, off) in [
        (role.superuser, "SUPERUSER", "NOSUPERUSER"),
        (role.inherit, "INHERIT", "NOINHERIT"),
        (role.create_role, "CREATEROLE", "NOCREATEROLE"),
        (role.create_database, "CREATEDB", "NOCREATEDB"),
        (role.login, "LOGIN", "NOLOGIN"),
        (role.replication, "REPLICATION", "NOREPLICATION"),
        (role.bypass_rls, "BYPASSRLS", "NOBYPASSRLS"),
    ] {
        let _ = write!(text, " {}", if is_on { on } else { off });
    }
    if role.connection_limit != -1 {
        let _ = write!(text, " CONNECTION LIMIT {}", role.connection_limit);
    }
    if let Some(verifier) = &role.password {
        let _ = write!(text, " PASSWORD {}", literal(verifier));
    }
    if let Some(until) = role.valid_until {
        let mut moment = String::new();
        format_value(&mut moment, Value::TimestampTz(until).as_ref(), &TextSettings::DEFAULT);
        let _ = write!(text, " VALID UNTIL {}", literal(&moment));
    }
    let ignored = "EXCEPTION WHEN duplicate_object THEN NULL;";
    format!("DO $dump$ BEGIN {text}; {ignored} END $dump$")
}

/// Returns the name of a role as a statement has it.
fn role_text(catalog: &CatalogSnapshot, role: ObjectId) -> String {
    if role == BOOTSTRAP { "CURRENT_USER".to_owned() } else { quoted(&catalog.role_name(role)) }
}

/// Adds what gives a role its settings. `whom`: the role, or ALL.
fn add_settings(settings: &RoleSettings, whom: &str, into: &mut Vec<String>) {
    for place in [SettingPlace::Everywhere, SettingPlace::Database] {
        for (name, value) in settings.of(place) {
            // The value of a list of schemas has quotes already.
            let is_list = name == "search_path" && !value.is_empty();
            let value = if is_list { value.to_string() } else { literal(value) };
            let parts: Vec<String> = name.split('.').map(quoted).collect();
            let set = format!("SET {} TO {value}", parts.join("."));
            into.push(match place {
                SettingPlace::Everywhere => format!("ALTER ROLE {whom} {set}"),
                SettingPlace::Database => {
                    of_database(&format!("ALTER ROLE {whom} IN DATABASE {{database}} {set}"))
                }
            });
        }
    }
}

/// CREATE ROLE of each role, with its memberships. They come before all objects.
#[must_use]
pub fn create_roles(catalog: &CatalogSnapshot) -> Vec<String> {
    let mut all: Vec<String> = catalog.roles().map(|role| create_role(role)).collect();
    for role in catalog.roles() {
        for membership in &role.member_of {
            let admin = if membership.admin { " WITH ADMIN OPTION" } else { "" };
            let group = quoted(&catalog.role_name(membership.role));
            all.push(format!("GRANT {group} TO {}{admin}", quoted(&role.name)));
        }
    }
    all
}

/// The owners of objects, the rights on them, and what roles begin with. They come after all
/// objects.
#[must_use]
pub fn grant_rights(catalog: &CatalogSnapshot) -> Vec<String> {
    let mut all = Vec::new();
    let objects = named_objects(catalog);
    for object in &objects {
        let owner = catalog.owner(object.id);
        if let (Some(altered), true) = (&object.altered, owner != BOOTSTRAP) {
            all.push(format!("ALTER {altered} OWNER TO {}", role_text(catalog, owner)));
        }
    }
    for object in &objects {
        let Some(access) = catalog.access(object.id) else { continue };
        let first = ObjectAccess { acl: None, ..(**access).clone() };
        let first = first.items(object.id, object.kind);
        if let Some(items) = &access.acl {
            let on = GrantedOn { object: &object.granted, column: None };
            all.extend(revokes(catalog, &first, items, &object.granted));
            for item in items.iter().filter(|item| !first.contains(item)) {
                add_grants(catalog, item, on, &mut all);
            }
        }
        for (number, column) in &object.columns {
            let on = GrantedOn { object: &object.granted, column: Some(column) };
            for item in access.columns.get(number).into_iter().flatten() {
                add_grants(catalog, item, on, &mut all);
            }
        }
    }
    for (id, settings) in &catalog.settings {
        let role = catalog.role(*id).map(|role| quoted(&role.name));
        let whom = match role {
            Some(role) => role,
            None if *id == BOOTSTRAP => "CURRENT_USER".to_owned(),
            None => "ALL".to_owned(),
        };
        add_settings(settings, &whom, &mut all);
    }
    for (owner, rights) in &catalog.default_rights {
        rights.entries.iter().for_each(|it| add_defaults(catalog, *owner, it, &mut all));
    }
    all
}

/// Returns all permanent objects that have owners or rights.
fn named_objects(catalog: &CatalogSnapshot) -> Vec<NamedObject> {
    let mut all = Vec::new();
    let whole = |id, kind, granted: &str, altered: Option<&str>| NamedObject {
        id,
        kind,
        granted: granted.to_owned(),
        altered: altered.map(str::to_owned),
        columns: Vec::new(),
    };
    all.push(whole(DATABASE_ID, AclKind::Database, "DATABASE {database}", None));
    all.push(whole(PUBLIC_SCHEMA_ID, AclKind::Schema, "SCHEMA public", Some("SCHEMA public")));
    for schema in catalog.schemas().filter(|it| !is_temporary_schema(&it.name)) {
        let name = format!("SCHEMA {}", quoted(&schema.name));
        all.push(whole(schema.id, AclKind::Schema, &name, Some(&name)));
    }
    let types = catalog.domains().map(|it| it.id).chain(catalog.enums().map(|it| it.id));
    let types = types.chain(catalog.composites().map(|it| it.id));
    let types = types.map(|id| (id, AclKind::Type));
    for (id, kind) in types.chain(catalog.routines().map(|it| (it.id, AclKind::Function))) {
        if let Some(name) = catalog.named_object(id, 0) {
            all.push(whole(id, kind, &name, Some(&name)));
        }
    }
    for (_, relation) in catalog.relations() {
        all.extend(named_relation(catalog, &relation));
    }
    all
}

/// Returns a table, view or sequence, unless it is temporary.
fn named_relation(catalog: &CatalogSnapshot, relation: &Relation) -> Option<NamedObject> {
    let (schema, name) = match relation {
        Relation::Table(table) => (&table.schema, &table.name),
        Relation::View(view) => (&view.schema, &view.name),
        Relation::Sequence(sequence) => (&sequence.schema, &sequence.name),
        Relation::Index(..) => return None,
    };
    if is_temporary_schema(schema) {
        return None;
    }
    let name = quoted_relation(schema, name);
    let (id, kind) = relation.protected();
    let columns = match relation {
        Relation::Table(table) => {
            table.columns.iter().map(|it| (it.id, quoted(&it.name))).collect()
        }
        Relation::View(view) => (1..).zip(view.columns.iter().map(|it| quoted(it))).collect(),
        _ => Vec::new(),
    };
    // The owner of a column's sequence is that of the table.
    let is_own = matches!(relation, Relation::Sequence(sequence)
        if sequence.owned_by.is_some() || catalog.identity_of(sequence).is_some());
    let altered = (!is_own).then(|| format!("{} {name}", relation.word().to_uppercase()));
    let word = if kind == AclKind::Sequence { "SEQUENCE" } else { "TABLE" };
    Some(NamedObject { id, kind, granted: format!("{word} {name}"), altered, columns })
}

/// Returns the REVOKEs of the `first` rights that are not among `items`.
fn revokes(
    catalog: &CatalogSnapshot,
    first: &[AclItem],
    items: &[AclItem],
    object: &str,
) -> Vec<String> {
    let gone = first.iter().filter(|item| !items.contains(item));
    let revoke = |item: &AclItem| {
        let grantee = grantee_text(catalog, item);
        completed(format!("REVOKE ALL ON {object} FROM {grantee}"))
    };
    gone.map(revoke).collect()
}

fn grantee_text(catalog: &CatalogSnapshot, item: &AclItem) -> String {
    item.grantee.map_or_else(|| "PUBLIC".to_owned(), |role| role_text(catalog, role))
}

/// What privileges are granted on.
#[derive(Clone, Copy)]
struct GrantedOn<'o> {
    object: &'o str,
    column: Option<&'o String>,
}

/// A statement that may name the database.
fn completed(statement: String) -> String {
    if statement.contains("{database}") { of_database(&statement) } else { statement }
}

/// Adds the GRANTs of one item, as the role that has granted it.
fn add_grants(
    catalog: &CatalogSnapshot,
    item: &AclItem,
    on: GrantedOn<'_>,
    into: &mut Vec<String>,
) {
    let is_other = item.grantor != BOOTSTRAP;
    if is_other {
        let grantor = role_text(catalog, item.grantor);
        into.push(format!("SET SESSION AUTHORIZATION {grantor}"));
    }
    into.extend(plain_grants(catalog, item, on));
    if is_other {
        into.push("RESET SESSION AUTHORIZATION".to_owned());
    }
}

fn plain_grants(catalog: &CatalogSnapshot, item: &AclItem, on: GrantedOn<'_>) -> Vec<String> {
    let grantee = grantee_text(catalog, item);
    let named = |(_, name): (Privileges, &str)| match on.column {
        Some(column) => format!("{name} ({column})"),
        None => name.to_owned(),
    };
    let plain = item.privileges.without(item.grantable);
    let mut grants = Vec::new();
    for (privileges, option) in [(plain, ""), (item.grantable, " WITH GRANT OPTION")] {
        let names: Vec<String> = privileges.names().map(named).collect();
        if !names.is_empty() {
            let (names, object) = (names.join(", "), on.object);
            grants.push(completed(format!("GRANT {names} ON {object} TO {grantee}{option}")));
        }
    }
    grants
}

/// Adds the ALTER DEFAULT PRIVILEGES of one entry.
fn add_defaults(
    catalog: &CatalogSnapshot,
    owner: ObjectId,
    entry: &DefaultAcl,
    into: &mut Vec<String>,
) {
    let objects = match entry.kind {
        AclKind::Sequence => "SEQUENCES",
        AclKind::Function => "FUNCTIONS",
        AclKind::Schema => "SCHEMAS",
        _ => "TABLES",
    };
    let mut head = "ALTER DEFAULT PRIVILEGES".to_owned();
    if owner != BOOTSTRAP {
        let _ = write!(head, " FOR ROLE {}", role_text(catalog, owner));
    }
    let mut first = Vec::new();
    match entry.schema {
        Some(PUBLIC_SCHEMA_ID) => head.push_str(" IN SCHEMA public"),
        Some(id) => {
            let schema = catalog.schemas().find(|it| it.id == id);
            let Some(schema) = schema else { return };
            let _ = write!(head, " IN SCHEMA {}", quoted(&schema.name));
        }
        None => {
            let access = ObjectAccess { owner: owner.0, ..ObjectAccess::default() };
            first = access.items(ObjectId(0), entry.kind);
        }
    }
    let on = GrantedOn { object: objects, column: None };
    let mut changes = revokes(catalog, &first, &entry.items, objects);
    for item in entry.items.iter().filter(|item| !first.contains(item)) {
        changes.extend(plain_grants(catalog, item, on));
    }
    into.extend(changes.iter().map(|change| format!("{head} {change}")));
}
