//! The choice between row and vectorized execution of each step.

mod filtered_scans;

use super::{AccessPath, Action, Batch, HashJoin, Plan, PlanNode, QueryPlan, TableAccess};
use crate::bind::{SlotShape, Source};
use crate::catalog::Table;
use crate::expression::{ColumnRef, Expr};
use crate::plan::cost::{CACHED_COLUMNS, CACHED_ROWS, VECTOR_THRESHOLD};
use crate::types::DataType;

/// The execution mode that a session requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionMode {
    /// The mode that is estimated to be faster.
    #[default]
    Auto,
    /// Row by row.
    Row,
    /// By columns wherever that can be.
    Vectorized,
}

/// Tells whether a step can be vectorized over these input columns. The last argument has the types
/// of the parameters.
pub type CanVectorize<'c> = &'c dyn Fn(&PlanNode, &[(ColumnRef, DataType)], &[DataType]) -> bool;

/// Workers: threads besides that of the statement, which may help with a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerPlan {
    /// How many.
    pub workers: usize,
    /// The fewest rows of the scan that they share for which they are started.
    pub least_rows: f64,
}

/// A part of a vectorized step that several threads may execute.
#[derive(Clone, Copy, Debug)]
pub enum SharedPart<'s> {
    /// An aggregation, or the outer rows of a join that returns inner ones.
    Step(&'s PlanNode),
    /// The inner rows of a join.
    Build(&'s PlanNode),
}

/// Returns the table scan that several threads can share to execute a part of a step. The other
/// arguments are those of [`CanVectorize`].
pub type SharedScan =
    for<'s> fn(SharedPart<'s>, &[(ColumnRef, DataType)], &[DataType]) -> Option<&'s TableAccess>;

/// How workers are chosen.
#[derive(Clone, Copy)]
pub struct WorkerChoice<'c> {
    /// See [`SharedScan`].
    pub shared_scan: SharedScan,
    /// Returns the workers for a scan of a table.
    pub workers: &'c dyn Fn(&Table) -> Option<WorkerPlan>,
}

/// Vectorizes the steps that gain from it. With a choice of workers, plans these too.
pub fn choose_execution_mode(
    plan: &mut Plan,
    mode: ExecutionMode,
    can_batch: CanVectorize<'_>,
    workers: Option<WorkerChoice<'_>>,
) {
    let reads_only = plan.reads_only();
    let mut chooser = Chooser::new(&plan.slots, &plan.parameters, mode, can_batch);
    chooser.workers = workers;
    match &mut plan.action {
        Action::Query(query) => {
            chooser.query(query);
            // A statement that changes rows must see those of its own scan.
            if reads_only {
                chooser.filter_scans(&mut query.root);
            }
        }
        Action::Insert(insert) => {
            if let Some((query, ..)) = &mut insert.query {
                chooser.query(query);
            }
        }
        Action::Instead(instead) => chooser.query(&mut instead.query),
        // A changed row must be the current row of its slot.
        Action::Change(_) | Action::Merge(_) | Action::ChangingWith(_) => {}
    }
    let Chooser { by_columns, most, possible, first_only, made, .. } = chooser;
    let computed = || SlotShape { name: "computed".into(), source: Source::Computed };
    plan.slots.extend(std::iter::repeat_with(computed).take(made));
    plan.mode_reason = match mode {
        _ if by_columns > 0.0 => format!("vectorized, about {by_columns:.0} rows"),
        ExecutionMode::Row if possible => "row, set by execution_mode".to_owned(),
        _ if first_only => "row, a top-N sort keeps few rows".to_owned(),
        _ if possible => format!("row, about {most:.0} rows, fewer than {VECTOR_THRESHOLD:.0}"),
        _ => "row, no node can be vectorized".to_owned(),
    };
}

