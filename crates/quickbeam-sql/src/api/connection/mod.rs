//! Connections: what a program does with one, its settings, and its cache of statements.

pub(crate) mod sql_transaction;
pub(crate) mod statement;

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lru::LruCache;
use parking_lot::Mutex;
use quickbeam::{Durability, Isolation, ReadTransaction, Transaction};

use self::sql_transaction::SqlTransaction;
use self::statement::{Statement, first_row};
use crate::catalog::{BOOTSTRAP, CatalogSnapshot, Privileges};
use crate::compile::session_command::Settings;
use crate::error::Result;
use crate::execute::StatementLimits;
use crate::expression::{Clock, Given};
use crate::rust_types::row::Row;
use crate::session::copy::CopyAccess;
use crate::session::database::{Cancel, SqlDatabase};
use crate::session::events::Events;
use crate::session::executor::ResultRows;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::routine::Routines;
use crate::session::rows::{MappedRows, OpenQueries, Rows};
use crate::session::settings::variables::SettingScope;
use crate::session::statement_cache::{CachedStatement, Lease, StatementCache};
use crate::session::{MEMORY, Session};
use crate::types::{TextSettings, Value};

/// Statements kept by text.
const CACHED: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// A connection to a database: settings, an open transaction, and a cache of the 256 statements
/// used last. One thread uses it at a time; statements may run while rows of others are read.
///
/// ```
/// use quickbeam_sql::{SqlDatabase, params};
///
/// let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
/// connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// connection.execute("INSERT INTO fruit VALUES ($1, $2)", params![1, "apple"])?;
/// let rows = connection.query("SELECT name FROM fruit", &[])?.collect()?;
/// assert_eq!(rows[0][0].to_string(), "apple");
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub struct Connection {
    pub(crate) session: Session,
    cache: StatementCache,
}

impl SqlDatabase {
    /// Opens a connection.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::new(self.clone())
    }
}

impl SqlDatabase {
    /// Connects as a role: the session has the rights of that role, and no others, and begins with
    /// the settings of ALTER ROLE … SET and ALTER DATABASE … SET.
    ///
    /// ```
    /// # use quickbeam_sql::SqlDatabase;
    /// let database = SqlDatabase::open_in_memory(Default::default())?;
    /// let owner = database.connect();
    /// owner.execute("CREATE TABLE fruit (id INT)", &[])?;
    /// owner.execute("CREATE ROLE anna", &[])?;
    /// let anna = database.connect_as("anna")?;
    /// assert_eq!(anna.execute("DELETE FROM fruit", &[]).unwrap_err().code(), "42501");
    /// owner.execute("GRANT DELETE ON fruit TO anna", &[])?;
    /// anna.execute("DELETE FROM fruit", &[])?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// 42704 if there is no such role.
    pub fn connect_as(&self, role: &str) -> Result<Connection> {
        let connection = self.connect();
        connection.log_in(role)?;
        Ok(connection)
    }

    /// Returns what is known of a role that a server may let in; `None` if there is no such role.
    ///
    /// ```
    /// # let database = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?;
    /// database.connect().execute("CREATE USER anna CONNECTION LIMIT 3", &[])?;
    /// let anna = database.role("anna")?.unwrap();
    /// assert!(anna.may_log_in && anna.may_connect && anna.connection_limit == Some(3));
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub fn role(&self, name: &str) -> Result<Option<LoginRole>> {
        let reader = self.environment.begin_read()?;
        let snapshot = self.catalog.snapshot(&reader)?;
        let id = snapshot.role_named(name);
        let Some(role) = id.and_then(|id| snapshot.role(id)) else { return Ok(None) };
        Ok(Some(LoginRole {
            may_log_in: role.login,
            may_connect: snapshot.may_in_database(role.id, Privileges::CONNECT),
            is_superuser: role.superuser,
            connection_limit: usize::try_from(role.connection_limit).ok(),
            verifier: role.password.clone(),
            password_expires: role.valid_until,
        }))
    }
}

/// What a server needs to know of a role before it lets a client in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRole {
    /// LOGIN.
    pub may_log_in: bool,
    /// Whether it has the privilege CONNECT on the database.
    pub may_connect: bool,
    /// SUPERUSER.
    pub is_superuser: bool,
    /// The most sessions at a time; `None`: any number.
    pub connection_limit: Option<usize>,
    /// The SCRAM verifier of its password.
    pub verifier: Option<Arc<str>>,
    /// When the password ends: microseconds since 1970-01-01 UTC.
    pub password_expires: Option<i64>,
}

