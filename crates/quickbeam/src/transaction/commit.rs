//! Commit: validation, commit timestamp, log record.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Expiry, State, Transaction};
use crate::error::Result;
use crate::failpoints::{Canary, Probe, planted, probe};
use crate::mvcc::{Outcome, TransactionRecord};
use crate::options::Durability;
use crate::wal::{Appended, Log, Lsn, RecordKind};

/// Deferred tasks that a commit runs in addition to as many as it defers itself. So a transaction
/// that defers many tasks does not leave them to later small transactions.
const TASKS_PER_COMMIT: usize = 4;

impl Transaction {
    /// Makes every change visible at once, and durable as the transaction's durability requires.
    ///
    /// After most errors nothing of the transaction remains.
    /// [`Error::Failed`](crate::Error::Failed) and [`Error::Io`](crate::Error::Io) leave open
    /// whether the commit survives.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// fruit.put(&transaction, b"apple", b"red")?;
    /// transaction.commit()?;
    /// assert!(fruit.exists(&environment.begin_read()?, b"apple")?);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn commit(self) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        Self::check_consistent(state)?;
        let engine = self.engine();
        let Some(writer) = state.writer.clone().filter(|writer| writer.entries() > 0) else {
            engine.transactions.snapshots.count_commit(self.slot);
            return Ok(());
        };
        // On an error, dropping the transaction rolls it back.
        let end = self.publish(state, &writer).inspect_err(|error| self.note_failure(error))?;
        state.finished = true;
        state.writer = None;
        engine.transactions.snapshots.count_commit(self.slot);
        engine.transactions.snapshots.release(self.slot);
        let own_tasks = writer.deferred.count();
        engine.transactions.finish(writer, Outcome::Committed);
        if let (Some(log), Some(end)) = (&engine.log, end) {
            self.wait_for_durability(log, end)?;
        }
        // The commit is final. A task that fails is queued again, and its next run reports the
        // error.
        let _ = engine.run_deferred(TASKS_PER_COMMIT + own_tasks);
        Ok(())
    }

    /// Waits until the log up to `end` is as durable as the transaction requires.
    fn wait_for_durability(&self, log: &Log, end: Lsn) -> Result<()> {
        let engine = self.engine();
        let flush = match self.durability.get() {
            Durability::Sync => true,
            Durability::WriteNoSync => false,
            Durability::NoSync | Durability::InMemory => return Ok(()),
        };
        if log.has_reached(end, flush) {
            // The append itself, or another commit's flush, reached it.
            return Ok(());
        }
        let started = engine.vfs.now();
        if flush {
            log.flush_to(end)?;
        } else {
            log.write_to(end)?;
        }
        engine.counters.commit_wait.add(engine.vfs.now().saturating_sub(started));
        Ok(())
    }

    /// Assigns the commit timestamp, appends the log record and makes the commit visible. Returns
    /// the end of the log record.
    fn publish(&self, state: &mut State, writer: &Arc<TransactionRecord>) -> Result<Option<Lsn>> {
        let engine = self.engine();
        let transactions = &engine.transactions;
        engine.check_failed()?;
        invariant!(
            LIMIT_1,
            self.expiry.get() != Expiry::Possible,
            "the snapshot of a transaction with changes may expire"
        );
        let payload = match &engine.log {
            Some(log) => {
                self.spill_fragments(state, writer, log)?;
                crc32c::crc32c(state.redo.bytes())
            }
            None => 0,
        };
        let mut leaves = state.reads.len();
        loop {
            self.validate(state)?;
            let catalog_version = self.validate_names(state)?;
            let mut buffer = engine.log.as_ref().map(|log| (log, log.lock()));
            let _commit_lock = engine.log.is_none().then(|| engine.commit_lock.lock());
            if let Some((log, locked)) = &buffer
                && !log.has_room_for(locked, state.redo.len())
            {
                let log = *log;
                drop(buffer);
                log.make_room_for(state.redo.len())?;
                continue;
            }
            if engine.catalog_version.load(Ordering::SeqCst) != catalog_version {
                continue;
            }
            let stale = self.count_stale(state);
            if !Self::is_last_round(stale, leaves) {
                leaves = stale;
                continue;
            }
            if stale > 0 {
                // No other transaction can commit now, so validation holds at the commit.
                self.validate(state)?;
            }
            // A leaf may become stale again at any time: an unfinished writer changes it. Only a
            // commit would matter, and there is none since the count.
            invariant!(
                TXN_4,
                stale == 0 || self.is_validated_at_newest_commit(state),
                "the commit of transaction {} is not validated",
                writer.id()
            );
            let timestamp = transactions.newest_commit.load(Ordering::SeqCst) + 1;
            let end = buffer.as_mut().map(|(log, buffer)| {
                let dropped = planted(Canary::RecordDropped) && timestamp.is_multiple_of(16);
                let (redo, payload_checksum) =
                    if dropped { (&[][..], 0) } else { (state.redo.bytes(), payload) };
                let (kind, transaction) = (RecordKind::Commit, writer.id());
                let durable = log.durable();
                let record = Appended { kind, timestamp, transaction, payload_checksum, durable };
                log.append(buffer, &record, redo)
            });
            if state.changed_catalog {
                // Stored before the commit is visible, so that a snapshot with the change has its
                // version.
                engine.catalog_version.store(timestamp, Ordering::SeqCst);
            }
            invariant!(
                VALIDATE_1,
                transactions.newest_commit.load(Ordering::SeqCst) + 1 == timestamp,
                "another transaction committed within the critical section of {timestamp}"
            );
            writer.set_committed(timestamp);
            transactions.newest_commit.store(timestamp, Ordering::SeqCst);
            probe(Probe::Committed(timestamp));
            return Ok(end);
        }
    }

    /// Appends redo to the log in fragments if the redo buffer is over the limit.
    #[inline]
    pub(super) fn spill_redo(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
    ) -> Result<()> {
        match &self.engine().log {
            Some(log) if state.redo.len() > log.fragment_limit() => {
                self.spill_fragments(state, writer, log)
            }
            _ => Ok(()),
        }
    }

    fn spill_fragments(
        &self,
        state: &mut State,
        writer: &Arc<TransactionRecord>,
        log: &Log,
    ) -> Result<()> {
        let limit = log.fragment_limit();
        let mut spilled = 0;
        let mut result = Ok(());
        while result.is_ok() && state.redo.len() - spilled > limit {
            result = append_fragment(writer, log, &state.redo.bytes()[spilled..spilled + limit]);
            if result.is_ok() {
                spilled += limit;
            }
        }
        state.redo.remove_front(spilled);
        result
    }
}

/// Appends one fragment of a large transaction to the log.
#[cold]
fn append_fragment(writer: &TransactionRecord, log: &Log, fragment: &[u8]) -> Result<()> {
    let record = Appended {
        kind: RecordKind::Fragment,
        timestamp: 0,
        transaction: writer.id(),
        payload_checksum: crc32c::crc32c(fragment),
        durable: log.durable(),
    };
    let mut buffer = loop {
        let buffer = log.lock();
        if log.has_room_for(&buffer, fragment.len()) {
            break buffer;
        }
        drop(buffer);
        log.make_room_for(fragment.len())?;
    };
    writer.note_fragment(buffer.end);
    log.append(&mut buffer, &record, fragment);
    Ok(())
}
