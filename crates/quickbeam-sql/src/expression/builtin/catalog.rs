//! Functions over the system catalogs.

use std::sync::Arc;

use super::super::Frame;
use super::references::role_of_oid;
use super::session::lookup_path;
use super::{Builtin, Implementation, decimal, integer, stable, strict, text};
use crate::catalog::Routine;
use crate::catalog::comments::Comment;
use crate::catalog::describe::{Described, Parentheses, index_definition, quoted_if_needed};
use crate::catalog::programs::Qualification;
use crate::catalog::system::{
    Procedure, description, object_oid, procedure, system_tables, type_named,
};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::{no_column, no_relation};
use crate::types::DataType::{BigInt, Boolean, Integer, SmallInt, Text};
use crate::types::{DataType, Decimal, SystemType, Value, ValueRef};

/// The encodings of PostgreSQL, in the order of their numbers.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names of encodings, without signs.
const ALIASES: [(&str, &str); 17] = [
    ("unicode", "UTF8"),
    ("iso88591", "LATIN1"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("windows1251", "WIN1251"),
    ("windows1252", "WIN1252"),
    ("windows949", "UHC"),
    ("windows936", "GBK"),
    ("windows950", "BIG5"),
    ("shiftjis", "SJIS"),
];

const NAME: DataType = DataType::System(SystemType::Name);
const OID: DataType = DataType::OID;
const REGCLASS: DataType = DataType::System(SystemType::Regclass);

pub(super) static TABLE: &[Builtin] = &[
    Builtin::new(
        "format_type",
        &[OID, Integer],
        Text,
        Implementation::StableNullTolerant(format_type),
    ),
    stable("pg_table_is_visible", &[OID], Boolean, |frame, v| {
        let oid = integer(v, 0)?;
        let snapshot = frame.host()?.snapshot();
        let Some(found) = snapshot.relation_of(oid) else { return Ok(Value::Boolean(true)) };
        let path = lookup_path(frame)?;
        let named = snapshot.oid_named(&quoted_if_needed(found.name()), &path);
        Ok(Value::Boolean(named == Some(oid)))
    }),
    strict("pg_type_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_get_function_sqlbody", &[OID], Text, |_| Ok(Value::Null)),
    strict("pg_function_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_collation_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_operator_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_opclass_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_opfamily_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_ts_config_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_ts_dict_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_ts_parser_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_ts_template_is_visible", &[OID], Boolean, |_| Ok(Value::Boolean(true))),
    strict("pg_tablespace_location", &[OID], Text, |_| Ok(Value::text(""))),
    stable("pg_relation_is_updatable", &[REGCLASS, Boolean], Integer, |frame, v| {
        Ok(Value::Integer(updatability(frame, integer(v, 0)?)?.0))
    }),
    stable("pg_column_is_updatable", &[REGCLASS, SmallInt, Boolean], Boolean, |frame, v| {
        let (_, columns) = updatability(frame, integer(v, 0)?)?;
        let at = usize::try_from(integer(v, 1)? - 1).unwrap_or(usize::MAX);
        Ok(Value::Boolean(columns.get(at) == Some(&true)))
    }),
    strict("pg_relation_is_publishable", &[OID], Boolean, |_| Ok(Value::Boolean(false))),
    stable("pg_get_userbyid", &[OID], NAME, |frame, v| {
        let oid = integer(v, 0)?;
        let name = role_of_oid(frame.host()?.snapshot(), oid);
        Ok(Value::text(name.map_or_else(|| format!("unknown (OID={oid})"), |it| it.to_string())))
    }),
    strict("pg_encoding_to_char", &[Integer], NAME, |v| {
        let number = usize::try_from(integer(v, 0)?).ok();
        Ok(Value::text(number.and_then(|it| ENCODINGS.get(it)).copied().unwrap_or_default()))
    }),
    strict("pg_char_to_encoding", &[Text], Integer, |v| {
        let plain = |name: &str| name.replace(['_', '-', ' '], "").to_lowercase();
        let wanted = plain(text(v, 0)?);
        let wanted =
            ALIASES.iter().find(|(alias, _)| *alias == wanted).map_or(wanted, |(_, of)| plain(of));
        let found = ENCODINGS.iter().position(|name| plain(name) == wanted);
        Ok(Value::Integer(found.map_or(-1, |at| at as i32)))
    }),
    strict("getdatabaseencoding", &[], NAME, |_| Ok(Value::text("UTF8"))),
    strict("pg_size_bytes", &[Text], BigInt, |v| bytes_of(text(v, 0)?)),
    strict("pg_get_expr", &[Text, OID], Text, |v| Ok(Value::text(text(v, 0)?))),
    strict("pg_get_expr", &[Text, OID, Boolean], Text, |v| Ok(Value::text(text(v, 0)?))),
    stable("pg_get_indexdef", &[OID], Text, |f, v| index(f, integer(v, 0)?, 0, Parentheses::All)),
    stable("pg_get_indexdef", &[OID, Integer, Boolean], Text, |f, v| {
        index(f, integer(v, 0)?, integer(v, 1)?, parentheses(v, 2))
    }),
    stable("pg_get_constraintdef", &[OID], Text, constraint),
    stable("pg_get_constraintdef", &[OID, Boolean], Text, constraint),
    stable("pg_get_viewdef", &[OID], Text, view),
    stable("pg_get_viewdef", &[OID, Boolean], Text, view),
    stable("pg_get_viewdef", &[Text], Text, view_named),
    stable("pg_get_viewdef", &[Text, Boolean], Text, view_named),
    strict("pg_partition_ancestors", &[OID], OID, |_| Ok(Value::Null)),
    strict("pg_get_statisticsobjdef_columns", &[OID], Text, |_| Ok(Value::Null)),
    stable("pg_get_triggerdef", &[OID], Text, |f, v| trigger(f, v, Qualification::Full)),
    stable("pg_get_triggerdef", &[OID, Boolean], Text, |f, v| {
        let is_pretty = matches!(v.get(1), Some(ValueRef::Boolean(true)));
        trigger(f, v, if is_pretty { Qualification::Short } else { Qualification::Full })
    }),
    stable("pg_get_functiondef", &[OID], Text, |frame, v| {
        Ok(match routine_of(frame, v)? {
            Some(routine) if routine.aggregate.is_some() => {
                let message = format!("\"{}\" is an aggregate function", routine.name);
                return Err(SqlError::new(SqlState::WrongObjectType, message));
            }
            Some(routine) => Value::text(frame.host()?.snapshot().routine_definition(&routine)),
            None => Value::Null,
        })
    }),
    strict("pg_get_ruledef", &[OID], Text, |_| Ok(Value::Null)),
    strict("pg_get_ruledef", &[OID, Boolean], Text, |_| Ok(Value::Null)),
    strict("pg_get_partkeydef", &[OID], Text, |_| Ok(Value::Null)),
    stable("obj_description", &[OID], Text, |f, v| {
        comment(f, integer(v, 0)?, |comment| !comment.is_shared && comment.number == 0)
    }),
    stable("obj_description", &[OID, Text], Text, |f, v| {
        let (object, class) = (integer(v, 0)?, class_named(text(v, 1)?));
        if let Some(text) = class.and_then(|class| description(class, object)) {
            return Ok(Value::text(text));
        }
        comment(f, object, |comment| {
            !comment.is_shared && comment.number == 0 && Some(comment.class) == class
        })
    }),
    stable("shobj_description", &[OID, Text], Text, |f, v| {
        let class = class_named(text(v, 1)?);
        comment(f, integer(v, 0)?, |comment| comment.is_shared && Some(comment.class) == class)
    }),
    stable("col_description", &[OID, Integer], Text, |f, v| {
        let number = u16::try_from(integer(v, 1)?).unwrap_or(0);
        comment(f, integer(v, 0)?, |comment| !comment.is_shared && comment.number == number)
    }),
    stable("pg_get_serial_sequence", &[Text, Text], Text, |frame, v| {
        let (name, column) = (text(v, 0)?, text(v, 1)?);
        let snapshot = frame.host()?.snapshot();
        let found = snapshot.oid_named(name, &lookup_path(frame)?);
        let Some(Described::Table(table)) = found.and_then(|oid| snapshot.relation_of(oid)) else {
            return Err(no_relation(name));
        };
        let found = table.columns.iter().find(|known| known.name == column);
        let found = found.ok_or_else(|| no_column(name, column))?;
        let sequence = snapshot.owned_sequence(table.id, found.id);
        let quoted = |schema: &str, name: &str| {
            format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name))
        };
        let written = sequence.map(|it| quoted(&it.schema, &it.name));
        Ok(written.map_or(Value::Null, Value::text))
    }),
    // No table has row security.
    stable("row_security_active", &[OID], Boolean, |_, _| Ok(Value::Boolean(false))),
    stable("row_security_active", &[Text], Boolean, |frame, v| {
        let name = text(v, 0)?;
        match frame.host()?.snapshot().oid_named(name, &lookup_path(frame)?) {
            Some(_) => Ok(Value::Boolean(false)),
            None => Err(no_relation(name)),
        }
    }),
    stable("pg_relation_size", &[REGCLASS], BigInt, |f, v| {
        size(f, integer(v, 0)?, &[SizePart::Rows])
    }),
    stable("pg_relation_size", &[REGCLASS, Text], BigInt, |f, v| match text(v, 1)? {
        "main" => size(f, integer(v, 0)?, &[SizePart::Rows]),
        "fsm" | "vm" | "init" => Ok(Value::BigInt(0)),
        _ => Err(SqlError::new(SqlState::InvalidParameterValue, "invalid fork name")),
    }),
    stable("pg_table_size", &[REGCLASS], BigInt, |f, v| size(f, integer(v, 0)?, &[SizePart::Rows])),
    stable("pg_indexes_size", &[REGCLASS], BigInt, |f, v| {
        size(f, integer(v, 0)?, &[SizePart::Indexes])
    }),
    stable("pg_total_relation_size", &[REGCLASS], BigInt, |f, v| {
        size(f, integer(v, 0)?, &[SizePart::Rows, SizePart::Indexes])
    }),
    stable("pg_database_size", &[NAME], BigInt, |f, v| whole_size(f, text(v, 0)? == DATABASE)),
    stable("pg_database_size", &[OID], BigInt, |f, v| {
        whole_size(f, integer(v, 0)? == DATABASE_OID)
    }),
    strict("pg_size_pretty", &[BigInt], Text, |v| Ok(Value::text(pretty(integer(v, 0)?)))),
    strict("pg_size_pretty", &[DataType::Numeric(None)], Text, |v| {
        Ok(Value::text(pretty_numeric(&decimal(v, 0)?)?))
    }),
    stable("pg_get_function_result", &[OID], Text, |frame, v| {
        let Some(routine) = routine_of(frame, v)? else {
            return Ok(function(v)?.map_or(Value::Null, |known| Value::text(known.result_name())));
        };
        let result = frame.host()?.snapshot().routine_result(&routine);
        Ok(result.map_or(Value::Null, Value::text))
    }),
    stable("pg_get_function_arguments", &[OID], Text, |frame, v| match routine_of(frame, v)? {
        Some(routine) => Ok(Value::text(frame.host()?.snapshot().routine_arguments(&routine))),
        None => arguments(v),
    }),
    stable("pg_get_function_identity_arguments", &[OID], Text, |frame, v| {
        match routine_of(frame, v)? {
            Some(routine) => Ok(Value::text(frame.host()?.snapshot().routine_identity(&routine))),
            None => arguments(v),
        }
    }),
];

