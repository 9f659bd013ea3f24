//! Statements whose names and types are known.

use std::sync::Arc;

use smol_str::SmolStr;

use super::{Derivation, WindowKind, Windows};
use crate::catalog::{ObjectId, Table};
use crate::expression::{Comparison, Expr, RowFunction, Slots};
use crate::types::{DataType, ElementType, TextSettings, Value};

/// A place for one row, as the binder knows it.
#[derive(Clone, Debug)]
pub struct SlotShape {
    /// Its name, for EXPLAIN.
    pub name: SmolStr,
    /// The origin of its rows.
    pub source: Source,
}

/// The origin of a slot's rows.
#[derive(Clone, Debug)]
pub enum Source {
    /// A table's stored rows.
    Table(Arc<Table>),
    /// A query in FROM: the columns of its answer.
    Query(Arc<[OutputColumn]>),
    /// An operator computes them: a group, a sorted row, a subquery's answer.
    Computed,
}

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Common table expressions that are computed once and stored, in order.
    pub with: Vec<CommonTable>,
    /// The body.
    pub body: Body,
    /// Names and types of the columns of its answer.
    pub columns: Vec<OutputColumn>,
    /// ORDER BY, over the slots of the body.
    pub order: Vec<OrderKey>,
    /// LIMIT.
    pub limit: Option<Expr>,
    /// OFFSET.
    pub offset: Option<Expr>,
    /// WITH TIES: rows that order like the last one of LIMIT come too.
    pub with_ties: bool,
}

impl Query {
    /// Returns a query of these columns without WITH, ORDER BY or LIMIT.
    pub fn plain(body: Body, columns: Vec<OutputColumn>) -> Query {
        Query {
            with: Vec::new(),
            body,
            columns,
            order: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
        }
    }

    /// Returns whether the query has a first row whenever it has one without its LIMIT and OFFSET.
    pub fn keeps_first_row(&self) -> bool {
        let keeps = |limit: &Expr| matches!(limit, Expr::Constant(Value::BigInt(1..)));
        self.limit.as_ref().is_none_or(keeps) && self.offset.is_none()
    }
}

/// A common table expression that is computed once, before the query that it belongs to.
#[derive(Clone, Debug)]
pub struct CommonTable {
    /// The slot that stores its rows, one after another.
    pub slot: usize,
    /// Its query.
    pub query: Query,
}

/// A column of an answer.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// Its name.
    pub name: SmolStr,
    /// Its type.
    pub data_type: DataType,
    /// Its collation.
    pub collation: Derivation,
}

impl OutputColumn {
    /// Returns a column without a collation of its own.
    pub fn new(name: impl Into<SmolStr>, data_type: DataType) -> OutputColumn {
        OutputColumn { name: name.into(), data_type, collation: Derivation::Default }
    }
}

/// The body of a query.
#[derive(Clone, Debug)]
pub enum Body {
    /// SELECT.
    Select(Box<Select>),
    /// VALUES; ORDER BY reads the slot.
    Values(Values),
    /// UNION, INTERSECT, EXCEPT; ORDER BY reads the slot.
    Combine(Box<Combine>),
    /// A recursive query.
    Recursive(Box<Recursive>),
    /// Stored rows: a common table expression, or the working table of a recursive query.
    Stored(Stored),
    /// A function that returns rows.
    Function(TableFunction),
}

/// A recursive query: the rows of `base`, then those of `step` over the rows found last, until
/// there are none.
#[derive(Clone, Debug)]
pub struct Recursive {
    /// The non-recursive term.
    pub base: Query,
    /// The recursive term, which reads the working table.
    pub step: Query,
    /// UNION ALL; otherwise each row is returned once.
    pub all: bool,
    /// The slot that stores the working table.
    pub working: usize,
    /// The slot of a result row.
    pub slot: usize,
}

/// A scan of stored rows.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The slot that stores the rows.
    pub from: usize,
    /// The number of columns of a row.
    pub width: usize,
    /// The slot of a result row.
    pub slot: usize,
}

