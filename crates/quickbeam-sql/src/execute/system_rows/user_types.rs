//! Types of users in the system catalogs.

use super::information_schema::{column_row, over_domain, qualified, user_type};
use super::relations::{attribute, small};
use super::{SystemRow, SystemSource};
use crate::catalog::describe::Described;
use crate::catalog::system::{
    CATALOG_SCHEMA, OWNER, domain_check_oid, enum_label_oid, fixed_rows, object_array_oid,
    object_oid, row_type_oid, type_modifier, type_oid, type_row,
};
use crate::catalog::{Domain, DomainCheck, ObjectId};
use crate::types::collation::{LIBRARY_VERSION, predefined};
use crate::types::{DataType, Value};

/// What the rows of `pg_type` of a type that is no domain have in common.
struct UserTypeRow<'t> {
    name: &'t str,
    schema: i64,
    owner: i64,
    /// That of the type, and that of its arrays.
    oids: (u32, u32),
}

impl UserTypeRow<'_> {
    fn set(&self, row: &mut SystemRow<'_>) {
        row.set("oid", i64::from(self.oids.0)).text("typname", self.name);
        row.set("typnamespace", self.schema).set("typowner", self.owner);
        row.set("typisdefined", true).text("typdelim", ",").set("typtypmod", -1_i32);
        row.set("typarray", i64::from(self.oids.1));
    }

    fn set_array(&self, row: &mut SystemRow<'_>, align: &str) {
        self.set(row);
        row.set("oid", i64::from(self.oids.1)).text("typname", format!("_{}", self.name));
        row.set("typarray", 0_i64).set("typelem", i64::from(self.oids.0));
        row.set("typlen", Value::SmallInt(-1)).text("typtype", "b").text("typcategory", "A");
        row.text("typalign", align).text("typstorage", "x");
        row.text("typinput", "array_in").text("typoutput", "array_out");
        row.text("typreceive", "array_recv").text("typsend", "array_send");
        row.text("typanalyze", "array_typanalyze");
        row.text("typsubscript", "array_subscript_handler");
    }
}

