//! Views of `information_schema` that repeat rows of others, and those of the rights on routines,
//! types, domains and collations.

use super::information_schema::{qualified, yes_no};
use super::{SystemRow, SystemSource};
use crate::catalog::describe::Described;
use crate::catalog::system::{SystemTable, object_oid, system_table, type_named, type_row_named};
use crate::catalog::{AclKind, ObjectAccess, ObjectId, TriggerEvent};
use crate::types::Value;

/// A view whose rows have types: the kind of their objects, the beginning of the columns that name
/// the object and the type, and the columns of their names.
struct TypedView {
    view: &'static str,
    kind: &'static str,
    object: (&'static str, &'static str),
    udt: (&'static str, &'static str),
}

const fn typed(
    view: &'static str,
    kind: &'static str,
    object: (&'static str, &'static str),
    udt: (&'static str, &'static str),
) -> TypedView {
    TypedView { view, kind, object, udt }
}

const UDT: (&str, &str) = ("udt", "udt_name");
const SPECIFIC: (&str, &str) = ("specific", "specific_name");

static TYPED_VIEWS: [TypedView; 5] = [
    typed("attributes", "USER-DEFINED TYPE", UDT, ("attribute_udt", "attribute_udt_name")),
    typed("columns", "TABLE", ("table", "table_name"), UDT),
    typed("domains", "DOMAIN", ("domain", "domain_name"), UDT),
    typed("parameters", "ROUTINE", SPECIFIC, UDT),
    typed("routines", "ROUTINE", SPECIFIC, ("type_udt", "type_udt_name")),
];

/// An object on which roles have a right.
struct Granted {
    id: ObjectId,
    kind: AclKind,
    schema: String,
    name: String,
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        _ => String::new(),
    }
}

