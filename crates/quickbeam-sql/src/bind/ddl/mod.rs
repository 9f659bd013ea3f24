//! Definitions: CREATE, ALTER, DROP, TRUNCATE.
//!
//! Above: sessions, which hand the changes to the catalog. The files below bind the parts of a
//! table.

mod alter;
mod constraints;
mod generated;
mod index_expressions;
mod like;
mod schemas;
mod sequences;
mod storage_parameters;
mod stored_expressions;
mod table;
mod table_outline;
mod views;

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{self, ObjectType};

use super::{Binder, fold};
use crate::bind::ddl::table_outline::OnMissing;
use crate::bind::rights::Right;
use crate::catalog::{
    DeclaredType, IndexConstraint, Method, NewCheck, NewColumn, NewForeignKey, NewIdentity,
    NewIndex, NewKey, NewTable, NewView, Privileges, SequenceChanges, SequenceOptions,
    TriggerState, ViewChange,
};
use crate::error::{Result, SqlError};
use crate::parse::{
    AccessStatement, CollationStatement, ColumnAction, CommentStatement, RelationStatement,
    RoutineStatement, SchemaStatement, TypeStatement,
};
use crate::schema::errors::is_not;
use crate::types::Value;

pub use generated::generated_columns;
pub(in crate::bind) use index_expressions::key_column;
pub use index_expressions::{BoundIndex, ExpressionCompiler};
pub use stored_expressions::{check_of, column_default, conversion_of, view_default};
pub(in crate::bind) use stored_expressions::{kept_condition, new_condition};
pub use table::{check_create_table, on_commit_of, table_for};
pub(in crate::bind) use table_outline::ConstraintPlace;
pub use table_outline::{OnExisting, Persistence};

use constraints::method_of;
use index_expressions::check_inverted;
use storage_parameters::{check_index_parameters, check_inverted_parameters};
use table_outline::Outline;

/// A change of the catalog.
#[derive(Clone, Debug)]
pub enum CatalogChange {
    /// CREATE TABLE; true: IF NOT EXISTS.
    CreateTable(Box<NewTable>, bool),
    /// REFRESH MATERIALIZED VIEW; true: it has data then.
    Refresh(SmolStr, bool),
    /// CREATE INDEX; true: IF NOT EXISTS.
    CreateIndex(NewIndex, bool),
    /// CREATE VIEW.
    CreateView(NewView),
    /// ALTER VIEW; true: IF EXISTS.
    AlterView(SmolStr, Vec<ViewChange>, bool),
    /// CREATE SEQUENCE; true: IF NOT EXISTS.
    CreateSequence(SmolStr, SequenceOptions, bool),
    /// ALTER SEQUENCE.
    AlterSequence(SmolStr, SequenceChanges),
    /// DROP of tables, views, indexes or sequences: IF EXISTS, CASCADE.
    Drop(ObjectKind, Vec<SmolStr>, bool, bool),
    /// TRUNCATE: names, CASCADE, RESTART IDENTITY.
    Truncate(Vec<SmolStr>, bool, bool),
    /// ALTER TABLE; true: IF EXISTS.
    Alter(SmolStr, Vec<TableChange>, bool),
    /// CREATE SCHEMA; true: IF NOT EXISTS; the owner of AUTHORIZATION.
    CreateSchema(SmolStr, bool, Option<SmolStr>),
    /// ALTER SCHEMA … RENAME TO.
    RenameSchema(SmolStr, SmolStr),
    /// DROP SCHEMA: names, IF EXISTS, CASCADE.
    DropSchemas(Vec<SmolStr>, bool, bool),
    /// A change of roles, rights or owners.
    Access(Arc<AccessStatement>),
    /// A change of functions or procedures.
    Routine(Arc<RoutineStatement>),
    /// A change of types.
    Type(Arc<TypeStatement>),
    /// A change of collations.
    Collation(Arc<CollationStatement>),
    /// RENAME or SET SCHEMA of a relation.
    Relation(Arc<RelationStatement>),
    /// CREATE SCHEMA with elements.
    Schema(Arc<SchemaStatement>),
    /// COMMENT ON.
    Comment(Arc<CommentStatement>),
}

/// The kinds of objects that can be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
}

/// One change of ALTER TABLE.
#[derive(Clone, Debug)]
pub enum TableChange {
    /// ADD COLUMN with the value for existing rows; true: IF NOT EXISTS.
    AddColumn(NewColumn, Option<Value>, bool),
    /// ADD COLUMN IF NOT EXISTS of a column that is there.
    Existing(SmolStr),
    /// DROP COLUMN: IF EXISTS, CASCADE.
    DropColumn(SmolStr, bool, bool),
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
    /// RENAME CONSTRAINT.
    RenameConstraint(SmolStr, SmolStr),
    /// VALIDATE CONSTRAINT.
    Validate(SmolStr),
    /// ADD UNIQUE or, if true, ADD PRIMARY KEY with the constraint's name, USING INDEX.
    UseIndex(IndexConstraint),
    /// ALTER COLUMN … TYPE with the text of USING.
    Type(SmolStr, DeclaredType, Option<Arc<str>>),
    /// ALTER COLUMN … DROP EXPRESSION or DROP IDENTITY.
    Column(SmolStr, ColumnAction),
    /// ALTER COLUMN … SET GENERATED, ALWAYS if true, and changes of its sequence.
    Identity(SmolStr, Option<bool>, SequenceChanges),
    /// ALTER COLUMN … ADD GENERATED … AS IDENTITY.
    AddIdentity(SmolStr, NewIdentity),
    /// ENABLE or DISABLE TRIGGER; `None`: all triggers.
    Triggers(Option<SmolStr>, TriggerState),
}

