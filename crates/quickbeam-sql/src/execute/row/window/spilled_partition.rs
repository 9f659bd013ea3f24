//! A partition of a window that does not fit into memory.
//!
//! Its rows go to a temporary file in their order (SPILL-1). They are then read once more, and each
//! function follows them. That is possible for functions whose frame begins with the partition. Of
//! the rows read so far they keep a state. Of the rows to come they need those of the peer group,
//! which is kept in memory, or one value of the whole partition, which is computed when the rows
//! are written.
//!
//! - STREAM-1: a function has the same values here as in memory.

use std::cmp::Ordering;
use std::collections::VecDeque;

use quickbeam::invariant;

use super::{WindowRow, not_positive_buckets, width};
use crate::bind::{
    Aggregate, FrameBound, FrameExclusion, FrameUnits, WindowCall, WindowFunction, WindowKind,
};
use crate::error::Result;
use crate::execute::row::aggregate::AggregateState;
use crate::execute::row::sort::order_of;
use crate::execute::row::{Context, MemoryCharge};
use crate::execute::spill::{SpillFile, Stream, StreamReader, read_value, write_value};
use crate::plan::{SortKey, WindowAgg};
use crate::types::Value;

/// The end of a frame that begins with the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameEnd {
    Row,
    Peers,
    Partition,
}

/// Returns the end of a function's frame, if the frame begins with the partition.
fn end_of(function: &WindowFunction, has_order: bool) -> Option<FrameEnd> {
    let frame = &function.frame;
    let is_plain = frame.exclusion == FrameExclusion::NoOthers;
    match (&frame.start, &frame.end) {
        (FrameBound::Unbounded, FrameBound::Unbounded) if is_plain => Some(FrameEnd::Partition),
        (FrameBound::Unbounded, FrameBound::CurrentRow) if is_plain => Some(match frame.units {
            FrameUnits::Rows => FrameEnd::Row,
            _ if has_order => FrameEnd::Peers,
            _ => FrameEnd::Partition,
        }),
        _ => None,
    }
}

/// A function that follows the rows.
#[derive(Debug)]
enum Follower {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// The number of buckets, and the first row that has one.
    Ntile(Option<(i64, u64)>),
    /// Values of the rows before, and how far back.
    Lag(VecDeque<Value>, usize),
    First(Option<Value>),
    Last(FrameEnd, Option<Value>),
    Aggregate(Aggregate, FrameEnd, AggregateState),
}

impl Follower {
    /// Makes a follower. Returns `None` for a function that needs other rows.
    fn of(function: &WindowFunction, has_order: bool) -> Option<Follower> {
        let end = end_of(function, has_order);
        let (kind, arguments) = match &function.call {
            WindowCall::Aggregate(aggregate) => {
                let state = AggregateState::new(aggregate);
                return Some(Follower::Aggregate(aggregate.clone(), end?, state));
            }
            WindowCall::Position(kind, arguments) => (*kind, arguments),
        };
        Some(match kind {
            WindowKind::RowNumber => Follower::RowNumber,
            WindowKind::Rank => Follower::Rank,
            WindowKind::DenseRank => Follower::DenseRank,
            WindowKind::PercentRank => Follower::PercentRank,
            WindowKind::CumeDist => Follower::CumeDist,
            WindowKind::Ntile => Follower::Ntile(None),
            WindowKind::Lag => {
                let offset = match arguments.get(1) {
                    None => 1,
                    Some(offset) => offset.as_constant()?.as_ref().as_i64()?,
                };
                Follower::Lag(VecDeque::new(), usize::try_from(offset).ok()?)
            }
            WindowKind::FirstValue if end.is_some() => Follower::First(None),
            WindowKind::LastValue => Follower::Last(end?, None),
            WindowKind::Lead | WindowKind::FirstValue | WindowKind::NthValue => return None,
        })
    }

    /// Whether it needs all rows of the peer group at once.
    fn needs_peers(&self) -> bool {
        matches!(
            self,
            Follower::CumeDist
                | Follower::Last(FrameEnd::Peers, _)
                | Follower::Aggregate(_, FrameEnd::Peers, _)
        )
    }

    /// Adds a row to the value of the whole partition, while the rows are written.
    fn see(&mut self, arguments: &[Value]) -> Result<()> {
        match self {
            Follower::Aggregate(aggregate, FrameEnd::Partition, state) => {
                add(state, aggregate, arguments)?;
            }
            Follower::Last(FrameEnd::Partition, last) => *last = arguments.first().cloned(),
            _ => {}
        }
        Ok(())
    }

