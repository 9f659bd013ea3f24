//! Functions and operators of multiranges. Each kind of multirange has a table of its own.
//!
//! An operator whose one operand is a range treats it as a multirange of that range.

use super::encoded;
use super::ranges::range;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, mismatch, strict};
use crate::types::encoded::multirange::Multirange;
use crate::types::encoded::{BoundPair, RangeBound, RangeValue};
use crate::types::{DataType, ElementType, EncodedKind, Value, ValueRef};
use DataType::{Boolean, Text};

macro_rules! table {
    ($table:ident, $kind:ident, $spread:literal) => {
        pub(in crate::expression::builtin) static $table: &[Builtin] = {
            const M: DataType = EncodedKind::$kind.data_type();
            const R: DataType = EncodedKind::$kind.range().data_type();
            const E: DataType = match EncodedKind::$kind.subtype() {
                Some(subtype) => subtype,
                None => Text,
            };
            const RANGES: DataType = match ElementType::new(R) {
                Some(element) => DataType::Array(element),
                None => Text,
            };
            &[
                strict($spread, &[RANGES], M, |v| made_of_array(v, EncodedKind::$kind)),
                strict("multirange", &[R], M, |v| made(v, EncodedKind::$kind)),
                strict(EncodedKind::$kind.name(), &[], M, |v| made(v, EncodedKind::$kind)),
                strict(EncodedKind::$kind.name(), &[R], M, |v| made(v, EncodedKind::$kind)),
                strict(EncodedKind::$kind.name(), &[R, R], M, |v| made(v, EncodedKind::$kind)),
                strict("lower", &[M], E, |v| bound(v, |(low, _)| low)),
                strict("upper", &[M], E, |v| bound(v, |(_, high)| high)),
                strict("isempty", &[M], Boolean, |v| {
                    Ok(Value::Boolean(operand(v, 0)?.ranges.is_empty()))
                }),
                strict("lower_inc", &[M], Boolean, |v| {
                    has_bound(v, |(low, _)| low.is_some_and(|bound| bound.is_inclusive))
                }),
                strict("upper_inc", &[M], Boolean, |v| {
                    has_bound(v, |(_, high)| high.is_some_and(|bound| bound.is_inclusive))
                }),
                strict("lower_inf", &[M], Boolean, |v| has_bound(v, |(low, _)| low.is_none())),
                strict("upper_inf", &[M], Boolean, |v| has_bound(v, |(_, high)| high.is_none())),
                strict("range_merge", &[M], R, |v| {
                    Ok(operand(v, 0)?.merged().value(EncodedKind::$kind.range()))
                }),
                strict("@>", &[M, M], Boolean, |v| test(v, |a, b| a.contains(b))),
                strict("@>", &[M, R], Boolean, |v| test(v, |a, b| a.contains(b))),
                strict("@>", &[R, M], Boolean, |v| test(v, |a, b| a.contains(b))),
                strict("@>", &[M, E], Boolean, |v| has(v, 0, 1)),
                strict("<@", &[M, M], Boolean, |v| test(v, |a, b| b.contains(a))),
                strict("<@", &[M, R], Boolean, |v| test(v, |a, b| b.contains(a))),
                strict("<@", &[R, M], Boolean, |v| test(v, |a, b| b.contains(a))),
                strict("<@", &[E, M], Boolean, |v| has(v, 1, 0)),
                strict("&&", &[M, M], Boolean, |v| test(v, Multirange::overlaps)),
                strict("&&", &[M, R], Boolean, |v| test(v, Multirange::overlaps)),
                strict("&&", &[R, M], Boolean, |v| test(v, Multirange::overlaps)),
                strict("<<", &[M, M], Boolean, |v| whole(v, RangeValue::is_before)),
                strict("<<", &[M, R], Boolean, |v| whole(v, RangeValue::is_before)),
                strict("<<", &[R, M], Boolean, |v| whole(v, RangeValue::is_before)),
                strict(">>", &[M, M], Boolean, |v| whole(v, |a, b| b.is_before(a))),
                strict(">>", &[M, R], Boolean, |v| whole(v, |a, b| b.is_before(a))),
                strict(">>", &[R, M], Boolean, |v| whole(v, |a, b| b.is_before(a))),
                strict("&<", &[M, M], Boolean, |v| whole(v, RangeValue::ends_within)),
                strict("&<", &[M, R], Boolean, |v| whole(v, RangeValue::ends_within)),
                strict("&<", &[R, M], Boolean, |v| whole(v, RangeValue::ends_within)),
                strict("&>", &[M, M], Boolean, |v| whole(v, RangeValue::begins_within)),
                strict("&>", &[M, R], Boolean, |v| whole(v, RangeValue::begins_within)),
                strict("&>", &[R, M], Boolean, |v| whole(v, RangeValue::begins_within)),
                strict("-|-", &[M, M], Boolean, |v| whole(v, RangeValue::is_adjacent)),
                strict("-|-", &[M, R], Boolean, |v| whole(v, RangeValue::is_adjacent)),
                strict("-|-", &[R, M], Boolean, |v| whole(v, RangeValue::is_adjacent)),
                strict("+", &[M, M], M, |v| {
                    let (mut all, more) = (operand(v, 0)?, operand(v, 1)?);
                    all.ranges.extend(more.ranges);
                    Ok(Multirange::of(all.ranges).value(EncodedKind::$kind))
                }),
                strict("*", &[M, M], M, |v| {
                    Ok(operand(v, 0)?.intersection(&operand(v, 1)?).value(EncodedKind::$kind))
                }),
                strict("-", &[M, M], M, |v| {
                    Ok(operand(v, 0)?.without(&operand(v, 1)?).value(EncodedKind::$kind))
                }),
            ]
        };
    };
}

