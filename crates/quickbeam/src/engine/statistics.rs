//! Statistics of an environment or a data store.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use super::{Engine, TransactionCounters};
use crate::access::btree::{LeafSample, Tree};
use crate::buffer::Pool;
use crate::latency::LatencySummary;

/// Statistics of an environment or a data store. Counters start at zero when it is opened.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes in a page.
    pub page_size: usize,
    /// Configured size of the cache in bytes.
    pub cache_size: usize,
    /// Bytes of cache that hold pages.
    pub cache_used: usize,
    /// Page accesses of tree descents that found the page in memory.
    pub cache_hits: u64,
    /// Page accesses that read the page from the data file.
    pub cache_misses: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Page images written to the data file.
    pub page_writes: u64,
    /// Length of the data file in bytes.
    pub data_file_bytes: u64,
    /// Bytes of the data file's used blocks, including those of the last checkpoint.
    pub data_used_bytes: u64,
    /// Bytes of log segment files.
    pub log_file_bytes: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Write calls to the log.
    pub log_writes: u64,
    /// Flushes of the log.
    pub log_flushes: u64,
    /// Average bytes of a log write.
    pub average_log_write: f64,
    /// Durations of log writes with their flushes.
    pub log_flush: LatencySummary,
    /// Durations that `Sync` and `WriteNoSync` commits waited for the log, if they waited.
    pub commit_wait: LatencySummary,
    /// Levels of the deepest tree.
    pub tree_depth: usize,
    /// Share of leaf space that records use, from 0 to 1, estimated from a sample.
    pub leaf_fill: f64,
    /// Average commits of a log flush.
    pub commits_per_flush: f64,
    /// Transactions committed.
    pub commits: u64,
    /// Transactions aborted after they had changed something.
    pub aborts: u64,
    /// Calls that failed with [`Error::WriteConflict`](crate::Error::WriteConflict).
    pub write_conflicts: u64,
    /// Commits that failed with
    /// [`Error::SerializationFailure`](crate::Error::SerializationFailure).
    pub serialization_failures: u64,
    /// Calls that failed with [`Error::Deadlock`](crate::Error::Deadlock).
    pub deadlocks: u64,
    /// Calls that failed with [`Error::LockTimeout`](crate::Error::LockTimeout).
    pub lock_timeouts: u64,
    /// Transactions that [`Environment::transact`](crate::Environment::transact) and
    /// [`transact_with`](crate::Environment::transact_with) began again.
    pub retries: u64,
    /// Transactions open now.
    pub open_transactions: usize,
    /// Age of the oldest open transaction.
    pub oldest_transaction: Option<Duration>,
    /// Age of the oldest snapshot in use, which holds old versions in memory.
    pub oldest_snapshot: Option<Duration>,
    /// Snapshots that expired, by age or because of the undo limit.
    pub expired_snapshots: u64,
    /// Transactions that waited for the undo limit before their first change.
    pub delayed_writers: u64,
    /// Commits since the oldest snapshot in use.
    pub oldest_snapshot_lag: u64,
    /// Transaction records kept for running transactions and old snapshots.
    pub writers_held: usize,
    /// Memory allocated for their undo entries and the index of those, in bytes.
    pub undo_bytes: usize,
    /// Bytes of undo entries in temporary files, beyond
    /// [`Options::undo_memory`](crate::Options::undo_memory).
    pub undo_file_bytes: u64,
    /// How often undo entries stayed in memory because a temporary file could not be written.
    pub undo_file_failures: u64,
    /// Deferred tasks that wait to run.
    pub deferred_work: usize,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Whether a checkpoint is running.
    pub checkpoint_running: bool,
    /// Pages of the running checkpoint, or of the last one if none runs.
    pub checkpoint_pages: u64,
    /// Pages of that checkpoint already processed.
    pub checkpoint_pages_done: u64,
    /// Duration of the last checkpoint.
    pub last_checkpoint: Duration,
    /// Log bytes since the last checkpoint, which recovery would read.
    pub log_tail_bytes: u64,
    /// Estimated duration of recovery, at a low assumed speed.
    pub recovery_estimate: Duration,
}

/// Log bytes that recovery is assumed to apply in a second; a low estimate, for recovery targets.
pub const RECOVERY_BYTES_PER_SECOND: u64 = 40 << 20;

/// Returns the statistics that environments and data stores share.
pub fn pool_statistics(pool: &Pool, cache_size: usize) -> Statistics {
    let counters = &pool.counters;
    let accesses: u64 = counters.accesses.iter().map(|stripe| stripe.load(Ordering::Relaxed)).sum();
    let misses = counters.loads.load(Ordering::Relaxed);
    Statistics {
        page_size: pool.page_size,
        cache_size,
        cache_used: pool.resident_bytes(),
        cache_hits: accesses.saturating_sub(misses),
        cache_misses: misses,
        evictions: counters.evictions.load(Ordering::Relaxed),
        page_writes: counters.writes.load(Ordering::Relaxed),
        data_file_bytes: pool.file_bytes(),
        data_used_bytes: pool.blocks.in_use() * pool.page_size as u64,
        ..Statistics::default()
    }
}

/// Leaves sampled for the fill estimate, in addition to one for each tree.
const SAMPLED_LEAVES: usize = 64;

