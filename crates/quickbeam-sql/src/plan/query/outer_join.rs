//! Outer joins, and the subqueries in their conditions.
//!
//! A subquery in ON is asked below the join, for the rows of the side that it reads. One that reads
//! both sides is asked for the inner rows that a nested loop reads for each outer row, or for each
//! pair of rows with equal keys in a hash join.

use super::join::{JoinSide, is_kept, key_pair, take};
use super::select::Planner;
use crate::bind::{From, JoinKind, QueryPart, Source, Subquery};
use crate::error::{Result, SqlError};
use crate::expression::{Comparison, Expr, Slots};
use crate::plan::cost::{HASH_BUILD_COST, HASH_PROBE_COST, RowGoal};
use crate::plan::in_list::node_of;
use crate::plan::{AccessPath, HashJoin, HashJoinKind, Join, PlanNode};
use crate::types::Value;

/// Subqueries and the conditions that read their answers.
#[derive(Default)]
pub(super) struct Asking {
    subqueries: Vec<Subquery>,
    conditions: Vec<Expr>,
}

/// The subqueries in the ON of an outer join, by the side whose rows they are asked for.
#[derive(Default)]
struct AskedSides {
    left: Vec<Subquery>,
    right: Vec<Subquery>,
    /// Those that read both sides.
    both: Vec<Subquery>,
}

/// An outer join whose sides are planned.
struct OuterJoin<'f> {
    kind: JoinKind,
    right: &'f From,
    outer: JoinSide,
    inner: JoinSide,
    /// The conditions that read the inner side alone. Its plan has checked them.
    inner_only: Vec<Expr>,
    /// The other conditions.
    on: Vec<Expr>,
    /// Whether the plan of the inner side reads the outer rows.
    is_lateral: bool,
    /// Whether the inner side may be read by a key or index instead of as planned.
    is_open: bool,
    /// The check of each pair: see [`HashJoin`].
    check: Option<PlanNode>,
}

/// Returns the slots that the queries in an item of FROM read.
fn reads_of(from: &From) -> Slots {
    let mut reads = Slots::default();
    from.each_part(&mut |part| {
        if let QueryPart::Derived(derived) = part {
            reads.extend(&derived.reads);
        }
    });
    reads
}

