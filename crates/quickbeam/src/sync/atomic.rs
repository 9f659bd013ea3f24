//! The atomic types of the engine's lock-free parts: latches, quiesce latch, snapshot slots,
//! transaction records, events.
//!
//! They are the standard library's types. The engine imports them from here so that the crate of
//! models can compile the same source with types whose interleavings are all explored
//! (`crates/quickbeam-models`).

pub use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
