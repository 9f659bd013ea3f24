//! The freeze horizon: which transactions every snapshot includes, and the cleanup after the others
//! have ended.
//!
//! Above: the end of a transaction, the background thread. Below: the ids of the transaction table.
//! An old snapshot holds the horizon back, so millions of transaction ids may accumulate above it.
//! Therefore each end of a transaction processes a bounded number of ids, and the background thread
//! the rest.

use std::sync::Arc;

use crate::failpoints::{Canary, planted};
use crate::sync::atomic::Ordering;

use super::garbage_collection::RECENT;
use super::transaction_table::{ActiveTransactions, Known, Order, TransactionTable};
use super::undo::{DeferredTask, TransactionRecord, TransactionState};
use super::{Timestamp, TransactionId};

/// Maximum number of ids that the end of a transaction moves the horizon past.
const IDS_PER_END: usize = 64;
/// Maximum number of ids that the background thread moves the horizon past while it holds the lock.
const IDS_PER_ROUND: usize = 256;
/// Retired transaction records whose memory is kept for reuse.
const SPARE_WRITERS: usize = 64;

impl Order {
    /// Returns the transaction records that are not sealed, each once.
    pub fn writers(&self) -> impl Iterator<Item = &Arc<TransactionRecord>> {
        let recent = self.recent.iter().chain(&self.unsealed).map(|(id, writer)| (id, writer));
        let all = recent.chain(&self.stragglers);
        all.filter(|(id, writer)| **id == writer.id()).map(|(_, writer)| writer)
    }

    /// Keeps the deferred tasks of a committed transaction until every snapshot includes the commit
    /// and the horizon has passed all of its ids.
    pub fn keep_deferred(&mut self, writer: &TransactionRecord) {
        if let TransactionState::Committed(timestamp) = writer.state()
            && writer.deferred.count() > 0
        {
            let work = std::mem::take(&mut *writer.deferred.lock());
            self.deferred.insert(timestamp, (writer.last_id(), work));
        }
    }

    /// Keeps a transaction record's memory for reuse, if no other reference to it exists.
    #[inline]
    pub fn recycle(&mut self, mut writer: Arc<TransactionRecord>) {
        if self.spare.len() < SPARE_WRITERS
            && Arc::get_mut(&mut writer).is_some_and(TransactionRecord::forget)
        {
            self.spare.push(writer);
        }
    }
}

/// Returns whether the horizon may pass a transaction in that state, if every snapshot includes
/// commits up to `mark`.
fn may_pass(state: TransactionState, mark: Timestamp) -> bool {
    match state {
        TransactionState::Active => false,
        TransactionState::Committed(timestamp) => timestamp <= mark,
        TransactionState::Aborted => true,
    }
}

impl TransactionTable {
    /// Processes the end of a transaction, and moves the horizon by a bounded number of ids.
    pub(super) fn end(&self, writer: Arc<TransactionRecord>) {
        let mut order = self.order.lock();
        if !order.stragglers.is_empty() && writer.id() < order.first_recent() {
            end_straggler(&mut order, &writer);
        }
        drop(writer);
        self.advance(&mut order, IDS_PER_END);
        if order.recent.len() > RECENT {
            self.seal_recent(order);
        }
    }

    /// Takes a second slot for the snapshot in `slot`. Returns `None` if the snapshot has expired
    /// or all slots are taken (SNAP-4).
    pub fn copy_snapshot(&self, slot: usize) -> Option<usize> {
        let _order = self.order.lock();
        self.snapshots.copy(slot)
    }

    /// Moves the horizon as far as the snapshots in use allow, in bounded rounds.
    pub fn advance_fully(&self) {
        while self.advance(&mut self.order.lock(), IDS_PER_ROUND) {}
    }

