//! Connections to a server by PostgreSQL's client library, with prepared statements: the same for
//! PostgreSQL and for `quickbeam serve`.

use std::ffi::{CStr, CString};
use std::io::Write;
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};

use super::server::{Server, Transport};
use crate::engine::OpResult;
use crate::engines::ffi::libpq::{PgConnection, PgLibrary};
use crate::engines::library;
use crate::sql::retry::settled;
use crate::sql::{Access, Dialect, Prepared, Rows, SqlConnection, SqlInstance, Value, VisitRow};

/// Bytes of rows that are sent to a copy at once.
pub const COPY_BYTES: usize = 1 << 16;

/// PostgreSQL's client library.
pub fn client_library() -> Result<Arc<PgLibrary>> {
    static LIBRARY: OnceLock<Result<Arc<PgLibrary>, String>> = OnceLock::new();
    library(&LIBRARY, PgLibrary::load)
}

/// A server that clients of this process are connected to.
pub(super) struct ServedDatabase {
    library: Arc<PgLibrary>,
    how: String,
    settings: String,
    dialect: Dialect,
    /// What brings statistics and the database file up to date.
    settle: &'static CStr,
    /// Ours, unless there was one already.
    server: Option<Server>,
}

impl ServedDatabase {
    /// Waits until our server answers.
    pub fn wait_for(
        mut server: Server,
        transport: Transport,
        settings: String,
        dialect: Dialect,
        settle: &'static CStr,
    ) -> Result<ServedDatabase> {
        let library = client_library()?;
        let how = server.connection_string(transport);
        server.wait(|| PgConnection::connect(&library, &how).map(|_| ()))?;
        Ok(ServedDatabase { library, how, settings, dialect, settle, server: Some(server) })
    }

    /// Uses a server that was there already.
    pub fn at(how: &str, dialect: Dialect, settle: &'static CStr) -> Result<ServedDatabase> {
        Ok(ServedDatabase {
            library: client_library()?,
            how: how.to_owned(),
            settings: "a server that was there already, with its own settings".to_owned(),
            dialect,
            settle,
            server: None,
        })
    }
}

impl SqlInstance for ServedDatabase {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn connect(&self) -> Result<Box<dyn SqlConnection + '_>> {
        Ok(Box::new(PgSession(PgConnection::connect(&self.library, &self.how)?)))
    }

    fn settle(&self) -> Result<()> {
        settled(PgConnection::connect(&self.library, &self.how)?.run(self.settle))
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
