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
//! let database = quickbeam_sql::SqlDatabase::memory(Default::default())?;
//! let options = ServerOptions { listen: Some("127.0.0.1:0".parse()?), ..ServerOptions::default() };
//! let server = Server::start(&database, options)?;
//! println!("psql -h 127.0.0.1 -p {}", server.address().expect("a TCP address").port());
//! server.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Layers, from the top: [`server`] accepts connections; `session` runs the protocol of one
//! connection on a thread of its own; `statement` runs SQL; `rows` and `types` encode and decode
//! values; `wire` reads and writes messages.
//!
//! - SERVER-1: without authentication the server listens on loopback addresses and UNIX sockets
//!   only.
//! - SERVER-2: a connection's memory is bounded by its largest message and its suspended portals.

mod failure;
mod rows;
pub mod server;
mod session;
mod startup;
mod statement;
mod tag;
mod types;
mod wire;

pub use server::{Server, ServerOptions};
