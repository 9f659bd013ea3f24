//! The order of the types whose values are bytes.
//!
//! Only decimals in ranges and queries need more than the bytes: scales and weights do not count.
//! Rows compare by their fields, so they are not compared here.

use quickbeam::invariant;
use std::borrow::Cow;
use std::cmp::Ordering;

use super::text_search::TextQuery;
use super::{EncodedKind, EncodedType};
use crate::types::Decimal;
use crate::types::collation::sort_key;

/// Returns bytes whose order is the order of the values. They are those of the value, but decimals
/// in them do not have their scales, and words of queries no weights.
#[must_use]
pub(crate) fn ordering_key(kind: EncodedKind, bytes: &[u8]) -> Cow<'_, [u8]> {
    if kind == EncodedKind::TsQuery {
        return Cow::Borrowed(TextQuery::ordering_key(bytes));
    }
    if kind == EncodedKind::Collated {
        return Cow::Borrowed(sort_key::key(bytes));
    }
    if !kind.has_decimals() {
        return Cow::Borrowed(bytes);
    }
    let without_scales = copied(kind, bytes, |number, rest, out| {
        number.write_key(out);
        // The scale follows the number.
        Decimal::take_scale(rest).is_some()
    });
    without_scales.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Returns the bytes of the value with that ordering key; `None` if the key does not tell them.
pub(crate) fn of_ordering_key(kind: EncodedKind, key: &[u8]) -> Option<Vec<u8>> {
    if kind == EncodedKind::TsQuery {
        return TextQuery::of_ordering_key(key);
    }
    if kind == EncodedKind::Collated {
        return None;
    }
    if !kind.has_decimals() {
        return Some(key.to_vec());
    }
    copied(kind, key, |number, _, out| {
        number.write_scaled_key(out);
        true
    })
}

/// Copies a range or multirange of decimals. `write` appends each number, with the bytes after it
/// at hand, and returns whether they are right.
fn copied(
    kind: EncodedKind,
    mut bytes: &[u8],
    write: impl Fn(Decimal, &mut &[u8], &mut Vec<u8>) -> bool,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    while !bytes.is_empty() {
        let first = *bytes.split_off_first()?;
        out.push(first);
        if first == 0 {
            break;
        }
        // A lower bound of 0 is infinite, an upper bound of 2.
        for infinite in [0, 2] {
            let has_value = *bytes.split_off_first()?;
            out.push(has_value);
            if has_value == infinite {
                continue;
            }
            let number = Decimal::read_key(|| bytes.split_off_first().copied())?;
            if !write(number, &mut bytes, &mut out) {
                return None;
            }
            out.push(*bytes.split_off_first()?);
        }
        if !kind.is_multirange() {
            break;
        }
    }
    bytes.is_empty().then_some(out)
}

/// Compares two values; `None` if their types do not compare.
pub(crate) fn compare(a: (EncodedType, &[u8]), b: (EncodedType, &[u8])) -> Option<Ordering> {
    let (left, right) = (a.0.kind(), b.0.kind());
    if left.family() != right.family() {
        return None;
    }
    let order = ordering_key(left, a.1).as_ref().cmp(ordering_key(right, b.1).as_ref());
    let has_key = matches!(left, EncodedKind::TsQuery | EncodedKind::Collated);
    let is_plain = !left.has_decimals() && !has_key;
    invariant!(ENC_1, !is_plain || order == a.1.cmp(b.1), "two values of {left:?}");
    Some(order)
}
