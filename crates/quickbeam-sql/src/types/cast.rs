//! Casts from one type to another.
//!
//! [`cast_context`] is PostgreSQL's table of casts: which casts exist and whether they are
//! implicit. The conversions are here too. Numbers that do not fit are rounded or refused. An
//! explicit cast truncates a text that is too long; an assignment refuses it.

use std::cmp::Ordering;

use smol_str::SmolStr;

use super::datetime::{DATE_INFINITY, DAY, TIMESTAMP_INFINITY, current_moment, is_timestamp};
use super::encoded::bits::BitString;
use super::encoded::{self, Address, ZonedTime, in_zone};
use super::fit::text_to_text;
use super::json::{Json, JsonKind};
use super::text::{format_value, parse_value, without_blanks};
use super::{
    ArrayRef, DataType, Decimal, ElementType, EncodedKind, Interval, SystemType, TextSettings,
    Value, ValueRef,
};
use crate::error::{Result, SqlError, SqlState};

/// The weakest context in which a cast applies without being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere in an expression.
    Implicit,
    /// When a value is assigned to a column.
    Assignment,
    /// Only where the statement writes the cast.
    Explicit,
}

/// Returns the context of the cast from `from` to `to`, or `None` if there is no such cast.
///
/// A quoted literal is not a TEXT value. [`parse_value`] reads it as the wanted type, and a cast
/// from that type to itself applies the length.
#[must_use]
pub fn cast_context(from: DataType, to: DataType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use DataType as T;
    if from.is_same_kind(to) {
        return Some(Implicit);
    }
    let plain = |known: DataType| match known {
        T::Encoded(_) | T::Precise(_) | T::WideNumeric(_) => known.unconstrained(),
        known => known,
    };
    let (from, to) = (plain(from), plain(to));
    let size = |data_type| match data_type {
        T::SmallInt => 0,
        T::Integer => 1,
        T::BigInt => 2,
        T::Numeric(_) => 3,
        T::Real => 4,
        _ => 5,
    };
    Some(match (from, to) {
        (a, b) if a.is_numeric() && b.is_numeric() => {
            if size(a) < size(b) {
                Implicit
            } else {
                Assignment
            }
        }
        (a, b) if a.is_text() && b.is_text() => Implicit,
        // Besides texts only the number of the byte.
        (T::System(SystemType::SingleChar), other) | (other, T::System(SystemType::SingleChar)) => {
            return (other == T::Integer).then_some(Explicit);
        }
        (a, b) if a.is_object_number() || b.is_object_number() => return object_cast(a, b),
        (T::System(a), T::System(b)) if a.vector_element().is_some() => {
            return (a == b).then_some(Implicit);
        }
        (T::System(a), T::Array(b)) => {
            let element = a.vector_element()?;
            return cast_context(element, b.data_type());
        }
        (a @ T::Array(_), T::System(b)) if b.vector_array() == Some(a) => Explicit,
        // A value that was read from a row does not know its enumerated type.
        (T::Encoded(a), T::Encoded(b)) if a.kind() == EncodedKind::Enum && a.kind() == b.kind() => {
            return (a.length() == 0 || b.length() == 0).then_some(Implicit);
        }
        // Rows of a type with a name are made of rows of any fields, by the places of the fields.
        (T::Encoded(a), T::Encoded(b))
            if a.kind() == EncodedKind::Record && a.kind() == b.kind() =>
        {
            return (a.row_type_name().is_none() || b.row_type_name().is_none())
                .then_some(Implicit);
        }
        (T::Encoded(a), T::Encoded(b)) => return encoded_cast(a.kind(), b.kind()),
        (T::Json, T::Jsonb) | (T::Jsonb, T::Json) => Assignment,
        (T::Jsonb, T::Boolean) => Explicit,
        (T::Jsonb, b) if b.is_numeric() => Explicit,
        (T::Array(a), T::Array(b)) => return cast_context(a.data_type(), b.data_type()),
        (_, b) if b.is_text() => Assignment,
        (a, _) if a.is_text() => Explicit,
        (T::Boolean, T::Integer) | (T::Integer, T::Boolean) => Explicit,
        (T::Date, T::Timestamp | T::TimestampTz) | (T::Timestamp, T::TimestampTz) => Implicit,
        (T::Timestamp | T::TimestampTz, T::Date | T::Time) | (T::TimestampTz, T::Timestamp) => {
            Assignment
        }
        (T::Time, T::Interval | TIMETZ) => Implicit,
        (TIMETZ, T::Time) | (T::TimestampTz, TIMETZ) => Assignment,
        (T::Integer | T::BigInt, BIT) | (BIT, T::Integer | T::BigInt) => Explicit,
        (T::Interval, T::Time) => Assignment,
        (T::Bytea, T::Uuid) | (T::Uuid, T::Bytea) => Explicit,
        (T::SmallInt | T::Integer | T::BigInt, T::Bytea) => Explicit,
        _ => return None,
    })
}

