//! Dates, times of day and timestamps: calendar arithmetic, and input in ISO form. Other forms of
//! input are in `datetime_words`, output is in `output`.
//!
//! The calendar is the proleptic Gregorian one. Conversions between a day number and a date follow
//! Howard Hinnant's "chrono-compatible low-level date algorithms".

use std::time::{SystemTime, UNIX_EPOCH};

use quickbeam::invariant;

use super::datetime_words::{Zone, read_words};
use super::text_settings::{DateOrder, TextSettings};
use crate::error::{Result, SqlError, SqlState};

/// Microseconds in a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub const DAY: i64 = 86_400 * SECOND;
/// The DATE `infinity`, after all other dates.
pub const DATE_INFINITY: i32 = i32::MAX;
/// The TIMESTAMP `infinity`, after all other timestamps.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;

/// The first day of DATE and TIMESTAMP, 4714-11-24 BC: day 0 of the Julian day numbers.
const FIRST_DAY: i64 = -2_440_588;
const FIRST_YEAR: i64 = -4713;
/// The last year of DATE, and of TIMESTAMP.
const LAST_YEAR: i64 = 5_874_897;
const LAST_TIMESTAMP_YEAR: i64 = 294_246;

/// Returns whether a number of days since 1970-01-01 is in the range of DATE.
#[must_use]
pub fn is_date(days: i64) -> bool {
    (FIRST_DAY..=days_of(LAST_YEAR, 12, 31)).contains(&days)
}

/// Returns whether microseconds since 1970-01-01 are in the range of TIMESTAMP.
#[must_use]
pub fn is_timestamp(moment: i64) -> bool {
    let day = moment.div_euclid(DAY);
    (FIRST_DAY..=days_of(LAST_TIMESTAMP_YEAR, 12, 31)).contains(&day)
}

/// Returns the number of days from 1970-01-01 to a date.
#[must_use]
pub fn days_of(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the year, month and day of a number of days since 1970-01-01.
#[must_use]
pub fn date_of(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * from_march + 2) / 5 + 1) as u32;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the number of days of a month.
#[must_use]
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The kinds of errors in a date or time text.
pub(super) enum Fault {
    Syntax,
    /// A field that no date or time has.
    Range,
    /// A date or time that the type does not have.
    Limit,
    Zone,
    UnknownZone,
}

pub(super) type Parsed<T> = std::result::Result<T, Fault>;

fn explain<T>(parsed: Parsed<T>, kind: &str, text: &str) -> Result<T> {
    parsed.map_err(|fault| match fault {
        Fault::Syntax => SqlError::new(
            SqlState::InvalidDatetimeFormat,
            format!("invalid input syntax for type {kind}: \"{text}\""),
        ),
        Fault::Range => SqlError::new(
            SqlState::DatetimeFieldOverflow,
            format!("date/time field value out of range: \"{text}\""),
        ),
        Fault::Limit => {
            let kind = kind.split(' ').next().unwrap_or(kind);
            let message = format!("{kind} out of range: \"{text}\"");
            SqlError::new(SqlState::DatetimeFieldOverflow, message)
        }
        Fault::UnknownZone => SqlError::new(
            SqlState::InvalidParameterValue,
            format!("time zone of \"{text}\" not recognized"),
        ),
        Fault::Zone => SqlError::new(
            SqlState::InvalidTimeZoneDisplacement,
            format!("time zone displacement out of range: \"{text}\""),
        ),
    })
}

/// A cursor over a date or time text.
pub(super) struct DateTimeReader<'a> {
    pub(super) rest: &'a str,
}

