//! `to_char` of intervals.
//!
//! A field is the interval's own: hours go beyond 24, months are 30 days for the day of the year.
//! What an interval has not, such as a name of a month or a time zone, is an error.

use super::templates::{ROMAN_MONTHS, TemplatePart, in_case, parts, write_ordinal};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, check_size, mismatch, strict, text};
use crate::types::{DataType, HOUR, Interval, MINUTE, SECOND, Value, ValueRef};

pub(in crate::expression::builtin) static TABLE: &[Builtin] =
    &[strict("to_char", &[DataType::Interval, DataType::Text], DataType::Text, to_char)];

fn to_char(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(ValueRef::Interval(interval)) = arguments.first() else { return Err(mismatch()) };
    let template = text(arguments, 1)?;
    if template.is_empty() {
        return Ok(Value::Null);
    }
    let mut out = String::new();
    for part in parts(template) {
        match part {
            TemplatePart::Literal(character) | TemplatePart::Quoted(character) => {
                out.push(character);
            }
            TemplatePart::Fixed => {}
            TemplatePart::Ordinal(is_lower) => write_ordinal(&mut out, is_lower),
            TemplatePart::Keyword(keyword, written, fills) => {
                out.push_str(&field(keyword, written, fills, *interval)?);
            }
        }
        check_size(out.len())?;
    }
    Ok(Value::text(out))
}

#[cold]
fn no_field() -> SqlError {
    let message = "invalid format specification for an interval value";
    SqlError::new(SqlState::InvalidDatetimeFormat, message)
        .with_hint("Intervals are not tied to specific calendar dates.")
}

fn field(keyword: &str, written: &str, fills: bool, interval: Interval) -> Result<String> {
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    let (days, micros) = (i64::from(interval.days), interval.micros);
    let hours = micros / HOUR;
    let fraction = micros % SECOND;
    let of_year = i64::from(interval.months) * 30 + days;
    let number = |width: usize, number: i64| match (fills, number < 0) {
        (true, _) => number.to_string(),
        (false, true) => format!("{number:0width$}", width = width + 1),
        (false, false) => format!("{number:0width$}"),
    };
    let half = |dotted: bool| {
        let name = match (hours % 24 >= 12, dotted) {
            (true, true) => "P.M.",
            (true, false) => "PM",
            (false, true) => "A.M.",
            (false, false) => "AM",
        };
        in_case(name, written)
    };
    Ok(match keyword {
        "AM" | "PM" => half(false),
        "A.M." | "P.M." => half(true),
        "HH24" => number(2, hours),
        "HH12" | "HH" => number(2, if hours % 12 == 0 { 12 } else { hours % 12 }),
        "MI" => number(2, micros % HOUR / MINUTE),
        "SS" => number(2, micros % MINUTE / SECOND),
        "MS" => format!("{:03}", fraction / 1000),
        "US" => format!("{fraction:06}"),
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let digits = keyword[2..].parse().unwrap_or(6_u32);
            let width = digits as usize;
            format!("{:0width$}", fraction / 10_i64.pow(6 - digits))
        }
        "SSSSS" | "SSSS" => (micros / SECOND).to_string(),
        "DDD" | "IDDD" if !fills => format!("{of_year:03}"),
        "DD" if !fills => format!("{days:02}"),
        "DDD" | "IDDD" => of_year.to_string(),
        "DD" => days.to_string(),
        "MM" => number(2, months),
        "Q" if months == 0 => String::new(),
        "Q" => ((months - 1) / 3 + 1).to_string(),
        "RM" if months == 0 && years == 0 => String::new(),
        "RM" => {
            // Negative months count from December.
            let of_year = match months {
                0 if years < 0 => 0,
                ..0 => months,
                _ => months - 1,
            };
            let numeral = ROMAN_MONTHS[of_year.rem_euclid(12) as usize];
            let numeral = in_case(numeral, &written[..1]);
            if fills { numeral } else { format!("{numeral:4}") }
        }
        "CC" => number(2, years / 100),
        "WW" => number(2, (of_year - 1) / 7 + 1),
        "W" => ((days - 1) / 7 + 1).to_string(),
        "Y,YYY" => format!("{},{:03}", years / 1000, years % 1000),
        "YYYY" | "IYYY" => number(4, years),
        "YYY" | "IYY" => number(3, years % 1000),
        "YY" | "IY" => number(2, years % 100),
        "Y" | "I" => number(1, years % 10),
        "J" => (of_year + 2_440_588).to_string(),
        _ => return Err(no_field()),
    })
}
