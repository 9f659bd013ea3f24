//! Groups and aggregates of columns.

use arrow_array::{Array, BooleanArray, Float64Array, Int64Array};

use super::super::row::{AggregateState, Context, KeyTable, MemoryCharge, append, overflow};
use super::column::{ColumnBuilder, Vector, VectorType, kind_of, number_value};
use super::evaluate::VectorExpr;
use super::operations::decimal::sum_wide;
use super::source::{ColumnBatch, VectorSource};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError};
use crate::execute::hash::int_table::IntTable;
use crate::execute::hash::pair_table::PairTable;
use crate::execute::spill::{Partitions, read_value, write_value};
use crate::types::{DataType, Numeric, Value, ValueRef};

/// The states of one aggregate for all groups.
#[derive(Debug)]
enum AggregateStates {
    Counts(Vec<i64>),
    /// Sums of integers or of NUMERIC without their point, and their counts.
    Sums(Vec<i128>, Vec<i64>),
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
struct VectorAggregator {
    aggregate: Aggregate,
    argument: Option<VectorExpr>,
    filter: Option<VectorExpr>,
    known: AggregateStates,
}

/// The place of a row whose group does not fit into memory.
const WAITS: u32 = u32::MAX;

/// Rows of a partition that are aggregated together.
const ROWS: usize = 4096;

/// Groups rows by their keys; without keys there is one group, even of no rows. Rows of groups that
/// do not fit into memory wait in partitions, each of which is then aggregated like an input.
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
    /// For each row of a batch its group, or [`WAITS`].
    places: Vec<u32>,
    /// The rows of groups that do not fit into memory.
    waiting: Option<Partitions>,
    /// The types of the source's columns.
    types: Vec<DataType>,
    account: MemoryCharge,
    groups: usize,
    next: usize,
    done: bool,
}

