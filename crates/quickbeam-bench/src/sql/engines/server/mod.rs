//! Private servers: made, started and stopped by the benchmark.
//!
//! A server ends with the benchmark even when that is killed. Clients on its socket or on the
//! loopback address are trusted, except [`SCRAM_USER`], who needs a password.

pub mod postgresql;
#[cfg(feature = "sql")]
pub mod quickbeam;

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};

/// How clients reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A UNIX socket.
    Socket,
    /// TCP on the loopback address.
    Tcp,
}

impl Transport {
    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Socket => "socket",
            Transport::Tcp => "tcp",
        }
    }
}

impl FromStr for Transport {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Transport> {
        let all = [Transport::Socket, Transport::Tcp];
        let found = all.into_iter().find(|transport| transport.name() == text);
        found.ok_or_else(|| anyhow!("unknown transport `{text}`; one of socket, tcp"))
    }
}

/// A superuser that connects without a password.
pub const TRUSTED_USER: &str = "bench";
/// The user that connects with a password.
pub const SCRAM_USER: &str = "scram";

/// Access rules, in the format of pg_hba.conf.
const RULES: &str = "\
local all scram scram-sha-256
host all scram 127.0.0.1/32 scram-sha-256
local all all trust
host all all 127.0.0.1/32 trust
";

/// User and group of a process.
type Account = (u32, u32);

/// A running server.
pub struct Server {
    child: Option<Child>,
    place: ServerPlace,
    database: &'static str,
}

/// The files of a server besides its data. Removed at the end.
struct ServerPlace {
    /// Where the socket and the log are: the path of a socket must be short.
    folder: PathBuf,
    port: u16,
}

impl ServerPlace {
    fn new(account: Option<Account>) -> Result<ServerPlace> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quickbeam-server-{}-{number}", process::id());
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let place = ServerPlace { folder: std::env::temp_dir().join(name), port };
        own(&place.folder, account)?;
        fs::write(place.rules(), RULES)?;
        Ok(place)
    }

    fn rules(&self) -> PathBuf {
        self.folder.join("rules")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for ServerPlace {
    fn drop(&mut self) {
        // A folder that remains wastes space only.
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Makes a directory that belongs to the account.
fn own(directory: &Path, account: Option<Account>) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    if let Some((user, group)) = account {
        chown(directory, Some(user), Some(group))
            .with_context(|| directory.display().to_string())?;
    }
    Ok(())
}

/// A program of a server, run by the account and interrupted when this process ends.
fn command(program: &Path, account: Option<Account>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if let Some((user, group)) = account {
        let (user, group) = (user.to_string(), group.to_string());
        command.args(["--reuid", &user, "--regid", &group, "--clear-groups"]);
    }
    command.arg(program).stdin(Stdio::null()).env_remove("PGDATA");
    command
}

/// Tells a server to end connections, write everything and stop. The program itself is what
/// `setpriv` has become.
fn interrupt(child: &Child) -> Result<()> {
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    ensure!(signalled.success(), "the server could not be interrupted");
    Ok(())
}

impl Server {
    /// Starts the program of a server; its output goes to the log.
    fn spawn(place: ServerPlace, database: &'static str, mut command: Command) -> Result<Server> {
        let log = File::create(place.log())?;
        command.current_dir(&place.folder).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().context("start the server")?;
        Ok(Server { child: Some(child), place, database })
    }

    /// The host that a client connects to.
    pub fn host(&self, transport: Transport) -> String {
        match transport {
            Transport::Socket => self.place.folder.display().to_string(),
            Transport::Tcp => "127.0.0.1".to_owned(),
        }
    }

    /// The port that a client connects to, also in the name of the socket.
    pub fn port(&self) -> u16 {
        self.place.port
    }

    /// The name of the database.
    pub fn database(&self) -> &'static str {
        self.database
    }

    /// How [`TRUSTED_USER`] connects.
    pub fn connection_string(&self, transport: Transport) -> String {
        let (host, port, database) = (self.host(transport), self.port(), self.database);
        format!("host={host} port={port} user={TRUSTED_USER} dbname={database} sslmode=disable")
    }

    /// Waits until it answers.
    pub fn wait(&mut self, answers: impl Fn() -> Result<()>) -> Result<()> {
        let mut last = Ok(());
        for _ in 0..600 {
            last = answers();
            if last.is_ok() {
                return last;
            }
            let ended = self.child.as_mut().map(Child::try_wait).transpose()?.flatten();
            if ended.is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let log = fs::read_to_string(self.place.log()).unwrap_or_default();
        last.with_context(|| format!("the server does not answer; its log: {log}"))
    }

    /// Stops it cleanly.
    pub fn stop(mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        interrupt(&child)?;
        let status = child.wait()?;
        if !status.success() {
            let log = fs::read_to_string(self.place.log()).unwrap_or_default();
            bail!("the server ended with {status}; its log: {log}");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After an error its content is not needed.
        if let Some(mut child) = self.child.take() {
            interrupt(&child).ok();
            child.wait().ok();
        }
    }
}
