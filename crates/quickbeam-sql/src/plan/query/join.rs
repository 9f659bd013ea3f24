//! Join methods of FROM, and the greedy order of joins that dynamic programming declines
//! (`join_order.rs`).

use std::sync::Arc;

use super::or_restrictions::implied_by_or;
use super::select::{PlannedRows, Planner, is_single};
use crate::bind::{Derived, From, JoinKind, OrderKey, QueryPart, Source};
use crate::catalog::Table;
use crate::error::{Result, SqlError};
use crate::expression::{Comparison, Expr, Slots};
use crate::plan::access_path::{PathRequest, choose, selectivity};
use crate::plan::cost::RowGoal;
use crate::plan::cost::{HASH_BUILD_COST, HASH_PROBE_COST, OUTGROWN_ESTIMATE};
use crate::plan::in_list::{InListKeys, node_of};
use crate::plan::rewrite::equalities::{KnownEqualities, close_equalities, infer_equalities};
use crate::plan::{AccessPath, HashJoin, HashJoinKind, Join, LoopGuard, PlanNode, TableAccess};

/// Returns the cost of a hash join besides its inputs. If the scan of the larger side skips rows
/// without a partner, only as many are probed as the smaller side has keys.
pub(super) fn hash_cost(one: &JoinSide, other: &JoinSide) -> f64 {
    let (few, many) = match one.rows < other.rows {
        true => (one, other),
        false => (other, one),
    };
    let probed = if matches!(many.node, PlanNode::Table(_)) { few.rows } else { many.rows };
    few.rows * HASH_BUILD_COST + probed * HASH_PROBE_COST
}

/// Rows of some tables, joined.
pub(in crate::plan) struct JoinSide {
    pub node: PlanNode,
    pub slots: Vec<usize>,
    pub rows: f64,
    pub cost: f64,
    /// Whether the rows have the requested order.
    pub ordered: bool,
}

impl JoinSide {
    pub fn into_planned(self) -> PlannedRows {
        let JoinSide { node, rows, cost, ordered, .. } = self;
        PlannedRows { node, rows, cost, ordered }
    }

    fn set(&self) -> Slots {
        self.slots.iter().copied().collect()
    }
}

/// One of several things to be joined.
pub(in crate::plan) enum JoinItem<'f> {
    Table(usize),
    Query(&'f Derived),
    Outer(&'f From),
}

impl JoinItem<'_> {
    pub fn set(&self) -> Slots {
        match self {
            JoinItem::Table(slot) | JoinItem::Query(Derived { slot, .. }) => Slots::one(*slot),
            JoinItem::Outer(from) => from.slots(),
        }
    }
}

impl JoinItem<'_> {
    /// Returns the slots of other items that a LATERAL item reads, also in the ON of outer joins
    /// that were pulled up.
    fn dependencies(&self, all: &Slots) -> Slots {
        let mut read = Slots::default();
        let mut note = |derived: &Derived| read.extend(&derived.reads);
        match self {
            JoinItem::Table(_) => return read,
            JoinItem::Query(derived) => note(derived),
            JoinItem::Outer(from) => {
                from.each_part(&mut |part| {
                    if let QueryPart::Derived(derived) = part {
                        note(derived);
                    }
                });
                read.extend(&from.condition_slots());
            }
        }
        read.remove(&self.set());
        read.iter().filter(|slot| all.contains(*slot)).collect()
    }
}

fn flatten<'f>(from: &'f From, items: &mut Vec<JoinItem<'f>>, conjuncts: &mut Vec<Expr>) {
    match from {
        From::Table(slot) => items.push(JoinItem::Table(*slot)),
        From::Query(derived) => items.push(JoinItem::Query(derived)),
        From::Join { kind: JoinKind::Inner, left, right, on } => {
            flatten(left, items, conjuncts);
            flatten(right, items, conjuncts);
            conjuncts.extend(on.iter().cloned());
        }
        outer @ From::Join { .. } => items.push(JoinItem::Outer(outer)),
    }
}

/// Whether the inner rows of a join without keys are stored under one empty key rather than read
/// again for each outer row. That is so unless they are a plain table access.
pub(super) fn is_kept(node: &PlanNode) -> bool {
    !matches!(node, PlanNode::Table(_))
}

/// Removes the conditions that read only these slots.
pub(super) fn take(conjuncts: &mut Vec<Expr>, known: &Slots) -> Vec<Expr> {
    let (taken, left) = conjuncts.drain(..).partition(|conjunct| conjunct.slots().is_within(known));
    *conjuncts = left;
    taken
}

