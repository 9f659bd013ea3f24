//! The snapshots in use: which commit timestamps some transaction still reads.
//!
//! A transaction owns one slot on a cache line of its own, so neither beginning nor ending one writes memory that
//! other threads read all the time. The race between
//! a beginning reader and the one who retires old versions is decided by sequentially consistent order: the reader
//! publishes its snapshot and then looks at the retired mark; the retirer publishes the mark and then looks at the
//! slots. At least one of them sees the other.

use crate::world::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::Timestamp;
use crate::error::{Error, Result};
use crate::world::place;

/// Transactions that may be open at once.
const SLOTS: usize = 4096;
const FREE: u64 = 0;

struct Slot {
    /// Snapshot + 1, or [`FREE`].
    snapshot: AtomicU64,
    /// When the transaction began, in milliseconds of the world's clock.
    since_ms: AtomicU64,
    /// Commits made from this slot; only who owns it counts.
    commits: AtomicU64,
}

impl Slot {
    fn free() -> CachePadded<Slot> {
        CachePadded::new(Slot {
            snapshot: AtomicU64::new(FREE),
            since_ms: AtomicU64::new(0),
            commits: AtomicU64::new(0),
        })
    }
}

/// All snapshot slots.
pub struct Snapshots {
    slots: Box<[CachePadded<Slot>]>,
    /// One past the highest slot ever used: no scan looks further.
    used: AtomicUsize,
    /// Commits up to here may have been retired.
    retired: AtomicU64,
}

impl Snapshots {
    pub fn new() -> Snapshots {
        Snapshots::with_slots(SLOTS)
    }

    /// As [`new`](Self::new), for that many transactions at once.
    pub fn with_slots(slots: usize) -> Snapshots {
        Snapshots {
            slots: (0..slots).map(|_| Slot::free()).collect(),
            used: AtomicUsize::new(0),
            retired: AtomicU64::new(0),
        }
    }

    /// Takes a slot and a snapshot of everything committed so far.
    pub fn acquire(&self, newest: &AtomicU64, now: Duration) -> Result<(usize, Timestamp)> {
        let snapshot = newest.load(Ordering::SeqCst);
        let slot = self.claim(snapshot)?;
        self.slots[slot].since_ms.store(now.as_millis() as u64, Ordering::Relaxed);
        if self.retired.load(Ordering::SeqCst) <= snapshot {
            return Ok((slot, snapshot));
        }
        Ok((slot, self.refresh(slot, newest)))
    }

    /// Moves the snapshot in `slot` up to everything committed so far.
    #[inline]
    pub fn refresh(&self, slot: usize, newest: &AtomicU64) -> Timestamp {
        loop {
            let snapshot = newest.load(Ordering::SeqCst);
            self.slots[slot].snapshot.store(snapshot + 1, Ordering::SeqCst);
            if self.retired.load(Ordering::SeqCst) <= snapshot {
                return snapshot;
            }
        }
    }

    fn claim(&self, snapshot: Timestamp) -> Result<usize> {
        // Threads start at different slots and then keep to their own.
        let hint = place::of_thread();
        let slots = self.slots.len();
        for i in 0..slots {
            // No division: the hint is one of them, as a rule.
            let slot = if hint + i < slots { hint + i } else { (hint + i) % slots };
            let free = &self.slots[slot].snapshot;
            if free.load(Ordering::Relaxed) == FREE
                && free
                    .compare_exchange(FREE, snapshot + 1, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok()
            {
                place::set(slot);
                // Acquire: whoever retires after this thread looks at the mark has to see this
                // slot, also where another thread raised `used`.
                if self.used.load(Ordering::Acquire) <= slot {
                    self.used.fetch_max(slot + 1, Ordering::SeqCst);
                }
                return Ok(slot);
            }
        }
        Err(Error::Limit {
            what: format!("{slots} transactions are open; commit or abort some of them"),
        })
    }

    /// Counts a commit; the caller owns the slot.
    #[inline]
    pub fn count_commit(&self, slot: usize) {
        let commits = &self.slots[slot].commits;
        commits.store(commits.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Commits counted.
    pub fn commits(&self) -> u64 {
        let used = self.used.load(Ordering::SeqCst);
        self.slots[..used].iter().map(|slot| slot.commits.load(Ordering::Relaxed)).sum()
    }

    /// Gives the slot back. What was read in the snapshot was read before that: who finds the slot free may retire it.
    #[inline]
    pub fn release(&self, slot: usize) {
        self.slots[slot].snapshot.store(FREE, Ordering::Release);
    }

    /// The newest timestamp that every snapshot, now and later, includes: versions replaced up to it can go.
    pub fn retire_up_to(&self, newest: &AtomicU64) -> Timestamp {
        let newest = newest.load(Ordering::SeqCst);
        let mark = self.oldest().unwrap_or(newest).min(newest);
        self.retired.fetch_max(mark, Ordering::SeqCst);
        // A reader that published an older snapshot before it could see the mark is seen here.
        self.oldest().map_or(mark, |oldest| oldest.min(mark))
    }

    /// The oldest snapshot in use.
    pub fn oldest(&self) -> Option<Timestamp> {
        let used = self.used.load(Ordering::SeqCst);
        let taken = |slot: &CachePadded<Slot>| match slot.snapshot.load(Ordering::SeqCst) {
            FREE => None,
            snapshot => Some(snapshot - 1),
        };
        self.slots[..used].iter().filter_map(taken).min()
    }

    /// Transactions open now, and since when (milliseconds of the world's clock) the oldest of them is.
    pub fn census(&self) -> (usize, Option<u64>) {
        let used = self.used.load(Ordering::SeqCst);
        let open = self.slots[..used].iter().filter(|s| s.snapshot.load(Ordering::SeqCst) != FREE);
        let since = open.clone().map(|s| s.since_ms.load(Ordering::Relaxed)).min();
        (open.count(), since)
    }
}
