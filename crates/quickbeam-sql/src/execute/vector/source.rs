//! Vector sources: leaves of a table decoded column by column, or rows of any operator.
//!
//! - SOURCE-1: [`VectorSource::next`] fills its own columns in each call. An error drops them, so
//!   no row of a failed execution reaches the next one.

use arrow_arith::boolean::and;
use arrow_array::BooleanArray;
use quickbeam::invariant;

use super::super::row::{Context, Morsel, Operator, OperatorBuilder, TableScan};
use super::cached_columns::{CacheStep, CachedColumns, in_key_ranges};
use super::column::{self, Vector, VectorType, kind_of};
use super::connectives::FEW;
use super::evaluate::{InputColumns, VectorExpr, failed, keep};
use super::filter::Filter;
use super::join::VectorJoin;
use super::parallel::MorselQueue;
use super::selection::{Failures, LeafSelection};
use super::{conjuncts_of, known_columns};
use crate::catalog::Table;
use crate::error::{Result, SqlError};
use crate::expression::ColumnRef;
use crate::handle::column_cache::TablePart;
use crate::plan::{AccessPath, PlanNode, TableAccess, WorkerPlan};
use crate::table::{NumberAt, StoredRow};
use crate::types::{DataType, ValueRef};
use quickbeam::query_layer::{LeafVersions, ScanBatch};

/// Rows decoded together, about.
pub const ROWS: usize = 4096;

/// A source of columns.
#[derive(Debug)]
pub enum VectorSource {
    RowSource(Box<RowSource>),
    /// Rows joined by columns.
    VectorJoin(Box<VectorJoin>),
    /// Rows that satisfy a condition.
    Filter(Box<Filter>),
}

/// The rows of an operator.
#[derive(Debug)]
pub struct RowSource {
    operator: Operator,
    columns: Vec<ScannedColumn>,
    /// Conditions, if the rows come leaf by leaf. Otherwise the operator applies them.
    filter: Vec<VectorExpr>,
    /// The same, if the rows come leaf by leaf, for the records of one leaf.
    selection: Option<LeafSelection>,
    /// Whether the conditions are still to be applied to a batch.
    is_unfiltered: bool,
    by_leaf: bool,
    /// Whether the column cache is used, if the scan allows it.
    uses_cache: bool,
    cached: Option<CachedColumns>,
    begun: bool,
    /// Rows that the conditions were tested on.
    tested: usize,
}

/// A column of the rows of a scan.
#[derive(Clone, Debug)]
pub struct ScannedColumn {
    at: ColumnRef,
    kind: VectorType,
    /// Its place in a row, if it is a NOT NULL integer or short NUMERIC.
    number: Option<NumberAt>,
}

impl ScannedColumn {
    /// A column of a table's rows.
    pub fn of_table(at: ColumnRef, kind: VectorType, table: &Table) -> ScannedColumn {
        let known = table.columns.get(at.column).filter(|known| known.not_null);
        ScannedColumn { at, kind, number: known.and_then(|_| table.number_at(at.column)) }
    }

    /// Its position in the table.
    pub fn position(&self) -> usize {
        self.at.column
    }

    /// An empty column.
    pub fn builder(&self) -> column::ColumnBuilder {
        column::ColumnBuilder::new(self.kind)
    }
}

/// Columns of some rows.
#[derive(Debug, Default)]
pub struct ColumnBatch {
    pub rows: usize,
    pub vectors: Vec<Vector>,
}

impl ColumnBatch {
    /// The columns that were filled with `rows` rows.
    fn finish(rows: usize, mut builders: Vec<column::ColumnBuilder>) -> ColumnBatch {
        let vectors: Vec<Vector> = builders.iter_mut().map(column::ColumnBuilder::finish).collect();
        let are_full = || vectors.iter().all(|vector| vector.array().len() == rows);
        invariant!(SOURCE_1, are_full(), "a column has not {rows} values");
        ColumnBatch { rows, vectors }
    }

