//! What an application holds: databases, connections, transactions, prepared statements and rows.

pub(crate) mod arrow;
pub(crate) mod connection;
mod notifications;
mod portal;
pub(crate) mod verify;

pub use self::connection::sql_transaction::SqlTransaction;
pub use self::connection::statement::Statement;
pub use crate::session::copy::CopyAccess;
pub use crate::session::copy::binary::BinaryCodec;
pub use crate::session::database::{Cancel, SqlDatabase};
pub use crate::session::events::{Notice, Notification};
pub use crate::session::prepared_statement::PreparedStatement;
pub use crate::session::rows::{MappedRows, OwnedRows, Rows};
pub use connection::{Connection, LoginRole};
pub use portal::{DeclaredTypes, PortalCommand};
pub use verify::Verified;
