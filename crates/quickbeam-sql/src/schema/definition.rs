//! What a statement says of an object to be made, before it has a number.

use crate::error::Result;
use crate::types::Value;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::schema::encoding::StoredRow;
use crate::schema::{ConstraintTiming, DomainUse, ForeignKeyAction, Method, NewMaterialized};
use crate::types::{Collation, DataType};

/// CREATE TABLE.
#[derive(Clone, Debug, Default)]
pub struct NewTable {
    /// The name.
    pub name: SmolStr,
    /// The columns, in order.
    pub columns: Vec<NewColumn>,
    /// PRIMARY KEY.
    pub primary_key: Option<NewKey>,
    /// UNIQUE constraints.
    pub uniques: Vec<NewKey>,
    /// CHECK constraints.
    pub checks: Vec<NewCheck>,
    /// FOREIGN KEY constraints.
    pub foreign_keys: Vec<NewForeignKey>,
    /// Indexes, as LIKE … INCLUDING INDEXES takes them from another table.
    pub indexes: Vec<NewIndex>,
    /// Comments on columns, as LIKE … INCLUDING COMMENTS takes them.
    pub comments: Vec<(SmolStr, Arc<str>)>,
    /// ON COMMIT of a temporary table.
    pub on_commit: OnCommit,
    /// CREATE MATERIALIZED VIEW.
    pub materialized: Option<NewMaterialized>,
}

/// What a commit does with a temporary table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCommit {
    /// PRESERVE ROWS.
    #[default]
    Preserve,
    /// DELETE ROWS.
    DeleteRows,
    /// DROP.
    Drop,
}

/// A column of CREATE TABLE or ALTER TABLE … ADD COLUMN.
#[derive(Clone, Debug)]
pub struct NewColumn {
    /// The name.
    pub name: SmolStr,
    /// The type.
    pub data_type: DataType,
    /// The domain.
    pub domain: Option<DomainUse>,
    /// The collation, if one is named.
    pub collation: Option<Collation>,
    /// NOT NULL.
    pub not_null: bool,
    /// The text of DEFAULT.
    pub default: Option<Arc<str>>,
    /// GENERATED … AS IDENTITY.
    pub identity: Option<NewIdentity>,
    /// GENERATED ALWAYS AS (…) STORED.
    pub generated: Option<NewGenerated>,
}

/// GENERATED ALWAYS AS (…) STORED.
#[derive(Clone, Debug)]
pub struct NewGenerated {
    /// The text of the expression.
    pub expression: Arc<str>,
    /// Names of the columns that it reads.
    pub columns: Vec<SmolStr>,
}

/// GENERATED … AS IDENTITY.
#[derive(Clone, Debug)]
pub struct NewIdentity {
    /// ALWAYS, not BY DEFAULT.
    pub always: bool,
    /// SERIAL: the column has a DEFAULT that takes the values of the sequence.
    pub is_serial: bool,
    /// What the sequence is to be like.
    pub options: SequenceOptions,
}

/// PRIMARY KEY or UNIQUE.
#[derive(Clone, Debug, Default)]
pub struct NewKey {
    /// The constraint's name; one is made up if there is none.
    pub name: Option<SmolStr>,
    /// Names of the columns.
    pub columns: Vec<SmolStr>,
    /// USING HASH.
    pub method: Method,
    /// Names of the columns of INCLUDE.
    pub include: Vec<SmolStr>,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
    /// DEFERRABLE and INITIALLY.
    pub timing: ConstraintTiming,
}

/// PRIMARY KEY or UNIQUE, USING INDEX.
#[derive(Clone, Debug)]
pub struct IndexConstraint {
    /// The name of the index.
    pub index: SmolStr,
    /// The constraint's name, unless it is that of the index.
    pub name: Option<SmolStr>,
    /// PRIMARY KEY.
    pub is_primary: bool,
    /// DEFERRABLE and INITIALLY.
    pub timing: ConstraintTiming,
}

/// CHECK.
#[derive(Clone, Debug)]
pub struct NewCheck {
    /// The constraint's name; one is made up if there is none.
    pub name: Option<SmolStr>,
    /// The text of the expression, already known to be one over the table's columns.
    pub expression: Arc<str>,
    /// Names of the columns that it reads.
    pub columns: Vec<SmolStr>,
    /// NOT VALID: existing rows are not checked.
    pub not_valid: bool,
    /// NO INHERIT.
    pub no_inherit: bool,
}

