//! The states of aggregates over columns.
//!
//! Above: vectorized aggregation. Below: columns and their formulas.

use arrow_array::{Array, BooleanArray, Float64Array, Int64Array};

use super::super::column::{Vector, VectorType, kind_of, number_value};
use super::super::evaluate::{VectorExpr, keep};
use super::super::operations::decimal::sum_wide;
use super::super::source::ColumnBatch;
use super::AggregateFormulas;
use super::few_groups::{RowGroups, add_numbers};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError};
use crate::execute::hash::pair_table::PairTable;
use crate::execute::row::{AggregateState, Context, KeyTable, MemoryCharge, append, overflow};
use crate::types::{DataType, Numeric, Value, decimal_power};

/// The states of one aggregate for all groups.
#[derive(Debug)]
pub enum AggregateStates {
    Counts(Vec<i64>),
    /// Sums of integers or of NUMERIC without their point, and their counts.
    Sums(Vec<i128>, Vec<i64>),
    /// Sums of NUMERIC without their point, their counts, and the largest scale of each group.
    ScaledSums(Vec<i128>, Vec<i64>, Vec<u8>),
    /// Sums of doubles, and their counts.
    DoubleSums(Vec<f64>, Vec<i64>),
    /// The least or greatest numbers, and whether there was one.
    Extremes(Vec<i64>, Vec<bool>),
    /// Distinct integers counted: the counts, and the integers of each group.
    DistinctIntegers(Vec<i64>, PairTable),
    /// Any aggregate, value by value, with the distinct values seen.
    Each(Vec<AggregateState>, KeyTable),
}

/// The state of an aggregate.
#[derive(Debug)]
pub struct VectorAggregator {
    pub aggregate: Aggregate,
    pub argument: Option<VectorExpr>,
    /// The scale with which each value of the argument is written, if that differs from row to row.
    pub scales: Option<VectorExpr>,
    pub filter: Option<VectorExpr>,
    pub known: AggregateStates,
}

impl AggregateStates {
    pub fn new(aggregate: &Aggregate, argument: Option<&VectorExpr>) -> AggregateStates {
        let kind = argument.and_then(|argument| kind_of(argument.data_type));
        let is_number = matches!(kind, Some(VectorType::Numbers | VectorType::Decimals(_)));
        let is_wide = matches!(kind, Some(VectorType::WideDecimals(_)));
        let is_double = kind == Some(VectorType::Doubles);
        let each = || AggregateStates::Each(Vec::new(), KeyTable::default());
        let is_plain = !aggregate.has_more_arguments();
        match aggregate.kind {
            AggregateKind::Count if aggregate.distinct && is_number && is_plain => {
                AggregateStates::DistinctIntegers(Vec::new(), PairTable::default())
            }
            _ if aggregate.distinct => each(),
            AggregateKind::Count => AggregateStates::Counts(Vec::new()),
            AggregateKind::Sum | AggregateKind::Average if is_number || is_wide => {
                AggregateStates::Sums(Vec::new(), Vec::new())
            }
            AggregateKind::Sum | AggregateKind::Average
                if is_double && aggregate.data_type == DataType::Double =>
            {
                AggregateStates::DoubleSums(Vec::new(), Vec::new())
            }
            AggregateKind::Minimum | AggregateKind::Maximum if is_number => {
                AggregateStates::Extremes(Vec::new(), Vec::new())
            }
            _ => each(),
        }
    }

    pub fn clear(&mut self) {
        match self {
            AggregateStates::Counts(counts) => counts.clear(),
            AggregateStates::Sums(sums, counts) => {
                sums.clear();
                counts.clear();
            }
            AggregateStates::ScaledSums(sums, counts, scales) => {
                sums.clear();
                counts.clear();
                scales.clear();
            }
            AggregateStates::DoubleSums(sums, counts) => {
                sums.clear();
                counts.clear();
            }
            AggregateStates::Extremes(best, seen) => {
                best.clear();
                seen.clear();
            }
            AggregateStates::DistinctIntegers(counts, seen) => {
                counts.clear();
                seen.clear();
            }
            AggregateStates::Each(states, seen) => {
                states.clear();
                seen.clear();
            }
        }
    }

