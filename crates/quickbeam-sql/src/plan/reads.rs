//! What a plan reads: which columns of which rows, and whether it does nothing but read.

use std::sync::Arc;

use super::{Access, Action, Node, Plan, QueryPlan};
use crate::bind::SubqueryKind;
use crate::catalog::Table;
use crate::expression::{ColumnRef, Expr};

/// Calls `visit` with every expression of a plan's step and of those below it.
fn each_expression(node: &Node, visit: &mut dyn FnMut(&Expr)) {
    match node {
        Node::One => {}
        Node::Table(access) => each_of_access(access, visit),
        Node::Values { rows, .. } => rows.iter().flatten().for_each(visit),
        Node::Filter { input, condition } => {
            visit(condition);
            each_expression(input, visit);
        }
        Node::NestedLoop { outer, inner, condition, .. } => {
            condition.iter().for_each(&mut *visit);
            each_expression(outer, visit);
            each_expression(inner, visit);
        }
        Node::HashJoin(join) => {
            let keys = join.outer_keys.iter().chain(&join.inner_keys);
            keys.chain(&join.condition).for_each(&mut *visit);
            each_expression(&join.outer, visit);
            each_expression(&join.inner, visit);
        }
        Node::Apply { input, query, kind, hash, .. } => {
            hash.iter().flatten().for_each(&mut *visit);
            if let SubqueryKind::Any(value, _) | SubqueryKind::All(value, _) = kind {
                visit(value);
            }
            each_expression(input, visit);
            each_of_query(query, visit);
        }
        Node::Group { input, keys, aggregates, .. } => {
            let parts = aggregates.iter().flat_map(|a| a.argument.iter().chain(&a.filter));
            keys.iter().chain(parts).for_each(&mut *visit);
            each_expression(input, visit);
        }
        Node::Distinct { input, outputs, .. } => {
            outputs.iter().for_each(&mut *visit);
            each_expression(input, visit);
        }
        Node::Sort { input, outputs, keys, most, .. } => {
            outputs.iter().for_each(&mut *visit);
            keys.iter().for_each(|key| visit(&key.expr));
            if let Some((limit, offset)) = most {
                visit(limit);
                offset.iter().for_each(&mut *visit);
            }
            each_expression(input, visit);
        }
        Node::Limit { input, limit, offset } => {
            limit.iter().chain(offset).for_each(&mut *visit);
            each_expression(input, visit);
        }
        Node::Batch(batch) => each_expression(&batch.step, visit),
        Node::Derived { query, .. } => each_of_query(query, visit),
        Node::Combine { sides, .. } => sides.iter().for_each(|side| each_of_query(side, visit)),
        Node::Lock { input, recheck, .. } => {
            recheck.iter().for_each(&mut *visit);
            each_expression(input, visit);
        }
    }
}

fn each_of_access(access: &Access, visit: &mut dyn FnMut(&Expr)) {
    match &access.path {
        super::Path::All => {}
        super::Path::Key(values) => values.iter().for_each(&mut *visit),
        super::Path::KeyRange(range) | super::Path::Index(_, range) => {
            range.equal.iter().for_each(&mut *visit);
            range.lower.iter().chain(&range.upper).for_each(|(bound, _)| visit(bound));
        }
    }
    access.filter.iter().for_each(visit);
}

fn each_of_query(query: &QueryPlan, visit: &mut dyn FnMut(&Expr)) {
    query.outputs.iter().for_each(&mut *visit);
    each_expression(&query.root, visit);
}

impl Action {
    /// Calls `visit` with each access to a table.
    pub fn each_access<'n>(&'n self, visit: &mut dyn FnMut(&'n Access)) {
        match self {
            Action::Query(query) => query.root.each_access(visit),
            Action::Insert(insert) => {
                insert.query.iter().for_each(|(query, ..)| query.root.each_access(visit));
            }
            Action::Change(change) => change.root.each_access(visit),
        }
    }
}

