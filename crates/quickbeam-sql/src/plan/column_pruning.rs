//! What a plan reads: columns of rows, and whether it only reads.

use std::sync::Arc;

use super::{Action, MergeActionPlan, Plan, PlanNode, QueryPlan, TableAccess};
use crate::bind::{SubqueryKind, TableFunctionKind};
use crate::catalog::{Table, Volatility};
use crate::expression::{ColumnRef, Expr};

/// Calls `visit` with every expression of a plan's step and of those below it.
pub fn each_expression(node: &PlanNode, visit: &mut dyn FnMut(&Expr)) {
    match node {
        PlanNode::SingleRow | PlanNode::StoredScan(_) => {}
        PlanNode::FunctionScan(function) => function.arguments().for_each(visit),
        PlanNode::With { tables, input } => {
            tables.iter().for_each(|(_, query)| each_of_query(query, visit));
            each_expression(input, visit);
        }
        PlanNode::RecursiveUnion(union) => {
            each_of_query(&union.base, visit);
            each_of_query(&union.step, visit);
        }
        PlanNode::Table(access) => each_of_access(access, visit),
        PlanNode::Values { rows, .. } => rows.iter().flatten().for_each(visit),
        PlanNode::Filter { input, condition } => {
            visit(condition);
            each_expression(input, visit);
        }
        PlanNode::NestedLoop { outer, inner, condition, .. } => {
            condition.iter().for_each(&mut *visit);
            each_expression(outer, visit);
            each_expression(inner, visit);
        }
        PlanNode::HashJoin(join) => {
            let keys = join.outer_keys.iter().chain(&join.inner_keys);
            keys.chain(&join.condition).for_each(&mut *visit);
            each_expression(&join.outer, visit);
            each_expression(&join.inner, visit);
            join.check.iter().for_each(|check| each_expression(check, visit));
        }
        PlanNode::Subquery { input, query, kind, hash, needed, .. } => {
            needed.iter().for_each(&mut *visit);
            hash.iter().flat_map(|hash| &hash.keys).for_each(&mut *visit);
            if let SubqueryKind::Any(value, _) | SubqueryKind::All(value, _) = kind {
                visit(value);
            }
            each_expression(input, visit);
            each_of_query(query, visit);
        }
        PlanNode::Group { input, keys, aggregates, .. } => {
            let parts = aggregates.iter().flat_map(|a| a.expressions());
            keys.iter().chain(parts).for_each(&mut *visit);
            each_expression(input, visit);
        }
        PlanNode::Distinct { input, outputs, .. } => {
            outputs.iter().for_each(&mut *visit);
            each_expression(input, visit);
        }
        PlanNode::Sort { input, outputs, keys, most, .. } => {
            outputs.iter().for_each(&mut *visit);
            keys.iter().for_each(|key| visit(&key.expr));
            if let Some((limit, offset)) = most {
                visit(limit);
                offset.iter().for_each(&mut *visit);
            }
            each_expression(input, visit);
        }
        PlanNode::WindowAgg(window) => {
            let keys = window.order.iter().map(|key| &key.expr);
            let functions = window.functions.iter().flat_map(|function| function.exprs());
            let own = window.columns.iter().chain(&window.partition).chain(keys);
            own.chain(functions).for_each(&mut *visit);
            each_expression(&window.input, visit);
        }
        PlanNode::Limit { input, limit, offset, ties } => {
            limit.iter().chain(offset).chain(ties).for_each(&mut *visit);
            each_expression(input, visit);
        }
        PlanNode::Vectorized(batch) => each_expression(&batch.step, visit),
        PlanNode::SubqueryScan { query, .. } => each_of_query(query, visit),
        PlanNode::SetOperation { sides, .. } => {
            sides.iter().for_each(|side| each_of_query(side, visit))
        }
        PlanNode::LockRows { input, recheck, .. } => {
            recheck.iter().for_each(&mut *visit);
            each_expression(input, visit);
        }
    }
}

