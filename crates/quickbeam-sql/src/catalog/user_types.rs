//! The types and collations of users that a transaction sees.

use std::sync::Arc;

use smol_str::SmolStr;

use super::CatalogSnapshot;
use super::composite_types::missing_type;
use super::describe::{name_parts, quoted_if_needed};
use super::system::{object_array_oid, object_oid, row_type_oid};
use super::text::{literal, quoted, quoted_relation};
use crate::error::{Result, SqlError};
use crate::schema::names::{PUBLIC, lookup_name};
use crate::schema::{
    Column, Domain, DomainCheck, DomainUse, EnumLabel, EnumType, Index, MadeCollation, ObjectId,
    Relation, StoredCollation, Table,
};
use crate::types::collation::Predefined;
use crate::types::encoded::enums::EnumDefinition;
use crate::types::{Collation, DataType, EncodedType};

/// Returns the name of a type, with its schema unless that is `public`.
pub(super) fn shown_type(schema: &str, name: &str) -> String {
    match schema == PUBLIC {
        true => quoted_if_needed(name),
        false => format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name)),
    }
}

impl CatalogSnapshot {
    /// Adds an enumerated type, with its data type.
    pub(super) fn add_enum(&mut self, known: EnumType) -> Result<()> {
        let definition = EnumDefinition {
            id: known.id.0,
            name: known.name.clone(),
            shown: shown_type(&known.schema, &known.name),
            labels: known.labels.iter().map(|it| (it.order, it.label.clone())).collect(),
        };
        let encoded = definition.intern();
        let encoded = encoded.ok_or_else(|| SqlError::internal("no numbers left for types"))?;
        self.enum_types.insert(known.id, encoded);
        self.type_names.insert(known.lookup_name(), known.id);
        self.enums.insert(known.id, Arc::new(known));
        Ok(())
    }

    /// Puts the type of this snapshot in the place of the number of its object.
    pub(super) fn resolve_type(&self, data_type: &mut DataType) -> Result<()> {
        let rows = || data_type.element_or_self().record().filter(|it| it.length() > 0);
        let found = match (data_type.enumerated(), rows()) {
            (Some(stored), _) => self.enum_types.get(&ObjectId(stored.length())),
            (None, Some(stored)) => self.row_types.get(&ObjectId(stored.length())),
            (None, None) => return Ok(()),
        };
        *data_type = data_type.with_definition(*found.ok_or_else(missing_type)?);
        Ok(())
    }

    /// As [`CatalogSnapshot::resolve_type`], for the column of an older layout: its type may have
    /// been dropped with the column.
    pub(super) fn resolve_old_type(&self, data_type: &mut DataType) {
        if self.resolve_type(data_type).is_err() {
            let kind = data_type.element_or_self().encoded();
            let any = kind.map_or(EncodedType::of_rows(0), EncodedType::from);
            *data_type = data_type.with_definition(any);
        }
    }

    /// Returns the enumerated types in the order in which they were made.
    pub fn enums(&self) -> impl Iterator<Item = &Arc<EnumType>> {
        self.enums.values()
    }

    /// Returns the enumerated type of that lookup name.
    #[must_use]
    pub fn enum_named(&self, lookup: &str) -> Option<&Arc<EnumType>> {
        self.enums.get(self.type_names.get(lookup)?)
    }

    /// Returns the data type of an enumerated type.
    #[must_use]
    pub fn enum_data_type(&self, id: ObjectId) -> Option<DataType> {
        self.enum_types.get(&id).map(|encoded| DataType::Encoded(*encoded))
    }

    /// Returns the columns of an enumerated type, or of arrays of it, with their tables.
    pub fn columns_of_enum(&self, id: ObjectId) -> impl Iterator<Item = (&Arc<Table>, &Column)> {
        let is_it = move |column: &&Column| self.is_enum(column.data_type, id);
        self.tables().flat_map(move |table| {
            table.columns.iter().filter(is_it).map(move |column| (table, column))
        })
    }

    /// Returns whether a type is an enumerated type, or one of arrays of it.
    #[must_use]
    pub fn is_enum(&self, data_type: DataType, id: ObjectId) -> bool {
        data_type.enumerated().is_some_and(|it| Some(&it) == self.enum_types.get(&id))
    }

