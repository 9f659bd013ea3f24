//! Models of the engine's lock-free parts: every interleaving of a few threads is tried, with every value that the
//! memory model lets a load see (within a bound on how often a thread is interrupted).
//!
//! The parts are the engine's own source files, compiled here (`build.rs`) over a `vfs` whose atomics, locks and
//! parking are loom's. Each model is also run on copies of its part with one mistake planted, and has to find it: a
//! weaker ordering, a look that is left out, a notification that comes too early. So a model that sees nothing fails.
//!
//! `cargo test -p quickbeam-models` runs them all. A failure prints the interleaving; `LOOM_LOG=trace` prints more.
#![cfg(test)]

/// Page numbers, all that the modelled parts know of pages.
mod page {
    pub type PageId = u64;
}
mod failpoints;
mod sync;
mod vfs;

/// The modelled parts, right and wrong.
mod engine {
    #![allow(missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/engine.rs"));
}

mod event;
mod gate;
mod latch;
mod snapshots;
mod turns;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use engine::error::Error;
use engine::{blocks, error};

/// How often threads may be interrupted in one run, as loom counts: enough for small models to be tried in full.
const INTERRUPTIONS: usize = 6;

/// Starts a thread of a model. What is to be tried against each other must be in threads like this: loom does not
/// interrupt the model's first thread before the others have begun.
fn start<T: 'static>(body: impl FnOnce() -> T + 'static) -> loom::thread::JoinHandle<T> {
    loom::thread::spawn(body)
}

/// Tries the interleavings of what `run` does.
fn try_all(run: impl Fn() + Send + Sync + 'static) {
    try_within(INTERRUPTIONS, run);
}

/// As [`try_all`], with another bound.
fn try_within(interruptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.max_branches = 100_000;
    let count = Arc::new(AtomicUsize::new(0));
    let runs = count.clone();
    builder.check(move || {
        runs.fetch_add(1, Ordering::Relaxed);
        run();
    });
    // A model that is tried once tries nothing.
    let count = count.load(Ordering::Relaxed);
    assert!(count > 5, "only {count} interleavings");
    println!("{count} interleavings");
}
