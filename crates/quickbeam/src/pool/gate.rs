//! The gate that a checkpoint closes for a moment: while it is closed no page change is under way.
//!
//! Every operation that changes pages holds a [`Pass`] for its time, never while it waits for another transaction or
//! for the log. Passes are counted on separate cache lines, so that writers on different threads share none.

use crate::world::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::world::World;

const LANES: usize = 32;

/// The gate.
pub struct Gate {
    closed: CachePadded<AtomicBool>,
    lanes: [CachePadded<AtomicU32>; LANES],
    world: Arc<dyn World>,
}

/// Leave to change pages; ends when dropped.
pub struct Pass<'a>(Option<&'a AtomicU32>);

impl Gate {
    pub fn new(world: Arc<dyn World>) -> Gate {
        Gate { closed: CachePadded::default(), lanes: Default::default(), world }
    }

    /// Waits until the gate is open and goes through. `lane` spreads threads; any number will do.
    #[inline]
    pub fn enter(&self, lane: usize) -> Pass<'_> {
        let count = &self.lanes[lane % LANES];
        loop {
            count.fetch_add(1, Ordering::SeqCst);
            if !self.closed.load(Ordering::SeqCst) {
                return Pass(Some(count));
            }
            count.fetch_sub(1, Ordering::SeqCst);
            while self.closed.load(Ordering::Relaxed) {
                self.world.yield_now();
            }
        }
    }

    /// Closes the gate, waits until everybody is out, does `work`, and opens it. One closer at a time.
    pub fn close_for<T>(&self, work: impl FnOnce() -> T) -> T {
        self.closed.store(true, Ordering::SeqCst);
        for lane in &self.lanes {
            while lane.load(Ordering::SeqCst) != 0 {
                self.world.yield_now();
            }
        }
        let result = work();
        self.closed.store(false, Ordering::SeqCst);
        result
    }
}

impl Pass<'_> {
    /// Leave for the one owner of a store that has no gate.
    pub fn unshared() -> Pass<'static> {
        Pass(None)
    }
}

impl Drop for Pass<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_sub(1, Ordering::Release);
        }
    }
}
