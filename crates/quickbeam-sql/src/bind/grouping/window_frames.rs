//! Frames of windows: bounds, offsets and exclusions.

use sqlparser::ast::{self, BinaryOperator, Expr as Ast, WindowFrameUnits, WindowSpec};

use super::windows::windowing_error;
use crate::bind::{Binder, FrameBound, FrameExclusion, FrameUnits, Scope, Subquery, WindowFrame};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::parse::{CURRENT_ROW, EXCLUSION, UNBOUNDED};
use crate::types::DataType;

/// A bound of a frame before its offset has a type.
enum WrittenBound<'q> {
    UnboundedPreceding,
    Preceding(&'q Ast),
    CurrentRow,
    Following(&'q Ast),
    UnboundedFollowing,
}

impl WrittenBound<'_> {
    fn rank(&self) -> u8 {
        match self {
            WrittenBound::UnboundedPreceding => 0,
            WrittenBound::Preceding(_) => 1,
            WrittenBound::CurrentRow => 2,
            WrittenBound::Following(_) => 3,
            WrittenBound::UnboundedFollowing => 4,
        }
    }
}

fn is_marker(expr: &Ast, marker: &str) -> bool {
    matches!(expr, Ast::Identifier(name) if name.quote_style.is_some() && name.value == marker)
}

/// Splits the exclusion off a bound's offset: see `parse/windows.rs`.
fn exclusion_of(offset: &Ast) -> (&Ast, FrameExclusion) {
    if let Ast::BinaryOp { left, op: BinaryOperator::Or, right } = offset
        && let Ast::Identifier(name) = &**right
        && let Some(exclusion) = name.value.strip_prefix(EXCLUSION)
    {
        let exclusion = match exclusion {
            "CURRENT ROW" => FrameExclusion::CurrentRow,
            "GROUP" => FrameExclusion::Group,
            "TIES" => FrameExclusion::Ties,
            _ => FrameExclusion::NoOthers,
        };
        return (left, exclusion);
    }
    (offset, FrameExclusion::NoOthers)
}

fn bound_of(bound: &ast::WindowFrameBound) -> (WrittenBound<'_>, FrameExclusion) {
    let (offset, is_before) = match bound {
        ast::WindowFrameBound::CurrentRow => {
            return (WrittenBound::CurrentRow, FrameExclusion::NoOthers);
        }
        ast::WindowFrameBound::Preceding(offset) => (offset.as_deref(), true),
        ast::WindowFrameBound::Following(offset) => (offset.as_deref(), false),
    };
    let (offset, exclusion) = match offset.map(exclusion_of) {
        Some((offset, exclusion)) => (Some(offset), exclusion),
        None => (None, FrameExclusion::NoOthers),
    };
    let bound = match offset.filter(|offset| !is_marker(offset, UNBOUNDED)) {
        Some(offset) if is_marker(offset, CURRENT_ROW) => WrittenBound::CurrentRow,
        Some(offset) if is_before => WrittenBound::Preceding(offset),
        Some(offset) => WrittenBound::Following(offset),
        None if is_before => WrittenBound::UnboundedPreceding,
        None => WrittenBound::UnboundedFollowing,
    };
    (bound, exclusion)
}

