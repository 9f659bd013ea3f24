//! CREATE, ALTER and DROP of composite types.
//!
//! A stored row has the names and types of its fields, so ALTER TYPE … ATTRIBUTE writes the tables
//! with columns of the type again.

use std::sync::Arc;

use quickbeam::Transaction;

use crate::catalog::{Catalog, CatalogSnapshot, DropBehavior};
use crate::ddl::change::CatalogChange;
use crate::ddl::depended;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::encoding::StoredRow;
use crate::schema::{CompositeType, ObjectId, Routine, RoutineResult, Table};
use crate::types::encoded::RowShape;
use crate::types::{DataType, EncodedType, Value, ValueRef};

/// The fields of a row type before a change, for each field after it; `None` for a new one.
pub type OldFields = [Option<usize>];

/// The definitions of types before and after a change of one of them.
struct ChangedRows<'c> {
    id: u32,
    fields: &'c OldFields,
}

impl ChangedRows<'_> {
    /// Returns a stored value as a value of the type after the change.
    fn convert(&self, value: ValueRef<'_>, to: DataType) -> Result<Value> {
        if value.is_null() || !to.has_rows_of(self.id) {
            return Ok(value.to_value());
        }
        match value {
            ValueRef::Array(array) => {
                let element = to.element_or_self();
                let to = to.element().unwrap_or(array.element_type());
                array.map(to, |value| self.convert(value, element)).map(Value::Array)
            }
            value => match to.record() {
                Some(row_type) => self.convert_row(value, row_type),
                None => Ok(value.to_value()),
            },
        }
    }

    fn convert_row(&self, value: ValueRef<'_>, row_type: EncodedType) -> Result<Value> {
        let damaged = || SqlError::corrupted("a row in a column cannot be read");
        let known = row_type.row_type().ok_or_else(damaged)?;
        let row = value.row().ok_or_else(damaged)?;
        let is_changed = DataType::Encoded(row_type).is_of_rows(self.id);
        let shape = RowShape::new(row_type, &known.fields);
        let mut out = shape.begin();
        for (at, (_, data_type)) in known.fields.iter().enumerate() {
            let old = if is_changed { self.fields.get(at).copied().flatten() } else { Some(at) };
            match old {
                Some(old) => out.push(self.convert(row.get(old), *data_type)?.as_ref())?,
                None => out.push(ValueRef::Null)?,
            }
        }
        out.finish()
    }
}

impl CatalogChange<'_> {
    /// Refuses another row type of a table while columns of others have it: stored rows have the
    /// names and types of their fields.
    pub(in crate::ddl) fn check_row_type_uses(&self, table: &Table) -> Result<()> {
        let Some(before) = self.before.table(table.id) else { return Ok(()) };
        let has_rows = self.before.row_types.contains_key(&table.id);
        let mut same = before.columns.iter().zip(&table.columns);
        let is_same = before.columns.len() == table.columns.len()
            && before.name == table.name
            && before.schema == table.schema
            && same.all(|(a, b)| (&a.name, a.data_type) == (&b.name, b.data_type));
        if !has_rows || is_same {
            return Ok(());
        }
        let Some((user, column)) = self.before.columns_of_rows(table.id).next() else {
            return Ok(());
        };
        let message = format!(
            "cannot alter table \"{}\" because column \"{}.{}\" uses its row type",
            table.name, user.name, column.name
        );
        Err(SqlError::new(SqlState::FeatureNotSupported, message))
    }

    /// Refuses to drop a table while columns of others have its row type.
    pub(in crate::ddl) fn refuse_row_type_uses(&self, table: &Table) -> Result<()> {
        let others = self.before.columns_of_rows(table.id);
        let mut others = others.filter(|(user, _)| user.id != table.id);
        let Some((user, column)) = others.next() else { return Ok(()) };
        let what = format!("table {}", table.name);
        Err(depended(&what, &format!("column {} of table {}", column.name, user.name)))
    }

    /// Refuses what PostgreSQL would follow through stored expressions, which are texts here.
    fn check_rewritable(&self, table: &Table, name: &str) -> Result<()> {
        self.refuse_views(table.id, &format!("the type {name}"), "altering")?;
        let has_expressions = !table.checks.is_empty()
            || table.columns.iter().any(|it| it.generated.is_some())
            || table.indexes.iter().any(|it| !it.expressions.is_empty() || it.predicate.is_some());
        match has_expressions {
            true => Err(SqlError::unsupported(format!(
                "altering the type {name} while an expression of the table {} may read it",
                table.name
            ))),
            false => Ok(()),
        }
    }
}

impl Catalog {
    /// CREATE TYPE … AS (…).
    pub fn create_composite(
        &self,
        transaction: &Transaction,
        mut known: CompositeType,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let name = known.lookup_name();
        change.check_free(&name)?;
        change.check_type_free(&name)?;
        known.id = change.new_id()?;
        // A column's record has three bytes for the number.
        if known.id.0 > EncodedType::MAX_LENGTH {
            return Err(SqlError::internal("no object numbers left for types"));
        }
        change.put_composite(known)
    }

