//! Access methods, which find records by key.
//!
//! Above: transactions and the data store, which decide what is visible. Below: the buffer pool.
//! The B+tree keeps records in key order. The hash method keeps them in a tree ordered by the keys'
//! hash values, with a directory that skips the descent. Both have the same leaves, so versions,
//! log and checkpoints serve both.

pub mod btree;
pub mod hash;
pub mod limits;
pub mod overflow;

/// The direction of a scan or a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Forward,
    Backward,
}

/// Where the search for a neighbouring record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStart {
    /// At the key: a record with the key is the one looked for.
    At,
    /// Beyond the key.
    Beyond,
}
