//! The types of users that a transaction sees.

use std::sync::Arc;

use smol_str::SmolStr;

use super::CatalogSnapshot;
use super::describe::{name_parts, quoted_if_needed};
use super::system::object_oid;
use super::text::{quoted, quoted_relation};
use crate::schema::names::lookup_name;
use crate::schema::{Column, Domain, DomainCheck, ObjectId, Table};

impl CatalogSnapshot {
    /// Returns the domains in the order in which they were made.
    pub fn domains(&self) -> impl Iterator<Item = &Arc<Domain>> {
        self.domains.values()
    }

    /// Returns the domain of that number.
    #[must_use]
    pub fn domain(&self, id: ObjectId) -> Option<&Arc<Domain>> {
        self.domains.get(&id)
    }

    /// Returns the domain of that lookup name.
    #[must_use]
    pub fn domain_named(&self, lookup: &str) -> Option<&Arc<Domain>> {
        self.domains.get(self.type_names.get(lookup)?)
    }

    /// Returns a domain and those that it is over: the domain first.
    pub fn domain_chain(&self, id: ObjectId) -> impl Iterator<Item = &Arc<Domain>> {
        std::iter::successors(self.domains.get(&id), |domain| self.domains.get(&domain.parent?))
    }

    /// Returns the text of the DEFAULT that a domain has or inherits.
    #[must_use]
    pub fn domain_default(&self, id: ObjectId) -> Option<&Arc<str>> {
        self.domain_chain(id).find_map(|domain| domain.default.as_ref())
    }

    /// Returns the columns of a domain, or of one over it, with their tables.
    pub fn columns_of_domain(&self, id: ObjectId) -> impl Iterator<Item = (&Arc<Table>, &Column)> {
        let is_of = move |column: &&Column| {
            column.domain.is_some_and(|own| self.domain_chain(own).any(|it| it.id == id))
        };
        self.tables().flat_map(move |table| {
            table.columns.iter().filter(is_of).map(move |column| (table, column))
        })
    }

    /// Returns the name of the type with that OID, as a statement with that path finds it.
    #[must_use]
    pub fn type_of_oid(&self, oid: i64, path: &[SmolStr]) -> Option<String> {
        let domain = self.domains().find(|domain| object_oid(domain.id) == oid)?;
        let lookups = path.iter().map(|schema| lookup_name(schema, &domain.name));
        let visible = lookups.into_iter().find(|name| self.type_names.contains_key(name));
        let name = quoted_if_needed(&domain.name);
        Some(match visible.is_some_and(|found| found == domain.lookup_name()) {
            true => name,
            false => format!("{}.{name}", quoted_if_needed(&domain.schema)),
        })
    }

    /// Returns the OID of the type with a name in a text such as `app."T"`.
    #[must_use]
    pub fn type_oid_named(&self, name: &str, path: &[SmolStr]) -> Option<i64> {
        let parts = name_parts(name)?;
        let found = match &parts[..] {
            [own] => path.iter().find_map(|schema| self.domain_named(&lookup_name(schema, own))),
            [schema, own] => self.domain_named(&lookup_name(schema, own)),
            _ => None,
        };
        found.map(|domain| object_oid(domain.id))
    }

    /// Returns the type of a column as a statement names it.
    #[must_use]
    pub fn column_type(&self, column: &Column) -> String {
        let domain = column.domain.and_then(|id| self.domain(id));
        match domain {
            Some(domain) => quoted_relation(&domain.schema, &domain.name),
            None => column.data_type.to_string(),
        }
    }

    /// Returns the statements that make the domains.
    pub fn create_domains(&self) -> impl Iterator<Item = String> + '_ {
        let checked = |check: &DomainCheck| {
            format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.expression)
        };
        self.domains().flat_map(move |domain| {
            let name = quoted_relation(&domain.schema, &domain.name);
            let of = match domain.parent.and_then(|id| self.domain(id)) {
                Some(parent) => quoted_relation(&parent.schema, &parent.name),
                None => domain.data_type.to_string(),
            };
            let mut text = format!("CREATE DOMAIN {name} AS {of}");
            if let Some(default) = &domain.default {
                text.push_str(&format!(" DEFAULT {default}"));
            }
            if domain.not_null {
                text.push_str(" NOT NULL");
            }
            for check in domain.checks.iter().filter(|check| !check.not_valid) {
                text.push_str(&format!(" {}", checked(check)));
            }
            let later = domain.checks.iter().filter(|check| check.not_valid);
            let later = later
                .map(|check| format!("ALTER DOMAIN {name} ADD {} NOT VALID", checked(check)))
                .collect::<Vec<_>>();
            std::iter::once(text).chain(later)
        })
    }
}
