//! The transaction table: running transactions, and committed ones that some snapshot may not
//! include.
//!
//! Above: transactions, buffer pool, checkpoint. Below: transaction records, snapshots, the wait
//! graph, events of the VFS.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::sync::locks::{Mutex, RwLock};
use crossbeam_utils::CachePadded;

use super::database_locks::DatabaseLocks;
use super::garbage_collection::GarbageCollector;
use super::undo::committed::CommittedUndo;
use super::undo::spill::{SpillFile, SpillPlace, UndoSpill};
use super::undo::{Before, DeferredTask, TransactionRecord, TransactionState};
use super::{Snapshots, Timestamp, TransactionId, WaitGraph, entry_of, writer_of};
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::vfs::{Event, Vfs};

const SHARDS: usize = 16;
const EVENTS: usize = 16;

/// How often an interruptible waiter checks for an interruption.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(10);

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    Aborted,
}

/// The deferred tasks that a thread takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSize {
    /// All tasks.
    Any,
    /// Tasks other than freeing a whole tree.
    Small,
}

/// Whether overflow chains replaced by unfinished transactions count as dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacedChains {
    Included,
    Excluded,
}

/// How long a transaction waits for another one.
#[derive(Clone, Copy)]
pub struct WaitOptions<'a> {
    /// Maximum waiting time.
    pub timeout: Duration,
    /// The wait ends when this flag is set.
    pub interrupt: Option<&'a std::sync::atomic::AtomicBool>,
}

/// A hasher for transaction ids, which are consecutive numbers and so need little hashing.
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// The table's entry for a transaction id.
pub(super) enum Known {
    /// A transaction that is unfinished, or finished recently.
    Running(Arc<TransactionRecord>),
    /// A committed transaction.
    CommittedUndo(CommittedUndo),
    /// A committed transaction whose undo entries are in a file, from `at` on.
    SpilledUndo { at: u32, timestamp: Timestamp, file: Arc<SpillFile> },
}

/// An environment may have millions of ids.
const _: () = assert!(size_of::<Known>() <= 24);

pub(super) type Ids = HashMap<TransactionId, Known, BuildHasherDefault<IdHasher>>;

/// The ids of unfinished transactions, each with its record and the number of its first entry. The
/// order is the same in every simulation run, because the last reference to a record removes files.
pub type ActiveTransactions =
    HashMap<TransactionId, (Arc<TransactionRecord>, usize), BuildHasherDefault<IdHasher>>;

/// The result of looking up a transaction id.
pub enum Found {
    /// The transaction record, and the number of its first entry under that id.
    Running(Arc<TransactionRecord>, usize),
    /// It committed at that timestamp.
    CommittedUndo(Timestamp),
}

/// One step along a version chain.
enum Hop {
    /// The version is visible.
    Visible,
    /// It was committed after the snapshot; the version before it.
    Committed(Before),
    /// It was committed after the snapshot; where the version before it is.
    Spilled(SpillPlace),
    /// Its transaction is unfinished; the version before it.
    Unfinished(Before),
    /// The table does not contain its transaction.
    Unknown,
    /// The entry was removed.
    Again,
}

/// The version of a record that a snapshot sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// The version in the page.
    InPage,
    /// An older version with these flags; its value was appended to the output.
    Older { flags: u8 },
    /// None: the snapshot sees no record.
    Absent,
    /// A version before the committed change with this version word, which the snapshot does not
    /// include. [`TransactionTable::resolve_hidden`] finds it once the page has been validated.
    Hidden { version: u64 },
    /// The change was rolled back meanwhile: the caller must read the page again.
    Again,
}

impl From<Before> for Resolved {
    fn from(before: Before) -> Resolved {
        if before.present { Resolved::Older { flags: before.flags } } else { Resolved::Absent }
    }
}

