//! The SQL engines that can be measured: one adapter in each file.

pub mod duckdb;
pub mod postgresql;
#[cfg(feature = "sql")]
pub mod quickbeam;
mod server;
pub mod sqlite;

use anyhow::{Result, anyhow};

use super::SqlEngine;

/// Every engine, Quickbeam first.
pub fn all() -> Vec<&'static dyn SqlEngine> {
    vec![
        #[cfg(feature = "sql")]
        &quickbeam::Quickbeam,
        &sqlite::SQLITE,
        &duckdb::Duckdb,
        &sqlite::BERKELEY_DB,
        &postgresql::Postgresql,
    ]
}

/// The engine with this name.
pub fn find(name: &str) -> Result<&'static dyn SqlEngine> {
    all().into_iter().find(|engine| engine.name() == name).ok_or_else(|| {
        let known: Vec<&str> = all().iter().map(|engine| engine.name()).collect();
        anyhow!("unknown engine `{name}`; one of {}", known.join(", "))
    })
}
