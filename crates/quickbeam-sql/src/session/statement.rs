//! Prepared statements.

use std::sync::Arc;

use super::Connection;
use super::connection::Session;
use super::prepare::{CompileContext, Prepared, Program};
use super::rows::Rows;
use super::session_command::Control;
use crate::bind::OutputColumn;
use crate::catalog::CatalogSnapshot;
use crate::error::Result;
use crate::plan::ExecutionMode;
use crate::types::{DataType, Value};

/// A prepared statement. It works with any connection to its database, in one thread at a time.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::memory(Default::default())?;
/// # let mut connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
/// let mut select = connection.prepare("SELECT name FROM fruit WHERE id = $1")?;
/// for id in [1, 2] {
///     let mut rows = select.query(&mut connection, params![id])?;
///     while let Some(row) = rows.next()? {
///         println!("{:?}", row.get::<Option<&str>>(0)?);
///     }
/// }
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub struct Statement {
    pub(super) text: Arc<str>,
    pub(super) prepared: Option<Prepared>,
    /// The version of the catalog that it was prepared for.
    pub(super) version: u64,
    /// What the session wanted of the planner then.
    pub(super) way: ExecutionMode,
    /// What it steers; the outer `None`: nobody has looked yet.
    pub(super) control: Option<Option<Control>>,
}

impl Statement {
    pub(super) fn new(text: &str) -> Statement {
        Statement {
            text: text.into(),
            prepared: None,
            version: 0,
            way: ExecutionMode::Auto,
            control: None,
        }
    }

    /// Whether it is a COPY, which is not tried again by itself (COPY-2).
    pub(super) fn is_copy(&self) -> bool {
        let work = self.prepared.as_ref().map(|prepared| &prepared.work);
        matches!(work, Some(Program::CopyFrom(_) | Program::CopyTo(..)))
    }

    /// Returns the text of the statement.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names and types of the result columns; empty without a result.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let select = connection.prepare("SELECT id, name AS label FROM fruit")?;
    /// assert_eq!(select.columns()[1].name, "label");
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        self.prepared.as_ref().map_or(&[], |prepared| &prepared.columns)
    }

    /// Returns the types of the parameters.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// use quickbeam_sql::DataType;
    ///
    /// let select = connection.prepare("SELECT name FROM fruit WHERE id = $1")?;
    /// assert_eq!(select.parameters(), [DataType::Integer]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn parameters(&self) -> &[DataType] {
        self.prepared.as_ref().map_or(&[], |prepared| &prepared.parameters)
    }

    /// Executes it and returns how many rows it inserted, changed, removed or, for a query,
    /// delivered.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rename = connection.prepare("UPDATE fruit SET name = $2 WHERE id = $1")?;
    /// assert_eq!(rename.execute(&mut connection, params![2, "pear"])?, 1);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn execute(&mut self, connection: &mut Connection, parameters: &[Value]) -> Result<u64> {
        connection.session.execute(self, parameters)
    }

    /// Executes it and returns its rows.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut select = connection.prepare("SELECT id FROM fruit ORDER BY id")?;
    /// let rows = select.query(&mut connection, &[])?.collect()?;
    /// assert_eq!(rows.len(), 2);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query<'c>(
        &'c mut self,
        connection: &'c mut Connection,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        connection.session.query(self, parameters)
    }

    /// Like [`execute`](Self::execute), in a transaction of the engine that the caller commits. The
    /// transaction may also be used for key/value calls; all of it commits or rolls back together.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// let environment = database.environment().clone();
    /// let events = environment.create_database("events")?;
    /// let mut insert = connection.prepare("INSERT INTO fruit VALUES ($1, $2)")?;
    ///
    /// let transaction = environment.begin()?;
    /// insert.execute_in(&mut connection, &transaction, params![1, "apple"])?;
    /// events.put(&transaction, b"1", b"apple added")?;
    /// transaction.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn execute_in(
        &mut self,
        connection: &mut Connection,
        transaction: &quickbeam::Transaction,
        parameters: &[Value],
    ) -> Result<u64> {
        connection.session.execute_in(self, transaction, parameters)
    }

    /// Like [`query`](Self::query), in a transaction of the engine.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let snapshot = database.environment().begin_read()?;
    /// let mut select = connection.prepare("SELECT count(*) FROM fruit")?;
    /// let mut rows = select.query_in(&mut connection, &snapshot, &[])?;
    /// assert_eq!(rows.next()?.unwrap().get::<i64>(0)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn query_in<'c>(
        &'c mut self,
        connection: &'c mut Connection,
        transaction: &'c quickbeam::Transaction,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        connection.session.query_in(self, transaction, parameters)
    }
}

impl Session {
    /// Makes sure that a statement is prepared for what the transaction sees (SESSION-2).
    #[inline]
    pub(super) fn ensure_compiled<'s>(
        &self,
        statement: &'s mut Statement,
        transaction: &quickbeam::Transaction,
    ) -> Result<&'s mut Prepared> {
        let version = self.database.catalog.version(transaction)?;
        let is_kept = statement.version == version && statement.way == self.way();
        if !is_kept || !self.is_current(statement.prepared.as_mut(), transaction) {
            self.recompile(statement, transaction)?;
        }
        statement.prepared.as_mut().ok_or_else(|| crate::error::SqlError::internal("not prepared"))
    }

    /// Whether it is prepared, for about as much as there is.
    #[inline]
    fn is_current(
        &self,
        prepared: Option<&mut Prepared>,
        transaction: &quickbeam::Transaction,
    ) -> bool {
        let Some(prepared) = prepared else { return false };
        // EXPLAIN says how the statement would be planned now, and counts anew.
        if matches!(prepared.work, Program::Explain(..)) {
            return false;
        }
        let (Some(planned), Some(snapshot)) = (&mut prepared.planned_for, &prepared.snapshot)
        else {
            return true;
        };
        !planned.is_due() || !self.look(transaction, snapshot).plan_is_stale(planned)
    }

    /// What the binder and the planner ask about the database, as the transaction sees it.
    pub(super) fn look<'l>(
        &'l self,
        transaction: &'l quickbeam::Transaction,
        snapshot: &'l Arc<CatalogSnapshot>,
    ) -> CompileContext<'l> {
        CompileContext { database: &self.database, transaction, snapshot, way: self.way() }
    }

    #[cold]
    fn recompile(
        &self,
        statement: &mut Statement,
        transaction: &quickbeam::Transaction,
    ) -> Result<()> {
        let snapshot = self.database.catalog.snapshot(transaction)?;
        statement.prepared = None;
        statement.prepared = Some(self.look(transaction, &snapshot).prepare(&statement.text)?);
        statement.version = snapshot.version();
        statement.way = self.way();
        Ok(())
    }
}
