//! Uses an environment from asynchronous tasks: each transaction runs as a whole in
//! `spawn_blocking`.
//!
//! `cargo run -p quickbeam --example async_tokio`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::{Database, Environment, Options};
use tokio::runtime;
use tokio::task::{JoinSet, spawn_blocking};

/// Adds one to a counter and returns its value. A transaction may wait for locks and for the disk,
/// so it belongs on a thread that may block, and no `.await` is inside of it.
async fn count_visit(environment: Environment, counters: Database) -> quickbeam::Result<u64> {
    let transact = move || {
        environment.transact(|transaction| {
            let old = counters.get(transaction, b"visits")?;
            let old = old.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
            counters.put(transaction, b"visits", &(old + 1).to_be_bytes())?;
            Ok(old + 1)
        })
    };
    spawn_blocking(transact).await.expect("the closure does not panic")
}

async fn serve(environment: Environment) -> Result<(), Box<dyn Error>> {
    let counters = environment.open_or_create_database("counters")?;
    let mut requests = JoinSet::new();
    for _ in 0..10 {
        requests.spawn(count_visit(environment.clone(), counters.clone()));
    }
    let mut most = 0;
    while let Some(visits) = requests.join_next().await {
        most = most.max(visits??);
    }
    println!("{most} visits");
    assert_eq!(most, 10);
    // Closing waits for the last checkpoint.
    Ok(spawn_blocking(move || environment.close()).await??)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::open(directory.path(), Options::default())?;
    runtime::Builder::new_current_thread().build()?.block_on(serve(environment))
}
