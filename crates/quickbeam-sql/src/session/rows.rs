//! Rows of an answer.

use std::sync::Arc;

use quickbeam::Transaction;

use super::connection::Session;
use super::prepare::{Prepared, Work};
use crate::bind::OutputColumn;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{Budget, Context, Returned};
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

/// The rows of an answer, one after the other. A row is found when it is asked for.
pub struct Rows<'c> {
    source: Source<'c>,
    /// Values of the row stood on that are computed.
    values: Vec<Value>,
}

enum Source<'c> {
    Kept { columns: Arc<[OutputColumn]>, rows: Returned, next: usize },
    Running(Running<'c>),
}

struct Running<'c> {
    session: &'c Session,
    prepared: &'c mut Prepared,
    held: Held<'c>,
    budget: Budget,
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
        Rows { source: Source::Kept { columns, rows, next: 0 }, values: Vec::new() }
    }

    pub(super) fn streaming(
        session: &'c Session,
        prepared: &'c mut Prepared,
        held: Held<'c>,
    ) -> Rows<'c> {
        if let Work::Query(query) = &mut prepared.work {
            query.root.rewind();
        }
        prepared.executions += 1;
        let budget = Budget::new(prepared.executions);
        let running = Running { session, prepared, held, budget, done: false };
        Rows { source: Source::Running(running), values: Vec::new() }
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        match &self.source {
            Source::Kept { columns, .. } => columns,
            Source::Running(running) => &running.prepared.columns,
        }
    }

    /// The next row; none when there are no more. After an error there are no more rows either.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        let more = match &mut self.source {
            Source::Kept { rows, next, .. } => {
                *next += 1;
                *next <= rows.len()
            }
            Source::Running(running) => {
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
            Source::Kept { rows, next, .. } => {
                let values = rows.get(next.wrapping_sub(1)).map_or(&[][..], |row| row);
                Row { width, values, standing: None }
            }
            Source::Running(running) => {
                let outputs = match &running.prepared.work {
                    Work::Query(query) => &query.outputs[..],
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

    /// All rows that are left, as values.
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
            work: Work::Query(query),
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

/// A row of an answer: holds until the next one is asked for.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    width: usize,
    /// Its values; those that are computed, if it is read where it stands.
    values: &'r [Value],
    standing: Option<(&'r [Slot], &'r [Expr])>,
}

impl<'r> Row<'r> {
    /// Number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.width
    }

    /// Whether there are no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a column, borrowed from where it stands.
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

    /// The value of a column, as a type of Rust.
    pub fn get<T: ColumnValue<'r>>(&self, column: usize) -> Result<T> {
        let value = self.value(column)?;
        T::from_value(value).ok_or_else(|| {
            let message =
                format!("column {column} is {value:?}, which is no {}", std::any::type_name::<T>());
            SqlError::new(SqlState::DatatypeMismatch, message)
        })
    }

    /// All values.
    pub fn to_values(&self) -> Result<Vec<Value>> {
        (0..self.len()).map(|column| Ok(self.value(column)?.to_value())).collect()
    }
}

/// A type of Rust that a column's value can be read as.
pub trait ColumnValue<'r>: Sized {
    /// The value; none if it is not of such a type, or does not fit.
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
