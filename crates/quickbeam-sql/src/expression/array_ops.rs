//! Evaluation of array expressions: constructors, subscripts and comparisons with elements.

use super::datum::{Datum, compare};
use super::{Comparison, Expr, Frame};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{
    ArrayBuilder, ArrayRef, Dimension, ElementType, MAX_DIMENSIONS, SliceBounds, Value, ValueRef,
    too_many_dimensions, with_element, with_slice, without_blanks,
};

/// Evaluates `ARRAY[…]`.
pub(super) fn construct(element: ElementType, list: &[Expr], frame: &Frame<'_>) -> Result<Value> {
    let values: Result<Vec<Value>> =
        list.iter().map(|member| member.evaluate(frame).map(Datum::into_value)).collect();
    stack_arrays(element, &values?)
}

#[cold]
fn uneven() -> SqlError {
    let message = "multidimensional arrays must have array expressions with matching dimensions";
    SqlError::new(SqlState::ArraySubscriptError, message)
}

/// Returns the array of the values of rows, which have equal dimensions if they are arrays.
pub fn accumulate_arrays(element: ElementType, values: &[Value]) -> Result<Value> {
    let mut known: Option<Vec<Dimension>> = None;
    let refuse = |state: SqlState, what: &str| {
        Err(SqlError::new(state, format!("cannot accumulate {what}")))
    };
    let has_arrays = values.iter().any(|value| matches!(value, Value::Array(_)));
    for value in values.iter().filter(|_| has_arrays) {
        let Value::Array(array) = value else {
            return refuse(SqlState::NullValueNotAllowed, "null arrays");
        };
        let dimensions = array.as_ref().dimensions();
        if dimensions.is_empty() {
            return refuse(SqlState::ArraySubscriptError, "empty arrays");
        }
        if *known.get_or_insert_with(|| dimensions.clone()) != dimensions {
            return refuse(SqlState::ArraySubscriptError, "arrays of different dimensionality");
        }
    }
    stack_arrays(element, values)
}

/// Returns the array of the values. Arrays become the rows of an array with one more dimension.
fn stack_arrays(element: ElementType, values: &[Value]) -> Result<Value> {
    if !values.iter().any(|value| matches!(value, Value::Array(_))) {
        let array = crate::types::Array::new(element, values.iter().map(Value::as_ref))?;
        return Ok(Value::Array(array));
    }
    let mut inner: Option<Vec<Dimension>> = None;
    let mut builder = ArrayBuilder::new(element);
    for value in values {
        // A NULL array has no elements.
        let dimensions = match value {
            Value::Array(array) => {
                array.as_ref().iter().try_for_each(|member| builder.push(member))?;
                array.as_ref().dimensions()
            }
            _ => Vec::new(),
        };
        if inner.get_or_insert_with(|| dimensions.clone()) != &dimensions {
            return Err(uneven());
        }
    }
    let inner = inner.unwrap_or_default();
    if inner.len() >= MAX_DIMENSIONS {
        return Err(too_many_dimensions(inner.len() + 1));
    }
    let mut dimensions = vec![Dimension::of(values.len())];
    dimensions.extend(inner);
    Ok(Value::Array(builder.finish(&dimensions)?))
}

/// Returns an array of CHAR without the blanks at the end of its elements.
pub(super) fn trimmed(value: ValueRef<'_>) -> Result<Value> {
    let ValueRef::Array(array) = value else { return Ok(value.to_value()) };
    let made = array.map(array.element_type(), |element| {
        Ok(match element {
            ValueRef::Text(text) => Value::text(without_blanks(text)),
            other => other.to_value(),
        })
    })?;
    Ok(Value::Array(made))
}

/// Returns whether an array has that element. NULL equals NULL here.
pub(super) fn has_element(array: ArrayRef<'_>, wanted: ValueRef<'_>) -> bool {
    array.iter().any(|element| element.order(wanted).is_eq())
}

