//! `quickbeam list`: the names of the databases.

use std::io::Write;
use std::path::PathBuf;

use crate::Outcome;
use crate::output::Output;
use crate::place::Place;

/// What to list.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of an environment or data store
    directory: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let mut place = Place::open(&arguments.directory)?;
    let mut output = Output::new();
    for name in place.databases()? {
        writeln!(output, "{name}")?;
    }
    output.finish()?;
    place.close(&arguments.directory)?;
    Ok(Outcome::Done)
}
