//! PostgreSQL: a private server in the benchmark's own directory.

use std::ffi::CStr;

use anyhow::Result;

use super::client_server::{ServedDatabase, client_library};
use super::server::{Transport, postgresql};
use crate::engine::{Mode, Support};
use crate::sql::{Clustering, Dialect, SqlEngine, SqlInstance, SqlSetup};

/// PostgreSQL by its socket.
pub const BY_SOCKET: Postgresql = Postgresql { transport: Transport::Socket };
/// PostgreSQL by TCP.
pub const BY_TCP: Postgresql = Postgresql { transport: Transport::Tcp };

const SETTLE: &CStr = c"VACUUM ANALYZE";

/// The adapter.
pub struct Postgresql {
    transport: Transport,
}

impl SqlEngine for Postgresql {
    fn name(&self) -> &'static str {
        match self.transport {
            Transport::Socket => "postgresql",
            Transport::Tcp => "postgresql-tcp",
        }
    }

    fn version(&self) -> Result<String> {
        client_library()?;
        postgresql::version()
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::Ds => Support::No("SQL has transactions"),
            Mode::InMem => Support::No("there is always a log"),
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &SqlSetup) -> Result<Box<dyn SqlInstance>> {
        let dialect = Dialect {
            clustering: Clustering::Command,
            procedures: true,
            truncate: true,
            one_thread: Some("SET max_parallel_workers_per_gather = 0"),
            ..Dialect::default()
        };
        if let Some(url) = &setup.url {
            return Ok(Box::new(ServedDatabase::at(url, dialect, SETTLE)?));
        }
        let settings = settings(setup);
        let server = postgresql::start(&setup.directory, &settings, self.transport)?;
        let settings = format!(
            "read committed, prepared statements, {}; {}",
            self.transport.name(),
            settings.join(", ")
        );
        let open = ServedDatabase::wait_for(server, self.transport, settings, dialect, SETTLE)?;
        Ok(Box::new(open))
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
