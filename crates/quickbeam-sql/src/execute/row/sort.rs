//! ORDER BY, with a top-N sort for LIMIT.

use std::cmp::Ordering;

use super::memory::bytes_of;
use super::{Context, MemoryCharge, Operator, bound_of};
use crate::error::{Result, SqlState};
use crate::execute::spill::SortedRuns;
use crate::expression::Expr;
use crate::plan::SortKey;
use crate::types::Value;

/// A row: its outputs, followed by its sort keys and the keys of rows of tables.
type SortRow = Vec<Value>;

/// Returns the memory of a row, with what the allocator needs for it.
fn memory_of(row: &SortRow) -> usize {
    bytes_of(row) + size_of::<SortRow>() + 16
}

/// Rows of values in order. What exceeds the memory is sorted in runs, which are merged.
#[derive(Debug)]
pub struct RowSort {
    pub input: Operator,
    slot: usize,
    outputs: Vec<Expr>,
    keys: Vec<SortKey>,
    most: Option<(Expr, Option<Expr>)>,
    /// The slots of tables whose keys go with the rows, for a cursor.
    keyed: Vec<usize>,
    /// The keys of the current row.
    current: Vec<Value>,
    rows: Vec<SortRow>,
    runs: Option<SortedRuns>,
    account: MemoryCharge,
    next: usize,
    done: bool,
}

/// The order of one key.
pub(super) fn order_of(key: &SortKey, a: &Value, b: &Value) -> Ordering {
    order_of_values((key.descending, key.nulls_first), a, b)
}

/// The order of two values: descending or not, NULLs first or last.
pub fn order_of_values((descending, nulls_first): (bool, bool), a: &Value, b: &Value) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending => b.as_ref().order(a.as_ref()),
        (false, false) => a.as_ref().order(b.as_ref()),
    }
}

/// The order of two rows, whose keys follow `width` outputs.
fn compare(keys: &[SortKey], width: usize, a: &[Value], b: &[Value]) -> Ordering {
    let key_values = |row| <[Value]>::iter(row).skip(width);
    let pairs = keys.iter().zip(key_values(a).zip(key_values(b)));
    pairs
        .map(|(key, (a, b))| order_of(key, a, b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Returns the number of rows needed by LIMIT and OFFSET, or the maximum without LIMIT.
pub fn wanted_of(context: &Context<'_>, most: Option<&(Expr, Option<Expr>)>) -> Result<usize> {
    let Some((limit, offset)) = most else { return Ok(usize::MAX) };
    let limit = bound_of(context, Some(limit), SqlState::InvalidRowCountInLimit, "LIMIT")?;
    let offset = bound_of(context, offset.as_ref(), SqlState::InvalidRowCountInOffset, "OFFSET")?;
    let sum = limit.map(|limit| limit.saturating_add(offset.unwrap_or(0)));
    Ok(sum.and_then(|sum| usize::try_from(sum).ok()).unwrap_or(usize::MAX))
}

impl RowSort {
    pub fn new(
        input: Operator,
        slot: usize,
        outputs: Vec<Expr>,
        keys: Vec<SortKey>,
        most: Option<(Expr, Option<Expr>)>,
    ) -> RowSort {
        let (rows, account) = (Vec::new(), MemoryCharge::default());
        let (keyed, current, runs) = (Vec::new(), Vec::new(), None);
        let (next, done) = (0, false);
        RowSort {
            input,
            slot,
            outputs,
            keys,
            most,
            keyed,
            current,
            rows,
            runs,
            account,
            next,
            done,
        }
    }

    /// Keeps the keys of the rows in these slots with the rows.
    pub fn keep_row_keys(&mut self, slots: Vec<usize>) {
        self.keyed = slots;
    }

    /// Returns the key of the current row of a table, if the rows keep it.
    pub fn row_key(&self, slot: usize) -> Option<&[u8]> {
        let nth = self.keyed.iter().position(|it| *it == slot)?;
        match self.current.get(nth)? {
            Value::Bytea(key) => Some(key),
            _ => None,
        }
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.done = false;
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.done = true;
        self.next = 0;
        self.account.clear(context);
        self.rows.clear();
        if let Some(runs) = self.runs.take() {
            runs.remove(context);
        }
        let wanted = wanted_of(context, self.most.as_ref())?;
        let mut kept = 0;
        while self.input.next(context)? {
            let frame = context.frame();
            let mut row = Vec::with_capacity(self.outputs.len() + self.keys.len());
            for value in self.outputs.iter().chain(self.keys.iter().map(|key| &key.expr)) {
                row.push(value.evaluate(&frame)?.into_value());
            }
            for slot in &self.keyed {
                let key = self.input.row_key(*slot, context);
                row.push(key.map_or(Value::Null, |key| Value::Bytea(key.into())));
            }
            kept += memory_of(&row);
            self.rows.push(row);
            if !self.account.fits(kept, context)? {
                self.spill(wanted, context)?;
                kept = 0;
            }
            // The rows that are not among the first ones are dropped before they become too many.
            if self.rows.len() >= wanted.saturating_mul(2).saturating_add(64) {
                self.order(wanted);
                kept = self.rows.iter().map(memory_of).sum();
            }
        }
        if self.runs.is_none() {
            self.order(wanted);
            return Ok(());
        }
        self.spill(wanted, context)?;
        self.rows = Vec::new();
        let (keys, width) = (&self.keys, self.outputs.len());
        match &mut self.runs {
            Some(runs) => runs.merge(context, &|a, b| compare(keys, width, a, b)),
            None => Ok(()),
        }
    }

    /// Sorts the rows, and keeps those that are wanted.
    fn order(&mut self, wanted: usize) {
        let (keys, width) = (&self.keys, self.outputs.len());
        self.rows.sort_by(|a, b| compare(keys, width, a, b));
        self.rows.truncate(wanted);
    }

    /// Moves the rows to a sorted run.
    fn spill(&mut self, wanted: usize, context: &Context<'_>) -> Result<()> {
        self.order(wanted);
        let runs = match &mut self.runs {
            Some(runs) => runs,
            runs => runs.insert(SortedRuns::new(context)?),
        };
        runs.begin_run();
        for row in self.rows.drain(..) {
            runs.push(row.iter().map(Value::as_ref))?;
        }
        self.account.set(0, context);
        runs.end_run()
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.done {
            self.run(context)?;
        }
        let (keys, width) = (&self.keys, self.outputs.len());
        let slot = context.slot(self.slot)?;
        if let Some(runs) = &mut self.runs {
            if !runs.next(&mut slot.values, &|a, b| compare(keys, width, a, b))? {
                return Ok(false);
            }
        } else {
            let Some(row) = self.rows.get_mut(self.next) else { return Ok(false) };
            self.next += 1;
            std::mem::swap(&mut slot.values, row);
        }
        if !self.keyed.is_empty() {
            self.current.clear();
            self.current.extend(slot.values.drain(width + keys.len()..));
        }
        slot.values.truncate(width);
        slot.current = crate::expression::Current::Values;
        Ok(true)
    }
}