/// Returns the conditions that read only these slots.
fn within(conjuncts: &[Expr], known: &Slots) -> Vec<Expr> {
    conjuncts.iter().filter(|conjunct| conjunct.slots().is_within(known)).cloned().collect()
}

/// Returns the sides of an equality, if one reads only the outer rows and the other only the inner
/// rows.
pub(in crate::plan) fn key_pair(
    planner: &Planner<'_>,
    conjunct: &Expr,
    outer: &Slots,
    inner: &Slots,
) -> Option<(Expr, Expr)> {
    let Expr::Compare(Comparison::Equal, pair) = conjunct else { return None };
    let [left, right] = &**pair;
    if !planner.hash_alike(left, right) {
        return None;
    }
    let is = |expr: &Expr, side: &Slots, other: &Slots| {
        let slots = expr.slots();
        slots.meets(side) && !slots.meets(other)
    };
    if is(left, outer, inner) && is(right, inner, outer) {
        Some((left.clone(), right.clone()))
    } else if is(right, outer, inner) && is(left, inner, outer) {
        Some((right.clone(), left.clone()))
    } else {
        None
    }
}

/// Joins a LATERAL item, whose rows are read again for each outer row.
fn lateral_join(outer: &JoinSide, inner: &JoinSide, own: &Slots, conjuncts: Vec<Expr>) -> JoinSide {
    let both = outer.set();
    let between = conjuncts.into_iter();
    let between = between.filter(|c| c.slots().meets(&both) && c.slots().meets(own)).collect();
    let mut slots = outer.slots.clone();
    slots.extend(&inner.slots);
    let rows = (outer.rows * inner.rows).max(1.0);
    let cost = outer.cost + outer.rows.max(1.0) * inner.cost;
    let node = PlanNode::NestedLoop {
        outer: Box::new(outer.node.clone()),
        inner: Box::new(inner.node.clone()),
        inner_slots: inner.slots.clone(),
        join: Join::Inner,
        condition: Expr::all(between),
        guard: None,
    };
    JoinSide { node, slots, rows, cost, ordered: false }
}

