//! Catalogs of tables, views, sequences and their columns.

use super::{SystemRow, SystemSource, view_columns};
use crate::catalog::Method;
use crate::catalog::collation_oid;
use crate::catalog::describe::{
    Described, Parentheses, index_definition, key_columns, written_condition,
};
use crate::catalog::system::{
    CATALOG_SCHEMA, CLASS_OF_CLASS, INFORMATION_SCHEMA, OWNER, Procedure, SystemTable, default_oid,
    domain_oid, object_oid, operator_class, row_type_oid, system_tables, type_modifier, type_oid,
    type_row, type_row_named,
};
use crate::catalog::{Column, Sequence, Table, is_temporary_schema};
use crate::types::{DataType, Value};

/// The OID of the collation "C".
const C_COLLATION: i64 = 950;
/// The access methods in `pg_am`.
const HEAP: i64 = 2;
const BTREE: i64 = 403;
const HASH: i64 = 405;
const GIN: i64 = 2742;

/// The language of built-in functions in `pg_language`.
const INTERNAL: i64 = 12;

fn method(method: Method) -> i64 {
    match method {
        Method::Range => BTREE,
        Method::Hash => HASH,
        Method::Inverted(_) => GIN,
    }
}

pub(super) fn small(number: usize) -> Value {
    Value::SmallInt(i16::try_from(number).unwrap_or(i16::MAX))
}

/// Whether a table has triggers, among them those that PostgreSQL makes for foreign keys.
fn has_triggers(table: &Table) -> bool {
    !table.foreign_keys.is_empty() || !table.referenced_by.is_empty() || !table.triggers.is_empty()
}

