//! ALTER … RENAME and ALTER … SET SCHEMA of tables, views, sequences and indexes.

use std::collections::BTreeMap;
use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_name};
use crate::catalog::Catalog;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::column_exists;
use crate::schema::names::{lookup_name, split_lookup_name};
use crate::schema::{Index, Materialized, ObjectId, Relation, Sequence, Table, View};

/// What becomes of the stored texts that name a relation.
pub(crate) struct StoredTexts<'t> {
    /// The new queries of views and materialized views.
    pub queries: BTreeMap<ObjectId, Arc<str>>,
    /// Returns a text with the new name in its literals, if it has the old one there.
    pub literals: &'t dyn Fn(&str) -> Option<String>,
}

impl StoredTexts<'_> {
    fn rewrite(&self, text: &mut Arc<str>) -> bool {
        let rewritten = (self.literals)(text);
        let is_new = rewritten.is_some();
        if let Some(rewritten) = rewritten {
            *text = rewritten.into();
        }
        is_new
    }

    fn rewrite_view(&self, view: &mut View) -> bool {
        let query = self.queries.get(&view.id).cloned();
        let mut is_new = query.is_some();
        view.query = query.unwrap_or_else(|| view.query.clone());
        is_new |= self.rewrite(&mut view.query);
        view.defaults.values_mut().for_each(|text| is_new |= self.rewrite(text));
        is_new
    }

    fn rewrite_table(&self, table: &mut Table) -> bool {
        let mut is_new = false;
        if let Some(materialized) = &mut table.materialized {
            let query = self.queries.get(&table.id).cloned();
            is_new |= query.is_some();
            let mut query = query.unwrap_or_else(|| materialized.query.clone());
            is_new |= self.rewrite(&mut query);
            *materialized = Arc::new(Materialized { query, ..(**materialized).clone() });
        }
        let defaults = table.columns.iter_mut().filter_map(|column| column.default.as_mut());
        let checks = table.checks.iter_mut().map(|check| &mut check.expression);
        defaults.chain(checks).for_each(|text| is_new |= self.rewrite(text));
        is_new
    }
}

impl Catalog {
    /// Gives a relation another lookup name. What belongs to a table goes into its schema with it.
    pub(crate) fn rename_relation(
        &self,
        transaction: &Transaction,
        relation: &Relation,
        to: &str,
        texts: &StoredTexts<'_>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let (schema, name) = split_lookup_name(to);
        check_name(name)?;
        if !matches!(relation, Relation::Index(..)) {
            change.check_no_type(to)?;
        }
        let (mut tables, mut views) = (BTreeMap::new(), BTreeMap::new());
        match relation {
            Relation::Table(table) => {
                let moved = Table { schema, name: name.into(), ..(**table).clone() };
                change.check_target(to, &table.schema)?;
                if moved.schema != table.schema {
                    change.move_parts(table, &moved.schema)?;
                }
                tables.insert(table.id, moved);
            }
            Relation::View(view) => {
                change.check_target(to, &view.schema)?;
                let moved = View { schema, name: name.into(), ..(**view).clone() };
                views.insert(view.id, moved);
            }
            Relation::Sequence(sequence) => {
                change.check_target(to, &sequence.schema)?;
                let moved = Sequence { schema, name: name.into(), ..(**sequence).clone() };
                change.put_sequence(moved)?;
            }
            Relation::Index(table, index) => {
                change.check_target(to, &table.schema)?;
                let mut table = (**table).clone();
                table.rename_index(index, name);
                tables.insert(table.id, table);
            }
        }
        change.rewrite_texts(tables, views, texts)
    }

    /// Gives the column of a view another name.
    pub(crate) fn rename_view_column(
        &self,
        transaction: &Transaction,
        view: &View,
        (from, to): (&str, &SmolStr),
        texts: &StoredTexts<'_>,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        check_name(to)?;
        if view.columns.contains(to) {
            return Err(column_exists(&view.name, to));
        }
        let mut view = view.clone();
        view.columns.iter_mut().filter(|name| *name == from).for_each(|name| *name = to.clone());
        change.rewrite_texts(BTreeMap::new(), [(view.id, view)].into(), texts)
    }
}

impl Table {
    fn rename_index(&mut self, index: &Index, name: &str) {
        let own = self.indexes.iter_mut().find(|known| known.id == index.id);
        match (own, &mut self.primary_key) {
            (Some(known), _) => Arc::make_mut(known).name = name.into(),
            (None, Some(key)) => key.name = name.into(),
            (None, None) => {}
        }
    }
}

impl CatalogChange<'_> {
    /// Refuses a lookup name that something has. The message names the schema if it is another one.
    fn check_target(&self, to: &str, from_schema: &str) -> Result<()> {
        let (schema, name) = split_lookup_name(to);
        self.check_free(to).map_err(|error| {
            if schema == from_schema || error.state() != SqlState::DuplicateTable {
                return error;
            }
            let message = format!("relation \"{name}\" already exists in schema \"{schema}\"");
            SqlError::new(SqlState::DuplicateTable, message)
        })
    }

    /// Moves the sequences of a table to another schema, in which the names of these and of its
    /// indexes have to be free.
    fn move_parts(&self, table: &Table, schema: &SmolStr) -> Result<()> {
        let indexes = table.indexes.iter().map(|index| &index.name);
        let keys = table.primary_key.iter().map(|key| &key.name);
        for name in indexes.chain(keys) {
            self.check_target(&lookup_name(schema, name), &table.schema)?;
        }
        let is_own = |it: &&Arc<Sequence>| it.owned_by.is_some_and(|(owner, _)| owner == table.id);
        for sequence in self.before.sequences.values().filter(is_own) {
            self.check_target(&lookup_name(schema, &sequence.name), &table.schema)?;
            self.put_sequence(Sequence { schema: schema.clone(), ..(**sequence).clone() })?;
        }
        Ok(())
    }

    /// Writes tables and views that have changed, and all others whose texts have.
    pub(super) fn rewrite_texts(
        &self,
        mut tables: BTreeMap<ObjectId, Table>,
        mut views: BTreeMap<ObjectId, View>,
        texts: &StoredTexts<'_>,
    ) -> Result<()> {
        for before in self.before.tables.values() {
            let changed = tables.remove(&before.id);
            let (is_changed, mut table) =
                (changed.is_some(), changed.unwrap_or_else(|| (**before).clone()));
            if texts.rewrite_table(&mut table) || is_changed {
                self.put_table(&table)?;
            }
        }
        for before in self.before.views.values() {
            let changed = views.remove(&before.id);
            let (is_changed, mut view) =
                (changed.is_some(), changed.unwrap_or_else(|| (**before).clone()));
            if texts.rewrite_view(&mut view) || is_changed {
                self.put_view(view)?;
            }
        }
        for before in self.before.domains.values() {
            let mut domain = (**before).clone();
            let checks = domain.checks.iter_mut().map(|check| &mut check.expression);
            let mut is_new = false;
            domain.default.iter_mut().chain(checks).for_each(|text| is_new |= texts.rewrite(text));
            if is_new {
                self.put_domain(domain)?;
            }
        }
        Ok(())
    }
}
