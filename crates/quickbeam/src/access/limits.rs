//! What keys, values and trees allow.
//!
//! Above: transactions, the data store and recovery.

use super::btree::Tree;
use super::overflow::{POINTER_BYTES, VALUE_LIMIT};
use crate::error::{Error, Result, TooLong};
use crate::options::AccessMethod;
use crate::page::{fits_in_leaf, key_limit};

/// Refuses keys and values that the engine does not store.
pub fn check_limits(page_size: usize, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    let limit = key_limit(page_size);
    if key.len() > limit {
        return Err(Error::KeyTooLong(Box::new(TooLong { length: key.len(), limit })));
    }
    match value {
        Some(value) if value.len() > VALUE_LIMIT => {
            Err(Error::ValueTooLong(Box::new(TooLong { length: value.len(), limit: VALUE_LIMIT })))
        }
        _ => Ok(()),
    }
}

/// Whether a record keeps a value of this length in the leaf.
pub fn fits_inline(page_size: usize, key: &[u8], value_length: usize) -> bool {
    value_length <= POINTER_BYTES || fits_in_leaf(page_size, key.len(), value_length)
}

/// Refuses what needs an order of keys where there is none.
pub fn check_ordered(tree: Tree) -> Result<()> {
    match tree.method {
        AccessMethod::BTree => Ok(()),
        AccessMethod::Hash | AccessMethod::HashPrefix => Err(Error::misuse(
            "a hash database has no order of keys: look a key up with get, or go through all records with first and next",
        )),
    }
}
