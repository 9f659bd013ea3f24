//! Expressions: a tree with resolved names, types and casts, evaluated directly on encoded rows.
//!
//! The binder builds expressions, the planner splits them, the operators evaluate them. This module
//! uses types and rows.
//!
//! - EXPR-1: the operands of every node have the types that the node expects, because the binder
//!   inserted the casts. An operand of another type is an internal error, never a wrong answer.
//! - EXPR-2: conditions have three truth values. NULL is neither true nor false, and every operator
//!   defines its result for NULL (by type)
//! - EXPR-3: evaluation has no side effects and does not allocate for values of fixed length or for
//!   texts read from rows (by type)
//! - EXPR-4: the binder limits the depth of expressions ([`MAX_DEPTH`]), so evaluation may recurse.

mod arithmetic;
mod array_ops;
mod builtin;
mod dates;
mod datum;
mod evaluate;
mod frame;
mod functions;
mod implication;
mod kept;
mod pattern;
mod regex;
mod simplify;
mod slots;
pub(crate) mod text_search;

use std::sync::Arc;

pub use arithmetic::{Arithmetic, NumberKind};
pub use array_ops::{accumulate_arrays, assigned_array, element_at as array_element};
pub(crate) use builtin::call_builtin;
pub use builtin::{
    Builtin, EXPANSION, FunctionRegistry, Implementation, Polymorphic, ROW_CTID, RoutineCall,
    RowFunction, RowWork, SERVER_VERSION, ScalarFunction, Shape, UNNEST_WORDS, add_interval,
    overloads, polymorphic, record_function, row_function,
};
pub use builtin::{JsonRecords, JsonStep, POPULATE, assigned_json};
pub use builtin::{VARIADIC_PREFIX, cut_text, json_of_any, write_key, write_value};
pub use datum::Datum;
pub use evaluate::cast;
pub use frame::{
    AdvisoryKey, AdvisoryRequest, Clock, Current, Frame, Given, Host, QueryRows, SessionActivity,
    SessionDirectory, SessionLock, SessionSignal, SessionState, ShownCursor, ShownStatement, Slot,
    StatementStatistics,
};
pub use functions::Function;
pub use implication::implies;
pub use kept::{DomainConstraints, Fold, FoldedRows};
pub use pattern::{LetterCase, Pattern};
pub use simplify::Connective;
pub use slots::Slots;

use crate::types::encoded::RowShape;
use crate::types::{CollateStep, Collation, DataType, ElementType, Value, cast_reads_settings};

/// Maximum nesting depth, which the binder enforces.
pub const MAX_DEPTH: usize = 120;

/// A byte offset in the statement's text. Equal expressions may stand at different offsets, so all
/// offsets compare equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextPosition(pub u32);

impl PartialEq for TextPosition {
    fn eq(&self, _: &TextPosition) -> bool {
        true
    }
}

/// The place of a cast, and whether its result depends on the session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CastSite {
    /// Where it is, for errors.
    pub position: TextPosition,
    /// Whether the result depends on the settings of the session.
    pub reads_settings: bool,
}

impl From<TextPosition> for CastSite {
    fn from(position: TextPosition) -> CastSite {
        CastSite { position, reads_settings: false }
    }
}

/// A comparison operator.
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
    /// Returns whether values in that order satisfy the comparison.
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

    /// Returns the comparison with its operands swapped.
    pub fn flipped(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }

    /// Returns the operator's symbol.
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

/// The truth value that `IS TRUE`, `IS FALSE` and `IS UNKNOWN` test for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// `IS TRUE`
    True,
    /// `IS FALSE`
    False,
    /// `IS UNKNOWN`
    Unknown,
}

/// A column of a current row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnRef {
    /// The number of the row slot.
    pub slot: usize,
    /// The number of the column in the slot.
    pub column: usize,
}

