//! `quickbeam load`: loads databases and tables from a dump, atomically.
//!
//! The records of a new database are committed in batches, so that a dump of any size loads in
//! little memory. They go into a staging database ([`STAGED`]), which the final transaction
//! renames. Tables and records of existing databases are part of the final transaction. After an
//! error, `load` drops its staging databases; after a crash, the next load drops them.
//!
//! - LOAD-1: a load that fails leaves the environment as it was.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use quickbeam::{
    AccessMethod, Database, Durability, Environment, Error, Isolation, Transaction,
    TransactionOptions,
};

use super::dump_format::{Content, ItemFormat, Reader};
use crate::place::TABLES;
use crate::{Outcome, place};

/// Maximum bytes of keys and values in a batch.
const BATCH_BYTES: usize = 4 << 20;
/// Maximum records in a batch.
const BATCH_RECORDS: u64 = 50_000;

/// Name prefix of staging databases; a number follows.
const STAGED: &str = "quickbeam.load.";

/// The dump's reader. It is `Send` because a COPY may read it on another thread.
pub type DumpInput = Reader<Box<dyn BufRead + Send>>;

/// The arguments of `quickbeam load`.
#[derive(clap::Args)]
pub struct LoadArguments {
    /// Directory of the environment (`quickbeam create` creates one)
    directory: PathBuf,
    /// Database to load into; by default the one that each section names
    database: Option<String>,
    /// File to read instead of standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Add records to existing databases, replacing those with the same keys
    #[arg(long)]
    add: bool,
    #[command(flatten)]
    opening: place::Opening,
}

pub fn run(arguments: &LoadArguments) -> anyhow::Result<Outcome> {
    let directory: &Path = &arguments.directory;
    let (input, source): (Box<dyn BufRead + Send>, String) = match &arguments.file {
        None => (Box::new(BufReader::with_capacity(1 << 16, io::stdin())), "standard input".into()),
        Some(path) => {
            let shown = path.display().to_string();
            let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
            (Box::new(BufReader::with_capacity(1 << 16, file)), shown)
        }
    };
    let environment = place::open_environment(directory, &arguments.opening)?;
    let before = environment.databases()?;
    let loaded = load(&environment, arguments, Reader::new(input));
    let loaded = loaded.with_context(|| format!("cannot load {source}; nothing of it was loaded"));
    if loaded.is_err() {
        clean(&environment, &before).context("what was loaded before an error is still there")?;
    }
    for line in loaded? {
        // A message, not a result.
        let _ = writeln!(io::stderr(), "{line}");
    }
    environment.close().with_context(|| format!("cannot close {}", directory.display()))?;
    Ok(Outcome::Done)
}

/// Drops the databases of a failed load: staging databases, and SQL databases that are not in
/// `before`.
fn clean(environment: &Environment, before: &[String]) -> anyhow::Result<()> {
    for name in environment.databases()? {
        let is_new = !before.contains(&name) && name.starts_with(TABLES);
        if is_new || name.starts_with(STAGED) {
            environment.drop_database(&name)?;
        }
    }
    Ok(())
}

/// Loads every section of the input. Returns a message for each database and table.
fn load(
    environment: &Environment,
    arguments: &LoadArguments,
    mut input: DumpInput,
) -> anyhow::Result<Vec<String>> {
    let given = arguments.database.as_deref();
    // Staging databases of a crashed load.
    clean(environment, &environment.databases()?)?;
    let mut load = Load { add: arguments.add, ..Load::new(environment) };
    let mut sections = 0;
    while let Some(header) = input.header()? {
        sections += 1;
        if given.is_some() && sections > 1 {
            bail!(
                "line {}: a second database begins; leave out DATABASE to load each under its own \
                 name",
                input.line()
            );
        }
        let line = input.line();
        let at = || format!("line {line}");
        match (header.content, given.or(header.database.as_deref())) {
            (Content::Tables, _) if given.is_some() => {
                bail!("line {line}: tables are loaded under their own names; leave out DATABASE")
            }
            (Content::Tables, _) => input = load.tables(input, header.format)?,
            (Content::Records(_), None) => {
                bail!("line {line}: the dump names no database; give DATABASE")
            }
            (Content::Records(method), Some(name)) => {
                load.refuse(name).with_context(at)?;
                for dropped in &header.dropped {
                    load.lines.push(format!("{name}: {dropped} is not supported and was ignored"));
                }
                load.records(name, method, header.format, &mut input)?;
            }
        }
    }
    if sections == 0 {
        bail!("the input is empty: a dump begins with VERSION=3");
    }
    load.finish()
}

/// A load in progress.
struct Load<'e> {
    environment: &'e Environment,
    add: bool,
    /// Final names of the staging databases.
    staged: Vec<String>,
    /// Number of staging databases that were renamed.
    named: usize,
    /// The final transaction, once it has begun.
    last: Option<Transaction>,
    lines: Vec<String>,
}

