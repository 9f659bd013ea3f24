//! Dates and times in the forms beside ISO 8601: names of months, numbers in the order month, day,
//! year, years of two digits, Julian days, words and named time zones.
//!
//! - WORDS-1: the ISO reader of `datetime` goes first, and this reader takes what that one does not
//!   read. So ISO texts do not become slower.
//! - WORDS-2: numbers without a name of a month are in the order of `DateStyle`, unless the first
//!   has three digits or more: then it is the year.

use quickbeam::invariant;

use super::datetime::{DateTimeReader, Fault, Parsed, SECOND, days_in_month, days_of};
use super::text_settings::{DateOrder, SessionZone};

/// What a text says.
#[derive(Default)]
pub(super) struct Moment {
    /// Days since 1970-01-01.
    pub days: Option<i64>,
    /// Microseconds since midnight.
    pub time: Option<i64>,
    pub zone: Option<Zone>,
}

/// A time zone of a text.
pub(super) enum Zone {
    /// Seconds east of Greenwich.
    Offset(i64),
    Named(SessionZone),
}

impl Zone {
    /// Returns the offset at a local time, in seconds east of Greenwich.
    pub fn offset_at(&self, local: i64) -> i64 {
        match self {
            Zone::Offset(east) => *east,
            Zone::Named(zone) => zone.offset_of_local(local).into(),
        }
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// Returns the month of a name or abbreviation.
fn month_of(word: &str) -> Option<u32> {
    let is_named = |name: &&str| *name == word || name[..3] == *word;
    match word {
        "sept" => Some(9),
        _ => MONTHS.iter().position(is_named).map(|at| at as u32 + 1),
    }
}

fn is_weekday(word: &str) -> bool {
    WEEKDAYS.iter().any(|name| *name == word || name[..3] == *word)
        || matches!(word, "tues" | "weds" | "thur" | "thurs" | "wednes")
}

fn is_keyword(word: &str) -> bool {
    month_of(word).is_some()
        || is_weekday(word)
        || SessionZone::of_abbreviation(word).is_some()
        || matches!(word, "j" | "jd" | "julian" | "t" | "am" | "pm" | "bc" | "ad" | "at" | "on")
}

/// The numbers of a date, as they are found.
struct DateFields {
    order: DateOrder,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    of_year: Option<i64>,
    days: Option<i64>,
    has_month_name: bool,
    has_short_year: bool,
}

impl DateFields {
    fn of_order(order: DateOrder) -> DateFields {
        DateFields {
            order,
            year: None,
            month: None,
            day: None,
            of_year: None,
            days: None,
            has_month_name: false,
            has_short_year: false,
        }
    }

    fn is_complete(&self) -> bool {
        self.days.is_some()
            || self.year.is_some() && self.of_year.is_some()
            || self.year.is_some() && self.month.is_some() && self.day.is_some()
    }

    fn is_empty(&self) -> bool {
        self.year.is_none() && self.month.is_none() && self.day.is_none() && self.days.is_none()
    }

    fn set_year(&mut self, digits: usize, value: i64) {
        self.year = Some(value);
        self.has_short_year = digits <= 2;
    }

    fn name_month(&mut self, month: u32) -> Parsed<()> {
        match self.month {
            Some(_) if self.has_month_name => return Err(Fault::Syntax),
            // The number before the name was the day.
            Some(number) if self.day.is_none() => self.day = Some(number),
            Some(_) => return Err(Fault::Syntax),
            None => {}
        }
        self.month = Some(month.into());
        self.has_month_name = true;
        Ok(())
    }

    /// Takes a number that stands alone or between separators.
    fn number(&mut self, digits: usize, value: i64) -> Parsed<()> {
        let is_first = self.is_empty();
        if digits == 3 && self.year.is_some() && self.month.is_none() && self.day.is_none() {
            self.of_year = Some(value);
            return Ok(());
        }
        let is_year = digits >= 3 || self.order == DateOrder::Ymd;
        match (self.year, self.month, self.day) {
            (None, None, None) if is_year => self.set_year(digits, value),
            (None, None, None) if self.order == DateOrder::Dmy => self.day = Some(value),
            (None, None, _) => self.month = Some(value),
            (Some(_), None, _) => self.month = Some(value),
            (None, Some(_), None) if self.has_month_name && is_year => {
                self.set_year(digits, value);
            }
            (None, Some(_), None) => self.day = Some(value),
            (Some(year), Some(_), None)
                if self.has_month_name && digits >= 3 && self.has_short_year =>
            {
                self.day = Some(year);
                self.set_year(digits, value);
            }
            (Some(_), Some(_), None) => self.day = Some(value),
            (None, Some(_), Some(_)) => self.set_year(digits, value),
            (Some(_), Some(_), Some(_)) => return Err(Fault::Syntax),
        }
        if is_first {
            invariant!(WORDS_2, is_year == self.year.is_some(), "{digits} digits first");
        }
        Ok(())
    }

    /// Takes digits without separators: `yyyymmdd` or `yymmdd`.
    fn run_together(&mut self, digits: &str) -> Parsed<()> {
        let (year, rest) = digits.split_at(digits.len() - 4);
        let number = |text: &str| text.parse::<i64>().map_err(|_| Fault::Range);
        self.set_year(year.len(), number(year)?);
        (self.month, self.day) = (Some(number(&rest[..2])?), Some(number(&rest[2..])?));
        Ok(())
    }

    /// Takes the parts of a date with separators.
    fn separated(&mut self, text: &str) -> Parsed<()> {
        let parts = date_parts(text);
        // A name of a month leaves no doubt, so it comes first.
        for part in parts.iter().filter(|part| part.starts_with(char::is_alphabetic)) {
            let month = month_of(&part.to_lowercase()).ok_or(Fault::Syntax)?;
            self.name_month(month)?;
        }
        for part in parts.iter().filter(|part| !part.starts_with(char::is_alphabetic)) {
            if !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(Fault::Syntax);
            }
            self.number(part.len(), part.parse().map_err(|_| Fault::Range)?)?;
        }
        Ok(())
    }

    fn finish(self, is_before_christ: bool) -> Parsed<Option<i64>> {
        if self.is_empty() {
            return Ok(None);
        }
        if let Some(days) = self.days {
            return Ok(Some(days));
        }
        let year = match self.year.ok_or(Fault::Syntax)? {
            0 if is_before_christ => return Err(Fault::Range),
            year if is_before_christ => 1 - year,
            year @ 0..=69 if self.has_short_year => year + 2000,
            year @ 70..=99 if self.has_short_year => year + 1900,
            0 => return Err(Fault::Range),
            year => year,
        };
        if !(-4713..=5_874_897).contains(&year) {
            return Err(Fault::Limit);
        }
        if let Some(of_year) = self.of_year {
            let last = if days_in_month(year, 2) == 29 { 366 } else { 365 };
            if !(1..=last).contains(&of_year) {
                return Err(Fault::Range);
            }
            return Ok(Some(days_of(year, 1, 1) + of_year - 1));
        }
        let (month, day) = (self.month.ok_or(Fault::Syntax)?, self.day.ok_or(Fault::Syntax)?);
        let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month));
        let month = month.ok_or(Fault::Range)?;
        let day =
            u32::try_from(day).ok().filter(|day| (1..=days_in_month(year, month)).contains(day));
        Ok(Some(days_of(year, month, day.ok_or(Fault::Range)?)))
    }
}

