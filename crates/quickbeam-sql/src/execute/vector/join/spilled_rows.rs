//! Spilled rows of a vectorized join, in partitions of a temporary file.
//!
//! Above: the join. Below: paired partitions. A record has the values of one row; that of an outer
//! row begins with a byte that tells whether it was matched.

use super::super::column::{ColumnBuilder, kind_of};
use super::super::no_formula;
use super::super::source::{ColumnBatch, ROWS};
use super::input::{KeyColumns, make_key};
use crate::error::Result;
use crate::execute::row::Context;
use crate::execute::spill::{PairedPartitions, read_value, take, write_value};
use crate::expression::ColumnRef;
use crate::types::DataType;

/// The columns of a row, in the order of its record.
type RecordColumns = [(ColumnRef, DataType)];

/// Spilled rows.
#[derive(Debug)]
pub struct SpilledRows {
    partitions: PairedPartitions,
    /// Whether they are read now.
    pub is_read: bool,
    key: Vec<u8>,
    /// Which rows of the batch of outer rows were matched before they were spilled.
    fitted: Vec<bool>,
}

/// The side of the join that spilled rows are of. Outer rows come with a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SpilledSide {
    Inner,
    Outer,
}

/// The inner rows that are spilled. A row without a key matches none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SpilledInnerRows {
    WithKeys,
    All,
}

impl SpilledRows {
    pub fn new(context: &Context<'_>) -> Result<SpilledRows> {
        let partitions = PairedPartitions::new(context)?;
        Ok(SpilledRows { partitions, is_read: false, key: Vec::new(), fitted: Vec::new() })
    }

    /// Removes the file.
    pub fn remove(&self, context: &Context<'_>) {
        self.partitions.remove(context);
    }

    /// Whether inner rows were spilled for the next level.
    pub fn has_inner_rows(&self) -> bool {
        self.partitions.has_build_rows()
    }

    /// Writes the inner rows that have keys, or all of them.
    pub fn push_inner(
        &mut self,
        columns: &ColumnBatch,
        types: &RecordColumns,
        keys: &KeyColumns,
        rows: SpilledInnerRows,
    ) -> Result<()> {
        for row in 0..columns.rows {
            if make_key(keys, row, &mut self.key) || rows == SpilledInnerRows::All {
                let write = |out: &mut Vec<u8>| write_row(columns, types, row, out);
                self.partitions.push_build(&self.key, write)?;
            }
        }
        Ok(())
    }

    /// Ends the inner rows of this level, and begins to read the outer rows.
    pub fn begin_outer(&mut self) -> Result<()> {
        self.partitions.finish_build()?;
        self.partitions.open_probe();
        Ok(())
    }

    /// Writes an outer row, and whether it was matched, if inner rows with its key may be
    /// spilled. Returns whether it was written.
    pub fn push_outer(
        &mut self,
        columns: &ColumnBatch,
        types: &RecordColumns,
        keys: &KeyColumns,
        (row, fitted): (usize, bool),
    ) -> Result<bool> {
        if !make_key(keys, row, &mut self.key) || !self.partitions.has_build_rows_of(&self.key) {
            return Ok(false);
        }
        self.partitions.push_probe(&self.key, |out| {
            out.push(u8::from(fitted));
            write_row(columns, types, row, out);
        })?;
        Ok(true)
    }

    /// Whether a row of the batch of outer rows was matched before it was spilled.
    pub fn was_fitted(&self, row: usize) -> bool {
        self.fitted.get(row).copied().unwrap_or(false)
    }

    /// Begins to read the next pair of partitions. Returns false if there is none.
    pub fn open_next(&mut self) -> Result<bool> {
        self.is_read = self.partitions.open_next()?;
        Ok(self.is_read)
    }

    /// Reads inner rows, at most about `most` bytes of them.
    pub fn next_inner(
        &mut self,
        types: &RecordColumns,
        most: usize,
    ) -> Result<Option<ColumnBatch>> {
        self.read(types, most, SpilledSide::Inner)
    }

    /// Reads outer rows, at most about `most` bytes of them.
    pub fn next_outer(
        &mut self,
        types: &RecordColumns,
        most: usize,
    ) -> Result<Option<ColumnBatch>> {
        self.read(types, most, SpilledSide::Outer)
    }

    fn read(
        &mut self,
        types: &RecordColumns,
        most: usize,
        side: SpilledSide,
    ) -> Result<Option<ColumnBatch>> {
        self.fitted.clear();
        let mut builders = Vec::with_capacity(types.len());
        for (_, data_type) in types {
            builders.push(ColumnBuilder::new(kind_of(*data_type).ok_or_else(no_formula)?));
        }
        let (mut rows, mut bytes) = (0, 0);
        while rows < ROWS && bytes < most {
            let Some(mut record) = self.partitions.next()? else { break };
            bytes += record.len();
            if side == SpilledSide::Outer {
                let [fitted] = *take(&mut record)?;
                self.fitted.push(fitted != 0);
            }
            for builder in &mut builders {
                builder.push(read_value(&mut record)?)?;
            }
            rows += 1;
        }
        let vectors = builders.iter_mut().map(ColumnBuilder::finish).collect();
        Ok((rows > 0).then_some(ColumnBatch { rows, vectors }))
    }
}

fn write_row(columns: &ColumnBatch, types: &RecordColumns, row: usize, out: &mut Vec<u8>) {
    for (vector, (_, data_type)) in columns.vectors.iter().zip(types) {
        write_value(vector.value(row, *data_type), out);
    }
}