    /// Keeps the rows that satisfy all conditions. One that may fail sees only rows that passed the
    /// earlier ones (BATCH-2). The others are evaluated for all rows as long as most rows pass,
    /// because a comparison costs less than copying the columns.
    pub fn narrow(&mut self, conditions: &[VectorExpr]) -> Result<()> {
        let mut passed: Option<BooleanArray> = None;
        for condition in conditions {
            if condition.may_fail() {
                self.keep(passed.take())?;
            }
            if self.rows == 0 {
                break;
            }
            let truths = condition.truths(&self.vectors, self.rows)?;
            let truths = match passed.take() {
                Some(earlier) => and(&earlier, &truths).map_err(|error| failed(&error))?,
                None => truths,
            };
            if truths.true_count() < self.rows / FEW {
                self.keep(Some(truths))?;
            } else {
                passed = Some(truths);
            }
        }
        self.keep(passed)
    }

    /// Keeps the rows for which a condition is true.
    pub fn keep(&mut self, truths: Option<BooleanArray>) -> Result<()> {
        if let Some(truths) = truths.filter(|truths| truths.true_count() < self.rows) {
            (self.vectors, self.rows) = keep(&self.vectors, &truths)?;
        }
        Ok(())
    }
}

impl VectorSource {
    /// Makes the source of a step with these columns.
    pub fn of(
        input: &PlanNode,
        columns: &[(ColumnRef, DataType)],
        builder: &OperatorBuilder<'_>,
    ) -> Result<VectorSource> {
        if let PlanNode::Vectorized(batch) = input {
            let read = &batch.columns;
            match &batch.step {
                PlanNode::HashJoin(join) => {
                    let join = VectorJoin::new(batch, join, columns, builder)?;
                    return Ok(VectorSource::VectorJoin(Box::new(join)));
                }
                PlanNode::Filter { input, condition } => {
                    let filter = Filter::new(input, condition, read, columns, builder)?;
                    return Ok(VectorSource::Filter(Box::new(filter)));
                }
                _ => {}
            }
        }
        let (filter, selection) = match input {
            PlanNode::Table(access) => {
                let (table, filter) = (&access.table, access.filter.as_ref());
                let selection = filter.and_then(|filter| {
                    let place = (&**table, access.slot);
                    LeafSelection::new(filter, place, builder.parameters(), Failures::Allowed)
                });
                (leaf_filter(access, &known_columns(columns, builder.parameters())), selection)
            }
            _ => (None, None),
        };
        Ok(VectorSource::RowSource(Box::new(RowSource::new(
            builder.operator(input)?,
            columns,
            (filter, selection),
        )?)))
    }

    pub fn rewind(&mut self) {
        match self {
            VectorSource::RowSource(rows) => rows.rewind(),
            VectorSource::VectorJoin(join) => join.rewind(),
            VectorSource::Filter(filter) => filter.rewind(),
        }
    }

    /// Returns the next rows, or `None` at the end.
    pub fn next(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        match self {
            VectorSource::RowSource(rows) => rows.next(context),
            VectorSource::VectorJoin(join) => join.next(context),
            VectorSource::Filter(filter) => filter.next(context),
        }
    }

    /// Builds the hash tables and begins the scan of the outermost rows, as [`next`](Self::next)
    /// would. Returns whether several threads can go on from here.
    pub fn prepare(&mut self, context: &mut Context<'_>) -> Result<bool> {
        match self {
            VectorSource::RowSource(rows) => rows.prepare(context),
            VectorSource::VectorJoin(join) => join.prepare(context),
            VectorSource::Filter(filter) => filter.prepare(context),
        }
    }

    /// Makes a worker's copy of a source that was [prepared](Self::prepare). Its outermost scan
    /// reads nothing until it is given a morsel.
    pub fn fork(&self) -> Option<VectorSource> {
        Some(match self {
            VectorSource::RowSource(rows) => VectorSource::RowSource(Box::new(rows.fork()?)),
            VectorSource::VectorJoin(join) => VectorSource::VectorJoin(Box::new(join.fork()?)),
            VectorSource::Filter(filter) => VectorSource::Filter(Box::new(filter.fork()?)),
        })
    }

    /// Begins to read a morsel of the outermost rows.
    pub fn begin_morsel(&mut self, morsel: &Morsel) -> Result<()> {
        let scan = self.outer_scan();
        scan.ok_or_else(|| SqlError::internal("a worker without a scan"))?.begin_morsel(morsel);
        Ok(())
    }

