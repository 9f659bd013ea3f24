//! Aggregates over sorted rows: those with ORDER BY or WITHIN GROUP.

use std::cmp::Ordering;

use super::AggregateState;
use crate::bind::{Aggregate, AggregateKind, AggregateOrder, WindowKind};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{ElementType, Value, ValueRef};

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

fn compare_keys(a: &[Value], b: &[Value], order: &[AggregateOrder]) -> Ordering {
    for ((a, b), key) in a.iter().zip(b).zip(order) {
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
        sorted.sort_by(|a, b| compare_keys(&a.keys, &b.keys, &aggregate.order));
        match aggregate.kind {
            AggregateKind::Mode => Ok(mode(&sorted)),
            AggregateKind::ContinuousPercentile | AggregateKind::DiscretePercentile => {
                percentiles(aggregate, &sorted)
            }
            AggregateKind::Hypothetical(place) => Ok(self.place(place, &aggregate.order)),
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

impl CollectedRows {
    /// Returns the place of a row that is not there. Its values follow the keys of each row.
    fn place(&self, place: WindowKind, order: &[AggregateOrder]) -> Value {
        let width = order.len() / 2;
        let to_place = |row: &CollectedRow| {
            let (own, wanted) = row.keys.split_at(width.min(row.keys.len()));
            compare_keys(own, wanted, order)
        };
        let of = |wanted: Ordering| self.rows.iter().filter(move |row| to_place(row) == wanted);
        let (count, before) = (self.rows.len() as f64, of(Ordering::Less).count());
        match place {
            WindowKind::DenseRank => {
                let mut before: Vec<&CollectedRow> = of(Ordering::Less).collect();
                // The values of that row are the same in all rows.
                before.sort_by(|a, b| compare_keys(&a.keys, &b.keys, order));
                before.dedup_by(|a, b| compare_keys(&a.keys, &b.keys, order).is_eq());
                Value::BigInt(before.len() as i64 + 1)
            }
            WindowKind::PercentRank if self.rows.is_empty() => Value::Double(0.0),
            WindowKind::PercentRank => Value::Double(before as f64 / count),
            WindowKind::CumeDist => {
                let up_to = before + of(Ordering::Equal).count();
                Value::Double((up_to as f64 + 1.0) / (count + 1.0))
            }
            _ => Value::BigInt(before as i64 + 1),
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

/// Returns the percentile, or an array of those that an array asks for.
fn percentiles(aggregate: &Aggregate, sorted: &[&CollectedRow]) -> Result<Value> {
    let Some(first) = sorted.first() else { return Ok(Value::Null) };
    let ValueRef::Array(fractions) = first.second.as_ref() else {
        return percentile(aggregate.kind, sorted, first.second.as_ref());
    };
    let element = aggregate.data_type.element().unwrap_or(ElementType::TEXT);
    let found = fractions.map(element, |fraction| percentile(aggregate.kind, sorted, fraction));
    found.map(Value::Array)
}

/// Returns the value at a fraction of the rows, of which there is at least one.
fn percentile(
    kind: AggregateKind,
    sorted: &[&CollectedRow],
    fraction: ValueRef<'_>,
) -> Result<Value> {
    let fraction = match fraction.as_f64() {
        Some(fraction) if (0.0..=1.0).contains(&fraction) => fraction,
        Some(fraction) => {
            let message = format!("percentile value {fraction} is not between 0 and 1");
            return Err(SqlError::new(SqlState::NumericValueOutOfRange, message));
        }
        None => return Ok(Value::Null),
    };
    let count = sorted.len();
    let at = |row: usize| sorted.get(row.min(count - 1)).map_or(&Value::Null, |row| &row.argument);
    if kind == AggregateKind::DiscretePercentile {
        let row = (fraction * count as f64).ceil() as usize;
        return Ok(at(row.max(1) - 1).clone());
    }
    let place = fraction * (count - 1) as f64;
    let (low, high) = (at(place.floor() as usize), at(place.ceil() as usize));
    let share = place - place.floor();
    if share == 0.0 {
        return Ok(low.clone());
    }
    match (low.as_ref(), high.as_ref()) {
        (ValueRef::Double(low), ValueRef::Double(high)) => {
            Ok(Value::Double(low + share * (high - low)))
        }
        (ValueRef::Interval(low), ValueRef::Interval(high)) => {
            let distance = high.checked_add(low.checked_neg()?)?;
            Ok(Value::Interval(distance.checked_mul(share)?.checked_add(low)?))
        }
        _ => Err(SqlError::internal("a percentile of what is not a number")),
    }
}
