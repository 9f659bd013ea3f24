//! Queries: FROM, subqueries, groups, order, limits, one step above the other.

use crate::plan::access_path::selectivity;
use crate::plan::cost::{MANY_ROWS, SUBQUERY_SELECTIVITY};
use crate::plan::cost::{MemberUse, RowGoal};
use crate::plan::query::tail::TailOrder;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::tail::Tail;
use super::types_alike;
use crate::bind::{
    Aggregate, AggregateKind, Body, CommonTable, From, JoinKind, OrderKey, OutputColumn, Query,
    RowLock, Select, SlotShape, Source, Subquery,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr, NumberKind, Slots};
use crate::plan::rewrite::date_comparisons::compare_dates;
use crate::plan::rewrite::needed_answers::NeededAnswers;
use crate::plan::rewrite::pull_up::pull_up_queries;
use crate::plan::rewrite::simplify::simplify_query;
use crate::plan::{Join, PlanNode, QueryPlan, RecursiveUnion, Statistics, TurnedOff};
use crate::types::{CollateStep, DataType, Value};

/// Limit of subqueries in expressions, nested or side by side, including those around FROM. Every
/// walk over a plan recurses this deep.
const MOST_SUBQUERIES: usize = 250;

/// The plan of FROM and WHERE.
pub(in crate::plan) struct PlannedRows {
    pub node: PlanNode,
    /// Rows expected.
    pub rows: f64,
    /// The cost of the joins, without that of subqueries.
    pub cost: f64,
    /// Whether the rows have the requested order.
    pub ordered: bool,
}

/// Plans one statement.
pub(in crate::plan) struct Planner<'p> {
    /// The binder's slots.
    pub slots: &'p [SlotShape],
    pub statistics: &'p dyn Statistics,
    /// The steps that the session has turned off.
    pub off: Cell<TurnedOff>,
    /// The types of the parameters.
    pub(super) parameters: &'p [DataType],
    /// The number of slots that the planner added after the binder's.
    more: Cell<usize>,
    /// The columns of the added slots whose rows are those of a query.
    added: RefCell<Vec<(usize, Arc<[OutputColumn]>)>>,
    /// For a slot looked up by an IN list, the added slot of the current value.
    members: RefCell<Vec<(usize, usize)>>,
    /// The number of subqueries around the present step.
    above: Cell<usize>,
    /// Whether conditions are tried on samples of rows: a join is planned.
    pub is_sampling: Cell<bool>,
    /// The parts of rows that samples gave, by slot and conditions.
    pub sampled: RefCell<Vec<(usize, Vec<Expr>, f64)>>,
    /// The columns that all conditions of their table are on, with the rows that these leave.
    pub restricted: RefCell<Vec<(ColumnRef, f64)>>,
    /// The estimated rows of the slots that store rows.
    stored: RefCell<Vec<(usize, f64)>>,
    /// The subqueries in the conditions of outer joins, and of joins on their sides.
    pub(super) asked: RefCell<Vec<Subquery>>,
    /// The conditions under which the answers of subqueries are needed.
    pub(in crate::plan) needs: NeededAnswers,
}

/// Plans a query. Returns the plan, and the slots of the statement with those that the planner
/// added.
pub fn plan_query(
    mut query: Query,
    slots: &[SlotShape],
    parameters: &[DataType],
    statistics: &dyn Statistics,
) -> Result<(QueryPlan, Vec<SlotShape>)> {
    let planner = Planner::new(slots, parameters, statistics);
    planner.pull_up(&mut query);
    simplify_query(&mut query);
    compare_dates(&mut query, slots);
    let plan = planner.query(&query, &Slots::default())?;
    Ok((plan, planner.all_slots()))
}

