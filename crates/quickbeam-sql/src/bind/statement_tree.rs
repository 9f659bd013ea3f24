//! Statements that consist of others or do several things, whose names and types are known.

use std::sync::Arc;

use super::{Change, CommonTable, From, Insert, OutputColumn, Query, Subquery};
use crate::catalog::Table;
use crate::expression::Expr;

/// A statement that reads or changes rows.
#[derive(Clone, Debug)]
pub enum BoundStatement {
    /// A query.
    Query(Query),
    /// INSERT.
    Insert(Insert),
    /// UPDATE or DELETE.
    Change(Change),
    /// MERGE.
    Merge(MergeStatement),
    /// A statement whose WITH changes rows.
    ChangingWith(ChangingWith),
}

impl BoundStatement {
    /// Returns the columns of the rows that the statement returns.
    pub fn columns(&self) -> &[OutputColumn] {
        let returning = match self {
            BoundStatement::Query(query) => return &query.columns,
            BoundStatement::ChangingWith(with) => return with.main.columns(),
            BoundStatement::Merge(_) => return &[],
            BoundStatement::Insert(insert) => &insert.returning,
            BoundStatement::Change(change) => &change.returning,
        };
        returning.as_ref().map_or(&[][..], |returning| &returning.columns)
    }
}

/// A statement whose WITH changes rows. All its parts read the rows that were there before it.
#[derive(Clone, Debug)]
pub struct ChangingWith {
    /// The stored queries and the changes of WITH, in order.
    pub parts: Vec<WithPart>,
    /// What follows WITH.
    pub main: Box<BoundStatement>,
}

/// A part of WITH.
#[derive(Clone, Debug)]
pub struct WithPart {
    /// The slot that stores its rows.
    pub slot: usize,
    /// The statement.
    pub statement: BoundStatement,
    /// Whether another part or the main statement reads its rows.
    pub is_read: bool,
}

/// MERGE: for each row of the source joined with the target, the action of the first clause whose
/// condition holds.
#[derive(Clone, Debug)]
pub struct MergeStatement {
    /// Common table expressions that are computed once and stored, in order.
    pub with: Vec<CommonTable>,
    /// The target.
    pub table: Arc<Table>,
    /// The slot of its rows.
    pub slot: usize,
    /// The slot of a row that is inserted.
    pub new_slot: usize,
    /// The source, joined with the target.
    pub from: From,
    /// ON, if rows without a match do nothing.
    pub filter: Vec<Expr>,
    /// Subqueries of the clauses.
    pub subqueries: Vec<Subquery>,
    /// The WHEN clauses, in order.
    pub clauses: Vec<MergeClause>,
}

/// A WHEN clause of MERGE.
#[derive(Clone, Debug)]
pub struct MergeClause {
    /// Whether it is for source rows with a match in the target, or for those without.
    pub is_matched: bool,
    /// The condition after AND.
    pub condition: Option<Expr>,
    /// The action.
    pub action: MergeAction,
}

/// What MERGE does for a row.
#[derive(Clone, Debug)]
pub enum MergeAction {
    /// DO NOTHING.
    Nothing,
    /// DELETE.
    Delete,
    /// UPDATE: columns and their values.
    Update(Vec<(usize, Expr)>),
    /// INSERT: a value for each column.
    Insert(Vec<Expr>),
}