impl<'a> DateTimeReader<'a> {
    pub(super) fn new(text: &'a str) -> DateTimeReader<'a> {
        DateTimeReader { rest: text.trim() }
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.rest.strip_prefix(wanted);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn accept_word(&mut self, wanted: &str) -> bool {
        let length = self.rest.chars().take_while(char::is_ascii_alphabetic).count();
        let (word, after) = self.rest.split_at(length);
        let found = word.eq_ignore_ascii_case(wanted);
        if found {
            self.rest = after;
        }
        found
    }

    /// Reads digits; returns their count and the number they form.
    pub(super) fn number(&mut self) -> Parsed<(usize, i64)> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = self.rest.split_at(length);
        if digits.is_empty() {
            return Err(Fault::Syntax);
        }
        self.rest = after;
        Ok((length, digits.parse().map_err(|_| Fault::Range)?))
    }

    fn date(&mut self) -> Parsed<(i64, u32, u32)> {
        let (length, first) = self.number()?;
        if length == 8 && !self.rest.starts_with(['-', '/']) {
            return Ok((first / 10_000, (first / 100 % 100) as u32, (first % 100) as u32));
        }
        let separator = if self.accept('-') { '-' } else { '/' };
        if separator == '/' && !self.accept('/') || length < 3 {
            return Err(Fault::Syntax);
        }
        let (_, month) = self.number()?;
        if !self.accept(separator) {
            return Err(Fault::Syntax);
        }
        let (_, day) = self.number()?;
        let small = |n: i64| u32::try_from(n).map_err(|_| Fault::Range);
        Ok((first, small(month)?, small(day)?))
    }

    /// Reads hours, minutes, seconds and a fraction; returns microseconds since midnight.
    pub(super) fn time(&mut self) -> Parsed<i64> {
        let (length, mut hours) = self.number()?;
        let minutes;
        let (mut seconds, mut micros) = (0, 0);
        let has_seconds = match length {
            // hhmm and hhmmss.
            4 => {
                (hours, minutes) = (hours / 100, hours % 100);
                false
            }
            6 => {
                (hours, minutes, seconds) = (hours / 10_000, hours / 100 % 100, hours % 100);
                true
            }
            _ if self.accept(':') => {
                minutes = self.number()?.1;
                let more = self.accept(':');
                if more {
                    seconds = self.number()?.1;
                }
                more
            }
            _ => return Err(Fault::Syntax),
        };
        if has_seconds && self.accept('.') {
            micros = self.fraction()?;
        }
        self.skip_blanks();
        let afternoon = self.accept_word("pm");
        if afternoon || self.accept_word("am") {
            if hours > 12 {
                return Err(Fault::Range);
            }
            hours = hours % 12 + if afternoon { 12 } else { 0 };
        }
        // Second 60 is the first second of the next minute.
        let total = ((hours * 60 + minutes) * 60 + seconds) * SECOND + micros;
        if hours > 24 || minutes > 59 || seconds > 60 || total > DAY {
            return Err(Fault::Range);
        }
        Ok(total)
    }

    /// Reads the digits of a fraction of a second as microseconds, rounded as a floating-point
    /// number is.
    fn fraction(&mut self) -> Parsed<i64> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = self.rest.split_at(length);
        self.rest = after;
        if length > 6 {
            let exact: f64 = format!("0.{digits}").parse().map_err(|_| Fault::Syntax)?;
            return Ok((exact * 1e6).round_ties_even() as i64);
        }
        let mut padded = digits.to_owned();
        while padded.len() < 6 {
            padded.push('0');
        }
        padded.parse().map_err(|_| Fault::Syntax)
    }

    /// Reads a time zone; returns seconds east of Greenwich, or `None` if the text has none.
    pub(super) fn zone(&mut self) -> Parsed<Option<i64>> {
        self.skip_blanks();
        if self.accept_word("z") || self.accept_word("utc") || self.accept_word("gmt") {
            return Ok(Some(0));
        }
        let west = self.accept('-');
        if !west && !self.accept('+') {
            return Ok(None);
        }
        let (length, mut hours) = self.number()?;
        let (mut minutes, mut seconds) = (0, 0);
        if length > 2 {
            (hours, minutes) = (hours / 100, hours % 100);
        } else if self.accept(':') {
            minutes = self.number()?.1;
            if self.accept(':') {
                seconds = self.number()?.1;
            }
        }
        if hours > 15 || minutes > 59 || seconds > 59 {
            return Err(Fault::Zone);
        }
        let east = (hours * 60 + minutes) * 60 + seconds;
        Ok(Some(if west { -east } else { east }))
    }

