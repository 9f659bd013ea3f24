//! Subqueries as joins.
//!
//! `column IN (SELECT …)` the other way round: the subquery's rows, each once, look up the table's,
//! or are joined like an item of FROM.
//!
//! EXISTS and NOT EXISTS as semi-joins and anti-joins: the rows that are asked for are hashed, and
//! the subquery's rows, read once, mark those that they match.

use super::select::{PlannedRows, Planner, is_single};
use super::types_alike;
use std::sync::Arc;

use super::join::{JoinSide, key_pair};
use crate::bind::{Body, Derived, From, JoinKind, Query, Select, Source, Subquery, SubqueryKind};
use crate::error::Result;
use crate::expression::{Comparison, Expr, Slots};
use crate::plan::access_path::{PathRequest, choose, column_of};
use crate::plan::cost::{HASH_BUILD_COST, HASH_PROBE_COST, MIN_TABLE_ROWS, RowGoal};
use crate::plan::{AccessPath, HashJoin, HashJoinKind, Join, PlanNode};
use crate::types::DataType;

/// Rows of FROM joined with the rows of subqueries.
pub(in crate::plan) struct JoinedMembers {
    pub joined: JoinSide,
    pub slots: Slots,
    /// The conditions that the join has checked: answers of subqueries.
    pub answered: Vec<Expr>,
}

/// An EXISTS or NOT EXISTS as a join.
pub(in crate::plan) struct ExistenceTest<'s> {
    kind: HashJoinKind,
    /// FROM of the subquery, and the conditions on its rows alone.
    from: &'s From,
    own: Vec<Expr>,
    /// The pairs that are equal: of the rows around, and of the subquery.
    keys: Vec<(Expr, Expr)>,
    /// The further condition on each pair of rows.
    condition: Option<Expr>,
}

impl ExistenceTest<'_> {
    /// Makes the join of the tested rows, which are those in `slots`, with the subquery's.
    pub(super) fn joined(&self, tested: PlanNode, slots: Vec<usize>, found: JoinSide) -> PlanNode {
        let (inner_keys, outer_keys) = self.keys.iter().cloned().unzip();
        PlanNode::HashJoin(Box::new(HashJoin {
            outer: found.node,
            inner: tested,
            inner_slots: slots,
            outer_slots: found.slots,
            outer_keys,
            inner_keys,
            kind: self.kind,
            condition: self.condition.clone(),
            check: None,
        }))
    }
}

/// Returns the join that an EXISTS becomes whose answer one of `conditions` is, or its negation.
pub(super) fn existence_kind(subquery: &Subquery, conditions: &[Expr]) -> Option<HashJoinKind> {
    let answer = Expr::column(subquery.slot, 0);
    let mut readers = conditions.iter().filter(|part| part.slots().contains(subquery.slot));
    match (readers.next()?, readers.next()) {
        (reader, None) if *reader == answer => Some(HashJoinKind::RightSemi),
        (reader, None) if *reader == Expr::Not(Box::new(answer)) => Some(HashJoinKind::RightAnti),
        _ => None,
    }
}

/// How many times less a join with the rows of subqueries must cost than checking each row.
const JOIN_GAIN: f64 = 4.0;

