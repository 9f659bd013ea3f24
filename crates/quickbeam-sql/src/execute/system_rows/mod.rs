//! The rows of the system catalogs, computed from the catalog snapshot of the statement.
//!
//! A row is built by the names of its columns. A column that is not set has the value that stands
//! for nothing in its type: 0, false, or NULL.

mod constraints;
mod information_schema;
mod monitoring;
mod relations;
mod roles;
mod routines;
mod session;
mod statistics;
mod triggers;
mod usage_views;
mod user_types;

use quickbeam::Environment;
use quickbeam::query_layer::TreeShape;
use smol_str::SmolStr;

pub use self::monitoring::blockers;
use crate::bind::{Binder, Names, OutputColumn};
use crate::catalog::system::{SystemTable, fixed_rows, procedure_named};
use crate::catalog::{CatalogSnapshot, ObjectId, Relation, Table, View};
use crate::error::Result;
use crate::expression::SessionState;
use crate::types::{DataType, SystemType, TextSettings, Value, parse_value};

/// The name of the only database.
const NAME: &str = "quickbeam";

/// A row of a system catalog.
struct SystemRow<'t> {
    table: &'t SystemTable,
    values: Vec<Value>,
}

impl<'t> SystemRow<'t> {
    fn new(table: &'t SystemTable) -> SystemRow<'t> {
        let value = |(_, name, data_type): &(SmolStr, &str, DataType)| match (*name, data_type) {
            (_, known) if known.is_object_number() => Value::Oid(0),
            (_, DataType::Boolean) => Value::Boolean(false),
            (_, DataType::SmallInt) => Value::SmallInt(0),
            ("int4", _) => Value::Integer(0),
            (_, DataType::Real) => Value::Real(0.0),
            _ => Value::Null,
        };
        SystemRow { table, values: table.columns.iter().map(value).collect() }
    }

    /// Sets a column, if the catalog has one of that name.
    fn set(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let at = self.table.columns.iter().position(|column| column.0 == name);
        if let Some(place) = at.and_then(|at| self.values.get_mut(at)) {
            *place = match (value.into(), self.table.columns.get(at.unwrap_or(0)).map(|it| it.2)) {
                (Value::BigInt(number), Some(known)) if known.is_object_number() => {
                    Value::Oid(number as u32)
                }
                (value, _) => value,
            };
        }
        self
    }

    /// Returns the value of a column; NULL if the catalog has none of that name.
    fn value(&self, name: &str) -> Value {
        let at = self.table.columns.iter().position(|column| column.0 == name);
        at.and_then(|at| self.values.get(at)).cloned().unwrap_or(Value::Null)
    }

    fn text(&mut self, name: &str, text: impl AsRef<str>) -> &mut Self {
        let column = self.table.columns.iter().find(|column| column.0 == name);
        match column.map(|column| column.2) {
            Some(DataType::System(SystemType::Regproc)) => {
                let found = procedure_named(text.as_ref()).map_or(0, |it| it.oid);
                self.set(name, Value::Oid(found))
            }
            Some(known @ (DataType::Array(_) | DataType::System(_))) if !known.is_text() => {
                let value = parse_value(text.as_ref(), known, &TextSettings::DEFAULT);
                self.set(name, value.unwrap_or(Value::Null))
            }
            _ => self.set(name, Value::text(text.as_ref())),
        }
    }
}

/// What the engine knows of tables, sessions and itself.
pub trait EngineFigures {
    /// Returns about how many rows a table has.
    fn estimated_rows(&self, table: &Table) -> Result<f64>;

    /// Returns the shape of the tree of a table's rows, or of its index with that number.
    fn shape(&self, table: &Table, index: Option<usize>) -> Result<Option<TreeShape>>;

    /// Returns the environment.
    fn environment(&self) -> &Environment;
}

/// What the rows are computed from.
struct SystemSource<'s> {
    table: &'static SystemTable,
    snapshot: &'s CatalogSnapshot,
    session: &'s dyn SessionState,
    engine: &'s dyn EngineFigures,
    rows: Vec<Vec<Value>>,
}

impl SystemSource<'_> {
    fn add(&mut self, set: impl FnOnce(&mut SystemRow<'_>)) {
        let mut row = SystemRow::new(self.table);
        set(&mut row);
        self.rows.push(row.values);
    }
}

/// Names as a snapshot knows them.
pub(in crate::execute) struct SnapshotNames<'s>(pub &'s CatalogSnapshot);

impl Names for SnapshotNames<'_> {
    fn relation(&self, name: &str) -> Result<Option<Relation>> {
        Ok(self.0.relation(name))
    }

    fn has_schema(&self, name: &str) -> bool {
        self.0.has_schema(name)
    }

    fn snapshot(&self) -> Option<&CatalogSnapshot> {
        Some(self.0)
    }

    fn sequence_name(&self, id: ObjectId) -> Option<SmolStr> {
        self.0.sequence(id).map(|sequence| sequence.lookup_name())
    }
}

/// Returns the columns of a view.
fn view_columns(snapshot: &CatalogSnapshot, view: &View) -> Vec<OutputColumn> {
    let names = SnapshotNames(snapshot);
    let types: Result<Vec<OutputColumn>> = crate::parse::query(&view.query).and_then(|parsed| {
        let query = Binder::of_stored(&names).query_statement(&parsed)?;
        Ok(query.columns)
    });
    // The tables of the engine's databases are not part of a snapshot.
    let types = types.unwrap_or_default();
    let columns = view.columns.iter().enumerate();
    let typed = |(at, name): (usize, &SmolStr)| match types.get(at) {
        Some(known) => OutputColumn { name: name.clone(), ..known.clone() },
        None => OutputColumn::new(name.clone(), DataType::Bytea),
    };
    columns.map(typed).collect()
}

/// Returns the rows of a system catalog.
pub fn system_rows(
    table: &'static SystemTable,
    snapshot: &CatalogSnapshot,
    session: &dyn SessionState,
    engine: &dyn EngineFigures,
) -> Result<Vec<Vec<Value>>> {
    let mut source = SystemSource { table, snapshot, session, engine, rows: fixed_rows(table) };
    if table.schema == "information_schema" {
        source.information_schema();
    } else {
        match table.name {
            "pg_settings"
            | "pg_database"
            | "pg_namespace"
            | "pg_stat_activity"
            | "pg_locks"
            | "pg_timezone_names"
            | "pg_prepared_statements"
            | "pg_cursors" => {
                source.session_rows()?;
            }
            "pg_roles" | "pg_user" | "pg_authid" | "pg_shadow" | "pg_auth_members" | "pg_group"
            | "pg_db_role_setting" | "pg_default_acl" => {
                source.role_rows();
            }
            name if name.starts_with("pg_stat_") || name.starts_with("pg_statio_") => {
                source.statistics()?;
            }
            name if name.starts_with("quickbeam_stat_") => source.monitoring()?,
            "pg_constraint" => source.pg_constraint(),
            "pg_collation" => source.pg_collation(),
            "pg_trigger" => source.pg_trigger(),
            "pg_aggregate" => source.made_aggregates(),
            "pg_index" | "pg_indexes" => source.pg_index(),
            _ => source.relation_rows(),
        }
    }
    Ok(source.rows)
}
