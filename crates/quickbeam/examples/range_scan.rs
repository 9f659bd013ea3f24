//! Reads ranges: forwards, backwards, and without copying each record.
//!
//! Keys are ordered by their bytes. Big-endian integers sort as the numbers do.
//!
//! `cargo run -p quickbeam --example range_scan`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::{Environment, Options};

fn number(key: &[u8]) -> u64 {
    key.try_into().map_or(0, u64::from_be_bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let environment = Environment::open(directory.path(), Options::default())?;
    let squares = environment.create_database("squares")?;

    // Sorted input fills pages completely.
    let transaction = environment.begin()?;
    let records = (0..10_000_u64).map(|n| (n.to_be_bytes(), (n * n).to_be_bytes()));
    squares.bulk_load(&transaction, records)?;
    transaction.commit()?;

    let snapshot = environment.begin_read()?;

    // Forwards from 100 to 104.
    for record in squares.range(&snapshot, 100_u64.to_be_bytes()..105_u64.to_be_bytes()) {
        let (key, value) = record?;
        println!("{} squared is {}", number(&key), number(&value));
    }

    // Backwards from the end.
    for record in squares.iter(&snapshot).rev().take(2) {
        let (key, value) = record?;
        println!("{} squared is {}", number(&key), number(&value));
    }

    // Many records: `next_borrowed` copies none of them.
    let mut records = squares.range(&snapshot, 1_000_u64.to_be_bytes()..2_000_u64.to_be_bytes());
    let (mut count, mut sum) = (0, 0);
    while let Some((_, value)) = records.next_borrowed()? {
        count += 1;
        sum += number(value);
    }
    println!("{count} squares from 1000 to 1999 add up to {sum}");
    assert_eq!((count, sum), (1_000, (1_000..2_000).map(|n| n * n).sum::<u64>()));
    assert_eq!(squares.count(&snapshot)?, 10_000);
    Ok(())
}
