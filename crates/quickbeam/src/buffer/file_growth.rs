//! Room in the data file: growing it ahead of need, and what is refused when it cannot grow.
//!
//! A full device must not keep changes from being undone. Undoing needs pages in memory, hence frames, hence pages that
//! can be put out. So the file always has room for [`RESERVE`] blocks more than the one written last: where it cannot
//! grow any more, writing goes on into that room, but no further page is changed for the first time. Pages put out
//! there can be put out again and again (POOL-5), and through the frames they leave everything else can be loaded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Pool;
use crate::error::{Error, Result};
use crate::sync::locks::Mutex;

/// Blocks that stay in reserve.
const RESERVE: u64 = 32;

/// Bytes that the file grows by, at most: growing changes its length, which a flush must then make durable.
const GROWTH: u64 = 1 << 20;

/// How far the data file reaches, and whether it can reach farther.
pub struct FileReserve {
    file_end: AtomicU64,
    /// The file grew since it was last flushed with its length.
    grown: AtomicBool,
    /// The last attempt to grow the file found the device full.
    full: AtomicBool,
    growing: Mutex<()>,
    reserve: u64,
}

impl FileReserve {
    pub(super) fn new(file_end: u64, page_size: usize) -> FileReserve {
        FileReserve {
            file_end: AtomicU64::new(file_end),
            grown: AtomicBool::new(false),
            full: AtomicBool::new(false),
            growing: Mutex::default(),
            reserve: RESERVE * page_size as u64,
        }
    }

    /// Bytes in the data file.
    pub fn file_end(&self) -> u64 {
        self.file_end.load(Ordering::Relaxed)
    }

    /// Whether the file's length changed since this was last asked: the next flush must include it.
    pub fn take_grown(&self) -> bool {
        self.grown.swap(false, Ordering::AcqRel)
    }
}

impl Pool {
    /// Sets the reserve aside, as far as the device has room; once, when an environment is opened.
    pub fn set_reserve_aside(&self) -> Result<()> {
        let end = self.blocks.at_used_end(|end| end * self.page_size as u64);
        match self.grow(end + self.room.reserve) {
            Err(Error::DiskFull { .. }) => Ok(()),
            other => other,
        }
    }

    /// Sees to it that the file reaches to `end`, and has the reserve behind it if the device has room for that.
    pub(super) fn make_room_for(&self, end: u64) -> Result<()> {
        let wanted = end + self.room.reserve;
        if wanted <= self.room.file_end() {
            return Ok(());
        }
        match self.grow(wanted) {
            Err(Error::DiskFull { .. }) if end <= self.room.file_end() => Ok(()),
            other => other,
        }
    }

    /// Whether a page may be changed that will need a block: not when only the reserve is left.
    #[inline]
    pub(super) fn check_room(&self) -> Result<()> {
        if self.room.full.load(Ordering::Relaxed) { self.check_room_when_full() } else { Ok(()) }
    }

    #[cold]
    fn check_room_when_full(&self) -> Result<()> {
        let in_use = self.blocks.in_use() * self.page_size as u64;
        let end = self.room.file_end();
        if in_use + self.room.reserve < end {
            return Ok(());
        }
        self.grow(end + self.page_size as u64)
    }

    /// Makes the file at least `wanted` bytes long.
    #[cold]
    fn grow(&self, wanted: u64) -> Result<()> {
        let _one_at_a_time = self.room.growing.lock();
        let end = self.room.file_end();
        if wanted <= end {
            return Ok(());
        }
        let grow_to = |target: u64| {
            self.room.grown.store(true, Ordering::Release);
            let grown = self.file.allocate(target);
            grown.map(|()| self.room.file_end.store(target, Ordering::Relaxed))
        };
        let on = |error| Error::io("making room in the data file", error);
        let grown = match grow_to(wanted.max(end + (end / 8).min(GROWTH))).map_err(on) {
            Err(Error::DiskFull { .. }) => grow_to(wanted).map_err(on),
            other => other,
        };
        self.room.full.store(matches!(grown, Err(Error::DiskFull { .. })), Ordering::Relaxed);
        grown
    }

    /// Cuts free blocks off the file's end.
    pub fn shrink_file(&self) -> Result<()> {
        let _one_at_a_time = self.room.growing.lock();
        self.blocks.at_used_end(|end| {
            let end = end * self.page_size as u64;
            // Cutting and growing again costs more than a little room at the end.
            let keep = end + (end / 8).max(GROWTH).max(self.room.reserve);
            if self.room.file_end() <= keep {
                return Ok(());
            }
            self.room.grown.store(true, Ordering::Release);
            self.file.set_length(keep).map_err(|e| Error::io("cutting the data file", e))?;
            self.room.file_end.store(keep, Ordering::Relaxed);
            Ok(())
        })
    }
}