fn site(from: Option<DataType>, to: DataType, position: TextPosition) -> CastSite {
    // A literal or parameter of no type is read as a text.
    let reads_settings = cast_reads_settings(from.unwrap_or(DataType::Text), to);
    CastSite { position, reads_settings }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Constant(Value),
    /// A parameter, counted from 0.
    Parameter(usize),
    /// Returns a column reference.
    Column(ColumnRef),
    /// A cast.
    Cast(Box<Expr>, DataType, CastSite),
    /// An assignment cast, which applies the length of a column's type.
    Assign(Box<Expr>, DataType, CastSite),
    /// A CHAR without its trailing blanks, which are not significant.
    Trimmed(Box<Expr>),
    /// A text and its collation.
    Collate(Box<Expr>, CollateStep),
    /// A comparison of two values of comparable types.
    Compare(Comparison, Box<[Expr; 2]>),
    /// `IS [NOT] DISTINCT FROM`; true: negated.
    Distinct(Box<[Expr; 2]>, bool),
    /// A conjunction.
    And(Vec<Expr>),
    /// A disjunction.
    Or(Vec<Expr>),
    /// A negation.
    Not(Box<Expr>),
    /// `IS [NOT] NULL`; true: negated.
    IsNull(Box<Expr>, bool),
    /// `IS [NOT] TRUE`, `FALSE` and `UNKNOWN`; true: negated.
    IsTruth(Box<Expr>, Truth, bool),
    /// `+ - * / %` of operands of one kind, with its position for errors.
    Arithmetic(Arithmetic, NumberKind, Box<[Expr; 2]>, TextPosition),
    /// `-x`
    Negate(Box<Expr>, TextPosition),
    /// `[NOT] IN` with a list; true: negated.
    InList(Box<Expr>, Vec<Expr>, bool),
    /// `[NOT] IN` with constants, sorted in ascending order and not NULL; true: negated.
    InSet(Box<Expr>, Arc<Vec<Value>>, bool),
    /// `[NOT] LIKE` with a constant pattern; true: negated.
    Like(Box<Expr>, Arc<Pattern>, bool),
    /// `[NOT] LIKE` with a pattern computed for each row, its escape character, whether case is
    /// ignored, and whether it is negated.
    LikeAny(Box<[Expr; 2]>, Option<char>, bool, bool),
    /// A comparison of a value with the elements of an array; true: `ANY`, false: `ALL`.
    CompareElements(Comparison, Box<[Expr; 2]>, bool),
    /// `ARRAY[…]` of elements of that type, or of arrays of them.
    Array(ElementType, Vec<Expr>, TextPosition),
    /// A row of that shape. A further expression after the fields is NULL if there is no row.
    Row(Arc<RowShape>, Vec<Expr>),
    /// The branches of a CASE, and its ELSE.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// `nextval` of a sequence, by its number.
    NextValue(u32, DataType),
    /// `currval` of a sequence, by its number; without a number: `lastval`.
    CurrentValue(Option<u32>),
    /// `setval` of a sequence: the value, and whether it is already taken.
    SetValue(u32, Box<[Expr; 2]>),
    /// A value that the constraints of a domain have to accept.
    Domain(Box<Expr>, Arc<DomainConstraints>),
    /// The value of an aggregate that a statement has made, of an array of its rows.
    Fold(Box<Expr>, Arc<Fold>),
    /// A function call, with its position for errors.
    Call(Function, Vec<Expr>, TextPosition),
}

