//! `quickbeam verify`: checks everything stored.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;

use crate::output::Output;
use crate::{Outcome, environment, report};

/// The environment to check, and the form of the answer.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of the environment
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    let environment = environment::open(directory)?;
    let verified = environment
        .verify()
        .with_context(|| format!("cannot verify {} to its end", directory.display()))?;
    let outcome = if verified.problems.is_empty() { Outcome::Done } else { Outcome::ProblemFound };
    let value = serde_json::to_value(&verified).context("the report cannot be put into JSON")?;
    let mut output = Output::new();
    report::write(&mut output, &value, arguments.json)?;
    if !arguments.json && outcome == Outcome::ProblemFound {
        writeln!(output, "problems were found: dump what can be read, or restore a backup")?;
    }
    output.finish()?;
    environment::close(environment, directory)?;
    Ok(outcome)
}