/// Trees sampled for the fill estimate, evenly spread if there are more.
const SAMPLED_TREES: usize = 1024;

/// Estimates depth and fill of the trees from sampled leaves. A tree's weight, and its number of
/// sampled leaves, are proportional to its leaves. Skips unreadable pages; `verify` reports them.
pub fn sample_trees(pool: &Pool, trees: &[Tree], numbers: &mut Statistics) {
    let every = trees.len().div_ceil(SAMPLED_TREES).max(1);
    let sampled: Vec<(&Tree, LeafSample)> = trees
        .iter()
        .step_by(every)
        .filter_map(|tree| Some((tree, tree.sample(pool, 0.5).ok()?)))
        .collect();
    let all_leaves: f64 = sampled.iter().map(|(_, sample)| sample.leaves).sum();
    let mut used = 0.0;
    for (tree, first) in sampled {
        numbers.tree_depth = numbers.tree_depth.max(first.depth);
        let count = (SAMPLED_LEAVES as f64 * first.leaves / all_leaves) as usize;
        let more = (0..count).map(|at| tree.sample(pool, (at as f64 + 0.5) / count as f64));
        let more: Vec<usize> = more.flatten().map(|sample| sample.used_bytes).collect();
        let bytes = first.used_bytes + more.iter().sum::<usize>();
        used += first.leaves * bytes as f64 / (1 + more.len()) as f64;
    }
    numbers.leaf_fill = used / (all_leaves * pool.page_size as f64).max(1.0);
}

fn ratio(of: u64, per: u64) -> f64 {
    if per == 0 { 0.0 } else { of as f64 / per as f64 }
}

impl TransactionCounters {
    fn fill(&self, numbers: &mut Statistics) {
        numbers.commit_wait = self.commit_wait.summary();
        numbers.aborts = self.aborts.load(Ordering::Relaxed);
        numbers.write_conflicts = self.write_conflicts.load(Ordering::Relaxed);
        numbers.serialization_failures = self.serialization_failures.load(Ordering::Relaxed);
        numbers.deadlocks = self.deadlocks.load(Ordering::Relaxed);
        numbers.lock_timeouts = self.lock_timeouts.load(Ordering::Relaxed);
        numbers.retries = self.retries.load(Ordering::Relaxed);
    }
}

impl Engine {
    pub fn statistics(&self) -> Statistics {
        let checkpoint = &self.checkpointer.counters;
        let mut numbers = pool_statistics(&self.pool, self.options.cache_size);
        let trees: Vec<Tree> = self.trees.read().values().copied().collect();
        sample_trees(&self.pool, &trees, &mut numbers);
        numbers.commits = self.transactions.snapshots.commits();
        self.counters.fill(&mut numbers);
        let (open, since) = self.transactions.snapshots.census();
        numbers.open_transactions = open;
        let now = self.vfs.now();
        numbers.oldest_transaction =
            since.map(|since| now.saturating_sub(Duration::from_millis(since)));
        let taken = self.transactions.snapshots.oldest_taken_ms();
        numbers.oldest_snapshot =
            taken.map(|taken| now.saturating_sub(Duration::from_millis(taken)));
        numbers.expired_snapshots = self.old_snapshots.expired.load(Ordering::Relaxed);
        numbers.delayed_writers = self.old_snapshots.delayed.load(Ordering::Relaxed);
        let newest = self.transactions.newest_commit.load(Ordering::Relaxed);
        let oldest = self.transactions.snapshots.oldest().unwrap_or(newest);
        numbers.oldest_snapshot_lag = newest.saturating_sub(oldest);
        (numbers.writers_held, numbers.undo_bytes) = self.transactions.held();
        numbers.undo_file_bytes = self.transactions.spill.file_bytes();
        numbers.undo_file_failures = self.transactions.spill.failures();
        numbers.deferred_work = self.transactions.ready_count();
        numbers.checkpoints = checkpoint.completed.load(Ordering::Relaxed);
        numbers.checkpoint_running = checkpoint.running.load(Ordering::Relaxed);
        numbers.checkpoint_pages = checkpoint.pages.load(Ordering::Relaxed);
        numbers.checkpoint_pages_done = checkpoint.pages_done.load(Ordering::Relaxed);
        numbers.last_checkpoint = Duration::from_micros(checkpoint.last_us.load(Ordering::Relaxed));
        if let Some(log) = &self.log {
            let position = checkpoint.log_position.load(Ordering::Relaxed);
            numbers.log_flush = log.counters.flush_latency.summary();
            numbers.log_file_bytes = log.file_bytes();
            (numbers.log_bytes, numbers.log_writes) = log.traffic();
            numbers.log_flushes = log.counters.flushes.load(Ordering::Relaxed);
            numbers.average_log_write = ratio(numbers.log_bytes, numbers.log_writes);
            numbers.commits_per_flush = ratio(numbers.commits, numbers.log_flushes);
            numbers.log_tail_bytes = log.lock().end.saturating_sub(position);
            numbers.recovery_estimate = Duration::from_secs_f64(
                numbers.log_tail_bytes as f64 / RECOVERY_BYTES_PER_SECOND as f64,
            );
        }
        numbers
    }
}