/// FOREIGN KEY … REFERENCES.
#[derive(Clone, Debug)]
pub struct NewForeignKey {
    /// The constraint's name; one is made up if there is none.
    pub name: Option<SmolStr>,
    /// Names of the referencing columns.
    pub columns: Vec<SmolStr>,
    /// The table referred to; the table itself may be named.
    pub parent: SmolStr,
    /// Names of the columns referred to; none: the primary key.
    pub parent_columns: Vec<SmolStr>,
    /// ON DELETE.
    pub on_delete: ForeignKeyAction,
    /// ON UPDATE.
    pub on_update: ForeignKeyAction,
    /// NOT VALID: existing rows are not checked.
    pub not_valid: bool,
    /// DEFERRABLE and INITIALLY.
    pub timing: ConstraintTiming,
    /// MATCH FULL.
    pub is_full: bool,
    /// Names of the columns after ON DELETE SET NULL or SET DEFAULT; none: all.
    pub delete_columns: Vec<SmolStr>,
}

/// CREATE INDEX.
#[derive(Clone, Debug, Default)]
pub struct NewIndex {
    /// The name; one is made up if there is none.
    pub name: Option<SmolStr>,
    /// The table.
    pub table: SmolStr,
    /// Name, DESC and NULLS FIRST of each column. `None` for the latter: first exactly if DESC.
    pub columns: Vec<(SmolStr, bool, Option<bool>)>,
    /// The collations of columns that are ordered by another one than their own, with their places
    /// among `columns`; `None` for the order of bytes.
    pub collations: Vec<(usize, Option<Collation>)>,
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// UNIQUE.
    pub unique: bool,
    /// USING HASH.
    pub method: Method,
    /// Names of the columns of INCLUDE.
    pub include: Vec<SmolStr>,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
    /// Expressions, with their places among `columns`, where they have names of their own.
    pub expressions: Vec<(usize, NewIndexExpression)>,
    /// WHERE.
    pub predicate: Option<NewIndexPredicate>,
}

/// An expression of CREATE INDEX.
#[derive(Clone, Debug)]
pub struct NewIndexExpression {
    /// The text, already known to be an immutable expression over the table's columns.
    pub text: Arc<str>,
    /// The type of its values.
    pub data_type: DataType,
    /// The collation of ICU of its texts.
    pub collation: Option<Collation>,
    /// Names of the columns that it reads.
    pub columns: Vec<SmolStr>,
}

/// WHERE of CREATE INDEX.
#[derive(Clone, Debug)]
pub struct NewIndexPredicate {
    /// The text, already known to be an immutable condition over the table's columns.
    pub text: Arc<str>,
    /// Names of the columns that it reads.
    pub columns: Vec<SmolStr>,
}

/// What CREATE SEQUENCE or an identity column says; `None` is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceOptions {
    /// AS: SMALLINT, INTEGER or BIGINT.
    pub data_type: Option<DataType>,
    /// START WITH.
    pub start: Option<i64>,
    /// INCREMENT BY.
    pub increment: Option<i64>,
    /// MINVALUE.
    pub minimum: Option<i64>,
    /// MAXVALUE.
    pub maximum: Option<i64>,
    /// CYCLE.
    pub cycle: bool,
    /// SEQUENCE NAME of an identity column: the lookup name.
    pub name: Option<SmolStr>,
    /// OWNED BY: the lookup name of a table, and the name of its column.
    pub owned_by: Option<(SmolStr, SmolStr)>,
}

/// What ALTER SEQUENCE says; `None` says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceChanges {
    /// IF EXISTS.
    pub if_exists: bool,
    /// AS.
    pub data_type: Option<DataType>,
    /// START WITH.
    pub start: Option<i64>,
    /// RESTART; `None` within: with the start value.
    pub restart: Option<Option<i64>>,
    /// INCREMENT BY.
    pub increment: Option<i64>,
    /// MINVALUE; `None` within: NO MINVALUE.
    pub minimum: Option<Option<i64>>,
    /// MAXVALUE; `None` within: NO MAXVALUE.
    pub maximum: Option<Option<i64>>,
    /// CYCLE, or NO CYCLE.
    pub cycle: Option<bool>,
    /// OWNED BY: the lookup name of a table, and the name of its column; `None` within: NONE.
    pub owned_by: Option<Option<(SmolStr, SmolStr)>>,
}

/// What an added column holds in the rows that are there.
pub enum Added<'f> {
    /// The same in all of them.
    Same(Value),
    /// What is given for one after the other: each row is written again.
    Each(&'f mut dyn FnMut() -> Result<Value>),
    /// The value of a generated column, of each row.
    Generated(&'f mut dyn FnMut(StoredRow<'_>) -> Result<Value>),
}
