//! fjall: a log-structured merge tree in Rust.
//!
//! A batch is atomic and is journalled with the persist mode of the durability class. Reads of a
//! transaction go through one snapshot. Deletes are blind, as in every log-structured engine.

use anyhow::Result;
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable, Snapshot,
};

use crate::engine::{
    Engine, Instance, Mode, OpResult, ReadWork, Reader, Session, Setup, Span, Support, Visit,
    WriteWork, Writer,
};

/// The adapter.
pub struct Fjall;

impl Engine for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn version(&self) -> Result<String> {
        Ok(env!("QUICKBEAM_BENCH_FJALL_VERSION").to_owned())
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::InMem => Support::No("the journal cannot be kept in memory"),
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let persist = match setup.mode {
            Mode::Sync | Mode::Ramdisk => Some(PersistMode::SyncData),
            Mode::Wns => Some(PersistMode::Buffer),
            Mode::Ds | Mode::Ns | Mode::InMem => None,
        };
        // Opening a keyspace with `manual_journal_persist` leaves the choice to each batch.
        let database = Database::builder(&setup.directory)
            .cache_size(setup.cache_bytes)
            .manual_journal_persist(true)
            .open()?;
        let keyspace = database
            .keyspace("kv", || KeyspaceCreateOptions::default().expect_point_read_hits(true))?;
        Ok(Box::new(OpenFjall { database, keyspace, persist }))
    }
}

struct OpenFjall {
    database: Database,
    keyspace: Keyspace,
    persist: Option<PersistMode>,
}

impl Instance for OpenFjall {
    fn settings(&self) -> String {
        let persist = match self.persist {
            Some(mode) => format!("PersistMode::{mode:?} at commit"),
            None => "no persist at commit".to_owned(),
        };
        format!("write batches, {persist}, expect_point_read_hits")
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FjallSession { open: self }))
    }

    fn checkpoint(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

struct FjallSession<'e> {
    open: &'e OpenFjall,
}

struct ReadSnapshot<'e> {
    snapshot: Snapshot,
    keyspace: &'e Keyspace,
}

struct FjallBatch<'e> {
    batch: OwnedWriteBatch,
    keyspace: &'e Keyspace,
}

impl Session for FjallSession<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        let snapshot = self.open.database.snapshot();
        work(&mut ReadSnapshot { snapshot, keyspace: &self.open.keyspace })
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        let batch = self.open.database.batch().durability(self.open.persist);
        let mut batch = FjallBatch { batch, keyspace: &self.open.keyspace };
        work(&mut batch)?;
        Ok(batch.batch.commit()?)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.open.keyspace.iter() {
            let (key, value) = record.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }
}

impl Reader for ReadSnapshot<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        value.clear();
        Ok(match self.snapshot.get(self.keyspace, key)? {
            Some(found) => {
                value.extend_from_slice(&found);
                true
            }
            None => false,
        })
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        let mut take = |record: fjall::Guard| -> OpResult {
            let (key, value) = record.into_inner()?;
            visit(&key, &value);
            Ok(())
        };
        if span.backward {
            let records = self.snapshot.range(self.keyspace, ..=span.from);
            records.rev().take(span.count).try_for_each(&mut take)
        } else {
            let records = self.snapshot.range(self.keyspace, span.from..);
            records.take(span.count).try_for_each(&mut take)
        }
    }
}

impl Writer for FjallBatch<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.batch.insert(self.keyspace, key, value);
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.batch.insert(self.keyspace, key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        self.batch.remove(self.keyspace, key);
        Ok(())
    }
}
