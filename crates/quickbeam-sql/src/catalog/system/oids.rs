//! OIDs: the numbers of objects in the system catalogs.
//!
//! An object of the catalog keeps its number for its lifetime, above those that PostgreSQL gives
//! its own. Objects without a number have one made of their table's number and their name.

use super::type_row_named;
use crate::schema::roles::PREDEFINED_ROLES;
use crate::schema::{Argument, BOOTSTRAP, DomainUse, ObjectId, Table};
use crate::types::encoded::enums::FIRST_OBJECT_OID;
use crate::types::{DataType, EncodedKind, NumericLimits, PreciseType, TimeKind};

/// The schema `pg_catalog`.
pub const CATALOG_SCHEMA: i64 = 11;
/// The schema `public`.
pub const PUBLIC_SCHEMA: i64 = 2200;
/// The schema `information_schema`.
pub const INFORMATION_SCHEMA: i64 = 13_207;
/// The bootstrap role.
pub const OWNER: i64 = 10;
/// The catalog `pg_class`.
pub const CLASS_OF_CLASS: i64 = 1259;

/// The first number of objects.
const FIRST: i64 = FIRST_OBJECT_OID as i64;
/// Distances between the numbers of the kinds of objects that go with one of the catalog.
const OF_PRIMARY_KEY: i64 = 1 << 28;
const OF_CONSTRAINT: i64 = 2 << 28;
const OF_ROW_TYPE: i64 = 3 << 28;
const OF_ARRAY: i64 = 5 << 28;

/// Returns the OID of a table, view, sequence or index.
pub fn object_oid(id: ObjectId) -> i64 {
    FIRST + i64::from(id.0)
}

/// Returns the OID of a role.
pub fn role_oid(role: ObjectId) -> i64 {
    if role == BOOTSTRAP {
        return OWNER;
    }
    let predefined = PREDEFINED_ROLES.iter().find(|it| it.0 == role);
    predefined.map_or_else(|| object_oid(role), |it| it.2)
}

/// Returns the OID of the index of a primary key.
pub fn primary_key_oid(table: &Table) -> i64 {
    OF_PRIMARY_KEY + object_oid(table.id)
}

/// Returns the OID of the constraint of a primary key, by its table, or a UNIQUE constraint, by its
/// index.
pub fn constraint_oid(id: ObjectId) -> i64 {
    OF_CONSTRAINT + object_oid(id)
}

/// Returns the OID of the type of a relation's rows.
pub fn row_type_oid(id: ObjectId) -> i64 {
    OF_ROW_TYPE + object_oid(id)
}

/// Returns the OID of the type of arrays of a relation's rows, or of a domain.
pub fn object_array_oid(id: ObjectId) -> i64 {
    OF_ARRAY + object_oid(id)
}

/// Returns the OID of the type that a domain, or an array of one, is.
pub fn domain_oid(used: DomainUse) -> i64 {
    match used {
        DomainUse::Value(id) => object_oid(id),
        DomainUse::Elements(id) => object_array_oid(id),
    }
}