/// Calls a function with each direct child of an expression. `$iter` is `iter` for a shared borrow
/// of the expression, `iter_mut` for an exclusive one.
macro_rules! visit_children {
    ($expr:expr, $visit:expr, $iter:ident) => {
        match $expr {
            Expr::Constant(_)
            | Expr::Parameter(_)
            | Expr::Column(_)
            | Expr::NextValue(..)
            | Expr::CurrentValue(_) => {}
            Expr::Cast(a, ..)
            | Expr::Assign(a, ..)
            | Expr::Domain(a, _)
            | Expr::Fold(a, _)
            | Expr::Trimmed(a)
            | Expr::Collate(a, _)
            | Expr::Not(a)
            | Expr::IsNull(a, _)
            | Expr::IsTruth(a, ..)
            | Expr::Negate(a, _)
            | Expr::InSet(a, ..)
            | Expr::Like(a, ..) => $visit(a),
            Expr::Compare(_, pair)
            | Expr::Distinct(pair, _)
            | Expr::Arithmetic(_, _, pair, _)
            | Expr::SetValue(_, pair)
            | Expr::CompareElements(_, pair, _)
            | Expr::LikeAny(pair, ..) => pair.$iter().for_each($visit),
            Expr::And(list)
            | Expr::Or(list)
            | Expr::Call(_, list, _)
            | Expr::Row(_, list)
            | Expr::Array(_, list, _) => list.$iter().for_each($visit),
            Expr::InList(a, list, _) => {
                $visit(a);
                list.$iter().for_each($visit);
            }
            Expr::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    $visit(condition);
                    $visit(result);
                }
                $visit(otherwise);
            }
        }
    };
}

impl Expr {
    /// Returns a cast of a value of type `from`, or of a parameter or literal of no type yet.
    pub fn cast(self, from: Option<DataType>, to: DataType, position: TextPosition) -> Expr {
        Expr::Cast(Box::new(self), to, site(from, to, position))
    }

    /// Returns an assignment cast of a value of type `from`.
    pub fn assigned(self, from: Option<DataType>, to: DataType, position: TextPosition) -> Expr {
        Expr::Assign(Box::new(self), to, site(from, to, position))
    }

    /// Returns whether the value depends on the settings of the session.
    pub fn reads_settings(&self) -> bool {
        let mut reads = match self {
            Expr::Cast(_, _, site) | Expr::Assign(_, _, site) => site.reads_settings,
            Expr::Call(function, ..) => function.is_of_session(),
            Expr::Domain(_, domain) => domain.any(Expr::reads_settings),
            Expr::Fold(_, fold) => fold.any(Expr::reads_settings),
            _ => false,
        };
        self.each_child(&mut |child| reads |= child.reads_settings());
        reads
    }

    /// A column.
    pub fn column(slot: usize, column: usize) -> Expr {
        Expr::Column(ColumnRef { slot, column })
    }

    /// Returns the value of a constant or parameter, which is known before any row is read. An
    /// assignment cast that leaves the value unchanged is looked through.
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

    /// Returns the value of a constant.
    pub fn as_constant(&self) -> Option<&Value> {
        match self {
            Expr::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the column of a column reference.
    pub fn as_column(&self) -> Option<ColumnRef> {
        match self {
            Expr::Column(column) => Some(*column),
            _ => None,
        }
    }

    /// Returns the text and the collation of which the expression is the sort key.
    pub fn as_sort_key(&self) -> Option<(&Expr, Collation)> {
        match self {
            Expr::Collate(text, CollateStep::Key(own)) => Some((text, *own)),
            _ => None,
        }
    }

    /// Returns the text of which the expression is the sort key.
    pub fn text_of_sort_key(&self) -> Option<&Expr> {
        self.as_sort_key().map(|(text, _)| text)
    }

    /// Returns the text of which the expression is the sort key, or else the expression.
    pub fn without_sort_key(&self) -> &Expr {
        self.text_of_sort_key().unwrap_or(self)
    }

    /// Returns whether the expression reads or advances that sequence.
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

    /// Calls `visit` with each direct child.
    pub fn each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit_children!(self, visit, iter);
    }

    /// Calls `visit` with each direct child, mutably.
    pub fn each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        visit_children!(self, visit, iter_mut);
    }

    /// Calls `visit` with every column in the expression.
    pub fn each_column(&self, visit: &mut dyn FnMut(ColumnRef)) {
        if let Expr::Column(column) = self {
            visit(*column);
        }
        self.each_child(&mut |child| child.each_column(visit));
    }

