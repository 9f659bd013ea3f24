//! Ranges: all values of a type between two bounds.
//!
//! | part | bytes |
//! |---|---|
//! | empty range | 0 |
//! | any other range | 1, then the lower and the upper bound |
//! | lower bound | 0 for none; else 1, the value, and 0 if it belongs to the range or 1 |
//! | upper bound | 2 for none; else 1, the value, and 1 if it belongs to the range or 0 |
//! | value | 8 bytes big-endian, the sign bit turned over; a decimal as in keys, then its scale |
//!
//! - RANGE-1: a range of integers or dates has a lower bound that belongs to it and an upper bound
//!   that does not, so equal ranges have equal bytes.

use quickbeam::invariant;
use std::cmp::Ordering;

use super::EncodedKind;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DATE_INFINITY, DataType, Decimal, TextSettings, Value, ValueRef};

/// A bound of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeBound {
    /// The value.
    pub value: Value,
    /// Whether the value belongs to the range.
    pub is_inclusive: bool,
}

/// A range. A bound that is `None` is infinite.
#[derive(Clone, Debug, PartialEq)]
pub enum RangeValue {
    /// The range without values.
    Empty,
    /// The lower and the upper bound.
    Between(Option<RangeBound>, Option<RangeBound>),
}

/// The lower and the upper bound of a range.
pub type BoundPair<'b> = (Option<&'b RangeBound>, Option<&'b RangeBound>);

/// Reads the text of a bound.
pub(super) type ReadValue = fn(&str, DataType, &TextSettings) -> Result<Value>;

