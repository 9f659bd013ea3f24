//! The session of the shell: a connection in this process, or one to the process that has the
//! environment open.

use std::cell::RefCell;

use quickbeam_server::{CancelRemote, Client};
use quickbeam_sql::{
    Cancel, Connection, CopyAccess, OutputColumn, Row, Rows, SqlError, Value, ValueRef,
};

/// A session.
pub enum Session {
    /// In this process.
    Direct(Box<Connection>),
    /// By the socket in the environment's directory.
    Remote(RefCell<Client>),
}

impl Session {
    /// Returns whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        match self {
            Session::Direct(connection) => connection.in_transaction(),
            Session::Remote(client) => client.borrow().in_transaction(),
        }
    }

    /// Rolls the open transaction back.
    pub fn rollback(&self) -> Result<(), SqlError> {
        match self {
            Session::Direct(connection) => connection.rollback(),
            Session::Remote(client) => client.borrow_mut().execute("ROLLBACK", &[]).map(drop),
        }
    }

    /// Sets what COPY may read and write.
    pub fn set_copy_access(&self, access: impl CopyAccess + 'static) {
        match self {
            Session::Direct(connection) => connection.set_copy_access(access),
            Session::Remote(client) => client.borrow_mut().set_copy_access(access),
        }
    }

    /// Returns what cancels the running statement.
    pub fn cancel_handle(&self) -> CancelSession {
        match self {
            Session::Direct(connection) => CancelSession::Direct(connection.cancel_handle()),
            Session::Remote(client) => CancelSession::Remote(client.borrow().cancel_handle()),
        }
    }
}

/// Cancels a statement of a session.
pub enum CancelSession {
    Direct(Cancel),
    Remote(CancelRemote),
}

impl CancelSession {
    pub fn cancel(&self) {
        match self {
            CancelSession::Direct(cancel) => cancel.cancel(),
            // Without a server there is nothing to cancel.
            CancelSession::Remote(cancel) => drop(cancel.cancel()),
        }
    }
}

/// The rows of a result.
pub enum ResultRows<'r> {
    Direct(Rows<'r>),
    Remote(quickbeam_server::local::client::Answer<'r>),
}

/// A row of a result.
pub enum ResultRow<'r> {
    Direct(Row<'r>),
    Remote(Vec<Value>),
}

impl<'r> From<Rows<'r>> for ResultRows<'r> {
    fn from(rows: Rows<'r>) -> ResultRows<'r> {
        ResultRows::Direct(rows)
    }
}

impl ResultRows<'_> {
    pub fn columns(&self) -> &[OutputColumn] {
        match self {
            ResultRows::Direct(rows) => rows.columns(),
            ResultRows::Remote(answer) => answer.columns(),
        }
    }

    pub fn next(&mut self) -> Result<Option<ResultRow<'_>>, SqlError> {
        match self {
            ResultRows::Direct(rows) => Ok(rows.next()?.map(ResultRow::Direct)),
            ResultRows::Remote(answer) => Ok(answer.next()?.map(ResultRow::Remote)),
        }
    }
}

impl ResultRow<'_> {
    pub fn len(&self) -> usize {
        match self {
            ResultRow::Direct(row) => row.len(),
            ResultRow::Remote(values) => values.len(),
        }
    }

    pub fn value(&self, column: usize) -> Result<ValueRef<'_>, SqlError> {
        match self {
            ResultRow::Direct(row) => row.value(column),
            ResultRow::Remote(values) => {
                Ok(values.get(column).map_or(ValueRef::Null, Value::as_ref))
            }
        }
    }
}
