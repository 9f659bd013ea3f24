//! A PostgreSQL server for the SQL of [Quickbeam](quickbeam): the same tables, in the same process,
//! over a socket.
//!
//! A [`Server`] stands over a [`SqlDatabase`](quickbeam_sql::SqlDatabase) that the program has
//! open. The program goes on using the database directly, and clients connect by TCP or by a UNIX
//! socket.
//!
//! ```
//! use quickbeam_server::{Server, ServerOptions};
//!
//! let database = quickbeam_sql::SqlDatabase::open_in_memory(Default::default())?;
//! let options = ServerOptions::new().listen("127.0.0.1:0".parse()?);
//! let server = Server::start(&database, options)?;
//! println!("psql -h 127.0.0.1 -p {}", server.address().expect("a TCP address").port());
//! server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Layers, from the top: [`server`] accepts connections; `session` runs the protocol of one
//! connection on a thread of its own; `startup` and `authentication` come before it; `statement`
//! runs SQL, `copy` moves rows of COPY; `rows` and `types` encode and decode values; `frontend`
//! decodes messages; `wire` reads and writes frames, through `tls` and a `socket`. [`local`] lets
//! other processes use the environment, `monitor` shows what the server does.
//!
//! - SERVER-1: the server listens for other machines only where users or access rules say who may
//!   connect.
//! - SERVER-2: a connection's memory is bounded by its largest message and its suspended portals.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

mod authentication;
mod connection;
pub mod local;
mod monitor;
mod options;
mod protocol;
pub mod server;
mod session;

pub use crate::connection::tls::Tls;
pub use authentication::Access;
pub use authentication::rules::{AccessRules, Method, Origin};
pub use authentication::scram::{NoVerifier, ScramVerifier};
pub use authentication::users::Users;
pub use local::client::{CancelRemote, Client};
pub use local::{SharedDatabase, open_or_connect};
pub use monitor::audit::AuditLevel;
pub use monitor::log::LogOutput;
pub use options::ServerOptions;
pub use server::Server;
