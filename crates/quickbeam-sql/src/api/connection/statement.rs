//! Prepared statements: bound to a connection, and free of one.

use quickbeam::ReadTransaction;

use super::Connection;
use crate::bind::OutputColumn;
use crate::error::{Result, SqlError, SqlState};
use crate::rust_types::row::Row;
use crate::session::executor::ResultRows;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::rows::{MappedRows, Rows};
use crate::session::statement_cache::Lease;
use crate::types::{DataType, Value};

/// A prepared statement of a connection. It is compiled once and executed many times.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::open_in_memory(Default::default())?;
/// # let connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
/// let mut select = connection.prepare("SELECT name FROM fruit WHERE id = $1")?;
/// for id in [1, 2] {
///     let mut rows = select.query(params![id])?;
///     while let Some(row) = rows.next()? {
///         println!("{:?}", row.get::<Option<&str>>("name")?);
///     }
/// }
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub struct Statement<'c> {
    connection: &'c Connection,
    statement: PreparedStatement,
}

impl<'c> Statement<'c> {
    pub(crate) fn new(connection: &'c Connection, statement: PreparedStatement) -> Statement<'c> {
        Statement { connection, statement }
    }

    /// Returns the text of the statement.
    #[must_use]
    pub fn text(&self) -> &str {
        self.statement.text()
    }

    /// Returns the names and types of the result columns; empty without a result.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let select = connection.prepare("SELECT id, name AS label FROM fruit")?;
    /// assert_eq!(select.columns()[1].name, "label");
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        self.statement.columns()
    }

    /// Returns the types of the parameters.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// use quickbeam_sql::DataType;
    ///
    /// let select = connection.prepare("SELECT name FROM fruit WHERE id = $1")?;
    /// assert_eq!(select.parameters(), [DataType::Integer]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn parameters(&self) -> &[DataType] {
        self.statement.parameters()
    }

    /// Executes the statement and returns the number of rows that it inserted, changed or removed.
    /// A statement that returns rows is an error (55000), and is not run.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rename = connection.prepare("UPDATE fruit SET name = $2 WHERE id = $1")?;
    /// assert_eq!(rename.execute(params![2, "pear"])?, 1);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn execute(&mut self, parameters: &[Value]) -> Result<u64> {
        self.statement.execute(self.connection, parameters)
    }

    /// Executes the statement and returns its rows.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut select = connection.prepare("SELECT id FROM fruit ORDER BY id")?;
    /// assert_eq!(select.query(&[])?.collect()?.len(), 2);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query(&mut self, parameters: &[Value]) -> Result<Rows<'_>> {
        self.statement.query(self.connection, parameters)
    }

    /// Executes the statement and returns what the function makes of its first row. Without a row
    /// it is an error (02000).
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut name = connection.prepare("SELECT name FROM fruit WHERE id = $1")?;
    /// assert_eq!(name.query_row(params![1], |row| row.get::<String>(0))?, "apple");
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query_row<T>(
        &mut self,
        parameters: &[Value],
        map: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        first_row(self.query(parameters)?, map)
    }

    /// Executes the statement and returns an iterator over what the function makes of each row.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut ids = connection.prepare("SELECT id FROM fruit ORDER BY id")?;
    /// let ids: Vec<i32> = ids.query_map(&[], |row| row.get("id"))?.collect::<Result<_, _>>()?;
    /// assert_eq!(ids, [1, 2]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query_map<T, F: FnMut(&Row<'_>) -> Result<T>>(
        &mut self,
        parameters: &[Value],
        map: F,
    ) -> Result<MappedRows<'_, F>> {
        Ok(self.query(parameters)?.mapped(map))
    }

    /// Like [`execute`](Self::execute), in a transaction of the engine that the caller commits. The
    /// transaction may also be used for key/value calls; all of it commits or rolls back together.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let environment = database.environment().clone();
    /// let events = environment.create_database("events")?;
    /// let mut insert = connection.prepare("INSERT INTO fruit VALUES ($1, $2)")?;
    ///
    /// let transaction = environment.begin()?;
    /// insert.execute_in(&transaction, params![3, "plum"])?;
    /// events.put(&transaction, b"3", b"plum added")?;
    /// transaction.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn execute_in(
        &mut self,
        transaction: &quickbeam::Transaction,
        parameters: &[Value],
    ) -> Result<u64> {
        self.statement.execute_in(self.connection, transaction, parameters)
    }

    /// Like [`query`](Self::query), in a transaction or snapshot of the engine.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let snapshot = database.environment().begin_read()?;
    /// let mut select = connection.prepare("SELECT count(*) FROM fruit")?;
    /// let mut rows = select.query_in(&snapshot, &[])?;
    /// assert_eq!(rows.next()?.unwrap().get::<i64>(0)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn query_in<'s>(
        &'s mut self,
        transaction: &'s impl ReadTransaction,
        parameters: &[Value],
    ) -> Result<Rows<'s>> {
        self.statement.query_in(self.connection, transaction, parameters)
    }

    /// Returns the statement without its connection, to be kept beside it in a struct, for example.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut insert = connection.prepare("INSERT INTO fruit VALUES ($1, $2)")?.into_prepared();
    /// insert.execute(&database.connect(), params![3, "plum"])?;
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn into_prepared(self) -> PreparedStatement {
        self.statement
    }
}

impl PreparedStatement {
    /// Executes the statement, as [`Statement::execute`].
    pub fn execute(&mut self, connection: &Connection, parameters: &[Value]) -> Result<u64> {
        connection.session.execute(self, parameters, ResultRows::Refused)
    }

    /// Executes the statement and returns its rows, as [`Statement::query`].
    pub fn query<'c>(
        &'c mut self,
        connection: &'c Connection,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        connection.session.query(Lease::Borrowed(self), parameters)
    }

    /// Executes the statement in a transaction of the engine, as [`Statement::execute_in`].
    pub fn execute_in(
        &mut self,
        connection: &Connection,
        transaction: &quickbeam::Transaction,
        parameters: &[Value],
    ) -> Result<u64> {
        connection.session.execute_in(self, transaction, parameters)
    }

    /// Executes the statement in a transaction of the engine, as [`Statement::query_in`].
    pub fn query_in<'c>(
        &'c mut self,
        connection: &'c Connection,
        transaction: &'c impl ReadTransaction,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        connection.session.query_in(Lease::Borrowed(self), transaction.as_transaction(), parameters)
    }
}

/// Returns what the function makes of the first row.
pub(crate) fn first_row<T>(
    mut rows: Rows<'_>,
    map: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<T> {
    match rows.next()? {
        Some(row) => map(&row),
        None => Err(SqlError::new(SqlState::NoData, "the query returned no row")),
    }
}
