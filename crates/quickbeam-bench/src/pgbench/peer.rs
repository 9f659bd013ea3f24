//! The servers that are compared, with pgbench's tables in them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::work::{PgbenchSummary, Work};
use crate::engines::ffi::libpq::PgConnection;
use crate::kv::child::read_lines;
use crate::sql::engines::client_server::{COPY_BYTES, client_library};
use crate::sql::engines::server::{SCRAM_USER, Server, TRUSTED_USER, Transport, postgresql};
use crate::sql::retry::settled;

/// The password of [`SCRAM_USER`].
const PASSWORD: &str = "benchmark";

/// The table that COPY fills: as pgbench's accounts.
const COPY_TABLE: &std::ffi::CStr = c"SET client_min_messages = warning; \
    DROP TABLE IF EXISTS copied; CREATE TABLE copied \
    (aid INTEGER NOT NULL PRIMARY KEY, bid INTEGER, abalance INTEGER, filler CHAR(84))";

/// A running server.
pub struct Peer {
    /// The engine's name.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// Its settings, for the report.
    pub settings: String,
    server: Server,
    /// Where scripts and messages of pgbench go.
    folder: PathBuf,
    /// How long pgbench may be silent beyond its time.
    limit: Duration,
}

/// What a server is started with.
pub struct PeerSetup<'a> {
    /// An existing directory for the data.
    pub directory: &'a Path,
    /// The size of the server's cache.
    pub cache_bytes: u64,
    /// Scale of pgbench's tables.
    pub scale: u32,
    /// Most connections at a time.
    pub sessions: usize,
    /// How long pgbench may be silent beyond its time.
    pub limit: Duration,
}

/// One run of pgbench.
#[derive(Clone, Copy, Debug)]
pub struct PgbenchRun {
    /// The workload.
    pub work: Work,
    /// How clients connect.
    pub transport: Transport,
    /// How many there are.
    pub clients: usize,
    /// When it ends.
    pub until: PgbenchEnd,
    /// Accounts of the database.
    pub accounts: u64,
    /// Seed of the random choices.
    pub seed: u64,
}

/// When a run of pgbench ends.
#[derive(Clone, Copy, Debug)]
pub enum PgbenchEnd {
    /// After this number of seconds.
    Seconds(u32),
    /// After this number of transactions of each client.
    Transactions(u32),
}

/// Lines for COPY.
pub struct CopyLines {
    rows: u64,
    parts: Vec<Vec<u8>>,
}

impl CopyLines {
    /// The lines of this number of accounts.
    pub fn new(rows: u64) -> CopyLines {
        let mut parts = Vec::new();
        let mut part = Vec::with_capacity(COPY_BYTES + 256);
        for row in 0..rows {
            let branch = row / 100_000 + 1;
            part.extend_from_slice(format!("{}\t{branch}\t0\taccount {row}\n", row + 1).as_bytes());
            if part.len() >= COPY_BYTES {
                parts.push(std::mem::take(&mut part));
            }
        }
        parts.push(part);
        CopyLines { rows, parts }
    }
}

/// What clients begin with so that their commits do not wait.
const NO_WAIT: &str = "-c synchronous_commit=off";

/// The names of the engines, Quickbeam first.
pub const ENGINES: [&str; 2] = ["quickbeam-server", "postgresql"];

impl Peer {
    /// Starts the server of an engine and fills pgbench's tables.
    pub fn start(name: &'static str, version: String, setup: &PeerSetup<'_>) -> Result<Peer> {
        let PeerSetup { cache_bytes, sessions, .. } = *setup;
        let (server, settings) = match name {
            #[cfg(feature = "sql")]
            "quickbeam-server" => {
                let durability = quickbeam::Durability::Sync;
                let data = setup.directory.join("data");
                let started = crate::sql::engines::server::quickbeam::start(
                    Some(&data),
                    durability,
                    cache_bytes,
                    sessions,
                    Transport::Tcp,
                );
                let settings =
                    format!("read committed, {durability}, {} MiB cache", cache_bytes >> 20);
                (started?, settings)
            }
            _ => {
                let settings = [
                    format!("shared_buffers={}MB", (cache_bytes >> 20).max(1)),
                    format!("max_connections={sessions}"),
                ];
                let server = postgresql::start(setup.directory, &settings, Transport::Tcp)?;
                (server, settings.join(", "))
            }
        };
        let folder = setup.directory.to_owned();
        let limit = setup.limit;
        let mut peer = Peer { name, version, settings, server, folder, limit };
        let library = client_library()?;
        let how = peer.server.connection_string(Transport::Socket);
        peer.server.wait(|| PgConnection::connect(&library, &how).map(|_| ()))?;
        peer.fill(setup.scale)?;
        Ok(peer)
    }

    fn fill(&self, scale: u32) -> Result<()> {
        let mut initialize = self.pgbench(Transport::Socket, TRUSTED_USER)?;
        initialize.args(["-i", "-q", "-s", &scale.to_string(), self.server.database()]);
        self.output_of(&mut initialize, self.limit).context("pgbench -i")?;
        let connection = self.connect()?;
        settled(connection.run(c"CREATE USER scram PASSWORD 'benchmark'"))?;
        settled(connection.run(c"GRANT SELECT ON pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history TO scram"))?;
        self.checkpoint()
    }

    fn connect(&self) -> Result<PgConnection> {
        let how = self.server.connection_string(Transport::Socket);
        PgConnection::connect(&client_library()?, &how)
    }

