//! The VFS of the operating system: its files, clock and threads.
//!
//! Above: [`Vfs`](super::Vfs). Below: system calls. Reads and writes are positioned, so files share
//! no cursor.
// The lints that forbid bypassing the VFS refer to this module.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::mapping::Mapping;
use super::{Event, File, MappedFile, OpenMode, Task, Vfs};
use crate::sync::event::ParkingEvent;

/// The VFS of the operating system.
pub struct OsVfs {
    start: Instant,
}

impl OsVfs {
    /// Creates a VFS whose clock starts at zero now.
    #[must_use]
    pub fn new() -> Self {
        OsVfs { start: Instant::now() }
    }
}

impl Default for OsVfs {
    fn default() -> Self {
        Self::new()
    }
}

struct RealFile {
    file: fs::File,
    /// The number of the process that took the lock, or 0.
    locked_by: AtomicU32,
}

/// Releases the lock. A process that another thread is starting has inherited the descriptor until
/// it executes its program, and closing this one alone would leave the lock with that process. A
/// process made by `fork()` alone does not release the lock of its parent.
impl Drop for RealFile {
    fn drop(&mut self) {
        if *self.locked_by.get_mut() == std::process::id() {
            // If this fails, the lock ends with the last descriptor.
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl RealFile {
    fn new(file: fs::File) -> RealFile {
        RealFile { file, locked_by: AtomicU32::new(0) }
    }

    fn lock(&self, operation: FlockOperation) -> io::Result<bool> {
        match flock(&self.file, operation) {
            Ok(()) => {
                self.locked_by.store(std::process::id(), Ordering::Relaxed);
                Ok(true)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buffer, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(&self.file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            // Some file systems cannot reserve space: writing zeros has the same effect.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                super::fill_with_zeros(self.length()?, length, |zeros, at| self.write_at(zeros, at))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.lock(FlockOperation::NonBlockingLockExclusive)
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.lock(FlockOperation::NonBlockingLockShared)
    }

    fn map(&self, length: u64) -> io::Result<Option<Box<dyn MappedFile>>> {
        // A store without space, or past the end of the file, ends the process. So only file
        // systems are used that keep written blocks in place.
        let below = file_system(&self.file);
        if !matches!(below, FileSystem::Ext | FileSystem::Memory)
            || cfg!(miri)
            || self.length()? < length
        {
            return Ok(None);
        }
        // A copied file may have holes.
        self.allocate(length)?;
        let memory = Mapping::of_file(&self.file, 0, length as usize)?;
        // Populated memory delays no store, and a range whose access would end the process is
        // detected here. In steps, because threads that map memory wait for each.
        for at in (0..length as usize).step_by(POPULATED_STEP) {
            if memory.populate(at, POPULATED_STEP.min(length as usize - at)).is_err() {
                return Ok(None);
            }
        }
        let in_memory = matches!(below, FileSystem::Memory);
        Ok(Some(Box::new(RealMappedFile { memory, in_memory })))
    }
}

/// Bytes of a mapped file that are populated at a time.
const POPULATED_STEP: usize = 1 << 20;

/// A file in mapped memory.
struct RealMappedFile {
    memory: Mapping,
    /// The file is on a memory file system: flushing it has no effect.
    in_memory: bool,
}

impl MappedFile for RealMappedFile {
    fn is_durable_as_stored(&self) -> bool {
        self.in_memory
    }

    fn store(&self, bytes: &[u8], offset: u64) -> bool {
        self.memory.store(bytes, offset)
    }
}

/// The kinds of file systems that are treated differently.
#[derive(PartialEq, Eq)]
enum FileSystem {
    /// ext2 to ext4: a block that was written once is later written in place.
    Ext,
    /// Memory (tmpfs): allocated space stays allocated, and there is no device below.
    Memory,
    Other,
}

#[cfg(target_os = "linux")]
fn file_system(file: &fs::File) -> FileSystem {
    const EXT: u64 = 0xef53;
    const TMPFS: u64 = 0x0102_1994;
    match rustix::fs::fstatfs(file).map(|about| about.f_type as u64) {
        Ok(EXT) => FileSystem::Ext,
        Ok(TMPFS) => FileSystem::Memory,
        Ok(_) | Err(_) => FileSystem::Other,
    }
}

#[cfg(not(target_os = "linux"))]
fn file_system(_: &fs::File) -> FileSystem {
    FileSystem::Other
}

struct RealTask(std::thread::JoinHandle<()>);

impl Task for RealTask {
    fn join(self: Box<Self>) {
        // A background thread that panicked has no result to return.
        if self.0.join().is_err() {
            eprintln!("quickbeam: a background thread ended by a panic");
        }
    }
}

impl Vfs for OsVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true);
            }
            OpenMode::WriteThrough => {
                let flags = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC;
                options.write(true).custom_flags(flags.bits().cast_signed());
            }
        }
        let file = options.open(path)?;
        if mode == OpenMode::WriteThrough && file_system(&file) == FileSystem::Memory {
            // There is no device to write through to.
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Arc::new(RealFile::new(file)))
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn list_directory(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn random(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        // The standard hasher is keyed by the operating system's random source.
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_u128(self.start.elapsed().as_nanos());
        hasher.finish()
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }

    fn process(&self) -> Option<String> {
        let program = std::env::current_exe().ok()?;
        let program = program.file_name()?.to_string_lossy().into_owned();
        Some(format!("process {} ({program})", std::process::id()))
    }

    fn event(&self) -> Arc<dyn Event> {
        Arc::new(ParkingEvent::default())
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Box::new(RealTask(handle)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lock_ends_with_its_file_though_a_copy_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let created = fs::File::create(&path).unwrap();
        let file = RealFile::new(created);
        assert!(file.try_lock().unwrap());
        // As in a process that is being started.
        let inherited = file.file.try_clone().unwrap();
        let open = || OsVfs::new().open(&path, OpenMode::Read).unwrap();
        assert!(!open().try_lock().unwrap());
        drop(file);
        assert!(open().try_lock().unwrap());
        drop(inherited);
    }
}
