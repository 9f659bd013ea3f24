//! The background threads of an environment: log, checkpoints, eviction.
//!
//! Each runs until the environment closes. If the device is full, a thread retries its work in the
//! next round.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Engine;
use super::compaction::BackgroundCompaction;
use super::statistics::RECOVERY_BYTES_PER_SECOND;
use crate::checkpoint::CheckpointKind;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::vfs::{Event, Task};

/// How often the checkpoint thread checks whether a checkpoint is due.
const CHECKPOINT_POLL: Duration = Duration::from_millis(50);

/// How often the eviction thread looks for deferred work if there are no commits.
const HOUSEKEEPING_POLL: Duration = Duration::from_millis(100);

/// How often background compaction does its share of work.
const COMPACTION_POLL: Duration = Duration::from_millis(100);

/// Starts the threads that the environment needs.
pub fn start(engine: &Arc<Engine>) -> Result<Vec<Box<dyn Task>>> {
    let mut tasks = vec![spawn(engine, "quickbeam-room", make_room)?];
    if engine.log.is_some() {
        tasks.push(spawn(engine, "quickbeam-log", write_log)?);
    }
    if engine.path.is_some() && !engine.is_read_only {
        tasks.push(spawn(engine, "quickbeam-checkpoint", make_checkpoints)?);
        if engine.options.compaction_rate.is_some() {
            tasks.push(spawn(engine, "quickbeam-compact", compact)?);
        }
    }
    Ok(tasks)
}

fn spawn(engine: &Arc<Engine>, name: &str, body: fn(&Engine)) -> Result<Box<dyn Task>> {
    let held = engine.clone();
    engine
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
fn make_room(engine: &Engine) {
    engine.rounds(&*engine.pool.frames_wanted, HOUSEKEEPING_POLL, || {
        engine.note_time();
        engine.pool.make_ready();
        engine.pool.fill_free_frames()?;
        engine.transactions.look_after();
        engine.limit_old_snapshots();
        engine.run_deferred(usize::MAX)
    });
}

/// Writes the log of `NoSync` commits and prepares segments ahead.
fn write_log(engine: &Engine) {
    let Some(log) = &engine.log else { return };
    engine.rounds(&*log.background, engine.options.log_write_interval, || {
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
fn make_checkpoints(engine: &Engine) {
    let mut last = engine.vfs.now();
    engine.rounds(&*engine.checkpoint_wanted, CHECKPOINT_POLL, || {
        if engine.check_failed().is_err() {
            return Ok(());
        }
        let position = engine.checkpointer.counters.log_position.load(Ordering::Relaxed);
        let tail = engine.log.as_ref().map_or(0, |log| log.lock().end.saturating_sub(position));
        let waited = engine.vfs.now().saturating_sub(last);
        let due = tail >= engine.checkpoint_bytes()
            || (waited >= engine.options.checkpoint_interval && engine.pool.changed_pages() > 0);
        if due {
            last = engine.vfs.now();
            engine.checkpoint(CheckpointKind::Busy)?;
        }
        Ok(())
    });
}

/// Compacts within the budget that the options set.
fn compact(engine: &Engine) {
    let Some(rate) = engine.options.compaction_rate else { return };
    let rounds = 1000 / COMPACTION_POLL.as_millis() as u64;
    let pages = (rate / rounds / engine.pool.page_size as u64).max(1);
    let mut compaction = BackgroundCompaction::new(engine);
    engine.rounds(&*engine.compaction_wanted, COMPACTION_POLL, || {
        if engine.check_failed().is_err() {
            return Ok(());
        }
        compaction.work(pages)
    });
}
