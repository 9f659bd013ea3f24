//! Access methods: how records are found by key.
//!
//! Above: transactions and the data store, which decide what is visible. Below: the buffer pool. A second method, a
//! hash index, will stand beside [`btree`] and keep the same leaf records, so that versions, log and checkpoints serve both.

pub mod btree;
pub mod overflow;