/// Appends the text of a bound: see [`format_value`](crate::types::format_value).
pub(super) type WriteValue = fn(&mut String, ValueRef<'_>, &TextSettings);

#[cold]
fn malformed(text: &str, detail: &str) -> SqlError {
    let message = format!("malformed range literal: \"{text}\"");
    SqlError::new(SqlState::InvalidTextRepresentation, message).with_detail(detail)
}

fn compare(a: &Value, b: &Value) -> Ordering {
    a.as_ref().order(b.as_ref())
}

/// Compares two lower bounds.
pub(super) fn compare_lower(a: Option<&RangeBound>, b: Option<&RangeBound>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(&a.value, &b.value).then(b.is_inclusive.cmp(&a.is_inclusive)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Compares two upper bounds.
pub(super) fn compare_upper(a: Option<&RangeBound>, b: Option<&RangeBound>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(&a.value, &b.value).then(a.is_inclusive.cmp(&b.is_inclusive)),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// Returns whether an upper bound ends before a lower bound begins.
pub(super) fn ends_before(upper: Option<&RangeBound>, lower: Option<&RangeBound>) -> bool {
    let (Some(upper), Some(lower)) = (upper, lower) else { return false };
    match compare(&upper.value, &lower.value) {
        Ordering::Equal => !(upper.is_inclusive && lower.is_inclusive),
        order => order.is_lt(),
    }
}

/// Returns whether nothing lies between an upper bound and a lower bound, and they share nothing.
pub(super) fn touches(upper: Option<&RangeBound>, lower: Option<&RangeBound>) -> bool {
    let (Some(upper), Some(lower)) = (upper, lower) else { return false };
    compare(&upper.value, &lower.value).is_eq() && upper.is_inclusive != lower.is_inclusive
}

/// Returns whether a value has one that follows it, with nothing between them.
fn is_apart(value: &Value) -> bool {
    match value {
        Value::Integer(_) | Value::BigInt(_) => true,
        Value::Date(days) => !matches!(*days, DATE_INFINITY | i32::MIN),
        _ => false,
    }
}

/// Returns the value after another one, of a type whose values are apart.
fn next(value: &Value) -> Result<Option<Value>> {
    let too_large = |name: &str| {
        let state = SqlState::NumericValueOutOfRange;
        SqlError::new(state, format!("{name} out of range"))
    };
    Ok(Some(match value {
        Value::Integer(v) => Value::Integer(v.checked_add(1).ok_or_else(|| too_large("integer"))?),
        Value::BigInt(v) => Value::BigInt(v.checked_add(1).ok_or_else(|| too_large("bigint"))?),
        Value::Date(v) if !matches!(*v, DATE_INFINITY | i32::MIN) => Value::Date(v + 1),
        _ => return Ok(None),
    }))
}

impl RangeValue {
    /// Returns a range in its canonical form. An upper bound below the lower one is an error.
    pub fn of(mut lower: Option<RangeBound>, mut upper: Option<RangeBound>) -> Result<RangeValue> {
        if let (Some(low), Some(high)) = (&lower, &upper) {
            let order = compare(&low.value, &high.value);
            if order.is_gt() {
                let message = "range lower bound must be less than or equal to range upper bound";
                return Err(SqlError::new(SqlState::DataException, message));
            }
            if order.is_eq() && !(low.is_inclusive && high.is_inclusive) {
                return Ok(RangeValue::Empty);
            }
        }
        if let Some(low) = lower.as_mut().filter(|low| !low.is_inclusive)
            && let Some(value) = next(&low.value)?
        {
            *low = RangeBound { value, is_inclusive: true };
        }
        if let Some(high) = upper.as_mut().filter(|high| high.is_inclusive)
            && let Some(value) = next(&high.value)?
        {
            *high = RangeBound { value, is_inclusive: false };
        }
        Ok(RangeValue::between(lower, upper))
    }

    /// Returns the range between two bounds, which may leave nothing.
    #[must_use]
    pub fn between(lower: Option<RangeBound>, upper: Option<RangeBound>) -> RangeValue {
        if ends_before(upper.as_ref(), lower.as_ref()) {
            return RangeValue::Empty;
        }
        RangeValue::Between(lower, upper)
    }

    /// Returns the bounds; `None` for an empty range.
    #[must_use]
    pub fn bounds(&self) -> Option<BoundPair<'_>> {
        match self {
            RangeValue::Empty => None,
            RangeValue::Between(lower, upper) => Some((lower.as_ref(), upper.as_ref())),
        }
    }

    /// Returns whether the range has that value.
    #[must_use]
    pub fn has(&self, value: &Value) -> bool {
        let Some((lower, upper)) = self.bounds() else { return false };
        let is_above = lower.is_none_or(|bound| match compare(value, &bound.value) {
            Ordering::Equal => bound.is_inclusive,
            order => order.is_gt(),
        });
        let is_below = upper.is_none_or(|bound| match compare(value, &bound.value) {
            Ordering::Equal => bound.is_inclusive,
            order => order.is_lt(),
        });
        is_above && is_below
    }

    /// Returns whether the range has all values of another one.
    #[must_use]
    pub fn contains(&self, other: &RangeValue) -> bool {
        let Some((lower, upper)) = other.bounds() else { return true };
        let Some((low, high)) = self.bounds() else { return false };
        compare_lower(low, lower).is_le() && compare_upper(high, upper).is_ge()
    }

    /// Returns the values that both ranges have.
    #[must_use]
    pub fn intersection(&self, other: &RangeValue) -> RangeValue {
        let (Some((a_low, a_high)), Some((b_low, b_high))) = (self.bounds(), other.bounds()) else {
            return RangeValue::Empty;
        };
        let low = if compare_lower(a_low, b_low).is_ge() { a_low } else { b_low };
        let high = if compare_upper(a_high, b_high).is_le() { a_high } else { b_high };
        RangeValue::between(low.cloned(), high.cloned())
    }

    /// Returns the smallest range with all values of both.
    #[must_use]
    pub fn merged(&self, other: &RangeValue) -> RangeValue {
        let (Some((a_low, a_high)), Some((b_low, b_high))) = (self.bounds(), other.bounds()) else {
            return if *self == RangeValue::Empty { other.clone() } else { self.clone() };
        };
        let low = if compare_lower(a_low, b_low).is_le() { a_low } else { b_low };
        let high = if compare_upper(a_high, b_high).is_ge() { a_high } else { b_high };
        RangeValue::Between(low.cloned(), high.cloned())
    }

    /// Returns what another range leaves of this one, before it and after it.
    #[must_use]
    pub fn without(&self, other: &RangeValue) -> [RangeValue; 2] {
        let shared = self.intersection(other);
        let (Some((low, high)), Some((from, to))) = (self.bounds(), shared.bounds()) else {
            return [self.clone(), RangeValue::Empty];
        };
        let turned =
            |bound: &RangeBound| RangeBound { is_inclusive: !bound.is_inclusive, ..bound.clone() };
        let side = |bound: Option<&RangeBound>| bound.map(turned);
        let before = match from {
            Some(_) => RangeValue::between(low.cloned(), side(from)),
            None => RangeValue::Empty,
        };
        let after = match to {
            Some(_) => RangeValue::between(side(to), high.cloned()),
            None => RangeValue::Empty,
        };
        [before, after]
    }

    /// Returns whether all values of this range lie before those of another one.
    #[must_use]
    pub fn is_before(&self, other: &RangeValue) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some((_, high)), Some((low, _))) => ends_before(high, low),
            _ => false,
        }
    }

    /// Returns whether this range does not end after another one.
    #[must_use]
    pub fn ends_within(&self, other: &RangeValue) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some((_, a)), Some((_, b))) => compare_upper(a, b).is_le(),
            _ => false,
        }
    }

    /// Returns whether this range does not begin before another one.
    #[must_use]
    pub fn begins_within(&self, other: &RangeValue) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some((a, _)), Some((b, _))) => compare_lower(a, b).is_ge(),
            _ => false,
        }
    }

    /// Returns whether both ranges touch without sharing a value.
    #[must_use]
    pub fn is_adjacent(&self, other: &RangeValue) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some((a_low, a_high)), Some((b_low, b_high))) => {
                touches(a_high, b_low) || touches(b_high, a_low)
            }
            _ => false,
        }
    }

    /// Reads a range of that kind.
    pub(super) fn parse(
        text: &str,
        kind: EncodedKind,
        settings: &TextSettings,
        read: ReadValue,
    ) -> Result<RangeValue> {
        let Some(subtype) = kind.subtype() else {
            return Err(SqlError::internal("a range without a type of its bounds"));
        };
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("empty") {
            return Ok(RangeValue::Empty);
        }
        let (low_inclusive, rest) = match trimmed.split_at_checked(1) {
            Some(("[", rest)) => (true, rest),
            Some(("(", rest)) => (false, rest),
            _ => return Err(malformed(text, "Missing left parenthesis or bracket.")),
        };
        let (low, rest) = bound_text(rest).ok_or_else(|| malformed(text, UNEXPECTED_END))?;
        let rest = rest
            .strip_prefix(',')
            .ok_or_else(|| malformed(text, "Missing comma after lower bound."))?;
        let (high, rest) = bound_text(rest).ok_or_else(|| malformed(text, UNEXPECTED_END))?;
        let high_inclusive = match rest {
            "]" => true,
            ")" => false,
            _ if rest.starts_with(',') => return Err(malformed(text, "Too many commas.")),
            _ => {
                let detail = "Junk after right parenthesis or bracket.";
                return Err(malformed(text, detail));
            }
        };
        let bound = |text: Option<String>, is_inclusive| -> Result<Option<RangeBound>> {
            let value = text.map(|text| read(&text, subtype, settings)).transpose()?;
            Ok(value.map(|value| RangeBound { value, is_inclusive }))
        };
        RangeValue::of(bound(low, low_inclusive)?, bound(high, high_inclusive)?)
    }

    pub(super) fn format(
        &self,
        out: &mut String,
        settings: &TextSettings,
        write_value: WriteValue,
    ) {
        let Some((lower, upper)) = self.bounds() else { return out.push_str("empty") };
        out.push(if lower.is_some_and(|bound| bound.is_inclusive) { '[' } else { '(' });
        let write = |bound: Option<&RangeBound>, out: &mut String| {
            let Some(bound) = bound else { return };
            let mut text = String::new();
            write_value(&mut text, bound.value.as_ref(), settings);
            push_quoted(out, &text, is_special);
        };
        write(lower, out);
        out.push(',');
        write(upper, out);
        out.push(if upper.is_some_and(|bound| bound.is_inclusive) { ']' } else { ')' });
    }

    /// Returns the range as a value.
    #[must_use]
    pub fn value(&self, kind: EncodedKind) -> Value {
        Value::encoded(kind, &self.bytes())
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Some((lower, upper)) = self.bounds() else { return vec![0] };
        let is_canonical = |bound: Option<&RangeBound>, is_inclusive: bool| {
            bound.is_none_or(|bound| bound.is_inclusive == is_inclusive || !is_apart(&bound.value))
        };
        invariant!(RANGE_1, is_canonical(lower, true) && is_canonical(upper, false), "{self:?}");
        out.push(1);
        match lower {
            None => out.push(0),
            Some(bound) => {
                out.push(1);
                push_value(&mut out, bound.value.as_ref());
                out.push((!bound.is_inclusive).into());
            }
        }
        match upper {
            None => out.push(2),
            Some(bound) => {
                out.push(1);
                push_value(&mut out, bound.value.as_ref());
                out.push(bound.is_inclusive.into());
            }
        }
        out
    }

    /// Returns the value with these bytes.
    #[must_use]
    pub fn read(bytes: &[u8], kind: EncodedKind) -> Option<RangeValue> {
        let mut bytes = bytes;
        let range = RangeValue::take(&mut bytes, kind)?;
        bytes.is_empty().then_some(range)
    }

    /// Reads a range from the front of the bytes.
    pub(super) fn take(bytes: &mut &[u8], kind: EncodedKind) -> Option<RangeValue> {
        let subtype = kind.subtype()?;
        if *bytes.split_off_first()? == 0 {
            return Some(RangeValue::Empty);
        }
        let lower = match bytes.split_off_first()? {
            0 => None,
            _ => {
                let value = take_value(bytes, subtype)?;
                Some(RangeBound { value, is_inclusive: *bytes.split_off_first()? == 0 })
            }
        };
        let upper = match bytes.split_off_first()? {
            2 => None,
            _ => {
                let value = take_value(bytes, subtype)?;
                Some(RangeBound { value, is_inclusive: *bytes.split_off_first()? == 1 })
            }
        };
        Some(RangeValue::Between(lower, upper))
    }
}

