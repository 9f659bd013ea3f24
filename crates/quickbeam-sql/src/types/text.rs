//! Text input and output of values, in PostgreSQL's forms.

use std::fmt::Write;

use super::datetime::{parse_date, parse_time, parse_timestamp, parse_timestamptz};
use super::json::{parse_json, parse_jsonb};
use super::{
    ArrayBuilder, ArrayRef, ByteaOutput, DataType, Decimal, Dimension, ElementType, IntervalFields,
    Numeric, SystemType, TextSettings, Value, ValueRef, parse_interval,
};
use crate::error::{Result, SqlError, SqlState};
use crate::types::array::array_text::{format_array, parse_array};
use crate::types::output::{
    format_date, format_interval, format_time, format_timestamp, format_timestamptz,
};

#[cold]
fn invalid(data_type: DataType, text: &str) -> SqlError {
    let name = data_type.unconstrained();
    SqlError::new(
        SqlState::InvalidTextRepresentation,
        format!("invalid input syntax for type {name}: \"{text}\""),
    )
}

#[cold]
fn out_of_range(data_type: DataType, text: &str) -> SqlError {
    let name = data_type.unconstrained();
    let is_float = matches!(data_type, DataType::Real | DataType::Double);
    let subject = if is_float { "" } else { "value " };
    SqlError::new(
        SqlState::NumericValueOutOfRange,
        format!("{subject}\"{text}\" is out of range for type {name}"),
    )
}

/// Returns a text without the blanks at its end, as a CHAR is compared.
#[inline]
pub fn without_blanks(text: &str) -> &str {
    let end = text.bytes().rposition(|byte| byte != b' ').map_or(0, |last| last + 1);
    text.get(..end).unwrap_or(text)
}

/// Reads a value of that type. Length, precision and scale are applied by a later cast.
pub fn parse_value(text: &str, data_type: DataType, settings: &TextSettings) -> Result<Value> {
    let integer = || parse_integer(text, data_type);
    let narrow = || out_of_range(data_type, text);
    Ok(match data_type {
        DataType::Boolean => {
            Value::Boolean(parse_boolean(text).ok_or_else(|| invalid(data_type, text))?)
        }
        DataType::SmallInt => Value::SmallInt(integer()?.try_into().map_err(|_| narrow())?),
        DataType::Integer => Value::Integer(integer()?.try_into().map_err(|_| narrow())?),
        DataType::BigInt => Value::BigInt(integer()?.try_into().map_err(|_| narrow())?),
        DataType::Real => Value::Real(parse_real(text)?),
        DataType::Double => Value::Double(parse_double(text)?),
        DataType::Numeric(_) | DataType::WideNumeric(_) => parse_numeric(text)?.into(),
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
            Value::text(checked_text(text)?)
        }
        DataType::Bytea => Value::bytea(parse_bytea(text)?),
        DataType::Date => Value::Date(parse_date(text, settings)?),
        DataType::Time => Value::Time(parse_time(text, settings)?),
        DataType::Timestamp => Value::Timestamp(parse_timestamp(text, settings)?),
        DataType::TimestampTz => Value::TimestampTz(parse_timestamptz(text, settings)?),
        DataType::Interval => {
            Value::Interval(parse_interval(text, IntervalFields::All, settings.intervals)?)
        }
        DataType::Precise(precise) if precise.plain() == DataType::Interval => {
            Value::Interval(parse_interval(text, precise.fields(), settings.intervals)?)
        }
        DataType::Precise(precise) => return parse_value(text, precise.plain(), settings),
        DataType::Array(element) => parse_array(text, element, settings)?,
        DataType::Json => Value::json(parse_json(checked_text(text)?)?),
        DataType::Jsonb => Value::jsonb(parse_jsonb(checked_text(text)?)?),
        DataType::Uuid => Value::Uuid(parse_uuid(text).ok_or_else(|| invalid(data_type, text))?),
        DataType::System(known) => return parse_system(text, known),
        DataType::Encoded(encoded) => {
            return super::encoded::parse(encoded, text, settings, parse_value);
        }
    })
}

