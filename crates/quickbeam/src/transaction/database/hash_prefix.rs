//! Bucket prefixes of a hash database ([`AccessMethod::HashPrefix`]): a scan reads the records of
//! one prefix as a range.
//!
//! Above: users with several records for one value, such as an index. Below: scans, and the
//! directory that locates a prefix's first leaf.

use super::{Database, ReadTransaction, Scan};
use crate::access::btree::Tree;
use crate::access::hash::{hash_of, hash_prefix_bounds, hashed_part};
use crate::error::{Error, Result};
use crate::options::AccessMethod;
use crate::page::PageId;
use crate::transaction::DatabaseUse;
use crate::transaction::Transaction;

impl Database {
    /// See `query_layer::DatabaseExt::estimate_hash_prefix`.
    pub(crate) fn estimate_hash_prefix(
        &self,
        transaction: &impl ReadTransaction,
        prefix: &[u8],
    ) -> Result<f64> {
        let transaction = transaction.as_transaction();
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        check_hash_prefix(tree)?;
        let (mut low, mut high) = (prefix.to_vec(), Vec::new());
        let (_, is_bounded) = hash_prefix_bounds(&mut low, &mut high);
        let pool = &transaction.engine().pool;
        let end = if is_bounded { tree.fraction_before(pool, &high) } else { Ok(1.0) };
        let share = end.and_then(|end| Ok((end - tree.fraction_before(pool, &low)?).max(0.0)));
        transaction.unless_expired(share)
    }

    /// See `query_layer::DatabaseExt::hash_of`.
    #[must_use]
    pub(crate) fn hash_of(&self, key: &[u8]) -> u32 {
        match self.access_method() {
            AccessMethod::BTree => 0,
            method => hash_of(hashed_part(method, key)),
        }
    }

    /// Turns a scan of a bucket prefix into a scan of stored keys and sets the transaction's leaf
    /// hint to the prefix's first leaf. Returns the prefix's hash value and that leaf.
    pub(super) fn seek_bucket(
        &self,
        transaction: &Transaction,
        tree: Tree,
        scan: &mut Scan,
    ) -> Result<(u32, PageId)> {
        check_hash_prefix(tree)?;
        let hash = scan.set_bucket_bounds();
        Ok((hash, self.hint_bucket_leaf(transaction, tree, hash)))
    }
}

fn check_hash_prefix(tree: Tree) -> Result<()> {
    match tree.method {
        AccessMethod::HashPrefix => Ok(()),
        method => Err(Error::misuse(format!("a {method} database has no bucket prefixes"))),
    }
}