const UNEXPECTED_END: &str = "Unexpected end of input.";

/// Reads the text of a bound up to the comma or bracket that ends it; `None` for the text of an
/// infinite bound.
fn bound_text(text: &str) -> Option<(Option<String>, &str)> {
    if text.starts_with([',', ')', ']']) {
        return Some((None, text));
    }
    let mut out = String::new();
    let mut is_quoted = false;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        match character {
            '"' if is_quoted && rest.peek().is_some_and(|next| next.1 == '"') => {
                rest.next();
                out.push('"');
            }
            '"' => is_quoted = !is_quoted,
            '\\' => out.push(rest.next()?.1),
            ',' | ')' | ']' | '(' | '[' if !is_quoted => return Some((Some(out), &text[at..])),
            other => out.push(other),
        }
    }
    None
}

/// Whether a bound with this character is in quotes.
fn is_special(character: char) -> bool {
    matches!(character, '"' | '\\' | '(' | ')' | '[' | ']' | ',') || character.is_whitespace()
}

/// Appends the text of a part of a value, in quotes if it is empty or has a special character.
pub(super) fn push_quoted(out: &mut String, text: &str, is_special: fn(char) -> bool) {
    if !text.is_empty() && !text.contains(is_special) {
        return out.push_str(text);
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push(character);
        }
        out.push(character);
    }
    out.push('"');
}

