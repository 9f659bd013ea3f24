//! Access paths: the choice of key or index for the rows of one table.

mod collated_keys;
mod computed_indexes;
mod inverted;

use crate::plan::cost::{
    DEFAULT_EQ_SELECTIVITY, DEFAULT_INEQ_SELECTIVITY, DEFAULT_LIKE_SELECTIVITY,
    DEFAULT_RANGE_SELECTIVITY, DEFAULT_SELECTIVITY, ELEMENTS, FETCH_COST, HASH_LOOKUP_COST,
    LOOKUP_COST, MIN_ROWS_FOR_ESTIMATE, MIN_TABLE_ROWS,
};
use std::sync::Arc;

use self::collated_keys::IndexedRows;
use self::computed_indexes::{ComputedIndex, computed_indexes, key_positions};
use self::inverted::InvertedSearch;
use super::in_list::{InListKeys, find_in_list};
use super::{AccessPath, KeyRangeExpr, Statistics, TableAccess, TurnedOff};
use crate::bind::OrderKey;
use crate::catalog::{Index, Method, Table};
use crate::expression::{Comparison, Expr, Slots, implies};
use crate::types::{DataType, Value};

/// A condition that compares a column with something that does not depend on the table.
#[derive(Clone, Copy)]
struct Sarg<'e> {
    /// Its number among the conditions.
    number: usize,
    column: usize,
    comparison: Comparison,
    value: &'e Expr,
}

/// Returns the column that a side of a comparison is. A CHAR is compared, and stored in keys,
/// without trailing blanks.
pub(super) fn column_of(expr: &Expr, slot: usize, table: &Table) -> Option<usize> {
    let is_char = |column: usize| {
        table.columns.get(column).map(|known| matches!(known.data_type, DataType::Char(_)))
    };
    match expr {
        Expr::Column(column) if column.slot == slot => {
            (!is_char(column.column)?).then_some(column.column)
        }
        Expr::Trimmed(inner) => {
            let column = inner.as_column().filter(|column| column.slot == slot)?.column;
            is_char(column)?.then_some(column)
        }
        _ => None,
    }
}

fn sargs<'e>(
    conjuncts: &'e [Expr],
    rows: IndexedRows<'_>,
    wish: &PathRequest<'_>,
) -> Vec<Sarg<'e>> {
    let mut found = Vec::new();
    for (number, conjunct) in conjuncts.iter().enumerate() {
        let Expr::Compare(comparison, pair) = conjunct else { continue };
        let [left, right] = &**pair;
        let sides = [(left, right, *comparison), (right, left, comparison.flipped())];
        for (side, value, comparison) in sides {
            let columns = rows.positions(side, comparison);
            if !columns.is_empty() && rows.gives(wish, side, value) {
                let sarg = |column| Sarg { number, column, comparison, value };
                found.extend(columns.into_iter().map(sarg));
                break;
            }
        }
    }
    found
}

