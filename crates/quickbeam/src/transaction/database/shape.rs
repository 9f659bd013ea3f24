//! Estimates of a tree's size and fill, for statistics.

use super::{Database, ReadTransaction};
use crate::error::Result;
use crate::transaction::DatabaseUse;

/// What a database takes, estimated from a few of its leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TreeShape {
    /// The number of records.
    pub records: f64,
    /// The levels of the tree, with that of the leaves.
    pub levels: usize,
    /// The number of leaves.
    pub leaves: f64,
    /// The share of a leaf that records use, from 0 to 1.
    pub fill: f64,
}

impl Database {
    /// See `query_layer::DatabaseExt::estimate`.
    pub(crate) fn estimate(&self, transaction: &impl ReadTransaction) -> Result<f64> {
        self.shape(transaction).map(|shape| shape.records)
    }

    /// See `query_layer::DatabaseExt::shape`.
    pub(crate) fn shape(&self, transaction: &impl ReadTransaction) -> Result<TreeShape> {
        let transaction = transaction.as_transaction();
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        let pool = &transaction.engine().pool;
        let mut shape = TreeShape { records: 0.0, levels: 0, leaves: 0.0, fill: 0.0 };
        let fractions = [0.1, 0.5, 0.9];
        for fraction in fractions {
            let sample = transaction.unless_expired(tree.sample(pool, fraction))?;
            shape.levels = shape.levels.max(sample.depth);
            shape.records += sample.records;
            shape.leaves += sample.leaves;
            shape.fill += sample.used_bytes as f64 / pool.page_size as f64;
        }
        for sum in [&mut shape.records, &mut shape.leaves, &mut shape.fill] {
            *sum /= fractions.len() as f64;
        }
        Ok(shape)
    }
}
