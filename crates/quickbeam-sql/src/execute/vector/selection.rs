//! Conditions of a scan, evaluated by columns before its rows are read.
//!
//! Above: scans, by rows and by columns. Below: vectorized expressions. A condition decodes its
//! columns for the rows that passed the conditions before it (BATCH-2), and nothing else of a row.

use arrow_array::Array;

use super::super::row::Context;
use super::column::ColumnBuilder;
use super::evaluate::VectorExpr;
use super::operations::row_test::{RowTest, TestCost};
use super::source::{ScannedColumn, decode};
use super::{conjuncts_of, known_columns};
use crate::catalog::Table;
use crate::error::Result;
use crate::execute::vector::column::kind_of;
use crate::expression::{ColumnRef, Expr};
use crate::table::StoredRow;
use crate::types::DataType;
use quickbeam::query_layer::ScanBatch;

/// A condition.
#[derive(Clone, Debug)]
enum Condition {
    /// One that is evaluated by columns, which are those that it reads.
    Formula(VectorExpr, Vec<ScannedColumn>),
    /// One that is tested on the bytes of each row.
    Test(RowTest),
}

impl Condition {
    fn cost(&self) -> TestCost {
        match self {
            Condition::Formula(..) => TestCost::Columns,
            Condition::Test(test) => test.cost(),
        }
    }

    fn may_fail(&self) -> bool {
        matches!(self, Condition::Formula(formula, _) if formula.may_fail())
    }
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
#[derive(Clone, Debug)]
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
            let test = RowTest::new(conjunct, table, slot);
            Some(test.map_or(Condition::Formula(formula, columns), Condition::Test))
        };
        let conjuncts = conjuncts_of(Some(filter));
        let conditions = conjuncts.iter().map(condition);
        let mut conditions = conditions.collect::<Option<Vec<Condition>>>()?;
        if !conditions.iter().any(Condition::may_fail) {
            conditions.sort_by_key(Condition::cost);
        }
        Some(LeafSelection { conditions, rows: Vec::new(), next: 0 })
    }

    /// Evaluates the parts that are the same for all rows.
    pub fn begin(&mut self, context: &Context<'_>) -> Result<()> {
        self.conditions.iter_mut().try_for_each(|condition| match condition {
            Condition::Formula(formula, _) => formula.begin(context),
            Condition::Test(_) => Ok(()),
        })
    }

    /// Finds the rows of a leaf that satisfy all conditions.
    pub fn select(&mut self, table: &Table, batch: &ScanBatch) -> Result<()> {
        self.next = 0;
        self.rows.clear();
        self.rows.extend(0..batch.len() as u32);
        for condition in &self.conditions {
            match condition {
                Condition::Test(test) => test_rows(&mut self.rows, test, table, batch)?,
                Condition::Formula(formula, columns) => {
                    let mut builders: Vec<ColumnBuilder> =
                        columns.iter().map(ScannedColumn::builder).collect();
                    let rows = || self.rows.iter().map(|row| *row as usize);
                    decode(table, batch, rows, columns, &mut builders)?;
                    let vectors: Vec<_> = builders.iter_mut().map(ColumnBuilder::finish).collect();
                    let truths = formula.truths(&vectors, self.rows.len())?;
                    let mut nth = 0;
                    self.rows.retain(|_| {
                        nth += 1;
                        truths.is_valid(nth - 1) && truths.value(nth - 1)
                    });
                }
            }
            if self.rows.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Keeps the rows for which a test holds.
fn test_rows(rows: &mut Vec<u32>, test: &RowTest, table: &Table, batch: &ScanBatch) -> Result<()> {
    let mut failed = None;
    rows.retain(|row| {
        let row = StoredRow::new(table, batch.value(*row as usize));
        match row.and_then(|row| test.holds(row)) {
            Ok(holds) => holds == Some(true),
            Err(error) => {
                failed = Some(error);
                false
            }
        }
    });
    failed.map_or(Ok(()), Err)
}
