//! Scans that evaluate their filter by columns, and look up the rows that satisfy it (late
//! materialization).
//!
//! Above: row operators. Below: the columns of the table, often from the column cache, and its tree
//! of rows. Where few rows satisfy the filter, most leaves are never read.

use super::super::row::{Context, TableScan};
use super::evaluate::InputColumns;
use super::may_exceed_decimals;
use super::source::{ColumnBatch, VectorSource, leaf_filter};
use crate::error::{Result, SqlError};
use crate::expression::ColumnRef;
use crate::plan::{AccessPath, TableAccess};
use crate::types::{DataType, ValueRef};

/// Rows that are tested before the part of them that satisfies the filter is judged.
const FIRST_TESTED: usize = 4096;
/// The scan goes on by rows once more than one row in `MANY` satisfies the filter. Then the lookups
/// cost more than reading all leaves.
const MANY: usize = 12;

/// A scan with a filter that is evaluated by columns.
#[derive(Debug)]
pub struct FilteredScan {
    pub source: VectorSource,
    /// For each column of the table that is part of the key, its vector and its type.
    key_columns: Vec<Option<(usize, DataType)>>,
    /// Rows that satisfy the filter, and the next one.
    batch: ColumnBatch,
    next: usize,
    key: Vec<u8>,
    /// Rows that satisfied the filter.
    passed: usize,
    /// Whether the scan goes on by rows, because far more rows satisfy the filter than expected.
    by_rows: bool,
}

/// Whether a scan can evaluate its filter by columns and then look up rows. A condition that may
/// fail is left to rows: one after the last row that is asked for must not be evaluated.
pub fn can_filter(access: &TableAccess, known: &InputColumns<'_>) -> bool {
    let is_plain = matches!(access.path, AccessPath::All)
        && !(access.keys || access.row_ids || access.backward)
        && access.table.access_method().is_ordered();
    let (Some(filter), Some(_), true) = (&access.filter, &access.table.primary_key, is_plain)
    else {
        return false;
    };
    leaf_filter(access, known).is_some_and(|filter| !filter.iter().any(super::VectorExpr::may_fail))
        && !may_exceed_decimals(filter)
}

impl FilteredScan {
    pub fn new(
        source: VectorSource,
        access: &TableAccess,
        columns: &[(ColumnRef, DataType)],
    ) -> Result<FilteredScan> {
        let mut key_columns = vec![None; access.table.columns.len()];
        let key = access.table.primary_key.iter().flat_map(|key| &key.columns);
        for column in key {
            let nth = columns.iter().position(|(at, _)| at.column == *column);
            let found = nth.and_then(|nth| Some((nth, columns.get(nth)?.1)));
            match (key_columns.get_mut(*column), found) {
                (Some(known), Some(found)) => *known = Some(found),
                _ => return Err(no_key()),
            }
        }
        let (batch, key) = (ColumnBatch::default(), Vec::new());
        Ok(FilteredScan { source, key_columns, batch, next: 0, key, passed: 0, by_rows: false })
    }

    pub fn rewind(&mut self) {
        self.source.rewind();
        (self.batch, self.next) = (ColumnBatch::default(), 0);
        (self.passed, self.by_rows) = (0, false);
    }

    /// Moves to the next row that satisfies the filter.
    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        loop {
            if self.by_rows {
                return self.scan()?.next(context);
            }
            while self.next < self.batch.rows {
                let row = self.next;
                self.next += 1;
                let (batch, key_columns) = (&self.batch, &self.key_columns);
                let value = |column: usize| -> Result<ValueRef<'_>> {
                    let known = key_columns.get(column).copied().flatten();
                    let (nth, data_type) = known.ok_or_else(no_key)?;
                    let vector = batch.vectors.get(nth).ok_or_else(no_key)?;
                    Ok(vector.value(row, data_type))
                };
                let scan = self.source.outer_scan().ok_or_else(no_key)?;
                self.key.clear();
                scan.encode_key(&mut self.key, value)?;
                if scan.fetch_row(&self.key, context)? {
                    return Ok(true);
                }
            }
            let tested = self.source.tested_rows().unwrap_or(0);
            if tested >= FIRST_TESTED && self.passed > tested / MANY {
                self.by_rows = true;
                self.scan()?.go_on_by_rows(context);
                continue;
            }
            let Some(batch) = self.source.next(context)? else { return Ok(false) };
            self.passed += batch.rows;
            (self.batch, self.next) = (batch, 0);
        }
    }

    fn scan(&mut self) -> Result<&mut TableScan> {
        self.source.outer_scan().ok_or_else(no_key)
    }
}

#[cold]
fn no_key() -> SqlError {
    SqlError::internal("a filtered scan without a key")
}
