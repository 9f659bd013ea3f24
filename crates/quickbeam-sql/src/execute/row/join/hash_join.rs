//! Hash joins by rows.
//!
//! The inner rows are stored by key, then each outer row looks up its matches. Inner rows that do
//! not fit into memory are spilled to partitions of a temporary file, with the outer rows that may
//! match them (SPILL-1).
//!
//! - SPILLJOIN-1: an outer row meets the inner rows in memory first, then those of its partition.
//!   The record of an outer row tells whether it was matched, so that a row without any match is
//!   returned once.

use quickbeam::invariant;

use super::buffered_rows::BufferedRows;
use super::join_keys::{JoinKey, JoinKeys};
use super::set_nothing;
use crate::error::Result;
use crate::execute::hash::join_index::{NONE, ROW_BYTES, members_of};
use crate::execute::row::scan::TableScan;
use crate::execute::row::{Context, Operator};
use crate::execute::spill::{PairedPartitions, SavedKeys, restore_rows, save_rows, take};
use crate::expression::{ColumnRef, Expr};
use crate::plan::{self, HashJoinKind};

/// The operator of a hash join.
#[derive(Debug)]
pub struct RowHashJoin {
    outer: Operator,
    inner: Operator,
    inner_slots: Vec<usize>,
    outer_slots: Vec<usize>,
    outer_keys: Vec<Expr>,
    inner_keys: Vec<Expr>,
    kind: HashJoinKind,
    condition: Option<Expr>,
    /// Returns a row if a pair fits.
    check: Option<Operator>,
    keys: JoinKeys,
    rows: BufferedRows,
    /// For each inner row whether it was matched, if `kind` returns rows by that.
    fitted_rows: Vec<bool>,
    built: bool,
    /// The inner row to be tried next.
    candidate: u32,
    current: usize,
    has_outer: bool,
    fitted: bool,
    /// After the last outer row: the inner row that may be returned next.
    inner_row: Option<usize>,
    /// The column that is the first key of the outer rows, if the outer scan may skip rows without
    /// a partner.
    wanted: Option<ColumnRef>,
    /// Whether all first keys of the inner rows of this run are integers so far; `numbers` lists
    /// them, or their bounds if inner rows were spilled.
    narrows: bool,
    numbers: Vec<i64>,
    spilled: Option<SpilledRecords>,
    /// Whether a new run begins, to which the spilled rows do not belong.
    fresh: bool,
    /// For how many of its parts the plan has workers, none of which this join starts.
    idle_workers: usize,
}

/// Spilled rows in partitions.
#[derive(Debug)]
struct SpilledRecords {
    partitions: PairedPartitions,
    /// Whether they are read now.
    is_read: bool,
    /// The keys of the rows read last, if the plan needs them.
    keys: SavedKeys,
    record: Vec<u8>,
}

