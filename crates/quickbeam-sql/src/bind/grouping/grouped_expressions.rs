//! Grouped queries: outputs read the group instead of the row.

use std::sync::Arc;

use super::aggregates::AGGREGATES;
use super::levels::grouping_error;
use crate::bind::collations::keys::text_in;
use crate::bind::{Aggregate, Binder, PartMut, Query, Source, Subquery};
use crate::error::{Result, SqlError};
use crate::expression::{ColumnRef, Expr, Slots};

/// Columns of a group from here on are calls of GROUPING, before the keys are known.
pub(in crate::bind) const GROUPINGS: usize = 1 << 21;

/// Turns expressions over rows into expressions over groups.
pub(in crate::bind) struct Regroup<'k> {
    /// The slot of the group.
    pub slot: usize,
    /// GROUP BY, and then the columns that depend on it.
    pub keys: &'k [Expr],
    /// The number of keys of GROUP BY.
    pub written: usize,
    /// GROUPING SETS.
    pub sets: &'k [Vec<usize>],
    /// The number of aggregates.
    pub aggregates: usize,
    /// The arguments of the calls of GROUPING, with their positions.
    pub groupings: &'k [(Vec<Expr>, u32)],
    /// The slots of FROM.
    pub own: Slots,
    /// Columns named outside of aggregates, with their positions.
    pub named: &'k [(ColumnRef, u32)],
}

impl Regroup<'_> {
    /// Rewrites an expression. `from` is its position in the text.
    pub fn apply(&self, expr: &mut Expr, from: u32, binder: &Binder<'_>) -> Result<()> {
        if let Some(made) = self.value_of_key(expr) {
            *expr = made;
            return Ok(());
        }
        if let Expr::Column(column) = expr {
            if column.slot == self.slot && column.column >= GROUPINGS {
                *expr = self.grouping(column.column - GROUPINGS)?;
                return Ok(());
            }
            if column.slot == self.slot && column.column >= AGGREGATES {
                column.column = column.column - AGGREGATES + self.keys.len();
                return Ok(());
            }
            if self.own.contains(column.slot) {
                return Err(self.ungrouped(*column, Some(from), binder));
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

    /// Returns the column of a group that an expression over rows is; of a sort key its text.
    fn value_of_key(&self, expr: &Expr) -> Option<Expr> {
        let column = |key: usize| Expr::column(self.slot, key);
        if let Some(key) = self.keys.iter().position(|key| key == expr) {
            return Some(column(key));
        }
        let is_text = |key: &Expr| key.text_of_sort_key().is_some_and(|text| text == expr);
        self.keys.iter().position(is_text).map(|key| text_in(column(key)))
    }

    /// Checks that the direct arguments of aggregates read nothing but keys.
    fn check_direct_arguments(&self, aggregates: &[Aggregate], binder: &Binder<'_>) -> Result<()> {
        let mut direct = aggregates.iter().flat_map(Aggregate::direct_arguments);
        direct.try_for_each(|argument| self.apply(&mut argument.clone(), 0, binder))
    }

    /// Divides subqueries of outputs, HAVING and ORDER BY. Those that a key or an aggregate reads
    /// run for each row, the others for each group.
    pub fn divide(
        &self,
        subqueries: Vec<Subquery>,
        aggregates: &[Aggregate],
        binder: &Binder<'_>,
    ) -> Result<[Vec<Subquery>; 2]> {
        self.check_direct_arguments(aggregates, binder)?;
        let of_aggregates = aggregates.iter().flat_map(Aggregate::expressions);
        let mut read = Slots::default();
        self.keys.iter().chain(of_aggregates).for_each(|expr| read.extend(&expr.slots()));
        let (mut of_rows, mut of_groups) = (Vec::new(), Vec::new());
        for mut subquery in subqueries.into_iter().rev() {
            if !read.contains(subquery.slot) {
                self.subquery(&mut subquery, binder)?;
                of_groups.push(subquery);
                continue;
            }
            if subquery.reads.contains(self.slot) {
                return Err(grouping_error("aggregate functions are not allowed in GROUP BY", 0));
            }
            read.extend(&subquery.reads);
            of_rows.push(subquery);
        }
        of_rows.reverse();
        of_groups.reverse();
        Ok([of_rows, of_groups])
    }

    /// Rewrites the outer references of a subquery.
    fn subquery(&self, subquery: &mut Subquery, binder: &Binder<'_>) -> Result<()> {
        if !self.concerns(&subquery.reads) {
            return Ok(());
        }
        self.query(Arc::make_mut(&mut subquery.query), binder)?;
        if let Some(value) = subquery.kind.value_mut() {
            self.apply(value, 0, binder)?;
        }
        subquery.find_reads();
        Ok(())
    }

    fn concerns(&self, reads: &Slots) -> bool {
        reads.contains(self.slot) || reads.meets(&self.own)
    }

    /// Rewrites the outer references of a query within.
    pub fn query(&self, query: &mut Query, binder: &Binder<'_>) -> Result<()> {
        let mut result = Ok(());
        query.each_part_mut(&mut |part| {
            if result.is_err() {
                return;
            }
            result = match part {
                PartMut::Expr(expr) => self.within(expr, binder),
                PartMut::Side(side) => self.query(side, binder),
                PartMut::Subquery(subquery) if self.concerns(&subquery.reads) => {
                    let done = self.query(Arc::make_mut(&mut subquery.query), binder);
                    subquery.find_reads();
                    done
                }
                PartMut::Derived(derived) if self.concerns(&derived.reads) => {
                    let done = self.query(Arc::make_mut(&mut derived.query), binder);
                    derived.reads = derived.query.reads();
                    done
                }
                PartMut::Subquery(_) | PartMut::Derived(_) => Ok(()),
            };
        });
        result
    }

    /// Applies it to an expression of a query within.
    fn within(&self, expr: &mut Expr, binder: &Binder<'_>) -> Result<()> {
        // A key without columns is the same value everywhere; it may be a LIMIT here.
        if expr.slots().meets(&self.own)
            && let Some(made) = self.value_of_key(expr)
        {
            *expr = made;
            return Ok(());
        }
        match expr.as_column() {
            Some(column) if self.own.contains(column.slot) => {
                Err(self.ungrouped(column, None, binder))
            }
            Some(_) => self.apply(expr, 0, binder),
            None => {
                let mut result = Ok(());
                expr.each_child_mut(&mut |child| {
                    if result.is_ok() {
                        result = self.within(child, binder);
                    }
                });
                result
            }
        }
    }

    /// Returns the error for a column that is not a key, in the expression that begins at `from`,
    /// or in a subquery.
    #[cold]
    fn ungrouped(&self, column: ColumnRef, from: Option<u32>, binder: &Binder<'_>) -> SqlError {
        let start = from.unwrap_or(0);
        let places = self.named.iter().filter(|(named, _)| *named == column);
        let position = places.map(|(_, position)| *position).find(|position| *position >= start);
        let name = binder.slots.get(column.slot).map_or_else(String::new, |shape| {
            let known = match &shape.source {
                Source::Table(table) => table.columns.get(column.column).map(|known| &known.name),
                Source::Query(columns) => columns.get(column.column).map(|known| &known.name),
                Source::Computed => None,
            };
            format!("{}.{}", shape.name, known.map_or("?", |name| name))
        });
        let message = match from {
            Some(_) => format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
            ),
            None => format!("subquery uses ungrouped column \"{name}\" from outer query"),
        };
        grouping_error(&message, position.unwrap_or(start))
    }
}
