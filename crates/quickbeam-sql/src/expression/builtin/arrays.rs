//! Array functions and operators: polymorphic ones, whose signature names the array's type or that
//! of its elements, and those of TEXT arrays.

use std::cmp::Ordering;

use super::super::array_ops::has_element;
use super::{
    Builtin, Implementation, OfValues, append, check_size, count, integer, mismatch, text,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::json::json_functions::{JsonType, array_to_json_in_lines, to_json};
use crate::types::{
    Array, ArrayBuilder, ArrayRef, DataType, Dimension, ElementType, MAX_DIMENSIONS, Value,
    ValueRef, too_many_dimensions,
};

/// The end of an array at which an element is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayEnd {
    /// Before the first element.
    First,
    /// After the last element.
    Last,
}

/// The type of an argument or result of a polymorphic function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An array.
    Array,
    /// An element of that array.
    Element,
    /// A type of its own.
    Is(DataType),
}

/// A function of arrays of any type.
pub struct Polymorphic {
    /// Its arguments.
    pub arguments: &'static [Shape],
    /// Its result.
    pub result: Shape,
    /// Whether all arrays must have one type, without casts.
    pub is_exact: bool,
    /// Whether it receives an empty array of the type as a last argument.
    pub takes_type: bool,
    /// Its evaluation. The types of this entry are not used.
    pub builtin: Builtin,
}

const A: Shape = Shape::Array;
const E: Shape = Shape::Element;
const I: Shape = Shape::Is(DataType::Integer);
const T: Shape = Shape::Is(DataType::Text);
const B: Shape = Shape::Is(DataType::Boolean);
const INTEGERS: DataType = DataType::Array(ElementType::INTEGER);
const TEXTS: DataType = DataType::Array(ElementType::TEXT);

const fn strict(
    name: &'static str,
    arguments: &'static [Shape],
    result: Shape,
    run: OfValues,
) -> Polymorphic {
    let builtin = Builtin::new(name, &[], DataType::Text, Implementation::Strict(run));
    Polymorphic { arguments, result, is_exact: false, takes_type: false, builtin }
}

/// Declares a function that receives NULLs, and the type of the array.
const fn tolerant(
    name: &'static str,
    arguments: &'static [Shape],
    result: Shape,
    run: OfValues,
) -> Polymorphic {
    let builtin = Builtin::new(name, &[], DataType::Text, Implementation::NullTolerant(run));
    Polymorphic { arguments, result, is_exact: false, takes_type: true, builtin }
}

const fn exact(name: &'static str, run: OfValues) -> Polymorphic {
    Polymorphic { is_exact: true, ..strict(name, &[A, A], B, run) }
}

/// Declares a function whose texts depend on the settings of the session.
const fn stable(arguments: &'static [Shape], result: Shape, builtin: Builtin) -> Polymorphic {
    Polymorphic { arguments, result, is_exact: false, takes_type: false, builtin }
}

/// `array_to_string` with two arguments, which is strict, and with the text of NULL.
const TO_STRING: Builtin =
    Builtin::new("array_to_string", &[], DataType::Text, Implementation::Stable(to_text));
const TO_STRING_WITH_NULLS: Builtin =
    Builtin { implementation: Implementation::StableNullTolerant(to_text), ..TO_STRING };
const TO_JSON: Builtin = Builtin::new(
    "array_to_json",
    &[],
    DataType::Text,
    Implementation::Stable(|f, v| to_json(f, v, JsonType::Plain)),
);

/// `array_to_json` with a second argument.
const TO_JSON_IN_LINES: Builtin =
    Builtin { implementation: Implementation::Stable(array_to_json_in_lines), ..TO_JSON };

