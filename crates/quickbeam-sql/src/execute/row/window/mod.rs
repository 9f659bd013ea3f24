//! Window functions over sorted rows, one partition at a time.
//!
//! Above: operators over the result slot. Below: sorted rows, frames. A partition is read to its
//! end, then each function computes its values for all rows of it. A partition that does not fit
//! into memory goes to a file, if its functions can follow it there.

mod spilled_partition;
pub(super) mod window_frame;

use self::spilled_partition::SpilledPartition;
use self::window_frame::{FrameRows, Partition};
use super::{Context, MemoryCharge, Operator, aggregate::AggregateState, values_memory};
use crate::bind::{Aggregate, FrameExclusion, WindowCall, WindowFunction, WindowKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Current, Expr};
use crate::plan::{SortKey, WindowAgg};
use crate::types::{Value, ValueRef};

/// A buffered row: the columns passed on, the partition and sort keys, the functions' arguments.
#[derive(Debug, Default)]
pub struct WindowRow {
    values: Vec<Value>,
    partition: Vec<Value>,
    pub keys: Vec<Value>,
    arguments: Vec<Value>,
}

impl WindowRow {
    fn memory(&self) -> usize {
        let parts = [&self.values, &self.partition, &self.keys, &self.arguments];
        parts.into_iter().flatten().map(Value::memory).sum::<usize>() + size_of::<WindowRow>()
    }
}

/// The operator of a `WindowAgg` node.
#[derive(Debug)]
pub struct RowWindowAgg {
    pub input: Operator,
    slot: usize,
    columns: Vec<Expr>,
    partition: Vec<Expr>,
    order: Vec<SortKey>,
    functions: Vec<WindowFunction>,
    /// The rows of the present partition.
    rows: Vec<WindowRow>,
    /// The values of PARTITION BY of that partition.
    key: Vec<Value>,
    /// Whether the functions can follow a partition in a file.
    can_spill: bool,
    /// The present partition, if it is in a file.
    spilled: Option<SpilledPartition>,
    /// The first row of the next partition.
    pending: Option<WindowRow>,
    account: MemoryCharge,
    next: usize,
    fresh: bool,
    ended: bool,
}

/// Returns the number of arguments of a function that are buffered with each row.
fn width(function: &WindowFunction) -> usize {
    match &function.call {
        // The argument, whether the filter holds, and the second argument if there is one.
        WindowCall::Aggregate(aggregate) => 2 + usize::from(aggregate.second.is_some()),
        WindowCall::Position(_, arguments) => arguments.len(),
    }
}

