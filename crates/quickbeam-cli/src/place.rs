//! Opens a directory that holds an environment or a data store.
//!
//! The read-only commands accept both. Opening recovers an environment that was not closed. On
//! read-only media or a full device, the engine recovers it in memory and opens it read-only.
//! Opening never creates anything, so a mistyped name is an error.

use std::io::{ErrorKind, Write};
use std::path::Path;
#[cfg(feature = "sql")]
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use quickbeam::{
    AccessMethod, CompactionReport, DataStore, Durability, Environment, Error, Options, Statistics,
    VerifyReport,
};

/// Name prefix of the databases that store tables.
pub const TABLES: &str = "sql.";

/// The settings of an opening: an option goes before a variable, and a variable before the file.
#[derive(clap::Args, Default)]
pub struct Opening {
    /// Cache size in bytes, or with a suffix K, M or G [variable: QUICKBEAM_CACHE_SIZE; default:
    /// 64M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    cache_size: Option<usize>,
    /// Durability of commits: sync, write_nosync, nosync or inmemory [variable:
    /// QUICKBEAM_DURABILITY; default: sync]
    #[arg(long, value_name = "LEVEL", value_parser = durability)]
    durability: Option<Durability>,
    /// Take settings that are not given here from this TOML file; their names are those of the
    /// options, with underscores
    #[cfg(feature = "sql")]
    #[arg(long, value_name = "FILE", env = "QUICKBEAM_CONFIG")]
    config: Option<PathBuf>,
}

impl Opening {
    /// Returns the options for an existing environment.
    pub fn options(&self) -> anyhow::Result<Options> {
        let mut options = existing();
        let (file_size, file_durability) = self.file()?;
        let size = first(self.cache_size, ("cache_size", file_size), size)?;
        options.cache_size = size.unwrap_or(options.cache_size);
        let level = first(self.durability, ("durability", file_durability), durability)?;
        options.durability = level.unwrap_or(options.durability);
        Ok(options)
    }

    /// Returns the file of settings.
    #[cfg(feature = "sql")]
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Returns the cache size and the durability of the file of settings.
    #[cfg(feature = "sql")]
    fn file(&self) -> anyhow::Result<(Option<String>, Option<String>)> {
        self.config().map_or(Ok((None, None)), |path| {
            crate::serve::Settings::read(path).map(|settings| settings.opening())
        })
    }

    #[cfg(not(feature = "sql"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps)] // There is no file without SQL.
    fn file(&self) -> anyhow::Result<(Option<String>, Option<String>)> {
        Ok((None, None))
    }
}

/// Returns the setting of the command line, else of its environment variable, else of the file.
fn first<T>(
    given: Option<T>,
    (name, in_file): (&str, Option<String>),
    parse: fn(&str) -> Result<T, String>,
) -> anyhow::Result<Option<T>> {
    if given.is_some() {
        return Ok(given);
    }
    let variable = format!("QUICKBEAM_{}", name.to_uppercase());
    let (source, text) = match std::env::var(&variable) {
        Ok(text) if !text.is_empty() => (format!("the variable {variable}"), Some(text)),
        _ => (format!("the setting {name} of the file"), in_file),
    };
    let parsed = text.map(|text| parse(&text).map_err(|error| anyhow!("{source}={text}: {error}")));
    parsed.transpose()
}

/// Parses a number of bytes with an optional suffix K, M or G.
fn size(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "a size is a number of bytes, with a suffix K, M or G".to_owned())
}

fn durability(text: &str) -> Result<Durability, String> {
    text.parse().map_err(|error: Error| error.to_string())
}

/// An open environment or data store. This process has exclusive use until it closes it.
pub enum Place {
    Environment(Environment),
    Store(Box<DataStore>),
}

impl Place {
    /// Opens a directory, read-only if it cannot be written.
    pub fn open(directory: &Path, opening: &Opening) -> anyhow::Result<Place> {
        let options = opening.options()?;
        let error = match Place::open_for_writing(directory, &options) {
            Ok(place) => return Ok(place),
            Err(error) => error,
        };
        if !cannot_write(&error) {
            return Err(not_opened(directory, error));
        }
        let place = Place::open_for_reading(directory, &options)
            .map_err(|reading| not_opened(directory, reading).context(error.to_string()))?;
        // A failure to write standard error cannot be reported.
        let shown = directory.display();
        let _ = writeln!(std::io::stderr(), "quickbeam: {error}; {shown} is only read");
        Ok(place)
    }

    fn open_for_writing(directory: &Path, options: &Options) -> quickbeam::Result<Place> {
        let environment = Environment::open(directory, options.clone()).map(Place::Environment);
        environment.or_else(|error| or_store(error, || DataStore::open(directory, options.clone())))
    }

