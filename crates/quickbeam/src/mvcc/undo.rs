//! A transaction that changed something: its state and its undo entries.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::locks::{Mutex, MutexGuard};

use super::committed_undo::{CommittedEntry, CommittedUndo, allocated};
use super::{ENTRIES_PER_ID, Timestamp, TransactionId, version_word};
use crate::page::PageId;

/// Where a writing transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// Running, committing or rolling back.
    Active,
    /// Rolled back; its records are as if it had never been.
    Aborted,
    /// Committed with that timestamp.
    Committed(Timestamp),
}

/// Work that waits until no snapshot can see what a transaction replaced or deleted.
#[derive(Debug)]
pub enum DeferredTask {
    /// Remove dead records from the leaf of this key.
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

/// What a record was before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// False: there was no record.
    pub present: bool,
    /// The record's flags.
    pub flags: u8,
    /// The record's version word.
    pub version: u64,
}

/// One change: which record, and what it was before.
#[derive(Clone, Copy, Debug)]
pub struct UndoEntry {
    /// The tree's number.
    pub tree: u32,
    /// What the record was.
    pub before: Before,
    key_at: usize,
    key_length: u32,
    value_length: u32,
}

#[derive(Default)]
struct Undo {
    entries: Vec<UndoEntry>,
    bytes: Vec<u8>,
    /// The ids taken after the first, for every [`ENTRIES_PER_ID`] entries one.
    more_ids: Vec<TransactionId>,
}

/// Undo memory larger than this is not kept for another transaction.
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

/// What a transaction has deferred. Most defer nothing: then nobody need take the lock to know that.
#[derive(Default)]
pub struct DeferredTasks {
    work: Mutex<Vec<DeferredTask>>,
    /// There may be some. Set by the transaction itself, before it commits.
    any: AtomicBool,
}

impl DeferredTasks {
    /// Defers one more piece of work.
    pub fn push(&self, work: DeferredTask) {
        self.lock().push(work);
    }

    /// All of them, to be changed.
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

    /// How many there are.
    pub fn count(&self) -> usize {
        if self.any.load(Ordering::Acquire) { self.work.lock().len() } else { 0 }
    }
}

/// A writing transaction as others see it.
#[derive(Default)]
pub struct TransactionRecord {
    id: TransactionId,
    state: AtomicU64,
    undo: Mutex<Undo>,
    /// Work for after the commit is visible to all.
    pub deferred: DeferredTasks,
    /// Overflow chains that this transaction made: to be freed if it never commits.
    pub new_chains: Mutex<Vec<PageId>>,
    /// Where in the log the first piece of a large transaction is, or the end of time.
    first_piece: AtomicU64,
    /// Somebody waits for the end of this transaction.
    pub waited_for: AtomicBool,
}

const ABORTED: u64 = 1;

impl TransactionRecord {
    pub(super) fn new(id: TransactionId) -> TransactionRecord {
        let mut writer = TransactionRecord::default();
        writer.begin(id);
        writer
    }

    /// Begins as a writer of that id; nothing of an earlier one is left but memory, see [`forget`](Self::forget).
    pub(super) fn begin(&mut self, id: TransactionId) {
        self.id = id;
        self.state = AtomicU64::new(0);
        self.first_piece = AtomicU64::new(u64::MAX);
        self.waited_for = AtomicBool::new(false);
    }

    /// The first id.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Where the transaction stands.
    #[inline]
    pub fn state(&self) -> TransactionState {
        match self.state.load(Ordering::Acquire) {
            0 => TransactionState::Active,
            ABORTED => TransactionState::Aborted,
            committed => TransactionState::Committed(committed >> 1),
        }
    }

    /// Makes every change visible at once.
    pub fn set_committed(&self, timestamp: Timestamp) {
        self.state.store(timestamp << 1, Ordering::SeqCst);
    }

    /// Notes that a piece of the transaction goes to the log at `lsn`.
    pub fn note_piece(&self, lsn: u64) {
        self.first_piece.fetch_min(lsn, Ordering::Relaxed);
    }

    /// Where the first piece is; the end of time when there is none.
    pub fn first_piece(&self) -> u64 {
        self.first_piece.load(Ordering::Relaxed)
    }

    pub(super) fn set_aborted(&self) {
        self.state.store(ABORTED, Ordering::SeqCst);
    }

    /// IntField of undo entries; a savepoint is such a number.
    pub fn entries(&self) -> usize {
        self.undo.lock().entries.len()
    }