    /// Reads an optional era and requires the end of the text. Returns true for `BC`.
    fn end(&mut self) -> Parsed<bool> {
        self.skip_blanks();
        let before_christ = self.accept_word("bc");
        if !before_christ {
            self.accept_word("ad");
        }
        if self.is_done() { Ok(before_christ) } else { Err(Fault::Syntax) }
    }
}

fn checked_days(date: (i64, u32, u32), before_christ: bool, last: i64) -> Parsed<i64> {
    let (year, month, day) = date;
    let year = if before_christ { 1 - year } else { year };
    let is_date = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    if !is_date || date.0 == 0 {
        return Err(Fault::Range);
    }
    if !(FIRST_YEAR..=last).contains(&year) {
        return Err(Fault::Limit);
    }
    let days = days_of(year, month, day);
    if days < FIRST_DAY { Err(Fault::Limit) } else { Ok(days) }
}

fn special(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("infinity") {
        Some(TIMESTAMP_INFINITY)
    } else if text.eq_ignore_ascii_case("-infinity") {
        Some(i64::MIN)
    } else if text.eq_ignore_ascii_case("epoch") {
        Some(0)
    } else {
        None
    }
}

/// Returns what the ISO reader found; a text that it does not know goes to the reader of words.
fn or_words<T>(iso: Parsed<T>, words: impl FnOnce() -> Parsed<T>) -> Parsed<T> {
    match iso {
        Err(Fault::Syntax) => words(),
        known => known,
    }
}

fn words_date(text: &str, order: DateOrder) -> Parsed<i32> {
    invariant!(WORDS_1, iso_date(text).is_err(), "{text:?}");
    let days = read_words(text, order)?.days.ok_or(Fault::Syntax)?;
    if is_date(days) { Ok(days as i32) } else { Err(Fault::Limit) }
}

fn words_moment(text: &str, order: DateOrder) -> Parsed<(i64, Option<Zone>)> {
    invariant!(WORDS_1, parse_moment(text).is_err(), "{text:?}");
    let found = read_words(text, order)?;
    let days = found.days.ok_or(Fault::Syntax)?;
    let moment = days.checked_mul(DAY).ok_or(Fault::Range)? + found.time.unwrap_or_default();
    if is_timestamp(moment) { Ok((moment, found.zone)) } else { Err(Fault::Limit) }
}

/// Reads a date of ISO 8601. A time of day is checked and discarded.
fn iso_date(text: &str) -> Parsed<i32> {
    let mut reader = DateTimeReader::new(text);
    let date = reader.date()?;
    if reader.accept('T') || reader.rest.starts_with(' ') {
        reader.skip_blanks();
        if reader.rest.starts_with(|c: char| c.is_ascii_digit()) {
            reader.time()?;
            reader.zone()?;
        }
    }
    let before_christ = reader.end()?;
    Ok(checked_days(date, before_christ, LAST_YEAR)? as i32)
}

/// Reads a DATE; returns days since 1970-01-01.
pub fn parse_date(text: &str, settings: &TextSettings) -> Result<i32> {
    match special(text) {
        Some(TIMESTAMP_INFINITY) => return Ok(DATE_INFINITY),
        Some(i64::MIN) => return Ok(i32::MIN),
        Some(_) => return Ok(0),
        None => {}
    }
    explain(or_words(iso_date(text), || words_date(text, settings.order)), "date", text)
}

/// Reads a TIME; returns microseconds since midnight.
pub fn parse_time(text: &str, settings: &TextSettings) -> Result<i64> {
    let parse = || {
        let mut reader = DateTimeReader::new(text);
        let time = reader.time()?;
        reader.zone()?;
        if reader.is_done() { Ok(time) } else { Err(Fault::Syntax) }
    };
    let words = || {
        let found = read_words(text, settings.order)?;
        // The offset of a named zone depends on the date.
        match (found.zone, found.days) {
            (Some(Zone::Named(_)), None) => Err(Fault::Syntax),
            _ => found.time.ok_or(Fault::Syntax),
        }
    };
    explain(or_words(parse(), words), "time", text)
}

