//! Thread shards: which part of a sharded structure a thread uses first, so that threads do not
//! contend.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of shards over which new threads are spread.
const STARTS: usize = 64;

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
    /// What the thread's transactions are for.
    static OWNER: Cell<u64> = const { Cell::new(0) };
    /// The thread's next unique number, and the end of the range that it has reserved.
    static NUMBERS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Unique numbers that a thread reserves at a time.
const NUMBERS_AT_ONCE: u64 = 1 << 16;

/// Returns a number above zero that is unique in this process.
#[inline]
pub fn unique_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let (next, end) = NUMBERS.get();
    let next = if next < end { next } else { NEXT.fetch_add(NUMBERS_AT_ONCE, Ordering::Relaxed) };
    let end = if next < end { end } else { next + NUMBERS_AT_ONCE };
    NUMBERS.set((next + 1, end));
    next
}

/// Returns the calling thread's last shard. A new thread starts in a shard that differs from those
/// of other new threads.
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

/// Gives the calling thread the shard at which the process's `number`th thread would start. A
/// simulation numbers the threads of each run, so that a run does not depend on those before it.
#[cfg(feature = "simulation")]
pub fn start_as_thread(number: usize) {
    PLACE.set(number % STARTS);
}

/// Sets the calling thread's shard.
#[inline]
pub fn set(place: usize) {
    PLACE.set(place);
}

/// Returns the owner that the calling thread's transactions are for; 0 if it named none.
#[inline]
pub fn owner() -> u64 {
    OWNER.get()
}

/// Names the owner of the transactions that the calling thread begins from now on.
pub fn set_owner(owner: u64) {
    OWNER.set(owner);
}
