//! `quickbeam stat`: shows the engine's statistics.

use std::path::PathBuf;

use anyhow::Context;

use crate::output::Output;
use crate::place::{Opening, Place};
use crate::report::ReportFormat;
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
    let StatArguments { directory, json, opening } = arguments;
    let place = match Place::open(directory, opening) {
        Ok(place) => place,
        #[cfg(feature = "sql")]
        Err(error) => {
            let mut client = crate::served::connect(directory, error)?;
            write(&crate::served::report(&mut client, "statistics", "")?, *json)?;
            return Ok(Outcome::Done);
        }
        #[cfg(not(feature = "sql"))]
        Err(error) => return Err(error),
    };
    let statistics = serde_json::to_value(place.statistics());
    write(&statistics.context("the statistics cannot be put into JSON")?, *json)?;
    place.close(directory)?;
    Ok(Outcome::Done)
}

fn write(statistics: &serde_json::Value, as_json: bool) -> anyhow::Result<()> {
    let mut output = Output::new();
    report::write(&mut output, statistics, ReportFormat::from(as_json))?;
    Ok(output.finish()?)
}
