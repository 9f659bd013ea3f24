//! ORDER BY of columns, with a top-N sort for LIMIT.

use arrow_array::{Int64Array, UInt32Array};
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::SortOptions;
use std::cmp::Ordering;
use std::sync::Arc;

use super::super::row::{Context, MemoryCharge, order_of_values, wanted_of};
use super::super::spill::SortedRuns;
use super::column::Vector;
use super::evaluate::{VectorExpr, failed};
use super::source::VectorSource;
use crate::error::Result;
use crate::expression::Expr;
use crate::types::{Value, ValueRef};

/// A sort key: its values and direction.
#[derive(Debug)]
pub struct VectorSortKey {
    pub formula: VectorExpr,
    pub descending: bool,
    pub nulls_first: bool,
}

/// A stable vectorized sort. What exceeds the memory is sorted in runs, which are merged row by
/// row.
#[derive(Debug)]
pub struct VectorSort {
    pub source: VectorSource,
    slot: usize,
    outputs: Vec<VectorExpr>,
    keys: Vec<VectorSortKey>,
    most: Option<(Expr, Option<Expr>)>,
    /// Outputs, followed by keys, as batches.
    kept: Vec<Vec<Vector>>,
    runs: Option<SortedRuns>,
    /// A row of the merge.
    row: Vec<Value>,
    account: MemoryCharge,
    rows: usize,
    /// The columns as one, and the order of their rows.
    columns: Vec<Vector>,
    order: UInt32Array,
    next: usize,
    done: bool,
}

/// The order of two rows, whose keys follow `width` outputs.
fn compare(keys: &[VectorSortKey], width: usize, a: &[Value], b: &[Value]) -> Ordering {
    let pairs = keys.iter().zip(a.iter().skip(width).zip(b.iter().skip(width)));
    pairs
        .map(|(key, (a, b))| order_of_values((key.descending, key.nulls_first), a, b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
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
            runs: None,
            row: Vec::new(),
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

    /// Releases the memory of a run that failed.
    pub fn abandon(&mut self, context: &Context<'_>) {
        self.kept.clear();
        self.columns.clear();
        self.account.clear(context);
    }

    fn run(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.done = true;
        self.next = 0;
        self.rows = 0;
        self.account.clear(context);
        if let Some(runs) = self.runs.take() {
            runs.remove(context);
        }
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
            self.rows += columns.rows;
            if !self.account.fits(bytes, context)? {
                self.spill(wanted, context)?;
                bytes = 0;
            } else if self.rows > most {
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
        if self.runs.is_none() {
            return self.order(wanted);
        }
        self.spill(wanted, context)?;
        let (keys, width) = (&self.keys, self.outputs.len());
        match &mut self.runs {
            Some(runs) => runs.merge(context, &|a, b| compare(keys, width, a, b)),
            None => Ok(()),
        }
    }

    /// Moves the rows to a sorted run.
    fn spill(&mut self, wanted: usize, context: &Context<'_>) -> Result<()> {
        self.order(wanted)?;
        let runs = match &mut self.runs {
            Some(runs) => runs,
            runs => runs.insert(SortedRuns::new(context)?),
        };
        let keys = self.keys.iter().map(|key| key.formula.data_type);
        let types = self.outputs.iter().map(|output| output.data_type).chain(keys);
        let columns: Vec<_> = self.columns.iter().zip(types).collect();
        runs.begin_run();
        for row in self.order.values() {
            let row = *row as usize;
            runs.push(columns.iter().map(|(column, data_type)| column.value(row, *data_type)))?;
        }
        self.columns.clear();
        self.order = UInt32Array::from(Vec::<u32>::new());
        self.kept = (0..self.outputs.len() + self.keys.len()).map(|_| Vec::new()).collect();
        self.rows = 0;
        self.account.set(0, context);
        runs.end_run()
    }

    /// Makes one column of the parts of each, and finds the order of their rows.
    fn order(&mut self, wanted: usize) -> Result<()> {
        self.columns.clear();
        self.order = UInt32Array::from(Vec::<u32>::new());
        if self.rows == 0 {
            return Ok(());
        }
        // The parts of a column are freed before the next one is made.
        for parts in self.kept.drain(..) {
            self.columns.push(Vector::joined(&parts)?);
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
        let (keys, width) = (&self.keys, self.outputs.len());
        if let Some(runs) = &mut self.runs {
            let more = runs.next(&mut self.row, &|a, b| compare(keys, width, a, b))?;
            let outputs = self.row.drain(..width.min(self.row.len()));
            context.put_values(self.slot, outputs);
            return Ok(more);
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
