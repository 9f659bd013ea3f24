//! Reads ranges: with iterators, backwards, and with a scan that delivers a leaf at a time.
//!
//! Keys are ordered by their bytes. Big-endian integers sort as the numbers do.
//!
//! `cargo run -p quickbeam --example range_scan`

use std::error::Error;
use std::ops::Bound;

use quickbeam::{Environment, Options, Scan, ScanBatch};

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

    // Many records: a scan fills a batch with the records of one leaf. Reuse both.
    let (low, high) = (1_000_u64.to_be_bytes(), 2_000_u64.to_be_bytes());
    let mut scan = Scan::new(Bound::Included(&low), Bound::Excluded(&high));
    let mut batch = ScanBatch::default();
    let (mut count, mut sum) = (0, 0);
    while squares.scan(&snapshot, &mut scan, &mut batch)? {
        for record in 0..batch.len() {
            count += 1;
            sum += number(batch.value(record));
        }
    }
    println!("{count} squares from 1000 to 1999 add up to {sum}");
    assert_eq!((count, sum), (1_000, (1_000..2_000).map(|n| n * n).sum::<u64>()));
    Ok(())
}
