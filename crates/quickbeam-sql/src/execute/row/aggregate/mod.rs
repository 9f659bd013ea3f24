//! Groups and aggregates.

pub(super) mod ordered_aggregate;
pub(super) mod statistical_aggregate;

use self::ordered_aggregate::CollectedRows;
use self::statistical_aggregate::{Moments, Regression};
use super::{Context, MemoryCharge, Operator};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::hash::key_table::{KeyTable, append};
use crate::expression::{Current, Datum, Expr, stack_arrays, write_key, write_value};
use crate::types::{DataType, ElementType, Numeric, Value, ValueRef, convert};

/// The state of an aggregate for one group.
#[derive(Clone, Debug)]
pub enum AggregateState {
    Count(i64),
    /// Sum of integers, and their count.
    Integers(i128, i64),
    Numerics(Numeric, i64),
    Doubles(f64, i64),
    /// Sum of REALs, rounded to REAL at every step.
    Reals(f32, i64),
    Extreme(Value),
    Truth(Option<bool>),
    Bits(Option<i64>),
    /// Concatenated texts or bytes.
    Joined(Option<Vec<u8>>),
    /// The elements of an array.
    Elements(Vec<Value>),
    /// The text of the elements or members of a JSON value.
    Json(String),
    Moments(Box<Moments>),
    Regression(Box<Regression>),
    /// The rows of an aggregate with ORDER BY or WITHIN GROUP.
    Collected(Box<CollectedRows>),
}

impl AggregateState {
    /// Returns the state of an aggregate of no rows.
    pub fn new(aggregate: &Aggregate) -> AggregateState {
        if !aggregate.order.is_empty() {
            return AggregateState::Collected(Box::default());
        }
        AggregateState::unordered(aggregate)
    }

    /// Returns the state for rows that arrive in the order of the aggregate.
    pub(super) fn unordered(aggregate: &Aggregate) -> AggregateState {
        match (aggregate.kind, aggregate.data_type) {
            (AggregateKind::Count, _) => AggregateState::Count(0),
            (AggregateKind::Sum, DataType::Real) => AggregateState::Reals(0.0, 0),
            (AggregateKind::Sum | AggregateKind::Average, DataType::Double) => {
                AggregateState::Doubles(0.0, 0)
            }
            (AggregateKind::Sum | AggregateKind::Average, _) => AggregateState::Integers(0, 0),
            (AggregateKind::Minimum | AggregateKind::Maximum, _) => {
                AggregateState::Extreme(Value::Null)
            }
            (AggregateKind::All | AggregateKind::Any, _) => AggregateState::Truth(None),
            (AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor, _) => {
                AggregateState::Bits(None)
            }
            (AggregateKind::Concatenation, _) => AggregateState::Joined(None),
            (AggregateKind::Elements, _) => AggregateState::Elements(Vec::new()),
            (AggregateKind::JsonElements(_) | AggregateKind::JsonMembers(_), _) => {
                AggregateState::Json(String::new())
            }
            (
                AggregateKind::SampleVariance
                | AggregateKind::PopulationVariance
                | AggregateKind::SampleDeviation
                | AggregateKind::PopulationDeviation,
                data_type,
            ) => AggregateState::Moments(Box::new(Moments::new(data_type))),
            (kind, _) if kind.is_regression() => AggregateState::Regression(Box::default()),
            _ => AggregateState::Collected(Box::default()),
        }
    }