/// Reads a value of a catalog's type. A `reg…` type reads numbers only: names need a catalog.
fn parse_system(text: &str, system_type: SystemType) -> Result<Value> {
    let data_type = DataType::System(system_type);
    if system_type.is_text() {
        return Ok(Value::text(system_type.text(checked_text(text)?)?));
    }
    if let Some(element) = system_type.vector_element() {
        let element_type = ElementType::new(element).unwrap_or(ElementType::OID);
        let mut builder = ArrayBuilder::new(element_type);
        for word in text.split_ascii_whitespace() {
            let value = parse_value(word, element, &TextSettings::DEFAULT)
                .map_err(|_| invalid(element, word))?;
            builder.push(value.as_ref())?;
        }
        let dimension = Dimension { lower: 0, ..Dimension::of(builder.len()) };
        return Ok(Value::Array(builder.finish(&[dimension])?));
    }
    if system_type.is_reference() && text.trim() == "-" {
        return Ok(Value::Oid(0));
    }
    let narrow = || out_of_range(data_type, text);
    Ok(Value::Oid(match parse_integer(text, data_type)? {
        // Negative numbers of four bytes count from the end.
        number @ -2_147_483_648..=-1 => number as i32 as u32,
        number => u32::try_from(number).map_err(|_| narrow())?,
    }))
}

/// Appends a vector as numbers with blanks between them.
pub fn format_vector(out: &mut String, array: ArrayRef<'_>) {
    for (at, element) in array.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        format_value(out, element, &TextSettings::DEFAULT);
    }
}

