//! `quickbeam stat`: what the engine counts and measures of itself.

use std::path::PathBuf;

use anyhow::Context;

use crate::output::Output;
use crate::place::Place;
use crate::{Outcome, report};

/// What to look at, and the form of the answer.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of an environment or data store
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let place = Place::open(&arguments.directory)?;
    let statistics = serde_json::to_value(place.statistics())
        .context("the statistics cannot be put into JSON")?;
    let mut output = Output::new();
    report::write(&mut output, &statistics, arguments.json)?;
    output.finish()?;
    place.close(&arguments.directory)?;
    Ok(Outcome::Done)
}