    /// Adds a row of the current frame.
    fn enter(&mut self, arguments: &[Value]) -> Result<()> {
        match self {
            Follower::Aggregate(_, FrameEnd::Partition, _)
            | Follower::Last(FrameEnd::Partition, _) => {}
            Follower::Aggregate(aggregate, _, state) => add(state, aggregate, arguments)?,
            Follower::Last(_, last) => *last = arguments.first().cloned(),
            Follower::First(first) if first.is_none() => *first = arguments.first().cloned(),
            _ => {}
        }
        Ok(())
    }

    /// Whether rows enter one by one rather than with their peers.
    fn is_by_row(&self) -> bool {
        !self.needs_peers()
    }

    /// Returns the value for a row.
    fn value(&mut self, arguments: &[Value], at: &Place) -> Result<Value> {
        let share = |part: u64| Value::Double(part as f64 / at.total as f64);
        Ok(match self {
            Follower::RowNumber => Value::BigInt(at.row as i64 + 1),
            Follower::Rank => Value::BigInt(at.peers as i64 + 1),
            Follower::DenseRank => Value::BigInt(at.group as i64 + 1),
            Follower::PercentRank if at.total > 1 => {
                Value::Double(at.peers as f64 / (at.total - 1) as f64)
            }
            Follower::PercentRank => Value::Double(0.0),
            Follower::CumeDist => share(at.peers + at.count),
            Follower::Ntile(buckets) => bucket(buckets, arguments, at)?,
            Follower::Lag(before, offset) => {
                before.push_back(arguments.first().cloned().unwrap_or(Value::Null));
                if before.len() > *offset + 1 {
                    before.pop_front();
                }
                match before.front() {
                    Some(value) if before.len() > *offset => value.clone(),
                    _ => arguments.get(2).cloned().unwrap_or(Value::Null),
                }
            }
            Follower::First(value) | Follower::Last(_, value) => {
                value.clone().unwrap_or(Value::Null)
            }
            Follower::Aggregate(aggregate, _, state) => state.finish(aggregate)?,
        })
    }
}

/// Computes `ntile` as for rows in memory: the first row with a number of buckets decides.
fn bucket(buckets: &mut Option<(i64, u64)>, arguments: &[Value], at: &Place) -> Result<Value> {
    let (count, first) = match buckets {
        Some(known) => *known,
        None => match arguments.first().and_then(|count| count.as_ref().as_i64()) {
            None => return Ok(Value::Null),
            Some(count) if count <= 0 => return Err(not_positive_buckets()),
            Some(count) => *buckets.insert((count, at.row)),
        },
    };
    Ok(super::bucket_of(at.total as i64, count, (at.row - first) as i64))
}

fn add(state: &mut AggregateState, aggregate: &Aggregate, arguments: &[Value]) -> Result<()> {
    let [value, Value::Boolean(true), rest @ ..] = arguments else { return Ok(()) };
    let takes_null = aggregate.argument.is_none() || aggregate.kind.keeps_nulls();
    if takes_null || !value.is_null() {
        match rest.first() {
            Some(second) => state.add_pair(aggregate.kind, value.as_ref(), second.as_ref())?,
            None => state.add(aggregate.kind, value.as_ref())?,
        }
    }
    Ok(())
}

/// The place of a row in its partition.
#[derive(Debug, Default)]
struct Place {
    row: u64,
    /// The first row of the peer group, the number of the group, and its rows, if they are known.
    peers: u64,
    group: u64,
    count: u64,
    total: u64,
}

/// A partition in a file.
#[derive(Debug)]
pub struct SpilledPartition {
    file: SpillFile,
    stream: Stream,
    reader: Option<StreamReader>,
    followers: Vec<Follower>,
    /// The number of values of each part of a row: columns, keys, and arguments of each function.
    widths: (usize, usize, Vec<usize>),
    order: Vec<SortKey>,
    place: Place,
    /// The sort keys of the row before.
    keys: Option<Vec<Value>>,
    /// Rows of the peer group whose values were computed, and the first row of the next group.
    ready: VecDeque<Vec<Value>>,
    ahead: Option<WindowRow>,
    account: MemoryCharge,
}

impl SpilledPartition {
    /// Whether all functions of a window can follow a partition in a file.
    pub fn can_follow(node: &WindowAgg) -> bool {
        let has_order = !node.order.is_empty();
        node.functions.iter().all(|function| Follower::of(function, has_order).is_some())
    }

