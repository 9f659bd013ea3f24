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
use crate::checkpoint::CheckpointKind;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::sync::locks::Mutex;
use crate::vfs::Task;

/// Shared by handles and transactions; closes the environment when the last of them is dropped.
pub struct EngineLifetime {
    engine: Arc<Engine>,
    tasks: Mutex<Vec<Box<dyn Task>>>,
}

/// A transaction's reference to the environment, which keeps it open. There are several, so that
/// each thread counts its references on another cache line.
pub struct EngineRef {
    pub engine: Arc<Engine>,
    /// Closes the environment when the last reference is dropped (ENV-2).
    pub shared: Arc<EngineLifetime>,
}

/// An [`EngineRef`] alone on a cache line with its reference count.
pub type ShardedEngineRef = Arc<CachePadded<EngineRef>>;

impl EngineLifetime {
    /// Starts the engine's background threads.
    pub fn start(engine: Arc<Engine>) -> Result<EngineLifetime> {
        let tasks = background::start(&engine)?;
        Ok(EngineLifetime { engine, tasks: Mutex::new(tasks) })
    }

    /// Stops the background threads and writes the last checkpoint, once. With `may_go_on` the
    /// environment stays open if the device is full.
    pub fn end(&self, may_go_on: bool) -> Result<()> {
        let engine = &self.engine;
        // A thread that begins a transaction or closes at the same time waits for the outcome.
        let _ending = engine.ending.lock();
        if engine.closed.load(Ordering::SeqCst) {
            return engine.check_failed();
        }
        engine.closed.store(true, Ordering::SeqCst);
        let (open, _) = engine.transactions.snapshots.census();
        if open > 0 {
            engine.closed.store(false, Ordering::SeqCst);
            return Err(Error::misuse(format!(
                "{open} transactions are open; commit or abort them before closing"
            )));
        }
        let ended = self.wind_up();
        if let Err(error) = &ended {
            if may_go_on && matches!(error, Error::DiskFull { .. }) && self.go_on() {
                engine.closed.store(false, Ordering::SeqCst);
                return ended;
            }
            engine.fail(error);
        }
        // Unlock the directory, even if other handles exist.
        drop(engine.lock.lock().take());
        ended
    }

    fn wind_up(&self) -> Result<()> {
        let engine = &self.engine;
        engine.stop.store(true, Ordering::SeqCst);
        engine.wake_all();
        // A running compaction sees that it must stop, and none begins meanwhile (COMPACT-1).
        let _no_compaction = engine.compacting.lock();
        for task in self.tasks.lock().drain(..) {
            task.join();
        }
        if engine.is_read_only {
            return Ok(());
        }
        if planted(Canary::CloseSilent) && engine.check_failed().is_err() {
            return Ok(());
        }
        // Report a failure of a background thread: no other call does.
        engine.check_failed()?;
        if engine.path.is_none() {
            // An environment in memory writes no checkpoint.
            return Ok(());
        }
        engine.transactions.look_after();
        engine.run_deferred(usize::MAX)?;
        invariant!(
            COMPACT_1,
            engine.compacting.try_lock().is_none(),
            "a compaction may run beside the last checkpoint"
        );
        engine.checkpoint(CheckpointKind::Final)
    }

    /// Restarts the background threads after closing failed on a full device. Returns false if the
    /// meta page marked clean is durable already: the next opening would not read the log.
    fn go_on(&self) -> bool {
        let engine = &self.engine;
        if engine.checkpointer.is_clean() {
            return false;
        }
        engine.stop.store(false, Ordering::SeqCst);
        match background::start(engine) {
            Ok(tasks) => *self.tasks.lock() = tasks,
            Err(_) => {
                // The threads that did start stop by themselves.
                engine.stop.store(true, Ordering::SeqCst);
                engine.wake_all();
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
            self.engine.transactions.snapshots.census().0 == 0,
            "the last reference is dropped while transactions are open"
        );
        if self.engine.closed.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.end(false) {
            let outlook = match self.engine.log {
                Some(_) => "it recovers when it is opened again",
                None => "without a log, the next opening finds its last checkpoint",
            };
            eprintln!("quickbeam: closing the environment: {error}; {outlook}");
        }
    }
}
