//! An environment opened for SQL.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use parking_lot::Mutex;
use quickbeam::{Environment, Options};

use crate::bind::{AggregateKind, ExpressionCompiler};
use crate::catalog::Catalog;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{FunctionRegistry, ScalarFunction, SessionDirectory};
use crate::session::advisory::AdvisoryLocks;
use crate::session::events::Channels;
use crate::types::current_moment;

/// An environment opened for SQL. It is cheap to clone, and any number of threads may connect to
/// it.
///
/// ```
/// use quickbeam::Options;
/// use quickbeam_sql::SqlDatabase;
///
/// let database = SqlDatabase::open_in_memory(Options::default())?;
/// let mut connection = database.connect();
/// connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
#[derive(Clone)]
pub struct SqlDatabase {
    pub(crate) environment: Environment,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) shared: Arc<SharedState>,
}

/// The sessions of the program's server.
#[derive(Default)]
pub(crate) struct ServerSessions(Mutex<Option<Arc<dyn SessionDirectory>>>);

impl std::fmt::Debug for ServerSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ServerSessions").field(&self.0.lock().is_some()).finish()
    }
}

impl ServerSessions {
    /// Returns the directory of the sessions. It takes locks of its own, so it is called without
    /// the one here.
    pub fn directory(&self) -> Option<Arc<dyn SessionDirectory>> {
        self.0.lock().clone()
    }
}

/// When a database was opened for SQL, in microseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpeningTime(pub i64);

impl Default for OpeningTime {
    fn default() -> OpeningTime {
        OpeningTime(current_moment())
    }
}

/// The state that the sessions of a database share in memory.
#[derive(Debug, Default)]
pub(crate) struct SharedState {
    /// The advisory locks.
    pub locks: AdvisoryLocks,
    /// Where `quickbeam_backup` may write; `None`: nowhere.
    backup_directory: Mutex<Option<PathBuf>>,
    /// Who listens to notifications.
    pub channels: Channels,
    /// What the sessions of the program's server do.
    pub server_sessions: ServerSessions,
    /// The functions of the program.
    pub functions: FunctionRegistry,
    /// When the database was opened.
    pub opened: OpeningTime,
    /// The number of the newest session.
    sessions: AtomicI32,
    /// The numbers that transactions have been given since the environment was opened.
    transactions: AtomicU32,
}

impl SharedState {
    /// Returns the number of a transaction since the environment was opened.
    pub fn new_transaction(&self) -> u64 {
        u64::from(self.transactions.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    /// Returns the number of a new session.
    pub fn new_session(&self) -> i32 {
        self.sessions.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

impl SqlDatabase {
    /// Opens the environment in a directory, or creates it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use quickbeam::Options;
    /// use quickbeam_sql::SqlDatabase;
    ///
    /// let database = SqlDatabase::open(directory.path(), Options::default())?;
    /// let mut connection = database.connect();
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<SqlDatabase> {
        SqlDatabase::attach(&Environment::open(path, options)?)
    }

    /// Creates an environment without a directory. It lasts as long as its last handle.
    ///
    /// ```
    /// use quickbeam_sql::SqlDatabase;
    ///
    /// let mut connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// let rows = connection.query("SELECT 6 * 7", &[])?.collect()?;
    /// assert_eq!(rows[0][0].to_string(), "42");
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn open_in_memory(options: Options) -> Result<SqlDatabase> {
        SqlDatabase::attach(&Environment::open_in_memory(options)?)
    }

    /// Attaches SQL to an environment that is already open, beside its key/value databases. Call it
    /// once for each environment, and clone the result.
    ///
    /// ```
    /// let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// let photos = environment.create_database("photos")?;
    /// environment.transact(|transaction| photos.put(transaction, b"beach", b"..."))?;
    ///
    /// // A key/value database is a table of the columns `key` and `value`.
    /// let database = quickbeam_sql::SqlDatabase::attach(&environment)?;
    /// let rows = database.connect().query("SELECT key FROM photos", &[])?.collect()?;
    /// assert_eq!(rows.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attach(environment: &Environment) -> Result<SqlDatabase> {
        let catalog = Catalog::open(environment)?;
        catalog.set_index_compiler(&ExpressionCompiler);
        crate::session::temporary::sweep(&catalog)?;
        Ok(SqlDatabase { environment: environment.clone(), catalog, shared: Arc::default() })
    }

    /// Sets the most memory, in bytes, in which queries keep decoded columns of tables for the next
    /// query, and drops what is kept; 0 keeps nothing. By default it is half of the environment's
    /// cache size, besides that cache.
    ///
    /// ```
    /// let database = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?;
    /// database.set_column_cache_size(256 << 20);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn set_column_cache_size(&self, bytes: usize) {
        self.catalog.column_cache.set_limit(bytes);
    }

    /// Returns the memory, in bytes, in which queries keep decoded columns of tables.
    ///
    /// ```
    /// let database = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?;
    /// assert_eq!(database.column_cache_bytes(), 0);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn column_cache_bytes(&self) -> usize {
        self.catalog.column_cache.bytes()
    }

    /// Returns the environment, for key/value databases and transactions.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let events = database.environment().create_database("events")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Lets statements write backups: `quickbeam_backup('NAME')` writes one into the folder `NAME`
    /// of `directory`. Without a directory the function is refused. A program that has the database
    /// open calls [`Environment::backup_to`] itself.
    ///
    /// ```
    /// # use quickbeam_sql::SqlDatabase;
    /// # let folder = tempfile::tempdir().unwrap();
    /// let database = SqlDatabase::open(folder.path().join("data"), Default::default())?;
    /// database.set_backup_directory(Some(folder.path().to_owned()));
    /// let backup = "SELECT quickbeam_backup('monday')";
    /// let bytes: i64 = database.connect().query_row(backup, &[], |row| row.get(0))?;
    /// assert!(bytes > 0);
    /// let backup = SqlDatabase::open(folder.path().join("monday"), Default::default())?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn set_backup_directory(&self, directory: Option<PathBuf>) {
        *self.shared.backup_directory.lock() = directory;
    }

