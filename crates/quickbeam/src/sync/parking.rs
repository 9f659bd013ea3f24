//! Parking and waking threads, the base of [`event`](super::event).
//!
//! Imported from here for the same reason as in [`atomic`](super::atomic). A wake-up before the
//! sleep ends that sleep at once.
// The lints that forbid bypassing the VFS refer to this module.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, Instant};

pub use std::thread::{Thread, current};

/// Sleeps until another thread wakes this one, or spuriously ends.
pub fn park() {
    std::thread::park();
}

/// The time at which a wait ends.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline `timeout` from now, or `None` if the clock cannot represent it.
    pub fn after(timeout: Duration) -> Option<Deadline> {
        Instant::now().checked_add(timeout).map(Deadline)
    }

    /// Like [`park`], for at most the time left. Returns false, without sleeping, if no time is
    /// left.
    pub fn park(self) -> bool {
        let left = self.0.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::park_timeout(left);
        }
        !left.is_zero()
    }
}