    /// Bytes of memory taken, that of undo entries above all.
    pub fn undo_bytes(&self) -> usize {
        let undo = self.undo.lock();
        allocated(size_of::<TransactionRecord>())
            + allocated(undo.bytes.capacity())
            + allocated(undo.entries.capacity() * size_of::<UndoEntry>())
            + allocated(undo.more_ids.capacity() * size_of::<TransactionId>())
    }

    /// Adds an entry and returns its version word; `None` when another id has to be taken first.
    #[inline]
    pub fn push(
        &self,
        tree: u32,
        key: &[u8],
        before: Before,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Option<u64> {
        let mut undo = self.undo.lock();
        let number = undo.entries.len();
        let id = undo.id(self.id, number)?;
        let key_at = undo.bytes.len();
        undo.bytes.extend_from_slice(key);
        fill(&mut undo.bytes);
        let entry = UndoEntry {
            tree,
            before,
            key_at,
            key_length: key.len() as u32,
            value_length: (undo.bytes.len() - key_at - key.len()) as u32,
        };
        undo.entries.push(entry);
        Some(version_word(id, number % ENTRIES_PER_ID))
    }

    pub(super) fn add_id(&self, id: TransactionId) {
        self.undo.lock().more_ids.push(id);
    }

    pub(super) fn ids(&self) -> Vec<TransactionId> {
        let undo = self.undo.lock();
        std::iter::once(self.id).chain(undo.more_ids.iter().copied()).collect()
    }

    /// The number of the first undo entry that has that id.
    pub(super) fn base_of(&self, id: TransactionId) -> usize {
        if id == self.id {
            return 0;
        }
        let at = self.undo.lock().more_ids.iter().position(|&other| other == id);
        at.map_or(0, |at| (at + 1) * ENTRIES_PER_ID)
    }

    /// The newest id.
    pub(super) fn last_id(&self) -> TransactionId {
        self.undo.lock().more_ids.last().copied().unwrap_or(self.id)
    }

    /// The entries under that id, of a transaction that committed at `timestamp`; `None` if there are none.
    pub(super) fn past(&self, id: TransactionId, timestamp: Timestamp) -> Option<CommittedUndo> {
        let base = self.base_of(id);
        let undo = self.undo.lock();
        let entries = undo.entries.get(base..)?;
        let entries = entries.get(..ENTRIES_PER_ID).unwrap_or(entries);
        let past_entry = |entry: &UndoEntry| {
            let at = entry.key_at + entry.key_length as usize;
            let value = undo.bytes.get(at..at + entry.value_length as usize)?;
            Some(CommittedEntry { before: entry.before, value })
        };
        (!entries.is_empty()).then(|| CommittedUndo::new(timestamp, entries.iter().map(past_entry)))
    }

    /// Forgets everything, of a writer that nobody knows any more; whether its memory is fit for another.
    pub(super) fn forget(&mut self) -> bool {
        let undo = self.undo.get_mut();
        undo.entries.clear();
        undo.bytes.clear();
        undo.more_ids.clear();
        self.new_chains.get_mut().clear();
        self.deferred.clear();
        undo.bytes.capacity() <= KEPT_UNDO_BYTES
    }

    /// What the record was before entry `number`, its value appended to `value`; `None` if there is no such entry.
    pub fn before(&self, number: usize, value: &mut Vec<u8>) -> Option<Before> {
        let undo = self.undo.lock();
        let entry = undo.entries.get(number)?;
        let at = entry.key_at + entry.key_length as usize;
        value.extend_from_slice(undo.bytes.get(at..at + entry.value_length as usize)?);
        Some(entry.before)
    }

    /// What the record was before entry `number`, without its value.
    pub fn replaced(&self, number: usize) -> Option<Before> {
        self.undo.lock().entries.get(number).map(|entry| entry.before)
    }

    /// Entry `number` with its key and old value.
    pub fn entry(&self, number: usize) -> Option<(UndoEntry, Vec<u8>, Vec<u8>)> {
        let undo = self.undo.lock();
        let entry = *undo.entries.get(number)?;
        let at = entry.key_at + entry.key_length as usize;
        let key = undo.bytes.get(entry.key_at..at)?.to_vec();
        let value = undo.bytes.get(at..at + entry.value_length as usize)?.to_vec();
        Some((entry, key, value))
    }

    /// Forgets the entries from `number` on, whose records have been put back (VER-3).
    pub fn truncate(&self, number: usize) {
        let mut undo = self.undo.lock();
        if let Some(entry) = undo.entries.get(number) {
            let bytes = entry.key_at;
            undo.bytes.truncate(bytes);
            undo.entries.truncate(number);
        }
    }
}
