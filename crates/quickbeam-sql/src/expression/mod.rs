//! Expressions: a tree whose names, types and casts are resolved, evaluated straight from encoded rows.
//!
//! Above: the binder makes expressions, the planner takes them apart, the operators evaluate them. Below: types, rows.
//!
//! - EXPR-1: the operands of every node have the types that the node expects; the binder put casts where they
//!   were needed. An operand of another type is an internal error, never a wrong answer.
//! - EXPR-2: truth has three values: NULL is neither true nor false, and every operator says what it makes of it.
//! - EXPR-3: evaluation changes nothing and allocates nothing for values of fixed length and for texts read from rows.
//! - EXPR-4: depth is limited when an expression is bound ([`MAX_DEPTH`]), so evaluation may recurse.

mod arithmetic;
mod dates;
mod evaluate;
mod frame;
mod functions;
mod pattern;
mod simplify;
mod slots;
mod texts;

use std::sync::Arc;

pub use arithmetic::{Arithmetic, NumberKind};
pub use evaluate::{Datum, cast};
pub use frame::{Clock, Current, Frame, Given, Sequences, Slot};
pub use functions::Function;
pub use pattern::Pattern;
pub use slots::Slots;

use crate::types::{DataType, Value};

/// Nesting that the binder allows.
pub const MAX_DEPTH: usize = 120;

/// A place in the statement's text, in bytes from its start. Two expressions are the same wherever they stand, so all
/// places are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextPosition(pub u32);

impl PartialEq for TextPosition {
    fn eq(&self, _: &TextPosition) -> bool {
        true
    }
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Whether values in that order satisfy the comparison.
    #[inline]
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }

    /// The comparison with its sides changed over.
    pub fn flipped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

/// What `IS TRUE` and its kin ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// `IS TRUE`
    True,
    /// `IS FALSE`
    False,
    /// `IS UNKNOWN`
    Unknown,
}

/// A column of a row that a statement stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnRef {
    /// Number of the row among those of the statement.
    pub slot: usize,
    /// Number of the column in it.
    pub column: usize,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A value that is known.
    Constant(Value),
    /// A parameter, counted from 0.
    Parameter(usize),
    /// A column.
    Column(ColumnRef),
    /// A value of another type; the place in the text for errors.
    Cast(Box<Expr>, DataType, TextPosition),
    /// A value cut or filled to the length of the type, as assignment to a column asks.
    Assign(Box<Expr>, DataType, TextPosition),
    /// A text without the blanks at its end: what counts of a CHAR.
    Trimmed(Box<Expr>),
    /// Comparison of two values whose types compare.
    Compare(Comparison, Box<[Expr; 2]>),
    /// `IS [NOT] DISTINCT FROM`; true in the second place: NOT.
    Distinct(Box<[Expr; 2]>, bool),
    /// All of them.
    And(Vec<Expr>),
    /// Any of them.
    Or(Vec<Expr>),
    /// The other truth value.
    Not(Box<Expr>),
    /// `IS [NOT] NULL`; true: NOT.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] TRUE` and so on; true: NOT.
    IsTruth(Box<Expr>, Truth, bool),
    /// `+ - * / %` of numbers of one kind; the place in the text for errors.
    Arithmetic(Arithmetic, NumberKind, Box<[Expr; 2]>, TextPosition),
    /// `-x`
    Negate(Box<Expr>, TextPosition),
    /// A value among others; true: NOT IN.
    InList(Box<Expr>, Vec<Expr>, bool),
    /// A value among constants, none of them NULL, in ascending order; true: NOT IN.
    InSet(Box<Expr>, Arc<Vec<Value>>, bool),
    /// `[NOT] LIKE` with a pattern that is known; true: NOT.
    Like(Box<Expr>, Arc<Pattern>, bool),
    /// `[NOT] LIKE` with a pattern of each row, the escape character and whether case counts; true at the end: NOT.
    LikeAny(Box<[Expr; 2]>, Option<char>, bool, bool),
    /// Conditions with their results, and the result when none holds.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// The next value of a sequence, by its number.
    NextValue(u32, DataType),
    /// The value that the sequence with that number gave this session last; without a number, that any sequence gave it.
    CurrentValue(Option<u32>),
    /// A sequence's value is set: to what, and whether that value was given out.
    SetValue(u32, Box<[Expr; 2]>),
    /// A function of its arguments; the place in the text for errors.
    Call(Function, Vec<Expr>, TextPosition),
}

impl Expr {
    /// A column.
    pub fn column(slot: usize, column: usize) -> Expr {
        Expr::Column(ColumnRef { slot, column })
    }

    /// The value of a constant or a parameter, which is given before any row is looked at, also where it is assigned to a column that takes
    /// it as it is.
    #[inline]
    pub fn given<'v>(&'v self, parameters: &'v [Value]) -> Option<&'v Value> {
        match self {
            Expr::Constant(value) => Some(value),
            Expr::Parameter(number) => parameters.get(*number),
            Expr::Assign(inner, data_type, _) => {
                inner.given(parameters).filter(|value| value.is_of(*data_type))
            }
            _ => None,
        }
    }

