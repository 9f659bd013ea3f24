//! `quickbeam serve`: answers PostgreSQL clients until a signal ends it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::Context;
use quickbeam_server::{Server, ServerOptions};
use quickbeam_sql::SqlDatabase;

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
    /// Listen on this loopback address by TCP; port 0 takes a free one [default: 127.0.0.1:5432
    /// unless --socket-directory is given]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Make a UNIX socket in this directory
    #[arg(long, value_name = "DIRECTORY")]
    socket_directory: Option<PathBuf>,
    /// Port in the name of the UNIX socket
    #[arg(long, default_value_t = 5432)]
    port: u16,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_connections: usize,
    #[command(flatten)]
    opening: place::Opening,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let (database, name) = open(arguments)?;
    let environment = database.environment().clone();
    let listen = match (arguments.listen, &arguments.socket_directory) {
        (None, None) => Some(SocketAddr::from(([127, 0, 0, 1], 5432))),
        (listen, _) => listen,
    };
    let options = ServerOptions {
        listen,
        socket_directory: arguments.socket_directory.clone(),
        port: arguments.port,
        max_connections: arguments.max_connections,
        ..ServerOptions::default()
    };
    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || {
        // A second signal finds the program stopping already.
        let _ = stop.send(());
    })
    .context("cannot catch signals")?;
    let server = Server::start(&database, options).context("cannot listen")?;
    report(&server, arguments)?;
    // The handler lives as long as the program, so the channel stays open.
    let _ = stopped.recv();
    server.stop();
    drop(database);
    environment.close().with_context(|| format!("cannot close {name}"))?;
    Ok(Outcome::Done)
}

/// Writes where clients can connect, once the server listens.
fn report(server: &Server, arguments: &Arguments) -> anyhow::Result<()> {
    let mut output = std::io::stdout();
    if let Some(address) = server.address() {
        writeln!(output, "listening on {address}")?;
    }
    if let Some(directory) = &arguments.socket_directory {
        writeln!(output, "listening on {}/.s.PGSQL.{}", directory.display(), arguments.port)?;
    }
    output.flush()?;
    Ok(())
}

fn open(arguments: &Arguments) -> anyhow::Result<(SqlDatabase, String)> {
    let options = arguments.opening.options()?;
    let Some(directory) = arguments.directory.as_ref().filter(|_| !arguments.memory) else {
        let database = SqlDatabase::memory(options.create(true))?;
        return Ok((database, "the environment in memory".to_owned()));
    };
    let shown = directory.display();
    let environment = if arguments.create {
        quickbeam::Environment::open(directory, options.create(true))
            .with_context(|| format!("cannot open {shown}"))?
    } else {
        place::open_environment(directory, &arguments.opening)?
    };
    let database = SqlDatabase::over(&environment)
        .with_context(|| format!("cannot open the tables of {shown}"))?;
    Ok((database, shown.to_string()))
}
