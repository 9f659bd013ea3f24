//! The test program of the Berkeley DB reference manual's page on transaction throughput: write
//! some bytes and flush them, over and over. What it reaches is the ceiling for commits of a
//! single thread that wait for the device.

pub mod command;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::statistics::Latencies;

/// Alignment of position, size and memory for direct I/O.
const BLOCK: usize = 4096;

/// How the bytes reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// `write` and `fsync`.
    Fsync,
    /// `write` and `fdatasync`.
    Fdatasync,
    /// `write` to a file opened with `O_DSYNC`.
    Dsync,
    /// As `Dsync`, past the page cache: whole blocks of 4096 bytes.
    Direct,
}

impl Flush {
    /// Every way.
    pub const ALL: [Flush; 4] = [Flush::Fsync, Flush::Fdatasync, Flush::Dsync, Flush::Direct];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Flush::Fsync => "fsync",
            Flush::Fdatasync => "fdatasync",
            Flush::Dsync => "O_DSYNC",
            Flush::Direct => "O_DIRECT|O_DSYNC",
        }
    }

    fn open_flags(self) -> i32 {
        match self {
            Flush::Fsync | Flush::Fdatasync => 0,
            Flush::Dsync => libc::O_DSYNC,
            Flush::Direct => libc::O_DSYNC | libc::O_DIRECT,
        }
    }
}

/// Whether the blocks of the file are there before the first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Each write makes the file longer.
    Growing,
    /// The file was filled with zeros and flushed before.
    Preallocated,
}

impl Growth {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Growth::Growing => "growing",
            Growth::Preallocated => "preallocated",
        }
    }
}

/// One way to run the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Whether the file grows.
    pub growth: Growth,
    /// How it is flushed.
    pub flush: Flush,
}

impl Variant {
    /// Every variant.
    pub fn all() -> impl Iterator<Item = Variant> {
        [Growth::Growing, Growth::Preallocated]
            .into_iter()
            .flat_map(|growth| Flush::ALL.map(|flush| Variant { growth, flush }))
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.growth.name(), self.flush.name())
    }
}

/// What one run measured.
pub struct LogWriteOutcome {
    /// Writes, each with its flush, a second.
    pub ops_per_second: f64,
    /// Bytes of one write: rounded up to whole blocks for direct I/O.
    pub bytes: usize,
    /// Latency of a write with its flush.
    pub latencies: Latencies,
}

/// Writes `bytes` bytes and flushes them, `operations` times, to a file in `directory`.
///
/// Fails when the file system does not have the variant (memory file systems refuse `O_DIRECT`).
pub fn run(
    directory: &Path,
    variant: Variant,
    bytes: usize,
    operations: u64,
) -> Result<LogWriteOutcome> {
    let path = directory.join("logwrite.dat");
    let outcome = write_file(&path, variant, bytes, operations)
        .with_context(|| format!("{} ({variant})", path.display()));
    std::fs::remove_file(&path).ok(); // already gone when creating it failed
    outcome
}

fn write_file(
    path: &Path,
    variant: Variant,
    bytes: usize,
    operations: u64,
) -> Result<LogWriteOutcome> {
    let direct = variant.flush == Flush::Direct;
    let bytes = if direct { bytes.next_multiple_of(BLOCK) } else { bytes };
    let mut memory = vec![0u8; bytes + BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let buffer = &mut memory[start..start + bytes];

    let file = File::create(path)?;
    if variant.growth == Growth::Preallocated {
        fill(&file, bytes as u64 * operations)?;
    }
    file.sync_all()?;
    let file =
        OpenOptions::new().write(true).custom_flags(variant.flush.open_flags()).open(path)?;

    let mut latencies = Latencies::default();
    let begin = Instant::now();
    let mut last = begin;
    for operation in 0..operations {
        // Something else each time, as in a log.
        buffer[..8].copy_from_slice(&operation.to_be_bytes());
        file.write_all_at(buffer, operation * bytes as u64)?;
        match variant.flush {
            Flush::Fsync => file.sync_all()?,
            Flush::Fdatasync => file.sync_data()?,
            Flush::Dsync | Flush::Direct => {}
        }
        let now = Instant::now();
        latencies.record(now - last);
        last = now;
    }
    let ops_per_second = operations as f64 / (last - begin).as_secs_f64();
    Ok(LogWriteOutcome { ops_per_second, bytes, latencies })
}

fn fill(file: &File, size: u64) -> io::Result<()> {
    let zeros = vec![0u8; 1 << 20];
    let mut position = 0;
    while position < size {
        let part = (size - position).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..part], position)?;
        position += part as u64;
    }
    Ok(())
}

/// What the device allows at most for commits that write `bytes` bytes each.
#[derive(Clone, Debug)]
pub struct Ceiling {
    /// Bytes of one write.
    pub bytes: usize,
    /// Preallocated file, `write` and `fdatasync`: the manual's procedure at its best.
    pub fdatasync: f64,
    /// The fastest variant of all that the file system has.
    pub best: f64,
    /// Its name.
    pub best_name: &'static str,
}

/// Measures the ceiling in `directory`. Called between the runs of a benchmark, so that both see
/// the same device at the same time.
pub fn ceiling(directory: &Path, bytes: usize, operations: u64) -> Result<Ceiling> {
    let rate = |flush| {
        let variant = Variant { growth: Growth::Preallocated, flush };
        run(directory, variant, bytes, operations).map(|outcome| outcome.ops_per_second)
    };
    let fdatasync = rate(Flush::Fdatasync)?;
    let mut ceiling =
        Ceiling { bytes, fdatasync, best: fdatasync, best_name: Flush::Fdatasync.name() };
    for flush in [Flush::Dsync, Flush::Direct] {
        // Not every file system has direct I/O; the others give the ceiling then.
        if let Ok(rate) = rate(flush)
            && rate > ceiling.best
        {
            ceiling.best = rate;
            ceiling.best_name = flush.name();
        }
    }
    Ok(ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_that_the_file_system_has_runs() {
        let directory = std::env::temp_dir();
        for variant in Variant::all() {
            match run(&directory, variant, 256, 3) {
                Ok(outcome) if variant.flush == Flush::Direct => assert_eq!(outcome.bytes, 4096),
                Ok(outcome) => assert_eq!(outcome.bytes, 256),
                Err(error) => assert_eq!(variant.flush, Flush::Direct, "{error:#}"),
            }
        }
    }
}