impl Connection {
    pub(crate) fn new(database: SqlDatabase) -> Connection {
        let limits = StatementLimits {
            cancelled: Arc::new(AtomicBool::new(false)),
            memory: Cell::new(MEMORY),
            deadline: Cell::new(None),
        };
        let number = database.shared.new_session();
        let session = Session {
            database,
            open: RefCell::default(),
            alone: Default::default(),
            reading: OpenQueries::default(),
            settings: Cell::default(),
            variables: RefCell::default(),
            defaults: RefCell::default(),
            settings_version: Cell::default(),
            statement_timeout: Cell::default(),
            commit_durability: Cell::default(),
            search_path: RefCell::default(),
            temporary: Default::default(),
            path_number: Cell::default(),
            login_role: Cell::new(BOOTSTRAP),
            session_user: Cell::new(BOOTSTRAP),
            role: Cell::new(BOOTSTRAP),
            definer: Cell::new(None),
            known_roles: RefCell::default(),
            turned_off: Cell::default(),
            parallelism: Cell::default(),
            plan_key: Cell::default(),
            named: RefCell::default(),
            cursors: RefCell::default(),
            moved: Default::default(),
            number,
            has_locks: Cell::default(),
            limits,
            clock: Clock::default(),
            given: Given::default(),
            copy_access: Mutex::new(None),
            control: Mutex::new(None),
            events: Events::default(),
            routines: Routines::default(),
            ended_in_procedure: Cell::new(false),
            has_changed: Cell::new(false),
            is_replica: Cell::new(false),
        };
        Connection { session, cache: RefCell::new(LruCache::new(CACHED)) }
    }

    /// Gives a new connection the rights of a role, and the settings with which its sessions begin.
    /// [`SqlDatabase::connect`] takes no stored settings: a program makes its own.
    ///
    /// ```
    /// # let database = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?;
    /// let connection = database.connect();
    /// connection.execute("ALTER DATABASE quickbeam SET TimeZone = 'Asia/Tokyo'", &[])?;
    /// connection.log_in("quickbeam")?;
    /// assert_eq!(connection.setting("TimeZone")?.as_deref(), Some("Asia/Tokyo"));
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// 42704 if there is no such role.
    pub fn log_in(&self, role: &str) -> Result<()> {
        self.session.log_in(role)
    }

    /// Returns the database.
    #[must_use]
    pub fn database(&self) -> &SqlDatabase {
        &self.session.database
    }

