//! How long an engine lives: handles and transactions hold references, the last one closes it.
//!
//! Above: [`Environment`](crate::Environment) and transactions. Below: the [`Engine`] and its
//! background threads.
//!
//! - ENV-2: the environment closes when its last handle and its last transaction are dropped;
//!   closing writes a checkpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;

use super::{Engine, background};
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::sync::locks::Mutex;
use crate::vfs::Task;

/// Shared by handles and transactions; closes the environment when the last of them is dropped.
pub struct EngineLifetime {
    inner: Arc<Engine>,
    tasks: Mutex<Vec<Box<dyn Task>>>,
}

/// A transaction's reference to the environment, which keeps it open. There are several, so that
/// each thread counts its references on another cache line.
pub struct EngineRef {
    pub inner: Arc<Engine>,
    /// Closes the environment when the last reference is dropped (ENV-2).
    pub shared: Arc<EngineLifetime>,
}

/// An [`EngineRef`] alone on a cache line with its reference count.
pub type ShardedEngineRef = Arc<CachePadded<EngineRef>>;

impl EngineLifetime {
    /// Starts the engine's background threads.
    pub fn start(inner: Arc<Engine>) -> Result<EngineLifetime> {
        let tasks = background::start(&inner)?;
        Ok(EngineLifetime { inner, tasks: Mutex::new(tasks) })
    }

    /// Stops the background threads and writes the last checkpoint, once. With `may_go_on` the
    /// environment stays open if the device is full.
    pub fn end(&self, may_go_on: bool) -> Result<()> {
        let inner = &self.inner;
        // A thread that begins a transaction or closes at the same time waits for the outcome.
        let _ending = inner.ending.lock();
        if inner.closed.load(Ordering::SeqCst) {
            return inner.check_failed();
        }
        inner.closed.store(true, Ordering::SeqCst);
        let (open, _) = inner.registry.snapshots.census();
        if open > 0 {
            inner.closed.store(false, Ordering::SeqCst);
            return Err(Error::misuse(format!(
                "{open} transactions are open; commit or abort them before closing"
            )));
        }
        let ended = self.wind_up();
        if let Err(error) = &ended {
            if may_go_on && matches!(error, Error::DiskFull { .. }) && self.go_on() {
                inner.closed.store(false, Ordering::SeqCst);
                return ended;
            }
            inner.fail(error);
        }
        // Unlock the directory, even if other handles exist.
        drop(inner.lock.lock().take());
        ended
    }

    fn wind_up(&self) -> Result<()> {
        let inner = &self.inner;
        inner.stop.store(true, Ordering::SeqCst);
        inner.wake_all();
        for task in self.tasks.lock().drain(..) {
            task.join();
        }
        if inner.is_read_only {
            return Ok(());
        }
        if planted(Canary::CloseSilent) && inner.check_failed().is_err() {
            return Ok(());
        }
        // Report a failure of a background thread: no other call does.
        inner.check_failed()?;
        if inner.path.is_none() {
            // An environment in memory writes no checkpoint.
            return Ok(());
        }
        inner.registry.look_after();
        inner.run_deferred(usize::MAX)?;
        inner.checkpoint(true, false)
    }

    /// Restarts the background threads after closing failed on a full device. Returns false if the
    /// meta page marked clean is durable already: the next opening would not read the log.
    fn go_on(&self) -> bool {
        let inner = &self.inner;
        if inner.checkpointer.is_clean() {
            return false;
        }
        inner.stop.store(false, Ordering::SeqCst);
        match background::start(inner) {
            Ok(tasks) => *self.tasks.lock() = tasks,
            Err(_) => {
                // The threads that did start stop by themselves.
                inner.stop.store(true, Ordering::SeqCst);
                inner.wake_all();
                return false;
            }
        }
        true
    }
}

impl Drop for EngineLifetime {
    fn drop(&mut self) {
        invariant!(
            ENV_2,
            self.inner.registry.snapshots.census().0 == 0,
            "the last reference is dropped while transactions are open"
        );
        if self.inner.closed.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.end(false) {
            let outlook = match self.inner.log {
                Some(_) => "it recovers when it is opened again",
                None => "without a log, the next opening finds its last checkpoint",
            };
            eprintln!("quickbeam: closing the environment: {error}; {outlook}");
        }
    }
}
