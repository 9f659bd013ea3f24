//! Plans: trees of operators for a statement.
//!
//! Above: statements. Below: the binder's result, the catalog. A plan is a tree of [`PlanNode`]s.
//! It is made once for a prepared statement and is valid for one version of the catalog. Every node
//! leaves its current row in its slots, and expressions read columns there. No row is copied from
//! node to node.
//!
//! - PLAN-1: a node's filter holds for every row that it returns. No condition of the statement is
//!   lost, and none is checked before the rows that it reads are current.
//! - PLAN-2: the current row of a slot stays until the node that owns the slot is asked for its
//!   next row.

mod access_path;
mod checks;
mod column_pruning;
mod cost;
mod dml;
mod explain;
mod in_list;
mod instead_of;
mod query;
mod rewrite;
mod turned_off;
mod vectorize;

use std::sync::Arc;

use crate::bind::{
    Aggregate, BoundIndex, CombineKind, LockWait, OnConflict, OutputColumn, Returning, SlotShape,
    Stored, SubqueryKind, TableFunction, ViewCheck, WindowFunction,
};
use crate::catalog::{Table, TriggerEvent};
use crate::expression::{ColumnRef, Expr};
use crate::schema::InvertedOperator;
use crate::table::KeyRange;
use crate::types::{DataType, Value};

pub use column_pruning::{each_expression, prune_prefixes, request_row_ids};
pub use cost::MIN_TABLE_ROWS;
pub use dml::{plan_insert, plan_statement};
pub use explain::explain;
pub use query::select::keep_row_keys;
pub use turned_off::TurnedOff;
pub use vectorize::{
    CanVectorize, ExecutionMode, SharedPart, SharedScan, WorkerChoice, WorkerPlan,
    choose_execution_mode, produced,
};

/// The planner's statistics.
pub trait Statistics {
    /// Estimates the rows of a table.
    fn rows(&self, table: &Table) -> f64;

    /// Estimates the fraction of rows in that range of the primary key, or of the index with that
    /// number. Returns `None` without an estimate.
    fn part(&self, table: &Table, index: Option<usize>, range: &KeyRangeExpr) -> Option<f64>;

    /// Estimates the fraction of rows with one value of the first `columns` of the primary key, or
    /// of the index with that number. Returns `None` without an estimate.
    fn part_of_each(&self, table: &Table, index: Option<usize>, columns: usize) -> Option<f64>;

    /// Estimates the fraction of rows for which all conditions hold, from a sample of the rows. The
    /// conditions read nothing but constants and columns of the table, in that slot. Returns `None`
    /// without a sample.
    fn sampled_part(&self, _table: &Table, _slot: usize, _conditions: &[&Expr]) -> Option<f64> {
        None
    }

    /// Estimates the number of distinct values of a column from a sample of the rows. Returns
    /// `None` without a sample.
    fn distinct(&self, _table: &Table, _column: usize) -> Option<f64> {
        None
    }

    /// Estimates the fraction of a table's rows that have entries in an index, by its number.
    /// Returns `None` without an estimate.
    fn part_of_index(&self, _table: &Table, _index: usize) -> Option<f64> {
        None
    }

    /// Estimates the number of entries of an index, by its number, in a range of their keys.
    /// Returns `None` without an estimate.
    fn entries(&self, _table: &Table, _index: usize, _range: &KeyRange) -> Option<f64> {
        None
    }

    /// Returns the expressions and the predicate of a computed index, by its number, over rows in
    /// slot 0. Returns `None` if they cannot be bound.
    fn bound_index(&self, _table: &Table, _index: usize) -> Option<Arc<BoundIndex>> {
        None
    }

    /// Returns the part of a table's rows whose values of a column are in the column cache.
    fn cached_part(&self, _table: &Table, _column: usize) -> f64 {
        0.0
    }

    /// Returns the part of a table's rows of which the column cache has some columns.
    fn decoded_part(&self, _table: &Table) -> f64 {
        0.0
    }

    /// Returns how steps are vectorized, unless the statement is executed by rows.
    fn can_vectorize(&self) -> Option<CanVectorize<'_>> {
        None
    }

    /// Returns the plan steps that the session has turned off.
    fn turned_off(&self) -> TurnedOff {
        TurnedOff::default()
    }
}

/// How a subquery is hashed.
#[derive(Clone, Debug, Default)]
pub struct SubqueryHash {
    /// The outer keys, which the subquery's last outputs must equal.
    pub keys: Vec<Expr>,
    /// The answer of a scalar subquery for keys without rows.
    pub missing: Value,
    /// Whether the keys are a row, which is one of the subquery's rows or not.
    pub compares_rows: bool,
}

