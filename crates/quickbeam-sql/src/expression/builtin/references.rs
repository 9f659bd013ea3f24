//! Names of objects and their OIDs: input and output of the `reg…` types.

use smol_str::SmolStr;

use super::super::Frame;
use super::session::lookup_path;
use super::{Builtin, integer, mismatch, stable, strict, text};
use crate::catalog::describe::{Described, name_parts, quoted_if_needed};
use crate::catalog::system::{
    argument_oid, object_oid, procedure, procedures, role_oid, row_type_oid, system_tables,
    type_named, type_row_named,
};
use crate::catalog::{CatalogSnapshot, Routine};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType::Text;
use crate::types::{
    ArrayBuilder, DataType, ElementType, SystemType, Value, ValueRef, format_vector,
};

/// Returns the name of the role with an OID.
pub(super) fn role_of_oid(snapshot: &CatalogSnapshot, oid: i64) -> Option<SmolStr> {
    snapshot.role_of_oid(oid).map(|role| snapshot.role_name(role))
}

const OID: DataType = DataType::OID;
const TEXTS: DataType = DataType::Array(ElementType::TEXT);
const OIDS: DataType = DataType::Array(ElementType::OID);

const REGCLASS: SystemType = SystemType::Regclass;
const REGTYPE: SystemType = SystemType::Regtype;
const REGNAMESPACE: SystemType = SystemType::Regnamespace;
const REGPROC: SystemType = SystemType::Regproc;
const REGPROCEDURE: SystemType = SystemType::Regprocedure;
const REGROLE: SystemType = SystemType::Regrole;

/// Declares of each `reg…` type the lookup of a name, the lookup that returns NULL if there is no
/// such object, and the output of an OID and of an array of them.
macro_rules! references {
    ($($kind:ident, $input:literal, $lookup:literal, $output:literal, $list:literal);*) => {
        &[$(
            stable($input, &[Text], DataType::System($kind), |frame, v| {
                let name = text(v, 0)?;
                match number_of($kind, frame, name)? {
                    Some(number) => Ok(Value::Oid(number)),
                    None => Err(missing($kind, name)),
                }
            }),
            stable($lookup, &[Text], DataType::System($kind), |frame, v| {
                let name = text(v, 0)?;
                if name.trim().parse::<u32>().is_ok() || name.trim() == "-" {
                    return Ok(Value::Null);
                }
                Ok(number_of($kind, frame, name)?.map_or(Value::Null, Value::Oid))
            }),
            stable($output, &[OID], Text, |frame, v| {
                Ok(Value::text(name_of($kind, frame, integer(v, 0)?)?))
            }),
            stable($list, &[OIDS], TEXTS, |frame, v| names_of($kind, frame, v)),
        )*]
    };
}

pub(super) static REFERENCES: &[Builtin] = references![
    REGCLASS, "regclassin", "to_regclass", "regclassout", "regclass[]out";
    REGTYPE, "regtypein", "to_regtype", "regtypeout", "regtype[]out";
    REGNAMESPACE, "regnamespacein", "to_regnamespace", "regnamespaceout", "regnamespace[]out";
    REGPROC, "regprocin", "to_regproc", "regprocout", "regproc[]out";
    REGPROCEDURE, "regprocedurein", "to_regprocedure", "regprocedureout", "regprocedure[]out";
    REGROLE, "regrolein", "to_regrole", "regroleout", "regrole[]out"
];

pub(super) static VECTORS: &[Builtin] = &[
    strict("int2vectorout", &[DataType::System(SystemType::Int2Vector)], Text, vector),
    strict("oidvectorout", &[DataType::System(SystemType::OidVector)], Text, vector),
];

fn vector(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(ValueRef::Array(array)) = arguments.first() else { return Err(mismatch()) };
    let mut out = String::new();
    format_vector(&mut out, *array);
    Ok(Value::text(out))
}

fn names_of(kind: SystemType, frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(ValueRef::Array(array)) = arguments.first() else { return Err(mismatch()) };
    let mut names = ArrayBuilder::new(ElementType::TEXT);
    for element in array.iter() {
        match element.as_i64() {
            Some(number) => names.push(ValueRef::Text(&name_of(kind, frame, number)?))?,
            None => names.push(ValueRef::Null)?,
        }
    }
    Ok(Value::Array(names.finish(&array.dimensions())?))
}

/// Returns the OID of a relation by its name.
pub(super) fn relation_number(frame: &Frame<'_>, name: &str) -> Result<u32> {
    number_of(REGCLASS, frame, name)?.ok_or_else(|| missing(REGCLASS, name))
}

#[cold]
fn missing(kind: SystemType, name: &str) -> SqlError {
    let (state, what) = match kind {
        SystemType::Regclass => (SqlState::UndefinedTable, "relation"),
        SystemType::Regtype => (SqlState::UndefinedObject, "type"),
        SystemType::Regnamespace => (SqlState::InvalidSchemaName, "schema"),
        SystemType::Regrole => (SqlState::UndefinedObject, "role"),
        _ => (SqlState::UndefinedFunction, "function"),
    };
    SqlError::new(state, format!("{what} \"{name}\" does not exist"))
}