    /// Returns the scan of the outermost rows.
    pub fn outer_scan(&mut self) -> Option<&mut TableScan> {
        match self {
            VectorSource::RowSource(rows) => rows.operator.as_scan().map(|(scan, _)| scan),
            VectorSource::VectorJoin(join) => join.outer_source().outer_scan(),
            VectorSource::Filter(filter) => filter.source.outer_scan(),
        }
    }

    /// [Prepares](Self::prepare) the source, and cuts the scan of the outermost rows into morsels.
    /// Returns them with the number of threads, or `None` if one thread has to read the source.
    pub fn queue(
        &mut self,
        plan: WorkerPlan,
        context: &mut Context<'_>,
    ) -> Result<Option<(usize, MorselQueue)>> {
        if !self.prepare(context)? {
            return Ok(None);
        }
        let morsels = self.morsels(plan, context)?;
        let threads = (plan.workers + 1).min(morsels.len());
        Ok((threads > 1).then(|| (threads, MorselQueue::new(morsels))))
    }

    fn morsels(&mut self, plan: WorkerPlan, context: &Context<'_>) -> Result<Vec<Morsel>> {
        match self {
            VectorSource::RowSource(rows) => rows.morsels(plan, context),
            VectorSource::VectorJoin(join) => join.outer_source().morsels(plan, context),
            VectorSource::Filter(filter) => filter.source.morsels(plan, context),
        }
    }

    /// Adds the row counts of a worker's copy, for EXPLAIN ANALYZE.
    pub fn add_counts(&mut self, fork: &VectorSource) {
        match (self, fork) {
            (VectorSource::RowSource(own), VectorSource::RowSource(fork)) => {
                own.operator.add_count(&fork.operator);
            }
            (VectorSource::VectorJoin(own), VectorSource::VectorJoin(fork)) => {
                own.add_counts(fork);
            }
            (VectorSource::Filter(own), VectorSource::Filter(fork)) => own.add_counts(fork),
            _ => {}
        }
    }

    /// Collects the row counts here and below, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        match self {
            VectorSource::RowSource(rows) => rows.operator.counts(counts),
            VectorSource::VectorJoin(join) => join.counts(counts),
            VectorSource::Filter(filter) => filter.counts(counts),
        }
    }

    /// Returns the number of rows that the conditions of its scan were tested on in this run, if
    /// its rows come from a scan.
    pub fn tested_rows(&self) -> Option<usize> {
        match self {
            VectorSource::RowSource(rows) => Some(rows.tested),
            VectorSource::VectorJoin(_) | VectorSource::Filter(_) => None,
        }
    }

    /// See [`Operator::scan_for_keys`].
    pub fn scan_for_keys(&mut self, column: ColumnRef) -> Option<&mut TableScan> {
        match self {
            VectorSource::RowSource(rows) => rows.operator.scan_for_keys(column),
            VectorSource::VectorJoin(join) => join.scan_for_keys(column),
            VectorSource::Filter(filter) => filter.source.scan_for_keys(column),
        }
    }
}

/// Returns the scan of the outermost rows of a source, if several threads can share it.
pub fn shared_scan<'n>(
    node: &'n PlanNode,
    columns: &[(ColumnRef, DataType)],
    parameters: &[DataType],
) -> Option<&'n TableAccess> {
    match node {
        PlanNode::Vectorized(batch) => match &batch.step {
            PlanNode::HashJoin(join) if !join.kind.returns_inner() => {
                let is_outer =
                    |(at, _): &&(ColumnRef, DataType)| join.outer_slots.contains(&at.slot);
                let columns: Vec<_> = batch.columns.iter().filter(is_outer).copied().collect();
                shared_scan(&join.outer, &columns, parameters)
            }
            PlanNode::Filter { input, .. } => shared_scan(input, &batch.columns, parameters),
            _ => None,
        },
        PlanNode::Table(access) => {
            let is_shared = !access.backward && access.table.access_method().is_ordered();
            let known = known_columns(columns, parameters);
            (is_shared && leaf_filter(access, &known).is_some()).then_some(access)
        }
        _ => None,
    }
}