impl Binder<'_> {
    /// Binds the frame of a window whose sort keys have these types.
    pub(in crate::bind) fn frame(
        &mut self,
        spec: &WindowSpec,
        types: &[Option<DataType>],
        scope: &Scope,
    ) -> Result<WindowFrame> {
        let Some(written) = &spec.window_frame else {
            return Ok(WindowFrame {
                units: FrameUnits::Range,
                start: FrameBound::Unbounded,
                end: FrameBound::CurrentRow,
                exclusion: FrameExclusion::NoOthers,
            });
        };
        let (start, of_start) = bound_of(&written.start_bound);
        let (end, exclusion) = match &written.end_bound {
            Some(bound) => bound_of(bound),
            None => (WrittenBound::CurrentRow, of_start),
        };
        self.check_bounds(&start, &end)?;
        let units = match written.units {
            WindowFrameUnits::Rows => FrameUnits::Rows,
            WindowFrameUnits::Range => FrameUnits::Range,
            WindowFrameUnits::Groups => FrameUnits::Groups,
        };
        if units == FrameUnits::Groups && types.is_empty() {
            return Err(windowing_error("GROUPS mode requires an ORDER BY clause", 0));
        }
        let mut offset = |bound: WrittenBound<'_>| -> Result<FrameBound> {
            Ok(match bound {
                WrittenBound::UnboundedPreceding | WrittenBound::UnboundedFollowing => {
                    FrameBound::Unbounded
                }
                WrittenBound::CurrentRow => FrameBound::CurrentRow,
                WrittenBound::Preceding(offset) => {
                    FrameBound::Preceding(self.offset(offset, units, types, scope)?)
                }
                WrittenBound::Following(offset) => {
                    FrameBound::Following(self.offset(offset, units, types, scope)?)
                }
            })
        };
        Ok(WindowFrame { units, start: offset(start)?, end: offset(end)?, exclusion })
    }

    fn check_bounds(&self, start: &WrittenBound<'_>, end: &WrittenBound<'_>) -> Result<()> {
        let message = match (start, end) {
            (WrittenBound::UnboundedFollowing, _) => "frame start cannot be UNBOUNDED FOLLOWING",
            (_, WrittenBound::UnboundedPreceding) => "frame end cannot be UNBOUNDED PRECEDING",
            (WrittenBound::CurrentRow, WrittenBound::Preceding(_)) => {
                "frame starting from current row cannot have preceding rows"
            }
            (WrittenBound::Following(_), WrittenBound::CurrentRow) => {
                "frame starting from following row cannot end with current row"
            }
            (start, end) if start.rank() > end.rank() => {
                "frame starting from following row cannot have preceding rows"
            }
            _ => return Ok(()),
        };
        let position = match (start, end) {
            (WrittenBound::Preceding(offset) | WrittenBound::Following(offset), _)
            | (_, WrittenBound::Preceding(offset) | WrittenBound::Following(offset)) => {
                self.position(*offset)
            }
            _ => 0,
        };
        Err(windowing_error(message, position))
    }

    /// Binds the offset of a frame's bound. It reads no columns of the query.
    fn offset(
        &mut self,
        offset: &Ast,
        units: FrameUnits,
        types: &[Option<DataType>],
        scope: &Scope,
    ) -> Result<Expr> {
        let position = self.position(offset);
        // The parser reads a quoted offset as an interval.
        let offset = match offset {
            Ast::Interval(interval) if interval.leading_field.is_none() => &interval.value,
            other => other,
        };
        let before = self.levels.last().map_or(0, |level| level.subqueries.len());
        let value = self.expression(offset, scope)?;
        let (own, subqueries) = self.levels.last().map_or((0, &[][..]), |level| {
            (level.first_slot, level.subqueries.get(before..).unwrap_or_default())
        });
        // Each row has the same answers of subqueries that read no row.
        let mut read = value.expr.slots();
        read.remove(&Subquery::answers(subqueries));
        subqueries.iter().for_each(|subquery| read.extend(&subquery.query.reads()));
        if read.iter().any(|slot| slot >= own) {
            let name = format!("{units:?}").to_uppercase();
            let message = format!("argument of {name} must not contain variables");
            let error = SqlError::new(SqlState::InvalidColumnReference, message);
            return Err(error.at(position as usize));
        }
        if units != FrameUnits::Range {
            let given = value.data_type;
            if given.is_some_and(|given| !given.is_numeric()) {
                let name = format!("{units:?}").to_uppercase();
                let given = given.map_or_else(String::new, |given| given.to_string());
                let message = format!("argument of {name} must be type bigint, not type {given}");
                let error = SqlError::new(SqlState::DatatypeMismatch, message);
                return Err(error.at(position as usize));
            }
            return self.coerce(value, DataType::BigInt);
        }
        let [key] = types else {
            let message =
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(windowing_error(message, position));
        };
        use DataType as T;
        let key = key.unwrap_or(T::Text).unconstrained();
        let given = value.data_type;
        let is_span = given.is_none_or(|given| given.unconstrained() == DataType::Interval);
        let target = match (key, given.map(DataType::unconstrained)) {
            (T::Date | T::Time | T::Timestamp | T::TimestampTz | T::Interval, _) if is_span => {
                T::Interval
            }
            (key, Some(given)) if key.is_integer() && given.is_integer() => given,
            (key, None) if key.is_integer() => key,
            (T::Numeric(_), Some(given)) if given.is_integer() => T::Numeric(None),
            (T::Numeric(_), None | Some(T::Numeric(_))) => T::Numeric(None),
            (T::Real | T::Double, given) if given.is_none_or(|given| given.is_numeric()) => {
                T::Double
            }
            _ => {
                let of = given.map_or_else(|| "unknown".to_owned(), |given| given.to_string());
                let what = match key.is_numeric() {
                    true => format!("column type {key} and offset type {of}"),
                    false => format!("column type {key}"),
                };
                let what = format!("RANGE with offset PRECEDING/FOLLOWING for {what}");
                return Err(SqlError::unsupported(what).at(position as usize));
            }
        };
        self.coerce(value, target)
    }
}
