//! INTERVAL literals and OVERLAPS.

use sqlparser::ast::{self, Expr as Ast};

use super::literals::quoted;
use crate::bind::{Binder, Scope, Typed, types};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::CastContext;
use crate::types::{DataType, IntervalFields, Value, checked_text};

/// Returns the type of an INTERVAL literal with fields and precision.
fn type_of(literal: &ast::Interval) -> Result<DataType> {
    let fields = match &literal.leading_field {
        None => IntervalFields::All,
        Some(first) => {
            let last = literal.last_field.as_ref().map(ToString::to_string);
            types::interval_fields(&first.to_string(), last.as_deref())?
        }
    };
    let is_second = literal.last_field.is_none() && fields.has_seconds();
    let precision = match literal.leading_precision {
        Some(_) if !is_second => {
            let message = "syntax error: the precision of INTERVAL follows SECOND";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        leading => leading.or(literal.fractional_seconds_precision),
    };
    types::precise_interval(fields, precision)
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
        let text = match &*literal.value {
            Ast::Value(value) => quoted(&value.value),
            _ => None,
        };
        let Some(text) = text else {
            if literal.leading_field.is_none() {
                let value = self.expression(&literal.value, scope)?;
                return self.cast(value, DataType::Interval);
            }
            return Err(at(SqlError::unsupported("this form of INTERVAL")));
        };
        let data_type = type_of(literal).map_err(at)?;
        let text = checked_text(text).map_err(at)?;
        let value = self.read_literal(Value::text(text), data_type, CastContext::Explicit);
        let value = value.map_err(at)?;
        Ok(Typed::new(Expr::Constant(value), data_type, position))
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
