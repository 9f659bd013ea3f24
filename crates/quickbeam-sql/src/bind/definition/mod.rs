//! Definitions: CREATE, ALTER, DROP, TRUNCATE.
//!
//! Above: sessions, which hand the changes to the catalog. What a table is made of is in the files below.

mod alter;
mod constraints;
mod kept;
mod sequences;
mod table;

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{self, ObjectType};

use super::{Binder, fold, object_name};
use crate::catalog::{
    NewCheck, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, SequenceOptions,
};
use crate::error::{Result, SqlError, SqlState};
use crate::types::Value;

pub use kept::{check_of, column_default};
pub use table::table_for;

use constraints::{method_of, plain_column};

/// A change of the catalog.
#[derive(Clone, Debug)]
pub enum CatalogChange {
    /// CREATE TABLE; true: IF NOT EXISTS.
    CreateTable(NewTable, bool),
    /// CREATE INDEX; true: IF NOT EXISTS.
    CreateIndex(NewIndex, bool),
    /// CREATE VIEW: name, columns, text; true: OR REPLACE.
    CreateView(SmolStr, Vec<SmolStr>, Arc<str>, bool),
    /// CREATE SEQUENCE; true: IF NOT EXISTS.
    CreateSequence(SmolStr, SequenceOptions, bool),
    /// ALTER SEQUENCE … RESTART; none: with its first value.
    RestartSequence(SmolStr, Option<i64>),
    /// DROP of tables, views, indexes or sequences: IF EXISTS, CASCADE.
    Drop(ObjectKind, Vec<SmolStr>, bool, bool),
    /// TRUNCATE: names, CASCADE, RESTART IDENTITY.
    Truncate(Vec<SmolStr>, bool, bool),
    /// ALTER TABLE; true: IF EXISTS.
    Alter(SmolStr, Vec<TableChange>, bool),
}

/// What can be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
}

/// One change of ALTER TABLE.
#[derive(Clone, Debug)]
pub enum TableChange {
    /// ADD COLUMN with the value of rows that are there; true: IF NOT EXISTS.
    AddColumn(NewColumn, Value, bool),
    /// DROP COLUMN: IF EXISTS, CASCADE.
    DropColumn(SmolStr, bool, bool),
    /// RENAME COLUMN.
    RenameColumn(SmolStr, SmolStr),
    /// RENAME TO.
    Rename(SmolStr),
    /// ADD PRIMARY KEY.
    AddPrimaryKey(NewKey),
    /// ADD UNIQUE.
    AddUnique(NewKey),
    /// ADD CHECK.
    AddCheck(NewCheck),
    /// ADD FOREIGN KEY.
    AddForeignKey(NewForeignKey),
    /// DROP CONSTRAINT: IF EXISTS, CASCADE.
    DropConstraint(SmolStr, bool, bool),
    /// SET or DROP NOT NULL.
    NotNull(SmolStr, bool),
    /// SET or DROP DEFAULT.
    Default(SmolStr, Option<Arc<str>>),
}

impl Binder<'_> {
    /// CREATE INDEX.
    pub fn create_index(&mut self, create: &ast::CreateIndex) -> Result<CatalogChange> {
        if create.predicate.is_some()
            || !create.include.is_empty()
            || create.nulls_distinct == Some(false)
        {
            return Err(SqlError::unsupported(
                "an index with a condition, with INCLUDE or NULLS NOT DISTINCT",
            ));
        }
        let table = self.table(&create.table_name)?;
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            let name = plain_column(column)?;
            let options = &column.column.options;
            let descending = matches!(options.sort, Some(ast::OrderBySort::Desc));
            columns.push((name, descending, options.nulls_first));
        }
        let name = create.name.as_ref().map(object_name).transpose()?;
        let method = method_of(create.using.as_ref())?;
        let index =
            NewIndex { name, table: table.name.clone(), columns, unique: create.unique, method };
        Ok(CatalogChange::CreateIndex(index, create.if_not_exists))
    }

    /// CREATE VIEW.
    pub fn create_view(&mut self, create: &ast::CreateView) -> Result<CatalogChange> {
        if create.materialized || create.temporary {
            return Err(SqlError::unsupported("this form of CREATE VIEW"));
        }
        let name = object_name(&create.name)?;
        let query = self.query(&create.query, None)?;
        if !self.parameters.is_empty() {
            let message = "a view may not have parameters";
            return Err(SqlError::new(SqlState::UndefinedParameter, message));
        }
        if let Some(excess) = create.columns.get(query.columns.len()) {
            let message = "CREATE VIEW specifies more column names than columns";
            let position = self.place_of(&excess.name);
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        let given = create.columns.iter().map(|column| fold(&column.name)).collect::<Vec<_>>();
        let columns =
            self.columns_for(&query, &given).into_iter().map(|column| column.name).collect();
        let text = create.query.to_string().into();
        Ok(CatalogChange::CreateView(name, columns, text, create.or_replace))
    }

    /// DROP.
    pub fn drop(
        &mut self,
        kind: ObjectType,
        names: &[ast::ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<CatalogChange> {
        let kind = match kind {
            ObjectType::Table => ObjectKind::Table,
            ObjectType::View => ObjectKind::View,
            ObjectType::Index => ObjectKind::Index,
            ObjectType::Sequence => ObjectKind::Sequence,
            other => return Err(SqlError::unsupported(format!("DROP {other}"))),
        };
        let names = names.iter().map(object_name).collect::<Result<_>>()?;
        Ok(CatalogChange::Drop(kind, names, if_exists, cascade))
    }

    /// TRUNCATE.
    pub fn truncate(&mut self, truncate: &ast::Truncate) -> Result<CatalogChange> {
        let names = truncate
            .table_names
            .iter()
            .map(|target| object_name(&target.name))
            .collect::<Result<_>>()?;
        let cascade = matches!(truncate.cascade, Some(ast::CascadeOption::Cascade));
        let restart = matches!(truncate.identity, Some(ast::TruncateIdentityOption::Restart));
        Ok(CatalogChange::Truncate(names, cascade, restart))
    }
}
