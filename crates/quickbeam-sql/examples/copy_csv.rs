//! COPY: loads a CSV file into a table and writes a query's result to another.
//!
//! The program decides what COPY may open. Here that is any file in one directory.
//!
//! `cargo run -p quickbeam-sql --example copy_csv`

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use quickbeam::Options;
use quickbeam_sql::{CopyAccess, CopyPlace, SqlDatabase};

/// Access to the files of one directory, without paths.
struct Folder(PathBuf);

impl Folder {
    fn path(&self, place: &CopyPlace) -> io::Result<PathBuf> {
        match place {
            CopyPlace::File(name) if !name.contains(['/', '\\']) => Ok(self.0.join(name)),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

impl CopyAccess for Folder {
    fn reader(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(self.path(place)?)?))
    }

    fn writer(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(BufWriter::new(File::create(self.path(place)?)?)))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    fs::write(
        directory.path().join("cities.csv"),
        "name,country,people\nLisbon,Portugal,545796\nOslo,Norway,717710\nPorto,Portugal,231800\n",
    )?;

    let database = SqlDatabase::open_in_memory(Options::default())?;
    let connection = database.connect();
    connection.set_copy_access(Folder(directory.path().to_owned()));
    connection.execute(
        "CREATE TABLE city (name TEXT PRIMARY KEY, country TEXT NOT NULL, people INTEGER)",
        &[],
    )?;
    let rows = connection.execute("COPY city FROM 'cities.csv' WITH (FORMAT csv, HEADER)", &[])?;
    println!("{rows} rows loaded");

    connection.execute(
        "COPY (SELECT country, sum(people) AS people FROM city GROUP BY country ORDER BY country)
         TO 'countries.csv' WITH (FORMAT csv, HEADER)",
        &[],
    )?;
    let written = fs::read_to_string(directory.path().join("countries.csv"))?;
    print!("{written}");
    assert_eq!(written, "country,people\nNorway,717710\nPortugal,777596\n");

    // A path outside the directory is refused by the program, not by SQL.
    let refused = connection.execute("COPY city TO '/tmp/city.csv' WITH (FORMAT csv)", &[]);
    println!("refused: {}", refused.expect_err("the folder has no such file"));
    Ok(())
}
