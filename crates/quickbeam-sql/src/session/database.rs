//! An environment opened for SQL.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quickbeam::{Environment, Options};

use super::Connection;
use crate::catalog::Catalog;
use crate::error::Result;

/// An environment opened for SQL. Cheap to clone; any number of threads connect to it.
#[derive(Clone)]
pub struct Database {
    pub(super) environment: Environment,
    pub(super) catalog: Arc<Catalog>,
}

impl Database {
    /// Opens the environment in a directory, or creates it.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Database> {
        Database::over(&Environment::open(path, options)?)
    }

    /// An environment without a directory: gone when the last of its handles is.
    pub fn memory(options: Options) -> Result<Database> {
        Database::over(&Environment::memory(options)?)
    }

    /// SQL on an environment that is open already, beside its key/value databases. Call it once for each environment, and clone what it returns.
    pub fn over(environment: &Environment) -> Result<Database> {
        let catalog = Catalog::open(environment)?;
        Ok(Database { environment: environment.clone(), catalog })
    }

    /// The environment.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What there is in the database.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// A new connection.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::new(self.clone())
    }
}

/// Cancels what a connection is doing, from another thread.
#[derive(Clone, Debug)]
pub struct Cancel(pub(super) Arc<AtomicBool>);

impl Cancel {
    /// The statement that runs now ends with an error (57014). A statement begun later is not affected.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