/// Returns an OID made of the number of a table or domain and a name (FNV-1a).
fn named_oid(object: ObjectId, kind: u8, name: &str) -> i64 {
    let mut hash: u32 = 0x811c_9dc5;
    let bytes = object.0.to_le_bytes().into_iter().chain([kind]).chain(name.bytes());
    for byte in bytes {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    i64::from(hash | 0x8000_0000)
}

/// Returns the OID of a CHECK constraint.
pub fn check_oid(table: &Table, name: &str) -> i64 {
    named_oid(table.id, b'c', name)
}

/// Returns the OID of a CHECK constraint of a domain.
pub fn domain_check_oid(domain: ObjectId, name: &str) -> i64 {
    named_oid(domain, b'c', name)
}

/// Returns the OID of a label of an enumerated type.
pub fn enum_label_oid(known: ObjectId, label: &str) -> i64 {
    named_oid(known, b'e', label)
}

/// Returns the OID of a FOREIGN KEY constraint.
pub fn foreign_key_oid(table: &Table, name: &str) -> i64 {
    named_oid(table.id, b'f', name)
}

/// Returns the OID of the DEFAULT of a column.
pub fn default_oid(relation: ObjectId, column: u16) -> i64 {
    named_oid(relation, b'd', &column.to_string())
}

/// Returns the OID of the type of an argument.
pub fn argument_oid(argument: &Argument) -> i64 {
    match (argument.pseudo, &argument.domain) {
        (Some(pseudo), _) => pseudo.oid(),
        (None, Some(domain)) => domain_oid(domain.used),
        (None, None) => type_oid(argument.data_type),
    }
}

/// Returns the OID of a type.
pub fn type_oid(data_type: DataType) -> i64 {
    let is_array = matches!(data_type, DataType::Array(_));
    if let Some(encoded) = data_type.enumerated().or(data_type.element_or_self().record()) {
        let (own, array) = encoded.oids();
        return i64::from(if is_array { array } else { own });
    }
    let row = type_row_named(data_type.catalog_name());
    row.map_or(0, |row| if is_array { row.array } else { row.oid })
}

/// Returns the modifier that PostgreSQL keeps for a type with a length or precision.
pub fn type_modifier(data_type: DataType) -> i32 {
    match data_type {
        DataType::Numeric(Some((precision, scale))) => {
            ((i32::from(precision) << 16) | i32::from(scale)) + 4
        }
        DataType::BPCHAR => -1,
        DataType::Varchar(Some(length)) | DataType::Char(length) => {
            i32::try_from(length).map_or(-1, |length| length + 4)
        }
        DataType::Encoded(encoded) if encoded.kind() == EncodedKind::TimeTz => {
            i32::try_from(encoded.length()).map_or(-1, |length| length - 1)
        }
        DataType::Precise(precise) => precise.modifier(),
        DataType::WideNumeric(limits) => limits.modifier(),
        DataType::Encoded(encoded) if encoded.length() > 0 && !encoded.kind().has_definition() => {
            i32::try_from(encoded.length()).unwrap_or(-1)
        }
        DataType::Array(element) => type_modifier(element.data_type()),
        _ => -1,
    }
}

/// Returns the name of a type of times with a modifier.
fn time_name(kind: TimeKind, modifier: Option<i32>) -> String {
    PreciseType::of_modifier(kind, modifier.unwrap_or(-1)).to_string()
}

/// Returns the name of a type as `format_type()` does, by its OID and modifier.
pub fn type_named(oid: i64, modifier: Option<i32>) -> Option<String> {
    let row = super::type_row(oid)?;
    let element = row.name.strip_prefix('_').filter(|_| row.array == 0);
    if let Some(element) = element.and_then(type_row_named) {
        return Some(format!("{}[]", type_named(element.oid, modifier)?));
    }
    let given = modifier.filter(|modifier| *modifier >= 0);
    let length = |name: &str| match given {
        Some(modifier) => format!("{name}({})", modifier - 4),
        None => name.to_owned(),
    };
    Some(match row.name {
        "bool" => "boolean".to_owned(),
        "int2" => "smallint".to_owned(),
        "int4" => "integer".to_owned(),
        "int8" => "bigint".to_owned(),
        "float4" => "real".to_owned(),
        "float8" => "double precision".to_owned(),
        "varchar" => length("character varying"),
        // Without a modifier the type has no length; `character` alone has the length 1.
        "bpchar" if modifier.is_some() && given.is_none() => "bpchar".to_owned(),
        "bpchar" => length("character"),
        "bit" if modifier.is_some() && given.is_none() => "\"bit\"".to_owned(),
        "bit" | "varbit" => {
            let name = if row.name == "bit" { "bit" } else { "bit varying" };
            given.map_or_else(|| name.to_owned(), |length| format!("{name}({length})"))
        }
        "char" => "\"char\"".to_owned(),
        "time" => time_name(TimeKind::Time, given),
        "timetz" => match given {
            Some(digits) => format!("time({digits}) with time zone"),
            None => "time with time zone".to_owned(),
        },
        "timestamp" => time_name(TimeKind::Timestamp, given),
        "timestamptz" => time_name(TimeKind::TimestampTz, given),
        "interval" => time_name(TimeKind::Interval, given),
        "any" => "\"any\"".to_owned(),
        "sql_identifier" | "character_data" | "cardinal_number" | "yes_or_no" | "time_stamp" => {
            format!("information_schema.{}", row.name)
        }
        "numeric" => given.map_or_else(|| "numeric".to_owned(), NumericLimits::type_name),
        name => name.to_owned(),
    })
}