static POLYMORPHIC: &[Polymorphic] = &[
    tolerant("||", &[A, A], A, concatenate),
    tolerant("||", &[A, E], A, push_back),
    tolerant("||", &[E, A], A, push_front),
    exact("@>", |v| contains(v, 0, 1)),
    exact("<@", |v| contains(v, 1, 0)),
    exact("&&", overlap),
    tolerant("array_cat", &[A, A], A, concatenate),
    tolerant("array_append", &[A, E], A, push_back),
    tolerant("array_prepend", &[E, A], A, push_front),
    tolerant("array_remove", &[A, E], A, remove),
    tolerant("array_replace", &[A, E, E], A, replace),
    tolerant("array_position", &[A, E], I, position),
    tolerant("array_position", &[A, E, I], I, position),
    tolerant("array_positions", &[A, E], Shape::Is(INTEGERS), positions),
    strict("array_length", &[A, I], I, |v| bound(v, |one| i64::from(one.length))),
    strict("array_lower", &[A, I], I, |v| bound(v, |one| one.lower.into())),
    strict("array_upper", &[A, I], I, |v| bound(v, Dimension::upper)),
    strict("array_ndims", &[A], I, dimension_count),
    strict("array_dims", &[A], T, dimensions),
    strict("cardinality", &[A], I, |v| count(array(v, 0)?.len())),
    stable(&[A, T], T, TO_STRING),
    Polymorphic { takes_type: true, ..stable(&[A, T, T], T, TO_STRING_WITH_NULLS) },
    stable(&[A], Shape::Is(DataType::Json), TO_JSON),
    stable(&[A, Shape::Is(DataType::Boolean)], Shape::Is(DataType::Json), TO_JSON_IN_LINES),
    strict("trim_array", &[A, I], A, trim),
    strict("width_bucket", &[E, A], I, bucket_of),
    tolerant("array_fill", &[E, Shape::Is(INTEGERS)], A, fill),
    tolerant("array_fill", &[E, Shape::Is(INTEGERS), Shape::Is(INTEGERS)], A, fill),
];

pub(super) static TABLE: &[Builtin] = &[
    Builtin::new(
        "string_to_array",
        &[DataType::Text, DataType::Text],
        TEXTS,
        Implementation::NullTolerant(split),
    ),
    Builtin::new(
        "string_to_array",
        &[DataType::Text, DataType::Text, DataType::Text],
        TEXTS,
        Implementation::NullTolerant(split),
    ),
];

/// Returns the polymorphic functions of a name, or operators of a symbol.
pub fn polymorphic(name: &str) -> impl Iterator<Item = &'static Polymorphic> {
    POLYMORPHIC.iter().filter(move |known| known.builtin.name == name)
}

pub(super) fn array<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<ArrayRef<'v>> {
    match arguments.get(at) {
        Some(ValueRef::Array(value)) => Ok(*value),
        _ => Err(mismatch()),
    }
}

/// Returns the element type from the last argument, an empty array.
fn element_type(arguments: &[ValueRef<'_>]) -> Result<ElementType> {
    Ok(array(arguments, arguments.len().saturating_sub(1))?.element_type())
}

/// Returns the argument, unless it is NULL.
fn given<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<Option<ArrayRef<'v>>> {
    match arguments.get(at) {
        Some(ValueRef::Null) => Ok(None),
        _ => array(arguments, at).map(Some),
    }
}

fn value<'v>(arguments: &[ValueRef<'v>], at: usize) -> ValueRef<'v> {
    arguments.get(at).copied().unwrap_or_default()
}

#[cold]
fn subscript_error(message: &str) -> SqlError {
    SqlError::new(SqlState::ArraySubscriptError, message)
}

#[cold]
fn not_flat(message: &str) -> SqlError {
    SqlError::new(SqlState::FeatureNotSupported, message)
}

