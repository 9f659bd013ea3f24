//! The quiesce latch: while it is closed no change is in progress, and all earlier changes are
//! visible.

use std::sync::Arc;

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::Relaxed;

use crate::vfs::ModelVfs;
use crate::{start, try_within};

/// The model, over one version of `buffer/quiesce.rs`.
macro_rules! models {
    ($name:ident, $source:ident) => {
        #[allow(dead_code)] // Each mistake has only the models that find it.
        mod $name {
            use super::*;
            use crate::engine::$source::{Quiesce, SHARED_LANE};

            /// Threads change two words under a guard of a lane; a checkpoint reads them while the
            /// latch is closed. Each thread has its own lane, or all use the `shared` one.
            pub fn changes(shared: bool, writers: usize, interruptions: usize) {
                try_within(interruptions, move || {
                    let gate = Arc::new(Quiesce::new(Arc::new(ModelVfs)));
                    let words: Arc<Vec<[AtomicU64; 2]>> =
                        Arc::new((0..writers).map(|_| Default::default()).collect());
                    let threads: Vec<_> = (0..writers)
                        .map(|lane| {
                            let (gate, words) = (gate.clone(), words.clone());
                            start(move || {
                                let pass = gate.enter(if shared { SHARED_LANE } else { lane });
                                words[lane][0].store(1, Relaxed);
                                words[lane][1].store(1, Relaxed);
                                drop(pass);
                            })
                        })
                        .collect();
                    let checkpoint = start(move || {
                        gate.close_for(|| {
                            for [one, other] in words.iter() {
                                // The second word first, to detect a change in progress.
                                let other = other.load(Relaxed);
                                assert_eq!(one.load(Relaxed), other, "a change is under way");
                            }
                        });
                    });
                    checkpoint.join().unwrap();
                    threads.into_iter().for_each(|thread| thread.join().unwrap());
                });
            }

            /// A checkpoint writes while the latch is closed; a thread that enters later sees the
            /// write.
            pub fn flips() {
                try_within(3, || {
                    let gate = Arc::new(Quiesce::new(Arc::new(ModelVfs)));
                    let word = Arc::new(AtomicU64::new(0));
                    let writer = {
                        let (gate, word) = (gate.clone(), word.clone());
                        start(move || {
                            let pass = gate.enter(0);
                            let first = word.load(Relaxed);
                            let second = word.load(Relaxed);
                            drop(pass);
                            assert_eq!(first, second, "a flip came within a pass");
                        })
                    };
                    let checkpoint = start(move || gate.close_for(|| word.store(1, Relaxed)));
                    checkpoint.join().unwrap();
                    writer.join().unwrap();
                });
            }
        }
    };
}

models!(right, gate);
models!(not_looked_at_again, gate_not_looked_at_again);
models!(left_before_change, gate_left_before_change);
models!(own_lane_left_before_change, gate_own_lane_left_before_change);

#[test]
fn quiesced_state_has_no_half_done_change() {
    for shared in [false, true] {
        right::changes(shared, 1, 5);
        right::changes(shared, 2, 1);
    }
}

#[test]
fn epoch_never_begins_within_a_change() {
    right::flips();
}

#[test]
#[should_panic = "a change is under way"]
fn found_a_change_that_does_not_recheck_the_gate() {
    not_looked_at_again::changes(false, 1, 3);
}

#[test]
#[should_panic = "a change is under way"]
fn found_a_guard_that_ends_before_its_change() {
    left_before_change::changes(true, 1, 3);
}

#[test]
#[should_panic = "a change is under way"]
fn found_a_stripe_guard_that_ends_before_its_change() {
    own_lane_left_before_change::changes(false, 1, 3);
}
