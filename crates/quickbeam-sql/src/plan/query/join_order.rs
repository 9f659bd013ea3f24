//! Join order by dynamic programming.
//!
//! The cheapest way to join each connected set of items is found from those of the sets with one
//! item less (P. G. Selinger et al., "Access Path Selection in a Relational Database Management
//! System", SIGMOD 1979). Only costs and row counts are kept; the plan is built afterwards, along
//! the best order.

use std::collections::HashMap;

use super::cardinality::unknown_join_rows;
use super::join::{JoinItem, JoinSide};
use super::select::Planner;
use crate::bind::Source;
use crate::expression::{Comparison, Expr, Slots};
use crate::plan::cost::{HASH_BUILD_COST, HASH_PROBE_COST, MOST_ORDERED};
use crate::plan::rewrite::equalities::KnownEqualities;
use crate::plan::{AccessPath, PlanNode, TurnedOff};

/// A condition between items.
struct Edge<'c> {
    /// The items that it reads, a bit each.
    items: u32,
    /// The items of its sides, if it is an equality whose sides can be hash keys.
    sides: Option<[(u32, &'c Expr); 2]>,
}

/// The best way to join a set of items.
#[derive(Clone, Copy)]
struct Best {
    cost: f64,
    rows: f64,
    /// The item joined last.
    last: usize,
    /// The number of cross products, which come last.
    products: u32,
}

/// An access by key or index for each outer row: its cost and its rows.
type Lookup = Option<(f64, f64)>;

struct Search<'s, 'p, 'f> {
    planner: &'s Planner<'p>,
    items: &'s [(JoinItem<'f>, JoinSide, Slots)],
    conjuncts: &'s [Expr],
    /// The slots of each item.
    sets: Vec<Slots>,
    edges: Vec<Edge<'s>>,
    /// For each item the numbers of the conditions between it and others.
    edges_of: Vec<Vec<usize>>,
    equalities: KnownEqualities,
    outside: &'s Slots,
    /// Lookups, by item and the conditions that they can use.
    lookups: HashMap<(usize, Vec<usize>), Lookup>,
    /// Selectivities of keys, by conditions.
    selectivities: HashMap<Vec<usize>, Option<f64>>,
}

