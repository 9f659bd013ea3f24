//! Who changed a record, and what it was before: the memory of running and recent transactions.
//!
//! Above: buffer pool (images of pages without uncommitted changes) and transactions (visibility). Below: nothing
//! but the seam. A leaf record's *version word* names the change that made it: writer id and number of that
//! writer's undo entry. The entry holds what the record was before and that one's own version word, and so on.
//!
//! - VER-1: a writer id below the horizon, or one that the registry no longer knows, belongs to a transaction
//!   that committed and is visible to every snapshot. Aborted writers put their records back *before* they leave
//!   the registry.
//! - VER-2: a committed writer leaves the registry when its commit timestamp is not past any snapshot in use, or when
//!   nothing of it is left to be seen (VER-4). The horizon passes ids of the first kind before they leave.
//! - VER-3: undo entries of an unfinished transaction are only appended to, or cut off by a rollback that has already put the
//!   records back. After that only what no snapshot sees is taken out (VER-4).
//! - VER-4: between two committed versions that no snapshot in use tells apart, the older one's entry replaces what the newer
//!   one's entry says, and is taken out. No page names an entry taken out: a chain that leads to one has changed meanwhile.
//! - VER-5: a reader that follows a chain reads the horizon before the first entry. The horizon also passes transactions whose
//!   entries were all taken out. A word that leads to an unknown transaction is visible to all only if it is below that
//!   horizon; otherwise the reader starts over at the newest version.
//!
//! Sources: undo in memory beside in-place newest versions as in HyPer and Umbra (Neumann et al., "Fast Serializable
//! Multi-Version Concurrency Control for Main-Memory Database Systems", 2015).

mod committed_undo;
mod deadlock;
mod horizon;
mod snapshots;
mod transaction_table;
mod undo;
mod version_merge;

pub use deadlock::WaitGraph;
pub use snapshots::Snapshots;
pub use transaction_table::{Found, Resolved, TransactionTable, WaitOptions};
pub use undo::{Before, DeferredTask, TransactionRecord, TransactionState, UndoEntry};

/// Position in the commit order; 0 is before every commit.
pub type Timestamp = u64;

/// IntField of a writing transaction, or of a stretch of its undo entries. Zero is none.
pub type TransactionId = u64;

/// Undo entries that one writer id can name; a larger transaction takes several ids.
pub const ENTRIES_PER_ID: usize = 1 << 16;

/// Packs a version word.
#[inline]
pub fn version_word(writer: TransactionId, entry: usize) -> u64 {
    writer << 16 | entry as u64
}

/// The writer of a version word.
#[inline]
pub fn writer_of(version: u64) -> TransactionId {
    version >> 16
}

/// The number of the undo entry within its writer id.
#[inline]
pub fn entry_of(version: u64) -> usize {
    version as usize & (ENTRIES_PER_ID - 1)
}