impl SystemSource<'_> {
    /// Adds the rows of `pg_collation`.
    pub(super) fn pg_collation(&mut self) {
        for known in predefined() {
            let definition = known.collation.definition();
            self.add(|row| {
                row.set("oid", i64::from(known.oid)).text("collname", &definition.name);
                row.set("collnamespace", CATALOG_SCHEMA).set("collowner", OWNER);
                row.set("collisdeterministic", true);
                let is_utf8 = matches!(known.collation.name(), "ucs_basic" | "C.utf8");
                row.set("collencoding", if is_utf8 { 6_i32 } else { -1 });
                match (&definition.locale, known.libc) {
                    (Some(locale), _) => {
                        row.text("collprovider", "i").text("colliculocale", locale);
                        row.text("collversion", LIBRARY_VERSION);
                    }
                    (None, Some(name)) => {
                        row.text("collprovider", "c").text("collcollate", name);
                        row.text("collctype", name);
                    }
                    (None, None) => {
                        row.text("collprovider", "d");
                    }
                }
            });
        }
        let snapshot = self.snapshot;
        for made in snapshot.collations() {
            let (schema, owner) = (snapshot.schema_oid(&made.schema), self.owner_oid(made.id));
            self.add(|row| {
                row.set("oid", object_oid(made.id)).text("collname", &made.name);
                row.set("collnamespace", schema).set("collowner", owner);
                row.set("collisdeterministic", !made.nondeterministic);
                match &made.locale {
                    Some(locale) => {
                        row.set("collencoding", -1_i32).text("collprovider", "i");
                        row.text("colliculocale", locale);
                    }
                    None => {
                        row.set("collencoding", 6_i32).text("collprovider", "c");
                        row.text("collcollate", "C").text("collctype", "C");
                    }
                }
                if let Some(version) = &made.version {
                    row.text("collversion", version);
                }
            });
        }
    }

    /// Adds the rows of `pg_type`.
    pub(super) fn pg_type(&mut self) {
        let snapshot = self.snapshot;
        for domain in snapshot.domains() {
            let base = type_oid(domain.data_type);
            let is_base = |row: &Vec<Value>| {
                row.first().and_then(|oid| oid.as_ref().as_i64()).is_some_and(|oid| oid == base)
            };
            let known = fixed_rows(self.table).into_iter().find(is_base);
            let (schema, owner) = (snapshot.schema_oid(&domain.schema), self.owner_oid(domain.id));
            self.add(|row| {
                if let Some(known) = known {
                    row.values = known;
                }
                row.set("oid", object_oid(domain.id)).text("typname", &domain.name);
                row.set("typnamespace", schema).set("typowner", owner).text("typtype", "d");
                row.set("typispreferred", false).set("typelem", 0_i64);
                row.set("typarray", object_array_oid(domain.id));
                row.text("typinput", "domain_in").text("typreceive", "domain_recv");
                for none in ["typmodin", "typmodout", "typanalyze", "typsubscript"] {
                    row.set(none, 0_i64);
                }
                row.set("typnotnull", domain.not_null);
                let is_over = domain.parent.is_some();
                row.set("typbasetype", domain.parent.map_or(base, object_oid));
                let modifier = if is_over { -1 } else { type_modifier(domain.data_type) };
                row.set("typtypmod", modifier);
                if let Some(default) = snapshot.domain_default(domain.id) {
                    row.text("typdefault", default).text("typdefaultbin", default);
                }
            });
            let oid = |oid| u32::try_from(oid).unwrap_or_default();
            let oids = (oid(object_oid(domain.id)), oid(object_array_oid(domain.id)));
            let common = UserTypeRow { name: &domain.name, schema, owner, oids };
            let align = type_row(base).map_or("i", |it| it.align);
            self.add(|row| common.set_array(row, if align == "d" { "d" } else { "i" }));
        }
    }

    /// Adds the rows of enumerated types, and of arrays of them, to `pg_type`.
    pub(super) fn enum_types(&mut self) {
        let snapshot = self.snapshot;
        for known in snapshot.enums() {
            let Some(encoded) = snapshot.enum_types.get(&known.id) else { continue };
            let (own, array) = encoded.oids();
            let (schema, owner) = (snapshot.schema_oid(&known.schema), self.owner_oid(known.id));
            let common = UserTypeRow { name: &known.name, schema, owner, oids: (own, array) };
            self.add(|row| {
                common.set(row);
                row.set("typlen", Value::SmallInt(4)).set("typbyval", true);
                row.text("typtype", "e").text("typcategory", "E");
                row.text("typinput", "enum_in").text("typoutput", "enum_out");
                row.text("typreceive", "enum_recv").text("typsend", "enum_send");
                row.text("typalign", "i").text("typstorage", "p");
            });
            self.add(|row| common.set_array(row, "i"));
        }
    }

    /// Adds the rows of composite types, and of arrays of them, to `pg_type`.
    pub(super) fn composite_types(&mut self) {
        let snapshot = self.snapshot;
        for known in snapshot.composites() {
            let Some(encoded) = snapshot.row_types.get(&known.id) else { continue };
            let (schema, owner) = (snapshot.schema_oid(&known.schema), self.owner_oid(known.id));
            let common = UserTypeRow { name: &known.name, schema, owner, oids: encoded.oids() };
            self.row_type(&common, known.id);
        }
        for relation in snapshot.described() {
            let (id, name, schema) = match relation {
                Described::Table(table) => (table.id, &table.name, &table.schema),
                Described::View(view) => (view.id, &view.name, &view.schema),
                _ => continue,
            };
            let (schema, owner) = (snapshot.schema_oid(schema), self.owner_oid(id));
            let oid = |oid| u32::try_from(oid).unwrap_or_default();
            let oids = (oid(row_type_oid(id)), oid(object_array_oid(id)));
            self.row_type(&UserTypeRow { name, schema, owner, oids }, id);
        }
    }

    /// Adds a type of rows, and that of arrays of them.
    fn row_type(&mut self, common: &UserTypeRow<'_>, relation: ObjectId) {
        self.add(|row| {
            common.set(row);
            row.set("typlen", Value::SmallInt(-1)).text("typtype", "c");
            row.text("typcategory", "C").set("typrelid", object_oid(relation));
            row.text("typalign", "d").text("typstorage", "x");
            row.text("typinput", "record_in").text("typoutput", "record_out");
            row.text("typreceive", "record_recv").text("typsend", "record_send");
        });
        self.add(|row| common.set_array(row, "d"));
    }

    /// Adds the rows of composite types to `pg_class`.
    pub(super) fn composite_class(&mut self) {
        let snapshot = self.snapshot;
        for known in snapshot.composites() {
            let (schema, owner) = (snapshot.schema_oid(&known.schema), self.owner_oid(known.id));
            self.add(|row| {
                row.set("oid", object_oid(known.id)).text("relname", &known.name);
                row.set("relnamespace", schema).set("relowner", owner);
                row.set("reltype", row_type_oid(known.id)).text("relkind", "c");
                row.set("reltuples", Value::Real(-1.0)).text("relpersistence", "p");
                row.text("relreplident", "n").set("relispopulated", true);
                row.set("relnatts", small(known.attributes.len()));
            });
        }
    }

    /// Adds the rows of the views of `information_schema` that list composite types.
    pub(super) fn composite_rows(&mut self) {
        let snapshot = self.snapshot;
        for known in snapshot.composites() {
            if self.table.name == "user_defined_types" {
                self.add(|row| {
                    let last = "user_defined_type_name";
                    qualified(row, "user_defined_type", &known.schema, last, &known.name);
                    row.text("user_defined_type_category", "STRUCTURED");
                    row.text("is_instantiable", "YES");
                });
                continue;
            }
            for (own, number) in known.attributes.iter().zip(1..) {
                self.add(|row| {
                    column_row(row, ("", ""), (number, ""), own.data_type);
                    let named = row.value("udt_name");
                    let (prefix, last) = ("attribute_udt", "attribute_udt_name");
                    qualified(row, prefix, "pg_catalog", last, "");
                    row.set(last, named);
                    user_type(row, (prefix, last), snapshot, own.data_type);
                    qualified(row, "udt", &known.schema, "udt_name", &known.name);
                    row.text("attribute_name", &own.name);
                    row.text("is_derived_reference_attribute", "NO");
                });
            }
        }
    }

    /// Adds the attributes of composite types to `pg_attribute`.
    pub(super) fn composite_attributes(&mut self) {
        for known in self.snapshot.composites() {
            for (own, number) in known.attributes.iter().zip(1..) {
                self.add(|row| {
                    attribute(row, object_oid(known.id), number, &own.name, own.data_type);
                });
            }
        }
    }

    /// Adds the rows of `pg_enum`.
    pub(super) fn pg_enum(&mut self) {
        for known in self.snapshot.enums() {
            for label in &known.labels {
                self.add(|row| {
                    row.set("oid", enum_label_oid(known.id, &label.label));
                    row.set("enumtypid", object_oid(known.id)).text("enumlabel", &label.label);
                    row.set("enumsortorder", Value::Real(label.sort_order()));
                });
            }
        }
    }

    /// Adds the constraints of domains to `pg_constraint`.
    pub(super) fn domain_constraints(&mut self) {
        let snapshot = self.snapshot;
        for (domain, check) in domain_checks(snapshot.domains()) {
            self.add(|row| {
                row.set("oid", domain_check_oid(domain.id, &check.name));
                row.text("conname", &check.name)
                    .text("contype", "c")
                    .text("conbin", &check.expression);
                row.set("connamespace", snapshot.schema_oid(&domain.schema));
                row.set("contypid", object_oid(domain.id)).set("conislocal", true);
                row.set("convalidated", !check.not_valid);
                for action in ["confupdtype", "confdeltype", "confmatchtype"] {
                    row.text(action, " ");
                }
            });
        }
    }

    /// Adds the rows of the views of `information_schema` that list domains and their constraints.
    pub(super) fn domain_rows(&mut self) {
        let (snapshot, role) = (self.snapshot, self.session.role());
        let of_domains = self.table.name == "domain_constraints";
        if of_domains || self.table.name == "check_constraints" {
            for (domain, check) in domain_checks(snapshot.domains()) {
                if !snapshot.owns(role, domain.id) {
                    continue;
                }
                self.add(|row| {
                    qualified(row, "constraint", &domain.schema, "constraint_name", &check.name);
                    if of_domains {
                        qualified(row, "domain", &domain.schema, "domain_name", &domain.name);
                        row.text("is_deferrable", "NO").text("initially_deferred", "NO");
                    } else {
                        row.text("check_clause", format!("({})", check.expression));
                    }
                });
            }
            return;
        }
        for domain in snapshot.domains() {
            self.add(|row| {
                if domain.parent.is_none() {
                    column_row(row, ("", ""), (1, ""), domain.data_type);
                    if matches!(domain.data_type, DataType::Array(_)) {
                        row.text("data_type", domain.data_type.unconstrained().to_string());
                    }
                }
                row.text("dtd_identifier", "1");
                qualified(row, "domain", &domain.schema, "domain_name", &domain.name);
                over_domain(row, snapshot, domain);
                if let Some(default) = snapshot.domain_default(domain.id) {
                    row.text("domain_default", default);
                }
            });
        }
    }
}

fn domain_checks<'s>(
    domains: impl Iterator<Item = &'s std::sync::Arc<Domain>>,
) -> impl Iterator<Item = (&'s Domain, &'s DomainCheck)> {
    domains.flat_map(|domain| domain.checks.iter().map(move |check| (&**domain, check)))
}
