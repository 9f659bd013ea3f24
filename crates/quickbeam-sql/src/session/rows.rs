//! Rows of an answer.

use std::sync::Arc;

use quickbeam::Transaction;

use super::connection::Session;
use super::prepare::{Prepared, Program};
use crate::bind::OutputColumn;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{Context, MemoryBudget, Returned};
use crate::expression::{Expr, Slot};
use crate::types::{Value, ValueRef};

/// The transaction that a query reads in.
pub(super) enum Held<'c> {
    /// The query's own.
    Own(Transaction),
    /// Another one's.
    Lent(&'c Transaction),
}

impl Held<'_> {
    pub fn transaction(&self) -> &Transaction {
        match self {
            Held::Own(transaction) => transaction,
            Held::Lent(transaction) => transaction,
        }
    }
}

/// The rows of a result. Each row is computed when it is asked for.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::memory(Default::default())?;
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
    /// Values of the row stood on that are computed.
    values: Vec<Value>,
}

enum RowsSource<'c> {
    Kept { columns: Arc<[OutputColumn]>, rows: Returned, next: usize },
    Running(Running<'c>),
}

struct Running<'c> {
    session: &'c Session,
    prepared: &'c mut Prepared,
    held: Held<'c>,
    budget: MemoryBudget,
    done: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.held.transaction().end_statement();
    }
}

impl<'c> Rows<'c> {
    /// No rows.
    pub(super) fn none() -> Rows<'c> {
        Rows::of(Arc::new([]), Vec::new())
    }

    /// Rows that are there already.
    pub(super) fn of(columns: Arc<[OutputColumn]>, rows: Returned) -> Rows<'c> {
        Rows { source: RowsSource::Kept { columns, rows, next: 0 }, values: Vec::new() }
    }

    pub(super) fn streaming(
        session: &'c Session,
        prepared: &'c mut Prepared,
        held: Held<'c>,
    ) -> Rows<'c> {
        if let Program::Query(query) = &mut prepared.work {
            query.root.rewind();
        }
        prepared.executions += 1;
        let budget = MemoryBudget::new(prepared.executions);
        let running = Running { session, prepared, held, budget, done: false };
        Rows { source: RowsSource::Running(running), values: Vec::new() }
    }

    /// Returns the names and types of the columns.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
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
            RowsSource::Running(running) => &running.prepared.columns,
        }
    }

    /// Returns the next row, or `None` at the end and after an error.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
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
        let width = self.columns().len();
        match &self.source {
            RowsSource::Kept { rows, next, .. } => {
                let values = rows.get(next.wrapping_sub(1)).map_or(&[][..], |row| row);
                Row { width, values, standing: None }
            }
            RowsSource::Running(running) => {
                let outputs = match &running.prepared.work {
                    Program::Query(query) => &query.outputs[..],
                    _ => &[],
                };
                Row {
                    width,
                    values: &self.values,
                    standing: Some((&running.prepared.slots, outputs)),
                }
            }
        }
    }

    /// Returns the remaining rows as values.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
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

impl Running<'_> {
    fn next(&mut self, values: &mut Vec<Value>) -> Result<bool> {
        let Prepared {
            snapshot: Some(snapshot),
            work: Program::Query(query),
            slots,
            values: parameters,
            ..
        } = &mut *self.prepared
        else {
            return Ok(false);
        };
        let mut context = Context {
            transaction: self.held.transaction(),
            catalog: &self.session.database.catalog,
            snapshot,
            slots: std::mem::take(slots),
            parameters,
            clock: &self.session.clock,
            given: &self.session.given,
            limits: &self.session.limits,
            budget: self.budget.clone(),
        };
        let mut more = query.root.next(&mut context);
        if matches!(more, Ok(true)) {
            values.clear();
            for output in &query.outputs {
                // Columns are read where they stand, when they are asked for.
                if output.as_column().is_none() {
                    match context.value(output) {
                        Ok(value) => values.push(value),
                        Err(error) => {
                            more = Err(error);
                            break;
                        }
                    }
                }
            }
        }
        self.budget = context.budget;
        *slots = context.slots;
        more
    }
}

