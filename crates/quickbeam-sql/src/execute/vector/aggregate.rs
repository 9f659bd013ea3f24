//! Groups and aggregates of columns.

use arrow_array::{Array, BooleanArray, Int64Array};

use super::super::row::{AggregateState, Context, KeyTable, MemoryCharge, append};
use super::column::{Vector, number_value};
use super::evaluate::VectorExpr;
use super::source::{ColumnBatch, VectorSource};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError};
use crate::execute::hash::int_table::IntTable;
use crate::types::{DataType, Value, ValueRef};

/// The states of one aggregate for all groups.
#[derive(Debug)]
enum AggregateStates {
    Counts(Vec<i64>),
    /// Sums of integers, and their counts.
    Sums(Vec<i128>, Vec<i64>),
    /// The least or greatest numbers, and whether there was one.
    Extremes(Vec<i64>, Vec<bool>),
    /// Any aggregate, value by value, with the distinct values seen.
    Each(Vec<AggregateState>, KeyTable),
}

/// The state of an aggregate.
#[derive(Debug)]
struct VectorAggregator {
    aggregate: Aggregate,
    argument: Option<VectorExpr>,
    filter: Option<VectorExpr>,
    known: AggregateStates,
}

/// Groups rows by their keys; without keys there is one group, even of no rows.
#[derive(Debug)]
pub struct VectorAggregate {
    pub source: VectorSource,
    slot: usize,
    keys: Vec<VectorExpr>,
    parts: Vec<VectorAggregator>,
    numbers: IntTable,
    table: KeyTable,
    key: Vec<u8>,
    /// For each group its keys' values.
    values: Vec<Value>,
    /// For each row of a batch its group.
    places: Vec<u32>,
    account: MemoryCharge,
    groups: usize,
    next: usize,
    done: bool,
}

impl AggregateStates {
    fn new(aggregate: &Aggregate, argument: Option<&VectorExpr>) -> AggregateStates {
        let is_number = argument.is_some_and(|argument| {
            super::column::kind_of(argument.data_type) == Some(super::column::VectorType::Numbers)
        });
        let each = || AggregateStates::Each(Vec::new(), KeyTable::default());
        match aggregate.kind {
            _ if aggregate.distinct => each(),
            AggregateKind::Count => AggregateStates::Counts(Vec::new()),
            AggregateKind::Sum | AggregateKind::Average if is_number => {
                AggregateStates::Sums(Vec::new(), Vec::new())
            }
            AggregateKind::Minimum | AggregateKind::Maximum if is_number => {
                AggregateStates::Extremes(Vec::new(), Vec::new())
            }
            _ => each(),
        }
    }

    fn clear(&mut self) {
        match self {
            AggregateStates::Counts(counts) => counts.clear(),
            AggregateStates::Sums(sums, counts) => {
                sums.clear();
                counts.clear();
            }
            AggregateStates::Extremes(best, seen) => {
                best.clear();
                seen.clear();
            }
            AggregateStates::Each(states, seen) => {
                states.clear();
                seen.clear();
            }
        }
    }

