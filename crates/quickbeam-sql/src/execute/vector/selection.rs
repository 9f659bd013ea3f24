//! Conditions of a scan, evaluated by columns before its rows are read.
//!
//! Above: scans, by rows and by columns. Below: vectorized expressions. A condition decodes its
//! columns for the rows that passed the conditions before it (BATCH-2), and nothing else of a row.

use arrow_array::Array;

use super::super::row::Context;
use super::column::ColumnBuilder;
use super::evaluate::VectorExpr;
use super::source::{ScannedColumn, decode};
use super::{conjuncts_of, known_columns};
use crate::catalog::Table;
use crate::error::Result;
use crate::execute::vector::column::kind_of;
use crate::expression::{ColumnRef, Expr};
use crate::types::DataType;
use quickbeam::query_layer::ScanBatch;

/// A condition, and the columns that it reads.
#[derive(Debug)]
struct Condition {
    columns: Vec<ScannedColumn>,
    formula: VectorExpr,
}

/// Whether the conditions may be such that fail, as a division does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failures {
    /// They may.
    Allowed,
    /// They may not: rows that a failing one follows may never be asked for.
    Excluded,
}

/// The conditions of a scan.
#[derive(Debug)]
pub struct LeafSelection {
    conditions: Vec<Condition>,
    /// The rows of the leaf that satisfy them, and the next one to be returned.
    pub rows: Vec<u32>,
    pub next: usize,
}

impl LeafSelection {
    /// Compiles a filter on the rows of a table. Returns `None` if a part of it cannot be
    /// vectorized, or may fail although `failures` excludes that.
    pub fn new(
        filter: &Expr,
        (table, slot): (&Table, usize),
        parameters: &[DataType],
        failures: Failures,
    ) -> Option<LeafSelection> {
        let condition = |conjunct: &Expr| {
            let mut read: Vec<ColumnRef> = Vec::new();
            conjunct.each_column(&mut |column| read.push(column));
            read.sort_unstable();
            read.dedup();
            let typed = |column: &ColumnRef| {
                let known = table.columns.get(column.column).filter(|_| column.slot == slot)?;
                Some((*column, known.data_type))
            };
            let typed = read.iter().map(typed).collect::<Option<Vec<(ColumnRef, DataType)>>>()?;
            let formula = known_columns(&typed, parameters).formula(conjunct)?;
            let is_boolean = formula.data_type == DataType::Boolean;
            (is_boolean
                && !typed.is_empty()
                && !(failures == Failures::Excluded && formula.may_fail()))
            .then_some(())?;
            let column = |(at, data_type): &(ColumnRef, DataType)| {
                Some(ScannedColumn::of_table(*at, kind_of(*data_type)?, table))
            };
            let columns = typed.iter().map(column).collect::<Option<Vec<ScannedColumn>>>()?;
            Some(Condition { columns, formula })
        };
        let conditions = conjuncts_of(Some(filter)).iter().map(condition).collect::<Option<_>>()?;
        Some(LeafSelection { conditions, rows: Vec::new(), next: 0 })
    }

    /// Evaluates the parts that are the same for all rows.
    pub fn begin(&mut self, context: &Context<'_>) -> Result<()> {
        self.conditions.iter_mut().try_for_each(|condition| condition.formula.begin(context))
    }

    /// Finds the rows of a leaf that satisfy all conditions.
    pub fn select(&mut self, table: &Table, batch: &ScanBatch) -> Result<()> {
        self.next = 0;
        self.rows.clear();
        self.rows.extend(0..batch.len() as u32);
        for condition in &self.conditions {
            let mut builders: Vec<ColumnBuilder> =
                condition.columns.iter().map(ScannedColumn::builder).collect();
            let rows = || self.rows.iter().map(|row| *row as usize);
            decode(table, batch, rows, &condition.columns, &mut builders)?;
            let vectors: Vec<_> = builders.iter_mut().map(ColumnBuilder::finish).collect();
            let truths = condition.formula.truths(&vectors, self.rows.len())?;
            let mut nth = 0;
            self.rows.retain(|_| {
                nth += 1;
                truths.is_valid(nth - 1) && truths.value(nth - 1)
            });
            if self.rows.is_empty() {
                break;
            }
        }
        Ok(())
    }
}
