//! Comparisons of dates with moments.
//!
//! A DATE that is compared with a TIMESTAMP is cast to one, as PostgreSQL does, and a cast column
//! is neither a bound of an index nor a column of whole numbers. If the moment is a constant, which
//! `date '1998-12-01' - interval '90 days'` is, the same comparison is made with a constant day.

use std::sync::Arc;

use crate::bind::{Change, PartMut, Query, SlotShape, Source};
use crate::expression::{Comparison, Expr};
use crate::types::{DAY, DataType, Value};

/// Rewrites the comparisons of a query and of its nested queries.
pub fn compare_dates(query: &mut Query, slots: &[SlotShape]) {
    if has_dates(slots) {
        rewrite_query(query, slots);
    }
}

/// Rewrites the comparisons of an UPDATE or DELETE.
pub fn compare_dates_of_change(change: &mut Change, slots: &[SlotShape]) {
    if has_dates(slots) {
        change.filter.iter_mut().for_each(|condition| rewrite(condition, slots));
    }
}

/// Whether a column of any table or query is a DATE.
fn has_dates(slots: &[SlotShape]) -> bool {
    slots.iter().any(|slot| match &slot.source {
        Source::Table(table) => table.columns.iter().any(|c| c.data_type == DataType::Date),
        Source::Query(columns) => columns.iter().any(|c| c.data_type == DataType::Date),
        Source::Computed => false,
    })
}

fn rewrite_query(query: &mut Query, slots: &[SlotShape]) {
    query.each_part_mut(&mut |part| match part {
        PartMut::Expr(expr) => rewrite(expr, slots),
        PartMut::Side(side) => rewrite_query(side, slots),
        PartMut::Subquery(subquery) => rewrite_query(Arc::make_mut(&mut subquery.query), slots),
        PartMut::Derived(derived) => rewrite_query(Arc::make_mut(&mut derived.query), slots),
    });
}

fn rewrite(expr: &mut Expr, slots: &[SlotShape]) {
    expr.each_child_mut(&mut |child| rewrite(child, slots));
    let Expr::Compare(comparison, pair) = expr else { return };
    let same = match &**pair {
        [date, Expr::Constant(Value::Timestamp(moment))] => {
            day_of(date, slots).zip(compared(*comparison, *moment))
        }
        [Expr::Constant(Value::Timestamp(moment)), date] => {
            day_of(date, slots).zip(compared(comparison.flipped(), *moment))
        }
        _ => None,
    };
    if let Some((date, (comparison, day))) = same {
        let day = Expr::Constant(Value::Date(day));
        *expr = Expr::Compare(comparison, Box::new([date, day]));
    }
}

/// Returns the DATE column that an expression casts to TIMESTAMP.
fn day_of(expr: &Expr, slots: &[SlotShape]) -> Option<Expr> {
    let Expr::Cast(inner, DataType::Timestamp, _) = expr else { return None };
    let at = inner.as_column()?;
    let data_type = match &slots.get(at.slot)?.source {
        Source::Table(table) => table.columns.get(at.column)?.data_type,
        Source::Query(columns) => columns.get(at.column)?.data_type,
        Source::Computed => return None,
    };
    (data_type == DataType::Date).then(|| (**inner).clone())
}

/// Returns the comparison of a day that holds whenever that of its first moment does. An equality
/// with a moment inside a day is left as it is.
fn compared(comparison: Comparison, moment: i64) -> Option<(Comparison, i32)> {
    if moment == i64::MAX || moment == i64::MIN {
        return None;
    }
    let day = i32::try_from(moment.div_euclid(DAY)).ok()?;
    let comparison = match (comparison, moment.rem_euclid(DAY)) {
        (comparison, 0) => comparison,
        (Comparison::Less | Comparison::LessOrEqual, _) => Comparison::LessOrEqual,
        (Comparison::Greater | Comparison::GreaterOrEqual, _) => Comparison::Greater,
        (Comparison::Equal | Comparison::NotEqual, _) => return None,
    };
    Some((comparison, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_compares_as_its_first_moment() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        for moment in [-DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, DAY + 1] {
            for comparison in [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual] {
                let Some((rewritten, day)) = compared(comparison, moment) else {
                    assert!(matches!(comparison, Equal | NotEqual) && moment % DAY != 0);
                    continue;
                };
                for date in -3..=3_i32 {
                    let before = comparison.holds((i64::from(date) * DAY).cmp(&moment));
                    assert_eq!(before, rewritten.holds(date.cmp(&day)), "{date} {moment}");
                }
            }
        }
    }
}
