//! Functions that say what a role may do.

use super::super::Frame;
use super::references::{function_named, role_of_oid};
use super::session::lookup_path;
use super::{Builtin, mismatch, stable, text};
use crate::catalog::describe::Described;
use crate::catalog::rights::MembershipUse;
use crate::catalog::system::{object_oid, procedure, system_tables};
use crate::catalog::{
    AclKind, CatalogSnapshot, DATABASE_ID, ObjectId, Privileges, is_system_schema,
};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::{no_column, no_relation, no_schema};
use crate::types::DataType::{Boolean, SmallInt, Text};
use crate::types::{DataType, Value, ValueRef};

/// What a privilege is asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrivilegeScope {
    /// The relation or one of its columns.
    AnyColumn,
    /// The relation as a whole.
    Relation,
}

const OID: DataType = DataType::OID;

/// Declares a function with an optional role before an object, both by name or by OID.
macro_rules! of_object {
    ($($name:literal => $run:expr),* $(,)?) => {
        &[$(
            stable($name, &[Text, Text], Boolean, |f, v| $run(f, None, v)),
            stable($name, &[OID, Text], Boolean, |f, v| $run(f, None, v)),
            stable($name, &[Text, Text, Text], Boolean, |f, v| $run(f, v.first(), &v[1..])),
            stable($name, &[Text, OID, Text], Boolean, |f, v| $run(f, v.first(), &v[1..])),
            stable($name, &[OID, Text, Text], Boolean, |f, v| $run(f, v.first(), &v[1..])),
            stable($name, &[OID, OID, Text], Boolean, |f, v| $run(f, v.first(), &v[1..])),
        )*]
    };
}

type RoleArgument<'v> = Option<&'v ValueRef<'v>>;

pub(super) static PRIVILEGES: &[Builtin] = of_object![
    "has_table_privilege" => |f, role, v| relation(f, role, v, AclKind::Table, PrivilegeScope::Relation),
    "has_any_column_privilege" => |f, role, v| relation(f, role, v, AclKind::Table, PrivilegeScope::AnyColumn),
    "has_sequence_privilege" => |f, role, v| relation(f, role, v, AclKind::Sequence, PrivilegeScope::Relation),
    "has_schema_privilege" => schema,
    "has_database_privilege" => database,
    "has_function_privilege" => function,
    "has_type_privilege" => anyone,
    "has_language_privilege" => anyone,
    "has_tablespace_privilege" => superuser,
    "pg_has_role" => has_role,
];

/// Declares a function of a column, by name or by number, of a table.
macro_rules! of_column {
    ($($name:literal)*) => {
        &[$(
            stable($name, &[Text, Text, Text], Boolean, |f, v| column(f, None, v)),
            stable($name, &[Text, SmallInt, Text], Boolean, |f, v| column(f, None, v)),
            stable($name, &[OID, Text, Text], Boolean, |f, v| column(f, None, v)),
            stable($name, &[OID, SmallInt, Text], Boolean, |f, v| column(f, None, v)),
            stable($name, &[Text, Text, Text, Text], Boolean, |f, v| column(f, v.first(), &v[1..])),
            stable($name, &[Text, OID, Text, Text], Boolean, |f, v| column(f, v.first(), &v[1..])),
            stable($name, &[Text, OID, SmallInt, Text], Boolean, |f, v| {
                column(f, v.first(), &v[1..])
            }),
            stable($name, &[OID, OID, Text, Text], Boolean, |f, v| column(f, v.first(), &v[1..])),
            stable($name, &[OID, OID, SmallInt, Text], Boolean, |f, v| {
                column(f, v.first(), &v[1..])
            }),
        )*]
    };
}

pub(super) static COLUMNS: &[Builtin] = of_column!["has_column_privilege"];