    /// Returns how deep the expression is nested.
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        self.each_child(&mut |child| deepest = deepest.max(child.depth()));
        deepest + 1
    }

    /// Returns the slots that the expression reads.
    pub fn slots(&self) -> Slots {
        let mut slots = Slots::default();
        self.each_column(&mut |column| slots.insert(column.slot));
        slots
    }

    /// Returns whether the same arguments may give another value within a statement.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = match self {
            Expr::Call(function, ..) => function.is_volatile(),
            Expr::Domain(_, domain) => domain.any(Expr::is_volatile),
            other => {
                matches!(other, Expr::NextValue(..) | Expr::CurrentValue(_) | Expr::SetValue(..))
            }
        };
        self.each_child(&mut |child| volatile |= child.is_volatile());
        volatile
    }

    /// Returns whether the value depends on the columns that it reads alone.
    pub fn is_immutable(&self) -> bool {
        let mut immutable = match self {
            Expr::Call(function, ..) => !function.is_volatile() && !function.is_of_session(),
            Expr::Cast(_, _, site) | Expr::Assign(_, _, site) => !site.reads_settings,
            Expr::NextValue(..)
            | Expr::CurrentValue(_)
            | Expr::SetValue(..)
            | Expr::Parameter(_) => false,
            Expr::Domain(_, domain) => domain.is_immutable(),
            Expr::Fold(..) => false,
            _ => true,
        };
        self.each_child(&mut |child| immutable &= child.is_immutable());
        immutable
    }

    /// Returns whether the expression calls a function that the program has registered.
    pub fn calls_program(&self) -> bool {
        let mut calls = match self {
            Expr::Call(function, ..) => function.is_of_program(),
            Expr::Domain(_, domain) => domain.any(Expr::calls_program),
            Expr::Fold(_, fold) => fold.any(Expr::calls_program),
            _ => false,
        };
        self.each_child(&mut |child| calls |= child.calls_program());
        calls
    }

    /// Returns whether the expression advances or sets a sequence, or calls a function that may
    /// change something.
    pub fn counts_up(&self) -> bool {
        let mut counts = match self {
            Expr::Call(function, ..) => function.may_change(),
            Expr::Domain(_, domain) => domain.any(Expr::counts_up),
            Expr::Fold(_, fold) => fold.any(Expr::counts_up),
            other => matches!(other, Expr::NextValue(..) | Expr::SetValue(..)),
        };
        self.each_child(&mut |child| counts |= child.counts_up());
        counts
    }

    /// Returns whether the value depends on neither rows, parameters nor session.
    pub fn is_constant(&self) -> bool {
        let mut constant = match self {
            Expr::Parameter(_)
            | Expr::Column(_)
            // PostgreSQL checks domains when the statement runs, too.
            | Expr::Domain(..)
            | Expr::Fold(..)
            | Expr::NextValue(..)
            | Expr::CurrentValue(_)
            | Expr::SetValue(..) => false,
            Expr::Call(function, ..) => !function.is_volatile() && !function.is_of_session(),
            Expr::Cast(_, _, site) | Expr::Assign(_, _, site) => !site.reads_settings,
            _ => true,
        };
        self.each_child(&mut |child| constant &= child.is_constant());
        constant
    }

    /// Splits a conjunction into its conjuncts.
    pub fn into_conjuncts(self, out: &mut Vec<Expr>) {
        match self {
            Expr::And(list) => list.into_iter().for_each(|part| part.into_conjuncts(out)),
            other => out.push(other),
        }
    }

    /// Joins conjuncts into one expression; `None` if there are none.
    pub fn all(mut conjuncts: Vec<Expr>) -> Option<Expr> {
        match conjuncts.len() {
            0 | 1 => conjuncts.pop(),
            _ => Some(Expr::And(conjuncts)),
        }
    }
}