const TIMETZ: DataType = EncodedKind::TimeTz.data_type();
const BIT: DataType = EncodedKind::Bit.data_type();

/// Returns the context of a cast between types whose values are bytes.
fn encoded_cast(from: EncodedKind, to: EncodedKind) -> Option<CastContext> {
    use EncodedKind as K;
    Some(match (from, to) {
        (K::Cidr, K::Inet)
        | (K::Macaddr, K::Macaddr8)
        | (K::Macaddr8, K::Macaddr)
        | (K::Bit, K::Varbit)
        | (K::Varbit, K::Bit) => CastContext::Implicit,
        (K::Inet, K::Cidr) => CastContext::Assignment,
        (range, multirange) if range.is_range() && range.multirange() == multirange => {
            CastContext::Explicit
        }
        _ => return None,
    })
}

/// Returns the context of a cast from or to an object identifier.
fn object_cast(from: DataType, to: DataType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    const XID: DataType = DataType::System(SystemType::Xid);
    Some(match (from, to) {
        (XID, to) => return to.is_text().then_some(Assignment),
        (DataType::Encoded(from), XID) if from.kind() == EncodedKind::Xid8 => Explicit,
        (from, XID) => return from.is_text().then_some(Explicit),
        (from, DataType::OID) if from.is_integer() || from.reference().is_some() => Implicit,
        (DataType::OID, to) if to.reference().is_some() => Implicit,
        (from, to) if from.is_integer() && to.reference().is_some() => Implicit,
        (_, DataType::BigInt | DataType::Integer) => Assignment,
        (from, to) if from.is_text() => {
            let is_relation = to == DataType::System(SystemType::Regclass);
            if is_relation { Implicit } else { Explicit }
        }
        (_, to) if to.is_text() => Assignment,
        _ => return None,
    })
}

/// Returns whether the cast between two types depends on the settings of the session.
#[must_use]
pub fn cast_reads_settings(from: DataType, to: DataType) -> bool {
    let (from, to) = (element_of(from), element_of(to));
    if to.is_text() {
        return has_text_by_settings(from);
    }
    if from.is_text() {
        // Numbers and bytes are read in one way.
        return has_text_by_settings(to)
            && !matches!(to, DataType::Real | DataType::Double | DataType::Bytea)
            || to == TIMETZ;
    }
    matches!(
        (from, to),
        (DataType::Date | DataType::Timestamp, DataType::TimestampTz)
            | (
                DataType::TimestampTz,
                DataType::Date | DataType::Timestamp | DataType::Time | TIMETZ
            )
            | (DataType::Time, TIMETZ)
    )
}

/// Returns the innermost type whose values have a text of their own: elements of arrays, bounds of
/// ranges, times without their precision.
pub(super) fn element_of(data_type: DataType) -> DataType {
    match data_type {
        DataType::Array(element) => element_of(element.data_type()),
        DataType::Precise(precise) => precise.plain(),
        DataType::Encoded(encoded) => match encoded.kind().subtype() {
            Some(subtype) => subtype,
            None => encoded.kind().data_type(),
        },
        DataType::System(SystemType::Name) => DataType::Text,
        other => other,
    }
}

fn has_text_by_settings(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Date
            | DataType::Timestamp
            | DataType::TimestampTz
            | DataType::Interval
            | DataType::Real
            | DataType::Double
            | DataType::Bytea
    )
}

#[cold]
fn out_of_range(to: DataType) -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, format!("{} out of range", to.unconstrained()))
}

#[cold]
fn no_cast(value: ValueRef<'_>, to: DataType) -> SqlError {
    let from = value.data_type().map_or_else(|| "unknown".to_owned(), |from| from.to_string());
    SqlError::new(SqlState::CannotCoerce, format!("cannot cast type {from} to {to}"))
}

