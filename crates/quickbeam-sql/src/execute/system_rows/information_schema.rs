//! `information_schema`.

use super::constraints::{Constraint, constraints};
use super::{NAME, SnapshotNames, SystemRow, SystemSource, view_columns};
use crate::bind::updatability;
use crate::catalog::describe::Described;
use crate::catalog::rights::MembershipUse;
use crate::catalog::system::{object_oid, type_named, type_oid, type_row};
use crate::catalog::{
    CatalogSnapshot, CheckOption, Column, ConstraintTiming, Domain, ForeignKeyAction, Sequence,
    TriggerEvent, TriggerTiming, View, is_temporary_schema,
};
use crate::catalog::{DomainUse, ObjectId};
use crate::types::{Collation, DataType, EncodedKind, Value};

fn number(number: usize) -> Value {
    Value::Integer(i32::try_from(number).unwrap_or(i32::MAX))
}

pub(super) fn yes_no(yes: bool) -> &'static str {
    if yes { "YES" } else { "NO" }
}

/// Sets the catalog, schema and name that columns with a prefix hold.
pub(super) fn qualified(
    row: &mut SystemRow<'_>,
    prefix: &str,
    schema: &str,
    last: &str,
    name: &str,
) {
    row.text(&format!("{prefix}_catalog"), NAME).text(&format!("{prefix}_schema"), schema);
    row.text(last, name);
}

/// Sets the collation of a column that does not have the default one.
fn set_collation(row: &mut SystemRow<'_>, collation: Option<Collation>) {
    if let Some(own) = collation.filter(|it| !it.is_default()) {
        let definition = own.definition();
        qualified(row, "collation", &definition.schema, "collation_name", &definition.name);
    }
}

fn rule(action: ForeignKeyAction) -> &'static str {
    match action {
        ForeignKeyAction::NoAction => "NO ACTION",
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::Cascade => "CASCADE",
        ForeignKeyAction::SetNull => "SET NULL",
        ForeignKeyAction::SetDefault => "SET DEFAULT",
    }
}

