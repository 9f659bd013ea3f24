//! CREATE, DROP, RENAME and TRUNCATE of tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_columns};
use crate::catalog::DropBehavior;
use crate::catalog::describe::quoted_if_needed;
use crate::catalog::{Catalog, CatalogSnapshot, View};
use crate::error::{Result, SqlError, SqlState};
use crate::handle::{index_tree, rows_tree};
use crate::schema::encoding::Layouts;
use crate::schema::names::{PUBLIC, split_lookup_name};
use crate::schema::{Check, Column, Identity, ObjectId, Table};
use crate::schema::{NewColumn, NewTable};
use crate::types::Value;

impl Catalog {
    /// CREATE TABLE. On an error the caller rolls back to before the call; so it is with all that
    /// follows.
    pub fn create_table(&self, transaction: &Transaction, new: &NewTable) -> Result<ObjectId> {
        let change = CatalogChange::begin(self, transaction)?;
        change.check_free(&new.name)?;
        change.check_no_type(&new.name)?;
        let names: Vec<&str> = new.columns.iter().map(|column| column.name.as_str()).collect();
        check_columns(&names)?;
        let id = change.new_id()?;
        let (schema, name) = split_lookup_name(&new.name);
        let name = SmolStr::new(name);
        let mut columns = Vec::with_capacity(new.columns.len());
        let mut taken = vec![name.clone()];
        for (at, column) in new.columns.iter().enumerate() {
            let number = at as u16 + 1;
            let mut made = change.new_column((id, &schema, &name), number, column, &mut taken)?;
            change.set_serial_default(&mut made, column)?;
            columns.push(made);
        }
        let mut table = Table {
            id,
            schema,
            name,
            primary_key: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            triggers: Vec::new(),
            generation: 0,
            layouts: Layouts::first(&columns),
            next_column: columns.len() as u16 + 1,
            comments: BTreeMap::new(),
            constraint_comments: BTreeMap::new(),
            materialized: None,
            database: None,
            columns,
        };
        for (position, column) in new.columns.iter().enumerate() {
            table.set_generated(position, column)?;
        }
        if let Some(key) = &new.primary_key {
            change.define_primary_key(&mut table, key, &mut taken)?;
        }
        change.transaction.create_database_with(&rows_tree(&table), table.access_method())?;
        for key in &new.uniques {
            let index = Arc::new(change.define_unique(&table, key, &mut taken)?);
            table.indexes.push(index);
        }
        for index in &table.indexes {
            change
                .transaction
                .create_database_with(&index_tree(index.id), index.access_method())?;
        }
        for check in &new.checks {
            let columns = table.known_columns(&check.columns)?;
            let shown = if check.columns.len() == 1 { &check.columns[..] } else { &[] };
            let name = table.constraint_name(check.name.as_ref(), shown, "check")?;
            let columns = columns.iter().map(|&position| table.columns[position].id).collect();
            let expression = check.expression.clone();
            let no_inherit = check.no_inherit;
            table.checks.push(Check { name, expression, columns, not_valid: false, no_inherit });
        }
        for key in &new.foreign_keys {
            let foreign_key = change.define_foreign_key(&table, key)?;
            if foreign_key.parent != table.id {
                change.regenerate_other(foreign_key.parent)?;
            }
            table.foreign_keys.push(foreign_key);
        }
        for (column, comment) in &new.comments {
            let number = table.columns[table.known_column(column)?].id;
            table.comments.insert(number, comment.clone());
        }
        change.put_table(&table)?;
        for index in &new.indexes {
            self.create_index(transaction, index)?;
        }
        Ok(id)
    }

    /// DROP TABLE of all of these. `cascade`: foreign keys of other tables that point to them, and
    /// views that read them, go too.
    pub fn drop_tables(
        &self,
        transaction: &Transaction,
        names: &[SmolStr],
        behavior: DropBehavior,
    ) -> Result<()> {
        let cascade = behavior == DropBehavior::Cascade;
        let change = CatalogChange::begin(self, transaction)?;
        let tables: Vec<Arc<Table>> =
            names.iter().map(|name| change.table_named(name)).collect::<Result<_>>()?;
        let ids: BTreeSet<ObjectId> = tables.iter().map(|table| table.id).collect();
        let others = tables.iter().flat_map(|table| &table.referenced_by);
        let children: BTreeSet<ObjectId> =
            others.map(|reference| reference.child).filter(|child| !ids.contains(child)).collect();
        if !cascade {
            change.refuse_dependents(&tables, &children)?;
        }
        for child in children {
            let mut child = change.latest(child)?;
            child.foreign_keys.retain(|key| !ids.contains(&key.parent));
            change.regenerate(&mut child)?;
            change.put_table(&child)?;
        }
        for &id in &ids {
            let table = change.latest(id)?;
            let what = format!("{} {}", table.word(), table.name);
            let together: Vec<ObjectId> = ids.iter().copied().collect();
            change.drop_dependents(id, &together, &what, cascade)?;
            change.drop_functions_of(&table, cascade)?;
            change.drop_table(&table)?;
        }
        Ok(())
    }

