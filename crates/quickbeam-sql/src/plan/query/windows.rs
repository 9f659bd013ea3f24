//! Window functions: a sort for each order of rows that they need, and a `WindowAgg` above it.
//!
//! A sort keeps the columns that anything above reads, and so does a `WindowAgg`, which appends the
//! values of its functions. Expressions above read the copies.

use super::select::Planner;
use super::tail::Tail;
use crate::bind::{From, Group, OrderKey, Query, Select, Window, WindowFunction, Windows};
use crate::expression::{ColumnRef, Expr, Slots};
use crate::plan::{PlanNode, QueryPlan, SortKey, WindowAgg};

/// The columns that are read above, and where they are now.
struct Columns {
    now: Vec<(ColumnRef, ColumnRef)>,
}

impl Columns {
    /// Makes an expression read the columns where they are now.
    fn relocate(&self, expr: &mut Expr) {
        if let Expr::Column(column) = expr {
            if let Some((_, now)) = self.now.iter().find(|(known, _)| known == column) {
                *column = *now;
            }
            return;
        }
        expr.each_child_mut(&mut |child| self.relocate(child));
    }

    fn relocated(&self, expr: &Expr) -> Expr {
        let mut expr = expr.clone();
        self.relocate(&mut expr);
        expr
    }

    /// Returns the columns as expressions.
    fn exprs(&self) -> Vec<Expr> {
        self.now.iter().map(|(_, now)| Expr::Column(*now)).collect()
    }

    /// Moves all columns to a slot, in order.
    fn move_to(&mut self, slot: usize) {
        for (column, (_, now)) in self.now.iter_mut().enumerate() {
            *now = ColumnRef { slot, column };
        }
    }
}

/// Returns the order of rows that a window needs: its partitions, and their order.
fn order_of(window: &Window) -> Vec<SortKey> {
    let partition = window.partition.iter().map(|expr| SortKey {
        expr: expr.clone(),
        descending: false,
        nulls_first: false,
    });
    let mut keys: Vec<SortKey> = Vec::new();
    for key in partition.chain(window.order.iter().map(sort_key)) {
        if !key.expr.is_constant() && keys.iter().all(|known| known.expr != key.expr) {
            keys.push(key);
        }
    }
    keys
}

fn sort_key(key: &OrderKey) -> SortKey {
    SortKey { expr: key.expr.clone(), descending: key.descending, nulls_first: key.nulls_first }
}

fn same(a: &SortKey, b: &SortKey) -> bool {
    (a.descending, a.nulls_first) == (b.descending, b.nulls_first) && a.expr == b.expr
}

/// Whether rows in the order `have` are in the order `want` too.
fn is_prefix(want: &[SortKey], have: &[SortKey]) -> bool {
    want.len() <= have.len() && want.iter().zip(have).all(|(a, b)| same(a, b))
}

/// Returns the slots whose rows a SELECT reads itself, without those of outer queries.
fn own_slots(select: &Select) -> Slots {
    let mut own = select.from.as_ref().map(From::slots).unwrap_or_default();
    select.subqueries.iter().for_each(|subquery| own.insert(subquery.slot));
    if let Some(Group { slot, subqueries, .. }) = &select.group {
        own.insert(*slot);
        subqueries.iter().for_each(|subquery| own.insert(subquery.slot));
    }
    own
}

