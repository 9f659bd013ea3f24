//! Spilling: undo entries beyond the memory that the options allow go to temporary files.
//!
//! Above: chunks of entries, `spilling.rs`. Below: temporary files. A running transaction writes
//! its oldest chunks of entries to a file of its own (`chunks.rs`). The entries of committed
//! transactions go to files that they share. A file is removed when no entry refers to it. If a
//! file cannot be written, the entries stay in memory, and a counter in the statistics shows it: no
//! transaction needs the file.

use std::sync::Arc;

use crate::error::Result;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::locks::Mutex;
use crate::temporary::{TemporaryFile, TemporaryFiles};

use super::super::TransactionId;
use super::committed::{Before, read_spilled};

/// Bytes after which the entries of committed transactions go to another file.
const FILE_BYTES: u32 = if cfg!(feature = "simulation") { 4 << 10 } else { 64 << 20 };

/// Where undo entries go beyond their memory, and how much is there.
pub struct UndoSpill {
    /// `None` if the environment has no temporary files: all entries stay in memory.
    files: Option<Arc<TemporaryFiles>>,
    /// Bytes of undo entries that stay in memory.
    memory: usize,
    /// Bytes of the filled chunks of running transactions, in memory.
    pub chunk_bytes: Arc<AtomicUsize>,
    /// Bytes in the files of running transactions, and in those of committed ones.
    running_bytes: Arc<AtomicU64>,
    committed_bytes: Arc<AtomicU64>,
    /// Files that no entry refers to. Removing a large file takes time.
    unused: Arc<Mutex<Vec<TemporaryFile>>>,
    /// Writes that failed.
    failures: AtomicU64,
}

impl UndoSpill {
    /// Keeps up to `memory` bytes of undo entries in memory, and others in `files`.
    pub fn new(files: Option<Arc<TemporaryFiles>>, memory: u64) -> UndoSpill {
        UndoSpill {
            files,
            memory: usize::try_from(memory).unwrap_or(usize::MAX),
            chunk_bytes: Arc::default(),
            running_bytes: Arc::default(),
            committed_bytes: Arc::default(),
            unused: Arc::default(),
            failures: AtomicU64::new(0),
        }
    }

    /// Keeps all undo entries in memory.
    pub fn never() -> UndoSpill {
        UndoSpill::new(None, u64::MAX)
    }

    /// Returns the bytes of undo entries in files.
    pub fn file_bytes(&self) -> u64 {
        self.running_bytes.load(Ordering::Relaxed) + self.committed_bytes()
    }

    /// Returns the bytes of undo entries in the files that committed transactions share.
    pub fn committed_bytes(&self) -> u64 {
        self.committed_bytes.load(Ordering::Relaxed)
    }

    /// Returns how often undo entries stayed in memory because a file could not be written.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns whether `committed` bytes of committed entries, and the chunks of running
    /// transactions, exceed their memory, and can go to a file.
    pub fn is_exceeded(&self, committed: usize) -> bool {
        self.files.is_some() && self.chunk_bytes.load(Ordering::Relaxed) + committed > self.memory
    }

    /// Creates a file for a running transaction, or returns `None` if that failed, which it counts.
    pub fn create_file(&self) -> Option<SpillFile> {
        self.create_counted(&self.running_bytes)
    }

    fn create_counted(&self, total: &Arc<AtomicU64>) -> Option<SpillFile> {
        let file = self.count_failure(self.files.as_ref()?.create())?;
        Some(SpillFile {
            file: Some(file),
            written: AtomicU64::new(0),
            total: total.clone(),
            unused: self.unused.clone(),
        })
    }

    /// Removes the files that no entry refers to.
    pub fn remove_unused(&self) {
        let unused = std::mem::take(&mut *self.unused.lock());
        drop(unused);
    }

    /// Counts a failed write.
    pub fn count_failure<T>(&self, result: Result<T>) -> Option<T> {
        if result.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        result.ok()
    }
}

/// A temporary file of undo entries. The background thread removes it after the handle is dropped,
/// which may happen under a lock.
pub struct SpillFile {
    /// Always there until the drop.
    file: Option<TemporaryFile>,
    /// Bytes from the file's start to the end of the last write.
    written: AtomicU64,
    /// Bytes in all files of the kind, which the drop reduces.
    total: Arc<AtomicU64>,
    unused: Arc<Mutex<Vec<TemporaryFile>>>,
}

impl SpillFile {
    /// Writes all of `bytes` at `offset`.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.write_at(bytes, offset)?;
        // A reader must not ask for more than is written.
        let end = offset + bytes.len() as u64;
        let before = self.written.fetch_max(end, Ordering::Release);
        self.total.fetch_add(end.saturating_sub(before), Ordering::Relaxed);
        Ok(())
    }

    /// Reads up to `length` bytes at `offset`, fewer at the end of the file.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let left = self.written.load(Ordering::Acquire).saturating_sub(offset);
        let mut bytes = vec![0; length.min(usize::try_from(left).unwrap_or(usize::MAX))];
        if let Some(file) = &self.file {
            file.read_at(&mut bytes, offset)?;
        }
        Ok(bytes)
    }

    /// Returns the bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes(), Ordering::Relaxed);
        self.unused.lock().extend(self.file.take());
    }
}

/// Where the next entries of committed transactions are written.
#[derive(Default)]
pub struct SpillPosition {
    /// Ids from here on may have entries in memory.
    pub next: TransactionId,
    file: Option<Arc<SpillFile>>,
    /// The end of what is written to the file.
    end: u32,
}

impl SpillPosition {
    /// Drops the file if no entry refers to it.
    pub fn forget_unused(&mut self) {
        self.file.take_if(|file| Arc::strong_count(file) == 1);
    }

    /// Writes encoded entries of committed transactions to the file, or to a new one if it is full.
    /// Returns `None` if that failed.
    pub fn write(&mut self, bytes: &[u8], spill: &UndoSpill) -> Option<SpillPlace> {
        let file = match self.file.take().filter(|_| self.end < FILE_BYTES) {
            Some(file) => file,
            None => {
                self.end = 0;
                Arc::new(spill.create_counted(&spill.committed_bytes)?)
            }
        };
        let at = self.end;
        spill.count_failure(file.write(bytes, u64::from(at)))?;
        self.end += bytes.len() as u32;
        self.file = Some(file.clone());
        Some(SpillPlace { file, at })
    }

    /// Records that the entries of this id are in memory.
    pub fn include(&mut self, id: TransactionId) {
        self.next = self.next.min(id);
    }
}

/// A place in a file to which the undo entries of an id were written.
pub struct SpillPlace {
    pub file: Arc<SpillFile>,
    pub at: u32,
}

impl SpillPlace {
    /// Reads entry `number`, whose value replaces `value` from `start` on. Returns `None` if it was
    /// removed before the entries were written.
    pub fn read(&self, number: usize, start: usize, value: &mut Vec<u8>) -> Result<Option<Before>> {
        let read = |at: usize, length| self.file.read(u64::from(self.at) + at as u64, length);
        value.truncate(start);
        read_spilled(read, number, value)
    }
}