    /// Adds a value, which is not NULL unless rows are counted.
    #[inline]
    pub fn add(&mut self, kind: AggregateKind, value: ValueRef<'_>) -> Result<()> {
        match self {
            AggregateState::Count(count) => *count += 1,
            AggregateState::Integers(sum, count) => {
                *count += 1;
                match (value.as_i64(), value) {
                    (Some(number), _) => *sum += i128::from(number),
                    (None, ValueRef::Numeric(number)) => {
                        let before = Numeric::new(*sum, 0)?.checked_add(number)?;
                        *self = AggregateState::Numerics(before, *count);
                    }
                    _ => return Err(SqlError::internal("a sum of what is no number")),
                }
            }
            AggregateState::Numerics(sum, count) => {
                *count += 1;
                let number = value.as_numeric();
                *sum = sum.checked_add(
                    number.ok_or_else(|| SqlError::internal("a sum of what is no number"))?,
                )?;
            }
            AggregateState::Doubles(sum, count) => {
                *count += 1;
                let number = value
                    .as_f64()
                    .ok_or_else(|| SqlError::internal("a sum of what is no number"))?;
                let finite = sum.is_finite() && number.is_finite();
                *sum += number;
                if finite && sum.is_infinite() {
                    return Err(overflow());
                }
            }
            AggregateState::Reals(sum, count) => {
                let ValueRef::Real(number) = value else {
                    return Err(SqlError::internal("a sum of what is no number"));
                };
                *count += 1;
                let finite = sum.is_finite() && number.is_finite();
                *sum += number;
                if finite && sum.is_infinite() {
                    return Err(overflow());
                }
            }
            AggregateState::Extreme(best) if best.is_null() => *best = value.to_value(),
            AggregateState::Extreme(best) => {
                let better = match (kind, value.compare(best.as_ref())) {
                    (_, None) => false,
                    (AggregateKind::Minimum, Some(order)) => order.is_lt(),
                    (_, Some(order)) => order.is_gt(),
                };
                if better {
                    *best = value.to_value();
                }
            }
            AggregateState::Truth(truth) => {
                let ValueRef::Boolean(value) = value else { return Ok(()) };
                let before = *truth;
                *truth = Some(match kind {
                    AggregateKind::All => before.unwrap_or(true) && value,
                    _ => before.unwrap_or(false) || value,
                });
            }
            AggregateState::Bits(bits) => {
                let Some(value) = value.as_i64() else { return Err(not_a_number()) };
                *bits = Some(match (kind, *bits) {
                    (_, None) => value,
                    (AggregateKind::BitAnd, Some(bits)) => bits & value,
                    (AggregateKind::BitOr, Some(bits)) => bits | value,
                    (_, Some(bits)) => bits ^ value,
                });
            }
            AggregateState::Moments(moments) => return moments.add(value),
            AggregateState::Elements(values) => values.push(value.to_value()),
            AggregateState::Json(out) => {
                out.push_str(if out.is_empty() { "[" } else { ", " });
                write_value(out, value)?;
            }
            AggregateState::Joined(_)
            | AggregateState::Regression(_)
            | AggregateState::Collected(_) => return Err(not_a_number()),
        }
        Ok(())
    }

    /// Adds a value and the second argument.
    pub fn add_pair(
        &mut self,
        kind: AggregateKind,
        value: ValueRef<'_>,
        second: ValueRef<'_>,
    ) -> Result<()> {
        let part = |value: ValueRef<'_>| match value {
            ValueRef::Text(text) => text.as_bytes().to_vec(),
            ValueRef::Bytea(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        match self {
            AggregateState::Joined(Some(joined)) => {
                joined.extend(part(second));
                joined.extend(part(value));
                Ok(())
            }
            AggregateState::Joined(joined) => {
                *joined = Some(part(value));
                Ok(())
            }
            AggregateState::Json(out) if matches!(kind, AggregateKind::JsonMembers(_)) => {
                if value.is_null() {
                    let message = "field name must not be null";
                    return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                }
                out.push_str(if out.is_empty() { "{ " } else { ", " });
                write_key(out, value)?;
                out.push_str(" : ");
                write_value(out, second)
            }
            AggregateState::Regression(regression) => match second {
                ValueRef::Null => Ok(()),
                second => regression.add(value, second),
            },
            state => state.add(kind, value),
        }
    }

    /// Computes the aggregate's value.
    pub fn finish(&self, aggregate: &Aggregate) -> Result<Value> {
        let is_sum = aggregate.kind == AggregateKind::Sum;
        Ok(match self {
            AggregateState::Count(count) => Value::BigInt(*count),
            AggregateState::Integers(_, 0)
            | AggregateState::Numerics(_, 0)
            | AggregateState::Doubles(_, 0)
            | AggregateState::Reals(_, 0) => Value::Null,
            AggregateState::Reals(sum, _) => Value::Real(*sum),
            AggregateState::Integers(sum, _)
                if is_sum && aggregate.data_type == DataType::BigInt =>
            {
                Value::BigInt(i64::try_from(*sum).map_err(|_| {
                    SqlError::new(SqlState::NumericValueOutOfRange, "bigint out of range")
                })?)
            }
            AggregateState::Integers(sum, count) => number(Numeric::new(*sum, 0)?, *count, is_sum)?,
            AggregateState::Numerics(sum, count) => number(*sum, *count, is_sum)?,
            AggregateState::Doubles(sum, count) => {
                Value::Double(if is_sum { *sum } else { *sum / *count as f64 })
            }
            AggregateState::Extreme(value) => value.clone(),
            AggregateState::Truth(truth) => truth.map_or(Value::Null, Value::Boolean),
            AggregateState::Bits(None) | AggregateState::Joined(None) => Value::Null,
            AggregateState::Bits(Some(bits)) => match aggregate.data_type {
                DataType::SmallInt => Value::SmallInt(*bits as i16),
                DataType::Integer => Value::Integer(*bits as i32),
                _ => Value::BigInt(*bits),
            },
            AggregateState::Joined(Some(joined)) => match aggregate.data_type {
                DataType::Bytea => Value::bytea(joined),
                _ => Value::text(String::from_utf8_lossy(joined)),
            },
            AggregateState::Moments(moments) => moments.finish(aggregate.kind)?,
            AggregateState::Regression(regression) => regression.finish(aggregate.kind),
            AggregateState::Collected(rows) => rows.finish(aggregate)?,
            AggregateState::Json(text) if text.is_empty() => Value::Null,
            AggregateState::Json(text) => {
                let end = if text.starts_with('{') { " }" } else { "]" };
                let value = Value::json(format!("{text}{end}"));
                convert(value, DataType::Json, aggregate.data_type, true)?
            }
            AggregateState::Elements(values) if values.is_empty() => Value::Null,
            AggregateState::Elements(values) => {
                let element = aggregate.data_type.element().unwrap_or(ElementType::TEXT);
                stack_arrays(element, values)?
            }
        })
    }
}

#[cold]
fn not_a_number() -> SqlError {
    SqlError::internal("an aggregate of a value of another type")
}

#[cold]
fn overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: overflow")
}

