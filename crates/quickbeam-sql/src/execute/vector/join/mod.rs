//! Vectorized hash joins.
//!
//! Above: vectorized steps, joins among them. Below: vector sources, chained rows by key. The inner
//! rows are collected as columns. The outer rows come batch by batch, and the matches of both sides
//! are gathered.
//!
//! - JOIN-1: joined rows come in the order of row execution, unless inner rows do not fit into
//!   memory and are spilled: outer rows in input order, and for each its inner rows in input order.
//!   A semi-join or anti-join returns inner rows in input order. Results that depend on the order,
//!   such as floating point sums, are the same.
//! - JOIN-2: only the first key and the first condition may fail. Row execution evaluates no
//!   further part after one that is NULL or false.

mod build;
mod inner_rows;
mod input;
mod matches;
mod probe;
mod spilled_rows;

use std::sync::Arc;

use quickbeam::invariant;

use self::input::{JoinInput, KeyColumns};
use self::matches::{JoinedColumn, Places, Sides};
use self::spilled_rows::SpilledRows;
use super::column::{VectorType, kind_of};
use super::evaluate::VectorExpr;
use super::source::{ColumnBatch, VectorSource};
use super::{can_check, conjuncts_of, known_columns, no_formula};
use crate::error::Result;
use crate::execute::row::{Context, JoinIndex, MemoryCharge, OperatorBuilder, TableScan};
use crate::expression::{ColumnRef, Expr};
use crate::plan::{self, Batch, HashJoinKind, WorkerPlan};
use crate::types::DataType;

/// The operator of a vectorized hash join.
#[derive(Debug)]
pub struct VectorJoin {
    outer: JoinInput,
    /// The inner rows; `None` in a worker's copy, whose hash table is built.
    inner: Option<JoinInput>,
    kind: HashJoinKind,
    condition: Vec<VectorExpr>,
    /// The columns that the condition reads.
    condition_columns: Vec<JoinedColumn>,
    /// The columns that are returned.
    outputs: Vec<JoinedColumn>,
    /// The stored columns of the inner rows, and their kinds.
    kept: Vec<(usize, VectorType)>,
    /// All columns of the inner and the outer rows.
    inner_columns: Vec<(ColumnRef, DataType)>,
    outer_columns: Vec<(ColumnRef, DataType)>,
    /// The keys of the batch of outer rows, if inner rows were spilled.
    outer_keys: KeyColumns,
    /// The inner rows that do not fit into memory, and the outer rows that may match them.
    spilled: Option<SpilledRows>,
    /// Whether a new run begins, to which the spilled rows do not belong.
    fresh: bool,
    chains: Arc<JoinIndex>,
    account: MemoryCharge,
    sides: Sides,
    probe: ProbeState,
    built: bool,
    /// See [`narrow_outer`](Self::narrow_outer).
    wanted: Option<ColumnRef>,
    /// Rows returned, if they are counted.
    delivered: Option<u64>,
    /// The workers that may read outer rows, and inner rows.
    workers: [JoinWorkers; 2],
}

/// The workers of one side of a join.
#[derive(Clone, Copy, Debug, Default)]
struct JoinWorkers {
    plan: Option<WorkerPlan>,
    /// How many helped.
    launched: u64,
}

/// The state of the probe side: the batch of outer rows and what has been matched.
#[derive(Debug, Default)]
struct ProbeState {
    /// For each outer row of the batch its first matching inner row.
    firsts: Vec<u32>,
    /// The outer row whose turn it is, and the inner row to be tried next, if some were tried.
    row: usize,
    candidate: Option<u32>,
    /// Something fitted that outer row.
    fitted: bool,
    /// For each inner row whether it was matched, in a semi-join or anti-join.
    fitted_rows: Vec<bool>,
    /// After the last outer row of such a join: the inner row that may be returned next.
    inner_row: Option<usize>,
}

