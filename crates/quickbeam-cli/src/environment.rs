//! Opening the environment that a command works on.

use std::path::Path;

use anyhow::Context;
use quickbeam::{Environment, Options};

/// Opens the environment in `directory`, which must exist: a mistyped name makes no new one.
/// Opening recovers the environment if its last user did not close it.
pub fn open(directory: &Path) -> anyhow::Result<Environment> {
    let options = Options { create: false, ..Options::default() };
    Environment::open(directory, options)
        .with_context(|| format!("cannot open the environment {}", directory.display()))
}

/// Closes what `open` gave, and reports what a mere drop would keep to itself.
pub fn close(environment: Environment, directory: &Path) -> anyhow::Result<()> {
    environment
        .close()
        .with_context(|| format!("cannot close the environment {}", directory.display()))
}
