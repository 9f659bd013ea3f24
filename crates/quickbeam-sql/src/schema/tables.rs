//! The objects of the catalog as they are in memory: shared, never changed; a change makes new
//! ones.
//!
//! - SCHEMA-1: columns are named by their position in [`Table::columns`] everywhere in memory, and
//!   by [`Column::id`], which never changes and is never used again, everywhere on disk.
//! - SCHEMA-2: tables, views, sequences and indexes share one space of names. Names are as the
//!   parser folded them.

use std::collections::BTreeMap;
use std::sync::Arc;

use quickbeam::AccessMethod;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::indexes::{
    EXPRESSIONS, IndexExpression, IndexPredicate, OperatorClass, OperatorClasses,
};
use super::names::{is_public, lookup_name, public};
use super::objects::{ConstraintTiming, ObjectId};
use super::triggers::Trigger;
use super::user_types::DomainUse;
use super::views::{Materialized, View};
use crate::error::{Result, SqlError, SqlState};
use crate::types::collation::LIBRARY_VERSION;
use crate::types::{Collation, DataType, Value};

/// How the records of a table or index are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Method {
    /// In the order of their keys.
    #[default]
    Range,
    /// By equality of the whole key only (`USING HASH`).
    Hash,
    /// By the keys that the values have (`USING gin`).
    Inverted(OperatorClasses),
}

/// What a name means.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table.
    Table(Arc<Table>),
    /// A view.
    View(Arc<View>),
    /// A sequence.
    Sequence(Arc<Sequence>),
    /// An index, and the table it belongs to.
    Index(Arc<Table>, Arc<Index>),
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its number.
    pub id: ObjectId,
    /// Its schema, that of its indexes, too.
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The primary key that its rows are stored by. A table without one keeps its rows by a hidden
    /// row id, also one whose primary key is an index ([`Index::is_primary`]).
    pub primary_key: Option<PrimaryKey>,
    /// Its secondary indexes, those of UNIQUE constraints among them.
    pub indexes: Vec<Arc<Index>>,
    /// Its CHECK constraints.
    pub checks: Vec<Check>,
    /// Its FOREIGN KEY constraints.
    pub foreign_keys: Vec<ForeignKey>,
    /// Foreign keys, of any table, that point here.
    pub referenced_by: Vec<Reference>,
    /// Its triggers, by name.
    pub triggers: Vec<Arc<Trigger>>,
    /// Counts the changes of the definition; part of the names of the table's trees.
    pub generation: u32,
    /// The form in which rows are written now, and those in which there may be rows.
    pub(crate) layouts: crate::schema::encoding::Layouts,
    /// The number of the next column made.
    pub(crate) next_column: u16,
    /// Comments, by the number of their column; that of the table itself by 0.
    pub comments: BTreeMap<u16, Arc<str>>,
    /// Comments on its constraints, by their names.
    pub constraint_comments: BTreeMap<SmolStr, Arc<str>>,
    /// What it is made of, if it is a materialized view.
    pub materialized: Option<Arc<Materialized>>,
    /// A database of the engine seen as a table: its name.
    pub(crate) database: Option<SmolStr>,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its number within the table (SCHEMA-1).
    pub id: u16,
    /// Its name.
    pub name: SmolStr,
    /// Its type.
    pub data_type: DataType,
    /// Its domain (TYPE-1).
    pub domain: Option<DomainUse>,
    /// Its collation, if COLLATE names one.
    pub collation: Option<Collation>,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The text of its DEFAULT expression, or of the expression of a generated column.
    pub default: Option<Arc<str>>,
    /// GENERATED ALWAYS AS (…) STORED: the numbers of the columns that the expression reads.
    pub generated: Option<Vec<u16>>,
    /// Whether, and from what, values are generated.
    pub identity: Option<Identity>,
    /// Its value in rows that are older than the column.
    pub missing: Value,
}

/// GENERATED … AS IDENTITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// ALWAYS, not BY DEFAULT.
    pub always: bool,
    /// Where the values come from.
    pub sequence: ObjectId,
}