    /// Brings what a run has changed into the database file, so that nothing of it is left to be
    /// done while the other server is measured.
    pub fn checkpoint(&self) -> Result<()> {
        settled(self.connect()?.run(c"CHECKPOINT"))
    }

    fn pgbench(&self, transport: Transport, user: &str) -> Result<Command> {
        let mut command = Command::new(postgresql::program("pgbench")?);
        let port = self.server.port().to_string();
        command.args(["-h", &self.server.host(transport), "-p", &port, "-U", user]);
        command.env("PGSSLMODE", "disable").env("PGGSSENCMODE", "disable").env_remove("PGOPTIONS");
        Ok(command)
    }

    /// Runs pgbench and returns what it writes.
    fn output_of(&self, pgbench: &mut Command, limit: Duration) -> Result<String> {
        let messages = self.folder.join("messages");
        pgbench.stderr(File::create(&messages)?);
        let mut text = String::new();
        let outcome = read_lines(pgbench, limit, |line| {
            text.push_str(line);
            text.push('\n');
            Ok(())
        });
        outcome.with_context(|| {
            // A file that cannot be read has nothing to add to the error.
            let messages = fs::read_to_string(&messages).unwrap_or_default();
            messages.lines().take(5).collect::<Vec<_>>().join("; ")
        })?;
        Ok(text)
    }

    /// Runs pgbench and checks the balances after a TPC-B-like script; returns the rate.
    pub fn run(&self, run: &PgbenchRun) -> Result<f64> {
        let user = if run.work == Work::Connect { SCRAM_USER } else { TRUSTED_USER };
        let mut pgbench = self.pgbench(run.transport, user)?;
        let threads = std::thread::available_parallelism()?.get().min(run.clients);
        pgbench.args(["-c", &run.clients.to_string(), "-j", &threads.to_string()]);
        pgbench.arg(format!("--random-seed={}", run.seed));
        let limit = match run.until {
            PgbenchEnd::Seconds(seconds) => {
                pgbench.args(["-T", &seconds.to_string()]);
                self.limit + Duration::from_secs(seconds.into())
            }
            PgbenchEnd::Transactions(count) => {
                pgbench.args(["-t", &count.to_string()]);
                self.limit
            }
        };
        match run.work {
            Work::Select => pgbench.args(["-n", "-M", "prepared", "-b", "select-only"]),
            Work::Tpcb => pgbench.args(["-M", "prepared", "-b", "tpcb-like"]),
            Work::TpcbNoWait => {
                pgbench.args(["-M", "prepared", "-b", "tpcb-like"]).env("PGOPTIONS", NO_WAIT)
            }
            Work::Connect => {
                pgbench.args(["-n", "-C", "-b", "select-only"]).env("PGPASSWORD", PASSWORD)
            }
            Work::Pipeline | Work::Copy => {
                let script = self.folder.join("script");
                let text = run.work.script(run.accounts);
                fs::write(&script, text.context("this workload has no script")?)?;
                pgbench.args(["-n", "-M", "prepared", "-f"]).arg(script)
            }
        };
        pgbench.arg(self.server.database());
        let summary = PgbenchSummary::parse(&self.output_of(&mut pgbench, limit)?)?;
        if run.work.is_tpcb() {
            self.check_balances(summary.processed)?;
            self.checkpoint()?;
        }
        Ok(summary.rate)
    }

    /// pgbench empties the history before each run. What was committed must be there, and every
    /// amount must be in all balances.
    fn check_balances(&self, processed: u64) -> Result<()> {
        let mut connection = self.connect()?;
        let mut number = |query: &str| -> Result<i64> {
            let statement = settled(connection.prepare(query))?;
            let mut found = None;
            settled(connection.query(statement, &[], &mut |row| found = row.integer(0)))?;
            found.with_context(|| format!("{query}: no number"))
        };
        let history = number("SELECT count(*) FROM pgbench_history")?;
        ensure!(
            u64::try_from(history).ok() == Some(processed),
            "{processed} transactions were committed, history has {history}"
        );
        let accounts = number("SELECT sum(abalance) FROM pgbench_accounts")?;
        let tellers = number("SELECT sum(tbalance) FROM pgbench_tellers")?;
        let branches = number("SELECT sum(bbalance) FROM pgbench_branches")?;
        ensure!(
            accounts == tellers && tellers == branches,
            "balances differ: accounts {accounts}, tellers {tellers}, branches {branches}"
        );
        Ok(())
    }

    /// Copies the lines into an empty table; returns the rows a second.
    pub fn copy(&self, transport: Transport, lines: &CopyLines) -> Result<f64> {
        let how = self.server.connection_string(transport);
        let mut connection = PgConnection::connect(&client_library()?, &how)?;
        settled(connection.run(COPY_TABLE))?;
        let begin = Instant::now();
        settled(connection.copy_in(c"COPY copied FROM STDIN"))?;
        lines.parts.iter().try_for_each(|part| connection.copy(part))?;
        settled(connection.copy_end())?;
        let elapsed = begin.elapsed();
        let count = settled(connection.prepare("SELECT count(*) FROM copied"))?;
        let mut found = None;
        settled(connection.query(count, &[], &mut |row| found = row.integer(0)))?;
        let found = found.and_then(|count| u64::try_from(count).ok());
        ensure!(found == Some(lines.rows), "{found:?} of {} rows are there", lines.rows);
        settled(connection.run(c"DROP TABLE copied"))?;
        self.checkpoint()?;
        Ok(lines.rows as f64 / elapsed.as_secs_f64())
    }

    /// Stops the server.
    pub fn stop(self) -> Result<()> {
        self.server.stop()
    }
}
