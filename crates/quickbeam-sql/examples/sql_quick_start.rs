//! Creates a table, inserts and queries rows, and runs a transaction.
//!
//! `cargo run -p quickbeam-sql --example sql_quick_start [DIRECTORY]`; it can run twice on one
//! directory.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;
use std::path::PathBuf;

use quickbeam::Options;
use quickbeam_sql::{SqlDatabase, SqlState, params};

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args().nth(1).map_or(temporary.path().to_owned(), PathBuf::from);
    let database = SqlDatabase::open(directory, Options::default())?;
    let connection = database.connect();
    connection.execute(
        "CREATE TABLE IF NOT EXISTS fruit (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stock INTEGER CHECK (stock >= 0))",
        &[],
    )?;

    // A prepared statement is compiled once.
    let mut upsert = connection.prepare(
        "INSERT INTO fruit VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET stock = $3",
    )?;
    for (id, name, stock) in [(1, "apple", 7), (2, "pear", 3), (3, "plum", 12)] {
        upsert.execute(params![id, name, stock])?;
    }

    // A failed statement is undone; the transaction goes on.
    connection.begin()?;
    connection.execute("UPDATE fruit SET stock = stock - 1 WHERE name = $1", params!["apple"])?;
    let error = connection.execute("UPDATE fruit SET stock = -1 WHERE name = 'pear'", &[]);
    assert!(error.is_err_and(|error| error.state() == SqlState::CheckViolation));
    connection.commit()?;

    let query = "SELECT name, stock FROM fruit WHERE stock > $1 ORDER BY name";
    let mut rows = connection.query(query, params![5])?;
    while let Some(row) = rows.next()? {
        println!("{}: {}", row.get::<&str>(0)?, row.get::<i64>(1)?);
    }
    drop(rows);

    let total = connection.query("SELECT sum(stock) FROM fruit", &[])?.collect()?;
    println!("in all: {}", total[0][0]);
    Ok(())
}
