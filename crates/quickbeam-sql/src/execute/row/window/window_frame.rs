//! Frames of window functions: which rows of a partition a function sees from each row.
//!
//! - FRAME-1: rows of a partition are sorted, so that peers are adjacent and RANGE bounds are found
//!   by binary search.
//! - FRAME-2: a RANGE offset compares a NULL key with NULL keys only, as PostgreSQL does.

use quickbeam::invariant;
use std::cmp::Ordering;
use std::ops::Range;

use super::WindowRow;
use crate::bind::{FrameBound, FrameExclusion, FrameUnits, WindowFrame};
use crate::error::{Result, SqlError, SqlState};
use crate::execute::row::Context;
use crate::execute::row::sort::order_of;
use crate::expression::add_interval;
use crate::plan::SortKey;
use crate::types::{
    DATE_INFINITY, DAY, DataType, Interval, SessionZone, TIMESTAMP_INFINITY, TextSettings, Value,
    cast,
};

/// A side of a window frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameSide {
    /// Where it begins.
    Start,
    /// Where it ends.
    End,
}

/// A partition with its peer groups.
pub struct Partition<'p> {
    rows: &'p [WindowRow],
    order: &'p [SortKey],
    /// The first row of each peer group, and the end of the last.
    starts: Vec<usize>,
    /// The peer group of each row.
    groups: Vec<usize>,
}

/// The rows of a frame: ascending ranges that do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRows([Range<usize>; 3]);

impl FrameRows {
    /// Returns the first row, for a frame without exclusion.
    pub fn start(&self) -> usize {
        self.0[0].start
    }

    /// Returns the end, for a frame without exclusion.
    pub fn end(&self) -> usize {
        self.0[0].end
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().flat_map(Clone::clone)
    }

    pub fn nth(&self, mut n: usize) -> Option<usize> {
        for range in &self.0 {
            if n < range.len() {
                return Some(range.start + n);
            }
            n -= range.len();
        }
        None
    }

    pub fn last(&self) -> Option<usize> {
        self.0.iter().rev().find(|range| !range.is_empty()).map(|range| range.end - 1)
    }
}

/// The frames of one function over a partition.
pub struct Frames<'p> {
    partition: &'p Partition<'p>,
    units: FrameUnits,
    start: Bound,
    end: Bound,
    exclusion: FrameExclusion,
    /// The rows whose first sort key is not NULL.
    not_null: Range<usize>,
    /// The settings with which intervals are added.
    settings: TextSettings,
}

/// A bound with its offset evaluated.
enum Bound {
    Unbounded,
    CurrentRow,
    /// Rows or groups, negative before the current row.
    Count(i64),
    /// A distance of the sort key; true: before the current row.
    Distance(Value, bool),
}

/// Returns whether rows are in the order of their sort keys.
fn are_sorted(rows: &[WindowRow], order: &[SortKey]) -> bool {
    rows.is_sorted_by(|a, b| {
        let keys = a.keys.iter().zip(&b.keys).zip(order);
        let orders = keys.map(|((a, b), key)| order_of(key, a, b));
        orders.fold(Ordering::Equal, Ordering::then).is_le()
    })
}

impl<'p> Partition<'p> {
    /// Finds the peer groups of sorted rows. Without sort keys all rows are peers.
    pub fn new(rows: &'p [WindowRow], order: &'p [SortKey]) -> Partition<'p> {
        let (mut starts, mut groups) = (vec![0], Vec::with_capacity(rows.len()));
        for (at, row) in rows.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| rows.get(before));
            let is_peer = before.is_none_or(|before| {
                let keys = before.keys.iter().zip(&row.keys).zip(order);
                keys.into_iter().all(|((a, b), key)| order_of(key, a, b).is_eq())
            });
            if !is_peer {
                starts.push(at);
            }
            groups.push(starts.len() - 1);
        }
        starts.push(rows.len());
        invariant!(FRAME_1, are_sorted(rows, order), "{} rows", rows.len());
        Partition { rows, order, starts, groups }
    }

    /// Returns the number of a row's peer group.
    pub fn group(&self, row: usize) -> usize {
        self.groups.get(row).copied().unwrap_or(0)
    }

    /// Returns the peer group of a row.
    pub fn peers(&self, row: usize) -> Range<usize> {
        let group = self.group(row);
        self.group_start(group)..self.group_start(group + 1)
    }

    fn group_start(&self, group: usize) -> usize {
        self.starts.get(group).copied().unwrap_or(self.rows.len())
    }

    /// Evaluates the offsets of a frame.
    pub fn frames(&'p self, frame: &WindowFrame, context: &Context<'_>) -> Result<Frames<'p>> {
        let is_null = |row: &WindowRow| row.keys.first().is_none_or(Value::is_null);
        let first = self.rows.iter().position(|row| !is_null(row)).unwrap_or(0);
        let after = self.rows.iter().rposition(|row| !is_null(row)).map_or(first, |last| last + 1);
        let has_null = || self.rows.get(first..after).is_none_or(|rows| rows.iter().any(is_null));
        invariant!(FRAME_2, first == after || !has_null(), "a NULL in {first}..{after}");
        Ok(Frames {
            partition: self,
            units: frame.units,
            start: bound_of(&frame.start, frame.units, "starting", context)?,
            end: bound_of(&frame.end, frame.units, "ending", context)?,
            exclusion: frame.exclusion,
            not_null: first..after,
            settings: context.clock.settings(),
        })
    }
}

