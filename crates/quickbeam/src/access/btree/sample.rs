//! Estimates of a tree's size and of key positions, from descents to a few leaves. For query
//! planning, not for exact counts.
//!
//! Above: estimates for planners, statistics. Below: the descent.
//!
//! The estimates assume that all children of an inner page, and all leaves of the tree, have about
//! as many records each.

use std::cell::Cell;

use super::Tree;
use crate::buffer::{Pool, ReadGuard};
use crate::error::Result;

/// A leaf reached by descending along a fraction of the tree.
struct Sample<'p> {
    leaf: ReadGuard<'p>,
    /// The rest of the fraction (0 to 1), within the leaf.
    left: f64,
    /// Estimated number of leaves.
    leaves: f64,
}

/// Estimated depth and size of a tree, and the fill of the sampled leaf.
pub struct LeafSample {
    /// Levels of the tree.
    pub depth: usize,
    /// Bytes of the leaf's records.
    pub used_bytes: usize,
    /// Estimated number of records.
    pub records: f64,
    /// Estimated number of leaves.
    pub leaves: f64,
}

impl Tree {
    /// Returns the leaf at the fraction `fraction` (0 to 1) of the tree.
    fn leaf_at_fraction<'p>(&self, pool: &'p Pool, fraction: f64) -> Result<Sample<'p>> {
        let state = Cell::new((fraction, 1.0));
        let child_of = |node: &ReadGuard<'_>| {
            let (left, leaves) = if node.id == self.root { (fraction, 1.0) } else { state.get() };
            let children = node.page.count() + 1;
            let at = left * children as f64;
            state.set((at.fract(), leaves * children as f64));
            node.page.child_at((at as usize).min(children - 1))
        };
        let (_, leaf) = self.descend(pool, 0, child_of)?;
        let (left, leaves) = state.get();
        Ok(Sample { leaf, left, leaves })
    }

    /// Samples the leaf at the fraction `fraction` (0 to 1) of the tree.
    pub fn sample(&self, pool: &Pool, fraction: f64) -> Result<LeafSample> {
        let depth = usize::from(pool.read(self.root)?.page.level()) + 1;
        let Sample { leaf, leaves, .. } = self.leaf_at_fraction(pool, fraction)?;
        let records = leaves * leaf.page.count() as f64;
        Ok(LeafSample { depth, used_bytes: leaf.page.used_bytes(), records, leaves })
    }

    /// Returns the stored key of the record at the fraction `fraction` (0 to 1) of the tree, or
    /// `None` if that leaf is empty.
    pub fn key_at_fraction(&self, pool: &Pool, fraction: f64) -> Result<Option<Vec<u8>>> {
        loop {
            let Sample { leaf, left, .. } = self.leaf_at_fraction(pool, fraction)?;
            let count = leaf.page.count();
            let position = ((left * count as f64) as usize).min(count.saturating_sub(1));
            let key = (count > 0).then(|| leaf.page.key(position));
            if leaf.validate() {
                return Ok(key);
            }
        }
    }

    /// Estimates the fraction (0 to 1) of the records that precede `key`.
    pub fn fraction_before(&self, pool: &Pool, key: &[u8]) -> Result<f64> {
        let fraction = Cell::new((0.0, 1.0));
        let step = |position: usize, places: usize| {
            let (before, width) = fraction.get();
            let part = width / places.max(1) as f64;
            fraction.set((before + part * position as f64, part));
        };
        let child_of = |node: &ReadGuard<'_>| {
            if node.id == self.root {
                fraction.set((0.0, 1.0));
            }
            let position = node.page.search(key).map_or_else(|at| at, |at| at + 1);
            step(position, node.page.count() + 1);
            node.page.child_at(position)
        };
        let (_, leaf) = self.descend(pool, 0, child_of)?;
        step(leaf.page.search(key).unwrap_or_else(|at| at), leaf.page.count());
        Ok(fraction.get().0)
    }
}
