//! Queries with groups: what is selected reads the group instead of the row.

use super::aggregates::AGGREGATES;
use super::{Binder, Source};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr};

/// Turns expressions over rows into expressions over groups.
pub(super) struct Regroup<'k> {
    /// Where a group stands.
    pub slot: usize,
    /// What rows of a group have in common.
    pub keys: &'k [Expr],
    /// Slots of this query.
    pub own: std::ops::Range<usize>,
    /// Columns as they were named, and where.
    pub named: &'k [(ColumnRef, u32)],
}

impl Regroup<'_> {
    /// Applies it to an expression that stands from there on in the text.
    pub fn apply(&self, expr: &mut Expr, from: u32, binder: &Binder<'_>) -> Result<()> {
        if let Some(key) = self.keys.iter().position(|key| key == expr) {
            *expr = Expr::column(self.slot, key);
            return Ok(());
        }
        if let Expr::Column(column) = expr {
            if column.slot == self.slot && column.column >= AGGREGATES {
                column.column = column.column - AGGREGATES + self.keys.len();
                return Ok(());
            }
            // Answers of subqueries do not depend on the row within a group unless they read it, which is found by the plan.
            let computed = binder
                .slots
                .get(column.slot)
                .is_some_and(|shape| matches!(shape.source, Source::Computed));
            if self.own.contains(&column.slot) && !computed {
                return Err(self.ungrouped(*column, from, binder));
            }
            return Ok(());
        }
        let mut result = Ok(());
        expr.each_child_mut(&mut |child| {
            if result.is_ok() {
                result = self.apply(child, from, binder);
            }
        });
        result
    }

    #[cold]
    fn ungrouped(&self, column: ColumnRef, from: u32, binder: &Binder<'_>) -> SqlError {
        let places = self.named.iter().filter(|(named, _)| *named == column);
        let position = places.map(|(_, position)| *position).find(|position| *position >= from);
        let name = binder.slots.get(column.slot).map_or_else(String::new, |shape| {
            let known = match &shape.source {
                Source::Table(table) => table.columns.get(column.column).map(|known| &known.name),
                Source::Query(query) => query.columns.get(column.column).map(|known| &known.name),
                Source::Computed => None,
            };
            format!("{}.{}", shape.name, known.map_or("?", |name| name))
        });
        let message = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        SqlError::new(SqlState::GroupingError, message).at(position.unwrap_or(from) as usize)
    }
}