fn push_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    let number = match value {
        ValueRef::Numeric(_) | ValueRef::LongNumeric(_) => {
            if let Some(number) = value.as_decimal() {
                number.write_scaled_key(out);
            }
            return;
        }
        ValueRef::Date(days) => i64::from(days),
        ValueRef::Timestamp(moment) | ValueRef::TimestampTz(moment) => moment,
        other => other.as_i64().unwrap_or_default(),
    };
    out.extend_from_slice(&(number ^ i64::MIN).to_be_bytes());
}

fn take_value(bytes: &mut &[u8], subtype: DataType) -> Option<Value> {
    if let DataType::Numeric(_) = subtype {
        let number = Decimal::read_key(|| bytes.split_off_first().copied())?;
        let scale = Decimal::take_scale(bytes)?;
        return Some(number.with_scale(scale).ok()?.into());
    }
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    let number = i64::from_be_bytes(*first) ^ i64::MIN;
    Some(match subtype {
        DataType::Integer => Value::Integer(number.try_into().ok()?),
        DataType::BigInt => Value::BigInt(number),
        DataType::Date => Value::Date(number.try_into().ok()?),
        DataType::Timestamp => Value::Timestamp(number),
        _ => Value::TimestampTz(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::parse_value;

    #[test]
    fn ranges_are_read_as_in_postgresql() {
        use EncodedKind as K;
        for (kind, text, expected) in [
            (K::Int4Range, "[1,5]", Ok("[1,6)")),
            (K::Int4Range, " ( 1 , 5 ) ", Ok("[2,5)")),
            (K::Int4Range, "(1,2)", Ok("empty")),
            (K::Int4Range, "(,5]", Ok("(,6)")),
            (K::Int4Range, "[,]", Ok("(,)")),
            (K::Int4Range, "[5,1]", Err("22000")),
            (K::Int4Range, "[1,2147483647]", Err("22003")),
            (K::Int4Range, "[1;5]", Err("22P02")),
            (K::Int4Range, "[1,5] x", Err("22P02")),
            (K::NumRange, "[1.50,2]", Ok("[1.50,2]")),
            (K::NumRange, "(1,1]", Ok("empty")),
            (K::DateRange, "[2020-01-01,2020-01-31]", Ok("[2020-01-01,2020-02-01)")),
            (K::DateRange, "[2020-01-01,infinity]", Ok("[2020-01-01,infinity]")),
            (
                K::TsRange,
                "[2020-01-01,\"2020-01-02 10:00\"]",
                Ok("[\"2020-01-01 00:00:00\",\"2020-01-02 10:00:00\"]"),
            ),
        ] {
            let read = RangeValue::parse(text, kind, &TextSettings::DEFAULT, parse_value);
            let read = read.map(|range| range.value(kind));
            let read = read.map(|value| value.to_string()).map_err(|error| error.code());
            assert_eq!(read, expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn ranges_are_combined() {
        let plain = &TextSettings::DEFAULT;
        let range =
            |text| RangeValue::parse(text, EncodedKind::Int4Range, plain, parse_value).unwrap();
        let text = |range: &RangeValue| range.value(EncodedKind::Int4Range).to_string();
        let (a, b) = (range("[1,10)"), range("[5,15)"));
        assert_eq!(text(&a.intersection(&b)), "[5,10)");
        assert_eq!(text(&a.merged(&b)), "[1,15)");
        assert_eq!(a.without(&b).each_ref().map(text), ["[1,5)", "empty"]);
        assert_eq!(a.without(&range("[3,5)")).each_ref().map(text), ["[1,3)", "[5,10)"]);
        assert!(a.is_adjacent(&range("[10,20)")) && !a.is_adjacent(&range("[11,20)")));
        assert!(a.is_before(&range("[10,20)")) && !a.is_before(&b));
        assert!(a.contains(&range("empty")) && !a.contains(&b) && a.has(&Value::Integer(9)));
    }
}