/// Returns whether an aggregation would be vectorized, with all joins below it.
pub(super) fn is_wholly_vectorized(
    group: &PlanNode,
    slots: &[SlotShape],
    parameters: &[DataType],
    can_batch: CanVectorize<'_>,
) -> bool {
    let mut step = group.clone();
    Chooser::new(slots, parameters, ExecutionMode::Auto, can_batch).node(&mut step);
    fn is_whole(node: &PlanNode) -> bool {
        let PlanNode::Vectorized(batch) = node else { return matches!(node, PlanNode::Table(_)) };
        match &batch.step {
            PlanNode::Group { input, .. } | PlanNode::Filter { input, .. } => is_whole(input),
            PlanNode::HashJoin(join) => is_whole(&join.outer) && is_whole(&join.inner),
            _ => false,
        }
    }
    is_whole(&step)
}

struct Chooser<'c> {
    slots: &'c [SlotShape],
    parameters: &'c [DataType],
    mode: ExecutionMode,
    can_batch: CanVectorize<'c>,
    workers: Option<WorkerChoice<'c>>,
    /// Estimated rows of the vectorized steps.
    by_columns: f64,
    /// The largest row estimate of a step that could be vectorized.
    most: f64,
    possible: bool,
    /// Whether such a step is a top-N sort.
    first_only: bool,
    /// Slots that came in addition.
    made: usize,
}