/// The access path of a table.
#[derive(Clone, Debug)]
pub enum AccessPath {
    /// All of them.
    All,
    /// By the whole primary key: at most one.
    Key(Vec<Expr>),
    /// By a range of the primary key.
    KeyRange(KeyRangeExpr),
    /// By a range of an index, by its number.
    Index(usize, KeyRangeExpr),
    /// By the keys of inverted indexes.
    Inverted(Box<InvertedPath>),
    /// The current row of the cursor of that name.
    Cursor(Expr),
}

/// The rows of which inverted indexes have the keys that some conditions ask for.
#[derive(Clone, Debug)]
pub struct InvertedPath {
    /// The conditions, of which all have to hold. They are checked of each row, too.
    pub conditions: Vec<InvertedCondition>,
}

/// A condition on what inverted indexes have the keys of.
#[derive(Clone, Debug)]
pub struct InvertedCondition {
    /// What OR joins in it, or the condition alone.
    pub parts: Vec<InvertedPart>,
    /// The condition itself.
    pub condition: Expr,
}

/// A comparison of what an inverted index has the keys of.
#[derive(Clone, Debug)]
pub struct InvertedPart {
    /// The number of the index.
    pub index: usize,
    /// The number of the key among those of the index.
    pub key: usize,
    /// The operator.
    pub operator: InvertedOperator,
    /// The other operand.
    pub operand: Expr,
    /// The comparison itself.
    pub condition: Expr,
}

impl InvertedPath {
    /// Returns the comparisons in the conditions.
    pub fn parts(&self) -> impl Iterator<Item = &InvertedPart> {
        self.conditions.iter().flat_map(|condition| &condition.parts)
    }

    /// Returns the number of the index, if there is only one.
    pub fn only_index(&self) -> Option<usize> {
        let first = self.parts().next()?.index;
        self.parts().all(|part| part.index == first).then_some(first)
    }
}

/// A range of a key: equal values of its first columns, and bounds of the next one.
#[derive(Clone, Debug, Default)]
pub struct KeyRangeExpr {
    /// Values of the first columns.
    pub equal: Vec<Expr>,
    /// Lower bound of the next column, and whether it belongs to the range.
    pub lower: Option<(Expr, bool)>,
    /// Upper bound of the next column, and whether it belongs to the range.
    pub upper: Option<(Expr, bool)>,
}

/// Access to a table.
#[derive(Clone, Debug)]
pub struct TableAccess {
    /// The slot of its rows.
    pub slot: usize,
    /// The table.
    pub table: Arc<Table>,
    /// The access path.
    pub path: AccessPath,
    /// Greatest first.
    pub backward: bool,
    /// The condition on each row.
    pub filter: Option<Expr>,
    /// The rows' keys are needed: they will be changed.
    pub keys: bool,
    /// The rows are delivered with their row ids (ROW-3).
    pub row_ids: bool,
    /// Of each row only this many bytes at its start are read, if that is known.
    pub prefix: Option<u32>,
    /// Rows expected.
    pub rows: f64,
    /// Rows of the whole table.
    pub table_rows: f64,
}

