//! Aggregates: their states, and hash aggregation.

pub mod combined_values;
mod hash_aggregate;
pub(super) mod ordered_aggregate;
pub(super) mod statistical_aggregate;

use self::combined_values::Combined;
pub use self::hash_aggregate::RowAggregate;
use self::ordered_aggregate::CollectedRows;
use self::statistical_aggregate::{Moments, Regression};
use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{accumulate_arrays, write_key, write_value};
use crate::types::CastContext;
use crate::types::{
    DataType, Decimal, ElementType, Interval, Numeric, TextSettings, Value, ValueRef, convert,
};
use std::cmp::Ordering;

/// The state of an aggregate for one group.
#[derive(Clone, Debug)]
pub enum AggregateState {
    Count(i64),
    /// Sum of integers, and their count.
    Integers(i128, i64),
    Numerics(Numeric, i64),
    /// Sum of more than 38 digits.
    Decimals(Box<Decimal>, i64),
    Doubles(f64, i64),
    /// Sum of REALs, rounded to REAL at every step.
    Reals(f32, i64),
    Intervals(Interval, i64),
    Extreme(Value),
    Truth(Option<bool>),
    Bits(Option<i64>),
    /// Bit strings or ranges.
    Combined(Combined),
    /// Concatenated texts or bytes.
    Joined(Option<Vec<u8>>),
    /// The elements of an array.
    Elements(Vec<Value>),
    /// The text of the elements or members of a JSON value.
    Json(String, Box<TextSettings>),
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
        if let Some(combined) = Combined::new(aggregate) {
            return AggregateState::Combined(combined);
        }
        match (aggregate.kind, aggregate.data_type) {
            (AggregateKind::Count, _) => AggregateState::Count(0),
            (AggregateKind::Sum, DataType::Real) => AggregateState::Reals(0.0, 0),
            (AggregateKind::Sum | AggregateKind::Average, DataType::Double) => {
                AggregateState::Doubles(0.0, 0)
            }
            (AggregateKind::Sum | AggregateKind::Average, DataType::Interval) => {
                AggregateState::Intervals(Interval::default(), 0)
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
                AggregateState::Json(String::new(), Box::new(aggregate.settings))
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
                    (None, value) => {
                        let before = Numeric::new(*sum, 0)?;
                        *self = long_sum(&Decimal::Short(before), value, *count)?;
                    }
                }
            }
            AggregateState::Numerics(sum, count) => {
                *count += 1;
                match value.as_numeric().map(|number| sum.checked_add(number)) {
                    Some(Ok(more)) => *sum = more,
                    _ => *self = long_sum(&Decimal::Short(*sum), value, *count)?,
                }
            }
            AggregateState::Decimals(sum, count) => {
                let number = value.as_decimal().ok_or_else(not_a_number)?;
                (**sum, *count) = (sum.checked_add(&number)?, *count + 1);
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
            AggregateState::Intervals(sum, count) => {
                let ValueRef::Interval(interval) = value else { return Err(not_a_number()) };
                (*sum, *count) = (sum.checked_add(interval)?, *count + 1);
            }
            AggregateState::Extreme(best) if best.is_null() => *best = value.to_value(),
            AggregateState::Extreme(best) => {
                let better = match (kind, value.compare(best.as_ref())) {
                    (_, None) => false,
                    // Of equal values that look different, PostgreSQL returns the last one.
                    (_, Some(Ordering::Equal)) => matches!(
                        value,
                        ValueRef::Encoded(..)
                            | ValueRef::Array(_)
                            | ValueRef::Interval(_)
                            | ValueRef::Numeric(_)
                            | ValueRef::LongNumeric(_)
                            | ValueRef::Double(_)
                            | ValueRef::Real(_)
                    ),
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
            AggregateState::Combined(combined) => return combined.add(kind, value),
            AggregateState::Moments(moments) => return moments.add(value),
            AggregateState::Elements(values) => values.push(value.to_value()),
            AggregateState::Json(out, settings) => {
                let is_structured = matches!(value, ValueRef::Array(_))
                    || value.data_type().is_some_and(|known| known.record().is_some());
                out.push_str(match (out.is_empty(), is_structured) {
                    (true, _) => "[",
                    (false, true) => ", \n ",
                    (false, false) => ", ",
                });
                write_value(out, value, settings)?;
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
            AggregateState::Json(out, settings)
                if matches!(kind, AggregateKind::JsonMembers(_)) =>
            {
                if value.is_null() {
                    let message = "field name must not be null";
                    return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                }
                out.push_str(if out.is_empty() { "{ " } else { ", " });
                write_key(out, value, settings)?;
                out.push_str(" : ");
                write_value(out, second, settings)
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
            | AggregateState::Decimals(_, 0)
            | AggregateState::Doubles(_, 0)
            | AggregateState::Reals(_, 0)
            | AggregateState::Intervals(_, 0) => Value::Null,
            AggregateState::Intervals(sum, _) if is_sum => Value::Interval(*sum),
            AggregateState::Intervals(sum, count) => Value::Interval(sum.divide(*count as f64)?),
            AggregateState::Reals(sum, _) => Value::Real(*sum),
            AggregateState::Integers(sum, _)
                if is_sum && aggregate.data_type == DataType::BigInt =>
            {
                Value::BigInt(i64::try_from(*sum).map_err(|_| {
                    SqlError::new(SqlState::NumericValueOutOfRange, "bigint out of range")
                })?)
            }
            AggregateState::Integers(sum, count) => {
                number(Decimal::of_integer(*sum, 0)?, *count, is_sum)?
            }
            AggregateState::Numerics(sum, count) => number((*sum).into(), *count, is_sum)?,
            AggregateState::Decimals(sum, count) => number((**sum).clone(), *count, is_sum)?,
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
            AggregateState::Combined(combined) => combined.finish(),
            AggregateState::Moments(moments) => moments.finish(aggregate.kind)?,
            AggregateState::Regression(regression) => regression.finish(aggregate.kind),
            AggregateState::Collected(rows) => rows.finish(aggregate)?,
            AggregateState::Json(text, _) if text.is_empty() => Value::Null,
            AggregateState::Json(text, settings) => {
                let end = if text.starts_with('{') { " }" } else { "]" };
                let value = Value::json(format!("{text}{end}"));
                let to = aggregate.data_type;
                convert(value, DataType::Json, to, CastContext::Explicit, settings)?
            }
            AggregateState::Elements(values) if values.is_empty() => Value::Null,
            AggregateState::Elements(values) => {
                let element = aggregate.data_type.element().unwrap_or(ElementType::TEXT);
                accumulate_arrays(element, values)?
            }
        })
    }
}

#[cold]
fn not_a_number() -> SqlError {
    SqlError::internal("an aggregate of a value of another type")
}

#[cold]
pub fn overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: overflow")
}

fn number(sum: Decimal, count: i64, is_sum: bool) -> Result<Value> {
    Ok(Value::from(if is_sum { sum } else { sum.checked_div(&Decimal::from(count))? }))
}

/// Returns the sum after a number whose sum with the others may have more than 38 digits.
fn long_sum(before: &Decimal, value: ValueRef<'_>, count: i64) -> Result<AggregateState> {
    let number = value.as_decimal().ok_or_else(not_a_number)?;
    Ok(match before.checked_add(&number)? {
        Decimal::Short(sum) => AggregateState::Numerics(sum, count),
        sum => AggregateState::Decimals(Box::new(sum), count),
    })
}