/// Whether a join can be vectorized. `columns` are those that it reads and returns.
pub fn can_join(
    join: &plan::HashJoin,
    columns: &[(ColumnRef, DataType)],
    parameters: &[DataType],
) -> bool {
    let known = known_columns(columns, parameters);
    let formula = |nth: usize, expr: &Expr| known.formula_of_part(nth, expr);
    let mut pairs = join.outer_keys.iter().zip(&join.inner_keys).enumerate();
    let are_alike =
        pairs.all(|(nth, (outer, inner))| match (formula(nth, outer), formula(nth, inner)) {
            (Some(outer), Some(inner)) => kind_of(outer.data_type) == kind_of(inner.data_type),
            _ => false,
        });
    let is_of_sides = |(at, _): &(ColumnRef, DataType)| {
        join.outer_slots.contains(&at.slot) || join.inner_slots.contains(&at.slot)
    };
    // Row execution checks no further pairs of an inner row that was matched.
    let conjuncts = conjuncts_of(join.condition.as_ref());
    let mut conditions = conjuncts.iter().filter_map(|part| formula(0, part));
    let checks_more = join.kind.returns_inner() && conditions.any(|part| part.may_fail());
    // Without keys all rows match. A full join searches the rows for those without a match.
    join.kind != HashJoinKind::Full
        && join.check.is_none()
        && !checks_more
        && !join.outer_keys.is_empty()
        && are_alike
        && can_check(join.condition.as_ref(), &known)
        && columns.iter().all(is_of_sides)
}

impl VectorJoin {
    /// Makes the join of a batch. `wanted` are the columns that it returns.
    pub fn new(
        batch: &Batch,
        join: &plan::HashJoin,
        wanted: &[(ColumnRef, DataType)],
        builder: &OperatorBuilder<'_>,
    ) -> Result<VectorJoin> {
        let columns = &batch.columns[..];
        let mut places = Places::new(join, columns);
        let mut outer = JoinInput::new(&join.outer, &join.outer_keys, &places.outer, builder)?;
        let inner = JoinInput::new(&join.inner, &join.inner_keys, &places.inner, builder)?;
        let conjuncts = conjuncts_of(join.condition.as_ref());
        let mut read: Vec<ColumnRef> = Vec::new();
        conjuncts.iter().for_each(|part| part.each_column(&mut |column| read.push(column)));
        let is_read = |(at, _): &&(ColumnRef, DataType)| read.contains(at);
        let read: Vec<(ColumnRef, DataType)> = columns.iter().filter(is_read).copied().collect();
        let known = known_columns(&read, builder.parameters());
        let condition = conjuncts.iter().map(|part| known.formula(part).ok_or_else(no_formula));
        let condition = condition.collect::<Result<Vec<VectorExpr>>>()?;
        let later = [&outer.keys, &inner.keys, &condition].map(|parts| parts.iter().skip(1));
        let may_fail = later.into_iter().flatten().any(VectorExpr::may_fail);
        invariant!(JOIN_2, !may_fail, "a later key or condition may fail");
        let (condition_columns, outputs) = (places.of(&read)?, places.of(wanted)?);
        let skips = join.kind.skips_unmatched_outer();
        let first = join.outer_keys.first().and_then(Expr::as_column);
        let is_number = inner.keys.first().is_some_and(|key| key.data_type.is_integer());
        let wanted = first
            .filter(|column| skips && is_number && outer.source.scan_for_keys(*column).is_some());
        Ok(VectorJoin {
            outer,
            inner: Some(inner),
            kind: join.kind,
            condition,
            condition_columns,
            outputs,
            kept: places.kept,
            inner_columns: places.inner,
            outer_columns: places.outer,
            outer_keys: KeyColumns::new(),
            spilled: None,
            fresh: true,
            chains: Arc::default(),
            account: MemoryCharge::default(),
            sides: Sides::default(),
            probe: ProbeState::default(),
            built: false,
            wanted,
            delivered: builder.is_counted().then_some(0),
            workers: [batch.workers, batch.build_workers]
                .map(|plan| JoinWorkers { plan, launched: 0 }),
        })
    }