/// Reads a text of words and numbers.
pub(super) fn read_words(text: &str, order: DateOrder) -> Parsed<Moment> {
    let mut words = WordReader {
        reader: DateTimeReader::new(text),
        date: DateFields::of_order(order),
        moment: Moment::default(),
        is_before_christ: false,
        is_julian: false,
        after_t: false,
    };
    while let Some(first) = words.reader.rest.chars().next() {
        match first {
            '0'..='9' => words.read_number()?,
            '+' | '-' if words.moment.zone.is_none() => {
                words.moment.zone = words.reader.zone()?.map(Zone::Offset);
            }
            first if first.is_ascii_alphabetic() => words.read_word()?,
            '+' | '-' => return Err(Fault::Syntax),
            first if first.is_whitespace() || first.is_ascii_punctuation() => {
                words.reader.rest = &words.reader.rest[first.len_utf8()..];
            }
            _ => return Err(Fault::Syntax),
        }
    }
    if words.is_julian || words.after_t {
        return Err(Fault::Syntax);
    }
    words.moment.days = words.date.finish(words.is_before_christ)?;
    Ok(words.moment)
}

/// A text of words and numbers while it is read.
struct WordReader<'t> {
    reader: DateTimeReader<'t>,
    date: DateFields,
    moment: Moment,
    is_before_christ: bool,
    /// The next number is one of days, after `J`.
    is_julian: bool,
    /// The next number is a time, after `T`.
    after_t: bool,
}

