//! SQL on Quickbeam: tables, indexes and constraints as trees of the engine, in the same transactions as its databases.
//!
//! The lower half, bottom first: [`error`], [`csv`], [`types`] (data types and values), [`catalog`] (what tables, indexes,
//! constraints, views and sequences there are), `storage` (rows and keys as bytes, access to tables). The upper half
//! parses, binds, plans and executes statements on it.

pub mod bind;
pub mod catalog;
pub mod csv;
pub mod error;
mod execute;
pub mod expression;
mod parse;
pub mod plan;
pub mod session;
pub mod storage;
pub mod types;

pub use arrow_array;
pub use arrow_schema;
pub use bind::CopyPlace;
pub use error::{Result, SqlError, SqlState};
pub use session::{Cancel, ColumnValue, Connection, CopyAccess, Database, Row, Rows, Statement};
pub use types::{DataType, Numeric, Value, ValueRef};