    /// Makes an empty partition.
    pub fn new(
        columns: usize,
        order: &[SortKey],
        functions: &[WindowFunction],
        context: &Context<'_>,
    ) -> Result<SpilledPartition> {
        let followers = functions.iter().filter_map(|one| Follower::of(one, !order.is_empty()));
        Ok(SpilledPartition {
            file: SpillFile::create(context)?,
            stream: Stream::default(),
            reader: None,
            followers: followers.collect(),
            widths: (columns, order.len(), functions.iter().map(width).collect()),
            order: order.to_vec(),
            place: Place::default(),
            keys: None,
            ready: VecDeque::new(),
            ahead: None,
            account: MemoryCharge::default(),
        })
    }

    /// Removes the file.
    pub fn remove(&mut self, context: &Context<'_>) {
        self.account.clear(context);
        self.file.remove(context);
    }

    /// Writes a row.
    pub fn push(&mut self, row: &WindowRow) -> Result<()> {
        self.place.total += 1;
        let mut arguments = &row.arguments[..];
        for (follower, width) in self.followers.iter_mut().zip(&self.widths.2) {
            let (own, rest) = arguments.split_at_checked(*width).unwrap_or((arguments, &[]));
            follower.see(own)?;
            arguments = rest;
        }
        self.stream.push(&mut self.file, |out| {
            let values = row.values.iter().chain(&row.keys).chain(&row.arguments);
            values.for_each(|value| write_value(value.as_ref(), out));
        })
    }

    /// Begins to read the rows.
    pub fn begin(&mut self) -> Result<()> {
        self.stream.finish(&mut self.file)?;
        self.reader = Some(std::mem::take(&mut self.stream).into_reader());
        Ok(())
    }

    fn read(&mut self) -> Result<Option<WindowRow>> {
        if let Some(row) = self.ahead.take() {
            return Ok(Some(row));
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let Some(mut record) = reader.next(&self.file)? else { return Ok(None) };
        let mut row = WindowRow::default();
        let (columns, keys, _) = &self.widths;
        for _ in 0..*columns {
            row.values.push(read_value(&mut record)?.to_value());
        }
        for _ in 0..*keys {
            row.keys.push(read_value(&mut record)?.to_value());
        }
        while !record.is_empty() {
            row.arguments.push(read_value(&mut record)?.to_value());
        }
        Ok(Some(row))
    }

    fn is_peer(&self, keys: &[Value]) -> bool {
        self.keys.as_ref().is_some_and(|before| {
            let pairs = before.iter().zip(keys).zip(&self.order);
            pairs.into_iter().all(|((a, b), key)| order_of(key, a, b) == Ordering::Equal)
        })
    }

    /// Returns the values of the next row: its columns, followed by the functions' values.
    pub fn next(&mut self, context: &Context<'_>) -> Result<Option<Vec<Value>>> {
        if let Some(values) = self.ready.pop_front() {
            return Ok(Some(values));
        }
        context.check_cancelled()?;
        let Some(first) = self.read()? else {
            let Place { row, total, .. } = self.place;
            invariant!(STREAM_1, row == total, "{row} of {total} rows have values");
            return Ok(None);
        };
        if self.keys.is_some() && !self.is_peer(&first.keys) {
            self.place.group += 1;
            self.place.peers = self.place.row;
        }
        self.keys = Some(first.keys.clone());
        let mut rows = vec![first];
        if self.followers.iter().any(Follower::needs_peers) {
            self.account.clear(context);
            while let Some(row) = self.read()? {
                context.check_cancelled()?;
                if !self.is_peer(&row.keys) {
                    self.ahead = Some(row);
                    break;
                }
                self.account.keep(row.memory(), context)?;
                rows.push(row);
            }
        }
        self.place.count = rows.len() as u64;
        self.compute(rows)?;
        Ok(self.ready.pop_front())
    }

    /// Computes the functions for a peer group, or for one row.
    fn compute(&mut self, rows: Vec<WindowRow>) -> Result<()> {
        let SpilledPartition { followers, widths, place, ready, .. } = self;
        let mut first = 0;
        for (follower, width) in followers.iter_mut().zip(&widths.2) {
            if follower.needs_peers() {
                for row in &rows {
                    follower.enter(row.arguments.get(first..first + width).unwrap_or_default())?;
                }
            }
            first += width;
        }
        for mut row in rows {
            let mut first = 0;
            for (follower, width) in followers.iter_mut().zip(&widths.2) {
                let arguments = row.arguments.get(first..first + width).unwrap_or_default();
                if follower.is_by_row() {
                    follower.enter(arguments)?;
                }
                row.values.push(follower.value(arguments, place)?);
                first += width;
            }
            place.row += 1;
            ready.push_back(row.values);
        }
        Ok(())
    }
}
