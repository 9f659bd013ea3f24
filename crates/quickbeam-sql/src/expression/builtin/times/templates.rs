//! Date and time templates: `to_char`, `to_date` and `to_timestamp`.

use super::fields::iso_week;
use super::interval_ops::{local, micros_of, moment, timestamp_out_of_range};
use super::number_templates::ordinal_ending;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, check_size, mismatch, stable, strict, text, volatile};
use crate::types::{
    DAY, DataType, HOUR, MINUTE, OffsetMinutes, SECOND, SessionZone, TIMESTAMP_INFINITY, Value,
    ValueRef, date_of, days_in_month, days_of, is_timestamp, write_offset,
};
use DataType::{Date, Text, Timestamp, TimestampTz};

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
    strict("to_date", &[Text, Text], Date, |v| {
        let days = read(text(v, 0)?, text(v, 1)?)?.0.div_euclid(DAY);
        i32::try_from(days).map(Value::Date).map_err(|_| timestamp_out_of_range())
    }),
    stable("to_timestamp", &[Text, Text], TimestampTz, |frame, v| {
        let (local, east) = read(text(v, 0)?, text(v, 1)?)?;
        let moment = match east {
            Some(east) => Some(local - east * SECOND).filter(|it| is_timestamp(*it)),
            None => Some(moment(local, frame.settings().zone)?),
        };
        moment.map(Value::TimestampTz).ok_or_else(timestamp_out_of_range)
    }),
];

