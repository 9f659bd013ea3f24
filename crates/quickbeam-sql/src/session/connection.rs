//! Connections: what a program does with one, its settings, and its cache of statements.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use quickbeam::{Durability, Isolation};

use super::control::Settings;
use super::copy::CopyAccess;
use super::database::{Cancel, Database};
use super::rows::Rows;
use super::statement::Statement;
use super::transaction::Open;
use crate::catalog::CatalogSnapshot;
use crate::error::{Result, SqlError};
use crate::execute::Limits;
use crate::expression::{Clock, Given};
use crate::plan::Way;
use crate::types::Value;

/// Statements kept by text.
const CACHED: usize = 256;

/// Bytes that a statement may keep, unless it is set otherwise.
const MEMORY: usize = 256 << 20;

/// A connection to a database: one thread's place to execute statements.
pub struct Connection {
    pub(super) session: Session,
    cache: HashMap<Box<str>, Statement>,
}

/// What a connection has beside its cache.
pub(super) struct Session {
    pub database: Database,
    pub open: Option<Open>,
    pub settings: Settings,
    pub limits: Limits,
    pub clock: Clock,
    pub given: Given,
    pub copy_access: Mutex<Option<Box<dyn CopyAccess>>>,
}

impl Connection {
    pub(super) fn new(database: Database) -> Connection {
        let limits = Limits { cancelled: Arc::new(AtomicBool::new(false)), memory: MEMORY };
        let (settings, clock) = (Settings::default(), Clock::default());
        let copy_access = Mutex::new(None);
        let session = Session {
            database,
            open: None,
            settings,
            limits,
            clock,
            given: Given::default(),
            copy_access,
        };
        Connection { session, cache: HashMap::new() }
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.session.database
    }

    /// Cancels from another thread what this connection does.
    #[must_use]
    pub fn cancel_handle(&self) -> Cancel {
        Cancel(self.session.limits.cancelled.clone())
    }

    /// Whether a transaction was begun and has not ended.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.session.open.is_some()
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, text: &str) -> Result<Statement> {
        let mut statement = Statement::new(text);
        self.session.prepare(&mut statement)?;
        Ok(statement)
    }

    /// Executes a statement: how many rows it inserted, changed, removed or, being a query, delivered. The statement stays prepared,
    /// to be found by its text the next time.
    pub fn execute(&mut self, text: &str, parameters: &[Value]) -> Result<u64> {
        let statement = cached(&mut self.cache, text)?;
        self.session.execute(statement, parameters)
    }

    /// Executes a query and delivers its rows.
    pub fn query(&mut self, text: &str, parameters: &[Value]) -> Result<Rows<'_>> {
        let statement = cached(&mut self.cache, text)?;
        self.session.query(statement, parameters)
    }

    /// Executes several statements, one after the other. Each is on its own, unless there is a BEGIN among them. An error's place counts from
    /// the start of the whole text.
    pub fn execute_script(&mut self, text: &str) -> Result<()> {
        for piece in crate::parse::pieces(text)? {
            let start = piece.start;
            let mut statement = Statement::new(text.get(piece).unwrap_or_default());
            self.session.execute(&mut statement, &[]).map_err(|error| error.shifted(start))?;
        }
        Ok(())
    }

    /// What there is, as the next statement would see it.
    pub fn catalog_snapshot(&self) -> Result<Arc<CatalogSnapshot>> {
        let database = &self.session.database;
        match self.session.open.as_ref().and_then(|open| open.transaction.as_ref()) {
            Some(transaction) => database.catalog.snapshot(transaction),
            None => database.catalog.snapshot(&database.environment.begin_read()?),
        }
    }

    /// BEGIN.
    pub fn begin(&mut self) -> Result<()> {
        self.session.begin(Settings::default())
    }

    /// COMMIT.
    pub fn commit(&mut self) -> Result<()> {
        self.session.commit()
    }

    /// ROLLBACK.
    pub fn rollback(&mut self) -> Result<()> {
        self.session.rollback()
    }

    /// Isolation of transactions begun from now on.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.session.settings.isolation = Some(isolation);
    }

    /// Durability of transactions begun from now on.
    pub fn set_durability(&mut self, durability: Durability) {
        self.session.settings.durability = Some(durability);
    }

    /// What COPY may read and write from now on. A connection that was given nothing cannot use COPY.
    pub fn set_copy_access(&mut self, access: impl CopyAccess + 'static) {
        *self.session.copy_access.get_mut() = Some(Box::new(access));
    }

    /// Bytes that a statement may keep in memory, for sorts and joins for example.
    pub fn set_memory_limit(&mut self, bytes: usize) {
        self.session.limits.memory = bytes;
    }
}

/// The statement of that text.
fn cached<'c>(
    cache: &'c mut HashMap<Box<str>, Statement>,
    text: &str,
) -> Result<&'c mut Statement> {
    if !cache.contains_key(text) {
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(text.into(), Statement::new(text));
    }
    cache.get_mut(text).ok_or_else(|| SqlError::internal("a statement is not where it was put"))
}

impl Session {
    /// What the session wants of the planner.
    pub fn way(&self) -> Way {
        self.settings.way.unwrap_or_default()
    }
}
