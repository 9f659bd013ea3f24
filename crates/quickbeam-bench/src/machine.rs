//! The machine a result was measured on, and the memory and disk space that processes use.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::logwrite::{self, Flush, Growth, Variant};
use crate::statistics::Summary;

/// What a result depends on besides the engine.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Machine {
    /// Processor model.
    pub cpu: String,
    /// Processors that may be used.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Operating system.
    pub system: String,
    /// Kernel release.
    pub kernel: String,
    /// File system and mount options under the databases.
    pub file_system: String,
    /// Flushes a second (256 bytes, preallocated file, fdatasync).
    pub flushes_per_second: f64,
}

impl Machine {
    /// Flushes enough for a steady rate.
    pub const FLUSHES: u64 = 1000;

    /// Describes this machine, with the file system of `directory` and its speed in three times so
    /// many flushes.
    pub fn describe(directory: &Path, flushes: u64) -> Result<Machine> {
        Ok(Machine {
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism()?.get(),
            memory_bytes: memory_bytes(),
            system: field_of(&read("/etc/os-release"), "PRETTY_NAME", '=')
                .map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned()),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            file_system: file_system(directory)?,
            flushes_per_second: flush_rate(directory, flushes)?,
        })
    }
}

fn read(path: &str) -> String {
    // A system without the file leaves the field unknown; that is no reason to fail.
    fs::read_to_string(path).unwrap_or_default()
}

fn field(path: &str, name: &str) -> Option<String> {
    field_of(&read(path), name, ':')
}

fn field_of(text: &str, name: &str, separator: char) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

fn kibibytes(path: &str, name: &str) -> u64 {
    let value = field(path, name).unwrap_or_default();
    value.trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) * 1024
}

fn memory_bytes() -> u64 {
    kibibytes("/proc/meminfo", "MemTotal")
}

fn flush_rate(directory: &Path, flushes: u64) -> Result<f64> {
    let variant = Variant { growth: Growth::Preallocated, flush: Flush::Fdatasync };
    let rates: Result<Vec<f64>> = (0..3)
        .map(|_| Ok(logwrite::run(directory, variant, 256, flushes)?.ops_per_second))
        .collect();
    Ok(Summary::of(&rates?).median)
}

/// Type and options of the file system that holds `directory`.
pub fn file_system(directory: &Path) -> Result<String> {
    let directory = fs::canonicalize(directory)
        .with_context(|| format!("directory {}", directory.display()))?;
    let mounts = read("/proc/self/mountinfo");
    let mount = mounts
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let fields: Vec<&str> = before.split(' ').collect();
            let (point, options) = (fields.get(4)?, fields.get(5)?);
            let kind = after.split(' ').next()?;
            directory.starts_with(point).then(|| (point.len(), format!("{kind} ({options})")))
        })
        // The deepest mount point wins; of two on the same point the later one hides the first.
        .max_by_key(|(depth, _)| *depth);
    Ok(mount.map_or_else(|| "unknown".to_owned(), |(_, text)| text))
}

/// Bytes that the files below `directory` take on the device; holes in sparse files do not count.
pub fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut total = 0;
    let mut pending: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                pending.push(entry.path());
            } else {
                total += metadata.blocks() * 512;
            }
        }
    }
    Ok(total)
}

/// Resident memory of this process: now, and at most since [`reset_peak`].
pub fn resident_bytes() -> (u64, u64) {
    (kibibytes("/proc/self/status", "VmRSS"), kibibytes("/proc/self/status", "VmHWM"))
}

/// Starts a new measurement of the peak.
pub fn reset_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("reset the peak of resident memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_description() {
        let machine = Machine::describe(&std::env::temp_dir(), 10).unwrap();
        assert!(machine.cores > 0 && machine.memory_bytes > 0);
        assert!(machine.flushes_per_second > 0.0);
        assert_ne!(machine.file_system, "unknown");
    }

    #[test]
    fn fields_are_found() {
        assert_eq!(field_of("a : 1\nbc: 2 3\n", "bc", ':'), Some("2 3".to_owned()));
        assert_eq!(field_of("a : 1\n", "b", ':'), None);
    }
}
