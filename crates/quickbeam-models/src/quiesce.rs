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
            use crate::engine::$source::{Quiesce, SHARED_STRIPE};

            /// Threads change two words under a guard of a stripe; a checkpoint reads them while
            /// the latch is closed. Each thread has its own stripe, or all use the `shared` one.
            pub fn changes(shared: bool, writers: usize, interruptions: usize) {
                try_within(interruptions, move || {
                    let quiesce = Arc::new(Quiesce::new(Arc::new(ModelVfs)));
                    let words: Arc<Vec<[AtomicU64; 2]>> =
                        Arc::new((0..writers).map(|_| Default::default()).collect());
                    let threads: Vec<_> = (0..writers)
                        .map(|stripe| {
                            let (quiesce, words) = (quiesce.clone(), words.clone());
                            start(move || {
                                let guard =
                                    quiesce.enter(if shared { SHARED_STRIPE } else { stripe });
                                words[stripe][0].store(1, Relaxed);
                                words[stripe][1].store(1, Relaxed);
                                drop(guard);
                            })
                        })
                        .collect();
                    let checkpoint = start(move || {
                        quiesce.close_for(|| {
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
            pub fn epochs() {
                try_within(3, || {
                    let quiesce = Arc::new(Quiesce::new(Arc::new(ModelVfs)));
                    let word = Arc::new(AtomicU64::new(0));
                    let writer = {
                        let (quiesce, word) = (quiesce.clone(), word.clone());
                        start(move || {
                            let guard = quiesce.enter(0);
                            let first = word.load(Relaxed);
                            let second = word.load(Relaxed);
                            drop(guard);
                            assert_eq!(first, second, "an epoch began within a change");
                        })
                    };
                    let checkpoint = start(move || quiesce.close_for(|| word.store(1, Relaxed)));
                    checkpoint.join().unwrap();
                    writer.join().unwrap();
                });
            }
        }
    };
}

models!(right, quiesce);
models!(not_rechecked, quiesce_not_rechecked);
models!(left_before_change, quiesce_left_before_change);
models!(own_stripe_left_before_change, quiesce_own_stripe_left_before_change);

#[test]
fn quiesced_state_has_no_half_done_change() {
    for shared in [false, true] {
        right::changes(shared, 1, 5);
        right::changes(shared, 2, 1);
    }
}

#[test]
fn epoch_never_begins_within_a_change() {
    right::epochs();
}

#[test]
#[should_panic = "a change is under way"]
fn found_a_change_that_does_not_recheck_the_gate() {
    not_rechecked::changes(false, 1, 3);
}

#[test]
#[should_panic = "a change is under way"]
fn found_a_guard_that_ends_before_its_change() {
    left_before_change::changes(true, 1, 3);
}

#[test]
#[should_panic = "a change is under way"]
fn found_a_stripe_guard_that_ends_before_its_change() {
    own_stripe_left_before_change::changes(false, 1, 3);
}