impl<'p> Planner<'p> {
    pub fn new(
        slots: &'p [SlotShape],
        parameters: &'p [DataType],
        statistics: &'p dyn Statistics,
    ) -> Planner<'p> {
        let (more, above) = (Cell::new(0), Cell::new(0));
        let (members, stored, added) = (RefCell::default(), RefCell::default(), RefCell::default());
        let asked = RefCell::default();
        let off = Cell::new(statistics.turned_off());
        let (is_sampling, sampled) = (Cell::new(false), RefCell::default());
        let restricted = RefCell::default();
        Planner {
            slots,
            statistics,
            off,
            parameters,
            more,
            added,
            members,
            above,
            is_sampling,
            sampled,
            restricted,
            stored,
            asked,
            needs: NeededAnswers::default(),
        }
    }

    /// Pulls up queries in FROM, if the statement has any.
    pub(in crate::plan) fn pull_up(&self, query: &mut Query) {
        if self.slots.iter().any(|slot| matches!(slot.source, Source::Query(_))) {
            pull_up_queries(query, &|expr| self.type_of(expr).is_some());
        }
    }

    /// Plans a step with `subqueries` more subqueries above it.
    fn below<T>(&self, subqueries: usize, step: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.above.get();
        self.above.set(before + subqueries);
        let result = if self.above.get() > MOST_SUBQUERIES {
            let message = "too many subqueries are asked in one query";
            Err(SqlError::new(SqlState::StatementTooComplex, message))
        } else {
            step()
        };
        self.above.set(before);
        result
    }

    pub(in crate::plan) fn new_slot(&self) -> usize {
        let slot = self.slots.len() + self.more.get();
        self.more.set(self.more.get() + 1);
        slot
    }

    /// Returns a new slot for the rows of a query with these columns.
    pub(in crate::plan) fn new_query_slot(&self, columns: &[OutputColumn]) -> usize {
        let slot = self.new_slot();
        self.added.borrow_mut().push((slot, columns.into()));
        slot
    }

    /// Returns the slot of the current IN-list value for lookups in slot `of`.
    pub fn slot_of_members(&self, of: usize) -> usize {
        let known = self.members.borrow().iter().find(|(slot, _)| *slot == of).map(|known| known.1);
        known.unwrap_or_else(|| {
            let slot = self.new_slot();
            self.members.borrow_mut().push((of, slot));
            slot
        })
    }

    pub fn all_slots(&self) -> Vec<SlotShape> {
        let mut slots = self.slots.to_vec();
        let computed = || SlotShape { name: "computed".into(), source: Source::Computed };
        slots.extend((0..self.more.get()).map(|_| computed()));
        for (_, slot) in self.members.borrow().iter() {
            if let Some(shape) = slots.get_mut(*slot) {
                shape.name = "values".into();
            }
        }
        for (slot, columns) in self.added.borrow().iter() {
            if let Some(shape) = slots.get_mut(*slot) {
                shape.source = Source::Query(columns.clone());
            }
        }
        slots
    }

    /// Returns the type of an expression, if it is cheap to derive.
    pub(in crate::plan) fn type_of(&self, expr: &Expr) -> Option<DataType> {
        match expr {
            Expr::Column(column) if column.slot >= self.slots.len() => {
                let added = self.added.borrow();
                let (_, columns) = added.iter().find(|(slot, _)| *slot == column.slot)?;
                columns.get(column.column).map(|known| known.data_type)
            }
            Expr::Column(column) => match &self.slots.get(column.slot)?.source {
                Source::Table(table) => {
                    table.columns.get(column.column).map(|known| known.data_type)
                }
                Source::Query(columns) => columns.get(column.column).map(|known| known.data_type),
                Source::Computed => None,
            },
            Expr::Row(shape, _) => Some(DataType::Encoded(shape.data_type)),
            Expr::Constant(value) => value.data_type(),
            Expr::Parameter(number) => self.parameters.get(*number).copied(),
            Expr::Negate(inner, _) => self.type_of(inner),
            Expr::Cast(_, data_type, _) => Some(*data_type),
            Expr::Domain(inner, _) => self.type_of(inner),
            Expr::Fold(_, fold) => Some(fold.data_type),
            Expr::Trimmed(_) => Some(DataType::Text),
            Expr::Collate(_, CollateStep::Key(of)) => Some(DataType::Encoded(of.key_type())),
            Expr::Collate(..) => Some(DataType::Text),
            Expr::Call(function, ..) if function.is_of_text() => Some(DataType::Text),
            Expr::Call(function, ..) => function.number_type(),
            Expr::Arithmetic(_, kind, ..) => Some(NumberKind::data_type(*kind)),
            _ => None,
        }
    }

    /// Whether keys of a column and of a value, or of the elements of an array, are comparable.
    pub fn keys_alike(&self, column: &Expr, value: &Expr) -> bool {
        match (self.type_of(column), self.type_of(value)) {
            (Some(a), Some(DataType::Array(element))) if !matches!(a, DataType::Array(_)) => {
                types_alike(a, element.data_type())
            }
            (Some(a), Some(b)) => types_alike(a, b),
            _ => false,
        }
    }

    /// Whether values of both that are equal have the same hash.
    pub fn hash_alike(&self, left: &Expr, right: &Expr) -> bool {
        match (self.type_of(left), self.type_of(right)) {
            (Some(a), Some(b)) => types_alike(a, b),
            _ => false,
        }
    }

    /// The plan of a query; `outside` are the slots bound around it.
    pub fn query(&self, query: &Query, outside: &Slots) -> Result<QueryPlan> {
        if query.with.is_empty() {
            return self.query_alone(query, outside);
        }
        let tables = self.stored_tables(&query.with, outside)?;
        let mut plan = self.query_alone(query, outside)?;
        plan.root = PlanNode::With { tables, input: Box::new(plan.root) };
        Ok(plan)
    }

    /// Plans common table expressions, and notes the rows that they are expected to have.
    pub(in crate::plan) fn stored_tables(
        &self,
        with: &[CommonTable],
        outside: &Slots,
    ) -> Result<Vec<(usize, QueryPlan)>> {
        let mut tables = Vec::with_capacity(with.len());
        for common in with {
            let plan = self.query(&common.query, outside)?;
            self.stored.borrow_mut().push((common.slot, plan.rows));
            tables.push((common.slot, plan));
        }
        Ok(tables)
    }

    fn query_alone(&self, query: &Query, outside: &Slots) -> Result<QueryPlan> {
        let few = query.limit.is_some();
        match &query.body {
            Body::Select(select) => {
                let of_groups = select.group.as_ref().map_or(0, |group| group.subqueries.len());
                self.below(of_groups, || self.select(select, query, outside, few))
            }
            Body::Values(values) => {
                let (slot, rows) = (values.slot, values.rows.clone());
                let count = rows.len() as f64;
                let node = PlanNode::Values { slot, rows, once: false };
                let outputs = columns_of(slot, query.columns.len());
                Ok(self.finish(node, outputs, Tail::of(query, TailOrder::Unsorted), count))
            }
            Body::Recursive(recursive) => {
                let base = self.query(&recursive.base, outside)?;
                self.stored.borrow_mut().push((recursive.working, base.rows));
                let step = self.query(&recursive.step, outside)?;
                let (working, slot, all) = (recursive.working, recursive.slot, recursive.all);
                // Ten rounds, as PostgreSQL expects.
                let rows = base.rows + step.rows * 10.0;
                let outputs = columns_of(slot, query.columns.len());
                let union = RecursiveUnion { base, step, all, working, slot };
                let node = PlanNode::RecursiveUnion(Box::new(union));
                Ok(self.finish(node, outputs, Tail::of(query, TailOrder::Unsorted), rows))
            }
            Body::Stored(stored) => {
                let known = self.stored.borrow();
                let known = known.iter().rev().find(|(slot, _)| *slot == stored.from);
                let rows = known.map_or(MANY_ROWS, |known| known.1);
                let outputs = columns_of(stored.slot, query.columns.len());
                let node = PlanNode::StoredScan(stored.clone());
                Ok(self.finish(node, outputs, Tail::of(query, TailOrder::Unsorted), rows))
            }
            Body::Function(function) => {
                let outputs = columns_of(function.slot, query.columns.len());
                let node = PlanNode::FunctionScan(function.clone());
                Ok(self.finish(node, outputs, Tail::of(query, TailOrder::Unsorted), MANY_ROWS))
            }
            Body::Combine(combine) => {
                let sides = combine.sides.iter().map(|side| self.query(side, outside));
                let sides: Vec<QueryPlan> = sides.collect::<Result<_>>()?;
                let rows = sides.iter().map(|side| side.rows).sum();
                let outputs = columns_of(combine.slot, query.columns.len());
                let node = PlanNode::SetOperation {
                    kind: combine.kind,
                    all: combine.all,
                    sides,
                    slot: combine.slot,
                };
                Ok(self.finish(node, outputs, Tail::of(query, TailOrder::Unsorted), rows))
            }
        }
    }

    fn select(
        &self,
        select: &Select,
        query: &Query,
        outside: &Slots,
        few: bool,
    ) -> Result<QueryPlan> {
        let plain = select.group.is_none() && !select.distinct && select.windows.is_none();
        let order = if plain { &query.order[..] } else { &[] };
        // Groups and windows need all rows, whatever the limit.
        let few = few && select.group.is_none() && select.windows.is_none();
        if let Some(plan) = self.min_max_from_index(select, query, outside)? {
            return Ok(plan);
        }
        self.note_needs(select, query);
        let members = match &select.for_update {
            None => MemberUse::Joined,
            Some(_) => MemberUse::Checked,
        };
        let joined = match self.semi_join(select, query, outside)? {
            Some(joined) => joined,
            None => self.rows_of(
                select.from.as_ref(),
                &select.filter,
                &select.subqueries,
                outside,
                order,
                RowGoal::from(few),
                members,
            )?,
        };
        let joined = match few {
            true => joined,
            false => self.with_vectorized_input(joined, select, outside)?,
        };
        let PlannedRows { mut node, mut rows, mut ordered, .. } = joined;
        if let Some(lock) = &select.for_update {
            node = self.locked(node, select, lock);
        }
        if let Some(group) = &select.group {
            let (slot, keys) = (group.slot, group.keys.clone());
            let keys_are_none = keys.is_empty() && group.sets.is_empty();
            rows = if keys_are_none { 1.0 } else { (rows / 10.0).max(1.0) };
            node = PlanNode::Group {
                input: Box::new(node),
                slot,
                keys,
                sets: group.sets.clone(),
                aggregates: group.aggregates.clone(),
            };
            let answers = Subquery::answers(&group.subqueries);
            let (after, before): (Vec<Expr>, Vec<Expr>) =
                group.having.iter().cloned().partition(|part| part.slots().meets(&answers));
            if !keys_are_none {
                rows = (rows * before.iter().map(selectivity).product::<f64>()).max(1.0);
            }
            if let Some(condition) = Expr::all(before) {
                node = PlanNode::Filter { input: Box::new(node), condition };
            }
            let mut around = Slots::one(group.slot);
            let mut after = after;
            for subquery in self.in_order_of_evaluation(&group.subqueries, &after, &around) {
                let asking = (!keys_are_none).then_some(rows);
                let (query, hash) = self.plan_subquery(subquery, &around, outside, asking)?;
                let once = !subquery.reads.meets(&around);
                let kept = query.rows;
                node = PlanNode::Subquery {
                    input: Box::new(node),
                    query: Box::new(query),
                    slot: subquery.slot,
                    kind: subquery.kind.clone(),
                    once,
                    hash,
                    needed: self.needs.of(subquery.slot, &(&around | outside)),
                };
                around.insert(subquery.slot);
                let known = &around | outside;
                (node, rows) = self.checked_early(node, rows, &mut after, &known, subquery, kept);
            }
            if let Some(condition) = Expr::all(after) {
                node = PlanNode::Filter { input: Box::new(node), condition };
            }
            ordered = false;
        }
        if let Some(windows) = &select.windows {
            return Ok(self.windowed(node, select, windows, query, rows));
        }
        let outputs = select.outputs.clone();
        if select.distinct {
            // The row stays in its slots, and the outputs read it there.
            node = PlanNode::Distinct { input: Box::new(node), outputs: outputs.clone() };
        }
        Ok(self.finish(node, outputs, Tail::of(query, TailOrder::from(ordered)), rows))
    }

    /// The least or greatest value of a column is the first entry of an index.
    fn min_max_from_index(
        &self,
        select: &Select,
        query: &Query,
        outside: &Slots,
    ) -> Result<Option<QueryPlan>> {
        let (Some(group), Some(From::Table(slot))) = (&select.group, &select.from) else {
            return Ok(None);
        };
        let [Aggregate { kind, argument: Some(column), filter: None, .. }] = &group.aggregates[..]
        else {
            return Ok(None);
        };
        let Some(at) = column.without_sort_key().as_column() else { return Ok(None) };
        let descending = match kind {
            AggregateKind::Minimum => false,
            AggregateKind::Maximum => true,
            _ => return Ok(None),
        };
        let of_slot = at.slot == *slot && matches!(self.slots[*slot].source, Source::Table(_));
        if !group.keys.is_empty()
            || !group.sets.is_empty()
            || !of_slot
            || select.windows.is_some()
            || !select.subqueries.is_empty()
            || !group.subqueries.is_empty()
        {
            return Ok(None);
        }
        let key = OrderKey { expr: column.clone(), output: None, descending, nulls_first: false };
        let from = From::Table(*slot);
        let joined = self.joins(&from, select.filter.clone(), outside, &[key], RowGoal::Few)?;
        if !joined.ordered {
            return Ok(None);
        }
        let one = Expr::Constant(Value::BigInt(1));
        let first = PlanNode::Limit {
            input: Box::new(joined.node),
            limit: Some(one),
            offset: None,
            ties: Vec::new(),
        };
        let mut node = PlanNode::Group {
            input: Box::new(first),
            slot: group.slot,
            keys: Vec::new(),
            sets: Vec::new(),
            aggregates: group.aggregates.clone(),
        };
        if let Some(condition) = Expr::all(group.having.clone()) {
            node = PlanNode::Filter { input: Box::new(node), condition };
        }
        Ok(Some(self.finish(
            node,
            select.outputs.clone(),
            Tail::of(query, TailOrder::Unsorted),
            1.0,
        )))
    }

    /// Plans FROM, WHERE and the subqueries. `members` tells what may be done with the rows of
    /// subqueries.
    #[allow(clippy::too_many_arguments)]
    pub fn rows_of(
        &self,
        from: Option<&From>,
        filter: &[Expr],
        subqueries: &[Subquery],
        outside: &Slots,
        order: &[OrderKey],
        goal: RowGoal,
        members: MemberUse,
    ) -> Result<PlannedRows> {
        let few = goal == RowGoal::Few;
        self.below(subqueries.len(), || {
            self.rows_below(from, filter, subqueries, outside, order, few, members)
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn rows_below(
        &self,
        from: Option<&From>,
        filter: &[Expr],
        subqueries: &[Subquery],
        outside: &Slots,
        order: &[OrderKey],
        few: bool,
        members: MemberUse,
    ) -> Result<PlannedRows> {
        let answers = Subquery::answers(subqueries);
        let (mut after, before): (Vec<Expr>, Vec<Expr>) =
            filter.iter().cloned().partition(|conjunct| conjunct.slots().meets(&answers));
        let from = from.map(|from| without_answers(from, &answers, &mut after));
        let subqueries = &self.without_asked(from.as_ref(), subqueries)[..];
        let mut answered: Vec<Expr> = Vec::new();
        let (PlannedRows { mut node, mut rows, cost, mut ordered }, mut around) = match from {
            None => {
                let mut node = PlanNode::SingleRow;
                if let Some(condition) = Expr::all(before) {
                    node = PlanNode::Filter { input: Box::new(node), condition };
                }
                let one = PlannedRows { node, rows: 1.0, cost: 1.0, ordered: true };
                (one, Slots::default())
            }
            Some(from) => {
                let own = if subqueries.is_empty() { Vec::new() } else { before.clone() };
                let joined = self.joins(&from, before, outside, order, RowGoal::from(few))?;
                let is_first_only = few && !order.is_empty();
                let members =
                    match subqueries.is_empty() || is_first_only || members != MemberUse::Joined {
                        true => None,
                        false => self.joined_with_members(
                            &from, own, &after, subqueries, outside, &joined,
                        )?,
                    };
                match members {
                    Some(members) => {
                        answered = members.answered;
                        after.retain(|conjunct| !answered.contains(conjunct));
                        let joined = members.joined.into_planned();
                        (PlannedRows { ordered: false, ..joined }, members.slots)
                    }
                    None => (joined.into_planned(), from.slots()),
                }
            }
        };
        let is_open = |subquery: &&Subquery| !answered.contains(&Expr::column(subquery.slot, 0));
        let ordered_subqueries = self.in_order_of_evaluation(subqueries, &after, &around);
        for subquery in ordered_subqueries.into_iter().filter(is_open) {
            if !few && members != MemberUse::Checked {
                let asked = (subquery, &after[..]);
                if let Some(join) = self.tested_by_join(&node, rows, asked, &around, outside)? {
                    after.retain(|part| !part.slots().contains(subquery.slot));
                    (node, rows, ordered) = (join, (rows * SUBQUERY_SELECTIVITY).max(1.0), false);
                    continue;
                }
            }
            let asking = (!is_single(&node)).then_some(rows);
            let (query, hash) = self.plan_subquery(subquery, &around, outside, asking)?;
            let once = !subquery.reads.meets(&around);
            let needed = self.needs.of(subquery.slot, &(&around | outside));
            around.insert(subquery.slot);
            let kept = query.rows;
            node = PlanNode::Subquery {
                input: Box::new(node),
                query: Box::new(query),
                slot: subquery.slot,
                kind: subquery.kind.clone(),
                once,
                hash,
                needed,
            };
            (node, rows) =
                self.checked_early(node, rows, &mut after, &(&around | outside), subquery, kept);
        }
        if let Some(condition) = Expr::all(after) {
            rows *= 0.5;
            node = PlanNode::Filter { input: Box::new(node), condition };
        }
        Ok(PlannedRows { node, rows, cost, ordered })
    }

    /// Checks the conditions of `after` that read `known` slots only, as a row that fails one needs
    /// no answers of further subqueries. `kept` rows of the subquery are expected.
    fn checked_early(
        &self,
        node: PlanNode,
        mut rows: f64,
        after: &mut Vec<Expr>,
        known: &Slots,
        subquery: &Subquery,
        kept: f64,
    ) -> (PlanNode, f64) {
        let (ready, later): (Vec<Expr>, Vec<Expr>) =
            after.drain(..).partition(|conjunct| conjunct.slots().is_within(known));
        *after = later;
        for conjunct in &ready {
            rows *= self.answer_selectivity(conjunct, &subquery.kind, kept);
        }
        match Expr::all(ready) {
            Some(condition) => {
                (PlanNode::Filter { input: Box::new(node), condition }, rows.max(1.0))
            }
            None => (node, rows),
        }
    }

    /// Notes when the answers of the subqueries of a SELECT are needed. Rows that are locked are
    /// checked again with the answers that they have.
    fn note_needs(&self, select: &Select, query: &Query) {
        let of_groups = select.group.iter().flat_map(|group| &group.subqueries);
        let subqueries: Vec<&Subquery> = select.subqueries.iter().chain(of_groups).collect();
        if !subqueries.is_empty() && select.for_update.is_none() {
            self.needs.note_query(query, &subqueries);
        }
    }

    /// Returns subqueries in the order in which they are evaluated: those first that the conditions
    /// read, then those of the values of the rows that meet them. Of both, those come first that do
    /// not read the rows around, as they are read once. A subquery comes after those whose answers
    /// it reads. Volatile subqueries stay in their order.
    fn in_order_of_evaluation<'s>(
        &self,
        subqueries: &'s [Subquery],
        conditions: &[Expr],
        around: &Slots,
    ) -> Vec<&'s Subquery> {
        if subqueries.len() < 2 {
            return subqueries.iter().collect();
        }
        let mut tested = Slots::default();
        conditions.iter().for_each(|condition| tested.extend(&condition.slots()));
        for subquery in subqueries.iter().rev() {
            if tested.contains(subquery.slot) {
                tested.extend(&subquery.reads);
            }
        }
        let (mut all, of_values): (Vec<&Subquery>, Vec<&Subquery>) =
            subqueries.iter().partition(|subquery| tested.contains(subquery.slot));
        all.extend(of_values);
        let is_volatile = |subquery: &&Subquery| {
            let mut volatile = false;
            subquery.query.each_expression(&mut |expr| volatile |= expr.is_volatile());
            volatile
        };
        if all.iter().any(is_volatile) {
            return all;
        }
        let answers = Subquery::answers(subqueries);
        all.sort_by_key(|subquery| {
            let is_alone = !subquery.query.reads().meets(around)
                && !subquery.reads.meets(&answers)
                && !self.needs.reads(subquery.slot, &answers);
            (!tested.contains(subquery.slot), !is_alone)
        });
        all
    }

    fn locked(&self, node: PlanNode, select: &Select, lock: &RowLock) -> PlanNode {
        let mut tables = Vec::new();
        let read = select.from.as_ref().map(From::slots).unwrap_or_default();
        for (slot, shape) in self.slots.iter().enumerate().filter(|(slot, _)| read.contains(*slot))
        {
            if let Source::Table(table) = &shape.source
                && (lock.of.is_empty() || lock.of.contains(&slot))
            {
                tables.push((slot, table.clone()));
            }
        }
        let mut node = node;
        let numbers: Vec<usize> = tables.iter().map(|(slot, _)| *slot).collect();
        request_row_keys(&mut node, &numbers);
        let recheck = Expr::all(select.filter.clone());
        PlanNode::LockRows { input: Box::new(node), tables, recheck, wait: lock.wait }
    }
}

