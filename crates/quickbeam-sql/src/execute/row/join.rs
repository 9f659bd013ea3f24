//! Joins.

use super::scan::TableScan;
use super::{Context, MemoryCharge, Operator};
use crate::error::Result;
use crate::execute::hash::join_index::{JoinIndex, NONE, ROW_BYTES, members_of};
use crate::execute::hash::key_table::append;
use crate::expression::{ColumnRef, Current, Expr};
use crate::plan::{self, Join};
use crate::types::Value;

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

/// Sets the slots to NULL rows, for an outer row without a match.
fn set_nothing(context: &mut Context<'_>, slots: &[usize]) -> Result<()> {
    for &slot in slots {
        context.slot(slot)?.current = Current::Nothing;
    }
    Ok(())
}

/// The bytes of one slot's part of a stored row.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Nothing,
    Bytes(usize, usize),
    Values(usize),
}

/// Rows of several slots, stored in memory.
#[derive(Debug, Default)]
struct BufferedRows {
    slots: Vec<usize>,
    /// Encoded rows of each slot, concatenated.
    bytes: Vec<Vec<u8>>,
    values: Vec<Vec<Value>>,
    /// For each row one entry per slot.
    kept: Vec<Kept>,
    /// Keys of the rows that will be changed, if the plan needs them.
    keys: Vec<Vec<(usize, usize)>>,
    account: MemoryCharge,
}

impl BufferedRows {
    fn new(slots: Vec<usize>) -> BufferedRows {
        let bytes = slots.iter().map(|_| Vec::new()).collect();
        let keys = slots.iter().map(|_| Vec::new()).collect();
        BufferedRows { slots, bytes, keys, ..BufferedRows::default() }
    }

    fn clear(&mut self, context: &Context<'_>) {
        self.account.clear(context);
        self.bytes.iter_mut().for_each(Vec::clear);
        self.keys.iter_mut().for_each(Vec::clear);
        self.values.clear();
        self.kept.clear();
    }

    /// Stores the current rows.
    fn push(&mut self, context: &Context<'_>, input: &Operator) -> Result<()> {
        for (nth, number) in self.slots.iter().enumerate() {
            let Some(slot) = context.slots.get(*number) else { continue };
            let kept = match slot.current {
                Current::Nothing => Kept::Nothing,
                Current::Values => {
                    self.values.push(slot.values.clone());
                    self.account.keep_values(&slot.values, context)?;
                    Kept::Values(self.values.len() - 1)
                }
                Current::Record(_) | Current::Bytes(..) => {
                    let row = slot.row();
                    self.account.keep(row.len() + size_of::<Kept>(), context)?;
                    let start = self.bytes[nth].len();
                    self.bytes[nth].extend_from_slice(row);
                    Kept::Bytes(start, self.bytes[nth].len())
                }
            };
            self.kept.push(kept);
            if let Some(key) = input.row_key(*number, context) {
                let start = self.bytes[nth].len();
                self.bytes[nth].extend_from_slice(key);
                self.keys[nth].push((start, start + key.len()));
            }
        }
        Ok(())
    }

    /// Moves the bytes of the stored rows into the slots, after the last row.
    fn settle(&mut self, context: &mut Context<'_>) -> Result<()> {
        for (nth, number) in self.slots.iter().enumerate() {
            std::mem::swap(&mut context.slot(*number)?.bytes, &mut self.bytes[nth]);
        }
        Ok(())
    }

    /// Makes a stored row the current row of the slots.
    #[inline]
    fn stand(&self, row: usize, context: &mut Context<'_>) -> Result<()> {
        let width = self.slots.len();
        for (nth, number) in self.slots.iter().enumerate() {
            let slot = context.slot(*number)?;
            slot.current = match self.kept.get(row * width + nth) {
                Some(Kept::Bytes(start, end)) => Current::Bytes(*start, *end),
                Some(Kept::Values(at)) => {
                    slot.values.clone_from(&self.values[*at]);
                    Current::Values
                }
                Some(Kept::Nothing) | None => Current::Nothing,
            };
        }
        Ok(())
    }

    fn row_key<'o>(
        &'o self,
        slot: usize,
        row: usize,
        context: &'o Context<'_>,
    ) -> Option<&'o [u8]> {
        let nth = self.slots.iter().position(|number| *number == slot)?;
        let (start, end) = *self.keys[nth].get(row)?;
        context.slots.get(slot)?.bytes.get(start..end)
    }
}