    /// TRUNCATE of all of these. `cascade`: tables whose foreign keys point to them are emptied,
    /// too.
    pub fn truncate(
        &self,
        transaction: &Transaction,
        names: &[SmolStr],
        cascade: bool,
        restart_identity: bool,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let mut named = Vec::new();
        for name in names {
            named.push(change.table_named(name)?.id);
        }
        let mut wanted = change.before.truncated(named, cascade)?;
        wanted.sort();
        for id in wanted {
            let table = change.before.known_table(id)?;
            transaction.clear_database(&rows_tree(table))?;
            for index in &table.indexes {
                transaction.clear_database(&index_tree(index.id))?;
            }
            if restart_identity {
                let owned = change.before.sequences.values();
                for sequence in owned.filter(|s| s.owned_by.is_some_and(|(t, _)| t == id)) {
                    change.restart(sequence, sequence.start)?;
                }
            }
        }
        Ok(())
    }
}

impl CatalogSnapshot {
    /// Returns the tables that TRUNCATE of these empties: with CASCADE also those that refer to
    /// them.
    pub(crate) fn truncated(&self, named: Vec<ObjectId>, cascade: bool) -> Result<Vec<ObjectId>> {
        let mut wanted: Vec<ObjectId> = Vec::new();
        for id in named {
            if !wanted.contains(&id) {
                wanted.push(id);
            }
        }
        let mut at = 0;
        while let Some(&id) = wanted.get(at) {
            at += 1;
            let table = self.known_table(id)?;
            for reference in &table.referenced_by {
                if wanted.contains(&reference.child) {
                    continue;
                }
                if !cascade {
                    let child = self.known_table(reference.child)?;
                    return Err(SqlError::new(
                        SqlState::FeatureNotSupported,
                        "cannot truncate a table referenced in a foreign key constraint",
                    )
                    .with_detail(format!("Table \"{}\" references \"{}\".", child.name, table.name))
                    .with_hint(format!(
                        "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                        child.name
                    )));
                }
                wanted.push(reference.child);
            }
        }
        Ok(wanted)
    }
}

