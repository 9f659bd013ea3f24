//! Quickbeam's server: a private `quickbeam serve`, spoken to as PostgreSQL is.

use std::ffi::CStr;

use anyhow::{Result, anyhow};

use super::client_server::{ServedDatabase, client_library};
use super::quickbeam::durability;
use super::server::{Transport, quickbeam};
use crate::engine::{Mode, Support};
use crate::sql::{Dialect, SqlEngine, SqlInstance, SqlSetup};

/// The server by its socket.
pub const BY_SOCKET: QuickbeamServer = QuickbeamServer { transport: Transport::Socket };
/// The server by TCP.
pub const BY_TCP: QuickbeamServer = QuickbeamServer { transport: Transport::Tcp };

const SETTLE: &CStr = c"CHECKPOINT";

/// The adapter.
pub struct QuickbeamServer {
    transport: Transport,
}

impl SqlEngine for QuickbeamServer {
    fn name(&self) -> &'static str {
        match self.transport {
            Transport::Socket => "quickbeam-server",
            Transport::Tcp => "quickbeam-server-tcp",
        }
    }

    fn version(&self) -> Result<String> {
        client_library()?;
        quickbeam::program()?;
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::Ds => Support::No("SQL has transactions"),
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &SqlSetup) -> Result<Box<dyn SqlInstance>> {
        let dialect = Dialect { hash_key: Some(" USING HASH"), ..Dialect::default() };
        if let Some(url) = &setup.url {
            return Ok(Box::new(ServedDatabase::at(url, dialect, SETTLE)?));
        }
        let durability = durability(setup.mode);
        let directory = (setup.mode != Mode::InMem).then_some(&*setup.directory);
        let sessions = setup.threads + 10;
        let server =
            quickbeam::start(directory, durability, setup.cache_bytes, sessions, self.transport)
                .map_err(|error| anyhow!("quickbeam serve: {error:#}"))?;
        let settings =
            format!("read committed, {durability}, prepared statements, {}", self.transport.name());
        let open = ServedDatabase::wait_for(server, self.transport, settings, dialect, SETTLE)?;
        Ok(Box::new(open))
    }
}