/// Calls of functions that return rows. The rows of all calls stand side by side; a call with fewer
/// rows is filled with NULLs.
#[derive(Clone, Debug)]
pub struct TableFunction {
    /// The calls: one in FROM, all of a select list.
    pub calls: Vec<FunctionCall>,
    /// WITH ORDINALITY: a last column with the number of the row.
    pub ordinality: bool,
    /// The slot of a result row.
    pub slot: usize,
}

/// A call of a function that returns rows.
#[derive(Clone, Debug)]
pub struct FunctionCall {
    /// The function.
    pub kind: TableFunctionKind,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The number of its columns.
    pub width: usize,
}

impl TableFunction {
    /// Returns the arguments of all calls.
    pub fn arguments(&self) -> impl Iterator<Item = &Expr> {
        self.calls.iter().flat_map(|call| &call.arguments)
    }
}

/// A function that returns rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFunctionKind {
    /// `generate_series(start, stop [, step])` of this type.
    GenerateSeries(DataType),
    /// A function that returns all its rows at once.
    Rows(&'static RowFunction),
    /// A row of one column, the value of the only argument.
    Value,
    /// A function of the catalog, with its name.
    Routine(&'static crate::expression::RoutineCall, &'static str),
    /// A function that makes rows of JSON.
    JsonRecords(&'static crate::expression::JsonRecords),
    /// The rows of a system catalog.
    Catalog(&'static crate::catalog::system::SystemTable),
    /// The row of the sequence of that number.
    Sequence(ObjectId),
    /// The rows of a transition table.
    Transition(crate::catalog::TransitionSide),
}

/// VALUES.
#[derive(Clone, Debug)]
pub struct Values {
    /// Rows of expressions.
    pub rows: Vec<Vec<Expr>>,
    /// The slot of a result row.
    pub slot: usize,
}

/// A set operation.
#[derive(Clone, Debug)]
pub struct Combine {
    /// Which.
    pub kind: CombineKind,
    /// Whether equal rows all count.
    pub all: bool,
    /// Its sides: of a UNION any number, else two.
    pub sides: Vec<Query>,
    /// The slot of a result row.
    pub slot: usize,
}

/// The kind of a set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombineKind {
    /// Rows of both.
    Union,
    /// Rows that are in both.
    Intersect,
    /// Rows of the first that are not in the second.
    Except,
}

/// SELECT.
#[derive(Clone, Debug)]
pub struct Select {
    /// FROM; `None`: one row without columns.
    pub from: Option<From>,
    /// WHERE, split at AND.
    pub filter: Vec<Expr>,
    /// Subqueries of WHERE, outputs and aggregates, innermost first.
    pub subqueries: Vec<Subquery>,
    /// GROUP BY and aggregates.
    pub group: Option<Group>,
    /// Window functions, which run after grouping.
    pub windows: Option<Windows>,
    /// The select list.
    pub outputs: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// DISTINCT ON: only the first row with the same values of these.
    pub distinct_on: Vec<Expr>,
    /// FOR UPDATE.
    pub for_update: Option<RowLock>,
}

impl Select {
    /// Returns a SELECT of these outputs without WHERE and later clauses.
    pub fn plain(from: Option<From>, outputs: Vec<Expr>, subqueries: Vec<Subquery>) -> Select {
        Select {
            from,
            filter: Vec::new(),
            subqueries,
            group: None,
            windows: None,
            outputs,
            distinct: false,
            distinct_on: Vec::new(),
            for_update: None,
        }
    }
}

/// A subquery in an expression. Expressions read its answer in a slot.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// The slot of its answer, which has one column.
    pub slot: usize,
    /// The query.
    pub query: Arc<Query>,
    /// The kind of its answer.
    pub kind: SubqueryKind,
    /// The rows around it that it reads, the compared value included.
    pub reads: Slots,
}

/// The kind of a subquery's answer.
#[derive(Clone, Debug)]
pub enum SubqueryKind {
    /// The only column of its only row; NULL if it has no row.
    Scalar,
    /// Its only row, as a row; NULLs if it has no row.
    Row,
    /// The array of the values of its only column.
    Array(ElementType),
    /// Whether there is a row.
    Exists,
    /// Whether the comparison with the value holds for any row, as in ANY. The comparison has the
    /// value on its left.
    Any(Expr, Comparison),
    /// Whether all rows do.
    All(Expr, Comparison),
}

