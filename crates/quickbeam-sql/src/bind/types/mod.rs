//! Type names of the statement text, and the common type of several values.

mod catalog_names;
pub(crate) mod undefined;

use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as Written, ExactNumberInfo,
    IntervalFields as WrittenFields, TimezoneInfo,
};

pub use catalog_names::catalog_type;

use crate::error::{Result, SqlError, SqlState};
use crate::expression::NumberKind;
use crate::types::{
    CastContext, DataType, ElementType, EncodedKind, EncodedType, IntervalFields, NumericLimits,
    PreciseType, SystemType, TimeKind, cast_context,
};

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

fn length(written: Option<CharacterLength>, name: &str) -> Result<Option<u32>> {
    match written {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => match u32::try_from(length) {
            Ok(length @ 1..=10_485_760) => Ok(Some(length)),
            _ if length == 0 => Err(invalid(format!("length for type {name} must be at least 1"))),
            _ => Err(invalid(format!("length for type {name} cannot exceed 10485760"))),
        },
    }
}

fn numeric(info: ExactNumberInfo) -> Result<DataType> {
    const MOST: i64 = NumericLimits::MAX;
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(DataType::Numeric(None)),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    if precision == 0 || precision > MOST as u64 {
        return Err(invalid(format!("NUMERIC precision {precision} must be between 1 and {MOST}")));
    }
    if !(-MOST..=MOST).contains(&scale) {
        let message = format!("NUMERIC scale {scale} must be between -{MOST} and {MOST}");
        return Err(invalid(message));
    }
    Ok(NumericLimits::data_type(precision as u16, scale as i16))
}

/// Returns a type of bit strings.
fn bits(kind: EncodedKind, length: Option<u64>) -> Result<DataType> {
    let Some(length) = length else { return Ok(kind.data_type()) };
    match u32::try_from(length) {
        Ok(0) => Err(invalid(format!("length for type {} must be at least 1", kind.name()))),
        Ok(length @ ..=EncodedType::MAX_LENGTH) => {
            Ok(DataType::Encoded(EncodedType::new(kind, length)))
        }
        _ => {
            let most = EncodedType::MAX_LENGTH;
            Err(invalid(format!("length for type {} cannot exceed {most}", kind.name())))
        }
    }
}

/// Returns the fractional digits of a type name; PostgreSQL takes more than six for six.
fn at_most_all(digits: u64) -> u8 {
    let most = PreciseType::MAX_DIGITS;
    u8::try_from(digits).map_or(most, |digits| digits.min(most))
}

fn time(kind: TimeKind, digits: Option<u64>) -> DataType {
    let plain = PreciseType::of_modifier(kind, -1).plain();
    digits.map_or(plain, |digits| DataType::Precise(PreciseType::new(kind, at_most_all(digits))))
}

/// Returns the type of intervals with the fields and the precision of a type name.
fn interval(fields: Option<WrittenFields>, precision: Option<u64>) -> Result<DataType> {
    let fields = match fields.map(|fields| fields.to_string()) {
        None => IntervalFields::All,
        Some(words) => match words.to_ascii_lowercase().split_once(" to ") {
            Some((first, last)) => interval_fields(first, Some(last))?,
            None => interval_fields(&words, None)?,
        },
    };
    precise_interval(fields, precision)
}

/// Returns the fields from one name to another.
pub fn interval_fields(first: &str, last: Option<&str>) -> Result<IntervalFields> {
    IntervalFields::between(first, last).ok_or_else(|| {
        let to = last.map_or_else(String::new, |last| format!(" TO {last}"));
        let message = format!("syntax error: {first}{to} are no fields of INTERVAL");
        SqlError::new(SqlState::SyntaxError, message)
    })
}

/// Returns the type of intervals with these fields and this precision.
pub fn precise_interval(fields: IntervalFields, precision: Option<u64>) -> Result<DataType> {
    if precision.is_some() && !fields.has_seconds() {
        let message = "syntax error: the precision of INTERVAL follows SECOND";
        return Err(SqlError::new(SqlState::SyntaxError, message));
    }
    Ok(PreciseType::interval(fields, precision.map(at_most_all)))
}

