//! Rows of an answer.

use std::cell::{Cell, Ref};
use std::sync::Arc;

use quickbeam::query_layer::TransactionExt;
use quickbeam::{ReadTransaction, Snapshot, Transaction, invariant};

use crate::bind::OutputColumn;
use crate::compile::{Prepared, Program};
use crate::error::Result;
use crate::execute::{Context, KeptKeys, MemoryBudget, Returned};
use crate::rust_types::row::{OwnedRow, Row};
use crate::session::Session;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::statement_cache::Lease;
use crate::types::{DataType, ElementType, Value};

/// The transaction that a query reads in.
pub(crate) enum QueryTransaction<'c> {
    /// A snapshot of the query alone.
    Own(Snapshot),
    /// A transaction of the caller.
    Lent(&'c Transaction),
    /// The connection's; the borrow keeps it from ending.
    Session(Ref<'c, Transaction>),
}

impl QueryTransaction<'_> {
    pub fn transaction(&self) -> &Transaction {
        match self {
            QueryTransaction::Own(snapshot) => snapshot.as_transaction(),
            QueryTransaction::Lent(transaction) => transaction,
            QueryTransaction::Session(transaction) => transaction,
        }
    }
}

/// Queries of a connection whose rows are being read.
#[derive(Default)]
pub(crate) struct OpenQueries {
    pub queries: Cell<usize>,
    /// Those that read in the connection's transaction, or in one of the caller.
    pub in_transaction: Cell<usize>,
}

impl OpenQueries {
    fn add(&self, read: &QueryTransaction<'_>) {
        self.queries.set(self.queries.get() + 1);
        if !matches!(read, QueryTransaction::Own(_)) {
            self.in_transaction.set(self.in_transaction.get() + 1);
        }
    }

    fn remove(&self, read: &QueryTransaction<'_>) {
        self.queries.set(self.queries.get().saturating_sub(1));
        if !matches!(read, QueryTransaction::Own(_)) {
            self.in_transaction.set(self.in_transaction.get().saturating_sub(1));
        }
    }
}

/// The rows of a result. Each row is computed when it is asked for.
///
/// [`next`](Self::next) returns borrowed rows, which is the fast way. As an iterator, by
/// [`mapped`](Self::mapped) or `for`, it returns values. The connection stays usable meanwhile, but
/// its transaction cannot end. Changes that other statements of the transaction make meanwhile may
/// or may not be seen.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::open_in_memory(Default::default())?;
/// # let mut connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
/// let mut rows = connection.query("SELECT id, name FROM fruit ORDER BY id", &[])?;
/// while let Some(row) = rows.next()? {
///     println!("{} {:?}", row.get::<i64>(0)?, row.get::<Option<&str>>(1)?);
/// }
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub struct Rows<'c> {
    source: RowsSource<'c>,
    /// Computed values of the current row.
    values: Vec<Value>,
}

enum RowsSource<'c> {
    Kept { columns: Arc<[OutputColumn]>, rows: Returned, next: usize },
    Running(Running<'c>),
}

struct Running<'c> {
    session: &'c Session,
    lease: Lease<'c>,
    read: QueryTransaction<'c>,
    budget: MemoryBudget,
    done: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Rows that were not read to their end made no error.
        let ended = self.session.finish_calls(self.read.transaction(), Ok(()));
        debug_assert!(ended.is_ok(), "the end of a statement that did not fail");
        self.read.transaction().end_statement();
        self.session.reading.remove(&self.read);
        let is_own = matches!(self.read, QueryTransaction::Own(_));
        if is_own && !self.session.in_transaction() {
            self.session.release_locks(true);
            self.session.finish_events(true);
        }
    }
}