    fn open_for_reading(directory: &Path, options: &Options) -> quickbeam::Result<Place> {
        let opened =
            Environment::open_read_only(directory, options.clone()).map(Place::Environment);
        opened.or_else(|error| {
            or_store(error, || DataStore::open_read_only(directory, options.clone()))
        })
    }

    /// Closes the environment or store and returns the error that a drop would discard.
    pub fn close(self, directory: &Path) -> anyhow::Result<()> {
        let closed = match self {
            Place::Environment(environment) => environment.close(),
            Place::Store(store) => store.close(),
        };
        closed.with_context(|| format!("cannot close {}", directory.display()))
    }

    pub fn databases(&mut self) -> quickbeam::Result<Vec<String>> {
        match self {
            Place::Environment(environment) => environment.databases(),
            Place::Store(store) => store.databases(),
        }
    }

    pub fn statistics(&self) -> Statistics {
        match self {
            Place::Environment(environment) => environment.statistics(),
            Place::Store(store) => store.statistics(),
        }
    }

    pub fn verify(&mut self) -> quickbeam::Result<VerifyReport> {
        match self {
            Place::Environment(environment) => environment.verify(),
            Place::Store(store) => store.verify(),
        }
    }

    /// Gives free space back to the file system.
    pub fn compact(&mut self) -> quickbeam::Result<CompactionReport> {
        match self {
            Place::Environment(environment) => environment.compact(),
            Place::Store(store) => store.compact(),
        }
    }

    pub fn access_method(&mut self, database: &str) -> quickbeam::Result<AccessMethod> {
        Ok(match self {
            Place::Environment(environment) => environment.open_database(database)?.access_method(),
            Place::Store(store) => store.open_database(database)?.access_method(),
        })
    }

    /// Calls `record` for every record of a database, in the database's order.
    pub fn records(
        &mut self,
        database: &str,
        mut record: impl FnMut(&[u8], &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Place::Environment(environment) => {
                let snapshot = environment.begin_read()?;
                let database = snapshot.open_database(database)?;
                let mut cursor = database.cursor(&snapshot)?;
                let mut found = cursor.first()?;
                while found {
                    record(cursor.key(), cursor.value())?;
                    found = cursor.next()?;
                }
            }
            Place::Store(store) => {
                let database = store.open_database(database)?;
                let mut cursor = store.cursor(database)?;
                let mut found = cursor.first()?;
                while found {
                    record(cursor.key(), cursor.value())?;
                    found = cursor.next()?;
                }
            }
        }
        Ok(())
    }
}

/// Opens a data store after `Environment::open` refused it as misuse. Returns the first error if
/// the directory is no data store either.
fn or_store(
    error: Error,
    open: impl FnOnce() -> quickbeam::Result<DataStore>,
) -> quickbeam::Result<Place> {
    if !matches!(error, Error::Misuse { .. }) {
        return Err(error);
    }
    match open() {
        Ok(store) => Ok(Place::Store(Box::new(store))),
        Err(store) if cannot_write(&store) => Err(store),
        Err(_) => Err(error),
    }
}

/// Returns true if a read-only opening could succeed after this error.
fn cannot_write(error: &Error) -> bool {
    match error {
        Error::DiskFull { .. } => true,
        Error::Io(failure) => matches!(
            failure.source.kind(),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
        ),
        _ => false,
    }
}

/// Opens an environment read-only, without writing to its directory.
pub fn open_environment_read_only(
    directory: &Path,
    opening: &Opening,
) -> anyhow::Result<Environment> {
    Environment::open_read_only(directory, opening.options()?)
        .map_err(|error| not_opened(directory, error))
}

/// Opens an environment for the commands that write.
pub fn open_environment(directory: &Path, opening: &Opening) -> anyhow::Result<Environment> {
    open_environment_with(directory, opening.options()?)
}

/// As [`open_environment`], with options that have more than the common settings.
pub fn open_environment_with(directory: &Path, options: Options) -> anyhow::Result<Environment> {
    Environment::open(directory, options).map_err(|error| not_opened(directory, error))
}

fn not_opened(directory: &Path, error: Error) -> anyhow::Error {
    let shown = directory.display();
    if let Error::NotAnEnvironment(missing) = &error {
        // The engine's text names an option of the library.
        let detail = missing.detail.split(", and the create option").next().unwrap_or_default();
        return anyhow!(
            "cannot open {shown}: not a Quickbeam environment: {detail}; `quickbeam create` and \
             `quickbeam sql --create` create one"
        );
    }
    anyhow::Error::new(error).context(format!("cannot open {shown}"))
}

/// Returns the default options for an existing environment.
pub fn existing() -> Options {
    Options::new().create(false)
}
