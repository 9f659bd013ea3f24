//! Which of many equal places a thread goes to first, so that threads do not meet where they need not.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// New threads begin at one of so many places.
const STARTS: usize = 64;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The next unique number, and the end of those that the thread has for itself.
    static NUMBERS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Unique numbers that a thread takes at once.
const NUMBERS_AT_ONCE: u64 = 1 << 16;

/// A number above zero that nobody else in this process gets.
#[inline]
pub fn unique_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let (next, end) = NUMBERS.get();
    let next = if next < end { next } else { NEXT.fetch_add(NUMBERS_AT_ONCE, Ordering::Relaxed) };
    let end = if next < end { end } else { next + NUMBERS_AT_ONCE };
    NUMBERS.set((next + 1, end));
    next
}

/// The place that the calling thread was at last; at first one that other new threads do not get.
#[inline]
pub fn thread_shard() -> usize {
    match PLACE.get() {
        usize::MAX => first(),
        place => place,
    }
}

#[cold]
fn first() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % STARTS
}

/// The calling thread is there now.
#[inline]
pub fn set(place: usize) {
    PLACE.set(place);
}