impl SystemSource<'_> {
    /// Adds the rows of the catalogs that list relations; others are empty.
    pub(super) fn relation_rows(&mut self) {
        let snapshot = self.snapshot;
        match self.table.name {
            "pg_class" => {
                system_tables().for_each(|table| self.system_class(table));
                snapshot.described().into_iter().for_each(|relation| self.pg_class(relation));
                self.composite_class();
            }
            "pg_attribute" => {
                self.pg_attribute();
                self.composite_attributes();
            }
            "pg_attrdef" => {
                for table in snapshot.tables() {
                    for column in &table.columns {
                        let Some(default) = &column.default else { continue };
                        self.add(|row| {
                            row.set("oid", default_oid(table.id, column.id));
                            row.set("adrelid", object_oid(table.id));
                            row.set("adnum", small(column.id.into())).text("adbin", default);
                        });
                    }
                }
                for view in snapshot.views() {
                    for (position, default) in &view.defaults {
                        let number = position + 1;
                        self.add(|row| {
                            row.set("oid", default_oid(view.id, number));
                            row.set("adrelid", object_oid(view.id));
                            row.set("adnum", small(number.into())).text("adbin", default);
                        });
                    }
                }
            }
            name @ ("pg_description" | "pg_shdescription") => {
                let is_shared = name == "pg_shdescription";
                let all = snapshot.all_comments().into_iter();
                for comment in all.filter(|comment| comment.is_shared == is_shared) {
                    self.add(|row| {
                        row.set("objoid", comment.oid).set("classoid", comment.class);
                        row.set("objsubid", i32::from(comment.number));
                        row.text("description", comment.text);
                    });
                }
            }
            "pg_tables" => {
                for table in snapshot.tables().filter(|it| it.materialized.is_none()) {
                    let owner = self.owner_name(table.id);
                    self.add(|row| {
                        row.text("schemaname", &table.schema).text("tablename", &table.name);
                        row.text("tableowner", owner);
                        let has_index = table.primary_key.is_some() || !table.indexes.is_empty();
                        row.set("hasindexes", has_index);
                        row.set("hastriggers", has_triggers(table));
                    });
                }
            }
            "pg_matviews" => {
                for table in snapshot.tables() {
                    let Some(materialized) = &table.materialized else { continue };
                    let owner = self.owner_name(table.id);
                    self.add(|row| {
                        row.text("schemaname", &table.schema).text("matviewname", &table.name);
                        row.text("matviewowner", owner);
                        row.set("hasindexes", !table.indexes.is_empty());
                        row.set("ispopulated", materialized.is_populated);
                        row.text("definition", format!(" {};", materialized.query));
                    });
                }
            }
            "pg_views" => {
                for relation in snapshot.described() {
                    let Described::View(view) = relation else { continue };
                    let owner = self.owner_name(view.id);
                    self.add(|row| {
                        row.text("schemaname", &view.schema).text("viewname", &view.name);
                        row.text("viewowner", owner).text("definition", &view.query);
                    });
                }
            }
            "pg_sequence" | "pg_sequences" => {
                for relation in snapshot.described() {
                    if let Described::Sequence(sequence) = relation {
                        self.pg_sequence(sequence);
                    }
                }
            }
            "pg_depend" => self.sequence_dependencies(),
            "pg_proc" => self.pg_proc_rows(),
            "pg_type" => {
                self.pg_type();
                self.enum_types();
                self.composite_types();
            }
            "pg_enum" => self.pg_enum(),
            _ => {}
        }
    }

    fn pg_class(&mut self, relation: Described<'_>) {
        let schema = self.snapshot.schema_oid(relation.schema());
        let (id, has_rights) = match relation {
            Described::Table(table) => (table.id, true),
            Described::View(view) => (view.id, true),
            Described::Sequence(sequence) => (sequence.id, true),
            Described::Index(table, _) | Described::PrimaryKey(table) => (table.id, false),
        };
        let owner = self.owner_oid(id);
        let acl = if has_rights { self.acl(id) } else { None };
        let has_view_triggers = !self.snapshot.triggers_of(id).is_empty();
        self.add(|row| {
            row.set("oid", relation.oid()).text("relname", relation.name());
            row.set("relnamespace", schema).set("relowner", owner);
            if let Some(acl) = &acl {
                row.text("relacl", acl);
            }
            row.set("relfilenode", relation.oid()).set("reltuples", Value::Real(-1.0));
            let is_temporary = is_temporary_schema(relation.schema());
            row.text("relpersistence", if is_temporary { "t" } else { "p" });
            row.text("relreplident", "n").set("relispopulated", true);
            match relation {
                Described::Table(table) => {
                    row.text("relkind", "r").set("relam", HEAP).text("relreplident", "d");
                    row.set("reltype", row_type_oid(table.id));
                    row.set("relnatts", small(table.columns.len()));
                    row.set("relchecks", small(table.checks.len()));
                    let has_index = table.primary_key.is_some() || !table.indexes.is_empty();
                    row.set("relhasindex", has_index);
                    row.set("relhastriggers", has_triggers(table));
                    if let Some(materialized) = &table.materialized {
                        row.text("relkind", "m").set("relhasrules", true);
                        row.set("relispopulated", materialized.is_populated);
                    }
                }
                Described::View(view) => {
                    row.text("relkind", "v").set("reltype", row_type_oid(view.id));
                    row.set("relnatts", small(view.columns.len())).set("relhasrules", true);
                    row.set("relhastriggers", has_view_triggers);
                    if !view.options.is_empty() {
                        let options: Vec<&str> =
                            view.options.texts().map(|text| text.as_str()).collect();
                        row.text("reloptions", format!("{{{}}}", options.join(",")));
                    }
                    row.set("relfilenode", 0_i64);
                }
                Described::Sequence(_) => {
                    row.text("relkind", "S").set("relnatts", small(3));
                }
                Described::Index(_, index) => {
                    row.text("relkind", "i").set("relam", method(index.method));
                    row.set("relnatts", small(index.columns.len() + index.include.len()));
                }
                Described::PrimaryKey(table) => {
                    let key = table.primary_key.as_ref();
                    row.text("relkind", "i");
                    row.set("relam", key.map_or(BTREE, |key| method(key.method)));
                    row.set("relnatts", small(key.map_or(0, |key| key.columns.len())));
                }
            }
        });
    }

    fn system_class(&mut self, table: &SystemTable) {
        let is_catalog = table.schema == "pg_catalog";
        self.add(|row| {
            row.set("oid", table.oid).text("relname", table.name).text("relkind", table.kind);
            row.set("relnamespace", if is_catalog { CATALOG_SCHEMA } else { INFORMATION_SCHEMA });
            row.set("relowner", OWNER).set("relnatts", small(table.columns.len()));
            row.text("relpersistence", "p").text("relreplident", "n").set("relispopulated", true);
            row.set("reltuples", Value::Real(-1.0));
        });
    }

    fn pg_attribute(&mut self) {
        let snapshot = self.snapshot;
        for table in system_tables() {
            for (at, (name, type_name, data_type)) in table.columns.iter().enumerate() {
                self.add(|row| {
                    attribute(row, table.oid, at + 1, name, *data_type);
                    if let Some(known) = type_row_named(type_name) {
                        row.set("atttypid", known.oid).set("attlen", known.length);
                        row.set("attbyval", known.by_value).set("attcollation", known.collation);
                        row.text("attalign", known.align).text("attstorage", known.storage);
                    }
                });
            }
        }
        for relation in snapshot.described() {
            match relation {
                Described::Table(table) => {
                    for column in &table.columns {
                        let acl = self.column_acl(table.id, column.id);
                        self.add(|row| {
                            table_column(row, table, column);
                            if let Some(acl) = &acl {
                                row.text("attacl", acl);
                            }
                        });
                    }
                }
                Described::View(view) => {
                    let columns = view_columns(snapshot, view);
                    for (at, column) in columns.iter().enumerate() {
                        self.add(|row| {
                            let name = &column.name;
                            attribute(row, relation.oid(), at + 1, name, column.data_type);
                            if let Ok(Some(own)) = column.collation.for_table() {
                                row.set("attcollation", collation_oid(own));
                            }
                            row.set("atthasdef", view.default(at).is_some());
                        });
                    }
                }
                Described::Sequence(_) => {
                    let columns = [
                        ("last_value", DataType::BigInt),
                        ("log_cnt", DataType::BigInt),
                        ("is_called", DataType::Boolean),
                    ];
                    for (at, (name, data_type)) in columns.into_iter().enumerate() {
                        self.add(|row| {
                            attribute(row, relation.oid(), at + 1, name, data_type);
                            row.set("attnotnull", true);
                        });
                    }
                }
                Described::Index(table, _) | Described::PrimaryKey(table) => {
                    for (at, key) in key_columns(relation).iter().enumerate() {
                        let expression = match relation {
                            Described::Index(_, index) => index.expression(key.position),
                            _ => None,
                        };
                        let column = table.columns.get(key.position);
                        let column = column.map(|column| (&column.name, column.data_type));
                        let column = expression.map(|it| (&it.name, it.data_type)).or(column);
                        let Some((name, data_type)) = column else { continue };
                        self.add(|row| {
                            attribute(row, relation.oid(), at + 1, name, data_type);
                        });
                    }
                }
            }
        }
    }

    fn pg_sequence(&mut self, sequence: &Sequence) {
        let owner = self.owner_name(sequence.id);
        self.add(|row| {
            let sequence_type = sequence.data_type;
            row.set("seqrelid", object_oid(sequence.id)).set("seqtypid", type_oid(sequence_type));
            row.set("seqstart", sequence.start).set("seqincrement", sequence.increment);
            row.set("seqmin", sequence.minimum).set("seqmax", sequence.maximum);
            row.set("seqcache", 1_i64).set("seqcycle", sequence.cycle);
            row.text("schemaname", &sequence.schema).text("sequencename", &sequence.name);
            row.text("sequenceowner", owner).set("data_type", type_oid(sequence_type));
            row.set("start_value", sequence.start).set("increment_by", sequence.increment);
            row.set("min_value", sequence.minimum).set("max_value", sequence.maximum);
            row.set("cache_size", 1_i64).set("cycle", sequence.cycle);
        });
    }

    /// Adds the columns that own sequences to `pg_depend`, which lists no other dependencies.
    fn sequence_dependencies(&mut self) {
        let snapshot = self.snapshot;
        for sequence in snapshot.sequences() {
            let Some((table, column)) = sequence.owned_by else { continue };
            let is_identity = snapshot.identity_of(sequence).is_some();
            self.add(|row| {
                row.set("classid", CLASS_OF_CLASS).set("objid", object_oid(sequence.id));
                row.set("refclassid", CLASS_OF_CLASS).set("refobjid", object_oid(table));
                row.set("objsubid", 0_i32).set("refobjsubid", i32::from(column));
                row.text("deptype", if is_identity { "i" } else { "a" });
            });
        }
    }

    pub(super) fn pg_index(&mut self) {
        for relation in self.snapshot.described() {
            let (table, unique, is_primary) = match relation {
                Described::Index(table, index) => (table, index.is_unique(), index.is_primary),
                Described::PrimaryKey(table) => (table, true, true),
                _ => continue,
            };
            let keys = key_columns(relation);
            let column = |position: usize| table.columns.get(position);
            let list = |number: &dyn Fn(&crate::catalog::KeyColumn) -> i64| {
                let numbers: Vec<String> = keys.iter().map(|key| number(key).to_string()).collect();
                numbers.join(" ")
            };
            let (include, nulls_not_distinct) = match relation {
                Described::Index(_, index) => (&index.include[..], index.nulls_not_distinct),
                _ => (&[][..], false),
            };
            let all = keys.iter().map(|key| key.position).chain(include.iter().copied());
            let numbers: Vec<String> =
                all.map(|position| column(position).map_or(0, |it| it.id).to_string()).collect();
            let numbers = numbers.join(" ");
            let options =
                list(&|key| i64::from(key.descending) | (i64::from(key.nulls_first) << 1));
            let key_type = |position: usize| match relation {
                Described::Index(_, index) => index.key_type(table, position),
                _ => column(position).map(|it| it.data_type),
            };
            let collations = list(&|key| {
                if let Described::Index(table, index) = relation
                    && index.other_collation(table, key) == Some(None)
                {
                    return C_COLLATION;
                }
                if let Some(own) = key.collation {
                    return collation_oid(own);
                }
                if let Some(own) = column(key.position).and_then(|it| it.collation) {
                    return collation_oid(own);
                }
                let row = key_type(key.position).and_then(|it| type_row(type_oid(it)));
                row.map_or(0, |row| row.collation)
            });
            let access = match relation {
                Described::Index(_, index) => method(index.method),
                _ => table.primary_key.as_ref().map_or(BTREE, |key| method(key.method)),
            };
            let inverted = match relation {
                Described::Index(_, index) => index.inverted(),
                _ => None,
            };
            let classes = inverted.map(|classes| {
                let oids: Vec<String> = classes.iter().map(|it| it.oid().to_string()).collect();
                oids.join(" ")
            });
            let classes = classes.unwrap_or_else(|| {
                list(&|key| {
                    let known = key_type(key.position).map(type_oid);
                    known.map_or(0, |known| operator_class(access, known))
                })
            });
            self.add(|row| {
                row.text("indclass", &classes);
                row.set("indexrelid", relation.oid()).set("indrelid", object_oid(table.id));
                row.set("indnatts", small(keys.len() + include.len()));
                row.set("indnkeyatts", small(keys.len()));
                row.set("indnullsnotdistinct", nulls_not_distinct);
                row.set("indisunique", unique).set("indisprimary", is_primary);
                let is_deferrable = match relation {
                    Described::Index(_, index) => index.timing.is_deferrable(),
                    _ => false,
                };
                row.set("indimmediate", !is_deferrable);
                for flag in ["indisvalid", "indisready", "indislive"] {
                    row.set(flag, true);
                }
                if let Described::Index(_, index) = relation {
                    let texts: Vec<&str> =
                        index.expressions.iter().map(|it| &it.text[..]).collect();
                    if !texts.is_empty() {
                        row.text("indexprs", texts.join(", "));
                    }
                    if let Some(predicate) = &index.predicate {
                        row.text("indpred", written_condition(&predicate.text, Parentheses::All));
                    }
                }
                row.text("indkey", &numbers).text("indoption", &options);
                row.text("indcollation", &collations);
                row.text("schemaname", &table.schema).text("tablename", &table.name);
                row.text("indexname", relation.name());
                if let Some(definition) = index_definition(relation, 0, Parentheses::All) {
                    row.text("indexdef", definition);
                }
            });
        }
    }
}

