//! Paths by inverted indexes: conditions such as `document @@ query`, whose rows are found by the
//! keys that a value has.
//!
//! The conditions stay in the filter, because the keys of a row can satisfy them although the row
//! does not.

use std::convert::Infallible;
use std::sync::Arc;

use super::{Candidate, ComputedIndex, PathRequest, Usable, column_of, key_positions};
use crate::catalog::{Index, Table};
use crate::expression::{Comparison, Expr};
use crate::plan::cost::{
    DEFAULT_KEY_SELECTIVITY, FETCH_COST, LOOKUP_COST, MIN_ROWS_FOR_ESTIMATE, MIN_TABLE_ROWS,
};
use crate::plan::{AccessPath, InvertedCondition, InvertedPart, InvertedPath, Statistics};
use crate::schema::encoding::inverted::condition_on_keys;
use crate::schema::{InvertedOperator, OperatorClass, OperatorClasses};
use crate::table::KeyRange;

/// A search for the paths by inverted indexes.
pub(super) struct InvertedSearch<'s> {
    pub table: &'s Arc<Table>,
    /// The slot of the table's rows.
    pub slot: usize,
    pub conjuncts: &'s [Expr],
    pub computed: &'s [ComputedIndex],
    pub statistics: &'s dyn Statistics,
    pub request: &'s PathRequest<'s>,
}

/// An inverted index that may be used.
#[derive(Clone, Copy)]
struct KnownIndex<'s> {
    number: usize,
    index: &'s Index,
    classes: OperatorClasses,
    /// The fraction of the table's rows that it has.
    part_of_index: f64,
}

