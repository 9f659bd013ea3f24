//! `quickbeam verify`: checks everything stored.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;

use crate::output::Output;
use crate::place::Place;
use crate::{Outcome, report};

/// What to check, and the form of the answer.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of an environment or data store
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    let mut place = Place::open(directory)?;
    let verified =
        place.verify().with_context(|| format!("cannot verify {}", directory.display()))?;
    let value = serde_json::to_value(&verified).context("the report cannot be put into JSON")?;
    let mut output = Output::new();
    report::write(&mut output, &value, arguments.json)?;
    if verified.complaints.is_empty() {
        output.finish()?;
        place.close(directory)?;
        return Ok(Outcome::Done);
    }
    if !arguments.json {
        writeln!(output, "Not sound: dump what can be read, or restore a backup.")?;
    }
    output.finish()?;
    // No closing: that would make a checkpoint of a state which is known to be wrong.
    std::mem::forget(place);
    Ok(Outcome::ProblemFound)
}