/// Returns the item with the fewest rows, of those that read no other.
fn first_item(items: &[(JoinItem<'_>, JoinSide, Slots)]) -> Option<usize> {
    let free = items.iter().enumerate().filter(|(_, (_, _, needs))| needs.is_empty());
    let size = |side: &JoinSide| (side.rows, side.cost);
    let fewest =
        free.reduce(|best, next| if size(&next.1.1) < size(&best.1.1) { next } else { best });
    fewest.map(|(number, _)| number)
}

impl Planner<'_> {
    /// Plans the rows of FROM that satisfy the conditions. `outside` are slots bound by outer
    /// queries.
    pub(in crate::plan) fn joins(
        &self,
        from: &From,
        mut conjuncts: Vec<Expr>,
        outside: &Slots,
        order: &[OrderKey],
        goal: RowGoal,
    ) -> Result<JoinSide> {
        let few = goal == RowGoal::Few;
        let mut items = Vec::new();
        let mut on = Vec::new();
        flatten(from, &mut items, &mut on);
        let asking = self.take_asking(&mut on, outside);
        conjuncts.extend(on);
        let is_one = items.len() == 1;
        if items.len() > 2 {
            close_equalities(&mut conjuncts, &|a, b| self.hash_alike(a, b));
        }
        infer_equalities(&mut conjuncts);
        if matches!(from, From::Join { .. }) {
            self.is_sampling.set(true);
        }
        let order = if is_one { order } else { &[] };
        // Conditions on constants and outer rows go to the first item.
        let around = if is_one { Vec::new() } else { take(&mut conjuncts, outside) };
        // Plans each join input once. It may contain joins and queries that recurse into this
        // function, so a loop keeps the adapters of an iterator off the stack.
        let all = from.slots();
        let inputs = std::mem::take(&mut items);
        let mut items: Vec<(JoinItem<'_>, JoinSide, Slots)> = Vec::with_capacity(inputs.len());
        for item in inputs {
            let needs = item.dependencies(&all);
            let mut own = within(&conjuncts, &(&item.set() | outside));
            own.extend(implied_by_or(&conjuncts, &item.set(), outside));
            let alone = match needs.is_empty() {
                true => self.item(&item, own, outside, order, few)?,
                false => self.item(&item, own, &(outside | &needs), order, few)?,
            };
            items.push((item, alone, needs));
        }
        let joined = self.join_items(items, conjuncts, around, outside)?;
        self.answered(joined, asking, &all, outside)
    }

    /// Joins planned items. `around` are conditions that read no item. Nothing here recurses into
    /// [`joins`](Self::joins), whose frames are many for nested queries.
    fn join_items(
        &self,
        mut items: Vec<(JoinItem<'_>, JoinSide, Slots)>,
        mut conjuncts: Vec<Expr>,
        around: Vec<Expr>,
        outside: &Slots,
    ) -> Result<JoinSide> {
        let order = self.join_order(&items, &conjuncts, outside);
        let first = match &order {
            Some(order) => order.first().copied(),
            None => first_item(&items),
        };
        let Some(number) = first else {
            return Err(SqlError::internal("a FROM without anything in it"));
        };
        if let Some(order) = order {
            let mut places: Vec<(usize, _)> = items.into_iter().enumerate().collect();
            places.sort_by_key(|(place, _)| order.iter().position(|number| number == place));
            let ordered = places.into_iter().map(|(_, item)| item);
            return self.joined_in_order(ordered, conjuncts, around, outside);
        }
        let (_, mut joined, _) = items.remove(number);
        if let Some(condition) = Expr::all(around) {
            joined.node = PlanNode::Filter { input: Box::new(joined.node), condition };
        }
        let equalities = KnownEqualities::of(&conjuncts);
        take(&mut conjuncts, &(&joined.set() | outside));
        while !items.is_empty() {
            let mut best: Option<(usize, JoinSide)> = None;
            let there = joined.set();
            let known = &there | outside;
            for (number, (item, alone, needs)) in items.iter().enumerate() {
                if !needs.is_within(&there) {
                    continue;
                }
                let relevant = within(&conjuncts, &(&item.set() | &known));
                let relevant = equalities.without_implied(relevant, &item.set());
                let connects = relevant.iter().any(|c| c.slots().meets(&there));
                let candidate = match needs.is_empty() {
                    true => self.join(&joined, item, alone, relevant, outside)?,
                    false => lateral_join(&joined, alone, &item.set(), relevant),
                };
                // A cross product comes last.
                let weight = |cost: f64| if connects { cost } else { cost * 1e6 };
                if best.as_ref().is_none_or(|(_, known)| weight(candidate.cost) < known.cost) {
                    let cost = weight(candidate.cost);
                    best = Some((number, JoinSide { cost, ..candidate }));
                }
            }
            let Some((number, next)) = best else { break };
            items.remove(number);
            joined = next;
            take(&mut conjuncts, &(&joined.set() | outside));
        }
        // Conditions that no item took.
        if let Some(rest) = Expr::all(conjuncts) {
            joined.node = PlanNode::Filter { input: Box::new(joined.node), condition: rest };
        }
        Ok(joined)
    }

    /// Joins items in the given order.
    fn joined_in_order<'f>(
        &self,
        items: impl Iterator<Item = (JoinItem<'f>, JoinSide, Slots)>,
        mut conjuncts: Vec<Expr>,
        around: Vec<Expr>,
        outside: &Slots,
    ) -> Result<JoinSide> {
        let mut joined: Option<JoinSide> = None;
        let mut around = Expr::all(around);
        let equalities = KnownEqualities::of(&conjuncts);
        for (item, mut alone, _) in items {
            joined = Some(match joined {
                None => {
                    if let Some(condition) = around.take() {
                        alone.node = PlanNode::Filter { input: Box::new(alone.node), condition };
                    }
                    alone
                }
                Some(outer) => {
                    let known = &(&item.set() | &outer.set()) | outside;
                    let relevant = within(&conjuncts, &known);
                    let relevant = equalities.without_implied(relevant, &item.set());
                    self.join(&outer, &item, &alone, relevant, outside)?
                }
            });
            if let Some(joined) = &joined {
                take(&mut conjuncts, &(&joined.set() | outside));
            }
        }
        let Some(mut joined) = joined else {
            return Err(SqlError::internal("a FROM without anything in it"));
        };
        if let Some(rest) = Expr::all(conjuncts) {
            joined.node = PlanNode::Filter { input: Box::new(joined.node), condition: rest };
        }
        Ok(joined)
    }

    /// One thing in FROM alone.
    fn item(
        &self,
        item: &JoinItem<'_>,
        conjuncts: Vec<Expr>,
        outside: &Slots,
        order: &[OrderKey],
        few: bool,
    ) -> Result<JoinSide> {
        match item {
            JoinItem::Table(slot) => self.table(*slot, conjuncts, outside, order, few),
            JoinItem::Query(derived) => self.derived(derived, conjuncts, outside),
            JoinItem::Outer(from) => self.outer_join(from, conjuncts, outside),
        }
    }

    /// The rows of a query in FROM.
    fn derived(
        &self,
        derived: &Derived,
        conjuncts: Vec<Expr>,
        outside: &Slots,
    ) -> Result<JoinSide> {
        let slot = derived.slot;
        let plan = self.query(&derived.query, outside)?;
        let mut rows = plan.rows;
        let mut node = PlanNode::SubqueryScan { query: Box::new(plan), slot };
        let cost = rows * 2.0;
        rows *= conjuncts.iter().map(selectivity).product::<f64>();
        if let Some(condition) = Expr::all(conjuncts) {
            node = PlanNode::Filter { input: Box::new(node), condition };
        }
        Ok(JoinSide { node, slots: vec![slot], rows, cost, ordered: false })
    }

    /// The rows of one table.
    fn table(
        &self,
        slot: usize,
        conjuncts: Vec<Expr>,
        bound: &Slots,
        order: &[OrderKey],
        few: bool,
    ) -> Result<JoinSide> {
        let Source::Table(table) = &self.slots[slot].source else {
            return Err(SqlError::internal("a row in FROM that is of no table"));
        };
        let asked = (order, RowGoal::from(few));
        let (access, members, cost, ordered) = self.path_to(table, slot, &conjuncts, bound, asked);
        let rows = access.rows;
        if self.is_sampling.get() {
            self.note_restricted(slot, &conjuncts, rows);
        }
        let node = node_of(access, members);
        Ok(JoinSide { node, slots: vec![slot], rows, cost, ordered })
    }

    /// Chooses how the rows of a table are found for rows of the `bound` slots, in that order and
    /// for that goal. Returns the path, the values of an IN list that it looks up, its cost, and
    /// whether it has the order.
    fn path_to(
        &self,
        table: &Arc<Table>,
        slot: usize,
        conditions: &[Expr],
        bound: &Slots,
        (order, goal): (&[OrderKey], RowGoal),
    ) -> (TableAccess, Option<InListKeys>, f64, bool) {
        let wish = PathRequest {
            bound,
            order,
            few: goal == RowGoal::Few,
            alike: &|a, b| self.keys_alike(a, b),
            part_of_rows: &|rest| self.part_of_rows(table, slot, rest),
            values: &|| self.slot_of_members(slot),
            off: self.off.get(),
        };
        choose(table, slot, conditions, self.statistics, &wish)
    }

    /// Chooses how all rows of a table that go with rows of the `bound` slots are found.
    pub(super) fn lookup_path(
        &self,
        table: &Arc<Table>,
        slot: usize,
        conditions: &[Expr],
        bound: &Slots,
    ) -> (TableAccess, Option<InListKeys>, f64) {
        let asked = (&[][..], RowGoal::All);
        let (access, members, cost, _) = self.path_to(table, slot, conditions, bound, asked);
        (access, members, cost)
    }

    /// Joins `inner`, planned alone, to the tables joined so far, in the cheapest way.
    fn join(
        &self,
        outer: &JoinSide,
        item: &JoinItem<'_>,
        inner: &JoinSide,
        conjuncts: Vec<Expr>,
        outside: &Slots,
    ) -> Result<JoinSide> {
        let (outer_slots, inner_slots) = (outer.set(), item.set());
        let between: Vec<Expr> =
            conjuncts.iter().filter(|c| c.slots().meets(&outer_slots)).cloned().collect();
        let mut slots = outer.slots.clone();
        slots.extend(&inner.slots);
        let mut keys: Vec<(Expr, Expr)> = Vec::new();
        let mut rest = Vec::new();
        for conjunct in &between {
            match key_pair(self, conjunct, &outer_slots, &inner_slots) {
                Some(pair) => keys.push(pair),
                None => rest.push(conjunct.clone()),
            }
        }
        let (lookup, found) =
            self.join_by_lookup(outer, item, inner, (&conjuncts, &keys, &rest), outside);
        if let Some(lookup) = lookup {
            return Ok(lookup);
        }
        if (keys.is_empty() || self.off.get().hash_join) && !is_kept(&inner.node) {
            let rows = self.join_rows(outer.rows, inner.rows, &keys);
            let cost = outer.cost + outer.rows.max(1.0) * inner.cost;
            let condition = Expr::all(between);
            let node = PlanNode::NestedLoop {
                outer: Box::new(outer.node.clone()),
                inner: Box::new(inner.node.clone()),
                inner_slots: inner.slots.clone(),
                join: Join::Inner,
                condition,
                guard: None,
            };
            return Ok(JoinSide { node, slots, rows, cost, ordered: false });
        }
        let rows = self.join_rows(outer.rows, inner.rows, &keys);
        // The row estimate does not depend on the join method.
        let rows = found.map_or(rows, |found| found.min(rows));
        // The smaller side is stored in memory.
        let (probe, build, flipped) =
            if inner.rows > outer.rows { (inner, outer, true) } else { (outer, inner, false) };
        let cost = outer.cost + inner.cost + hash_cost(outer, inner);
        let (mut outer_keys, mut inner_keys): (Vec<Expr>, Vec<Expr>) = keys.into_iter().unzip();
        if flipped {
            std::mem::swap(&mut outer_keys, &mut inner_keys);
        }
        let node = PlanNode::HashJoin(Box::new(HashJoin {
            outer: probe.node.clone(),
            inner: build.node.clone(),
            inner_slots: build.slots.clone(),
            outer_slots: probe.slots.clone(),
            outer_keys,
            inner_keys,
            kind: HashJoinKind::Inner,
            condition: Expr::all(rest),
            check: None,
        }));
        Ok(JoinSide { node, slots, rows, cost, ordered: false })
    }

    /// Plans a lookup of `inner` by key or index for each outer row. Returns the join if it is
    /// cheaper than a hash join, and the rows that it would deliver if a lookup is possible.
    fn join_by_lookup(
        &self,
        outer: &JoinSide,
        item: &JoinItem<'_>,
        inner: &JoinSide,
        (conjuncts, keys, rest): (&[Expr], &[(Expr, Expr)], &[Expr]),
        outside: &Slots,
    ) -> (Option<JoinSide>, Option<f64>) {
        let JoinItem::Table(slot) = item else { return (None, None) };
        let Source::Table(table) = &self.slots[*slot].source else { return (None, None) };
        let bound = &(&outer.set() | outside);
        let (access, members, cost) = self.lookup_path(table, *slot, conjuncts, bound);
        if matches!(access.path, AccessPath::All) {
            return (None, None);
        }
        let hashed = match keys.is_empty() {
            true => f64::INFINITY,
            false => inner.cost + hash_cost(outer, inner),
        };
        let hashed = hashed + self.off.get().cost_of_hash_join();
        let looped = outer.rows.max(1.0) * cost + self.off.get().cost_of_nested_loop();
        let rows = (outer.rows * access.rows).max(1.0);
        let rows = match keys.is_empty() {
            true => rows,
            false => rows.min(self.join_rows(outer.rows, inner.rows, keys)),
        };
        if looped >= hashed {
            return (None, Some(rows));
        }
        let conditions = (keys.to_vec(), rest.to_vec());
        let node = PlanNode::NestedLoop {
            outer: Box::new(outer.node.clone()),
            inner: Box::new(node_of(access, members)),
            inner_slots: vec![*slot],
            join: Join::Inner,
            condition: None,
            guard: self.loop_guard(outer, inner, conditions, Join::Inner, cost),
        };
        let mut slots = outer.slots.clone();
        slots.extend(&inner.slots);
        let cost = outer.cost + looped;
        (Some(JoinSide { node, slots, rows, cost, ordered: false }), Some(rows))
    }

    /// Returns the hash join that takes over from a nested loop when it has read far more outer
    /// rows than estimated, and a hash join would have cost less. `each` is the cost of one lookup.
    pub(super) fn loop_guard(
        &self,
        outer: &JoinSide,
        inner: &JoinSide,
        (keys, rest): (Vec<(Expr, Expr)>, Vec<Expr>),
        join: Join,
        each: f64,
    ) -> Option<Box<LoopGuard>> {
        if keys.is_empty() || self.off.get().hash_join || is_single(&outer.node) {
            return None;
        }
        let hashed = inner.cost + inner.rows * HASH_BUILD_COST;
        let most = (outer.rows * OUTGROWN_ESTIMATE).max(hashed / each.max(1.0));
        let (outer_keys, inner_keys) = keys.into_iter().unzip();
        let join = HashJoin {
            // The nested loop hands its outer rows over.
            outer: PlanNode::SingleRow,
            inner: inner.node.clone(),
            inner_slots: inner.slots.clone(),
            outer_slots: outer.slots.clone(),
            outer_keys,
            inner_keys,
            kind: join.into(),
            condition: Expr::all(rest),
            check: None,
        };
        Some(Box::new(LoopGuard { most: most as u64, join }))
    }
}
