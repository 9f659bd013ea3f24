//! RocksDB: a log-structured merge tree.
//!
//! A transaction that writes is a write batch, which is atomic; one that reads uses one snapshot.
//! Deletes are blind, as in every log-structured engine. Tuned for a working set in memory: Bloom
//! filters, hash index in data blocks, no compression.

use std::sync::{Arc, OnceLock};

use anyhow::Result;

use super::ffi::rocksdb::{self as ffi, Batch, Configuration, Database, Library};
use super::library;
use crate::engine::{
    Engine, Instance, Mode, OpResult, ReadWork, Reader, Session, Setup, Span, Support, Visit,
    WriteWork, Writer,
};

static LIBRARY: OnceLock<Result<Arc<Library>, String>> = OnceLock::new();

/// Small enough for a processor's cache: writes are twice as fast as with the usual 64 MiB or more,
/// where the skip list misses it.
const MEMTABLE_BYTES: usize = 16 << 20;

/// The adapter.
pub struct Rocksdb;

impl Engine for Rocksdb {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn version(&self) -> Result<String> {
        Ok(library(&LIBRARY, Library::load)?.version().to_owned())
    }

    fn supports(&self, _mode: Mode, _threads: usize) -> Support {
        Support::Yes
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let configuration = Configuration {
            cache_bytes: usize::try_from(setup.cache_bytes)?,
            memtable_bytes: MEMTABLE_BYTES,
            concurrent_writers: setup.threads > 1,
            manual_log_flush: setup.mode == Mode::Ns,
            no_log: matches!(setup.mode, Mode::Ds | Mode::InMem),
            sync: setup.mode.flushes(),
        };
        let log = match setup.mode {
            Mode::Ds | Mode::InMem => "WAL disabled",
            Mode::Sync | Mode::Ramdisk => "WAL, sync",
            Mode::Wns => "WAL, no sync",
            Mode::Ns => "WAL, manual_wal_flush",
        };
        let library = library(&LIBRARY, Library::load)?;
        let database = Database::open(&library, &setup.directory, &configuration)?;
        let settings = format!(
            "write batches, snapshot reads, {log}; {} MiB memtables, Bloom filter, hash index in \
             blocks, no compression",
            MEMTABLE_BYTES >> 20
        );
        Ok(Box::new(Open { database, settings }))
    }
}

struct Open {
    database: Database,
    settings: String,
}

impl Instance for Open {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Handle { reader: self.database.reader(), batch: self.database.batch() }))
    }

    fn checkpoint(&self) -> Result<()> {
        self.database.flush()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.database.flush()
    }
}

struct Handle<'e> {
    reader: ffi::Reader<'e>,
    batch: Batch<'e>,
}

impl Session for Handle<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        self.reader.snapshot(|reader| work(reader))
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        self.batch.clear();
        work(&mut self.batch)?;
        Ok(self.batch.write()?)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.reader.scan(visit)
    }
}

impl Reader for ffi::Reader<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        Ok(ffi::Reader::get(self, key, value)?)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        Ok(ffi::Reader::range(self, span, visit)?)
    }
}

impl Writer for Batch<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.put(key, value);
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.put(key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        Batch::delete(self, key);
        Ok(())
    }
}
