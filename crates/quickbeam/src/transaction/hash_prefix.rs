//! Groups of records of a hash database ([`AccessMethod::HashPrefix`]): found at once, read as a range.
//!
//! Above: whoever keeps several records for one value, such as an index. Below: scans, and the directory that leads to a group's
//! first leaf.

use super::{Database, Scan, Transaction};
use crate::access::btree::Tree;
use crate::access::hash::{group_bounds, hash_of, hashed_part};
use crate::error::{Error, Result};
use crate::options::AccessMethod;
use crate::page::PageId;

impl Database {
    /// About what part of the records are in a group of an [`AccessMethod::HashPrefix`] database. For planning.
    pub fn estimate_group(&self, transaction: &Transaction, group: &[u8]) -> Result<f64> {
        let tree = self.tree(transaction, false)?;
        check_groups(tree)?;
        let (mut low, mut high) = (group.to_vec(), Vec::new());
        let (_, is_bounded) = group_bounds(&mut low, &mut high);
        let pool = &transaction.inner().pool;
        let end = if is_bounded { tree.way_to(pool, &high)? } else { 1.0 };
        Ok((end - tree.way_to(pool, &low)?).max(0.0))
    }

    /// The hash value that the record of a key lies by; 0 where records lie by their keys alone. Who inserts many records in the order of
    /// this, and then of their keys, goes from leaf to leaf.
    #[must_use]
    pub fn hash_of(&self, key: &[u8]) -> u32 {
        match self.access_method() {
            AccessMethod::BTree => 0,
            method => hash_of(hashed_part(method, key)),
        }
    }

    /// Makes a scan that was begun with a group one of stored keys, and points the transaction at its first leaf; the group's hash value, and
    /// the leaf.
    pub(super) fn enter_group(
        &self,
        transaction: &Transaction,
        tree: Tree,
        scan: &mut Scan,
    ) -> Result<(u32, PageId)> {
        check_groups(tree)?;
        let hash = scan.bound_by_group();
        Ok((hash, self.aim(transaction, tree, hash)))
    }
}

fn check_groups(tree: Tree) -> Result<()> {
    match tree.method {
        AccessMethod::HashPrefix => Ok(()),
        method => Err(Error::misuse(format!("a {method} database has no groups of records"))),
    }
}