impl SystemSource<'_> {
    pub(super) fn information_schema(&mut self) {
        match self.table.name {
            "tables" | "views" | "columns" | "sequences" => self.relations(),
            "schemata" => {
                let role = self.session.role();
                for (schema, _) in self.snapshot.schema_oids() {
                    let id = self.snapshot.schema_id(&schema);
                    if !self.snapshot.owns(role, id) {
                        continue;
                    }
                    let owner = self.owner_name(id);
                    self.add(|row| {
                        row.text("catalog_name", NAME).text("schema_name", schema);
                        row.text("schema_owner", owner);
                    });
                }
            }
            "information_schema_catalog_name" => self.add(|row| {
                row.text("catalog_name", NAME);
            }),
            "enabled_roles" => {
                let snapshot = self.snapshot;
                for role in self.enabled_roles() {
                    self.add(|row| {
                        row.text("role_name", snapshot.role_name(role));
                    });
                }
            }
            "applicable_roles" => {
                let snapshot = self.snapshot;
                for member in snapshot.roles_of(self.session.role(), MembershipUse::Inherited) {
                    let known = snapshot.role(member).map_or(&[][..], |it| &it.member_of);
                    for membership in known {
                        self.add(|row| {
                            row.text("grantee", snapshot.role_name(member));
                            row.text("role_name", snapshot.role_name(membership.role));
                            row.text("is_grantable", yes_no(membership.admin));
                        });
                    }
                }
            }
            "table_privileges" | "role_table_grants" | "column_privileges"
            | "role_column_grants" => self.privilege_rows(),
            "character_sets" => self.add(|row| {
                row.text("character_set_name", "UTF8").text("character_repertoire", "UCS");
                row.text("form_of_use", "UTF8").text("default_collate_catalog", NAME);
            }),
            "table_constraints"
            | "key_column_usage"
            | "referential_constraints"
            | "constraint_column_usage"
            | "constraint_table_usage"
            | "check_constraints" => {
                for constraint in constraints(self.snapshot) {
                    if !self.is_shown(Described::Table(constraint.table), None) {
                        continue;
                    }
                    self.constraint(&constraint);
                }
                match self.table.name {
                    "check_constraints" => {
                        self.not_null_rows();
                        self.domain_rows();
                    }
                    "table_constraints" => self.not_null_rows(),
                    _ => {}
                }
            }
            "domains" | "domain_constraints" => self.domain_rows(),
            "user_defined_types" | "attributes" => self.composite_rows(),
            "routines" | "parameters" => self.routine_rows(),
            "triggers" => self.trigger_rows(),
            _ => self.usage_rows(),
        }
    }

    fn relations(&mut self) {
        let (snapshot, role) = (self.snapshot, self.session.role());
        for relation in snapshot.described() {
            let is_materialized =
                matches!(relation, Described::Table(table) if table.materialized.is_some());
            if is_materialized || !self.is_shown(relation, None) {
                continue;
            }
            match (self.table.name, relation) {
                ("tables", Described::Table(_) | Described::View(_)) => {
                    let is_table = matches!(relation, Described::Table(_));
                    let is_insertable = match relation {
                        Described::View(view) => allows(snapshot, view, INSERTS),
                        _ => is_table,
                    };
                    self.add(|row| {
                        qualified(row, "table", relation.schema(), "table_name", relation.name());
                        let is_temporary = is_table && is_temporary_schema(relation.schema());
                        let kind = match is_temporary {
                            true => "LOCAL TEMPORARY",
                            false if is_table => "BASE TABLE",
                            false => "VIEW",
                        };
                        row.text("table_type", kind);
                        if is_temporary {
                            row.text("commit_action", "PRESERVE");
                        }
                        row.text("is_insertable_into", yes_no(is_insertable));
                        row.text("is_typed", "NO");
                    });
                }
                ("views", Described::View(view)) => self.add(|row| {
                    qualified(row, "table", &view.schema, "table_name", &view.name);
                    if snapshot.owns(role, view.id) {
                        row.text("view_definition", &view.query);
                    }
                    let option = match view.options.check_option() {
                        None => "NONE",
                        Some(CheckOption::Local) => "LOCAL",
                        Some(CheckOption::Cascaded) => "CASCADED",
                    };
                    row.text("check_option", option);
                    row.text("is_updatable", yes_no(allows(snapshot, view, UPDATES)));
                    row.text("is_insertable_into", yes_no(allows(snapshot, view, INSERTS)));
                    let triggers = snapshot.triggers_of(view.id);
                    for (flag, event) in [
                        ("is_trigger_updatable", TriggerEvent::Update),
                        ("is_trigger_deletable", TriggerEvent::Delete),
                        ("is_trigger_insertable_into", TriggerEvent::Insert),
                    ] {
                        let mut instead =
                            triggers.iter().filter(|it| it.timing == TriggerTiming::InsteadOf);
                        row.text(flag, yes_no(instead.any(|it| it.events.contains(&event))));
                    }
                }),
                ("columns", Described::Table(table)) => {
                    for column in &table.columns {
                        if !self.is_shown(relation, Some(column.id)) {
                            continue;
                        }
                        let domain = column.domain.and_then(DomainUse::of_value);
                        let domain = domain.and_then(|id| snapshot.domain(id));
                        self.add(|row| {
                            table_column(row, (&table.schema, &table.name), column);
                            user_type(row, ("udt", "udt_name"), snapshot, column.data_type);
                            set_collation(row, column.collation);
                            identity_options(row, snapshot, column);
                            if let Some(DomainUse::Elements(id)) = column.domain
                                && let Some(of) = snapshot.domain(id)
                            {
                                let name = format!("_{}", of.name);
                                qualified(row, "udt", &of.schema, "udt_name", &name);
                            }
                            if let Some(domain) = domain {
                                let (schema, name) = (&domain.schema, &domain.name);
                                qualified(row, "domain", schema, "domain_name", name);
                                over_domain(row, snapshot, domain);
                            }
                        });
                    }
                }
                ("columns", Described::View(view)) => {
                    let columns = view_columns(snapshot, view);
                    let (_, updatable) = updatability(&SnapshotNames(snapshot), view);
                    for (at, column) in columns.iter().enumerate() {
                        let default = view.default(at);
                        self.add(|row| {
                            let view = (&*view.schema, &*view.name);
                            column_row(row, view, (at + 1, &column.name), column.data_type);
                            set_collation(row, column.collation.for_table().unwrap_or_default());
                            if let Some(default) = default {
                                row.text("column_default", default);
                            }
                            let is_updatable = updatable.get(at) == Some(&true);
                            row.text("is_updatable", yes_no(is_updatable));
                        });
                    }
                }
                ("sequences", Described::Sequence(sequence))
                    if !is_of_identity(snapshot, sequence.id) =>
                {
                    self.add(|row| sequence_row(row, sequence));
                }
                _ => {}
            }
        }
    }

    /// The checks that PostgreSQL shows for NOT NULL.
    fn not_null_rows(&mut self) {
        let snapshot = self.snapshot;
        for relation in snapshot.described() {
            let Described::Table(table) = relation else { continue };
            if table.materialized.is_some() || !self.is_shown(relation, None) {
                continue;
            }
            let (schema, oid) = (snapshot.schema_oid(&table.schema), object_oid(table.id));
            for column in table.columns.iter().filter(|it| it.not_null) {
                let name = format!("{schema}_{oid}_{}_not_null", column.id);
                self.add(|row| {
                    qualified(row, "constraint", &table.schema, "constraint_name", &name);
                    qualified(row, "table", &table.schema, "table_name", &table.name);
                    row.text("check_clause", format!("{} IS NOT NULL", column.name));
                    row.text("constraint_type", "CHECK").text("enforced", "YES");
                    row.text("is_deferrable", "NO").text("initially_deferred", "NO");
                });
            }
        }
    }

    fn constraint(&mut self, constraint: &Constraint<'_>) {
        if constraint.kind == "c" && self.table.name == "constraint_table_usage" {
            return;
        }
        let common = |row: &mut SystemRow<'_>| {
            let table = constraint.table;
            qualified(row, "constraint", &table.schema, "constraint_name", constraint.name);
            qualified(row, "table", &table.schema, "table_name", &table.name);
        };
        match self.table.name {
            "table_constraints" => self.add(|row| {
                common(row);
                row.text(
                    "constraint_type",
                    match constraint.kind {
                        "p" => "PRIMARY KEY",
                        "u" => "UNIQUE",
                        "f" => "FOREIGN KEY",
                        _ => "CHECK",
                    },
                );
                let timing = constraint.timing;
                row.text("is_deferrable", yes_no(timing.is_deferrable()));
                let is_deferred = timing == ConstraintTiming::Deferred;
                row.text("initially_deferred", yes_no(is_deferred));
                row.text("enforced", "YES");
                if constraint.kind == "u" {
                    row.text("nulls_distinct", "YES");
                }
            }),
            "check_constraints" => {
                if let Some(check) = constraint.check {
                    self.add(|row| {
                        common(row);
                        row.text("check_clause", format!("(({check}))"));
                    });
                }
            }
            "key_column_usage" if constraint.kind != "c" => {
                for (at, column) in constraint.columns.iter().enumerate() {
                    self.add(|row| {
                        common(row);
                        row.text("column_name", &column.name)
                            .set("ordinal_position", number(at + 1));
                        if constraint.parent.is_some() {
                            row.set("position_in_unique_constraint", number(at + 1));
                        }
                    });
                }
            }
            "referential_constraints" => {
                if let Some(parent) = &constraint.parent {
                    self.add(|row| {
                        common(row);
                        if let Some(key) = parent.key {
                            let name = "unique_constraint_name";
                            let schema = &parent.table.schema;
                            qualified(row, "unique_constraint", schema, name, key);
                        }
                        row.text("match_option", "NONE")
                            .text("update_rule", rule(parent.on_update));
                        row.text("delete_rule", rule(parent.on_delete));
                    });
                }
            }
            "constraint_column_usage" | "constraint_table_usage" => {
                let (table, columns) = match &constraint.parent {
                    Some(parent) => (parent.table, &parent.columns),
                    None => (constraint.table, &constraint.columns),
                };
                let of_table = self.table.name == "constraint_table_usage";
                let count = if of_table { 1 } else { columns.len() };
                for column in columns.iter().take(count) {
                    self.add(|row| {
                        common(row);
                        row.text("table_schema", &table.schema).text("table_name", &table.name);
                        row.text("column_name", &column.name);
                    });
                }
            }
            _ => {}
        }
    }
}

