//! Snapshot slots: the retired mark never passes a snapshot, including snapshots that are being
//! taken.

use std::sync::Arc;
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{start, try_within};

/// The model, over one version of `mvcc/mod.rs`.
macro_rules! models {
    ($name:ident, $source:ident) => {
        #[allow(dead_code)] // Each mistake has only the models that find it.
        mod $name {
            use super::*;
            use crate::engine::$source::Snapshots;

            /// Commits occur and versions are retired, while readers begin, read and end.
            pub fn begin_beside_retiring(readers: usize, interruptions: usize) {
                try_within(interruptions, move || {
                    let snapshots = Arc::new(Snapshots::with_slots(2));
                    let newest = Arc::new(AtomicU64::new(1));
                    // Versions replaced up to this commit are gone.
                    let gone = Arc::new(AtomicU64::new(0));
                    let threads: Vec<_> = (0..readers)
                        .map(|_| {
                            let (snapshots, newest) = (snapshots.clone(), newest.clone());
                            let gone = gone.clone();
                            start(move || {
                                let (slot, snapshot) =
                                    snapshots.acquire(&newest, Duration::ZERO).unwrap();
                                let gone = gone.load(Ordering::SeqCst);
                                assert!(gone <= snapshot, "what the snapshot sees is gone");
                                snapshots.release(slot);
                            })
                        })
                        .collect();
                    let commits = {
                        let newest = newest.clone();
                        start(move || {
                            newest.fetch_add(1, Ordering::SeqCst);
                        })
                    };
                    let retirer = start(move || {
                        let mark = snapshots.retire_up_to(&newest);
                        gone.fetch_max(mark, Ordering::SeqCst);
                    });
                    commits.join().unwrap();
                    retirer.join().unwrap();
                    threads.into_iter().for_each(|thread| thread.join().unwrap());
                });
            }

            /// A slot is taken while the marks of free slots are cleared; a later retirement sees
            /// its snapshot.
            pub fn begin_beside_unmarking() {
                try_within(4, || {
                    let snapshots = Arc::new(Snapshots::with_slots(1));
                    let newest = Arc::new(AtomicU64::new(1));
                    // An earlier transaction has left its mark.
                    let (slot, _) = snapshots.acquire(&newest, Duration::ZERO).unwrap();
                    snapshots.release(slot);
                    let taken = Arc::new(AtomicU64::new(0));
                    let reader = {
                        let (snapshots, newest) = (snapshots.clone(), newest.clone());
                        let taken = taken.clone();
                        start(move || {
                            let (_, snapshot) = snapshots.acquire(&newest, Duration::ZERO).unwrap();
                            taken.store(snapshot, Ordering::SeqCst);
                        })
                    };
                    let retirer = start(move || {
                        snapshots.unmark_free();
                        let taken = taken.load(Ordering::SeqCst);
                        newest.fetch_add(1, Ordering::SeqCst);
                        let mark = snapshots.retire_up_to(&newest);
                        assert!(taken == 0 || mark <= taken, "what the snapshot sees is gone");
                    });
                    reader.join().unwrap();
                    retirer.join().unwrap();
                });
            }

            /// A read committed transaction refreshes its snapshot during a retirement.
            pub fn move_beside_retiring() {
                try_within(3, || {
                    let snapshots = Arc::new(Snapshots::with_slots(2));
                    let newest = Arc::new(AtomicU64::new(1));
                    let gone = Arc::new(AtomicU64::new(0));
                    let (slot, _) = snapshots.acquire(&newest, Duration::ZERO).unwrap();
                    let reader = {
                        let (snapshots, newest) = (snapshots.clone(), newest.clone());
                        let gone = gone.clone();
                        start(move || {
                            let snapshot = snapshots.refresh(slot, &newest);
                            let gone = gone.load(Ordering::SeqCst);
                            assert!(gone <= snapshot, "what the snapshot sees is gone");
                        })
                    };
                    let retirer = start(move || {
                        newest.fetch_add(1, Ordering::SeqCst);
                        gone.fetch_max(snapshots.retire_up_to(&newest), Ordering::SeqCst);
                    });
                    retirer.join().unwrap();
                    reader.join().unwrap();
                });
            }

            /// A snapshot expires while its owner reads: what the owner read was still there, or
            /// the owner finds that its snapshot has expired.
            pub fn read_beside_expiry() {
                try_within(4, || {
                    let snapshots = Arc::new(Snapshots::with_slots(1));
                    let newest = Arc::new(AtomicU64::new(1));
                    let gone = Arc::new(AtomicU64::new(0));
                    let (slot, snapshot) = snapshots.acquire(&newest, Duration::ZERO).unwrap();
                    newest.fetch_add(1, Ordering::SeqCst);
                    let reader = {
                        let (snapshots, gone) = (snapshots.clone(), gone.clone());
                        start(move || {
                            let gone = gone.load(Ordering::Relaxed);
                            let is_right = gone <= snapshot || snapshots.is_expired(slot);
                            assert!(is_right, "what the snapshot sees is gone");
                        })
                    };
                    let retirer = start(move || {
                        snapshots.expire_oldest(&newest);
                        gone.store(snapshots.retire_up_to(&newest), Ordering::Release);
                    });
                    retirer.join().unwrap();
                    reader.join().unwrap();
                });
            }

            /// A transaction pins its snapshot while the snapshot expires: one of the two succeeds.
            pub fn pin_beside_expiry() {
                try_within(4, || {
                    let snapshots = Arc::new(Snapshots::with_slots(1));
                    let newest = Arc::new(AtomicU64::new(1));
                    let (slot, snapshot) = snapshots.acquire(&newest, Duration::ZERO).unwrap();
                    newest.fetch_add(1, Ordering::SeqCst);
                    let writer = {
                        let snapshots = snapshots.clone();
                        start(move || snapshots.pin(slot))
                    };
                    let retirer = start(move || {
                        snapshots.expire_oldest(&newest);
                        snapshots.retire_up_to(&newest)
                    });
                    let mark = retirer.join().unwrap();
                    let is_pinned = writer.join().unwrap();
                    assert!(!is_pinned || mark <= snapshot, "what the snapshot sees is gone");
                });
            }
        }
    };
}