impl WordReader<'_> {
    /// Reads what begins with a digit.
    fn read_number(&mut self) -> Parsed<()> {
        let (reader, date, moment) = (&mut self.reader, &mut self.date, &mut self.moment);
        let rest = reader.rest;
        let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        let next = rest.as_bytes().get(digits.len());
        match (next, digits.len()) {
            (_, _) if self.is_julian => {
                let (_, number) = reader.number()?;
                date.days = Some(number - 2_440_588);
                self.is_julian = false;
            }
            (Some(b':'), _) => moment.time = Some(once(&moment.time, reader.time()?)?),
            (_, 4 | 6) if self.after_t || date.is_complete() => {
                moment.time = Some(once(&moment.time, reader.time()?)?);
            }
            (Some(b'-' | b'/' | b'.'), _) if !date.is_complete() => {
                // As in PostgreSQL, a date in this form does not follow the time.
                if moment.time.is_some() && date.is_empty() {
                    return Err(Fault::Syntax);
                }
                let end = date_end(rest, digits.len());
                date.separated(&rest[..end])?;
                if next != Some(&b'.') && !date.is_complete() {
                    return Err(Fault::Syntax);
                }
                reader.rest = &rest[end..];
            }
            (_, 6 | 8) if date.is_empty() => {
                date.run_together(digits)?;
                reader.rest = &rest[digits.len()..];
            }
            _ => {
                let (length, number) = reader.number()?;
                if date.is_complete() {
                    return Err(Fault::Syntax);
                }
                date.number(length, number)?;
            }
        }
        self.after_t = false;
        Ok(())
    }

    /// Reads what begins with a letter: a word, or a name of several parts.
    fn read_word(&mut self) -> Parsed<()> {
        let rest = self.reader.rest;
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let word = rest[..end].to_ascii_lowercase();
        let next = rest[end..].chars().next();
        let is_longer = matches!(next, Some('-' | '/' | '_' | '+' | '0'..='9' | '.'));
        if is_longer
            && (!is_keyword(&word)
                || matches!(next, Some('-' | '/' | '.')) && month_of(&word).is_some())
        {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "-/_+.:".contains(c);
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let name = &rest[..end];
            self.reader.rest = &rest[end..];
            if month_of(&word).is_some() {
                self.date.separated(name)?;
            } else {
                self.moment.zone = Some(once_zone(&self.moment.zone, name)?);
            }
            return Ok(());
        }
        self.reader.rest = &rest[end..];
        self.take_word(&word)
    }

    fn take_word(&mut self, word: &str) -> Parsed<()> {
        let moment = &mut self.moment;
        match word {
            "t" => self.after_t = true,
            "j" | "jd" | "julian" => self.is_julian = true,
            "bc" => self.is_before_christ = true,
            "ad" | "at" | "on" => {}
            "am" | "pm" => moment.time = Some(half_day(moment.time, word == "pm")?),
            "allballs" => {
                moment.time = Some(once(&moment.time, 0)?);
                moment.zone = Some(Zone::Offset(0));
            }
            "dst" if moment.zone.is_some() => {}
            word if is_weekday(word) => {}
            word => match (month_of(word), SessionZone::of_abbreviation(word)) {
                (Some(month), _) => self.date.name_month(month)?,
                (None, Some(zone)) if moment.zone.is_none() => {
                    moment.zone = Some(match zone {
                        SessionZone::Fixed(east, _) => Zone::Offset(east.into()),
                        zone => Zone::Named(zone),
                    });
                    if let Some('+' | '-') = self.reader.rest.chars().next() {
                        // As in POSIX, the offset after a name is positive to the west.
                        let offset = self.reader.zone()?.unwrap_or_default();
                        moment.zone = Some(Zone::Offset(-offset));
                    }
                }
                _ if word.len() > 2 => moment.zone = Some(once_zone(&moment.zone, word)?),
                _ => return Err(Fault::Syntax),
            },
        }
        Ok(())
    }
}

/// Returns the length of the date at the start of `text`. It begins with `digits` digits and a
/// separator. A zone may follow a date of numbers without a blank.
fn date_end(text: &str, digits: usize) -> usize {
    let (separator, second) = (text[digits..].chars().next(), text[digits..].chars().nth(1));
    let is_numeric = second.is_some_and(|c| c.is_ascii_digit());
    let is_part = |c: char| match is_numeric {
        true => c.is_ascii_digit() || Some(c) == separator,
        false => c.is_ascii_alphanumeric() || Some(c) == separator,
    };
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Returns the numbers and names of a date. As in PostgreSQL, any character ends one, so the `Z` of
/// `10-Jan-2026Z` does not count.
fn date_parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let begun = &rest[start..];
        let is_number = begun.starts_with(|c: char| c.is_ascii_digit());
        let is_part = |c: char| match is_number {
            true => c.is_ascii_digit(),
            false => c.is_ascii_alphabetic(),
        };
        let end = begun.find(|c| !is_part(c)).unwrap_or(begun.len());
        parts.push(&begun[..end]);
        let mut behind = begun[end..].chars();
        behind.next();
        rest = behind.as_str();
    }
    parts
}

