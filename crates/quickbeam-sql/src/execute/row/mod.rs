//! Row execution: operators over the engine's trees, on the caller's thread.
//!
//! Above: statements. Below: plans, expressions, tables. An [`Operator`] is a [`PlanNode`] with its
//! working memory. A prepared statement builds its operators once and reuses them in each
//! execution, so repeated executions allocate little. `next` moves an operator to its next row,
//! which becomes the current row of the node's slots (PLAN-2).
//!
//! - DIRECT-1: no operator borrows from the transaction or from another operator. Rows are in the
//!   [`Context`]'s slots (by type)
//! - DIRECT-2: after [`Operator::rewind`] an operator starts a new run, with the outer rows and
//!   parameters of that time. Nothing of an earlier run reaches the new one, even if that run ended
//!   early or with an error. State of a run is local to one call, or the first `next` of a run
//!   resets it. A finding of one run, such as "a key is not a number", does not hold for the next
//!   one.
//! - DIRECT-3: operators charge what they keep to the statement's memory budget, and every loop
//!   checks for cancellation.

mod aggregate;
mod distinct;
mod in_list;
mod join;
mod kept_keys;
pub(super) mod lock;
mod memory;
mod query;
mod scan;
mod set_operation;
mod sort;
pub(crate) mod stored;
mod subquery;
mod table_function;
mod window;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quickbeam::query_layer::TreeShape;
use quickbeam::{Environment, Transaction};

use super::vector::BatchProgram;
use crate::bind::Aggregate;
use crate::bind::{row_result, updatability};
use crate::catalog::View;
use crate::catalog::describe::Described;
use crate::catalog::{Catalog, CatalogSnapshot, ObjectId, Sequence, Table};
use crate::ddl::SequenceState;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::system_rows::{EngineFigures, SnapshotNames, blockers};
use crate::expression::{
    Clock, ColumnRef, Current, Expr, Frame, Given, Host, QueryRows, RoutineCall, SessionState, Slot,
};
use crate::plan::{Batch, PlanNode, produced};
use crate::table::TableHandle;
use crate::types::encoded::RowShape;
use crate::types::{DataType, Value};

pub use crate::execute::dml::changing_with::ChangingWithExec;
pub use crate::execute::dml::insert::{InsertExec, Returned};
pub use crate::execute::dml::instead_of::InsteadExec;
pub use crate::execute::dml::merge::MergeExec;
pub use crate::execute::dml::update::UpdateExec;
pub(super) use crate::execute::hash::join_index::{JoinIndex, NONE, ROW_BYTES, members_of};
pub(super) use crate::execute::hash::key_table::{KeyTable, append, mix, seed};
pub(super) use aggregate::{AggregateState, overflow};
pub use kept_keys::{KeptKeys, KeptRow};
pub(super) use memory::MemoryCharge;
pub use memory::{MemoryBudget, bytes_of as values_memory};
pub use query::QueryProgram;
pub(super) use scan::TableScan;
pub use scan::{Morsel, constant_range};
use set_operation::SetOperationExec;
pub(super) use sort::{order_of_values, wanted_of};
use subquery::LastAnswer;

/// Limits of a statement.
#[derive(Debug)]
pub struct StatementLimits {
    /// Set by another thread: the statement ends with an error.
    pub cancelled: Arc<AtomicBool>,
    /// Bytes that a statement may keep.
    pub memory: Cell<usize>,
    /// When the statement ends with an error, if `statement_timeout` is set.
    pub deadline: Cell<Option<Instant>>,
}

impl StatementLimits {
    /// Ends a statement that was cancelled or that has run for too long.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(SqlError::canceled());
        }
        match self.deadline.get() {
            None => Ok(()),
            Some(deadline) => check_deadline(deadline),
        }
    }
}

#[cold]
fn check_deadline(deadline: Instant) -> Result<()> {
    if Instant::now() < deadline {
        return Ok(());
    }
    let message = "canceling statement due to statement timeout";
    Err(SqlError::new(SqlState::QueryCanceled, message))
}