models!(right, versions);
models!(expiry_not_ordered, versions_expiry_not_ordered);
models!(pinned_without_comparing, versions_pinned_without_comparing);
models!(snapshot_of_the_claim, versions_snapshot_of_the_claim);
models!(newest_after_slots, versions_newest_after_slots);
models!(unmarked_without_a_second_look, versions_unmarked_without_a_second_look);

#[test]
fn retirement_keeps_versions_of_a_beginning_reader() {
    right::begin_beside_retiring(1, 6);
    right::begin_beside_retiring(2, 2);
}

#[test]
fn retirement_keeps_versions_while_a_slot_is_unmarked() {
    right::begin_beside_unmarking();
}

#[test]
#[should_panic = "what the snapshot sees is gone"]
fn found_a_mark_cleared_without_a_second_look_at_the_slot() {
    unmarked_without_a_second_look::begin_beside_unmarking();
}

#[test]
fn retirement_keeps_versions_of_a_moving_reader() {
    right::move_beside_retiring();
}

#[test]
#[should_panic = "SNAP_1: versions of slot"]
fn found_a_reader_that_keeps_its_first_snapshot() {
    snapshot_of_the_claim::begin_beside_retiring(1, 3);
}

#[test]
#[should_panic = "what the snapshot sees is gone"]
fn found_a_mark_published_after_the_slots_are_read() {
    newest_after_slots::begin_beside_retiring(1, 6);
}

#[test]
fn reader_detects_that_its_snapshot_has_expired() {
    right::read_beside_expiry();
}

#[test]
#[should_panic = "what the snapshot sees is gone"]
fn found_a_reader_that_loads_its_slot_before_its_reads() {
    expiry_not_ordered::read_beside_expiry();
}

#[test]
fn pinned_snapshot_does_not_expire() {
    right::pin_beside_expiry();
}

#[test]
#[should_panic = "what the snapshot sees is gone"]
fn found_a_snapshot_that_is_pinned_after_it_expired() {
    pinned_without_comparing::pin_beside_expiry();
}
