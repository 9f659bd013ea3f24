//! Rows of a result.

use std::sync::Arc;

use super::ColumnValue;
use crate::bind::OutputColumn;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Slot};
use crate::types::{DataType, Value, ValueRef};

#[cold]
fn no_column(column: impl std::fmt::Display) -> SqlError {
    let message = format!("the result has no column {column}");
    SqlError::new(SqlState::UndefinedColumn, message)
}

/// A row of a result, valid until the next one is asked for.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    columns: &'r [OutputColumn],
    /// Its values; only the computed ones, if columns are read from `current`.
    values: &'r [Value],
    /// The row slots of the execution and the expressions of the outputs.
    current: Option<(&'r [Slot], &'r [Expr])>,
}

impl<'r> Row<'r> {
    pub(crate) fn of_values(columns: &'r [OutputColumn], values: &'r [Value]) -> Row<'r> {
        Row { columns, values, current: None }
    }

    /// The current row of a running query. Its columns are read from the slots.
    pub(crate) fn current(
        columns: &'r [OutputColumn],
        computed: &'r [Value],
        slots: &'r [Slot],
        outputs: &'r [Expr],
    ) -> Row<'r> {
        Row { columns, values: computed, current: Some((slots, outputs)) }
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
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
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT name FROM fruit ORDER BY id", &[])?;
    /// rows.next()?;
    /// assert!(rows.next()?.unwrap().value(0)?.is_null());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn value(&self, column: usize) -> Result<ValueRef<'r>> {
        let Some((slots, outputs)) = self.current else {
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

    /// Returns the value of a column, by number from 0 or by name, as a Rust type. NULL is an error
    /// unless the type is an [`Option`].
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let connection = SqlDatabase::open_in_memory(Default::default())?.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT id, name FROM fruit WHERE id = 2", &[])?;
    /// let row = rows.next()?.unwrap();
    /// assert_eq!(row.get::<i64>("id")?, 2);
    /// assert_eq!(row.get::<Option<String>>(1)?, None);
    /// assert!(row.get::<String>(1).is_err());
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn get<T: ColumnValue<'r>>(&self, column: impl ColumnIndex) -> Result<T> {
        let column = column.position(self.columns)?;
        let value = self.value(column)?;
        T::from_value(value).ok_or_else(|| misread::<T>(self.columns, column, value))
    }

    /// Returns all values.
    pub fn to_values(&self) -> Result<Vec<Value>> {
        (0..self.len()).map(|column| Ok(self.value(column)?.to_value())).collect()
    }
}

/// A row of a result with values of its own.
#[derive(Clone, Debug)]
pub struct OwnedRow {
    columns: Arc<[OutputColumn]>,
    values: Vec<Value>,
}

impl OwnedRow {
    pub(crate) fn new(columns: Arc<[OutputColumn]>, values: Vec<Value>) -> OwnedRow {
        OwnedRow { columns, values }
    }

    /// Returns the value of a column, by number from 0 or by name, as a Rust type.
    pub fn get<'r, T: ColumnValue<'r>>(&'r self, column: impl ColumnIndex) -> Result<T> {
        Row::of_values(&self.columns, &self.values).get(column)
    }

    /// Returns the names and types of the columns.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// Returns the values.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the values, without the row.
    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }
}

/// The place of a column in a row: its number from 0, or its name.
pub trait ColumnIndex {
    /// Returns the number of the column, or an error (42703) if the row has no such column.
    fn position(&self, columns: &[OutputColumn]) -> Result<usize>;
}

impl ColumnIndex for usize {
    fn position(&self, columns: &[OutputColumn]) -> Result<usize> {
        if *self < columns.len() { Ok(*self) } else { Err(no_column(self)) }
    }
}

impl ColumnIndex for &str {
    /// Names are compared as they are written; the first of equal names is taken.
    fn position(&self, columns: &[OutputColumn]) -> Result<usize> {
        let is_it = |column: &OutputColumn| column.name == *self;
        columns.iter().position(is_it).ok_or_else(|| no_column(format_args!("\"{self}\"")))
    }
}

#[cold]
fn misread<T>(columns: &[OutputColumn], column: usize, value: ValueRef<'_>) -> SqlError {
    let wanted = short_type_name::<T>();
    let (name, data_type) =
        columns.get(column).map_or(("?", DataType::Text), |it| (it.name.as_str(), it.data_type));
    if value.is_null() {
        let message = format!("column \"{name}\" is NULL, which {wanted} cannot hold");
        return SqlError::new(SqlState::NullValueNotAllowed, message)
            .with_hint(format!("Read it as Option<{wanted}>."));
    }
    let message = format!("column \"{name}\" of type {data_type} cannot be read as {wanted}");
    SqlError::new(SqlState::DatatypeMismatch, message)
        .with_hint("The type is another one, or the value is out of its range.")
}

/// Returns the name of a type without the paths of its modules: `Option<String>`.
fn short_type_name<T>() -> String {
    let mut short = String::new();
    for part in std::any::type_name::<T>().split_inclusive(|c: char| !is_of_path(c)) {
        short.push_str(part.rsplit_once("::").map_or(part, |(_, name)| name));
    }
    short
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}
