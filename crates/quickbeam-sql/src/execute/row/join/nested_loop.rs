//! Nested loop joins.

use super::set_nothing;
use crate::error::Result;
use crate::execute::row::{Context, Operator};
use crate::expression::Expr;
use crate::plan::Join;

/// Nested loop join: reads the inner rows again for each outer row. With a key or index lookup
/// inside it is an index nested loop join.
#[derive(Debug)]
pub struct NestedLoop {
    pub outer: Operator,
    inner: Operator,
    inner_slots: Vec<usize>,
    join: Join,
    condition: Option<Expr>,
    /// Whether there is a current outer row.
    has_outer: bool,
    /// Something fitted it.
    fitted: bool,
}

impl NestedLoop {
    pub fn new(
        outer: Operator,
        inner: Operator,
        inner_slots: Vec<usize>,
        join: Join,
        condition: Option<Expr>,
    ) -> NestedLoop {
        NestedLoop { outer, inner, inner_slots, join, condition, has_outer: false, fitted: false }
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        loop {
            if !self.has_outer {
                if !self.outer.next(context)? {
                    return Ok(false);
                }
                context.check_cancelled()?;
                self.inner.rewind();
                self.has_outer = true;
                self.fitted = false;
            }
            while self.inner.next(context)? {
                if context.holds(self.condition.as_ref())? {
                    self.fitted = true;
                    return Ok(true);
                }
            }
            self.has_outer = false;
            if self.join == Join::Left && !self.fitted {
                set_nothing(context, &self.inner_slots)?;
                return Ok(true);
            }
        }
    }

    pub fn rewind(&mut self) {
        self.outer.rewind();
        self.has_outer = false;
    }

    pub fn row_key<'o>(&'o self, slot: usize, context: &'o Context<'_>) -> Option<&'o [u8]> {
        self.outer.row_key(slot, context).or_else(|| self.inner.row_key(slot, context))
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.outer.counts(counts);
        self.inner.counts(counts);
    }
}
