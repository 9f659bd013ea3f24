//! SQL statements and key/value calls in one transaction.
//!
//! `cargo run -p quickbeam-sql --example mixed_kv_and_sql`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::{Environment, Options};
use quickbeam_sql::{SqlDatabase, params};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::open(directory.path(), Options::default())?;
    let photos = environment.create_database("photos")?;

    // SQL on an environment that is open already.
    let database = SqlDatabase::attach(&environment)?;
    let sql = database.connect();
    sql.execute("CREATE TABLE album (id INTEGER PRIMARY KEY, title TEXT, photos INTEGER)", &[])?;
    sql.execute("INSERT INTO album VALUES (1, 'Summer', 0)", &[])?;

    // The picture is a record, its album a row. Both change, or neither does.
    let mut count = sql.prepare("UPDATE album SET photos = photos + 1 WHERE id = $1")?;
    let transaction = environment.begin()?;
    photos.put(&transaction, b"beach.jpg", &[0xff; 20_000])?;
    count.execute_in(&transaction, params![1])?;
    transaction.commit()?;

    // A dropped transaction rolls back both.
    let transaction = environment.begin()?;
    photos.put(&transaction, b"blurred.jpg", &[0; 20_000])?;
    count.execute_in(&transaction, params![1])?;
    drop(transaction);

    let snapshot = environment.begin_read()?;
    assert!(photos.exists(&snapshot, b"beach.jpg")?);
    assert!(!photos.exists(&snapshot, b"blurred.jpg")?);
    let mut select = sql.prepare("SELECT title, photos FROM album")?;
    let mut rows = select.query_in(&snapshot, &[])?;
    while let Some(row) = rows.next()? {
        println!("{}: {} photos", row.get::<&str>(0)?, row.get::<i32>(1)?);
        assert_eq!(row.get::<i32>(1)?, 1);
    }
    drop(rows);

    // Every key/value database is also a table of the columns `key` and `value`.
    let sizes = sql.query("SELECT length(value) FROM photos", &[])?.collect()?;
    println!("bytes: {}", sizes[0][0]);
    Ok(())
}