/// Reads a TIME WITH TIME ZONE; returns microseconds since midnight and seconds east of Greenwich.
/// A time without a zone has the offset that the zone of the settings has today.
pub fn parse_timetz(text: &str, settings: &TextSettings) -> Result<(i64, i64)> {
    let today = |time: i64| {
        let zone = settings.zone;
        let local = zone.to_local(current_moment()).unwrap_or_default();
        i64::from(zone.offset_of_local(local - local.rem_euclid(DAY) + time))
    };
    let parse = || {
        let mut reader = DateTimeReader::new(text);
        let time = reader.time()?;
        let zone = reader.zone()?;
        let east = zone.unwrap_or_else(|| today(time));
        if reader.is_done() { Ok((time, east)) } else { Err(Fault::Syntax) }
    };
    let words = || {
        let found = read_words(text, settings.order)?;
        let time = found.time.ok_or(Fault::Syntax)?;
        // The offset of a named zone depends on the date.
        let east = match (found.zone, found.days) {
            (None, Some(days)) => {
                settings.zone.offset_of_local(days.saturating_mul(DAY) + time).into()
            }
            (None, None) => today(time),
            (Some(Zone::Offset(east)), _) => east,
            (Some(zone), Some(days)) => zone.offset_at(days.saturating_mul(DAY) + time),
            (Some(_), None) => return Err(Fault::Syntax),
        };
        Ok((time, east))
    };
    explain(or_words(parse(), words), "time with time zone", text)
}

fn parse_moment(text: &str) -> Parsed<(i64, Option<i64>)> {
    let mut reader = DateTimeReader::new(text);
    let date = reader.date()?;
    let mut time = 0;
    let mut zone = None;
    let has_t = reader.accept('T') || reader.accept('t');
    reader.skip_blanks();
    if has_t || reader.rest.starts_with(|c: char| c.is_ascii_digit()) {
        time = reader.time()?;
        zone = reader.zone()?;
    }
    let before_christ = reader.end()?;
    let days = checked_days(date, before_christ, LAST_TIMESTAMP_YEAR)?;
    let moment = days * DAY + time;
    if is_timestamp(moment) { Ok((moment, zone)) } else { Err(Fault::Limit) }
}

/// Reads a TIMESTAMP; returns microseconds since 1970-01-01. A time zone is checked and discarded.
pub fn parse_timestamp(text: &str, settings: &TextSettings) -> Result<i64> {
    if let Some(moment) = special(text) {
        return Ok(moment);
    }
    let parsed = parse_moment(text).map(|(moment, _)| moment);
    let words = || words_moment(text, settings.order).map(|(moment, _)| moment);
    explain(or_words(parsed, words), "timestamp", text)
}

/// Reads a TIMESTAMP WITH TIME ZONE; returns microseconds since 1970-01-01 UTC. A text without a
/// time zone is in the zone of the settings.
pub fn parse_timestamptz(text: &str, settings: &TextSettings) -> Result<i64> {
    if let Some(moment) = special(text) {
        return Ok(moment);
    }
    let own_zone = |local: i64| i64::from(settings.zone.offset_of_local(local));
    let parsed = parse_moment(text).and_then(|(moment, zone)| {
        let moment = moment - zone.unwrap_or_else(|| own_zone(moment)) * SECOND;
        if is_timestamp(moment) { Ok(moment) } else { Err(Fault::Limit) }
    });
    let words = || {
        let (moment, zone) = words_moment(text, settings.order)?;
        let east = zone.map_or_else(|| own_zone(moment), |zone| zone.offset_at(moment));
        let moment = moment - east * SECOND;
        if is_timestamp(moment) { Ok(moment) } else { Err(Fault::Limit) }
    };
    explain(or_words(parsed, words), "timestamp with time zone", text)
}

