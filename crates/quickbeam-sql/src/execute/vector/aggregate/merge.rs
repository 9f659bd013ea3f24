//! Aggregation by several threads: each aggregates morsels of the table, and the groups are merged.
//!
//! Above: vectorized aggregation. Below: the workers, the states of aggregates.
//!
//! - PARALLEL-1: the answer is that of one thread, and so is the order of the groups, that of their
//!   first rows. So only states whose merged value does not depend on the order of the rows are
//!   merged. If a worker fails, what the workers did counts for nothing: this thread starts again
//!   alone, and reports the error that one thread meets.

use quickbeam::invariant;

use super::super::column::{VectorType, kind_of};
use super::super::evaluate::VectorExpr;
use super::super::parallel::{MorselQueue, MorselWork, share};
use super::states::{AggregateStates, VectorAggregator};
use super::{AggregateRole, VectorAggregate};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError};
use crate::execute::row::{AggregateState, Context, Morsel, overflow};
use crate::plan::WorkerPlan;
use crate::types::{DataType, Value, ValueRef};

/// Whether the states of an aggregate can be merged, with the value of one thread (PARALLEL-1).
pub fn can_merge(aggregate: &Aggregate, argument: Option<&VectorExpr>) -> bool {
    match AggregateStates::new(aggregate, argument) {
        AggregateStates::Counts(_)
        | AggregateStates::Sums(..)
        | AggregateStates::Extremes(..)
        | AggregateStates::DistinctIntegers(..) => true,
        AggregateStates::DoubleSums(..) | AggregateStates::ScaledSums(..) => false,
        AggregateStates::Each(..) => match aggregate.kind {
            _ if aggregate.distinct => false,
            // Equal values of these types are the same text.
            AggregateKind::Minimum | AggregateKind::Maximum => argument.is_some_and(|argument| {
                let data_type = argument.data_type;
                matches!(data_type, DataType::Text | DataType::Varchar(_))
                    || matches!(kind_of(data_type), Some(VectorType::WideDecimals(_)))
            }),
            _ if matches!(aggregate.data_type, DataType::Encoded(_)) => false,
            AggregateKind::All
            | AggregateKind::Any
            | AggregateKind::BitAnd
            | AggregateKind::BitOr
            | AggregateKind::BitXor => true,
            _ => false,
        },
    }
}

/// Groups in the order of their first rows: for each the morsel, and the group's number there.
type FirstSeen = Vec<(u32, u32)>;

impl VectorAggregate {
    /// Aggregates with workers. Returns false if this thread has to do it alone; the source is
    /// where it was then.
    pub(super) fn run_shared(
        &mut self,
        plan: WorkerPlan,
        context: &mut Context<'_>,
    ) -> Result<bool> {
        self.launched = 0;
        let queue = self.source.queue(plan, context)?;
        match share(queue, || self.fork(), context)? {
            Some(works) => self.take_over(works, context),
            None => Ok(false),
        }
    }

    /// Makes a worker's copy, whose source is to be given morsels.
    fn fork(&self) -> Option<VectorAggregate> {
        let formulas = self.parts.iter().map(VectorAggregator::formulas).collect();
        let (source, keys, types) = (self.source.fork()?, self.keys.clone(), self.types.clone());
        let mut copy = VectorAggregate::new(source, self.slot, keys, formulas, types, None);
        (copy.role, copy.done) = (AggregateRole::Worker, true);
        copy.groups = usize::from(copy.keys.is_empty());
        copy.parts.iter_mut().for_each(|part| part.known.grow(&part.aggregate, copy.groups));
        Some(copy)
    }

    /// Merges the groups of workers. Returns false if they do not fit into memory.
    fn take_over(&mut self, works: Vec<VectorAggregate>, context: &Context<'_>) -> Result<bool> {
        let bytes = works.iter().map(|work| work.account.kept()).sum();
        if !self.account.fits(bytes, context)? {
            return Ok(false);
        }
        let launched = works.len() as u64 - 1;
        let mut first_seen = FirstSeen::new();
        for (nth, work) in works.into_iter().enumerate() {
            context.check_cancelled()?;
            self.source.add_counts(&work.source);
            match nth {
                0 => self.begin_with(work, &mut first_seen),
                _ if self.merge(work, &mut first_seen).is_err() => return Ok(false),
                _ => {}
            }
        }
        if !self.keys.is_empty() {
            let count = first_seen.len();
            invariant!(PARALLEL_1, count == self.groups, "{count} of {} groups", self.groups);
            self.order = (0..count as u32).collect();
            self.order.sort_unstable_by_key(|group| first_seen.get(*group as usize).copied());
        }
        self.launched = launched;
        Ok(true)
    }

    /// Takes the groups of a worker as they are.
    fn begin_with(&mut self, work: VectorAggregate, first_seen: &mut FirstSeen) {
        first_seen.extend(work.seen_in.iter().copied().zip(0..));
        (self.numbers, self.table) = (work.numbers, work.table);
        (self.values, self.groups) = (work.values, work.groups);
        let states = self.parts.iter_mut().zip(work.parts);
        states.for_each(|(own, part)| own.known = part.known);
    }