fn concatenate(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (left, right) = (given(arguments, 0)?, given(arguments, 1)?);
    let (left, right) = match (left, right) {
        (None, None) => return Ok(Value::Null),
        (Some(one), None) | (None, Some(one)) => return Ok(Value::Array(one.to_array())),
        (Some(left), Some(right)) if left.is_empty() => return Ok(Value::Array(right.to_array())),
        (Some(left), Some(right)) if right.is_empty() => return Ok(Value::Array(left.to_array())),
        (Some(left), Some(right)) => (left, right),
    };
    let (a, b) = (left.dimensions(), right.dimensions());
    let incompatible = || subscript_error("cannot concatenate incompatible arrays");
    let mut joined;
    match a.len() as i64 - b.len() as i64 {
        0 => {
            let (Some(first), Some(second)) = (a.first(), b.first()) else {
                return Err(incompatible());
            };
            if a[1..] != b[1..] {
                return Err(incompatible());
            }
            joined = a.clone();
            joined[0] = Dimension { length: first.length + second.length, ..*first };
        }
        // The array of fewer dimensions is one more row of the other.
        1 if a[1..] == b => {
            joined = a.clone();
            joined[0].length += 1;
        }
        -1 if b[1..] == a => {
            joined = b.clone();
            joined[0].length += 1;
        }
        _ => return Err(incompatible()),
    }
    let mut builder = ArrayBuilder::new(left.element_type());
    left.iter().chain(right.iter()).try_for_each(|element| builder.push(element))?;
    Ok(Value::Array(builder.finish(&joined)?))
}

/// Adds an element before or after the elements of an array of at most one dimension.
fn extended(
    array: Option<ArrayRef<'_>>,
    element: ValueRef<'_>,
    of: ElementType,
    end: ArrayEnd,
) -> Result<Value> {
    let is_first = end == ArrayEnd::First;
    let (length, lower) = match array {
        Some(array) if !array.is_empty() => match &array.dimensions()[..] {
            [one] => (one.length, one.lower),
            _ => {
                let message = "argument must be empty or one-dimensional array";
                return Err(SqlError::new(SqlState::DataException, message));
            }
        },
        _ => (0, 1),
    };
    let mut builder = ArrayBuilder::new(of);
    if is_first {
        builder.push(element)?;
    }
    for known in array.iter().flat_map(|array| array.iter()) {
        builder.push(known)?;
    }
    if !is_first {
        builder.push(element)?;
    }
    Ok(Value::Array(builder.finish(&[Dimension { length: length + 1, lower }])?))
}

fn push_back(arguments: &[ValueRef<'_>]) -> Result<Value> {
    extended(given(arguments, 0)?, value(arguments, 1), element_type(arguments)?, ArrayEnd::Last)
}

fn push_front(arguments: &[ValueRef<'_>]) -> Result<Value> {
    extended(given(arguments, 1)?, value(arguments, 0), element_type(arguments)?, ArrayEnd::First)
}

fn is_same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    a.order(b) == Ordering::Equal
}

fn remove(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(array) = given(arguments, 0)? else { return Ok(Value::Null) };
    let removed = value(arguments, 1);
    if array.dimensions().len() > 1 {
        let message = "removing elements from multidimensional arrays is not supported";
        return Err(not_flat(message));
    }
    if !has_element(array, removed) {
        return Ok(Value::Array(array.to_array()));
    }
    let mut builder = ArrayBuilder::new(array.element_type());
    let kept = array.iter().filter(|element| !is_same(*element, removed));
    kept.into_iter().try_for_each(|element| builder.push(element))?;
    let lower = array.dimension(0).map_or(1, |one| one.lower);
    let length = builder.len() as u32;
    Ok(Value::Array(builder.finish(&[Dimension { length, lower }])?))
}

fn replace(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(array) = given(arguments, 0)? else { return Ok(Value::Null) };
    let (from, to) = (value(arguments, 1), value(arguments, 2));
    let mut builder = ArrayBuilder::new(array.element_type());
    for element in array.iter() {
        builder.push(if is_same(element, from) { to } else { element })?;
    }
    Ok(Value::Array(builder.finish(&array.dimensions())?))
}

fn flat_search<'v>(arguments: &[ValueRef<'v>]) -> Result<Option<ArrayRef<'v>>> {
    let found = given(arguments, 0)?;
    if found.is_some_and(|array| array.dimensions().len() > 1) {
        let message = "searching for elements in multidimensional arrays is not supported";
        return Err(not_flat(message));
    }
    Ok(found)
}