/// A query in FROM.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The slot of its rows.
    pub slot: usize,
    /// The query. References to one common table expression share it.
    pub query: Arc<Query>,
    /// The rows around the whole FROM that it reads.
    pub reads: Slots,
}

/// An item of FROM.
#[derive(Clone, Debug)]
pub enum From {
    /// A table, by its slot.
    Table(usize),
    /// A query.
    Query(Derived),
    /// A join.
    Join {
        /// Which kind.
        kind: JoinKind,
        /// The left side.
        left: Box<From>,
        /// The right side.
        right: Box<From>,
        /// ON, split at AND.
        on: Vec<Expr>,
    },
}

/// Kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Matching rows.
    Inner,
    /// Matching rows, and left rows without a match.
    Left,
    /// And the unfit ones of both sides.
    Full,
}

impl From {
    /// The slots in it.
    pub fn slots(&self) -> Slots {
        match self {
            From::Table(slot) | From::Query(Derived { slot, .. }) => Slots::one(*slot),
            From::Join { left, right, .. } => &left.slots() | &right.slots(),
        }
    }
}

/// GROUP BY and aggregates.
#[derive(Clone, Debug)]
pub struct Group {
    /// The slot of a group: the keys' values, followed by the aggregates'.
    pub slot: usize,
    /// GROUP BY.
    pub keys: Vec<Expr>,
    /// GROUPING SETS: the numbers of the keys of each. A further column of the group, after the
    /// aggregates, has the number of the set. Empty for one set with all keys.
    pub sets: Vec<Vec<usize>>,
    /// The aggregates.
    pub aggregates: Vec<Aggregate>,
    /// HAVING, split at AND.
    pub having: Vec<Expr>,
    /// Subqueries that only the outputs or HAVING read. They run for each group, also for the one
    /// group of an empty input.
    pub subqueries: Vec<Subquery>,
}

/// An aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub kind: AggregateKind,
    /// The argument; `None`: counts rows.
    pub argument: Option<Expr>,
    /// A second argument: the delimiter of a concatenation, the independent variable of a
    /// regression, the fraction of a percentile.
    pub second: Option<Expr>,
    /// ORDER BY within the call, or WITHIN GROUP.
    pub order: Vec<AggregateOrder>,
    /// Of values that differ.
    pub distinct: bool,
    /// FILTER: only rows for which this is true.
    pub filter: Option<Expr>,
    /// The type of its value.
    pub data_type: DataType,
    /// The settings of the session for the texts in JSON.
    pub settings: TextSettings,
}

/// A key of ORDER BY within an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateOrder {
    /// The key.
    pub expr: Expr,
    /// Whether the greatest comes first.
    pub descending: bool,
    /// Whether NULLs come first.
    pub nulls_first: bool,
}

impl Aggregate {
    /// Returns the expressions that the aggregate reads.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let keys = self.order.iter().map(|key| &key.expr);
        self.argument.iter().chain(&self.second).chain(keys).chain(&self.filter)
    }

    /// Returns the expressions that the aggregate reads, mutably.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let keys = self.order.iter_mut().map(|key| &mut key.expr);
        self.argument.iter_mut().chain(&mut self.second).chain(keys).chain(&mut self.filter)
    }

    /// Returns whether the aggregate reads more than one value of a row besides its FILTER.
    pub fn has_more_arguments(&self) -> bool {
        self.second.is_some() || !self.order.is_empty()
    }

    /// Returns what values of a DISTINCT list are distinguished by, if not by themselves: the sort
    /// key that they are ordered by.
    pub fn distinct_key(&self) -> Option<&Expr> {
        let of_argument = |expr: &&Expr| {
            let text = expr.text_of_sort_key();
            text.is_some() && text == self.argument.as_ref()
        };
        self.order.iter().map(|key| &key.expr).find(of_argument)
    }
}