impl<'c> Chooser<'c> {
    fn new(
        slots: &'c [SlotShape],
        parameters: &'c [DataType],
        mode: ExecutionMode,
        can_batch: CanVectorize<'c>,
    ) -> Chooser<'c> {
        Chooser {
            slots,
            parameters,
            mode,
            can_batch,
            workers: None,
            by_columns: 0.0,
            most: 0.0,
            possible: false,
            first_only: false,
            made: 0,
        }
    }

    fn query(&mut self, query: &mut QueryPlan) {
        self.group_distinct(query);
        self.node(&mut query.root);
    }

    /// Replaces a DISTINCT by an aggregation without aggregates, so that it can be vectorized. The
    /// keys get their own slot, and the expressions above read them there.
    fn group_distinct(&mut self, query: &mut QueryPlan) {
        let slot = self.slots.len() + self.made;
        let Some((distinct, above)) = distinct_of(&mut query.root, &mut query.outputs) else {
            return;
        };
        let PlanNode::Distinct { input, outputs } = &*distinct else { return };
        let column_of = |expr: &Expr| {
            let column = outputs.iter().position(|output| output == expr)?;
            Some(Expr::column(slot, column))
        };
        let columns: Option<Vec<Expr>> = above.iter().map(|expr| column_of(expr)).collect();
        let Some(columns) = columns else { return };
        let (keys, aggregates) = (outputs.clone(), Vec::new());
        let sets = Vec::new();
        let group = PlanNode::Group { input: input.clone(), slot, keys, sets, aggregates };
        let read = self.columns_of(&group);
        if !read.is_some_and(|read| (self.can_batch)(&group, &read, self.parameters)) {
            return;
        }
        // Hashing values of several columns is as fast row by row.
        let is_number = matches!(&outputs[..], [Expr::Column(at)] if self.type_of(*at).is_some_and(DataType::is_integer));
        if self.mode != ExecutionMode::Vectorized && !is_number {
            return;
        }
        self.possible = true;
        self.most = self.most.max(expected(input));
        if self.is_wanted(expected(input)) {
            *distinct = group;
            self.made += 1;
            above.into_iter().zip(columns).for_each(|(expr, column)| *expr = column);
        }
    }

    /// Whether a step over `rows` rows should be vectorized.
    fn is_wanted(&self, rows: f64) -> bool {
        match self.mode {
            ExecutionMode::Auto => rows >= VECTOR_THRESHOLD,
            ExecutionMode::Row => false,
            ExecutionMode::Vectorized => true,
        }
    }

    fn node(&mut self, node: &mut PlanNode) {
        match node {
            PlanNode::SingleRow
            | PlanNode::Table(_)
            | PlanNode::Values { .. }
            | PlanNode::StoredScan(_)
            | PlanNode::FunctionScan(_)
            | PlanNode::Vectorized(_) => {
                return;
            }
            PlanNode::With { tables, input } => {
                tables.iter_mut().for_each(|(_, query)| self.query(query));
                self.node(input);
            }
            PlanNode::RecursiveUnion(union) => {
                self.query(&mut union.base);
                self.query(&mut union.step);
            }
            // A locked row must be the current row of its slot.
            PlanNode::LockRows { .. } => return,
            PlanNode::Filter { input, .. }
            | PlanNode::Distinct { input, .. }
            | PlanNode::Limit { input, .. }
            | PlanNode::Group { input, .. }
            | PlanNode::Sort { input, .. } => self.node(input),
            PlanNode::WindowAgg(window) => self.node(&mut window.input),
            PlanNode::Subquery { input, query, .. } => {
                self.node(input);
                self.query(query);
            }
            PlanNode::NestedLoop { outer, inner, .. } => {
                self.node(outer);
                self.node(inner);
            }
            PlanNode::HashJoin(join) => {
                self.node(&mut join.outer);
                self.node(&mut join.inner);
                join.check.iter_mut().for_each(|check| self.node(check));
            }
            PlanNode::SubqueryScan { query, .. } => self.query(query),
            PlanNode::SetOperation { sides, .. } => {
                sides.iter_mut().for_each(|side| self.query(side))
            }
        }
        let (PlanNode::Group { input, .. } | PlanNode::Sort { input, .. }) = node else { return };
        let rows = expected(input);
        let Some(columns) = self.columns_of(node) else { return };
        if !(self.can_batch)(node, &columns, self.parameters) {
            return;
        }
        self.possible = true;
        self.most = self.most.max(rows);
        let keeps_few = keeps_few(node) && !scans_few_columns(node, &columns, rows);
        self.first_only |= keeps_few;
        if self.is_wanted(rows) && (self.mode == ExecutionMode::Vectorized || !keeps_few) {
            self.by_columns += rows.max(1.0);
            if let PlanNode::Group { input, .. } | PlanNode::Sort { input, .. } = node {
                self.join(input, &columns);
            }
            let workers = self.workers_for(SharedPart::Step(node), &columns);
            vectorize(node, columns, workers, None);
        }
    }

    /// Plans the workers of a part of a vectorized step.
    fn workers_for(
        &self,
        part: SharedPart<'_>,
        columns: &[(ColumnRef, DataType)],
    ) -> Option<WorkerPlan> {
        let WorkerChoice { shared_scan, workers } = self.workers?;
        workers(&shared_scan(part, columns, self.parameters)?.table)
    }

    /// Vectorizes a join below a vectorized step, if possible, with the joins and filters below it.
    /// `wanted` are the columns that the step reads.
    fn join(&self, node: &mut PlanNode, wanted: &[(ColumnRef, DataType)]) {
        if let PlanNode::Filter { .. } = node {
            return self.filter(node, wanted);
        }
        let PlanNode::HashJoin(join) = &*node else { return };
        // Sides whose filters cannot be evaluated by columns have their rows scanned one by one.
        let columns = [true, false].into_iter().find_map(|with_filters| {
            let columns = self.columns_of_join(join, wanted, with_filters)?;
            (self.can_batch)(node, &columns, self.parameters).then_some(columns)
        });
        let Some(columns) = columns else { return };
        if let PlanNode::HashJoin(join) = &mut *node {
            let of = |slots: &[usize]| -> Vec<(ColumnRef, DataType)> {
                columns.iter().filter(|(at, _)| slots.contains(&at.slot)).copied().collect()
            };
            self.join(&mut join.outer, &of(&join.outer_slots));
            self.join(&mut join.inner, &of(&join.inner_slots));
        }
        let workers = self.workers_for(SharedPart::Step(node), &columns);
        let build_workers = self.workers_for(SharedPart::Build(node), &columns);
        vectorize(node, columns, workers, build_workers);
    }

    /// Vectorizes a filter on the rows of a join, if the join is vectorized.
    fn filter(&self, node: &mut PlanNode, wanted: &[(ColumnRef, DataType)]) {
        let PlanNode::Filter { condition, .. } = &*node else { return };
        let mut read: Vec<ColumnRef> = wanted.iter().map(|(column, _)| *column).collect();
        condition.each_column(&mut |column| read.push(column));
        let Some(columns) = self.typed(read) else { return };
        if !(self.can_batch)(node, &columns, self.parameters) {
            return;
        }
        let PlanNode::Filter { input, .. } = &mut *node else { return };
        self.join(input, &columns);
        if let PlanNode::Vectorized(_) = **input {
            vectorize(node, columns, None, None);
        }
    }

    /// Returns the columns that a join reads and returns, including, if `with_filters`, those that
    /// the filters of its sides read.
    fn columns_of_join(
        &self,
        join: &HashJoin,
        wanted: &[(ColumnRef, DataType)],
        with_filters: bool,
    ) -> Option<Vec<(ColumnRef, DataType)>> {
        if join.check.is_some() {
            return None;
        }
        let mut read: Vec<ColumnRef> = wanted.iter().map(|(column, _)| *column).collect();
        let mut note = |expr: &Expr| expr.each_column(&mut |column| read.push(column));
        let keys = join.outer_keys.iter().chain(&join.inner_keys);
        keys.chain(&join.condition).for_each(&mut note);
        for side in [&join.outer, &join.inner] {
            filter_of(side).into_iter().filter(|_| with_filters).for_each(&mut note);
        }
        self.typed(read)
    }

    /// Returns the input columns that a step reads, with their types. Returns `None` if a type is
    /// unknown.
    fn columns_of(&self, step: &PlanNode) -> Option<Vec<(ColumnRef, DataType)>> {
        let mut read: Vec<ColumnRef> = Vec::new();
        let mut note = |expr: &Expr| expr.each_column(&mut |column| read.push(column));
        let input = match step {
            PlanNode::Group { sets, .. } if !sets.is_empty() => return None,
            PlanNode::Group { input, keys, aggregates, .. } => {
                let parts = aggregates.iter().flat_map(|a| a.expressions());
                keys.iter().chain(parts).for_each(&mut note);
                input
            }
            PlanNode::Sort { input, outputs, keys, .. } => {
                outputs.iter().chain(keys.iter().map(|key| &key.expr)).for_each(&mut note);
                input
            }
            _ => return None,
        };
        filter_of(input).into_iter().for_each(&mut note);
        let produced = produced(input);
        // Other columns belong to outer rows, which no vectorized expression reads.
        if read.iter().any(|column| !produced.contains(&column.slot)) {
            return None;
        }
        self.typed(read)
    }

    /// Returns the distinct columns with their types, or `None` if a type is unknown.
    fn typed(&self, mut columns: Vec<ColumnRef>) -> Option<Vec<(ColumnRef, DataType)>> {
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|column| Some((column, self.type_of(column)?))).collect()
    }

    fn type_of(&self, column: ColumnRef) -> Option<DataType> {
        match &self.slots.get(column.slot)?.source {
            Source::Table(table) => Some(table.columns.get(column.column)?.data_type),
            Source::Query(columns) => Some(columns.get(column.column)?.data_type),
            Source::Computed => None,
        }
    }
}

