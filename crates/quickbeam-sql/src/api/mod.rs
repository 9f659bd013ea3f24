//! What an application holds: databases, connections, transactions, prepared statements and rows.

pub(crate) mod arrow;
pub(crate) mod connection;
pub(crate) mod database;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod rust_types;
pub(crate) mod sql_transaction;
pub(crate) mod statement;
pub(crate) mod verify;

pub use crate::session::copy::CopyAccess;
pub use connection::Connection;
pub use database::{Cancel, SqlDatabase};
pub use row::{ColumnIndex, OwnedRow, Row};
pub use rows::{MappedRows, OwnedRows, Rows};
pub use rust_types::ColumnValue;
pub use sql_transaction::SqlTransaction;
pub use statement::{PreparedStatement, Statement};
pub use verify::Verified;