impl<'c> Rows<'c> {
    /// No rows.
    pub(crate) fn none() -> Rows<'c> {
        Rows::of(Arc::new([]), Vec::new())
    }

    /// Rows that are there already.
    pub(crate) fn of(columns: Arc<[OutputColumn]>, rows: Returned) -> Rows<'c> {
        Rows { source: RowsSource::Kept { columns, rows, next: 0 }, values: Vec::new() }
    }

    /// The rows of a query that was made ready.
    pub(crate) fn streaming(
        session: &'c Session,
        lease: Lease<'c>,
        read: QueryTransaction<'c>,
    ) -> Rows<'c> {
        let executions = lease.prepared().map_or(0, |prepared| prepared.executions);
        let budget = MemoryBudget::new(executions);
        session.reading.add(&read);
        let running = Running { session, lease, read, budget, done: false };
        Rows { source: RowsSource::Running(running), values: Vec::new() }
    }

    /// Returns the names and types of the columns.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let rows = connection.query("SELECT id, name FROM fruit", &[])?;
    /// let names: Vec<&str> = rows.columns().iter().map(|column| column.name.as_str()).collect();
    /// assert_eq!(names, ["id", "name"]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        match &self.source {
            RowsSource::Kept { columns, .. } => columns,
            RowsSource::Running(running) => running.columns(),
        }
    }

    /// Returns the next row, or `None` at the end and after an error.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT name FROM fruit WHERE id = 1", &[])?;
    /// assert_eq!(rows.next()?.unwrap().get::<&str>(0)?, "apple");
    /// assert!(rows.next()?.is_none());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        let more = match &mut self.source {
            RowsSource::Kept { rows, next, .. } => {
                *next += 1;
                *next <= rows.len()
            }
            RowsSource::Running(running) => {
                let more = if running.done { Ok(false) } else { running.next(&mut self.values) };
                running.done |= !matches!(more, Ok(true));
                more?
            }
        };
        Ok(more.then_some(self.row()))
    }

    fn row(&self) -> Row<'_> {
        let columns = self.columns();
        match &self.source {
            RowsSource::Kept { rows, next, .. } => {
                let values = rows.get(next.wrapping_sub(1)).map_or(&[][..], |row| row);
                Row::of_values(columns, values)
            }
            RowsSource::Running(running) => match running.lease.prepared() {
                Some(Prepared { work: Program::Query(query), slots, .. }) => {
                    Row::current(columns, &self.values, slots, &query.outputs)
                }
                _ => Row::of_values(columns, &[]),
            },
        }
    }

    /// Returns an iterator over what the function makes of each row.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, 'pear')", &[])?;
    /// let names = connection.query("SELECT name FROM fruit ORDER BY id", &[])?;
    /// let names: Vec<String> = names.mapped(|row| row.get("name")).collect::<Result<_, _>>()?;
    /// assert_eq!(names, ["apple", "pear"]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn mapped<T, F: FnMut(&Row<'_>) -> Result<T>>(self, map: F) -> MappedRows<'c, F> {
        MappedRows { rows: self, map }
    }

    /// Returns the remaining rows as values.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let rows = connection.query("SELECT id FROM fruit ORDER BY id", &[])?.collect()?;
    /// assert_eq!(rows, [[1.into()], [2.into()]]);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn collect(mut self) -> Result<Vec<Vec<Value>>> {
        let mut all = Vec::new();
        while let Some(row) = self.next()? {
            all.push(row.to_values()?);
        }
        Ok(all)
    }
}

/// The rows of a query through a function, as an iterator.
pub struct MappedRows<'c, F> {
    rows: Rows<'c>,
    map: F,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for MappedRows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match self.rows.next() {
            Ok(None) => None,
            Ok(Some(row)) => Some((self.map)(&row)),
            Err(error) => Some(Err(error)),
        }
    }
}

/// The rows of a query as values.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, 'pear')", &[])?;
/// for row in connection.query("SELECT id, name FROM fruit", &[])? {
///     let row = row?;
///     let name = row.get::<String>("name")?;
///     connection.execute("UPDATE fruit SET name = $1 WHERE id = $2", params![name + "s", row.get::<i32>("id")?])?;
/// }
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
impl<'c> IntoIterator for Rows<'c> {
    type Item = Result<OwnedRow>;
    type IntoIter = OwnedRows<'c>;