impl Binder<'_> {
    /// CREATE INDEX.
    pub fn create_index(&mut self, create: &ast::CreateIndex) -> Result<CatalogChange> {
        // Other options that the parser accepts would have no effect.
        let plain = ast::CreateIndex {
            name: create.name.clone(),
            table_name: create.table_name.clone(),
            using: create.using.clone(),
            columns: create.columns.clone(),
            unique: create.unique,
            concurrently: create.concurrently,
            r#async: false,
            if_not_exists: create.if_not_exists,
            include: create.include.clone(),
            nulls_distinct: create.nulls_distinct,
            with: create.with.clone(),
            predicate: create.predicate.clone(),
            index_options: Vec::new(),
            alter_options: Vec::new(),
        };
        if *create != plain {
            let what = "this form of CREATE INDEX";
            return Err(SqlError::unsupported(what));
        }
        let table = self.defined_table(&create.table_name, Right::Owns)?;
        let (unique, table_name) = (create.unique, table.lookup_name());
        let is_inverted = matches!(create.using, Some(ast::IndexType::GIN));
        let method = match is_inverted {
            true => Method::Range,
            false => method_of(create.using.as_ref())?,
        };
        let mut index = NewIndex { table: table_name, unique, method, ..NewIndex::default() };
        index.concurrently = create.concurrently;
        index.nulls_not_distinct = create.nulls_distinct == Some(false);
        if is_inverted {
            check_inverted(create)?;
            check_inverted_parameters(&create.with)?;
        } else {
            check_index_parameters(&create.with, method)?;
        }
        if let Some(name) = &create.name {
            let (name, is_there) =
                self.new_relation_in(&table.schema, name, OnExisting::from(create.if_not_exists))?;
            index.name = Some(name);
            if is_there {
                return Ok(CatalogChange::CreateIndex(index, true));
            }
        }
        let outline = Outline::of(&table);
        if is_inverted {
            self.inverted_key(&create.columns, &outline, &mut index)?;
        } else {
            self.index_keys(&create.columns, &outline, &mut index)?;
        }
        if let Some(predicate) = &create.predicate {
            index.predicate = Some(self.index_predicate(predicate, &outline)?);
        }
        for name in &create.include {
            self.known_column(&outline, name)?;
            index.include.push(fold(name));
        }
        Ok(CatalogChange::CreateIndex(index, create.if_not_exists))
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
            ObjectType::Schema => {
                let names =
                    names.iter().map(|name| self.known_schema(name, OnMissing::from(if_exists)));
                let names = names.collect::<Result<_>>()?;
                return Ok(CatalogChange::DropSchemas(names, if_exists, cascade));
            }
            ObjectType::Table => ObjectKind::Table,
            ObjectType::View => ObjectKind::View,
            ObjectType::MaterializedView => ObjectKind::MaterializedView,
            ObjectType::Index => ObjectKind::Index,
            ObjectType::Sequence => ObjectKind::Sequence,
            other => return Err(SqlError::unsupported(format!("DROP {other}"))),
        };
        let names =
            names.iter().map(|name| self.known_object(kind, name, OnMissing::from(if_exists)));
        let names = names.collect::<Result<_>>()?;
        Ok(CatalogChange::Drop(kind, names, if_exists, cascade))
    }

    /// TRUNCATE.
    pub fn truncate(&mut self, truncate: &ast::Truncate) -> Result<CatalogChange> {
        let ast::Truncate {
            table_names, partitions: None, if_exists: false, on_cluster: None, ..
        } = truncate
        else {
            return Err(SqlError::unsupported("this form of TRUNCATE"));
        };
        let mut names = Vec::with_capacity(table_names.len());
        for target in table_names {
            let right = Right::Whole(Privileges::TRUNCATE);
            let table = self.defined_table(&target.name, right)?;
            if table.materialized.is_some() {
                let place = self.position(&target.name) as usize;
                return Err(is_not(&table.lookup_name(), "a table").at(place));
            }
            names.push(table.lookup_name());
        }
        let cascade = matches!(truncate.cascade, Some(ast::CascadeOption::Cascade));
        let restart = matches!(truncate.identity, Some(ast::TruncateIdentityOption::Restart));
        Ok(CatalogChange::Truncate(names, cascade, restart))
    }
}
