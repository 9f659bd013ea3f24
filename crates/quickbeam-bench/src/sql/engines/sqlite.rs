//! SQLite, and Berkeley DB SQL: SQLite's interface over Berkeley DB's trees, locks and log.
//!
//! With several threads each has a connection. SQLite has one writer at a time: writers queue in
//! the process rather than sleep in its busy handler. Berkeley DB locks pages; it gives one of
//! the transactions that wait for each other up, and the harness runs that again.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use anyhow::{Result, anyhow};

use crate::engine::{Mode, OpResult, Support};
use crate::engines::ffi::sqlite::{SqliteConnection, SqliteLibrary, Statement};
use crate::engines::library;
use crate::sql::{
    Access, Dialect, Prepared, SqlConnection, SqlEngine, SqlInstance, SqlSetup, Value, VisitRow,
};

static SQLITE_LIBRARY: OnceLock<Result<Arc<SqliteLibrary>, String>> = OnceLock::new();
static BERKELEY_DB_LIBRARY: OnceLock<Result<Arc<SqliteLibrary>, String>> = OnceLock::new();

/// SQLite.
pub const SQLITE: Sqlite = Sqlite { berkeley_db: false };
/// Berkeley DB SQL.
pub const BERKELEY_DB: Sqlite = Sqlite { berkeley_db: true };

/// The adapter of both.
pub struct Sqlite {
    berkeley_db: bool,
}

impl Sqlite {
    fn library(&self) -> Result<Arc<SqliteLibrary>> {
        match self.berkeley_db {
            false => library(&SQLITE_LIBRARY, SqliteLibrary::load),
            true => library(&BERKELEY_DB_LIBRARY, SqliteLibrary::load_berkeley_db),
        }
    }

    /// The database's name and the settings of each connection.
    ///
    /// SQLite: no shared-memory index and no lock calls while one thread works; a log that grows
    /// to 10,000 pages before it is checkpointed; small pages, as a commit writes whole ones.
    /// An in-memory database that several connections share is a file of its `memdb`.
    fn how(&self, setup: &SqlSetup) -> (String, Vec<String>) {
        let file = |name: &str| setup.directory.join(name).to_string_lossy().into_owned();
        let synchronous = match (setup.mode, self.berkeley_db) {
            (Mode::Sync | Mode::Ramdisk, _) => "FULL",
            (Mode::Wns, true) => "NORMAL",
            _ => "OFF",
        };
        let page_size = 4096;
        let pages = setup.cache_bytes / page_size;
        let mut pragmas = vec![format!("page_size={page_size}")];
        if self.berkeley_db {
            pragmas.extend([format!("cache_size={pages}"), format!("synchronous={synchronous}")]);
            let name =
                if setup.mode == Mode::InMem { ":memory:".to_owned() } else { file("bdb.db") };
            return (name, pragmas);
        }
        let alone = setup.threads == 1;
        let name = match (setup.mode, alone) {
            (Mode::InMem, true) => ":memory:".to_owned(),
            // Only a name that begins with a slash is shared.
            (Mode::InMem, false) => {
                format!("file:/{}?vfs=memdb", file("memory").trim_start_matches('/'))
            }
            _ => file("sqlite.db"),
        };
        let journal = if setup.mode == Mode::InMem { "MEMORY" } else { "WAL" };
        pragmas.extend([
            format!("locking_mode={}", if alone { "EXCLUSIVE" } else { "NORMAL" }),
            format!("journal_mode={journal}"),
            format!("synchronous={synchronous}"),
            format!("cache_size={}", pages / setup.threads as u64),
            "wal_autocheckpoint=10000".to_owned(),
            "temp_store=MEMORY".to_owned(),
            // Debian builds SQLite so that it overwrites what is deleted.
            "secure_delete=OFF".to_owned(),
        ]);
        (name, pragmas)
    }
}

impl SqlEngine for Sqlite {
    fn name(&self) -> &'static str {
        if self.berkeley_db { "bdb-sql" } else { "sqlite" }
    }

    fn version(&self) -> Result<String> {
        let version = self.library()?.version().to_owned();
        Ok(if self.berkeley_db { format!("5.3 (SQLite {version})") } else { version })
    }

    fn supports(&self, mode: Mode, threads: usize) -> Support {
        match (mode, self.berkeley_db) {
            (Mode::Ds, _) => Support::No("SQL has transactions"),
            (Mode::Ns, false) => Support::No("every commit reaches the operating system"),
            (Mode::InMem, true) if threads > 1 => {
                Support::No("an in-memory database has one connection")
            }
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &SqlSetup) -> Result<Box<dyn SqlInstance>> {
        let (name, mut pragmas) = self.how(setup);
        let library = self.library()?;
        let settings = format!("prepared statements; {}", pragmas.join(", "));
        let first = Mutex::new(connect(&library, &name, &pragmas)?);
        if self.berkeley_db {
            // They belong to the environment, which is open from now on.
            pragmas.retain(|pragma| pragma.starts_with("synchronous"));
        }
        Ok(Box::new(OpenSqlite {
            library,
            name,
            settings,
            pragmas,
            first,
            shared: setup.threads > 1,
            gate: (!self.berkeley_db).then(RwLock::default),
            gate_readers: setup.mode == Mode::InMem,
            begin_write: if self.berkeley_db { "BEGIN" } else { "BEGIN IMMEDIATE" },
        }))
    }
}

