//! Nested loop joins.
//!
//! - GUARD-1: a hash join takes over between two outer rows, with the conditions of the nested
//!   loop, so each outer row is joined once. A new run begins with the nested loop.

use quickbeam::invariant;

use super::hash_join::RowHashJoin;
use super::set_nothing;
use crate::error::Result;
use crate::execute::row::{Context, Operator, OperatorBuilder, RowCounts, TableHandles};
use crate::expression::Expr;
use crate::plan::{Join, LoopGuard};

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
    guard: Option<Box<LoopGuard>>,
    /// The outer rows of this run, if there is a guard.
    seen: u64,
    /// The hash join that has taken over in this run, and that of an earlier run.
    hashed: Option<Box<RowHashJoin>>,
    ended: Option<Box<RowHashJoin>>,
}

impl NestedLoop {
    pub fn new(
        outer: Operator,
        inner: Operator,
        inner_slots: Vec<usize>,
        join: Join,
        condition: Option<Expr>,
    ) -> NestedLoop {
        NestedLoop {
            outer,
            inner,
            inner_slots,
            join,
            condition,
            has_outer: false,
            fitted: false,
            guard: None,
            seen: 0,
            hashed: None,
            ended: None,
        }
    }

    /// Lets a hash join take over beyond a number of outer rows.
    pub fn guarded(self, guard: Option<Box<LoopGuard>>) -> NestedLoop {
        NestedLoop { guard, ..self }
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if let Some(hashed) = &mut self.hashed {
            return hashed.next(context);
        }
        loop {
            if !self.has_outer {
                if let Some(guard) = &self.guard {
                    if self.seen > guard.most {
                        return self.take_over(context);
                    }
                    self.seen += 1;
                }
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

    /// Hands the outer rows that are left to a hash join.
    #[cold]
    fn take_over(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let is_between = !self.has_outer && self.hashed.is_none();
        invariant!(GUARD_1, is_between, "an outer row would be joined twice");
        if let Some(ended) = self.ended.take() {
            ended.forget(context);
        }
        let Some(guard) = &self.guard else { return Ok(false) };
        let handles = TableHandles {
            transaction: context.transaction,
            catalog: context.catalog,
            snapshot: context.snapshot,
        };
        let inner = OperatorBuilder::new(&handles, RowCounts::Off).operator(&guard.join.inner)?;
        let outer = std::mem::replace(&mut self.outer, Operator::One(true));
        let hashed = RowHashJoin::midway(outer, inner, &guard.join);
        self.hashed.insert(Box::new(hashed)).next(context)
    }

    pub fn rewind(&mut self) {
        if let Some(mut hashed) = self.hashed.take() {
            self.outer = hashed.take_outer();
            self.ended = Some(hashed);
        }
        self.outer.rewind();
        self.has_outer = false;
        self.seen = 0;
    }

    /// Returns the scan that looks up each key of a list, if the join is no other.
    pub fn scan_of_list(&mut self) -> Option<&mut Operator> {
        match self.outer {
            Operator::InListScan(_) => Some(&mut self.inner),
            _ => None,
        }
    }

    pub fn row_key<'o>(&'o self, slot: usize, context: &'o Context<'_>) -> Option<&'o [u8]> {
        match &self.hashed {
            Some(hashed) => hashed.row_key(slot, context),
            None => self.outer.row_key(slot, context).or_else(|| self.inner.row_key(slot, context)),
        }
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        match &self.hashed {
            Some(hashed) => hashed.outer().counts(counts),
            None => self.outer.counts(counts),
        }
        self.inner.counts(counts);
    }
}
