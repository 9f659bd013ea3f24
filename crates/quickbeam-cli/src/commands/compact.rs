//! `quickbeam compact`: gives free space of an environment or a data store back to the file system.

use std::path::PathBuf;

use anyhow::Context;

use crate::output::Output;
use crate::place::{Opening, Place};
use crate::report::ReportFormat;
use crate::{Outcome, report};

/// The arguments of `quickbeam compact`.
#[derive(clap::Args)]
pub struct CompactArguments {
    /// Directory of the environment or data store
    directory: PathBuf,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    opening: Opening,
}

pub fn run(arguments: &CompactArguments) -> anyhow::Result<Outcome> {
    let CompactArguments { directory, json, opening } = arguments;
    let mut place = Place::open(directory, opening)?;
    let compacted = place.compact();
    let compacted = compacted.with_context(|| format!("cannot compact {}", directory.display()))?;
    place.close(directory)?;
    let value = serde_json::to_value(&compacted).context("the report cannot be put into JSON")?;
    let mut output = Output::new();
    report::write(&mut output, &value, ReportFormat::from(*json))?;
    output.finish()?;
    Ok(Outcome::Done)
}
