//! Several connections and threads at once: constraints, isolation and changes of definitions.

mod collations;
mod computed_indexes;
mod constraints;
mod inverted_indexes;
mod merges;
mod table_locks;
mod tables;
mod transactions;

use std::time::Duration;

use quickbeam::{Isolation, Options};
use quickbeam_sql::{Connection, Result, SqlDatabase};

fn memory(isolation: Isolation, script: &str) -> SqlDatabase {
    let options = Options::new().isolation(isolation).lock_timeout(Duration::from_secs(5));
    let database = SqlDatabase::open_in_memory(options).unwrap();
    database.connect().execute_script(script).unwrap();
    database
}

fn number(connection: &Connection, query: &str) -> i64 {
    let mut rows = connection.query(query, &[]).unwrap();
    rows.next().unwrap().unwrap().get(0).unwrap()
}

/// Runs `work` in transactions until one commits or fails for good.
fn transact(
    connection: &Connection,
    mut work: impl FnMut(&Connection) -> Result<()>,
) -> Result<()> {
    loop {
        connection.begin()?;
        let done = match work(connection) {
            Ok(()) => connection.commit(),
            Err(error) => connection.rollback().and(Err(error)),
        };
        match done {
            Err(error) if error.is_retryable() => std::thread::yield_now(),
            done => return done,
        }
    }
}
