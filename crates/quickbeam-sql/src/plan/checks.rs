//! Checks of the numbered invariants of plans and of their expressions.
//!
//! Above: the compiler of statements, in builds that check invariants.

use quickbeam::invariant;

use super::{AccessPath, Action, Plan, PlanNode, QueryPlan, SortKey, TableAccess};
use crate::bind::SubqueryKind;
use crate::expression::{Expr, MAX_DEPTH};
use crate::types::Value;

/// Casts and the like that the binder may add at each level of an expression.
const LEVELS_PER_LEVEL: usize = 4;

impl Plan {
    /// Checks the plan, except what reads rows that are no rows of a step: CHECKs, RETURNING and
    /// ON CONFLICT.
    pub(crate) fn check_invariants(&self) {
        self.action.check_invariants();
    }
}

impl Action {
    fn check_invariants(&self) {
        let mut check = PlanCheck::default();
        match self {
            Action::Query(query) => check.query(query, &[]),
            Action::Insert(insert) => {
                if let Some((query, ..)) = &insert.query {
                    check.query(query, &[]);
                }
            }
            Action::Change(change) => {
                let own = check.node(&change.root, &[]);
                let new = change.assignments.iter().flatten().map(|(_, value)| value);
                check.reads(new.chain(&change.recheck), &own);
            }
            Action::Instead(instead) => check.query(&instead.query, &[]),
            Action::Merge(merge) => {
                let own = check.node(&merge.root, &[]);
                let conditions = merge.clauses.iter().flat_map(|clause| &clause.condition);
                check.reads(conditions, &own);
            }
            Action::ChangingWith(with) => {
                with.parts.iter().for_each(|part| part.action.check_invariants());
                with.main.check_invariants();
            }
        }
    }
}

/// What the steps checked so far do.
#[derive(Default)]
struct PlanCheck {
    /// The slots that they fill.
    filled: Vec<usize>,
    /// Whether one of them is a condition that never holds, in the place of tables that are not
    /// read: what would read their rows is not evaluated.
    is_empty: bool,
}