#[cold]
pub(crate) fn depended(what: &str, by: &str) -> SqlError {
    let message = format!("cannot drop {what} because other objects depend on it");
    SqlError::new(SqlState::DependentObjectsStillExist, message)
        .with_detail(format!("{by} depends on {what}"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

impl CatalogChange<'_> {
    /// A column as a statement describes it; its sequence, if it has one, is made.
    pub(crate) fn new_column(
        &self,
        (table, schema, table_name): (ObjectId, &SmolStr, &SmolStr),
        id: u16,
        new: &NewColumn,
        taken: &mut Vec<SmolStr>,
    ) -> Result<Column> {
        let identity = match &new.identity {
            None => None,
            Some(identity) => {
                if !new.data_type.is_integer() {
                    return Err(SqlError::new(
                        SqlState::InvalidParameterValue,
                        "identity column type must be smallint, integer, or bigint",
                    ));
                }
                let parts = [table_name.as_str(), new.name.as_str()];
                let mut options = identity.options.clone();
                options.data_type = Some(new.data_type);
                let name = self.identity_name(schema, &options, &parts, taken)?;
                taken.push(split_lookup_name(&name).1.into());
                let sequence = self.define_sequence(&name, &options, Some((table, id)))?;
                Some(Identity { always: identity.always, sequence })
            }
        };
        let default = match &new.generated {
            Some(generated) => Some(generated.expression.clone()),
            None => new.default.clone(),
        };
        Ok(Column {
            id,
            name: new.name.clone(),
            data_type: new.data_type,
            domain: new.domain,
            collation: new.collation,
            not_null: new.not_null || identity.is_some(),
            default,
            identity,
            // The numbers of the columns follow when all columns are known.
            generated: new.generated.as_ref().map(|_| Vec::new()),
            missing: Value::Null,
        })
    }

    /// Gives a SERIAL column its DEFAULT, which takes the values of the sequence of the column.
    pub(crate) fn set_serial_default(&self, column: &mut Column, new: &NewColumn) -> Result<()> {
        let is_serial = new.identity.as_ref().is_some_and(|it| it.is_serial);
        let Some(identity) = column.identity.filter(|_| is_serial) else { return Ok(()) };
        let sequence = self.made_sequence(identity.sequence)?;
        let mut name = quoted_if_needed(&sequence.name);
        if sequence.schema != PUBLIC {
            name = format!("{}.{name}", quoted_if_needed(&sequence.schema));
        }
        let default = format!("nextval('{}'::regclass)", name.replace('\'', "''"));
        (column.default, column.identity) = (Some(default.into()), None);
        Ok(())
    }

    /// Views that read this object, those that read them, and so on: they go, or are an error, but
    /// for those that go together with it.
    pub(crate) fn drop_dependents(
        &self,
        id: ObjectId,
        together: &[ObjectId],
        what: &str,
        cascade: bool,
    ) -> Result<()> {
        let mut dependents = self.dependents(id);
        dependents.retain(|view| !together.contains(&view.id));
        if !dependents.is_empty() && !cascade {
            let (mut reached, mut lines) = (together.to_vec(), Vec::new());
            self.describe_dependents(id, what, &mut reached, &mut lines);
            return Err(depended(what, "").with_detail(lines.join("\n")));
        }
        for view in dependents {
            match self.before.tables.contains_key(&view.id) {
                true => self.drop_table(&self.latest(view.id)?)?,
                false => self.remove(view.id)?,
            }
        }
        Ok(())
    }

    /// Refuses to drop tables that foreign keys of other tables point to, or that views read.
    fn refuse_dependents(
        &self,
        tables: &[Arc<Table>],
        children: &BTreeSet<ObjectId>,
    ) -> Result<()> {
        let ids: Vec<ObjectId> = tables.iter().map(|table| table.id).collect();
        let (mut reached, mut lines) = (ids.clone(), Vec::new());
        for table in tables {
            let what = format!("{} {}", table.word(), table.name);
            for child in children {
                let child = self.latest(*child)?;
                let keys = child.foreign_keys.iter().filter(|key| key.parent == table.id);
                lines.extend(keys.map(|key| {
                    format!("constraint {} on table {} depends on {what}", key.name, child.name)
                }));
            }
            self.describe_dependents(table.id, &what, &mut reached, &mut lines);
        }
        if lines.is_empty() {
            return Ok(());
        }
        let error = match tables {
            [table] => depended(&format!("{} {}", table.word(), table.name), ""),
            _ => SqlError::new(
                SqlState::DependentObjectsStillExist,
                "cannot drop desired object(s) because other objects depend on them",
            )
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."),
        };
        Err(error.with_detail(lines.join("\n")))
    }

    /// Returns the views and materialized views that read an object, by themselves or through
    /// others.
    fn dependents(&self, id: ObjectId) -> Vec<View> {
        let mut reached = vec![id];
        let mut dependents: Vec<View> = Vec::new();
        let mut at = 0;
        while let Some(&id) = reached.get(at) {
            at += 1;
            for view in self.before.all_views() {
                if view.depends_on.contains(&id) && !reached.contains(&view.id) {
                    reached.push(view.id);
                    dependents.push(view.into_owned());
                }
            }
        }
        dependents
    }

    /// Adds a line for each view that reads an object, followed by those of the views that read it.
    fn describe_dependents(
        &self,
        id: ObjectId,
        what: &str,
        reached: &mut Vec<ObjectId>,
        lines: &mut Vec<String>,
    ) {
        for view in self.before.all_views() {
            if view.depends_on.contains(&id) && !reached.contains(&view.id) {
                reached.push(view.id);
                let shown = format!("{} {}", self.view_word(view.id), view.name);
                lines.push(format!("{shown} depends on {what}"));
                self.describe_dependents(view.id, &shown, reached, lines);
            }
        }
    }

    fn view_word(&self, id: ObjectId) -> &'static str {
        self.before.tables.get(&id).map_or("view", |table| table.word())
    }

    /// Views name tables and columns in their text, and have their types: what they read is
    /// neither renamed nor given another type.
    pub(crate) fn refuse_views(&self, id: ObjectId, what: &str, doing: &str) -> Result<()> {
        match self.dependents(id).first() {
            None => Ok(()),
            Some(view) => {
                let word = self.view_word(view.id);
                let reading = format!("{doing} {what} while the {word} {} reads it", view.name);
                Err(SqlError::unsupported(reading).with_hint("Drop the view and make it again."))
            }
        }
    }

    fn drop_table(&self, table: &Table) -> Result<()> {
        self.refuse_row_type_uses(table)?;
        for sequence in self.before.sequences.values() {
            if sequence.owned_by.is_some_and(|(owner, _)| owner == table.id) {
                self.remove(sequence.id)?;
            }
        }
        for index in &table.indexes {
            self.transaction.drop_database(&index_tree(index.id))?;
        }
        self.transaction.drop_database(&rows_tree(table))?;
        // What it refers to is not referred to any more: who deletes there need not look here.
        for key in &table.foreign_keys {
            if key.parent != table.id && self.is_there(key.parent)? {
                self.regenerate_other(key.parent)?;
            }
        }
        self.remove(table.id)
    }

    /// Whether an object that was there has not been removed by this change.
    fn is_there(&self, id: ObjectId) -> Result<bool> {
        let key = [&[crate::catalog::OBJECT][..], &id.0.to_be_bytes()].concat();
        Ok(self.catalog.objects.exists(self.transaction, &key)?)
    }
}
