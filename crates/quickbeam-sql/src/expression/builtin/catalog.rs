//! Functions over the system catalogs.

use super::super::Frame;
use super::references::USER;
use super::session::{search_path, stable};
use super::{Builtin, Implementation, integer, strict, text};
use crate::catalog::describe::{Described, index_definition, quoted_if_needed};
use crate::catalog::system::{OWNER, Procedure, procedure, type_named};
use crate::error::Result;
use crate::types::DataType::{Boolean, Integer, Text};
use crate::types::{DataType, Value, ValueRef};

const OID: DataType = DataType::OID;

/// Declares the functions that ask for a right. Every connection has all rights.
macro_rules! privileges {
    ($($name:literal),*) => {
        &[$(
            strict($name, &[Text, Text], Boolean, |_| Ok(Value::Boolean(true))),
            strict($name, &[OID, Text], Boolean, |_| Ok(Value::Boolean(true))),
            strict($name, &[Text, Text, Text], Boolean, |_| Ok(Value::Boolean(true))),
            strict($name, &[Text, OID, Text], Boolean, |_| Ok(Value::Boolean(true))),
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
    Builtin::new("format_type", &[OID, Integer], Text, Implementation::NullTolerant(format_type)),
    stable("pg_table_is_visible", &[OID], Boolean, |frame, v| {
        let oid = integer(v, 0)?;
        let snapshot = frame.host()?.snapshot();
        let Some(found) = snapshot.relation_of(oid) else { return Ok(Value::Boolean(true)) };
        let path = search_path(frame)?;
        let named = snapshot.oid_named(&quoted_if_needed(found.name()), &path);
        Ok(Value::Boolean(named == Some(oid)))
    }),
    strict("pg_type_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_function_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_relation_is_publishable", &[OID], Boolean, |_| Ok(Value::Boolean(false))),
    strict("pg_get_userbyid", &[OID], Text, |v| {
        let oid = integer(v, 0)?;
        Ok(Value::text(if oid == OWNER { USER.to_owned() } else { format!("unknown (OID={oid})") }))
    }),
    strict("pg_encoding_to_char", &[Integer], Text, |v| {
        Ok(Value::text(if integer(v, 0)? == 6 { "UTF8" } else { "" }))
    }),
    strict("pg_get_expr", &[Text, OID], Text, |v| Ok(Value::text(text(v, 0)?))),
    strict("pg_get_expr", &[Text, OID, Boolean], Text, |v| Ok(Value::text(text(v, 0)?))),
    stable("pg_get_indexdef", &[OID], Text, |f, v| index(f, integer(v, 0)?, 0)),
    stable("pg_get_indexdef", &[OID, Integer, Boolean], Text, |f, v| {
        index(f, integer(v, 0)?, integer(v, 1)?)
    }),
    stable("pg_get_constraintdef", &[OID], Text, constraint),
    stable("pg_get_constraintdef", &[OID, Boolean], Text, constraint),
    stable("pg_get_viewdef", &[OID], Text, view),
    stable("pg_get_viewdef", &[OID, Boolean], Text, view),
    strict("pg_partition_ancestors", &[OID], OID, |_| Ok(Value::Null)),
    strict("pg_get_statisticsobjdef_columns", &[OID], Text, |_| Ok(Value::Null)),
    strict("pg_get_triggerdef", &[OID], Text, |_| Ok(Value::Null)),
    strict("pg_get_triggerdef", &[OID, Boolean], Text, |_| Ok(Value::Null)),
    strict("pg_get_ruledef", &[OID], Text, |_| Ok(Value::Null)),
    strict("pg_get_ruledef", &[OID, Boolean], Text, |_| Ok(Value::Null)),
    strict("pg_get_partkeydef", &[OID], Text, |_| Ok(Value::Null)),
    stable("obj_description", &[OID], Text, |f, v| comment(f, integer(v, 0)?, 0)),
    stable("obj_description", &[OID, Text], Text, |f, v| comment(f, integer(v, 0)?, 0)),
    strict("shobj_description", &[OID, Text], Text, |_| Ok(Value::Null)),
    stable("col_description", &[OID, Integer], Text, |f, v| {
        comment(f, integer(v, 0)?, u16::try_from(integer(v, 1)?).unwrap_or(0))
    }),
    strict("pg_get_function_result", &[OID], Text, |v| {
        Ok(function(v)?.map_or(Value::Null, |known| Value::text(known.result_name())))
    }),
    strict("pg_get_function_arguments", &[OID], Text, arguments),
    strict("pg_get_function_identity_arguments", &[OID], Text, arguments),
];

/// Returns the function with the OID in the first argument.
fn function(arguments: &[ValueRef<'_>]) -> Result<Option<&'static Procedure>> {
    Ok(procedure(u32::try_from(integer(arguments, 0)?).unwrap_or(0)))
}

fn arguments(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let found = function(arguments)?;
    Ok(found.map_or(Value::Null, |known| Value::text(known.argument_list())))
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
