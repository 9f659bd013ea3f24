//! INTERVAL literals and OVERLAPS.

use sqlparser::ast::{self, DateTimeField, Expr as Ast};

use super::literals::quoted;
use crate::bind::{Binder, Scope, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, HOUR, Interval, IntervalUnit, MINUTE, SECOND, Value, parse_interval};

/// Returns the unit of a field of an INTERVAL literal.
fn unit_of(field: &DateTimeField) -> Option<IntervalUnit> {
    Some(match field {
        DateTimeField::Year => IntervalUnit::Months(12),
        DateTimeField::Month => IntervalUnit::Months(1),
        DateTimeField::Day => IntervalUnit::Days(1),
        DateTimeField::Hour => IntervalUnit::Micros(HOUR),
        DateTimeField::Minute => IntervalUnit::Micros(MINUTE),
        DateTimeField::Second => IntervalUnit::Micros(SECOND),
        _ => return None,
    })
}

/// Drops what is smaller than the last field.
fn cut(interval: Interval, last: IntervalUnit) -> Interval {
    match last {
        IntervalUnit::Months(count) => {
            Interval { months: interval.months / count * count, ..Interval::default() }
        }
        IntervalUnit::Days(_) => Interval { micros: 0, ..interval },
        IntervalUnit::Micros(SECOND) => interval,
        IntervalUnit::Micros(count) => {
            Interval { micros: interval.micros / count * count, ..interval }
        }
    }
}

impl Binder<'_> {
    /// Binds an INTERVAL literal; a number without a unit counts units of its last field.
    pub(in crate::bind) fn interval(
        &mut self,
        literal: &ast::Interval,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = self.position(&*literal.value);
        let at = |error: SqlError| error.at(position as usize);
        let has_precision =
            literal.leading_precision.is_some() || literal.fractional_seconds_precision.is_some();
        let text = match &*literal.value {
            Ast::Value(value) => quoted(&value.value),
            _ => None,
        };
        let (Some(text), false) = (text, has_precision) else {
            if text.is_none() && literal.leading_field.is_none() {
                let value = self.expression(&literal.value, scope)?;
                return self.cast(value, DataType::Interval);
            }
            return Err(at(SqlError::unsupported("this form of INTERVAL")));
        };
        let last = match literal.last_field.as_ref().or(literal.leading_field.as_ref()) {
            None => None,
            Some(field) => Some(unit_of(field).ok_or_else(|| {
                let message = format!("syntax error: {field} is not a field of INTERVAL");
                at(SqlError::new(SqlState::SyntaxError, message))
            })?),
        };
        let interval =
            parse_interval(text, last.unwrap_or(IntervalUnit::Micros(SECOND))).map_err(at)?;
        let value = Value::Interval(last.map_or(interval, |last| cut(interval, last)));
        Ok(Typed::new(Expr::Constant(value), DataType::Interval, position))
    }

    /// Binds OVERLAPS of two periods; a period ends at a point in time, or after an interval.
    pub(in crate::bind) fn overlaps(
        &mut self,
        left: &Ast,
        right: &Ast,
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        let mut ends = Vec::with_capacity(4);
        for side in [left, right] {
            let Ast::Tuple(parts) = side else {
                return Err(SqlError::unsupported("OVERLAPS of these").at(position as usize));
            };
            let [first, second] = &parts[..] else {
                let message = "wrong number of parameters on a side of OVERLAPS expression";
                let error = SqlError::new(SqlState::SyntaxError, message);
                return Err(error.at(position as usize));
            };
            let first = self.expression(first, scope)?;
            let mut second = self.expression(second, scope)?;
            if second.data_type == Some(DataType::Interval) {
                second = self.operator("+", vec![first.clone(), second], position)?;
            }
            ends.extend([first, second]);
        }
        self.function("overlaps", ends, position)
    }
}
