//! The operating system's files, clock and threads.
//!
//! Above: [`World`](super::World). Positioned reads and writes only, so that a file has no cursor to share.
// This is the place that the bans on going around the seam point to.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::event::ParkingEvent;
use super::{Event, File, OpenMode, Task, World};

/// The world that a user's program runs in.
pub struct RealWorld {
    start: Instant,
}

impl RealWorld {
    /// The clock starts at zero here.
    #[must_use]
    pub fn new() -> Self {
        RealWorld { start: Instant::now() }
    }
}

impl Default for RealWorld {
    fn default() -> Self {
        Self::new()
    }
}

struct RealFile(fs::File);

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buffer, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(&self.0, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            // Not every file system can set room aside: writing zeros does the same.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                super::fill_with_zeros(self.length()?, length, |zeros, at| self.write_at(zeros, at))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        use rustix::fs::{FlockOperation, flock};
        match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

struct RealTask(std::thread::JoinHandle<()>);

impl Task for RealTask {
    fn join(self: Box<Self>) {
        // A background thread ends by returning; one that panicked has nothing more to give back.
        if self.0.join().is_err() {
            eprintln!("quickbeam: a background thread ended by a panic");
        }
    }
}

impl World for RealWorld {
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
        Ok(Arc::new(RealFile(options.open(path)?)))
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

    fn event(&self) -> Arc<dyn Event> {
        Arc::new(ParkingEvent::default())
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Box::new(RealTask(handle)))
    }
}
