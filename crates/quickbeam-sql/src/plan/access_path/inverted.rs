//! Paths by inverted indexes: conditions such as `document @@ query`, whose rows are found by the
//! keys that a value has.
//!
//! The conditions stay in the filter, because the keys of a row can satisfy them although the row
//! does not.

use std::convert::Infallible;
use std::sync::Arc;

use super::{Candidate, ComputedIndex, PathRequest, Usable, column_of, key_positions};
use crate::catalog::{Index, Table};
use crate::expression::Expr;
use crate::plan::cost::{
    DEFAULT_KEY_SELECTIVITY, FETCH_COST, LOOKUP_COST, MIN_ROWS_FOR_ESTIMATE, MIN_TABLE_ROWS,
};
use crate::plan::{AccessPath, InvertedCondition, InvertedPath, Statistics};
use crate::schema::OperatorClass;
use crate::schema::encoding::inverted::condition_on_keys;
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

impl InvertedSearch<'_> {
    /// Adds the paths by the table's inverted indexes. `all` is the number of rows that satisfy all
    /// conditions.
    pub fn add_paths(&self, all: f64, found: &mut Vec<Candidate>) {
        let indexes = &self.table.indexes;
        if indexes.iter().all(|index| index.inverted().is_none()) {
            return;
        }
        let usable = Usable::of(self.table, self.conjuncts, self.computed, self.request);
        for (number, index) in indexes.iter().enumerate() {
            if let (Some(class), Some(part)) = (index.inverted(), usable.part(number)) {
                found.extend(self.by_index(number, index, class, part, all));
            }
        }
    }

    fn by_index(
        &self,
        number: usize,
        index: &Index,
        class: OperatorClass,
        part_of_index: f64,
        all: f64,
    ) -> Option<Candidate> {
        let position = *key_positions(number, index).first()?;
        let is_key = |side: &Expr| match self.computed.iter().find(|known| known.number == number) {
            Some(known) if known.is_at(side, position) => true,
            _ => column_of(side, self.slot, self.table) == Some(position),
        };
        let matching = self.conjuncts.iter().filter_map(|conjunct| {
            let known = condition_of(conjunct, class, &is_key)?;
            let is_given = self.request.is_given(self.slot, &known.operand);
            is_given.then_some(known)
        });
        let told = self.statistics.rows(self.table);
        let rows = told.max(MIN_TABLE_ROWS);
        let unknown = rows * part_of_index * DEFAULT_KEY_SELECTIVITY;
        let (mut conditions, mut entries) = (Vec::new(), f64::INFINITY);
        for condition in matching {
            match self.entries_of(number, class, &condition, told, unknown) {
                Some(count) => entries = entries.min(count),
                // Every row may satisfy it.
                None => continue,
            }
            conditions.push(condition);
        }
        if conditions.is_empty() {
            return None;
        }
        let entries = entries.max(1.0);
        Some(Candidate {
            path: AccessPath::Inverted(Box::new(InvertedPath { index: number, conditions })),
            cost: LOOKUP_COST + entries * FETCH_COST,
            rows: entries.min(all.max(1.0)),
            order: Vec::new(),
            ordered: false,
            used: Vec::new(),
            members: None,
        })
    }

    /// Estimates the number of entries that are read for a condition; `unknown` if its operand is
    /// not known. Returns `None` if the index does not help.
    fn entries_of(
        &self,
        number: usize,
        class: OperatorClass,
        condition: &InvertedCondition,
        told: f64,
        unknown: f64,
    ) -> Option<f64> {
        let Some(operand) = condition.operand.as_constant() else { return Some(unknown) };
        // An operand that has no keys fails when the statement runs.
        let Ok(keys) = condition_on_keys(class, condition.operator, operand.as_ref()) else {
            return Some(unknown);
        };
        let keys = keys?;
        if told < MIN_ROWS_FOR_ESTIMATE {
            return Some(unknown);
        }
        let mut count = |range: &KeyRange| -> Result<f64, Infallible> {
            let counted = self.statistics.entries(self.table, number, range);
            Ok(counted.unwrap_or(unknown))
        };
        keys.estimate(&mut count).ok()
    }
}

/// Returns what a condition asks of the keys of an index of that class. `is_key` says whether an
/// expression is what the index has the keys of.
fn condition_of(
    conjunct: &Expr,
    class: OperatorClass,
    is_key: &dyn Fn(&Expr) -> bool,
) -> Option<InvertedCondition> {
    let Expr::Call(function, arguments, _) = conjunct else { return None };
    let [left, right] = &arguments[..] else { return None };
    let made = |operator, operand: &Expr| InvertedCondition {
        operator,
        operand: operand.clone(),
        condition: conjunct.clone(),
    };
    if let ("<@", true) = (function.0.name, is_key(right)) {
        return class.operator("@>").map(|(operator, _)| made(operator, left));
    }
    let (operator, is_symmetric) = class.operator(function.0.name)?;
    match (is_key(left), is_symmetric && is_key(right)) {
        (true, _) => Some(made(operator, right)),
        (false, true) => Some(made(operator, left)),
        (false, false) => None,
    }
}
