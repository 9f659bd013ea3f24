//! Hash aggregation of rows.

use super::AggregateState;
use crate::bind::Aggregate;
use crate::error::Result;
use crate::execute::hash::key_table::{AbsentKey, KeyTable, append};
use crate::execute::row::memory::bytes_of;
use crate::execute::row::{Context, MemoryCharge, Operator};
use crate::execute::spill::{Partitions, RowImage, take};
use crate::expression::{Current, Datum, Expr};
use crate::types::{Value, ValueRef};

/// Hash aggregation. Without keys there is one group, even for an empty input. Rows of groups that
/// do not fit into memory are spilled to partitions, each of which is then aggregated like an
/// input.
#[derive(Debug)]
pub struct RowAggregate {
    pub input: Operator,
    slot: usize,
    keys: Vec<Expr>,
    /// GROUPING SETS: the numbers of the keys of each; empty for one set with all keys.
    sets: Vec<Vec<usize>>,
    aggregates: Vec<Aggregate>,
    /// For each grouping set the aggregates, whose direct arguments read NULL for the keys that the
    /// set does not have. Empty if no aggregate has direct arguments that read keys.
    of_sets: Vec<Vec<Aggregate>>,
    table: KeyTable,
    key: Vec<u8>,
    /// For each group its keys' values, and with GROUPING SETS the number of its set.
    values: Vec<Value>,
    /// For each group its aggregates.
    states: Vec<AggregateState>,
    /// Values seen, of aggregates with DISTINCT: number of the aggregate, the group, the value.
    seen: KeyTable,
    /// The rows of groups that do not fit into memory.
    spilled: Option<Partitions>,
    image: RowImage,
    account: MemoryCharge,
    groups: usize,
    next: usize,
    done: bool,
}

impl RowAggregate {
    pub fn new(
        input: Operator,
        slot: usize,
        keys: Vec<Expr>,
        sets: Vec<Vec<usize>>,
        aggregates: Vec<Aggregate>,
        slots: &[usize],
    ) -> RowAggregate {
        let read = aggregates.iter().flat_map(Aggregate::expressions);
        let image = RowImage::new(keys.iter().chain(read), slots);
        let of_sets = aggregates_of_sets(&aggregates, &keys, &sets);
        RowAggregate {
            input,
            slot,
            keys,
            sets,
            aggregates,
            of_sets,
            table: KeyTable::default(),
            key: Vec::new(),
            values: Vec::new(),
            states: Vec::new(),
            seen: KeyTable::default(),
            spilled: None,
            image,
            account: MemoryCharge::default(),
            groups: 0,
            next: 0,
            done: false,
        }
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.done = false;
    }

    fn add_group(&mut self) {
        self.groups += 1;
        self.states.extend(self.aggregates.iter().map(AggregateState::new));
    }

    /// Returns the group of the current row, or `None` if the row is spilled.
    fn group_of(&mut self, context: &Context<'_>) -> Result<Option<usize>> {
        if self.keys.is_empty() {
            return Ok(Some(0));
        }
        let frame = context.frame();
        self.key.clear();
        for key in &self.keys {
            append(key.evaluate(&frame)?.as_ref(), &mut self.key);
        }
        let absent = match self.table.locate(&self.key) {
            Ok(group) => return Ok(Some(group)),
            Err(absent) => absent,
        };
        let start = self.values.len();
        for key in &self.keys {
            self.values.push(key.evaluate(&frame)?.into_value());
        }
        self.new_group(absent, start, None, context)
    }

    /// Returns the group of the current row in a grouping set, or `None` if the row is spilled.
    fn group_in_set(&mut self, set: usize, context: &Context<'_>) -> Result<Option<usize>> {
        let frame = context.frame();
        let RowAggregate { keys, sets, key: bytes, .. } = self;
        let members = sets.get(set).map_or(&[][..], |set| &set[..]);
        bytes.clear();
        bytes.extend_from_slice(&(set as u32).to_le_bytes());
        for number in members {
            if let Some(key) = keys.get(*number) {
                append(key.evaluate(&frame)?.as_ref(), bytes);
            }
        }
        let absent = match self.table.locate(&self.key) {
            Ok(group) => return Ok(Some(group)),
            Err(absent) => absent,
        };
        let start = self.values.len();
        for (number, key) in self.keys.iter().enumerate() {
            let is_member = self.sets.get(set).is_some_and(|set| set.contains(&number));
            self.values.push(match is_member {
                true => key.evaluate(&frame)?.into_value(),
                false => Value::Null,
            });
        }
        self.values.push(Value::Integer(set as i32));
        self.new_group(absent, start, Some(set), context)
    }