impl Planner<'_> {
    /// Plans FROM with the rows of each `value IN (SELECT …)` as a further item, each row once, if
    /// that costs far less than `known`, the plan without, whose rows are checked afterwards. Few
    /// rows of a subquery then decide which rows of the other items are read.
    pub(in crate::plan) fn joined_with_members(
        &self,
        from: &From,
        before: Vec<Expr>,
        after: &[Expr],
        subqueries: &[Subquery],
        outside: &Slots,
        known: &JoinSide,
    ) -> Result<Option<JoinedMembers>> {
        if known.rows < MIN_TABLE_ROWS || !outside.is_empty() {
            return Ok(None);
        }
        let around = from.slots();
        let (mut joined, mut before, mut answered) = (from.clone(), before, Vec::new());
        for subquery in subqueries {
            let answer = Expr::column(subquery.slot, 0);
            let readers = after.iter().filter(|c| c.slots().contains(subquery.slot)).count();
            if readers != 1 || !after.contains(&answer) {
                continue;
            }
            let Some((derived, condition)) = self.members(subquery, &around) else { continue };
            before.push(condition);
            answered.push(answer);
            joined = From::Join {
                kind: JoinKind::Inner,
                left: Box::new(joined),
                right: Box::new(From::Query(derived)),
                on: Vec::new(),
            };
        }
        if answered.is_empty() {
            return Ok(None);
        }
        let slots = joined.slots();
        let joined = self.joins(&joined, before, outside, &[], RowGoal::All)?;
        let is_better = joined.cost * JOIN_GAIN < known.cost + known.rows * HASH_PROBE_COST;
        Ok(is_better.then_some(JoinedMembers { joined, slots, answered }))
    }

    /// Returns the distinct rows of `value IN (SELECT …)` as an item of FROM, and the condition
    /// that joins it. Returns `None` if the subquery reads the rows around or is not a plain one.
    fn members(&self, subquery: &Subquery, around: &Slots) -> Option<(Derived, Expr)> {
        let SubqueryKind::Any(value, Comparison::Equal) = &subquery.kind else { return None };
        let query = &*subquery.query;
        let Body::Select(select) = &query.body else { return None };
        let is_plain = query.with.is_empty()
            && query.limit.is_none()
            && query.offset.is_none()
            && select.distinct_on.is_empty()
            && select.for_update.is_none()
            && query.columns.len() == 1;
        let slots = value.slots();
        let is_of_rows = !slots.is_empty() && slots.is_within(around);
        let mut volatile = value.is_volatile();
        query.each_expression(&mut |expr| volatile |= expr.is_volatile());
        if !is_plain
            || !is_of_rows
            || volatile
            || query.reads().meets(around)
            || !self.is_flat(query)
        {
            return None;
        }
        let slot = self.new_query_slot(&query.columns);
        let member = Expr::column(slot, 0);
        if !self.hash_alike(value, &member) {
            return None;
        }
        let mut distinct = query.clone();
        distinct.order = Vec::new();
        if let Body::Select(select) = &mut distinct.body {
            select.distinct = true;
        }
        let condition = Expr::Compare(Comparison::Equal, Box::new([value.clone(), member]));
        Some((Derived { slot, query: Arc::new(distinct), reads: Slots::default() }, condition))
    }

    /// Returns an EXISTS whose condition has equalities with the rows `around` as the parts of a
    /// semi-join or anti-join.
    pub(super) fn existence_test<'s>(
        &self,
        subquery: &'s Subquery,
        kind: HashJoinKind,
        around: &Slots,
        outside: &Slots,
    ) -> Option<ExistenceTest<'s>> {
        let query = &*subquery.query;
        let (SubqueryKind::Exists, Body::Select(select)) = (&subquery.kind, &query.body) else {
            return None;
        };
        let is_plain = query.keeps_first_row()
            && query.with.is_empty()
            && select.group.is_none()
            && select.windows.is_none()
            && select.for_update.is_none()
            && select.subqueries.is_empty();
        let from = select.from.as_ref().filter(|from| is_plain && self.is_of_tables(from))?;
        let (mut volatile, inner) = (false, from.slots());
        query.each_expression(&mut |expr| volatile |= expr.is_volatile());
        let is_lateral = from.condition_slots().meets(around);
        let known = &(&inner | around) | outside;
        if volatile || is_lateral || inner.meets(around) || !query.reads().is_within(&known) {
            return None;
        }
        let (mut own, mut keys, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        for conjunct in &select.filter {
            match key_pair(self, conjunct, around, &inner) {
                Some(pair) => keys.push(pair),
                None if conjunct.slots().meets(around) => conditions.push(conjunct.clone()),
                None => own.push(conjunct.clone()),
            }
        }
        let condition = Expr::all(conditions);
        (!keys.is_empty()).then_some(ExistenceTest { kind, from, own, keys, condition })
    }

    /// Plans the rows of an existence test, without the conditions on the tested rows.
    pub(super) fn rows_of_test(
        &self,
        test: &ExistenceTest<'_>,
        outside: &Slots,
    ) -> Result<JoinSide> {
        self.joins(test.from, test.own.clone(), outside, &[], RowGoal::All)
    }

    /// Returns the cost of an existence test that looks for a match of each of `rows` rows in turn,
    /// and of one that reads its own rows once, as `once` does.
    pub(super) fn costs_of_test(
        &self,
        test: &ExistenceTest<'_>,
        once: &JoinSide,
        rows: f64,
        around: &Slots,
        outside: &Slots,
    ) -> Result<(f64, f64)> {
        let equal = test.keys.iter().map(|(tested, own)| {
            Expr::Compare(Comparison::Equal, Box::new([own.clone(), tested.clone()]))
        });
        let all = test.own.iter().cloned().chain(equal).chain(test.condition.clone()).collect();
        let each = self.joins(test.from, all, &(around | outside), &[], RowGoal::Few)?;
        let hashed = once.cost + once.rows * HASH_BUILD_COST + rows * HASH_PROBE_COST;
        Ok((rows * each.cost, hashed))
    }

    /// Plans an EXISTS of the rows of `node` as a semi-join or anti-join, if that costs less than
    /// to look for a match of each row. One whose condition is of equalities alone is left to
    /// hashed subqueries.
    pub(super) fn tested_by_join(
        &self,
        node: &PlanNode,
        rows: f64,
        (subquery, conditions): (&Subquery, &[Expr]),
        around: &Slots,
        outside: &Slots,
    ) -> Result<Option<PlanNode>> {
        if self.off.get().hash_join || is_single(node) {
            return Ok(None);
        }
        let Some(kind) = existence_kind(subquery, conditions) else { return Ok(None) };
        let test = self.existence_test(subquery, kind, around, outside);
        let Some(test) = test.filter(|test| test.condition.is_some()) else { return Ok(None) };
        let found = self.rows_of_test(&test, outside)?;
        let (looped, once) = self.costs_of_test(&test, &found, rows, around, outside)?;
        if looped <= once {
            return Ok(None);
        }
        Ok(Some(test.joined(node.clone(), around.iter().collect(), found)))
    }

    /// Whether nothing but tables is joined.
    pub(in crate::plan) fn is_of_tables(&self, from: &From) -> bool {
        let slots = from.slots();
        self.slots
            .iter()
            .enumerate()
            .all(|(slot, shape)| !slots.contains(slot) || matches!(shape.source, Source::Table(_)))
    }

    /// Whether the query has no nested queries, so that planning it twice costs at most twice the
    /// time.
    fn is_flat(&self, query: &Query) -> bool {
        match &query.body {
            Body::Values(_) | Body::Stored(_) | Body::Function(_) => query.with.is_empty(),
            Body::Recursive(_) => false,
            Body::Combine(combine) => combine.sides.iter().all(|side| self.is_flat(side)),
            Body::Select(select) => {
                select.subqueries.is_empty()
                    && select.group.as_ref().is_none_or(|group| group.subqueries.is_empty())
                    && select.from.as_ref().is_none_or(|from| self.is_of_tables(from))
            }
        }
    }

    /// Plans `column IN (SELECT …)` as lookups of the subquery's distinct rows, if that costs less
    /// than reading the table. Returns the node and its estimated rows.
    pub(in crate::plan) fn semi_join(
        &self,
        select: &Select,
        query: &Query,
        outside: &Slots,
    ) -> Result<Option<PlannedRows>> {
        let (Some(From::Table(slot)), [subquery], None) =
            (&select.from, &select.subqueries[..], &select.for_update)
        else {
            return Ok(None);
        };
        let SubqueryKind::Any(value, Comparison::Equal) = &subquery.kind else { return Ok(None) };
        let Source::Table(table) = &self.slots[*slot].source else { return Ok(None) };
        let answer = Expr::column(subquery.slot, 0);
        let mut conjuncts = select.filter.clone();
        let asked = conjuncts.iter().position(|conjunct| *conjunct == answer);
        let Some((asked, column)) = asked.zip(column_of(value, *slot, table)) else {
            return Ok(None);
        };
        let reads_table = subquery.query.reads().contains(*slot);
        let is_char =
            matches!(table.columns.get(column).map(|c| c.data_type), Some(DataType::Char(_)));
        // With an order, the first rows may be found before the subquery has returned its last.
        let first_only = query.limit.is_some() && !query.order.is_empty();
        let is_flat = self.is_flat(&subquery.query);
        // The distinct values are kept for the whole statement, so the plan is not used for each
        // row of an outer query.
        let is_outermost = outside.is_empty();
        if !is_flat || !is_outermost || reads_table || is_char || first_only {
            return Ok(None);
        }
        let place = self.new_slot();
        let _ = conjuncts.remove(asked);
        let member = Expr::column(place, 0);
        let delivered = subquery.query.columns.first().map(|column| column.data_type);
        let alike = |a: &Expr, b: &Expr| {
            if *b != member {
                return self.hash_alike(a, b);
            }
            self.type_of(a).zip(delivered).is_some_and(|(a, b)| types_alike(a, b))
        };
        let values = || self.slot_of_members(*slot);
        let part_of_rows = &|rest: &[&Expr]| self.part_of_rows(table, *slot, rest);
        let read = PathRequest {
            bound: outside,
            order: &[],
            few: false,
            alike: &alike,
            part_of_rows,
            values: &values,
            off: self.off.get(),
        };
        let (_, _, all, _) = choose(table, *slot, &conjuncts, self.statistics, &read);
        conjuncts.push(Expr::Compare(Comparison::Equal, Box::new([value.clone(), member.clone()])));
        let wish = PathRequest { bound: &(outside | &Slots::one(place)), ..read };
        let (access, members, each, _) = choose(table, *slot, &conjuncts, self.statistics, &wish);
        let by_member = match &access.path {
            AccessPath::Key(values) => values.contains(&member),
            AccessPath::KeyRange(range) | AccessPath::Index(_, range) => {
                range.equal.contains(&member)
            }
            AccessPath::All | AccessPath::Inverted(_) | AccessPath::Cursor(_) => false,
        };
        if !by_member || members.is_some() {
            return Ok(None);
        }
        let plan = self.query(&subquery.query, outside)?;
        let count = plan.rows.max(1.0);
        if count * (each + HASH_BUILD_COST)
            > all + count * HASH_BUILD_COST + access.rows * HASH_PROBE_COST
        {
            return Ok(None);
        }
        let rows = (access.rows * count).max(1.0);
        let derived = PlanNode::SubqueryScan { query: Box::new(plan), slot: place };
        let outer = PlanNode::Distinct { input: Box::new(derived), outputs: vec![member] };
        let node = PlanNode::NestedLoop {
            outer: Box::new(outer),
            inner: Box::new(PlanNode::Table(Box::new(access))),
            inner_slots: vec![*slot],
            join: Join::Inner,
            condition: None,
            guard: None,
        };
        let cost = count * (each + HASH_BUILD_COST);
        Ok(Some(PlannedRows { node, rows, cost, ordered: false }))
    }
}
