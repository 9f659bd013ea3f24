//! `quickbeam verify`: checks pages and trees, then tables against their indexes and constraints.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::Output;
#[cfg(feature = "sql")]
use crate::place::TABLES;
use crate::place::{Opening, Place};
use crate::report::ReportFormat;
use crate::{Outcome, report};

/// The arguments of `quickbeam verify`.
#[derive(clap::Args)]
pub struct VerifyArguments {
    /// Directory of an environment or data store
    directory: PathBuf,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    opening: Opening,
}

pub fn run(arguments: &VerifyArguments) -> anyhow::Result<Outcome> {
    let directory = &arguments.directory;
    match Place::open(directory, &arguments.opening) {
        Ok(place) => verify(place, directory, arguments.json),
        #[cfg(feature = "sql")]
        Err(error) => {
            let mut client = crate::served::connect(directory, error)?;
            let verified = crate::served::report(&mut client, "verify", "")?;
            let complaints = verified.get("complaints").and_then(serde_json::Value::as_array);
            let is_sound = complaints.is_some_and(Vec::is_empty);
            write(&verified, arguments.json, is_sound)?;
            Ok(if is_sound { Outcome::Done } else { Outcome::ProblemFound })
        }
        #[cfg(not(feature = "sql"))]
        Err(error) => Err(error),
    }
}

/// Writes the report, and what to do if the environment is not sound.
fn write(report: &serde_json::Value, as_json: bool, is_sound: bool) -> anyhow::Result<()> {
    let mut output = Output::new();
    report::write(&mut output, report, ReportFormat::from(as_json))?;
    if !is_sound && !as_json {
        writeln!(output, "Not sound: dump what can be read, or restore a backup.")?;
    }
    Ok(output.finish()?)
}

/// Verifies what is open, writes the report, and closes it if it is sound.
pub fn verify(mut place: Place, directory: &Path, as_json: bool) -> anyhow::Result<Outcome> {
    let mut verified =
        place.verify().with_context(|| format!("cannot verify {}", directory.display()))?;
    let tables = verify_tables(&mut place, &mut verified.complaints)?;
    let mut value =
        serde_json::to_value(&verified).context("the report cannot be put into JSON")?;
    if let (Some(fields), Some(tables)) = (value.as_object_mut(), tables) {
        // Complaints stay the last field.
        let complaints = fields.remove("complaints");
        fields.insert("sql".to_owned(), tables);
        fields.extend(complaints.map(|complaints| ("complaints".to_owned(), complaints)));
    }
    let is_sound = verified.complaints.is_empty();
    write(&value, as_json, is_sound)?;
    if is_sound {
        place.close(directory)?;
        return Ok(Outcome::Done);
    }
    // Closing would write a checkpoint of a state that is known to be damaged.
    std::mem::forget(place);
    Ok(Outcome::ProblemFound)
}

/// Verifies the tables, if any, and appends complaints. Returns the counts of checked objects.
#[cfg(feature = "sql")]
fn verify_tables(
    place: &mut Place,
    complaints: &mut Vec<String>,
) -> anyhow::Result<Option<serde_json::Value>> {
    let has_tables = place.databases()?.iter().any(|name| name.starts_with(TABLES));
    let Place::Environment(environment) = place else { return Ok(None) };
    if !has_tables {
        return Ok(None);
    }
    let verified = quickbeam_sql::SqlDatabase::attach(environment).and_then(|it| it.verify());
    match verified {
        Ok(verified) => {
            complaints.extend(verified.complaints);
            Ok(Some(serde_json::json!({
                "tables": verified.tables,
                "rows": verified.rows,
                "index_entries": verified.entries,
            })))
        }
        Err(error) => {
            complaints.push(format!("the tables cannot be verified: {error}"));
            Ok(None)
        }
    }
}

#[cfg(not(feature = "sql"))]
fn verify_tables(_: &mut Place, _: &mut Vec<String>) -> anyhow::Result<Option<serde_json::Value>> {
    Ok(None)
}
