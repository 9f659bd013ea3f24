//! Numbers about an environment or a data store.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use super::Engine;
use super::background::RECOVERY_BYTES_PER_SECOND;
use crate::access::btree::{LeafSample, Tree};
use crate::buffer::Pool;
use crate::latency::LatencySummary;

/// What the engine can say of itself. Counts are since opening.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes in a page.
    pub page_size: usize,
    /// Bytes of cache as configured.
    pub cache_size: usize,
    /// Bytes of cache that hold pages.
    pub cache_used: usize,
    /// Page look-ups on the way from a root that found the page in memory.
    pub cache_hits: u64,
    /// Page look-ups that had to read it.
    pub cache_misses: u64,
    /// Pages put out of memory.
    pub evictions: u64,
    /// Page images written.
    pub page_writes: u64,
    /// Length of the data file in bytes.
    pub data_file_bytes: u64,
    /// Bytes of its blocks in use, those of the last checkpoint included.
    pub data_used_bytes: u64,
    /// Bytes of log segment files.
    pub log_file_bytes: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Write calls to the log.
    pub log_writes: u64,
    /// Flushes of the log.
    pub log_flushes: u64,
    /// Bytes in an average log write.
    pub average_log_write: f64,
    /// How long writing and flushing the log took.
    pub log_flush: LatencySummary,
    /// How long `Sync` and `WriteNoSync` commits waited for the log, where they had to.
    pub commit_wait: LatencySummary,
    /// Levels of the deepest tree.
    pub tree_depth: usize,
    /// Share of the room in leaves that records take, from a sample, 0 to 1.
    pub leaf_fill: f64,
    /// Commits that an average flush served.
    pub commits_per_flush: f64,
    /// Transactions committed.
    pub commits: u64,
    /// Transactions aborted that had changed something.
    pub aborts: u64,
    /// Transactions open now.
    pub open_transactions: usize,
    /// Age of the oldest open transaction.
    pub oldest_transaction: Option<Duration>,
    /// How many commits the oldest snapshot lags behind the newest.
    pub oldest_snapshot_lag: u64,
    /// Writer ids whose undo is kept for running transactions and old snapshots.
    pub writers_held: usize,
    /// Bytes of memory that their undo takes, as allocated, with what is kept to find it.
    pub undo_bytes: usize,
    /// Pieces of purging and freeing that wait to be done.
    pub deferred_work: usize,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// A checkpoint is running.
    pub checkpoint_running: bool,
    /// Pages that the running, or last, checkpoint has to write.
    pub checkpoint_pages: u64,
    /// Of those, the ones it has seen to.
    pub checkpoint_pages_done: u64,
    /// How long the last checkpoint took.
    pub last_checkpoint: Duration,
    /// Log bytes since the last checkpoint: what recovery would read.
    pub log_tail_bytes: u64,
    /// How long recovery would take, by a careful guess.
    pub recovery_estimate: Duration,
}

/// The part that environments and data stores have in common.
pub fn pool_statistics(pool: &Pool, cache_size: usize) -> Statistics {
    let counters = &pool.counters;
    let accesses: u64 = counters.accesses.iter().map(|lane| lane.load(Ordering::Relaxed)).sum();
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

/// Leaves looked at for an estimate of their fill, besides one for each tree.
const SAMPLED_LEAVES: usize = 64;

/// Trees looked at for that estimate; of more, as many that are spread evenly.
const SAMPLED_TREES: usize = 1024;

/// Depth and fill of the trees. A tree counts in the fill by its leaves, and the more of its leaves are looked at the more it has.
/// A page that cannot be read is left out: this is an estimate, `verify` is the check.
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

impl Engine {
    pub fn statistics(&self) -> Statistics {
        let checkpoint = &self.checkpointer.counters;
        let mut numbers = pool_statistics(&self.pool, self.options.cache_size);
        numbers.commit_wait = self.counters.commit_wait.summary();
        let trees: Vec<Tree> = self.trees.read().values().copied().collect();
        sample_trees(&self.pool, &trees, &mut numbers);
        numbers.commits = self.registry.snapshots.commits();
        numbers.aborts = self.counters.aborts.load(Ordering::Relaxed);
        let (open, since) = self.registry.snapshots.census();
        numbers.open_transactions = open;
        let now = self.vfs.now();
        numbers.oldest_transaction =
            since.map(|since| now.saturating_sub(Duration::from_millis(since)));
        let newest = self.registry.newest_commit.load(Ordering::Relaxed);
        let oldest = self.registry.snapshots.oldest().unwrap_or(newest);
        numbers.oldest_snapshot_lag = newest.saturating_sub(oldest);
        (numbers.writers_held, numbers.undo_bytes) = self.registry.held();
        numbers.deferred_work = self.registry.ready_count();
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
