//! The size of the data file: growing it ahead of need, and the reserve for a full device.
//!
//! Above: page writes, the checkpoint. Below: the data file.
//!
//! On a full device, changes must remain possible to undo. Undo loads pages into frames, so other
//! pages must be evicted. Therefore the file always reaches [`RESERVE`] blocks beyond the block
//! written last. When the file cannot grow, evictions continue into the reserve, but no further
//! page may be changed for the first time. A page evicted to the reserve can be written there
//! repeatedly (POOL-5), so all other pages can be loaded through its frame.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Pool;
use crate::error::{Error, Result};
use crate::sync::locks::Mutex;

/// Blocks in the reserve.
const RESERVE: u64 = 32;

/// Maximum growth step in bytes. Writes wait while the file grows.
const LARGEST_STEP: u64 = 64 << 20;

/// Free bytes at the end of the file that are not worth cutting.
const LEAST_CUT: u64 = 1 << 20;

/// The length of the data file, and whether the file can grow.
pub struct FileReserve {
    file_end: AtomicU64,
    /// The length changed since the last flush that included it.
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

    /// Returns the length of the data file in bytes.
    pub fn file_end(&self) -> u64 {
        self.file_end.load(Ordering::Relaxed)
    }

    /// Returns whether the length changed since the last call: the next flush must include it.
    pub fn take_grown(&self) -> bool {
        self.grown.swap(false, Ordering::AcqRel)
    }
}

impl Pool {
    /// Allocates the reserve, as far as the device has space. Called once, when an environment is
    /// opened.
    pub fn set_reserve_aside(&self) -> Result<()> {
        let end = self.blocks.at_used_end(|end| end * self.page_size as u64);
        match self.grow(end + self.file_reserve.reserve) {
            Err(Error::DiskFull { .. }) => Ok(()),
            other => other,
        }
    }

    /// Makes the file reach to `end`, and to the end of the reserve after it if the device has
    /// space.
    pub(super) fn make_room_for(&self, end: u64) -> Result<()> {
        let wanted = end + self.file_reserve.reserve;
        if wanted <= self.file_reserve.file_end() {
            return Ok(());
        }
        match self.grow(wanted) {
            Err(Error::DiskFull { .. }) if end <= self.file_reserve.file_end() => Ok(()),
            other => other,
        }
    }

    /// Fails if only the reserve is left, so that no page that will need a block is changed.
    #[inline]
    pub(super) fn check_room(&self) -> Result<()> {
        if self.file_reserve.full.load(Ordering::Relaxed) {
            self.check_room_when_full()
        } else {
            Ok(())
        }
    }

    #[cold]
    fn check_room_when_full(&self) -> Result<()> {
        let in_use = self.blocks.in_use() * self.page_size as u64;
        let end = self.file_reserve.file_end();
        if in_use + self.file_reserve.reserve < end {
            return Ok(());
        }
        self.grow(end + self.page_size as u64)
    }

    /// Makes the file at least `wanted` bytes long.
    #[cold]
    fn grow(&self, wanted: u64) -> Result<()> {
        let _one_at_a_time = self.file_reserve.growing.lock();
        let end = self.file_reserve.file_end();
        if wanted <= end {
            return Ok(());
        }
        let grow_to = |target: u64| {
            self.file_reserve.grown.store(true, Ordering::Release);
            let grown = self.file.allocate(target);
            grown.map(|()| self.file_reserve.file_end.store(target, Ordering::Relaxed))
        };
        let on = |error| Error::io("making room in the data file", error);
        let grown = match grow_to(wanted.max(end + (end / 8).min(LARGEST_STEP))).map_err(on) {
            Err(Error::DiskFull { .. }) => grow_to(wanted).map_err(on),
            other => other,
        };
        self.file_reserve
            .full
            .store(matches!(grown, Err(Error::DiskFull { .. })), Ordering::Relaxed);
        grown
    }

    /// Truncates free blocks at the end of the file.
    pub fn shrink_file(&self) -> Result<()> {
        // Truncating and growing again would cost more than some free space at the end.
        self.truncate(|end| (end / 8).max(LEAST_CUT))
    }

    /// Truncates all free blocks at the end of the file except the reserve.
    pub fn cut_file(&self) -> Result<()> {
        self.truncate(|_| 0)
    }

    /// Truncates the file to its used blocks and the free bytes that `spare` returns for these, or
    /// the reserve if that is more.
    fn truncate(&self, spare: impl FnOnce(u64) -> u64) -> Result<()> {
        let _one_at_a_time = self.file_reserve.growing.lock();
        self.blocks.at_used_end(|end| {
            let end = end * self.page_size as u64;
            let keep = end + spare(end).max(self.file_reserve.reserve);
            if self.file_reserve.file_end() <= keep {
                return Ok(());
            }
            self.file_reserve.grown.store(true, Ordering::Release);
            self.file.set_length(keep).map_err(|e| Error::io("cutting the data file", e))?;
            self.file_reserve.file_end.store(keep, Ordering::Relaxed);
            Ok(())
        })
    }
}