/// Transactions by id, the horizon, snapshots and waits.
pub struct TransactionTable {
    /// Every lower id belongs to a commit that all snapshots include (VER-1).
    pub(super) horizon: CachePadded<AtomicU64>,
    /// Timestamp of the newest commit.
    pub newest_commit: CachePadded<AtomicU64>,
    /// The snapshots in use.
    pub snapshots: Snapshots,
    /// The wait graph.
    pub waits: WaitGraph,
    /// Databases that are locked against writes.
    pub database_locks: DatabaseLocks,
    shards: [RwLock<Ids>; SHARDS],
    pub(super) order: Mutex<Order>,
    /// Merges versions that no snapshot separates; locked meanwhile.
    pub(super) collector: Mutex<GarbageCollector>,
    /// Number of sealed ids, and bytes of memory of their entries.
    pub(super) past_ids: AtomicUsize,
    pub(super) past_bytes: AtomicUsize,
    /// Where undo entries beyond their memory go.
    pub spill: UndoSpill,
    ready: Mutex<VecDeque<DeferredTask>>,
    /// Number of ready tasks.
    ready_count: AtomicUsize,
    /// Chains being freed: a checkpoint must name them until they are freed.
    freeing: Mutex<Vec<u64>>,
    events: Vec<Arc<dyn Event>>,
}

/// All transaction ids from the horizon on, in order.
#[derive(Default)]
pub(super) struct Order {
    pub next: TransactionId,
    /// The newest ids, without gaps, with their transaction records.
    pub recent: VecDeque<(TransactionId, Arc<TransactionRecord>)>,
    /// Older ids of unfinished transactions.
    pub stragglers: BTreeMap<TransactionId, Arc<TransactionRecord>>,
    /// Older ids of committed transactions that are not yet kept as [`CommittedUndo`].
    pub unsealed: VecDeque<(TransactionId, Arc<TransactionRecord>)>,
    /// Tasks deferred by commits whose ids are no longer recent, by timestamp, each with the newest
    /// id of its transaction.
    pub deferred: BTreeMap<Timestamp, (TransactionId, Vec<DeferredTask>)>,
    /// Dropped trees that no snapshot sees, each with the first id that did not exist when the last
    /// snapshot ended. A transaction with an earlier id may have uncommitted changes in the tree: a
    /// read committed transaction that wrote to it before the drop committed, and whose snapshot
    /// was refreshed since. The tree may be freed once the horizon has reached that id.
    pub dropped: VecDeque<(TransactionId, DeferredTask)>,
    /// Unused transaction records, whose memory is reused.
    pub spare: Vec<Arc<TransactionRecord>>,
}

impl Order {
    /// Returns the oldest of the recent ids.
    pub fn first_recent(&self) -> TransactionId {
        self.recent.front().map_or(self.next, |(id, _)| *id)
    }
}

impl TransactionTable {
    pub fn new(vfs: &dyn Vfs, spill: UndoSpill) -> TransactionTable {
        TransactionTable { spill, ..TransactionTable::with_snapshots(vfs, Snapshots::new()) }
    }

    /// Creates a table with these slots for snapshots, which keeps all undo entries in memory.
    pub fn with_snapshots(vfs: &dyn Vfs, snapshots: Snapshots) -> TransactionTable {
        TransactionTable {
            horizon: CachePadded::new(AtomicU64::new(1)),
            newest_commit: CachePadded::new(AtomicU64::new(0)),
            snapshots,
            waits: WaitGraph::default(),
            database_locks: DatabaseLocks::default(),
            shards: Default::default(),
            order: Mutex::new(Order { next: 1, ..Order::default() }),
            collector: Mutex::default(),
            past_ids: AtomicUsize::new(0),
            past_bytes: AtomicUsize::new(0),
            spill: UndoSpill::never(),
            ready: Mutex::default(),
            ready_count: AtomicUsize::new(0),
            freeing: Mutex::default(),
            events: (0..EVENTS).map(|_| vfs.event()).collect(),
        }
    }

    pub(super) fn shard(&self, id: TransactionId) -> &RwLock<Ids> {
        &self.shards[id as usize % SHARDS]
    }