/// Resolves a type name.
pub fn data_type(written: &Written) -> Result<DataType> {
    if let Written::SmallInt(Some(_))
    | Written::Int2(Some(_))
    | Written::Int(Some(_))
    | Written::Integer(Some(_))
    | Written::Int4(Some(_))
    | Written::BigInt(Some(_))
    | Written::Int8(Some(_))
    | Written::Double(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..)) =
        written
    {
        let message = format!("syntax error: the type {written} has no number in parentheses");
        return Err(SqlError::new(SqlState::SyntaxError, message));
    }
    Ok(match written.clone() {
        Written::Boolean | Written::Bool => DataType::Boolean,
        Written::SmallInt(_) | Written::Int2(_) => DataType::SmallInt,
        Written::Int(_) | Written::Integer(_) | Written::Int4(_) => DataType::Integer,
        Written::BigInt(_) | Written::Int8(_) => DataType::BigInt,
        Written::Real | Written::Float4 => DataType::Real,
        Written::Double(_) | Written::DoublePrecision | Written::Float8 => DataType::Double,
        Written::Float(info) => match info {
            ExactNumberInfo::Precision(1..=24) => DataType::Real,
            ExactNumberInfo::None | ExactNumberInfo::Precision(25..=53) => DataType::Double,
            _ => return Err(invalid("precision for type float must be between 1 and 53".into())),
        },
        Written::Numeric(info) | Written::Decimal(info) | Written::Dec(info) => numeric(info)?,
        Written::Text => DataType::Text,
        Written::Varchar(written)
        | Written::CharacterVarying(written)
        | Written::CharVarying(written) => DataType::Varchar(length(written, "varchar")?),
        Written::Char(written) | Written::Character(written) => {
            DataType::Char(length(written, "char")?.unwrap_or(1))
        }
        Written::Bytea => DataType::Bytea,
        Written::JSON => DataType::Json,
        Written::JSONB => DataType::Jsonb,
        Written::Date => DataType::Date,
        Written::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            time(TimeKind::Time, digits)
        }
        Written::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            time(TimeKind::Timestamp, digits)
        }
        Written::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            time(TimeKind::TimestampTz, digits)
        }
        Written::Time(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            let length = digits.map_or(0, |digits| u32::from(at_most_all(digits)) + 1);
            DataType::Encoded(EncodedType::new(EncodedKind::TimeTz, length))
        }
        Written::Bit(length) => bits(EncodedKind::Bit, Some(length.unwrap_or(1)))?,
        Written::BitVarying(length) | Written::VarBit(length) => bits(EncodedKind::Varbit, length)?,
        Written::TsVector => EncodedKind::TsVector.data_type(),
        Written::TsQuery => EncodedKind::TsQuery.data_type(),
        Written::Uuid => DataType::Uuid,
        Written::Regclass => DataType::System(SystemType::Regclass),
        // Sizes of array types have no effect, and all numbers of dimensions are one type.
        Written::Array(
            ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::Qualified(element, _),
        ) => match data_type(&element)? {
            nested @ DataType::Array(_) => nested,
            element => match ElementType::new(element) {
                Some(element) => DataType::Array(element),
                None => return Err(SqlError::unsupported(format!("the type {written}"))),
            },
        },
        Written::Interval { fields, precision } => interval(fields, precision)?,
        Written::Custom(name, modifiers) => catalog_names::named(&name, &modifiers)?,
        other => return Err(SqlError::unsupported(format!("the type {other}"))),
    })
}

/// Returns whether the type name is one of the serial types.
pub fn is_serial(written: &Written) -> bool {
    let name = match written {
        Written::Custom(name, _) => name.to_string().to_lowercase(),
        _ => return false,
    };
    matches!(&name[..], "serial" | "bigserial" | "smallserial" | "serial4" | "serial8" | "serial2")
}

/// Returns the type in which an operator computes with two numbers.
pub fn common_number(left: DataType, right: DataType) -> Option<DataType> {
    let (left_kind, right_kind) = (NumberKind::of(left)?, NumberKind::of(right)?);
    let rank = |kind| match kind {
        NumberKind::Small => 0,
        NumberKind::Integer => 1,
        NumberKind::Big => 2,
        NumberKind::Numeric => 3,
        NumberKind::Real => 4,
        _ => 5,
    };
    let higher = if rank(left_kind) >= rank(right_kind) { left_kind } else { right_kind };
    // REAL and any other numeric type compute in double precision.
    if higher == NumberKind::Real && left_kind != right_kind {
        return Some(DataType::Double);
    }
    Some(higher.data_type())
}

