//! `quickbeam load`: databases from text.
//!
//! Records are committed in batches, so that a dump of any size loads in little memory; the last
//! step, closing the environment, makes all of them durable. After an error the batches before it
//! are there, and loading the repaired input again replaces them with the same records.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use quickbeam::{Durability, Environment, Error, TransactionOptions};

use crate::dump_format::{Header, Reader};
use crate::{Outcome, place};

/// A batch ends when it has this many bytes of keys and values …
const BATCH_BYTES: usize = 4 << 20;
/// … or this many records.
const BATCH_RECORDS: u64 = 50_000;

/// Where to load, and from what.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of the environment (`quickbeam create` makes one)
    directory: PathBuf,
    /// Database to load into, made as the dump says if it does not exist; without it each part of the dump goes
    /// into the database that it names
    database: Option<String>,
    /// File to read instead of standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let directory: &Path = &arguments.directory;
    let (input, source): (Box<dyn BufRead>, String) = match &arguments.file {
        None => (Box::new(io::stdin().lock()), "standard input".to_owned()),
        Some(path) => {
            let shown = path.display().to_string();
            let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
            (Box::new(BufReader::with_capacity(1 << 16, file)), shown)
        }
    };
    let environment = place::open_environment(directory)?;
    load(&environment, arguments.database.as_deref(), &mut Reader::new(input))
        .with_context(|| format!("cannot load {source}"))?;
    environment.close().with_context(|| format!("cannot close {}", directory.display()))?;
    Ok(Outcome::Done)
}

/// Loads every section of the input.
fn load(
    environment: &Environment,
    database: Option<&str>,
    reader: &mut Reader<impl BufRead>,
) -> anyhow::Result<()> {
    let mut sections = 0;
    while let Some(header) = reader.header()? {
        sections += 1;
        let name = match (database, &header.database) {
            (Some(_), _) if sections > 1 => bail!(
                "line {}: a second database begins; leave out DATABASE to load each under its own \
                 name (the first one was loaded)",
                reader.line()
            ),
            (Some(name), _) => name,
            (None, Some(name)) => name,
            (None, None) => {
                bail!("line {}: the dump names no database; give DATABASE", reader.line())
            }
        };
        let count = load_section(environment, name, &header, reader)?;
        // Progress, not a result: standard error.
        let _ = writeln!(io::stderr(), "{name}: {count} records");
    }
    if sections == 0 {
        bail!("the input is empty: a dump begins with VERSION=3");
    }
    Ok(())
}

/// Loads one section and says how many records it had.
fn load_section(
    environment: &Environment,
    name: &str,
    header: &Header,
    reader: &mut Reader<impl BufRead>,
) -> anyhow::Result<u64> {
    let database = match environment.open_database(name) {
        Err(Error::NoSuchDatabase { .. }) => environment.create_database_as(name, header.method)?,
        opened => opened?,
    };
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut loaded = 0;
    loop {
        let durability = Some(Durability::WriteNoSync);
        let batch =
            environment.begin_with(TransactionOptions { durability, ..Default::default() })?;
        let (mut records, mut bytes, mut at_end) = (0, 0, false);
        while !at_end && records < BATCH_RECORDS && bytes < BATCH_BYTES {
            let so_far = || format!("{name}: {loaded} records are loaded; load the whole again");
            at_end = !reader.pair(header.format, &mut key, &mut value).with_context(so_far)?;
            if !at_end {
                database
                    .put(&batch, &key, &value)
                    .with_context(|| format!("line {}", reader.line()))
                    .with_context(so_far)?;
                records += 1;
                bytes += key.len() + value.len();
            }
        }
        batch.commit()?;
        loaded += records;
        if at_end {
            return Ok(loaded);
        }
    }
}