/// The kind of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// COUNT
    Count,
    /// SUM
    Sum,
    /// AVG
    Average,
    /// MIN
    Minimum,
    /// MAX
    Maximum,
    /// BOOL_AND, EVERY
    All,
    /// BOOL_OR
    Any,
    /// STRING_AGG
    Concatenation,
    /// ARRAY_AGG
    Elements,
    /// JSON_AGG, JSONB_AGG
    JsonElements(bool),
    /// JSON_OBJECT_AGG, JSONB_OBJECT_AGG
    JsonMembers(bool),
    /// BIT_AND
    BitAnd,
    /// BIT_OR
    BitOr,
    /// BIT_XOR
    BitXor,
    /// RANGE_AGG
    RangeUnion,
    /// RANGE_INTERSECT_AGG
    RangeIntersection,
    /// VAR_SAMP, VARIANCE
    SampleVariance,
    /// VAR_POP
    PopulationVariance,
    /// STDDEV_SAMP, STDDEV
    SampleDeviation,
    /// STDDEV_POP
    PopulationDeviation,
    /// CORR
    Correlation,
    /// COVAR_SAMP
    SampleCovariance,
    /// COVAR_POP
    PopulationCovariance,
    /// REGR_AVGX
    RegressionAverageX,
    /// REGR_AVGY
    RegressionAverageY,
    /// REGR_COUNT
    RegressionCount,
    /// REGR_INTERCEPT
    RegressionIntercept,
    /// REGR_R2
    RegressionR2,
    /// REGR_SLOPE
    RegressionSlope,
    /// REGR_SXX
    RegressionSxx,
    /// REGR_SXY
    RegressionSxy,
    /// REGR_SYY
    RegressionSyy,
    /// PERCENTILE_CONT
    ContinuousPercentile,
    /// PERCENTILE_DISC
    DiscretePercentile,
    /// MODE
    Mode,
    /// RANK, DENSE_RANK, PERCENT_RANK and CUME_DIST of a row that is not there.
    Hypothetical(WindowKind),
}

/// The names of aggregates. EXPLAIN shows the first name of a kind.
const AGGREGATE_NAMES: &[(&str, AggregateKind)] = &[
    ("count", AggregateKind::Count),
    ("sum", AggregateKind::Sum),
    ("avg", AggregateKind::Average),
    ("min", AggregateKind::Minimum),
    ("max", AggregateKind::Maximum),
    ("bool_and", AggregateKind::All),
    ("every", AggregateKind::All),
    ("bool_or", AggregateKind::Any),
    ("string_agg", AggregateKind::Concatenation),
    ("array_agg", AggregateKind::Elements),
    ("json_agg", AggregateKind::JsonElements(false)),
    ("jsonb_agg", AggregateKind::JsonElements(true)),
    ("json_object_agg", AggregateKind::JsonMembers(false)),
    ("jsonb_object_agg", AggregateKind::JsonMembers(true)),
    ("bit_and", AggregateKind::BitAnd),
    ("bit_or", AggregateKind::BitOr),
    ("bit_xor", AggregateKind::BitXor),
    ("range_agg", AggregateKind::RangeUnion),
    ("range_intersect_agg", AggregateKind::RangeIntersection),
    ("var_samp", AggregateKind::SampleVariance),
    ("variance", AggregateKind::SampleVariance),
    ("var_pop", AggregateKind::PopulationVariance),
    ("stddev_samp", AggregateKind::SampleDeviation),
    ("stddev", AggregateKind::SampleDeviation),
    ("stddev_pop", AggregateKind::PopulationDeviation),
    ("corr", AggregateKind::Correlation),
    ("covar_samp", AggregateKind::SampleCovariance),
    ("covar_pop", AggregateKind::PopulationCovariance),
    ("regr_avgx", AggregateKind::RegressionAverageX),
    ("regr_avgy", AggregateKind::RegressionAverageY),
    ("regr_count", AggregateKind::RegressionCount),
    ("regr_intercept", AggregateKind::RegressionIntercept),
    ("regr_r2", AggregateKind::RegressionR2),
    ("regr_slope", AggregateKind::RegressionSlope),
    ("regr_sxx", AggregateKind::RegressionSxx),
    ("regr_sxy", AggregateKind::RegressionSxy),
    ("regr_syy", AggregateKind::RegressionSyy),
    ("percentile_cont", AggregateKind::ContinuousPercentile),
    ("percentile_disc", AggregateKind::DiscretePercentile),
    ("mode", AggregateKind::Mode),
    ("rank", AggregateKind::Hypothetical(WindowKind::Rank)),
    ("dense_rank", AggregateKind::Hypothetical(WindowKind::DenseRank)),
    ("percent_rank", AggregateKind::Hypothetical(WindowKind::PercentRank)),
    ("cume_dist", AggregateKind::Hypothetical(WindowKind::CumeDist)),
];