    /// Moves the horizon past at most `limit` ids. Returns true if there may be more.
    fn advance(&self, order: &mut Order, limit: usize) -> bool {
        let horizon = self.horizon.load(Ordering::Relaxed);
        let oldest = order.first_recent();
        let is_ended = |(_, writer): &(TransactionId, Arc<TransactionRecord>)| {
            writer.state() != TransactionState::Active
        };
        if horizon >= oldest && !order.recent.front().is_some_and(is_ended) {
            return false;
        }
        let mark = self.snapshots.retire_up_to(&self.newest_commit);
        let mut left = limit;
        if horizon < oldest {
            let reached = self.pass_old(horizon, oldest.min(horizon + limit as u64), mark);
            left -= (reached - horizon) as usize;
            if reached < oldest {
                self.release_deferred(order, mark);
                return left == 0;
            }
        }
        while left > 0
            && let Some((id, writer)) =
                order.recent.pop_front_if(|(_, writer)| may_pass(writer.state(), mark))
        {
            left -= 1;
            self.move_horizon(id + 1);
            if writer.state() != TransactionState::Aborted {
                invariant!(VER_2, id < self.horizon(), "the horizon has not passed id {id}");
                self.shard(id).write().remove(&id);
            }
            if id == writer.id() && writer.deferred.count() > 0 {
                if writer.last_id() == id {
                    // Drained, so that the record keeps the memory for its next transaction.
                    self.make_ready(order, writer.deferred.lock().drain(..));
                } else {
                    order.keep_deferred(&writer);
                }
            }
            order.recycle(writer);
        }
        self.release_deferred(order, mark);
        left == 0
    }

    /// Moves the horizon over ids older than the recent ones, from `horizon` up to `end`. Returns
    /// the new horizon.
    fn pass_old(
        &self,
        horizon: TransactionId,
        end: TransactionId,
        mark: Timestamp,
    ) -> TransactionId {
        let holds_back = |id: &TransactionId| match self.shard(*id).read().get(id) {
            // Aborted, or all of its entries were merged.
            None => false,
            Some(Known::Running(writer)) => !may_pass(writer.state(), mark),
            Some(Known::CommittedUndo(past)) => past.timestamp() > mark,
            Some(Known::SpilledUndo { timestamp, .. }) => *timestamp > mark,
        };
        let reached = (horizon..end).find(holds_back).unwrap_or(end);
        self.move_horizon(reached);
        for id in horizon..reached {
            invariant!(VER_2, id < self.horizon(), "the horizon has not passed id {id}");
            self.forget_id(id);
        }
        reached
    }

    /// Moves the horizon. The caller holds the lock of the ids.
    #[inline]
    fn move_horizon(&self, to: TransactionId) {
        invariant!(
            VER_5,
            to >= self.horizon.load(Ordering::Relaxed),
            "the horizon moves back to id {to}"
        );
        self.horizon.store(to, Ordering::Release);
    }

    /// Removes an id from the transaction table.
    pub(super) fn forget_id(&self, id: TransactionId) {
        let mut shard = self.shard(id).write();
        let known = shard.remove(&id);
        if let Some(Known::CommittedUndo(past)) = &known {
            self.past_bytes.fetch_sub(past.allocated(), Ordering::Relaxed);
        }
        if let Some(Known::CommittedUndo(_) | Known::SpilledUndo { .. }) = &known {
            self.past_ids.fetch_sub(1, Ordering::Relaxed);
        }
        if shard.capacity() > 1024 && shard.len() < shard.capacity() / 8 {
            let room = shard.len() * 2;
            shard.shrink_to(room);
        }
    }

    /// Releases the tasks deferred by commits up to `mark`. The horizon alone is not sufficient: it
    /// also passes ids whose entries were all merged, and the versions they replaced may be visible
    /// through a newer entry (VER-4).
    fn release_deferred(&self, order: &mut Order, mark: Timestamp) {
        let horizon = self.horizon.load(Ordering::Relaxed);
        while let Some(first) = order.deferred.first_entry()
            && *first.key() <= mark
            && first.get().0 < horizon
        {
            let (_, tasks) = first.remove();
            self.make_ready(order, tasks.into_iter());
        }
        while let Some((_, tree)) = order
            .dropped
            .pop_front_if(|(barrier, _)| *barrier <= horizon || planted(Canary::TreeFreedEarly))
        {
            self.change_ready(|ready| ready.push_back(tree));
        }
    }

