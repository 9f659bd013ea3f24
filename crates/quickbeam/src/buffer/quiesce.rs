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

/// Stripes owned by one thread at a time: the thread whose transaction has the snapshot slot of
/// that number.
const OWNED_STRIPES: usize = 32;
/// Stripes for all other threads.
const SHARED_STRIPES: usize = 4;
const STRIPES: usize = OWNED_STRIPES + SHARED_STRIPES;

/// The first stripe without an owner.
pub const SHARED_STRIPE: usize = OWNED_STRIPES;

/// The quiesce latch.
pub struct Quiesce {
    closed: CachePadded<AtomicBool>,
    stripes: [CachePadded<AtomicU32>; STRIPES],
    vfs: Arc<dyn Vfs>,
}

/// Permission to change pages, until it is dropped.
pub struct ChangeGuard<'a> {
    count: Option<&'a AtomicU32>,
    /// Only the owner of the stripe changes the count.
    owned: bool,
}

impl Quiesce {
    pub fn new(vfs: Arc<dyn Vfs>) -> Quiesce {
        let stripes = std::array::from_fn(|_| CachePadded::default());
        Quiesce { closed: CachePadded::default(), stripes, vfs }
    }

    /// Waits until the latch is open and enters it. `stripe` spreads threads: the caller's snapshot
    /// slot, or [`SHARED_STRIPE`] and above.
    #[inline]
    pub fn enter(&self, stripe: usize) -> ChangeGuard<'_> {
        let owned = stripe < OWNED_STRIPES;
        let count =
            &*self.stripes[if owned { stripe } else { OWNED_STRIPES + stripe % SHARED_STRIPES }];
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

    /// Closes the latch, waits until every guard is dropped, runs `work`, and opens the latch. If
    /// another thread has closed it, waits for that one first.
    pub fn close_for<T>(&self, work: impl FnOnce() -> T) -> T {
        let close = || {
            self.closed.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        while !close() {
            self.vfs.yield_now();
        }
        for stripe in &self.stripes {
            while stripe.load(Ordering::SeqCst) != 0 {
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