/// Evaluates a comparison with ANY or ALL elements of an array.
pub(super) fn compare_elements(
    comparison: Comparison,
    pair: &[Expr; 2],
    is_any: bool,
    frame: &Frame<'_>,
) -> Result<Option<bool>> {
    let [value, array] = pair;
    let array = array.evaluate(frame)?;
    let ValueRef::Array(array) = array.as_ref() else {
        return match array.is_null() {
            true => Ok(None),
            false => Err(SqlError::internal("ANY of a value that is not an array")),
        };
    };
    let value = value.evaluate(frame)?;
    let mut result = Some(!is_any);
    for element in array.iter() {
        match compare(value.as_ref(), element)? {
            Some(order) if comparison.holds(order) == is_any => return Ok(Some(is_any)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// Evaluates a subscript or a slice. The arguments after the array are a subscript for each
/// dimension, or a lower and an upper bound for each. A constant truth value comes first: true for
/// a slice. FALSE as a bound is one that is not written.
pub(super) fn subscripts<'a>(arguments: &'a [Expr], frame: &Frame<'a>) -> Result<Datum<'a>> {
    let [is_slice, array, bounds @ ..] = arguments else {
        return Err(SqlError::internal("a subscript without an array"));
    };
    let is_slice = is_slice.truth(frame)? == Some(true);
    let array = array.evaluate(frame)?;
    let ValueRef::Array(array) = array.as_ref() else { return Ok(Datum::NULL) };
    let mut places = Vec::with_capacity(bounds.len());
    for bound in bounds {
        let value = bound.evaluate(frame)?;
        places.push(match value.as_ref() {
            ValueRef::Null => return Ok(Datum::NULL),
            value => value.as_i64(),
        });
    }
    let value = match is_slice {
        true => slice(array, &places)?,
        false => element_at(array, &places).to_value(),
    };
    Ok(Datum::Own(value))
}

/// Returns the element with these subscripts; NULL if there is none.
pub fn element_at<'v>(array: ArrayRef<'v>, places: &[Option<i64>]) -> ValueRef<'v> {
    let mut number = 0;
    for (nth, place) in places.iter().enumerate() {
        let (Some(dimension), Some(place)) = (array.dimension(nth), place) else {
            return ValueRef::Null;
        };
        let offset = place - i64::from(dimension.lower);
        if !(0..i64::from(dimension.length)).contains(&offset) {
            return ValueRef::Null;
        }
        number = number * dimension.length as usize + offset as usize;
    }
    // An element needs a subscript for every dimension.
    match array.dimension(places.len()) {
        None => array.get(number),
        Some(_) => ValueRef::Null,
    }
}

fn slice(array: ArrayRef<'_>, bounds: &[Option<i64>]) -> Result<Value> {
    let dimensions = array.dimensions();
    let empty = || Value::Array(crate::types::Array::empty(array.element_type()));
    if dimensions.is_empty() || bounds.len() > dimensions.len() * 2 {
        return Ok(empty());
    }
    let mut ranges = Vec::with_capacity(dimensions.len());
    for (nth, dimension) in dimensions.iter().enumerate() {
        let bound = |at: usize| bounds.get(nth * 2 + at).copied().flatten();
        let (first, last) = (i64::from(dimension.lower), dimension.upper());
        let low = bound(0).unwrap_or(first).max(first);
        let high = bound(1).unwrap_or(last).min(last);
        if low > high {
            return Ok(empty());
        }
        ranges.push(((low - first) as usize, (high - low + 1) as usize));
    }
    let mut builder = ArrayBuilder::new(array.element_type());
    for (number, element) in array.iter().enumerate() {
        let mut rest = number;
        let is_inside = dimensions.iter().zip(&ranges).rev().all(|(dimension, (start, count))| {
            let place = rest % dimension.length as usize;
            rest /= dimension.length as usize;
            (*start..start + count).contains(&place)
        });
        if is_inside {
            builder.push(element)?;
        }
    }
    let cut: Vec<Dimension> = ranges.iter().map(|(_, count)| Dimension::of(*count)).collect();
    Ok(Value::Array(builder.finish(&cut)?))
}

#[cold]
fn null_subscript() -> SqlError {
    let message = "array subscript in assignment must not be null";
    SqlError::new(SqlState::NullValueNotAllowed, message)
}

/// Evaluates an array with another element or slice. The arguments are a constant truth value, true
/// for a slice, the array, the new value, an empty array of its type, and subscripts or bounds as
/// those of [`subscripts`].
pub(super) fn assign_subscripts<'a>(arguments: &'a [Expr], frame: &Frame<'a>) -> Result<Datum<'a>> {
    let [is_slice, array, value, empty, bounds @ ..] = arguments else {
        return Err(SqlError::internal("an assignment to an element without an array"));
    };
    let is_slice = is_slice.truth(frame)? == Some(true);
    let (whole, value, empty) =
        (array.evaluate(frame)?, value.evaluate(frame)?, empty.evaluate(frame)?);
    let mut places = Vec::with_capacity(bounds.len());
    for bound in bounds {
        places.push(match bound.evaluate(frame)?.as_ref() {
            ValueRef::Null => return Err(null_subscript()),
            place => place.as_i64(),
        });
    }
    let ValueRef::Array(empty) = empty.as_ref() else {
        return Err(SqlError::internal("an assignment to an element of no array"));
    };
    let array = match whole.as_ref() {
        ValueRef::Array(array) => array,
        _ => empty,
    };
    assigned_array(array, (&places, is_slice), value.as_ref()).map(Datum::Own)
}

/// Returns an array with another element, or if true, another slice.
pub fn assigned_array(
    array: ArrayRef<'_>,
    (places, is_slice): (&[Option<i64>], bool),
    value: ValueRef<'_>,
) -> Result<Value> {
    let array = match (is_slice, value) {
        (true, ValueRef::Array(source)) => {
            let bounds = places.chunks(2);
            let bounds = bounds.map(|pair| (pair[0], pair.get(1).copied().flatten()));
            with_slice(Some(array), &bounds.collect::<Vec<SliceBounds>>(), source)?
        }
        // NULL changes no slice.
        (true, _) => array.to_array(),
        (false, value) => {
            let places: Vec<i64> = places.iter().map(|place| place.unwrap_or_default()).collect();
            with_element(Some(array), array.element_type(), &places, value)?
        }
    };
    Ok(Value::Array(array))
}