fn number(sum: Numeric, count: i64, is_sum: bool) -> Result<Value> {
    Ok(Value::Numeric(if is_sum { sum } else { sum.checked_div(Numeric::from(count))? }))
}

/// Hash aggregation. Without keys there is one group, even for an empty input.
#[derive(Debug)]
pub struct RowAggregate {
    pub input: Operator,
    slot: usize,
    keys: Vec<Expr>,
    /// GROUPING SETS: the numbers of the keys of each; empty for one set with all keys.
    sets: Vec<Vec<usize>>,
    aggregates: Vec<Aggregate>,
    table: KeyTable,
    key: Vec<u8>,
    /// For each group its keys' values, and with GROUPING SETS the number of its set.
    values: Vec<Value>,
    /// For each group its aggregates.
    states: Vec<AggregateState>,
    /// Values seen, of aggregates with DISTINCT: number of the aggregate, the group, the value.
    seen: KeyTable,
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
    ) -> RowAggregate {
        RowAggregate {
            input,
            slot,
            keys,
            sets,
            aggregates,
            table: KeyTable::default(),
            key: Vec::new(),
            values: Vec::new(),
            states: Vec::new(),
            seen: KeyTable::default(),
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

    fn group_of(&mut self, context: &Context<'_>) -> Result<usize> {
        if self.keys.is_empty() {
            return Ok(0);
        }
        let frame = context.frame();
        self.key.clear();
        for key in &self.keys {
            append(key.evaluate(&frame)?.as_ref(), &mut self.key);
        }
        let (group, new) = self.table.insert(&self.key);
        if new {
            let bytes = self.key.len() + self.aggregates.len() * 64 + 48;
            self.account.keep(bytes, context)?;
            for key in &self.keys {
                let value = key.evaluate(&frame)?.into_value();
                self.account.keep(value.memory(), context)?;
                self.values.push(value);
            }
            self.add_group();
        }
        Ok(group)
    }

    /// Returns the group of the current row in a grouping set.
    fn group_in_set(&mut self, set: usize, context: &Context<'_>) -> Result<usize> {
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
        let (group, new) = self.table.insert(&self.key);
        if new {
            let bytes = self.key.len() + self.aggregates.len() * 64 + 48;
            self.account.keep(bytes, context)?;
            for (number, key) in self.keys.iter().enumerate() {
                let is_member = self.sets.get(set).is_some_and(|set| set.contains(&number));
                let value = match is_member {
                    true => key.evaluate(&frame)?.into_value(),
                    false => Value::Null,
                };
                self.account.keep(value.memory(), context)?;
                self.values.push(value);
            }
            self.values.push(Value::Integer(set as i32));
            self.add_group();
        }
        Ok(group)
    }

    fn start(&mut self, context: &Context<'_>) -> Result<()> {
        self.done = true;
        self.next = 0;
        self.groups = 0;
        self.account.clear(context);
        self.table.clear();
        self.seen.clear();
        self.values.clear();
        self.states.clear();
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
            if self.sets.is_empty() {
                let group = self.group_of(context)?;
                self.accumulate(group, context)?;
            }
            for set in 0..self.sets.len() {
                let group = self.group_in_set(set, context)?;
                self.accumulate(group, context)?;
            }
        }
        Ok(())
    }

    /// Adds the current row to a group.
    fn accumulate(&mut self, group: usize, context: &Context<'_>) -> Result<()> {
        let frame = context.frame();
        let first = group * self.aggregates.len();
        for (nth, aggregate) in self.aggregates.iter().enumerate() {
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
                append(value, &mut self.key);
                if !self.seen.insert(&self.key).1 {
                    continue;
                }
                self.account.keep(self.key.len() + 48, context)?;
            }
            if let AggregateState::Elements(_) | AggregateState::Json(_) = state {
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
        if self.next >= self.groups {
            return Ok(false);
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
