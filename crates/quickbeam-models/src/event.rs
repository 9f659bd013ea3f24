//! Events: a notification after the generation was read is never missed.

use std::sync::Arc;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::vfs::Event;
use crate::{start, try_within};

/// The model, over one version of `sync/event.rs`.
macro_rules! models {
    ($name:ident, $source:ident) => {
        #[allow(dead_code)] // Each mistake has only the models that find it.
        mod $name {
            use super::*;
            use crate::engine::$source::ParkingEvent;

            /// Waits until `condition` has reached `value`.
            fn wait_until(event: &ParkingEvent, condition: &AtomicU64, value: u64) {
                loop {
                    let seen = event.generation();
                    if condition.load(Ordering::Acquire) >= value {
                        return;
                    }
                    event.wait(seen, None);
                }
            }

            /// A condition advances in two steps, with a notification each; some threads wait for
            /// the first, some for the second.
            pub fn notifications(waiters: u64, interruptions: usize) {
                try_within(interruptions, move || {
                    let event = Arc::new(ParkingEvent::default());
                    let condition = Arc::new(AtomicU64::new(0));
                    let threads: Vec<_> = (0..waiters)
                        .map(|waiter| {
                            let (event, condition) = (event.clone(), condition.clone());
                            start(move || wait_until(&event, &condition, 2 - waiter % 2))
                        })
                        .collect();
                    let notifier = start(move || {
                        for value in 1..=2 {
                            condition.store(value, Ordering::Release);
                            event.notify();
                        }
                    });
                    notifier.join().unwrap();
                    threads.into_iter().for_each(|thread| thread.join().unwrap());
                });
            }
        }
    };
}

models!(right, event);
models!(counted_too_late, event_counted_too_late);
models!(nobody_woken, event_nobody_woken);

#[test]
fn notification_is_never_missed() {
    right::notifications(1, 6);
    right::notifications(2, 3);
}

#[test]
#[should_panic = "deadlock"]
fn found_a_notification_that_counts_after_taking_the_list() {
    counted_too_late::notifications(1, 6);
}

#[test]
#[should_panic = "deadlock"]
fn found_a_notification_that_wakes_no_thread() {
    nobody_woken::notifications(1, 6);
}
