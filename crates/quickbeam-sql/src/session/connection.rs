//! Connections: what a program does with one, its settings, and its cache of statements.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use quickbeam::{Durability, Isolation, Transaction};

use super::copy::CopyAccess;
use super::database::{Cancel, SqlDatabase};
use super::rows::Rows;
use super::session_command::Settings;
use super::statement::Statement;
use super::transaction::Open;
use crate::catalog::CatalogSnapshot;
use crate::error::{Result, SqlError};
use crate::execute::StatementLimits;
use crate::expression::{Clock, Given};
use crate::plan::ExecutionMode;
use crate::types::Value;

/// Statements kept by text.
const CACHED: usize = 256;

/// Bytes that a statement may keep, unless it is set otherwise.
const MEMORY: usize = 256 << 20;

/// A connection to a database: settings, an open transaction, and a cache of statements. One thread
/// uses it at a time.
///
/// ```
/// use quickbeam_sql::{SqlDatabase, params};
///
/// let mut connection = SqlDatabase::memory(Default::default())?.connect();
/// connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// connection.execute("INSERT INTO fruit VALUES ($1, $2)", params![1, "apple"])?;
/// let rows = connection.query("SELECT name FROM fruit", &[])?.collect()?;
/// assert_eq!(rows[0][0].to_string(), "apple");
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub struct Connection {
    pub(super) session: Session,
    cache: HashMap<Box<str>, Statement>,
}

/// What a connection has beside its cache.
pub(super) struct Session {
    pub database: SqlDatabase,
    pub open: Option<Open>,
    pub settings: Settings,
    pub limits: StatementLimits,
    pub clock: Clock,
    pub given: Given,
    pub copy_access: Mutex<Option<Box<dyn CopyAccess>>>,
}

impl Connection {
    pub(super) fn new(database: SqlDatabase) -> Connection {
        let limits =
            StatementLimits { cancelled: Arc::new(AtomicBool::new(false)), memory: MEMORY };
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

    /// Returns the database.
    #[must_use]
    pub fn database(&self) -> &SqlDatabase {
        &self.session.database
    }

    /// Returns a handle that cancels this connection's statement from another thread.
    #[must_use]
    pub fn cancel_handle(&self) -> Cancel {
        Cancel(self.session.limits.cancelled.clone())
    }

    /// Returns whether a transaction is open.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let mut connection = SqlDatabase::memory(Default::default())?.connect();
    /// assert!(!connection.in_transaction());
    /// connection.begin()?;
    /// assert!(connection.in_transaction());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.session.open.is_some()
    }

    /// Prepares a statement. It is compiled once and can run many times.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let mut insert = connection.prepare("INSERT INTO fruit VALUES ($1, $2)")?;
    /// insert.execute(&mut connection, params![1, "apple"])?;
    /// insert.execute(&mut connection, params![2, "pear"])?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn prepare(&mut self, text: &str) -> Result<Statement> {
        let mut statement = Statement::new(text);
        self.session.prepare(&mut statement)?;
        Ok(statement)
    }

    /// Prepares a statement for a transaction of the engine: it may name what that transaction has made and not committed.
    pub fn prepare_in(&mut self, transaction: &Transaction, text: &str) -> Result<Statement> {
        let mut statement = Statement::new(text);
        self.session.prepare_in(&mut statement, transaction)?;
        Ok(statement)
    }

    /// Executes a statement and returns how many rows it inserted, changed, removed or, for a
    /// query, delivered. The compiled statement is cached by its text.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let sql = "INSERT INTO fruit VALUES ($1, 'apple'), ($2, 'pear')";
    /// assert_eq!(connection.execute(sql, params![1, 2])?, 2);
    /// assert_eq!(connection.execute("DELETE FROM fruit WHERE id = $1", params![1])?, 1);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn execute(&mut self, text: &str, parameters: &[Value]) -> Result<u64> {
        let statement = cached(&mut self.cache, text)?;
        self.session.execute(statement, parameters)
    }

    /// Executes a query and returns its rows.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT name FROM fruit WHERE id = $1", params![1])?;
    /// while let Some(row) = rows.next()? {
    ///     assert_eq!(row.get::<&str>(0)?, "apple");
    /// }
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query(&mut self, text: &str, parameters: &[Value]) -> Result<Rows<'_>> {
        let statement = cached(&mut self.cache, text)?;
        self.session.query(statement, parameters)
    }

    /// Executes several statements in order. Each is a transaction of its own unless the script has
    /// a BEGIN. The position of an error counts from the start of the script.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// connection.execute_script(
    ///     "BEGIN;
    ///      INSERT INTO fruit VALUES (1, 'apple');
    ///      INSERT INTO fruit VALUES (2, 'pear');
    ///      COMMIT",
    /// )?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn execute_script(&mut self, text: &str) -> Result<()> {
        for piece in crate::parse::pieces(text)? {
            let start = piece.start;
            let mut statement = Statement::new(text.get(piece).unwrap_or_default());
            self.session.execute(&mut statement, &[]).map_err(|error| error.shifted(start))?;
        }
        Ok(())
    }

    /// Returns the schema as the next statement would see it.
    pub fn catalog_snapshot(&self) -> Result<Arc<CatalogSnapshot>> {
        let database = &self.session.database;
        match self.session.open.as_ref().and_then(|open| open.transaction.as_ref()) {
            Some(transaction) => database.catalog.snapshot(transaction),
            None => database.catalog.snapshot(&database.environment.begin_read()?),
        }
    }

    /// Begins a transaction, as BEGIN does.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// connection.begin()?;
    /// connection.execute("INSERT INTO fruit VALUES (1, 'apple')", &[])?;
    /// connection.commit()?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn begin(&mut self) -> Result<()> {
        self.session.begin(Settings::default())
    }

    /// Commits the transaction, as COMMIT does.
    pub fn commit(&mut self) -> Result<()> {
        self.session.commit()
    }

    /// Rolls the transaction back, as ROLLBACK does.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// connection.begin()?;
    /// connection.execute("INSERT INTO fruit VALUES (1, 'apple')", &[])?;
    /// connection.rollback()?;
    /// assert!(connection.query("SELECT * FROM fruit", &[])?.collect()?.is_empty());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn rollback(&mut self) -> Result<()> {
        self.session.rollback()
    }

    /// Sets the isolation level of later transactions.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let mut connection = SqlDatabase::memory(Default::default())?.connect();
    /// connection.set_isolation(quickbeam::Isolation::ReadCommitted);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.session.settings.isolation = Some(isolation);
    }

    /// Sets the durability of later transactions.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use quickbeam::{Durability, Options};
    /// use quickbeam_sql::SqlDatabase;
    ///
    /// let database = SqlDatabase::open(directory.path(), Options::default())?;
    /// let mut connection = database.connect();
    /// connection.set_durability(Durability::NoSync);
    /// connection.execute("CREATE TABLE log (line TEXT)", &[])?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn set_durability(&mut self, durability: Durability) {
        self.session.settings.durability = Some(durability);
    }

    /// Sets what COPY may read and write. Without it COPY is refused.
    pub fn set_copy_access(&mut self, access: impl CopyAccess + 'static) {
        *self.session.copy_access.get_mut() = Some(Box::new(access));
    }

    /// Sets the memory in bytes that one statement may use, for sorts and joins for example.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let mut connection = SqlDatabase::memory(Default::default())?.connect();
    /// connection.set_memory_limit(64 << 20);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
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
    pub fn way(&self) -> ExecutionMode {
        self.settings.way.unwrap_or_default()
    }
}
