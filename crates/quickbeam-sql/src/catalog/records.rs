//! The catalog's objects as records: JSON, so that fields can be added without another version of
//! the format. A field is written only where it is needed. A release that does not know it refuses
//! the record, because to ignore the field could corrupt data: rows would lack the values of a
//! generated column, for example.
//!
//! Columns are named by their numbers here, by their positions in memory (SCHEMA-1); the two are
//! converted nowhere else.

use std::collections::BTreeMap;
use std::sync::Arc;

use quickbeam::AccessMethod;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::CatalogSnapshot;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::encoding::{Layout, Layouts};
use crate::schema::names::{is_public, public};
use crate::schema::role_defaults::{DefaultRights, RoleSettings};
use crate::schema::roles::{ObjectAccess, Role};
use crate::schema::{
    Check, Column, Comments, CompositeType, ConstraintTiming, Domain, DomainUse, EXPRESSIONS,
    EnumType, ForeignKey, ForeignKeyAction, Identity, Index, IndexExpression, IndexPredicate,
    KeyColumn, MadeCollation, Materialized, Method, ObjectId, PrimaryKey, Routine, Schema,
    Sequence, StoredCollation, Table, Trigger, View,
};
use crate::types::{Collation, DataType, TextSettings, Value, format_value, parse_value};

