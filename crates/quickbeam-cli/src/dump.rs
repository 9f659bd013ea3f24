//! `quickbeam dump`: databases as text: trees in the order of their keys, hash databases in the order of hash values.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::Outcome;
use crate::dump_format::{self, Format};
use crate::output::Output;
use crate::place::Place;

/// What to dump, and how bytes are written.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of an environment or data store
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
    let mut place = Place::open(directory)?;
    let mut names = place.databases()?;
    if let Some(name) = &arguments.database {
        // Asked before the first byte is written, so that a mistyped name leaves no half dump.
        if !names.contains(name) {
            bail!("no database {name:?} in {}; `quickbeam list` shows them", directory.display());
        }
        names = vec![name.clone()];
    }
    let mut output = Output::new();
    for name in names {
        dump(&mut place, &name, format, &mut output)
            .with_context(|| format!("cannot dump {name:?} to its end"))?;
    }
    output.finish()?;
    place.close(directory)?;
    Ok(Outcome::Done)
}

fn dump(place: &mut Place, name: &str, format: Format, output: &mut Output) -> anyhow::Result<()> {
    dump_format::write_header(output, format, name, place.access_method(name)?)?;
    place.records(name, |key, value| {
        dump_format::write_item(output, format, key)?;
        dump_format::write_item(output, format, value)?;
        Ok(())
    })?;
    dump_format::write_end(output)?;
    Ok(())
}
