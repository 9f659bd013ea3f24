//! Vectorized semi-joins and anti-joins: outer rows mark the inner rows that they match, and the
//! marked rows, or the others, are returned after the last outer row.
//!
//! Above: the join. Below: the probe side.

use quickbeam::invariant;

use super::super::parallel::{MorselQueue, MorselWork, share};
use super::VectorJoin;
use super::matches::{JoinMatches, Sides};
use crate::error::Result;
use crate::execute::row::{Context, Morsel, NONE};
use crate::plan::HashJoinKind;

impl VectorJoin {
    /// Returns the next inner rows of a semi-join or anti-join, without outer rows, or `None` after
    /// the last one. All outer rows are read first.
    pub(super) fn next_inner_rows(
        &mut self,
        context: &mut Context<'_>,
    ) -> Result<Option<JoinMatches>> {
        if self.probe.inner_row.is_none() && !self.mark_shared(context)? {
            while self.advance_outer(context)? {
                context.check_cancelled()?;
                self.mark_matched()?;
            }
        }
        let (mut row, mut room) = (self.probe.inner_row.unwrap_or(0), Sides::ROOM);
        let fitted = self.kind == HashJoinKind::RightSemi;
        let mut pairs = JoinMatches::default();
        while let Some(is_fitted) = self.probe.fitted_rows.get(row).filter(|_| room > 0) {
            if *is_fitted == fitted {
                pairs.push(NONE, row as u32);
                room = room.saturating_sub(self.sides.weight(NONE as usize, row as u32));
            }
            row += 1;
        }
        self.probe.inner_row = Some(row);
        invariant!(JOIN_1, pairs.iter().is_sorted(), "{} rows", pairs.len());
        Ok((pairs.len() > 0).then_some(pairs))
    }

    /// Reads all outer rows with workers, each of which marks inner rows of its own copy. Returns
    /// false if this thread has to do it alone; the outer rows are where they were then.
    fn mark_shared(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let [workers, _] = &mut self.workers;
        workers.launched = 0;
        let Some(plan) = workers.plan.filter(|_| self.spilled.is_none()) else { return Ok(false) };
        let queue = self.outer.source.queue(plan, context)?;
        let copy = || {
            let mut copy = self.fork()?;
            copy.probe.fitted_rows.resize(self.probe.fitted_rows.len(), false);
            Some(copy)
        };
        let Some(works) = share(queue, copy, context)? else { return Ok(false) };
        let [workers, _] = &mut self.workers;
        workers.launched = works.len() as u64 - 1;
        for work in works {
            self.outer.source.add_counts(&work.outer.source);
            let marks = self.probe.fitted_rows.iter_mut().zip(&work.probe.fitted_rows);
            marks.for_each(|(own, other)| *own |= other);
        }
        Ok(true)
    }

    /// Marks the inner rows that match outer rows of the batch.
    pub(super) fn mark_matched(&mut self) -> Result<()> {
        if !self.condition.is_empty() {
            let mut pairs = self.pair();
            pairs.retain_inner(|row| self.probe.fitted_rows.get(row as usize) == Some(&false));
            if pairs.len() > 0 {
                pairs = self.fitting(&pairs)?;
            }
            for (_, inner) in pairs.iter() {
                self.probe.fitted_rows[inner as usize] = true;
            }
            return Ok(());
        }
        for first in self.probe.firsts.iter() {
            // All rows of a key are marked with its first one.
            let mut inner = *first;
            while self.probe.fitted_rows.get(inner as usize) == Some(&false) {
                self.probe.fitted_rows[inner as usize] = true;
                inner = self.chains.next(inner).unwrap_or(NONE);
            }
        }
        self.probe.row = self.probe.firsts.len();
        Ok(())
    }
}

impl MorselWork for VectorJoin {
    fn work_on(
        &mut self,
        _number: u32,
        morsel: &Morsel,
        queue: &MorselQueue,
        context: &mut Context<'_>,
    ) -> Result<()> {
        self.outer.source.begin_morsel(morsel)?;
        while self.advance_outer(context)? && !queue.is_stopped() {
            self.mark_matched()?;
        }
        Ok(())
    }
}
