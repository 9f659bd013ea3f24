//! The probe side of a vectorized hash join: batches of outer rows, and the pairs that match.
//!
//! Above: the join. Below: the source of the outer rows, chained rows by key.

use arrow_array::Array;
use quickbeam::invariant;

use super::super::column::Vector;
use super::super::source::ColumnBatch;
use super::VectorJoin;
use super::input::make_key;
use super::matches::{JoinMatches, Sides};
use crate::error::{Result, SqlError};
use crate::execute::row::{Context, NONE};
use crate::plan::HashJoinKind;

impl VectorJoin {
    pub(super) fn next_outer(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        match &mut self.spilled {
            Some(spilled) if spilled.is_read => {
                spilled.next_outer(&self.outer_columns, Self::portion(context))
            }
            _ => self.outer.source.next(context),
        }
    }

    /// Takes the next batch of outer rows, if all rows of this one were tried. Returns false after
    /// the last one.
    pub(super) fn advance_outer(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.probe.row >= self.probe.firsts.len() {
            let Some(columns) = self.next_outer(context)? else { return Ok(false) };
            self.look_up(columns)?;
        }
        Ok(true)
    }

    /// Returns the next matches, or `None` after the last outer row.
    pub(super) fn next_pairs(&mut self, context: &mut Context<'_>) -> Result<Option<JoinMatches>> {
        if !self.advance_outer(context)? {
            return Ok(None);
        }
        let from = self.probe.row;
        let mut pairs = self.pair();
        if !self.condition.is_empty() && pairs.len() > 0 {
            pairs = self.fitting(&pairs)?;
        }
        if self.kind == HashJoinKind::Left {
            pairs = self.with_unfitted(from, &pairs)?;
        }
        // Outer rows match at most once here. If there are as many matches as outer rows, every
        // outer row matched.
        pairs.are_all_outer = !self.chains.is_repeated() && pairs.len() == self.probe.firsts.len();
        invariant!(JOIN_1, pairs.iter().is_sorted(), "{} pairs", pairs.len());
        Ok(Some(pairs))
    }

    /// Takes a batch of outer rows and looks up the first inner row of each.
    pub(super) fn look_up(&mut self, columns: ColumnBatch) -> Result<()> {
        let keys = self.outer.keys_of(&columns)?;
        (self.probe.row, self.probe.candidate, self.probe.fitted) = (0, None, false);
        self.probe.firsts.clear();
        let chains = &*self.chains;
        match &keys[..] {
            [(Vector::Numbers(numbers), _)] if numbers.null_count() == 0 => {
                let firsts = numbers.values().iter().map(|number| chains.first_of_number(*number));
                self.probe.firsts.extend(firsts);
            }
            [(Vector::Numbers(numbers), _)] => {
                let first =
                    |number: Option<i64>| number.map_or(NONE, |n| chains.first_of_number(n));
                self.probe.firsts.extend(numbers.iter().map(first));
            }
            _ => {
                let mut key = Vec::new();
                self.probe.firsts.extend((0..columns.rows).map(|row| {
                    if make_key(&keys, row, &mut key) { chains.first_of_bytes(&key) } else { NONE }
                }));
            }
        }
        let Some(spilled) = self.spilled.as_mut().filter(|spilled| spilled.has_inner_rows()) else {
            self.sides.set_outer(columns);
            return Ok(());
        };
        if self.kind != HashJoinKind::Left {
            for row in 0..columns.rows {
                spilled.push_outer(&columns, &self.outer_columns, &keys, (row, true))?;
            }
        }
        self.outer_keys = keys;
        self.sides.set_outer(columns);
        Ok(())
    }

    /// The next pairs of rows with equal keys, as many as may be gathered at a time.
    pub(super) fn pair(&mut self) -> JoinMatches {
        let mut pairs = JoinMatches::default();
        if !self.chains.is_repeated() && self.sides.are_light() {
            let firsts = self.probe.firsts.iter().enumerate().filter(|(_, first)| **first != NONE);
            firsts.for_each(|(row, first)| pairs.push(row as u32, *first));
            self.probe.row = self.probe.firsts.len();
            return pairs;
        }
        let mut room = Sides::ROOM;
        while let Some(first) = self.probe.firsts.get(self.probe.row) {
            let mut inner = self.probe.candidate.take().unwrap_or(*first);
            while let Some(next) = self.chains.next(inner) {
                if room == 0 {
                    self.probe.candidate = Some(inner);
                    return pairs;
                }
                pairs.push(self.probe.row as u32, inner);
                room = room.saturating_sub(self.sides.weight(self.probe.row, inner));
                inner = next;
            }
            self.probe.row += 1;
        }
        pairs
    }

    /// Returns the pairs that satisfy the condition.
    pub(super) fn fitting(&self, pairs: &JoinMatches) -> Result<JoinMatches> {
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
    /// outer row that may match spilled inner rows is written to their partition instead.
    pub(super) fn with_unfitted(
        &mut self,
        from: usize,
        pairs: &JoinMatches,
    ) -> Result<JoinMatches> {
        let mut all = JoinMatches::default();
        let mut pairs = pairs.iter().peekable();
        // The last one may not be through yet.
        for row in from..self.probe.firsts.len().min(self.probe.row + 1) {
            while let Some((row, inner)) = pairs.next_if(|(outer, _)| *outer as usize == row) {
                all.push(row, inner);
                self.probe.fitted = true;
            }
            if row < self.probe.row {
                let mut fitted = std::mem::take(&mut self.probe.fitted);
                let mut is_spilled = false;
                if let Some(spilled) = &mut self.spilled {
                    fitted |= spilled.was_fitted(row);
                    let (columns, keys) = (self.sides.outer(), &self.outer_keys);
                    is_spilled = spilled.has_inner_rows()
                        && spilled.push_outer(columns, &self.outer_columns, keys, (row, fitted))?;
                }
                if !fitted && !is_spilled {
                    all.push(row as u32, NONE);
                }
            }
        }
        Ok(all)
    }
}