/// Keys of the inner rows, and the rows of each key.
#[derive(Debug, Default)]
struct JoinKeys {
    chains: JoinIndex,
    bytes: Vec<u8>,
}

/// The key of a row.
enum JoinKey {
    /// A part of it is NULL, which matches nothing.
    Null,
    Number(i64),
    /// The key is in [`JoinKeys::bytes`].
    Bytes,
}

impl JoinKeys {
    /// Makes the key of the current rows.
    #[inline]
    fn make(&mut self, keys: &[Expr], context: &Context<'_>) -> Result<JoinKey> {
        if let [Expr::Column(at)] = keys
            && let Some(number) = context.slots.get(at.slot).and_then(|slot| slot.number(at.column))
        {
            return Ok(JoinKey::Number(number));
        }
        self.make_bytes(keys, context)
    }

    fn make_bytes(&mut self, keys: &[Expr], context: &Context<'_>) -> Result<JoinKey> {
        self.bytes.clear();
        let frame = context.frame();
        for part in keys {
            let value = part.evaluate(&frame)?;
            match value.as_ref().as_i64() {
                _ if value.is_null() => return Ok(JoinKey::Null),
                Some(number) if keys.len() == 1 => return Ok(JoinKey::Number(number)),
                _ => append(value.as_ref(), &mut self.bytes),
            }
        }
        Ok(JoinKey::Bytes)
    }

    /// The first row of a key.
    #[inline]
    fn first(&self, key: &JoinKey) -> u32 {
        match key {
            JoinKey::Null => NONE,
            JoinKey::Number(number) => self.chains.first_of_number(*number),
            JoinKey::Bytes => self.chains.first_of_bytes(&self.bytes),
        }
    }

    /// Adds a row.
    fn add(&mut self, key: &JoinKey) {
        match key {
            JoinKey::Null => self.chains.add_without_key(),
            JoinKey::Number(number) => self.chains.add_number(*number),
            JoinKey::Bytes => self.chains.add_bytes(&self.bytes),
        }
    }
}

/// Hash join: stores the inner rows by key, then looks up the matches of each outer row.
#[derive(Debug)]
pub struct RowHashJoin {
    outer: Operator,
    inner: Operator,
    inner_slots: Vec<usize>,
    outer_slots: Vec<usize>,
    outer_keys: Vec<Expr>,
    inner_keys: Vec<Expr>,
    join: Join,
    full: bool,
    condition: Option<Expr>,
    keys: JoinKeys,
    rows: BufferedRows,
    fitted_rows: Vec<bool>,
    built: bool,
    /// The inner row to be tried next.
    candidate: u32,
    current: usize,
    has_outer: bool,
    fitted: bool,
    /// The next inner row that nothing fitted is from here on.
    unfitted: Option<usize>,
    /// The column that is the first key of the outer rows, if the outer scan may skip rows without
    /// a partner.
    wanted: Option<ColumnRef>,
    /// Whether all first keys of the inner rows of this run are integers so far; `numbers` lists
    /// them.
    narrows: bool,
    numbers: Vec<i64>,
}

impl RowHashJoin {
    pub fn new(mut outer: Operator, inner: Operator, plan: &plan::HashJoin) -> RowHashJoin {
        let first = plan.outer_keys.first().and_then(Expr::as_column);
        let is_inner = plan.join == Join::Inner && !plan.full;
        let wanted = first.filter(|first| is_inner && outer.scan_for_keys(*first).is_some());
        RowHashJoin {
            wanted,
            narrows: false,
            numbers: Vec::new(),
            outer,
            inner,
            rows: BufferedRows::new(plan.inner_slots.clone()),
            inner_slots: plan.inner_slots.clone(),
            outer_slots: plan.outer_slots.clone(),
            outer_keys: plan.outer_keys.clone(),
            inner_keys: plan.inner_keys.clone(),
            join: plan.join,
            full: plan.full,
            condition: plan.condition.clone(),
            keys: JoinKeys::default(),
            fitted_rows: Vec::new(),
            built: false,
            candidate: NONE,
            current: 0,
            has_outer: false,
            fitted: false,
            unfitted: None,
        }
    }