/// The conditions of a scan as formulas, if its rows can be decoded leaf by leaf. Those that read
/// texts come last, if none may fail: most rows have failed a comparison of numbers by then.
pub fn leaf_filter(access: &TableAccess, known: &InputColumns<'_>) -> Option<Vec<VectorExpr>> {
    let by_leaf = matches!(access.path, AccessPath::All | AccessPath::KeyRange(_)) && !access.keys;
    if !by_leaf || access.table.is_database() {
        return None;
    }
    let conjuncts = conjuncts_of(access.filter.as_ref());
    let formulas = conjuncts.iter().map(|conjunct| known.formula(conjunct));
    let mut formulas = formulas.collect::<Option<Vec<VectorExpr>>>()?;
    if !formulas.iter().any(VectorExpr::may_fail) {
        formulas.sort_by_key(VectorExpr::reads_texts);
    }
    Some(formulas)
}

impl RowSource {
    /// Makes a source over an operator. With a filter, the operator is a scan whose leaves are
    /// decoded, and the filter is its whole condition.
    fn new(
        operator: Operator,
        columns: &[(ColumnRef, DataType)],
        (filter, selection): (Option<Vec<VectorExpr>>, Option<LeafSelection>),
    ) -> Result<RowSource> {
        let mut wanted = Vec::with_capacity(columns.len());
        for (at, data_type) in columns {
            let kind = kind_of(*data_type);
            let kind = kind.ok_or_else(|| SqlError::internal("a column that stays in rows"))?;
            wanted.push(ScannedColumn { at: *at, kind, number: None });
        }
        let filter_is_by_leaf = filter.is_some();
        let mut source = RowSource {
            operator,
            columns: wanted,
            by_leaf: filter.is_some(),
            selection: selection.filter(|_| filter.is_some()),
            filter: filter.unwrap_or_default(),
            is_unfiltered: true,
            uses_cache: filter_is_by_leaf,
            cached: None,
            begun: false,
            tested: 0,
        };
        if source.by_leaf {
            let (scan, _) = source.operator.as_scan().ok_or_else(no_scan)?;
            let table = scan.table().clone();
            for wanted in &mut source.columns {
                *wanted = ScannedColumn::of_table(wanted.at, wanted.kind, &table);
            }
            let numbers: Option<Vec<NumberAt>> =
                source.columns.iter().map(|wanted| wanted.number).collect();
            if let (Some(numbers), Some((scan, _))) = (numbers, source.operator.as_scan()) {
                scan.want_numbers(&numbers);
            }
        }
        Ok(source)
    }

    fn rewind(&mut self) {
        self.operator.rewind();
        self.cached = None;
        self.begun = false;
        self.tested = 0;
    }

    fn prepare(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.by_leaf {
            return Ok(false);
        }
        self.begin(context)?;
        let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
        scan.begin(context)?;
        self.open_cache(context)?;
        Ok(true)
    }

    fn morsels(&mut self, plan: WorkerPlan, context: &Context<'_>) -> Result<Vec<Morsel>> {
        let cached = &self.cached;
        let cut = |key: Vec<u8>| match cached {
            Some(cached) => cached.cut(key),
            None => key,
        };
        let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
        scan.morsels(plan, &cut, context)
    }

    fn fork(&self) -> Option<RowSource> {
        Some(RowSource {
            operator: self.operator.fork_scan()?,
            columns: self.columns.clone(),
            filter: self.filter.clone(),
            selection: self.selection.clone(),
            is_unfiltered: true,
            by_leaf: self.by_leaf,
            uses_cache: self.uses_cache,
            cached: self.cached.as_ref().map(CachedColumns::fork),
            begun: true,
            tested: 0,
        })
    }

    fn begin(&mut self, context: &Context<'_>) -> Result<()> {
        if !self.begun {
            self.begun = true;
            self.filter.iter_mut().try_for_each(|condition| condition.begin(context))?;
            if let Some(selection) = &mut self.selection {
                selection.begin(context)?;
            }
        }
        Ok(())
    }

    fn next(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        self.begin(context)?;
        loop {
            context.check_cancelled()?;
            let batch = match self.read_cached(context)? {
                Some(batch) => {
                    self.tested += batch.rows;
                    Some(batch)
                }
                None => self.read(context)?,
            };
            let Some(mut columns) = batch else { return Ok(None) };
            if self.is_unfiltered {
                columns.narrow(&self.filter)?;
            }
            if self.by_leaf
                && let Some((_, Some(count))) = self.operator.as_scan()
            {
                *count += columns.rows as u64;
            }
            if columns.rows > 0 {
                return Ok(Some(columns));
            }
        }
    }