/// The context of an execution.
pub struct Context<'t> {
    /// The transaction.
    pub transaction: &'t Transaction,
    /// The source of sequences and row ids.
    pub catalog: &'t Catalog,
    /// The transaction's snapshot of the catalog.
    pub snapshot: &'t Arc<CatalogSnapshot>,
    /// The row slots of the statement.
    pub slots: &'t mut Vec<Slot>,
    /// The parameters.
    pub parameters: &'t [Value],
    /// The transaction's time.
    pub clock: &'t Clock,
    /// The session.
    pub session: &'t dyn SessionState,
    /// Sequence values that the session has seen.
    pub given: &'t Given,
    /// The limits of the statement.
    pub limits: &'t StatementLimits,
    /// The memory charged so far.
    pub budget: &'t MemoryBudget,
}

impl EngineFigures for Context<'_> {
    fn estimated_rows(&self, table: &Table) -> Result<f64> {
        let handle = self.snapshot.handle(self.transaction, table.id)?;
        handle.estimated_rows(self.transaction)
    }

    fn shape(&self, table: &Table, index: Option<usize>) -> Result<Option<TreeShape>> {
        let handle = self.snapshot.handle(self.transaction, table.id)?;
        handle.shape(self.transaction, index)
    }

    fn environment(&self) -> &Environment {
        &self.catalog.environment
    }
}

impl Host for Context<'_> {
    fn session(&self) -> &dyn SessionState {
        self.session
    }

    fn snapshot(&self) -> &CatalogSnapshot {
        self.snapshot
    }

    fn estimated_size(&self, relation: Described<'_>) -> Result<i64> {
        let (table, index) = match relation {
            Described::Table(table) => (table, None),
            Described::Index(table, index) => {
                let number = table.indexes.iter().position(|known| known.id == index.id);
                (table, number)
            }
            _ => return Ok(0),
        };
        let handle = self.snapshot.handle(self.transaction, table.id)?;
        handle.estimated_size(self.transaction, index)
    }

    fn blockers(&self, session: i32) -> Vec<i32> {
        blockers(&self.catalog.environment, &self.session.advisory_locks(), session)
    }

    fn updatability(&self, view: &View) -> (i32, Vec<bool>) {
        updatability(&SnapshotNames(self.snapshot()), view)
    }

    fn next_value(&self, sequence: u32) -> Result<i64> {
        let value = self.catalog.next_value(self.transaction, self.sequence(sequence)?)?;
        self.given.note(sequence, value);
        Ok(value)
    }

    fn current_value(&self, sequence: Option<u32>) -> Result<i64> {
        self.given.value(sequence).ok_or_else(|| {
            let name = sequence.and_then(|number| self.snapshot.sequence(ObjectId(number)));
            let message = match name {
                Some(sequence) => {
                    let name = &sequence.name;
                    format!("currval of sequence \"{name}\" is not yet defined in this session")
                }
                None => "lastval is not yet defined in this session".to_owned(),
            };
            SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
        })
    }

    fn sequence_state(&self, sequence: u32) -> Result<SequenceState> {
        self.catalog.state_of(self.transaction, self.sequence(sequence)?)
    }

    fn call_routine(&self, call: &RoutineCall, arguments: Vec<Value>) -> Result<Value> {
        let rows = self.session.call_routine(self.transaction, call, arguments)?;
        let Some(mut values) = rows.into_iter().next() else { return Ok(Value::Null) };
        let known = self.snapshot.routine(call.id);
        let row_type = match (known, call.types) {
            (Some(known), Some(types)) => row_result(&known.with_types(types), self.snapshot)?,
            (Some(known), None) => row_result(known, self.snapshot)?,
            (None, _) => None,
        };
        let Some(row_type) = row_type else {
            return Ok(if values.is_empty() { Value::Null } else { values.swap_remove(0) });
        };
        // A function may return NULL in the place of a row.
        if values.is_empty() {
            return Ok(Value::Null);
        }
        let fields = DataType::Encoded(row_type).row_fields();
        let shape = RowShape::new(row_type, fields);
        let mut row = shape.begin();
        values.iter().try_for_each(|value| row.push(value.as_ref()))?;
        row.finish()
    }

    fn run_query(&self, text: &str) -> Result<QueryRows> {
        self.session.run_query(self.transaction, text)
    }

    fn set_value(&self, sequence: u32, value: i64, is_called: bool) -> Result<()> {
        let known = self.sequence(sequence)?;
        self.catalog.set_value(self.transaction, known, value, is_called)?;
        if is_called {
            self.given.note(sequence, value);
        }
        Ok(())
    }
}