/// Makes a step vectorized. `columns` are the input columns that it reads.
fn vectorize(
    node: &mut PlanNode,
    columns: Vec<(ColumnRef, DataType)>,
    workers: Option<WorkerPlan>,
    build_workers: Option<WorkerPlan>,
) {
    let step = std::mem::replace(node, PlanNode::SingleRow);
    *node = PlanNode::Vectorized(Box::new(Batch { step, columns, workers, build_workers }));
}

/// Returns the filter of rows that are decoded from leaves.
fn filter_of(input: &PlanNode) -> Option<&Expr> {
    if let PlanNode::Table(access) = input { access.filter.as_ref() } else { None }
}

/// Returns the DISTINCT of a query, and all expressions above that read its rows. Returns `None`
/// below a LIMIT that may stop before the last row.
fn distinct_of<'n>(
    node: &'n mut PlanNode,
    outputs: &'n mut [Expr],
) -> Option<(&'n mut PlanNode, Vec<&'n mut Expr>)> {
    let is_top =
        matches!(node, PlanNode::Limit { input, .. } if matches!(**input, PlanNode::Sort { .. }));
    let node = if is_top {
        let PlanNode::Limit { input, .. } = node else { return None };
        &mut **input
    } else {
        node
    };
    match node {
        PlanNode::Distinct { .. } => Some((node, outputs.iter_mut().collect())),
        PlanNode::Sort { input, outputs, keys, .. }
            if matches!(**input, PlanNode::Distinct { .. }) =>
        {
            let keys = keys.iter_mut().map(|key| &mut key.expr);
            Some((input, outputs.iter_mut().chain(keys).collect()))
        }
        _ => None,
    }
}

