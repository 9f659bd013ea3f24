//! Date and time templates and `to_char`.

use super::fields::iso_week;
use super::interval_ops::{local, micros_of};
use super::number_templates::ordinal_ending;
use crate::error::Result;
use crate::expression::builtin::{Builtin, check_size, stable, strict, text, volatile};
use crate::types::{
    DAY, DataType, HOUR, MINUTE, OffsetMinutes, SECOND, SessionZone, TIMESTAMP_INFINITY, Value,
    ValueRef, date_of, days_of, write_offset,
};
use DataType::{Text, Timestamp, TimestampTz};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("to_char", &[Timestamp, Text], Text, to_char),
    volatile("timeofday", &[], Text, |frame, _| {
        let (zone, moment) = (frame.settings().zone, frame.clock_time());
        let shown = Shown { local: local(moment, zone)?, zoned: Some((zone, moment)) };
        write_template(shown, "Dy Mon DD HH24:MI:SS.US YYYY TZ")
    }),
    stable("to_char", &[TimestampTz, Text], Text, |frame, v| {
        let (zone, moment) = (frame.settings().zone, micros_of(v, 0)?);
        let shown = Shown { local: local(moment, zone)?, zoned: Some((zone, moment)) };
        write_template(shown, text(v, 1)?)
    }),
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The keywords of a template. Of two with a common beginning the longer one comes first.
const KEYWORDS: &[&str] = &[
    "A.M.", "P.M.", "B.C.", "A.D.", "AM", "PM", "BC", "AD", "CC", "DAY", "DDD", "DD", "DY", "D",
    "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY",
    "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "Q", "RM", "SSSSS", "SSSS",
    "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
];

/// A part of a template.
pub(super) enum TemplatePart<'t> {
    /// A keyword in upper case, as it is written, and whether padding is suppressed.
    Keyword(&'static str, &'t str, bool),
    /// The ending of an ordinal number; true: in lower case.
    Ordinal(bool),
    Literal(char),
    /// A character in quotes.
    Quoted(char),
    /// FX: spaces count from here on when a text is read.
    Fixed,
}

/// Splits a template after the quoted text at its start. In quotes a backslash makes the character
/// after it an ordinary one.
pub(super) fn quoted_part(template: &str) -> (String, &str) {
    let (mut quoted, mut characters) = (String::new(), template.chars());
    characters.next();
    while let Some(character) = characters.next().filter(|c| *c != '"') {
        let escaped = if character == '\\' { characters.next() } else { None };
        quoted.push(escaped.unwrap_or(character));
    }
    (quoted, characters.as_str())
}

pub(super) fn parts(template: &str) -> Vec<TemplatePart<'_>> {
    let (mut parts, mut rest) = (Vec::new(), template);
    while !rest.is_empty() {
        // FM and TM are for the keyword after them alone, and TM for names only.
        let has_prefix = |all: [&str; 2]| all.into_iter().any(|prefix| rest.starts_with(prefix));
        let (is_bare, is_translated) = (has_prefix(["FM", "fm"]), has_prefix(["TM", "tm"]));
        if is_bare || is_translated {
            rest = &rest[2..];
        }
        let Some(first) = rest.chars().next() else { break };
        if first == '"' {
            let (quoted, after) = quoted_part(rest);
            parts.extend(quoted.chars().map(TemplatePart::Quoted));
            rest = after;
            continue;
        }
        // A backslash makes the quote after it a character; elsewhere it is one itself.
        if let Some(after) = rest.strip_prefix("\\\"") {
            parts.push(TemplatePart::Literal('"'));
            rest = after;
            continue;
        }
        let starts = |keyword: &str| {
            rest.get(..keyword.len()).is_some_and(|written| is_written(keyword, written))
        };
        let keyword = KEYWORDS.iter().find(|keyword| starts(keyword));
        let length = keyword.map_or(2, |keyword| keyword.len());
        if let Some(keyword) = keyword {
            let fills = is_bare || is_translated && is_name(keyword);
            parts.push(TemplatePart::Keyword(keyword, &rest[..length], fills));
        } else if starts("FX") {
            parts.push(TemplatePart::Fixed);
        } else {
            parts.push(TemplatePart::Literal(first));
            rest = &rest[first.len_utf8()..];
            continue;
        }
        rest = &rest[length..];
        if rest.starts_with("TH") || rest.starts_with("th") {
            if keyword.is_some() {
                parts.push(TemplatePart::Ordinal(rest.starts_with("th")));
            }
            rest = &rest[2..];
        }
    }
    parts
}

