//! The virtual file system (VFS): the only interface of the engine to files, time, randomness and
//! threads.
//!
//! Above: every module of the engine. Below: the operating system ([`OsVfs`]) or plain memory
//! ([`MemoryVfs`]). No other module of the engine may access a file, read a clock, draw a random
//! number, start a thread or put one to sleep. This allows a simulation to replace all of it.
//!
//! The engine assumes the strict POSIX model of a [`File`], without guarantees of particular file
//! systems:
//! 1. A write that returned may be lost, wholly or in part and in any order with others, until
//!    `sync_data`.
//! 2. Growth of a file needs `sync_all`; a new or renamed name needs `sync_directory` of its
//!    directory.
//! 3. After a failed sync the state of the data written before it is unknown: the sync is never
//!    retried.

pub(crate) mod mapping;
mod memory;
mod os;
pub(crate) mod overlay;
pub(crate) mod word_copy;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use memory::MemoryVfs;
pub use os::OsVfs;

pub use crate::sync::Event;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Existing file, reading only.
    Read,
    /// Existing file, reading and writing.
    Write,
    /// New or existing file, reading and writing.
    Create,
    /// Like `Write`, but every write goes straight to the device and is durable when it returns.
    /// Offsets, lengths and buffers are multiples of [`DIRECT_ALIGNMENT`]. Fails if the medium does
    /// not support it.
    WriteThrough,
}

/// Alignment of offset, length and memory that [`OpenMode::WriteThrough`] requires, in bytes.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// One open file. All offsets are in bytes from its start.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset`. Fails with `UnexpectedEof` if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `buffer` at `offset`, growing the file if needed.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Makes earlier writes durable. A changed length of the file needs
    /// [`sync_all`](Self::sync_all).
    fn sync_data(&self) -> io::Result<()>;
    /// Makes data and length durable.
    fn sync_all(&self) -> io::Result<()>;
    /// Returns the file's length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Truncates or grows the file; new bytes read as zeros.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Makes the file at least `length` bytes long and allocates space for all of it, so that later
    /// writes within it do not fail for lack of space. New bytes read as zeros.
    fn allocate(&self, length: u64) -> io::Result<()> {
        let start = self.length()?;
        fill_with_zeros(start, length, |zeros, at| self.write_at(zeros, at))
    }
    /// Takes the file's exclusive lock. Returns false if another opener holds it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Takes the file's shared lock. Returns false if another opener holds it exclusively.
    fn try_lock_shared(&self) -> io::Result<bool> {
        self.try_lock()
    }
    /// Maps the file's first `length` bytes for stores. Returns `None` if a store could fail for
    /// lack of space, if the file is shorter, or if the medium does not support it.
    fn map(&self, _length: u64) -> io::Result<Option<Box<dyn MappedFile>>> {
        Ok(None)
    }
}

/// A mapped file. A store has the effect of [`File::write_at`] without a system call. Readers of
/// the file see it, it survives the process, and `sync_data` makes it durable. If the process dies
/// during a store, a prefix in whole words of eight bytes is stored.
pub trait MappedFile: Send + Sync {
    /// Stores `bytes` at `offset`, both multiples of eight. Returns false if the range is not
    /// inside.
    fn store(&self, bytes: &[u8], offset: u64) -> bool;

    /// Returns whether a store is durable at once, because there is no device below the file.
    fn is_durable_as_stored(&self) -> bool {
        false
    }
}

/// Grows a file from `start` to `length` bytes by writing zeros.
fn fill_with_zeros(
    start: u64,
    length: u64,
    write: impl Fn(&[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut at = start;
    while at < length {
        let part = zeros.len().min(usize::try_from(length - at).unwrap_or(usize::MAX));
        write(&zeros[..part], at)?;
        at += part as u64;
    }
    Ok(())
}

/// A thread that the engine started.
pub trait Task: Send + Sync {
    /// Waits until the thread has ended.
    fn join(self: Box<Self>);
}

/// Files, time, randomness and threads.
pub trait Vfs: Send + Sync + 'static {
    /// Opens the file at `path`.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Returns whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Creates the directory and its ancestors.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Returns the paths of a directory's entries, in any order.
    fn list_directory(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes names that were created, renamed or removed in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Renames a file, replacing an existing file of the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Returns the time since some fixed point; it never decreases.
    fn now(&self) -> Duration;
    /// Returns 64 random bits.
    fn random(&self) -> u64;
    /// Lets another thread run; called in latch waits.
    fn yield_now(&self);
    /// Creates an event.
    fn event(&self) -> Arc<dyn Event>;
    /// Returns the number and the program of this process, for messages; `None` if there is no
    /// process to tell from others.
    fn process(&self) -> Option<String> {
        None
    }
    /// Starts a thread.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>>;
}