impl AggregateKind {
    /// Returns the aggregate of that name.
    pub fn named(name: &str) -> Option<AggregateKind> {
        AGGREGATE_NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Returns the name of the aggregate.
    pub fn name(self) -> &'static str {
        let known = AGGREGATE_NAMES.iter().find(|(_, kind)| *kind == self);
        known.map_or("aggregate", |(name, _)| name)
    }

    /// Returns whether NULL arguments count.
    pub fn keeps_nulls(self) -> bool {
        matches!(
            self,
            AggregateKind::Elements
                | AggregateKind::JsonElements(_)
                | AggregateKind::JsonMembers(_)
                | AggregateKind::Hypothetical(_)
        )
    }

    /// Returns whether the aggregate takes two variables.
    pub fn is_regression(self) -> bool {
        matches!(
            self,
            AggregateKind::Correlation
                | AggregateKind::SampleCovariance
                | AggregateKind::PopulationCovariance
                | AggregateKind::RegressionAverageX
                | AggregateKind::RegressionAverageY
                | AggregateKind::RegressionCount
                | AggregateKind::RegressionIntercept
                | AggregateKind::RegressionR2
                | AggregateKind::RegressionSlope
                | AggregateKind::RegressionSxx
                | AggregateKind::RegressionSxy
                | AggregateKind::RegressionSyy
        )
    }

    /// Returns whether the aggregate is written with WITHIN GROUP.
    pub fn is_ordered_set(self) -> bool {
        matches!(
            self,
            AggregateKind::ContinuousPercentile
                | AggregateKind::DiscretePercentile
                | AggregateKind::Mode
                | AggregateKind::Hypothetical(_)
        )
    }
}

/// A key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// The sort expression.
    pub expr: Expr,
    /// The number of the output that it is, if it is one.
    pub output: Option<usize>,
    /// Greatest first.
    pub descending: bool,
    /// NULLs first.
    pub nulls_first: bool,
}

/// INSERT.
#[derive(Clone, Debug)]
pub struct Insert {
    /// Into what.
    pub table: Arc<Table>,
    /// The slot of the row to be inserted (`excluded`).
    pub new_slot: usize,
    /// The slot of the conflicting row.
    pub old_slot: usize,
    /// Rows.
    pub source: InsertSource,
    /// ON CONFLICT.
    pub conflict: Option<OnConflict>,
    /// WITH CHECK OPTION of the views, over the new row.
    pub view_checks: Vec<ViewCheck>,
    /// RETURNING, of the new row.
    pub returning: Option<Returning>,
    /// The slot of `xmax` for RETURNING, if that reads system columns.
    pub xmax_slot: Option<usize>,
}

/// A condition that WITH CHECK OPTION has a new row satisfy.
#[derive(Clone, Debug)]
pub struct ViewCheck {
    /// The view whose condition it is.
    pub view: SmolStr,
    /// The condition.
    pub condition: Expr,
    /// Whether the role of the statement may see all of the row.
    pub may_see_row: bool,
}

/// FOR UPDATE.
#[derive(Clone, Debug)]
pub struct RowLock {
    /// The slots of the locked tables; if there are none, all tables are locked.
    pub of: Vec<usize>,
    /// The wait option.
    pub wait: LockWait,
}

/// The wait option for rows that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// They are waited for, up to the lock timeout.
    Wait,
    /// They are an error (NOWAIT).
    Fail,
    /// They are left out (SKIP LOCKED).
    Skip,
}

