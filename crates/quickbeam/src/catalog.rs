//! Records of the catalog, the tree that maps the names of databases to trees.
//!
//! Above: transactions and the data store, which change names, recovery and salvage, which read
//! them. A record is name → number of the tree, and its access method.

use crate::error::{Error, Result};
use crate::options::AccessMethod;

/// Number of the catalog's tree, which maps names to trees.
pub const CATALOG_TREE: u32 = 1;

/// Access method numbers in catalog records.
const BTREE: u8 = 1;
const HASH: u8 = 2;
const HASH_PREFIX: u8 = 3;

/// The catalog record that names a tree.
pub fn encode_catalog_record(tree: u32, method: AccessMethod) -> [u8; 5] {
    let [a, b, c, d] = tree.to_le_bytes();
    let method = match method {
        AccessMethod::BTree => BTREE,
        AccessMethod::Hash => HASH,
        AccessMethod::HashPrefix => HASH_PREFIX,
    };
    [method, a, b, c, d]
}

/// The tree number in a catalog record, and how the tree's records are found.
pub fn decode_catalog_record(record: &[u8]) -> Option<(u32, AccessMethod)> {
    let (&method, number) = record.split_first()?;
    let method = match method {
        BTREE => AccessMethod::BTree,
        HASH => AccessMethod::Hash,
        HASH_PREFIX => AccessMethod::HashPrefix,
        _ => return None,
    };
    Some((u32::from_le_bytes(*number.first_chunk()?), method))
}

/// Refuses what is no name of a database.
pub fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > 255 {
        return Err(Error::misuse("a database name has 1 to 255 bytes"));
    }
    Ok(())
}
