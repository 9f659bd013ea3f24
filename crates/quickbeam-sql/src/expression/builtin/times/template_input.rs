//! Dates and times that a text writes by a template: `to_date` and `to_timestamp`.

use super::interval_ops::{moment, timestamp_out_of_range};
use super::templates::{DAYS, MONTHS, ROMAN_MONTHS, TemplatePart, parts};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, stable, strict, text};
use crate::types::{
    DAY, DataType, HOUR, MINUTE, SECOND, Value, date_of, days_in_month, days_of, is_timestamp,
};
use DataType::{Date, Text, TimestampTz};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
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

/// The moment 2000-01-01.
const YEAR_2000: i64 = 10_957 * DAY;

/// No field of a date is greater.
const LARGEST_FIELD: i64 = 10_000_000;

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
        "Y" | "I" | "D" | "Q" | "W" | "ID" | "J" => 1,
        "US" | "FF6" => 6,
        "FF1" => 1,
        "FF2" => 2,
        "FF3" => 3,
        "SSSS" | "FF4" => 4,
        "SSSSS" | "FF5" => 5,
        _ => return None,
    })
}

/// Returns whether the ending of an ordinal number may follow a field.
fn has_ordinal(keyword: &str) -> bool {
    keyword == "Y,YYY" || width_of(keyword).is_some() && !keyword.starts_with("TZ")
}

/// Returns whether digits may follow a number at once: its field then has a fixed width.
fn is_digit_part(part: &TemplatePart<'_>) -> bool {
    match part {
        TemplatePart::Keyword(keyword, ..) => {
            width_of(keyword).is_some() && *keyword != "TZH" || *keyword == "Y,YYY"
        }
        TemplatePart::Literal(character) | TemplatePart::Quoted(character) => {
            character.is_ascii_digit()
        }
        TemplatePart::Ordinal(_) | TemplatePart::Fixed => false,
    }
}

/// The spaces of C.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// Drops spaces, and counts them.
fn without_spaces<'t>(text: &'t str, skipped: &mut usize) -> &'t str {
    let rest = text.trim_start_matches(is_space);
    *skipped += text.len() - rest.len();
    rest
}