impl RowWindowAgg {
    pub fn new(input: Operator, node: &WindowAgg) -> RowWindowAgg {
        RowWindowAgg {
            input,
            slot: node.slot,
            columns: node.columns.clone(),
            partition: node.partition.clone(),
            order: node.order.clone(),
            functions: node.functions.clone(),
            rows: Vec::new(),
            key: Vec::new(),
            can_spill: SpilledPartition::can_follow(node),
            spilled: None,
            pending: None,
            account: MemoryCharge::default(),
            next: 0,
            fresh: true,
            ended: false,
        }
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.fresh = true;
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh) {
            self.rows.clear();
            self.pending = None;
            self.next = 0;
            self.ended = false;
            self.account.clear(context);
            self.drop_file(context);
        }
        while self.next >= self.rows.len() {
            if let Some(spilled) = &mut self.spilled {
                if let Some(values) = spilled.next(context)? {
                    let slot = context.slot(self.slot)?;
                    slot.values = values;
                    slot.current = Current::Values;
                    return Ok(true);
                }
                self.drop_file(context);
            }
            if self.ended {
                return Ok(false);
            }
            self.read_partition(context)?;
        }
        let Some(row) = self.rows.get_mut(self.next) else { return Ok(false) };
        self.next += 1;
        let slot = context.slot(self.slot)?;
        std::mem::swap(&mut slot.values, &mut row.values);
        slot.current = Current::Values;
        Ok(true)
    }

    /// Buffers the current row of the input.
    fn take_row(&self, context: &Context<'_>) -> Result<WindowRow> {
        let frame = context.frame();
        let mut row = WindowRow::default();
        let all = |exprs: &[Expr], out: &mut Vec<Value>| -> Result<()> {
            for expr in exprs {
                out.push(expr.evaluate(&frame)?.into_value());
            }
            Ok(())
        };
        all(&self.columns, &mut row.values)?;
        all(&self.partition, &mut row.partition)?;
        for key in &self.order {
            row.keys.push(key.expr.evaluate(&frame)?.into_value());
        }
        for function in &self.functions {
            match &function.call {
                WindowCall::Position(_, arguments) => all(arguments, &mut row.arguments)?,
                WindowCall::Aggregate(Aggregate { argument, second, filter, .. }) => {
                    let counts = match filter {
                        Some(filter) => filter.is_true(&frame)?,
                        None => true,
                    };
                    row.arguments.push(match argument.as_ref().filter(|_| counts) {
                        Some(argument) => argument.evaluate(&frame)?.into_value(),
                        None => Value::Null,
                    });
                    row.arguments.push(Value::Boolean(counts));
                    if let Some(second) = second {
                        row.arguments.push(match counts {
                            true => second.evaluate(&frame)?.into_value(),
                            false => Value::Null,
                        });
                    }
                }
            }
        }
        Ok(row)
    }

    fn drop_file(&mut self, context: &Context<'_>) {
        if let Some(mut spilled) = self.spilled.take() {
            spilled.remove(context);
        }
    }

    /// Adds a row to the present partition, in memory or in its file.
    fn add(&mut self, row: WindowRow, context: &Context<'_>) -> Result<()> {
        if let Some(spilled) = &mut self.spilled {
            return spilled.push(&row);
        }
        // The values of the functions come in addition.
        let bytes = row.memory() + self.functions.len() * size_of::<Value>();
        if !self.can_spill {
            self.account.keep(bytes, context)?;
        } else if !self.account.fits(self.account.kept() + bytes, context)? {
            let (columns, order) = (self.columns.len(), &self.order);
            let new = SpilledPartition::new(columns, order, &self.functions, context)?;
            let spilled = self.spilled.insert(new);
            self.rows.drain(..).try_for_each(|row| spilled.push(&row))?;
            self.account.clear(context);
            return spilled.push(&row);
        }
        self.rows.push(row);
        Ok(())
    }

    /// Reads the rows of the next partition, and computes the functions for them.
    fn read_partition(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.rows.clear();
        self.next = 0;
        self.account.clear(context);
        let mut is_empty = true;
        if let Some(row) = self.pending.take() {
            self.key.clone_from(&row.partition);
            self.add(row, context)?;
            is_empty = false;
        }
        loop {
            if !self.input.next(context)? {
                self.ended = true;
                break;
            }
            let row = self.take_row(context)?;
            if std::mem::take(&mut is_empty) {
                self.key.clone_from(&row.partition);
            }
            let mut pairs = self.key.iter().zip(&row.partition);
            if !pairs.all(|(a, b)| a.as_ref().order(b.as_ref()).is_eq()) {
                self.pending = Some(row);
                break;
            }
            self.add(row, context)?;
        }
        if let Some(spilled) = &mut self.spilled {
            return spilled.begin();
        }
        if self.rows.is_empty() {
            return Ok(());
        }
        let partition = Partition::new(&self.rows, &self.order);
        let mut results: Vec<Vec<Value>> = Vec::with_capacity(self.functions.len());
        let mut first = 0;
        let mut bytes: usize = self.rows.iter().map(WindowRow::memory).sum();
        for function in &self.functions {
            let arguments = first..first + width(function);
            let computation = Computation { rows: &self.rows, partition: &partition, arguments };
            let values = computation.values(function, context)?;
            bytes += values_memory(&values);
            self.account.keep_most(bytes, context)?;
            results.push(values);
            first += width(function);
        }
        for values in results {
            for (row, value) in self.rows.iter_mut().zip(values) {
                row.values.push(value);
            }
        }
        Ok(())
    }
}

/// Returns the bucket of a row for `ntile`.
fn bucket_of(total: i64, count: i64, nth: i64) -> Value {
    let (size, larger) = (total / count, total % count);
    let in_larger = larger * (size + 1);
    let bucket = match nth < in_larger {
        true => nth / (size + 1),
        false => larger + (nth - in_larger) / size.max(1),
    };
    Value::Integer(i32::try_from(bucket + 1).unwrap_or(i32::MAX))
}

