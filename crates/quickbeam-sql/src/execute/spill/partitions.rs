//! Partitions of rows in a temporary file, by the hash of a key.
//!
//! An operator that hashes keys processes the rows of the keys that fit into memory, and writes the
//! others to partitions. It then reads the partitions one after another, and treats each as its
//! input. A partition that does not fit either is split by other bits of the hash.

use super::{SpillFile, Stream, StreamReader, read_value, write_value};
use crate::error::Result;
use crate::execute::hash::key_table::partition_of;
use crate::execute::row::Context;
use crate::expression::{ColumnRef, Current, Expr};
use crate::types::Value;

/// Partitions of one input.
const FAN_OUT: usize = 16;

/// Spilled rows in partitions.
#[derive(Debug)]
pub struct Partitions {
    file: SpillFile,
    /// How often the rows read now were partitioned.
    level: u32,
    /// The rows written at this level.
    streams: Vec<Stream>,
    /// The partitions to be read, with the level of their rows.
    spilled: Vec<(u32, Stream)>,
    reader: Option<StreamReader>,
}

impl Partitions {
    /// Makes empty partitions.
    pub fn new(context: &Context<'_>) -> Result<Partitions> {
        let file = SpillFile::create(context)?;
        let (streams, spilled) = (Vec::new(), Vec::new());
        Ok(Partitions { file, level: 0, streams, spilled, reader: None })
    }

    /// Removes the file.
    pub fn remove(&self, context: &Context<'_>) {
        self.file.remove(context);
    }

    /// Writes a row to the partition of its key.
    pub fn push(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.streams.is_empty() {
            self.streams.resize_with(FAN_OUT, Stream::default);
        }
        match self.streams.get_mut(partition_of(key, self.level, FAN_OUT)) {
            Some(stream) => stream.push(&mut self.file, write),
            None => Ok(()),
        }
    }

    /// Whether rows were written since the last call of [`open_next`](Self::open_next).
    pub fn has_new_rows(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Begins to read the next partition. Returns false if there is none.
    pub fn open_next(&mut self) -> Result<bool> {
        for mut stream in std::mem::take(&mut self.streams) {
            stream.finish(&mut self.file)?;
            if !stream.is_empty() {
                self.spilled.push((self.level + 1, stream));
            }
        }
        let next = self.spilled.pop();
        self.reader = next.map(|(level, stream)| {
            self.level = level;
            stream.into_reader()
        });
        Ok(self.reader.is_some())
    }

    /// Returns the next row of the partition.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        match &mut self.reader {
            Some(reader) => reader.next(&self.file),
            None => Ok(None),
        }
    }
}

/// The columns of current rows that an operator reads. They are saved in a record, and become the
/// current rows again.
#[derive(Debug)]
pub struct RowImage {
    columns: Vec<ColumnRef>,
}

impl RowImage {
    /// Makes the image of what expressions read of the slots that the operator's input fills.
    pub fn new<'e>(exprs: impl Iterator<Item = &'e Expr>, slots: &[usize]) -> RowImage {
        let mut columns = Vec::new();
        for expr in exprs {
            expr.each_column(&mut |column| columns.push(column));
        }
        columns.retain(|column| slots.contains(&column.slot));
        columns.sort_unstable();
        columns.dedup();
        RowImage { columns }
    }

    /// Appends the columns of the current rows.
    pub fn save(&self, context: &Context<'_>, out: &mut Vec<u8>) -> Result<()> {
        for column in &self.columns {
            if let Some(slot) = context.slots.get(column.slot) {
                write_value(slot.column(column.column)?, out);
            }
        }
        Ok(())
    }

    /// Makes the saved columns current.
    pub fn restore(&self, mut record: &[u8], context: &mut Context<'_>) -> Result<()> {
        let mut begun = None;
        for column in &self.columns {
            let slot = context.slot(column.slot)?;
            if begun != Some(column.slot) {
                begun = Some(column.slot);
                slot.values.clear();
                slot.current = Current::Values;
            }
            // The columns of a slot are in order.
            slot.values.resize(column.column, Value::Null);
            slot.values.push(read_value(&mut record)?.to_value());
        }
        Ok(())
    }
}
