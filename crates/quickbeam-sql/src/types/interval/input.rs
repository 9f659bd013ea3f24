//! Intervals from texts, as PostgreSQL's `DecodeInterval` and `DecodeISO8601Interval` read them.
//!
//! A text is split into fields, which are read from the last to the first: a unit is that of the
//! number before it. No unit is counted twice.

use super::iso8601::Designated;
use super::units::{FieldSum, FieldUnit, IntervalFault, OF_TIME, Read};
use super::{HOUR, Interval, MINUTE};
use crate::error::{Result, SqlError, SqlState};
use crate::types::datetime::SECOND;
use crate::types::precise::IntervalFields;
use crate::types::text_settings::IntervalStyle;

/// Fields that a text may have.
const MOST_FIELDS: usize = 25;

/// What a field begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    /// A digit or point; perhaps a sign before it.
    Number,
    /// Digits and a colon.
    Time,
    /// A letter.
    Word,
}

/// A part of a text, in lower case and without blanks.
struct Field {
    kind: FieldKind,
    text: String,
}

/// Words of dates that a digit ends; after any other word, the digit belongs to it.
const DATE_WORDS: &[&str] = &[
    "ad",
    "allballs",
    "am",
    "apr",
    "april",
    "at",
    "aug",
    "august",
    "bc",
    "d",
    "dec",
    "december",
    "dow",
    "doy",
    "dst",
    "epoch",
    "feb",
    "february",
    "fri",
    "friday",
    "h",
    "infinity",
    "isodow",
    "isoyear",
    "j",
    "jan",
    "january",
    "jd",
    "jul",
    "julian",
    "july",
    "jun",
    "june",
    "m",
    "mar",
    "march",
    "may",
    "mm",
    "mon",
    "monday",
    "nov",
    "november",
    "now",
    "oct",
    "october",
    "on",
    "pm",
    "s",
    "sat",
    "sep",
    "sun",
    "t",
    "thu",
    "today",
    "tue",
    "wed",
    "y",
    "yesterday",
];

/// A text that is split into fields.
struct Splitter<'t> {
    rest: &'t str,
    field: String,
}

impl Splitter<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) {
        if let Some(next) = self.peek() {
            self.field.push(next.to_ascii_lowercase());
            self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&belongs) {
            self.take();
        }
    }

    /// Takes a field that begins with a digit.
    fn number(&mut self) -> FieldKind {
        let is_digit = |c: char| c.is_ascii_digit();
        self.take_while(is_digit);
        match self.peek() {
            Some(':') => {
                self.take_while(|c| is_digit(c) || c == ':' || c == '.');
                return FieldKind::Time;
            }
            Some(delimiter @ ('-' | '/' | '.')) => {
                self.take();
                if self.peek().is_some_and(is_digit) {
                    self.take_while(is_digit);
                    if self.peek() == Some(delimiter) {
                        self.take_while(|c| is_digit(c) || c == delimiter);
                    }
                } else {
                    self.take_while(|c| c.is_ascii_alphanumeric() || c == delimiter);
                }
            }
            _ => {}
        }
        FieldKind::Number
    }

    /// Takes a field that begins with a letter.
    fn word(&mut self) {
        self.take_while(|c| c.is_ascii_alphabetic());
        let goes_on = match self.peek() {
            Some('-' | '/' | '.') => true,
            Some(c) if c == '+' || c.is_ascii_digit() => !DATE_WORDS.contains(&&*self.field),
            _ => false,
        };
        if goes_on {
            let is_part = |c| matches!(c, '+' | '-' | '/' | '_' | '.' | ':');
            self.take_while(|c| is_part(c) || c.is_ascii_alphanumeric());
        }
    }

    fn fields(mut self) -> Read<Vec<Field>> {
        let mut fields = Vec::new();
        while let Some(next) = self.peek() {
            let kind = match next {
                c if c.is_ascii_whitespace() || c == '\x0b' => {
                    self.skip();
                    continue;
                }
                c if c.is_ascii_digit() => self.number(),
                '.' => {
                    self.take();
                    self.take_while(|c| c.is_ascii_digit());
                    FieldKind::Number
                }
                c if c.is_ascii_alphabetic() => {
                    self.word();
                    FieldKind::Word
                }
                '+' | '-' => {
                    self.take();
                    while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
                        self.skip();
                    }
                    match self.peek() {
                        Some(c) if c.is_ascii_digit() => {
                            self.take_while(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | '-'));
                            FieldKind::Number
                        }
                        Some(c) if c.is_ascii_alphabetic() => FieldKind::Word,
                        _ => return Err(IntervalFault::Format),
                    }
                }
                c if c.is_ascii_punctuation() => {
                    self.skip();
                    continue;
                }
                _ => return Err(IntervalFault::Format),
            };
            fields.push(Field { kind, text: std::mem::take(&mut self.field) });
            if fields.len() > MOST_FIELDS {
                return Err(IntervalFault::Format);
            }
        }
        Ok(fields)
    }
}