/// Casts the value to type `to` explicitly; a text that is too long is truncated.
pub fn cast(value: ValueRef<'_>, to: DataType, settings: &TextSettings) -> Result<Value> {
    let from = value.data_type().unwrap_or(to);
    convert(value.to_value(), from, to, CastContext::Explicit, settings)
}

/// Casts the value for assignment to a column of type `to`; a text that is too long is an error.
pub fn assign(value: ValueRef<'_>, to: DataType, settings: &TextSettings) -> Result<Value> {
    let from = value.data_type().unwrap_or(to);
    convert(value.to_value(), from, to, CastContext::Assignment, settings)
}

/// Converts the value to type `to`. `from` is its declared type, which only matters for CHAR. An
/// `explicit` cast truncates a text that is too long.
pub fn convert(
    value: Value,
    from: DataType,
    to: DataType,
    context: CastContext,
    settings: &TextSettings,
) -> Result<Value> {
    let explicit = context == CastContext::Explicit;
    Ok(match (&value, to) {
        (Value::Null, _)
        | (Value::Boolean(_), DataType::Boolean)
        | (Value::SmallInt(_), DataType::SmallInt)
        | (Value::Integer(_), DataType::Integer)
        | (Value::BigInt(_), DataType::BigInt)
        | (Value::Real(_), DataType::Real)
        | (Value::Double(_), DataType::Double)
        | (Value::Numeric(_) | Value::LongNumeric(_), DataType::Numeric(None))
        | (Value::Bytea(_), DataType::Bytea)
        | (Value::Date(_), DataType::Date)
        | (Value::Time(_), DataType::Time)
        | (Value::Timestamp(_), DataType::Timestamp)
        | (Value::TimestampTz(_), DataType::TimestampTz)
        | (Value::Uuid(_), DataType::Uuid)
        | (Value::Interval(_), DataType::Interval)
        | (Value::Json(_), DataType::Json)
        | (Value::Jsonb(_), DataType::Jsonb) => value,
        (Value::Encoded(_, bytes), DataType::Encoded(row)) if to.record().is_some() => {
            return encoded::record::convert(bytes, row, |value, to| {
                let from = value.data_type().unwrap_or(to);
                convert(value.to_value(), from, to, context, settings)
            });
        }
        (Value::Encoded(from, bytes), DataType::Encoded(to)) => {
            let converted = encoded::convert(*from, bytes, to, explicit);
            return converted
                .unwrap_or_else(|| Err(no_cast(value.as_ref(), DataType::Encoded(to))));
        }
        (Value::Oid(_), to) if to.is_object_number() => value,
        (Value::Array(_), DataType::System(known)) if known.vector_element().is_some() => value,
        (Value::Json(text), DataType::Jsonb) => parse_value(text, to, settings)?,
        (Value::Jsonb(text), DataType::Json) => Value::Json(text.clone()),
        (Value::Jsonb(text), to) if to.is_numeric() || to == DataType::Boolean => {
            return from_jsonb(text, to);
        }
        (Value::Numeric(number), DataType::Numeric(Some((precision, scale)))) => {
            Value::Numeric(number.fit(precision, scale)?)
        }
        (Value::Array(array), DataType::Array(to)) => {
            let array = array.as_ref();
            if array.element_type() == to {
                return Ok(value);
            }
            return convert_array(array, from, to, context, settings);
        }
        (Value::Text(_), to) if to.is_text() => return text_to_text(value, from, to, context),
        (Value::Text(text), to) => {
            let text = if matches!(from, DataType::Char(_)) { without_blanks(text) } else { text };
            return convert(parse_value(text, to, settings)?, to, to, context, settings);
        }
        (_, DataType::Precise(precise)) => {
            return precise.adjust(convert(value, from, precise.plain(), context, settings)?);
        }
        (value, to) if to.is_text() => {
            let text = match value {
                // A cast writes the whole word, unlike output.
                Value::Boolean(v) => SmolStr::new_static(if *v { "true" } else { "false" }),
                value => {
                    let mut text = String::new();
                    match value {
                        // Nor does it leave out the size of a network of one address.
                        Value::Encoded(kind, bytes) if kind.kind() == EncodedKind::Inet => {
                            if let Some(address) = Address::read(bytes) {
                                let is_with_bits = true;
                                address.format(&mut text, is_with_bits);
                            }
                        }
                        value => format_value(&mut text, value.as_ref(), settings),
                    }
                    SmolStr::from(text)
                }
            };
            return text_to_text(Value::Text(text), DataType::Text, to, context);
        }
        (Value::Encoded(from, bytes), DataType::Integer | DataType::BigInt)
            if from.kind() == EncodedKind::Bit =>
        {
            let width = if to == DataType::Integer { 32 } else { 64 };
            let number = BitString::read(bytes).and_then(|bits| bits.to_number(width));
            return convert(
                Value::BigInt(number.ok_or_else(|| out_of_range(to))?),
                DataType::BigInt,
                to,
                context,
                settings,
            );
        }
        (value, to) if to.is_numeric() => number(value.as_ref(), to)?,
        (value, to) if to.is_object_number() => object_number(value.as_ref(), to)?,
        (value, to) => other(value.as_ref(), to, settings)?,
    })
}