/// Who is asked about: a role, or PUBLIC.
fn asked(frame: &Frame<'_>, role: RoleArgument<'_>) -> Result<Option<ObjectId>> {
    let host = frame.host()?;
    let snapshot = host.snapshot();
    match role {
        None => Ok(Some(host.session().role())),
        Some(ValueRef::Text(name)) if &**name == "public" => Ok(None),
        Some(ValueRef::Text(name)) => snapshot.known_role(name).map(Some),
        Some(number) => {
            let oid = number.as_i64().ok_or_else(mismatch)?;
            // An unknown role has the rights of PUBLIC.
            Ok(snapshot.role_of_oid(oid))
        }
    }
}

/// Reads a list of privileges, each with or without its grant option.
fn wanted(list: &str) -> Result<Vec<(Privileges, bool)>> {
    list.split(',')
        .map(|word| {
            let word = word.trim();
            let upper = word.to_ascii_uppercase();
            let (name, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
                Some(name) => (name.trim_end(), true),
                None => (&upper[..], false),
            };
            let known = Privileges::named(name).ok_or_else(|| {
                let message = format!("unrecognized privilege type: \"{word}\"");
                SqlError::new(SqlState::InvalidParameterValue, message)
            })?;
            Ok((known, option))
        })
        .collect()
}

