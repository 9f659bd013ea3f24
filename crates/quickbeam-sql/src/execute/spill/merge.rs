//! The merge of an external sort: sorted runs in a temporary file, read in order.

use std::cmp::Ordering;

use super::{SpillFile, Stream, StreamReader, read_value, write_value};
use crate::error::Result;
use crate::execute::row::Context;
use crate::types::{Value, ValueRef};

/// Runs that are merged at a time.
const FAN_IN: usize = 64;

/// The order of two rows by their sort keys.
pub type RowOrder<'o> = &'o dyn Fn(&[Value], &[Value]) -> Ordering;

/// Sorted runs of rows. A row is its outputs, followed by its sort keys. Rows of equal keys stay in
/// the order in which they were added.
#[derive(Debug)]
pub struct SortedRuns {
    file: SpillFile,
    runs: Vec<Stream>,
    merge: Merge,
}

impl SortedRuns {
    /// Makes an empty set of runs.
    pub fn new(context: &Context<'_>) -> Result<SortedRuns> {
        let file = SpillFile::create(context)?;
        Ok(SortedRuns { file, runs: Vec::new(), merge: Merge::default() })
    }

    /// Removes the file.
    pub fn remove(&self, context: &Context<'_>) {
        self.file.remove(context);
    }

    /// Begins a run. The rows are then added in order.
    pub fn begin_run(&mut self) {
        self.runs.push(Stream::default());
    }

    /// Adds a row to the run.
    pub fn push<'v>(&mut self, row: impl Iterator<Item = ValueRef<'v>>) -> Result<()> {
        let Some(run) = self.runs.last_mut() else { return Ok(()) };
        run.push(&mut self.file, |out| row.for_each(|value| write_value(value, out)))
    }

    /// Ends a run.
    pub fn end_run(&mut self) -> Result<()> {
        match self.runs.last_mut() {
            Some(run) => run.finish(&mut self.file),
            None => Ok(()),
        }
    }

    /// Begins to merge all runs, those that are too many for one merge first.
    pub fn merge(&mut self, context: &Context<'_>, order: RowOrder<'_>) -> Result<()> {
        while self.runs.len() > FAN_IN {
            let mut runs = std::mem::take(&mut self.runs).into_iter();
            let mut merged = Vec::new();
            loop {
                let some: Vec<Stream> = runs.by_ref().take(FAN_IN).collect();
                if some.is_empty() {
                    break;
                }
                merged.push(self.merge_into_one(some, context, order)?);
            }
            self.runs = merged;
        }
        self.merge = Merge::begin(std::mem::take(&mut self.runs), &self.file, order)?;
        Ok(())
    }

    fn merge_into_one(
        &mut self,
        runs: Vec<Stream>,
        context: &Context<'_>,
        order: RowOrder<'_>,
    ) -> Result<Stream> {
        let mut merge = Merge::begin(runs, &self.file, order)?;
        let (mut made, mut row) = (Stream::default(), Vec::new());
        while merge.next(&mut row, &self.file, order)? {
            context.check_cancelled()?;
            made.push(&mut self.file, |out| {
                row.iter().for_each(|value| write_value(value.as_ref(), out));
            })?;
        }
        made.finish(&mut self.file)?;
        Ok(made)
    }

    /// Moves the next row of all runs to `row`.
    pub fn next(&mut self, row: &mut Vec<Value>, order: RowOrder<'_>) -> Result<bool> {
        self.merge.next(row, &self.file, order)
    }
}

/// The next row of a run.
#[derive(Debug)]
struct Head {
    /// The number of the run, which orders rows of equal keys.
    run: usize,
    row: Vec<Value>,
    reader: StreamReader,
}

impl Head {
    /// Reads the next row of the run.
    fn advance(&mut self, file: &SpillFile) -> Result<bool> {
        self.row.clear();
        let Some(mut record) = self.reader.next(file)? else { return Ok(false) };
        while !record.is_empty() {
            self.row.push(read_value(&mut record)?.to_value());
        }
        Ok(true)
    }
}

/// A heap of the runs' next rows, the least of all first.
#[derive(Debug, Default)]
struct Merge {
    heads: Vec<Head>,
}

impl Merge {
    fn begin(runs: Vec<Stream>, file: &SpillFile, order: RowOrder<'_>) -> Result<Merge> {
        let mut heads = Vec::with_capacity(runs.len());
        for (run, stream) in runs.into_iter().enumerate() {
            let mut head = Head { run, row: Vec::new(), reader: stream.into_reader() };
            if head.advance(file)? {
                heads.push(head);
            }
        }
        let mut merge = Merge { heads };
        for at in (0..merge.heads.len() / 2).rev() {
            merge.sift_down(at, order);
        }
        Ok(merge)
    }

    fn is_less(&self, a: usize, b: usize, order: RowOrder<'_>) -> bool {
        let (Some(a), Some(b)) = (self.heads.get(a), self.heads.get(b)) else { return false };
        order(&a.row, &b.row).then(a.run.cmp(&b.run)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize, order: RowOrder<'_>) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let child = if self.is_less(right, left, order) { right } else { left };
            if !self.is_less(child, at, order) {
                return;
            }
            self.heads.swap(at, child);
            at = child;
        }
    }

    fn next(
        &mut self,
        row: &mut Vec<Value>,
        file: &SpillFile,
        order: RowOrder<'_>,
    ) -> Result<bool> {
        let Some(head) = self.heads.first_mut() else { return Ok(false) };
        std::mem::swap(row, &mut head.row);
        if !head.advance(file)? {
            self.heads.swap_remove(0);
        }
        self.sift_down(0, order);
        Ok(true)
    }
}