impl Planner<'_> {
    /// Returns the subqueries that no condition of `from` reads. Notes the others, which are asked
    /// below its joins.
    pub(super) fn without_asked(
        &self,
        from: Option<&From>,
        subqueries: &[Subquery],
    ) -> Vec<Subquery> {
        let read = match from {
            Some(from @ From::Join { .. }) if !subqueries.is_empty() => from.condition_slots(),
            _ => Slots::default(),
        };
        let asked = needed(subqueries, read);
        let is_asked = |slot: usize| asked.iter().any(|other| other.slot == slot);
        let rest = subqueries.iter().filter(|subquery| !is_asked(subquery.slot)).cloned().collect();
        // The planner may plan a query in FROM several times.
        let mut known = self.asked.borrow_mut();
        known.retain(|other| !asked.iter().any(|it| it.slot == other.slot));
        known.extend(asked);
        drop(known);
        rest
    }

    /// Removes the conditions of inner joins that read answers of subqueries in ON.
    pub(super) fn take_asking(&self, on: &mut Vec<Expr>, outside: &Slots) -> Asking {
        let asked = self.asked.borrow();
        if asked.is_empty() {
            return Asking::default();
        }
        let mut answers = Subquery::answers(&asked);
        answers.remove(outside);
        let (conditions, rest): (Vec<Expr>, Vec<Expr>) =
            on.drain(..).partition(|condition| condition.slots().meets(&answers));
        *on = rest;
        let mut read = Slots::default();
        conditions.iter().for_each(|condition| read.extend(&condition.slots()));
        Asking { subqueries: needed(&asked, read), conditions }
    }

    /// Asks subqueries for the rows of a side, whose slots are `around`, and checks the conditions
    /// that read the answers.
    #[inline(never)]
    pub(super) fn answered(
        &self,
        mut side: JoinSide,
        asking: Asking,
        around: &Slots,
        outside: &Slots,
    ) -> Result<JoinSide> {
        let mut around = around.clone();
        for subquery in asking.subqueries {
            let (query, hash) = self.plan_subquery(&subquery, &around, outside, Some(side.rows))?;
            let once = !subquery.reads.meets(&around);
            side.cost += if once { query.rows } else { side.rows * query.rows.max(1.0) };
            let needed = self.needs.of(subquery.slot, &(&around | outside));
            around.insert(subquery.slot);
            side.slots.push(subquery.slot);
            side.node = PlanNode::Subquery {
                input: Box::new(side.node),
                query: Box::new(query),
                slot: subquery.slot,
                kind: subquery.kind,
                once,
                hash,
                needed,
            };
        }
        if let Some(condition) = Expr::all(asking.conditions) {
            side.node = PlanNode::Filter { input: Box::new(side.node), condition };
            side.rows = (side.rows * 0.5).max(1.0);
        }
        Ok(side)
    }

    /// Divides the subqueries that conditions of an outer join read among its sides.
    #[inline(never)]
    fn asked_sides(&self, on: &[Expr], left: &Slots, right: &Slots) -> AskedSides {
        let asked = self.asked.borrow();
        let mut sides = AskedSides::default();
        if asked.is_empty() {
            return sides;
        }
        let mut read = Slots::default();
        on.iter().for_each(|condition| read.extend(&condition.slots()));
        for subquery in needed(&asked, read) {
            let reads = &subquery.reads;
            let of_left = reads.meets(left) || reads.meets(&Subquery::answers(&sides.left));
            let of_right = reads.meets(right) || reads.meets(&Subquery::answers(&sides.right));
            // The answer that reads neither side is asked where all its readers are.
            let mut readers = on.iter().map(Expr::slots).filter(|it| it.contains(subquery.slot));
            let is_of_right = !of_left && readers.all(|it| !it.meets(left));
            if reads.meets(&Subquery::answers(&sides.both)) || (of_left && of_right) {
                sides.both.push(subquery);
            } else if of_right || is_of_right {
                sides.right.push(subquery);
            } else {
                sides.left.push(subquery);
            }
        }
        sides
    }

    /// LEFT and FULL joins: conditions on the outer rows alone go down, others are checked above.
    pub(super) fn outer_join(
        &self,
        from: &From,
        conjuncts: Vec<Expr>,
        outside: &Slots,
    ) -> Result<JoinSide> {
        let From::Join { kind, left, right, on } = from else {
            return Err(SqlError::internal("an outer join that is none"));
        };
        let (mut left_slots, right_slots) = (left.slots(), right.slots());
        let is_full = *kind == JoinKind::Full;
        let AskedSides { left: of_left, right: of_right, both } =
            self.asked_sides(on, &left_slots, &right_slots);
        let mut above = conjuncts;
        let down = match is_full {
            true => Vec::new(),
            false => take(&mut above, &(&left_slots | outside)),
        };
        let outer = self.joins(left, down, outside, &[], RowGoal::All)?;
        let asking = Asking { subqueries: of_left, conditions: Vec::new() };
        let answers = Subquery::answers(&asking.subqueries);
        let outer = self.answered(outer, asking, &left_slots, outside)?;
        left_slots.extend(&answers);
        let mut on = on.clone();
        let mut inner_only = match is_full {
            true => Vec::new(),
            false => take(&mut on, &(&right_slots | outside)),
        };
        let needs = reads_of(right);
        let around = outside | &left_slots;
        let (of_right_slots, of_both) = (Subquery::answers(&of_right), Subquery::answers(&both));
        let answers = &of_right_slots | &of_both;
        let is_looped = if is_full || both.is_empty() {
            false
        } else {
            let all = on.iter().filter(|condition| !condition.slots().meets(&answers));
            let all: Vec<Expr> = all.chain(&inner_only).cloned().collect();
            let each = self.joins(right, all, &around, &[], RowGoal::All)?;
            let once = self.joins(right, inner_only.clone(), outside, &[], RowGoal::All)?;
            let has_key =
                on.iter().any(|it| key_pair(self, it, &left_slots, &right_slots).is_some());
            let pairs = if has_key { outer.rows } else { outer.rows * once.rows };
            let hashed = once.cost + once.rows * HASH_BUILD_COST + pairs * HASH_PROBE_COST;
            let hashed = hashed + self.off.get().cost_of_hash_join();
            let looped = outer.rows.max(1.0) * each.cost + self.off.get().cost_of_nested_loop();
            needs.meets(&left_slots) || looped < hashed
        };
        let mut checked = Asking::default();
        if !is_looped && !both.is_empty() {
            let (asking, rest): (Vec<Expr>, Vec<Expr>) =
                on.drain(..).partition(|condition| condition.slots().meets(&of_both));
            on = rest;
            checked = Asking { subqueries: both.clone(), conditions: asking };
        }
        let conditions = if is_looped {
            // All conditions are checked for each outer row.
            let (asking, rest): (Vec<Expr>, Vec<Expr>) =
                on.drain(..).partition(|condition| condition.slots().meets(&answers));
            inner_only.extend(rest);
            asking
        } else if is_full {
            Vec::new()
        } else {
            take(&mut on, &(&(&right_slots | outside) | &of_right_slots))
        };
        let is_lateral = is_looped || needs.meets(&left_slots);
        let known = if is_lateral { &around } else { outside };
        let inner = self.joins(right, inner_only.clone(), known, &[], RowGoal::All)?;
        let is_open = answers.is_empty();
        let subqueries = if is_looped { [of_right, both].concat() } else { of_right };
        let inner = self.answered(inner, Asking { subqueries, conditions }, &right_slots, known)?;
        let sides = &(&left_slots | &right_slots) | &of_right_slots;
        let check = self.check_of_pairs(checked, &sides, outside, outer.rows.max(inner.rows))?;
        let kind = *kind;
        let join =
            OuterJoin { kind, right, outer, inner, inner_only, on, is_lateral, is_open, check };
        let mut joined = self.outer_join_of(join, (&left_slots, &right_slots), outside);
        if let Some(condition) = Expr::all(above) {
            joined.node = PlanNode::Filter { input: Box::new(joined.node), condition };
        }
        Ok(joined)
    }

    /// Plans the check of pairs of rows, whose slots are `sides`: subqueries above a single row.
    #[inline(never)]
    fn check_of_pairs(
        &self,
        asking: Asking,
        sides: &Slots,
        outside: &Slots,
        rows: f64,
    ) -> Result<Option<PlanNode>> {
        if asking.subqueries.is_empty() {
            return Ok(None);
        }
        let node = PlanNode::SingleRow;
        let pair = JoinSide { node, slots: Vec::new(), rows, cost: 0.0, ordered: false };
        Ok(Some(self.answered(pair, asking, sides, outside)?.node))
    }

    /// Joins two planned sides by a hash join, or a nested loop if that costs less.
    // Not part of its caller, whose frame counts for each level of nested joins.
    #[inline(never)]
    fn outer_join_of(
        &self,
        join: OuterJoin<'_>,
        (left_slots, right_slots): (&Slots, &Slots),
        outside: &Slots,
    ) -> JoinSide {
        let (mut keys, mut rest) = (Vec::new(), Vec::new());
        for conjunct in &join.on {
            match key_pair(self, conjunct, left_slots, right_slots) {
                Some(pair) => keys.push(pair),
                None => rest.push(conjunct.clone()),
            }
        }
        if join.is_lateral {
            rest.extend(
                keys.drain(..).map(|(a, b)| Expr::Compare(Comparison::Equal, Box::new([a, b]))),
            );
        }
        let (outer, inner) = (&join.outer, &join.inner);
        let mut slots = outer.slots.clone();
        slots.extend(&inner.slots);
        let is_pairwise = keys.is_empty() && !is_kept(&inner.node) && join.check.is_none();
        let is_looped = join.is_lateral || is_pairwise && join.kind == JoinKind::Left;
        let rows = match keys.is_empty() {
            true => (outer.rows * inner.rows).max(outer.rows).max(inner.rows),
            false => outer.rows.max(inner.rows),
        };
        let cost = match is_looped {
            true => outer.cost + outer.rows.max(1.0) * inner.cost,
            false => {
                outer.cost
                    + inner.cost
                    + inner.rows * HASH_BUILD_COST
                    + outer.rows * HASH_PROBE_COST
                    + self.off.get().cost_of_hash_join()
            }
        };
        let conditions = (&keys[..], &rest[..]);
        let (rows, found) = self.outer_lookup(&join, conditions, left_slots, outside, (rows, cost));
        if let Some((node, cost)) = found {
            return JoinSide { node, slots, rows, cost, ordered: false };
        }
        let mut is_looped = is_looped;
        if keys.is_empty() && !join.is_lateral {
            keys = one_sided_keys(&mut rest, &join.inner_only, left_slots, right_slots);
            is_looped &= keys.is_empty();
        }
        let OuterJoin { kind, outer, inner, check, .. } = join;
        let node = match is_looped {
            true => PlanNode::NestedLoop {
                outer: Box::new(outer.node),
                inner: Box::new(inner.node),
                inner_slots: inner.slots,
                join: Join::Left,
                condition: Expr::all(rest),
                guard: None,
            },
            false => {
                let (outer_keys, inner_keys) = keys.into_iter().unzip();
                PlanNode::HashJoin(Box::new(HashJoin {
                    outer: outer.node,
                    inner: inner.node,
                    inner_slots: inner.slots,
                    outer_slots: outer.slots,
                    outer_keys,
                    inner_keys,
                    kind: match kind {
                        JoinKind::Full => HashJoinKind::Full,
                        _ => HashJoinKind::Left,
                    },
                    condition: Expr::all(rest),
                    check,
                }))
            }
        };
        JoinSide { node, slots, rows, cost, ordered: false }
    }

    /// Returns the rows of the join, which a key or index may bound, and the nested loop that looks
    /// the inner rows up by it, if that costs less than the join otherwise.
    #[inline(never)]
    fn outer_lookup(
        &self,
        join: &OuterJoin<'_>,
        (keys, rest): (&[(Expr, Expr)], &[Expr]),
        left_slots: &Slots,
        outside: &Slots,
        (rows, cost): (f64, f64),
    ) -> (f64, Option<(PlanNode, f64)>) {
        let (JoinKind::Left, From::Table(slot), true) = (join.kind, join.right, join.is_open)
        else {
            return (rows, None);
        };
        let Source::Table(table) = &self.slots[*slot].source else { return (rows, None) };
        let (outer, inner) = (&join.outer, &join.inner);
        let all: Vec<Expr> = join.on.iter().chain(&join.inner_only).cloned().collect();
        let bound = &(left_slots | outside);
        let (access, members, each) = self.lookup_path(table, *slot, &all, bound);
        let off = self.off.get().cost_of_nested_loop();
        let looped = outer.cost + outer.rows.max(1.0) * each + off;
        if matches!(access.path, AccessPath::All) {
            return (rows, None);
        }
        let rows = rows.min(outer.rows * access.rows.max(1.0));
        if !keys.is_empty() && looped >= cost {
            return (rows, None);
        }
        let conditions = (keys.to_vec(), rest.to_vec());
        let guard = self.loop_guard(outer, inner, conditions, Join::Left, each);
        let node = PlanNode::NestedLoop {
            outer: Box::new(outer.node.clone()),
            inner: Box::new(node_of(access, members)),
            inner_slots: vec![*slot],
            join: Join::Left,
            condition: None,
            guard: guard.filter(|_| !join.is_lateral),
        };
        (rows, Some((node, looped)))
    }
}

