//! Order of columns.

use arrow_array::{Int64Array, UInt32Array};
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::SortOptions;
use std::sync::Arc;

use super::super::row::{Context, MemoryCharge, wanted_of};
use super::column::Vector;
use super::evaluate::{VectorExpr, failed};
use super::source::VectorSource;
use crate::error::Result;
use crate::expression::Expr;
use crate::types::ValueRef;

/// A sort key: its values and direction.
#[derive(Debug)]
pub struct VectorSortKey {
    pub formula: VectorExpr,
    pub descending: bool,
    pub nulls_first: bool,
}

/// A stable vectorized sort.
#[derive(Debug)]
pub struct VectorSort {
    pub source: VectorSource,
    slot: usize,
    outputs: Vec<VectorExpr>,
    keys: Vec<VectorSortKey>,
    most: Option<(Expr, Option<Expr>)>,
    /// Outputs, followed by keys, as batches.
    kept: Vec<Vec<Vector>>,
    account: MemoryCharge,
    rows: usize,
    /// The columns as one, and the order of their rows.
    columns: Vec<Vector>,
    order: UInt32Array,
    next: usize,
    done: bool,
}

impl VectorSort {
    pub fn new(
        source: VectorSource,
        slot: usize,
        outputs: Vec<VectorExpr>,
        keys: Vec<VectorSortKey>,
        most: Option<(Expr, Option<Expr>)>,
    ) -> VectorSort {
        let order = UInt32Array::from(Vec::<u32>::new());
        let (kept, columns) = (Vec::new(), Vec::new());
        VectorSort {
            source,
            slot,
            outputs,
            keys,
            most,
            kept,
            account: MemoryCharge::default(),
            rows: 0,
            columns,
            order,
            next: 0,
            done: false,
        }
    }

    pub fn rewind(&mut self) {
        self.source.rewind();
        self.done = false;
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.done = true;
        self.next = 0;
        self.rows = 0;
        self.account.clear(context);
        self.kept = (0..self.outputs.len() + self.keys.len()).map(|_| Vec::new()).collect();
        let wanted = wanted_of(context, self.most.as_ref())?;
        let keys = self.keys.iter_mut().map(|key| &mut key.formula);
        for formula in self.outputs.iter_mut().chain(keys) {
            formula.begin(context)?;
        }
        // A margin above the limit, so that rows are not dropped after every batch.
        let most = wanted.saturating_mul(2).saturating_add(16_384);
        let mut bytes = 0;
        while let Some(columns) = self.source.next(context)? {
            let keys = self.keys.iter().map(|key| &key.formula);
            for (formula, kept) in self.outputs.iter().chain(keys).zip(&mut self.kept) {
                let column = formula.column(&columns.vectors, columns.rows)?;
                bytes += column.bytes();
                kept.push(column);
            }
            self.account.keep_most(bytes, context)?;
            self.rows += columns.rows;
            if self.rows > most {
                self.order(wanted)?;
                self.kept = Vec::new();
                for column in &self.columns {
                    let first = arrow_select::take::take(column.array(), &self.order, None);
                    self.kept.push(vec![Vector::of(&*first.map_err(|error| failed(&error))?)?]);
                }
                bytes = self.kept.iter().flatten().map(Vector::bytes).sum();
                self.rows = self.order.len();
            }
        }
        self.order(wanted)
    }

    /// Makes one column of the parts of each, and finds the order of their rows.
    fn order(&mut self, wanted: usize) -> Result<()> {
        self.columns.clear();
        self.order = UInt32Array::from(Vec::<u32>::new());
        if self.rows == 0 {
            return Ok(());
        }
        for parts in &self.kept {
            self.columns.push(Vector::joined(parts)?);
        }
        let keys = self.columns.iter().skip(self.outputs.len()).zip(&self.keys);
        let mut columns: Vec<SortColumn> = keys
            .map(|(column, key)| SortColumn {
                values: column.to_array(),
                options: Some(SortOptions {
                    descending: key.descending,
                    nulls_first: key.nulls_first,
                }),
            })
            .collect();
        let came: Int64Array = (0..self.rows as i64).map(Some).collect();
        columns.push(SortColumn { values: Arc::new(came), options: None });
        let order = lexsort_to_indices(&columns, Some(wanted));
        self.order = order.map_err(|error| failed(&error))?;
        Ok(())
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.done {
            self.run(context)?;
        }
        if self.next >= self.order.len() {
            return Ok(false);
        }
        let row = self.order.value(self.next) as usize;
        self.next += 1;
        let values = self.columns.iter().zip(&self.outputs);
        let values = values.map(|(column, output)| column.value(row, output.data_type));
        context.put_values(self.slot, values.map(ValueRef::to_value));
        Ok(true)
    }
}
