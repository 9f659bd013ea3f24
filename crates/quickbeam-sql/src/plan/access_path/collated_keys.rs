//! Index keys that are ordered by a collation, as the choice of an access path sees them.
//!
//! Each such key of an index has a position of its own, after those of columns and expressions: a
//! condition on a sort key is no condition on the text. Under a deterministic collation equal texts
//! have equal sort keys, so a condition that a text equals another is one on these keys, too.

use super::computed_indexes::{ComputedIndex, MOST};
use super::{PathRequest, Table, column_of};
use crate::catalog::{EXPRESSIONS, KeyColumn};
use crate::expression::{Comparison, Expr};
use crate::types::Collation;

/// Where the positions of keys that a collation orders begin.
const COLLATED: usize = 1 << 30;

/// Returns the position of a key that a collation orders: the one at a place of an index.
pub(super) fn collated_position(index: usize, place: usize) -> usize {
    COLLATED + index * MOST + place
}

/// A table and its computed indexes, over rows in a slot of the query.
#[derive(Clone, Copy)]
pub(super) struct IndexedRows<'r> {
    pub table: &'r Table,
    pub slot: usize,
    pub computed: &'r [ComputedIndex],
}

impl IndexedRows<'_> {
    /// Returns the keys that collations order, with their positions.
    fn collated_keys(&self) -> impl Iterator<Item = (usize, usize, &KeyColumn, Collation)> {
        self.table.indexes.iter().enumerate().flat_map(|(number, index)| {
            index.columns.iter().enumerate().filter_map(move |(place, key)| {
                Some((number, collated_position(number, place), key, key.collation?))
            })
        })
    }

    /// Returns the positions of the keys that collations order.
    pub fn collated_positions(&self) -> Vec<usize> {
        self.collated_keys().map(|(_, position, ..)| position).collect()
    }

    /// Returns whether an expression is the text of a key of an index.
    fn is_text_of(&self, text: &Expr, index: usize, key: &KeyColumn) -> bool {
        match key.position < EXPRESSIONS {
            true => column_of(text, self.slot, self.table) == Some(key.position),
            false => {
                let mut computed = self.computed.iter().filter(|it| it.number == index);
                computed.any(|it| it.is_at(text, key.position + index * MOST))
            }
        }
    }

    /// Returns the positions of keys on which a comparison of an expression is a condition.
    pub fn positions(&self, side: &Expr, comparison: Comparison) -> Vec<usize> {
        let Some((text, of)) = side.as_sort_key() else {
            let column = column_of(side, self.slot, self.table);
            let expressions = self.computed.iter().filter_map(|index| index.position_of(side));
            let mut positions: Vec<usize> = column.into_iter().chain(expressions).collect();
            if comparison == Comparison::Equal && !positions.is_empty() {
                let keys = self.collated_keys().filter(|(index, _, key, own)| {
                    own.is_deterministic() && self.is_text_of(side, *index, key)
                });
                positions.extend(keys.map(|(_, position, ..)| position));
            }
            return positions;
        };
        let keys = self
            .collated_keys()
            .filter(|(index, _, key, own)| *own == of && self.is_text_of(text, *index, key));
        keys.map(|(_, position, ..)| position).collect()
    }

    /// Returns whether rows can be looked up by a value that a key is compared with.
    pub fn gives(&self, wish: &PathRequest<'_>, key: &Expr, value: &Expr) -> bool {
        let typed = self.computed.iter().find_map(|index| index.typed(key));
        wish.gives(self.slot, typed.as_ref().unwrap_or(key), value)
    }

    /// Returns whether an expression is what the keys at a position are.
    pub fn is_at(&self, expr: &Expr, position: usize) -> bool {
        if position >= COLLATED {
            let Some((text, of)) = expr.as_sort_key() else { return false };
            let mut keys = self.collated_keys().filter(|(_, at, ..)| *at == position);
            return keys.any(|(index, _, key, own)| own == of && self.is_text_of(text, index, key));
        }
        match self.table.columns.get(position) {
            Some(_) => expr
                .as_column()
                .is_some_and(|column| column.slot == self.slot && column.column == position),
            None => self.computed.iter().any(|index| index.is_at(expr, position)),
        }
    }

    /// Returns whether the keys at a position are a column that is NOT NULL.
    pub fn is_not_null(&self, position: usize) -> bool {
        let mut keys = self.collated_keys().filter(|(_, at, ..)| *at == position);
        let column = keys.next().map_or(position, |(_, _, key, _)| key.position);
        self.table.columns.get(column).is_some_and(|column| column.not_null)
    }
}
