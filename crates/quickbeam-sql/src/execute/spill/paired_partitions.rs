//! Partitions of two inputs by the hash of the same key: the build and the probe side of a join, or
//! the two sides of a set operation.
//!
//! The build rows that fit into memory stay there, and all probe rows meet them. The other build
//! rows go to partitions, and so do the probe rows whose partition has build rows. A pair of
//! partitions is then processed as the two inputs were, with further partitions if its build rows
//! do not fit either.

use super::{SpillFile, Stream, StreamReader};
use crate::error::Result;
use crate::execute::hash::key_table::partition_of;
use crate::execute::row::Context;

/// Partitions of one input.
const FAN_OUT: usize = 16;

/// Spilled rows of both sides, in partitions.
#[derive(Debug)]
pub struct PairedPartitions {
    file: SpillFile,
    /// How often the rows read now were partitioned.
    level: u32,
    /// The rows written at this level.
    build: Vec<Stream>,
    probe: Vec<Stream>,
    /// The pairs to be read, with the level of their rows.
    spilled: Vec<(u32, Stream, Stream)>,
    /// The probe rows of the pair that is read.
    next_probe: Option<Stream>,
    reader: Option<StreamReader>,
}

impl PairedPartitions {
    /// Makes empty partitions.
    pub fn new(context: &Context<'_>) -> Result<PairedPartitions> {
        let file = SpillFile::create(context)?;
        let (build, probe, spilled) = (Vec::new(), Vec::new(), Vec::new());
        Ok(PairedPartitions {
            file,
            level: 0,
            build,
            probe,
            spilled,
            next_probe: None,
            reader: None,
        })
    }

    /// Removes the file.
    pub fn remove(&self, context: &Context<'_>) {
        self.file.remove(context);
    }

    /// Whether build rows were written since a pair was opened.
    pub fn has_build_rows(&self) -> bool {
        !self.build.is_empty()
    }

    /// Writes a build row to the partition of its key.
    pub fn push_build(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.build.is_empty() {
            self.build.resize_with(FAN_OUT, Stream::default);
        }
        match self.build.get_mut(partition_of(key, self.level, FAN_OUT)) {
            Some(stream) => stream.push(&mut self.file, write),
            None => Ok(()),
        }
    }

    /// Ends the build rows of this level, and frees their buffers.
    pub fn finish_build(&mut self) -> Result<()> {
        self.build.iter_mut().try_for_each(|stream| stream.finish(&mut self.file))
    }

    /// Whether the partition of a key has build rows.
    pub fn has_build_rows_of(&self, key: &[u8]) -> bool {
        let place = partition_of(key, self.level, FAN_OUT);
        self.build.get(place).is_some_and(|stream| !stream.is_empty())
    }

    /// Writes a probe row to the partition of its key.
    pub fn push_probe(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.probe.is_empty() {
            self.probe.resize_with(FAN_OUT, Stream::default);
        }
        match self.probe.get_mut(partition_of(key, self.level, FAN_OUT)) {
            Some(stream) => stream.push(&mut self.file, write),
            None => Ok(()),
        }
    }

    /// Begins to read the build rows of the next pair. Returns false if there is none.
    pub fn open_next(&mut self) -> Result<bool> {
        let build = std::mem::take(&mut self.build);
        let mut probe = std::mem::take(&mut self.probe);
        probe.resize_with(build.len().max(probe.len()), Stream::default);
        let builds = build.into_iter().chain(std::iter::repeat_with(Stream::default));
        for (mut build, mut probe) in builds.zip(probe) {
            build.finish(&mut self.file)?;
            probe.finish(&mut self.file)?;
            if !build.is_empty() || !probe.is_empty() {
                self.spilled.push((self.level + 1, build, probe));
            }
        }
        let Some((level, build, probe)) = self.spilled.pop() else {
            self.reader = None;
            return Ok(false);
        };
        self.level = level;
        self.next_probe = Some(probe);
        self.reader = Some(build.into_reader());
        Ok(true)
    }

    /// Begins to read the probe rows of the pair.
    pub fn open_probe(&mut self) {
        self.reader = self.next_probe.take().map(Stream::into_reader);
    }

    /// Returns the next row of the side that is read.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        match &mut self.reader {
            Some(reader) => reader.next(&self.file),
            None => Ok(None),
        }
    }
}