/// Names the type of a column or attribute that a user has made.
pub(super) fn user_type(
    row: &mut SystemRow<'_>,
    (prefix, last): (&str, &str),
    snapshot: &CatalogSnapshot,
    data_type: DataType,
) {
    let enums = snapshot.enums().find(|it| snapshot.is_enum(data_type, it.id));
    let of_rows = data_type.row_object().map(ObjectId);
    let named = enums.map(|it| (&it.schema, &it.name)).or_else(|| {
        let id = of_rows?;
        let composite = snapshot.composites.get(&id).map(|it| (&it.schema, &it.name));
        composite.or_else(|| snapshot.table(id).map(|it| (&it.schema, &it.name)))
    });
    let Some((schema, name)) = named else { return };
    let is_array = data_type.element().is_some();
    let name = if is_array { format!("_{name}") } else { name.to_string() };
    qualified(row, prefix, schema, last, &name);
    if !is_array {
        row.text("data_type", "USER-DEFINED");
    }
}

/// Names a type that may be of a user, or a domain.
pub(super) fn routine_type(
    row: &mut SystemRow<'_>,
    (prefix, last): (&str, &str),
    snapshot: &CatalogSnapshot,
    (data_type, domain): (DataType, Option<DomainUse>),
) {
    let is_array = data_type.element().is_some();
    if let Some(used) = domain
        && let Some(domain) = snapshot.domain(used.id())
    {
        let (name, shown) = match used {
            DomainUse::Value(_) => (domain.name.to_string(), "USER-DEFINED"),
            DomainUse::Elements(_) => (format!("_{}", domain.name), "ARRAY"),
        };
        qualified(row, prefix, &domain.schema, last, &name);
        row.text("data_type", shown);
        return;
    }
    let oid = type_oid(data_type);
    let plain = || type_named(oid, None).unwrap_or_default();
    row.text("data_type", if is_array { "ARRAY".into() } else { plain() });
    qualified(row, prefix, "pg_catalog", last, type_row(oid).map_or("", |it| it.name));
    user_type(row, (prefix, last), snapshot, data_type);
}

