//! Aggregates over sorted rows: those with ORDER BY or WITHIN GROUP.

use std::cmp::Ordering;

use super::AggregateState;
use crate::bind::{Aggregate, AggregateKind, AggregateOrder};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, Value};

/// The rows of a group, kept for sorting.
#[derive(Clone, Debug, Default)]
pub struct CollectedRows {
    rows: Vec<CollectedRow>,
}

#[derive(Clone, Debug)]
struct CollectedRow {
    keys: Vec<Value>,
    argument: Value,
    second: Value,
}

fn compare(a: &CollectedRow, b: &CollectedRow, order: &[AggregateOrder]) -> Ordering {
    for ((a, b), key) in a.keys.iter().zip(&b.keys).zip(order) {
        let result = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (false, true) if key.nulls_first => Ordering::Greater,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if key.descending => b.cmp(a),
            (false, false) => a.cmp(b),
        };
        if result != Ordering::Equal {
            return result;
        }
    }
    Ordering::Equal
}

impl CollectedRows {
    /// Adds a row; returns the bytes of memory that it takes.
    pub fn add(&mut self, keys: Vec<Value>, argument: Value, second: Value) -> usize {
        let bytes = keys.iter().chain([&argument, &second]).map(Value::memory).sum::<usize>();
        self.rows.push(CollectedRow { keys, argument, second });
        bytes + 24
    }

    /// Computes the aggregate of the sorted rows.
    pub fn finish(&self, aggregate: &Aggregate) -> Result<Value> {
        let mut sorted: Vec<&CollectedRow> = self.rows.iter().collect();
        // The sort is stable: rows with equal keys keep the order of the input.
        sorted.sort_by(|a, b| compare(a, b, &aggregate.order));
        match aggregate.kind {
            AggregateKind::Mode => Ok(mode(&sorted)),
            AggregateKind::ContinuousPercentile | AggregateKind::DiscretePercentile => {
                percentile(aggregate, &sorted)
            }
            _ => {
                let mut state = AggregateState::unordered(aggregate);
                for row in sorted {
                    state.add_pair(aggregate.kind, row.argument.as_ref(), row.second.as_ref())?;
                }
                state.finish(aggregate)
            }
        }
    }
}

/// Returns the most frequent value; of several, the first one.
fn mode(sorted: &[&CollectedRow]) -> Value {
    let (mut best, mut most, mut count) = (Value::Null, 0, 0);
    let mut previous: Option<&Value> = None;
    for row in sorted {
        count = if previous == Some(&row.argument) { count + 1 } else { 1 };
        previous = Some(&row.argument);
        if count > most {
            (best, most) = (row.argument.clone(), count);
        }
    }
    best
}

fn percentile(aggregate: &Aggregate, sorted: &[&CollectedRow]) -> Result<Value> {
    let Some(first) = sorted.first() else { return Ok(Value::Null) };
    let fraction = match first.second.as_ref().as_f64() {
        Some(fraction) if (0.0..=1.0).contains(&fraction) => fraction,
        Some(fraction) => {
            let message = format!("percentile value {fraction} is not between 0 and 1");
            return Err(SqlError::new(SqlState::NumericValueOutOfRange, message));
        }
        None => return Ok(Value::Null),
    };
    let count = sorted.len();
    let at = |row: usize| sorted.get(row.min(count - 1)).map_or(&Value::Null, |row| &row.argument);
    if aggregate.kind == AggregateKind::DiscretePercentile {
        let row = (fraction * count as f64).ceil() as usize;
        return Ok(at(row.max(1) - 1).clone());
    }
    let place = fraction * (count - 1) as f64;
    let (low, high) = (at(place.floor() as usize), at(place.ceil() as usize));
    match (low.as_ref().as_f64(), high.as_ref().as_f64(), aggregate.data_type) {
        (Some(low), Some(high), DataType::Double) => {
            let share = place - place.floor();
            Ok(Value::Double(if share == 0.0 { low } else { low + share * (high - low) }))
        }
        _ => Err(SqlError::internal("a percentile of what is not a number")),
    }
}
