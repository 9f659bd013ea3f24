//! The build side of a vectorized hash join: the inner rows as columns, and their hash table.
//!
//! Above: the join. Below: the source of the inner rows, chained rows by key.

use std::sync::Arc;

use arrow_array::{Array, Int64Array};
use quickbeam::invariant;

use super::super::collect::collect;
use super::super::column::{ColumnBuilder as Filling, Vector, VectorType};
use super::super::no_formula;
use super::super::source::ColumnBatch;
use super::VectorJoin;
use super::input::{KeyColumns, make_key, rows_with_keys};
use super::spilled_rows::{SpilledInnerRows, SpilledRows};
use crate::error::Result;
use crate::execute::row::{Context, ROW_BYTES, members_of};
use crate::types::DataType;

impl VectorJoin {
    /// Returns the bytes of spilled rows that are read at a time.
    pub(super) fn portion(context: &Context<'_>) -> usize {
        (context.limits.memory.get() / 64).clamp(8 << 10, 1 << 20)
    }

    pub(super) fn next_inner(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        match &mut self.spilled {
            Some(spilled) if spilled.is_read => {
                spilled.next_inner(&self.inner_columns, Self::portion(context))
            }
            _ => match &mut self.inner {
                Some(inner) => inner.source.next(context),
                None => Ok(None),
            },
        }
    }

    /// Reads all inner rows with workers, unless this thread has to read them alone.
    fn collect_inner(
        &mut self,
        context: &mut Context<'_>,
    ) -> Result<Option<std::vec::IntoIter<ColumnBatch>>> {
        let [_, workers] = &mut self.workers;
        workers.launched = 0;
        let (Some(plan), Some(inner), None) = (workers.plan, &mut self.inner, &self.spilled) else {
            return Ok(None);
        };
        let Some(rows) = collect(&mut inner.source, plan, context)? else { return Ok(None) };
        workers.launched = rows.launched;
        Ok(Some(rows.batches.into_iter()))
    }

    /// Collects the inner rows of this level.
    pub(super) fn build(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.built = true;
        self.account.clear(context);
        Arc::make_mut(&mut self.chains).clear();
        self.probe.firsts.clear();
        (self.probe.row, self.probe.candidate, self.probe.fitted) = (0, None, false);
        (self.probe.fitted_rows, self.probe.inner_row) = (Vec::new(), None);
        let earlier = self.chains.rows();
        invariant!(DIRECT_2, earlier == 0, "{earlier} rows of an earlier run");
        let inner_keys = self.inner.iter_mut().flat_map(|inner| &mut inner.keys);
        let keys = self.outer.keys.iter_mut().chain(inner_keys);
        keys.chain(&mut self.condition).try_for_each(|formula| formula.begin(context))?;
        let mut pieces: Vec<Vec<Vector>> = self.kept.iter().map(|_| Vec::new()).collect();
        let mut numbers: Vec<i64> = Vec::new();
        let mut collected = self.collect_inner(context)?;
        while let Some(columns) = match &mut collected {
            Some(batches) => batches.next(),
            None => self.next_inner(context)?,
        } {
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
            let spilled = match &mut self.spilled {
                Some(spilled) => spilled,
                spilled => spilled.insert(SpilledRows::new(context)?),
            };
            let rows = match self.kind.returns_unmatched_inner() {
                true => SpilledInnerRows::All,
                false => SpilledInnerRows::WithKeys,
            };
            spilled.push_inner(&columns, &self.inner_columns, &keys, rows)?;
        }
        let (kept, rows) = (self.account.kept(), self.chains.rows());
        invariant!(DIRECT_3, kept >= rows * ROW_BYTES, "{kept} bytes for {rows} rows");
        if self.kind.returns_inner() {
            self.probe.fitted_rows.resize(rows, false);
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
        match &mut self.spilled {
            Some(spilled) if spilled.is_read => spilled.begin_outer(),
            Some(spilled) => {
                spilled.begin_outer()?;
                self.narrow_outer(&numbers, context)
            }
            None => self.narrow_outer(&numbers, context),
        }
    }

    /// Notes the first keys of inner rows: all of them, or their bounds if inner rows were spilled.
    pub(super) fn note_numbers(&self, numbers: &mut Vec<i64>, more: &Int64Array) {
        if self.spilled.is_none() {
            return match more.null_count() {
                0 => numbers.extend(more.values()),
                _ => numbers.extend(more.iter().flatten()),
            };
        }
        let all = || numbers.iter().copied().chain(more.iter().flatten());
        *numbers = all().min().into_iter().chain(all().max()).collect();
    }

    /// Charges inner rows. Returns false if they must be spilled.
    pub(super) fn fits(
        &mut self,
        kept: &[Vector],
        keys: &KeyColumns,
        context: &Context<'_>,
    ) -> Result<bool> {
        if self.spilled.as_ref().is_some_and(SpilledRows::has_inner_rows) {
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
        // A portion of the spilled rows is kept in any case, so that their number decreases.
        let is_first = self.chains.rows() == 0;
        if is_first && self.spilled.as_ref().is_some_and(|spilled| spilled.is_read) {
            self.account.set(bytes, context);
            return Ok(true);
        }
        self.account.fits(bytes, context)
    }

    /// Adds inner rows.
    pub(super) fn add_rows(&mut self, keys: &KeyColumns) {
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
    pub(super) fn narrow_outer(&mut self, numbers: &[i64], context: &Context<'_>) -> Result<()> {
        let Some(column) = self.wanted else { return Ok(()) };
        let (low, high, members) = match (&self.spilled, numbers) {
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
}
