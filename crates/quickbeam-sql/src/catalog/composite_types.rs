//! Composite types, and the row types of tables that columns have.
//!
//! A record of the catalog names a row type by the number of its object. A type may have attributes
//! of types that were made later, so the types are resolved when all records have been read.

use std::collections::HashMap;
use std::sync::Arc;

use smol_str::SmolStr;

use super::CatalogSnapshot;
use super::records::TableRecord;
use super::system::{object_array_oid, row_type_oid};
use super::text::{quoted, quoted_relation};
use super::user_types::shown_type;
use crate::error::{Result, SqlError};
use crate::schema::{Column, CompositeType, ObjectId, Table};
use crate::types::encoded::row_types::{RowField, RowType, RowTypeName};
use crate::types::{DataType, EncodedType};

/// Returns the name of the type of the rows of a relation or composite type.
pub(crate) fn row_type_name(id: ObjectId, schema: &str, name: &SmolStr) -> RowTypeName {
    let oid = |number: i64| u32::try_from(number).unwrap_or_default();
    let oids = (oid(row_type_oid(id)), oid(object_array_oid(id)));
    RowTypeName { id: id.0, name: name.clone(), shown: shown_type(schema, name), oids }
}

#[cold]
pub(super) fn missing_type() -> SqlError {
    SqlError::corrupted("a record of the catalog has a type that is missing")
}

/// The definitions that row types are resolved from.
struct StoredRowTypes<'r> {
    composites: HashMap<ObjectId, &'r CompositeType>,
    tables: &'r [TableRecord],
    /// The types that are being resolved: a type cannot have itself as a part.
    open: Vec<ObjectId>,
}

impl StoredRowTypes<'_> {
    /// Adds the row types that a stored type names to the snapshot.
    fn resolve(&mut self, snapshot: &mut CatalogSnapshot, data_type: DataType) -> Result<()> {
        let Some(stored) = data_type.element_or_self().record() else { return Ok(()) };
        let id = ObjectId(stored.length());
        if id.0 == 0 || snapshot.row_types.contains_key(&id) {
            return Ok(());
        }
        if self.open.contains(&id) {
            return Err(SqlError::corrupted("a composite type has itself as a part"));
        }
        let (name, fields): (RowTypeName, Vec<RowField>) = match self.composites.get(&id) {
            Some(known) => (
                row_type_name(id, &known.schema, &known.name),
                known.attributes.iter().map(|it| (it.name.clone(), it.data_type)).collect(),
            ),
            None => {
                let found = self.tables.iter().map(TableRecord::row).find(|it| it.0 == id);
                let (_, schema, name, fields) = found.ok_or_else(missing_type)?;
                (row_type_name(id, schema, name), fields)
            }
        };
        self.open.push(id);
        for (_, data_type) in &fields {
            self.resolve(snapshot, *data_type)?;
        }
        self.open.pop();
        let mut fields = fields;
        fields.iter_mut().try_for_each(|(_, data_type)| snapshot.resolve_type(data_type))?;
        snapshot.row_types.insert(id, RowType { name: Some(name), fields }.intern());
        Ok(())
    }
}

impl CatalogSnapshot {
    /// Adds the composite types, and resolves the row types that `types` and the columns of the
    /// tables name.
    pub(super) fn add_composites(
        &mut self,
        composites: Vec<CompositeType>,
        tables: &[TableRecord],
        types: impl Iterator<Item = DataType>,
    ) -> Result<()> {
        let own = |known: &CompositeType| {
            let encoded = EncodedType::of_rows(known.id.0);
            DataType::Encoded(encoded)
        };
        let all: Vec<DataType> = composites.iter().map(own).chain(types).collect();
        let by_id = composites.iter().map(|it| (it.id, it)).collect();
        let mut stored = StoredRowTypes { composites: by_id, tables, open: Vec::new() };
        for data_type in all {
            stored.resolve(self, data_type)?;
        }
        for (_, _, _, fields) in tables.iter().map(TableRecord::row) {
            fields.iter().try_for_each(|(_, data_type)| stored.resolve(self, *data_type))?;
        }
        for mut known in composites {
            for attribute in &mut known.attributes {
                self.resolve_type(&mut attribute.data_type)?;
            }
            self.type_names.insert(known.lookup_name(), known.id);
            self.composites.insert(known.id, Arc::new(known));
        }
        Ok(())
    }