    pub(super) fn shards(&self) -> &[RwLock<Ids>] {
        &self.shards
    }

    /// Returns whether the version word belongs to a commit that every snapshot includes.
    #[inline]
    pub fn is_visible_to_all(&self, version: u64) -> bool {
        writer_of(version) < self.horizon.load(Ordering::Acquire)
    }

    /// Returns the first transaction id that may not be visible to all (VER-1).
    #[inline]
    pub fn horizon(&self) -> TransactionId {
        self.horizon.load(Ordering::SeqCst)
    }

    /// Registers the transaction of a snapshot slot before its first change.
    pub fn begin_writer(&self, slot: usize) -> Arc<TransactionRecord> {
        let mut order = self.order.lock();
        let id = order.next;
        order.next += 1;
        invariant!(VER_1, id >= self.horizon(), "transaction id {id} is below the horizon");
        let mut writer = order.spare.pop().unwrap_or_default();
        match Arc::get_mut(&mut writer) {
            Some(writer) => writer.begin(id, slot),
            None => writer = Arc::new(TransactionRecord::new(id, slot)),
        }
        order.recent.push_back((id, writer.clone()));
        self.shard(id).write().insert(id, Known::Running(writer.clone()));
        writer
    }

    /// Makes room for more undo entries of the transaction: begins another chunk of entries, or
    /// assigns another id.
    #[cold]
    pub fn make_room_for_undo(&self, writer: &Arc<TransactionRecord>) {
        if writer.roll_chunk(&self.spill) {
            return;
        }
        let mut order = self.order.lock();
        let id = order.next;
        order.next += 1;
        writer.add_id(id);
        order.recent.push_back((id, writer.clone()));
        self.shard(id).write().insert(id, Known::Running(writer.clone()));
    }

    /// Returns the entry of a transaction id, if there is one.
    pub fn lookup(&self, id: TransactionId) -> Option<Found> {
        let writer = match self.shard(id).read().get(&id)? {
            Known::Running(writer) => writer.clone(),
            Known::CommittedUndo(past) => return Some(Found::CommittedUndo(past.timestamp())),
            Known::SpilledUndo { timestamp, .. } => {
                return Some(Found::CommittedUndo(*timestamp));
            }
        };
        let base = writer.base_of(id);
        Some(Found::Running(writer, base))
    }

    /// Returns the entry of the newest version's transaction, or `None` if the version is visible
    /// to all.
    pub fn writer_of_version(&self, version: u64) -> Option<Found> {
        if self.is_visible_to_all(version) {
            return None;
        }
        self.lookup(writer_of(version))
    }

    /// Returns the version of a record that a snapshot sees, from the version word in its page. The
    /// caller must validate the page afterwards in every case: until then the word may be torn or
    /// its transaction rolled back.
    ///
    /// Skips changes of unfinished transactions only. A committed change after the snapshot ends
    /// the search: older versions no longer depend on the page, and may be far back in the chain.
    pub fn resolve(
        &self,
        mut version: u64,
        snapshot: Timestamp,
        own: Option<TransactionId>,
        value: &mut Vec<u8>,
    ) -> Result<Resolved> {
        let start = value.len();
        let mut seen = Resolved::InPage;
        // VER-5.
        let horizon = self.horizon();
        loop {
            let before = match self.hop(version, snapshot, own, start, value)? {
                Hop::Visible => return Ok(seen),
                // A page never names an entry that was merged into a newer one. So its transaction
                // rolled back, or is visible to all by now.
                Hop::Unknown if seen == Resolved::InPage => return Ok(seen),
                Hop::Unknown if writer_of(version) < horizon => return Ok(seen),
                Hop::Unknown | Hop::Again => return Ok(Resolved::Again),
                Hop::Committed(_) | Hop::Spilled(_) => {
                    value.truncate(start);
                    return Ok(Resolved::Hidden { version });
                }
                Hop::Unfinished(before) => before,
            };
            seen = before.into();
            version = before.version;
            if version == 0 {
                return Ok(seen);
            }
        }
    }

