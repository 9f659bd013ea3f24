//! `quickbeam stat`: the statistics of an environment.

use std::path::PathBuf;

use anyhow::Context;

use crate::output::Output;
use crate::{Outcome, environment, report};

/// The environment to look at, and the form of the answer.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of the environment
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let environment = environment::open(&arguments.directory)?;
    let statistics = serde_json::to_value(environment.statistics())
        .context("the statistics cannot be put into JSON")?;
    let mut output = Output::new();
    report::write(&mut output, &statistics, arguments.json)?;
    output.finish()?;
    environment::close(environment, &arguments.directory)?;
    Ok(Outcome::Done)
}
