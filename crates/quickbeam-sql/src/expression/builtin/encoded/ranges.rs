//! Functions and operators of ranges. Each kind of range has a table of its own.

use super::encoded;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, Implementation, mismatch, strict, text};
use crate::types::encoded::{BoundPair, RangeBound, RangeValue};
use crate::types::{DataType, EncodedKind, Value, ValueRef};
use DataType::{Boolean, Text};

const fn tolerant(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    run: crate::expression::builtin::OfValues,
) -> Builtin {
    Builtin::new(name, arguments, result, Implementation::NullTolerant(run))
}

macro_rules! table {
    ($table:ident, $kind:ident) => {
        pub(in crate::expression::builtin) static $table: &[Builtin] = {
            const R: DataType = EncodedKind::$kind.data_type();
            const E: DataType = match EncodedKind::$kind.subtype() {
                Some(subtype) => subtype,
                None => Text,
            };
            &[
                tolerant(EncodedKind::$kind.name(), &[E, E], R, |v| of(v, EncodedKind::$kind)),
                tolerant(EncodedKind::$kind.name(), &[E, E, Text], R, |v| {
                    of(v, EncodedKind::$kind)
                }),
                strict("lower", &[R], E, |v| bound(v, |low, _| low)),
                strict("upper", &[R], E, |v| bound(v, |_, high| high)),
                strict("isempty", &[R], Boolean, |v| {
                    Ok(Value::Boolean(range(v, 0)? == RangeValue::Empty))
                }),
                strict("lower_inc", &[R], Boolean, |v| {
                    has_bound(v, |low, _| low.is_some_and(|bound| bound.is_inclusive))
                }),
                strict("upper_inc", &[R], Boolean, |v| {
                    has_bound(v, |_, high| high.is_some_and(|bound| bound.is_inclusive))
                }),
                strict("lower_inf", &[R], Boolean, |v| has_bound(v, |low, _| low.is_none())),
                strict("upper_inf", &[R], Boolean, |v| has_bound(v, |_, high| high.is_none())),
                strict("range_merge", &[R, R], R, |v| {
                    result(v, range(v, 0)?.merged(&range(v, 1)?))
                }),
                strict("@>", &[R, R], Boolean, |v| test(v, |a, b| a.contains(b))),
                strict("@>", &[R, E], Boolean, |v| has(v, 0, 1)),
                strict("<@", &[R, R], Boolean, |v| test(v, |a, b| b.contains(a))),
                strict("<@", &[E, R], Boolean, |v| has(v, 1, 0)),
                strict("&&", &[R, R], Boolean, |v| {
                    test(v, |a, b| a.intersection(b) != RangeValue::Empty)
                }),
                strict("<<", &[R, R], Boolean, |v| test(v, RangeValue::is_before)),
                strict(">>", &[R, R], Boolean, |v| test(v, |a, b| b.is_before(a))),
                strict("&<", &[R, R], Boolean, |v| test(v, RangeValue::ends_within)),
                strict("&>", &[R, R], Boolean, |v| test(v, RangeValue::begins_within)),
                strict("-|-", &[R, R], Boolean, |v| test(v, RangeValue::is_adjacent)),
                strict("+", &[R, R], R, union),
                strict("*", &[R, R], R, |v| result(v, range(v, 0)?.intersection(&range(v, 1)?))),
                strict("-", &[R, R], R, difference),
            ]
        };
    };
}

table!(INT4, Int4Range);
table!(INT8, Int8Range);
table!(NUM, NumRange);
table!(DATE, DateRange);
table!(TS, TsRange);
table!(TSTZ, TsTzRange);

pub(super) fn range(arguments: &[ValueRef<'_>], at: usize) -> Result<RangeValue> {
    let (kind, bytes) = encoded(arguments, at)?;
    RangeValue::read(bytes, kind).ok_or_else(mismatch)
}

/// Returns a range of the kind of the first argument.
fn result(arguments: &[ValueRef<'_>], range: RangeValue) -> Result<Value> {
    Ok(range.value(encoded(arguments, 0)?.0))
}

/// Makes a range of two bounds, and of brackets that tell which of them belong to it.
fn of(arguments: &[ValueRef<'_>], kind: EncodedKind) -> Result<Value> {
    let brackets = match arguments.get(2) {
        None => "[)",
        Some(ValueRef::Null) => {
            let message = "range constructor flags argument must not be null";
            return Err(SqlError::new(SqlState::DataException, message));
        }
        Some(_) => text(arguments, 2)?,
    };
    let (low, high) = match brackets {
        "[)" => (true, false),
        "[]" => (true, true),
        "(]" => (false, true),
        "()" => (false, false),
        _ => {
            let message = "invalid range bound flags";
            let hint = "Valid values are \"[]\", \"[)\", \"(]\", and \"()\".";
            return Err(SqlError::new(SqlState::SyntaxError, message).with_hint(hint));
        }
    };
    let bound = |at: usize, is_inclusive| {
        let value = arguments.get(at).filter(|value| !value.is_null())?;
        Some(RangeBound { value: value.to_value(), is_inclusive })
    };
    Ok(RangeValue::of(bound(0, low), bound(1, high))?.value(kind))
}

/// Returns the value of a bound; NULL if there is none.
fn bound(
    arguments: &[ValueRef<'_>],
    of: for<'b> fn(Option<&'b RangeBound>, Option<&'b RangeBound>) -> Option<&'b RangeBound>,
) -> Result<Value> {
    let range = range(arguments, 0)?;
    let (low, high): BoundPair<'_> = range.bounds().unwrap_or_default();
    Ok(of(low, high).map_or(Value::Null, |bound| bound.value.clone()))
}

fn has_bound(
    arguments: &[ValueRef<'_>],
    of: fn(Option<&RangeBound>, Option<&RangeBound>) -> bool,
) -> Result<Value> {
    let range = range(arguments, 0)?;
    Ok(Value::Boolean(range.bounds().is_some_and(|(low, high)| of(low, high))))
}

fn has(arguments: &[ValueRef<'_>], outer: usize, inner: usize) -> Result<Value> {
    let value = arguments.get(inner).ok_or_else(mismatch)?.to_value();
    Ok(Value::Boolean(range(arguments, outer)?.has(&value)))
}

fn test(arguments: &[ValueRef<'_>], of: fn(&RangeValue, &RangeValue) -> bool) -> Result<Value> {
    Ok(Value::Boolean(of(&range(arguments, 0)?, &range(arguments, 1)?)))
}

fn union(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (a, b) = (range(arguments, 0)?, range(arguments, 1)?);
    let is_apart = (a.is_before(&b) || b.is_before(&a)) && !a.is_adjacent(&b);
    if is_apart {
        let message = "result of range union would not be contiguous";
        return Err(SqlError::new(SqlState::DataException, message));
    }
    result(arguments, a.merged(&b))
}

fn difference(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let [before, after] = range(arguments, 0)?.without(&range(arguments, 1)?);
    if before != RangeValue::Empty && after != RangeValue::Empty {
        let message = "result of range difference would not be contiguous";
        return Err(SqlError::new(SqlState::DataException, message));
    }
    result(arguments, if before == RangeValue::Empty { after } else { before })
}
