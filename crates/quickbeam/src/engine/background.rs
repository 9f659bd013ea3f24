//! The background threads of an environment: log, checkpoints, eviction.
//!
//! Each runs until the environment closes. If the device is full, a thread retries its work in the
//! next round.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Engine;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::vfs::{Event, Task};

/// How often the checkpoint thread checks whether a checkpoint is due.
const CHECKPOINT_POLL: Duration = Duration::from_millis(50);

/// How often the eviction thread looks for deferred work if there are no commits.
const HOUSEKEEPING_POLL: Duration = Duration::from_millis(100);

/// Log bytes that recovery is assumed to apply in a second; a low estimate, for recovery targets.
pub const RECOVERY_BYTES_PER_SECOND: u64 = 40 << 20;

/// Starts the threads that the environment needs.
pub fn start(inner: &Arc<Engine>) -> Result<Vec<Box<dyn Task>>> {
    let mut tasks = vec![spawn(inner, "quickbeam-room", make_room)?];
    if inner.log.is_some() {
        tasks.push(spawn(inner, "quickbeam-log", write_log)?);
    }
    if inner.path.is_some() && !inner.is_read_only {
        tasks.push(spawn(inner, "quickbeam-checkpoint", make_checkpoints)?);
    }
    Ok(tasks)
}

fn spawn(inner: &Arc<Engine>, name: &str, body: fn(&Engine)) -> Result<Box<dyn Task>> {
    let held = inner.clone();
    inner
        .vfs
        .spawn(name, Box::new(move || body(&held)))
        .map_err(|error| Error::io(format!("starting thread {name}"), error))
}

impl Engine {
    fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Runs `round` after each `event` and each `pause`, until the environment closes.
    fn rounds(&self, event: &dyn Event, pause: Duration, mut round: impl FnMut() -> Result<()>) {
        loop {
            let seen = event.generation();
            if self.stopping() {
                return;
            }
            if let Err(error) = round()
                && !matches!(error, Error::DiskFull { .. })
            {
                self.fail(&error);
            }
            if !self.stopping() {
                event.wait(seen, Some(pause));
            }
        }
    }

    /// Returns the log bytes since the last checkpoint that start a checkpoint.
    pub fn checkpoint_bytes(&self) -> u64 {
        let by_target = self.options.recovery_target.map_or(u64::MAX, |target| {
            (target.as_secs_f64() * RECOVERY_BYTES_PER_SECOND as f64) as u64
        });
        self.options.checkpoint_bytes.min(by_target)
    }
}

/// Keeps some frames free, limits old snapshots, and runs deferred work if there are no commits.
fn make_room(inner: &Engine) {
    inner.rounds(&*inner.pool.frames_wanted, HOUSEKEEPING_POLL, || {
        inner.note_time();
        inner.pool.make_ready();
        inner.pool.fill_free_frames()?;
        inner.registry.look_after();
        inner.limit_old_snapshots();
        inner.run_deferred(usize::MAX)
    });
}

/// Writes the log of `NoSync` commits and prepares segments ahead.
fn write_log(inner: &Engine) {
    let Some(log) = &inner.log else { return };
    inner.rounds(&*log.background, inner.options.log_write_interval, || {
        if log.check().is_err() {
            return Ok(());
        }
        // The current segment can be written even if there is no space for the next one.
        let prepared = log.prepare_next();
        if !planted(Canary::BackgroundIdle) {
            let end = log.lock().end;
            log.write_to(end)?;
        }
        prepared
    });
}

/// Writes checkpoints by log bytes and by time.
fn make_checkpoints(inner: &Engine) {
    let mut last = inner.vfs.now();
    inner.rounds(&*inner.checkpoint_wanted, CHECKPOINT_POLL, || {
        if inner.check_failed().is_err() {
            return Ok(());
        }
        let position = inner.checkpointer.counters.log_position.load(Ordering::Relaxed);
        let tail = inner.log.as_ref().map_or(0, |log| log.lock().end.saturating_sub(position));
        let waited = inner.vfs.now().saturating_sub(last);
        let due = tail >= inner.checkpoint_bytes()
            || (waited >= inner.options.checkpoint_interval && inner.pool.changed_pages() > 0);
        if due {
            last = inner.vfs.now();
            inner.checkpoint(false, true)?;
        }
        Ok(())
    });
}
