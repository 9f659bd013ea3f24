//! The open transactions, as an operator looks for the one that holds others up.
//!
//! Above: statistics. Below: snapshots, transaction records, the wait graph. The parts are read one
//! after the other, while transactions go on: a row may be out of date when it is returned.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::snapshots::TakenSlot;
use super::{TransactionId, TransactionRecord, TransactionState, TransactionTable};

/// An open transaction, as another thread sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTransaction {
    /// The place of its snapshot: no two open transactions have the same.
    pub slot: usize,
    /// What [`set_thread_owner`](crate::query_layer::set_thread_owner) named on the thread that
    /// began it; 0 if nothing did.
    pub owner: u64,
    /// How long it has been open.
    pub age: Duration,
    /// The number of commits that its snapshot includes; `None` if the snapshot expired.
    pub snapshot: Option<u64>,
    /// How long ago the snapshot was taken.
    pub snapshot_age: Option<Duration>,
    /// The number under which it changes records; `None` if it has changed nothing.
    pub writer: Option<u64>,
    /// The changes that a rollback would undo.
    pub changes: usize,
    /// The memory of their older versions, in bytes.
    pub undo_bytes: usize,
    /// The writer whose end it waits for.
    pub waits_for: Option<u64>,
    /// How long it has waited.
    pub waited: Option<Duration>,
}

impl TransactionTable {
    /// Returns the open transactions in the order of their slots. `now` is the time of the VFS.
    pub fn open_transactions(&self, now: Duration) -> Vec<OpenTransaction> {
        let waits = self.waits.all();
        let is_active =
            |writer: &&Arc<TransactionRecord>| writer.state() == TransactionState::Active;
        let writers: HashMap<usize, Arc<TransactionRecord>> = {
            let order = self.order.lock();
            let active = order.writers().filter(is_active);
            active.map(|writer| (writer.slot(), writer.clone())).collect()
        };
        let since = |milliseconds| now.saturating_sub(Duration::from_millis(milliseconds));
        let mut open = Vec::new();
        self.snapshots.for_taken(|slot: TakenSlot| {
            let writer = writers.get(&slot.number);
            let id = writer.map(|writer| writer.id());
            let wait = id.and_then(|id: TransactionId| waits.get(&id));
            open.push(OpenTransaction {
                slot: slot.number,
                owner: slot.owner,
                age: since(slot.since_ms),
                snapshot: slot.snapshot,
                snapshot_age: slot.snapshot_ms.map(since),
                writer: id,
                changes: writer.map_or(0, |writer| writer.entries()),
                undo_bytes: writer.map_or(0, |writer| writer.undo_bytes()),
                waits_for: wait.map(|wait| wait.other),
                waited: wait.map(|wait| now.saturating_sub(wait.began)),
            });
        });
        open
    }
}

#[cfg(test)]
mod tests {
    use super::super::Snapshots;
    use super::*;
    use crate::vfs::MemoryVfs;

    #[test]
    fn open_transactions_have_their_writers_and_waits() {
        let table = TransactionTable::with_snapshots(&MemoryVfs::new(), Snapshots::new());
        let began = Duration::from_secs(1);
        let take = || table.snapshots.acquire(&table.newest_commit, began).unwrap().0;
        let (reader, holder, waiter) = (take(), take(), take());
        let records = [holder, waiter].map(|slot| table.begin_writer(slot));
        let ids = records.each_ref().map(|record| record.id());
        let wait = table.waits.add(Some(ids[1]), ids[0], Duration::from_secs(3)).unwrap();
        let now = Duration::from_secs(5);
        let of = |slot| {
            let found = table.open_transactions(now).into_iter().find(|it| it.slot == slot);
            found.unwrap()
        };
        assert_eq!((of(reader).writer, of(reader).age), (None, Duration::from_secs(4)));
        assert_eq!((of(holder).writer, of(holder).waits_for), (Some(ids[0]), None));
        assert_eq!(of(waiter).waits_for, Some(ids[0]));
        assert_eq!(of(waiter).waited, Some(Duration::from_secs(2)));
        drop(wait);
        table.snapshots.release(reader);
        assert_eq!(of(waiter).waits_for, None);
        assert_eq!(table.open_transactions(now).len(), 2);
    }
}
