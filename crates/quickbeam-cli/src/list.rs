//! `quickbeam list`: the names of the databases.

use std::io::Write;
use std::path::PathBuf;

use crate::output::Output;
use crate::{Outcome, environment};

/// The environment to list.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of the environment
    directory: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let environment = environment::open(&arguments.directory)?;
    let mut output = Output::new();
    for name in environment.databases()? {
        writeln!(output, "{name}")?;
    }
    output.finish()?;
    environment::close(environment, &arguments.directory)?;
    Ok(Outcome::Done)
}