impl RowHashJoin {
    pub fn new(mut outer: Operator, inner: Operator, plan: &plan::HashJoin) -> RowHashJoin {
        let first = plan.outer_keys.first().and_then(Expr::as_column);
        let skips = plan.kind.skips_unmatched_outer();
        let wanted = first.filter(|first| skips && outer.scan_for_keys(*first).is_some());
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
            kind: plan.kind,
            condition: plan.condition.clone(),
            check: None,
            keys: JoinKeys::default(),
            fitted_rows: Vec::new(),
            built: false,
            candidate: NONE,
            current: 0,
            has_outer: false,
            fitted: false,
            inner_row: None,
            spilled: None,
            fresh: true,
            idle_workers: 0,
        }
    }

    /// Tells the join for how many of its parts the plan has workers.
    pub fn leave_workers(&mut self, planned: usize) {
        self.idle_workers = planned;
    }

    /// Makes the join ask an operator whether a pair fits.
    pub fn checked(self, check: Option<Operator>) -> RowHashJoin {
        RowHashJoin { check, ..self }
    }

    fn is_checked(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let Some(check) = &mut self.check else { return Ok(true) };
        check.again();
        check.next(context)
    }

    /// Makes a join of the outer rows that are left. Their scan has begun, so its rows are not
    /// limited to the keys of the inner rows.
    pub fn midway(outer: Operator, inner: Operator, plan: &plan::HashJoin) -> RowHashJoin {
        RowHashJoin { wanted: None, ..RowHashJoin::new(outer, inner, plan) }
    }

    pub fn outer(&self) -> &Operator {
        &self.outer
    }

    /// Takes the outer rows back.
    pub fn take_outer(&mut self) -> Operator {
        std::mem::replace(&mut self.outer, Operator::One(true))
    }

    /// Releases the memory and the file of the join.
    pub fn forget(mut self, context: &Context<'_>) {
        self.rows.clear(context);
        if let Some(spilled) = self.spilled.take() {
            spilled.partitions.remove(context);
        }
    }

    /// See [`Operator::scan_for_keys`]. A left join returns outer rows without a partner, but a
    /// scan above it may skip them; a full join may not.
    pub fn scan_for_keys(&mut self, column: ColumnRef) -> Option<&mut TableScan> {
        match self.kind {
            HashJoinKind::Inner | HashJoinKind::Left => self.outer.scan_for_keys(column),
            HashJoinKind::Full => None,
            HashJoinKind::RightSemi | HashJoinKind::RightAnti => self.inner.scan_for_keys(column),
        }
    }

    /// Limits the scan of the outer rows to the keys of the inner rows.
    fn narrow_outer(&mut self, context: &Context<'_>) -> Result<()> {
        let Some(column) = self.wanted.filter(|_| self.narrows) else { return Ok(()) };
        let (low, high, members) = match (&self.spilled, &self.numbers[..]) {
            (Some(_), [low, high]) => (*low, *high, None),
            _ => members_of(&self.numbers),
        };
        let bytes = members.as_ref().map_or(0, |bits| bits.len() * 8);
        let kept = self.rows.account.kept();
        let members = match bytes == 0 || self.rows.account.fits(kept + bytes, context)? {
            true => members,
            false => None,
        };
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
        match (number, &self.spilled) {
            (Some(number), None) => self.numbers.push(number),
            (Some(number), Some(_)) => {
                let all = || self.numbers.iter().copied().chain([number]);
                let (low, high) = (all().min(), all().max());
                self.numbers = low.into_iter().chain(high).collect();
            }
            // A range of integers cannot hold such a key.
            (None, _) => self.narrows = false,
        }
        Ok(())
    }

    /// Moves to the next inner row, of the input or of the spilled ones.
    fn next_inner(&mut self, context: &mut Context<'_>) -> Result<bool> {
        match &mut self.spilled {
            Some(spilled) if spilled.is_read => {
                context.check_cancelled()?;
                let Some(record) = spilled.partitions.next()? else { return Ok(false) };
                restore_rows(&self.inner_slots, record, context, &mut spilled.keys)?;
                Ok(true)
            }
            _ => self.inner.next(context),
        }
    }

    /// Stores the inner rows of this level.
    fn build(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.built = true;
        let is_first = self.spilled.as_ref().is_none_or(|spilled| !spilled.is_read);
        self.narrows = is_first && self.wanted.is_some();
        self.numbers.clear();
        self.keys.chains.clear();
        self.rows.clear(context);
        while self.next_inner(context)? {
            let key = self.keys.make(&self.inner_keys, context)?;
            let has_key = !matches!(key, JoinKey::Null);
            if !has_key && !self.kind.returns_unmatched_inner() {
                continue;
            }
            let is_spilled = !self.fits(has_key, context)?;
            if is_spilled {
                self.put_aside(&key, context)?;
            } else {
                match &self.spilled {
                    Some(spilled) if spilled.is_read => self.rows.push(context, |slot| {
                        let known = spilled.keys.iter().find(|(of, _)| *of == slot);
                        known.map(|(_, key)| &key[..])
                    }),
                    _ => self.rows.push(context, |slot| self.inner.row_key(slot, context)),
                }
                self.keys.add(&key);
            }
            if has_key && self.narrows {
                self.note_number(&key, context)?;
            }
        }
        self.rows.settle(context)?;
        if let Some(spilled) = &mut self.spilled {
            spilled.partitions.finish_build()?;
            spilled.partitions.open_probe();
        }
        self.narrow_outer(context)?;
        self.fitted_rows.clear();
        if self.kind == HashJoinKind::Full || self.kind.returns_inner() {
            self.fitted_rows.resize(self.keys.chains.rows(), false);
        }
        Ok(())
    }

    /// Charges the current inner row. Returns false if it must be spilled.
    fn fits(&mut self, has_key: bool, context: &Context<'_>) -> Result<bool> {
        if self.spilled.as_ref().is_some_and(|spilled| spilled.partitions.has_build_rows()) {
            return Ok(false);
        }
        let of_key = if has_key { self.keys.bytes.len() + ROW_BYTES } else { 0 };
        let bytes = self.rows.account.kept() + self.rows.memory_of_current(context) + of_key;
        self.rows.account.fits(bytes, context)
    }

    /// Writes the current inner row to the partition of its key.
    fn put_aside(&mut self, key: &JoinKey, context: &Context<'_>) -> Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            spilled => spilled.insert(SpilledRecords {
                partitions: PairedPartitions::new(context)?,
                is_read: false,
                keys: SavedKeys::new(),
                record: Vec::new(),
            }),
        };
        let SpilledRecords { partitions, is_read, keys, record } = spilled;
        record.clear();
        let known = |slot: usize| match is_read {
            true => keys.iter().find(|(of, _)| *of == slot).map(|(_, key)| &key[..]),
            false => self.inner.row_key(slot, context),
        };
        save_rows(&self.inner_slots, context, &known, record);
        let key = self.keys.partition_key(key);
        partitions.push_build(key, |out| out.extend_from_slice(record))
    }

    /// Moves to the next outer row, of the input or of the spilled ones.
    fn next_outer(&mut self, context: &mut Context<'_>) -> Result<bool> {
        self.fitted = false;
        match &mut self.spilled {
            Some(spilled) if spilled.is_read => {
                context.check_cancelled()?;
                let Some(mut record) = spilled.partitions.next()? else { return Ok(false) };
                let [fitted] = *take(&mut record)?;
                self.fitted = fitted != 0;
                restore_rows(&self.outer_slots, record, context, &mut spilled.keys)?;
                Ok(true)
            }
            _ => self.outer.next(context),
        }
    }

    /// Writes the current outer row, which was matched with the rows in memory, to the partition of
    /// its key, if there are inner rows. Returns whether it was spilled.
    fn postpone(&mut self, context: &Context<'_>) -> Result<bool> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        if !spilled.partitions.has_build_rows() {
            return Ok(false);
        }
        let key = self.keys.make(&self.outer_keys, context)?;
        if matches!(key, JoinKey::Null) {
            return Ok(false);
        }
        let key = self.keys.partition_key(&key);
        let SpilledRecords { partitions, is_read, keys, record } = spilled;
        if !partitions.has_build_rows_of(key) {
            return Ok(false);
        }
        let has_met = self.candidate == NONE;
        invariant!(SPILLJOIN_1, has_met, "row {} was not tried", self.candidate);
        record.clear();
        record.push(u8::from(self.fitted));
        let known = |slot: usize| match is_read {
            true => keys.iter().find(|(of, _)| *of == slot).map(|(_, key)| &key[..]),
            false => self.outer.row_key(slot, context),
        };
        save_rows(&self.outer_slots, context, &known, record);
        partitions.push_probe(key, |out| out.extend_from_slice(record))?;
        Ok(true)
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh)
            && let Some(spilled) = self.spilled.take()
        {
            spilled.partitions.remove(context);
        }
        loop {
            if !self.built {
                self.build(context)?;
            }
            if let Some(from) = self.inner_row {
                if self.next_inner_row(from, context)? {
                    return Ok(true);
                }
            } else if self.next_matched(context)? {
                return Ok(true);
            } else if !self.fitted_rows.is_empty() {
                self.inner_row = Some(0);
                continue;
            }
            if !self.open_spilled()? {
                return Ok(false);
            }
        }
    }

    /// Begins to read spilled rows. Returns false if there are none.
    fn open_spilled(&mut self) -> Result<bool> {
        let Some(spilled) = &mut self.spilled else { return Ok(false) };
        if !spilled.partitions.open_next()? {
            return Ok(false);
        }
        spilled.is_read = true;
        (self.built, self.has_outer, self.inner_row) = (false, false, None);
        Ok(true)
    }

    /// Moves to the next match of an outer row.
    fn next_matched(&mut self, context: &mut Context<'_>) -> Result<bool> {
        loop {
            if !self.has_outer {
                if !self.next_outer(context)? {
                    return Ok(false);
                }
                self.has_outer = true;
                let key = self.keys.make(&self.outer_keys, context)?;
                self.candidate = self.keys.first(&key);
            }
            while let Some(next) = self.keys.chains.next(self.candidate) {
                context.check_cancelled()?;
                self.current = self.candidate as usize;
                self.candidate = next;
                let is_known = self.fitted_rows.get(self.current) == Some(&true);
                if is_known && self.kind.returns_inner() {
                    continue;
                }
                self.rows.stand(self.current, context)?;
                if context.holds(self.condition.as_ref())? && self.is_checked(context)? {
                    self.fitted = true;
                    if let Some(fitted) = self.fitted_rows.get_mut(self.current) {
                        *fitted = true;
                    }
                    if self.kind.returns_inner() {
                        continue;
                    }
                    return Ok(true);
                }
            }
            self.has_outer = false;
            let is_spilled = self.spilled.is_some() && self.postpone(context)?;
            if !self.kind.skips_unmatched_outer() && !self.fitted && !is_spilled {
                set_nothing(context, &self.inner_slots)?;
                return Ok(true);
            }
        }
    }

    /// Moves to the next inner row, from that one on, that was matched, in a semi-join, or was not,
    /// in a full join or an anti-join.
    fn next_inner_row(&mut self, from: usize, context: &mut Context<'_>) -> Result<bool> {
        let count = self.keys.chains.rows();
        let fitted = self.kind == HashJoinKind::RightSemi;
        let next = (from..count).find(|row| self.fitted_rows.get(*row) == Some(&fitted));
        self.inner_row = Some(next.map_or(count, |row| row + 1));
        let Some(row) = next else { return Ok(false) };
        set_nothing(context, &self.outer_slots)?;
        self.current = row;
        self.rows.stand(row, context)?;
        Ok(true)
    }

    pub fn rewind(&mut self) {
        self.outer.rewind();
        self.inner.rewind();
        self.check.iter_mut().for_each(Operator::rewind);
        self.built = false;
        self.has_outer = false;
        self.inner_row = None;
        self.fresh = true;
    }

    pub fn row_key<'o>(&'o self, slot: usize, context: &'o Context<'_>) -> Option<&'o [u8]> {
        if self.inner_slots.contains(&slot) {
            return self.rows.row_key(slot, self.current, context);
        }
        match &self.spilled {
            Some(spilled) if spilled.is_read => {
                let known = spilled.keys.iter().find(|(of, _)| *of == slot);
                known.map(|(_, key)| &key[..])
            }
            _ => self.outer.row_key(slot, context),
        }
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        counts.extend(std::iter::repeat_n(0, self.idle_workers));
        self.outer.counts(counts);
        self.inner.counts(counts);
        self.check.iter().for_each(|check| check.counts(counts));
    }
}