/// An object's record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    Table(TableRecord),
    View(View),
    Sequence(Sequence),
    Schema(Schema),
    Role(Role),
    Access(ObjectAccess),
    Routine(Routine),
    Trigger(Trigger),
    Domain(Domain),
    Enum(EnumType),
    Collation(MadeCollation),
    Composite(CompositeType),
    Comments(Comments),
    Settings(RoleSettings),
    DefaultRights(DefaultRights),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRecord {
    id: ObjectId,
    #[serde(default = "public", skip_serializing_if = "is_public")]
    schema: SmolStr,
    name: SmolStr,
    columns: Vec<ColumnRecord>,
    primary_key: Option<KeyRecord>,
    indexes: Vec<IndexRecord>,
    checks: Vec<Check>,
    foreign_keys: Vec<ForeignKeyRecord>,
    generation: u32,
    /// The newest first.
    layouts: Vec<LayoutRecord>,
    next_column: u16,
    /// By the number of the column, 0 for the table itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    comments: BTreeMap<u16, Arc<str>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    constraint_comments: BTreeMap<SmolStr, Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    materialized: Option<Materialized>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnRecord {
    id: u16,
    name: SmolStr,
    data_type: DataType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<ObjectId>,
    /// The domain of the elements of an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    element_domain: Option<ObjectId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collation: Option<StoredCollation>,
    /// What `collation` means.
    #[serde(skip)]
    resolved: Option<Collation>,
    not_null: bool,
    default: Option<Arc<str>>,
    identity: Option<Identity>,
    /// As text.
    missing: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generated: Option<Vec<u16>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRecord {
    name: SmolStr,
    columns: Vec<u16>,
    method: Method,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexRecord {
    id: ObjectId,
    name: SmolStr,
    columns: Vec<KeyColumnRecord>,
    unique: bool,
    method: Method,
    is_constraint: bool,
    /// A hash index that is not unique has groups. Without this, one is of before there were any,
    /// and its tree is ordered.
    #[serde(default)]
    grouped: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    include: Vec<u16>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nulls_not_distinct: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    expressions: Vec<IndexExpression>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicate: Option<IndexPredicate>,
    #[serde(default, skip_serializing_if = "ConstraintTiming::is_default")]
    timing: ConstraintTiming,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_primary: bool,
    /// The version of the library whose sort keys are in the entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collation_version: Option<SmolStr>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyColumnRecord {
    /// 0, which no column has, for the next of the expressions.
    column: u16,
    descending: bool,
    nulls_first: bool,
    /// Of the sort keys in the entries. Texts without it are in the order of their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collation: Option<StoredCollation>,
    /// What `collation` means.
    #[serde(skip)]
    resolved: Option<Collation>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignKeyRecord {
    name: SmolStr,
    columns: Vec<u16>,
    parent: ObjectId,
    parent_columns: Vec<u16>,
    on_delete: ForeignKeyAction,
    on_update: ForeignKeyAction,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    not_valid: bool,
    #[serde(default, skip_serializing_if = "ConstraintTiming::is_default")]
    timing: ConstraintTiming,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_full: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    delete_columns: Vec<u16>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutRecord {
    number: u16,
    columns: Vec<(u16, DataType)>,
}

#[cold]
fn damaged(what: impl std::fmt::Display) -> SqlError {
    SqlError::corrupted(format!("a record of the catalog cannot be read: {what}"))
}

/// The error for a record that cannot be decoded. One with an unknown field, kind or type is whole.
#[cold]
fn unreadable(error: serde_json::Error) -> SqlError {
    let message = error.to_string();
    if !error.is_data() || !message.starts_with("unknown ") {
        return damaged(error);
    }
    let unknown = message.split(", expected").next().unwrap_or_default();
    SqlError::new(
        SqlState::FeatureNotSupported,
        format!("the catalog has a record that this release does not know: {unknown}"),
    )
    .with_hint("Open the database with the release that wrote it, or with a newer one.")
}

impl Record {
    /// The record's bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| SqlError::internal(error.to_string()))
    }

    /// The object in these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Record> {
        serde_json::from_slice(bytes).map_err(unreadable)
    }
}

impl TableRecord {
    /// The record of a table.
    pub fn of(table: &Table) -> TableRecord {
        let number = |position: &usize| table.columns.get(*position).map(|column| column.id);
        let numbers = |positions: &[usize]| positions.iter().filter_map(number).collect();
        let layouts = std::iter::once(&table.layouts.current).chain(&table.layouts.older);
        TableRecord {
            id: table.id,
            schema: table.schema.clone(),
            name: table.name.clone(),
            columns: table.columns.iter().map(ColumnRecord::of).collect(),
            primary_key: table.primary_key.as_ref().map(|key| KeyRecord {
                name: key.name.clone(),
                columns: numbers(&key.columns),
                method: key.method,
            }),
            indexes: table.indexes.iter().map(|index| IndexRecord::of(index, table)).collect(),
            checks: table.checks.clone(),
            foreign_keys: table
                .foreign_keys
                .iter()
                .map(|key| ForeignKeyRecord {
                    name: key.name.clone(),
                    columns: numbers(&key.columns),
                    parent: key.parent,
                    parent_columns: key.parent_columns.clone(),
                    on_delete: key.on_delete,
                    on_update: key.on_update,
                    not_valid: key.not_valid,
                    timing: key.timing,
                    is_full: key.is_full,
                    delete_columns: key.delete_columns.clone(),
                })
                .collect(),
            generation: table.generation,
            layouts: layouts
                .map(|layout| LayoutRecord {
                    number: layout.number,
                    columns: layout.columns.clone(),
                })
                .collect(),
            next_column: table.next_column,
            comments: table.comments.clone(),
            constraint_comments: table.constraint_comments.clone(),
            materialized: table.materialized.as_deref().cloned(),
        }
    }

    /// Returns the number, schema and name of the table, and the names and types of its columns.
    pub fn row(&self) -> (ObjectId, &SmolStr, &SmolStr, Vec<(SmolStr, DataType)>) {
        let fields = self.columns.iter().map(|it| (it.name.clone(), it.data_type)).collect();
        (self.id, &self.schema, &self.name, fields)
    }

    /// Calls `resolve` with each type in the record.
    pub fn resolve_types(&mut self, types: &CatalogSnapshot) -> Result<()> {
        for column in &mut self.columns {
            types.resolve_type(&mut column.data_type)?;
            if let Some(stored) = &column.collation {
                column.resolved = Some(types.stored_collation(stored)?);
            }
        }
        for key in self.indexes.iter_mut().flat_map(|index| &mut index.columns) {
            if let Some(stored) = &key.collation {
                key.resolved = Some(types.stored_collation(stored)?);
            }
        }
        let layouts = self.layouts.iter_mut().flat_map(|layout| &mut layout.columns);
        layouts.for_each(|(_, data_type)| types.resolve_old_type(data_type));
        let mut expressions = self.indexes.iter_mut().flat_map(|index| &mut index.expressions);
        expressions.try_for_each(|expression| types.resolve_type(&mut expression.data_type))
    }

    /// The table, without the foreign keys that point to it.
    pub fn into_table(self) -> Result<Table> {
        let columns: Vec<Column> =
            self.columns.into_iter().map(ColumnRecord::into_column).collect::<Result<_>>()?;
        let position = |id: u16| {
            let found = columns.iter().position(|column| column.id == id);
            found.ok_or_else(|| damaged(format_args!("table {} has no column {id}", self.name)))
        };
        let positions = |ids: Vec<u16>| ids.into_iter().map(position).collect::<Result<Vec<_>>>();
        let primary_key = match self.primary_key {
            None => None,
            Some(key) => Some(PrimaryKey {
                name: key.name,
                columns: positions(key.columns)?,
                method: key.method,
            }),
        };
        let index = |index: IndexRecord| {
            let mut expressions = EXPRESSIONS..EXPRESSIONS + index.expressions.len();
            let column = |column: KeyColumnRecord| {
                Ok(KeyColumn {
                    position: match column.column {
                        0 => expressions.next().ok_or_else(|| damaged("no expression"))?,
                        id => position(id)?,
                    },
                    descending: column.descending,
                    nulls_first: column.nulls_first,
                    collation: column.resolved,
                })
            };
            let is_old = index.method == Method::Hash && !index.unique && !index.grouped;
            Ok(Arc::new(Index {
                id: index.id,
                name: index.name,
                columns: index.columns.into_iter().map(column).collect::<Result<_>>()?,
                unique: index.unique,
                method: if is_old { Method::Range } else { index.method },
                is_constraint: index.is_constraint,
                include: positions(index.include)?,
                nulls_not_distinct: index.nulls_not_distinct,
                expressions: index.expressions,
                predicate: index.predicate,
                timing: index.timing,
                is_primary: index.is_primary,
                collation_version: index.collation_version,
            }))
        };
        let foreign_key = |key: ForeignKeyRecord| {
            Ok(ForeignKey {
                name: key.name,
                columns: positions(key.columns)?,
                parent: key.parent,
                parent_columns: key.parent_columns,
                on_delete: key.on_delete,
                on_update: key.on_update,
                not_valid: key.not_valid,
                timing: key.timing,
                is_full: key.is_full,
                delete_columns: key.delete_columns,
            })
        };
        let mut layouts = self
            .layouts
            .into_iter()
            .map(|layout| Arc::new(Layout::new(layout.number, layout.columns, &columns)));
        let current = layouts.next().ok_or_else(|| damaged("a table without a layout"))?;
        let layouts = Layouts { current, older: layouts.collect() };
        Ok(Table {
            id: self.id,
            indexes: self.indexes.into_iter().map(index).collect::<Result<_>>()?,
            foreign_keys: self.foreign_keys.into_iter().map(foreign_key).collect::<Result<_>>()?,
            schema: self.schema,
            name: self.name,
            primary_key,
            checks: self.checks,
            referenced_by: Vec::new(),
            triggers: Vec::new(),
            generation: self.generation,
            layouts,
            next_column: self.next_column,
            comments: self.comments,
            constraint_comments: self.constraint_comments,
            materialized: self.materialized.map(Arc::new),
            database: None,
            columns,
        })
    }
}

impl ColumnRecord {
    fn of(column: &Column) -> ColumnRecord {
        let missing = (!column.missing.is_null()).then(|| {
            let mut text = String::new();
            format_value(&mut text, column.missing.as_ref(), &TextSettings::DEFAULT);
            text
        });
        ColumnRecord {
            id: column.id,
            name: column.name.clone(),
            data_type: column.data_type,
            domain: column.domain.and_then(DomainUse::of_value),
            element_domain: match column.domain {
                Some(DomainUse::Elements(id)) => Some(id),
                _ => None,
            },
            collation: column.collation.map(StoredCollation::from),
            resolved: None,
            not_null: column.not_null,
            default: column.default.clone(),
            identity: column.identity,
            missing,
            generated: column.generated.clone(),
        }
    }

    fn into_column(self) -> Result<Column> {
        let missing = match &self.missing {
            None => Value::Null,
            Some(text) => parse_value(text, self.data_type, &TextSettings::DEFAULT)?,
        };
        Ok(Column {
            id: self.id,
            name: self.name,
            data_type: self.data_type,
            domain: self
                .domain
                .map(DomainUse::Value)
                .or(self.element_domain.map(DomainUse::Elements)),
            collation: self.resolved,
            not_null: self.not_null,
            default: self.default,
            identity: self.identity,
            generated: self.generated,
            missing,
        })
    }
}

impl IndexRecord {
    fn of(index: &Index, table: &Table) -> IndexRecord {
        let column = |column: &KeyColumn| {
            Some(KeyColumnRecord {
                column: match index.expression(column.position) {
                    Some(_) => 0,
                    None => table.columns.get(column.position)?.id,
                },
                descending: column.descending,
                nulls_first: column.nulls_first,
                collation: column.collation.map(StoredCollation::from),
                resolved: column.collation,
            })
        };
        IndexRecord {
            id: index.id,
            name: index.name.clone(),
            columns: index.columns.iter().filter_map(column).collect(),
            unique: index.unique,
            method: index.method,
            is_constraint: index.is_constraint,
            grouped: index.access_method() == AccessMethod::HashPrefix,
            include: index
                .include
                .iter()
                .filter_map(|&position| Some(table.columns.get(position)?.id))
                .collect(),
            nulls_not_distinct: index.nulls_not_distinct,
            expressions: index.expressions.clone(),
            predicate: index.predicate.clone(),
            timing: index.timing,
            is_primary: index.is_primary,
            collation_version: index.collation_version.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_with_an_unknown_field_or_kind_is_refused() {
        let sequence = r#"{"sequence":{"id":3,"name":"s","data_type":"BigInt","start":1,"increment":1,"minimum":1,
            "maximum":9,"cycle":false,"owned_by":null,"epoch":0}}"#;
        let known = |text: &str| Record::decode(text.as_bytes()).map(|_| ());
        known(sequence).unwrap();
        let column = r#"{"table":{"id":1,"name":"t","columns":[{"id":1,"name":"a","data_type":"Integer","not_null":false,
            "default":null,"identity":null,"missing":null,"encrypted":true}],"primary_key":null,"indexes":[],"checks":[],
            "foreign_keys":[],"generation":0,"layouts":[{"number":0,"columns":[[1,"Integer"]]}],"next_column":2}}"#;
        for (text, unknown) in [
            (sequence.replace("}}", r#","unlogged":true}}"#), "unknown field `unlogged`"),
            (sequence.replace("sequence", "rule"), "unknown variant `rule`"),
            (sequence.replace("BigInt", "Point"), "unknown variant `Point`"),
            (column.to_owned(), "unknown field `encrypted`"),
        ] {
            let error = known(&text).unwrap_err();
            assert_eq!(error.state(), SqlState::FeatureNotSupported, "{error}");
            assert!(error.to_string().contains(unknown), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("newer")), "{error}");
        }
        let error = known(&sequence.replace(r#""name":"s","#, "")).unwrap_err();
        assert_eq!(error.state(), SqlState::DataCorrupted, "{error}");
        assert_eq!(known("{").unwrap_err().state(), SqlState::DataCorrupted);
    }

    #[test]
    fn a_hash_index_of_before_there_were_groups_is_an_ordered_one() {
        for (unique, grouped, method) in [
            (false, "", Method::Range),
            (true, "", Method::Hash),
            (false, r#","grouped":true"#, Method::Hash),
        ] {
            let text = format!(
                r#"{{"table":{{"id":1,"name":"t","columns":[{{"id":1,"name":"a","data_type":"Integer","not_null":false,
                "default":null,"identity":null,"missing":null}}],"primary_key":null,"indexes":[{{"id":2,"name":"i",
                "columns":[{{"column":1,"descending":false,"nulls_first":false}}],"unique":{unique},"method":"Hash",
                "is_constraint":false{grouped}}}],"checks":[],"foreign_keys":[],"generation":0,
                "layouts":[{{"number":0,"columns":[[1,"Integer"]]}}],"next_column":2}}}}"#
            );
            let Record::Table(record) = Record::decode(text.as_bytes()).unwrap() else {
                panic!("a table")
            };
            let table = record.into_table().unwrap();
            assert_eq!(table.indexes[0].method, method, "{text}");
            assert_eq!(table.schema, "public", "records of before there were schemas");
            let again = Record::Table(TableRecord::of(&table)).encode().unwrap();
            let Record::Table(again) = Record::decode(&again).unwrap() else { panic!("a table") };
            assert_eq!(again.into_table().unwrap().indexes, table.indexes);
        }
    }
}
