//! `column IN (SELECT …)` the other way round: the subquery's rows, each once, look up the table's.

use super::select::Planner;
use super::types_alike;
use crate::bind::{Body, From, Query, Select, Source, SubqueryKind};
use crate::error::Result;
use crate::expression::{Comparison, Expr, Slots};
use crate::plan::access_path::{PathRequest, choose, column_of};
use crate::plan::cost::{HASH_BUILD_COST, HASH_PROBE_COST};
use crate::plan::{AccessPath, Join, PlanNode};
use crate::types::DataType;

impl Planner<'_> {
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
    ) -> Result<Option<(PlanNode, f64)>> {
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
            AccessPath::All => false,
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
            inner: Box::new(PlanNode::Table(access)),
            inner_slots: vec![*slot],
            join: Join::Inner,
            condition: None,
            guard: None,
        };
        Ok(Some((node, rows)))
    }
}
