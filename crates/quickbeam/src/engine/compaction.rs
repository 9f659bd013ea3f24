//! Compaction: packs sparse leaves, moves pages from the end of the data file to free blocks, and
//! cuts the file.
//!
//! Above: the environment's handles, the background thread and the data store. Below: trees,
//! buffer pool and checkpoints.
//!
//! Leaves change as in splits and merges, and a moved page counts as changed. So transactions go
//! on, a crash finds the last checkpoint, and the log replays as ever. No record changes.
//!
//! - COMPACT-1: compaction ends before the environment's last checkpoint begins.

use std::sync::atomic::Ordering;

use serde::Serialize;

use super::{Engine, Statistics, sample_trees};
use crate::access::btree::{Packed, Packing, Tree};
use crate::blocks::Block;
use crate::buffer::{Pool, SHARED_STRIPE};
use crate::checkpoint::CheckpointKind;
use crate::error::{Error, Result};
use crate::sync::shard;

/// How often pages are moved. A checkpoint after each round writes its page map to new blocks, some
/// of which may be at the file's end.
pub const MOVING_ROUNDS: usize = 4;

/// Changed pages after which a call makes a checkpoint, at least. Until then their old blocks stay
/// in use.
const LEAST_CHANGED: usize = 1024;

/// Background compaction begins when leaves are filled to less than this on average.
const SPARSE_FILL: f64 = 0.5;

/// Background compaction begins when one part in `HOLE_SHARE` of the file is free before its last
/// used block.
const HOLE_SHARE: u64 = 8;

/// Files with fewer blocks are not compacted in the background.
const LEAST_BLOCKS: u64 = 64;

/// What a compaction did.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct CompactionReport {
    /// Leaves merged with a neighbor.
    pub merged_pages: u64,
    /// Page images moved to a lower block.
    pub moved_pages: u64,
    /// Length of the data file after a first checkpoint, in bytes.
    pub bytes_before: u64,
    /// Length of the data file after, in bytes.
    pub bytes_after: u64,
}

/// Moves the pages in blocks from number `from` on to lower blocks. `check` is called before each
/// page and stops the work with its error. Returns the number of pages moved.
pub fn move_pages(
    pool: &Pool,
    stripe: usize,
    from: Block,
    check: impl Fn() -> Result<()>,
) -> Result<u64> {
    let mut moved = 0;
    for (_, page) in pool.pages_behind(from) {
        check()?;
        let change_guard = pool.enter(stripe);
        moved += u64::from(pool.relocate(&change_guard, page, from)?);
    }
    Ok(moved)
}

impl Engine {
    /// Compacts trees and data file as far as possible.
    pub fn compact(&self) -> Result<CompactionReport> {
        self.check_open()?;
        if self.is_read_only {
            return Err(Error::ReadOnlyEnvironment);
        }
        let _alone = self.compacting.lock();
        self.settle_for_compaction()?;
        let mut report =
            CompactionReport { bytes_before: self.pool.file_bytes(), ..Default::default() };
        let trees: Vec<u32> = self.trees.read().keys().copied().collect();
        for tree in trees {
            self.pack_tree(tree, &mut report)?;
        }
        self.settle_for_compaction()?;
        for _ in 0..MOVING_ROUNDS {
            let from = self.pool.blocks.in_use();
            if self.pool.blocks.at_used_end(|end| end <= from) {
                break;
            }
            let stripe = SHARED_STRIPE + shard::thread_shard();
            report.moved_pages += move_pages(&self.pool, stripe, from, || self.check_compacting())?;
            self.checkpointer.move_page_map_from(from);
            self.settle_for_compaction()?;
        }
        self.pool.cut_file()?;
        report.bytes_after = self.pool.file_bytes();
        Ok(report)
    }

    /// Returns an error if compaction must stop.
    fn check_compacting(&self) -> Result<()> {
        if self.stop.load(Ordering::SeqCst) {
            return Err(Error::misuse("the environment was closed during its compaction"));
        }
        self.check_failed()
    }

    /// Frees what no snapshot needs, and makes a checkpoint, so that old blocks become free.
    fn settle_for_compaction(&self) -> Result<()> {
        self.check_compacting()?;
        self.transactions.look_after();
        self.run_deferred(usize::MAX)?;
        self.checkpoint(CheckpointKind::Online)
    }