    pub fn grow(&mut self, aggregate: &Aggregate, groups: usize) {
        match self {
            AggregateStates::Counts(counts) | AggregateStates::DistinctIntegers(counts, _) => {
                counts.resize(groups, 0);
            }
            AggregateStates::Sums(sums, counts) => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
            }
            AggregateStates::ScaledSums(sums, counts, scales) => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
                scales.resize(groups, 0);
            }
            AggregateStates::DoubleSums(sums, counts) => {
                sums.resize(groups, 0.0);
                counts.resize(groups, 0);
            }
            AggregateStates::Extremes(best, seen) => {
                best.resize(groups, 0);
                seen.resize(groups, false);
            }
            AggregateStates::Each(states, _) => {
                states.resize_with(groups, || AggregateState::new(aggregate))
            }
        }
    }
}

impl VectorAggregator {
    /// Whether the values of an aggregate with these formulas come from the same states.
    pub fn serves(&self, other: &AggregateFormulas) -> bool {
        let (own, other) = (&self.aggregate, &other.aggregate);
        let are_sums = [own, other]
            .iter()
            .all(|it| matches!(it.kind, AggregateKind::Sum | AggregateKind::Average));
        let are_equal =
            own.argument == other.argument && own.filter == other.filter && !other.distinct;
        let are_alike = match &self.known {
            AggregateStates::Sums(..) | AggregateStates::ScaledSums(..) => true,
            AggregateStates::DoubleSums(..) => own.data_type == other.data_type,
            _ => false,
        };
        are_sums && are_equal && are_alike
    }

    /// Adds a batch, whose rows are of these groups.
    pub fn add(
        &mut self,
        columns: &ColumnBatch,
        groups: RowGroups<'_>,
        account: &mut MemoryCharge,
        context: &Context<'_>,
    ) -> Result<()> {
        let truths = match &self.filter {
            Some(filter) => Some(filter.truths(&columns.vectors, columns.rows)?),
            None => None,
        };
        let Some(argument) = &self.argument else {
            return self.count_rows(groups, truths.as_ref());
        };
        // The argument is evaluated for the rows that the filter leaves.
        let (kept, vectors, rows);
        let left_places: Vec<u32>;
        let places = groups.places;
        let groups = match &truths {
            None => {
                (vectors, rows) = (&columns.vectors, columns.rows);
                groups
            }
            Some(truths) => {
                let (left, count) = keep(&columns.vectors, truths)?;
                kept = left;
                (vectors, rows) = (&kept, count);
                let is_left = |row: &usize| truths.is_valid(*row) && truths.value(*row);
                left_places = (0..places.len()).filter(is_left).map(|row| places[row]).collect();
                RowGroups { places: &left_places, rows: None }
            }
        };
        let places = groups.places;
        if let (Some(scales), AggregateStates::ScaledSums(sums, counts, most)) =
            (&self.scales, &mut self.known)
        {
            let numbers = argument.column(vectors, rows)?;
            let own = scales.column(vectors, rows)?;
            add_scales(&numbers, &own, places, most)?;
            return sum_numbers(&numbers, groups, sums, counts);
        }
        let vector = match &self.known {
            AggregateStates::Sums(..) => argument.narrow_column(vectors, rows)?,
            _ => argument.column(vectors, rows)?,
        };
        match (&mut self.known, &vector) {
            (AggregateStates::Counts(counts), vector) => {
                let array = vector.array();
                for (row, place) in places.iter().enumerate() {
                    if array.is_valid(row) {
                        bump(counts, *place, 1);
                    }
                }
                Ok(())
            }
            (AggregateStates::DistinctIntegers(counts, seen), Vector::Numbers(numbers)) => {
                for (row, place) in places.iter().enumerate() {
                    if numbers.is_valid(row) {
                        account.keep(seen.growth(), context)?;
                        bump(counts, *place, i64::from(seen.insert(*place, numbers.value(row))));
                    }
                }
                Ok(())
            }
            (AggregateStates::Sums(sums, counts), numbers) => {
                sum_numbers(numbers, groups, sums, counts)
            }
            (AggregateStates::DoubleSums(sums, counts), Vector::Doubles(numbers)) => {
                sum_doubles(numbers, places, sums, counts)
            }
            (AggregateStates::Extremes(best, seen), Vector::Numbers(numbers)) => {
                extreme(self.aggregate.kind, numbers, places, best, seen);
                Ok(())
            }
            (AggregateStates::Each(..), vector) => {
                let data_type = argument.data_type;
                self.add_each(vector, data_type, places, account, context)
            }
            _ => Err(SqlError::internal("an aggregate of another column than it expects")),
        }
    }