/// Returns the key range that the conditions give, its selectivity, and the conditions that the
/// range implies.
fn range_of(columns: &[usize], sargs: &[Sarg<'_>]) -> (KeyRangeExpr, f64, Vec<usize>) {
    let mut range = KeyRangeExpr::default();
    let mut part = 1.0;
    let mut used = Vec::new();
    for &column in columns {
        let on = |wanted: &dyn Fn(Comparison) -> bool| {
            sargs.iter().find(|sarg| sarg.column == column && wanted(sarg.comparison))
        };
        if let Some(sarg) = on(&|comparison| comparison == Comparison::Equal) {
            range.equal.push(sarg.value.clone());
            used.push(sarg.number);
            part *= DEFAULT_EQ_SELECTIVITY;
            continue;
        }
        let lower = on(&|c| matches!(c, Comparison::Greater | Comparison::GreaterOrEqual));
        let upper = on(&|c| matches!(c, Comparison::Less | Comparison::LessOrEqual));
        used.extend(lower.iter().chain(&upper).map(|sarg| sarg.number));
        range.lower = lower.map(|s| (s.value.clone(), s.comparison == Comparison::GreaterOrEqual));
        range.upper = upper.map(|s| (s.value.clone(), s.comparison == Comparison::LessOrEqual));
        part *= range.part_of_bounds();
        break;
    }
    (range, part, used)
}

impl KeyRangeExpr {
    /// Whether it is narrower than everything.
    pub fn is_bounded(&self) -> bool {
        !self.equal.is_empty() || self.lower.is_some() || self.upper.is_some()
    }

    /// Returns the default selectivity of the bounds.
    fn part_of_bounds(&self) -> f64 {
        match (&self.lower, &self.upper) {
            (Some(_), Some(_)) => DEFAULT_RANGE_SELECTIVITY,
            (None, None) => 1.0,
            _ => DEFAULT_INEQ_SELECTIVITY,
        }
    }
}

impl TableAccess {
    /// Whether at most one row is found, by a key.
    pub fn is_single(&self) -> bool {
        match &self.path {
            AccessPath::Key(_) | AccessPath::Cursor(_) => true,
            AccessPath::Index(number, range) => self
                .table
                .indexes
                .get(*number)
                .is_some_and(|index| index.unique && range.equal.len() == index.columns.len()),
            AccessPath::All | AccessPath::KeyRange(_) | AccessPath::Inverted(_) => false,
        }
    }
}

/// Returns the number of columns of the primary key, or of the index with that number, its access
/// method, and whether it is unique.
fn key_of(table: &Table, index: Option<usize>) -> Option<(usize, Method, bool)> {
    match index {
        None => table.primary_key.as_ref().map(|key| (key.columns.len(), key.method, true)),
        Some(number) => {
            table.indexes.get(number).map(|key| (key.columns.len(), key.method, key.unique))
        }
    }
}

/// Returns the default selectivity of a condition.
pub(super) fn selectivity(conjunct: &Expr) -> f64 {
    match conjunct {
        Expr::Compare(Comparison::Equal, _) => DEFAULT_EQ_SELECTIVITY,
        Expr::Compare(Comparison::NotEqual, _) => 0.9,
        Expr::Compare(..) => DEFAULT_INEQ_SELECTIVITY,
        Expr::Or(list) => list.iter().map(selectivity).sum::<f64>().min(1.0),
        Expr::InList(_, list, false) => (DEFAULT_EQ_SELECTIVITY * list.len() as f64).min(0.5),
        Expr::CompareElements(Comparison::Equal, _, true) => {
            (DEFAULT_EQ_SELECTIVITY * ELEMENTS).min(0.5)
        }
        Expr::InSet(_, set, false) => (DEFAULT_EQ_SELECTIVITY * set.len() as f64).min(0.5),
        Expr::And(list) => list.iter().map(selectivity).product(),
        Expr::Not(inner) => 1.0 - selectivity(inner).min(0.95),
        Expr::Like(_, _, false) => DEFAULT_LIKE_SELECTIVITY,
        Expr::Like(_, _, true) => 1.0 - DEFAULT_LIKE_SELECTIVITY,
        _ => DEFAULT_SELECTIVITY,
    }
}

/// A path with its cost and its properties.
struct Candidate {
    path: AccessPath,
    cost: f64,
    rows: f64,
    /// The sort order of the rows, with descending and NULLS FIRST of each column. Columns fixed by
    /// equality are left out.
    order: Vec<(usize, bool, bool)>,
    ordered: bool,
    /// Conditions that the path implies.
    used: Vec<usize>,
    /// Values for repeated lookups.
    members: Option<InListKeys>,
}

/// The inputs of the choice of a path.
pub(super) struct PathRequest<'w> {
    /// Slots that are bound when the table is read: outer rows.
    pub bound: &'w Slots,
    /// The requested order, if that order helps by itself.
    pub order: &'w [OrderKey],
    /// Whether only the first few rows are needed.
    pub few: bool,
    /// Whether a column and a value are of types whose keys are comparable.
    pub alike: &'w dyn Fn(&Expr, &Expr) -> bool,
    /// Estimates the fraction of rows for which all of several conditions hold.
    pub part_of_rows: &'w dyn Fn(&[&Expr]) -> f64,
    /// Returns the slot of the current value of an IN list, if rows are looked up by its values.
    pub values: &'w dyn Fn() -> usize,
    /// The plan steps that are turned off.
    pub off: TurnedOff,
}

