//! DuckDB: a file with its write-ahead log, or in memory.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};

use crate::engine::{Mode, OpResult, Support};
use crate::engines::ffi::duckdb::{DuckDbConnection, DuckDbDatabase, DuckDbLibrary};
use crate::engines::library;
use crate::sql::retry::settled;
use crate::sql::{
    Access, Clustering, Dialect, Prepared, Rows, SqlConnection, SqlEngine, SqlInstance, SqlSetup,
    Value, VisitRow,
};

static LIBRARY: OnceLock<Result<Arc<DuckDbLibrary>, String>> = OnceLock::new();

/// Rows that DuckDB gives to one thread at a time; with less, further threads are only in the way.
const ROW_GROUP: u64 = 122_880;

/// The adapter.
pub struct Duckdb;

impl SqlEngine for Duckdb {
    fn name(&self) -> &'static str {
        "duckdb"
    }

    fn version(&self) -> Result<String> {
        Ok(library(&LIBRARY, DuckDbLibrary::load)?.version().to_owned())
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::Ds => Support::No("SQL has transactions"),
            Mode::Wns | Mode::Ns => Support::No("every commit is flushed"),
            Mode::Sync | Mode::Ramdisk | Mode::InMem => Support::Yes,
        }
    }

    fn open(&self, setup: &SqlSetup) -> Result<Box<dyn SqlInstance>> {
        let path = setup.directory.join("duckdb.db").to_string_lossy().into_owned();
        let path = (setup.mode != Mode::InMem).then_some(path.as_str());
        let database = DuckDbDatabase::open(&library(&LIBRARY, DuckDbLibrary::load)?, path)?;
        let cores = std::thread::available_parallelism()?.get() as u64;
        let threads = (setup.rows / ROW_GROUP).clamp(1, cores);
        // Memory is for operators as well: a limit as small as the cache would make it spill.
        let settings = [
            format!("threads={threads}"),
            format!("memory_limit='{}MiB'", (setup.cache_bytes >> 20).max(1024)),
            "checkpoint_threshold='1GiB'".to_owned(),
            "enable_progress_bar=false".to_owned(),
        ];
        let connection = database.connect()?;
        for setting in &settings {
            settled(connection.run(&format!("SET {setting}")))?;
        }
        drop(connection);
        let settings = format!("prepared statements; {}", settings.join(", "));
        Ok(Box::new(OpenDuckDb { database, settings }))
    }
}

struct OpenDuckDb {
    database: DuckDbDatabase,
    settings: String,
}

impl SqlInstance for OpenDuckDb {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            clustering: Clustering::Loading,
            truncate: true,
            as_texts: Some(("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (", ") AS answer")),
            one_thread: Some("SET threads = 1"),
            ..Dialect::default()
        }
    }

    fn connect(&self) -> Result<Box<dyn SqlConnection + '_>> {
        let mut connection = self.database.connect()?;
        let begin = connection.prepare("BEGIN TRANSACTION")?;
        let commit = connection.prepare("COMMIT")?;
        Ok(Box::new(DuckDbSession { connection, begin, commit }))
    }

    fn settle(&self) -> Result<()> {
        let connection = self.database.connect()?;
        settled(connection.run("ANALYZE"))?;
        settled(connection.run("CHECKPOINT"))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct DuckDbSession<'d> {
    connection: DuckDbConnection<'d>,
    begin: usize,
    commit: usize,
}

impl SqlConnection for DuckDbSession<'_> {
    fn run(&mut self, sql: &str) -> Result<()> {
        settled(self.connection.run(sql)).map_err(|error| anyhow!("{sql}: {error:#}"))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        Ok(Prepared(self.connection.prepare(sql)?))
    }

    fn execute(&mut self, statement: Prepared, parameters: &[Value<'_>]) -> OpResult<u64> {
        self.connection.query(statement.0, parameters, &mut |_| {})
    }

    fn query(
        &mut self,
        statement: Prepared,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult {
        self.connection.query(statement.0, parameters, visit).map(|_| ())
    }

    fn begin(&mut self, _access: Access) -> OpResult {
        self.connection.query(self.begin, &[], &mut |_| {}).map(|_| ())
    }

    fn commit(&mut self) -> OpResult {
        self.connection.query(self.commit, &[], &mut |_| {}).map(|_| ())
    }

    fn rollback(&mut self) {
        // The error before it is the one to report; this one only says that nothing is open.
        self.connection.run("ROLLBACK").ok();
    }

    fn load(&mut self, table: &str, _columns: usize, rows: &mut Rows<'_>) -> Result<()> {
        let mut appender = self.connection.appender(table)?;
        rows(&mut |row| appender.row(row))?;
        appender.finish()
    }
}
