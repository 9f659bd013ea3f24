//! Subqueries in expressions: evaluated for each outer row, or hashed once.

use super::join::key_pair;
use super::select::Planner;
use crate::bind::{
    AggregateKind, Body, Group, OutputColumn, Query, Select, Subquery, SubqueryKind,
};
use crate::error::Result;
use crate::expression::{Arithmetic, Comparison, Expr, Function, NumberKind, Slots};
use crate::plan::cost::RowGoal;
use crate::plan::cost::{HASH_BUILD_COST, HASH_PROBE_COST, MOST_KEPT};
use crate::plan::{QueryPlan, SubqueryHash};
use crate::types::{DataType, Value};

/// The largest number of columns of rows that are hashed.
const MOST_COLUMNS: usize = 64;

impl Planner<'_> {
    /// Plans a subquery. Returns also how it is hashed, if it is.
    /// `around` are the slots of the enclosing query, which evaluates the subquery for `rows` rows.
    pub(in crate::plan) fn plan_subquery(
        &self,
        subquery: &Subquery,
        around: &Slots,
        outside: &Slots,
        rows: Option<f64>,
    ) -> Result<(QueryPlan, Option<Box<SubqueryHash>>)> {
        let query = &subquery.query;
        if !query.reads().meets(around) {
            let compares = matches!(subquery.kind, SubqueryKind::Any(..) | SubqueryKind::All(..));
            let hash = (compares && rows.is_some()).then(Box::default);
            return Ok((self.query(query, outside)?, hash));
        }
        if rows.is_some()
            && !self.off.get().hash_join
            && let Some((alone, hash)) = self.rows_alone(subquery, around, outside)
        {
            return Ok((self.query(&alone, outside)?, Some(Box::new(hash))));
        }
        if let Some(rows) = rows
            && !self.off.get().hash_join
            && let Some((alone, hash)) = self.decorrelate(subquery, around, outside)
            && self.hash_is_cheaper(query, &alone, around, outside, rows)?
        {
            return Ok((self.query(&alone, outside)?, Some(Box::new(hash))));
        }
        Ok((self.query(query, &(outside | around))?, None))
    }

    /// Returns the subquery without its correlated equalities: it returns their inner sides as
    /// further outputs, and the outer sides become the keys. Returns `None` if it is correlated
    /// otherwise.
    fn decorrelate(
        &self,
        subquery: &Subquery,
        around: &Slots,
        outside: &Slots,
    ) -> Option<(Query, SubqueryHash)> {
        let query = &*subquery.query;
        let Body::Select(select) = &query.body else { return None };
        if !query.with.is_empty() {
            return None;
        }
        let mut missing = Value::Null;
        let first = match &subquery.kind {
            SubqueryKind::Exists => None,
            SubqueryKind::Scalar => {
                missing = answer_without_rows(select)?;
                Some(select.outputs.first()?.clone())
            }
            SubqueryKind::Any(_, Comparison::Equal)
            | SubqueryKind::All(_, Comparison::NotEqual) => Some(select.outputs.first()?.clone()),
            _ => return None,
        };
        let asks_for_one = first.is_none() || select.group.is_some();
        let is_whole = query.limit.is_none() || asks_for_one;
        let is_scalar = matches!(subquery.kind, SubqueryKind::Scalar);
        if !is_whole || !query.keeps_first_row() || select.for_update.is_some() {
            return None;
        }
        if select.group.is_some() != is_scalar {
            return None;
        }
        if select.windows.is_some() || !select.distinct_on.is_empty() || query.with_ties {
            return None;
        }
        let inner = select.from.as_ref()?.slots();
        let bound = outside | around;
        if inner.meets(&bound) {
            return None;
        }
        let within = &inner | outside;
        let mut keys = Vec::new();
        let mut select = select.clone();
        select.outputs = first.into_iter().collect();
        let mut columns: Vec<OutputColumn> =
            query.columns.iter().take(select.outputs.len()).cloned().collect();
        let filter = std::mem::take(&mut select.filter);
        for conjunct in filter {
            let pair = key_pair(self, &conjunct, around, &inner).filter(|(outer, own)| {
                outer.slots().is_within(&bound) && own.slots().is_within(&within)
            });
            let Some((outer, own)) = pair else {
                select.filter.push(conjunct);
                continue;
            };
            let data_type = self.type_of(&own).unwrap_or(DataType::Text);
            columns.push(OutputColumn::new("key", data_type));
            keys.push(outer);
            select.outputs.push(own);
        }
        if let Some(group) = &mut select.group {
            group_by_keys(group, &mut select.outputs);
        }
        // Neither duplicates nor the order of its rows matter.
        select.distinct = false;
        let alone = Query::plain(Body::Select(select), columns);
        let mut volatile = keys.iter().any(Expr::is_volatile);
        alone.each_expression(&mut |expr| volatile |= expr.is_volatile());
        if is_scalar {
            // The aggregates are computed for all keys, also for those that no row asks for.
            let mut is_safe = true;
            alone.each_expression(&mut |expr| is_safe &= self.cannot_fail(expr));
            if !is_safe {
                return None;
            }
        }
        let is_free = !keys.is_empty() && !volatile && !alone.reads().meets(around);
        is_free.then_some((alone, SubqueryHash { keys, missing, compares_rows: false }))
    }

    /// Returns the query of the rows in `(a, b) IN (SELECT x, y FROM …)`, and the row that is
    /// compared with them. The binder makes `TRUE = ANY (SELECT a = x AND b = y FROM …)` of it.
    /// Returns `None` for other subqueries.
    fn rows_alone(
        &self,
        subquery: &Subquery,
        around: &Slots,
        outside: &Slots,
    ) -> Option<(Query, SubqueryHash)> {
        let query = &*subquery.query;
        let SubqueryKind::Any(Expr::Constant(Value::Boolean(true)), Comparison::Equal) =
            subquery.kind
        else {
            return None;
        };
        let Body::Select(select) = &query.body else { return None };
        let [Expr::And(conjuncts)] = &select.outputs[..] else { return None };
        let is_plain = select.group.is_none()
            && select.windows.is_none()
            && select.distinct_on.is_empty()
            && select.for_update.is_none()
            && query.limit.is_none()
            && query.offset.is_none()
            && query.with.is_empty();
        if !is_plain || conjuncts.len() > MOST_COLUMNS {
            return None;
        }
        let inner = select.from.as_ref()?.slots();
        let mut alone = select.clone();
        alone.outputs.clear();
        let (mut row, mut columns) = (Vec::new(), Vec::new());
        for conjunct in conjuncts {
            let Expr::Compare(Comparison::Equal, pair) = conjunct else { return None };
            let [left, right] = &**pair;
            let is_pair = |outer: &Expr, own: &Expr| {
                !outer.slots().meets(&inner) && !own.slots().meets(around)
            };
            let (outer, own) = match (is_pair(left, right), is_pair(right, left)) {
                (true, _) => (left, right),
                (false, true) => (right, left),
                (false, false) => return None,
            };
            if !self.hash_alike(outer, own) {
                return None;
            }
            columns.push(OutputColumn::new("key", self.type_of(own)?));
            row.push(outer.clone());
            alone.outputs.push(own.clone());
        }
        let is_within = row.iter().all(|outer| outer.slots().is_within(&(outside | around)));
        let alone = Query::plain(Body::Select(alone), columns);
        let hash = SubqueryHash { keys: row, missing: Value::Null, compares_rows: true };
        (is_within && !alone.reads().meets(around)).then_some((alone, hash))
    }

    /// Whether the evaluation of an expression never ends with an error, so that it may be
    /// evaluated for rows that no query asks for. Not all such expressions are recognized.
    fn cannot_fail(&self, expr: &Expr) -> bool {
        let is_kind = match expr {
            Expr::Constant(_)
            | Expr::Parameter(_)
            | Expr::Column(_)
            | Expr::Trimmed(_)
            | Expr::Collate(..)
            | Expr::Compare(..)
            | Expr::Distinct(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(..)
            | Expr::IsTruth(..)
            | Expr::InList(..)
            | Expr::InSet(..)
            | Expr::Like(..)
            | Expr::Case(..) => true,
            Expr::Cast(inner, to, _) => {
                let from = self.type_of(inner);
                matches!(to.unconstrained(), DataType::Numeric(_))
                    && to.unconstrained() == *to
                    && from.is_some_and(DataType::is_integer)
            }
            Expr::Arithmetic(operation, NumberKind::Numeric, pair, _) => match operation {
                Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply => true,
                _ => pair[1].as_constant().is_some_and(|by| by.as_ref().as_f64() != Some(0.0)),
            },
            Expr::Call(function, ..) => *function == Function::COALESCE,
            _ => false,
        };
        let mut cannot = is_kind;
        expr.each_child(&mut |child| cannot &= self.cannot_fail(child));
        cannot
    }

    /// Whether reading the subquery's rows once costs less than evaluating it for each of `rows`
    /// rows.
    fn hash_is_cheaper(
        &self,
        query: &Query,
        alone: &Query,
        around: &Slots,
        outside: &Slots,
        rows: f64,
    ) -> Result<bool> {
        let (Body::Select(asked), Body::Select(free)) = (&query.body, &alone.body) else {
            return Ok(false);
        };
        let Some(from) = &asked.from else { return Ok(false) };
        if !self.is_of_tables(from) {
            return Ok(true);
        }
        let answers = Subquery::answers(&asked.subqueries);
        let own = |filter: &[Expr]| -> Vec<Expr> {
            filter.iter().filter(|conjunct| !conjunct.slots().meets(&answers)).cloned().collect()
        };
        let each = self.joins(from, own(&asked.filter), &(outside | around), &[], RowGoal::Few)?;
        let once = self.joins(from, own(&free.filter), outside, &[], RowGoal::All)?;
        let looped = rows.max(1.0) * each.cost;
        if once.rows > MOST_KEPT && each.cost < once.cost / 100.0 {
            return Ok(false);
        }
        Ok(once.cost + once.rows * HASH_BUILD_COST + rows * HASH_PROBE_COST < looped)
    }
}