impl PathRequest<'_> {
    /// Whether rows can be looked up by a value that a column is compared with.
    fn gives(&self, slot: usize, column: &Expr, value: &Expr) -> bool {
        self.is_given(slot, value) && (self.alike)(column, value)
    }

    /// Whether a value is known when the rows in a slot are read.
    fn is_given(&self, slot: usize, value: &Expr) -> bool {
        let reads = value.slots();
        reads.is_within(self.bound) && !reads.contains(slot) && !value.is_volatile()
    }
}

/// Returns the selectivity of a range of the primary key, or of an index, if it can be estimated.
type PartOf<'p> = &'p dyn Fn(Option<usize>, &KeyRangeExpr) -> Option<f64>;

/// Returns the selectivity of all conditions. For those that form a key or index range, the range
/// is sampled.
fn part_of_all(
    table: &Table,
    conjuncts: &[Expr],
    key_columns: &[usize],
    sargs: &[Sarg<'_>],
    part_of: PartOf<'_>,
    wish: &PathRequest<'_>,
) -> f64 {
    let known = |(number, columns): (Option<usize>, Vec<usize>)| {
        let (range, _, used) = range_of(&columns, sargs);
        Some((part_of(number, &range)?, used))
    };
    // The part of a partial index is not that of the table.
    let is_whole = |index: &Index| !index.is_partial() && index.inverted().is_none();
    let indexes = table.indexes.iter().enumerate().filter(|(_, index)| is_whole(index));
    let indexes = indexes.map(|(number, index)| (Some(number), key_positions(number, index)));
    let with_rest = |(part, used): (f64, Vec<usize>)| {
        let rest = conjuncts.iter().enumerate().filter(|(number, _)| !used.contains(number));
        let rest: Vec<&Expr> = rest.map(|(_, conjunct)| conjunct).collect();
        if rest.is_empty() { part } else { part * (wish.part_of_rows)(&rest) }
    };
    let parts = std::iter::once((None, key_columns.to_vec())).chain(indexes).filter_map(known);
    parts.map(with_rest).min_by(f64::total_cmp).unwrap_or_else(|| with_rest((1.0, Vec::new())))
}

fn candidates(
    table: &Table,
    conjuncts: &[Expr],
    computed: &[ComputedIndex],
    slot: usize,
    rows: f64,
    wish: &PathRequest<'_>,
    part_of: PartOf<'_>,
) -> Vec<Candidate> {
    let indexed = IndexedRows { table, slot, computed };
    let sargs = sargs(conjuncts, indexed, wish);
    let usable = Usable::of(table, conjuncts, computed, wish);
    let mut found = Vec::new();
    let key_columns = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns[..]);
    let all = rows * part_of_all(table, conjuncts, key_columns, &sargs, part_of, wish);
    let all = all.clamp(0.0, rows);
    let is_hash = table.primary_key.as_ref().is_some_and(|key| key.method == Method::Hash);
    let order = |columns: &[usize]| columns.iter().map(|&column| (column, false, false)).collect();
    found.push(Candidate {
        path: AccessPath::All,
        cost: rows.max(1.0) + 2.0,
        rows: all,
        order: if is_hash { Vec::new() } else { order(key_columns) },
        ordered: !key_columns.is_empty() && !is_hash,
        used: Vec::new(),
        members: None,
    });
    let any_range = !wish.order.is_empty();
    let search = LookupSearch { table, sargs: &sargs, usable: &usable, rows, all, any_range };
    search.add_paths(part_of, &mut found);
    // A list of arrays would be read as their elements.
    let is_array = |side: &Expr| {
        let column = column_of(side, slot, table).and_then(|column| table.columns.get(column));
        column.is_some_and(|column| matches!(column.data_type, DataType::Array(_)))
    };
    let fits = |column: &Expr, value: &Expr| !is_array(column) && wish.gives(slot, column, value);
    let collated = indexed.collated_positions();
    for (number, conjunct) in conjuncts.iter().enumerate() {
        if matches!(conjunct, Expr::Compare(..)) {
            continue;
        }
        let is_array = matches!(conjunct, Expr::CompareElements(..));
        let mut add = |(column, values): (usize, Vec<Expr>)| {
            let members = InListKeys { slot: (wish.values)(), values, is_array };
            let by = (number, column, members);
            each_of(table, &sargs, &usable, rows, all, part_of, by, &mut found);
        };
        let of_table = |side: &Expr| column_of(side, slot, table);
        if let Some((column, values)) = find_in_list(conjunct, &of_table, &fits) {
            let is_key = key_columns.contains(&column)
                || table.indexes.iter().any(|i| i.columns.iter().any(|c| c.position == column));
            if is_key {
                add((column, values));
            }
        }
        for index in computed {
            let of_index = |side: &Expr| index.position_of(side);
            let fits = |side: &Expr, value: &Expr| {
                !index.is_array(side)
                    && index.typed(side).is_some_and(|typed| wish.gives(slot, &typed, value))
            };
            if let Some(listed) = find_in_list(conjunct, &of_index, &fits) {
                add(listed);
            }
        }
        for &position in &collated {
            let of_key = |side: &Expr| {
                let positions = indexed.positions(side, Comparison::Equal);
                positions.contains(&position).then_some(position)
            };
            let fits = |side: &Expr, value: &Expr| indexed.gives(wish, side, value);
            if let Some(listed) = find_in_list(conjunct, &of_key, &fits) {
                add(listed);
            }
        }
    }
    found
}