/// Takes the conditions on one side of a join without other keys, and returns them as keys that
/// equal TRUE, so that rows that do not satisfy them meet no others. A condition of the inner side
/// that is never true is such a key, too.
fn one_sided_keys(
    conditions: &mut Vec<Expr>,
    inner_only: &[Expr],
    left: &Slots,
    right: &Slots,
) -> Vec<(Expr, Expr)> {
    let always = || Expr::Constant(Value::Boolean(true));
    let mut keys = Vec::new();
    for condition in std::mem::take(conditions) {
        let slots = condition.slots();
        match (slots.meets(left), slots.meets(right)) {
            _ if condition.is_volatile() => conditions.push(condition),
            (true, true) => conditions.push(condition),
            (_, false) => keys.push((condition, always())),
            (false, true) => keys.push((always(), condition)),
        }
    }
    if inner_only.iter().any(|it| it.as_constant() == Some(&Value::Boolean(false))) {
        keys.push((always(), always()));
    }
    keys
}

/// Returns the subqueries whose answers are read, by `read` or by one another.
fn needed(subqueries: &[Subquery], mut read: Slots) -> Vec<Subquery> {
    let mut needed = Vec::new();
    for subquery in subqueries.iter().rev() {
        if read.contains(subquery.slot) {
            read.extend(&subquery.reads);
            needed.push(subquery.clone());
        }
    }
    needed.reverse();
    needed
}