#[cold]
fn not_positive_buckets() -> SqlError {
    let message = "argument of ntile must be greater than zero";
    SqlError::new(SqlState::InvalidArgumentForNtile, message)
}

/// The computation of one function over one partition.
struct Computation<'p> {
    rows: &'p [WindowRow],
    partition: &'p Partition<'p>,
    /// The function's arguments among those of a row.
    arguments: std::ops::Range<usize>,
}

impl Computation<'_> {
    fn argument(&self, row: usize, number: usize) -> ValueRef<'_> {
        let value =
            self.rows.get(row).and_then(|row| row.arguments.get(self.arguments.start + number));
        value.map_or(ValueRef::Null, Value::as_ref)
    }

    /// Returns the value of the function for each row.
    fn values(&self, function: &WindowFunction, context: &Context<'_>) -> Result<Vec<Value>> {
        let kind = match &function.call {
            WindowCall::Aggregate(aggregate) => {
                return self.aggregate(aggregate, function, context);
            }
            WindowCall::Position(kind, _) => *kind,
        };
        match kind {
            WindowKind::Ntile => self.ntile(),
            WindowKind::Lag | WindowKind::Lead => Ok(self.offset_values(kind)),
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
                self.frame_values(kind, function, context)
            }
            _ => Ok(self.ranks(kind)),
        }
    }

    fn ranks(&self, kind: WindowKind) -> Vec<Value> {
        let total = self.rows.len();
        let value = |row: usize| {
            let peers = self.partition.peers(row);
            match kind {
                WindowKind::Rank => Value::BigInt(peers.start as i64 + 1),
                WindowKind::DenseRank => Value::BigInt(self.partition.group(row) as i64 + 1),
                WindowKind::PercentRank if total > 1 => {
                    Value::Double(peers.start as f64 / (total - 1) as f64)
                }
                WindowKind::PercentRank => Value::Double(0.0),
                WindowKind::CumeDist => Value::Double(peers.end as f64 / total as f64),
                _ => Value::BigInt(row as i64 + 1),
            }
        };
        (0..total).map(value).collect()
    }

    /// Divides the partition into buckets whose sizes differ by at most one.
    fn ntile(&self) -> Result<Vec<Value>> {
        let total = self.rows.len() as i64;
        let mut values = Vec::with_capacity(self.rows.len());
        let mut buckets = None;
        for row in 0..self.rows.len() {
            let count = match buckets {
                Some((count, _)) => count,
                None => match self.argument(row, 0).as_i64() {
                    None => {
                        values.push(Value::Null);
                        continue;
                    }
                    Some(count) if count <= 0 => return Err(not_positive_buckets()),
                    Some(count) => {
                        buckets = Some((count, row as i64));
                        count
                    }
                },
            };
            let nth = row as i64 - buckets.map_or(0, |(_, first)| first);
            values.push(bucket_of(total, count, nth));
        }
        Ok(values)
    }

    /// Computes `lag` and `lead`.
    fn offset_values(&self, kind: WindowKind) -> Vec<Value> {
        let (width, total) = (self.arguments.len(), self.rows.len() as i64);
        let value = |row: usize| {
            let offset = if width > 1 { self.argument(row, 1).as_i64() } else { Some(1) };
            let Some(offset) = offset else { return Value::Null };
            let at = match kind {
                WindowKind::Lag => row as i64 - offset,
                _ => row as i64 + offset,
            };
            if (0..total).contains(&at) {
                self.argument(at as usize, 0).to_value()
            } else if width > 2 {
                self.argument(row, 2).to_value()
            } else {
                Value::Null
            }
        };
        (0..self.rows.len()).map(value).collect()
    }

    /// Computes `first_value`, `last_value` and `nth_value`.
    fn frame_values(
        &self,
        kind: WindowKind,
        function: &WindowFunction,
        context: &Context<'_>,
    ) -> Result<Vec<Value>> {
        let frames = self.partition.frames(&function.frame, context)?;
        let mut values = Vec::with_capacity(self.rows.len());
        for row in 0..self.rows.len() {
            context.check_cancelled()?;
            let frame = frames.of(row)?;
            let found = match kind {
                WindowKind::FirstValue => frame.nth(0),
                WindowKind::LastValue => frame.last(),
                _ => match self.argument(row, 1).as_i64() {
                    None => None,
                    Some(n) if n <= 0 => {
                        let message = "argument of nth_value must be greater than zero";
                        return Err(SqlError::new(SqlState::InvalidArgumentForNthValue, message));
                    }
                    Some(n) => frame.nth(n as usize - 1),
                },
            };
            values.push(found.map_or(Value::Null, |at| self.argument(at, 0).to_value()));
        }
        Ok(values)
    }

    fn add(&self, state: &mut AggregateState, aggregate: &Aggregate, row: usize) -> Result<()> {
        let (value, counts) = (self.argument(row, 0), self.argument(row, 1));
        let is_counted = matches!(counts, ValueRef::Boolean(true));
        let takes_null = aggregate.argument.is_none() || aggregate.kind.keeps_nulls();
        if is_counted && (takes_null || !value.is_null()) {
            match aggregate.second {
                Some(_) => state.add_pair(aggregate.kind, value, self.argument(row, 2))?,
                None => state.add(aggregate.kind, value)?,
            }
        }
        Ok(())
    }

    /// Removes a row from a state whose values can be taken back exactly. Returns false otherwise.
    fn remove(&self, state: &mut AggregateState, aggregate: &Aggregate, row: usize) -> bool {
        let (value, counts) = (self.argument(row, 0), self.argument(row, 1));
        let is_counted = matches!(counts, ValueRef::Boolean(true));
        let skips_null = aggregate.argument.is_some() && !aggregate.kind.keeps_nulls();
        if !is_counted || skips_null && value.is_null() {
            return true;
        }
        match (state, value.as_i64()) {
            (AggregateState::Count(count), _) => *count -= 1,
            (AggregateState::Integers(sum, count), Some(number)) => {
                *sum -= i128::from(number);
                *count -= 1;
            }
            _ => return false,
        }
        true
    }

    /// Computes an aggregate over the frame of each row. A frame that only grows, or whose values
    /// can be taken back, is followed; any other is computed again for each row.
    fn aggregate(
        &self,
        aggregate: &Aggregate,
        function: &WindowFunction,
        context: &Context<'_>,
    ) -> Result<Vec<Value>> {
        let frames = self.partition.frames(&function.frame, context)?;
        let excludes = function.frame.exclusion != FrameExclusion::NoOthers;
        let mut values: Vec<Value> = Vec::with_capacity(self.rows.len());
        let mut state = AggregateState::new(aggregate);
        let mut known: Option<FrameRows> = None;
        for row in 0..self.rows.len() {
            context.check_cancelled()?;
            let frame = frames.of(row)?;
            if let (Some(before), Some(value)) = (&known, values.last())
                && *before == frame
            {
                values.push(value.clone());
                continue;
            }
            let from = match &known {
                Some(before) if !excludes => self.follow(&mut state, aggregate, before, &frame),
                _ => None,
            };
            let rows = match from {
                Some(end) => end..frame.end(),
                None => {
                    state = AggregateState::new(aggregate);
                    0..0
                }
            };
            let all = if from.is_none() { Some(&frame) } else { None };
            for at in rows.chain(all.into_iter().flat_map(FrameRows::iter)) {
                self.add(&mut state, aggregate, at)?;
            }
            values.push(state.finish(aggregate)?);
            known = Some(frame);
        }
        Ok(values)
    }

    /// Removes the rows before the frame from the state of an earlier frame. Returns the first row
    /// to be added, or `None` if the state must be computed again.
    fn follow(
        &self,
        state: &mut AggregateState,
        aggregate: &Aggregate,
        before: &FrameRows,
        frame: &FrameRows,
    ) -> Option<usize> {
        let (old, new) = (before.start()..before.end(), frame.start()..frame.end());
        if new.start < old.start || new.end < old.end || new.start > old.end || new.is_empty() {
            return None;
        }
        let all = (old.start..new.start).all(|row| self.remove(state, aggregate, row));
        all.then_some(old.end)
    }
}
