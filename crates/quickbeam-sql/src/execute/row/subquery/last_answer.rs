//! The last answer of a correlated subquery, which holds for the next row if that has the same
//! values in the columns that the subquery reads.
//!
//! Above: subqueries in expressions. A join that looks rows up by a key returns the rows of one key
//! together, so a subquery that reads the key has the same answer for all of them.
//!
//! Only values that are the same in every digit and letter are the same: `1.0` and `1.00` may have
//! different answers.

use crate::error::Result;
use crate::execute::row::Context;
use crate::expression::{ColumnRef, Expr};
use crate::plan::{PlanNode, QueryPlan, each_expression, produced};
use crate::types::{Value, ValueRef};

/// How often in succession the values may differ before the answers are no longer kept.
const MOST_MISSES: u32 = 64;

/// The last answer, and the values that it holds for.
#[derive(Debug)]
pub struct LastAnswer {
    /// The columns of the outer rows that the subquery reads.
    columns: Vec<ColumnRef>,
    values: Vec<Value>,
    answer: Option<Value>,
    misses: u32,
}

/// Whether two values are the same.
fn is_same(kept: &Value, value: ValueRef<'_>) -> bool {
    match (kept.as_ref(), value) {
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::SmallInt(a), ValueRef::SmallInt(b)) => a == b,
        (ValueRef::Integer(a), ValueRef::Integer(b)) => a == b,
        (ValueRef::BigInt(a), ValueRef::BigInt(b)) => a == b,
        (ValueRef::Date(a), ValueRef::Date(b)) => a == b,
        (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a == b,
        (ValueRef::Text(a), ValueRef::Text(b)) => a == b,
        _ => false,
    }
}

impl LastAnswer {
    /// Makes room for the answers of a subquery for the rows of `input`. Returns `None` if an
    /// answer depends on more than their values, or if the subquery is evaluated only `once`.
    pub fn new(input: &PlanNode, query: &QueryPlan, once: bool) -> Option<LastAnswer> {
        if once {
            return None;
        }
        let slots = produced(input);
        let (mut columns, mut volatile): (Vec<ColumnRef>, bool) = (Vec::new(), false);
        let mut visit = |expr: &Expr| {
            volatile |= expr.is_volatile();
            expr.each_column(&mut |column| columns.push(column));
        };
        query.outputs.iter().for_each(&mut visit);
        each_expression(&query.root, &mut visit);
        columns.retain(|column| slots.contains(&column.slot));
        columns.sort_unstable();
        columns.dedup();
        let (values, answer, misses) = (Vec::new(), None, 0);
        (!volatile).then_some(LastAnswer { columns, values, answer, misses })
    }

    /// Forgets the answer: the subquery may find other rows.
    pub fn clear(&mut self) {
        (self.answer, self.misses) = (None, 0);
    }

    /// Returns the answer if it holds for the current row.
    pub fn get(&mut self, context: &Context<'_>) -> Result<Option<Value>> {
        if self.misses > MOST_MISSES || self.answer.is_none() {
            return Ok(None);
        }
        for (column, kept) in self.columns.iter().zip(&self.values) {
            let Some(slot) = context.slots.get(column.slot) else { return Ok(None) };
            if !is_same(kept, slot.column(column.column)?) {
                self.misses += 1;
                return Ok(None);
            }
        }
        self.misses = 0;
        Ok(self.answer.clone())
    }

    /// Keeps the answer for the current row.
    pub fn put(&mut self, answer: &Value, context: &Context<'_>) -> Result<()> {
        if self.misses > MOST_MISSES {
            return Ok(());
        }
        self.values.clear();
        for column in &self.columns {
            let slot = context.slots.get(column.slot);
            let value = slot.map_or(Ok(ValueRef::Null), |slot| slot.column(column.column));
            self.values.push(value?.to_value());
        }
        self.answer = Some(answer.clone());
        Ok(())
    }
}