/// A part of what a table takes on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizePart {
    /// Its rows.
    Rows,
    /// Its indexes.
    Indexes,
}

/// Returns the estimated bytes of a relation's rows, of its indexes, or of both; NULL if there is
/// no such relation.
fn size(frame: &Frame<'_>, oid: i64, parts: &[SizePart]) -> Result<Value> {
    let host = frame.host()?;
    let snapshot = host.snapshot();
    let Some(relation) = snapshot.relation_of(oid) else { return Ok(Value::Null) };
    let mut bytes =
        if parts.contains(&SizePart::Rows) { host.estimated_size(relation)? } else { 0 };
    if let (Described::Table(table), true) = (relation, parts.contains(&SizePart::Indexes)) {
        for index in &table.indexes {
            bytes += host.estimated_size(Described::Index(table, index))?;
        }
    }
    Ok(Value::BigInt(bytes))
}

/// The only database.
const DATABASE: &str = "quickbeam";
const DATABASE_OID: i64 = 5;

/// Returns the estimated bytes of all tables with their indexes.
fn whole_size(frame: &Frame<'_>, is_known: bool) -> Result<Value> {
    if !is_known {
        return Err(SqlError::new(SqlState::InvalidCatalogName, "database does not exist"));
    }
    let host = frame.host()?;
    let mut bytes = 0;
    for relation in host.snapshot().described() {
        bytes += host.estimated_size(relation)?;
    }
    Ok(Value::BigInt(bytes))
}

