//! The gate that a checkpoint closes for a moment: while it is closed no page change is under way.
//!
//! Every operation that changes pages holds a [`ChangeGuard`] for its time, never while it waits for another transaction or
//! for the log. Passes are counted on separate cache lines, so that writers on different threads share none.

use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::vfs::Vfs;

/// Lanes that belong to one thread at a time: to the one whose transaction has the snapshot slot of that number.
const OWNED_LANES: usize = 32;
/// Lanes for all others.
const SHARED_LANES: usize = 4;
const LANES: usize = OWNED_LANES + SHARED_LANES;

/// Any lane that is nobody's own.
pub const SHARED_LANE: usize = OWNED_LANES;

/// The gate.
pub struct Quiesce {
    closed: CachePadded<AtomicBool>,
    lanes: [CachePadded<AtomicU32>; LANES],
    vfs: Arc<dyn Vfs>,
}

/// Leave to change pages; ends when dropped.
pub struct ChangeGuard<'a> {
    count: Option<&'a AtomicU32>,
    /// Nobody else changes the count.
    owned: bool,
}

impl Quiesce {
    pub fn new(vfs: Arc<dyn Vfs>) -> Quiesce {
        let lanes = std::array::from_fn(|_| CachePadded::default());
        Quiesce { closed: CachePadded::default(), lanes, vfs }
    }

    /// Waits until the gate is open and goes through. `lane` spreads threads: the caller's snapshot slot, or
    /// [`SHARED_LANE`] and above.
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

    /// Closes the gate, waits until everybody is out, does `work`, and opens it. One closer at a time.
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
    /// Leave for the one owner of a store that has no gate.
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