    /// Returns the statements that make the enumerated types.
    pub fn create_enums(&self) -> impl Iterator<Item = String> + '_ {
        self.enums().map(|known| {
            let label = |it: &EnumLabel| format!("'{}'", it.label.replace('\'', "''"));
            let labels: Vec<String> = known.labels.iter().map(label).collect();
            let name = quoted_relation(&known.schema, &known.name);
            format!("CREATE TYPE {name} AS ENUM ({})", labels.join(", "))
        })
    }

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

    /// Returns the columns of a domain, of one over it, or of arrays of those, with their tables.
    pub fn columns_of_domain(&self, id: ObjectId) -> impl Iterator<Item = (&Arc<Table>, &Column)> {
        let is_of = move |column: &&Column| {
            column.domain.is_some_and(|own| self.domain_chain(own.id()).any(|it| it.id == id))
        };
        self.tables().flat_map(move |table| {
            table.columns.iter().filter(is_of).map(move |column| (table, column))
        })
    }

    /// Returns the name of the type with that OID, as a statement with that path finds it.
    #[must_use]
    pub fn type_of_oid(&self, oid: i64, path: &[SmolStr]) -> Option<String> {
        let domains = self.domains().map(|it| (it.id, &it.schema, &it.name));
        let enums = self.enums().map(|it| (it.id, &it.schema, &it.name));
        let array = |id: &ObjectId| Some(i64::from(self.enum_types.get(id)?.oids().1));
        let is_it = |(id, ..): &(ObjectId, &SmolStr, &SmolStr)| {
            let is_array = array(id).unwrap_or_else(|| object_array_oid(*id)) == oid;
            object_oid(*id) == oid || is_array
        };
        let composites = self.composites().map(|it| (it.id, &it.schema, &it.name));
        let is_composite = |(id, ..): &(ObjectId, &SmolStr, &SmolStr)| {
            row_type_oid(*id) == oid || object_array_oid(*id) == oid
        };
        let found = domains.chain(enums).find(is_it);
        let Some((id, schema, name)) = found.or_else(|| composites.into_iter().find(is_composite))
        else {
            return self.row_type_of_oid(oid, path);
        };
        let lookups = path.iter().map(|schema| lookup_name(schema, name));
        let visible = lookups.into_iter().find(|name| self.type_names.contains_key(name));
        let shown = match visible.is_some_and(|found| found == lookup_name(schema, name)) {
            true => quoted_if_needed(name),
            false => format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name)),
        };
        let is_own = object_oid(id) == oid || row_type_oid(id) == oid;
        Some(if is_own { shown } else { format!("{shown}[]") })
    }

    /// Returns the name of the type of a relation's rows, or of arrays of them.
    fn row_type_of_oid(&self, oid: i64, path: &[SmolStr]) -> Option<String> {
        let tables = self.tables().map(|it| (it.id, &it.schema, &it.name));
        let views = self.views().map(|it| (it.id, &it.schema, &it.name));
        let is_it = |(id, ..): &(ObjectId, &SmolStr, &SmolStr)| {
            row_type_oid(*id) == oid || object_array_oid(*id) == oid
        };
        let (id, schema, name) = tables.chain(views).find(is_it)?;
        let shown = match path.contains(schema) {
            true => quoted_if_needed(name),
            false => format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name)),
        };
        Some(if row_type_oid(id) == oid { shown } else { format!("{shown}[]") })
    }

    /// Returns the OID of the type with a name in a text such as `app."T"`.
    #[must_use]
    pub fn type_oid_named(&self, name: &str, path: &[SmolStr]) -> Option<i64> {
        let (name, is_array) = match name.trim().strip_suffix("[]") {
            Some(element) => (element, true),
            None => (name, false),
        };
        let parts = name_parts(name)?;
        let found = match &parts[..] {
            [own] => path.iter().find_map(|schema| self.type_names.get(&lookup_name(schema, own))),
            [schema, own] => self.type_names.get(&lookup_name(schema, own)),
            _ => None,
        };
        let Some(id) = found else {
            let id = self.relation_with_rows(&parts, path)?;
            return Some(if is_array { object_array_oid(id) } else { row_type_oid(id) });
        };
        if let Some(encoded) = self.row_types.get(id) {
            let (own, array) = encoded.oids();
            return Some(i64::from(if is_array { array } else { own }));
        }
        match is_array {
            true if self.domain(*id).is_some() => Some(object_array_oid(*id)),
            true => self.enum_types.get(id).map(|it| i64::from(it.oids().1)),
            false => Some(object_oid(*id)),
        }
    }

    /// Returns the table or view whose rows a type with a name is of.
    fn relation_with_rows(&self, parts: &[String], path: &[SmolStr]) -> Option<ObjectId> {
        let id = |schema: &str, name: &str| match self.relation(&lookup_name(schema, name))? {
            Relation::Table(table) if !table.is_database() => Some(table.id),
            Relation::View(view) => Some(view.id),
            _ => None,
        };
        match parts {
            [own] => path.iter().find_map(|schema| id(schema, own)),
            [schema, own] => id(schema, own),
            _ => None,
        }
    }

    /// Returns the type of a column as a statement names it.
    #[must_use]
    pub fn column_type(&self, column: &Column) -> String {
        match column.domain {
            Some(used) => self.domain_type(used),
            None => column.data_type.to_string(),
        }
    }

    /// Returns the type that a domain, or an array of one, is, as a statement names it.
    #[must_use]
    pub fn domain_type(&self, used: DomainUse) -> String {
        self.domain_name(used, quoted_relation)
    }

    /// Returns the type that a domain, or an array of one, is, as messages show it.
    pub(crate) fn domain_shown(&self, used: DomainUse) -> String {
        self.domain_name(used, shown_type)
    }

    /// Returns the type that a domain, or an array of one, is, from its schema and its name.
    fn domain_name(&self, used: DomainUse, name: fn(&str, &str) -> String) -> String {
        let domain = self.domain(used.id());
        let mut name = domain.map_or_else(String::new, |it| name(&it.schema, &it.name));
        if let DomainUse::Elements(_) = used {
            name.push_str("[]");
        }
        name
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

impl CatalogSnapshot {
    /// Adds a collation that a statement made.
    pub(super) fn add_collation(&mut self, made: MadeCollation) -> Result<()> {
        let collation = made.collation();
        let collation =
            collation.ok_or_else(|| SqlError::internal("no numbers left for collations"))?;
        self.collation_names.insert(made.lookup_name(), collation);
        self.collations.insert(made.id, Arc::new(made));
        Ok(())
    }

    /// Returns the collation of that lookup name that a statement made.
    #[must_use]
    pub fn collation_named(&self, lookup: &str) -> Option<Collation> {
        self.collation_names.get(lookup).copied()
    }

    /// Returns the collations that statements made, in that order.
    pub fn collations(&self) -> impl Iterator<Item = &Arc<MadeCollation>> {
        self.collations.values()
    }

    /// Returns the collation in a record.
    pub(super) fn stored_collation(&self, stored: &StoredCollation) -> Result<Collation> {
        let found = match stored {
            StoredCollation::Predefined(name) => Predefined::named(name).map(|it| it.collation),
            StoredCollation::Made(id) => self.collations.get(id).and_then(|it| it.collation()),
        };
        found.ok_or_else(|| SqlError::corrupted("a column has a collation that is not there"))
    }

    /// Returns the columns of a collation, with their tables.
    pub fn columns_of_collation(
        &self,
        id: ObjectId,
    ) -> impl Iterator<Item = (&Arc<Table>, &Column)> {
        let is_it = move |column: &&Column| {
            column.collation.is_some_and(|own| own.definition().object == Some(id.0))
        };
        self.tables().flat_map(move |table| {
            table.columns.iter().filter(is_it).map(move |column| (table, column))
        })
    }

    /// Returns the indexes whose keys a collation orders.
    pub fn indexes_of_collation(&self, id: ObjectId) -> impl Iterator<Item = (&Table, &Index)> {
        let is_it = move |index: &&Arc<Index>| {
            let mut collations = index.columns.iter().filter_map(|key| key.collation);
            collations.any(|own| own.definition().object == Some(id.0))
        };
        self.tables().flat_map(move |table| {
            table.indexes.iter().filter(is_it).map(move |index| (&**table, &**index))
        })
    }

    /// Returns the statements that make the collations.
    pub fn create_collations(&self) -> impl Iterator<Item = String> + '_ {
        self.collations().map(|made| {
            let name = quoted_relation(&made.schema, &made.name);
            match &made.locale {
                None => format!("CREATE COLLATION {name} (provider = libc, locale = 'C')"),
                Some(locale) => {
                    let locale = literal(locale);
                    let more = if made.nondeterministic { ", deterministic = false" } else { "" };
                    format!("CREATE COLLATION {name} (provider = icu, locale = {locale}{more})")
                }
            }
        })
    }
}

/// Returns the OID of a collation.
pub(crate) fn collation_oid(collation: Collation) -> i64 {
    match collation.definition().object {
        Some(id) => object_oid(ObjectId(id)),
        None => collation.predefined_oid().map_or(0, i64::from),
    }
}
