//! The snapshots in use: the commit timestamps that transactions still read.
//!
//! Above: transactions and the freeze horizon. Below: thread shards. A transaction owns one slot on
//! a separate cache line, so beginning and ending a transaction writes no memory that other threads
//! read frequently. Sequentially consistent order decides the race between a beginning reader and
//! the thread that retires old versions. The reader publishes its snapshot and then reads the
//! retired mark; the retiring thread publishes the mark and then reads the slots. At least one of
//! them sees the other.
//!
//! - SNAP-1: a taken slot has its mark bit set, from before its owner reads the retired mark until
//!   the slot is free. Retiring visits marked slots only. Bits of free slots are cleared regularly,
//!   so that a burst of transactions does not make every later commit visit all slots. So no
//!   retirement reaches past a snapshot in use.
//! - SNAP-2: one thread at a time retires; the order lock of the transaction table ensures that.
//! - SNAP-3: a snapshot whose owner has changed nothing may expire: another thread replaces the
//!   word of its slot, and only then may versions that it sees be removed. The owner checks its
//!   slot after each call's reads. If the word is still there, they were from the snapshot;
//!   otherwise the call discards them. Before its first change the owner pins the word, which then
//!   never expires.
//! - SNAP-4: a slot for an older snapshot is taken while another slot has that snapshot, under the
//!   order lock. So no retirement or list of snapshots under way misses both slots.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::Timestamp;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::invariant::CHECKS_INVARIANTS;
use crate::sync::shard;

/// Maximum number of open transactions.
const SLOTS: usize = 4096;
const FREE: u64 = 0;
/// The slot's snapshot has expired (SNAP-3).
const EXPIRED: u64 = u64::MAX;
/// Set in the word of a snapshot that cannot expire (SNAP-3).
const PINNED: u64 = 1 << 63;
/// Slots whose mark bits share one word.
const GROUP: usize = u64::BITS as usize;
/// Number of retirements after which the marks of free slots are cleared.
const RETIREMENTS_PER_UNMARK: u64 = 64;

struct SnapshotSlot {
    /// Snapshot + 1, perhaps with [`PINNED`]; or [`FREE`] or [`EXPIRED`].
    snapshot: AtomicU64,
    /// The owner also reads newer snapshots, which it does not publish.
    keeps_newer: AtomicBool,
    /// When the transaction began, in milliseconds of the VFS's clock.
    since_ms: AtomicU64,
    /// When its snapshot was taken; `u64::MAX` while unknown.
    snapshot_ms: AtomicU64,
    /// What the transaction is for. It is shown and decides nothing, so the models, which replace
    /// the other atomics, leave its order out.
    owner: std::sync::atomic::AtomicU64,
    /// Commits made from this slot, counted by its owner only.
    commits: AtomicU64,
}

impl SnapshotSlot {
    fn free() -> CachePadded<SnapshotSlot> {
        CachePadded::new(SnapshotSlot {
            snapshot: AtomicU64::new(FREE),
            keeps_newer: AtomicBool::new(false),
            since_ms: AtomicU64::new(0),
            snapshot_ms: AtomicU64::new(u64::MAX),
            owner: std::sync::atomic::AtomicU64::new(0),
            commits: AtomicU64::new(0),
        })
    }
}

/// Returns the snapshot in a slot's word, or `None` if the slot is free or its snapshot expired.
#[inline]
fn snapshot_in(word: u64) -> Option<Timestamp> {
    (word != FREE && word != EXPIRED).then(|| (word & !PINNED) - 1)
}

/// A taken slot, as another thread sees it.
#[derive(Clone, Copy, Debug)]
pub struct TakenSlot {
    /// The slot's number.
    pub number: usize,
    /// What the transaction is for; 0 if nothing was named.
    pub owner: u64,
    /// When the transaction began, in milliseconds of the VFS's clock.
    pub since_ms: u64,
    /// Its snapshot; `None` if it expired.
    pub snapshot: Option<Timestamp>,
    /// When the snapshot was taken; `None` while unknown.
    pub snapshot_ms: Option<u64>,
}