/// Returns the slots that a step and the steps below it fill.
pub fn produced(node: &PlanNode) -> Vec<usize> {
    let mut slots = Vec::new();
    collect(node, &mut slots);
    slots
}

fn collect(node: &PlanNode, slots: &mut Vec<usize>) {
    match node {
        PlanNode::SingleRow => {}
        PlanNode::Table(access) => slots.push(access.slot),
        PlanNode::Values { slot, .. }
        | PlanNode::SubqueryScan { slot, .. }
        | PlanNode::SetOperation { slot, .. } => {
            slots.push(*slot);
        }
        PlanNode::Filter { input, .. }
        | PlanNode::Distinct { input, .. }
        | PlanNode::Limit { input, .. }
        | PlanNode::LockRows { input, .. } => collect(input, slots),
        PlanNode::Group { slot, .. } | PlanNode::Sort { slot, .. } => slots.push(*slot),
        PlanNode::Subquery { input, slot, .. } => {
            slots.push(*slot);
            collect(input, slots);
        }
        PlanNode::NestedLoop { outer, inner, .. } => {
            collect(outer, slots);
            collect(inner, slots);
        }
        PlanNode::HashJoin(join) => {
            collect(&join.outer, slots);
            collect(&join.inner, slots);
        }
        PlanNode::WindowAgg(window) => slots.push(window.slot),
        PlanNode::With { input, .. } => collect(input, slots),
        PlanNode::RecursiveUnion(union) => slots.push(union.slot),
        PlanNode::StoredScan(stored) => slots.push(stored.slot),
        PlanNode::FunctionScan(function) => slots.push(function.slot),
        PlanNode::Vectorized(batch) => collect(&batch.step, slots),
    }
}

/// Whether a step is a top-N sort of few rows, which takes little memory in row execution.
fn keeps_few(step: &PlanNode) -> bool {
    let PlanNode::Sort { most: Some((limit, _)), .. } = step else { return false };
    limit.as_constant().and_then(|limit| limit.as_ref().as_i64()).is_some_and(|limit| limit < 1_000)
}

/// Whether a step reads few columns of many rows of a whole table. Then the column cache is worth
/// more than the memory of a top-N sort.
fn scans_few_columns(step: &PlanNode, columns: &[(ColumnRef, DataType)], rows: f64) -> bool {
    let PlanNode::Sort { input, .. } = step else { return false };
    let scans_all = matches!(&**input, PlanNode::Table(access)
        if matches!(access.path, AccessPath::All) && !access.backward && !access.keys);
    scans_all && columns.len() <= CACHED_COLUMNS && rows >= CACHED_ROWS
}

/// Estimates the rows of a step from its largest scan. Right below the step, a scan of the table
/// counts with all the rows that its filter tests.
fn expected(node: &PlanNode) -> f64 {
    if let PlanNode::Table(access) = node
        && matches!(access.path, AccessPath::All)
    {
        return access.table_rows;
    }
    let mut most: f64 = 0.0;
    node.each_access(&mut |access| most = most.max(access.rows));
    if let PlanNode::Limit { limit: Some(Expr::Constant(limit)), .. } = node
        && let Some(limit) = limit.as_ref().as_i64()
    {
        most = most.min(limit as f64);
    }
    most
}