/// A primary key: its columns are the key of the table's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryKey {
    /// The constraint's name.
    pub name: SmolStr,
    /// Positions of its columns.
    pub columns: Vec<usize>,
    /// How rows are found.
    pub method: Method,
}

/// A schema besides `public` and those of the system catalogs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Its number.
    pub id: ObjectId,
    /// Its name.
    pub name: SmolStr,
}

impl Table {
    /// The name under which the catalog finds it.
    #[must_use]
    pub fn lookup_name(&self) -> SmolStr {
        lookup_name(&self.schema, &self.name)
    }
}

impl Sequence {
    /// The name under which the catalog finds it.
    #[must_use]
    pub fn lookup_name(&self) -> SmolStr {
        lookup_name(&self.schema, &self.name)
    }
}

impl Column {
    /// Returns the collation whose sort keys stand for the column's texts in indexes.
    #[must_use]
    pub fn key_collation(&self) -> Option<Collation> {
        self.collation.filter(|own| self.data_type.is_text() && own.has_sort_keys())
    }
}

impl Table {
    /// What the table's tree is made as.
    #[must_use]
    pub fn access_method(&self) -> AccessMethod {
        match &self.primary_key {
            Some(PrimaryKey { method: Method::Hash, .. }) => AccessMethod::Hash,
            _ => AccessMethod::BTree,
        }
    }
}

impl Index {
    /// Returns the access method of the index's tree. A hash index that is not unique stores the
    /// row's key after the indexed values: its tree is a hash database of groups, one for the rows
    /// with equal values.
    #[must_use]
    pub fn access_method(&self) -> AccessMethod {
        match self.method {
            Method::Hash if self.unique => AccessMethod::Hash,
            Method::Hash => AccessMethod::HashPrefix,
            Method::Range | Method::Inverted(_) => AccessMethod::BTree,
        }
    }
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number.
    pub id: ObjectId,
    /// Its name.
    pub name: SmolStr,
    /// What it is sorted by.
    pub columns: Vec<KeyColumn>,
    /// Whether two rows may never have the same values, none of them NULL. Two may for a while if
    /// it is [deferrable](Self::timing).
    pub unique: bool,
    /// How entries are found.
    pub method: Method,
    /// Whether it is a UNIQUE constraint: then it goes with DROP CONSTRAINT, not with DROP INDEX.
    pub is_constraint: bool,
    /// Positions of the columns of INCLUDE. Its entries do not have their values.
    pub include: Vec<usize>,
    /// NULLS NOT DISTINCT: two rows may not have the same values, also if some are NULL.
    pub nulls_not_distinct: bool,
    /// Its expressions, in their order among `columns`.
    pub expressions: Vec<IndexExpression>,
    /// The predicate of a partial index.
    pub predicate: Option<IndexPredicate>,
    /// When a constraint that is DEFERRABLE is checked. Its entries are those of an index that is
    /// not unique.
    pub timing: ConstraintTiming,
    /// Whether it is a PRIMARY KEY that is DEFERRABLE, or has texts under a collation of ICU.
    pub is_primary: bool,
    /// The version of the library whose sort keys are in its entries, if any are.
    pub collation_version: Option<SmolStr>,
}

