//! Which of many equal places a thread goes to first, so that threads do not meet where they need not.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// New threads begin at one of so many places.
const STARTS: usize = 64;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The place that the calling thread was at last; at first one that other new threads do not get.
#[inline]
pub fn of_thread() -> usize {
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