impl Context<'_> {
    fn sequence(&self, number: u32) -> Result<&Arc<Sequence>> {
        let known = self.snapshot.sequence(ObjectId(number));
        known.ok_or_else(|| SqlError::internal("there is no such sequence"))
    }
}

impl Context<'_> {
    /// Returns the frame that expressions read.
    #[inline]
    pub fn frame(&self) -> Frame<'_> {
        Frame {
            slots: self.slots,
            parameters: self.parameters,
            clock: Some(self.clock),
            host: Some(self),
        }
    }

    /// Returns whether a condition is true for the current rows.
    #[inline]
    pub fn holds(&self, condition: Option<&Expr>) -> Result<bool> {
        match condition {
            None => Ok(true),
            Some(condition) => condition.is_true(&self.frame()),
        }
    }

    /// The value of an expression, owned.
    #[inline]
    pub fn value(&self, expr: &Expr) -> Result<Value> {
        Ok(expr.evaluate(&self.frame())?.into_value())
    }

    /// Ends a cancelled statement (DIRECT-3).
    #[inline]
    pub fn check_cancelled(&self) -> Result<()> {
        self.limits.check()
    }

    /// Puts computed values into a slot.
    pub fn put_values(&mut self, slot: usize, values: impl Iterator<Item = Value>) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.values.clear();
            slot.values.extend(values);
            slot.current = Current::Values;
        }
    }

    /// The slot with that number.
    #[inline]
    pub fn slot(&mut self, slot: usize) -> Result<&mut Slot> {
        self.slots.get_mut(slot).ok_or_else(|| SqlError::internal("a row has no place"))
    }
}

/// Evaluates LIMIT or OFFSET. Returns `None` if it is absent or NULL.
fn bound_of(
    context: &Context<'_>,
    expr: Option<&Expr>,
    state: SqlState,
    name: &str,
) -> Result<Option<u64>> {
    let Some(expr) = expr else { return Ok(None) };
    let computed;
    let value = match expr.given(context.parameters) {
        Some(given) => given,
        None => {
            computed = context.value(expr)?;
            &computed
        }
    };
    match value.as_ref().as_i64() {
        None => Ok(None),
        Some(count) => match u64::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(SqlError::new(state, format!("{name} must not be negative"))),
        },
    }
}

/// Gives operators the handles of tables.
pub struct TableHandles<'h> {
    /// The transaction.
    pub transaction: &'h Transaction,
    /// The catalog.
    pub catalog: &'h Catalog,
    /// The transaction's snapshot of the catalog.
    pub snapshot: &'h CatalogSnapshot,
}

/// Refuses to read a materialized view that has no data.
fn check_populated(table: &Table) -> Result<()> {
    if !table.is_unpopulated() {
        return Ok(());
    }
    let message = format!("materialized view \"{}\" has not been populated", table.name);
    Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
        .with_hint("Use the REFRESH MATERIALIZED VIEW command."))
}

impl TableHandles<'_> {
    /// The handle of a table whose rows are read.
    fn readable(&self, table: &Table) -> Result<Arc<TableHandle>> {
        check_populated(table)?;
        self.of(table)
    }

    /// A table's handle.
    pub fn of(&self, table: &Table) -> Result<Arc<TableHandle>> {
        if !table.is_database() {
            return self.snapshot.handle(self.transaction, table.id);
        }
        let found = self.catalog.database_as_table(self.transaction, &table.name)?;
        found.ok_or_else(|| crate::schema::errors::no_relation(&table.name))
    }
}