/// Converts a JSON number or truth value.
fn from_jsonb(text: &str, to: DataType) -> Result<Value> {
    let value = Json::read(text)?;
    match (&value.kind, to) {
        (JsonKind::Boolean(truth), DataType::Boolean) => Ok(Value::Boolean(*truth)),
        (JsonKind::Number, to) if to.is_numeric() => {
            let number = value.number()?.map_or(Value::Null, Value::from);
            let numeric = DataType::Numeric(None);
            convert(number, numeric, to, CastContext::Explicit, &TextSettings::DEFAULT)
        }
        (kind, to) => {
            let message =
                format!("cannot cast jsonb {} to type {}", kind.name(), to.unconstrained());
            Err(SqlError::new(SqlState::InvalidParameterValue, message))
        }
    }
}

/// Converts the elements of an array.
fn convert_array(
    array: ArrayRef<'_>,
    from: DataType,
    to: ElementType,
    context: CastContext,
    settings: &TextSettings,
) -> Result<Value> {
    let from = from.element().unwrap_or(array.element_type()).data_type();
    let element = |element: ValueRef<'_>| {
        convert(element.to_value(), from, to.data_type(), context, settings)
    };
    array.map(to, element).map(Value::Array)
}

/// Converts an integer to the number of an object. Negative numbers of four bytes count from the
/// end.
fn object_number(value: ValueRef<'_>, to: DataType) -> Result<Value> {
    // The number of a transaction is that of 32 bits after its epoch.
    if let ValueRef::Encoded(_, bytes) = value
        && let Some(number) = encoded::tuple_id::number(bytes)
    {
        return Ok(Value::Oid(number as u32));
    }
    let wide = value.as_i64().ok_or_else(|| no_cast(value, to))?;
    let is_narrow = matches!(value, ValueRef::SmallInt(_) | ValueRef::Integer(_));
    let number = if is_narrow { Ok(wide as i32 as u32) } else { u32::try_from(wide) };
    let fault = || SqlError::new(SqlState::NumericValueOutOfRange, "OID out of range");
    number.map(Value::Oid).map_err(|_| fault())
}

/// Returns the nearest integer, ties to even, or an error if it is out of range.
fn integer_of(value: f64, to: DataType) -> Result<i64> {
    let rounded = value.round_ties_even();
    // 2^63 is the first value out of range; NaN is in no range.
    let limit = 9_223_372_036_854_775_808.0;
    if (-limit..limit).contains(&rounded) { Ok(rounded as i64) } else { Err(out_of_range(to)) }
}

/// Reports an exact number that a floating-point type does not hold, as its text.
#[cold]
fn unreadable(value: ValueRef<'_>, to: DataType) -> SqlError {
    let message = format!("\"{value}\" is out of range for type {to}");
    SqlError::new(SqlState::NumericValueOutOfRange, message)
}

