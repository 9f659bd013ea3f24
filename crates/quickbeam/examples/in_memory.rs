//! An environment without a directory: transactions and snapshots, and nothing on disk.
//!
//! `cargo run -p quickbeam --example in_memory`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use quickbeam::{AccessMethod, Environment, Options, Result};

fn main() -> Result<()> {
    let environment = Environment::open_in_memory(Options::default())?;
    // A hash database finds single records faster than a B+tree and has no key order.
    let sessions = environment.create_database_with("sessions", AccessMethod::Hash)?;

    environment.transact(|transaction| {
        sessions.put(transaction, b"token-1", b"alice")?;
        sessions.put(transaction, b"token-2", b"bob")
    })?;

    // A snapshot is not affected by later commits.
    let snapshot = environment.begin_read()?;
    environment.transact(|transaction| sessions.delete(transaction, b"token-1"))?;
    assert!(sessions.exists(&snapshot, b"token-1")?);
    drop(snapshot);

    let now = environment.begin_read()?;
    assert!(!sessions.exists(&now, b"token-1")?);
    drop(now);

    let statistics = environment.statistics();
    println!("{} commits, {} bytes of cache used", statistics.commits, statistics.cache_used);
    environment.close()
}