/// Whether one of the privileges is there.
fn has(
    snapshot: &CatalogSnapshot,
    role: Option<ObjectId>,
    (id, kind): (ObjectId, AclKind),
    list: &str,
    columns: AskedColumns,
) -> Result<bool> {
    // PUBLIC is asked as a role that is a member of nothing.
    let role = role.unwrap_or(ObjectId(u32::MAX));
    for (privilege, option) in wanted(list)? {
        let is_there = match columns {
            AskedColumns::Any if !option => snapshot.has_any(role, id, kind, privilege),
            AskedColumns::One(column) if !option => {
                snapshot.rights(role, id, kind).has(privilege)
                    || snapshot.column_rights(role, id, column).has(privilege)
            }
            AskedColumns::One(column) => {
                snapshot.grantable(role, id, kind, Some(column)).has(privilege)
            }
            _ if option => snapshot.grantable(role, id, kind, None).has(privilege),
            _ => snapshot.rights(role, id, kind).has(privilege),
        };
        if is_there {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The columns that are asked about.
#[derive(Clone, Copy)]
enum AskedColumns {
    /// None: the whole object.
    None,
    /// At least one.
    Any,
    /// That one.
    One(u16),
}

/// Returns the relation that a name or an OID means; `None` for an OID of none.
fn relation_of<'s>(
    frame: &Frame<'_>,
    snapshot: &'s CatalogSnapshot,
    value: &ValueRef<'_>,
) -> Result<Option<(i64, Option<Described<'s>>)>> {
    let oid = match value {
        ValueRef::Text(name) => {
            let found = snapshot.oid_named(name, &lookup_path(frame)?);
            found.ok_or_else(|| no_relation(name))?
        }
        number => number.as_i64().ok_or_else(mismatch)?,
    };
    let found = snapshot.relation_of(oid);
    let is_system = || system_tables().any(|table| table.oid == oid);
    Ok((found.is_some() || is_system()).then_some((oid, found)))
}

fn protected(relation: &Described<'_>) -> (ObjectId, AclKind) {
    match relation {
        Described::Table(table) | Described::Index(table, _) | Described::PrimaryKey(table) => {
            (table.id, AclKind::Table)
        }
        Described::View(view) => (view.id, AclKind::Table),
        Described::Sequence(sequence) => (sequence.id, AclKind::Sequence),
    }
}

/// Whether a role has a privilege on a system catalog.
fn of_catalog(
    snapshot: &CatalogSnapshot,
    role: Option<ObjectId>,
    oid: i64,
    list: &str,
) -> Result<bool> {
    let is_secret = system_tables()
        .any(|table| table.oid == oid && matches!(table.name, "pg_authid" | "pg_shadow"));
    let reads = wanted(list)?.contains(&(Privileges::SELECT, false));
    Ok(role.is_some_and(|role| snapshot.is_superuser(role)) || reads && !is_secret)
}

fn relation(
    frame: &Frame<'_>,
    role: RoleArgument<'_>,
    arguments: &[ValueRef<'_>],
    kind: AclKind,
    scope: PrivilegeScope,
) -> Result<Value> {
    let any_column = scope == PrivilegeScope::AnyColumn;
    let role = asked(frame, role)?;
    let host = frame.host()?;
    let snapshot = host.snapshot();
    let list = text(arguments, 1)?;
    let value = arguments.first().ok_or_else(mismatch)?;
    let Some((oid, found)) = relation_of(frame, snapshot, value)? else { return Ok(Value::Null) };
    let Some(relation) = found else {
        return of_catalog(snapshot, role, oid, list).map(Value::Boolean);
    };
    let object = protected(&relation);
    if kind == AclKind::Sequence && object.1 != kind {
        let message = format!("\"{}\" is not a sequence", relation.name());
        return Err(SqlError::new(SqlState::WrongObjectType, message));
    }
    let columns = if any_column { AskedColumns::Any } else { AskedColumns::None };
    has(snapshot, role, object, list, columns).map(Value::Boolean)
}

fn column(frame: &Frame<'_>, role: RoleArgument<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let role = asked(frame, role)?;
    let host = frame.host()?;
    let snapshot = host.snapshot();
    let list = text(arguments, 2)?;
    let value = arguments.first().ok_or_else(mismatch)?;
    let Some((oid, found)) = relation_of(frame, snapshot, value)? else { return Ok(Value::Null) };
    let Some(relation) = found else {
        return of_catalog(snapshot, role, oid, list).map(Value::Boolean);
    };
    let number = match (&relation, arguments.get(1)) {
        (Described::Table(table), Some(ValueRef::Text(name))) => {
            let column = table.columns.iter().find(|column| column.name == **name);
            Some(column.ok_or_else(|| no_column(&table.name, name))?.id)
        }
        (Described::View(view), Some(ValueRef::Text(name))) => {
            let at = view.columns.iter().position(|column| **column == **name);
            let at = at.ok_or_else(|| no_column(&view.name, name))?;
            u16::try_from(at + 1).ok()
        }
        (_, Some(number)) => number.as_i64().and_then(|number| u16::try_from(number).ok()),
        (_, None) => None,
    };
    let is_there = |number: &u16| match &relation {
        Described::Table(table) => table.columns.iter().any(|column| column.id == *number),
        Described::View(view) => (1..=view.columns.len()).contains(&usize::from(*number)),
        _ => true,
    };
    let Some(number) = number.filter(is_there) else { return Ok(Value::Null) };
    let object = protected(&relation);
    has(snapshot, role, object, list, AskedColumns::One(number)).map(Value::Boolean)
}

fn schema(frame: &Frame<'_>, role: RoleArgument<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let role = asked(frame, role)?;
    let host = frame.host()?;
    let snapshot = host.snapshot();
    let list = text(arguments, 1)?;
    let all = snapshot.schema_oids();
    let found = match arguments.first() {
        Some(ValueRef::Text(name)) => {
            let known = all.iter().find(|(known, _)| **known == **name);
            Some(known.ok_or_else(|| no_schema(name))?)
        }
        Some(number) => all.iter().find(|(_, oid)| Some(*oid) == number.as_i64()),
        None => None,
    };
    let Some((name, _)) = found else { return Ok(Value::Null) };
    if is_system_schema(name) {
        let uses = wanted(list)?.contains(&(Privileges::USAGE, false));
        let is_superuser = role.is_some_and(|role| snapshot.is_superuser(role));
        return Ok(Value::Boolean(uses || is_superuser));
    }
    let object = (snapshot.schema_id(name), AclKind::Schema);
    has(snapshot, role, object, list, AskedColumns::None).map(Value::Boolean)
}

fn database(
    frame: &Frame<'_>,
    role: RoleArgument<'_>,
    arguments: &[ValueRef<'_>],
) -> Result<Value> {
    let role = asked(frame, role)?;
    if let Some(ValueRef::Text(name)) = arguments.first()
        && &**name != "quickbeam"
    {
        let message = format!("database \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::InvalidCatalogName, message));
    }
    let list = text(arguments, 1)?;
    let object = (DATABASE_ID, AclKind::Database);
    has(frame.host()?.snapshot(), role, object, list, AskedColumns::None).map(Value::Boolean)
}

/// Every role may call every built-in function that has no rights of its own.
fn function(
    frame: &Frame<'_>,
    role: RoleArgument<'_>,
    arguments: &[ValueRef<'_>],
) -> Result<Value> {
    let role = asked(frame, role)?;
    let list = text(arguments, 1)?;
    wanted(list)?;
    let number = match arguments.first() {
        Some(ValueRef::Text(name)) => function_named(frame, name)?,
        Some(number) => number.as_i64().and_then(|oid| u32::try_from(oid).ok()).unwrap_or(0),
        None => 0,
    };
    let snapshot = frame.host()?.snapshot();
    if let Some(routine) = snapshot.routines().find(|it| object_oid(it.id) == i64::from(number)) {
        let object = (routine.id, AclKind::Function);
        return has(snapshot, role, object, list, AskedColumns::None).map(Value::Boolean);
    }
    Ok(if procedure(number).is_some() { Value::Boolean(true) } else { Value::Null })
}

fn anyone(frame: &Frame<'_>, role: RoleArgument<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    asked(frame, role)?;
    wanted(text(arguments, 1)?)?;
    Ok(Value::Boolean(true))
}

fn superuser(
    frame: &Frame<'_>,
    role: RoleArgument<'_>,
    arguments: &[ValueRef<'_>],
) -> Result<Value> {
    let role = asked(frame, role)?;
    wanted(text(arguments, 1)?)?;
    let snapshot = frame.host()?.snapshot();
    Ok(Value::Boolean(role.is_some_and(|role| snapshot.is_superuser(role))))
}

/// `pg_has_role`: MEMBER by any membership, USAGE without SET ROLE.
fn has_role(
    frame: &Frame<'_>,
    role: RoleArgument<'_>,
    arguments: &[ValueRef<'_>],
) -> Result<Value> {
    let asked = asked(frame, role)?;
    let host = frame.host()?;
    let snapshot = host.snapshot();
    let of = match arguments.first() {
        Some(ValueRef::Text(name)) => snapshot.known_role(name)?,
        Some(number) => {
            let oid = number.as_i64().ok_or_else(mismatch)?;
            match role_of_oid(snapshot, oid) {
                Some(name) => snapshot.known_role(&name)?,
                None => return Ok(Value::Null),
            }
        }
        None => return Err(mismatch()),
    };
    let Some(asked) = asked else { return Ok(Value::Boolean(false)) };
    let mut found = false;
    for word in text(arguments, 1)?.split(',') {
        let word = word.trim().to_ascii_uppercase();
        let (word, admin) = match word.split_once(" WITH ") {
            Some((word, _)) => (word.to_owned(), true),
            None => (word, false),
        };
        let is_super = snapshot.is_superuser(asked);
        found |= match &word[..] {
            _ if is_super => true,
            "MEMBER" | "USAGE" if admin => {
                let own = snapshot.role(asked).map_or(&[][..], |it| &it.member_of);
                own.iter().any(|it| it.role == of && it.admin)
            }
            "MEMBER" => snapshot.roles_of(asked, MembershipUse::Any).contains(&of),
            "USAGE" => snapshot.roles_of(asked, MembershipUse::Inherited).contains(&of),
            word => {
                let message = format!("unrecognized privilege type: \"{word}\"");
                return Err(SqlError::new(SqlState::InvalidParameterValue, message));
            }
        };
    }
    Ok(Value::Boolean(found))
}
