//! Waiting for another transaction to end: no waiter sleeps past that end.

use std::sync::Arc;
use std::time::Duration;

use crate::sync::atomic::Ordering;
use crate::vfs::ModelVfs;
use crate::{start, try_within};

/// The model, over one version of `mvcc/mod.rs`.
macro_rules! models {
    ($name:ident, $source:ident) => {
        #[allow(dead_code)] // Each mistake has only the models that find it.
        mod $name {
            use super::*;
            use crate::engine::$source::{
                Outcome, Snapshots, TransactionState, TransactionTable, WaitOptions,
            };

            /// A transaction commits or aborts while another one begins to wait for it.
            pub fn wait_for_the_end(committed: bool) {
                try_within(2, move || {
                    let registry = Arc::new(TransactionTable::with_snapshots(
                        &ModelVfs,
                        Snapshots::with_slots(2),
                    ));
                    let writer = registry.begin_writer(0);
                    let waiter = {
                        let (registry, writer) = (registry.clone(), writer.clone());
                        start(move || {
                            let timeout = Duration::from_secs(86_400);
                            let patience = WaitOptions { timeout, interrupt: None };
                            registry.wait_for(&ModelVfs, None, &writer, patience).unwrap();
                            assert!(writer.state() != TransactionState::Active);
                        })
                    };
                    let ending = start(move || {
                        let outcome = if committed { Outcome::Committed } else { Outcome::Aborted };
                        if committed {
                            registry.newest_commit.store(1, Ordering::SeqCst);
                            writer.set_committed(1);
                        }
                        registry.finish(writer, outcome);
                    });
                    ending.join().unwrap();
                    waiter.join().unwrap();
                });
            }
        }
    };
}

models!(right, versions);
models!(state_before_waiting, versions_state_before_waiting);
models!(waiting_not_ordered, versions_waiting_not_ordered);

#[test]
fn waiter_is_woken_at_the_end_of_a_transaction() {
    right::wait_for_the_end(true);
    right::wait_for_the_end(false);
}

#[test]
#[should_panic = "deadlock"]
fn found_a_waiter_that_looks_before_it_registers() {
    state_before_waiting::wait_for_the_end(true);
}

#[test]
#[should_panic = "deadlock"]
fn found_a_waiter_whose_store_is_not_ordered() {
    waiting_not_ordered::wait_for_the_end(true);
}
