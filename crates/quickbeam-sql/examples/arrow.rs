//! Query results as Arrow record batches.
//!
//! `cargo run -p quickbeam-sql --example arrow`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;

use quickbeam::Options;
use quickbeam_sql::arrow_array::{Array, Float64Array, Int64Array};
use quickbeam_sql::{SqlDatabase, params};

fn main() -> Result<(), Box<dyn Error>> {
    let mut connection = SqlDatabase::open_in_memory(Options::default())?.connect();
    connection.execute(
        "CREATE TABLE reading (id BIGINT PRIMARY KEY, celsius DOUBLE PRECISION NOT NULL)",
        &[],
    )?;
    let mut insert = connection.prepare("INSERT INTO reading VALUES ($1, $2)")?;
    connection.begin()?;
    for id in 0..10_000_i64 {
        insert.execute(params![id, id as f64 / 100.0])?;
    }
    connection.commit()?;

    // A batch at a time: a large result is never in memory whole.
    let query = "SELECT id, celsius FROM reading WHERE celsius >= $1";
    let mut rows = connection.query(query, params![50.0])?;
    println!("schema: {:?}", rows.schema().fields().iter().map(|f| f.name()).collect::<Vec<_>>());
    let (mut count, mut warmest) = (0, f64::MIN);
    while let Some(batch) = rows.next_batch(1024)? {
        let column = batch.column(1).as_any().downcast_ref::<Float64Array>();
        let column = column.expect("DOUBLE PRECISION is Float64");
        count += batch.num_rows();
        warmest = column.iter().flatten().fold(warmest, f64::max);
    }
    drop(rows);
    println!("{count} readings, the warmest {warmest}");
    assert_eq!((count, warmest), (5_000, 99.99));

    // Or all batches at once.
    let batches = connection.query_batches("SELECT count(*) FROM reading", &[])?;
    let column = batches[0].column(0).as_any().downcast_ref::<Int64Array>();
    println!("{} rows in all", column.expect("count is BIGINT").value(0));
    Ok(())
}
