//! Words such as `today` in the texts of dates and times, also of arrays and ranges of them.

use super::cast::element_of;
use super::datetime::{DAY, SECOND, date_of};
use super::{DataType, TextSettings};

/// Characters between the parts of the text of an array or range.
const MARKS: [char; 8] = ['[', ']', '(', ')', '{', '}', ',', '"'];

/// Returns whether a text has words that mean the transaction's time when it is read as a value of
/// that type.
#[must_use]
pub fn has_clock_words(text: &str, to: DataType) -> bool {
    is_moment(element_of(to))
        && text.split(MARKS).any(|part| Word::read(part, element_of(to)).is_some())
}

/// Returns the text of a value of that type with dates and times in the place of the words that
/// mean the transaction's time. Returns `None` if the text has no such word.
pub(crate) fn without_clock_words(
    text: &str,
    to: DataType,
    now: i64,
    settings: &TextSettings,
) -> Option<String> {
    let element = element_of(to);
    if !has_clock_words(text, to) {
        return None;
    }
    let is_nested = element != to && !matches!(to, DataType::Precise(_));
    let mut out = String::with_capacity(text.len() + 32);
    for piece in text.split_inclusive(MARKS) {
        let mark = piece.chars().next_back().filter(|last| MARKS.contains(last));
        let part = piece.strip_suffix(MARKS).unwrap_or(piece);
        match Word::read(part, element) {
            Some(word) => {
                let made = word.text(element, settings.zone.to_local(now)?);
                let is_quoted = is_nested && mark != Some('"');
                let quote = if is_quoted { "\"" } else { "" };
                out.extend([quote, &made, quote]);
            }
            None => out.push_str(part),
        }
        out.extend(mark);
    }
    Some(out)
}

fn is_moment(data_type: DataType) -> bool {
    use DataType as D;
    matches!(data_type, D::Date | D::Time | D::Timestamp | D::TimestampTz)
}

/// A word and the text after it.
enum Word<'t> {
    Now,
    /// The distance from today in days, and the time of day.
    Day(i64, &'t str),
}

impl<'t> Word<'t> {
    fn read(part: &'t str, element: DataType) -> Option<Word<'t>> {
        let part = part.trim();
        let (first, rest) = part.split_once(' ').unwrap_or((part, ""));
        // A time of day stands after the word or before it.
        let (word, time) = match first.starts_with(|c: char| c.is_ascii_digit()) {
            true => (rest.trim(), first),
            false => (first, rest),
        };
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        if is("now") && time.is_empty() {
            return Some(Word::Now);
        }
        let days = match () {
            () if element == DataType::Time => return None,
            () if is("today") => 0,
            () if is("tomorrow") => 1,
            () if is("yesterday") => -1,
            () => return None,
        };
        Some(Word::Day(days, time.trim()))
    }

    fn text(&self, element: DataType, local: i64) -> String {
        let days = match self {
            Word::Now => 0,
            Word::Day(days, _) => *days,
        };
        let (year, month, day) = date_of(local.div_euclid(DAY) + days);
        let date = format!("{year:04}-{month:02}-{day:02}");
        let time = match self {
            Word::Now => {
                let micros = local.rem_euclid(DAY);
                let (seconds, micros) = (micros / SECOND, micros % SECOND);
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                format!("{hours:02}:{minutes:02}:{:02}.{micros:06}", seconds % 60)
            }
            Word::Day(_, time) => (*time).to_owned(),
        };
        match element {
            DataType::Time => time,
            DataType::Date => date,
            _ => format!("{date} {time}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::EncodedKind;

    #[test]
    fn words_become_dates_and_times() {
        let now = 19_000 * DAY + 3_600_000_001;
        let read = |text: &str, to| without_clock_words(text, to, now, &TextSettings::DEFAULT);
        assert_eq!(read("tomorrow", DataType::Date).as_deref(), Some("2022-01-09"));
        assert_eq!(read("NOW", DataType::Time).as_deref(), Some("01:00:00.000001"));
        assert_eq!(
            read("10:30 yesterday", DataType::Timestamp).as_deref(),
            Some("2022-01-07 10:30")
        );
        assert_eq!(read("2022-01-09", DataType::Date), None);
        assert_eq!(read("today", DataType::Text), None);
        let range = EncodedKind::DateRange.data_type();
        let found = read("[yesterday,today)", range);
        assert_eq!(found.as_deref(), Some("[\"2022-01-07\",\"2022-01-08\")"));
    }
}
