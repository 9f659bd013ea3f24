//! Group commit: a thread that appends and waits is served by a round that began later, and is
//! woken.

use std::sync::Arc;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::locks::Mutex;
use crate::vfs::ModelVfs;
use crate::{start, try_within};

/// The models, over one version of `wal/group_commit.rs`.
macro_rules! models {
    ($name:ident, $source:ident) => {
        #[allow(dead_code)] // Each mistake has only the models that find it.
        mod $name {
            use super::*;
            use crate::engine::$source::GroupCommit;

            /// A log that consists of its positions only, served like `Log::wait_until_reached` in
            /// `wal/mod.rs`.
            struct Log {
                group_commit: GroupCommit,
                end: Mutex<u64>,
                written: AtomicU64,
                durable: AtomicU64,
            }

            impl Log {
                fn new() -> Arc<Log> {
                    let (written, durable) = (AtomicU64::new(0), AtomicU64::new(0));
                    let end = Mutex::new(0);
                    Arc::new(Log {
                        group_commit: GroupCommit::new(&ModelVfs),
                        end,
                        written,
                        durable,
                    })
                }

                /// A commit: appends and waits, for a flush if needed.
                fn commit(&self, flush: bool) {
                    let lsn = {
                        let mut end = self.end.lock();
                        *end += 1;
                        *end
                    };
                    let reached = if flush { &self.durable } else { &self.written };
                    let served = || reached.load(Ordering::Acquire) >= lsn;
                    let mut rounds = 0;
                    while !served() {
                        // Every caller is served by the round that it leads or waits for (GROUP-1).
                        rounds += 1;
                        assert!(rounds <= 1, "a turn that was waited for did not serve");
                        if let Some(flush) = self.group_commit.enter(flush, served) {
                            let end = *self.end.lock();
                            self.written.store(end, Ordering::Release);
                            if flush {
                                self.durable.store(end, Ordering::Release);
                            }
                            self.group_commit.leave();
                        }
                    }
                }
            }

            /// One thread for each commit; `flushes` says which of them need a flush. Loom reports
            /// a deadlock.
            pub fn commits(flushes: &'static [bool], interruptions: usize) {
                try_within(interruptions, move || {
                    let log = Log::new();
                    let threads: Vec<_> = flushes
                        .iter()
                        .map(|&flush| {
                            let log = log.clone();
                            start(move || log.commit(flush))
                        })
                        .collect();
                    threads.into_iter().for_each(|thread| thread.join().unwrap());
                    assert_eq!(log.written.load(Ordering::Acquire), flushes.len() as u64);
                });
            }
        }
    };
}

models!(right, group_commit);
models!(generation_too_late, group_commit_generation_too_late);
models!(end_not_notified, group_commit_end_not_notified);
models!(flush_forgotten, group_commit_flush_forgotten);

#[test]
fn two_commits_are_flushed_and_woken() {
    right::commits(&[true, true], 3);
    right::commits(&[true, false], 3);
    right::commits(&[false, false], 3);
}

#[test]
fn three_commits_are_flushed_and_woken() {
    right::commits(&[true, true, true], 2);
    right::commits(&[false, true, false], 2);
}

#[test]
#[should_panic = "deadlock"]
fn found_a_next_leader_that_is_not_woken() {
    generation_too_late::commits(&[true, true], 2);
}

#[test]
#[should_panic = "deadlock"]
fn found_a_round_that_wakes_no_follower() {
    end_not_notified::commits(&[true, true, true], 2);
}

#[test]
#[should_panic = "did not serve"]
fn found_a_flush_that_is_forgotten() {
    flush_forgotten::commits(&[false, false, true], 2);
}