/// Returns the OID of an object by its name, or of a number its value.
fn number_of(kind: SystemType, frame: &Frame<'_>, name: &str) -> Result<Option<u32>> {
    let plain = name.trim();
    if plain == "-" {
        return Ok(Some(0));
    }
    if let Ok(number) = plain.parse() {
        return Ok(Some(number));
    }
    let snapshot = frame.host()?.snapshot();
    let found = match kind {
        SystemType::Regclass => {
            let path = lookup_path(frame)?;
            let composite = || {
                let oid = snapshot.type_oid_named(name, &path)?;
                let found = snapshot.composites().find(|it| row_type_oid(it.id) == oid)?;
                Some(object_oid(found.id))
            };
            snapshot.oid_named(name, &path).or_else(composite)
        }
        SystemType::Regtype => match type_number(name) {
            None => snapshot.type_oid_named(name, &lookup_path(frame)?),
            found => found,
        },
        SystemType::Regnamespace => {
            let parts = name_parts(name).unwrap_or_default();
            let all = snapshot.schema_oids();
            let found = all.iter().find(|(known, _)| matches!(&parts[..], [part] if known == part));
            found.map(|(_, oid)| *oid)
        }
        SystemType::Regrole => {
            let parts = name_parts(name).unwrap_or_default();
            let [part] = &parts[..] else { return Ok(None) };
            snapshot.role_named(part).map(role_oid)
        }
        _ => {
            return match function_number(kind, plain)? {
                Some(known) => Ok(Some(known)),
                None => routine_number(kind, frame, plain),
            };
        }
    };
    Ok(found.and_then(|number| u32::try_from(number).ok()))
}

/// Returns the OID of the function with a signature.
pub(super) fn function_named(frame: &Frame<'_>, signature: &str) -> Result<u32> {
    let found = number_of(SystemType::Regprocedure, frame, signature)?;
    found.ok_or_else(|| missing(SystemType::Regprocedure, signature))
}

/// Returns the OID of a function by its name, which only one may have, or by its signature.
fn function_number(kind: SystemType, name: &str) -> Result<Option<u32>> {
    let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
    if kind == SystemType::Regproc {
        let mut found = procedures().filter(|known| known.name == plain);
        let first = found.next();
        if first.is_some() && found.next().is_some() {
            let message = format!("more than one function named \"{plain}\"");
            return Err(SqlError::new(SqlState::AmbiguousFunction, message));
        }
        return Ok(first.map(|known| known.oid));
    }
    let Some((called, rest)) = plain.split_once('(') else {
        let state = SqlState::InvalidTextRepresentation;
        return Err(SqlError::new(state, "expected a left parenthesis"));
    };
    let Some(list) = rest.strip_suffix(')') else {
        let state = SqlState::InvalidTextRepresentation;
        return Err(SqlError::new(state, "expected a right parenthesis"));
    };
    let mut arguments = Vec::new();
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        // No function of PostgreSQL has arguments of other types.
        let Some(number) = type_number(word) else { return Ok(None) };
        arguments.push(number as u32);
    }
    let found =
        procedures().find(|known| known.name == called.trim() && known.arguments == arguments);
    Ok(found.map(|known| known.oid))
}

/// As [`function_number`], of a function or procedure of the catalog.
fn routine_number(kind: SystemType, frame: &Frame<'_>, name: &str) -> Result<Option<u32>> {
    let (called, list) = match name.split_once('(') {
        Some((called, rest)) => (called, rest.strip_suffix(')')),
        None => (name, None),
    };
    let parts = name_parts(called.trim()).unwrap_or_default();
    let (schemas, own) = match &parts[..] {
        [own] => (lookup_path(frame)?, own),
        [schema, own] => (vec![schema.into()], own),
        _ => return Ok(None),
    };
    let snapshot = frame.host()?.snapshot();
    let mut arguments = Vec::new();
    for word in list.iter().flat_map(|it| it.split(',')).map(str::trim).filter(|it| !it.is_empty())
    {
        let number = match type_number(word) {
            None => snapshot.type_oid_named(word, &lookup_path(frame)?),
            known => known,
        };
        arguments.push(number.ok_or_else(|| missing(SystemType::Regtype, word))?);
    }
    let is_meant = |routine: &Routine| {
        let types = routine.identity().map(argument_oid);
        routine.name == own.as_str()
            && (kind == SystemType::Regproc || types.eq(arguments.iter().copied()))
    };
    for schema in schemas {
        let mut found = snapshot.routines().filter(|it| it.schema == schema && is_meant(it));
        let Some(first) = found.next() else { continue };
        if found.next().is_some() {
            let message = format!("more than one function named \"{name}\"");
            return Err(SqlError::new(SqlState::AmbiguousFunction, message));
        }
        return Ok(u32::try_from(object_oid(first.id)).ok());
    }
    Ok(None)
}

