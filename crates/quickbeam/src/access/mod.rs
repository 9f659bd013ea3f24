//! Access methods: how records are found by key.
//!
//! Above: transactions and the data store, which decide what is visible. Below: the buffer pool. The B+tree keeps records
//! in the order of their keys; the hash method keeps them in a tree in the order of their keys' hash values, and knows
//! a shorter way to them. So both have the same leaves, and versions, log and checkpoints serve both.

pub mod btree;
pub mod hash;
pub mod overflow;
