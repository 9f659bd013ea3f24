//! The parking [`Event`] of the operating system's VFS.
//!
//! - EVENT-1: a waiting thread is on the list, or the generation is greater than the one it has
//!   seen.

use std::time::Duration;

use crate::sync::Event;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::locks::Mutex;
use crate::sync::parking::{Deadline, Thread, current, park};

/// A counter and the threads that wait for it to grow. Each thread is woken individually, so
/// threads that are woken at the same time do not queue for a lock before they can run.
#[derive(Default)]
pub struct ParkingEvent {
    generation: AtomicU64,
    waiters: Mutex<Vec<Thread>>,
}

impl Event for ParkingEvent {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn wait(&self, seen: u64, timeout: Option<Duration>) {
        let me = current();
        {
            let mut waiters = self.waiters.lock();
            if self.generation() > seen {
                return;
            }
            waiters.push(me.clone());
            invariant!(
                EVENT_1,
                self.generation() <= seen,
                "a thread that has seen {seen} misses a notification"
            );
        }
        // A timeout beyond the clock's range means no timeout.
        let deadline = timeout.and_then(Deadline::after);
        while self.generation() <= seen {
            match deadline {
                None => park(),
                Some(deadline) if !deadline.park() => {
                    self.waiters.lock().retain(|waiter| waiter.id() != me.id());
                    return;
                }
                Some(_) => {}
            }
        }
    }

    fn notify(&self) {
        // Under the lock: a thread that sees the new generation is off the list, and so is on the
        // list at most once.
        let woken = {
            let mut waiters = self.waiters.lock();
            self.generation.fetch_add(1, Ordering::SeqCst);
            std::mem::take(&mut *waiters)
        };
        for thread in woken {
            thread.unpark();
        }
    }
}