impl<'e> Load<'e> {
    fn new(environment: &'e Environment) -> Load<'e> {
        let (staged, lines) = (Vec::new(), Vec::new());
        Load { environment, add: false, staged, named: 0, last: None, lines }
    }

    /// Checks a database's name before its records are loaded.
    fn refuse(&self, name: &str) -> anyhow::Result<()> {
        if name.starts_with(TABLES) {
            bail!(
                "the database {name:?} belongs to SQL's tables, which are not loaded record by \
                 record: dump the environment without a database's name, then its tables come as tables"
            );
        }
        if name.starts_with(STAGED) {
            bail!("{name:?}: names that begin with {STAGED:?} are those of databases being loaded");
        }
        if self.staged.iter().any(|known| known == name) {
            bail!("the database {name:?} is there twice");
        }
        if !self.add && self.environment.databases()?.iter().any(|known| known == name) {
            bail!(
                "there is a database {name:?} already; give DATABASE to load under another name, \
                 or --add to add to what is there"
            );
        }
        refuse_relation(self.environment, name)
    }

    fn records(
        &mut self,
        name: &str,
        method: AccessMethod,
        format: ItemFormat,
        input: &mut DumpInput,
    ) -> anyhow::Result<()> {
        let is_there = self.environment.databases()?.iter().any(|known| known == name);
        let count = if is_there || self.last.is_some() {
            let transaction = self.transaction()?;
            let database = match transaction.open_database(name) {
                Err(Error::NoSuchDatabase { .. }) => {
                    transaction.create_database_with(name, method)?
                }
                opened => opened?,
            };
            let mut count = 0;
            loop {
                let (more, is_end) = fill(transaction, &database, format, input)?;
                count += more;
                if is_end {
                    break count;
                }
            }
        } else {
            let staged = format!("{STAGED}{}", self.staged.len());
            let database = self.environment.create_database_with(&staged, method)?;
            self.staged.push(name.to_owned());
            let mut count = 0;
            loop {
                let durability = Some(Durability::WriteNoSync);
                let options = TransactionOptions::new().durability(durability);
                let batch = self.environment.begin_with(options)?;
                let (more, is_end) = fill(&batch, &database, format, input)?;
                batch.commit()?;
                count += more;
                if is_end {
                    break count;
                }
            }
        };
        self.lines.push(format!("{name}: {count} records"));
        Ok(())
    }

    /// Returns the final transaction, in which all staging databases have their final names.
    fn transaction(&mut self) -> anyhow::Result<&Transaction> {
        if self.last.is_none() {
            // It must see later commits of batches and of the catalog.
            let isolation = Some(Isolation::ReadCommitted);
            let options = TransactionOptions::new().isolation(isolation);
            self.last = Some(self.environment.begin_with(options)?);
        }
        let transaction = self.last.as_ref().ok_or_else(|| anyhow!("no transaction was begun"))?;
        for (number, name) in self.staged.iter().enumerate().skip(self.named) {
            transaction.rename_database(&format!("{STAGED}{number}"), name)?;
        }
        self.named = self.staged.len();
        Ok(transaction)
    }

    #[cfg(feature = "sql")]
    fn tables(&mut self, input: DumpInput, format: ItemFormat) -> anyhow::Result<DumpInput> {
        let environment = self.environment;
        let transaction = self.transaction()?;
        let (loaded, input) = crate::tables::load(environment, transaction, input, format)?;
        let line = |it: crate::tables::Loaded| format!("table {}: {} rows", it.table, it.rows);
        self.lines.extend(loaded.into_iter().map(line));
        Ok(input)
    }

    #[cfg(not(feature = "sql"))]
    fn tables(&mut self, _: DumpInput, _: ItemFormat) -> anyhow::Result<DumpInput> {
        bail!("these are tables, and this program was built without SQL")
    }

    /// Commits the final transaction, which makes the whole load visible.
    fn finish(mut self) -> anyhow::Result<Vec<String>> {
        self.transaction()?;
        if let Some(transaction) = self.last.take() {
            transaction.commit()?;
        }
        Ok(self.lines)
    }
}

/// Stores one batch of records. Returns their number, and whether the section has ended.
fn fill(
    transaction: &Transaction,
    database: &Database,
    format: ItemFormat,
    input: &mut DumpInput,
) -> anyhow::Result<(u64, bool)> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let (mut records, mut bytes) = (0, 0);
    while records < BATCH_RECORDS && bytes < BATCH_BYTES {
        if !input.pair(format, &mut key, &mut value)? {
            return Ok((records, true));
        }
        let put = database.put(transaction, &key, &value);
        put.with_context(|| format!("line {}", input.line()))?;
        records += 1;
        bytes += key.len() + value.len();
    }
    Ok((records, false))
}

/// Refuses a name that a table, view, index or sequence has.
#[cfg(feature = "sql")]
fn refuse_relation(environment: &Environment, name: &str) -> anyhow::Result<()> {
    if environment.databases()?.iter().any(|known| known.starts_with(TABLES)) {
        let database = quickbeam_sql::SqlDatabase::attach(environment)?;
        let catalog = database.catalog().snapshot(&environment.begin_read()?)?;
        if catalog.relation(name).is_some() {
            bail!("there is a table, view, index or sequence {name:?} already");
        }
    }
    Ok(())
}

#[cfg(not(feature = "sql"))]
fn refuse_relation(_: &Environment, _: &str) -> anyhow::Result<()> {
    Ok(())
}