impl InvertedSearch<'_> {
    /// Adds the paths by the table's inverted indexes. `all` is the number of rows that satisfy all
    /// conditions.
    pub fn add_paths(&self, all: f64, found: &mut Vec<Candidate>) {
        let indexes = &self.table.indexes;
        if indexes.iter().all(|index| index.inverted().is_none()) {
            return;
        }
        let usable = Usable::of(self.table, self.conjuncts, self.computed, self.request);
        let known = |(number, index)| -> Option<KnownIndex<'_>> {
            let index: &Index = index;
            let (classes, part_of_index) = (index.inverted()?, usable.part(number)?);
            Some(KnownIndex { number, index, classes, part_of_index })
        };
        let each = indexes.iter().map(|index| &**index).enumerate();
        let known: Vec<KnownIndex<'_>> = each.filter_map(known).collect();
        found.extend(known.iter().filter_map(|index| self.by_index(index, all)));
        if known.len() > 1 {
            let conjuncts = self.conjuncts.iter().filter(|it| matches!(it, Expr::Or(_)));
            found.extend(conjuncts.filter_map(|conjunct| {
                let (condition, entries) = self.condition(conjunct, &known)?;
                Some(self.candidate(vec![condition], entries, all))
            }));
        }
    }

    /// Returns the path by conditions, of which one has that number of entries to be read.
    fn candidate(&self, conditions: Vec<InvertedCondition>, entries: f64, all: f64) -> Candidate {
        let entries = entries.max(1.0);
        Candidate {
            path: AccessPath::Inverted(Box::new(InvertedPath { conditions })),
            cost: LOOKUP_COST + entries * FETCH_COST,
            rows: entries.min(all.max(1.0)),
            order: Vec::new(),
            ordered: false,
            used: Vec::new(),
            members: None,
        }
    }

    fn by_index(&self, known: &KnownIndex<'_>, all: f64) -> Option<Candidate> {
        let (mut conditions, mut entries) = (Vec::new(), f64::INFINITY);
        for conjunct in self.conjuncts {
            if let Some((condition, count)) = self.condition(conjunct, &[*known]) {
                entries = entries.min(count);
                conditions.push(condition);
            }
        }
        (!conditions.is_empty()).then(|| self.candidate(conditions, entries, all))
    }

    /// Returns a condition on the keys of some indexes, with the number of entries that are read
    /// for it. Returns `None` if every row may satisfy it.
    fn condition(
        &self,
        conjunct: &Expr,
        indexes: &[KnownIndex<'_>],
    ) -> Option<(InvertedCondition, f64)> {
        let alternatives = match conjunct {
            Expr::Or(list) => &list[..],
            only => std::slice::from_ref(only),
        };
        let (mut parts, mut sum) = (Vec::with_capacity(alternatives.len()), 0.0);
        for alternative in alternatives {
            let members = match alternative {
                Expr::And(list) => &list[..],
                only => std::slice::from_ref(only),
            };
            let found = members
                .iter()
                .flat_map(|member| indexes.iter().filter_map(|known| self.part(member, known)));
            let (part, count) = found.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
            parts.push(part);
            sum += count;
        }
        (!parts.is_empty()).then(|| (InvertedCondition { parts, condition: conjunct.clone() }, sum))
    }

    /// Returns a comparison of what an index has the keys of, with the number of entries that are
    /// read for it.
    fn part(&self, written: &Expr, known: &KnownIndex<'_>) -> Option<(InvertedPart, f64)> {
        let positions = key_positions(known.number, known.index).into_iter().enumerate();
        positions.zip(known.classes.iter()).find_map(|((key, position), class)| {
            self.part_by_key(written, known, (key, position), class)
        })
    }

    /// Returns a comparison of the key with that number and at that position.
    fn part_by_key(
        &self,
        written: &Expr,
        known: &KnownIndex<'_>,
        (key, position): (usize, usize),
        class: OperatorClass,
    ) -> Option<(InvertedPart, f64)> {
        let KnownIndex { number, part_of_index, classes, .. } = *known;
        let is_key = |side: &Expr| match self.computed.iter().find(|known| known.number == number) {
            Some(known) if known.is_at(side, position) => true,
            _ => column_of(side, self.slot, self.table) == Some(position),
        };
        let (operator, operand) = match written {
            Expr::Compare(Comparison::Equal, pair) => {
                let [left, right] = &**pair;
                let is_alike = (self.request.alike)(left, right);
                let known = operand_of("=", [left, right], class, &is_key);
                known.filter(|_| is_alike)?
            }
            Expr::Call(function, arguments, _) => {
                let [left, right] = &arguments[..] else { return None };
                operand_of(function.0.name, [left, right], class, &is_key)?
            }
            _ => return None,
        };
        if !self.request.is_given(self.slot, operand) {
            return None;
        }
        let told = self.statistics.rows(self.table);
        let unknown = told.max(MIN_TABLE_ROWS) * part_of_index * DEFAULT_KEY_SELECTIVITY;
        let condition = written.clone();
        let operand = operand.clone();
        let part = InvertedPart { index: number, key, operator, operand, condition };
        let count = self.entries_of(classes, &part, told, unknown)?;
        Some((part, count))
    }

    /// Estimates the number of entries that are read for a condition; `unknown` if its operand is
    /// not known. Returns `None` if the index does not help.
    fn entries_of(
        &self,
        classes: OperatorClasses,
        part: &InvertedPart,
        told: f64,
        unknown: f64,
    ) -> Option<f64> {
        let Some(operand) = part.operand.as_constant() else { return Some(unknown) };
        // An operand that has no keys fails when the statement runs.
        let class = classes.get(part.key)?;
        let Ok(keys) = condition_on_keys(class, part.operator, operand.as_ref()) else {
            return Some(unknown);
        };
        let keys = keys?.after(classes.prefix(part.key));
        if told < MIN_ROWS_FOR_ESTIMATE {
            return Some(unknown);
        }
        let mut count = |range: &KeyRange| -> Result<f64, Infallible> {
            let counted = self.statistics.entries(self.table, part.index, range);
            Ok(counted.unwrap_or(unknown))
        };
        keys.estimate(&mut count).ok()
    }
}

/// Returns the operator and the other operand of a comparison that an index of that class answers.
/// `is_key` says whether an expression is what the index has the keys of.
fn operand_of<'e>(
    symbol: &str,
    [left, right]: [&'e Expr; 2],
    class: OperatorClass,
    is_key: &dyn Fn(&Expr) -> bool,
) -> Option<(InvertedOperator, &'e Expr)> {
    if symbol == "<@" && is_key(right) {
        return class.operator("@>").map(|(operator, _)| (operator, left));
    }
    let (operator, is_symmetric) = class.operator(symbol)?;
    match (is_key(left), is_symmetric && is_key(right)) {
        (true, _) => Some((operator, right)),
        (false, true) => Some((operator, left)),
        (false, false) => None,
    }
}