/// Drops the first character.
fn after_character(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

/// Reads a number of `width` characters, or of any length if it is open. Returns its value and its
/// characters, and the rest of the text.
fn number_of<'t>(
    text: &'t str,
    keyword: &str,
    width: usize,
    is_open: bool,
) -> Result<(i64, usize, &'t str)> {
    let rest = text.trim_start_matches(is_space);
    let refuse = |message: String, detail: String| {
        SqlError::new(SqlState::InvalidDatetimeFormat, message).with_detail(detail)
    };
    let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
    if !is_open && rest.len() < width {
        let message = format!("source string too short for \"{keyword}\" formatting field");
        let left = rest.len();
        let detail = format!("Field requires {width} characters, but only {left} remain.");
        return Err(refuse(message, detail).with_hint(hint));
    }
    let shown = (0..=width.min(rest.len())).rev().find_map(|end| rest.get(..end));
    let shown = shown.unwrap_or_default();
    let source = if is_open { rest } else { shown };
    let sign = usize::from(source.starts_with(['-', '+']));
    let digits = source.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    let used = if digits == 0 { 0 } else { sign + digits };
    let invalid = || format!("invalid value \"{shown}\" for \"{keyword}\"");
    if used == 0 {
        return Err(refuse(invalid(), "Value must be an integer.".to_owned()));
    }
    if !is_open && used < width {
        let detail = format!("Field requires {width} characters, but only {used} could be parsed.");
        return Err(refuse(invalid(), detail).with_hint(hint));
    }
    let number = source.get(..used).and_then(|written| written.parse::<i32>().ok());
    let number = number.ok_or_else(|| {
        let message = format!("value for \"{keyword}\" in source string is out of range");
        SqlError::new(SqlState::DatetimeFieldOverflow, message)
            .with_detail("Value must be in the range -2147483648 to 2147483647.")
    })?;
    Ok((number.into(), used, rest.get(used..).unwrap_or_default()))
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
pub(super) fn read(text: &str, template: &str) -> Result<(i64, Option<i64>)> {
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
    let (mut is_fixed, mut skipped) = (is_exact, 0);
    for (at, part) in parts.iter().enumerate() {
        // The field before it has read the ending.
        if let TemplatePart::Ordinal(_) = part {
            continue;
        }
        // A text that ends early leaves the remaining fields as they are.
        match rest.is_empty() {
            true if is_exact => {
                return refuse("input string is too short for datetime format".to_owned());
            }
            true => break,
            false => {}
        }
        let is_field = matches!(part, TemplatePart::Keyword(..) | TemplatePart::Fixed);
        if !is_fixed && (is_field || at == 0) {
            rest = without_spaces(rest, &mut skipped);
        }
        match part {
            TemplatePart::Literal(character) if !character.is_alphanumeric() => {
                let matches_text = rest.starts_with(*character);
                if is_exact && !matches_text {
                    return refuse(format!("unmatched format separator \"{character}\""));
                }
                // It stands for one space or separator, or for none.
                let is_separator = |c: char| is_space(c) || c.is_ascii_punctuation();
                let is_there = rest.starts_with(is_separator);
                if is_fixed || is_there {
                    rest = after_character(rest);
                } else {
                    skipped = skipped.saturating_sub(1);
                }
            }
            TemplatePart::Literal(character) | TemplatePart::Quoted(character) => {
                if is_exact && !rest.starts_with(*character) {
                    return refuse(format!("unmatched format character \"{character}\""));
                }
                // It stands for any character, perhaps for a space that was skipped.
                match skipped.checked_sub(1).filter(|_| !is_fixed) {
                    Some(fewer) => skipped = fewer,
                    None => rest = after_character(rest),
                }
            }
            TemplatePart::Ordinal(_) => {}
            TemplatePart::Fixed => is_fixed = true,
            TemplatePart::Keyword(keyword, _, fills) => {
                found.take_convention(keyword)?;
                let next = parts.get(at + 1);
                let is_open = *fills || !next.is_some_and(is_digit_part);
                if *keyword == "TZH" {
                    let before = text.len() - rest.len();
                    let is_after_minus =
                        skipped > 0 && text.get(..before).is_some_and(|it| it.ends_with('-'));
                    rest = found.read_zone_sign(rest, is_after_minus);
                }
                rest = found.read(keyword, rest, is_open)?;
                if let (Some(TemplatePart::Ordinal(_)), true) = (next, has_ordinal(keyword)) {
                    rest = after_character(after_character(rest));
                }
                if !is_fixed {
                    skipped = 0;
                    rest = without_spaces(rest, &mut skipped);
                }
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

    /// Reads the sign of a zone, which the template may have taken for a separator.
    fn read_zone_sign<'t>(&mut self, rest: &'t str, is_after_minus: bool) -> &'t str {
        match rest.strip_prefix(['-', '+', ' ']) {
            Some(after) => {
                self.is_west = rest.starts_with('-');
                after
            }
            None => {
                self.is_west = is_after_minus;
                rest
            }
        }
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
                self.weekday = Some(if day == 0 { 7 } else { day as i64 });
                return Ok(&rest[DAYS[day].len()..]);
            }
            "DY" => {
                let day = named(&DAYS, 3).ok_or_else(|| no_value(rest, keyword))?;
                self.weekday = Some(if day == 0 { 7 } else { day as i64 });
                return Ok(&rest[3..]);
            }
            _ => {}
        }
        if keyword == "Y,YYY" {
            let (year, rest) = grouped_year(rest)?;
            set(&mut self.year, year, keyword)?;
            return Ok(rest);
        }
        let width = width_of(keyword).ok_or_else(|| {
            let message = format!("formatting field \"{keyword}\" is only supported in to_char");
            SqlError::new(SqlState::FeatureNotSupported, message)
        })?;
        let (number, length, after) = number_of(rest, keyword, width, is_open)?;
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
                set(&mut self.year, year_of(length, number), keyword)?;
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