fn each_of_access(access: &TableAccess, visit: &mut dyn FnMut(&Expr)) {
    match &access.path {
        super::AccessPath::All => {}
        super::AccessPath::Key(values) => values.iter().for_each(&mut *visit),
        super::AccessPath::Cursor(name) => visit(name),
        super::AccessPath::Inverted(path) => {
            path.parts().for_each(|part| visit(&part.operand));
        }
        super::AccessPath::KeyRange(range) | super::AccessPath::Index(_, range) => {
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
    pub fn each_access<'n>(&'n self, visit: &mut dyn FnMut(&'n TableAccess)) {
        match self {
            Action::Query(query) => query.root.each_access(visit),
            Action::Insert(insert) => {
                insert.query.iter().for_each(|(query, ..)| query.root.each_access(visit));
                insert.conflict_answers.iter().for_each(|node| node.each_access(visit));
            }
            Action::Change(change) => change.root.each_access(visit),
            Action::Instead(instead) => instead.query.root.each_access(visit),
            Action::Merge(merge) => merge.root.each_access(visit),
            Action::ChangingWith(with) => {
                with.parts.iter().for_each(|part| part.action.each_access(visit));
                with.main.each_access(visit);
            }
        }
    }
}

impl PlanNode {
    /// Calls `visit` with each access to a table.
    pub fn each_access<'n>(&'n self, visit: &mut dyn FnMut(&'n TableAccess)) {
        match self {
            PlanNode::SingleRow
            | PlanNode::Values { .. }
            | PlanNode::StoredScan(_)
            | PlanNode::FunctionScan(_) => {}
            PlanNode::With { tables, input } => {
                tables.iter().for_each(|(_, query)| query.root.each_access(visit));
                input.each_access(visit);
            }
            PlanNode::RecursiveUnion(union) => {
                union.base.root.each_access(visit);
                union.step.root.each_access(visit);
            }
            PlanNode::Table(access) => visit(access),
            PlanNode::Filter { input, .. }
            | PlanNode::Group { input, .. }
            | PlanNode::Distinct { input, .. }
            | PlanNode::Sort { input, .. }
            | PlanNode::Limit { input, .. }
            | PlanNode::LockRows { input, .. } => input.each_access(visit),
            PlanNode::Subquery { input, query, .. } => {
                input.each_access(visit);
                query.root.each_access(visit);
            }
            PlanNode::NestedLoop { outer, inner, .. } => {
                outer.each_access(visit);
                inner.each_access(visit);
            }
            PlanNode::HashJoin(join) => {
                join.outer.each_access(visit);
                join.inner.each_access(visit);
                join.check.iter().for_each(|check| check.each_access(visit));
            }
            PlanNode::WindowAgg(window) => window.input.each_access(visit),
            PlanNode::Vectorized(batch) => batch.step.each_access(visit),
            PlanNode::SubqueryScan { query, .. } => query.root.each_access(visit),
            PlanNode::SetOperation { sides, .. } => {
                sides.iter().for_each(|side| side.root.each_access(visit));
            }
        }
    }

    /// Returns whether the rows of a slot are read with their row ids (ROW-3).
    pub fn has_row_ids(&self, slot: usize) -> bool {
        let mut has = false;
        self.each_access(&mut |access| has |= access.slot == slot && access.row_ids);
        has
    }

    /// Returns the table of a slot, if it has one.
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

/// Whether rows are locked, or functions called in FROM that may change the database.
fn may_change(node: &PlanNode) -> bool {
    match node {
        PlanNode::LockRows { .. } => true,
        PlanNode::SingleRow
        | PlanNode::Table(_)
        | PlanNode::Values { .. }
        | PlanNode::StoredScan(_) => false,
        PlanNode::FunctionScan(function) => function.calls.iter().any(|call| match call.kind {
            TableFunctionKind::Routine(call, _) => call.volatility == Volatility::Volatile,
            _ => false,
        }),
        PlanNode::With { tables, input } => {
            may_change(input) || tables.iter().any(|(_, query)| may_change(&query.root))
        }
        PlanNode::RecursiveUnion(union) => {
            may_change(&union.base.root) || may_change(&union.step.root)
        }
        PlanNode::Filter { input, .. }
        | PlanNode::Group { input, .. }
        | PlanNode::Distinct { input, .. }
        | PlanNode::Sort { input, .. }
        | PlanNode::Limit { input, .. } => may_change(input),
        PlanNode::Subquery { input, query, .. } => may_change(input) || may_change(&query.root),
        PlanNode::NestedLoop { outer, inner, .. } => may_change(outer) || may_change(inner),
        PlanNode::HashJoin(join) => {
            may_change(&join.outer)
                || may_change(&join.inner)
                || join.check.as_ref().is_some_and(may_change)
        }
        PlanNode::WindowAgg(window) => may_change(&window.input),
        PlanNode::Vectorized(batch) => may_change(&batch.step),
        PlanNode::SubqueryScan { query, .. } => may_change(&query.root),
        PlanNode::SetOperation { sides, .. } => sides.iter().any(|side| may_change(&side.root)),
    }
}

impl Plan {
    /// Whether it changes nothing, locks nothing and counts nothing up.
    pub fn reads_only(&self) -> bool {
        let Action::Query(query) = &self.action else { return false };
        let mut counts = false;
        each_of_query(query, &mut |expr| counts |= expr.counts_up());
        !counts && !may_change(&query.root)
    }
}

fn each_scan(node: &mut PlanNode, visit: &mut dyn FnMut(&mut TableAccess)) {
    match node {
        PlanNode::SingleRow
        | PlanNode::Values { .. }
        | PlanNode::StoredScan(_)
        | PlanNode::FunctionScan(_) => {}
        PlanNode::With { tables, input } => {
            tables.iter_mut().for_each(|(_, query)| each_scan(&mut query.root, visit));
            each_scan(input, visit);
        }
        PlanNode::RecursiveUnion(union) => {
            each_scan(&mut union.base.root, visit);
            each_scan(&mut union.step.root, visit);
        }
        PlanNode::Table(access) => visit(access),
        PlanNode::Filter { input, .. }
        | PlanNode::Group { input, .. }
        | PlanNode::Distinct { input, .. }
        | PlanNode::Sort { input, .. }
        | PlanNode::Limit { input, .. }
        | PlanNode::LockRows { input, .. } => each_scan(input, visit),
        PlanNode::Subquery { input, query, .. } => {
            each_scan(input, visit);
            each_scan(&mut query.root, visit);
        }
        PlanNode::NestedLoop { outer, inner, guard, .. } => {
            each_scan(outer, visit);
            each_scan(inner, visit);
            if let Some(guard) = guard {
                each_scan(&mut guard.join.inner, visit);
            }
        }
        PlanNode::HashJoin(join) => {
            each_scan(&mut join.outer, visit);
            each_scan(&mut join.inner, visit);
            join.check.iter_mut().for_each(|check| each_scan(check, visit));
        }
        PlanNode::WindowAgg(window) => each_scan(&mut window.input, visit),
        PlanNode::Vectorized(batch) => each_scan(&mut batch.step, visit),
        PlanNode::SubqueryScan { query, .. } => each_scan(&mut query.root, visit),
        PlanNode::SetOperation { sides, .. } => {
            sides.iter_mut().for_each(|side| each_scan(&mut side.root, visit))
        }
    }
}

/// Finds the tables of which only a prefix of each row is read, and sets their prefix.
pub fn prune_prefixes(plan: &mut Plan) {
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
        Action::Instead(instead) => {
            each_of_query(&instead.query, &mut note);
            &mut instead.query.root
        }
        // A row to be changed is read as a whole.
        Action::Change(_) | Action::Merge(_) | Action::ChangingWith(_) => return,
    };
    each_scan(root, &mut |access| {
        let columns = read.iter().filter(|column| column.slot == access.slot);
        let columns: Vec<usize> = columns.map(|column| column.column).collect();
        // A row to be locked is read again as a whole.
        if !access.keys {
            let prefix = access.table.prefix_for(&columns);
            access.prefix = prefix.and_then(|bytes| u32::try_from(bytes).ok());
        }
    });
}

/// Makes the scans of tables deliver the row ids that the plan reads.
pub fn request_row_ids(action: &mut Action) {
    let mut read: Vec<ColumnRef> = Vec::new();
    let mut note = |expr: &Expr| expr.each_column(&mut |column| read.push(column));
    let roots: Vec<&mut PlanNode> = match action {
        Action::Query(query) => {
            each_of_query(query, &mut note);
            vec![&mut query.root]
        }
        Action::Insert(insert) => {
            if let Some((query, _, values)) = &insert.query {
                values.iter().for_each(&mut note);
                each_of_query(query, &mut note);
            }
            insert.conflict_answers.iter().for_each(|node| each_expression(node, &mut note));
            let query = insert.query.iter_mut().map(|(query, ..)| &mut query.root);
            query.chain(insert.conflict_answers.as_deref_mut()).collect()
        }
        Action::Instead(instead) => {
            each_of_query(&instead.query, &mut note);
            vec![&mut instead.query.root]
        }
        Action::Change(change) => {
            let values = change.assignments.iter().flatten().map(|(_, value)| value);
            let returned = change.returning.iter().flat_map(|returning| &returning.outputs);
            values.chain(returned).chain(&change.recheck).for_each(&mut note);
            each_expression(&change.root, &mut note);
            vec![&mut change.root]
        }
        Action::Merge(merge) => {
            for clause in &merge.clauses {
                clause.condition.iter().for_each(&mut note);
                match &clause.action {
                    MergeActionPlan::Nothing | MergeActionPlan::Delete => {}
                    MergeActionPlan::Insert(values) => values.iter().for_each(&mut note),
                    MergeActionPlan::Update { assignments, .. } => {
                        assignments.iter().map(|(_, value)| value).for_each(&mut note);
                    }
                }
            }
            each_expression(&merge.root, &mut note);
            vec![&mut merge.root]
        }
        Action::ChangingWith(with) => {
            with.parts.iter_mut().for_each(|part| request_row_ids(&mut part.action));
            return request_row_ids(&mut with.main);
        }
    };
    for root in roots {
        each_scan(root, &mut |access| {
            let id = ColumnRef { slot: access.slot, column: access.table.columns.len() };
            access.row_ids = access.table.primary_key.is_none() && read.contains(&id);
            access.keys |= access.row_ids;
        });
    }
}
