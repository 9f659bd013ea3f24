//! One environment for several processes: the first opens it and serves it on a socket in its
//! directory, the others connect to that socket.
//!
//! Above: programs. Below: the server, and the [`client`] of its protocol. [`control`] runs the
//! commands that inspect and maintain an environment where it is open.
//!
//! - LOCAL-1: the socket in the directory answers only the user who runs the server, and root. They
//!   need no password: they can read and write the files. (by test
//!   `socket_in_the_directory_belongs_to_the_server_s_user`)

pub mod client;
pub mod control;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use quickbeam::{Environment, Options};
use quickbeam_sql::catalog::BOOTSTRAP_NAME;
use quickbeam_sql::{Connection, Result, SqlDatabase, SqlError, SqlState, Value};

use self::client::Client;
use crate::options::ServerOptions;
use crate::server::Server;

/// How long an opener waits for the other process to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// An environment that this process has open, or that it reaches in another one.
#[derive(Debug)]
pub enum SharedDatabase {
    /// This process opened the environment and serves it to others until the value is dropped.
    Opened(Box<OpenedDatabase>),
    /// Another process has it open.
    Connected(Box<Client>),
}

/// An environment that this process has open, with the server for the others.
pub struct OpenedDatabase {
    /// Stops before the environment is closed.
    server: Server,
    connection: Connection,
    database: SqlDatabase,
}

impl std::fmt::Debug for OpenedDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedDatabase").field("sessions", &self.server.sessions()).finish()
    }
}

impl OpenedDatabase {
    /// Returns the database, for direct access.
    #[must_use]
    pub fn database(&self) -> &SqlDatabase {
        &self.database
    }
}

/// Opens the environment in a directory and serves it there, or connects to the process that does.
///
/// The process that came first ends the service when it drops the result. Connected processes then
/// get an error (08006 or 57P01), and can call this function again.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use quickbeam_server::open_or_connect;
///
/// let mut first = open_or_connect(directory.path(), Default::default())?;
/// first.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
///
/// // Another process calls the same function.
/// let mut second = open_or_connect(directory.path(), Default::default())?;
/// second.execute("INSERT INTO fruit VALUES ($1, $2)", &[1.into(), "apple".into()])?;
/// assert_eq!(first.query("SELECT name FROM fruit", &[])?[0][0].to_string(), "apple");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`Environment::open`] and of the socket. [`quickbeam::Error::Locked`] if another
/// process has the environment open and does not serve it.
pub fn open_or_connect(directory: impl AsRef<Path>, options: Options) -> Result<SharedDatabase> {
    let directory = directory.as_ref();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let locked = match Environment::open(directory, options.clone()) {
            Ok(environment) => {
                return Ok(SharedDatabase::Opened(Box::new(serve(directory, &environment)?)));
            }
            Err(error @ quickbeam::Error::Locked { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        match Client::connect(directory) {
            Ok(client) => return Ok(SharedDatabase::Connected(Box::new(client))),
            // The other process may have just opened it, or may be about to close it.
            Err(error) if is_absent(&error) && Instant::now() < deadline => {
                std::thread::sleep(INTERVAL);
            }
            Err(error) if is_absent(&error) => return Err(locked.into()),
            Err(error) => return Err(connection_failed(&error)),
        }
    }
}

fn serve(directory: &Path, environment: &Environment) -> Result<OpenedDatabase> {
    let database = SqlDatabase::attach(environment)?;
    let options = ServerOptions::new().environment_directory(directory);
    let server = Server::start(&database, options).map_err(|error| connection_failed(&error))?;
    let connection = database.connect_as(BOOTSTRAP_NAME)?;
    Ok(OpenedDatabase { database, connection, server })
}

/// Returns whether no process listens.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Returns the error of a connection that cannot be made or was lost.
pub(crate) fn connection_failed(error: &io::Error) -> SqlError {
    SqlError::new(SqlState::ConnectionFailure, format!("no connection by the socket: {error}"))
}

impl SharedDatabase {
    /// Executes a statement and returns the number of rows that it inserted, changed or removed.
    pub fn execute(&mut self, text: &str, parameters: &[Value]) -> Result<u64> {
        match self {
            SharedDatabase::Opened(opened) => opened.connection.execute(text, parameters),
            SharedDatabase::Connected(client) => client.execute(text, parameters),
        }
    }

    /// Executes a query and returns its rows.
    pub fn query(&mut self, text: &str, parameters: &[Value]) -> Result<Vec<Vec<Value>>> {
        match self {
            SharedDatabase::Opened(opened) => opened.connection.query(text, parameters)?.collect(),
            SharedDatabase::Connected(client) => client.query(text, parameters)?.collect(),
        }
    }
}