/// Returns a number of bytes as people read it: a unit is used up to 10240 of it.
fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    const LIMIT: i64 = 10 * 1024;
    if bytes.unsigned_abs() < LIMIT.unsigned_abs() {
        return format!("{bytes} bytes");
    }
    // Halves keep the rounding exact; the last unit has no limit.
    let mut halves = bytes / (1 << 9);
    let rounded = |halves: i64| (halves + halves.signum()) / 2;
    for unit in &UNITS[..UNITS.len() - 1] {
        if halves.abs() < LIMIT * 2 - 1 {
            return format!("{} {unit}", rounded(halves));
        }
        halves /= 1 << 10;
    }
    format!("{} {}", rounded(halves), UNITS[UNITS.len() - 1])
}

/// As [`pretty`], of a NUMERIC, whose fraction counts only where it is a number of bytes.
fn pretty_numeric(bytes: &Decimal) -> Result<String> {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    let number = |number: i64| Decimal::from(number);
    if bytes.absolute().compare(&number(10 * 1024)).is_lt() {
        return Ok(format!("{bytes} bytes"));
    }
    let mut halves = bytes.whole_quotient(&number(512))?;
    for (nth, unit) in UNITS.iter().enumerate() {
        let is_small = halves.absolute().compare(&number(20 * 1024 - 1)).is_lt();
        if is_small || nth + 1 == UNITS.len() {
            let one = number(if bytes.signum() < 0 { -1 } else { 1 });
            let rounded = halves.checked_add(&one)?.whole_quotient(&number(2))?;
            return Ok(format!("{rounded} {unit}"));
        }
        halves = halves.whole_quotient(&number(1024))?;
    }
    Ok(format!("{bytes} bytes"))
}

