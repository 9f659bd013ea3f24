//! Uses SQL from asynchronous tasks: each task's statements run in `spawn_blocking`, on a
//! connection of their own.
//!
//! `cargo run -p quickbeam-sql --example async_sql`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase, params};
use tokio::runtime;
use tokio::task::{JoinSet, spawn_blocking};

/// Runs `work` with a new connection on a thread that may block. A connection is made quickly; it
/// stays on its thread, and so do rows and transactions.
async fn with_connection<T: Send + 'static>(
    database: &SqlDatabase,
    work: impl FnOnce(&mut Connection) -> quickbeam_sql::Result<T> + Send + 'static,
) -> quickbeam_sql::Result<T> {
    let database = database.clone();
    spawn_blocking(move || work(&mut database.connect())).await.expect("the closure does not panic")
}

async fn order(database: SqlDatabase, fruit: &'static str) -> quickbeam_sql::Result<i64> {
    with_connection(&database, move |connection| {
        let transaction = connection.transaction()?;
        transaction
            .execute("UPDATE fruit SET stock = stock - 1 WHERE name = $1", params![fruit])?;
        let query = "SELECT stock FROM fruit WHERE name = $1";
        let left = transaction.query_row(query, params![fruit], |row| row.get(0))?;
        transaction.commit()?;
        Ok(left)
    })
    .await
}

async fn serve(database: SqlDatabase) -> Result<(), Box<dyn Error>> {
    let script = "CREATE TABLE fruit (name TEXT PRIMARY KEY, stock BIGINT NOT NULL);
        INSERT INTO fruit VALUES ('apple', 7), ('pear', 3)";
    with_connection(&database, move |connection| connection.execute_script(script)).await?;
    let mut requests = JoinSet::new();
    for fruit in ["apple", "pear"] {
        let database = database.clone();
        requests.spawn(async move { (fruit, order(database, fruit).await) });
    }
    while let Some(done) = requests.join_next().await {
        let (fruit, left) = done?;
        println!("{fruit}: {} left", left?);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let database = SqlDatabase::open_in_memory(Options::default())?;
    runtime::Builder::new_current_thread().build()?.block_on(serve(database))
}
