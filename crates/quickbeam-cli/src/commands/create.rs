//! `quickbeam create`: creates an empty environment.

use std::path::PathBuf;

use anyhow::{Context, bail};
use quickbeam::{Environment, Options};

use crate::{Outcome, place};

/// The settings that are fixed when an environment is created.
#[derive(clap::Args)]
pub struct CreateArguments {
    /// Directory of the new environment; created if it does not exist
    directory: PathBuf,
    /// Page size in bytes: a power of two from 4096 to 65536
    #[arg(long, value_name = "BYTES")]
    page_size: Option<usize>,
}

pub fn run(arguments: &CreateArguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    let shown = directory.display();
    // Opening would succeed on an existing environment and silently keep its page size.
    match Environment::open(directory, place::existing()) {
        Err(quickbeam::Error::NotAnEnvironment { .. }) => {}
        Ok(_) | Err(quickbeam::Error::Locked { .. }) => {
            bail!("{shown} is an environment already; choose another directory or remove it first")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot create {shown}")),
    }
    let mut options = Options::new().create(true);
    if let Some(page_size) = arguments.page_size {
        options.page_size = page_size;
    }
    let is_new = !directory.exists();
    let made = Environment::open(directory, options).and_then(Environment::close);
    if let Err(error) = made {
        let is_ours = is_new && !matches!(error, quickbeam::Error::Locked { .. });
        if is_ours && directory.exists() {
            // A half-made environment would only be in the way.
            std::fs::remove_dir_all(directory)
                .with_context(|| format!("cannot remove the unfinished environment {shown}"))?;
        }
        return Err(error).with_context(|| format!("cannot create the environment {shown}"));
    }
    Ok(Outcome::Done)
}
