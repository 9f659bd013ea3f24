//! Reclaiming: removing dead records and freeing overflow chains and dropped trees, once no snapshot needs them.
//!
//! Above: commits, the background thread and checkpoints, which call [`Engine::run_deferred`]. Below: the registry, which
//! says what may go, the trees and the pool.
//!
//! - RECLAIM-1: a page to be freed is, in every checkpoint, either reached from a tree or named as part of a dead chain.
//!   The pass that unlinks it or frees a part of its chain also tells the registry.
//! - RECLAIM-2: one pass frees one page of a tree, or up to [`CHAIN_SLICE`] pages of a chain, and reads nothing from the
//!   device: changes by others wait no longer than that.

use super::Engine;
use crate::access::overflow::{chain_slice, free_pages};
use crate::buffer::SHARED_LANE;
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::mvcc::DeferredTask;
use crate::page::PageId;
use crate::sync::shard;
use crate::transaction::purge_leaf;

/// Pages of a chain that are freed in one pass.
const CHAIN_SLICE: usize = 64;

impl Engine {
    /// Does up to `limit` pieces of work. Only a caller that asks for all of it frees whole trees.
    pub fn run_deferred(&self, limit: usize) -> Result<()> {
        if limit == usize::MAX {
            self.registry.advance_fully();
        }
        if self.registry.ready_count() == 0 {
            return Ok(());
        }
        // The transaction's own lane, if there was one, went back with its snapshot.
        let lane = SHARED_LANE + shard::thread_shard();
        for _ in 0..limit.min(1 << 40) {
            let Some(work) = self.registry.take_ready(limit == usize::MAX) else { break };
            self.do_or_put_back(lane, work)?;
        }
        Ok(())
    }

    /// Does one piece of work. On an error what is left of it waits for the next try.
    fn do_or_put_back(&self, lane: usize, mut work: DeferredTask) -> Result<()> {
        let done = self.do_work(lane, &mut work);
        if done.is_err() {
            self.registry.put_back(work);
        }
        done
    }

    /// Does one piece of work. On an error `work` is what is left of it.
    fn do_work(&self, lane: usize, work: &mut DeferredTask) -> Result<()> {
        match work {
            DeferredTask::Purge { tree, key } => {
                let freeing = self.freeing_trees.read();
                if let Some(tree) = self.tree(*tree).filter(|tree| !freeing.contains(&tree.id)) {
                    purge_leaf(&self.pool, lane, tree, key)?;
                }
                Ok(())
            }
            DeferredTask::FreeChain(first) => self.free_chain(lane, first),
            DeferredTask::FreeTree(id) => self.free_tree(lane, *id),
        }
    }

    /// Frees a chain that the registry counts as being freed. A slice of its pages goes in one pass, and the registry
    /// names the rest before that pass ends, so that a checkpoint finds each page either freed or named. The pages
    /// are looked up before the pass: loading them may take long.
    fn free_chain(&self, lane: usize, first: &mut PageId) -> Result<()> {
        while *first != 0 {
            if planted(Canary::ChainLeaked) {
                self.registry.freed(*first, 0);
                return Ok(());
            }
            let (pages, next) = chain_slice(&self.pool, *first, CHAIN_SLICE)?;
            let pass = self.pool.enter(lane);
            free_pages(&self.pool, &pass, &pages)?;
            self.registry.freed(*first, next);
            *first = next;
        }
        Ok(())
    }

    /// Frees every page of a tree and the chains of its records.
    fn free_tree(&self, lane: usize, id: u32) -> Result<()> {
        self.freeing_trees.write().insert(id);
        if let Some(tree) = self.tree(id) {
            let mut gone = false;
            while !gone {
                let mut chains = Vec::new();
                gone = tree.free_last(&self.pool, lane, |unlinked, is_root| {
                    self.registry.begin_freeing(unlinked);
                    chains.extend_from_slice(unlinked);
                    if is_root {
                        self.trees.write().remove(&id);
                    }
                })?;
                let free = |chain| self.do_or_put_back(lane, DeferredTask::FreeChain(chain));
                // Each chain is freed or put back, whatever becomes of the others.
                let freed: Vec<Result<()>> = chains.into_iter().map(free).collect();
                freed.into_iter().collect::<Result<()>>()?;
            }
            self.directories.lock().remove(&id);
        }
        self.freeing_trees.write().remove(&id);
        Ok(())
    }
}