    /// The constant, if it is one.
    pub fn as_constant(&self) -> Option<&Value> {
        match self {
            Expr::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The column, if it is one.
    pub fn as_column(&self) -> Option<ColumnRef> {
        match self {
            Expr::Column(column) => Some(*column),
            _ => None,
        }
    }

    /// Whether values of that sequence are taken or looked at.
    pub fn takes_from(&self, sequence: u32) -> bool {
        let own = match self {
            Expr::NextValue(number, _) | Expr::SetValue(number, ..) => *number == sequence,
            Expr::CurrentValue(number) => *number == Some(sequence),
            _ => false,
        };
        let mut below = false;
        self.each_child(&mut |child| below |= child.takes_from(sequence));
        own || below
    }

    /// Calls `visit` with each part one step below.
    pub fn each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match self {
            Expr::Constant(_)
            | Expr::Parameter(_)
            | Expr::Column(_)
            | Expr::NextValue(..)
            | Expr::CurrentValue(_) => {}
            Expr::Cast(a, ..)
            | Expr::Assign(a, ..)
            | Expr::Trimmed(a)
            | Expr::Not(a)
            | Expr::IsNull(a, _)
            | Expr::IsTruth(a, ..)
            | Expr::Negate(a, _)
            | Expr::InSet(a, ..)
            | Expr::Like(a, ..) => visit(a),
            Expr::Compare(_, pair)
            | Expr::Distinct(pair, _)
            | Expr::Arithmetic(_, _, pair, _)
            | Expr::SetValue(_, pair)
            | Expr::LikeAny(pair, ..) => pair.iter().for_each(visit),
            Expr::And(list) | Expr::Or(list) | Expr::Call(_, list, _) => {
                list.iter().for_each(visit)
            }
            Expr::InList(a, list, _) => {
                visit(a);
                list.iter().for_each(visit);
            }
            Expr::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
                visit(otherwise);
            }
        }
    }

    /// As [`each_child`](Self::each_child), to change them.
    pub fn each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Constant(_)
            | Expr::Parameter(_)
            | Expr::Column(_)
            | Expr::NextValue(..)
            | Expr::CurrentValue(_) => {}
            Expr::Cast(a, ..)
            | Expr::Assign(a, ..)
            | Expr::Trimmed(a)
            | Expr::Not(a)
            | Expr::IsNull(a, _)
            | Expr::IsTruth(a, ..)
            | Expr::Negate(a, _)
            | Expr::InSet(a, ..)
            | Expr::Like(a, ..) => visit(a),
            Expr::Compare(_, pair)
            | Expr::Distinct(pair, _)
            | Expr::Arithmetic(_, _, pair, _)
            | Expr::SetValue(_, pair)
            | Expr::LikeAny(pair, ..) => pair.iter_mut().for_each(visit),
            Expr::And(list) | Expr::Or(list) | Expr::Call(_, list, _) => {
                list.iter_mut().for_each(visit);
            }
            Expr::InList(a, list, _) => {
                visit(a);
                list.iter_mut().for_each(visit);
            }
            Expr::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
                visit(otherwise);
            }
        }
    }

    /// Calls `visit` with every column in the expression.
    pub fn each_column(&self, visit: &mut dyn FnMut(ColumnRef)) {
        if let Expr::Column(column) = self {
            visit(*column);
        }
        self.each_child(&mut |child| child.each_column(visit));
    }

    /// The slots whose rows the expression reads.
    pub fn slots(&self) -> Slots {
        let mut slots = Slots::default();
        self.each_column(&mut |column| slots.insert(column.slot));
        slots
    }

    /// Whether the same arguments may give another value within a statement.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = match self {
            Expr::Call(function, ..) => function.is_volatile(),
            other => {
                matches!(other, Expr::NextValue(..) | Expr::CurrentValue(_) | Expr::SetValue(..))
            }
        };
        self.each_child(&mut |child| volatile |= child.is_volatile());
        volatile
    }

    /// Whether it counts a sequence up, or sets it.
    pub fn counts_up(&self) -> bool {
        let mut counts = matches!(self, Expr::NextValue(..) | Expr::SetValue(..));
        self.each_child(&mut |child| counts |= child.counts_up());
        counts
    }

    /// Whether it is the same whatever the rows and parameters are.
    pub fn is_constant(&self) -> bool {
        let mut constant = match self {
            Expr::Parameter(_)
            | Expr::Column(_)
            | Expr::NextValue(..)
            | Expr::CurrentValue(_)
            | Expr::SetValue(..) => false,
            Expr::Call(function, ..) => !function.is_volatile() && !function.is_of_session(),
            _ => true,
        };
        self.each_child(&mut |child| constant &= child.is_constant());
        constant
    }

    /// Takes an AND apart.
    pub fn into_conjuncts(self, out: &mut Vec<Expr>) {
        match self {
            Expr::And(list) => list.into_iter().for_each(|part| part.into_conjuncts(out)),
            other => out.push(other),
        }
    }

    /// All of them as one expression; none when there are none.
    pub fn all(mut conjuncts: Vec<Expr>) -> Option<Expr> {
        match conjuncts.len() {
            0 | 1 => conjuncts.pop(),
            _ => Some(Expr::And(conjuncts)),
        }
    }
}
