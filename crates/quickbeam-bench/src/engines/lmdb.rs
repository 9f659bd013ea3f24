//! LMDB: a copy-on-write B+tree in a memory map, with one writer and no log.
//!
//! Each way to open it is a peer of its own: `lmdb` writes changed pages with `pwrite` at commit,
//! `lmdb-writemap` changes them in the map, which is faster but gives up the protection of the
//! database from stray pointers of the program. Readers renew one transaction and one cursor, and
//! updates go through a cursor, which keeps its current page: both are what its manual
//! advises.

use std::sync::{Arc, OnceLock};

use anyhow::Result;

use super::ffi::lmdb::{
    LmdbEnvironment, LmdbLibrary, NOSYNC, ReadTransaction, WRITEMAP, WriteTransaction,
};
use super::library;
use crate::engine::{
    Engine, Instance, Mode, OpResult, ReadWork, Reader, Session, Setup, Span, Support, Visit,
    WriteWork, Writer,
};

static LIBRARY: OnceLock<Result<Arc<LmdbLibrary>, String>> = OnceLock::new();

/// The adapter.
pub struct Lmdb {
    /// Whether pages are changed in the map in the modes in which `lmdb` itself writes them.
    pub writemap: bool,
}

impl Lmdb {
    fn flags(&self, mode: Mode) -> u32 {
        match mode {
            Mode::Sync | Mode::Ramdisk if self.writemap => WRITEMAP,
            Mode::Sync | Mode::Ramdisk => 0,
            Mode::Wns if self.writemap => WRITEMAP | NOSYNC,
            Mode::Wns => NOSYNC,
            Mode::Ds | Mode::Ns | Mode::InMem => WRITEMAP | NOSYNC,
        }
    }
}

impl Engine for Lmdb {
    fn name(&self) -> &'static str {
        if self.writemap { "lmdb-writemap" } else { "lmdb" }
    }

    fn version(&self) -> Result<String> {
        Ok(library(&LIBRARY, LmdbLibrary::load)?.version().to_owned())
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::Ds | Mode::Ns | Mode::InMem if self.writemap => {
                Support::No("the same as lmdb, which uses the writable map in this mode")
            }
            // msync of a map writes whole folios, up to megabytes for each page that was changed.
            Mode::Sync if self.writemap => {
                Support::No("flushing the map is slower than the writes of lmdb")
            }
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        // A sparse file: room for the records many times over costs nothing.
        let raw = setup.records * (setup.key_size + setup.value_size) as u64;
        let map_size = (raw * 16).max(4 << 30).next_multiple_of(1 << 20);
        let flags = self.flags(setup.mode);
        let library = library(&LIBRARY, LmdbLibrary::load)?;
        let environment =
            LmdbEnvironment::open(&library, &setup.directory, usize::try_from(map_size)?, flags)?;
        let names = match (flags & WRITEMAP != 0, flags & NOSYNC != 0) {
            (false, false) => "write at commit, fdatasync",
            (false, true) => "MDB_NOSYNC",
            (true, false) => "MDB_WRITEMAP, msync",
            (true, true) => "MDB_WRITEMAP|MDB_NOSYNC",
        };
        Ok(Box::new(OpenLmdb {
            environment,
            settings: format!("{names}, cursors, renewed read transaction"),
        }))
    }
}

struct OpenLmdb {
    environment: LmdbEnvironment,
    settings: String,
}

impl Instance for OpenLmdb {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let reader = self.environment.reader()?;
        Ok(Box::new(LmdbSession { environment: &self.environment, reader }))
    }

    fn checkpoint(&self) -> Result<()> {
        self.environment.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.environment.sync()
    }
}

struct LmdbSession<'e> {
    environment: &'e LmdbEnvironment,
    reader: ReadTransaction<'e>,
}

impl Session for LmdbSession<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        self.reader.renew()?;
        let outcome = work(&mut self.reader);
        self.reader.reset();
        outcome
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        let mut writer = self.environment.writer()?;
        work(&mut writer)?;
        Ok(writer.commit()?)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.reader.renew()?;
        let outcome = self.reader.scan(visit);
        self.reader.reset();
        outcome
    }
}

impl Reader for ReadTransaction<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        Ok(ReadTransaction::get(self, key, value)?)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        Ok(ReadTransaction::range(self, span, visit)?)
    }
}

impl Writer for WriteTransaction<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        Ok(self.put(key, value)?)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        Ok(self.put(key, value)?)
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        Ok(WriteTransaction::delete(self, key)?)
    }
}