/// Kinds of joins, from the outer side's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Matching rows.
    Inner,
    /// Matching rows, and outer rows without a match.
    Left,
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub enum PlanNode {
    /// One row without columns.
    SingleRow,
    /// Rows of a table.
    Table(Box<TableAccess>),
    /// Rows of expressions.
    Values {
        /// Their slot.
        slot: usize,
        /// The rows.
        rows: Vec<Vec<Expr>>,
        /// Of one column: each value once, in order, and no NULL.
        once: bool,
    },
    /// Rows for which a condition is true.
    Filter {
        /// The rows.
        input: Box<PlanNode>,
        /// The condition.
        condition: Expr,
    },
    /// Reads the inner rows again for each outer row.
    NestedLoop {
        /// The outer rows.
        outer: Box<PlanNode>,
        /// The inner rows, which may depend on the outer row.
        inner: Box<PlanNode>,
        /// The slots of the inner rows.
        inner_slots: Vec<usize>,
        /// Which kind.
        join: Join,
        /// The condition on each pair.
        condition: Option<Expr>,
        /// The hash join that takes over if there are far more outer rows than estimated.
        guard: Option<Box<LoopGuard>>,
    },
    /// Joins rows of equal keys. One side is stored in memory.
    HashJoin(Box<HashJoin>),
    /// For each row the answer of a subquery.
    Subquery {
        /// The rows.
        input: Box<PlanNode>,
        /// The subquery.
        query: Box<QueryPlan>,
        /// The slot of the answer.
        slot: usize,
        /// The kind of the answer.
        kind: SubqueryKind,
        /// Whether the answer is the same for all rows.
        once: bool,
        /// If set, the subquery's rows are read once and hashed.
        hash: Option<Box<SubqueryHash>>,
        /// The conditions of which one must be true for a row that needs the answer. Without any,
        /// all rows need it.
        needed: Vec<Expr>,
    },
    /// Groups of rows.
    Group {
        /// The rows.
        input: Box<PlanNode>,
        /// The slot of a group.
        slot: usize,
        /// The group keys.
        keys: Vec<Expr>,
        /// GROUPING SETS: the numbers of the keys of each; empty for one set with all keys.
        sets: Vec<Vec<usize>>,
        /// The aggregates.
        aggregates: Vec<Aggregate>,
    },
    /// Distinct rows.
    Distinct {
        /// The rows.
        input: Box<PlanNode>,
        /// The values.
        outputs: Vec<Expr>,
    },
    /// Rows of values in order.
    Sort {
        /// The rows.
        input: Box<PlanNode>,
        /// The slot of the sorted rows.
        slot: usize,
        /// The values.
        outputs: Vec<Expr>,
        /// The sort keys, over the input's rows.
        keys: Vec<SortKey>,
        /// No more rows than that are needed: LIMIT and OFFSET.
        most: Option<(Expr, Option<Expr>)>,
    },
    /// Window functions over the rows, which come sorted by partition and order.
    WindowAgg(Box<WindowAgg>),
    /// Part of the rows.
    Limit {
        /// The rows.
        input: Box<PlanNode>,
        /// How many.
        limit: Option<Expr>,
        /// The number of rows skipped first.
        offset: Option<Expr>,
        /// WITH TIES: the sort keys. Rows with the keys of the last row come too.
        ties: Vec<Expr>,
    },
    /// The rows of a query in FROM.
    SubqueryScan {
        /// The query.
        query: Box<QueryPlan>,
        /// The slot of its rows.
        slot: usize,
    },
    /// A set operation.
    SetOperation {
        /// Which.
        kind: CombineKind,
        /// Equal rows all count.
        all: bool,
        /// The sides: of a UNION any number, else two.
        sides: Vec<QueryPlan>,
        /// The slot of the rows.
        slot: usize,
    },
    /// Computes common table expressions before the rows.
    With {
        /// The slots that store them, and their queries.
        tables: Vec<(usize, QueryPlan)>,
        /// The rows.
        input: Box<PlanNode>,
    },
    /// A recursive query.
    RecursiveUnion(Box<RecursiveUnion>),
    /// Stored rows.
    StoredScan(Stored),
    /// A function that returns rows.
    FunctionScan(TableFunction),
    /// A vectorized step.
    Vectorized(Box<Batch>),
    /// Locks rows until the transaction ends.
    LockRows {
        /// The rows.
        input: Box<PlanNode>,
        /// The tables, and the slots of their rows.
        tables: Vec<(usize, Arc<Table>)>,
        /// All conditions, to be checked once more when a row turns out to have changed.
        recheck: Option<Expr>,
        /// The wait option.
        wait: LockWait,
    },
}

// Each level of nested joins holds several nodes on the planner's stack: large steps are boxed.
const _: () = assert!(size_of::<PlanNode>() <= 144);

/// A vectorized step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The step: an aggregation or a sort; below these a hash join, or a filter of its rows. Or a
    /// scan whose filter is evaluated by columns.
    pub step: PlanNode,
    /// The input columns that the step reads, and their types. For a join or a filter, also those
    /// that it returns.
    pub columns: Vec<(ColumnRef, DataType)>,
    /// The workers that may help with an aggregation, or with the outer rows of a join that returns
    /// inner ones.
    pub workers: Option<WorkerPlan>,
    /// The workers that may help to read the inner rows of a join.
    pub build_workers: Option<WorkerPlan>,
}

/// A recursive query: see [`Recursive`](crate::bind::Recursive).
#[derive(Clone, Debug)]
pub struct RecursiveUnion {
    /// The non-recursive term.
    pub base: QueryPlan,
    /// The recursive term.
    pub step: QueryPlan,
    /// UNION ALL.
    pub all: bool,
    /// The slot that stores the working table.
    pub working: usize,
    /// The slot of the rows.
    pub slot: usize,
}

/// Window functions over sorted rows.
#[derive(Clone, Debug)]
pub struct WindowAgg {
    /// The rows.
    pub input: PlanNode,
    /// The slot of the result: the columns, followed by the functions' values.
    pub slot: usize,
    /// The columns of the input that are passed on.
    pub columns: Vec<Expr>,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// The functions.
    pub functions: Vec<WindowFunction>,
}

