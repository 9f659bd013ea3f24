//! Waiting for something that another thread makes true, by parking: the [`Event`] of the real world.
//!
//! - EVENT-1: a thread that waits is on the list, or the generation has passed what it has seen.

use std::time::Duration;

use crate::sync::Event;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::locks::Mutex;
use crate::sync::parking::{Deadline, Thread, current, park};

/// A counter and the threads that wait for it to grow. Each is woken on its own, so that many who are woken at once
/// do not queue for a lock before they can run.
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
        }
        // A timeout too far for the clock to express is a wait without one.
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
        // Under the lock: who sees the new generation has been taken off the list, and will be on it once, not twice.
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
