//! Locks, events and atomic words: all means by which one thread waits for another.
//!
//! Above: the VFS and every module of the engine. Below: nothing. A simulated run replaces the way
//! in which a blocked thread waits (`locks`) and the events; the crate of models replaces the
//! atomic words (`atomic`).

pub(crate) mod atomic;
pub(crate) mod event;
pub mod locks;
mod parking;
pub(crate) mod shard;

use std::time::Duration;

#[cfg(feature = "simulation")]
pub use shard::start_as_thread;

/// An event: lets threads wait for a condition that another thread makes true.
///
/// Read the [`generation`](Event::generation), check the condition, then wait with that generation:
/// a notification between the two is not missed.
pub trait Event: Send + Sync {
    /// Returns the number of notifications so far.
    fn generation(&self) -> u64;
    /// Waits until the generation exceeds `seen`, or `timeout` has passed.
    fn wait(&self, seen: u64, timeout: Option<Duration>);
    /// Advances the generation and wakes every waiter.
    fn notify(&self);
}
