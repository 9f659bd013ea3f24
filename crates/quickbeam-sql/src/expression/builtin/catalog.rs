//! Functions over the system catalogs.

use super::super::Frame;
use super::session::{search_path, stable};
use super::{Builtin, Implementation, integer, strict, text};
use crate::catalog::describe::{Described, index_definition, name_parts, quoted_if_needed};
use crate::catalog::system::{OWNER, system_tables, type_named, type_row_named};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType::{BigInt, Boolean, Integer, Text};
use crate::types::{Value, ValueRef};

/// Declares the functions that ask for a right. Every connection has all rights.
macro_rules! privileges {
    ($($name:literal),*) => {
        &[$(
            strict($name, &[Text, Text], Boolean, |_| Ok(Value::Boolean(true))),
            strict($name, &[BigInt, Text], Boolean, |_| Ok(Value::Boolean(true))),
            strict($name, &[Text, Text, Text], Boolean, |_| Ok(Value::Boolean(true))),
            strict($name, &[Text, BigInt, Text], Boolean, |_| Ok(Value::Boolean(true))),
        )*]
    };
}

pub(super) static PRIVILEGES: &[Builtin] = privileges![
    "has_table_privilege",
    "has_any_column_privilege",
    "has_sequence_privilege",
    "has_schema_privilege",
    "has_database_privilege",
    "has_function_privilege",
    "has_type_privilege",
    "has_tablespace_privilege"
];

pub(super) static TABLE: &[Builtin] = &[
    Builtin::new(
        "format_type",
        &[BigInt, Integer],
        Text,
        Implementation::NullTolerant(format_type),
    ),
    stable("pg_table_is_visible", &[BigInt], Boolean, |frame, v| {
        let oid = integer(v, 0)?;
        let snapshot = frame.host()?.snapshot();
        let Some(found) = snapshot.relation_of(oid) else { return Ok(Value::Boolean(true)) };
        let path = search_path(frame)?;
        let named = snapshot.oid_named(&quoted_if_needed(found.name()), &path);
        Ok(Value::Boolean(named == Some(oid)))
    }),
    strict("pg_type_is_visible", &[BigInt], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_function_is_visible", &[BigInt], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_relation_is_publishable", &[BigInt], Boolean, |_| Ok(Value::Boolean(false))),
    strict("pg_get_userbyid", &[BigInt], Text, |v| {
        let oid = integer(v, 0)?;
        Ok(Value::text(if oid == OWNER { USER.to_owned() } else { format!("unknown (OID={oid})") }))
    }),
    strict("pg_encoding_to_char", &[Integer], Text, |v| {
        Ok(Value::text(if integer(v, 0)? == 6 { "UTF8" } else { "" }))
    }),
    strict("pg_get_expr", &[Text, BigInt], Text, |v| Ok(Value::text(text(v, 0)?))),
    strict("pg_get_expr", &[Text, BigInt, Boolean], Text, |v| Ok(Value::text(text(v, 0)?))),
    stable("pg_get_indexdef", &[BigInt], Text, |f, v| index(f, integer(v, 0)?, 0)),
    stable("pg_get_indexdef", &[BigInt, Integer, Boolean], Text, |f, v| {
        index(f, integer(v, 0)?, integer(v, 1)?)
    }),
    stable("pg_get_constraintdef", &[BigInt], Text, constraint),
    stable("pg_get_constraintdef", &[BigInt, Boolean], Text, constraint),
    stable("pg_get_viewdef", &[BigInt], Text, view),
    stable("pg_get_viewdef", &[BigInt, Boolean], Text, view),
    strict("pg_partition_ancestors", &[BigInt], BigInt, |_| Ok(Value::Null)),
    strict("pg_get_statisticsobjdef_columns", &[BigInt], Text, |_| Ok(Value::Null)),
    strict("pg_get_triggerdef", &[BigInt], Text, |_| Ok(Value::Null)),
    strict("pg_get_triggerdef", &[BigInt, Boolean], Text, |_| Ok(Value::Null)),
    strict("pg_get_ruledef", &[BigInt], Text, |_| Ok(Value::Null)),
    strict("pg_get_ruledef", &[BigInt, Boolean], Text, |_| Ok(Value::Null)),
    strict("pg_get_function_result", &[BigInt], Text, |_| Ok(Value::Null)),
    strict("pg_get_function_arguments", &[BigInt], Text, |_| Ok(Value::Null)),
    strict("pg_get_function_identity_arguments", &[BigInt], Text, |_| Ok(Value::Null)),
    strict("pg_get_partkeydef", &[BigInt], Text, |_| Ok(Value::Null)),
    stable("obj_description", &[BigInt], Text, |f, v| comment(f, integer(v, 0)?, 0)),
    stable("obj_description", &[BigInt, Text], Text, |f, v| comment(f, integer(v, 0)?, 0)),
    strict("shobj_description", &[BigInt, Text], Text, |_| Ok(Value::Null)),
    stable("col_description", &[BigInt, Integer], Text, |f, v| {
        comment(f, integer(v, 0)?, u16::try_from(integer(v, 1)?).unwrap_or(0))
    }),
    stable("to_regclass", &[Text], BigInt, |frame, v| {
        let oid = frame.host()?.snapshot().oid_named(text(v, 0)?, &search_path(frame)?);
        Ok(oid.map_or(Value::Null, Value::BigInt))
    }),
    strict("to_regtype", &[Text], BigInt, |v| {
        Ok(type_oid(text(v, 0)?).map_or(Value::Null, Value::BigInt))
    }),
    stable("regclassin", &[Text], BigInt, |frame, v| {
        let name = text(v, 0)?;
        if let Ok(oid) = name.trim().parse::<i64>() {
            return Ok(Value::BigInt(oid));
        }
        let path = search_path(frame)?;
        let oid = frame.host()?.snapshot().oid_named(name, &path).ok_or_else(|| {
            let message = format!("relation \"{name}\" does not exist");
            SqlError::new(SqlState::UndefinedTable, message)
        })?;
        Ok(Value::BigInt(oid))
    }),
    stable("regclassout", &[BigInt], Text, |frame, v| {
        let oid = integer(v, 0)?;
        let snapshot = frame.host()?.snapshot();
        let path = search_path(frame)?;
        let found = snapshot.relation_of(oid);
        let found = found.map(|found| snapshot.written_name(found.schema(), found.name(), &path));
        let system = || {
            let table = system_tables().find(|table| table.oid == oid)?;
            Some(quoted_if_needed(table.name))
        };
        let name = found.or_else(system);
        Ok(Value::text(name.unwrap_or_else(|| if oid == 0 { "-".into() } else { oid.to_string() })))
    }),
    strict("regtypein", &[Text], BigInt, |v| {
        let name = text(v, 0)?;
        let oid = name.trim().parse().ok().or_else(|| type_oid(name)).ok_or_else(|| {
            let message = format!("type \"{name}\" does not exist");
            SqlError::new(SqlState::UndefinedObject, message)
        })?;
        Ok(Value::BigInt(oid))
    }),
    strict("regtypeout", &[BigInt], Text, |v| {
        let oid = integer(v, 0)?;
        let name = type_named(oid, None);
        Ok(Value::text(name.unwrap_or_else(|| if oid == 0 { "-".into() } else { oid.to_string() })))
    }),
    stable("regnamespacein", &[Text], BigInt, |frame, v| {
        let name = text(v, 0)?;
        let all = frame.host()?.snapshot().schema_oids();
        let parts = name_parts(name).unwrap_or_default();
        let found = all.iter().find(|(known, _)| matches!(&parts[..], [part] if known == part));
        let oid = found.map(|(_, oid)| *oid).ok_or_else(|| {
            let message = format!("schema \"{name}\" does not exist");
            SqlError::new(SqlState::InvalidSchemaName, message)
        })?;
        Ok(Value::BigInt(oid))
    }),
    stable("regnamespaceout", &[BigInt], Text, |frame, v| {
        let oid = integer(v, 0)?;
        let all = frame.host()?.snapshot().schema_oids();
        let found = all.iter().find(|(_, known)| *known == oid);
        Ok(Value::text(found.map_or_else(|| oid.to_string(), |(name, _)| quoted_if_needed(name))))
    }),
];

