//! Arrays with other values of an element or a slice.
//!
//! Above: UPDATE and INSERT of elements, assignments in PL/pgSQL. Below: arrays as bytes.

use super::array_value::{Array, ArrayBuilder, ArrayRef, Dimension};
use super::element_type::ElementType;
use crate::error::{Result, SqlError, SqlState};
use crate::types::ValueRef;

/// Maximum number of elements of an array that an assignment extends.
const MOST: i64 = 134_217_727;

/// The lower and upper bound of a slice; `None` for one that is not written.
pub type SliceBounds = (Option<i64>, Option<i64>);

#[cold]
fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::ArraySubscriptError, message)
}

/// Returns a dimension, unless its subscripts exceed those of an integer.
fn dimension(lower: i64, length: i64) -> Result<Dimension> {
    let limit = |message: String| SqlError::new(SqlState::ProgramLimitExceeded, message);
    if length > MOST {
        return Err(limit(format!("array size exceeds the maximum allowed ({MOST})")));
    }
    let too_large = || limit(format!("array lower bound is too large: {lower}"));
    i32::try_from(lower + length).map_err(|_| too_large())?;
    let lower = i32::try_from(lower).map_err(|_| too_large())?;
    Ok(Dimension { length: u32::try_from(length).unwrap_or_default(), lower })
}

/// Returns an array of one dimension with other values from `low` to `high`. NULLs fill the gap
/// between them and the elements that there were.
fn with_range<'v>(
    array: ArrayRef<'v>,
    (low, high): (i64, i64),
    mut values: impl Iterator<Item = ValueRef<'v>>,
) -> Result<Array> {
    let old = array.dimension(0).unwrap_or(Dimension { length: 0, lower: 1 });
    let (first, last) = (i64::from(old.lower), old.upper());
    let (from, to) = (first.min(low), last.max(high));
    let dimension = dimension(from, to - from + 1)?;
    let mut builder = ArrayBuilder::new(array.element_type());
    for at in from..=to {
        builder.push(match at {
            _ if (low..=high).contains(&at) => values.next().unwrap_or_default(),
            _ if (first..=last).contains(&at) => array.get((at - first) as usize),
            _ => ValueRef::Null,
        })?;
    }
    builder.finish(&[dimension])
}

/// Returns the array with another value of the element with these subscripts.
pub fn with_element(
    array: Option<ArrayRef<'_>>,
    element: ElementType,
    places: &[i64],
    value: ValueRef<'_>,
) -> Result<Array> {
    let Some(array) = array.filter(|array| !array.is_empty()) else {
        let mut builder = ArrayBuilder::new(element);
        builder.push(value)?;
        let dimensions: Result<Vec<Dimension>> =
            places.iter().map(|place| dimension(*place, 1)).collect();
        return builder.finish(&dimensions?);
    };
    let dimensions = array.dimensions();
    if dimensions.len() != places.len() {
        return Err(invalid("wrong number of array subscripts"));
    }
    if let [place] = places {
        return with_range(array, (*place, *place), std::iter::once(value));
    }
    let mut number = 0;
    for (dimension, place) in dimensions.iter().zip(places) {
        let offset = place - i64::from(dimension.lower);
        if !(0..i64::from(dimension.length)).contains(&offset) {
            return Err(invalid("array subscript out of range"));
        }
        number = number * dimension.length as usize + offset as usize;
    }
    let mut builder = ArrayBuilder::new(array.element_type());
    for (at, known) in array.iter().enumerate() {
        builder.push(if at == number { value } else { known })?;
    }
    builder.finish(&dimensions)
}

/// Returns the bounds of a slice in one dimension.
fn range(bounds: SliceBounds, dimension: Dimension) -> Result<(i64, i64)> {
    let low = bounds.0.unwrap_or(dimension.lower.into());
    let high = bounds.1.unwrap_or(dimension.upper());
    if low > high {
        return Err(invalid("upper bound cannot be less than lower bound"));
    }
    Ok((low, high))
}

/// Returns an array made of a slice alone.
fn from_slice(bounds: &[SliceBounds], source: ArrayRef<'_>) -> Result<Array> {
    let mut dimensions = Vec::with_capacity(bounds.len());
    for bound in bounds {
        let (Some(low), Some(high)) = *bound else {
            return Err(invalid("array slice subscript must provide both boundaries").with_detail(
                "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
            ));
        };
        if low > high {
            return Err(invalid("upper bound cannot be less than lower bound"));
        }
        dimensions.push(dimension(low, high - low + 1)?);
    }
    let lengths = dimensions.iter().map(|one| i64::from(one.length));
    let count = lengths.fold(1_i64, i64::saturating_mul);
    if count > source.len() as i64 {
        return Err(invalid("source array too small"));
    }
    let mut builder = ArrayBuilder::new(source.element_type());
    source.iter().take(count as usize).try_for_each(|element| builder.push(element))?;
    builder.finish(&dimensions)
}

/// Returns the array with the elements of another one in a slice.
pub fn with_slice(
    array: Option<ArrayRef<'_>>,
    bounds: &[SliceBounds],
    source: ArrayRef<'_>,
) -> Result<Array> {
    let Some(array) = array.filter(|array| !array.is_empty()) else {
        return from_slice(bounds, source);
    };
    let dimensions = array.dimensions();
    if dimensions.len() < bounds.len() {
        return Err(invalid("wrong number of array subscripts"));
    }
    let mut ranges = Vec::with_capacity(dimensions.len());
    for (number, dimension) in dimensions.iter().enumerate() {
        let (low, high) = range(bounds.get(number).copied().unwrap_or_default(), *dimension)?;
        let is_inside = low >= i64::from(dimension.lower) && high <= dimension.upper();
        if !is_inside && dimensions.len() > 1 {
            return Err(invalid("array subscript out of range"));
        }
        ranges.push((low, high));
    }
    let lengths = ranges.iter().map(|(low, high)| high - low + 1);
    if lengths.fold(1_i64, i64::saturating_mul) > source.len() as i64 {
        return Err(invalid("source array too small"));
    }
    if let [range] = ranges[..] {
        return with_range(array, range, source.iter());
    }
    let mut builder = ArrayBuilder::new(array.element_type());
    let mut values = source.iter();
    for (number, known) in array.iter().enumerate() {
        let mut rest = number;
        let is_inside = dimensions.iter().zip(&ranges).rev().all(|(dimension, (low, high))| {
            let place = (rest % dimension.length as usize) as i64 + i64::from(dimension.lower);
            rest /= dimension.length as usize;
            (*low..=*high).contains(&place)
        });
        builder.push(if is_inside { values.next().unwrap_or_default() } else { known })?;
    }
    builder.finish(&dimensions)
}
