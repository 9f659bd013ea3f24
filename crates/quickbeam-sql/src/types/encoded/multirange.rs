//! Multiranges: ranges of one type that share no value, in order.
//!
//! The bytes are those of the ranges, none of which is empty, then 0. So a multirange sorts before
//! those that begin with it.

use super::range::{ReadValue, WriteValue, compare_lower};
use super::{EncodedKind, RangeValue};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{TextSettings, Value};

/// A list of ranges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multirange {
    /// The ranges, in order; none is empty, and no two share a value or touch.
    pub ranges: Vec<RangeValue>,
}

#[cold]
fn malformed(text: &str, detail: &str) -> SqlError {
    let message = format!("malformed multirange literal: \"{text}\"");
    SqlError::new(SqlState::InvalidTextRepresentation, message).with_detail(detail)
}

impl Multirange {
    /// Returns the multirange of all values of some ranges.
    #[must_use]
    pub fn of(mut ranges: Vec<RangeValue>) -> Multirange {
        ranges.retain(|range| *range != RangeValue::Empty);
        ranges.sort_by(|a, b| match (a.bounds(), b.bounds()) {
            (Some((a, _)), Some((b, _))) => compare_lower(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        });
        let mut kept: Vec<RangeValue> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match kept.last_mut() {
                Some(last) if !last.is_before(&range) || last.is_adjacent(&range) => {
                    *last = last.merged(&range);
                }
                _ => kept.push(range),
            }
        }
        Multirange { ranges: kept }
    }

    /// Returns the smallest range with all values.
    #[must_use]
    pub fn merged(&self) -> RangeValue {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => first.merged(last),
            _ => RangeValue::Empty,
        }
    }

    /// Returns the values that both multiranges have.
    #[must_use]
    pub fn intersection(&self, other: &Multirange) -> Multirange {
        let pairs = self.ranges.iter().flat_map(|a| other.ranges.iter().map(move |b| (a, b)));
        Multirange::of(pairs.map(|(a, b)| a.intersection(b)).collect())
    }

    /// Returns the values that another multirange does not have.
    #[must_use]
    pub fn without(&self, other: &Multirange) -> Multirange {
        let mut left = self.ranges.clone();
        for taken in &other.ranges {
            left = left.iter().flat_map(|range| range.without(taken)).collect();
        }
        Multirange::of(left)
    }

    /// Returns whether all values of another multirange belong to this one.
    #[must_use]
    pub fn contains(&self, other: &Multirange) -> bool {
        let has = |wanted: &RangeValue| self.ranges.iter().any(|range| range.contains(wanted));
        other.ranges.iter().all(has)
    }

    /// Returns whether both have a value.
    #[must_use]
    pub fn overlaps(&self, other: &Multirange) -> bool {
        let meets = |a: &RangeValue, b: &RangeValue| a.intersection(b) != RangeValue::Empty;
        self.ranges.iter().any(|a| other.ranges.iter().any(|b| meets(a, b)))
    }

    /// Reads a multirange of that kind.
    pub(super) fn parse(
        text: &str,
        kind: EncodedKind,
        settings: &TextSettings,
        read: ReadValue,
    ) -> Result<Multirange> {
        let trimmed = text.trim();
        let mut rest = trimmed
            .strip_prefix('{')
            .ok_or_else(|| malformed(text, "Missing left brace."))?
            .trim_start();
        let mut ranges = Vec::new();
        if let Some(after) = rest.strip_prefix('}') {
            rest = after;
        } else {
            loop {
                let end =
                    end_of_range(rest).ok_or_else(|| malformed(text, "Expected range start."))?;
                let (range, after) = rest.split_at(end);
                ranges.push(RangeValue::parse(range, kind.range(), settings, read)?);
                rest = after.trim_start();
                if let Some(after) = rest.strip_prefix(',') {
                    rest = after.trim_start();
                    continue;
                }
                rest = rest
                    .strip_prefix('}')
                    .ok_or_else(|| malformed(text, "Expected comma or end of multirange."))?;
                break;
            }
        }
        if !rest.trim().is_empty() {
            return Err(malformed(text, "Junk after closing right brace."));
        }
        Ok(Multirange::of(ranges))
    }

    pub(super) fn format(&self, out: &mut String, settings: &TextSettings, write: WriteValue) {
        out.push('{');
        for (at, range) in self.ranges.iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            range.format(out, settings, write);
        }
        out.push('}');
    }

    /// Returns the multirange as a value.
    #[must_use]
    pub fn value(&self, kind: EncodedKind) -> Value {
        Value::encoded(kind, &self.bytes())
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out: Vec<u8> = self.ranges.iter().flat_map(RangeValue::bytes).collect();
        out.push(0);
        out
    }

    /// Returns the value with these bytes.
    #[must_use]
    pub fn read(mut bytes: &[u8], kind: EncodedKind) -> Option<Multirange> {
        let mut ranges = Vec::new();
        while bytes != [0] {
            ranges.push(RangeValue::take(&mut bytes, kind)?);
        }
        Some(Multirange { ranges })
    }
}

/// Returns where the range ends that the text begins with.
fn end_of_range(text: &str) -> Option<usize> {
    if text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("empty")) {
        return Some(5);
    }
    if !text.starts_with(['[', '(']) {
        return None;
    }
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' | ')' if !is_quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}
