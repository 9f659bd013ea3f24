//! Subqueries in expressions: evaluated for each outer row, or hashed once.

use super::join::key_pair;
use super::select::Planner;
use crate::bind::{Body, OutputColumn, Query, Subquery, SubqueryKind};
use crate::error::Result;
use crate::expression::{Comparison, Expr, Slots};
use crate::plan::QueryPlan;
use crate::plan::cost::{HASH_BUILD_COST, HASH_PROBE_COST, MOST_KEPT};
use crate::types::{DataType, Value};

impl Planner<'_> {
    /// Plans a subquery. Returns also the outer keys, if the subquery is hashed: its last outputs
    /// equal them.
    /// `around` are the slots of the enclosing query, which evaluates the subquery for `rows` rows.
    pub(in crate::plan) fn plan_subquery(
        &self,
        subquery: &Subquery,
        around: &Slots,
        outside: &Slots,
        rows: Option<f64>,
    ) -> Result<(QueryPlan, Option<Vec<Expr>>)> {
        let query = &subquery.query;
        if !query.reads().meets(around) {
            let compares = matches!(subquery.kind, SubqueryKind::Any(..) | SubqueryKind::All(..));
            let hash = (compares && rows.is_some()).then(Vec::new);
            return Ok((self.query(query, &(outside | around))?, hash));
        }
        if let Some(rows) = rows
            && let Some((alone, keys)) = self.decorrelate(subquery, around, outside)
            && self.hash_is_cheaper(query, &alone, around, outside, rows)?
        {
            return Ok((self.query(&alone, outside)?, Some(keys)));
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
    ) -> Option<(Query, Vec<Expr>)> {
        let query = &*subquery.query;
        let Body::Select(select) = &query.body else { return None };
        if !query.with.is_empty() {
            return None;
        }
        let first = match &subquery.kind {
            SubqueryKind::Exists => None,
            SubqueryKind::Any(_, Comparison::Equal)
            | SubqueryKind::All(_, Comparison::NotEqual) => Some(select.outputs.first()?.clone()),
            _ => return None,
        };
        let all = match &query.limit {
            None => true,
            Some(Expr::Constant(Value::BigInt(limit))) => first.is_none() && *limit > 0,
            Some(_) => false,
        };
        if !all || query.offset.is_some() || select.group.is_some() || select.for_update.is_some() {
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
            columns.push(OutputColumn { name: "key".into(), data_type });
            keys.push(outer);
            select.outputs.push(own);
        }
        // Neither duplicates nor the order of its rows matter.
        select.distinct = false;
        let alone = Query {
            with: Vec::new(),
            body: Body::Select(select),
            columns,
            order: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
        };
        let mut volatile = keys.iter().any(Expr::is_volatile);
        alone.each_expression(&mut |expr| volatile |= expr.is_volatile());
        let is_free = !keys.is_empty() && !volatile && !alone.reads().meets(around);
        is_free.then_some((alone, keys))
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
        let (Some(from), answers) = (&asked.from, &asked.subqueries) else { return Ok(false) };
        if !self.is_of_tables(from) {
            return Ok(true);
        }
        let answers: Slots = answers.iter().map(|subquery| subquery.slot).collect();
        let own = |filter: &[Expr]| -> Vec<Expr> {
            filter.iter().filter(|conjunct| !conjunct.slots().meets(&answers)).cloned().collect()
        };
        let each = self.joins(from, own(&asked.filter), &(outside | around), &[], true)?;
        let once = self.joins(from, own(&free.filter), outside, &[], false)?;
        let looped = rows.max(1.0) * each.cost;
        if once.rows > MOST_KEPT && each.cost < once.cost / 100.0 {
            return Ok(false);
        }
        Ok(once.cost + once.rows * HASH_BUILD_COST + rows * HASH_PROBE_COST < looped)
    }
}
