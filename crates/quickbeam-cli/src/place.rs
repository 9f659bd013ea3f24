//! Opens a directory that holds an environment or a data store.
//!
//! The read-only commands accept both. Opening recovers an environment that was not closed. On
//! read-only media or a full device, the engine recovers it in memory and opens it read-only.
//! Opening never creates anything, so a mistyped name is an error.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use quickbeam::{AccessMethod, DataStore, Environment, Error, Options, Statistics, VerifyReport};

/// Name prefix of the databases that store tables.
pub const TABLES: &str = "sql.";

/// An open environment or data store. This process has exclusive use until it closes it.
pub enum Place {
    Environment(Environment),
    Store(Box<DataStore>),
}

impl Place {
    /// Opens a directory, read-only if it cannot be written.
    pub fn open(directory: &Path) -> anyhow::Result<Place> {
        let error = match Place::open_for_writing(directory) {
            Ok(place) => return Ok(place),
            Err(error) => error,
        };
        if !cannot_write(&error) {
            return Err(not_opened(directory, error));
        }
        let place = Place::open_for_reading(directory)
            .map_err(|reading| not_opened(directory, reading).context(error.to_string()))?;
        // A failure to write standard error cannot be reported.
        let shown = directory.display();
        let _ = writeln!(std::io::stderr(), "quickbeam: {error}; {shown} is only read");
        Ok(place)
    }

    fn open_for_writing(directory: &Path) -> quickbeam::Result<Place> {
        let environment = Environment::open(directory, existing()).map(Place::Environment);
        environment.or_else(|error| or_store(error, || DataStore::open(directory, existing())))
    }

    fn open_for_reading(directory: &Path) -> quickbeam::Result<Place> {
        let opened = Environment::open_read_only(directory, existing()).map(Place::Environment);
        opened.or_else(|error| or_store(error, || DataStore::open_read_only(directory, existing())))
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
        Error::Io { source, .. } => {
            matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
        }
        _ => false,
    }
}

/// Opens an environment read-only, without writing to its directory.
pub fn open_environment_read_only(directory: &Path) -> anyhow::Result<Environment> {
    Environment::open_read_only(directory, existing()).map_err(|error| not_opened(directory, error))
}

/// Opens an environment for the commands that write.
pub fn open_environment(directory: &Path) -> anyhow::Result<Environment> {
    Environment::open(directory, existing()).map_err(|error| not_opened(directory, error))
}

fn not_opened(directory: &Path, error: Error) -> anyhow::Error {
    let hint = match error {
        Error::NotAnEnvironment { .. } => " (`quickbeam create` makes an environment)",
        _ => "",
    };
    anyhow::Error::new(error).context(format!("cannot open {}{hint}", directory.display()))
}

/// Returns the default options for an existing environment.
pub fn existing() -> Options {
    Options { create: false, ..Options::default() }
}
