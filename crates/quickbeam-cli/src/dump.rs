//! `quickbeam dump`: databases as text, in key order.
//!
//! Everything comes from one snapshot, so that a dump of several databases shows one moment.

use std::path::{Path, PathBuf};

use anyhow::Context;
use quickbeam::Transaction;

use crate::dump_format::{self, Format};
use crate::output::Output;
use crate::{Outcome, environment};

/// What to dump, and how bytes are written.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of the environment
    directory: PathBuf,
    /// Database to dump; without it all are dumped, one after the other
    database: Option<String>,
    /// Write printable characters as they are (format=print), not everything as hexadecimal digits
    #[arg(short, long)]
    print: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let directory: &Path = &arguments.directory;
    let format = if arguments.print { Format::Print } else { Format::ByteValue };
    let environment = environment::open(directory)?;
    let snapshot = environment.begin_read()?;
    let names = match &arguments.database {
        Some(name) => vec![name.clone()],
        None => snapshot.databases()?,
    };
    let mut output = Output::new();
    for name in names {
        dump(&snapshot, &name, format, &mut output)
            .with_context(|| format!("cannot dump {name:?} to its end"))?;
    }
    output.finish()?;
    snapshot.abort()?;
    environment::close(environment, directory)?;
    Ok(Outcome::Done)
}

fn dump(
    snapshot: &Transaction,
    name: &str,
    format: Format,
    output: &mut Output,
) -> anyhow::Result<()> {
    let database = snapshot.open_database(name)?;
    let mut cursor = database.cursor(snapshot)?;
    dump_format::write_header(output, format, name)?;
    let mut found = cursor.first()?;
    while found {
        dump_format::write_item(output, format, cursor.key())?;
        dump_format::write_item(output, format, cursor.value())?;
        found = cursor.next()?;
    }
    dump_format::write_end(output)?;
    Ok(())
}