    fn into_iter(self) -> OwnedRows<'c> {
        let columns = match &self.source {
            RowsSource::Kept { columns, .. } => columns.clone(),
            RowsSource::Running(running) => {
                running.lease.prepared().map_or_else(|| Arc::new([]) as _, |it| it.columns.clone())
            }
        };
        OwnedRows { columns, rows: self }
    }
}

/// The rows of a query as values, as an iterator.
pub struct OwnedRows<'c> {
    columns: Arc<[OutputColumn]>,
    rows: Rows<'c>,
}

impl Iterator for OwnedRows<'_> {
    type Item = Result<OwnedRow>;

    fn next(&mut self) -> Option<Result<OwnedRow>> {
        match self.rows.next() {
            Ok(None) => None,
            Ok(Some(row)) => {
                let values = row.to_values();
                Some(values.map(|values| OwnedRow::new(self.columns.clone(), values)))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl Rows<'_> {
    /// Returns the statement, if the rows own it.
    #[must_use]
    pub fn into_statement(self) -> Option<PreparedStatement> {
        let RowsSource::Running(mut running) = self.source else { return None };
        let empty = Lease::Owned(Box::new(PreparedStatement::new("")));
        match std::mem::replace(&mut running.lease, empty) {
            Lease::Owned(statement) => Some(*statement),
            _ => None,
        }
    }

    /// Whether the query is that of a cursor and locks rows.
    pub(crate) fn locks_rows(&self) -> bool {
        let RowsSource::Running(running) = &self.source else { return false };
        running.lease.prepared().is_some_and(Prepared::locks_rows)
    }

    /// Takes the keys of the rows so far, if the query is that of a cursor.
    pub(crate) fn take_keys(&mut self) -> Option<Box<KeptKeys>> {
        let RowsSource::Running(running) = &mut self.source else { return None };
        running.lease.prepared_mut()?.take_keys()
    }

    /// Returns whether later statements of the transaction leave the rows as they are.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        match &self.source {
            RowsSource::Kept { .. } => true,
            RowsSource::Running(running) => matches!(running.read, QueryTransaction::Own(_)),
        }
    }
}

/// Returns whether rows store a value as values of that type. Names of objects may be texts.
fn is_stored_as(value: &Value, data_type: DataType) -> bool {
    if matches!((value, data_type), (Value::Text(_), DataType::System(_))) {
        return true;
    }
    let stored = |data_type| ElementType::new(data_type).map(ElementType::stored);
    value.data_type().is_none_or(|own| stored(own) == stored(data_type))
}

impl Running<'_> {
    fn columns(&self) -> &[OutputColumn] {
        self.lease.prepared().map_or(&[], |prepared| &prepared.columns)
    }

    fn next(&mut self, values: &mut Vec<Value>) -> Result<bool> {
        let Some(Prepared {
            snapshot: Some(snapshot),
            work: Program::Query(query),
            slots,
            values: parameters,
            columns,
            ..
        }) = self.lease.prepared_mut()
        else {
            return Ok(false);
        };
        let mut context = Context {
            transaction: self.read.transaction(),
            catalog: &self.session.database.catalog,
            snapshot,
            slots,
            parameters,
            clock: &self.session.clock,
            session: self.session,
            given: &self.session.given,
            limits: &self.session.limits,
            budget: &self.budget,
        };
        let mut more = query.root.next(&mut context);
        if matches!(more, Ok(true)) {
            query.keep_keys(&context)?;
            values.clear();
            for (output, column) in query.outputs.iter().zip(&**columns) {
                // Columns are read where they stand, when they are asked for.
                if output.as_column().is_none() {
                    match context.value(output) {
                        Ok(value) => {
                            let is_typed = is_stored_as(&value, column.data_type);
                            invariant!(BIND_1, is_typed, "{value:?} is no {}", column.data_type);
                            values.push(value);
                        }
                        Err(error) => {
                            more = Err(error);
                            break;
                        }
                    }
                }
            }
        }
        match more {
            Err(_) => self.session.finish_calls(self.read.transaction(), more),
            more => more,
        }
    }
}
