//! The pool's entry for one page, and the page's latch.
//!
//! The latch is one word: a version number and a held bit. A reader takes nothing: it notes the
//! version, reads, and checks that the version is unchanged (optimistic lock coupling, Leis et al.
//! 2016). A thread that changes a page, or its place in memory, holds the latch and leaves a new
//! version.
//!
//! The upper bits of the version count changes of the content, the lower ones moves into and out of
//! memory. So the content version of a page survives eviction and reloading, and serializable
//! validation can compare it.

use crate::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use crate::blocks::Location;

/// Frame number that says: not in memory.
pub const NO_FRAME: u32 = u32::MAX;

const HELD: u64 = 1;

/// The lowest bit of the content version. The bits between this one and [`HELD`] count moves; when
/// they overflow, the carry makes a move look like a change of the content, which is safe and
/// happens once in 65,536 moves.
const CONTENT: u64 = 1 << 17;

/// Bits of [`PageEntry::status`], changed only by the latch's holder.
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

/// The content version that is part of a latch version.
#[inline]
pub fn content_of(version: u64) -> u64 {
    version / CONTENT
}

/// One page's entry in the translation array.
#[derive(Default)]
pub struct PageEntry {
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

impl PageEntry {
    pub fn new() -> PageEntry {
        PageEntry { frame: AtomicU32::new(NO_FRAME), ..PageEntry::default() }
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

    /// Releases the latch after a change of the content; the new content version.
    #[inline]
    pub fn release_changed(&self) -> u64 {
        let version = (self.latch.load(Ordering::Relaxed) | (CONTENT - 1)).wrapping_add(1);
        self.latch.store(version, Ordering::Release);
        content_of(version)
    }

    /// Releases the latch after the page was loaded or evicted: it has the same content at another
    /// place.
    #[inline]
    pub fn release_moved(&self) {
        let version = (self.latch.load(Ordering::Relaxed) | HELD).wrapping_add(1);
        self.latch.store(version, Ordering::Release);
    }

    /// The version of the content, as of the last change that was completed.
    #[inline]
    pub fn content_version(&self) -> u64 {
        content_of(self.latch.load(Ordering::Acquire))
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
    fn the_latch_word_never_returns_to_an_earlier_version() {
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