    /// Examines one version for a snapshot. If it is hidden, the older value replaces `value` from
    /// `start` on.
    fn hop(
        &self,
        version: u64,
        snapshot: Timestamp,
        own: Option<TransactionId>,
        start: usize,
        value: &mut Vec<u8>,
    ) -> Result<Hop> {
        let id = writer_of(version);
        let shard = self.shard(id).read();
        let writer = match shard.get(&id) {
            None => return Ok(Hop::Unknown),
            Some(Known::CommittedUndo(past)) if is_included(past.timestamp(), snapshot) => {
                return Ok(Hop::Visible);
            }
            Some(Known::CommittedUndo(past)) => {
                let Some(entry) = past.entry(entry_of(version)) else { return Ok(Hop::Again) };
                value.truncate(start);
                value.extend_from_slice(entry.value);
                return Ok(Hop::Committed(entry.before));
            }
            Some(Known::SpilledUndo { timestamp, .. })
                if is_included(*timestamp, snapshot) || planted(Canary::SpilledForgotten) =>
            {
                return Ok(Hop::Visible);
            }
            Some(Known::SpilledUndo { at, file, .. }) => {
                return Ok(Hop::Spilled(SpillPlace { file: file.clone(), at: *at }));
            }
            Some(Known::Running(writer)) => writer.clone(),
        };
        drop(shard);
        let hidden: fn(Before) -> Hop = match writer.state() {
            TransactionState::Committed(timestamp) if is_included(timestamp, snapshot) => {
                return Ok(Hop::Visible);
            }
            TransactionState::Committed(_) => Hop::Committed,
            TransactionState::Active | TransactionState::Aborted if own == Some(writer.id()) => {
                return Ok(Hop::Visible);
            }
            TransactionState::Active | TransactionState::Aborted => Hop::Unfinished,
        };
        value.truncate(start);
        let before = writer.before(writer.base_of(id) + entry_of(version), value)?;
        Ok(before.map_or(Hop::Again, hidden))
    }

    /// Returns the version that a snapshot in use sees before a committed change that it does not
    /// include. Needs no page: the entries of committed transactions change only by merging, and
    /// the snapshot keeps the version that it sees (VER-2, VER-4). Returns `None` if the entry was
    /// merged into a newer change, so that the page must be read again.
    pub fn resolve_hidden(
        &self,
        version: u64,
        snapshot: Timestamp,
        value: &mut Vec<u8>,
    ) -> Result<Option<Resolved>> {
        let start = value.len();
        loop {
            match self.follow_hidden(version, snapshot, start, value)? {
                Hidden::Found(resolved) => return Ok(Some(resolved)),
                Hidden::Gone => return Ok(None),
                // A later entry was merged into the one before it, which now leads past it.
                Hidden::Merged => {}
            }
        }
    }

    fn follow_hidden(
        &self,
        version: u64,
        snapshot: Timestamp,
        start: usize,
        value: &mut Vec<u8>,
    ) -> Result<Hidden> {
        let mut at = version;
        let mut seen = None;
        // VER-5.
        let horizon = self.horizon();
        loop {
            let mut hop = self.hop(at, snapshot, None, start, value)?;
            if let Hop::Spilled(place) = hop {
                let before = place.read(entry_of(at), start, value)?;
                hop = before.map_or(Hop::Again, Hop::Committed);
            }
            let before = match (hop, seen) {
                (Hop::Visible, Some(seen)) => return Ok(Hidden::Found(seen)),
                (Hop::Unknown, Some(seen)) if writer_of(at) < horizon => {
                    return Ok(Hidden::Found(seen));
                }
                (Hop::Unknown | Hop::Again | Hop::Spilled(_), Some(_)) => {
                    return Ok(Hidden::Merged);
                }
                (Hop::Visible | Hop::Unknown | Hop::Again | Hop::Spilled(_), None) => {
                    return Ok(Hidden::Gone);
                }
                (Hop::Committed(before) | Hop::Unfinished(before), _) => before,
            };
            at = before.version;
            if at == 0 {
                return Ok(Hidden::Found(before.into()));
            }
            seen = Some(before.into());
        }
    }