/// The rows that a hash join returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashJoinKind {
    /// Matching rows.
    Inner,
    /// Matching rows, and outer rows without a match.
    Left,
    /// Matching rows, and rows of both sides without a match.
    Full,
    /// Inner rows with a match, each once.
    RightSemi,
    /// Inner rows without a match.
    RightAnti,
}

impl HashJoinKind {
    /// Whether outer rows without a match are left out.
    pub fn skips_unmatched_outer(self) -> bool {
        !matches!(self, HashJoinKind::Left | HashJoinKind::Full)
    }

    /// Whether the join returns inner rows alone, after the last outer row.
    pub fn returns_inner(self) -> bool {
        matches!(self, HashJoinKind::RightSemi | HashJoinKind::RightAnti)
    }

    /// Whether inner rows without a match are returned, also those whose keys are NULL.
    pub fn returns_unmatched_inner(self) -> bool {
        matches!(self, HashJoinKind::Full | HashJoinKind::RightAnti)
    }
}

impl From<Join> for HashJoinKind {
    fn from(join: Join) -> HashJoinKind {
        match join {
            Join::Inner => HashJoinKind::Inner,
            Join::Left => HashJoinKind::Left,
        }
    }
}

/// A hash join.
#[derive(Clone, Debug)]
pub struct HashJoin {
    /// The outer rows.
    pub outer: PlanNode,
    /// The inner rows.
    pub inner: PlanNode,
    /// The slots of the inner rows.
    pub inner_slots: Vec<usize>,
    /// The slots of the outer rows.
    pub outer_slots: Vec<usize>,
    /// The keys of an outer row.
    pub outer_keys: Vec<Expr>,
    /// The keys of an inner row.
    pub inner_keys: Vec<Expr>,
    /// Which rows are returned.
    pub kind: HashJoinKind,
    /// The further condition on each pair.
    pub condition: Option<Expr>,
    /// The subqueries that are asked for each pair, above a single row, and the condition on their
    /// answers: a pair fits if a row comes out.
    pub check: Option<PlanNode>,
}

/// A key of a sort.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// The sort expression.
    pub expr: Expr,
    /// Greatest first.
    pub descending: bool,
    /// NULLs first.
    pub nulls_first: bool,
}

/// A hash join that takes over from a nested loop.
#[derive(Clone, Debug)]
pub struct LoopGuard {
    /// The number of outer rows after which it takes over.
    pub most: u64,
    /// The hash join, whose outer rows are those that are left.
    pub join: HashJoin,
}

/// The plan of a query.
#[derive(Clone, Debug)]
pub struct QueryPlan {
    /// The rows.
    pub root: PlanNode,
    /// The outputs.
    pub outputs: Vec<Expr>,
    /// Names and types.
    pub columns: Vec<OutputColumn>,
    /// Rows expected.
    pub rows: f64,
}

/// The plan of a statement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is done.
    pub action: Action,
    /// The row slots of the statement.
    pub slots: Vec<SlotShape>,
    /// The types of the parameters.
    pub parameters: Vec<DataType>,
    /// The execution mode and its reason, for EXPLAIN.
    pub mode_reason: String,
}

/// The action of a statement.
#[derive(Clone, Debug)]
pub enum Action {
    /// Answers a query.
    Query(QueryPlan),
    /// Inserts rows.
    Insert(InsertPlan),
    /// Changes or removes rows.
    Change(ChangePlan),
    /// Merges rows into a table.
    Merge(Box<MergePlan>),
    /// Changes a view by its INSTEAD OF triggers.
    Instead(Box<InsteadPlan>),
    /// Does several of these as one statement, or one that reads what it changes.
    ChangingWith(Box<ChangingWithPlan>),
}

impl Action {
    /// Returns the columns of the rows that the statement returns.
    pub fn columns(&self) -> &[OutputColumn] {
        let returning = match self {
            Action::Query(query) => return &query.columns,
            Action::ChangingWith(with) => return with.main.columns(),
            Action::Merge(_) => return &[],
            Action::Insert(insert) => &insert.returning,
            Action::Change(change) => &change.returning,
            Action::Instead(instead) => &instead.returning,
        };
        returning.as_ref().map_or(&[][..], |returning| &returning.columns)
    }
}

/// The plan of a statement whose WITH changes rows.
#[derive(Clone, Debug)]
pub struct ChangingWithPlan {
    /// The parts of WITH, in order.
    pub parts: Vec<WithPartPlan>,
    /// What follows WITH.
    pub main: Action,
}

