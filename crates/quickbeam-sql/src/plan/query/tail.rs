//! What comes after the rows of a query: ORDER BY, DISTINCT ON, OFFSET and LIMIT.

use super::select::Planner;
use crate::bind::{Body, OrderKey, Query};
use crate::expression::Expr;
use crate::plan::{PlanNode, QueryPlan, SortKey};
use crate::types::Value;

/// Whether the input of a tail has its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailOrder {
    /// It has.
    Sorted,
    /// It may not have.
    Unsorted,
}

impl From<bool> for TailOrder {
    fn from(ordered: bool) -> TailOrder {
        if ordered { TailOrder::Sorted } else { TailOrder::Unsorted }
    }
}

/// What comes after the rows of a query.
pub(in crate::plan) struct Tail<'q> {
    pub query: &'q Query,
    /// ORDER BY, over the slots of the rows.
    pub order: &'q [OrderKey],
    /// DISTINCT ON, likewise.
    pub distinct_on: &'q [Expr],
    /// Whether the rows have the order already.
    pub ordered: bool,
}

impl<'q> Tail<'q> {
    pub fn of(query: &'q Query, order: TailOrder) -> Tail<'q> {
        let ordered = order == TailOrder::Sorted;
        let distinct_on = match &query.body {
            Body::Select(select) => &select.distinct_on[..],
            _ => &[],
        };
        Tail { query, order: &query.order, distinct_on, ordered }
    }
}

impl Planner<'_> {
    /// Plans ORDER BY, DISTINCT ON, OFFSET and LIMIT.
    pub(in crate::plan) fn finish(
        &self,
        mut node: PlanNode,
        mut outputs: Vec<Expr>,
        tail: Tail<'_>,
        mut rows: f64,
    ) -> QueryPlan {
        let Tail { query, order, distinct_on, ordered } = tail;
        let keys: Vec<SortKey> = order
            .iter()
            .filter(|key| !key.expr.is_constant())
            .map(|key| SortKey {
                // The output may have moved to another slot.
                expr: key
                    .output
                    .and_then(|output| outputs.get(output))
                    .unwrap_or(&key.expr)
                    .clone(),
                descending: key.descending,
                nulls_first: key.nulls_first,
            })
            .collect();
        let width = outputs.len();
        let mut hidden = distinct_on.to_vec();
        if query.with_ties {
            hidden.extend(keys.iter().map(|key| key.expr.clone()));
        }
        if !keys.is_empty() && !ordered {
            let slot = self.new_slot();
            let limit = query.limit.clone().filter(|_| hidden.is_empty());
            let most = limit.map(|limit| (limit, query.offset.clone()));
            outputs.append(&mut hidden);
            let (sorted, above) = around_sort(outputs, &keys, slot);
            node = PlanNode::Sort { input: Box::new(node), slot, outputs: sorted, keys, most };
            outputs = above;
            hidden = outputs.split_off(width);
        }
        let ties = hidden.split_off(distinct_on.len());
        if !hidden.is_empty() {
            node = PlanNode::Distinct { input: Box::new(node), outputs: hidden };
        }
        if query.limit.is_some() || query.offset.is_some() {
            if let Some(Expr::Constant(Value::BigInt(limit))) = &query.limit {
                rows = rows.min(*limit as f64);
            }
            let (limit, offset) = (query.limit.clone(), query.offset.clone());
            node = PlanNode::Limit { input: Box::new(node), limit, offset, ties };
        }
        QueryPlan { root: node, outputs, columns: query.columns.clone(), rows }
    }
}

/// Splits outputs at a sort into what the sort stores of each row and what is computed above it.
/// Volatile outputs are computed above, only for returned rows.
fn around_sort(outputs: Vec<Expr>, keys: &[SortKey], slot: usize) -> (Vec<Expr>, Vec<Expr>) {
    let (mut sorted, mut above) = (Vec::with_capacity(outputs.len()), Vec::new());
    let mut keep = |expr: Expr| {
        let known = sorted.iter().position(|kept| *kept == expr && !expr.is_volatile());
        let column = known.unwrap_or_else(|| {
            sorted.push(expr);
            sorted.len() - 1
        });
        Expr::column(slot, column)
    };
    for mut output in outputs {
        let is_key = keys.iter().any(|key| key.expr == output);
        if is_key || !output.is_volatile() {
            above.push(keep(output));
        } else {
            above_sort(&mut output, &mut keep);
            above.push(output);
        }
    }
    (sorted, above)
}

/// Makes an expression read the columns that a sort keeps.
fn above_sort(expr: &mut Expr, keep: &mut dyn FnMut(Expr) -> Expr) {
    match expr {
        Expr::Column(_) => *expr = keep(expr.clone()),
        other => other.each_child_mut(&mut |child| above_sort(child, keep)),
    }
}