fn number(value: ValueRef<'_>, to: DataType) -> Result<Value> {
    match to {
        DataType::Real | DataType::Double => {
            let wide = value.as_f64().ok_or_else(|| no_cast(value, to))?;
            if let ValueRef::LongNumeric(exact) = value
                && (wide.is_infinite() || wide == 0.0 && !exact.decimal().is_zero())
            {
                return Err(unreadable(value, to));
            }
            if to == DataType::Double {
                return Ok(Value::Double(wide));
            }
            // An exact number is rounded once, not through a double.
            let narrow = match value {
                ValueRef::Numeric(exact) => exact.to_f32(),
                ValueRef::BigInt(exact) => exact as f32,
                _ => wide as f32,
            };
            let lost = narrow.is_infinite() && !wide.is_infinite() || narrow == 0.0 && wide != 0.0;
            match value {
                _ if !lost => Ok(Value::Real(narrow)),
                ValueRef::Numeric(_) | ValueRef::LongNumeric(_) => Err(unreadable(value, to)),
                _ => Err(out_of_range(to)),
            }
        }
        DataType::Numeric(_) | DataType::WideNumeric(_) => {
            let exact = match value {
                ValueRef::Real(v) => Decimal::from_f32(v)?,
                ValueRef::Double(v) => Decimal::from_f64(v)?,
                value => value.as_decimal().ok_or_else(|| no_cast(value, to))?,
            };
            Ok(match (to, exact) {
                (DataType::Numeric(Some((precision, scale))), Decimal::Short(exact)) => {
                    Value::Numeric(exact.fit(precision, scale)?)
                }
                (DataType::Numeric(Some((precision, scale))), exact) => {
                    exact.fit(precision.into(), scale.into())?.into()
                }
                (DataType::WideNumeric(limits), exact) => {
                    exact.fit(limits.precision(), limits.scale())?.into()
                }
                (_, exact) => exact.into(),
            })
        }
        _ => {
            let wide = match value {
                ValueRef::Boolean(v) if to == DataType::Integer => v.into(),
                ValueRef::Real(v) => integer_of(v.into(), to)?,
                ValueRef::Double(v) => integer_of(v, to)?,
                ValueRef::Numeric(v) if !v.is_finite() => {
                    let what = if v.is_nan() { "NaN" } else { "infinity" };
                    let message = format!("cannot convert {what} to {to}");
                    return Err(SqlError::new(SqlState::FeatureNotSupported, message));
                }
                ValueRef::Numeric(v) => v.to_i64().ok_or_else(|| out_of_range(to))?,
                ValueRef::LongNumeric(v) => v.decimal().to_i64().ok_or_else(|| out_of_range(to))?,
                value => value.as_i64().ok_or_else(|| no_cast(value, to))?,
            };
            let narrow = match to {
                DataType::SmallInt => i16::try_from(wide).map(Value::SmallInt),
                DataType::Integer => i32::try_from(wide).map(Value::Integer),
                _ => Ok(Value::BigInt(wide)),
            };
            narrow.map_err(|_| out_of_range(to))
        }
    }
}

/// Casts from and to the types of times with a zone. Returns `None` for any other cast.
fn zoned(value: ValueRef<'_>, to: DataType, settings: &TextSettings) -> Option<Result<Value>> {
    let zone = settings.zone;
    let in_range =
        |moment: &i64| is_timestamp(*moment) || matches!(*moment, TIMESTAMP_INFINITY | i64::MIN);
    let overflow = || SqlError::new(SqlState::DatetimeFieldOverflow, format!("{to} out of range"));
    Some(match (value, to) {
        (ValueRef::Date(_), DataType::TimestampTz) => {
            let midnight = other(value, DataType::Timestamp, settings);
            return Some(midnight.map_err(|_| overflow()).and_then(|midnight| {
                zoned(midnight.as_ref(), to, settings).unwrap_or(Ok(midnight))
            }));
        }
        (ValueRef::Timestamp(local), DataType::TimestampTz) => {
            zone.to_moment(local).filter(in_range).map(Value::TimestampTz).ok_or_else(overflow)
        }
        (ValueRef::TimestampTz(moment), DataType::Timestamp) => {
            zone.to_local(moment).filter(in_range).map(Value::Timestamp).ok_or_else(overflow)
        }
        (ValueRef::TimestampTz(moment), DataType::Date | DataType::Time) => {
            let local = zone.to_local(moment).filter(in_range).ok_or_else(overflow);
            return Some(local.and_then(|it| other(ValueRef::Timestamp(it), to, settings)));
        }
        (ValueRef::TimestampTz(moment), TIMETZ) => Ok(match moment {
            TIMESTAMP_INFINITY | i64::MIN => Value::Null,
            moment => in_zone(moment, zone.offset_at(moment)).value(),
        }),
        (ValueRef::Time(micros), TIMETZ) => {
            let today = zone.to_local(current_moment()).unwrap_or_default();
            let east = zone.offset_of_local(today - today.rem_euclid(DAY) + micros);
            Ok(ZonedTime { micros, east }.value())
        }
        _ => return None,
    })
}

