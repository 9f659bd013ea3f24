//! RocksDB: a log-structured merge tree.
//!
//! A transaction that writes is a write batch, which is atomic; one that reads uses one snapshot.
//! Deletes are blind, as in every log-structured engine. Tuned for a working set in memory: Bloom
//! filters, hash index in data blocks, no compression.

use std::sync::{Arc, OnceLock};

use anyhow::Result;

use super::ffi::rocksdb::{
    self as ffi, RocksBatch, RocksConfiguration, RocksDatabase, RocksLibrary,
};
use super::library;
use crate::engine::{
    Engine, Instance, Mode, OpResult, ReadWork, Reader, Session, Setup, Span, Support, Visit,
    WriteWork, Writer,
};

static LIBRARY: OnceLock<Result<Arc<RocksLibrary>, String>> = OnceLock::new();

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
        Ok(library(&LIBRARY, RocksLibrary::load)?.version().to_owned())
    }

    fn supports(&self, _mode: Mode, _threads: usize) -> Support {
        Support::Yes
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let configuration = RocksConfiguration {
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
        let library = library(&LIBRARY, RocksLibrary::load)?;
        let database = RocksDatabase::open(&library, &setup.directory, &configuration)?;
        let settings = format!(
            "write batches, snapshot reads, {log}; {} MiB memtables, Bloom filter, hash index in \
             blocks, no compression",
            MEMTABLE_BYTES >> 20
        );
        Ok(Box::new(OpenRocksDb { database, settings }))
    }
}

struct OpenRocksDb {
    database: RocksDatabase,
    settings: String,
}

impl Instance for OpenRocksDb {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RocksSession { reader: self.database.reader(), batch: self.database.batch() }))
    }

    fn checkpoint(&self) -> Result<()> {
        self.database.flush()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.database.flush()
    }
}

struct RocksSession<'e> {
    reader: ffi::RocksReader<'e>,
    batch: RocksBatch<'e>,
}

impl Session for RocksSession<'_> {
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

impl Reader for ffi::RocksReader<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        Ok(ffi::RocksReader::get(self, key, value)?)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        Ok(ffi::RocksReader::range(self, span, visit)?)
    }
}

impl Writer for RocksBatch<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.put(key, value);
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.put(key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        RocksBatch::delete(self, key);
        Ok(())
    }
}