fn position(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(array) = flat_search(arguments)? else { return Ok(Value::Null) };
    let lower = i64::from(array.dimension(0).map_or(1, |one| one.lower));
    let start = match arguments {
        [_, _, ValueRef::Null, _] => {
            let message = "initial position must not be null";
            return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
        }
        [_, _, _, _] => integer(arguments, 2)?,
        _ => lower,
    };
    let skipped = usize::try_from(start.saturating_sub(lower)).unwrap_or(0);
    let wanted = value(arguments, 1);
    let found = array.iter().enumerate().skip(skipped).find(|(_, it)| is_same(*it, wanted));
    Ok(found.map_or(Value::Null, |(at, _)| Value::Integer((lower + at as i64) as i32)))
}

fn positions(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let Some(array) = flat_search(arguments)? else { return Ok(Value::Null) };
    let lower = array.dimension(0).map_or(1, |one| one.lower);
    let wanted = value(arguments, 1);
    let places = array.iter().enumerate().filter(|(_, it)| is_same(*it, wanted));
    let places = places.map(|(at, _)| ValueRef::Integer(lower.wrapping_add(at as i32)));
    Ok(Value::Array(Array::new(ElementType::INTEGER, places)?))
}

/// Returns the number of lower bounds that are not above a value, in an ordered array of them.
fn bucket_of(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (value, bounds) = (value(arguments, 0), array(arguments, 1)?);
    if bounds.dimensions().len() > 1 {
        let message = "thresholds must be one-dimensional array";
        return Err(SqlError::new(SqlState::ArraySubscriptError, message));
    }
    if bounds.iter().any(ValueRef::is_null) {
        let message = "thresholds array must not contain NULLs";
        return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
    }
    let (mut low, mut high) = (0, bounds.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if value < bounds.get(middle) { high = middle } else { low = middle + 1 }
    }
    count(low)
}