impl SystemSource<'_> {
    /// Returns the rows of another view.
    fn rows_of(&self, name: &str) -> Option<(&'static SystemTable, Vec<Vec<Value>>)> {
        let table = system_table(Some("information_schema"), name)?;
        let SystemSource { snapshot, session, engine, .. } = *self;
        let mut source = SystemSource { table, snapshot, session, engine, rows: Vec::new() };
        source.information_schema();
        Some((table, source.rows))
    }

    /// Adds the rows of another view that `keeps` wants, by the names of their columns.
    fn copy_rows(
        &mut self,
        from: &str,
        keeps: impl Fn(&SystemRow<'_>) -> bool,
        more: impl Fn(&mut SystemRow<'_>, &SystemRow<'_>),
    ) {
        let Some((table, rows)) = self.rows_of(from) else { return };
        for values in rows {
            let found = SystemRow { table, values };
            if !keeps(&found) {
                continue;
            }
            self.add(|row| {
                for (name, ..) in &table.columns {
                    row.set(name, found.value(name));
                }
                more(row, &found);
            });
        }
    }

    /// Rows of views that no other module has.
    pub(super) fn usage_rows(&mut self) {
        let all = |_: &SystemRow<'_>| true;
        let nothing = |_: &mut SystemRow<'_>, _: &SystemRow<'_>| {};
        match self.table.name {
            "column_domain_usage" => {
                self.copy_rows("columns", |row| !row.value("domain_name").is_null(), nothing);
            }
            "column_udt_usage" => self.copy_rows("columns", all, nothing),
            "domain_udt_usage" => self.copy_rows("domains", all, nothing),
            "administrable_role_authorizations" => {
                let is_own = |row: &SystemRow<'_>| text(&row.value("is_grantable")) == "YES";
                self.copy_rows("applicable_roles", is_own, nothing);
            }
            "data_type_privileges" | "element_types" => self.typed_rows(),
            "collations" | "collation_character_set_applicability" => self.collation_rows(),
            "triggered_update_columns" => self.update_columns(),
            _ => self.granted_rows(),
        }
    }

    /// `data_type_privileges` and `element_types`.
    fn typed_rows(&mut self) {
        let of_elements = self.table.name == "element_types";
        for TypedView { view, kind, object, udt } in &TYPED_VIEWS {
            let is_typed = |row: &SystemRow<'_>| match of_elements {
                true => text(&row.value("data_type")) == "ARRAY",
                false => !row.value("dtd_identifier").is_null(),
            };
            let copied = |row: &mut SystemRow<'_>, found: &SystemRow<'_>| {
                let value = |prefix: &str| text(&found.value(&format!("{prefix}_schema")));
                let named = text(&found.value(object.1));
                qualified(row, "object", &value(object.0), "object_name", &named);
                row.text("object_type", kind);
                if !of_elements {
                    return;
                }
                let (schema, array) = (value(udt.0), text(&found.value(udt.1)));
                let element = array.strip_prefix('_').unwrap_or(&array);
                let place = text(&found.value("dtd_identifier"));
                for name in row.table.columns.iter().map(|it| it.0.clone()) {
                    let is_kept = name.starts_with("object_");
                    if !is_kept {
                        row.set(&name, Value::Null);
                    }
                }
                let known = type_row_named(element).filter(|_| schema == "pg_catalog");
                let shown = known.and_then(|it| type_named(it.oid, None));
                row.text("data_type", shown.unwrap_or_else(|| "USER-DEFINED".into()));
                qualified(row, "udt", &schema, "udt_name", element);
                row.text("collection_type_identifier", &place);
                row.text("dtd_identifier", format!("a{place}"));
            };
            self.copy_rows(view, is_typed, copied);
        }
    }

    fn collation_rows(&mut self) {
        let snapshot = self.snapshot;
        let built_in = ["default", "C", "POSIX", "ucs_basic"];
        let built_in = built_in.iter().map(|name| ("pg_catalog".to_owned(), (*name).to_owned()));
        let own = snapshot.collations().map(|it| (it.schema.to_string(), it.name.to_string()));
        let all: Vec<(String, String)> = built_in.chain(own).collect();
        for (schema, name) in all {
            self.add(|row| {
                qualified(row, "collation", &schema, "collation_name", &name);
                row.text("pad_attribute", "NO PAD").text("character_set_name", "UTF8");
            });
        }
    }

    /// The columns of UPDATE OF in triggers.
    fn update_columns(&mut self) {
        let snapshot = self.snapshot;
        for trigger in snapshot.triggers() {
            let Some((schema, relation)) = snapshot.relation_named(trigger.relation) else {
                continue;
            };
            if !self.shows_trigger(trigger) || !trigger.events.contains(&TriggerEvent::Update) {
                continue;
            }
            let Some(table) = snapshot.table(trigger.relation) else { continue };
            for id in &trigger.columns {
                let Some(column) = table.columns.iter().find(|it| it.id == *id) else { continue };
                self.add(|row| {
                    qualified(row, "trigger", schema, "trigger_name", &trigger.name);
                    qualified(row, "event_object", schema, "event_object_table", relation);
                    row.text("event_object_column", &column.name);
                });
            }
        }
    }

    /// The rights on routines, row types, domains and collations.
    fn granted_rows(&mut self) {
        let snapshot = self.snapshot;
        let of = |id, kind, schema: &str, name: &str| Granted {
            id,
            kind,
            schema: schema.to_owned(),
            name: name.to_owned(),
        };
        let granted: Vec<Granted> = match self.table.name {
            "routine_privileges" | "role_routine_grants" => {
                let all = snapshot.routines();
                all.map(|it| of(it.id, AclKind::Function, &it.schema, &it.name)).collect()
            }
            "udt_privileges" | "role_udt_grants" => {
                let relations =
                    snapshot.described().into_iter().filter_map(|relation| match relation {
                        Described::Table(table) => {
                            Some(of(table.id, AclKind::Type, &table.schema, &table.name))
                        }
                        Described::View(view) => {
                            Some(of(view.id, AclKind::Type, &view.schema, &view.name))
                        }
                        _ => None,
                    });
                let composites = snapshot.composites();
                let own = composites.map(|it| of(it.id, AclKind::Type, &it.schema, &it.name));
                relations.chain(own).collect()
            }
            "usage_privileges" | "role_usage_grants" => {
                let domains = snapshot.domains();
                domains.map(|it| of(it.id, AclKind::Type, &it.schema, &it.name)).collect()
            }
            _ => return,
        };
        let roles = self.enabled_roles();
        for object in &granted {
            self.rights_on(object, &roles);
        }
        if matches!(self.table.name, "usage_privileges" | "role_usage_grants") {
            for own in snapshot.collations() {
                let grantor = snapshot.role_name(snapshot.owner(own.id));
                self.add(|row| {
                    row.text("grantor", grantor).text("grantee", "PUBLIC");
                    qualified(row, "object", &own.schema, "object_name", &own.name);
                    row.text("object_type", "COLLATION").text("privilege_type", "USAGE");
                    row.text("is_grantable", "NO");
                });
            }
        }
    }

    /// Adds the rights on an object that these roles have given or have.
    fn rights_on(&mut self, object: &Granted, roles: &[ObjectId]) {
        let snapshot = self.snapshot;
        let access = snapshot.access(object.id).map(|it| (**it).clone()).unwrap_or_default();
        // A row type has no rights of its own.
        let is_row = object.kind == AclKind::Type && snapshot.domain(object.id).is_none();
        let access = if is_row { ObjectAccess { acl: None, ..access } } else { access };
        let concerns = |role: &ObjectId| roles.contains(role);
        for item in access.items(object.id, object.kind) {
            let grantor = item.grantor;
            if !concerns(&grantor) && item.grantee.is_some_and(|it| !concerns(&it)) {
                continue;
            }
            for (privilege, name) in item.privileges.names() {
                self.add(|row| {
                    let grantee = item.grantee.map(|it| snapshot.role_name(it));
                    row.text("grantor", snapshot.role_name(grantor));
                    row.text("grantee", grantee.as_deref().unwrap_or("PUBLIC"));
                    let specific = format!("{}_{}", object.name, object_oid(object.id));
                    qualified(row, "specific", &object.schema, "specific_name", &specific);
                    for prefix in ["routine", "udt", "object"] {
                        let last = format!("{prefix}_name");
                        qualified(row, prefix, &object.schema, &last, &object.name);
                    }
                    row.text("object_type", "DOMAIN");
                    let of_types = row.table.name.contains("udt");
                    row.text("privilege_type", if of_types { "TYPE USAGE" } else { name });
                    let is_own = item.grantee == Some(grantor);
                    row.text("is_grantable", yes_no(is_own || item.grantable.has(privilege)));
                });
            }
        }
    }
}
