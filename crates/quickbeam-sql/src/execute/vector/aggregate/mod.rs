//! Groups of rows, aggregated by columns.
//!
//! Above: the vectorized step. Below: the source of the columns, hash tables of the groups, the
//! states of the aggregates.

mod few_groups;
mod group_keys;
mod merge;
mod states;

use arrow_array::{Array, Int64Array};

use super::column::{ColumnBuilder, Vector, kind_of, number_value};
use super::evaluate::{InputColumns, VectorExpr, keep};
use super::source::{ColumnBatch, VectorSource};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError};
use crate::execute::hash::int_table::IntTable;
use crate::execute::hash::packed_table::{PackedKey, PackedTable};
use crate::execute::row::{Context, MemoryCharge, append};
use crate::execute::spill::{Partitions, read_value, write_value};
use crate::plan::WorkerPlan;
use crate::types::{DataType, Value, ValueRef};
use few_groups::{RowGroups, count_rows};
use group_keys::{GroupKey, GroupTable, PackedKeys};
pub use merge::can_merge;
use states::{AggregateStates, VectorAggregator};

/// The place of a row whose group does not fit into memory.
const WAITS: u32 = u32::MAX;

/// Rows of a partition that are aggregated together.
const ROWS: usize = 4096;

/// Groups rows by their keys; without keys there is one group, even of no rows. Rows of groups that
/// do not fit into memory are spilled to partitions, each of which is then aggregated like an
/// input.
#[derive(Debug)]
pub struct VectorAggregate {
    pub source: VectorSource,
    slot: usize,
    keys: Vec<VectorExpr>,
    /// The states, each of one aggregate or of several.
    parts: Vec<VectorAggregator>,
    /// The aggregates, and the number of the states of each.
    aggregates: Vec<(Aggregate, usize)>,
    numbers: IntTable,
    table: GroupTable,
    packed: PackedKeys,
    key: Vec<u8>,
    /// For each group its keys' values.
    values: Vec<Value>,
    /// The results of the aggregates of one group.
    finished: Vec<Value>,
    /// For each row of a batch its group, or [`WAITS`].
    places: Vec<u32>,
    /// The rows of a batch in each group, if there are few groups.
    counted: Vec<i64>,
    /// The rows of groups that do not fit into memory.
    spilled: Option<Partitions>,
    /// The types of the source's columns.
    types: Vec<DataType>,
    account: MemoryCharge,
    groups: usize,
    next: usize,
    done: bool,
    /// The workers that may help, if the plan allows some, and how many did.
    workers: Option<WorkerPlan>,
    pub launched: u64,
    /// A worker's: for each group the morsel that it was first seen in.
    seen_in: Vec<u32>,
    role: AggregateRole,
    /// The groups in the order of their first rows, if workers found them in another one.
    order: Vec<u32>,
}

/// Whose groups these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AggregateRole {
    /// Those of the step.
    Leader,
    /// Those of one of several threads. They do not spill.
    Worker,
}

/// The formulas of one aggregate.
pub struct AggregateFormulas {
    aggregate: Aggregate,
    argument: Option<VectorExpr>,
    /// The scale of each value of the argument, if that differs from row to row.
    scales: Option<VectorExpr>,
    filter: Option<VectorExpr>,
}

impl AggregateFormulas {
    /// Compiles an aggregate. Returns `None` if it cannot be vectorized.
    pub fn new(aggregate: &Aggregate, known: &InputColumns<'_>) -> Option<AggregateFormulas> {
        if aggregate.has_more_arguments() {
            return None;
        }
        let filter = match &aggregate.filter {
            Some(filter) => Some(known.formula(filter)?),
            None => None,
        };
        let is_sum = matches!(aggregate.kind, AggregateKind::Sum | AggregateKind::Average);
        let (argument, scales) = match &aggregate.argument {
            None => (None, None),
            Some(expr) => match known.formula(expr) {
                Some(argument) => (Some(argument), None),
                // The sum of a group is written with the largest scale of its values.
                None if is_sum && !aggregate.distinct => {
                    let [argument, scales] = known.case_of_scales(expr)?;
                    (Some(argument), Some(scales))
                }
                None => return None,
            },
        };
        Some(AggregateFormulas { aggregate: aggregate.clone(), argument, scales, filter })
    }