    pub fn rewind(&mut self) {
        self.outer.source.rewind();
        self.inner.iter_mut().for_each(|inner| inner.source.rewind());
        (self.built, self.fresh) = (false, true);
    }

    /// Collects the row counts here and below, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        counts.extend(self.delivered);
        let planned = self.workers.iter().filter(|workers| workers.plan.is_some());
        counts.extend(planned.map(|workers| workers.launched));
        self.outer.source.counts(counts);
        self.inner.iter().for_each(|inner| inner.source.counts(counts));
    }

    /// Returns the source of the outer rows.
    pub fn outer_source(&mut self) -> &mut VectorSource {
        &mut self.outer.source
    }

    /// See [`Operator::scan_for_keys`](super::super::row::Operator::scan_for_keys).
    pub fn scan_for_keys(&mut self, column: ColumnRef) -> Option<&mut TableScan> {
        match self.kind.returns_inner() {
            true => self.inner.as_mut()?.source.scan_for_keys(column),
            false => self.outer.source.scan_for_keys(column),
        }
    }

    /// Forgets the spilled rows of an earlier run.
    fn begin(&mut self, context: &Context<'_>) {
        if std::mem::take(&mut self.fresh)
            && let Some(spilled) = self.spilled.take()
        {
            spilled.remove(context);
        }
    }

    /// See [`VectorSource::prepare`]. Inner rows that do not fit into memory cannot be shared, nor
    /// those that are returned.
    pub fn prepare(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.kind.returns_inner() {
            return Ok(false);
        }
        self.begin(context);
        if !self.built {
            self.build(context)?;
        }
        Ok(self.spilled.is_none() && self.outer.source.prepare(context)?)
    }

    /// See [`VectorSource::fork`]. The copy shares the hash table.
    pub fn fork(&self) -> Option<VectorJoin> {
        Some(VectorJoin {
            outer: JoinInput { source: self.outer.source.fork()?, keys: self.outer.keys.clone() },
            inner: None,
            kind: self.kind,
            condition: self.condition.clone(),
            condition_columns: self.condition_columns.clone(),
            outputs: self.outputs.clone(),
            kept: Vec::new(),
            inner_columns: Vec::new(),
            outer_columns: Vec::new(),
            outer_keys: KeyColumns::new(),
            spilled: None,
            fresh: false,
            chains: self.chains.clone(),
            account: MemoryCharge::default(),
            sides: self.sides.fork(),
            probe: ProbeState::default(),
            built: true,
            wanted: None,
            delivered: self.delivered.map(|_| 0),
            workers: Default::default(),
        })
    }

    /// See [`VectorSource::add_counts`].
    pub fn add_counts(&mut self, fork: &VectorJoin) {
        self.delivered = self.delivered.zip(fork.delivered).map(|(own, more)| own + more);
        self.outer.source.add_counts(&fork.outer.source);
    }

    /// Returns the next joined rows, or `None` at the end.
    pub fn next(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        self.begin(context);
        loop {
            context.check_cancelled()?;
            if !self.built {
                self.build(context)?;
            }
            let pairs = match self.kind.returns_inner() {
                true => self.next_inner_rows(context)?,
                false => self.next_pairs(context)?,
            };
            match pairs {
                Some(pairs) if pairs.len() == 0 => {}
                Some(pairs) => {
                    if let Some(delivered) = &mut self.delivered {
                        *delivered += pairs.len() as u64;
                    }
                    return self.sides.gather(&pairs, &self.outputs).map(Some);
                }
                None if self.open_spilled()? => {}
                None => return Ok(None),
            }
        }
    }

    /// Begins to read spilled rows. Returns false if there are none.
    fn open_spilled(&mut self) -> Result<bool> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        self.built = false;
        spilled.open_next()
    }
}
