//! Query levels: the nested queries around the present position, and the level that a column
//! belongs to.

use crate::bind::{Aggregate, Binder, Level, Source, Subquery};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Slots;

impl Binder<'_> {
    /// Runs `work` at a new level: a query with aggregates and subqueries of its own.
    pub(in crate::bind) fn level<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Level)> {
        self.levels.push(Level { first_slot: self.slots.len(), ..Level::default() });
        let result = work(self);
        let level = self.levels.pop().unwrap_or_default();
        Ok((result?, level))
    }

    /// The slot of the groups of the innermost level.
    pub(in crate::bind) fn group_slot(&mut self) -> usize {
        self.group_slot_of(self.levels.len().saturating_sub(1))
    }

    /// The slot of the groups of a level.
    pub(in crate::bind) fn group_slot_of(&mut self, level: usize) -> usize {
        if let Some(slot) = self.levels.get(level).and_then(|level| level.group_slot) {
            return slot;
        }
        let slot = self.add_slot("group".into(), Source::Computed);
        if let Some(level) = self.levels.get_mut(level) {
            level.group_slot = Some(slot);
        }
        slot
    }

    /// The level whose FROM or groups a slot belongs to.
    pub(in crate::bind) fn level_of(&self, slot: usize) -> usize {
        // The group slot of a level may have been added while an inner level was bound.
        let of_group = self.levels.iter().position(|level| level.group_slot == Some(slot));
        let of_from = || self.levels.iter().rposition(|level| level.first_slot <= slot);
        of_group.or_else(of_from).unwrap_or(self.levels.len().saturating_sub(1))
    }

    /// Returns the level that an aggregate belongs to: the innermost one whose columns its
    /// arguments and its FILTER read, or the innermost of all if they read none.
    pub(in crate::bind) fn level_of_aggregate(&self, aggregate: &Aggregate) -> usize {
        let mut read = Slots::default();
        aggregate.expressions().for_each(|expr| read.extend(&expr.slots()));
        let innermost = self.levels.last();
        let answers = innermost.map_or(&[][..], |level| &level.subqueries);
        // An answer belongs to the levels of the rows that its subquery reads.
        for Subquery { slot, reads, .. } in answers.iter().rev() {
            if read.contains(*slot) {
                read.remove(&Slots::one(*slot));
                read.extend(reads);
            }
        }
        let levels = read.iter().map(|slot| self.level_of(slot));
        levels.max().unwrap_or(self.levels.len().saturating_sub(1))
    }

    /// Moves the subqueries of the current level from `start` on to another level, whose rows they
    /// read.
    pub(in crate::bind) fn move_subqueries(&mut self, start: usize, level: usize) {
        let innermost = self.levels.len().saturating_sub(1);
        if level == innermost {
            return;
        }
        let Some(from) = self.levels.last_mut() else { return };
        let moved = from.subqueries.split_off(start);
        if let Some(to) = self.levels.get_mut(level) {
            to.subqueries.extend(moved);
        }
    }
}

/// Returns an error about a misplaced aggregate.
#[cold]
pub(in crate::bind) fn grouping_error(message: &str, position: u32) -> SqlError {
    SqlError::new(SqlState::GroupingError, message).at(position as usize)
}
