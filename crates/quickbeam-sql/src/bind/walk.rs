//! Visitors over queries: the one list of the places of a query that hold expressions or queries.
//!
//! Every analysis or rewrite of the expressions of a query goes through [`Query::each_part`] or its
//! mutable twin. A new place for an expression is added to both.

use std::sync::Arc;

use super::{Aggregate, Body, Derived, From, Query, Subquery, SubqueryKind, Window};
use crate::expression::{Expr, Slots};

/// A part of a query, one step below it.
#[derive(Clone, Copy)]
pub enum QueryPart<'q> {
    /// An expression. The value that a subquery is compared with is one of the query around it.
    Expr(&'q Expr),
    /// A subquery of an expression.
    Subquery(&'q Subquery),
    /// A query in FROM.
    Derived(&'q Derived),
    /// A side of a set operation, a term of a recursive query, or a common table expression.
    Side(&'q Query),
    /// A slot with stored rows that is scanned.
    Stored(usize),
}

/// A part of a query, to be changed.
pub enum PartMut<'q> {
    /// An expression.
    Expr(&'q mut Expr),
    /// A subquery of an expression.
    Subquery(&'q mut Subquery),
    /// A query in FROM.
    Derived(&'q mut Derived),
    /// A side of a set operation.
    Side(&'q mut Query),
}

impl PartMut<'_> {
    /// Replaces the columns of a slot by expressions, in the part and in its nested queries.
    pub fn replace_columns(self, slot: usize, outputs: &[Expr]) {
        match self {
            PartMut::Expr(expr) => expr.replace_columns(slot, outputs),
            PartMut::Side(side) => side.replace_columns(slot, outputs),
            PartMut::Subquery(subquery) => {
                if subquery.reads.contains(slot) {
                    Arc::make_mut(&mut subquery.query).replace_columns(slot, outputs);
                    subquery.find_reads();
                }
            }
            PartMut::Derived(derived) => {
                if derived.reads.contains(slot) {
                    Arc::make_mut(&mut derived.query).replace_columns(slot, outputs);
                    derived.reads = derived.query.reads();
                }
            }
        }
    }
}

impl QueryPart<'_> {
    /// Adds the slots outside the part that it reads.
    pub fn note_slots(self, read: &mut Slots) {
        match self {
            QueryPart::Expr(expr) => read.extend(&expr.slots()),
            QueryPart::Subquery(subquery) => read.extend(&subquery.reads),
            QueryPart::Derived(derived) => read.extend(&derived.reads),
            QueryPart::Side(side) => read.extend(&side.reads()),
            QueryPart::Stored(slot) => read.insert(slot),
        }
    }
}

impl Query {
    /// Calls `visit` with each part one step below the query.
    pub fn each_part<'q>(&'q self, visit: &mut dyn FnMut(QueryPart<'q>)) {
        self.with.iter().for_each(|common| visit(QueryPart::Side(&common.query)));
        match &self.body {
            Body::Recursive(recursive) => {
                visit(QueryPart::Side(&recursive.base));
                visit(QueryPart::Side(&recursive.step));
            }
            Body::Stored(stored) => visit(QueryPart::Stored(stored.from)),
            Body::Function(function) => {
                function.arguments().for_each(|value| visit(QueryPart::Expr(value)));
            }
            Body::Values(values) => {
                values.rows.iter().flatten().for_each(|value| visit(QueryPart::Expr(value)));
            }
            Body::Combine(combine) => {
                combine.sides.iter().for_each(|side| visit(QueryPart::Side(side)));
            }
            Body::Select(select) => {
                if let Some(from) = &select.from {
                    from.each_part(visit);
                }
                let mut subqueries: Vec<&Subquery> = select.subqueries.iter().collect();
                let of_rows = select.filter.iter().chain(&select.outputs);
                of_rows.chain(&select.distinct_on).for_each(|expr| visit(QueryPart::Expr(expr)));
                if let Some(group) = &select.group {
                    let of_aggregates = group.aggregates.iter().flat_map(Aggregate::expressions);
                    let of_groups = group.keys.iter().chain(of_aggregates).chain(&group.having);
                    of_groups.for_each(|expr| visit(QueryPart::Expr(expr)));
                    subqueries.extend(&group.subqueries);
                }
                let windows = select.windows.iter().flat_map(|windows| &windows.windows);
                windows.flat_map(Window::exprs).for_each(|expr| visit(QueryPart::Expr(expr)));
                for subquery in subqueries {
                    if let Some(value) = subquery.kind.value() {
                        visit(QueryPart::Expr(value));
                    }
                    visit(QueryPart::Subquery(subquery));
                }
            }
        }
        self.order.iter().for_each(|key| visit(QueryPart::Expr(&key.expr)));
        self.limit.iter().chain(&self.offset).for_each(|expr| visit(QueryPart::Expr(expr)));
    }

    /// [`each_part`](Self::each_part), to change the parts.
    pub fn each_part_mut(&mut self, visit: &mut dyn FnMut(PartMut<'_>)) {
        self.with.iter_mut().for_each(|common| visit(PartMut::Side(&mut common.query)));
        match &mut self.body {
            Body::Recursive(recursive) => {
                visit(PartMut::Side(&mut recursive.base));
                visit(PartMut::Side(&mut recursive.step));
            }
            Body::Stored(_) => {}
            Body::Function(function) => {
                let arguments = function.calls.iter_mut().flat_map(|call| &mut call.arguments);
                arguments.for_each(|value| visit(PartMut::Expr(value)));
            }
            Body::Values(values) => {
                values.rows.iter_mut().flatten().for_each(|value| visit(PartMut::Expr(value)));
            }
            Body::Combine(combine) => {
                combine.sides.iter_mut().for_each(|side| visit(PartMut::Side(side)));
            }
            Body::Select(select) => {
                if let Some(from) = &mut select.from {
                    from.each_part_mut(visit);
                }
                let mut subqueries: Vec<&mut Subquery> = select.subqueries.iter_mut().collect();
                let of_rows = select.filter.iter_mut().chain(&mut select.outputs);
                let of_rows = of_rows.chain(&mut select.distinct_on);
                of_rows.for_each(|expr| visit(PartMut::Expr(expr)));
                if let Some(group) = &mut select.group {
                    let of_aggregates =
                        group.aggregates.iter_mut().flat_map(Aggregate::expressions_mut);
                    let of_groups =
                        group.keys.iter_mut().chain(of_aggregates).chain(&mut group.having);
                    of_groups.for_each(|expr| visit(PartMut::Expr(expr)));
                    subqueries.extend(&mut group.subqueries);
                }
                let windows = select.windows.iter_mut().flat_map(|windows| &mut windows.windows);
                let of_windows = windows.flat_map(Window::exprs_mut);
                of_windows.for_each(|expr| visit(PartMut::Expr(expr)));
                for subquery in subqueries {
                    if let Some(value) = subquery.kind.value_mut() {
                        visit(PartMut::Expr(value));
                    }
                    visit(PartMut::Subquery(subquery));
                }
            }
        }
        self.order.iter_mut().for_each(|key| visit(PartMut::Expr(&mut key.expr)));
        let bounds = self.limit.iter_mut().chain(&mut self.offset);
        bounds.for_each(|expr| visit(PartMut::Expr(expr)));
    }

    /// Replaces the columns of a slot by expressions, in the query and in its nested queries.
    pub fn replace_columns(&mut self, slot: usize, outputs: &[Expr]) {
        self.each_part_mut(&mut |part| part.replace_columns(slot, outputs));
    }

    /// Calls `visit` with every expression of the query and of the queries in it.
    pub fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.each_part(&mut |part| match part {
            QueryPart::Expr(expr) => visit(expr),
            QueryPart::Subquery(subquery) => subquery.query.each_expression(visit),
            QueryPart::Derived(derived) => derived.query.each_expression(visit),
            QueryPart::Side(side) => side.each_expression(visit),
            QueryPart::Stored(_) => {}
        });
    }

    /// The slots outside the query whose rows it reads.
    pub fn reads(&self) -> Slots {
        let (mut read, mut own) = (Slots::default(), self.own_slots());
        self.each_part(&mut |part| {
            part.note_slots(&mut read);
            if let QueryPart::Subquery(subquery) = part {
                own.insert(subquery.slot);
            }
        });
        read.remove(&own);
        read
    }

    /// Returns the slots that the query fills itself, without those of its subqueries' answers.
    fn own_slots(&self) -> Slots {
        let mut own = self.body_slots();
        self.with.iter().for_each(|common| own.insert(common.slot));
        own
    }

    fn body_slots(&self) -> Slots {
        match &self.body {
            Body::Recursive(recursive) => {
                &Slots::one(recursive.slot) | &Slots::one(recursive.working)
            }
            Body::Stored(stored) => Slots::one(stored.slot),
            Body::Function(function) => Slots::one(function.slot),
            Body::Values(values) => Slots::one(values.slot),
            Body::Combine(combine) => Slots::one(combine.slot),
            Body::Select(select) => {
                let mut own = select.from.as_ref().map(From::slots).unwrap_or_default();
                select.group.iter().for_each(|group| own.insert(group.slot));
                select.windows.iter().for_each(|windows| own.insert(windows.slot));
                own
            }
        }
    }
}

impl From {
    /// Makes an item of FROM from a query. `slot` is the slot of its rows.
    pub fn query(slot: usize, query: Arc<Query>) -> From {
        let reads = query.reads();
        From::Query(Derived { slot, query, reads })
    }

    /// Calls `visit` with each condition and each query in it.
    pub fn each_part<'q>(&'q self, visit: &mut dyn FnMut(QueryPart<'q>)) {
        match self {
            From::Table(_) => {}
            From::Query(derived) => visit(QueryPart::Derived(derived)),
            From::Join { left, right, on, .. } => {
                left.each_part(visit);
                right.each_part(visit);
                on.iter().for_each(|condition| visit(QueryPart::Expr(condition)));
            }
        }
    }

    /// Returns the slots that the conditions of its joins read.
    pub fn condition_slots(&self) -> Slots {
        let mut read = Slots::default();
        self.each_part(&mut |part| {
            if let QueryPart::Expr(condition) = part {
                read.extend(&condition.slots());
            }
        });
        read
    }

    /// [`each_part`](Self::each_part), to change the parts.
    pub fn each_part_mut(&mut self, visit: &mut dyn FnMut(PartMut<'_>)) {
        match self {
            From::Table(_) => {}
            From::Query(derived) => visit(PartMut::Derived(derived)),
            From::Join { left, right, on, .. } => {
                left.each_part_mut(visit);
                right.each_part_mut(visit);
                on.iter_mut().for_each(|condition| visit(PartMut::Expr(condition)));
            }
        }
    }
}

impl Expr {
    /// Replaces the columns of a slot by the expressions with their numbers.
    pub fn replace_columns(&mut self, slot: usize, outputs: &[Expr]) {
        match self {
            Expr::Column(column) if column.slot == slot => {
                if let Some(output) = outputs.get(column.column) {
                    self.clone_from(output);
                }
            }
            other => other.each_child_mut(&mut |child| child.replace_columns(slot, outputs)),
        }
    }
}

impl Subquery {
    /// Replaces the columns of a slot around it by expressions.
    pub fn replace_outer_columns(&mut self, slot: usize, outputs: &[Expr]) {
        if let Some(value) = self.kind.value_mut() {
            value.replace_columns(slot, outputs);
        }
        PartMut::Subquery(self).replace_columns(slot, outputs);
    }

    /// Returns the slots of the answers of subqueries.
    pub fn answers(subqueries: &[Subquery]) -> Slots {
        subqueries.iter().map(|subquery| subquery.slot).collect()
    }

    /// A subquery, and the rows that it reads.
    pub fn new(slot: usize, query: Arc<Query>, kind: SubqueryKind) -> Subquery {
        let mut subquery = Subquery { slot, query, kind, reads: Slots::default() };
        subquery.find_reads();
        subquery
    }

    /// Finds the rows around it that it reads, after a change of its query or value.
    pub fn find_reads(&mut self) {
        self.reads = self.query.reads();
        if let Some(value) = self.kind.value() {
            self.reads.extend(&value.slots());
        }
    }
}

impl SubqueryKind {
    /// The value that the subquery's rows are compared with.
    pub fn value(&self) -> Option<&Expr> {
        match self {
            SubqueryKind::Any(value, _) | SubqueryKind::All(value, _) => Some(value),
            SubqueryKind::Scalar
            | SubqueryKind::Row
            | SubqueryKind::Array(_)
            | SubqueryKind::Exists => None,
        }
    }

    /// [`value`](Self::value), to be changed.
    pub fn value_mut(&mut self) -> Option<&mut Expr> {
        match self {
            SubqueryKind::Any(value, _) | SubqueryKind::All(value, _) => Some(value),
            SubqueryKind::Scalar
            | SubqueryKind::Row
            | SubqueryKind::Array(_)
            | SubqueryKind::Exists => None,
        }
    }
}