    /// Adds a group with the values from `start` on and the key at hand. If it does not fit into
    /// memory, the current row is spilled.
    fn new_group(
        &mut self,
        absent: AbsentKey,
        start: usize,
        set: Option<usize>,
        context: &Context<'_>,
    ) -> Result<Option<usize>> {
        let values = bytes_of(self.values.get(start..).unwrap_or_default());
        let bytes = self.key.len() + self.aggregates.len() * 64 + 48 + values;
        let has_spilled = self.spilled.as_ref().is_some_and(Partitions::has_new_rows);
        if has_spilled || !self.account.fits(self.account.kept() + bytes, context)? {
            self.values.truncate(start);
            self.spill(set, context)?;
            return Ok(None);
        }
        let group = self.table.insert_absent(&self.key, absent);
        self.add_group();
        Ok(Some(group))
    }

    /// Writes the current row to the partition of its key.
    fn spill(&mut self, set: Option<usize>, context: &Context<'_>) -> Result<()> {
        let mut record = (set.unwrap_or(0) as u32).to_le_bytes().to_vec();
        self.image.save(context, &mut record)?;
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            spilled => spilled.insert(Partitions::new(context)?),
        };
        spilled.push(&self.key, |out| out.extend_from_slice(&record))
    }

    /// Forgets all groups.
    fn clear(&mut self, context: &Context<'_>) {
        self.next = 0;
        self.groups = 0;
        self.account.clear(context);
        self.table.clear();
        self.seen.clear();
        self.values.clear();
        self.states.clear();
    }

    fn start(&mut self, context: &Context<'_>) -> Result<()> {
        self.done = true;
        self.clear(context);
        if let Some(spilled) = self.spilled.take() {
            spilled.remove(context);
        }
        if self.keys.is_empty() && self.sets.is_empty() {
            self.add_group();
        }
        // A set without keys has a group even for an empty input.
        for set in 0..self.sets.len() {
            if self.sets.get(set).is_some_and(Vec::is_empty) {
                self.group_in_set(set, context)?;
            }
        }
        Ok(())
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.start(context)?;
        while self.input.next(context)? {
            if self.sets.is_empty()
                && let Some(group) = self.group_of(context)?
            {
                self.accumulate(group, 0, context)?;
            }
            for set in 0..self.sets.len() {
                if let Some(group) = self.group_in_set(set, context)? {
                    self.accumulate(group, set, context)?;
                }
            }
        }
        Ok(())
    }

    /// Aggregates the next partition of spilled rows. Returns false if there is none.
    fn run_spilled(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        if !spilled.open_next()? {
            return Ok(false);
        }
        self.clear(context);
        while let Some(spilled) = &mut self.spilled
            && let Some(mut record) = spilled.next()?
        {
            context.check_cancelled()?;
            let set = u32::from_le_bytes(*take(&mut record)?) as usize;
            self.image.restore(record, context)?;
            let group = match self.sets.is_empty() {
                true => self.group_of(context)?,
                false => self.group_in_set(set, context)?,
            };
            if let Some(group) = group {
                self.accumulate(group, set, context)?;
            }
        }
        Ok(true)
    }

    /// Adds the current row to a group of a grouping set.
    fn accumulate(&mut self, group: usize, set: usize, context: &Context<'_>) -> Result<()> {
        let frame = context.frame();
        let first = group * self.aggregates.len();
        let aggregates = self.of_sets.get(set).unwrap_or(&self.aggregates);
        for (nth, aggregate) in aggregates.iter().enumerate() {
            if let Some(filter) = &aggregate.filter
                && !filter.is_true(&frame)?
            {
                continue;
            }
            let Some(state) = self.states.get_mut(first + nth) else { continue };
            let Some(argument) = &aggregate.argument else {
                state.add(aggregate.kind, ValueRef::Null)?;
                continue;
            };
            let value = argument.evaluate(&frame)?;
            let value = value.as_ref();
            if value.is_null() && !aggregate.kind.keeps_nulls() {
                continue;
            }
            if aggregate.distinct {
                self.key.clear();
                self.key.extend_from_slice(&(nth as u32).to_le_bytes());
                self.key.extend_from_slice(&(group as u64).to_le_bytes());
                match aggregate.distinct_key() {
                    Some(key) => append(key.evaluate(&frame)?.as_ref(), &mut self.key),
                    None => append(value, &mut self.key),
                }
                if let Some(second) = &aggregate.second {
                    append(second.evaluate(&frame)?.as_ref(), &mut self.key);
                }
                if !self.seen.insert(&self.key).1 {
                    continue;
                }
                self.account.keep(self.key.len() + 48, context)?;
            }
            if let AggregateState::Elements(_) | AggregateState::Json(..) = state {
                self.account.keep(value.to_value().memory(), context)?;
            }
            if !aggregate.has_more_arguments() {
                state.add(aggregate.kind, value)?;
                continue;
            }
            let second = match &aggregate.second {
                Some(second) => second.evaluate(&frame)?,
                None => Datum::NULL,
            };
            if let AggregateState::Collected(rows) = state {
                let keys = aggregate.order.iter().map(|key| key.expr.evaluate(&frame));
                let keys = keys.map(|key| key.map(Datum::into_value)).collect::<Result<_>>()?;
                let bytes = rows.add(keys, value.to_value(), second.into_value());
                self.account.keep(bytes, context)?;
                continue;
            }
            if let (AggregateState::Joined(_), ValueRef::Text(text)) = (&*state, value) {
                self.account.keep(text.len(), context)?;
            }
            state.add_pair(aggregate.kind, value, second.as_ref())?;
        }
        Ok(())
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
        let group = self.next;
        self.next += 1;
        let (width, count) = (self.keys.len(), self.aggregates.len());
        let stored = width + usize::from(!self.sets.is_empty());
        let keys = self.values.iter().skip(group * stored).take(stored);
        let states = self.states.iter().skip(group * count).take(count);
        let slot = context.slot(self.slot)?;
        slot.current = Current::Values;
        slot.values.clear();
        slot.values.extend(keys.cloned());
        let set = if stored > width { slot.values.pop() } else { None };
        for (state, aggregate) in states.zip(&self.aggregates) {
            slot.values.push(state.finish(aggregate)?);
        }
        slot.values.extend(set);
        Ok(true)
    }
}