const MONTHS: [&str; 12] = [
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

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The keywords of a template. Of two with a common beginning the longer one comes first.
const KEYWORDS: &[&str] = &[
    "A.M.", "P.M.", "B.C.", "A.D.", "AM", "PM", "BC", "AD", "CC", "DAY", "DDD", "DD", "DY", "D",
    "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY",
    "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "Q", "RM", "SSSSS", "SSSS",
    "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
];

/// The moment 2000-01-01.
const YEAR_2000: i64 = 10_957 * DAY;

/// No field of a date is greater.
const LARGEST_FIELD: i64 = 10_000_000;

/// A part of a template.
pub(super) enum TemplatePart<'t> {
    /// A keyword in upper case, as it is written, and whether padding is suppressed.
    Keyword(&'static str, &'t str, bool),
    /// The ending of an ordinal number; true: in lower case.
    Ordinal(bool),
    Literal(char),
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
        // FM and TM are for the keyword after them alone.
        let fills = ["FM", "fm", "TM", "tm"].into_iter().any(|prefix| rest.starts_with(prefix));
        if fills {
            rest = &rest[2..];
        }
        let Some(first) = rest.chars().next() else { break };
        if first == '"' {
            let (quoted, after) = quoted_part(rest);
            parts.extend(quoted.chars().map(TemplatePart::Literal));
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
            parts.push(TemplatePart::Keyword(keyword, &rest[..length], fills));
        } else if !starts("FX") {
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

/// Returns whether a text is a keyword: in upper or lower case, and names also with a capital.
fn is_written(keyword: &str, written: &str) -> bool {
    let is_name = || matches!(keyword, "DAY" | "DY" | "MONTH" | "MON");
    let is_capital = || {
        let (first, rest) = written.split_at(1);
        keyword.starts_with(first) && rest.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    keyword == written
        || keyword.eq_ignore_ascii_case(written)
            && (written.bytes().all(|byte| !byte.is_ascii_uppercase()) || is_name() && is_capital())
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
            TemplatePart::Literal(character) => out.push(character),
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

/// The fields that a template has read.
#[derive(Default)]
struct TemplateFields {
    year: Option<i64>,
    /// The digits that the template has for the year.
    year_width: usize,
    century: Option<i64>,
    is_before_christ: bool,
    month: Option<i64>,
    day: Option<i64>,
    of_year: Option<i64>,
    /// The day of the week by ISO 8601.
    weekday: Option<i64>,
    /// The week of the year, and of the month.
    week: Option<i64>,
    week_of_month: Option<i64>,
    julian: Option<i64>,
    hour: i64,
    is_late: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    /// Milliseconds of the second, which add to the microseconds.
    millis: i64,
    /// Digits after the point to which the result is rounded.
    digits: Option<u32>,
    /// Seconds since midnight.
    of_day: i64,
    /// Whether the zone is west of UTC, and its distance in hours and minutes.
    is_west: bool,
    zone: [Option<i64>; 2],
    /// Whether the fields of the date are those of ISO weeks.
    is_iso: Option<bool>,
}

/// Returns the width of a numeric field in a text without separators.
fn width_of(keyword: &str) -> Option<usize> {
    Some(match keyword {
        "YYYY" | "IYYY" => 4,
        "YYY" | "IYY" | "DDD" | "IDDD" | "MS" => 3,
        "YY" | "IY" | "MM" | "DD" | "HH24" | "HH12" | "HH" | "MI" | "SS" | "WW" | "IW" | "CC"
        | "TZH" | "TZM" => 2,
        "Y" | "I" | "D" | "Q" | "W" | "ID" => 1,
        "US" | "FF6" => 6,
        "FF1" => 1,
        "FF2" => 2,
        "FF3" => 3,
        "FF4" => 4,
        "FF5" | "SSSS" | "SSSSS" => 5,
        "J" => 7,
        _ => return None,
    })
}

#[cold]
fn no_value(rest: &str, keyword: &str) -> SqlError {
    let shown: String = rest.chars().take(keyword.len()).collect();
    let message = format!("invalid value \"{shown}\" for \"{keyword}\"");
    SqlError::new(SqlState::InvalidDatetimeFormat, message)
}

#[cold]
fn out_of_range(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DatetimeFieldOverflow, message)
}

/// What the values of a template have.
pub(in crate::expression::builtin) struct TemplateKind {
    pub has_date: bool,
    pub has_time: bool,
    pub has_zone: bool,
}

/// Returns what the values of a template have.
pub(in crate::expression::builtin) fn kind_of_template(template: &str) -> TemplateKind {
    let mut kind = TemplateKind { has_date: false, has_time: false, has_zone: false };
    for part in parts(template) {
        let TemplatePart::Keyword(keyword, ..) = part else { continue };
        let starts = |all: &[&str]| all.iter().any(|start| keyword.starts_with(start));
        if starts(&["TZ", "OF"]) {
            kind.has_zone = true;
        } else if starts(&["HH", "MI", "SS", "MS", "US", "FF", "AM", "PM", "A.M.", "P.M."]) {
            kind.has_time = true;
        } else {
            kind.has_date = true;
        }
    }
    kind
}

/// Reads a text by a template; returns microseconds since 1970, and the seconds east of UTC if the
/// text says them.
fn read(text: &str, template: &str) -> Result<(i64, Option<i64>)> {
    read_moment(text, template, TemplateUse::Lenient)
}

/// How exactly a text has to fit a template.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::expression::builtin) enum TemplateUse {
    /// Any letter stands for a letter in quotes, and more text may follow.
    Lenient,
    /// As the SQL standard says.
    Exact,
}

/// [`read`], with a choice.
pub(in crate::expression::builtin) fn read_moment(
    text: &str,
    template: &str,
    template_use: TemplateUse,
) -> Result<(i64, Option<i64>)> {
    let is_exact = template_use == TemplateUse::Exact;
    let refuse = |message: String| Err(SqlError::new(SqlState::InvalidDatetimeFormat, message));
    let (mut found, mut rest) = (TemplateFields::default(), text);
    let parts = parts(template);
    for (at, part) in parts.iter().enumerate() {
        // A text that ends early leaves the remaining fields as they are.
        match rest.is_empty() {
            true if is_exact => {
                return refuse("input string is too short for datetime format".to_owned());
            }
            true => break,
            false => {}
        }
        match part {
            TemplatePart::Literal(character) if character.is_alphanumeric() => {
                rest = rest.trim_start();
                let mut characters = rest.chars();
                if characters.next() != Some(*character) && is_exact {
                    return refuse(format!("unmatched format character \"{character}\""));
                }
                rest = characters.as_str();
            }
            TemplatePart::Ordinal(_) => {
                let ending = rest.get(..2).unwrap_or_default().to_ascii_lowercase();
                if matches!(&ending[..], "th" | "st" | "nd" | "rd") {
                    rest = &rest[2..];
                }
            }
            TemplatePart::Literal(_) => {
                let is_separator = |c: char| !c.is_alphanumeric() && c != '-' && c != '+';
                let trimmed = rest.trim_start_matches(is_separator);
                // A sign separates when the template has a separator there, but it may be that of a
                // zone.
                if let Some(TemplatePart::Keyword("TZH", ..)) = parts.get(at + 1) {
                    rest = trimmed;
                    continue;
                }
                rest = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
            }
            TemplatePart::Keyword(keyword, ..) => {
                found.take_convention(keyword)?;
                rest = rest.trim_start();
                let is_last_digits = !matches!(
                    parts.get(at + 1),
                    Some(TemplatePart::Keyword(next, ..)) if width_of(next).is_some()
                );
                rest = found.read(keyword, rest, is_last_digits)?;
            }
        }
    }
    if is_exact && !rest.trim_start().is_empty() {
        let message = "trailing characters remain in input string after datetime format";
        return refuse(message.to_owned());
    }
    let zone = found.zone.iter().any(Option::is_some).then(|| {
        let [hours, minutes] = found.zone.map(Option::unwrap_or_default);
        let seconds = (hours * 60 + minutes) * 60;
        if found.is_west { -seconds } else { seconds }
    });
    Ok((found.finish(text)?, zone))
}

/// Sets a field. A field that is 0 counts as one that is not set, as in PostgreSQL.
fn set(field: &mut Option<i64>, number: i64, keyword: &str) -> Result<()> {
    if field.is_some_and(|known| known != 0 && known != number) {
        let message = format!("conflicting values for \"{keyword}\" field in formatting string");
        return Err(SqlError::new(SqlState::InvalidDatetimeFormat, message)
            .with_detail("This value contradicts a previous setting for the same field type."));
    }
    *field = Some(number);
    Ok(())
}

/// Returns the year that a number means by its digits: one of fewer than four is near 2020.
fn year_of(digits: usize, number: i64) -> i64 {
    match (digits, number) {
        (4.., number) => number,
        (_, number) if number < 70 => number + 2000,
        (_, number) if number < 100 => number + 1900,
        (_, number) if number < 520 => number + 2000,
        (_, number) => number + 1000,
    }
}

/// Returns the number of `Y,YYY`, and the rest of the text.
fn grouped_year(text: &str) -> Result<(i64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let read = || {
        let (thousands, rest) = text.split_at_checked(digits(text))?;
        let rest = rest.strip_prefix(',')?;
        let (years, rest) = rest.split_at_checked(digits(rest).min(3))?;
        let thousands = thousands.parse::<i64>().ok()?.checked_mul(1000)?;
        Some((thousands.checked_add(years.parse().ok()?)?, rest))
    };
    read().ok_or_else(|| {
        let message = "invalid input string for \"Y,YYY\"";
        SqlError::new(SqlState::InvalidDatetimeFormat, message)
    })
}

impl TemplateFields {
    /// Refuses fields of the Gregorian calendar beside those of ISO weeks.
    fn take_convention(&mut self, keyword: &str) -> Result<()> {
        let is_iso = match keyword {
            "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => true,
            "DDD" | "DD" | "D" | "MM" | "MONTH" | "MON" | "RM" | "WW" | "W" | "Y,YYY" | "YYYY"
            | "YYY" | "YY" | "Y" => false,
            _ => return Ok(()),
        };
        if self.is_iso.replace(is_iso).is_some_and(|known| known != is_iso) {
            let message = "invalid combination of date conventions";
            return Err(SqlError::new(SqlState::InvalidDatetimeFormat, message).with_hint(
                "Do not mix Gregorian and ISO week date conventions in a formatting template.",
            ));
        }
        Ok(())
    }

    /// Reads an era, with points if the keyword has some.
    fn read_era<'t>(&mut self, keyword: &str, rest: &'t str) -> Result<&'t str> {
        let starts = |name: &str| {
            rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        let eras = if keyword.len() == 4 { ["B.C.", "A.D."] } else { ["BC", "AD"] };
        if !eras.into_iter().any(starts) && !rest.is_empty() {
            return Err(no_value(rest, keyword));
        }
        self.is_before_christ = starts("B");
        Ok(rest.get(keyword.len()..).unwrap_or_default())
    }

    /// Reads a field; `is_open` allows more digits than the keyword has.
    fn read<'t>(&mut self, keyword: &str, rest: &'t str, is_open: bool) -> Result<&'t str> {
        let starts = |name: &str| {
            rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        let named = |names: &[&str], width: usize| {
            names.iter().position(|name| starts(&name[..width.min(name.len())]))
        };
        match keyword {
            "AM" | "PM" | "A.M." | "P.M." => {
                let dotted = if keyword.len() == 4 { 4 } else { 2 };
                self.is_late = Some(match () {
                    () if starts("PM") || starts("P.M.") => true,
                    () if starts("AM") || starts("A.M.") => false,
                    () => return Err(no_value(rest, keyword)),
                });
                return Ok(rest.get(dotted..).unwrap_or_default());
            }
            "BC" | "AD" | "B.C." | "A.D." => return self.read_era(keyword, rest),
            "MONTH" => {
                let month = named(&MONTHS, 9).ok_or_else(|| no_value(rest, keyword))?;
                set(&mut self.month, month as i64 + 1, keyword)?;
                return Ok(&rest[MONTHS[month].len()..]);
            }
            "MON" => {
                let month = named(&MONTHS, 3).ok_or_else(|| no_value(rest, keyword))?;
                set(&mut self.month, month as i64 + 1, keyword)?;
                return Ok(&rest[3..]);
            }
            "RM" => {
                let numeral = |name: &&str| starts(name);
                let month = ROMAN_MONTHS.iter().rposition(numeral);
                let month = month.ok_or_else(|| no_value(rest, keyword))?;
                set(&mut self.month, month as i64 + 1, keyword)?;
                return Ok(&rest[ROMAN_MONTHS[month].len()..]);
            }
            "DAY" => {
                let day = named(&DAYS, 9).ok_or_else(|| no_value(rest, keyword))?;
                return Ok(&rest[DAYS[day].len()..]);
            }
            "DY" => {
                named(&DAYS, 3).ok_or_else(|| no_value(rest, keyword))?;
                return Ok(&rest[3..]);
            }
            _ => {}
        }
        if keyword == "Y,YYY" {
            let (year, rest) = grouped_year(rest)?;
            set(&mut self.year, year, keyword)?;
            return Ok(rest);
        }
        let mut rest = rest;
        if keyword == "TZH" {
            self.is_west = rest.starts_with('-');
            rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        }
        let width = width_of(keyword)
            .ok_or_else(|| SqlError::unsupported(format!("{keyword} in a template to read")))?;
        let most = if is_open { 18 } else { width };
        // A field without a width may have a sign.
        let is_digit = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        let has_sign = is_open && rest.starts_with(['-', '+']) && is_digit(1);
        let start = usize::from(has_sign);
        let length = rest.bytes().skip(start).take(most).take_while(u8::is_ascii_digit).count();
        let (written, after) = rest.split_at(start + length);
        let digits = &written[start..];
        if digits.is_empty() {
            // A text that ends early leaves the remaining fields as they are.
            return if rest.is_empty() { Ok(rest) } else { Err(no_value(rest, keyword)) };
        }
        let number: i64 = written.parse().map_err(|_| mismatch())?;
        // As decimals of the second: "12" of MS is 120.
        let fraction = |width: usize| number * 10_i64.pow(width.saturating_sub(length) as u32);
        match keyword {
            "YYYY" | "IYYY" => {
                self.year_width = 4;
                set(&mut self.year, number, keyword)?;
            }
            // Sunday is what no other day is.
            "ID" if !(1..=6).contains(&number) => set(&mut self.weekday, 7, keyword)?,
            "ID" => set(&mut self.weekday, number, keyword)?,
            "CC" => set(&mut self.century, number, keyword)?,
            "WW" | "IW" => set(&mut self.week, number, keyword)?,
            "W" => self.week_of_month = Some(number),
            "YYY" | "YY" | "Y" | "IYY" | "IY" | "I" => {
                self.year_width = keyword.trim_start_matches('I').len().max(1);
                set(&mut self.year, year_of(written.len(), number), keyword)?;
            }
            "MM" => set(&mut self.month, number, keyword)?,
            "DD" => set(&mut self.day, number, keyword)?,
            "DDD" | "IDDD" => set(&mut self.of_year, number, keyword)?,
            "J" => self.julian = Some(number),
            "HH24" => self.hour = number,
            "HH12" | "HH" => {
                if !(1..=12).contains(&number) {
                    let message = format!("hour \"{number}\" is invalid for the 12-hour clock");
                    return Err(SqlError::new(SqlState::InvalidDatetimeFormat, message)
                        .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
                }
                self.is_late = self.is_late.or(Some(false));
                self.hour = number;
            }
            "TZH" => self.zone[0] = Some(number),
            "TZM" => self.zone[1] = Some(number),
            "MI" => self.minute = number,
            "SS" => self.second = number,
            "MS" => self.millis = fraction(3),
            "US" => self.micros = fraction(6),
            "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                self.micros = fraction(6);
                self.digits = keyword[2..].parse().ok();
            }
            "SSSS" | "SSSSS" => self.of_day = number,
            _ => {}
        }
        Ok(after)
    }

    /// Returns the microseconds since midnight.
    fn time(&self, text: &str) -> Result<i64> {
        let or = |given: i64, known: i64| if given == 0 { known } else { given };
        let mut hour = or(self.hour, self.of_day / 3600);
        let minute = or(self.minute, self.of_day / 60 % 60);
        let second = or(self.second, self.of_day % 60);
        if let Some(is_late) = self.is_late {
            if !(1..=12).contains(&hour) {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                return Err(SqlError::new(SqlState::InvalidDatetimeFormat, message)
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + if is_late { 12 } else { 0 };
        }
        let micros = self.millis.saturating_mul(1000).saturating_add(self.micros);
        let is_time = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..SECOND).contains(&micros);
        match is_time {
            true => Ok(hour * HOUR + minute * MINUTE + second * SECOND + micros),
            false => Err(out_of_range(text)),
        }
    }

    /// Returns the year: by two digits that of the century, without digits its first one.
    fn full_year(&self) -> Option<i64> {
        let year = self.year.filter(|year| *year != 0);
        let century = self.century.filter(|century| *century != 0);
        let century = century.map(|it| if self.is_before_christ { -it } else { it });
        match (year, century) {
            (Some(year), Some(century)) if self.year_width <= 2 => Some(match year % 100 {
                0 => century * 100 + i64::from(century < 0),
                digits if century >= 0 => (century - 1) * 100 + digits,
                digits => (century + 1) * 100 - digits + 1,
            }),
            (Some(year), _) => {
                let year = if self.is_before_christ { -year } else { year };
                // No year is 0.
                Some(year + i64::from(year < 0))
            }
            (None, Some(century)) if century >= 0 => Some((century - 1) * 100 + 1),
            (None, Some(century)) => Some(century * 100 + 1),
            (None, None) => None,
        }
    }

    /// Returns the days since 1970, from the fields in the order in which PostgreSQL reads them.
    fn date(&self, text: &str) -> Result<i64> {
        let fault = || out_of_range(text);
        let given = |field: Option<i64>| field.filter(|number| *number != 0);
        let dates = [self.year, self.century, self.julian, self.month, self.day];
        let counts = [self.week, self.week_of_month, self.of_year, self.weekday];
        if dates.iter().chain(&counts).flatten().any(|number| number.abs() > LARGEST_FIELD) {
            return Err(fault());
        }
        let known_year = self.full_year();
        let (mut year, mut month, mut day) = (known_year.unwrap_or(0), 1, 1);
        let civil = |days: i64| {
            let (year, month, day) = date_of(days);
            (year, i64::from(month), i64::from(day))
        };
        if let Some(julian) = given(self.julian) {
            (year, month, day) = civil(julian - 2_440_588);
        }
        let is_iso = self.is_iso == Some(true);
        let monday = |year: i64| {
            let fourth = days_of(year, 1, 4);
            fourth - (fourth + 3).rem_euclid(7)
        };
        let mut of_year = given(self.of_year);
        match given(self.week) {
            Some(week) if is_iso => {
                let weekday = given(self.weekday).unwrap_or(1);
                (year, month, day) = civil(monday(year) + (week - 1) * 7 + weekday - 1);
            }
            Some(week) => of_year = Some((week - 1) * 7 + 1),
            None => {}
        }
        let of_week = given(self.week_of_month).map(|week| (week - 1) * 7 + 1);
        day = of_week.or(given(self.day)).unwrap_or(day);
        month = given(self.month).unwrap_or(month);
        if let Some(of_year) = of_year.filter(|_| month <= 1 || day <= 1) {
            if year == 0 && !self.is_before_christ {
                let message = "cannot calculate day of year without year information";
                return Err(SqlError::new(SqlState::InvalidDatetimeFormat, message));
            }
            if is_iso {
                (year, month, day) = civil(monday(year) + of_year - 1);
            } else {
                if !(1..=days_of(year + 1, 1, 1) - days_of(year, 1, 1)).contains(&of_year) {
                    return Err(fault());
                }
                let (_, own_month, own_day) = civil(days_of(year, 1, 1) + of_year - 1);
                month = if month <= 1 { own_month } else { month };
                day = if day <= 1 { own_day } else { day };
            }
        }
        let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month));
        let month = month.ok_or_else(fault)?;
        let day = u32::try_from(day).ok();
        let day = day.filter(|day| (1..=days_in_month(year, month)).contains(day));
        Ok(days_of(year, month, day.ok_or_else(fault)?))
    }

    fn finish(&self, text: &str) -> Result<i64> {
        let time = self.time(text)?;
        let midnight = self.date(text)?.checked_mul(DAY);
        // A moment is rounded half away from 2000-01-01, as in PostgreSQL.
        let rounded = |moment: i64| {
            let unit = 10_i64.pow(6 - self.digits.unwrap_or(6).min(6));
            let from_2000 = moment - YEAR_2000;
            let half = if from_2000 < 0 { -(unit / 2) } else { unit / 2 };
            (from_2000 + half) / unit * unit + YEAR_2000
        };
        let moment = midnight.and_then(|midnight| midnight.checked_add(time)).map(rounded);
        moment.filter(|moment| is_timestamp(*moment)).ok_or_else(|| out_of_range(text))
    }
}