impl AggregateStates {
    fn new(aggregate: &Aggregate, argument: Option<&VectorExpr>) -> AggregateStates {
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

    fn clear(&mut self) {
        match self {
            AggregateStates::Counts(counts) => counts.clear(),
            AggregateStates::Sums(sums, counts) => {
                sums.clear();
                counts.clear();
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

    fn grow(&mut self, aggregate: &Aggregate, groups: usize) {
        match self {
            AggregateStates::Counts(counts) | AggregateStates::DistinctIntegers(counts, _) => {
                counts.resize(groups, 0);
            }
            AggregateStates::Sums(sums, counts) => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
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
            (AggregateStates::Sums(sums, counts), Vector::Numbers(numbers)) => {
                sum(numbers, places, sums, counts);
                Ok(())
            }
            (AggregateStates::Sums(sums, counts), Vector::Wide(numbers)) => {
                sum_wide(numbers, places, sums, counts)
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

impl VectorAggregate {
    pub fn new(
        source: VectorSource,
        slot: usize,
        keys: Vec<VectorExpr>,
        aggregates: Vec<(Aggregate, Option<VectorExpr>, Option<VectorExpr>)>,
        types: Vec<DataType>,
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
            waiting: None,
            types,
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

    /// Releases the memory of a run that failed.
    pub fn abandon(&mut self, context: &Context<'_>) {
        self.clear(0, context);
    }

    /// Charges a new group. Returns false if it does not fit into memory.
    fn add_group(&mut self, context: &Context<'_>, bytes: usize) -> Result<bool> {
        let bytes = bytes + self.keys.len() * 32 + self.parts.len() * 32 + 48;
        let has_waiting = self.waiting.as_ref().is_some_and(Partitions::has_new_rows);
        let fits = !has_waiting && self.account.fits(self.account.kept() + bytes, context)?;
        self.groups += usize::from(fits);
        Ok(fits)
    }

    /// Writes a row of a batch to the partition of its key.
    fn wait(&mut self, columns: &ColumnBatch, row: usize, context: &Context<'_>) -> Result<()> {
        let waiting = match &mut self.waiting {
            Some(waiting) => waiting,
            waiting => waiting.insert(Partitions::new(context)?),
        };
        let values = columns.vectors.iter().zip(&self.types);
        waiting.push(&self.key, |out| {
            values.for_each(|(vector, data_type)| write_value(vector.value(row, *data_type), out));
        })
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
                return self.place_numbers(numbers, *data_type, columns, context);
            }
            return self.place_numbers(numbers.iter(), *data_type, columns, context);
        }
        for row in 0..columns.rows {
            self.key.clear();
            for (vector, data_type) in &vectors {
                append(vector.value(row, *data_type), &mut self.key);
            }
            if let Some(place) = self.table.find(&self.key) {
                self.places.push(place as u32);
                continue;
            }
            if !self.add_group(context, self.key.len())? {
                self.places.push(WAITS);
                self.wait(columns, row, context)?;
                continue;
            }
            self.places.push(self.table.insert(&self.key).0 as u32);
            let value = |(vector, data_type): &(Vector, DataType)| -> Value {
                ValueRef::to_value(vector.value(row, *data_type))
            };
            self.values.extend(vectors.iter().map(value));
        }
        Ok(())
    }

    fn place_numbers(
        &mut self,
        numbers: impl Iterator<Item = Option<i64>>,
        data_type: DataType,
        columns: &ColumnBatch,
        context: &Context<'_>,
    ) -> Result<()> {
        let mut places = std::mem::take(&mut self.places);
        places.reserve(numbers.size_hint().0);
        // Once a row waits, no group is added, so the table is only searched.
        let mut is_full = self.waiting.as_ref().is_some_and(Partitions::has_new_rows);
        for (row, number) in numbers.enumerate() {
            let known = match number {
                _ if !is_full => None,
                Some(number) => self.numbers.find(number),
                None => self.numbers.find_null(),
            };
            if let Some(place) = known {
                places.push(place);
                continue;
            }
            if is_full {
                places.push(WAITS);
                self.set_number_key(number);
                self.wait(columns, row, context)?;
                continue;
            }
            let (place, new) = match number {
                Some(number) => self.numbers.place(number),
                None => self.numbers.null(),
            };
            if new && !self.add_group(context, 16)? {
                self.numbers.forget_last(number);
                is_full = true;
                places.push(WAITS);
                self.set_number_key(number);
                self.wait(columns, row, context)?;
                continue;
            }
            places.push(place);
            if new {
                let value = number.map_or(Value::Null, |n| number_value(n, data_type).to_value());
                self.values.push(value);
            }
        }
        self.places = places;
        Ok(())
    }

    /// Makes the key of an integer that is grouped by.
    fn set_number_key(&mut self, number: Option<i64>) {
        self.key.clear();
        let value = number.map_or(ValueRef::Null, ValueRef::BigInt);
        append(value, &mut self.key);
    }

    /// Forgets all groups.
    fn clear(&mut self, groups: usize, context: &Context<'_>) {
        self.next = 0;
        self.groups = groups;
        self.account.clear(context);
        self.numbers.clear();
        self.table.clear();
        self.values.clear();
        for part in &mut self.parts {
            part.known.clear();
            part.known.grow(&part.aggregate, groups);
        }
    }

    /// Aggregates the rows of a batch, except those that wait.
    fn add_batch(&mut self, columns: ColumnBatch, context: &Context<'_>) -> Result<()> {
        self.place_rows(&columns, context)?;
        let mut columns = columns;
        if self.waiting.as_ref().is_some_and(Partitions::has_new_rows) {
            let is_kept: Vec<bool> = self.places.iter().map(|place| *place != WAITS).collect();
            let (vectors, rows) = super::evaluate::keep(&columns.vectors, &is_kept.into())?;
            columns = ColumnBatch { rows, vectors };
            self.places.retain(|place| *place != WAITS);
        }
        for part in &mut self.parts {
            part.known.grow(&part.aggregate, self.groups);
            part.add(&columns, &self.places, &mut self.account, context)?;
        }
        Ok(())
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.done = true;
        self.clear(usize::from(self.keys.is_empty()), context);
        if let Some(waiting) = self.waiting.take() {
            waiting.remove(context);
        }
        self.keys.iter_mut().try_for_each(|key| key.begin(context))?;
        for part in &mut self.parts {
            let formulas = part.argument.iter_mut().chain(&mut part.filter);
            formulas.into_iter().try_for_each(|formula| formula.begin(context))?;
        }
        while let Some(columns) = self.source.next(context)? {
            self.add_batch(columns, context)?;
        }
        Ok(())
    }

    /// Aggregates the next partition of rows that wait. Returns false if there is none.
    fn run_waiting(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let Some(waiting) = &mut self.waiting else { return Ok(false) };
        if !waiting.open_next()? {
            return Ok(false);
        }
        self.clear(0, context);
        while let Some(columns) = self.next_waiting()? {
            context.check_cancelled()?;
            self.add_batch(columns, context)?;
        }
        Ok(true)
    }

    /// Returns the next rows of a partition.
    fn next_waiting(&mut self) -> Result<Option<ColumnBatch>> {
        let Some(waiting) = &mut self.waiting else { return Ok(None) };
        let mut builders = Vec::with_capacity(self.types.len());
        for data_type in &self.types {
            let kind = kind_of(*data_type);
            let kind = kind.ok_or_else(|| SqlError::internal("a column that stays in rows"))?;
            builders.push(ColumnBuilder::new(kind));
        }
        let mut rows = 0;
        while rows < ROWS
            && let Some(mut record) = waiting.next()?
        {
            for builder in &mut builders {
                builder.push(read_value(&mut record)?)?;
            }
            rows += 1;
        }
        let vectors = builders.iter_mut().map(ColumnBuilder::finish).collect();
        Ok((rows > 0).then_some(ColumnBatch { rows, vectors }))
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.done {
            self.run(context)?;
        }
        while self.next >= self.groups {
            if !self.run_waiting(context)? {
                return Ok(false);
            }
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