impl Node {
    /// Calls `visit` with each access to a table.
    pub fn each_access<'n>(&'n self, visit: &mut dyn FnMut(&'n Access)) {
        match self {
            Node::One | Node::Values { .. } => {}
            Node::Table(access) => visit(access),
            Node::Filter { input, .. }
            | Node::Group { input, .. }
            | Node::Distinct { input, .. }
            | Node::Sort { input, .. }
            | Node::Limit { input, .. }
            | Node::Lock { input, .. } => input.each_access(visit),
            Node::Apply { input, query, .. } => {
                input.each_access(visit);
                query.root.each_access(visit);
            }
            Node::NestedLoop { outer, inner, .. } => {
                outer.each_access(visit);
                inner.each_access(visit);
            }
            Node::HashJoin(join) => {
                join.outer.each_access(visit);
                join.inner.each_access(visit);
            }
            Node::Batch(batch) => batch.step.each_access(visit),
            Node::Derived { query, .. } => query.root.each_access(visit),
            Node::Combine { sides, .. } => {
                sides.iter().for_each(|side| side.root.each_access(visit));
            }
        }
    }

    /// The table whose rows stand in a slot, if it is one.
    pub fn table_in(&self, slot: usize) -> Option<&Arc<Table>> {
        let mut found = None;
        self.each_access(&mut |access| {
            if access.slot == slot {
                found = Some(&access.table);
            }
        });
        found
    }
}

/// Whether rows are locked.
fn locks(node: &Node) -> bool {
    match node {
        Node::Lock { .. } => true,
        Node::One | Node::Table(_) | Node::Values { .. } => false,
        Node::Filter { input, .. }
        | Node::Group { input, .. }
        | Node::Distinct { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. } => locks(input),
        Node::Apply { input, query, .. } => locks(input) || locks(&query.root),
        Node::NestedLoop { outer, inner, .. } => locks(outer) || locks(inner),
        Node::HashJoin(join) => locks(&join.outer) || locks(&join.inner),
        Node::Batch(batch) => locks(&batch.step),
        Node::Derived { query, .. } => locks(&query.root),
        Node::Combine { sides, .. } => sides.iter().any(|side| locks(&side.root)),
    }
}

impl Plan {
    /// Whether it changes nothing, locks nothing and counts nothing up.
    pub fn reads_only(&self) -> bool {
        let Action::Query(query) = &self.action else { return false };
        let mut counts = false;
        each_of_query(query, &mut |expr| counts |= expr.counts_up());
        !counts && !locks(&query.root)
    }
}

fn each_scan(node: &mut Node, visit: &mut dyn FnMut(&mut Access)) {
    match node {
        Node::One | Node::Values { .. } => {}
        Node::Table(access) => visit(access),
        // A locked row is read again as a whole.
        Node::Lock { .. } => {}
        Node::Filter { input, .. }
        | Node::Group { input, .. }
        | Node::Distinct { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. } => each_scan(input, visit),
        Node::Apply { input, query, .. } => {
            each_scan(input, visit);
            each_scan(&mut query.root, visit);
        }
        Node::NestedLoop { outer, inner, .. } => {
            each_scan(outer, visit);
            each_scan(inner, visit);
        }
        Node::HashJoin(join) => {
            each_scan(&mut join.outer, visit);
            each_scan(&mut join.inner, visit);
        }
        Node::Batch(batch) => each_scan(&mut batch.step, visit),
        Node::Derived { query, .. } => each_scan(&mut query.root, visit),
        Node::Combine { sides, .. } => {
            sides.iter_mut().for_each(|side| each_scan(&mut side.root, visit))
        }
    }
}

/// Finds out of which tables only a part at the start of each row is read, and notes it.
pub fn limit_prefixes(plan: &mut Plan) {
    let mut read: Vec<ColumnRef> = Vec::new();
    let mut note = |expr: &Expr| expr.each_column(&mut |column| read.push(column));
    let root = match &mut plan.action {
        Action::Query(query) => {
            each_of_query(query, &mut note);
            &mut query.root
        }
        Action::Insert(insert) => match &mut insert.query {
            Some((query, ..)) => {
                each_of_query(query, &mut note);
                &mut query.root
            }
            None => return,
        },
        // A row to be changed is read as a whole.
        Action::Change(_) => return,
    };
    each_scan(root, &mut |access| {
        let columns = read.iter().filter(|column| column.slot == access.slot);
        let columns: Vec<usize> = columns.map(|column| column.column).collect();
        access.prefix = access.table.prefix_for(&columns);
    });
}
