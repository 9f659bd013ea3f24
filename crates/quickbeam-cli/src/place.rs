//! What a directory holds, opened: an environment, or a data store.
//!
//! The commands that only look work on both. Opening recovers an environment whose last user did
//! not close it; nothing is ever made where there was nothing, so that a mistyped name is an error.

use std::path::Path;

use anyhow::Context;
use quickbeam::{AccessMethod, DataStore, Environment, Error, Options, Statistics, VerifyReport};

/// How the names of the databases begin that tables are stored in.
pub const TABLES: &str = "sql.";

/// An open environment or data store. This process is its only user until it is closed.
pub enum Place {
    Environment(Environment),
    Store(Box<DataStore>),
}

impl Place {
    pub fn open(directory: &Path) -> anyhow::Result<Place> {
        let error = match Environment::open(directory, existing()) {
            Ok(environment) => return Ok(Place::Environment(environment)),
            Err(error) => error,
        };
        // A data store is refused as misuse; what is neither keeps the first error.
        if matches!(error, Error::Misuse { .. })
            && let Ok(store) = DataStore::open(directory, existing())
        {
            return Ok(Place::Store(Box::new(store)));
        }
        Err(not_opened(directory, error))
    }

    /// Closes the place, and reports what a mere drop would keep to itself.
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

    /// Hands every record of a database to `record`, in the database's order.
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

/// Opens an environment, for the commands that need transactions.
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

/// The defaults, but for making what is not there.
pub fn existing() -> Options {
    Options { create: false, ..Options::default() }
}