/// Splits a text after the digits, with a sign, that it begins with. Returns their value.
fn whole_of(text: &str) -> Read<(i64, &str)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let (number, rest) = text.split_at(text.len() - unsigned.len() + digits);
    if digits == 0 {
        return Ok((0, text));
    }
    let number = number.parse().map_err(|_| IntervalFault::Overflow)?;
    Ok((number, rest))
}

/// Reads a fraction that begins with its point.
fn fraction_of(text: &str) -> Read<f64> {
    match text.len() {
        1 => Ok(0.0),
        _ => text.parse().map_err(|_| IntervalFault::Format),
    }
}

/// Reads the time `h:mm[:ss[.f]]` without a sign; returns microseconds.
fn clock(text: &str, fields: IntervalFields) -> Read<i64> {
    let micros_of = |text: &str| fraction_of(text).map(|it| (it * 1e6).round_ties_even() as i64);
    let (mut hours, rest) = whole_of(text)?;
    let (mut minutes, rest) = whole_of(rest.strip_prefix(':').ok_or(IntervalFault::Format)?)?;
    let (mut seconds, mut micros) = (0, 0);
    if rest.is_empty() {
        if fields == IntervalFields::MinuteToSecond {
            (hours, minutes, seconds) = (0, hours, minutes);
        }
    } else if rest.starts_with('.') {
        (hours, minutes, seconds) = (0, hours, minutes);
        micros = micros_of(rest)?;
    } else {
        let rest;
        (seconds, rest) = whole_of(text_after_colon(text)?)?;
        micros = if rest.is_empty() {
            0
        } else if rest.starts_with('.') {
            micros_of(rest)?
        } else {
            return Err(IntervalFault::Format);
        };
    }
    let is_valid = (0..60).contains(&minutes) && (0..=60).contains(&seconds) && hours >= 0;
    let sum = || {
        let whole = hours.checked_mul(HOUR)?.checked_add(minutes * MINUTE + seconds * SECOND)?;
        whole.checked_add(micros)
    };
    if is_valid { sum().ok_or(IntervalFault::Overflow) } else { Err(IntervalFault::Overflow) }
}

/// Returns the text after the second colon.
fn text_after_colon(text: &str) -> Read<&str> {
    text.splitn(3, ':').nth(2).ok_or(IntervalFault::Format)
}

