//! The buffer pool's entry for one page, and the page's latch.
//!
//! Above: the buffer pool. Below: nothing.
//!
//! The latch is one word: a version number and a held bit. A reader takes nothing: it notes the
//! version, reads, and checks that the version is unchanged (optimistic lock coupling, Leis et al.
//! 2016). A thread that changes a page or its frame holds the latch and sets a new version at
//! release.
//!
//! The upper bits of the version count changes of the content, the lower bits count moves into and
//! out of memory. So a page's content version survives eviction and reloading, and serializable
//! validation can compare it.

use crate::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use crate::blocks::Location;

/// Frame number of a page that is not in memory.
pub const NO_FRAME: u32 = u32::MAX;

const HELD: u64 = 1;

/// The lowest bit of the content version. The bits between this one and [`HELD`] count moves. Their
/// overflow, once in 65,536 moves, makes a move look like a content change, which is safe.
const CONTENT: u64 = 1 << 17;

/// Bits of [`PageEntry::status`], changed only by the latch's holder.
pub mod status {
    /// The page exists.
    pub const ALLOCATED: u8 = 1;
    /// The content in memory is newer than the image at the entry's location.
    pub const DIRTY: u8 = 2;
    /// The image at the location has version words of transactions that may not have ended: no
    /// checkpoint may use it.
    pub const SWAPPED: u8 = 4;
    /// The page differs from its state in the last checkpoint, or in the running one.
    pub const CHANGED: u8 = 8;
    /// A checkpoint owns the block at the location: the pool must not release it.
    pub const OWNED: u8 = 16;
    /// The image at the location is of an earlier opening, and its structure was not checked yet.
    pub const UNCHECKED: u8 = 32;
}

/// Returns the content version that is part of a latch version.
#[inline]
pub fn content_of(version: u64) -> u64 {
    version / CONTENT
}

/// One page's entry in the page table.
#[derive(Default)]
pub struct PageEntry {
    latch: AtomicU64,
    /// The frame of the page.
    pub frame: AtomicU32,
    /// The checkpoint epoch in which the page was last registered as changed, or imaged.
    pub epoch: AtomicU32,
    /// Location of the page's newest image.
    location: AtomicU64,
    /// The page was accessed since the clock hand last passed.
    pub referenced: AtomicU8,
    status: AtomicU8,
}

impl PageEntry {
    pub fn new() -> PageEntry {
        PageEntry { frame: AtomicU32::new(NO_FRAME), ..PageEntry::default() }
    }

    /// Returns the version, or `None` while the latch is held.
    #[inline]
    pub fn version(&self) -> Option<u64> {
        let word = self.latch.load(Ordering::Acquire);
        (word & HELD == 0).then_some(word)
    }

    /// Returns whether the version is unchanged; values read in between may then be used.
    #[inline]
    pub fn is_version(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.latch.load(Ordering::Relaxed) == version
    }

    /// Takes the latch if the version is unchanged.
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

    /// Takes the latch for the single owner of a pool that is not shared.
    #[inline]
    pub fn latch_unshared(&self, version: u64) {
        self.latch.store(version | HELD, Ordering::Relaxed);
    }

    /// Releases the latch after a content change and returns the new content version.
    #[inline]
    pub fn release_changed(&self) -> u64 {
        let version = (self.latch.load(Ordering::Relaxed) | (CONTENT - 1)).wrapping_add(1);
        self.latch.store(version, Ordering::Release);
        content_of(version)
    }

    /// Releases the latch after the page was loaded or evicted: the same content is elsewhere.
    #[inline]
    pub fn release_moved(&self) {
        let version = (self.latch.load(Ordering::Relaxed) | HELD).wrapping_add(1);
        self.latch.store(version, Ordering::Release);
    }

    /// Returns the content version as of the last completed change.
    #[inline]
    pub fn content_version(&self) -> u64 {
        content_of(self.latch.load(Ordering::Acquire))
    }

    /// Releases the latch without a new version, because nothing was changed.
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

    /// Returns whether all these bits are set.
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

    /// Marks the page as accessed for the clock. Writes only if the mark is not set.
    #[inline]
    pub fn touch(&self) {
        if self.referenced.load(Ordering::Relaxed) == 0 {
            self.referenced.store(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latch(entry: &PageEntry) {
        assert!(entry.try_latch(entry.version().unwrap()));
    }

    #[test]
    fn moves_change_the_version_and_keep_the_content_version() {
        let entry = PageEntry::new();
        latch(&entry);
        let content = entry.release_changed();
        for _ in 0..1000 {
            let version = entry.version().unwrap();
            latch(&entry);
            assert_eq!(entry.content_version(), content);
            entry.release_moved();
            assert!(!entry.is_version(version));
            assert_eq!(entry.content_version(), content);
        }
        latch(&entry);
        assert_eq!(entry.release_changed(), content + 1);
    }

    #[test]
    fn latch_word_never_returns_to_an_earlier_version() {
        let entry = PageEntry::new();
        let mut last = entry.version().unwrap();
        for step in 0..200_000u32 {
            latch(&entry);
            if step % 70_000 == 1 {
                entry.release_changed();
            } else {
                entry.release_moved();
            }
            let version = entry.version().unwrap();
            assert!(version > last, "step {step}");
            last = version;
        }
    }
}
