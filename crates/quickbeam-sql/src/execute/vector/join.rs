//! Vectorized hash joins.
//!
//! Above: vectorized steps, joins among them. Below: vector sources, chained rows by key. The inner
//! rows are collected as columns. The outer rows come batch by batch, and the matches of both sides
//! are gathered.
//!
//! - JOIN-1: joined rows come in the order of row execution, unless inner rows do not fit into
//!   memory and wait: outer rows in input order, and for each its inner rows in input order. A
//!   semi-join or anti-join returns inner rows in input order. Results that depend on the order,
//!   such as floating point sums, are the same.
//! - JOIN-2: only the first key and the first condition may fail. Row execution evaluates no
//!   further part after one that is NULL or false.

use std::sync::Arc;

use arrow_array::{Array, Int64Array};
use quickbeam::invariant;

use super::super::row::{
    Context, JoinIndex, MemoryCharge, NONE, OperatorBuilder, ROW_BYTES, TableScan, members_of,
};
use super::column::{ColumnBuilder as Filling, Vector, VectorType, kind_of};
use super::evaluate::VectorExpr;
use super::join_input::{JoinInput, KeyColumns, make_key, rows_with_keys};
use super::join_matches::{JoinMatches, JoinedColumn, Places, Sides};
use super::join_spill::{WaitingInnerRows, WaitingRows};
use super::source::{ColumnBatch, VectorSource};
use super::{can_check, conjuncts_of, known_columns, no_formula};
use crate::error::{Result, SqlError};
use crate::expression::{ColumnRef, Expr};
use crate::plan::{self, HashJoinKind};
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
    /// The keys of the batch of outer rows, if inner rows wait.
    outer_keys: KeyColumns,
    /// The inner rows that do not fit into memory, and the outer rows that may match them.
    waiting: Option<WaitingRows>,
    /// Whether a new run begins, to which the rows that wait do not belong.
    fresh: bool,
    chains: Arc<JoinIndex>,
    account: MemoryCharge,
    sides: Sides,
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
    built: bool,
    /// See [`narrow_outer`](Self::narrow_outer).
    wanted: Option<ColumnRef>,
    /// Rows returned, if they are counted.
    delivered: Option<u64>,
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
    /// Makes the join. `columns` are those that it reads and returns, `wanted` those that it
    /// returns.
    pub fn new(
        join: &plan::HashJoin,
        columns: &[(ColumnRef, DataType)],
        wanted: &[(ColumnRef, DataType)],
        builder: &OperatorBuilder<'_>,
    ) -> Result<VectorJoin> {
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
            waiting: None,
            fresh: true,
            chains: Arc::default(),
            account: MemoryCharge::default(),
            sides: Sides::default(),
            firsts: Vec::new(),
            row: 0,
            candidate: None,
            fitted: false,
            fitted_rows: Vec::new(),
            inner_row: None,
            built: false,
            wanted,
            delivered: builder.is_counted().then_some(0),
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

    /// Returns the bytes of waiting rows that are read at a time.
    fn portion(context: &Context<'_>) -> usize {
        (context.limits.memory.get() / 64).clamp(8 << 10, 1 << 20)
    }

    fn next_inner(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        match &mut self.waiting {
            Some(waiting) if waiting.is_read => {
                waiting.next_inner(&self.inner_columns, Self::portion(context))
            }
            _ => match &mut self.inner {
                Some(inner) => inner.source.next(context),
                None => Ok(None),
            },
        }
    }

    fn next_outer(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        match &mut self.waiting {
            Some(waiting) if waiting.is_read => {
                waiting.next_outer(&self.outer_columns, Self::portion(context))
            }
            _ => self.outer.source.next(context),
        }
    }

    /// Collects the inner rows of this level.
    fn build(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.built = true;
        self.account.clear(context);
        Arc::make_mut(&mut self.chains).clear();
        self.firsts.clear();
        (self.row, self.candidate, self.fitted) = (0, None, false);
        (self.fitted_rows, self.inner_row) = (Vec::new(), None);
        let earlier = self.chains.rows();
        invariant!(DIRECT_2, earlier == 0, "{earlier} rows of an earlier run");
        let inner_keys = self.inner.iter_mut().flat_map(|inner| &mut inner.keys);
        let keys = self.outer.keys.iter_mut().chain(inner_keys);
        keys.chain(&mut self.condition).try_for_each(|formula| formula.begin(context))?;
        let mut pieces: Vec<Vec<Vector>> = self.kept.iter().map(|_| Vec::new()).collect();
        let mut numbers: Vec<i64> = Vec::new();
        while let Some(columns) = self.next_inner(context)? {
            context.check_cancelled()?;
            let keys = self.inner.as_ref().ok_or_else(no_formula)?.keys_of(&columns)?;
            let has_key = match self.kind.returns_unmatched_inner() {
                true => None,
                false => rows_with_keys(&keys)?,
            };
            let left = |vector: &Vector| match &has_key {
                None => Ok(vector.clone()),
                Some(has_key) => vector.filtered(has_key),
            };
            let key = |(vector, data_type): &(Vector, DataType)| Ok((left(vector)?, *data_type));
            let left_keys = keys.iter().map(key).collect::<Result<KeyColumns>>()?;
            let column = |(nth, _): &(usize, VectorType)| {
                left(columns.vectors.get(*nth).ok_or_else(no_formula)?)
            };
            let kept = self.kept.iter().map(column).collect::<Result<Vec<Vector>>>()?;
            if let (Some(_), Some((Vector::Numbers(first), _))) = (self.wanted, left_keys.first()) {
                self.note_numbers(&mut numbers, first);
            }
            if self.fits(&kept, &left_keys, context)? {
                pieces.iter_mut().zip(kept).for_each(|(piece, column)| piece.push(column));
                self.add_rows(&left_keys);
                continue;
            }
            let waiting = match &mut self.waiting {
                Some(waiting) => waiting,
                waiting => waiting.insert(WaitingRows::new(context)?),
            };
            let rows = match self.kind.returns_unmatched_inner() {
                true => WaitingInnerRows::All,
                false => WaitingInnerRows::WithKeys,
            };
            waiting.push_inner(&columns, &self.inner_columns, &keys, rows)?;
        }
        let (kept, rows) = (self.account.kept(), self.chains.rows());
        invariant!(DIRECT_3, kept >= rows * ROW_BYTES, "{kept} bytes for {rows} rows");
        if self.kind.returns_inner() {
            self.fitted_rows.resize(rows, false);
        }
        // The pieces of one column after the other are let go.
        let inner = pieces.into_iter().zip(&self.kept).map(|(pieces, (_, kind))| {
            if pieces.is_empty() {
                Ok(Filling::new(*kind).finish())
            } else {
                Vector::joined(&pieces)
            }
        });
        self.sides.set_inner(inner.collect::<Result<Vec<Vector>>>()?);
        match &mut self.waiting {
            Some(waiting) if waiting.is_read => waiting.begin_outer(),
            Some(waiting) => {
                waiting.begin_outer()?;
                self.narrow_outer(&numbers, context)
            }
            None => self.narrow_outer(&numbers, context),
        }
    }

    /// Notes the first keys of inner rows: all of them, or their bounds if inner rows wait.
    fn note_numbers(&self, numbers: &mut Vec<i64>, more: &Int64Array) {
        if self.waiting.is_none() {
            return match more.null_count() {
                0 => numbers.extend(more.values()),
                _ => numbers.extend(more.iter().flatten()),
            };
        }
        let all = || numbers.iter().copied().chain(more.iter().flatten());
        *numbers = all().min().into_iter().chain(all().max()).collect();
    }

    /// Charges inner rows. Returns false if they must wait.
    fn fits(&mut self, kept: &[Vector], keys: &KeyColumns, context: &Context<'_>) -> Result<bool> {
        if self.waiting.as_ref().is_some_and(WaitingRows::has_inner_rows) {
            return Ok(false);
        }
        let rows = keys.first().map_or(0, |(vector, _)| vector.array().len());
        let of_keys = match &keys[..] {
            [(Vector::Numbers(_), _)] => 0,
            _ => keys.iter().map(|(vector, _)| vector.bytes() + rows * 8).sum(),
        };
        let of_number = if self.wanted.is_some() { size_of::<i64>() } else { 0 };
        let of_columns: usize = kept.iter().map(Vector::bytes).sum();
        let more = of_columns + of_keys + rows * (ROW_BYTES + of_number);
        let bytes = self.account.kept() + more;
        // A portion of the rows that wait is kept in any case, so that their number decreases.
        let is_first = self.chains.rows() == 0;
        if is_first && self.waiting.as_ref().is_some_and(|waiting| waiting.is_read) {
            self.account.set(bytes, context);
            return Ok(true);
        }
        self.account.fits(bytes, context)
    }

    /// Adds inner rows.
    fn add_rows(&mut self, keys: &KeyColumns) {
        let rows = keys.first().map_or(0, |(vector, _)| vector.array().len());
        let chains = Arc::make_mut(&mut self.chains);
        if let [(Vector::Numbers(numbers), _)] = &keys[..] {
            if numbers.null_count() == 0 {
                return numbers.values().iter().for_each(|number| chains.add_number(*number));
            }
            return numbers.iter().for_each(|number| match number {
                Some(number) => chains.add_number(number),
                None => chains.add_without_key(),
            });
        }
        let mut key = Vec::new();
        for row in 0..rows {
            match make_key(keys, row, &mut key) {
                true => chains.add_bytes(&key),
                false => chains.add_without_key(),
            }
        }
    }

    /// Limits the scan of the outer rows to the keys of the inner rows, if the first key is an
    /// integer column.
    fn narrow_outer(&mut self, numbers: &[i64], context: &Context<'_>) -> Result<()> {
        let Some(column) = self.wanted else { return Ok(()) };
        let (low, high, members) = match (&self.waiting, numbers) {
            (Some(_), [low, high]) => (*low, *high, None),
            _ => members_of(numbers),
        };
        let bytes = members.as_ref().map_or(0, |bits| bits.len() * 8);
        let members = match bytes == 0 || self.account.fits(self.account.kept() + bytes, context)? {
            true => members,
            false => None,
        };
        if let Some(scan) = self.outer.source.scan_for_keys(column) {
            scan.push_down_key_filters(column, low, high, members);
        }
        Ok(())
    }

    /// Forgets the rows of an earlier run that wait.
    fn begin(&mut self, context: &Context<'_>) {
        if std::mem::take(&mut self.fresh)
            && let Some(waiting) = self.waiting.take()
        {
            waiting.remove(context);
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
        Ok(self.waiting.is_none() && self.outer.source.prepare(context)?)
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
            waiting: None,
            fresh: false,
            chains: self.chains.clone(),
            account: MemoryCharge::default(),
            sides: self.sides.fork(),
            firsts: Vec::new(),
            row: 0,
            candidate: None,
            fitted: false,
            fitted_rows: Vec::new(),
            inner_row: None,
            built: true,
            wanted: None,
            delivered: self.delivered.map(|_| 0),
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
                None if self.open_waiting()? => {}
                None => return Ok(None),
            }
        }
    }

    /// Takes the next batch of outer rows, if all rows of this one were tried. Returns false after
    /// the last one.
    fn advance_outer(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.row >= self.firsts.len() {
            let Some(columns) = self.next_outer(context)? else { return Ok(false) };
            self.look_up(columns)?;
        }
        Ok(true)
    }

    /// Returns the next matches, or `None` after the last outer row.
    fn next_pairs(&mut self, context: &mut Context<'_>) -> Result<Option<JoinMatches>> {
        if !self.advance_outer(context)? {
            return Ok(None);
        }
        let from = self.row;
        let mut pairs = self.pair();
        if !self.condition.is_empty() && pairs.len() > 0 {
            pairs = self.fitting(&pairs)?;
        }
        if self.kind == HashJoinKind::Left {
            pairs = self.with_unfitted(from, &pairs)?;
        }
        // Outer rows match at most once here. If there are as many matches as outer rows, every
        // outer row matched.
        pairs.are_all_outer = !self.chains.is_repeated() && pairs.len() == self.firsts.len();
        invariant!(JOIN_1, pairs.iter().is_sorted(), "{} pairs", pairs.len());
        Ok(Some(pairs))
    }

    /// Returns the next inner rows of a semi-join or anti-join, without outer rows, or `None` after
    /// the last one. All outer rows are read first.
    fn next_inner_rows(&mut self, context: &mut Context<'_>) -> Result<Option<JoinMatches>> {
        if self.inner_row.is_none() {
            while self.advance_outer(context)? {
                context.check_cancelled()?;
                self.mark_matched()?;
            }
        }
        let (mut row, mut room) = (self.inner_row.unwrap_or(0), Sides::ROOM);
        let fitted = self.kind == HashJoinKind::RightSemi;
        let mut pairs = JoinMatches::default();
        while let Some(is_fitted) = self.fitted_rows.get(row).filter(|_| room > 0) {
            if *is_fitted == fitted {
                pairs.push(NONE, row as u32);
                room = room.saturating_sub(self.sides.weight(NONE as usize, row as u32));
            }
            row += 1;
        }
        self.inner_row = Some(row);
        invariant!(JOIN_1, pairs.iter().is_sorted(), "{} rows", pairs.len());
        Ok((pairs.len() > 0).then_some(pairs))
    }

    /// Marks the inner rows that match outer rows of the batch.
    fn mark_matched(&mut self) -> Result<()> {
        if !self.condition.is_empty() {
            let mut pairs = self.pair();
            pairs.retain_inner(|row| self.fitted_rows.get(row as usize) == Some(&false));
            if pairs.len() > 0 {
                pairs = self.fitting(&pairs)?;
            }
            for (_, inner) in pairs.iter() {
                self.fitted_rows[inner as usize] = true;
            }
            return Ok(());
        }
        for first in self.firsts.iter() {
            // All rows of a key are marked with its first one.
            let mut inner = *first;
            while self.fitted_rows.get(inner as usize) == Some(&false) {
                self.fitted_rows[inner as usize] = true;
                inner = self.chains.next(inner).unwrap_or(NONE);
            }
        }
        self.row = self.firsts.len();
        Ok(())
    }

    /// Begins to read rows that wait. Returns false if there are none.
    fn open_waiting(&mut self) -> Result<bool> {
        let Some(waiting) = &mut self.waiting else { return Ok(false) };
        self.built = false;
        waiting.open_next()
    }

    /// Takes a batch of outer rows and looks up the first inner row of each.
    fn look_up(&mut self, columns: ColumnBatch) -> Result<()> {
        let keys = self.outer.keys_of(&columns)?;
        (self.row, self.candidate, self.fitted) = (0, None, false);
        self.firsts.clear();
        let chains = &*self.chains;
        match &keys[..] {
            [(Vector::Numbers(numbers), _)] if numbers.null_count() == 0 => {
                let firsts = numbers.values().iter().map(|number| chains.first_of_number(*number));
                self.firsts.extend(firsts);
            }
            [(Vector::Numbers(numbers), _)] => {
                let first =
                    |number: Option<i64>| number.map_or(NONE, |n| chains.first_of_number(n));
                self.firsts.extend(numbers.iter().map(first));
            }
            _ => {
                let mut key = Vec::new();
                self.firsts.extend((0..columns.rows).map(|row| {
                    if make_key(&keys, row, &mut key) { chains.first_of_bytes(&key) } else { NONE }
                }));
            }
        }
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.has_inner_rows()) else {
            self.sides.set_outer(columns);
            return Ok(());
        };
        if self.kind != HashJoinKind::Left {
            for row in 0..columns.rows {
                waiting.push_outer(&columns, &self.outer_columns, &keys, (row, true))?;
            }
        }
        self.outer_keys = keys;
        self.sides.set_outer(columns);
        Ok(())
    }

    /// The next pairs of rows with equal keys, as many as may be gathered at a time.
    fn pair(&mut self) -> JoinMatches {
        let mut pairs = JoinMatches::default();
        if !self.chains.is_repeated() && self.sides.are_light() {
            let firsts = self.firsts.iter().enumerate().filter(|(_, first)| **first != NONE);
            firsts.for_each(|(row, first)| pairs.push(row as u32, *first));
            self.row = self.firsts.len();
            return pairs;
        }
        let mut room = Sides::ROOM;
        while let Some(first) = self.firsts.get(self.row) {
            let mut inner = self.candidate.take().unwrap_or(*first);
            while let Some(next) = self.chains.next(inner) {
                if room == 0 {
                    self.candidate = Some(inner);
                    return pairs;
                }
                pairs.push(self.row as u32, inner);
                room = room.saturating_sub(self.sides.weight(self.row, inner));
                inner = next;
            }
            self.row += 1;
        }
        pairs
    }

    /// Returns the pairs that satisfy the condition.
    fn fitting(&self, pairs: &JoinMatches) -> Result<JoinMatches> {
        let mut columns = self.sides.gather(pairs, &self.condition_columns)?;
        // One column more: the numbers of the pairs.
        columns.vectors.push(Vector::Numbers((0..pairs.len() as i64).collect()));
        columns.narrow(&self.condition)?;
        match columns.vectors.last() {
            Some(Vector::Numbers(numbers)) => Ok(pairs.only(numbers.values())),
            _ => Err(SqlError::internal("the numbers of pairs are gone")),
        }
    }

    /// Returns the pairs, with the outer rows from `from` on without a match inserted in order. An
    /// outer row that may match inner rows that wait is written to their partition instead.
    fn with_unfitted(&mut self, from: usize, pairs: &JoinMatches) -> Result<JoinMatches> {
        let mut all = JoinMatches::default();
        let mut pairs = pairs.iter().peekable();
        // The last one may not be through yet.
        for row in from..self.firsts.len().min(self.row + 1) {
            while let Some((row, inner)) = pairs.next_if(|(outer, _)| *outer as usize == row) {
                all.push(row, inner);
                self.fitted = true;
            }
            if row < self.row {
                let mut fitted = std::mem::take(&mut self.fitted);
                let mut waits = false;
                if let Some(waiting) = &mut self.waiting {
                    fitted |= waiting.was_fitted(row);
                    let (columns, keys) = (self.sides.outer(), &self.outer_keys);
                    waits = waiting.has_inner_rows()
                        && waiting.push_outer(columns, &self.outer_columns, keys, (row, fitted))?;
                }
                if !fitted && !waits {
                    all.push(row as u32, NONE);
                }
            }
        }
        Ok(all)
    }
}