    /// Returns the number of the session, unique in its database: what `pg_backend_pid()` returns.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.session.number
    }

    /// Returns the value of a setting as SHOW does; `None` if there is no such setting.
    ///
    /// ```
    /// # let connection = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?.connect();
    /// connection.set_setting("application_name", "report")?;
    /// assert_eq!(connection.setting("application_name")?.as_deref(), Some("report"));
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn setting(&self, name: &str) -> Result<Option<String>> {
        self.session.show(name)
    }

    /// Changes a setting as SET does.
    ///
    /// # Errors
    /// 42704 if there is no such setting, 22023 or 0A000 if it does not take the value.
    pub fn set_setting(&self, name: &str, value: &str) -> Result<()> {
        self.session.assign(name, Some(value), SettingScope::Session).map(|_| ())
    }

    /// Returns the settings that the texts of values depend on: the time zone and the styles.
    ///
    /// ```
    /// # use quickbeam_sql::types::format_value;
    /// # let connection = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?.connect();
    /// connection.set_setting("TimeZone", "Europe/Berlin")?;
    /// let sql = "SELECT timestamptz 'epoch'";
    /// let value: quickbeam_sql::Value = connection.query_row(sql, &[], |row| row.get(0))?;
    /// let mut text = String::new();
    /// format_value(&mut text, value.as_ref(), &connection.text_settings());
    /// assert_eq!(text, "1970-01-01 01:00:00+01");
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn text_settings(&self) -> TextSettings {
        self.session.clock.settings()
    }

    /// Makes the settings of now those that RESET goes back to. A server calls it after it has
    /// taken the settings of a client's start-up message.
    ///
    /// ```
    /// # let connection = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?.connect();
    /// connection.set_setting("TimeZone", "Europe/Berlin")?;
    /// connection.keep_settings();
    /// connection.execute("SET TimeZone = 'Asia/Tokyo'", &[])?;
    /// connection.execute("RESET TimeZone", &[])?;
    /// assert_eq!(connection.setting("TimeZone")?.as_deref(), Some("Europe/Berlin"));
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn keep_settings(&self) {
        self.session.keep_settings();
    }

    /// Returns a setting that is a time; `None` if it is 0, which turns it off.
    #[must_use]
    pub fn timeout(&self, name: &str) -> Option<Duration> {
        self.session.timeout(name)
    }

    /// Returns a number that changes whenever a setting may have changed.
    #[must_use]
    pub fn settings_version(&self) -> u64 {
        self.session.settings_version.get()
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
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// assert!(!connection.in_transaction());
    /// connection.begin()?;
    /// assert!(connection.in_transaction());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.session.in_transaction()
    }

    /// Prepares a statement. It is compiled once and can run many times.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let mut insert = connection.prepare("INSERT INTO fruit VALUES ($1, $2)")?;
    /// insert.execute(params![1, "apple"])?;
    /// insert.execute(params![2, "pear"])?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn prepare(&self, text: &str) -> Result<Statement<'_>> {
        let mut statement = PreparedStatement::new(text);
        self.session.prepare(&mut statement)?;
        Ok(Statement::new(self, statement))
    }

    /// Prepares a statement for a transaction of the engine. It may name tables that the
    /// transaction has created and not committed.
    pub fn prepare_in(
        &self,
        transaction: &impl ReadTransaction,
        text: &str,
    ) -> Result<Statement<'_>> {
        let mut statement = PreparedStatement::new(text);
        self.session.prepare_in(&mut statement, transaction.as_transaction())?;
        Ok(Statement::new(self, statement))
    }

    /// Executes a statement and returns the number of rows that it inserted, changed or removed. A
    /// statement that returns rows is an error (55000), and is not run. The compiled statement is
    /// cached by its text.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let sql = "INSERT INTO fruit VALUES ($1, 'apple'), ($2, 'pear')";
    /// assert_eq!(connection.execute(sql, params![1, 2])?, 2);
    /// assert_eq!(connection.execute("DELETE FROM fruit WHERE id = $1", params![1])?, 1);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn execute(&self, text: &str, parameters: &[Value]) -> Result<u64> {
        let mut cached = CachedStatement::take(&self.cache, text);
        self.session.execute(cached.statement()?, parameters, ResultRows::Refused)
    }

    /// Executes a query and returns its rows. Other statements may be executed while they are read.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT name FROM fruit WHERE id = $1", params![1])?;
    /// while let Some(row) = rows.next()? {
    ///     assert_eq!(row.get::<&str>("name")?, "apple");
    ///     connection.execute("UPDATE fruit SET name = 'pear' WHERE id = 2", &[])?;
    /// }
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query(&self, text: &str, parameters: &[Value]) -> Result<Rows<'_>> {
        let cached = CachedStatement::take(&self.cache, text);
        self.session.query(Lease::Cached(cached), parameters)
    }

    /// Executes a query and returns what the function makes of its first row. Without a row it is
    /// an error (02000); [`query_optional`](Self::query_optional) returns `None` then.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let count = connection.query_row("SELECT count(*) FROM fruit", &[], |row| row.get::<u64>(0))?;
    /// assert_eq!(count, 2);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query_row<T>(
        &self,
        text: &str,
        parameters: &[Value],
        map: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        first_row(self.query(text, parameters)?, map)
    }

    /// Executes a query and returns what the function makes of its first row, or `None` without
    /// one.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let name = connection.query_optional("SELECT name FROM fruit", &[], |row| row.get::<String>(0))?;
    /// assert_eq!(name, None);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query_optional<T>(
        &self,
        text: &str,
        parameters: &[Value],
        map: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut rows = self.query(text, parameters)?;
        rows.next()?.map(|row| map(&row)).transpose()
    }

    /// Executes a query and returns an iterator over what the function makes of each row.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let ids = connection.query_map("SELECT id FROM fruit ORDER BY id", &[], |row| row.get(0))?;
    /// assert_eq!(ids.collect::<Result<Vec<i64>, _>>()?, [1, 2]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query_map<T, F: FnMut(&Row<'_>) -> Result<T>>(
        &self,
        text: &str,
        parameters: &[Value],
        map: F,
    ) -> Result<MappedRows<'_, F>> {
        Ok(self.query(text, parameters)?.mapped(map))
    }

    /// Like [`execute`](Self::execute), in a transaction of the engine that the caller commits. The
    /// transaction may also be used for key/value calls; all of it commits or rolls back together.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let environment = connection.database().environment().clone();
    /// let events = environment.create_database("events")?;
    /// environment.transact_with(|transaction| -> Result<(), Box<dyn std::error::Error>> {
    ///     connection.execute_in(transaction, "INSERT INTO fruit VALUES (1, 'apple')", &[])?;
    ///     events.put(transaction, b"1", b"apple added")?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn execute_in(
        &self,
        transaction: &Transaction,
        text: &str,
        parameters: &[Value],
    ) -> Result<u64> {
        let mut cached = CachedStatement::take(&self.cache, text);
        self.session.execute_in(cached.statement()?, transaction, parameters)
    }

    /// Like [`query`](Self::query), in a transaction or snapshot of the engine.
    pub fn query_in<'c>(
        &'c self,
        transaction: &'c impl ReadTransaction,
        text: &str,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        let transaction = transaction.as_transaction();
        let cached = CachedStatement::take(&self.cache, text);
        self.session.query_in(Lease::Cached(cached), transaction, parameters)
    }

    /// Executes several statements in order. Each is a transaction of its own unless the script has
    /// a BEGIN. Rows that they return are dropped. The position of an error counts from the start
    /// of the script.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// connection.execute_script(
    ///     "BEGIN;
    ///      INSERT INTO fruit VALUES (1, 'apple');
    ///      INSERT INTO fruit VALUES (2, 'pear');
    ///      COMMIT",
    /// )?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn execute_script(&self, text: &str) -> Result<()> {
        for piece in crate::parse::pieces(text)? {
            let start = piece.start;
            let mut statement = PreparedStatement::new(text.get(piece).unwrap_or_default());
            let done = self.session.execute(&mut statement, &[], ResultRows::Kept);
            done.map_err(|error| error.shifted(start))?;
        }
        Ok(())
    }

    /// Returns the schema as the next statement would see it.
    pub fn catalog_snapshot(&self) -> Result<Arc<CatalogSnapshot>> {
        let database = &self.session.database;
        match self.session.begun() {
            Ok(transaction) => database.catalog.snapshot(&*transaction),
            Err(_) => {
                database.catalog.snapshot(database.environment.begin_read()?.as_transaction())
            }
        }
    }

    /// Begins a transaction and returns a guard for it. Dropped without a commit, for example by an
    /// early return, it rolls back.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let mut connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let transaction = connection.transaction()?;
    /// transaction.execute("INSERT INTO fruit VALUES (1, 'apple')", &[])?;
    /// transaction.commit()?;
    ///
    /// let transaction = connection.transaction()?;
    /// transaction.execute("DELETE FROM fruit", &[])?;
    /// drop(transaction);
    /// assert_eq!(connection.query("SELECT * FROM fruit", &[])?.collect()?.len(), 1);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn transaction(&mut self) -> Result<SqlTransaction<'_>> {
        self.begin()?;
        Ok(SqlTransaction::new(self))
    }

    /// Begins a transaction, as BEGIN does. [`transaction`](Self::transaction) ends it by itself.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// connection.begin()?;
    /// connection.execute("INSERT INTO fruit VALUES (1, 'apple')", &[])?;
    /// connection.commit()?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn begin(&self) -> Result<()> {
        self.session.begin(Settings::default())
    }

    /// Commits the transaction, as COMMIT does.
    pub fn commit(&self) -> Result<()> {
        self.session.commit()
    }

    /// Rolls the transaction back, as ROLLBACK does.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// connection.begin()?;
    /// connection.execute("INSERT INTO fruit VALUES (1, 'apple')", &[])?;
    /// connection.rollback()?;
    /// assert!(connection.query("SELECT * FROM fruit", &[])?.collect()?.is_empty());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn rollback(&self) -> Result<()> {
        self.session.rollback()
    }

    /// Sets the isolation level of later transactions.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// connection.set_isolation(quickbeam::Isolation::ReadCommitted);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn set_isolation(&self, isolation: Isolation) {
        let settings = self.session.settings.get();
        self.session.settings.set(Settings { isolation: Some(isolation), ..settings });
    }

    /// Sets the durability of later transactions.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// use quickbeam::{Durability, Options};
    /// use quickbeam_sql::SqlDatabase;
    ///
    /// let database = SqlDatabase::open(directory.path(), Options::default())?;
    /// let connection = database.connect();
    /// connection.set_durability(Durability::NoSync);
    /// connection.execute("CREATE TABLE log (line TEXT)", &[])?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn set_durability(&self, durability: Durability) {
        let settings = self.session.settings.get();
        self.session.settings.set(Settings { durability: Some(durability), ..settings });
    }

    /// Sets what COPY may read and write. Without it COPY is refused.
    pub fn set_copy_access(&self, access: impl CopyAccess + 'static) {
        *self.session.copy_access.lock() = Some(Box::new(access));
    }

    /// Sets what `quickbeam_control(COMMAND, ARGUMENT)` runs. Without it the function is refused.
    pub fn set_control(&self, control: impl Fn(&str, &str) -> Result<String> + Send + 'static) {
        *self.session.control.lock() = Some(Box::new(control));
    }

    /// Sets the memory in bytes that one statement may use, for sorts and joins for example.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// connection.set_memory_limit(64 << 20);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn set_memory_limit(&self, bytes: usize) {
        self.session.limits.memory.set(bytes);
    }

    /// Returns the memory in bytes that one statement may use.
    #[must_use]
    pub fn memory_limit(&self) -> usize {
        self.session.limits.memory.get()
    }
}
