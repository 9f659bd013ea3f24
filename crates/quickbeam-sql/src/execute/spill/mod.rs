//! Temporary files for what exceeds a statement's memory: streams of records in one file.
//!
//! Above: sorts and aggregations. Below: the engine's temporary files.
//!
//! - SPILL-1: the statement owns the file, the operator refers to it. When the statement ends, in
//!   whatever way, the file is removed, although a prepared statement keeps its operators (by type)
//! - SPILL-2: an environment without a directory, or open for reading only, has no temporary files.
//!   There a statement that exceeds its memory fails with 53200.

mod encoding;
mod merge;
mod paired_partitions;
mod partitions;
mod slot_rows;

use std::sync::{Arc, Weak};

use quickbeam::invariant;
use quickbeam::query_layer::{EnvironmentExt, TemporaryFile};

use super::row::Context;
use crate::error::{Result, SqlError};

pub(super) use encoding::{damaged, read_value, take, write_value};
pub(super) use merge::SortedRuns;
pub(super) use paired_partitions::PairedPartitions;
pub(super) use partitions::{Partitions, RowImage};
pub(super) use slot_rows::{SavedKeys, restore_rows, save_rows};

/// The temporary file of an operator.
#[derive(Debug)]
pub(super) struct SpillFile {
    file: Weak<TemporaryFile>,
    end: u64,
    /// Bytes that are written and read together.
    block: usize,
}

impl SpillFile {
    /// Creates a file. Fails if the environment has none, because the memory is exceeded then.
    pub fn create(context: &Context<'_>) -> Result<SpillFile> {
        let Some(file) = context.catalog.environment().create_temporary_file()? else {
            let has_files = context.catalog.environment().has_temporary_files();
            invariant!(SPILL_2, !has_files, "no temporary file was created");
            return Err(context.limits.out_of_memory());
        };
        let file = Arc::new(file);
        let weak = Arc::downgrade(&file);
        context.budget.keep_file(file);
        let block = (context.limits.memory.get() / 256).clamp(4 << 10, 256 << 10);
        Ok(SpillFile { file: weak, end: 0, block })
    }

    fn file(&self) -> Result<Arc<TemporaryFile>> {
        let file = self.file.upgrade();
        file.ok_or_else(|| SqlError::internal("a temporary file of a statement that ended"))
    }

    /// Removes the file before the statement ends.
    pub fn remove(&self, context: &Context<'_>) {
        context.budget.drop_file(&self.file);
    }

    fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        let at = self.end;
        self.file()?.write_at(bytes, at)?;
        self.end += bytes.len() as u64;
        Ok(at)
    }
}

/// Records, written one after another in blocks of a file.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Place and length of each block. No record crosses a block's end.
    blocks: Vec<(u64, usize)>,
    buffer: Vec<u8>,
}

impl Stream {
    /// Appends a record, which `write` appends to the bytes given.
    pub fn push(&mut self, file: &mut SpillFile, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        write(&mut self.buffer);
        let length = u32::try_from(self.buffer.len() - start - 4);
        let length = length.map_err(|_| SqlError::internal("a row of more than 4 GiB"))?;
        if let Some(place) = self.buffer.get_mut(start..start + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        if self.buffer.len() >= file.block { self.flush(file) } else { Ok(()) }
    }

    fn flush(&mut self, file: &mut SpillFile) -> Result<()> {
        if !self.buffer.is_empty() {
            self.blocks.push((file.write(&self.buffer)?, self.buffer.len()));
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes what is in memory, and frees it.
    pub fn finish(&mut self, file: &mut SpillFile) -> Result<()> {
        self.flush(file)?;
        self.buffer = Vec::new();
        Ok(())
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.buffer.is_empty()
    }

    /// Returns the records of a finished stream, in the order in which they were written.
    pub fn into_reader(self) -> StreamReader {
        StreamReader { blocks: self.blocks.into_iter(), buffer: Vec::new(), at: 0 }
    }
}

/// The records of a stream.
#[derive(Debug)]
pub(super) struct StreamReader {
    blocks: std::vec::IntoIter<(u64, usize)>,
    buffer: Vec<u8>,
    at: usize,
}

impl StreamReader {
    /// Returns the next record.
    pub fn next(&mut self, file: &SpillFile) -> Result<Option<&[u8]>> {
        if self.at >= self.buffer.len() {
            let Some((place, length)) = self.blocks.next() else { return Ok(None) };
            self.buffer.resize(length, 0);
            file.file()?.read_at(&mut self.buffer, place)?;
            self.at = 0;
        }
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let record = rest.split_first_chunk().and_then(|(length, rest)| {
            let length = u32::from_le_bytes(*length) as usize;
            self.at += 4 + length;
            rest.get(..length)
        });
        record.map(Some).ok_or_else(encoding::damaged)
    }
}
