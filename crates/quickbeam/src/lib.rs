//! Quickbeam: an embedded transactional database.
//!
//! [`Environment`] is a Transactional Data Store: named key/value databases with serializable
//! transactions, many readers and writers, and a write-ahead log with group commit. [`DataStore`]
//! has the same trees for one owner, without transactions and log. The crate `quickbeam-sql` has
//! SQL.
//!
//! ```
//! use quickbeam::{Environment, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! let environment = Environment::open(path, Options::default())?;
//! let accounts = environment.open_or_create_database("accounts")?;
//!
//! // Commits when the closure succeeds; runs it again after a conflict.
//! environment.transact(|transaction| {
//!     let old = accounts.get(transaction, b"alice")?;
//!     let balance = old.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
//!     accounts.put(transaction, b"alice", &(balance + 10).to_be_bytes())
//! })?;
//!
//! // A snapshot never waits for writers and is never aborted.
//! let snapshot = environment.begin_read()?;
//! let mut cursor = accounts.cursor(&snapshot)?;
//! let mut found = cursor.seek(b"a")?;
//! while found {
//!     println!("{:?} {:?}", cursor.key(), cursor.value());
//!     found = cursor.next()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`Transaction`] and [`Database`]: reads, writes, savepoints, commit.
//! - [`Range`] and [`Cursor`]: the records of a range, in order.
//! - [`Options`], [`Durability`], [`Isolation`]: what a commit waits for, what a transaction sees.
//! - [`Error`]: what failed, where, and how to go on; [`Error::is_retryable`].
//! - [`query_layer`]: batches, estimates and statements, for layers such as SQL.
//!
//! All calls block, and a transaction may wait for locks and for the disk. An asynchronous program
//! runs each transaction as a whole in its runtime's thread pool for blocking calls, such as
//! `tokio::task::spawn_blocking`: [`Environment`] and [`Database`] are cheap to clone and may be
//! sent there. `examples/async_tokio.rs` shows it.
//!
//! `docs/limits.md` lists the limits; `ARCHITECTURE.md` and `docs/internals` describe the modules.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

#[macro_use]
mod invariant;

mod access;
mod blocks;
mod buffer;
mod catalog;
mod checkpoint;
mod engine;
mod environment;
mod error;
pub mod failpoints;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod latency;
mod mvcc;
mod options;
mod page;
pub mod query_layer;
mod recovery;
mod salvage;
mod store;
pub mod sync;
mod temporary;
mod transaction;
pub mod typed;
pub mod vfs;
mod wal;

pub use engine::{BackupReport, CompactionReport, Statistics, VerifyReport};
pub use environment::Environment;
pub use error::{
    Corruption, DamagedPlace, Error, ErrorText, ForeignFormat, IoFailure, LockedDirectory,
    Mismatch, NoEnvironment, Result, TooLong,
};
pub use files::{DATA_FILE, LOCK_FILE, LOG_DIRECTORY, SOCKET_FILE};
#[doc(hidden)]
pub use invariant::CHECKS_INVARIANTS;
pub use latency::LatencySummary;
pub use options::{AccessMethod, Durability, Isolation, Options, TransactionOptions, UndoPolicy};
pub use salvage::{
    LostLog, LostPage, LostRange, LostValue, SalvageReport, SalvagedDatabase, salvage, salvage_in,
};
pub use store::{DataStore, StoreCursor, StoreDatabase};
pub use transaction::{
    Cursor, Database, Range, ReadTransaction, Record, Savepoint, Snapshot, Transaction, Updated,
    ValueReader,
};