impl Index {
    /// Returns whether two rows may not have the same values once it is checked.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.unique || self.timing.is_deferrable()
    }

    /// Returns whether its entries have sort keys of another version of the collation library, so
    /// that they may be in another order than texts have now.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.collation_version.as_ref().is_some_and(|version| version != LIBRARY_VERSION)
    }

    /// Fails if the entries have sort keys of another version of the collation library.
    ///
    /// # Errors
    /// See above.
    pub fn check_current(&self) -> Result<()> {
        match &self.collation_version {
            Some(version) if version != LIBRARY_VERSION => Err(stale(&self.name, version)),
            _ => Ok(()),
        }
    }

    /// Returns whether values of its columns have the same key exactly if they are equal under the
    /// collations of the columns.
    #[must_use]
    pub fn has_equality_of_columns(&self, table: &Table) -> bool {
        self.columns.iter().all(|key| match table.columns.get(key.position) {
            Some(column) => {
                let own = column.key_collation().filter(|own| !own.is_deterministic());
                own.is_none_or(|own| key.collation == Some(own))
            }
            None => true,
        })
    }

    /// Returns whether its entries depend on more than the values of columns.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        !self.expressions.is_empty() || self.predicate.is_some()
    }

    /// Returns the operator classes of its keys, if it is an inverted index.
    #[inline]
    #[must_use]
    pub fn inverted(&self) -> Option<OperatorClasses> {
        match self.method {
            Method::Inverted(classes) => Some(classes),
            Method::Range | Method::Hash => None,
        }
    }

    /// Returns the operator class of the key column with that number, if it is an inverted index.
    #[must_use]
    pub fn inverted_key(&self, number: usize) -> Option<OperatorClass> {
        self.inverted()?.get(number)
    }

    /// Returns whether it has the entries of some rows only.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.predicate.is_some()
    }

    /// Returns the expression at a position of its key columns.
    #[must_use]
    pub fn expression(&self, position: usize) -> Option<&IndexExpression> {
        self.expressions.get(position.checked_sub(EXPRESSIONS)?)
    }

    /// Returns whether an expression or the predicate reads the column of that number.
    #[must_use]
    pub fn computes_from(&self, column: u16) -> bool {
        let expressions = self.expressions.iter().any(|it| it.columns.contains(&column));
        expressions || self.predicate.as_ref().is_some_and(|it| it.columns.contains(&column))
    }

    /// Returns the numbers of the columns that its expressions and its predicate read.
    pub fn computed_from(&self) -> impl Iterator<Item = u16> + '_ {
        let expressions = self.expressions.iter().flat_map(|it| &it.columns);
        expressions.chain(self.predicate.iter().flat_map(|it| &it.columns)).copied()
    }

    /// Returns the collation of a key if it is not that of its column. `None` in it: the order of
    /// bytes.
    #[must_use]
    pub fn other_collation(&self, table: &Table, key: &KeyColumn) -> Option<Option<Collation>> {
        let own = table.columns.get(key.position)?.key_collation();
        (own != key.collation && self.inverted().is_none()).then_some(key.collation)
    }

    /// Returns the type of the values at a position of its key columns.
    #[must_use]
    pub fn key_type(&self, table: &Table, position: usize) -> Option<DataType> {
        match self.expression(position) {
            Some(expression) => Some(expression.data_type),
            None => Some(table.columns.get(position)?.data_type),
        }
    }

    /// Returns the name of what is at a position of its key columns: of a column, or the text of an
    /// expression.
    #[must_use]
    pub fn key_name<'n>(&'n self, table: &'n Table, position: usize) -> &'n str {
        match (self.expression(position), table.columns.get(position)) {
            (Some(expression), _) => &expression.text,
            (None, Some(column)) => &column.name,
            (None, None) => "",
        }
    }
}

#[cold]
fn stale(index: &str, version: &str) -> SqlError {
    let message =
        format!("index \"{index}\" has the order of another version of the collation library");
    SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
        .with_detail(format!(
            "It was built with version {version}, but this program has version {LIBRARY_VERSION}."
        ))
        .with_hint(format!("Build it again by REINDEX INDEX {index}."))
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its position in the table, or that of an expression ([`EXPRESSIONS`](super::EXPRESSIONS)).
    pub position: usize,
    /// Whether larger values come first.
    pub descending: bool,
    /// Whether NULLs come first.
    pub nulls_first: bool,
    /// The collation of ICU by whose sort keys entries are ordered. Other texts are ordered by
    /// their bytes.
    pub collation: Option<Collation>,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name.
    pub name: SmolStr,
    /// The text of its expression.
    pub expression: Arc<str>,
    /// Numbers ([`Column::id`]) of the columns that it reads.
    pub columns: Vec<u16>,
    /// NOT VALID: rows from before the constraint may violate it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_valid: bool,
    /// NO INHERIT, which the catalogs show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_inherit: bool,
}