/// The snapshots that were in use at one moment.
#[derive(Clone, Default)]
pub struct Live {
    /// Snapshots in ascending order.
    snapshots: Vec<Timestamp>,
    /// From here on every timestamp counts as a snapshot: unknown ones may exist.
    open_from: Timestamp,
}

impl Live {
    /// Returns whether a snapshot in use, now or later, includes the commit at `from` but not the
    /// one at `to`.
    pub fn separates(&self, from: Timestamp, to: Timestamp) -> bool {
        let at = self.snapshots.partition_point(|&snapshot| snapshot < from);
        to > self.open_from || self.snapshots.get(at).is_some_and(|&snapshot| snapshot < to)
    }

    /// Returns whether all of the snapshots are still in use in `later`.
    pub fn are_all_in(&self, later: &Live) -> bool {
        self.snapshots.iter().all(|snapshot| later.snapshots.binary_search(snapshot).is_ok())
    }
}

/// All snapshot slots.
pub struct Snapshots {
    slots: Box<[CachePadded<SnapshotSlot>]>,
    /// One bit for each slot that may be taken (SNAP-1).
    marks: Box<[AtomicU64]>,
    /// One bit for each word of `marks` that may have a bit set.
    marked_groups: CachePadded<AtomicU64>,
    /// A snapshot below this timestamp must not be taken.
    retired: AtomicU64,
    /// Retirements so far.
    retirements: AtomicU64,
    /// The newest timestamp that a retirement reached, for SNAP-1; zero in builds without checks.
    reached: AtomicU64,
}

impl Snapshots {
    pub fn new() -> Snapshots {
        Snapshots::with_slots(SLOTS)
    }

    /// Like [`new`](Self::new), for at most `slots` open transactions.
    pub fn with_slots(slots: usize) -> Snapshots {
        debug_assert!(slots <= GROUP * GROUP);
        Snapshots {
            slots: (0..slots).map(|_| SnapshotSlot::free()).collect(),
            marks: (0..slots.div_ceil(GROUP)).map(|_| AtomicU64::new(0)).collect(),
            marked_groups: CachePadded::new(AtomicU64::new(0)),
            retired: AtomicU64::new(0),
            retirements: AtomicU64::new(0),
            reached: AtomicU64::new(0),
        }
    }

    /// Takes a slot and a snapshot of all commits so far. Fails if all slots are taken.
    pub fn acquire(&self, newest: &AtomicU64, now: Duration) -> Result<(usize, Timestamp)> {
        let snapshot = newest.load(Ordering::SeqCst);
        let slot = self.claim(snapshot + 1).ok_or_else(|| Error::Limit {
            what: format!(
                "{} transactions are open; commit or abort some of them",
                self.slots.len()
            )
            .into(),
        })?;
        shard::set(slot);
        let now_ms = now.as_millis() as u64;
        self.slots[slot].since_ms.store(now_ms, Ordering::Relaxed);
        self.slots[slot].snapshot_ms.store(now_ms, Ordering::Relaxed);
        self.slots[slot].owner.store(shard::owner(), Ordering::Relaxed);
        if self.slots[slot].keeps_newer.load(Ordering::Relaxed) {
            self.slots[slot].keeps_newer.store(false, Ordering::SeqCst);
        }
        if self.retired.load(Ordering::SeqCst) <= snapshot {
            return Ok((slot, snapshot));
        }
        Ok((slot, self.refresh(slot, newest)))
    }

    /// Moves the snapshot in `slot`, which is not pinned, to the newest commit. An expired snapshot
    /// is replaced by one that has not expired.
    #[inline]
    pub fn refresh(&self, slot: usize, newest: &AtomicU64) -> Timestamp {
        self.publish(slot, newest, 0)
    }

