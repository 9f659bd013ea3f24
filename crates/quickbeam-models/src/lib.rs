//! Models of the engine's lock-free parts. They explore every interleaving of a few threads, with
//! every value that the memory model allows a load to return, within a bound on preemptions.
//!
//! The parts are the engine's own source files, compiled here (`build.rs`) with loom's atomics,
//! locks and parking. Each model also runs on copies of its part with one planted mistake, which it
//! must find: a weaker ordering, a missing check, a notification that is too early. So a model that
//! finds nothing fails.
//!
//! `cargo test -p quickbeam-models` runs all models. A failure prints the interleaving;
//! `LOOM_LOG=trace` prints more.

#![cfg(test)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

/// Page numbers, the only part of `page` that the models use.
mod page {
    pub type PageId = u64;
}
mod failpoints;
/// Models always check the numbered invariants.
mod invariant {
    pub const CHECKS_INVARIANTS: bool = true;
}
mod sync;
mod temporary;
mod vfs;

/// The engine's checks of its numbered invariants.
macro_rules! invariant {
    ($number:ident, $condition:expr, $($details:tt)+) => {
        assert!($condition, "{}: {}", stringify!($number), format_args!($($details)+))
    };
}

/// The modelled parts, correct and with mistakes.
mod engine {
    #![allow(missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/engine.rs"));
}

mod event;
mod group_commit;
mod latch;
mod quiesce;
mod snapshots;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use engine::error::Error;
use engine::{blocks, error, files};

/// Maximum number of preemptions in one run, as loom counts them: enough to explore small models
/// fully.
const INTERRUPTIONS: usize = 6;

/// Starts a thread of a model. All concurrent work must be in such threads: loom does not preempt
/// the model's first thread before the others have begun.
fn start<T: 'static>(body: impl FnOnce() -> T + 'static) -> loom::thread::JoinHandle<T> {
    loom::thread::spawn(body)
}

/// Explores the interleavings of `run`.
fn try_all(run: impl Fn() + Send + Sync + 'static) {
    try_within(INTERRUPTIONS, run);
}

/// Like [`try_all`], with another bound.
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
    // A model with a single interleaving tests nothing.
    let count = count.load(Ordering::Relaxed);
    assert!(count > 5, "only {count} interleavings");
    println!("{count} interleavings");
}
