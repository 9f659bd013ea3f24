//! Quickbeam: an embedded transactional database.
//!
//! Two products over one file format: [`Environment`], a Transactional Data Store with ACID transactions, many readers
//! and writers, and a write-ahead log with group commit; and [`DataStore`], the same trees for one owner without any of that.
//!
//! The modules, in the order of a write: [`Environment`] → transaction → access → pool → (versions) → log; then, later,
//! checkpoint → blocks → world. `ARCHITECTURE.md` follows a read, a write, a commit, a checkpoint and a recovery through them.

mod access;
mod blocks;
mod checkpoint;
mod environment;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod latency;
mod log;
mod options;
mod page;
mod pool;
mod recovery;
mod salvage;
mod store;
mod transaction;
mod versions;
pub mod world;

pub use environment::{DATA_FILE, Environment, LOCK_FILE, LOG_DIRECTORY, Statistics, VerifyReport};
pub use error::{Error, Result};
pub use latency::LatencySummary;
pub use options::{AccessMethod, Durability, Isolation, Options, TransactionOptions};
pub use salvage::{
    LostLog, LostPage, LostRange, LostValue, SalvageReport, SalvagedDatabase, salvage, salvage_in,
};
pub use store::{DataStore, StoreCursor, StoreDatabase};
pub use transaction::{
    Batch, Cursor, Database, Modified, Number, Range, Record, Savepoint, Scan, Transaction, Window,
};
