//! The one seam between the engine and everything outside it: files, time, randomness, threads and waiting.
//!
//! Above: every module of the engine. Below: the operating system ([`OsVfs`]) or plain memory ([`MemoryVfs`]).
//! Nothing else in the engine may touch a file, read a clock, draw a random number, start a thread or put
//! one to sleep; that is what lets a simulated world replace all of it.
//!
//! What the engine assumes of a [`File`] (the strict POSIX model, nothing that a given file system adds):
//! 1. A write that returned may be lost, wholly or in part and in any order with others, until `sync_data`.
//! 2. Growth of a file needs `sync_all`; a new or renamed name needs `sync_directory` of its folder.
//! 3. After a failed sync the state of the data written before it is unknown: it is never retried.

pub(crate) mod mapping;
mod memory;
mod os;
pub(crate) mod overlay;

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
    /// As `Write`, but every write goes straight to the device and is durable when it returns. Offsets,
    /// lengths and buffers are multiples of [`DIRECT_ALIGNMENT`]. Fails where the medium has no such mode.
    WriteThrough,
}

/// Alignment of offset, length and memory that [`OpenMode::WriteThrough`] asks for, in bytes.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// One open file. All offsets are in bytes from its start.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset`; an `UnexpectedEof` error when the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `buffer` at `offset`, growing the file when needed.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Makes data written before durable; the file's length only when it did not change.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes data and length durable.
    fn sync_all(&self) -> io::Result<()>;
    /// The file's length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Cuts or grows the file; what is new reads as zeros.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Makes the file at least `length` bytes long with room on the device for all of it, so that later writes within
    /// do not fail for want of room. What is new reads as zeros.
    fn allocate(&self, length: u64) -> io::Result<()> {
        let start = self.length()?;
        fill_with_zeros(start, length, |zeros, at| self.write_at(zeros, at))
    }
    /// Takes the file's exclusive lock; false when another opener holds it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Takes the file's lock together with others who only read; false when another opener holds it exclusively.
    fn try_lock_shared(&self) -> io::Result<bool> {
        self.try_lock()
    }
    /// The file's first `length` bytes as memory to store into. `None` where a store could fail for want of room, or the
    /// file is shorter, or the medium has no such memory.
    fn map(&self, _length: u64) -> io::Result<Option<Box<dyn MappedFile>>> {
        Ok(None)
    }
}

/// The bytes of a file as memory. What is stored is as if written by [`File::write_at`], without a call of the operating
/// system: whoever reads the file sees it, the process's death loses none of it, `sync_data` makes it durable, and a store
/// that is cut off by the process's death has stored some first part, in whole words of eight bytes.
pub trait MappedFile: Send + Sync {
    /// Stores `bytes` at `offset`, both in multiples of eight; false if that is not all inside. Each store is behind the one
    /// before: memory that was stored into is let go of, bit by bit.
    fn store(&mut self, bytes: &[u8], offset: u64) -> bool;

    /// Whether what is stored is at once as durable as a flush would make it: there is no device below the file.
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

/// Files, time, randomness, threads.
pub trait Vfs: Send + Sync + 'static {
    /// Opens the file at `path`.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Whether a file or folder of that name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Makes the folder and those above it.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder, in no given order.
    fn list_directory(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes names created, renamed or removed in a folder durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Renames a file, replacing what has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Time since some fixed point; never goes back.
    fn now(&self) -> Duration;
    /// Sixty-four random bits.
    fn random(&self) -> u64;
    /// Lets another thread run; called in latch waits.
    fn yield_now(&self);
    /// A new place to wait.
    fn event(&self) -> Arc<dyn Event>;
    /// Starts a thread.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>>;
}