/// Which indexes may be used, and the fraction of the table's rows that each has.
struct Usable(Vec<Option<f64>>);

impl Usable {
    /// A partial index is usable if the conditions imply its predicate.
    fn of(
        table: &Table,
        conjuncts: &[Expr],
        computed: &[ComputedIndex],
        wish: &PathRequest<'_>,
    ) -> Usable {
        let usable = |(number, index): (usize, &Arc<Index>)| {
            if index.is_stale() {
                return None;
            }
            if !index.is_computed() {
                return Some(1.0);
            }
            let known = computed.iter().find(|known| known.number == number)?;
            if known.predicate.is_empty() {
                return Some(1.0);
            }
            let is_implied = implies(conjuncts, &known.predicate);
            let part = || (wish.part_of_rows)(&known.predicate.iter().collect::<Vec<_>>());
            is_implied.then(|| known.part.unwrap_or_else(part))
        };
        Usable(table.indexes.iter().enumerate().map(usable).collect())
    }

    fn part(&self, index: usize) -> Option<f64> {
        self.0.get(index).copied().flatten()
    }
}

/// Adds the paths that look up rows for each value of an IN list.
#[allow(clippy::too_many_arguments)]
fn each_of(
    table: &Table,
    sargs: &[Sarg<'_>],
    usable: &Usable,
    rows: f64,
    all: f64,
    part_of: PartOf<'_>,
    (number, column, members): (usize, usize, InListKeys),
    found: &mut Vec<Candidate>,
) {
    let value = Expr::column(members.slot, 0);
    let sarg = Sarg { number, column, comparison: Comparison::Equal, value: &value };
    let sargs: Vec<Sarg<'_>> = std::iter::once(sarg).chain(sargs.iter().copied()).collect();
    // A few of the values give the selectivity of one.
    let part_of = |index: Option<usize>, range: &KeyRangeExpr| {
        let is_known = |value: &&Expr| {
            value.as_constant().is_some_and(|value| !matches!(value, Value::Array(_)))
        };
        let told = members.values.iter().filter(is_known).take(4);
        let parts: Vec<f64> = told
            .filter_map(|told| {
                let mut range = range.clone();
                range.equal.iter_mut().filter(|part| **part == value).for_each(|part| {
                    part.clone_from(told);
                });
                part_of(index, &range)
            })
            .collect();
        match parts.len() {
            0 => part_of(index, range),
            told => Some(parts.iter().sum::<f64>() / told as f64),
        }
    };
    let mut paths = Vec::new();
    let search = LookupSearch { table, sargs: &sargs, usable, rows, all, any_range: false };
    search.add_paths(&part_of, &mut paths);
    let length = |value: &Expr| match value.as_constant() {
        Some(Value::Array(array)) => array.as_ref().len() as f64,
        Some(_) => 1.0,
        None if members.is_array => ELEMENTS,
        None => 1.0,
    };
    let count = members.values.iter().map(length).sum::<f64>();
    let by_members = paths.into_iter().filter(|path| path.used.contains(&number));
    found.extend(by_members.map(|path| Candidate {
        cost: path.cost * count,
        rows: (path.rows * count).min(all.max(1.0)),
        ordered: false,
        members: Some(members.clone()),
        ..path
    }));
}

/// A search for the paths that look rows up by the key or by an index.
struct LookupSearch<'s> {
    table: &'s Table,
    sargs: &'s [Sarg<'s>],
    usable: &'s Usable,
    /// Rows of the table, and rows that satisfy all conditions.
    rows: f64,
    all: f64,
    /// An index serves without a bound on it, too, because of its order.
    any_range: bool,
}