fn bound(arguments: &[ValueRef<'_>], of: fn(Dimension) -> i64) -> Result<Value> {
    let number = usize::try_from(integer(arguments, 1)? - 1).ok();
    let dimension = number.and_then(|number| array(arguments, 0).ok()?.dimension(number));
    Ok(dimension.map_or(Value::Null, |one| Value::Integer(of(one) as i32)))
}

fn dimension_count(arguments: &[ValueRef<'_>]) -> Result<Value> {
    match array(arguments, 0)?.dimensions().len() {
        0 => Ok(Value::Null),
        dimensions => count(dimensions),
    }
}

fn dimensions(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let dimensions = array(arguments, 0)?.dimensions();
    if dimensions.is_empty() {
        return Ok(Value::Null);
    }
    let written = dimensions.iter().map(|one| format!("[{}:{}]", one.lower, one.upper()));
    Ok(Value::text(written.collect::<String>()))
}

fn contains(arguments: &[ValueRef<'_>], whole: usize, part: usize) -> Result<Value> {
    let (whole, part) = (array(arguments, whole)?, array(arguments, part)?);
    let is_in = |element: ValueRef<'_>| !element.is_null() && has_element(whole, element);
    Ok(Value::Boolean(part.iter().all(is_in)))
}

fn overlap(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (left, right) = (array(arguments, 0)?, array(arguments, 1)?);
    let is_in = |element: ValueRef<'_>| !element.is_null() && has_element(left, element);
    Ok(Value::Boolean(right.iter().any(is_in)))
}

fn to_text(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let settings = frame.settings();
    let Some(array) = given(arguments, 0)? else { return Ok(Value::Null) };
    if value(arguments, 1).is_null() {
        return Ok(Value::Null);
    }
    let delimiter = text(arguments, 1)?;
    let null = match value(arguments, 2) {
        ValueRef::Text(null) => Some(null),
        _ => None,
    };
    let (mut out, mut is_first) = (String::new(), true);
    for element in array.iter() {
        if element.is_null() && null.is_none() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push_str(delimiter);
        }
        match (element, null) {
            (ValueRef::Null, Some(null)) => out.push_str(null),
            (element, _) => append(&mut out, element, &settings)?,
        }
        check_size(out.len())?;
    }
    Ok(Value::text(out))
}

fn trim(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (array, cut) = (array(arguments, 0)?, integer(arguments, 1)?);
    let dimensions = array.dimensions();
    let length = dimensions.first().map_or(0, |one| i64::from(one.length));
    if !(0..=length).contains(&cut) {
        let message = format!("number of elements to trim must be between 0 and {length}");
        return Err(SqlError::new(SqlState::ArraySubscriptError, message));
    }
    let kept = (length - cut) as usize;
    let of_row = array.len().checked_div(length as usize).unwrap_or(0);
    let mut builder = ArrayBuilder::new(array.element_type());
    array.iter().take(kept * of_row).try_for_each(|element| builder.push(element))?;
    let mut lengths: Vec<Dimension> =
        dimensions.iter().map(|one| Dimension::of(one.length as usize)).collect();
    if let Some(first) = lengths.first_mut() {
        first.length = kept as u32;
    }
    Ok(Value::Array(builder.finish(&lengths)?))
}

fn fill(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let null = || {
        let message = "dimension array or low bound array cannot be null";
        SqlError::new(SqlState::NullValueNotAllowed, message)
    };
    let lengths = given(arguments, 1)?.ok_or_else(null)?;
    let lowers = match arguments.len() {
        4 => Some(given(arguments, 2)?.ok_or_else(null)?),
        _ => None,
    };
    let wrong = |what: &str| subscript_error(&format!("wrong {what}"));
    let is_flat = |array: ArrayRef<'_>| array.dimensions().len() <= 1;
    if !is_flat(lengths) || !lowers.is_none_or(is_flat) {
        return Err(wrong("number of array subscripts"));
    }
    if lengths.len() > MAX_DIMENSIONS {
        return Err(too_many_dimensions(lengths.len()));
    }
    if lowers.is_some_and(|lowers| lowers.len() != lengths.len()) {
        return Err(wrong("number of array subscripts"));
    }
    let mut dimensions = Vec::new();
    let mut total: u64 = u64::from(!lengths.is_empty());
    for number in 0..lengths.len() {
        let has_null =
            || SqlError::new(SqlState::NullValueNotAllowed, "dimension values cannot be null");
        let length = lengths.get(number).as_i64().ok_or_else(has_null)?;
        let lower = match lowers {
            Some(lowers) => lowers.get(number).as_i64().ok_or_else(has_null)?,
            None => 1,
        };
        let limit = || {
            let message = "array size exceeds the maximum allowed (134217727)";
            SqlError::new(SqlState::ProgramLimitExceeded, message)
        };
        let length = u32::try_from(length).map_err(|_| limit())?;
        total = total.checked_mul(length.into()).filter(|it| *it < 1 << 27).ok_or_else(limit)?;
        dimensions.push(Dimension { length, lower: lower as i32 });
    }
    let mut builder = ArrayBuilder::new(element_type(arguments)?);
    for _ in 0..total {
        builder.push(value(arguments, 0))?;
    }
    Ok(Value::Array(builder.finish(&dimensions)?))
}

/// Splits a text at a delimiter: NULL separates the characters, an empty one does not separate.
pub(super) fn parts_of<'t>(text: &'t str, delimiter: Option<&str>) -> Vec<&'t str> {
    match delimiter {
        _ if text.is_empty() => Vec::new(),
        None => {
            let characters = text.char_indices();
            characters.map(|(at, character)| &text[at..at + character.len_utf8()]).collect()
        }
        Some("") => vec![text],
        Some(delimiter) => text.split(delimiter).collect(),
    }
}

fn split(arguments: &[ValueRef<'_>]) -> Result<Value> {
    if value(arguments, 0).is_null() {
        return Ok(Value::Null);
    }
    let parts = split_values(arguments)?;
    Ok(Value::Array(Array::new(ElementType::TEXT, parts)?))
}

/// Returns the parts of a text; those that equal the third argument are NULL.
pub(super) fn split_values<'v>(arguments: &[ValueRef<'v>]) -> Result<Vec<ValueRef<'v>>> {
    let optional = |at: usize| match value(arguments, at) {
        ValueRef::Text(text) => Some(text),
        _ => None,
    };
    let (delimiter, null) = (optional(1), optional(2));
    let parts = parts_of(text(arguments, 0)?, delimiter).into_iter();
    let part = |part| if Some(part) == null { ValueRef::Null } else { ValueRef::Text(part) };
    Ok(parts.map(part).collect())
}
