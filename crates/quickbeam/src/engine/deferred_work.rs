//! Deferred work: purges tombstones and frees overflow chains and dropped trees that no snapshot
//! needs.
//!
//! Above: commits, the background thread and checkpoints, which call [`Engine::run_deferred`].
//! Below: the transaction table, which decides what may be freed, the trees and the pool.
//!
//! - RECLAIM-1: every checkpoint reaches a page to be freed from a tree, or lists it in a dead
//!   chain. The pass that unlinks the page, or frees a part of its chain, also updates the
//!   transaction table.
//! - RECLAIM-2: one pass frees one page of a tree, or up to [`CHAIN_SLICE`] pages of a chain, and
//!   reads nothing from the device. A checkpoint waits no longer than that.

use super::Engine;
use crate::access::btree::purge_leaf;
use crate::access::overflow::{chain_slice, free_pages};
use crate::buffer::SHARED_STRIPE;
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::mvcc::{DeferredTask, TaskSize};
use crate::page::PageId;
use crate::sync::shard;

/// Pages of a chain that one pass frees.
const CHAIN_SLICE: usize = 64;

impl Engine {
    /// Runs up to `limit` deferred tasks. Trees are freed only if `limit` is `usize::MAX`.
    pub fn run_deferred(&self, limit: usize) -> Result<()> {
        if limit == usize::MAX {
            self.transactions.advance_fully();
        }
        if self.transactions.ready_count() == 0 {
            return Ok(());
        }
        // A committed transaction's stripe may be in use again: it was released with the snapshot
        // slot.
        let stripe = SHARED_STRIPE + shard::thread_shard();
        for _ in 0..limit.min(1 << 40) {
            let size = if limit == usize::MAX { TaskSize::Any } else { TaskSize::Small };
            let Some(work) = self.transactions.take_ready(size) else { break };
            self.run_or_requeue(stripe, work)?;
        }
        Ok(())
    }

    /// Runs one task. On an error, queues the rest of the task again.
    fn run_or_requeue(&self, stripe: usize, mut work: DeferredTask) -> Result<()> {
        let done = self.run_task(stripe, &mut work);
        if done.is_err() {
            self.transactions.put_back(work);
        }
        done
    }

    /// Runs one task. On an error, `work` is the rest of the task.
    fn run_task(&self, stripe: usize, work: &mut DeferredTask) -> Result<()> {
        match work {
            DeferredTask::Purge { tree, key } => {
                let freeing = self.freeing_trees.read();
                if let Some(tree) = self.tree(*tree).filter(|tree| !freeing.contains(&tree.id)) {
                    purge_leaf(&self.pool, stripe, tree, key)?;
                }
                Ok(())
            }
            DeferredTask::FreeChain(first) => self.free_chain(stripe, first),
            DeferredTask::FreeTree(id) => self.free_tree(stripe, *id),
        }
    }

    /// Frees a chain that the transaction table lists as being freed. Each pass frees a slice of
    /// the pages and lists the rest, so that a checkpoint finds each page either freed or listed
    /// (RECLAIM-1). Pages are loaded before the pass, because that may take long.
    fn free_chain(&self, stripe: usize, first: &mut PageId) -> Result<()> {
        while *first != 0 {
            if planted(Canary::ChainLeaked) {
                self.transactions.freed(*first, 0);
                return Ok(());
            }
            let (pages, next) = chain_slice(&self.pool, *first, CHAIN_SLICE)?;
            invariant!(RECLAIM_2, pages.len() <= CHAIN_SLICE, "{} pages in a pass", pages.len());
            let change_guard = self.pool.enter(stripe);
            free_pages(&self.pool, &change_guard, &pages)?;
            let was_listed = self.transactions.freed(*first, next);
            invariant!(RECLAIM_1, was_listed, "page {first} is freed, and no checkpoint listed it");
            *first = next;
        }
        Ok(())
    }

    /// Frees every page of a tree and the chains of its records.
    fn free_tree(&self, stripe: usize, id: u32) -> Result<()> {
        self.freeing_trees.write().insert(id);
        if let Some(tree) = self.tree(id) {
            let mut gone = false;
            while !gone {
                let mut chains = Vec::new();
                gone = tree.free_last(&self.pool, stripe, |unlinked, is_root| {
                    self.transactions.begin_freeing(unlinked);
                    chains.extend_from_slice(unlinked);
                    if is_root {
                        self.trees.write().remove(&id);
                    }
                })?;
                let free = |chain| self.run_or_requeue(stripe, DeferredTask::FreeChain(chain));
                // Free or queue each chain, even if another one fails.
                let freed: Vec<Result<()>> = chains.into_iter().map(free).collect();
                freed.into_iter().collect::<Result<()>>()?;
            }
            self.directories.lock().remove(&id);
        }
        self.freeing_trees.write().remove(&id);
        Ok(())
    }
}