    fn grow(&mut self, aggregate: &Aggregate, groups: usize) {
        match self {
            AggregateStates::Counts(counts) => counts.resize(groups, 0),
            AggregateStates::Sums(sums, counts) => {
                sums.resize(groups, 0);
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
    /// Adds a batch, whose rows are of these groups.
    fn add(
        &mut self,
        columns: &ColumnBatch,
        places: &[u32],
        account: &mut MemoryCharge,
        context: &Context<'_>,
    ) -> Result<()> {
        let truths = match &self.filter {
            Some(filter) => Some(filter.truths(&columns.vectors, columns.rows)?),
            None => None,
        };
        let Some(argument) = &self.argument else {
            return self.count_rows(places, truths.as_ref());
        };
        // The argument is evaluated for the rows that the filter leaves.
        let (kept, vectors, rows);
        let places = match &truths {
            None => {
                (vectors, rows) = (&columns.vectors, columns.rows);
                places
            }
            Some(truths) => {
                let (left, count) = super::evaluate::keep(&columns.vectors, truths)?;
                kept = left;
                (vectors, rows) = (&kept, count);
                let is_left = |row: &usize| truths.is_valid(*row) && truths.value(*row);
                &(0..places.len()).filter(is_left).map(|row| places[row]).collect::<Vec<u32>>()
            }
        };
        let vector = argument.column(vectors, rows)?;
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
            (AggregateStates::Sums(sums, counts), Vector::Numbers(numbers)) => {
                sum(numbers, places, sums, counts);
                Ok(())
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

    fn count_rows(&mut self, places: &[u32], truths: Option<&BooleanArray>) -> Result<()> {
        let AggregateStates::Counts(counts) = &mut self.known else {
            return Err(SqlError::internal("an aggregate of nothing that does not count"));
        };
        match (truths, &mut counts[..]) {
            (None, [count]) => *count += places.len() as i64,
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

    fn finish(&self, group: usize) -> Result<Value> {
        let state = match &self.known {
            AggregateStates::Counts(counts) => {
                AggregateState::Count(counts.get(group).copied().unwrap_or(0))
            }
            AggregateStates::Sums(sums, counts) => AggregateState::Integers(
                sums.get(group).copied().unwrap_or(0),
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
                return state.map_or(Ok(Value::Null), |state| state.finish(&self.aggregate));
            }
        };
        state.finish(&self.aggregate)
    }
}

#[inline]
fn bump(counts: &mut [i64], place: u32, by: i64) {
    if let Some(count) = counts.get_mut(place as usize) {
        *count += by;
    }
}

fn sum(numbers: &Int64Array, places: &[u32], sums: &mut [i128], counts: &mut [i64]) {
    if let ([sum], [count]) = (&mut *sums, &mut *counts) {
        *sum += match numbers.null_count() {
            0 => numbers.values().iter().map(|number| i128::from(*number)).sum::<i128>(),
            _ => numbers.iter().flatten().map(i128::from).sum::<i128>(),
        };
        *count += (numbers.len() - numbers.null_count()) as i64;
        return;
    }
    each_placed(numbers, places, |number, place| {
        if let (Some(sum), Some(count)) = (sums.get_mut(place), counts.get_mut(place)) {
            *sum += i128::from(number);
            *count += 1;
        }
    });
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

impl VectorAggregate {
    pub fn new(
        source: VectorSource,
        slot: usize,
        keys: Vec<VectorExpr>,
        aggregates: Vec<(Aggregate, Option<VectorExpr>, Option<VectorExpr>)>,
    ) -> VectorAggregate {
        let part = |(aggregate, argument, filter): (Aggregate, Option<VectorExpr>, _)| {
            let known = AggregateStates::new(&aggregate, argument.as_ref());
            VectorAggregator { aggregate, argument, filter, known }
        };
        VectorAggregate {
            source,
            slot,
            keys,
            parts: aggregates.into_iter().map(part).collect(),
            numbers: IntTable::default(),
            table: KeyTable::default(),
            key: Vec::new(),
            values: Vec::new(),
            places: Vec::new(),
            account: MemoryCharge::default(),
            groups: 0,
            next: 0,
            done: false,
        }
    }

    pub fn rewind(&mut self) {
        self.source.rewind();
        self.done = false;
    }

    fn add_group(&mut self, context: &Context<'_>, bytes: usize) -> Result<()> {
        self.groups += 1;
        let bytes = bytes + self.keys.len() * 32 + self.parts.len() * 32 + 48;
        self.account.keep(bytes, context)
    }

    /// Finds the group of every row.
    fn place_rows(&mut self, columns: &ColumnBatch, context: &Context<'_>) -> Result<()> {
        self.places.clear();
        if self.keys.is_empty() {
            self.places.resize(columns.rows, 0);
            return Ok(());
        }
        let mut vectors = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            vectors.push((key.column(&columns.vectors, columns.rows)?, key.data_type));
        }
        if let [(Vector::Numbers(numbers), data_type)] = &vectors[..] {
            if numbers.null_count() == 0 {
                let numbers = numbers.values().iter().map(|number| Some(*number));
                return self.place_numbers(numbers, *data_type, context);
            }
            return self.place_numbers(numbers.iter(), *data_type, context);
        }
        for row in 0..columns.rows {
            self.key.clear();
            for (vector, data_type) in &vectors {
                append(vector.value(row, *data_type), &mut self.key);
            }
            let (place, new) = self.table.insert(&self.key);
            self.places.push(place as u32);
            if new {
                let value = |(vector, data_type): &(Vector, DataType)| -> Value {
                    ValueRef::to_value(vector.value(row, *data_type))
                };
                self.values.extend(vectors.iter().map(value));
                self.add_group(context, self.key.len())?;
            }
        }
        Ok(())
    }

    fn place_numbers(
        &mut self,
        numbers: impl Iterator<Item = Option<i64>>,
        data_type: DataType,
        context: &Context<'_>,
    ) -> Result<()> {
        let mut places = std::mem::take(&mut self.places);
        places.reserve(numbers.size_hint().0);
        for number in numbers {
            let (place, new) = match number {
                Some(number) => self.numbers.place(number),
                None => self.numbers.null(),
            };
            places.push(place);
            if new {
                let value = number.map_or(Value::Null, |n| number_value(n, data_type).to_value());
                self.values.push(value);
                self.add_group(context, 16)?;
            }
        }
        self.places = places;
        Ok(())
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.done = true;
        self.next = 0;
        self.groups = usize::from(self.keys.is_empty());
        self.account.clear(context);
        self.numbers.clear();
        self.table.clear();
        self.values.clear();
        self.keys.iter_mut().try_for_each(|key| key.begin(context))?;
        for part in &mut self.parts {
            part.known.clear();
            part.known.grow(&part.aggregate, self.groups);
            let formulas = part.argument.iter_mut().chain(&mut part.filter);
            formulas.into_iter().try_for_each(|formula| formula.begin(context))?;
        }
        while let Some(columns) = self.source.next(context)? {
            self.place_rows(&columns, context)?;
            for part in &mut self.parts {
                part.known.grow(&part.aggregate, self.groups);
                part.add(&columns, &self.places, &mut self.account, context)?;
            }
        }
        Ok(())
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.done {
            self.run(context)?;
        }
        if self.next >= self.groups {
            return Ok(false);
        }
        let group = self.next;
        self.next += 1;
        let width = self.keys.len();
        let finished: Result<Vec<Value>> =
            self.parts.iter().map(|part| part.finish(group)).collect();
        let keys = self.values.iter().skip(group * width).take(width).cloned();
        context.put_values(self.slot, keys.chain(finished?));
        Ok(true)
    }
}