/// An operator: a plan node with its working memory.
#[derive(Debug)]
pub enum Operator {
    /// One row without columns; true: it was returned.
    One(bool),
    /// Rows of a table.
    Scan(Box<scan::TableScan>),
    /// Rows of expressions: the slot, the rows, and the number returned so far.
    Values(usize, Vec<Vec<Expr>>, usize),
    /// Values, each once.
    InListScan(Box<in_list::InListScan>),
    /// Rows for which a condition is true.
    Filter(Box<Operator>, Expr),
    /// For each outer row the inner rows.
    NestedLoop(Box<join::NestedLoop>),
    /// Rows of equal keys.
    HashJoin(Box<join::RowHashJoin>),
    /// For each row the answer of a subquery.
    Apply(Box<query::Apply>),
    /// Groups.
    Group(Box<aggregate::RowAggregate>),
    /// Rows only once.
    Distinct(Box<distinct::Distinct>),
    /// Rows in order.
    Sort(Box<sort::RowSort>),
    /// Window functions.
    WindowAgg(Box<window::RowWindowAgg>),
    /// Part of the rows.
    Limit(Box<query::Limit>),
    /// Rows of a query in FROM.
    Derived(Box<QueryProgram>, usize),
    /// A set operation.
    Combine(Box<SetOperationExec>),
    /// Locked rows.
    Lock(Box<lock::Lock>),
    /// Common table expressions, and rows that read them.
    With(Box<stored::With>),
    /// A recursive query.
    RecursiveUnion(Box<stored::RecursiveUnionExec>),
    /// Stored rows.
    StoredScan(stored::StoredScan),
    /// A function that returns rows.
    FunctionScan(Box<table_function::FunctionScan>),
    /// A vectorized step.
    Batch(Box<BatchProgram>),
    /// Any operator, with a count of the rows returned.
    Counted(Box<Operator>, u64),
}

/// Whether operators count the rows that they return, for EXPLAIN ANALYZE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCounts {
    /// They do not.
    Off,
    /// They do.
    On,
}

/// Makes operators of nodes.
pub struct OperatorBuilder<'b> {
    pub(in crate::execute) handles: &'b TableHandles<'b>,
    counts: RowCounts,
    parameters: &'b [DataType],
}