/// Returns FROM without the inner-join conditions that read answers of subqueries. Those move to
/// `after`, as answers exist only above the joins. Conditions of outer joins, and of the joins on
/// their sides, stay.
fn without_answers(from: &From, answers: &Slots, after: &mut Vec<Expr>) -> From {
    let From::Join { kind, left, right, on } = from else { return from.clone() };
    if *kind == JoinKind::Inner {
        let (late, on): (Vec<Expr>, Vec<Expr>) =
            on.iter().cloned().partition(|conjunct| conjunct.slots().meets(answers));
        after.extend(late);
        let left = Box::new(without_answers(left, answers, after));
        let right = Box::new(without_answers(right, answers, after));
        return From::Join { kind: *kind, left, right, on };
    }
    from.clone()
}

/// The first columns of a slot.
fn columns_of(slot: usize, width: usize) -> Vec<Expr> {
    (0..width).map(|column| Expr::column(slot, column)).collect()
}

/// Asks for the keys of all rows of tables, for a cursor.
pub fn keep_row_keys(node: &mut PlanNode, slots: usize) {
    let all: Vec<usize> = (0..slots).collect();
    request_row_keys(node, &all);
}

/// Asks for the keys of the rows in these slots.
pub(in crate::plan) fn request_row_keys(node: &mut PlanNode, slots: &[usize]) {
    match node {
        PlanNode::Table(access) => access.keys |= slots.contains(&access.slot),
        PlanNode::Filter { input, .. }
        | PlanNode::Subquery { input, .. }
        | PlanNode::Limit { input, .. }
        | PlanNode::Sort { input, .. }
        | PlanNode::LockRows { input, .. } => request_row_keys(input, slots),
        PlanNode::NestedLoop { outer, inner, guard, .. } => {
            request_row_keys(outer, slots);
            request_row_keys(inner, slots);
            if let Some(guard) = guard {
                request_row_keys(&mut guard.join.inner, slots);
            }
        }
        PlanNode::HashJoin(join) => {
            request_row_keys(&mut join.outer, slots);
            request_row_keys(&mut join.inner, slots);
        }
        _ => {}
    }
}

/// Whether at most one row comes out, found by a key.
pub(in crate::plan) fn is_single(node: &PlanNode) -> bool {
    match node {
        PlanNode::SingleRow => true,
        PlanNode::Table(access) => access.is_single(),
        PlanNode::Filter { input, .. } | PlanNode::Subquery { input, .. } => is_single(input),
        PlanNode::NestedLoop { outer, inner, join: Join::Inner | Join::Left, .. } => {
            is_single(outer) && is_single(inner)
        }
        _ => false,
    }
}