    /// Returns the composite types in the order in which they were made.
    pub fn composites(&self) -> impl Iterator<Item = &Arc<CompositeType>> {
        self.composites.values()
    }

    /// Returns the data type of a composite type.
    #[must_use]
    pub fn composite_data_type(&self, id: ObjectId) -> Option<DataType> {
        self.composites.get(&id)?;
        self.row_types.get(&id).map(|encoded| DataType::Encoded(*encoded))
    }

    /// Returns the row type of a table or composite type.
    pub(crate) fn row_data_type(&self, id: ObjectId) -> Result<DataType> {
        match self.composite_data_type(id) {
            Some(known) => Ok(known),
            None => Ok(self.known_table(id)?.row_data_type()),
        }
    }

    /// Returns the columns of the row type of that object, or of arrays of it, with their tables.
    pub fn columns_of_rows(&self, id: ObjectId) -> impl Iterator<Item = (&Arc<Table>, &Column)> {
        self.tables().flat_map(move |table| {
            let own = table.columns.iter().filter(move |it| it.data_type.is_of_rows(id.0));
            own.map(move |column| (table, column))
        })
    }

    /// Returns the statements that make the composite types, after the types of their attributes.
    pub fn create_composites(&self) -> Vec<String> {
        let mut order: Vec<&Arc<CompositeType>> = Vec::new();
        let mut left: Vec<&Arc<CompositeType>> = self.composites().collect();
        while !left.is_empty() {
            let is_waiting = |known: &CompositeType, left: &[&Arc<CompositeType>]| {
                known.attributes.iter().any(|attribute| {
                    left.iter().any(|other| attribute.data_type.is_of_rows(other.id.0))
                })
            };
            let (later, now): (Vec<_>, Vec<_>) =
                left.iter().partition(|known| is_waiting(known, &left));
            // A type cannot have itself as a part, so each round takes at least one.
            if now.is_empty() {
                order.extend(later);
                break;
            }
            order.extend(now);
            left = later;
        }
        let text = |known: &&Arc<CompositeType>| {
            let attribute =
                |it: &crate::schema::Attribute| format!("{} {}", quoted(&it.name), it.data_type);
            let list: Vec<String> = known.attributes.iter().map(attribute).collect();
            let name = quoted_relation(&known.schema, &known.name);
            format!("CREATE TYPE {name} AS ({})", list.join(", "))
        };
        order.iter().map(text).collect()
    }
}

impl Table {
    /// Returns the type of the table's rows.
    pub(crate) fn row_data_type(&self) -> DataType {
        let fields = self.columns.iter().map(|it| (it.name.clone(), it.data_type)).collect();
        let name = Some(row_type_name(self.id, &self.schema, &self.name));
        DataType::Encoded(RowType { name, fields }.intern())
    }
}

impl DataType {
    /// Returns the fields of a row type; none if they are not known.
    #[must_use]
    pub(crate) fn row_fields(self) -> &'static [RowField] {
        let known = self.record().and_then(EncodedType::row_type);
        known.map_or(&[], |known| &known.fields)
    }

    /// Returns whether this is the row type of the object with that number, or the type of arrays
    /// of its rows.
    #[must_use]
    pub(crate) fn is_of_rows(self, id: u32) -> bool {
        self.row_object() == Some(id)
    }

    /// Returns the number of the object whose row type, or arrays of whose rows, this is.
    #[must_use]
    pub(crate) fn row_object(self) -> Option<u32> {
        Some(self.element_or_self().record()?.row_type_name()?.id)
    }

    /// Returns whether rows of the object with that number are values, elements or parts of values
    /// of this type.
    #[must_use]
    pub(crate) fn has_rows_of(self, id: u32) -> bool {
        let Some(row) = self.element_or_self().record() else { return false };
        self.is_of_rows(id)
            || row
                .row_type()
                .is_some_and(|it| it.fields.iter().any(|field| field.1.has_rows_of(id)))
    }
}
