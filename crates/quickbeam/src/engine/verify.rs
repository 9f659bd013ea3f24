//! Verification of everything that is stored.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use serde::Serialize;

use super::Engine;
use crate::access::btree::Tree;
use crate::access::overflow::chain_pages;
use crate::blocks::Location;
use crate::buffer::Pool;
use crate::catalog::CATALOG_TREE;
use crate::checkpoint::Locations;
use crate::error::Result;
use crate::mvcc::ReplacedChains;
use crate::page::Scratch;

/// The result of [`Environment::verify`](crate::Environment::verify): counts and complaints.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Databases, without the catalog.
    pub databases: usize,
    /// Records in them.
    pub records: u64,
    /// Pages in use.
    pub pages: u64,
    /// Levels of the deepest tree.
    pub depth: usize,
    /// Share of leaf space that records use, from 0 to 1.
    pub leaf_fill: f64,
    /// Page images of the last checkpoint that verification read.
    pub images: u64,
    /// Log records after that checkpoint that verification read.
    pub log_records: u64,
    /// Faults found; empty if there are none.
    pub complaints: Vec<String>,
}

/// How often blocks are counted before a difference becomes a complaint.
const ACCOUNTING_ATTEMPTS: usize = 100;

/// Walks all trees, accounts for every page, and reads every image of the last checkpoint.
/// `freeing` lists trees that are being freed, `dead` chains that wait to be freed. The caller
/// excludes changes.
pub fn verify_pages(
    pool: &Pool,
    locations: &Locations<'_>,
    trees: &[Tree],
    freeing: &[Tree],
    dead: &[u64],
) -> VerifyReport {
    let mut report = VerifyReport::default();
    let mut seen = HashSet::new();
    let (mut leaf_bytes, mut leaves) = (0, 0);
    let whole = trees.iter().map(|tree| (tree, false));
    for (tree, shrinks) in whole.chain(freeing.iter().map(|tree| (tree, true))) {
        let census = tree.census(pool, &mut seen, shrinks);
        if tree.id != CATALOG_TREE && !shrinks {
            report.databases += 1;
            report.records += census.records;
        }
        report.depth = report.depth.max(census.depth);
        leaf_bytes += census.leaf_bytes;
        leaves += census.leaf_pages;
        let named = census.complaints.into_iter().map(|what| format!("tree {}: {what}", tree.id));
        report.complaints.extend(named);
    }
    for &chain in dead {
        match chain_pages(pool, chain) {
            Ok(pages) => seen.extend(pages),
            Err(error) => report.complaints.push(format!("chain to be freed: {error}")),
        }
    }
    report.leaf_fill = leaf_bytes as f64 / (leaves * pool.page_size as u64).max(1) as f64;
    report.pages = seen.len() as u64;
    let carried: HashMap<u64, Location> =
        locations.carried.into_iter().flatten().copied().collect();
    for page in 1..pool.page_count() {
        if pool.is_allocated(page) != seen.contains(&page) {
            let what = if pool.is_allocated(page) { "is reached from nowhere" } else { "is free" };
            report.complaints.push(format!("page {page} {what}"));
        }
        let image = carried.get(&page).or(locations.mapping.get(page as usize));
        let image = image.copied().unwrap_or(Location::NONE);
        if let Some(what) = pool.unlike_checkpoint(page, image) {
            report.complaints.push(format!("page {page} {what}"));
        }
    }
    read_back(pool, locations.mapping, &mut report);
    let mut blocks = HashSet::new();
    let all = locations.chunks.iter().chain(locations.directory).chain(locations.mapping);
    for location in all.filter(|location| **location != Location::NONE) {
        if !blocks.insert(location.block()) {
            report.complaints.push(format!("block {} is claimed twice", location.block()));
        }
    }
    if let Some(carried) = locations.carried {
        blocks.extend(carried.iter().map(|(_, location)| location.block()));
        account_for_blocks(pool, &blocks, &mut report);
    }
    report
}

/// Finds used blocks that neither a checkpoint nor an evicted page needs. Counts several times,
/// because pages may be evicted during a count.
fn account_for_blocks(pool: &Pool, checkpoint: &HashSet<u64>, report: &mut VerifyReport) {
    let mut lost = 0;
    for _ in 0..ACCOUNTING_ATTEMPTS {
        let before = pool.blocks.in_use_for_images();
        let pages = (1..pool.page_count()).map(|page| pool.location(page));
        let mut needed: HashSet<u64> = pages.map(Location::block).collect();
        needed.extend(checkpoint);
        needed.remove(&Location::NONE.block());
        lost = before.saturating_sub(needed.len() as u64);
        if lost == 0 {
            return;
        }
        pool.vfs.yield_now();
    }
    report.complaints.push(format!("{lost} blocks are in use for nothing"));
}

fn read_back(pool: &Pool, mapping: &[Location], report: &mut VerifyReport) {
    for (page, &location) in mapping.iter().enumerate() {
        if location == Location::NONE {
            continue;
        }
        report.images += 1;
        let read = Scratch::with(pool.page_size, |scratch| {
            pool.read_location(page as u64, location, scratch)
        });
        if let Err(error) = read {
            report.complaints.push(error.to_string());
        }
    }
}

impl Engine {
    pub fn verify(&self) -> Result<VerifyReport> {
        self.check_open()?;
        self.run_deferred(usize::MAX)?;
        // Take the checkpointer's lock first; its owner may close the gate.
        let report = self.checkpointer.inspect(|locations| {
            // Before the gate closes: the holder of this lock may wait at the gate.
            let freeing = self.freeing_trees.read().clone();
            let mut report = self.pool.close_for(|| {
                let mut dead = self.transactions.dead_chains(ReplacedChains::Included);
                dead.sort_unstable();
                dead.dedup();
                let all = self.trees.read();
                let (freeing, trees): (Vec<Tree>, Vec<Tree>) =
                    all.values().copied().partition(|tree| freeing.contains(&tree.id));
                verify_pages(&self.pool, locations, &trees, &freeing, &dead)
            });
            if let Some(log) = &self.log {
                let from = self.checkpointer.counters.log_position.load(Ordering::Relaxed);
                match log.read_back(from) {
                    Ok(records) => report.log_records = records,
                    Err(error) => report.complaints.push(error.to_string()),
                }
            }
            report
        });
        Ok(report)
    }
}