/// Reads the fields of a text.
fn decode(text: &str, fields: IntervalFields, style: IntervalStyle) -> Read<FieldSum> {
    let all = Splitter { rest: text, field: String::new() }.fields()?;
    let is_signed = |field: &Field| field.text.starts_with(['-', '+']);
    // In the style of the SQL standard, a sign before the first field is that of all.
    let is_negative = style == IntervalStyle::SqlStandard
        && all.first().is_some_and(|first| first.text.starts_with('-'))
        && !all.iter().skip(1).any(is_signed);
    let (mut sum, mut seen, mut is_before) = (FieldSum::default(), 0_u16, false);
    let mut unit = None;
    for Field { kind, text } in all.iter().rev() {
        let has_clock = text.get(1..).is_some_and(|rest| rest.contains(':'));
        let signed = text.strip_prefix(['-', '+']);
        let time = match (kind, signed) {
            (FieldKind::Time, _) => Some(clock(text, fields)?),
            (FieldKind::Number, Some(unsigned)) if has_clock => {
                let sign = if text.starts_with('-') { -1 } else { 1 };
                clock(unsigned, fields).ok().map(|time| time * sign)
            }
            _ => None,
        };
        let of_field = if let Some(time) = time {
            sum.micros = if is_negative { -time.abs() } else { time };
            unit = Some(FieldUnit::Day);
            OF_TIME
        } else if *kind == FieldKind::Word {
            match (&**text, FieldUnit::named(text)) {
                ("ago", _) => (is_before, unit) = (true, None),
                (_, Some(named)) => unit = Some(named),
                _ => return Err(IntervalFault::Format),
            }
            continue;
        } else {
            let of_number = unit.unwrap_or_else(|| FieldUnit::last_of(fields));
            let (next, bits) = sum.add_number(text, of_number, is_negative)?;
            unit = Some(next);
            bits
        };
        if seen & of_field != 0 {
            return Err(IntervalFault::Format);
        }
        seen |= of_field;
    }
    match (seen, is_before) {
        (0, _) => Err(IntervalFault::Format),
        (_, true) => sum.negated(),
        (_, false) => Ok(sum),
    }
}

impl FieldSum {
    /// Adds a number of units. Returns the unit of a number before it, and the bits of the units.
    fn add_number(
        &mut self,
        text: &str,
        unit: FieldUnit,
        is_negative: bool,
    ) -> Read<(FieldUnit, u16)> {
        let (mut whole, rest) = whole_of(text)?;
        let (mut fraction, mut unit) = (0.0, unit);
        if let Some(months) = rest.strip_prefix('-') {
            let (months, rest) = whole_of(months)?;
            match (months, rest) {
                (0..12, "") => {}
                (0..12, _) => return Err(IntervalFault::Format),
                _ => return Err(IntervalFault::Overflow),
            }
            let months = if text.starts_with('-') { -months } else { months };
            whole = whole
                .checked_mul(12)
                .and_then(|it| it.checked_add(months))
                .ok_or(IntervalFault::Overflow)?;
            unit = FieldUnit::Month;
        } else if rest.starts_with('.') {
            fraction = fraction_of(rest)?;
            fraction = if text.starts_with('-') { -fraction } else { fraction };
        } else if !rest.is_empty() {
            return Err(IntervalFault::Format);
        }
        if is_negative {
            (whole, fraction) = (-whole.saturating_abs(), -fraction.abs());
        }
        self.add_units(whole, fraction, unit)?;
        Ok(match unit {
            // Of two numbers whose last counts hours, the first counts days.
            FieldUnit::Hour => (FieldUnit::Day, 1 << FieldUnit::Hour as u8),
            FieldUnit::Second if fraction != 0.0 => (unit, (1 << FieldUnit::Minute as u8) - 1),
            _ => (unit, 1 << unit as u8),
        })
    }
}

/// Reads an interval; a number without a unit counts the last of the fields.
pub fn parse_interval(
    text: &str,
    fields: IntervalFields,
    style: IntervalStyle,
) -> Result<Interval> {
    let read = decode(text, fields, style).or_else(|fault| match text.strip_prefix('P') {
        Some(rest) if fault == IntervalFault::Format && !rest.is_empty() => {
            Designated::new(rest).read()
        }
        _ => Err(fault),
    });
    match read {
        Ok(sum) => sum.interval(),
        Err(IntervalFault::Format) => {
            let message = format!("invalid input syntax for type interval: \"{text}\"");
            Err(SqlError::new(SqlState::InvalidDatetimeFormat, message))
        }
        Err(IntervalFault::Overflow) => {
            let message = format!("interval field value out of range: \"{text}\"");
            Err(SqlError::new(SqlState::IntervalFieldOverflow, message))
        }
    }
}