#[cold]
fn no_column(column: usize) -> SqlError {
    let message = format!("the answer has no column {column}");
    SqlError::new(SqlState::UndefinedColumn, message)
}

/// A row of a result, valid until the next one is asked for.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    width: usize,
    /// Its values; those that are computed, if it is read where it stands.
    values: &'r [Value],
    standing: Option<(&'r [Slot], &'r [Expr])>,
}

impl<'r> Row<'r> {
    /// Returns the number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.width
    }

    /// Returns whether there are no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a column, borrowed.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT name FROM fruit ORDER BY id", &[])?;
    /// rows.next()?;
    /// assert!(rows.next()?.unwrap().value(0)?.is_null());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn value(&self, column: usize) -> Result<ValueRef<'r>> {
        let Some((slots, outputs)) = self.standing else {
            return self.values.get(column).map(Value::as_ref).ok_or_else(|| no_column(column));
        };
        match outputs.get(column) {
            Some(Expr::Column(at)) => match slots.get(at.slot) {
                Some(slot) => slot.column(at.column),
                None => Err(no_column(column)),
            },
            Some(_) => {
                let computed = |output: &&Expr| output.as_column().is_none();
                let number = outputs.iter().take(column).filter(computed).count();
                self.values.get(number).map(Value::as_ref).ok_or_else(|| no_column(column))
            }
            None => Err(no_column(column)),
        }
    }

    /// Returns the value of a column as a Rust type. NULL is an error unless the type is an
    /// [`Option`].
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT id, name FROM fruit WHERE id = 2", &[])?;
    /// let row = rows.next()?.unwrap();
    /// assert_eq!(row.get::<i64>(0)?, 2);
    /// assert_eq!(row.get::<Option<String>>(1)?, None);
    /// assert!(row.get::<String>(1).is_err());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn get<T: ColumnValue<'r>>(&self, column: usize) -> Result<T> {
        let value = self.value(column)?;
        T::from_value(value).ok_or_else(|| {
            let message =
                format!("column {column} is {value:?}, which is no {}", std::any::type_name::<T>());
            SqlError::new(SqlState::DatatypeMismatch, message)
        })
    }

    /// Returns all values.
    pub fn to_values(&self) -> Result<Vec<Value>> {
        (0..self.len()).map(|column| Ok(self.value(column)?.to_value())).collect()
    }
}

/// A Rust type that a column can be read as.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::memory(Default::default())?;
/// # let mut connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
/// use quickbeam_sql::{ColumnValue, ValueRef};
///
/// struct Id(i64);
///
/// impl<'r> ColumnValue<'r> for Id {
///     fn from_value(value: ValueRef<'r>) -> Option<Self> {
///         value.as_i64().map(Id)
///     }
/// }
///
/// let mut rows = connection.query("SELECT max(id) FROM fruit", &[])?;
/// assert_eq!(rows.next()?.unwrap().get::<Id>(0)?.0, 2);
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub trait ColumnValue<'r>: Sized {
    /// Converts the value, or returns `None` if it has another type or does not fit.
    fn from_value(value: ValueRef<'r>) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl<'r> ColumnValue<'r> for $type {
            fn from_value(value: ValueRef<'r>) -> Option<Self> {
                value.as_i64().and_then(|value| value.try_into().ok())
            }
        })*
    };
}

integers!(i16, i32, i64, u16, u32, u64, usize);

impl<'r> ColumnValue<'r> for f64 {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        value.as_f64()
    }
}

impl<'r> ColumnValue<'r> for bool {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Boolean(value) => Some(value),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for &'r str {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for String {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        <&str>::from_value(value).map(str::to_owned)
    }
}

impl<'r> ColumnValue<'r> for &'r [u8] {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        match value {
            ValueRef::Bytea(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<'r> ColumnValue<'r> for Vec<u8> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        <&[u8]>::from_value(value).map(<[u8]>::to_vec)
    }
}

impl<'r> ColumnValue<'r> for Value {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        Some(value.to_value())
    }
}

impl<'r, T: ColumnValue<'r>> ColumnValue<'r> for Option<T> {
    fn from_value(value: ValueRef<'r>) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_value(value).map(Some) }
    }
}
