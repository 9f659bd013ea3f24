//! Opens an environment, writes and reads records, closes it, and opens it again.
//!
//! `cargo run -p quickbeam --example quick_start`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::{Durability, Environment, Options, TransactionOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::open(directory.path(), Options::default())?;
    let fruit = environment.open_or_create_database("fruit")?;

    // `transact` commits when the closure succeeds, and runs it again after a conflict.
    environment.transact(|transaction| {
        fruit.put(transaction, b"apple", b"red")?;
        fruit.put(transaction, b"pear", b"green")
    })?;

    // The same by hand, with a durability of its own. A transaction that is dropped is rolled back.
    let options = TransactionOptions::new().durability(Durability::NoSync);
    let transaction = environment.begin_with(options)?;
    fruit.put(&transaction, b"plum", b"blue")?;
    let before_delete = transaction.savepoint()?;
    fruit.delete(&transaction, b"apple")?;
    transaction.rollback_to(before_delete)?;
    transaction.commit()?;

    // Closing writes a checkpoint and reports errors; dropping the last handle only prints them.
    environment.close()?;

    let environment = Environment::open(directory.path(), Options::default())?;
    let fruit = environment.open_database("fruit")?;
    let snapshot = environment.begin_read()?;
    let mut cursor = fruit.cursor(&snapshot)?;
    let mut found = cursor.first()?;
    while found {
        let (key, value) = (cursor.key(), cursor.value());
        println!("{} is {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        found = cursor.next()?;
    }
    Ok(())
}