    /// ALTER TYPE: gives a composite type its new definition. With `fields`, the tables that have
    /// values of the type are written again.
    pub fn alter_composite(
        &self,
        transaction: &Transaction,
        known: CompositeType,
        fields: Option<&OldFields>,
    ) -> Result<()> {
        let before = self.snapshot(transaction)?;
        let change = CatalogChange::begin(self, transaction)?;
        let (id, own) = (known.id, known.name.clone());
        let old = change.before.composites.get(&id).map(|it| it.lookup_name());
        if old.unwrap_or_default() != known.lookup_name() {
            change.check_free(&known.lookup_name())?;
            change.check_type_free(&known.lookup_name())?;
        }
        change.put_composite(known)?;
        let Some(fields) = fields else { return Ok(()) };
        let after = self.snapshot(transaction)?;
        let has_rows = |table: &&Arc<Table>| {
            table.columns.iter().any(|column| column.data_type.has_rows_of(id.0))
        };
        for table in before.tables().filter(has_rows) {
            let change = CatalogChange::begin(self, transaction)?;
            change.check_rewritable(table, &own)?;
            let mut new = (**after.known_table(table.id)?).clone();
            let types: Vec<DataType> = new.columns.iter().map(|it| it.data_type).collect();
            let rows = ChangedRows { id: id.0, fields };
            change.rewrite(table, &mut new, &mut |row: StoredRow<'_>| {
                let values = types.iter().enumerate();
                values.map(|(at, data_type)| rows.convert(row.get(at)?, *data_type)).collect()
            })?;
            change.put_table(&new)?;
        }
        Ok(())
    }

    /// DROP TYPE. With CASCADE, columns, functions and attributes of the types go, too.
    pub fn drop_composites(
        &self,
        transaction: &Transaction,
        composites: &[Arc<CompositeType>],
        behavior: DropBehavior,
    ) -> Result<()> {
        let ids: Vec<ObjectId> = composites.iter().map(|it| it.id).collect();
        for known in composites {
            let is_it = |data_type: DataType| data_type.is_of_rows(known.id.0);
            let what = format!("type {}", known.name);
            self.drop_uses(transaction, &what, &is_it, (behavior, &ids))?;
        }
        let change = CatalogChange::begin(self, transaction)?;
        ids.into_iter().try_for_each(|id| change.remove(id))
    }

    /// Drops what has a type: columns, routines, domains, and attributes of other types than
    /// `dropped`. Without CASCADE, refuses.
    pub(super) fn drop_uses(
        &self,
        transaction: &Transaction,
        what: &str,
        is_it: &dyn Fn(DataType) -> bool,
        (behavior, dropped): (DropBehavior, &[ObjectId]),
    ) -> Result<()> {
        let snapshot = self.snapshot(transaction)?;
        let uses = Uses::of(&snapshot, is_it, dropped);
        if let (DropBehavior::Restrict, Some(by)) = (behavior, uses.first()) {
            return Err(depended(what, &by));
        }
        for (composite, attribute) in &uses.attributes {
            let known = self.snapshot(transaction)?;
            let Some(known) = known.composites.get(&composite.id) else { continue };
            let mut new = (**known).clone();
            new.attributes.retain(|it| it.name != *attribute);
            let kept = known.attributes.iter().enumerate();
            let kept = kept.filter(|(_, it)| it.name != *attribute).map(|(at, _)| Some(at));
            self.alter_composite(transaction, new, Some(&kept.collect::<Vec<_>>()))?;
        }
        if !uses.routines.is_empty() {
            self.drop_routines(transaction, &uses.routines, behavior)?;
        }
        for (table, column) in uses.columns {
            self.drop_column(transaction, &table.lookup_name(), &column, (behavior, &[]))?;
        }
        match uses.domains.is_empty() {
            true => Ok(()),
            false => self.drop_domains(transaction, &uses.domains, behavior),
        }
    }
}

/// What has a type.
struct Uses {
    columns: Vec<(Arc<Table>, smol_str::SmolStr)>,
    attributes: Vec<(Arc<CompositeType>, smol_str::SmolStr)>,
    domains: Vec<Arc<crate::schema::Domain>>,
    routines: Vec<Arc<Routine>>,
}

impl Uses {
    fn of(
        snapshot: &CatalogSnapshot,
        is_it: &dyn Fn(DataType) -> bool,
        dropped: &[ObjectId],
    ) -> Uses {
        let columns = snapshot.tables().flat_map(|table| {
            let own = table.columns.iter().filter(|it| is_it(it.data_type));
            own.map(|column| (table.clone(), column.name.clone()))
        });
        let others = snapshot.composites().filter(|it| !dropped.contains(&it.id));
        let attributes = others.flat_map(|composite| {
            let own = composite.attributes.iter().filter(|it| is_it(it.data_type));
            own.map(|attribute| (composite.clone(), attribute.name.clone()))
        });
        let has_routine = |it: &&Arc<Routine>| {
            it.has_type(is_it)
                || matches!(it.result, RoutineResult::Row(of) if dropped.contains(&of))
        };
        Uses {
            columns: columns.collect(),
            attributes: attributes.collect(),
            domains: snapshot.domains().filter(|it| is_it(it.data_type)).cloned().collect(),
            routines: snapshot.routines().filter(has_routine).cloned().collect(),
        }
    }

    /// Returns the first of them as PostgreSQL names it.
    fn first(&self) -> Option<String> {
        let column = self.columns.first();
        let column = column.map(|(table, own)| format!("column {own} of table {}", table.name));
        let attribute = || {
            let (composite, own) = self.attributes.first()?;
            Some(format!("column {own} of composite type {}", composite.name))
        };
        let domain = || Some(format!("type {}", self.domains.first()?.name));
        let routine = || {
            let routine = self.routines.first()?;
            Some(format!("function {}", routine.signature()))
        };
        column.or_else(attribute).or_else(domain).or_else(routine)
    }
}

/// The error for an attribute that is there already.
#[cold]
pub(crate) fn attribute_exists(name: &str, of: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{of}\" already exists");
    SqlError::new(SqlState::DuplicateColumn, message)
}
