//! Keys and ranges of keys of which the values are expressions.

use crate::error::Result;
use crate::execute::row::Context;
use crate::expression::{Expr, Frame};
use crate::plan::KeyRangeExpr;
use crate::table::{KeyBound, KeyRange, KeySpec};
use crate::types::{DataType, Value, ValueRef};

/// A side of a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeSide {
    /// Where it begins.
    Lower,
    /// Where it ends.
    Upper,
}

/// A value compared with a column, as one of the column's type.
enum Fit<'v> {
    Value(ValueRef<'v>),
    /// Less than every value of the type.
    Below,
    /// Greater than every value of the type.
    Above,
    Null,
}

#[inline]
fn fit(value: ValueRef<'_>, data_type: DataType) -> Fit<'_> {
    let wanted = match (value, data_type) {
        (ValueRef::Null, _) => return Fit::Null,
        (ValueRef::Integer(_), DataType::Integer) | (ValueRef::BigInt(_), DataType::BigInt) => {
            return Fit::Value(value);
        }
        (found, wanted) => match (found.as_i64(), wanted) {
            (Some(number), DataType::SmallInt) => {
                i16::try_from(number).map(ValueRef::SmallInt).map_err(|_| number)
            }
            (Some(number), DataType::Integer) => {
                i32::try_from(number).map(ValueRef::Integer).map_err(|_| number)
            }
            (Some(number), DataType::BigInt) => Ok(ValueRef::BigInt(number)),
            _ => return Fit::Value(value),
        },
    };
    match wanted {
        Ok(value) => Fit::Value(value),
        Err(number) if number < 0 => Fit::Below,
        Err(_) => Fit::Above,
    }
}

/// A bound on a column, in the column's type.
enum ColumnBound {
    Open,
    Bound(Value, bool),
    Empty,
}

/// Appends a whole key; false when no row can have it.
pub(super) fn encode_point(
    spec: &KeySpec,
    values: &[Expr],
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    for (part, value) in spec.parts.iter().zip(values) {
        let computed;
        let value = match value.given(context.parameters) {
            Some(given) if part.encode_integer(out, given) => continue,
            Some(given) => given.as_ref(),
            None => {
                computed = value.evaluate(&context.frame())?;
                computed.as_ref()
            }
        };
        match fit(value, part.data_type) {
            Fit::Value(value) => part.encode(out, value)?,
            Fit::Below | Fit::Above | Fit::Null => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns the key range of constant bounds. Returns `None` if a bound is not constant, or the
/// range is empty.
pub fn constant_range(spec: &KeySpec, range: &KeyRangeExpr) -> Option<KeyRange> {
    let bounds = range.lower.iter().chain(&range.upper).map(|(value, _)| value);
    if !range.equal.iter().chain(bounds).all(|value| value.as_constant().is_some()) {
        return None;
    }
    let frame = Frame { slots: &[], parameters: &[], clock: None, host: None };
    let mut out = KeyRange::default();
    encode_range(spec, range, &frame, &mut out).ok()?.then_some(out)
}

fn side_of(
    bound: Option<&(Expr, bool)>,
    side: RangeSide,
    data_type: DataType,
    frame: &Frame<'_>,
) -> Result<ColumnBound> {
    let is_lower = side == RangeSide::Lower;
    let Some((value, inclusive)) = bound else { return Ok(ColumnBound::Open) };
    Ok(match fit(value.evaluate(frame)?.as_ref(), data_type) {
        Fit::Value(value) => ColumnBound::Bound(value.to_value(), *inclusive),
        Fit::Null => ColumnBound::Empty,
        // Outside the column's type, all values are on one side of the bound.
        Fit::Below if is_lower => ColumnBound::Open,
        Fit::Above if !is_lower => ColumnBound::Open,
        Fit::Below | Fit::Above => ColumnBound::Empty,
    })
}

/// Makes `out` the range of keys; false when it is empty.
pub(super) fn encode_range(
    spec: &KeySpec,
    range: &KeyRangeExpr,
    frame: &Frame<'_>,
    out: &mut KeyRange,
) -> Result<bool> {
    let mut equal = Vec::with_capacity(range.equal.len());
    for (part, value) in spec.parts.iter().zip(&range.equal) {
        match fit(value.evaluate(frame)?.as_ref(), part.data_type) {
            Fit::Value(value) => equal.push(value.to_value()),
            Fit::Below | Fit::Above | Fit::Null => return Ok(false),
        }
    }
    let data_type = spec.parts.get(range.equal.len()).map_or(DataType::Text, |part| part.data_type);
    let lower = side_of(range.lower.as_ref(), RangeSide::Lower, data_type, frame)?;
    let upper = side_of(range.upper.as_ref(), RangeSide::Upper, data_type, frame)?;
    if matches!(lower, ColumnBound::Empty) || matches!(upper, ColumnBound::Empty) {
        return Ok(false);
    }
    fn bound(side: &ColumnBound) -> Option<KeyBound<'_>> {
        match side {
            ColumnBound::Bound(value, inclusive) => {
                Some(KeyBound { value: value.as_ref(), inclusive: *inclusive })
            }
            ColumnBound::Open | ColumnBound::Empty => None,
        }
    }
    let equal: Vec<ValueRef<'_>> = equal.iter().map(Value::as_ref).collect();
    spec.range(out, &equal, bound(&lower), bound(&upper))?;
    Ok(true)
}
