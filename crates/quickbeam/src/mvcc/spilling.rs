//! Spilling the undo entries of committed transactions.
//!
//! Above: version garbage collection, in the background thread. Below: the transaction table, files
//! of undo entries. While entries exceed their memory, the background thread writes those of sealed
//! ids to a file, oldest first, and the ids refer to the file instead.
//!
//! - SPILL-1: entries in a file do not change, so no entry is merged between the encoding of an
//!   id's entries and the moment when the id refers to the file. Merging leaves entries in files
//!   alone.

use crate::sync::atomic::Ordering;

use super::TransactionId;
use super::transaction_table::{Known, TransactionTable};
use super::undo::spill::SpillPosition;

/// Bytes of committed entries that one write takes to the file.
const BATCH_BYTES: usize = if cfg!(feature = "simulation") { 1 << 10 } else { 1 << 20 };

/// Encoded entries of several ids.
#[derive(Default)]
struct SpillBatch {
    bytes: Vec<u8>,
    /// The ids, each with the offset and the length of its entries.
    ids: Vec<(TransactionId, usize, usize)>,
}

impl TransactionTable {
    /// Writes the undo entries of committed transactions to files, oldest first, while they exceed
    /// their memory. Called by the background thread.
    pub(super) fn spill_committed(&self) {
        let is_exceeded = || self.spill.is_exceeded(self.past_bytes.load(Ordering::Relaxed));
        if !is_exceeded() && self.spill.committed_bytes() == 0 {
            return;
        }
        // No entry is merged meanwhile (SPILL-1).
        let mut collector = self.collector.lock();
        let position = &mut collector.spill_position;
        position.forget_unused();
        let end = self.order.lock().first_recent();
        while is_exceeded() {
            let batch = self.collect_batch(position, end);
            if batch.ids.is_empty() || self.spill_batch(position, &batch).is_none() {
                return;
            }
        }
    }

    /// Encodes the entries of the next ids up to `end`.
    fn collect_batch(&self, position: &mut SpillPosition, end: TransactionId) -> SpillBatch {
        position.next = position.next.max(self.horizon());
        let mut batch = SpillBatch::default();
        while position.next < end && batch.bytes.len() < BATCH_BYTES {
            let id = position.next;
            position.next += 1;
            if let Some(Known::CommittedUndo(past)) = self.shard(id).read().get(&id) {
                batch.ids.push((id, batch.bytes.len(), past.encoded().len()));
                batch.bytes.extend_from_slice(past.encoded());
            }
        }
        batch
    }

    /// Writes the entries of a batch, and lets the ids refer to the file. Returns `None` if the
    /// file cannot be written.
    fn spill_batch(&self, position: &mut SpillPosition, batch: &SpillBatch) -> Option<()> {
        let Some(place) = position.write(&batch.bytes, &self.spill) else {
            batch.ids.iter().for_each(|(id, ..)| position.include(*id));
            return None;
        };
        for &(id, offset, length) in &batch.ids {
            let mut shard = self.shard(id).write();
            // The horizon may have passed it by now.
            let Some(known) = shard.get_mut(&id) else { continue };
            let Known::CommittedUndo(past) = known else { continue };
            invariant!(
                SPILL_1,
                batch.bytes.get(offset..offset + length) == Some(past.encoded()),
                "the entries of id {id} have changed"
            );
            self.past_bytes.fetch_sub(past.allocated(), Ordering::Relaxed);
            let (timestamp, at) = (past.timestamp(), place.at + offset as u32);
            *known = Known::SpilledUndo { timestamp, at, file: place.file.clone() };
        }
        Some(())
    }
}