impl<'b> OperatorBuilder<'b> {
    /// Makes operators.
    pub fn new(handles: &'b TableHandles<'b>, counts: RowCounts) -> OperatorBuilder<'b> {
        OperatorBuilder { handles, counts, parameters: &[] }
    }

    /// The types of the statement's parameters.
    pub(super) fn parameters(&self) -> &'b [DataType] {
        self.parameters
    }

    /// Whether rows are counted, for EXPLAIN ANALYZE.
    pub(super) fn is_counted(&self) -> bool {
        self.counts == RowCounts::On
    }

    fn boxed(&self, node: &PlanNode) -> Result<Box<Operator>> {
        self.operator(node).map(Box::new)
    }

    fn locked_tables(
        &self,
        input: &PlanNode,
        tables: &[(usize, Arc<Table>)],
    ) -> Result<Vec<lock::LockedTable>> {
        let mut locked = Vec::with_capacity(tables.len());
        for (slot, table) in tables {
            let (handle, row_ids) = (self.handles.of(table)?, input.has_row_ids(*slot));
            locked.push(lock::LockedTable { slot: *slot, handle, row_ids });
        }
        Ok(locked)
    }

    /// The operator of a node.
    pub fn operator(&self, node: &PlanNode) -> Result<Operator> {
        let operator = match node {
            PlanNode::SingleRow => Operator::One(false),
            PlanNode::Table(access) => {
                let handle = self.handles.readable(&access.table)?;
                Operator::Scan(Box::new(scan::TableScan::new(access, handle, self.parameters)))
            }
            PlanNode::Values { slot, rows, once: false } => {
                Operator::Values(*slot, rows.clone(), 0)
            }
            PlanNode::Values { slot, rows, once: true } => {
                Operator::InListScan(Box::new(in_list::InListScan::new(*slot, rows)))
            }
            PlanNode::Filter { input, condition } => {
                Operator::Filter(self.boxed(input)?, condition.clone())
            }
            PlanNode::NestedLoop { outer, inner, inner_slots, join, condition, guard } => {
                let (outer, inner) = (self.operator(outer)?, self.operator(inner)?);
                let (slots, condition) = (inner_slots.clone(), condition.clone());
                let joined = join::NestedLoop::new(outer, inner, slots, *join, condition);
                Operator::NestedLoop(Box::new(joined.guarded(guard.clone())))
            }
            PlanNode::HashJoin(join) => {
                let (outer, inner) = (self.operator(&join.outer)?, self.operator(&join.inner)?);
                let check = join.check.as_ref().map(|check| self.operator(check)).transpose()?;
                let joined = join::RowHashJoin::new(outer, inner, join).checked(check);
                Operator::HashJoin(Box::new(joined))
            }
            PlanNode::Subquery { input, query, slot, kind, once, hash, needed } => {
                let last = LastAnswer::new(input, query, *once || hash.is_some());
                let (input, query) = (self.operator(input)?, self.query(query)?);
                let apply = query::Apply::new(
                    input,
                    query,
                    *slot,
                    kind.clone(),
                    *once,
                    (hash.clone(), last),
                );
                Operator::Apply(Box::new(apply.needed_if(needed)))
            }
            PlanNode::Group { input, slot, keys, sets, aggregates } => {
                let aggregates: Vec<Aggregate> = aggregates.clone();
                let slots = produced(input);
                let input = self.operator(input)?;
                Operator::Group(Box::new(aggregate::RowAggregate::new(
                    input,
                    *slot,
                    keys.clone(),
                    sets.clone(),
                    aggregates,
                    &slots,
                )))
            }
            PlanNode::Distinct { input: node, outputs } => {
                let input = self.operator(node)?;
                Operator::Distinct(Box::new(distinct::Distinct::new(input, outputs.clone(), node)))
            }
            PlanNode::Sort { input, slot, outputs, keys, most } => {
                let input = self.operator(input)?;
                Operator::Sort(Box::new(sort::RowSort::new(
                    input,
                    *slot,
                    outputs.clone(),
                    keys.clone(),
                    most.clone(),
                )))
            }
            PlanNode::WindowAgg(node) => {
                let input = self.operator(&node.input)?;
                Operator::WindowAgg(Box::new(window::RowWindowAgg::new(input, node)))
            }
            PlanNode::Limit { input, limit, offset, ties } => {
                let mut input = self.operator(input)?;
                if let (Operator::Scan(scan), Some(limit)) = (&mut input, limit)
                    && scan.expect(limit, offset.as_ref())
                {
                    return Ok(input);
                }
                let (limit, offset) = (limit.clone(), offset.clone());
                Operator::Limit(Box::new(query::Limit::new(input, limit, offset, ties.clone())))
            }
            PlanNode::SubqueryScan { query, slot } => {
                Operator::Derived(Box::new(self.query(query)?), *slot)
            }
            PlanNode::SetOperation { kind, all, sides, slot } => {
                let sides = sides.iter().map(|side| self.query(side)).collect::<Result<_>>()?;
                let combined = SetOperationExec::new(*kind, *all, sides, *slot);
                Operator::Combine(Box::new(combined))
            }
            PlanNode::With { tables, input } => {
                let tables = tables.iter().map(|(slot, query)| Ok((*slot, self.query(query)?)));
                let tables = tables.collect::<Result<Vec<_>>>()?;
                Operator::With(Box::new(stored::With::new(tables, self.operator(input)?)))
            }
            PlanNode::RecursiveUnion(union) => {
                let (base, step) = (self.query(&union.base)?, self.query(&union.step)?);
                let union = stored::RecursiveUnionExec::new(base, step, union);
                Operator::RecursiveUnion(Box::new(union))
            }
            PlanNode::StoredScan(stored) => Operator::StoredScan(stored::StoredScan::new(stored)),
            PlanNode::FunctionScan(function) => {
                let scan = table_function::FunctionScan::new(function);
                Operator::FunctionScan(Box::new(scan))
            }
            PlanNode::Vectorized(batch) => match &batch.step {
                // Below a vectorized step that is executed by rows.
                step @ (PlanNode::HashJoin(_) | PlanNode::Filter { .. }) => {
                    return Ok(self.operator(step)?.without_workers(batch));
                }
                _ => Operator::Batch(Box::new(BatchProgram::new(batch, self)?)),
            },
            PlanNode::LockRows { input, tables, recheck, wait } => {
                let locked = self.locked_tables(input, tables)?;
                let input = self.operator(input)?;
                Operator::Lock(Box::new(lock::Lock::new(input, locked, recheck.clone(), *wait)))
            }
        };
        Ok(if self.is_counted() { Operator::Counted(Box::new(operator), 0) } else { operator })
    }

    /// The types of the statement's parameters.
    #[must_use]
    pub fn with_parameters(self, parameters: &'b [DataType]) -> OperatorBuilder<'b> {
        OperatorBuilder { parameters, ..self }
    }

    /// The program of a query.
    pub fn query(&self, query: &crate::plan::QueryPlan) -> Result<QueryProgram> {
        let root = self.operator(&query.root)?;
        Ok(QueryProgram { root, outputs: query.outputs.clone(), kept_keys: None })
    }
}