/// Rows to be inserted.
#[derive(Clone, Debug)]
pub enum InsertSource {
    /// VALUES: for each row a value for each column of the table.
    Rows(Vec<Vec<Expr>>),
    /// The rows of a query in the slot, and from them a value for each column of the table.
    Query {
        /// The query.
        query: Arc<Query>,
        /// The slot of its rows.
        slot: usize,
        /// A value for each column.
        values: Vec<Expr>,
    },
}

/// ON CONFLICT.
#[derive(Clone, Debug)]
pub struct OnConflict {
    /// The unique keys of the conflict target: `None` in the list is the primary key, a number that
    /// of an index. `None` for all: any unique key.
    pub target: Option<Vec<Option<usize>>>,
    /// DO UPDATE SET: column and value; `None`: DO NOTHING.
    pub assignments: Option<Vec<(usize, Expr)>>,
    /// Its WHERE.
    pub filter: Option<Expr>,
    /// The subqueries of both.
    pub subqueries: Vec<Subquery>,
}

/// RETURNING.
#[derive(Clone, Debug)]
pub struct Returning {
    /// The values.
    pub outputs: Vec<Expr>,
    /// Their names and types.
    pub columns: Vec<OutputColumn>,
}

/// UPDATE or DELETE.
#[derive(Clone, Debug)]
pub struct Change {
    /// Common table expressions that are computed once and stored, in order.
    pub with: Vec<CommonTable>,
    /// Of what.
    pub table: Arc<Table>,
    /// The slot of its rows.
    pub slot: usize,
    /// The table and the items of FROM or USING.
    pub from: From,
    /// WHERE, split at AND.
    pub filter: Vec<Expr>,
    /// The name of the cursor of WHERE CURRENT OF.
    pub cursor: Option<Expr>,
    /// Subqueries of it and of the values.
    pub subqueries: Vec<Subquery>,
    /// SET: column and value; `None`: DELETE.
    pub assignments: Option<Vec<(usize, Expr)>>,
    /// WITH CHECK OPTION of the views, over the new row.
    pub view_checks: Vec<ViewCheck>,
    /// RETURNING: of the new row in an update, of the old one in a delete.
    pub returning: Option<Returning>,
}

impl Query {
    /// Makes the query a SELECT from itself, whose outputs can be changed.
    fn wrap(&mut self) {
        let slot = match &self.body {
            Body::Recursive(recursive) => recursive.slot,
            Body::Stored(stored) => stored.slot,
            Body::Function(function) => function.slot,
            Body::Values(values) => values.slot,
            Body::Combine(combine) => combine.slot,
            Body::Select(_) => return,
        };
        let columns = self.columns.clone();
        let outputs = (0..columns.len()).map(|column| Expr::column(slot, column)).collect();
        let placeholder = Body::Values(Values { rows: Vec::new(), slot });
        let body = std::mem::replace(&mut self.body, placeholder);
        let with = std::mem::take(&mut self.with);
        let inner = Query { with, ..Query::plain(body, columns) };
        self.body = Body::Select(Box::new(Select::plain(
            Some(From::query(slot, Arc::new(inner))),
            outputs,
            Vec::new(),
        )));
    }

    /// Calls `convert` with each output, where it is computed, its present type and its new type
    /// from `types`.
    pub fn convert_outputs(
        &mut self,
        types: &[DataType],
        convert: &mut dyn FnMut(&mut Expr, DataType, DataType),
    ) {
        let mut each = |outputs: &mut [Expr]| {
            for ((output, column), to) in outputs.iter_mut().zip(&self.columns).zip(types) {
                convert(output, column.data_type, *to);
            }
        };
        match &mut self.body {
            Body::Select(select) => each(&mut select.outputs),
            Body::Values(values) => values.rows.iter_mut().for_each(|row| each(row)),
            Body::Combine(combine) => {
                combine.sides.iter_mut().for_each(|side| side.convert_outputs(types, convert));
            }
            Body::Recursive(_) | Body::Stored(_) | Body::Function(_) => {
                self.wrap();
                return self.convert_outputs(types, convert);
            }
        }
        self.columns.iter_mut().zip(types).for_each(|(column, to)| column.data_type = *to);
    }
}
