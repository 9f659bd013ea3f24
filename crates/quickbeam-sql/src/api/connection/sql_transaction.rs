//! Transactions of a connection as a guard.

use std::ops::Deref;

use crate::api::Connection;
use crate::error::Result;

/// A transaction of a [`Connection`], which it dereferences to. It rolls back when it is dropped
/// without a commit.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, SqlError, params};
/// # let mut connection = SqlDatabase::open_in_memory(Default::default())?.connect();
/// # connection.execute("CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)", &[])?;
/// # connection.execute("INSERT INTO account VALUES (1, 100), (2, 100)", &[])?;
/// let transaction = connection.transaction()?;
/// let mut add = transaction.prepare("UPDATE account SET balance = balance + $2 WHERE id = $1")?;
/// add.execute(params![1, -30])?;
/// add.execute(params![2, 30])?;
/// transaction.commit()?;
/// # Ok::<(), SqlError>(())
/// ```
#[must_use = "a transaction that is dropped rolls back"]
pub struct SqlTransaction<'c> {
    connection: &'c Connection,
}

impl<'c> SqlTransaction<'c> {
    pub(crate) fn new(connection: &'c Connection) -> SqlTransaction<'c> {
        SqlTransaction { connection }
    }

    /// Commits the transaction.
    pub fn commit(self) -> Result<()> {
        self.connection.commit()
    }

    /// Rolls the transaction back, and reports an error if that fails.
    pub fn rollback(self) -> Result<()> {
        self.connection.rollback()
    }
}

impl Deref for SqlTransaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for SqlTransaction<'_> {
    fn drop(&mut self) {
        // After a commit no transaction is open. An error of the rollback cannot be reported here;
        // the engine rolls back its part of the transaction in any case.
        if self.connection.in_transaction() {
            self.connection.rollback().ok();
        }
    }
}
