//! Pull-up: a query in FROM that only selects from other relations becomes part of the query around
//! it, so that its tables take part in the choice of the join order and of access paths.
//!
//! - PULL-1: the conditions of a query on the inner side of an outer join move to ON. Such a query
//!   is pulled up only if all its outputs are its own columns, which are NULL where no row matches.
//! - PULL-2: a query whose slots another query fills too stays where it is. References to one
//!   common table expression may share their slots.

use std::collections::HashMap;
use std::sync::Arc;

use quickbeam::invariant;

use crate::bind::{Body, Derived, From, JoinKind, PartMut, Query, QueryPart, Select};
use crate::expression::{Expr, Slots};
use crate::plan::cost::MOST_ORDERED;

/// The side of outer joins on which a query in FROM is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OuterJoinSide {
    /// An outer join may return NULLs instead of its rows.
    Nullable,
    /// Its rows are returned as they are.
    Kept,
}

/// Pulls up the queries in FROM of a query and of its nested queries. `is_typed` tells whether the
/// planner can derive the type of an expression, which the keys of a join need.
pub fn pull_up_queries(query: &mut Query, is_typed: &dyn Fn(&Expr) -> bool) {
    let mut owners = HashMap::new();
    count_owners(query, &mut owners);
    PullUp { owners, is_typed }.rewrite(query);
}

/// A query that was pulled up: the slot of its rows, and its outputs.
type PulledUp = (usize, Vec<Expr>);

struct PullUp<'t> {
    /// How many queries fill each slot.
    owners: HashMap<usize, usize>,
    is_typed: &'t dyn Fn(&Expr) -> bool,
}

fn count_owners(query: &Query, owners: &mut HashMap<usize, usize>) {
    if let Body::Select(select) = &query.body
        && let Some(from) = &select.from
    {
        from.slots().iter().for_each(|slot| *owners.entry(slot).or_default() += 1);
    }
    query.each_part(&mut |part| match part {
        QueryPart::Expr(_) | QueryPart::Stored(_) => {}
        QueryPart::Subquery(subquery) => count_owners(&subquery.query, owners),
        QueryPart::Derived(derived) => count_owners(&derived.query, owners),
        QueryPart::Side(side) => count_owners(side, owners),
    });
}

impl PullUp<'_> {
    fn rewrite(&self, query: &mut Query) {
        query.each_part_mut(&mut |part| match part {
            PartMut::Expr(_) => {}
            PartMut::Side(side) => self.rewrite(side),
            PartMut::Subquery(subquery) => {
                self.rewrite(Arc::make_mut(&mut subquery.query));
                subquery.find_reads();
            }
            PartMut::Derived(derived) => {
                self.rewrite(Arc::make_mut(&mut derived.query));
                derived.reads = derived.query.reads();
            }
        });
        while let Some((slot, outputs)) = self.take_one(query) {
            query.replace_columns(slot, &outputs);
        }
    }

    /// Replaces one query in FROM by its relations.
    fn take_one(&self, query: &mut Query) -> Option<PulledUp> {
        let Body::Select(select) = &mut query.body else { return None };
        // A row lock on the query around would lock the rows of the tables too.
        if select.for_update.is_some() {
            return None;
        }
        let from = select.from.as_mut()?;
        let room = (MOST_ORDERED + 1).checked_sub(from.slots().iter().count())?;
        let relations = from.slots().iter().count();
        let pulled_up = self.take_from(from, &mut select.filter, OuterJoinSide::Kept, room);
        let is_apart = || {
            let left = from.slots();
            let is_gone = pulled_up.as_ref().is_none_or(|(slot, _)| !left.contains(*slot));
            is_gone && left.iter().count() >= relations
        };
        invariant!(PULL_2, is_apart(), "{relations} relations became {:?}", from.slots());
        pulled_up
    }

    /// Replaces one query in `from` by its relations, and puts its conditions before those of
    /// `above`. `is_nullable` tells whether an outer join may return NULLs instead of its rows.
    fn take_from(
        &self,
        from: &mut From,
        above: &mut Vec<Expr>,
        side: OuterJoinSide,
        room: usize,
    ) -> Option<PulledUp> {
        let is_nullable = side == OuterJoinSide::Nullable;
        match from {
            From::Table(_) => None,
            From::Query(derived) => {
                let select = self.pullable(derived, is_nullable, room)?;
                let (slot, outputs) = (derived.slot, select.outputs.clone());
                let are_columns = || outputs.iter().all(|output| output.as_column().is_some());
                invariant!(PULL_1, are_columns() || !is_nullable, "{outputs:?} would not be NULL");
                above.splice(0..0, select.filter.iter().cloned());
                *from = select.from.clone()?;
                Some((slot, outputs))
            }
            From::Join { kind: JoinKind::Inner, left, right, .. } => self
                .take_from(left, above, side, room)
                .or_else(|| self.take_from(right, above, side, room)),
            From::Join { kind: JoinKind::Left, left, right, on } => self
                .take_from(left, above, side, room)
                .or_else(|| self.take_from(right, on, OuterJoinSide::Nullable, room)),
            From::Join { kind: JoinKind::Full, .. } => None,
        }
    }

    /// Returns the SELECT of a query that can be pulled up, whose relations are at most `room`.
    fn pullable<'d>(
        &self,
        derived: &'d Derived,
        is_nullable: bool,
        room: usize,
    ) -> Option<&'d Select> {
        let query = &derived.query;
        let Body::Select(select) = &query.body else { return None };
        let has_tail = !query.order.is_empty() || query.limit.is_some() || query.offset.is_some();
        let is_plain = query.with.is_empty()
            && !has_tail
            && select.group.is_none()
            && select.windows.is_none()
            && !select.distinct
            && select.distinct_on.is_empty()
            && select.subqueries.is_empty()
            && select.for_update.is_none();
        let own = select.from.as_ref()?.slots();
        let is_owner = |slot: usize| self.owners.get(&slot) == Some(&1);
        let is_alone = is_owner(derived.slot) && own.iter().all(is_owner);
        let mut exprs = select.outputs.iter().chain(&select.filter);
        let is_stable = exprs.all(|expr| !expr.is_volatile());
        let fits = own.iter().count() <= room;
        let is_typed = select.outputs.iter().all(|output| (self.is_typed)(output));
        let may_be_null = derived.reads.is_empty()
            && select.outputs.iter().all(|output| is_column_of(output, &own));
        let is_pullable = is_plain && is_alone && is_stable && fits && is_typed;
        (is_pullable && (!is_nullable || may_be_null)).then_some(select)
    }
}

fn is_column_of(expr: &Expr, slots: &Slots) -> bool {
    expr.as_column().is_some_and(|column| slots.contains(column.slot))
}
