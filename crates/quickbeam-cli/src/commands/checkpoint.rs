//! `quickbeam checkpoint`: writes a checkpoint, so that the next opening reads less of the log.

use std::path::PathBuf;

use anyhow::Context;

use crate::Outcome;
use crate::place::{self, Opening};

/// The arguments of `quickbeam checkpoint`.
#[derive(clap::Args)]
pub struct CheckpointArguments {
    /// Directory of the environment
    directory: PathBuf,
    #[command(flatten)]
    opening: Opening,
}

pub fn run(arguments: &CheckpointArguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    match place::open_environment(directory, &arguments.opening) {
        Ok(environment) => {
            let done = environment.checkpoint();
            done.with_context(|| format!("cannot write a checkpoint in {}", directory.display()))?;
            environment.close().with_context(|| format!("cannot close {}", directory.display()))?;
        }
        #[cfg(feature = "sql")]
        Err(error) => {
            crate::served::connect(directory, error)?.execute("CHECKPOINT", &[])?;
        }
        #[cfg(not(feature = "sql"))]
        Err(error) => return Err(error),
    }
    Ok(Outcome::Done)
}
