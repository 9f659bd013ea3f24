//! Multi-version concurrency control: the changes of running and recent transactions, and the
//! versions before them.
//!
//! Above: buffer pool (images of pages without uncommitted changes) and transactions (visibility).
//! Below: the VFS only. A leaf record's *version word* names its last change: the transaction id
//! and the number of that transaction's undo entry. The entry holds the older version of the record
//! with its own version word, and so on.
//!
//! - VER-1: a transaction id below the horizon, or one that the transaction table no longer
//!   contains, belongs to a transaction that committed and is visible to every snapshot. An aborted
//!   transaction restores its records *before* it leaves the table.
//! - VER-2: a committed transaction leaves the table when every snapshot in use includes its
//!   commit, or when all of its entries were merged (VER-4). In the first case the horizon passes
//!   its ids before they leave.
//! - VER-3: undo entries of an unfinished transaction are only appended, or truncated by a rollback
//!   that has already restored the records. After the commit, only entries that no snapshot sees
//!   are removed (VER-4).
//! - VER-4: if no snapshot in use separates two committed versions, the older one's entry replaces
//!   the content of the newer one's entry, and is removed. No page names a removed entry: a chain
//!   that leads to one has changed meanwhile.
//! - VER-5: the horizon never moves back. A reader that follows a chain reads it before the first
//!   entry. The horizon also passes transactions whose entries were all removed. A version word of
//!   an unknown transaction is visible to all only if it is below that horizon; otherwise the
//!   reader starts over at the newest version.
//!
//! Sources: undo in memory next to in-place newest versions as in HyPer and Umbra (Neumann et al.,
//! "Fast Serializable Multi-Version Concurrency Control for Main-Memory Database Systems", 2015).

mod census;
mod database_locks;
mod deadlock;
mod garbage_collection;
mod horizon;
mod snapshots;
mod spilling;
mod transaction_table;
mod undo;

pub use census::OpenTransaction;
pub use database_locks::WriteLock;
pub use deadlock::WaitGraph;
pub use snapshots::Snapshots;
pub use transaction_table::{
    ActiveTransactions, Found, Outcome, ReplacedChains, Resolved, TaskSize, TransactionTable,
    WaitOptions,
};
pub use undo::spill::UndoSpill;
pub use undo::{Before, DeferredTask, ReplacedRecord, TransactionRecord, TransactionState};

/// Position in the commit order; 0 is before every commit.
pub type Timestamp = u64;

/// Number of a writing transaction, or of a range of its undo entries. Zero means none.
pub type TransactionId = u64;

/// Maximum number of undo entries that one transaction id can name; a larger transaction takes
/// several ids.
pub const ENTRIES_PER_ID: usize = 1 << 16;

/// Encodes a version word.
#[inline]
pub fn version_word(writer: TransactionId, entry: usize) -> u64 {
    writer << 16 | entry as u64
}

/// Returns the transaction id of a version word.
#[inline]
pub fn writer_of(version: u64) -> TransactionId {
    version >> 16
}

/// Returns the number of the undo entry within its transaction id.
#[inline]
pub fn entry_of(version: u64) -> usize {
    version as usize & (ENTRIES_PER_ID - 1)
}
