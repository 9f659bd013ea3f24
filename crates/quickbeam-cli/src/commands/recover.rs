//! `quickbeam recover`: salvages damaged environments and data stores.
//!
//! Opening an environment recovers from a crash. If durable data is damaged, opening fails. Salvage
//! then copies all readable data into a new directory, and its report names the lost data, with
//! table, index and key where it was a table's. If data was lost, the indexes of tables are built
//! again.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use quickbeam::salvage;

use crate::output::Output;
use crate::place::existing;
use crate::report::ReportFormat;
use crate::{Outcome, report};

/// The arguments of `quickbeam recover`.
#[derive(clap::Args)]
pub struct RecoverArguments {
    /// Directory of the damaged environment or data store; it is not changed
    directory: PathBuf,
    /// Copy all readable data into the directory of --into
    #[arg(long)]
    salvage: bool,
    /// New directory for the salvaged data
    #[arg(long, value_name = "DIRECTORY")]
    into: Option<PathBuf>,
    /// Write the report as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &RecoverArguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    let (true, Some(into)) = (arguments.salvage, &arguments.into) else {
        bail!(
            "a crash is recovered from whenever an environment is opened, by `quickbeam stat {0}` for one; \
             to salvage a damaged one: `quickbeam recover {0} --salvage --into NEW_DIRECTORY`",
            directory.display()
        );
    };
    let salvaged = salvage(directory, into, &existing())
        .with_context(|| format!("cannot salvage {}", directory.display()))?;
    let mut value =
        serde_json::to_value(&salvaged).context("the report cannot be put into JSON")?;
    let complete = salvaged.is_complete();
    #[cfg(feature = "sql")]
    if crate::tables::losses::has_tables(&value)
        && let Err(error) = mend_tables(into, &mut value, complete)
    {
        // The report of the engine is complete without tables.
        let problem = format!("the tables of the salvaged data cannot be read: {error:#}");
        value["tables"] = problem.into();
    }
    let mut output = Output::new();
    report::write(&mut output, &value, ReportFormat::from(arguments.json))?;
    if !arguments.json {
        let what =
            if complete { "Everything was salvaged" } else { "What was readable was salvaged" };
        writeln!(output, "{what} into {}.", into.display())?;
    }
    output.finish()?;
    Ok(if complete { Outcome::Done } else { Outcome::ProblemFound })
}

/// Names tables in the report, and builds their indexes again if data was lost.
#[cfg(feature = "sql")]
fn mend_tables(
    into: &std::path::Path,
    report: &mut serde_json::Value,
    complete: bool,
) -> anyhow::Result<()> {
    use crate::tables::{losses, rebuilt};
    use quickbeam::Environment;

    // Without losses the new environment stays as the salvage wrote it.
    let environment = match complete {
        true => Environment::open_read_only(into, existing())?,
        false => Environment::open(into, existing())?,
    };
    let database = quickbeam_sql::SqlDatabase::attach(&environment)?;
    let tables = database.catalog().snapshot(&environment.begin_read()?)?;
    losses::name(&tables, report);
    if complete {
        return Ok(());
    }
    rebuilt::rebuild_indexes(&environment, database.catalog(), &tables, report);
    drop((tables, database));
    Ok(environment.close()?)
}