/// Returns the common type of CASE, COALESCE, VALUES and set operations.
pub fn common(left: DataType, right: DataType) -> Option<DataType> {
    if left == right {
        return Some(left);
    }
    let (left, right) = (left.without_time_precision(), right.without_time_precision());
    if left == right {
        return Some(left);
    }
    if left.is_text() && right.is_text() {
        // The first of two types that become each other without being asked for.
        const SINGLE: DataType = DataType::System(SystemType::SingleChar);
        return Some(if left == SINGLE { right } else { beside_literal(left) });
    }
    if left.is_numeric() && right.is_numeric() {
        return match (left, right) {
            (DataType::Real, other) | (other, DataType::Real) if other != DataType::Double => {
                Some(DataType::Real)
            }
            _ => common_number(left, right),
        };
    }
    let is_object = |side: DataType| side.is_object_number() || side.is_integer();
    if (left.is_object_number() || right.is_object_number()) && is_object(left) && is_object(right)
    {
        let is_castable = |side| cast_context(side, DataType::OID) == Some(CastContext::Implicit);
        return (is_castable(left) && is_castable(right)).then_some(DataType::OID);
    }
    if let (Some(a), Some(b)) = (left.record(), right.record()) {
        let is_anonymous = a.row_type_name().is_none() && b.row_type_name().is_none();
        return is_anonymous.then_some(DataType::RECORD);
    }
    match (left, right) {
        (DataType::System(vector), array @ DataType::Array(_))
        | (array @ DataType::Array(_), DataType::System(vector))
            if vector.vector_array() == Some(array.unconstrained()) =>
        {
            Some(array)
        }
        (DataType::Array(_), DataType::Array(_))
            if left.unconstrained() == right.unconstrained() =>
        {
            Some(left.unconstrained())
        }
        (DataType::Array(a), DataType::Array(b)) => {
            let is_implicit = |from: ElementType, to: ElementType| {
                cast_context(from.data_type(), to.data_type()) == Some(CastContext::Implicit)
            };
            let wider = if is_implicit(a, b) { Some(right) } else { None };
            wider.or(is_implicit(b, a).then_some(left)).map(DataType::unconstrained)
        }
        (DataType::Encoded(left), DataType::Encoded(right))
            if left.kind().family() == right.kind().family()
                && left.kind() != EncodedKind::Enum =>
        {
            let kind = left.kind();
            Some(if kind == right.kind() { kind.data_type() } else { kind.family().data_type() })
        }
        (DataType::Time, zoned @ DataType::Encoded(encoded))
        | (zoned @ DataType::Encoded(encoded), DataType::Time)
            if encoded.kind() == EncodedKind::TimeTz =>
        {
            Some(zoned)
        }
        (DataType::Timestamp, DataType::TimestampTz)
        | (DataType::TimestampTz, DataType::Timestamp) => Some(DataType::TimestampTz),
        (DataType::Date, other @ (DataType::Timestamp | DataType::TimestampTz))
        | (other @ (DataType::Timestamp | DataType::TimestampTz), DataType::Date) => Some(other),
        _ => None,
    }
}

/// Returns the type in which values of two types compare.
pub fn comparable(left: DataType, right: DataType) -> Option<DataType> {
    match (left.without_time_precision(), right.without_time_precision()) {
        // Only intervals compare with intervals, and a time becomes one by itself.
        (DataType::Time, span @ DataType::Interval)
        | (span @ DataType::Interval, DataType::Time) => Some(span),
        _ => common(left, right),
    }
}

/// Returns the common type with an untyped literal, which keeps its whole text: no length limit, no
/// padding.
pub fn beside_literal(known: DataType) -> DataType {
    match known {
        DataType::Char(_) => DataType::BPCHAR,
        other => other.unconstrained(),
    }
}

/// Returns whether an assignment casts a value of that type to the other.
pub fn is_assignable(from: DataType, to: DataType) -> bool {
    cast_context(from, to).is_some_and(|context| context <= CastContext::Assignment)
}

/// Returns whether an explicit cast exists.
pub fn is_castable(from: DataType, to: DataType) -> bool {
    cast_context(from, to).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use DataType as D;

    #[test]
    fn numbers_meet_as_in_postgresql() {
        for (a, b, expected) in [
            (D::SmallInt, D::Integer, D::Integer),
            (D::BigInt, D::Numeric(Some((5, 2))), D::Numeric(None)),
            (D::Real, D::Real, D::Real),
            (D::Real, D::Integer, D::Double),
            (D::Numeric(None), D::Double, D::Double),
        ] {
            assert_eq!(common_number(a, b), Some(expected));
            assert_eq!(common_number(b, a), Some(expected));
        }
        assert_eq!(common_number(D::Text, D::Integer), None);
        assert_eq!(common(D::Char(3), D::Varchar(None)), Some(D::BPCHAR));
        assert_eq!(common(D::Varchar(Some(3)), D::Char(3)), Some(D::Varchar(None)));
        assert!(!is_assignable(D::Text, D::Integer) && is_castable(D::Text, D::Integer));
    }
}
