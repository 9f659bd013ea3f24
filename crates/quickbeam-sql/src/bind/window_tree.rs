//! Window functions whose names and types are known.

use super::{Aggregate, OrderKey};
use crate::expression::Expr;

/// The window functions of a SELECT.
#[derive(Clone, Debug)]
pub struct Windows {
    /// The slot of the results. Column `n` belongs to the function with that number.
    pub slot: usize,
    /// The windows, each with its functions.
    pub windows: Vec<Window>,
}

/// A window: partitions, their order, and the functions over them.
#[derive(Clone, Debug)]
pub struct Window {
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// The functions, with their columns in the result slot.
    pub functions: Vec<(usize, WindowFunction)>,
}

/// A call of a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFunction {
    /// The function.
    pub call: WindowCall,
    /// The frame.
    pub frame: WindowFrame,
}

/// The function of a window call.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowCall {
    /// An aggregate over the frame.
    Aggregate(Aggregate),
    /// A function of the row's position in its partition or frame, and its arguments.
    Position(WindowKind, Vec<Expr>),
}

/// A window function that is not an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// `row_number()`
    RowNumber,
    /// `rank()`
    Rank,
    /// `dense_rank()`
    DenseRank,
    /// `percent_rank()`
    PercentRank,
    /// `cume_dist()`
    CumeDist,
    /// `ntile(buckets)`
    Ntile,
    /// `lag(value [, offset [, default]])`
    Lag,
    /// `lead(value [, offset [, default]])`
    Lead,
    /// `first_value(value)`
    FirstValue,
    /// `last_value(value)`
    LastValue,
    /// `nth_value(value, n)`
    NthValue,
}

/// The frame of a window function: the rows of the partition that it sees.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// The unit of the bounds.
    pub units: FrameUnits,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
    /// EXCLUDE.
    pub exclusion: FrameExclusion,
}

/// The unit of a frame's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Distances of the sort key.
    Range,
    /// Peer groups.
    Groups,
}

/// A bound of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    /// The edge of the partition.
    Unbounded,
    /// The current row, or its peer group.
    CurrentRow,
    /// `offset PRECEDING`
    Preceding(Expr),
    /// `offset FOLLOWING`
    Following(Expr),
}

/// The rows that EXCLUDE removes from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclusion {
    /// None.
    NoOthers,
    /// The current row.
    CurrentRow,
    /// The peer group of the current row.
    Group,
    /// The peer group without the current row.
    Ties,
}

impl Window {
    /// Returns the expressions of the window and of its functions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let functions = self.functions.iter().flat_map(|(_, function)| function.exprs());
        self.partition.iter().chain(self.order.iter().map(|key| &key.expr)).chain(functions)
    }

    /// [`exprs`](Self::exprs), to be changed.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let functions = self.functions.iter_mut().flat_map(|(_, function)| function.exprs_mut());
        let order = self.order.iter_mut().map(|key| &mut key.expr);
        self.partition.iter_mut().chain(order).chain(functions)
    }
}

impl WindowFunction {
    /// Returns the arguments, the filter and the offsets of the frame.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let (aggregate, arguments) = match &self.call {
            WindowCall::Aggregate(aggregate) => (Some(aggregate), &[][..]),
            WindowCall::Position(_, arguments) => (None, &arguments[..]),
        };
        let of_aggregate = aggregate.into_iter().flat_map(Aggregate::expressions);
        let bounds = [&self.frame.start, &self.frame.end].into_iter();
        of_aggregate.chain(arguments).chain(bounds.filter_map(FrameBound::offset))
    }

    /// [`exprs`](Self::exprs), to be changed.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (aggregate, arguments) = match &mut self.call {
            WindowCall::Aggregate(aggregate) => (Some(aggregate), &mut [][..]),
            WindowCall::Position(_, arguments) => (None, &mut arguments[..]),
        };
        let of_aggregate = aggregate.into_iter().flat_map(Aggregate::expressions_mut);
        let bounds = [&mut self.frame.start, &mut self.frame.end].into_iter();
        let offsets = bounds.filter_map(|bound| match bound {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            FrameBound::Unbounded | FrameBound::CurrentRow => None,
        });
        of_aggregate.chain(arguments).chain(offsets)
    }
}

impl FrameBound {
    /// Returns the offset of the bound.
    pub fn offset(&self) -> Option<&Expr> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            FrameBound::Unbounded | FrameBound::CurrentRow => None,
        }
    }
}