    /// Moves the pinned snapshot in `slot` to the newest commit.
    #[inline]
    pub fn refresh_pinned(&self, slot: usize, newest: &AtomicU64) -> Timestamp {
        self.publish(slot, newest, PINNED)
    }

    #[inline]
    fn publish(&self, slot: usize, newest: &AtomicU64, bits: u64) -> Timestamp {
        loop {
            let snapshot = newest.load(Ordering::SeqCst);
            self.slots[slot].snapshot.store((snapshot + 1) | bits, Ordering::SeqCst);
            if self.retired.load(Ordering::SeqCst) <= snapshot {
                return snapshot;
            }
        }
    }

    /// Takes a second slot for the snapshot in `slot`, which expires as that one does. Returns
    /// `None` if the snapshot has expired or all slots are taken. The caller owns `slot` and holds
    /// the order lock (SNAP-4).
    pub fn copy(&self, slot: usize) -> Option<usize> {
        let from = &self.slots[slot];
        let word = from.snapshot.load(Ordering::SeqCst);
        snapshot_in(word)?;
        let copy = self.claim(word)?;
        invariant!(SNAP_4, self.is_unretired(copy), "a copy of slot {slot} comes too late");
        let to = &self.slots[copy];
        // Until its time is known, the copy does not expire.
        to.since_ms.store(from.since_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        to.owner.store(from.owner.load(Ordering::Relaxed), Ordering::Relaxed);
        to.keeps_newer.store(false, Ordering::SeqCst);
        to.snapshot_ms.store(from.snapshot_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(copy)
    }

    /// Takes a free slot, and publishes the snapshot in that word there. Returns `None` if all
    /// slots are taken.
    fn claim(&self, word: u64) -> Option<usize> {
        // Threads start at different slots and then reuse their own.
        let hint = shard::thread_shard();
        let slots = self.slots.len();
        for i in 0..slots {
            // Avoids a division: the hint is usually a valid slot.
            let slot = if hint + i < slots { hint + i } else { (hint + i) % slots };
            let free = &self.slots[slot].snapshot;
            if free.load(Ordering::Relaxed) == FREE
                && free.compare_exchange(FREE, word, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            {
                self.mark(slot);
                return Some(slot);
            }
        }
        None
    }

    /// Makes retirements visit the slot (SNAP-1). While its bit is set, the bit of its group is set
    /// too.
    #[inline]
    fn mark(&self, slot: usize) {
        let (group, bit) = (slot / GROUP, 1 << (slot % GROUP));
        if self.marks[group].load(Ordering::SeqCst) & bit == 0 {
            self.marks[group].fetch_or(bit, Ordering::SeqCst);
            if self.marked_groups.load(Ordering::SeqCst) & 1 << group == 0 {
                self.marked_groups.fetch_or(1 << group, Ordering::SeqCst);
            }
        }
    }

    /// Calls `visit` with the number of each marked slot.
    #[inline]
    fn for_marked(&self, mut visit: impl FnMut(usize)) {
        let mut groups = self.marked_groups.load(Ordering::SeqCst);
        while groups != 0 {
            let group = groups.trailing_zeros() as usize;
            groups &= groups - 1;
            let mut marks = self.marks[group].load(Ordering::SeqCst);
            while marks != 0 {
                visit(group * GROUP + marks.trailing_zeros() as usize);
                marks &= marks - 1;
            }
        }
    }

    /// Clears the marks of free slots. A slot that is being taken keeps its mark: either its owner
    /// sees the cleared bit and sets it, or the second check of the slot finds it taken.
    #[cold]
    pub(crate) fn unmark_free(&self) {
        let is_taken = |slot: usize| self.slots[slot].snapshot.load(Ordering::SeqCst) != FREE;
        self.for_marked(|slot| {
            if is_taken(slot) {
                return;
            }
            let (group, bit) = (slot / GROUP, 1 << (slot % GROUP));
            let left = self.marks[group].fetch_and(!bit, Ordering::SeqCst) & !bit;
            if is_taken(slot) {
                self.marks[group].fetch_or(bit, Ordering::SeqCst);
            } else if left == 0 {
                self.marked_groups.fetch_and(!(1 << group), Ordering::SeqCst);
                if self.marks[group].load(Ordering::SeqCst) != 0 {
                    self.marked_groups.fetch_or(1 << group, Ordering::SeqCst);
                }
            }
        });
    }

    /// Counts a commit; the caller owns the slot.
    #[inline]
    pub fn count_commit(&self, slot: usize) {
        let commits = &self.slots[slot].commits;
        commits.store(commits.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Returns the number of commits counted.
    pub fn commits(&self) -> u64 {
        self.slots.iter().map(|slot| slot.commits.load(Ordering::Relaxed)).sum()
    }

    /// Releases the slot. All reads in the snapshot precede the release: a thread that finds the
    /// slot free may retire the snapshot.
    #[inline]
    pub fn release(&self, slot: usize) {
        invariant!(SNAP_1, self.is_unretired(slot), "versions of slot {slot} were retired");
        let slot = &self.slots[slot];
        // For a thread that finds the slot taken again before its next owner has stored the time.
        slot.snapshot_ms.store(u64::MAX, Ordering::Relaxed);
        slot.snapshot.store(FREE, Ordering::Release);
    }

    /// Returns whether no retirement has reached past the snapshot in `slot`, unless it expired.
    /// The caller owns the slot.
    fn is_unretired(&self, slot: usize) -> bool {
        // In this order: a snapshot that has not expired yet was in use at that retirement.
        let reached = self.reached.load(Ordering::SeqCst);
        let snapshot = snapshot_in(self.slots[slot].snapshot.load(Ordering::SeqCst));
        snapshot.is_none_or(|snapshot| reached <= snapshot)
    }

    /// Returns the snapshot from which on the slot's owner keeps versions, or `None` if it expired.
    pub fn kept_from(&self, slot: usize) -> Option<Timestamp> {
        snapshot_in(self.slots[slot].snapshot.load(Ordering::Relaxed))
    }

    /// Stores when the snapshot in `slot` was refreshed.
    pub fn set_time(&self, slot: usize, now: Duration) {
        self.slots[slot].snapshot_ms.store(now.as_millis() as u64, Ordering::Relaxed);
    }

    /// Keeps the snapshot in `slot` from expiring. Returns false if it has expired. Called by the
    /// slot's owner before its first change (SNAP-3).
    pub fn pin(&self, slot: usize) -> bool {
        let word = &self.slots[slot].snapshot;
        let own = word.load(Ordering::Relaxed);
        let pinned = own | PINNED;
        let is_unchanged =
            word.compare_exchange(own, pinned, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        own != EXPIRED && is_unchanged
    }

    /// Returns whether the snapshot in `slot` has expired. If it has not, everything that the
    /// slot's owner read before this call was from its snapshot (SNAP-3).
    #[inline]
    pub fn is_expired(&self, slot: usize) -> bool {
        // Orders the owner's reads before the load of the word.
        fence(Ordering::Acquire);
        let word = self.slots[slot].snapshot.load(Ordering::Relaxed);
        word == EXPIRED && !planted(Canary::ExpiryIgnored)
    }

    /// Expires the snapshot in `slot` if it is still the one with that word, which is not pinned.
    fn expire(&self, slot: usize, word: u64) -> bool {
        invariant!(SNAP_3, word & PINNED == 0, "a pinned snapshot in slot {slot} expires");
        let slot = &self.slots[slot].snapshot;
        slot.compare_exchange(word, EXPIRED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Expires the snapshots that were taken before a time, in milliseconds of the VFS's clock.
    /// Returns how many. Those of transactions with changes remain.
    pub fn expire_before(&self, time_ms: u64) -> usize {
        let mut expired = 0;
        self.for_marked(|slot| {
            let word = self.slots[slot].snapshot.load(Ordering::SeqCst);
            let is_old = self.slots[slot].snapshot_ms.load(Ordering::Relaxed) < time_ms;
            if is_old && snapshot_in(word).is_some() && word & PINNED == 0 {
                expired += usize::from(self.expire(slot, word));
            }
        });
        expired
    }

    /// Expires the oldest snapshot in use. Returns false if it is the newest commit or pinned, or
    /// if there is none.
    pub fn expire_oldest(&self, newest: &AtomicU64) -> bool {
        let mut oldest: Option<(Timestamp, u64, usize)> = None;
        self.for_marked(|slot| {
            let word = self.slots[slot].snapshot.load(Ordering::SeqCst);
            let Some(snapshot) = snapshot_in(word) else { return };
            // Of equal snapshots, a pinned one is chosen: the others are not worth expiring.
            let is_older = oldest.is_none_or(|(found, other, _)| {
                snapshot < found || (snapshot == found && word > other)
            });
            if is_older {
                oldest = Some((snapshot, word, slot));
            }
        });
        oldest.is_some_and(|(snapshot, word, slot)| {
            snapshot < newest.load(Ordering::SeqCst)
                && word & PINNED == 0
                && self.expire(slot, word)
        })
    }

    /// Returns the newest timestamp that every snapshot, now and later, includes: versions replaced
    /// up to it can be removed (SNAP-2).
    pub fn retire_up_to(&self, newest: &AtomicU64) -> Timestamp {
        let newest = newest.load(Ordering::SeqCst);
        self.retired.fetch_max(newest, Ordering::SeqCst);
        let retirements = self.retirements.load(Ordering::Relaxed) + 1;
        self.retirements.store(retirements, Ordering::Relaxed);
        if retirements.is_multiple_of(RETIREMENTS_PER_UNMARK) {
            self.unmark_free();
        }
        // A reader that published an older snapshot before it could see the mark is found here.
        let mut oldest = newest;
        self.for_marked(|slot| {
            if let Some(snapshot) = snapshot_in(self.slots[slot].snapshot.load(Ordering::SeqCst)) {
                oldest = oldest.min(snapshot);
            }
        });
        invariant!(
            SNAP_2,
            self.retirements.load(Ordering::Relaxed) == retirements,
            "two threads retire snapshots at once"
        );
        if CHECKS_INVARIANTS {
            self.reached.fetch_max(oldest, Ordering::SeqCst);
        }
        oldest
    }

    /// Allows the slot's owner to read snapshots newer than the published one. They are taken from
    /// the newest commit after this call, so a thread that did not see the call keeps them like any
    /// later snapshot.
    pub fn keep_newer(&self, slot: usize) {
        self.slots[slot].keeps_newer.store(true, Ordering::SeqCst);
    }

    /// Returns the snapshots in use. The result stays valid for commits up to `newest`: no unlisted
    /// snapshot is older (SNAP-2).
    pub fn live(&self, newest: &AtomicU64) -> Live {
        let mut live = Live { snapshots: Vec::new(), open_from: newest.load(Ordering::SeqCst) };
        self.retired.fetch_max(live.open_from, Ordering::SeqCst);
        self.for_marked(|slot| {
            let slot = &self.slots[slot];
            let word = slot.snapshot.load(Ordering::SeqCst);
            let Some(snapshot) = snapshot_in(word) else { return };
            if slot.keeps_newer.load(Ordering::SeqCst) {
                live.open_from = live.open_from.min(snapshot);
            }
            live.snapshots.push(snapshot);
        });
        live.snapshots.sort_unstable();
        live.snapshots.dedup();
        live
    }

    /// Returns the oldest snapshot in use, as far as visible without stopping other threads.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.slots.iter().filter_map(|slot| snapshot_in(slot.snapshot.load(Ordering::SeqCst))).min()
    }

    /// Returns when the snapshot in use longest was taken, in milliseconds of the VFS's clock.
    pub fn oldest_taken_ms(&self) -> Option<u64> {
        let unexpired =
            |slot: &&SnapshotSlot| snapshot_in(slot.snapshot.load(Ordering::SeqCst)).is_some();
        self.taken().filter(unexpired).map(|slot| slot.snapshot_ms.load(Ordering::Relaxed)).min()
    }

    /// Returns the taken slots, whether marked or not.
    fn taken(&self) -> impl Iterator<Item = &SnapshotSlot> {
        let slots = self.slots.iter().map(|slot| &**slot);
        slots.filter(|slot| slot.snapshot.load(Ordering::SeqCst) != FREE)
    }

    /// Calls `visit` with each taken slot.
    pub fn for_taken(&self, mut visit: impl FnMut(TakenSlot)) {
        for (number, slot) in self.slots.iter().enumerate() {
            let word = slot.snapshot.load(Ordering::SeqCst);
            if word == FREE {
                continue;
            }
            let snapshot_ms = slot.snapshot_ms.load(Ordering::Relaxed);
            visit(TakenSlot {
                number,
                owner: slot.owner.load(Ordering::Relaxed),
                since_ms: slot.since_ms.load(Ordering::Relaxed),
                snapshot: snapshot_in(word),
                snapshot_ms: (snapshot_ms != u64::MAX).then_some(snapshot_ms),
            });
        }
    }

    /// Returns the number of open transactions, and when the oldest of them began, in milliseconds
    /// of the VFS's clock.
    pub fn census(&self) -> (usize, Option<u64>) {
        let since = |slot: &SnapshotSlot| slot.since_ms.load(Ordering::Relaxed);
        self.taken().fold((0, None), |(open, oldest): (usize, Option<u64>), slot| {
            (open + 1, Some(oldest.map_or(since(slot), |oldest| oldest.min(since(slot)))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(snapshots: &Snapshots) -> usize {
        let mut count = 0;
        snapshots.for_marked(|_| count += 1);
        count
    }

    #[test]
    fn a_copy_keeps_the_snapshot_after_the_first_slot_is_free() {
        let snapshots = Snapshots::with_slots(2);
        let newest = AtomicU64::new(7);
        let (slot, snapshot) = snapshots.acquire(&newest, Duration::from_millis(5)).unwrap();
        newest.store(9, Ordering::SeqCst);
        assert_eq!(snapshots.retire_up_to(&newest), snapshot);
        let copy = snapshots.copy(slot).unwrap();
        assert_eq!((snapshots.kept_from(copy), snapshots.copy(slot)), (Some(snapshot), None));
        snapshots.release(slot);
        assert_eq!(snapshots.retire_up_to(&newest), snapshot);
        assert_eq!(snapshots.expire_before(6), 1);
        assert_eq!((snapshots.is_expired(copy), snapshots.copy(copy)), (true, None));
        snapshots.release(copy);
        assert_eq!(snapshots.retire_up_to(&newest), 9);
    }

    #[test]
    fn retirement_skips_slots_of_ended_transactions() {
        let snapshots = Snapshots::new();
        let newest = AtomicU64::new(1);
        let readers: Vec<usize> =
            (1..SLOTS).map(|_| snapshots.acquire(&newest, Duration::ZERO).unwrap().0).collect();
        assert_eq!(visited(&snapshots), SLOTS - 1);
        readers.into_iter().for_each(|slot| snapshots.release(slot));
        let (slot, snapshot) = snapshots.acquire(&newest, Duration::ZERO).unwrap();
        for _ in 0..RETIREMENTS_PER_UNMARK {
            newest.fetch_add(1, Ordering::SeqCst);
            assert_eq!(snapshots.retire_up_to(&newest), snapshot);
        }
        assert_eq!(visited(&snapshots), 1);
        snapshots.release(slot);
        assert_eq!(snapshots.retire_up_to(&newest), newest.load(Ordering::SeqCst));
        assert_eq!(snapshots.census(), (0, None));
    }
}
