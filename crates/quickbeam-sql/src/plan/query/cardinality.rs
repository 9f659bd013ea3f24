//! Cardinality: the estimated rows of joins and the selectivity of conditions.

use super::select::Planner;
use crate::bind::{Source, SubqueryKind};
use crate::catalog::{Method, Table};
use crate::expression::{ColumnRef, Comparison, Expr, Slots};
use crate::plan::access_path::selectivity;
use crate::plan::cost::{MIN_TABLE_ROWS, SUBQUERY_SELECTIVITY};

fn column_in(expr: &Expr) -> Option<ColumnRef> {
    match expr {
        Expr::Trimmed(inner) => inner.as_column(),
        other => other.as_column(),
    }
}

/// Whether a condition reads columns of that slot and constants, and nothing else.
fn is_of_constants(condition: &Expr, slot: usize) -> bool {
    fn has_parameter(expr: &Expr) -> bool {
        let mut found = matches!(expr, Expr::Parameter(_));
        expr.each_child(&mut |child| found |= has_parameter(child));
        found
    }
    condition.slots().is_within(&Slots::one(slot))
        && !condition.is_volatile()
        && !has_parameter(condition)
}

impl Planner<'_> {
    fn table_of(&self, slot: usize) -> Option<&Table> {
        match &self.slots.get(slot)?.source {
            Source::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Estimates a table's rows. A small table counts as [`MIN_TABLE_ROWS`], as its access path
    /// does.
    fn table_rows(&self, table: &Table) -> f64 {
        self.statistics.rows(table).max(MIN_TABLE_ROWS)
    }

    /// Estimates the number of distinct values of a column that leads a key or an index.
    pub(in crate::plan) fn distinct_values(&self, expr: &Expr) -> Option<f64> {
        let column = column_in(expr)?;
        let table = self.table_of(column.slot)?;
        let mut parts = Vec::new();
        if let Some(key) = &table.primary_key
            && key.columns.first() == Some(&column.column)
        {
            if key.columns.len() == 1 {
                return Some(self.table_rows(table));
            }
            parts.extend((key.method == Method::Range).then_some(None));
        }
        for (number, index) in table.indexes.iter().enumerate() {
            let leads = index.columns.first().is_some_and(|first| first.position == column.column);
            if leads && index.method == Method::Range && !index.is_partial() {
                parts.push(Some(number));
            }
        }
        let part = |index: &Option<usize>| self.statistics.part_of_each(table, *index, 1);
        if let Some(part) = parts.iter().find_map(part) {
            return Some((1.0 / part.max(1e-12)).clamp(1.0, self.table_rows(table)));
        }
        if !self.is_sampling.get() {
            return None;
        }
        self.statistics.distinct(table, column.column)
    }

    /// Estimates the fraction of a table's rows for which all conditions hold. While joins are
    /// planned, conditions with constants are tried on a sample of the rows.
    pub(in crate::plan) fn part_of_rows(
        &self,
        table: &Table,
        slot: usize,
        conditions: &[&Expr],
    ) -> f64 {
        let default = |conditions: &[&Expr]| -> f64 {
            conditions.iter().map(|condition| selectivity(condition)).product()
        };
        if !self.is_sampling.get() {
            return default(conditions);
        }
        let (own, others): (Vec<&Expr>, Vec<&Expr>) =
            conditions.iter().partition(|condition| is_of_constants(condition, slot));
        if own.is_empty() {
            return default(&others);
        }
        let known = self.sampled.borrow().iter().find_map(|(of, conditions, part)| {
            (*of == slot && conditions.iter().eq(own.iter().copied())).then_some(*part)
        });
        let part = known.unwrap_or_else(|| {
            let sampled = self.statistics.sampled_part(table, slot, &own);
            let part = sampled.unwrap_or_else(|| default(&own));
            let conditions = own.iter().map(|condition| (*condition).clone()).collect();
            self.sampled.borrow_mut().push((slot, conditions, part));
            part
        });
        part * default(&others)
    }

    /// If the expressions are the columns of a unique key of one table: the rows of that table.
    fn unique_rows(&self, keys: &[&Expr]) -> Option<f64> {
        let columns: Option<Vec<ColumnRef>> = keys.iter().map(|key| column_in(key)).collect();
        let columns = columns?;
        let slot = columns.first()?.slot;
        let table = self.table_of(slot)?;
        let given = |column: usize| columns.contains(&ColumnRef { slot, column });
        let primary = table.primary_key.as_ref();
        let is_unique = primary.is_some_and(|key| key.columns.iter().all(|column| given(*column)))
            || table.indexes.iter().any(|index| {
                index.unique
                    && !index.is_partial()
                    && index.columns.iter().all(|c| given(c.position))
            });
        is_unique.then(|| self.table_rows(table))
    }

    /// Estimates the distinct values of several keys of one side of a join.
    fn distinct_keys(&self, keys: &[&Expr]) -> Option<f64> {
        let mut product = None;
        for key in keys {
            if let Some(count) = self.distinct_values(key) {
                product = Some(product.unwrap_or(1.0) * count);
            }
        }
        let slot = column_in(keys.first()?).map(|column| column.slot);
        let most = slot.and_then(|slot| self.table_of(slot)).map(|table| self.table_rows(table));
        product.map(|count| count.min(most.unwrap_or(f64::INFINITY)))
    }

    /// Notes that a table's conditions leave `rows` rows, if all of them are on one column. Then
    /// no more distinct values of the column are left, either.
    pub(super) fn note_restricted(&self, slot: usize, conditions: &[Expr], rows: f64) {
        let mut restricted = self.restricted.borrow_mut();
        restricted.retain(|(column, _)| column.slot != slot);
        let mut only: Option<ColumnRef> = None;
        let mut is_one = true;
        for condition in conditions {
            condition.each_column(&mut |column| {
                is_one &= column.slot == slot && *only.get_or_insert(column) == column;
            });
        }
        if let (Some(column), true) = (only, is_one) {
            restricted.push((column, rows.max(1.0)));
        }
    }

    /// Returns the rows that conditions on this column leave, and no others restrict.
    fn restricted_rows(&self, key: &Expr) -> Option<f64> {
        let column = column_in(key)?;
        let restricted = self.restricted.borrow();
        restricted.iter().find_map(|(known, rows)| (*known == column).then_some(*rows))
    }

    /// Estimates the fraction of all pairs of rows whose keys are equal. As in System R, the values
    /// of the side with fewer of them are assumed to be among those of the other. Where conditions
    /// on the keys alone restrict both sides, only the values that they leave count. Returns `None`
    /// if nothing is known about the values.
    pub(in crate::plan) fn key_selectivity(&self, keys: &[(&Expr, &Expr)]) -> Option<f64> {
        let sides = [
            keys.iter().map(|pair| pair.0).collect::<Vec<_>>(),
            keys.iter().map(|pair| pair.1).collect::<Vec<_>>(),
        ];
        let left = match keys {
            [(a, b)] => self.restricted_rows(a).zip(self.restricted_rows(b)),
            _ => None,
        };
        let left = left.map_or([f64::INFINITY; 2], |(a, b)| [a, b]);
        let most = |values: &dyn Fn(&[&Expr]) -> Option<f64>| {
            let known = sides.iter().zip(left);
            known.filter_map(|(side, left)| Some(values(side)?.min(left))).reduce(f64::max)
        };
        let unique = most(&|side| self.unique_rows(side));
        let known = unique.or_else(|| most(&|side| self.distinct_keys(side)))?;
        Some(1.0 / known.max(1.0))
    }

    /// Estimates the rows of an inner join by equal keys.
    pub(in crate::plan) fn join_rows(&self, outer: f64, inner: f64, keys: &[(Expr, Expr)]) -> f64 {
        if keys.is_empty() {
            return outer * inner;
        }
        let pairs: Vec<(&Expr, &Expr)> = keys.iter().map(|(a, b)| (a, b)).collect();
        match self.key_selectivity(&pairs) {
            Some(part) => (outer * inner * part).max(1.0),
            None => unknown_join_rows(outer, inner, keys.len()),
        }
    }

    /// Estimates the selectivity of a conjunct that reads the answer of a subquery, of which `kept`
    /// rows are expected.
    pub(in crate::plan) fn answer_selectivity(
        &self,
        conjunct: &Expr,
        kind: &SubqueryKind,
        kept: f64,
    ) -> f64 {
        match (conjunct, kind) {
            (Expr::Column(_), SubqueryKind::Any(value, Comparison::Equal)) => {
                match self.distinct_values(value) {
                    Some(values) => (kept / values).clamp(0.0, 1.0),
                    None => SUBQUERY_SELECTIVITY,
                }
            }
            (Expr::Column(_), _) => SUBQUERY_SELECTIVITY,
            (other, _) => selectivity(other),
        }
    }
}

/// Estimates the rows of a join by `keys` keys, about whose values nothing is known.
pub(in crate::plan) fn unknown_join_rows(outer: f64, inner: f64, keys: usize) -> f64 {
    outer.max(inner) * 0.5_f64.powi(keys as i32 - 1)
}