/// The plan of a part of WITH.
#[derive(Clone, Debug)]
pub struct WithPartPlan {
    /// The slot that stores its rows.
    pub slot: usize,
    /// What it does.
    pub action: Action,
    /// Whether another part reads its rows.
    pub is_read: bool,
}

/// The plan of INSERT.
#[derive(Clone, Debug)]
pub struct InsertPlan {
    /// Into what.
    pub table: Arc<Table>,
    /// The slot of the new row.
    pub new_slot: usize,
    /// The slot of the conflicting row.
    pub old_slot: usize,
    /// Rows, each a value for each column.
    pub rows: Vec<Vec<Expr>>,
    /// Instead of rows: a query, the slot of its rows, and a value for each column.
    pub query: Option<(QueryPlan, usize, Vec<Expr>)>,
    /// CHECKs over the new row: their numbers and conditions.
    pub checks: Vec<(usize, Expr)>,
    /// Generated columns that change, with their expressions over the new row.
    pub generated: Vec<(usize, Expr)>,
    /// ON CONFLICT.
    pub conflict: Option<OnConflict>,
    /// WITH CHECK OPTION of views, over the new row.
    pub view_checks: Vec<ViewCheck>,
    /// RETURNING.
    pub returning: Option<Returning>,
    /// The answers of the subqueries of ON CONFLICT, for the rows in the slots.
    pub conflict_answers: Option<Box<PlanNode>>,
    /// The slot of `xmax` for RETURNING, if that reads it.
    pub xmax_slot: Option<usize>,
}

/// The plan of UPDATE and DELETE.
#[derive(Clone, Debug)]
pub struct ChangePlan {
    /// Of what.
    pub table: Arc<Table>,
    /// The slot of its rows.
    pub slot: usize,
    /// The rows to be changed.
    pub root: PlanNode,
    /// All conditions, to be checked once more when a row turns out to have changed.
    pub recheck: Option<Expr>,
    /// SET; `None`: DELETE.
    pub assignments: Option<Vec<(usize, Expr)>>,
    /// CHECKs over the new row: their numbers and conditions.
    pub checks: Vec<(usize, Expr)>,
    /// Generated columns that change, with their expressions over the new row.
    pub generated: Vec<(usize, Expr)>,
    /// Whether at most one row is found, so that no change can be found again.
    pub single: bool,
    /// WITH CHECK OPTION of views, over the new row.
    pub view_checks: Vec<ViewCheck>,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// The plan of a change of a view by its INSTEAD OF triggers.
#[derive(Clone, Debug)]
pub struct InsteadPlan {
    /// The view, as a table.
    pub table: Arc<Table>,
    /// What the statement does.
    pub event: TriggerEvent,
    /// The slot of the row that RETURNING reads.
    pub slot: usize,
    /// The rows: the old one unless rows are inserted, then the new one unless they are deleted.
    pub query: QueryPlan,
    /// RETURNING.
    pub returning: Option<Returning>,
}

/// The plan of MERGE.
#[derive(Clone, Debug)]
pub struct MergePlan {
    /// The target.
    pub table: Arc<Table>,
    /// The slot of its rows.
    pub slot: usize,
    /// The slot of a row that is inserted.
    pub new_slot: usize,
    /// The rows of the source with their matches in the target.
    pub root: PlanNode,
    /// The WHEN clauses, in order.
    pub clauses: Vec<MergeClausePlan>,
    /// CHECKs over an inserted row: their numbers and conditions.
    pub checks: Vec<(usize, Expr)>,
    /// Generated columns of an inserted row, with their expressions.
    pub generated: Vec<(usize, Expr)>,
}

/// The plan of a WHEN clause of MERGE.
#[derive(Clone, Debug)]
pub struct MergeClausePlan {
    /// Whether it is for source rows with a match in the target, or for those without.
    pub is_matched: bool,
    /// The condition after AND.
    pub condition: Option<Expr>,
    /// The action.
    pub action: MergeActionPlan,
}

/// The plan of an action of MERGE.
#[derive(Clone, Debug)]
pub enum MergeActionPlan {
    /// DO NOTHING.
    Nothing,
    /// DELETE.
    Delete,
    /// UPDATE.
    Update {
        /// Columns and their values.
        assignments: Vec<(usize, Expr)>,
        /// CHECKs over the new row: their numbers and conditions.
        checks: Vec<(usize, Expr)>,
        /// Generated columns that change, with their expressions over the new row.
        generated: Vec<(usize, Expr)>,
    },
    /// INSERT: a value for each column.
    Insert(Vec<Expr>),
}
