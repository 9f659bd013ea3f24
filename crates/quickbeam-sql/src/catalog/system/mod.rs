//! The system catalogs: `pg_catalog` and `information_schema`, with the columns of PostgreSQL 15.
//!
//! The rows of some are fixed and stand in files beside this one. The others are computed from a
//! catalog snapshot when a query reads them, in `execute/system_rows`.

mod oids;
mod operators;
mod procedures;

use std::collections::HashMap;
use std::sync::LazyLock;

use smol_str::SmolStr;

pub use oids::{
    CATALOG_SCHEMA, CLASS_OF_CLASS, INFORMATION_SCHEMA, OWNER, PUBLIC_SCHEMA, argument_oid,
    check_oid, constraint_oid, default_oid, domain_check_oid, domain_oid, enum_label_oid,
    foreign_key_oid, object_array_oid, object_oid, primary_key_oid, role_oid, row_type_oid,
    type_modifier, type_named, type_oid,
};

pub use operators::{is_operator, operator_of};
pub use procedures::{Procedure, procedure, procedure_named, procedures};

use crate::types::{DataType, ElementType, SystemType, TextSettings, Value, parse_value};

/// A system catalog.
#[derive(Debug, PartialEq, Eq)]
pub struct SystemTable {
    /// Its schema.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its OID.
    pub oid: i64,
    /// `r`, or `v` if it is a view in PostgreSQL.
    pub kind: &'static str,
    /// Its columns: name, PostgreSQL's type, and the type here.
    pub columns: Vec<(SmolStr, &'static str, DataType)>,
}

/// The catalogs: a line has the schema, the name, the OID, the kind, and the columns with their
/// types.
static COLUMNS: &str = include_str!("columns.tsv");

static TABLES: LazyLock<Vec<SystemTable>> = LazyLock::new(|| {
    let table = |line: &'static str| {
        let mut fields = line.split('\t');
        let (schema, name) = (fields.next()?, fields.next()?);
        let (oid, kind) = (fields.next()?.parse().ok()?, fields.next()?);
        let column = |field: &'static str| {
            let (name, data_type) = field.split_once(':')?;
            Some((SmolStr::new_static(name), data_type, column_type(data_type)))
        };
        Some(SystemTable { schema, name, oid, kind, columns: fields.filter_map(column).collect() })
    };
    COLUMNS.lines().filter_map(table).collect()
});

/// Returns the type in which a column of a system catalog is delivered.
fn column_type(name: &str) -> DataType {
    match name {
        "bool" => DataType::Boolean,
        "int2" => DataType::SmallInt,
        "int4" | "cardinal_number" => DataType::Integer,
        "int8" => DataType::BigInt,
        "bytea" => DataType::Bytea,
        "sql_identifier" => DataType::System(SystemType::Name),
        "yes_or_no" => DataType::Varchar(Some(3)),
        "character_data" => DataType::Varchar(None),
        "float4" => DataType::Real,
        "float8" => DataType::Double,
        "timestamptz" | "time_stamp" => DataType::TimestampTz,
        "interval" => DataType::Interval,
        "_int2" => array(DataType::SmallInt),
        "_int4" => array(DataType::Integer),
        "_float4" => array(DataType::Real),
        "_text" | "_aclitem" => array(DataType::Text),
        name => match (SystemType::named(name), name.strip_prefix('_')) {
            (Some(known), _) => DataType::System(known),
            (None, Some(element)) => match SystemType::named(element) {
                Some(element) => array(DataType::System(element)),
                None => DataType::Text,
            },
            (None, None) => DataType::Text,
        },
    }
}

fn array(element: DataType) -> DataType {
    ElementType::new(element).map_or(DataType::Text, DataType::Array)
}

/// Returns the system catalog of that name; without a schema one of `pg_catalog`.
#[must_use]
pub fn system_table(schema: Option<&str>, name: &str) -> Option<&'static SystemTable> {
    let schema = schema.unwrap_or("pg_catalog");
    TABLES.iter().find(|table| table.name == name && table.schema == schema)
}

/// All system catalogs.
pub fn system_tables() -> impl Iterator<Item = &'static SystemTable> {
    TABLES.iter()
}

/// Returns the rows of a catalog that are the same in every database, in COPY's text format.
fn fixed_text(table: &str) -> &'static str {
    match table {
        "pg_type" => include_str!("rows/pg_type.tsv"),
        "pg_am" => include_str!("rows/pg_am.tsv"),
        "pg_language" => include_str!("rows/pg_language.tsv"),
        "pg_tablespace" => include_str!("rows/pg_tablespace.tsv"),
        "pg_opclass" => include_str!("rows/pg_opclass.tsv"),
        "pg_opfamily" => include_str!("rows/pg_opfamily.tsv"),
        "pg_operator" => include_str!("rows/pg_operator.tsv"),
        "pg_amop" => include_str!("rows/pg_amop.tsv"),
        "pg_cast" => include_str!("rows/pg_cast.tsv"),
        "pg_aggregate" => include_str!("rows/pg_aggregate.tsv"),
        "pg_ts_config" => include_str!("rows/text_search/pg_ts_config.tsv"),
        "pg_ts_config_map" => include_str!("rows/text_search/pg_ts_config_map.tsv"),
        "pg_ts_dict" => include_str!("rows/text_search/pg_ts_dict.tsv"),
        "pg_ts_parser" => include_str!("rows/text_search/pg_ts_parser.tsv"),
        "pg_ts_template" => include_str!("rows/text_search/pg_ts_template.tsv"),
        "pg_description" => DESCRIPTIONS,
        "pg_extension" => "13559\tplpgsql\t10\t11\tf\t1.0\t\\N\t\\N",
        "sql_features" => include_str!("rows/standard/sql_features.tsv"),
        "sql_implementation_info" => include_str!("rows/standard/sql_implementation_info.tsv"),
        "sql_parts" => include_str!("rows/standard/sql_parts.tsv"),
        "sql_sizing" => include_str!("rows/standard/sql_sizing.tsv"),
        _ => "",
    }
}

