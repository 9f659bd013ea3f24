//! How rows are distributed over the values of keys and indexes, judged by samples of them.
//!
//! Above: the planner's statistics. Below: the engine's estimates.

use std::collections::HashMap;

use parking_lot::Mutex;
use quickbeam::query_layer::{DatabaseExt, TreeShape};
use quickbeam::{Database, Transaction};

use super::table_handle::TableHandle;
use crate::error::Result;
use crate::schema::encoding::key_encoding::{KeySpec, prefix_end};

/// Keys looked at. Each costs three ways down a tree.
const SAMPLES: usize = 16;
/// If there is a NULL in all of them, a value has this part of the rows: of the few that may be
/// left, as much as where nothing is known.
const UNSEEN: f64 = 0.05 / SAMPLES as f64;
/// Factor by which the number of rows grows or shrinks before a sample is taken again.
const CHANGED: f64 = 1.5;

/// What was found out about the rows that share the first columns of a key.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    /// About how many rows there were.
    rows: f64,
    part: f64,
}

/// Sampled statistics of a table, by the primary key or an index number, and a number of leading
/// columns.
#[derive(Debug, Default)]
pub struct Samples(Mutex<HashMap<(Option<usize>, usize), Sampled>>);

impl TableHandle {
    /// About how many rows there are.
    pub fn estimated_rows(&self, transaction: &Transaction) -> Result<f64> {
        Ok(self.database().estimate(transaction)?)
    }

    /// Returns the shape of the tree of the rows, or of that of the index with that number.
    pub fn shape(
        &self,
        transaction: &Transaction,
        index: Option<usize>,
    ) -> Result<Option<TreeShape>> {
        let Some((tree, _)) = self.tree_of(index) else { return Ok(None) };
        Ok(Some(tree.shape(transaction)?))
    }

    /// Returns about how many bytes the rows have, or the entries of the index with that number:
    /// the number of records times the size of a few.
    pub fn estimated_size(&self, transaction: &Transaction, index: Option<usize>) -> Result<i64> {
        let Some((tree, _)) = self.tree_of(index) else { return Ok(0) };
        let (mut bytes, mut found) = (0, 0);
        for way in [0.1, 0.5, 0.9] {
            let Some(key) = tree.sample_key(transaction, way)? else { continue };
            let Some(value) = tree.get(transaction, &key)? else { continue };
            bytes += key.len() + value.len();
            found += 1;
        }
        let each = if found == 0 { 0.0 } else { bytes as f64 / f64::from(found) };
        Ok((tree.estimate(transaction)? * each) as i64)
    }

    /// Returns the average fraction of rows for one value of the first `columns` of the primary
    /// key, or of the index with that number. Returns `None` if it cannot be estimated.
    pub fn part_of_each(
        &self,
        transaction: &Transaction,
        index: Option<usize>,
        columns: usize,
    ) -> Option<f64> {
        let rows = self.estimated_rows(transaction).ok()?.max(1.0);
        let known = self.samples.0.lock().get(&(index, columns)).copied();
        if let Some(known) = known
            && rows < known.rows * CHANGED
            && known.rows < rows * CHANGED
        {
            return Some(known.part);
        }
        let (tree, key) = self.tree_of(index)?;
        let part = sampled_part(transaction, tree, key, columns, rows)?;
        self.samples.0.lock().insert((index, columns), Sampled { rows, part });
        Some(part)
    }

    /// The tree of the primary key, or of the index with that number, and how its keys are encoded.
    pub fn tree_of(&self, index: Option<usize>) -> Option<(&Database, &KeySpec)> {
        match index {
            None => Some((self.database(), self.key())),
            Some(number) => self.indexes().get(number).map(|index| (&index.entries, &index.key)),
        }
    }
}

/// A sample finds a value as often as rows have it: the average over the values is the harmonic one
/// over the samples. NULLs, which equal nothing, are left out.
fn sampled_part(
    transaction: &Transaction,
    tree: &Database,
    key: &KeySpec,
    columns: usize,
    rows: f64,
) -> Option<f64> {
    let [from, to] = match key.without_null() {
        None => [0.0, 1.0],
        Some([from, to]) => [
            tree.estimate_before(transaction, from).ok()?,
            tree.estimate_before(transaction, to).ok()?,
        ],
    };
    let (mut found, mut values) = (0.0, 0.0);
    for number in 0..SAMPLES {
        let way = from + (to - from) * (number as f64 + 0.5) / SAMPLES as f64;
        let sample = tree.sample_key(transaction, way).ok()??;
        let Some(value) = key.beginning(&sample, columns).ok()? else { continue };
        let part = part_of_value(transaction, tree, key, value).ok()?;
        found += 1.0;
        values += 1.0 / part.clamp(1.0 / rows, 1.0);
    }
    Some(if found > 0.0 { found / values } else { UNSEEN })
}

/// The part of the entries whose keys begin so.
fn part_of_value(
    transaction: &Transaction,
    tree: &Database,
    key: &KeySpec,
    value: &[u8],
) -> Result<f64> {
    if key.grouped {
        return Ok(tree.estimate_hash_prefix(transaction, value)?);
    }
    let mut end = value.to_vec();
    let end = match prefix_end(&mut end) {
        true => tree.estimate_before(transaction, &end)?,
        false => 1.0,
    };
    Ok(end - tree.estimate_before(transaction, value)?)
}
