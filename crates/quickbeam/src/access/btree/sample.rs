//! How much there is in a tree, and where: judged by the way down to a few leaves. For planning, not for counting.
//!
//! Above: estimates for planners, statistics. Below: the walk down the tree.
//!
//! - SAMPLE-1: children of a node, and leaves of the tree, are taken to have about as many records each.

use std::cell::Cell;

use super::Tree;
use crate::buffer::{Pool, ReadGuard};
use crate::error::Result;

/// A leaf that a part of the way through the tree led to.
struct Sample<'p> {
    leaf: ReadGuard<'p>,
    /// What is left of the way (0 to 1) in the leaf.
    left: f64,
    /// About how many leaves there are, judged by the way down.
    leaves: f64,
}

/// Depth and size of a tree, judged by the way down to one of its leaves, and how full that leaf is.
pub struct LeafSample {
    /// Levels of the tree.
    pub depth: usize,
    /// Bytes that records take in the leaf.
    pub used_bytes: usize,
    /// About how many leaves the tree has.
    pub leaves: f64,
}

impl Tree {
    /// The leaf that lies at `way` (0 to 1) between the first and the last.
    fn leaf_at<'p>(&self, pool: &'p Pool, way: f64) -> Result<Sample<'p>> {
        let state = Cell::new((way, 1.0));
        let child_of = |node: &ReadGuard<'_>| {
            let (left, leaves) = if node.id == self.root { (way, 1.0) } else { state.get() };
            let children = node.page.count() + 1;
            let at = left * children as f64;
            state.set((at.fract(), leaves * children as f64));
            node.page.child_at((at as usize).min(children - 1))
        };
        let (_, leaf) = self.walk(pool, 0, child_of)?;
        let (left, leaves) = state.get();
        Ok(Sample { leaf, left, leaves })
    }

    /// Looks at the leaf that lies at `way` (0 to 1) between the first and the last.
    pub fn sample(&self, pool: &Pool, way: f64) -> Result<LeafSample> {
        let depth = usize::from(pool.read(self.root)?.page.level()) + 1;
        let Sample { leaf, leaves, .. } = self.leaf_at(pool, way)?;
        Ok(LeafSample { depth, used_bytes: leaf.page.used_bytes(), leaves })
    }

    /// About how many records there are, judged by the way down to the leaf that lies at `way` (0 to 1) between the first and the last.
    pub fn estimate(&self, pool: &Pool, way: f64) -> Result<f64> {
        let Sample { leaf, leaves, .. } = self.leaf_at(pool, way)?;
        Ok(leaves * leaf.page.count() as f64)
    }

    /// The key, as it is stored, of the record that lies at `way` (0 to 1) between the first and the last; none where a leaf is empty.
    pub fn key_at(&self, pool: &Pool, way: f64) -> Result<Option<Vec<u8>>> {
        loop {
            let Sample { leaf, left, .. } = self.leaf_at(pool, way)?;
            let count = leaf.page.count();
            let position = ((left * count as f64) as usize).min(count.saturating_sub(1));
            let key = (count > 0).then(|| leaf.page.key(position));
            if leaf.validate() {
                return Ok(key);
            }
        }
    }

    /// How far `key` is (0 to 1) from the first to the last record, judged by the way down to its leaf.
    pub fn way_to(&self, pool: &Pool, key: &[u8]) -> Result<f64> {
        let way = Cell::new((0.0, 1.0));
        let step = |position: usize, places: usize| {
            let (way_before, width) = way.get();
            let part = width / places.max(1) as f64;
            way.set((way_before + part * position as f64, part));
        };
        let child_of = |node: &ReadGuard<'_>| {
            if node.id == self.root {
                way.set((0.0, 1.0));
            }
            let position = node.page.search(key).map_or_else(|at| at, |at| at + 1);
            step(position, node.page.count() + 1);
            node.page.child_at(position)
        };
        let (_, leaf) = self.walk(pool, 0, child_of)?;
        step(leaf.page.search(key).unwrap_or_else(|at| at), leaf.page.count());
        Ok(way.get().0)
    }
}
