//! The state of aggregates that combine values by an operator: `bit_and` of bit strings,
//! `range_agg`.

use crate::bind::{Aggregate, AggregateKind};
use crate::error::{Result, SqlError};
use crate::expression::{Builtin, Implementation, overloads};
use crate::types::{DataType, Value, ValueRef};

/// The values so far, combined; NULL before the first.
#[derive(Clone, Debug)]
pub struct Combined {
    operator: &'static Builtin,
    value: Value,
}

#[cold]
fn no_operator() -> SqlError {
    SqlError::internal("an aggregate of values without an operator")
}

fn call(function: &Builtin, arguments: &[ValueRef<'_>]) -> Result<Value> {
    match function.implementation {
        Implementation::Strict(of_values) => of_values(arguments),
        _ => Err(no_operator()),
    }
}

fn entry(name: &str, arguments: &[DataType]) -> Option<&'static Builtin> {
    overloads(name).iter().copied().find(|known| known.arguments == arguments)
}

impl Combined {
    /// Returns the state of an aggregate of no values; `None` if another state computes it.
    pub fn new(aggregate: &Aggregate) -> Option<Combined> {
        let DataType::Encoded(result) = aggregate.data_type else { return None };
        let symbol = match aggregate.kind {
            AggregateKind::BitAnd => "&",
            AggregateKind::BitOr => "|",
            AggregateKind::BitXor => "#",
            AggregateKind::RangeUnion => "+",
            AggregateKind::RangeIntersection => "*",
            _ => return None,
        };
        let operand = result.kind().data_type();
        let operator = entry(symbol, &[operand, operand])?;
        Some(Combined { operator, value: Value::Null })
    }

    /// Adds a value, which is not NULL.
    pub fn add(&mut self, kind: AggregateKind, value: ValueRef<'_>) -> Result<()> {
        let range = value.data_type().and_then(DataType::encoded);
        let widened = match range.filter(|_| kind == AggregateKind::RangeUnion) {
            Some(range) if !range.is_multirange() => {
                let function = entry("multirange", &[range.data_type()]);
                Some(call(function.ok_or_else(no_operator)?, &[value])?)
            }
            _ => None,
        };
        let value = widened.as_ref().map_or(value, Value::as_ref);
        self.value = match self.value {
            Value::Null => value.to_value(),
            _ => call(self.operator, &[self.value.as_ref(), value])?,
        };
        Ok(())
    }

    /// Returns the aggregate's value.
    pub fn finish(&self) -> Value {
        self.value.clone()
    }
}