impl LookupSearch<'_> {
    fn add_paths(&self, part_of: PartOf<'_>, found: &mut Vec<Candidate>) {
        self.add_key(part_of, found);
        for (number, index) in self.table.indexes.iter().enumerate() {
            found.extend(self.by_index(number, index, part_of));
        }
    }

    /// Adds the path by the primary key, if conditions bound it.
    fn add_key(&self, part_of: PartOf<'_>, found: &mut Vec<Candidate>) {
        let LookupSearch { table, sargs, rows, all, .. } = *self;
        let key_columns = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns[..]);
        let is_hash = table.primary_key.as_ref().is_some_and(|key| key.method == Method::Hash);
        let order =
            |columns: &[usize]| columns.iter().map(|&column| (column, false, false)).collect();
        if !key_columns.is_empty() {
            let (range, part, used) = range_of(key_columns, sargs);
            if range.equal.len() == key_columns.len() {
                let path = AccessPath::Key(range.equal);
                let order = Vec::new();
                found.push(Candidate {
                    path,
                    cost: LOOKUP_COST,
                    rows: 1.0,
                    order,
                    ordered: true,
                    used,
                    members: None,
                });
            } else if range.is_bounded() && !is_hash {
                let columns = &key_columns[range.equal.len()..];
                let rows = (rows * part_of(None, &range).unwrap_or(part)).max(1.0);
                found.push(Candidate {
                    cost: LOOKUP_COST + rows,
                    rows: rows.min(all.max(1.0)),
                    order: order(columns),
                    ordered: true,
                    path: AccessPath::KeyRange(range),
                    used,
                    members: None,
                });
            }
        }
    }

    /// Returns the path by an index, unless the index is of no use.
    fn by_index(&self, number: usize, index: &Index, part_of: PartOf<'_>) -> Option<Candidate> {
        let LookupSearch { sargs, usable, rows, all, any_range, .. } = *self;
        if index.inverted().is_some() {
            return None;
        }
        let part_of_index = usable.part(number)?;
        let columns = key_positions(number, index);
        let (range, part, used) = range_of(&columns, sargs);
        let whole = range.equal.len() == columns.len();
        if index.method == Method::Hash && !whole {
            return None;
        }
        if !range.is_bounded() && !any_range && !index.is_partial() {
            return None;
        }
        let rows = match whole && index.unique {
            true => 1.0,
            false => {
                let part = part_of(Some(number), &range).unwrap_or(part);
                (rows * part_of_index * part).max(1.0)
            }
        };
        Some(Candidate {
            cost: LOOKUP_COST + rows * FETCH_COST
                - if index.method == Method::Hash { HASH_LOOKUP_COST } else { 0.0 },
            rows: rows.min(all.max(1.0)),
            order: index.columns[range.equal.len()..]
                .iter()
                .zip(&columns[range.equal.len()..])
                .map(|(column, position)| (*position, column.descending, column.nulls_first))
                .collect(),
            ordered: index.method == Method::Range,
            path: AccessPath::Index(number, range),
            used,
            members: None,
        })
    }
}

