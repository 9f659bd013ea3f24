//! AND and OR of vectorized conditions.
//!
//! Once few rows are undecided, later conditions are evaluated for these alone. A condition on
//! texts costs more than the copy of a few rows.

use arrow_arith::boolean::{and_kleene, or_kleene};
use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use quickbeam::invariant;

use super::column::Vector;
use super::evaluate::{VectorExpr, failed, keep, row_count};
use crate::error::{Result, SqlError};
use crate::expression::Connective;

/// Of fewer rows than one in `FEW`, columns are copied before the next condition is evaluated.
pub const FEW: usize = 8;

/// Combines the results of two conditions by three-valued logic.
fn combine(
    connective: Connective,
    left: &BooleanArray,
    right: &BooleanArray,
) -> Result<BooleanArray> {
    let combined = match connective {
        Connective::And => and_kleene(left, right),
        Connective::Or => or_kleene(left, right),
    };
    combined.map_err(|error| failed(&error))
}

/// Returns the rows whose result a further condition may change: those that are not false in AND,
/// or not true in OR.
fn undecided(connective: Connective, known: &BooleanArray) -> BooleanBuffer {
    let values = match connective {
        Connective::And => known.values().clone(),
        Connective::Or => !known.values(),
    };
    match known.nulls() {
        Some(nulls) => &values | &!nulls.inner(),
        None => values,
    }
}

/// Evaluates conditions that are connected by AND or OR.
pub fn connected(
    connective: Connective,
    conditions: &[VectorExpr],
    columns: &[Vector],
) -> Result<BooleanArray> {
    let may_fail = || conditions.iter().any(VectorExpr::may_fail);
    invariant!(BATCH_2, !may_fail(), "a part of AND or OR may fail");
    let rows = row_count(columns);
    let Some((first, mut rest)) = conditions.split_first() else {
        return Err(SqlError::internal("a condition without parts"));
    };
    let mut known = first.truths(columns, rows)?;
    while let Some((next, after)) = rest.split_first() {
        let open = undecided(connective, &known);
        let count = open.count_set_bits();
        if count == 0 {
            break;
        }
        if count < rows / FEW {
            let changed = of_rows(connective, rest, columns, (&known, &open))?;
            return Ok(replaced(&known, &open, &changed));
        }
        known = combine(connective, &known, &next.truths(columns, rows)?)?;
        rest = after;
    }
    Ok(known)
}

/// Evaluates conditions for some rows, whose results so far are known.
fn of_rows(
    connective: Connective,
    conditions: &[VectorExpr],
    columns: &[Vector],
    (known, rows): (&BooleanArray, &BooleanBuffer),
) -> Result<BooleanArray> {
    let mask = BooleanArray::new(rows.clone(), None);
    let (columns, count) = keep(columns, &mask)?;
    let kept = arrow_select::filter::filter(known, &mask).map_err(|error| failed(&error))?;
    let kept = kept.as_any().downcast_ref::<BooleanArray>();
    let mut known = kept.cloned().ok_or_else(|| SqlError::internal("no truth values"))?;
    for condition in conditions {
        known = combine(connective, &known, &condition.truths(&columns, count)?)?;
    }
    Ok(known)
}

/// Returns the results with those of some rows replaced.
fn replaced(known: &BooleanArray, rows: &BooleanBuffer, by: &BooleanArray) -> BooleanArray {
    let copy = |bits: &BooleanBuffer| {
        let mut copy = BooleanBufferBuilder::new(bits.len());
        copy.append_buffer(bits);
        copy
    };
    let mut values = copy(known.values());
    let mut valid = match known.nulls() {
        Some(nulls) => copy(nulls.inner()),
        None => copy(&BooleanBuffer::new_set(known.len())),
    };
    for (nth, row) in rows.set_indices().enumerate() {
        values.set_bit(row, by.is_valid(nth) && by.value(nth));
        valid.set_bit(row, by.is_valid(nth));
    }
    let nulls = (by.null_count() > 0).then(|| NullBuffer::new(valid.finish()));
    BooleanArray::new(values.finish(), nulls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truths(values: &[Option<bool>]) -> BooleanArray {
        values.to_vec().into()
    }

    #[test]
    fn later_conditions_change_undecided_rows_only() {
        let known = truths(&[Some(false), Some(true), None, Some(false), None]);
        let open = undecided(Connective::And, &known);
        assert_eq!(open.set_indices().collect::<Vec<_>>(), [1, 2, 4]);
        let by = truths(&[Some(true), Some(false), None]);
        let expected = [Some(false), Some(true), Some(false), Some(false), None];
        assert_eq!(replaced(&known, &open, &by), truths(&expected));
        let open = undecided(Connective::Or, &known);
        assert_eq!(open.set_indices().collect::<Vec<_>>(), [0, 2, 3, 4]);
        let by = truths(&[Some(true), Some(true), None, Some(true)]);
        let expected = [Some(true), Some(true), Some(true), None, Some(true)];
        assert_eq!(replaced(&known, &open, &by), truths(&expected));
    }
}
