//! The atomic words of the engine's lock-free parts: latches, gate, snapshot slots, writers, events.
//!
//! They are the standard library's. The parts name them here, and not there, so that the crate of models can compile
//! the same source with words whose every interleaving is tried (`crates/quickbeam-models`).

pub use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