/// Whether a path delivers that order, and whether backward.
fn delivers(
    candidate: &Candidate,
    order: &[OrderKey],
    slot: usize,
    table: &Table,
    computed: &[ComputedIndex],
) -> Option<bool> {
    if !candidate.ordered || order.is_empty() {
        return None;
    }
    if matches!(candidate.path, AccessPath::Key(_)) {
        return Some(false);
    }
    let rows = IndexedRows { table, slot, computed };
    let mut columns = candidate.order.iter();
    let mut backward = None;
    for key in order {
        let (known, descending, nulls_first) = columns.next()?;
        if !rows.is_at(&key.expr, *known) {
            return None;
        }
        let turned = *descending != key.descending;
        if !rows.is_not_null(*known) && (*nulls_first != turned) != key.nulls_first {
            return None;
        }
        if *backward.get_or_insert(turned) != turned {
            return None;
        }
    }
    backward
}

/// Returns the cheapest access to a table, its cost, and whether it has the requested order.
pub(super) fn choose(
    table: &Arc<Table>,
    slot: usize,
    conjuncts: &[Expr],
    statistics: &dyn Statistics,
    wish: &PathRequest<'_>,
) -> (TableAccess, Option<InListKeys>, f64, bool) {
    // A plan stays in use while tables grow, so an empty table is not planned as empty.
    let told = statistics.rows(table);
    let rows = told.max(MIN_TABLE_ROWS);
    let rows_of_table = rows;
    let part_of = |index: Option<usize>, range: &KeyRangeExpr| {
        if told < MIN_ROWS_FOR_ESTIMATE || !range.is_bounded() {
            return None;
        }
        let (columns, method, unique) = key_of(table, index)?;
        match range.equal.len() == columns {
            true if unique => return Some(1.0 / rows),
            // A hash index finds whole keys only.
            false if method == Method::Hash => return None,
            _ => {}
        }
        let each = || match range.equal.len() {
            0 => None,
            columns => statistics.part_of_each(table, index, columns),
        };
        statistics.part(table, index, range).or_else(|| Some(each()? * range.part_of_bounds()))
    };
    let mut best: Option<(Candidate, f64, Option<bool>)> = None;
    let computed = computed_indexes(table, slot, statistics);
    let mut found = candidates(table, conjuncts, &computed, slot, rows, wish, &part_of);
    let all = found.first().map_or(rows, |scan| scan.rows);
    let search =
        InvertedSearch { table, slot, conjuncts, computed: &computed, statistics, request: wish };
    search.add_paths(all, &mut found);
    for candidate in found {
        let order = delivers(&candidate, wish.order, slot, table, &computed);
        let mut cost = candidate.cost;
        if !wish.order.is_empty() {
            match order {
                // A sort reads everything before its first row.
                None => cost += candidate.rows * (1.0 + candidate.rows.max(2.0).log2() * 0.3),
                Some(_) if wish.few => {
                    cost = cost.min(LOOKUP_COST + 20.0 * cost / candidate.rows.max(20.0))
                }
                Some(_) => {}
            }
        }
        cost += wish.off.cost_of_path(&candidate.path);
        if best.as_ref().is_none_or(|(_, least, _)| cost < *least) {
            best = Some((candidate, cost, order));
        }
    }
    let (path, rows, cost, order, used, members) = match best {
        Some((candidate, cost, order)) => {
            let Candidate { path, rows, used, members, .. } = candidate;
            (path, rows, cost, order, used, members)
        }
        None => (AccessPath::All, rows, rows, None, Vec::new(), None),
    };
    let rest = conjuncts.iter().enumerate().filter(|(number, _)| !used.contains(number));
    let access = TableAccess {
        slot,
        table: table.clone(),
        path,
        backward: order.unwrap_or(false),
        filter: Expr::all(rest.map(|(_, conjunct)| conjunct.clone()).collect()),
        keys: false,
        row_ids: false,
        prefix: None,
        rows,
        table_rows: rows_of_table,
    };
    (access, members, cost, order.is_some())
}