/// Names the domain that a domain is over as its type.
pub(super) fn over_domain(row: &mut SystemRow<'_>, snapshot: &CatalogSnapshot, domain: &Domain) {
    if domain.not_null {
        row.text("is_nullable", "NO");
    }
    if let Some(parent) = domain.parent.and_then(|id| snapshot.domain(id)) {
        row.text("data_type", "USER-DEFINED");
        qualified(row, "udt", &parent.schema, "udt_name", &parent.name);
    }
}

fn sequence_row(row: &mut SystemRow<'_>, sequence: &Sequence) {
    qualified(row, "sequence", &sequence.schema, "sequence_name", &sequence.name);
    row.text("data_type", sequence.data_type.to_string());
    let bits = match sequence.data_type {
        DataType::SmallInt => 16,
        DataType::Integer => 32,
        _ => 64,
    };
    row.set("numeric_precision", bits).set("numeric_precision_radix", 2);
    row.set("numeric_scale", 0);
    row.text("start_value", sequence.start.to_string());
    row.text("minimum_value", sequence.minimum.to_string());
    row.text("maximum_value", sequence.maximum.to_string());
    row.text("increment", sequence.increment.to_string());
    row.text("cycle_option", yes_no(sequence.cycle));
}

/// Returns whether a sequence gives the values of an identity column.
fn is_of_identity(snapshot: &CatalogSnapshot, id: ObjectId) -> bool {
    let is_own = |column: &Column| column.identity.is_some_and(|it| it.sequence == id);
    let mut relations = snapshot.described().into_iter();
    relations.any(|it| matches!(it, Described::Table(table) if table.columns.iter().any(is_own)))
}

/// Sets the options of the sequence of an identity column.
fn identity_options(row: &mut SystemRow<'_>, snapshot: &CatalogSnapshot, column: &Column) {
    let identity = column.identity.map(|it| it.sequence);
    let Some(sequence) = identity.and_then(|id| snapshot.sequence(id)) else { return };
    row.text("identity_start", sequence.start.to_string());
    row.text("identity_increment", sequence.increment.to_string());
    row.text("identity_maximum", sequence.maximum.to_string());
    row.text("identity_minimum", sequence.minimum.to_string());
    row.text("identity_cycle", yes_no(sequence.cycle));
}

/// INSERT among the changes that a view allows.
const INSERTS: i32 = 1 << 3;

/// UPDATE and DELETE among the changes that a view allows.
const UPDATES: i32 = 1 << 2 | 1 << 4;

/// Returns whether a view allows all of these changes.
fn allows(snapshot: &CatalogSnapshot, view: &View, changes: i32) -> bool {
    updatability(&SnapshotNames(snapshot), view).0 & changes == changes
}