/// Returns the text, or an error if it contains the character U+0000, which cannot be stored.
pub fn checked_text(text: &str) -> Result<&str> {
    // Without an early exit the compiler compares many bytes at a time.
    if text.bytes().fold(false, |found, byte| found | (byte == 0)) {
        return Err(SqlError::new(
            SqlState::CharacterNotInRepertoire,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(text)
}

fn parse_boolean(text: &str) -> Option<bool> {
    let word = text.trim().to_ascii_lowercase();
    let starts = |whole: &str| !word.is_empty() && whole.starts_with(&word);
    match word.as_str() {
        "on" | "1" => Some(true),
        "of" | "off" | "0" => Some(false),
        _ if starts("true") || starts("yes") => Some(true),
        _ if starts("false") || starts("no") => Some(false),
        _ => None,
    }
}

fn parse_integer(text: &str, data_type: DataType) -> Result<i128> {
    // Most are a few digits, which fit in any case.
    if (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits = text.bytes().map(|byte| i64::from(byte - b'0'));
        return Ok(digits.fold(0, |number, digit| number * 10 + digit).into());
    }
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(data_type, text));
    }
    trimmed.parse().map_err(|_| out_of_range(data_type, text))
}

/// Returns whether a text has digits, and so is not a word that Rust reads as infinity or NaN.
fn spells_number(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn parse_double(text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let value: f64 = trimmed.parse().map_err(|_| invalid(DataType::Double, text))?;
    let vanished = value == 0.0
        && trimmed
            .bytes()
            .take_while(|b| !matches!(b, b'e' | b'E'))
            .any(|b| matches!(b, b'1'..=b'9'));
    if value.is_infinite() && spells_number(trimmed) || vanished {
        return Err(out_of_range(DataType::Double, text));
    }
    Ok(value)
}

fn parse_real(text: &str) -> Result<f32> {
    let trimmed = text.trim();
    let value: f32 = trimmed.parse().map_err(|_| invalid(DataType::Real, text))?;
    let vanished = value == 0.0
        && trimmed
            .bytes()
            .take_while(|b| !matches!(b, b'e' | b'E'))
            .any(|b| matches!(b, b'1'..=b'9'));
    if value.is_infinite() && spells_number(trimmed) || vanished {
        return Err(out_of_range(DataType::Real, text));
    }
    Ok(value)
}

fn parse_numeric(text: &str) -> Result<Decimal> {
    let trimmed = text.trim();
    if let Some(number) = Decimal::parse(trimmed) {
        return number;
    }
    let special = Numeric::named(trimmed).map(Decimal::Short);
    special.ok_or_else(|| invalid(DataType::Numeric(None), text))
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn parse_hexadecimal(digits: &str) -> Result<Vec<u8>> {
    let fault = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
    let mut out = Vec::with_capacity(digits.len() / 2);
    let mut high = None;
    for character in digits.chars().filter(|character| !character.is_ascii_whitespace()) {
        let digit = u8::try_from(character).ok().and_then(hex_digit);
        let digit =
            digit.ok_or_else(|| fault(format!("invalid hexadecimal digit: \"{character}\"")))?;
        match high.take() {
            None => high = Some(digit),
            Some(high) => out.push(high << 4 | digit),
        }
    }
    match high {
        None => Ok(out),
        Some(_) => Err(fault("invalid hexadecimal data: odd number of digits".into())),
    }
}

fn parse_bytea(text: &str) -> Result<Vec<u8>> {
    let fault = || invalid(DataType::Bytea, text);
    if let Some(digits) = text.strip_prefix("\\x") {
        return parse_hexadecimal(digits);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        (rest, _) = match (first, after) {
            (b'\\', [b'\\', more @ ..]) => (more, out.push(b'\\')),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', more @ ..]) => {
                (more, out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')))
            }
            (b'\\', _) => return Err(fault()),
            (byte, more) => (more, out.push(*byte)),
        };
    }
    Ok(out)
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim();
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => text,
    };
    let (mut uuid, mut count) = ([0_u8; 16], 0);
    let mut may_hyphen = false;
    for byte in inner.bytes() {
        if byte == b'-' {
            if !std::mem::take(&mut may_hyphen) {
                return None;
            }
            continue;
        }
        let digit = hex_digit(byte)?;
        let place = uuid.get_mut(count / 2)?;
        *place = *place << 4 | digit;
        count += 1;
        may_hyphen = count % 4 == 0 && count < 32;
    }
    (count == 32).then_some(uuid)
}

/// Appends a floating-point number in the shortest form that reads back equal. `behind` digits
/// before the point or more select the exponent form.
fn format_float(out: &mut String, digits: &str, is_nan: bool, infinite: Option<bool>, behind: i32) {
    if is_nan {
        return out.push_str("NaN");
    }
    if let Some(negative) = infinite {
        return out.push_str(if negative { "-Infinity" } else { "Infinity" });
    }
    // `digits` has the form -1.2345e-6.
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    out.push_str(sign);
    if exponent < -4 || exponent >= behind {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
        return;
    }
    let plain: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if exponent < 0 {
        out.push_str("0.");
        (1..-exponent).for_each(|_| out.push('0'));
        out.push_str(&plain);
        return;
    }
    let whole = exponent as usize + 1;
    for index in 0..whole.max(plain.len()) {
        if index == whole {
            out.push('.');
        }
        out.push(plain.as_bytes().get(index).map_or('0', |byte| char::from(*byte)));
    }
}

/// Returns whether a decimal number lies exactly between a floating-point number and one of its
/// neighbours, which have that number of bits.
fn is_tie(value: f64, bits: u32, digits: &str) -> bool {
    let Some((mantissa, exponent)) = digits.split_once('e') else { return false };
    let Ok(exponent) = exponent.parse::<i32>() else { return false };
    let places = mantissa.split_once('.').map_or(0, |(_, places)| places.len() as i32);
    let plain = mantissa.bytes().filter(u8::is_ascii_digit);
    let decimal = plain.fold(0_u128, |number, digit| number * 10 + u128::from(digit - b'0'));
    // The odd number that the mantissa with one more bit would be, and the powers of two aside.
    let fives = |power: i32| u32::try_from(power).ok().and_then(|it| 5_u128.checked_pow(it));
    let odd = |number: u128| number >> number.trailing_zeros().min(127);
    let power = exponent - places;
    let (own, scale) = if power < 0 {
        (Some(decimal), fives(-power))
    } else {
        (fives(power).and_then(|it| decimal.checked_mul(it)), Some(1))
    };
    let (Some(own), Some(scale)) = (own, scale) else { return false };
    let raw = value.abs().to_bits() & ((1 << (f64::MANTISSA_DIGITS - 1)) - 1);
    let whole = (raw | 1 << (f64::MANTISSA_DIGITS - 1)) >> (f64::MANTISSA_DIGITS - bits);
    let whole = u128::from(whole);
    // The next number below a power of two is half as far away as the next one above it.
    let below = if whole.is_power_of_two() { 4 * whole - 1 } else { 2 * whole - 1 };
    let middles = [2 * whole + 1, below];
    own != 0 && middles.iter().any(|middle| middle.checked_mul(scale) == Some(odd(own)))
}

/// Returns the shortest decimal number that reads back as a floating-point number, without those
/// that lie exactly between two, as PostgreSQL does. Of two that are equally near, it is the one
/// whose last digit is even. `found` is the shortest without these rules. `rounded` takes the
/// number of digits after the first, and rounds halves to even.
fn shortest(value: f64, bits: u32, found: String, rounded: impl Fn(usize) -> String) -> String {
    let mantissa = found.split('e').next().unwrap_or_default();
    let is_odd = mantissa.bytes().last().is_some_and(|digit| digit % 2 == 1);
    let is_refused = is_tie(value, bits, &found);
    if !is_odd && !is_refused {
        return found;
    }
    let reads_back = |text: &String| match bits {
        f32::MANTISSA_DIGITS => text.parse::<f32>().is_ok_and(|read| f64::from(read) == value),
        _ => text.parse::<f64>().is_ok_and(|read| read == value),
    };
    let places = mantissa.bytes().filter(u8::is_ascii_digit).count().saturating_sub(1);
    let last = if is_refused { 17 } else { places };
    let mut candidates = (places..=last).map(rounded);
    candidates.find(|it| reads_back(it) && !is_tie(value, bits, it)).unwrap_or(found)
}

/// Appends a floating-point number with a number of digits, as `extra_float_digits` of less than 1
/// selects.
fn format_rounded(out: &mut String, number: f64, digits: i32) {
    let digits = digits.max(1);
    let text = format!("{number:.*e}", digits as usize - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    let infinite = number.is_infinite().then_some(number < 0.0);
    format_float(out, &format!("{mantissa}e{exponent}"), number.is_nan(), infinite, digits);
}

/// Appends bytes in the escape form.
fn format_escaped(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(char::from(*byte)),
            byte => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
}

/// Appends a value as text, as the settings say; nothing for NULL.
pub fn format_value(out: &mut String, value: ValueRef<'_>, settings: &TextSettings) {
    // Writing to a String does not fail.
    let _ = match value {
        ValueRef::Null => Ok(()),
        ValueRef::Boolean(v) => write!(out, "{}", if v { 't' } else { 'f' }),
        ValueRef::SmallInt(v) => write!(out, "{v}"),
        ValueRef::Integer(v) => write!(out, "{v}"),
        ValueRef::BigInt(v) => write!(out, "{v}"),
        ValueRef::Oid(v) => write!(out, "{v}"),
        ValueRef::Real(v) if settings.float_digits < 1 => {
            format_rounded(out, v.into(), 6 + i32::from(settings.float_digits));
            Ok(())
        }
        ValueRef::Double(v) if settings.float_digits < 1 => {
            format_rounded(out, v, 15 + i32::from(settings.float_digits));
            Ok(())
        }
        ValueRef::Real(v) => {
            let infinite = v.is_infinite().then_some(v < 0.0);
            let digits = shortest(f64::from(v), f32::MANTISSA_DIGITS, format!("{v:e}"), |places| {
                format!("{v:.places$e}")
            });
            format_float(out, &digits, v.is_nan(), infinite, 6);
            Ok(())
        }
        ValueRef::Double(v) => {
            let infinite = v.is_infinite().then_some(v < 0.0);
            let digits = shortest(v, f64::MANTISSA_DIGITS, format!("{v:e}"), |places| {
                format!("{v:.places$e}")
            });
            format_float(out, &digits, v.is_nan(), infinite, 15);
            Ok(())
        }
        ValueRef::Encoded(encoded, bytes) => {
            super::encoded::format(out, encoded, bytes, settings, format_value);
            Ok(())
        }
        ValueRef::Numeric(v) => write!(out, "{v}"),
        ValueRef::LongNumeric(v) => write!(out, "{v}"),
        ValueRef::Text(v) | ValueRef::Json(v) | ValueRef::Jsonb(v) => out.write_str(v),
        ValueRef::Bytea(v) if settings.bytea == ByteaOutput::Escape => {
            format_escaped(out, v);
            Ok(())
        }
        ValueRef::Bytea(v) => {
            out.push_str("\\x");
            v.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
        ValueRef::Date(v) => {
            format_date(out, v, settings);
            Ok(())
        }
        ValueRef::Time(v) => {
            format_time(out, v);
            Ok(())
        }
        ValueRef::Timestamp(v) => {
            format_timestamp(out, v, settings);
            Ok(())
        }
        ValueRef::TimestampTz(v) => {
            format_timestamptz(out, v, settings);
            Ok(())
        }
        ValueRef::Interval(v) => {
            format_interval(out, v, settings);
            Ok(())
        }
        ValueRef::Array(v) => {
            format_array(out, v, settings);
            Ok(())
        }
        ValueRef::Uuid(v) => v.iter().enumerate().try_for_each(|(index, byte)| {
            let hyphen = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(out, "{hyphen}{byte:02x}")
        }),
    };
}

impl std::fmt::Display for ValueRef<'_> {
    /// Writes the value as text with the settings of a new session, and NULL as `NULL`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_null() {
            return f.write_str("NULL");
        }
        let mut text = String::new();
        format_value(&mut text, *self, &TextSettings::DEFAULT);
        f.write_str(&text)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_ref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str, data_type: DataType) -> std::result::Result<String, &'static str> {
        parse_value(text, data_type, &TextSettings::DEFAULT)
            .map(|value| value.to_string())
            .map_err(|error| error.code())
    }

    #[test]
    fn texts_are_read_and_written_as_postgresql_does() {
        use DataType as T;
        let cases: &[(T, &str, std::result::Result<&str, &str>)] = &[
            (T::Boolean, " TRU ", Ok("t")),
            (T::Boolean, "off", Ok("f")),
            (T::Boolean, "o", Err("22P02")),
            (T::Boolean, "", Err("22P02")),
            (T::SmallInt, " -32768 ", Ok("-32768")),
            (T::SmallInt, "32768", Err("22003")),
            (T::Integer, "12x", Err("22P02")),
            (T::Integer, "+7", Ok("7")),
            (T::Integer, "--7", Err("22P02")),
            (T::BigInt, "9223372036854775808", Err("22003")),
            (T::BigInt, &"9".repeat(200), Err("22003")),
            (T::Double, "1e15", Ok("1e+15")),
            (T::Double, "123456789012345", Ok("123456789012345")),
            (T::Double, "0.0001", Ok("0.0001")),
            (T::Double, "0.00001", Ok("1e-05")),
            (T::Real, "123456792", Ok("1.2345679e+08")),
            (T::Real, "3308372.25", Ok("3.3083722e+06")),
            (T::Real, "1.2379400392853803e+27", Ok("1.2379401e+27")),
            (T::Double, "2.9802322387695312e-08", Ok("2.9802322387695312e-08")),
            (T::Double, "1e23", Ok("9.999999999999999e+22")),
            (T::Double, "9007199254740993", Ok("9.007199254740992e+15")),
            (T::Double, "-0", Ok("-0")),
            (T::Double, "1.5", Ok("1.5")),
            (T::Double, "100", Ok("100")),
            (T::Double, "1e400", Err("22003")),
            (T::Double, "1e-400", Err("22003")),
            (T::Double, "-inf", Ok("-Infinity")),
            (T::Double, "nan", Ok("NaN")),
            (T::Double, "1.2.3", Err("22P02")),
            (T::Real, "16777216", Ok("1.6777216e+07")),
            (T::Real, "0.1", Ok("0.1")),
            (T::Numeric(None), "1.500", Ok("1.500")),
            (T::Numeric(None), "-.5e-2", Ok("-0.005")),
            (T::Numeric(None), "1e5", Ok("100000")),
            (T::Numeric(None), "1e131072", Err("22003")),
            (T::Numeric(None), &"9".repeat(38), Ok(&"9".repeat(38))),
            (T::Numeric(None), &"9".repeat(39), Ok(&"9".repeat(39))),
            (T::Numeric(None), "-9.1e-60", Ok(&format!("-0.{}91", "0".repeat(59)))),
            (
                T::Numeric(None),
                &format!("0.{}", "6".repeat(99)),
                Ok(&format!("0.{}", "6".repeat(99))),
            ),
            (T::Numeric(None), " nan", Ok("NaN")),
            (T::Numeric(None), "-INF", Ok("-Infinity")),
            (T::Numeric(None), "-NaN", Err("22P02")),
            (T::Numeric(None), "one", Err("22P02")),
            (T::Text, "a\0b", Err("22021")),
            (T::Bytea, "\\xDE ad", Ok("\\xdead")),
            (T::Bytea, "a\\\\\\001", Ok("\\x615c01")),
            (T::Bytea, "\\xabc", Err("22023")),
            (T::Bytea, "\\xzz", Err("22023")),
            (T::Bytea, "\\9", Err("22P02")),
            (
                T::Uuid,
                "{A0EEBC99-9c0b4ef8bb6d6bb9bd380a11}",
                Ok("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            ),
            (T::Uuid, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", Err("22P02")),
            (T::Uuid, "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11", Err("22P02")),
            (T::Timestamp, "2024-02-29 12:00", Ok("2024-02-29 12:00:00")),
        ];
        for (data_type, text, expected) in cases {
            let expected = expected.map(str::to_owned);
            assert_eq!(round(text, *data_type), expected, "{data_type} {text:?}");
        }
    }
}
