//! `quickbeam stat`: shows the engine's statistics.

use std::path::PathBuf;

use anyhow::Context;

use crate::output::Output;
use crate::place::{Opening, Place};
use crate::{Outcome, report};

/// The arguments of `quickbeam stat`.
#[derive(clap::Args)]
pub struct StatArguments {
    /// Directory of an environment or data store
    directory: PathBuf,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    opening: Opening,
}

pub fn run(arguments: &StatArguments) -> anyhow::Result<Outcome> {
    let place = Place::open(&arguments.directory, &arguments.opening)?;
    let statistics = serde_json::to_value(place.statistics())
        .context("the statistics cannot be put into JSON")?;
    let mut output = Output::new();
    report::write(&mut output, &statistics, arguments.json)?;
    output.finish()?;
    place.close(&arguments.directory)?;
    Ok(Outcome::Done)
}