    /// Returns whether a sum may have more than 38 digits.
    pub fn may_be_long(&self) -> bool {
        /// Digits of numbers whose sum over any table has at most 38.
        const SAFE_DIGITS: u8 = 24;
        self.argument.as_ref().is_some_and(|argument| match argument.data_type {
            DataType::Numeric(Some((digits, _))) => digits > SAFE_DIGITS,
            _ => false,
        })
    }
}

impl VectorAggregator {
    fn new(formulas: AggregateFormulas) -> VectorAggregator {
        let AggregateFormulas { aggregate, argument, scales, filter } = formulas;
        let known = match &scales {
            Some(_) => AggregateStates::ScaledSums(Vec::new(), Vec::new(), Vec::new()),
            None => AggregateStates::new(&aggregate, argument.as_ref()),
        };
        VectorAggregator { aggregate, argument, scales, filter, known }
    }

    fn formulas(&self) -> AggregateFormulas {
        AggregateFormulas {
            aggregate: self.aggregate.clone(),
            argument: self.argument.clone(),
            scales: self.scales.clone(),
            filter: self.filter.clone(),
        }
    }
}

impl VectorAggregate {
    pub fn new(
        source: VectorSource,
        slot: usize,
        keys: Vec<VectorExpr>,
        aggregates: Vec<AggregateFormulas>,
        types: Vec<DataType>,
        workers: Option<WorkerPlan>,
    ) -> VectorAggregate {
        let mut parts: Vec<VectorAggregator> = Vec::with_capacity(aggregates.len());
        let mut numbered = Vec::with_capacity(aggregates.len());
        for formulas in aggregates {
            let known = parts.iter().position(|part| part.serves(&formulas));
            numbered.push((formulas.aggregate.clone(), known.unwrap_or(parts.len())));
            if known.is_none() {
                parts.push(VectorAggregator::new(formulas));
            }
        }
        VectorAggregate {
            source,
            slot,
            keys,
            parts,
            aggregates: numbered,
            numbers: IntTable::default(),
            table: GroupTable::default(),
            packed: PackedKeys::default(),
            key: Vec::new(),
            values: Vec::new(),
            finished: Vec::new(),
            places: Vec::new(),
            counted: Vec::new(),
            spilled: None,
            types,
            account: MemoryCharge::default(),
            groups: 0,
            next: 0,
            done: false,
            workers,
            launched: 0,
            seen_in: Vec::new(),
            role: AggregateRole::Leader,
            order: Vec::new(),
        }
    }

    /// Whether the plan has workers.
    pub fn has_workers(&self) -> bool {
        self.workers.is_some()
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
        let has_spilled = self.spilled.as_ref().is_some_and(Partitions::has_new_rows);
        let fits = !has_spilled && self.account.fits(self.account.kept() + bytes, context)?;
        if !fits && self.role == AggregateRole::Worker {
            return Err(context.limits.out_of_memory());
        }
        self.groups += usize::from(fits);
        Ok(fits)
    }

