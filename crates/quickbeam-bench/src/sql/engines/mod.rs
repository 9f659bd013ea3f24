//! The SQL engines that can be measured: one adapter in each file.

pub mod client_server;
pub mod duckdb;
pub mod postgresql;
#[cfg(feature = "sql")]
pub mod quickbeam;
#[cfg(feature = "sql")]
pub mod quickbeam_server;
pub mod server;
pub mod sqlite;

use anyhow::{Result, anyhow};

use super::SqlEngine;

/// Every engine as its users have it first of all: Quickbeam in process, PostgreSQL by its socket.
pub fn all() -> Vec<&'static dyn SqlEngine> {
    vec![
        #[cfg(feature = "sql")]
        &quickbeam::Quickbeam,
        &sqlite::SQLITE,
        &duckdb::Duckdb,
        &sqlite::BERKELEY_DB,
        &postgresql::BY_SOCKET,
    ]
}

/// Every engine in every way to reach it, Quickbeam first.
pub fn all_ways() -> Vec<&'static dyn SqlEngine> {
    let mut engines = all();
    engines.push(&postgresql::BY_TCP);
    #[cfg(feature = "sql")]
    engines.splice(1..1, SERVERS);
    engines
}

/// Quickbeam's server in both ways to reach it.
#[cfg(feature = "sql")]
const SERVERS: [&dyn SqlEngine; 2] = [&quickbeam_server::BY_SOCKET, &quickbeam_server::BY_TCP];

/// The engine with this name.
pub fn find(name: &str) -> Result<&'static dyn SqlEngine> {
    all_ways().into_iter().find(|engine| engine.name() == name).ok_or_else(|| {
        let known: Vec<&str> = all_ways().iter().map(|engine| engine.name()).collect();
        anyhow!("unknown engine `{name}`; one of {}", known.join(", "))
    })
}