/// Returns the value, or an error if there is one already.
fn once(before: &Option<i64>, value: i64) -> Parsed<i64> {
    if before.is_some() { Err(Fault::Syntax) } else { Ok(value) }
}

/// Returns the zone of a name, or an error if there is a zone already.
fn once_zone(before: &Option<Zone>, name: &str) -> Parsed<Zone> {
    if before.is_some() {
        return Err(Fault::Syntax);
    }
    let found = SessionZone::of_database(name).map(|(zone, _)| Zone::Named(zone));
    let is_region = name.contains('/');
    found.ok_or(if is_region { Fault::UnknownZone } else { Fault::Syntax })
}

/// Applies `am` or `pm` to a time.
fn half_day(time: Option<i64>, is_late: bool) -> Parsed<i64> {
    let time = time.ok_or(Fault::Syntax)?;
    let hour = 3600 * SECOND;
    let half = 12 * hour;
    if time > half + hour - 1 {
        return Err(Fault::Range);
    }
    Ok(time % half + if is_late { half } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::super::datetime::{parse_date, parse_time, parse_timestamptz};
    use super::super::output::{format_date, format_timestamptz};
    use super::super::text_settings::{DateOrder, TextSettings};

    const PLAIN: &TextSettings = &TextSettings::DEFAULT;

    #[test]
    fn dates_of_every_form_are_the_same_day() {
        for text in [
            "January 8, 1999",
            "1/8/1999",
            "1999-Jan-08",
            "Jan-08-1999",
            "08-Jan-99",
            "990108",
            "1999.008",
            "J2451187",
            "Fri 8 Jan 1999",
            "1999 01 08",
        ] {
            let mut shown = String::new();
            format_date(&mut shown, parse_date(text, PLAIN).unwrap(), PLAIN);
            assert_eq!(shown, "1999-01-08", "{text}");
        }
        for (text, code) in [("13/13/1999", "22008"), ("99-Jan-08", "22008"), ("Foo 8", "22007")] {
            assert_eq!(parse_date(text, PLAIN).unwrap_err().code(), code, "{text}");
        }
    }

    #[test]
    fn zones_have_names_and_abbreviations() {
        for (text, expected) in [
            ("2004-10-19 10:23:54 Europe/Berlin", "2004-10-19 08:23:54+00"),
            ("Oct 19 10:23:54 2004 EST", "2004-10-19 15:23:54+00"),
            ("20041019T102354", "2004-10-19 10:23:54+00"),
            ("2004-10-19 10:23:54 GMT+3", "2004-10-19 13:23:54+00"),
        ] {
            let mut shown = String::new();
            format_timestamptz(&mut shown, parse_timestamptz(text, PLAIN).unwrap(), PLAIN);
            assert_eq!(shown, expected, "{text}");
        }
        let unknown = parse_timestamptz("2004-10-19 10:23:54 Nowhere/City", PLAIN);
        assert_eq!(unknown.unwrap_err().code(), "22023");
        assert_eq!(parse_time("allballs", PLAIN).unwrap(), 0);
    }

    #[test]
    fn the_order_of_numbers_is_that_of_the_settings() {
        use DateOrder::{Dmy, Mdy, Ymd};
        for (order, text, expected) in [
            (Mdy, "1/2/2003", Some("2003-01-02")),
            (Dmy, "1/2/2003", Some("2003-02-01")),
            (Dmy, "13.1.2003", Some("2003-01-13")),
            (Dmy, "08-Jan-99", Some("1999-01-08")),
            (Ymd, "03.02.01", Some("2003-02-01")),
            (Ymd, "1/2/2003", None),
            (Ymd, "99-Jan-08", Some("1999-01-08")),
            (Ymd, "Jan 8 99", None),
            (Ymd, "1999-01-08", Some("1999-01-08")),
        ] {
            let settings = TextSettings { order, ..TextSettings::DEFAULT };
            let found = parse_date(text, &settings).ok().map(|days| {
                let mut shown = String::new();
                format_date(&mut shown, days, PLAIN);
                shown
            });
            assert_eq!(found.as_deref(), expected, "{order:?} {text}");
        }
    }
}
