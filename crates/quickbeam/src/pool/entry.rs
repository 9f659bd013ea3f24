//! What the pool knows of one page, and its latch.
//!
//! The latch is one word: a version number, and a bit that says it is held. Readers take nothing: they note the
//! version, read, and check that it is unchanged (optimistic lock coupling, Leis et al. 2016). Whoever changes a page,
//! or its place in memory, holds the latch and leaves with a new version.

use crate::world::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use crate::blocks::Location;

/// Frame number that says: not in memory.
pub const NO_FRAME: u32 = u32::MAX;

const HELD: u64 = 1;

/// Bits of [`Entry::status`], changed only by the latch's holder.
pub mod status {
    /// The page exists.
    pub const ALLOCATED: u8 = 1;
    /// Memory is newer than the image at the entry's location.
    pub const DIRTY: u8 = 2;
    /// The image at the location has version words of transactions that may not have ended: no checkpoint may use it.
    pub const SWAPPED: u8 = 4;
    /// The page differs from what the last checkpoint, or the one now running, says of it.
    pub const CHANGED: u8 = 8;
    /// The block at the location belongs to a checkpoint: it is not for the pool to release.
    pub const OWNED: u8 = 16;
}

/// One page's entry in the translation array.
#[derive(Default)]
pub struct Entry {
    latch: AtomicU64,
    /// The frame the page is in.
    pub frame: AtomicU32,
    /// The checkpoint epoch in which the page was last registered as changed, or imaged.
    pub epoch: AtomicU32,
    /// Where the page's newest image is.
    location: AtomicU64,
    /// Used since the clock hand last passed.
    pub referenced: AtomicU8,
    status: AtomicU8,
}

impl Entry {
    pub fn new() -> Entry {
        Entry { frame: AtomicU32::new(NO_FRAME), ..Entry::default() }
    }

    /// The version, if nobody holds the latch.
    #[inline]
    pub fn version(&self) -> Option<u64> {
        let word = self.latch.load(Ordering::Acquire);
        (word & HELD == 0).then_some(word)
    }

    /// Whether nothing changed since that version was noted; what was read in between may then be used.
    #[inline]
    pub fn is_version(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.latch.load(Ordering::Relaxed) == version
    }

    /// Takes the latch if the version is still that one.
    #[inline]
    pub fn try_latch(&self, version: u64) -> bool {
        let taken = self
            .latch
            .compare_exchange(version, version | HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        // The held bit becomes visible before any change made under it.
        fence(Ordering::Release);
        taken
    }

    /// Takes the latch for the one owner of a pool that is not shared.
    #[inline]
    pub fn latch_unshared(&self, version: u64) {
        self.latch.store(version | HELD, Ordering::Relaxed);
    }

    /// Releases the latch with a new version, which it returns.
    #[inline]
    pub fn release(&self) -> u64 {
        let version = (self.latch.load(Ordering::Relaxed) | HELD) + 1;
        self.latch.store(version, Ordering::Release);
        version
    }

    /// Releases the latch with the old version: nothing was changed.
    #[inline]
    pub fn release_unchanged(&self) {
        let version = self.latch.load(Ordering::Relaxed) & !HELD;
        self.latch.store(version, Ordering::Release);
    }

    #[inline]
    pub fn location(&self) -> Location {
        Location(self.location.load(Ordering::Relaxed))
    }

    pub fn set_location(&self, location: Location) {
        self.location.store(location.0, Ordering::Relaxed);
    }

    /// Whether all these bits are set.
    #[inline]
    pub fn has(&self, bits: u8) -> bool {
        self.status.load(Ordering::Relaxed) & bits == bits
    }

    #[inline]
    pub fn set(&self, bits: u8) {
        let old = self.status.load(Ordering::Relaxed);
        self.status.store(old | bits, Ordering::Relaxed);
    }

    #[inline]
    pub fn clear(&self, bits: u8) {
        let old = self.status.load(Ordering::Relaxed);
        self.status.store(old & !bits, Ordering::Relaxed);
    }

    /// Notes a use for the clock; writes only when there was none since the hand passed.
    #[inline]
    pub fn touch(&self) {
        if self.referenced.load(Ordering::Relaxed) == 0 {
            self.referenced.store(1, Ordering::Relaxed);
        }
    }
}