fn other(value: ValueRef<'_>, to: DataType, settings: &TextSettings) -> Result<Value> {
    if let Some(moment) = zoned(value, to, settings) {
        return moment;
    }
    let is_finite = |moment| moment != TIMESTAMP_INFINITY && moment != i64::MIN;
    let overflow = || SqlError::new(SqlState::DatetimeFieldOverflow, format!("{to} out of range"));
    Ok(match (value, to) {
        (ValueRef::Integer(v), DataType::Boolean) => Value::Boolean(v != 0),
        (ValueRef::Date(days), DataType::Timestamp) => Value::Timestamp(match days {
            DATE_INFINITY => TIMESTAMP_INFINITY,
            i32::MIN => i64::MIN,
            days => {
                let moment = i64::from(days).checked_mul(DAY);
                moment.filter(|moment| is_timestamp(*moment)).ok_or_else(overflow)?
            }
        }),
        (ValueRef::Timestamp(moment), DataType::Date) => Value::Date(match moment {
            TIMESTAMP_INFINITY => DATE_INFINITY,
            i64::MIN => i32::MIN,
            moment => i32::try_from(moment.div_euclid(DAY)).map_err(|_| overflow())?,
        }),
        (ValueRef::Timestamp(moment), DataType::Time) => {
            if is_finite(moment) {
                Value::Time(moment.rem_euclid(DAY))
            } else {
                Value::Null
            }
        }
        (ValueRef::Encoded(_, bytes), DataType::Time) => match ZonedTime::read(bytes) {
            Some(time) => Value::Time(time.micros),
            None => return Err(no_cast(value, to)),
        },
        (ValueRef::Integer(_) | ValueRef::BigInt(_), DataType::Encoded(bits)) => {
            let length = bits.length().max(1) as usize;
            let number = value.as_i64().unwrap_or_default();
            BitString::of_number(number, length).value(EncodedKind::Bit)
        }
        (ValueRef::Time(micros), DataType::Interval) => {
            Value::Interval(Interval { micros, ..Interval::default() })
        }
        (ValueRef::Interval(v), DataType::Time) => Value::Time(v.micros.rem_euclid(DAY)),
        (ValueRef::Uuid(v), DataType::Bytea) => Value::bytea(v),
        (ValueRef::Bytea(v), DataType::Uuid) => match v.try_into() {
            Ok(bytes) => Value::Uuid(bytes),
            Err(_) => {
                let state = SqlState::InvalidTextRepresentation;
                return Err(SqlError::new(state, "invalid input length for type uuid"));
            }
        },
        (ValueRef::SmallInt(v), DataType::Bytea) => Value::bytea(v.to_be_bytes()),
        (ValueRef::Integer(v), DataType::Bytea) => Value::bytea(v.to_be_bytes()),
        (ValueRef::BigInt(v), DataType::Bytea) => Value::bytea(v.to_be_bytes()),
        _ => return Err(no_cast(value, to)),
    })
}