    /// See [`Operator::scan_for_keys`]. A left join returns outer rows without a partner, but a
    /// scan above it may skip them; a full join may not.
    pub fn outer_scan(&mut self, column: ColumnRef) -> Option<&mut TableScan> {
        if self.full { None } else { self.outer.scan_for_keys(column) }
    }

    /// Limits the scan of the outer rows to the keys of the inner rows.
    fn narrow_outer(&mut self, context: &Context<'_>) -> Result<()> {
        let Some(column) = self.wanted.filter(|_| self.narrows) else { return Ok(()) };
        let (low, high, members) = members_of(&self.numbers);
        let bytes = members.as_ref().map_or(0, |bits| bits.len() * 8);
        self.rows.account.keep(bytes, context)?;
        if let Some(scan) = self.outer.scan_for_keys(column) {
            scan.push_down_key_filters(column, low, high, members);
        }
        Ok(())
    }

    /// Records the first part of an inner row's key, to limit the scan of the outer rows.
    fn note_number(&mut self, key: &JoinKey, context: &Context<'_>) -> Result<()> {
        let number = match (key, self.inner_keys.first()) {
            (JoinKey::Number(number), _) => Some(*number),
            (_, Some(first)) => first.evaluate(&context.frame())?.as_ref().as_i64(),
            _ => None,
        };
        match number {
            Some(number) => self.numbers.push(number),
            // A range of integers cannot hold such a key.
            None => self.narrows = false,
        }
        Ok(())
    }

    fn build(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.built = true;
        self.narrows = self.wanted.is_some();
        self.numbers.clear();
        self.keys.chains.clear();
        self.rows.clear(context);
        while self.inner.next(context)? {
            let key = self.keys.make(&self.inner_keys, context)?;
            let has_key = !matches!(key, JoinKey::Null);
            if !has_key && !self.full {
                continue;
            }
            self.rows.push(context, &self.inner)?;
            self.keys.add(&key);
            if !has_key {
                continue;
            }
            self.rows.account.keep(self.keys.bytes.len() + ROW_BYTES, context)?;
            if self.narrows {
                self.note_number(&key, context)?;
            }
        }
        self.rows.settle(context)?;
        self.narrow_outer(context)?;
        self.fitted_rows.clear();
        if self.full {
            self.fitted_rows.resize(self.keys.chains.rows(), false);
        }
        Ok(())
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.built {
            self.build(context)?;
        }
        if let Some(from) = self.unfitted {
            return self.next_unfitted(from, context);
        }
        loop {
            if !self.has_outer {
                if !self.outer.next(context)? {
                    if self.full {
                        return self.next_unfitted(0, context);
                    }
                    return Ok(false);
                }
                self.has_outer = true;
                self.fitted = false;
                let key = self.keys.make(&self.outer_keys, context)?;
                self.candidate = self.keys.first(&key);
            }
            while let Some(next) = self.keys.chains.next(self.candidate) {
                context.check_cancelled()?;
                self.current = self.candidate as usize;
                self.candidate = next;
                self.rows.stand(self.current, context)?;
                if context.holds(self.condition.as_ref())? {
                    self.fitted = true;
                    if let Some(fitted) = self.fitted_rows.get_mut(self.current) {
                        *fitted = true;
                    }
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

    /// Inner rows that nothing fitted, from that one on.
    fn next_unfitted(&mut self, from: usize, context: &mut Context<'_>) -> Result<bool> {
        let count = self.keys.chains.rows();
        let next = (from..count).find(|row| self.fitted_rows.get(*row) == Some(&false));
        self.unfitted = Some(next.map_or(count, |row| row + 1));
        let Some(row) = next else { return Ok(false) };
        set_nothing(context, &self.outer_slots)?;
        self.current = row;
        self.rows.stand(row, context)?;
        Ok(true)
    }

    pub fn rewind(&mut self) {
        self.outer.rewind();
        self.inner.rewind();
        self.built = false;
        self.has_outer = false;
        self.unfitted = None;
    }

    pub fn row_key<'o>(&'o self, slot: usize, context: &'o Context<'_>) -> Option<&'o [u8]> {
        if self.inner_slots.contains(&slot) {
            return self.rows.row_key(slot, self.current, context);
        }
        self.outer.row_key(slot, context)
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.outer.counts(counts);
        self.inner.counts(counts);
    }
}
