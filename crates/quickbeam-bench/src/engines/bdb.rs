//! Berkeley DB 5.3, the system of the white paper, configured as the paper says: `DB_PRIVATE`
//! environment, B+tree, page-level locking, 128 MB log buffer, 512 MB cache.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};

use super::ffi::bdb::{BdbDatabase, BdbEnvironment, BdbLibrary, Transaction, layout as flags};
use super::library;
use crate::engine::{
    Engine, Instance, Mode, OpResult, ReadWork, Reader, Session, Setup, Span, Support, Visit,
    WriteWork, Writer,
};

static LIBRARY: OnceLock<Result<Arc<BdbLibrary>, String>> = OnceLock::new();

const FILE: &str = "kv.db";

/// Size of a page: Berkeley DB's own choice on common file systems.
const PAGE_SIZE: u32 = 4096;

/// The adapter.
pub struct Bdb;

impl Engine for Bdb {
    fn name(&self) -> &'static str {
        "bdb"
    }

    fn version(&self) -> Result<String> {
        Ok(library(&LIBRARY, BdbLibrary::load)?.version().to_owned())
    }

    fn supports(&self, mode: Mode, threads: usize) -> Support {
        match mode {
            Mode::Ds if threads > 1 => Support::No("Data Store has one owner"),
            _ => Support::Yes,
        }
    }

    fn replays_log(&self) -> bool {
        true
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let environment = BdbEnvironment::new(&library(&LIBRARY, BdbLibrary::load)?)?;
        environment.set_cache_size(setup.cache_bytes)?;
        let mut open = flags::CREATE | flags::PRIVATE | flags::INIT_MPOOL;
        if setup.threads > 1 {
            open |= flags::THREAD;
        }
        if setup.mode != Mode::Ds {
            // RECOVER also creates; on a directory closed cleanly it finds nothing to do.
            open |= flags::INIT_LOCK | flags::INIT_LOG | flags::INIT_TXN;
            let log_buffer = u32::try_from(setup.log_buffer_bytes)?;
            environment.set_log_buffer(log_buffer)?;
            environment.set_locks(400_000)?;
            match setup.mode {
                Mode::Wns => environment.set_durability(flags::TXN_WRITE_NOSYNC)?,
                Mode::Ns => environment.set_durability(flags::TXN_NOSYNC)?,
                Mode::InMem => environment.set_log_in_memory()?,
                _ => {}
            }
            if setup.mode != Mode::InMem {
                open |= flags::RECOVER;
                environment.set_log_file(log_buffer.saturating_mul(4))?;
                environment.set_log_auto_remove()?;
            }
        }
        environment.open(&setup.directory, open)?;
        let free_threaded = open & flags::THREAD;
        let transactional = setup.mode != Mode::Ds;
        let auto_commit = if transactional { flags::AUTO_COMMIT } else { 0 };
        let environment = Arc::new(environment);
        let database_flags = auto_commit | free_threaded;
        let keeper = environment.open_database(FILE, PAGE_SIZE, flags::CREATE | database_flags)?;
        let settings = settings(setup);
        Ok(Box::new(OpenBdb { keeper, environment, transactional, database_flags, settings }))
    }
}

fn settings(setup: &Setup) -> String {
    let durability = match setup.mode {
        Mode::Ds => "Data Store",
        Mode::Sync | Mode::Ramdisk => "TDS, synchronous",
        Mode::Wns => "TDS, DB_TXN_WRITE_NOSYNC",
        Mode::Ns => "TDS, DB_TXN_NOSYNC",
        Mode::InMem => "TDS, DB_LOG_IN_MEMORY",
    };
    format!("B+tree, {PAGE_SIZE}-byte pages, DB_PRIVATE, {durability}")
}

struct OpenBdb {
    /// Held to the end: the cache may drop the pages of a file that is not open.
    keeper: BdbDatabase,
    environment: Arc<BdbEnvironment>,
    transactional: bool,
    database_flags: u32,
    settings: String,
}

impl OpenBdb {
    fn begin(&self) -> Result<Option<Transaction<'_>>> {
        if self.transactional { self.environment.begin().map(Some) } else { Ok(None) }
    }
}

impl Instance for OpenBdb {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let database = self.environment.open_database(FILE, PAGE_SIZE, self.database_flags)?;
        Ok(Box::new(BdbSession { open: self, database }))
    }

    fn checkpoint(&self) -> Result<()> {
        if self.transactional { self.environment.checkpoint() } else { self.keeper.sync() }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.checkpoint()?;
        drop(self.keeper);
        let environment = Arc::into_inner(self.environment);
        environment.context("a handle is still open")?.close()
    }
}

/// One thread's database handle, as in the paper.
struct BdbSession<'e> {
    open: &'e OpenBdb,
    database: BdbDatabase,
}

/// The handle inside a transaction, or without one in a Data Store.
struct BdbTransaction<'a> {
    database: &'a BdbDatabase,
    transaction: Option<Transaction<'a>>,
}

impl BdbTransaction<'_> {
    fn commit(self) -> OpResult {
        self.transaction.map_or(Ok(()), Transaction::commit)
    }
}

impl Session for BdbSession<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        let mut inside =
            BdbTransaction { database: &self.database, transaction: self.open.begin()? };
        work(&mut inside)?;
        inside.commit()
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        let mut inside =
            BdbTransaction { database: &self.database, transaction: self.open.begin()? };
        work(&mut inside)?;
        inside.commit()
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let transaction = self.open.begin()?;
        self.database.scan(transaction.as_ref(), visit)
    }
}

impl Reader for BdbTransaction<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        self.database.get(self.transaction.as_ref(), key, value)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        Ok(self.database.range(self.transaction.as_ref(), span, visit)?)
    }
}

impl Writer for BdbTransaction<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.database.put(self.transaction.as_ref(), key, value)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.database.put(self.transaction.as_ref(), key, value)
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        self.database.delete(self.transaction.as_ref(), key)
    }
}