    /// Merges the groups of another worker.
    fn merge(&mut self, work: VectorAggregate, first_seen: &mut FirstSeen) -> Result<()> {
        let width = self.keys.len();
        let mut values = work.values.into_iter();
        let mut places = Vec::with_capacity(work.groups);
        let mut keys = work.table.keys_in_order();
        for group in 0..work.groups {
            let (place, new) = match work.numbers.key(group) {
                _ if width == 0 => (0, false),
                Some(Some(number)) => self.numbers.place(number),
                Some(None) => self.numbers.null(),
                None => match keys.next() {
                    Some((of, key)) if of as usize == group => {
                        self.table.place(key, self.groups as u32)
                    }
                    _ => return Err(SqlError::internal("a group without a key")),
                },
            };
            places.push(place);
            let key = values.by_ref().take(width);
            if new {
                self.values.extend(key);
                self.groups += 1;
            } else {
                key.for_each(drop);
            }
            let Some(morsel) = work.seen_in.get(group) else { continue };
            let seen = (*morsel, group as u32);
            match first_seen.get_mut(place as usize) {
                Some(first) => *first = seen.min(*first),
                None => first_seen.push(seen),
            }
        }
        for (own, part) in self.parts.iter_mut().zip(work.parts) {
            own.known.grow(&own.aggregate, self.groups);
            own.known.merge(own.aggregate.kind, part.known, &places)?;
        }
        Ok(())
    }
}

impl MorselWork for VectorAggregate {
    fn work_on(
        &mut self,
        number: u32,
        morsel: &Morsel,
        queue: &MorselQueue,
        context: &mut Context<'_>,
    ) -> Result<()> {
        self.source.begin_morsel(morsel)?;
        while let Some(columns) = self.source.next(context)?
            && !queue.is_stopped()
        {
            self.add_batch(columns, context)?;
            self.seen_in.resize(self.groups, number);
        }
        Ok(())
    }
}

impl AggregateStates {
    /// Adds the states of other groups, which have these places here.
    fn merge(&mut self, kind: AggregateKind, other: Self, places: &[u32]) -> Result<()> {
        let places = places.iter().map(|place| *place as usize);
        match (self, other) {
            (AggregateStates::Counts(own), AggregateStates::Counts(other)) => {
                add_counts(own, other, places);
            }
            (AggregateStates::Sums(own, counts), AggregateStates::Sums(other, more)) => {
                for (place, sum) in places.clone().zip(other) {
                    if let Some(own) = own.get_mut(place) {
                        *own = own.checked_add(sum).ok_or_else(overflow)?;
                    }
                }
                add_counts(counts, more, places);
            }
            (AggregateStates::Extremes(own, had), AggregateStates::Extremes(other, has)) => {
                for ((place, other), _) in places.zip(other).zip(has).filter(|(_, has)| *has) {
                    if let (Some(own), Some(had)) = (own.get_mut(place), had.get_mut(place)) {
                        *own = match kind {
                            _ if !*had => other,
                            AggregateKind::Minimum => other.min(*own),
                            _ => other.max(*own),
                        };
                        *had = true;
                    }
                }
            }
            (
                AggregateStates::DistinctIntegers(counts, seen),
                AggregateStates::DistinctIntegers(_, other),
            ) => {
                let places: Vec<usize> = places.collect();
                for (group, number) in other.pairs() {
                    let Some(place) = places.get(group as usize) else { continue };
                    let is_new = seen.insert(*place as u32, number);
                    if let Some(count) = counts.get_mut(*place) {
                        *count += i64::from(is_new);
                    }
                }
            }
            (AggregateStates::Each(own, _), AggregateStates::Each(other, _)) => {
                for (place, other) in places.zip(other) {
                    if let Some(own) = own.get_mut(place) {
                        merge_state(kind, own, other)?;
                    }
                }
            }
            _ => return Err(SqlError::internal("states of different aggregates")),
        }
        Ok(())
    }
}

fn add_counts(own: &mut [i64], other: Vec<i64>, places: impl Iterator<Item = usize>) {
    for (place, count) in places.zip(other) {
        if let Some(own) = own.get_mut(place) {
            *own += count;
        }
    }
}

/// Merges a state that has a value of the aggregate's own kind, as if it were one more row.
fn merge_state(kind: AggregateKind, own: &mut AggregateState, other: AggregateState) -> Result<()> {
    match other {
        AggregateState::Extreme(Value::Null)
        | AggregateState::Truth(None)
        | AggregateState::Bits(None) => Ok(()),
        AggregateState::Extreme(value) => own.add(kind, value.as_ref()),
        AggregateState::Truth(Some(truth)) => own.add(kind, ValueRef::Boolean(truth)),
        AggregateState::Bits(Some(bits)) => own.add(kind, ValueRef::BigInt(bits)),
        _ => Err(SqlError::internal("a state that cannot be merged")),
    }
}
