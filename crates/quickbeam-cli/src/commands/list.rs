//! `quickbeam list`: lists the names of the databases.

use std::io::Write;
use std::path::PathBuf;

use crate::Outcome;
use crate::output::Output;
use crate::place::{Opening, Place};

/// The arguments of `quickbeam list`.
#[derive(clap::Args)]
pub struct ListArguments {
    /// Directory of an environment or data store
    directory: PathBuf,
    /// Add the access method of each database (btree, hash or hash_prefix) after a tab
    #[arg(short, long)]
    long: bool,
}

pub fn run(arguments: &ListArguments) -> anyhow::Result<Outcome> {
    let mut place = Place::open(&arguments.directory, &Opening::default())?;
    let mut output = Output::new();
    for name in place.databases()? {
        if arguments.long {
            writeln!(output, "{name}\t{}", place.access_method(&name)?)?;
        } else {
            writeln!(output, "{name}")?;
        }
    }
    output.finish()?;
    place.close(&arguments.directory)?;
    Ok(Outcome::Done)
}