pub(super) fn pg_proc(row: &mut SystemRow<'_>, known: &Procedure) {
    let arguments: Vec<String> = known.arguments.iter().map(u32::to_string).collect();
    row.set("oid", i64::from(known.oid)).text("proname", known.name).text("prosrc", known.name);
    row.set("pronamespace", CATALOG_SCHEMA).set("proowner", OWNER).set("prolang", INTERNAL);
    row.set("procost", Value::Real(1.0)).text("prokind", known.kind).text("proparallel", "s");
    row.set("prorows", Value::Real(if known.returns_set { 1000.0 } else { 0.0 }));
    row.set("provariadic", i64::from(known.variadic)).set("proisstrict", known.is_strict);
    row.set("proretset", known.returns_set).text("provolatile", known.volatility);
    row.set("pronargs", small(known.arguments.len()));
    row.set("prorettype", i64::from(known.result)).text("proargtypes", arguments.join(" "));
}

pub(super) fn attribute(
    row: &mut SystemRow<'_>,
    relation: i64,
    number: usize,
    name: &str,
    data_type: DataType,
) {
    let oid = type_oid(data_type);
    row.set("attrelid", relation).text("attname", name).set("atttypid", oid);
    row.set("attstattarget", -1_i32).set("attnum", small(number)).set("attcacheoff", -1_i32);
    row.set("atttypmod", type_modifier(data_type)).text("attcompression", "");
    row.text("attidentity", "").text("attgenerated", "").set("attislocal", true);
    if data_type.enumerated().is_some() && data_type.element().is_none() {
        row.set("attlen", small(4)).set("attbyval", true);
        row.text("attalign", "i").text("attstorage", "p");
    }
    if let Some(known) = type_row(oid) {
        row.set("attlen", known.length).set("attbyval", known.by_value);
        row.text("attalign", known.align).text("attstorage", known.storage);
        row.set("attcollation", known.collation);
    }
}

fn table_column(row: &mut SystemRow<'_>, table: &Table, column: &Column) {
    attribute(row, object_oid(table.id), column.id.into(), &column.name, column.data_type);
    row.set("attnotnull", column.not_null).set("atthasdef", column.default.is_some());
    if let Some(domain) = column.domain {
        row.set("atttypid", domain_oid(domain)).set("atttypmod", -1_i32);
    }
    if let Some(own) = column.collation {
        row.set("attcollation", collation_oid(own));
    }
    if column.generated.is_some() {
        row.text("attgenerated", "s");
    }
    if let Some(identity) = column.identity {
        row.text("attidentity", if identity.always { "a" } else { "d" });
    }
}