    /// Writes a row of a batch to the partition of its key.
    fn spill(&mut self, columns: &ColumnBatch, row: usize, context: &Context<'_>) -> Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            spilled => spilled.insert(Partitions::new(context)?),
        };
        let values = columns.vectors.iter().zip(&self.types);
        spilled.push(&self.key, |out| {
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
            let known = match numbers.null_count() {
                0 => self.place_runs(numbers.values(), *data_type, context)?,
                _ => 0,
            };
            return self.place_numbers((numbers, known), *data_type, columns, context);
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.pack(vectors.iter().map(|(vector, _)| vector), columns.rows);
        let placed = self.place_keys(&packed, &vectors, columns, context);
        self.packed = packed;
        placed
    }

    fn place_keys(
        &mut self,
        packed: &PackedKeys,
        vectors: &[(Vector, DataType)],
        columns: &ColumnBatch,
        context: &Context<'_>,
    ) -> Result<()> {
        loop {
            self.table.find_run(packed.rest(self.places.len()), &mut self.places);
            let row = self.places.len();
            if row == columns.rows {
                return Ok(());
            }
            self.place_key(packed.get(row), row, vectors, columns, context)?;
        }
    }

    /// Finds the group of one row, whose packed key is `word`.
    #[inline]
    fn place_key(
        &mut self,
        word: Option<PackedKey>,
        row: usize,
        vectors: &[(Vector, DataType)],
        columns: &ColumnBatch,
        context: &Context<'_>,
    ) -> Result<()> {
        if word.is_none() {
            self.set_key(vectors, row);
        }
        let absent = match self.table.locate(GroupKey::of(word, &self.key)) {
            Ok(group) => {
                self.places.push(group);
                return Ok(());
            }
            Err(absent) => absent,
        };
        if word.is_some() {
            self.set_key(vectors, row);
        }
        let bytes = self.key.len().max(PackedTable::KEY_BYTES);
        if !self.add_group(context, bytes)? {
            self.places.push(WAITS);
            return self.spill(columns, row, context);
        }
        let group = self.groups as u32 - 1;
        self.table.insert(absent, &self.key, group);
        self.places.push(group);
        let value = |(vector, data_type): &(Vector, DataType)| -> Value {
            ValueRef::to_value(vector.value(row, *data_type))
        };
        self.values.extend(vectors.iter().map(value));
        Ok(())
    }

    /// Makes the key bytes of a row.
    fn set_key(&mut self, vectors: &[(Vector, DataType)], row: usize) {
        self.key.clear();
        for (vector, data_type) in vectors {
            append(vector.value(row, *data_type), &mut self.key);
        }
    }

    /// Finds the groups of the first rows of a batch, up to one that has to be spilled. Returns
    /// their number.
    fn place_runs(
        &mut self,
        numbers: &[i64],
        data_type: DataType,
        context: &Context<'_>,
    ) -> Result<usize> {
        if self.spilled.as_ref().is_some_and(Partitions::has_new_rows) {
            return Ok(0);
        }
        let mut places = std::mem::take(&mut self.places);
        places.resize(numbers.len(), 0);
        let mut done = 0;
        while done < numbers.len() {
            let Some(placed) = self.numbers.place_run(numbers, &mut places, done) else {
                done = numbers.len();
                break;
            };
            done = placed;
            let Some(new) = numbers.get(placed - 1) else { break };
            if !self.add_group(context, 16)? {
                self.numbers.forget_last(Some(*new));
                done -= 1;
                break;
            }
            self.values.push(number_value(*new, data_type).to_value());
        }
        places.truncate(done);
        self.places = places;
        Ok(done)
    }

    /// Finds the groups of the rows of a batch, but for the first ones, whose groups are `known`.
    fn place_numbers(
        &mut self,
        (numbers, known): (&Int64Array, usize),
        data_type: DataType,
        columns: &ColumnBatch,
        context: &Context<'_>,
    ) -> Result<()> {
        // Once a row is spilled, no group is added, so the table is only searched.
        let mut is_full = self.spilled.as_ref().is_some_and(Partitions::has_new_rows);
        for (row, number) in numbers.iter().enumerate().skip(known) {
            let found = match number {
                _ if !is_full => None,
                Some(number) => self.numbers.find(number),
                None => self.numbers.find_null(),
            };
            if let Some(place) = found {
                self.places.push(place);
                continue;
            }
            let (place, new) = match number {
                _ if is_full => (WAITS, false),
                Some(number) => self.numbers.place(number),
                None => self.numbers.null(),
            };
            if new && !self.add_group(context, 16)? {
                self.numbers.forget_last(number);
                is_full = true;
            }
            if is_full {
                self.places.push(WAITS);
                self.set_number_key(number);
                self.spill(columns, row, context)?;
                continue;
            }
            self.places.push(place);
            if new {
                let value = number.map_or(Value::Null, |n| number_value(n, data_type).to_value());
                self.values.push(value);
            }
        }
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
        self.order.clear();
        for part in &mut self.parts {
            part.known.clear();
            part.known.grow(&part.aggregate, groups);
        }
    }

    /// Aggregates the rows of a batch, except the spilled ones.
    fn add_batch(&mut self, columns: ColumnBatch, context: &Context<'_>) -> Result<()> {
        self.place_rows(&columns, context)?;
        let mut columns = columns;
        if self.spilled.as_ref().is_some_and(Partitions::has_new_rows) {
            let is_kept: Vec<bool> = self.places.iter().map(|place| *place != WAITS).collect();
            let (vectors, rows) = keep(&columns.vectors, &is_kept.into())?;
            columns = ColumnBatch { rows, vectors };
            self.places.retain(|place| *place != WAITS);
        }
        count_rows(&self.places, self.groups, &mut self.counted);
        let rows = Some(&self.counted[..]).filter(|rows| !rows.is_empty());
        let groups = RowGroups { places: &self.places, rows };
        for part in &mut self.parts {
            part.known.grow(&part.aggregate, self.groups);
            part.add(&columns, groups, &mut self.account, context)?;
        }
        Ok(())
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.done = true;
        self.clear(usize::from(self.keys.is_empty()), context);
        if let Some(spilled) = self.spilled.take() {
            spilled.remove(context);
        }
        self.keys.iter_mut().try_for_each(|key| key.begin(context))?;
        for part in &mut self.parts {
            let formulas = part.argument.iter_mut().chain(&mut part.scales).chain(&mut part.filter);
            formulas.into_iter().try_for_each(|formula| formula.begin(context))?;
        }
        if let Some(plan) = self.workers {
            if self.run_shared(plan, context)? {
                return Ok(());
            }
            self.clear(usize::from(self.keys.is_empty()), context);
        }
        while let Some(columns) = self.source.next(context)? {
            self.add_batch(columns, context)?;
        }
        Ok(())
    }

    /// Aggregates the next partition of spilled rows. Returns false if there is none.
    fn run_spilled(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        if !spilled.open_next()? {
            return Ok(false);
        }
        self.clear(0, context);
        while let Some(columns) = self.next_spilled()? {
            context.check_cancelled()?;
            self.add_batch(columns, context)?;
        }
        Ok(true)
    }

    /// Returns the next rows of a partition.
    fn next_spilled(&mut self) -> Result<Option<ColumnBatch>> {
        let Some(spilled) = &mut self.spilled else { return Ok(None) };
        let mut builders = Vec::with_capacity(self.types.len());
        for data_type in &self.types {
            let kind = kind_of(*data_type);
            let kind = kind.ok_or_else(|| SqlError::internal("a column that stays in rows"))?;
            builders.push(ColumnBuilder::new(kind));
        }
        let mut rows = 0;
        while rows < ROWS
            && let Some(mut record) = spilled.next()?
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
            if !self.run_spilled(context)? {
                return Ok(false);
            }
        }
        let group = self.order.get(self.next).map_or(self.next, |group| *group as usize);
        self.next += 1;
        let width = self.keys.len();
        self.finished.clear();
        for (aggregate, part) in &self.aggregates {
            let states = self.parts.get(*part);
            let states = states.ok_or_else(|| SqlError::internal("an aggregate without states"))?;
            self.finished.push(states.finish(aggregate, group)?);
        }
        let keys = self.values.iter().skip(group * width).take(width).cloned();
        context.put_values(self.slot, keys.chain(self.finished.drain(..)));
        Ok(true)
    }
}
