//! `quickbeam dump`: writes databases as text, B+trees in key order and hash databases in hash
//! order. Tables follow as statements and rows (`tables`).

pub(super) mod dump_format;
pub(super) mod load;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use self::dump_format::{Content, ItemFormat};
use crate::Outcome;
use crate::output::Output;
use crate::place::{Opening, Place, TABLES};

/// The arguments of `quickbeam dump`.
#[derive(clap::Args)]
pub struct DumpArguments {
    /// Directory of an environment or data store
    directory: PathBuf,
    /// Database to dump; by default all databases and the tables
    database: Option<String>,
    /// Write printable characters unchanged (format=print) instead of hexadecimal digits
    #[arg(short, long)]
    print: bool,
    /// Leave the name of DATABASE out, so that db_load makes a file of one unnamed database, which
    /// any program can open
    #[arg(long, requires = "database")]
    unnamed: bool,
    /// Write only the tables, as an SQL script that PostgreSQL can read too
    #[cfg(feature = "sql")]
    #[arg(long, conflicts_with_all = ["database", "print"])]
    sql: bool,
    #[command(flatten)]
    opening: Opening,
}

pub fn run(arguments: &DumpArguments) -> anyhow::Result<Outcome> {
    let directory: &Path = &arguments.directory;
    match Place::open(directory, &arguments.opening) {
        Ok(place) => write(arguments, place, directory),
        #[cfg(feature = "sql")]
        Err(error) => {
            let mut client = crate::served::connect(directory, error)?;
            let copy = crate::served::TemporaryCopy::of(&mut client)?;
            write(arguments, Place::open(copy.path(), &arguments.opening)?, copy.path())
        }
        #[cfg(not(feature = "sql"))]
        Err(error) => Err(error),
    }
}

/// Writes the dump of what is open.
fn write(arguments: &DumpArguments, place: Place, directory: &Path) -> anyhow::Result<Outcome> {
    let mut place = place;
    let format = if arguments.print { ItemFormat::Print } else { ItemFormat::ByteValue };
    let all = place.databases()?;
    let mut output = Output::new();
    #[cfg(feature = "sql")]
    if arguments.sql {
        script(&place, &all, directory, &mut output)?;
        output.finish()?;
        place.close(directory)?;
        return Ok(Outcome::Done);
    }
    let (tables, names): (Vec<String>, Vec<String>) =
        all.into_iter().partition(|name| name.starts_with(TABLES));
    match &arguments.database {
        None => {
            for name in names {
                dump(&mut place, &name, Some(&name), format, &mut output)?;
            }
            if !tables.is_empty() {
                dump_tables(&place, format, &mut output)?;
            }
        }
        // Checked before the first byte is written, so a mistyped name leaves no partial dump.
        Some(name) if !names.contains(name) && !tables.contains(name) => {
            bail!(
                "no database {name:?} in {}; `quickbeam list` shows them, and tables are dumped \
                 all together, without a name",
                directory.display()
            );
        }
        Some(name) => {
            let shown = Some(&**name).filter(|_| !arguments.unnamed);
            dump(&mut place, name, shown, format, &mut output)?;
        }
    }
    output.finish()?;
    place.close(directory)?;
    Ok(Outcome::Done)
}

/// Writes a section. Its header has the name `shown`.
fn dump(
    place: &mut Place,
    name: &str,
    shown: Option<&str>,
    format: ItemFormat,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut section = || -> anyhow::Result<()> {
        let content = Content::Records(place.access_method(name)?);
        dump_format::write_header(output, format, shown, content)?;
        place.records(name, |key, value| {
            dump_format::write_item(output, format, key)?;
            dump_format::write_item(output, format, value)?;
            Ok(())
        })?;
        Ok(dump_format::write_end(output)?)
    };
    section().with_context(|| format!("cannot dump {name:?} to its end"))
}

#[cfg(feature = "sql")]
fn dump_tables(place: &Place, format: ItemFormat, output: &mut Output) -> anyhow::Result<()> {
    let Place::Environment(environment) = place else {
        // A data store has no tables, even if its databases have such names.
        bail!("a data store with databases whose names begin with {TABLES:?} is dumped one by one");
    };
    crate::tables::write(environment, &mut crate::tables::Section::new(output, format))
}

#[cfg(not(feature = "sql"))]
fn dump_tables(_: &Place, _: ItemFormat, _: &mut Output) -> anyhow::Result<()> {
    bail!("there are tables, and this program was built without SQL; give the name of a database")
}

#[cfg(feature = "sql")]
fn script(
    place: &Place,
    databases: &[String],
    directory: &Path,
    output: &mut Output,
) -> anyhow::Result<()> {
    match place {
        Place::Environment(environment) if databases.iter().any(|it| it.starts_with(TABLES)) => {
            crate::tables::write(environment, &mut crate::tables::Script::new(output))
        }
        _ => bail!("there are no tables in {}", directory.display()),
    }
}