    /// Reads rows, or returns `None` at the end.
    fn read(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        let mut builders = self.builders();
        let rows = match self.by_leaf {
            true => self.leaves(context, &mut builders)?,
            false => self.each(context, &mut builders)?,
        };
        Ok(rows.map(|rows| ColumnBatch::finish(rows, builders)))
    }

    /// Begins to use the column cache, if that is possible.
    fn open_cache(&mut self, context: &Context<'_>) -> Result<()> {
        if self.uses_cache && self.cached.is_none() {
            let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
            scan.begin(context)?;
            let positions = self.columns.iter().map(ScannedColumn::position);
            self.cached = scan.cached_columns(positions, context).map(CachedColumns::new);
            self.uses_cache = self.cached.is_some();
        }
        Ok(())
    }

    /// Takes the next rows from the column cache, or decodes them for it. Returns `None` if leaves
    /// are to be read as without it.
    fn read_cached(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        self.open_cache(context)?;
        let Some(cached) = &mut self.cached else { return Ok(None) };
        let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
        let mut batch = match cached.place(scan, &self.columns, context)? {
            CacheStep::Read => return Ok(None),
            CacheStep::Taken(batch, part) => {
                invariant!(COLUMNS_1, self.are_current(&batch, &part, context)?, "{part:?}");
                batch
            }
            CacheStep::Decoded(part) => self.decode_part(&part, context)?,
        };
        self.is_unfiltered = true;
        let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
        batch.keep(in_key_ranges(&batch, &self.columns, scan.key_ranges())?)?;
        Ok(Some(batch))
    }

    /// Returns whether the columns of a part are those of the rows in its leaves, which are read
    /// again.
    fn are_current(
        &mut self,
        batch: &ColumnBatch,
        part: &TablePart,
        context: &mut Context<'_>,
    ) -> Result<bool> {
        let mut builders = self.builders();
        let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
        let rest = scan.go_back(part);
        let mut rows = 0;
        for _ in 0..part.leaves.len() {
            if scan.next_leaf(context)? {
                rows += decode_leaf(scan, context, &self.columns, &mut builders)?;
            }
        }
        scan.go_on(rest);
        let read = ColumnBatch::finish(rows, builders);
        let mut pairs = read.vectors.iter().zip(&batch.vectors);
        Ok(rows == batch.rows && pairs.all(|(read, kept)| read.array() == kept.array()))
    }

    /// Decodes all rows of the leaves of a part, and puts their columns into the cache.
    fn decode_part(&mut self, part: &TablePart, context: &mut Context<'_>) -> Result<ColumnBatch> {
        let mut builders = self.builders();
        let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
        let (mut leaves, mut rows) = (LeafVersions::default(), 0);
        let mut is_settled = scan.begin_leaves(&mut leaves);
        scan.read_all(true);
        for _ in 0..part.leaves.len() {
            if !scan.next_leaf(context)? {
                break;
            }
            is_settled &= scan.note_leaf(&mut leaves, context);
            is_settled &= context.slot(scan.slot())?.batch.is_settled();
            rows += decode_leaf(scan, context, &self.columns, &mut builders)?;
        }
        scan.read_all(false);
        let mut batch = ColumnBatch::finish(rows, builders);
        batch.vectors.iter_mut().for_each(Vector::shrink);
        if let Some(cached) = &self.cached {
            cached.keep(part, (leaves, is_settled), (&batch, &self.columns), context);
        }
        Ok(batch)
    }

    /// An empty builder for each column (SOURCE-1).
    fn builders(&self) -> Vec<column::ColumnBuilder> {
        self.columns.iter().map(ScannedColumn::builder).collect()
    }