    /// Goes back in a version chain past the changes of all transactions for which `hidden` returns
    /// a record.
    pub fn resolve_with(
        &self,
        mut version: u64,
        start: usize,
        value: &mut Vec<u8>,
        hidden: impl Fn(&TransactionTable, TransactionId) -> Option<(Arc<TransactionRecord>, usize)>,
    ) -> Result<Resolved> {
        let mut seen = Resolved::InPage;
        loop {
            let Some((writer, base)) = hidden(self, writer_of(version)) else { return Ok(seen) };
            value.truncate(start);
            let Some(before) = writer.before(base + entry_of(version), value)? else {
                return Ok(Resolved::Again);
            };
            seen = before.into();
            version = before.version;
            if version == 0 {
                return Ok(seen);
            }
        }
    }

    /// Ends a transaction and wakes its waiters. The records of an aborted one are already
    /// restored.
    pub fn finish(&self, writer: Arc<TransactionRecord>, outcome: Outcome) {
        if outcome == Outcome::Aborted {
            writer.deferred.lock().clear();
            self.change_ready(|ready| {
                let chains = std::mem::take(&mut *writer.new_chains.lock());
                ready.extend(chains.into_iter().map(DeferredTask::FreeChain));
            });
            for id in writer.ids() {
                self.shard(id).write().remove(&id);
            }
            writer.set_aborted();
        }
        self.database_locks.release(&writer);
        if writer.waited_for.load(Ordering::SeqCst) {
            self.event_of(&writer).notify();
        }
        self.end(writer);
    }

    /// Takes one ready task of that size.
    pub fn take_ready(&self, size: TaskSize) -> Option<DeferredTask> {
        self.change_ready(|ready| {
            let light = |work: &DeferredTask| !is_tree(work);
            let at =
                if size == TaskSize::Any { 0 } else { ready.iter().take(8).position(light)? };
            let work = ready.remove(at)?;
            self.freeing.lock().extend(chain_of(&work));
            Some(work)
        })
    }

    /// Records that these chains are being freed; called under the guard that unlinked them.
    pub fn begin_freeing(&self, chains: &[u64]) {
        self.freeing.lock().extend(chains);
    }

    /// Records that the pages of a chain from `first` up to, not including, `next` are freed; all
    /// of them if `next` is 0. Called under the guard that freed them. Removes only one entry. The
    /// freed page may already begin another chain that is also being freed and waits for the
    /// quiesce latch, and a checkpoint must name that chain. Returns false if the chain was not
    /// being freed.
    pub fn freed(&self, first: u64, next: u64) -> bool {
        let mut freeing = self.freeing.lock();
        let Some(at) = freeing.iter().position(|&other| other == first) else { return false };
        match next {
            0 => drop(freeing.swap_remove(at)),
            next => freeing[at] = next,
        }
        true
    }

    /// Returns a task that could not be done now to the ready queue, or adds a new one.
    pub fn put_back(&self, work: DeferredTask) {
        self.change_ready(|ready| {
            if let Some(chain) = chain_of(&work) {
                self.freed(chain, 0);
            }
            ready.push_back(work);
        });
    }

    /// Returns the number of ready tasks.
    pub fn ready_count(&self) -> usize {
        self.ready_count.load(Ordering::Acquire)
    }

    /// Changes the ready queue and publishes its length, so that checking for tasks takes no lock.
    pub(super) fn change_ready<T>(
        &self,
        change: impl FnOnce(&mut VecDeque<DeferredTask>) -> T,
    ) -> T {
        let mut ready = self.ready.lock();
        let done = change(&mut ready);
        self.ready_count.store(ready.len(), Ordering::Release);
        done
    }

