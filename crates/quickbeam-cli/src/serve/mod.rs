//! `quickbeam serve`: answers PostgreSQL clients until a signal ends it.
//!
//! SIGTERM ends the server when running statements have ended, SIGINT at once. SIGHUP reads users,
//! access rules and certificates again, and opens the file of the audit log again. systemd hears
//! when clients can connect and when the server ends.

mod settings;

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use quickbeam::SOCKET_FILE;
use quickbeam_server::{Server, ServerOptions};
use quickbeam_sql::SqlDatabase;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use self::settings::Settings;
use crate::{Outcome, place};

/// The arguments of `quickbeam serve`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of the environment
    #[arg(required_unless_present = "memory", conflicts_with = "memory")]
    directory: Option<PathBuf>,
    /// Serve an environment in memory, which is discarded at the end
    #[arg(long)]
    memory: bool,
    /// Create the environment if it does not exist
    #[arg(long, conflicts_with = "memory")]
    create: bool,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    opening: place::Opening,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let settings = match arguments.opening.config() {
        Some(path) => arguments.settings.clone().with_file(path)?,
        None => arguments.settings.clone(),
    };
    let mut options = settings.options()?;
    let (database, name) = open(arguments, &settings)?;
    if let Some(directory) = arguments.directory.as_ref().filter(|_| !arguments.memory) {
        options = with_directory(options, directory);
    }
    let environment = database.environment().clone();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot catch signals")?;
    let server = Server::start(&database, options).context("cannot listen")?;
    report(&server, &settings)?;
    notify("READY=1");
    let mut patience = Duration::ZERO;
    for signal in &mut signals {
        if signal != SIGHUP {
            patience = if signal == SIGTERM { settings.drain_timeout() } else { Duration::ZERO };
            break;
        }
        let reloaded = settings.access().and_then(|access| Ok(server.set_access(access)?));
        let message = match reloaded {
            Ok(()) => "users, access rules and certificates were read again".to_owned(),
            Err(error) => format!("nothing was changed: {error:#}"),
        };
        // A failure to write standard error cannot be reported.
        let _ = writeln!(std::io::stderr(), "quickbeam: {message}");
        if let Err(error) = server.reopen_audit_log() {
            let _ = writeln!(
                std::io::stderr(),
                "quickbeam: the audit log goes on in the old file: {error}"
            );
        }
    }
    notify("STOPPING=1");
    server.drain(patience);
    drop(database);
    environment.close().with_context(|| format!("cannot close {name}"))?;
    Ok(Outcome::Done)
}

/// The most bytes of the name of a UNIX socket.
const MAX_SOCKET_NAME: usize = 107;

/// Serves the environment to other processes of this user too, by a socket in its directory.
fn with_directory(options: ServerOptions, directory: &Path) -> ServerOptions {
    let length = directory.as_os_str().len() + 1 + SOCKET_FILE.len();
    if length <= MAX_SOCKET_NAME {
        return options.environment_directory(directory);
    }
    // A failure to write standard error cannot be reported.
    let _ = writeln!(
        std::io::stderr(),
        "quickbeam: the name of {} is too long for a socket: commands on it wait until the server \
         has ended",
        directory.display()
    );
    options
}

/// Writes where clients can connect, once the server listens.
fn report(server: &Server, settings: &Settings) -> anyhow::Result<()> {
    let mut output = std::io::stdout();
    if let Some(address) = server.address() {
        writeln!(output, "listening on {address}")?;
    }
    if let Some(socket) = settings.socket() {
        writeln!(output, "listening on {}", socket.display())?;
    }
    if let Some(address) = server.monitor() {
        writeln!(output, "status page and metrics on http://{address}/")?;
    }
    output.flush()?;
    Ok(())
}

/// Tells systemd how the service is, where it started the program and asked for it.
fn notify(state: &str) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match place.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&place),
    };
    let sent = address.and_then(|address| {
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(|_| ())
    });
    if let Err(error) = sent {
        // A failure to write standard error cannot be reported.
        let _ = writeln!(std::io::stderr(), "quickbeam: cannot notify systemd: {error}");
    }
}

fn open(arguments: &Arguments, settings: &Settings) -> anyhow::Result<(SqlDatabase, String)> {
    let options = arguments.opening.options()?.compaction_rate(settings.compaction_rate());
    let Some(directory) = arguments.directory.as_ref().filter(|_| !arguments.memory) else {
        let database = SqlDatabase::open_in_memory(options.create(true))?;
        return Ok((database, "the environment in memory".to_owned()));
    };
    let shown = directory.display();
    let environment = if arguments.create {
        quickbeam::Environment::open(directory, options.create(true))
            .with_context(|| format!("cannot open {shown}"))?
    } else {
        place::open_environment_with(directory, options)?
    };
    let database = SqlDatabase::attach(&environment)
        .with_context(|| format!("cannot open the tables of {shown}"))?;
    Ok((database, shown.to_string()))
}
