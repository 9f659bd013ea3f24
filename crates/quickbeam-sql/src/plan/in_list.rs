//! Conditions that leave a column a few values: IN with a list, and equalities joined by OR.

use super::{Join, PlanNode, TableAccess};
use crate::expression::{Comparison, Expr};
use crate::types::Value;

/// The values that a column may have, and the slot of the current one.
#[derive(Clone, Debug)]
pub(super) struct InListKeys {
    /// The slot of the current value.
    pub slot: usize,
    /// The values, possibly with duplicates.
    pub values: Vec<Expr>,
    /// Whether the value is an array of the values.
    pub is_array: bool,
}

/// Returns the column that a condition limits to these values. `column_of` says which column an
/// expression is; `fits` checks a column and a value.
pub(super) fn find_in_list(
    conjunct: &Expr,
    column_of: &dyn Fn(&Expr) -> Option<usize>,
    fits: &dyn Fn(&Expr, &Expr) -> bool,
) -> Option<(usize, Vec<Expr>)> {
    let mut column = None;
    let mut values = Vec::new();
    take(conjunct, column_of, fits, &mut column, &mut values)?;
    Some((column?, values))
}

/// Adds what a condition leaves; none if it leaves more than can be listed.
fn take(
    condition: &Expr,
    column_of: &dyn Fn(&Expr) -> Option<usize>,
    fits: &dyn Fn(&Expr, &Expr) -> bool,
    column: &mut Option<usize>,
    values: &mut Vec<Expr>,
) -> Option<()> {
    let mut add = |side: &Expr, value: &Expr| {
        let found = column_of(side)?;
        if *column.get_or_insert(found) != found {
            return None;
        }
        // Nothing equals NULL.
        if !matches!(value, Expr::Constant(Value::Null)) {
            if !fits(side, value) {
                return None;
            }
            values.push(value.clone());
        }
        Some(())
    };
    match condition {
        Expr::Compare(Comparison::Equal, pair) => {
            let [left, right] = &**pair;
            match column_of(left) {
                Some(_) => add(left, right),
                None => add(right, left),
            }
        }
        Expr::InList(side, list, false) => list.iter().try_for_each(|value| add(side, value)),
        Expr::InSet(side, set, false) => {
            set.iter().try_for_each(|value| add(side, &Expr::Constant(value.clone())))
        }
        // The values of an array are its elements: see `InListScan`.
        Expr::CompareElements(Comparison::Equal, pair, true) => {
            let [side, array] = &**pair;
            add(side, array)
        }
        Expr::Or(parts) => parts
            .iter()
            .try_for_each(|part| take(part, column_of, fits, &mut *column, &mut *values)),
        _ => None,
    }
}

/// Returns the node of an access, which may be repeated for each of some values.
pub(super) fn node_of(access: TableAccess, members: Option<InListKeys>) -> PlanNode {
    let slot = access.slot;
    let table = PlanNode::Table(Box::new(access));
    let Some(members) = members else { return table };
    let rows = members.values.into_iter().map(|value| vec![value]).collect();
    PlanNode::NestedLoop {
        outer: Box::new(PlanNode::Values { slot: members.slot, rows, once: true }),
        inner: Box::new(table),
        inner_slots: vec![slot],
        join: Join::Inner,
        condition: None,
        guard: None,
    }
}
