//! `quickbeam list`: lists the names of the databases.

use std::io::Write;
use std::path::PathBuf;

use crate::Outcome;
use crate::output::Output;
use crate::place::{Opening, Place};

/// The arguments of `quickbeam list`.
#[derive(clap::Args)]
pub struct ListArguments {
    /// Directory of an environment or data store
    directory: PathBuf,
    /// Add the access method of each database (btree, hash or hash_prefix) after a tab
    #[arg(short, long)]
    long: bool,
}

pub fn run(arguments: &ListArguments) -> anyhow::Result<Outcome> {
    let ListArguments { directory, long } = arguments;
    let mut place = match Place::open(directory, &Opening::default()) {
        Ok(place) => place,
        #[cfg(feature = "sql")]
        Err(error) => return list_served(directory, error, *long),
        #[cfg(not(feature = "sql"))]
        Err(error) => return Err(error),
    };
    let mut output = Output::new();
    for name in place.databases()? {
        if *long {
            writeln!(output, "{name}\t{}", place.access_method(&name)?)?;
        } else {
            writeln!(output, "{name}")?;
        }
    }
    output.finish()?;
    place.close(directory)?;
    Ok(Outcome::Done)
}

#[cfg(feature = "sql")]
fn list_served(
    directory: &std::path::Path,
    error: anyhow::Error,
    long: bool,
) -> anyhow::Result<Outcome> {
    let mut client = crate::served::connect(directory, error)?;
    let databases = crate::served::report(&mut client, "databases", "")?;
    let mut output = Output::new();
    for database in databases.as_array().into_iter().flatten() {
        let field = |name| database.get(name).and_then(serde_json::Value::as_str);
        write!(output, "{}", field("name").unwrap_or_default())?;
        if let Some(method) = field("access_method").filter(|_| long) {
            write!(output, "\t{method}")?;
        }
        writeln!(output)?;
    }
    output.finish()?;
    Ok(Outcome::Done)
}