    fn count_rows(&mut self, groups: RowGroups<'_>, truths: Option<&BooleanArray>) -> Result<()> {
        let places = groups.places;
        let AggregateStates::Counts(counts) = &mut self.known else {
            return Err(SqlError::internal("an aggregate of nothing that does not count"));
        };
        match (truths, &mut counts[..], groups.rows) {
            (None, [count], _) => *count += places.len() as i64,
            (None, counts, Some(rows)) => add_each_count(counts, rows),
            _ => {
                for (row, place) in places.iter().enumerate() {
                    if truths.is_none_or(|truths| truths.is_valid(row) && truths.value(row)) {
                        bump(counts, *place, 1);
                    }
                }
            }
        }
        Ok(())
    }

    fn add_each(
        &mut self,
        vector: &Vector,
        data_type: DataType,
        places: &[u32],
        account: &mut MemoryCharge,
        context: &Context<'_>,
    ) -> Result<()> {
        let AggregateStates::Each(states, seen) = &mut self.known else { return Ok(()) };
        let mut key = Vec::new();
        for (row, place) in places.iter().enumerate() {
            let value = vector.value(row, data_type);
            if value.is_null() && !self.aggregate.kind.keeps_nulls() {
                continue;
            }
            if self.aggregate.kind.keeps_nulls() {
                account.keep(value.to_value().memory(), context)?;
            }
            if self.aggregate.distinct {
                key.clear();
                key.extend_from_slice(&place.to_le_bytes());
                append(value, &mut key);
                if !seen.insert(&key).1 {
                    continue;
                }
                account.keep(key.len() + 48, context)?;
            }
            if let Some(state) = states.get_mut(*place as usize) {
                state.add(self.aggregate.kind, value)?;
            }
        }
        Ok(())
    }

    /// Returns the value of an aggregate that has these states, of a group.
    pub fn finish(&self, aggregate: &Aggregate, group: usize) -> Result<Value> {
        let state = match &self.known {
            AggregateStates::Counts(counts) | AggregateStates::DistinctIntegers(counts, _) => {
                AggregateState::Count(counts.get(group).copied().unwrap_or(0))
            }
            AggregateStates::Sums(sums, counts) => {
                let sum = sums.get(group).copied().unwrap_or(0);
                let count = counts.get(group).copied().unwrap_or(0);
                match self.argument.as_ref().map(|argument| argument.data_type) {
                    Some(DataType::Numeric(Some((_, scale)))) => {
                        AggregateState::Numerics(Numeric::new(sum, scale)?, count)
                    }
                    _ => AggregateState::Integers(sum, count),
                }
            }
            AggregateStates::ScaledSums(sums, counts, scales) => {
                let sum = sums.get(group).copied().unwrap_or(0);
                let count = counts.get(group).copied().unwrap_or(0);
                let own = scales.get(group).copied().unwrap_or(0);
                let most = match self.argument.as_ref().map(|argument| argument.data_type) {
                    Some(DataType::Numeric(Some((_, scale)))) => scale,
                    _ => own,
                };
                // Every value has zeros beyond the largest scale of the group.
                let sum = sum / decimal_power(most.saturating_sub(own));
                AggregateState::Numerics(Numeric::new(sum, own)?, count)
            }
            AggregateStates::DoubleSums(sums, counts) => AggregateState::Doubles(
                sums.get(group).copied().unwrap_or(0.0),
                counts.get(group).copied().unwrap_or(0),
            ),
            AggregateStates::Extremes(best, seen) => {
                let data_type =
                    self.argument.as_ref().map_or(DataType::BigInt, |argument| argument.data_type);
                let best = best.get(group).filter(|_| seen.get(group) == Some(&true));
                AggregateState::Extreme(
                    best.map_or(Value::Null, |best| number_value(*best, data_type).to_value()),
                )
            }
            AggregateStates::Each(states, _) => {
                let state = states.get(group);
                return state.map_or(Ok(Value::Null), |state| state.finish(aggregate));
            }
        };
        state.finish(aggregate)
    }
}

/// Adds the rows of each group to its count.
fn add_each_count(counts: &mut [i64], rows: &[i64]) {
    counts.iter_mut().zip(rows).for_each(|(count, rows)| *count += rows);
}

#[inline]
fn bump(counts: &mut [i64], place: u32, by: i64) {
    if let Some(count) = counts.get_mut(place as usize) {
        *count += by;
    }
}

