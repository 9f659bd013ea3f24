//! The engines that can be measured: one adapter in each file.

pub mod bdb;
pub(crate) mod ffi;
#[cfg(feature = "fjall")]
pub mod fjall;
pub mod lmdb;
pub mod quickbeam;
#[cfg(feature = "redb")]
pub mod redb;
pub mod rocksdb;
pub mod sqlite;
pub mod wiredtiger;

use std::sync::OnceLock;

use anyhow::{Result, anyhow};

use crate::engine::Engine;

/// Every engine, Quickbeam first.
pub fn all() -> Vec<&'static dyn Engine> {
    vec![
        &quickbeam::QuickbeamStore { ranges: quickbeam::RangeBy::Scan },
        &bdb::Bdb,
        &lmdb::Lmdb { writemap: false },
        &lmdb::Lmdb { writemap: true },
        &rocksdb::Rocksdb,
        &wiredtiger::Wiredtiger,
        &sqlite::SqliteStore,
        #[cfg(feature = "redb")]
        &redb::Redb,
        #[cfg(feature = "fjall")]
        &fjall::Fjall,
    ]
}

/// Other ways to read ranges of Quickbeam, for benchmarks that do.
pub fn range_readers() -> Vec<&'static dyn Engine> {
    use quickbeam::{QuickbeamStore, RangeBy};
    vec![&QuickbeamStore { ranges: RangeBy::Cursor }, &QuickbeamStore { ranges: RangeBy::Iterator }]
}

/// The engine with this name.
pub fn find(name: &str) -> Result<&'static dyn Engine> {
    all().into_iter().chain(range_readers()).find(|engine| engine.name() == name).ok_or_else(|| {
        let known: Vec<&str> = all().iter().map(|engine| engine.name()).collect();
        anyhow!("unknown engine `{name}`; one of {}", known.join(", "))
    })
}

/// The library in `cell`, loaded on first use and then kept for good: some libraries cannot be
/// unloaded and loaded again.
pub(crate) fn library<T: Clone>(
    cell: &OnceLock<Result<T, String>>,
    load: impl FnOnce() -> Result<T>,
) -> Result<T> {
    cell.get_or_init(|| load().map_err(|error| format!("{error:#}")))
        .as_ref()
        .cloned()
        .map_err(|message| anyhow!("{message}"))
}