/// Reads a number of bytes with a unit, as `pg_size_pretty` writes it.
fn bytes_of(text: &str) -> Result<Value> {
    let invalid = || {
        let message = format!("invalid size: \"{text}\"");
        SqlError::new(SqlState::InvalidParameterValue, message)
    };
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| c.is_ascii_alphabetic() && !"eE".contains(c));
    let (number, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
    let number = Decimal::parse(number.trim()).ok_or_else(invalid)??;
    let power = match &unit.trim().to_ascii_lowercase()[..] {
        "" | "bytes" => 0,
        "kb" => 1,
        "mb" => 2,
        "gb" => 3,
        "tb" => 4,
        "pb" => 5,
        _ => {
            let hint = "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".";
            return Err(invalid().with_hint(hint));
        }
    };
    let bytes = number.checked_mul(&Decimal::from(1_i64 << (10 * power)))?;
    let wide = || SqlError::new(SqlState::NumericValueOutOfRange, "bigint out of range");
    bytes.to_i64().map(Value::BigInt).ok_or_else(wide)
}

/// Returns the function with the OID in the first argument.
fn function(arguments: &[ValueRef<'_>]) -> Result<Option<&'static Procedure>> {
    Ok(procedure(u32::try_from(integer(arguments, 0)?).unwrap_or(0)))
}

/// Returns the function of the catalog with the OID in the first argument.
fn routine_of(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Option<Arc<Routine>>> {
    let oid = integer(arguments, 0)?;
    let mut routines = frame.host()?.snapshot().routines();
    Ok(routines.find(|routine| object_oid(routine.id) == oid).cloned())
}

fn trigger(
    frame: &Frame<'_>,
    arguments: &[ValueRef<'_>],
    qualification: Qualification,
) -> Result<Value> {
    let (oid, snapshot) = (integer(arguments, 0)?, frame.host()?.snapshot());
    let found = snapshot.triggers().find(|trigger| object_oid(trigger.id) == oid);
    let text = found.and_then(|it| snapshot.trigger_definition(it, qualification));
    Ok(text.map_or(Value::Null, Value::text))
}

fn arguments(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let found = function(arguments)?;
    Ok(found.map_or(Value::Null, |known| Value::text(known.argument_list())))
}

fn format_type(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(oid) = arguments.first().and_then(|oid| oid.as_i64()) else { return Ok(Value::Null) };
    let modifier = arguments.get(1).and_then(|value| value.as_i64());
    let modifier = modifier.and_then(|modifier| i32::try_from(modifier).ok());
    let unknown = || if oid == 0 { "-".to_owned() } else { "???".to_owned() };
    let named = match type_named(oid, modifier) {
        None => frame.host()?.snapshot().type_of_oid(oid, &lookup_path(frame)?),
        named => named,
    };
    Ok(Value::text(named.unwrap_or_else(unknown)))
}

/// Returns the comment on the object of an OID that `fits`.
fn comment(frame: &Frame<'_>, oid: i64, fits: impl Fn(&Comment<'_>) -> bool) -> Result<Value> {
    let all = frame.host()?.snapshot().all_comments().into_iter();
    let found = all.filter(|comment| comment.oid == oid).find(|comment| fits(comment));
    Ok(found.map_or(Value::Null, |comment| Value::text(comment.text)))
}

/// Returns the OID of the catalog of that name.
fn class_named(name: &str) -> Option<i64> {
    system_tables().find(|table| table.name == name).map(|table| table.oid)
}

/// Returns the changes that a relation allows, and for each column whether it can be changed.
fn updatability(frame: &Frame<'_>, oid: i64) -> Result<(i32, Vec<bool>)> {
    /// INSERT, UPDATE and DELETE by PostgreSQL's numbers of commands.
    const ALL: i32 = 1 << 2 | 1 << 3 | 1 << 4;
    let host = frame.host()?;
    Ok(match host.snapshot().relation_of(oid) {
        Some(Described::Table(table)) if table.materialized.is_some() => {
            (0, vec![false; table.columns.len()])
        }
        Some(Described::Table(table)) => (ALL, vec![true; table.columns.len()]),
        Some(Described::View(view)) => host.updatability(view),
        _ => (0, Vec::new()),
    })
}

/// Returns which parentheses the argument of that place asks for.
fn parentheses(arguments: &[ValueRef<'_>], place: usize) -> Parentheses {
    match arguments.get(place) {
        Some(ValueRef::Boolean(true)) => Parentheses::Needed,
        _ => Parentheses::All,
    }
}

fn index(frame: &Frame<'_>, oid: i64, column: i64, parentheses: Parentheses) -> Result<Value> {
    let column = usize::try_from(column).unwrap_or(usize::MAX);
    let found = frame.host()?.snapshot().relation_of(oid);
    let definition = found.and_then(|found| index_definition(found, column, parentheses));
    Ok(definition.map_or(Value::Null, Value::text))
}

fn constraint(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (oid, parentheses) = (integer(arguments, 0)?, parentheses(arguments, 1));
    let found = frame.host()?.snapshot().constraint_definition(oid, parentheses);
    Ok(found.map_or(Value::Null, Value::text))
}

fn view(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    view_of(frame, integer(arguments, 0)?)
}

fn view_named(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let number = super::references::relation_number(frame, text(arguments, 0)?)?;
    view_of(frame, number.into())
}

fn view_of(frame: &Frame<'_>, number: i64) -> Result<Value> {
    Ok(match frame.host()?.snapshot().relation_of(number) {
        Some(Described::View(view)) => Value::text(format!(" {};", view.query)),
        Some(Described::Table(table)) => match &table.materialized {
            Some(materialized) => Value::text(format!(" {};", materialized.query)),
            None => Value::Null,
        },
        _ => Value::Null,
    })
}
