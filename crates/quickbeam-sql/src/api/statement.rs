//! Prepared statements: bound to a connection, and free of one.

use std::cell::RefCell;
use std::sync::Arc;

use lru::LruCache;
use quickbeam::ReadTransaction;
use smol_str::SmolStr;
use sqlparser::ast::Statement as Ast;

use super::connection::Session;
use super::row::Row;
use super::rows::{MappedRows, Rows};
use crate::api::Connection;
use crate::bind::OutputColumn;
use crate::catalog::CatalogSnapshot;
use crate::compile::prepare::{CompileContext, Prepared, Program};
use crate::error::{Result, SqlError, SqlState};
use crate::plan::ExecutionMode;
use crate::session::executor::ResultRows;
use crate::session::named::NamedStatements;
use crate::session::session_command::Control;
use crate::types::{DataType, Value};

/// A prepared statement of a connection. It is compiled once and executed many times.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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
    /// # let database = SqlDatabase::memory(Default::default())?;
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

/// A prepared statement that works with any connection to its database. [`Statement`] is the same
/// with a connection.
pub struct PreparedStatement {
    pub(crate) text: Arc<str>,
    pub(crate) prepared: Option<Prepared>,
    /// The version of the catalog that it was prepared for.
    pub(crate) version: u64,
    /// The execution mode that the session asked for then.
    pub(crate) way: ExecutionMode,
    /// The session command that it is; the outer `None` before the text is parsed.
    pub(crate) control: Option<Option<Control>>,
    /// The syntax tree, from parsing the text until compiling it.
    pub(crate) parsed: Option<Box<Ast>>,
    /// The types of its first parameters, if they were declared.
    pub(crate) types: Arc<[DataType]>,
    /// The columns of a command's result.
    pub(crate) columns: Arc<[OutputColumn]>,
}

impl PreparedStatement {
    pub(crate) fn new(text: &str) -> PreparedStatement {
        PreparedStatement {
            text: text.into(),
            prepared: None,
            version: 0,
            way: ExecutionMode::Auto,
            control: None,
            parsed: None,
            types: Arc::new([]),
            columns: Arc::new([]),
        }
    }

    /// Declares the types of the first parameters.
    pub(crate) fn with_types(self, types: Arc<[DataType]>) -> PreparedStatement {
        PreparedStatement { types, ..self }
    }

    /// Whether it is a COPY, which is not tried again by itself (COPY-2).
    pub(crate) fn is_copy(&self) -> bool {
        let work = self.prepared.as_ref().map(|prepared| &prepared.work);
        matches!(work, Some(Program::CopyFrom(_) | Program::CopyTo(..)))
    }

    /// Returns the text of the statement.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names and types of the result columns; empty without a result.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        self.prepared.as_ref().map_or(&self.columns, |prepared| &prepared.columns)
    }

    /// Returns the types of the parameters.
    #[must_use]
    pub fn parameters(&self) -> &[DataType] {
        self.prepared.as_ref().map_or(&[], |prepared| &prepared.parameters)
    }

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

/// Statements by text, the least recently used one dropped first. `None` stands for a statement
/// that is in use.
pub(crate) type StatementCache = RefCell<LruCache<Arc<str>, Option<Box<PreparedStatement>>>>;

/// A statement in use: the caller's, or the cache's.
pub(crate) enum Lease<'c> {
    Borrowed(&'c mut PreparedStatement),
    Cached(CachedStatement<'c>),
    Owned(Box<PreparedStatement>),
}

impl Lease<'_> {
    pub fn statement(&mut self) -> Result<&mut PreparedStatement> {
        match self {
            Lease::Borrowed(statement) => Ok(statement),
            Lease::Cached(cached) => cached.statement(),
            Lease::Owned(statement) => Ok(statement),
        }
    }

    #[inline]
    pub fn prepared(&self) -> Option<&Prepared> {
        match self {
            Lease::Borrowed(statement) => statement.prepared.as_ref(),
            Lease::Cached(cached) => cached.statement.as_ref()?.prepared.as_ref(),
            Lease::Owned(statement) => statement.prepared.as_ref(),
        }
    }

    #[inline]
    pub fn prepared_mut(&mut self) -> Option<&mut Prepared> {
        match self {
            Lease::Borrowed(statement) => statement.prepared.as_mut(),
            Lease::Cached(cached) => cached.statement.as_mut()?.prepared.as_mut(),
            Lease::Owned(statement) => statement.prepared.as_mut(),
        }
    }
}

/// The place that a statement goes back to.
enum Home<'c> {
    Cache(&'c StatementCache),
    Named(&'c NamedStatements, SmolStr),
}

/// A statement taken from the cache, or a named one. It goes back when it is dropped.
pub(crate) struct CachedStatement<'c> {
    home: Home<'c>,
    statement: Option<Box<PreparedStatement>>,
}

