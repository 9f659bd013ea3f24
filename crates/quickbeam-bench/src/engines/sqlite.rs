//! SQLite as a key/value store: one `WITHOUT ROWID` table, prepared statements.
//!
//! Settings are the fastest of those tried for this workload within each durability class, among
//! them exclusive locking while one thread works (no shared-memory index, no lock calls). With
//! several threads each has a connection, and writers queue in the process rather than sleep in
//! SQLite's busy handler.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use anyhow::{Result, anyhow};

use super::ffi::sqlite::{SqliteConnection, SqliteLibrary, Statement};
use super::library;
use crate::engine::{
    Engine, Instance, Mode, OpError, OpResult, ReadWork, Reader, Session, Setup, Span, Support,
    Visit, WriteWork, Writer,
};

static LIBRARY: OnceLock<Result<Arc<SqliteLibrary>, String>> = OnceLock::new();

/// The adapter.
pub struct SqliteStore;

impl Engine for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn version(&self) -> Result<String> {
        Ok(library(&LIBRARY, SqliteLibrary::load)?.version().to_owned())
    }

    fn supports(&self, mode: Mode, threads: usize) -> Support {
        match mode {
            Mode::Ns => Support::No("every commit reaches the operating system"),
            Mode::InMem if threads > 1 => Support::No("an in-memory database has one connection"),
            Mode::Ds if threads > 1 => Support::No("measured with exclusive locking"),
            _ => Support::Yes,
        }
    }

    fn replays_log(&self) -> bool {
        true
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let name = match setup.mode {
            Mode::InMem => ":memory:".to_owned(),
            _ => setup.directory.join("kv.sqlite").to_string_lossy().into_owned(),
        };
        let how =
            How { library: library(&LIBRARY, SqliteLibrary::load)?, name, pragmas: pragmas(setup) };
        let first = Table::connect(&how)?;
        Ok(Box::new(OpenSqliteStore {
            first: Mutex::new(first),
            how,
            shared: setup.threads > 1,
            writers: Mutex::new(()),
        }))
    }
}

/// The settings, and why they are not SQLite's defaults:
///
/// - Pages are read through the memory map, and the page cache is kept small: when a page was
///   split, every commit looks through the whole page cache, which makes inserts five times slower
///   with a large one. Only a database that must not have more memory than the cache, or is in
///   memory itself, gets the full cache and no map.
/// - Larger pages where no commit waits for the device: fewer pages to look through.
/// - A longer log before it is checkpointed.
fn pragmas(setup: &Setup) -> Vec<String> {
    let fits = setup.records * (setup.key_size + setup.value_size) as u64 <= setup.cache_bytes;
    let mapped = fits && setup.mode != Mode::InMem;
    let (cache_kib, map) = if mapped {
        (8192, 1u64 << 32)
    } else {
        (setup.cache_bytes / 1024 / setup.threads as u64, 0)
    };
    let (page_size, journal, synchronous) = match setup.mode {
        Mode::Ds => (8192, "OFF", "OFF"),
        Mode::InMem => (16384, "MEMORY", "OFF"),
        Mode::Sync | Mode::Ramdisk => (4096, "WAL", "FULL"),
        Mode::Wns | Mode::Ns => (8192, "WAL", "OFF"),
    };
    let locking = if setup.threads == 1 { "EXCLUSIVE" } else { "NORMAL" };
    let autocheckpoint = if setup.automatic_checkpoints { 10_000 } else { 0 };
    vec![
        format!("page_size={page_size}"),
        format!("locking_mode={locking}"),
        format!("journal_mode={journal}"),
        format!("synchronous={synchronous}"),
        format!("cache_size=-{cache_kib}"),
        format!("mmap_size={map}"),
        format!("wal_autocheckpoint={autocheckpoint}"),
        // Debian builds SQLite so that it overwrites what is deleted.
        "secure_delete=OFF".to_owned(),
    ]
}

/// How a thread connects.
struct How {
    library: Arc<SqliteLibrary>,
    name: String,
    pragmas: Vec<String>,
}

struct OpenSqliteStore {
    /// The connection of the only thread; with several it serves checkpoints.
    first: Mutex<Table>,
    how: How,
    shared: bool,
    writers: Mutex<()>,
}

impl OpenSqliteStore {
    fn first(&self) -> Result<MutexGuard<'_, Table>> {
        self.first.try_lock().map_err(|_| anyhow!("SQLite: the only connection is in use"))
    }
}

