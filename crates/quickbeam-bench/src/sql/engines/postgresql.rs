//! PostgreSQL: a private server in the benchmark's own directory, spoken to through its socket by
//! its own client library with prepared statements.

use std::ffi::{CStr, CString};
use std::io::Write;
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};

use super::server::{self, Server};
use crate::engine::{Mode, OpResult, Support};
use crate::engines::ffi::libpq::{PgConnection, PgLibrary};
use crate::engines::library;
use crate::sql::retry::settled;
use crate::sql::{
    Access, Clustering, Dialect, Prepared, Rows, SqlConnection, SqlEngine, SqlInstance, SqlSetup,
    Value, VisitRow,
};

static LIBRARY: OnceLock<Result<Arc<PgLibrary>, String>> = OnceLock::new();

/// Bytes of rows that are sent to a copy at once.
const COPY_BYTES: usize = 1 << 16;

/// The adapter.
pub struct Postgresql;

impl SqlEngine for Postgresql {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    fn version(&self) -> Result<String> {
        library(&LIBRARY, PgLibrary::load)?;
        server::version()
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::Ds => Support::No("SQL has transactions"),
            Mode::InMem => Support::No("there is always a log"),
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &SqlSetup) -> Result<Box<dyn SqlInstance>> {
        let library = library(&LIBRARY, PgLibrary::load)?;
        if let Some(url) = &setup.url {
            let settings = "a server that was there already, with its own settings".to_owned();
            let url = url.clone();
            return Ok(Box::new(OpenPostgres { library, how: url, settings, server: None }));
        }
        let settings = settings(setup);
        let server = Server::start(&setup.directory, &settings)?;
        let how = server.connection_string();
        server.wait(|| PgConnection::connect(&library, &how).map(|_| ()))?;
        let settings = format!("read committed, prepared statements; {}", settings.join(", "));
        Ok(Box::new(OpenPostgres { library, how, settings, server: Some(server) }))
    }
}

/// No checkpoint while a run is on: after one, the first change of a page logs the whole page.
fn settings(setup: &SqlSetup) -> Vec<String> {
    let (fsync, commit) = match setup.mode {
        Mode::Wns => ("off", "on"),
        Mode::Ns => ("on", "off"),
        _ => ("on", "on"),
    };
    vec![
        format!("fsync={fsync}"),
        format!("synchronous_commit={commit}"),
        format!("shared_buffers={}MB", (setup.cache_bytes >> 20).max(1)),
        format!("max_connections={}", setup.threads + 10),
        "wal_level=minimal".to_owned(),
        "max_wal_senders=0".to_owned(),
        "wal_buffers=16MB".to_owned(),
        "max_wal_size=8GB".to_owned(),
        "checkpoint_timeout=1h".to_owned(),
        "work_mem=64MB".to_owned(),
        "jit=off".to_owned(),
    ]
}

struct OpenPostgres {
    library: Arc<PgLibrary>,
    how: String,
    settings: String,
    /// Ours, unless there was one already.
    server: Option<Server>,
}

impl SqlInstance for OpenPostgres {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            hash_key: None,
            keyed_table: "",
            clustering: Clustering::Command,
            procedures: true,
            truncate: true,
            one_thread: Some("SET max_parallel_workers_per_gather = 0"),
            ..Dialect::default()
        }
    }

    fn connect(&self) -> Result<Box<dyn SqlConnection + '_>> {
        Ok(Box::new(PgSession(PgConnection::connect(&self.library, &self.how)?)))
    }

    fn settle(&self) -> Result<()> {
        settled(PgConnection::connect(&self.library, &self.how)?.run(c"VACUUM ANALYZE"))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.server.map_or(Ok(()), Server::stop)
    }
}

struct PgSession(PgConnection);

impl SqlConnection for PgSession {
    fn run(&mut self, sql: &str) -> Result<()> {
        settled(self.0.run(&CString::new(sql)?)).map_err(|error| anyhow!("{sql}: {error:#}"))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        let prepared = settled(self.0.prepare(sql));
        Ok(Prepared(prepared.map_err(|error| anyhow!("{sql}: {error:#}"))?))
    }

    fn execute(&mut self, statement: Prepared, parameters: &[Value<'_>]) -> OpResult<u64> {
        self.0.query(statement.0, parameters, &mut |_| {})
    }

    fn query(
        &mut self,
        statement: Prepared,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult {
        self.0.query(statement.0, parameters, visit).map(|_| ())
    }

    fn begin(&mut self, access: Access) -> OpResult {
        let begin: &CStr = match access {
            Access::Read => c"BEGIN READ ONLY",
            Access::Write => c"BEGIN",
        };
        self.0.run(begin)
    }

    fn commit(&mut self) -> OpResult {
        self.0.run(c"COMMIT")
    }

    fn rollback(&mut self) {
        // The error before it is the one to report; a lost connection shows at the next statement.
        self.0.run(c"ROLLBACK").ok();
    }

    fn load(&mut self, table: &str, _columns: usize, rows: &mut Rows<'_>) -> Result<()> {
        settled(self.0.copy_in(&CString::new(format!("COPY {table} FROM STDIN"))?))?;
        let mut lines = Vec::with_capacity(2 * COPY_BYTES);
        rows(&mut |row| {
            for (position, value) in row.iter().enumerate() {
                if position > 0 {
                    lines.push(b'\t');
                }
                match value {
                    Value::Integer(number) => write!(lines, "{number}")?,
                    Value::Bigint(number) => write!(lines, "{number}")?,
                    Value::Text(text) => {
                        let escaped = text.replace('\\', "\\\\").replace('\t', "\\t");
                        lines.extend_from_slice(escaped.replace('\n', "\\n").as_bytes());
                    }
                }
            }
            lines.push(b'\n');
            if lines.len() >= COPY_BYTES {
                self.0.copy(&lines)?;
                lines.clear();
            }
            Ok(())
        })?;
        self.0.copy(&lines)?;
        settled(self.0.copy_end())
    }
}
