//! Groups of records of a hash database ([`AccessMethod::HashPrefix`]), which a scan reads as a
//! range.
//!
//! Above: users with several records for one value, such as an index. Below: scans, and the
//! directory that locates a group's first leaf.

use super::{Database, ReadTransaction, Scan};
use crate::access::btree::Tree;
use crate::access::hash::{group_bounds, hash_of, hashed_part};
use crate::error::{Error, Result};
use crate::options::AccessMethod;
use crate::page::PageId;
use crate::transaction::Transaction;

impl Database {
    /// Estimates the share of records in a group of an [`AccessMethod::HashPrefix`] database, from
    /// 0 to 1. Meant for query planning.
    pub fn estimate_group(&self, transaction: &impl ReadTransaction, group: &[u8]) -> Result<f64> {
        let transaction = transaction.as_transaction();
        let tree = self.tree(transaction, false)?;
        check_groups(tree)?;
        let (mut low, mut high) = (group.to_vec(), Vec::new());
        let (_, is_bounded) = group_bounds(&mut low, &mut high);
        let pool = &transaction.inner().pool;
        let end = if is_bounded { tree.way_to(pool, &high) } else { Ok(1.0) };
        let share = end.and_then(|end| Ok((end - tree.way_to(pool, &low)?).max(0.0)));
        transaction.unless_expired(share)
    }

    /// Returns the hash value that orders the key's record, or 0 in a B+tree. Records inserted in
    /// the order of hash value and key fill one leaf after another.
    #[must_use]
    pub fn hash_of(&self, key: &[u8]) -> u32 {
        match self.access_method() {
            AccessMethod::BTree => 0,
            method => hash_of(hashed_part(method, key)),
        }
    }

    /// Turns a scan of a group into a scan of stored keys and sets the transaction's leaf hint to
    /// the group's first leaf. Returns the group's hash value and that leaf.
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