/// A FOREIGN KEY constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name.
    pub name: SmolStr,
    /// Positions of the referencing columns.
    pub columns: Vec<usize>,
    /// The table referred to.
    pub parent: ObjectId,
    /// Numbers ([`Column::id`]) of the columns referred to, in the order of `columns`.
    pub parent_columns: Vec<u16>,
    /// What happens to referencing rows when the row referred to goes.
    pub on_delete: ForeignKeyAction,
    /// What happens to referencing rows when its key changes.
    pub on_update: ForeignKeyAction,
    /// NOT VALID: rows from before the constraint may violate it.
    pub not_valid: bool,
    /// When it is checked.
    pub timing: ConstraintTiming,
    /// MATCH FULL: if one of its columns is NULL, all are.
    pub is_full: bool,
    /// Numbers of the columns that ON DELETE SET NULL or SET DEFAULT sets; none: all.
    pub delete_columns: Vec<u16>,
}

/// What becomes of the objects that depend on a dropped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropBehavior {
    /// They are dropped, too.
    Cascade,
    /// The statement fails if there are any.
    Restrict,
}

impl From<bool> for DropBehavior {
    fn from(cascade: bool) -> DropBehavior {
        if cascade { DropBehavior::Cascade } else { DropBehavior::Restrict }
    }
}

/// What happens to referencing rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ForeignKeyAction {
    /// An error when there are any at the end of the statement.
    #[default]
    NoAction,
    /// An error when there are any, at once.
    Restrict,
    /// They go, or change, too.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their DEFAULT values.
    SetDefault,
}

/// A foreign key that points to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The referencing table.
    pub child: ObjectId,
    /// Which of its foreign keys.
    pub foreign_key: usize,
}

/// A sequence's definition; its values are counted in storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// Its number.
    pub id: ObjectId,
    /// Its schema.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub schema: SmolStr,
    /// Its name.
    pub name: SmolStr,
    /// SMALLINT, INTEGER or BIGINT.
    pub data_type: DataType,
    /// The first value.
    pub start: i64,
    /// From one value to the next.
    pub increment: i64,
    /// The smallest value.
    pub minimum: i64,
    /// The largest value.
    pub maximum: i64,
    /// Whether it begins again after the last value.
    pub cycle: bool,
    /// The column that it goes with when that is dropped.
    pub owned_by: Option<(ObjectId, u16)>,
    /// Number of restarts. Each restart counts the given-out values from the beginning.
    pub epoch: u32,
}

impl Table {
    /// The position of the column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Returns when the constraint of that name is checked.
    #[must_use]
    pub fn timing_of(&self, name: &str) -> ConstraintTiming {
        let keys = self.foreign_keys.iter().map(|key| (&key.name, key.timing));
        let indexes = self.indexes.iter().map(|index| (&index.name, index.timing));
        let mut all = keys.chain(indexes).filter(|(known, _)| *known == name);
        all.next().map_or(ConstraintTiming::NotDeferrable, |(_, timing)| timing)
    }

    /// Returns when the constraint or the constraint trigger of that name is checked; `None` if
    /// there is none.
    #[must_use]
    pub fn known_timing(&self, name: &str) -> Option<ConstraintTiming> {
        if self.has_constraint(name) {
            return Some(self.timing_of(name));
        }
        self.triggers.iter().find(|trigger| trigger.name == name)?.constraint
    }

    /// Returns the index that is its primary key. Another primary key is no index.
    #[must_use]
    pub fn primary_index(&self) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.is_primary)
    }

    /// Returns the positions of the columns of its primary key, whether rows are stored by it or
    /// not.
    #[must_use]
    pub fn primary_columns(&self) -> Option<Vec<usize>> {
        match (&self.primary_key, self.primary_index()) {
            (Some(key), _) => Some(key.columns.clone()),
            (None, Some(index)) => Some(index.columns.iter().map(|it| it.position).collect()),
            (None, None) => None,
        }
    }

    /// The position of the column of that number.
    #[must_use]
    pub fn position_of(&self, id: u16) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// Whether it is a key/value database of the engine, seen as a table with the columns `key` and
    /// `value`.
    #[must_use]
    pub fn is_database(&self) -> bool {
        self.database.is_some()
    }
}
