//! Order and DISTINCT.

use std::cmp::Ordering;

use super::hash::{KeyTable, append};
use super::{Context, Operator, bound_of};
use crate::error::{Result, SqlState};
use crate::expression::Expr;
use crate::plan::SortKey;
use crate::types::Value;

/// Rows of which no other before had the same values.
#[derive(Debug)]
pub struct Distinct {
    pub input: Operator,
    outputs: Vec<Expr>,
    table: KeyTable,
    key: Vec<u8>,
    fresh: bool,
}

impl Distinct {
    pub fn new(input: Operator, outputs: Vec<Expr>) -> Distinct {
        Distinct { input, outputs, table: KeyTable::default(), key: Vec::new(), fresh: true }
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.fresh = true;
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.fresh {
            self.fresh = false;
            self.table.clear();
        }
        while self.input.next(context)? {
            self.key.clear();
            let frame = context.frame();
            for output in &self.outputs {
                append(output.evaluate(&frame)?.as_ref(), &mut self.key);
            }
            if self.table.insert(&self.key).1 {
                context.keep(self.key.len() + 48)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A row with what it is ordered by.
#[derive(Debug)]
struct Sorted {
    keys: Vec<Value>,
    values: Vec<Value>,
}

/// Rows of values in order.
#[derive(Debug)]
pub struct Sort {
    pub input: Operator,
    slot: usize,
    outputs: Vec<Expr>,
    keys: Vec<SortKey>,
    most: Option<(Expr, Option<Expr>)>,
    rows: Vec<Sorted>,
    next: usize,
    done: bool,
}

/// The order of one key.
fn order_of(key: &SortKey, a: &Value, b: &Value) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if key.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if key.nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if key.descending => b.as_ref().order(a.as_ref()),
        (false, false) => a.as_ref().order(b.as_ref()),
    }
}

fn compare(keys: &[SortKey], a: &Sorted, b: &Sorted) -> Ordering {
    let pairs = keys.iter().zip(a.keys.iter().zip(&b.keys));
    pairs
        .map(|(key, (a, b))| order_of(key, a, b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

impl Sort {
    pub fn new(
        input: Operator,
        slot: usize,
        outputs: Vec<Expr>,
        keys: Vec<SortKey>,
        most: Option<(Expr, Option<Expr>)>,
    ) -> Sort {
        Sort { input, slot, outputs, keys, most, rows: Vec::new(), next: 0, done: false }
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.done = false;
    }

    /// How many rows are needed, if not all of them.
    fn wanted(&self, context: &Context<'_>) -> Result<usize> {
        let Some((limit, offset)) = &self.most else { return Ok(usize::MAX) };
        let limit = bound_of(context, Some(limit), SqlState::InvalidRowCountInLimit, "LIMIT")?;
        let offset =
            bound_of(context, offset.as_ref(), SqlState::InvalidRowCountInOffset, "OFFSET")?;
        let sum = limit.map(|limit| limit.saturating_add(offset.unwrap_or(0)));
        Ok(sum.and_then(|sum| usize::try_from(sum).ok()).unwrap_or(usize::MAX))
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.done = true;
        self.next = 0;
        self.rows.clear();
        let wanted = self.wanted(context)?;
        let mut kept = 0usize;
        while self.input.next(context)? {
            let frame = context.frame();
            let mut keys = Vec::with_capacity(self.keys.len());
            for key in &self.keys {
                keys.push(key.expr.evaluate(&frame)?.into_value());
            }
            let mut values = Vec::with_capacity(self.outputs.len());
            for output in &self.outputs {
                values.push(output.evaluate(&frame)?.into_value());
            }
            self.rows.push(Sorted { keys, values });
            kept += 1;
            if kept <= wanted.saturating_mul(2).saturating_add(64) {
                context.keep((self.keys.len() + self.outputs.len()) * size_of::<Value>() + 48)?;
            }
            // The rows that are not among the first ones are dropped before they become too many.
            if self.rows.len() >= wanted.saturating_mul(2).saturating_add(64) {
                self.order();
                self.rows.truncate(wanted);
            }
        }
        self.order();
        self.rows.truncate(wanted);
        Ok(())
    }

    fn order(&mut self) {
        let keys = &self.keys;
        self.rows.sort_by(|a, b| compare(keys, a, b));
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.done {
            self.run(context)?;
        }
        let Some(row) = self.rows.get_mut(self.next) else { return Ok(false) };
        self.next += 1;
        let slot = context.slot(self.slot)?;
        std::mem::swap(&mut slot.values, &mut row.values);
        slot.current = crate::expression::Current::Values;
        Ok(true)
    }
}