/// Returns the name of a type without its length or precision.
fn bare_name(data_type: DataType) -> String {
    let name = data_type.unconstrained().to_string();
    let bare = name.split('(').next().unwrap_or_default();
    if bare == "\"bit\"" { "bit".to_owned() } else { bare.to_owned() }
}

pub(super) fn column_row(
    row: &mut SystemRow<'_>,
    (schema, relation): (&str, &str),
    (position, name): (usize, &str),
    data_type: DataType,
) {
    qualified(row, "table", schema, "table_name", relation);
    row.text("column_name", name).set("ordinal_position", number(position));
    row.text("is_nullable", "YES").text("is_self_referencing", "NO").text("is_identity", "NO");
    row.text("identity_cycle", "NO").text("is_generated", "NEVER").text("is_updatable", "YES");
    let is_array = matches!(data_type, DataType::Array(_));
    if is_array {
        row.text("data_type", "ARRAY");
    } else if data_type == DataType::BPCHAR {
        row.text("data_type", "character");
    } else {
        row.text("data_type", bare_name(data_type));
    }
    row.text("udt_catalog", NAME).text("udt_schema", "pg_catalog");
    row.text("dtd_identifier", position.to_string());
    if let Some(known) = type_row(type_oid(data_type)) {
        row.text("udt_name", known.name);
    }
    let octets = 1 << 30;
    match data_type {
        DataType::Varchar(None) | DataType::Text | DataType::BPCHAR => {
            row.set("character_octet_length", octets);
        }
        DataType::Varchar(Some(length)) | DataType::Char(length) => {
            let length = i32::try_from(length).unwrap_or(i32::MAX);
            row.set("character_maximum_length", length);
            row.set("character_octet_length", length.saturating_mul(4).min(octets));
        }
        DataType::Numeric(limits) => {
            row.set("numeric_precision_radix", 10);
            if let Some((precision, scale)) = limits {
                row.set("numeric_precision", i32::from(precision));
                row.set("numeric_scale", i32::from(scale));
            }
        }
        DataType::WideNumeric(limits) => {
            row.set("numeric_precision_radix", 10);
            row.set("numeric_precision", i32::from(limits.precision()));
            // PostgreSQL 15 shows a negative scale without its sign.
            row.set("numeric_scale", i32::from(limits.scale()) & 0x7ff);
        }
        DataType::Time | DataType::Timestamp | DataType::TimestampTz | DataType::Interval => {
            row.set("datetime_precision", 6);
        }
        DataType::Precise(precise) => {
            row.set("datetime_precision", i32::from(precise.digits().unwrap_or(6)));
            if let Some(fields) = precise.interval_words() {
                row.set("interval_type", fields);
            }
        }
        DataType::Encoded(encoded) if encoded.kind() == EncodedKind::TimeTz => {
            let digits = i32::try_from(encoded.length()).map_or(6, |length| length - 1);
            row.set("datetime_precision", if digits < 0 { 6 } else { digits });
        }
        DataType::Encoded(encoded)
            if matches!(encoded.kind(), EncodedKind::Bit | EncodedKind::Varbit) =>
        {
            if let Ok(length @ 1..) = i32::try_from(encoded.length()) {
                row.set("character_maximum_length", length);
            }
        }
        DataType::Date => {
            row.set("datetime_precision", 0);
        }
        _ => {
            let bits = match data_type {
                DataType::SmallInt => 16,
                DataType::Integer => 32,
                DataType::BigInt => 64,
                DataType::Real => 24,
                DataType::Double => 53,
                _ => return,
            };
            row.set("numeric_precision", bits).set("numeric_precision_radix", 2);
            if data_type.is_integer() {
                row.set("numeric_scale", 0);
            }
        }
    }
}

fn table_column(row: &mut SystemRow<'_>, table: (&str, &str), column: &Column) {
    column_row(row, table, (column.id.into(), &column.name), column.data_type);
    row.text("is_nullable", yes_no(!column.not_null));
    if let (Some(_), Some(expression)) = (&column.generated, &column.default) {
        row.text("is_generated", "ALWAYS").text("generation_expression", expression);
    } else if let Some(default) = &column.default {
        row.text("column_default", default);
    }
    if let Some(identity) = column.identity {
        row.text("is_identity", "YES");
        row.text("identity_generation", if identity.always { "ALWAYS" } else { "BY DEFAULT" });
    }
}
