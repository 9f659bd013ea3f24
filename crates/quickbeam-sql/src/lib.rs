//! SQL on Quickbeam: tables, indexes and constraints as trees of the engine, in the same
//! transactions as its key/value databases. The dialect is PostgreSQL's; `docs/sql.md` lists what
//! is covered.
//!
//! ```
//! use quickbeam::Options;
//! use quickbeam_sql::{SqlDatabase, params};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! let database = SqlDatabase::open(path, Options::default())?;
//! let mut connection = database.connect();
//! connection.execute("CREATE TABLE IF NOT EXISTS fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
//!
//! let transaction = connection.transaction()?;
//! let mut insert = transaction.prepare("INSERT INTO fruit VALUES ($1, $2)")?;
//! insert.execute(params![1, "apple"])?;
//! insert.execute(params![2, "pear"])?;
//! transaction.commit()?;
//!
//! let mut rows = connection.query("SELECT name FROM fruit WHERE id > $1", params![1])?;
//! while let Some(row) = rows.next()? {
//!     assert_eq!(row.get::<&str>("name")?, "pear");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`SqlDatabase`] is an environment opened for SQL; each thread has a [`Connection`] to it.
//! - [`Connection::transaction`] returns a guard that rolls back unless it commits.
//! - [`Statement`] is compiled once; [`params!`] makes its parameters; [`Rows`] and [`Row`] are its
//!   result. [`Rows::next_batch`] returns Arrow record batches.
//! - [`Statement::execute_in`] runs in a transaction of the engine, together with key/value calls.
//! - [`SqlError`] has PostgreSQL's codes; [`SqlError::is_retryable`] says whether to try again.
//!
//! All calls block. An asynchronous program runs the statements of a transaction together in its
//! runtime's thread pool for blocking calls, such as `tokio::task::spawn_blocking`, on a connection
//! that it makes there: `examples/async_sql.rs`.
//!
//! The public modules, bottom first: [`types`] (data types and values), [`catalog`]
//! (definitions), [`table`] (rows and keys as bytes, tables). The upper half parses, binds, plans
//! and executes statements on them.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

mod api;
mod bind;
pub mod catalog;
mod compile;
mod copy_text;
mod csv;
mod ddl;
mod error;
mod execute;
mod expression;
mod handle;
mod keywords;
mod parse;
mod plan;
mod rust_types;
mod schema;
mod session;
pub mod table;
pub mod types;
mod utf8;

pub use api::{
    BinaryCodec, Cancel, Connection, CopyAccess, DeclaredTypes, LoginRole, MappedRows, Notice,
    Notification, OwnedRows, PortalCommand, PreparedStatement, Rows, SqlDatabase, SqlTransaction,
    Statement, Verified,
};
pub use arrow_array;
pub use arrow_schema;
pub use bind::{CopyPlace, OutputColumn};
pub use csv::Dialect as CsvDialect;
pub use ddl::definition_changes;
pub use error::{Result, SqlError, SqlState};
pub use expression::{
    SERVER_VERSION, ScalarFunction, SessionActivity, SessionDirectory, SessionSignal,
    StatementStatistics,
};
pub use parse::{pieces as split_statements, without_constants, without_passwords};
pub use rust_types::{ColumnIndex, ColumnValue, OwnedRow, Row};
pub use types::{
    Array, ArrayRef, DataType, ElementType, EncodedKind, EncodedType, Interval, IntervalFields,
    LongNumeric, LongNumericRef, Numeric, NumericLimits, PreciseType, SystemType, TimeKind, Value,
    ValueRef,
};

/// The examples of the README, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
