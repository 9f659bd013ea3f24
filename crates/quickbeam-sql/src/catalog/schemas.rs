//! The schemas that a transaction sees.

use smol_str::SmolStr;

use super::CatalogSnapshot;
use super::describe::quoted_if_needed;
use super::system::{CATALOG_SCHEMA, INFORMATION_SCHEMA, PUBLIC_SCHEMA, object_oid};
use crate::schema::Schema;
use crate::schema::names::{PUBLIC, is_system_schema, lookup_name};

impl CatalogSnapshot {
    /// Returns the schemas besides `public` and those of the system catalogs, by name.
    pub fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.schemas.values()
    }

    /// Returns whether there is a schema of that name.
    #[must_use]
    pub fn has_schema(&self, name: &str) -> bool {
        name == PUBLIC || is_system_schema(name) || self.schemas.contains_key(name)
    }

    /// Returns the names and OIDs of all schemas.
    #[must_use]
    pub fn schema_oids(&self) -> Vec<(SmolStr, i64)> {
        let fixed = [
            (SmolStr::new_static("pg_catalog"), CATALOG_SCHEMA),
            (PUBLIC, PUBLIC_SCHEMA),
            (SmolStr::new_static("information_schema"), INFORMATION_SCHEMA),
        ];
        let own = self.schemas.values().map(|schema| (schema.name.clone(), object_oid(schema.id)));
        fixed.into_iter().chain(own).collect()
    }

    /// Returns the OID of a schema.
    #[must_use]
    pub fn schema_oid(&self, name: &str) -> i64 {
        match self.schemas.get(name) {
            Some(schema) => object_oid(schema.id),
            None => PUBLIC_SCHEMA,
        }
    }

    /// Returns the name in a text such as `app."T"` that a statement would find with that path.
    #[must_use]
    pub fn written_name(&self, schema: &str, name: &str, path: &[SmolStr]) -> String {
        let lookup = lookup_name(schema, name);
        let found = path.iter().map(|schema| lookup_name(schema, name));
        let found = found.into_iter().find(|name| self.relation(name).is_some());
        let is_visible = found.is_some_and(|found| found == lookup);
        if is_visible {
            return quoted_if_needed(name);
        }
        format!("{}.{}", quoted_if_needed(schema), quoted_if_needed(name))
    }
}
