//! The options of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quickbeam::Isolation;

use crate::authentication::Access;
use crate::monitor::audit::AuditLevel;
use crate::monitor::log::{LogOutput, LogSettings};

/// The longest message of PostgreSQL's protocol.
const MAX_MESSAGE: usize = 0x3fff_ffff;

/// How a server listens, whom it admits and what it allows each client.
///
/// ```
/// use quickbeam_server::ServerOptions;
///
/// let options = ServerOptions::new().listen("127.0.0.1:0".parse()?).max_connections(20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) socket_directory: Option<PathBuf>,
    pub(crate) environment_directory: Option<PathBuf>,
    pub(crate) port: u16,
    pub(crate) access: Access,
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_user: Option<usize>,
    pub(crate) authentication_timeout: Duration,
    pub(crate) max_message_bytes: usize,
    pub(crate) isolation: Isolation,
    pub(crate) backup_directory: Option<PathBuf>,
    pub(crate) monitor: Option<SocketAddr>,
    pub(crate) log: LogSettings,
    pub(crate) track_statements: usize,
    pub(crate) audit: Option<(AuditLevel, PathBuf)>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        ServerOptions {
            listen: None,
            socket_directory: None,
            environment_directory: None,
            port: 5432,
            access: Access::default(),
            max_connections: 100,
            max_connections_per_user: None,
            authentication_timeout: Duration::from_secs(60),
            max_message_bytes: MAX_MESSAGE,
            isolation: Isolation::ReadCommitted,
            backup_directory: None,
            monitor: None,
            log: LogSettings::default(),
            track_statements: 0,
            audit: None,
        }
    }
}

impl ServerOptions {
    /// Returns the defaults: no listener.
    #[must_use]
    pub fn new() -> ServerOptions {
        ServerOptions::default()
    }

    /// Sets the address to listen on by TCP. Port 0 takes a free one. Default: no TCP.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> ServerOptions {
        self.listen = Some(address);
        self
    }

    /// Sets the folder to make a UNIX socket in, `.s.PGSQL.PORT`. Default: no UNIX socket.
    #[must_use]
    pub fn socket_directory(mut self, folder: impl Into<PathBuf>) -> ServerOptions {
        self.socket_directory = Some(folder.into());
        self
    }

    /// Sets the environment's directory, to make a UNIX socket in it for other processes of this
    /// user and for root. They need no password and no access rule. Default: no such socket.
    #[must_use]
    pub fn environment_directory(mut self, directory: impl Into<PathBuf>) -> ServerOptions {
        self.environment_directory = Some(directory.into());
        self
    }

    /// Sets the port in the UNIX socket's name. Default: 5432.
    #[must_use]
    pub fn port(mut self, port: u16) -> ServerOptions {
        self.port = port;
        self
    }

    /// Sets who may connect and how. Default: everybody from this machine, without a password.
    #[must_use]
    pub fn access(mut self, access: Access) -> ServerOptions {
        self.access = access;
        self
    }

    /// Sets the most sessions at a time; clients beyond are refused with SQLSTATE 53300. Clients
    /// that are not authenticated yet may be as many again. Default: 100.
    #[must_use]
    pub fn max_connections(mut self, count: usize) -> ServerOptions {
        self.max_connections = count;
        self
    }

    /// Sets the most sessions of one user at a time. Default: no limit but that of all.
    #[must_use]
    pub fn max_connections_per_user(mut self, count: usize) -> ServerOptions {
        self.max_connections_per_user = Some(count);
        self
    }

    /// Sets how long a client may take until it is authenticated. Default: 60 seconds.
    #[must_use]
    pub fn authentication_timeout(mut self, timeout: Duration) -> ServerOptions {
        self.authentication_timeout = timeout;
        self
    }

    /// Sets the longest message that a client may send, up to a gigabyte, the default. A session
    /// holds its largest message in memory.
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: usize) -> ServerOptions {
        self.max_message_bytes = bytes.min(MAX_MESSAGE);
        self
    }

    /// Sets the isolation of transactions that do not name one. Default: read committed, as in
    /// PostgreSQL.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> ServerOptions {
        self.isolation = isolation;
        self
    }

    /// Lets clients back up the environment into folders of this directory, by
    /// `SELECT quickbeam_backup('NAME')`. Default: that is refused.
    #[must_use]
    pub fn backup_directory(mut self, directory: impl Into<PathBuf>) -> ServerOptions {
        self.backup_directory = Some(directory.into());
        self
    }

    /// Sets an address that answers HTTP: `/metrics` for Prometheus, and on loopback addresses a
    /// status page. Port 0 takes a free one. Default: none.
    #[must_use]
    pub fn monitor(mut self, address: SocketAddr) -> ServerOptions {
        self.monitor = Some(address);
        self
    }

    /// Sets where the log goes. Default: nowhere.
    #[must_use]
    pub fn log(mut self, output: LogOutput) -> ServerOptions {
        self.log.output = Some(output);
        self
    }

    /// Logs statements that take at least so long, with their plans. Default: none.
    #[must_use]
    pub fn log_slow_statements(mut self, duration: Duration) -> ServerOptions {
        self.log.slow = Some(duration);
        self
    }

    /// Logs the begin and the end of sessions. Default: false.
    #[must_use]
    pub fn log_connections(mut self, is_on: bool) -> ServerOptions {
        self.log.connections = is_on;
        self
    }

    /// Counts the executions of as many statements, which `quickbeam_stat_statements` shows; those
    /// that were used longest ago go for new ones. Default: 0, which counts none.
    #[must_use]
    pub fn track_statements(mut self, count: usize) -> ServerOptions {
        self.track_statements = count;
        self
    }

    /// Appends connections and the statements of a level to a file, which is created if it is not
    /// there. [`AuditLevel::None`] logs nothing. Default: none.
    #[must_use]
    pub fn audit_log(mut self, level: AuditLevel, file: impl Into<PathBuf>) -> ServerOptions {
        self.audit = (level != AuditLevel::None).then(|| (level, file.into()));
        self
    }
}