/// Returns the current time in microseconds since 1970 UTC.
#[must_use]
pub fn current_moment() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_micros()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::output::{format_date, format_time, format_timestamp, format_timestamptz};
    use crate::types::text_settings::SessionZone;

    const PLAIN: &TextSettings = &TextSettings::DEFAULT;

    fn shown(format: impl Fn(&mut String)) -> String {
        let mut out = String::new();
        format(&mut out);
        out
    }

    #[test]
    fn every_day_of_four_centuries_and_the_ends_are_found_again() {
        let days = (days_of(1800, 1, 1)..days_of(2200, 1, 1)).chain([
            days_of(-4712, 1, 1),
            days_of(5_874_897, 12, 31),
            0,
        ]);
        let mut before = None;
        for day in days {
            let date = date_of(day);
            assert_eq!(days_of(date.0, date.1, date.2), day);
            let text = shown(|out| format_date(out, day as i32, PLAIN));
            assert_eq!(parse_date(&text, PLAIN).unwrap(), day as i32, "{text}");
            assert_ne!(before.replace(date), Some(date));
        }
        assert_eq!((date_of(0), date_of(11_016)), ((1970, 1, 1), (2000, 2, 29)));
    }

    #[test]
    fn texts_are_read_as_postgresql_reads_them() {
        assert_eq!(
            parse_date("20240229", PLAIN).unwrap(),
            parse_date("2024-02-29", PLAIN).unwrap()
        );
        assert_eq!(
            shown(|out| format_date(out, parse_date("0044-03-15 BC", PLAIN).unwrap(), PLAIN)),
            "0044-03-15 BC"
        );
        for (text, expected) in [
            ("12:34", "12:34:00"),
            ("04:05:06.789", "04:05:06.789"),
            ("04:05 PM", "16:05:00"),
            ("24:00:00", "24:00:00"),
            ("23:59:60", "24:00:00"),
            ("00:00:00.0000005", "00:00:00"),
            ("00:00:00.0000015", "00:00:00.000002"),
        ] {
            assert_eq!(shown(|out| format_time(out, parse_time(text, PLAIN).unwrap())), expected);
        }
        let moment = parse_timestamptz("2004-10-19 10:23:54+02", PLAIN).unwrap();
        assert_eq!(shown(|out| format_timestamptz(out, moment, PLAIN)), "2004-10-19 08:23:54+00");
        let zone = SessionZone::of_offset(19_800).0;
        let india = &TextSettings { zone, ..TextSettings::DEFAULT };
        assert_eq!(
            shown(|out| format_timestamptz(out, moment, india)),
            "2004-10-19 13:53:54+05:30"
        );
        let local = parse_timestamp("1969-12-31T23:59:59.5", PLAIN).unwrap();
        assert_eq!(
            (local, shown(|out| format_timestamp(out, local, PLAIN))),
            (-500_000, "1969-12-31 23:59:59.5".into())
        );
        assert_eq!(
            shown(|out| format_timestamp(out, parse_timestamp("infinity", PLAIN).unwrap(), PLAIN)),
            "infinity"
        );
    }

    #[test]
    fn mistakes_are_told_apart() {
        let code = |result: Result<i32>| result.unwrap_err().code();
        for text in ["2023-02-29", "2023-13-01", "0000-01-01", "99999999-01-01", "2023-00-10"] {
            assert_eq!(code(parse_date(text, PLAIN)), "22008", "{text}");
        }
        for text in ["", "x", "2023", "2023-01", "2023-01-01x", "12-01", "٢٠٢٣-01-01"] {
            assert_eq!(code(parse_date(text, PLAIN)), "22007", "{text}");
        }
        assert_eq!(parse_time("25:00", PLAIN).unwrap_err().code(), "22008");
        assert_eq!(parse_time("10", PLAIN).unwrap_err().code(), "22007");
        assert_eq!(parse_timestamp("300000-01-01", PLAIN).unwrap_err().code(), "22008");
    }
}