/// The name of the only user.
const USER: &str = "quickbeam";

/// Returns the OID of a type by one of its names.
fn type_oid(name: &str) -> Option<i64> {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    let row = type_row_named(match name {
        "boolean" => "bool",
        "smallint" => "int2",
        "integer" | "int" => "int4",
        "bigint" => "int8",
        "real" => "float4",
        "double precision" => "float8",
        "decimal" => "numeric",
        "character varying" => "varchar",
        "character" | "char" => "bpchar",
        "\"char\"" => "char",
        "time without time zone" => "time",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        name => name,
    })?;
    Some(if is_array { row.array } else { row.oid })
}

fn format_type(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(oid) = arguments.first().and_then(|oid| oid.as_i64()) else { return Ok(Value::Null) };
    let modifier = arguments.get(1).and_then(|value| value.as_i64());
    let modifier = modifier.and_then(|modifier| i32::try_from(modifier).ok());
    let unknown = || if oid == 0 { "-".to_owned() } else { "???".to_owned() };
    Ok(Value::text(type_named(oid, modifier).unwrap_or_else(unknown)))
}

/// Returns the comment on a table, or on its column of that number.
fn comment(frame: &Frame<'_>, oid: i64, column: u16) -> Result<Value> {
    let found = match frame.host()?.snapshot().relation_of(oid) {
        Some(Described::Table(table)) => table.comments.get(&column).map(|text| &**text),
        _ => None,
    };
    Ok(found.map_or(Value::Null, Value::text))
}

fn index(frame: &Frame<'_>, oid: i64, column: i64) -> Result<Value> {
    let column = usize::try_from(column).unwrap_or(usize::MAX);
    let found = frame.host()?.snapshot().relation_of(oid);
    let definition = found.and_then(|found| index_definition(found, column));
    Ok(definition.map_or(Value::Null, Value::text))
}

fn constraint(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let found = frame.host()?.snapshot().constraint_definition(integer(arguments, 0)?);
    Ok(found.map_or(Value::Null, Value::text))
}

fn view(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(match frame.host()?.snapshot().relation_of(integer(arguments, 0)?) {
        Some(Described::View(view)) => Value::text(format!(" {};", view.query)),
        _ => Value::Null,
    })
}
