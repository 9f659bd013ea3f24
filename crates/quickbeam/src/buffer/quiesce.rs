//! The quiesce latch, which stops all page changes for a moment so that a checkpoint epoch can
//! begin.
//!
//! Above: page changes and the checkpoint. Every operation that changes pages holds a
//! [`ChangeGuard`], but never while it waits for another transaction or for the log. Guards are
//! counted on separate cache lines, so writers on different threads share none.

use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::vfs::Vfs;

/// Lanes owned by one thread at a time: the thread whose transaction has the snapshot slot of that
/// number.
const OWNED_LANES: usize = 32;
/// Lanes for all other threads.
const SHARED_LANES: usize = 4;
const LANES: usize = OWNED_LANES + SHARED_LANES;

/// The first lane without an owner.
pub const SHARED_LANE: usize = OWNED_LANES;

/// The quiesce latch.
pub struct Quiesce {
    closed: CachePadded<AtomicBool>,
    lanes: [CachePadded<AtomicU32>; LANES],
    vfs: Arc<dyn Vfs>,
}

/// Permission to change pages, until it is dropped.
pub struct ChangeGuard<'a> {
    count: Option<&'a AtomicU32>,
    /// Only the owner of the lane changes the count.
    owned: bool,
}

impl Quiesce {
    pub fn new(vfs: Arc<dyn Vfs>) -> Quiesce {
        let lanes = std::array::from_fn(|_| CachePadded::default());
        Quiesce { closed: CachePadded::default(), lanes, vfs }
    }

    /// Waits until the latch is open and enters it. `lane` spreads threads: the caller's snapshot
    /// slot, or [`SHARED_LANE`] and above.
    #[inline]
    pub fn enter(&self, lane: usize) -> ChangeGuard<'_> {
        let owned = lane < OWNED_LANES;
        let count = &*self.lanes[if owned { lane } else { OWNED_LANES + lane % SHARED_LANES }];
        loop {
            count.fetch_add(1, Ordering::SeqCst);
            if !self.closed.load(Ordering::SeqCst) {
                return ChangeGuard { count: Some(count), owned };
            }
            count.fetch_sub(1, Ordering::SeqCst);
            while self.closed.load(Ordering::Relaxed) {
                self.vfs.yield_now();
            }
        }
    }

    /// Closes the latch, waits until every guard is dropped, runs `work`, and opens the latch. Only
    /// one thread may close it at a time.
    pub fn close_for<T>(&self, work: impl FnOnce() -> T) -> T {
        self.closed.store(true, Ordering::SeqCst);
        for lane in &self.lanes {
            while lane.load(Ordering::SeqCst) != 0 {
                self.vfs.yield_now();
            }
        }
        let result = work();
        self.closed.store(false, Ordering::SeqCst);
        result
    }
}

impl ChangeGuard<'_> {
    /// Creates a guard for the single owner of an environment that has no quiesce latch.
    pub fn unshared() -> ChangeGuard<'static> {
        ChangeGuard { count: None, owned: false }
    }
}

impl Drop for ChangeGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.count {
            Some(count) if self.owned => {
                count.store(count.load(Ordering::Relaxed) - 1, Ordering::Release);
            }
            Some(count) => {
                count.fetch_sub(1, Ordering::Release);
            }
            None => {}
        }
    }
}