impl Operator {
    /// Moves to the next row. Returns false at the end.
    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        match self {
            Operator::Scan(scan) => scan.next(context),
            Operator::One(done) => Ok(!std::mem::replace(done, true)),
            Operator::Values(slot, rows, next) => {
                let Some(row) = rows.get(*next) else { return Ok(false) };
                *next += 1;
                let values: Result<Vec<Value>> =
                    row.iter().map(|value| context.value(value)).collect();
                context.put_values(*slot, values?.into_iter());
                Ok(true)
            }
            Operator::Filter(input, condition) => {
                while input.next(context)? {
                    if context.holds(Some(condition))? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Operator::InListScan(members) => members.next(context),
            Operator::NestedLoop(join) => join.next(context),
            Operator::HashJoin(join) => join.next(context),
            Operator::Apply(apply) => apply.next(context),
            Operator::Group(group) => group.next(context),
            Operator::Distinct(distinct) => distinct.next(context),
            Operator::Sort(sort) => sort.next(context),
            Operator::WindowAgg(window) => window.next(context),
            Operator::Limit(limit) => limit.next(context),
            Operator::Derived(query, slot) => query.next_into(context, *slot),
            Operator::Combine(combine) => combine.next(context),
            Operator::Lock(lock) => lock.next(context),
            Operator::With(with) => with.next(context),
            Operator::RecursiveUnion(union) => union.next(context),
            Operator::StoredScan(scan) => scan.next(context),
            Operator::FunctionScan(scan) => scan.next(context),
            Operator::Batch(batch) => batch.next(context),
            Operator::Counted(operator, count) => {
                let more = operator.next(context)?;
                *count += u64::from(more);
                Ok(more)
            }
        }
    }

    /// Starts a new run (DIRECT-2).
    pub fn rewind(&mut self) {
        match self {
            Operator::Scan(scan) => scan.rewind(),
            Operator::One(done) => *done = false,
            Operator::Values(_, _, next) => *next = 0,
            Operator::Filter(input, _) => input.rewind(),
            Operator::InListScan(members) => members.rewind(),
            Operator::NestedLoop(join) => join.rewind(),
            Operator::HashJoin(join) => join.rewind(),
            Operator::Apply(apply) => apply.rewind(),
            Operator::Group(group) => group.rewind(),
            Operator::Distinct(distinct) => distinct.rewind(),
            Operator::Sort(sort) => sort.rewind(),
            Operator::WindowAgg(window) => window.rewind(),
            Operator::Limit(limit) => limit.rewind(),
            Operator::Derived(query, _) => query.root.rewind(),
            Operator::Combine(combine) => combine.rewind(),
            Operator::Lock(lock) => lock.input.rewind(),
            Operator::With(with) => with.rewind(),
            Operator::RecursiveUnion(union) => union.rewind(),
            Operator::StoredScan(scan) => scan.rewind(),
            Operator::FunctionScan(scan) => scan.rewind(),
            Operator::Batch(batch) => batch.rewind(),
            Operator::Counted(operator, _) => operator.rewind(),
        }
    }

    /// Starts again for other current rows, in the same run. Subqueries keep their hashed rows.
    pub(super) fn again(&mut self) {
        match self {
            Operator::Filter(input, _) | Operator::Counted(input, _) => input.again(),
            Operator::Apply(apply) => apply.again(),
            other => other.rewind(),
        }
    }

    /// The scan that it is, with the count of its rows, if they are counted.
    pub(super) fn as_scan(&mut self) -> Option<(&mut TableScan, Option<&mut u64>)> {
        match self {
            Operator::Scan(scan) if !scan.is_limited() => Some((scan, None)),
            Operator::Counted(operator, count) => match &mut **operator {
                Operator::Scan(scan) => Some((scan, Some(count))),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the scan of the slot of `column`, if the column is an integer and only the join
    /// above misses rows that the scan skips.
    pub(super) fn scan_for_keys(&mut self, column: ColumnRef) -> Option<&mut TableScan> {
        match self {
            Operator::Scan(scan) if scan.takes_keys(column) => Some(scan),
            Operator::Filter(input, _) | Operator::Counted(input, _) => input.scan_for_keys(column),
            Operator::NestedLoop(join) => join.outer.scan_for_keys(column),
            Operator::HashJoin(join) => join.scan_for_keys(column),
            Operator::Batch(batch) => batch.scan_for_keys(column),
            _ => None,
        }
    }

    /// Returns the key of the current row of a slot, if this operator or one below it found the
    /// row. The plan must have asked for keys.
    pub fn row_key<'o>(&'o self, slot: usize, context: &'o Context<'_>) -> Option<&'o [u8]> {
        match self {
            Operator::Scan(scan) => scan.row_key(slot, context),
            Operator::Filter(input, _) | Operator::Counted(input, _) => {
                input.row_key(slot, context)
            }
            Operator::NestedLoop(join) => join.row_key(slot, context),
            Operator::HashJoin(join) => join.row_key(slot, context),
            Operator::Apply(apply) => apply.input.row_key(slot, context),
            Operator::Limit(limit) => limit.input.row_key(slot, context),
            Operator::With(with) => with.input.row_key(slot, context),
            Operator::Lock(lock) => lock.input.row_key(slot, context),
            Operator::Sort(sort) => sort.row_key(slot),
            _ => None,
        }
    }

    /// Notes the workers of a vectorized join that is executed by rows, without them.
    fn without_workers(mut self, batch: &Batch) -> Operator {
        let operator = match &mut self {
            Operator::Counted(operator, _) => &mut **operator,
            operator => operator,
        };
        if let Operator::HashJoin(join) = operator {
            let planned = [batch.workers, batch.build_workers];
            join.leave_workers(planned.iter().flatten().count());
        }
        self
    }

    /// Collects the row counts, in the order in which EXPLAIN writes the nodes.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        match self {
            Operator::Counted(operator, count) => {
                counts.push(*count);
                operator.counts(counts);
            }
            Operator::One(_)
            | Operator::Scan(_)
            | Operator::Values(..)
            | Operator::InListScan(_)
            | Operator::StoredScan(_)
            | Operator::FunctionScan(_) => {}
            Operator::With(with) => with.counts(counts),
            Operator::RecursiveUnion(union) => union.counts(counts),
            Operator::Filter(input, _) => input.counts(counts),
            Operator::NestedLoop(join) => join.counts(counts),
            Operator::HashJoin(join) => join.counts(counts),
            Operator::Apply(apply) => apply.counts(counts),
            Operator::Group(group) => group.input.counts(counts),
            Operator::Distinct(distinct) => distinct.input.counts(counts),
            Operator::Sort(sort) => sort.input.counts(counts),
            Operator::WindowAgg(window) => window.input.counts(counts),
            Operator::Limit(limit) => limit.input.counts(counts),
            Operator::Derived(query, _) => query.root.counts(counts),
            Operator::Combine(combine) => combine.counts(counts),
            Operator::Lock(lock) => lock.input.counts(counts),
            Operator::Batch(batch) => batch.counts(counts),
        }
    }
}