    /// Packs all leaves of a tree.
    fn pack_tree(&self, tree: u32, report: &mut CompactionReport) -> Result<()> {
        let limit = LEAST_CHANGED.max(self.pool.blocks.in_use() as usize / 8);
        let mut key = Vec::new();
        loop {
            self.check_compacting()?;
            let Some(packed) = self.pack_leaf(tree, &key, Packing::Fill)? else { return Ok(()) };
            report.merged_pages += packed.merged as u64;
            if self.pool.changed_pages() >= limit {
                self.checkpoint(CheckpointKind::Online)?;
            }
            let Some(next) = packed.next else { return Ok(()) };
            key = next;
        }
    }

    /// Packs one leaf. Returns `None` if the tree is freed, or being freed.
    fn pack_leaf(&self, tree: u32, key: &[u8], packing: Packing) -> Result<Option<Packed>> {
        let freeing = self.freeing_trees.read();
        let Some(tree) = self.tree(tree).filter(|tree| !freeing.contains(&tree.id)) else {
            return Ok(None);
        };
        let stripe = SHARED_STRIPE + shard::thread_shard();
        tree.pack_leaf(&self.pool, stripe, key, packing).map(Some)
    }
}

/// Where background compaction is.
enum Stage {
    /// There was nothing to do after that number of checkpoints.
    Idle { checkpoints: u64 },
    /// The leaf for `key` is packed next.
    Packing { tree: u32, key: Vec<u8> },
    /// The pages that remain to be moved, the last first, from blocks from number `from` on.
    Moving { pages: Vec<(Block, u64)>, from: Block },
}

/// Compaction in the background, a part at a time.
pub struct BackgroundCompaction<'a> {
    engine: &'a Engine,
    stage: Stage,
}

impl BackgroundCompaction<'_> {
    pub fn new(engine: &Engine) -> BackgroundCompaction<'_> {
        BackgroundCompaction { engine, stage: Stage::Idle { checkpoints: 0 } }
    }

    /// Does work on about `pages` pages. The next checkpoint that is due for other reasons makes it
    /// durable, releases the old blocks and cuts the file.
    pub fn work(&mut self, pages: u64) -> Result<()> {
        let engine = self.engine;
        let Some(_alone) = engine.compacting.try_lock() else { return Ok(()) };
        let mut done = 0;
        while done < pages && !engine.stop.load(Ordering::SeqCst) {
            match &mut self.stage {
                Stage::Idle { checkpoints } => {
                    let completed = engine.checkpointer.counters.completed.load(Ordering::Relaxed);
                    if std::mem::replace(checkpoints, completed) == completed
                        || !engine.is_compaction_due()
                    {
                        return Ok(());
                    }
                    self.stage = Stage::Packing { tree: 0, key: Vec::new() };
                }
                Stage::Packing { tree, key } => {
                    let packed = engine.pack_leaf(*tree, key, Packing::Merge)?;
                    done += packed.as_ref().map_or(0, |packed| 1 + packed.changed as u64);
                    if let Some(next) = packed.and_then(|packed| packed.next) {
                        *key = next;
                        continue;
                    }
                    let later = *tree + 1;
                    self.stage = match engine.trees.read().range(later..).next() {
                        Some((&tree, _)) => Stage::Packing { tree, key: Vec::new() },
                        None => {
                            let from = engine.pool.blocks.in_use();
                            let mut pages = engine.pool.pages_behind(from);
                            pages.reverse();
                            engine.checkpointer.move_page_map_from(from);
                            Stage::Moving { pages, from }
                        }
                    };
                }
                Stage::Moving { pages, from } => match pages.pop() {
                    Some((_, page)) => {
                        let stripe = SHARED_STRIPE + shard::thread_shard();
                        let change_guard = engine.pool.enter(stripe);
                        let moved = engine.pool.relocate(&change_guard, page, *from)?;
                        done += 2 * u64::from(moved);
                    }
                    None => {
                        let counters = &engine.checkpointer.counters;
                        let checkpoints = counters.completed.load(Ordering::Relaxed);
                        self.stage = Stage::Idle { checkpoints };
                    }
                },
            }
        }
        Ok(())
    }
}

impl Engine {
    /// Returns whether leaves are sparse or the file has large gaps.
    fn is_compaction_due(&self) -> bool {
        let used = self.pool.blocks.in_use();
        let end = self.pool.blocks.at_used_end(|end| end);
        if end < LEAST_BLOCKS {
            return false;
        }
        if end.saturating_sub(used) > end / HOLE_SHARE {
            return true;
        }
        let trees: Vec<Tree> = self.trees.read().values().copied().collect();
        let mut numbers = Statistics::default();
        sample_trees(&self.pool, &trees, &mut numbers);
        numbers.leaf_fill < SPARSE_FILL
    }
}