impl Instance for OpenSqliteStore {
    fn settings(&self) -> String {
        format!("WITHOUT ROWID, prepared statements; {}", self.how.pragmas.join(", "))
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        if self.shared {
            let table = Table::connect(&self.how)?;
            Ok(Box::new(Shared { table, writers: &self.writers }))
        } else {
            Ok(Box::new(Alone(self.first()?)))
        }
    }

    fn checkpoint(&self) -> Result<()> {
        // Only without other connections can the log be truncated as well.
        let kind = if self.shared { "PASSIVE" } else { "TRUNCATE" };
        self.first()?.connection.execute(&format!("PRAGMA wal_checkpoint({kind})"))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.checkpoint()
    }
}

/// A connection with its statements.
struct Table {
    connection: SqliteConnection,
    begin: Statement,
    begin_write: Statement,
    commit: Statement,
    rollback: Statement,
    select: Statement,
    insert: Statement,
    update: Statement,
    delete: Statement,
    scan: Statement,
    upward: Statement,
    downward: Statement,
}

impl Table {
    fn connect(how: &How) -> Result<Table> {
        let mut c = SqliteConnection::open(&how.library, &how.name)?;
        for pragma in &how.pragmas {
            c.execute(&format!("PRAGMA {pragma}"))?;
        }
        c.execute(
            "CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID",
        )?;
        Ok(Table {
            begin: c.prepare("BEGIN")?,
            begin_write: c.prepare("BEGIN IMMEDIATE")?,
            commit: c.prepare("COMMIT")?,
            rollback: c.prepare("ROLLBACK")?,
            select: c.prepare("SELECT v FROM kv WHERE k = ?1")?,
            insert: c.prepare("INSERT INTO kv (k, v) VALUES (?1, ?2)")?,
            update: c.prepare("UPDATE kv SET v = ?2 WHERE k = ?1")?,
            delete: c.prepare("DELETE FROM kv WHERE k = ?1")?,
            scan: c.prepare("SELECT k, v FROM kv ORDER BY k")?,
            upward: c.prepare("SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k LIMIT ?2")?,
            downward: c.prepare("SELECT k, v FROM kv WHERE k <= ?1 ORDER BY k DESC LIMIT ?2")?,
            connection: c,
        })
    }

    fn end(&self, outcome: OpResult) -> OpResult {
        let outcome = outcome.and_then(|()| self.connection.run(self.commit, &[]));
        if outcome.is_err() {
            // The first error is the one to report; this one only says that nothing is open.
            self.connection.run(self.rollback, &[]).ok();
        }
        outcome
    }

    fn changed(&self) -> OpResult {
        match self.connection.changes() {
            1 => Ok(()),
            rows => Err(anyhow!("SQLite: {rows} rows changed where one was expected").into()),
        }
    }

    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        self.connection.run(self.begin, &[])?;
        let outcome = work(self);
        self.end(outcome)
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        self.connection.run(self.begin_write, &[])?;
        let outcome = work(self);
        self.end(outcome)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let outcome = self.connection.rows(self.scan, &[], |row| visit(row.blob(0), row.blob(1)));
        outcome.map_err(|error| match error {
            OpError::Failed(error) => error,
            OpError::Retry => anyhow!("SQLite: the database is locked"),
        })
    }
}

/// The session of the only thread.
struct Alone<'e>(MutexGuard<'e, Table>);

impl Session for Alone<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        self.0.read(work)
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        self.0.write(work)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.0.scan(visit)
    }
}

/// The session of one of several threads.
struct Shared<'e> {
    table: Table,
    writers: &'e Mutex<()>,
}

impl Session for Shared<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        self.table.read(work)
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        let _turn = self.writers.lock().map_err(|_| anyhow!("another writer has failed"))?;
        self.table.write(work)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.table.scan(visit)
    }
}

impl Reader for Table {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        value.clear();
        let mut found = false;
        self.connection.rows(self.select, &[key], |row| {
            value.extend_from_slice(row.blob(0));
            found = true;
        })?;
        Ok(found)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        let statement = if span.backward { self.downward } else { self.upward };
        self.connection.rows_limited(statement, span.from, span.count, |row| {
            visit(row.blob(0), row.blob(1));
        })
    }
}

impl Writer for Table {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.connection.run(self.insert, &[key, value])
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.connection.run(self.update, &[key, value])?;
        self.changed()
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        self.connection.run(self.delete, &[key])?;
        self.changed()
    }
}