impl<'c> CachedStatement<'c> {
    /// Takes the cached statement of a text. While it is in use, another one of the same text is
    /// compiled separately.
    pub fn take(cache: &'c StatementCache, text: &str) -> CachedStatement<'c> {
        let kept = cache.borrow_mut().get_mut(text).and_then(Option::take);
        let statement = kept.unwrap_or_else(|| Box::new(PreparedStatement::new(text)));
        CachedStatement { home: Home::Cache(cache), statement: Some(statement) }
    }

    /// Wraps a statement that PREPARE named.
    pub fn of_named(
        named: &'c NamedStatements,
        name: SmolStr,
        statement: Box<PreparedStatement>,
    ) -> CachedStatement<'c> {
        CachedStatement { home: Home::Named(named, name), statement: Some(statement) }
    }

    pub fn statement(&mut self) -> Result<&mut PreparedStatement> {
        let statement = self.statement.as_deref_mut();
        statement.ok_or_else(|| SqlError::internal("a statement that went back to the cache"))
    }
}

impl Drop for CachedStatement<'_> {
    fn drop(&mut self) {
        // A text that did not compile is not worth a place.
        let Some(statement) = self.statement.take().filter(|it| it.control.is_some()) else {
            return;
        };
        match &self.home {
            Home::Cache(cache) => {
                cache.borrow_mut().put(statement.text.clone(), Some(statement));
            }
            Home::Named(named, name) => {
                if let Some(named) = named.borrow_mut().get_mut(name)
                    && Arc::ptr_eq(&named.text, &statement.text)
                {
                    named.statement = Some(statement);
                }
            }
        }
    }
}

impl Session {
    /// Makes sure that a statement is prepared for what the transaction sees (SESSION-2).
    #[inline]
    pub(crate) fn ensure_compiled<'s>(
        &self,
        statement: &'s mut PreparedStatement,
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
        // EXPLAIN shows the plan that the statement would get now, with fresh row counts.
        if matches!(prepared.work, Program::Explain(..)) {
            return false;
        }
        let (Some(planned), Some(snapshot)) = (&mut prepared.planned_for, &prepared.snapshot)
        else {
            return true;
        };
        !planned.is_due() || !self.look(transaction, snapshot).plan_is_stale(planned)
    }

    /// The database as the transaction sees it, for the binder and the planner.
    pub(crate) fn look<'l>(
        &'l self,
        transaction: &'l quickbeam::Transaction,
        snapshot: &'l Arc<CatalogSnapshot>,
    ) -> CompileContext<'l> {
        let way = self.way();
        CompileContext { database: &self.database, transaction, snapshot, way, types: &[] }
    }

    #[cold]
    fn recompile(
        &self,
        statement: &mut PreparedStatement,
        transaction: &quickbeam::Transaction,
    ) -> Result<()> {
        let snapshot = self.database.catalog.snapshot(transaction)?;
        statement.prepared = None;
        let parsed = statement.parsed.take();
        let look = CompileContext { types: &statement.types, ..self.look(transaction, &snapshot) };
        statement.prepared = Some(look.prepare(&statement.text, parsed)?);
        statement.version = snapshot.version();
        statement.way = self.way();
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn execute(cache: &StatementCache, text: &str) {
        let mut cached = CachedStatement::take(cache, text);
        cached.statement().unwrap().control = Some(None);
    }

    #[test]
    fn the_least_recently_used_statement_leaves_the_cache() {
        let cache = RefCell::new(LruCache::new(NonZeroUsize::new(2).unwrap()));
        for text in ["a", "b", "a", "c"] {
            execute(&cache, text);
        }
        let is_kept = |text: &str| cache.borrow().contains(text);
        assert_eq!(["a", "b", "c"].map(is_kept), [true, false, true]);
    }

    #[test]
    fn a_text_that_did_not_compile_is_not_kept() {
        let cache = RefCell::new(LruCache::new(NonZeroUsize::new(2).unwrap()));
        drop(CachedStatement::take(&cache, "a"));
        assert!(cache.borrow().is_empty());
    }

    #[test]
    fn a_statement_in_use_is_compiled_again() {
        let cache = RefCell::new(LruCache::new(NonZeroUsize::new(2).unwrap()));
        execute(&cache, "a");
        let mut first = CachedStatement::take(&cache, "a");
        let mut second = CachedStatement::take(&cache, "a");
        assert!(first.statement().unwrap().control.is_some());
        assert!(second.statement().unwrap().control.is_none());
    }
}