    /// Returns the chains that wait to be freed and that no image taken now refers to. A
    /// checkpoint still refers to chains replaced by unfinished transactions.
    pub fn dead_chains(&self, replaced: ReplacedChains) -> Vec<u64> {
        // All locks are held together, in the order in which chains move from one list to the next:
        // no chain is missed or counted twice.
        let order = self.order.lock();
        let ready = self.ready.lock();
        let mut chains: Vec<u64> = ready.iter().filter_map(chain_of).collect();
        chains.extend(self.freeing.lock().iter());
        chains.extend(order.deferred.values().flat_map(|(_, work)| work).filter_map(chain_of));
        for writer in order.writers() {
            let committed = matches!(writer.state(), TransactionState::Committed(_));
            if committed || replaced == ReplacedChains::Included {
                chains.extend(writer.deferred.lock().iter().filter_map(chain_of));
            }
            if !committed {
                chains.extend(writer.new_chains.lock().iter());
            }
        }
        chains
    }

    fn event_of(&self, writer: &TransactionRecord) -> &Arc<dyn Event> {
        &self.events[writer.id() as usize % EVENTS]
    }

    /// Waits until `other` has finished. Fails on a deadlock, lock timeout or interruption.
    pub fn wait_for(
        &self,
        vfs: &dyn Vfs,
        own: Option<TransactionId>,
        other: &Arc<TransactionRecord>,
        patience: WaitOptions<'_>,
    ) -> Result<()> {
        let start = vfs.now();
        let _edge = self.waits.add(own, other.id(), start)?;
        let event = self.event_of(other);
        loop {
            let generation = event.generation();
            // The fence orders the store before the load of the state. A finishing transaction
            // stores its state and then loads `waited_for`: one of the two sees the other.
            other.waited_for.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if other.state() != TransactionState::Active {
                return Ok(());
            }
            let waited = vfs.now().saturating_sub(start);
            let left = patience.timeout.checked_sub(waited).filter(|left| !left.is_zero());
            let Some(mut left) = left else {
                return Err(crate::Error::LockTimeout { waited_ms: waited.as_millis() as u64 });
            };
            if let Some(interrupt) = patience.interrupt {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(crate::Error::Interrupted);
                }
                left = left.min(INTERRUPT_INTERVAL);
            }
            event.wait(generation, Some(left));
        }
    }
}

fn is_tree(work: &DeferredTask) -> bool {
    matches!(work, DeferredTask::FreeTree(_))
}

/// Returns whether a snapshot includes the commit with that timestamp.
fn is_included(timestamp: Timestamp, snapshot: Timestamp) -> bool {
    timestamp <= snapshot.saturating_add(u64::from(planted(Canary::SnapshotWrong)))
}

/// How the search before a committed change ended.
enum Hidden {
    Found(Resolved),
    /// The first entry was removed.
    Gone,
    /// A later entry was removed.
    Merged,
}

fn chain_of(work: &DeferredTask) -> Option<u64> {
    match work {
        DeferredTask::FreeChain(page) => Some(*page),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::MemoryVfs;

    /// A page freed with its chain can begin another chain before the first thread has reported the
    /// end. Both chains have the same number. The end of one must not hide the other from the next
    /// checkpoint, which would otherwise keep its pages forever.
    #[test]
    fn freed_chain_does_not_hide_another_of_the_same_number() {
        let transactions = TransactionTable::with_snapshots(&MemoryVfs::new(), Snapshots::new());
        let defer = || transactions.ready.lock().push_back(DeferredTask::FreeChain(7));
        let take = || {
            assert!(matches!(
                transactions.take_ready(TaskSize::Any),
                Some(DeferredTask::FreeChain(7))
            ))
        };
        defer();
        take();
        // The first thread has freed the pages; meanwhile another thread has used, replaced and
        // taken page 7.
        defer();
        take();
        transactions.freed(7, 0);
        assert_eq!(transactions.dead_chains(ReplacedChains::Excluded), [7]);
        transactions.freed(7, 0);
        assert_eq!(transactions.dead_chains(ReplacedChains::Excluded), [] as [u64; 0]);
    }
}
