//! Types of users in the system catalogs.

use super::SystemSource;
use super::information_schema::{column_row, over_domain, qualified};
use crate::catalog::system::{
    domain_check_oid, enum_label_oid, fixed_rows, object_oid, type_modifier, type_oid,
};
use crate::catalog::{Domain, DomainCheck};
use crate::types::Value;

impl SystemSource<'_> {
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
                row.set("typispreferred", false).set("typarray", 0_i64).set("typelem", 0_i64);
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
        }
    }

    /// Adds the rows of enumerated types, and of arrays of them, to `pg_type`.
    pub(super) fn enum_types(&mut self) {
        let snapshot = self.snapshot;
        for known in snapshot.enums() {
            let Some(encoded) = snapshot.enum_types.get(&known.id) else { continue };
            let (own, array) = encoded.oids();
            let (schema, owner) = (snapshot.schema_oid(&known.schema), self.owner_oid(known.id));
            for is_array in [false, true] {
                self.add(|row| {
                    row.set("typnamespace", schema).set("typowner", owner);
                    row.set("typisdefined", true).text("typdelim", ",").text("typstorage", "p");
                    row.set("typtypmod", -1_i32).text("typalign", "i");
                    match is_array {
                        false => {
                            row.set("oid", i64::from(own)).text("typname", &known.name);
                            row.set("typlen", Value::SmallInt(4)).set("typbyval", true);
                            row.text("typtype", "e").text("typcategory", "E");
                            row.set("typarray", i64::from(array));
                        }
                        true => {
                            row.set("oid", i64::from(array));
                            row.text("typname", format!("_{}", known.name));
                            row.set("typlen", Value::SmallInt(-1)).set("typelem", i64::from(own));
                            row.text("typtype", "b").text("typcategory", "A");
                            row.text("typstorage", "x");
                        }
                    }
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
        if self.table.name == "check_constraints" {
            for (domain, check) in domain_checks(snapshot.domains()) {
                if !snapshot.owns(role, domain.id) {
                    continue;
                }
                self.add(|row| {
                    qualified(row, "constraint", &domain.schema, "constraint_name", &check.name);
                    row.text("check_clause", format!("({})", check.expression));
                });
            }
            return;
        }
        for domain in snapshot.domains() {
            self.add(|row| {
                if domain.parent.is_none() {
                    column_row(row, ("", ""), (1, ""), domain.data_type);
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