fn bound_of(
    bound: &FrameBound,
    units: FrameUnits,
    name: &str,
    context: &Context<'_>,
) -> Result<Bound> {
    let (offset, is_before) = match bound {
        FrameBound::Unbounded => return Ok(Bound::Unbounded),
        FrameBound::CurrentRow => return Ok(Bound::CurrentRow),
        FrameBound::Preceding(offset) => (offset, true),
        FrameBound::Following(offset) => (offset, false),
    };
    let offset = context.value(offset)?;
    if offset.is_null() {
        let message = format!("frame {name} offset must not be null");
        return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
    }
    if units == FrameUnits::Range {
        return Ok(Bound::Distance(offset, is_before));
    }
    match offset.as_ref().as_i64() {
        Some(count) if count >= 0 => Ok(Bound::Count(if is_before { -count } else { count })),
        _ => {
            let message = format!("frame {name} offset must not be negative");
            Err(SqlError::new(SqlState::InvalidPrecedingOrFollowingSize, message))
        }
    }
}

/// Returns `row + count`, within the partition.
fn shifted(row: usize, count: i64, total: usize) -> usize {
    let at = (row as i64).saturating_add(count);
    usize::try_from(at).unwrap_or(0).min(total)
}

impl Frames<'_> {
    /// Returns the frame of a row.
    pub fn of(&self, row: usize) -> Result<FrameRows> {
        let (start, end) = (self.start_of(row)?, self.end_of(row)?);
        let all = start..end.max(start);
        let peers = self.partition.peers(row);
        let excluded = match self.exclusion {
            FrameExclusion::NoOthers => return Ok(FrameRows([all.clone(), end..end, end..end])),
            FrameExclusion::CurrentRow => return Ok(without(&all, row..row + 1, None)),
            FrameExclusion::Group => return Ok(without(&all, peers, None)),
            FrameExclusion::Ties => peers,
        };
        Ok(without(&all, excluded, Some(row)))
    }

    fn start_of(&self, row: usize) -> Result<usize> {
        let (partition, total) = (self.partition, self.partition.rows.len());
        Ok(match &self.start {
            Bound::Unbounded => 0,
            Bound::CurrentRow if self.units == FrameUnits::Rows => row,
            Bound::CurrentRow => partition.peers(row).start,
            Bound::Count(count) if self.units == FrameUnits::Rows => shifted(row, *count, total),
            Bound::Count(count) => {
                let groups = partition.starts.len() - 1;
                partition.group_start(shifted(partition.group(row), *count, groups))
            }
            Bound::Distance(offset, is_before) => {
                self.edge(row, offset, *is_before, FrameSide::Start)?
            }
        })
    }

    fn end_of(&self, row: usize) -> Result<usize> {
        let (partition, total) = (self.partition, self.partition.rows.len());
        Ok(match &self.end {
            Bound::Unbounded => total,
            Bound::CurrentRow if self.units == FrameUnits::Rows => row + 1,
            Bound::CurrentRow => partition.peers(row).end,
            Bound::Count(count) if self.units == FrameUnits::Rows => {
                shifted(row, count.saturating_add(1), total)
            }
            Bound::Count(count) => {
                let groups = partition.starts.len() - 1;
                let group = shifted(partition.group(row), count.saturating_add(1), groups);
                partition.group_start(group)
            }
            Bound::Distance(offset, is_before) => {
                self.edge(row, offset, *is_before, FrameSide::End)?
            }
        })
    }

    /// Finds the first or the end row of a RANGE offset (FRAME-1, FRAME-2).
    fn edge(&self, row: usize, offset: &Value, is_before: bool, side: FrameSide) -> Result<usize> {
        let is_start = side == FrameSide::Start;
        let key = |row: usize| self.partition.rows.get(row).and_then(|row| row.keys.first());
        let (Some(current), Some(order)) = (key(row), self.partition.order.first()) else {
            return Ok(0);
        };
        let peers = self.partition.peers(row);
        if is_negative(offset) {
            let message = "invalid preceding or following size in window function";
            return Err(SqlError::new(SqlState::InvalidPrecedingOrFollowingSize, message));
        }
        if current.is_null() {
            return Ok(if is_start { peers.start } else { peers.end });
        }
        let subtract = is_before != order.descending;
        let settings = &self.settings;
        let moved = match offset {
            Value::Interval(by) if subtract => Some(moved(current, by.checked_neg()?, settings)?),
            Value::Interval(by) => Some(moved(current, *by, settings)?),
            _ => None,
        };
        // The order of a key and of the bound, along the rows.
        let along = |at: usize| {
            let found = key(at).map_or(Ordering::Equal, |key| match &moved {
                Some(bound) => compare_times(key, bound),
                None => compare_with_sum(key, current, offset, subtract),
            });
            if order.descending { found.reverse() } else { found }
        };
        let (mut low, mut high) = (self.not_null.start, self.not_null.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_outside = match is_start {
                true => along(middle).is_lt(),
                false => along(middle).is_le(),
            };
            if is_outside {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// Returns the rows of a range without those of another, but with `kept`.
fn without(all: &Range<usize>, excluded: Range<usize>, kept: Option<usize>) -> FrameRows {
    let within = |range: Range<usize>| {
        let start = range.start.clamp(all.start, all.end);
        start..range.end.clamp(start, all.end)
    };
    let middle = kept.map_or(all.end..all.end, |row| row..row + 1);
    let ranges = [all.start..excluded.start, middle, excluded.end..all.end];
    FrameRows(ranges.map(within))
}

fn is_negative(offset: &Value) -> bool {
    match offset {
        Value::Double(offset) => *offset < 0.0 || offset.is_nan(),
        Value::Numeric(offset) => offset.signum() < 0 || offset.is_nan(),
        Value::LongNumeric(offset) => offset.as_ref().decimal().signum() < 0,
        Value::Interval(offset) => offset.length() < 0,
        other => other.as_ref().as_i64().is_some_and(|offset| offset < 0),
    }
}

/// Returns a sort key plus an interval. A date becomes a timestamp, and a time may pass midnight.
fn moved(key: &Value, by: Interval, settings: &TextSettings) -> Result<Value> {
    Ok(match key {
        Value::Date(_) => {
            return moved(&cast(key.as_ref(), DataType::Timestamp, settings)?, by, settings);
        }
        Value::Timestamp(at) => Value::Timestamp(add_interval(*at, by, SessionZone::Utc)?),
        Value::TimestampTz(at) => Value::TimestampTz(add_interval(*at, by, settings.zone)?),
        Value::Interval(key) => Value::Interval(key.checked_add(by)?),
        Value::Time(at) => Value::Time(at.saturating_add(by.micros)),
        _ => return Err(SqlError::internal("an interval as the distance of another type")),
    })
}

/// Compares a sort key with a bound that [`moved`] returned.
fn compare_times(key: &Value, bound: &Value) -> Ordering {
    match (key, bound) {
        (Value::Date(days), Value::Timestamp(bound)) => match *days {
            DATE_INFINITY => TIMESTAMP_INFINITY.cmp(bound),
            i32::MIN => i64::MIN.cmp(bound),
            days => i64::from(days).saturating_mul(DAY).cmp(bound),
        },
        (key, bound) => key.compare(bound).unwrap_or(Ordering::Equal),
    }
}

/// Returns the order of a key and the sum of an infinite base and the infinite offset of its
/// direction: the sum is as far as every number, and NaN is after it.
fn of_every_number(is_nan: bool) -> Ordering {
    if is_nan { Ordering::Greater } else { Ordering::Equal }
}

/// Compares a key with `base + offset`, or with `base - offset`, without overflow.
fn compare_with_sum(key: &Value, base: &Value, offset: &Value, subtract: bool) -> Ordering {
    let (key, base, offset) = (key.as_ref(), base.as_ref(), offset.as_ref());
    if let (Some(key), Some(base), Some(offset)) = (key.as_i64(), base.as_i64(), offset.as_i64()) {
        let offset = if subtract { -i128::from(offset) } else { i128::from(offset) };
        return i128::from(key).cmp(&(i128::from(base) + offset));
    }
    let exact = (key.as_decimal(), base.as_decimal(), offset.as_decimal());
    if let (Some(key), Some(base), Some(offset)) = exact {
        let sum = if subtract { base.checked_sub(&offset) } else { base.checked_add(&offset) };
        // A sum beyond the range of NUMERIC is beyond every key.
        return match sum {
            Ok(sum) if sum.is_nan() && !base.is_nan() => of_every_number(key.is_nan()),
            Ok(sum) => key.cmp(&sum),
            Err(_) if subtract => Ordering::Greater,
            Err(_) => Ordering::Less,
        };
    }
    match (key.as_f64(), base.as_f64(), offset.as_f64()) {
        (Some(key), Some(base), Some(offset)) => {
            if key.is_nan() || base.is_nan() {
                return base.is_nan().cmp(&key.is_nan()).reverse();
            }
            let sum = if subtract { base - offset } else { base + offset };
            if sum.is_nan() {
                return of_every_number(false);
            }
            key.partial_cmp(&sum).unwrap_or(Ordering::Equal)
        }
        _ => Ordering::Equal,
    }
}