    /// Decodes leaves into the builders and returns the number of rows, or `None` at the end.
    /// Records that fail the conditions are not decoded.
    fn leaves(
        &mut self,
        context: &mut Context<'_>,
        builders: &mut [column::ColumnBuilder],
    ) -> Result<Option<usize>> {
        let (scan, _) = self.operator.as_scan().ok_or_else(no_scan)?;
        let mut rows = 0;
        self.is_unfiltered = false;
        while rows < ROWS {
            if let Some(cached) = &mut self.cached {
                if cached.stops(scan) {
                    cached.end_noting(context);
                    return Ok(Some(rows));
                }
                cached.begin_noting(scan);
            }
            let goes_on = scan.next_leaf(context)?;
            if let Some(cached) = &mut self.cached {
                match goes_on {
                    true => cached.note(scan, context),
                    false => cached.end_noting(context),
                }
            }
            if !goes_on {
                return Ok((rows > 0).then_some(rows));
            }
            let Some(slot) = context.slots.get(scan.slot()) else { continue };
            let (table, batch) = (scan.table(), &slot.batch);
            self.tested += batch.len().max(batch.rows());
            let is_filtered = scan.is_filtered(batch);
            if take_numbers(batch, builders)? {
                rows += batch.rows();
                self.is_unfiltered |= !is_filtered;
                continue;
            }
            let Some(selection) = self.selection.as_mut().filter(|_| !is_filtered) else {
                decode(table, batch, || 0..batch.len(), &self.columns, builders)?;
                rows += batch.len();
                self.is_unfiltered |= !is_filtered;
                continue;
            };
            selection.select(table, batch)?;
            let selected = || selection.rows.iter().map(|row| *row as usize);
            decode(table, batch, selected, &self.columns, builders)?;
            rows += selection.rows.len();
        }
        Ok(Some(rows))
    }

    /// Appends rows of the operator to the builders, one by one, and returns the number of rows, or
    /// `None` at the end.
    fn each(
        &mut self,
        context: &mut Context<'_>,
        builders: &mut [column::ColumnBuilder],
    ) -> Result<Option<usize>> {
        let mut rows = 0;
        while rows < ROWS && self.operator.next(context)? {
            for (wanted, builder) in self.columns.iter().zip(&mut *builders) {
                let slot = context.slots.get(wanted.at.slot);
                let value = slot.map_or(Ok(ValueRef::Null), |slot| slot.column(wanted.at.column));
                builder.push(value?)?;
            }
            rows += 1;
        }
        Ok((rows > 0).then_some(rows))
    }
}

#[cold]
fn no_scan() -> SqlError {
    SqlError::internal("leaves of what is no table")
}

/// Appends the columns that a scan has read instead of records. Returns false if it has records.
fn take_numbers(batch: &ScanBatch, builders: &mut [column::ColumnBuilder]) -> Result<bool> {
    if batch.rows() == 0 {
        return Ok(false);
    }
    for (nth, builder) in builders.iter_mut().enumerate() {
        match builder {
            column::ColumnBuilder::Numbers(builder)
            | column::ColumnBuilder::Decimals(builder, _) => {
                builder.append_slice(batch.column(nth));
            }
            _ => return Err(SqlError::internal("a number that is kept as something else")),
        }
    }
    Ok(true)
}

/// Decodes all records of the leaf that a scan has just read. Returns their number.
fn decode_leaf(
    scan: &TableScan,
    context: &Context<'_>,
    columns: &[ScannedColumn],
    builders: &mut [column::ColumnBuilder],
) -> Result<usize> {
    let Some(slot) = context.slots.get(scan.slot()) else { return Ok(0) };
    let batch = &slot.batch;
    if take_numbers(batch, builders)? {
        return Ok(batch.rows());
    }
    decode(scan.table(), batch, || 0..batch.len(), columns, builders)?;
    Ok(batch.len())
}

/// Decodes records of a leaf, column by column.
pub fn decode<I: Iterator<Item = usize>>(
    table: &Table,
    batch: &ScanBatch,
    records: impl Fn() -> I,
    columns: &[ScannedColumn],
    builders: &mut [column::ColumnBuilder],
) -> Result<()> {
    let is_current = records().all(|record| table.is_current(batch.value(record)));
    for (wanted, builder) in columns.iter().zip(builders) {
        if let (
            Some(number),
            column::ColumnBuilder::Numbers(builder) | column::ColumnBuilder::Decimals(builder, _),
            true,
        ) = (&wanted.number, &mut *builder, is_current)
        {
            for record in records() {
                builder.append_value(number.read(batch.value(record))?);
            }
            continue;
        }
        for record in records() {
            let row = StoredRow::new(table, batch.value(record))?;
            builder.push(row.get(wanted.at.column)?)?;
        }
    }
    Ok(())
}