/// The descriptions of built-in objects: the object, its class, 0, and the text.
static DESCRIPTIONS: &str = include_str!("rows/descriptions.tsv");

static DESCRIBED: LazyLock<HashMap<(i64, i64), &'static str>> = LazyLock::new(|| {
    let entry = |line: &'static str| {
        let fields: Vec<&'static str> = line.splitn(4, '\t').collect();
        let [object, class, _, text] = fields[..] else { return None };
        Some(((class.parse().ok()?, object.parse().ok()?), text))
    };
    DESCRIPTIONS.lines().filter_map(entry).collect()
});

/// Returns the description of a built-in object of a class.
#[must_use]
pub fn description(class: i64, object: i64) -> Option<&'static str> {
    DESCRIBED.get(&(class, object)).copied()
}

const REGPROC: DataType = DataType::System(SystemType::Regproc);

/// Returns the rows of a catalog that are the same in every database.
#[must_use]
pub fn fixed_rows(table: &SystemTable) -> Vec<Vec<Value>> {
    let text = fixed_text(table.name);
    let row = |line: &str| {
        let fields = line.split('\t').zip(&table.columns);
        let value = |(field, (_, _, data_type)): (&str, &(SmolStr, &str, DataType))| match field {
            "\\N" => Value::Null,
            // A name, or an OID where several functions have the name.
            field if *data_type == REGPROC => Value::Oid(match field.parse() {
                Ok(oid) => oid,
                Err(_) => procedure_named(field).map_or(0, |found| found.oid),
            }),
            field => parse_value(field, *data_type, &TextSettings::DEFAULT).unwrap_or(Value::Null),
        };
        fields.map(value).collect()
    };
    text.lines().map(row).collect()
}

/// A row of `pg_type`, as far as other catalogs repeat it.
#[derive(Debug)]
pub struct TypeRow {
    /// The type's OID.
    pub oid: i64,
    /// Its name.
    pub name: &'static str,
    /// The OID of the arrays of it.
    pub array: i64,
    /// Its length in PostgreSQL; negative if it varies.
    pub length: i16,
    /// Whether PostgreSQL passes it by value.
    pub by_value: bool,
    /// Its alignment.
    pub align: &'static str,
    /// Its storage.
    pub storage: &'static str,
    /// Its collation.
    pub collation: i64,
}

static TYPE_ROWS: LazyLock<Vec<TypeRow>> = LazyLock::new(|| {
    let Some(table) = system_table(None, "pg_type") else { return Vec::new() };
    let row = |line: &'static str| {
        let fields: Vec<&'static str> = line.split('\t').collect();
        let field = |name: &str| {
            let at = table.columns.iter().position(|column| column.0 == name)?;
            fields.get(at).copied()
        };
        Some(TypeRow {
            oid: field("oid")?.parse().ok()?,
            name: field("typname")?,
            array: field("typarray")?.parse().ok()?,
            length: field("typlen")?.parse().ok()?,
            by_value: field("typbyval")? == "t",
            align: field("typalign")?,
            storage: field("typstorage")?,
            collation: field("typcollation")?.parse().ok()?,
        })
    };
    fixed_text("pg_type").lines().filter_map(row).collect()
});

/// Returns the OID of the default operator class of a type in an access method; 0 for none.
#[must_use]
pub fn operator_class(method: i64, type_oid: i64) -> i64 {
    // The classes of texts are those of TEXT.
    let wanted = if type_oid == 1043 { 25 } else { type_oid };
    let found = fixed_text("pg_opclass").lines().find_map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [oid, of, _, _, _, _, input, "t", ..] = fields[..] else { return None };
        (of.parse() == Ok(method) && input.parse() == Ok(wanted)).then(|| oid.parse().ok())?
    });
    found.unwrap_or(0)
}

/// Returns the row of `pg_type` with that OID.
#[must_use]
pub fn type_row(oid: i64) -> Option<&'static TypeRow> {
    TYPE_ROWS.iter().find(|row| row.oid == oid)
}

/// Returns the row of `pg_type` with that name.
#[must_use]
pub fn type_row_named(name: &str) -> Option<&'static TypeRow> {
    TYPE_ROWS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_rows_fit_the_columns() {
        let names = ["pg_type", "pg_am", "pg_language", "pg_opclass"];
        let more = ["pg_opfamily", "pg_operator", "pg_amop", "pg_cast", "pg_aggregate"];
        let search = ["pg_ts_config", "pg_ts_config_map", "pg_ts_dict", "pg_ts_parser"];
        for name in names.into_iter().chain(more).chain(search).chain(["pg_ts_template"]) {
            let table = system_table(None, name).unwrap();
            let rows = fixed_rows(table);
            assert!(!rows.is_empty());
            for row in rows {
                assert_eq!(row.len(), table.columns.len(), "{name}");
                assert!(!row[0].is_null());
            }
        }
        assert_eq!(type_row(25).unwrap().name, "text");
        assert_eq!(type_row_named("int4").unwrap().array, 1007);
    }
}