impl Planner<'_> {
    /// Returns the cheapest order of the items, if they are few enough and none reads another.
    pub(super) fn join_order(
        &self,
        items: &[(JoinItem<'_>, JoinSide, Slots)],
        conjuncts: &[Expr],
        outside: &Slots,
    ) -> Option<Vec<usize>> {
        // The loop that takes the cheapest next item is as good for two, and faster.
        let fewest = if self.off.get() == TurnedOff::default() { 3 } else { 2 };
        let is_free = items.iter().all(|(_, _, needs)| needs.is_empty());
        if items.len() < fewest || items.len() > MOST_ORDERED || !is_free {
            return None;
        }
        let sets: Vec<Slots> = items.iter().map(|(item, ..)| item.set()).collect();
        let mask = |slots: &Slots| {
            let bits = sets.iter().enumerate().filter(|(_, set)| set.meets(slots));
            bits.fold(0_u32, |mask, (number, _)| mask | 1 << number)
        };
        let edges = conjuncts.iter().map(|conjunct| {
            let sides = match conjunct {
                Expr::Compare(Comparison::Equal, pair) if self.hash_alike(&pair[0], &pair[1]) => {
                    Some([&pair[0], &pair[1]].map(|side| (mask(&side.slots()), side)))
                }
                _ => None,
            };
            Edge { items: mask(&conjunct.slots()), sides }
        });
        let edges: Vec<Edge<'_>> = edges.collect();
        let edges_of = (0..items.len()).map(|item| {
            let is_between = |edge: &Edge<'_>| edge.items.count_ones() > 1;
            let numbered = edges.iter().enumerate();
            let own = numbered.filter(|(_, edge)| edge.items & 1 << item != 0 && is_between(edge));
            own.map(|(number, _)| number).collect()
        });
        let edges_of = edges_of.collect();
        let (lookups, selectivities) = (HashMap::new(), HashMap::new());
        let equalities = KnownEqualities::of(conjuncts);
        let mut search = Search {
            planner: self,
            items,
            conjuncts,
            sets,
            edges,
            edges_of,
            equalities,
            outside,
            lookups,
            selectivities,
        };
        search.run()
    }
}

impl<'s> Search<'s, '_, '_> {
    fn run(&mut self) -> Option<Vec<usize>> {
        let count = self.items.len();
        let mut best: Vec<Option<Best>> = vec![None; 1 << count];
        for (number, (_, alone, _)) in self.items.iter().enumerate() {
            let one = Best { cost: alone.cost, rows: alone.rows, last: number, products: 0 };
            *best.get_mut(1 << number)? = Some(one);
        }
        let all = (1_u32 << count) - 1;
        let neighbors = self.neighbors();
        for joined in 1..=all {
            let Some(outer) = *best.get(joined as usize)? else { continue };
            let reached = neighbors.as_ref().map_or(all, |all| union(all, joined));
            for next in (0..count).filter(|next| reached & !joined & (1 << next) != 0) {
                let found = self.extended(joined, &outer, next);
                let place = best.get_mut((joined | 1 << next) as usize)?;
                let is_better =
                    |known: &Best| (found.products, found.cost) < (known.products, known.cost);
                if place.as_ref().is_none_or(is_better) {
                    *place = Some(found);
                }
            }
        }
        let mut order = Vec::with_capacity(count);
        let mut left = all;
        while left != 0 {
            let last = best.get(left as usize)?.as_ref()?.last;
            order.push(last);
            left &= !(1 << last);
        }
        order.reverse();
        Some(order)
    }

    /// Returns the items with which conditions connect each item. Cross products are not needed
    /// then: they come last, and there are orders without. Returns `None` if conditions do not
    /// connect all items, or one of them reads more than two.
    fn neighbors(&self) -> Option<Vec<u32>> {
        let mut neighbors = Vec::with_capacity(self.items.len());
        for (item, own) in self.edges_of.iter().enumerate() {
            let mut found = 0;
            for edge in own.iter().filter_map(|number| self.edges.get(*number)) {
                if edge.items.count_ones() > 2 {
                    return None;
                }
                found |= edge.items & !(1 << item);
            }
            neighbors.push(found);
        }
        let mut reached = 1;
        loop {
            let more = reached | union(&neighbors, reached);
            if more == reached {
                break;
            }
            reached = more;
        }
        (reached.count_ones() as usize == self.items.len()).then_some(neighbors)
    }

    /// The set `joined`, with one more item.
    fn extended(&mut self, joined: u32, outer: &Best, next: usize) -> Best {
        let bit = 1_u32 << next;
        let mut between = Vec::new();
        let mut keys = Vec::new();
        let mut earlier: Vec<&Expr> = Vec::new();
        let own = self.sets.get(next);
        for number in self.edges_of.get(next).into_iter().flatten().copied() {
            let (Some(edge), Some(conjunct)) = (self.edges.get(number), self.conjuncts.get(number))
            else {
                continue;
            };
            if edge.items & !(joined | bit) != 0 {
                continue;
            }
            if own.is_some_and(|own| self.equalities.implies(&earlier, conjunct, own)) {
                continue;
            }
            earlier.push(conjunct);
            between.push(number);
            if let Some([(left, _), (right, _)]) = edge.sides
                && (left == bit && right & bit == 0 || right == bit && left & bit == 0)
            {
                keys.push(number);
            }
        }
        let products = outer.products + u32::from(between.is_empty());
        let Some((_, inner, _)) = self.items.get(next) else { return *outer };
        let by_hash = match keys.is_empty() {
            true => outer.rows * inner.rows,
            false => match self.selectivity(&keys, bit) {
                Some(part) => (outer.rows * inner.rows * part).max(1.0),
                None => unknown_join_rows(outer.rows, inner.rows, keys.len()),
            },
        };
        let is_table = matches!(inner.node, PlanNode::Table(_));
        let mut rows = by_hash;
        let mut cost = match keys.is_empty() {
            true if is_table => outer.rows.max(1.0) * inner.cost,
            true => inner.cost + outer.rows * inner.rows,
            false => {
                let (few, many) = (outer.rows.min(inner.rows), outer.rows.max(inner.rows));
                let many_is_table = match inner.rows > outer.rows {
                    true => is_table,
                    false => joined.is_power_of_two() && self.is_table(outer.last),
                };
                let probed = if many_is_table { few } else { many };
                inner.cost + few * HASH_BUILD_COST + probed * HASH_PROBE_COST
            }
        };
        if !keys.is_empty() {
            cost += self.planner.off.get().cost_of_hash_join();
        }
        if let Some((each, found)) = self.lookup(next, between) {
            rows = rows.min((outer.rows * found).max(1.0));
            let looped = outer.rows.max(1.0) * each + self.planner.off.get().cost_of_nested_loop();
            cost = cost.min(looped);
        }
        // The rows themselves are handed on.
        Best { cost: outer.cost + cost + rows * 0.1, rows, last: next, products }
    }

    fn is_table(&self, item: usize) -> bool {
        self.items.get(item).is_some_and(|(_, side, _)| matches!(side.node, PlanNode::Table(_)))
    }

    fn selectivity(&mut self, keys: &[usize], inner: u32) -> Option<f64> {
        if let Some(known) = self.selectivities.get(keys) {
            return *known;
        }
        let pairs: Vec<(&Expr, &Expr)> = keys
            .iter()
            .filter_map(|number| self.edges.get(*number)?.sides)
            .map(|[a, b]| if b.0 == inner { (a.1, b.1) } else { (b.1, a.1) })
            .collect();
        let part = self.planner.key_selectivity(&pairs);
        self.selectivities.insert(keys.to_vec(), part);
        part
    }

    /// The lookup of a table's rows by these conditions.
    fn lookup(&mut self, item: usize, between: Vec<usize>) -> Lookup {
        if between.is_empty() {
            return None;
        }
        let key = (item, between);
        if let Some(known) = self.lookups.get(&key) {
            return *known;
        }
        let found = self.find_lookup(item, &key.1);
        self.lookups.insert(key, found);
        found
    }

    fn find_lookup(&self, item: usize, between: &[usize]) -> Lookup {
        let (JoinItem::Table(slot), ..) = self.items.get(item)? else { return None };
        let planner = self.planner;
        let Source::Table(table) = &planner.slots.get(*slot)?.source else { return None };
        let own = Slots::one(*slot);
        let mut known = self.outside.clone();
        let mut relevant = Vec::new();
        for conjunct in between.iter().filter_map(|number| self.conjuncts.get(*number)) {
            known.extend(&conjunct.slots());
            relevant.push(conjunct.clone());
        }
        known.remove(&own);
        let alone = self.conjuncts.iter().filter(|conjunct| {
            let slots = conjunct.slots();
            slots.meets(&own) && slots.is_within(&(&own | self.outside))
        });
        relevant.extend(alone.cloned());
        let (access, _, cost) = planner.lookup_path(table, *slot, &relevant, &known);
        (!matches!(access.path, AccessPath::All)).then_some((cost, access.rows))
    }
}

/// Returns the union of the sets of these items.
fn union(sets: &[u32], items: u32) -> u32 {
    let of = |(item, set): (usize, &u32)| if items & 1 << item != 0 { *set } else { 0 };
    sets.iter().enumerate().map(of).fold(0, |all, set| all | set)
}