fn connect(
    library: &Arc<SqliteLibrary>,
    name: &str,
    pragmas: &[String],
) -> Result<SqliteConnection> {
    let mut connection = SqliteConnection::open(library, name)?;
    for pragma in pragmas {
        connection.execute(&format!("PRAGMA {pragma}"))?;
    }
    Ok(connection)
}

struct OpenSqlite {
    library: Arc<SqliteLibrary>,
    name: String,
    settings: String,
    /// Settings of every further connection.
    pragmas: Vec<String>,
    /// The connection of the only thread; with several it keeps an in-memory database alive.
    first: Mutex<SqliteConnection>,
    shared: bool,
    /// Where SQLite's writers queue.
    gate: Option<RwLock<()>>,
    /// Whether readers would be in the writer's way, as without a write-ahead log.
    gate_readers: bool,
    begin_write: &'static str,
}

impl OpenSqlite {
    fn first(&self) -> Result<MutexGuard<'_, SqliteConnection>> {
        if self.shared {
            return self.first.lock().map_err(|_| anyhow!("another thread has failed"));
        }
        self.first.try_lock().map_err(|_| anyhow!("the only connection is in use"))
    }
}

impl SqlInstance for OpenSqlite {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn dialect(&self) -> Dialect {
        // Berkeley DB's SQLite is older than such tables.
        let keyed_table = if self.gate.is_some() { " WITHOUT ROWID" } else { "" };
        Dialect { date_functions: true, keyed_table, ..Dialect::default() }
    }

    fn connect(&self) -> Result<Box<dyn SqlConnection + '_>> {
        let mut connection = match self.shared {
            true => {
                // Berkeley DB does not bear several threads that join its environment at once.
                let _alone = self.first()?;
                Lent::Own(connect(&self.library, &self.name, &self.pragmas)?)
            }
            false => Lent::First(self.first()?),
        };
        Ok(Box::new(SqliteSession {
            begin: connection.prepare("BEGIN")?,
            begin_write: connection.prepare(self.begin_write)?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
            connection,
            open: self,
            turn: Turn::None,
            statements: Vec::new(),
        }))
    }

    fn settle(&self) -> Result<()> {
        let mut first = self.first()?;
        // After it, Berkeley DB lets no other connection open.
        if self.gate.is_some() || !self.shared {
            first.execute("ANALYZE")?;
        }
        if self.gate.is_some() {
            first.execute("PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// The connection that a session works with.
enum Lent<'e> {
    First(MutexGuard<'e, SqliteConnection>),
    Own(SqliteConnection),
}

impl Deref for Lent<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match self {
            Lent::First(connection) => connection,
            Lent::Own(connection) => connection,
        }
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match self {
            Lent::First(connection) => connection,
            Lent::Own(connection) => connection,
        }
    }
}

/// What a transaction holds of the gate.
enum Turn<'e> {
    None,
    Reader { _held: RwLockReadGuard<'e, ()> },
    Writer { _held: RwLockWriteGuard<'e, ()> },
}

struct SqliteSession<'e> {
    connection: Lent<'e>,
    open: &'e OpenSqlite,
    turn: Turn<'e>,
    begin: Statement,
    begin_write: Statement,
    commit: Statement,
    rollback: Statement,
    statements: Vec<Statement>,
}

impl<'e> SqliteSession<'e> {
    fn turn(&self, access: Access) -> Result<Turn<'e>> {
        let failed = || anyhow!("another thread has failed");
        Ok(match (&self.open.gate, access) {
            (Some(gate), Access::Write) if self.open.shared => {
                Turn::Writer { _held: gate.write().map_err(|_| failed())? }
            }
            (Some(gate), Access::Read) if self.open.shared && self.open.gate_readers => {
                Turn::Reader { _held: gate.read().map_err(|_| failed())? }
            }
            _ => Turn::None,
        })
    }
}

impl SqlConnection for SqliteSession<'_> {
    fn run(&mut self, sql: &str) -> Result<()> {
        self.connection.execute(sql)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        let statement = self.connection.prepare(sql)?;
        self.statements.push(statement);
        Ok(Prepared(self.statements.len() - 1))
    }

    fn execute(&mut self, statement: Prepared, parameters: &[Value<'_>]) -> OpResult<u64> {
        self.connection.query(self.statements[statement.0], parameters, &mut |_| {})?;
        Ok(u64::try_from(self.connection.changes())?)
    }

    fn query(
        &mut self,
        statement: Prepared,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult {
        let _alone = match self.turn {
            Turn::None => self.turn(Access::Read)?,
            _ => Turn::None,
        };
        self.connection.query(self.statements[statement.0], parameters, visit)
    }

    fn begin(&mut self, access: Access) -> OpResult {
        self.turn = self.turn(access)?;
        let begin = if access == Access::Write { self.begin_write } else { self.begin };
        self.connection.query(begin, &[], &mut |_| {})
    }

    fn commit(&mut self) -> OpResult {
        self.connection.query(self.commit, &[], &mut |_| {})?;
        self.turn = Turn::None;
        Ok(())
    }

    fn rollback(&mut self) {
        // The error before it is the one to report; this one only says that nothing is open.
        self.connection.query(self.rollback, &[], &mut |_| {}).ok();
        self.turn = Turn::None;
    }
}