/// Compares as values of that type: trailing blanks of a CHAR are not significant. Returns `None`
/// if either is NULL.
#[must_use]
pub fn compare_as(data_type: DataType, a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    match (data_type, a, b) {
        (DataType::Char(_), ValueRef::Text(a), ValueRef::Text(b)) => {
            Some(without_blanks(a).cmp(without_blanks(b)))
        }
        _ => a.compare(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Numeric;
    use DataType as T;

    const PLAIN: &TextSettings = &TextSettings::DEFAULT;

    fn run(
        value: Value,
        to: DataType,
        context: CastContext,
    ) -> std::result::Result<String, &'static str> {
        let from = value.data_type().unwrap();
        convert(value, from, to, context, PLAIN)
            .map(|v| v.to_string())
            .map_err(|error| error.code())
    }

    #[test]
    fn numbers_are_rounded_or_refused() {
        let numeric = |text: &str| Value::Numeric(Numeric::parse(text).unwrap());
        let cases = [
            (Value::Integer(70_000), T::SmallInt, Err("22003")),
            (Value::BigInt(1 << 31), T::Integer, Err("22003")),
            (Value::Double(2.5), T::Integer, Ok("2")),
            (Value::Double(3.5), T::Integer, Ok("4")),
            (Value::Double(f64::NAN), T::Integer, Err("22003")),
            (Value::Double(9.3e18), T::BigInt, Err("22003")),
            (Value::Double(1e39), T::Real, Err("22003")),
            (Value::Double(1e-60), T::Real, Err("22003")),
            (Value::Double(0.1), T::Numeric(None), Ok("0.1")),
            (Value::Double(1e20), T::Numeric(None), Ok("100000000000000000000")),
            (Value::Double(f64::INFINITY), T::Numeric(None), Ok("Infinity")),
            (Value::Double(f64::NAN), T::Numeric(Some((5, 1))), Err("0A000")),
            (Value::Numeric(Numeric::INFINITY), T::Integer, Err("0A000")),
            (numeric("2.5"), T::Integer, Ok("3")),
            (numeric("-2.5"), T::Integer, Ok("-3")),
            (numeric("123.456"), T::Numeric(Some((5, 1))), Ok("123.5")),
            (numeric("99.95"), T::Numeric(Some((3, 1))), Err("22003")),
            (numeric("1"), T::Numeric(Some((38, 38))), Err("22003")),
            (Value::Boolean(true), T::Integer, Ok("1")),
            (Value::Boolean(true), T::BigInt, Err("42846")),
            (Value::Boolean(true), T::Text, Ok("true")),
            (Value::text("12"), T::Integer, Ok("12")),
            (Value::text("x"), T::Integer, Err("22P02")),
            (Value::text("1.25"), T::Numeric(Some((3, 1))), Ok("1.3")),
            (Value::Date(1), T::Timestamp, Ok("1970-01-02 00:00:00")),
            (Value::Timestamp(-1), T::Date, Ok("1969-12-31")),
            (Value::Timestamp(-1), T::Time, Ok("23:59:59.999999")),
            (Value::Date(1), T::Integer, Err("42846")),
        ];
        for (value, to, expected) in cases {
            let shown = value.to_string();
            assert_eq!(
                run(value, to, CastContext::Explicit),
                expected.map(str::to_owned),
                "{shown} as {to}"
            );
        }
    }

    #[test]
    fn texts_are_cut_off_only_on_request() {
        let text = || Value::text("åäö  x");
        assert_eq!(run(text(), T::Varchar(Some(3)), CastContext::Assignment), Err("22001"));
        assert_eq!(run(text(), T::Varchar(Some(3)), CastContext::Explicit).unwrap(), "åäö");
        assert_eq!(
            run(Value::text("åäö  "), T::Varchar(Some(4)), CastContext::Assignment).unwrap(),
            "åäö "
        );
        assert_eq!(run(Value::text("ab"), T::Char(4), CastContext::Assignment).unwrap(), "ab  ");
        let char_value =
            convert(Value::text("ab"), T::Text, T::Char(4), CastContext::Assignment, PLAIN)
                .unwrap();
        let back = convert(char_value.clone(), T::Char(4), T::Text, CastContext::Assignment, PLAIN)
            .unwrap();
        assert_eq!(back, Value::text("ab"));
        let same = compare_as(T::Char(4), char_value.as_ref(), back.as_ref());
        assert_eq!(same, Some(Ordering::Equal));
        assert_eq!(
            compare_as(T::Text, char_value.as_ref(), back.as_ref()),
            Some(Ordering::Greater)
        );
    }

    #[test]
    fn casts_happen_where_postgresql_lets_them() {
        assert_eq!(cast_context(T::Integer, T::BigInt), Some(CastContext::Implicit));
        assert_eq!(cast_context(T::BigInt, T::Integer), Some(CastContext::Assignment));
        assert_eq!(cast_context(T::Numeric(None), T::Double), Some(CastContext::Implicit));
        assert_eq!(cast_context(T::Text, T::Integer), Some(CastContext::Explicit));
        assert_eq!(cast_context(T::Integer, T::Text), Some(CastContext::Assignment));
        assert_eq!(cast_context(T::Date, T::Integer), None);
        assert_eq!(cast_context(T::Varchar(Some(3)), T::Text), Some(CastContext::Implicit));
    }
}