impl Planner<'_> {
    /// Plans the window functions of a SELECT, and all that comes after them.
    pub(in crate::plan) fn windowed(
        &self,
        mut node: PlanNode,
        select: &Select,
        windows: &Windows,
        query: &Query,
        rows: f64,
    ) -> QueryPlan {
        let mut above: Vec<Expr> = select.outputs.clone();
        above.extend(query.order.iter().map(|key| key.expr.clone()));
        above.extend_from_slice(&select.distinct_on);
        let mut read: Vec<ColumnRef> = Vec::new();
        above.iter().for_each(|expr| expr.each_column(&mut |column| read.push(column)));
        let mut stages = stages_of(windows, &read);
        let of_windows = stages.iter().flat_map(|(window, _)| window.exprs());
        of_windows.for_each(|expr| expr.each_column(&mut |column| read.push(column)));
        read.sort_unstable();
        read.dedup();
        let own = own_slots(select);
        read.retain(|column| own.contains(column.slot));
        let mut columns = Columns { now: read.iter().map(|column| (*column, *column)).collect() };
        node = self.with_volatile_keys(node, &mut columns, &mut stages);
        let mut sorted: Vec<SortKey> = Vec::new();
        while !stages.is_empty() {
            let next = stages.iter().position(|(_, order)| is_prefix(order, &sorted));
            let (window, order) = stages.remove(next.unwrap_or(0));
            if next.is_none() {
                node = self.sorted(node, &mut columns, &order);
                sorted = order;
            }
            node = self.window_agg(node, &mut columns, &window, windows.slot);
        }
        let mut outputs = select.outputs.clone();
        outputs.iter_mut().for_each(|output| columns.relocate(output));
        let order: Vec<SortKey> = query.order.iter().map(sort_key).collect();
        let order: Vec<SortKey> = order.into_iter().filter(|key| !key.expr.is_constant()).collect();
        let ordered = is_prefix(&order, &sorted) && !select.distinct;
        if select.distinct {
            node = PlanNode::Distinct { input: Box::new(node), outputs: outputs.clone() };
        }
        let mut order = query.order.clone();
        order.iter_mut().for_each(|key| columns.relocate(&mut key.expr));
        let distinct_on = select.distinct_on.iter().map(|expr| columns.relocated(expr));
        let distinct_on: Vec<Expr> = distinct_on.collect();
        let tail = Tail { query, order: &order, distinct_on: &distinct_on, ordered };
        self.finish(node, outputs, tail, rows)
    }

    /// Computes the volatile keys of windows once for each row, so that the sort and the windows
    /// above it read the same values. A node without functions buffers the rows.
    fn with_volatile_keys(
        &self,
        input: PlanNode,
        columns: &mut Columns,
        stages: &mut [(Window, Vec<SortKey>)],
    ) -> PlanNode {
        let mut volatile: Vec<Expr> = Vec::new();
        for (window, _) in stages.iter() {
            for expr in window.partition.iter().chain(window.order.iter().map(|key| &key.expr)) {
                if expr.is_volatile() && !volatile.contains(expr) {
                    volatile.push(expr.clone());
                }
            }
        }
        if volatile.is_empty() {
            return input;
        }
        let slot = self.new_slot();
        let mut passed = columns.exprs();
        columns.move_to(slot);
        let first = passed.len();
        let made = |nth: usize| ColumnRef { slot, column: first + nth };
        columns.now.extend((0..volatile.len()).map(|nth| (made(nth), made(nth))));
        let replace = |expr: &mut Expr| {
            if let Some(nth) = volatile.iter().position(|known| known == expr) {
                *expr = Expr::Column(made(nth));
            }
        };
        for (window, order) in stages.iter_mut() {
            window.partition.iter_mut().for_each(replace);
            window.order.iter_mut().for_each(|key| replace(&mut key.expr));
            *order = order_of(window);
        }
        passed.extend_from_slice(&volatile);
        PlanNode::WindowAgg(Box::new(WindowAgg {
            input,
            slot,
            columns: passed,
            partition: Vec::new(),
            order: Vec::new(),
            functions: Vec::new(),
        }))
    }

    fn sorted(&self, node: PlanNode, columns: &mut Columns, order: &[SortKey]) -> PlanNode {
        let slot = self.new_slot();
        let keys = order.iter().map(|key| SortKey { expr: columns.relocated(&key.expr), ..*key });
        let (keys, outputs) = (keys.collect(), columns.exprs());
        columns.move_to(slot);
        PlanNode::Sort { input: Box::new(node), slot, outputs, keys, most: None }
    }

    fn window_agg(
        &self,
        input: PlanNode,
        columns: &mut Columns,
        window: &Window,
        results: usize,
    ) -> PlanNode {
        let slot = self.new_slot();
        let passed = columns.exprs();
        let partition = window.partition.iter().map(|expr| columns.relocated(expr)).collect();
        let order = window.order.iter().map(|key| {
            let key = sort_key(key);
            SortKey { expr: columns.relocated(&key.expr), ..key }
        });
        let order = order.collect();
        let functions: Vec<WindowFunction> = window
            .functions
            .iter()
            .map(|(_, function)| {
                let mut function = function.clone();
                function.exprs_mut().for_each(|expr| columns.relocate(expr));
                function
            })
            .collect();
        columns.move_to(slot);
        for (nth, (column, _)) in window.functions.iter().enumerate() {
            let known = ColumnRef { slot: results, column: *column };
            columns.now.push((known, ColumnRef { slot, column: passed.len() + nth }));
        }
        let columns = passed;
        PlanNode::WindowAgg(Box::new(WindowAgg {
            input,
            slot,
            columns,
            partition,
            order,
            functions,
        }))
    }
}

/// Returns the windows with functions that are read, and the order that each needs: the longest
/// orders first, so that one sort serves the windows whose orders begin it.
fn stages_of(windows: &Windows, read: &[ColumnRef]) -> Vec<(Window, Vec<SortKey>)> {
    let is_read = |column: usize| read.contains(&ColumnRef { slot: windows.slot, column });
    let mut stages: Vec<(Window, Vec<SortKey>)> = Vec::new();
    for window in &windows.windows {
        let mut window = window.clone();
        window.functions.retain(|(column, _)| is_read(*column));
        if !window.functions.is_empty() {
            let order = order_of(&window);
            stages.push((window, order));
        }
    }
    stages.sort_by_key(|(_, order)| std::cmp::Reverse(order.len()));
    stages
}
