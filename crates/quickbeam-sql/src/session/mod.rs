//! Sessions: databases, connections, prepared statements, rows.
//!
//! Above: applications. Below: parser, binder, planner, execution. A [`Connection`] serves one
//! thread: it holds the open transaction, settings, and a cache of prepared statements by text. A
//! [`Statement`] is prepared once and keeps its operators and buffers; it is recompiled when the
//! catalog version differs from the one that it was compiled for.
//!
//! - SESSION-1: a statement that fails leaves nothing of itself. Outside a transaction its own
//!   transaction is aborted; inside one it is undone, and the transaction can go on.
//! - SESSION-2: a plan is used only under the catalog version it was made for, in the transaction
//!   that uses it.

mod advisory;
mod arrow;
mod autocommit;
mod connection;
mod copy;
mod create_as;
mod database;
mod definition;
mod executor;
mod foreign;
mod named;
mod prepare;
mod row;
mod rows;
mod rust_types;
mod session_command;
mod setting_table;
mod sql_transaction;
mod statement;
mod statistics;
mod transaction;
mod utility;
mod variables;
mod verify;

pub use connection::Connection;
pub use copy::CopyAccess;
pub use database::{Cancel, SqlDatabase};
pub use row::{ColumnIndex, OwnedRow, Row};
pub use rows::{MappedRows, OwnedRows, Rows};
pub use rust_types::ColumnValue;
pub use sql_transaction::SqlTransaction;
pub use statement::{PreparedStatement, Statement};
pub use verify::Verified;