    /// Sets the sessions that `pg_stat_activity` shows and that `pg_cancel_backend` and
    /// `pg_terminate_backend` reach: a server sets its own. Without them there are none.
    pub fn set_session_directory(&self, directory: Arc<dyn SessionDirectory>) {
        *self.shared.server_sessions.0.lock() = Some(directory);
    }

    /// Registers a function that statements of all connections can call from then on.
    ///
    /// Views, defaults, constraints and generated columns may call it. They fail (42883) in a
    /// program that has not registered it: register functions right after opening the database.
    /// Indexes cannot call it.
    ///
    /// ```
    /// use quickbeam_sql::{DataType, ScalarFunction, SqlDatabase, Value, ValueRef};
    ///
    /// let database = SqlDatabase::open_in_memory(Default::default())?;
    /// let reversed = ScalarFunction::new("reversed", &[DataType::Text], DataType::Text, |values| {
    ///     let ValueRef::Text(text) = values[0] else { return Ok(Value::Null) };
    ///     Ok(Value::text(text.chars().rev().collect::<String>()))
    /// });
    /// database.register_function(reversed)?;
    /// let found: String =
    ///     database.connect().query_row("SELECT reversed('abc')", &[], |row| row.get(0))?;
    /// assert_eq!(found, "cba");
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// 42723 if there is a function of that name with the same types of arguments, or an aggregate
    /// of that name.
    pub fn register_function(&self, function: ScalarFunction) -> Result<()> {
        if AggregateKind::named(function.name()).is_some() {
            let message = format!("\"{}\" is an aggregate function", function.name());
            return Err(SqlError::new(SqlState::DuplicateFunction, message));
        }
        self.shared.functions.add(function)
    }

    /// Backs up into a folder of the directory for backups. Returns the bytes copied.
    pub(crate) fn backup_by_name(&self, name: &str) -> Result<u64> {
        let Some(directory) = self.shared.backup_directory.lock().clone() else {
            return Err(SqlError::new(
                SqlState::InsufficientPrivilege,
                "this server writes no backups: it has no directory for them",
            ));
        };
        // The client names a folder, and reaches nothing else of the file system.
        let mut parts = Path::new(name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name)
        {
            let message = format!("\"{name}\" is not the name of a folder");
            return Err(SqlError::new(SqlState::InvalidParameterValue, message));
        }
        let report = self.environment.backup_to(directory.join(name))?;
        Ok(report.bytes + report.log_bytes)
    }

    /// What there is in the database.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}

/// Cancels what a connection is doing, from another thread.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::open_in_memory(Default::default())?;
/// # let mut connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// let cancel = connection.cancel_handle();
/// std::thread::spawn(move || cancel.cancel()).join().unwrap();
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cancel(pub(crate) Arc<AtomicBool>);

impl Cancel {
    /// The statement that runs now ends with an error (57014). A statement begun later is not
    /// affected.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