/// Returns the name of a function or procedure of the catalog.
fn routine_name(kind: SystemType, frame: &Frame<'_>, number: i64) -> Result<Option<String>> {
    let (snapshot, path) = (frame.host()?.snapshot(), lookup_path(frame)?);
    let Some(routine) = snapshot.routines().find(|it| object_oid(it.id) == number) else {
        return Ok(None);
    };
    let types = || routine.identity().map(argument_oid);
    // A name alone has to be the one of a single function.
    let is_like = |name: &str, others: &mut dyn Iterator<Item = i64>| {
        name == routine.name.as_str() && (kind == SystemType::Regproc || others.eq(types()))
    };
    let mut of_system = procedures()
        .filter(|it| is_like(it.name, &mut it.arguments.iter().map(|it| i64::from(*it))));
    let mut found = Vec::new();
    for schema in &path {
        let own = snapshot.routines().filter(|it| it.schema == *schema);
        found.extend(own.filter(|it| is_like(&it.name, &mut it.identity().map(argument_oid))));
    }
    let is_first = found.first().is_some_and(|it| it.id == routine.id);
    let is_alone = kind == SystemType::Regprocedure || found.len() == 1;
    let own = quoted_if_needed(&routine.name);
    let name = match is_first && is_alone && of_system.next().is_none() {
        true => own,
        false => format!("{}.{own}", quoted_if_needed(&routine.schema)),
    };
    if kind == SystemType::Regproc {
        return Ok(Some(name));
    }
    let types: Vec<String> = routine.signature_names();
    Ok(Some(format!("{name}({})", types.join(","))))
}

/// Returns the name of an object by its OID: the number if there is no such object.
fn name_of(kind: SystemType, frame: &Frame<'_>, number: i64) -> Result<String> {
    if number == 0 {
        return Ok("-".into());
    }
    let snapshot = frame.host()?.snapshot();
    let oid = u32::try_from(number).unwrap_or(0);
    let found = match kind {
        SystemType::Regclass => {
            let path = lookup_path(frame)?;
            let found = snapshot.relation_of(number).map(|found: Described<'_>| {
                snapshot.written_name(found.schema(), found.name(), &path)
            });
            let system = || {
                let table = system_tables().find(|table| table.oid == number)?;
                let name = quoted_if_needed(table.name);
                let is_catalog = table.schema == "pg_catalog";
                Some(if is_catalog { name } else { format!("{}.{name}", table.schema) })
            };
            let composite = || {
                let found = snapshot.composites().find(|it| object_oid(it.id) == number)?;
                let name = quoted_if_needed(&found.name);
                let is_visible = path.contains(&found.schema);
                Some(match is_visible {
                    true => name,
                    false => format!("{}.{name}", quoted_if_needed(&found.schema)),
                })
            };
            found.or_else(composite).or_else(system)
        }
        SystemType::Regtype => match type_named(number, None) {
            None => snapshot.type_of_oid(number, &lookup_path(frame)?),
            named => named,
        },
        SystemType::Regnamespace => {
            let all = snapshot.schema_oids();
            let found = all.iter().find(|(_, known)| *known == number);
            found.map(|(name, _)| quoted_if_needed(name))
        }
        SystemType::Regrole => role_of_oid(snapshot, number).map(|name| quoted_if_needed(&name)),
        SystemType::Regproc => procedure(oid).map(|known| {
            let is_alone = procedures().filter(|other| other.name == known.name).count() == 1;
            let name = quoted_if_needed(known.name);
            if is_alone { name } else { format!("pg_catalog.{name}") }
        }),
        _ => procedure(oid).map(|known| {
            let signature = known.signature();
            let arguments = signature.strip_prefix(known.name).unwrap_or_default();
            format!("{}{arguments}", quoted_if_needed(known.name))
        }),
    };
    let found = match (found, kind) {
        (None, SystemType::Regproc | SystemType::Regprocedure) => {
            routine_name(kind, frame, number)?
        }
        (found, _) => found,
    };
    Ok(found.unwrap_or_else(|| number.to_string()))
}

/// Returns the OID of a type by one of its names.
pub(super) fn type_number(name: &str) -> Option<i64> {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let name = name.strip_prefix("information_schema.").unwrap_or(name);
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    // A length does not change the type.
    let name = match (name.find('('), name.rfind(')')) {
        (Some(start), Some(end)) if start < end => {
            format!("{}{}", name[..start].trim_end(), &name[end + 1..])
        }
        _ => name.to_owned(),
    };
    let row = type_row_named(match &name[..] {
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
        "\"any\"" => "any",
        "bit varying" => "varbit",
        "\"bit\"" => "bit",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        name => name,
    })?;
    Some(if is_array { row.array } else { row.oid })
}
