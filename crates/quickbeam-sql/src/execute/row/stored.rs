//! Stored rows: common table expressions, and recursive queries with their working tables.
//!
//! The values of the rows are stored in a slot, one row after another, so that any operator can
//! scan them (DIRECT-1).

use super::query::QueryProgram;
use super::{Context, MemoryCharge, Operator};
use crate::bind::Stored;
use crate::error::Result;
use crate::execute::hash::key_table::{KeyTable, append};
use crate::expression::Current;
use crate::plan::RecursiveUnion;
use crate::types::Value;

/// Computes common table expressions, then passes on the rows of its input.
#[derive(Debug)]
pub struct With {
    tables: Vec<(usize, QueryProgram)>,
    pub input: Operator,
    account: MemoryCharge,
    fresh: bool,
}

impl With {
    pub fn new(tables: Vec<(usize, QueryProgram)>, input: Operator) -> With {
        With { tables, input, account: MemoryCharge::default(), fresh: true }
    }

    pub fn rewind(&mut self) {
        self.tables.iter_mut().for_each(|(_, query)| query.root.rewind());
        self.input.rewind();
        self.fresh = true;
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.tables.iter().for_each(|(_, query)| query.root.counts(counts));
        self.input.counts(counts);
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh) {
            self.account.clear(context);
            for (slot, query) in &mut self.tables {
                let mut rows = Vec::new();
                while query.root.next(context)? {
                    for output in &query.outputs {
                        let value = context.value(output)?;
                        self.account.keep(value.memory(), context)?;
                        rows.push(value);
                    }
                    // A row without columns is counted too.
                    if query.outputs.is_empty() {
                        rows.push(Value::Null);
                    }
                }
                store(*slot, rows, context)?;
            }
        }
        self.input.next(context)
    }
}

/// Stores rows in a slot.
pub(crate) fn store(slot: usize, rows: Vec<Value>, context: &mut Context<'_>) -> Result<()> {
    let slot = context.slot(slot)?;
    slot.values = rows;
    slot.current = Current::Values;
    Ok(())
}

/// Scans stored rows.
#[derive(Debug)]
pub struct StoredScan {
    from: usize,
    width: usize,
    slot: usize,
    next: usize,
}

impl StoredScan {
    pub fn new(stored: &Stored) -> StoredScan {
        StoredScan { from: stored.from, width: stored.width, slot: stored.slot, next: 0 }
    }

    pub fn rewind(&mut self) {
        self.next = 0;
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let mut values = std::mem::take(&mut context.slot(self.slot)?.values);
        values.clear();
        let rows = &context.slot(self.from)?.values;
        let found = rows.get(self.next..self.next + self.width.max(1));
        let is_there = found.is_some();
        values.extend(found.into_iter().flatten().take(self.width).cloned());
        self.next += self.width.max(1);
        let slot = context.slot(self.slot)?;
        slot.values = values;
        slot.current = Current::Values;
        Ok(is_there)
    }
}

/// A recursive query. Each row is returned when it is found, and stored for the next round.
#[derive(Debug)]
pub struct RecursiveUnionExec {
    base: QueryProgram,
    step: QueryProgram,
    all: bool,
    working: usize,
    slot: usize,
    /// The rows of the round, which the next round reads.
    found: Vec<Value>,
    /// The memory of the rows of this round, and of the round before.
    sizes: [usize; 2],
    seen: KeyTable,
    key: Vec<u8>,
    account: MemoryCharge,
    fresh: bool,
    in_base: bool,
}

impl RecursiveUnionExec {
    pub fn new(
        base: QueryProgram,
        step: QueryProgram,
        union: &RecursiveUnion,
    ) -> RecursiveUnionExec {
        RecursiveUnionExec {
            base,
            step,
            all: union.all,
            working: union.working,
            slot: union.slot,
            found: Vec::new(),
            sizes: [0; 2],
            seen: KeyTable::default(),
            key: Vec::new(),
            account: MemoryCharge::default(),
            fresh: true,
            in_base: true,
        }
    }

    pub fn rewind(&mut self) {
        self.base.root.rewind();
        self.step.root.rewind();
        self.fresh = true;
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.base.root.counts(counts);
        self.step.root.counts(counts);
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh) {
            self.found.clear();
            self.sizes = [0; 2];
            self.seen.clear();
            self.account.clear(context);
            self.in_base = true;
        }
        loop {
            context.check_cancelled()?;
            let term = if self.in_base { &mut self.base } else { &mut self.step };
            if term.next_into(context, self.slot)? {
                if self.take_row(context)? {
                    return Ok(true);
                }
                continue;
            }
            if self.found.is_empty() {
                return Ok(false);
            }
            // The next round reads the rows of this one.
            store(self.working, std::mem::take(&mut self.found), context)?;
            self.sizes = [0, self.sizes[0]];
            self.in_base = false;
            self.step.root.rewind();
        }
    }

    /// Stores the row in the slot for the next round. Returns false if it is a duplicate.
    fn take_row(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let values = context.slots.get(self.slot).map_or(&[][..], |slot| &slot.values);
        if !self.all {
            self.key.clear();
            values.iter().for_each(|value| append(value.as_ref(), &mut self.key));
            if !self.seen.insert(&self.key).1 {
                return Ok(false);
            }
            self.account.keep(self.key.len() + 48, context)?;
        }
        self.sizes[0] += values.iter().map(Value::memory).sum::<usize>();
        self.found.extend_from_slice(values);
        if self.all {
            self.account.keep_most(self.sizes[0] + self.sizes[1], context)?;
        }
        Ok(true)
    }
}
