//! `quickbeam backup`: copies an environment into a new directory, and checks such a copy.
//!
//! The environment is opened here. A process that serves it writes the backup itself: on this
//! command, or on `SELECT quickbeam_backup('NAME')`.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::verify::verify;
use crate::output::Output;
use crate::place::{self, Opening, Place};
use crate::report::ReportFormat;
use crate::{Outcome, report};

/// The arguments of `quickbeam backup`.
#[derive(clap::Args)]
pub struct BackupArguments {
    /// Directory of the environment; without --into, of the backup to check
    directory: PathBuf,
    /// Write the backup into this new or empty directory
    #[arg(long, value_name = "NEW", required_unless_present = "check")]
    into: Option<PathBuf>,
    /// Recover the backup in memory and verify it; its files do not change
    #[arg(long)]
    check: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    opening: Opening,
}

pub fn run(arguments: &BackupArguments) -> anyhow::Result<Outcome> {
    let BackupArguments { directory, into, check, json, opening } = arguments;
    if let Some(into) = into {
        // With --check the report is that of the verification.
        write(directory, into, (!check).then_some(*json), opening)?;
    }
    if !check {
        return Ok(Outcome::Done);
    }
    let backup = into.as_ref().unwrap_or(directory);
    let environment = place::open_environment_read_only(backup, opening)?;
    verify(Place::Environment(environment), backup, *json)
}

/// Writes a backup, and a report in that form.
fn write(from: &Path, into: &Path, as_json: Option<bool>, opening: &Opening) -> anyhow::Result<()> {
    let value = match place::open_environment(from, opening) {
        Ok(environment) => {
            let copied = environment.backup_to(into);
            let copied =
                copied.with_context(|| format!("cannot back up into {}", into.display()))?;
            environment.close().with_context(|| format!("cannot close {}", from.display()))?;
            serde_json::to_value(&copied).context("the report cannot be put into JSON")?
        }
        #[cfg(feature = "sql")]
        Err(error) => crate::served::backup(&mut crate::served::connect(from, error)?, into)?,
        #[cfg(not(feature = "sql"))]
        Err(error) => return Err(error),
    };
    let Some(as_json) = as_json else { return Ok(()) };
    let mut output = Output::new();
    report::write(&mut output, &value, ReportFormat::from(as_json))?;
    output.finish()?;
    Ok(())
}