/// Adds integers, or NUMERIC without their point, to the sums of their groups.
fn sum_numbers(
    numbers: &Vector,
    groups: RowGroups<'_>,
    sums: &mut [i128],
    counts: &mut [i64],
) -> Result<()> {
    match numbers {
        Vector::Numbers(numbers) => {
            sum(numbers, groups, sums, counts);
            Ok(())
        }
        Vector::Wide(numbers) => sum_wide(numbers, groups.places, sums, counts),
        _ => Err(SqlError::internal("a sum of what is not a number")),
    }
}

/// Raises the scales of groups to those of their numbers that are not NULL.
fn add_scales(numbers: &Vector, own: &Vector, places: &[u32], most: &mut [u8]) -> Result<()> {
    let Vector::Numbers(own) = own else {
        return Err(SqlError::internal("a scale that is not a number"));
    };
    let numbers = numbers.array();
    for (row, place) in places.iter().enumerate() {
        if let Some(most) = most.get_mut(*place as usize).filter(|_| numbers.is_valid(row)) {
            *most = (*most).max(u8::try_from(own.value(row)).unwrap_or_default());
        }
    }
    Ok(())
}

fn sum(numbers: &Int64Array, groups: RowGroups<'_>, sums: &mut [i128], counts: &mut [i64]) {
    if let ([sum], [count]) = (&mut *sums, &mut *counts) {
        *sum += match numbers.null_count() {
            0 => numbers.values().iter().map(|number| i128::from(*number)).sum::<i128>(),
            _ => numbers.iter().flatten().map(i128::from).sum::<i128>(),
        };
        *count += (numbers.len() - numbers.null_count()) as i64;
        return;
    }
    if let (Some(rows), 0) = (groups.rows, numbers.null_count())
        && add_numbers(numbers.values(), groups.places, sums)
    {
        return add_each_count(counts, rows);
    }
    each_placed(numbers, groups.places, |number, place| {
        if let (Some(sum), Some(count)) = (sums.get_mut(place), counts.get_mut(place)) {
            *sum += i128::from(number);
            *count += 1;
        }
    });
}

/// Adds doubles in the order of the rows, so that the sums are those of row execution.
fn sum_doubles(
    numbers: &Float64Array,
    places: &[u32],
    sums: &mut [f64],
    counts: &mut [i64],
) -> Result<()> {
    for (row, place) in places.iter().enumerate() {
        if numbers.is_null(row) {
            continue;
        }
        let (number, place) = (numbers.value(row), *place as usize);
        if let (Some(sum), Some(count)) = (sums.get_mut(place), counts.get_mut(place)) {
            let was_finite = sum.is_finite() && number.is_finite();
            *sum += number;
            *count += 1;
            if was_finite && sum.is_infinite() {
                return Err(overflow());
            }
        }
    }
    Ok(())
}

/// Does something with each number that is not NULL, and the place of its row.
#[inline(always)]
fn each_placed(numbers: &Int64Array, places: &[u32], mut work: impl FnMut(i64, usize)) {
    if numbers.null_count() == 0 {
        for (number, place) in numbers.values().iter().zip(places) {
            work(*number, *place as usize);
        }
        return;
    }
    for (number, place) in numbers.iter().zip(places) {
        if let Some(number) = number {
            work(number, *place as usize);
        }
    }
}

fn extreme(
    kind: AggregateKind,
    numbers: &Int64Array,
    places: &[u32],
    best: &mut [i64],
    seen: &mut [bool],
) {
    let is_least = kind == AggregateKind::Minimum;
    if let ([best], [seen]) = (&mut *best, &mut *seen) {
        let found = match (numbers.null_count(), is_least) {
            (0, true) => numbers.values().iter().copied().min(),
            (0, false) => numbers.values().iter().copied().max(),
            (_, true) => numbers.iter().flatten().min(),
            (_, false) => numbers.iter().flatten().max(),
        };
        if let Some(found) = found {
            let better = if is_least { found < *best } else { found > *best };
            if !*seen || better {
                (*best, *seen) = (found, true);
            }
        }
        return;
    }
    each_placed(numbers, places, |number, place| {
        if let (Some(best), Some(seen)) = (best.get_mut(place), seen.get_mut(place)) {
            let better = if is_least { number < *best } else { number > *best };
            if !*seen || better {
                (*best, *seen) = (number, true);
            }
        }
    });
}