    /// Moves deferred tasks to the ready queue. A dropped tree first waits for every transaction
    /// that has changes now (`Order::dropped`).
    fn make_ready(&self, order: &mut Order, tasks: impl Iterator<Item = DeferredTask>) {
        let barrier = order.next;
        self.change_ready(|ready| {
            for task in tasks {
                match task {
                    DeferredTask::FreeTree(_) => order.dropped.push_back((barrier, task)),
                    _ => ready.push_back(task),
                }
            }
        });
    }

    /// Returns the ids of unfinished transactions, each with its record and the number of its first
    /// entry.
    pub fn active(&self) -> ActiveTransactions {
        let order = self.order.lock();
        let recent = order.recent.iter().map(|(id, writer)| (id, writer));
        recent
            .chain(&order.stragglers)
            .filter(|(_, writer)| writer.state() == TransactionState::Active)
            .map(|(id, writer)| (*id, (writer.clone(), writer.base_of(*id))))
            .collect()
    }

    /// Returns the number of ids kept, and the bytes of memory of their undo entries.
    pub fn held(&self) -> (usize, usize) {
        let order = self.order.lock();
        let past = self.past_ids.load(Ordering::Relaxed);
        let ids = order.recent.len() + order.stragglers.len() + order.unsealed.len() + past;
        if ids == 0 {
            return (0, 0);
        }
        let writers: Vec<_> = order.writers().cloned().collect();
        // Without the lock: a transaction may be writing its entries to a file.
        drop(order);
        let running: usize = writers.iter().map(|writer| writer.undo_bytes()).sum();
        (ids, running + self.table_bytes() + self.past_bytes.load(Ordering::Relaxed))
    }

    /// Returns the bytes of the undo entries of committed transactions, in memory and in files.
    pub fn committed_undo_bytes(&self) -> u64 {
        let is_committed =
            |writer: &&Arc<TransactionRecord>| writer.state() != TransactionState::Active;
        let recent: Vec<_> = self.order.lock().writers().filter(is_committed).cloned().collect();
        // Without the lock: an old snapshot may be reading entries in a file.
        let bytes =
            |writer: &Arc<TransactionRecord>| writer.undo_bytes() as u64 + writer.spilled_bytes();
        let recent: u64 = recent.iter().map(bytes).sum();
        let kept = self.table_bytes() + self.past_bytes.load(Ordering::Relaxed);
        recent + kept as u64 + self.spill.committed_bytes()
    }

    /// Returns the bytes of memory of the tables of ids.
    fn table_bytes(&self) -> usize {
        self.shards().iter().map(|shard| shard_bytes(shard.read().capacity())).sum()
    }
}

/// Estimates the bytes of a hash table for `capacity` ids: one in eight slots is free, and each
/// slot has a control byte.
fn shard_bytes(capacity: usize) -> usize {
    let places = (capacity * 8 / 7).next_power_of_two();
    if capacity == 0 { 0 } else { places * (size_of::<(TransactionId, Known)>() + 1) }
}

/// Processes the end of a transaction that has ids older than the recent ones.
#[cold]
fn end_straggler(order: &mut Order, writer: &Arc<TransactionRecord>) {
    let committed = writer.state() != TransactionState::Aborted;
    if committed {
        order.keep_deferred(writer);
    }
    let oldest = order.first_recent();
    for id in writer.ids().into_iter().take_while(|id| *id < oldest) {
        if let Some(writer) = order.stragglers.remove(&id)
            && committed
        {
            order.unsealed.push_back((id, writer));
        }
    }
}
