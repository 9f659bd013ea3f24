//! Transaction records: the state, undo entries and deferred tasks of a writing transaction.
//!
//! Above: the transaction table, transactions. Below: chunks of undo entries.

mod chunks;
pub(super) mod committed;
pub(super) mod spill;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::locks::{Mutex, MutexGuard};

use chunks::UndoChunks;
use committed::{CommittedEntry, CommittedUndo, CommittedUndoEncoder, allocated};
use spill::UndoSpill;

use super::{ENTRIES_PER_ID, Timestamp, TransactionId, version_word};
use crate::error::Result;
use crate::page::PageId;

pub use committed::Before;

/// The state of a writing transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// Running, committing or rolling back.
    Active,
    /// Rolled back; its records are restored.
    Aborted,
    /// Committed with that timestamp.
    Committed(Timestamp),
}

/// A task that is deferred until no snapshot can see the versions that a transaction replaced or
/// deleted.
#[derive(Debug)]
pub enum DeferredTask {
    /// Remove tombstones from the leaf of this key.
    Purge {
        /// The tree's number.
        tree: u32,
        /// A key of the leaf.
        key: Vec<u8>,
    },
    /// Free the overflow chain that begins with this page.
    FreeChain(PageId),
    /// Free every page of this tree.
    FreeTree(u32),
}

/// A record before a change.
#[derive(Debug)]
pub struct ReplacedRecord {
    /// The tree's number.
    pub tree: u32,
    /// The older version.
    pub before: Before,
    pub key: Vec<u8>,
    /// The older value.
    pub value: Vec<u8>,
}

#[derive(Default)]
struct Undo {
    entries: UndoChunks,
    /// The ids after the first, one for every [`ENTRIES_PER_ID`] entries.
    more_ids: Vec<TransactionId>,
}

/// Larger undo memory is not kept for another transaction.
const KEPT_UNDO_BYTES: usize = 64 << 10;

impl Undo {
    fn id(&self, first: TransactionId, number: usize) -> Option<TransactionId> {
        match number / ENTRIES_PER_ID {
            0 => Some(first),
            later => self.more_ids.get(later - 1).copied(),
        }
    }
}

/// Deferred tasks for which a reused transaction record keeps memory.
const KEPT_TASKS: usize = 256;

/// The deferred tasks of a transaction. Most transactions have none, which is checked without the
/// lock.
#[derive(Default)]
pub struct DeferredTasks {
    work: Mutex<Vec<DeferredTask>>,
    /// There may be tasks. Set by the transaction itself, before it commits.
    any: AtomicBool,
}

impl DeferredTasks {
    /// Adds a task.
    pub fn push(&self, work: DeferredTask) {
        self.lock().push(work);
    }

    /// Locks the tasks for changing them.
    pub fn lock(&self) -> MutexGuard<'_, Vec<DeferredTask>> {
        self.any.store(true, Ordering::Release);
        self.work.lock()
    }

    fn clear(&mut self) {
        let work = self.work.get_mut();
        work.clear();
        work.shrink_to(KEPT_TASKS);
        self.any = AtomicBool::new(false);
    }

    /// Returns the number of tasks.
    pub fn count(&self) -> usize {
        if self.any.load(Ordering::Acquire) { self.work.lock().len() } else { 0 }
    }
}

/// The record of a writing transaction, as other threads see it.
#[derive(Default)]
pub struct TransactionRecord {
    id: TransactionId,
    /// The snapshot slot of the transaction.
    slot: usize,
    state: AtomicU64,
    undo: Mutex<Undo>,
    /// Tasks for when the commit is visible to all.
    pub deferred: DeferredTasks,
    /// Overflow chains that this transaction wrote, which are freed if it aborts.
    pub new_chains: Mutex<Vec<PageId>>,
    /// Log position of the first fragment of a large transaction, or `u64::MAX`.
    first_fragment: AtomicU64,
    /// Another transaction waits for the end of this one.
    pub waited_for: AtomicBool,
}

const ABORTED: u64 = 1;

impl TransactionRecord {
    pub(super) fn new(id: TransactionId, slot: usize) -> TransactionRecord {
        let mut writer = TransactionRecord::default();
        writer.begin(id, slot);
        writer
    }

    /// Initializes the record for that id. Only memory of an earlier transaction is reused, see
    /// [`forget`](Self::forget).
    pub(super) fn begin(&mut self, id: TransactionId, slot: usize) {
        self.id = id;
        self.slot = slot;
        self.state = AtomicU64::new(0);
        self.first_fragment = AtomicU64::new(u64::MAX);
        self.waited_for = AtomicBool::new(false);
    }

    /// Returns the first id.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Returns the snapshot slot of the transaction.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the transaction's state.
    #[inline]
    pub fn state(&self) -> TransactionState {
        match self.state.load(Ordering::Acquire) {
            0 => TransactionState::Active,
            ABORTED => TransactionState::Aborted,
            committed => TransactionState::Committed(committed >> 1),
        }
    }

    /// Commits: makes all changes visible at once.
    pub fn set_committed(&self, timestamp: Timestamp) {
        self.state.store(timestamp << 1, Ordering::SeqCst);
    }

    /// Records that a fragment of the transaction is written to the log at `lsn`.
    pub fn note_fragment(&self, lsn: u64) {
        self.first_fragment.fetch_min(lsn, Ordering::Relaxed);
    }

    /// Returns the log position of the first fragment, or `u64::MAX` if there is none.
    pub fn first_fragment(&self) -> u64 {
        self.first_fragment.load(Ordering::Relaxed)
    }