impl PlanCheck {
    /// Checks expressions that are evaluated while the rows of these slots are current.
    fn reads<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>, current: &[usize]) {
        for expr in exprs {
            let depth = expr.depth();
            invariant!(EXPR_4, depth <= LEVELS_PER_LEVEL * MAX_DEPTH, "{depth} levels");
            expr.each_column(&mut |column| {
                let is_current = self.is_empty || current.contains(&column.slot);
                invariant!(PLAN_1, is_current, "slot {} is read by {expr:?}", column.slot);
            });
        }
    }

    /// Notes that a step fills a slot, which no other step may do.
    fn fills(&mut self, slot: usize) {
        invariant!(PLAN_2, !self.filled.contains(&slot), "two steps fill slot {slot}");
        self.filled.push(slot);
    }

    /// Checks a query whose rows are copied to a slot of the query around it. References to one
    /// common table expression may fill the same slots (PULL-2), one after the other.
    fn query(&mut self, query: &QueryPlan, outer: &[usize]) {
        let before = self.filled.len();
        let own = self.node(&query.root, outer);
        self.reads(&query.outputs, &with(outer, &own));
        self.filled.truncate(before);
    }

    /// Checks a step while the rows of the slots `outer` are current. Returns the slots that it
    /// fills.
    fn node(&mut self, node: &PlanNode, outer: &[usize]) -> Vec<usize> {
        match node {
            PlanNode::SingleRow => Vec::new(),
            PlanNode::Table(access) => self.access(access, outer),
            PlanNode::Values { slot, rows, .. } => {
                self.reads(rows.iter().flatten(), outer);
                self.own(*slot)
            }
            PlanNode::FunctionScan(function) => {
                self.reads(function.arguments(), outer);
                self.own(function.slot)
            }
            PlanNode::StoredScan(stored) => self.own(stored.slot),
            PlanNode::Vectorized(batch) => self.node(&batch.step, outer),
            PlanNode::SubqueryScan { query, slot } => {
                self.query(query, outer);
                self.own(*slot)
            }
            PlanNode::SetOperation { sides, slot, .. } => {
                sides.iter().for_each(|side| self.query(side, outer));
                self.own(*slot)
            }
            PlanNode::With { tables, input } => {
                tables.iter().for_each(|(_, query)| self.query(query, outer));
                self.node(input, outer)
            }
            PlanNode::RecursiveUnion(union) => {
                self.query(&union.base, outer);
                self.query(&union.step, outer);
                self.own(union.slot)
            }
            PlanNode::NestedLoop { outer: left, inner, condition, .. } => {
                let mut own = self.node(left, outer);
                own.extend(self.node(inner, &with(outer, &own)));
                self.reads(condition, &with(outer, &own));
                own
            }
            PlanNode::HashJoin(join) => {
                let (mut left, right) =
                    (self.node(&join.outer, outer), self.node(&join.inner, outer));
                self.reads(&join.outer_keys, &with(outer, &left));
                self.reads(&join.inner_keys, &with(outer, &right));
                left.extend(right);
                self.reads(&join.condition, &with(outer, &left));
                if let Some(check) = &join.check {
                    self.node(check, &with(outer, &left));
                }
                left
            }
            PlanNode::Subquery { input, query, slot, kind, hash, needed, .. } => {
                let mut own = self.node(input, outer);
                let current = with(outer, &own);
                if let SubqueryKind::Any(value, _) | SubqueryKind::All(value, _) = kind {
                    self.reads([value], &current);
                }
                self.reads(hash.iter().flat_map(|hash| &hash.keys), &current);
                self.reads(needed, &current);
                self.query(query, &current);
                own.extend(self.own(*slot));
                own
            }
            _ => self.step(node, outer),
        }
    }

    /// As [`node`](Self::node), of a step with one input.
    fn step(&mut self, node: &PlanNode, outer: &[usize]) -> Vec<usize> {
        let input = match node {
            PlanNode::Filter { input, .. }
            | PlanNode::Group { input, .. }
            | PlanNode::Distinct { input, .. }
            | PlanNode::Sort { input, .. }
            | PlanNode::Limit { input, .. }
            | PlanNode::LockRows { input, .. } => input,
            PlanNode::WindowAgg(window) => &window.input,
            _ => return Vec::new(),
        };
        if let PlanNode::Filter { condition, .. } = node {
            let constant = condition.as_constant();
            self.is_empty |= constant.is_some_and(|value| *value != Value::Boolean(true));
        }
        let own = self.node(input, outer);
        let current = with(outer, &own);
        let keys = |keys: &[SortKey]| keys.iter().for_each(|key| self.reads([&key.expr], &current));
        match node {
            PlanNode::Filter { condition, .. } => self.reads([condition], &current),
            PlanNode::Distinct { outputs, .. } => self.reads(outputs, &current),
            PlanNode::LockRows { recheck, .. } => self.reads(recheck, &current),
            PlanNode::Limit { limit, offset, ties, .. } => {
                self.reads(limit.iter().chain(offset), outer);
                self.reads(ties, &current);
            }
            PlanNode::Group { slot, keys, aggregates, .. } => {
                let parts = aggregates.iter().flat_map(|aggregate| aggregate.expressions());
                self.reads(keys.iter().chain(parts), &current);
                return self.own(*slot);
            }
            PlanNode::Sort { slot, outputs, keys: order, .. } => {
                self.reads(outputs, &current);
                keys(order);
                return self.own(*slot);
            }
            PlanNode::WindowAgg(window) => {
                self.reads(window.columns.iter().chain(&window.partition), &current);
                keys(&window.order);
                return self.own(window.slot);
            }
            _ => {}
        }
        own
    }

    fn access(&mut self, access: &TableAccess, outer: &[usize]) -> Vec<usize> {
        match &access.path {
            AccessPath::All => {}
            AccessPath::Key(values) => self.reads(values, outer),
            AccessPath::Cursor(name) => self.reads([name], outer),
            AccessPath::Inverted(path) => {
                self.reads(path.parts().map(|part| &part.operand), outer);
            }
            AccessPath::KeyRange(range) | AccessPath::Index(_, range) => {
                let bounds = range.lower.iter().chain(&range.upper).map(|(bound, _)| bound);
                self.reads(range.equal.iter().chain(bounds), outer);
            }
        }
        let own = self.own(access.slot);
        self.reads(&access.filter, &with(outer, &own));
        own
    }

    fn own(&mut self, slot: usize) -> Vec<usize> {
        self.fills(slot);
        vec![slot]
    }
}

fn with(outer: &[usize], own: &[usize]) -> Vec<usize> {
    [outer, own].concat()
}