/// Returns the value of an aggregation without GROUP BY for an input without rows, if it is a
/// constant. Returns `None` also for a query that is not such an aggregation.
fn answer_without_rows(select: &Select) -> Option<Value> {
    let group = select.group.as_ref()?;
    let is_plain = group.keys.is_empty()
        && group.sets.is_empty()
        && group.having.is_empty()
        && group.subqueries.is_empty()
        // DISTINCT would keep the values of all keys at the same time.
        && !group.aggregates.iter().any(|aggregate| aggregate.distinct);
    let [output] = &select.outputs[..] else { return None };
    if !is_plain || output.is_volatile() {
        return None;
    }
    let mut answer = output.clone();
    let values = group.aggregates.iter().map(|aggregate| match aggregate.kind {
        AggregateKind::Count | AggregateKind::RegressionCount => Value::BigInt(0),
        _ => Value::Null,
    });
    let values: Vec<Value> = values.collect();
    fill(&mut answer, group.slot, &values);
    answer.simplify();
    answer.as_constant().cloned()
}

/// Replaces the columns of a slot by values.
fn fill(expr: &mut Expr, slot: usize, values: &[Value]) {
    match expr {
        Expr::Column(column) if column.slot == slot => {
            if let Some(value) = values.get(column.column) {
                *expr = Expr::Constant(value.clone());
            }
        }
        other => other.each_child_mut(&mut |child| fill(child, slot, values)),
    }
}

/// Moves the columns of a slot to the right.
fn shift(expr: &mut Expr, slot: usize, by: usize) {
    match expr {
        Expr::Column(column) if column.slot == slot => column.column += by,
        other => other.each_child_mut(&mut |child| shift(child, slot, by)),
    }
}

/// Groups an aggregation by its outputs after the first one. A group has its keys before its
/// aggregates.
fn group_by_keys(group: &mut Group, outputs: &mut Vec<Expr>) {
    group.keys = outputs.split_off(1);
    let (slot, count) = (group.slot, group.keys.len());
    outputs.iter_mut().for_each(|output| shift(output, slot, count));
    outputs.extend((0..count).map(|column| Expr::column(slot, column)));
}