    pub(super) fn set_aborted(&self) {
        self.state.store(ABORTED, Ordering::SeqCst);
    }

    /// Returns the number of undo entries, which serves as a savepoint.
    pub fn entries(&self) -> usize {
        self.undo.lock().entries.count()
    }

    /// Returns whether the transaction has changed records of that tree.
    pub fn has_changed(&self, tree: u32) -> bool {
        self.undo.lock().entries.has_changed(tree)
    }

    /// Returns the bytes of memory in use, mostly for undo entries.
    pub fn undo_bytes(&self) -> usize {
        let undo = self.undo.lock();
        allocated(size_of::<TransactionRecord>())
            + undo.entries.allocated()
            + allocated(undo.more_ids.capacity() * size_of::<TransactionId>())
    }

    /// Returns the bytes of undo entries in the transaction's file.
    pub(super) fn spilled_bytes(&self) -> u64 {
        self.undo.lock().entries.file_bytes()
    }

    /// Adds an entry and returns its version word. Returns `None` if there is no room for it:
    /// [`TransactionTable::make_room_for_undo`](super::TransactionTable::make_room_for_undo) helps.
    #[inline]
    pub fn push(
        &self,
        tree: u32,
        key: &[u8],
        before: Before,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Option<u64> {
        invariant!(
            VER_3,
            self.state() == TransactionState::Active,
            "transaction {} has ended and changes a record",
            self.id
        );
        let mut undo = self.undo.lock();
        if undo.entries.is_full() {
            return None;
        }
        let number = undo.entries.count();
        let id = undo.id(self.id, number)?;
        undo.entries.push(tree, key, before, fill);
        Some(version_word(id, number % ENTRIES_PER_ID))
    }

    /// Begins another chunk of entries if the current one is full. Returns whether it did.
    pub(super) fn roll_chunk(&self, spill: &UndoSpill) -> bool {
        let mut undo = self.undo.lock();
        let is_full = undo.entries.is_full();
        if is_full {
            undo.entries.roll(spill);
        }
        is_full
    }

    pub(super) fn add_id(&self, id: TransactionId) {
        self.undo.lock().more_ids.push(id);
    }

    pub(super) fn ids(&self) -> Vec<TransactionId> {
        let undo = self.undo.lock();
        std::iter::once(self.id).chain(undo.more_ids.iter().copied()).collect()
    }

    /// Returns the number of the first undo entry under that id.
    pub(super) fn base_of(&self, id: TransactionId) -> usize {
        if id == self.id {
            return 0;
        }
        let at = self.undo.lock().more_ids.iter().position(|&other| other == id);
        at.map_or(0, |at| (at + 1) * ENTRIES_PER_ID)
    }

    /// Returns the newest id.
    pub(super) fn last_id(&self) -> TransactionId {
        self.undo.lock().more_ids.last().copied().unwrap_or(self.id)
    }

    /// Encodes the entries under that id of a transaction that committed at `timestamp`. Returns
    /// `None` if there are none.
    pub(super) fn past(
        &self,
        id: TransactionId,
        timestamp: Timestamp,
    ) -> Result<Option<CommittedUndo>> {
        let base = self.base_of(id);
        let undo = self.undo.lock();
        let end = undo.entries.count().min(base + ENTRIES_PER_ID);
        if end <= base {
            return Ok(None);
        }
        let mut encoder = CommittedUndoEncoder::new(timestamp, end - base);
        undo.entries.visit(base..end, |entry, value| {
            encoder.push(Some(CommittedEntry { before: entry.before, value }));
        })?;
        Ok(Some(encoder.finish()))
    }

    /// Clears a record that no other thread refers to. Returns whether its memory should be reused.
    pub(super) fn forget(&mut self) -> bool {
        let undo = self.undo.get_mut();
        let kept_bytes = undo.entries.clear();
        undo.more_ids.clear();
        self.new_chains.get_mut().clear();
        self.deferred.clear();
        kept_bytes <= KEPT_UNDO_BYTES
    }

    /// Appends the older value of entry `number` to `value` and returns the older version. Returns
    /// `None` if there is no such entry.
    pub fn before(&self, number: usize, value: &mut Vec<u8>) -> Result<Option<Before>> {
        self.undo.lock().entries.with(number, |entry, _, older| {
            value.extend_from_slice(older);
            entry.before
        })
    }

    /// Returns the older version of entry `number`, without its value.
    pub fn replaced(&self, number: usize) -> Result<Option<Before>> {
        self.undo.lock().entries.with(number, |entry, _, _| entry.before)
    }

    /// Returns entry `number` with its key and older value.
    pub fn entry(&self, number: usize) -> Result<Option<ReplacedRecord>> {
        self.undo.lock().entries.with(number, |entry, key, value| ReplacedRecord {
            tree: entry.tree,
            before: entry.before,
            key: key.to_vec(),
            value: value.to_vec(),
        })
    }

    /// Brings the newest entries into memory. Returns the number of the first of them.
    pub fn take_back(&self) -> Result<usize> {
        self.undo.lock().entries.take_back()
    }

    /// Removes the entries from `number` on, whose records are restored (VER-3).
    pub fn truncate(&self, number: usize) {
        invariant!(
            VER_3,
            self.state() == TransactionState::Active,
            "transaction {} has ended and rolls back",
            self.id
        );
        self.undo.lock().entries.truncate(number);
    }
}
