//! Putting a thread to sleep and waking it: what [`event`](super::event) is made of.
//!
//! Named here for the same reason as in [`atomic`](super::atomic). A wake-up that comes first is kept for the sleep
//! after it.
// This is the place that the bans on going around the seam point to.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant};

pub use std::thread::{Thread, current};

/// Sleeps until somebody wakes this thread, or for no reason.
pub fn park() {
    std::thread::park();
}

/// A moment after which a wait is given up.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// That far from now; `None` if the clock cannot express it.
    pub fn after(timeout: Duration) -> Option<Deadline> {
        Instant::now().checked_add(timeout).map(Deadline)
    }

    /// As [`park`], for no longer than the time left; false, and no sleep, when none is left.
    pub fn park(self) -> bool {
        let left = self.0.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::park_timeout(left);
        }
        !left.is_zero()
    }
}