fn is_name(keyword: &str) -> bool {
    matches!(keyword, "DAY" | "DY" | "MONTH" | "MON")
}

/// Returns whether a text is a keyword: in upper or lower case, and names also with a capital.
fn is_written(keyword: &str, written: &str) -> bool {
    let is_capital = || {
        let (first, rest) = written.split_at(1);
        keyword.starts_with(first) && rest.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    keyword == written
        || keyword.eq_ignore_ascii_case(written)
            && (written.bytes().all(|byte| !byte.is_ascii_uppercase())
                || is_name(keyword) && is_capital())
}

/// Returns a name in the case of the keyword.
pub(super) fn in_case(name: &str, written: &str) -> String {
    let mut letters = written.chars().filter(|c| c.is_ascii_alphabetic());
    let (first, second) = (letters.next(), letters.next());
    match (first, second) {
        (Some(first), _) if first.is_ascii_lowercase() => name.to_lowercase(),
        (_, Some(second)) if second.is_ascii_uppercase() => name.to_uppercase(),
        _ => name.to_owned(),
    }
}

fn to_char(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let shown = Shown { local: micros_of(arguments, 0)?, zoned: None };
    write_template(shown, text(arguments, 1)?)
}

/// What a template shows.
#[derive(Clone, Copy)]
struct Shown {
    local: i64,
    /// The zone and the moment in UTC, if the value has a zone.
    zoned: Option<(SessionZone, i64)>,
}

fn write_template(shown: Shown, template: &str) -> Result<Value> {
    if matches!(shown.local, TIMESTAMP_INFINITY | i64::MIN) || template.is_empty() {
        return Ok(Value::Null);
    }
    let (mut out, mut start) = (String::new(), 0);
    for part in parts(template) {
        match part {
            TemplatePart::Literal(character) | TemplatePart::Quoted(character) => {
                out.push(character);
            }
            TemplatePart::Fixed => {}
            TemplatePart::Ordinal(is_lower) => {
                let mut field = out.split_off(start);
                write_ordinal(&mut field, is_lower);
                out.push_str(&field);
            }
            TemplatePart::Keyword(keyword, written, fills) => {
                start = out.len();
                write_field(&mut out, keyword, written, fills, shown);
            }
        }
        check_size(out.len())?;
    }
    Ok(Value::text(out))
}

/// Appends the ending of the number that the text ends with.
pub(super) fn write_ordinal(out: &mut String, is_lower: bool) {
    if out.ends_with(|character: char| character.is_ascii_digit()) {
        let ending = ordinal_ending(out.as_bytes());
        out.push_str(&if is_lower { ending.to_owned() } else { ending.to_uppercase() });
    }
}

/// Months in Roman numerals.
pub(super) const ROMAN_MONTHS: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

fn write_field(out: &mut String, keyword: &str, written: &str, fills: bool, shown: Shown) {
    let micros = shown.local;
    let (days, time) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (year, month, day) = date_of(days);
    let shown_year = if year > 0 { year } else { 1 - year };
    let hour = time / HOUR;
    let of_year = days - days_of(year, 1, 1) + 1;
    let weekday = (days + 4).rem_euclid(7);
    let number = |width: usize, number: i64| {
        if fills { number.to_string() } else { format!("{number:0width$}") }
    };
    let name = |name: &str, width: usize| {
        let name = in_case(name, written);
        if fills { name } else { format!("{name:width$}") }
    };
    let month_name = MONTHS[month as usize - 1];
    let day_name = DAYS[weekday as usize];
    let hour_12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let fraction = time % SECOND;
    let half = |late: bool, dotted: bool| {
        let name = match (late, dotted) {
            (true, true) => "P.M.",
            (true, false) => "PM",
            (false, true) => "A.M.",
            (false, false) => "AM",
        };
        in_case(name, written)
    };
    let east = shown.zoned.map_or(0, |(zone, moment)| zone.offset_at(moment));
    let (iso_year, week) = iso_week(days);
    let iso_year = if iso_year > 0 { iso_year } else { 1 - iso_year };
    out.push_str(&match keyword {
        "AM" | "PM" => half(hour >= 12, false),
        "A.M." | "P.M." => half(hour >= 12, true),
        "BC" | "AD" => in_case(if year > 0 { "AD" } else { "BC" }, written),
        "B.C." | "A.D." => in_case(if year > 0 { "A.D." } else { "B.C." }, written),
        "CC" if year > 0 => number(2, (year + 99) / 100),
        "CC" => number(3, year / 100 - 1),
        "DAY" => name(day_name, 9),
        "DY" => name(&day_name[..3], 3),
        "DDD" => number(3, of_year),
        "DD" => number(2, day.into()),
        "D" => (weekday + 1).to_string(),
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let digits = keyword[2..].parse().unwrap_or(6_usize);
            format!("{fraction:06}")[..digits].to_owned()
        }
        "HH24" => number(2, hour),
        "HH12" | "HH" => number(2, hour_12),
        "IDDD" => number(3, (week - 1) * 7 + (days + 3).rem_euclid(7) + 1),
        "ID" => ((days + 3).rem_euclid(7) + 1).to_string(),
        "IW" => number(2, week),
        "IYYY" => number(4, iso_year),
        "IYY" => number(3, iso_year % 1000),
        "IY" => number(2, iso_year % 100),
        "I" => (iso_year % 10).to_string(),
        "J" => (days + 2_440_588).to_string(),
        "MI" => number(2, time % HOUR / MINUTE),
        "MM" => number(2, month.into()),
        "MONTH" => name(month_name, 9),
        "MON" => name(&month_name[..3], 3),
        "MS" => format!("{:03}", fraction / 1000),
        "OF" => {
            let mut offset = String::new();
            write_offset(&mut offset, east / 60 * 60, OffsetMinutes::IfAny);
            // Of an hour with a leading zero.
            if fills && offset.as_bytes().get(1) == Some(&b'0') {
                offset.remove(1);
            }
            offset
        }
        "RM" => {
            let numeral = in_case(ROMAN_MONTHS[month as usize - 1], &written[..1]);
            if fills { numeral } else { format!("{numeral:4}") }
        }
        "Q" => ((month - 1) / 3 + 1).to_string(),
        "SSSSS" | "SSSS" => (time / SECOND).to_string(),
        "SS" => number(2, time % MINUTE / SECOND),
        "TZ" => match shown.zoned {
            Some((zone, moment)) => in_case(&zone.abbreviation_at(moment), written),
            None => String::new(),
        },
        "TZH" => {
            let sign = if east < 0 { '-' } else { '+' };
            format!("{sign}{:02}", east.abs() / 3600)
        }
        "TZM" => format!("{:02}", east.abs() / 60 % 60),
        "US" => format!("{fraction:06}"),
        "WW" => number(2, (of_year - 1) / 7 + 1),
        "W" => (i64::from(day - 1) / 7 + 1).to_string(),
        "Y,YYY" => format!("{},{:03}", shown_year / 1000, shown_year % 1000),
        "YYYY" => number(4, shown_year),
        "YYY" => number(3, shown_year % 1000),
        "YY" => number(2, shown_year % 100),
        _ => (shown_year % 10).to_string(),
    });
}