/// Returns the aggregates of each grouping set, if direct arguments read keys.
fn aggregates_of_sets(
    aggregates: &[Aggregate],
    keys: &[Expr],
    sets: &[Vec<usize>],
) -> Vec<Vec<Aggregate>> {
    let reads_row = |argument: &Expr| {
        let mut reads = false;
        argument.each_column(&mut |_| reads = true);
        reads
    };
    if sets.is_empty() || !aggregates.iter().flat_map(Aggregate::direct_arguments).any(reads_row) {
        return Vec::new();
    }
    let in_set = |set: &Vec<usize>| {
        let absent = |expr: &Expr| {
            let mut equal = (0..keys.len()).filter(|number| keys.get(*number) == Some(expr));
            equal.next().is_some_and(|number| !set.contains(&number))
        };
        let mut own = aggregates.to_vec();
        own.iter_mut()
            .flat_map(Aggregate::direct_arguments_mut)
            .for_each(|argument| forget_keys(argument, &absent));
        own
    };
    sets.iter().map(in_set).collect()
}

/// Replaces the keys that a grouping set does not have by NULL.
fn forget_keys(expr: &mut Expr, is_absent: &dyn Fn(&Expr) -> bool) {
    match is_absent(expr) {
        true => *expr = Expr::Constant(Value::Null),
        false => expr.each_child_mut(&mut |child| forget_keys(child, is_absent)),
    }
}