table!(INT4, Int4Multirange, "variadic int4multirange");
table!(INT8, Int8Multirange, "variadic int8multirange");
table!(NUM, NumMultirange, "variadic nummultirange");
table!(DATE, DateMultirange, "variadic datemultirange");
table!(TS, TsMultirange, "variadic tsmultirange");
table!(TSTZ, TsTzMultirange, "variadic tstzmultirange");

/// Returns a multirange, or that of a range.
fn operand(arguments: &[ValueRef<'_>], at: usize) -> Result<Multirange> {
    let (kind, bytes) = encoded(arguments, at)?;
    if !kind.is_multirange() {
        return Ok(Multirange::of(vec![range(arguments, at)?]));
    }
    Multirange::read(bytes, kind).ok_or_else(mismatch)
}

/// Returns the ranges of a multirange.
pub(in crate::expression::builtin) fn ranges_of(
    arguments: &[ValueRef<'_>],
    at: usize,
) -> Result<Vec<Value>> {
    let (kind, _) = encoded(arguments, at)?;
    let ranges = operand(arguments, at)?.ranges;
    Ok(ranges.into_iter().map(|range| range.value(kind.range())).collect())
}

fn made(arguments: &[ValueRef<'_>], kind: EncodedKind) -> Result<Value> {
    let ranges: Result<Vec<RangeValue>> =
        (0..arguments.len()).map(|at| range(arguments, at)).collect();
    Ok(Multirange::of(ranges?).value(kind))
}

/// Returns the multirange of the ranges in an array.
fn made_of_array(arguments: &[ValueRef<'_>], kind: EncodedKind) -> Result<Value> {
    let [ValueRef::Array(array)] = arguments else { return Err(mismatch()) };
    if array.dimensions().len() > 1 {
        let message = "multiranges cannot be constructed from multidimensional arrays";
        return Err(SqlError::new(SqlState::CardinalityViolation, message));
    }
    let members: Vec<ValueRef<'_>> = array.iter().collect();
    if members.iter().any(|member| member.is_null()) {
        let message = "multirange values cannot contain null members";
        return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
    }
    made(&members, kind)
}

fn bound(
    arguments: &[ValueRef<'_>],
    of: for<'b> fn(BoundPair<'b>) -> Option<&'b RangeBound>,
) -> Result<Value> {
    let range = operand(arguments, 0)?.merged();
    let found = of(range.bounds().unwrap_or_default());
    Ok(found.map_or(Value::Null, |bound| bound.value.clone()))
}

fn has_bound(arguments: &[ValueRef<'_>], of: fn(BoundPair<'_>) -> bool) -> Result<Value> {
    let range = operand(arguments, 0)?.merged();
    Ok(Value::Boolean(range.bounds().is_some_and(of)))
}

fn has(arguments: &[ValueRef<'_>], outer: usize, inner: usize) -> Result<Value> {
    let value = arguments.get(inner).ok_or_else(mismatch)?.to_value();
    let found = operand(arguments, outer)?.ranges.iter().any(|range| range.has(&value));
    Ok(Value::Boolean(found))
}

fn test(arguments: &[ValueRef<'_>], of: fn(&Multirange, &Multirange) -> bool) -> Result<Value> {
    Ok(Value::Boolean(of(&operand(arguments, 0)?, &operand(arguments, 1)?)))
}

/// Compares the smallest ranges that have all values of the operands.
fn whole(arguments: &[ValueRef<'_>], of: fn(&RangeValue, &RangeValue) -> bool) -> Result<Value> {
    let (a, b) = (operand(arguments, 0)?.merged(), operand(arguments, 1)?.merged());
    Ok(Value::Boolean(of(&a, &b)))
}
